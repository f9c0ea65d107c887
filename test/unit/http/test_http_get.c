/* The blocking GET, against our own server and against scripted ones in a thread. */
#include "net/peer.h"

#include "http/http.h"

#include <pthread.h>

/* A server in a thread: accepts one connection, reads the request's head, says what it is told to, and closes. */
struct scripted {
    int listening;
    const char *reply;
    bool is_silent; /* keeps the connection open until the peer leaves */
    char request[512];
    pthread_t thread;
    char address[64];
};

static void *serve(void *context)
{
    struct scripted *s = (struct scripted *)context;
    int fd = accept(s->listening, NULL, NULL);
    size_t len = 0;
    while (fd >= 0 && len + 1 < sizeof(s->request) && !strstr(s->request, "\r\n\r\n")) {
        ssize_t n = recv(fd, s->request + len, sizeof(s->request) - 1 - len, 0);
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    (void)send(fd, s->reply, strlen(s->reply), MSG_NOSIGNAL);
    char byte;
    if (s->is_silent)
        (void)recv(fd, &byte, 1, 0);
    (void)close(fd);
    return NULL;
}

static void scripted_start(struct scripted *s)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof(address);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    s->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->listening, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(s->listening, 1), 0);
    assert_int_equal(getsockname(s->listening, (struct sockaddr *)&address, &len), 0);
    (void)snprintf(s->address, sizeof(s->address), "127.0.0.1:%d", ntohs(address.sin_port));
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void scripted_stop(struct scripted *s)
{
    assert_int_equal(pthread_join(s->thread, NULL), 0);
    (void)close(s->listening);
}

static void test_replies_of_all_kinds(void **state)
{
    static const struct {
        const char *reply;
        int status;               /* -1: an error */
        const char *body_or_text; /* of the error */
    } cases[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more", 200, "ok"},
        {"HTTP/1.0 200 OK\r\n\r\nuntil the end", 200, "until the end"},
        {"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n", 503, ""},
        {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", -1, "the connection ended before the answer did"},
        {"HTTP/1.1 200 OK\r\n", -1, "the connection ended before the answer did"},
        {"", -1, "the connection ended before the answer did"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", -1, "is not HTTP/1"},
        {"SSH-2.0-OpenSSH_9\r\n\r\n", -1, "is not HTTP/1"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"
         "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789",
         -1, "larger than the limit"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct scripted s = {.reply = cases[i].reply};
        struct err e = {0};
        BUF_AUTO struct buf body;
        buf_init(&body, 64);
        scripted_start(&s);
        int status = http_get_blocking(s.address, "/readyz?verbose", 10 * NS_PER_S, &body, &e);
        scripted_stop(&s);
        if (status != cases[i].status)
            print_error("case %zu: %d %s\n", i, status, e.text);
        assert_int_equal(status, cases[i].status);
        if (status < 0)
            assert_non_null(strstr(e.text, cases[i].body_or_text));
        else
            assert_string_equal(buf_cstr(&body), cases[i].body_or_text);
        assert_true(str_has_prefix(str_of(s.request), "GET /readyz?verbose HTTP/1.0\r\nHost: 127.0.0.1:"));
    }
}

static void test_a_silent_server_fails_at_the_time_limit(void **state)
{
    struct scripted s = {.reply = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", .is_silent = true};
    struct err e = {0};
    BUF_AUTO struct buf body;
    (void)state;
    buf_init(&body, 64);
    scripted_start(&s);
    assert_int_equal(http_get_blocking(s.address, "/", 50 * NS_PER_MS, &body, &e), -1);
    assert_int_equal(e.class, ERR_DEADLINE_EXCEEDED);
    scripted_stop(&s);
}

static void test_what_cannot_be_asked_is_refused(void **state)
{
    static const char *const cases[][3] = {
        {"127.0.0.1:80", "no-slash", "must begin with /"}, {"127.0.0.1:80", "/a b", "percent-encoded"},
        {"127.0.0.1:80", "/a\r\nX: y", "percent-encoded"}, {"nonsense", "/", "host:port"},
        {"unix:/nonexistent/socket", "/", "No such file"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = {0};
        BUF_AUTO struct buf body;
        buf_init(&body, 64);
        assert_int_equal(http_get_blocking(cases[i][0], cases[i][1], NS_PER_S, &body, &e), -1);
        if (!strstr(e.text, cases[i][2]))
            print_error("%s\n", e.text);
        assert_non_null(strstr(e.text, cases[i][2]));
    }
}

static void stop(void *context)
{
    net_loop_stop((struct net_loop *)context);
}

static void say_ok(void *context, const struct net_get_request *request, struct net_get_response *response)
{
    (void)context;
    (void)request;
    (void)buf_append_str(&response->body, "ok");
}

static void *run_loop(void *context)
{
    net_loop_run((struct net_loop *)context);
    return NULL;
}

static void test_our_own_server_answers_it(void **state)
{
    struct err e = {0};
    struct metrics *metrics = metrics_new();
    struct net_loop *loop = net_loop_new(metrics, &e);
    struct net_gets *gets = net_gets_new();
    struct http_server *server = http_server_new(gets, metrics);
    struct net_listen_config config = {.address = ":0", .http1 = http_server_protocol(server)};
    struct net_wakeup *wakeup = net_wakeup_new(loop, stop, loop, &e);
    BUF_AUTO struct buf body;
    pthread_t thread;
    char address[64];
    (void)state;
    net_gets_add(gets, "/livez", say_ok, NULL);
    struct net_listener *listener = net_listen(loop, &config, &e);
    assert_non_null(listener);
    (void)snprintf(address, sizeof(address), "localhost:%d", net_listener_port(listener));
    buf_init(&body, 64);
    assert_int_equal(pthread_create(&thread, NULL, run_loop, loop), 0);
    int status = http_get_blocking(address, "/livez", 10 * NS_PER_S, &body, &e);
    net_wakeup_send(wakeup);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(status, 200);
    assert_string_equal(buf_cstr(&body), "ok");
    net_wakeup_free(wakeup);
    net_listener_free(listener);
    http_server_free(server);
    net_gets_free(gets);
    net_loop_free(loop);
    metrics_free(metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replies_of_all_kinds),
        cmocka_unit_test(test_a_silent_server_fails_at_the_time_limit),
        cmocka_unit_test(test_what_cannot_be_asked_is_refused),
        cmocka_unit_test(test_our_own_server_answers_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
