/* The player: derived values, exact counters, counters across a change of the scenario, events and faults in time. */
#include "support.h"

#include "nvml/abi.h"
#include "nvmlsim/player.h"

#include <stdio.h>
#include <string.h>

static struct scenario *parse(const char *text)
{
    struct err e = {0};
    struct scenario_source source = {.name = "s.yaml"};
    struct scenario *s = scenario_parse(&source, str_of(text), &e);
    if (!s)
        print_message("refused: %s\n", e.text);
    assert_non_null(s);
    return s;
}

static void play(struct player *p, const char *text)
{
    player_init(p, parse(text));
}

static void test_power_and_temperature_follow_the_load(void **state)
{
    (void)state;
    struct player p;
    play(&p, "gpus: [{board: H100, utilization: {step: [[0, 0], [10, 100]]}}]");
    assert_double_near(player_value(&p, 0, SIGNAL_POWER, 5), 70, 1e-9);
    assert_double_near(player_value(&p, 0, SIGNAL_POWER, 15), 665, 1e-9);
    assert_true(player_value(&p, 0, SIGNAL_TEMPERATURE, 15) > player_value(&p, 0, SIGNAL_TEMPERATURE, 5) + 20);
    assert_double_same(player_value(&p, 0, SIGNAL_SM_CLOCK, 5), 345);
    assert_double_same(player_value(&p, 0, SIGNAL_SM_CLOCK, 15), 1980);
    assert_int_equal(player_throttle(&p, 0, 5), NVML_REASON_GPU_IDLE);
    assert_int_equal(player_throttle(&p, 0, 15), 0);
    player_fini(&p);
}

static void test_energy_is_the_integral_of_power(void **state)
{
    (void)state;
    struct player p;
    play(&p, "gpus: [{board: T4, power_w: {ramp: [[0, 20], [10, 60]]}},"
             "{board: H100, utilization: {ramp: [[0, 0], [20, 100]]}}]");
    assert_double_near(player_counter(&p, 0, SIGNAL_POWER, 10), 400, 1e-9);
    assert_double_near(player_counter(&p, 0, SIGNAL_POWER, 20), 1000, 1e-9);
    assert_double_near(player_counter(&p, 1, SIGNAL_POWER, 20), 20 * (70 + 665) / 2.0, 1e-6);
    assert_double_near(player_mean(&p, 0, SIGNAL_POWER, 10, 2), 56, 1e-9);
    assert_double_near(player_mean(&p, 0, SIGNAL_POWER, 0, 2), 20, 1e-9);
    player_fini(&p);
}

static void test_counters_go_on_when_the_scenario_changes(void **state)
{
    (void)state;
    struct player p;
    play(&p, "gpus: [{board: T4, power_w: 50, pcie_tx_kbps: 100}, {board: T4, power_w: 10}]");
    double before = player_counter(&p, 0, SIGNAL_POWER, 100);
    player_replace(&p, parse("gpus: [{board: T4, power_w: 20, pcie_tx_kbps: 7}, {board: T4, power_w: 10}]"), 100, 100);
    assert_double_near(player_counter(&p, 0, SIGNAL_POWER, 100), before, 1e-9);
    assert_double_near(player_counter(&p, 0, SIGNAL_POWER, 101), before + 20, 1e-9);
    assert_double_near(player_counter(&p, 0, SIGNAL_PCIE_TX, 102), 100 * 100 + 2 * 7, 1e-9);
    /* with its clock at 0 again */
    player_replace(&p, parse("gpus: [{board: T4, power_w: 30}, {board: T4, power_w: 10}]"), 110, 0);
    assert_double_near(player_counter(&p, 0, SIGNAL_POWER, 2), before + 200 + 60, 1e-9);
    assert_double_near(player_counter(&p, 1, SIGNAL_POWER, 2), 1100 + 20, 1e-9);
    player_fini(&p);
}

