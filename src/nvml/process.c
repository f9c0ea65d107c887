/* Processes on a GPU: three generations of the list's ABI behind one call, and per-process utilization. Lists race with
 * the driver and grow, so the buffer is ours, grows with them and has a ceiling. */
#include "nvml/library.h"

#include "base/base.h"

#include <string.h>

enum {
    FIRST_CAPACITY = 64,
    TRIES_MAX = 5,
    PID_MAX_LIMIT = 4 * 1024 * 1024, /* the kernel's largest pid_max on 64 bits */
    /* Drivers 535.43 to 535.85 write elements of this size from the _v3 functions. The buffer has room for them in any
     * case, so that a driver with that fault and an unreadable version cannot write past its end. */
    WIDEST_ELEMENT_BYTES = 32,
    INSTANCE_ID_MAX = 1024, /* MIG's ids are small; so the low half of a byte count is none */
    PERCENT_MAX = 100,
};

/* "535.54.03" -> 535, 54. */
static bool parse_version(struct str version, uint64_t *ret_major, uint64_t *ret_minor)
{
    struct str major = str_cut(&version, '.');
    struct str minor = str_cut(&version, '.');
    return minor.ptr && num_parse_u64(major, ret_major) == 0 && num_parse_u64(minor, ret_minor) == 0;
}

bool nvml_driver_breaks_process_v3(const char *driver_version)
{
    uint64_t major = 0, minor = 0;
    return parse_version(str_of(driver_version), &major, &minor) && major == 535 && minor >= 43 && minor < 86;
}

static uint32_t grow_to(struct nvml *n, uint32_t capacity)
{
    if (capacity > NVML_PROCESSES_MAX)
        capacity = NVML_PROCESSES_MAX;
    if (capacity > n->process_capacity) {
        n->process_buffer = mem_resize(n->process_buffer, capacity, WIDEST_ELEMENT_BYTES);
        n->process_capacity = capacity;
    }
    return n->process_capacity;
}

/* One generation of one list: its function, the size of its elements. */
struct source {
    const char *symbol;
    int (*read)(struct nvml_device *device, uint32_t *n, struct nvml_process *processes);
    int (*read_v1)(struct nvml_device *device, uint32_t *n, struct nvml_process_v1 *processes);
    bool is_v3;
};

static int call_source(struct nvml *n, const struct source *s, struct nvml_device *d, uint32_t *len)
{
    nvml_enter(n, s->symbol);
    return nvml_leave(n, s->read ? s->read(d, len, n->process_buffer) : s->read_v1(d, len, n->process_buffer));
}

/* Fill the buffer; grow it by half more than asked for, because the list may grow again before the next try. */
static int fill(struct nvml *n, const struct source *s, struct nvml_device *d, uint32_t *ret_len)
{
    uint32_t capacity = grow_to(n, FIRST_CAPACITY);
    int rc = NVML_RC_INSUFFICIENT_SIZE;
    for (int i = 0; i < TRIES_MAX && rc == NVML_RC_INSUFFICIENT_SIZE; i++) {
        memset(n->process_buffer, 0, (size_t)capacity * WIDEST_ELEMENT_BYTES);
        uint32_t len = capacity;
        rc = call_source(n, s, d, &len);
        if (rc == NVML_RC_SUCCESS && len > capacity)
            return NVML_RC_IMPLAUSIBLE;
        if (rc == NVML_RC_SUCCESS)
            *ret_len = len;
        if (rc == NVML_RC_INSUFFICIENT_SIZE && len > NVML_PROCESSES_MAX)
            return rc;
        if (rc == NVML_RC_INSUFFICIENT_SIZE)
            capacity = grow_to(n, (len > capacity ? len : capacity) / 2 * 3);
    }
    return rc;
}

/* Element i of the buffer, from either ABI. */
static struct nvml_process element(const struct nvml *n, const struct source *s, uint32_t i)
{
    if (s->read)
        return ((const struct nvml_process *)n->process_buffer)[i];
    struct nvml_process_v1 v1 = ((const struct nvml_process_v1 *)n->process_buffer)[i];
    return (struct nvml_process){.pid = v1.pid,
                                 .used_bytes = v1.used_bytes,
                                 .gpu_instance_id = NVML_NONE_U32,
                                 .compute_instance_id = NVML_NONE_U32};
}

static bool is_garbage(struct nvml_process p)
{
    return p.pid > PID_MAX_LIMIT || (p.gpu_instance_id > INSTANCE_ID_MAX && p.gpu_instance_id != NVML_NONE_U32) ||
           (p.compute_instance_id > INSTANCE_ID_MAX && p.compute_instance_id != NVML_NONE_U32);
}

