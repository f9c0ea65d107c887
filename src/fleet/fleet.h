/* fleet: what the agents of a cluster say, in one place: a stream from each agent, who ought to report and does not,
 * and the readings of every device and holder with their ages. It owns the Watch calls and the reading of their
 * messages; where agents are found is the program's business, what readings mean for a workload is workload's. The
 * protocol: proto/fleet.proto. */
#ifndef FLEET_FLEET_H
#define FLEET_FLEET_H

#include "base/base.h"
#include "net/net.h"
#include "snapshot/snapshot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- what is known ---- */

enum fleet_status { FLEET_OK, FLEET_NOT_YET, FLEET_MISSING, FLEET_UNSUPPORTED };

/* One want of one device or holder, in the field's unit. Whether it is still fresh: fleet_reading_is_fresh. */
struct fleet_reading {
    enum fleet_status status;
    double mean, peak;        /* where OK; else of the last good one, 0 if there was none */
    double integral, valid_s; /* unit x seconds, seconds */
    int64_t taken_ns;         /* of the newest sample, on this program's clock; 0 = never */
};

struct fleet_device {
    uint32_t id;
    enum snapshot_kind kind;
    int index, gpu_instance;
    const char *uuid, *parent_uuid, *product, *mig_profile, *lost_reason; /* "" where there is none */
    uint64_t memory_total, memory_reserved;                               /* bytes; 0 unknown */
    const struct fleet_reading *readings;                                 /* by want, n_wants of the node */
    void *own;                                                            /* private */
};

struct fleet_holder {
    uint32_t id;
    const struct fleet_device *device;
    const char *ns, *pod, *pod_uid; /* "" unknown */
    bool is_listed, is_shared, is_measured;
    uint32_t shares, n_processes;
    int64_t since_ns;                     /* on this program's clock */
    const struct fleet_reading *readings; /* of its own, by want; NULL: its device's are its own (not shared) */
    /* Memory in percent, newest minute first; low > high: nothing read in that minute. */
    const struct snapshot_extremes *minutes;
    size_t n_minutes;
    void *own; /* private */
};

/* X(id, name) */
#define FLEET_NODE_STATES(X)                                                                                           \
    X(CONNECTING, "connecting") /* not heard yet, or the connection was lost: readings age */                          \
    X(UP, "up")                 /* its stream is open and was heard within the last 5 s (or 3 periods) */              \
    X(STALE, "stale")           /* open, but silent for longer */                                                      \
    X(REFUSED, "refused")       /* the agent answers, but not this call: too old a version, or no permission */
enum fleet_node_state {
#define X(id, name) FLEET_NODE_##id,
    FLEET_NODE_STATES(X)
#undef X
};
const char *fleet_node_state_name(enum fleet_node_state state);

struct fleet_node {
    const char *name;     /* as the agent says, before that as the program expected; "" unknown */
    const char *expected; /* name as the program expected it; "" unknown */
    const char *address;  /* of its agent */
    const char *version;  /* of its agent; "" unknown */
    enum fleet_node_state state;
    char text[SNAPSHOT_TEXT_MAX]; /* why it is not up; "" */
    bool is_synced;               /* was ever heard in whole, and what follows is of it */
    bool is_simulated;
    uint64_t instance; /* of the agent's process: another one has integrals and ids of its own */
    int64_t heard_ns;  /* the last update */
    int64_t taken_ns;  /* of the snapshot behind it, on this program's clock */
    int64_t period_ns;
    const char *driver, *driver_text, *driver_version, *owners, *owners_text, *sight, *sight_text;
    size_t n_wants;
    const int64_t *age_limits_ns; /* by want */
    size_t n_devices, n_holders;
    const struct fleet_device *devices; /* in the agent's order */
    const struct fleet_holder *holders; /* by namespace, pod, device */
};

bool fleet_reading_is_fresh(const struct fleet_node *node, size_t want, const struct fleet_reading *r, int64_t now_ns);
/* The devices that a pod holds or uses: *ret_n holders in a row; NULL and 0 if there are none. */
const struct fleet_holder *fleet_holders_of(const struct fleet_node *node, const char *ns, const char *pod,
                                            size_t *ret_n);

/* ---- the streams ---- */

struct fleet;
struct fleet_config {
    struct net_loop *loop;
    struct metrics *metrics; /* keda_gpu_scaler_fleet_*: agents known, up, stale; lag; updates; reconnects */
    struct net_tls *tls;     /* client side; NULL = plaintext */
    const char *server_name; /* of the agents' certificates; NULL = the address */
    const char *hub;         /* name of this program, for the agents' logs */
    /* Optional: an update was applied, or the node's state has changed. It may ask (fleet_want, fleet_find_node), but
     * not call fleet_set_agents or fleet_free. */
    void (*changed)(void *context, const struct fleet_node *node);
    void *context;
};
struct fleet *fleet_new(const struct fleet_config *config);
void fleet_free(struct fleet *f); /* accepts NULL */

/* Who ought to report, in place of all before: agents with the same address go on, others end. A node whose agent is no
 * longer listed stays with what it said last, not up, for 15 minutes or until another agent speaks for it. Texts are
 * copied. New ones are dialled with full jitter, at most 200 a second. */
struct fleet_agent {
    const char *node;    /* name, "" unknown */
    const char *address; /* "10.0.0.7:6000" */
};
void fleet_set_agents(struct fleet *f, const struct fleet_agent *agents, size_t n);

/* What triggers ask for. Returns its place (the same for the same want), or -1 where there are 64 in use. A new one
 * opens the streams anew, spread over two seconds; until a node has answered, its readings of it are NOT_YET (n_wants
 * is smaller). Ask again with each question: one that nobody asked for in 15 minutes makes room. */
struct fleet_want {
    enum snapshot_field field;
    int64_t window_ns, activation_window_ns;
};
enum { FLEET_WANTS_MAX = 64 };
int fleet_want(struct fleet *f, const struct fleet_want *want);

/* NULL if there is none of this name. Valid until the loop's next turn. */
const struct fleet_node *fleet_find_node(const struct fleet *f, const char *name);
/* All of them, in order of name; *ret_n of them. */
const struct fleet_node *const *fleet_nodes(const struct fleet *f, size_t *ret_n);
/* Has every agent that is known been heard once (also none known, after fleet_set_agents)? */
bool fleet_is_synced(const struct fleet *f);

/* ---- one node by itself, for tests and fuzzing: no socket, no clock ---- */

struct fleet_store;
struct fleet_store *fleet_store_new(const char *address);
void fleet_store_free(struct fleet_store *s); /* accepts NULL */
/* One WatchUpdate. -1 and an error: not one, out of sequence, or beyond a ceiling (1024 devices, 4096 holders, texts of
 * 1 kB); the node then waits for a full one. */
int fleet_store_apply(struct fleet_store *s, struct str update, int64_t now_ns, struct err *e);
const struct fleet_node *fleet_store_node(const struct fleet_store *s);

#endif
