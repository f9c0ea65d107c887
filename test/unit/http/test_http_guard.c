/* Guarded fetches: each address of a name is judged before it is connected to. */
#include "net/peer.h"

#include "http/http.h"
#include "net/names.h"

enum { ASKED_MAX = 8 };

struct world {
    struct net_loop *loop;
    struct http_client *client;
    int listening, port, fd;
    struct buf request;
    char asked[ASKED_MAX][64]; /* what the guard was asked about */
    size_t n_asked;
    /* one fetch */
    int n_done, status;
    struct err error;
    bool has_error;
};

static const struct test_name names[] = {
    {"good.test", {"127.0.0.1"}},
    {"bad.test", {"169.254.169.254"}},
    {"mapped.test", {"::ffff:169.254.169.254"}},
    {"both.test", {"169.254.169.254", "127.0.0.1"}},
    {"mapped-first.test", {"::ffff:169.254.169.254", "fe80::1", "127.0.0.1"}},
    {"closed.test", {"169.254.169.254", "127.0.0.2"}},
    {NULL, {NULL}},
};

/* Base's table, as engine's guard does. */
static const char *judge(void *context, const char *address)
{
    struct world *w = (struct world *)context;
    struct ip ip;
    assert_true(w->n_asked < ASKED_MAX);
    (void)str_copy(w->asked[w->n_asked++], 64, str_of(address));
    return ip_parse(str_of(address), &ip) < 0 ? "is no address" : ip_fault(&ip);
}

static void on_head(void *context, const struct http_head *head)
{
    ((struct world *)context)->status = head->status;
}

static int on_body(void *context, const char *bytes, size_t len)
{
    (void)context;
    (void)bytes;
    (void)len;
    return 0;
}

static void on_done(void *context, const struct err *error)
{
    struct world *w = (struct world *)context;
    w->n_done++;
    w->has_error = error != NULL;
    if (error)
        w->error = *error;
}

static void start(struct world *w, const char *authority, bool is_guarded)
{
    char url[128];
    (void)snprintf(url, sizeof(url), "http://%s:%d/metrics", authority, w->port);
    w->n_done = w->status = 0;
    w->n_asked = 0;
    w->error = (struct err){0};
    buf_reset(&w->request);
    (void)http_fetch_start(w->client, &(struct http_fetch_config){.url = url,
                                                                  .timeout_ns = 5 * NS_PER_S,
                                                                  .address_fault = is_guarded ? judge : NULL,
                                                                  .head = on_head,
                                                                  .body = on_body,
                                                                  .done = on_done,
                                                                  .context = w});
}

static int set_up(void **state)
{
    struct world *w = mem_new(struct world);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    struct err e;
    test_names = names;
    w->loop = net_loop_new(NULL, &e);
    w->client = http_client_new(w->loop, &e);
    w->fd = -1;
    buf_init(&w->request, 65536);
    w->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(w->listening, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(w->listening, 8), 0);
    assert_int_equal(getsockname(w->listening, (struct sockaddr *)&address, &len), 0);
    w->port = ntohs(address.sin_port);
    *state = w;
    return 0;
}

static void hang_up(struct world *w)
{
    if (w->fd >= 0)
        (void)close(w->fd);
    w->fd = -1;
}

static int tear_down(void **state)
{
    struct world *w = (struct world *)*state;
    http_client_free(w->client);
    net_loop_free(w->loop);
    buf_fini(&w->request);
    hang_up(w);
    (void)close(w->listening);
    free(w);
    return 0;
}

static bool has_request(struct world *w)
{
    if (w->fd < 0)
        w->fd = accept4(w->listening, NULL, NULL, SOCK_CLOEXEC);
    if (w->fd >= 0)
        (void)peer_read(w->fd, &w->request);
    return strstr(buf_cstr(&w->request), "\r\n\r\n") != NULL;
}

static void answer(struct world *w, const char *text)
{
    turn_until(w->loop, has_request(w) || w->n_done > 0);
    if (w->n_done > 0)
        fail_msg("%s", w->error.text);
    peer_say(w->fd, text);
    turn_until(w->loop, w->n_done > 0);
}

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

