/* scaling: the HPA's arithmetic and behaviour against the runs of the real controller in keda.md 8.2-8.8. */
#include "scaling/scaling.h"

#include "pods.h"

static struct scaling_hpa hpa_of(enum scaling_metric_type type, double target)
{
    return (struct scaling_hpa){.type = type, .target = target, .tolerance_up = 0.1, .tolerance_down = 0.1};
}

static void test_one_sync_proposes_what_the_controller_proposed(void **state)
{
    (void)state;
    enum { AVERAGE = SCALING_AVERAGE_VALUE, VALUE = SCALING_VALUE };
    static const struct {
        const char *what;
        int type;
        double target, tolerance, value;
        int64_t spec, status, ready, want;
    } cases[] = {
        {"88 is within 10 %", AVERAGE, 80, 0.1, 88, 1, 1, 1, 1},
        {"89 is not", AVERAGE, 80, 0.1, 89, 1, 1, 1, 2},
        {"tolerance 0", AVERAGE, 80, 0, 81, 1, 1, 1, 2},
        {"tolerance 0 at the target", AVERAGE, 80, 0, 80, 1, 1, 1, 1},
        {"tolerance 0.05", AVERAGE, 80, 0.05, 84, 1, 1, 1, 1},
        {"beyond 0.05", AVERAGE, 80, 0.05, 84.5, 1, 1, 1, 2},
        {"status.replicas 0: the total alone", AVERAGE, 80, 0.1, 200, 3, 0, 0, 3},
        {"status.replicas 0 and no load", AVERAGE, 80, 0.1, 0, 3, 0, 0, 0},
        {"within the tolerance status.replicas is the answer", AVERAGE, 80, 0.1, 400, 4, 5, 5, 5},
        {"outside it does not matter", AVERAGE, 80, 0.1, 400, 4, 9, 9, 5},
        {"8.7 A: 10 replicas at full load fall to 2", AVERAGE, 80, 0.1, 100, 10, 10, 10, 2},
        {"8.7 A: two at 100 each show 50/80", AVERAGE, 80, 0.1, 100, 2, 2, 2, 2},
        {"8.3: nobody Ready", VALUE, 80, 0.1, 100, 5, 5, 0, 0},
        {"8.3: 2 of 10 Ready", VALUE, 80, 0.1, 100, 10, 10, 2, 3},
        {"within the tolerance: spec.replicas", VALUE, 80, 0.1, 85, 10, 11, 2, 10},
        {"8.7 E: sum with Value", VALUE, 80, 0.1, 380, 4, 4, 4, 19},
        {"8.8: 92 of memory", AVERAGE, 80, 0.1, 92, 1, 1, 1, 2},
        {"8.8: 92/85 is within the tolerance", VALUE, 85, 0.1, 92, 7, 7, 7, 7},
        {"O05: AverageValue", AVERAGE, 10, 0.1, 37, 3, 3, 3, 4},
        {"O05: Value", VALUE, 10, 0.1, 37, 3, 3, 3, 12},
        {"O06: the sum form", AVERAGE, 80, 0.1, 400, 4, 4, 4, 5},
        {"a huge value: clamped", AVERAGE, 0.001, 0.1, 1e12, 1, 1, 1, INT32_MAX},
        {"half a milli is rounded", AVERAGE, 1, 0, 2.0004, 2, 2, 2, 2},
        {"more than half a milli is one", AVERAGE, 1, 0, 2.0006, 2, 2, 2, 3},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct scaling_hpa hpa = hpa_of((enum scaling_metric_type)cases[i].type, cases[i].target);
        hpa.tolerance_up = hpa.tolerance_down = cases[i].tolerance;
        struct scaling_replicas replicas = {cases[i].spec, cases[i].status, cases[i].ready};
        int64_t got = scaling_hpa_desired(&hpa, cases[i].value, &replicas);
        if (got != cases[i].want)
            fail_msg("%s: %d, want %d", cases[i].what, (int)got, (int)cases[i].want);
    }
}

static void test_tolerances_of_both_directions_are_apart(void **state)
{
    (void)state;
    struct scaling_hpa hpa = {.target = 100, .tolerance_up = 0, .tolerance_down = 0.5};
    struct scaling_replicas four = {4, 4, 4};
    assert_int_equal(scaling_hpa_desired(&hpa, 200, &four), 4);
    assert_int_equal(scaling_hpa_desired(&hpa, 199, &four), 2);
    assert_int_equal(scaling_hpa_desired(&hpa, 401, &four), 5);
}

