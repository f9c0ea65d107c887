/* scaling 2.4 for latencies: means over requests, and what they can be at least and at most. */
#include "scaling/scaling.h"

#include "pods.h"
#include "random.h"

enum { ARENA_BYTES = 1 << 20, PODS_MAX = 12 };

/* A latency with T = 100 ms. */
static struct scaling_rules latency_rules(enum scaling_aggregation aggregation)
{
    struct scaling_rules rules = rules_of(aggregation);
    rules.target = 100;
    rules.ceiling = 0;
    rules.is_engine = rules.is_weighted = true;
    return rules;
}

static struct scaling_pod R(double p, double n) {
    return with_requests(measured_pod(p), n);
}

struct latency_case {
    const char *what;
    enum scaling_aggregation aggregation;
    int64_t c;
    const struct scaling_pod *pods;
    size_t n;
    enum scaling_rule rule;
    double value;
};

static void check_latencies(const struct latency_case *cases, size_t n, enum scaling_on_missing on_missing)
{
    for (size_t i = 0; i < n; i++) {
        ARENA_AUTO struct arena arena;
        arena_init(&arena, ARENA_BYTES);
        struct scaling_rules rules = latency_rules(cases[i].aggregation);
        rules.on_missing = on_missing;
        struct scaling_result r = evaluate_rules(&rules, cases[i].c, cases[i].pods, cases[i].n, &arena);
        if (r.rule != cases[i].rule || !(fabs(r.value - cases[i].value) < 1e-9))
            fail_msg("%s: rule \"%s\", value %g, lo %g, hi %g, n %zu, L %zu", cases[i].what,
                     scaling_rule_sentence(r.rule), r.value, r.lo, r.hi, r.n, r.n_lower);
    }
}

#define RULE(id) SCALING_RULE_##id

static void test_the_mean_is_over_requests_and_idle_pods_neither_add_nor_dilute(void **state)
{
    (void)state;
    const struct latency_case cases[] = {
        {"weighted", SCALING_AVG, 2, PODS(R(200, 1), R(50, 3)), RULE(KNOWN), 175},
        {"sum means avg", SCALING_SUM, 2, PODS(R(200, 1), R(50, 3)), RULE(KNOWN), 175},
        {"one serves, two idle", SCALING_AVG, 3, PODS(R(200, 2), R(0, 0), R(0, 0)), RULE(KNOWN), 600},
        {"all idle", SCALING_AVG, 3, PODS(R(0, 0), R(0, 0), R(0, 0)), RULE(KNOWN), 0},
        {"O62: what more replicas do not help is left out", SCALING_AVG, 2, PODS(R(900, 0), R(50, 1)), RULE(KNOWN),
         100},
        {"O62: alone it asks for nothing", SCALING_AVG, 1, PODS(R(900, 0)), RULE(KNOWN), 0},
        {"a weight that is no number is none", SCALING_AVG, 2, PODS(R(900, (double)NAN), R(50, 1)), RULE(KNOWN), 100},
        {"a negative one too", SCALING_AVG, 2, PODS(R(900, -3), R(50, 1)), RULE(KNOWN), 100},
        {"a surge is no load", SCALING_AVG, 2, PODS(R(80, 1), R(80, 1), R(80, 1)), RULE(KNOWN), 160},
        {"gone pods do not count", SCALING_AVG, 1, PODS(R(80, 1), with_requests(deleted_pod(900), 9)), RULE(KNOWN), 80},
        {"a hung pod has its place in the number", SCALING_AVG, 2, PODS(R(80, 1), unready_pod(600, 0)), RULE(KNOWN),
         160},
        {"max", SCALING_MAX, 3, PODS(R(200, 1), R(900, 0), R(50, 5)), RULE(KNOWN), 600},
        {"min", SCALING_MIN, 3, PODS(R(200, 1), R(0, 0), R(50, 5)), RULE(KNOWN), 150},
        {"p95 without requests", SCALING_P95, 3, PODS(R(0, 0), R(0, 0), R(0, 0)), RULE(KNOWN), 0},
        {"min: a hung one without requests", SCALING_MIN, 2, PODS(R(50, 1), unready_pod(600, 0)), RULE(KNOWN), 100},
        {"max without requests", SCALING_MAX, 1, PODS(R(7, 0)), RULE(KNOWN), 0},
    };
    check_latencies(cases, ARRAY_LEN(cases), SCALING_CONSERVATIVE);
}

