/* A trigger on a snapshot, in scopes node and cluster: which devices count, what each reads, what missing ones stand
 * for, and the value, the activity and the sentences about them, all from one pass (scaling-semantics 2.1, 3, 4). */
#include "trigger/trigger.h"

#include "trigger/facts.h"
#include "trigger/text.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* A device missing for longer no longer speaks for anything. scaling-semantics 3 */
#define MISSING_MAX_NS (15 * 60 * NS_PER_S)
#define VALUE_MAX      1e12

enum { NAMED_MAX = 3, LISTED_MAX = 8, SENTENCE_BYTES = 640, OWN_WARNINGS_MAX = 3 };
#define STATES ((size_t)TRIGGER_INPUT_EXPIRED + 1)

/* One evaluation under way. devices[i] is what inputs[i] was read from. */
struct evaluator {
    const struct trigger *t;
    const struct snapshot *s;
    int64_t now_ns;
    struct arena *arena;
    struct trigger_evaluation *ret;
    const struct snapshot_device **devices;
    size_t n_in_state[STATES];
};

const char *trigger_input_state_name(enum trigger_input_state state)
{
    static const char *const names[STATES] = {[TRIGGER_INPUT_MEASURED] = "measured",
                                              [TRIGGER_INPUT_MISSING] = "missing",
                                              [TRIGGER_INPUT_UNSUPPORTED] = "unsupported",
                                              [TRIGGER_INPUT_EXPIRED] = "expired"};
    return (size_t)state < STATES ? names[state] : "unknown";
}

#define WARN(ev, ...) trigger_warn((ev)->ret->warnings, &(ev)->ret->n_warnings, __VA_ARGS__)

/* The same answer to GetMetrics and IsActive. */
static void refuse_both(struct trigger_evaluation *ret)
{
    ret->active_error = ret->value_error;
}

/* ---- which devices ---- */

/* Board values count once per chip, loads and memory once per GPU or MIG device. */
static bool is_eligible(const struct trigger *t, const struct snapshot_device *d)
{
    return d->kind == SNAPSHOT_GPU || (d->kind == SNAPSHOT_MIG_PARENT) == trigger_metric_is_of_board(t->metric);
}

/* Is `part` in `product`, in any case? Node labels write the spaces of product names as dashes. */
static bool has_product(const char *product, const char *part)
{
    char folded[2][SNAPSHOT_NAME_MAX];
    const char *texts[2] = {product, part};
    for (int i = 0; i < 2; i++) {
        (void)str_copy(folded[i], sizeof(folded[i]), str_of(texts[i]));
        str_lower(folded[i]);
        for (char *c = folded[i]; *c; c++)
            if (*c == '-')
                *c = ' ';
    }
    return strstr(folded[0], folded[1]) != NULL;
}

/* The UUID to look for: a MIG device's chip where the metric is the chip's. */
static const char *wanted_uuid(const struct evaluator *ev)
{
    const struct snapshot_device *d = snapshot_find_device(ev->s, ev->t->gpu_uuid);
    bool is_of_chip = d && d->kind == SNAPSHOT_MIG && trigger_metric_is_of_board(ev->t->metric);
    return is_of_chip ? d->parent_uuid : ev->t->gpu_uuid;
}

static bool is_wanted(const struct trigger *t, const char *uuid, const struct snapshot_device *d)
{
    if (!is_eligible(t, d) || (t->gpu_index >= 0 && d->index != t->gpu_index))
        return false;
    if (uuid[0] && !str_equals_nocase(str_of(d->uuid), uuid) && !str_equals_nocase(str_of(d->parent_uuid), uuid))
        return false;
    return !t->gpu_product[0] || has_product(d->product, t->gpu_product);
}

/* All compute instances of a GPU instance report that instance's memory and activity: it counts once. Devices of a
 * snapshot are sorted, so the one before decides. */
static bool is_same_instance(const struct snapshot_device *a, const struct snapshot_device *b)
{
    return a->kind == SNAPSHOT_MIG && b->kind == SNAPSHOT_MIG && a->index == b->index && a->gpu_instance >= 0 &&
           a->gpu_instance == b->gpu_instance;
}

