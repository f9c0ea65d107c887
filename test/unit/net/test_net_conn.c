/* Connections without TLS on loopback: which protocol is chosen, output and its ceiling, deadlines, caps, draining,
 * age, and that callbacks may end what calls them. The protocols here are small and made for the tests. */
#include "net/peer.h"

#include <fcntl.h>
#include <sys/resource.h>

enum { SESSIONS_MAX = 64 };

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

static void *open_session(void *context, struct net_conn *conn, const char *name)
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

static void *open_h2(void *context, struct net_conn *conn)
{
    return open_session(context, conn, "h2");
}

static void *open_http1(void *context, struct net_conn *conn)
{
    return open_session(context, conn, "http1");
}

static int receive(void *context, const uint8_t *bytes, size_t len)
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

static void writable(void *context)
{
    ((struct session *)context)->n_writable++;
}

static void drain(void *context)
{
    struct session *s = (struct session *)context;
    s->is_drained = true;
    if (s->w->manner == CLOSE_ON_DRAIN) {
        (void)net_conn_send(s->conn, "goaway", 6);
        net_conn_close(s->conn);
    }
}

static void close_session(void *context)
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

static void listen_at(struct world *w, const char *address)
{
    struct err e = {0};
    struct net_listen_config config = {.address = address, .h2 = &w->h2, .http1 = &w->http1, .limits = &w->limits};
    w->listener = net_listen(w->loop, &config, &e);
    if (!w->listener)
        print_error("%s\n", e.text);
    assert_non_null(w->listener);
}

static int set_up(void **state)
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

static int tear_down(void **state)
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

static int connect_to(const struct world *w)
{
    return peer_connect(net_listener_port(w->listener));
}

/* ---- protocols ---- */

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

static void test_the_first_bytes_choose_the_protocol(void **state)
{
    static const struct {
        const char *bytes, *name; /* NULL: not decided yet */
    } cases[] = {
        {"G", "http1"},
        {"PUT / HTTP/1.1\r\n", "http1"},
        {"PRI * HTTP/1.1\r\n", "http1"},
        {"PRI * HTTP/2.0\r\n\r\nXX", "http1"},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "h2"},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n and more", "h2"},
        {"PRI", NULL},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r", NULL},
        {"\x16\x03\x01", "http1"},
    };
    struct world *w = (struct world *)*state;
    w->manner = SILENT;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int fd = connect_to(w), n_open = w->n_open;
        peer_say(fd, cases[i].bytes);
        if (cases[i].name) {
            turn_until(w->loop, w->last && w->last->got.len == strlen(cases[i].bytes));
            assert_string_equal(w->last->name, cases[i].name);
            assert_string_equal(buf_cstr(&w->last->got), cases[i].bytes);
        } else {
            turn_some(w->loop);
            assert_int_equal(w->n_open, n_open);
        }
        (void)close(fd);
        turn_until(w->loop, w->n_open == w->n_closed);
    }
}

