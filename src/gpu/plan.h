/* The plan of readings: for each field of a snapshot, which NVML call, field value, GPM metric or sampled call gives
 * it, in order of preference. Facts only; plan.c executes it. */
#ifndef GPU_PLAN_H
#define GPU_PLAN_H

#include "gpu/core.h"

/* The calls, each with its numbers: X(id). call.c has one function for each. */
#define GPU_CALLS(X)                                                                                                   \
    X(UTILIZATION)     /* gpu, memory: percent */                                                                      \
    X(MEMORY)          /* used, free, reserved, total: bytes; reserved absent with old libraries */                    \
    X(TEMPERATURE)     /* degrees Celsius */                                                                           \
    X(POWER)           /* mW */                                                                                        \
    X(POWER_LIMIT)     /* mW */                                                                                        \
    X(ENERGY)          /* mJ */                                                                                        \
    X(SM_CLOCK)        /* MHz */                                                                                       \
    X(MEMORY_CLOCK)    /* MHz */                                                                                       \
    X(CLOCK_REASONS)   /* bits */                                                                                      \
    X(PCIE_REPLAYS)    /* count */                                                                                     \
    X(PCIE_LINK)       /* generation, width */                                                                         \
    X(NVLINK)          /* bytes of both directions over all links since the driver was loaded */                       \
    X(ENCODER)         /* percent */                                                                                   \
    X(DECODER)         /* percent */                                                                                   \
    X(ECC_CORRECTED)   /* count since the driver was loaded */                                                         \
    X(ECC_UNCORRECTED) /* count since the driver was loaded */                                                         \
    X(REMAPPED_ROWS)   /* correctable, uncorrectable, is pending, has failed */                                        \
    X(FAN)             /* percent */

enum gpu_call {
#define X(id) GPU_CALL_##id,
    GPU_CALLS(X)
#undef X
        GPU_CALL_COUNT
};
enum { GPU_CALL_NUMBERS = 4 };

/* Run one call; NaN among the numbers means that this one is absent. Returns the NVML code. */
int gpu_call_run(struct gpu_core *core, struct nvml_device *handle, enum gpu_call call,
                 double ret_numbers[GPU_CALL_NUMBERS]);

enum gpu_source {
    GPU_FROM_CALL,    /* id: enum gpu_call; place: which of its numbers */
    GPU_FROM_FIELD,   /* id: field id; place: scope, of one batch per device and cycle */
    GPU_FROM_GPM,     /* id: GPM metric id */
    GPU_FROM_SAMPLED, /* id: NVML_PCIE_TX or RX; blocks 20 ms, so one GPU and direction a cycle, and only while wanted
                       */
};
enum gpu_form { GPU_VALUE, GPU_RATE }; /* RATE: a cumulative counter */
enum gpu_pace { GPU_EACH_CYCLE, GPU_SLOWLY };

enum {
    GPU_ON_GPU = 1 << SNAPSHOT_GPU,
    GPU_ON_PARENT = 1 << SNAPSHOT_MIG_PARENT,
    GPU_ON_MIG = 1 << SNAPSHOT_MIG,
    GPU_ON_BOARD = GPU_ON_GPU | GPU_ON_PARENT,
    GPU_ON_ALL = GPU_ON_BOARD | GPU_ON_MIG,
    GPU_ON_LOAD = GPU_ON_GPU | GPU_ON_MIG, /* what a MIG parent has no share of its own in */
};

/* X(field, source, id, place, devices, pace, form, scale to the field's unit). The rows of a field stand together, best
 * source first; a source that a device does not have is passed over until NVML is opened anew.
 * GPM and PcieThroughput speak MiB/s and KB/s (1000 bytes, as DCGM takes it), fields 138 and 139 KiB (nvml.h). */
