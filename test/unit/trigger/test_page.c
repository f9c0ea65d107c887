/* Triggers on the page of an engine that the metadata names: value, activity, errors and their explanation. Pages are
 * read by signals as they are. */
#include "trigger/trigger.h"

#include "metadata.h"

#include <stdio.h>

enum { OUT_BYTES = 1 << 16 };

/* A page that is fetched every 5 s. */
struct page {
    struct signals_history *history;
    struct signals_feed feed;
    int64_t now_ns;
};

static void page_init(struct page *p)
{
    *p = (struct page){.history = signals_history_new(), .now_ns = 1000 * NS_PER_S};
    p->feed = (struct signals_feed){
        .url = "http://llm.ml:8000/metrics", .history = p->history, .error = "", .interval_ns = 5 * NS_PER_S};
}

static void page_fini(struct page *p)
{
    signals_history_free(p->history);
}

/* The page said this just now. */
static void page_read(struct page *p, const char *metric, const char *text)
{
    struct err e = {.class = ERR_NONE};
    struct signals_reader *reader = signals_reader_new(metric);
    signals_reader_begin(reader);
    assert_int_equal(signals_reader_feed(reader, text, strlen(text), &e), 0);
    struct signals_page *page = signals_reader_end(reader, &e);
    if (!page)
        fail_msg("%s", e.text);
    signals_history_add(p->history, page, p->now_ns);
    signals_reader_free(reader);
    p->feed.last_try_ns = p->feed.last_good_ns = p->now_ns;
    p->feed.error = "";
}

static void page_wait(struct page *p, int64_t seconds)
{
    p->now_ns += seconds * NS_PER_S;
}

static void page_fail(struct page *p, const char *error)
{
    p->feed.last_try_ns = p->now_ns;
    p->feed.error = error;
}

#define PAGE(p)                                                                                                        \
    __attribute__((cleanup(page_fini))) struct page p;                                                                 \
    page_init(&p)

/* The pages of a vLLM server with so many requests, and of a Triton server with so many done. */
static const char *vllm(int waiting, int running, double kv)
{
    static char text[1024];
    (void)snprintf(text, sizeof(text),
                   "# TYPE vllm:num_requests_waiting gauge\n"
                   "vllm:num_requests_waiting{model_name=\"m\"} %d\n"
                   "vllm:num_requests_running{model_name=\"m\"} %d\n"
                   "vllm:kv_cache_usage_perc{model_name=\"m\"} %g\n",
                   waiting, running, kv);
    return text;
}

static const char *triton(int done, int queue_us)
{
    static char text[1024];
    (void)snprintf(text, sizeof(text),
                   "nv_inference_count{model=\"a\",version=\"1\"} %d\n"
                   "nv_inference_request_success{model=\"a\",version=\"1\"} %d\n"
                   "nv_inference_queue_duration_us{model=\"a\",version=\"1\"} %d\n",
                   done, done, queue_us);
    return text;
}

struct asked {
    struct trigger_evaluation ev;
    struct trigger_explanation said;
};

static struct asked ask(const struct page *p, const struct trigger *t)
{
    struct asked a;
    trigger_evaluate_page(t, &p->feed, NULL, p->now_ns, TRIGGER_ASK_ALL, &a.ev);
    trigger_explain(&a.ev, &a.said);
    return a;
}

static void assert_value(const struct asked *a, double value)
{
    if (a->ev.value_error.class != ERR_NONE)
        fail_msg("%s", a->ev.value_error.text);
    assert_double_same(a->ev.value, value);
}

static void assert_error(const struct asked *a, enum err_class class, const char *part)
{
    assert_int_equal(a->ev.value_error.class, class);
    assert_int_equal(a->ev.active_error.class, class);
    assert_contains(a->ev.value_error.text, part);
    assert_contains(a->ev.active_error.text, part);
}

#define ENDPOINT   "vllmEndpoint", "http://llm.ml:8000/metrics"
#define PARSE(...) parse_with(&agent_settings, METADATA(ENDPOINT __VA_OPT__(, ) __VA_ARGS__))

/* ---- values ---- */

static void test_value_is_what_the_page_says(void **state)
{
    (void)state;
    PAGE(p);
    page_read(&p, NULL, vllm(14, 3, 0.25));
    TRIGGER_AUTO depth = PARSE("profile", "vllm-queue-depth"); /* reference A.12 #16 */
    struct asked a = ask(&p, depth);
    assert_value(&a, 14);
    assert_true(a.ev.is_active && a.ev.is_above);
    assert_double_same(a.ev.activity, 17);
    TRIGGER_AUTO in_flight = PARSE("metricType", "requests_in_flight", "targetValue", "5");
    a = ask(&p, in_flight);
    assert_value(&a, 17);
    assert_contains(a.said.rule, "page of vLLM");
    assert_contains(a.said.rule, "17 requests");
}

