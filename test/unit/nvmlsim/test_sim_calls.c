/* What each NVML call answers and refuses: identity, memory, load, power, links, fields. */
#include "stage.h"

#include <stdio.h>
#include <string.h>

static void test_init_is_counted_and_shutdown_is_harmless(void **state)
{
    (void)state;
    uint32_t n = 7;
    char version[NVML_VERSION_MAX];
    stage_set("gpus: [{board: T4}]");
    assert_rc(nvmlShutdown(), SUCCESS);
    assert_rc(nvmlDeviceGetCount_v2(&n), UNINITIALIZED);
    assert_int_equal(n, 7);
    assert_rc(nvmlSystemGetNVMLVersion(version, sizeof(version)), SUCCESS);
    assert_rc(nvmlInit_v2(), SUCCESS);
    assert_rc(nvmlInitWithFlags(1), SUCCESS);
    assert_rc(nvmlShutdown(), SUCCESS);
    assert_rc(nvmlDeviceGetCount_v2(&n), SUCCESS);
    assert_int_equal(n, 1);
    assert_rc(nvmlShutdown(), SUCCESS);
    assert_rc(nvmlDeviceGetCount_v2(&n), UNINITIALIZED);
    assert_rc(nvmlInit(), SUCCESS);
}

static void test_error_texts_are_never_null(void **state)
{
    (void)state;
    assert_string_equal(nvmlErrorString(9), "Driver Not Loaded");
    assert_string_equal(nvmlErrorString(15), "GPU is lost");
    assert_string_equal(nvmlErrorString(18), "Driver/library version mismatch");
    assert_string_equal(nvmlErrorString(12345), "Unknown Error");
    for (int rc = -5; rc < 1100; rc++)
        assert_non_null(nvmlErrorString(rc));
}

static void test_every_name_in_the_tables_is_exported(void **state)
{
    (void)state;
    void (*all[])(void) = {
#define X(need, name, type, parameters) (void (*)(void)) name,
        NVML_SYMBOLS(X)
#undef X
#define X(name, type, parameters) (void (*)(void)) name,
            SIM_SYMBOLS(X)
#undef X
    };
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        assert_non_null(all[i]);
}

static void test_versions_come_from_the_scenario(void **state)
{
    (void)state;
    char text[NVML_VERSION_MAX];
    int32_t cuda = 0;
    stage_play("driver: '535.54.03'\ncuda: '12.2'\ngpus: []");
    assert_rc(nvmlSystemGetDriverVersion(text, sizeof(text)), SUCCESS);
    assert_string_equal(text, "535.54.03");
    assert_rc(nvmlSystemGetNVMLVersion(text, sizeof(text)), SUCCESS);
    assert_string_equal(text, "12.535.54.03");
    assert_rc(nvmlSystemGetCudaDriverVersion_v2(&cuda), SUCCESS);
    assert_int_equal(cuda, 12020);
    assert_rc(nvmlSystemGetDriverVersion(text, 9), INSUFFICIENT_SIZE);
}

static void test_a_device_is_found_by_all_its_names(void **state)
{
    (void)state;
    struct nvml_device *d = NULL, *by = NULL;
    struct nvml_pci_info pci;
    char uuid[NVML_UUID_MAX];
    stage_play("gpus: [{board: T4, count: 2}, {board: GB200, pci: '00000008:06:00.0'}]");
    d = stage_gpu(2);
    assert_rc(nvmlDeviceGetUUID(d, uuid, sizeof(uuid)), SUCCESS);
    assert_rc(nvmlDeviceGetHandleByUUID(uuid, &by), SUCCESS);
    assert_ptr_equal(by, d);
    assert_rc(nvmlDeviceGetPciInfo_v3(d, &pci), SUCCESS);
    assert_string_equal(pci.bus_id, "00000008:06:00.0");
    assert_string_equal(pci.bus_id_legacy, "0008:06:00.0");
    assert_int_equal(pci.pci_device_id, 0x294110de);
    assert_rc(nvmlDeviceGetHandleByPciBusId_v2("0008:06:00.0", &by), SUCCESS);
    assert_ptr_equal(by, d);
    by = NULL;
    assert_rc(nvmlDeviceGetHandleByUUID("GPU-no", &by), NOT_FOUND);
    assert_rc(nvmlDeviceGetHandleByUUID("nonsense", &by), INVALID_ARGUMENT);
    assert_rc(nvmlDeviceGetHandleByPciBusId_v2("0000:ff:00.0", &by), NOT_FOUND);
    assert_rc(nvmlDeviceGetHandleByIndex_v2(3, &by), INVALID_ARGUMENT);
    assert_null(by);
    assert_rc(nvmlDeviceGetUUID((struct nvml_device *)(void *)&pci, uuid, sizeof(uuid)), INVALID_ARGUMENT);
    assert_rc(nvmlDeviceGetUUID(NULL, uuid, sizeof(uuid)), INVALID_ARGUMENT);
    assert_rc(nvmlDeviceGetUUID(d, uuid, 40), INSUFFICIENT_SIZE);
}

