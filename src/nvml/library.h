/* The inside of struct nvml, shared by this module's files and its tests; not for others. */
#ifndef NVML_LIBRARY_H
#define NVML_LIBRARY_H

#include "nvml/nvml.h"

struct nvml_symbols {
#define X(need, name, ret, params) ret(*name) params;
    NVML_SYMBOLS(X)
#undef X
};

struct nvml {
    void *handle;
    char *path;
    struct nvml_symbols call;
    void (*on_call)(void *context, const char *symbol);
    void *context;
    bool is_initialised, is_simulated;
    bool has_broken_process_v3; /* elements of 32 bytes: see process.c */
    char driver_version[NVML_VERSION_MAX], library_version[NVML_VERSION_MAX];
    void *process_buffer;
    uint32_t process_capacity;
    struct nvml_gpm_metrics *gpm_buffer; /* NVML_GPM_BUFFER_BYTES, made at the first use */
};

/* nvml_open with the candidates given, NULL-terminated; the first usable one wins. */
struct nvml *nvml_open_first(const char *const *paths, struct err *e) __attribute__((warn_unused_result));
/* The default candidates, in the order they are tried. */
extern const char *const nvml_search_paths[];

/* Does this driver write 32-byte elements from the _v3 process functions? 535.43 up to, not including, 535.86. */
bool nvml_driver_breaks_process_v3(const char *driver_version);
/* Trim and check a text that the library wrote; size is the buffer's. Returns a code. */
int nvml_clean_text(char *text, size_t size);

/* Hand over a value that came with success and is present and possible; otherwise the code that says what is wrong. */
int nvml_give_u32(int rc, uint32_t value, uint32_t max, uint32_t *ret_value);
int nvml_give_u64(int rc, uint64_t value, uint64_t *ret_value);
int nvml_give_celsius(int rc, int64_t celsius, int32_t *ret_celsius);
int nvml_give_bool(int rc, uint32_t value, bool *ret_value);
int nvml_give_device(int rc, struct nvml_device *device, struct nvml_device **ret_device);
enum { NVML_POWER_MW_MAX = 10 * 1000 * 1000, NVML_CELSIUS_MIN = -20, NVML_CELSIUS_MAX = 150 };
/* Does the code mean that an older symbol, or another source of the value, may still know it? */
bool nvml_is_worth_fallback(int rc);

static inline void nvml_enter(const struct nvml *n, const char *symbol)
{
    if (n->on_call)
        n->on_call(n->context, symbol);
}
static inline int nvml_leave(const struct nvml *n, int rc)
{
    if (n->on_call)
        n->on_call(n->context, NULL);
    return rc;
}

/* Call an optional function; FUNCTION_NOT_FOUND where the library lacks it. */
#define NVML_CALL(n, name, ...)                                                                                        \
    ((n)->call.name ? (nvml_enter((n), #name), nvml_leave((n), (n)->call.name(__VA_ARGS__)))                           \
                    : (int)NVML_RC_FUNCTION_NOT_FOUND)

#endif
