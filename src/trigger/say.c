/* An evaluation in sentences: how the value came about, what the activity was compared with, who is missing. It decides
 * nothing: the facts are evaluate.c's, and no sentence is made before somebody wants it. */
#include "trigger/say.h"

#include "trigger/evaluate.h"
#include "trigger/text.h"

#include <string.h>

enum { NAMED_MAX = 3, OWN_WARNINGS_MAX = 3 };

const char *trigger_input_state_name(enum trigger_input_state state)
{
    static const char *const names[TRIGGER_INPUT_STATES] = {[TRIGGER_INPUT_MEASURED] = "measured",
                                                            [TRIGGER_INPUT_MISSING] = "missing",
                                                            [TRIGGER_INPUT_UNSUPPORTED] = "unsupported",
                                                            [TRIGGER_INPUT_EXPIRED] = "expired"};
    return (size_t)state < TRIGGER_INPUT_STATES ? names[state] : "unknown";
}

const char *trigger_input_label(const struct trigger_input *in)
{
    static const char vendor[] = "NVIDIA ";
    const struct trigger_device *d = &in->device;
    const char *label = d->kind == SNAPSHOT_MIG && d->mig_profile[0] ? d->mig_profile : d->product;
    return str_has_prefix(str_of(label), vendor) ? label + sizeof(vendor) - 1 : label;
}

bool trigger_has_unknown(const struct trigger_evaluation *evaluation)
{
    return evaluation->n_in_state[TRIGGER_INPUT_MISSING] > 0 &&
           evaluation->trigger->on_missing != TRIGGER_MISSING_IGNORE;
}

/* ---- parts ---- */

void trigger_say_device(struct buf *out, const struct trigger_device *d)
{
    (void)buf_printf(out, "%s%sGPU %d", d->node, d->node[0] ? " " : "", d->index);
    if (d->kind == SNAPSHOT_MIG)
        (void)buf_printf(out, " MIG %s", d->mig_profile[0] ? d->mig_profile : d->uuid);
}

static void say_value(struct buf *out, const struct trigger_evaluation *ev, double value)
{
    char text[TRIGGER_VALUE_TEXT_MAX];
    trigger_show_value(text, value, trigger_metric_unit(ev->trigger->metric));
    (void)buf_append_str(out, text);
}

static const char *plural_of(const struct trigger_evaluation *ev, size_t n)
{
    for (size_t i = 0; i < ev->n_inputs; i++)
        if (ev->inputs[i].device.kind == SNAPSHOT_MIG)
            return n == 1 ? "device" : "devices";
    return n == 1 ? "GPU" : "GPUs";
}

/* Why a device has no reading, as far as the snapshot knows. */
static void say_absence(struct buf *out, const struct trigger_input *in)
{
    char age[TRIGGER_AGE_MAX];
    if (in->state == TRIGGER_INPUT_UNSUPPORTED)
        return;
    trigger_show_age(age, in->age_ns);
    (void)buf_printf(out, " (%s%s", in->age_ns < 0 ? "" : "last ", age);
    if (in->code && !in->device.is_lost)
        (void)buf_printf(out, "; NVML error %d", in->code);
    if (in->device.is_lost)
        (void)buf_printf(out, "; lost%s%s", in->device.lost_reason[0] ? ": " : "", in->device.lost_reason);
    if (in->reason[0])
        (void)buf_printf(out, "; %s", in->reason);
    (void)buf_append_char(out, ')');
}

/* The first few devices in a state, and how many more there are. */
static void say_devices_in(struct buf *out, const struct trigger_evaluation *ev, enum trigger_input_state state)
{
    size_t n = 0;
    for (size_t i = 0; i < ev->n_inputs; i++) {
        if (ev->inputs[i].state != state)
            continue;
        if (n++ >= NAMED_MAX)
            continue;
        (void)buf_append_str(out, n > 1 ? ", " : "");
        trigger_say_device(out, &ev->inputs[i].device);
        say_absence(out, &ev->inputs[i]);
    }
    if (n > NAMED_MAX)
        (void)buf_printf(out, " and %zu more", n - NAMED_MAX);
}