static void test_old_pci_calls_leave_the_new_part_alone(void **state)
{
    (void)state;
    struct nvml_pci_info pci;
    memset(&pci, 0x5a, sizeof(pci));
    stage_play("gpus: [{board: T4, pci: '0000:3b:00.0'}]");
    assert_rc(nvmlDeviceGetPciInfo(stage_gpu(0), &pci), SUCCESS);
    assert_string_equal(pci.bus_id_legacy, "0000:3B:00.0");
    for (size_t i = 0; i < sizeof(pci.bus_id); i++)
        assert_int_equal(pci.bus_id[i], 0x5a);
}

static void test_memory_v1_counts_the_reserve_as_used(void **state)
{
    (void)state;
    struct nvml_memory_v2 v2 = {.version = NVML_MEMORY_V2};
    struct nvml_memory v1;
    const uint64_t mib = 1 << 20;
    stage_play("gpus: [{board: H100, memory_used_mib: 1000}]");
    assert_rc(nvmlDeviceGetMemoryInfo_v2(stage_gpu(0), &v2), SUCCESS);
    assert_int_equal(v2.total_bytes, 81559 * mib);
    assert_int_equal(v2.reserved_bytes, 480 * mib);
    assert_int_equal(v2.used_bytes, 1000 * mib);
    assert_int_equal(v2.total_bytes, v2.used_bytes + v2.free_bytes + v2.reserved_bytes);
    assert_rc(nvmlDeviceGetMemoryInfo(stage_gpu(0), &v1), SUCCESS);
    assert_int_equal(v1.used_bytes, 1480 * mib);
    assert_int_equal(v1.total_bytes, v1.used_bytes + v1.free_bytes);
    for (uint32_t wrong = 0; wrong < 3; wrong++) {
        v2.version = wrong; /* also the 2 of the header's comment */
        assert_rc(nvmlDeviceGetMemoryInfo_v2(stage_gpu(0), &v2), ARGUMENT_VERSION_MISMATCH);
    }
    stage_play("driver: '470.82.01'\ngpus: [{board: H100, memory_used_mib: 1000}]");
    assert_rc(nvmlDeviceGetMemoryInfo(stage_gpu(0), &v1), SUCCESS);
    assert_int_equal(v1.used_bytes, 1000 * mib);
}

static void test_load_follows_its_curve(void **state)
{
    (void)state;
    struct nvml_utilization u;
    uint32_t percent, period, celsius, mhz;
    stage_play("gpus: [{board: L40S, utilization: {step: [[0, 10], [5, 90.4]]}, memory_utilization: 33,\n"
               "        encoder: 12, decoder: 34, jpeg: 5, temperature: 61, sm_clock_mhz: 1234}]");
    assert_rc(nvmlDeviceGetUtilizationRates(stage_gpu(0), &u), SUCCESS);
    assert_int_equal(u.gpu, 10);
    stage_advance(5);
    assert_rc(nvmlDeviceGetUtilizationRates(stage_gpu(0), &u), SUCCESS);
    assert_int_equal(u.gpu, 90);
    assert_int_equal(u.memory, 33);
    assert_rc(nvmlDeviceGetEncoderUtilization(stage_gpu(0), &percent, &period), SUCCESS);
    assert_int_equal(percent, 12);
    assert_rc(nvmlDeviceGetDecoderUtilization(stage_gpu(0), &percent, &period), SUCCESS);
    assert_int_equal(percent, 34);
    assert_rc(nvmlDeviceGetJpgUtilization(stage_gpu(0), &percent, &period), SUCCESS);
    assert_int_equal(percent, 5);
    assert_rc(nvmlDeviceGetTemperature(stage_gpu(0), 0, &celsius), SUCCESS);
    assert_int_equal(celsius, 61);
    assert_rc(nvmlDeviceGetTemperature(stage_gpu(0), 1, &celsius), INVALID_ARGUMENT);
    assert_rc(nvmlDeviceGetClockInfo(stage_gpu(0), NVML_CLK_SM, &mhz), SUCCESS);
    assert_int_equal(mhz, 1234);
    assert_rc(nvmlDeviceGetMaxClockInfo(stage_gpu(0), NVML_CLK_SM, &mhz), SUCCESS);
    assert_int_equal(mhz, 2520);
    struct nvml_temperature t = {.version = NVML_TEMPERATURE_V1};
    assert_rc(nvmlDeviceGetTemperatureV(stage_gpu(0), &t), SUCCESS);
    assert_int_equal(t.celsius, 61);
    t.version = 1;
    assert_rc(nvmlDeviceGetTemperatureV(stage_gpu(0), &t), ARGUMENT_VERSION_MISMATCH);
}

