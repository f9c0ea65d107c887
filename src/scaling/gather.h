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

/* States, groups and places; intervals are not set. Returns false when the arena is full. */
bool scaling_gather(const struct scaling_rules *rules, const struct scaling_workload *workload, struct arena *arena,
                    struct scaling_gathered *ret_gathered);

#endif
