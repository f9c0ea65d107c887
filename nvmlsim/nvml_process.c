/* Running processes and what each of them uses, in every layout the library has had. */
#include "nvmlsim/sim.h"

#include <math.h>
#include <string.h>

#define MIB_BYTES ((uint64_t)1 << 20)

/* The full answer about one process; the variants keep what their struct has. */
static struct nvml_process_detail detail_of(const struct sim_call *c, const struct process *p)
{
    return (struct nvml_process_detail){
        .pid = p->pid,
        .used_bytes = (uint64_t)llround(curve_value(&p->memory_mib, c->t_s) * (double)MIB_BYTES),
        .gpu_instance_id = c->layout->is_enabled ? p->gpu_instance : NVML_NONE_U32,
        .compute_instance_id = c->layout->is_enabled ? p->compute_instance : NVML_NONE_U32,
        .protected_bytes = NVML_NONE_U64,
    };
}

/* Is the process one of this device: of the whole GPU, or of the compute instance that was asked for? */
static bool belongs(const struct sim_call *c, const struct process *p, enum process_type type)
{
    if (p->type != type || p->is_hidden || !player_is_running(p, c->t_s))
        return false;
    if (!c->instance)
        return !c->layout->is_enabled || p->gpu_instance != UINT32_MAX;
    return p->gpu_instance == c->instance->id && p->compute_instance == c->compute->id;
}

static uint32_t count_processes(const struct sim_call *c, enum process_type type)
{
    uint32_t n = 0;
    for (size_t i = 0; i < c->gpu->n_processes; i++)
        n += belongs(c, &c->gpu->processes[i], type);
    return n;
}

/* Capacity in, count out; too small gives INSUFFICIENT_SIZE and the count that is needed. `size` is what one element
 * takes in the caller's layout, which is a beginning of nvml_process_detail. */
static int list_processes(struct sim_call *c, enum process_type type, uint32_t *n, void *out, size_t size)
{
    if (!n)
        return NVML_RC_INVALID_ARGUMENT;
    uint32_t room = *n, needed = count_processes(c, type), at = 0;
    *n = needed;
    if (needed > room || (needed > 0 && !out))
        return NVML_RC_INSUFFICIENT_SIZE;
    for (size_t i = 0; i < c->gpu->n_processes; i++) {
        const struct process *p = &c->gpu->processes[i];
        if (!belongs(c, p, type))
            continue;
        struct nvml_process_detail detail = detail_of(c, p);
        memcpy((char *)out + at++ * size, &detail, size);
    }
    return NVML_RC_SUCCESS;
}

/* R535.43 up to, not including, R535.86 wrote the long element from _v3, into arrays of the short one. */
static size_t v3_size(const struct sim_call *c)
{
    const struct scenario *s = c->player->scenario;
    bool is_trap = s->driver_major == 535 && s->driver_minor >= 43 && s->driver_minor < 86;
    return is_trap ? sizeof(struct nvml_process_detail) : sizeof(struct nvml_process);
}

#define PROCESS_LISTS(name, type)                                                                                      \
    int nvmlDeviceGet##name##RunningProcesses_v3(struct nvml_device *device, uint32_t *n,                              \
                                                 struct nvml_process *processes)                                       \
    {                                                                                                                  \
        SIM_DEVICE(c, device, SIM_ANY);                                                                                \
        return list_processes(&c, type, n, processes, v3_size(&c));                                                    \
    }                                                                                                                  \
    int nvmlDeviceGet##name##RunningProcesses_v2(struct nvml_device *device, uint32_t *n,                              \
                                                 struct nvml_process *processes)                                       \
    {                                                                                                                  \
        SIM_DEVICE(c, device, SIM_ANY);                                                                                \
        return list_processes(&c, type, n, processes, sizeof(*processes));                                             \
    }                                                                                                                  \
    int nvmlDeviceGet##name##RunningProcesses(struct nvml_device *device, uint32_t *n,                                 \
                                              struct nvml_process_v1 *processes)                                       \
    {                                                                                                                  \
        SIM_DEVICE(c, device, SIM_ANY);                                                                                \
        return list_processes(&c, type, n, processes, sizeof(*processes));                                             \
    }

PROCESS_LISTS(Compute, PROCESS_COMPUTE)
PROCESS_LISTS(Graphics, PROCESS_GRAPHICS)
PROCESS_LISTS(MPSCompute, PROCESS_MPS)

