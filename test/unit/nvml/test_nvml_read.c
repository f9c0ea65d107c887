/* Values that are given, absent or impossible. */
#include "fake.h"

#include <math.h>

static struct nvml *start(struct fake **ret_fake)
{
    return fake_start("610", NULL, ret_fake);
}

static void test_numbers_are_bounded(void **state)
{
    (void)state;
    typedef int read_fn(const struct nvml *, struct nvml_device *, uint32_t *);
    static const struct {
        read_fn *read;
        uint32_t number;
        int rc;
    } rows[] = {
        {nvml_read_power, 0, NVML_RC_SUCCESS},
        {nvml_read_power, 699999, NVML_RC_SUCCESS},
        {nvml_read_power, 10000000, NVML_RC_SUCCESS},
        {nvml_read_power, 10000001, NVML_RC_IMPLAUSIBLE},
        {nvml_read_power, UINT32_MAX - 1, NVML_RC_IMPLAUSIBLE},
        {nvml_read_power, UINT32_MAX, NVML_RC_NOT_SUPPORTED},
        {nvml_read_power_limit, 10000001, NVML_RC_IMPLAUSIBLE},
        {nvml_read_minor, 7, NVML_RC_SUCCESS},
        {nvml_read_minor, UINT32_MAX, NVML_RC_NOT_SUPPORTED},
        {nvml_read_architecture, UINT32_MAX, NVML_RC_NOT_SUPPORTED},
        {nvml_read_fan, 130, NVML_RC_SUCCESS},
        {nvml_read_fan, 301, NVML_RC_IMPLAUSIBLE},
        {nvml_read_mig_max, 65, NVML_RC_IMPLAUSIBLE},
    };
    struct fake *f;
    struct nvml *n = start(&f);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        f->number = rows[i].number;
        uint32_t value = 12345;
        int rc = rows[i].read(n, fake_device(), &value);
        if (rc != rows[i].rc || value != (rc ? 12345 : rows[i].number))
            fail_msg("row %zu: rc %d, value %u", i, rc, value);
    }
    nvml_close(n);
}

static void test_temperatures_are_bounded(void **state)
{
    (void)state;
    static const struct {
        int32_t celsius;
        int rc;
    } rows[] = {{-21, NVML_RC_IMPLAUSIBLE},
                {-20, 0},
                {-2, 0},
                {-1, NVML_RC_NOT_SUPPORTED}, /* all ones */
                {0, 0},
                {150, 0},
                {151, NVML_RC_IMPLAUSIBLE},
                {345, NVML_RC_IMPLAUSIBLE},
                {600000000, NVML_RC_IMPLAUSIBLE}};
    static const char *const generations[] = {"470", "610"};
    for (size_t g = 0; g < ARRAY_LEN(generations); g++) {
        struct fake *f;
        struct nvml *n = fake_start(generations[g], NULL, &f);
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
            f->celsius = rows[i].celsius;
            int32_t celsius = 12345;
            assert_int_equal(nvml_read_temperature(n, fake_device(), &celsius), rows[i].rc);
            assert_int_equal(celsius, rows[i].rc ? 12345 : rows[i].celsius);
        }
        nvml_close(n);
    }
}

static void test_utilization_over_a_hundred_is_dropped_not_clamped(void **state)
{
    (void)state;
    static const struct {
        struct nvml_utilization given;
        int rc;
    } rows[] = {{{0, 0}, 0},
                {{100, 100}, 0},
                {{101, 0}, NVML_RC_IMPLAUSIBLE},
                {{0, 101}, NVML_RC_IMPLAUSIBLE},
                {{UINT32_MAX, 5}, NVML_RC_NOT_SUPPORTED}};
    struct fake *f;
    struct nvml *n = start(&f);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        f->utilization = rows[i].given;
        struct nvml_utilization u = {77, 77};
        assert_int_equal(nvml_read_utilization(n, fake_device(), &u), rows[i].rc);
        assert_int_equal(u.gpu, rows[i].rc ? 77 : rows[i].given.gpu);
    }
    uint32_t percent = 77;
    f->number = 101;
    assert_int_equal(nvml_read_engine(n, fake_device(), NVML_ENGINE_ENCODER, &percent), NVML_RC_IMPLAUSIBLE);
    f->number = 42;
    assert_int_equal(nvml_read_engine(n, fake_device(), NVML_ENGINE_DECODER, &percent), 0);
    assert_int_equal(percent, 42);
    nvml_close(n);
}

