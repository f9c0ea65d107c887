/* scaling 2.3 and 2.7: every row of the table of states with its boundaries, every column of its intervals. */
#include "scaling/scaling.h"

#include "pods.h"

static struct scaling_pod with_reading(struct scaling_pod pod, enum scaling_reading reading, double missing_for_s)
{
    pod.reading = reading;
    pod.missing_for_s = missing_for_s;
    pod.load.window = reading == SCALING_READ_OK ? pod.load.window : UNKNOWN;
    return pod;
}

static struct scaling_pod in_phase(enum scaling_phase phase)
{
    struct scaling_pod pod = measured_pod(50);
    pod.phase = phase;
    return pod;
}

/* Not Ready since `condition_s`, GPU containers started `started_s` ago, created an hour ago. */
static struct scaling_pod not_ready(double condition_s, double started_s)
{
    struct scaling_pod pod = measured_pod(50);
    pod.is_ready = false;
    pod.created_age_s = 3600;
    pod.condition_age_s = KNOWN(condition_s);
    pod.started_age_s = started_s < 0 ? UNKNOWN : KNOWN(started_s);
    return pod;
}

static struct scaling_pod created(struct scaling_pod pod, double age_s)
{
    pod.created_age_s = age_s;
    return pod;
}

struct state_case {
    const char *what;
    struct scaling_pod pod;
    bool is_half_read;
    enum scaling_pod_state want;
};

static void check_states(const struct scaling_rules *rules, const struct state_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        enum scaling_pod_state got = scaling_pod_state(rules, &cases[i].pod, cases[i].is_half_read);
        if (got != cases[i].want)
            fail_msg("%s: %s, want %s", cases[i].what, scaling_pod_state_name(got),
                     scaling_pod_state_name(cases[i].want));
    }
}

static void test_gone_is_deleted_or_ended(void **state)
{
    (void)state;
    struct scaling_rules rules = rules_of(SCALING_AVG);
    struct scaling_pod deleted_loading = loading_pod(5);
    deleted_loading.is_deleted = true;
    const struct state_case cases[] = {
        {"being deleted, still Ready and busy", deleted_pod(90), true, SCALING_POD_GONE},
        {"being deleted while loading", deleted_loading, true, SCALING_POD_GONE},
        {"Succeeded", in_phase(SCALING_PHASE_SUCCEEDED), true, SCALING_POD_GONE},
        {"Failed", in_phase(SCALING_PHASE_FAILED), true, SCALING_POD_GONE},
        {"Unknown phase goes by the Ready condition", in_phase(SCALING_PHASE_UNKNOWN), true, SCALING_POD_MEASURED},
    };
    check_states(&rules, cases, ARRAY_LEN(cases));
}

static void test_ready_pods_are_measured_young_or_ready_again(void **state)
{
    (void)state;
    struct scaling_rules rules = rules_of(SCALING_AVG), newest = rules;
    newest.window_s = 0;
    struct scaling_pod no_time = created(measured_pod(1), 20);
    no_time.condition_age_s = UNKNOWN;
    const struct state_case cases[] = {
        {"Ready for an hour", measured_pod(50), true, SCALING_POD_MEASURED},
        {"Ready for exactly the window", fresh_pod(true, 15, 50, 50), true, SCALING_POD_MEASURED},
        {"a moment less, first time seen", fresh_pod(true, 14.999, 50, 50), true, SCALING_POD_YOUNG},
        {"a moment less, not seen", fresh_pod(false, 14.999, 50, 50), true, SCALING_POD_READY_AGAIN},
        {"just now", fresh_pod(true, 0, 50, 50), true, SCALING_POD_YOUNG},
        {"the API server's clock is a little behind", fresh_pod(true, -0.5, 50, 50), true, SCALING_POD_YOUNG},
        {"no transition time: Ready all its life", no_time, true, SCALING_POD_MEASURED},
    };
    check_states(&rules, cases, ARRAY_LEN(cases));
    const struct state_case no_window[] = {
        {"window 0: nobody is young", fresh_pod(true, 0, 50, 50), true, SCALING_POD_MEASURED},
    };
    check_states(&newest, no_window, ARRAY_LEN(no_window));
}

