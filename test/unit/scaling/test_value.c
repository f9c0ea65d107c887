/* scaling 2.4, 2.6, 2.9 and 4: one value and one activity from the pods of a workload. */
#include "scaling/scaling.h"

#include "pods.h"

#include <stdio.h>
#include <string.h>

enum { ARENA_BYTES = 1 << 20 };

struct value_case {
    const char *what;
    enum scaling_aggregation aggregation;
    int64_t c;
    const struct scaling_pod *pods;
    size_t n;
    enum scaling_rule rule;
    double value;
};

static void check_values(const struct scaling_rules *base, const struct value_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ARENA_AUTO struct arena arena;
        arena_init(&arena, ARENA_BYTES);
        struct scaling_rules rules = *base;
        rules.aggregation = cases[i].aggregation;
        struct scaling_result r = evaluate_rules(&rules, cases[i].c, cases[i].pods, cases[i].n, &arena);
        bool is_same = r.rule == cases[i].rule && fabs(r.value - cases[i].value) < 1e-9 &&
                       (r.error.class == ERR_NONE || r.value == 0);
        if (!is_same)
            fail_msg("%s: rule \"%s\", value %g, lo %g, hi %g, n %zu, L %zu", cases[i].what,
                     scaling_rule_sentence(r.rule), r.value, r.lo, r.hi, r.n, r.n_lower);
    }
}

#define OK_RULE(id) SCALING_RULE_##id
#define M(p)        measured_pod(p)

static void test_known_pods_give_their_own_value(void **state)
{
    (void)state;
    const struct scaling_rules rules = rules_of(SCALING_AVG);
    const struct value_case cases[] = {
        {"avg: the sum of all", SCALING_AVG, 3, PODS(M(80), M(40), M(90)), OK_RULE(KNOWN), 210},
        {"sum means avg", SCALING_SUM, 3, PODS(M(80), M(40), M(90)), OK_RULE(KNOWN), 210},
        {"max: as if all were the busiest", SCALING_MAX, 3, PODS(M(80), M(40), M(90)), OK_RULE(KNOWN), 270},
        {"min", SCALING_MIN, 3, PODS(M(80), M(40), M(90)), OK_RULE(KNOWN), 120},
        {"p95 of three is their maximum", SCALING_P95, 3, PODS(M(80), M(40), M(90)), OK_RULE(KNOWN), 270},
        {"idle", SCALING_AVG, 2, PODS(M(0), M(0)), OK_RULE(KNOWN), 0},
        {"O75: 90/10/10", SCALING_AVG, 3, PODS(M(90), M(10), M(10)), OK_RULE(KNOWN), 110},
        {"avg counts a surge pod's load", SCALING_AVG, 3, PODS(M(80), M(80), M(80), M(80)), OK_RULE(KNOWN), 320},
        {"max: a surge is no load", SCALING_MAX, 3, PODS(M(80), M(80), M(80), M(80)), OK_RULE(KNOWN), 240},
        {"min: neither", SCALING_MIN, 3, PODS(M(80), M(80), M(80), M(80)), OK_RULE(KNOWN), 240},
        {"p99: neither", SCALING_P99, 3, PODS(M(80), M(80), M(80), M(80)), OK_RULE(KNOWN), 240},
        {"gone pods do not count", SCALING_AVG, 2, PODS(M(80), M(40), deleted_pod(100)), OK_RULE(KNOWN), 120},
        {"hung counts T under avg", SCALING_AVG, 2, PODS(M(50), unready_pod(600, 0)), OK_RULE(KNOWN), 130},
        {"hung counts p under max", SCALING_MAX, 2, PODS(M(50), unready_pod(600, 0)), OK_RULE(KNOWN), 100},
        {"O60: a stuck pod is not counted", SCALING_AVG, 3, PODS(M(40), M(30), pending_pod(3600)), OK_RULE(KNOWN), 70},
        {"less than a milli apart is the same", SCALING_AVG, 2, PODS(M(50), unready_pod(60, 79.9999)), OK_RULE(KNOWN),
         129.9999},
    };
    check_values(&rules, cases, ARRAY_LEN(cases));
}

