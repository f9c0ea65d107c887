/* Is an answer a value? The checks that every reading passes through. */
#include "nvml/library.h"

#include "base/base.h"

#include <string.h>

int nvml_give_u32(int rc, uint32_t value, uint32_t max, uint32_t *ret_value)
{
    if (rc != NVML_RC_SUCCESS)
        return rc;
    if (value == NVML_NONE_U32)
        return NVML_RC_NOT_SUPPORTED;
    if (value > max)
        return NVML_RC_IMPLAUSIBLE;
    *ret_value = value;
    return rc;
}

int nvml_give_u64(int rc, uint64_t value, uint64_t *ret_value)
{
    if (rc != NVML_RC_SUCCESS)
        return rc;
    if (value == NVML_NONE_U64)
        return NVML_RC_NOT_SUPPORTED;
    *ret_value = value;
    return rc;
}

int nvml_give_celsius(int rc, int64_t celsius, int32_t *ret_celsius)
{
    if (rc != NVML_RC_SUCCESS)
        return rc;
    if (celsius == -1) /* all ones; no GPU in use is that cold */
        return NVML_RC_NOT_SUPPORTED;
    if (celsius < NVML_CELSIUS_MIN || celsius > NVML_CELSIUS_MAX)
        return NVML_RC_IMPLAUSIBLE;
    *ret_celsius = (int32_t)celsius;
    return rc;
}

int nvml_give_bool(int rc, uint32_t value, bool *ret_value)
{
    uint32_t number = 0;
    rc = nvml_give_u32(rc, value, 1, &number);
    if (rc == NVML_RC_SUCCESS)
        *ret_value = number == 1;
    return rc;
}

/* A handle that is NULL in spite of success would crash the next call. */
int nvml_give_device(int rc, struct nvml_device *device, struct nvml_device **ret_device)
{
    if (rc != NVML_RC_SUCCESS)
        return rc;
    if (!device)
        return NVML_RC_IMPLAUSIBLE;
    *ret_device = device;
    return rc;
}

bool nvml_is_worth_fallback(int rc)
{
    return rc == NVML_RC_FUNCTION_NOT_FOUND || rc == NVML_RC_ARGUMENT_VERSION_MISMATCH || rc == NVML_RC_NOT_SUPPORTED ||
           rc == NVML_RC_DEPRECATED;
}

int nvml_clean_text(char *text, size_t size)
{
    text[size - 1] = '\0';
    struct str trimmed = str_trim(str_of(text));
    if (trimmed.len == 0)
        return NVML_RC_NO_DATA;
    if (!str_is_utf8(trimmed))
        return NVML_RC_IMPLAUSIBLE;
    memmove(text, trimmed.ptr, trimmed.len);
    text[trimmed.len] = '\0';
    return NVML_RC_SUCCESS;
}
