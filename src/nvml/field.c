/* Field values: many counters in one call, each with its own type and return code. And the counters of memory health
 * that old libraries give only as fields. */
#include "nvml/library.h"

#include "base/base.h"

#include <math.h>

enum { FIELDS_MAX = 256 }; /* in one call */

int nvml_read_fields(const struct nvml *n, struct nvml_device *d, struct nvml_field_value *values, size_t len)
{
    /* Some drivers leave a field alone that they do not know: then our own code stands. */
    for (size_t i = 0; i < len; i++)
        values[i] = (struct nvml_field_value){
            .field_id = values[i].field_id, .scope_id = values[i].scope_id, .rc = NVML_RC_NOT_SUPPORTED};
    int rc = len > FIELDS_MAX ? (int)NVML_RC_INVALID_ARGUMENT
                              : NVML_CALL(n, nvmlDeviceGetFieldValues, d, (int32_t)len, values);
    for (size_t i = 0; i < len && rc != NVML_RC_SUCCESS; i++)
        values[i].rc = rc;
    return rc;
}

/* Bounds by field; none for counters. */
static bool is_plausible(uint32_t field_id, int64_t number)
{
    switch (field_id) {
    case NVML_FIELD_MEMORY_TEMP:
        return number >= NVML_CELSIUS_MIN && number <= NVML_CELSIUS_MAX;
    case NVML_FIELD_POWER_AVERAGE:
    case NVML_FIELD_POWER_INSTANT:
    case NVML_FIELD_POWER_MIN_LIMIT:
    case NVML_FIELD_POWER_MAX_LIMIT:
    case NVML_FIELD_POWER_DEFAULT_LIMIT:
    case NVML_FIELD_POWER_CURRENT_LIMIT:
    case NVML_FIELD_POWER_REQUESTED_LIMIT:
        return number >= 0 && number <= NVML_POWER_MW_MAX;
    default:
        return true;
    }
}

/* 2^63: the first double that an i64 cannot hold. */
static const double TWO_POW_63 = 9223372036854775808.0;

static int u64_as_i64(uint64_t number, int64_t *ret_number)
{
    if (number == NVML_NONE_U64)
        return NVML_RC_NOT_SUPPORTED;
    if (number > INT64_MAX)
        return NVML_RC_IMPLAUSIBLE;
    *ret_number = (int64_t)number;
    return NVML_RC_SUCCESS;
}

static int number_of(const struct nvml_field_value *v, int64_t *ret_number)
{
    switch ((enum nvml_value_type)v->value_type) {
    case NVML_VALUE_DOUBLE:
        if (!(fabs(v->value.as_double) < TWO_POW_63)) /* NaN, too */
            return NVML_RC_IMPLAUSIBLE;
        *ret_number = (int64_t)v->value.as_double;
        return NVML_RC_SUCCESS;
    case NVML_VALUE_U32:
        if (v->value.as_u32 == NVML_NONE_U32)
            return NVML_RC_NOT_SUPPORTED;
        *ret_number = v->value.as_u32;
        return NVML_RC_SUCCESS;
    case NVML_VALUE_ULONG:
        return u64_as_i64(v->value.as_ulong, ret_number);
    case NVML_VALUE_U64:
        return u64_as_i64(v->value.as_u64, ret_number);
    case NVML_VALUE_I64:
        *ret_number = v->value.as_i64;
        return NVML_RC_SUCCESS;
    case NVML_VALUE_I32:
        *ret_number = v->value.as_i32;
        return NVML_RC_SUCCESS;
    case NVML_VALUE_U16:
        *ret_number = v->value.as_u16;
        return NVML_RC_SUCCESS;
    }
    return NVML_RC_IMPLAUSIBLE; /* a type that we do not know */
}

int nvml_field_i64(const struct nvml_field_value *value, int64_t *ret_number)
{
    if (value->rc != NVML_RC_SUCCESS)
        return value->rc;
    int64_t number = 0;
    int rc = number_of(value, &number);
    if (rc == NVML_RC_SUCCESS && !is_plausible(value->field_id, number))
        rc = NVML_RC_IMPLAUSIBLE;
    if (rc == NVML_RC_SUCCESS)
        *ret_number = number;
    return rc;
}

int nvml_field_u64(const struct nvml_field_value *value, uint64_t *ret_number)
{
    int64_t number = 0;
    int rc = nvml_field_i64(value, &number);
    if (rc == NVML_RC_SUCCESS && number < 0)
        rc = NVML_RC_IMPLAUSIBLE;
    if (rc == NVML_RC_SUCCESS)
        *ret_number = (uint64_t)number;
    return rc;
}

/* One field as a number, for readings that old libraries give only so. */
static int read_field_u32(const struct nvml *n, struct nvml_device *d, uint32_t field_id, uint32_t *ret_number)
{
    struct nvml_field_value field = {.field_id = field_id};
    uint64_t number = 0;
    int rc = nvml_read_fields(n, d, &field, 1);
    if (rc == NVML_RC_SUCCESS)
        rc = nvml_field_u64(&field, &number);
    return number > UINT32_MAX ? NVML_RC_IMPLAUSIBLE : nvml_give_u32(rc, (uint32_t)number, UINT32_MAX, ret_number);
}

