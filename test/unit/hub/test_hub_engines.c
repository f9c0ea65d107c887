/* Under which URL a hub asks for the page of a pod, and of an endpoint. Nothing is fetched: the loop does not turn. */
#include "hub/private.h"

#include "trigger/metadata.h"

struct rig {
    struct hub_config config;
    struct hub hub;
};

static void rig_start(struct rig *r)
{
    struct err e;
    struct hub *h = &r->hub;
    r->config.engine.has_cluster_dns = true;
    *h = (struct hub){.config = &r->config, .metrics = metrics_new()};
    h->daemon =
        daemon_new(&r->config.daemon, &(struct daemon_program){.default_scope = TRIGGER_WORKLOAD}, h->metrics, &e);
    assert_non_null(h->daemon);
    h->engines = daemon_engines_new(h->daemon, &r->config.engine, h->metrics, &e);
    assert_non_null(h->engines);
    h->nodes.context = h;
    hub_add_engines(h);
}

static void rig_stop(struct rig *r)
{
    daemon_engines_free(r->hub.engines);
    daemon_free(r->hub.daemon);
    metrics_free(r->hub.metrics);
}
#define RIG(r) __attribute__((cleanup(rig_stop))) struct rig r = {.hub = {.config = NULL}}

/* The URL of the pod's page, or why there is none. */
static const char *url_of(struct rig *r, const struct workload_place *place, struct metadata m)
{
    static char out[ENGINE_URL_MAX];
    const char *why = NULL;
    struct trigger *t = parse_with(&hub_settings, m);
    const struct signals_feed *feed = r->hub.nodes.page(r->hub.nodes.context, place, t, &why);
    trigger_unref(t);
    (void)str_copy(out, sizeof(out), str_of(feed ? feed->url : why));
    return out;
}

#define WAITING "metricType", "requests_waiting", "targetValue", "5"

static const struct kube_port named[] = {{"ssh", 22}, {"http", 8080}};
static const struct workload_place plain = {
    .ns = "ml", .pod = "p", .ip = "10.0.0.7", .annotated_port = "", .annotated_path = "", .annotated_scheme = ""};
static const struct workload_place annotated = {.ns = "ml",
                                                .pod = "p",
                                                .ip = "10.0.0.7",
                                                .annotated_port = "9400",
                                                .annotated_path = "/stats",
                                                .annotated_scheme = "https",
                                                .ports = named,
                                                .n_ports = 2};
static const struct workload_place ported = {.ns = "ml",
                                             .pod = "p",
                                             .ip = "fd00::7",
                                             .annotated_port = "",
                                             .annotated_path = "",
                                             .annotated_scheme = "",
                                             .ports = named,
                                             .n_ports = 2};

static void test_a_pods_page_is_where_the_trigger_the_pod_or_the_engine_says(void **state)
{
    (void)state;
    RIG(r);
    rig_start(&r);
    const struct {
        const struct workload_place *place;
        struct metadata metadata;
        const char *url;
    } rows[] = {
        {&plain, METADATA(WAITING), "http://10.0.0.7:8000/metrics"},
        {&plain, METADATA("profile", "tgi-inference"), "http://10.0.0.7:80/metrics"},
        {&plain, METADATA("profile", "triton-inference"), "http://10.0.0.7:8002/metrics"},
        {&plain, METADATA("metricType", "triton_request_rate", "targetValue", "5"), "http://10.0.0.7:8002/metrics"},
        {&annotated, METADATA(WAITING), "https://10.0.0.7:9400/stats"},
        {&ported, METADATA(WAITING), "http://[fd00::7]:8080/metrics"},
        {&annotated, METADATA(WAITING, "enginePort", "7000"), "https://10.0.0.7:7000/stats"},
        {&annotated, METADATA(WAITING, "enginePath", "/own", "engineScheme", "http"), "http://10.0.0.7:9400/own"},
        {&annotated, METADATA(WAITING, "enginePath", "/own", "vllmEndpoint", "http://llm:8001/x"),
         "https://10.0.0.7:9400/own"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_string_equal(url_of(&r, rows[i].place, rows[i].metadata), rows[i].url);
}

static void test_an_endpoint_is_a_hint_for_what_nobody_else_says(void **state)
{
    (void)state;
    RIG(r);
    rig_start(&r);
    const struct {
        const struct workload_place *place;
        const char *endpoint, *url;
    } rows[] = {
        {&plain, "http://llm:8001/v2/metrics", "http://10.0.0.7:8001/v2/metrics"},
        {&plain, "HTTPS://llm.ml.svc:8443/m?a=b#c", "https://10.0.0.7:8443/m?a=b"},
        {&plain, "http://[fd00::1]:8001", "http://10.0.0.7:8001/metrics"},
        {&plain, "http://[fd00::1]/m", "http://10.0.0.7:8000/m"},
        {&plain, "http://llm/m", "http://10.0.0.7:8000/m"},
        {&plain, "http://llm:8001?a=b", "http://10.0.0.7:8001/metrics"},
        {&ported, "http://llm:8001/m", "http://[fd00::7]:8080/m"},
        {&annotated, "http://llm:8001/m", "https://10.0.0.7:9400/stats"},
        {&annotated, "http://llm/m", "https://10.0.0.7:9400/stats"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_string_equal(url_of(&r, rows[i].place, METADATA(WAITING, "vllmEndpoint", rows[i].endpoint)),
                            rows[i].url);
}

static void test_why_a_pod_has_no_page_is_said(void **state)
{
    (void)state;
    RIG(r);
    rig_start(&r);
    struct workload_place place = plain;
    place.ip = "169.254.169.254";
    assert_contains(url_of(&r, &place, METADATA(WAITING)), "169.254.169.254");
    place = plain;
    place.annotated_port = "web";
    assert_contains(url_of(&r, &place, METADATA(WAITING)), "prometheus.io/port: \"web\"");
}

static void test_an_endpoints_bare_name_is_of_the_namespace_that_asks(void **state)
{
    (void)state;
    RIG(r);
    rig_start(&r);
    const char *why = NULL;
    struct trigger *t = parse_with(&hub_settings, METADATA(WAITING));
    const struct signals_feed *feed =
        r.hub.nodes.endpoint(r.hub.nodes.context, "http://router:9090/metrics", "ml", "queue", t, &why);
    trigger_unref(t);
    assert_non_null(feed);
    assert_contains(feed->url, "http://router.ml");
    assert_contains(feed->url, ":9090/metrics");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_pods_page_is_where_the_trigger_the_pod_or_the_engine_says),
        cmocka_unit_test(test_an_endpoint_is_a_hint_for_what_nobody_else_says),
        cmocka_unit_test(test_why_a_pod_has_no_page_is_said),
        cmocka_unit_test(test_an_endpoints_bare_name_is_of_the_namespace_that_asks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
