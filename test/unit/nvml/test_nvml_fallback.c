/* Which symbol answers, by driver generation, and what is lost with an old one. */
#include "fake.h"

static const char *const generations[] = {"ancient", "470", "535", "610"};

static void fail_with(struct fake *f, const char *symbol, int rc)
{
    for (size_t i = 0; i < FAKE_RULES_MAX; i++) {
        if (f->rules[i].symbol && strcmp(f->rules[i].symbol, symbol) != 0)
            continue;
        f->rules[i].symbol = symbol;
        f->rules[i].rc = rc;
        return;
    }
    fail_msg("too many rules");
}

/* What each reading calls last on each generation. NULL: nothing, the value is absent. */
static const struct {
    const char *what;
    const char *symbol[ARRAY_LEN(generations)];
} choices[] = {
    {"memory",
     {"nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMemoryInfo_v2",
      "nvmlDeviceGetMemoryInfo_v2"}},
    {"temperature",
     {"nvmlDeviceGetTemperature", "nvmlDeviceGetTemperature", "nvmlDeviceGetTemperature", "nvmlDeviceGetTemperatureV"}},
    {"clock reasons",
     {"nvmlDeviceGetCurrentClocksThrottleReasons", "nvmlDeviceGetCurrentClocksThrottleReasons",
      "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksEventReasons"}},
    {"pci", {"nvmlDeviceGetPciInfo", "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v3"}},
    {"power limit",
     {"nvmlDeviceGetPowerManagementLimit", "nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetEnforcedPowerLimit",
      "nvmlDeviceGetEnforcedPowerLimit"}},
    {"energy",
     {"nvmlDeviceGetFieldValues", "nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetTotalEnergyConsumption",
      "nvmlDeviceGetTotalEnergyConsumption"}},
    {"pcie replays",
     {"nvmlDeviceGetFieldValues", "nvmlDeviceGetPcieReplayCounter", "nvmlDeviceGetPcieReplayCounter",
      "nvmlDeviceGetPcieReplayCounter"}},
    {"remapped rows",
     {"nvmlDeviceGetFieldValues", "nvmlDeviceGetRemappedRows", "nvmlDeviceGetRemappedRows",
      "nvmlDeviceGetRemappedRows"}},
    {"event", {"nvmlEventSetWait", "nvmlEventSetWait_v2", "nvmlEventSetWait_v2", "nvmlEventSetWait_v2"}},
    {"bus id",
     {"nvmlDeviceGetHandleByPciBusId", "nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetHandleByPciBusId_v2",
      "nvmlDeviceGetHandleByPciBusId_v2"}},
    {"compute processes",
     {"nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetComputeRunningProcesses_v2",
      "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v3"}},
    {"graphics processes",
     {NULL, "nvmlDeviceGetGraphicsRunningProcesses_v2", "nvmlDeviceGetGraphicsRunningProcesses_v2",
      "nvmlDeviceGetGraphicsRunningProcesses_v2"}},
    {"MPS processes",
     {NULL, NULL, "nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceGetMPSComputeRunningProcesses_v3"}},
    {"fabric", {NULL, NULL, "nvmlDeviceGetGpuFabricInfo", "nvmlDeviceGetGpuFabricInfoV"}},
    {"MIG device",
     {NULL, "nvmlDeviceGetMigDeviceHandleByIndex", "nvmlDeviceGetMigDeviceHandleByIndex",
      "nvmlDeviceGetMigDeviceHandleByIndex"}},
    {"GPM", {NULL, NULL, "nvmlGpmQueryDeviceSupport", "nvmlGpmQueryDeviceSupport"}},
    {"JPEG engine", {NULL, NULL, NULL, NULL}},
};

static int read_processes(struct nvml *n, enum nvml_process_kind kind)
{
    struct nvml_process_list list = {0};
    int rc = nvml_read_processes(n, fake_device(), kind, &list);
    vec_fini(&list);
    return rc;
}

static int read_second_half(struct nvml *n, const char *what)
{
    struct nvml_device *d = fake_device(), *found = NULL;
    bool is_supported = false;
    if (strcmp(what, "event") == 0)
        return nvml_events_wait(n, NULL, 0, &(struct nvml_event_data){0});
    if (strcmp(what, "bus id") == 0)
        return nvml_find_by_bus_id(n, "0000:3b:00.0", &found);
    if (strcmp(what, "compute processes") == 0)
        return read_processes(n, NVML_PROCESS_COMPUTE);
    if (strcmp(what, "graphics processes") == 0)
        return read_processes(n, NVML_PROCESS_GRAPHICS);
    if (strcmp(what, "MPS processes") == 0)
        return read_processes(n, NVML_PROCESS_MPS);
    if (strcmp(what, "fabric") == 0)
        return nvml_read_fabric(n, d, &(struct nvml_fabric_info){0});
    if (strcmp(what, "MIG device") == 0)
        return nvml_find_mig(n, d, 0, &found);
    if (strcmp(what, "GPM") == 0)
        return nvml_gpm_supported(n, d, &is_supported);
    if (strcmp(what, "JPEG engine") == 0)
        return nvml_read_engine(n, d, NVML_ENGINE_JPEG, &(uint32_t){0});
    fail_msg("%s?", what);
    return -1;
}

