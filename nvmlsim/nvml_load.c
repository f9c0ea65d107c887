/* Memory, utilisation, temperature, power, energy and clocks. */
#include "nvmlsim/sim.h"

#include <math.h>

static double now(const struct sim_call *c, enum signal signal)
{
    return player_value(c->player, c->index, signal, c->t_s);
}

/* ---- memory ---- */

#define MIB_BYTES ((uint64_t)1 << 20)

/* What is used; a MIG device has its GPU instance's memory and no reserve. */
static struct nvml_memory_v2 memory_of(const struct sim_call *c)
{
    const struct board *b = c->gpu->board;
    double used_mib = c->instance ? player_instance_value(c->gpu, c->instance, SIGNAL_MEMORY_USED, c->t_s)
                                  : now(c, SIGNAL_MEMORY_USED);
    struct nvml_memory_v2 m = {
        .total_bytes = (c->instance ? c->instance->profile.memory_mib : b->memory_mib) * MIB_BYTES,
        .reserved_bytes = c->instance ? 0 : b->reserved_mib * MIB_BYTES,
        .used_bytes = (uint64_t)llround(used_mib * (double)MIB_BYTES),
    };
    m.free_bytes = m.total_bytes - m.reserved_bytes - m.used_bytes;
    return m;
}

int nvmlDeviceGetMemoryInfo_v2(struct nvml_device *device, struct nvml_memory_v2 *memory)
{
    SIM_DEVICE(c, device, SIM_ANY);
    if (!memory)
        return NVML_RC_INVALID_ARGUMENT;
    if (memory->version != NVML_MEMORY_V2)
        return NVML_RC_ARGUMENT_VERSION_MISMATCH;
    struct nvml_memory_v2 m = memory_of(&c);
    m.version = NVML_MEMORY_V2;
    *memory = m;
    return NVML_RC_SUCCESS;
}

/* Since R510 the reserve counts as used here; before, it was part of what is free. */
int nvmlDeviceGetMemoryInfo(struct nvml_device *device, struct nvml_memory *memory)
{
    SIM_DEVICE(c, device, SIM_ANY);
    if (!memory)
        return NVML_RC_INVALID_ARGUMENT;
    struct nvml_memory_v2 m = memory_of(&c);
    bool is_old = c.player->scenario->driver_major < 510;
    *memory = (struct nvml_memory){
        .total_bytes = m.total_bytes,
        .free_bytes = m.free_bytes + (is_old ? m.reserved_bytes : 0),
        .used_bytes = m.used_bytes + (is_old ? 0 : m.reserved_bytes),
    };
    return NVML_RC_SUCCESS;
}

/* The window is as large as the memory on these boards. */
int nvmlDeviceGetBAR1MemoryInfo(struct nvml_device *device, struct nvml_memory *memory)
{
    SIM_DEVICE(c, device, SIM_ANY);
    if (!memory)
        return NVML_RC_INVALID_ARGUMENT;
    uint64_t total = 256, mib = c.instance ? c.instance->profile.memory_mib : c.gpu->board->memory_mib;
    while (total < mib)
        total *= 2;
    *memory = (struct nvml_memory){total * MIB_BYTES, (total - 2) * MIB_BYTES, 2 * MIB_BYTES};
    return NVML_RC_SUCCESS;
}

/* ---- utilisation ---- */

enum { SAMPLE_PERIOD_US = 166667 };

/* NVML has no utilisation of a GPU that is divided, nor of its parts. */
static bool is_divided(const struct sim_call *c)
{
    return c->layout->is_enabled;
}

int nvmlDeviceGetUtilizationRates(struct nvml_device *device, struct nvml_utilization *utilization)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    if (!utilization)
        return NVML_RC_INVALID_ARGUMENT;
    if (is_divided(&c))
        return NVML_RC_NOT_SUPPORTED;
    *utilization = (struct nvml_utilization){sim_round(now(&c, SIGNAL_UTILIZATION)),
                                             sim_round(now(&c, SIGNAL_MEMORY_UTILIZATION))};
    return NVML_RC_SUCCESS;
}

static int engine(const struct sim_call *c, enum signal signal, bool is_there, uint32_t *percent, uint32_t *period_us)
{
    if (!percent || !period_us)
        return NVML_RC_INVALID_ARGUMENT;
    if (is_divided(c) || !is_there)
        return NVML_RC_NOT_SUPPORTED;
    *percent = sim_round(now(c, signal));
    *period_us = SAMPLE_PERIOD_US;
    return NVML_RC_SUCCESS;
}