static void test_a_preface_in_pieces_is_delivered_whole(void **state)
{
    struct world *w = (struct world *)*state;
    int fd = connect_to(w);
    w->manner = SILENT;
    for (size_t i = 0; i < sizeof(preface) - 1; i++) {
        peer_send(fd, preface + i, 1);
        turn_some(w->loop);
        assert_int_equal(w->n_open, i + 1 == sizeof(preface) - 1 ? 1 : 0);
    }
    peer_say(fd, "rest");
    turn_until(w->loop, w->last->got.len == sizeof(preface) - 1 + 4);
    assert_string_equal(buf_cstr(&w->last->got), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nrest");
    (void)close(fd);
}

static void test_a_port_with_one_protocol_speaks_at_once(void **state)
{
    struct world *w = (struct world *)*state;
    struct err e;
    struct net_listen_config config = {.address = "127.0.0.1:0", .h2 = &w->h2};
    struct net_listener *only = net_listen(w->loop, &config, &e);
    int fd = peer_connect(net_listener_port(only));
    turn_until(w->loop, w->n_open == 1);
    assert_string_equal(w->last->name, "h2");
    (void)net_conn_send(w->last->conn, "settings", 8);
    peer_expect(w->loop, fd, &w->got, "settings");
    net_listener_free(only);
    (void)close(fd);
}

static void test_a_refused_session_ends_the_connection(void **state)
{
    struct world *w = (struct world *)*state;
    int fd = connect_to(w);
    w->manner = REFUSE;
    peer_say(fd, "GET");
    peer_read_all(w->loop, fd, &w->got);
    assert_int_equal(w->got.len, 0);
    (void)close(fd);
}

/* ---- bytes ---- */

static void test_what_is_sent_in_a_turn_goes_out_and_comes_back(void **state)
{
    struct world *w = (struct world *)*state;
    int fd = connect_to(w);
    peer_say(fd, "hello");
    peer_expect(w->loop, fd, &w->got, "hello");
    assert_int_equal(net_conn_unsent_bytes(w->last->conn), 0);
    assert_true(str_has_prefix(str_of(net_conn_peer(w->last->conn)), "127.0.0.1:"));
    assert_false(net_conn_is_tls(w->last->conn));
    (void)close(fd);
    turn_until(w->loop, w->n_closed == 1);
    assert_double_same(metric_of(w->metrics, "keda_gpu_scaler_connections_closed", "peer"), 1);
    assert_double_same(metric_of(w->metrics, "keda_gpu_scaler_connections_accepted", NULL), 1);
}

/* A peer that speaks first and reads nothing: all output beyond the kernel's buffers stays with us. */
static int open_stalled(struct world *w)
{
    int fd = connect_to(w);
    w->manner = SILENT;
    peer_say(fd, "x");
    turn_until(w->loop, w->last != NULL);
    net_conn_established(w->last->conn);
    return fd;
}

/* Send until the kernel takes no more and the ceiling is reached exactly. Returns how much that was. */
static size_t fill(struct world *w)
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

static void test_output_has_a_ceiling_and_tells_when_there_is_room(void **state)
{
    struct world *w = (struct world *)*state;
    int fd = open_stalled(w);
    size_t sent = fill(w);
    assert_double_same(limit_hits(w->metrics, NET_LIMIT_OUTPUT_BYTES), 0);
    assert_int_equal(net_conn_send(w->last->conn, "x", 1), -1);
    assert_double_same(limit_hits(w->metrics, NET_LIMIT_OUTPUT_BYTES), 1);
    assert_int_equal(w->last->n_writable, 0);
    turn_until(w->loop, ((void)peer_read(fd, &w->got), w->got.len == sent));
    assert_int_equal(w->last->n_writable, 1);
    (void)close(fd);
}

static void test_nothing_is_read_from_a_peer_that_does_not_read(void **state)
{
    struct world *w = (struct world *)*state;
    int fd = open_stalled(w);
    (void)fill(w);
    peer_say(fd, "are you there?");
    turn_some(w->loop);
    assert_int_equal(w->last->got.len, 1);
    turn_until(w->loop, ((void)peer_read(fd, &w->got), w->last->got.len > 1));
    (void)close(fd);
}

static void test_one_peer_gets_a_budget_of_bytes_a_turn(void **state)
{
    struct world *w = (struct world *)*state;
    int fd = connect_to(w);
    char block[200000];
    memset(block, 'b', sizeof(block));
    w->manner = SILENT;
    w->limits.values[NET_LIMIT_READ_BYTES_PER_TURN] = 1000;
    peer_say(fd, "x");
    turn_until(w->loop, w->last != NULL);
    peer_send(fd, block, 100000);
    while (w->last->got.len < 100001) {
        size_t before = w->last->got.len;
        (void)net_loop_turn(w->loop);
        assert_true(w->last->got.len - before <= 1000);
    }
    (void)close(fd);
}

static void test_pending_output_goes_out_before_an_orderly_close(void **state)
{
    struct world *w = (struct world *)*state;
    int fd = connect_to(w);
    w->manner = CLOSE_ON_RECEIVE;
    peer_say(fd, "x");
    peer_read_all(w->loop, fd, &w->got);
    assert_string_equal(buf_cstr(&w->got), "bye");
    turn_until(w->loop, w->n_closed == 1); /* the session does not wait for the lingering socket */
    assert_double_same(metric_of(w->metrics, "keda_gpu_scaler_connections", "in"), 1);
    net_loop_skip(w->loop, 3 * NS_PER_S);
    turn_until(w->loop, metric_of(w->metrics, "keda_gpu_scaler_connections", "in") == 0);
    assert_double_same(metric_of(w->metrics, "keda_gpu_scaler_connections_closed", "local"), 1);
    (void)close(fd);
}

static void test_sending_after_close_is_refused(void **state)
{
    struct world *w = (struct world *)*state;
    int fd = open_stalled(w);
    net_conn_close(w->last->conn);
    net_conn_close(w->last->conn);
    assert_int_equal(net_conn_send(w->last->conn, "x", 1), -1);
    (void)close(fd);
}

/* ---- ends from inside callbacks ---- */

static void test_a_callback_may_end_its_connection(void **state)
{
    struct world *w = (struct world *)*state;
    int fd = connect_to(w);
    w->manner = ABORT_ON_RECEIVE;
    peer_say(fd, "x");
    peer_read_all(w->loop, fd, &w->got);
    assert_int_equal(w->n_closed, 1);
    assert_double_same(metric_of(w->metrics, "keda_gpu_scaler_connections_closed", "aborted"), 1);
    (void)close(fd);
}

static void test_a_callback_may_free_its_listener(void **state)
{
    struct world *w = (struct world *)*state;
    int other = connect_to(w), fd = connect_to(w);
    w->manner = SILENT;
    peer_say(other, "x");
    turn_until(w->loop, w->n_open == 1);
    w->manner = FREE_LISTENER_ON_RECEIVE;
    peer_say(fd, "x");
    peer_read_all(w->loop, fd, &w->got);
    peer_read_all(w->loop, other, &w->got);
    assert_int_equal(w->n_closed, 2);
    (void)close(fd);
    (void)close(other);
}

static void test_a_callback_may_drain_its_listener_and_free_it(void **state)
{
    struct world *w = (struct world *)*state;
    int other = connect_to(w), fd = connect_to(w);
    w->manner = SILENT;
    peer_say(other, "x");
    turn_until(w->loop, w->n_open == 1);
    w->manner = DRAIN_AND_FREE_ON_RECEIVE;
    peer_say(fd, "x");
    peer_read_all(w->loop, fd, &w->got);
    peer_read_all(w->loop, other, &w->got);
    assert_int_equal(w->n_closed, 2);
    (void)close(fd);
    (void)close(other);
}

static void test_the_close_of_a_session_may_free_its_listener(void **state)
{
    struct world *w = (struct world *)*state;
    int other = connect_to(w), fd = connect_to(w);
    w->manner = SILENT;
    peer_say(other, "x");
    turn_until(w->loop, w->n_open == 1);
    w->manner = FREE_LISTENER_ON_CLOSE;
    peer_say(fd, "x");
    peer_read_all(w->loop, fd, &w->got);
    peer_read_all(w->loop, other, &w->got);
    assert_string_equal(buf_cstr(&w->got), "bye");
    net_loop_skip(w->loop, 3 * NS_PER_S); /* nothing lingers */
    turn_some(w->loop);
    assert_int_equal(w->n_closed, 2);
    (void)close(fd);
    (void)close(other);
}

static void test_freeing_a_listener_closes_its_sessions_at_once(void **state)
{
    struct world *w = (struct world *)*state;
    int fds[5];
    w->manner = SILENT;
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        fds[i] = connect_to(w);
        peer_say(fds[i], "x");
    }
    turn_until(w->loop, w->n_open == 5);
    net_listener_free(w->listener);
    w->listener = NULL;
    assert_int_equal(w->n_closed, 5);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        (void)close(fds[i]);
}

