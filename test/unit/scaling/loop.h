/* A cluster in a closed loop, second by second: demand spread over pods that take their time to load, agents that fall
 * silent, rollouts with surge, and the HPA's arithmetic with its behaviour. Utilisation is in percent of one GPU. */
#ifndef TEST_SCALING_LOOP_H
#define TEST_SCALING_LOOP_H

#include "scaling/scaling.h"

#include "random.h"

#include <math.h>
#include <string.h>

enum { LOOP_PODS = 96, LOOP_SECONDS = 7200, LOOP_NODES = 6, LOOP_SYNC_S = 15 };

struct loop_demand {
    double at_s, percent; /* straight lines between these */
};

struct loop_setting {
    struct scaling_rules rules;
    struct scaling_hpa hpa;
    struct scaling_behaviour behaviour;
    struct loop_demand demand[6];
    size_t n_demand;
    double load_s, load_spread_s; /* from creation to Ready */
    double hot;                   /* the first pod gets (1 + hot) times as much as the others */
    double jitter;                /* and each pod up to this share more or less */
    double load_percent;          /* what a loading pod does to its GPU */
    double terminate_s;
    int64_t rollout_at_s[3]; /* 0: none */
    int64_t surge;           /* of a rollout; 0: a quarter, rounded up */
    struct {
        int64_t from_s, to_s;
        int node;
    } outages[3];
    bool is_forgetful; /* a hub that saw no pod become Ready for the first time */
    bool is_plain;     /* N times the aggregate of what is Ready and read: the rule that ours replaces */
    int64_t start;
    int nodes; /* 0: all */
};

struct loop_pod {
    bool is_used, is_deleted, is_old; /* is_old: of the template before the rollout */
    int64_t created_s, ready_s, gone_s;
    double weight; /* of the demand */
    int node;
    double sums[LOOP_SECONDS + 1]; /* of utilisation, from second 0 to the index */
    int64_t missing_since_s;
};

struct loop {
    const struct loop_setting *setting;
    struct random random;
    int64_t now_s, spec;
    struct loop_pod pods[LOOP_PODS];
    int64_t place_since_s[LOOP_PODS];
    size_t n_places;
    struct scaling_history history;
    int64_t counts[LOOP_SECONDS]; /* spec.replicas */
    int64_t proposals;            /* syncs with a valid answer */
    uint64_t holds;
    double served, wanted;
};

static inline double loop_demand_at(const struct loop_setting *s, double t)
{
    for (size_t i = 1; i < s->n_demand; i++) {
        const struct loop_demand *from = &s->demand[i - 1], *to = &s->demand[i];
        if (t < to->at_s)
            return from->percent + (to->percent - from->percent) * (t - from->at_s) / (to->at_s - from->at_s);
    }
    return s->demand[s->n_demand - 1].percent;
}

static inline bool loop_is_serving(const struct loop *l, const struct loop_pod *pod)
{
    return pod->is_used && !pod->is_deleted && pod->ready_s <= l->now_s;
}

static inline int64_t loop_alive(const struct loop *l)
{
    int64_t n = 0;
    for (size_t i = 0; i < LOOP_PODS; i++)
        n += l->pods[i].is_used && !l->pods[i].is_deleted;
    return n;
}

static inline void loop_create(struct loop *l, bool is_ready)
{
    const struct loop_setting *s = l->setting;
    struct loop_pod *pod = NULL;
    for (size_t i = 0; i < LOOP_PODS && !pod; i++)
        pod = l->pods[i].is_used ? NULL : &l->pods[i];
    if (!pod)
        return;
    memset(pod, 0, sizeof(*pod));
    double load_s = s->load_s + random_double(&l->random, 0, s->load_spread_s);
    pod->is_used = true;
    pod->created_s = is_ready ? -3600 : l->now_s;
    pod->ready_s = is_ready ? -1800 : l->now_s + (int64_t)load_s;
    pod->weight = 1 + random_double(&l->random, -s->jitter, s->jitter);
    pod->node = (int)random_int(&l->random, 0, (s->nodes > 0 ? s->nodes : LOOP_NODES) - 1);
    pod->missing_since_s = -1;
}