static void test_memory_that_does_not_add_up_is_dropped(void **state)
{
    (void)state;
    static const struct {
        struct nvml_memory_v2 given; /* version, total, reserved, free, used */
        int rc;
        bool has_reserved;
    } rows[] = {
        {{0, 100, 10, 60, 30}, 0, true},
        {{0, 100, 0, 0, 100}, 0, true},
        {{0, 100, 10, 60, 101}, NVML_RC_IMPLAUSIBLE, false},
        {{0, 100, 10, 101, 30}, NVML_RC_IMPLAUSIBLE, false},
        {{0, 100, 101, 60, 30}, NVML_RC_IMPLAUSIBLE, false},
        {{0, NVML_NONE_U64, 0, 0, 0}, NVML_RC_NOT_SUPPORTED, false},
        {{0, 100, 0, 60, NVML_NONE_U64}, NVML_RC_NOT_SUPPORTED, false},
        {{0, 100, NVML_NONE_U64, 60, 40}, 0, false},
        {{0, 0, 0, 0, 0}, NVML_RC_NOT_SUPPORTED, false},
    };
    struct fake *f;
    struct nvml *n = start(&f);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        f->memory_v2 = rows[i].given;
        struct nvml_memory_reading m = {0};
        int rc = nvml_read_memory(n, fake_device(), &m);
        if (rc != rows[i].rc || m.has_reserved != rows[i].has_reserved)
            fail_msg("row %zu: rc %d", i, rc);
    }
    nvml_close(n);
}

static void test_texts_are_trimmed_and_checked(void **state)
{
    (void)state;
    static const struct {
        const char *given, *text;
        int rc;
    } rows[] = {
        {"NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3", 0},
        {"  Tesla T4\t ", "Tesla T4", 0},
        {"", "", NVML_RC_NO_DATA},
        {"   ", "", NVML_RC_NO_DATA},
        {"\xff\xfe", "", NVML_RC_IMPLAUSIBLE},
    };
    struct fake *f;
    struct nvml *n = start(&f);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        f->text = rows[i].given;
        char text[NVML_NAME_MAX] = "";
        assert_int_equal(nvml_read_name(n, fake_device(), text), rows[i].rc);
        assert_string_equal(text, rows[i].text);
    }
    char serial[NVML_SERIAL_MAX] = "";
    f->text = "a serial number longer than thirty bytes";
    assert_int_equal(nvml_read_serial(n, fake_device(), serial), NVML_RC_INSUFFICIENT_SIZE);
    assert_int_equal(nvml_read_vbios(n, fake_device(), (char[NVML_VBIOS_MAX]){0}), NVML_RC_FUNCTION_NOT_FOUND);
    nvml_close(n);
}

static void test_a_null_handle_is_no_device(void **state)
{
    (void)state;
    struct fake *f;
    struct nvml *n = start(&f);
    struct nvml_device *d = NULL;
    assert_int_equal(nvml_find_by_index(n, 0, &d), 0);
    assert_non_null(d);
    f->gives_null_handle = true;
    assert_int_equal(nvml_find_by_index(n, 0, &d), NVML_RC_IMPLAUSIBLE);
    assert_int_equal(nvml_find_mig(n, fake_device(), 0, &d), NVML_RC_IMPLAUSIBLE);
    f->gives_null_handle = false;
    assert_int_equal(nvml_find_mig(n, fake_device(), 1, &d), NVML_RC_NOT_FOUND); /* a hole between instances */
    assert_int_equal(nvml_find_by_uuid(n, "GPU-0", &d), NVML_RC_FUNCTION_NOT_FOUND);
    nvml_close(n);
}

