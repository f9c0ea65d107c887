/* The inside of connections, listeners, dials and TLS sessions, for net's own files. */
#ifndef NET_CONN_H
#define NET_CONN_H

#include "net/loop.h"
#include "net/tls.h"

enum net_conn_state {
    CONN_DIALLING,  /* no socket yet: dial.c looks names up and connects */
    CONN_HANDSHAKE, /* TLS */
    CONN_SNIFF,     /* the first bytes decide the protocol */
    CONN_OPEN,
    CONN_CLOSING, /* sends what is pending and takes nothing */
    CONN_LINGER,  /* our end is out; waits for the peer's, lest a reset eats our last answer */
    CONN_DEAD,
};

enum { NET_PEER_MAX = 72, NET_PREFACE_BYTES = 24 };

struct net_dial;

struct net_conn {
    uv_poll_t poll;
    struct net_loop *loop;
    struct net_listener *listener; /* NULL: we dialled */
    struct net_dial *dial;         /* until the session is open */
    struct net_conn *next, *prev;  /* in the listener's or the loop's list */
    const struct net_protocol *protocol;
    void *session;
    const struct net_limits *limits;
    struct tls_session *tls;
    struct net_timer deadline; /* the earliest of the three, or earlier */
    int64_t phase_at_ns;       /* handshake, preface, closing, linger: absolute; 0 = none */
    int64_t stall_at_ns;       /* output must have moved by then */
    int64_t age_at_ns;         /* drain then; when drained for its age: abort */
    size_t stall_left_bytes;   /* how much output moves the stall deadline on */
    struct buf out;            /* out.data[out_sent..len) is unsent */
    size_t out_sent, discarded_bytes;
    int fd, events;
    enum net_conn_state state;
    enum net_end end;
    const char *end_reason;     /* of NET_END_ERROR; static, or NULL */
    enum net_limit phase_limit; /* what phase_at_ns counts as */
    bool is_inbound, has_poll, has_ip, has_end;
    bool is_dirty, is_again; /* listed in the loop */
    bool is_half_full;       /* output reached half of its ceiling: nothing is read */
    bool has_more;           /* the session holds input for the next turn: nothing is read before */
    bool is_draining, is_busy;
    bool is_ended;    /* the peer has sent its last byte */
    bool wants_write; /* the last write or handshake step waits for room */
    bool read_waits;  /* so does reading: TLS has something to answer first */
    unsigned n_calls; /* of its session that are on the stack: it must stay */
    uint8_t n_sniffed;
    uint8_t sniffed[NET_PREFACE_BYTES];
    uint8_t ip_key[16];
    char peer[NET_PEER_MAX];
};

struct net_listener {
    struct net_loop *loop;
    struct net_listener *next, *prev;
    struct net_conn *conns;
    size_t n_conns;
    uv_poll_t *poll; /* NULL once it takes no more; freed by its close */
    int fd, port;
    struct net_tls *tls;
    const struct net_protocol *h2, *http1;
    const struct net_limits *limits;
    struct net_timer pause, grace; /* accepting rests; draining ends */
    bool is_draining, is_done;
    void (*done)(void *context);
    void *context;
    char *unlink_path;              /* of a unix socket */
    struct file_stamp unlink_stamp; /* as we made it */
    char address[128];
};

/* ---- conn.c ---- */

/* A connection in the list of its listener or, with NULL, of the loop. No socket yet. */
struct net_conn *net_conn_new(struct net_loop *loop, struct net_listener *listener, const struct net_limits *limits);
/* Give it a non-blocking socket, which it owns from here on, even on failure (-1). */
int net_conn_take_fd(struct net_conn *conn, int fd);
/* Go through TLS (when tls is set) to the protocol. */
void net_conn_start(struct net_conn *conn);
/* Over: the first reason given counts. Taken apart at the end of the turn. */
void net_conn_end(struct net_conn *conn, enum net_end end);
/* Our last byte is out: wait for the peer's end, for a while. */
void net_conn_linger(struct net_conn *conn, enum net_end end);
/* Call the session's drain, once. */
void net_conn_drain(struct net_conn *conn);
void net_conns_flush(struct net_loop *loop);
void net_conns_bury(struct net_loop *loop);
void net_conns_read_again(struct net_loop *loop);
/* Output of all is at its ceiling: end those that have stalled for a second. */
void net_conns_relieve(struct net_loop *loop);

/* A listener goes but a connection whose session is being called cannot yet: keep that in the loop's list. */
void net_conn_move_to_loop(struct net_conn *conn);

/* Between conn.c and conn_io.c. */
void net_conn_set_phase(struct net_conn *conn, enum net_limit limit);
void net_conn_arm(struct net_conn *conn);
/* Watch the socket for what the state waits for. */
void net_conn_update_poll(struct net_conn *conn);
/* Have flush look at it at the end of the turn. */
void net_conn_mark_dirty(struct net_conn *conn);
/* Input waits that readiness will not announce, here or in the session: go on in the next turn. */
void net_conn_mark_again(struct net_conn *conn);
void net_conn_open(struct net_conn *conn, const struct net_protocol *protocol);
/* The session ends; the connection may go on to send and linger. */
void net_conn_close_session(struct net_conn *conn);

/* ---- listener.c ---- */
/* One of its connections is no more. */
void net_listener_conn_gone(struct net_listener *listener);
/* TCP_NODELAY and TCP_USER_TIMEOUT; nothing for unix sockets. */
void net_set_tcp_options(int fd, int family, const struct net_limits *limits);

/* ---- dial.c ---- */
/* Errors on the way to the session: keeps the first. */
void net_dial_error(struct net_conn *conn, const struct err *e);
/* The session is open. */
void net_dial_done(struct net_conn *conn);
/* The connection ended before: tell the owner and free. */
void net_dial_bury(struct net_conn *conn);
/* Its TLS session (NULL = plaintext). -1 when it cannot be made, with the error kept. */
int net_dial_start_tls(struct net_conn *conn, struct tls_session **ret_session);
const struct net_protocol *net_dial_protocol(const struct net_conn *conn);
/* The owner no longer wants to hear of it. */
void net_dial_mute(struct net_conn *conn);

/* ---- address.c ---- */
struct sockaddr_storage;
struct sockaddr_un;
/* The path after "unix:", or NULL. */
const char *net_unix_path(const char *address);
int net_fill_unix(const char *path, struct sockaddr_un *ret_address, struct err *e);
/* "10.0.0.7:41234", "[::1]:80", "unix"; IPv4-mapped addresses as IPv4. */
void net_format_sockaddr(const struct sockaddr_storage *address, char *out, size_t size);

#endif
