/* Finds, loads and initialises the library and resolves its symbols. The only place that knows dlopen and where drivers
 * put the file. Does not know devices. */
#include "nvml/library.h"

#include "base/base.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define SONAME "libnvidia-ml.so.1"
#if defined(__x86_64__)
#define TRIPLET "x86_64-linux-gnu"
#elif defined(__aarch64__)
#define TRIPLET "aarch64-linux-gnu"
#else
#error "NVML exists for x86-64 and aarch64"
#endif

const char *const nvml_search_paths[] = {
    SONAME, /* the dynamic loader: the distribution's place, or what the container toolkit mounted */
    "/run/nvidia/driver/usr/lib64/" SONAME, /* the GPU Operator's driver container */
    "/run/nvidia/driver/usr/lib/" TRIPLET "/" SONAME,
    "/run/nvidia/driver/usr/lib/" SONAME,
    "/usr/local/nvidia/lib64/" SONAME,     /* GKE with Container-Optimized OS */
    "/usr/lib/wsl/lib/" SONAME,            /* WSL2 */
    "/usr/lib/" TRIPLET "/nvidia/" SONAME, /* Jetson */
    NULL,
};

static const struct {
    const char *name;
    size_t offset;
    bool is_required;
} symbols[] = {
#define REQUIRED                   true
#define OPTIONAL                   false
#define X(need, name, ret, params) {#name, offsetof(struct nvml_symbols, name), need},
    NVML_SYMBOLS(X)
#undef X
#undef REQUIRED
#undef OPTIONAL
};

/* Fill the table; the names of missing required symbols go to `missing`. */
static int resolve(struct nvml *n, struct buf *missing)
{
    for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
        void *function = dlsym(n->handle, symbols[i].name);
        memcpy((char *)&n->call + symbols[i].offset, &function, sizeof(function));
        if (!function && symbols[i].is_required)
            (void)buf_printf(missing, "%s%s", missing->len ? ", " : "", symbols[i].name);
    }
    return missing->len ? -1 : 0;
}

/* Where the loader found it: the file of any of its functions. */
static char *resolved_path(const struct nvml *n, const char *asked)
{
    Dl_info info;
    void *function;
    memcpy(&function, &n->call.nvmlInit_v2, sizeof(function));
    char *real = dladdr(function, &info) && info.dli_fname ? realpath(info.dli_fname, NULL) : NULL;
    return real ? real : mem_strdup(asked);
}

/* Is this the loader's way of saying that the file itself, not one that it needs, is not there? */
static bool is_absent(const char *path, const char *text)
{
    return str_has_prefix(str_of(text), path) && strstr(text, "No such file");
}

/* Load one candidate. NULL on failure; `reason` then says why unless there is no such file. */
static struct nvml *load(const char *path, struct buf *reason)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *text = dlerror();
        if (text && !is_absent(path, text))
            (void)buf_printf(reason, "%s%s", reason->len ? "; " : "", text);
        return NULL;
    }
    struct nvml *n = mem_new(struct nvml);
    n->handle = handle;
    struct buf missing BUF_AUTO;
    buf_init(&missing, ERR_TEXT_MAX);
    if (resolve(n, &missing) == 0) {
        n->path = resolved_path(n, path);
        n->is_simulated = dlsym(handle, "nvmlsimName") != NULL;
        return n;
    }
    (void)buf_printf(reason, "%s%s has no %s", reason->len ? "; " : "", path, buf_cstr(&missing));
    nvml_close(n);
    return NULL;
}

static int say_none_found(const char *const *paths, struct buf *reason, struct err *e)
{
    if (reason->len)
        return err_set(e, ERR_FAILED_PRECONDITION,
                       "no usable NVML library: %s; give the driver's own libnvidia-ml.so.1 with --nvml-library",
                       buf_cstr(reason));
    struct buf tried BUF_AUTO;
    buf_init(&tried, ERR_TEXT_MAX);
    for (size_t i = 0; paths[i]; i++)
        (void)buf_printf(&tried, "%s%s", i ? ", " : "", paths[i]);
    return err_set(
        e, ERR_UNAVAILABLE,
        "no NVML library found (tried %s); in Kubernetes set runtimeClassName: nvidia and "
        "NVIDIA_VISIBLE_DEVICES=all, elsewhere install the NVIDIA driver or give the path with --nvml-library",
        buf_cstr(&tried));
}

