/* Dialling: names, several addresses, unix sockets, time limits, refusals, and owners that lose interest. */
#include "net/peer.h"

#include <sys/un.h>

struct world {
    struct metrics *metrics;
    struct net_loop *loop;
    struct net_listener *listener;
    struct net_protocol server, client;
    struct net_conn *conn; /* while the client's session is open */
    int n_opened, n_failed, n_closed;
    struct err error;
    struct buf got;
};

static void *open_server(void *context, struct net_conn *conn)
{
    (void)context;
    net_conn_established(conn);
    return conn;
}

static int echo(void *context, const uint8_t *bytes, size_t len)
{
    return net_conn_send((struct net_conn *)context, bytes, len);
}

static void close_nothing(void *context)
{
    (void)context;
}

static void *open_client(void *context, struct net_conn *conn)
{
    struct world *w = (struct world *)context;
    w->conn = conn;
    w->n_opened++;
    return w;
}

static int collect(void *context, const uint8_t *bytes, size_t len)
{
    return buf_append(&((struct world *)context)->got, bytes, len);
}

static void close_client(void *context)
{
    struct world *w = (struct world *)context;
    w->conn = NULL;
    w->n_closed++;
}

static void dial_failed(void *context, const struct err *e)
{
    struct world *w = (struct world *)context;
    w->n_failed++;
    w->error = *e;
}

static void listen_at(struct world *w, const char *address)
{
    struct err e;
    struct net_listen_config config = {.address = address, .h2 = &w->server};
    w->listener = net_listen(w->loop, &config, &e);
    assert_non_null(w->listener);
}

static int set_up(void **state)
{
    struct world *w = mem_new(struct world);
    struct err e;
    w->metrics = metrics_new();
    w->loop = net_loop_new(w->metrics, &e);
    w->server = (struct net_protocol){"echo", "h2", NULL, open_server, echo, NULL, NULL, close_nothing, NULL};
    w->client = (struct net_protocol){"client", "h2", w, open_client, collect, NULL, NULL, close_client, NULL};
    buf_init(&w->got, 1024);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = (struct world *)*state;
    net_listener_free(w->listener);
    net_loop_free(w->loop);
    assert_int_equal(w->n_opened, w->n_closed);
    assert_double_same(metric_of(w->metrics, "keda_gpu_scaler_connections", "out"), 0);
    metrics_free(w->metrics);
    buf_fini(&w->got);
    free(w);
    return 0;
}

static struct net_conn *dial(struct world *w, const char *address, struct err *e)
{
    struct net_connect_config config = {
        .address = address, .protocol = &w->client, .timeout_ns = 5 * NS_PER_S, .failed = dial_failed, .context = w};
    return net_connect(w->loop, &config, e);
}

static void expect_echo(struct world *w, const char *address)
{
    struct err e;
    assert_non_null(dial(w, address, &e));
    assert_int_equal(w->n_opened + w->n_failed, 0); /* never from inside net_connect */
    turn_until(w->loop, w->conn || w->n_failed);
    if (!w->conn)
        print_error("%s\n", w->error.text);
    assert_int_equal(net_conn_send(w->conn, "hello", 5), 0);
    turn_until(w->loop, w->got.len == 5);
}

static void test_a_numeric_address_is_reached(void **state)
{
    struct world *w = (struct world *)*state;
    listen_at(w, "127.0.0.1:0");
    expect_echo(w, net_listener_address(w->listener));
    assert_string_equal(net_conn_peer(w->conn), net_listener_address(w->listener));
    net_conn_close(w->conn);
    turn_until(w->loop, !w->conn);
    assert_double_same(metric_of(w->metrics, "keda_gpu_scaler_connections", "out"), 0);
}

/* localhost may be ::1 first, where nobody listens: the next address is tried. */
static void test_a_name_is_looked_up_and_each_address_tried(void **state)
{
    struct world *w = (struct world *)*state;
    char address[64];
    listen_at(w, "127.0.0.1:0");
    (void)snprintf(address, sizeof(address), "localhost:%d", net_listener_port(w->listener));
    expect_echo(w, address);
}

static void test_an_empty_host_is_this_machine(void **state)
{
    struct world *w = (struct world *)*state;
    char address[64];
    listen_at(w, ":0");
    (void)snprintf(address, sizeof(address), ":%d", net_listener_port(w->listener));
    expect_echo(w, address);
}