/* Hopper and later. */
int nvmlDeviceGetRunningProcessDetailList(struct nvml_device *device, struct nvml_process_detail_list *list)
{
    SIM_DEVICE(c, device, SIM_ANY);
    if (!list || list->mode > PROCESS_MPS)
        return NVML_RC_INVALID_ARGUMENT;
    if (list->version != NVML_VERSION_WORD(struct nvml_process_detail_list, 1))
        return NVML_RC_ARGUMENT_VERSION_MISMATCH;
    if (c.gpu->board->architecture < NVML_ARCH_HOPPER)
        return NVML_RC_NOT_SUPPORTED;
    return list_processes(&c, (enum process_type)list->mode, &list->n, list->processes, sizeof(*list->processes));
}

/* ---- utilisation ---- */

/* The ring holds the last 10 s, one entry each sixth of a second (72 in the driver). */
#define RING_S   10.0
#define PERIOD_S (1.0 / 6)

/* Seconds between two samples, and the part of them in which the process was there. */
struct span {
    double from, until, begin, end;
};

/* A process that was not there for a part of the time did nothing then: those of a GPU add up to what it did. */
static uint32_t mean_percent(const struct curve *curve, const struct span *s)
{
    if (s->until - s->from < 1e-9)
        return sim_round(curve_value(curve, s->until));
    return sim_round((curve_integral(curve, s->end) - curve_integral(curve, s->begin)) / (s->until - s->from));
}

/* The mean of what the ring has since since_s. False when there is nothing newer, or the process did nothing. */
static bool load_of(const struct sim_call *c, const struct process *p, double since_s, struct nvml_process_load *ret)
{
    double until = floor(c->t_s / PERIOD_S) * PERIOD_S, from = fmax(fmax(since_s, until - RING_S), 0);
    struct span s = {.from = from, .until = until, .begin = fmax(from, p->from_s), .end = fmin(until, p->until_s)};
    if (s.begin > s.end || (since_s >= 0 && from >= until - 1e-6)) /* microseconds round */
        return false;
    *ret = (struct nvml_process_load){
        .time_us = sim_time_us(c, until),
        .pid = p->pid,
        .sm = mean_percent(&p->sm, &s),
        .memory = mean_percent(&p->memory, &s),
        .encoder = mean_percent(&p->encoder, &s),
        .decoder = mean_percent(&p->decoder, &s),
    };
    return ret->sm || ret->memory || ret->encoder || ret->decoder;
}

static int check_utilization(const struct sim_call *c)
{
    return c->layout->is_enabled ? NVML_RC_NOT_SUPPORTED : NVML_RC_SUCCESS;
}

/* One entry for each process that did something since then; none is NOT_FOUND, which is the normal answer when idle. */
int nvmlDeviceGetProcessUtilization(struct nvml_device *device, struct nvml_process_utilization *samples, uint32_t *n,
                                    uint64_t since_us)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    if (!n)
        return NVML_RC_INVALID_ARGUMENT;
    if (check_utilization(&c) != NVML_RC_SUCCESS)
        return NVML_RC_NOT_SUPPORTED;
    uint32_t room = *n, at = 0;
    *n = (uint32_t)c.gpu->n_processes;
    if (!samples || room < *n)
        return *n ? NVML_RC_INSUFFICIENT_SIZE : NVML_RC_NOT_FOUND;
    for (size_t i = 0; i < c.gpu->n_processes; i++) {
        struct nvml_process_load load;
        if (load_of(&c, &c.gpu->processes[i], since_us ? sim_time_s(&c, since_us) : -1, &load))
            samples[at++] = (struct nvml_process_utilization){load.pid,    load.time_us, load.sm,
                                                              load.memory, load.encoder, load.decoder};
    }
    *n = at;
    return at ? NVML_RC_SUCCESS : NVML_RC_NOT_FOUND;
}

int nvmlDeviceGetProcessesUtilizationInfo(struct nvml_device *device, struct nvml_process_load_list *list)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    if (!list)
        return NVML_RC_INVALID_ARGUMENT;
    if (list->version != NVML_VERSION_WORD(struct nvml_process_load_list, 1))
        return NVML_RC_ARGUMENT_VERSION_MISMATCH;
    if (check_utilization(&c) != NVML_RC_SUCCESS)
        return NVML_RC_NOT_SUPPORTED;
    uint32_t room = list->n, at = 0;
    list->n = (uint32_t)c.gpu->n_processes;
    if (!list->processes || room < list->n)
        return list->n ? NVML_RC_INSUFFICIENT_SIZE : NVML_RC_NOT_FOUND;
    double since_s = list->since_us ? sim_time_s(&c, list->since_us) : -1;
    for (size_t i = 0; i < c.gpu->n_processes; i++) {
        struct nvml_process_load load;
        if (load_of(&c, &c.gpu->processes[i], since_s, &load))
            list->processes[at++] = load;
    }
    list->n = at;
    return at ? NVML_RC_SUCCESS : NVML_RC_NOT_FOUND;
}
