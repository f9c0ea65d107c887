/* scaling 2.5: what is sent so that the HPA answers what we mean. */
#include "scaling/scaling.h"

#include "pods.h"
#include "random.h"

static struct scaling_hpa hpa_of(enum scaling_metric_type type, double target)
{
    return (struct scaling_hpa){.type = type, .target = target, .tolerance_up = 0.1, .tolerance_down = 0.1};
}

static struct scaling_result result_of(double value, bool is_hold, int64_t c, int64_t s, int64_t r)
{
    return (struct scaling_result){.rule = is_hold ? SCALING_RULE_HOLD : SCALING_RULE_KNOWN,
                                   .value = value,
                                   .is_hold = is_hold,
                                   .replicas = {c, s, r}};
}

static void test_values_fit_the_hpa(void **state)
{
    (void)state;
    enum { AVERAGE = SCALING_AVERAGE_VALUE, VALUE = SCALING_VALUE };
    static const struct {
        const char *what;
        int type;
        double value;
        bool is_hold;
        int64_t c, s, r;
        enum scaling_fit fit;
        double sent;
        int64_t wanted, proposal;
    } cases[] = {
        {"no surge: as it is", AVERAGE, 350, false, 4, 4, 4, SCALING_FIT_AS_IS, 350, 4, 4},
        {"growth", AVERAGE, 790, false, 7, 7, 7, SCALING_FIT_AS_IS, 790, 10, 10},
        {"hold in a surge of 1 on 4: far enough", AVERAGE, 320, true, 4, 5, 4, SCALING_FIT_AS_IS, 320, 4, 4},
        {"load near the target in a surge: the ratchet", AVERAGE, 344, false, 4, 5, 5, SCALING_FIT_NEAREST, 319.999, 4,
         4},
        {"hold in a surge of 1 on 18: just below the band", AVERAGE, 1440, true, 18, 19, 18, SCALING_FIT_NEAREST,
         1367.998, 18, 18},
        {"hold in a surge of 1 on 19: there is none", AVERAGE, 1520, true, 19, 20, 19, SCALING_FIT_REFUSED, 0, 19, 19},
        {"a known value near the target is no different", AVERAGE, 1500, false, 19, 20, 20, SCALING_FIT_REFUSED, 0, 19,
         19},
        {"growth that the band swallows is sent", AVERAGE, 1680, false, 19, 20, 20, SCALING_FIT_NONE, 1680, 21, 20},
        {"hold in a surge of 5 on 20", AVERAGE, 1600, true, 20, 25, 20, SCALING_FIT_AS_IS, 1600, 20, 20},
        {"hold, and status lags behind", AVERAGE, 1600, true, 20, 19, 19, SCALING_FIT_NONE, 1600, 20, 19},
        {"growth into the band of a surge", AVERAGE, 1100, false, 10, 14, 10, SCALING_FIT_AS_IS, 1100, 14, 14},
        {"shrinking is not stopped by the surge", AVERAGE, 800, false, 12, 11, 11, SCALING_FIT_NEAREST, 791.998, 10,
         10},
        {"status 0: pods to come", AVERAGE, 240, true, 3, 0, 0, SCALING_FIT_AS_IS, 240, 3, 3},
        {"nothing to do", AVERAGE, 0, false, 3, 3, 3, SCALING_FIT_AS_IS, 0, 0, 0},

        {"Value: the present count is the target", VALUE, 350, false, 4, 4, 4, SCALING_FIT_TARGET, 80, 4, 4},
        {"Value: hold is the target", VALUE, 320, true, 4, 5, 2, SCALING_FIT_TARGET, 80, 4, 4},
        {"Value: nobody is Ready", VALUE, 500, false, 4, 4, 0, SCALING_FIT_TARGET, 80, 7, 4},
        {"Value: per Ready pod", VALUE, 790, false, 7, 7, 7, SCALING_FIT_PER_READY, 112.857, 10, 10},
        {"Value: per Ready pod falls into the band", VALUE, 340, false, 3, 3, 4, SCALING_FIT_NEAREST, 88.001, 5, 5},
        {"Value: 26.667 would be a little more than 3", VALUE, 240, false, 6, 6, 9, SCALING_FIT_NEAREST, 26.666, 3, 3},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct scaling_hpa hpa = hpa_of((enum scaling_metric_type)cases[i].type, 80);
        struct scaling_result result = result_of(cases[i].value, cases[i].is_hold, cases[i].c, cases[i].s, cases[i].r);
        struct scaling_answer a;
        scaling_for_hpa(&hpa, &result, &a);
        bool is_refused = cases[i].fit == SCALING_FIT_REFUSED;
        if (a.fit != cases[i].fit || fabs(a.value - cases[i].sent) > 1e-9 || a.wanted != cases[i].wanted ||
            a.proposal != cases[i].proposal || (a.error.class == ERR_UNAVAILABLE) != is_refused)
            fail_msg("%s: %.17g, %s; wanted %d, proposal %d", cases[i].what, a.value, scaling_fit_sentence(a.fit),
                     (int)a.wanted, (int)a.proposal);
    }
}