static void test_a_name_is_judged_by_what_it_resolves_to(void **state)
{
    static const struct {
        const char *name, *want; /* NULL: the page is fetched */
    } cases[] = {
        {"good.test", NULL},
        {"127.0.0.1", NULL},
        {"both.test", NULL},
        {"mapped-first.test", NULL},
        {"bad.test", "its address 169.254.169.254 is a link-local address"},
        {"mapped.test", "its address ::ffff:169.254.169.254 is a link-local address"},
        {"169.254.169.254", "its address 169.254.169.254 is a link-local address"},
        {"0xa9fea9fe", "its address 169.254.169.254 is a link-local address"},
        {"2852039166", "its address 169.254.169.254 is a link-local address"},
        {"[::ffff:a9fe:a9fe]", "its address ::ffff:169.254.169.254 is a link-local address"},
        {"[64:ff9b::a9fe:a9fe]", "its address 64:ff9b::a9fe:a9fe is a link-local address"},
        {"[fe80::1%25lo]", "its address fe80::1 is a link-local address"},
        {"user:secret@good.test", "the URL has a user name or password in it"},
        {"user@127.0.0.1", "the URL has a user name or password in it"},
    };
    struct world *w = (struct world *)*state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        start(w, cases[i].name, true);
        assert_int_equal(w->n_done, 0); /* never from inside */
        if (!cases[i].want) {
            answer(w, OK);
            assert_int_equal(w->status, 200);
            hang_up(w);
        } else {
            turn_until(w->loop, w->n_done > 0);
            if (w->error.class != ERR_PERMISSION_DENIED || strcmp(w->error.text, cases[i].want) != 0)
                fail_msg("%s: %s: %s", cases[i].name, err_class_name(w->error.class), w->error.text);
            assert_int_equal(accept4(w->listening, NULL, NULL, SOCK_CLOEXEC), -1);
        }
    }
}

/* A good address that does not answer is not a refused one. */
static void test_where_a_good_address_does_not_answer_the_fetch_was_not_forbidden(void **state)
{
    struct world *w = (struct world *)*state;
    start(w, "closed.test", true);
    turn_until(w->loop, w->n_done > 0);
    assert_int_equal(w->error.class, ERR_UNAVAILABLE);
    assert_int_equal(w->n_asked, 2);
}

/* The host and port are the same, and the connection of the first is still open. */
static void test_connections_made_without_the_guard_are_not_used_with_it(void **state)
{
    struct world *w = (struct world *)*state;
    for (int i = 0; i < 3; i++) { /* without, with, and with again */
        start(w, "good.test", i > 0);
        if (i > 0) {
            int kept = w->fd;
            w->fd = -1;
            answer(w, OK);
            assert_int_equal(w->n_asked, 1);
            assert_string_equal(w->asked[0], "127.0.0.1");
            (void)close(kept);
        } else {
            answer(w, OK);
            assert_int_equal(w->n_asked, 0);
        }
        assert_false(w->has_error);
    }
}

static void test_redirects_and_proxies_are_not_taken(void **state)
{
    struct world *w = (struct world *)*state;
    http_client_set_proxy(w->client, "http://127.0.0.1:1");
    start(w, "good.test", true);
    answer(w, "HTTP/1.1 302 Found\r\nLocation: http://bad.test/\r\nContent-Length: 0\r\n\r\n");
    assert_int_equal(w->status, 302);
    assert_int_equal(w->n_asked, 1);
}

static void test_a_head_without_an_end_is_an_error(void **state)
{
    struct world *w = (struct world *)*state;
    char line[1024] = "X-Filler: ";
    memset(line + 10, 'x', sizeof(line) - 13);
    memcpy(line + sizeof(line) - 3, "\r\n", 3);
    start(w, "good.test", true);
    turn_until(w->loop, has_request(w));
    peer_say(w->fd, "HTTP/1.1 200 OK\r\n");
    for (int i = 0; i < 65; i++)
        peer_say(w->fd, line);
    turn_until(w->loop, w->n_done > 0);
    assert_string_equal(w->error.text, "the head of the answer is longer than 64 kB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_name_is_judged_by_what_it_resolves_to, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_where_a_good_address_does_not_answer_the_fetch_was_not_forbidden, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_connections_made_without_the_guard_are_not_used_with_it, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_redirects_and_proxies_are_not_taken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_head_without_an_end_is_an_error, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
