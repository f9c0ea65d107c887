/* GPM: samples of running integrals, and metrics as the difference of two. */
#include "nvmlsim/sim.h"

#include <string.h>

enum { SAMPLES_MAX = 4096, METRICS_MAX = 477 };
#define APART_S 0.1

struct nvml_gpm_sample {
    bool is_used, is_filled, is_mig;
    int64_t epoch_ns; /* what t_s counts from */
    double t_s;
    double counters[SIGNAL_COUNT];
};

static struct nvml_gpm_sample samples[SAMPLES_MAX];

static bool is_sample(const struct nvml_gpm_sample *s)
{
    uintptr_t at = (uintptr_t)s, first = (uintptr_t)samples;
    return at >= first && at < first + sizeof(samples) && (at - first) % sizeof(samples[0]) == 0 && s->is_used;
}

int nvmlGpmQueryDeviceSupport(struct nvml_device *device, struct nvml_gpm_support *support)
{
    SIM_DEVICE(c, device, SIM_ANY);
    if (!support)
        return NVML_RC_INVALID_ARGUMENT;
    if (support->version != NVML_GPM_VERSION)
        return NVML_RC_ARGUMENT_VERSION_MISMATCH;
    support->is_supported = (c.gpu->board->can & CAN_GPM) != 0;
    return NVML_RC_SUCCESS;
}

int nvmlGpmSampleAlloc(struct nvml_gpm_sample **sample)
{
    SIM_CALL(c);
    if (!sample)
        return NVML_RC_INVALID_ARGUMENT;
    for (size_t i = 0; i < SAMPLES_MAX; i++)
        if (!samples[i].is_used) {
            samples[i] = (struct nvml_gpm_sample){.is_used = true};
            *sample = &samples[i];
            return NVML_RC_SUCCESS;
        }
    return NVML_RC_MEMORY;
}

int nvmlGpmSampleFree(struct nvml_gpm_sample *sample)
{
    SIM_CALL(c);
    if (!is_sample(sample))
        return NVML_RC_INVALID_ARGUMENT;
    sample->is_used = false;
    return NVML_RC_SUCCESS;
}

/* Take the counters of the GPU, or of one of its instances. */
static int fill(const struct sim_call *c, const struct mig_instance *gi, struct nvml_gpm_sample *sample)
{
    if (!is_sample(sample))
        return NVML_RC_INVALID_ARGUMENT;
    if (!(c->gpu->board->can & CAN_GPM))
        return NVML_RC_NOT_SUPPORTED;
    sample->is_filled = true;
    sample->is_mig = gi != NULL;
    sample->epoch_ns = sim_epoch_ns();
    sample->t_s = c->t_s;
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        sample->counters[i] = gi ? player_instance_counter(c->player, c->index, c->layout, gi, (enum signal)i, c->t_s)
                                 : player_counter(c->player, c->index, (enum signal)i, c->t_s);
    return NVML_RC_SUCCESS;
}

/* A whole GPU that is not divided, or the GPU instance of a MIG device. */
int nvmlGpmSampleGet(struct nvml_device *device, struct nvml_gpm_sample *sample)
{
    SIM_DEVICE(c, device, SIM_ANY);
    if (!c.instance && c.layout->is_enabled)
        return NVML_RC_NOT_SUPPORTED;
    return fill(&c, c.instance, sample);
}

int nvmlGpmMigSampleGet(struct nvml_device *device, uint32_t gpu_instance_id, struct nvml_gpm_sample *sample)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    if (!c.layout->is_enabled)
        return NVML_RC_NOT_SUPPORTED;
    for (size_t i = 0; i < c.layout->n_instances; i++)
        if (c.layout->instances[i].id == gpu_instance_id)
            return fill(&c, &c.layout->instances[i], sample);
    return NVML_RC_NOT_FOUND;
}

