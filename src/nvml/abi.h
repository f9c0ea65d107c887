/* nvml/abi.h: our own description of the binary interface of libnvidia-ml.so.1: return codes, structs with their exact
 * layout, ids, and the one table of functions. The loader (nvml.c) and the simulated library derive from it, and
 * tools/check_nvml_abi compares it with NVIDIA's own headers. It describes what the library does, on LP64 with natural
 * alignment (x86-64 and aarch64); what to make of an answer is nvml.h's business.
 *
 * To add a function: one line in NVML_SYMBOLS with the exported name (the suffixed one: the plain name is the oldest
 * ABI), its structs with NVML_SIZE and NVML_AT, a row in tools/check_nvml_abi for each new struct, a wrapper in nvml.h.
 */
#ifndef NVML_ABI_H
#define NVML_ABI_H

#include <stddef.h>
#include <stdint.h>

/* Handles are pointers into the library; MIG devices use the same type as whole GPUs. */
struct nvml_device;
struct nvml_gpu_instance;
struct nvml_event_set;
struct nvml_gpm_sample;

/* X(our name, NVIDIA's name, number, what it means, in our words). */
#define NVML_RETURN_CODES(X)                                                                                           \
    X(SUCCESS, NVML_SUCCESS, 0, "success")                                                                             \
    X(UNINITIALIZED, NVML_ERROR_UNINITIALIZED, 1, "NVML is not initialised")                                           \
    X(INVALID_ARGUMENT, NVML_ERROR_INVALID_ARGUMENT, 2, "the driver refuses an argument")                              \
    X(NOT_SUPPORTED, NVML_ERROR_NOT_SUPPORTED, 3, "not supported by this device")                                      \
    X(NO_PERMISSION, NVML_ERROR_NO_PERMISSION, 4, "no permission")                                                     \
    X(ALREADY_INITIALIZED, NVML_ERROR_ALREADY_INITIALIZED, 5, "already initialised")                                   \
    X(NOT_FOUND, NVML_ERROR_NOT_FOUND, 6, "not found")                                                                 \
    X(INSUFFICIENT_SIZE, NVML_ERROR_INSUFFICIENT_SIZE, 7, "the buffer is too small")                                   \
    X(INSUFFICIENT_POWER, NVML_ERROR_INSUFFICIENT_POWER, 8, "a power cable of the GPU is not attached")                \
    X(DRIVER_NOT_LOADED, NVML_ERROR_DRIVER_NOT_LOADED, 9, "the NVIDIA driver is not loaded")                           \
    X(TIMEOUT, NVML_ERROR_TIMEOUT, 10, "timed out")                                                                    \
    X(IRQ_ISSUE, NVML_ERROR_IRQ_ISSUE, 11, "the kernel has an interrupt problem with the GPU")                         \
    X(LIBRARY_NOT_FOUND, NVML_ERROR_LIBRARY_NOT_FOUND, 12, "a library that NVML needs was not found")                  \
    X(FUNCTION_NOT_FOUND, NVML_ERROR_FUNCTION_NOT_FOUND, 13, "the driver has no such function")                        \
    X(CORRUPTED_INFOROM, NVML_ERROR_CORRUPTED_INFOROM, 14, "the GPU's infoROM is corrupted")                           \
    X(GPU_IS_LOST, NVML_ERROR_GPU_IS_LOST, 15, "the GPU has fallen off the bus or is otherwise lost")                  \
    X(RESET_REQUIRED, NVML_ERROR_RESET_REQUIRED, 16, "the GPU needs a reset")                                          \
    X(OPERATING_SYSTEM, NVML_ERROR_OPERATING_SYSTEM, 17, "the operating system or a control group blocks the GPU")     \
    X(LIB_RM_VERSION_MISMATCH, NVML_ERROR_LIB_RM_VERSION_MISMATCH, 18,                                                 \
      "the library and the loaded driver differ in version")                                                           \
    X(IN_USE, NVML_ERROR_IN_USE, 19, "the GPU is in use by another client")                                            \
    X(MEMORY, NVML_ERROR_MEMORY, 20, "not enough memory")                                                              \
    X(NO_DATA, NVML_ERROR_NO_DATA, 21, "no data")                                                                      \
    X(VGPU_ECC_NOT_SUPPORTED, NVML_ERROR_VGPU_ECC_NOT_SUPPORTED, 22, "vGPU does not work with ECC on")                 \
    X(INSUFFICIENT_RESOURCES, NVML_ERROR_INSUFFICIENT_RESOURCES, 23, "the driver is out of a resource")                \
    X(FREQ_NOT_SUPPORTED, NVML_ERROR_FREQ_NOT_SUPPORTED, 24, "the frequency is not supported")                         \
    X(ARGUMENT_VERSION_MISMATCH, NVML_ERROR_ARGUMENT_VERSION_MISMATCH, 25,                                             \
      "the driver does not know this struct version")                                                                  \
    X(DEPRECATED, NVML_ERROR_DEPRECATED, 26, "the driver has withdrawn the function")                                  \
    X(NOT_READY, NVML_ERROR_NOT_READY, 27, "not ready yet")                                                            \
    X(GPU_NOT_FOUND, NVML_ERROR_GPU_NOT_FOUND, 28, "no GPU was found")                                                 \
    X(INVALID_STATE, NVML_ERROR_INVALID_STATE, 29, "not possible in the present state")                                \
    X(RESET_TYPE_NOT_SUPPORTED, NVML_ERROR_RESET_TYPE_NOT_SUPPORTED, 30, "the reset type is not supported")            \
    X(UNKNOWN, NVML_ERROR_UNKNOWN, 999, "unknown error inside the driver")

enum nvml_rc {
#define X(name, theirs, number, text) NVML_RC_##name = (number),
    NVML_RETURN_CODES(X)
#undef X
};

/* "No value" in 64- and 32-bit fields of otherwise successful answers. */
#define NVML_NONE_U64 UINT64_MAX
#define NVML_NONE_U32 UINT32_MAX