/* The devices that count, in order; fills ev->devices unless it is NULL. Returns how many. */
static size_t select_devices(const struct evaluator *ev)
{
    const char *uuid = wanted_uuid(ev);
    const struct snapshot_device *last = NULL;
    size_t n = 0;
    for (size_t i = 0; i < ev->s->n_devices; i++) {
        const struct snapshot_device *d = &ev->s->devices[i];
        if (!is_wanted(ev->t, uuid, d) || (last && is_same_instance(last, d)))
            continue;
        last = d;
        if (ev->devices)
            ev->devices[n] = d;
        n++;
    }
    return n;
}

static const struct snapshot_device *device_of(const struct evaluator *ev, size_t i)
{
    assert(ev->devices && i < ev->ret->n_inputs);
    return ev->devices[i];
}

/* ---- what each device reads ---- */

/* What a reading of the metric's field is multiplied with, then divided by. Returns false where the total that a
 * percentage refers to was never read. */
static bool find_scale(const struct evaluator *ev, const struct snapshot_device *d, double *ret_factor,
                       double *ret_divisor)
{
    const struct trigger_metric_facts *facts = trigger_metric_facts(ev->t->metric);
    *ret_factor = 1;
    *ret_divisor = facts->divisor;
    if (facts->source != TRIGGER_SOURCE_MEMORY_PERCENT)
        return true;
    const struct snapshot_reading *total = &d->readings[SNAPSHOT_MEMORY_TOTAL];
    *ret_factor = 100;
    *ret_divisor = total->value;
    return total->taken_ns != 0 && total->value > 0; /* a size does not age */
}

static enum snapshot_field field_of(enum trigger_metric metric)
{
    int source = trigger_metric_facts(metric)->source;
    return source == TRIGGER_SOURCE_MEMORY_PERCENT ? SNAPSHOT_MEMORY_USED : (enum snapshot_field)source;
}

static void read_state(const struct evaluator *ev, const struct snapshot_device *d, struct trigger_input *in)
{
    const struct trigger *t = ev->t;
    enum snapshot_field field = field_of(t->metric);
    const struct snapshot_reading *r = &d->readings[field];
    double factor, divisor, mean = 0, peak = 0;
    bool has_scale = find_scale(ev, d, &factor, &divisor);
    bool is_total_unsupported = trigger_metric_facts(t->metric)->source == TRIGGER_SOURCE_MEMORY_PERCENT &&
                                d->readings[SNAPSHOT_MEMORY_TOTAL].status == SNAPSHOT_UNSUPPORTED;
    /* a reading may be newer than the turn of the loop that asks */
    in->age_ns = !r->taken_ns ? -1 : ev->now_ns > r->taken_ns ? ev->now_ns - r->taken_ns : 0;
    if (r->status == SNAPSHOT_UNSUPPORTED || is_total_unsupported) {
        in->state = TRIGGER_INPUT_UNSUPPORTED;
        return;
    }
    in->has_value = has_scale && r->taken_ns != 0;
    if (in->has_value && snapshot_mean(ev->s, d, field, ev->now_ns, t->window_ns, &mean) &&
        snapshot_peak(ev->s, d, field, ev->now_ns, t->activation_window_ns, &peak)) {
        in->state = TRIGGER_INPUT_MEASURED;
        in->value = mean * factor / divisor;
        in->peak = peak * factor / divisor;
        return;
    }
    in->value = in->has_value ? r->value * factor / divisor : 0;
    int64_t since_ns = r->taken_ns ? r->taken_ns : d->first_seen_ns;
    in->state = ev->now_ns - since_ns > MISSING_MAX_NS ? TRIGGER_INPUT_EXPIRED : TRIGGER_INPUT_MISSING;
}

static void read_device(struct evaluator *ev, size_t i)
{
    const struct snapshot_device *d = device_of(ev, i);
    struct trigger_input *in = &ev->ret->inputs[i];
    *in = (struct trigger_input){.index = d->index};
    (void)str_copy(in->uuid, sizeof(in->uuid), str_of(d->uuid));
    const char *label = d->kind == SNAPSHOT_MIG && d->mig_profile[0] ? d->mig_profile : d->product;
    static const char vendor[] = "NVIDIA ";
    if (str_has_prefix(str_of(label), vendor))
        label += sizeof(vendor) - 1;
    (void)str_copy(in->label, sizeof(in->label), str_of(label));
    read_state(ev, d, in);
    ev->n_in_state[in->state]++;
}

/* ---- sentences ---- */