struct nvml *nvml_open_first(const char *const *paths, struct err *e)
{
    struct buf reason BUF_AUTO;
    buf_init(&reason, ERR_TEXT_MAX / 2);
    for (size_t i = 0; paths[i]; i++) {
        struct nvml *n = load(paths[i], &reason);
        if (n)
            return n;
    }
    (void)say_none_found(paths, &reason, e);
    return NULL;
}

struct nvml *nvml_open(const char *path, struct err *e)
{
    if (!path)
        path = getenv("NVML_LIB");
    if (!path || !*path)
        return nvml_open_first(nvml_search_paths, e);
    /* Somebody said which: another one in its place would be a surprise. */
    const char *const only[] = {path, NULL};
    return nvml_open_first(only, e);
}

void nvml_close(struct nvml *n)
{
    if (!n)
        return;
    (void)nvml_shutdown(n);
    (void)dlclose(n->handle);
    free(n->path);
    free(n->process_buffer);
    free(n->gpm_buffer);
    free(n);
}

static void read_versions(struct nvml *n)
{
    int rc = NVML_CALL(n, nvmlSystemGetDriverVersion, n->driver_version, sizeof(n->driver_version));
    if (rc != NVML_RC_SUCCESS || nvml_clean_text(n->driver_version, sizeof(n->driver_version)))
        n->driver_version[0] = '\0';
    rc = NVML_CALL(n, nvmlSystemGetNVMLVersion, n->library_version, sizeof(n->library_version));
    if (rc != NVML_RC_SUCCESS || nvml_clean_text(n->library_version, sizeof(n->library_version)))
        n->library_version[0] = '\0';
}

int nvml_init(struct nvml *n)
{
    if (n->is_initialised)
        return NVML_RC_SUCCESS;
    int rc = NVML_CALL(n, nvmlInit_v2);
    if (rc != NVML_RC_SUCCESS)
        return rc;
    n->is_initialised = true;
    read_versions(n);
    n->has_broken_process_v3 = nvml_driver_breaks_process_v3(n->driver_version);
    return NVML_RC_SUCCESS;
}

int nvml_shutdown(struct nvml *n)
{
    if (!n->is_initialised)
        return NVML_RC_SUCCESS;
    n->is_initialised = false;
    return NVML_CALL(n, nvmlShutdown);
}

bool nvml_is_initialised(const struct nvml *n)
{
    return n->is_initialised;
}

const char *nvml_library_path(const struct nvml *n)
{
    return n->path;
}

bool nvml_is_simulated(const struct nvml *n)
{
    return n->is_simulated;
}

const char *nvml_driver_version(const struct nvml *n)
{
    return n->driver_version;
}

const char *nvml_library_version(const struct nvml *n)
{
    return n->library_version;
}

bool nvml_has_symbol(const struct nvml *n, const char *symbol)
{
    for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
        if (strcmp(symbols[i].name, symbol) != 0)
            continue;
        void *function;
        memcpy(&function, (const char *)&n->call + symbols[i].offset, sizeof(function));
        return function != NULL;
    }
    return false;
}

void nvml_observe(struct nvml *n, void (*on_call)(void *context, const char *symbol), void *context)
{
    n->on_call = on_call;
    n->context = context;
}

int nvml_read_cuda_version(const struct nvml *n, int32_t *ret_version)
{
    int32_t version = 0;
    int rc = NVML_CALL(n, nvmlSystemGetCudaDriverVersion, &version);
    if (rc == NVML_RC_SUCCESS && version <= 0)
        return NVML_RC_IMPLAUSIBLE;
    if (rc == NVML_RC_SUCCESS)
        *ret_version = version;
    return rc;
}