/* Buffers to pass. NVML never truncates: it returns INSUFFICIENT_SIZE. */
enum {
    NVML_NAME_MAX = 96,
    NVML_UUID_MAX = 96,
    NVML_SERIAL_MAX = 30,
    NVML_VBIOS_MAX = 32,
    NVML_VERSION_MAX = 80,
    NVML_BUS_ID_MAX = 32,
    NVML_BUS_ID_LEGACY_MAX = 16,
};

/* The first word of versioned structs. GPM structs hold a plain 1 instead (NVML_GPM_VERSION). */
#define NVML_VERSION_WORD(type, n) ((uint32_t)sizeof(type) | (uint32_t)(n) << 24)
#define NVML_SIZE(type, bytes)     _Static_assert(sizeof(type) == (bytes), "size of " #type)
#define NVML_AT(type, member, at)  _Static_assert(offsetof(type, member) == (at), "offset of " #type "." #member)

/* nvmlPciInfo_t. PciInfo_v3 fills all of it; v2 and the plain function know only the first part and write at most the
 * bytes before `bus_id`, so pass a zeroed one. bus_id is "00000000:3B:00.0": 8-digit domain, upper-case hex. */
struct nvml_pci_info {
    char bus_id_legacy[NVML_BUS_ID_LEGACY_MAX];
    uint32_t domain, bus, device;
    uint32_t pci_device_id; /* device << 16 | vendor */
    uint32_t pci_subsystem_id;
    char bus_id[NVML_BUS_ID_MAX];
};
NVML_SIZE(struct nvml_pci_info, 68);
NVML_AT(struct nvml_pci_info, domain, 16);
NVML_AT(struct nvml_pci_info, pci_device_id, 28);
NVML_AT(struct nvml_pci_info, pci_subsystem_id, 32);
NVML_AT(struct nvml_pci_info, bus_id, 36);

/* nvmlMemory_t and nvmlBAR1Memory_t (the members have the same places). */
struct nvml_memory {
    uint64_t total_bytes, free_bytes, used_bytes; /* used: since R510 with the driver's reserve, before without */
};
NVML_SIZE(struct nvml_memory, 24);
NVML_AT(struct nvml_memory, free_bytes, 8);
NVML_AT(struct nvml_memory, used_bytes, 16);

/* nvmlMemory_v2_t; version = NVML_MEMORY_V2. total = reserved + free + used. */
struct nvml_memory_v2 {
    uint32_t version;
    uint64_t total_bytes, reserved_bytes, free_bytes, used_bytes;
};
NVML_SIZE(struct nvml_memory_v2, 40);
NVML_AT(struct nvml_memory_v2, total_bytes, 8);
NVML_AT(struct nvml_memory_v2, reserved_bytes, 16);
NVML_AT(struct nvml_memory_v2, free_bytes, 24);
NVML_AT(struct nvml_memory_v2, used_bytes, 32);
#define NVML_MEMORY_V2 NVML_VERSION_WORD(struct nvml_memory_v2, 2)

/* nvmlUtilization_t, percent of the last sample period (1/6 to 1 s by product). */
struct nvml_utilization {
    uint32_t gpu, memory; /* memory: time spent reading or writing, not how full it is */
};
NVML_SIZE(struct nvml_utilization, 8);
NVML_AT(struct nvml_utilization, memory, 4);

/* nvmlTemperature_v1_t; version = NVML_TEMPERATURE_V1. */
struct nvml_temperature {
    uint32_t version, sensor;
    int32_t celsius;
};
NVML_SIZE(struct nvml_temperature, 12);
NVML_AT(struct nvml_temperature, sensor, 4);
NVML_AT(struct nvml_temperature, celsius, 8);
#define NVML_TEMPERATURE_V1 NVML_VERSION_WORD(struct nvml_temperature, 1)

/* nvmlValueType_t and nvmlValue_t. */
enum nvml_value_type {
    NVML_VALUE_DOUBLE = 0,
    NVML_VALUE_U32 = 1,
    NVML_VALUE_ULONG = 2,
    NVML_VALUE_U64 = 3,
    NVML_VALUE_I64 = 4,
    NVML_VALUE_I32 = 5,
    NVML_VALUE_U16 = 6,
};
union nvml_value {
    double as_double;
    uint32_t as_u32;
    unsigned long as_ulong;
    uint64_t as_u64;
    int64_t as_i64;
    int32_t as_i32;
    uint16_t as_u16;
};
NVML_SIZE(union nvml_value, 8);

/* nvmlSample_t. */
struct nvml_sample {
    uint64_t time_us; /* wall clock, since 1970 */
    union nvml_value value;
};
NVML_SIZE(struct nvml_sample, 16);
NVML_AT(struct nvml_sample, value, 8);

/* nvmlFieldValue_t. The caller sets field_id and scope_id and zeroes the rest; each answer has its own rc. */
struct nvml_field_value {
    uint32_t field_id, scope_id;
    int64_t time_us, latency_us;
    uint32_t value_type; /* enum nvml_value_type */
    int32_t rc;
    union nvml_value value;
};
NVML_SIZE(struct nvml_field_value, 40);
NVML_AT(struct nvml_field_value, scope_id, 4);
NVML_AT(struct nvml_field_value, time_us, 8);
NVML_AT(struct nvml_field_value, latency_us, 16);
NVML_AT(struct nvml_field_value, value_type, 24);
NVML_AT(struct nvml_field_value, rc, 28);
NVML_AT(struct nvml_field_value, value, 32);

/* nvmlProcessInfo_v1_t: what the un-suffixed process functions write. */
struct nvml_process_v1 {
    uint32_t pid;
    uint64_t used_bytes; /* NVML_NONE_U64 where unknown */
};
NVML_SIZE(struct nvml_process_v1, 16);
NVML_AT(struct nvml_process_v1, used_bytes, 8);

/* nvmlProcessInfo_v2_t: what _v2 and _v3 write. Drivers 535.43 up to, not including, 535.86 write 32-byte elements from
 * _v3: use _v2 there. */