int nvmlDeviceGetEncoderUtilization(struct nvml_device *device, uint32_t *percent, uint32_t *period_us)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    return engine(&c, SIGNAL_ENCODER, true, percent, period_us); /* 0 also on boards without an encoder */
}

int nvmlDeviceGetDecoderUtilization(struct nvml_device *device, uint32_t *percent, uint32_t *period_us)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    return engine(&c, SIGNAL_DECODER, true, percent, period_us);
}

int nvmlDeviceGetJpgUtilization(struct nvml_device *device, uint32_t *percent, uint32_t *period_us)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    return engine(&c, SIGNAL_JPEG, (c.gpu->board->can & CAN_JPEG) != 0, percent, period_us);
}

int nvmlDeviceGetOfaUtilization(struct nvml_device *device, uint32_t *percent, uint32_t *period_us)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    return engine(&c, SIGNAL_OFA, (c.gpu->board->can & CAN_OFA) != 0, percent, period_us);
}

/* Rings of samples, six a second: what they hold, how many, and what they are called. */
static const struct ring {
    enum signal signal;
    uint32_t n;
    double factor;
} rings[] = {
    {SIGNAL_POWER, 120, 1000},     {SIGNAL_UTILIZATION, 100, 1}, {SIGNAL_MEMORY_UTILIZATION, 100, 1},
    {SIGNAL_ENCODER, 100, 1},      {SIGNAL_DECODER, 100, 1},     {SIGNAL_SM_CLOCK, 100, 1},
    {SIGNAL_MEMORY_CLOCK, 100, 1},
};

static uint32_t fill_ring(const struct sim_call *c, const struct ring *ring, double since_s, uint32_t room,
                          struct nvml_sample *samples)
{
    double period = SAMPLE_PERIOD_US * 1e-6;
    int64_t last = (int64_t)floor(c->t_s / period), first = last < ring->n ? 0 : last - ring->n + 1;
    uint32_t n = 0;
    for (int64_t k = first; k <= last; k++) {
        double t = (double)k * period;
        if (t <= since_s + 1e-6 || n == room) /* microseconds round */
            continue;
        samples[n] = (struct nvml_sample){.time_us = sim_time_us(c, t)};
        samples[n++].value.as_u32 = sim_round(player_value(c->player, c->index, ring->signal, t) * ring->factor);
    }
    return n;
}

int nvmlDeviceGetSamples(struct nvml_device *device, uint32_t kind, uint64_t since_us, uint32_t *value_type,
                         uint32_t *n, struct nvml_sample *samples)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    if (!n || !value_type)
        return NVML_RC_INVALID_ARGUMENT;
    if (kind >= ARRAY_LEN(rings) || is_divided(&c))
        return NVML_RC_NOT_SUPPORTED;
    const struct ring *ring = &rings[kind];
    *value_type = NVML_VALUE_U32;
    if (!samples)
        return sim_u32(n, ring->n);
    if (*n < ring->n)
        return NVML_RC_INSUFFICIENT_SIZE;
    *n = fill_ring(&c, ring, since_us ? sim_time_s(&c, since_us) : -1, *n, samples);
    return *n ? NVML_RC_SUCCESS : NVML_RC_NOT_FOUND;
}

/* ---- temperature ---- */

enum { SHUTDOWN_C = 92, SLOWDOWN_C = 89, GPU_MAX_C = 87, MEM_MAX_C = 95 };

int nvmlDeviceGetTemperature(struct nvml_device *device, uint32_t sensor, uint32_t *celsius)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    if (sensor != NVML_SENSOR_GPU)
        return NVML_RC_INVALID_ARGUMENT;
    return sim_u32(celsius, (uint32_t)(int32_t)lround(now(&c, SIGNAL_TEMPERATURE)));
}

int nvmlDeviceGetTemperatureV(struct nvml_device *device, struct nvml_temperature *temperature)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    if (!temperature || temperature->sensor != NVML_SENSOR_GPU)
        return NVML_RC_INVALID_ARGUMENT;
    if (temperature->version != NVML_TEMPERATURE_V1)
        return NVML_RC_ARGUMENT_VERSION_MISMATCH;
    temperature->celsius = (int32_t)lround(now(&c, SIGNAL_TEMPERATURE));
    return NVML_RC_SUCCESS;
}

