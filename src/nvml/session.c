/* What has a life of its own in the driver or comes from more than one call: events, MIG devices, GPM samples. */
#include "nvml/library.h"

#include "base/base.h"

#include <math.h>
#include <string.h>

/* ---- events ---- */

int nvml_events_new(const struct nvml *n, struct nvml_event_set **ret_set)
{
    struct nvml_event_set *set = NULL;
    int rc = NVML_CALL(n, nvmlEventSetCreate, &set);
    if (rc == NVML_RC_SUCCESS && !set)
        return NVML_RC_IMPLAUSIBLE;
    if (rc == NVML_RC_SUCCESS)
        *ret_set = set;
    return rc;
}

void nvml_events_free(const struct nvml *n, struct nvml_event_set *set)
{
    if (set)
        (void)NVML_CALL(n, nvmlEventSetFree, set);
}

int nvml_events_register(const struct nvml *n, struct nvml_event_set *set, struct nvml_device *d, uint64_t types)
{
    /* One unsupported bit and the driver refuses the whole mask. */
    uint64_t supported = 0;
    int rc = NVML_CALL(n, nvmlDeviceGetSupportedEventTypes, d, &supported);
    if (rc != NVML_RC_SUCCESS)
        return rc;
    if (!(types & supported))
        return NVML_RC_NOT_SUPPORTED;
    return NVML_CALL(n, nvmlDeviceRegisterEvents, d, types & supported, set);
}

int nvml_events_wait(const struct nvml *n, struct nvml_event_set *set, uint32_t timeout_ms,
                     struct nvml_event_data *ret_event)
{
    /* The old function leaves the instance ids alone: "the whole GPU". */
    struct nvml_event_data event = {.gpu_instance_id = NVML_NONE_U32, .compute_instance_id = NVML_NONE_U32};
    int rc = NVML_CALL(n, nvmlEventSetWait_v2, set, &event, timeout_ms);
    if (rc == NVML_RC_FUNCTION_NOT_FOUND)
        rc = NVML_CALL(n, nvmlEventSetWait, set, &event, timeout_ms);
    if (rc == NVML_RC_SUCCESS)
        *ret_event = event;
    return rc;
}

/* ---- MIG ---- */

int nvml_read_mig_mode(const struct nvml *n, struct nvml_device *d, struct nvml_mig_mode *ret_mode)
{
    uint32_t current = 0, pending = 0;
    struct nvml_mig_mode mode = {0};
    int rc = NVML_CALL(n, nvmlDeviceGetMigMode, d, &current, &pending);
    rc = nvml_give_bool(rc, current, &mode.is_on);
    rc = nvml_give_bool(rc, pending, &mode.is_pending_on);
    if (rc == NVML_RC_SUCCESS)
        *ret_mode = mode;
    return rc;
}

enum { MIG_DEVICES_MAX = 64, MIG_ID_MAX = 1 << 16 };

int nvml_read_mig_max(const struct nvml *n, struct nvml_device *d, uint32_t *ret_max)
{
    uint32_t max = 0;
    int rc = NVML_CALL(n, nvmlDeviceGetMaxMigDeviceCount, d, &max);
    return nvml_give_u32(rc, max, MIG_DEVICES_MAX, ret_max);
}

int nvml_find_mig(const struct nvml *n, struct nvml_device *d, uint32_t index, struct nvml_device **ret_mig)
{
    struct nvml_device *mig = NULL;
    int rc = NVML_CALL(n, nvmlDeviceGetMigDeviceHandleByIndex, d, index, &mig);
    return nvml_give_device(rc, mig, ret_mig);
}

int nvml_find_mig_parent(const struct nvml *n, struct nvml_device *mig, struct nvml_device **ret_device)
{
    struct nvml_device *device = NULL;
    int rc = NVML_CALL(n, nvmlDeviceGetDeviceHandleFromMigDeviceHandle, mig, &device);
    return nvml_give_device(rc, device, ret_device);
}

int nvml_read_is_mig(const struct nvml *n, struct nvml_device *d, bool *ret_is_mig)
{
    uint32_t is_mig = 0;
    int rc = NVML_CALL(n, nvmlDeviceIsMigDeviceHandle, d, &is_mig);
    return nvml_give_bool(rc, is_mig, ret_is_mig);
}

int nvml_read_mig_ids(const struct nvml *n, struct nvml_device *mig, struct nvml_mig_ids *ret_ids)
{
    uint32_t gpu = 0, compute = 0;
    struct nvml_mig_ids ids = {0};
    int rc = NVML_CALL(n, nvmlDeviceGetGpuInstanceId, mig, &gpu);
    rc = nvml_give_u32(rc, gpu, MIG_ID_MAX, &ids.gpu_instance);
    if (rc == NVML_RC_SUCCESS)
        rc = NVML_CALL(n, nvmlDeviceGetComputeInstanceId, mig, &compute);
    rc = nvml_give_u32(rc, compute, MIG_ID_MAX, &ids.compute_instance);
    if (rc == NVML_RC_SUCCESS)
        *ret_ids = ids;
    return rc;
}