static void test_power_is_a_mean_on_new_boards_and_a_moment_on_a100(void **state)
{
    (void)state;
    uint32_t mw;
    stage_play("gpus:\n"
               "  - {board: H100, power_w: {step: [[0, 100], [10, 300]]}}\n"
               "  - {board: A100-40, power_w: {step: [[0, 100], [10, 300]]}}\n");
    stage_advance(10.25);
    assert_rc(nvmlDeviceGetPowerUsage(stage_gpu(0), &mw), SUCCESS);
    assert_int_equal(mw, 150000);
    assert_rc(nvmlDeviceGetPowerUsage(stage_gpu(1), &mw), SUCCESS);
    assert_int_equal(mw, 300000);
    assert_rc(nvmlDeviceGetEnforcedPowerLimit(stage_gpu(1), &mw), SUCCESS);
    assert_int_equal(mw, 400000);
}

static void test_energy_is_exact(void **state)
{
    (void)state;
    uint64_t mj;
    stage_play("gpus: [{board: T4, power_w: {ramp: [[0, 20], [10, 60]]}}]");
    stage_advance(10);
    assert_rc(nvmlDeviceGetTotalEnergyConsumption(stage_gpu(0), &mj), SUCCESS);
    assert_true(mj >= 399999 && mj <= 400000);
}

static void test_pcie_throughput_takes_20_ms(void **state)
{
    (void)state;
    uint32_t kb;
    stage_play("gpus: [{board: T4, pcie_tx_kbps: 5000, pcie_rx_kbps: 700}]");
    assert_rc(nvmlDeviceGetPcieThroughput(stage_gpu(0), NVML_PCIE_TX, &kb), SUCCESS);
    assert_int_equal(kb, 5000);
    assert_double_near(stage_slept_s(), 0.020, 1e-9);
    assert_rc(nvmlDeviceGetPcieThroughput(stage_gpu(0), NVML_PCIE_RX, &kb), SUCCESS);
    assert_int_equal(kb, 700);
    assert_rc(nvmlDeviceGetPcieThroughput(stage_gpu(0), 2, &kb), INVALID_ARGUMENT);
}

static void test_samples_are_six_a_second(void **state)
{
    (void)state;
    struct nvml_sample samples[120];
    uint32_t type = 99, n = 0;
    stage_play("gpus: [{board: T4, utilization: {step: [[0, 10], [8, 70]]}}]");
    stage_advance(9);
    assert_rc(nvmlDeviceGetSamples(stage_gpu(0), NVML_SAMPLES_GPU_UTIL, 0, &type, &n, NULL), SUCCESS);
    assert_int_equal(n, 100);
    assert_rc(nvmlDeviceGetSamples(stage_gpu(0), NVML_SAMPLES_GPU_UTIL, 0, &type, &n, samples), SUCCESS);
    assert_int_equal(type, NVML_VALUE_U32);
    assert_in_range(n, 53, 55);
    assert_int_equal(samples[0].value.as_u32, 10);
    assert_int_equal(samples[n - 1].value.as_u32, 70);
    uint64_t last = samples[n - 1].time_us;
    n = 100;
    assert_rc(nvmlDeviceGetSamples(stage_gpu(0), NVML_SAMPLES_GPU_UTIL, last, &type, &n, samples), NOT_FOUND);
    stage_advance(1);
    n = 100;
    assert_rc(nvmlDeviceGetSamples(stage_gpu(0), NVML_SAMPLES_GPU_UTIL, last, &type, &n, samples), SUCCESS);
    assert_in_range(n, 5, 7);
    assert_true(samples[0].time_us > last);
    n = 5;
    assert_rc(nvmlDeviceGetSamples(stage_gpu(0), NVML_SAMPLES_GPU_UTIL, 0, &type, &n, samples), INSUFFICIENT_SIZE);
}