static void say_device(struct buf *out, const struct snapshot_device *d)
{
    (void)buf_printf(out, "GPU %d", d->index);
    if (d->kind == SNAPSHOT_MIG)
        (void)buf_printf(out, " MIG %s", d->mig_profile[0] ? d->mig_profile : d->uuid);
}

static void say_value(struct buf *out, const struct evaluator *ev, double value)
{
    char number[NUM_TEXT_MAX];
    trigger_show_number(number, value);
    (void)buf_printf(out, "%s %s", number, trigger_metric_unit(ev->t->metric));
}

static const char *plural_of(const struct evaluator *ev, size_t n)
{
    for (size_t i = 0; i < ev->ret->n_inputs; i++)
        if (device_of(ev, i)->kind == SNAPSHOT_MIG)
            return n == 1 ? "device" : "devices";
    return n == 1 ? "GPU" : "GPUs";
}

/* Why a device has no reading, as far as the snapshot knows. */
static void say_absence(struct buf *out, const struct evaluator *ev, size_t i)
{
    const struct trigger_input *in = &ev->ret->inputs[i];
    const struct snapshot_device *d = device_of(ev, i);
    char age[TRIGGER_AGE_MAX];
    if (in->state == TRIGGER_INPUT_UNSUPPORTED)
        return;
    trigger_show_age(age, in->age_ns);
    (void)buf_printf(out, " (%s%s", in->age_ns < 0 ? "" : "last read ", in->age_ns < 0 ? "never read" : age);
    if (d->is_lost)
        (void)buf_printf(out, "; lost%s%s", d->lost_reason[0] ? ": " : "", d->lost_reason);
    (void)buf_append_char(out, ')');
}

/* The first few devices in a state, and how many more there are. */
static void say_devices_in(struct buf *out, const struct evaluator *ev, enum trigger_input_state state)
{
    size_t n = 0;
    for (size_t i = 0; i < ev->ret->n_inputs; i++) {
        if (ev->ret->inputs[i].state != state)
            continue;
        if (n++ >= NAMED_MAX)
            continue;
        (void)buf_append_str(out, n > 1 ? ", " : "");
        say_device(out, device_of(ev, i));
        say_absence(out, ev, i);
    }
    if (n > NAMED_MAX)
        (void)buf_printf(out, " and %zu more", n - NAMED_MAX);
}

static const char *why_unsupported(const struct evaluator *ev)
{
    enum trigger_metric m = ev->t->metric;
    for (size_t i = 0; i < ev->ret->n_inputs; i++)
        if (device_of(ev, i)->kind == SNAPSHOT_MIG && ev->ret->inputs[i].state == TRIGGER_INPUT_UNSUPPORTED &&
            (m == TRIGGER_GPU_UTILIZATION || m == TRIGGER_MEMORY_UTILIZATION))
            return "; NVML has no utilisation of MIG devices: sm_activity (Hopper and later) or memory_used_percent "
                   "has";
    if (m == TRIGGER_SM_ACTIVITY || m == TRIGGER_SM_OCCUPANCY || m == TRIGGER_TENSOR_ACTIVITY ||
        m == TRIGGER_DRAM_ACTIVITY)
        return "; activity needs a Hopper or newer GPU";
    return "";
}

static void say_driver(struct buf *out, const struct snapshot *s)
{
    if (s->driver != SNAPSHOT_DRIVER_OK)
        (void)buf_printf(out, "; driver %s%s%s", snapshot_driver_state_name(s->driver), s->driver_text[0] ? ": " : "",
                         s->driver_text);
}

/* ---- the value ---- */

static int refuse_elsewhere(const struct trigger *t, struct err *e)
{
    if (t->is_for_hub || t->scope == TRIGGER_WORKLOAD)
        return err_set(
            e, ERR_FAILED_PRECONDITION,
            "scope %s is measured by the hub, this program sees one node: point scalerAddress at the hub, or "
            "set scope: node",
            trigger_scope_name(t->scope));
    if (trigger_metric_is_engine(t->metric))
        return err_set(e, ERR_FAILED_PRECONDITION,
                       "metric type %s is read from an engine's page, which this version does not fetch",
                       trigger_metric_name(t->metric));
    return 0;
}

static int refuse_no_devices(const struct snapshot *s, struct err *e)
{
    if (!s)
        return err_set(e, ERR_UNAVAILABLE, "no GPU has been read yet");
    return err_set(e, ERR_UNAVAILABLE, "no GPU to read: driver %s%s%s", snapshot_driver_state_name(s->driver),
                   s->driver_text[0] ? ": " : "", s->driver_text);
}

