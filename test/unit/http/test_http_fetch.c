/* Fetches on the loop: against sockets that say what they are told to, and over TLS against our own server. */
#include "net/peer.h"

#include "http/http.h"
#include "net/certs.h"

struct world {
    struct net_loop *loop;
    struct http_client *client;
    int listening, fd; /* the server's end */
    char url[64];
    struct buf request;
};

/* What one fetch told. */
struct told {
    struct http_client **client;
    struct http_fetch *fetch;
    struct http_head head;
    struct buf body;
    int n_heads, n_done;
    const char *method, *content;
    bool has_error, refuses, cancels, frees_client, goes_on, is_long;
    struct err error;
    struct told *next; /* started from done, with this URL */
    const char *url;
};

static void start(struct told *t);

static void on_head(void *context, const struct http_head *head)
{
    struct told *t = (struct told *)context;
    t->head = *head;
    t->n_heads++;
}

static int on_body(void *context, const char *bytes, size_t len)
{
    struct told *t = (struct told *)context;
    (void)buf_append(&t->body, bytes, len);
    if (t->cancels)
        http_fetch_cancel(t->fetch);
    if (t->frees_client) {
        http_client_free(*t->client);
        *t->client = NULL;
    }
    return t->refuses ? -1 : 0;
}

static void on_done(void *context, const struct err *error)
{
    struct told *t = (struct told *)context;
    t->n_done++;
    t->has_error = error != NULL;
    if (error)
        t->error = *error;
    if (t->next)
        start(t->next);
}

static void start_with(struct told *t, int64_t timeout_ns, int64_t silence_ns)
{
    static const char *const headers[] = {"X-Mine: yes", NULL};
    if (!t->body.max_bytes)
        buf_init(&t->body, 1 << 20);
    t->fetch = http_fetch_start(*t->client, &(struct http_fetch_config){.url = t->url,
                                                                        .headers = headers,
                                                                        .method = t->method,
                                                                        .content = str_of(t->content ? t->content : ""),
                                                                        .timeout_ns = timeout_ns,
                                                                        .silence_ns = silence_ns,
                                                                        .is_long = t->is_long,
                                                                        .head = on_head,
                                                                        .body = on_body,
                                                                        .done = on_done,
                                                                        .context = t});
}

static void start(struct told *t)
{
    start_with(t, 0, 0);
}

