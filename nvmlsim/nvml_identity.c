/* Who and what a device is: names, ids, PCI, architecture, and settings that never change here. */
#include "nvmlsim/sim.h"

#include <stdio.h>
#include <string.h>

int nvmlDeviceGetUUID(struct nvml_device *device, char *text, uint32_t size)
{
    SIM_DEVICE(c, device, SIM_ANY);
    return sim_text(text, size, c.compute ? c.compute->uuid : c.gpu->uuid);
}

/* Of a MIG device: board, "MIG", profile. */
int nvmlDeviceGetName(struct nvml_device *device, char *text, uint32_t size)
{
    SIM_DEVICE(c, device, SIM_ANY);
    char name[NVML_NAME_MAX];
    if (!c.compute)
        return sim_text(text, size, c.gpu->board->name);
    (void)snprintf(name, sizeof(name), "%s MIG %s", c.gpu->board->name, c.compute->profile);
    return sim_text(text, size, name);
}

int nvmlDeviceGetSerial(struct nvml_device *device, char *text, uint32_t size)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    return sim_text(text, size, c.gpu->serial);
}

int nvmlDeviceGetVbiosVersion(struct nvml_device *device, char *text, uint32_t size)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    char vbios[NVML_VBIOS_MAX];
    (void)snprintf(vbios, sizeof(vbios), "9%u.%02X.00.00.01", c.gpu->board->compute_major,
                   c.gpu->board->pci_device_id >> 16 & 0xff);
    return sim_text(text, size, vbios);
}

int nvmlDeviceGetIndex(struct nvml_device *device, uint32_t *index)
{
    SIM_DEVICE(c, device, SIM_ANY);
    return sim_u32(index, c.instance ? c.instance->start + c.compute->start : (uint32_t)c.index);
}

int nvmlDeviceGetMinorNumber(struct nvml_device *device, uint32_t *minor)
{
    SIM_DEVICE(c, device, SIM_ANY);
    return sim_u32(minor, c.gpu->minor);
}

int nvmlDeviceGetArchitecture(struct nvml_device *device, uint32_t *architecture)
{
    SIM_DEVICE(c, device, SIM_ANY);
    return sim_u32(architecture, c.gpu->board->architecture);
}

int nvmlDeviceGetCudaComputeCapability(struct nvml_device *device, int32_t *major, int32_t *minor)
{
    SIM_DEVICE(c, device, SIM_ANY);
    if (!major || !minor)
        return NVML_RC_INVALID_ARGUMENT;
    *major = (int32_t)c.gpu->board->compute_major;
    *minor = (int32_t)c.gpu->board->compute_minor;
    return NVML_RC_SUCCESS;
}

int nvmlDeviceGetVirtualizationMode(struct nvml_device *device, uint32_t *mode)
{
    SIM_DEVICE(c, device, SIM_ANY);
    return sim_u32(mode, NVML_VIRT_NONE);
}

int nvmlDeviceGetBrand(struct nvml_device *device, uint32_t *brand)
{
    enum { BRAND_TESLA = 2, BRAND_NVIDIA = 14 };
    SIM_DEVICE(c, device, SIM_ANY);
    return sim_u32(brand, strncmp(c.gpu->board->name, "Tesla", 5) == 0 ? BRAND_TESLA : BRAND_NVIDIA);
}

int nvmlDeviceGetBoardId(struct nvml_device *device, uint32_t *id)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    return sim_u32(id, c.gpu->domain << 16 | c.gpu->bus << 8 | c.gpu->slot << 3);
}

int nvmlDeviceGetMultiGpuBoard(struct nvml_device *device, uint32_t *is_multi)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    return sim_u32(is_multi, 0);
}

int nvmlDeviceGetNumGpuCores(struct nvml_device *device, uint32_t *n)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    uint32_t per_multiprocessor =
        c.gpu->board->architecture == NVML_ARCH_TURING || !strncmp(c.gpu->board->key, "A100", 4) ? 64 : 128;
    return sim_u32(n, c.gpu->board->multiprocessors * per_multiprocessor);
}

int nvmlDeviceGetMemoryBusWidth(struct nvml_device *device, uint32_t *bits)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    return sim_u32(bits, c.gpu->board->memory_bus_bits);
}