/* ---- deadlines ---- */

static void test_the_preface_has_an_absolute_deadline(void **state)
{
    struct world *w = (struct world *)*state;
    int fd = connect_to(w);
    turn_until(w->loop, metric_of(w->metrics, "keda_gpu_scaler_connections", "in") == 1);
    for (int i = 0; i < 4; i++) { /* a byte a second does not help */
        peer_send(fd, preface + i, 1);
        net_loop_skip(w->loop, NS_PER_S);
        turn_some(w->loop);
        assert_true(peer_read(fd, &w->got));
    }
    net_loop_skip(w->loop, NS_PER_S);
    peer_read_all(w->loop, fd, &w->got);
    assert_double_same(limit_hits(w->metrics, NET_LIMIT_PREFACE_MS), 1);
    assert_double_same(metric_of(w->metrics, "keda_gpu_scaler_connections_closed", "limit"), 1);
    (void)close(fd);
}

static void test_a_session_must_establish_itself_within_the_preface_deadline(void **state)
{
    struct world *w = (struct world *)*state;
    int late = connect_to(w), good = connect_to(w);
    w->manner = SILENT;
    peer_say(late, "late");
    turn_until(w->loop, w->n_open == 1);
    peer_say(good, "good");
    turn_until(w->loop, w->n_open == 2);
    net_conn_established(w->last->conn);
    net_loop_skip(w->loop, 6 * NS_PER_S);
    peer_read_all(w->loop, late, &w->got);
    turn_some(w->loop);
    assert_true(peer_read(good, &w->got));
    (void)close(late);
    (void)close(good);
}