static int set_up(void **state)
{
    struct world *w = mem_new(struct world);
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof(address);
    struct err e;
    w->loop = net_loop_new(NULL, &e);
    w->client = http_client_new(w->loop, &e);
    w->fd = -1;
    buf_init(&w->request, 65536);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    w->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(w->listening, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(w->listening, 8), 0);
    assert_int_equal(getsockname(w->listening, (struct sockaddr *)&address, &len), 0);
    (void)snprintf(w->url, sizeof(w->url), "http://127.0.0.1:%d/page?x=1", ntohs(address.sin_port));
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = (struct world *)*state;
    http_client_free(w->client);
    net_loop_free(w->loop);
    buf_fini(&w->request);
    (void)close(w->listening);
    if (w->fd >= 0)
        (void)close(w->fd);
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

static void test_an_answer_is_told_head_first_then_body_then_end(void **state)
{
    struct world *w = (struct world *)*state;
    struct told t = {.client = &w->client, .url = w->url};
    start(&t);
    turn_until(w->loop, has_request(w));
    assert_true(str_has_prefix(str_of(buf_cstr(&w->request)), "GET /page?x=1 HTTP/1.1\r\nHost: 127.0.0.1:"));
    assert_non_null(strstr(buf_cstr(&w->request), "\r\nX-Mine: yes\r\n"));
    assert_non_null(strstr(buf_cstr(&w->request), "\r\nUser-Agent: keda-gpu-scaler\r\n"));
    peer_say(w->fd, "HTTP/1.1 103 Early Hints\r\nDate: Thu, 01 Jan 1970 00:00:01 GMT\r\n\r\nHTTP/1.1 429 Too Many\r\n"
                    "Date: Mon, 30 Nov 2026 17:14:49 GMT\r\nRetry-After: 7\r\nTransfer-Encoding: chunked\r\n\r\n");
    turn_until(w->loop, t.n_heads > 0);
    assert_int_equal(t.head.status, 429);
    assert_double_same(t.head.date_s, 1796058889);
    assert_int_equal(t.head.retry_after_ns, 7 * NS_PER_S);
    peer_say(w->fd, "3\r\nabc\r\n");
    turn_until(w->loop, t.body.len == 3);
    assert_int_equal(t.n_done, 0);
    peer_say(w->fd, "2\r\nde\r\n0\r\nX-Trailer: 1\r\n\r\n");
    turn_until(w->loop, t.n_done > 0);
    assert_false(t.has_error);
    assert_string_equal(buf_cstr(&t.body), "abcde");
    assert_int_equal(t.n_heads, 1);
    buf_fini(&t.body);
}

static void test_what_is_sent_follows_its_head_at_once(void **state)
{
    struct world *w = (struct world *)*state;
    static char content[3001];
    memset(content, 'x', sizeof(content) - 1);
    struct told t = {.client = &w->client, .url = w->url, .method = "PATCH", .content = content};
    start(&t);
    content[0] = 'y'; /* it was copied */
    turn_until(w->loop, has_request(w) && str_has_suffix(str_of(buf_cstr(&w->request)), "xxx"));
    assert_true(str_has_prefix(str_of(buf_cstr(&w->request)), "PATCH /page?x=1 HTTP/1.1\r\n"));
    assert_non_null(strstr(buf_cstr(&w->request), "\r\nContent-Length: 3000\r\n"));
    assert_null(strstr(buf_cstr(&w->request), "Expect"));
    assert_non_null(strstr(buf_cstr(&w->request), "\r\n\r\nxxx"));
    peer_say(w->fd, "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}");
    turn_until(w->loop, t.n_done > 0);
    assert_false(t.has_error);
    assert_int_equal(t.head.status, 201);
    buf_fini(&t.body);
}

static void test_broken_answers_are_errors(void **state)
{
    static const char *const cases[] = {"", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
                                        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
                                        "SSH-2.0-x\r\n\r\n",
                                        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope"};
    struct world *w = (struct world *)*state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct told t = {.client = &w->client, .url = w->url};
        start(&t);
        turn_until(w->loop, has_request(w));
        peer_say(w->fd, cases[i]);
        (void)close(w->fd);
        w->fd = -1;
        turn_until(w->loop, t.n_done > 0);
        if (!t.has_error || t.error.class != ERR_UNAVAILABLE || !*t.error.text)
            fail_msg("case %zu: %d %s", i, t.error.class, t.error.text);
        buf_reset(&w->request);
        buf_fini(&t.body);
    }
}

static void test_who_is_not_there_is_an_error(void **state)
{
    static const char *const urls[] = {"http://127.0.0.1:1/", "https://127.0.0.1:1/", "ftp://127.0.0.1/",
                                       "file:///etc/passwd", "http://"};
    struct world *w = (struct world *)*state;
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        struct told t = {.client = &w->client, .url = urls[i]};
        start(&t);
        assert_int_equal(t.n_done, 0); /* never from inside */
        turn_until(w->loop, t.n_done > 0);
        assert_int_equal(t.error.class, ERR_UNAVAILABLE);
        assert_int_equal(t.n_heads, 0);
        buf_fini(&t.body);
    }
}