static void test_value_is_the_mean_of_the_window(void **state)
{
    (void)state;
    PAGE(p);
    page_read(&p, NULL, vllm(0, 10, 0.5));
    page_wait(&p, 5);
    page_read(&p, NULL, vllm(0, 40, 0.5));
    page_wait(&p, 5);
    page_read(&p, NULL, vllm(0, 40, 0.5));
    TRIGGER_AUTO t = PARSE("metricType", "requests_running", "targetValue", "5", "window", "10");
    struct asked a = ask(&p, t);
    assert_value(&a, 25);
    assert_contains(a.said.rule, "over 10s: 25 requests");
    TRIGGER_AUTO newest = PARSE("metricType", "requests_running", "targetValue", "5", "window", "0");
    a = ask(&p, newest);
    assert_value(&a, 40);
    assert_contains(a.said.rule, "newest read: 40 requests");
}

static void test_first_answer_for_a_rate_is_zero_and_the_second_the_difference(void **state)
{
    (void)state;
    PAGE(p); /* reference A.12 #18 and #19 */
    TRIGGER_AUTO rate = parse_with(
        &agent_settings, METADATA("profile", "triton-request-rate", "tritonEndpoint", "http://llm.ml:8002/metrics"));
    TRIGGER_AUTO wait = parse_with(
        &agent_settings, METADATA("profile", "triton-queue-wait", "tritonEndpoint", "http://llm.ml:8002/metrics"));
    page_read(&p, NULL, triton(200, 0));
    struct asked a = ask(&p, rate);
    assert_value(&a, 0);
    assert_contains(a.said.rule, "read once: 0 requests/s until a second one");
    assert_true(a.ev.is_active); /* unknown is not idle */
    assert_false(a.ev.is_above); /* and wakes nobody */
    assert_double_same(a.ev.activity, -1);
    assert_contains(a.said.active_rule, "unknown is not idle");
    a = ask(&p, wait);
    assert_value(&a, 0);

    p.now_ns += 10 * NS_PER_MS;
    page_read(&p, NULL, triton(400, 20000));
    a = ask(&p, rate);
    assert_value(&a, 20000);
    assert_true(a.ev.is_active && a.ev.is_above);
    a = ask(&p, wait);
    assert_true(a.ev.value > 0.09 && a.ev.value < 0.11);
    a.ev.page.span_s = 0.01;
    trigger_explain(&a.ev, &a.said);
    assert_contains(a.said.rule, "page of Triton, two reads 10ms apart: ");
}

static void test_two_reads_a_moment_apart_do_not_tell_a_busy_server_from_an_idle_one(void **state)
{
    (void)state;
    PAGE(p); /* reference B.1 #17: a program that has just started, and a queue that is empty at each read */
    static const char page[] = "nv_inference_count{model=\"a\",version=\"1\"} 200\n"
                               "nv_inference_request_success{model=\"a\",version=\"1\"} 200\n"
                               "nv_inference_pending_request_count{model=\"a\",version=\"1\"} 0\n";
    TRIGGER_AUTO rate = parse_with(
        &agent_settings, METADATA("profile", "triton-request-rate", "tritonEndpoint", "http://llm.ml:8002/metrics"));
    static const int64_t before_ns[] = {0, 10 * NS_PER_MS, 900 * NS_PER_MS, 100 * NS_PER_MS};
    for (size_t i = 0; i < ARRAY_LEN(before_ns); i++) {
        bool is_told = i + 1 == ARRAY_LEN(before_ns);
        p.now_ns += before_ns[i];
        page_read(&p, NULL, page);
        struct asked a = ask(&p, rate);
        assert_value(&a, 0);
        assert_false(a.ev.is_above);
        assert_int_equal(a.ev.is_active, !is_told);
        assert_int_equal(strstr(a.said.active_rule, "unknown is not idle") != NULL, !is_told);
    }
}

