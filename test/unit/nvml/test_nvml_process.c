/* Process lists: generations of the ABI, the fault of drivers 535.43 to 535.85, growth, and what is dropped. */
#include "fake.h"

static void test_the_faulty_drivers_are_known_by_version(void **state)
{
    (void)state;
    static const struct {
        const char *version;
        bool is_faulty;
    } rows[] = {
        {"535.43.02", true},  {"535.54.03", true},  {"535.85.12", true},  {"535.85", true},
        {"535.86.05", false}, {"535.86", false},    {"535.42.99", false}, {"535.104.05", false},
        {"530.54.03", false}, {"545.54.03", false}, {"535", false},       {"", false},
        {"535.x", false},     {".54", false},       {"5350.54", false},   {"610.57.04", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (nvml_driver_breaks_process_v3(rows[i].version) != rows[i].is_faulty)
            fail_msg("%s", rows[i].version);
}

/* pid 1000 + i with (i + 1) GiB, as the fake gives them. */
static void assert_list(const struct nvml_process_list *list, size_t len, uint32_t instance)
{
    assert_int_equal(list->len, len);
    for (size_t i = 0; i < len; i++) {
        assert_int_equal(list->items[i].pid, 1000 + i);
        assert_int_equal(list->items[i].used_bytes, (uint64_t)(i + 1) << 30);
        assert_int_equal(list->items[i].gpu_instance_id, instance);
    }
}

static void test_processes_are_the_same_from_every_generation(void **state)
{
    (void)state;
    static const struct {
        const char *generation;
        uint32_t instance;
    } rows[] = {{"ancient", NVML_NONE_U32}, {"470", 7}, {"535", 7}, {"610", 7}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fake *f;
        struct nvml *n = fake_start(rows[i].generation, NULL, &f);
        f->processes_len = 5;
        struct nvml_process_list list = {0};
        assert_int_equal(nvml_read_processes(n, fake_device(), NVML_PROCESS_COMPUTE, &list), 0);
        assert_list(&list, 5, rows[i].instance);
        f->processes_len = 0; /* a second reading replaces the first */
        assert_int_equal(nvml_read_processes(n, fake_device(), NVML_PROCESS_COMPUTE, &list), 0);
        assert_int_equal(list.len, 0);
        vec_fini(&list);
        nvml_close(n);
    }
}

static void test_faulty_drivers_are_read_through_v2(void **state)
{
    (void)state;
    struct fake *f;
    struct nvml *n = fake_start("535", "535.54.03", &f);
    f->has_wide_processes = true;
    f->processes_len = 64;
    struct nvml_process_list list = {0};
    assert_int_equal(nvml_read_processes(n, fake_device(), NVML_PROCESS_COMPUTE, &list), 0);
    assert_string_equal(f->last, "nvmlDeviceGetComputeRunningProcesses_v2");
    assert_list(&list, 64, 7);
    vec_fini(&list);
    nvml_close(n);
}

static void test_wide_elements_are_noticed_when_the_version_does_not_tell(void **state)
{
    (void)state;
    struct fake *f;
    struct nvml *n = fake_start("535", "unreadable", &f);
    f->has_wide_processes = true;
    f->processes_len = 64; /* as many as the first buffer holds: 32-byte elements must not pass its end */
    struct nvml_process_list list = {0};
    assert_int_equal(nvml_read_processes(n, fake_device(), NVML_PROCESS_COMPUTE, &list), 0);
    assert_list(&list, 64, 7);
    unsigned calls = f->calls;
    assert_int_equal(nvml_read_processes(n, fake_device(), NVML_PROCESS_COMPUTE, &list), 0);
    assert_int_equal(f->calls, calls + 1); /* remembered: _v2 at once */
    vec_fini(&list);
    nvml_close(n);
}

static void test_a_list_longer_than_the_buffer_is_asked_for_again(void **state)
{
    (void)state;
    static const struct {
        uint32_t len, grow;
        int rc;
    } rows[] = {
        {65, 0, NVML_RC_SUCCESS},
        {500, 0, NVML_RC_SUCCESS},
        {100, 20, NVML_RC_SUCCESS},             /* grows between the tries */
        {100, 9000, NVML_RC_INSUFFICIENT_SIZE}, /* past the ceiling in the end */
        {NVML_PROCESSES_MAX + 1, 0, NVML_RC_INSUFFICIENT_SIZE},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fake *f;
        struct nvml *n = fake_start("610", NULL, &f);
        f->processes_len = rows[i].len;
        f->processes_grow = rows[i].grow;
        struct nvml_process_list list = {0};
        assert_int_equal(nvml_read_processes(n, fake_device(), NVML_PROCESS_COMPUTE, &list), rows[i].rc);
        if (rows[i].rc == NVML_RC_SUCCESS)
            assert_list(&list, f->processes_len - rows[i].grow, 7);
        else
            assert_int_equal(list.len, 0);
        vec_fini(&list);
        nvml_close(n);
    }
}

static void test_a_list_survives_a_failed_reading(void **state)
{
    (void)state;
    struct fake *f;
    struct nvml *n = fake_start("610", NULL, &f);
    f->processes_len = 3;
    struct nvml_process_list list = {0};
    assert_int_equal(nvml_read_processes(n, fake_device(), NVML_PROCESS_COMPUTE, &list), 0);
    f->rules[0].symbol = "nvmlDeviceGetComputeRunningProcesses_v3";
    f->rules[0].rc = NVML_RC_NO_PERMISSION;
    assert_int_equal(nvml_read_processes(n, fake_device(), NVML_PROCESS_COMPUTE, &list), NVML_RC_NO_PERMISSION);
    assert_list(&list, 3, 7);
    vec_fini(&list);
    nvml_close(n);
}

static void test_leftovers_in_process_utilization_are_dropped(void **state)
{
    (void)state;
    static const struct nvml_process_utilization samples[] = {
        {100, 5001, 40, 10, 0, 0}, /* good */
        {0, 5001, 40, 10, 0, 0},   /* no process */
        {101, 5000, 40, 10, 0, 0}, /* not newer than asked */
        {102, 5001, 101, 0, 0, 0}, /* impossible: that it was active is all that is known */
        {103, 5001, 0, 101, 0, 0},      {104, 5001, 0, 0, 101, 0},       {105, 5001, 0, 0, 0, 101},
        {UINT32_MAX, 5001, 1, 1, 1, 1}, {106, 6000, 100, 100, 100, 100}, /* good */
    };
    struct fake *f;
    struct nvml *n = fake_start("610", NULL, &f);
    memcpy(f->utilizations, samples, sizeof(samples));
    f->utilizations_len = ARRAY_LEN(samples);
    struct nvml_process_utilization_list list = {0};
    assert_int_equal(nvml_read_process_utilization(n, fake_device(), 5000, &list), 0);
    assert_int_equal(list.len, 6);
    assert_int_equal(list.items[0].pid, 100);
    assert_int_equal(list.items[0].sm, 40);
    for (uint32_t i = 1; i <= 4; i++) {
        assert_int_equal(list.items[i].pid, 101 + i);
        assert_int_equal(list.items[i].sm, NVML_NONE_U32);
        assert_int_equal(list.items[i].decoder, NVML_NONE_U32);
    }
    assert_int_equal(list.items[5].pid, 106);
    assert_int_equal(list.items[5].sm, 100);
    vec_fini(&list);
    nvml_close(n);
}

static void test_nobody_active_is_an_empty_list(void **state)
{
    (void)state;
    struct fake *f;
    struct nvml *n = fake_start("610", NULL, &f);
    f->utilizations[0] = (struct nvml_process_utilization){100, 1, 2, 3, 4, 5};
    f->utilizations_len = 1;
    struct nvml_process_utilization_list list = {0};
    assert_int_equal(nvml_read_process_utilization(n, fake_device(), 0, &list), 0);
    assert_int_equal(list.len, 1);
    f->rules[0].symbol = "nvmlDeviceGetProcessUtilization";
    f->rules[0].rc = NVML_RC_NOT_FOUND;
    assert_int_equal(nvml_read_process_utilization(n, fake_device(), 0, &list), 0);
    assert_int_equal(list.len, 0);
    f->rules[0].rc = NVML_RC_NOT_SUPPORTED; /* with MIG */
    assert_int_equal(nvml_read_process_utilization(n, fake_device(), 0, &list), NVML_RC_NOT_SUPPORTED);
    vec_fini(&list);
    nvml_close(n);
}

static void test_many_utilization_samples_fit(void **state)
{
    (void)state;
    struct fake *f;
    struct nvml *n = fake_start("610", NULL, &f);
    f->utilizations_len = 300;
    for (uint32_t i = 0; i < 300; i++)
        f->utilizations[i] = (struct nvml_process_utilization){1 + i, 10, 1, 1, 0, 0};
    struct nvml_process_utilization_list list = {0};
    assert_int_equal(nvml_read_process_utilization(n, fake_device(), 0, &list), 0);
    assert_int_equal(list.len, 300);
    assert_int_equal(list.items[299].pid, 300);
    vec_fini(&list);
    nvml_close(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_faulty_drivers_are_known_by_version),
        cmocka_unit_test(test_processes_are_the_same_from_every_generation),
        cmocka_unit_test(test_faulty_drivers_are_read_through_v2),
        cmocka_unit_test(test_wide_elements_are_noticed_when_the_version_does_not_tell),
        cmocka_unit_test(test_a_list_longer_than_the_buffer_is_asked_for_again),
        cmocka_unit_test(test_a_list_survives_a_failed_reading),
        cmocka_unit_test(test_leftovers_in_process_utilization_are_dropped),
        cmocka_unit_test(test_nobody_active_is_an_empty_list),
        cmocka_unit_test(test_many_utilization_samples_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