int nvml_read_mig_placement(const struct nvml *n, struct nvml_device *gpu, uint32_t gpu_instance,
                            struct nvml_gpu_instance_info *ret_info)
{
    struct nvml_gpu_instance *instance = NULL;
    struct nvml_gpu_instance_info info = {0};
    int rc = NVML_CALL(n, nvmlDeviceGetGpuInstanceById, gpu, gpu_instance, &instance);
    if (rc == NVML_RC_SUCCESS && !instance)
        rc = NVML_RC_NOT_FOUND;
    if (rc == NVML_RC_SUCCESS)
        rc = NVML_CALL(n, nvmlGpuInstanceGetInfo, instance, &info);
    if (rc == NVML_RC_SUCCESS)
        *ret_info = info;
    return rc;
}

int nvml_read_mig_attributes(const struct nvml *n, struct nvml_device *mig, struct nvml_attributes *ret_attributes)
{
    struct nvml_attributes attributes = {0};
    int rc = NVML_CALL(n, nvmlDeviceGetAttributes_v2, mig, &attributes);
    if (rc == NVML_RC_SUCCESS)
        *ret_attributes = attributes;
    return rc;
}

/* ---- GPM ---- */

int nvml_gpm_supported(const struct nvml *n, struct nvml_device *d, bool *ret_is_supported)
{
    struct nvml_gpm_support support = {.version = NVML_GPM_VERSION};
    int rc = NVML_CALL(n, nvmlGpmQueryDeviceSupport, d, &support);
    if (rc == NVML_RC_SUCCESS)
        *ret_is_supported = support.is_supported != 0;
    return rc;
}

int nvml_gpm_sample_new(const struct nvml *n, struct nvml_gpm_sample **ret_sample)
{
    struct nvml_gpm_sample *sample = NULL;
    int rc = NVML_CALL(n, nvmlGpmSampleAlloc, &sample);
    if (rc == NVML_RC_SUCCESS && !sample)
        return NVML_RC_IMPLAUSIBLE;
    if (rc == NVML_RC_SUCCESS)
        *ret_sample = sample;
    return rc;
}

void nvml_gpm_sample_free(const struct nvml *n, struct nvml_gpm_sample *sample)
{
    if (sample)
        (void)NVML_CALL(n, nvmlGpmSampleFree, sample);
}

int nvml_gpm_take(const struct nvml *n, struct nvml_device *d, struct nvml_gpm_sample *sample)
{
    return NVML_CALL(n, nvmlGpmSampleGet, d, sample);
}

int nvml_gpm_take_mig(const struct nvml *n, struct nvml_device *d, uint32_t gpu_instance,
                      struct nvml_gpm_sample *sample)
{
    return NVML_CALL(n, nvmlGpmMigSampleGet, d, gpu_instance, sample);
}

static const double PERCENT_MAX = 100, ROUNDING = 0.5;

/* Percentages are computed from counters and can pass 100 by a rounding; by more than that they are wrong. */
static void check_metric(struct nvml_gpm_metric *m)
{
    if (m->rc != NVML_RC_SUCCESS)
        return;
    bool is_percent = m->metric_id < NVML_GPM_PCIE_TX;
    if (!isfinite(m->value) || m->value < 0 || (is_percent && m->value > PERCENT_MAX + ROUNDING))
        m->rc = NVML_RC_IMPLAUSIBLE;
    else if (is_percent && m->value > PERCENT_MAX)
        m->value = PERCENT_MAX;
}

static int compute(struct nvml *n, const struct nvml_gpm_metric *metrics, size_t len)
{
    for (size_t i = 0; i < len; i++)
        n->gpm_buffer->metrics[i] =
            (struct nvml_gpm_metric){.metric_id = metrics[i].metric_id, .rc = NVML_RC_NOT_SUPPORTED};
    return NVML_CALL(n, nvmlGpmMetricsGet, n->gpm_buffer);
}

int nvml_gpm_read(struct nvml *n, struct nvml_gpm_sample *older, struct nvml_gpm_sample *newer,
                  struct nvml_gpm_metric *metrics, size_t len)
{
    if (!n->gpm_buffer)
        n->gpm_buffer = mem_new_array(1, NVML_GPM_BUFFER_BYTES);
    memset(n->gpm_buffer, 0, NVML_GPM_BUFFER_BYTES);
    n->gpm_buffer->version = NVML_GPM_VERSION;
    n->gpm_buffer->metrics_len = (uint32_t)len;
    n->gpm_buffer->sample1 = older;
    n->gpm_buffer->sample2 = newer;
    bool has_room = len <= NVML_GPM_METRICS_MAX;
    int rc = has_room ? compute(n, metrics, len) : (int)NVML_RC_INVALID_ARGUMENT;
    for (size_t i = 0; i < len; i++) {
        uint32_t id = metrics[i].metric_id;
        metrics[i] = (struct nvml_gpm_metric){.metric_id = id, .rc = rc};
        if (rc == NVML_RC_SUCCESS) {
            metrics[i].rc = n->gpm_buffer->metrics[i].rc;
            metrics[i].value = n->gpm_buffer->metrics[i].value;
            check_metric(&metrics[i]);
        }
    }
    return rc;
}