static void test_fields_become_numbers_by_their_type(void **state)
{
    (void)state;
    static const struct {
        struct nvml_field_value given;
        int rc;
        int64_t number;
    } rows[] = {
        {{.field_id = 138, .value_type = NVML_VALUE_U64, .value = {.as_u64 = 1ULL << 40}}, 0, 1LL << 40},
        {{.field_id = 138, .value_type = NVML_VALUE_U32, .value = {.as_u64 = 0xdeadbeef00000007}}, 0, 7},
        {{.field_id = 138, .value_type = NVML_VALUE_U16, .value = {.as_u64 = 0xdead0007}}, 0, 7},
        {{.field_id = 138, .value_type = NVML_VALUE_ULONG, .value = {.as_ulong = 9}}, 0, 9},
        {{.field_id = 138, .value_type = NVML_VALUE_DOUBLE, .value = {.as_double = 3.9}}, 0, 3},
        {{.field_id = 138, .value_type = NVML_VALUE_DOUBLE, .value = {.as_double = (double)NAN}},
         NVML_RC_IMPLAUSIBLE,
         0},
        {{.field_id = 138, .value_type = NVML_VALUE_DOUBLE, .value = {.as_double = 1e300}}, NVML_RC_IMPLAUSIBLE, 0},
        {{.field_id = 138, .value_type = NVML_VALUE_I32, .value = {.as_i32 = -5}}, 0, -5},
        {{.field_id = 138, .value_type = NVML_VALUE_I64, .value = {.as_i64 = -5}}, 0, -5},
        {{.field_id = 138, .value_type = NVML_VALUE_U64, .value = {.as_u64 = NVML_NONE_U64}}, NVML_RC_NOT_SUPPORTED, 0},
        {{.field_id = 138, .value_type = NVML_VALUE_U32, .value = {.as_u32 = NVML_NONE_U32}}, NVML_RC_NOT_SUPPORTED, 0},
        {{.field_id = 138, .value_type = NVML_VALUE_U64, .value = {.as_u64 = 1ULL << 63}}, NVML_RC_IMPLAUSIBLE, 0},
        {{.field_id = 138, .value_type = 7}, NVML_RC_IMPLAUSIBLE, 0},
        {{.field_id = 138, .value_type = NVML_VALUE_U32, .rc = NVML_RC_NOT_SUPPORTED}, NVML_RC_NOT_SUPPORTED, 0},
        {{.field_id = 82, .value_type = NVML_VALUE_U32, .value = {.as_u32 = 95}}, 0, 95},
        {{.field_id = 82, .value_type = NVML_VALUE_U32, .value = {.as_u32 = 151}}, NVML_RC_IMPLAUSIBLE, 0},
        {{.field_id = 186, .value_type = NVML_VALUE_U32, .value = {.as_u32 = 700000}}, 0, 700000},
        {{.field_id = 186, .value_type = NVML_VALUE_U32, .value = {.as_u32 = 10000001}}, NVML_RC_IMPLAUSIBLE, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t number = 0;
        int rc = nvml_field_i64(&rows[i].given, &number);
        if (rc != rows[i].rc || number != rows[i].number)
            fail_msg("row %zu: rc %d, number %lld", i, rc, (long long)number);
        uint64_t positive = 0;
        int wanted = rc == 0 && number < 0 ? NVML_RC_IMPLAUSIBLE : rc;
        assert_int_equal(nvml_field_u64(&rows[i].given, &positive), wanted);
    }
}

static void test_a_failed_field_call_fails_every_field(void **state)
{
    (void)state;
    struct fake *f;
    struct nvml *n = start(&f);
    struct nvml_field_value values[] = {{.field_id = 82, .rc = 0, .value = {.as_u32 = 99}}, {.field_id = 83}};
    f->rules[0].symbol = "nvmlDeviceGetFieldValues";
    f->rules[0].rc = NVML_RC_GPU_IS_LOST;
    assert_int_equal(nvml_read_fields(n, fake_device(), values, 2), NVML_RC_GPU_IS_LOST);
    uint64_t number = 12345;
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(nvml_field_u64(&values[i], &number), NVML_RC_GPU_IS_LOST);
    assert_int_equal(number, 12345);
    assert_int_equal(values[0].field_id, 82);
    struct nvml_field_value many[257] = {{0}};
    assert_int_equal(nvml_read_fields(n, fake_device(), many, ARRAY_LEN(many)), NVML_RC_INVALID_ARGUMENT);
    assert_int_equal(many[256].rc, NVML_RC_INVALID_ARGUMENT);
    nvml_close(n);
}

static void test_counters_of_all_ones_are_absent(void **state)
{
    (void)state;
    struct fake *f;
    struct nvml *n = start(&f);
    uint64_t value = 12345;
    f->big = NVML_NONE_U64;
    assert_int_equal(nvml_read_energy(n, fake_device(), &value), NVML_RC_NOT_SUPPORTED);
    assert_int_equal(nvml_read_ecc(n, fake_device(), 0, 0, &value), NVML_RC_NOT_SUPPORTED);
    assert_int_equal(value, 12345);
    f->big = 0; /* zero is a value */
    assert_int_equal(nvml_read_energy(n, fake_device(), &value), 0);
    assert_int_equal(value, 0);
    nvml_close(n);
}

static void test_energy_falls_back_on_the_field_only_without_the_function(void **state)
{
    (void)state;
    struct fake *f;
    struct nvml *n = fake_start("ancient", NULL, &f);
    uint64_t mj = 0;
    f->field = (struct nvml_field_value){.value_type = NVML_VALUE_U64, .value = {.as_u64 = 123456789}};
    assert_int_equal(nvml_read_energy(n, fake_device(), &mj), 0);
    assert_int_equal(mj, 123456789);
    f->field.rc = NVML_RC_NOT_SUPPORTED;
    assert_int_equal(nvml_read_energy(n, fake_device(), &mj), NVML_RC_NOT_SUPPORTED);
    nvml_close(n);
}

static void test_modes_are_yes_or_no(void **state)
{
    (void)state;
    struct fake *f;
    struct nvml *n = start(&f);
    struct nvml_mig_mode mode = {0};
    f->number = 0;
    f->second = 1;
    assert_int_equal(nvml_read_mig_mode(n, fake_device(), &mode), 0);
    assert_false(mode.is_on);
    assert_true(mode.is_pending_on);
    f->second = 2;
    assert_int_equal(nvml_read_mig_mode(n, fake_device(), &mode), NVML_RC_IMPLAUSIBLE);
    bool is_on = true, is_pending_on = true;
    f->second = 0;
    assert_int_equal(nvml_read_ecc_mode(n, fake_device(), &is_on, &is_pending_on), 0);
    assert_false(is_on || is_pending_on);
    nvml_close(n);
}

static void test_remapped_rows_are_read(void **state)
{
    (void)state;
    struct fake *f;
    struct nvml *n = start(&f);
    f->number = 4;
    f->second = 2;
    struct nvml_remapped_rows rows = {0};
    assert_int_equal(nvml_read_remapped_rows(n, fake_device(), &rows), 0);
    assert_int_equal(rows.correctable, 4);
    assert_int_equal(rows.uncorrectable, 2);
    assert_true(rows.is_pending);
    assert_false(rows.is_failed);
    nvml_close(n);
}

static void test_samples_none_newer_is_an_empty_set(void **state)
{
    (void)state;
    struct fake *f;
    struct nvml *n = start(&f);
    struct nvml_sample buffer[120];
    struct nvml_samples samples = {.samples = buffer, .capacity = ARRAY_LEN(buffer)};
    f->samples_len = 3;
    f->number = NVML_VALUE_U32;
    assert_int_equal(nvml_read_samples(n, fake_device(), NVML_SAMPLES_GPU_UTIL, 1000, &samples), 0);
    assert_int_equal(samples.len, 3);
    assert_int_equal(buffer[2].time_us, 1003);
    assert_double_same(nvml_sample_number(samples.value_type, buffer[2].value), 2);
    f->number = 99;
    assert_int_equal(nvml_read_samples(n, fake_device(), 1, 1000, &samples), NVML_RC_IMPLAUSIBLE);
    f->rules[0].symbol = "nvmlDeviceGetSamples";
    f->rules[0].rc = NVML_RC_NOT_FOUND;
    assert_int_equal(nvml_read_samples(n, fake_device(), 1, 1000, &samples), 0);
    assert_int_equal(samples.len, 0);
    nvml_close(n);
}

static void test_sample_values_follow_their_type(void **state)
{
    (void)state;
    assert_double_same(nvml_sample_number(NVML_VALUE_DOUBLE, (union nvml_value){.as_double = 1.5}), 1.5);
    assert_double_same(nvml_sample_number(NVML_VALUE_I32, (union nvml_value){.as_i32 = -2}), -2);
    assert_double_same(nvml_sample_number(NVML_VALUE_U16, (union nvml_value){.as_u64 = 0xffff0003}), 3);
    assert_double_same(nvml_sample_number(NVML_VALUE_U64, (union nvml_value){.as_u64 = 4}), 4);
}

static void test_events_are_registered_as_far_as_supported(void **state)
{
    (void)state;
    struct fake *f;
    struct nvml *n = start(&f);
    struct nvml_event_set *set = NULL;
    assert_int_equal(nvml_events_new(n, &set), 0);
    f->supported_events = NVML_EVENT_XID_CRITICAL | NVML_EVENT_CLOCK;
    uint64_t wanted = NVML_EVENT_XID_CRITICAL | NVML_EVENT_GPU_RECOVERY_ACTION;
    assert_int_equal(nvml_events_register(n, set, fake_device(), wanted), 0);
    assert_int_equal(f->registered_events, NVML_EVENT_XID_CRITICAL);
    assert_int_equal(nvml_events_register(n, set, fake_device(), NVML_EVENT_PSTATE), NVML_RC_NOT_SUPPORTED);
    f->rules[0].symbol = "nvmlEventSetWait_v2";
    f->rules[0].rc = NVML_RC_TIMEOUT;
    struct nvml_event_data event = {.data = 7};
    assert_int_equal(nvml_events_wait(n, set, 0, &event), NVML_RC_TIMEOUT);
    assert_int_equal(event.data, 7);
    nvml_events_free(n, set);
    assert_string_equal(f->last, "nvmlEventSetFree");
    nvml_events_free(n, NULL);
    nvml_close(n);
}

static void test_gpm_metrics_have_their_own_codes_and_bounds(void **state)
{
    (void)state;
    static const struct {
        double given;
        int rc;
        double value;
    } rows[] = {{42.5, 0, 42.5},
                {100.4, 0, 100},
                {100.6, NVML_RC_IMPLAUSIBLE, 0},
                {0, 0, 0},
                {-1, NVML_RC_IMPLAUSIBLE, 0},
                {(double)NAN, NVML_RC_IMPLAUSIBLE, 0}};
    struct fake *f;
    struct nvml *n = start(&f);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct nvml_gpm_metric metrics[] = {{.metric_id = NVML_GPM_SM_UTIL}, {.metric_id = NVML_GPM_FP16_UTIL}};
        f->gpm_value = rows[i].given;
        assert_int_equal(nvml_gpm_read(n, NULL, NULL, metrics, 2), 0);
        assert_int_equal(f->gpm_version, 1);
        assert_int_equal(metrics[0].rc, rows[i].rc);
        assert_int_equal(metrics[0].metric_id, NVML_GPM_SM_UTIL);
        if (!rows[i].rc)
            assert_double_same(metrics[0].value, rows[i].value);
        assert_int_equal(metrics[1].rc, NVML_RC_NOT_SUPPORTED);
    }
    f->gpm_value = 25000; /* throughput has no bound of 100 */
    struct nvml_gpm_metric pcie = {.metric_id = NVML_GPM_PCIE_TX};
    assert_int_equal(nvml_gpm_read(n, NULL, NULL, &pcie, 1), 0);
    assert_int_equal(pcie.rc, 0);
    assert_double_same(pcie.value, 25000);
    nvml_close(n);
}

