/* Connections without TLS on loopback: which protocol is chosen, output and its ceiling, and that callbacks may end
 * what calls them. The protocols here are small and made for the tests. */
#include "net/conn_rig.h"

/* ---- protocols ---- */

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
    turn_now(w->loop, metric_of(w->metrics, "keda_gpu_scaler_connections", "in") == 0);
    assert_double_same(metric_of(w->metrics, "keda_gpu_scaler_connections_closed", "local"), 1);
    (void)close(fd);
}

static void test_a_peer_that_goes_on_sending_is_not_lingered_for(void **state)
{
    struct world *w = (struct world *)*state;
    int fd = connect_to(w);
    char block[65536] = {0};
    w->manner = CLOSE_ON_RECEIVE;
    peer_say(fd, "x");
    turn_until(w->loop, w->n_closed == 1);
    for (int i = 0; i < 64 && metric_of(w->metrics, "keda_gpu_scaler_connections", "in") == 1; i++) {
        (void)send(fd, block, sizeof(block), MSG_NOSIGNAL | MSG_DONTWAIT);
        turn_some(w->loop);
    }
    assert_double_same(metric_of(w->metrics, "keda_gpu_scaler_connections", "in"), 0);
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
        TEST(test_a_peer_that_goes_on_sending_is_not_lingered_for),
        TEST(test_sending_after_close_is_refused),
        TEST(test_a_callback_may_end_its_connection),
        TEST(test_a_callback_may_free_its_listener),
        TEST(test_a_callback_may_drain_its_listener_and_free_it),
        TEST(test_the_close_of_a_session_may_free_its_listener),
        TEST(test_freeing_a_listener_closes_its_sessions_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
