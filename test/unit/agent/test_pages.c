/* The agent's pages, asked as a GET would: health in all its forms, /version, /metrics as every module fills it. */
#include "agent/agent_private.h"

#include "promtext/page.h"
#include "trigger/node.h"

struct rig {
    struct node node;
    struct agent_config config;
    struct agent agent;
    struct net_get_response answer;
};

static void rig_start(struct rig *r)
{
    struct err e;
    struct agent *a = &r->agent;
    r->config.node_name = r->config.node_name ? r->config.node_name : "gpu-7";
    r->config.version = "1.2.3";
    r->config.build = "gcc 12.2";
    *a = (struct agent){.config = &r->config, .metrics = metrics_new(), .gets = net_gets_new()};
    a->loop = net_loop_new(a->metrics, &e);
    assert_non_null(a->loop);
    a->exporter = exporter_new(&(struct exporter_config){
        .metrics = a->metrics, .node_name = r->config.node_name, .version = r->config.version});
    if (net_now_ns(a->loop) > r->node.now_ns && r->node.latest) { /* the pages go by the loop's clock */
        r->node.now_ns = net_now_ns(a->loop);
        node_publish(&r->node);
    }
    a->snapshot = r->node.latest;
    agent_add_pages(a);
}

static void rig_stop(struct rig *r)
{
    buf_fini(&r->answer.body);
    exporter_free(r->agent.exporter);
    net_gets_free(r->agent.gets);
    net_loop_free(r->agent.loop);
    metrics_free(r->agent.metrics);
    node_fini(&r->node);
}
#define RIG(r) __attribute__((cleanup(rig_stop))) struct rig r = {.config = {.node_name = NULL}}

/* "/path?query" as a client sends it. */
static const char *get_as(struct rig *r, const char *target, const char *accept, const char *accept_encoding)
{
    struct str query = str_of(target), path = str_cut(&query, '?');
    struct net_get_request request = {.path = path,
                                      .query = query.ptr ? query : str_of(""),
                                      .accept = str_of(accept),
                                      .accept_encoding = str_of(accept_encoding)};
    buf_fini(&r->answer.body);
    net_gets_answer(r->agent.gets, &request, &r->answer);
    return buf_cstr(&r->answer.body);
}

static const char *get(struct rig *r, const char *target)
{
    return get_as(r, target, "", "");
}

static void test_health_pages_speak_as_kubernetes_does(void **state)
{
    (void)state;
    static const struct {
        const char *target;
        bool is_draining;
        int status;
        const char *body;
    } rows[] = {
        {"/livez", false, 200, "ok"},
        {"/livez/", false, 200, "ok"},
        {"/livez", true, 200, "ok"}, /* a drain is no reason to be killed */
        {"/healthz", true, 200, "ok"},
        {"/readyz", false, 200, "ok"},
        {"/readyz/", false, 200, "ok"},
        {"/readyz", true, 503,
         "[+]loop ok\n[-]serving failed: shutting down\n[+]nvml ok (information only)\nreadyz check failed\n"},
        {"/livez?verbose", false, 200, "[+]loop ok\n[+]nvml ok (information only)\nlivez check passed\n"},
        {"/healthz?verbose=1", false, 200, "[+]loop ok\n[+]nvml ok (information only)\nhealthz check passed\n"},
        {"/readyz?x=1&verbose", false, 200,
         "[+]loop ok\n[+]serving ok\n[+]nvml ok (information only)\nreadyz check passed\n"},
        {"/readyz?verbosely", false, 200, "ok"},
        {"/readyz?exclude=serving", true, 200, "ok"},
        {"/readyz?exclude=serving&verbose", true, 200,
         "[+]loop ok\n[+]nvml ok (information only)\nreadyz check passed\n"},
        {"/readyz?exclude=loop&exclude=serving", true, 200, "ok"},
        {"/readyz?exclude=nothing", true, 503,
         "[+]loop ok\n[-]serving failed: shutting down\n[+]nvml ok (information only)\nreadyz check failed\n"},
        /* one check by its name */
        {"/readyz/serving", false, 200, "ok"},
        {"/readyz/serving", true, 503, "[-]serving failed: shutting down\nreadyz check failed\n"},
        {"/readyz/serving?verbose", false, 200, "[+]serving ok\nreadyz check passed\n"},
        {"/readyz/loop", true, 200, "ok"},
        {"/livez/loop", true, 200, "ok"},
        {"/livez/serving", false, 404, "no such check\n"},
        {"/readyz/servin", false, 404, "no such check\n"},
        {"/readyz/loop/more", false, 404, "no such check\n"},
    };
    RIG(r);
    NODE_WITH(r.node, 50);
    rig_start(&r);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        r.agent.is_draining = rows[i].is_draining;
        const char *body = get(&r, rows[i].target);
        if (r.answer.status != rows[i].status || strcmp(body, rows[i].body) != 0)
            fail_msg("%s%s: %d %s", rows[i].target, rows[i].is_draining ? " (draining)" : "", r.answer.status, body);
        assert_string_equal(r.answer.content_type, "text/plain; charset=utf-8");
    }
}