static void test_a_failed_gpm_call_fails_every_metric(void **state)
{
    (void)state;
    struct fake *f;
    struct nvml *n = start(&f);
    struct nvml_gpm_metric metrics[] = {{.metric_id = NVML_GPM_SM_UTIL, .value = 9}};
    f->rules[0].symbol = "nvmlGpmMetricsGet";
    f->rules[0].rc = NVML_RC_NO_PERMISSION;
    assert_int_equal(nvml_gpm_read(n, NULL, NULL, metrics, 1), NVML_RC_NO_PERMISSION);
    assert_int_equal(metrics[0].rc, NVML_RC_NO_PERMISSION);
    assert_double_same(metrics[0].value, 0);
    struct nvml_gpm_metric many[NVML_GPM_METRICS_MAX + 1] = {{0}};
    assert_int_equal(nvml_gpm_read(n, NULL, NULL, many, ARRAY_LEN(many)), NVML_RC_INVALID_ARGUMENT);
    nvml_close(n);
}

static void test_gpm_samples_name_the_gpu_instance(void **state)
{
    (void)state;
    struct fake *f;
    struct nvml *n = start(&f);
    bool is_supported = false;
    f->number = 1;
    assert_int_equal(nvml_gpm_supported(n, fake_device(), &is_supported), 0);
    assert_true(is_supported);
    struct nvml_gpm_sample *sample = NULL;
    assert_int_equal(nvml_gpm_sample_new(n, &sample), 0);
    assert_int_equal(nvml_gpm_take_mig(n, fake_device(), 9, sample), 0);
    assert_int_equal(f->gpm_gpu_instance, 9);
    assert_int_equal(nvml_gpm_take(n, fake_device(), sample), NVML_RC_FUNCTION_NOT_FOUND);
    nvml_gpm_sample_free(n, sample);
    assert_string_equal(f->last, "nvmlGpmSampleFree");
    nvml_close(n);
}

