/* Shared by the files of agent only. */
#ifndef AGENT_AGENT_PRIVATE_H
#define AGENT_AGENT_PRIVATE_H

#include "agent/agent.h"
#include "attribution/attribution.h"
#include "exporter/exporter.h"
#include "http/http.h"
#include "rpc/rpc.h"
#include "service/service.h"

enum { AGENT_LISTENERS_MAX = AGENT_LISTEN_MAX + 2 };

struct agent {
    const struct agent_config *config;
    struct agent_reloadable reloadable; /* as in force */
    struct net_loop *loop;
    struct metrics *metrics;
    struct net_gets *gets;
    struct http_server *http;
    struct rpc_server *rpc;
    struct trigger_cache *triggers;
    struct service *service;
    struct exporter *exporter;
    struct attribution *attribution; /* NULL = not asked for */
    struct net_tls *tls;
    struct net_listener *listeners[AGENT_LISTENERS_MAX];
    size_t n_listeners;
    struct gpu_sampler *sampler;
    struct net_wakeup *wakeup;
    struct net_timer *second, *delay; /* each second; once, before the drain */
    struct net_signal *signals[5];
    size_t n_signals;
    const struct snapshot *snapshot; /* a reference; NULL before the first */
    enum snapshot_driver_state logged_driver;
    enum snapshot_owners_state logged_owners; /* STARTING: nothing logged yet */
    bool has_logged_driver, is_draining, is_stuck;
    int64_t next_refusal_ns; /* no refusal is logged before */
    int64_t unlogged_refusals;
    size_t n_draining;
    int exit_code;
};

/* /livez, /readyz, /healthz, /version and the index. */
void agent_add_pages(struct agent *a);
/* Log what changed in the driver's state and devices since the last snapshot. */
void agent_log_snapshot(struct agent *a, const struct snapshot *previous, const struct snapshot *now);
/* Log a change of what the kubelet says of its devices' owners: the state, once. */
void agent_log_owners(struct agent *a, const struct snapshot_owners *owners);

#endif