static void test_the_driver_is_shown_and_changes_no_health(void **state)
{
    (void)state;
    RIG(r);
    NODE_WITH(r.node, 50);
    struct snapshot *header = snapshot_store_header(r.node.store);
    header->driver = SNAPSHOT_DRIVER_NOT_LOADED;
    (void)str_copy(header->driver_text, sizeof(header->driver_text), str_of("modprobe nvidia"));
    node_publish(&r.node);
    rig_start(&r);
    assert_string_equal(get(&r, "/readyz?verbose"), "[+]loop ok\n[+]serving ok\n[-]nvml not_loaded (information only): "
                                                    "modprobe nvidia\nreadyz check passed\n");
    assert_int_equal(r.answer.status, 200);
    r.agent.snapshot = NULL;
    assert_contains(get(&r, "/livez?verbose"), "[-]nvml starting (information only)\n");
    assert_int_equal(r.answer.status, 200);
}

/* The last snapshot said that all was well, and is as old as the machine. */
static void test_a_driver_call_that_hangs_is_shown(void **state)
{
    (void)state;
    RIG(r);
    NODE_WITH(r.node, 50);
    rig_start(&r);
    struct snapshot_store *store = snapshot_store_new(NS_PER_S);
    snapshot_store_header(store)->driver = SNAPSHOT_DRIVER_OK;
    struct snapshot *old = snapshot_store_publish(store, 1);
    r.agent.snapshot = old;
    assert_contains(get(&r, "/readyz?verbose"), "[-]nvml hangs (information only): no sampling cycle has ended for ");
    assert_contains(buf_cstr(&r.answer.body), "\nreadyz check passed\n");
    assert_int_equal(r.answer.status, 200);
    r.agent.snapshot = NULL;
    snapshot_unref(old);
    snapshot_store_free(store);
}

static void test_version_is_json_whatever_the_node_is_called(void **state)
{
    (void)state;
    static const struct {
        const char *name, *json;
    } rows[] = {
        {"gpu-7", "\"gpu-7\""},
        {"", "\"\""},
        {"a\"b\\c", "\"a\\\"b\\\\c\""},
        {"a\nb\tc\x01", "\"a\\nb\\tc\\u0001\""},
        {"caf\xC3\xA9", "\"caf\xC3\xA9\""},
        {"\xff", "\"\xEF\xBF\xBD\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char want[512];
        RIG(r);
        NODE_WITH(r.node, 50);
        r.config.node_name = rows[i].name;
        rig_start(&r);
        (void)snprintf(want, sizeof(want),
                       "{\n  \"program\": \"keda-gpu-scaler\",\n  \"mode\": \"agent\",\n  \"version\": \"1.2.3\",\n"
                       "  \"gitVersion\": \"1.2.3\",\n  \"compiler\": \"gcc 12.2\",\n  \"node\": %s\n}\n",
                       rows[i].json);
        assert_string_equal(get(&r, "/version"), want);
        assert_string_equal(r.answer.content_type, "application/json");
    }
}

static void test_the_index_names_what_there_is(void **state)
{
    (void)state;
    static const char *const pages[] = {"/metrics", "/livez", "/readyz", "/healthz", "/version"};
    RIG(r);
    NODE_WITH(r.node, 50);
    rig_start(&r);
    BUF_AUTO struct buf index;
    buf_init(&index, 4096);
    (void)buf_append_str(&index, get(&r, "/"));
    for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
        assert_contains(buf_cstr(&index), pages[i]);
        (void)get(&r, pages[i]);
        assert_int_equal(r.answer.status, 200);
    }
    (void)get(&r, "/nothing");
    assert_int_equal(r.answer.status, 404);
    assert_contains(buf_cstr(&r.answer.body), "/readyz");
}