static void test_a_write_without_progress_ends_the_connection(void **state)
{
    struct world *w = (struct world *)*state;
    int fd = open_stalled(w);
    (void)fill(w);
    net_loop_skip(w->loop, 19 * NS_PER_S);
    turn_some(w->loop);
    assert_int_equal(w->n_closed, 0);
    net_loop_skip(w->loop, 2 * NS_PER_S);
    turn_until(w->loop, w->n_closed == 1);
    assert_double_same(limit_hits(w->metrics, NET_LIMIT_WRITE_STALL_MS), 1);
    (void)close(fd);
}

/* Takes a little now and then: less than a step in the time limit is no progress. */
static void test_a_peer_that_drips_reads_is_stalled_too(void **state)
{
    struct world *w = (struct world *)*state;
    int fd = open_stalled(w);
    (void)fill(w);
    for (int i = 0; i < 12 && w->n_closed == 0; i++) {
        char byte[100];
        (void)recv(fd, byte, sizeof(byte), MSG_DONTWAIT);
        net_loop_skip(w->loop, 2 * NS_PER_S);
        turn_some(w->loop);
    }
    assert_int_equal(w->n_closed, 1);
    assert_double_same(limit_hits(w->metrics, NET_LIMIT_WRITE_STALL_MS), 1);
    (void)close(fd);
}