static void test_fabric_states_are_known_ones(void **state)
{
    (void)state;
    static const struct {
        const char *generation;
        uint32_t state_given, clique;
        int rc;
    } rows[] = {
        {"535", NVML_FABRIC_COMPLETED, 5, 0}, {"610", NVML_FABRIC_COMPLETED, 6, 0}, {"610", 9, 0, NVML_RC_IMPLAUSIBLE}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fake *f;
        struct nvml *n = fake_start(rows[i].generation, NULL, &f);
        f->number = rows[i].state_given;
        struct nvml_fabric_info info = {0};
        assert_int_equal(nvml_read_fabric(n, fake_device(), &info), rows[i].rc);
        assert_int_equal(info.clique_id, rows[i].clique);
        nvml_close(n);
    }
}

static void test_nvlink_bytes_are_both_directions_of_a_wide_counter(void **state)
{
    (void)state;
    static const struct {
        uint32_t type;
        uint64_t count;
        int field_rc, rc;
        uint64_t bytes;
    } rows[] = {
        {NVML_VALUE_U64, 5, 0, 0, 2 * 5 * 1024},
        {NVML_VALUE_U64, 0, 0, 0, 0},
        {NVML_VALUE_U32, 5, 0, NVML_RC_NOT_SUPPORTED, 0}, /* goes round within seconds */
        {NVML_VALUE_U64, NVML_NONE_U64, 0, NVML_RC_NOT_SUPPORTED, 0},
        {NVML_VALUE_U64, UINT64_C(1) << 60, 0, NVML_RC_IMPLAUSIBLE, 0},
        {NVML_VALUE_U64, 5, NVML_RC_NOT_SUPPORTED, NVML_RC_NOT_SUPPORTED, 0},
        {NVML_VALUE_U64, 5, NVML_RC_GPU_IS_LOST, NVML_RC_GPU_IS_LOST, 0},
    };
    struct fake *f;
    struct nvml *n = start(&f);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        f->field = (struct nvml_field_value){.rc = rows[i].field_rc, .value_type = rows[i].type};
        f->field.value.as_u64 = rows[i].count;
        uint64_t bytes = 12345;
        int rc = nvml_read_nvlink_bytes(n, fake_device(), &bytes);
        if (rc != rows[i].rc || bytes != (rc ? 12345 : rows[i].bytes))
            fail_msg("row %zu: rc %d, %llu", i, rc, (unsigned long long)bytes);
    }
    nvml_close(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_are_bounded),
        cmocka_unit_test(test_temperatures_are_bounded),
        cmocka_unit_test(test_utilization_over_a_hundred_is_dropped_not_clamped),
        cmocka_unit_test(test_memory_that_does_not_add_up_is_dropped),
        cmocka_unit_test(test_texts_are_trimmed_and_checked),
        cmocka_unit_test(test_a_null_handle_is_no_device),
        cmocka_unit_test(test_fields_become_numbers_by_their_type),
        cmocka_unit_test(test_a_failed_field_call_fails_every_field),
        cmocka_unit_test(test_counters_of_all_ones_are_absent),
        cmocka_unit_test(test_energy_falls_back_on_the_field_only_without_the_function),
        cmocka_unit_test(test_modes_are_yes_or_no),
        cmocka_unit_test(test_remapped_rows_are_read),
        cmocka_unit_test(test_samples_none_newer_is_an_empty_set),
        cmocka_unit_test(test_sample_values_follow_their_type),
        cmocka_unit_test(test_events_are_registered_as_far_as_supported),
        cmocka_unit_test(test_gpm_metrics_have_their_own_codes_and_bounds),
        cmocka_unit_test(test_a_failed_gpm_call_fails_every_metric),
        cmocka_unit_test(test_gpm_samples_name_the_gpu_instance),
        cmocka_unit_test(test_fabric_states_are_known_ones),
        cmocka_unit_test(test_nvlink_bytes_are_both_directions_of_a_wide_counter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
