/* Frames: how they are laid out, counted and searched. Who makes them, and when, is the store. */
#include "snapshot/frame.h"

#include <assert.h>

static_assert(SNAPSHOT_SLOT_COUNT <= 32, "a frame keeps its slots in 32 bits");

int snapshot_field_slot(enum snapshot_field field)
{
#define SLOT_true(id)  SNAPSHOT_SLOT_##id
#define SLOT_false(id) (-1)
    static const int slots[SNAPSHOT_FIELD_COUNT] = {
#define X(id, name, unit, has_past) [SNAPSHOT_##id] = SLOT_##has_past(id),
        SNAPSHOT_FIELDS(X)
#undef X
    };
    return field < SNAPSHOT_FIELD_COUNT ? slots[field] : -1;
}

struct snapshot_frame *snapshot_frame_new(int64_t taken_ns, size_t n_devices, size_t n_cells)
{
    size_t head = sizeof(struct snapshot_frame), cells = n_cells * sizeof(struct snapshot_cell);
    char *block = (char *)mem_new_array(1, head + cells + n_devices * sizeof(struct snapshot_past));
    struct snapshot_frame *f = (struct snapshot_frame *)(void *)block;
    atomic_init(&f->refs, 1);
    f->taken_ns = taken_ns;
    f->n_devices = n_devices;
    f->cells = (struct snapshot_cell *)(void *)(block + head);
    f->devices = (struct snapshot_past *)(void *)(block + head + cells);
    return f;
}

struct snapshot_frame *snapshot_frame_ref(struct snapshot_frame *f)
{
    atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
    return f;
}

void snapshot_frame_unref(struct snapshot_frame *f)
{
    if (f && atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) == 1)
        free(f);
}

static const struct snapshot_past *find_past(const struct snapshot_frame *f, struct snapshot_seek *seek)
{
    if (seek->place < f->n_devices && f->devices[seek->place].id == seek->id)
        return &f->devices[seek->place];
    for (size_t i = 0; i < f->n_devices; i++)
        if (f->devices[i].id == seek->id) {
            seek->place = i;
            return &f->devices[i];
        }
    return NULL;
}

const struct snapshot_cell *snapshot_frame_search(const struct snapshot_frame *f, struct snapshot_seek *seek)
{
    const struct snapshot_past *past = find_past(f, seek);
    if (!past || !(past->slots & seek->slot_bit))
        return NULL;
    seek->slots = past->slots;
    seek->rank = (uint32_t)__builtin_popcount(past->slots & (seek->slot_bit - 1));
    return &f->cells[past->first + seek->rank];
}
