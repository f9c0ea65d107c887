/* gpu: what is read of a GPU: units, sources and their order, what is absent, what fails. */
#include "gpu/bench.h"

/* Every field that a board has, with NVML's raw answers of bench_describe_gpu and the field values below. */
static const struct expectation {
    enum snapshot_field field;
    double want;
} board[] = {
    {SNAPSHOT_UTILIZATION, 5},
    {SNAPSHOT_MEMORY_UTILIZATION, 20},
    {SNAPSHOT_MEMORY_USED, 20.0 * (1 << 30)},
    {SNAPSHOT_MEMORY_FREE, 59.0 * (1 << 30)},
    {SNAPSHOT_MEMORY_RESERVED, 1.0 * (1 << 30)},
    {SNAPSHOT_MEMORY_TOTAL, 80.0 * (1 << 30)},
    {SNAPSHOT_TEMPERATURE, 60},
    {SNAPSHOT_MEMORY_TEMPERATURE, 71},
    {SNAPSHOT_POWER, 250.5},
    {SNAPSHOT_POWER_LIMIT, 700},
    {SNAPSHOT_ENERGY, 123456.789},
    {SNAPSHOT_SM_CLOCK, 1.98e9},
    {SNAPSHOT_MEMORY_CLOCK, 2.619e9},
    {SNAPSHOT_THROTTLE_REASONS, 4},
    {SNAPSHOT_VIOLATION_POWER, 74},
    {SNAPSHOT_VIOLATION_THERMAL, 75},
    {SNAPSHOT_VIOLATION_SYNC_BOOST, 76},
    {SNAPSHOT_VIOLATION_BOARD_LIMIT, 77},
    {SNAPSHOT_VIOLATION_LOW_UTILIZATION, 78},
    {SNAPSHOT_VIOLATION_RELIABILITY, 79},
    {SNAPSHOT_PCIE_TX, 5e6},
    {SNAPSHOT_PCIE_RX, 6e6},
    {SNAPSHOT_PCIE_REPLAYS, 12},
    {SNAPSHOT_PCIE_LINK_GENERATION, 5},
    {SNAPSHOT_PCIE_LINK_WIDTH, 16},
    {SNAPSHOT_NVLINK_TX, 7000.0 * 1024},
    {SNAPSHOT_NVLINK_RX, 8000.0 * 1024},
    {SNAPSHOT_NVLINK_BYTES, 1000.0 * 1024},
    {SNAPSHOT_ENCODER_UTILIZATION, 7},
    {SNAPSHOT_DECODER_UTILIZATION, 8},
    {SNAPSHOT_ECC_CORRECTED, 3},
    {SNAPSHOT_ECC_UNCORRECTED, 1},
    {SNAPSHOT_REMAPPED_ROWS_CORRECTABLE, 1},
    {SNAPSHOT_REMAPPED_ROWS_UNCORRECTABLE, 2},
    {SNAPSHOT_REMAPPED_ROWS_PENDING, 1},
    {SNAPSHOT_REMAPPED_ROWS_FAILED, 0},
    {SNAPSHOT_FAN_SPEED, 33},
    {SNAPSHOT_RECOVERY_ACTION, 2},
    {SNAPSHOT_GRAPHICS_ACTIVITY, 91},
    {SNAPSHOT_SM_ACTIVITY, 82.5},
    {SNAPSHOT_SM_OCCUPANCY, 73},
    {SNAPSHOT_TENSOR_ACTIVITY, 64},
    {SNAPSHOT_DRAM_ACTIVITY, 55},
};

static void give_gpm(double values[FAKE_GPM_IDS])
{
    for (size_t i = 0; i < FAKE_GPM_IDS; i++)
        values[i] = -1;
    values[NVML_GPM_GRAPHICS_UTIL] = 91;
    values[NVML_GPM_SM_UTIL] = 82.5;
    values[NVML_GPM_SM_OCCUPANCY] = 73;
    values[NVML_GPM_ANY_TENSOR_UTIL] = 64;
    values[NVML_GPM_DRAM_BW_UTIL] = 55;
}

