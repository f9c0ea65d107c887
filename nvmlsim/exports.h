/* exports: the functions that the simulated library exports. Those that the agent calls are in nvml/abi.h; here are the
 * further ones that other programs need (nvidia-ml-py, nvtop), with their structs, in our own words.
 *
 * To add a function: a line in SIM_SYMBOLS, its definition in the nvml_*.c file of its theme, a row in docs/nvmlsim.md.
 */
#ifndef NVMLSIM_EXPORTS_H
#define NVMLSIM_EXPORTS_H

#include "nvml/abi.h"

/* nvmlPciInfoExt_v1_t */
struct nvml_pci_info_ext {
    uint32_t version, domain, bus, device, pci_device_id, pci_subsystem_id, base_class, sub_class;
    char bus_id[NVML_BUS_ID_MAX];
};
NVML_SIZE(struct nvml_pci_info_ext, 64);
NVML_AT(struct nvml_pci_info_ext, bus_id, 32);

/* nvmlMarginTemperature_v1_t */
struct nvml_margin {
    uint32_t version;
    int32_t celsius;
};
NVML_SIZE(struct nvml_margin, 8);

/* nvmlProcessDetail_v1_t and its list */
struct nvml_process_detail {
    uint32_t pid;
    uint64_t used_bytes;
    uint32_t gpu_instance_id, compute_instance_id;
    uint64_t protected_bytes;
};
NVML_SIZE(struct nvml_process_detail, 32);
struct nvml_process_detail_list {
    uint32_t version, mode, n;
    struct nvml_process_detail *processes;
};
NVML_SIZE(struct nvml_process_detail_list, 24);
NVML_AT(struct nvml_process_detail_list, processes, 16);

/* nvmlProcessUtilizationInfo_v1_t and its list */
struct nvml_process_load {
    uint64_t time_us;
    uint32_t pid, sm, memory, encoder, decoder, jpeg, ofa;
};
NVML_SIZE(struct nvml_process_load, 40);
struct nvml_process_load_list {
    uint32_t version, n;
    uint64_t since_us;
    struct nvml_process_load *processes;
};
NVML_SIZE(struct nvml_process_load_list, 24);

/* nvmlEccErrorCounts_t */
struct nvml_ecc_counts {
    uint64_t l1, l2, device, registers;
};
/* nvmlViolationTime_t */
struct nvml_violation {
    uint64_t reference_us, violation_ns;
};

#define SIM_DEVICE_PARAM struct nvml_device *device

