/* net: the only owner of sockets, TLS, timers, signals and the event loop. It moves bytes between peers and protocol
 * sessions (http/, rpc/), under absolute deadlines and ceilings; it knows no protocol but TLS's ALPN and HTTP/2's
 * preface. One thread uses everything here, but for net_wakeup_send. Callbacks may destroy their owner: frees are
 * deferred to the end of the turn. */
#ifndef NET_NET_H
#define NET_NET_H

#include "base/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- loop, timers, signals, work ---- */

struct net_loop;
/* metrics (NULL = of its own) outlives the loop. NULL and an error when the system refuses. SIGPIPE is ignored from
 * here on. */
struct net_loop *net_loop_new(struct metrics *metrics, struct err *e);
/* Ends what is left: listeners and connections are aborted (their sessions get `close`), deferred calls run, work still
 * off the loop is waited for and its done called. Free timers, signals and wakeups before. Accepts NULL. */
void net_loop_free(struct net_loop *loop);
/* Runs until net_loop_stop. */
void net_loop_run(struct net_loop *loop);
/* One turn without waiting (for tests). Returns false when nothing is left to wait for. */
bool net_loop_turn(struct net_loop *loop);
void net_loop_stop(struct net_loop *loop);
/* Monotonic time, read once a turn. */
int64_t net_now_ns(const struct net_loop *loop);
/* For tests: move the loop's clock forward; deadlines passed by it fire in the next turn. */
void net_loop_skip(struct net_loop *loop, int64_t ns);
/* A number in [0, 1), for jitter. Not for secrets. */
double net_random(struct net_loop *loop);
/* Call fn(context) at the end of this turn, before output is written; from inside such a call: of the next turn. */
void net_defer(struct net_loop *loop, void (*fn)(void *context), void *context);
/* Forget all deferred calls with this context: its owner goes. */
void net_defer_cancel(struct net_loop *loop, void *context);

struct net_timer;
struct net_timer *net_timer_new(struct net_loop *loop, void (*fn)(void *context), void *context);
/* (Re)start; repeat_ns 0 = once. */
void net_timer_start(struct net_timer *timer, int64_t delay_ns, int64_t repeat_ns);
void net_timer_stop(struct net_timer *timer);
void net_timer_free(struct net_timer *timer); /* accepts NULL */

struct net_signal;
struct net_signal *net_signal_new(struct net_loop *loop, int signum, void (*fn)(void *context), void *context,
                                  struct err *e);
void net_signal_free(struct net_signal *s); /* accepts NULL */

struct net_wakeup;
struct net_wakeup *net_wakeup_new(struct net_loop *loop, void (*fn)(void *context), void *context, struct err *e);
/* From any thread: fn runs on the loop thread soon, once for any number of sends. */
void net_wakeup_send(struct net_wakeup *w);
void net_wakeup_free(struct net_wakeup *w); /* accepts NULL; no send may follow */

/* Readiness of a descriptor that a foreign library owns. Nothing is asked for until net_poll_want. fn may free the
 * poll; free it before the descriptor is closed, and before the loop. NULL and an error when the system refuses. */
struct net_poll;
struct net_poll *net_poll_new(struct net_loop *loop, int fd,
                              void (*fn)(void *context, bool is_readable, bool is_writable), void *context,
                              struct err *e);
void net_poll_want(struct net_poll *poll, bool want_read, bool want_write);
void net_poll_free(struct net_poll *poll); /* accepts NULL */
/* A socket that such a library connects and closes: socket(2), close-on-exec. -1 where there is none. */
int net_socket_new(int family, int type, int protocol);

/* Run work(context) off the loop, then done(context) on it, always, at the latest in net_loop_free. For disk and DNS;
 * never for NVML. */
void net_work(struct net_loop *loop, void (*work)(void *context), void (*done)(void *context), void *context);

/* ---- limits: one table, a metric each (`..._limit_hits_total{limit="name"}`) ---- */