static void test_every_metric_of_a_full_board_has_its_base_unit(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 1);
    b.nvml.gpus[0].has_gpm = true;
    give_gpm(b.nvml.gpus[0].gpm);
    bench_field(&b, 0, (struct fake_field){NVML_FIELD_MEMORY_TEMP, 0, NVML_VALUE_U32, 71});
    bench_field(&b, 0, (struct fake_field){NVML_FIELD_PCIE_REPLAYS, 0, NVML_VALUE_U32, 12});
    bench_field(&b, 0, (struct fake_field){NVML_FIELD_RECOVERY_ACTION, 0, NVML_VALUE_U32, 2});
    struct fake_field *tx = bench_field(&b, 0, (struct fake_field){NVML_FIELD_PCIE_TX_BYTES, 0, NVML_VALUE_U64, 1000});
    struct fake_field *rx = bench_field(&b, 0, (struct fake_field){NVML_FIELD_PCIE_RX_BYTES, 0, NVML_VALUE_U64, 1000});
    struct fake_field *link_tx =
        bench_field(&b, 0, (struct fake_field){NVML_FIELD_NVLINK_DATA_TX_KIB, NVML_SCOPE_ALL, NVML_VALUE_U64, 500});
    struct fake_field *link_rx =
        bench_field(&b, 0, (struct fake_field){NVML_FIELD_NVLINK_DATA_RX_KIB, NVML_SCOPE_ALL, NVML_VALUE_U64, 500});
    for (uint32_t id = NVML_FIELD_LIMITED_NS_POWER; id <= NVML_FIELD_LIMITED_NS_RELIABILITY; id++)
        bench_field(&b, 0, (struct fake_field){id, 0, NVML_VALUE_U64, id * (uint64_t)NS_PER_S});
    bench_cycle(&b);
    tx->value += 5000000;
    rx->value += 6000000;
    link_tx->value += 7000;
    link_rx->value += 8000;
    bench_cycle(&b);
    assert_int_equal(ARRAY_LEN(board), SNAPSHOT_FIELD_COUNT);
    for (size_t i = 0; i < ARRAY_LEN(board); i++) {
        const struct snapshot_reading *reading = bench_reading(&b, 0, board[i].field);
        print_message("%s\n", snapshot_field_name(board[i].field));
        assert_int_equal(reading->status, SNAPSHOT_OK);
        assert_double_near(reading->value, board[i].want, 1e-6);
    }
    assert_int_equal(b.latest->driver, SNAPSHOT_DRIVER_OK);
    assert_string_equal(b.latest->driver_version, "570.86.15");
    assert_string_equal(bench_gpu(&b, 0)->product, "NVIDIA Fake 80GB");
    assert_string_equal(bench_gpu(&b, 0)->pci_bus_id, "00000000:00:00.0");
    assert_string_equal(bench_gpu(&b, 0)->serial, "1234567890");
    assert_int_equal(bench_gpu(&b, 0)->minor, 0);
}

static void test_a_rate_has_no_value_after_the_first_cycle(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 1);
    bench_field(&b, 0, (struct fake_field){NVML_FIELD_PCIE_TX_BYTES, 0, NVML_VALUE_U64, 1000});
    bench_cycle(&b);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_PCIE_TX)->status, SNAPSHOT_NOT_READ);
    bench_cycle(&b);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_PCIE_TX)->status, SNAPSHOT_OK);
    assert_double_same(bench_reading(&b, 0, SNAPSHOT_PCIE_TX)->value, 0);
}

