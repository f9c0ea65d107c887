/* A fake libnvidia-ml.so.1. FAKE_DRIVER says which generation's symbols it exports: 300 (only the oldest), 470, 535,
 * 610; 0 has no nvmlDeviceGetUUID, so that it is unusable. */
#include "fake.h"

#define EXPORT                     __attribute__((visibility("default")))
#define X(need, name, ret, params) EXPORT ret name params;
NVML_SYMBOLS(X)
#undef X
EXPORT struct fake *fake_state(void);

static struct fake state;

struct fake *fake_state(void)
{
    return &state;
}

static int enter(const char *symbol)
{
    state.last = symbol;
    state.calls++;
    for (size_t i = 0; i < FAKE_RULES_MAX; i++)
        if (state.rules[i].symbol && strcmp(state.rules[i].symbol, symbol) == 0)
            return state.rules[i].rc;
    return NVML_RC_SUCCESS;
}
#define ENTER()                                                                                                        \
    do {                                                                                                               \
        int rc_ = enter(__func__);                                                                                     \
        if (rc_ != NVML_RC_SUCCESS)                                                                                    \
            return rc_;                                                                                                \
    } while (0)

static int give_text(char *out, uint32_t size, const char *text)
{
    if (strlen(text) >= size)
        return NVML_RC_INSUFFICIENT_SIZE;
    memcpy(out, text, strlen(text) + 1);
    return NVML_RC_SUCCESS;
}

int nvmlInit_v2(void)
{
    state.init_calls++;
    ENTER();
    return NVML_RC_SUCCESS;
}

int nvmlShutdown(void)
{
    state.shutdown_calls++;
    ENTER();
    return NVML_RC_SUCCESS;
}

const char *nvmlErrorString(int rc)
{
    (void)rc;
    return "an error";
}

int nvmlSystemGetDriverVersion(char *text, uint32_t size)
{
    ENTER();
    return give_text(text, size, state.driver_version);
}

int nvmlSystemGetNVMLVersion(char *text, uint32_t size)
{
    ENTER();
    return give_text(text, size, "12.535.261.03");
}

int nvmlDeviceGetCount_v2(uint32_t *n)
{
    ENTER();
    *n = state.number;
    return NVML_RC_SUCCESS;
}

static int give_handle(struct nvml_device **device)
{
    static int handle;
    *device = state.gives_null_handle ? NULL : (struct nvml_device *)(void *)&handle;
    return NVML_RC_SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(uint32_t index, struct nvml_device **device)
{
    ENTER();
    (void)index;
    return give_handle(device);
}

#if FAKE_DRIVER >= 470
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, struct nvml_device **device)
#else
int nvmlDeviceGetHandleByPciBusId(const char *bus_id, struct nvml_device **device)
#endif
{
    ENTER();
    (void)bus_id;
    return give_handle(device);
}

#define GIVE_TEXT(name)                                                                                                \
    int name(struct nvml_device *device, char *text, uint32_t size)                                                    \
    {                                                                                                                  \
        ENTER();                                                                                                       \
        (void)device;                                                                                                  \
        return give_text(text, size, state.text);                                                                      \
    }
#if FAKE_DRIVER > 0
GIVE_TEXT(nvmlDeviceGetUUID)
#endif
GIVE_TEXT(nvmlDeviceGetName)
GIVE_TEXT(nvmlDeviceGetSerial)

#define GIVE_NUMBER(name)                                                                                              \
    int name(struct nvml_device *device, uint32_t *value)                                                              \
    {                                                                                                                  \
        ENTER();                                                                                                       \
        (void)device;                                                                                                  \
        *value = state.number;                                                                                         \
        return NVML_RC_SUCCESS;                                                                                        \
    }
GIVE_NUMBER(nvmlDeviceGetMinorNumber)
GIVE_NUMBER(nvmlDeviceGetArchitecture)
GIVE_NUMBER(nvmlDeviceGetFanSpeed)
GIVE_NUMBER(nvmlDeviceGetPowerUsage)
GIVE_NUMBER(nvmlDeviceGetPowerManagementLimit)
GIVE_NUMBER(nvmlDeviceGetCurrPcieLinkGeneration)
GIVE_NUMBER(nvmlDeviceGetCurrPcieLinkWidth)
GIVE_NUMBER(nvmlDeviceGetGpuInstanceId)
GIVE_NUMBER(nvmlDeviceGetComputeInstanceId)
GIVE_NUMBER(nvmlDeviceGetMaxMigDeviceCount)
GIVE_NUMBER(nvmlDeviceIsMigDeviceHandle)
#if FAKE_DRIVER >= 470
GIVE_NUMBER(nvmlDeviceGetPcieReplayCounter)
GIVE_NUMBER(nvmlDeviceGetEnforcedPowerLimit)
#endif

