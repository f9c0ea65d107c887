/* MIG: modes, the devices of a divided GPU, their ids and sizes. A MIG device is a compute instance. */
#include "nvmlsim/sim.h"

int nvmlDeviceGetMigMode(struct nvml_device *device, uint32_t *current, uint32_t *pending)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    if (!current || !pending)
        return NVML_RC_INVALID_ARGUMENT;
    if (!(c.gpu->board->can & CAN_MIG))
        return NVML_RC_NOT_SUPPORTED;
    *current = c.layout->is_enabled ? NVML_MIG_ON : NVML_MIG_OFF;
    *pending = c.layout->is_enabled != c.gpu->is_mig_pending ? NVML_MIG_ON : NVML_MIG_OFF;
    return NVML_RC_SUCCESS;
}

/* How many there can be; 0 while MIG is off. */
int nvmlDeviceGetMaxMigDeviceCount(struct nvml_device *device, uint32_t *n)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    return sim_u32(n, c.layout->is_enabled ? MIG_SLICES : 0);
}

/* The index is the slice where the compute instance begins, so wide ones leave holes behind them, as they do on real
 * machines after some coming and going. */
int nvmlDeviceGetMigDeviceHandleByIndex(struct nvml_device *device, uint32_t index, struct nvml_device **mig)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    if (!mig || index >= MIG_SLICES)
        return NVML_RC_INVALID_ARGUMENT;
    if (!(c.gpu->board->can & CAN_MIG))
        return NVML_RC_NOT_SUPPORTED;
    for (size_t i = 0; i < c.layout->n_instances; i++) {
        const struct mig_instance *gi = &c.layout->instances[i];
        for (size_t k = 0; k < gi->n_compute; k++) {
            if (gi->start + gi->compute[k].start != index)
                continue;
            struct nvml_device *handle = sim_handle(c.gpu, gi, &gi->compute[k]);
            if (!handle)
                return NVML_RC_MEMORY;
            *mig = handle;
            return NVML_RC_SUCCESS;
        }
    }
    return NVML_RC_NOT_FOUND;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(struct nvml_device *mig, struct nvml_device **device)
{
    SIM_DEVICE(c, mig, SIM_ANY);
    if (!device || !c.instance)
        return NVML_RC_INVALID_ARGUMENT;
    struct nvml_device *handle = sim_handle(c.gpu, NULL, NULL);
    if (!handle)
        return NVML_RC_MEMORY;
    *device = handle;
    return NVML_RC_SUCCESS;
}

int nvmlDeviceIsMigDeviceHandle(struct nvml_device *device, uint32_t *is_mig)
{
    SIM_DEVICE(c, device, SIM_ANY);
    return sim_u32(is_mig, c.instance != NULL);
}

int nvmlDeviceGetGpuInstanceId(struct nvml_device *mig, uint32_t *id)
{
    SIM_DEVICE(c, mig, SIM_MIG);
    return sim_u32(id, c.instance->id);
}

int nvmlDeviceGetComputeInstanceId(struct nvml_device *mig, uint32_t *id)
{
    SIM_DEVICE(c, mig, SIM_MIG);
    return sim_u32(id, c.compute->id);
}

/* A GPU instance goes by the handle of its first compute instance. */
int nvmlDeviceGetGpuInstanceById(struct nvml_device *device, uint32_t id, struct nvml_gpu_instance **instance)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    if (!instance)
        return NVML_RC_INVALID_ARGUMENT;
    for (size_t i = 0; i < c.layout->n_instances; i++) {
        const struct mig_instance *gi = &c.layout->instances[i];
        if (gi->id != id || gi->n_compute == 0)
            continue;
        struct nvml_device *handle = sim_handle(c.gpu, gi, &gi->compute[0]);
        if (!handle)
            return NVML_RC_MEMORY;
        *instance = (struct nvml_gpu_instance *)(void *)handle;
        return NVML_RC_SUCCESS;
    }
    return NVML_RC_NOT_FOUND;
}

int nvmlGpuInstanceGetInfo(struct nvml_gpu_instance *instance, struct nvml_gpu_instance_info *info)
{
    SIM_DEVICE(c, (struct nvml_device *)(void *)instance, SIM_MIG);
    struct nvml_device *gpu = sim_handle(c.gpu, NULL, NULL);
    if (!info || !gpu)
        return NVML_RC_INVALID_ARGUMENT;
    *info = (struct nvml_gpu_instance_info){
        .device = gpu, .id = c.instance->id, .start = c.instance->start, .size = c.instance->profile.memory_slices};
    return NVML_RC_SUCCESS;
}

static int attributes_of(const struct sim_call *c, struct nvml_attributes *attributes)
{
    if (!attributes)
        return NVML_RC_INVALID_ARGUMENT;
    const struct mig_profile *p = &c->instance->profile;
    *attributes = (struct nvml_attributes){
        .multiprocessors = p->multiprocessors * c->compute->slices / p->slices,
        .copy_engines = p->copy_engines,
        .decoders = p->decoders,
        .encoders = p->encoders,
        .jpegs = p->jpegs,
        .ofas = p->ofas,
        .gpu_instance_slices = p->slices,
        .compute_instance_slices = c->compute->slices,
        .memory_mib = p->memory_mib,
    };
    return NVML_RC_SUCCESS;
}

int nvmlDeviceGetAttributes_v2(struct nvml_device *mig, struct nvml_attributes *attributes)
{
    SIM_DEVICE(c, mig, SIM_MIG);
    return attributes_of(&c, attributes);
}

int nvmlDeviceGetAttributes(struct nvml_device *mig, struct nvml_attributes *attributes)
{
    SIM_DEVICE(c, mig, SIM_MIG);
    return attributes_of(&c, attributes);
}