struct nvml_process {
    uint32_t pid;
    uint64_t used_bytes;
    uint32_t gpu_instance_id, compute_instance_id; /* NVML_NONE_U32 outside MIG */
};
NVML_SIZE(struct nvml_process, 24);
NVML_AT(struct nvml_process, used_bytes, 8);
NVML_AT(struct nvml_process, gpu_instance_id, 16);
NVML_AT(struct nvml_process, compute_instance_id, 20);

/* nvmlProcessUtilizationSample_t, percent. */
struct nvml_process_utilization {
    uint32_t pid;
    uint64_t time_us;
    uint32_t sm, memory, encoder, decoder;
};
NVML_SIZE(struct nvml_process_utilization, 32);
NVML_AT(struct nvml_process_utilization, time_us, 8);
NVML_AT(struct nvml_process_utilization, sm, 16);
NVML_AT(struct nvml_process_utilization, memory, 20);
NVML_AT(struct nvml_process_utilization, encoder, 24);
NVML_AT(struct nvml_process_utilization, decoder, 28);

/* nvmlDeviceAttributes_t, of a MIG device. */
struct nvml_attributes {
    uint32_t multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
    uint32_t gpu_instance_slices, compute_instance_slices;
    uint64_t memory_mib;
};
NVML_SIZE(struct nvml_attributes, 40);
NVML_AT(struct nvml_attributes, copy_engines, 4);
NVML_AT(struct nvml_attributes, decoders, 8);
NVML_AT(struct nvml_attributes, encoders, 12);
NVML_AT(struct nvml_attributes, jpegs, 16);
NVML_AT(struct nvml_attributes, ofas, 20);
NVML_AT(struct nvml_attributes, gpu_instance_slices, 24);
NVML_AT(struct nvml_attributes, compute_instance_slices, 28);
NVML_AT(struct nvml_attributes, memory_mib, 32);

/* nvmlGpuInstanceInfo_t with its nvmlGpuInstancePlacement_t: memory slices from `start` on. */
struct nvml_gpu_instance_info {
    struct nvml_device *device;
    uint32_t id, profile_id;
    uint32_t start, size;
};
NVML_SIZE(struct nvml_gpu_instance_info, 24);
NVML_AT(struct nvml_gpu_instance_info, id, 8);
NVML_AT(struct nvml_gpu_instance_info, profile_id, 12);
NVML_AT(struct nvml_gpu_instance_info, start, 16);
NVML_AT(struct nvml_gpu_instance_info, size, 20);

/* nvmlEventData_t. nvmlEventSetWait (un-suffixed) writes only the first 24 bytes. */
struct nvml_event_data {
    struct nvml_device *device;
    uint64_t type;                                 /* one NVML_EVENT_ bit */
    uint64_t data;                                 /* the Xid */
    uint32_t gpu_instance_id, compute_instance_id; /* NVML_NONE_U32 = the whole GPU */
};
NVML_SIZE(struct nvml_event_data, 32);
NVML_AT(struct nvml_event_data, type, 8);
NVML_AT(struct nvml_event_data, data, 16);
NVML_AT(struct nvml_event_data, gpu_instance_id, 24);
NVML_AT(struct nvml_event_data, compute_instance_id, 28);

/* nvmlGpmMetric_t. */
struct nvml_gpm_metric {
    uint32_t metric_id;
    int32_t rc;
    double value; /* 0..100 for percentages, MiB/s for throughput */
    struct {
        char *short_name, *long_name, *unit;
    } info;
};
NVML_SIZE(struct nvml_gpm_metric, 40);
NVML_AT(struct nvml_gpm_metric, rc, 4);
NVML_AT(struct nvml_gpm_metric, value, 8);
NVML_AT(struct nvml_gpm_metric, info, 16);

/* nvmlGpmMetricsGet_t: the head, then `metrics_len` used elements. NVIDIA's array has 98, 210, 333 or more elements by
 * header version, so the memory behind this must be NVML_GPM_BUFFER_BYTES long however few metrics are asked for. */
struct nvml_gpm_metrics {
    uint32_t version; /* NVML_GPM_VERSION */
    uint32_t metrics_len;
    struct nvml_gpm_sample *sample1, *sample2;
    struct nvml_gpm_metric metrics[];
};
NVML_SIZE(struct nvml_gpm_metrics, 24);
NVML_AT(struct nvml_gpm_metrics, metrics_len, 4);
NVML_AT(struct nvml_gpm_metrics, sample1, 8);
NVML_AT(struct nvml_gpm_metrics, sample2, 16);
NVML_AT(struct nvml_gpm_metrics, metrics, 24);
enum { NVML_GPM_VERSION = 1, NVML_GPM_BUFFER_BYTES = 32 * 1024 };

/* nvmlGpmSupport_t. */
struct nvml_gpm_support {
    uint32_t version; /* NVML_GPM_VERSION */
    uint32_t is_supported;
};
NVML_SIZE(struct nvml_gpm_support, 8);
NVML_AT(struct nvml_gpm_support, is_supported, 4);

/* nvmlGpuFabricInfo_t. */
struct nvml_fabric_info_v1 {
    uint8_t cluster_uuid[16];
    int32_t status; /* an rc, meaningful when state is COMPLETED */
    uint32_t clique_id;
    uint8_t state; /* enum nvml_fabric_state */
};
NVML_SIZE(struct nvml_fabric_info_v1, 28);
NVML_AT(struct nvml_fabric_info_v1, status, 16);
NVML_AT(struct nvml_fabric_info_v1, clique_id, 20);
NVML_AT(struct nvml_fabric_info_v1, state, 24);

/* nvmlGpuFabricInfo_v2_t; version = NVML_FABRIC_INFO_V2. */
struct nvml_fabric_info {
    uint32_t version;
    uint8_t cluster_uuid[16];
    int32_t status;
    uint32_t clique_id;
    uint8_t state;
    uint32_t health_mask;
};
NVML_SIZE(struct nvml_fabric_info, 36);
NVML_AT(struct nvml_fabric_info, cluster_uuid, 4);
NVML_AT(struct nvml_fabric_info, status, 20);
NVML_AT(struct nvml_fabric_info, clique_id, 24);
NVML_AT(struct nvml_fabric_info, state, 28);
NVML_AT(struct nvml_fabric_info, health_mask, 32);
#define NVML_FABRIC_INFO_V2 NVML_VERSION_WORD(struct nvml_fabric_info, 2)

