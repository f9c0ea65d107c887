/* What a ScaledObject can never do, or will do wrong, as far as its trigger, its HPA and the object itself tell
 * (scaling-semantics 7). One table: each row is a question to the facts and the sentence of its answer. What needs the
 * trigger alone is said by trigger/, what needs readings by the explanation. */
#include "workload/lint.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { SENTENCE_BYTES = 800 };
static const double full = 100; /* of what is measured in percent */

struct lint_number lint_number(double value)
{
    struct lint_number n;
    num_format_milli(n.text, value);
    return n;
}

static bool is_percentage(const struct trigger *t)
{
    return strcmp(trigger_metric_unit(t->metric), "%") == 0;
}

/* ---- rows: true where they apply, with the sentence ---- */

double lint_grows_above(const struct lint *l)
{
    return l->arithmetic.target * (1 + l->arithmetic.tolerance_up);
}

static bool never_grows(const struct lint *l, struct buf *out)
{
    if (l->ceiling <= 0 || !l->is_workload || lint_grows_above(l) < l->ceiling)
        return false;
    (void)buf_printf(
        out, "never grows: %s is at most %s, and with target %s and its tolerance the HPA adds replicas only above %s",
        trigger_metric_name(l->t->metric), lint_number(l->ceiling).text, lint_number(l->arithmetic.target).text,
        lint_number(lint_grows_above(l)).text);
    return true;
}

static bool never_past(const struct lint *l, struct buf *out)
{
    int64_t most = (int64_t)ceil(l->ceiling / l->arithmetic.target);
    if (l->is_workload || l->ceiling <= 0 || l->t->aggregation == SCALING_SUM ||
        l->arithmetic.type != SCALING_AVERAGE_VALUE || l->max < 0 || most >= l->max)
        return false;
    (void)buf_printf(
        out,
        "never past %" PRId64 " of %" PRId64 " replicas: %s of %s is at most %s, and under AverageValue the HPA "
        "asks for value / %s; scope workload, or metricType Value, reaches further",
        most, l->max, l->is_engine ? "kv_cache_usage" : scaling_aggregation_name(l->t->aggregation),
        l->is_engine ? "one page" : "all GPUs", lint_number(l->ceiling).text, lint_number(l->arithmetic.target).text);
    return true;
}

static bool sum_with_value(const struct lint *l, struct buf *out)
{
    bool is_sum = l->t->aggregation == SCALING_SUM && !l->is_engine; /* of one page there is nothing to add up */
    if (l->is_workload || !is_sum || l->arithmetic.type != SCALING_VALUE)
        return false;
    (void)buf_printf(
        out, "runs away: under Value the HPA multiplies the present count by value / target, and a sum grows with the "
             "count; use avg or max, or AverageValue");
    return true;
}

static bool other_tenants(const struct lint *l, struct buf *out)
{
    if (l->is_workload || l->is_engine)
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
    bool is_endpoint = l->is_engine && !l->is_workload; /* which may be there without pods */
    if (l->whole->wake_endpoint[0] || is_endpoint)
        return false;
    (void)buf_printf(out,
                     "never wakes: minReplicaCount is 0, and without pods there is no %s to look at: name a page that "
                     "is there without them (wakeEndpoint and wakeMetric: a router's or a gateway's), add a trigger "
                     "that sees demand (a queue, requests), or set minReplicaCount to 1",
                     l->is_engine ? "page" : "GPU");
    return true;
}

static bool memory_never_sleeps(const struct lint *l, struct buf *out)
{
    if (!l->object || l->object->min != 0 || l->is_workload || l->is_engine || !workload_is_memory(l->t->metric))
        return false;
    (void)buf_printf(
        out,
        "never sleeps: a server that fills its memory at start stays above activationThreshold %s without any "
        "load; scope workload tells it apart",
        lint_number(l->t->activation).text);
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
                         lint_number(l->t->activation).text, trigger_metric_unit(l->t->metric));
        return true;
    }
    return false;
}

/* Without a threshold in the metadata an engine's pod is active with any request. */
static bool is_threshold_asked(const struct lint *l)
{
    return l->t->has_activation || !l->is_engine;
}

