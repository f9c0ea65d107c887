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
/* The aggregation of this name, spelled as in the table. Returns false if there is none. */
bool scaling_find_aggregation(struct str name, enum scaling_aggregation *ret_aggregation);

/* One number from n >= 1 values (finite). Percentiles are nearest rank: element ceil(p * n), counted from 1, of the
 * ascending order. */
double scaling_aggregate(enum scaling_aggregation aggregation, const double *values, size_t n);

/* ---- the HPA's arithmetic ---- */

enum scaling_metric_type { SCALING_AVERAGE_VALUE, SCALING_VALUE };

struct scaling_hpa {
    enum scaling_metric_type type;
    double target;
    double tolerance_up, tolerance_down; /* 0.1 unless the HPA says otherwise */
};

struct scaling_replicas {
    int64_t spec;   /* C: spec.replicas of /scale */
    int64_t status; /* S: status.replicas, surge pods included */
    int64_t ready;  /* R: running and Ready pods, as the HPA counts them; matters for SCALING_VALUE only */
};

/* A metric in the HPA's unit: whole thousandths, rounded. */
int64_t scaling_milli(double value);

/* The replicas that the HPA proposes for this value, before its bounds and behaviour. keda.md 8.2, 8.3 */
int64_t scaling_hpa_desired(const struct scaling_hpa *hpa, double value, const struct scaling_replicas *replicas);

#endif