static void test_a_unix_socket_is_reached(void **state)
{
    struct world *w = (struct world *)*state;
    char dir[] = "/tmp/net-dial-XXXXXX", address[64];
    assert_non_null(mkdtemp(dir));
    (void)snprintf(address, sizeof(address), "unix:%s/socket", dir);
    listen_at(w, address);
    expect_echo(w, address);
    assert_string_equal(net_conn_peer(w->conn), "unix");
    net_listener_free(w->listener);
    w->listener = NULL;
    assert_int_equal(rmdir(dir), 0);
}

/* A port where nobody listens: bound and closed again. */
static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    (void)close(fd);
    return ntohs(address.sin_port);
}

static void test_failures_are_told_once_with_a_reason(void **state)
{
    struct world *w = (struct world *)*state;
    char refused[64];
    (void)snprintf(refused, sizeof(refused), "127.0.0.1:%d", free_port());
    const struct {
        const char *address, *text;
    } cases[] = {
        {refused, "Connection refused"},
        {"unix:/nonexistent/socket", "No such file"},
        {"no-such-name.invalid:1", "cannot connect to no-such-name.invalid:1: "},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e;
        w->n_failed = 0;
        assert_non_null(dial(w, cases[i].address, &e));
        turn_until(w->loop, w->n_failed > 0);
        turn_some(w->loop);
        assert_int_equal(w->n_failed, 1);
        assert_int_equal(w->error.class, ERR_UNAVAILABLE);
        if (!strstr(w->error.text, cases[i].text))
            print_error("%s: %s\n", cases[i].address, w->error.text);
        assert_non_null(strstr(w->error.text, cases[i].text));
    }
}

static void test_malformed_addresses_are_refused_at_once(void **state)
{
    static const char *const cases[] = {"", "host", "host:0", "::1:80", "unix:", "http://host:80"};
    struct world *w = (struct world *)*state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = {0};
        assert_null(dial(w, cases[i], &e));
        assert_int_equal(e.class, ERR_INVALID_ARGUMENT);
    }
}

/* A listening socket whose queue is full answers no SYN. */
struct silent {
    int listening, fillers[4];
    char address[64];
};

static struct silent silent_new(void)
{
    struct silent silent;
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof(address);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    silent.listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(silent.listening, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(silent.listening, 0), 0);
    assert_int_equal(getsockname(silent.listening, (struct sockaddr *)&address, &len), 0);
    for (size_t i = 0; i < ARRAY_LEN(silent.fillers); i++) {
        silent.fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)connect(silent.fillers[i], (const struct sockaddr *)&address, sizeof(address));
    }
    (void)snprintf(silent.address, sizeof(silent.address), "127.0.0.1:%d", ntohs(address.sin_port));
    return silent;
}

static void silent_free(struct silent *silent)
{
    for (size_t i = 0; i < ARRAY_LEN(silent->fillers); i++)
        (void)close(silent->fillers[i]);
    (void)close(silent->listening);
}

static void test_a_silent_address_fails_at_the_time_limit(void **state)
{
    struct world *w = (struct world *)*state;
    struct silent silent = silent_new();
    struct err e;
    assert_non_null(dial(w, silent.address, &e));
    turn_some(w->loop);
    net_loop_skip(w->loop, 4 * NS_PER_S);
    turn_some(w->loop);
    assert_int_equal(w->n_failed, 0);
    net_loop_skip(w->loop, 2 * NS_PER_S);
    turn_now(w->loop, w->n_failed == 1);
    assert_int_equal(w->error.class, ERR_DEADLINE_EXCEEDED);
    silent_free(&silent);
}

static void test_a_silent_tls_server_fails_at_the_time_limit(void **state)
{
    struct world *w = (struct world *)*state;
    struct err e;
    struct net_tls_files files = {.is_insecure = true};
    struct net_tls *tls = net_tls_client_new(w->loop, &files, &e);
    assert_non_null(tls);
    listen_at(w, "127.0.0.1:0");
    struct net_connect_config config = {.address = net_listener_address(w->listener),
                                        .tls = tls,
                                        .protocol = &w->client,
                                        .timeout_ns = 5 * NS_PER_S,
                                        .failed = dial_failed,
                                        .context = w};
    w->server.receive = collect; /* takes the ClientHello and says nothing */
    w->server.open = open_client;
    w->server.context = w;
    w->server.close = close_client;
    assert_non_null(net_connect(w->loop, &config, &e));
    turn_until(w->loop, w->got.len > 0);
    net_loop_skip(w->loop, 6 * NS_PER_S);
    turn_now(w->loop, w->n_failed == 1);
    assert_int_equal(w->error.class, ERR_DEADLINE_EXCEEDED);
    net_tls_free(tls);
}

