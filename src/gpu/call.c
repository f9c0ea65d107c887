/* The calls of the plan: each asks NVML once and gives its numbers, in NVML's own units. */
#include "gpu/plan.h"

#include <math.h>

typedef int run_call(struct gpu_core *core, struct nvml_device *handle, double ret_numbers[GPU_CALL_NUMBERS]);

static int run_utilization(struct gpu_core *core, struct nvml_device *handle, double ret_numbers[GPU_CALL_NUMBERS])
{
    struct nvml_utilization utilization = {0};
    int rc = nvml_read_utilization(core->nvml, handle, &utilization);
    ret_numbers[0] = utilization.gpu;
    ret_numbers[1] = utilization.memory;
    return rc;
}

static int run_memory(struct gpu_core *core, struct nvml_device *handle, double ret_numbers[GPU_CALL_NUMBERS])
{
    struct nvml_memory_reading memory = {0};
    int rc = nvml_read_memory(core->nvml, handle, &memory);
    ret_numbers[0] = (double)memory.used_bytes;
    ret_numbers[1] = (double)memory.free_bytes;
    ret_numbers[2] = memory.has_reserved ? (double)memory.reserved_bytes : (double)NAN;
    ret_numbers[3] = (double)memory.total_bytes;
    return rc;
}

static int run_temperature(struct gpu_core *core, struct nvml_device *handle, double ret_numbers[GPU_CALL_NUMBERS])
{
    int32_t celsius = 0;
    int rc = nvml_read_temperature(core->nvml, handle, &celsius);
    ret_numbers[0] = celsius;
    return rc;
}

static int run_power(struct gpu_core *core, struct nvml_device *handle, double ret_numbers[GPU_CALL_NUMBERS])
{
    uint32_t mw = 0;
    int rc = nvml_read_power(core->nvml, handle, &mw);
    ret_numbers[0] = mw;
    return rc;
}

static int run_power_limit(struct gpu_core *core, struct nvml_device *handle, double ret_numbers[GPU_CALL_NUMBERS])
{
    uint32_t mw = 0;
    int rc = nvml_read_power_limit(core->nvml, handle, &mw);
    ret_numbers[0] = mw;
    return rc;
}

static int run_energy(struct gpu_core *core, struct nvml_device *handle, double ret_numbers[GPU_CALL_NUMBERS])
{
    uint64_t mj = 0;
    int rc = nvml_read_energy(core->nvml, handle, &mj);
    ret_numbers[0] = (double)mj;
    return rc;
}

static int run_clock(struct gpu_core *core, struct nvml_device *handle, uint32_t clock,
                     double ret_numbers[GPU_CALL_NUMBERS])
{
    uint32_t mhz = 0;
    int rc = nvml_read_clock(core->nvml, handle, clock, &mhz);
    ret_numbers[0] = mhz;
    return rc;
}

static int run_sm_clock(struct gpu_core *core, struct nvml_device *handle, double ret_numbers[GPU_CALL_NUMBERS])
{
    return run_clock(core, handle, NVML_CLK_SM, ret_numbers);
}

static int run_memory_clock(struct gpu_core *core, struct nvml_device *handle, double ret_numbers[GPU_CALL_NUMBERS])
{
    return run_clock(core, handle, NVML_CLK_MEM, ret_numbers);
}

static int run_clock_reasons(struct gpu_core *core, struct nvml_device *handle, double ret_numbers[GPU_CALL_NUMBERS])
{
    uint64_t reasons = 0;
    int rc = nvml_read_clock_reasons(core->nvml, handle, &reasons);
    ret_numbers[0] = (double)reasons;
    return rc;
}

static int run_pcie_replays(struct gpu_core *core, struct nvml_device *handle, double ret_numbers[GPU_CALL_NUMBERS])
{
    uint32_t count = 0;
    int rc = nvml_read_pcie_replays(core->nvml, handle, &count);
    ret_numbers[0] = count;
    return rc;
}

static int run_pcie_link(struct gpu_core *core, struct nvml_device *handle, double ret_numbers[GPU_CALL_NUMBERS])
{
    struct nvml_pcie_link link = {0};
    int rc = nvml_read_pcie_link(core->nvml, handle, &link);
    ret_numbers[0] = link.generation;
    ret_numbers[1] = link.width;
    return rc;
}

