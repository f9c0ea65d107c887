/* Bytes across a connection's socket, plain or TLS: the handshake, which protocol the first bytes speak, reading within
 * a turn's budget, writing at its end, and the orderly close. */
#include "net/conn.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

enum { STALL_STEP_BYTES = 16384, DISCARD_MAX_BYTES = 1 << 20 };

static const uint8_t preface[NET_PREFACE_BYTES + 1] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"; /* RFC 9113, 3.4 */

static void lost(struct net_conn *conn, int errno_value)
{
    struct err e;
    if (conn->dial) {
        (void)err_set_errno(&e, ERR_UNAVAILABLE, errno_value, "connection lost");
        net_dial_error(conn, &e);
    }
    const char *said = conn->tls ? tls_reason(conn->tls) : NULL;
    if (errno_value != 0 && !conn->end_reason)
        conn->end_reason = said ? said : strerrordesc_np(errno_value);
    net_conn_end(conn, errno_value == 0 ? NET_END_PEER : NET_END_ERROR);
}

/* ---- reading and writing, whatever the transport ---- */

static enum tls_result plain_result(ssize_t n, enum tls_result when_blocked)
{
    if (n > 0)
        return TLS_OK;
    if (n == 0)
        return TLS_ENDED;
    return errno == EAGAIN || errno == EINTR ? when_blocked : TLS_FAILED;
}

static enum tls_result transport_read(struct net_conn *conn, void *bytes, size_t size, size_t *ret_len)
{
    if (conn->tls)
        return tls_read(conn->tls, bytes, size, ret_len);
    ssize_t n = recv(conn->fd, bytes, size, 0);
    if (n > 0)
        *ret_len = (size_t)n;
    return plain_result(n, TLS_WANT_READ);
}

static enum tls_result transport_write(struct net_conn *conn, const void *bytes, size_t len, size_t *ret_len)
{
    if (conn->tls)
        return tls_write(conn->tls, bytes, len, ret_len);
    ssize_t n = send(conn->fd, bytes, len, MSG_NOSIGNAL);
    if (n > 0)
        *ret_len = (size_t)n;
    return plain_result(n, TLS_WANT_WRITE);
}

/* ---- which protocol ---- */

static const struct net_protocol *chosen_by_alpn(const struct net_conn *conn)
{
    const char *alpn = conn->tls ? tls_alpn(conn->tls) : "";
    if (conn->listener->h2 && strcmp(alpn, conn->listener->h2->alpn) == 0)
        return conn->listener->h2;
    if (conn->listener->http1 && strcmp(alpn, conn->listener->http1->alpn) == 0)
        return conn->listener->http1;
    return NULL;
}

static void ready_to_speak(struct net_conn *conn)
{
    if (conn->dial) {
        net_conn_open(conn, net_dial_protocol(conn));
        return;
    }
    const struct net_listener *listener = conn->listener;
    const struct net_protocol *only = !listener->http1 ? listener->h2 : !listener->h2 ? listener->http1 : NULL;
    const struct net_protocol *protocol = only ? only : chosen_by_alpn(conn);
    net_conn_set_phase(conn, NET_LIMIT_PREFACE_MS);
    if (protocol) {
        net_conn_open(conn, protocol);
        return;
    }
    conn->state = CONN_SNIFF;
    net_conn_update_poll(conn);
}

static bool deliver_to_session(struct net_conn *conn, const uint8_t *bytes, size_t len)
{
    if (conn->state != CONN_OPEN)
        return false;
    conn->n_calls++;
    int rc = conn->protocol->receive(conn->session, bytes, len);
    conn->n_calls--;
    if (rc < 0)
        net_conn_close(conn);
    return conn->state == CONN_OPEN;
}

/* Collect until the bytes differ from HTTP/2's preface or are all of it. */
static bool sniff(struct net_conn *conn, const uint8_t *bytes, size_t len)
{
    size_t room = NET_PREFACE_BYTES - conn->n_sniffed, take = len < room ? len : room;
    memcpy(conn->sniffed + conn->n_sniffed, bytes, take);
    conn->n_sniffed = (uint8_t)(conn->n_sniffed + take);
    bool is_prefix = memcmp(conn->sniffed, preface, conn->n_sniffed) == 0;
    if (is_prefix && conn->n_sniffed < NET_PREFACE_BYTES)
        return true;
    net_conn_open(conn, is_prefix ? conn->listener->h2 : conn->listener->http1);
    return deliver_to_session(conn, conn->sniffed, conn->n_sniffed) &&
           (take == len || deliver_to_session(conn, bytes + take, len - take));
}

static bool deliver(struct net_conn *conn, const uint8_t *bytes, size_t len)
{
    return conn->state == CONN_SNIFF ? sniff(conn, bytes, len) : deliver_to_session(conn, bytes, len);
}

