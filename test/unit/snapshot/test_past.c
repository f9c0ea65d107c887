/* Means and peaks against the plain way to find them: every frame of the window, one by one. */
#include "snapshot/snapshot.h"

#include "snapshot/frame.h"

#include "support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DEVICES = 3, HISTORIES = 60, STEPS = 400 };

static uint64_t random_state;

static uint64_t random_below(uint64_t n)
{
    random_state = random_state * 6364136223846793005U + 1442695040888963407U;
    return (random_state >> 33) % n;
}

/* ---- the plain way ---- */

static const struct snapshot_cell *plain_cell(const struct snapshot_frame *f, uint32_t id, int slot)
{
    for (size_t i = 0; i < f->n_devices; i++) {
        uint32_t bit = UINT32_C(1) << slot, below = f->devices[i].slots & (bit - 1);
        size_t rank = 0;
        for (; below; below &= below - 1)
            rank++;
        if (f->devices[i].id == id)
            return f->devices[i].slots & bit ? &f->cells[f->devices[i].first + rank] : NULL;
    }
    return NULL;
}

static double plain_peak(const struct snapshot *s, const struct snapshot_device *d, int64_t start_ns)
{
    double peak = d->readings[SNAPSHOT_UTILIZATION].value;
    for (size_t i = 0; i < s->n_frames; i++) {
        const struct snapshot_cell *c = plain_cell(s->frames[i], d->id, snapshot_field_slot(SNAPSHOT_UTILIZATION));
        if (c && c->sample_ns >= start_ns)
            peak = fmax(peak, c->high);
    }
    return peak;
}

static double plain_mean(const struct snapshot *s, const struct snapshot_device *d, int64_t start_ns)
{
    const struct snapshot_cell *oldest = NULL, *newest = NULL, *base = NULL;
    double low = HUGE_VAL, high = -1;
    for (size_t i = 0; i < s->n_frames; i++) {
        const struct snapshot_cell *c = plain_cell(s->frames[i], d->id, snapshot_field_slot(SNAPSHOT_UTILIZATION));
        if (!c || c->sample_ns <= start_ns) {
            base = c;
            continue;
        }
        oldest = oldest ? oldest : c;
        newest = c;
        low = fmin(low, c->low);
        high = fmax(high, c->high);
    }
    if (!oldest)
        return d->readings[SNAPSHOT_UTILIZATION].value;
    double base_integral = base ? base->integral : 0;
    int64_t step_ns = oldest->valid_ns - (base ? base->valid_ns : 0), inside_ns = oldest->sample_ns - start_ns;
    double part = inside_ns < step_ns ? (double)inside_ns / (double)step_ns : 1;
    double valid_ns = (double)(newest->valid_ns - oldest->valid_ns) + part * (double)step_ns;
    double integral = newest->integral - oldest->integral + part * (oldest->integral - base_integral);
    return valid_ns > 0 ? fmin(fmax(integral / valid_ns, low), high) : d->readings[SNAPSHOT_UTILIZATION].value;
}

/* ---- histories ---- */

static void name_device(char uuid[SNAPSHOT_UUID_MAX], unsigned k)
{
    (void)snprintf(uuid, SNAPSHOT_UUID_MAX, "GPU-%u", k);
}

static void add_device(struct snapshot_store *store, unsigned k)
{
    struct snapshot_device d = {.kind = SNAPSHOT_GPU, .index = (int)k, .gpu_instance = -1, .compute_instance = -1};
    name_device(d.uuid, k);
    assert_non_null(snapshot_store_add(store, &d));
    snapshot_store_sort(store);
}

/* Devices come, go, are read or not, with values that are mostly steady; other fields appear in any order. */
static void change(struct snapshot_store *store, int64_t now_ns)
{
    static double values[DEVICES];
    for (unsigned k = 0; k < DEVICES; k++) {
        char uuid[SNAPSHOT_UUID_MAX];
        name_device(uuid, k);
        struct snapshot_device *d = snapshot_store_find(store, uuid);
        if (random_below(10) == 0)
            values[k] = 33.3 + 9.97 * (double)random_below(5);
        if (!d && random_below(20) == 0)
            add_device(store, k);
        else if (d && random_below(150) == 0)
            snapshot_store_remove(store, uuid);
        else if (d && random_below(8) != 0)
            snapshot_store_record(store, d, SNAPSHOT_UTILIZATION, values[k], now_ns);
        else if (d && random_below(3) == 0)
            snapshot_store_record(store, d, (enum snapshot_field)random_below(SNAPSHOT_FIELD_COUNT), 1, now_ns);
    }
}

static size_t n_compared;

static void compare(const struct snapshot *s, int64_t now_ns)
{
    for (size_t i = 0; i < s->n_devices; i++) {
        const struct snapshot_device *d = &s->devices[i];
        bool is_whole = random_below(2) == 0; /* then samples lie on its start */
        int64_t window_ns = is_whole ? (1 + (int64_t)random_below(200)) * s->period_ns
                                     : 1 + (int64_t)random_below(300 * (uint64_t)NS_PER_S);
        double mean, peak;
        if (!snapshot_mean(s, d, SNAPSHOT_UTILIZATION, now_ns, window_ns, &mean))
            continue;
        assert_true(snapshot_peak(s, d, SNAPSHOT_UTILIZATION, now_ns, window_ns, &peak));
        int64_t start_ns = now_ns - (window_ns < SNAPSHOT_WINDOW_MAX_NS ? window_ns : SNAPSHOT_WINDOW_MAX_NS);
        assert_double_same(mean, plain_mean(s, d, start_ns));
        assert_double_same(peak, plain_peak(s, d, start_ns));
        n_compared++;
    }
}

static void test_means_and_peaks_are_those_of_every_frame_of_the_window(void **state)
{
    (void)state;
    for (unsigned history = 0; history < HISTORIES; history++) {
        random_state = history;
        int64_t now_ns = 1000 * NS_PER_S, period_ns = (int64_t)(100 + random_below(3000)) * NS_PER_MS;
        struct snapshot_store *store = snapshot_store_new(period_ns);
        for (unsigned step = 0; step < STEPS; step++) {
            bool is_pause = random_below(60) == 0;
            now_ns += is_pause ? (int64_t)random_below(40) * NS_PER_S : period_ns;
            change(store, now_ns);
            struct snapshot *s = snapshot_store_publish(store, now_ns);
            compare(s, now_ns + (int64_t)random_below(2) * (int64_t)random_below(3 * NS_PER_S));
            snapshot_unref(s);
        }
        snapshot_store_free(store);
    }
    assert_true(n_compared > 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_means_and_peaks_are_those_of_every_frame_of_the_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