/* ---- devices that are left out ---- */

static bool is_activity(enum trigger_metric m)
{
    return m == TRIGGER_SM_ACTIVITY || m == TRIGGER_SM_OCCUPANCY || m == TRIGGER_TENSOR_ACTIVITY ||
           m == TRIGGER_DRAM_ACTIVITY;
}

/* The reasons that the devices in this state have, each once. */
static void say_why_unsupported(struct buf *out, const struct trigger_evaluation *ev)
{
    size_t n = 0, n_mig = 0, n_shared = 0;
    for (size_t i = 0; i < ev->n_inputs; i++) {
        const struct trigger_input *in = &ev->inputs[i];
        if (in->state != TRIGGER_INPUT_UNSUPPORTED)
            continue;
        n++;
        n_mig += in->device.kind == SNAPSHOT_MIG;
        n_shared += in->shares_instance;
    }
    enum trigger_metric m = ev->trigger->metric;
    bool is_busy_time = m == TRIGGER_GPU_UTILIZATION || m == TRIGGER_MEMORY_UTILIZATION ||
                        m == TRIGGER_ENCODER_UTILIZATION || m == TRIGGER_DECODER_UTILIZATION;
    if (is_busy_time && n_mig > 0)
        (void)buf_append_str(out, "; NVML has no utilisation of MIG devices: sm_activity (Hopper and later) or "
                                  "memory_used_percent has");
    if (is_activity(m) && n_shared > 0)
        (void)buf_append_str(out, "; compute instances that share a GPU instance have no activity of their own");
    if (is_activity(m) && n > n_shared)
        (void)buf_append_str(out, "; activity needs a Hopper or newer GPU and the right to profile it (CAP_SYS_ADMIN, "
                                  "or a privileged container)");
}

/* A cycle that does not end is the reason why nothing newer is there. */
static void say_driver(struct buf *out, const struct trigger_evaluation *ev)
{
    const struct snapshot *s = ev->snapshot;
    if (!s) /* of many nodes: each device has its own reason */
        return;
    if (s->driver != SNAPSHOT_DRIVER_OK)
        (void)buf_printf(out, "; driver %s%s%s", snapshot_driver_state_name(s->driver), s->driver_text[0] ? ": " : "",
                         s->driver_text);
    trigger_say_stuck(out, s, ev->now_ns);
}

void trigger_say_stuck(struct buf *out, const struct snapshot *s, int64_t now_ns)
{
    char age[TIME_DURATION_MAX];
    int64_t stuck_ns = snapshot_stuck_ns(s, now_ns);
    if (stuck_ns == 0)
        return;
    time_format_duration(age, stuck_ns / NS_PER_S * NS_PER_S);
    (void)buf_printf(out, "; no sampling cycle has ended for %s: a driver call hangs", age);
}

static void say_absent(struct buf *out, const struct trigger_evaluation *ev)
{
    say_devices_in(out, ev, TRIGGER_INPUT_MISSING);
    if (ev->n_in_state[TRIGGER_INPUT_MISSING] && ev->n_in_state[TRIGGER_INPUT_EXPIRED])
        (void)buf_append_str(out, ", ");
    say_devices_in(out, ev, TRIGGER_INPUT_EXPIRED);
    say_driver(out, ev);
}

int trigger_refuse_absent(const struct trigger_evaluation *ev, struct err *e)
{
    BUF_AUTO struct buf text;
    buf_init(&text, TRIGGER_SENTENCE_BYTES);
    if (ev->n_in_state[TRIGGER_INPUT_UNSUPPORTED] == ev->n_inputs) {
        say_devices_in(&text, ev, TRIGGER_INPUT_UNSUPPORTED);
        say_why_unsupported(&text, ev);
        return err_set(e, ERR_FAILED_PRECONDITION, "no GPU here has %s: %s", trigger_metric_name(ev->trigger->metric),
                       buf_cstr(&text));
    }
    say_absent(&text, ev);
    if (ev->n_in_state[TRIGGER_INPUT_MEASURED] == 0)
        return err_set(e, ERR_UNAVAILABLE, "no GPU could be read: %s", buf_cstr(&text));
    return err_set(e, ERR_UNAVAILABLE, "onMissing is error, and missing is: %s", buf_cstr(&text));
}