/* Enumerations. X(our constant, NVIDIA's constant, number). */
#define NVML_CONSTANTS(X)                                                                                              \
    X(NVML_SENSOR_GPU, NVML_TEMPERATURE_GPU, 0)                                                                        \
    X(NVML_THRESHOLD_SHUTDOWN, NVML_TEMPERATURE_THRESHOLD_SHUTDOWN, 0)                                                 \
    X(NVML_THRESHOLD_SLOWDOWN, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN, 1)                                                 \
    X(NVML_THRESHOLD_MEM_MAX, NVML_TEMPERATURE_THRESHOLD_MEM_MAX, 2)                                                   \
    X(NVML_THRESHOLD_GPU_MAX, NVML_TEMPERATURE_THRESHOLD_GPU_MAX, 3)                                                   \
    X(NVML_CLK_GRAPHICS, NVML_CLOCK_GRAPHICS, 0)                                                                       \
    X(NVML_CLK_SM, NVML_CLOCK_SM, 1)                                                                                   \
    X(NVML_CLK_MEM, NVML_CLOCK_MEM, 2)                                                                                 \
    X(NVML_CLK_VIDEO, NVML_CLOCK_VIDEO, 3)                                                                             \
    X(NVML_PCIE_TX, NVML_PCIE_UTIL_TX_BYTES, 0)                                                                        \
    X(NVML_PCIE_RX, NVML_PCIE_UTIL_RX_BYTES, 1)                                                                        \
    X(NVML_ECC_CORRECTED, NVML_MEMORY_ERROR_TYPE_CORRECTED, 0)                                                         \
    X(NVML_ECC_UNCORRECTED, NVML_MEMORY_ERROR_TYPE_UNCORRECTED, 1)                                                     \
    X(NVML_COUNT_VOLATILE, NVML_VOLATILE_ECC, 0)                                                                       \
    X(NVML_COUNT_AGGREGATE, NVML_AGGREGATE_ECC, 1)                                                                     \
    X(NVML_SAMPLES_POWER, NVML_TOTAL_POWER_SAMPLES, 0)                                                                 \
    X(NVML_SAMPLES_GPU_UTIL, NVML_GPU_UTILIZATION_SAMPLES, 1)                                                          \
    X(NVML_SAMPLES_MEM_UTIL, NVML_MEMORY_UTILIZATION_SAMPLES, 2)                                                       \
    X(NVML_SAMPLES_ENC_UTIL, NVML_ENC_UTILIZATION_SAMPLES, 3)                                                          \
    X(NVML_SAMPLES_DEC_UTIL, NVML_DEC_UTILIZATION_SAMPLES, 4)                                                          \
    X(NVML_VIRT_NONE, NVML_GPU_VIRTUALIZATION_MODE_NONE, 0)                                                            \
    X(NVML_VIRT_PASSTHROUGH, NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH, 1)                                              \
    X(NVML_VIRT_VGPU_GUEST, NVML_GPU_VIRTUALIZATION_MODE_VGPU, 2)                                                      \
    X(NVML_VIRT_VGPU_HOST, NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU, 3)                                                  \
    X(NVML_VIRT_VSGA_HOST, NVML_GPU_VIRTUALIZATION_MODE_HOST_VSGA, 4)                                                  \
    X(NVML_MIG_OFF, NVML_DEVICE_MIG_DISABLE, 0)                                                                        \
    X(NVML_MIG_ON, NVML_DEVICE_MIG_ENABLE, 1)                                                                          \
    X(NVML_ARCH_KEPLER, NVML_DEVICE_ARCH_KEPLER, 2)                                                                    \
    X(NVML_ARCH_MAXWELL, NVML_DEVICE_ARCH_MAXWELL, 3)                                                                  \
    X(NVML_ARCH_PASCAL, NVML_DEVICE_ARCH_PASCAL, 4)                                                                    \
    X(NVML_ARCH_VOLTA, NVML_DEVICE_ARCH_VOLTA, 5)                                                                      \
    X(NVML_ARCH_TURING, NVML_DEVICE_ARCH_TURING, 6)                                                                    \
    X(NVML_ARCH_AMPERE, NVML_DEVICE_ARCH_AMPERE, 7)                                                                    \
    X(NVML_ARCH_ADA, NVML_DEVICE_ARCH_ADA, 8)                                                                          \
    X(NVML_ARCH_HOPPER, NVML_DEVICE_ARCH_HOPPER, 9)                                                                    \
    X(NVML_ARCH_BLACKWELL, NVML_DEVICE_ARCH_BLACKWELL, 10)                                                             \
    X(NVML_FABRIC_UNSUPPORTED, NVML_GPU_FABRIC_STATE_NOT_SUPPORTED, 0)                                                 \
    X(NVML_FABRIC_NOT_STARTED, NVML_GPU_FABRIC_STATE_NOT_STARTED, 1)                                                   \
    X(NVML_FABRIC_IN_PROGRESS, NVML_GPU_FABRIC_STATE_IN_PROGRESS, 2)                                                   \
    X(NVML_FABRIC_COMPLETED, NVML_GPU_FABRIC_STATE_COMPLETED, 3)

enum nvml_constant {
#define X(name, theirs, number) name = (number),
    NVML_CONSTANTS(X)
#undef X
};