static void test_with_scaling_modifiers_a_hold_is_unavailable(void **state)
{
    (void)state;
    struct scaling_hpa hpa = hpa_of(SCALING_AVERAGE_VALUE, 80);
    hpa.has_modifiers = true;
    struct scaling_answer a;
    struct scaling_result hold = result_of(320, true, 4, 5, 4), known = result_of(344, false, 4, 5, 5);
    scaling_for_hpa(&hpa, &hold, &a);
    assert_int_equal(a.error.class, ERR_UNAVAILABLE);
    scaling_for_hpa(&hpa, &known, &a);
    assert_int_equal(a.error.class, ERR_NONE);
    assert_double_same(a.value, 344);
}

static void test_errors_and_zero_pass(void **state)
{
    (void)state;
    struct scaling_hpa hpa = hpa_of(SCALING_VALUE, 80);
    struct scaling_result zero = {.rule = SCALING_RULE_ZERO}, away = {.rule = SCALING_RULE_NO_SCALE};
    (void)err_set(&away.error, ERR_UNAVAILABLE, "away");
    struct scaling_answer a;
    scaling_for_hpa(&hpa, &zero, &a);
    assert_int_equal(a.error.class, ERR_NONE);
    assert_double_same(a.value, 0);
    scaling_for_hpa(&hpa, &away, &a);
    assert_int_equal(a.error.class, ERR_UNAVAILABLE);
    assert_string_equal(a.error.text, "away");
}

/* "a surge of 1 from C = 19 on": for T = 80 and the default tolerance. */
static void test_holds_fail_exactly_where_the_page_says(void **state)
{
    (void)state;
    struct scaling_hpa hpa = hpa_of(SCALING_AVERAGE_VALUE, 80);
    for (int64_t c = 1; c <= 60; c++)
        for (int64_t s = c; s <= 2 * c; s++) {
            struct scaling_result result = result_of(80.0 * (double)c, true, c, s, c);
            struct scaling_answer a;
            scaling_for_hpa(&hpa, &result, &a);
            bool is_refused = a.error.class != ERR_NONE;
            /* no room between (C - 1) T and 0.9 S T */
            bool has_no_room = s > c && (double)(c - 1) * 80 + 0.001 >= 0.9 * (double)s * 80 - 0.001;
            if (is_refused != has_no_room || (!is_refused && a.proposal != c))
                fail_msg("C %d S %d: refused %d, proposal %d", (int)c, (int)s, is_refused, (int)a.proposal);
        }
}

/* ---- against a search through all values ---- */

static int64_t ask(const struct scaling_hpa *hpa, const struct scaling_replicas *replicas, int64_t milli)
{
    return scaling_hpa_desired(hpa, (double)milli / 1000, replicas);
}

static bool is_clear(const struct scaling_hpa *hpa, const struct scaling_replicas *replicas, int64_t milli,
                     int64_t wanted)
{
    if (ask(hpa, replicas, milli) != wanted)
        return false;
    if (hpa->type == SCALING_VALUE)
        return true;
    return ask(hpa, replicas, milli + 1) == wanted && (milli == 0 || ask(hpa, replicas, milli - 1) == wanted);
}

