/* A libnvidia-ml.so.1 for the unit tests of gpu/: answers what the test's table says, at once and without a clock. It
 * judges nothing; what real drivers do is played by the simulation of nvmlsim/. */
#include "fake_nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC visibility push(default)
#define X(need, name, type, parameters) type name parameters;
NVML_SYMBOLS(X)
#undef X
#pragma GCC visibility pop

struct nvml_event_set {
    int unused;
};

struct nvml_gpm_sample {
    const struct nvml_device *device;
    uint32_t gi;
};

static struct fake_nvml *fake(void)
{
    const char *address = getenv("FAKE_NVML");
    return (struct fake_nvml *)(uintptr_t)strtoull(address ? address : "0", NULL, 16);
}

/* Count the call, block in it if so asked, and find its answer: a rule, a lost GPU, or 0. */
static int enter(const char *function, const struct nvml_device *d)
{
    struct fake_nvml *f = fake();
    int gpu = d ? d->gpu : -1;
    atomic_fetch_add(&f->n_calls, 1);
    const char *block_in = f->block_in;
    if (block_in && strcmp(block_in, function) == 0) {
        (void)sem_post(&f->entered);
        while (sem_wait(&f->leave) != 0)
            ;
    }
    for (size_t i = 0; i < f->n_rules; i++)
        if (strcmp(f->rules[i].function, function) == 0 && (f->rules[i].gpu < 0 || f->rules[i].gpu == gpu))
            return f->rules[i].rc;
    return d ? f->gpus[d->gpu].is_lost : 0;
}

#define ENTER(device)                                                                                                  \
    do {                                                                                                               \
        int entered_rc = enter(__func__, device);                                                                      \
        if (entered_rc)                                                                                                \
            return entered_rc;                                                                                         \
    } while (0)
#define GPU(device) (&fake()->gpus[(device)->gpu])
/* Boards answer this, MIG devices do not. */
#define ENTER_BOARD(device)                                                                                            \
    do {                                                                                                               \
        ENTER(device);                                                                                                 \
        if ((device)->mig >= 0)                                                                                        \
            return NVML_RC_NOT_SUPPORTED;                                                                              \
    } while (0)

static int text(char *out, uint32_t size, const char *from)
{
    if (strlen(from) >= size)
        return NVML_RC_INSUFFICIENT_SIZE;
    memcpy(out, from, strlen(from) + 1);
    return 0;
}

int nvmlInit_v2(void)
{
    ENTER(NULL);
    fake()->inits++;
    return fake()->init_rc;
}

int nvmlShutdown(void)
{
    ENTER(NULL);
    fake()->shutdowns++;
    return 0;
}

const char *nvmlErrorString(int rc)
{
    (void)rc;
    return "error";
}

int nvmlSystemGetDriverVersion(char *out, uint32_t size)
{
    return text(out, size, "570.86.15");
}

int nvmlSystemGetNVMLVersion(char *out, uint32_t size)
{
    return text(out, size, "12.570.86.15");
}

