/* The HTTP/1.1 server through real loopback sockets: what goes over the wire, connection reuse, deadlines, big bodies.
 */
#include "net/peer.h"

#include "http/http.h"

struct world {
    struct metrics *metrics;
    struct net_loop *loop;
    struct net_gets *gets;
    struct http_server *server;
    struct net_listener *listener;
    struct net_limits limits;
    struct buf got;
    int fd;
};

static void say_hello(void *context, const struct net_get_request *request, struct net_get_response *response)
{
    (void)context;
    (void)buf_printf(&response->body, "path=%.*s query=%.*s", (int)request->path.len, request->path.ptr,
                     (int)request->query.len, request->query.ptr);
}

enum { BIG_BYTES = 3 << 20 };

static void say_much(void *context, const struct net_get_request *request, struct net_get_response *response)
{
    (void)context;
    (void)request;
    for (int i = 0; i < BIG_BYTES / 16; i++)
        (void)buf_printf(&response->body, "%015d\n", i);
}

static void say_extra(void *context, const struct net_get_request *request, struct net_get_response *response)
{
    (void)context;
    (void)request;
    response->status = 503;
    (void)snprintf(response->extra, sizeof(response->extra), "Retry-After: 5\r\n");
}

static int set_up(void **state)
{
    struct world *w = mem_new(struct world);
    struct err e = {0};
    w->metrics = metrics_new();
    w->loop = net_loop_new(w->metrics, &e);
    w->gets = net_gets_new();
    net_gets_add(w->gets, "/hello", say_hello, NULL);
    net_gets_add(w->gets, "/tree/", say_hello, NULL);
    net_gets_add(w->gets, "/much", say_much, NULL);
    net_gets_add(w->gets, "/extra", say_extra, NULL);
    w->server = http_server_new(w->gets, w->metrics);
    w->limits = net_limits_default;
    struct net_listen_config config = {
        .address = "127.0.0.1:0", .http1 = http_server_protocol(w->server), .limits = &w->limits};
    w->listener = net_listen(w->loop, &config, &e);
    assert_non_null(w->listener);
    buf_init(&w->got, 64 << 20);
    w->fd = peer_connect(net_listener_port(w->listener));
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = (struct world *)*state;
    (void)close(w->fd);
    net_listener_free(w->listener);
    http_server_free(w->server);
    net_gets_free(w->gets);
    net_loop_free(w->loop);
    metrics_free(w->metrics);
    buf_fini(&w->got);
    free(w);
    return 0;
}

static void test_a_get_is_answered_and_the_connection_stays_open(void **state)
{
    struct world *w = (struct world *)*state;
    peer_say(w->fd, "GET /hello?a=b HTTP/1.1\r\nHost: x\r\n\r\n");
    peer_expect(w->loop, w->fd, &w->got, "path=/hello query=a=b");
    assert_string_equal(buf_cstr(&w->got),
                        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 21\r\n"
                        "X-Content-Type-Options: nosniff\r\n\r\npath=/hello query=a=b");
    buf_reset(&w->got);
    peer_say(w->fd, "GET /tree/a%20b HTTP/1.1\r\nHost: x\r\n\r\n");
    peer_expect(w->loop, w->fd, &w->got, "path=/tree/a b query=");
}

