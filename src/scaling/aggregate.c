/* One number from many: the aggregations, and nothing about where the numbers come from. */
#include "scaling/scaling.h"

#include <assert.h>
#include <math.h>

const char *scaling_aggregation_name(enum scaling_aggregation aggregation)
{
    static const char *const names[SCALING_AGGREGATION_COUNT] = {
#define X(id, name) [SCALING_##id] = (name),
        SCALING_AGGREGATIONS(X)
#undef X
    };
    return aggregation < SCALING_AGGREGATION_COUNT ? names[aggregation] : "unknown";
}

bool scaling_find_aggregation(struct str name, enum scaling_aggregation *ret_aggregation)
{
    for (unsigned i = 0; i < SCALING_AGGREGATION_COUNT; i++) {
        if (!str_equals(name, scaling_aggregation_name((enum scaling_aggregation)i)))
            continue;
        *ret_aggregation = (enum scaling_aggregation)i;
        return true;
    }
    return false;
}

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Nearest rank: element ceil(percent / 100 * n), counted from 1, in whole numbers. */
static double percentile(size_t percent, const double *values, size_t n)
{
    MEM_AUTO double *sorted = (double *)mem_new_array(n, sizeof(*sorted));
    for (size_t i = 0; i < n; i++)
        sorted[i] = values[i];
    qsort(sorted, n, sizeof(*sorted), compare_doubles);
    size_t rank = (percent * n + 99) / 100;
    return sorted[rank - 1];
}

static double sum_of(const double *values, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += values[i];
    return sum;
}

static double extreme(double (*choose)(double, double), const double *values, size_t n)
{
    double result = values[0];
    for (size_t i = 1; i < n; i++)
        result = choose(result, values[i]);
    return result;
}

double scaling_aggregate(enum scaling_aggregation aggregation, const double *values, size_t n)
{
    assert(n > 0 && aggregation < SCALING_AGGREGATION_COUNT);
    switch (aggregation) {
    case SCALING_MIN:
        return extreme(fmin, values, n);
    case SCALING_AVG:
        return sum_of(values, n) / (double)n;
    case SCALING_SUM:
        return sum_of(values, n);
    case SCALING_P95:
        return percentile(95, values, n);
    case SCALING_P99:
        return percentile(99, values, n);
    case SCALING_MAX:
    case SCALING_AGGREGATION_COUNT:
        break;
    }
    return extreme(fmax, values, n);
}
