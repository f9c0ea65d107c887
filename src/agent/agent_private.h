/* Shared by the files of agent only. */
#ifndef AGENT_AGENT_PRIVATE_H
#define AGENT_AGENT_PRIVATE_H

#include "agent/agent.h"
#include "agent/entries.h"
#include "attribution/attribution.h"
#include "exporter/exporter.h"
#include "http/http.h"
#include "rpc/rpc.h"
#include "service/service.h"

struct agent {
    const struct agent_config *config;
    struct daemon *daemon;
    struct net_loop *loop; /* the daemon's */
    struct metrics *metrics;
    struct service *service;
    struct exporter *exporter;
    struct agent_entries *entries;   /* of the `metrics:` list in force */
    struct attribution *attribution; /* NULL = not asked for */
    struct daemon_engines *engines;  /* for triggers that name an endpoint */
    struct gpu_sampler *sampler;
    struct net_wakeup *wakeup;
    struct net_timer *second;        /* each second */
    const struct snapshot *snapshot; /* a reference; NULL before the first */
    int64_t next_watcher_ns;         /* no coming or going of a hub is logged before */
    int64_t unlogged_watchers;
    enum snapshot_driver_state logged_driver;
    enum snapshot_owners_state logged_owners; /* STARTING: nothing logged yet */
    enum snapshot_sight logged_sight;         /* OFF: nothing logged yet */
    bool has_logged_driver, is_stuck;
};

/* What the daemon asks of the agent. */
struct daemon_program agent_program(struct agent *a);
/* The driver's state, for ?verbose of health pages; context is the agent. */
void agent_write_driver(void *context, struct buf *out);
/* That, and how the pages of endpoints stand. */
void agent_write_state(void *context, struct buf *out);
/* The newest snapshot, borrowed until the next turn; NULL before the first. context is the agent. */
const struct snapshot *agent_newest(void *context);
/* Where answers come from. */
struct service_source agent_source(struct agent *a);
/* /metrics. */
void agent_add_pages(struct agent *a);
/* What hubs are told besides snapshots. */
struct service_fleet agent_fleet(struct agent *a);
/* Log what changed in the driver's state and devices since the last snapshot. */
void agent_log_snapshot(struct agent *a, const struct snapshot *previous, const struct snapshot *now);
/* Log a change of what the kubelet says of its devices' owners: the state, once. */
void agent_log_owners(struct agent *a, const struct snapshot_owners *owners);
/* Log a change of how processes can be told apart by pod, once. */
void agent_log_sight(struct agent *a, const struct snapshot_holders *holders);

#endif