int nvmlDeviceGetMarginTemperature(struct nvml_device *device, struct nvml_margin *margin)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    if (!margin)
        return NVML_RC_INVALID_ARGUMENT;
    if (margin->version != NVML_VERSION_WORD(struct nvml_margin, 1))
        return NVML_RC_ARGUMENT_VERSION_MISMATCH;
    if (!(c.gpu->board->can & CAN_TLIMIT))
        return NVML_RC_NOT_SUPPORTED;
    margin->celsius = (int32_t)lround(GPU_MAX_C - now(&c, SIGNAL_TEMPERATURE));
    return NVML_RC_SUCCESS;
}

int nvmlDeviceGetTemperatureThreshold(struct nvml_device *device, uint32_t threshold, uint32_t *celsius)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    bool has_memory = (c.gpu->board->can & CAN_MEMORY_TEMP) != 0;
    switch (threshold) {
    case NVML_THRESHOLD_SHUTDOWN:
        return sim_u32(celsius, SHUTDOWN_C);
    case NVML_THRESHOLD_SLOWDOWN:
        return sim_u32(celsius, SLOWDOWN_C);
    case NVML_THRESHOLD_MEM_MAX:
        return has_memory ? sim_u32(celsius, MEM_MAX_C) : NVML_RC_NOT_SUPPORTED;
    case NVML_THRESHOLD_GPU_MAX:
        return sim_u32(celsius, GPU_MAX_C);
    default:
        return NVML_RC_NOT_SUPPORTED;
    }
}

/* All these boards are cooled by the chassis. */
int nvmlDeviceGetFanSpeed(struct nvml_device *device, uint32_t *percent)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    return percent ? NVML_RC_NOT_SUPPORTED : NVML_RC_INVALID_ARGUMENT;
}

int nvmlDeviceGetFanSpeed_v2(struct nvml_device *device, uint32_t fan, uint32_t *percent)
{
    (void)fan;
    SIM_DEVICE(c, device, SIM_WHOLE);
    return percent ? NVML_RC_NOT_SUPPORTED : NVML_RC_INVALID_ARGUMENT;
}

int nvmlDeviceGetNumFans(struct nvml_device *device, uint32_t *n)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    return sim_u32(n, 0);
}

/* ---- power and energy ---- */

/* A mean over a second on Ampere and later, except A100; there and before, the moment. */
int nvmlDeviceGetPowerUsage(struct nvml_device *device, uint32_t *mw)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    bool is_mean = (c.gpu->board->can & CAN_POWER_AVERAGE) != 0;
    double watts = is_mean ? player_mean(c.player, c.index, SIGNAL_POWER, c.t_s, 1) : now(&c, SIGNAL_POWER);
    return sim_u32(mw, sim_round(watts * 1000));
}

int nvmlDeviceGetEnforcedPowerLimit(struct nvml_device *device, uint32_t *mw)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    return sim_u32(mw, c.gpu->board->limit_w * 1000);
}

int nvmlDeviceGetPowerManagementLimit(struct nvml_device *device, uint32_t *mw)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    return sim_u32(mw, c.gpu->board->limit_w * 1000);
}

int nvmlDeviceGetPowerManagementDefaultLimit(struct nvml_device *device, uint32_t *mw)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    return sim_u32(mw, c.gpu->board->limit_w * 1000);
}

int nvmlDeviceGetPowerManagementLimitConstraints(struct nvml_device *device, uint32_t *min_mw, uint32_t *max_mw)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    if (!min_mw || !max_mw)
        return NVML_RC_INVALID_ARGUMENT;
    *min_mw = c.gpu->board->limit_min_w * 1000;
    *max_mw = c.gpu->board->limit_w * 1000;
    return NVML_RC_SUCCESS;
}

int nvmlDeviceGetPowerManagementMode(struct nvml_device *device, uint32_t *is_on)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    return sim_u32(is_on, 1);
}

int nvmlDeviceGetTotalEnergyConsumption(struct nvml_device *device, uint64_t *mj)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    return sim_u64(mj, (uint64_t)(player_counter(c.player, c.index, SIGNAL_POWER, c.t_s) * 1000));
}