static int refuse_no_match(const struct evaluator *ev, struct err *e)
{
    const struct trigger *t = ev->t;
    BUF_AUTO struct buf text;
    buf_init(&text, SENTENCE_BYTES);
    if (t->gpu_index >= 0)
        (void)buf_printf(&text, " gpuIndex %d", t->gpu_index);
    if (t->gpu_uuid[0])
        (void)buf_printf(&text, " gpuUUID %s", t->gpu_uuid);
    if (t->gpu_product[0])
        (void)buf_printf(&text, " gpuProduct %s", t->gpu_product);
    if (text.len == 0)
        (void)buf_printf(&text, " metric type %s", trigger_metric_name(t->metric));
    (void)buf_append_str(&text, "; there are: ");
    for (size_t i = 0; i < ev->s->n_devices && i < LISTED_MAX; i++) {
        const struct snapshot_device *d = &ev->s->devices[i];
        (void)buf_append_str(&text, i ? ", " : "");
        say_device(&text, d);
        (void)buf_printf(&text, " (%s%s%s)", d->kind == SNAPSHOT_MIG ? "" : d->product,
                         d->kind == SNAPSHOT_MIG          ? ""
                         : d->kind == SNAPSHOT_MIG_PARENT ? ", MIG on, "
                                                          : ", ",
                         d->uuid);
    }
    if (ev->s->n_devices > LISTED_MAX)
        (void)buf_printf(&text, " and %zu more", ev->s->n_devices - LISTED_MAX);
    return err_set(e, ERR_FAILED_PRECONDITION, "no GPU matches%s", buf_cstr(&text));
}

/* Warnings about devices that are left out, or an error where too many are. */
static int judge_absent(struct evaluator *ev, struct err *e)
{
    const size_t *n = ev->n_in_state;
    const char *metric = trigger_metric_name(ev->t->metric);
    BUF_AUTO struct buf unsupported, absent;
    buf_init(&unsupported, SENTENCE_BYTES);
    buf_init(&absent, SENTENCE_BYTES);
    say_devices_in(&unsupported, ev, TRIGGER_INPUT_UNSUPPORTED);
    say_devices_in(&absent, ev, TRIGGER_INPUT_MISSING);
    if (n[TRIGGER_INPUT_MISSING] && n[TRIGGER_INPUT_EXPIRED])
        (void)buf_append_str(&absent, ", ");
    say_devices_in(&absent, ev, TRIGGER_INPUT_EXPIRED);
    say_driver(&absent, ev->s);

    if (n[TRIGGER_INPUT_UNSUPPORTED] == ev->ret->n_inputs)
        return err_set(e, ERR_FAILED_PRECONDITION, "no GPU here has %s: %s%s", metric, buf_cstr(&unsupported),
                       why_unsupported(ev));
    if (n[TRIGGER_INPUT_UNSUPPORTED])
        WARN(ev, "left out, without %s: %s%s", metric, buf_cstr(&unsupported), why_unsupported(ev));
    size_t n_absent = n[TRIGGER_INPUT_MISSING] + n[TRIGGER_INPUT_EXPIRED];
    if (n[TRIGGER_INPUT_MEASURED] == 0)
        return err_set(e, ERR_UNAVAILABLE, "no GPU could be read: %s", buf_cstr(&absent));
    if (n_absent && ev->t->on_missing == TRIGGER_MISSING_ERROR)
        return err_set(e, ERR_UNAVAILABLE, "onMissing is error, and missing is: %s", buf_cstr(&absent));
    if (n_absent)
        WARN(ev, "missing: %s", buf_cstr(&absent));
    return 0;
}

static int compare_counted(const void *left, const void *right)
{
    double a = (*(struct trigger_input *const *)left)->counted, b = (*(struct trigger_input *const *)right)->counted;
    return (a < b) - (a > b);
}

/* Missing devices as max(T, their last good value), the largest first, as far as that raises the result. `values` has
 * room behind the n measured ones. Returns the result; is_counted tells which were taken. */
