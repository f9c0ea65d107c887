/* The life of a simulated driver: files that change or are wrong, faults in time, GPUs that go and come. */
#include "stage.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static uint32_t utilization(uint32_t gpu)
{
    struct nvml_utilization u = {999, 999};
    assert_rc(nvmlDeviceGetUtilizationRates(stage_gpu(gpu), &u), SUCCESS);
    return u.gpu;
}

static void test_a_rewritten_file_is_played_within_50_ms(void **state)
{
    (void)state;
    stage_play("gpus: [{board: T4, utilization: 10}]");
    assert_int_equal(utilization(0), 10);
    stage_rewrite("gpus: [{board: T4, utilization: 80}]");
    assert_int_equal(utilization(0), 80);
}

static void test_the_clock_goes_on_or_starts_again(void **state)
{
    (void)state;
    stage_play("gpus: [{board: T4, utilization: 1}]");
    stage_advance(100);
    stage_rewrite("gpus: [{board: T4, utilization: {step: [[0, 20], [90, 70]]}}]");
    assert_int_equal(utilization(0), 70);
    stage_rewrite("restart_clock: true\ngpus: [{board: T4, utilization: {step: [[0, 30], [90, 70]]}}]");
    assert_int_equal(utilization(0), 30);
    stage_advance(90);
    assert_int_equal(utilization(0), 70);
}

static void test_a_bad_rewrite_keeps_the_old_scenario_and_says_so_once(void **state)
{
    (void)state;
    stage_play("gpus: [{board: T4, utilization: 10}]");
    stage_catch_stderr();
    stage_rewrite("gpus:\n  - {board: T4, utilisation: 80}\n");
    uint32_t seen = utilization(0);
    stage_advance(1);
    (void)utilization(0);
    const char *said = stage_stderr();
    assert_int_equal(seen, 10);
    assert_non_null(strstr(said, "scenario.yaml:2:17: a GPU has no key `utilisation`, did you mean `utilization`?"));
    assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
    stage_rewrite("gpus: [{board: T4, utilization: 55}]");
    assert_int_equal(utilization(0), 55);
}

static void test_a_file_that_is_gone_keeps_the_old_scenario(void **state)
{
    (void)state;
    stage_play("gpus: [{board: T4, utilization: 10}]");
    stage_catch_stderr();
    stage_remove_file();
    uint32_t seen = utilization(0);
    const char *said = stage_stderr();
    assert_int_equal(seen, 10);
    assert_non_null(strstr(said, "is gone"));
    stage_rewrite("gpus: [{board: T4, utilization: 20}]");
    assert_int_equal(utilization(0), 20);
}

static void test_a_bad_file_at_the_start_fails_init(void **state)
{
    (void)state;
    uint32_t n;
    stage_set("gpus: [{board: T5}]");
    stage_catch_stderr();
    int rc = nvmlInit_v2();
    const char *said = stage_stderr();
    assert_int_equal(rc, NVML_RC_UNKNOWN);
    assert_non_null(strstr(said, "scenario.yaml:1:16: unknown name `T5`, did you mean `T4`?"));
    assert_non_null(strstr(said, "allowed: T4, A10"));
    assert_rc(nvmlDeviceGetCount_v2(&n), UNINITIALIZED);
}

static void test_a_missing_file_fails_init(void **state)
{
    (void)state;
    stage_set("gpus: []");
    assert_int_equal(setenv("NVMLSIM_SCENARIO", "/nonexistent/scenario.yaml", 1), 0);
    stage_catch_stderr();
    int rc = nvmlInit_v2();
    assert_non_null(strstr(stage_stderr(), "/nonexistent/scenario.yaml"));
    assert_int_equal(rc, NVML_RC_UNKNOWN);
}

static void test_without_a_file_there_are_two_gpus(void **state)
{
    (void)state;
    uint32_t n;
    stage_set("gpus: []");
    assert_int_equal(unsetenv("NVMLSIM_SCENARIO"), 0);
    assert_rc(nvmlInit_v2(), SUCCESS);
    assert_rc(nvmlDeviceGetCount_v2(&n), SUCCESS);
    assert_int_equal(n, 2);
    assert_int_equal(utilization(0), 45);
}