/* ---- fields ---- */

static struct nvml_field_value field(uint32_t gpu, uint32_t id, uint32_t scope)
{
    struct nvml_field_value f = {.field_id = id, .scope_id = scope};
    (void)nvmlDeviceGetFieldValues(stage_gpu(gpu), 1, &f);
    return f;
}

static void test_each_field_has_its_own_rc_and_type(void **state)
{
    (void)state;
    stage_play("gpus:\n"
               "  - {board: H100, power_w: 300, memory_temperature: 55, nvlink_tx_kibps: 1800, pcie_tx_kbps: 40}\n");
    stage_advance(10);
    struct nvml_field_value f[] = {
        {.field_id = NVML_FIELD_MEMORY_TEMP},
        {.field_id = NVML_FIELD_TOTAL_ENERGY},
        {.field_id = 9999},
        {.field_id = NVML_FIELD_NVLINK_DATA_TX_KIB, .scope_id = NVML_SCOPE_ALL},
        {.field_id = NVML_FIELD_NVLINK_DATA_TX_KIB, .scope_id = 17},
        {.field_id = NVML_FIELD_NVLINK_DATA_TX_KIB, .scope_id = 18},
        {.field_id = NVML_FIELD_PCIE_TX_BYTES},
        {.field_id = NVML_FIELD_RECOVERY_ACTION},
        {.field_id = NVML_FIELD_POWER_INSTANT, .scope_id = NVML_SCOPE_MODULE},
        {.field_id = NVML_FIELD_TLIMIT_SLOWDOWN},
    };
    assert_rc(nvmlDeviceGetFieldValues(stage_gpu(0), (int32_t)ARRAY_LEN(f), f), SUCCESS);
    assert_int_equal(f[0].value.as_u32, 55);
    assert_int_equal(f[0].value_type, NVML_VALUE_U32);
    assert_int_equal(f[1].value_type, NVML_VALUE_U64);
    assert_true(f[1].value.as_u64 >= 2999999 && f[1].value.as_u64 <= 3000000);
    assert_rc(f[2].rc, INVALID_ARGUMENT);
    assert_int_equal(f[3].value.as_u64, 18000);
    assert_int_equal(f[4].value.as_u64, 1000);
    assert_rc(f[5].rc, INVALID_ARGUMENT);
    assert_int_equal(f[6].value.as_u64, 400000);
    assert_rc(f[7].rc, SUCCESS);
    assert_rc(f[8].rc, NOT_SUPPORTED);
    assert_int_equal(f[9].value.as_i32, -2);
    assert_true(f[1].time_us > 1700000000000000);
    struct nvml_field_value bad = {.field_id = 9999};
    assert_int_not_equal(nvmlDeviceGetFieldValues(stage_gpu(0), 1, &bad), 0);
    assert_rc(nvmlDeviceGetFieldValues(stage_gpu(0), 0, f), INVALID_ARGUMENT);
}

