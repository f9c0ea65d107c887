/* The client's inside: calls that wait for a connection, sessions, back-off. Private to rpc/ and its tests. The core
 * asks for a connection through `struct rpc_client_io`; client_net.c dials with net. */
#ifndef RPC_CLIENT_H
#define RPC_CLIENT_H

#include "rpc/h2.h"
#include "rpc/list.h"
#include "rpc/rpc.h"
#include "rpc/wire.h"

enum { RPC_ATTEMPTS_MAX = 3, RPC_CONTENT_TYPE_MAX = 64, RPC_ANSWER_TEXT_MAX = ERR_TEXT_MAX - 64 };

/* What the core needs from outside. */
struct rpc_client_io {
    void (*dial)(struct rpc_client *client); /* then rpc_client_session_new, or rpc_client_dial_failed */
    void (*wake)(struct rpc_client *client); /* calls are over or due times changed: reap before the turn ends */
    int64_t (*now_ns)(const struct rpc_client *client);
};

enum rpc_client_state {
    RPC_CLIENT_IDLE,
    RPC_CLIENT_DIALLING, /* until the server's SETTINGS came */
    RPC_CLIENT_READY,
    RPC_CLIENT_BACKOFF
};

struct rpc_client_session;

struct rpc_client {
    const struct rpc_client_io *io;
    char *address, *authority, *server_name;
    bool is_tls;
    size_t max_message_bytes, window_bytes;
    int64_t keepalive_ns;
    nghttp2_session_callbacks *callbacks; /* NULL: the pool's */
    struct rpc_pool *pool;                /* or NULL */
    enum rpc_client_state state;
    struct rpc_client_session *current; /* DIALLING (once connected) and READY */
    struct rpc_link queued, over, sessions;
    int n_failures;
    int64_t dial_at_ns, ready_at_ns;
    uint64_t random;
    struct err *last_error; /* of the last dial; NULL = it succeeded, or there was none */
    int depth;              /* how many of our frames are on the stack below a handler */
    bool is_freed;

    /* client_net.c */
    struct net_loop *loop;
    struct net_tls *tls;
    struct net_protocol protocol;
    struct net_timer *timer;
    int64_t timer_at_ns;
    struct net_conn *dialling;
    size_t n_conns;
    bool is_waking;
};

/* One session's part of the pool. */
struct rpc_pool_share {
    struct rpc_pool *pool;
    void *frame;     /* nghttp2's frame buffer, of the pool; NULL = none */
    bool is_touched; /* since its pages were given back */
};

struct rpc_client_session {
    struct rpc_h2 h2; /* first: nghttp2's user_data */
    struct rpc_pool_share share;
    struct rpc_client *client;
    struct rpc_link link;  /* client->sessions */
    struct rpc_link calls; /* with a stream here */
    bool is_leaving;       /* the server said GOAWAY, or we are done with it */
    struct net_conn *conn; /* client_net.c's */
};

struct rpc_client_call {
    struct rpc_link link; /* client->queued, session->calls or client->over */
    struct rpc_client *client;
    struct rpc_client_session *session; /* NULL while queued and when over */
    struct rpc_client_call_config config;
    char *path;
    struct buf request; /* with its prefix */
    size_t request_at;
    int32_t stream_id;
    int attempts;
    int64_t deadline_ns; /* absolute; INT64_MAX = none */
    struct rpc_reader reader;

    /* the answer */
    int http_status, grpc_status; /* -1 = not there */
    bool is_grpc, has_encoding, has_headers, is_remote_closed;
    size_t header_bytes;
    char content_type[RPC_CONTENT_TYPE_MAX];
    char *text;                       /* grpc-message; NULL = none */
    struct err *status;               /* once it is over */
    bool is_over, is_inside, is_told; /* inside: its message handler runs; told: `done` was called */
};

/* ---- client.c ---- */
void rpc_client_core_init(struct rpc_client *client, const struct rpc_client_config *config,
                          const struct rpc_client_io *io);
/* No call and no session may be left. */
void rpc_client_core_fini(struct rpc_client *client);
/* Do what the state allows: submit, dial, or fail what does not wait. */
void rpc_client_advance(struct rpc_client *client);
void rpc_client_dial_failed(struct rpc_client *client, const struct err *e);
/* The server's SETTINGS came. */
void rpc_client_ready(struct rpc_client_session *s);
/* New calls go elsewhere. e: why it could not be used at all (then it counts as a failed dial), or NULL. */
void rpc_client_leave(struct rpc_client_session *s, const struct err *e);
/* End calls whose deadline has passed, dial when it is time, tick sessions. Returns when to look again. */
int64_t rpc_client_tick(struct rpc_client *client, int64_t now_ns);
/* Call `done` of all calls that are over. client may be freed in it. */
void rpc_client_reap(struct rpc_client *client);
void rpc_client_cancel_all(struct rpc_client *client);
/* Over, with this status: `done` follows in rpc_client_reap. */
void rpc_client_call_end(struct rpc_client_call *call, enum err_class class, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void rpc_client_call_free(struct rpc_client_call *call);
/* 1 s * 1.6 ^ (n_failures - 1), at most 120 s, times 0.8 to 1.2 by random in [0, 1). doc/connection-backoff.md */
int64_t rpc_backoff_ns(int n_failures, double random);

/* ---- pool.c ---- */
struct rpc_pool *rpc_pool_ref(struct rpc_pool *pool); /* undone by rpc_pool_free */
const nghttp2_session_callbacks *rpc_pool_callbacks(const struct rpc_pool *pool);
/* nghttp2's memory for one session; share lives as long as that. */
nghttp2_mem rpc_pool_mem(struct rpc_pool_share *share);
/* Nothing waits to be sent: give the frame buffer's pages back, where it was used. */
void rpc_pool_release(struct rpc_pool_share *share);

/* ---- client_session.c ---- */
nghttp2_session_callbacks *rpc_client_callbacks_new(void);
struct rpc_client_session *rpc_client_session_new(struct rpc_client *client, const struct rpc_env *env, int64_t now_ns);
/* The connection is gone: its calls end with UNAVAILABLE and, where it is not "", with the reason. */
void rpc_client_session_free(struct rpc_client_session *s, const char *reason);
int rpc_client_session_receive(struct rpc_client_session *s, const uint8_t *bytes, size_t len, int64_t now_ns);
size_t rpc_client_session_pull(struct rpc_client_session *s, const uint8_t **ret_bytes);
bool rpc_client_session_is_done(const struct rpc_client_session *s);
/* Give a queued call its stream. */
void rpc_client_session_submit(struct rpc_client_session *s, struct rpc_client_call *call);
/* RST_STREAM(CANCEL) and forget: the call has no stream afterwards. */
void rpc_client_session_drop(struct rpc_client_call *call);

#endif
