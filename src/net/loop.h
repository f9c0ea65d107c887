/* The inside of the loop and its timers, for net's own files. */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include "net/net.h"

#include <uv.h>

/* A place in the loop's heap of deadlines. Embedded in its owner or made by net_timer_new. */
struct net_timer {
    struct net_loop *loop;
    void (*fn)(void *context);
    void *context;
    int64_t at_ns, repeat_ns;
    uint64_t start_id; /* order of starts: equal deadlines fire in it */
    size_t place;      /* index in the heap + 1; 0 = not started */
};

/* Prepare an embedded timer; stop it before its memory goes. */
void net_timer_setup(struct net_timer *timer, struct net_loop *loop, void (*fn)(void *context), void *context);
/* Fire what is due. */
void net_timers_run(struct net_loop *loop);
/* The earliest deadline, or INT64_MAX. */
int64_t net_timers_next_ns(const struct net_loop *loop);

struct net_deferred {
    void (*fn)(void *context);
    void *context;
};

/* Why a connection ended: label values of a metric. */
#define NET_ENDS(X)                                                                                                    \
    X(PEER, "peer")       /* the peer closed */                                                                        \
    X(LOCAL, "local")     /* our protocol closed */                                                                    \
    X(ERROR, "error")     /* the network or TLS failed */                                                              \
    X(LIMIT, "limit")     /* a deadline or ceiling was hit */                                                          \
    X(ABORTED, "aborted") /* net_conn_abort, or its listener went */

enum net_end {
#define X(id, name) NET_END_##id,
    NET_ENDS(X)
#undef X
        NET_END_COUNT
};

/* Series that net moves, found once. */
struct net_series {
    struct metric_series *limit_hits[NET_LIMIT_COUNT];
    struct metric_series *inbound, *outbound, *accepted, *accept_fd_limit, *accept_other;
    struct metric_series *server_handshake_failures, *client_handshake_failures;
    struct metric_series *closed[NET_END_COUNT];
    struct metric_family *tls_reloads, *tls_reload_errors, *tls_reload_ok, *tls_expiry;
};

enum { NET_READ_BUFFER_BYTES = 65536 };

struct net_loop {
    uv_loop_t uv;
    uv_prepare_t prepare;
    uv_check_t check;
    uv_idle_t idle;   /* active while something waits for the next turn: keeps the poll from sleeping */
    uv_timer_t alarm; /* the only libuv timer: set to the earliest of the heap */
    int64_t *now;     /* of this turn; 0 = not read yet. A pointer, so that readers may hold a const loop */
    int64_t now_storage, skipped_ns, alarm_at_ns;
    VEC(struct net_timer *) heap;
    uint64_t n_timer_starts;
    VEC(struct net_deferred) deferred;
    VEC(struct net_conn *) dirty; /* have output for the end of the turn */
    VEC(struct net_conn *) again; /* have input beyond this turn's budget */
    VEC(struct net_conn *) dead;  /* to be taken apart at the end of the turn */
    struct net_listener *listeners;
    struct net_conn *clients;
    struct map *per_ip;            /* address -> size_t, open inbound connections */
    size_t n_inbound, max_inbound; /* max: by the descriptors that the process may have */
    size_t unsent_bytes;           /* output of all connections */
    int64_t relieved_at_ns;        /* when stalled connections were last looked for */
    int64_t n_handshakes;          /* steps in this turn */
    int spare_fd;                  /* given up to shed a connection when there is no other */
    bool is_stopping;
    uint64_t random;
    struct metrics *own_metrics;
    struct net_series series;
    uint8_t *read_buffer; /* NET_READ_BUFFER_BYTES, shared by all connections */
};

/* Find all series; called once by net_loop_new. */
void net_series_setup(struct net_series *series, struct metrics *metrics);

#endif