/* ---- warnings ---- */

#define WARN(ret, ...) trigger_warn((ret)->warnings, &(ret)->n_warnings, __VA_ARGS__)

static void warn_of_unsupported(const struct trigger_evaluation *ev, struct trigger_explanation *ret)
{
    size_t n = ev->n_in_state[TRIGGER_INPUT_UNSUPPORTED];
    if (n == 0 || n == ev->n_inputs) /* of all: an error */
        return;
    BUF_AUTO struct buf text;
    buf_init(&text, TRIGGER_SENTENCE_BYTES);
    say_devices_in(&text, ev, TRIGGER_INPUT_UNSUPPORTED);
    say_why_unsupported(&text, ev);
    WARN(ret, "left out, without %s: %s", trigger_metric_name(ev->trigger->metric), buf_cstr(&text));
}

static void warn_of_missing(const struct trigger_evaluation *ev, struct trigger_explanation *ret)
{
    const size_t *n = ev->n_in_state;
    bool is_error = n[TRIGGER_INPUT_MEASURED] == 0 || ev->trigger->on_missing == TRIGGER_MISSING_ERROR;
    if (n[TRIGGER_INPUT_MISSING] + n[TRIGGER_INPUT_EXPIRED] == 0 || is_error)
        return;
    BUF_AUTO struct buf text;
    buf_init(&text, TRIGGER_SENTENCE_BYTES);
    say_absent(&text, ev);
    WARN(ret, "missing: %s", buf_cstr(&text));
}

/* A nearest-rank percentile of few values is their maximum. reference B.1 #22 */
static void warn_of_percentile(const struct trigger_evaluation *ev, struct trigger_explanation *ret)
{
    enum scaling_aggregation a = ev->trigger->aggregation;
    size_t n = ev->n_in_state[TRIGGER_INPUT_MEASURED], needed = a == SCALING_P95 ? 20 : a == SCALING_P99 ? 100 : 0;
    if (n < needed)
        WARN(ret, "%s of %zu %s is their maximum: it takes %zu to leave one out", scaling_aggregation_name(a), n,
             plural_of(ev, n), needed);
}

/* ---- rules ---- */

/* The device that a maximum, minimum or percentile is of; NULL for sums and means. */
static const struct trigger_device *find_decisive(const struct trigger_evaluation *ev)
{
    enum scaling_aggregation a = ev->trigger->aggregation;
    for (size_t i = 0; i < ev->n_inputs && a != SCALING_SUM && a != SCALING_AVG; i++) {
        const struct trigger_input *in = &ev->inputs[i];
        if (in->is_counted && !(in->counted < ev->value) && !(in->counted > ev->value))
            return &in->device;
    }
    return NULL;
}

static void say_rule(const struct trigger_evaluation *ev, char rule[TRIGGER_TEXT_MAX])
{
    const struct trigger *t = ev->trigger;
    size_t n = 0, n_missing = 0;
    for (size_t i = 0; i < ev->n_inputs; i++) {
        n += ev->inputs[i].is_counted;
        n_missing += ev->inputs[i].is_counted && ev->inputs[i].state == TRIGGER_INPUT_MISSING;
    }
    BUF_AUTO struct buf text;
    buf_init(&text, TRIGGER_SENTENCE_BYTES);
    char window[TIME_DURATION_MAX];
    time_format_duration(window, t->window_ns);
    (void)buf_printf(&text, "%s of %zu %s%s%s: ", scaling_aggregation_name(t->aggregation), n, plural_of(ev, n),
                     t->window_ns ? " over " : ", newest reading", t->window_ns ? window : "");
    say_value(&text, ev, ev->value);
    const struct trigger_device *decisive = find_decisive(ev);
    if (decisive) {
        (void)buf_append_str(&text, " (");
        trigger_say_device(&text, decisive);
        (void)buf_printf(&text, ", %s)", decisive->uuid);
    }
    if (n_missing) {
        (void)buf_printf(&text, "; %zu missing counted as at least ", n_missing);
        say_value(&text, ev, t->target);
    }
    trigger_fit(rule, str_of(buf_cstr(&text)));
}