static int64_t search(const struct scaling_hpa *hpa, const struct scaling_replicas *replicas, int64_t wanted,
                      double value)
{
    int64_t at = scaling_milli(value);
    for (int64_t away = 0; away < 6000; away++) {
        if (at >= away && is_clear(hpa, replicas, at - away, wanted))
            return away;
        if (is_clear(hpa, replicas, at + away, wanted))
            return away;
    }
    return -1;
}

static void check_one(struct random *random, uint64_t round)
{
    struct scaling_hpa hpa = {.type = random_is(random, 0.5) ? SCALING_VALUE : SCALING_AVERAGE_VALUE,
                              .target = (double)random_int(random, 1, 90) / 1000,
                              .tolerance_up = random_double(random, 0, 0.3),
                              .tolerance_down = random_double(random, 0, random_is(random, 0.1) ? 1.2 : 0.3)};
    int64_t c = random_int(random, 1, 24);
    bool is_hold = random_is(random, 0.3);
    double value = is_hold ? hpa.target * (double)c : (double)random_int(random, 0, 90 * 30) / 1000;
    struct scaling_result result = result_of(value, is_hold, c, random_int(random, 0, 30), random_int(random, 0, 30));
    struct scaling_answer a;
    scaling_for_hpa(&hpa, &result, &a);

    struct scaling_hpa average = hpa;
    average.type = SCALING_AVERAGE_VALUE;
    struct scaling_replicas settled = {.spec = c, .status = c};
    int64_t wanted = scaling_hpa_desired(&average, value, &settled);
    bool is_value = hpa.type == SCALING_VALUE;
    double from = is_value && result.replicas.ready ? value / (double)result.replicas.ready : value;
    int64_t sent = scaling_milli(a.value), away = search(&hpa, &result.replicas, wanted, from);
    bool is_as_is = !is_value && ask(&hpa, &result.replicas, scaling_milli(value)) == wanted;
    bool is_target = is_value && (wanted == c || result.replicas.ready == 0);
    bool is_right = a.wanted == wanted;
    if (is_target)
        is_right &= sent == scaling_milli(hpa.target);
    else if (is_as_is)
        is_right &= sent == scaling_milli(value) && a.proposal == wanted;
    else if (away >= 0)
        is_right &= llabs(sent - scaling_milli(from)) == away && a.proposal == wanted;
    else if (!is_value && wanted == c && result.replicas.status > c)
        is_right &= a.error.class == ERR_UNAVAILABLE;
    else
        is_right &= sent == scaling_milli(from) && a.fit == SCALING_FIT_NONE;
    if (!is_right)
        fail_msg("round %" PRIu64
                 ": type %d T %g v %g C %d S %d R %d tolerances %g %g: sent %g, wanted %d, best %d away",
                 round, hpa.type, hpa.target, value, (int)c, (int)result.replicas.status, (int)result.replicas.ready,
                 hpa.tolerance_up, hpa.tolerance_down, a.value, (int)wanted, (int)away);
}

static void test_what_is_sent_is_the_nearest_of_all_values(void **state)
{
    (void)state;
    struct random random = random_start("nearest values", 20261130);
    uint64_t rounds = random_rounds(5000);
    for (uint64_t i = 0; i < rounds; i++)
        check_one(&random, i);
}

static void test_large_numbers_are_searched_too(void **state)
{
    (void)state;
    struct scaling_hpa hpa = hpa_of(SCALING_AVERAGE_VALUE, 1e9);
    struct scaling_result result = result_of(18e9, true, 18, 19, 18);
    struct scaling_answer a;
    scaling_for_hpa(&hpa, &result, &a);
    assert_int_equal(a.proposal, 18);
    assert_double_near(a.value, 17.1e9 - 0.002, 1e-3);
    result = result_of(1e12, false, 999, 999, 7);
    scaling_for_hpa(&hpa, &result, &a);
    assert_int_equal(a.proposal, 999);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_fit_the_hpa),
        cmocka_unit_test(test_with_scaling_modifiers_a_hold_is_unavailable),
        cmocka_unit_test(test_errors_and_zero_pass),
        cmocka_unit_test(test_holds_fail_exactly_where_the_page_says),
        cmocka_unit_test(test_what_is_sent_is_the_nearest_of_all_values),
        cmocka_unit_test(test_large_numbers_are_searched_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
