/* What readers ask of a snapshot: names, freshness, means and peaks of the past, processes, devices by UUID. It changes
 * nothing.
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

bool snapshot_field_has_past(enum snapshot_field field)
{
    return snapshot_field_slot(field) >= 0;
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

static int64_t limit_of_period_ns(int64_t period_ns)
{
    return 3 * period_ns > 5 * NS_PER_S ? 3 * period_ns : 5 * NS_PER_S;
}

int64_t snapshot_age_limit_ns(const struct snapshot *s, enum snapshot_field field)
{
    return limit_of_period_ns(s->field_period_ns[field] > 0 ? s->field_period_ns[field] : s->period_ns);
}

int64_t snapshot_stuck_ns(const struct snapshot *s, int64_t now_ns)
{
    int64_t age_ns = now_ns - s->taken_ns;
    return age_ns > limit_of_period_ns(s->period_ns) ? age_ns : 0;
}

bool snapshot_is_fresh(const struct snapshot *s, const struct snapshot_device *d, enum snapshot_field field,
                       int64_t now_ns)
{
    const struct snapshot_reading *r = &d->readings[field];
    bool is_given = r->status == SNAPSHOT_OK || r->status == SNAPSHOT_FAILED;
    return is_given && !d->is_lost && r->taken_ns != 0 && now_ns - r->taken_ns <= snapshot_age_limit_ns(s, field);
}

/* ---- the past of one field of one device ---- */

struct past {
    const struct snapshot *s;
    struct snapshot_seek seek;
};

static struct past past_of(const struct snapshot *s, const struct snapshot_device *d, int slot)
{
    size_t place = d >= s->devices && d < s->devices + s->n_devices ? (size_t)(d - s->devices) : 0;
    return (struct past){.s = s, .seek = {.id = d->id, .slot_bit = UINT32_C(1) << slot, .place = place}};
}

/* Its cell in frame i, or NULL: it had not been read by then. */
static const struct snapshot_cell *cell_at(struct past *p, size_t i)
{
    return snapshot_frame_find(p->s->frames[i], &p->seek);
}

/* Was its newest sample in frame i taken at first_ns or later? True for all frames from some one on. */
static bool is_inside(struct past *p, size_t i, int64_t first_ns)
{
    const struct snapshot_cell *c = cell_at(p, i);
    return c && c->sample_ns >= first_ns;
}

/* Where the frame of a moment is if all are equally far apart. */
static size_t guess_frame(const struct snapshot *s, int64_t at_ns)
{
    int64_t oldest_ns = s->frames[0]->taken_ns, newest_ns = s->frames[s->n_frames - 1]->taken_ns;
    if (at_ns <= oldest_ns)
        return 0;
    if (at_ns >= newest_ns)
        return s->n_frames - 1;
    double part = (double)(at_ns - oldest_ns) / (double)(newest_ns - oldest_ns);
    return (size_t)(part * (double)(s->n_frames - 1));
}

/* The oldest frame inside, or false where none is. */
static bool find_first(struct past *p, int64_t first_ns, size_t *ret_first)
{
    size_t n = p->s->n_frames;
    if (n == 0 || !is_inside(p, n - 1, first_ns))
        return false;
    size_t i = guess_frame(p->s, first_ns);
    while (!is_inside(p, i, first_ns))
        i++;
    while (i > 0 && is_inside(p, i - 1, first_ns))
        i--;
    *ret_first = i;
    return true;
}

struct extremes {
    double low, high;
};

static void widen(struct extremes *x, double low, double high)
{
    x->low = low < x->low ? low : x->low;
    x->high = high > x->high ? high : x->high;
}

/* Of all samples since those of frame `first`: by runs, the last of which may overlap. */
static struct extremes find_extremes(struct past *p, size_t first)
{
    struct extremes x = {HUGE_VAL, -1};
    size_t end = p->s->n_frames;
    if (end - first < SNAPSHOT_RUN) {
        for (size_t i = first; i < end; i++)
            widen(&x, cell_at(p, i)->low, cell_at(p, i)->high);
        return x;
    }
    while (end > first) {
        size_t last = end - first < SNAPSHOT_RUN ? first + SNAPSHOT_RUN - 1 : end - 1;
        const struct snapshot_cell *c = cell_at(p, last);
        widen(&x, c->run_low, c->run_high);
        end = last + 1 - SNAPSHOT_RUN;
    }
    return x;
}