static void test_pods_that_were_ready_are_unready_then_hung(void **state)
{
    (void)state;
    struct scaling_rules rules = rules_of(SCALING_AVG);
    struct scaling_pod restarted = not_ready(40, 30);
    const struct state_case cases[] = {
        {"Ready=False 10 s after the start: not yet Ready in this life", not_ready(100, 110), true,
         SCALING_POD_LOADING},
        {"a moment more: it was Ready", not_ready(100, 110.001), true, SCALING_POD_UNREADY},
        {"the container started after the condition: a new life", restarted, true, SCALING_POD_LOADING},
        {"no container has started", not_ready(100, -1), true, SCALING_POD_LOADING},
        {"unready for 5 minutes", not_ready(300, 4000), true, SCALING_POD_UNREADY},
        {"unready for more", not_ready(300.001, 4000), true, SCALING_POD_HUNG},
        {"unready goes before warm-up", not_ready(2000, 4000), true, SCALING_POD_HUNG},
    };
    check_states(&rules, cases, ARRAY_LEN(cases));
}

static void test_pods_that_never_were_ready_are_loading_then_stuck(void **state)
{
    (void)state;
    struct scaling_rules rules = rules_of(SCALING_AVG), none = rules;
    none.warmup_s = 0;
    const struct state_case cases[] = {
        {"pending, just created", pending_pod(0), true, SCALING_POD_LOADING},
        {"pending for the warm-up", pending_pod(900), true, SCALING_POD_LOADING},
        {"pending for longer", pending_pod(900.001), true, SCALING_POD_STUCK},
        {"running, not Ready yet", loading_pod(899), true, SCALING_POD_LOADING},
        {"running, not Ready for too long", loading_pod(901), true, SCALING_POD_STUCK},
        {"an hour old, its condition changed just now", not_ready(5, 3), true, SCALING_POD_LOADING},
        {"its condition is older than it: the later of the two", created(not_ready(5000, 20), 800), true,
         SCALING_POD_LOADING},
        {"without a sample it is loading all the same", with_reading(loading_pod(10), SCALING_READ_MISSING, 9), true,
         SCALING_POD_LOADING},
        {"on a node without an agent it is loading all the same",
         with_reading(loading_pod(500), SCALING_READ_MISSING, 500), true, SCALING_POD_LOADING},
    };
    check_states(&rules, cases, ARRAY_LEN(cases));
    const struct state_case no_warmup[] = {
        {"warm-up 0, this very moment", pending_pod(0), true, SCALING_POD_LOADING},
        {"warm-up 0, later", pending_pod(0.1), true, SCALING_POD_STUCK},
    };
    check_states(&none, no_warmup, ARRAY_LEN(no_warmup));
}

static void test_a_missing_reading_replaces_the_state(void **state)
{
    (void)state;
    struct scaling_rules rules = rules_of(SCALING_AVG);
    const struct state_case cases[] = {
        {"measured", missing_pod(0), true, SCALING_POD_MISSING},
        {"young", with_reading(fresh_pod(true, 5, 1, 1), SCALING_READ_MISSING, 5), true, SCALING_POD_MISSING},
        {"ready again", with_reading(fresh_pod(false, 5, 1, 1), SCALING_READ_MISSING, 5), true, SCALING_POD_MISSING},
        {"unready", with_reading(unready_pod(60, 1), SCALING_READ_MISSING, 5), true, SCALING_POD_MISSING},
        {"hung", with_reading(unready_pod(600, 1), SCALING_READ_MISSING, 5), true, SCALING_POD_MISSING},
        {"a reading without a number is none", with_reading(measured_pod(1), SCALING_READ_NOT_YET, 0), true,
         SCALING_POD_MISSING},
        {"young without a sample yet is young", with_reading(fresh_pod(true, 1, 1, 1), SCALING_READ_NOT_YET, 0), true,
         SCALING_POD_YOUNG},
        {"ready again without a sample yet too", with_reading(fresh_pod(false, 1, 1, 1), SCALING_READ_NOT_YET, 0), true,
         SCALING_POD_READY_AGAIN},
        {"for less than 5 minutes", missing_pod(299.999), true, SCALING_POD_MISSING},
        {"for 5 minutes", missing_pod(300), true, SCALING_POD_UNOBSERVABLE},
        {"for 5 minutes, and less than half are read", missing_pod(300), false, SCALING_POD_MISSING},
        {"unready and unobservable", with_reading(unready_pod(400, 1), SCALING_READ_MISSING, 300), true,
         SCALING_POD_UNOBSERVABLE},
        {"a board without the metric", with_reading(measured_pod(1), SCALING_READ_UNSUPPORTED, 10), true,
         SCALING_POD_MISSING},
        {"a share that cannot be told", with_reading(measured_pod(1), SCALING_READ_UNSHARED, 299), true,
         SCALING_POD_MISSING},
        {"memory that is not decided stays missing", with_reading(measured_pod(1), SCALING_READ_UNDECIDED, 900), true,
         SCALING_POD_MISSING},
    };
    check_states(&rules, cases, ARRAY_LEN(cases));
}

