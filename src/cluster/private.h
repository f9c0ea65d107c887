/* Shared by the files of cluster only. */
#ifndef CLUSTER_PRIVATE_H
#define CLUSTER_PRIVATE_H

#include "cluster/cluster.h"

enum { CLUSTER_NAME_MAX = 254, CLUSTER_KEY_MAX = 600 };

/* ---- copy.c: objects that stay after the callback that told them ---- */

struct cluster_scaled_object {
    struct arena arena;
    struct kube_scaled_object is;
};
struct cluster_hpa {
    struct arena arena;
    struct kube_hpa is;
};
/* NULL where it is larger than an object may be. */
struct cluster_scaled_object *cluster_copy_scaled_object(const struct kube_scaled_object *from);
struct cluster_hpa *cluster_copy_hpa(const struct kube_hpa *from);
void cluster_free_scaled_object(void *copy);
void cluster_free_hpa(void *copy);

/* ---- the cluster ---- */

/* A list that all workloads share. */
struct cluster_list {
    struct cluster *cluster;
    const char *name;
    struct kube_watch *watch;
    bool is_synced, is_denied; /* denied: may not be read, or there is no such kind */
    bool is_told;              /* the failure was told, its end was not */
    int64_t failed_ns;         /* the last one */
};

/* Goes over all workloads again and again, a few at a time. */
struct cluster_sweep {
    size_t next;
    int64_t done_ns; /* what was due until then is done */
};

struct cluster {
    struct cluster_config config;
    struct cluster_list scaled_objects, scaled_jobs, hpas;
    struct map *objects;                      /* "ns/name" -> struct cluster_scaled_object */
    struct map *jobs;                         /* "ns/name" -> a mark */
    struct map *hpas_by_name;                 /* "ns/name" -> struct cluster_hpa */
    struct map *by_name;                      /* "ns/name" -> struct cluster_workload */
    VEC(struct cluster_workload *) workloads; /* in order of namespace and name */
    struct net_timer *second;
    struct net_timer *soon; /* runs while a workload has been touched */
    size_t n_touched;
    uint64_t generation;    /* of the settings of triggers */
    struct net_timer *step; /* of the sweeps */
    struct cluster_sweep look, tick;
    struct metric_series *tracked;
};

struct cluster_pod {
    char uid[64];
    bool is_gone;
    struct workload_pod *pod;
};
struct cluster_memory_row {
    struct workload_memory *memory;
    int64_t asked_ns;
    bool is_expected; /* of a trigger that the ScaledObject has */
};
struct cluster_workload {
    struct cluster *cluster;
    char ns[CLUSTER_NAME_MAX], name[CLUSTER_NAME_MAX];
    char pod_selector[TRIGGER_TEXT_MAX];
    int64_t asked_ns; /* 0: known beforehand, not asked yet */
    bool is_expected; /* a ScaledObject with a trigger at our Service */
    /* /scale */
    char target[CLUSTER_KEY_MAX + 256]; /* what was read: version, kind and name */
    bool is_scale_known;
    int64_t spec, status, scale_ns, next_read_ns;
    int64_t scale_ends_ns;                   /* until then the last read stands */
    int64_t asked_scale_ns, pods_changed_ns; /* the last read's start; when a pod came or went last */
    bool is_touched;                         /* counted in the cluster's n_touched */
    /* How many more pods there are than `status`, where a read had no change just before it. 0 for a Deployment; not so
     * where a replica is a group of pods. */
    bool has_surplus;
    int64_t surplus;
    char scale_error[SNAPSHOT_TEXT_MAX];
    struct kube_get *get;
    /* pods */
    char *selector; /* of the watch; NULL none */
    struct kube_watch *watch;
    bool is_pods_told;
    char pods_error[SNAPSHOT_TEXT_MAX]; /* of the last try that failed, since the last complete list */
    int64_t pods_failed_ns;             /* when; not of one that only was silent. 0 none */
    VEC(struct cluster_pod) pods;       /* by name */
    VEC(struct cluster_memory_row) memories;
};

void cluster_key(char key[CLUSTER_KEY_MAX], const char *ns, const char *name);
/* Does its scalerAddress name our Service? */
bool cluster_is_our_trigger(const struct cluster_config *config, const struct kube_trigger *t);
const struct kube_scaled_object *cluster_find_object(const struct cluster *c, const char *ns, const char *name);

/* Has a watch that failed last at failed_ns gone on since? It goes on without a new list, so nothing says so. */
bool cluster_goes_on(const struct cluster *c, const struct kube_watch *watch, int64_t failed_ns);

/* ---- workload.c ---- */

struct cluster_workload *cluster_workload_new(struct cluster *c, const char *ns, const char *name);
void cluster_workload_free(void *workload);
/* Did somebody ask in the last 15 minutes? */
bool cluster_workload_is_asked(const struct cluster_workload *w);
/* Something that /scale may show has changed: read it again soon. */
void cluster_workload_touch(struct cluster_workload *w);
/* Each second will do again. */
void cluster_workload_calm(struct cluster_workload *w);
/* Each second, and soon after it was touched: read /scale where it is due, watch the pods that it selects, forget
 * triggers that nobody asks for. */
void cluster_workload_tick(struct cluster_workload *w);
/* Look at the facts for every trigger that is remembered, and for those of a ScaledObject that will ask. */
void cluster_workload_look(struct cluster_workload *w);
/* Forget all triggers, and look anew. */
void cluster_workload_reload(struct cluster_workload *w);

#endif
