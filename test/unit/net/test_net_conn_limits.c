/* What limits connections: deadlines, ceilings of all, caps, age, draining. */
#include "net/conn_rig.h"

#include <fcntl.h>
#include <sys/resource.h>

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
    turn_now(w->loop, limit_hits(w->metrics, NET_LIMIT_PREFACE_MS) == 1);
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
    turn_now(w->loop, limit_hits(w->metrics, NET_LIMIT_PREFACE_MS) == 1);
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
    turn_now(w->loop, w->n_closed == 1);
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
    turn_now(w->loop, w->n_closed == 1);
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
    turn_now(w->loop, w->last->is_drained);
    net_loop_skip(w->loop, 29 * NS_PER_S);
    turn_some(w->loop);
    assert_int_equal(w->n_closed, 0);
    net_loop_skip(w->loop, 2 * NS_PER_S);
    turn_now(w->loop, w->n_closed == 1);
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

/* Readings, certificates and files need descriptors too: peers cannot have all of them. */
static void test_peers_leave_descriptors_for_the_rest_of_the_program(void **state)
{
    struct world *w = (struct world *)*state;
    struct rlimit before, tight;
    struct err e;
    int fds[100], n_taken = 0;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    tight = before;
    tight.rlim_cur = 80;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    net_listener_free(w->listener);
    net_loop_free(w->loop);
    w->loop = net_loop_new(w->metrics, &e); /* it looks at the limit */
    listen_at(w, "127.0.0.1:0");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0); /* for the peers, which are in this process */
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        fds[i] = connect_to(w);
    turn_until(w->loop, limit_hits(w->metrics, NET_LIMIT_CONNECTIONS) == 60);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        n_taken += peer_read(fds[i], &w->got);
        (void)close(fds[i]);
    }
    assert_int_equal(n_taken, 40); /* half, at the most; all but 128 where there are more */
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
    turn_now(w->loop, w->is_drained);
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
    turn_now(w->loop, w->is_drained);
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
        TEST(test_peers_leave_descriptors_for_the_rest_of_the_program),
        TEST(test_without_free_descriptors_peers_are_turned_away_and_accepting_goes_on),
        TEST(test_draining_lets_sessions_finish),
        TEST(test_draining_ends_by_its_grace),
        TEST(test_a_connection_that_grows_old_while_it_drains_has_its_grace),
        TEST(test_draining_without_connections_is_done_at_once),
        TEST(test_a_loop_that_goes_ends_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