static void test_named_metric_is_read_as_it_stands(void **state)
{
    (void)state;
    PAGE(p);
    TRIGGER_AUTO t = PARSE("engineMetric", "my_queue", "targetValue", "5");
    page_read(&p, "my_queue", "my_queue{a=\"1\"} 3\nmy_queue{a=\"2\"} 4\n");
    struct asked a = ask(&p, t);
    assert_value(&a, 7);
    assert_true(a.ev.is_active);
    assert_contains(a.said.rule, ": 7");
}

/* ---- activity ---- */

static void test_requests_are_activity_unless_the_metadata_says_what_is(void **state)
{
    (void)state;
    static const struct {
        const char *metric, *threshold; /* "" none */
        int waiting, running;
        double kv;
        bool is_active;
    } rows[] = {
        {"requests_waiting", "", 0, 0, 0, false},    {"requests_waiting", "", 0, 1, 0, true},
        {"requests_waiting", "", 1, 0, 0, true},     {"kv_cache_usage", "", 0, 0, 0.2, false},
        {"kv_cache_usage", "", 0, 1, 0.2, true},     {"requests_waiting", "0", 0, 9, 0.5, false},
        {"requests_waiting", "2", 2, 9, 0.5, false}, {"requests_waiting", "2", 3, 0, 0, true},
        {"kv_cache_usage", "30", 0, 1, 0.2, false},  {"kv_cache_usage", "10", 0, 1, 0.2, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        PAGE(p);
        page_read(&p, NULL, vllm(rows[i].waiting, rows[i].running, rows[i].kv));
        TRIGGER_AUTO t = rows[i].threshold[0] ? PARSE("metricType", rows[i].metric, "targetValue", "50",
                                                      "activationThreshold", rows[i].threshold)
                                              : PARSE("metricType", rows[i].metric, "targetValue", "50");
        struct asked a = ask(&p, t);
        assert_int_equal(a.ev.active_error.class, ERR_NONE);
        if (a.ev.is_active != rows[i].is_active)
            fail_msg("row %zu: %s", i, a.said.active_rule);
        assert_int_equal(a.ev.is_above, rows[i].is_active);
    }
}

static void test_activity_remembers_a_burst_for_its_window(void **state)
{
    (void)state;
    PAGE(p);
    page_read(&p, NULL, vllm(7, 2, 0.5));
    for (int i = 0; i < 11; i++) {
        page_wait(&p, 5);
        page_read(&p, NULL, vllm(0, 0, 0));
    }
    TRIGGER_AUTO t = PARSE("metricType", "requests_waiting", "targetValue", "5");
    struct asked a = ask(&p, t);
    assert_value(&a, 0);
    assert_true(a.ev.is_active);
    assert_string_equal(a.said.active_rule, "at most 9 requests running or waiting within 1m");
    TRIGGER_AUTO given = PARSE("metricType", "requests_waiting", "targetValue", "5", "activationThreshold", "6");
    a = ask(&p, given);
    assert_string_equal(a.said.active_rule, "at most 7 requests within 1m, above 6 requests");
    page_wait(&p, 5);
    page_read(&p, NULL, vllm(0, 0, 0));
    page_wait(&p, 5);
    page_read(&p, NULL, vllm(0, 0, 0));
    a = ask(&p, t);
    assert_false(a.ev.is_active);
    assert_double_same(a.ev.activity, 0);
}

static void test_requests_that_came_and_went_between_two_pages_are_activity(void **state)
{
    (void)state;
    PAGE(p);
    static const char *const texts[] = {"vllm:num_requests_waiting 0\nvllm:num_requests_running 0\n"
                                        "vllm:request_success_total 100\n",
                                        "vllm:num_requests_waiting 0\nvllm:num_requests_running 0\n"
                                        "vllm:request_success_total 150\n"};
    page_read(&p, NULL, texts[0]);
    page_wait(&p, 5);
    page_read(&p, NULL, texts[1]);
    TRIGGER_AUTO t = PARSE("metricType", "request_rate", "targetValue", "5");
    struct asked a = ask(&p, t);
    assert_value(&a, 10);
    assert_true(a.ev.is_active);
    assert_double_same(a.ev.activity, 10);
}

static void test_requests_that_no_read_shows_are_activity_of_any_signal(void **state)
{
    (void)state;
    PAGE(p); /* a busy Triton server shows what waits, not what is computed */
    page_read(&p, NULL,
              "nv_inference_pending_request_count{model=\"a\"} 0\nnv_inference_request_success{model=\"a\"} 5\n");
    page_wait(&p, 5);
    page_read(&p, NULL,
              "nv_inference_pending_request_count{model=\"a\"} 0\nnv_inference_request_success{model=\"a\"} 9\n");
    TRIGGER_AUTO t = PARSE("metricType", "requests_waiting", "targetValue", "5");
    struct asked a = ask(&p, t);
    assert_value(&a, 0);
    assert_true(a.ev.is_active && a.ev.is_above);
    assert_string_equal(a.said.active_rule, "at most 0 requests running or waiting within 1m; some ended that no read "
                                            "showed");
    TRIGGER_AUTO given = PARSE("metricType", "requests_waiting", "targetValue", "5", "activationThreshold", "0");
    a = ask(&p, given);
    assert_false(a.ev.is_active);
    for (int i = 0; i < 13; i++) {
        page_wait(&p, 5);
        page_read(&p, NULL,
                  "nv_inference_pending_request_count{model=\"a\"} 0\nnv_inference_request_success{model=\"a\"} 9\n");
    }
    a = ask(&p, t);
    assert_false(a.ev.is_active);
}

/* ---- errors ---- */

static void test_page_without_the_signal_is_an_error_and_never_zero(void **state)
{
    (void)state;
    PAGE(p);
    page_read(&p, NULL, triton(200, 0));
    TRIGGER_AUTO t = PARSE("metricType", "kv_cache_usage");
    struct asked a = ask(&p, t);
    assert_error(&a, ERR_FAILED_PRECONDITION, "page http://llm.ml:8000/metrics (Triton) does not have kv_cache_usage");
    TRIGGER_AUTO waiting = PARSE("metricType", "requests_waiting", "targetValue", "5");
    a = ask(&p, waiting);
    assert_error(&a, ERR_FAILED_PRECONDITION, "does not have requests_waiting: looked for nv_inference_pending");
    TRIGGER_AUTO named = PARSE("engineMetric", "my_queue");
    a = ask(&p, named);
    assert_error(&a, ERR_FAILED_PRECONDITION, "does not have my_queue");
}

static void test_waiting_requests_of_unknown_size_are_not_zero_tokens(void **state)
{
    (void)state;
    PAGE(p);
    page_read(&p, NULL,
              "vllm:num_requests_waiting 3\nvllm:num_requests_running 1\n"
              "vllm:request_prompt_tokens_sum 0\nvllm:request_prompt_tokens_count 0\n");
    TRIGGER_AUTO t = PARSE("metricType", "tokens_waiting", "targetValue", "5000");
    struct asked a = ask(&p, t);
    assert_int_equal(a.ev.value_error.class, ERR_UNAVAILABLE);
    assert_contains(a.ev.value_error.text, "requests wait, and how long prompts are is known when");
    assert_true(a.ev.is_active && a.ev.is_above);
    page_wait(&p, 5);
    page_read(&p, NULL,
              "vllm:num_requests_waiting 3\nvllm:num_requests_running 1\n"
              "vllm:request_prompt_tokens_sum 900\nvllm:request_prompt_tokens_count 3\n");
    a = ask(&p, t);
    assert_value(&a, 900);
}

static void test_counters_of_two_servers_behind_one_address_make_no_rate(void **state)
{
    (void)state;
    PAGE(p); /* reference B.1 #16 */
    TRIGGER_AUTO t = PARSE("metricType", "request_rate", "targetValue", "50");
    page_read(&p, NULL, "process_start_time_seconds 1700000001\nvllm:request_success_total 1000\n");
    page_wait(&p, 10);
    page_read(&p, NULL, "process_start_time_seconds 1700000002\nvllm:request_success_total 1000000\n");
    struct asked a = ask(&p, t);
    assert_int_equal(a.ev.value_error.class, ERR_UNAVAILABLE);
    assert_contains(a.ev.value_error.text, "one server after the other answers there");
    assert_true(a.ev.is_active);
    assert_false(a.ev.is_above);
    page_wait(&p, 5);
    page_read(&p, NULL, "process_start_time_seconds 1700000002\nvllm:request_success_total 1000050\n");
    a = ask(&p, t);
    assert_true(a.ev.value > 0 && a.ev.value <= 10);
}

static void test_page_that_was_never_read_is_unavailable(void **state)
{
    (void)state;
    PAGE(p);
    TRIGGER_AUTO t = PARSE("metricType", "requests_waiting", "targetValue", "5");
    struct asked a = ask(&p, t);
    assert_error(&a, ERR_UNAVAILABLE, "page http://llm.ml:8000/metrics was never read");
    page_fail(&p, "HTTP 404");
    a = ask(&p, t);
    assert_error(&a, ERR_UNAVAILABLE, "page http://llm.ml:8000/metrics: HTTP 404");
    struct trigger_evaluation ev;
    trigger_evaluate_page(t, NULL, "there is no room for another page", p.now_ns, TRIGGER_ASK_ALL, &ev);
    assert_int_equal(ev.value_error.class, ERR_UNAVAILABLE);
    assert_contains(ev.active_error.text, "was not asked: there is no room for another page");
    trigger_evaluate_page(t, NULL, NULL, p.now_ns, TRIGGER_ASK_ALL, &ev);
    assert_contains(ev.value_error.text, "this program fetches no pages");
}

static void test_old_page_is_unavailable_and_a_recent_one_stands(void **state)
{
    (void)state;
    PAGE(p);
    TRIGGER_AUTO t = PARSE("metricType", "requests_waiting", "targetValue", "5");
    page_read(&p, NULL, vllm(3, 1, 0));
    page_wait(&p, 14);
    page_fail(&p, "connection refused");
    struct asked a = ask(&p, t);
    assert_value(&a, 3);
    assert_true(has_warning((const char(*)[TRIGGER_TEXT_MAX])a.said.warnings, a.said.n_warnings,
                            "the last try to read page http://llm.ml:8000/metrics failed: connection refused"));
    page_wait(&p, 2);
    a = ask(&p, t);
    assert_error(&a, ERR_UNAVAILABLE, "was last read 16s ago: connection refused");
    p.feed.interval_ns = NS_PER_S; /* asked more often: 5 s at least */
    PAGE(fast);
    fast.feed.interval_ns = NS_PER_S;
    page_read(&fast, NULL, vllm(3, 1, 0));
    page_wait(&fast, 4);
    a = ask(&fast, t);
    assert_value(&a, 3);
    page_wait(&fast, 2);
    a = ask(&fast, t);
    assert_error(&a, ERR_UNAVAILABLE, "was last read 6s ago");
}

static void test_triggers_without_a_page_here_are_refused(void **state)
{
    (void)state;
    PAGE(p);
    page_read(&p, NULL, vllm(3, 1, 0));
    TRIGGER_AUTO gpu = PARSE("metricType", "gpu_utilization");
    struct asked a = ask(&p, gpu);
    assert_error(&a, ERR_FAILED_PRECONDITION, "gpu_utilization is not read from an engine's page");
    assert_null(a.ev.feed); /* what was not asked is not shown */
    TRIGGER_AUTO hub = PARSE("metricType", "requests_waiting", "scope", "workload");
    a = ask(&p, hub);
    assert_error(&a, ERR_FAILED_PRECONDITION, "point scalerAddress at the hub");
    TRIGGER_AUTO cluster = PARSE("metricType", "requests_waiting", "scope", "cluster");
    a = ask(&p, cluster);
    assert_error(&a, ERR_FAILED_PRECONDITION, "point scalerAddress at the hub");
    TRIGGER_AUTO at_hub =
        parse_with(&hub_settings, METADATA("metricType", "requests_waiting", "scope", "cluster", ENDPOINT));
    a = ask(&p, at_hub);
    assert_value(&a, 3);
}

static void test_only_what_was_asked_is_answered(void **state)
{
    (void)state;
    PAGE(p);
    page_read(&p, NULL, vllm(3, 1, 0));
    TRIGGER_AUTO t = PARSE("metricType", "requests_waiting", "targetValue", "5");
    struct trigger_evaluation ev;
    trigger_evaluate_page(t, &p.feed, NULL, p.now_ns, TRIGGER_ASK_VALUE, &ev);
    assert_double_same(ev.value, 3);
    assert_false(ev.is_active);
    trigger_evaluate_page(t, &p.feed, NULL, p.now_ns, TRIGGER_ASK_ACTIVITY, &ev);
    assert_double_same(ev.value, 0);
    assert_true(ev.is_active);
}

/* ---- the explanation ---- */

static const char *json_of(struct buf *out, const struct asked *a)
{
    struct json j;
    buf_reset(out);
    json_init(&j, out, 0);
    trigger_explain_json(&a->ev, &j);
    return buf_cstr(out);
}

static const char *text_of(struct buf *out, const struct asked *a)
{
    buf_reset(out);
    trigger_explain_text(&a->ev, out);
    return buf_cstr(out);
}

static void test_text_has_the_page(void **state)
{
    (void)state;
    PAGE(p);
    BUF_AUTO struct buf out;
    buf_init(&out, OUT_BYTES);
    page_read(&p, NULL, vllm(14, 3, 0.25));
    page_wait(&p, 2);
    TRIGGER_AUTO t = PARSE("profile", "vllm-queue-depth");
    struct asked a = ask(&p, t);
    assert_string_equal(
        text_of(&out, &a),
        "trigger  keda_gpu_vllm_queue_depth: vllm_queue_depth of one page in scope node, target 5 requests, active "
        "with any request, profile vllm-queue-depth\n"
        "value    14 requests: page of vLLM, over 15s: 14 requests\n"
        "active   yes: at most 17 requests running or waiting within 1m\n"
        "page     http://llm.ml:8000/metrics vLLM: read 2s ago, 14 waiting, 3 running, KV cache 25 %\n"
        "warning  one page is read: behind a Service it is that of one pod, now this one and now that; scope workload "
        "of the hub reads the page of each pod\n");
}

static void test_json_has_the_page_and_its_flags(void **state)
{
    (void)state;
    PAGE(p);
    BUF_AUTO struct buf out;
    buf_init(&out, OUT_BYTES);
    page_read(&p, NULL, vllm(2, 2, 0.9));
    TRIGGER_AUTO t = PARSE("metricType", "kv_cache_usage", "targetValue", "80");
    struct asked a = ask(&p, t);
    assert_value(&a, 200); /* twice as many want a place as have one */
    const char *text = json_of(&out, &a);
    assert_contains(text, "\"endpoint\":\"http://llm.ml:8000/metrics\"");
    assert_contains(text, "\"page\":{\"url\":\"http://llm.ml:8000/metrics\",\"engine\":\"vLLM\",\"reading\":\"read\","
                          "\"ageSeconds\":0,\"waiting\":2,\"running\":2,\"kvCachePercent\":90,\"peakInFlight\":4,"
                          "\"model\":null,\"flags\":[\"demand\"],\"error\":null},\"inputs\":[]");
    assert_contains(a.said.rule, "; requests wait, so it is the demand");
}

static void test_json_of_a_page_that_was_never_read_has_null(void **state)
{
    (void)state;
    PAGE(p);
    BUF_AUTO struct buf out;
    buf_init(&out, OUT_BYTES);
    page_fail(&p, "HTTP 404");
    TRIGGER_AUTO t = PARSE("metricType", "kv_cache_usage", "targetValue", "80");
    struct asked a = ask(&p, t);
    const char *text = json_of(&out, &a);
    assert_contains(text, "\"value\":null");
    assert_contains(text, "\"engine\":null,\"reading\":\"never\",\"ageSeconds\":null,\"waiting\":null");
    assert_contains(text, "\"error\":\"HTTP 404\"}");
    text = text_of(&out, &a);
    assert_contains(text, "page     http://llm.ml:8000/metrics not read yet; last try: HTTP 404\n");
    assert_contains(text, "warning  never past 3 replicas: kv_cache_usage of one page is at most 200");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_value_is_what_the_page_says),
        cmocka_unit_test(test_value_is_the_mean_of_the_window),
        cmocka_unit_test(test_first_answer_for_a_rate_is_zero_and_the_second_the_difference),
        cmocka_unit_test(test_two_reads_a_moment_apart_do_not_tell_a_busy_server_from_an_idle_one),
        cmocka_unit_test(test_named_metric_is_read_as_it_stands),
        cmocka_unit_test(test_requests_are_activity_unless_the_metadata_says_what_is),
        cmocka_unit_test(test_activity_remembers_a_burst_for_its_window),
        cmocka_unit_test(test_requests_that_came_and_went_between_two_pages_are_activity),
        cmocka_unit_test(test_requests_that_no_read_shows_are_activity_of_any_signal),
        cmocka_unit_test(test_page_without_the_signal_is_an_error_and_never_zero),
        cmocka_unit_test(test_waiting_requests_of_unknown_size_are_not_zero_tokens),
        cmocka_unit_test(test_counters_of_two_servers_behind_one_address_make_no_rate),
        cmocka_unit_test(test_page_that_was_never_read_is_unavailable),
        cmocka_unit_test(test_old_page_is_unavailable_and_a_recent_one_stands),
        cmocka_unit_test(test_triggers_without_a_page_here_are_refused),
        cmocka_unit_test(test_only_what_was_asked_is_answered),
        cmocka_unit_test(test_text_has_the_page),
        cmocka_unit_test(test_json_has_the_page_and_its_flags),
        cmocka_unit_test(test_json_of_a_page_that_was_never_read_has_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
