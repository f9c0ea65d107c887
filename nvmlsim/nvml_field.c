/* nvmlDeviceGetFieldValues: one table says which field is what, of which type, and who has it. */
#include "nvmlsim/sim.h"

#include <math.h>

/* Fields whose answer does not depend on the scope. Each returns an rc. */
struct field_row {
    uint32_t field;
    uint32_t needs;        /* enum board_can bits */
    uint32_t driver_major; /* since which driver */
    enum nvml_value_type type;
    int (*read)(const struct sim_call *c, uint64_t param, uint32_t scope, double *ret);
    uint64_t param;
};

static int read_ecc(const struct sim_call *c, uint64_t param, uint32_t scope, double *ret)
{
    (void)scope;
    *ret = player_ecc(c->player, c->index, (enum ecc_count)param, c->t_s);
    return NVML_RC_SUCCESS;
}

/* Pages retire on boards that cannot remap rows, and only there. */
static int read_retired(const struct sim_call *c, uint64_t param, uint32_t scope, double *ret)
{
    if (c->gpu->board->can & CAN_REMAP_ROWS)
        return NVML_RC_NOT_SUPPORTED;
    if (param == ECC_COUNT) {
        *ret = 0;
        return NVML_RC_SUCCESS;
    }
    return read_ecc(c, param, scope, ret);
}

static int read_rows(const struct sim_call *c, uint64_t param, uint32_t scope, double *ret)
{
    return sim_has_remapped_rows(c) ? read_ecc(c, param, scope, ret) : NVML_RC_NOT_SUPPORTED;
}

static int read_throttled(const struct sim_call *c, uint64_t param, uint32_t scope, double *ret)
{
    (void)scope;
    *ret = floor(player_throttled_s(c->player, c->index, param, c->t_s) * 1e9);
    return NVML_RC_SUCCESS;
}

static int read_signal(const struct sim_call *c, uint64_t param, uint32_t scope, double *ret)
{
    (void)scope;
    *ret = round(player_value(c->player, c->index, (enum signal)param, c->t_s));
    return NVML_RC_SUCCESS;
}

static int read_energy(const struct sim_call *c, uint64_t param, uint32_t scope, double *ret)
{
    (void)scope;
    *ret = floor(player_counter(c->player, c->index, (enum signal)param, c->t_s) * 1000);
    return NVML_RC_SUCCESS;
}

/* Scope: the GPU, the module of a superchip (a fifth more), the memory on Hopper and later (a quarter). */
static int scale_power(const struct sim_call *c, uint32_t scope, double watts, double *ret)
{
    uint32_t can = c->gpu->board->can;
    if ((scope == NVML_SCOPE_MODULE && !(can & CAN_MODULE_POWER)) || (scope == NVML_SCOPE_MEMORY && !(can & CAN_GPM)))
        return NVML_RC_NOT_SUPPORTED;
    if (scope > NVML_SCOPE_MEMORY)
        return NVML_RC_INVALID_ARGUMENT;
    double factor = scope == NVML_SCOPE_MODULE ? 1.2 : scope == NVML_SCOPE_MEMORY ? 0.25 : 1;
    *ret = round(watts * factor * 1000);
    return NVML_RC_SUCCESS;
}

static int read_power(const struct sim_call *c, uint64_t param, uint32_t scope, double *ret)
{
    double watts = param ? player_mean(c->player, c->index, SIGNAL_POWER, c->t_s, 1)
                         : player_value(c->player, c->index, SIGNAL_POWER, c->t_s);
    return scale_power(c, scope, watts, ret);
}

static int read_limit(const struct sim_call *c, uint64_t param, uint32_t scope, double *ret)
{
    return scale_power(c, scope, param ? c->gpu->board->limit_min_w : c->gpu->board->limit_w, ret);
}

static int read_nvlinks(const struct sim_call *c, uint64_t param, uint32_t scope, double *ret)
{
    (void)param;
    (void)scope;
    *ret = c->gpu->board->nvlinks;
    return c->gpu->board->nvlinks ? NVML_RC_SUCCESS : NVML_RC_NOT_SUPPORTED;
}

/* Counters of one link are an even share. The param holds the signal and what one KiB is in the field's unit. */
#define NVLINK(signal, per_kib) ((uint64_t)(signal) << 32 | (per_kib))
static int read_nvlink(const struct sim_call *c, uint64_t param, uint32_t scope, double *ret)
{
    uint32_t links = c->gpu->board->nvlinks;
    if (links == 0)
        return NVML_RC_NOT_SUPPORTED;
    if (scope != NVML_SCOPE_ALL && scope >= links)
        return NVML_RC_INVALID_ARGUMENT;
    double kib = player_counter(c->player, c->index, (enum signal)(param >> 32), c->t_s);
    *ret = floor(kib * (double)(uint32_t)param / (scope == NVML_SCOPE_ALL ? 1 : links));
    return NVML_RC_SUCCESS;
}

static int read_pcie(const struct sim_call *c, uint64_t param, uint32_t scope, double *ret)
{
    (void)scope;
    *ret = floor(player_counter(c->player, c->index, (enum signal)param, c->t_s) * 1000);
    if (c->player->scenario->pcie_counter_bits == 32)
        *ret = fmod(*ret, 4294967296.0);
    return NVML_RC_SUCCESS;
}