static void test_a_deadline_is_absolute_and_silence_starts_anew_with_each_byte(void **state)
{
    struct world *w = (struct world *)*state;
    struct told t = {.client = &w->client, .url = w->url};
    start_with(&t, 100 * NS_PER_S, 30 * NS_PER_S);
    turn_until(w->loop, has_request(w));
    net_loop_skip(w->loop, 20 * NS_PER_S);
    peer_say(w->fd, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n");
    turn_until(w->loop, t.n_heads > 0);
    net_loop_skip(w->loop, 20 * NS_PER_S);
    peer_say(w->fd, "x");
    turn_until(w->loop, t.body.len == 1);
    net_loop_skip(w->loop, 31 * NS_PER_S);
    turn_now(w->loop, t.n_done == 1);
    assert_int_equal(t.error.class, ERR_DEADLINE_EXCEEDED);
    assert_string_equal(t.error.text, "nothing was heard for too long");
    buf_fini(&t.body);

    struct told late = {.client = &w->client, .url = w->url};
    start_with(&late, 100 * NS_PER_S, 0);
    turn_some(w->loop);
    assert_int_equal(late.n_done, 0);
    net_loop_skip(w->loop, 101 * NS_PER_S);
    turn_now(w->loop, late.n_done == 1);
    assert_int_equal(late.error.class, ERR_DEADLINE_EXCEEDED);
    buf_fini(&late.body);
}

#define ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

static void test_a_body_may_be_refused_cancelled_and_the_client_freed_from_inside(void **state)
{
    struct world *w = (struct world *)*state;
    for (int how = 0; how < 3; how++) {
        struct told t = {
            .client = &w->client, .url = w->url, .refuses = how == 0, .cancels = how == 1, .frees_client = how == 2};
        start(&t);
        turn_until(w->loop, has_request(w));
        peer_say(w->fd, ANSWER);
        turn_until(w->loop, t.body.len == 2);
        turn_some(w->loop);
        assert_int_equal(t.n_done, how == 0);
        if (how == 0)
            assert_int_equal(t.error.class, ERR_CANCELLED);
        (void)close(w->fd);
        w->fd = -1;
        buf_reset(&w->request);
        buf_fini(&t.body);
    }
}

static void test_a_cancelled_fetch_is_silent(void **state)
{
    struct world *w = (struct world *)*state;
    struct told t = {.client = &w->client, .url = w->url};
    start(&t);
    http_fetch_cancel(t.fetch);
    start(&t);
    turn_until(w->loop, has_request(w));
    http_fetch_cancel(t.fetch);
    turn_some(w->loop);
    assert_int_equal(t.n_heads + t.n_done, 0);
    char byte;
    turn_until(w->loop, recv(w->fd, &byte, 1, MSG_DONTWAIT) == 0); /* the connection is closed */
    buf_fini(&t.body);
}

/* The second is started from inside the first one's end, on the same connection. */
static void test_connections_are_kept_and_fetches_may_start_fetches(void **state)
{
    struct world *w = (struct world *)*state;
    struct told second = {.client = &w->client, .url = w->url};
    struct told first = {.client = &w->client, .url = w->url, .next = &second};
    start(&first);
    turn_until(w->loop, has_request(w));
    buf_reset(&w->request);
    peer_say(w->fd, ANSWER);
    turn_until(w->loop, has_request(w)); /* on w->fd */
    assert_int_equal(first.n_done, 1);
    peer_say(w->fd, ANSWER);
    turn_until(w->loop, second.n_done == 1);
    assert_false(second.has_error);
    assert_string_equal(buf_cstr(&second.body), "ok");
    buf_fini(&first.body);
    buf_fini(&second.body);
}

/* More of them than connections are kept. */
static void test_long_fetches_have_connections_of_their_own_and_cost_others_none(void **state)
{
    enum { LONG = 40 };
    struct world *w = (struct world *)*state;
    struct told longs[LONG];
    int fds[LONG];
    char byte;
    for (size_t i = 0; i < LONG; i++) {
        longs[i] = (struct told){.client = &w->client, .url = w->url, .is_long = true};
        start(&longs[i]);
        fds[i] = -1;
        turn_until(w->loop, fds[i] >= 0 || (fds[i] = accept4(w->listening, NULL, NULL, SOCK_CLOEXEC)) >= 0);
    }
    struct told second = {.client = &w->client, .url = w->url};
    struct told first = {.client = &w->client, .url = w->url, .next = &second};
    start(&first);
    turn_until(w->loop, has_request(w));
    buf_reset(&w->request);
    peer_say(w->fd, ANSWER);
    turn_until(w->loop, has_request(w)); /* on w->fd */
    peer_say(w->fd, ANSWER);
    turn_until(w->loop, second.n_done == 1);
    struct buf request;
    buf_init(&request, 65536);
    turn_until(w->loop, peer_read(fds[0], &request) && strstr(buf_cstr(&request), "\r\n\r\n"));
    peer_say(fds[0], ANSWER);
    turn_until(w->loop, longs[0].n_done == 1);
    assert_string_equal(buf_cstr(&longs[0].body), "ok");
    turn_until(w->loop, recv(fds[0], &byte, 1, MSG_DONTWAIT) == 0);
    for (size_t i = 1; i < LONG; i++)
        http_fetch_cancel(longs[i].fetch);
    for (size_t i = 0; i < LONG; i++) {
        (void)close(fds[i]);
        buf_fini(&longs[i].body);
    }
    buf_fini(&request);
    buf_fini(&first.body);
    buf_fini(&second.body);
}

static void test_redirects_are_not_followed(void **state)
{
    struct world *w = (struct world *)*state;
    struct told t = {.client = &w->client, .url = w->url};
    start(&t);
    turn_until(w->loop, has_request(w));
    peer_say(w->fd, "HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n");
    turn_until(w->loop, t.n_done == 1);
    assert_int_equal(t.head.status, 302);
    buf_fini(&t.body);
}

static void test_the_given_proxy_is_used_and_the_environment_is_not(void **state)
{
    struct world *w = (struct world *)*state;
    struct told t = {.client = &w->client, .url = w->url};
    (void)setenv("http_proxy", "http://127.0.0.1:1", 1);
    (void)setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
    start(&t);
    turn_until(w->loop, has_request(w) || t.n_done > 0);
    assert_true(str_has_prefix(str_of(buf_cstr(&w->request)), "GET /page?x=1 HTTP/1.1\r\n"));
    http_fetch_cancel(t.fetch);
    (void)close(w->fd);
    w->fd = -1;
    buf_reset(&w->request);
    http_client_set_proxy(w->client, w->url);
    t.url = "http://elsewhere.invalid/x";
    start(&t);
    turn_until(w->loop, has_request(w));
    assert_true(str_has_prefix(str_of(buf_cstr(&w->request)), "GET http://elsewhere.invalid/x HTTP/1.1\r\n"));
    (void)unsetenv("http_proxy");
    (void)unsetenv("ALL_PROXY");
    buf_fini(&t.body);
}

/* ---- TLS ---- */

struct tls_world {
    struct net_tls *tls;
    struct net_gets *gets;
    struct metrics *metrics;
    struct http_server *server;
    struct net_listener *listener;
    char dir[32], url[64];
    struct buf ca, other_ca, cert, key, locked_key;
};

static void say_ok(void *context, const struct net_get_request *request, struct net_get_response *response)
{
    (void)context;
    (void)request;
    (void)buf_append_str(&response->body, "ok");
}

static void read_pem(const struct tls_world *t, const char *name, struct buf *into)
{
    struct err e;
    char path[CERT_PATH_MAX];
    buf_init(into, 65536);
    (void)snprintf(path, sizeof(path), "%s/%s", t->dir, name);
    assert_int_equal(file_read(path, into, &e), 0);
    (void)buf_cstr(into);
}

static void tls_files(struct tls_world *t)
{
    struct cert ca = cert_make(&(struct cert_request){.name = "ca"});
    struct cert other = cert_make(&(struct cert_request){.name = "other"});
    struct cert server =
        cert_make(&(struct cert_request){.name = "s", .san = "IP:127.0.0.1", .signer = &ca, .serial = 2});
    struct cert client = cert_make(&(struct cert_request){.name = "c", .san = "DNS:c", .signer = &ca, .serial = 3});
    struct cert *all[] = {&ca, &other, &server, &client};
    static const char *const names[] = {"ca", "other", "server", "client"};
    (void)str_copy(t->dir, sizeof(t->dir), str_of("/tmp/test-fetch-XXXXXX"));
    assert_non_null(mkdtemp(t->dir));
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        cert_write(all[i], t->dir, names[i], NULL);
    cert_write(&client, t->dir, "locked", "sesame");
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        cert_free(all[i]);
    read_pem(t, "ca.crt", &t->ca);
    read_pem(t, "other.crt", &t->other_ca);
    read_pem(t, "client.crt", &t->cert);
    read_pem(t, "client.key", &t->key);
    read_pem(t, "locked.key", &t->locked_key);
}

static void tls_start(struct tls_world *t, struct net_loop *loop)
{
    struct err e = {0};
    char cert[CERT_PATH_MAX], key[CERT_PATH_MAX], ca[CERT_PATH_MAX];
    tls_files(t);
    (void)snprintf(cert, sizeof(cert), "%s/server.crt", t->dir);
    (void)snprintf(key, sizeof(key), "%s/server.key", t->dir);
    (void)snprintf(ca, sizeof(ca), "%s/ca.crt", t->dir);
    t->tls = net_tls_server_new(loop, &(struct net_tls_files){.cert = cert, .key = key, .ca = ca}, &e);
    t->gets = net_gets_new();
    t->metrics = metrics_new();
    net_gets_add(t->gets, "/page", say_ok, NULL);
    t->server = http_server_new(t->gets, t->metrics);
    t->listener = net_listen(
        loop,
        &(struct net_listen_config){.address = "127.0.0.1:0", .tls = t->tls, .http1 = http_server_protocol(t->server)},
        &e);
    assert_non_null(t->listener);
    (void)snprintf(t->url, sizeof(t->url), "https://127.0.0.1:%d/page", net_listener_port(t->listener));
}

static void tls_stop(struct tls_world *t)
{
    static const char *const names[] = {"ca", "other", "server", "client", "locked"};
    struct buf *texts[] = {&t->ca, &t->other_ca, &t->cert, &t->key, &t->locked_key};
    char path[CERT_PATH_MAX];
    net_listener_free(t->listener);
    http_server_free(t->server);
    net_tls_free(t->tls);
    net_gets_free(t->gets);
    metrics_free(t->metrics);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s.crt", t->dir, names[i]);
        (void)unlink(path);
        (void)snprintf(path, sizeof(path), "%s/%s.key", t->dir, names[i]);
        (void)unlink(path);
        buf_fini(texts[i]);
    }
    assert_int_equal(rmdir(t->dir), 0);
}