/* Reasons for clocks below the maximum: bits of Current{Throttle,ClocksEvent}Reasons. X(our name, NVIDIA's, bit). */
#define NVML_CLOCK_REASONS(X)                                                                                          \
    X(GPU_IDLE, nvmlClocksThrottleReasonGpuIdle, 0x1)                                                                  \
    X(APPLICATIONS_CLOCKS_SETTING, nvmlClocksThrottleReasonApplicationsClocksSetting, 0x2)                             \
    X(SW_POWER_CAP, nvmlClocksThrottleReasonSwPowerCap, 0x4)                                                           \
    X(HW_SLOWDOWN, nvmlClocksThrottleReasonHwSlowdown, 0x8)                                                            \
    X(SYNC_BOOST, nvmlClocksThrottleReasonSyncBoost, 0x10)                                                             \
    X(SW_THERMAL_SLOWDOWN, nvmlClocksThrottleReasonSwThermalSlowdown, 0x20)                                            \
    X(HW_THERMAL_SLOWDOWN, nvmlClocksThrottleReasonHwThermalSlowdown, 0x40)                                            \
    X(HW_POWER_BRAKE_SLOWDOWN, nvmlClocksThrottleReasonHwPowerBrakeSlowdown, 0x80)                                     \
    X(DISPLAY_CLOCK_SETTING, nvmlClocksThrottleReasonDisplayClockSetting, 0x100)

enum nvml_clock_reason {
#define X(name, theirs, bit) NVML_REASON_##name = (bit),
    NVML_CLOCK_REASONS(X)
#undef X
};

/* Event types: bits of the mask for RegisterEvents. X(our name, NVIDIA's, bit). */
#define NVML_EVENT_TYPES(X)                                                                                            \
    X(SINGLE_BIT_ECC, nvmlEventTypeSingleBitEccError, 0x1)                                                             \
    X(DOUBLE_BIT_ECC, nvmlEventTypeDoubleBitEccError, 0x2)                                                             \
    X(PSTATE, nvmlEventTypePState, 0x4)                                                                                \
    X(XID_CRITICAL, nvmlEventTypeXidCriticalError, 0x8)                                                                \
    X(CLOCK, nvmlEventTypeClock, 0x10)                                                                                 \
    X(POWER_SOURCE_CHANGE, nvmlEventTypePowerSourceChange, 0x80)                                                       \
    X(MIG_CONFIG_CHANGE, nvmlEventMigConfigChange, 0x100)                                                              \
    X(SINGLE_BIT_ECC_STORM, nvmlEventTypeSingleBitEccErrorStorm, 0x200)                                                \
    X(DRAM_RETIREMENT, nvmlEventTypeDramRetirementEvent, 0x400)                                                        \
    X(DRAM_RETIREMENT_FAILURE, nvmlEventTypeDramRetirementFailure, 0x800)                                              \
    X(NON_FATAL_POISON, nvmlEventTypeNonFatalPoisonError, 0x1000)                                                      \
    X(FATAL_POISON, nvmlEventTypeFatalPoisonError, 0x2000)                                                             \
    X(GPU_UNAVAILABLE, nvmlEventTypeGpuUnavailableError, 0x4000)                                                       \
    X(GPU_RECOVERY_ACTION, nvmlEventTypeGpuRecoveryAction, 0x8000)

enum nvml_event_type {
#define X(name, theirs, bit) NVML_EVENT_##name = (bit),
    NVML_EVENT_TYPES(X)
#undef X
};

/* Field ids for GetFieldValues. None above 250: those have moved between versions of NVML (12.9, 13.0, 13.1), and 199
 * and 200 were swapped once. X(our name, NVIDIA's name, id). */
#define NVML_FIELDS(X)                                                                                                 \
    X(RETIRED_SBE, NVML_FI_DEV_RETIRED_SBE, 29)                                                                        \
    X(RETIRED_DBE, NVML_FI_DEV_RETIRED_DBE, 30)                                                                        \
    X(RETIRED_PENDING, NVML_FI_DEV_RETIRED_PENDING, 31)                                                                \
    X(LIMITED_NS_POWER, NVML_FI_DEV_PERF_POLICY_POWER, 74)                                                             \
    X(LIMITED_NS_THERMAL, NVML_FI_DEV_PERF_POLICY_THERMAL, 75)                                                         \
    X(LIMITED_NS_SYNC_BOOST, NVML_FI_DEV_PERF_POLICY_SYNC_BOOST, 76)                                                   \
    X(LIMITED_NS_BOARD, NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT, 77)                                                       \
    X(LIMITED_NS_LOW_UTILIZATION, NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION, 78)                                         \
    X(LIMITED_NS_RELIABILITY, NVML_FI_DEV_PERF_POLICY_RELIABILITY, 79)                                                 \
    X(MEMORY_TEMP, NVML_FI_DEV_MEMORY_TEMP, 82)                                                                        \
    X(TOTAL_ENERGY, NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, 83)                                                          \
    X(NVLINK_COUNT, NVML_FI_DEV_NVLINK_LINK_COUNT, 91)                                                                 \
    X(PCIE_REPLAYS, NVML_FI_DEV_PCIE_REPLAY_COUNTER, 94)                                                               \
    X(NVLINK_DATA_TX_KIB, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, 138)                                                  \
    X(NVLINK_DATA_RX_KIB, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, 139)                                                  \
    X(NVLINK_RAW_TX_KIB, NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_TX, 140)                                                    \
    X(NVLINK_RAW_RX_KIB, NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX, 141)                                                    \
    X(REMAPPED_CORRECTABLE, NVML_FI_DEV_REMAPPED_COR, 142)                                                             \
    X(REMAPPED_UNCORRECTABLE, NVML_FI_DEV_REMAPPED_UNC, 143)                                                           \
    X(REMAPPED_PENDING, NVML_FI_DEV_REMAPPED_PENDING, 144)                                                             \
    X(REMAPPED_FAILURE, NVML_FI_DEV_REMAPPED_FAILURE, 145)                                                             \
    X(C2C_LINK_COUNT, NVML_FI_DEV_C2C_LINK_COUNT, 170)                                                                 \
    X(POWER_AVERAGE, NVML_FI_DEV_POWER_AVERAGE, 185)                                                                   \
    X(POWER_INSTANT, NVML_FI_DEV_POWER_INSTANT, 186)                                                                   \
    X(POWER_MIN_LIMIT, NVML_FI_DEV_POWER_MIN_LIMIT, 187)                                                               \
    X(POWER_MAX_LIMIT, NVML_FI_DEV_POWER_MAX_LIMIT, 188)                                                               \
    X(POWER_DEFAULT_LIMIT, NVML_FI_DEV_POWER_DEFAULT_LIMIT, 189)                                                       \
    X(POWER_CURRENT_LIMIT, NVML_FI_DEV_POWER_CURRENT_LIMIT, 190)                                                       \
    X(POWER_REQUESTED_LIMIT, NVML_FI_DEV_POWER_REQUESTED_LIMIT, 192)                                                   \
    X(TLIMIT_SHUTDOWN, NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT, 193)                                                   \
    X(TLIMIT_SLOWDOWN, NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT, 194)                                                   \
    X(TLIMIT_MEM_MAX, NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT, 195)                                                     \
    X(TLIMIT_GPU_MAX, NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT, 196)                                                     \
    X(PCIE_TX_BYTES, NVML_FI_DEV_PCIE_COUNT_TX_BYTES, 197)                                                             \
    X(PCIE_RX_BYTES, NVML_FI_DEV_PCIE_COUNT_RX_BYTES, 198)                                                             \
    X(NVLINK5_TX_PACKETS, NVML_FI_DEV_NVLINK_COUNT_XMIT_PACKETS, 201)                                                  \
    X(NVLINK5_TX_BYTES, NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES, 202)                                                      \
    X(NVLINK5_RX_PACKETS, NVML_FI_DEV_NVLINK_COUNT_RCV_PACKETS, 203)                                                   \
    X(NVLINK5_RX_BYTES, NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES, 204)                                                       \
    X(RECOVERY_ACTION, NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, 230)

