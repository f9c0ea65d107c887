/* Readings of the links between a GPU and the rest: PCIe, NVLink, the fabric. */
#include "nvml/library.h"

#include "base/base.h"

#include <string.h>

enum { PCIE_GENERATION_MAX = 16, PCIE_WIDTH_MAX = 64 };

int nvml_read_pcie_blocking(const struct nvml *n, struct nvml_device *d, uint32_t counter, uint32_t *ret_kb_per_s)
{
    uint32_t kb_per_s = 0;
    int rc = NVML_CALL(n, nvmlDeviceGetPcieThroughput, d, counter, &kb_per_s);
    return nvml_give_u32(rc, kb_per_s, UINT32_MAX, ret_kb_per_s);
}

int nvml_read_pcie_link(const struct nvml *n, struct nvml_device *d, struct nvml_pcie_link *ret_link)
{
    uint32_t generation = 0, width = 0;
    struct nvml_pcie_link link = {0};
    int rc = NVML_CALL(n, nvmlDeviceGetCurrPcieLinkGeneration, d, &generation);
    rc = nvml_give_u32(rc, generation, PCIE_GENERATION_MAX, &link.generation);
    if (rc == NVML_RC_SUCCESS)
        rc = NVML_CALL(n, nvmlDeviceGetCurrPcieLinkWidth, d, &width);
    rc = nvml_give_u32(rc, width, PCIE_WIDTH_MAX, &link.width);
    if (rc == NVML_RC_SUCCESS)
        *ret_link = link;
    return rc;
}

int nvml_read_pcie_link_max(const struct nvml *n, struct nvml_device *d, struct nvml_pcie_link *ret_link)
{
    uint32_t generation = 0, width = 0;
    struct nvml_pcie_link link = {0};
    int rc = NVML_CALL(n, nvmlDeviceGetMaxPcieLinkGeneration, d, &generation);
    rc = nvml_give_u32(rc, generation, PCIE_GENERATION_MAX, &link.generation);
    if (rc == NVML_RC_SUCCESS)
        rc = NVML_CALL(n, nvmlDeviceGetMaxPcieLinkWidth, d, &width);
    rc = nvml_give_u32(rc, width, PCIE_WIDTH_MAX, &link.width);
    if (rc == NVML_RC_SUCCESS)
        *ret_link = link;
    return rc;
}

int nvml_read_nvlink(const struct nvml *n, struct nvml_device *d, uint32_t link, bool *ret_is_active)
{
    uint32_t is_active = 0;
    int rc = NVML_CALL(n, nvmlDeviceGetNvLinkState, d, link, &is_active);
    return nvml_give_bool(rc, is_active, ret_is_active);
}

static int read_fabric_v1(const struct nvml *n, struct nvml_device *d, struct nvml_fabric_info *info)
{
    struct nvml_fabric_info_v1 v1 = {0};
    int rc = NVML_CALL(n, nvmlDeviceGetGpuFabricInfo, d, &v1);
    *info = (struct nvml_fabric_info){.status = v1.status, .clique_id = v1.clique_id, .state = v1.state};
    memcpy(info->cluster_uuid, v1.cluster_uuid, sizeof(info->cluster_uuid));
    return rc;
}

int nvml_read_fabric(const struct nvml *n, struct nvml_device *d, struct nvml_fabric_info *ret_info)
{
    struct nvml_fabric_info info = {.version = NVML_FABRIC_INFO_V2};
    int rc = NVML_CALL(n, nvmlDeviceGetGpuFabricInfoV, d, &info);
    if (rc == NVML_RC_FUNCTION_NOT_FOUND || rc == NVML_RC_ARGUMENT_VERSION_MISMATCH)
        rc = read_fabric_v1(n, d, &info);
    if (rc == NVML_RC_SUCCESS && info.state > NVML_FABRIC_COMPLETED)
        return NVML_RC_IMPLAUSIBLE;
    if (rc == NVML_RC_SUCCESS)
        *ret_info = info;
    return rc;
}