static int read_by_name(struct nvml *n, const char *what)
{
    struct nvml_device *d = fake_device();
    if (strcmp(what, "memory") == 0)
        return nvml_read_memory(n, d, &(struct nvml_memory_reading){0});
    if (strcmp(what, "temperature") == 0)
        return nvml_read_temperature(n, d, &(int32_t){0});
    if (strcmp(what, "clock reasons") == 0)
        return nvml_read_clock_reasons(n, d, &(uint64_t){0});
    if (strcmp(what, "pci") == 0)
        return nvml_read_pci(n, d, &(struct nvml_pci_info){0});
    if (strcmp(what, "power limit") == 0)
        return nvml_read_power_limit(n, d, &(uint32_t){0});
    if (strcmp(what, "energy") == 0)
        return nvml_read_energy(n, d, &(uint64_t){0});
    if (strcmp(what, "pcie replays") == 0)
        return nvml_read_pcie_replays(n, d, &(uint32_t){0});
    if (strcmp(what, "remapped rows") == 0)
        return nvml_read_remapped_rows(n, d, &(struct nvml_remapped_rows){0});
    return read_second_half(n, what);
}

static void set_good_answers(struct fake *f)
{
    f->number = 1;
    f->celsius = 40;
    f->memory = (struct nvml_memory){100, 60, 40};
    f->memory_v2 = (struct nvml_memory_v2){0, 100, 10, 60, 30};
    (void)snprintf(f->pci.bus_id, sizeof(f->pci.bus_id), "00000000:3B:00.0");
    f->field = (struct nvml_field_value){.value_type = NVML_VALUE_U32, .value = {.as_u32 = 1}};
}

static void test_each_generation_answers_with_its_newest_symbol(void **state)
{
    (void)state;
    for (size_t g = 0; g < ARRAY_LEN(generations); g++) {
        struct fake *f;
        struct nvml *n = fake_start(generations[g], NULL, &f);
        set_good_answers(f);
        for (size_t i = 0; i < ARRAY_LEN(choices); i++) {
            const char *wanted = choices[i].symbol[g];
            f->last = "nothing";
            int rc = read_by_name(n, choices[i].what);
            int wanted_rc = wanted ? NVML_RC_SUCCESS : NVML_RC_FUNCTION_NOT_FOUND;
            if (rc != wanted_rc || strcmp(f->last, wanted ? wanted : "nothing") != 0)
                fail_msg("%s, %s: rc %d from %s", generations[g], choices[i].what, rc, f->last);
        }
        nvml_close(n);
    }
}

static void test_memory_of_an_old_library_has_no_reserve(void **state)
{
    (void)state;
    struct fake *f;
    struct nvml *n = fake_start("470", NULL, &f);
    set_good_answers(f);
    struct nvml_memory_reading m = {.has_reserved = true};
    assert_int_equal(nvml_read_memory(n, fake_device(), &m), 0);
    assert_int_equal(m.total_bytes, 100);
    assert_int_equal(m.free_bytes, 60);
    assert_int_equal(m.used_bytes, 40);
    assert_false(m.has_reserved);
    nvml_close(n);
}

static void test_memory_with_reserve_adds_up(void **state)
{
    (void)state;
    struct fake *f;
    struct nvml *n = fake_start("535", NULL, &f);
    set_good_answers(f);
    struct nvml_memory_reading m = {0};
    assert_int_equal(nvml_read_memory(n, fake_device(), &m), 0);
    assert_true(m.has_reserved);
    assert_int_equal(m.used_bytes, 30);
    assert_int_equal(m.used_bytes + m.free_bytes + m.reserved_bytes, m.total_bytes);
    nvml_close(n);
}