static void test_boards_differ_in_what_they_have(void **state)
{
    (void)state;
    static const struct {
        const char *board;
        bool memory_temp, power_average, nvlink, nvlink5, rows, retired, pcie_count, gpm, mig, ofa;
    } cases[] = {
        {"T4", false, false, false, false, false, true, false, false, false, false},
        {"A10", false, true, false, false, true, false, false, false, false, false},
        {"A100-40", true, false, true, false, true, false, false, false, true, true},
        {"A100-80", true, false, true, false, true, false, false, false, true, true},
        {"L40S", false, true, false, false, true, false, true, false, false, true},
        {"H100", true, true, true, false, true, false, true, true, true, true},
        {"H200", true, true, true, false, true, false, true, true, true, true},
        {"B200", true, true, false, true, true, false, true, true, true, true},
        {"GH200", true, true, true, false, true, false, true, true, true, true},
        {"GB200", true, true, false, true, true, false, true, true, true, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[128];
        uint32_t a, b;
        struct nvml_gpm_support gpm = {.version = 1};
        (void)snprintf(text, sizeof(text), "gpus: [{board: %s}]", cases[i].board);
        stage_play(text);
        struct nvml_device *d = stage_gpu(0);
        assert_int_equal(field(0, NVML_FIELD_MEMORY_TEMP, 0).rc == 0, cases[i].memory_temp);
        assert_int_equal(field(0, NVML_FIELD_POWER_AVERAGE, 0).rc == 0, cases[i].power_average);
        assert_int_equal(field(0, NVML_FIELD_NVLINK_DATA_RX_KIB, NVML_SCOPE_ALL).rc == 0, cases[i].nvlink);
        assert_int_equal(field(0, NVML_FIELD_NVLINK5_RX_BYTES, NVML_SCOPE_ALL).rc == 0, cases[i].nvlink5);
        assert_int_equal(field(0, NVML_FIELD_REMAPPED_PENDING, 0).rc == 0, cases[i].rows);
        assert_int_equal(field(0, NVML_FIELD_RETIRED_SBE, 0).rc == 0, cases[i].retired);
        assert_int_equal(field(0, NVML_FIELD_PCIE_RX_BYTES, 0).rc == 0, cases[i].pcie_count);
        assert_rc(nvmlGpmQueryDeviceSupport(d, &gpm), SUCCESS);
        assert_int_equal(gpm.is_supported, cases[i].gpm);
        assert_int_equal(nvmlDeviceGetMigMode(d, &a, &b) == 0, cases[i].mig);
        assert_int_equal(nvmlDeviceGetOfaUtilization(d, &a, &b) == 0, cases[i].ofa);
        assert_rc(nvmlDeviceGetFanSpeed(d, &a), NOT_SUPPORTED);
    }
}

static void test_fields_came_with_drivers(void **state)
{
    (void)state;
    stage_play("driver: '550.54.14'\ngpus: [{board: H100}]");
    assert_rc(field(0, NVML_FIELD_PCIE_TX_BYTES, 0).rc, NOT_SUPPORTED);
    assert_rc(field(0, NVML_FIELD_RECOVERY_ACTION, 0).rc, NOT_SUPPORTED);
    assert_rc(field(0, NVML_FIELD_POWER_INSTANT, 0).rc, SUCCESS);
}

static void test_pcie_counters_wrap_when_told(void **state)
{
    (void)state;
    stage_play("pcie_counter_bits: 32\ngpus: [{board: H100, pcie_rx_kbps: 2000000}]");
    stage_advance(4);
    struct nvml_field_value f = field(0, NVML_FIELD_PCIE_RX_BYTES, 0);
    assert_int_equal(f.value_type, NVML_VALUE_U32);
    assert_int_equal(f.value.as_u32, (uint32_t)8000000000u);
}

static void test_a_field_can_be_switched_off(void **state)
{
    (void)state;
    stage_play("gpus: [{board: H100, count: 2}]\nfaults: [{fault: not_supported, field: 83, gpu: 1}]");
    assert_rc(field(0, NVML_FIELD_TOTAL_ENERGY, 0).rc, SUCCESS);
    assert_rc(field(1, NVML_FIELD_TOTAL_ENERGY, 0).rc, NOT_SUPPORTED);
}

static void test_errors_count_and_rows_remap(void **state)
{
    (void)state;
    uint64_t n;
    uint32_t a, b, c, d;
    stage_play("gpus: [{board: A100-80, ecc: {corrected: 3, remapped_correctable: 2}}, {board: T4}]\n"
               "events: [{at: 5, gpu: 0, ecc: {uncorrected: 1, remap_pending: 1}}]");
    assert_rc(nvmlDeviceGetTotalEccErrors(stage_gpu(0), 0, 0, &n), SUCCESS);
    assert_int_equal(n, 3);
    stage_advance(5);
    assert_rc(nvmlDeviceGetTotalEccErrors(stage_gpu(0), 1, 1, &n), SUCCESS);
    assert_int_equal(n, 1);
    assert_rc(nvmlDeviceGetTotalEccErrors(stage_gpu(0), 2, 0, &n), INVALID_ARGUMENT);
    assert_rc(nvmlDeviceGetRemappedRows(stage_gpu(0), &a, &b, &c, &d), SUCCESS);
    assert_int_equal(a, 2);
    assert_int_equal(c, 1);
    assert_rc(nvmlDeviceGetRemappedRows(stage_gpu(1), &a, &b, &c, &d), NOT_SUPPORTED);
}

static void test_links_answer_up_to_their_number(void **state)
{
    (void)state;
    uint32_t value;
    stage_play("gpus: [{board: H100}, {board: T4}]");
    assert_rc(nvmlDeviceGetNvLinkState(stage_gpu(0), 17, &value), SUCCESS);
    assert_int_equal(value, 1);
    assert_rc(nvmlDeviceGetNvLinkState(stage_gpu(0), 18, &value), INVALID_ARGUMENT);
    assert_rc(nvmlDeviceGetNvLinkState(stage_gpu(1), 0, &value), NOT_SUPPORTED);
    assert_rc(nvmlDeviceGetCurrPcieLinkGeneration(stage_gpu(1), &value), SUCCESS);
    assert_int_equal(value, 1);
    struct nvml_fabric_info fabric = {.version = NVML_FABRIC_INFO_V2};
    assert_rc(nvmlDeviceGetGpuFabricInfoV(stage_gpu(0), &fabric), SUCCESS);
    assert_int_equal(fabric.state, NVML_FABRIC_COMPLETED);
    assert_rc(nvmlDeviceGetGpuFabricInfoV(stage_gpu(1), &fabric), NOT_SUPPORTED);
}

static void test_null_outputs_are_refused_not_written(void **state)
{
    (void)state;
    stage_play("gpus: [{board: H100}]");
    struct nvml_device *d = stage_gpu(0);
    assert_rc(nvmlDeviceGetCount_v2(NULL), INVALID_ARGUMENT);
    assert_rc(nvmlDeviceGetHandleByIndex_v2(0, NULL), INVALID_ARGUMENT);
    assert_rc(nvmlDeviceGetName(d, NULL, 96), INVALID_ARGUMENT);
    assert_rc(nvmlDeviceGetMemoryInfo(d, NULL), INVALID_ARGUMENT);
    assert_rc(nvmlDeviceGetUtilizationRates(d, NULL), INVALID_ARGUMENT);
    assert_rc(nvmlDeviceGetPowerUsage(d, NULL), INVALID_ARGUMENT);
    assert_rc(nvmlDeviceGetFieldValues(d, 1, NULL), INVALID_ARGUMENT);
    assert_rc(nvmlDeviceGetComputeRunningProcesses_v3(d, NULL, NULL), INVALID_ARGUMENT);
    assert_rc(nvmlGpmMetricsGet(NULL), INVALID_ARGUMENT);
    assert_rc(nvmlEventSetCreate(NULL), INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_init_is_counted_and_shutdown_is_harmless),
        cmocka_unit_test(test_error_texts_are_never_null),
        cmocka_unit_test(test_every_name_in_the_tables_is_exported),
        cmocka_unit_test(test_versions_come_from_the_scenario),
        cmocka_unit_test(test_a_device_is_found_by_all_its_names),
        cmocka_unit_test(test_old_pci_calls_leave_the_new_part_alone),
        cmocka_unit_test(test_memory_v1_counts_the_reserve_as_used),
        cmocka_unit_test(test_load_follows_its_curve),
        cmocka_unit_test(test_power_is_a_mean_on_new_boards_and_a_moment_on_a100),
        cmocka_unit_test(test_energy_is_exact),
        cmocka_unit_test(test_pcie_throughput_takes_20_ms),
        cmocka_unit_test(test_samples_are_six_a_second),
        cmocka_unit_test(test_each_field_has_its_own_rc_and_type),
        cmocka_unit_test(test_boards_differ_in_what_they_have),
        cmocka_unit_test(test_fields_came_with_drivers),
        cmocka_unit_test(test_pcie_counters_wrap_when_told),
        cmocka_unit_test(test_a_field_can_be_switched_off),
        cmocka_unit_test(test_errors_count_and_rows_remap),
        cmocka_unit_test(test_links_answer_up_to_their_number),
        cmocka_unit_test(test_null_outputs_are_refused_not_written),
    };
    return cmocka_run_group_tests(tests, stage_setup, stage_teardown);
}
