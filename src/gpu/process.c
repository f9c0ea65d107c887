/* Which processes each device has and what each of them uses: lists every few seconds, because they cost milliseconds,
 * utilisation each cycle. Whose they are, and whether the pids are the host's, is attribution's business. */
#include "gpu/core.h"

#include <string.h>

static const int64_t shortest_limit_ns = 5 * NS_PER_S;
/* Drivers sample six times a second, some boards once: with shorter cycles none that is new is not nobody. */
static const uint64_t sampling_us = 1000000;

static void publish(struct gpu_core *core, const struct gpu_device *d, struct snapshot_device *place)
{
    snapshot_store_set_processes(core->store, place, d->processes.list.items, d->processes.list.len);
}

void gpu_process_reset(struct gpu_device *d)
{
    struct gpu_processes *p = &d->processes;
    p->next_list_ns = 0;
    p->since_us = p->sampled_us = 0;
    p->absent_lists = 0;
    p->is_utilization_absent = p->is_utilization_asked = false;
}

void gpu_process_fini(struct gpu_device *d)
{
    vec_fini(&d->processes.list);
    d->processes.n_listed = 0;
    gpu_process_reset(d);
}

/* ---- lists ---- */

static void forget_list(struct gpu_core *core, struct gpu_device *d, struct snapshot_device *place)
{
    d->processes.list.len = d->processes.n_listed = 0;
    publish(core, d, place);
}

/* The driver does not list them: that is not nobody. */
static void set_list_absent(struct gpu_core *core, struct gpu_device *d, struct snapshot_device *place)
{
    forget_list(core, d, place);
    place->process_list.status = place->process_utilization.status = SNAPSHOT_UNSUPPORTED;
}

/* All lists of one handle into core->found. What a driver has no list of is remembered; without the list of compute
 * processes the others say little. */
static int read_lists(struct gpu_core *core, struct gpu_device *d)
{
    core->found.len = 0;
    for (unsigned kind = 0; kind < NVML_PROCESS_KINDS; kind++) {
        int rc = d->processes.absent_lists >> kind & 1
                     ? (int)NVML_RC_NOT_SUPPORTED
                     : nvml_read_processes(core->nvml, d->handle, (enum nvml_process_kind)kind, &core->list);
        enum nvml_rc_kind answer = nvml_rc_kind(rc);
        bool is_absent = answer == NVML_KIND_ABSENT || answer == NVML_KIND_ABSENT_LOGGED;
        if (answer == NVML_KIND_ABSENT)
            d->processes.absent_lists |= (uint8_t)(1u << kind);
        if (is_absent && kind != NVML_PROCESS_COMPUTE)
            continue;
        if (rc != NVML_RC_SUCCESS)
            return rc;
        for (size_t i = 0; i < core->list.len; i++)
            if (core->list.items[i].pid != 0)
                vec_push(&core->found, core->list.items[i]);
    }
    return NVML_RC_SUCCESS;
}

static int compare_found(const void *left, const void *right)
{
    const struct nvml_process *a = left, *b = right;
    return a->pid < b->pid ? -1 : a->pid > b->pid;
}

static int compare_listed(const void *left, const void *right)
{
    const struct snapshot_process *a = left, *b = right;
    return a->pid < b->pid ? -1 : a->pid > b->pid;
}

/* As it was last known, by pid, or NULL: the listed ones are in order, the others few. */
static const struct snapshot_process *find_known(const struct gpu_processes *p, uint32_t pid)
{
    const struct snapshot_process key = {.pid = pid}, *found = NULL;
    if (p->n_listed > 0)
        found = bsearch(&key, p->list.items, p->n_listed, sizeof(key), compare_listed);
    for (size_t i = p->n_listed; !found && i < p->list.len; i++)
        if (p->list.items[i].pid == pid)
            found = &p->list.items[i];
    return found;
}

/* Is the entry one of this device? A whole GPU has them all. */
static bool belongs(const struct gpu_device *d, const struct nvml_process *found)
{
    if (d->kind != SNAPSHOT_MIG || found->gpu_instance_id == NVML_NONE_U32)
        return true;
    return found->gpu_instance_id == d->gpu_instance &&
           (found->compute_instance_id == d->compute_instance || found->compute_instance_id == NVML_NONE_U32);
}

/* A process that uses several APIs stands in several lists, each time with all its memory. */
static void merge(struct snapshot_process *process, const struct nvml_process *found, double total_bytes)
{
    bool is_known = found->used_bytes != NVML_NONE_U64 && !(total_bytes > 0 && (double)found->used_bytes > total_bytes);
    if (!is_known || (process->has_memory && process->memory_bytes >= found->used_bytes))
        return;
    process->has_memory = true;
    process->memory_bytes = found->used_bytes;
}

