/* What readers ask of a snapshot: names, freshness, means and peaks of the past, devices by UUID. It changes nothing.
 */
#include "snapshot/snapshot.h"

#include "snapshot/frame.h"

#include <assert.h>
#include <math.h>

const char *snapshot_field_name(enum snapshot_field field)
{
    static const char *const names[SNAPSHOT_FIELD_COUNT] = {
#define X(id, name, unit, has_past) [SNAPSHOT_##id] = (name),
        SNAPSHOT_FIELDS(X)
#undef X
    };
    return field < SNAPSHOT_FIELD_COUNT ? names[field] : "unknown";
}

const char *snapshot_field_unit(enum snapshot_field field)
{
    static const char *const units[SNAPSHOT_FIELD_COUNT] = {
#define X(id, name, unit, has_past) [SNAPSHOT_##id] = (unit),
        SNAPSHOT_FIELDS(X)
#undef X
    };
    return field < SNAPSHOT_FIELD_COUNT ? units[field] : "unknown";
}

const char *snapshot_driver_state_name(enum snapshot_driver_state state)
{
    static const char *const names[] = {
#define X(id, name) [SNAPSHOT_DRIVER_##id] = (name),
        SNAPSHOT_DRIVER_STATES(X)
#undef X
    };
    return state < ARRAY_LEN(names) ? names[state] : "unknown";
}

static struct snapshot_published *published_of(const struct snapshot *s)
{
    /* Through an integer: the count moves although readers hold a const snapshot. */
    return (struct snapshot_published *)((uintptr_t)s - offsetof(struct snapshot_published, snapshot));
}

struct snapshot *snapshot_ref(const struct snapshot *s)
{
    struct snapshot_published *p = published_of(s);
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    return &p->snapshot;
}

void snapshot_unref(const struct snapshot *s)
{
    if (!s)
        return;
    struct snapshot_published *p = published_of(s);
    if (atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) > 1)
        return;
    for (size_t i = 0; i < s->n_frames; i++)
        snapshot_frame_unref(s->frames[i]);
    free(p); /* devices and the list of frames are in the same block */
}

int64_t snapshot_age_limit_ns(const struct snapshot *s, enum snapshot_field field)
{
    int64_t period_ns = s->field_period_ns[field] > 0 ? s->field_period_ns[field] : s->period_ns;
    return 3 * period_ns > 5 * NS_PER_S ? 3 * period_ns : 5 * NS_PER_S;
}

bool snapshot_is_fresh(const struct snapshot *s, const struct snapshot_device *d, enum snapshot_field field,
                       int64_t now_ns)
{
    const struct snapshot_reading *r = &d->readings[field];
    bool is_given = r->status == SNAPSHOT_OK || r->status == SNAPSHOT_FAILED;
    return is_given && !d->is_lost && r->taken_ns != 0 && now_ns - r->taken_ns <= snapshot_age_limit_ns(s, field);
}

/* The past of one field over a window, newest frame first. */
struct walk {
    const struct snapshot *s;
    struct snapshot_seek seek;
    size_t left; /* frames not yet visited */
    int64_t start_ns;
};

static struct walk walk_begin(const struct snapshot *s, const struct snapshot_device *d, int slot, int64_t start_ns)
{
    size_t place = d >= s->devices && d < s->devices + s->n_devices ? (size_t)(d - s->devices) : 0;
    struct snapshot_seek seek = {.id = d->id, .slot_bit = UINT32_C(1) << slot, .place = place};
    return (struct walk){.s = s, .seek = seek, .left = s->n_frames, .start_ns = start_ns};
}

/* The next older cell, or NULL where the past ends. */
static const struct snapshot_cell *walk_older(struct walk *w)
{
    if (w->left == 0)
        return NULL;
    w->left--;
    return snapshot_frame_find(w->s->frames[w->left], &w->seek);
}

static int64_t window_start_ns(int64_t now_ns, int64_t window_ns)
{
    return now_ns - (window_ns < SNAPSHOT_WINDOW_MAX_NS ? window_ns : SNAPSHOT_WINDOW_MAX_NS);
}

/* The mean of the time after w->start_ns, or false where no sample of that time is kept. */
static bool mean_of_past(struct walk *w, double *ret_mean)
{
    static const struct snapshot_cell nothing = {0};
    const struct snapshot_cell *newest = walk_older(w), *oldest = NULL, *base = newest;
    double low = HUGE_VAL, high = -1;
    for (; base && base->sample_ns > w->start_ns; base = walk_older(w)) {
        oldest = base;
        low = base->low < low ? base->low : low;
        high = base->high > high ? base->high : high;
    }
    if (!oldest)
        return false;
    if (!base)
        base = &nothing; /* the device appeared within the window */

    /* Of the time that `oldest` covers, only the part after the start counts. */
    int64_t step_ns = oldest->valid_ns - base->valid_ns, inside_ns = oldest->sample_ns - w->start_ns;
    double part = inside_ns < step_ns ? (double)inside_ns / (double)step_ns : 1;
    double integral = newest->integral - oldest->integral + part * (oldest->integral - base->integral);
    double valid_ns = (double)(newest->valid_ns - oldest->valid_ns) + part * (double)step_ns;
    if (!(valid_ns > 0))
        return false;
    /* The mean lies between the samples: without the clamp rounding turns a steady 75 into 74.99999999. */
    *ret_mean = fmin(fmax(integral / valid_ns, low), high);
    return true;
}

bool snapshot_mean(const struct snapshot *s, const struct snapshot_device *d, enum snapshot_field field, int64_t now_ns,
                   int64_t window_ns, double *ret_mean)
{
    int slot = snapshot_field_slot(field);
    assert(slot >= 0 || window_ns == 0);
    if (!snapshot_is_fresh(s, d, field, now_ns))
        return false;
    double mean = d->readings[field].value;
    if (window_ns > 0) {
        struct walk w = walk_begin(s, d, slot, window_start_ns(now_ns, window_ns));
        (void)mean_of_past(&w, &mean); /* no sample in the window: the newest reading stays */
    }
    *ret_mean = mean;
    return true;
}

bool snapshot_peak(const struct snapshot *s, const struct snapshot_device *d, enum snapshot_field field, int64_t now_ns,
                   int64_t window_ns, double *ret_peak)
{
    int slot = snapshot_field_slot(field);
    assert(slot >= 0 || window_ns == 0);
    if (!snapshot_is_fresh(s, d, field, now_ns))
        return false;
    double peak = d->readings[field].value;
    if (window_ns > 0) {
        struct walk w = walk_begin(s, d, slot, window_start_ns(now_ns, window_ns));
        for (const struct snapshot_cell *c; (c = walk_older(&w)) && c->sample_ns >= w.start_ns;)
            peak = c->high > peak ? c->high : peak;
    }
    *ret_peak = peak;
    return true;
}

const struct snapshot_device *snapshot_find_device(const struct snapshot *s, const char *uuid)
{
    for (size_t i = 0; i < s->n_devices; i++)
        if (str_equals_nocase(str_of(s->devices[i].uuid), uuid))
            return &s->devices[i];
    return NULL;
}