static bool never_active(const struct lint *l, struct buf *out)
{
    double most = l->ceiling > 0 ? l->ceiling : full;
    if (!l->is_workload || !is_percentage(l->t) || l->t->activation < most || !is_threshold_asked(l))
        return false;
    (void)buf_printf(out, "never active: %s cannot be above %s", trigger_metric_name(l->t->metric),
                     lint_number(most).text);
    return true;
}

static bool activation_above_target(const struct lint *l, struct buf *out)
{
    bool is_out_of_reach = is_percentage(l->t) && l->t->activation >= full;
    if (!l->is_workload || l->t->activation <= l->t->target || is_out_of_reach || !is_threshold_asked(l))
        return false;
    (void)buf_printf(
        out,
        "activationThreshold %s is above target %s: at loads between them the workload is taken for idle while the HPA "
        "would add replicas",
        lint_number(l->t->activation).text, lint_number(l->t->target).text);
    return true;
}

enum { MANY_STEPS = 10 };

static bool slow_growth(const struct lint *l, struct buf *out)
{
    double factor = full / l->arithmetic.target, from = l->min > 1 ? (double)l->min : 1;
    bool is_blind = l->ceiling > 0 && !l->is_engine; /* an engine shows what is waiting */
    if (!l->is_workload || !is_blind || l->max < 0 || lint_grows_above(l) >= full || factor <= 1)
        return false;
    double steps = ceil(log((double)l->max / from) / log(factor) - 1e-9);
    if (!(steps > MANY_STEPS))
        return false;
    (void)buf_printf(
        out,
        "grows slowly: %s stops at 100 and cannot show how much is waiting, so each step is at most x %s: %.0f steps "
        "from %.0f to %" PRId64 ", each as long as a pod takes to start; a queue length reaches further",
        trigger_metric_name(l->t->metric), lint_number(factor).text, steps, from, l->max);
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
                     lint_number(l->metric->target).text, lint_number(l->t->target).text);
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

/* Of what a row is asked: of the trigger; of each of its signals; of the trigger where it has one signal only. */
enum asked_of { OF_TRIGGER, OF_EACH, OF_LONE };

/* Engines' pages and Prometheus have shares of 1 where we have percentages. */
static bool fraction(const struct lint *l, struct buf *out)
{
    if (!is_percentage(l->t) || l->t->target > 1)
        return false;
    (void)buf_printf(out,
                     "target %s of %s is %s %%: percentages go from 0 to 100 here, and a share of %s is written %s",
                     lint_number(l->t->target).text, trigger_metric_name(l->t->metric), lint_number(l->t->target).text,
                     lint_number(l->t->target).text, lint_number(100 * l->t->target).text);
    return true;
}