static void test_what_a_board_lacks_is_unsupported_and_asked_once(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 1);
    bench_rule(&b, "nvmlDeviceGetUtilizationRates", -1, NVML_RC_NOT_SUPPORTED);
    bench_rule(&b, "nvmlDeviceGetPowerUsage", -1, NVML_RC_NO_PERMISSION);
    bench_cycles(&b, 5);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_UTILIZATION)->status, SNAPSHOT_UNSUPPORTED);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_MEMORY_UTILIZATION)->status, SNAPSHOT_UNSUPPORTED);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_POWER)->status, SNAPSHOT_UNSUPPORTED);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_MEMORY_TEMPERATURE)->status, SNAPSHOT_UNSUPPORTED);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_SM_ACTIVITY)->status, SNAPSHOT_UNSUPPORTED);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_NVLINK_RX)->status, SNAPSHOT_UNSUPPORTED);
    b.nvml.n_rules = 0; /* it would answer now; nobody asks */
    bench_cycles(&b, 5);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_UTILIZATION)->status, SNAPSHOT_UNSUPPORTED);
    assert_int_equal(b.latest->sampler.errors, 0);
}

static void test_a_transient_failure_keeps_the_last_value_and_its_time(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 2);
    bench_cycle(&b);
    int64_t taken_ns = bench_reading(&b, 0, SNAPSHOT_UTILIZATION)->taken_ns;
    bench_rule(&b, "nvmlDeviceGetUtilizationRates", 0, NVML_RC_TIMEOUT);
    bench_cycle(&b);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_UTILIZATION)->status, SNAPSHOT_FAILED);
    assert_double_same(bench_reading(&b, 0, SNAPSHOT_UTILIZATION)->value, 5);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_UTILIZATION)->taken_ns, taken_ns);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_UTILIZATION)->code, NVML_RC_TIMEOUT);
    assert_int_equal(bench_reading(&b, 1, SNAPSHOT_UTILIZATION)->status, SNAPSHOT_OK);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_TEMPERATURE)->status, SNAPSHOT_OK);
    assert_int_equal(b.latest->sampler.n_error_codes, 1);
    assert_int_equal(b.latest->sampler.errors_by_code[0].code, NVML_RC_TIMEOUT);
    b.nvml.n_rules = 0;
    bench_cycle(&b);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_UTILIZATION)->status, SNAPSHOT_OK);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_UTILIZATION)->code, 0);
}

static void test_an_impossible_value_is_dropped_not_clamped(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 1);
    bench_cycle(&b);
    b.nvml.gpus[0].utilization = 101;
    b.nvml.gpus[0].celsius = 345;
    b.nvml.gpus[0].power_mw = 20 * 1000 * 1000;
    bench_cycle(&b);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_UTILIZATION)->status, SNAPSHOT_FAILED);
    assert_double_same(bench_reading(&b, 0, SNAPSHOT_UTILIZATION)->value, 5);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_TEMPERATURE)->status, SNAPSHOT_FAILED);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_POWER)->status, SNAPSHOT_FAILED);
}

static void test_without_memory_v2_there_is_no_reserved(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 1);
    b.nvml.lacks_memory_v2 = true;
    bench_cycle(&b);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_MEMORY_RESERVED)->status, SNAPSHOT_UNSUPPORTED);
    assert_double_same(bench_reading(&b, 0, SNAPSHOT_MEMORY_USED)->value, 21.0 * (1 << 30));
}

static void test_unified_memory_is_unsupported_not_zero(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 1);
    b.nvml.gpus[0].total = b.nvml.gpus[0].used = b.nvml.gpus[0].reserved = 0;
    bench_cycle(&b);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_MEMORY_USED)->status, SNAPSHOT_UNSUPPORTED);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_MEMORY_TOTAL)->status, SNAPSHOT_UNSUPPORTED);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_UTILIZATION)->status, SNAPSHOT_OK);
}

static void test_the_blocking_pcie_call_is_made_only_while_wanted(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 2);
    bench_cycles(&b, 10);
    assert_int_equal(b.nvml.pcie_blocking_calls, 0);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_PCIE_RX)->status, SNAPSHOT_NOT_READ);
    atomic_store(&b.shared.pcie_rx_wanted_until_ns, bench_now_ns + 4 * NS_PER_S);
    for (unsigned i = 1; i <= 4; i++) {
        bench_cycle(&b);
        assert_int_equal(b.nvml.pcie_blocking_calls, i); /* one GPU and direction a cycle */
    }
    bench_cycles(&b, 10);
    assert_int_equal(b.nvml.pcie_blocking_calls, 4);
    assert_double_same(bench_reading(&b, 0, SNAPSHOT_PCIE_RX)->value, 2e6);
    assert_double_same(bench_reading(&b, 1, SNAPSHOT_PCIE_RX)->value, 2e6);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_PCIE_TX)->status, SNAPSHOT_NOT_READ);
    assert_int_equal(b.latest->field_period_ns[SNAPSHOT_PCIE_RX], 4 * NS_PER_S);
}

