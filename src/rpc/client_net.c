/* The client on net: dialling, bytes to and from the session core, one timer for deadlines, back-off and keepalive. */
#include "rpc/client.h"

#define DIAL_TIMEOUT_NS (20 * NS_PER_S) /* gRPC's minimum connect timeout */
#define STEP_NS_MIN     (5 * NS_PER_MS) /* precision of deadlines */

struct client_conn {
    struct rpc_client *client;
    struct net_conn *conn;
    struct rpc_client_session *session;
    bool is_waking, is_receiving;
};

/* The last of its users: memory goes once no connection and no frame of ours is left. */
static void free_if_unused(struct rpc_client *client)
{
    if (!client->is_freed || client->n_conns > 0 || client->depth > 0)
        return;
    net_defer_cancel(client->loop, client);
    rpc_client_core_fini(client);
    free(client);
}

/* ---- bytes ---- */

static void flush(struct client_conn *c)
{
    size_t room = (size_t)net_conn_limits(c->conn)->values[NET_LIMIT_OUTPUT_BYTES] / 2, n = 0;
    const uint8_t *bytes = NULL;
    while (net_conn_unsent_bytes(c->conn) < room && (n = rpc_client_session_pull(c->session, &bytes)) > 0)
        if (net_conn_send(c->conn, bytes, n) < 0) {
            net_conn_abort(c->conn); /* a frame is missing now */
            return;
        }
    if (c->session->h2.is_dead)
        net_conn_abort(c->conn);
    else if (rpc_client_session_is_done(c->session))
        net_conn_close(c->conn);
}

static void flush_deferred(void *context)
{
    struct client_conn *c = (struct client_conn *)context;
    c->is_waking = false;
    flush(c);
}

static void wake_conn(void *context)
{
    struct client_conn *c = (struct client_conn *)context;
    if (c->is_waking || c->is_receiving)
        return;
    c->is_waking = true;
    net_defer(c->client->loop, flush_deferred, c);
}

static int receive(void *session, const uint8_t *bytes, size_t len)
{
    struct client_conn *c = (struct client_conn *)session;
    struct rpc_client *client = c->client;
    client->depth++;
    c->is_receiving = true;
    int rv = rpc_client_session_receive(c->session, bytes, len, net_now_ns(client->loop));
    c->is_receiving = false;
    client->depth--;
    flush(c);
    return rv; /* the client stays until this connection's close */
}

static void again(void *context)
{
    net_conn_call_again(((struct client_conn *)context)->conn);
}

/* ---- net's protocol ---- */

static void limit_hit(void *context, enum net_limit limit)
{
    net_limit_hit(((struct client_conn *)context)->client->loop, limit);
}

static void established(void *context)
{
    struct client_conn *c = (struct client_conn *)context;
    net_conn_established(c->conn);
    rpc_client_ready(c->session);
}

static void *open_session(void *context, struct net_conn *conn)
{
    struct rpc_client *client = (struct rpc_client *)context;
    struct client_conn *c = mem_new(struct client_conn);
    c->client = client;
    c->conn = conn;
    struct rpc_env env = {.context = c,
                          .limits = &net_limits_default,
                          .peer = net_conn_peer(conn),
                          .wake = wake_conn,
                          .again = again,
                          .limit_hit = limit_hit,
                          .established = established};
    c->session = rpc_client_session_new(client, &env, net_now_ns(client->loop));
    c->session->conn = conn;
    client->dialling = NULL;
    client->n_conns++;
    net_conn_set_busy(conn, true);
    flush(c);
    client->io->wake(client); /* keepalive begins */
    return c;
}

static void writable(void *session)
{
    flush((struct client_conn *)session);
}

static void close_session(void *session)
{
    struct client_conn *c = (struct client_conn *)session;
    struct rpc_client *client = c->client;
    c->is_waking = true; /* nothing is moved any more */
    net_defer_cancel(client->loop, c);
    rpc_client_session_free(c->session, net_conn_end_reason(c->conn));
    free(c);
    client->n_conns--;
    free_if_unused(client);
}

/* ---- dialling ---- */

static void dial_failed(void *context, const struct err *e)
{
    struct rpc_client *client = (struct rpc_client *)context;
    client->dialling = NULL;
    rpc_client_dial_failed(client, e);
}

static void dial(struct rpc_client *client)
{
    struct net_connect_config config = {.address = client->address,
                                        .tls = client->tls,
                                        .server_name = client->server_name,
                                        .protocol = &client->protocol,
                                        .limits = &net_limits_default,
                                        .timeout_ns = DIAL_TIMEOUT_NS,
                                        .failed = dial_failed,
                                        .context = client};
    struct err e;
    client->dialling = net_connect(client->loop, &config, &e);
    if (!client->dialling) /* the address was looked at in rpc_client_new */
        rpc_client_dial_failed(client, &e);
}

/* ---- turns and time ---- */

static int64_t now_of(const struct rpc_client *client)
{
    return net_now_ns(client->loop);
}

static void set_timer(struct rpc_client *client, int64_t at_ns)
{
    int64_t now_ns = net_now_ns(client->loop), delay_ns = at_ns - now_ns;
    if (at_ns == client->timer_at_ns)
        return;
    client->timer_at_ns = at_ns;
    if (at_ns == INT64_MAX)
        net_timer_stop(client->timer);
    else
        net_timer_start(client->timer, delay_ns < STEP_NS_MIN ? STEP_NS_MIN : delay_ns, 0);
}

static void turn(void *context)
{
    struct rpc_client *client = (struct rpc_client *)context;
    client->is_waking = false;
    client->depth++;
    if (!client->is_freed)
        set_timer(client, rpc_client_tick(client, net_now_ns(client->loop)));
    rpc_client_reap(client);
    client->depth--;
    free_if_unused(client);
}

static void timer_fired(void *context)
{
    struct rpc_client *client = (struct rpc_client *)context;
    client->timer_at_ns = INT64_MAX;
    turn(client);
}

static void wake(struct rpc_client *client)
{
    if (client->is_waking || client->is_freed)
        return;
    client->is_waking = true;
    net_defer(client->loop, turn, client);
}

static const struct rpc_client_io net_io = {.dial = dial, .wake = wake, .now_ns = now_of};

/* ---- public ---- */

struct rpc_client *rpc_client_new(const struct rpc_client_config *config, struct err *e)
{
    char host[256];
    int port;
    if (strncmp(config->address, "unix:", 5) != 0 && net_split_address(config->address, host, &port, e) < 0)
        return NULL;
    struct rpc_client *client = mem_new(struct rpc_client);
    rpc_client_core_init(client, config, &net_io);
    client->loop = config->loop;
    client->tls = config->tls;
    client->protocol = (struct net_protocol){.name = "h2",
                                             .alpn = "h2",
                                             .context = client,
                                             .open = open_session,
                                             .receive = receive,
                                             .writable = writable,
                                             .close = close_session};
    client->timer = net_timer_new(client->loop, timer_fired, client);
    client->timer_at_ns = INT64_MAX;
    return client;
}

void rpc_client_free(struct rpc_client *client)
{
    if (!client)
        return;
    rpc_client_cancel_all(client);
    client->is_freed = true;
    rpc_client_reap(client);
    if (client->dialling)
        net_conn_abort(client->dialling);
    client->dialling = NULL;
    for (struct rpc_link *link = client->sessions.next; link != &client->sessions; link = link->next)
        net_conn_abort(CONTAINER_OF(link, struct rpc_client_session, link)->conn);
    net_timer_free(client->timer);
    client->timer = NULL;
    free_if_unused(client);
}