/* ---- TLS handshake ---- */

/* As Go's servers do: a person with a browser sees what is wrong instead of rubbish. */
static void answer_plain_http(const struct net_conn *conn)
{
    static const char text[] = "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n"
                               "This port speaks TLS: use https.\n";
    (void)send(conn->fd, text, sizeof(text) - 1, MSG_NOSIGNAL);
}

static void handshake_failed(struct net_conn *conn, const struct err *e)
{
    struct net_series *series = &conn->loop->series;
    metric_add(conn->is_inbound ? series->server_handshake_failures : series->client_handshake_failures, 1);
    if (conn->is_inbound && tls_is_plain_http(conn->tls))
        answer_plain_http(conn);
    if (conn->dial)
        net_dial_error(conn, e);
    net_conn_linger(conn, NET_END_ERROR); /* OpenSSL's alert says what is wrong */
}

/* The handshake is dear: a crowd of peers gets a few steps a turn, the rest wait in the kernel for the next one. */
static void step_handshake(struct net_conn *conn)
{
    struct err e;
    if (conn->loop->n_handshakes++ >= conn->limits->values[NET_LIMIT_HANDSHAKES_PER_TURN]) {
        net_limit_hit(conn->loop, NET_LIMIT_HANDSHAKES_PER_TURN);
        return;
    }
    switch (tls_handshake(conn->tls, &e)) {
    case TLS_OK:
        conn->wants_write = false;
        ready_to_speak(conn);
        if (conn->state != CONN_DEAD && tls_pending(conn->tls) > 0)
            net_conn_mark_again(conn);
        return;
    case TLS_WANT_READ:
        conn->wants_write = false;
        break;
    case TLS_WANT_WRITE:
        conn->wants_write = true;
        break;
    case TLS_ENDED:
    case TLS_FAILED:
        handshake_failed(conn, &e);
        return;
    }
    net_conn_update_poll(conn);
}

static int start_server_tls(struct net_conn *conn)
{
    const struct net_listener *listener = conn->listener;
    struct tls_offer offer = {listener->h2 != NULL, listener->http1 != NULL};
    conn->tls = tls_session_new_server(net_tls_context(listener->tls), conn->fd, offer);
    return conn->tls ? 0 : -1;
}

void net_conn_start(struct net_conn *conn)
{
    int rc = 0;
    if (conn->dial)
        rc = net_dial_start_tls(conn, &conn->tls);
    else if (conn->listener->tls)
        rc = start_server_tls(conn);
    if (rc < 0) {
        net_conn_end(conn, NET_END_ERROR);
        return;
    }
    if (!conn->tls) {
        ready_to_speak(conn);
        return;
    }
    conn->state = CONN_HANDSHAKE;
    conn->wants_write = conn->dial != NULL; /* the client speaks first */
    if (conn->is_inbound)
        net_conn_set_phase(conn, NET_LIMIT_HANDSHAKE_MS);
    net_conn_update_poll(conn);
}

/* Output must move within its time from now on. */
static void restart_stall(struct net_conn *conn)
{
    size_t unsent = net_conn_unsent_bytes(conn);
    conn->stall_left_bytes = unsent < STALL_STEP_BYTES ? unsent : STALL_STEP_BYTES;
    conn->stall_at_ns = net_now_ns(conn->loop) + conn->limits->values[NET_LIMIT_WRITE_STALL_MS] * NS_PER_MS;
    net_conn_arm(conn);
}

/* ---- input ---- */

static bool is_reading(const struct net_conn *conn)
{
    return (conn->state == CONN_OPEN || conn->state == CONN_SNIFF) && !conn->is_ended && !conn->is_half_full &&
           !conn->has_more && !conn->read_waits;
}

static void peer_ended(struct net_conn *conn)
{
    conn->is_ended = true;
    if (conn->state == CONN_SNIFF) {
        net_conn_end(conn, NET_END_PEER);
    } else if (conn->protocol->ended) {
        conn->n_calls++;
        conn->protocol->ended(conn->session);
        conn->n_calls--;
    } else {
        net_conn_close(conn);
    }
    net_conn_update_poll(conn);
}

void net_conn_mark_again(struct net_conn *conn)
{
    if (conn->is_again || conn->state == CONN_DEAD)
        return;
    conn->is_again = true;
    vec_push(&conn->loop->again, conn);
}

/* What TLS has decrypted already, readiness will not announce. */
static void look_for_pending(struct net_conn *conn)
{
    if (conn->tls && is_reading(conn) && tls_pending(conn->tls) > 0)
        net_conn_mark_again(conn);
}

void net_conn_call_again(struct net_conn *conn)
{
    conn->has_more = true;
    net_conn_update_poll(conn);
    net_conn_mark_again(conn);
}

