/* cluster: what a hub keeps of the Kubernetes API: which ScaledObjects ask it, what each of them scales, the pods of
 * that and its HPA, as facts for workload/. It owns the watches, when /scale is read again, and what is forgotten when
 * nobody asks any more. It decides nothing about values. */
#ifndef CLUSTER_CLUSTER_H
#define CLUSTER_CLUSTER_H

#include "base/base.h"
#include "kube/kube.h"
#include "net/net.h"
#include "trigger/trigger.h"
#include "workload/workload.h"

struct cluster;
struct cluster_config {
    struct net_loop *loop;
    struct metrics *metrics;        /* keda_gpu_scaler_workloads */
    struct kube *kube;              /* outlives the cluster */
    struct trigger_cache *triggers; /* of the program; outlives the cluster */
    const struct workload_fleet *fleet;
    /* ScaledObjects with a trigger at this Service are known before they ask: the first label of scalerAddress's host,
     * and the second where it is there. */
    const char *service, *service_ns;
    double hpa_tolerance;
    unsigned simulated_gpus_per_pod;
    /* A watch or read failed, or works again (error NULL): for the log. */
    void (*told)(void *context, const char *what, const struct err *error);
    void *context;
};
struct cluster *cluster_new(const struct cluster_config *config);
void cluster_free(struct cluster *c); /* accepts NULL */

/* The settings of triggers were read anew: if they have changed, those parsed before are forgotten, and what
 * ScaledObjects ask is expected anew. */
void cluster_reload(struct cluster *c);

/* Were the lists of ScaledObjects and HPAs complete once, or may they not be read? */
bool cluster_is_synced(const struct cluster *c);
/* For people: "scaledobjects: synced\n" lines, one a watch that all workloads share. */
void cluster_write_state(const struct cluster *c, struct buf *out);

/* One ScaledObject or ScaledJob that somebody asked about, or will. */
struct cluster_workload;
/* That of this name, tracked from now on until nobody has asked for 15 minutes; valid until the next turn of the loop.
 * NULL where there is no ScaledObject or ScaledJob of this name, or where too many are asked for. `pod_selector` (may
 * be "") stands in where ScaledObjects may not be read. */
struct cluster_workload *cluster_ask(struct cluster *c, const char *ns, const char *name, const char *pod_selector);
/* It was answered so that its HPA changes the count: /scale is read again soon, and where that fails what is known of
 * it stands for a few seconds only. The pods that come by this answer take load from those that are known: a value of
 * the latter alone would take them away again. */
void cluster_expect_change(struct cluster_workload *w);
/* NULL if it is not tracked. */
struct cluster_workload *cluster_find(struct cluster *c, const char *ns, const char *name);
/* What is known of it now; refers to the workload and to memory of the arena. 0, or -1 where the arena is full. */
int cluster_facts(const struct cluster_workload *w, struct arena *arena, struct workload_facts *ret);
/* What is remembered of one of its triggers, made if it is new. */
struct workload_memory *cluster_memory(struct cluster_workload *w, const struct trigger *t);
/* Its triggers that are remembered, one call each. */
void cluster_each_memory(struct cluster_workload *w, void (*visit)(void *context, struct workload_memory *m),
                         void *context);
/* Why triggers of its ScaledObject that name this hub are refused, one call each. */
void cluster_each_refusal(const struct cluster_workload *w, void (*visit)(void *context, const char *error),
                          void *context);
/* HPAs that scale its target, and ScaledObjects that will; for lint. It walks over all that are known. */
size_t cluster_count_scalers(const struct cluster_workload *w);
const char *cluster_ns(const struct cluster_workload *w);
const char *cluster_name(const struct cluster_workload *w);
/* All that are tracked, in order of namespace and name, one call each. */
void cluster_each(struct cluster *c, void (*visit)(void *context, struct cluster_workload *w), void *context);
size_t cluster_len(const struct cluster *c);

#endif