static void test_a_gpu_that_is_new_counts_from_zero(void **state)
{
    (void)state;
    struct player p;
    play(&p, "gpus: [{board: T4, power_w: 50}]");
    player_replace(&p, parse("seed: 9\ngpus: [{board: T4, power_w: 50}]"), 100, 100);
    assert_double_near(player_counter(&p, 0, SIGNAL_POWER, 100), 5000, 1e-9);
    player_fini(&p);
}

static const char divided[] = "gpus:\n"
                              "  - board: H100\n"
                              "    mig:\n"
                              "      - {profile: 3g.40gb, utilization: 70, memory_used_mib: 1000}\n"
                              "      - {profile: 1g.10gb, utilization: 35, sm_activity: 12}\n"
                              "    processes:\n"
                              "      - {pid: 5, gpu_instance: 11, memory_mib: 300, until: 20}\n"
                              "events:\n"
                              "  - {at: 10, gpu: 0, mig: [{profile: 7g.80gb, utilization: 100}]}\n"
                              "  - {at: 30, gpu: 0, mig: off}\n";

static void test_a_divided_gpu_is_the_sum_of_its_parts(void **state)
{
    (void)state;
    struct player p;
    play(&p, divided);
    const struct gpu *g = &p.scenario->gpus[0];
    const struct mig_layout *l = player_layout(g, 5);
    assert_int_equal(l->n_instances, 2);
    assert_double_near(player_value(&p, 0, SIGNAL_UTILIZATION, 5), (70 * 3 + 35) / 7.0, 1e-9);
    assert_double_near(player_value(&p, 0, SIGNAL_MEMORY_USED, 5), 1300, 1e-9);
    assert_double_near(player_instance_value(g, &l->instances[1], SIGNAL_SM_ACTIVITY, 5), 12, 1e-9);
    assert_double_near(player_instance_value(g, &l->instances[0], SIGNAL_SM_ACTIVITY, 5), 70 * 0.85, 1e-9);
    player_fini(&p);
}

static void test_counters_run_through_a_change_of_layout(void **state)
{
    (void)state;
    struct player p;
    play(&p, divided);
    const struct gpu *g = &p.scenario->gpus[0];
    double per_percent = (0.95 * 700 - 70) / 100, first = (70 * 3 + 35) / 7.0;
    double want = 40 * 70.0 + per_percent * (10 * first + 20 * 100);
    assert_double_near(player_counter(&p, 0, SIGNAL_POWER, 40), want, 1e-6);
    const struct mig_layout *l = player_layout(g, 15);
    assert_double_near(player_instance_counter(&p, 0, l, &l->instances[0], SIGNAL_UTILIZATION, 15), 500, 1e-9);
    assert_false(player_layout(g, 30)->is_enabled);
    player_fini(&p);
}

static void test_instance_counters_go_on_when_the_layout_stays(void **state)
{
    (void)state;
    struct player p;
    play(&p, "gpus: [{board: H100, mig: [{profile: 3g.40gb, utilization: 70}]}]");
    player_replace(&p, parse("gpus: [{board: H100, mig: [{profile: 3g.40gb, utilization: 10}, 1g.10gb]}]"), 10, 10);
    const struct mig_layout *l = player_layout(&p.scenario->gpus[0], 12);
    assert_double_near(player_instance_counter(&p, 0, l, &l->instances[0], SIGNAL_UTILIZATION, 12), 720, 1e-9);
    player_fini(&p);
}

static void test_processes_fill_memory_that_is_not_given(void **state)
{
    (void)state;
    struct player p;
    play(&p, "gpus: [{board: T4, processes: [{pid: 1, memory_mib: 100}, {pid: 2, memory_mib: 50, from: 5, until: 9}]},"
             "{board: T4, memory_used_percent: 50}]");
    assert_double_same(player_value(&p, 0, SIGNAL_MEMORY_USED, 1), 100);
    assert_double_same(player_value(&p, 0, SIGNAL_MEMORY_USED, 6), 150);
    assert_double_same(player_value(&p, 0, SIGNAL_MEMORY_USED, 9), 100);
    assert_double_same(player_value(&p, 1, SIGNAL_MEMORY_USED, 0), (15360 - 448) / 2.0);
    player_fini(&p);
}