enum nvml_field {
#define X(name, theirs, id) NVML_FIELD_##name = (id),
    NVML_FIELDS(X)
#undef X
};

/* scope_id: a link number, or this for all links; 0 GPU, 1 module, 2 memory for power. */
#define NVML_SCOPE_ALL UINT32_MAX
enum { NVML_SCOPE_GPU = 0, NVML_SCOPE_MODULE = 1, NVML_SCOPE_MEMORY = 2 };

/* GPM metric ids (Hopper and later). X(our name, NVIDIA's name, id). */
#define NVML_GPM_METRICS(X)                                                                                            \
    X(GRAPHICS_UTIL, NVML_GPM_METRIC_GRAPHICS_UTIL, 1)                                                                 \
    X(SM_UTIL, NVML_GPM_METRIC_SM_UTIL, 2)                                                                             \
    X(SM_OCCUPANCY, NVML_GPM_METRIC_SM_OCCUPANCY, 3)                                                                   \
    X(INTEGER_UTIL, NVML_GPM_METRIC_INTEGER_UTIL, 4)                                                                   \
    X(ANY_TENSOR_UTIL, NVML_GPM_METRIC_ANY_TENSOR_UTIL, 5)                                                             \
    X(DFMA_TENSOR_UTIL, NVML_GPM_METRIC_DFMA_TENSOR_UTIL, 6)                                                           \
    X(HMMA_TENSOR_UTIL, NVML_GPM_METRIC_HMMA_TENSOR_UTIL, 7)                                                           \
    X(IMMA_TENSOR_UTIL, NVML_GPM_METRIC_IMMA_TENSOR_UTIL, 9)                                                           \
    X(DRAM_BW_UTIL, NVML_GPM_METRIC_DRAM_BW_UTIL, 10)                                                                  \
    X(FP64_UTIL, NVML_GPM_METRIC_FP64_UTIL, 11)                                                                        \
    X(FP32_UTIL, NVML_GPM_METRIC_FP32_UTIL, 12)                                                                        \
    X(FP16_UTIL, NVML_GPM_METRIC_FP16_UTIL, 13)                                                                        \
    X(PCIE_TX, NVML_GPM_METRIC_PCIE_TX_PER_SEC, 20)                                                                    \
    X(PCIE_RX, NVML_GPM_METRIC_PCIE_RX_PER_SEC, 21)                                                                    \
    X(NVLINK_RX, NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC, 60)                                                          \
    X(NVLINK_TX, NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC, 61)

enum nvml_gpm_id {
#define X(name, theirs, id) NVML_GPM_##name = (id),
    NVML_GPM_METRICS(X)
#undef X
};

/* Every function that we call. X(need, exported name, return type, parameters); need is REQUIRED or OPTIONAL.
 * All return an NVML return code but nvmlErrorString. "in/out n": capacity in, count out (needed count with rc 7). */