static void test_what_is_known_grows_the_worst_case_shrinks_else_hold(void **state)
{
    (void)state;
    const struct scaling_rules rules = rules_of(SCALING_AVG);
    const struct value_case cases[] = {
        {"lo just asks for C", SCALING_AVG, 2, PODS(M(100), M(60), pending_pod(5)), OK_RULE(HOLD), 160},
        {"lo asks for more", SCALING_AVG, 2, PODS(M(100), M(60.001), pending_pod(5)), OK_RULE(GROW), 160.001},
        {"half a milli is none", SCALING_AVG, 2, PODS(M(100), M(60.0004), pending_pod(5)), OK_RULE(HOLD), 160},
        {"hi just asks for C - 1", SCALING_AVG, 4, PODS(M(30), M(30), M(100), pending_pod(5)), OK_RULE(SHRINK), 240},
        {"hi asks for C", SCALING_AVG, 4, PODS(M(30), M(30), M(100.001), pending_pod(5)), OK_RULE(HOLD), 320},
        {"O35: one pending of four, the load is the same", SCALING_AVG, 4, PODS(M(80), M(80), M(80), pending_pod(60)),
         OK_RULE(HOLD), 320},
        {"O35: the demand grew", SCALING_AVG, 4, PODS(M(100), M(100), M(100), pending_pod(60), M(100)), OK_RULE(GROW),
         400},
        {"a place without a pod is loading", SCALING_AVG, 4, PODS(M(80), M(80), M(80)), OK_RULE(HOLD), 320},
        {"an agent is down: no scale-down", SCALING_AVG, 4, PODS(M(60), M(60), M(60), missing_pod(10)), OK_RULE(HOLD),
         320},
        {"an agent is down: growth by what is known", SCALING_AVG, 2, PODS(M(100), M(100), missing_pod(10)),
         OK_RULE(GROW), 200},
        {"an agent is down: even at its ceiling there is less to do", SCALING_AVG, 4,
         PODS(M(20), M(20), M(20), missing_pod(10)), OK_RULE(SHRINK), 160},
        {"unobservable: like the others", SCALING_AVG, 4, PODS(M(40), M(40), M(40), missing_pod(300)), OK_RULE(KNOWN),
         160},
        {"below half they stay missing", SCALING_AVG, 4, PODS(M(40), missing_pod(900), missing_pod(900)), OK_RULE(HOLD),
         320},
        {"half is enough", SCALING_AVG, 2, PODS(M(40), missing_pod(900)), OK_RULE(KNOWN), 80},
        {"readiness flaps", SCALING_AVG, 3, PODS(M(80), unready_pod(20, 0), M(80)), OK_RULE(HOLD), 240},
        {"O19: unready under overload still counts", SCALING_AVG, 3,
         PODS(unready_pod(20, 100), unready_pod(20, 100), unready_pod(20, 100)), OK_RULE(KNOWN), 300},
        {"max: the busiest's window remembers the time before its new neighbour", SCALING_MAX, 5,
         PODS(M(95), M(95), M(95), M(95), fresh_pod(true, 5, 60, 60)), OK_RULE(HOLD), 400},
        {"max: what is measured asks for more", SCALING_MAX, 4,
         PODS(M(100), M(95), M(95), M(95), fresh_pod(true, 5, 60, 60)), OK_RULE(GROW), 400},
        {"max: the factor is at most C", SCALING_MAX, 3, PODS(M(100), M(10), M(10), M(10), pending_pod(3)),
         OK_RULE(GROW), 300},
        {"max: missing at the ceiling holds", SCALING_MAX, 4, PODS(M(70), M(70), M(70), missing_pod(3)), OK_RULE(HOLD),
         320},
        {"max: loading never raises hi beyond a(lowers)", SCALING_MAX, 4, PODS(M(50), M(40), M(30), pending_pod(3)),
         OK_RULE(SHRINK), 200},
        {"young counts its load", SCALING_AVG, 3, PODS(M(20), M(20), fresh_pod(true, 5, 60, 30)), OK_RULE(SHRINK), 100},
        {"ready again may be at T", SCALING_AVG, 3, PODS(M(80), M(70), fresh_pod(false, 5, 9, 3)), OK_RULE(HOLD), 240},
        {"a large deployment does not collapse", SCALING_AVG, 10,
         PODS(M(100), M(100), M(100), M(100), M(100), M(100), M(100), M(100), M(100), M(100)), OK_RULE(KNOWN), 1000},
    };
    check_values(&rules, cases, ARRAY_LEN(cases));
}

static void test_nothing_to_measure_is_decided_first(void **state)
{
    (void)state;
    const struct scaling_rules rules = rules_of(SCALING_AVG);
    struct scaling_pod not_yet = fresh_pod(true, 1, 0, 0);
    not_yet.reading = SCALING_READ_NOT_YET;
    not_yet.load = (struct scaling_load){.window = UNKNOWN};
    const struct value_case cases[] = {
        {"C = 0", SCALING_AVG, 0, NULL, 0, OK_RULE(ZERO), 0},
        {"C = 0 with pods on their way out", SCALING_AVG, 0, PODS(M(90)), OK_RULE(ZERO), 0},
        {"only loading pods", SCALING_AVG, 2, PODS(pending_pod(5), loading_pod(60)), OK_RULE(HOLD_LOADING), 160},
        {"only places", SCALING_AVG, 2, NULL, 0, OK_RULE(HOLD_LOADING), 160},
        {"young without a sample yet", SCALING_AVG, 1, &not_yet, 1, OK_RULE(HOLD_LOADING), 80},
        {"loading and stuck", SCALING_AVG, 2, PODS(pending_pod(5), pending_pod(2000)), OK_RULE(HOLD_LOADING), 160},
        {"nothing but stuck ones", SCALING_AVG, 1, PODS(pending_pod(2000)), OK_RULE(ALL_STUCK), 0},
        {"no reading of any", SCALING_AVG, 2, PODS(missing_pod(5), missing_pod(400)), OK_RULE(NOTHING_READ), 0},
        {"no reading of any, one loads", SCALING_AVG, 2, PODS(missing_pod(5), pending_pod(4)), OK_RULE(NOTHING_READ),
         0},
    };
    check_values(&rules, cases, ARRAY_LEN(cases));
}

