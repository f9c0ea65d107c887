/* scaling with signals of the pods' own servers: demand above 100 %, activity by requests, what wakes from zero, queues
 * of jobs. Means over requests have a test of their own. */
#include "scaling/scaling.h"

#include "pods.h"

#include <string.h>

enum { ARENA_BYTES = 1 << 20 };

/* kv_cache_usage with T = 80: demand is in it, so its ceiling is 200. */
static struct scaling_rules demand_rules(void)
{
    struct scaling_rules rules = rules_of(SCALING_AVG);
    rules.ceiling = 200;
    rules.is_engine = true;
    return rules;
}

static struct scaling_pod unsupported(void)
{
    struct scaling_pod pod = missing_pod(5);
    pod.reading = SCALING_READ_UNSUPPORTED;
    return pod;
}

static struct scaling_pod page_pod(double p)
{
    struct scaling_pod pod = measured_pod(p);
    pod.has_gpu = false;
    return pod;
}

static void test_demand_doubles_the_replicas_in_one_step_and_no_more(void **state)
{
    (void)state;
    const struct scaling_rules rules = demand_rules();
    const struct {
        const char *what;
        int64_t c;
        const struct scaling_pod *pods;
        size_t n;
        enum scaling_rule rule;
        double value;
        int64_t proposal;
    } cases[] = {
        {"waiting requests on both: x 2.5 at most", 2, PODS(page_pod(200), page_pod(200)), SCALING_RULE_KNOWN, 400, 5},
        {"one backlog: one more", 2, PODS(page_pod(160), page_pod(40)), SCALING_RULE_KNOWN, 200, 3},
        {"full without a queue: one more", 2, PODS(page_pod(95), page_pod(95)), SCALING_RULE_KNOWN, 190, 3},
        {"O37: inside the tolerance", 1, PODS(page_pod(87)), SCALING_RULE_KNOWN, 87, 1},
        {"a missing page may hide the whole backlog", 3, PODS(page_pod(10), page_pod(10), missing_pod(5)),
         SCALING_RULE_HOLD, 240, 3},
        {"not more than that", 4, PODS(page_pod(10), page_pod(10), page_pod(5), missing_pod(5)), SCALING_RULE_SHRINK,
         225, 3},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        ARENA_AUTO struct arena arena;
        arena_init(&arena, ARENA_BYTES);
        struct scaling_result r = evaluate_rules(&rules, cases[i].c, cases[i].pods, cases[i].n, &arena);
        struct scaling_answer answer;
        scaling_for_hpa(&(struct scaling_hpa){.target = 80, .tolerance_up = 0.1, .tolerance_down = 0.1}, &r, &answer);
        if (r.rule != cases[i].rule || !(fabs(r.value - cases[i].value) < 1e-9) || answer.proposal != cases[i].proposal)
            fail_msg("%s: %s, value %g, the HPA answers %d", cases[i].what, scaling_rule_sentence(r.rule), r.value,
                     (int)answer.proposal);
    }
}

static void test_pages_without_the_signal_are_named_as_such(void **state)
{
    (void)state;
    const struct scaling_rules rules = demand_rules();
    ARENA_AUTO struct arena arena;
    arena_init(&arena, ARENA_BYTES);
    struct scaling_result r = evaluate_rules(&rules, 2, PODS(unsupported(), unsupported()), &arena);
    assert_int_equal(r.rule, SCALING_RULE_NO_SIGNAL);
    assert_int_equal(r.error.class, ERR_FAILED_PRECONDITION);
    assert_int_equal(r.active_error.class, ERR_FAILED_PRECONDITION);
    r = evaluate_rules(&rules, 2, PODS(unsupported(), page_pod(30)), &arena);
    assert_int_equal(r.rule, SCALING_RULE_HOLD);
    assert_true(r.warnings & 1U << SCALING_WARN_NO_SIGNAL);
    assert_false(r.warnings & 1U << SCALING_WARN_UNSUPPORTED);
}

/* ---- activity ---- */

static struct scaling_pod with_in_flight(struct scaling_pod pod, double requests)
{
    pod.load.in_flight = KNOWN(requests);
    return pod;
}

