/* gpu: the life of the NVML session: no driver, reload, restart reasons, release and resume. */
#include "gpu/bench.h"

static void test_before_the_first_cycle_the_driver_is_starting(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 1);
    b.latest = gpu_core_publish(b.core);
    assert_int_equal(b.latest->driver, SNAPSHOT_DRIVER_STARTING);
    assert_int_equal(atomic_load(&b.nvml.n_calls), 0);
}

static void test_a_missing_library_is_a_state_with_a_next_step(void **state)
{
    (void)state;
    BENCH b;
    bench_init_with(&b, 1, "/nonexistent/libnvidia-ml.so.1");
    bench_cycles(&b, 3);
    assert_int_equal(b.latest->driver, SNAPSHOT_DRIVER_NO_LIBRARY);
    assert_true(strstr(b.latest->driver_text, "/nonexistent/libnvidia-ml.so.1") != NULL);
    assert_int_equal(b.latest->n_devices, 0);
}

static void test_a_driver_that_appears_later_is_found(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 1);
    b.nvml.init_rc = NVML_RC_DRIVER_NOT_LOADED;
    bench_cycles(&b, 61);
    assert_int_equal(b.latest->driver, SNAPSHOT_DRIVER_NOT_LOADED);
    assert_true(b.latest->driver_text[0] != '\0');
    assert_in_range(b.nvml.inits, 4, 5); /* after 5, 10, 20, 30 s: failing inits cost 50 ms each */
    assert_null(atomic_load(&b.shared.restart_reason));
    b.nvml.init_rc = 0;
    bench_cycles(&b, 31);
    assert_int_equal(b.latest->driver, SNAPSHOT_DRIVER_OK);
    assert_string_equal(b.latest->driver_text, "");
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_UTILIZATION)->status, SNAPSHOT_OK);
}

static void test_a_driver_reload_is_survived_by_the_same_devices(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 2);
    bench_cycles(&b, 3);
    uint32_t id = bench_gpu(&b, 0)->id;
    bench_rule(&b, "nvmlDeviceGetCount_v2", -1, NVML_RC_UNINITIALIZED);
    b.nvml.init_rc = NVML_RC_DRIVER_NOT_LOADED;
    bench_cycle(&b);
    assert_true(b.latest->driver != SNAPSHOT_DRIVER_OK);
    assert_int_equal(b.latest->n_devices, 2); /* their readings age; they are not idle and not gone */
    bench_cycles(&b, 20);
    assert_int_equal(b.latest->driver, SNAPSHOT_DRIVER_NOT_LOADED);
    b.nvml.n_rules = 0;
    b.nvml.init_rc = 0;
    b.nvml.gpus[0].utilization = 77;
    bench_cycles(&b, 31);
    assert_int_equal(b.latest->driver, SNAPSHOT_DRIVER_OK);
    assert_int_equal(bench_gpu(&b, 0)->id, id);
    assert_double_same(bench_reading(&b, 0, SNAPSHOT_UTILIZATION)->value, 77);
    assert_true(b.latest->sampler.reinits > 0);
}

static void test_unsupported_is_asked_again_after_a_reload(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 1);
    bench_rule(&b, "nvmlDeviceGetUtilizationRates", -1, NVML_RC_NOT_SUPPORTED);
    bench_cycle(&b);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_UTILIZATION)->status, SNAPSHOT_UNSUPPORTED);
    b.nvml.rules[0] = (struct fake_rule){"nvmlDeviceGetTemperature", -1, NVML_RC_UNINITIALIZED};
    bench_cycle(&b);
    b.nvml.n_rules = 0;
    bench_cycles(&b, 6);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_UTILIZATION)->status, SNAPSHOT_OK);
}

static void test_no_visible_gpu_is_a_failed_look(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 0);
    bench_cycle(&b);
    assert_int_equal(b.latest->driver, SNAPSHOT_DRIVER_NO_DEVICES);
    b.nvml.n_gpus = 2;
    bench_cycles(&b, 6);
    assert_int_equal(b.latest->driver, SNAPSHOT_DRIVER_OK);
    assert_int_equal(b.latest->n_devices, 2);
    b.nvml.n_gpus = 0;
    bench_cycle(&b);
    assert_int_equal(b.latest->driver, SNAPSHOT_DRIVER_NO_DEVICES);
    assert_int_equal(b.latest->n_devices, 2);
    assert_false(bench_gpu(&b, 0)->is_lost); /* nobody said so: its readings age */
}