static struct scaling_result evaluate_workload(const struct scaling_rules *rules, const struct scaling_workload *w,
                                               struct arena *arena)
{
    struct scaling_result r;
    scaling_evaluate(rules, w, arena, &r);
    return r;
}

static void test_an_unknown_count_is_unavailable(void **state)
{
    (void)state;
    ARENA_AUTO struct arena arena;
    arena_init(&arena, ARENA_BYTES);
    struct scaling_rules rules = rules_of(SCALING_AVG);
    struct scaling_pod pod = M(90);
    struct scaling_workload w = {.pods = &pod, .n_pods = 1};
    struct scaling_result r = evaluate_workload(&rules, &w, &arena);
    assert_int_equal(r.rule, SCALING_RULE_NO_SCALE);
    assert_int_equal(r.error.class, ERR_UNAVAILABLE);
    assert_int_equal(r.active_error.class, ERR_UNAVAILABLE); /* it could be 0, which must not be woken */
}

static void test_places_wait_for_a_pod_as_long_as_a_pod_may_load(void **state)
{
    (void)state;
    ARENA_AUTO struct arena arena;
    arena_init(&arena, ARENA_BYTES);
    struct scaling_rules rules = rules_of(SCALING_AVG);
    const struct scaling_pod pods[] = {M(70), deleted_pod(90)};
    const double ages[] = {900.5, 900};
    struct scaling_workload w = {.pods = pods,
                                 .n_pods = 2,
                                 .is_scale_known = true,
                                 .replicas = {4, 4, 1},
                                 .place_ages_s = ages,
                                 .n_place_ages = 2};
    struct scaling_result r = evaluate_workload(&rules, &w, &arena);
    assert_int_equal(r.counts[SCALING_POD_STUCK], 1);
    assert_int_equal(r.counts[SCALING_POD_LOADING], 2); /* the third was seen just now */
    assert_int_equal(r.n, 3);
    assert_double_near(r.hi, 70 + 80 + 80, 1e-9);
    assert_int_equal(r.rule, SCALING_RULE_SHRINK);
    assert_true(r.warnings & 1U << SCALING_WARN_STUCK);

    w.replicas.spec = 1; /* as many pods as wanted: no place, also if the hub remembers one */
    r = evaluate_workload(&rules, &w, &arena);
    assert_int_equal(r.n_items, 2);
    assert_int_equal(r.rule, SCALING_RULE_KNOWN);
}

static struct scaling_pod unread_because(enum scaling_reading reading, double bound)
{
    struct scaling_pod pod = missing_pod(10);
    pod.reading = reading;
    pod.bound = reading == SCALING_READ_UNSHARED ? KNOWN(bound) : UNKNOWN;
    return pod;
}