static size_t turn_budget(const struct net_conn *conn)
{
    int64_t budget = conn->limits->values[NET_LIMIT_READ_BYTES_PER_TURN];
    return budget < 1 || budget > NET_READ_BUFFER_BYTES ? NET_READ_BUFFER_BYTES : (size_t)budget;
}

/* TLS cannot read on before it has written something of its own. That is output, with output's time limit. */
static void wait_to_read(struct net_conn *conn)
{
    conn->read_waits = true;
    if (conn->stall_at_ns == 0)
        restart_stall(conn);
    net_conn_update_poll(conn);
}

/* One socket read for plain connections (readiness is level-triggered), records up to the budget for TLS. */
static void read_input(struct net_conn *conn)
{
    size_t left = turn_budget(conn), n = 0;
    enum tls_result result = TLS_OK;
    while (left > 0 && is_reading(conn)) {
        result = transport_read(conn, conn->loop->read_buffer, left, &n);
        if (result != TLS_OK)
            break;
        left -= n;
        if (!deliver(conn, conn->loop->read_buffer, n) || !conn->tls || tls_pending(conn->tls) == 0)
            break;
    }
    if (result == TLS_ENDED)
        peer_ended(conn);
    else if (result == TLS_FAILED)
        lost(conn, errno ? errno : EPROTO);
    else if (result == TLS_WANT_WRITE)
        wait_to_read(conn);
    if (left == 0)
        net_limit_hit(conn->loop, NET_LIMIT_READ_BYTES_PER_TURN);
    look_for_pending(conn);
}

static void discard_input(struct net_conn *conn)
{
    ssize_t n = recv(conn->fd, conn->loop->read_buffer, NET_READ_BUFFER_BYTES, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        conn->discarded_bytes += (size_t)n;
    if (n <= 0 || conn->discarded_bytes > DISCARD_MAX_BYTES)
        net_conn_end(conn, NET_END_LOCAL);
}

static void readable(struct net_conn *conn)
{
    switch (conn->state) {
    case CONN_HANDSHAKE:
        step_handshake(conn);
        break;
    case CONN_SNIFF:
    case CONN_OPEN:
        read_input(conn);
        break;
    case CONN_LINGER:
        discard_input(conn);
        break;
    case CONN_DIALLING:
    case CONN_CLOSING:
    case CONN_DEAD:
        break;
    }
}

/* What the session holds from earlier turns, unless output stands too high: output_fell then comes back to it. */
static void deliver_more(struct net_conn *conn)
{
    if (conn->is_half_full)
        return;
    conn->has_more = false;
    (void)deliver_to_session(conn, NULL, 0);
    net_conn_update_poll(conn);
    look_for_pending(conn);
}

void net_conns_read_again(struct net_loop *loop)
{
    size_t n = loop->again.len;
    for (size_t i = 0; i < n; i++) {
        struct net_conn *conn = loop->again.items[i];
        if (!conn)
            continue;
        conn->is_again = false;
        loop->again.items[i] = NULL;
        if (conn->has_more)
            deliver_more(conn);
        else if (is_reading(conn))
            read_input(conn);
    }
    if (n == 0)
        return;
    memmove(loop->again.items, loop->again.items + n, (loop->again.len - n) * sizeof(struct net_conn *));
    loop->again.len -= n;
}

/* ---- output ---- */

/* A peer that takes a byte now and then is stalled too: only a step's worth of progress moves the deadline. */
static void note_progress(struct net_conn *conn, size_t n)
{
    size_t unsent = net_conn_unsent_bytes(conn);
    if (unsent == 0) {
        if (!conn->read_waits)
            conn->stall_at_ns = 0;
        return;
    }
    bool has_progressed = n > 0 && n >= conn->stall_left_bytes;
    conn->stall_left_bytes -= n < conn->stall_left_bytes ? n : conn->stall_left_bytes;
    if (conn->stall_at_ns != 0 && !has_progressed)
        return;
    restart_stall(conn);
}

/* Returns false when the connection is lost. */
static bool write_output(struct net_conn *conn)
{
    size_t before = conn->out_sent, n = 0;
    enum tls_result result = TLS_OK;
    conn->wants_write = false;
    while (result == TLS_OK && net_conn_unsent_bytes(conn) > 0) {
        result = transport_write(conn, conn->out.data + conn->out_sent, net_conn_unsent_bytes(conn), &n);
        if (result == TLS_OK)
            conn->out_sent += n;
    }
    conn->loop->unsent_bytes -= conn->out_sent - before;
    if (result != TLS_OK && result != TLS_WANT_WRITE) {
        lost(conn, errno ? errno : EPROTO);
        return false;
    }
    conn->wants_write = result == TLS_WANT_WRITE;
    note_progress(conn, conn->out_sent - before);
    if (net_conn_unsent_bytes(conn) == 0) {
        buf_fini(&conn->out); /* idle connections hold no memory */
        conn->out_sent = 0;
    }
    return true;
}

/* All is sent: say so. */
static void finish_close(struct net_conn *conn)
{
    conn->n_calls++;
    net_conn_close_session(conn);
    conn->n_calls--;
    if (conn->state == CONN_DEAD)
        return; /* it freed its listener */
    if (conn->tls)
        tls_shutdown(conn->tls);
    net_conn_linger(conn, NET_END_LOCAL);
}

static void output_fell(struct net_conn *conn)
{
    conn->is_half_full = false;
    if (conn->has_more)
        net_conn_mark_again(conn);
    else
        look_for_pending(conn);
    if (!conn->protocol->writable || conn->state != CONN_OPEN)
        return;
    conn->n_calls++;
    conn->protocol->writable(conn->session);
    conn->n_calls--;
}

static void flush(struct net_conn *conn)
{
    if (conn->state != CONN_OPEN && conn->state != CONN_CLOSING)
        return;
    if (!write_output(conn))
        return;
    size_t unsent = net_conn_unsent_bytes(conn);
    if (conn->state == CONN_CLOSING && unsent == 0)
        finish_close(conn);
    else if (conn->is_half_full && unsent < (size_t)conn->limits->values[NET_LIMIT_OUTPUT_BYTES] / 2)
        output_fell(conn);
    net_conn_update_poll(conn);
}

void net_conns_flush(struct net_loop *loop)
{
    size_t n = loop->dirty.len;
    for (size_t i = 0; i < n; i++) {
        struct net_conn *conn = loop->dirty.items[i];
        if (!conn)
            continue;
        conn->is_dirty = false;
        loop->dirty.items[i] = NULL;
        flush(conn);
    }
    if (n == 0)
        return;
    memmove(loop->dirty.items, loop->dirty.items + n, (loop->dirty.len - n) * sizeof(struct net_conn *));
    loop->dirty.len -= n;
}

/* ---- readiness ---- */

static void go_on_reading(struct net_conn *conn)
{
    if (!conn->read_waits)
        return;
    conn->read_waits = false;
    if (net_conn_unsent_bytes(conn) == 0)
        conn->stall_at_ns = 0;
    if (is_reading(conn))
        read_input(conn);
    net_conn_update_poll(conn);
}

/* The socket has an error, and libuv watches it no more. What came before the error is read first: a server that goes
 * says why in its last bytes. The error comes after them. */
static void failed(struct net_conn *conn)
{
    int reason = 0;
    socklen_t len = sizeof(reason);
    conn->events = 0;
    if (conn->state == CONN_HANDSHAKE) {
        step_handshake(conn);
    } else if (is_reading(conn)) {
        read_input(conn);
    } else {
        (void)getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &reason, &len);
        lost(conn, reason);
    }
    net_conn_update_poll(conn);
}