static void test_energy_never_falls_when_the_file_changes(void **state)
{
    (void)state;
    uint64_t before, after;
    stage_play("gpus: [{board: T4, power_w: 60}]");
    stage_advance(100);
    assert_rc(nvmlDeviceGetTotalEnergyConsumption(stage_gpu(0), &before), SUCCESS);
    stage_rewrite("restart_clock: true\ngpus: [{board: T4, power_w: 10}]");
    assert_rc(nvmlDeviceGetTotalEnergyConsumption(stage_gpu(0), &after), SUCCESS);
    assert_in_range(after - before, 2900, 3100); /* 50 ms of 60 W until the change */
    stage_advance(1);
    assert_rc(nvmlDeviceGetTotalEnergyConsumption(stage_gpu(0), &before), SUCCESS);
    assert_in_range(before - after, 9900, 10100);
}

static void test_a_second_life_of_the_library_finds_the_clock_running(void **state)
{
    (void)state;
    stage_play("gpus: [{board: T4, utilization: {step: [[0, 5], [10, 50]]}}]");
    assert_rc(nvmlShutdown(), SUCCESS);
    stage_advance(10);
    assert_rc(nvmlInit_v2(), SUCCESS);
    assert_int_equal(utilization(0), 50);
}

static void test_one_lost_gpu_leaves_the_others(void **state)
{
    (void)state;
    struct nvml_device *lost;
    uint32_t n, mw;
    stage_play("gpus: [{board: T4, count: 3, utilization: 9}]\n"
               "faults: [{fault: lost, gpu: 1, from: 10, until: 20}]\n");
    lost = stage_gpu(1);
    stage_advance(10);
    assert_rc(nvmlDeviceGetCount_v2(&n), SUCCESS);
    assert_int_equal(n, 3);
    assert_rc(nvmlDeviceGetPowerUsage(lost, &mw), GPU_IS_LOST);
    assert_rc(nvmlDeviceGetHandleByIndex_v2(1, &lost), GPU_IS_LOST);
    assert_int_equal(utilization(0), 9);
    assert_int_equal(utilization(2), 9);
    stage_advance(10);
    assert_rc(nvmlDeviceGetPowerUsage(lost, &mw), SUCCESS);
}

static void test_gpus_go_and_come_by_count(void **state)
{
    (void)state;
    struct nvml_device *last;
    uint32_t n, mw;
    stage_play("gpus: [{board: T4, count: 3}]\nevents: [{at: 5, count: 2}, {at: 9, count: 3}]\n");
    last = stage_gpu(2);
    stage_advance(5);
    assert_rc(nvmlDeviceGetCount_v2(&n), SUCCESS);
    assert_int_equal(n, 2);
    assert_rc(nvmlDeviceGetPowerUsage(last, &mw), GPU_IS_LOST);
    stage_advance(4);
    assert_rc(nvmlDeviceGetPowerUsage(last, &mw), SUCCESS);
}

static void test_a_hung_call_comes_back_when_the_fault_ends(void **state)
{
    (void)state;
    uint32_t mw;
    stage_play("gpus: [{board: T4}]\nfaults: [{fault: hung, from: 1, until: 31}]\n");
    struct nvml_device *d = stage_gpu(0);
    stage_advance(1);
    assert_rc(nvmlDeviceGetPowerUsage(d, &mw), SUCCESS);
    assert_double_near(stage_slept_s(), 30, 0.02);
}

static void test_slow_calls_are_slow_once(void **state)
{
    (void)state;
    stage_play("gpus: [{board: T4, utilization: 3}]\n"
               "faults: [{fault: slow, ms: 250, function: nvmlDeviceGetUtilizationRates}]\n");
    (void)utilization(0);
    assert_double_near(stage_slept_s(), 0.25, 1e-9);
}

static void test_handing_out_a_slow_gpu_is_slow_once(void **state)
{
    (void)state;
    stage_play("gpus: [{board: T4, count: 2}]\n"
               "faults: [{fault: slow, ms: 100}, {fault: slow, ms: 30, gpu: 1}]\n");
    (void)stage_gpu(0);
    assert_double_near(stage_slept_s(), 0.1, 1e-9);
    (void)stage_gpu(1);
    assert_double_near(stage_slept_s(), 0.23, 1e-9);
}