static void test_gpm_gives_pcie_where_there_are_no_counters(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 1);
    b.nvml.gpus[0].has_gpm = true;
    give_gpm(b.nvml.gpus[0].gpm);
    b.nvml.gpus[0].gpm[NVML_GPM_PCIE_TX] = 3;
    b.nvml.gpus[0].gpm[NVML_GPM_PCIE_RX] = 4;
    bench_cycles(&b, 4);
    assert_double_same(bench_reading(&b, 0, SNAPSHOT_PCIE_TX)->value, 3 * 1048576.0);
    assert_double_same(bench_reading(&b, 0, SNAPSHOT_PCIE_RX)->value, 4 * 1048576.0);
    assert_int_equal(b.latest->field_period_ns[SNAPSHOT_PCIE_RX], 0);
}

/* Gen 5 x16 moves 63 GB/s: a 32-bit byte counter goes round 15 times a second. Gen 3 x4 does not within one. */
static void test_a_32_bit_pcie_counter_is_used_only_on_links_too_slow_to_fool_it(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 2);
    b.nvml.gpus[1].max_generation = 3;
    b.nvml.gpus[1].max_width = 4;
    bench_field(&b, 0, (struct fake_field){NVML_FIELD_PCIE_TX_BYTES, 0, NVML_VALUE_U32, 0xfffffff0});
    struct fake_field *slow =
        bench_field(&b, 1, (struct fake_field){NVML_FIELD_PCIE_TX_BYTES, 0, NVML_VALUE_U32, 0xfffffff0});
    bench_cycle(&b);
    slow->value = 0x10;
    bench_cycles(&b, 3);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_PCIE_TX)->status, SNAPSHOT_NOT_READ);
    assert_int_equal(bench_reading(&b, 1, SNAPSHOT_PCIE_TX)->status, SNAPSHOT_OK);
    slow->value += 1000;
    atomic_store(&b.shared.pcie_tx_wanted_until_ns, bench_now_ns + NS_PER_S);
    bench_cycle(&b);
    assert_double_near(bench_reading(&b, 1, SNAPSHOT_PCIE_TX)->value, 1000, 1e-6);
    assert_double_same(bench_reading(&b, 0, SNAPSHOT_PCIE_TX)->value, 1e6); /* from the next source */
}

static void test_blackwell_nvlink_counts_bytes_in_other_fields(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 1);
    struct fake_field *tx =
        bench_field(&b, 0, (struct fake_field){NVML_FIELD_NVLINK5_TX_BYTES, NVML_SCOPE_ALL, NVML_VALUE_U64, 1});
    bench_cycles(&b, 2);
    tx->value += 9000;
    bench_cycle(&b);
    assert_double_near(bench_reading(&b, 0, SNAPSHOT_NVLINK_TX)->value, 9000, 1e-6);
}

static void test_gpm_permission_may_go_and_come_back(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 1);
    b.nvml.gpus[0].has_gpm = true;
    give_gpm(b.nvml.gpus[0].gpm);
    bench_cycles(&b, 2);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_SM_ACTIVITY)->status, SNAPSHOT_OK);
    bench_rule(&b, "nvmlGpmSampleGet", -1, NVML_RC_NO_PERMISSION);
    bench_cycle(&b);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_SM_ACTIVITY)->status, SNAPSHOT_FAILED);
    b.nvml.n_rules = 0;
    bench_cycles(&b, 30); /* not asked again so soon */
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_SM_ACTIVITY)->status, SNAPSHOT_FAILED);
    bench_cycles(&b, 35);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_SM_ACTIVITY)->status, SNAPSHOT_OK);
}