/* The reference's health case: the count fails, and is well again at the next look. */
static void test_a_count_that_fails_is_a_state_and_the_readings_go_on(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 1);
    bench_cycle(&b);
    int64_t before_ns = bench_gpu(&b, 0)->readings[SNAPSHOT_UTILIZATION].taken_ns;
    bench_rule(&b, "nvmlDeviceGetCount_v2", -1, NVML_RC_UNKNOWN);
    bench_cycle(&b);
    assert_int_equal(b.latest->driver, SNAPSHOT_DRIVER_FAILED);
    assert_non_null(strstr(b.latest->driver_text, "does not count"));
    assert_true(bench_gpu(&b, 0)->readings[SNAPSHOT_UTILIZATION].taken_ns > before_ns);
    b.nvml.n_rules = 0;
    bench_cycle(&b);
    assert_int_equal(b.latest->driver, SNAPSHOT_DRIVER_OK);
    assert_string_equal(b.latest->driver_text, "");
}

static void test_a_count_that_never_succeeds_asks_for_a_restart(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 1);
    bench_rule(&b, "nvmlDeviceGetCount_v2", -1, NVML_RC_UNKNOWN);
    bench_cycle(&b);
    assert_int_equal(b.latest->driver, SNAPSHOT_DRIVER_FAILED);
    bench_cycles(&b, 340);
    assert_non_null(atomic_load(&b.shared.restart_reason));
}

static void test_the_wait_starts_small_again_after_a_success(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 1);
    b.nvml.init_rc = NVML_RC_DRIVER_NOT_LOADED;
    bench_cycles(&b, 100);
    b.nvml.init_rc = 0;
    bench_cycles(&b, 31);
    assert_int_equal(b.latest->driver, SNAPSHOT_DRIVER_OK);
    bench_rule(&b, "nvmlDeviceGetCount_v2", -1, NVML_RC_UNINITIALIZED);
    bench_cycle(&b);
    assert_true(b.latest->driver != SNAPSHOT_DRIVER_OK);
    b.nvml.n_rules = 0;
    bench_cycles(&b, 5);
    assert_int_equal(b.latest->driver, SNAPSHOT_DRIVER_OK);
}

static void test_all_gpus_lost_closes_nvml_and_tries_at_leisure(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 2);
    bench_cycle(&b);
    b.nvml.gpus[0].is_lost = b.nvml.gpus[1].is_lost = NVML_RC_GPU_IS_LOST;
    bench_cycles(&b, 3600);
    assert_int_equal(b.latest->driver, SNAPSHOT_DRIVER_FAILED);
    assert_in_range(b.nvml.inits, 8, 20);
    assert_true(bench_gpu(&b, 0)->is_lost);
    b.nvml.gpus[0].is_lost = b.nvml.gpus[1].is_lost = 0;
    bench_cycles(&b, 302);
    assert_int_equal(b.latest->driver, SNAPSHOT_DRIVER_OK);
    assert_false(bench_gpu(&b, 0)->is_lost);
}

static const struct {
    const char *what;
    int rc;
    enum snapshot_driver_state want;
} hopeless[] = {
    {"the driver was upgraded under us", NVML_RC_LIB_RM_VERSION_MISMATCH, SNAPSHOT_DRIVER_MISMATCH},
    {"the devices were taken from the container", NVML_RC_UNKNOWN, SNAPSHOT_DRIVER_FAILED},
};

static void test_what_only_a_restart_ends_is_said_after_five_minutes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(hopeless); i++) {
        BENCH b;
        print_message("%s\n", hopeless[i].what);
        bench_init(&b, 1);
        b.nvml.init_rc = hopeless[i].rc;
        bench_cycles(&b, 290);
        assert_int_equal(b.latest->driver, hopeless[i].want);
        assert_null(atomic_load(&b.shared.restart_reason));
        bench_cycles(&b, 50);
        assert_non_null(atomic_load(&b.shared.restart_reason));
    }
}

static void test_a_reading_ends_the_wish_for_a_restart(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 1);
    b.nvml.init_rc = NVML_RC_UNKNOWN;
    bench_cycles(&b, 340);
    assert_non_null(atomic_load(&b.shared.restart_reason));
    b.nvml.init_rc = 0;
    bench_cycles(&b, 31);
    assert_null(atomic_load(&b.shared.restart_reason));
}

