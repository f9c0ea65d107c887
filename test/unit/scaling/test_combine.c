/* scaling: several signals of one workload as one result, as the HPA takes several metrics. */
#include "scaling/scaling.h"

#include "pods.h"
#include "random.h"

#include <string.h>

enum { PARTS_MAX = 4 };

static struct scaling_result part(enum scaling_rule rule, double value, double target, int64_t c)
{
    struct scaling_result r = {.rule = rule,
                               .value = value,
                               .target = target,
                               .replicas = {.spec = c, .status = c, .ready = c},
                               .lo = value,
                               .hi = value,
                               .asks_lo = (int64_t)ceil(value / target - 1e-9),
                               .asks_hi = (int64_t)ceil(value / target - 1e-9),
                               .active_rule = SCALING_ACTIVE_NOT_ABOVE};
    r.is_hold = rule == SCALING_RULE_HOLD || rule == SCALING_RULE_HOLD_LOADING;
    return r;
}

static struct scaling_result failed(enum scaling_rule rule, enum err_class class, int64_t c)
{
    struct scaling_result r = part(rule, 0, 50, c);
    (void)err_set(&r.error, class, "%s", scaling_rule_sentence(rule));
    r.active_rule = SCALING_ACTIVE_MISSING;
    r.is_active = true;
    return r;
}

#define KNOWN_PART(v, t, c) part(SCALING_RULE_KNOWN, v, t, c)
#define HELD_PART(t, c)     part(SCALING_RULE_HOLD, (t) * (double)(c), t, c)
#define UNREAD_PART(c)      failed(SCALING_RULE_NOTHING_READ, ERR_UNAVAILABLE, c)
#define PARTS(...)                                                                                                     \
    (const struct scaling_result[]){__VA_ARGS__},                                                                      \
        sizeof((const struct scaling_result[]){__VA_ARGS__}) / sizeof(struct scaling_result)