static void test_a_head_gets_the_length_and_no_body(void **state)
{
    struct world *w = (struct world *)*state;
    peer_say(w->fd, "HEAD /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    peer_read_all(w->loop, w->fd, &w->got);
    assert_string_equal(buf_cstr(&w->got),
                        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 18\r\n"
                        "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n");
}

static void test_pipelined_requests_are_answered_in_order(void **state)
{
    struct world *w = (struct world *)*state;
    peer_say(w->fd,
             "GET /hello?1 HTTP/1.1\r\nHost: x\r\n\r\nGET /hello?2 HTTP/1.1\r\nHost: x\r\n\r\n"
             "GET /hello?3 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\nGET /hello?4 HTTP/1.1\r\nHost: x\r\n\r\n");
    peer_read_all(w->loop, w->fd, &w->got);
    const char *first = strstr(buf_cstr(&w->got), "query=1"), *second = strstr(buf_cstr(&w->got), "query=2");
    const char *third = strstr(buf_cstr(&w->got), "query=3");
    assert_true(first && second && third && first < second && second < third);
    assert_null(strstr(buf_cstr(&w->got), "query=4"));
}

static void test_many_pipelined_requests_are_answered_over_several_turns(void **state)
{
    struct world *w = (struct world *)*state;
    enum { N = 1000 };
    int fd = peer_connect(net_listener_port(w->listener)), n_answers = 0;
    BUF_AUTO struct buf requests, other;
    buf_init(&requests, 1 << 20);
    buf_init(&other, 1 << 20);
    for (int i = 0; i < N; i++)
        (void)buf_printf(&requests, "GET /hello?%d HTTP/1.1\r\nHost: x\r\n\r\n", i);
    turn_some(w->loop);
    peer_send(w->fd, requests.data, requests.len);
    peer_say(fd, "GET /hello?other HTTP/1.1\r\nHost: x\r\n\r\n");
    peer_expect(w->loop, fd, &other, "query=other");
    (void)peer_read(w->fd, &w->got);
    assert_null(strstr(buf_cstr(&w->got), "query=999")); /* the other peer did not have to wait for all of these */
    peer_expect(w->loop, w->fd, &w->got, "query=999");
    for (const char *at = buf_cstr(&w->got); (at = strstr(at, "query=")); at += 6)
        assert_int_equal(strtol(at + 6, NULL, 10), n_answers++);
    assert_int_equal(n_answers, N);
    assert_true(limit_hits(w->metrics, NET_LIMIT_REQUESTS_PER_TURN) > 0);
    buf_reset(&w->got); /* and the connection goes on */
    peer_say(w->fd, "GET /hello?last HTTP/1.1\r\nHost: x\r\n\r\n");
    peer_expect(w->loop, w->fd, &w->got, "query=last");
    (void)close(fd);
}

static void test_a_request_may_arrive_byte_by_byte(void **state)
{
    struct world *w = (struct world *)*state;
    const char *request = "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n";
    for (const char *at = request; *at; at++) {
        peer_send(w->fd, at, 1);
        (void)net_loop_turn(w->loop);
    }
    peer_expect(w->loop, w->fd, &w->got, "path=/hello");
}

static void test_http_1_0_closes_unless_keep_alive_is_asked_for(void **state)
{
    struct world *w = (struct world *)*state;
    peer_say(w->fd, "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    peer_expect(w->loop, w->fd, &w->got, "path=/hello");
    assert_non_null(strstr(buf_cstr(&w->got), "Connection: keep-alive\r\n"));
    buf_reset(&w->got);
    peer_say(w->fd, "GET /hello HTTP/1.0\r\n\r\n");
    peer_read_all(w->loop, w->fd, &w->got);
    assert_non_null(strstr(buf_cstr(&w->got), "Connection: close\r\n"));
}

static void test_a_refused_request_closes_the_connection(void **state)
{
    struct world *w = (struct world *)*state;
    peer_say(w->fd,
             "POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhelloGET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    peer_read_all(w->loop, w->fd, &w->got);
    assert_true(str_has_prefix(str_of(buf_cstr(&w->got)), "HTTP/1.1 405 Method Not Allowed\r\n"));
    assert_non_null(strstr(buf_cstr(&w->got), "Allow: GET, HEAD\r\n"));
    assert_non_null(strstr(buf_cstr(&w->got), "Connection: close\r\n"));
    assert_null(strstr(buf_cstr(&w->got), "path="));
}

static void test_unknown_paths_get_404_with_what_there_is(void **state)
{
    struct world *w = (struct world *)*state;
    peer_say(w->fd, "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n");
    peer_expect(w->loop, w->fd, &w->got, "/much");
    assert_true(str_has_prefix(str_of(buf_cstr(&w->got)), "HTTP/1.1 404 Not Found\r\n"));
}

static void test_a_handler_sets_status_and_header_lines(void **state)
{
    struct world *w = (struct world *)*state;
    peer_say(w->fd, "GET /extra HTTP/1.1\r\nHost: x\r\n\r\n");
    peer_expect(w->loop, w->fd, &w->got, "\r\n\r\n");
    assert_true(str_has_prefix(str_of(buf_cstr(&w->got)), "HTTP/1.1 503 Service Unavailable\r\n"));
    assert_non_null(strstr(buf_cstr(&w->got), "Retry-After: 5\r\n"));
    assert_double_same(metric_of(w->metrics, "keda_gpu_scaler_http_requests", "1.1"), 1);
}

static void test_a_body_beyond_the_output_ceiling_is_fed_as_it_is_taken(void **state)
{
    struct world *w = (struct world *)*state;
    peer_say(w->fd, "GET /much HTTP/1.1\r\nHost: x\r\n\r\nGET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    turn_some(w->loop); /* nobody reads yet */
    peer_expect(w->loop, w->fd, &w->got, "path=/hello");
    char last[32];
    (void)snprintf(last, sizeof(last), "%015d\nHTTP/1.1 200", BIG_BYTES / 16 - 1);
    assert_non_null(strstr(buf_cstr(&w->got), last));
    assert_double_same(limit_hits(w->metrics, NET_LIMIT_OUTPUT_BYTES), 0);
}

static void test_a_peer_that_pipelines_and_does_not_read_is_held_back(void **state)
{
    struct world *w = (struct world *)*state;
    for (int i = 0; i < 200; i++)
        peer_say(w->fd, "GET /much HTTP/1.1\r\nHost: x\r\n\r\n");
    turn_some(w->loop);
    net_loop_skip(w->loop, 21 * NS_PER_S); /* longer than a write may stall */
    turn_now(w->loop, limit_hits(w->metrics, NET_LIMIT_WRITE_STALL_MS) > 0);
    assert_double_same(limit_hits(w->metrics, NET_LIMIT_OUTPUT_BYTES), 0);
}

static void test_memory_for_all_answers_and_requests_has_a_ceiling(void **state)
{
    struct world *w = (struct world *)*state;
    w->limits.values[NET_LIMIT_OUTPUT_BYTES_ALL] = BIG_BYTES + 1000;
    int fd = peer_connect(net_listener_port(w->listener));
    peer_say(fd, "GET /much HTTP/1.1\r\nHost: x\r\n\r\n"); /* and does not read */
    turn_some(w->loop);
    peer_say(w->fd, "GET /much HTTP/1.1\r\nHost: x\r\n\r\n");
    peer_expect(w->loop, w->fd, &w->got, "too many answers");
    assert_true(str_has_prefix(str_of(buf_cstr(&w->got)), "HTTP/1.1 503 "));
    buf_reset(&w->got);
    w->limits.values[NET_LIMIT_OUTPUT_BYTES_ALL] = BIG_BYTES; /* all of it is taken */
    peer_say(w->fd, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    peer_expect(w->loop, w->fd, &w->got, "path=/hello"); /* a probe is answered all the same */
    (void)close(fd);
    buf_reset(&w->got);
    turn_some(w->loop);
    peer_say(w->fd, "GET /much HTTP/1.1\r\nHost: x\r\n\r\n");
    turn_until(w->loop, ((void)peer_read(w->fd, &w->got), w->got.len > BIG_BYTES));

    char part[6000] = "GET /a-long-path-that-is-not-complete";
    memset(part + strlen(part), 'x', sizeof(part) - strlen(part) - 1);
    w->limits.values[NET_LIMIT_RECEIVE_BYTES_ALL] = 5000;
    int first = peer_connect(net_listener_port(w->listener));
    peer_say(first, "GET /hel");
    turn_some(w->loop);
    peer_say(w->fd, part);
    peer_read_all(w->loop, w->fd, &w->got);
    assert_double_same(limit_hits(w->metrics, NET_LIMIT_RECEIVE_BYTES_ALL), 1);
    w->limits.values[NET_LIMIT_RECEIVE_BYTES_ALL] = 1; /* others hold all of it */
    buf_reset(&w->got);
    peer_say(first, "lo HTTP/1.1\r\nHost: x\r\n\r\n");
    peer_expect(w->loop, first, &w->got, "path=/hello");
    (void)close(first);
}

static void test_memory_of_connections_that_go_is_given_back(void **state)
{
    struct world *w = (struct world *)*state;
    char part[6000] = "GET /a-long-path-that-is-not-complete";
    memset(part + strlen(part), 'x', sizeof(part) - strlen(part) - 1);
    w->limits.values[NET_LIMIT_RECEIVE_BYTES_ALL] = 20000;
    for (int i = 0; i < 10; i++) {
        int fd = peer_connect(net_listener_port(w->listener));
        peer_say(fd, part);
        turn_some(w->loop);
        (void)close(fd);
        turn_some(w->loop);
    }
    assert_double_same(limit_hits(w->metrics, NET_LIMIT_RECEIVE_BYTES_ALL), 0);
}

static void test_headers_have_an_absolute_deadline(void **state)
{
    struct world *w = (struct world *)*state;
    peer_say(w->fd, "GET /hello HTTP/1.1\r\nHost: x\r\n");
    turn_some(w->loop);
    for (int i = 0; i < 9; i++) { /* a field every second does not help */
        net_loop_skip(w->loop, NS_PER_S);
        peer_say(w->fd, "X-Slow: 1\r\n");
        turn_some(w->loop);
        assert_true(peer_read(w->fd, &w->got));
    }
    net_loop_skip(w->loop, 2 * NS_PER_S);
    turn_now(w->loop, limit_hits(w->metrics, NET_LIMIT_HEADERS_MS) == 1);
    peer_read_all(w->loop, w->fd, &w->got);
    assert_true(str_has_prefix(str_of(buf_cstr(&w->got)), "HTTP/1.1 408 "));
    assert_double_same(limit_hits(w->metrics, NET_LIMIT_HEADERS_MS), 1);
}

static void test_an_idle_connection_ends_after_its_limit(void **state)
{
    struct world *w = (struct world *)*state;
    peer_say(w->fd, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    peer_expect(w->loop, w->fd, &w->got, "path=/hello");
    net_loop_skip(w->loop, 59 * NS_PER_S);
    turn_some(w->loop);
    assert_true(peer_read(w->fd, &w->got));
    net_loop_skip(w->loop, 2 * NS_PER_S);
    turn_now(w->loop, limit_hits(w->metrics, NET_LIMIT_IDLE_HTTP1_MS) == 1);
    peer_read_all(w->loop, w->fd, &w->got);
    assert_double_same(limit_hits(w->metrics, NET_LIMIT_IDLE_HTTP1_MS), 1);
}

static void test_oversized_heads_get_414_and_431(void **state)
{
    struct world *w = (struct world *)*state;
    char *line = (char *)mem_new_array(9001, 1);
    memset(line, 'a', 9000);
    memcpy(line, "GET /", 5);
    peer_send(w->fd, line, 9000);
    peer_read_all(w->loop, w->fd, &w->got);
    assert_true(str_has_prefix(str_of(buf_cstr(&w->got)), "HTTP/1.1 414 URI Too Long\r\n"));

    int second = peer_connect(net_listener_port(w->listener));
    buf_reset(&w->got);
    memcpy(line, "GET / HTTP/1.1\r\nX: ", 19);
    peer_send(second, line, 9000);
    peer_read_all(w->loop, second, &w->got);
    assert_true(str_has_prefix(str_of(buf_cstr(&w->got)), "HTTP/1.1 431 "));
    assert_double_same(limit_hits(w->metrics, NET_LIMIT_HTTP1_HEADER_BYTES), 2);
    (void)close(second);
    free(line);
}

static void test_the_answer_survives_a_peer_that_still_sends(void **state)
{
    struct world *w = (struct world *)*state;
    peer_say(w->fd, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
    turn_some(w->loop);
    char more[4096] = {0};
    for (int i = 0; i < 10; i++) { /* a reset would answer these, and eat the 405 */
        peer_send(w->fd, more, sizeof(more));
        turn_some(w->loop);
    }
    peer_read_all(w->loop, w->fd, &w->got);
    assert_true(str_has_prefix(str_of(buf_cstr(&w->got)), "HTTP/1.1 405 "));
}

static void test_a_peer_that_shuts_its_half_down_still_gets_its_answer(void **state)
{
    struct world *w = (struct world *)*state;
    peer_say(w->fd, "GET /much HTTP/1.1\r\nHost: x\r\n\r\n");
    (void)shutdown(w->fd, SHUT_WR);
    peer_read_all(w->loop, w->fd, &w->got);
    assert_true(w->got.len > BIG_BYTES);
}

static void note(void *context)
{
    *(bool *)context = true;
}

static void test_draining_ends_idle_connections_and_finishes_answers(void **state)
{
    struct world *w = (struct world *)*state;
    int busy = peer_connect(net_listener_port(w->listener));
    BUF_AUTO struct buf much;
    buf_init(&much, 64 << 20);
    peer_say(busy, "GET /much HTTP/1.1\r\nHost: x\r\n\r\n");
    turn_some(w->loop);
    bool is_done = false;
    net_listener_drain(w->listener, 5 * NS_PER_S, note, &is_done);
    peer_read_all(w->loop, w->fd, &w->got);
    assert_int_equal(w->got.len, 0);
    assert_false(is_done);
    peer_read_all(w->loop, busy, &much);
    assert_true(much.len > BIG_BYTES);
    (void)close(busy);
    (void)close(w->fd);
    w->fd = -1;
    turn_until(w->loop, is_done);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_get_is_answered_and_the_connection_stays_open),
        TEST(test_a_head_gets_the_length_and_no_body),
        TEST(test_pipelined_requests_are_answered_in_order),
        TEST(test_many_pipelined_requests_are_answered_over_several_turns),
        TEST(test_a_request_may_arrive_byte_by_byte),
        TEST(test_http_1_0_closes_unless_keep_alive_is_asked_for),
        TEST(test_a_refused_request_closes_the_connection),
        TEST(test_unknown_paths_get_404_with_what_there_is),
        TEST(test_a_handler_sets_status_and_header_lines),
        TEST(test_a_body_beyond_the_output_ceiling_is_fed_as_it_is_taken),
        TEST(test_a_peer_that_pipelines_and_does_not_read_is_held_back),
        TEST(test_memory_for_all_answers_and_requests_has_a_ceiling),
        TEST(test_memory_of_connections_that_go_is_given_back),
        TEST(test_headers_have_an_absolute_deadline),
        TEST(test_an_idle_connection_ends_after_its_limit),
        TEST(test_oversized_heads_get_414_and_431),
        TEST(test_the_answer_survives_a_peer_that_still_sends),
        TEST(test_a_peer_that_shuts_its_half_down_still_gets_its_answer),
        TEST(test_draining_ends_idle_connections_and_finishes_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