/* nvmlsimName is no function of NVML: that it is there tells that the GPUs are simulated (nvml_is_simulated). */
#define SIM_SYMBOLS(X)                                                                                                 \
    X(nvmlsimName, const char *, (void))                                                                               \
    X(nvmlInit, int, (void))                                                                                           \
    X(nvmlInitWithFlags, int, (uint32_t flags))                                                                        \
    X(nvmlSystemGetCudaDriverVersion_v2, int, (int32_t * version))                                                     \
    X(nvmlSystemGetProcessName, int, (uint32_t pid, char *text, uint32_t size))                                        \
    X(nvmlDeviceGetCount, int, (uint32_t * n))                                                                         \
    X(nvmlDeviceGetHandleByIndex, int, (uint32_t index, struct nvml_device * *device))                                 \
    X(nvmlDeviceGetHandleBySerial, int, (const char *serial, struct nvml_device **device))                             \
    X(nvmlDeviceGetBrand, int, (SIM_DEVICE_PARAM, uint32_t * brand))                                                   \
    X(nvmlDeviceGetBoardId, int, (SIM_DEVICE_PARAM, uint32_t * id))                                                    \
    X(nvmlDeviceGetMultiGpuBoard, int, (SIM_DEVICE_PARAM, uint32_t * is_multi))                                        \
    X(nvmlDeviceGetNumGpuCores, int, (SIM_DEVICE_PARAM, uint32_t * n))                                                 \
    X(nvmlDeviceGetMemoryBusWidth, int, (SIM_DEVICE_PARAM, uint32_t * bits))                                           \
    X(nvmlDeviceGetPersistenceMode, int, (SIM_DEVICE_PARAM, uint32_t * is_on))                                         \
    X(nvmlDeviceGetDisplayMode, int, (SIM_DEVICE_PARAM, uint32_t * is_on))                                             \
    X(nvmlDeviceGetDisplayActive, int, (SIM_DEVICE_PARAM, uint32_t * is_on))                                           \
    X(nvmlDeviceGetComputeMode, int, (SIM_DEVICE_PARAM, uint32_t * mode))                                              \
    X(nvmlDeviceGetPerformanceState, int, (SIM_DEVICE_PARAM, uint32_t * state))                                        \
    X(nvmlDeviceGetPowerState, int, (SIM_DEVICE_PARAM, uint32_t * state))                                              \
    X(nvmlDeviceGetPciInfoExt, int, (SIM_DEVICE_PARAM, struct nvml_pci_info_ext * pci))                                \
    X(nvmlDeviceGetMarginTemperature, int, (SIM_DEVICE_PARAM, struct nvml_margin * margin))                            \
    X(nvmlDeviceGetNumFans, int, (SIM_DEVICE_PARAM, uint32_t * n))                                                     \
    X(nvmlDeviceGetFanSpeed_v2, int, (SIM_DEVICE_PARAM, uint32_t fan, uint32_t * percent))                             \
    X(nvmlDeviceGetPowerManagementMode, int, (SIM_DEVICE_PARAM, uint32_t * is_on))                                     \
    X(nvmlDeviceGetPowerManagementLimitConstraints, int, (SIM_DEVICE_PARAM, uint32_t * min_mw, uint32_t * max_mw))     \
    X(nvmlDeviceGetPowerManagementDefaultLimit, int, (SIM_DEVICE_PARAM, uint32_t * mw))                                \
    X(nvmlDeviceGetApplicationsClock, int, (SIM_DEVICE_PARAM, uint32_t clock, uint32_t * mhz))                         \
    X(nvmlDeviceGetClock, int, (SIM_DEVICE_PARAM, uint32_t clock, uint32_t id, uint32_t * mhz))                        \
    X(nvmlDeviceGetSupportedClocksThrottleReasons, int, (SIM_DEVICE_PARAM, uint64_t * reasons))                        \
    X(nvmlDeviceGetSupportedClocksEventReasons, int, (SIM_DEVICE_PARAM, uint64_t * reasons))                           \
    X(nvmlDeviceGetViolationStatus, int, (SIM_DEVICE_PARAM, uint32_t policy, struct nvml_violation * violation))       \
    X(nvmlDeviceGetGpuMaxPcieLinkGeneration, int, (SIM_DEVICE_PARAM, uint32_t * generation))                           \
    X(nvmlDeviceGetNvLinkVersion, int, (SIM_DEVICE_PARAM, uint32_t link, uint32_t * version))                          \
    X(nvmlDeviceGetNvLinkErrorCounter, int, (SIM_DEVICE_PARAM, uint32_t link, uint32_t counter, uint64_t * count))     \
    X(nvmlDeviceGetDetailedEccErrors, int,                                                                             \
      (SIM_DEVICE_PARAM, uint32_t error, uint32_t counter, struct nvml_ecc_counts * counts))                           \
    X(nvmlDeviceGetMemoryErrorCounter, int,                                                                            \
      (SIM_DEVICE_PARAM, uint32_t error, uint32_t counter, uint32_t location, uint64_t * count))                       \
    X(nvmlDeviceGetRetiredPagesPendingStatus, int, (SIM_DEVICE_PARAM, uint32_t * is_pending))                          \
    X(nvmlDeviceGetAttributes, int, (SIM_DEVICE_PARAM, struct nvml_attributes * attributes))                           \
    X(nvmlDeviceClearFieldValues, int, (SIM_DEVICE_PARAM, int32_t n, struct nvml_field_value * values))                \
    X(nvmlDeviceGetRunningProcessDetailList, int, (SIM_DEVICE_PARAM, struct nvml_process_detail_list * list))          \
    X(nvmlDeviceGetProcessesUtilizationInfo, int, (SIM_DEVICE_PARAM, struct nvml_process_load_list * list))            \
    X(nvmlGpmQueryIfStreamingEnabled, int, (SIM_DEVICE_PARAM, uint32_t * state))                                       \
    X(nvmlGpmSetStreamingEnabled, int, (SIM_DEVICE_PARAM, uint32_t state))

#define SIM_EXPORT __attribute__((visibility("default")))

#define X(need, name, type, parameters) SIM_EXPORT type name parameters;
NVML_SYMBOLS(X)
#undef X
#define X(name, type, parameters) SIM_EXPORT type name parameters;
SIM_SYMBOLS(X)
#undef X

#endif