static int read_number(const struct sim_call *c, uint64_t param, uint32_t scope, double *ret)
{
    (void)c;
    (void)scope;
    *ret = (double)(int64_t)param;
    return NVML_RC_SUCCESS;
}

static int read_recovery(const struct sim_call *c, uint64_t param, uint32_t scope, double *ret)
{
    (void)param;
    (void)scope;
    *ret = player_recovery_action(c->player, c->index, c->t_s);
    return NVML_RC_SUCCESS;
}

enum { THERMAL = NVML_REASON_SW_THERMAL_SLOWDOWN | NVML_REASON_HW_THERMAL_SLOWDOWN };

static const struct field_row rows[] = {
    {NVML_FIELD_RETIRED_SBE, 0, 0, NVML_VALUE_U64, read_retired, ECC_RETIRED_PAGES},
    {NVML_FIELD_RETIRED_DBE, 0, 0, NVML_VALUE_U64, read_retired, ECC_COUNT},
    {NVML_FIELD_RETIRED_PENDING, 0, 0, NVML_VALUE_U32, read_retired, ECC_COUNT},
    {NVML_FIELD_LIMITED_NS_POWER, 0, 0, NVML_VALUE_U64, read_throttled, NVML_REASON_SW_POWER_CAP},
    {NVML_FIELD_LIMITED_NS_THERMAL, 0, 0, NVML_VALUE_U64, read_throttled, THERMAL},
    {NVML_FIELD_LIMITED_NS_SYNC_BOOST, 0, 0, NVML_VALUE_U64, read_throttled, NVML_REASON_SYNC_BOOST},
    {NVML_FIELD_LIMITED_NS_BOARD, 0, 0, NVML_VALUE_U64, read_throttled, NVML_REASON_HW_POWER_BRAKE_SLOWDOWN},
    {NVML_FIELD_LIMITED_NS_LOW_UTILIZATION, 0, 0, NVML_VALUE_U64, read_throttled, NVML_REASON_GPU_IDLE},
    {NVML_FIELD_LIMITED_NS_RELIABILITY, 0, 0, NVML_VALUE_U64, read_throttled, NVML_REASON_HW_SLOWDOWN},
    {NVML_FIELD_MEMORY_TEMP, CAN_MEMORY_TEMP, 0, NVML_VALUE_U32, read_signal, SIGNAL_MEMORY_TEMPERATURE},
    {NVML_FIELD_TOTAL_ENERGY, 0, 0, NVML_VALUE_U64, read_energy, SIGNAL_POWER},
    {NVML_FIELD_NVLINK_COUNT, 0, 0, NVML_VALUE_U32, read_nvlinks, 0},
    {NVML_FIELD_PCIE_REPLAYS, 0, 0, NVML_VALUE_U32, read_ecc, ECC_PCIE_REPLAYS},
    {NVML_FIELD_NVLINK_DATA_TX_KIB, CAN_NVLINK_KIB, 0, NVML_VALUE_U64, read_nvlink, NVLINK(SIGNAL_NVLINK_TX, 1)},
    {NVML_FIELD_NVLINK_DATA_RX_KIB, CAN_NVLINK_KIB, 0, NVML_VALUE_U64, read_nvlink, NVLINK(SIGNAL_NVLINK_RX, 1)},
    {NVML_FIELD_NVLINK_RAW_TX_KIB, CAN_NVLINK_KIB, 0, NVML_VALUE_U64, read_nvlink, NVLINK(SIGNAL_NVLINK_TX, 1)},
    {NVML_FIELD_NVLINK_RAW_RX_KIB, CAN_NVLINK_KIB, 0, NVML_VALUE_U64, read_nvlink, NVLINK(SIGNAL_NVLINK_RX, 1)},
    {NVML_FIELD_REMAPPED_CORRECTABLE, 0, 0, NVML_VALUE_U32, read_rows, ECC_REMAPPED_CORRECTABLE},
    {NVML_FIELD_REMAPPED_UNCORRECTABLE, 0, 0, NVML_VALUE_U32, read_rows, ECC_REMAPPED_UNCORRECTABLE},
    {NVML_FIELD_REMAPPED_PENDING, 0, 0, NVML_VALUE_U32, read_rows, ECC_REMAP_PENDING},
    {NVML_FIELD_REMAPPED_FAILURE, 0, 0, NVML_VALUE_U32, read_rows, ECC_REMAP_FAILURE},
    {NVML_FIELD_C2C_LINK_COUNT, CAN_MODULE_POWER, 525, NVML_VALUE_U32, read_number, 10},
    {NVML_FIELD_POWER_AVERAGE, CAN_POWER_AVERAGE, 530, NVML_VALUE_U32, read_power, 1},
    {NVML_FIELD_POWER_INSTANT, 0, 530, NVML_VALUE_U32, read_power, 0},
    {NVML_FIELD_POWER_MIN_LIMIT, 0, 530, NVML_VALUE_U32, read_limit, 1},
    {NVML_FIELD_POWER_MAX_LIMIT, 0, 530, NVML_VALUE_U32, read_limit, 0},
    {NVML_FIELD_POWER_DEFAULT_LIMIT, 0, 530, NVML_VALUE_U32, read_limit, 0},
    {NVML_FIELD_POWER_CURRENT_LIMIT, 0, 530, NVML_VALUE_U32, read_limit, 0},
    {NVML_FIELD_POWER_REQUESTED_LIMIT, 0, 530, NVML_VALUE_U32, read_limit, 0},
    {NVML_FIELD_TLIMIT_SHUTDOWN, CAN_TLIMIT, 535, NVML_VALUE_I32, read_number, (uint64_t)-7},
    {NVML_FIELD_TLIMIT_SLOWDOWN, CAN_TLIMIT, 535, NVML_VALUE_I32, read_number, (uint64_t)-2},
    {NVML_FIELD_TLIMIT_MEM_MAX, CAN_TLIMIT | CAN_MEMORY_TEMP, 535, NVML_VALUE_I32, read_number, 0},
    {NVML_FIELD_TLIMIT_GPU_MAX, CAN_TLIMIT, 535, NVML_VALUE_I32, read_number, 0},
    {NVML_FIELD_PCIE_TX_BYTES, CAN_PCIE_COUNT, 555, NVML_VALUE_U64, read_pcie, SIGNAL_PCIE_TX},
    {NVML_FIELD_PCIE_RX_BYTES, CAN_PCIE_COUNT, 555, NVML_VALUE_U64, read_pcie, SIGNAL_PCIE_RX},
    {NVML_FIELD_NVLINK5_TX_PACKETS, CAN_NVLINK5, 560, NVML_VALUE_U64, read_nvlink, NVLINK(SIGNAL_NVLINK_TX, 4)},
    {NVML_FIELD_NVLINK5_TX_BYTES, CAN_NVLINK5, 560, NVML_VALUE_U64, read_nvlink, NVLINK(SIGNAL_NVLINK_TX, 1024)},
    {NVML_FIELD_NVLINK5_RX_PACKETS, CAN_NVLINK5, 560, NVML_VALUE_U64, read_nvlink, NVLINK(SIGNAL_NVLINK_RX, 4)},
    {NVML_FIELD_NVLINK5_RX_BYTES, CAN_NVLINK5, 560, NVML_VALUE_U64, read_nvlink, NVLINK(SIGNAL_NVLINK_RX, 1024)},
    {NVML_FIELD_RECOVERY_ACTION, 0, 570, NVML_VALUE_U32, read_recovery, 0},
};

