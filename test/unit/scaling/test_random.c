/* scaling: what must hold for every cluster, tried on random ones: intervals are intervals, a hold is one, and two hubs
 * that remember different things never send the HPA in opposite directions. */
#include "scaling/scaling.h"

#include "pods.h"
#include "random.h"

#include <string.h>

enum { PODS_MAX = 14, ARENA_BYTES = 1 << 20 };

/* What both hubs read alike, and what only one of them remembers. */
struct cluster {
    struct scaling_rules rules;
    struct scaling_replicas replicas;
    struct scaling_hpa hpa;
    size_t n_pods;
    struct scaling_pod pods[PODS_MAX];
    double place_ages_s[PODS_MAX];
};

static double random_load(struct random *random, const struct scaling_rules *rules)
{
    double most = rules->ceiling > 0 ? rules->ceiling : 3 * rules->target;
    if (random_is(random, 0.15))
        return random_is(random, 0.5) ? 0 : most;
    return random_double(random, 0, most);
}

/* Readings of a pod that became Ready age_s ago and held its GPU for held_s: consistent with each other. */
static void set_load(struct random *random, const struct scaling_rules *rules, struct scaling_pod *pod, double age_s)
{
    double ready_s = fmin(age_s, rules->window_s);
    double held_s = fmin(rules->window_s, ready_s + (random_is(random, 0.5) ? random_double(random, 0, 40) : 0));
    double m = random_load(random, rules), before = random_load(random, rules);
    double p = held_s > 0 ? (m * ready_s + before * (held_s - ready_s)) / held_s : m;
    pod->reading = SCALING_READ_OK;
    double requests = random_is(random, 0.3) ? 0 : random_is(random, 0.5) ? 1 : random_double(random, 0, 100);
    pod->load = (struct scaling_load){
        .window = KNOWN(p), .since_ready = KNOWN(m), .peak = KNOWN(fmax(m, before)), .weight = requests};
    double low = random_double(random, 0, p), high = random_double(random, p, p + 5);
    pod->memory = (struct scaling_memory){.full = rules->ceiling > 0 ? 100 : 2 * rules->target,
                                          .history_s = random_double(random, 0, 1200),
                                          .lowest = KNOWN(random_is(random, 0.4) ? p : low),
                                          .highest = KNOWN(high),
                                          .lowest_10min = KNOWN(random_is(random, 0.5) ? p : low),
                                          .highest_10min = KNOWN(random_is(random, 0.5) ? p : high),
                                          .utilization = ALL_OF(random_double(random, 0, 100))};
}

static void make_unread(struct random *random, struct scaling_pod *pod, const struct scaling_rules *rules)
{
    static const enum scaling_reading readings[] = {SCALING_READ_MISSING, SCALING_READ_MISSING, SCALING_READ_NOT_YET,
                                                    SCALING_READ_UNSUPPORTED, SCALING_READ_UNSHARED};
    pod->reading = readings[random_int(random, 0, 4)];
    pod->load = (struct scaling_load){.window = UNKNOWN};
    if (pod->reading == SCALING_READ_UNSHARED)
        pod->bound = KNOWN(random_load(random, rules));
}

static struct scaling_pod random_pod(struct random *random, const struct scaling_rules *rules)
{
    struct scaling_pod pod = measured_pod(0);
    double since_s =
        random_is(random, 0.5) ? random_double(random, 0, 2 * rules->window_s) : random_double(random, 0, 2000);
    int64_t kind = random_int(random, 0, 19);
    pod.is_ready = kind < 14;
    pod.condition_age_s = KNOWN(since_s);
    pod.created_age_s = since_s + random_double(random, 0, 900);
    pod.started_age_s = KNOWN(since_s + random_double(random, -20, 60));
    pod.is_deleted = kind == 18;
    pod.phase = kind == 19 ? SCALING_PHASE_PENDING : SCALING_PHASE_RUNNING;
    set_load(random, rules, &pod, pod.is_ready ? since_s : rules->window_s);
    if (random_is(random, 0.2))
        make_unread(random, &pod, rules);
    return pod;
}

