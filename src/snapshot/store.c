/* The writer's side: devices as the sampler fills them, their running integrals, and publishing. One thread only; what
 * it publishes never changes again. */
#include "snapshot/snapshot.h"

#include "snapshot/frame.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { FRAMES_MAX = 320 };
/* A second less the jitter of a timer: 320 frames still span more than the longest window. */
#define FRAME_SPACING_NS (950 * NS_PER_MS)

/* A device with what its frames are made from. Entries do not move, so their addresses serve as handles. */
struct entry {
    struct snapshot_device device;
    uint32_t slots;
    struct snapshot_cell cells[SNAPSHOT_SLOT_COUNT];
    size_t n_dropped;                       /* processes that were set beyond the ceiling */
    VEC(struct snapshot_process) processes; /* by pid; keeps its room, so that a steady device costs no memory */
};

struct snapshot_store {
    struct snapshot header;
    VEC(struct entry *) entries;
    VEC(struct snapshot_frame *) frames; /* kept ones, oldest first */
    uint32_t last_id;
};

struct snapshot_store *snapshot_store_new(int64_t period_ns)
{
    assert(period_ns > 0);
    struct snapshot_store *store = mem_new(struct snapshot_store);
    store->header.period_ns = period_ns;
    return store;
}

void snapshot_store_free(struct snapshot_store *store)
{
    if (!store)
        return;
    snapshot_store_remove_all(store);
    vec_fini(&store->entries);
    for (size_t i = 0; i < store->frames.len; i++)
        snapshot_frame_unref(store->frames.items[i]);
    vec_fini(&store->frames);
    free(store);
}

struct snapshot *snapshot_store_header(struct snapshot_store *store)
{
    return &store->header;
}

static void forget_extremes(struct snapshot_cell *c)
{
    c->low = HUGE_VAL;
    c->high = -1;
}

struct snapshot_device *snapshot_store_add(struct snapshot_store *store, const struct snapshot_device *device)
{
    if (store->entries.len == SNAPSHOT_DEVICES_MAX)
        return NULL;
    struct entry *e = mem_new(struct entry);
    e->device = *device;
    e->device.id = ++store->last_id;
    e->device.first_seen_ns = 0;
    memset(e->device.readings, 0, sizeof(e->device.readings));
    memset(&e->device.process_list, 0, sizeof(e->device.process_list));
    memset(&e->device.process_utilization, 0, sizeof(e->device.process_utilization));
    for (size_t i = 0; i < SNAPSHOT_SLOT_COUNT; i++)
        forget_extremes(&e->cells[i]);
    vec_push(&store->entries, e);
    return &e->device;
}

static void free_entry(struct entry *e)
{
    vec_fini(&e->processes);
    free(e);
}

static size_t place_of(const struct snapshot_store *store, const char *uuid)
{
    size_t i = 0;
    while (i < store->entries.len && !str_equals_nocase(str_of(store->entries.items[i]->device.uuid), uuid))
        i++;
    return i;
}

struct snapshot_device *snapshot_store_find(struct snapshot_store *store, const char *uuid)
{
    size_t i = place_of(store, uuid);
    return i < store->entries.len ? &store->entries.items[i]->device : NULL;
}

void snapshot_store_remove(struct snapshot_store *store, const char *uuid)
{
    size_t i = place_of(store, uuid);
    if (i == store->entries.len)
        return;
    free_entry(store->entries.items[i]);
    vec_remove(&store->entries, i);
}

void snapshot_store_remove_all(struct snapshot_store *store)
{
    for (size_t i = 0; i < store->entries.len; i++)
        free_entry(store->entries.items[i]);
    store->entries.len = 0;
}

static int compare_entries(const void *left, const void *right)
{
    const struct snapshot_device *a = &(*(struct entry *const *)left)->device;
    const struct snapshot_device *b = &(*(struct entry *const *)right)->device;
    const int64_t keys[][2] = {
        {a->index, b->index},
        {a->kind == SNAPSHOT_MIG, b->kind == SNAPSHOT_MIG},
        {a->gpu_instance, b->gpu_instance},
        {a->compute_instance, b->compute_instance},
        {a->id, b->id}, /* qsort is not stable: the order of arrival decides last */
    };
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}

void snapshot_store_sort(struct snapshot_store *store)
{
    if (store->entries.len > 1)
        qsort(store->entries.items, store->entries.len, sizeof(store->entries.items[0]), compare_entries);
}

