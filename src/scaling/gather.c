/* From the pods of a workload to its replicas: each pod by itself, the pods of a group as one, and the places that have
 * no pod yet. It owns what needs all pods (which are missing, which unobservable) and no value. */
#include "scaling/gather.h"

#include <math.h>

static bool is_read(const struct scaling_pod *pod)
{
    return pod->reading == SCALING_READ_UNDECIDED || (pod->reading == SCALING_READ_OK && pod->load.window.is_known);
}

/* A reading that says OK and has no number is none. */
static struct scaling_pod settle(const struct scaling_rules *rules, const struct scaling_pod *pod, bool *ret_prealloc)
{
    struct scaling_pod settled;
    *ret_prealloc = scaling_apply_memory(rules, pod, &settled) == SCALING_MEMORY_PREALLOCATED;
    if (settled.reading == SCALING_READ_OK && !settled.load.window.is_known)
        settled.reading = SCALING_READ_MISSING;
    if (rules->is_weighted && !(settled.load.weight > 0)) /* a mean of nothing */
        settled.load.weight = settled.load.window.value = settled.load.since_ready.value = 0;
    return settled;
}

static void count_readings(const struct scaling_rules *rules, const struct scaling_workload *w,
                           struct scaling_gathered *g)
{
    for (size_t i = 0; i < w->n_pods; i++) {
        bool is_preallocated;
        struct scaling_pod pod = settle(rules, &w->pods[i], &is_preallocated);
        g->has_gpu |= pod.has_gpu;
        if (!scaling_ought_to_be_read(rules, &pod))
            continue;
        /* without a sample yet, or without one although it should have one by now */
        bool is_waited_for = scaling_pod_state(rules, &pod, false) != SCALING_POD_MISSING;
        if (pod.reading == SCALING_READ_NOT_YET && !is_waited_for)
            pod.reading = SCALING_READ_MISSING;
        g->by_reading[pod.reading]++;
        g->n_ought += pod.reading != SCALING_READ_NOT_YET;
        g->n_read += is_read(&pod);
    }
}

/* A young pod's load counts from its Ready on; that of any other as it is. */
static struct scaling_maybe since_ready(const struct scaling_replica *r)
{
    bool is_fresh = r->state == SCALING_POD_YOUNG || r->state == SCALING_POD_READY_AGAIN;
    return is_fresh ? r->load.since_ready : r->load.window;
}

static struct scaling_replica replica_of(const struct scaling_rules *rules, const struct scaling_workload *w,
                                         size_t index, bool is_half_read)
{
    bool is_preallocated;
    struct scaling_pod pod = settle(rules, &w->pods[index], &is_preallocated);
    return (struct scaling_replica){.state = scaling_pod_state(rules, &pod, is_half_read),
                                    .reading = pod.reading,
                                    .is_preallocated = is_preallocated,
                                    .first_pod = index,
                                    .n_pods = 1,
                                    .group = pod.group < 0 ? -1 : pod.group,
                                    .ready_age_s = pod.is_ready ? scaling_condition_age_s(&pod) : (double)INFINITY,
                                    .load = pod.load,
                                    .bound = pod.bound,
                                    .last_good = pod.last_good};
}

/* ---- groups ---- */

static unsigned badness(enum scaling_pod_state state)
{
    static const unsigned char ranks[SCALING_POD_STATE_COUNT] = {
#define X(id, name, badness) [SCALING_POD_##id] = (badness),
        SCALING_POD_STATES(X)
#undef X
    };
    return ranks[state];
}

/* A sum of n numbers of which one may not be known; then neither is the mean. */
static void add(struct scaling_maybe *sum, struct scaling_maybe more)
{
    sum->is_known = sum->is_known && more.is_known;
    sum->value += more.value;
}

static struct scaling_maybe mean(struct scaling_maybe sum, size_t n)
{
    return (struct scaling_maybe){.is_known = sum.is_known && n > 0,
                                  .value = sum.is_known && n > 0 ? sum.value / (double)n : 0};
}

struct group_sums {
    struct scaling_maybe window, since_ready, bound, last_good, peak;
    struct scaling_maybe in_flight;
    double weight, weighted;
    size_t n_peaks, n_read, n_preallocated;
};

static struct scaling_maybe either(struct scaling_maybe first, struct scaling_maybe second)
{
    return first.is_known ? first : second;
}

