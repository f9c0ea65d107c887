/* What a ScaledObject can never do, or will do wrong, as far as its trigger, its HPA and the object itself tell
 * (scaling-semantics 7). One table: each row is a question to the facts and the sentence of its answer. What needs the
 * trigger alone is said by trigger/, what needs readings by the explanation. */
#include "workload/look.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { SENTENCE_BYTES = 800 };
static const double ceiling = 100; /* of what is measured in percent */

/* The facts of one question. */
struct lint {
    const struct workload_facts *facts;
    const struct trigger *t;
    const struct kube_scaled_object *object; /* NULL: not known */
    const struct kube_hpa *hpa;              /* NULL: not known */
    const struct kube_hpa_metric *metric;    /* NULL: not known, or not there */
    struct scaling_hpa arithmetic;
    bool is_ambiguous, is_workload, has_ceiling;
    struct err ambiguity;
    int64_t min, max; /* -1 not known */
};

struct number {
    char text[NUM_TEXT_MAX];
};

static struct number number_of(double value)
{
    struct number n;
    num_format_milli(n.text, value);
    return n;
}

static bool is_percentage(const struct trigger *t)
{
    return strcmp(trigger_metric_unit(t->metric), "%") == 0;
}

/* ---- rows: true where they apply, with the sentence ---- */

/* Above this mean the HPA adds replicas. */
static double grows_above(const struct lint *l)
{
    return l->arithmetic.target * (1 + l->arithmetic.tolerance_up);
}

static bool never_grows(const struct lint *l, struct buf *out)
{
    if (!l->has_ceiling || !l->is_workload || grows_above(l) < ceiling)
        return false;
    (void)buf_printf(
        out, "never grows: %s is at most 100, and with target %s and its tolerance the HPA adds replicas only above %s",
        trigger_metric_name(l->t->metric), number_of(l->arithmetic.target).text, number_of(grows_above(l)).text);
    return true;
}

static bool never_past(const struct lint *l, struct buf *out)
{
    int64_t most = (int64_t)ceil(ceiling / l->arithmetic.target);
    if (l->is_workload || !l->has_ceiling || l->t->aggregation == SCALING_SUM ||
        l->arithmetic.type != SCALING_AVERAGE_VALUE || l->max < 0 || most >= l->max)
        return false;
    (void)buf_printf(out,
                     "never past %" PRId64 " of %" PRId64
                     " replicas: %s of all GPUs is at most 100, and under AverageValue the HPA "
                     "asks for value / %s; scope workload, or metricType Value, reaches further",
                     most, l->max, scaling_aggregation_name(l->t->aggregation), number_of(l->arithmetic.target).text);
    return true;
}

static bool sum_with_value(const struct lint *l, struct buf *out)
{
    if (l->is_workload || l->t->aggregation != SCALING_SUM || l->arithmetic.type != SCALING_VALUE)
        return false;
    (void)buf_printf(
        out, "runs away: under Value the HPA multiplies the present count by value / target, and a sum grows with the "
             "count; use avg or max, or AverageValue");
    return true;
}

static bool other_tenants(const struct lint *l, struct buf *out)
{
    if (l->is_workload)
        return false;
    (void)buf_printf(
        out, "scope cluster counts each GPU of each node: the load of other workloads scales this one; scope workload "
             "counts its own");
    return true;
}

static bool hot_pod(const struct lint *l, struct buf *out)
{
    if (!l->is_workload || l->t->aggregation != SCALING_MAX || l->max < 0)
        return false;
    (void)buf_printf(out,
                     "with max, one pod that stays hot whatever is added grows the workload to its maximum of %" PRId64,
                     l->max);
    return true;
}

static bool never_wakes(const struct lint *l, struct buf *out)
{
    if (!l->object || l->object->min != 0 || l->object->n_triggers != 1 || l->object->n_other_triggers > 0)
        return false;
    (void)buf_printf(
        out, "never wakes: minReplicaCount is 0, and without pods there is no GPU to look at: add a trigger that sees "
             "demand (a queue, requests), or set minReplicaCount to 1");
    return true;
}

static bool memory_never_sleeps(const struct lint *l, struct buf *out)
{
    if (!l->object || l->object->min != 0 || l->is_workload || !workload_is_memory(l->t->metric))
        return false;
    (void)buf_printf(
        out,
        "never sleeps: a server that fills its memory at start stays above activationThreshold %s without any "
        "load; scope workload tells it apart",
        number_of(l->t->activation).text);
    return true;
}

/* What a GPU without any load shows. */
static const struct {
    enum trigger_metric metric;
    double idle;
} idle_levels[] = {{TRIGGER_POWER_DRAW, 20}, {TRIGGER_TEMPERATURE, 30}};