/* Which signal a metric is, by what its rate is multiplied, and whether instances have it. */
static const struct metric {
    uint32_t id;
    enum signal signal;
    double factor;
    bool is_of_instance;
    char name[32];
} metrics[] = {
    {NVML_GPM_GRAPHICS_UTIL, SIGNAL_UTILIZATION, 1, true, "Graphics Utilization"},
    {NVML_GPM_SM_UTIL, SIGNAL_SM_ACTIVITY, 1, true, "SM Utilization"},
    {NVML_GPM_SM_OCCUPANCY, SIGNAL_SM_OCCUPANCY, 1, true, "SM Occupancy"},
    {NVML_GPM_INTEGER_UTIL, SIGNAL_SM_ACTIVITY, 0.25, true, "Integer Utilization"},
    {NVML_GPM_ANY_TENSOR_UTIL, SIGNAL_TENSOR_ACTIVITY, 1, true, "Any Tensor Utilization"},
    {NVML_GPM_DFMA_TENSOR_UTIL, SIGNAL_TENSOR_ACTIVITY, 0, true, "DFMA Tensor Utilization"},
    {NVML_GPM_HMMA_TENSOR_UTIL, SIGNAL_TENSOR_ACTIVITY, 1, true, "HMMA Tensor Utilization"},
    {NVML_GPM_IMMA_TENSOR_UTIL, SIGNAL_TENSOR_ACTIVITY, 0, true, "IMMA Tensor Utilization"},
    {NVML_GPM_DRAM_BW_UTIL, SIGNAL_DRAM_ACTIVITY, 1, true, "DRAM Bandwidth Utilization"},
    {NVML_GPM_FP64_UTIL, SIGNAL_FP64_ACTIVITY, 1, true, "FP64 Utilization"},
    {NVML_GPM_FP32_UTIL, SIGNAL_FP32_ACTIVITY, 1, true, "FP32 Utilization"},
    {NVML_GPM_FP16_UTIL, SIGNAL_FP16_ACTIVITY, 1, true, "FP16 Utilization"},
    {NVML_GPM_PCIE_TX, SIGNAL_PCIE_TX, 1000.0 / (1 << 20), true, "PCIe TX Throughput"},
    {NVML_GPM_PCIE_RX, SIGNAL_PCIE_RX, 1000.0 / (1 << 20), true, "PCIe RX Throughput"},
    {NVML_GPM_NVLINK_RX, SIGNAL_NVLINK_RX, 1.0 / 1024, false, "NVLink RX Throughput"},
    {NVML_GPM_NVLINK_TX, SIGNAL_NVLINK_TX, 1.0 / 1024, false, "NVLink TX Throughput"},
};

static double seconds_between(const struct nvml_gpm_sample *a, const struct nvml_gpm_sample *b)
{
    return (double)(b->epoch_ns - a->epoch_ns) * 1e-9 + (b->t_s - a->t_s);
}

static void measure(const struct nvml_gpm_sample *a, const struct nvml_gpm_sample *b, struct nvml_gpm_metric *m)
{
    const struct metric *row = NULL;
    for (size_t i = 0; i < ARRAY_LEN(metrics); i++)
        if (metrics[i].id == m->metric_id)
            row = &metrics[i];
    m->value = 0;
    m->rc = row && (row->is_of_instance || !a->is_mig) ? NVML_RC_SUCCESS : NVML_RC_NOT_SUPPORTED;
    if (m->rc != NVML_RC_SUCCESS)
        return;
    static char percent[] = "%", throughput[] = "MiB/s";
    static char names[ARRAY_LEN(metrics)][32];
    char *name = names[row - metrics];
    memcpy(name, row->name, sizeof(row->name));
    m->value = (b->counters[row->signal] - a->counters[row->signal]) / seconds_between(a, b) * row->factor;
    m->info.short_name = m->info.long_name = name;
    m->info.unit = row->id < NVML_GPM_PCIE_TX ? percent : throughput;
}

/* The version is a plain 1, not a size. Samples must be two, in order, at least 100 ms apart. */
int nvmlGpmMetricsGet(struct nvml_gpm_metrics *get)
{
    SIM_CALL(c);
    if (!get)
        return NVML_RC_INVALID_ARGUMENT;
    if (get->version != NVML_GPM_VERSION)
        return NVML_RC_ARGUMENT_VERSION_MISMATCH;
    const struct nvml_gpm_sample *a = get->sample1, *b = get->sample2;
    if (get->metrics_len == 0 || get->metrics_len > METRICS_MAX || !is_sample(a) || !is_sample(b) || !a->is_filled ||
        !b->is_filled || a->is_mig != b->is_mig || seconds_between(a, b) < APART_S - 1e-4)
        return NVML_RC_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < get->metrics_len; i++)
        measure(a, b, &get->metrics[i]);
    return NVML_RC_SUCCESS;
}

int nvmlGpmQueryIfStreamingEnabled(struct nvml_device *device, uint32_t *state)
{
    SIM_DEVICE(c, device, SIM_ANY);
    return c.gpu->board->can & CAN_GPM ? sim_u32(state, 0) : NVML_RC_NOT_SUPPORTED;
}

int nvmlGpmSetStreamingEnabled(struct nvml_device *device, uint32_t state)
{
    (void)state;
    SIM_DEVICE(c, device, SIM_ANY);
    return c.gpu->board->can & CAN_GPM ? NVML_RC_NO_PERMISSION : NVML_RC_NOT_SUPPORTED;
}
