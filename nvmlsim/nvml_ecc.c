/* Memory errors, remapped rows and retired pages. Volatile and aggregate counts are the same: nothing is ever reset. */
#include "nvmlsim/sim.h"

static double count_of(const struct sim_call *c, enum ecc_count which)
{
    return player_ecc(c->player, c->index, which, c->t_s);
}

int nvmlDeviceGetEccMode(struct nvml_device *device, uint32_t *current, uint32_t *pending)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    if (!current || !pending)
        return NVML_RC_INVALID_ARGUMENT;
    *current = *pending = 1;
    return NVML_RC_SUCCESS;
}

/* On a divided GPU, volatile counts come only per instance, and only uncorrectable ones. An instance has none of its
 * own here: errors are the chip's. */
static int errors(const struct sim_call *c, uint32_t error, uint32_t counter, uint64_t *ret)
{
    if (error > NVML_ECC_UNCORRECTED || counter > NVML_COUNT_AGGREGATE)
        return NVML_RC_INVALID_ARGUMENT;
    bool is_corrected = error == NVML_ECC_CORRECTED, is_volatile = counter == NVML_COUNT_VOLATILE;
    if (c->instance) {
        *ret = 0;
        return is_corrected || !is_volatile ? NVML_RC_NOT_SUPPORTED : NVML_RC_SUCCESS;
    }
    if (c->layout->is_enabled && is_volatile)
        return NVML_RC_NOT_SUPPORTED;
    *ret = (uint64_t)count_of(c, is_corrected ? ECC_CORRECTED : ECC_UNCORRECTED);
    return NVML_RC_SUCCESS;
}

int nvmlDeviceGetTotalEccErrors(struct nvml_device *device, uint32_t error, uint32_t counter, uint64_t *count)
{
    SIM_DEVICE(c, device, SIM_ANY);
    uint64_t value = 0;
    int rc = count ? errors(&c, error, counter, &value) : NVML_RC_INVALID_ARGUMENT;
    return rc == NVML_RC_SUCCESS ? sim_u64(count, value) : rc;
}

int nvmlDeviceGetDetailedEccErrors(struct nvml_device *device, uint32_t error, uint32_t counter,
                                   struct nvml_ecc_counts *counts)
{
    SIM_DEVICE(c, device, SIM_ANY);
    uint64_t value = 0;
    int rc = counts ? errors(&c, error, counter, &value) : NVML_RC_INVALID_ARGUMENT;
    if (rc == NVML_RC_SUCCESS)
        *counts = (struct nvml_ecc_counts){.device = value};
    return rc;
}

/* All errors are those of device memory. */
int nvmlDeviceGetMemoryErrorCounter(struct nvml_device *device, uint32_t error, uint32_t counter, uint32_t location,
                                    uint64_t *count)
{
    enum { LOCATION_DEVICE = 2, LOCATION_COUNT = 8 };
    SIM_DEVICE(c, device, SIM_ANY);
    uint64_t value = 0;
    int rc = count && location < LOCATION_COUNT ? errors(&c, error, counter, &value) : NVML_RC_INVALID_ARGUMENT;
    return rc == NVML_RC_SUCCESS ? sim_u64(count, location == LOCATION_DEVICE ? value : 0) : rc;
}

/* Ampere and later; not on divided Hopper boards (seen on H100 and H200). */
bool sim_has_remapped_rows(const struct sim_call *c)
{
    bool is_divided_hopper = c->layout->is_enabled && c->gpu->board->architecture >= NVML_ARCH_HOPPER;
    return (c->gpu->board->can & CAN_REMAP_ROWS) && !is_divided_hopper;
}

int nvmlDeviceGetRemappedRows(struct nvml_device *device, uint32_t *correctable, uint32_t *uncorrectable,
                              uint32_t *is_pending, uint32_t *is_failed)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    if (!correctable || !uncorrectable || !is_pending || !is_failed)
        return NVML_RC_INVALID_ARGUMENT;
    if (!sim_has_remapped_rows(&c))
        return NVML_RC_NOT_SUPPORTED;
    *correctable = sim_round(count_of(&c, ECC_REMAPPED_CORRECTABLE));
    *uncorrectable = sim_round(count_of(&c, ECC_REMAPPED_UNCORRECTABLE));
    *is_pending = count_of(&c, ECC_REMAP_PENDING) > 0;
    *is_failed = count_of(&c, ECC_REMAP_FAILURE) > 0;
    return NVML_RC_SUCCESS;
}

int nvmlDeviceGetRetiredPagesPendingStatus(struct nvml_device *device, uint32_t *is_pending)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    return c.gpu->board->can & CAN_REMAP_ROWS ? NVML_RC_NOT_SUPPORTED : sim_u32(is_pending, 0);
}