#define GIVE_TWO(name)                                                                                                 \
    int name(struct nvml_device *device, uint32_t *first, uint32_t *second)                                            \
    {                                                                                                                  \
        ENTER();                                                                                                       \
        (void)device;                                                                                                  \
        *first = state.number;                                                                                         \
        *second = state.second;                                                                                        \
        return NVML_RC_SUCCESS;                                                                                        \
    }
GIVE_TWO(nvmlDeviceGetEncoderUtilization)
GIVE_TWO(nvmlDeviceGetDecoderUtilization)
GIVE_TWO(nvmlDeviceGetMigMode)
GIVE_TWO(nvmlDeviceGetEccMode)

#define GIVE_BIG(name)                                                                                                 \
    int name(struct nvml_device *device, uint64_t *value)                                                              \
    {                                                                                                                  \
        ENTER();                                                                                                       \
        (void)device;                                                                                                  \
        *value = state.big;                                                                                            \
        return NVML_RC_SUCCESS;                                                                                        \
    }
GIVE_BIG(nvmlDeviceGetCurrentClocksThrottleReasons)
#if FAKE_DRIVER >= 470
GIVE_BIG(nvmlDeviceGetTotalEnergyConsumption)
#endif
#if FAKE_DRIVER >= 535
GIVE_BIG(nvmlDeviceGetCurrentClocksEventReasons)
#endif

#if FAKE_DRIVER >= 470
int nvmlDeviceGetPciInfo_v3(struct nvml_device *device, struct nvml_pci_info *pci)
{
    ENTER();
    (void)device;
    *pci = state.pci;
    return NVML_RC_SUCCESS;
}
#else
/* The oldest ABI writes 32 bytes: no subsystem, no long bus id. */
int nvmlDeviceGetPciInfo(struct nvml_device *device, struct nvml_pci_info *pci)
{
    ENTER();
    (void)device;
    memcpy(pci, &state.pci, offsetof(struct nvml_pci_info, pci_subsystem_id));
    return NVML_RC_SUCCESS;
}
#endif

int nvmlDeviceGetMemoryInfo(struct nvml_device *device, struct nvml_memory *memory)
{
    ENTER();
    (void)device;
    *memory = state.memory;
    return NVML_RC_SUCCESS;
}

int nvmlDeviceGetBAR1MemoryInfo(struct nvml_device *device, struct nvml_memory *memory)
{
    ENTER();
    (void)device;
    *memory = state.memory;
    return NVML_RC_SUCCESS;
}

#if FAKE_DRIVER >= 535
int nvmlDeviceGetMemoryInfo_v2(struct nvml_device *device, struct nvml_memory_v2 *memory)
{
    ENTER();
    (void)device;
    if (memory->version != 0x02000028)
        return NVML_RC_ARGUMENT_VERSION_MISMATCH;
    *memory = state.memory_v2;
    return NVML_RC_SUCCESS;
}
#endif

int nvmlDeviceGetUtilizationRates(struct nvml_device *device, struct nvml_utilization *utilization)
{
    ENTER();
    (void)device;
    *utilization = state.utilization;
    return NVML_RC_SUCCESS;
}

int nvmlDeviceGetSamples(struct nvml_device *device, uint32_t kind, uint64_t since_us, uint32_t *value_type,
                         uint32_t *n, struct nvml_sample *samples)
{
    ENTER();
    (void)device, (void)kind;
    *value_type = state.number;
    for (uint32_t i = 0; i < state.samples_len && i < *n; i++)
        samples[i] = (struct nvml_sample){since_us + 1 + i, {.as_u32 = i}};
    *n = state.samples_len;
    return NVML_RC_SUCCESS;
}

int nvmlDeviceGetTemperature(struct nvml_device *device, uint32_t sensor, uint32_t *celsius)
{
    ENTER();
    (void)device;
    if (sensor != NVML_SENSOR_GPU)
        return NVML_RC_INVALID_ARGUMENT;
    *celsius = (uint32_t)state.celsius;
    return NVML_RC_SUCCESS;
}

#if FAKE_DRIVER >= 610
int nvmlDeviceGetTemperatureV(struct nvml_device *device, struct nvml_temperature *temperature)
{
    ENTER();
    (void)device;
    if (temperature->version != 0x0100000c)
        return NVML_RC_ARGUMENT_VERSION_MISMATCH;
    temperature->celsius = state.celsius;
    return NVML_RC_SUCCESS;
}
#endif

