/* Who is trusted, who is told the token, and what endpoints may be: files that change, TLS pods, guarded endpoints. */
#define POD_NET "127.22.0."
#include "engine/pods.h"
#include "net/certs.h"
#include "net/names.h"

static const struct test_name names[] = {
    {"good.test", {"127.22.0.1"}},
    {"bad.test", {"169.254.169.254"}},
    {"mapped.test", {"::ffff:169.254.169.254"}},
    {"both.test", {"169.254.169.254", "127.22.0.1"}},
    {NULL, {NULL}},
};

/* ---- a pod that speaks TLS ---- */

struct tls_pod {
    struct net_tls *tls;
    struct net_listener *listener;
    struct net_protocol protocol;
    char url[64];
    struct buf request; /* the last one, whole */
    size_t n_requests;
};
struct session {
    struct tls_pod *pod;
    struct net_conn *conn;
    struct buf request;
};

static void *session_open(void *context, struct net_conn *conn)
{
    struct session *s = mem_new(struct session);
    s->pod = (struct tls_pod *)context;
    s->conn = conn;
    buf_init(&s->request, 65536);
    return s;
}

static int session_receive(void *session, const uint8_t *bytes, size_t len)
{
    struct session *s = (struct session *)session;
    (void)buf_append(&s->request, bytes, len);
    if (!strstr(buf_cstr(&s->request), "\r\n\r\n"))
        return 0;
    buf_reset(&s->pod->request);
    (void)buf_append(&s->pod->request, s->request.data, s->request.len);
    buf_reset(&s->request);
    s->pod->n_requests++;
    net_conn_established(s->conn);
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 188\r\n\r\n" VLLM_PAGE;
    return net_conn_send(s->conn, answer, sizeof(answer) - 1);
}

static void session_close(void *session)
{
    struct session *s = (struct session *)session;
    buf_fini(&s->request);
    free(s);
}

static void tls_pod_open(struct tls_pod *pod, struct net_loop *loop, const struct net_tls_files *files)
{
    struct err e = {0};
    *pod = (struct tls_pod){.protocol = {.name = "page",
                                         .alpn = "http/1.1",
                                         .context = pod,
                                         .open = session_open,
                                         .receive = session_receive,
                                         .close = session_close}};
    buf_init(&pod->request, 65536);
    pod->tls = net_tls_server_new(loop, files, &e);
    if (!pod->tls)
        fail_msg("%s", e.text);
    pod->listener = net_listen(
        loop, &(struct net_listen_config){.address = "127.0.0.1:0", .tls = pod->tls, .http1 = &pod->protocol}, &e);
    if (!pod->listener)
        fail_msg("%s", e.text);
    (void)snprintf(pod->url, sizeof(pod->url), "https://127.0.0.1:%d/metrics", net_listener_port(pod->listener));
}

static void tls_pod_close(struct tls_pod *pod)
{
    net_listener_free(pod->listener);
    net_tls_free(pod->tls);
    buf_fini(&pod->request);
}

/* ---- a folder of files ---- */

struct folder {
    char path[32];
    char ca[CERT_PATH_MAX], cert[CERT_PATH_MAX], key[CERT_PATH_MAX], token[CERT_PATH_MAX];
    char server_cert[CERT_PATH_MAX], server_key[CERT_PATH_MAX], other_ca[CERT_PATH_MAX];
};

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* As Kubernetes does: the new file takes the name of the old one. */
static void replace_file(const char *path, const char *from)
{
    char fresh[CERT_PATH_MAX + 8];
    struct buf text BUF_AUTO;
    buf_init(&text, 65536);
    assert_int_equal(file_read(from, &text, NULL), 0);
    (void)snprintf(fresh, sizeof(fresh), "%s.new", path);
    write_file(fresh, buf_cstr(&text));
    assert_int_equal(rename(fresh, path), 0);
}

static void path_of(const struct folder *f, const char *name, char ret[CERT_PATH_MAX])
{
    (void)snprintf(ret, CERT_PATH_MAX, "%s/%s", f->path, name);
}

static void folder_open(struct folder *f)
{
    struct cert ca = cert_make(&(struct cert_request){.name = "ca"});
    struct cert other = cert_make(&(struct cert_request){.name = "other"});
    struct cert server =
        cert_make(&(struct cert_request){.name = "s", .san = "IP:127.0.0.1", .signer = &ca, .serial = 2});
    struct cert client = cert_make(&(struct cert_request){.name = "c", .san = "DNS:c", .signer = &ca, .serial = 3});
    struct cert *all[] = {&ca, &other, &server, &client};
    static const char *const cert_names[] = {"ca", "other", "server", "client"};
    (void)str_copy(f->path, sizeof(f->path), str_of("/tmp/test-engine-XXXXXX"));
    assert_non_null(mkdtemp(f->path));
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        cert_write(all[i], f->path, cert_names[i], NULL);
        cert_free(all[i]);
    }
    path_of(f, "ca.crt", f->ca);
    path_of(f, "other.crt", f->other_ca);
    path_of(f, "client.crt", f->cert);
    path_of(f, "client.key", f->key);
    path_of(f, "server.crt", f->server_cert);
    path_of(f, "server.key", f->server_key);
    path_of(f, "token", f->token);
    write_file(f->token, "first-token\n");
}