int nvmlDeviceGetPersistenceMode(struct nvml_device *device, uint32_t *is_on)
{
    SIM_DEVICE(c, device, SIM_ANY);
    return sim_u32(is_on, 1);
}

int nvmlDeviceGetDisplayMode(struct nvml_device *device, uint32_t *is_on)
{
    SIM_DEVICE(c, device, SIM_ANY);
    return sim_u32(is_on, 0);
}

int nvmlDeviceGetDisplayActive(struct nvml_device *device, uint32_t *is_on)
{
    SIM_DEVICE(c, device, SIM_ANY);
    return sim_u32(is_on, 0);
}

int nvmlDeviceGetComputeMode(struct nvml_device *device, uint32_t *mode)
{
    SIM_DEVICE(c, device, SIM_ANY);
    return sim_u32(mode, 0);
}

/* P0 under load, P8 idle; HBM boards stay in P0. */
static uint32_t performance_state(const struct sim_call *c)
{
    bool is_busy = player_value(c->player, c->index, SIGNAL_UTILIZATION, c->t_s) > 0;
    return is_busy || (c->gpu->board->can & CAN_MEMORY_TEMP) ? 0 : 8;
}

int nvmlDeviceGetPerformanceState(struct nvml_device *device, uint32_t *state)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    return sim_u32(state, performance_state(&c));
}

int nvmlDeviceGetPowerState(struct nvml_device *device, uint32_t *state)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    return sim_u32(state, performance_state(&c));
}

/* ---- PCI ---- */

static struct nvml_pci_info pci_of(const struct gpu *g)
{
    struct nvml_pci_info pci = {.domain = g->domain,
                                .bus = g->bus,
                                .device = g->slot,
                                .pci_device_id = g->board->pci_device_id,
                                .pci_subsystem_id = g->board->pci_device_id};
    (void)snprintf(pci.bus_id_legacy, sizeof(pci.bus_id_legacy), "%04X:%02X:%02X.0", g->domain & 0xffff, g->bus & 0xff,
                   g->slot & 0xff);
    (void)snprintf(pci.bus_id, sizeof(pci.bus_id), "%08X:%02X:%02X.0", g->domain, g->bus, g->slot);
    return pci;
}

int nvmlDeviceGetPciInfo_v3(struct nvml_device *device, struct nvml_pci_info *pci)
{
    SIM_DEVICE(c, device, SIM_ANY);
    if (!pci)
        return NVML_RC_INVALID_ARGUMENT;
    *pci = pci_of(c.gpu);
    return NVML_RC_SUCCESS;
}

/* The older structs end before bus_id (and had four reserved words there, which stay as they were). */
static int pci_head(const struct sim_call *c, struct nvml_pci_info *pci)
{
    if (!pci)
        return NVML_RC_INVALID_ARGUMENT;
    struct nvml_pci_info all = pci_of(c->gpu);
    memcpy(pci, &all, offsetof(struct nvml_pci_info, bus_id));
    return NVML_RC_SUCCESS;
}

int nvmlDeviceGetPciInfo_v2(struct nvml_device *device, struct nvml_pci_info *pci)
{
    SIM_DEVICE(c, device, SIM_ANY);
    return pci_head(&c, pci);
}

int nvmlDeviceGetPciInfo(struct nvml_device *device, struct nvml_pci_info *pci)
{
    SIM_DEVICE(c, device, SIM_ANY);
    return pci_head(&c, pci);
}

int nvmlDeviceGetPciInfoExt(struct nvml_device *device, struct nvml_pci_info_ext *pci)
{
    SIM_DEVICE(c, device, SIM_ANY);
    if (!pci)
        return NVML_RC_INVALID_ARGUMENT;
    if (pci->version != NVML_VERSION_WORD(struct nvml_pci_info_ext, 1))
        return NVML_RC_ARGUMENT_VERSION_MISMATCH;
    struct nvml_pci_info all = pci_of(c.gpu);
    pci->domain = all.domain;
    pci->bus = all.bus;
    pci->device = all.device;
    pci->pci_device_id = all.pci_device_id;
    pci->pci_subsystem_id = all.pci_subsystem_id;
    pci->base_class = 3; /* display controller */
    pci->sub_class = 2;  /* 3D */
    memcpy(pci->bus_id, all.bus_id, sizeof(pci->bus_id));
    return NVML_RC_SUCCESS;
}