int nvmlDeviceGetCount_v2(uint32_t *n)
{
    ENTER(NULL);
    *n = fake()->n_gpus;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(uint32_t index, struct nvml_device **device)
{
    if (index >= fake()->n_gpus)
        return NVML_RC_INVALID_ARGUMENT;
    *device = &fake()->gpus[index].handle;
    return enter(__func__, &(struct nvml_device){.gpu = (int)index, .mig = -1});
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, struct nvml_device **device)
{
    unsigned bus = 0;
    fake()->probes++;
    if (sscanf(bus_id, "%*x:%x", &bus) != 1 || bus >= FAKE_GPUS)
        return NVML_RC_NOT_FOUND;
    *device = &fake()->gpus[bus].handle;
    return enter(__func__, *device);
}

int nvmlDeviceGetUUID(struct nvml_device *device, char *out, uint32_t size)
{
    ENTER(device);
    return text(out, size, device->mig < 0 ? GPU(device)->uuid : GPU(device)->migs[device->mig].uuid);
}

int nvmlDeviceGetName(struct nvml_device *device, char *out, uint32_t size)
{
    ENTER(device);
    return text(out, size, device->mig < 0 ? "NVIDIA Fake 80GB" : GPU(device)->migs[device->mig].name);
}

int nvmlDeviceGetSerial(struct nvml_device *device, char *out, uint32_t size)
{
    ENTER(device);
    return text(out, size, "1234567890");
}

int nvmlDeviceGetMinorNumber(struct nvml_device *device, uint32_t *minor)
{
    ENTER(device);
    *minor = (uint32_t)device->gpu;
    return 0;
}

int nvmlDeviceGetPciInfo_v3(struct nvml_device *device, struct nvml_pci_info *pci)
{
    ENTER(device);
    (void)snprintf(pci->bus_id, sizeof(pci->bus_id), "00000000:%02X:00.0", (unsigned)device->gpu);
    pci->bus = (uint32_t)device->gpu;
    return 0;
}

int nvmlDeviceGetMemoryInfo(struct nvml_device *device, struct nvml_memory *memory)
{
    ENTER(device);
    const struct fake_gpu *g = GPU(device);
    uint64_t used = g->used + g->reserved;
    *memory = (struct nvml_memory){.total_bytes = g->total, .free_bytes = g->total - used, .used_bytes = used};
    return 0;
}

int nvmlDeviceGetMemoryInfo_v2(struct nvml_device *device, struct nvml_memory_v2 *memory)
{
    ENTER(device);
    const struct fake_gpu *g = GPU(device);
    if (fake()->lacks_memory_v2)
        return NVML_RC_FUNCTION_NOT_FOUND;
    if (memory->version != NVML_MEMORY_V2)
        return NVML_RC_ARGUMENT_VERSION_MISMATCH;
    uint64_t used = device->mig < 0 ? g->used : g->migs[device->mig].used;
    memory->total_bytes = device->mig < 0 ? g->total : g->migs[device->mig].total;
    memory->reserved_bytes = device->mig < 0 ? g->reserved : 0;
    memory->used_bytes = used;
    memory->free_bytes = memory->total_bytes - used - memory->reserved_bytes;
    return 0;
}

int nvmlDeviceGetUtilizationRates(struct nvml_device *device, struct nvml_utilization *utilization)
{
    ENTER_BOARD(device);
    if (GPU(device)->is_mig_on)
        return NVML_RC_NOT_SUPPORTED;
    *utilization = (struct nvml_utilization){GPU(device)->utilization, GPU(device)->memory_utilization};
    return 0;
}

/* X(function, number): calls that give one 32-bit number of the board. */
#define NUMBERS(X)                                                                                                     \
    X(nvmlDeviceGetPowerUsage, power_mw)                                                                               \
    X(nvmlDeviceGetEnforcedPowerLimit, limit_mw)                                                                       \
    X(nvmlDeviceGetFanSpeed, fan)                                                                                      \
    X(nvmlDeviceGetCurrPcieLinkGeneration, generation)                                                                 \
    X(nvmlDeviceGetCurrPcieLinkWidth, width)                                                                           \
    X(nvmlDeviceGetMaxPcieLinkGeneration, max_generation)                                                              \
    X(nvmlDeviceGetMaxPcieLinkWidth, max_width)
#define X(function, member)                                                                                            \
    int function(struct nvml_device *device, uint32_t *number)                                                         \
    {                                                                                                                  \
        ENTER_BOARD(device);                                                                                           \
        *number = GPU(device)->member;                                                                                 \
        return 0;                                                                                                      \
    }
NUMBERS(X)
#undef X

int nvmlDeviceGetTemperature(struct nvml_device *device, uint32_t sensor, uint32_t *celsius)
{
    ENTER_BOARD(device);
    (void)sensor;
    *celsius = GPU(device)->celsius;
    return 0;
}

int nvmlDeviceGetEncoderUtilization(struct nvml_device *device, uint32_t *percent, uint32_t *period_us)
{
    ENTER_BOARD(device);
    *percent = GPU(device)->encoder;
    *period_us = 100000;
    return 0;
}

int nvmlDeviceGetDecoderUtilization(struct nvml_device *device, uint32_t *percent, uint32_t *period_us)
{
    ENTER_BOARD(device);
    *percent = GPU(device)->decoder;
    *period_us = 100000;
    return 0;
}

int nvmlDeviceGetTotalEnergyConsumption(struct nvml_device *device, uint64_t *mj)
{
    ENTER_BOARD(device);
    *mj = GPU(device)->energy_mj;
    return 0;
}

int nvmlDeviceGetClockInfo(struct nvml_device *device, uint32_t clock, uint32_t *mhz)
{
    ENTER_BOARD(device);
    *mhz = clock == NVML_CLK_MEM ? GPU(device)->memory_mhz : GPU(device)->sm_mhz;
    return 0;
}

int nvmlDeviceGetCurrentClocksEventReasons(struct nvml_device *device, uint64_t *reasons)
{
    ENTER_BOARD(device);
    *reasons = GPU(device)->reasons;
    return 0;
}

int nvmlDeviceGetPcieThroughput(struct nvml_device *device, uint32_t counter, uint32_t *kb_per_s)
{
    ENTER_BOARD(device);
    fake()->pcie_blocking_calls++;
    *kb_per_s = counter == NVML_PCIE_TX ? GPU(device)->pcie_tx_kb : GPU(device)->pcie_rx_kb;
    return 0;
}

int nvmlDeviceGetTotalEccErrors(struct nvml_device *device, uint32_t error, uint32_t counter, uint64_t *count)
{
    ENTER(device);
    if (device->mig >= 0 && error == NVML_ECC_CORRECTED)
        return NVML_RC_NOT_SUPPORTED;
    uint64_t aggregate = counter == NVML_COUNT_AGGREGATE ? 1000 : 0;
    *count = aggregate + (error == NVML_ECC_CORRECTED ? GPU(device)->corrected : GPU(device)->uncorrected);
    return 0;
}

int nvmlDeviceGetRemappedRows(struct nvml_device *device, uint32_t *correctable, uint32_t *uncorrectable,
                              uint32_t *is_pending, uint32_t *is_failed)
{
    ENTER_BOARD(device);
    *correctable = GPU(device)->remapped[0];
    *uncorrectable = GPU(device)->remapped[1];
    *is_pending = GPU(device)->remapped[2];
    *is_failed = GPU(device)->remapped[3];
    return 0;
}

static void answer_field(const struct fake_gpu *g, struct nvml_field_value *value)
{
    value->rc = NVML_RC_NOT_SUPPORTED;
    for (size_t i = 0; i < g->n_fields; i++) {
        if (g->fields[i].id != value->field_id || g->fields[i].scope != value->scope_id)
            continue;
        value->rc = 0;
        value->value_type = g->fields[i].type;
        value->value.as_u64 = g->fields[i].value;
    }
}

int nvmlDeviceGetFieldValues(struct nvml_device *device, int32_t n, struct nvml_field_value *values)
{
    ENTER_BOARD(device);
    for (int32_t i = 0; i < n; i++)
        answer_field(GPU(device), &values[i]);
    return 0;
}

int nvmlEventSetCreate(struct nvml_event_set **set)
{
    ENTER(NULL);
    *set = calloc(1, sizeof(**set));
    fake()->sets_live++;
    return 0;
}

int nvmlEventSetFree(struct nvml_event_set *set)
{
    ENTER(NULL);
    fake()->sets_live--;
    free(set);
    return 0;
}

int nvmlDeviceGetSupportedEventTypes(struct nvml_device *device, uint64_t *types)
{
    (void)device;
    *types = NVML_EVENT_XID_CRITICAL;
    return 0;
}

int nvmlDeviceRegisterEvents(struct nvml_device *device, uint64_t types, struct nvml_event_set *set)
{
    fake()->registered++;
    ENTER(device);
    (void)types;
    (void)set;
    return device->mig < 0 ? 0 : NVML_RC_INVALID_ARGUMENT;
}

int nvmlEventSetWait_v2(struct nvml_event_set *set, struct nvml_event_data *data, uint32_t timeout_ms)
{
    struct fake_nvml *f = fake();
    ENTER(NULL);
    (void)set;
    if (timeout_ms != 0)
        abort(); /* would block the sampler */
    if (f->n_events == 0)
        return NVML_RC_TIMEOUT;
    *data = f->events[0];
    memmove(f->events, f->events + 1, --f->n_events * sizeof(f->events[0]));
    return 0;
}

int nvmlDeviceGetMigMode(struct nvml_device *device, uint32_t *current, uint32_t *pending)
{
    ENTER_BOARD(device);
    *current = GPU(device)->is_mig_on;
    *pending = *current ^ GPU(device)->is_mig_pending_other;
    return GPU(device)->mig_rc;
}

int nvmlDeviceGetMaxMigDeviceCount(struct nvml_device *device, uint32_t *n)
{
    ENTER_BOARD(device);
    *n = GPU(device)->is_mig_on ? FAKE_MIGS : 0;
    return 0;
}

int nvmlDeviceGetMigDeviceHandleByIndex(struct nvml_device *device, uint32_t index, struct nvml_device **mig)
{
    ENTER_BOARD(device);
    if (index >= FAKE_MIGS || !GPU(device)->migs[index].is_there)
        return NVML_RC_NOT_FOUND;
    *mig = &GPU(device)->migs[index].handle;
    return 0;
}

int nvmlDeviceGetGpuInstanceId(struct nvml_device *mig, uint32_t *id)
{
    ENTER(mig);
    *id = GPU(mig)->migs[mig->mig].gi;
    return 0;
}

int nvmlDeviceGetComputeInstanceId(struct nvml_device *mig, uint32_t *id)
{
    ENTER(mig);
    *id = GPU(mig)->migs[mig->mig].ci;
    return 0;
}

int nvmlDeviceGetAttributes_v2(struct nvml_device *mig, struct nvml_attributes *attributes)
{
    ENTER(mig);
    *attributes = (struct nvml_attributes){.gpu_instance_slices = 3, .compute_instance_slices = 1, .memory_mib = 40448};
    return 0;
}

int nvmlGpmQueryDeviceSupport(struct nvml_device *device, struct nvml_gpm_support *support)
{
    ENTER(device);
    support->is_supported = GPU(device)->has_gpm;
    return support->version == NVML_GPM_VERSION ? 0 : NVML_RC_ARGUMENT_VERSION_MISMATCH;
}

int nvmlGpmSampleAlloc(struct nvml_gpm_sample **sample)
{
    ENTER(NULL);
    fake()->samples_live++;
    *sample = calloc(1, sizeof(**sample));
    return 0;
}

int nvmlGpmSampleFree(struct nvml_gpm_sample *sample)
{
    fake()->samples_live--;
    free(sample);
    return 0;
}

int nvmlGpmSampleGet(struct nvml_device *device, struct nvml_gpm_sample *sample)
{
    ENTER_BOARD(device);
    *sample = (struct nvml_gpm_sample){.device = device, .gi = UINT32_MAX};
    return 0;
}

int nvmlGpmMigSampleGet(struct nvml_device *device, uint32_t gpu_instance_id, struct nvml_gpm_sample *sample)
{
    ENTER_BOARD(device);
    *sample = (struct nvml_gpm_sample){.device = device, .gi = gpu_instance_id};
    return 0;
}

static const double *gpm_values(const struct nvml_gpm_sample *sample)
{
    const struct fake_gpu *g = GPU(sample->device);
    if (sample->gi == UINT32_MAX)
        return g->gpm;
    for (size_t i = 0; i < FAKE_MIGS; i++)
        if (g->migs[i].is_there && g->migs[i].gi == sample->gi)
            return g->migs[i].gpm;
    return NULL;
}

int nvmlGpmMetricsGet(struct nvml_gpm_metrics *metrics)
{
    ENTER(NULL);
    const struct nvml_gpm_sample *a = metrics->sample1, *b = metrics->sample2;
    if (metrics->version != NVML_GPM_VERSION || !a->device || a->device != b->device || a->gi != b->gi)
        return NVML_RC_INVALID_ARGUMENT;
    const double *values = gpm_values(a);
    for (uint32_t i = 0; i < metrics->metrics_len; i++) {
        uint32_t id = metrics->metrics[i].metric_id;
        bool is_known = values && id < FAKE_GPM_IDS && values[id] >= 0;
        metrics->metrics[i].rc = is_known ? 0 : NVML_RC_NOT_SUPPORTED;
        metrics->metrics[i].value = is_known ? values[id] : 0;
    }
    return 0;
}

/* A MIG device has those with its ids, the GPU all. Capacity in, number out. */
static int list_processes(struct nvml_device *device, int list, uint32_t *n, struct nvml_process *processes)
{
    struct fake_gpu *g = GPU(device);
    const struct fake_mig *mig = device->mig >= 0 ? &g->migs[device->mig] : NULL;
    uint32_t room = *n, at = 0;
    g->list_calls++;
    if (g->is_mig_on && !mig && g->hides_instances)
        return NVML_RC_NO_PERMISSION;
    for (size_t i = 0; i < g->n_processes; i++) {
        const struct fake_process *p = &g->processes[i];
        if (p->list != list || (mig && (p->gi != mig->gi || p->ci != mig->ci)))
            continue;
        if (at < room)
            processes[at] = (struct nvml_process){p->pid, p->bytes, p->gi, p->ci};
        at++;
    }
    *n = at;
    return at > room ? NVML_RC_INSUFFICIENT_SIZE : 0;
}

#define LIST(function, list)                                                                                           \
    int function(struct nvml_device *device, uint32_t *n, struct nvml_process *processes)                              \
    {                                                                                                                  \
        ENTER(device);                                                                                                 \
        return list_processes(device, list, n, processes);                                                             \
    }
LIST(nvmlDeviceGetComputeRunningProcesses_v3, 0)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, 1)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, 2)

int nvmlDeviceGetProcessUtilization(struct nvml_device *device, struct nvml_process_utilization *samples, uint32_t *n,
                                    uint64_t since_us)
{
    struct fake_gpu *g = GPU(device);
    g->utilization_calls++;
    g->asked_since_us = since_us;
    ENTER_BOARD(device);
    uint32_t room = *n, at = 0;
    for (size_t i = 0; i < g->n_samples; i++) {
        if (g->samples[i].time_us <= since_us)
            continue;
        if (at < room)
            samples[at] = g->samples[i];
        at++;
    }
    *n = at;
    return at > room ? NVML_RC_INSUFFICIENT_SIZE : at ? 0 : NVML_RC_NOT_FOUND;
}