static void test_what_will_never_be_measured_is_a_precondition(void **state)
{
    (void)state;
    struct scaling_rules rules = rules_of(SCALING_AVG), job = rules, job_page = rules, engine = rules;
    job.is_job = true;
    job_page.is_job = job_page.is_engine = true;
    engine.is_engine = true;
    struct scaling_pod no_gpu = M(10);
    no_gpu.has_gpu = false;
    const struct scaling_pod shared = unread_because(SCALING_READ_UNSHARED, 60),
                             other = unread_because(SCALING_READ_UNSUPPORTED, 0);
    const struct {
        const struct scaling_rules *rules;
        struct value_case c;
    } cases[] = {
        {&job, {"a ScaledJob", SCALING_AVG, 2, PODS(M(90)), OK_RULE(JOB), 0}},
        {&job_page, {"nor what the pages of running jobs say", SCALING_AVG, 2, PODS(M(90), M(3)), OK_RULE(JOB), 0}},
        {&rules, {"no pod asks for a GPU", SCALING_AVG, 1, PODS(no_gpu), OK_RULE(NO_GPU), 0}},
        {&rules, {"one does", SCALING_AVG, 2, PODS(no_gpu, M(20)), OK_RULE(KNOWN), 30}},
        {&engine, {"an engine's signal needs none", SCALING_AVG, 1, PODS(no_gpu), OK_RULE(KNOWN), 10}},
        {&rules, {"unsupported on all", SCALING_AVG, 2, PODS(other, other), OK_RULE(UNSUPPORTED), 0}},
        {&rules,
         {"unsupported on all that can be asked", SCALING_AVG, 2, PODS(other, pending_pod(5)), OK_RULE(UNSUPPORTED),
          0}},
        {&rules, {"no share can be told", SCALING_AVG, 2, PODS(shared, shared), OK_RULE(UNSHARED), 0}},
        {&rules, {"some shares cannot: bounded", SCALING_AVG, 3, PODS(shared, M(10), M(10)), OK_RULE(SHRINK), 80}},
        {&rules,
         {"unshared and missing: unavailable", SCALING_AVG, 2, PODS(shared, missing_pod(5)), OK_RULE(NOTHING_READ), 0}},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check_values(cases[i].rules, &cases[i].c, 1);
    assert_non_null(strstr(scaling_rule_sentence(SCALING_RULE_UNSHARED), "agent.hostPID"));
}

static void test_on_missing_error_and_ignore(void **state)
{
    (void)state;
    struct scaling_rules error = rules_of(SCALING_AVG), ignore = error;
    error.on_missing = SCALING_MISSING_IS_ERROR;
    ignore.on_missing = SCALING_IGNORE_MISSING;
    const struct scaling_pod other = unread_because(SCALING_READ_UNSUPPORTED, 0);
    const struct value_case errors[] = {
        {"one missing", SCALING_AVG, 3, PODS(M(90), M(90), missing_pod(5)), OK_RULE(MISSING_IS_ERROR), 0},
        {"none missing", SCALING_AVG, 2, PODS(M(90), M(90)), OK_RULE(KNOWN), 180},
        {"loading is not missing", SCALING_AVG, 2, PODS(M(80), pending_pod(9)), OK_RULE(HOLD), 160},
        {"unobservable is not missing", SCALING_AVG, 2, PODS(M(50), missing_pod(300)), OK_RULE(KNOWN), 100},
        {"unsupported on all is still a precondition", SCALING_AVG, 1, PODS(other), OK_RULE(UNSUPPORTED), 0},
    };
    check_values(&error, errors, ARRAY_LEN(errors));
    const struct scaling_pod undecided = unread_because(SCALING_READ_UNDECIDED, 0);
    const struct value_case ignored[] = {
        {"missing and unobservable are left out", SCALING_AVG, 4, PODS(M(50), M(50), missing_pod(5), missing_pod(300)),
         OK_RULE(KNOWN), 100},
        {"max", SCALING_MAX, 3, PODS(M(50), M(60), missing_pod(5)), OK_RULE(KNOWN), 120},
        {"nobody read is still unavailable", SCALING_AVG, 1, PODS(missing_pod(5)), OK_RULE(NOTHING_READ), 0},
        {"Ready pods that are left out are not stuck", SCALING_AVG, 1, PODS(undecided), OK_RULE(NOTHING_READ), 0},
        {"their place is not loading", SCALING_AVG, 2, PODS(M(50), missing_pod(5)), OK_RULE(KNOWN), 50},
    };
    check_values(&ignore, ignored, ARRAY_LEN(ignored));
}

static void test_values_that_keda_cannot_take_are_errors(void **state)
{
    (void)state;
    struct scaling_rules rules = rules_of(SCALING_AVG);
    const struct value_case cases[] = {
        {"the largest", SCALING_AVG, 2, PODS(M(4e11), M(6e11)), OK_RULE(KNOWN), 1e12},
        {"beyond it", SCALING_AVG, 2, PODS(M(4e11), M(6.1e11)), OK_RULE(OUT_OF_RANGE), 0},
        {"NaN", SCALING_AVG, 1, PODS(M((double)NAN)), OK_RULE(OUT_OF_RANGE), 0},
        {"infinity", SCALING_MAX, 1, PODS(M((double)INFINITY)), OK_RULE(OUT_OF_RANGE), 0},
    };
    check_values(&rules, cases, ARRAY_LEN(cases));
}

static void test_more_pods_than_the_arena_holds_is_an_error(void **state)
{
    (void)state;
    ARENA_AUTO struct arena arena;
    arena_init(&arena, 4096);
    struct scaling_rules rules = rules_of(SCALING_AVG);
    struct scaling_pod pods[64];
    for (size_t i = 0; i < ARRAY_LEN(pods); i++)
        pods[i] = M(50);
    struct scaling_result r = evaluate_rules(&rules, 64, pods, 64, &arena);
    assert_int_equal(r.error.class, ERR_RESOURCE_EXHAUSTED);
    assert_int_equal(r.active_error.class, ERR_RESOURCE_EXHAUSTED);
}

/* ---- groups ---- */

static struct scaling_pod member(struct scaling_pod pod, int64_t group)
{
    pod.group = group;
    return pod;
}

static void test_a_group_is_one_replica_with_the_mean_of_its_pods(void **state)
{
    (void)state;
    const struct scaling_rules rules = rules_of(SCALING_AVG);
    const struct value_case cases[] = {
        {"two groups of two, mixed up", SCALING_AVG, 2,
         PODS(member(M(60), 0), member(M(20), 1), member(M(100), 0), member(M(40), 1)), OK_RULE(KNOWN), 110},
        {"max over groups", SCALING_MAX, 2,
         PODS(member(M(60), 0), member(M(20), 1), member(M(100), 0), member(M(40), 1)), OK_RULE(KNOWN), 160},
        {"a worker loads: the group does", SCALING_AVG, 2,
         PODS(member(M(60), 0), member(M(60), 0), member(M(90), 1), member(pending_pod(5), 1)), OK_RULE(HOLD), 160},
        {"a worker is missing: the group is", SCALING_AVG, 2,
         PODS(member(M(80), 0), member(missing_pod(5), 0), member(M(70), 1)), OK_RULE(HOLD), 160},
        {"a group that loses a pod is gone, its place loads", SCALING_AVG, 2,
         PODS(member(M(80), 0), member(M(80), 0), member(M(90), 1), member(deleted_pod(90), 1)), OK_RULE(HOLD), 160},
        {"hung beats unready", SCALING_AVG, 1, PODS(member(unready_pod(60, 10), 0), member(unready_pod(600, 30), 0)),
         OK_RULE(KNOWN), 80},
    };
    check_values(&rules, cases, ARRAY_LEN(cases));
}

/* One pod of the group is read, so half are; what bounds the other bounds the group, and T stands for nothing. */
static void test_an_unobservable_group_is_never_more_than_its_bound(void **state)
{
    (void)state;
    const struct scaling_rules rules = rules_of(SCALING_AVG);
    struct scaling_pod shared = unread_because(SCALING_READ_UNSHARED, 50);
    shared.missing_for_s = 400;
    const struct value_case cases[] = {
        {"max", SCALING_MAX, 1, PODS(member(M(30), 0), member(shared, 0)), OK_RULE(KNOWN), 40},
        {"avg", SCALING_AVG, 1, PODS(member(M(30), 0), member(shared, 0)), OK_RULE(KNOWN), 40},
    };
    check_values(&rules, cases, ARRAY_LEN(cases));
}

static void test_the_state_of_a_group_is_that_of_its_worst_pod(void **state)
{
    (void)state;
    struct scaling_rules rules = rules_of(SCALING_AVG);
    const struct scaling_pod worst_last[] = {
        measured_pod(50),
        fresh_pod(true, 5, 50, 50),
        fresh_pod(false, 5, 50, 50),
        unready_pod(60, 50),
        unready_pod(600, 50),
        missing_pod(400),
        missing_pod(5),
        loading_pod(5),
        loading_pod(2000),
        deleted_pod(50),
    };
    static const enum scaling_pod_state want[] = {
        SCALING_POD_MEASURED,     SCALING_POD_YOUNG,   SCALING_POD_READY_AGAIN, SCALING_POD_UNREADY, SCALING_POD_HUNG,
        SCALING_POD_UNOBSERVABLE, SCALING_POD_MISSING, SCALING_POD_LOADING,     SCALING_POD_STUCK,   SCALING_POD_GONE,
    };
    for (size_t worst = 0; worst < ARRAY_LEN(worst_last); worst++)
        for (size_t other = 0; other <= worst; other++) {
            ARENA_AUTO struct arena arena;
            arena_init(&arena, ARENA_BYTES);
            struct scaling_pod pods[8]; /* six others keep half of all readable */
            pods[0] = member(worst_last[worst], 3);
            pods[1] = member(worst_last[other], 3);
            for (size_t i = 2; i < ARRAY_LEN(pods); i++)
                pods[i] = M(50);
            struct scaling_result r = evaluate_rules(&rules, 7, pods, ARRAY_LEN(pods), &arena);
            const struct scaling_replica *group = NULL;
            for (size_t i = 0; i < r.n_items; i++)
                group = r.items[i].group == 3 ? &r.items[i] : group;
            assert_non_null(group);
            assert_int_equal(group->n_pods, 2);
            if (group->state != want[worst])
                fail_msg("%zu with %zu: %s", worst, other, scaling_pod_state_name(group->state));
        }
}

static void test_a_young_group_is_as_young_as_its_youngest_pod(void **state)
{
    (void)state;
    ARENA_AUTO struct arena arena;
    arena_init(&arena, ARENA_BYTES);
    struct scaling_rules rules = rules_of(SCALING_AVG);
    const struct scaling_pod pods[] = {member(fresh_pod(true, 10, 60, 50), 0), member(fresh_pod(true, 5, 30, 20), 0),
                                       member(M(90), 0)};
    struct scaling_result r = evaluate_rules(&rules, 1, pods, ARRAY_LEN(pods), &arena);
    assert_int_equal(r.items[0].state, SCALING_POD_YOUNG);
    assert_known_same(r.items[0].upper, KNOWN(60)); /* 60, 30 and the 90 of one that is not young */
    assert_known_same(r.items[0].lower, KNOWN(20)); /* for 5 s of 15 */
}

static void test_a_group_with_a_pod_without_a_sample_has_none(void **state)
{
    (void)state;
    ARENA_AUTO struct arena arena;
    arena_init(&arena, ARENA_BYTES);
    struct scaling_rules rules = rules_of(SCALING_AVG);
    struct scaling_pod not_yet = fresh_pod(true, 1, 0, 0);
    not_yet.reading = SCALING_READ_NOT_YET;
    not_yet.load = (struct scaling_load){.window = UNKNOWN};
    const struct scaling_pod pods[] = {member(M(10), 0), member(not_yet, 0), member(unready_pod(60, 10), 1),
                                       member(not_yet, 1)};
    struct scaling_result r = evaluate_rules(&rules, 2, pods, ARRAY_LEN(pods), &arena);
    for (size_t i = 0; i < 2; i++) {
        assert_false(r.items[i].lower.is_known);
        assert_known_same(r.items[i].upper, KNOWN(100));
    }
    assert_int_equal(r.rule, SCALING_RULE_HOLD);
}

/* ---- memory ---- */

static struct scaling_pod filled_pod(double utilization)
{
    struct scaling_pod pod = M(92);
    pod.memory = (struct scaling_memory){.full = 100,
                                         .history_s = 700,
                                         .lowest = KNOWN(92),
                                         .highest = KNOWN(92),
                                         .lowest_10min = KNOWN(92),
                                         .highest_10min = KNOWN(92),
                                         .utilization = ALL_OF(utilization)};
    return pod;
}

/* A surge adds pods, not load: preallocated pods count at most T C together. */
static void test_preallocated_memory_shrinks_and_never_grows(void **state)
{
    (void)state;
    struct scaling_rules rules = rules_of(SCALING_AVG);
    rules.is_memory = true;
    struct scaling_pod hung = filled_pod(100), honest = M(70);
    hung.is_ready = false;
    hung.condition_age_s = KNOWN(600);
    honest.memory = (struct scaling_memory){.full = 100,
                                            .history_s = 700,
                                            .lowest = KNOWN(10),
                                            .highest = KNOWN(70),
                                            .lowest_10min = KNOWN(10),
                                            .highest_10min = KNOWN(70)};
    const struct value_case cases[] = {
        {"idle at 92: shrinks", SCALING_AVG, 3, PODS(filled_pod(0), filled_pod(0), filled_pod(0)), OK_RULE(KNOWN), 0},
        {"busy at 92: stays", SCALING_AVG, 2, PODS(filled_pod(100), filled_pod(100)), OK_RULE(KNOWN), 160},
        {"with a surge: stays", SCALING_AVG, 2, PODS(filled_pod(100), filled_pod(100), filled_pod(100)), OK_RULE(KNOWN),
         160},
        {"max: stays", SCALING_MAX, 2, PODS(filled_pod(100), filled_pod(100), filled_pod(100)), OK_RULE(KNOWN), 160},
        {"a hung one in a surge: stays", SCALING_AVG, 2, PODS(filled_pod(100), filled_pod(100), hung), OK_RULE(KNOWN),
         160},
        {"an unobservable one in a surge: stays", SCALING_AVG, 2,
         PODS(filled_pod(100), filled_pod(100), missing_pod(400)), OK_RULE(KNOWN), 160},
        {"honest memory beside it grows", SCALING_AVG, 2, PODS(filled_pod(100), filled_pod(100), honest, honest),
         OK_RULE(KNOWN), 300},
    };
    check_values(&rules, cases, ARRAY_LEN(cases));
}

static void test_undecided_memory_holds(void **state)
{
    (void)state;
    struct scaling_rules rules = rules_of(SCALING_AVG), error = rules;
    rules.is_memory = error.is_memory = true;
    error.on_missing = SCALING_MISSING_IS_ERROR;
    struct scaling_pod undecided = filled_pod(50);
    undecided.load = ALL_OF(40);
    undecided.memory.history_s = 60;
    undecided.memory.lowest = undecided.memory.highest = KNOWN(40);
    const struct value_case cases[] = {
        {"all of them: it is read, so it holds", SCALING_AVG, 2, PODS(undecided, undecided), OK_RULE(HOLD), 160},
        {"two of five that are stuck otherwise", SCALING_AVG, 5,
         PODS(undecided, undecided, pending_pod(2e3), pending_pod(2e3), pending_pod(2e3)), OK_RULE(SHRINK), 160},
    };
    check_values(&rules, cases, ARRAY_LEN(cases));
    const struct value_case errors[] = {
        {"it is missing", SCALING_AVG, 2, PODS(undecided, undecided), OK_RULE(MISSING_IS_ERROR), 0},
    };
    check_values(&error, errors, ARRAY_LEN(errors));
}

/* ---- activity ---- */

static struct scaling_pod with_peak(struct scaling_pod pod, double peak)
{
    pod.load.peak = KNOWN(peak);
    return pod;
}

struct active_case {
    const char *what;
    int64_t c;
    const struct scaling_pod *pods;
    size_t n;
    enum scaling_active_rule rule;
    bool is_active;
};

static void check_active(const struct scaling_rules *rules, const struct active_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ARENA_AUTO struct arena arena;
        arena_init(&arena, ARENA_BYTES);
        struct scaling_result r = evaluate_rules(rules, cases[i].c, cases[i].pods, cases[i].n, &arena);
        bool is_error = cases[i].rule == SCALING_ACTIVE_ERROR;
        if (r.active_rule != cases[i].rule || r.is_active != cases[i].is_active ||
            (r.active_error.class != ERR_NONE) != is_error)
            fail_msg("%s: %s", cases[i].what, scaling_active_sentence(r.active_rule));
    }
}