static double add_missing(struct evaluator *ev, struct trigger_input **missing, double *values, size_t n)
{
    double best = scaling_aggregate(ev->t->aggregation, values, n);
    size_t n_missing = 0, n_taken = 0;
    for (size_t i = 0; i < ev->ret->n_inputs; i++) {
        struct trigger_input *in = &ev->ret->inputs[i];
        if (in->state != TRIGGER_INPUT_MISSING)
            continue;
        in->counted = fmax(ev->t->target, in->value);
        missing[n_missing++] = in;
    }
    if (n_missing == 0)
        return best;
    qsort(missing, n_missing, sizeof(struct trigger_input *), compare_counted);
    for (size_t i = 0; i < n_missing; i++) {
        values[n + i] = missing[i]->counted;
        double with = scaling_aggregate(ev->t->aggregation, values, n + i + 1);
        if (with > best) {
            best = with;
            n_taken = i + 1;
        }
    }
    for (size_t i = 0; i < n_missing; i++) {
        missing[i]->is_counted = i < n_taken;
        missing[i]->counted = i < n_taken ? missing[i]->counted : 0;
    }
    return best;
}

static void say_rule(struct evaluator *ev)
{
    const struct trigger *t = ev->t;
    size_t n = 0, n_missing = 0;
    const struct snapshot_device *decisive = NULL;
    for (size_t i = 0; i < ev->ret->n_inputs; i++) {
        const struct trigger_input *in = &ev->ret->inputs[i];
        if (!in->is_counted)
            continue;
        n++;
        n_missing += in->state == TRIGGER_INPUT_MISSING;
        bool is_value = !(in->counted < ev->ret->value) && !(in->counted > ev->ret->value);
        if (is_value && !decisive && t->aggregation != SCALING_SUM && t->aggregation != SCALING_AVG)
            decisive = device_of(ev, i);
    }
    BUF_AUTO struct buf text;
    buf_init(&text, SENTENCE_BYTES);
    char window[TIME_DURATION_MAX];
    time_format_duration(window, t->window_ns);
    (void)buf_printf(&text, "%s of %zu %s%s%s: ", scaling_aggregation_name(t->aggregation), n, plural_of(ev, n),
                     t->window_ns ? " over " : ", newest reading", t->window_ns ? window : "");
    say_value(&text, ev, ev->ret->value);
    if (decisive) {
        (void)buf_append_str(&text, " (");
        say_device(&text, decisive);
        (void)buf_printf(&text, ", %s)", decisive->uuid);
    }
    if (n_missing) {
        (void)buf_printf(&text, "; %zu missing counted as at least ", n_missing);
        say_value(&text, ev, t->target);
    }
    trigger_fit(ev->ret->rule, str_of(buf_cstr(&text)));
}

/* A nearest-rank percentile of few values is their maximum. reference B.1 #22 */
static void warn_of_percentile(struct evaluator *ev, size_t n)
{
    size_t needed = ev->t->aggregation == SCALING_P95 ? 20 : ev->t->aggregation == SCALING_P99 ? 100 : 0;
    if (n < needed)
        WARN(ev, "%s of %zu %s is their maximum: it takes %zu to leave one out",
             scaling_aggregation_name(ev->t->aggregation), n, plural_of(ev, n), needed);
}

static int decide_value(struct evaluator *ev, struct err *e)
{
    struct trigger_evaluation *ret = ev->ret;
    if (judge_absent(ev, e) < 0)
        return -1;
    double *values = (double *)arena_alloc(ev->arena, ret->n_inputs * sizeof(*values));
    struct trigger_input **missing =
        (struct trigger_input **)arena_alloc(ev->arena, ret->n_inputs * sizeof(struct trigger_input *));
    if (!values || !missing)
        return err_set(e, ERR_RESOURCE_EXHAUSTED, "more GPUs than a call may look at");
    size_t n = 0;
    for (size_t i = 0; i < ret->n_inputs; i++) {
        struct trigger_input *in = &ret->inputs[i];
        if (in->state != TRIGGER_INPUT_MEASURED)
            continue;
        in->is_counted = true;
        in->counted = values[n++] = in->value;
    }
    double value = ev->t->on_missing == TRIGGER_MISSING_CONSERVATIVE ? add_missing(ev, missing, values, n)
                                                                     : scaling_aggregate(ev->t->aggregation, values, n);
    if (!isfinite(value) || value < 0 || value > VALUE_MAX)
        return err_set(e, ERR_INTERNAL, "%s of %s is %g, no value that KEDA can take",
                       scaling_aggregation_name(ev->t->aggregation), trigger_metric_name(ev->t->metric), value);
    ret->value = value;
    say_rule(ev);
    warn_of_percentile(ev, n);
    return 0;
}