/* What a hub remembers: anything, including nothing. */
static void forget(struct random *random, struct cluster *cluster)
{
    double first = random_double(random, 0, 2000);
    for (size_t i = 0; i < PODS_MAX; i++) {
        struct scaling_pod *pod = &cluster->pods[i];
        pod->was_first_ready_seen = random_is(random, 0.5);
        pod->missing_for_s = random_is(random, 0.5) ? random_double(random, 0, 600) : 0;
        pod->last_good = random_is(random, 0.7) ? KNOWN(random_load(random, &cluster->rules)) : UNKNOWN;
        cluster->place_ages_s[i] = first = random_is(random, 0.5) ? first : random_double(random, 0, first);
    }
}

static struct cluster random_cluster(struct random *random, enum scaling_aggregation aggregation)
{
    static const double windows[] = {0, 5, 15, 60, 300};
    struct cluster c = {.rules = rules_of(aggregation)};
    c.rules.target = (double)random_int(random, 20, 95);
    c.rules.window_s = windows[random_int(random, 0, 4)];
    c.rules.is_memory = random_is(random, 0.2);
    c.rules.ceiling = random_is(random, 0.7) ? 100 : 0;
    c.n_pods = (size_t)random_int(random, 0, PODS_MAX);
    int64_t alive = 0;
    bool is_grouped = random_is(random, 0.2);
    for (size_t i = 0; i < c.n_pods; i++) {
        c.pods[i] = random_pod(random, &c.rules);
        c.pods[i].group = is_grouped ? (int64_t)i / 2 : -1;
        alive += !c.pods[i].is_deleted;
    }
    bool is_settled = random_is(random, 0.5);
    c.replicas.spec = is_settled && alive > 0 ? alive : random_int(random, 1, PODS_MAX);
    c.replicas.status = is_settled ? alive : random_int(random, alive, alive + 3);
    c.replicas.ready = scaling_count_ready(c.pods, c.n_pods);
    c.hpa = (struct scaling_hpa){.type = random_is(random, 0.7) ? SCALING_AVERAGE_VALUE : SCALING_VALUE,
                                 .target = c.rules.target,
                                 .tolerance_up = random_is(random, 0.7) ? 0.1 : random_double(random, 0, 0.4),
                                 .tolerance_down = random_is(random, 0.7) ? 0.1 : random_double(random, 0, 0.4)};
    return c;
}

/* A mean over requests. Their numbers are any, or all that has any has the same. */
static void make_weighted(struct random *random, struct cluster *c, bool is_even)
{
    c->rules.is_weighted = true;
    c->rules.is_memory = false;
    c->rules.ceiling = 0;
    for (size_t i = 0; i < c->n_pods; i++) {
        c->pods[i].load.weight = is_even ? c->pods[i].load.weight > 0 : c->pods[i].load.weight;
        c->pods[i].group = is_even ? -1 : c->pods[i].group;
        if (random_is(random, 0.1))
            c->pods[i].load.weight = 0;
    }
}

struct outcome {
    struct scaling_result result;
    struct scaling_answer answer;
};

static struct outcome ask_hub(const struct cluster *c, struct arena *arena)
{
    struct outcome outcome;
    struct scaling_workload workload = {.pods = c->pods,
                                        .n_pods = c->n_pods,
                                        .is_scale_known = true,
                                        .replicas = c->replicas,
                                        .place_ages_s = c->place_ages_s,
                                        .n_place_ages = PODS_MAX};
    scaling_evaluate(&c->rules, &workload, arena, &outcome.result);
    scaling_for_hpa(&c->hpa, &outcome.result, &outcome.answer);
    return outcome;
}

static void print_hub(const struct cluster *c, const struct outcome *o)
{
    BUF_AUTO struct buf text;
    buf_init(&text, 2048);
    scaling_say(&c->rules, &o->result, &o->answer, &text);
    print_error("%s; T %g, S %d, R %d\n", buf_cstr(&text), c->rules.target, (int)c->replicas.status,
                (int)c->replicas.ready);
    for (size_t i = 0; i < o->result.n_items; i++) {
        const struct scaling_replica *r = &o->result.items[i];
        print_error("  %s %s [%g, %g] p %g m %g age %g\n", scaling_pod_state_name(r->state),
                    scaling_reading_name(r->reading), r->lower.is_known ? r->lower.value : -1, r->upper.value,
                    r->load.window.value, r->load.since_ready.value, r->ready_age_s);
    }
}