int nvmlDeviceGetClockInfo(struct nvml_device *device, uint32_t clock, uint32_t *mhz)
{
    ENTER();
    (void)device;
    *mhz = state.number + clock;
    return NVML_RC_SUCCESS;
}

int nvmlDeviceGetTotalEccErrors(struct nvml_device *device, uint32_t error, uint32_t counter, uint64_t *count)
{
    ENTER();
    (void)device, (void)error, (void)counter;
    *count = state.big;
    return NVML_RC_SUCCESS;
}

#if FAKE_DRIVER >= 470
int nvmlDeviceGetRemappedRows(struct nvml_device *device, uint32_t *correctable, uint32_t *uncorrectable,
                              uint32_t *is_pending, uint32_t *is_failed)
{
    ENTER();
    (void)device;
    *correctable = state.number;
    *uncorrectable = state.second;
    *is_pending = 1;
    *is_failed = 0;
    return NVML_RC_SUCCESS;
}
#endif

int nvmlDeviceGetFieldValues(struct nvml_device *device, int32_t n, struct nvml_field_value *values)
{
    ENTER();
    (void)device;
    for (int32_t i = 0; i < n; i++) {
        uint32_t id = values[i].field_id, scope = values[i].scope_id;
        values[i] = state.field;
        values[i].field_id = id;
        values[i].scope_id = scope;
    }
    return NVML_RC_SUCCESS;
}

/* ---- processes: pid 1000 + i, (i + 1) GiB, instance ids 7 and 1 ---- */

static int list_len(uint32_t *n)
{
    uint32_t capacity = *n;
    *n = state.processes_len;
    state.processes_len += state.processes_grow;
    return *n > capacity ? (int)NVML_RC_INSUFFICIENT_SIZE : (int)NVML_RC_SUCCESS;
}

static uint64_t bytes_of(uint32_t i)
{
    return (uint64_t)(i + 1) << 30;
}

int nvmlDeviceGetComputeRunningProcesses(struct nvml_device *device, uint32_t *n, struct nvml_process_v1 *processes)
{
    ENTER();
    (void)device;
    int rc = list_len(n);
    for (uint32_t i = 0; i < *n && rc == NVML_RC_SUCCESS; i++)
        processes[i] = (struct nvml_process_v1){1000 + i, bytes_of(i)};
    return rc;
}

#if FAKE_DRIVER >= 470
static int fill_v2(uint32_t *n, struct nvml_process *processes)
{
    int rc = list_len(n);
    for (uint32_t i = 0; i < *n && rc == NVML_RC_SUCCESS; i++)
        processes[i] = (struct nvml_process){1000 + i, bytes_of(i), 7, 1};
    return rc;
}

int nvmlDeviceGetComputeRunningProcesses_v2(struct nvml_device *device, uint32_t *n, struct nvml_process *processes)
{
    ENTER();
    (void)device;
    return fill_v2(n, processes);
}

int nvmlDeviceGetGraphicsRunningProcesses_v2(struct nvml_device *device, uint32_t *n, struct nvml_process *processes)
{
    ENTER();
    (void)device;
    return fill_v2(n, processes);
}
#endif

#if FAKE_DRIVER >= 535
/* What drivers 535.43 to 535.85 write. */
struct wide_process {
    struct nvml_process process;
    uint64_t protected_bytes;
};

int nvmlDeviceGetComputeRunningProcesses_v3(struct nvml_device *device, uint32_t *n, struct nvml_process *processes)
{
    ENTER();
    (void)device;
    if (!state.has_wide_processes)
        return fill_v2(n, processes);
    int rc = list_len(n);
    struct wide_process *wide = (struct wide_process *)(void *)processes;
    for (uint32_t i = 0; i < *n && rc == NVML_RC_SUCCESS; i++)
        wide[i] = (struct wide_process){{1000 + i, bytes_of(i), 7, 1}, NVML_NONE_U64};
    return rc;
}

int nvmlDeviceGetMPSComputeRunningProcesses_v3(struct nvml_device *device, uint32_t *n, struct nvml_process *processes)
{
    ENTER();
    (void)device;
    return fill_v2(n, processes);
}
#endif

int nvmlDeviceGetProcessUtilization(struct nvml_device *device, struct nvml_process_utilization *samples, uint32_t *n,
                                    uint64_t since_us)
{
    ENTER();
    (void)device, (void)since_us;
    uint32_t capacity = *n;
    *n = state.utilizations_len;
    if (*n > capacity)
        return NVML_RC_INSUFFICIENT_SIZE;
    memcpy(samples, state.utilizations, *n * sizeof(*samples));
    return NVML_RC_SUCCESS;
}