/* 8.7 A: proposals depend on the value alone. */
static void test_one_percentage_never_asks_for_more_than_its_ratio(void **state)
{
    (void)state;
    static const struct {
        double target;
        int64_t most;
    } cases[] = {{80, 2}, {50, 2}, {90, 2}, {40, 3}, {30, 4}, {25, 4}, {20, 5}, {10, 10}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (int64_t n = 20; n >= 1; n--) {
            struct scaling_hpa hpa = hpa_of(SCALING_AVERAGE_VALUE, cases[i].target);
            struct scaling_replicas replicas = {n, n, n};
            int64_t got = scaling_hpa_desired(&hpa, 100, &replicas);
            if (got != n) /* n: within the tolerance */
                assert_int_equal(got, cases[i].most);
        }
}

/* ---- trajectories: pods Ready at once, one sync after the other ---- */

enum form { SUM_AVERAGE, MEAN_VALUE, SUM_VALUE, HOT_VALUE };

struct run {
    const char *what;
    enum form form;
    double target, demand, most_each; /* demand < 0: every pod is always at most_each */
    int64_t max;
    int64_t want[20]; /* ends with 0 */
};

static double measure(const struct run *run, int64_t n)
{
    double each = run->demand < 0 ? run->most_each : fmin(run->most_each, run->demand / (double)n);
    switch (run->form) {
    case SUM_AVERAGE:
    case SUM_VALUE:
        return each * (double)n;
    case MEAN_VALUE:
        return each;
    case HOT_VALUE:
        break;
    }
    return run->most_each;
}

static void check_run(const struct run *run)
{
    struct scaling_hpa hpa = hpa_of(run->form == SUM_AVERAGE ? SCALING_AVERAGE_VALUE : SCALING_VALUE, run->target);
    struct scaling_behaviour behaviour = scaling_default_behaviour(1, run->max, false);
    struct scaling_history history = {.n_ups = 0};
    int64_t n = run->want[0];
    for (size_t i = 1; run->want[i]; i++) {
        struct scaling_replicas replicas = {n, n, n};
        int64_t proposal = scaling_hpa_desired(&hpa, measure(run, n), &replicas);
        n = scaling_hpa_limit(&behaviour, &history, (int64_t)i * 15, n, proposal);
        if (n != run->want[i])
            fail_msg("%s: step %zu is %d, want %d", run->what, i, (int)n, (int)run->want[i]);
    }
}

static void test_closed_loops_take_the_steps_of_the_controller(void **state)
{
    (void)state;
    static const struct run runs[] = {
        {"8.7 B: a hot pod with Value", HOT_VALUE, 80, -1, 100, 40, {1, 2, 3, 4, 5, 7, 9, 12, 15, 19, 24, 30, 38, 40}},
        {"8.7 C: demand 350", SUM_AVERAGE, 80, 350, 100, 40, {1, 2, 3, 4, 4, 4}},
        {"8.7 C: 5 is stable too", SUM_AVERAGE, 80, 350, 100, 40, {5, 5, 5}},
        {"8.7 C: demand 790", SUM_AVERAGE, 80, 790, 100, 40, {1, 2, 3, 4, 5, 7, 9, 9, 9}},
        {"8.7 C: unlimited", SUM_AVERAGE, 80, -1, 100, 40, {1, 2, 3, 4, 5, 7, 9, 12, 15, 19, 24, 30, 38, 40, 40}},
        {"8.7 D: demand 350", MEAN_VALUE, 80, 350, 100, 40, {1, 2, 3, 4, 4}},
        {"8.7 D: demand 790", MEAN_VALUE, 80, 790, 100, 40, {1, 2, 3, 4, 5, 7, 9, 9}},
        {"8.7 E: sum with Value", SUM_VALUE, 80, -1, 95, 19, {4, 8, 16, 19}},
        {"8.7 E: two GPUs at 60 added", SUM_AVERAGE, 80, -1, 120, 40, {1, 2, 3, 5, 8, 12, 18}},
        {"8.8: memory at 92, mean",
         MEAN_VALUE,
         80,
         -1,
         92,
         40,
         {1, 2, 3, 4, 5, 6, 7, 9, 11, 13, 15, 18, 21, 25, 29, 34, 40, 40}},
        {"8.8: memory at 92, sum",
         SUM_AVERAGE,
         80,
         -1,
         92,
         40,
         {1, 2, 3, 4, 5, 6, 7, 9, 11, 13, 15, 18, 21, 25, 29, 34, 40, 40}},
        {"8.8: memory at 90.5", MEAN_VALUE, 80, -1, 90.5, 40, {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 19}},
        {"8.8: T = 85", MEAN_VALUE, 85, -1, 92, 40, {3, 3, 3}},
    };
    for (size_t i = 0; i < ARRAY_LEN(runs); i++)
        check_run(&runs[i]);
}

/* ---- behaviour: 8.6 ---- */

static void check_limits(const struct scaling_behaviour *behaviour, int64_t proposal, const int64_t *want, size_t n)
{
    struct scaling_history history = {.n_ups = 0};
    int64_t count = want[0];
    for (size_t i = 1; i < n; i++) {
        count = scaling_hpa_limit(behaviour, &history, (int64_t)i * 15, count, proposal);
        assert_int_equal(count, want[i]);
    }
}

static void test_scale_up_is_limited(void **state)
{
    (void)state;
    struct scaling_behaviour old = scaling_default_behaviour(1, 100, false);
    struct scaling_behaviour given = scaling_default_behaviour(1, 100, true);
    check_limits(&old, 50, (const int64_t[]){1, 4, 8, 16, 32, 50, 50}, 7);
    check_limits(&given, 50, (const int64_t[]){1, 5, 10, 20, 40, 50, 50}, 7);
    given.up.select = SCALING_SELECT_MIN;
    check_limits(&given, 50, (const int64_t[]){1, 2, 4, 8, 12, 16}, 6);
    given.up = (struct scaling_direction){
        .select = SCALING_SELECT_MAX, .policies = {{SCALING_PERCENT, 50, 15}}, .n_policies = 1};
    check_limits(&given, 50, (const int64_t[]){1, 2, 3, 5, 8, 12}, 6); /* rounds up */
    given.up.select = SCALING_SELECT_DISABLED;
    check_limits(&given, 50, (const int64_t[]){3, 3, 3}, 3);
}

static void test_scale_down_follows_its_policies(void **state)
{
    (void)state;
    struct scaling_behaviour b = scaling_default_behaviour(1, 100, true);
    b.down = (struct scaling_direction){
        .window_s = 0, .select = SCALING_SELECT_MAX, .policies = {{SCALING_PERCENT, 10, 15}}, .n_policies = 1};
    check_limits(&b, 1, (const int64_t[]){20, 18, 16, 14, 12}, 5);
    b.down.policies[0].period_s = 60; /* counted from the number at the start of the period */
    check_limits(&b, 1, (const int64_t[]){20, 18, 18, 18, 18, 16}, 6);
    b.down.select = SCALING_SELECT_DISABLED;
    check_limits(&b, 1, (const int64_t[]){20, 20, 20}, 3);
    b.down = (struct scaling_direction){
        .select = SCALING_SELECT_MIN, .policies = {{SCALING_PERCENT, 50, 15}, {SCALING_PODS, 3, 15}}, .n_policies = 2};
    check_limits(&b, 1, (const int64_t[]){20, 17, 14, 11, 8, 5, 2, 1, 1}, 9);
}

static void test_scale_down_waits_for_the_window(void **state)
{
    (void)state;
    for (int is_given = 0; is_given <= 1; is_given++) {
        struct scaling_behaviour b = scaling_default_behaviour(1, 100, is_given);
        struct scaling_history history = {.n_ups = 0};
        int64_t n = scaling_hpa_limit(&b, &history, 0, 10, 10);
        for (int64_t t = 15; t < 300; t += 15)
            assert_int_equal(n = scaling_hpa_limit(&b, &history, t, n, 2), 10);
        assert_int_equal(scaling_hpa_limit(&b, &history, 300, n, 2), 2); /* in one step */
    }
}

static void test_scale_up_can_wait_for_a_window_too(void **state)
{
    (void)state;
    struct scaling_behaviour b = scaling_default_behaviour(1, 100, true);
    b.up.window_s = 60;
    struct scaling_history history = {.n_ups = 0};
    assert_int_equal(scaling_hpa_limit(&b, &history, 0, 4, 4), 4);
    for (int64_t t = 15; t < 60; t += 15)
        assert_int_equal(scaling_hpa_limit(&b, &history, t, 4, 6), 4);
    assert_int_equal(scaling_hpa_limit(&b, &history, 60, 4, 6), 6);
}

static void test_bounds_hold_whatever_is_proposed(void **state)
{
    (void)state;
    for (int is_given = 0; is_given <= 1; is_given++) {
        struct scaling_behaviour b = scaling_default_behaviour(2, 6, is_given);
        b.down.window_s = 0;
        struct scaling_history history = {.n_ups = 0};
        assert_int_equal(scaling_hpa_limit(&b, &history, 15, 4, 0), 2);
        assert_int_equal(scaling_hpa_limit(&b, &history, 30, 4, 1000), 6);
    }
}

static void test_history_forgets_the_oldest_and_stays_in_its_room(void **state)
{
    (void)state;
    struct scaling_behaviour b = scaling_default_behaviour(1, 100, true);
    struct scaling_history history = {.n_ups = 0};
    b.down.window_s = 3600;
    (void)scaling_hpa_limit(&b, &history, 0, 50, 50);
    for (int64_t t = 1; t <= 2 * SCALING_HISTORY_MAX; t++)
        (void)scaling_hpa_limit(&b, &history, t, 50, 20);
    assert_int_equal(history.n_proposals, SCALING_HISTORY_MAX);
    assert_int_equal(history.proposals[SCALING_HISTORY_MAX - 1].at_s, 2 * SCALING_HISTORY_MAX);
    assert_int_equal(history.proposals[0].at_s, SCALING_HISTORY_MAX + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_sync_proposes_what_the_controller_proposed),
        cmocka_unit_test(test_tolerances_of_both_directions_are_apart),
        cmocka_unit_test(test_one_percentage_never_asks_for_more_than_its_ratio),
        cmocka_unit_test(test_closed_loops_take_the_steps_of_the_controller),
        cmocka_unit_test(test_scale_up_is_limited),
        cmocka_unit_test(test_scale_down_follows_its_policies),
        cmocka_unit_test(test_scale_down_waits_for_the_window),
        cmocka_unit_test(test_scale_up_can_wait_for_a_window_too),
        cmocka_unit_test(test_bounds_hold_whatever_is_proposed),
        cmocka_unit_test(test_history_forgets_the_oldest_and_stays_in_its_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