static bool never_sleeps(const struct lint *l, struct buf *out)
{
    if (!l->object || l->object->min != 0)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(idle_levels); i++) {
        if (l->t->metric != idle_levels[i].metric || l->t->activation >= idle_levels[i].idle)
            continue;
        (void)buf_printf(out, "never sleeps: activationThreshold %s %s is below what an idle GPU shows",
                         number_of(l->t->activation).text, trigger_metric_unit(l->t->metric));
        return true;
    }
    return false;
}

static bool never_active(const struct lint *l, struct buf *out)
{
    if (!l->is_workload || !is_percentage(l->t) || l->t->activation < ceiling)
        return false;
    (void)buf_printf(out, "never active: %s cannot be above 100", trigger_metric_name(l->t->metric));
    return true;
}

static bool activation_above_target(const struct lint *l, struct buf *out)
{
    if (!l->is_workload || l->t->activation <= l->t->target || (is_percentage(l->t) && l->t->activation >= ceiling))
        return false;
    (void)buf_printf(
        out,
        "activationThreshold %s is above target %s: at loads between them the workload is taken for idle while the HPA "
        "would add replicas",
        number_of(l->t->activation).text, number_of(l->t->target).text);
    return true;
}

enum { MANY_STEPS = 10 };

static bool slow_growth(const struct lint *l, struct buf *out)
{
    double factor = ceiling / l->arithmetic.target, from = l->min > 1 ? (double)l->min : 1;
    if (!l->is_workload || !l->has_ceiling || l->max < 0 || grows_above(l) >= ceiling || factor <= 1)
        return false;
    double steps = ceil(log((double)l->max / from) / log(factor) - 1e-9);
    if (!(steps > MANY_STEPS))
        return false;
    (void)buf_printf(
        out,
        "grows slowly: %s stops at 100 and cannot show how much is waiting, so each step is at most x %s: %.0f steps "
        "from %.0f to %" PRId64 ", each as long as a pod takes to start; a queue length reaches further",
        trigger_metric_name(l->t->metric), number_of(factor).text, steps, from, l->max);
    return true;
}

static bool short_window(const struct lint *l, struct buf *out)
{
    if (l->is_workload || !l->hpa || l->arithmetic.type != SCALING_VALUE)
        return false;
    struct scaling_behaviour b = workload_behaviour(l->hpa);
    if (l->t->warmup_ns <= b.down.window_s * NS_PER_S)
        return false;
    (void)buf_printf(
        out,
        "under Value the HPA counts Ready pods only: pods that take longer to start than its stabilization window of "
        "%" PRId64 " s are taken away while they load; lengthen behavior.scaleDown.stabilizationWindowSeconds",
        b.down.window_s);
    return true;
}

static bool two_scalers(const struct lint *l, struct buf *out)
{
    if (l->facts->n_scalers < 2)
        return false;
    (void)buf_printf(out, "%zu scalers own %s %s: they undo each other's counts; keep one", l->facts->n_scalers,
                     l->facts->target_kind, l->facts->target_name);
    return true;
}

static bool no_external_metric(const struct lint *l, struct buf *out)
{
    if (!l->hpa || l->metric || l->arithmetic.has_modifiers || l->is_ambiguous)
        return false;
    (void)buf_printf(
        out,
        "HPA %s has no metric of this trigger (s<index>-%s): the scaler did not answer when KEDA made it, or the "
        "trigger is new; touch the ScaledObject so that KEDA makes it again",
        l->hpa->meta.name, l->t->metric_name);
    return true;
}

static bool ambiguous_type(const struct lint *l, struct buf *out)
{
    if (l->is_ambiguous)
        (void)buf_append_str(out, l->ambiguity.text);
    return l->is_ambiguous;
}

static bool type_overruled(const struct lint *l, struct buf *out)
{
    const char *type = l->arithmetic.type == SCALING_VALUE ? "Value" : "AverageValue";
    if (!l->metric || !l->t->hpa_metric_type[0] || strcmp(type, l->t->hpa_metric_type) == 0)
        return false;
    (void)buf_printf(out, "hpaMetricType is %s, and the HPA has %s, which counts", l->t->hpa_metric_type, type);
    return true;
}

static bool target_not_taken(const struct lint *l, struct buf *out)
{
    if (!l->metric || scaling_milli(l->metric->target) == scaling_milli(l->t->target))
        return false;
    (void)buf_printf(out, "the HPA still has target %s where the metadata has %s: KEDA has not taken it over yet",
                     number_of(l->metric->target).text, number_of(l->t->target).text);
    return true;
}

static bool fallback_to_zero(const struct lint *l, struct buf *out)
{
    if (!l->object || !l->object->has_fallback || l->object->fallback_replicas != 0 || l->object->min != 0)
        return false;
    (void)buf_printf(out,
                     "fallback.replicas 0 with minReplicaCount 0 takes the workload to zero whenever the scaler fails");
    return true;
}

static bool static_fallback(const struct lint *l, struct buf *out)
{
    if (!l->object || !l->object->has_fallback || !l->is_workload ||
        strcmp(l->object->fallback_behavior, "static") != 0)
        return false;
    (void)buf_printf(out,
                     "fallback.behavior static sets %" PRId64
                     " replicas where this scaler says UNAVAILABLE to keep the present "
                     "count, as in rollouts of 19 replicas and more; use currentReplicas",
                     l->object->fallback_replicas);
    return true;
}