static struct scaling_pod in_group(struct scaling_pod pod)
{
    pod.group = 0;
    return pod;
}

static void test_a_pod_with_requests_is_active_whatever_its_signal_says(void **state)
{
    (void)state;
    const struct scaling_rules rules = demand_rules(); /* active above 5 */
    const struct scaling_pod busy = with_in_flight(page_pod(1), 1), idle = with_in_flight(page_pod(99), 0),
                             without = with_in_flight(unsupported(), 3), still = with_in_flight(unsupported(), 0);
    const struct {
        const char *what;
        int64_t c;
        const struct scaling_pod *pods;
        size_t n;
        enum scaling_active_rule rule;
        bool is_active;
    } cases[] = {
        {"one request", 1, PODS(busy), SCALING_ACTIVE_REQUESTS, true},
        {"none, and the cache still full", 1, PODS(idle), SCALING_ACTIVE_NO_REQUESTS, false},
        {"one of two", 2, PODS(idle, busy), SCALING_ACTIVE_REQUESTS, true},
        {"who does not know counts by the signal", 2, PODS(idle, page_pod(5.001)), SCALING_ACTIVE_ABOVE, true},
        {"at the threshold", 2, PODS(idle, page_pod(5)), SCALING_ACTIVE_NOT_ABOVE, false},
        {"a missing page is not idle", 2, PODS(idle, missing_pod(5)), SCALING_ACTIVE_MISSING, true},
        {"a pod loads", 2, PODS(idle, pending_pod(5)), SCALING_ACTIVE_LOADING, true},
        {"gone pods do not count", 1, PODS(idle, with_in_flight(deleted_pod(0), 9)), SCALING_ACTIVE_NO_REQUESTS, false},
        {"requests on a page that does not have the signal", 1, PODS(without), SCALING_ACTIVE_REQUESTS, true},
        {"no requests there, and no signal", 1, PODS(still), SCALING_ACTIVE_ERROR, false},
        {"one member of a group", 1, PODS(in_group(idle), in_group(busy)), SCALING_ACTIVE_REQUESTS, true},
        {"C = 0", 0, PODS(with_in_flight(deleted_pod(0), 9)), SCALING_ACTIVE_ZERO, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        ARENA_AUTO struct arena arena;
        arena_init(&arena, ARENA_BYTES);
        struct scaling_result r = evaluate_rules(&rules, cases[i].c, cases[i].pods, cases[i].n, &arena);
        if (r.active_rule != cases[i].rule || r.is_active != cases[i].is_active)
            fail_msg("%s: %s", cases[i].what, scaling_active_sentence(r.active_rule));
        assert_true(scaling_active_is_measured(r.active_rule) ==
                    (r.active_rule == SCALING_ACTIVE_REQUESTS || r.active_rule == SCALING_ACTIVE_ABOVE));
    }
}

static void test_what_wakes_makes_active_from_zero_and_above(void **state)
{
    (void)state;
    const struct scaling_rules rules = demand_rules();
    const struct scaling_pod idle = with_in_flight(page_pod(0), 0), busy = with_in_flight(page_pod(0), 2);
    const struct {
        const char *what;
        int64_t c;
        const struct scaling_pod *pods;
        size_t n;
        enum scaling_wake wake;
        enum scaling_active_rule rule;
        bool is_active;
        enum err_class error;
    } cases[] = {
        {"no wakeMetric, at zero", 0, NULL, 0, SCALING_WAKE_NONE, SCALING_ACTIVE_ZERO, false, ERR_NONE},
        {"demand at zero", 0, NULL, 0, SCALING_WAKE_ACTIVE, SCALING_ACTIVE_WAKE, true, ERR_NONE},
        {"none at zero", 0, NULL, 0, SCALING_WAKE_INACTIVE, SCALING_ACTIVE_ZERO, false, ERR_NONE},
        {"unknown at zero wakes nothing", 0, NULL, 0, SCALING_WAKE_UNKNOWN, SCALING_ACTIVE_ERROR, false,
         ERR_UNAVAILABLE},
        {"demand, and idle pods", 1, PODS(idle), SCALING_WAKE_ACTIVE, SCALING_ACTIVE_WAKE, true, ERR_NONE},
        {"demand, and busy ones", 1, PODS(busy), SCALING_WAKE_ACTIVE, SCALING_ACTIVE_REQUESTS, true, ERR_NONE},
        {"no demand, and busy ones", 1, PODS(busy), SCALING_WAKE_INACTIVE, SCALING_ACTIVE_REQUESTS, true, ERR_NONE},
        {"no demand anywhere", 1, PODS(idle), SCALING_WAKE_INACTIVE, SCALING_ACTIVE_NO_REQUESTS, false, ERR_NONE},
        {"unknown is not idle", 1, PODS(idle), SCALING_WAKE_UNKNOWN, SCALING_ACTIVE_WAKE_UNKNOWN, true, ERR_NONE},
        {"unknown beside busy ones", 1, PODS(busy), SCALING_WAKE_UNKNOWN, SCALING_ACTIVE_REQUESTS, true, ERR_NONE},
        {"demand where no page has the signal", 1, PODS(unsupported()), SCALING_WAKE_ACTIVE, SCALING_ACTIVE_WAKE, true,
         ERR_NONE},
        {"unknown there stays an error", 1, PODS(unsupported()), SCALING_WAKE_UNKNOWN, SCALING_ACTIVE_ERROR, false,
         ERR_FAILED_PRECONDITION},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        ARENA_AUTO struct arena arena;
        arena_init(&arena, ARENA_BYTES);
        struct scaling_result r = evaluate_rules(&rules, cases[i].c, cases[i].pods, cases[i].n, &arena);
        scaling_apply_wake(&r, cases[i].wake, "HTTP 404");
        if (r.active_rule != cases[i].rule || r.is_active != cases[i].is_active ||
            r.active_error.class != cases[i].error)
            fail_msg("%s: %s, %s", cases[i].what, scaling_active_sentence(r.active_rule), r.active_error.text);
        bool says_why = cases[i].error != ERR_UNAVAILABLE || strstr(r.active_error.text, "HTTP 404");
        assert_true(says_why);
    }
}

static void test_demand_wakes_also_while_the_count_is_not_known(void **state)
{
    (void)state;
    const struct scaling_rules rules = demand_rules();
    const struct scaling_workload away = {.is_scale_known = false};
    ARENA_AUTO struct arena arena;
    arena_init(&arena, ARENA_BYTES);
    struct scaling_result r;
    scaling_evaluate(&rules, &away, &arena, &r);
    assert_int_equal(r.active_error.class, ERR_UNAVAILABLE);
    scaling_apply_wake(&r, SCALING_WAKE_UNKNOWN, "no");
    assert_int_equal(r.active_error.class, ERR_UNAVAILABLE);
    scaling_apply_wake(&r, SCALING_WAKE_ACTIVE, "");
    assert_true(r.is_active && r.active_error.class == ERR_NONE);
}

static void test_the_sentence_says_that_requests_weigh(void **state)
{
    (void)state;
    BUF_AUTO struct buf text;
    buf_init(&text, 1024);
    ARENA_AUTO struct arena arena;
    arena_init(&arena, ARENA_BYTES);
    struct scaling_rules rules = demand_rules();
    rules.is_weighted = true;
    rules.ceiling = 0;
    struct scaling_result r = evaluate_rules(&rules, 2, PODS(with_requests(page_pod(160), 4), page_pod(0)), &arena);
    scaling_say(&rules, &r, NULL, &text);
    assert_string_equal(buf_cstr(&text), "avg of 2, weighted by requests: 320, asks for 4, present 2: every pod is "
                                         "known; pods: 2 measured; value 320 for target 80");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_demand_doubles_the_replicas_in_one_step_and_no_more),
        cmocka_unit_test(test_pages_without_the_signal_are_named_as_such),
        cmocka_unit_test(test_a_pod_with_requests_is_active_whatever_its_signal_says),
        cmocka_unit_test(test_what_wakes_makes_active_from_zero_and_above),
        cmocka_unit_test(test_demand_wakes_also_while_the_count_is_not_known),
        cmocka_unit_test(test_the_sentence_says_that_requests_weigh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
