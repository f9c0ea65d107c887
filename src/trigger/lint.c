/* What can be said about a trigger before anything is measured: targets out of reach, signals that run away or say
 * nothing about load. It refuses nothing. */
#include "trigger/lint.h"

#include "trigger/facts.h"
#include "trigger/text.h"

#include <math.h>
#include <string.h>

/* The HPA leaves the count alone while value and target differ by less. keda.md 8.2 */
#define HPA_TOLERANCE 0.1

static bool is_percent(const struct trigger *t)
{
    return strcmp(trigger_metric_unit(t->metric), "%") == 0;
}

/* The aggregated value cannot pass 100: every aggregation but the sum of a percentage. */
static bool is_bounded(const struct trigger *t)
{
    return is_percent(t) && !trigger_metric_is_engine(t->metric) && t->aggregation != SCALING_SUM;
}

static void lint_reach(struct trigger *t)
{
    bool is_value = strcmp(t->hpa_metric_type, "Value") == 0;
    double acts_above = t->target * (1 + HPA_TOLERANCE);
    char target[NUM_TEXT_MAX], least[NUM_TEXT_MAX];
    num_format_milli(target, t->target);
    num_format_milli(least, acts_above);
    if (is_bounded(t) && acts_above >= 100)
        trigger_warn(
            t->warnings, &t->n_warnings,
            "never grows: %s of %s is at most 100, and with target %s the HPA adds replicas only above %s (its "
            "tolerance is 10 %%)",
            scaling_aggregation_name(t->aggregation), trigger_metric_name(t->metric), target, least);
    else if (is_bounded(t) && !is_value)
        trigger_warn(
            t->warnings, &t->n_warnings,
            "never past %.0f replicas: %s of %s is at most 100, and under AverageValue (KEDA's default) the HPA "
            "asks for value / %s; aggregation sum or metricType Value reach further",
            ceil(100 / t->target), scaling_aggregation_name(t->aggregation), trigger_metric_name(t->metric), target);
    if (is_value && t->aggregation == SCALING_SUM)
        trigger_warn(t->warnings, &t->n_warnings,
                     "runs away: under Value the HPA multiplies the present count by value / target, and a sum grows "
                     "with the count; use avg or max");
}

static void lint_activation(struct trigger *t)
{
    char target[NUM_TEXT_MAX], activation[NUM_TEXT_MAX];
    num_format_milli(target, t->target);
    num_format_milli(activation, t->activation);
    if (is_percent(t) && !trigger_metric_is_engine(t->metric) && t->activation >= 100)
        trigger_warn(t->warnings, &t->n_warnings, "never active: %s cannot be above 100",
                     trigger_metric_name(t->metric));
    else if (t->activation > t->target)
        trigger_warn(t->warnings, &t->n_warnings,
                     "activationThreshold %s is above target %s: at loads between them the workload is taken for idle "
                     "while the HPA would add replicas",
                     activation, target);
}

static void lint_memory(struct trigger *t)
{
    int source = trigger_metric_facts(t->metric)->source;
    if (source == TRIGGER_SOURCE_MEMORY_PERCENT || source == SNAPSHOT_MEMORY_USED)
        trigger_warn(t->warnings, &t->n_warnings,
                     "memory is no load where a server allocates it at start and keeps it (vLLM takes about 90 %%): it "
                     "then runs to the maximum or never sleeps; gpu_utilization or requests_in_flight show load");
}

/* What does not add up over pods says how busy one is, and AverageValue takes it for the load of all. */
static void lint_page_reach(struct trigger *t)
{
    static const double demand_ceiling = 200; /* of the KV cache with what waits for it */
    enum signals_kind kind = signals_kind_of(trigger_metric_signal(t->metric));
    if (strcmp(t->hpa_metric_type, "Value") == 0)
        return;
    if (kind == SIGNALS_LATENCY)
        trigger_warn(t->warnings, &t->n_warnings,
                     "never settles: under AverageValue (KEDA's default) the HPA asks for %s / target replicas "
                     "whatever their present count, and the more there are the lower it is; use metricType Value",
                     trigger_metric_name(t->metric));
    else if (kind == SIGNALS_RATIO && t->scope == TRIGGER_NODE) /* of scope cluster the hub says it */
        trigger_warn(t->warnings, &t->n_warnings,
                     "never past %.0f replicas: %s of one page is at most 200, and under AverageValue (KEDA's "
                     "default) the HPA asks for value / target; use metricType Value",
                     ceil(demand_ceiling / t->target), trigger_metric_name(t->metric));
}

/* reference B.1 #4, #16 */
static void lint_page(struct trigger *t)
{
    if (!trigger_metric_is_engine(t->metric))
        return;
    lint_page_reach(t);
    trigger_warn(t->warnings, &t->n_warnings,
                 "one page is read: behind a Service it is that of one pod, now this one and now that; scope "
                 "workload of the hub reads the page of each pod");
}

void trigger_lint(struct trigger *t)
{
    if (t->scope == TRIGGER_WORKLOAD)
        return; /* its rules bound and correct what is warned of here */
    lint_reach(t);
    lint_activation(t);
    lint_memory(t);
    lint_page(t);
}
