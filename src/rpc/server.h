/* The server's inside: methods with their series, sessions, calls. Private to rpc/ and its tests. The session core
 * takes bytes and gives bytes; server_net.c ties it to net. */
#ifndef RPC_SERVER_H
#define RPC_SERVER_H

#include "rpc/h2.h"
#include "rpc/list.h"
#include "rpc/rpc.h"
#include "rpc/wire.h"

enum { RPC_CLASSES = ERR_UNAUTHENTICATED + 1 };

/* A registered method: its labels and series, looked up once. */
struct rpc_entry {
    const struct rpc_method *method; /* NULL for the entry of unknown methods */
    size_t path_len;
    char *service, *name; /* labels */
    struct metric_series *started, *received, *sent, *seconds, *open, *handled[RPC_CLASSES];
};

struct rpc_server {
    struct net_loop *loop; /* NULL in tests of the core */
    const struct net_gets *gets;
    VEC(struct rpc_entry *) entries;
    struct rpc_entry unknown;
    nghttp2_session_callbacks *callbacks;
    struct net_protocol protocol;
    struct rpc_link sessions;
    struct rpc_link timed; /* calls that have a deadline, of all sessions */
    struct rpc_call *free_calls;
    size_t n_free_calls, n_calls;
    int64_t received_bytes, unsent_bytes; /* held for all connections */
    size_t n_draining;
    int64_t (*clock_ns)(void); /* for durations in metrics only */
    struct {
        struct metric_family *started, *handled, *received, *sent, *seconds, *open;
    } families;
    struct net_timer *timer;
    int64_t timer_at_ns, ticked_ns; /* when the timer fires; when all sessions were ticked */
};

enum rpc_drain { RPC_OPEN, RPC_DRAIN_NOTICE, RPC_DRAIN_FINAL };

struct rpc_session {
    struct rpc_h2 h2; /* first: nghttp2's user_data */
    struct rpc_server *server;
    struct rpc_link link;     /* server->sessions */
    struct rpc_link calls;    /* all that have a stream */
    struct rpc_link finished; /* finished by their handler, `ended` not called yet */
    size_t n_calls;
    int64_t received_bytes, unsent_bytes;
    enum rpc_drain drain;
    int64_t drain_since_ns;
    bool is_draining_pinged;
};

enum rpc_verb { RPC_VERB_OTHER, RPC_VERB_POST, RPC_VERB_GET, RPC_VERB_HEAD };

/* One stream: from its HEADERS to its close. Pooled. */
struct rpc_call {
    struct rpc_link link, timed_link, finished_link;
    struct rpc_call *next_free;
    struct rpc_session *session;
    struct rpc_entry *entry; /* NULL until the headers are judged, and for GET */
    void *state;
    struct arena arena;
    int64_t started_ns, deadline_ns, body_due_ns; /* absolute; INT64_MAX = none */
    int64_t stall_due_ns;                         /* output must have moved by then; the same */
    int64_t timeout_ns;                           /* the client's; -1 = none */
    int64_t clock_started_ns;
    int32_t stream_id;
    enum rpc_verb verb;

    /* request */
    struct rpc_reader reader;
    size_t header_bytes, held_bytes, request_bytes, n_received;
    nghttp2_rcbuf *path, *authority, *accept, *accept_encoding, *user_agent;
    bool has_content_type, is_grpc, has_encoding, is_timeout_bad, is_host_different;
    bool is_remote_closed; /* END_STREAM came */
    bool is_plain;         /* not gRPC, and not answered yet */

    /* answer */
    struct buf out; /* bytes out[out_at..) are not sent yet */
    size_t out_at, last_message_at, n_sent;
    size_t stall_left_bytes; /* how much output moves that limit on */
    char *text;              /* of the status, until its trailers are out; NULL = none */
    enum err_class status;
    bool is_open; /* between the judged headers and `ended` */
    bool are_headers_out, is_deferred, is_finished, is_reset, has_arena, is_get;
};

