/* scaling: from what is known of pods to the one value sent to KEDA, and what the HPA makes of it. Pure functions on plain
 * structs, without clock, I/O or allocation that outlives a call. The rules are scaling-semantics sections 2-4. */
#ifndef SCALING_SCALING_H
#define SCALING_SCALING_H

#include "base/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCALING_AGGREGATIONS(X)                                                                                        \
    X(MAX, "max")                                                                                                      \
    X(MIN, "min")                                                                                                      \
    X(AVG, "avg")                                                                                                      \
    X(SUM, "sum")                                                                                                      \
    X(P95, "p95")                                                                                                      \
    X(P99, "p99")

enum scaling_aggregation {
#define X(id, name) SCALING_##id,
    SCALING_AGGREGATIONS(X)
#undef X
        SCALING_AGGREGATION_COUNT
};

const char *scaling_aggregation_name(enum scaling_aggregation aggregation);

/* One number from n >= 1 values (finite). Percentiles are nearest rank: element ceil(p * n), counted from 1, of the
 * ascending order. */
double scaling_aggregate(enum scaling_aggregation aggregation, const double *values, size_t n);

#endif