static void add_member(struct group_sums *sums, struct scaling_replica *group, const struct scaling_replica *member)
{
    bool is_member_read = member->reading == SCALING_READ_OK;
    struct scaling_maybe p = member->load.window;
    p.is_known = p.is_known && is_member_read;
    add(&sums->window, p);
    add(&sums->since_ready, is_member_read ? since_ready(member) : p);
    add(&sums->bound, either(p, member->bound));
    add(&sums->last_good, either(p, member->last_good));
    if (member->load.peak.is_known) {
        sums->peak.value += member->load.peak.value;
        sums->n_peaks++;
    }
    if (member->load.in_flight.is_known) {
        sums->in_flight.is_known = true;
        sums->in_flight.value += member->load.in_flight.value;
    }
    sums->weight += member->load.weight;
    sums->weighted += member->load.weight * p.value;
    sums->n_read += is_member_read;
    sums->n_preallocated += is_member_read && member->is_preallocated;
    group->ready_age_s = fmin(group->ready_age_s, member->ready_age_s);
    group->n_pods++;
    if (member->reading == SCALING_READ_NOT_YET && group->reading == SCALING_READ_OK)
        group->reading = SCALING_READ_NOT_YET;
    if (badness(member->state) <= badness(group->state))
        return;
    group->state = member->state;
    group->reading = member->reading == SCALING_READ_OK ? group->reading : member->reading;
    group->first_pod = member->first_pod;
}

/* p is the mean, the state that of the worst member; a group without one of its members is gone: it cannot serve. */
static struct scaling_replica merge(const struct scaling_replica *members, size_t n)
{
    struct group_sums sums = {.window = {.is_known = true},
                              .since_ready = {.is_known = true},
                              .bound = {.is_known = true},
                              .last_good = {.is_known = true},
                              .peak = {.is_known = true}};
    struct scaling_replica group = members[0];
    group.n_pods = 0;
    for (size_t i = 0; i < n; i++)
        add_member(&sums, &group, &members[i]);
    group.load.window = mean(sums.window, n);
    if (sums.weight > 0 && group.load.window.is_known)
        group.load.window.value = sums.weighted / sums.weight;
    group.load.weight = sums.weight;
    group.load.in_flight = sums.in_flight;
    group.load.since_ready = mean(sums.since_ready, n);
    group.load.peak = mean(sums.peak, sums.n_peaks);
    group.bound = mean(sums.bound, n);
    group.last_good = mean(sums.last_good, n);
    group.is_preallocated = sums.n_read > 0 && sums.n_preallocated == sums.n_read;
    return group;
}

static int compare_groups(const void *left, const void *right)
{
    const struct scaling_replica *a = (const struct scaling_replica *)left, *b = (const struct scaling_replica *)right;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    return (a->first_pod > b->first_pod) - (a->first_pod < b->first_pod);
}

/* Pods without a group come first after sorting (group -1) and stay as they are. */
static size_t merge_groups(struct scaling_replica *items, size_t n)
{
    qsort(items, n, sizeof(*items), compare_groups);
    size_t kept = 0;
    for (size_t i = 0; i < n;) {
        size_t end = i + 1;
        while (items[i].group >= 0 && end < n && items[end].group == items[i].group)
            end++;
        items[kept++] = end == i + 1 ? items[i] : merge(&items[i], end - i);
        i = end;
    }
    return kept;
}

/* ---- places ---- */

static size_t count_places(const struct scaling_workload *w, const struct scaling_replica *items, size_t n)
{
    int64_t places = w->is_scale_known ? w->replicas.spec : 0;
    for (size_t i = 0; i < n; i++)
        places -= items[i].state != SCALING_POD_GONE;
    return places > 0 ? (size_t)places : 0;
}

static struct scaling_replica place_of(const struct scaling_rules *rules, const struct scaling_workload *w, size_t i)
{
    double age_s = i < w->n_place_ages ? w->place_ages_s[i] : 0;
    return (struct scaling_replica){.state = age_s <= rules->warmup_s ? SCALING_POD_LOADING : SCALING_POD_STUCK,
                                    .reading = SCALING_READ_MISSING,
                                    .is_place = true,
                                    .group = -1};
}

bool scaling_gather(const struct scaling_rules *rules, const struct scaling_workload *w, struct arena *arena,
                    struct scaling_gathered *ret_gathered)
{
    struct scaling_gathered g = {.has_gpu = false};
    count_readings(rules, w, &g);
    bool is_half_read = g.n_ought > 0 && 2 * g.n_read >= g.n_ought;
    size_t places_max = w->is_scale_known && w->replicas.spec > 0 ? (size_t)w->replicas.spec : 0;
    size_t room = w->n_pods + places_max + 1;
    if (places_max > INT32_MAX || w->n_pods > INT32_MAX)
        return false;
    g.items = (struct scaling_replica *)arena_alloc(arena, room * sizeof(*g.items));
    g.scratch = (double *)arena_alloc(arena, room * sizeof(*g.scratch));
    if (!g.items || !g.scratch)
        return false;
    for (size_t i = 0; i < w->n_pods; i++)
        g.items[i] = replica_of(rules, w, i, is_half_read);
    g.n_items = merge_groups(g.items, w->n_pods);
    size_t places = count_places(w, g.items, g.n_items);
    for (size_t i = 0; i < places; i++)
        g.items[g.n_items++] = place_of(rules, w, i);
    *ret_gathered = g;
    return true;
}