/* ---- intervals ---- */

static struct scaling_replica replica(enum scaling_pod_state state, double p, double m, double ready_age_s)
{
    return (struct scaling_replica){.state = state,
                                    .reading = SCALING_READ_OK,
                                    .group = -1,
                                    .ready_age_s = ready_age_s,
                                    .load = {.window = KNOWN(p), .since_ready = KNOWN(m), .peak = KNOWN(p)}};
}

static struct scaling_replica unread(enum scaling_pod_state state)
{
    return (struct scaling_replica){.state = state, .reading = SCALING_READ_MISSING, .group = -1, .ready_age_s = 1};
}

struct interval_case {
    const char *what;
    struct scaling_replica replica;
    struct scaling_maybe lower, upper;
};

static void check_intervals(const struct scaling_rules *rules, double a_lowers, const struct interval_case *cases,
                            size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct scaling_maybe lower = scaling_own_lower(rules, &cases[i].replica);
        struct scaling_maybe upper = scaling_upper(rules, &cases[i].replica, a_lowers);
        bool is_same = lower.is_known == cases[i].lower.is_known && upper.is_known == cases[i].upper.is_known &&
                       fabs(lower.value - cases[i].lower.value) < 1e-9 &&
                       fabs(upper.value - cases[i].upper.value) < 1e-9;
        if (!is_same)
            fail_msg("%s: [%s %g, %s %g]", cases[i].what, lower.is_known ? "" : "none", lower.value,
                     upper.is_known ? "" : "none", upper.value);
    }
}

static void test_intervals_of_avg(void **state)
{
    (void)state;
    struct scaling_rules rules = rules_of(SCALING_AVG);
    const struct interval_case cases[] = {
        {"gone", replica(SCALING_POD_GONE, 50, 50, 60), UNKNOWN, UNKNOWN},
        {"measured", replica(SCALING_POD_MEASURED, 50, 9, 60), KNOWN(50), KNOWN(50)},
        {"young: a third of the window at 60, p unused", replica(SCALING_POD_YOUNG, 30, 60, 5), KNOWN(20), KNOWN(60)},
        {"young at its first moment", replica(SCALING_POD_YOUNG, 30, 60, 0), KNOWN(0), KNOWN(60)},
        {"ready again: p is the smaller", replica(SCALING_POD_READY_AGAIN, 15, 60, 5), KNOWN(15), KNOWN(80)},
        {"ready again: young's lower is the smaller", replica(SCALING_POD_READY_AGAIN, 90, 60, 5), KNOWN(20),
         KNOWN(90)},
        {"ready again: its mean is the largest", replica(SCALING_POD_READY_AGAIN, 40, 95, 3), KNOWN(19), KNOWN(95)},
        {"unready below T", replica(SCALING_POD_UNREADY, 30, 0, 60), KNOWN(30), KNOWN(80)},
        {"unready above T", replica(SCALING_POD_UNREADY, 95, 0, 60), KNOWN(95), KNOWN(95)},
        {"hung below T takes a place", replica(SCALING_POD_HUNG, 0, 0, 60), KNOWN(80), KNOWN(80)},
        {"hung above T", replica(SCALING_POD_HUNG, 95, 0, 60), KNOWN(95), KNOWN(95)},
        {"missing: the ceiling", unread(SCALING_POD_MISSING), UNKNOWN, KNOWN(100)},
        {"unobservable: a(lowers)", unread(SCALING_POD_UNOBSERVABLE), UNKNOWN, KNOWN(70)},
        {"loading: T", unread(SCALING_POD_LOADING), UNKNOWN, KNOWN(80)},
        {"stuck", unread(SCALING_POD_STUCK), UNKNOWN, UNKNOWN},
        {"young without a sample: like missing", unread(SCALING_POD_YOUNG), UNKNOWN, KNOWN(100)},
        {"ready again without a sample", unread(SCALING_POD_READY_AGAIN), UNKNOWN, KNOWN(100)},
    };
    check_intervals(&rules, 70, cases, ARRAY_LEN(cases));
    rules.aggregation = SCALING_SUM; /* means avg here */
    check_intervals(&rules, 70, cases, ARRAY_LEN(cases));
}