/* The ceiling of all is reached by peers that take nothing: they go, and one that takes its output is served. */
static void test_output_of_all_has_a_ceiling_that_stalled_peers_pay_for(void **state)
{
    struct world *w = (struct world *)*state;
    int stalled = open_stalled(w);
    (void)fill(w);
    w->limits.values[NET_LIMIT_OUTPUT_BYTES_ALL] = 1 << 20;
    int fd = connect_to(w);
    peer_say(fd, "x");
    turn_until(w->loop, w->n_open == 2);
    char block[5000] = {0};
    assert_int_equal(net_conn_send(w->last->conn, "y", 1), 0);                /* its own share */
    assert_int_equal(net_conn_send(w->last->conn, block, sizeof(block)), -1); /* nobody has stalled for a second yet */
    peer_read_all(w->loop, fd, &w->got);
    assert_int_equal(w->n_closed, 1);
    assert_double_same(limit_hits(w->metrics, NET_LIMIT_OUTPUT_BYTES_ALL), 1);

    int later = connect_to(w);
    peer_say(later, "x");
    turn_until(w->loop, w->n_open == 3);
    net_loop_skip(w->loop, 2 * NS_PER_S);
    memcpy(block + sizeof(block) - 5, "hello", 5);
    memset(block, ' ', sizeof(block) - 5);
    assert_int_equal(net_conn_send(w->last->conn, block, sizeof(block)), 0);
    peer_expect(w->loop, later, &w->got, "hello");
    assert_int_equal(w->n_closed, 2);
    assert_double_same(limit_hits(w->metrics, NET_LIMIT_WRITE_STALL_MS), 1);
    (void)close(stalled);
    (void)close(fd);
    (void)close(later);
}

static void test_a_session_may_ask_for_turns_before_more_is_read(void **state)
{
    struct world *w = (struct world *)*state;
    int fd = connect_to(w);
    w->manner = CALL_AGAIN;
    peer_say(fd, "x");
    turn_until(w->loop, w->last && w->last->n_empty == 1);
    peer_say(fd, "later");
    for (int i = 0; i < 20; i++) {
        int before = w->last->n_empty;
        (void)net_loop_turn(w->loop);
        assert_int_equal(w->last->n_empty, before + 1); /* once a turn */
    }
    assert_int_equal(w->last->got.len, 1);
    w->manner = SILENT;
    turn_until(w->loop, w->last->got.len == 6);
    (void)close(fd);
}

static void test_a_session_is_not_called_again_while_its_output_waits(void **state)
{
    struct world *w = (struct world *)*state;
    int fd = open_stalled(w);
    size_t sent = fill(w);
    net_conn_call_again(w->last->conn);
    turn_some(w->loop);
    assert_int_equal(w->last->n_empty, 0);
    turn_until(w->loop, ((void)peer_read(fd, &w->got), w->got.len == sent && w->last->n_empty == 1));
    (void)close(fd);
}

static void test_a_close_that_cannot_send_is_limited_too(void **state)
{
    struct world *w = (struct world *)*state;
    int fd = open_stalled(w);
    (void)fill(w);
    net_conn_close(w->last->conn);
    turn_some(w->loop);
    assert_int_equal(w->n_closed, 0);
    net_loop_skip(w->loop, 21 * NS_PER_S);
    turn_until(w->loop, w->n_closed == 1);
    (void)close(fd);
}

static void test_an_old_connection_is_drained_and_then_ended(void **state)
{
    struct world *w = (struct world *)*state;
    int fd = open_stalled(w);
    net_loop_skip(w->loop, 26 * 60 * NS_PER_S); /* 30 min - 10 % = 27 */
    turn_some(w->loop);
    assert_false(w->last->is_drained);
    net_loop_skip(w->loop, 7 * 60 * NS_PER_S + NS_PER_S);
    turn_until(w->loop, w->last->is_drained);
    net_loop_skip(w->loop, 29 * NS_PER_S);
    turn_some(w->loop);
    assert_int_equal(w->n_closed, 0);
    net_loop_skip(w->loop, 2 * NS_PER_S);
    turn_until(w->loop, w->n_closed == 1);
    assert_double_same(limit_hits(w->metrics, NET_LIMIT_CONNECTION_AGE_MS), 1);
    assert_double_same(limit_hits(w->metrics, NET_LIMIT_CONNECTION_AGE_GRACE_MS), 1);
    (void)close(fd);
}

/* ---- caps ---- */