static void test_a_refused_struct_version_falls_back(void **state)
{
    (void)state;
    static const int codes[] = {NVML_RC_ARGUMENT_VERSION_MISMATCH, NVML_RC_NOT_SUPPORTED, NVML_RC_FUNCTION_NOT_FOUND,
                                NVML_RC_DEPRECATED};
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        struct fake *f;
        struct nvml *n = fake_start("610", NULL, &f);
        set_good_answers(f);
        fail_with(f, "nvmlDeviceGetMemoryInfo_v2", codes[i]);
        fail_with(f, "nvmlDeviceGetTemperatureV", codes[i]);
        struct nvml_memory_reading m = {0};
        int32_t celsius = 0;
        assert_int_equal(nvml_read_memory(n, fake_device(), &m), 0);
        assert_int_equal(m.used_bytes, 40);
        assert_int_equal(nvml_read_temperature(n, fake_device(), &celsius), 0);
        assert_int_equal(celsius, 40);
        nvml_close(n);
    }
}

static void test_a_failure_does_not_fall_back(void **state)
{
    (void)state;
    static const int codes[] = {NVML_RC_GPU_IS_LOST, NVML_RC_NO_PERMISSION, NVML_RC_UNKNOWN};
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        struct fake *f;
        struct nvml *n = fake_start("610", NULL, &f);
        set_good_answers(f);
        fail_with(f, "nvmlDeviceGetMemoryInfo_v2", codes[i]);
        fail_with(f, "nvmlDeviceGetTemperatureV", codes[i]);
        struct nvml_memory_reading m = {.total_bytes = 7};
        int32_t celsius = 7;
        assert_int_equal(nvml_read_memory(n, fake_device(), &m), codes[i]);
        assert_int_equal(nvml_read_temperature(n, fake_device(), &celsius), codes[i]);
        assert_int_equal(m.total_bytes, 7);
        assert_int_equal(celsius, 7);
        nvml_close(n);
    }
}

static void test_unified_memory_is_absent_and_not_zero(void **state)
{
    (void)state;
    struct fake *f;
    struct nvml *n = fake_start("610", NULL, &f);
    struct nvml_memory_reading m = {.total_bytes = 7};
    assert_int_equal(nvml_read_memory(n, fake_device(), &m), NVML_RC_NOT_SUPPORTED); /* success with total 0 */
    fail_with(f, "nvmlDeviceGetMemoryInfo_v2", NVML_RC_NOT_SUPPORTED);
    fail_with(f, "nvmlDeviceGetMemoryInfo", NVML_RC_NOT_SUPPORTED);
    assert_int_equal(nvml_read_memory(n, fake_device(), &m), NVML_RC_NOT_SUPPORTED);
    assert_int_equal(m.total_bytes, 7);
    nvml_close(n);
}

static void test_a_short_bus_id_is_completed(void **state)
{
    (void)state;
    struct fake *f;
    struct nvml *n = fake_start("ancient", NULL, &f);
    f->pci = (struct nvml_pci_info){.domain = 8, .bus = 0x3b, .pci_device_id = 0x20b010de, .pci_subsystem_id = 99};
    memcpy(f->pci.bus_id_legacy, "0008:3B:00.1", 13);
    struct nvml_pci_info pci = {0};
    assert_int_equal(nvml_read_pci(n, fake_device(), &pci), 0);
    assert_string_equal(pci.bus_id, "00000008:3B:00.1");
    assert_int_equal(pci.pci_device_id, 0x20b010de);
    assert_int_equal(pci.pci_subsystem_id, 0); /* unknown to the old ABI */
    nvml_close(n);
}

static void test_an_old_event_concerns_the_whole_gpu(void **state)
{
    (void)state;
    static const struct {
        const char *generation;
        uint32_t instance;
    } rows[] = {{"ancient", NVML_NONE_U32}, {"535", 3}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fake *f;
        struct nvml *n = fake_start(rows[i].generation, NULL, &f);
        f->event = (struct nvml_event_data){fake_device(), NVML_EVENT_XID_CRITICAL, 79, 3, 3};
        struct nvml_event_data event = {0};
        assert_int_equal(nvml_events_wait(n, NULL, 0, &event), 0);
        assert_int_equal(event.data, 79);
        assert_ptr_equal(event.device, fake_device());
        assert_int_equal(event.gpu_instance_id, rows[i].instance);
        assert_int_equal(event.compute_instance_id, rows[i].instance);
        nvml_close(n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_generation_answers_with_its_newest_symbol),
        cmocka_unit_test(test_memory_of_an_old_library_has_no_reserve),
        cmocka_unit_test(test_memory_with_reserve_adds_up),
        cmocka_unit_test(test_a_refused_struct_version_falls_back),
        cmocka_unit_test(test_a_failure_does_not_fall_back),
        cmocka_unit_test(test_unified_memory_is_absent_and_not_zero),
        cmocka_unit_test(test_a_short_bus_id_is_completed),
        cmocka_unit_test(test_an_old_event_concerns_the_whole_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
