/* Private to scaling/: from the pods of a workload to what counts as its replicas. */
#ifndef SCALING_GATHER_H
#define SCALING_GATHER_H

#include "scaling/scaling.h"

/* Since when the Ready condition is what it is; a pod without a transition time has been so all its life. */
double scaling_condition_age_s(const struct scaling_pod *pod);

/* Replicas with their states, and what was seen on the way to them. */
struct scaling_gathered {
    struct scaling_replica *items; /* in the arena, with room for one more double each in `scratch` */
    size_t n_items;
    double *scratch;
    size_t n_ought;                        /* pods that ought to be read, but for those without a sample yet */
    size_t n_read;                         /* of them those that are */
    size_t by_reading[SCALING_READ_COUNT]; /* pods that ought to be read, by how that went */
    bool has_gpu;                          /* a pod requests or holds one */
};

/* Does it count under these rules: is it neither gone nor stuck, nor missing where those are to be ignored? */
bool scaling_counts(const struct scaling_rules *rules, const struct scaling_replica *replica);

/* ---- 2.4 with is_weighted (weighted.c) ---- */

/* It served no request and may not be busier than that, so it says nothing: max and the like leave it out. */
bool scaling_is_idle(const struct scaling_rules *rules, const struct scaling_replica *replica);
/* The mean over requests of the lowers of those of n replicas that count and have one of their own; T if there is none,
 * 0 without requests. */
double scaling_weighted_lower(const struct scaling_rules *rules, const struct scaling_replica *replicas, size_t n);
/* The least and the largest mean over requests of those that count; 0 if none does. */
void scaling_weighted_bounds(const struct scaling_rules *rules, const struct scaling_replica *replicas, size_t n,
                             double *ret_lower, double *ret_upper);

/* States, groups and places; intervals are not set. Returns false when the arena is full. */
bool scaling_gather(const struct scaling_rules *rules, const struct scaling_workload *workload, struct arena *arena,
                    struct scaling_gathered *ret_gathered);

#endif