static void test_connections_are_capped_in_all(void **state)
{
    struct world *w = (struct world *)*state;
    w->limits.values[NET_LIMIT_CONNECTIONS] = 2;
    w->manner = SILENT;
    int first = connect_to(w), second = connect_to(w);
    turn_until(w->loop, metric_of(w->metrics, "keda_gpu_scaler_connections", "in") == 2);
    int third = connect_to(w);
    peer_read_all(w->loop, third, &w->got);
    assert_double_same(limit_hits(w->metrics, NET_LIMIT_CONNECTIONS), 1);
    (void)close(first);
    turn_until(w->loop, metric_of(w->metrics, "keda_gpu_scaler_connections", "in") == 1);
    int fourth = connect_to(w);
    peer_say(fourth, "x");
    turn_until(w->loop, w->n_open == 1);
    (void)close(second);
    (void)close(third);
    (void)close(fourth);
}

static void test_connections_are_capped_by_address(void **state)
{
    struct world *w = (struct world *)*state;
    w->limits.values[NET_LIMIT_CONNECTIONS_PER_IP] = 1;
    int first = connect_to(w);
    turn_until(w->loop, metric_of(w->metrics, "keda_gpu_scaler_connections", "in") == 1);
    int second = connect_to(w);
    peer_read_all(w->loop, second, &w->got);
    assert_double_same(limit_hits(w->metrics, NET_LIMIT_CONNECTIONS_PER_IP), 1);

    struct sockaddr_in here = {.sin_family = AF_INET},
                       there = {.sin_family = AF_INET}; /* from 127.0.0.2 there is room */
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    there.sin_port = htons((uint16_t)net_listener_port(w->listener));
    int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(other, (const struct sockaddr *)&here, sizeof(here)), 0);
    assert_int_equal(connect(other, (const struct sockaddr *)&there, sizeof(there)), 0);
    turn_until(w->loop, metric_of(w->metrics, "keda_gpu_scaler_connections", "in") == 2);

    (void)close(first); /* the count goes down again */
    turn_until(w->loop, metric_of(w->metrics, "keda_gpu_scaler_connections", "in") == 1);
    int third = connect_to(w);
    turn_until(w->loop, metric_of(w->metrics, "keda_gpu_scaler_connections", "in") == 2);
    (void)close(second);
    (void)close(third);
    (void)close(other);
}

static void test_without_free_descriptors_peers_are_turned_away_and_accepting_goes_on(void **state)
{
    struct world *w = (struct world *)*state;
    struct rlimit before, tight;
    int waiting = connect_to(w), probe = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    (void)close(probe);
    tight = before;
    tight.rlim_cur = (rlim_t)probe; /* the next descriptor is beyond the limit */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    turn_until(w->loop, metric_of(w->metrics, "keda_gpu_scaler_accept_errors", "fd_limit") == 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    peer_read_all(w->loop, waiting, &w->got);
    int later = connect_to(w);
    peer_say(later, "x");
    net_loop_skip(w->loop, NS_PER_S); /* the pause is over */
    turn_until(w->loop, w->n_open == 1);
    (void)close(waiting);
    (void)close(later);
}

/* ---- listeners ---- */

static void note(void *context)
{
    *(bool *)context = true;
}

static void test_draining_lets_sessions_finish(void **state)
{
    struct world *w = (struct world *)*state;
    int quiet = connect_to(w), fd = open_stalled(w), port = net_listener_port(w->listener);
    w->manner = CLOSE_ON_DRAIN;
    net_listener_drain(w->listener, 10 * NS_PER_S, note, &w->is_drained);
    peer_read_all(w->loop, fd, &w->got);
    assert_string_equal(buf_cstr(&w->got), "goaway");
    (void)close(fd);
    turn_until(w->loop, w->is_drained);
    int late = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(late, (const struct sockaddr *)&address, sizeof(address)), -1);
    (void)close(late);
    (void)close(quiet);
}

static void test_draining_ends_by_its_grace(void **state)
{
    struct world *w = (struct world *)*state;
    int fd = open_stalled(w); /* its drain does nothing */
    net_listener_drain(w->listener, 3 * NS_PER_S, note, &w->is_drained);
    turn_some(w->loop);
    assert_true(w->last->is_drained);
    assert_false(w->is_drained);
    net_loop_skip(w->loop, 3 * NS_PER_S);
    turn_until(w->loop, w->is_drained);
    assert_int_equal(w->n_closed, 1);
    (void)close(fd);
}