static int sign_of(int64_t number)
{
    return (number > 0) - (number < 0);
}

/* +1: more than C, -1: less, 0: C, or no valid answer. */
static int direction(const struct outcome *o)
{
    return o->answer.error.class != ERR_NONE ? 0 : sign_of(o->answer.wanted - o->result.replicas.spec);
}

/* The same for what the HPA really proposes. While pods that are wanted do not exist yet (S < C) it may answer S to a
 * hold, whatever is sent; that is not ours. */
static int direction_of_hpa(const struct outcome *o)
{
    bool is_settled = o->result.replicas.status >= o->result.replicas.spec;
    return o->answer.error.class != ERR_NONE || !is_settled ? 0 : sign_of(o->answer.proposal - o->result.replicas.spec);
}

static bool are_opposite(const struct outcome *a, const struct outcome *b)
{
    return direction(a) * direction(b) < 0 || direction_of_hpa(a) * direction_of_hpa(b) < 0;
}

static void test_two_hubs_never_answer_in_opposite_directions(void **state)
{
    (void)state;
    struct random random = random_start("two hubs", 20261130);
    uint64_t rounds = random_rounds(200000), moves = 0, agreed = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        ARENA_AUTO struct arena arena;
        arena_init(&arena, ARENA_BYTES);
        struct cluster a = random_cluster(&random, i % 2 ? SCALING_AVG : SCALING_MAX);
        forget(&random, &a);
        struct cluster b = a;
        forget(&random, &b);
        struct outcome first = ask_hub(&a, &arena), second = ask_hub(&b, &arena);
        moves += direction(&first) != 0 || direction(&second) != 0;
        agreed += direction(&first) != 0 && direction(&first) == direction(&second);
        if (!are_opposite(&first, &second))
            continue;
        print_hub(&a, &first);
        print_hub(&b, &second);
        fail_msg("round %" PRIu64 ": opposite directions", i);
    }
    /* it would prove nothing if hubs held nearly always */
    printf("two hubs: %" PRIu64 " clusters, %" PRIu64 " moved, both alike in %" PRIu64 "\n", rounds, moves, agreed);
    assert_true(moves > rounds / 4 && agreed > rounds / 8 && agreed < moves);
}

static void test_two_hubs_agree_on_means_over_requests_too(void **state)
{
    (void)state;
    struct random random = random_start("two hubs, weighted", 20261201);
    uint64_t rounds = random_rounds(100000), moves = 0, agreed = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        ARENA_AUTO struct arena arena;
        arena_init(&arena, ARENA_BYTES);
        struct cluster a = random_cluster(&random, i % 4 ? SCALING_AVG : SCALING_MAX);
        make_weighted(&random, &a, false);
        forget(&random, &a);
        struct cluster b = a;
        forget(&random, &b);
        struct outcome first = ask_hub(&a, &arena), second = ask_hub(&b, &arena);
        moves += direction(&first) != 0 || direction(&second) != 0;
        agreed += direction(&first) != 0 && direction(&first) == direction(&second);
        if (!are_opposite(&first, &second))
            continue;
        print_hub(&a, &first);
        print_hub(&b, &second);
        fail_msg("round %" PRIu64 ": opposite directions", i);
    }
    printf("two hubs, weighted: %" PRIu64 " clusters, %" PRIu64 " moved, both alike in %" PRIu64 "\n", rounds, moves,
           agreed);
    assert_true(moves > rounds / 8 && agreed > rounds / 16 && agreed < moves);
}

/* ---- several signals ---- */

enum { SIGNALS = 3 };