static inline void loop_delete(struct loop *l, struct loop_pod *pod)
{
    pod->is_deleted = true;
    pod->gone_s = l->now_s + (int64_t)l->setting->terminate_s;
}

/* Which pod a scale-down takes: not Ready ones first, then the youngest. */
static inline struct loop_pod *loop_victim(struct loop *l)
{
    struct loop_pod *victim = NULL;
    for (size_t i = 0; i < LOOP_PODS; i++) {
        struct loop_pod *pod = &l->pods[i];
        if (pod->is_used && !pod->is_deleted && (!victim || pod->ready_s > victim->ready_s))
            victim = pod;
    }
    return victim;
}

/* The Deployment's controller: as many as wanted; in a rollout a quarter more, and an old one goes for each new Ready.
 */
static inline void loop_reconcile(struct loop *l)
{
    int64_t alive = loop_alive(l), old = 0, ready = 0;
    struct loop_pod *oldest = NULL;
    for (size_t i = 0; i < LOOP_PODS; i++) {
        struct loop_pod *pod = &l->pods[i];
        bool is_alive = pod->is_used && !pod->is_deleted;
        ready += is_alive && loop_is_serving(l, pod);
        old += is_alive && pod->is_old;
        if (is_alive && pod->is_old && !oldest)
            oldest = pod;
    }
    int64_t surge = old == 0 ? 0 : l->setting->surge > 0 ? l->setting->surge : (l->spec + 3) / 4;
    if (old > 0 && ready > l->spec && oldest)
        loop_delete(l, oldest);
    int64_t wanted = l->spec + (surge < old ? surge : old);
    if (alive < wanted && l->now_s % 2 == 0)
        loop_create(l, false);
    if (old == 0 && alive > l->spec)
        loop_delete(l, loop_victim(l));
    else if (old > 0 && alive > l->spec + surge && oldest)
        loop_delete(l, oldest);
}

static inline void loop_start_rollout(struct loop *l)
{
    for (size_t i = 0; i < LOOP_PODS; i++)
        l->pods[i].is_old = l->pods[i].is_used && !l->pods[i].is_deleted;
}

/* What each pod does with a demand; the first one that serves is the hot one. Returns the sum. */
static inline double loop_spread(const struct loop *l, double demand, double *ret_loads)
{
    double weights = 0, sum = 0;
    for (size_t i = 0; i < LOOP_PODS; i++) {
        bool is_serving = loop_is_serving(l, &l->pods[i]);
        ret_loads[i] = is_serving ? l->pods[i].weight + (weights > 0 ? 0 : l->setting->hot) : 0;
        weights += ret_loads[i];
    }
    for (size_t i = 0; i < LOOP_PODS; i++) {
        ret_loads[i] = weights > 0 ? fmin(100, demand * ret_loads[i] / weights) : 0;
        sum += ret_loads[i];
    }
    return sum;
}

/* One second of load on every GPU. */
static inline void loop_serve(struct loop *l)
{
    double loads[LOOP_PODS], demand = loop_demand_at(l->setting, (double)l->now_s);
    l->served += loop_spread(l, demand, loads);
    l->wanted += demand;
    for (size_t i = 0; i < LOOP_PODS; i++) {
        struct loop_pod *pod = &l->pods[i];
        if (!pod->is_used)
            continue;
        bool is_loading = !pod->is_deleted && pod->ready_s > l->now_s;
        pod->sums[l->now_s + 1] = pod->sums[l->now_s] + (is_loading ? l->setting->load_percent : loads[i]);
        if (pod->is_deleted && pod->gone_s <= l->now_s)
            pod->is_used = false;
    }
}