static void folder_close(const struct folder *f)
{
    static const char *const names_of[] = {"ca.crt",     "ca.key",     "other.crt",  "other.key", "server.crt",
                                           "server.key", "client.crt", "client.key", "token",     "token.second"};
    char path[CERT_PATH_MAX];
    for (size_t i = 0; i < ARRAY_LEN(names_of); i++) {
        path_of(f, names_of[i], path);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(f->path), 0);
}

/* ---- the token ---- */

static bool has_token(const struct pod *pod, const char *token)
{
    char line[128];
    (void)snprintf(line, sizeof(line), "\r\nAuthorization: Bearer %s\r\n", token);
    return strstr(pod->request, line) != NULL;
}

static void test_the_token_goes_to_pods_over_http_only_if_that_is_said(void **state)
{
    struct world *w = (struct world *)*state;
    struct engine_want want = want_of(&w->pods[0]), named = want;
    struct folder f;
    named.is_endpoint = true;
    folder_open(&f);
    world_engine(w, (struct engine_config){.token_file = f.token});
    w->pods[0].answer = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";
    const struct signals_feed *feed = world_ask(w, &want);
    assert_null(strstr(w->pods[0].request, "Authorization"));
    assert_non_null(strstr(feed->error, "HTTP 401; the token is sent over https only"));
    world_engine(w, (struct engine_config){.token_file = f.token, .is_token_plain = true});
    feed = world_ask(w, &want);
    assert_true(has_token(&w->pods[0], "first-token"));
    assert_non_null(strstr(feed->error, "/token is not accepted"));
    feed = world_ask(w, &named); /* an endpoint */
    assert_null(strstr(w->pods[0].request, "Authorization"));
    assert_non_null(strstr(feed->error, "endpoints are asked without a token"));
    folder_close(&f);
}

static void test_a_new_token_is_sent_and_an_unfit_one_is_not(void **state)
{
    struct world *w = (struct world *)*state;
    struct engine_want want = want_of(&w->pods[0]);
    struct folder f;
    struct buf text BUF_AUTO;
    char second[CERT_PATH_MAX];
    buf_init(&text, 4096);
    folder_open(&f);
    path_of(&f, "token.second", second);
    world_engine(w, (struct engine_config){.token_file = f.token, .is_token_plain = true});
    (void)world_ask(w, &want);
    assert_true(has_token(&w->pods[0], "first-token"));
    write_file(second, "  second-token\n");
    replace_file(f.token, second);
    engine_reload(w->engine);
    world_until(w, ((void)world_ask(w, &want), has_token(&w->pods[0], "second-token")));
    write_file(second, "third\r\nX-Evil: yes");
    replace_file(f.token, second);
    net_loop_skip(w->loop, 10 * NS_PER_S); /* without a reload */
    world_until(w, (buf_reset(&text), engine_write_state(w->engine, &text), strstr(buf_cstr(&text), "engine files")));
    assert_non_null(strstr(buf_cstr(&text), "--engine-token-file"));
    assert_non_null(strstr(buf_cstr(&text), "does not hold one token; the ones before are in use"));
    (void)world_ask(w, &want);
    assert_true(has_token(&w->pods[0], "second-token"));
    write_file(second, "fourth-token");
    replace_file(f.token, second);
    engine_reload(w->engine);
    world_until(w, ((void)world_ask(w, &want), has_token(&w->pods[0], "fourth-token")));
    buf_reset(&text);
    engine_write_state(w->engine, &text);
    assert_null(strstr(buf_cstr(&text), "engine files"));
    folder_close(&f);
}

