/* The life of a connection: states, deadlines, its session, output accounting and its end. How bytes cross the socket
 * is conn_io.c's business. */
#include "net/conn.h"

#include <assert.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct net_conn **list_of(struct net_conn *conn)
{
    return conn->listener ? &conn->listener->conns : &conn->loop->clients;
}

static void link_conn(struct net_conn *conn)
{
    struct net_conn **first = list_of(conn);
    conn->prev = NULL;
    conn->next = *first;
    if (*first)
        (*first)->prev = conn;
    *first = conn;
}

static void unlink_conn(struct net_conn *conn)
{
    *(conn->prev ? &conn->prev->next : list_of(conn)) = conn->next;
    if (conn->next)
        conn->next->prev = conn->prev;
}

void net_conn_move_to_loop(struct net_conn *conn)
{
    unlink_conn(conn);
    conn->listener = NULL;
    link_conn(conn);
}

/* ---- deadlines ---- */

static int64_t limit_ns(const struct net_conn *conn, enum net_limit limit)
{
    return conn->limits->values[limit] * NS_PER_MS;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* Lazy: a timer that is too early stays, fires, and is set anew. So deadlines that move with traffic cost nothing. */
void net_conn_arm(struct net_conn *conn)
{
    int64_t at = earlier(earlier(conn->phase_at_ns, conn->stall_at_ns), conn->age_at_ns);
    if (at == 0 || conn->state == CONN_DEAD)
        net_timer_stop(&conn->deadline);
    else if (!conn->deadline.place || conn->deadline.at_ns > at)
        net_timer_start(&conn->deadline, at - net_now_ns(conn->loop), 0);
}

void net_conn_set_phase(struct net_conn *conn, enum net_limit limit)
{
    conn->phase_at_ns = net_now_ns(conn->loop) + limit_ns(conn, limit);
    conn->phase_limit = limit;
    net_conn_arm(conn);
}

static void phase_passed(struct net_conn *conn)
{
    struct err e;
    if (conn->dial) {
        (void)err_set(&e, ERR_DEADLINE_EXCEEDED, "no answer within the time limit");
        net_dial_error(conn, &e);
    } else {
        net_limit_hit(conn->loop, conn->phase_limit);
    }
    if (conn->state == CONN_HANDSHAKE && conn->is_inbound)
        metric_add(conn->loop->series.server_handshake_failures, 1);
    net_conn_end(conn, NET_END_LIMIT);
}

static void age_passed(struct net_conn *conn)
{
    if (conn->is_draining) {
        net_limit_hit(conn->loop, NET_LIMIT_CONNECTION_AGE_GRACE_MS);
        net_conn_end(conn, NET_END_LIMIT);
        return;
    }
    net_limit_hit(conn->loop, NET_LIMIT_CONNECTION_AGE_MS);
    net_conn_drain(conn);
    if (conn->state == CONN_OPEN)
        conn->age_at_ns = net_now_ns(conn->loop) + limit_ns(conn, NET_LIMIT_CONNECTION_AGE_GRACE_MS);
}

static void deadline_passed(void *context)
{
    struct net_conn *conn = (struct net_conn *)context;
    int64_t now = net_now_ns(conn->loop);
    if (conn->phase_at_ns && conn->phase_at_ns <= now) {
        phase_passed(conn);
    } else if (conn->stall_at_ns && conn->stall_at_ns <= now) {
        net_limit_hit(conn->loop, NET_LIMIT_WRITE_STALL_MS);
        net_conn_end(conn, NET_END_LIMIT);
    } else if (conn->age_at_ns && conn->age_at_ns <= now) {
        age_passed(conn);
    }
    net_conn_arm(conn);
}

/* ---- birth and session ---- */

struct net_conn *net_conn_new(struct net_loop *loop, struct net_listener *listener, const struct net_limits *limits)
{
    struct net_conn *conn = mem_new(struct net_conn);
    conn->loop = loop;
    conn->listener = listener;
    conn->is_inbound = listener != NULL;
    conn->limits = limits ? limits : &net_limits_default;
    conn->fd = -1;
    conn->state = CONN_DIALLING;
    net_timer_setup(&conn->deadline, loop, deadline_passed, conn);
    buf_init(&conn->out, SIZE_MAX / 2); /* net_conn_send keeps the ceiling: sent bytes at the front do not count */
    link_conn(conn);
    if (listener) {
        listener->n_conns++;
        loop->n_inbound++;
    }
    metric_add(conn->is_inbound ? loop->series.inbound : loop->series.outbound, 1);
    return conn;
}

void net_conn_open(struct net_conn *conn, const struct net_protocol *protocol)
{
    struct net_loop *loop = conn->loop;
    conn->state = CONN_OPEN;
    conn->protocol = protocol;
    if (conn->dial) {
        conn->phase_at_ns = 0;
        net_dial_done(conn);
    }
    if (conn->is_inbound) {
        double jitter = 0.9 + 0.2 * net_random(loop);
        int64_t age_ns = (int64_t)((double)limit_ns(conn, NET_LIMIT_CONNECTION_AGE_MS) * jitter);
        conn->age_at_ns = age_ns > 0 ? net_now_ns(loop) + age_ns : 0;
    }
    conn->n_calls++;
    conn->session = protocol->open(protocol->context, conn);
    conn->n_calls--;
    if (!conn->session)
        net_conn_end(conn, NET_END_LOCAL);
    net_conn_update_poll(conn);
    net_conn_arm(conn);
}

void net_conn_close_session(struct net_conn *conn)
{
    void *session = conn->session;
    conn->session = NULL;
    if (session)
        conn->protocol->close(session);
}

void net_conn_drain(struct net_conn *conn)
{
    if (conn->is_draining || conn->state == CONN_DEAD || conn->state == CONN_LINGER || conn->state == CONN_CLOSING)
        return;
    conn->is_draining = true;
    conn->age_at_ns = 0; /* whoever drains sets its own limit */
    if (conn->state != CONN_OPEN || !conn->protocol->drain) {
        net_conn_close(conn);
        return;
    }
    conn->n_calls++;
    conn->protocol->drain(conn->session);
    conn->n_calls--;
}

/* ---- the end ---- */

static void set_end(struct net_conn *conn, enum net_end end)
{
    if (!conn->has_end)
        conn->end = end;
    conn->has_end = true;
}

static void drop_output(struct net_conn *conn)
{
    conn->loop->unsent_bytes -= net_conn_unsent_bytes(conn);
    buf_fini(&conn->out);
    conn->out_sent = 0;
}

void net_conn_end(struct net_conn *conn, enum net_end end)
{
    if (conn->state == CONN_DEAD)
        return;
    set_end(conn, end);
    conn->state = CONN_DEAD;
    drop_output(conn);
    net_timer_stop(&conn->deadline);
    net_conn_update_poll(conn);
    vec_push(&conn->loop->dead, conn);
}

/* Closing with unread input makes the kernel send a reset, which can overtake our last bytes. */
void net_conn_linger(struct net_conn *conn, enum net_end end)
{
    if (!conn->is_inbound || conn->is_ended) {
        net_conn_end(conn, end);
        return;
    }
    set_end(conn, end);
    (void)shutdown(conn->fd, SHUT_WR);
    conn->state = CONN_LINGER;
    net_conn_set_phase(conn, NET_LIMIT_LINGER_MS);
    net_conn_update_poll(conn);
}

static void forget_ip(struct net_conn *conn)
{
    size_t *n = conn->has_ip ? (size_t *)map_get(conn->loop->per_ip, conn->ip_key, sizeof(conn->ip_key)) : NULL;
    if (n && --*n == 0)
        map_remove(conn->loop->per_ip, conn->ip_key, sizeof(conn->ip_key));
}

static void free_conn(uv_handle_t *handle)
{
    free(handle->data);
}

static void forget_lists(struct net_conn *conn)
{
    struct net_loop *loop = conn->loop;
    for (size_t i = 0; conn->is_again && i < loop->again.len; i++)
        if (loop->again.items[i] == conn)
            loop->again.items[i] = NULL;
    for (size_t i = 0; conn->is_dirty && i < loop->dirty.len; i++)
        if (loop->dirty.items[i] == conn)
            loop->dirty.items[i] = NULL;
    unlink_conn(conn);
}

static void bury(struct net_conn *conn)
{
    struct net_loop *loop = conn->loop;
    net_conn_close_session(conn);
    if (conn->dial)
        net_dial_bury(conn);
    net_timer_stop(&conn->deadline);
    forget_lists(conn);
    forget_ip(conn);
    tls_session_free(conn->tls);
    metric_add(conn->is_inbound ? loop->series.inbound : loop->series.outbound, -1);
    if (conn->is_inbound)
        loop->n_inbound--;
    metric_add(loop->series.closed[conn->end], 1);
    if (conn->listener)
        net_listener_conn_gone(conn->listener);
    if (conn->has_poll)
        uv_close((uv_handle_t *)&conn->poll, free_conn); /* conn itself is freed there */
    file_close_cleanup(&conn->fd);
    if (!conn->has_poll)
        free(conn);
}

/* Sessions' close may end further connections and free listeners, which comes back here. Connections whose session is
 * being called stay for the end of the turn. */
void net_conns_bury(struct net_loop *loop)
{
    size_t i = loop->dead.len;
    while (i > 0) {
        struct net_conn *conn = loop->dead.items[--i];
        if (conn->n_calls > 0)
            continue;
        loop->dead.items[i] = loop->dead.items[--loop->dead.len];
        bury(conn);
        i = loop->dead.len; /* the list is another one now */
    }
}

/* ---- public ---- */

static size_t half_of_output(const struct net_conn *conn)
{
    return (size_t)conn->limits->values[NET_LIMIT_OUTPUT_BYTES] / 2;
}

size_t net_conn_unsent_bytes(const struct net_conn *conn)
{
    return conn->out.len - conn->out_sent;
}

/* Sent bytes leave the front once they are the larger part: each byte is moved at most once. */
static void compact(struct net_conn *conn)
{
    if (conn->out_sent < conn->out.len / 2)
        return;
    buf_consume(&conn->out, conn->out_sent);
    conn->out_sent = 0;
}

static void end_if_stalled(struct net_conn *conn)
{
    int64_t grace_ns = limit_ns(conn, NET_LIMIT_WRITE_STALL_MS) - NS_PER_S;
    if (conn->stall_at_ns == 0 || conn->stall_at_ns - grace_ns > net_now_ns(conn->loop))
        return;
    net_limit_hit(conn->loop, NET_LIMIT_WRITE_STALL_MS);
    net_conn_end(conn, NET_END_LIMIT);
}

void net_conns_relieve(struct net_loop *loop)
{
    int64_t now = net_now_ns(loop);
    if (loop->relieved_at_ns != 0 && now - loop->relieved_at_ns < NS_PER_S / 4)
        return;
    loop->relieved_at_ns = now;
    for (struct net_listener *listener = loop->listeners; listener; listener = listener->next)
        for (struct net_conn *conn = listener->conns; conn; conn = conn->next)
            end_if_stalled(conn);
    for (struct net_conn *conn = loop->clients; conn; conn = conn->next)
        end_if_stalled(conn);
}

static bool has_room_for(struct net_conn *conn, size_t len)
{
    struct net_loop *loop = conn->loop;
    size_t unsent = net_conn_unsent_bytes(conn), ceiling = (size_t)conn->limits->values[NET_LIMIT_OUTPUT_BYTES];
    size_t ceiling_of_all = (size_t)conn->limits->values[NET_LIMIT_OUTPUT_BYTES_ALL];
    if (len > ceiling || unsent > ceiling - len) {
        net_limit_hit(loop, NET_LIMIT_OUTPUT_BYTES);
        return false;
    }
    if (loop->unsent_bytes + len <= ceiling_of_all || unsent + len <= NET_OWN_BYTES)
        return true;
    net_limit_hit(loop, NET_LIMIT_OUTPUT_BYTES_ALL);
    net_conns_relieve(loop);
    if (loop->unsent_bytes + len > ceiling_of_all)
        net_conn_end(conn, NET_END_LIMIT);
    return conn->state == CONN_OPEN;
}

int net_conn_send(struct net_conn *conn, const void *bytes, size_t len)
{
    if (conn->state != CONN_OPEN || !has_room_for(conn, len))
        return -1;
    compact(conn);
    (void)buf_append(&conn->out, bytes, len);
    conn->loop->unsent_bytes += len;
    if (net_conn_unsent_bytes(conn) >= half_of_output(conn) && !conn->is_half_full) {
        conn->is_half_full = true;
        net_conn_update_poll(conn);
    }
    if (!conn->wants_write)
        net_conn_mark_dirty(conn);
    return 0;
}

void net_conn_mark_dirty(struct net_conn *conn)
{
    if (conn->is_dirty || conn->state == CONN_DEAD)
        return;
    conn->is_dirty = true;
    vec_push(&conn->loop->dirty, conn);
}

void net_conn_close(struct net_conn *conn)
{
    if (conn->state == CONN_CLOSING || conn->state == CONN_LINGER || conn->state == CONN_DEAD)
        return;
    set_end(conn, conn->is_ended ? NET_END_PEER : NET_END_LOCAL);
    if (conn->state != CONN_OPEN) {
        net_conn_abort(conn);
        return;
    }
    conn->state = CONN_CLOSING;
    conn->age_at_ns = 0;
    net_conn_set_phase(conn, NET_LIMIT_WRITE_STALL_MS);
    net_conn_update_poll(conn);
    net_conn_mark_dirty(conn);
}

void net_conn_abort(struct net_conn *conn)
{
    if (conn->dial)
        net_dial_mute(conn);
    net_conn_end(conn, NET_END_ABORTED);
}

struct net_loop *net_conn_loop(const struct net_conn *conn)
{
    return conn->loop;
}

const struct net_limits *net_conn_limits(const struct net_conn *conn)
{
    return conn->limits;
}

const char *net_conn_peer(const struct net_conn *conn)
{
    return conn->peer;
}

bool net_conn_is_tls(const struct net_conn *conn)
{
    return conn->tls != NULL;
}

const char *net_conn_end_reason(const struct net_conn *conn)
{
    return conn->end_reason ? conn->end_reason : "";
}

void net_conn_established(struct net_conn *conn)
{
    if (conn->state == CONN_OPEN)
        conn->phase_at_ns = 0;
}

void net_conn_set_busy(struct net_conn *conn, bool is_busy)
{
    conn->is_busy = is_busy;
}
