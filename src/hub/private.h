/* Shared by the files of hub only. */
#ifndef HUB_PRIVATE_H
#define HUB_PRIVATE_H

#include "cluster/cluster.h"
#include "exporter/exporter.h"
#include "fleet/fleet.h"
#include "hub/hub.h"
#include "kube/kube.h"
#include "service/service.h"
#include "workload/workload.h"

/* Until then a hub that has not heard everybody says "not yet". */
#define HUB_START_NS (10 * NS_PER_S)

struct hub_agents;
struct hub_entries;

struct hub {
    const struct hub_config *config;
    struct daemon *daemon;
    struct net_loop *loop; /* the daemon's */
    struct metrics *metrics;
    struct service *service;
    struct exporter *exporter;
    struct kube *kube;
    struct fleet *fleet;
    struct workload_fleet nodes; /* how workload/ sees the fleet */
    struct cluster *cluster;
    struct daemon_engines *engines;
    struct err no_page; /* why the last pod asked for has none */
    struct hub_agents *agents;
    struct hub_entries *entries; /* of the `metrics:` list in force */
    struct net_tls *agent_tls;
    struct net_timer *second;
    struct workload_memory *loose; /* of the last question about what is no ScaledObject */
    struct metric_family *decisions, *shown_utilization, *shown_memory;
    struct map *logged_states; /* by address: what was logged of each agent last */
    int64_t start_ns;
    size_t n_wants;  /* that agents are asked for, by place */
    bool is_settled; /* once, for ever: see hub_is_settled */
};

/* Have the API been read and all agents been heard once, with readings of all that is asked of them, or is it too late
 * to wait for them? True once, true for ever. */
bool hub_is_settled(struct hub *h);
/* What it waits for, for people. */
const char *hub_waits_for(const struct hub *h);

/* ---- answer.c ---- */

/* An answer with the facts that it came from, in the call's arena: service_answer.detail. */
struct hub_answer {
    struct workload_facts facts; /* ns NULL: none, as for scope cluster of something unknown */
    struct workload_answer answer;
};
struct service_evaluator hub_evaluator(struct hub *h);
/* The answer for a workload's trigger as it would be now, without counting it as asked. NULL where the arena is full.
 */
const struct hub_answer *hub_look(struct hub *h, struct cluster_workload *w, struct workload_memory *m,
                                  struct arena *arena);

/* ---- engines.c: pages of pods and endpoints ---- */

/* Where workload/ finds them, beside the nodes. */
void hub_add_engines(struct hub *h);

/* ---- agents.c: where agents are found ---- */

/* NULL and INVALID_ARGUMENT for a form that is none. */
struct hub_agents *hub_agents_new(struct hub *h, struct err *e);
void hub_agents_free(struct hub_agents *a); /* accepts NULL */
/* Has each source said once which agents there are? Until then those that are known are a part of the fleet. */
bool hub_agents_are_found(const struct hub_agents *a);

/* ---- pages.c: /metrics and /api/v1 ---- */

void hub_add_pages(struct hub *h);
/* What /metrics and /api/v1/gpus show of each GPU is asked for all the time. */
void hub_want_shown(struct hub *h);
/* The newest reading of a device, where it is fresh; NaN where not. */
double hub_newest(struct hub *h, const struct fleet_node *n, const struct fleet_device *d, enum snapshot_field field);

/* ---- entries.c: `metrics:` entries by node ---- */

struct hub_entries *hub_entries_new(const struct daemon_reloadable *config);
void hub_entries_free(struct hub_entries *e); /* accepts NULL */
/* Agents are asked for them all the time. */
void hub_entries_want(struct hub_entries *e, const struct workload_fleet *fleet, int64_t now_ns);
/* The values of all entries on all nodes, up to so many devices; *ret_n of them, valid until the next call. */
const struct exporter_entry *hub_entries_evaluate(struct hub_entries *e, struct hub *h, size_t max_devices,
                                                  size_t *ret_n);

#endif
