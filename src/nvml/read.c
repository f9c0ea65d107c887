/* Devices and their readings: chooses among the symbols that give a value and refuses impossible ones. Keeps no values.
 * Processes, events, MIG and GPM are in their own files. */
#include "nvml/library.h"

#include "base/base.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    PERCENT_MAX = 100,
    FAN_PERCENT_MAX = 300, /* of the nominal speed, which some boards pass */
    CLOCK_MHZ_MAX = 20000,
};

/* ---- finding devices ---- */

int nvml_read_count(const struct nvml *n, uint32_t *ret_count)
{
    uint32_t count = 0;
    int rc = NVML_CALL(n, nvmlDeviceGetCount_v2, &count);
    return nvml_give_u32(rc, count, UINT32_MAX, ret_count);
}

int nvml_find_by_index(const struct nvml *n, uint32_t index, struct nvml_device **ret_device)
{
    struct nvml_device *device = NULL;
    int rc = NVML_CALL(n, nvmlDeviceGetHandleByIndex_v2, index, &device);
    return nvml_give_device(rc, device, ret_device);
}

int nvml_find_by_uuid(const struct nvml *n, const char *uuid, struct nvml_device **ret_device)
{
    struct nvml_device *device = NULL;
    int rc = NVML_CALL(n, nvmlDeviceGetHandleByUUID, uuid, &device);
    return nvml_give_device(rc, device, ret_device);
}

int nvml_find_by_bus_id(const struct nvml *n, const char *bus_id, struct nvml_device **ret_device)
{
    struct nvml_device *device = NULL;
    int rc = NVML_CALL(n, nvmlDeviceGetHandleByPciBusId_v2, bus_id, &device);
    if (rc == NVML_RC_FUNCTION_NOT_FOUND)
        rc = NVML_CALL(n, nvmlDeviceGetHandleByPciBusId, bus_id, &device);
    return nvml_give_device(rc, device, ret_device);
}

/* ---- identity ---- */

/* Each text has its own buffer size; NVML is given all of it and the result is checked before the caller sees it. */
#define READ_TEXT(function, symbol, size)                                                                              \
    int function(const struct nvml *n, struct nvml_device *d, char ret_text[size])                                     \
    {                                                                                                                  \
        char text[size] = "";                                                                                          \
        int rc = NVML_CALL(n, symbol, d, text, (uint32_t)sizeof(text));                                                \
        if (rc == NVML_RC_SUCCESS)                                                                                     \
            rc = nvml_clean_text(text, sizeof(text));                                                                  \
        if (rc == NVML_RC_SUCCESS)                                                                                     \
            memcpy(ret_text, text, sizeof(text));                                                                      \
        return rc;                                                                                                     \
    }
READ_TEXT(nvml_read_name, nvmlDeviceGetName, NVML_NAME_MAX)
READ_TEXT(nvml_read_uuid, nvmlDeviceGetUUID, NVML_UUID_MAX)
READ_TEXT(nvml_read_serial, nvmlDeviceGetSerial, NVML_SERIAL_MAX)
READ_TEXT(nvml_read_vbios, nvmlDeviceGetVbiosVersion, NVML_VBIOS_MAX)

/* One number of 32 bits, at most `max`. */
#define READ_U32(function, symbol, max)                                                                                \
    int function(const struct nvml *n, struct nvml_device *d, uint32_t *ret_value)                                     \
    {                                                                                                                  \
        uint32_t value = 0;                                                                                            \
        int rc = NVML_CALL(n, symbol, d, &value);                                                                      \
        return nvml_give_u32(rc, value, max, ret_value);                                                               \
    }
READ_U32(nvml_read_minor, nvmlDeviceGetMinorNumber, UINT32_MAX)
READ_U32(nvml_read_index, nvmlDeviceGetIndex, UINT32_MAX)
READ_U32(nvml_read_architecture, nvmlDeviceGetArchitecture, UINT32_MAX)
READ_U32(nvml_read_virtualization, nvmlDeviceGetVirtualizationMode, UINT32_MAX)
READ_U32(nvml_read_fan, nvmlDeviceGetFanSpeed, FAN_PERCENT_MAX)
READ_U32(nvml_read_power, nvmlDeviceGetPowerUsage, NVML_POWER_MW_MAX)