static int run_nvlink(struct gpu_core *core, struct nvml_device *handle, double ret_numbers[GPU_CALL_NUMBERS])
{
    uint64_t bytes = 0;
    int rc = nvml_read_nvlink_bytes(core->nvml, handle, &bytes);
    ret_numbers[0] = (double)bytes;
    return rc;
}

static int run_engine(struct gpu_core *core, struct nvml_device *handle, enum nvml_engine engine,
                      double ret_numbers[GPU_CALL_NUMBERS])
{
    uint32_t percent = 0;
    int rc = nvml_read_engine(core->nvml, handle, engine, &percent);
    ret_numbers[0] = percent;
    return rc;
}

static int run_encoder(struct gpu_core *core, struct nvml_device *handle, double ret_numbers[GPU_CALL_NUMBERS])
{
    return run_engine(core, handle, NVML_ENGINE_ENCODER, ret_numbers);
}

static int run_decoder(struct gpu_core *core, struct nvml_device *handle, double ret_numbers[GPU_CALL_NUMBERS])
{
    return run_engine(core, handle, NVML_ENGINE_DECODER, ret_numbers);
}

static int run_ecc(struct gpu_core *core, struct nvml_device *handle, uint32_t error,
                   double ret_numbers[GPU_CALL_NUMBERS])
{
    uint64_t count = 0;
    int rc = nvml_read_ecc(core->nvml, handle, error, NVML_COUNT_VOLATILE, &count);
    ret_numbers[0] = (double)count;
    return rc;
}

static int run_ecc_corrected(struct gpu_core *core, struct nvml_device *handle, double ret_numbers[GPU_CALL_NUMBERS])
{
    return run_ecc(core, handle, NVML_ECC_CORRECTED, ret_numbers);
}

static int run_ecc_uncorrected(struct gpu_core *core, struct nvml_device *handle, double ret_numbers[GPU_CALL_NUMBERS])
{
    return run_ecc(core, handle, NVML_ECC_UNCORRECTED, ret_numbers);
}

static int run_remapped_rows(struct gpu_core *core, struct nvml_device *handle, double ret_numbers[GPU_CALL_NUMBERS])
{
    struct nvml_remapped_rows rows = {0};
    int rc = nvml_read_remapped_rows(core->nvml, handle, &rows);
    ret_numbers[0] = rows.correctable;
    ret_numbers[1] = rows.uncorrectable;
    ret_numbers[2] = rows.is_pending;
    ret_numbers[3] = rows.is_failed;
    return rc;
}

static int run_fan(struct gpu_core *core, struct nvml_device *handle, double ret_numbers[GPU_CALL_NUMBERS])
{
    uint32_t percent = 0;
    int rc = nvml_read_fan(core->nvml, handle, &percent);
    ret_numbers[0] = percent;
    return rc;
}

int gpu_call_run(struct gpu_core *core, struct nvml_device *handle, enum gpu_call call,
                 double ret_numbers[GPU_CALL_NUMBERS])
{
    static run_call *const runs[GPU_CALL_COUNT] = {
        [GPU_CALL_UTILIZATION] = run_utilization,
        [GPU_CALL_MEMORY] = run_memory,
        [GPU_CALL_TEMPERATURE] = run_temperature,
        [GPU_CALL_POWER] = run_power,
        [GPU_CALL_POWER_LIMIT] = run_power_limit,
        [GPU_CALL_ENERGY] = run_energy,
        [GPU_CALL_SM_CLOCK] = run_sm_clock,
        [GPU_CALL_MEMORY_CLOCK] = run_memory_clock,
        [GPU_CALL_CLOCK_REASONS] = run_clock_reasons,
        [GPU_CALL_PCIE_REPLAYS] = run_pcie_replays,
        [GPU_CALL_PCIE_LINK] = run_pcie_link,
        [GPU_CALL_NVLINK] = run_nvlink,
        [GPU_CALL_ENCODER] = run_encoder,
        [GPU_CALL_DECODER] = run_decoder,
        [GPU_CALL_ECC_CORRECTED] = run_ecc_corrected,
        [GPU_CALL_ECC_UNCORRECTED] = run_ecc_uncorrected,
        [GPU_CALL_REMAPPED_ROWS] = run_remapped_rows,
        [GPU_CALL_FAN] = run_fan,
    };
    return runs[call](core, handle, ret_numbers);
}
