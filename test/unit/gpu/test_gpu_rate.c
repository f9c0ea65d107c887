/* gpu: counters to rates. */
#include "gpu/core.h"

#include "support.h"

static const struct step {
    const char *what;
    uint64_t first, second;
    bool is_32_bit;
    double capacity;
    int64_t elapsed_ns;
    double want; /* -1: no value */
} steps[] = {
    {"a 64-bit counter that moves", 1000, 3000, false, 1e9, NS_PER_S, 2000},
    {"half a second", 1000, 3000, false, 1e9, NS_PER_S / 2, 4000},
    {"a counter that stands still", 7, 7, false, 1e9, NS_PER_S, 0},
    {"a 64-bit counter that was reset", 3000, 10, false, 1e9, NS_PER_S, -1},
    {"a 64-bit counter near its end", UINT64_MAX - 10, UINT64_MAX - 5, false, 1e9, NS_PER_S, 5},
    {"a 32-bit counter that went round", 0xfffffff0, 0x10, true, 1e9, NS_PER_S, 32},
    {"a 32-bit counter that may have gone round twice", 0xfffffff0, 0x10, true, 5e9, NS_PER_S, -1},
    {"more than the hardware can do", 0, 3000, false, 1000, NS_PER_S, -1},
    {"a little more, which is overhead and timing", 0, 1200, false, 1000, NS_PER_S, 1200},
    {"no time between", 0, 1, false, 1e9, 0, -1},
};

static void test_a_rate_is_the_movement_over_the_time_and_nothing_is_guessed(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        const struct step *step = &steps[i];
        struct gpu_rate rate = {0};
        struct gpu_count count = {.raw = step->first, .is_32_bit = step->is_32_bit, .capacity = step->capacity};
        double got = -1;
        print_message("%s\n", step->what);
        assert_false(gpu_rate_step(&rate, &count, NS_PER_S, &got)); /* the first count is no rate */
        count.raw = step->second;
        bool has_value = gpu_rate_step(&rate, &count, NS_PER_S + step->elapsed_ns, &got);
        assert_int_equal(has_value, step->want >= 0);
        assert_double_near(got, step->want, 1e-6);
    }
}

static void test_after_a_reset_the_next_count_gives_a_rate_again(void **state)
{
    (void)state;
    struct gpu_rate rate = {0};
    double got = -1;
    assert_false(gpu_rate_step(&rate, &(struct gpu_count){.raw = 5000, .capacity = 1e9}, 1 * NS_PER_S, &got));
    assert_false(gpu_rate_step(&rate, &(struct gpu_count){.raw = 100, .capacity = 1e9}, 2 * NS_PER_S, &got));
    assert_true(gpu_rate_step(&rate, &(struct gpu_count){.raw = 400, .capacity = 1e9}, 3 * NS_PER_S, &got));
    assert_double_near(got, 300, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_rate_is_the_movement_over_the_time_and_nothing_is_guessed),
        cmocka_unit_test(test_after_a_reset_the_next_count_gives_a_rate_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