/* ---- clocks ---- */

static int clock_signal(uint32_t clock, enum signal *ret)
{
    static const enum signal signals[] = {SIGNAL_SM_CLOCK, SIGNAL_SM_CLOCK, SIGNAL_MEMORY_CLOCK, SIGNAL_VIDEO_CLOCK};
    if (clock >= ARRAY_LEN(signals))
        return NVML_RC_INVALID_ARGUMENT;
    *ret = signals[clock];
    return NVML_RC_SUCCESS;
}

static int clock_now(const struct sim_call *c, uint32_t clock, uint32_t *mhz)
{
    enum signal signal;
    int rc = clock_signal(clock, &signal);
    return rc == NVML_RC_SUCCESS ? sim_u32(mhz, sim_round(now(c, signal))) : rc;
}

static int clock_top(const struct sim_call *c, uint32_t clock, uint32_t *mhz)
{
    const struct board *b = c->gpu->board;
    enum signal signal;
    int rc = clock_signal(clock, &signal);
    if (rc != NVML_RC_SUCCESS)
        return rc;
    return sim_u32(mhz, signal == SIGNAL_MEMORY_CLOCK  ? b->memory_clock_mhz
                        : signal == SIGNAL_VIDEO_CLOCK ? b->video_clock_mhz
                                                       : b->sm_clock_mhz);
}

int nvmlDeviceGetClockInfo(struct nvml_device *device, uint32_t clock, uint32_t *mhz)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    return clock_now(&c, clock, mhz);
}

int nvmlDeviceGetMaxClockInfo(struct nvml_device *device, uint32_t clock, uint32_t *mhz)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    return clock_top(&c, clock, mhz);
}

int nvmlDeviceGetApplicationsClock(struct nvml_device *device, uint32_t clock, uint32_t *mhz)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    return clock == NVML_CLK_VIDEO ? NVML_RC_NOT_SUPPORTED : clock_top(&c, clock, mhz);
}

int nvmlDeviceGetClock(struct nvml_device *device, uint32_t clock, uint32_t id, uint32_t *mhz)
{
    enum { CLOCK_CURRENT = 0, CLOCK_CUSTOMER_MAX = 3 };
    SIM_DEVICE(c, device, SIM_WHOLE);
    return id == CLOCK_CURRENT        ? clock_now(&c, clock, mhz)
           : id <= CLOCK_CUSTOMER_MAX ? clock_top(&c, clock, mhz)
                                      : NVML_RC_INVALID_ARGUMENT;
}

int nvmlDeviceGetCurrentClocksEventReasons(struct nvml_device *device, uint64_t *reasons)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    return sim_u64(reasons, player_throttle(c.player, c.index, c.t_s));
}

int nvmlDeviceGetCurrentClocksThrottleReasons(struct nvml_device *device, uint64_t *reasons)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    return sim_u64(reasons, player_throttle(c.player, c.index, c.t_s));
}

enum { ALL_REASONS = 0x1ff };

int nvmlDeviceGetSupportedClocksEventReasons(struct nvml_device *device, uint64_t *reasons)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    return sim_u64(reasons, ALL_REASONS);
}

int nvmlDeviceGetSupportedClocksThrottleReasons(struct nvml_device *device, uint64_t *reasons)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    return sim_u64(reasons, ALL_REASONS);
}

/* Nanoseconds for which a reason held the clocks down. Policies as in fields 74..79. */
int nvmlDeviceGetViolationStatus(struct nvml_device *device, uint32_t policy, struct nvml_violation *violation)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    static const uint64_t bits[] = {
        NVML_REASON_SW_POWER_CAP,
        NVML_REASON_SW_THERMAL_SLOWDOWN | NVML_REASON_HW_THERMAL_SLOWDOWN,
        NVML_REASON_SYNC_BOOST,
        NVML_REASON_HW_POWER_BRAKE_SLOWDOWN,
    };
    if (!violation)
        return NVML_RC_INVALID_ARGUMENT;
    if (policy >= ARRAY_LEN(bits))
        return NVML_RC_NOT_SUPPORTED;
    violation->reference_us = sim_time_us(&c, c.t_s);
    violation->violation_ns = (uint64_t)(player_throttled_s(c.player, c.index, bits[policy], c.t_s) * 1e9);
    return NVML_RC_SUCCESS;
}