/* The server demands a certificate. Nothing but the given authority is trusted. */
static void test_tls_trusts_the_given_authority_and_shows_the_given_certificate(void **state)
{
    struct world *w = (struct world *)*state;
    struct tls_world t = {0};
    tls_start(&t, w->loop);
    struct str ca = str_of(buf_cstr(&t.ca)), other = str_of(buf_cstr(&t.other_ca)), cert = str_of(buf_cstr(&t.cert));
    struct str key = str_of(buf_cstr(&t.key)), locked = str_of(buf_cstr(&t.locked_key)), none = {0};
    const struct {
        struct str ca, cert, key;
        bool is_insecure, want;
    } cases[] = {{ca, cert, locked, false, false}, /* first: a kept connection needs no key */
                 {ca, cert, key, false, true},     {other, cert, key, false, false},
                 {none, cert, key, false, false},  {other, cert, key, true, true},
                 {ca, none, none, false, false},   {str_of("no PEM"), cert, key, false, false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct told told = {.client = &w->client, .url = t.url};
        http_client_set_tls(w->client,
                            &(struct http_client_tls){cases[i].ca, cases[i].cert, cases[i].key, cases[i].is_insecure});
        start(&told);
        turn_until(w->loop, told.n_done == 1);
        if (told.has_error == cases[i].want)
            fail_msg("case %zu: %s", i, told.error.text);
        if (told.has_error)
            assert_int_equal(told.error.class, ERR_UNAVAILABLE);
        else
            assert_string_equal(buf_cstr(&told.body), "ok");
        buf_fini(&told.body);
    }
    http_client_free(w->client);
    w->client = NULL;
    tls_stop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_an_answer_is_told_head_first_then_body_then_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_sent_follows_its_head_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_broken_answers_are_errors, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_who_is_not_there_is_an_error, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_deadline_is_absolute_and_silence_starts_anew_with_each_byte, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_body_may_be_refused_cancelled_and_the_client_freed_from_inside, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_cancelled_fetch_is_silent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_connections_are_kept_and_fetches_may_start_fetches, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_long_fetches_have_connections_of_their_own_and_cost_others_none, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_redirects_are_not_followed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_given_proxy_is_used_and_the_environment_is_not, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_tls_trusts_the_given_authority_and_shows_the_given_certificate, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