/* The same pods and what is remembered of them, under another signal. */
static struct cluster other_signal(struct random *random, const struct cluster *first)
{
    struct cluster c = *first;
    c.rules.target = (double)random_int(random, 5, 200);
    c.rules.ceiling = random_is(random, 0.3) ? 200 : 0;
    c.rules.is_memory = false;
    for (size_t i = 0; i < c.n_pods; i++) {
        double age_s = c.pods[i].is_ready ? c.pods[i].condition_age_s.value : c.rules.window_s;
        bool was_read = c.pods[i].reading == SCALING_READ_OK;
        set_load(random, &c.rules, &c.pods[i], age_s);
        if (!was_read || random_is(random, 0.1))
            make_unread(random, &c.pods[i], &c.rules);
    }
    if (random_is(random, 0.4))
        make_weighted(random, &c, false);
    return c;
}

static struct outcome ask_hub_of_all(const struct cluster *signals, size_t n, struct arena *arena)
{
    struct scaling_result parts[SIGNALS];
    struct scaling_hpa hpa = signals[0].hpa;
    struct outcome whole;
    for (size_t i = 0; i < n; i++)
        parts[i] = ask_hub(&signals[i], arena).result;
    hpa.target = 100;
    scaling_combine(parts, n, 100, &whole.result);
    scaling_for_hpa(&hpa, &whole.result, &whole.answer);
    return whole;
}

static void test_two_hubs_agree_on_several_signals_too(void **state)
{
    (void)state;
    struct random random = random_start("two hubs, several signals", 20261202);
    uint64_t rounds = random_rounds(60000), moves = 0, agreed = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        ARENA_AUTO struct arena arena;
        arena_init(&arena, ARENA_BYTES);
        struct cluster a[SIGNALS], b[SIGNALS];
        a[0] = random_cluster(&random, SCALING_AVG);
        size_t n = (size_t)random_int(&random, 2, SIGNALS);
        for (size_t k = 1; k < n; k++)
            a[k] = other_signal(&random, &a[0]);
        for (size_t k = 0; k < n; k++) {
            b[k] = a[k];
            forget(&random, &a[k]);
            forget(&random, &b[k]);
        }
        struct outcome first = ask_hub_of_all(a, n, &arena), second = ask_hub_of_all(b, n, &arena);
        moves += direction(&first) != 0 || direction(&second) != 0;
        agreed += direction(&first) != 0 && direction(&first) == direction(&second);
        if (!are_opposite(&first, &second))
            continue;
        print_hub(&a[0], &first);
        print_hub(&b[0], &second);
        fail_msg("round %" PRIu64 ": opposite directions", i);
    }
    printf("two hubs, several signals: %" PRIu64 " clusters, %" PRIu64 " moved, both alike in %" PRIu64 "\n", rounds,
           moves, agreed);
    assert_true(moves > rounds / 8 && agreed > rounds / 16 && agreed < moves);
}

static void check_intervals(const struct cluster *c, const struct outcome *o)
{
    const struct scaling_result *r = &o->result;
    size_t n = 0;
    for (size_t i = 0; i < r->n_items; i++) {
        const struct scaling_replica *item = &r->items[i];
        bool is_counted = item->state != SCALING_POD_GONE && item->state != SCALING_POD_STUCK;
        n += is_counted;
        bool is_interval = !is_counted || (item->upper.is_known && item->upper.value >= 0 &&
                                           (!item->lower.is_known || item->lower.value <= item->upper.value + 1e-6));
        if (!is_interval) {
            print_hub(c, o);
            fail_msg("no interval at %zu", i);
        }
    }
    bool is_weighed = r->rule == SCALING_RULE_KNOWN || r->rule == SCALING_RULE_GROW || r->rule == SCALING_RULE_SHRINK ||
                      r->rule == SCALING_RULE_HOLD;
    assert_true(!is_weighed || n == r->n);
    bool is_bound = r->lo <= r->hi + 1e-6 || c->rules.aggregation == SCALING_MIN || !is_weighed;
    if (!is_bound) {
        print_hub(c, o);
        fail_msg("lo is above hi");
    }
}