/* X(id, name, default, help). Times in ms, sizes in bytes. grpc-http2.md section 4 has the reason for each. */
#define NET_LIMITS(X)                                                                                                  \
    X(CONNECTIONS, "connections", 12000, "open connections")                                                           \
    X(CONNECTIONS_PER_IP, "connections_per_ip", 4000, "open connections from one address")                             \
    X(HANDSHAKE_MS, "handshake_ms", 5000, "TLS handshake, absolute")                                                   \
    X(PREFACE_MS, "preface_ms", 5000, "first bytes: HTTP/2 preface and SETTINGS, absolute")                            \
    X(HEADERS_MS, "headers_ms", 10000, "one request's headers, absolute")                                              \
    X(BODY_MS, "body_ms", 10000, "one request message, absolute")                                                      \
    X(SETTINGS_ACK_MS, "settings_ack_ms", 10000, "ACK of our SETTINGS")                                                \
    X(WRITE_STALL_MS, "write_stall_ms", 20000, "no progress in writing to a peer")                                     \
    X(KEEPALIVE_MS, "keepalive_ms", 60000, "silence before we ping")                                                   \
    X(KEEPALIVE_TIMEOUT_MS, "keepalive_timeout_ms", 20000, "ACK of that ping")                                         \
    X(CONNECTION_AGE_MS, "connection_age_ms", 1800000, "age at which a connection is drained, +-10 %; 0 = never")      \
    X(CONNECTION_AGE_GRACE_MS, "connection_age_grace_ms", 30000, "time for open calls after that")                     \
    X(IDLE_HTTP1_MS, "idle_http1_ms", 60000, "HTTP/1.1 keep-alive without a request")                                  \
    X(OUTPUT_BYTES, "output_bytes", 1048576, "unsent output of one connection")                                        \
    X(OUTPUT_BYTES_ALL, "output_bytes_all", 67108864, "unsent output of all connections; as much of waiting answers")  \
    X(STREAM_OUTPUT_BYTES, "stream_output_bytes", 65536, "unsent messages of one stream, beyond one of any size")      \
    X(RECEIVE_BYTES, "receive_bytes", 4194304, "request bytes held for one connection")                                \
    X(RECEIVE_BYTES_ALL, "receive_bytes_all", 67108864, "request bytes held for all connections")                      \
    X(STREAMS, "streams", 1000, "concurrent streams of one connection")                                                \
    X(STREAMS_ALL, "streams_all", 50000, "concurrent streams of all connections")                                      \
    X(MESSAGE_BYTES, "message_bytes", 65536, "one request message")                                                    \
    X(HEADER_LIST_BYTES, "header_list_bytes", 16384, "headers of one request, as HPACK counts them")                   \
    X(HTTP1_HEADER_BYTES, "http1_header_bytes", 8192, "headers of one HTTP/1.1 request")                               \
    X(PING_INTERVAL_MS, "ping_interval_ms", 10000, "pings that come sooner are strikes")                               \
    X(PING_STRIKES, "ping_strikes", 2, "strikes before too_many_pings")                                                \
    X(GLITCHES_PER_S, "glitches_per_s", 100, "invalid, empty or unknown frames, and refused requests, a second")       \
    X(RESETS_PER_S, "resets_per_s", 33, "stream resets a second, after a burst of as many as streams")                 \
    X(FRAMES_PER_TURN, "frames_per_turn", 2000, "frames of one connection handled in one turn")                        \
    X(READ_BYTES_PER_TURN, "read_bytes_per_turn", 65536, "bytes read from one connection in one turn, at most 64 kB")  \
    X(HANDSHAKES_PER_TURN, "handshakes_per_turn", 16, "TLS handshake steps of all connections in one turn")            \
    X(REQUESTS_PER_TURN, "requests_per_turn", 8, "GET and HEAD requests of one connection answered in one turn")       \
    X(LINGER_MS, "linger_ms", 2000, "wait for the peer's end after our last byte")

enum net_limit {
#define X(id, name, value, help) NET_LIMIT_##id,
    NET_LIMITS(X)
#undef X
        NET_LIMIT_COUNT
};
/* What one connection may hold of each kind even where others hold all of receive_bytes_all, output_bytes_all or
 * streams_all: a peer with many connections must not keep probes and small calls of others from being served. */
enum { NET_OWN_BYTES = 4096, NET_OWN_STREAMS = 8 };
struct net_limits {
    int64_t values[NET_LIMIT_COUNT];
};
extern const struct net_limits net_limits_default;
const char *net_limit_name(enum net_limit limit);
/* Count that a limit was hit. */
void net_limit_hit(struct net_loop *loop, enum net_limit limit);

/* ---- TLS ---- */

struct net_tls;
struct net_tls_files {
    const char *cert, *key; /* PEM; server: required; client: the pair or neither */
    const char *ca;         /* server: demand client certificates signed by it; client: NULL = the system's */
    bool is_insecure;       /* client: do not verify */
};
/* Read files now; watch them every 10 s and use new ones for new connections; keep the old ones, with an error counted
 * and shown, when the new ones are unfit. TLS >= 1.2. */
struct net_tls *net_tls_server_new(struct net_loop *loop, const struct net_tls_files *files, struct err *e);
struct net_tls *net_tls_client_new(struct net_loop *loop, const struct net_tls_files *files, struct err *e);
/* Look at the files now (SIGHUP). */
void net_tls_reload(struct net_tls *tls);
/* Call fn after each reload that took new files (error NULL) or refused them (error set, the old ones stay). Libraries
 * do not log: this is where the program does. */