/* For how long a reading stands: since the one before it, or a period where that one was missing by then. */
static int64_t span_ns(const struct snapshot *header, const struct snapshot_reading *r, enum snapshot_field field,
                       int64_t now_ns)
{
    int64_t period_ns = header->field_period_ns[field] > 0 ? header->field_period_ns[field] : header->period_ns;
    int64_t age_ns = now_ns - r->taken_ns;
    if (r->taken_ns == 0 || age_ns > snapshot_age_limit_ns(header, field))
        return period_ns;
    return age_ns > 0 ? age_ns : 0;
}

void snapshot_store_record(struct snapshot_store *store, struct snapshot_device *device, enum snapshot_field field,
                           double value, int64_t now_ns)
{
    struct snapshot_reading *r = &device->readings[field];
    if (!isfinite(value) || value < 0) {
        snapshot_store_fail(device, field, SNAPSHOT_FAILED);
        return;
    }
    int slot = snapshot_field_slot(field);
    if (slot >= 0) {
        struct entry *e = CONTAINER_OF(device, struct entry, device);
        struct snapshot_cell *c = &e->cells[slot];
        int64_t stands_ns = span_ns(&store->header, r, field, now_ns);
        c->integral += value * (double)stands_ns;
        c->valid_ns += stands_ns;
        c->sample_ns = now_ns;
        c->low = fmin(c->low, value);
        c->high = fmax(c->high, value);
        e->slots |= UINT32_C(1) << slot;
    }
    *r = (struct snapshot_reading){.status = SNAPSHOT_OK, .value = value, .taken_ns = now_ns};
}

void snapshot_store_fail(struct snapshot_device *device, enum snapshot_field field, enum snapshot_status status)
{
    assert(status == SNAPSHOT_UNSUPPORTED || status == SNAPSHOT_FAILED);
    device->readings[field].status = status;
    device->readings[field].code = 0;
}

static int compare_processes(const void *left, const void *right)
{
    uint32_t a = ((const struct snapshot_process *)left)->pid, b = ((const struct snapshot_process *)right)->pid;
    return a < b ? -1 : a > b;
}

void snapshot_store_set_processes(struct snapshot_store *store, struct snapshot_device *device,
                                  const struct snapshot_process *processes, size_t n)
{
    (void)store;
    struct entry *e = CONTAINER_OF(device, struct entry, device);
    e->processes.len = 0;
    for (size_t i = 0; i < n && i < SNAPSHOT_PROCESSES_MAX; i++) {
        struct snapshot_process p = processes[i];
        p.device_id = device->id;
        vec_push(&e->processes, p);
    }
    e->n_dropped = n - e->processes.len;
    if (e->processes.len > 1)
        qsort(e->processes.items, e->processes.len, sizeof(e->processes.items[0]), compare_processes);
}

/* Extremes over the run that ends with the cell: its own, and those of the frames kept last. */
static void fill_run(const struct snapshot_store *store, struct snapshot_seek *seek, struct snapshot_cell *c)
{
    c->run_low = c->low;
    c->run_high = c->high;
    for (size_t back = 1; back < SNAPSHOT_RUN && back <= store->frames.len; back++) {
        const struct snapshot_cell *older = snapshot_frame_find(store->frames.items[store->frames.len - back], seek);
        if (!older)
            return;
        c->run_low = fmin(c->run_low, older->low);
        c->run_high = fmax(c->run_high, older->high);
    }
}

/* Where everything stands now, as a frame with one reference. */
static struct snapshot_frame *take_frame(const struct snapshot_store *store, int64_t now_ns)
{
    size_t n_cells = 0;
    for (size_t i = 0; i < store->entries.len; i++)
        n_cells += (size_t)__builtin_popcount(store->entries.items[i]->slots);
    struct snapshot_frame *f = snapshot_frame_new(now_ns, store->entries.len, n_cells);
    uint32_t next = 0;
    for (size_t i = 0; i < store->entries.len; i++) {
        const struct entry *e = store->entries.items[i];
        f->devices[i] = (struct snapshot_past){.id = e->device.id, .slots = e->slots, .first = next};
        for (size_t slot = 0; slot < SNAPSHOT_SLOT_COUNT; slot++) {
            if (!(e->slots >> slot & 1))
                continue;
            struct snapshot_seek seek = {.id = e->device.id, .slot_bit = UINT32_C(1) << slot, .place = i};
            f->cells[next] = e->cells[slot];
            fill_run(store, &seek, &f->cells[next++]);
        }
    }
    return f;
}

