/* The server on net's connections: bytes to and from the session core, the timer that sweeps deadlines, close. */
#include "rpc/server.h"

enum {
    SWEEP_NS_MIN = 10000000, /* precision of deadlines */
    DRAIN_STEP_NS = 50000000
};

struct server_conn {
    struct rpc_server *server;
    struct net_conn *conn;
    struct rpc_session *session;
    bool is_waking, is_receiving, is_busy;
};

/* ---- bytes ---- */

static size_t room_of(const struct net_conn *conn)
{
    return (size_t)net_conn_limits(conn)->values[NET_LIMIT_OUTPUT_BYTES] / 2;
}

/* Move output until the connection holds half of what it may: it then tells when it is below again. The rest stays in
 * the calls, under their own ceilings. */
static void move_output(struct server_conn *c)
{
    size_t room = room_of(c->conn), n = 0;
    const uint8_t *bytes = NULL;
    while (net_conn_unsent_bytes(c->conn) < room && (n = rpc_session_pull(c->session, &bytes)) > 0)
        if (net_conn_send(c->conn, bytes, n) < 0) {
            net_conn_abort(c->conn); /* a frame is missing now */
            return;
        }
}

static void flush(struct server_conn *c)
{
    move_output(c);
    bool is_busy = c->session->n_calls > 0;
    if (is_busy != c->is_busy)
        net_conn_set_busy(c->conn, is_busy);
    c->is_busy = is_busy;
    if (c->session->h2.is_dead)
        net_conn_abort(c->conn);
    else if (rpc_session_is_done(c->session))
        net_conn_close(c->conn);
}

static void flush_deferred(void *context)
{
    struct server_conn *c = (struct server_conn *)context;
    c->is_waking = false;
    flush(c);
}

static void wake(void *context)
{
    struct server_conn *c = (struct server_conn *)context;
    if (c->is_waking || c->is_receiving)
        return;
    c->is_waking = true;
    net_defer(c->server->loop, flush_deferred, c);
}

static int receive(void *session, const uint8_t *bytes, size_t len)
{
    struct server_conn *c = (struct server_conn *)session;
    c->is_receiving = true;
    int rv = rpc_session_receive(c->session, bytes, len, net_now_ns(c->server->loop));
    c->is_receiving = false;
    flush(c);
    return rv;
}

static void again(void *context)
{
    net_conn_call_again(((struct server_conn *)context)->conn);
}

/* ---- net's protocol ---- */

static void limit_hit(void *context, enum net_limit limit)
{
    struct server_conn *c = (struct server_conn *)context;
    net_limit_hit(c->server->loop, limit);
}

static void established(void *context)
{
    struct server_conn *c = (struct server_conn *)context;
    net_conn_established(c->conn);
}

static void *open_session(void *context, struct net_conn *conn)
{
    struct rpc_server *server = (struct rpc_server *)context;
    struct server_conn *c = mem_new(struct server_conn);
    c->server = server;
    c->conn = conn;
    struct rpc_env env = {.context = c,
                          .limits = net_conn_limits(conn),
                          .peer = net_conn_peer(conn),
                          .wake = wake,
                          .again = again,
                          .limit_hit = limit_hit,
                          .established = established};
    c->session = rpc_session_new(server, &env, net_now_ns(server->loop));
    flush(c); /* SETTINGS at once: clients wait for it */
    rpc_server_net_hurry(server, net_now_ns(server->loop) + NS_PER_S);
    return c;
}

static void writable(void *session)
{
    flush((struct server_conn *)session);
}

static void drain(void *session)
{
    struct server_conn *c = (struct server_conn *)session;
    rpc_session_drain(c->session, net_now_ns(c->server->loop));
    wake(c);
}

static void close_session(void *session)
{
    struct server_conn *c = (struct server_conn *)session;
    c->is_waking = true; /* `ended` handlers may still send; nothing is moved any more */
    rpc_session_free(c->session);
    net_defer_cancel(c->server->loop, c);
    free(c);
}

/* ---- the timer ---- */

static void start_timer(struct rpc_server *server, int64_t at_ns)
{
    int64_t now_ns = net_now_ns(server->loop);
    int64_t delay_ns = at_ns - now_ns < SWEEP_NS_MIN ? SWEEP_NS_MIN : at_ns - now_ns;
    server->timer_at_ns = now_ns + delay_ns;
    net_timer_start(server->timer, delay_ns, 0);
}

void rpc_server_net_hurry(struct rpc_server *server, int64_t due_ns)
{
    if (server->timer && due_ns < server->timer_at_ns)
        start_timer(server, due_ns);
}

static void tick_sessions(struct rpc_server *server, int64_t now_ns)
{
    bool is_full = now_ns - server->ticked_ns >= NS_PER_S;
    if (is_full)
        server->ticked_ns = now_ns;
    struct rpc_link *link = server->sessions.next;
    while (link != &server->sessions) {
        struct rpc_session *s = CONTAINER_OF(link, struct rpc_session, link);
        link = link->next; /* connections are closed after the turn: this one stays, and so does the next */
        if (is_full || s->drain == RPC_DRAIN_NOTICE)
            rpc_session_tick(s, now_ns);
    }
}

static void timer_fired(void *context)
{
    struct rpc_server *server = (struct rpc_server *)context;
    int64_t now_ns = net_now_ns(server->loop), next_ns = rpc_server_sweep(server, now_ns);
    if (server->n_draining > 0 || now_ns - server->ticked_ns >= NS_PER_S)
        tick_sessions(server, now_ns);
    server->timer_at_ns = INT64_MAX;
    if (rpc_list_is_empty(&server->sessions))
        return;
    int64_t usual_ns = server->n_draining > 0 ? now_ns + DRAIN_STEP_NS : server->ticked_ns + NS_PER_S;
    start_timer(server, next_ns < usual_ns ? next_ns : usual_ns);
}

void rpc_server_net_init(struct rpc_server *server)
{
    server->protocol = (struct net_protocol){.name = "h2",
                                             .alpn = "h2",
                                             .context = server,
                                             .open = open_session,
                                             .receive = receive,
                                             .writable = writable,
                                             .drain = drain,
                                             .close = close_session};
    server->timer_at_ns = INT64_MAX;
    if (server->loop)
        server->timer = net_timer_new(server->loop, timer_fired, server);
}

void rpc_server_net_fini(struct rpc_server *server)
{
    net_timer_free(server->timer);
    server->timer = NULL;
}