void net_tls_on_reload(struct net_tls *tls, void (*fn)(void *context, const struct err *error), void *context);
/* Why the newest files are not in use, or "" when they are. Valid until the next turn. */
const char *net_tls_error(const struct net_tls *tls);
void net_tls_free(struct net_tls *tls); /* accepts NULL; connections keep what they need */

/* ---- certificates of our own, for the command that makes them; P-256, SHA-256 ---- */

enum { NET_PEM_BYTES_MAX = 64 << 10 };
/* A certificate and its key as PEM texts; empty ones are not there. */
struct net_pem {
    struct buf cert, key;
};
void net_pem_init(struct net_pem *pem);
void net_pem_fini(struct net_pem *pem); /* the key is overwritten first */

struct net_issue {
    const char *common_name;  /* 1 to 64 bytes, for people: nothing verifies it */
    const char *const *names; /* DNS names and IP addresses; an authority has none */
    size_t n_names;
    int64_t from_s, until_s; /* seconds since 1970; it begins a little earlier, for clocks that are behind */
};
/* Are the names such as a certificate may carry? 0, or -1 and INVALID_ARGUMENT naming the first that is not. */
int net_issue_check(const struct net_issue *issue, struct err *e);
/* A certificate that signs itself and end certificates, in place of `authority`, whose key is kept where there is one:
 * who trusts the former certificate goes on trusting what the new one signs. -1: `authority` is as it was; a key that
 * cannot be read is never replaced (FAILED_PRECONDITION). */
int net_issue_authority(const struct net_issue *issue, struct net_pem *authority, struct err *e);
/* A new key and its certificate for servers and clients, signed by the authority, in place of *ret. */
int net_issue_certificate(const struct net_issue *issue, const struct net_pem *authority, struct net_pem *ret,
                          struct err *e);

struct net_cert_wish {
    const char *const *names;
    size_t n_names;
    int64_t now_s, until_s;
};
/* 0: the key belongs to the certificate, one of `trusted` signed it, it is valid now and until then, for servers and
 * clients, and has every name. -1: FAILED_PRECONDITION with what it lacks. */
int net_cert_check(const struct net_pem *pem, const struct buf *trusted, const struct net_cert_wish *wish,
                   struct err *e);
/* The same of an authority and its own key. */
int net_authority_check(const struct net_pem *authority, int64_t now_s, int64_t until_s, struct err *e);
/* When the first certificate ends, seconds since 1970; 0: there is none. */
int64_t net_cert_until_s(const struct buf *pem);
/* In place of *ret (which may be `others`): the authority, then others that have not ended; four at most. -1: there is
 * no authority. */
int net_bundle_join(const struct buf *authority, const struct buf *others, int64_t now_s, struct buf *ret);

/* ---- connections and protocols ---- */

struct net_conn;

/* How bytes are understood. A session is one connection's state, made by open. Any callback may end the connection.
 * A protocol must outlive its connections. */
struct net_protocol {
    const char *name;
    const char *alpn;                                    /* "h2", "http/1.1" */
    void *context;                                       /* passed to open */
    void *(*open)(void *context, struct net_conn *conn); /* NULL refuses: the connection is aborted */
    /* Bytes from the peer; none after net_conn_call_again. Returns 0, or -1 to close once pending output is sent. */
    int (*receive)(void *session, const uint8_t *bytes, size_t len);
    /* Pending output had reached half of the ceiling, from where on nothing is read, and is now below (optional). */
    void (*writable)(void *session);
    /* Finish what is open, take nothing new, then net_conn_close (optional: default is that at once). */
    void (*drain)(void *session);
    /* The connection is over, whoever ended it: free the session. Last call. Comes at the end of a turn, never from
     * inside net_conn_close or net_conn_abort; conn may not be used in it but for net_conn_end_reason. */
    void (*close)(void *session);
    /* The peer has sent its last byte (optional: default is net_conn_close). receive is not called again. */
    void (*ended)(void *session);
};

/* Queue bytes; they go out at the end of the turn in one write. -1 when nothing was queued: the connection's output
 * ceiling is hit (it is then closed as stalled by the caller or by its write deadline), the connection is closing, or
 * the ceiling for all connections is hit, which ends first those that have taken nothing for a second, then this one.
 */
int net_conn_send(struct net_conn *conn, const void *bytes, size_t len);
size_t net_conn_unsent_bytes(const struct net_conn *conn);
/* Close once pending output is sent (absolute limit: write stall). */
void net_conn_close(struct net_conn *conn);
/* Close now (the session's `close` follows at the end of the turn). Of a dial: `failed` is not called. */
void net_conn_abort(struct net_conn *conn);
/* Call receive with no bytes in the next turn, and read nothing from the peer before: for a session that holds more
 * input than it handles in one turn. While output stands at half of its ceiling the call waits, as reading does. */