static void test_activity_is_the_busiest_pods_peak_strictly_above_the_threshold(void **state)
{
    (void)state;
    struct scaling_rules rules = rules_of(SCALING_AVG);
    const struct scaling_pod unobservable = missing_pod(400), other = unread_because(SCALING_READ_UNSUPPORTED, 0),
                             shared = unread_because(SCALING_READ_UNSHARED, 2);
    struct scaling_pod no_gpu = M(100), not_yet = fresh_pod(true, 1, 0, 0);
    no_gpu.has_gpu = false;
    not_yet.reading = SCALING_READ_NOT_YET;
    not_yet.load = (struct scaling_load){.window = UNKNOWN};
    const struct active_case cases[] = {
        {"idle", 2, PODS(M(0), M(0)), SCALING_ACTIVE_NOT_ABOVE, false},
        {"at the threshold", 2, PODS(M(0), M(5)), SCALING_ACTIVE_NOT_ABOVE, false},
        {"above it", 2, PODS(M(0), M(5.001)), SCALING_ACTIVE_ABOVE, true},
        {"a burst between two questions", 2, PODS(M(0), with_peak(M(0), 90)), SCALING_ACTIVE_ABOVE, true},
        {"the mean is above it, the peak decides", 1, PODS(with_peak(M(50), 4)), SCALING_ACTIVE_NOT_ABOVE, false},
        {"O65: a pod loads", 2, PODS(M(0), pending_pod(200)), SCALING_ACTIVE_LOADING, true},
        {"a place", 2, PODS(M(0)), SCALING_ACTIVE_LOADING, true},
        {"a pod loads for too long", 2, PODS(M(0), pending_pod(901)), SCALING_ACTIVE_NOT_ABOVE, false},
        {"O09: unknown is not idle", 2, PODS(M(0), missing_pod(5)), SCALING_ACTIVE_MISSING, true},
        {"all missing: the value is an error, this is not", 1, PODS(missing_pod(5)), SCALING_ACTIVE_MISSING, true},
        {"unobservable pods do not count", 2, PODS(M(0), unobservable), SCALING_ACTIVE_NOT_ABOVE, false},
        {"young without a sample yet", 2, PODS(M(0), not_yet), SCALING_ACTIVE_NOT_YET, true},
        {"unready and busy", 1, PODS(unready_pod(60, 90)), SCALING_ACTIVE_ABOVE, true},
        {"gone and busy", 1, PODS(M(0), deleted_pod(90)), SCALING_ACTIVE_NOT_ABOVE, false},
        {"C = 0", 0, PODS(deleted_pod(90)), SCALING_ACTIVE_ZERO, false},
        {"no GPU", 1, PODS(no_gpu), SCALING_ACTIVE_ERROR, false},
        {"no GPU with the metric", 1, PODS(other), SCALING_ACTIVE_ERROR, false},
        {"nothing but stuck ones", 1, PODS(pending_pod(2000)), SCALING_ACTIVE_ERROR, false},
        {"shares that cannot be told are missing", 1, PODS(shared), SCALING_ACTIVE_MISSING, true},
    };
    check_active(&rules, cases, ARRAY_LEN(cases));
    rules.on_missing = SCALING_MISSING_IS_ERROR; /* an error here would make KEDA throw the value away too */
    const struct active_case missing[] = {
        {"onMissing error", 2, PODS(M(0), missing_pod(5)), SCALING_ACTIVE_MISSING, true},
    };
    check_active(&rules, missing, ARRAY_LEN(missing));
    rules.on_missing = SCALING_IGNORE_MISSING;
    check_active(&rules, missing, ARRAY_LEN(missing));
}