/* A reset may come with bytes before it: they are read first. */
static void test_the_last_words_of_a_peer_that_resets_are_heard(void **state)
{
    struct world *w = (struct world *)*state;
    struct sockaddr_in here = {.sin_family = AF_INET};
    socklen_t len = sizeof(here);
    char address[64];
    struct err e;
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(listening, (const struct sockaddr *)&here, len), 0);
    assert_int_equal(listen(listening, 1), 0);
    assert_int_equal(getsockname(listening, (struct sockaddr *)&here, &len), 0);
    (void)snprintf(address, sizeof(address), "127.0.0.1:%d", ntohs(here.sin_port));
    assert_non_null(dial(w, address, &e));
    turn_until(w->loop, w->conn);
    int fd = accept(listening, NULL, NULL);
    struct linger now = {.l_onoff = 1};
    peer_say(fd, "goaway");
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
    (void)close(fd);
    turn_until(w->loop, w->n_closed == 1);
    assert_string_equal(buf_cstr(&w->got), "goaway");
    (void)close(listening);
}

static void test_an_aborted_dial_is_not_told(void **state)
{
    struct world *w = (struct world *)*state;
    struct silent silent = silent_new();
    const char *cases[] = {"no-such-name.invalid:1", silent.address, "127.0.0.1:1"};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e;
        net_conn_abort(dial(w, cases[i], &e)); /* before its first turn */
        struct net_conn *conn = dial(w, cases[i], &e);
        if (i < 2) { /* and in the middle of it; a refusal would be told by then */
            (void)net_loop_turn(w->loop);
            net_conn_abort(conn);
        } else {
            net_conn_close(conn);
        }
        turn_some(w->loop);
    }
    assert_int_equal(w->n_failed, 0);
    silent_free(&silent);
}

/* The connection is buried before the turn in which its name would have been looked up. */
static void test_an_aborted_dial_leaves_nothing_behind(void **state)
{
    struct world *w = (struct world *)*state;
    struct err e;
    listen_at(w, "127.0.0.1:0");
    net_conn_abort(dial(w, "no-such-name.invalid:1", &e));
    net_listener_free(w->listener);
    w->listener = NULL;
    assert_double_same(metric_of(w->metrics, "keda_gpu_scaler_connections", "out"), 0);
}

static void test_a_loop_may_go_in_the_middle_of_a_dial(void **state)
{
    struct world *w = (struct world *)*state;
    struct err e;
    assert_non_null(dial(w, "no-such-name.invalid:1", &e));
    (void)net_loop_turn(w->loop);
    (void)dial(w, "127.0.0.1:1", &e);
    int told = w->n_failed; /* a look-up may have been quick enough to fail by now */
    net_loop_free(w->loop);
    w->loop = net_loop_new(w->metrics, &e);
    assert_int_equal(w->n_failed, told);
}

static void dial_again(void *context, const struct err *e)
{
    struct world *w = (struct world *)context;
    struct err again;
    dial_failed(context, e);
    if (w->n_failed == 1)
        assert_non_null(dial(w, "unix:/nonexistent/socket", &again));
}

static void test_failing_may_dial_again(void **state)
{
    struct world *w = (struct world *)*state;
    struct err e;
    struct net_connect_config config = {
        .address = "unix:/nonexistent/socket", .protocol = &w->client, .failed = dial_again, .context = w};
    assert_non_null(net_connect(w->loop, &config, &e));
    turn_until(w->loop, w->n_failed == 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_numeric_address_is_reached),
        TEST(test_a_name_is_looked_up_and_each_address_tried),
        TEST(test_an_empty_host_is_this_machine),
        TEST(test_a_unix_socket_is_reached),
        TEST(test_failures_are_told_once_with_a_reason),
        TEST(test_malformed_addresses_are_refused_at_once),
        TEST(test_a_silent_address_fails_at_the_time_limit),
        TEST(test_a_silent_tls_server_fails_at_the_time_limit),
        TEST(test_the_last_words_of_a_peer_that_resets_are_heard),
        TEST(test_an_aborted_dial_is_not_told),
        TEST(test_an_aborted_dial_leaves_nothing_behind),
        TEST(test_a_loop_may_go_in_the_middle_of_a_dial),
        TEST(test_failing_may_dial_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