/* ---- /metrics ---- */

/* Everything that registers families, as the agent has it. */
static const struct snapshot *no_snapshot(void *context)
{
    (void)context;
    return NULL;
}

static int64_t no_time(void *context)
{
    (void)context;
    return 0;
}

static void test_metrics_of_all_modules_make_one_valid_page(void **state)
{
    (void)state;
    RIG(r);
    NODE_WITH(r.node, 50, 60);
    rig_start(&r);
    struct agent *a = &r.agent;
    a->http = http_server_new(a->gets, a->metrics);
    a->rpc = rpc_server_new(&(struct rpc_server_config){.loop = a->loop, .metrics = a->metrics});
    a->triggers = trigger_cache_new(&agent_settings, 8);
    a->service = service_new(&(struct service_config){.metrics = a->metrics,
                                                      .server = a->rpc,
                                                      .triggers = a->triggers,
                                                      .source = {no_snapshot, no_time, NULL},
                                                      .has_reflection = true});
    static const char *const accepts[] = {"", "application/openmetrics-text"};
    for (size_t f = 0; f < 2; f++) {
        const char *page = get_as(&r, "/metrics", accepts[f], "");
        assert_int_equal(r.answer.status, 200);
        assert_true(page_check((struct str){page, r.answer.body.len}, (enum promtext_format)f) > 20);
        assert_string_equal(r.answer.content_type, promtext_content_type((enum promtext_format)f));
        assert_contains(page, "grpc_server_started_total{");
        assert_contains(page, "keda_gpu_scaler_open_streams{method=\"StreamIsActive\"} 0\n");
        assert_contains(page, "keda_gpu_scaler_build_info{version=\"1.2.3\",node_name=\"gpu-7\"} 1\n");
    }
    rpc_server_free(a->rpc);
    http_server_free(a->http);
    service_free(a->service);
    trigger_cache_free(a->triggers);
}

static void test_metrics_are_compressed_for_who_takes_it(void **state)
{
    (void)state;
    RIG(r);
    NODE_WITH(r.node, 50, 60);
    rig_start(&r);
    const char *plain = get_as(&r, "/metrics", "", "gzip;q=0");
    assert_null(r.answer.content_encoding);
    assert_contains(plain, "# HELP");
    assert_string_equal(r.answer.extra, "Vary: Accept, Accept-Encoding\r\n");
    size_t plain_len = r.answer.body.len;
    (void)get_as(&r, "/metrics", "", "gzip");
    assert_string_equal(r.answer.content_encoding, "gzip");
    assert_string_equal(r.answer.extra, "Vary: Accept, Accept-Encoding\r\n");
    assert_true(r.answer.body.len < plain_len / 2);
    assert_memory_equal(r.answer.body.data, "\x1f\x8b", 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_health_pages_speak_as_kubernetes_does),
        cmocka_unit_test(test_the_driver_is_shown_and_changes_no_health),
        cmocka_unit_test(test_a_driver_call_that_hangs_is_shown),
        cmocka_unit_test(test_version_is_json_whatever_the_node_is_called),
        cmocka_unit_test(test_the_index_names_what_there_is),
        cmocka_unit_test(test_metrics_of_all_modules_make_one_valid_page),
        cmocka_unit_test(test_metrics_are_compressed_for_who_takes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
