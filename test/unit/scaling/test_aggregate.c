/* scaling: aggregations. */
#include "scaling/scaling.h"

#include "support.h"

#define LIST(...) (const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double)

static const struct {
    enum scaling_aggregation aggregation;
    const double *values;
    size_t n;
    double want;
} cases[] = {
    {SCALING_MAX, LIST(80, 40, 90, 55), 90},
    {SCALING_MIN, LIST(80, 40, 90, 55), 40},
    {SCALING_AVG, LIST(60, 80), 70},
    {SCALING_SUM, LIST(20, 30, 50), 100},
    {SCALING_P95, LIST(20, 30, 40, 95), 95},
    {SCALING_P95, LIST(100, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10), 100},
    {SCALING_P95, LIST(7), 7},
    {SCALING_P99, LIST(7), 7},
    {SCALING_MAX, LIST(0), 0},
    {SCALING_MIN, LIST(0, 0), 0},
    {SCALING_AVG, LIST(85, 10), 47.5},
    {SCALING_MAX, LIST(55, 80, 90, 40), 90},
};

static void test_aggregations_give_the_documented_numbers(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_double_same(scaling_aggregate(cases[i].aggregation, cases[i].values, cases[i].n), cases[i].want);
}

static void test_percentiles_are_nearest_rank(void **state)
{
    (void)state;
    double values[200];
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        values[i] = (double)((i * 37) % ARRAY_LEN(values)) + 1; /* 1..200, shuffled */
    assert_double_same(scaling_aggregate(SCALING_P95, values, 200), 190);
    assert_double_same(scaling_aggregate(SCALING_P99, values, 200), 198);
    double first[100];
    for (size_t i = 0; i < ARRAY_LEN(first); i++)
        first[i] = (double)(100 - i);
    static const struct {
        size_t n, p95, p99;
    } ranks[] = {{1, 1, 1}, {19, 19, 19}, {20, 19, 20}, {21, 20, 21}, {40, 38, 40}, {99, 95, 99}, {100, 95, 99}};
    for (size_t i = 0; i < ARRAY_LEN(ranks); i++) { /* the values 1..n */
        const double *low = first + (ARRAY_LEN(first) - ranks[i].n);
        assert_double_same(scaling_aggregate(SCALING_P95, low, ranks[i].n), (double)ranks[i].p95);
        assert_double_same(scaling_aggregate(SCALING_P99, low, ranks[i].n), (double)ranks[i].p99);
    }
}

static void test_values_are_left_as_they_were(void **state)
{
    (void)state;
    double values[] = {3, 1, 2};
    (void)scaling_aggregate(SCALING_P95, values, 3);
    assert_double_same(values[0], 3);
    assert_double_same(values[1], 1);
    assert_double_same(values[2], 2);
}

static void test_names_are_those_of_the_metadata(void **state)
{
    (void)state;
    assert_string_equal(scaling_aggregation_name(SCALING_MAX), "max");
    assert_string_equal(scaling_aggregation_name(SCALING_P99), "p99");
    assert_string_equal(scaling_aggregation_name(SCALING_AGGREGATION_COUNT), "unknown");
    enum scaling_aggregation found = SCALING_MAX;
    assert_true(scaling_find_aggregation(str_of("p95"), &found));
    assert_int_equal(found, SCALING_P95);
    assert_false(scaling_find_aggregation(str_of("Avg"), &found));
    assert_false(scaling_find_aggregation(str_of(""), &found));
    assert_false(scaling_find_aggregation(str_of("unknown"), &found));
    assert_int_equal(found, SCALING_P95);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_aggregations_give_the_documented_numbers),
        cmocka_unit_test(test_percentiles_are_nearest_rank),
        cmocka_unit_test(test_values_are_left_as_they_were),
        cmocka_unit_test(test_names_are_those_of_the_metadata),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
