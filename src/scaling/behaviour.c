/* What the HPA controller does with a proposal: bounds, stabilization windows and policies. k8s
 * pkg/controller/podautoscaler/horizontal.go (v1.36); keda.md 8.6. */
#include "scaling/scaling.h"

#include <math.h>
#include <string.h>

struct scaling_behaviour scaling_default_behaviour(int64_t min, int64_t max, bool is_given)
{
    return (struct scaling_behaviour){
        .min = min,
        .max = max,
        .is_given = is_given,
        .up = {.window_s = 0,
               .select = SCALING_SELECT_MAX,
               .policies = {{SCALING_PODS, 4, 15}, {SCALING_PERCENT, 100, 15}},
               .n_policies = 2},
        .down = {.window_s = 300,
                 .select = SCALING_SELECT_MAX,
                 .policies = {{SCALING_PERCENT, 100, 15}},
                 .n_policies = 1},
    };
}

static int64_t at_least(int64_t value, int64_t least)
{
    return value < least ? least : value;
}

static int64_t at_most(int64_t value, int64_t most)
{
    return value > most ? most : value;
}

static void note(struct scaling_event *events, size_t *n, struct scaling_event event)
{
    if (*n == SCALING_HISTORY_MAX) {
        memmove(&events[0], &events[1], (SCALING_HISTORY_MAX - 1) * sizeof(*events));
        --*n;
    }
    events[(*n)++] = event;
}

/* The count by which replicas changed in the last period. */
static int64_t changed_since(const struct scaling_event *events, size_t n, int64_t since_s)
{
    int64_t sum = 0;
    for (size_t i = n; i > 0 && events[i - 1].at_s > since_s; i--)
        sum += events[i - 1].count;
    return sum;
}

/* Where the policies let this direction go from `spec`: each counts from the number at the start of its period. */
static int64_t policy_limit(const struct scaling_direction *direction, const struct scaling_history *history,
                            int64_t now_s, int64_t spec, int sign)
{
    if (direction->select == SCALING_SELECT_DISABLED || direction->n_policies == 0)
        return spec;
    bool wants_far = direction->select == SCALING_SELECT_MAX;
    int64_t limit = 0;
    for (size_t i = 0; i < direction->n_policies; i++) {
        const struct scaling_policy *policy = &direction->policies[i];
        int64_t since_s = now_s - policy->period_s;
        int64_t start = spec - changed_since(history->ups, history->n_ups, since_s) +
                        changed_since(history->downs, history->n_downs, since_s);
        double factor = 1 + sign * (double)policy->amount / 100;
        int64_t proposed = policy->type == SCALING_PODS ? start + sign * policy->amount
                           : sign > 0                   ? (int64_t)ceil((double)start * factor)
                                                        : (int64_t)((double)start * factor);
        bool is_farther = sign * (proposed - limit) > 0;
        if (i == 0 || is_farther == wants_far)
            limit = proposed;
    }
    return sign > 0 ? at_least(limit, spec) : at_most(limit, spec);
}

/* The highest proposal since then, this one included; or the lowest. */
static int64_t extreme_since(const struct scaling_history *history, int64_t since_s, int64_t proposal, int sign)
{
    int64_t extreme = proposal;
    for (size_t i = history->n_proposals; i > 0 && history->proposals[i - 1].at_s > since_s; i--)
        if (sign * (history->proposals[i - 1].count - extreme) > 0)
            extreme = history->proposals[i - 1].count;
    return extreme;
}

static int64_t stabilize(const struct scaling_behaviour *b, const struct scaling_history *history, int64_t now_s,
                         int64_t spec, int64_t proposal)
{
    int64_t high = extreme_since(history, now_s - b->down.window_s, proposal, 1);
    if (!b->is_given)
        return high;
    int64_t low = extreme_since(history, now_s - b->up.window_s, proposal, -1);
    return at_most(at_least(spec, low), high);
}

static int64_t limit_change(const struct scaling_behaviour *b, const struct scaling_history *history, int64_t now_s,
                            int64_t spec, int64_t wanted)
{
    int64_t most = at_least(2 * spec, 4), least = b->min;
    if (b->is_given) {
        most = policy_limit(&b->up, history, now_s, spec, 1);
        least = at_least(policy_limit(&b->down, history, now_s, spec, -1), b->min);
    }
    if (wanted < least && wanted < spec)
        wanted = least;
    if (wanted > spec)
        wanted = at_most(wanted, most);
    return at_most(at_least(wanted, b->min), b->max);
}

int64_t scaling_hpa_limit(const struct scaling_behaviour *b, struct scaling_history *history, int64_t now_s,
                          int64_t spec, int64_t proposal)
{
    int64_t stable = stabilize(b, history, now_s, spec, proposal);
    note(history->proposals, &history->n_proposals, (struct scaling_event){now_s, proposal});
    int64_t result = limit_change(b, history, now_s, spec, stable);
    if (result > spec)
        note(history->ups, &history->n_ups, (struct scaling_event){now_s, result - spec});
    if (result < spec)
        note(history->downs, &history->n_downs, (struct scaling_event){now_s, spec - result});
    return result;
}