#define GPU_PLAN(X)                                                                                                    \
    X(UTILIZATION, CALL, GPU_CALL_UTILIZATION, 0, GPU_ON_GPU, EACH_CYCLE, VALUE, 1)                                    \
    X(MEMORY_UTILIZATION, CALL, GPU_CALL_UTILIZATION, 1, GPU_ON_GPU, EACH_CYCLE, VALUE, 1)                             \
    X(MEMORY_USED, CALL, GPU_CALL_MEMORY, 0, GPU_ON_ALL, EACH_CYCLE, VALUE, 1)                                         \
    X(MEMORY_FREE, CALL, GPU_CALL_MEMORY, 1, GPU_ON_ALL, EACH_CYCLE, VALUE, 1)                                         \
    X(MEMORY_RESERVED, CALL, GPU_CALL_MEMORY, 2, GPU_ON_ALL, EACH_CYCLE, VALUE, 1)                                     \
    X(MEMORY_TOTAL, CALL, GPU_CALL_MEMORY, 3, GPU_ON_ALL, EACH_CYCLE, VALUE, 1)                                        \
    X(TEMPERATURE, CALL, GPU_CALL_TEMPERATURE, 0, GPU_ON_BOARD, EACH_CYCLE, VALUE, 1)                                  \
    X(MEMORY_TEMPERATURE, FIELD, NVML_FIELD_MEMORY_TEMP, 0, GPU_ON_BOARD, EACH_CYCLE, VALUE, 1)                        \
    X(POWER, CALL, GPU_CALL_POWER, 0, GPU_ON_BOARD, EACH_CYCLE, VALUE, 1e-3)                                           \
    X(POWER, FIELD, NVML_FIELD_POWER_AVERAGE, NVML_SCOPE_GPU, GPU_ON_BOARD, EACH_CYCLE, VALUE, 1e-3)                   \
    X(POWER, FIELD, NVML_FIELD_POWER_INSTANT, NVML_SCOPE_GPU, GPU_ON_BOARD, EACH_CYCLE, VALUE, 1e-3)                   \
    X(POWER_LIMIT, CALL, GPU_CALL_POWER_LIMIT, 0, GPU_ON_BOARD, SLOWLY, VALUE, 1e-3)                                   \
    X(POWER_LIMIT, FIELD, NVML_FIELD_POWER_CURRENT_LIMIT, NVML_SCOPE_GPU, GPU_ON_BOARD, SLOWLY, VALUE, 1e-3)           \
    X(ENERGY, CALL, GPU_CALL_ENERGY, 0, GPU_ON_BOARD, EACH_CYCLE, VALUE, 1e-3)                                         \
    X(SM_CLOCK, CALL, GPU_CALL_SM_CLOCK, 0, GPU_ON_BOARD, EACH_CYCLE, VALUE, 1e6)                                      \
    X(MEMORY_CLOCK, CALL, GPU_CALL_MEMORY_CLOCK, 0, GPU_ON_BOARD, EACH_CYCLE, VALUE, 1e6)                              \
    X(THROTTLE_REASONS, CALL, GPU_CALL_CLOCK_REASONS, 0, GPU_ON_BOARD, EACH_CYCLE, VALUE, 1)                           \
    X(VIOLATION_POWER, FIELD, NVML_FIELD_LIMITED_NS_POWER, 0, GPU_ON_BOARD, SLOWLY, VALUE, 1e-9)                       \
    X(VIOLATION_THERMAL, FIELD, NVML_FIELD_LIMITED_NS_THERMAL, 0, GPU_ON_BOARD, SLOWLY, VALUE, 1e-9)                   \
    X(VIOLATION_SYNC_BOOST, FIELD, NVML_FIELD_LIMITED_NS_SYNC_BOOST, 0, GPU_ON_BOARD, SLOWLY, VALUE, 1e-9)             \
    X(VIOLATION_BOARD_LIMIT, FIELD, NVML_FIELD_LIMITED_NS_BOARD, 0, GPU_ON_BOARD, SLOWLY, VALUE, 1e-9)                 \
    X(VIOLATION_LOW_UTILIZATION, FIELD, NVML_FIELD_LIMITED_NS_LOW_UTILIZATION, 0, GPU_ON_BOARD, SLOWLY, VALUE, 1e-9)   \
    X(VIOLATION_RELIABILITY, FIELD, NVML_FIELD_LIMITED_NS_RELIABILITY, 0, GPU_ON_BOARD, SLOWLY, VALUE, 1e-9)           \
    X(PCIE_TX, FIELD, NVML_FIELD_PCIE_TX_BYTES, 0, GPU_ON_BOARD, EACH_CYCLE, RATE, 1)                                  \
    X(PCIE_TX, GPM, NVML_GPM_PCIE_TX, 0, GPU_ON_GPU, EACH_CYCLE, VALUE, 1048576)                                       \
    X(PCIE_TX, SAMPLED, NVML_PCIE_TX, 0, GPU_ON_BOARD, EACH_CYCLE, VALUE, 1000)                                        \
    X(PCIE_RX, FIELD, NVML_FIELD_PCIE_RX_BYTES, 0, GPU_ON_BOARD, EACH_CYCLE, RATE, 1)                                  \
    X(PCIE_RX, GPM, NVML_GPM_PCIE_RX, 0, GPU_ON_GPU, EACH_CYCLE, VALUE, 1048576)                                       \
    X(PCIE_RX, SAMPLED, NVML_PCIE_RX, 0, GPU_ON_BOARD, EACH_CYCLE, VALUE, 1000)                                        \
    X(PCIE_REPLAYS, FIELD, NVML_FIELD_PCIE_REPLAYS, 0, GPU_ON_BOARD, SLOWLY, VALUE, 1)                                 \
    X(PCIE_REPLAYS, CALL, GPU_CALL_PCIE_REPLAYS, 0, GPU_ON_BOARD, SLOWLY, VALUE, 1)                                    \
    X(PCIE_LINK_GENERATION, CALL, GPU_CALL_PCIE_LINK, 0, GPU_ON_BOARD, SLOWLY, VALUE, 1)                               \
    X(PCIE_LINK_WIDTH, CALL, GPU_CALL_PCIE_LINK, 1, GPU_ON_BOARD, SLOWLY, VALUE, 1)                                    \
    X(NVLINK_TX, FIELD, NVML_FIELD_NVLINK_DATA_TX_KIB, NVML_SCOPE_ALL, GPU_ON_BOARD, EACH_CYCLE, RATE, 1024)           \
    X(NVLINK_TX, FIELD, NVML_FIELD_NVLINK5_TX_BYTES, NVML_SCOPE_ALL, GPU_ON_BOARD, EACH_CYCLE, RATE, 1)                \
    X(NVLINK_TX, GPM, NVML_GPM_NVLINK_TX, 0, GPU_ON_GPU, EACH_CYCLE, VALUE, 1048576)                                   \
    X(NVLINK_RX, FIELD, NVML_FIELD_NVLINK_DATA_RX_KIB, NVML_SCOPE_ALL, GPU_ON_BOARD, EACH_CYCLE, RATE, 1024)           \
    X(NVLINK_RX, FIELD, NVML_FIELD_NVLINK5_RX_BYTES, NVML_SCOPE_ALL, GPU_ON_BOARD, EACH_CYCLE, RATE, 1)                \
    X(NVLINK_RX, GPM, NVML_GPM_NVLINK_RX, 0, GPU_ON_GPU, EACH_CYCLE, VALUE, 1048576)                                   \
    X(NVLINK_BYTES, CALL, GPU_CALL_NVLINK, 0, GPU_ON_BOARD, SLOWLY, VALUE, 1)                                          \
    X(ENCODER_UTILIZATION, CALL, GPU_CALL_ENCODER, 0, GPU_ON_GPU, SLOWLY, VALUE, 1)                                    \
    X(DECODER_UTILIZATION, CALL, GPU_CALL_DECODER, 0, GPU_ON_GPU, SLOWLY, VALUE, 1)                                    \
    X(ECC_CORRECTED, CALL, GPU_CALL_ECC_CORRECTED, 0, GPU_ON_BOARD, SLOWLY, VALUE, 1)                                  \
    X(ECC_UNCORRECTED, CALL, GPU_CALL_ECC_UNCORRECTED, 0, GPU_ON_ALL, SLOWLY, VALUE, 1)                                \
    X(REMAPPED_ROWS_CORRECTABLE, CALL, GPU_CALL_REMAPPED_ROWS, 0, GPU_ON_BOARD, SLOWLY, VALUE, 1)                      \
    X(REMAPPED_ROWS_CORRECTABLE, FIELD, NVML_FIELD_REMAPPED_CORRECTABLE, 0, GPU_ON_BOARD, SLOWLY, VALUE, 1)            \
    X(REMAPPED_ROWS_UNCORRECTABLE, CALL, GPU_CALL_REMAPPED_ROWS, 1, GPU_ON_BOARD, SLOWLY, VALUE, 1)                    \
    X(REMAPPED_ROWS_UNCORRECTABLE, FIELD, NVML_FIELD_REMAPPED_UNCORRECTABLE, 0, GPU_ON_BOARD, SLOWLY, VALUE, 1)        \
    X(REMAPPED_ROWS_PENDING, CALL, GPU_CALL_REMAPPED_ROWS, 2, GPU_ON_BOARD, SLOWLY, VALUE, 1)                          \
    X(REMAPPED_ROWS_PENDING, FIELD, NVML_FIELD_REMAPPED_PENDING, 0, GPU_ON_BOARD, SLOWLY, VALUE, 1)                    \
    X(REMAPPED_ROWS_FAILED, CALL, GPU_CALL_REMAPPED_ROWS, 3, GPU_ON_BOARD, SLOWLY, VALUE, 1)                           \
    X(REMAPPED_ROWS_FAILED, FIELD, NVML_FIELD_REMAPPED_FAILURE, 0, GPU_ON_BOARD, SLOWLY, VALUE, 1)                     \
    X(FAN_SPEED, CALL, GPU_CALL_FAN, 0, GPU_ON_BOARD, SLOWLY, VALUE, 1)                                                \
    X(RECOVERY_ACTION, FIELD, NVML_FIELD_RECOVERY_ACTION, 0, GPU_ON_BOARD, SLOWLY, VALUE, 1)                           \
    X(GRAPHICS_ACTIVITY, GPM, NVML_GPM_GRAPHICS_UTIL, 0, GPU_ON_LOAD, EACH_CYCLE, VALUE, 1)                            \
    X(SM_ACTIVITY, GPM, NVML_GPM_SM_UTIL, 0, GPU_ON_LOAD, EACH_CYCLE, VALUE, 1)                                        \
    X(SM_OCCUPANCY, GPM, NVML_GPM_SM_OCCUPANCY, 0, GPU_ON_LOAD, EACH_CYCLE, VALUE, 1)                                  \
    X(TENSOR_ACTIVITY, GPM, NVML_GPM_ANY_TENSOR_UTIL, 0, GPU_ON_LOAD, EACH_CYCLE, VALUE, 1)                            \
    X(DRAM_ACTIVITY, GPM, NVML_GPM_DRAM_BW_UTIL, 0, GPU_ON_LOAD, EACH_CYCLE, VALUE, 1)

#define GPU_COUNT_ROW(...) +1
enum { GPU_ROW_COUNT = 0 GPU_PLAN(GPU_COUNT_ROW) };
#undef GPU_COUNT_ROW

struct gpu_row {
    enum snapshot_field field;
    enum gpu_source source;
    uint32_t id, place;
    unsigned devices; /* GPU_ON_ bits */
    enum gpu_pace pace;
    enum gpu_form form;
    double scale;
};
extern const struct gpu_row gpu_plan[GPU_ROW_COUNT];

#endif