/* Take over from core->found, which is in order of pids; utilisation stays what it was until it is read. */
static void take_list(struct gpu_core *core, struct gpu_device *d, struct snapshot_device *place)
{
    const struct snapshot_reading *total = &place->readings[SNAPSHOT_MEMORY_TOTAL];
    struct gpu_processes *p = &d->processes;
    core->fresh.len = 0;
    for (size_t i = 0; i < core->found.len; i++) {
        const struct nvml_process *found = &core->found.items[i];
        if (!belongs(d, found))
            continue;
        if (core->fresh.len == 0 || core->fresh.items[core->fresh.len - 1].pid != found->pid) {
            const struct snapshot_process *known = find_known(p, found->pid);
            struct snapshot_process fresh = {.pid = found->pid};
            if (known)
                fresh = *known;
            fresh.has_memory = false;
            vec_push(&core->fresh, fresh);
        }
        merge(&core->fresh.items[core->fresh.len - 1], found, total->status == SNAPSHOT_OK ? total->value : 0);
    }
    p->list.len = 0;
    for (size_t i = 0; i < core->fresh.len; i++)
        vec_push(&p->list, core->fresh.items[i]);
    p->n_listed = p->list.len;
    place->process_list.status = SNAPSHOT_OK;
    place->process_list.taken_ns = core->clock_ns();
    publish(core, d, place);
}

/* What a failed call means for the device; the list of the last good one stays until it is too old. */
static void refuse_list(struct gpu_core *core, struct gpu_device *d, struct snapshot_device *place, int rc)
{
    switch (nvml_rc_kind(rc)) {
    case NVML_KIND_ABSENT:
    case NVML_KIND_ABSENT_LOGGED:
        set_list_absent(core, d, place);
        return;
    case NVML_KIND_GPU_LOST:
        gpu_inventory_lose(core, d, rc);
        return;
    case NVML_KIND_LIFECYCLE:
    case NVML_KIND_NEEDS_RESTART:
        (void)gpu_ends_session(core, rc);
        return;
    case NVML_KIND_TRANSIENT:
    case NVML_KIND_VALUE:
        gpu_count_error(core, rc);
        place->process_list.status = SNAPSHOT_FAILED;
    }
}

static void sort_found(struct gpu_core *core)
{
    if (core->found.len > 1)
        qsort(core->found.items, core->found.len, sizeof(core->found.items[0]), compare_found);
}

static void list_device(struct gpu_core *core, struct gpu_device *d)
{
    struct snapshot_device *place = snapshot_store_find(core->store, d->uuid);
    if (!place || !d->handle)
        return;
    int rc = read_lists(core, d);
    sort_found(core);
    if (rc == NVML_RC_SUCCESS)
        take_list(core, d, place);
    else
        refuse_list(core, d, place, rc);
}

static bool is_child(const struct gpu_device *d, const struct gpu_device *parent)
{
    return d->kind == SNAPSHOT_MIG && strcmp(d->parent_uuid, parent->uuid) == 0;
}

/* With the right to see them all, a divided GPU lists the processes of all its instances at once. */
static bool has_all_instances(const struct gpu_core *core)
{
    for (size_t i = 0; i < core->found.len; i++)
        if (core->found.items[i].gpu_instance_id == NVML_NONE_U32 ||
            core->found.items[i].compute_instance_id == NVML_NONE_U32)
            return false;
    return true;
}

/* One look at the GPU where that will do, else one at each MIG device. */
static void list_instances(struct gpu_core *core, struct gpu_device *parent)
{
    int rc = read_lists(core, parent);
    enum nvml_rc_kind kind = nvml_rc_kind(rc);
    bool is_common = rc == NVML_RC_SUCCESS && has_all_instances(core);
    if (kind == NVML_KIND_TRANSIENT)
        gpu_count_error(core, rc);
    if (gpu_ends_session(core, rc))
        return;
    if (kind == NVML_KIND_GPU_LOST) {
        gpu_inventory_lose(core, parent, rc);
        return;
    }
    sort_found(core);
    for (size_t i = 0; i < core->devices.len && !core->ending_rc && !parent->is_lost; i++) {
        struct gpu_device *d = &core->devices.items[i];
        struct snapshot_device *place = is_child(d, parent) ? snapshot_store_find(core->store, d->uuid) : NULL;
        if (place && is_common)
            take_list(core, d, place);
        else if (place)
            list_device(core, d);
        if (place)
            place->process_utilization.status = SNAPSHOT_UNSUPPORTED; /* no driver gives it with MIG on */
    }
}