static void test_what_is_not_known_can_be_any_latency_but_not_hide_what_is(void **state)
{
    (void)state;
    const struct scaling_pod loading = pending_pod(10), missing = missing_pod(5), lost = missing_pod(400),
                             unready = with_requests(unready_pod(30, 40), 1), stuck = pending_pod(2000),
                             quiet = with_requests(unready_pod(30, 0), 0),
                             young = with_requests(fresh_pod(true, 7.5, 90, 90), 1);
    struct scaling_pod last = missing;
    last.last_good = KNOWN(700);
    const struct latency_case cases[] = {
        {"what is known asks for more", SCALING_AVG, 3, PODS(R(300, 1), R(300, 1), missing), RULE(GROW), 600},
        {"a missing pod may have all the requests", SCALING_AVG, 3, PODS(R(10, 9), R(10, 9), missing), RULE(HOLD), 300},
        {"at its last latency", SCALING_AVG, 3, PODS(R(10, 9), R(10, 9), last), RULE(HOLD), 300},
        {"one of few requests says little of the rest", SCALING_AVG, 4, PODS(R(300, 1), R(10, 50), missing, missing),
         RULE(HOLD), 400},
        {"for 5 minutes: like the others", SCALING_AVG, 3, PODS(R(50, 1), R(50, 3), lost), RULE(KNOWN), 150},
        {"nobody read", SCALING_AVG, 2, PODS(missing, missing), RULE(NOTHING_READ), 0},
        {"a loading pod is at most T", SCALING_AVG, 3, PODS(R(10, 1), R(10, 1), loading), RULE(SHRINK), 120},
        {"it takes its part of the load", SCALING_AVG, 2, PODS(R(150, 1), loading), RULE(HOLD), 200},
        {"with idle ones", SCALING_AVG, 4, PODS(R(0, 0), R(0, 0), R(0, 0), loading), RULE(SHRINK), 100},
        {"alone", SCALING_AVG, 2, PODS(loading, loading), RULE(HOLD_LOADING), 200},
        {"O60: a stuck one is not counted", SCALING_AVG, 2, PODS(R(90, 1), stuck), RULE(KNOWN), 90},
        {"unready: overload may be why", SCALING_AVG, 2, PODS(R(40, 1), unready), RULE(HOLD), 200},
        {"unready without requests", SCALING_AVG, 2, PODS(R(40, 1), quiet), RULE(HOLD), 200},
        {"young: between its part of the window and what it does", SCALING_AVG, 2, PODS(R(40, 1), young), RULE(HOLD),
         200},
        {"max: what is known asks for more", SCALING_MAX, 3, PODS(R(300, 1), R(0, 0), missing), RULE(GROW), 600},
        {"max: unready without requests", SCALING_MAX, 2, PODS(R(40, 1), quiet), RULE(HOLD), 200},
        {"idle, loading and lost", SCALING_AVG, 3, PODS(R(0, 0), loading, lost), RULE(SHRINK), 150},
        {"max: the missing one may be the busiest", SCALING_MAX, 3, PODS(R(10, 1), R(0, 0), missing), RULE(HOLD), 300},
    };
    check_latencies(cases, ARRAY_LEN(cases), SCALING_CONSERVATIVE);
    const struct latency_case ignored[] = {
        {"left out", SCALING_AVG, 3, PODS(R(10, 1), R(10, 1), missing), RULE(KNOWN), 20},
        {"left out of max", SCALING_MAX, 3, PODS(R(10, 1), R(10, 0), missing), RULE(KNOWN), 20},
    };
    check_latencies(ignored, ARRAY_LEN(ignored), SCALING_IGNORE_MISSING);
}

static void test_a_group_is_the_mean_of_its_members_requests(void **state)
{
    (void)state;
    ARENA_AUTO struct arena arena;
    arena_init(&arena, ARENA_BYTES);
    struct scaling_rules rules = latency_rules(SCALING_AVG);
    struct scaling_pod pods[] = {R(100, 3), R(200, 1), R(50, 4)};
    pods[0].group = pods[1].group = 0;
    pods[2].group = 1;
    struct scaling_result r = evaluate_rules(&rules, 2, pods, ARRAY_LEN(pods), &arena);
    assert_int_equal(r.rule, SCALING_RULE_KNOWN);
    assert_double_near(r.value, 2 * (125.0 * 4 + 50 * 4) / 8, 1e-9);
}

static void test_a_pod_taken_to_be_like_the_others_has_their_mean(void **state)
{
    (void)state;
    ARENA_AUTO struct arena arena;
    arena_init(&arena, ARENA_BYTES);
    const struct scaling_rules rules = latency_rules(SCALING_AVG);
    struct scaling_result r = evaluate_rules(&rules, 3, PODS(R(50, 1), R(90, 3), missing_pod(400)), &arena);
    assert_double_near(r.a_lowers, 80, 1e-9);
    assert_int_equal(r.items[2].state, SCALING_POD_UNOBSERVABLE);
    assert_known_same(r.items[2].lower, KNOWN(80));
    assert_known_same(r.items[2].upper, KNOWN(80));
}