/* ---- activity ---- */

static void say_activity(struct evaluator *ev, const struct snapshot_device *busiest, bool is_missing)
{
    struct trigger_evaluation *ret = ev->ret;
    BUF_AUTO struct buf text;
    buf_init(&text, SENTENCE_BYTES);
    char window[TIME_DURATION_MAX];
    time_format_duration(window, ev->t->activation_window_ns);
    if (busiest) {
        (void)buf_append_str(&text, "busiest ");
        say_device(&text, busiest);
        (void)buf_append_str(&text, ": ");
        say_value(&text, ev, ret->activity);
        (void)buf_printf(&text, "%s%s, %s ", ev->t->activation_window_ns ? " within " : "",
                         ev->t->activation_window_ns ? window : "",
                         ret->activity > ev->t->activation ? "above" : "not above");
        say_value(&text, ev, ev->t->activation);
    }
    if (is_missing) {
        (void)buf_append_str(&text, busiest ? "; missing, and unknown is not idle: " : "unknown is not idle: ");
        say_devices_in(&text, ev, TRIGGER_INPUT_MISSING);
    }
    trigger_fit(ret->active_rule, str_of(buf_cstr(&text)));
}

static void decide_activity(struct evaluator *ev)
{
    struct trigger_evaluation *ret = ev->ret;
    const struct snapshot_device *busiest = NULL;
    for (size_t i = 0; i < ret->n_inputs; i++) {
        const struct trigger_input *in = &ret->inputs[i];
        if (in->state != TRIGGER_INPUT_MEASURED || in->peak <= ret->activity)
            continue;
        ret->activity = in->peak;
        busiest = device_of(ev, i);
    }
    bool is_missing = ev->n_in_state[TRIGGER_INPUT_MISSING] > 0 && ev->t->on_missing != TRIGGER_MISSING_IGNORE;
    if (!busiest && !is_missing) {
        refuse_both(ret); /* nothing here can tell: the same error as the value's */
        return;
    }
    bool is_above = busiest && ret->activity > ev->t->activation;
    ret->is_active = is_above || is_missing;
    say_activity(ev, busiest, is_missing && !is_above);
}

/* ---- all of it ---- */

/* Chooses and reads the devices. Returns 0, or -1 and the error of both answers. */
static int read_devices(struct evaluator *ev, struct err *e)
{
    struct trigger_evaluation *ret = ev->ret;
    if (refuse_elsewhere(ev->t, e) < 0)
        return -1;
    if (!ev->s || ev->s->n_devices == 0)
        return refuse_no_devices(ev->s, e);
    size_t n = select_devices(ev);
    if (n == 0)
        return refuse_no_match(ev, e);
    ev->devices = (const struct snapshot_device **)arena_alloc(ev->arena, n * sizeof(*ev->devices));
    ret->inputs = (struct trigger_input *)arena_alloc(ev->arena, n * sizeof(*ret->inputs));
    if (!ev->devices || !ret->inputs)
        return err_set(e, ERR_RESOURCE_EXHAUSTED, "more GPUs than a call may look at");
    (void)select_devices(ev);
    ret->n_inputs = n;
    for (size_t i = 0; i < n; i++)
        read_device(ev, i);
    return 0;
}

void trigger_evaluate(const struct trigger *t, const struct snapshot *s, int64_t now_ns, struct arena *arena,
                      struct trigger_evaluation *ret)
{
    struct evaluator ev = {.t = t, .s = s, .now_ns = now_ns, .arena = arena, .ret = ret};
    *ret = (struct trigger_evaluation){.trigger = t, .activity = -1};
    for (size_t i = 0; i < t->n_warnings && i < TRIGGER_WARNINGS_MAX - OWN_WARNINGS_MAX; i++)
        WARN(&ev, "%s", t->warnings[i]); /* there is always room for what this evaluation has to say */
    if (read_devices(&ev, &ret->value_error) < 0) {
        refuse_both(ret);
    } else {
        (void)decide_value(&ev, &ret->value_error);
        decide_activity(&ev);
    }
    if (t->is_always_active) {
        ret->active_error = (struct err){.class = ERR_NONE};
        ret->is_active = true;
        trigger_fit(ret->active_rule, str_of("profile training is always active in scope node"));
    }
}