/* A busy GPU that was read must not vanish from the value in one second: it is missing before it is unsupported. */
static void test_gpm_permission_that_is_gone_is_a_failure_first_and_unsupported_in_the_end(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 2);
    b.nvml.gpus[0].has_gpm = b.nvml.gpus[1].has_gpm = true;
    give_gpm(b.nvml.gpus[0].gpm);
    give_gpm(b.nvml.gpus[1].gpm);
    bench_rule(&b, "nvmlGpmSampleGet", 1, NVML_RC_NO_PERMISSION);
    bench_cycles(&b, 3);
    assert_int_equal(bench_reading(&b, 1, SNAPSHOT_SM_ACTIVITY)->status, SNAPSHOT_UNSUPPORTED); /* never read */
    bench_rule(&b, "nvmlGpmSampleGet", 0, NVML_RC_NO_PERMISSION);
    bench_cycles(&b, 15 * 60);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_SM_ACTIVITY)->status, SNAPSHOT_FAILED);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_SM_ACTIVITY)->code, NVML_RC_NO_PERMISSION);
    assert_false(snapshot_is_fresh(b.latest, bench_gpu(&b, 0), SNAPSHOT_SM_ACTIVITY, bench_now_ns));
    bench_cycles(&b, 3);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_SM_ACTIVITY)->status, SNAPSHOT_UNSUPPORTED);
}

/* A pair whose samples are not one period apart says nothing about the time between. */
static void test_a_gpm_pair_is_seeded_anew_after_a_failure_and_after_a_gap(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 1);
    b.nvml.gpus[0].has_gpm = true;
    give_gpm(b.nvml.gpus[0].gpm);
    bench_cycles(&b, 2);
    bench_rule(&b, "nvmlGpmSampleGet", -1, NVML_RC_TIMEOUT);
    bench_cycle(&b);
    b.nvml.n_rules = 0;
    bench_cycle(&b);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_SM_ACTIVITY)->status, SNAPSHOT_FAILED);
    bench_cycle(&b);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_SM_ACTIVITY)->status, SNAPSHOT_OK);
    int64_t before_gap_ns = bench_reading(&b, 0, SNAPSHOT_SM_ACTIVITY)->taken_ns;
    bench_now_ns += 10 * NS_PER_S;
    bench_cycle(&b);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_SM_ACTIVITY)->taken_ns, before_gap_ns);
    bench_cycle(&b);
    assert_true(bench_reading(&b, 0, SNAPSHOT_SM_ACTIVITY)->taken_ns > before_gap_ns);
}

static void test_slow_readings_are_taken_every_ten_seconds(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 1);
    bench_cycle(&b);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_FAN_SPEED)->status, SNAPSHOT_OK); /* but at once when new */
    int64_t last_ns = bench_reading(&b, 0, SNAPSHOT_FAN_SPEED)->taken_ns;
    int changes = 0;
    for (int i = 0; i < 40; i++) {
        bench_cycle(&b);
        changes += bench_reading(&b, 0, SNAPSHOT_FAN_SPEED)->taken_ns != last_ns;
        last_ns = bench_reading(&b, 0, SNAPSHOT_FAN_SPEED)->taken_ns;
    }
    assert_int_equal(changes, 4);
    assert_int_equal(b.latest->field_period_ns[SNAPSHOT_FAN_SPEED], 10 * NS_PER_S);
}

