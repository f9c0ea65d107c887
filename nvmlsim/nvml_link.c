/* The links of a GPU: PCIe, NVLink, the NVSwitch fabric. */
#include "nvmlsim/sim.h"

#include <math.h>
#include <string.h>

enum { PCIE_LANES = 16, PCIE_WINDOW_MS = 20 };

/* The driver counts over a window inside the call, and so does this. */
int nvmlDeviceGetPcieThroughput(struct nvml_device *device, uint32_t counter, uint32_t *kb_per_s)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    if (!kb_per_s || counter > NVML_PCIE_RX)
        return NVML_RC_INVALID_ARGUMENT;
    int rc = sim_pause(&c, PCIE_WINDOW_MS);
    if (rc != NVML_RC_SUCCESS)
        return rc;
    enum signal signal = counter == NVML_PCIE_TX ? SIGNAL_PCIE_TX : SIGNAL_PCIE_RX;
    return sim_u32(kb_per_s, sim_round(player_mean(c.player, c.index, signal, c.t_s, PCIE_WINDOW_MS * 1e-3)));
}

int nvmlDeviceGetPcieReplayCounter(struct nvml_device *device, uint32_t *count)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    return sim_u32(count, sim_round(player_ecc(c.player, c.index, ECC_PCIE_REPLAYS, c.t_s)));
}

/* An idle link drops to the first generation; that is no fault. */
int nvmlDeviceGetCurrPcieLinkGeneration(struct nvml_device *device, uint32_t *generation)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    bool is_busy = player_value(c.player, c.index, SIGNAL_UTILIZATION, c.t_s) > 0;
    return sim_u32(generation, is_busy ? c.gpu->board->pcie_generation : 1);
}

int nvmlDeviceGetMaxPcieLinkGeneration(struct nvml_device *device, uint32_t *generation)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    return sim_u32(generation, c.gpu->board->pcie_generation);
}

int nvmlDeviceGetGpuMaxPcieLinkGeneration(struct nvml_device *device, uint32_t *generation)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    return sim_u32(generation, c.gpu->board->pcie_generation);
}

int nvmlDeviceGetCurrPcieLinkWidth(struct nvml_device *device, uint32_t *lanes)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    return sim_u32(lanes, PCIE_LANES);
}

int nvmlDeviceGetMaxPcieLinkWidth(struct nvml_device *device, uint32_t *lanes)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    return sim_u32(lanes, PCIE_LANES);
}

/* ---- NVLink ---- */

/* A board without NVLink knows no link at all; one with it refuses numbers past its last. */
static int check_link(const struct sim_call *c, uint32_t link)
{
    if (c->gpu->board->nvlinks == 0)
        return NVML_RC_NOT_SUPPORTED;
    return link < c->gpu->board->nvlinks ? NVML_RC_SUCCESS : NVML_RC_INVALID_ARGUMENT;
}

int nvmlDeviceGetNvLinkState(struct nvml_device *device, uint32_t link, uint32_t *is_active)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    int rc = check_link(&c, link);
    return rc == NVML_RC_SUCCESS ? sim_u32(is_active, 1) : rc;
}

int nvmlDeviceGetNvLinkVersion(struct nvml_device *device, uint32_t link, uint32_t *version)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    int rc = check_link(&c, link);
    return rc == NVML_RC_SUCCESS ? sim_u32(version, c.gpu->board->nvlink_version) : rc;
}

int nvmlDeviceGetNvLinkErrorCounter(struct nvml_device *device, uint32_t link, uint32_t counter, uint64_t *count)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    int rc = check_link(&c, link);
    if (rc != NVML_RC_SUCCESS)
        return rc;
    if (c.gpu->board->nvlink_version >= 5)
        return NVML_RC_NOT_SUPPORTED;
    return counter <= 4 ? sim_u64(count, 0) : NVML_RC_INVALID_ARGUMENT;
}

/* ---- fabric ---- */

int nvmlDeviceGetGpuFabricInfoV(struct nvml_device *device, struct nvml_fabric_info *info)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    if (!info)
        return NVML_RC_INVALID_ARGUMENT;
    if (info->version != NVML_FABRIC_INFO_V2)
        return NVML_RC_ARGUMENT_VERSION_MISMATCH;
    if (!(c.gpu->board->can & CAN_FABRIC))
        return NVML_RC_NOT_SUPPORTED;
    *info = (struct nvml_fabric_info){.version = NVML_FABRIC_INFO_V2, .state = NVML_FABRIC_COMPLETED};
    return NVML_RC_SUCCESS;
}

int nvmlDeviceGetGpuFabricInfo(struct nvml_device *device, struct nvml_fabric_info_v1 *info)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    if (!info)
        return NVML_RC_INVALID_ARGUMENT;
    if (!(c.gpu->board->can & CAN_FABRIC))
        return NVML_RC_NOT_SUPPORTED;
    *info = (struct nvml_fabric_info_v1){.state = NVML_FABRIC_COMPLETED};
    return NVML_RC_SUCCESS;
}