static void test_intervals_of_max_and_percentiles(void **state)
{
    (void)state;
    const struct interval_case cases[] = {
        {"measured", replica(SCALING_POD_MEASURED, 50, 9, 60), KNOWN(50), KNOWN(50)},
        {"young: p so far above the others", replica(SCALING_POD_YOUNG, 75, 60, 5), UNKNOWN, KNOWN(75)},
        {"young: below the others", replica(SCALING_POD_YOUNG, 20, 99, 5), UNKNOWN, KNOWN(70)},
        {"ready again", replica(SCALING_POD_READY_AGAIN, 15, 60, 5), UNKNOWN, KNOWN(80)},
        {"ready again: p is the largest", replica(SCALING_POD_READY_AGAIN, 96, 95, 5), UNKNOWN, KNOWN(96)},
        {"unready", replica(SCALING_POD_UNREADY, 30, 0, 60), KNOWN(30), KNOWN(80)},
        {"hung: p, it takes no place", replica(SCALING_POD_HUNG, 12, 0, 60), KNOWN(12), KNOWN(12)},
        {"missing", unread(SCALING_POD_MISSING), UNKNOWN, KNOWN(100)},
        {"loading: a(lowers) below T", unread(SCALING_POD_LOADING), UNKNOWN, KNOWN(70)},
        {"unobservable", unread(SCALING_POD_UNOBSERVABLE), UNKNOWN, KNOWN(70)},
        {"young without a sample", unread(SCALING_POD_YOUNG), UNKNOWN, KNOWN(100)},
    };
    static const enum scaling_aggregation aggregations[] = {SCALING_MAX, SCALING_MIN, SCALING_P95, SCALING_P99};
    for (size_t i = 0; i < ARRAY_LEN(aggregations); i++) {
        struct scaling_rules rules = rules_of(aggregations[i]);
        check_intervals(&rules, 70, cases, ARRAY_LEN(cases));
    }
    struct scaling_rules rules = rules_of(SCALING_MAX);
    const struct interval_case busy[] = {
        {"loading: T below a(lowers)", unread(SCALING_POD_LOADING), UNKNOWN, KNOWN(80)},
    };
    check_intervals(&rules, 95, busy, ARRAY_LEN(busy));
}