void net_conn_call_again(struct net_conn *conn);
struct net_loop *net_conn_loop(const struct net_conn *conn);
const struct net_limits *net_conn_limits(const struct net_conn *conn);
const char *net_conn_peer(const struct net_conn *conn); /* "10.0.0.7:41234", "unix" */
bool net_conn_is_tls(const struct net_conn *conn);
/* What the network or TLS said when the connection was lost ("Connection reset by peer", "tlsv13 alert certificate
 * required"); "" while it is not, and for any other end. Static. */
const char *net_conn_end_reason(const struct net_conn *conn);
/* The session got through its first phase (preface and SETTINGS, or the first request): the preface deadline is off. */
void net_conn_established(struct net_conn *conn);
/* Has the session something open (calls, a request)? Idle connections are drained first and closed at once. */
void net_conn_set_busy(struct net_conn *conn, bool is_busy);

/* ---- listening ---- */

struct net_listener;
struct net_listen_config {
    const char *address;              /* "127.0.0.1:6000", "[::]:6000", ":6000" (both families), "unix:/path" */
    struct net_tls *tls;              /* NULL = plaintext */
    const struct net_protocol *h2;    /* NULL = not spoken here */
    const struct net_protocol *http1; /* NULL = not spoken here */
    const struct net_limits *limits;  /* NULL = defaults; must outlive the listener */
};
struct net_listener *net_listen(struct net_loop *loop, const struct net_listen_config *config, struct err *e);
/* The bound address, with the port that the system chose for port 0. */
const char *net_listener_address(const struct net_listener *listener);
int net_listener_port(const struct net_listener *listener); /* 0 for unix */
/* Take no more connections and drain those there are; done(context) when the last is gone or after grace. */
void net_listener_drain(struct net_listener *listener, int64_t grace_ns, void (*done)(void *context), void *context);
/* Aborts what is open; its sessions are closed when this returns (but for the one whose callback calls it). Accepts
 * NULL. */
void net_listener_free(struct net_listener *listener);

/* ---- dialling ---- */

struct net_connect_config {
    const char *address;     /* "host:port" (resolved off the loop), "unix:/path" */
    struct net_tls *tls;     /* NULL = plaintext */
    const char *server_name; /* SNI and verified name; NULL = the host part */
    const struct net_protocol *protocol;
    const struct net_limits *limits;
    int64_t timeout_ns; /* for resolving, connecting and the handshake together */
    /* No session was opened: not reached, refused, not trusted, too late. The connection is gone. Once, and never from
     * inside net_connect; not after net_conn_abort. */
    void (*failed)(void *context, const struct err *e);
    void *context;
};
/* The connection, or NULL and an error for a malformed address. protocol->open is called once connected. */
struct net_conn *net_connect(struct net_loop *loop, const struct net_connect_config *config, struct err *e);

/* All addresses of "host:port", as texts that net_connect takes, looked up off the loop. done comes once, never from
 * inside; error is NULL where there is an answer, and the texts are valid during the call. */
struct net_lookup;
struct net_lookup *net_lookup_start(struct net_loop *loop, const char *address,
                                    void (*done)(void *context, const char *const *addresses, size_t n,
                                                 const struct err *error),
                                    void *context);
void net_lookup_cancel(struct net_lookup *l); /* done will not come; not after it. Accepts NULL */

/* Split "host:port", "[v6]:port", ":port". Returns 0, or -1 and an error that shows the forms allowed. */
int net_split_address(const char *address, char host[256], int *ret_port, struct err *e);

/* ---- GET and HEAD handlers, shared by HTTP/1.1 and HTTP/2 ---- */

struct net_get_request {
    struct str path;                                /* decoded, without the query */
    struct str query;                               /* raw, without '?'; empty when none */
    struct str accept, accept_encoding, user_agent; /* "" when absent */
    bool is_head;
};
struct net_get_response {
    int status;                   /* 200 unless set */
    const char *content_type;     /* static text */
    const char *content_encoding; /* static text or NULL */
    struct buf body;              /* initialised, with a ceiling; dropped for HEAD after its length was taken */
    char extra[256];              /* further header lines "name: value\r\n" or "" */
};
struct net_gets;
struct net_gets *net_gets_new(void);
void net_gets_free(struct net_gets *gets);
/* Undo the percent escapes of a request's path, in place. 0, or -1 for a broken escape and for a control character. */
int net_gets_decode_path(char *path, size_t *len);
/* path is exact, or a prefix when it ends in '/'. The longest match wins. */
void net_gets_add(struct net_gets *gets, const char *path,
                  void (*handler)(void *context, const struct net_get_request *request,
                                  struct net_get_response *response),
                  void *context);
/* Fill *response (the caller does buf_fini(&response->body)); 404 with a list of what there is when nothing matches,
 * 500 when the handler passed the body's ceiling. "/" alone is exact. */
void net_gets_answer(const struct net_gets *gets, const struct net_get_request *request,
                     struct net_get_response *response);

#endif