static void test_training_is_active_while_it_has_a_pod_that_is_not_stuck(void **state)
{
    (void)state;
    struct scaling_rules rules = rules_of(SCALING_AVG);
    rules.is_training = true;
    const struct active_case cases[] = {
        {"loading data, GPU idle", 1, PODS(M(0)), SCALING_ACTIVE_TRAINING, true},
        {"one idle, one stuck", 2, PODS(M(0), pending_pod(2000)), SCALING_ACTIVE_TRAINING, true},
        {"all stuck", 1, PODS(pending_pod(2000)), SCALING_ACTIVE_ERROR, false},
        {"C = 0", 0, NULL, 0, SCALING_ACTIVE_ZERO, false},
        {"a hung one", 1, PODS(unready_pod(900, 0)), SCALING_ACTIVE_TRAINING, true},
    };
    check_active(&rules, cases, ARRAY_LEN(cases));
}

static void test_activity_of_memory_is_honest_memory_or_utilisation(void **state)
{
    (void)state;
    struct scaling_rules rules = rules_of(SCALING_AVG);
    rules.is_memory = true;
    struct scaling_pod undecided = filled_pod(0);
    undecided.load = ALL_OF(2);
    undecided.memory.history_s = 60;
    undecided.memory.lowest = undecided.memory.highest = KNOWN(2);
    const struct active_case cases[] = {
        {"preallocated and idle may sleep", 1, PODS(filled_pod(0)), SCALING_ACTIVE_NOT_ABOVE, false},
        {"preallocated and busy", 1, PODS(filled_pod(6)), SCALING_ACTIVE_ABOVE, true},
        {"undecided is not idle", 1, PODS(undecided), SCALING_ACTIVE_MISSING, true},
    };
    check_active(&rules, cases, ARRAY_LEN(cases));
}

