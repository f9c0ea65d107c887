/* A trigger on a snapshot, in scopes node and cluster: which devices count, what each reads, what missing ones stand
 * for, and from that the value and the activity, as far as they are asked for (scaling-semantics 2.1, 3, 4). What is
 * decided here is put into sentences by say.c. */
#include "trigger/evaluate.h"

#include "trigger/facts.h"
#include "trigger/say.h"

#include <math.h>
#include <string.h>

enum { LISTED_MAX = 8 };

/* One evaluation under way. */
struct evaluator {
    const struct trigger *t;
    const struct trigger_source *source;
    struct arena *arena;
    struct trigger_evaluation *ret;
    bool is_of_board; /* the metric */
};

static struct trigger_device device_at(const struct evaluator *ev, size_t i)
{
    return ev->source->device(ev->source->context, i);
}

/* The same answer to GetMetrics and IsActive. */
static void refuse_both(struct trigger_evaluation *ret)
{
    ret->active_error = ret->value_error;
}

/* ---- which devices ---- */

/* Board values count once per chip, loads and memory once per GPU or MIG device. */
static bool is_eligible(const struct evaluator *ev, const struct trigger_device *d)
{
    return d->kind == SNAPSHOT_GPU || (d->kind == SNAPSHOT_MIG_PARENT) == ev->is_of_board;
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

static bool is_of_uuid(const char *uuid, const struct trigger_device *d)
{
    return !uuid[0] || str_equals_nocase(str_of(d->uuid), uuid) || str_equals_nocase(str_of(d->parent_uuid), uuid);
}

static bool is_of_product(const struct trigger *t, const struct trigger_device *d)
{
    return !t->gpu_product[0] || has_product(d->product, t->gpu_product);
}

bool trigger_matches(const struct trigger *t, const struct trigger_device *d)
{
    return is_of_uuid(t->gpu_uuid, d) && is_of_product(t, d);
}

/* The UUID to look for: a MIG device's chip where the metric is the chip's; "" for any. */
static const char *wanted_uuid(const struct evaluator *ev)
{
    const char *uuid = ev->t->gpu_uuid;
    for (size_t i = 0; uuid[0] && ev->is_of_board && i < ev->source->n; i++) {
        struct trigger_device d = device_at(ev, i);
        if (d.kind == SNAPSHOT_MIG && str_equals_nocase(str_of(d.uuid), uuid))
            return d.parent_uuid;
    }
    return uuid;
}

static bool is_wanted(const struct evaluator *ev, const char *uuid, const struct trigger_device *d)
{
    if (!is_eligible(ev, d) || (ev->t->gpu_index >= 0 && d->index != ev->t->gpu_index))
        return false;
    return is_of_uuid(uuid, d) && is_of_product(ev->t, d);
}

/* All compute instances of a GPU instance report that instance's memory and activity: it counts once. They stand side
 * by side, so the one before decides. */
static bool is_same_instance(const struct trigger_device *a, const struct trigger_device *b)
{
    return a->kind == SNAPSHOT_MIG && b->kind == SNAPSHOT_MIG && a->index == b->index && a->gpu_instance >= 0 &&
           a->gpu_instance == b->gpu_instance && strcmp(a->node, b->node) == 0;
}

static bool shares_instance(const struct evaluator *ev, size_t i, const struct trigger_device *d)
{
    if (d->kind != SNAPSHOT_MIG)
        return false;
    struct trigger_device before = i > 0 ? device_at(ev, i - 1) : (struct trigger_device){.kind = SNAPSHOT_GPU};
    struct trigger_device after =
        i + 1 < ev->source->n ? device_at(ev, i + 1) : (struct trigger_device){.kind = SNAPSHOT_GPU};
    return is_same_instance(&before, d) || is_same_instance(d, &after);
}

static void read_device(const struct evaluator *ev, size_t i, const struct trigger_device *d, struct trigger_input *in)
{
    *in =
        (struct trigger_input){.device = *d, .reason = "", .age_ns = -1, .shares_instance = shares_instance(ev, i, d)};
    ev->source->read(ev->source->context, i, in);
    ev->ret->n_in_state[in->state]++;
}

/* The devices that count, in order; reads them into ret->inputs unless that is NULL. Returns how many. */
static size_t select_devices(const struct evaluator *ev)
{
    const char *uuid = wanted_uuid(ev);
    struct trigger_device last = {.kind = SNAPSHOT_GPU};
    size_t n = 0;
    for (size_t i = 0; i < ev->source->n; i++) {
        struct trigger_device d = device_at(ev, i);
        if (!is_wanted(ev, uuid, &d) || is_same_instance(&last, &d))
            continue;
        last = d;
        if (ev->ret->inputs)
            read_device(ev, i, &d, &ev->ret->inputs[n]);
        n++;
    }
    return n;
}

/* ---- refusals ---- */

int trigger_refuse_elsewhere(const struct trigger *t, struct err *e)
{
    if (t->is_for_hub || t->scope == TRIGGER_WORKLOAD)
        return err_set(
            e, ERR_FAILED_PRECONDITION,
            "scope %s is measured by the hub, this program sees one node: point scalerAddress at the hub, or "
            "set scope: node",
            trigger_scope_name(t->scope));
    return 0;
}

static int refuse_no_match(const struct evaluator *ev, struct err *e)
{
    const struct trigger *t = ev->t;
    BUF_AUTO struct buf text;
    buf_init(&text, TRIGGER_SENTENCE_BYTES);
    if (t->gpu_index >= 0)
        (void)buf_printf(&text, " gpuIndex %d", t->gpu_index);
    if (t->gpu_uuid[0])
        (void)buf_printf(&text, " gpuUUID %s", t->gpu_uuid);
    if (t->gpu_product[0])
        (void)buf_printf(&text, " gpuProduct %s", t->gpu_product);
    if (text.len == 0)
        (void)buf_printf(&text, " metric type %s", trigger_metric_name(t->metric));
    (void)buf_append_str(&text, "; there are: ");
    for (size_t i = 0; i < ev->source->n && i < LISTED_MAX; i++) {
        struct trigger_device d = device_at(ev, i);
        (void)buf_append_str(&text, i ? ", " : "");
        trigger_say_device(&text, &d);
        (void)buf_printf(&text, " (%s%s%s)", d.kind == SNAPSHOT_MIG ? "" : d.product,
                         d.kind == SNAPSHOT_MIG          ? ""
                         : d.kind == SNAPSHOT_MIG_PARENT ? ", MIG on, "
                                                         : ", ",
                         d.uuid);
    }
    if (ev->source->n > LISTED_MAX)
        (void)buf_printf(&text, " and %zu more", ev->source->n - LISTED_MAX);
    return err_set(e, ERR_FAILED_PRECONDITION, "no GPU matches%s", buf_cstr(&text));
}

static int refuse_too_many(struct err *e)
{
    return err_set(e, ERR_RESOURCE_EXHAUSTED, "more GPUs than a call may look at");
}

/* ---- the value ---- */

/* An error where too many devices are without a reading. */
static int judge_absent(const struct evaluator *ev, struct err *e)
{
    const size_t *n = ev->ret->n_in_state;
    size_t n_absent = n[TRIGGER_INPUT_MISSING] + n[TRIGGER_INPUT_EXPIRED];
    bool is_error = n[TRIGGER_INPUT_MEASURED] == 0 || (n_absent && ev->t->on_missing == TRIGGER_MISSING_ERROR);
    return is_error ? trigger_refuse_absent(ev->ret, e) : 0;
}

static int compare_counted(const void *left, const void *right)
{
    double a = (*(struct trigger_input *const *)left)->counted, b = (*(struct trigger_input *const *)right)->counted;
    return (a < b) - (a > b);
}

/* Missing devices as max(T, their last good value), the largest first, as far as that raises the result. `values` has
 * room behind the n measured ones, `missing` for all devices. Returns the result; is_counted tells which were taken. */
static double add_missing(const struct evaluator *ev, struct trigger_input **missing, double *values, size_t n)
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

static int decide_value(const struct evaluator *ev, struct err *e)
{
    struct trigger_evaluation *ret = ev->ret;
    if (judge_absent(ev, e) < 0)
        return -1;
    double *values = (double *)arena_alloc(ev->arena, ret->n_inputs * sizeof(*values));
    struct trigger_input **missing =
        (struct trigger_input **)arena_alloc(ev->arena, ret->n_inputs * sizeof(struct trigger_input *));
    if (!values || !missing)
        return refuse_too_many(e);
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
    if (!isfinite(value) || value < 0 || value > TRIGGER_VALUE_MAX)
        return err_set(e, ERR_INTERNAL, "%s of %s is %g, no value that KEDA can take",
                       scaling_aggregation_name(ev->t->aggregation), trigger_metric_name(ev->t->metric), value);
    ret->value = value;
    return 0;
}

/* ---- activity ---- */

static int decide_activity(const struct evaluator *ev, struct err *e)
{
    struct trigger_evaluation *ret = ev->ret;
    for (size_t i = 0; i < ret->n_inputs; i++) {
        const struct trigger_input *in = &ret->inputs[i];
        if (in->state == TRIGGER_INPUT_MEASURED && in->peak > ret->activity)
            ret->activity = in->peak;
    }
    bool is_unknown = trigger_has_unknown(ret);
    if (ret->n_in_state[TRIGGER_INPUT_MEASURED] == 0 && !is_unknown)
        return trigger_refuse_absent(ret, e); /* nothing here can tell: the same error as the value's */
    ret->is_above = ret->activity > ev->t->activation;
    ret->is_active = ret->is_above || is_unknown;
    return 0;
}

/* ---- all of it ---- */

/* Chooses and reads the devices. Returns 0, or -1 and the error of both answers. */
static int read_devices(const struct evaluator *ev, struct err *e)
{
    struct trigger_evaluation *ret = ev->ret;
    if (trigger_refuse_elsewhere(ev->t, e) < 0)
        return -1;
    if (trigger_metric_is_engine(ev->t->metric))
        return err_set(e, ERR_FAILED_PRECONDITION,
                       "metric type %s is read from an engine's page, which this program does not fetch",
                       trigger_metric_name(ev->t->metric));
    if (ev->source->n == 0)
        return err_set(e, ERR_UNAVAILABLE, "%s", ev->source->none);
    size_t n = select_devices(ev);
    if (n == 0)
        return refuse_no_match(ev, e);
    ret->inputs = (struct trigger_input *)arena_alloc(ev->arena, n * sizeof(*ret->inputs));
    if (!ret->inputs)
        return refuse_too_many(e);
    ret->n_inputs = select_devices(ev);
    return 0;
}

void trigger_evaluation_begin(const struct trigger *t, int64_t now_ns, enum trigger_question asked,
                              struct trigger_evaluation *ret)
{
    memset(ret, 0, offsetof(struct trigger_evaluation, value_error));
    ret->trigger = t;
    ret->now_ns = now_ns;
    ret->asked = asked;
    ret->activity = -1;
    ret->value_error.class = ret->active_error.class = ERR_NONE;
    ret->value_error.text[0] = ret->active_error.text[0] = '\0';
}

static void evaluate(const struct trigger *t, const struct trigger_source *source, struct arena *arena,
                     struct trigger_evaluation *ret)
{
    const struct evaluator *ev = &(const struct evaluator){
        .t = t, .source = source, .arena = arena, .ret = ret, .is_of_board = trigger_metric_is_of_board(t->metric)};
    if (read_devices(ev, &ret->value_error) < 0) {
        refuse_both(ret);
    } else {
        if (ret->asked & TRIGGER_ASK_VALUE)
            (void)decide_value(ev, &ret->value_error);
        if (ret->asked & TRIGGER_ASK_ACTIVITY)
            (void)decide_activity(ev, &ret->active_error);
    }
    if (ev->t->is_always_active) {
        ret->active_error.class = ERR_NONE;
        ret->active_error.text[0] = '\0';
        ret->is_active = ret->is_above = true;
    }
}

void trigger_evaluate_devices(const struct trigger *t, const struct trigger_source *source, int64_t now_ns,
                              enum trigger_question asked, struct arena *arena, struct trigger_evaluation *ret)
{
    trigger_evaluation_begin(t, now_ns, asked, ret);
    evaluate(t, source, arena, ret);
}

/* ---- the devices of a snapshot ---- */

/* What a trigger reads of a snapshot. */
struct snapshot_source {
    const struct trigger *t;
    const struct snapshot *s;
    int64_t now_ns;
    enum trigger_question asked;
    bool is_memory_percent;
    enum snapshot_field field; /* what the metric is read from */
    double divisor;
};

static struct trigger_device snapshot_device_at(void *context, size_t i)
{
    const struct snapshot_source *from = context;
    const struct snapshot_device *d = &from->s->devices[i];
    return (struct trigger_device){.node = "",
                                   .uuid = d->uuid,
                                   .parent_uuid = d->parent_uuid,
                                   .product = d->product,
                                   .mig_profile = d->mig_profile,
                                   .lost_reason = d->lost_reason,
                                   .kind = d->kind,
                                   .index = d->index,
                                   .gpu_instance = d->gpu_instance,
                                   .is_lost = d->is_lost};
}

/* What a reading of the metric's field is multiplied with, then divided by. */
struct scale {
    double factor, divisor;
};

/* Returns false where the total that a percentage refers to was never read. */
static bool find_scale(const struct snapshot_source *from, const struct snapshot_device *d, struct scale *ret)
{
    *ret = (struct scale){1, from->divisor};
    if (!from->is_memory_percent)
        return true;
    const struct snapshot_reading *total = &d->readings[SNAPSHOT_MEMORY_TOTAL];
    *ret = (struct scale){100, total->value};
    return total->taken_ns != 0 && total->value > 0; /* a size does not age */
}

static bool is_unsupported(const struct snapshot_source *from, const struct snapshot_device *d)
{
    return d->readings[from->field].status == SNAPSHOT_UNSUPPORTED ||
           (from->is_memory_percent && d->readings[SNAPSHOT_MEMORY_TOTAL].status == SNAPSHOT_UNSUPPORTED);
}

/* What is asked for of a device, where its reading is fresh. */
static bool measure(const struct snapshot_source *from, const struct snapshot_device *d, const struct scale *scale,
                    struct trigger_input *in)
{
    const struct trigger *t = from->t;
    double mean = 0, peak = 0;
    if ((from->asked & TRIGGER_ASK_VALUE) && !snapshot_mean(from->s, d, from->field, from->now_ns, t->window_ns, &mean))
        return false;
    if ((from->asked & TRIGGER_ASK_ACTIVITY) &&
        !snapshot_peak(from->s, d, from->field, from->now_ns, t->activation_window_ns, &peak))
        return false;
    in->value = mean * scale->factor / scale->divisor;
    in->peak = peak * scale->factor / scale->divisor;
    return true;
}

static void read_snapshot_device(void *context, size_t i, struct trigger_input *in)
{
    const struct snapshot_source *from = context;
    const struct snapshot_device *d = &from->s->devices[i];
    const struct snapshot_reading *r = &d->readings[from->field];
    struct scale scale;
    bool has_scale = find_scale(from, d, &scale);
    /* a reading may be newer than the turn of the loop that asks */
    in->age_ns = !r->taken_ns ? -1 : from->now_ns > r->taken_ns ? from->now_ns - r->taken_ns : 0;
    in->code = (int16_t)(r->status == SNAPSHOT_FAILED ? r->code : 0);
    if (is_unsupported(from, d)) {
        in->state = TRIGGER_INPUT_UNSUPPORTED;
        return;
    }
    in->has_value = has_scale && r->taken_ns != 0;
    if (in->has_value && measure(from, d, &scale, in)) {
        in->state = TRIGGER_INPUT_MEASURED;
        return;
    }
    in->value = in->has_value ? r->value * scale.factor / scale.divisor : 0;
    int64_t since_ns = r->taken_ns ? r->taken_ns : d->first_seen_ns;
    in->state = from->now_ns - since_ns > TRIGGER_MISSING_MAX_NS ? TRIGGER_INPUT_EXPIRED : TRIGGER_INPUT_MISSING;
}

/* Why there is no device, as far as the snapshot knows. */
static void say_no_devices(const struct snapshot *s, int64_t now_ns, struct buf *out)
{
    if (!s) {
        (void)buf_append_str(out, "no GPU has been read yet");
        return;
    }
    (void)buf_printf(out, "no GPU to read: driver %s%s%s", snapshot_driver_state_name(s->driver),
                     s->driver_text[0] ? ": " : "", s->driver_text);
    trigger_say_stuck(out, s, now_ns);
}

void trigger_evaluate(const struct trigger *t, const struct snapshot *s, int64_t now_ns, enum trigger_question asked,
                      struct arena *arena, struct trigger_evaluation *ret)
{
    const struct trigger_metric_facts *facts = trigger_metric_facts(t->metric);
    bool is_field = facts->source >= 0; /* else used of total memory, or an engine's, which is refused */
    struct snapshot_source from = {.t = t,
                                   .s = s,
                                   .now_ns = now_ns,
                                   .asked = asked,
                                   .is_memory_percent = facts->source == TRIGGER_SOURCE_MEMORY_PERCENT,
                                   .field = is_field ? (enum snapshot_field)facts->source : SNAPSHOT_MEMORY_USED,
                                   .divisor = facts->divisor};
    BUF_AUTO struct buf none;
    buf_init(&none, TRIGGER_SENTENCE_BYTES);
    struct trigger_source source = {.n = s ? s->n_devices : 0,
                                    .device = snapshot_device_at,
                                    .read = read_snapshot_device,
                                    .none = "",
                                    .context = &from};
    if (source.n == 0) {
        say_no_devices(s, now_ns, &none);
        source.none = buf_cstr(&none);
    }
    trigger_evaluation_begin(t, now_ns, asked, ret);
    ret->snapshot = s; /* what sentences know of the driver */
    evaluate(t, &source, arena, ret);
}
