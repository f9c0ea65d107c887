/* Private to workload/: the facts that rows of the lint table ask, and the rows that are about engines' pages. */
#ifndef WORKLOAD_LINT_H
#define WORKLOAD_LINT_H

#include "workload/look.h"

struct lint {
    const struct workload_facts *facts;
    const struct trigger *t;                 /* what is asked of; where it is one of several signals, that one */
    const struct trigger *whole;             /* the trigger itself */
    const struct kube_scaled_object *object; /* NULL: not known */
    const struct kube_hpa *hpa;              /* NULL: not known */
    const struct kube_hpa_metric *metric;    /* NULL: not known, or not there */
    struct scaling_hpa arithmetic;           /* the target is t's */
    bool is_ambiguous, is_workload;
    bool is_engine; /* t is measured by pages, or may be */
    double ceiling; /* what t's metric cannot exceed; 0 none */
    struct err ambiguity;
    int64_t min, max; /* -1 not known */
};

struct lint_number {
    char text[NUM_TEXT_MAX];
};
struct lint_number lint_number(double value);
/* Above this mean the HPA adds replicas. */
double lint_grows_above(const struct lint *l);

/* What the metric of a trigger with one signal cannot exceed; 0 where there is no such number. */
double lint_ceiling(const struct trigger *t);

/* Rows of lint_engine.c: true where they apply, with the sentence. */
bool lint_grows_by_queue_only(const struct lint *l, struct buf *out);
bool lint_running_saturates(const struct lint *l, struct buf *out);
bool lint_latency_lags(const struct lint *l, struct buf *out);
bool lint_swings(const struct lint *l, struct buf *out);
bool lint_short_rate_window(const struct lint *l, struct buf *out);
bool lint_tokens_estimated(const struct lint *l, struct buf *out);
bool lint_part_never_grows(const struct lint *l, struct buf *out);
bool lint_part_never_decides(const struct lint *l, struct buf *out);

#endif
