/* Curves: values at and between points, loops, and integrals against a sum of small steps. */
#include "support.h"

#include "scene/scene.h"

#include <math.h>

static struct curve points_curve(enum curve_kind kind, struct curve_point *points, size_t n, double loop_s)
{
    curve_measure(kind, points, n);
    return (struct curve){.kind = kind, .points = points, .n_points = n, .loop_s = loop_s};
}

/* The integral as a sum of midpoints. */
static double summed(const struct curve *c, double until_s)
{
    enum { STEPS = 20000 };
    double sum = 0, width = until_s / STEPS;
    for (int i = 0; i < STEPS; i++)
        sum += curve_value(c, (i + 0.5) * width) * width;
    return sum;
}

static void test_step_holds_each_value_until_the_next_point(void **state)
{
    (void)state;
    struct curve_point points[] = {{2, 10, 0}, {5, 30, 0}, {9, 0, 0}};
    struct curve c = points_curve(CURVE_STEP, points, 3, 0);
    const struct {
        double t, value;
    } cases[] = {{-1, 10}, {0, 10}, {2, 10}, {4.999, 10}, {5, 30}, {8.9, 30}, {9, 0}, {1e6, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_double_same(curve_value(&c, cases[i].t), cases[i].value);
    assert_double_near(curve_integral(&c, 9), 2 * 10 + 3 * 10 + 4 * 30, 1e-9);
    assert_double_near(curve_integral(&c, 1), 10, 1e-9);
    assert_double_near(curve_integral(&c, 109), 170, 1e-9);
}

static void test_ramp_goes_in_straight_lines(void **state)
{
    (void)state;
    struct curve_point points[] = {{0, 0, 0}, {10, 100, 0}, {20, 50, 0}};
    struct curve c = points_curve(CURVE_RAMP, points, 3, 0);
    assert_double_near(curve_value(&c, 5), 50, 1e-9);
    assert_double_near(curve_value(&c, 15), 75, 1e-9);
    assert_double_near(curve_value(&c, 99), 50, 1e-9);
    assert_double_near(curve_integral(&c, 5), 125, 1e-9);
    assert_double_near(curve_integral(&c, 20), 500 + 750, 1e-9);
    assert_double_near(curve_integral(&c, 30), 500 + 750 + 500, 1e-9);
}

static void test_a_loop_starts_again_and_sums_whole_rounds(void **state)
{
    (void)state;
    struct curve_point points[] = {{0, 10, 0}, {10, 90, 0}};
    struct curve c = points_curve(CURVE_STEP, points, 2, 20);
    assert_double_same(curve_value(&c, 45), 10);
    assert_double_same(curve_value(&c, 55), 90);
    assert_double_near(curve_integral(&c, 20), 1000, 1e-9);
    assert_double_near(curve_integral(&c, 2000 + 15), 100 * 1000 + 100 + 450, 1e-6);
}

static void test_integrals_equal_the_sum_of_values(void **state)
{
    (void)state;
    struct curve_point ramp[] = {{1, 5, 0}, {3, 40, 0}, {7, 20, 0}};
    struct curve curves[] = {
        {.kind = CURVE_CONSTANT, .mean = 42},
        {.kind = CURVE_SINE, .mean = 50, .amplitude = 40, .period_s = 7, .phase_s = 2},
        {.kind = CURVE_NOISE, .mean = 50, .amplitude = 30, .period_s = 0.5, .noise_offset = 77},
        points_curve(CURVE_RAMP, ramp, 3, 0),
        points_curve(CURVE_RAMP, ramp, 3, 11),
    };
    for (size_t i = 0; i < sizeof(curves) / sizeof(curves[0]); i++)
        for (double t = 0.75; t < 60; t += 13.5)
            assert_double_near(curve_integral(&curves[i], t), summed(&curves[i], t), 1);
}

static void test_noise_is_the_same_each_time_and_within_its_amplitude(void **state)
{
    (void)state;
    struct curve c = {.kind = CURVE_NOISE, .mean = 50, .amplitude = 30, .period_s = 1};
    struct curve other = c;
    double lowest = 100, highest = 0;
    int differ = 0;
    other.noise_offset = 5;
    for (double t = 0; t < 2000; t++) {
        double value = curve_value(&c, t);
        assert_double_same(curve_value(&c, t + 0.9), value);
        differ += value != curve_value(&other, t);
        lowest = fmin(lowest, value);
        highest = fmax(highest, value);
    }
    assert_true(lowest >= 20 && highest <= 80 && highest - lowest > 50);
    assert_true(differ > 1900);
}

static void test_noise_integrals_go_on_after_the_ring(void **state)
{
    (void)state;
    struct curve c = {.kind = CURVE_NOISE, .mean = 0, .amplitude = 1, .period_s = 1, .noise_offset = 3};
    double sum = 0;
    for (int i = 0; i < 3000; i++)
        sum += curve_value(&c, i);
    assert_double_near(curve_integral(&c, 3000), sum, 1e-6);
    assert_double_near(curve_integral(&c, 3000.5) - curve_integral(&c, 3000), 0.5 * curve_value(&c, 3000), 1e-6);
}

static void test_bounds_cover_every_kind(void **state)
{
    (void)state;
    struct curve_point points[] = {{0, 7, 0}, {1, -3, 0}, {2, 12, 0}};
    struct curve c = points_curve(CURVE_RAMP, points, 3, 0);
    struct curve sine = {.kind = CURVE_SINE, .mean = 5, .amplitude = -2, .period_s = 1};
    double low, high;
    curve_bounds(&c, &low, &high);
    assert_double_same(low, -3);
    assert_double_same(high, 12);
    curve_bounds(&sine, &low, &high);
    assert_double_same(low, 3);
    assert_double_same(high, 7);
}

static void test_a_curve_that_is_not_given_is_zero(void **state)
{
    (void)state;
    struct curve c = {0};
    assert_double_same(curve_value(&c, 5), 0);
    assert_double_same(curve_integral(&c, 5), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step_holds_each_value_until_the_next_point),
        cmocka_unit_test(test_ramp_goes_in_straight_lines),
        cmocka_unit_test(test_a_loop_starts_again_and_sums_whole_rounds),
        cmocka_unit_test(test_integrals_equal_the_sum_of_values),
        cmocka_unit_test(test_noise_is_the_same_each_time_and_within_its_amplitude),
        cmocka_unit_test(test_noise_integrals_go_on_after_the_ring),
        cmocka_unit_test(test_bounds_cover_every_kind),
        cmocka_unit_test(test_a_curve_that_is_not_given_is_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
