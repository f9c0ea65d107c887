/* Listeners: what they bind to, stale socket files, and why one cannot be had. Connections are test_net_conn.c's. */
#include "net/peer.h"

#include <sys/stat.h>
#include <sys/un.h>

struct world {
    struct net_loop *loop;
    struct net_listener *listener;
    struct net_protocol echo;
    int n_open;
    char peer[64]; /* of the newest connection */
    struct buf got;
};

static void *open_echo(void *context, struct net_conn *conn)
{
    struct world *w = (struct world *)context;
    w->n_open++;
    (void)snprintf(w->peer, sizeof(w->peer), "%s", net_conn_peer(conn));
    return conn;
}

static int echo(void *context, const uint8_t *bytes, size_t len)
{
    return net_conn_send((struct net_conn *)context, bytes, len);
}

static void close_echo(void *context)
{
    (void)context;
}

static void listen_at(struct world *w, const char *address)
{
    struct err e = {0};
    struct net_listen_config config = {.address = address, .h2 = &w->echo};
    w->listener = net_listen(w->loop, &config, &e);
    if (!w->listener)
        print_error("%s\n", e.text);
    assert_non_null(w->listener);
}

static int set_up(void **state)
{
    struct world *w = mem_new(struct world);
    struct err e;
    w->loop = net_loop_new(NULL, &e);
    w->echo = (struct net_protocol){"echo", "h2", w, open_echo, echo, NULL, NULL, close_echo, NULL};
    buf_init(&w->got, 1024);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = (struct world *)*state;
    net_listener_free(w->listener);
    net_loop_free(w->loop);
    buf_fini(&w->got);
    free(w);
    return 0;
}

static bool has_ipv6(void)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool has = fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0;
    if (fd >= 0)
        (void)close(fd);
    return has;
}

static void test_a_bare_port_takes_both_families(void **state)
{
    struct world *w = (struct world *)*state;
    listen_at(w, ":0");
    int v4 = peer_connect(net_listener_port(w->listener));
    peer_say(v4, "x");
    turn_until(w->loop, w->n_open == 1);
    assert_true(str_has_prefix(str_of(w->peer), "127.0.0.1:"));
    (void)close(v4);
    if (!has_ipv6())
        return;
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    address.sin6_port = htons((uint16_t)net_listener_port(w->listener));
    int v6 = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(v6, (const struct sockaddr *)&address, sizeof(address)), 0);
    peer_say(v6, "x");
    turn_until(w->loop, w->n_open == 2);
    assert_true(str_has_prefix(str_of(w->peer), "[::1]:"));
    (void)close(v6);
}

static void test_a_unix_socket_is_replaced_when_stale_and_removed_at_the_end(void **state)
{
    struct world *w = (struct world *)*state;
    char dir[] = "/tmp/net-test-XXXXXX", address[80], path[64];
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/socket", dir);
    (void)snprintf(address, sizeof(address), "unix:%s", path);
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    memcpy(un.sun_path, path, strlen(path) + 1);
    int stale = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(stale, (const struct sockaddr *)&un, sizeof(un)), 0);
    (void)close(stale);

    listen_at(w, address);
    assert_string_equal(net_listener_address(w->listener), address);
    assert_int_equal(net_listener_port(w->listener), 0);
    struct err e;
    struct net_listen_config second = {.address = address, .h2 = &w->echo};
    assert_null(net_listen(w->loop, &second, &e)); /* a live one is not taken over */
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&un, sizeof(un)), 0);
    peer_say(fd, "hello");
    peer_expect(w->loop, fd, &w->got, "hello");
    assert_string_equal(w->peer, "unix");
    (void)close(fd);
    net_listener_free(w->listener);
    w->listener = NULL;
    struct stat st;
    assert_int_equal(stat(path, &st), -1);
    assert_int_equal(rmdir(dir), 0);
}

/* A path in a folder of its own, and the address that listens there. */
static void make_path(char path[64], char address[80])
{
    char dir[] = "/tmp/net-test-XXXXXX";
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, 64, "%s/socket", dir);
    (void)snprintf(address, 80, "unix:%s", path);
}

static void remove_path(char path[64])
{
    assert_int_equal(unlink(path), 0);
    *strrchr(path, '/') = '\0';
    assert_int_equal(rmdir(path), 0);
}

static void test_a_file_that_is_no_socket_is_left_alone(void **state)
{
    struct world *w = (struct world *)*state;
    char path[64], address[80];
    struct err e;
    make_path(path, address);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    struct net_listen_config config = {.address = address, .h2 = &w->echo};
    assert_null(net_listen(w->loop, &config, &e));
    assert_non_null(strstr(e.text, "not a socket"));
    remove_path(path); /* it is still there */
}

static void test_a_socket_file_of_somebody_else_is_not_removed(void **state)
{
    struct world *w = (struct world *)*state;
    char path[64], address[80];
    make_path(path, address);
    listen_at(w, address);
    assert_int_equal(unlink(path), 0); /* somebody tidied up, and another program took the place */
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    memcpy(un.sun_path, path, strlen(path) + 1);
    int other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(other, (const struct sockaddr *)&un, sizeof(un)), 0);
    net_listener_free(w->listener);
    w->listener = NULL;
    remove_path(path);
    (void)close(other);
}

/* Half of it is what sessions fill, one HTTP/2 frame at a time. */
static void test_output_smaller_than_a_few_frames_is_refused(void **state)
{
    struct world *w = (struct world *)*state;
    struct err e;
    struct net_limits limits = net_limits_default;
    struct net_listen_config config = {.address = "127.0.0.1:0", .h2 = &w->echo, .limits = &limits};
    limits.values[NET_LIMIT_OUTPUT_BYTES] = 65535;
    assert_null(net_listen(w->loop, &config, &e));
    assert_int_equal(e.class, ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(e.text, "output_bytes"));
    limits.values[NET_LIMIT_OUTPUT_BYTES] = 65536;
    w->listener = net_listen(w->loop, &config, &e);
    assert_non_null(w->listener);
}

static void test_listening_fails_with_a_reason(void **state)
{
    struct world *w = (struct world *)*state;
    char taken[64], long_path[200];
    listen_at(w, "127.0.0.1:0");
    (void)snprintf(taken, sizeof(taken), "127.0.0.1:%d", net_listener_port(w->listener));
    memset(long_path, 'a', sizeof(long_path));
    memcpy(long_path, "unix:/", 6);
    long_path[199] = '\0';
    const struct {
        const char *address, *text;
    } cases[] = {
        {taken, "Address already in use"},
        {"203.0.113.1:1", "Cannot assign requested address"},
        {"nonsense", "host:port"},
        {"unix:", "1 to 107 bytes"},
        {long_path, "1 to 107 bytes"},
        {"unix:/nonexistent/dir/socket", "No such file"},
        {"no-such-name.invalid:1", "cannot listen on no-such-name.invalid:1"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = {0};
        struct net_listen_config config = {.address = cases[i].address, .h2 = &w->echo};
        assert_null(net_listen(w->loop, &config, &e));
        if (!strstr(e.text, cases[i].text))
            print_error("%s: %s\n", cases[i].address, e.text);
        assert_non_null(strstr(e.text, cases[i].text));
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_bare_port_takes_both_families),
        TEST(test_a_unix_socket_is_replaced_when_stale_and_removed_at_the_end),
        TEST(test_a_file_that_is_no_socket_is_left_alone),
        TEST(test_a_socket_file_of_somebody_else_is_not_removed),
        TEST(test_output_smaller_than_a_few_frames_is_refused),
        TEST(test_listening_fails_with_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