static bool fallback_with_value(const struct lint *l, struct buf *out)
{
    if (!l->object || !l->object->has_fallback || l->arithmetic.type != SCALING_VALUE)
        return false;
    (void)buf_printf(
        out,
        "under Value KEDA divides fallback.replicas by the Ready pods: while none is Ready the fallback cannot act");
    return true;
}

static bool is_paused(const struct lint *l, struct buf *out)
{
    if (!l->object || !l->object->is_paused)
        return false;
    (void)buf_printf(out, "an annotation pauses the ScaledObject: nothing is scaled");
    return true;
}

static bool sum_is_avg(const struct lint *l, struct buf *out)
{
    if (!l->is_workload || l->t->aggregation != SCALING_SUM)
        return false;
    (void)buf_printf(
        out, "aggregation sum means avg in scope workload: the value is the sum over the pods in either case, and the "
             "target is one replica's");
    return true;
}

static bool percentile_is_max(const struct lint *l, struct buf *out)
{
    int64_t needed = l->t->aggregation == SCALING_P95 ? 20 : l->t->aggregation == SCALING_P99 ? 100 : 0;
    if (!l->is_workload || l->max < 0 || l->max >= needed)
        return false;
    (void)buf_printf(out, "%s of at most %" PRId64 " pods is their maximum: it takes %" PRId64 " to leave one out",
                     scaling_aggregation_name(l->t->aggregation), l->max, needed);
    return true;
}

static bool modifiers_hold(const struct lint *l, struct buf *out)
{
    if (!l->is_workload || !l->arithmetic.has_modifiers)
        return false;
    (void)buf_printf(
        out, "with scalingModifiers no value of one trigger means \"stay\": where the count is to stay the answer is "
             "UNAVAILABLE");
    return true;
}

/* Change procedure: ids are public (docs/explain.md); a new row needs a test. */
#define LINT_ROWS(X)                                                                                                   \
    X(never_grows)                                                                                                     \
    X(never_past)                                                                                                      \
    X(sum_with_value)                                                                                                  \
    X(other_tenants)                                                                                                   \
    X(hot_pod)                                                                                                         \
    X(never_wakes)                                                                                                     \
    X(memory_never_sleeps)                                                                                             \
    X(never_sleeps)                                                                                                    \
    X(never_active)                                                                                                    \
    X(activation_above_target)                                                                                         \
    X(slow_growth)                                                                                                     \
    X(short_window)                                                                                                    \
    X(two_scalers)                                                                                                     \
    X(no_external_metric)                                                                                              \
    X(ambiguous_type)                                                                                                  \
    X(type_overruled)                                                                                                  \
    X(target_not_taken)                                                                                                \
    X(fallback_to_zero)                                                                                                \
    X(static_fallback)                                                                                                 \
    X(fallback_with_value)                                                                                             \
    X(is_paused)                                                                                                       \
    X(sum_is_avg)                                                                                                      \
    X(percentile_is_max)                                                                                               \
    X(modifiers_hold)

static const struct {
    const char *id;
    bool (*applies)(const struct lint *l, struct buf *out);
} rows[] = {
#define X(name) {#name, name},
    LINT_ROWS(X)
#undef X
};

static struct lint gather(const struct workload_facts *facts, const struct trigger *t)
{
    struct lint l = {.facts = facts,
                     .t = t,
                     .object = facts->scaled_object,
                     .hpa = facts->hpa_state == WORKLOAD_HPA_KNOWN ? facts->hpa : NULL,
                     .is_workload = t->scope == TRIGGER_WORKLOAD,
                     .has_ceiling = scaling_kind_ceiling(workload_kind(t->metric)) > 0,
                     .min = -1,
                     .max = -1};
    l.is_ambiguous = workload_find_hpa(t, facts, &l.arithmetic, &l.metric, &l.ambiguity) < 0;
    if (l.object) {
        l.min = l.object->min;
        l.max = l.object->max;
    } else if (l.hpa) {
        l.min = l.hpa->min;
        l.max = l.hpa->max;
    }
    return l;
}

void workload_lint(const struct workload_facts *facts, const struct trigger *t,
                   void (*told)(void *context, const char *id, const char *sentence), void *context)
{
    bool is_engine = trigger_metric_is_engine(t->metric);
    if (!facts || facts->is_job || is_engine || t->scope == TRIGGER_NODE || (!facts->hpa && !facts->scaled_object))
        return;
    struct lint l = gather(facts, t);
    BUF_AUTO struct buf sentence;
    buf_init(&sentence, SENTENCE_BYTES);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        buf_reset(&sentence);
        if (rows[i].applies(&l, &sentence))
            told(context, rows[i].id, buf_cstr(&sentence));
    }
}