#define NVML_SYMBOLS(X)                                                                                                \
    X(REQUIRED, nvmlInit_v2, int, (void))                                                                              \
    X(REQUIRED, nvmlShutdown, int, (void))                                                                             \
    X(REQUIRED, nvmlErrorString, const char *, (int rc))                                                               \
    X(OPTIONAL, nvmlSystemGetDriverVersion, int, (char *text, uint32_t size))                                          \
    X(OPTIONAL, nvmlSystemGetNVMLVersion, int, (char *text, uint32_t size))                                            \
    X(OPTIONAL, nvmlSystemGetCudaDriverVersion, int, (int32_t * version))                                              \
    X(REQUIRED, nvmlDeviceGetCount_v2, int, (uint32_t * n))                                                            \
    X(REQUIRED, nvmlDeviceGetHandleByIndex_v2, int, (uint32_t index, struct nvml_device * *device))                    \
    X(OPTIONAL, nvmlDeviceGetHandleByUUID, int, (const char *uuid, struct nvml_device **device))                       \
    X(OPTIONAL, nvmlDeviceGetHandleByPciBusId_v2, int, (const char *bus_id, struct nvml_device **device))              \
    X(OPTIONAL, nvmlDeviceGetHandleByPciBusId, int, (const char *bus_id, struct nvml_device **device))                 \
    X(REQUIRED, nvmlDeviceGetUUID, int, (struct nvml_device * device, char *text, uint32_t size))                      \
    X(OPTIONAL, nvmlDeviceGetName, int, (struct nvml_device * device, char *text, uint32_t size))                      \
    X(OPTIONAL, nvmlDeviceGetSerial, int, (struct nvml_device * device, char *text, uint32_t size))                    \
    X(OPTIONAL, nvmlDeviceGetVbiosVersion, int, (struct nvml_device * device, char *text, uint32_t size))              \
    X(OPTIONAL, nvmlDeviceGetIndex, int, (struct nvml_device * device, uint32_t * index))                              \
    X(OPTIONAL, nvmlDeviceGetMinorNumber, int, (struct nvml_device * device, uint32_t * minor))                        \
    X(OPTIONAL, nvmlDeviceGetArchitecture, int, (struct nvml_device * device, uint32_t * architecture))                \
    X(OPTIONAL, nvmlDeviceGetCudaComputeCapability, int,                                                               \
      (struct nvml_device * device, int32_t * major, int32_t * minor))                                                 \
    X(OPTIONAL, nvmlDeviceGetVirtualizationMode, int, (struct nvml_device * device, uint32_t * mode))                  \
    X(OPTIONAL, nvmlDeviceGetPciInfo_v3, int, (struct nvml_device * device, struct nvml_pci_info * pci))               \
    X(OPTIONAL, nvmlDeviceGetPciInfo_v2, int, (struct nvml_device * device, struct nvml_pci_info * pci))               \
    X(OPTIONAL, nvmlDeviceGetPciInfo, int, (struct nvml_device * device, struct nvml_pci_info * pci))                  \
    X(REQUIRED, nvmlDeviceGetMemoryInfo, int, (struct nvml_device * device, struct nvml_memory * memory))              \
    X(OPTIONAL, nvmlDeviceGetMemoryInfo_v2, int, (struct nvml_device * device, struct nvml_memory_v2 * memory))        \
    X(OPTIONAL, nvmlDeviceGetBAR1MemoryInfo, int, (struct nvml_device * device, struct nvml_memory * memory))          \
    X(OPTIONAL, nvmlDeviceGetUtilizationRates, int,                                                                    \
      (struct nvml_device * device, struct nvml_utilization * utilization))                                            \
    X(OPTIONAL, nvmlDeviceGetEncoderUtilization, int,                                                                  \
      (struct nvml_device * device, uint32_t * percent, uint32_t * period_us))                                         \
    X(OPTIONAL, nvmlDeviceGetDecoderUtilization, int,                                                                  \
      (struct nvml_device * device, uint32_t * percent, uint32_t * period_us))                                         \
    X(OPTIONAL, nvmlDeviceGetJpgUtilization, int,                                                                      \
      (struct nvml_device * device, uint32_t * percent, uint32_t * period_us))                                         \
    X(OPTIONAL, nvmlDeviceGetOfaUtilization, int,                                                                      \
      (struct nvml_device * device, uint32_t * percent, uint32_t * period_us))                                         \
    X(OPTIONAL, nvmlDeviceGetSamples, int,                                                                             \
      (struct nvml_device * device, uint32_t kind, uint64_t since_us, uint32_t * value_type, uint32_t * n,             \
       struct nvml_sample * samples))                                                                                  \
    X(OPTIONAL, nvmlDeviceGetTemperature, int, (struct nvml_device * device, uint32_t sensor, uint32_t * celsius))     \
    X(OPTIONAL, nvmlDeviceGetTemperatureV, int, (struct nvml_device * device, struct nvml_temperature * temperature))  \
    X(OPTIONAL, nvmlDeviceGetTemperatureThreshold, int,                                                                \
      (struct nvml_device * device, uint32_t threshold, uint32_t * celsius))                                           \
    X(OPTIONAL, nvmlDeviceGetFanSpeed, int, (struct nvml_device * device, uint32_t * percent))                         \
    X(OPTIONAL, nvmlDeviceGetPowerUsage, int, (struct nvml_device * device, uint32_t * mw))                            \
    X(OPTIONAL, nvmlDeviceGetEnforcedPowerLimit, int, (struct nvml_device * device, uint32_t * mw))                    \
    X(OPTIONAL, nvmlDeviceGetPowerManagementLimit, int, (struct nvml_device * device, uint32_t * mw))                  \
    X(OPTIONAL, nvmlDeviceGetTotalEnergyConsumption, int, (struct nvml_device * device, uint64_t * mj))                \
    X(OPTIONAL, nvmlDeviceGetClockInfo, int, (struct nvml_device * device, uint32_t clock, uint32_t * mhz))            \
    X(OPTIONAL, nvmlDeviceGetMaxClockInfo, int, (struct nvml_device * device, uint32_t clock, uint32_t * mhz))         \
    X(OPTIONAL, nvmlDeviceGetCurrentClocksEventReasons, int, (struct nvml_device * device, uint64_t * reasons))        \
    X(OPTIONAL, nvmlDeviceGetCurrentClocksThrottleReasons, int, (struct nvml_device * device, uint64_t * reasons))     \
    X(OPTIONAL, nvmlDeviceGetPcieThroughput, int,                                                                      \
      (struct nvml_device * device, uint32_t counter, uint32_t * kb_per_s))                                            \
    X(OPTIONAL, nvmlDeviceGetPcieReplayCounter, int, (struct nvml_device * device, uint32_t * count))                  \
    X(OPTIONAL, nvmlDeviceGetCurrPcieLinkGeneration, int, (struct nvml_device * device, uint32_t * generation))        \
    X(OPTIONAL, nvmlDeviceGetCurrPcieLinkWidth, int, (struct nvml_device * device, uint32_t * lanes))                  \
    X(OPTIONAL, nvmlDeviceGetMaxPcieLinkGeneration, int, (struct nvml_device * device, uint32_t * generation))         \
    X(OPTIONAL, nvmlDeviceGetMaxPcieLinkWidth, int, (struct nvml_device * device, uint32_t * lanes))                   \
    X(OPTIONAL, nvmlDeviceGetNvLinkState, int, (struct nvml_device * device, uint32_t link, uint32_t * is_active))     \
    X(OPTIONAL, nvmlDeviceGetEccMode, int, (struct nvml_device * device, uint32_t * current, uint32_t * pending))      \
    X(OPTIONAL, nvmlDeviceGetTotalEccErrors, int,                                                                      \
      (struct nvml_device * device, uint32_t error, uint32_t counter, uint64_t * count))                               \
    X(OPTIONAL, nvmlDeviceGetRemappedRows, int,                                                                        \
      (struct nvml_device * device, uint32_t * correctable, uint32_t * uncorrectable, uint32_t * is_pending,           \
       uint32_t * is_failed))                                                                                          \
    X(OPTIONAL, nvmlDeviceGetFieldValues, int,                                                                         \
      (struct nvml_device * device, int32_t n, struct nvml_field_value * values))                                      \
    X(OPTIONAL, nvmlEventSetCreate, int, (struct nvml_event_set * *set))                                               \
    X(OPTIONAL, nvmlEventSetFree, int, (struct nvml_event_set * set))                                                  \
    X(OPTIONAL, nvmlDeviceGetSupportedEventTypes, int, (struct nvml_device * device, uint64_t * types))                \
    X(OPTIONAL, nvmlDeviceRegisterEvents, int,                                                                         \
      (struct nvml_device * device, uint64_t types, struct nvml_event_set * set))                                      \
    X(OPTIONAL, nvmlEventSetWait_v2, int,                                                                              \
      (struct nvml_event_set * set, struct nvml_event_data * data, uint32_t timeout_ms))                               \
    X(OPTIONAL, nvmlEventSetWait, int,                                                                                 \
      (struct nvml_event_set * set, struct nvml_event_data * data, uint32_t timeout_ms))                               \
    X(OPTIONAL, nvmlDeviceGetMigMode, int, (struct nvml_device * device, uint32_t * current, uint32_t * pending))      \
    X(OPTIONAL, nvmlDeviceGetMaxMigDeviceCount, int, (struct nvml_device * device, uint32_t * n))                      \
    X(OPTIONAL, nvmlDeviceGetMigDeviceHandleByIndex, int,                                                              \
      (struct nvml_device * device, uint32_t index, struct nvml_device * *mig))                                        \
    X(OPTIONAL, nvmlDeviceGetDeviceHandleFromMigDeviceHandle, int,                                                     \
      (struct nvml_device * mig, struct nvml_device * *device))                                                        \
    X(OPTIONAL, nvmlDeviceIsMigDeviceHandle, int, (struct nvml_device * device, uint32_t * is_mig))                    \
    X(OPTIONAL, nvmlDeviceGetGpuInstanceId, int, (struct nvml_device * mig, uint32_t * id))                            \
    X(OPTIONAL, nvmlDeviceGetComputeInstanceId, int, (struct nvml_device * mig, uint32_t * id))                        \
    X(OPTIONAL, nvmlDeviceGetGpuInstanceById, int,                                                                     \
      (struct nvml_device * device, uint32_t id, struct nvml_gpu_instance * *instance))                                \
    X(OPTIONAL, nvmlGpuInstanceGetInfo, int,                                                                           \
      (struct nvml_gpu_instance * instance, struct nvml_gpu_instance_info * info))                                     \
    X(OPTIONAL, nvmlDeviceGetAttributes_v2, int, (struct nvml_device * mig, struct nvml_attributes * attributes))      \
    X(OPTIONAL, nvmlDeviceGetComputeRunningProcesses_v3, int,                                                          \
      (struct nvml_device * device, uint32_t * n, struct nvml_process * processes))                                    \
    X(OPTIONAL, nvmlDeviceGetComputeRunningProcesses_v2, int,                                                          \
      (struct nvml_device * device, uint32_t * n, struct nvml_process * processes))                                    \
    X(OPTIONAL, nvmlDeviceGetComputeRunningProcesses, int,                                                             \
      (struct nvml_device * device, uint32_t * n, struct nvml_process_v1 * processes))                                 \
    X(OPTIONAL, nvmlDeviceGetGraphicsRunningProcesses_v3, int,                                                         \
      (struct nvml_device * device, uint32_t * n, struct nvml_process * processes))                                    \
    X(OPTIONAL, nvmlDeviceGetGraphicsRunningProcesses_v2, int,                                                         \
      (struct nvml_device * device, uint32_t * n, struct nvml_process * processes))                                    \
    X(OPTIONAL, nvmlDeviceGetGraphicsRunningProcesses, int,                                                            \
      (struct nvml_device * device, uint32_t * n, struct nvml_process_v1 * processes))                                 \
    X(OPTIONAL, nvmlDeviceGetMPSComputeRunningProcesses_v3, int,                                                       \
      (struct nvml_device * device, uint32_t * n, struct nvml_process * processes))                                    \
    X(OPTIONAL, nvmlDeviceGetMPSComputeRunningProcesses_v2, int,                                                       \
      (struct nvml_device * device, uint32_t * n, struct nvml_process * processes))                                    \
    X(OPTIONAL, nvmlDeviceGetMPSComputeRunningProcesses, int,                                                          \
      (struct nvml_device * device, uint32_t * n, struct nvml_process_v1 * processes))                                 \
    X(OPTIONAL, nvmlDeviceGetProcessUtilization, int,                                                                  \
      (struct nvml_device * device, struct nvml_process_utilization * samples, uint32_t * n, uint64_t since_us))       \
    X(OPTIONAL, nvmlGpmQueryDeviceSupport, int, (struct nvml_device * device, struct nvml_gpm_support * support))      \
    X(OPTIONAL, nvmlGpmSampleAlloc, int, (struct nvml_gpm_sample * *sample))                                           \
    X(OPTIONAL, nvmlGpmSampleFree, int, (struct nvml_gpm_sample * sample))                                             \
    X(OPTIONAL, nvmlGpmSampleGet, int, (struct nvml_device * device, struct nvml_gpm_sample * sample))                 \
    X(OPTIONAL, nvmlGpmMigSampleGet, int,                                                                              \
      (struct nvml_device * device, uint32_t gpu_instance_id, struct nvml_gpm_sample * sample))                        \
    X(OPTIONAL, nvmlGpmMetricsGet, int, (struct nvml_gpm_metrics * metrics))                                           \
    X(OPTIONAL, nvmlDeviceGetGpuFabricInfoV, int, (struct nvml_device * device, struct nvml_fabric_info * info))       \
    X(OPTIONAL, nvmlDeviceGetGpuFabricInfo, int, (struct nvml_device * device, struct nvml_fabric_info_v1 * info))

#endif