static inline double loop_mean(const struct loop *l, const struct loop_pod *pod, int64_t since_s)
{
    int64_t from = since_s < 0 ? 0 : since_s;
    return from >= l->now_s ? 0 : (pod->sums[l->now_s] - pod->sums[from]) / (double)(l->now_s - from);
}

static inline bool loop_is_out(const struct loop *l, int node)
{
    for (size_t i = 0; i < 3; i++)
        if (l->setting->outages[i].node == node && l->setting->outages[i].from_s <= l->now_s &&
            l->now_s < l->setting->outages[i].to_s)
            return true;
    return false;
}

static inline int64_t loop_later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline struct scaling_maybe loop_known(double value)
{
    return (struct scaling_maybe){.is_known = true, .value = value};
}

/* What the hub knows of a pod. */
static inline struct scaling_pod loop_observe(struct loop *l, struct loop_pod *pod)
{
    int64_t window_s = (int64_t)l->setting->rules.window_s, from_s = l->now_s - (window_s > 0 ? window_s : 1);
    bool is_ready = pod->ready_s <= l->now_s;
    struct scaling_pod seen = {.phase = SCALING_PHASE_RUNNING,
                               .is_deleted = pod->is_deleted,
                               .is_ready = is_ready && !pod->is_deleted,
                               .created_age_s = (double)(l->now_s - pod->created_s),
                               .condition_age_s =
                                   loop_known((double)(l->now_s - (is_ready ? pod->ready_s : pod->created_s))),
                               .started_age_s = loop_known((double)(l->now_s - pod->created_s)),
                               .was_first_ready_seen = !l->setting->is_forgetful,
                               .has_gpu = true,
                               .group = -1};
    bool is_missing = loop_is_out(l, pod->node);
    pod->missing_since_s = !is_missing ? -1 : pod->missing_since_s < 0 ? l->now_s : pod->missing_since_s;
    if (is_missing) {
        seen.reading = SCALING_READ_MISSING;
        seen.missing_for_s = (double)(l->now_s - pod->missing_since_s);
        return seen;
    }
    seen.reading = is_ready && pod->ready_s == l->now_s ? SCALING_READ_NOT_YET : SCALING_READ_OK;
    if (seen.reading == SCALING_READ_NOT_YET)
        return seen;
    seen.load.window = loop_known(loop_mean(l, pod, loop_later(from_s, pod->created_s)));
    seen.load.since_ready = loop_known(loop_mean(l, pod, loop_later(from_s, pod->ready_s)));
    seen.load.peak = seen.load.window;
    return seen;
}

/* Places without a pod, and since when the hub sees them: the longest-waiting one is taken first. */
static inline void loop_watch_places(struct loop *l, int64_t alive)
{
    size_t places = l->spec > alive ? (size_t)(l->spec - alive) : 0;
    while (l->n_places > places) {
        memmove(l->place_since_s, l->place_since_s + 1, (LOOP_PODS - 1) * sizeof(int64_t));
        l->n_places--;
    }
    while (l->n_places < places && l->n_places < LOOP_PODS)
        l->place_since_s[l->n_places++] = l->now_s;
}

/* N times the aggregate of the pods that are Ready and read. */
static inline struct scaling_result loop_plain(const struct loop *l, const struct scaling_pod *pods, size_t n,
                                               struct scaling_replicas replicas)
{
    double values[LOOP_PODS];
    size_t n_values = 0;
    for (size_t i = 0; i < n; i++)
        if (pods[i].is_ready && pods[i].load.window.is_known)
            values[n_values++] = pods[i].load.window.value;
    struct scaling_result result = {.rule = SCALING_RULE_KNOWN, .replicas = replicas};
    if (n_values == 0)
        (void)err_set(&result.error, ERR_UNAVAILABLE, "nothing");
    else
        result.value = (double)n_values * scaling_aggregate(l->setting->rules.aggregation, values, n_values);
    return result;
}