/* ---- explanation ---- */

static void test_the_sentence_has_the_numbers(void **state)
{
    (void)state;
    ARENA_AUTO struct arena arena;
    arena_init(&arena, ARENA_BYTES);
    struct scaling_rules rules = rules_of(SCALING_AVG);
    const struct scaling_pod pods[] = {M(80), M(70), missing_pod(5)};
    struct scaling_result r = evaluate_rules(&rules, 3, pods, 3, &arena);
    struct scaling_hpa hpa = {.target = 80, .tolerance_up = 0.1, .tolerance_down = 0.1};
    struct scaling_answer answer;
    scaling_for_hpa(&hpa, &r, &answer);
    BUF_AUTO struct buf text;
    buf_init(&text, 1024);
    scaling_say(&rules, &r, &answer, &text);
    assert_string_equal(buf_cstr(&text),
                        "avg of 3: at least 150 from 2 (asks for 2), at most 250 (asks for 4), present 3: what is not "
                        "known could decide it, so the present count stays; pods: 2 measured, 1 missing; value 240 for "
                        "target 80; sent as it is; the HPA answers 3");
    buf_reset(&text);
    r = evaluate_rules(&rules, 2, pods, 2, &arena);
    scaling_say(&rules, &r, NULL, &text);
    assert_string_equal(buf_cstr(&text), "avg of 2: 150, asks for 2, present 2: every pod is known; pods: 2 measured; "
                                         "value 150 for target 80");
    buf_reset(&text);
    r = evaluate_rules(&rules, 1, &pods[2], 1, &arena);
    scaling_say(&rules, &r, NULL, &text);
    assert_string_equal(buf_cstr(&text), "no pod that ought to be read could be read; pods: 1 missing");
}