/* The drain's grace counts then, whatever age the connection reaches meanwhile. */
static void test_a_connection_that_grows_old_while_it_drains_has_its_grace(void **state)
{
    struct world *w = (struct world *)*state;
    int fd = open_stalled(w);
    net_loop_skip(w->loop, 26 * 60 * NS_PER_S);
    turn_some(w->loop);
    net_listener_drain(w->listener, 10 * 60 * NS_PER_S, note, &w->is_drained);
    net_loop_skip(w->loop, 9 * 60 * NS_PER_S);
    turn_some(w->loop);
    assert_int_equal(w->n_closed, 0);
    net_loop_skip(w->loop, 60 * NS_PER_S);
    turn_until(w->loop, w->is_drained);
    assert_int_equal(w->n_closed, 1);
    (void)close(fd);
}

static void test_draining_without_connections_is_done_at_once(void **state)
{
    struct world *w = (struct world *)*state;
    net_listener_drain(w->listener, 3 * NS_PER_S, note, &w->is_drained);
    assert_false(w->is_drained); /* not from inside */
    turn_until(w->loop, w->is_drained);
}

static void test_a_loop_that_goes_ends_everything(void **state)
{
    struct world *w = (struct world *)*state;
    int fd = open_stalled(w);
    struct err e;
    net_loop_free(w->loop);
    w->listener = NULL;
    assert_int_equal(w->n_closed, 1);
    w->loop = net_loop_new(w->metrics, &e);
    (void)close(fd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_the_first_bytes_choose_the_protocol),
        TEST(test_a_preface_in_pieces_is_delivered_whole),
        TEST(test_a_port_with_one_protocol_speaks_at_once),
        TEST(test_a_refused_session_ends_the_connection),
        TEST(test_what_is_sent_in_a_turn_goes_out_and_comes_back),
        TEST(test_output_has_a_ceiling_and_tells_when_there_is_room),
        TEST(test_nothing_is_read_from_a_peer_that_does_not_read),
        TEST(test_one_peer_gets_a_budget_of_bytes_a_turn),
        TEST(test_pending_output_goes_out_before_an_orderly_close),
        TEST(test_sending_after_close_is_refused),
        TEST(test_a_callback_may_end_its_connection),
        TEST(test_a_callback_may_free_its_listener),
        TEST(test_a_callback_may_drain_its_listener_and_free_it),
        TEST(test_the_close_of_a_session_may_free_its_listener),
        TEST(test_freeing_a_listener_closes_its_sessions_at_once),
        TEST(test_the_preface_has_an_absolute_deadline),
        TEST(test_a_session_must_establish_itself_within_the_preface_deadline),
        TEST(test_a_write_without_progress_ends_the_connection),
        TEST(test_a_peer_that_drips_reads_is_stalled_too),
        TEST(test_output_of_all_has_a_ceiling_that_stalled_peers_pay_for),
        TEST(test_a_session_may_ask_for_turns_before_more_is_read),
        TEST(test_a_session_is_not_called_again_while_its_output_waits),
        TEST(test_a_close_that_cannot_send_is_limited_too),
        TEST(test_an_old_connection_is_drained_and_then_ended),
        TEST(test_connections_are_capped_in_all),
        TEST(test_connections_are_capped_by_address),
        TEST(test_without_free_descriptors_peers_are_turned_away_and_accepting_goes_on),
        TEST(test_draining_lets_sessions_finish),
        TEST(test_draining_ends_by_its_grace),
        TEST(test_a_connection_that_grows_old_while_it_drains_has_its_grace),
        TEST(test_draining_without_connections_is_done_at_once),
        TEST(test_a_loop_that_goes_ends_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