int nvml_read_pcie_replays(const struct nvml *n, struct nvml_device *d, uint32_t *ret_count)
{
    uint32_t count = 0;
    int rc = NVML_CALL(n, nvmlDeviceGetPcieReplayCounter, d, &count);
    if (rc == NVML_RC_FUNCTION_NOT_FOUND)
        return read_field_u32(n, d, NVML_FIELD_PCIE_REPLAYS, ret_count);
    return nvml_give_u32(rc, count, UINT32_MAX, ret_count);
}

/* Both directions of one generation of counters, each in units of `scale` bytes. */
static int read_both_directions(const struct nvml *n, struct nvml_device *d, const uint32_t ids[2], uint64_t scale,
                                uint64_t *ret_bytes)
{
    struct nvml_field_value fields[] = {{.field_id = ids[0], .scope_id = NVML_SCOPE_ALL},
                                        {.field_id = ids[1], .scope_id = NVML_SCOPE_ALL}};
    uint64_t bytes = 0;
    int rc = nvml_read_fields(n, d, fields, ARRAY_LEN(fields));
    for (size_t i = 0; i < ARRAY_LEN(fields) && rc == NVML_RC_SUCCESS; i++) {
        uint64_t count = 0;
        rc = nvml_field_u64(&fields[i], &count);
        if (rc == NVML_RC_SUCCESS && fields[i].value_type == NVML_VALUE_U32)
            rc = NVML_RC_NOT_SUPPORTED;
        if (rc == NVML_RC_SUCCESS && count > (UINT64_MAX >> 12))
            rc = NVML_RC_IMPLAUSIBLE;
        bytes += count * scale;
    }
    return nvml_give_u64(rc, bytes, ret_bytes);
}

int nvml_read_nvlink_bytes(const struct nvml *n, struct nvml_device *d, uint64_t *ret_bytes)
{
    static const uint32_t kib[] = {NVML_FIELD_NVLINK_DATA_TX_KIB, NVML_FIELD_NVLINK_DATA_RX_KIB};
    static const uint32_t bytes[] = {NVML_FIELD_NVLINK5_TX_BYTES, NVML_FIELD_NVLINK5_RX_BYTES};
    int rc = read_both_directions(n, d, kib, 1024, ret_bytes);
    return nvml_rc_kind(rc) == NVML_KIND_ABSENT || nvml_rc_kind(rc) == NVML_KIND_ABSENT_LOGGED
               ? read_both_directions(n, d, bytes, 1, ret_bytes)
               : rc;
}

int nvml_read_ecc_mode(const struct nvml *n, struct nvml_device *d, bool *ret_is_on, bool *ret_is_pending_on)
{
    uint32_t current = 0, pending = 0;
    bool is_on = false, is_pending_on = false;
    int rc = NVML_CALL(n, nvmlDeviceGetEccMode, d, &current, &pending);
    rc = nvml_give_bool(rc, current, &is_on);
    rc = nvml_give_bool(rc, pending, &is_pending_on);
    if (rc == NVML_RC_SUCCESS) {
        *ret_is_on = is_on;
        *ret_is_pending_on = is_pending_on;
    }
    return rc;
}

int nvml_read_ecc(const struct nvml *n, struct nvml_device *d, uint32_t error, uint32_t counter, uint64_t *ret_count)
{
    uint64_t count = 0;
    int rc = NVML_CALL(n, nvmlDeviceGetTotalEccErrors, d, error, counter, &count);
    return nvml_give_u64(rc, count, ret_count);
}

static int read_rows_from_fields(const struct nvml *n, struct nvml_device *d, uint32_t rows[4])
{
    int rc = NVML_RC_SUCCESS;
    for (uint32_t i = 0; i < 4 && rc == NVML_RC_SUCCESS; i++)
        rc = read_field_u32(n, d, NVML_FIELD_REMAPPED_CORRECTABLE + i, &rows[i]);
    return rc;
}

int nvml_read_remapped_rows(const struct nvml *n, struct nvml_device *d, struct nvml_remapped_rows *ret_rows)
{
    uint32_t rows[4] = {0}; /* correctable, uncorrectable, pending, failed */
    int rc = NVML_CALL(n, nvmlDeviceGetRemappedRows, d, &rows[0], &rows[1], &rows[2], &rows[3]);
    if (rc == NVML_RC_FUNCTION_NOT_FOUND)
        rc = read_rows_from_fields(n, d, rows);
    struct nvml_remapped_rows r = {0};
    rc = nvml_give_u32(rc, rows[0], UINT32_MAX, &r.correctable);
    rc = nvml_give_u32(rc, rows[1], UINT32_MAX, &r.uncorrectable);
    rc = nvml_give_bool(rc, rows[2], &r.is_pending);
    rc = nvml_give_bool(rc, rows[3], &r.is_failed);
    if (rc == NVML_RC_SUCCESS)
        *ret_rows = r;
    return rc;
}