/* X(id, of what, function). Change procedure: ids are public (docs/explain.md); a new row needs a test. */
#define LINT_ROWS(X)                                                                                                   \
    X(fraction, OF_EACH, fraction)                                                                                     \
    X(never_grows, OF_LONE, never_grows)                                                                               \
    X(grows_by_queue_only, OF_LONE, lint_grows_by_queue_only)                                                          \
    X(never_past, OF_LONE, never_past)                                                                                 \
    X(sum_with_value, OF_LONE, sum_with_value)                                                                         \
    X(other_tenants, OF_LONE, other_tenants)                                                                           \
    X(hot_pod, OF_TRIGGER, hot_pod)                                                                                    \
    X(never_wakes, OF_TRIGGER, never_wakes)                                                                            \
    X(memory_never_sleeps, OF_EACH, memory_never_sleeps)                                                               \
    X(never_sleeps, OF_EACH, never_sleeps)                                                                             \
    X(never_active, OF_LONE, never_active)                                                                             \
    X(activation_above_target, OF_LONE, activation_above_target)                                                       \
    X(slow_growth, OF_LONE, slow_growth)                                                                               \
    X(running_saturates, OF_LONE, lint_running_saturates)                                                              \
    X(latency_lags, OF_TRIGGER, lint_latency_lags)                                                                     \
    X(swings, OF_TRIGGER, lint_swings)                                                                                 \
    X(short_rate_window, OF_EACH, lint_short_rate_window)                                                              \
    X(tokens_estimated, OF_EACH, lint_tokens_estimated)                                                                \
    X(part_never_grows, OF_TRIGGER, lint_part_never_grows)                                                             \
    X(part_never_decides, OF_TRIGGER, lint_part_never_decides)                                                         \
    X(short_window, OF_TRIGGER, short_window)                                                                          \
    X(two_scalers, OF_TRIGGER, two_scalers)                                                                            \
    X(no_external_metric, OF_TRIGGER, no_external_metric)                                                              \
    X(ambiguous_type, OF_TRIGGER, ambiguous_type)                                                                      \
    X(type_overruled, OF_TRIGGER, type_overruled)                                                                      \
    X(target_not_taken, OF_TRIGGER, target_not_taken)                                                                  \
    X(fallback_to_zero, OF_TRIGGER, fallback_to_zero)                                                                  \
    X(static_fallback, OF_TRIGGER, static_fallback)                                                                    \
    X(fallback_with_value, OF_TRIGGER, fallback_with_value)                                                            \
    X(is_paused, OF_TRIGGER, is_paused)                                                                                \
    X(sum_is_avg, OF_TRIGGER, sum_is_avg)                                                                              \
    X(percentile_is_max, OF_TRIGGER, percentile_is_max)                                                                \
    X(modifiers_hold, OF_TRIGGER, modifiers_hold)

static const struct {
    const char *id;
    enum asked_of of;
    bool (*applies)(const struct lint *l, struct buf *out);
} rows[] = {
#define X(name, of, function) {#name, of, function},
    LINT_ROWS(X)
#undef X
};

/* Of several signals none bounds the whole: their ratios to their targets are compared. */
static void look_at_signal(struct lint *l, const struct trigger *t)
{
    l->t = t;
    l->is_engine = trigger_metric_is_engine(t->metric) || t->prefers_engine;
    l->ceiling = t->n_parts > 0 ? 0 : lint_ceiling(t);
}

/* One of several signals, by its own target. */
static struct lint of_part(const struct lint *whole, const struct trigger *part)
{
    struct lint l = *whole;
    look_at_signal(&l, part);
    l.arithmetic.target = part->target;
    return l;
}

static struct lint gather(const struct workload_facts *facts, const struct trigger *t)
{
    struct lint l = {.facts = facts,
                     .t = t,
                     .whole = t,
                     .object = facts->scaled_object,
                     .hpa = facts->hpa_state == WORKLOAD_HPA_KNOWN ? facts->hpa : NULL,
                     .is_workload = t->scope == TRIGGER_WORKLOAD,
                     .min = -1,
                     .max = -1};
    l.is_ambiguous = workload_find_hpa(t, facts, &l.arithmetic, &l.metric, &l.ambiguity) < 0;
    look_at_signal(&l, t);
    if (l.object) {
        l.min = l.object->min;
        l.max = l.object->max;
    } else if (l.hpa) {
        l.min = l.hpa->min;
        l.max = l.hpa->max;
    }
    return l;
}

static void ask(const struct lint *l, size_t row, void (*told)(void *context, const char *id, const char *sentence),
                void *context)
{
    BUF_AUTO struct buf sentence;
    buf_init(&sentence, SENTENCE_BYTES);
    if (rows[row].applies(l, &sentence))
        told(context, rows[row].id, buf_cstr(&sentence));
}

void workload_lint(const struct workload_facts *facts, const struct trigger *t,
                   void (*told)(void *context, const char *id, const char *sentence), void *context)
{
    if (!facts || facts->is_job || t->scope == TRIGGER_NODE || (!facts->hpa && !facts->scaled_object))
        return;
    struct lint l = gather(facts, t);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool is_of_whole = t->n_parts == 0 || rows[i].of == OF_TRIGGER;
        if (is_of_whole)
            ask(&l, i, told, context);
        for (size_t k = 0; !is_of_whole && rows[i].of == OF_EACH && k < t->n_parts; k++) {
            struct lint part = of_part(&l, t->parts[k]);
            ask(&part, i, told, context);
        }
    }
}
