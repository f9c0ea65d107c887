/* Cumulative counters to rates. Pure: no NVML, no clock. */
#include "gpu/core.h"

static const double wrap_32 = 4294967296.0;

bool gpu_rate_is_unambiguous(double capacity, int64_t period_ns)
{
    return capacity * ((double)period_ns / (double)NS_PER_S) < wrap_32;
}

/* A smaller count than before: a 32-bit counter went round (the difference modulo 2^32 is right if it went round once),
 * a 64-bit counter was reset (driver reload, GPU reset). */
static bool count_moved(const struct gpu_rate *rate, const struct gpu_count *count, uint64_t *ret_moved)
{
    if (count->is_32_bit)
        *ret_moved = (uint32_t)(count->raw - rate->last);
    else if (count->raw >= rate->last)
        *ret_moved = count->raw - rate->last;
    else
        return false;
    return true;
}

bool gpu_rate_step(struct gpu_rate *rate, const struct gpu_count *count, int64_t now_ns, double *ret_per_second)
{
    struct gpu_rate before = *rate;
    *rate = (struct gpu_rate){.last = count->raw, .last_ns = now_ns};
    int64_t elapsed_ns = now_ns - before.last_ns;
    uint64_t moved;
    if (before.last_ns == 0 || elapsed_ns <= 0 || !count_moved(&before, count, &moved))
        return false;
    if (count->is_32_bit && !gpu_rate_is_unambiguous(count->capacity, elapsed_ns))
        return false;
    double per_second = (double)moved / ((double)elapsed_ns / (double)NS_PER_S);
    if (per_second > count->capacity * 1.25) /* protocol overhead and a late timestamp stay below that */
        return false;
    *ret_per_second = per_second;
    return true;
}