/* Nothing is read more often than the main cycle comes round, whatever the slow period says. */
static void test_slow_readings_are_fresh_until_the_next_when_the_main_cycle_is_slower(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 1);
    gpu_core_free(b.core);
    b.core = gpu_core_new(&(struct gpu_config){.library_path = bench_library(), .period_ns = 60 * NS_PER_S}, &b.shared,
                          bench_clock);
    for (int i = 0; i < 4; i++) {
        bench_cycle(&b);
        bench_now_ns += 58 * NS_PER_S;
        assert_true(snapshot_is_fresh(b.latest, bench_gpu(&b, 0), SNAPSHOT_ENCODER_UTILIZATION, bench_now_ns));
        assert_true(snapshot_is_fresh(b.latest, bench_gpu(&b, 0), SNAPSHOT_POWER_LIMIT, bench_now_ns));
        bench_now_ns += NS_PER_S;
    }
    assert_int_equal(b.latest->field_period_ns[SNAPSHOT_FAN_SPEED], 60 * NS_PER_S);
}

/* The driver serialises on one lock that the workload needs too: what a cycle costs has a ceiling. */
static void test_a_cycle_makes_few_calls_per_gpu(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 8);
    bench_cycles(&b, 20);
    unsigned before = atomic_load(&b.nvml.n_calls);
    bench_cycles(&b, 10);
    unsigned per_gpu_and_cycle = (atomic_load(&b.nvml.n_calls) - before) / 80;
    assert_in_range(per_gpu_and_cycle, 8, 14);
    assert_int_equal(b.nvml.pcie_blocking_calls, 0);
    assert_true(b.latest->sampler.nvml_calls > 0);
}

static void test_xids_are_counted_by_number_and_device(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 2);
    bench_cycle(&b);
    struct nvml_event_data event = {.device = &b.nvml.gpus[1].handle,
                                    .type = NVML_EVENT_XID_CRITICAL,
                                    .data = 79,
                                    .gpu_instance_id = NVML_NONE_U32,
                                    .compute_instance_id = NVML_NONE_U32};
    b.nvml.events[0] = b.nvml.events[1] = b.nvml.events[2] = event;
    b.nvml.events[2].data = 31;
    b.nvml.n_events = 3;
    int64_t at_ns = bench_now_ns;
    bench_cycle(&b);
    const struct snapshot_device *d = bench_gpu(&b, 1);
    assert_int_equal(d->n_xids, 2);
    assert_int_equal(d->xids[0].xid, 79);
    assert_int_equal(d->xids[0].count, 2);
    assert_int_equal(d->xids[0].last_ns, at_ns);
    assert_int_equal(d->xids[1].xid, 31);
    assert_int_equal(bench_gpu(&b, 0)->n_xids, 0);
    bench_cycle(&b);
    assert_int_equal(bench_gpu(&b, 1)->xids[0].count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_metric_of_a_full_board_has_its_base_unit),
        cmocka_unit_test(test_a_rate_has_no_value_after_the_first_cycle),
        cmocka_unit_test(test_what_a_board_lacks_is_unsupported_and_asked_once),
        cmocka_unit_test(test_a_transient_failure_keeps_the_last_value_and_its_time),
        cmocka_unit_test(test_an_impossible_value_is_dropped_not_clamped),
        cmocka_unit_test(test_without_memory_v2_there_is_no_reserved),
        cmocka_unit_test(test_unified_memory_is_unsupported_not_zero),
        cmocka_unit_test(test_the_blocking_pcie_call_is_made_only_while_wanted),
        cmocka_unit_test(test_gpm_gives_pcie_where_there_are_no_counters),
        cmocka_unit_test(test_a_32_bit_pcie_counter_is_used_only_on_links_too_slow_to_fool_it),
        cmocka_unit_test(test_blackwell_nvlink_counts_bytes_in_other_fields),
        cmocka_unit_test(test_gpm_permission_may_go_and_come_back),
        cmocka_unit_test(test_gpm_permission_that_is_gone_is_a_failure_first_and_unsupported_in_the_end),
        cmocka_unit_test(test_a_gpm_pair_is_seeded_anew_after_a_failure_and_after_a_gap),
        cmocka_unit_test(test_slow_readings_are_taken_every_ten_seconds),
        cmocka_unit_test(test_slow_readings_are_fresh_until_the_next_when_the_main_cycle_is_slower),
        cmocka_unit_test(test_a_cycle_makes_few_calls_per_gpu),
        cmocka_unit_test(test_xids_are_counted_by_number_and_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
