/* The past of devices, private to snapshot/: what a frame holds and how it is found. The store makes frames, snapshots
 * share them by reference count. */
#ifndef SNAPSHOT_FRAME_H
#define SNAPSHOT_FRAME_H

#include "snapshot/snapshot.h"

#include <stdatomic.h>

/* Where one field of one device stood at the moment of a frame. A reading stands for the time before it, so between two
 * cells the last valid_ns(newer) - valid_ns(older) nanoseconds before the newer sample are covered, evenly enough. */
struct snapshot_cell {
    double integral;   /* of value over valid time since the device appeared; unit x nanoseconds */
    int64_t valid_ns;  /* time covered by good readings since the device appeared */
    int64_t sample_ns; /* when the newest good reading was taken */
    double low, high;  /* of the samples since the frame kept before this one; +HUGE_VAL and -1 without a sample */
    double run_low, run_high; /* of this frame and the SNAPSHOT_RUN - 1 before it, as far as they have the field */
};
/* How many frames a reader of extremes takes at a step. */
enum { SNAPSHOT_RUN = 8 };

struct snapshot_past {
    uint32_t id;    /* snapshot_device.id */
    uint32_t slots; /* bit per past slot that has had a good reading */
    uint32_t first; /* index of the first of its cells */
};

struct snapshot_frame {
    atomic_uint refs;
    int64_t taken_ns;
    size_t n_devices;
    struct snapshot_past *devices; /* in the same block, as are the cells */
    struct snapshot_cell *cells;
};

/* Slots number the fields with a past in table order. */
#define SNAPSHOT_SLOT_OF_true(id) SNAPSHOT_SLOT_##id,
#define SNAPSHOT_SLOT_OF_false(id)
enum {
#define X(id, name, unit, has_past) SNAPSHOT_SLOT_OF_##has_past(id)
    SNAPSHOT_FIELDS(X)
#undef X
        SNAPSHOT_SLOT_COUNT
};
/* The slot of a field, or -1: it has no past. */
int snapshot_field_slot(enum snapshot_field field);

struct snapshot_frame *snapshot_frame_new(int64_t taken_ns, size_t n_devices, size_t n_cells);
struct snapshot_frame *snapshot_frame_ref(struct snapshot_frame *f);
void snapshot_frame_unref(struct snapshot_frame *f);

/* One field of one device, looked up in many frames: where it was in the last one is tried first in the next. */
struct snapshot_seek {
    uint32_t id;       /* of the device */
    uint32_t slot_bit; /* 1 << slot */
    uint32_t slots;    /* of the device in the last frame that had the field; 0: there was none yet */
    uint32_t rank;     /* how many of those are below the slot */
    size_t place;      /* of the device in the last frame; any number will do */
};
/* As snapshot_frame_find, whatever changed since the last frame. */
const struct snapshot_cell *snapshot_frame_search(const struct snapshot_frame *f, struct snapshot_seek *seek);

/* The cell, or NULL where the device or the field had not been read yet. */
static inline const struct snapshot_cell *snapshot_frame_find(const struct snapshot_frame *f,
                                                              struct snapshot_seek *seek)
{
    if (seek->place < f->n_devices) {
        const struct snapshot_past *past = &f->devices[seek->place];
        if (past->id == seek->id && past->slots == seek->slots && seek->slots != 0)
            return &f->cells[past->first + seek->rank];
    }
    return snapshot_frame_search(f, seek);
}

/* A snapshot with its reference count; readers see only the snapshot. */
struct snapshot_published {
    atomic_uint refs;
    struct snapshot snapshot;
};

#endif
