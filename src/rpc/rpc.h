/* rpc: gRPC over HTTP/2 (nghttp2) on net's connections: framing, status, deadlines, metadata; server and client. GET
 * and HEAD over HTTP/2 go to net's GET table. It moves messages as bytes and knows no protobuf. The rules and their
 * sources: contracts of gRPC's PROTOCOL-HTTP2.md, RFC 9113. The session core takes bytes and gives bytes: no socket
 * inside. */
#ifndef RPC_RPC_H
#define RPC_RPC_H

#include "base/base.h"
#include "net/net.h"

/* ---- server ---- */

struct rpc_server;
struct rpc_call; /* one call being served; lives until its `ended` returns */

/* One method. Shapes: unary and server-streaming methods get `message` exactly once, after the request is complete
 * (cardinality errors never reach them); a bidi method gets it per message, then `half_closed`. */
struct rpc_method {
    const char *path; /* "/externalscaler.ExternalScaler/GetMetrics" */
    bool is_client_streaming, is_server_streaming;
    bool is_state_stream; /* only the newest message matters: a send replaces one that has not begun to go out */
    int64_t deadline_ns;  /* our own limit; 0 = none (streams). The client's grpc-timeout counts too */
    /* `request` is valid during `message` only. Answer with rpc_call_send and rpc_call_finish, now or later. */
    void (*message)(struct rpc_call *call, struct str request, void *context);
    void (*half_closed)(struct rpc_call *call, void *context); /* bidi; optional: default finishes with OK */
    /* Optional. It is over: finished, cancelled, timed out, connection gone. Free what was put with set_state. */
    void (*ended)(struct rpc_call *call, void *context);
    void *context;
};

struct rpc_server_config {
    struct net_loop *loop;
    struct metrics *metrics;     /* grpc_server_* families */
    const struct net_gets *gets; /* GET/HEAD over HTTP/2; NULL = 404 */
};
struct rpc_server *rpc_server_new(const struct rpc_server_config *config);
void rpc_server_free(struct rpc_server *server); /* accepts NULL; listeners first */
/* Register; the array must outlive the server. */
void rpc_server_add(struct rpc_server *server, const struct rpc_method *methods, size_t n);
/* For struct net_listen_config.h2. Its drain sends GOAWAY, ends server streams with OK and lets unary calls finish. */
const struct net_protocol *rpc_server_protocol(struct rpc_server *server);

/* Queue one message (copied). Sends response headers first where they are not out. -1 when the call is over or a
 * ceiling of unsent output is hit (limits stream_output_bytes, output_bytes, output_bytes_all; one message of any size
 * fits where nothing waits). A state stream holds at most one message that has not begun to go out: the newest. */
int rpc_call_send(struct rpc_call *call, const void *message, size_t len);
/* Send response headers now: clients of streams block on them. */
void rpc_call_send_headers(struct rpc_call *call);
/* End the call with a status. OK = ERR_NONE, text NULL. Texts are cut at 1 kB and percent-encoded. The call must not be
 * used after. Each unary method must have sent one message before OK. */
void rpc_call_finish(struct rpc_call *call, enum err_class status, const char *text);
/* rpc_call_finish with an error. */
void rpc_call_fail(struct rpc_call *call, const struct err *e);
/* Unary convenience: send one message and finish with OK. */
void rpc_call_reply(struct rpc_call *call, const void *message, size_t len);

/* The handler's own state of this call. */
void rpc_call_set_state(struct rpc_call *call, void *state);
void *rpc_call_state(const struct rpc_call *call);
const char *rpc_call_peer(const struct rpc_call *call);
/* Memory of this call, freed with it; capped at 8 times the request, at least 64 kB. */
struct arena *rpc_call_arena(struct rpc_call *call);

/* ---- client ---- */

struct rpc_client;
struct rpc_pool;
struct rpc_client_config {
    struct net_loop *loop;
    const char *address;      /* as net_connect */
    struct net_tls *tls;      /* NULL = plaintext, HTTP/2 with prior knowledge */
    const char *server_name;  /* NULL = from address */
    const char *authority;    /* NULL = address; "localhost" for unix sockets */
    size_t max_message_bytes; /* 0 = 4 MiB */
    size_t window_bytes;      /* 0 = 64 KiB; 1 MiB speeds large answers up */
    int64_t keepalive_ns;     /* ping after this much silence while calls are open; 0 = 30 s */
    struct rpc_pool *pool;    /* NULL, or what it shares with others; then headers are not remembered at either end */
};
/* What thousands of clients with a call or two each share, so that each of them is small. Clients beyond max_clients at
 * a time work, and are larger. Accepts NULL; memory goes with the last client. */
struct rpc_pool *rpc_pool_new(size_t max_clients);
void rpc_pool_free(struct rpc_pool *pool);
/* Dials on the first call and again with exponential back-off (1 s * 1.6 +-20 %, at most 120 s; reset on success).
 * Calls wait for the connection until their deadline. */
struct rpc_client *rpc_client_new(const struct rpc_client_config *config, struct err *e);
/* Open calls end with CANCELLED before this returns. Accepts NULL. */
void rpc_client_free(struct rpc_client *client);

struct rpc_client_call;
struct rpc_client_call_config {
    const char *path;
    int64_t deadline_ns;    /* from now; 0 = none (streams). Sent as grpc-timeout and kept by ourselves */
    bool is_wait_for_ready; /* false: fail with UNAVAILABLE as soon as the address cannot be reached */
    void (*message)(void *context, struct str message); /* valid during the call only */
    /* Exactly once, last: class NONE = OK; else the status and text of the server or of our own failure. */
    void (*done)(void *context, const struct err *status);
    void *context;
};
/* Start a unary or server-streaming call with one request message. `done` is never called from inside this function. */
struct rpc_client_call *rpc_client_start(struct rpc_client *client, const struct rpc_client_call_config *config,
                                         const void *request, size_t len);
/* RST_STREAM(CANCEL); done comes with CANCELLED, at the end of the turn. Not after done: the call is gone then. */
void rpc_client_cancel(struct rpc_client_call *call);

#endif