/* A window never ends before the snapshot: frames are kept for the longest one that ends with it. */
static int64_t window_start_ns(const struct snapshot *s, int64_t now_ns, int64_t window_ns)
{
    int64_t end_ns = now_ns > s->taken_ns ? now_ns : s->taken_ns;
    return end_ns - (window_ns < SNAPSHOT_WINDOW_MAX_NS ? window_ns : SNAPSHOT_WINDOW_MAX_NS);
}

/* The mean of the time after start_ns, or false where no sample of that time is kept. */
static bool mean_of_past(struct past *p, int64_t start_ns, double *ret_mean)
{
    static const struct snapshot_cell nothing = {0};
    size_t first;
    if (!find_first(p, start_ns + 1, &first))
        return false;
    const struct snapshot_cell *newest = cell_at(p, p->s->n_frames - 1), *oldest = cell_at(p, first);
    const struct snapshot_cell *base = first > 0 ? cell_at(p, first - 1) : NULL;
    if (!base)
        base = &nothing; /* the device appeared within the window */

    /* Of the time that `oldest` covers, only the part after the start counts. */
    int64_t step_ns = oldest->valid_ns - base->valid_ns, inside_ns = oldest->sample_ns - start_ns;
    double part = inside_ns < step_ns ? (double)inside_ns / (double)step_ns : 1;
    double integral = newest->integral - oldest->integral + part * (oldest->integral - base->integral);
    double valid_ns = (double)(newest->valid_ns - oldest->valid_ns) + part * (double)step_ns;
    if (!(valid_ns > 0))
        return false;
    /* The mean lies between the samples: without the clamp rounding turns a steady 75 into 74.99999999. */
    struct extremes x = find_extremes(p, first);
    double mean = integral / valid_ns;
    *ret_mean = mean < x.low ? x.low : mean > x.high ? x.high : mean;
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
        struct past p = past_of(s, d, slot);
        (void)mean_of_past(&p, window_start_ns(s, now_ns, window_ns), &mean); /* no sample in it: the newest reading */
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
        struct past p = past_of(s, d, slot);
        size_t first;
        if (find_first(&p, window_start_ns(s, now_ns, window_ns), &first))
            peak = fmax(peak, find_extremes(&p, first).high);
    }
    *ret_peak = peak;
    return true;
}

const struct snapshot_process *snapshot_processes_of(const struct snapshot *s, const struct snapshot_device *d,
                                                     size_t *ret_n)
{
    size_t first = 0, end;
    while (first < s->n_processes && s->processes[first].device_id != d->id)
        first++;
    for (end = first; end < s->n_processes && s->processes[end].device_id == d->id;)
        end++;
    *ret_n = end - first;
    return end > first ? &s->processes[first] : NULL;
}

bool snapshot_total(const struct snapshot *s, const struct snapshot_device *d, enum snapshot_field field,
                    double *ret_integral, double *ret_valid_s)
{
    int slot = snapshot_field_slot(field);
    const struct snapshot_cell *c = NULL;
    if (slot >= 0 && s->n_frames > 0) {
        struct past p = past_of(s, d, slot);
        c = cell_at(&p, s->n_frames - 1);
    }
    *ret_integral = c ? c->integral / (double)NS_PER_S : 0;
    *ret_valid_s = c ? (double)c->valid_ns / (double)NS_PER_S : 0;
    return c != NULL;
}

const struct snapshot_device *snapshot_find_device(const struct snapshot *s, const char *uuid)
{
    for (size_t i = 0; i < s->n_devices; i++)
        if (str_equals_nocase(str_of(s->devices[i].uuid), uuid))
            return &s->devices[i];
    return NULL;
}