static void test_events_count_from_their_time_on(void **state)
{
    (void)state;
    struct player p;
    play(&p, "gpus: [{board: H100, count: 3, ecc: {corrected: 1}}]\n"
             "events:\n"
             "  - {at: 10, gpu: 1, ecc: {corrected: 4, uncorrected: 1}}\n"
             "  - {at: 20, ecc: {corrected: 2}}\n"
             "  - {at: 15, count: 2}\n"
             "  - {at: 25, count: 3}\n"
             "  - {at: 10, gpu: 0, throttle: [hw_slowdown, sync_boost]}\n"
             "  - {at: 14, gpu: 0, throttle: []}\n"
             "  - {at: 18, gpu: 2, recovery_action: 2}\n");
    assert_double_same(player_ecc(&p, 1, ECC_CORRECTED, 9.9), 1);
    assert_double_same(player_ecc(&p, 1, ECC_CORRECTED, 10), 5);
    assert_double_same(player_ecc(&p, 1, ECC_CORRECTED, 20), 7);
    assert_double_same(player_ecc(&p, 0, ECC_CORRECTED, 20), 3);
    assert_double_same(player_ecc(&p, 1, ECC_UNCORRECTED, 20), 1);
    assert_int_equal(player_gpu_count(&p, 14), 3);
    assert_int_equal(player_gpu_count(&p, 15), 2);
    assert_int_equal(player_gpu_count(&p, 26), 3);
    assert_int_equal(player_throttle(&p, 0, 12) & ~(uint64_t)NVML_REASON_GPU_IDLE,
                     NVML_REASON_HW_SLOWDOWN | NVML_REASON_SYNC_BOOST);
    assert_double_near(player_throttled_s(&p, 0, NVML_REASON_HW_SLOWDOWN, 12), 2, 1e-9);
    assert_double_near(player_throttled_s(&p, 0, NVML_REASON_HW_SLOWDOWN, 100), 4, 1e-9);
    assert_double_same(player_throttled_s(&p, 0, NVML_REASON_SW_POWER_CAP, 100), 0);
    assert_int_equal(player_recovery_action(&p, 2, 17), 0);
    assert_int_equal(player_recovery_action(&p, 2, 18), 2);
    player_fini(&p);
}

static const char *const function_names[] = {"nvmlInit_v2", "nvmlDeviceGetPowerUsage"};

static void play_faults(struct player *p, const char *faults)
{
    char text[512];
    struct err e = {0};
    struct scenario_source source = {"s.yaml", NULL, function_names, ARRAY_LEN(function_names), NULL};
    (void)snprintf(text, sizeof(text), "gpus: [{board: T4, count: 2}]\nfaults: [%s]\n", faults);
    struct scenario *s = scenario_parse(&source, str_of(text), &e);
    if (!s)
        print_message("refused: %s\n", e.text);
    assert_non_null(s);
    player_init(p, s);
}

