/* The past of a pod's memory since it became Ready, minute by minute, for the question whether memory says anything
 * about its load (scaling-semantics 2.7). Agents keep it for each holder; where simulated GPUs are given to pods nobody
 * holds them, and this hub keeps what it sees itself. */
#include "workload/look.h"

#include <math.h>

#define MINUTE_NS (60 * NS_PER_S)

enum { TEN_MINUTES = 10 };

struct extremes {
    bool is_known;
    double low, high;
};

/* What is 100 % of a holder's minutes, in the metric's unit: of a shared device what the pod has and what is free. */
static double full_of(const struct signal *signal, const struct workload_device *wd)
{
    if (signal->kind == SCALING_KIND_MEMORY_PERCENT)
        return 100;
    if (wd->counted.holders > 1 && wd->counted.has_shares)
        return wd->counted.share + wd->counted.free;
    return (double)wd->device->memory_total / signal->divisor;
}

/* ---- as agents tell it ---- */

/* Of one minute, of all devices: their mean in percent, their sum in MiB. */
static struct extremes minute_of(const struct signal *signal, const struct workload_input *input, size_t minute)
{
    struct extremes all = {.is_known = input->n_devices > 0};
    for (size_t i = 0; i < input->n_devices && all.is_known; i++) {
        const struct workload_device *wd = &input->devices[i];
        const struct fleet_holder *h = wd->holder;
        bool is_known = h && minute < h->n_minutes && h->minutes[minute].low <= h->minutes[minute].high;
        all.is_known = is_known;
        if (!is_known)
            break;
        double full =
            full_of(signal, wd) / (signal->kind == SCALING_KIND_MEMORY_PERCENT ? (double)input->n_devices : 1);
        all.low += (double)h->minutes[minute].low * full / 100;
        all.high += (double)h->minutes[minute].high * full / 100;
    }
    return all;
}

static void widen(struct scaling_maybe *lowest, struct scaling_maybe *highest, const struct extremes *minute)
{
    bool is_first = !lowest->is_known;
    lowest->is_known = highest->is_known = true;
    lowest->value = is_first ? minute->low : fmin(lowest->value, minute->low);
    highest->value = is_first ? minute->high : fmax(highest->value, minute->high);
}

/* ---- as this hub saw it ---- */

static bool is_given(const struct workload_input *input)
{
    return input->n_devices > 0 && !input->devices[0].holder;
}

void workload_note_memory(struct pod_memory *m, double value, int64_t now_ns)
{
    int64_t minute = now_ns / MINUTE_NS;
    if (!m->minutes) {
        m->minutes = mem_new(struct snapshot_minutes);
        m->minutes->minute = minute - SNAPSHOT_MINUTES;
    }
    struct snapshot_minutes *all = m->minutes;
    int64_t first = minute - all->minute < SNAPSHOT_MINUTES ? all->minute + 1 : minute - SNAPSHOT_MINUTES + 1;
    for (int64_t i = first; i <= minute; i++)
        all->of[i % SNAPSHOT_MINUTES] = (struct snapshot_extremes){.low = (float)value, .high = -1};
    all->minute = minute;
    struct snapshot_extremes *now = &all->of[minute % SNAPSHOT_MINUTES];
    bool is_first = now->high < now->low;
    now->low = is_first || (float)value < now->low ? (float)value : now->low;
    now->high = is_first || (float)value > now->high ? (float)value : now->high;
}

static struct extremes noted_minute(const struct snapshot_minutes *all, size_t minute)
{
    int64_t number = all ? all->minute - (int64_t)minute : -1;
    if (number < 0)
        return (struct extremes){.is_known = false};
    const struct snapshot_extremes *at = &all->of[number % SNAPSHOT_MINUTES];
    return (struct extremes){.is_known = at->low <= at->high, .low = (double)at->low, .high = (double)at->high};
}

/* ---- both ---- */

void workload_read_memory(const struct look *look, const struct workload_input *input, const struct pod_memory *noted,
                          double ready_age_s, struct scaling_memory *ret)
{
    const struct signal *signal = &look->signals[ASKED_METRIC];
    size_t n_finished = 0;
    *ret = (struct scaling_memory){.full = 0};
    for (size_t i = 0; i < input->n_devices; i++)
        ret->full += full_of(signal, &input->devices[i]);
    if (signal->kind == SCALING_KIND_MEMORY_PERCENT)
        ret->full = 100;
    bool is_ten_whole = true;
    for (size_t i = 0; i < SNAPSHOT_MINUTES; i++) {
        if ((double)(60 * (i + 1)) > ready_age_s) /* it may have begun before Ready */
            break;
        struct extremes minute = is_given(input) ? noted_minute(noted->minutes, i) : minute_of(signal, input, i);
        is_ten_whole &= minute.is_known || i > TEN_MINUTES;
        if (!minute.is_known)
            continue;
        n_finished += i > 0;
        widen(&ret->lowest, &ret->highest, &minute);
        if (i <= TEN_MINUTES)
            widen(&ret->lowest_10min, &ret->highest_10min, &minute);
    }
    ret->history_s = is_ten_whole ? 60.0 * (double)n_finished : 0;
}
