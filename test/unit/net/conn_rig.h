/* Connections without TLS on loopback for tests: a listener whose sessions do what the test's manner says. */
#ifndef TEST_NET_CONN_RIG_H
#define TEST_NET_CONN_RIG_H

#include "net/peer.h"

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

struct world;

struct session {
    struct world *w;
    struct net_conn *conn;
    const char *name;
    struct buf got;
    int n_writable, n_empty; /* n_empty: receive was called without bytes */
    bool is_drained;
};

enum manner {
    ECHO,
    SILENT,
    REFUSE,
    ABORT_ON_RECEIVE,
    CLOSE_ON_RECEIVE,
    FREE_LISTENER_ON_RECEIVE,
    DRAIN_AND_FREE_ON_RECEIVE,
    CLOSE_ON_DRAIN,
    CALL_AGAIN,
    FREE_LISTENER_ON_CLOSE
};

struct world {
    struct metrics *metrics;
    struct net_loop *loop;
    struct net_listener *listener;
    struct net_limits limits;
    struct net_protocol h2, http1;
    enum manner manner;
    struct session *last;
    int n_open, n_closed;
    bool is_drained;
    struct buf got;
};

static inline void *open_session(void *context, struct net_conn *conn, const char *name)
{
    struct world *w = (struct world *)context;
    if (w->manner == REFUSE)
        return NULL;
    struct session *s = mem_new(struct session);
    s->w = w;
    s->conn = conn;
    s->name = name;
    buf_init(&s->got, 1 << 20);
    w->last = s;
    w->n_open++;
    return s;
}

static inline void *open_h2(void *context, struct net_conn *conn)
{
    return open_session(context, conn, "h2");
}

static inline void *open_http1(void *context, struct net_conn *conn)
{
    return open_session(context, conn, "http1");
}

static inline int receive(void *context, const uint8_t *bytes, size_t len)
{
    struct session *s = (struct session *)context;
    struct world *w = s->w;
    (void)buf_append(&s->got, bytes, len);
    s->n_empty += len == 0;
    switch (w->manner) {
    case ECHO:
        return net_conn_send(s->conn, bytes, len);
    case ABORT_ON_RECEIVE:
        net_conn_abort(s->conn);
        s->n_writable = 0; /* the session is still there */
        return 0;
    case CLOSE_ON_RECEIVE:
    case FREE_LISTENER_ON_CLOSE:
        (void)net_conn_send(s->conn, "bye", 3);
        return -1;
    case DRAIN_AND_FREE_ON_RECEIVE:
        net_listener_drain(w->listener, NS_PER_S, NULL, NULL);
        net_listener_free(w->listener);
        w->listener = NULL;
        s->n_writable = 0;
        return 0;
    case FREE_LISTENER_ON_RECEIVE:
        net_listener_free(w->listener);
        w->listener = NULL;
        s->n_writable = 0;
        return 0;
    case CALL_AGAIN:
        net_conn_call_again(s->conn);
        return 0;
    case SILENT:
    case REFUSE:
    case CLOSE_ON_DRAIN:
        break;
    }
    return 0;
}

static inline void writable(void *context)
{
    ((struct session *)context)->n_writable++;
}

static inline void drain(void *context)
{
    struct session *s = (struct session *)context;
    s->is_drained = true;
    if (s->w->manner == CLOSE_ON_DRAIN) {
        (void)net_conn_send(s->conn, "goaway", 6);
        net_conn_close(s->conn);
    }
}

static inline void close_session(void *context)
{
    struct session *s = (struct session *)context;
    s->w->n_closed++;
    if (s->w->last == s)
        s->w->last = NULL;
    if (s->w->manner == FREE_LISTENER_ON_CLOSE) {
        struct net_listener *listener = s->w->listener;
        s->w->listener = NULL; /* it closes other sessions, which come here too */
        net_listener_free(listener);
    }
    buf_fini(&s->got);
    free(s);
}

static inline void listen_at(struct world *w, const char *address)
{
    struct err e = {0};
    struct net_listen_config config = {.address = address, .h2 = &w->h2, .http1 = &w->http1, .limits = &w->limits};
    w->listener = net_listen(w->loop, &config, &e);
    if (!w->listener)
        print_error("%s\n", e.text);
    assert_non_null(w->listener);
}

static inline int set_up(void **state)
{
    struct world *w = mem_new(struct world);
    struct err e;
    w->metrics = metrics_new();
    w->loop = net_loop_new(w->metrics, &e);
    w->limits = net_limits_default;
    w->h2 = (struct net_protocol){"h2", "h2", w, open_h2, receive, writable, drain, close_session, NULL};
    w->http1 =
        (struct net_protocol){"http/1.1", "http/1.1", w, open_http1, receive, writable, drain, close_session, NULL};
    buf_init(&w->got, 64 << 20);
    listen_at(w, "127.0.0.1:0");
    *state = w;
    return 0;
}

static inline int tear_down(void **state)
{
    struct world *w = (struct world *)*state;
    net_listener_free(w->listener);
    assert_int_equal(w->n_open, w->n_closed);
    net_loop_free(w->loop);
    assert_double_same(metric_of(w->metrics, "keda_gpu_scaler_connections", "in"), 0);
    metrics_free(w->metrics);
    buf_fini(&w->got);
    free(w);
    return 0;
}

static inline int connect_to(const struct world *w)
{
    return peer_connect(net_listener_port(w->listener));
}

/* A peer that speaks first and reads nothing: all output beyond the kernel's buffers stays with us. */
static inline int open_stalled(struct world *w)
{
    int fd = connect_to(w);
    w->manner = SILENT;
    peer_say(fd, "x");
    turn_until(w->loop, w->last != NULL);
    net_conn_established(w->last->conn);
    return fd;
}

/* Send until the kernel takes no more and the ceiling is reached exactly. Returns how much that was. */
static inline size_t fill(struct world *w)
{
    enum { CEILING = 1 << 20 };
    char *block = (char *)mem_new_array(CEILING, 1);
    size_t sent = 0, room;
    while ((room = CEILING - net_conn_unsent_bytes(w->last->conn)) > 0) {
        assert_int_equal(net_conn_send(w->last->conn, block, room), 0);
        sent += room;
        turn_some(w->loop);
    }
    w->last->n_writable = 0;
    free(block);
    return sent;
}

#endif