/* ---- server.c ---- */
void rpc_server_core_init(struct rpc_server *server, const struct rpc_server_config *config);
void rpc_server_core_fini(struct rpc_server *server);
/* The entry of a path; &server->unknown when there is none. */
struct rpc_entry *rpc_server_find(struct rpc_server *server, struct str path);
void rpc_entry_count_handled(struct rpc_server *server, struct rpc_entry *entry, enum err_class status);
/* End calls whose deadline has passed. Returns when to look again: the soonest deadline or INT64_MAX. */
int64_t rpc_server_sweep(struct rpc_server *server, int64_t now_ns);

/* ---- session.c: the core ---- */
struct rpc_session *rpc_session_new(struct rpc_server *server, const struct rpc_env *env, int64_t now_ns);
/* Every open call ends. Not from inside a handler: the owner defers it. */
void rpc_session_free(struct rpc_session *s);
/* 0, or -1 when the connection is to be closed once its output is sent. */
int rpc_session_receive(struct rpc_session *s, const uint8_t *bytes, size_t len, int64_t now_ns);
/* The next bytes to send; 0 when there are none. Calls `ended` of finished calls. */
size_t rpc_session_pull(struct rpc_session *s, const uint8_t **ret_bytes);
void rpc_session_tick(struct rpc_session *s, int64_t now_ns);
void rpc_session_drain(struct rpc_session *s, int64_t now_ns);
/* All is sent and nothing more will come: close it. */
bool rpc_session_is_done(const struct rpc_session *s);
nghttp2_session_callbacks *rpc_session_callbacks_new(void);

/* ---- request.c: header rules, messages in, GET ---- */
int rpc_request_header(struct rpc_call *call, nghttp2_rcbuf *name, nghttp2_rcbuf *value);
/* The header block is complete: start the call or answer why not. 0, or what an nghttp2 callback returns to stop. */
int rpc_request_judge(struct rpc_call *call);
void rpc_request_data(struct rpc_call *call, const uint8_t *bytes, size_t len);
/* END_STREAM came. 0, or what an nghttp2 callback returns to stop. */
int rpc_request_end(struct rpc_call *call);
/* Answer a request that is not gRPC, whether or not its end came. */
int rpc_request_answer_plain(struct rpc_call *call);
void rpc_request_forget_headers(struct rpc_call *call);

/* ---- call.c: the answer and the life of a call ---- */
struct rpc_call *rpc_call_new(struct rpc_session *s, int32_t stream_id);
/* The stream is gone: end the call where it is open and give its memory back. */
void rpc_call_release(struct rpc_call *call);
/* Call `ended` and forget the handler's side. The stream may still have output. */
void rpc_call_end(struct rpc_call *call);
/* Finish with a status made here. */
void rpc_call_refuse(struct rpc_call *call, enum err_class status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* An answer that is not gRPC's 200: status, content-type, grpc-status and text, no body. */
void rpc_call_answer_http(struct rpc_call *call, int http_status, enum err_class status, const char *text);
/* GET's answer: the body is taken over. */
void rpc_call_answer_get(struct rpc_call *call, struct net_get_response *response);
void rpc_call_drop_held(struct rpc_call *call);
/* (Re)place in the list of deadlines. */
void rpc_call_set_timed(struct rpc_call *call);
/* The soonest of its limits, INT64_MAX when it has none. */
int64_t rpc_call_due_ns(const struct rpc_call *call);
void rpc_call_expire(struct rpc_call *call, int64_t now_ns);

/* ---- server_net.c ---- */
void rpc_server_net_init(struct rpc_server *server);
void rpc_server_net_fini(struct rpc_server *server);
/* Make sure that a sweep comes soon after due_ns. Does nothing without a loop. */
void rpc_server_net_hurry(struct rpc_server *server, int64_t due_ns);

#endif