/* 25 GB/s over PCIe are 25165824 kB/s, and no 2.51658e+07. */
static void test_large_and_fractional_numbers_are_written_out(void **state)
{
    (void)state;
    ARENA_AUTO struct arena arena;
    arena_init(&arena, ARENA_BYTES);
    struct scaling_rules rules = rules_of(SCALING_AVG);
    rules.target = 20000000;
    rules.ceiling = 0;
    const struct scaling_pod pods[] = {M(25165824), M(1.0 / 3)};
    struct scaling_result r = evaluate_rules(&rules, 2, pods, 2, &arena);
    BUF_AUTO struct buf text;
    buf_init(&text, 1024);
    scaling_say(&rules, &r, NULL, &text);
    assert_string_equal(buf_cstr(&text), "avg of 2: 25165824.333, asks for 2, present 2: every pod is known; pods: 2 "
                                         "measured; value 25165824.333 for target 20000000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_pods_give_their_own_value),
        cmocka_unit_test(test_what_is_known_grows_the_worst_case_shrinks_else_hold),
        cmocka_unit_test(test_nothing_to_measure_is_decided_first),
        cmocka_unit_test(test_an_unknown_count_is_unavailable),
        cmocka_unit_test(test_places_wait_for_a_pod_as_long_as_a_pod_may_load),
        cmocka_unit_test(test_what_will_never_be_measured_is_a_precondition),
        cmocka_unit_test(test_on_missing_error_and_ignore),
        cmocka_unit_test(test_values_that_keda_cannot_take_are_errors),
        cmocka_unit_test(test_more_pods_than_the_arena_holds_is_an_error),
        cmocka_unit_test(test_a_group_is_one_replica_with_the_mean_of_its_pods),
        cmocka_unit_test(test_an_unobservable_group_is_never_more_than_its_bound),
        cmocka_unit_test(test_the_state_of_a_group_is_that_of_its_worst_pod),
        cmocka_unit_test(test_a_young_group_is_as_young_as_its_youngest_pod),
        cmocka_unit_test(test_a_group_with_a_pod_without_a_sample_has_none),
        cmocka_unit_test(test_preallocated_memory_shrinks_and_never_grows),
        cmocka_unit_test(test_undecided_memory_holds),
        cmocka_unit_test(test_activity_is_the_busiest_pods_peak_strictly_above_the_threshold),
        cmocka_unit_test(test_training_is_active_while_it_has_a_pod_that_is_not_stuck),
        cmocka_unit_test(test_activity_of_memory_is_honest_memory_or_utilisation),
        cmocka_unit_test(test_the_sentence_has_the_numbers),
        cmocka_unit_test(test_large_and_fractional_numbers_are_written_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