static void test_unfit_files_at_the_start_are_an_error(void **state)
{
    struct world *w = (struct world *)*state;
    struct folder f;
    char empty[CERT_PATH_MAX];
    static const char *const lists[] = {"10.0.0.0/33", NULL};
    folder_open(&f);
    path_of(&f, "token.second", empty);
    write_file(empty, " \n");
    const struct {
        struct engine_config config;
        const char *part;
    } cases[] = {
        {{.token_file = "/nonexistent/token"}, "--engine-token-file"},
        {{.token_file = empty}, "does not hold one token"},
        {{.ca_file = "/nonexistent/ca"}, "--engine-ca-file"},
        {{.cert_file = f.cert}, "--engine-cert-file and --engine-key-file belong together"},
        {{.key_file = f.key}, "--engine-cert-file and --engine-key-file belong together"},
        {{.allow = lists}, "--endpoint-allow"},
        {{.deny = lists}, "--endpoint-deny"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct engine_config config = cases[i].config;
        struct err e = {0};
        config.loop = w->loop;
        config.metrics = w->metrics;
        if (engine_new(&config, &e) || !strstr(e.text, cases[i].part))
            fail_msg("case %zu: %s", i, e.text);
    }
    folder_close(&f);
}

/* ---- TLS ---- */

static void test_tls_pods_are_trusted_by_the_file_and_told_the_token(void **state)
{
    struct world *w = (struct world *)*state;
    struct folder f;
    struct tls_pod pod;
    folder_open(&f);
    tls_pod_open(&pod, w->loop, &(struct net_tls_files){.cert = f.server_cert, .key = f.server_key, .ca = f.ca});
    struct engine_want want = {.url = pod.url, .metric = ""}, named = want;
    named.is_endpoint = true;
    struct engine_config config = {.ca_file = f.ca, .cert_file = f.cert, .key_file = f.key, .token_file = f.token};
    world_engine(w, config);
    const struct signals_feed *feed = world_ask(w, &want);
    assert_string_equal(feed->error, "");
    assert_double_same(waiting_of(w, feed), 7);
    assert_non_null(strstr(buf_cstr(&pod.request), "\r\nAuthorization: Bearer first-token\r\n"));
    feed = world_ask(w, &named); /* is shown no certificate, and the server wants one */
    assert_string_not_equal(feed->error, "");
    assert_int_equal(pod.n_requests, 1);
    replace_file(f.ca, f.other_ca); /* from now on others are trusted, also over a kept connection */
    engine_reload(w->engine);
    world_until(w, *world_ask(w, &want)->error);
    assert_non_null(strstr(engine_page(w->engine, &want)->error, "SSL"));
    assert_non_null(strstr(engine_page(w->engine, &want)->error, "with a certificate for that very address"));
    config.is_insecure = true;
    world_engine(w, config);
    assert_string_equal(world_ask(w, &want)->error, "");
    engine_free(w->engine);
    w->engine = NULL;
    tls_pod_close(&pod);
    folder_close(&f);
}

/* ---- endpoints ---- */

static void test_an_endpoint_is_judged_by_what_its_name_resolves_to(void **state)
{
    static const char *const ten[] = {"10.0.0.0/8", NULL}, *const pod[] = {"127.22.0.1", NULL};
    static const struct {
        const char *host;
        const char *const *allow, *const *deny;
        const char *part; /* NULL: read */
    } cases[] = {
        {"good.test", NULL, NULL, NULL},
        {"both.test", NULL, NULL, NULL},
        {"good.test", pod, ten, NULL},
        {"bad.test", NULL, NULL, "its address 169.254.169.254 is a link-local address; name an address of the engine"},
        {"mapped.test", NULL, NULL, "its address ::ffff:169.254.169.254 is a link-local address"},
        {"bad.test", pod, NULL, "is a link-local address"},
        {"good.test", ten, NULL, "its address 127.22.0.1 is not among those of --endpoint-allow"},
        {"good.test", NULL, pod, "its address 127.22.0.1 is denied by --endpoint-deny"},
        {"user:secret@good.test", NULL, NULL, "user name or password"},
    };
    struct world *w = (struct world *)*state;
    test_names = names;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char url[96];
        (void)snprintf(url, sizeof(url), "http://%s:%d/metrics", cases[i].host, POD_PORT);
        struct engine_want want = {.url = url, .metric = "", .is_endpoint = true};
        world_engine(w, (struct engine_config){.allow = cases[i].allow, .deny = cases[i].deny});
        double before = outcomes(w, "address_refused");
        const struct signals_feed *feed = world_ask(w, &want);
        if (cases[i].part ? !strstr(feed->error, cases[i].part) : *feed->error != '\0')
            fail_msg("case %zu: %s", i, feed->error);
        assert_double_same(outcomes(w, "address_refused") - before, cases[i].part ? 1 : 0);
        assert_true((waiting_of(w, feed) >= 0) == !cases[i].part);
    }
}

/* The lists are of endpoints: what the API says of pods is where they are. */
static void test_lists_of_endpoints_do_not_hold_for_pods(void **state)
{
    static const char *const pod[] = {"127.22.0.1", NULL};
    struct world *w = (struct world *)*state;
    struct engine_want want = want_of(&w->pods[0]);
    world_engine(w, (struct engine_config){.deny = pod});
    assert_string_equal(world_ask(w, &want)->error, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_token_goes_to_pods_over_http_only_if_that_is_said, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(test_a_new_token_is_sent_and_an_unfit_one_is_not, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(test_unfit_files_at_the_start_are_an_error, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(test_tls_pods_are_trusted_by_the_file_and_told_the_token, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(test_an_endpoint_is_judged_by_what_its_name_resolves_to, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(test_lists_of_endpoints_do_not_hold_for_pods, world_set_up, world_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
