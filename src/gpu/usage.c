/* What each process used, from the driver's samples: one number a process. Pure; when the samples are asked for, and
 * since when, is process.c's. */
#include "gpu/core.h"

#include <math.h>

/* Samples of one moment are stamped one after the other; the moments themselves are at least 1/6 s apart. */
enum { MOMENT_US = 50 * 1000 };

static int compare_times(const void *left, const void *right)
{
    const struct nvml_process_utilization *a = left, *b = right;
    return a->time_us < b->time_us ? -1 : a->time_us > b->time_us;
}

static int compare_pids(const void *left, const void *right)
{
    const struct nvml_process_utilization *a = left, *b = right;
    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    return compare_times(left, right);
}

/* How many moments these samples are of; they are in order of time. */
static size_t count_moments(const struct nvml_process_utilization *samples, size_t n)
{
    size_t moments = 0;
    uint64_t start_us = 0;
    for (size_t i = 0; i < n; i++) {
        if (moments > 0 && samples[i].time_us - start_us < MOMENT_US)
            continue;
        start_us = samples[i].time_us;
        moments++;
    }
    return moments;
}

/* The samples of one process, summed. */
static struct gpu_usage sum_of(const struct nvml_process_utilization *samples, size_t n)
{
    struct gpu_usage usage = {.pid = samples[0].pid};
    for (size_t i = 0; i < n; i++) {
        if (samples[i].sm == NVML_NONE_U32)
            continue;
        usage.is_known = true;
        usage.percent += samples[i].sm;
    }
    return usage;
}

void gpu_usage_of(struct nvml_process_utilization_list *samples, struct gpu_usage_list *ret)
{
    ret->len = 0;
    if (samples->len == 0)
        return;
    qsort(samples->items, samples->len, sizeof(samples->items[0]), compare_times);
    size_t n_moments = count_moments(samples->items, samples->len);
    qsort(samples->items, samples->len, sizeof(samples->items[0]), compare_pids);
    bool is_series = false;
    for (size_t i = 0, end; i < samples->len; i = end) {
        for (end = i + 1; end < samples->len && samples->items[end].pid == samples->items[i].pid;)
            end++;
        is_series |= count_moments(&samples->items[i], end - i) > 1;
        vec_push(ret, sum_of(&samples->items[i], end - i));
    }
    for (size_t i = 0; i < ret->len; i++)
        ret->items[i].percent =
            fmin(is_series ? ret->items[i].percent / (double)n_moments : ret->items[i].percent, 100);
}