static inline struct scaling_result loop_measure(struct loop *l, struct arena *arena)
{
    struct scaling_pod pods[LOOP_PODS];
    double ages[LOOP_PODS];
    size_t n = 0;
    for (size_t i = 0; i < LOOP_PODS; i++)
        if (l->pods[i].is_used)
            pods[n++] = loop_observe(l, &l->pods[i]);
    int64_t alive = loop_alive(l);
    loop_watch_places(l, alive);
    for (size_t i = 0; i < l->n_places; i++)
        ages[i] = (double)(l->now_s - l->place_since_s[i]);
    struct scaling_replicas replicas = {.spec = l->spec, .status = alive, .ready = scaling_count_ready(pods, n)};
    if (l->setting->is_plain)
        return loop_plain(l, pods, n, replicas);
    struct scaling_workload workload = {.pods = pods,
                                        .n_pods = n,
                                        .is_scale_known = true,
                                        .replicas = replicas,
                                        .place_ages_s = ages,
                                        .n_place_ages = l->n_places};
    struct scaling_result result;
    scaling_evaluate(&l->setting->rules, &workload, arena, &result);
    return result;
}

/* One sync of the HPA: without a valid metric it changes nothing. */
static inline void loop_sync(struct loop *l)
{
    struct arena arena;
    arena_init(&arena, 1 << 20);
    struct scaling_result result = loop_measure(l, &arena);
    l->holds += result.is_hold;
    struct scaling_answer answer = {.value = result.value, .error = result.error};
    if (!l->setting->is_plain)
        scaling_for_hpa(&l->setting->hpa, &result, &answer);
    if (answer.error.class == ERR_NONE) {
        int64_t proposal = scaling_hpa_desired(&l->setting->hpa, answer.value, &result.replicas);
        l->spec = scaling_hpa_limit(&l->setting->behaviour, &l->history, l->now_s, l->spec, proposal);
        l->proposals++;
    }
    arena_fini(&arena);
}

static inline void loop_run(struct loop *l, const struct loop_setting *setting, uint64_t seed)
{
    memset(l, 0, sizeof(*l));
    l->setting = setting;
    l->random.state = seed;
    l->spec = setting->start;
    for (int64_t i = 0; i < setting->start; i++)
        loop_create(l, true);
    for (l->now_s = 0; l->now_s < LOOP_SECONDS; l->now_s++) {
        for (size_t i = 0; i < 3; i++)
            if (setting->rollout_at_s[i] == l->now_s && l->now_s > 0)
                loop_start_rollout(l);
        if (l->now_s % LOOP_SYNC_S == 0 && l->now_s > 0)
            loop_sync(l);
        l->counts[l->now_s] = l->spec;
        loop_reconcile(l);
        loop_serve(l);
    }
}

/* How often the count changed its direction, from a second on. */
static inline int loop_turns(const struct loop *l, int64_t from_s)
{
    int turns = 0, before = 0;
    for (int64_t t = from_s + 1; t < LOOP_SECONDS; t++) {
        int sign = (l->counts[t] > l->counts[t - 1]) - (l->counts[t] < l->counts[t - 1]);
        turns += sign && before && sign != before;
        before = sign ? sign : before;
    }
    return turns;
}

/* The count that is right for a demand: where the HPA stays. Several may be, within the tolerance. */
static inline bool loop_is_right(const struct loop *l, double demand, int64_t n)
{
    const struct loop_setting *s = l->setting;
    double loads[LOOP_PODS], busiest = 0, total = loop_spread(l, demand, loads);
    for (size_t i = 0; i < LOOP_PODS; i++)
        busiest = fmax(busiest, loads[i]);
    double value = s->rules.aggregation == SCALING_MAX ? busiest * (double)n : total;
    double ratio = value / (s->rules.target * (double)n);
    bool is_within = ratio >= 1 - s->hpa.tolerance_down - 1e-9 && ratio <= 1 + s->hpa.tolerance_up + 1e-9;
    return is_within || (int64_t)ceil(value / s->rules.target - 1e-6) == n || n == s->behaviour.max ||
           n == s->behaviour.min;
}

#endif