int nvml_read_compute_capability(const struct nvml *n, struct nvml_device *d, int32_t *ret_major, int32_t *ret_minor)
{
    int32_t major = 0, minor = 0;
    int rc = NVML_CALL(n, nvmlDeviceGetCudaComputeCapability, d, &major, &minor);
    if (rc == NVML_RC_SUCCESS && (major < 0 || minor < 0))
        return NVML_RC_IMPLAUSIBLE;
    if (rc == NVML_RC_SUCCESS) {
        *ret_major = major;
        *ret_minor = minor;
    }
    return rc;
}

/* Before _v3 only the short bus id is written, whose domain has four digits. */
static void complete_bus_id(struct nvml_pci_info *pci)
{
    pci->bus_id_legacy[sizeof(pci->bus_id_legacy) - 1] = '\0';
    const char *dot = strrchr(pci->bus_id_legacy, '.');
    unsigned function = dot && dot[1] >= '0' && dot[1] <= '7' ? (unsigned)(dot[1] - '0') : 0;
    (void)snprintf(pci->bus_id, sizeof(pci->bus_id), "%08X:%02X:%02X.%u", pci->domain, pci->bus, pci->device, function);
}

int nvml_read_pci(const struct nvml *n, struct nvml_device *d, struct nvml_pci_info *ret_pci)
{
    struct nvml_pci_info pci = {0};
    int rc = NVML_CALL(n, nvmlDeviceGetPciInfo_v3, d, &pci);
    bool is_complete = rc != NVML_RC_FUNCTION_NOT_FOUND;
    if (rc == NVML_RC_FUNCTION_NOT_FOUND)
        rc = NVML_CALL(n, nvmlDeviceGetPciInfo_v2, d, &pci);
    if (rc == NVML_RC_FUNCTION_NOT_FOUND)
        rc = NVML_CALL(n, nvmlDeviceGetPciInfo, d, &pci);
    if (rc != NVML_RC_SUCCESS)
        return rc;
    if (is_complete)
        rc = nvml_clean_text(pci.bus_id, sizeof(pci.bus_id));
    else
        complete_bus_id(&pci);
    if (rc == NVML_RC_SUCCESS)
        *ret_pci = pci;
    return rc;
}

/* ---- memory ---- */

static int check_memory(const struct nvml_memory_reading *m)
{
    if (m->total_bytes == 0 || m->total_bytes == NVML_NONE_U64 || m->used_bytes == NVML_NONE_U64 ||
        m->free_bytes == NVML_NONE_U64)
        return NVML_RC_NOT_SUPPORTED; /* unified memory says either */
    if (m->used_bytes > m->total_bytes || m->free_bytes > m->total_bytes)
        return NVML_RC_IMPLAUSIBLE;
    return NVML_RC_SUCCESS;
}

static int read_memory_v2(const struct nvml *n, struct nvml_device *d, struct nvml_memory_reading *m)
{
    struct nvml_memory_v2 v2 = {.version = NVML_MEMORY_V2};
    int rc = NVML_CALL(n, nvmlDeviceGetMemoryInfo_v2, d, &v2);
    *m = (struct nvml_memory_reading){.total_bytes = v2.total_bytes,
                                      .used_bytes = v2.used_bytes,
                                      .free_bytes = v2.free_bytes,
                                      .reserved_bytes = v2.reserved_bytes,
                                      .has_reserved = true};
    if (rc == NVML_RC_SUCCESS && v2.reserved_bytes != NVML_NONE_U64 && v2.reserved_bytes > v2.total_bytes)
        rc = NVML_RC_IMPLAUSIBLE;
    if (v2.reserved_bytes == NVML_NONE_U64)
        m->has_reserved = false;
    return rc;
}

