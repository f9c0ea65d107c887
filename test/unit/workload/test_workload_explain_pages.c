/* The explanation of what pages say: which signal drives, each pod's page, what to open where there is none. */
#include "workload/workload.h"

#include "objects.h"
#include "pages.h"

struct explained {
    struct buf text, json;
};

static void explained_fini(struct explained *e)
{
    buf_fini(&e->text);
    buf_fini(&e->json);
}
#define EXPLAINED __attribute__((cleanup(explained_fini))) struct explained

static void explain(struct world *w, struct explained *e)
{
    (void)world_evaluate(w);
    struct json json;
    buf_init(&e->text, 256 << 10);
    buf_init(&e->json, 256 << 10);
    json_init(&json, &e->json, 0);
    workload_explain_text(&w->facts, &w->answer, &e->text);
    workload_explain_json(&w->facts, &w->answer, &json);
    assert_false(e->text.is_overflowed || e->json.is_overflowed);
    assert_int_equal(json.depth, 0);
}

static void assert_has(struct buf *text, const char *const *parts)
{
    for (size_t i = 0; parts[i]; i++)
        assert_contains(buf_cstr(text), parts[i]);
}
#define HAS(text, ...) assert_has((text), (const char *const[]){__VA_ARGS__, NULL})

static void test_each_pods_page_is_shown_with_what_it_said(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, "metricType", "kv_cache_usage", "targetValue", "80", "vllmEndpoint", "http://llama:8000/metrics");
    pages_serve(&w, 1, 8, 4, 60);
    pages_dead(&w, 2);
    world_wait(&w, 2);
    EXPLAINED e;
    explain(&w, &e);
    HAS(&e.text, "signal   kv_cache_usage, by the pods' own metrics pages; the endpoint's port, path and scheme",
        "page     http://10.0.0.1:8000/metrics vLLM: ",
        ", 4 waiting, 8 running, KV cache 60 %; requests wait, so the demand", "pod      p2 on n1: missing",
        ": its page http://10.0.0.2:8000/metrics: connection refused\n",
        "active   yes: requests run or wait; at most 12 requests at once in one pod");
    HAS(&e.json, "\"mode\":\"page\"", "\"signal\":\"kv_cache_usage\"", "\"url\":\"http://10.0.0.1:8000/metrics\"",
        "\"engine\":\"vLLM\"", "\"reading\":\"read\"", "\"running\":8", "\"waiting\":4", "\"kvCachePercent\":60",
        "\"peakInFlight\":12", "\"flags\":[\"demand\"]", "\"error\":\"connection refused\"", "\"reading\":\"never\"");
}

static void test_a_profile_says_what_it_goes_by_and_what_to_open(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, "profile", "vllm-inference");
    pages_serve(&w, 1, 8, 0, 60);
    EXPLAINED by_page;
    explain(&w, &by_page);
    HAS(&by_page.text, "signal   kv_cache_usage, by the pods' own metrics pages, in place of memory_used_percent\n");
    HAS(&by_page.json, "\"mode\":\"page\"", "\"signal\":\"kv_cache_usage\"");
    WORLD dead;
    PAGES_INIT(dead, "profile", "vllm-inference");
    pages_dead(&dead, 1);
    EXPLAINED by_gpu;
    explain(&dead, &by_gpu);
    HAS(&by_gpu.text, "signal   memory_used_percent, by the GPUs that the pods hold: no page of the pods says",
        "page     http://10.0.0.1:8000/metrics", "; last try: connection refused\n", "(no_page)");
    HAS(&by_gpu.json, "\"mode\":\"gpu\"", "\"signal\":\"memory_used_percent\"", "\"id\":\"no_page\"");
    WORLD none; /* no pod: nothing was tried */
    PAGES_INIT(none, "profile", "vllm-inference");
    EXPLAINED at_zero;
    explain(&none, &at_zero);
    HAS(&at_zero.text, "or by the pods' own metrics pages once a pod is Ready\n");
    assert_null(strstr(buf_cstr(&at_zero.text), "no_page"));
    struct kube_pod loads = pages_kube_pod(&none, 1);
    loads.is_ready = false;
    loads.meta.created_s = loads.condition_s = loads.started_s = world_api_now(&none) - 20;
    (void)world_add(&none, &loads);
    EXPLAINED loading; /* nor was that of a pod that loads */
    explain(&none, &loading);
    HAS(&loading.text, "once a pod is Ready\n", "p1 on n1: loading");
    assert_null(strstr(buf_cstr(&loading.text), "no_page"));
}