static void test_the_driver_goes_and_comes_back(void **state)
{
    (void)state;
    uint32_t mw;
    char version[NVML_VERSION_MAX];
    stage_play("gpus: [{board: T4}]\n"
               "faults:\n"
               "  - {fault: driver_not_loaded, from: 10, until: 20}\n"
               "  - {fault: lib_rm_version_mismatch, from: 30, until: 40}\n"
               "  - {fault: init_hang, from: 50, until: 55}\n");
    struct nvml_device *d = stage_gpu(0);
    stage_advance(10);
    assert_rc(nvmlDeviceGetPowerUsage(d, &mw), DRIVER_NOT_LOADED);
    assert_rc(nvmlSystemGetNVMLVersion(version, sizeof(version)), SUCCESS);
    assert_rc(nvmlShutdown(), SUCCESS);
    assert_rc(nvmlInit_v2(), DRIVER_NOT_LOADED);
    assert_rc(nvmlDeviceGetPowerUsage(d, &mw), UNINITIALIZED);
    stage_advance(10);
    assert_rc(nvmlInit_v2(), SUCCESS);
    assert_rc(nvmlDeviceGetPowerUsage(d, &mw), SUCCESS);
    stage_advance(10);
    assert_rc(nvmlDeviceGetPowerUsage(d, &mw), LIB_RM_VERSION_MISMATCH);
    assert_rc(nvmlInit_v2(), LIB_RM_VERSION_MISMATCH);
    stage_advance(20);
    assert_rc(nvmlDeviceGetPowerUsage(d, &mw), SUCCESS);
    assert_rc(nvmlInit_v2(), SUCCESS);
    assert_double_near(stage_slept_s(), 5, 0.02);
}

static void test_a_driver_that_is_not_there_at_first(void **state)
{
    (void)state;
    stage_set("gpus: [{board: T4}]\nfaults: [{fault: driver_not_loaded, until: 5}]\n");
    assert_rc(nvmlInit_v2(), DRIVER_NOT_LOADED);
    stage_advance(4.9);
    assert_rc(nvmlInit_v2(), DRIVER_NOT_LOADED);
    stage_advance(0.1);
    assert_rc(nvmlInit_v2(), SUCCESS);
}

static void test_no_permission_and_unknown_are_answered(void **state)
{
    (void)state;
    struct nvml_device *d = NULL;
    uint32_t n;
    stage_play("gpus: [{board: T4, count: 2}]\n"
               "faults: [{fault: no_permission, gpu: 0}, {fault: unknown, gpu: 1, from: 5}, "
               "{fault: uninitialized, from: 9}]\n");
    assert_rc(nvmlDeviceGetHandleByIndex_v2(0, &d), NO_PERMISSION);
    assert_rc(nvmlDeviceGetHandleByIndex_v2(1, &d), SUCCESS);
    stage_advance(5);
    assert_rc(nvmlDeviceGetIndex(d, &n), UNKNOWN);
    stage_advance(4);
    assert_rc(nvmlDeviceGetCount_v2(&n), UNINITIALIZED);
}

static void test_csv_files_lie_beside_the_scenario(void **state)
{
    (void)state;
    stage_set("gpus: [{board: T4, utilization: {csv: load.csv}}]");
    const char *path = getenv("NVMLSIM_SCENARIO");
    char csv[400];
    (void)snprintf(csv, sizeof(csv), "%.*s/load.csv", (int)(strrchr(path, '/') - path), path);
    FILE *file = fopen(csv, "we");
    assert_non_null(file);
    assert_true(fputs("0,12\n8,34\n", file) >= 0);
    (void)fclose(file);
    int rc = nvmlInit_v2();
    (void)unlink(csv);
    assert_int_equal(rc, NVML_RC_SUCCESS);
    stage_advance(8);
    assert_int_equal(utilization(0), 34);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_rewritten_file_is_played_within_50_ms),
        cmocka_unit_test(test_the_clock_goes_on_or_starts_again),
        cmocka_unit_test(test_a_bad_rewrite_keeps_the_old_scenario_and_says_so_once),
        cmocka_unit_test(test_a_file_that_is_gone_keeps_the_old_scenario),
        cmocka_unit_test(test_a_bad_file_at_the_start_fails_init),
        cmocka_unit_test(test_a_missing_file_fails_init),
        cmocka_unit_test(test_without_a_file_there_are_two_gpus),
        cmocka_unit_test(test_energy_never_falls_when_the_file_changes),
        cmocka_unit_test(test_a_second_life_of_the_library_finds_the_clock_running),
        cmocka_unit_test(test_one_lost_gpu_leaves_the_others),
        cmocka_unit_test(test_gpus_go_and_come_by_count),
        cmocka_unit_test(test_a_hung_call_comes_back_when_the_fault_ends),
        cmocka_unit_test(test_slow_calls_are_slow_once),
        cmocka_unit_test(test_handing_out_a_slow_gpu_is_slow_once),
        cmocka_unit_test(test_the_driver_goes_and_comes_back),
        cmocka_unit_test(test_a_driver_that_is_not_there_at_first),
        cmocka_unit_test(test_no_permission_and_unknown_are_answered),
        cmocka_unit_test(test_csv_files_lie_beside_the_scenario),
    };
    return cmocka_run_group_tests(tests, stage_setup, stage_teardown);
}