/* What is sent must make the HPA answer d; a hold makes it answer C. */
static void check_answer(const struct cluster *c, const struct outcome *o)
{
    const struct scaling_answer *a = &o->answer;
    if (o->result.error.class != ERR_NONE) {
        assert_int_equal(a->error.class, o->result.error.class);
        return;
    }
    assert_true(isfinite(o->result.value) && o->result.value >= 0 && o->result.value <= 1e12);
    if (a->error.class != ERR_NONE) {
        assert_true(a->wanted == c->replicas.spec && c->replicas.status > c->replicas.spec);
        return;
    }
    assert_true(isfinite(a->value) && a->value >= 0 && a->value <= 1e12);
    assert_int_equal(a->proposal, scaling_hpa_desired(&c->hpa, a->value, &c->replicas));
    bool is_blind = a->fit == SCALING_FIT_NONE || (c->hpa.type == SCALING_VALUE && c->replicas.ready == 0);
    if (!is_blind && a->proposal != a->wanted) {
        print_hub(c, o);
        fail_msg("the HPA answers %d, wanted %d", (int)a->proposal, (int)a->wanted);
    }
    if (o->result.is_hold && a->wanted != c->replicas.spec)
        fail_msg("a hold wants %d of %d", (int)a->wanted, (int)c->replicas.spec);
    assert_true(!(o->result.is_hold && c->hpa.type == SCALING_VALUE) || a->proposal == c->replicas.spec);
}

static void test_every_cluster_gives_intervals_and_an_answer_that_the_hpa_obeys(void **state)
{
    (void)state;
    static const enum scaling_aggregation aggregations[] = {SCALING_AVG, SCALING_MAX, SCALING_MIN, SCALING_P95};
    struct random random = random_start("any cluster", 7);
    uint64_t rounds = random_rounds(20000);
    for (uint64_t i = 0; i < rounds; i++) {
        ARENA_AUTO struct arena arena;
        arena_init(&arena, ARENA_BYTES);
        struct cluster c = random_cluster(&random, aggregations[i % ARRAY_LEN(aggregations)]);
        if (i % 3 == 0)
            make_weighted(&random, &c, false);
        forget(&random, &c);
        struct outcome o = ask_hub(&c, &arena);
        check_answer(&c, &o);
        check_intervals(&c, &o);
    }
}

/* Unknown is not idle, and a missing reading never lowers what is sent below what a hold or the known pods say. */
static void test_a_lost_reading_never_turns_growth_into_shrinking(void **state)
{
    (void)state;
    struct random random = random_start("lost readings", 11);
    uint64_t rounds = random_rounds(20000);
    for (uint64_t i = 0; i < rounds; i++) {
        ARENA_AUTO struct arena arena;
        arena_init(&arena, ARENA_BYTES);
        struct cluster whole = random_cluster(&random, i % 2 ? SCALING_AVG : SCALING_MAX);
        if (i % 3 == 0) /* those that are lost have no more requests than those that are left */
            make_weighted(&random, &whole, true);
        forget(&random, &whole);
        whole.rules.is_memory = false;
        struct cluster lossy = whole;
        for (size_t k = 0; k < lossy.n_pods; k++)
            if (random_is(&random, 0.3)) {
                lossy.pods[k].reading = SCALING_READ_MISSING;
                lossy.pods[k].load = (struct scaling_load){.window = UNKNOWN};
                lossy.pods[k].missing_for_s = random_double(&random, 0, 299);
                lossy.pods[k].last_good = whole.pods[k].load.window;
            }
        struct outcome all = ask_hub(&whole, &arena), some = ask_hub(&lossy, &arena);
        if (!are_opposite(&all, &some))
            continue;
        print_hub(&whole, &all);
        print_hub(&lossy, &some);
        fail_msg("round %" PRIu64 ": opposite directions", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_hubs_never_answer_in_opposite_directions),
        cmocka_unit_test(test_two_hubs_agree_on_means_over_requests_too),
        cmocka_unit_test(test_two_hubs_agree_on_several_signals_too),
        cmocka_unit_test(test_every_cluster_gives_intervals_and_an_answer_that_the_hpa_obeys),
        cmocka_unit_test(test_a_lost_reading_never_turns_growth_into_shrinking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
