/* The inside of the fleet: agents, their streams, wants. Private to fleet/ and its tests. */
#ifndef FLEET_PRIVATE_H
#define FLEET_PRIVATE_H

#include "fleet/store.h"
#include "rpc/rpc.h"

#define FLEET_TICK_NS       (500 * NS_PER_MS) /* how often agents are looked at */
#define FLEET_QUICK_TICK_NS (50 * NS_PER_MS)  /* while streams wait to be opened */
#define FLEET_DIAL_GAP_NS   (5 * NS_PER_MS)   /* 200 dials a second */
#define FLEET_SPREAD_NS     (2 * NS_PER_S)    /* over which all streams are opened anew for other wants */

struct fleet_peer;

/* One Watch call. Freed when its `done` has come; until then nobody may be interested any more (peer NULL). */
struct fleet_watch {
    struct fleet_peer *peer;
    struct rpc_client_call *call;
    int64_t opened_ns;
    uint64_t generation; /* of the wants that it was opened with */
    uint64_t live;       /* wants by place that are still the same */
    size_t n_wants;
};

/* An agent that ought to report. */
struct fleet_peer {
    struct fleet *fleet;
    struct fleet_store *store;
    struct rpc_client *client;   /* NULL between attempts */
    struct fleet_watch *current; /* whose updates the store has; NULL = none yet */
    struct fleet_watch *opening; /* opened, nothing heard yet */
    int64_t open_at_ns;          /* with nothing open: when to open one */
    int64_t retry_at_ns;         /* not before that, where one for newer wants was refused */
    int64_t late_since_ns;       /* updates have come late since; 0 = they do not */
    int64_t place_ns;            /* its own in FLEET_SPREAD_NS */
    int n_failures;              /* since a stream has lasted */
    unsigned n_names;            /* the store's count at the last look */
    bool is_synced;              /* counted in n_synced */
    int64_t unlisted_ns;         /* no longer among who ought to report since then; 0 = it is */
    bool is_over;                /* to be forgotten now */
};

struct fleet_place {
    struct fleet_want want;
    bool is_used, was_used; /* was: streams may still answer for what it held before */
    int64_t asked_ns;
};

struct fleet_metrics {
    struct metric_series *by_state[FLEET_NODE_REFUSED + 1];
    struct metric_series *updates, *faults, *opened, *lost, *lag;
};

struct fleet {
    struct fleet_config config;
    char *hub, *server_name;
    struct rpc_pool *pool;
    struct net_timer *timer;
    bool is_quick;                       /* the timer's pace */
    struct fleet_peer **peers;           /* by address */
    size_t n_peers, next_peer, n_synced; /* next: where the look for due dials goes on */
    bool has_agents;                     /* fleet_set_agents was called */
    int64_t dial_free_ns;                /* before that no dial */
    struct fleet_place places[FLEET_WANTS_MAX];
    size_t n_places; /* up to the last used one */
    uint64_t generation;
    int64_t spread_from_ns; /* streams are opened anew from then on, each at its own place */
    int64_t looked_at_wants_ns;
    struct fleet_metrics metrics;
    uint64_t random;
    struct fleet_index *index; /* by name */
};

/* ---- stream.c ---- */
struct fleet_peer *fleet_peer_new(struct fleet *f, const struct fleet_agent *agent);
void fleet_peer_free(struct fleet_peer *p);
/* Its agent ought not to report any more: what it said stands and ages. And the other way. */
void fleet_peer_unlist(struct fleet_peer *p, int64_t now_ns);
void fleet_peer_list(struct fleet_peer *p, int64_t now_ns);
/* Silence, newer wants, and a dial when it is due and `may_dial`: returns whether one was made. */
bool fleet_peer_tick(struct fleet_peer *p, int64_t now_ns, bool may_dial);
/* Is something of it due before the next slow tick? */
bool fleet_peer_is_waiting(const struct fleet_peer *p, int64_t now_ns);
/* A place has another want. */
void fleet_peer_forget_want(struct fleet_peer *p, size_t want);
/* min(30 s, 0.5 s * 2^n) times random in [0, 1), and 100 ms. */
int64_t fleet_backoff_ns(int n_failures, double random);

/* ---- fleet.c ---- */
double fleet_random(struct fleet *f); /* in [0, 1) */
/* The request for the wants as they are; used places in *ret_live. */
void fleet_write_request(const struct fleet *f, struct buf *out, uint64_t *ret_live);
void fleet_count_state(struct fleet *f, enum fleet_node_state from, enum fleet_node_state to);
void fleet_tell_changed(struct fleet *f, const struct fleet_node *node);
void fleet_names_changed(struct fleet *f);

#endif