static void test_a_missing_pod_is_bounded_by_what_is_known_of_it(void **state)
{
    (void)state;
    struct scaling_rules rules = rules_of(SCALING_AVG);
    struct scaling_replica bounded = unread(SCALING_POD_MISSING), was_high = bounded, was_low = bounded;
    bounded.bound = KNOWN(35);
    was_high.last_good = KNOWN(900);
    was_low.last_good = KNOWN(3);
    struct scaling_replica unobservable = bounded;
    unobservable.state = SCALING_POD_UNOBSERVABLE;
    const struct interval_case ratio[] = {
        {"D of a shared GPU", bounded, UNKNOWN, KNOWN(35)},
        {"D bounds an unobservable one too", unobservable, UNKNOWN, KNOWN(35)},
        {"ratios have a ceiling, whatever was last", was_low, UNKNOWN, KNOWN(100)},
    };
    check_intervals(&rules, 70, ratio, ARRAY_LEN(ratio));
    rules.ceiling = 0; /* watts, say */
    const struct interval_case open[] = {
        {"T is the largest", was_low, UNKNOWN, KNOWN(80)},
        {"the last good p is", was_high, UNKNOWN, KNOWN(900)},
        {"never read", unread(SCALING_POD_MISSING), UNKNOWN, KNOWN(80)},
    };
    check_intervals(&rules, 70, open, ARRAY_LEN(open));
    const struct interval_case others[] = {
        {"the others are", was_low, UNKNOWN, KNOWN(500)},
    };
    check_intervals(&rules, 500, others, ARRAY_LEN(others));
}

/* ---- memory ---- */

static struct scaling_pod memory_pod(double memory, double lowest, double highest, double history_s)
{
    struct scaling_pod pod = measured_pod(memory);
    pod.memory = (struct scaling_memory){.full = 100,
                                         .history_s = history_s,
                                         .lowest = KNOWN(lowest),
                                         .highest = KNOWN(highest),
                                         .lowest_10min = KNOWN(lowest),
                                         .highest_10min = KNOWN(highest),
                                         .utilization = ALL_OF(30)};
    return pod;
}

static struct scaling_pod flat_lately(struct scaling_pod pod, double at)
{
    pod.memory.lowest_10min = pod.memory.highest_10min = KNOWN(at);
    return pod;
}

static void test_memory_is_preallocated_honest_or_undecided(void **state)
{
    (void)state;
    struct scaling_rules rules = rules_of(SCALING_AVG);
    rules.is_memory = true;
    const struct {
        const char *what;
        struct scaling_pod pod;
        enum scaling_memory_verdict want;
    } cases[] = {
        {"vLLM at 92 since it became Ready", memory_pod(92, 92, 92, 20), SCALING_MEMORY_PREALLOCATED},
        {"it moves, but not below T", memory_pod(92, 80, 99, 5000), SCALING_MEMORY_PREALLOCATED},
        {"just below T, moved, young history", memory_pod(92, 79.999, 92, 20), SCALING_MEMORY_HONEST},
        {"below T and flat for 10 minutes", memory_pod(40, 40, 41.9, 600), SCALING_MEMORY_PREALLOCATED},
        {"below T and flat, but not known for 10 minutes", memory_pod(40, 40, 41.9, 599), SCALING_MEMORY_UNDECIDED},
        {"2 points in 10 minutes are a move", memory_pod(40, 40, 42, 600), SCALING_MEMORY_HONEST},
        {"moved an hour ago, flat since: the first test decides", flat_lately(memory_pod(40, 10, 70, 3600), 40),
         SCALING_MEMORY_PREALLOCATED},
        {"moved below T in its first minute", memory_pod(20, 10, 20, 60), SCALING_MEMORY_HONEST},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct scaling_pod settled;
        if (scaling_apply_memory(&rules, &cases[i].pod, &settled) != cases[i].want)
            fail_msg("%s", cases[i].what);
    }
}

static void test_preallocated_memory_counts_as_utilisation_up_to_the_target(void **state)
{
    (void)state;
    struct scaling_rules rules = rules_of(SCALING_AVG);
    rules.is_memory = true;
    struct scaling_pod pod = memory_pod(92, 92, 92, 700), settled;
    (void)scaling_apply_memory(&rules, &pod, &settled);
    assert_known_same(settled.load.window, KNOWN(30));
    pod.memory.utilization = ALL_OF(97);
    (void)scaling_apply_memory(&rules, &pod, &settled);
    assert_known_same(settled.load.window, KNOWN(80));
    assert_known_same(settled.load.since_ready, KNOWN(80));
    assert_known_same(settled.load.peak, KNOWN(97)); /* its activity is its utilisation */

    pod.memory.utilization = (struct scaling_load){.window = UNKNOWN};
    (void)scaling_apply_memory(&rules, &pod, &settled);
    assert_int_equal(settled.reading, SCALING_READ_MISSING);
    assert_known_same(settled.bound, KNOWN(80)); /* whatever it does it counts at most T */
}