/* ---- events, MIG, GPM ---- */

int nvmlEventSetCreate(struct nvml_event_set **set)
{
    ENTER();
    static int handle;
    *set = (struct nvml_event_set *)(void *)&handle;
    return NVML_RC_SUCCESS;
}

int nvmlEventSetFree(struct nvml_event_set *set)
{
    ENTER();
    (void)set;
    return NVML_RC_SUCCESS;
}

int nvmlDeviceGetSupportedEventTypes(struct nvml_device *device, uint64_t *types)
{
    ENTER();
    (void)device;
    *types = state.supported_events;
    return NVML_RC_SUCCESS;
}

int nvmlDeviceRegisterEvents(struct nvml_device *device, uint64_t types, struct nvml_event_set *set)
{
    ENTER();
    (void)device, (void)set;
    if (types & ~state.supported_events)
        return NVML_RC_NOT_SUPPORTED;
    state.registered_events = types;
    return NVML_RC_SUCCESS;
}

#if FAKE_DRIVER >= 470
int nvmlEventSetWait_v2(struct nvml_event_set *set, struct nvml_event_data *data, uint32_t timeout_ms)
{
    ENTER();
    (void)set, (void)timeout_ms;
    *data = state.event;
    return NVML_RC_SUCCESS;
}
#else
int nvmlEventSetWait(struct nvml_event_set *set, struct nvml_event_data *data, uint32_t timeout_ms)
{
    ENTER();
    (void)set, (void)timeout_ms;
    memcpy(data, &state.event, offsetof(struct nvml_event_data, gpu_instance_id));
    return NVML_RC_SUCCESS;
}
#endif

#if FAKE_DRIVER >= 470
int nvmlDeviceGetMigDeviceHandleByIndex(struct nvml_device *device, uint32_t index, struct nvml_device **mig)
{
    ENTER();
    (void)device;
    if (index == 1)
        return NVML_RC_NOT_FOUND; /* a hole */
    return give_handle(mig);
}
#endif

#if FAKE_DRIVER >= 535
int nvmlGpmQueryDeviceSupport(struct nvml_device *device, struct nvml_gpm_support *support)
{
    ENTER();
    (void)device;
    if (support->version != 1)
        return NVML_RC_ARGUMENT_VERSION_MISMATCH;
    support->is_supported = state.number;
    return NVML_RC_SUCCESS;
}

int nvmlGpmSampleAlloc(struct nvml_gpm_sample **sample)
{
    ENTER();
    static int handle;
    *sample = (struct nvml_gpm_sample *)(void *)&handle;
    return NVML_RC_SUCCESS;
}

int nvmlGpmSampleFree(struct nvml_gpm_sample *sample)
{
    ENTER();
    (void)sample;
    return NVML_RC_SUCCESS;
}

int nvmlGpmMigSampleGet(struct nvml_device *device, uint32_t gpu_instance_id, struct nvml_gpm_sample *sample)
{
    ENTER();
    (void)device, (void)sample;
    state.gpm_gpu_instance = gpu_instance_id;
    return NVML_RC_SUCCESS;
}

/* As newer libraries may: touches the whole of an array of 477 elements, whatever was asked for. */
int nvmlGpmMetricsGet(struct nvml_gpm_metrics *metrics)
{
    ENTER();
    state.gpm_version = metrics->version;
    for (uint32_t i = 0; i < 477; i++) {
        struct nvml_gpm_metric *m = &metrics->metrics[i];
        bool is_known = i < metrics->metrics_len && m->metric_id != NVML_GPM_FP16_UTIL;
        m->rc = is_known ? (int32_t)NVML_RC_SUCCESS : (int32_t)NVML_RC_NOT_SUPPORTED;
        m->value = is_known ? state.gpm_value : 0;
    }
    return NVML_RC_SUCCESS;
}

int nvmlDeviceGetGpuFabricInfo(struct nvml_device *device, struct nvml_fabric_info_v1 *info)
{
    ENTER();
    (void)device;
    *info = (struct nvml_fabric_info_v1){.cluster_uuid = {0xab}, .clique_id = 5, .state = (uint8_t)state.number};
    return NVML_RC_SUCCESS;
}
#endif

#if FAKE_DRIVER >= 610
int nvmlDeviceGetGpuFabricInfoV(struct nvml_device *device, struct nvml_fabric_info *info)
{
    ENTER();
    (void)device;
    if (info->version != 0x02000024)
        return NVML_RC_ARGUMENT_VERSION_MISMATCH;
    info->clique_id = 6;
    info->state = (uint8_t)state.number;
    return NVML_RC_SUCCESS;
}
#endif