static void test_faults_hit_the_calls_that_they_mean(void **state)
{
    (void)state;
    static const char power[] = "nvmlDeviceGetPowerUsage", name[] = "nvmlDeviceGetName", init[] = "nvmlInit_v2";
    static const char count[] = "nvmlDeviceGetCount_v2", version[] = "nvmlSystemGetNVMLVersion";
    static const struct {
        const char *fault, *function;
        size_t gpu;
        double t_s;
        int rc;
        bool is_hung;
    } cases[] = {
        {"{fault: lost, gpu: 1}", name, 1, 0, 15, false},
        {"{fault: lost, gpu: 1}", name, 0, 0, 0, false},
        {"{fault: lost}", count, SIZE_MAX, 0, 0, false},
        {"{fault: lost, from: 5, until: 9}", name, 0, 4.9, 0, false},
        {"{fault: lost, from: 5, until: 9}", name, 0, 5, 15, false},
        {"{fault: lost, from: 5, until: 9}", name, 0, 9, 0, false},
        {"{fault: not_supported, function: nvmlDeviceGetPowerUsage}", power, 0, 0, 3, false},
        {"{fault: not_supported, function: nvmlDeviceGetPowerUsage}", name, 0, 0, 0, false},
        {"{fault: unknown, function: nvmlInit*}", init, SIZE_MAX, 0, 999, false},
        {"{fault: unknown}", init, SIZE_MAX, 0, 0, false},
        {"{fault: unknown}", count, SIZE_MAX, 0, 999, false},
        {"{fault: driver_not_loaded}", init, SIZE_MAX, 0, 9, false},
        {"{fault: driver_not_loaded}", name, 0, 0, 9, false},
        {"{fault: driver_not_loaded}", version, SIZE_MAX, 0, 0, false},
        {"{fault: lib_rm_version_mismatch}", init, SIZE_MAX, 0, 18, false},
        {"{fault: uninitialized}", name, 0, 0, 1, false},
        {"{fault: uninitialized}", init, SIZE_MAX, 0, 0, false},
        {"{fault: no_permission, gpu: 0}", name, 0, 0, 4, false},
        {"{fault: hung}", name, 0, 0, 0, true},
        {"{fault: hung}", count, SIZE_MAX, 0, 0, true},
        {"{fault: hung}", init, SIZE_MAX, 0, 0, false},
        {"{fault: hung, gpu: 1}", count, SIZE_MAX, 0, 0, false},
        {"{fault: init_hang}", init, SIZE_MAX, 0, 0, true},
        {"{fault: init_hang}", name, 0, 0, 0, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct player p;
        play_faults(&p, cases[i].fault);
        struct player_call call = {cases[i].function, cases[i].gpu, cases[i].t_s, false};
        struct player_verdict v = player_judge(&p, &call);
        if (v.rc != cases[i].rc || v.is_hung != cases[i].is_hung)
            print_message("%s on %s: rc %d, hung %d\n", cases[i].fault, cases[i].function, v.rc, v.is_hung);
        assert_int_equal(v.rc, cases[i].rc);
        assert_int_equal(v.is_hung, cases[i].is_hung);
        player_fini(&p);
    }
}

static void test_field_faults_concern_one_field(void **state)
{
    (void)state;
    struct player p;
    play_faults(&p, "{fault: not_supported, field: 83, gpu: 1, from: 2}, {fault: slow, ms: 5}, {fault: slow, ms: 6}");
    assert_true(player_is_field_off(&p, 1, 83, 2));
    assert_false(player_is_field_off(&p, 1, 83, 1));
    assert_false(player_is_field_off(&p, 0, 83, 2));
    assert_false(player_is_field_off(&p, 1, 82, 2));
    struct player_call call = {"nvmlDeviceGetFieldValues", 1, 2, false};
    struct player_verdict v = player_judge(&p, &call);
    assert_int_equal(v.rc, 0);
    assert_double_same(v.slow_ms, 11);
    player_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_power_and_temperature_follow_the_load),
        cmocka_unit_test(test_energy_is_the_integral_of_power),
        cmocka_unit_test(test_counters_go_on_when_the_scenario_changes),
        cmocka_unit_test(test_a_gpu_that_is_new_counts_from_zero),
        cmocka_unit_test(test_a_divided_gpu_is_the_sum_of_its_parts),
        cmocka_unit_test(test_counters_run_through_a_change_of_layout),
        cmocka_unit_test(test_instance_counters_go_on_when_the_layout_stays),
        cmocka_unit_test(test_processes_fill_memory_that_is_not_given),
        cmocka_unit_test(test_events_count_from_their_time_on),
        cmocka_unit_test(test_faults_hit_the_calls_that_they_mean),
        cmocka_unit_test(test_field_faults_concern_one_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