static void drop_oldest_frame(struct snapshot_store *store)
{
    snapshot_frame_unref(store->frames.items[0]);
    vec_remove(&store->frames, 0);
}

/* Keep the frame if the last kept one is a second old. One frame from before the longest window stays, so that what the
 * first sample inside it covers is known. */
static void keep_frame(struct snapshot_store *store, struct snapshot_frame *f)
{
    size_t n = store->frames.len;
    if (n > 0 && f->taken_ns - store->frames.items[n - 1]->taken_ns < FRAME_SPACING_NS)
        return;
    vec_push(&store->frames, snapshot_frame_ref(f));
    for (size_t i = 0; i < store->entries.len; i++)
        for (size_t slot = 0; slot < SNAPSHOT_SLOT_COUNT; slot++)
            forget_extremes(&store->entries.items[i]->cells[slot]);
    while (store->frames.len > FRAMES_MAX ||
           (store->frames.len > 1 && f->taken_ns - store->frames.items[1]->taken_ns > SNAPSHOT_WINDOW_MAX_NS))
        drop_oldest_frame(store);
}

/* How much is in a snapshot. */
struct extent {
    size_t n_devices, n_frames, n_processes, n_processes_dropped;
};

static struct extent measure(const struct snapshot_store *store)
{
    struct extent x = {.n_devices = store->entries.len};
    for (size_t i = 0; i < store->entries.len; i++) {
        const struct entry *e = store->entries.items[i];
        size_t room = SNAPSHOT_PROCESSES_MAX - x.n_processes;
        size_t n = e->processes.len < room ? e->processes.len : room;
        x.n_processes += n;
        x.n_processes_dropped += e->processes.len - n + e->n_dropped;
    }
    return x;
}

/* A snapshot, its devices, their processes and its list of frames in one block. */
static struct snapshot *new_snapshot(const struct snapshot *header, const struct extent *x)
{
    size_t head = sizeof(struct snapshot_published), list = x->n_frames * sizeof(struct snapshot_frame *);
    size_t devices = x->n_devices * sizeof(struct snapshot_device);
    char *block = (char *)mem_new_array(1, head + list + devices + x->n_processes * sizeof(struct snapshot_process));
    struct snapshot_published *p = (struct snapshot_published *)(void *)block;
    atomic_init(&p->refs, 1);
    p->snapshot = *header;
    p->snapshot.n_frames = x->n_frames;
    p->snapshot.frames = (struct snapshot_frame *const *)(void *)(block + head);
    p->snapshot.n_devices = x->n_devices;
    p->snapshot.devices = (const struct snapshot_device *)(void *)(block + head + list);
    p->snapshot.n_processes = x->n_processes;
    p->snapshot.n_processes_dropped = x->n_processes_dropped;
    p->snapshot.processes = (const struct snapshot_process *)(void *)(block + head + list + devices);
    return &p->snapshot;
}

static void copy_devices(struct snapshot_store *store, struct snapshot *s)
{
    struct snapshot_device *devices = (struct snapshot_device *)(uintptr_t)s->devices;
    struct snapshot_process *processes = (struct snapshot_process *)(uintptr_t)s->processes;
    size_t room = s->n_processes;
    for (size_t i = 0; i < s->n_devices; i++) {
        struct entry *e = store->entries.items[i];
        if (e->device.first_seen_ns == 0)
            e->device.first_seen_ns = s->taken_ns;
        devices[i] = e->device;
        size_t n = e->processes.len < room ? e->processes.len : room;
        if (n > 0)
            memcpy(processes, e->processes.items, n * sizeof(*processes));
        processes += n;
        room -= n;
    }
}

struct snapshot *snapshot_store_publish(struct snapshot_store *store, int64_t now_ns)
{
    struct snapshot_frame *current = take_frame(store, now_ns);
    keep_frame(store, current);
    size_t n_kept = store->frames.len;
    bool is_kept = store->frames.items[n_kept - 1] == current;

    struct extent extent = measure(store);
    extent.n_frames = n_kept + !is_kept;
    struct snapshot *s = new_snapshot(&store->header, &extent);
    s->taken_ns = now_ns;
    struct snapshot_frame **frames = (struct snapshot_frame **)(uintptr_t)s->frames;
    for (size_t i = 0; i < n_kept; i++)
        frames[i] = snapshot_frame_ref(store->frames.items[i]);
    if (is_kept)
        snapshot_frame_unref(current); /* the list of kept frames holds it */
    else
        frames[n_kept] = current;
    copy_devices(store, s);
    return s;
}