static const struct field_row *find_row(uint32_t field)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].field == field)
            return &rows[i];
    return NULL;
}

static union nvml_value pack(enum nvml_value_type type, double value)
{
    union nvml_value v = {.as_u64 = 0};
    if (type == NVML_VALUE_U32)
        v.as_u32 = (uint32_t)value;
    else if (type == NVML_VALUE_I32)
        v.as_i32 = (int32_t)value;
    else
        v.as_u64 = (uint64_t)value;
    return v;
}

static void answer(const struct sim_call *c, struct nvml_field_value *f)
{
    const struct field_row *row = find_row(f->field_id);
    double value = 0;
    f->time_us = (int64_t)sim_time_us(c, c->t_s);
    f->latency_us = 1;
    f->value_type = row ? row->type : NVML_VALUE_U32;
    f->value = (union nvml_value){.as_u64 = 0};
    if (row && row->read == read_pcie && c->player->scenario->pcie_counter_bits == 32)
        f->value_type = NVML_VALUE_U32;
    if (!row)
        f->rc = NVML_RC_INVALID_ARGUMENT;
    else if (c->instance || (row->needs & c->gpu->board->can) != row->needs ||
             c->player->scenario->driver_major < row->driver_major ||
             player_is_field_off(c->player, c->index, f->field_id, c->t_s))
        f->rc = NVML_RC_NOT_SUPPORTED;
    else
        f->rc = row->read(c, row->param, f->scope_id, &value);
    if (f->rc == NVML_RC_SUCCESS)
        f->value = pack((enum nvml_value_type)f->value_type, value);
}

/* Every value has its own rc; the call fails only when none could be had. */
int nvmlDeviceGetFieldValues(struct nvml_device *device, int32_t n, struct nvml_field_value *values)
{
    SIM_DEVICE(c, device, SIM_ANY);
    if (n <= 0 || !values)
        return NVML_RC_INVALID_ARGUMENT;
    bool is_any = false;
    for (int32_t i = 0; i < n; i++) {
        answer(&c, &values[i]);
        is_any |= values[i].rc == NVML_RC_SUCCESS;
    }
    return is_any ? NVML_RC_SUCCESS : values[0].rc;
}

/* None of our fields can be cleared, and clearing needs root. */
int nvmlDeviceClearFieldValues(struct nvml_device *device, int32_t n, struct nvml_field_value *values)
{
    SIM_DEVICE(c, device, SIM_ANY);
    return n > 0 && values ? NVML_RC_NO_PERMISSION : NVML_RC_INVALID_ARGUMENT;
}