static void test_the_busiest_by_its_own_target_decides(void **state)
{
    (void)state;
    const struct {
        const char *what;
        const struct scaling_result *parts;
        size_t n;
        enum scaling_rule rule;
        double value;
        size_t part;
        bool is_hold;
    } cases[] = {
        {"one", PARTS(KNOWN_PART(48, 16, 2)), SCALING_RULE_KNOWN, 300, 0, false},
        {"the first", PARTS(KNOWN_PART(48, 16, 2), KNOWN_PART(120, 80, 2)), SCALING_RULE_KNOWN, 300, 0, false},
        {"the second", PARTS(KNOWN_PART(8, 16, 2), KNOWN_PART(120, 80, 2)), SCALING_RULE_KNOWN, 150, 1, false},
        {"idle", PARTS(KNOWN_PART(0, 16, 2), KNOWN_PART(0, 80, 2)), SCALING_RULE_KNOWN, 0, 0, false},
        {"a hold blocks shrinking", PARTS(HELD_PART(16, 4), KNOWN_PART(100, 80, 4)), SCALING_RULE_HOLD, 400, 0, true},
        {"a hold does not block growing", PARTS(HELD_PART(16, 4), KNOWN_PART(480, 80, 4)), SCALING_RULE_KNOWN, 600, 1,
         false},
        {"who measures C decides over who holds", PARTS(HELD_PART(16, 4), KNOWN_PART(320, 80, 4)), SCALING_RULE_KNOWN,
         400, 1, false},
        {"the worst case of one, all of the other", PARTS(part(SCALING_RULE_SHRINK, 160, 80, 4), KNOWN_PART(16, 16, 4)),
         SCALING_RULE_SHRINK, 200, 0, false},
        {"what is known of one", PARTS(KNOWN_PART(16, 16, 4), part(SCALING_RULE_GROW, 560, 80, 4)), SCALING_RULE_GROW,
         700, 1, false},
        {"nothing but loading pods", PARTS(part(SCALING_RULE_HOLD_LOADING, 64, 16, 4), KNOWN_PART(0, 80, 4)),
         SCALING_RULE_HOLD_LOADING, 400, 0, true},
        {"an error blocks shrinking", PARTS(UNREAD_PART(4), KNOWN_PART(80, 80, 4)), SCALING_RULE_HOLD_PART, 400, 2,
         true},
        {"an error does not block growing", PARTS(UNREAD_PART(4), KNOWN_PART(400, 80, 4)), SCALING_RULE_KNOWN, 500, 1,
         false},
        {"an error beside the present count", PARTS(UNREAD_PART(4), KNOWN_PART(320, 80, 4)), SCALING_RULE_HOLD_PART,
         400, 2, true},
        {"an error and a hold", PARTS(HELD_PART(16, 4), UNREAD_PART(4)), SCALING_RULE_HOLD_PART, 400, 2, true},
        {"C = 0", PARTS(part(SCALING_RULE_ZERO, 0, 16, 0), part(SCALING_RULE_ZERO, 0, 80, 0)), SCALING_RULE_ZERO, 0, 2,
         false},
        {"a milli above a whole number asks for one more", PARTS(KNOWN_PART(2000000.001, 1000000, 2)),
         SCALING_RULE_KNOWN, 200.001, 0, false},
        {"a third is not above itself", PARTS(KNOWN_PART(0.9, 0.3, 2)), SCALING_RULE_KNOWN, 300, 0, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct scaling_result r;
        scaling_combine(cases[i].parts, cases[i].n, 100, &r);
        bool is_same = r.rule == cases[i].rule && fabs(r.value - cases[i].value) < 1e-9 && r.part == cases[i].part &&
                       r.is_hold == cases[i].is_hold && r.error.class == ERR_NONE && r.n_parts == cases[i].n;
        if (!is_same)
            fail_msg("%s: rule \"%s\", value %g, part %zu, error %s", cases[i].what, scaling_rule_sentence(r.rule),
                     r.value, r.part, r.error.class == ERR_NONE ? "none" : r.error.text);
    }
}

static void test_all_in_error_is_the_first_error(void **state)
{
    (void)state;
    const struct scaling_result parts[] = {failed(SCALING_RULE_NO_SIGNAL, ERR_FAILED_PRECONDITION, 4), UNREAD_PART(4)};
    struct scaling_result r;
    struct scaling_answer answer;
    scaling_combine(parts, 2, 100, &r);
    assert_int_equal(r.error.class, ERR_FAILED_PRECONDITION);
    assert_int_equal(r.rule, SCALING_RULE_NO_SIGNAL);
    assert_int_equal(r.n_failed, 2);
    assert_double_same(r.value, 0);
    scaling_for_hpa(&(struct scaling_hpa){.target = 100}, &r, &answer);
    assert_int_equal(answer.error.class, ERR_FAILED_PRECONDITION);
}

static void test_values_that_keda_cannot_take_are_an_error(void **state)
{
    (void)state;
    const struct scaling_result parts[] = {KNOWN_PART(1e12, 0.001, 4)};
    struct scaling_result r;
    scaling_combine(parts, 1, 100, &r);
    assert_int_equal(r.rule, SCALING_RULE_OUT_OF_RANGE);
    assert_int_equal(r.error.class, ERR_INTERNAL);
    assert_double_same(r.value, 0);
}

static struct scaling_result active(enum scaling_active_rule rule, bool is_active, enum err_class class)
{
    struct scaling_result r = KNOWN_PART(8, 16, 2);
    r.active_rule = rule;
    r.is_active = is_active;
    if (class != ERR_NONE)
        (void)err_set(&r.active_error, class, "no");
    return r;
}

static void test_any_active_part_makes_the_whole_active(void **state)
{
    (void)state;
    const struct scaling_result idle = active(SCALING_ACTIVE_NOT_ABOVE, false, ERR_NONE),
                                busy = active(SCALING_ACTIVE_REQUESTS, true, ERR_NONE),
                                missing = active(SCALING_ACTIVE_MISSING, true, ERR_NONE),
                                error = active(SCALING_ACTIVE_ERROR, false, ERR_UNAVAILABLE),
                                zero = active(SCALING_ACTIVE_ZERO, false, ERR_NONE);
    const struct {
        const char *what;
        const struct scaling_result *parts;
        size_t n;
        enum scaling_active_rule rule;
        size_t part;
        bool is_active, is_error;
    } cases[] = {
        {"none", PARTS(idle, idle), SCALING_ACTIVE_NOT_ABOVE, 0, false, false},
        {"one", PARTS(idle, busy), SCALING_ACTIVE_REQUESTS, 1, true, false},
        {"demand says more than a missing reading", PARTS(missing, busy), SCALING_ACTIVE_REQUESTS, 1, true, false},
        {"a missing reading", PARTS(idle, missing), SCALING_ACTIVE_MISSING, 1, true, false},
        {"an error beside demand", PARTS(error, busy), SCALING_ACTIVE_REQUESTS, 1, true, false},
        {"an error beside an idle one: unknown is not idle", PARTS(error, idle), SCALING_ACTIVE_PART, 1, true, false},
        {"nothing but errors", PARTS(error, error), SCALING_ACTIVE_ERROR, 0, false, true},
        {"at zero", PARTS(zero, zero), SCALING_ACTIVE_ZERO, 0, false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct scaling_result r;
        scaling_combine(cases[i].parts, cases[i].n, 100, &r);
        if (r.active_rule != cases[i].rule || r.active_part != cases[i].part || r.is_active != cases[i].is_active ||
            (r.active_error.class != ERR_NONE) != cases[i].is_error)
            fail_msg("%s: %s, part %zu", cases[i].what, scaling_active_sentence(r.active_rule), r.active_part);
    }
}

static void test_the_whole_has_the_largest_ends_and_all_warnings(void **state)
{
    (void)state;
    struct scaling_result parts[] = {part(SCALING_RULE_HOLD, 64, 16, 4), KNOWN_PART(240, 80, 4)};
    parts[0].lo = 8;
    parts[0].hi = 96;
    parts[0].asks_lo = 1;
    parts[0].asks_hi = 6;
    parts[0].warnings = 1U << SCALING_WARN_STUCK;
    parts[0].counts[SCALING_POD_MISSING] = 3;
    parts[1].warnings = 1U << SCALING_WARN_HUNG;
    struct scaling_result r;
    scaling_combine(parts, 2, 100, &r);
    assert_double_same(r.lo, 300);
    assert_double_same(r.hi, 600);
    assert_int_equal(r.asks_lo, 3);
    assert_int_equal(r.asks_hi, 6);
    assert_int_equal(r.warnings, 1U << SCALING_WARN_STUCK | 1U << SCALING_WARN_HUNG);
    assert_int_equal(r.counts[SCALING_POD_MISSING], 3); /* of the part that decided */
    assert_int_equal(r.replicas.spec, 4);
    assert_double_same(r.target, 100);
    scaling_combine(parts, 2, 50, &r); /* as the HPA has it */
    assert_double_same(r.value, 200);
}

static void test_the_sentence_says_which_signal_decides(void **state)
{
    (void)state;
    BUF_AUTO struct buf text;
    buf_init(&text, 2048);
    const struct scaling_rules rules = rules_of(SCALING_AVG);
    const struct scaling_hpa hpa = {.target = 100, .tolerance_up = 0.1, .tolerance_down = 0.1};
    const struct scaling_result both[] = {KNOWN_PART(8, 16, 2), KNOWN_PART(240, 80, 2)};
    struct scaling_result r;
    struct scaling_answer answer;
    scaling_combine(both, 2, 100, &r);
    scaling_for_hpa(&hpa, &r, &answer);
    scaling_say(&rules, &r, &answer, &text);
    assert_string_equal(buf_cstr(&text),
                        "busiest of 2 signals, each by its own target: 300, asks for 3, present 2: every pod is known; "
                        "signal 2 of 2 decides; value 300 for target 100; sent as it is; the HPA answers 3");
    const struct scaling_result one[] = {KNOWN_PART(8, 16, 2), UNREAD_PART(2)};
    buf_reset(&text);
    scaling_combine(one, 2, 100, &r);
    scaling_say(&rules, &r, NULL, &text);
    assert_string_equal(buf_cstr(&text),
                        "busiest of 2 signals, each by its own target: at least 50 (asks for 1), present 2: a signal "
                        "that has no value could decide it, so the present count stays; 1 of 2 signals has no value; "
                        "value 200 for target 100");
}

/* ---- as the HPA over several metrics ---- */

static double tolerance(struct random *random)
{
    return random_is(random, 0.5) ? 0.1 : random_double(random, 0, 0.4);
}

/* At one of the edges of the tolerance, as close as rounding to a whole milli may move it. */
static bool is_at_an_edge(const struct scaling_hpa *hpa, double ratio)
{
    return fabs(ratio - (1 + hpa->tolerance_up)) < 2e-5 || fabs(ratio - (1 - hpa->tolerance_down)) < 2e-5;
}

/* computeReplicasForMetrics: the largest proposal; with a metric in error, nothing below the present count. */
static int64_t hpa_of_all(const struct scaling_hpa *hpa, const struct scaling_result *parts, size_t n, int64_t c,
                          bool *ret_is_edge)
{
    int64_t largest = -1;
    bool is_any_failed = false;
    for (size_t i = 0; i < n; i++) {
        struct scaling_hpa own = *hpa;
        own.target = parts[i].target;
        is_any_failed |= parts[i].error.class != ERR_NONE;
        if (parts[i].error.class != ERR_NONE)
            continue;
        int64_t proposal = scaling_hpa_desired(&own, parts[i].value, &parts[i].replicas);
        *ret_is_edge |= is_at_an_edge(hpa, parts[i].value / parts[i].target / (double)c);
        largest = proposal > largest ? proposal : largest;
    }
    return is_any_failed && largest >= 0 && largest < c ? c : largest;
}

static void test_the_hpa_answers_the_largest_of_what_it_would_answer_to_each(void **state)
{
    (void)state;
    struct random random = random_start("combined as the HPA", 17);
    uint64_t rounds = random_rounds(50000), compared = 0, moved = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        struct scaling_result parts[PARTS_MAX], r;
        int64_t c = random_int(&random, 1, 60);
        size_t n = (size_t)random_int(&random, 1, PARTS_MAX);
        for (size_t k = 0; k < n; k++) {
            double target = (double)random_int(&random, 1, 200000) / 1000;
            double value = random_is(&random, 0.2) ? target * (double)random_int(&random, 0, 2 * c)
                                                   : random_double(&random, 0, 2 * target * (double)c);
            parts[k] = random_is(&random, 0.1) ? UNREAD_PART(c) : KNOWN_PART(round(value * 1000) / 1000, target, c);
            if (random_is(&random, 0.1))
                parts[k] = HELD_PART(target, c);
            parts[k].replicas = (struct scaling_replicas){.spec = c, .status = c, .ready = c};
        }
        struct scaling_hpa hpa = {
            .target = 100, .tolerance_up = tolerance(&random), .tolerance_down = tolerance(&random)};
        bool is_edge = false;
        int64_t want = hpa_of_all(&hpa, parts, n, c, &is_edge);
        scaling_combine(parts, n, 100, &r);
        assert_int_equal(r.error.class != ERR_NONE, want < 0);
        if (want < 0 || is_edge)
            continue;
        compared++;
        moved += want != c;
        struct scaling_answer answer;
        scaling_for_hpa(&hpa, &r, &answer);
        assert_int_equal(answer.error.class, ERR_NONE);
        if (answer.wanted != want || answer.proposal != want)
            fail_msg("round %" PRIu64 ": value %.9g of %d: wanted %d, HPA %d, over several metrics %d", i, r.value,
                     (int)c, (int)answer.wanted, (int)answer.proposal, (int)want);
        /* in a rollout the present count still is meant */
        r.replicas.status = c + random_int(&random, 0, 3);
        scaling_for_hpa(&hpa, &r, &answer);
        assert_true(answer.wanted == want &&
                    (answer.error.class != ERR_NONE || answer.fit == SCALING_FIT_NONE || answer.proposal == want));
    }
    assert_true(compared > rounds / 2 && moved > rounds / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_busiest_by_its_own_target_decides),
        cmocka_unit_test(test_all_in_error_is_the_first_error),
        cmocka_unit_test(test_values_that_keda_cannot_take_are_an_error),
        cmocka_unit_test(test_any_active_part_makes_the_whole_active),
        cmocka_unit_test(test_the_whole_has_the_largest_ends_and_all_warnings),
        cmocka_unit_test(test_the_sentence_says_which_signal_decides),
        cmocka_unit_test(test_the_hpa_answers_the_largest_of_what_it_would_answer_to_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