static void test_nothing_but_unknown_errors_closes_the_session(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 1);
    bench_cycle(&b);
    b.nvml.gpus[0].is_lost = NVML_RC_UNKNOWN;
    b.nvml.init_rc = NVML_RC_UNKNOWN;
    bench_cycles(&b, 5);
    assert_int_equal(b.latest->driver, SNAPSHOT_DRIVER_FAILED);
    bench_cycles(&b, 340);
    assert_non_null(atomic_load(&b.shared.restart_reason));
}

static void test_release_lets_go_and_resume_takes_up_at_once(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 2);
    b.nvml.gpus[0].has_gpm = true;
    bench_cycles(&b, 3);
    atomic_store(&b.shared.is_released, true);
    bench_cycle(&b);
    assert_int_equal(b.latest->driver, SNAPSHOT_DRIVER_RELEASED);
    assert_int_equal(b.nvml.shutdowns, b.nvml.inits);
    assert_int_equal(b.nvml.samples_live, 0);
    assert_int_equal(b.nvml.sets_live, 0);
    unsigned calls = atomic_load(&b.nvml.n_calls);
    bench_cycles(&b, 100);
    assert_int_equal(atomic_load(&b.nvml.n_calls), calls);
    assert_int_equal(b.latest->n_devices, 2);
    b.nvml.n_gpus = 1; /* whoever asked for the release took one away: it is gone, not lost */
    atomic_store(&b.shared.is_released, false);
    bench_cycle(&b);
    assert_int_equal(b.latest->driver, SNAPSHOT_DRIVER_OK);
    assert_int_equal(b.latest->n_devices, 1);
    b.nvml.n_gpus = 2;
    bench_cycle(&b);
    b.nvml.n_gpus = 1; /* and from now on it is lost again, not gone */
    bench_cycle(&b);
    assert_int_equal(b.latest->n_devices, 2);
    assert_true(bench_gpu(&b, 1)->is_lost);
}

static void test_release_holds_while_there_is_no_driver(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 1);
    b.nvml.init_rc = NVML_RC_DRIVER_NOT_LOADED;
    bench_cycle(&b);
    atomic_store(&b.shared.is_released, true);
    unsigned inits = b.nvml.inits;
    bench_cycles(&b, 60);
    assert_int_equal(b.nvml.inits, inits);
    assert_int_equal(b.latest->driver, SNAPSHOT_DRIVER_RELEASED);
}

static void test_nothing_is_left_behind_when_it_ends(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 1);
    b.nvml.gpus[0].has_gpm = true;
    bench_cycles(&b, 3);
    gpu_core_free(b.core);
    b.core = NULL;
    assert_int_equal(b.nvml.shutdowns, b.nvml.inits);
    assert_int_equal(b.nvml.samples_live, 0);
    assert_int_equal(b.nvml.sets_live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_before_the_first_cycle_the_driver_is_starting),
        cmocka_unit_test(test_a_missing_library_is_a_state_with_a_next_step),
        cmocka_unit_test(test_a_driver_that_appears_later_is_found),
        cmocka_unit_test(test_a_driver_reload_is_survived_by_the_same_devices),
        cmocka_unit_test(test_unsupported_is_asked_again_after_a_reload),
        cmocka_unit_test(test_no_visible_gpu_is_a_failed_look),
        cmocka_unit_test(test_the_wait_starts_small_again_after_a_success),
        cmocka_unit_test(test_all_gpus_lost_closes_nvml_and_tries_at_leisure),
        cmocka_unit_test(test_what_only_a_restart_ends_is_said_after_five_minutes),
        cmocka_unit_test(test_a_reading_ends_the_wish_for_a_restart),
        cmocka_unit_test(test_a_count_that_fails_is_a_state_and_the_readings_go_on),
        cmocka_unit_test(test_a_count_that_never_succeeds_asks_for_a_restart),
        cmocka_unit_test(test_nothing_but_unknown_errors_closes_the_session),
        cmocka_unit_test(test_release_lets_go_and_resume_takes_up_at_once),
        cmocka_unit_test(test_release_holds_while_there_is_no_driver),
        cmocka_unit_test(test_nothing_is_left_behind_when_it_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