int nvml_read_memory(const struct nvml *n, struct nvml_device *d, struct nvml_memory_reading *ret_memory)
{
    struct nvml_memory_reading m;
    int rc = read_memory_v2(n, d, &m);
    if (nvml_is_worth_fallback(rc)) {
        struct nvml_memory v1 = {0};
        rc = NVML_CALL(n, nvmlDeviceGetMemoryInfo, d, &v1);
        m = (struct nvml_memory_reading){
            .total_bytes = v1.total_bytes, .used_bytes = v1.used_bytes, .free_bytes = v1.free_bytes};
    }
    if (rc == NVML_RC_SUCCESS)
        rc = check_memory(&m);
    if (rc == NVML_RC_SUCCESS)
        *ret_memory = m;
    return rc;
}

int nvml_read_bar1(const struct nvml *n, struct nvml_device *d, struct nvml_memory *ret_memory)
{
    struct nvml_memory bar1 = {0};
    int rc = NVML_CALL(n, nvmlDeviceGetBAR1MemoryInfo, d, &bar1);
    if (rc == NVML_RC_SUCCESS && (bar1.total_bytes == 0 || bar1.total_bytes == NVML_NONE_U64))
        return NVML_RC_NOT_SUPPORTED;
    if (rc == NVML_RC_SUCCESS && (bar1.used_bytes > bar1.total_bytes || bar1.free_bytes > bar1.total_bytes))
        return NVML_RC_IMPLAUSIBLE;
    if (rc == NVML_RC_SUCCESS)
        *ret_memory = bar1;
    return rc;
}

/* ---- utilization ---- */

int nvml_read_utilization(const struct nvml *n, struct nvml_device *d, struct nvml_utilization *ret_utilization)
{
    struct nvml_utilization u = {0};
    int rc = NVML_CALL(n, nvmlDeviceGetUtilizationRates, d, &u);
    if (rc != NVML_RC_SUCCESS)
        return rc;
    if (u.gpu == NVML_NONE_U32 || u.memory == NVML_NONE_U32)
        return NVML_RC_NOT_SUPPORTED;
    if (u.gpu > PERCENT_MAX || u.memory > PERCENT_MAX)
        return NVML_RC_IMPLAUSIBLE;
    *ret_utilization = u;
    return rc;
}

int nvml_read_engine(const struct nvml *n, struct nvml_device *d, enum nvml_engine engine, uint32_t *ret_percent)
{
    uint32_t percent = 0, period_us = 0;
    int rc = NVML_RC_INVALID_ARGUMENT;
    switch (engine) {
    case NVML_ENGINE_ENCODER:
        rc = NVML_CALL(n, nvmlDeviceGetEncoderUtilization, d, &percent, &period_us);
        break;
    case NVML_ENGINE_DECODER:
        rc = NVML_CALL(n, nvmlDeviceGetDecoderUtilization, d, &percent, &period_us);
        break;
    case NVML_ENGINE_JPEG:
        rc = NVML_CALL(n, nvmlDeviceGetJpgUtilization, d, &percent, &period_us);
        break;
    case NVML_ENGINE_OFA:
        rc = NVML_CALL(n, nvmlDeviceGetOfaUtilization, d, &percent, &period_us);
        break;
    }
    return nvml_give_u32(rc, percent, PERCENT_MAX, ret_percent);
}

int nvml_read_samples(const struct nvml *n, struct nvml_device *d, uint32_t kind, uint64_t since_us,
                      struct nvml_samples *samples)
{
    uint32_t type = 0, len = samples->capacity;
    int rc = NVML_CALL(n, nvmlDeviceGetSamples, d, kind, since_us, &type, &len, samples->samples);
    if (rc == NVML_RC_NOT_FOUND) { /* none newer */
        rc = NVML_RC_SUCCESS;
        len = 0;
    }
    if (rc != NVML_RC_SUCCESS)
        return rc;
    if (len > samples->capacity || type > NVML_VALUE_U16)
        return NVML_RC_IMPLAUSIBLE;
    samples->len = len;
    samples->value_type = (enum nvml_value_type)type;
    return rc;
}

double nvml_sample_number(enum nvml_value_type type, union nvml_value value)
{
    switch (type) {
    case NVML_VALUE_DOUBLE:
        return value.as_double;
    case NVML_VALUE_U32:
        return value.as_u32;
    case NVML_VALUE_ULONG:
        return (double)value.as_ulong;
    case NVML_VALUE_U64:
        return (double)value.as_u64;
    case NVML_VALUE_I64:
        return (double)value.as_i64;
    case NVML_VALUE_I32:
        return value.as_i32;
    case NVML_VALUE_U16:
        return value.as_u16;
    }
    return (double)NAN;
}