static void test_preallocated_memory_in_mib_counts_utilisation_as_part_of_all(void **state)
{
    (void)state;
    struct scaling_rules rules = rules_of(SCALING_AVG);
    rules.is_memory = true;
    rules.ceiling = 0;
    rules.target = 60000;
    struct scaling_pod pod = memory_pod(74000, 74000, 74000, 700), settled;
    pod.memory.full = 80000;
    pod.memory.utilization = ALL_OF(50);
    assert_int_equal(scaling_apply_memory(&rules, &pod, &settled), SCALING_MEMORY_PREALLOCATED);
    assert_known_same(settled.load.window, KNOWN(40000));
    pod = memory_pod(40000, 40000, 41599, 700);
    pod.memory.full = 80000; /* 2 points are 1600 MiB */
    assert_int_equal(scaling_apply_memory(&rules, &pod, &settled), SCALING_MEMORY_PREALLOCATED);
    pod.memory.highest_10min = pod.memory.highest = KNOWN(41600);
    assert_int_equal(scaling_apply_memory(&rules, &pod, &settled), SCALING_MEMORY_HONEST);
}

static void test_undecided_memory_is_missing_with_a_bound(void **state)
{
    (void)state;
    struct scaling_rules rules = rules_of(SCALING_AVG);
    rules.is_memory = true;
    struct scaling_pod pod = memory_pod(40, 40, 40, 60), settled;
    (void)scaling_apply_memory(&rules, &pod, &settled);
    assert_int_equal(settled.reading, SCALING_READ_UNDECIDED);
    assert_known_same(settled.bound, KNOWN(80));
    pod.load = ALL_OF(88); /* now above T; was below: max(T, memory) */
    (void)scaling_apply_memory(&rules, &pod, &settled);
    assert_known_same(settled.bound, KNOWN(88));
    assert_int_equal(scaling_pod_state(&rules, &settled, true), SCALING_POD_MISSING);
}

static void test_other_metrics_are_never_taken_for_preallocated_memory(void **state)
{
    (void)state;
    struct scaling_rules rules = rules_of(SCALING_AVG);
    struct scaling_pod pod = memory_pod(92, 92, 92, 700), settled;
    assert_int_equal(scaling_apply_memory(&rules, &pod, &settled), SCALING_MEMORY_HONEST);
    assert_known_same(settled.load.window, KNOWN(92));
}

static void test_ready_pods_are_counted_as_the_hpa_does(void **state)
{
    (void)state;
    struct scaling_pod pods[] = {measured_pod(1), deleted_pod(1), unready_pod(30, 1), pending_pod(3),
                                 in_phase(SCALING_PHASE_FAILED)};
    assert_int_equal(scaling_count_ready(pods, ARRAY_LEN(pods)), 2); /* the deleted one too */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gone_is_deleted_or_ended),
        cmocka_unit_test(test_ready_pods_are_measured_young_or_ready_again),
        cmocka_unit_test(test_pods_that_were_ready_are_unready_then_hung),
        cmocka_unit_test(test_pods_that_never_were_ready_are_loading_then_stuck),
        cmocka_unit_test(test_a_missing_reading_replaces_the_state),
        cmocka_unit_test(test_intervals_of_avg),
        cmocka_unit_test(test_intervals_of_max_and_percentiles),
        cmocka_unit_test(test_a_missing_pod_is_bounded_by_what_is_known_of_it),
        cmocka_unit_test(test_memory_is_preallocated_honest_or_undecided),
        cmocka_unit_test(test_preallocated_memory_counts_as_utilisation_up_to_the_target),
        cmocka_unit_test(test_preallocated_memory_in_mib_counts_utilisation_as_part_of_all),
        cmocka_unit_test(test_undecided_memory_is_missing_with_a_bound),
        cmocka_unit_test(test_other_metrics_are_never_taken_for_preallocated_memory),
        cmocka_unit_test(test_ready_pods_are_counted_as_the_hpa_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