static const struct trigger_device *find_busiest(const struct trigger_evaluation *ev)
{
    for (size_t i = 0; i < ev->n_inputs && ev->activity >= 0; i++)
        if (ev->inputs[i].state == TRIGGER_INPUT_MEASURED && !(ev->inputs[i].peak < ev->activity))
            return &ev->inputs[i].device;
    return NULL;
}

static void say_activity(const struct trigger_evaluation *ev, char rule[TRIGGER_TEXT_MAX])
{
    const struct trigger *t = ev->trigger;
    const struct trigger_device *busiest = find_busiest(ev);
    bool is_above = ev->activity > t->activation;
    BUF_AUTO struct buf text;
    buf_init(&text, TRIGGER_SENTENCE_BYTES);
    char window[TIME_DURATION_MAX];
    time_format_duration(window, t->activation_window_ns);
    if (busiest) {
        (void)buf_append_str(&text, "busiest ");
        trigger_say_device(&text, busiest);
        (void)buf_append_str(&text, ": ");
        say_value(&text, ev, ev->activity);
        (void)buf_printf(&text, "%s%s, %s ", t->activation_window_ns ? " within " : "",
                         t->activation_window_ns ? window : "", is_above ? "above" : "not above");
        say_value(&text, ev, t->activation);
    }
    if (!is_above && trigger_has_unknown(ev)) {
        (void)buf_append_str(&text, busiest ? "; missing, and unknown is not idle: " : "unknown is not idle: ");
        say_devices_in(&text, ev, TRIGGER_INPUT_MISSING);
    }
    trigger_fit(rule, str_of(buf_cstr(&text)));
}

/* The page was read before, and the newest try to read it failed. */
static void warn_of_page(const struct trigger_evaluation *ev, struct trigger_explanation *ret)
{
    bool is_read = ev->feed && ev->value_error.class == ERR_NONE && ev->active_error.class == ERR_NONE;
    if (is_read && ev->feed->error[0])
        WARN(ret, "the last try to read page %s failed: %s", ev->feed->url, ev->feed->error);
}

void trigger_explain(const struct trigger_evaluation *evaluation, struct trigger_explanation *ret)
{
    const struct trigger *t = evaluation->trigger;
    bool has_value = (evaluation->asked & TRIGGER_ASK_VALUE) && evaluation->value_error.class == ERR_NONE;
    bool has_active = (evaluation->asked & TRIGGER_ASK_ACTIVITY) && evaluation->active_error.class == ERR_NONE;
    ret->rule[0] = ret->active_rule[0] = '\0';
    ret->n_warnings = 0;
    for (size_t i = 0; i < t->n_warnings && i < TRIGGER_WARNINGS_MAX - OWN_WARNINGS_MAX; i++)
        WARN(ret, "%s", t->warnings[i]); /* there is always room for what this evaluation has to say */
    warn_of_unsupported(evaluation, ret);
    warn_of_missing(evaluation, ret);
    warn_of_page(evaluation, ret);
    if (has_value && evaluation->feed) {
        trigger_say_page_rule(evaluation, ret->rule);
    } else if (has_value) {
        warn_of_percentile(evaluation, ret);
        say_rule(evaluation, ret->rule);
    }
    if (has_active && t->is_always_active)
        trigger_fit(ret->active_rule, str_of("profile training is always active in scope node"));
    else if (has_active && evaluation->feed)
        trigger_say_page_activity(evaluation, ret->active_rule);
    else if (has_active)
        say_activity(evaluation, ret->active_rule);
}