/* ---- temperature, power, clocks ---- */

static int read_temperature_v(const struct nvml *n, struct nvml_device *d, int32_t *ret_celsius)
{
    struct nvml_temperature t = {.version = NVML_TEMPERATURE_V1, .sensor = NVML_SENSOR_GPU};
    int rc = NVML_CALL(n, nvmlDeviceGetTemperatureV, d, &t);
    return nvml_give_celsius(rc, t.celsius, ret_celsius);
}

int nvml_read_temperature(const struct nvml *n, struct nvml_device *d, int32_t *ret_celsius)
{
    int rc = read_temperature_v(n, d, ret_celsius);
    if (!nvml_is_worth_fallback(rc))
        return rc;
    uint32_t celsius = 0;
    rc = NVML_CALL(n, nvmlDeviceGetTemperature, d, NVML_SENSOR_GPU, &celsius);
    return nvml_give_celsius(rc, (int32_t)celsius, ret_celsius);
}

int nvml_read_threshold(const struct nvml *n, struct nvml_device *d, uint32_t threshold, uint32_t *ret_celsius)
{
    uint32_t celsius = 0;
    int rc = NVML_CALL(n, nvmlDeviceGetTemperatureThreshold, d, threshold, &celsius);
    return nvml_give_u32(rc, celsius, NVML_CELSIUS_MAX, ret_celsius);
}

int nvml_read_power_limit(const struct nvml *n, struct nvml_device *d, uint32_t *ret_mw)
{
    uint32_t mw = 0;
    int rc = NVML_CALL(n, nvmlDeviceGetEnforcedPowerLimit, d, &mw);
    if (nvml_is_worth_fallback(rc))
        rc = NVML_CALL(n, nvmlDeviceGetPowerManagementLimit, d, &mw);
    return nvml_give_u32(rc, mw, NVML_POWER_MW_MAX, ret_mw);
}

int nvml_read_energy(const struct nvml *n, struct nvml_device *d, uint64_t *ret_mj)
{
    uint64_t mj = 0;
    int rc = NVML_CALL(n, nvmlDeviceGetTotalEnergyConsumption, d, &mj);
    if (rc != NVML_RC_FUNCTION_NOT_FOUND)
        return nvml_give_u64(rc, mj, ret_mj);
    struct nvml_field_value field = {.field_id = NVML_FIELD_TOTAL_ENERGY};
    rc = nvml_read_fields(n, d, &field, 1);
    return rc == NVML_RC_SUCCESS ? nvml_field_u64(&field, ret_mj) : rc;
}

int nvml_read_clock(const struct nvml *n, struct nvml_device *d, uint32_t clock, uint32_t *ret_mhz)
{
    uint32_t mhz = 0;
    int rc = NVML_CALL(n, nvmlDeviceGetClockInfo, d, clock, &mhz);
    return nvml_give_u32(rc, mhz, CLOCK_MHZ_MAX, ret_mhz);
}

int nvml_read_max_clock(const struct nvml *n, struct nvml_device *d, uint32_t clock, uint32_t *ret_mhz)
{
    uint32_t mhz = 0;
    int rc = NVML_CALL(n, nvmlDeviceGetMaxClockInfo, d, clock, &mhz);
    return nvml_give_u32(rc, mhz, CLOCK_MHZ_MAX, ret_mhz);
}

int nvml_read_clock_reasons(const struct nvml *n, struct nvml_device *d, uint64_t *ret_reasons)
{
    uint64_t reasons = 0;
    int rc = NVML_CALL(n, nvmlDeviceGetCurrentClocksEventReasons, d, &reasons);
    if (rc == NVML_RC_FUNCTION_NOT_FOUND)
        rc = NVML_CALL(n, nvmlDeviceGetCurrentClocksThrottleReasons, d, &reasons);
    return nvml_give_u64(rc, reasons, ret_reasons);
}