static void test_of_several_signals_each_is_shown_and_which_decides(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, "metricType", "requests_in_flight,kv_cache_usage", "targetValue", "16,80");
    pages_serve(&w, 1, 12, 0, 90);
    pages_serve(&w, 2, 12, 0, 70);
    EXPLAINED e;
    explain(&w, &e);
    HAS(&e.text, "value    200 %",
        "signal   requests_in_flight, by the pods' own metrics pages: 24 requests, target 16 requests: enough for 1.5 "
        "replicas\n",
        "signal   kv_cache_usage, by the pods' own metrics pages: 160 %, target 80 %: enough for 2 replicas; "
        "decides\n");
    HAS(&e.json, "\"signals\":[{\"metricType\":\"requests_in_flight\"", "\"replicas\":1.5", "\"decides\":true");
    pages_text(&w, pages_of(&w, 1), "tgi_queue_size 0\ntgi_batch_current_size 2\n");
    EXPLAINED failed;
    pages_text(&w, pages_of(&w, 2), "tgi_queue_size 0\ntgi_batch_current_size 2\n");
    world_wait(&w, 15);
    explain(&w, &failed);
    HAS(&failed.text, "signal   kv_cache_usage, by the pods' own metrics pages: no value: ",
        "a signal that has no value could decide it");
    HAS(&failed.json, "\"high\":null", "\"lowAsksFor\":1");
}

static void test_the_signal_is_that_of_the_metric_that_decides(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, "metricType", "gpu_utilization,requests_waiting", "targetValue", "80,5");
    struct kube_pod pod = pages_kube_pod(&w, 1);
    (void)world_add(&w, &pod);
    struct fleet_device *d = world_gpu(&w, "n1");
    (void)world_hold(&w, "n1", "ml", "p1", d);
    world_read(&w, d, SNAPSHOT_UTILIZATION, 40);
    pages_vllm(&w, 1, 8, 20, 60);
    EXPLAINED e;
    explain(&w, &e);
    HAS(&e.json, "\"mode\":\"page\",\"signal\":\"requests_waiting\",\"signals\":[");
}

static void test_a_server_that_hangs_is_warned_of(void **state)
{
    (void)state;
    static const char page[] = "vllm:num_requests_running{engine=\"0\"} 1\nvllm:num_requests_waiting{engine=\"0\"} 14\n"
                               "vllm:generation_tokens_total{engine=\"0\"} 7\n";
    WORLD w;
    PAGES_INIT(w, "metricType", "requests_waiting", "targetValue", "5");
    (void)pages_pod(&w, 1);
    for (int i = 0; i < 62; i++, world_wait(&w, 5))
        pages_text(&w, pages_of(&w, 1), page);
    EXPLAINED e;
    explain(&w, &e);
    HAS(&e.text, "1 of 1 pods: requests wait and for five minutes next to nothing was done", "(stalled)");
    HAS(&e.json, "\"id\":\"stalled\"", "\"flags\":[\"stalled\"]");
}

static void test_what_a_router_says_is_in_the_line_about_activity(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, "metricType", "requests_waiting", "targetValue", "5", "wakeEndpoint", "http://router/metrics",
               "wakeMetric", "queued");
    w.facts.spec = 0;
    struct world_page *p = world_url(&w, "http://router/metrics");
    p->reader = signals_reader_new("queued");
    pages_text(&w, p, "# TYPE queued gauge\nqueued 3\n");
    EXPLAINED e;
    explain(&w, &e);
    HAS(&e.text, "active   yes: wakeMetric shows demand", "queued is 3, above 0");
    HAS(&e.json, "\"wake\":\"queued is 3, above 0\"");
}

static void test_what_is_on_no_page_is_null(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, "metricType", "gpu_utilization", "targetValue", "80");
    (void)world_busy(&w, "a", "n1", 95);
    EXPLAINED e;
    explain(&w, &e);
    HAS(&e.json, "\"mode\":\"gpu\"", "\"signal\":\"gpu_utilization\"", "\"page\":null", "\"wake\":null");
    assert_null(strstr(buf_cstr(&e.text), "signal   "));
    assert_null(strstr(buf_cstr(&e.text), "page     "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_pods_page_is_shown_with_what_it_said),
        cmocka_unit_test(test_a_profile_says_what_it_goes_by_and_what_to_open),
        cmocka_unit_test(test_of_several_signals_each_is_shown_and_which_decides),
        cmocka_unit_test(test_the_signal_is_that_of_the_metric_that_decides),
        cmocka_unit_test(test_a_server_that_hangs_is_warned_of),
        cmocka_unit_test(test_what_a_router_says_is_in_the_line_about_activity),
        cmocka_unit_test(test_what_is_on_no_page_is_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