/* A MIG device that nobody has asked about yet does not wait for its parent's turn. */
static bool has_new_instance(const struct gpu_core *core, const struct gpu_device *parent)
{
    for (size_t i = 0; i < core->devices.len; i++) {
        const struct gpu_device *d = &core->devices.items[i];
        const struct snapshot_device *place = is_child(d, parent) ? snapshot_store_find(core->store, d->uuid) : NULL;
        if (place && place->process_list.status == SNAPSHOT_NOT_READ)
            return true;
    }
    return false;
}

/* Turns of different devices fall into different cycles, so that no cycle carries them all. */
static int64_t next_turn(const struct gpu_core *core, const struct gpu_device *d, int64_t now_ns)
{
    int64_t period_ns = core->config.process_period_ns, turns = period_ns / core->config.period_ns;
    if (d->processes.next_list_ns == 0)
        return now_ns + period_ns - (d - core->devices.items) % (turns > 0 ? turns : 1) * core->config.period_ns;
    return d->processes.next_list_ns + period_ns > now_ns ? d->processes.next_list_ns + period_ns : now_ns + period_ns;
}

static void list_when_due(struct gpu_core *core, struct gpu_device *d)
{
    int64_t now_ns = core->clock_ns();
    bool is_parent = d->kind == SNAPSHOT_MIG_PARENT;
    if (now_ns < d->processes.next_list_ns && !(is_parent && has_new_instance(core, d)))
        return;
    d->processes.next_list_ns = next_turn(core, d, now_ns);
    if (!is_parent) {
        list_device(core, d);
        return;
    }
    struct snapshot_device *place = snapshot_store_find(core->store, d->uuid);
    if (place)
        set_list_absent(core, d, place);
    list_instances(core, d);
}

/* ---- utilisation ---- */

/* Since when samples are new to us, on the wall clock, as the driver stamps them. Where that is no use (the first look,
 * a gap, a clock that was set) it is the last cycle: anything older would be averaged in, and a time to come would hide
 * everything until then. */
static uint64_t since_us(const struct gpu_core *core, const struct gpu_processes *p, uint64_t now_us)
{
    uint64_t cycle_us = (uint64_t)(core->config.period_ns / 1000);
    uint64_t longest_us = cycle_us > 1000000 ? 3 * cycle_us : 3000000;
    if (p->since_us <= now_us && now_us - p->since_us <= longest_us)
        return p->since_us;
    return now_us > cycle_us ? now_us - cycle_us : 0;
}

/* Is the next sample still to come? */
static bool awaits_sample(const struct gpu_processes *p, uint64_t now_us)
{
    return p->sampled_us <= now_us && now_us - p->sampled_us < sampling_us;
}

static void note_newest(struct gpu_core *core, struct gpu_processes *p, uint64_t now_us)
{
    uint64_t newest_us = 0;
    for (size_t i = 0; i < core->samples.len; i++)
        if (core->samples.items[i].time_us > newest_us)
            newest_us = core->samples.items[i].time_us;
    p->since_us = newest_us > 0 ? newest_us : now_us;
    p->sampled_us = newest_us > 0 ? newest_us : p->sampled_us;
}

static int compare_usages(const void *left, const void *right)
{
    const struct gpu_usage *a = left, *b = right;
    return a->pid < b->pid ? -1 : a->pid > b->pid;
}

/* A process without a sample did nothing. One that has a sample and is not in the list has come since, has just ended
 * or is another pid namespace's: it is there as long as it has samples. */
static void take_usages(struct gpu_core *core, struct gpu_processes *p)
{
    p->list.len = p->n_listed;
    for (size_t i = 0; i < p->n_listed; i++) {
        struct snapshot_process *process = &p->list.items[i];
        const struct gpu_usage key = {.pid = process->pid}, *usage = NULL;
        if (core->usages.len > 0)
            usage = bsearch(&key, core->usages.items, core->usages.len, sizeof(key), compare_usages);
        process->has_utilization = !usage || usage->is_known;
        process->utilization = usage && usage->is_known ? usage->percent : 0;
    }
    for (size_t i = 0; i < core->usages.len && p->list.len < SNAPSHOT_PROCESSES_MAX; i++) {
        const struct gpu_usage *usage = &core->usages.items[i];
        if (!find_known(p, usage->pid))
            vec_push(&p->list, ((struct snapshot_process){.pid = usage->pid,
                                                          .has_utilization = usage->is_known,
                                                          .utilization = usage->is_known ? usage->percent : 0}));
    }
}

static void forget_usages(struct gpu_processes *p)
{
    for (size_t i = 0; i < p->list.len; i++)
        p->list.items[i].has_utilization = false;
}

