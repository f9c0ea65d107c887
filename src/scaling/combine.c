/* Several signals of one workload as one: the busiest relative to its own target decides, as the HPA does over several
 * metrics (k8s horizontal.go computeReplicasForMetrics: the largest proposal; with a metric that has none, never below
 * the present count). It looks at results only, not at pods. */
#include "scaling/scaling.h"

#include <assert.h>
#include <math.h>

static const double value_max = 1e12;

static bool has_value(const struct scaling_result *part)
{
    return part->error.class == ERR_NONE;
}

/* v / T in whole thousandths of both, as the HPA takes them. */
static double ratio_of(double value, const struct scaling_result *part)
{
    return (double)scaling_milli(value) / (double)scaling_milli(part->target);
}

/* The ratio with the new target, in thousandths rounded up: rounded to the nearest, a load just above a whole number of
 * replicas would ask for one less. What is whole but for the rounding of a quotient stays whole. */
static double scale(double ratio, double target)
{
    double milli = ratio * (double)scaling_milli(target), nearest = round(milli);
    return (fabs(milli - nearest) <= 1e-13 * fmax(1, nearest) ? nearest : ceil(milli)) / 1000;
}

/* A part that holds says C; where a measured one says as much, that one decided. */
static bool beats(const struct scaling_result *part, const struct scaling_result *best)
{
    double ratio = ratio_of(part->value, part), best_ratio = ratio_of(best->value, best);
    return ratio > best_ratio || (ratio >= best_ratio && best->is_hold && !part->is_hold);
}

static void take_bounds(const struct scaling_result *part, struct scaling_result *ret)
{
    if (!scaling_rule_has_interval(part->rule))
        return;
    ret->lo = fmax(ret->lo, scale(ratio_of(part->lo, part), ret->target));
    ret->hi = fmax(ret->hi, scale(ratio_of(part->hi, part), ret->target));
    ret->asks_lo = part->asks_lo > ret->asks_lo ? part->asks_lo : ret->asks_lo;
    ret->asks_hi = part->asks_hi > ret->asks_hi ? part->asks_hi : ret->asks_hi;
}

/* What is shown of the pods is what one part saw of them. */
static void take_pods(const struct scaling_result *part, struct scaling_result *ret)
{
    ret->a_lowers = part->a_lowers;
    ret->n = part->n;
    ret->n_lower = part->n_lower;
    for (size_t i = 0; i < SCALING_POD_STATE_COUNT; i++)
        ret->counts[i] = part->counts[i];
    ret->items = part->items;
    ret->n_items = part->n_items;
}

/* The part that decides, n where each is in error. */
static size_t find_busiest(const struct scaling_result *parts, size_t n)
{
    size_t best = n;
    for (size_t i = 0; i < n; i++)
        if (has_value(&parts[i]) && (best == n || beats(&parts[i], &parts[best])))
            best = i;
    return best;
}

static void hold_for_failed(struct scaling_result *ret)
{
    double present = ret->target * (double)ret->replicas.spec;
    if (ret->n_failed == 0 || ret->value > present)
        return;
    ret->rule = SCALING_RULE_HOLD_PART;
    ret->value = present;
    ret->is_hold = true;
    ret->part = ret->n_parts;
}

static void decide_value(const struct scaling_result *parts, size_t n, struct scaling_result *ret)
{
    size_t best = find_busiest(parts, n);
    take_pods(&parts[best < n ? best : 0], ret);
    ret->part = best;
    if (best == n) {
        ret->rule = parts[0].rule;
        ret->error = parts[0].error;
        return;
    }
    ret->rule = parts[best].rule;
    if (ret->rule == SCALING_RULE_ZERO) { /* C = 0, which all parts saw */
        ret->part = n;
        return;
    }
    for (size_t i = 0; i < n; i++)
        if (has_value(&parts[i]))
            take_bounds(&parts[i], ret);
    ret->value = scale(ratio_of(parts[best].value, &parts[best]), ret->target);
    ret->is_hold = parts[best].is_hold;
    hold_for_failed(ret);
    if (isfinite(ret->value) && ret->value <= value_max)
        return;
    ret->value = 0;
    ret->is_hold = false;
    ret->rule = SCALING_RULE_OUT_OF_RANGE;
    (void)err_set(&ret->error, ERR_INTERNAL, "%s", scaling_rule_sentence(ret->rule));
}

/* Seen demand says more than what is active because something is not known; that more than inactive; an error least. */
static unsigned activity_rank(const struct scaling_result *part)
{
    if (part->active_error.class != ERR_NONE)
        return 0;
    return scaling_active_is_measured(part->active_rule) ? 3 : part->is_active ? 2 : 1;
}

static void decide_activity(const struct scaling_result *parts, size_t n, struct scaling_result *ret)
{
    size_t best = 0, n_errors = 0;
    for (size_t i = 0; i < n; i++) {
        n_errors += parts[i].active_error.class != ERR_NONE;
        if (activity_rank(&parts[i]) > activity_rank(&parts[best]))
            best = i;
    }
    bool is_unknown = n_errors > 0 && n_errors < n && !parts[best].is_active;
    ret->active_part = best;
    ret->active_rule = is_unknown ? SCALING_ACTIVE_PART : parts[best].active_rule;
    ret->is_active = is_unknown || parts[best].is_active;
    ret->active_error = parts[best].active_error;
    ret->activity = parts[best].activity;
    ret->in_flight = parts[best].in_flight;
}

void scaling_combine(const struct scaling_result *parts, size_t n, double target, struct scaling_result *ret)
{
    assert(n > 0 && target >= 0.001);
    *ret = (struct scaling_result){.target = target, .replicas = parts[0].replicas, .n_parts = n};
    for (size_t i = 0; i < n; i++) {
        ret->n_failed += !has_value(&parts[i]);
        ret->warnings |= parts[i].warnings;
    }
    decide_value(parts, n, ret);
    decide_activity(parts, n, ret);
}