static void test_with_equal_requests_it_is_the_plain_mean(void **state)
{
    (void)state;
    struct random random = random_start("equal weights", 3);
    uint64_t rounds = random_rounds(2000), moved = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        ARENA_AUTO struct arena arena;
        arena_init(&arena, ARENA_BYTES);
        struct scaling_rules rules = latency_rules(SCALING_AVG), plain = rules;
        plain.is_weighted = false;
        struct scaling_pod pods[PODS_MAX];
        size_t n = (size_t)random_int(&random, 1, PODS_MAX), n_loading = 0;
        for (size_t k = 0; k < n; k++) {
            bool is_loading = random_is(&random, 0.2);
            pods[k] = is_loading ? pending_pod(20) : R(random_double(&random, 1, 300), 5);
            n_loading += is_loading;
        }
        struct scaling_result a = evaluate_rules(&rules, (int64_t)n, pods, n, &arena),
                              b = evaluate_rules(&plain, (int64_t)n, pods, n, &arena);
        assert_double_near(a.lo, b.lo, 1e-6);
        assert_true(a.hi >= b.hi - 1e-6); /* those above T are not diluted by what loads */
        moved += n_loading > 0 && a.rule != SCALING_RULE_HOLD;
    }
    assert_true(moved > rounds / 10);
}

/* ---- the ends are ends ---- */

static struct scaling_pod random_pod(struct random *random)
{
    double p = random_double(random, 0, 300), n = random_is(random, 0.3) ? 0 : random_double(random, 0.1, 50);
    switch (random_int(random, 0, 7)) {
    case 0:
        return missing_pod(random_double(random, 0, 290));
    case 1:
        return pending_pod(random_double(random, 0, 800));
    case 2:
        return with_requests(unready_pod(random_double(random, 1, 290), p), n);
    case 3:
        return with_requests(fresh_pod(true, random_double(random, 0, 14), p, p), n);
    case 4:
        return missing_pod(400);
    default:
        return R(p, n);
    }
}

/* One way that it may be: latencies within the intervals, requests as they are known. Those of a pod that is not known
 * go up to `most`. */
static double sample(struct random *random, const struct scaling_result *r, double most, bool is_upper)
{
    double sum = 0, weight = 0;
    for (size_t i = 0; i < r->n_items; i++) {
        const struct scaling_replica *item = &r->items[i];
        if (item->state == SCALING_POD_STUCK || item->state == SCALING_POD_UNOBSERVABLE)
            continue;
        double low = item->lower.is_known ? item->lower.value : 0, w = item->load.weight;
        bool is_end = random_is(random, 0.5);
        double p = is_end ? (is_upper ? item->upper.value : low) : random_double(random, low, item->upper.value);
        if (!item->lower.is_known) {
            bool is_any = is_upper && item->state == SCALING_POD_MISSING;
            w = random_is(random, 0.3) ? 0 : random_double(random, 0, is_any ? 1000 * most : most);
        }
        sum += p * w;
        weight += w;
    }
    return weight > 0 ? sum / weight : 0;
}

static void test_no_way_that_it_may_be_is_outside_of_lo_and_hi(void **state)
{
    (void)state;
    struct random random = random_start("weighted ends", 5);
    uint64_t rounds = random_rounds(20000), tight = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        ARENA_AUTO struct arena arena;
        arena_init(&arena, ARENA_BYTES);
        struct scaling_rules rules = latency_rules(SCALING_AVG);
        struct scaling_pod pods[PODS_MAX];
        size_t n = (size_t)random_int(&random, 1, PODS_MAX);
        for (size_t k = 0; k < n; k++)
            pods[k] = random_pod(&random);
        struct scaling_result r = evaluate_rules(&rules, (int64_t)n, pods, n, &arena);
        bool is_weighed = r.rule == SCALING_RULE_KNOWN || r.rule == SCALING_RULE_GROW ||
                          r.rule == SCALING_RULE_SHRINK || r.rule == SCALING_RULE_HOLD;
        double most = 0, least = (double)INFINITY, largest = 0;
        for (size_t k = 0; k < r.n_items; k++)
            if (r.items[k].lower.is_known && r.items[k].state != SCALING_POD_UNOBSERVABLE)
                most = fmax(most, r.items[k].load.weight);
        if (!is_weighed || !(most > 0))
            continue;
        for (int k = 0; k < 20; k++) {
            least = fmin(least, (double)r.n * sample(&random, &r, most, false));
            largest = fmax(largest, (double)r.n * sample(&random, &r, most, true));
        }
        if (least < r.lo - 1e-6 || largest > r.hi + 1e-6)
            fail_msg("round %" PRIu64 ": [%g, %g] outside of [%g, %g]", i, least, largest, r.lo, r.hi);
        tight += largest > 0.9 * r.hi || least < 1.1 * r.lo;
    }
    assert_true(tight > rounds / 4); /* ends that are far away would prove nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_mean_is_over_requests_and_idle_pods_neither_add_nor_dilute),
        cmocka_unit_test(test_what_is_not_known_can_be_any_latency_but_not_hide_what_is),
        cmocka_unit_test(test_a_group_is_the_mean_of_its_members_requests),
        cmocka_unit_test(test_a_pod_taken_to_be_like_the_others_has_their_mean),
        cmocka_unit_test(test_with_equal_requests_it_is_the_plain_mean),
        cmocka_unit_test(test_no_way_that_it_may_be_is_outside_of_lo_and_hi),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