static void settle_usages(struct gpu_core *core, struct gpu_device *d, struct snapshot_device *place, int rc)
{
    switch (nvml_rc_kind(rc)) {
    case NVML_KIND_VALUE:
        take_usages(core, &d->processes);
        place->process_utilization.status = SNAPSHOT_OK;
        place->process_utilization.taken_ns = core->clock_ns();
        return;
    case NVML_KIND_ABSENT:
        d->processes.is_utilization_absent = true;
        forget_usages(&d->processes);
        place->process_utilization.status = SNAPSHOT_UNSUPPORTED;
        return;
    case NVML_KIND_ABSENT_LOGGED: /* permission may come */
        forget_usages(&d->processes);
        place->process_utilization.status = SNAPSHOT_UNSUPPORTED;
        return;
    case NVML_KIND_GPU_LOST:
        gpu_inventory_lose(core, d, rc);
        return;
    case NVML_KIND_LIFECYCLE:
    case NVML_KIND_NEEDS_RESTART:
        (void)gpu_ends_session(core, rc);
        return;
    case NVML_KIND_TRANSIENT:
        gpu_count_error(core, rc);
        place->process_utilization.status = SNAPSHOT_FAILED;
    }
}

/* Nobody is listed and the GPU does nothing: what nobody uses is known without a call. */
static bool is_deserted(const struct gpu_device *d, const struct snapshot_device *place)
{
    const struct snapshot_reading *load = &place->readings[SNAPSHOT_UTILIZATION];
    bool is_idle = load->status == SNAPSHOT_OK ? load->value <= 0 : load->status == SNAPSHOT_UNSUPPORTED;
    return d->processes.n_listed == 0 && is_idle && d->processes.is_utilization_asked;
}

static void read_usages(struct gpu_core *core, struct gpu_device *d)
{
    struct snapshot_device *place = snapshot_store_find(core->store, d->uuid);
    if (!place || place->process_list.status == SNAPSHOT_UNSUPPORTED || d->processes.is_utilization_absent)
        return;
    uint64_t now_us = (uint64_t)(core->wall_ns() / 1000);
    int rc = NVML_RC_SUCCESS;
    core->usages.len = core->samples.len = 0;
    if (!is_deserted(d, place)) {
        rc =
            nvml_read_process_utilization(core->nvml, d->handle, since_us(core, &d->processes, now_us), &core->samples);
        d->processes.is_utilization_asked = true;
        if (rc == NVML_RC_SUCCESS && core->samples.len == 0 && awaits_sample(&d->processes, now_us))
            return; /* what was known stands, with its time */
    }
    if (rc == NVML_RC_SUCCESS) {
        note_newest(core, &d->processes, now_us);
        gpu_usage_of(&core->samples, &core->usages);
    }
    settle_usages(core, d, place, rc);
    publish(core, d, place);
}

/* ---- all of them ---- */

void gpu_process_read(struct gpu_core *core)
{
    for (size_t i = 0; core->config.has_processes && i < core->devices.len && !core->ending_rc; i++) {
        struct gpu_device *d = &core->devices.items[i];
        if (d->kind == SNAPSHOT_MIG || d->is_lost || !d->handle)
            continue;
        list_when_due(core, d);
        if (d->kind == SNAPSHOT_GPU && !d->is_lost && !core->ending_rc)
            read_usages(core, d);
    }
}

static bool is_over(int64_t taken_ns, int64_t period_ns, int64_t now_ns)
{
    int64_t limit_ns = 3 * period_ns > shortest_limit_ns ? 3 * period_ns : shortest_limit_ns;
    return taken_ns > 0 && now_ns - taken_ns > limit_ns;
}

/* As readings are missing beyond an age, so are processes: a list from before says nothing about who is there. */
void gpu_process_age(struct gpu_core *core)
{
    int64_t now_ns = core->clock_ns();
    for (size_t i = 0; core->config.has_processes && i < core->devices.len; i++) {
        struct gpu_device *d = &core->devices.items[i];
        struct snapshot_device *place = snapshot_store_find(core->store, d->uuid);
        if (!place)
            continue;
        if (is_over(place->process_utilization.taken_ns, core->config.period_ns, now_ns) &&
            place->process_utilization.status != SNAPSHOT_UNSUPPORTED) {
            place->process_utilization.status = SNAPSHOT_FAILED;
            forget_usages(&d->processes);
            publish(core, d, place);
        }
        if (is_over(place->process_list.taken_ns, core->config.process_period_ns, now_ns) &&
            place->process_list.status != SNAPSHOT_UNSUPPORTED) {
            place->process_list.status = SNAPSHOT_FAILED;
            forget_list(core, d, place);
        }
    }
}
