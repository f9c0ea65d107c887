/* The agent's pages, asked as a GET would: what it adds to health, and /metrics as every module fills it. */
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
    r->config.daemon.node_name = "gpu-7";
    r->config.daemon.version = "1.2.3";
    r->config.daemon.build = "gcc 12.2";
    *a = (struct agent){.config = &r->config, .metrics = metrics_new()};
    struct daemon_program program = agent_program(a);
    a->daemon = daemon_new(&r->config.daemon, &program, a->metrics, &e);
    assert_non_null(a->daemon);
    a->loop = daemon_loop(a->daemon);
    a->engines = daemon_engines_new(a->daemon, &r->config.engine, a->metrics, &e);
    assert_non_null(a->engines);
    a->exporter = exporter_new(&(struct exporter_config){
        .metrics = a->metrics, .node_name = r->config.daemon.node_name, .version = r->config.daemon.version});
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
    agent_entries_free(r->agent.entries);
    daemon_engines_free(r->agent.engines);
    daemon_free(r->agent.daemon);
    metrics_free(r->agent.metrics);
    node_fini(&r->node);
}
#define RIG(r) __attribute__((cleanup(rig_stop))) struct rig r = {.answer = {.status = 0}}

/* "/path?query" as a client sends it. */
static const char *get_as(struct rig *r, const char *target, const char *accept, const char *accept_encoding)
{
    struct str query = str_of(target), path = str_cut(&query, '?');
    struct net_get_request request = {.path = path,
                                      .query = query.ptr ? query : str_of(""),
                                      .accept = str_of(accept),
                                      .accept_encoding = str_of(accept_encoding)};
    buf_fini(&r->answer.body);
    net_gets_answer(daemon_gets(r->agent.daemon), &request, &r->answer);
    return buf_cstr(&r->answer.body);
}

static const char *get(struct rig *r, const char *target)
{
    return get_as(r, target, "", "");
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
                                                    "modprobe nvidia\n[+]engine pages: 0 read, 0 failing, 0 not read "
                                                    "yet (information only)\nreadyz check passed\n");
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
    a->service = service_new(&(struct service_config){.metrics = a->metrics,
                                                      .server = daemon_rpc(a->daemon),
                                                      .triggers = daemon_triggers(a->daemon),
                                                      .source = {.current = no_snapshot, .now_ns = no_time},
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
    daemon_close(a->daemon);
    service_free(a->service);
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
        cmocka_unit_test(test_the_driver_is_shown_and_changes_no_health),
        cmocka_unit_test(test_a_driver_call_that_hangs_is_shown),
        cmocka_unit_test(test_metrics_of_all_modules_make_one_valid_page),
        cmocka_unit_test(test_metrics_are_compressed_for_who_takes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