static int take(struct nvml *n, const struct source *s, struct nvml_device *d, struct nvml_process_list *list)
{
    uint32_t len = 0;
    int rc = fill(n, s, d, &len);
    for (uint32_t i = 0; i < len && rc == NVML_RC_SUCCESS; i++)
        if (is_garbage(element(n, s, i)))
            rc = NVML_RC_IMPLAUSIBLE;
    if (rc != NVML_RC_SUCCESS)
        return rc;
    list->len = 0;
    for (uint32_t i = 0; i < len; i++)
        vec_push(list, element(n, s, i));
    return rc;
}

/* Newest first. The two newer generations share a struct. */
#define SOURCES(kind)                                                                                                  \
    {                                                                                                                  \
        {"nvmlDeviceGet" #kind "RunningProcesses_v3", n->call.nvmlDeviceGet##kind##RunningProcesses_v3, NULL, true},   \
            {"nvmlDeviceGet" #kind "RunningProcesses_v2", n->call.nvmlDeviceGet##kind##RunningProcesses_v2, NULL,      \
             false},                                                                                                   \
        {                                                                                                              \
            "nvmlDeviceGet" #kind "RunningProcesses", NULL, n->call.nvmlDeviceGet##kind##RunningProcesses, false       \
        }                                                                                                              \
    }
enum { GENERATIONS = 3 };

int nvml_read_processes(struct nvml *n, struct nvml_device *d, enum nvml_process_kind kind,
                        struct nvml_process_list *list)
{
    const struct source table[NVML_PROCESS_KINDS][GENERATIONS] = {
        [NVML_PROCESS_COMPUTE] = SOURCES(Compute),
        [NVML_PROCESS_GRAPHICS] = SOURCES(Graphics),
        [NVML_PROCESS_MPS] = SOURCES(MPSCompute),
    };
    int rc = NVML_RC_FUNCTION_NOT_FOUND;
    for (size_t i = 0; i < GENERATIONS && rc == NVML_RC_FUNCTION_NOT_FOUND; i++) {
        const struct source *s = &table[kind][i];
        if ((!s->read && !s->read_v1) || (s->is_v3 && n->has_broken_process_v3))
            continue;
        rc = take(n, s, d, list);
        if (rc == NVML_RC_IMPLAUSIBLE && s->is_v3) { /* the 535 fault under a version that we could not read */
            n->has_broken_process_v3 = true;
            rc = NVML_RC_FUNCTION_NOT_FOUND;
        }
    }
    return rc;
}

static bool is_leftover(const struct nvml_process_utilization *s, uint64_t since_us)
{
    return s->pid == 0 || s->pid > PID_MAX_LIMIT || s->time_us <= since_us;
}

/* A process whose sample cannot be was active all the same: it stays, without the values. */
static struct nvml_process_utilization without_impossible(struct nvml_process_utilization s)
{
    if (s.sm > PERCENT_MAX || s.memory > PERCENT_MAX || s.encoder > PERCENT_MAX || s.decoder > PERCENT_MAX)
        s.sm = s.memory = s.encoder = s.decoder = NVML_NONE_U32;
    return s;
}

_Static_assert(sizeof(struct nvml_process_utilization) <= WIDEST_ELEMENT_BYTES, "shares the buffer");

static int call_utilization(struct nvml *n, struct nvml_device *d, uint32_t *len, uint64_t since_us)
{
    return NVML_CALL(n, nvmlDeviceGetProcessUtilization, d, n->process_buffer, len, since_us);
}

static int fill_utilization(struct nvml *n, struct nvml_device *d, uint64_t since_us, uint32_t *ret_len)
{
    uint32_t capacity = grow_to(n, FIRST_CAPACITY);
    int rc = NVML_RC_INSUFFICIENT_SIZE;
    for (int i = 0; i < TRIES_MAX && rc == NVML_RC_INSUFFICIENT_SIZE; i++) {
        memset(n->process_buffer, 0, (size_t)capacity * WIDEST_ELEMENT_BYTES);
        uint32_t len = capacity;
        rc = call_utilization(n, d, &len, since_us);
        if (rc == NVML_RC_SUCCESS && len > capacity)
            return NVML_RC_IMPLAUSIBLE;
        *ret_len = rc == NVML_RC_SUCCESS ? len : 0;
        if (rc == NVML_RC_INSUFFICIENT_SIZE)
            capacity = grow_to(n, (len > capacity ? len : capacity) + FIRST_CAPACITY);
    }
    return rc;
}

int nvml_read_process_utilization(struct nvml *n, struct nvml_device *d, uint64_t since_us,
                                  struct nvml_process_utilization_list *list)
{
    uint32_t len = 0;
    int rc = fill_utilization(n, d, since_us, &len);
    if (rc == NVML_RC_NOT_FOUND) /* nobody was active: the normal idle */
        rc = NVML_RC_SUCCESS;
    if (rc != NVML_RC_SUCCESS)
        return rc;
    list->len = 0;
    const struct nvml_process_utilization *samples = n->process_buffer;
    for (uint32_t i = 0; i < len; i++)
        if (!is_leftover(&samples[i], since_us))
            vec_push(list, without_impossible(samples[i]));
    return rc;
}
