/* 2.3, the left half of its table, and 2.7: what state a pod is in and what counts as its load. It does not know
 * intervals, groups or the other pods. */
#include "scaling/gather.h"

#include <math.h>

/* Seconds; 2.3 and 2.7 of the rules. */
static const double started_gap_s = 10, hung_s = 300, unobservable_s = 300, flat_s = 600;
static const double moved_points = 2; /* of 100 */

const char *scaling_pod_state_name(enum scaling_pod_state state)
{
    static const char *const names[SCALING_POD_STATE_COUNT] = {
#define X(id, name, badness) [SCALING_POD_##id] = (name),
        SCALING_POD_STATES(X)
#undef X
    };
    return state < SCALING_POD_STATE_COUNT ? names[state] : "unknown";
}

double scaling_condition_age_s(const struct scaling_pod *pod)
{
    return fmax(0, pod->condition_age_s.is_known ? pod->condition_age_s.value : pod->created_age_s);
}

/* Ready=False since more than 10 s after the latest start of its GPU containers: it was Ready in this life. */
static bool was_ready_in_this_life(const struct scaling_pod *pod)
{
    return pod->phase != SCALING_PHASE_PENDING && pod->condition_age_s.is_known && pod->started_age_s.is_known &&
           pod->started_age_s.value - pod->condition_age_s.value > started_gap_s;
}

static enum scaling_pod_state not_ready_state(const struct scaling_rules *rules, const struct scaling_pod *pod)
{
    if (was_ready_in_this_life(pod))
        return scaling_condition_age_s(pod) > hung_s ? SCALING_POD_HUNG : SCALING_POD_UNREADY;
    double since_s = fmin(pod->created_age_s, scaling_condition_age_s(pod)); /* the later of the two moments */
    return since_s <= rules->warmup_s ? SCALING_POD_LOADING : SCALING_POD_STUCK;
}

/* The table before missing and unobservable: what the API server alone says. */
static enum scaling_pod_state condition_state(const struct scaling_rules *rules, const struct scaling_pod *pod)
{
    if (pod->is_deleted || pod->phase == SCALING_PHASE_SUCCEEDED || pod->phase == SCALING_PHASE_FAILED)
        return SCALING_POD_GONE;
    if (!pod->is_ready || pod->phase == SCALING_PHASE_PENDING)
        return not_ready_state(rules, pod);
    if (scaling_condition_age_s(pod) >= rules->window_s)
        return SCALING_POD_MEASURED;
    return pod->was_first_ready_seen ? SCALING_POD_YOUNG : SCALING_POD_READY_AGAIN;
}

static bool needs_reading(enum scaling_pod_state state)
{
    return state == SCALING_POD_MEASURED || state == SCALING_POD_YOUNG || state == SCALING_POD_READY_AGAIN ||
           state == SCALING_POD_UNREADY || state == SCALING_POD_HUNG;
}

bool scaling_ought_to_be_read(const struct scaling_rules *rules, const struct scaling_pod *pod)
{
    return needs_reading(condition_state(rules, pod));
}

enum scaling_pod_state scaling_pod_state(const struct scaling_rules *rules, const struct scaling_pod *pod,
                                         bool is_half_read)
{
    enum scaling_pod_state state = condition_state(rules, pod);
    if (!needs_reading(state) || (pod->reading == SCALING_READ_OK && pod->load.window.is_known))
        return state;
    bool is_fresh = state == SCALING_POD_YOUNG || state == SCALING_POD_READY_AGAIN;
    if (is_fresh && pod->reading == SCALING_READ_NOT_YET)
        return state; /* nothing failed: its first sample is not due yet */
    if (pod->reading == SCALING_READ_UNDECIDED)
        return SCALING_POD_MISSING; /* it is read: 2.7 says how long this lasts */
    return is_half_read && pod->missing_for_s >= unobservable_s ? SCALING_POD_UNOBSERVABLE : SCALING_POD_MISSING;
}

int64_t scaling_count_ready(const struct scaling_pod *pods, size_t n)
{
    int64_t ready = 0;
    for (size_t i = 0; i < n; i++)
        ready += pods[i].phase == SCALING_PHASE_RUNNING && pods[i].is_ready;
    return ready;
}

/* ---- memory ---- */

static bool has_moved(const struct scaling_maybe *lowest, const struct scaling_maybe *highest, double full)
{
    return lowest->is_known && highest->is_known && highest->value - lowest->value >= full * moved_points / 100;
}

static enum scaling_memory_verdict judge_memory(const struct scaling_rules *rules, const struct scaling_pod *pod)
{
    const struct scaling_memory *m = &pod->memory;
    double lowest = m->lowest.is_known ? m->lowest.value : pod->load.window.value;
    if (lowest >= rules->target) /* not below T since it became Ready */
        return SCALING_MEMORY_PREALLOCATED;
    bool is_ten_minutes_known = m->history_s >= flat_s && m->lowest_10min.is_known && m->highest_10min.is_known;
    if (is_ten_minutes_known && !has_moved(&m->lowest_10min, &m->highest_10min, m->full))
        return SCALING_MEMORY_PREALLOCATED;
    return has_moved(&m->lowest, &m->highest, m->full) ? SCALING_MEMORY_HONEST : SCALING_MEMORY_UNDECIDED;
}

/* A utilisation in percent as part of all memory, at most T. */
static struct scaling_maybe as_memory(struct scaling_maybe utilization, double full, double at_most)
{
    if (utilization.is_known)
        utilization.value = fmin(at_most, utilization.value * full / 100);
    return utilization;
}

static void use_utilization(const struct scaling_rules *rules, struct scaling_pod *pod)
{
    const struct scaling_load *u = &pod->memory.utilization;
    double full = pod->memory.full;
    pod->load.window = as_memory(u->window, full, rules->target);
    pod->load.since_ready = as_memory(u->since_ready, full, rules->target);
    pod->load.peak = as_memory(u->peak, full, (double)INFINITY);
    if (pod->load.window.is_known)
        return;
    pod->reading = SCALING_READ_MISSING; /* what it would count is at most T whatever it does */
    pod->bound = (struct scaling_maybe){.is_known = true, .value = rules->target};
}

enum scaling_memory_verdict scaling_apply_memory(const struct scaling_rules *rules, const struct scaling_pod *pod,
                                                 struct scaling_pod *ret_pod)
{
    *ret_pod = *pod;
    bool is_read = pod->reading == SCALING_READ_OK && pod->load.window.is_known;
    if (!rules->is_memory || !is_read || !scaling_ought_to_be_read(rules, pod))
        return SCALING_MEMORY_HONEST;
    enum scaling_memory_verdict verdict = judge_memory(rules, pod);
    if (verdict == SCALING_MEMORY_PREALLOCATED)
        use_utilization(rules, ret_pod);
    if (verdict == SCALING_MEMORY_UNDECIDED) {
        ret_pod->reading = SCALING_READ_UNDECIDED;
        ret_pod->bound.is_known = true;
        ret_pod->bound.value = fmax(rules->target, pod->load.window.value);
    }
    return verdict;
}
