/* Shared by the files of daemon only. */
#ifndef DAEMON_PRIVATE_H
#define DAEMON_PRIVATE_H

#include "daemon/daemon.h"

enum { DAEMON_LISTENERS_MAX = DAEMON_LISTEN_MAX + 2, DAEMON_SIGNALS_MAX = 4 };

struct daemon {
    struct daemon_config config;
    struct daemon_program program;
    struct net_loop *loop;
    struct net_gets *gets;
    struct http_server *http;
    struct rpc_server *rpc;
    struct net_tls *tls;
    struct daemon_reloadable reloadable; /* as in force */
    struct trigger_cache *triggers;
    int64_t next_refusal_ns, unlogged_refusals; /* no refusal is logged before */
    struct net_listener *listeners[DAEMON_LISTENERS_MAX];
    size_t n_listeners, n_draining;
    struct net_signal *signals[DAEMON_SIGNALS_MAX];
    size_t n_signals;
    struct net_timer *delay; /* once, before the drain */
    bool is_draining;
    int exit_code;
};

/* /livez, /readyz, /healthz, /version and the index. */
void daemon_add_pages(struct daemon *d);

#endif