static void polled(uv_poll_t *poll, int status, int events)
{
    struct net_conn *conn = (struct net_conn *)poll->data;
    if (conn->state == CONN_DEAD)
        return;
    if (status < 0) {
        failed(conn);
        return;
    }
    if (conn->state == CONN_HANDSHAKE) {
        step_handshake(conn);
        return;
    }
    if (events & UV_WRITABLE) {
        net_conn_mark_dirty(conn);
        go_on_reading(conn);
    }
    if (events & UV_READABLE)
        readable(conn);
}

static int wanted_events(const struct net_conn *conn)
{
    switch (conn->state) {
    case CONN_HANDSHAKE:
        return conn->wants_write ? UV_WRITABLE : UV_READABLE;
    case CONN_SNIFF:
    case CONN_OPEN:
        return (is_reading(conn) ? UV_READABLE : 0) | (conn->wants_write || conn->read_waits ? UV_WRITABLE : 0);
    case CONN_CLOSING:
        return conn->wants_write ? UV_WRITABLE : 0;
    case CONN_LINGER:
        return UV_READABLE;
    case CONN_DIALLING:
    case CONN_DEAD:
        break;
    }
    return 0;
}

void net_conn_update_poll(struct net_conn *conn)
{
    int events = wanted_events(conn);
    if (!conn->has_poll || events == conn->events)
        return;
    conn->events = events;
    if (events)
        (void)uv_poll_start(&conn->poll, events, polled);
    else
        (void)uv_poll_stop(&conn->poll);
}

int net_conn_take_fd(struct net_conn *conn, int fd)
{
    conn->fd = fd;
    if (uv_poll_init(&conn->loop->uv, &conn->poll, fd) < 0)
        return -1;
    conn->poll.data = conn;
    conn->has_poll = true;
    return 0;
}
