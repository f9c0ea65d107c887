/* An engine's signal of a workload: each pod's own page as the rules take it, and every state of the table with it. */
#include "workload/workload.h"

#include "pages.h"

#define WAITING "metricType", "requests_waiting", "targetValue", "5"
#define KV      "metricType", "kv_cache_usage", "targetValue", "80"

static enum scaling_reading reading_of(struct world *w, size_t pod)
{
    return world_evaluate(w)->inputs[pod].counted->reading;
}

/* ---- the table of states ---- */

static void test_what_waits_in_front_of_all_pods_adds_up(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, WAITING);
    pages_serve(&w, 1, 8, 4, 60);
    pages_serve(&w, 2, 8, 9, 70);
    pages_serve(&w, 3, 2, 0, 10);
    assert_near(VALUE(w), 13);
    assert_int_equal(state_of(&w.answer, 0), SCALING_POD_MEASURED);
    assert_int_equal(w.answer.mode, WORKLOAD_BY_PAGE);
    assert_true(w.answer.is_active && w.answer.is_above);
}

static void test_engines_may_differ_from_pod_to_pod(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, WAITING); /* case O46 */
    pages_serve(&w, 1, 8, 4, 60);
    (void)pages_pod(&w, 2);
    pages_text(&w, pages_of(&w, 2),
               "# TYPE sglang:num_queue_reqs gauge\n"
               "sglang:num_queue_reqs{model_name=\"m\"} 6\n"
               "# TYPE sglang:num_running_reqs gauge\n"
               "sglang:num_running_reqs{model_name=\"m\"} 1\n");
    assert_near(VALUE(w), 10);
}

static void test_ranks_of_a_server_add_up_and_the_fullest_cache_counts(void **state)
{
    (void)state;
    static const char page[] = "vllm:num_requests_running{engine=\"0\",model_name=\"chat-8b\"} 10\n"
                               "vllm:num_requests_waiting{engine=\"0\",model_name=\"chat-8b\"} 117\n"
                               "vllm:num_requests_waiting{engine=\"1\",model_name=\"chat-8b\"} 3\n"
                               "vllm:num_requests_waiting{engine=\"2\",model_name=\"chat-8b\"} 0\n"
                               "vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"chat-8b\"} 1.0\n"
                               "vllm:kv_cache_usage_perc{engine=\"1\",model_name=\"chat-8b\"} 0.41\n"
                               "vllm:kv_cache_usage_perc{engine=\"2\",model_name=\"chat-8b\"} 0.0\n";
    WORLD w;
    WORLD kv;
    PAGES_INIT(w, WAITING); /* case O29 */
    (void)pages_pod(&w, 1);
    pages_text(&w, pages_of(&w, 1), page);
    assert_near(VALUE(w), 120);
    PAGES_INIT(kv, KV);
    (void)pages_pod(&kv, 1);
    pages_text(&kv, pages_of(&kv, 1), page);
    assert_near(VALUE(kv), 200); /* at most: a backlog of a slow start must not order a fleet */
}

static void test_a_page_that_cannot_be_read_is_missing_and_holds(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, WAITING);
    pages_serve(&w, 1, 1, 0, 5);
    pages_dead(&w, 2);
    pages_serve(&w, 3, 1, 0, 5);
    assert_near(VALUE(w), 5); /* that one may have as many as T: one replica would do */
    assert_int_equal(w.answer.result.rule, SCALING_RULE_SHRINK);
    assert_int_equal(state_of(&w.answer, 1), SCALING_POD_MISSING);
    assert_contains(w.answer.inputs[1].text, "its page http://10.0.0.2:8000/metrics: connection refused");
    WORLD kv;
    PAGES_INIT(kv, KV); /* up to 200 % of its cache may be asked for */
    pages_serve(&kv, 1, 1, 0, 30);
    pages_dead(&kv, 2);
    pages_serve(&kv, 3, 1, 0, 30);
    assert_near(VALUE(kv), 240);
    assert_int_equal(kv.answer.result.rule, SCALING_RULE_HOLD);
    assert_true(kv.answer.is_active);
}

static void test_a_page_too_old_is_no_value(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, KV);
    pages_serve(&w, 1, 4, 0, 90);
    world_wait(&w, 14);
    assert_near(VALUE(w), 90);
    pages_fail(&w, pages_of(&w, 1), "HTTP 503");
    world_wait(&w, 2); /* three intervals of 5 s */
    assert_refused(w, ERR_UNAVAILABLE, "its page http://10.0.0.1:8000/metrics was last read 16 s ago; HTTP 503");
    assert_true(w.answer.is_active); /* unknown is not idle */
    assert_int_equal(w.answer.active_error.class, ERR_NONE);
}

static void test_of_a_missing_page_the_last_good_value_is_kept(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, WAITING);
    pages_serve(&w, 1, 8, 40, 100);
    pages_serve(&w, 2, 8, 3, 100);
    assert_near(VALUE(w), 43);
    world_wait(&w, 16);
    pages_vllm(&w, 2, 8, 3, 100);
    w.facts.spec = w.facts.status = 2;
    (void)VALUE(w);
    const struct scaling_replica *missing = w.answer.inputs[0].replica;
    assert_int_equal(missing->state, SCALING_POD_MISSING);
    assert_near(missing->upper.value, 40);
    assert_near(w.answer.value, 10); /* held */
}

static void test_after_five_minutes_it_is_like_the_others(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, WAITING);
    pages_serve(&w, 1, 8, 10, 100);
    pages_dead(&w, 2);
    world_look(&w);
    world_wait(&w, 290);
    pages_vllm(&w, 1, 8, 10, 100);
    world_wait(&w, 11);
    pages_vllm(&w, 1, 8, 10, 100);
    (void)VALUE(w);
    assert_int_equal(state_of(&w.answer, 1), SCALING_POD_UNOBSERVABLE);
    assert_near(w.answer.value, 20);
}

static void test_nothing_is_known_before_the_first_fetch(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, WAITING);
    (void)pages_pod(&w, 1);
    assert_refused(w, ERR_UNAVAILABLE, "its page http://10.0.0.1:8000/metrics has not been read yet");
    assert_int_equal(w.answer.inputs[0].counted->reading, SCALING_READ_NOT_YET);
    world_wait(&w, 14);
    assert_int_equal(reading_of(&w, 0), SCALING_READ_MISSING);
}

static void test_a_page_that_was_not_read_yet_lets_nobody_take_replicas_away(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, WAITING);
    for (unsigned i = 1; i <= 4; i++)
        pages_serve(&w, i, 0, 0, 0);
    (void)pages_pod(&w, 5); /* a hub has just started, and this one comes last */
    assert_near(VALUE(w), 5 * 5);
    assert_int_equal(reading_of(&w, 4), SCALING_READ_NOT_YET);
    world_wait(&w, 14);
    for (unsigned i = 1; i <= 4; i++)
        pages_vllm(&w, i, 0, 0, 0);
    assert_near(VALUE(w), 5); /* it is missing like any other: a replica's load at most */
}

static void test_a_pod_that_became_ready_a_moment_ago_holds_until_its_first_page(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, WAITING);
    struct kube_pod pod = pages_kube_pod(&w, 1);
    pod.condition_s = world_api_now(&w) - 2;
    (void)world_add(&w, &pod);
    assert_near(VALUE(w), 5);
    assert_int_equal(w.answer.result.rule, SCALING_RULE_HOLD_LOADING);
    assert_true(w.answer.is_active);
}

static void test_a_signal_that_the_page_does_not_have_is_named(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, "metricType", "queue_wait_ms", "targetValue", "50");
    pages_serve(&w, 1, 4, 0, 50);
    assert_refused(w, ERR_FAILED_PRECONDITION,
                   "its page http://10.0.0.1:8000/metrics (vLLM) has no queue_wait_ms: no ");
    assert_int_equal(w.answer.inputs[0].counted->reading, SCALING_READ_UNSUPPORTED);
    assert_int_equal(w.answer.active_error.class, ERR_FAILED_PRECONDITION);
}

static void test_where_pages_are_not_fetched_that_is_the_answer(void **state)
{
    (void)state;
    WORLD w;
    WORLD asked;
    WORLD_INIT(w, WAITING);
    (void)pages_pod(&w, 1);
    assert_refused(w, ERR_FAILED_PRECONDITION, "pages are not fetched here");
    assert_int_equal(w.answer.active_error.class, ERR_FAILED_PRECONDITION);
    PAGES_INIT(asked, WAITING);
    (void)pages_pod(&asked, 1);
    asked.page_why = "20000 pages are fetched already";
    assert_refused(asked, ERR_UNAVAILABLE, "its page cannot be asked for: 20000 pages are fetched already");
}

static void test_a_pod_without_an_address_is_missing(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, WAITING);
    struct kube_pod pod = pages_kube_pod(&w, 1);
    pod.ip = "";
    (void)world_add(&w, &pod);
    assert_refused(w, ERR_UNAVAILABLE, "it has no address yet");
}

static void test_pods_that_do_not_count_are_not_asked(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, WAITING); /* case O35: only pods that are there */
    pages_serve(&w, 1, 1, 2, 5);
    struct kube_pod gone = pages_kube_pod(&w, 2), loading = pages_kube_pod(&w, 3), stuck = pages_kube_pod(&w, 4);
    gone.meta.is_deleted = true;
    loading.is_ready = stuck.is_ready = false;
    loading.meta.created_s = loading.condition_s = loading.started_s = world_api_now(&w) - 60;
    stuck.meta.created_s = stuck.condition_s = stuck.started_s = world_api_now(&w) - 3600;
    (void)world_add(&w, &gone);
    (void)world_add(&w, &loading);
    (void)world_add(&w, &stuck);
    w.facts.spec = 2;
    (void)VALUE(w);
    assert_int_equal(w.n_pages, 1);
    assert_int_equal(state_of(&w.answer, 1), SCALING_POD_GONE);
    assert_int_equal(state_of(&w.answer, 2), SCALING_POD_LOADING);
    assert_int_equal(state_of(&w.answer, 3), SCALING_POD_STUCK);
    assert_near(w.answer.value, 10); /* 2 waiting and a place that may be full: the two that are there */
}

static void test_a_stuck_pod_does_not_stop_the_others_from_shrinking(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, WAITING); /* case O60: wanted 3, one Pending for an hour, the load of one */
    pages_serve(&w, 1, 1, 2, 5);
    pages_serve(&w, 2, 1, 2, 5);
    struct kube_pod stuck = pages_kube_pod(&w, 3);
    stuck.phase = KUBE_PENDING;
    stuck.is_ready = stuck.has_condition = false;
    stuck.meta.created_s = world_api_now(&w) - 3600;
    (void)world_add(&w, &stuck);
    assert_near(VALUE(w), 4);
    assert_int_equal(w.answer.sent.proposal, 1);
}

static void test_an_overloaded_pod_that_lost_readiness_counts_as_its_page_says(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, WAITING);
    struct kube_pod pod = pages_kube_pod(&w, 1);
    pod.is_ready = false;
    pod.condition_s = world_api_now(&w) - 60;
    (void)world_add(&w, &pod);
    pages_vllm(&w, 1, 8, 40, 100);
    assert_near(VALUE(w), 40);
    assert_int_equal(state_of(&w.answer, 0), SCALING_POD_UNREADY);
    world_wait(&w, 285);
    pages_vllm(&w, 1, 8, 2, 100);
    world_wait(&w, 15);
    pages_vllm(&w, 1, 8, 2, 100);
    (void)VALUE(w);
    assert_int_equal(state_of(&w.answer, 0), SCALING_POD_HUNG);
    assert_near(w.answer.value, 5); /* it takes a place */
}

static void test_pages_of_the_time_before_ready_do_not_count_as_since_ready(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, "metricType", "requests_waiting", "targetValue", "5", "window", "60");
    struct kube_pod pod = pages_kube_pod(&w, 1);
    pod.is_ready = false;
    pod.meta.created_s = pod.condition_s = pod.started_s = world_api_now(&w);
    struct workload_pod *p = world_add(&w, &pod);
    world_wait(&w, 30);
    pages_vllm(&w, 1, 0, 0, 0);
    world_wait(&w, 10);
    pod.is_ready = true;
    pod.condition_s = world_api_now(&w);
    world_update(&w, p, &pod);
    world_look(&w);
    pages_vllm(&w, 1, 8, 12, 90);
    world_wait(&w, 10);
    pages_vllm(&w, 1, 8, 12, 90);
    w.facts.spec = 5;
    (void)world_evaluate(&w);
    const struct scaling_replica *r = w.answer.inputs[0].replica;
    assert_int_equal(r->state, SCALING_POD_YOUNG);
    assert_near(r->load.since_ready.value, 12);
    assert_near(r->lower.value, 2); /* spread over the whole window */
    assert_near(r->upper.value, 12);
    assert_true(r->load.window.value < 12);
}

/* A pod that comes up while the hub watches; its first page is read `late_s` after Ready, the next ones each 5 s. */
static void come_up(struct world *w, double late_s)
{
    w->is_new = true;
    struct kube_pod pod = pages_kube_pod(w, 1);
    pod.is_ready = false;
    pod.meta.created_s = pod.condition_s = pod.started_s = world_api_now(w);
    struct workload_pod *p = world_add(w, &pod);
    world_wait(w, 30);
    pod.is_ready = true;
    pod.condition_s = world_api_now(w);
    world_update(w, p, &pod);
    world_wait(w, late_s);
}

static void test_a_page_that_was_there_from_ready_on_needs_no_more_past(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, WAITING);
    come_up(&w, 0);
    world_look(&w);
    world_wait(&w, 4);
    pages_vllm(&w, 1, 8, 12, 90);
    world_wait(&w, 12);
    pages_vllm(&w, 1, 8, 12, 90);
    assert_near(VALUE(w), 12);
    assert_int_equal(state_of(&w.answer, 0), SCALING_POD_MEASURED);
}

static void test_a_page_first_asked_long_after_ready_says_nothing_of_the_time_before(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, "metricType", "requests_waiting", "targetValue", "5", "window", "60");
    come_up(&w, 20);
    world_look(&w);
    pages_vllm(&w, 1, 8, 12, 90);
    world_wait(&w, 5);
    pages_vllm(&w, 1, 8, 12, 90);
    (void)VALUE(w);
    assert_int_equal(w.answer.inputs[0].counted->reading, SCALING_READ_OK);
    assert_false(w.answer.inputs[0].counted->load.since_ready.is_known);
    assert_true(w.answer.result.is_hold);
}

static void test_the_first_zeros_of_a_server_are_no_idleness(void **state)
{
    (void)state;
    static const char zeros[] = "vllm:num_requests_running{engine=\"0\"} 0\nvllm:num_requests_waiting{engine=\"0\"} 0\n"
                                "vllm:kv_cache_usage_perc{engine=\"0\"} 0\n"
                                "vllm:generation_tokens_total{engine=\"0\"} 0\n";
    WORLD w;
    PAGES_INIT(w, KV); /* case O30 */
    struct kube_pod pod = pages_kube_pod(&w, 1);
    pod.condition_s = world_api_now(&w) - 16;
    (void)world_add(&w, &pod);
    pages_text(&w, pages_of(&w, 1), zeros);
    assert_near(VALUE(w), 80); /* held */
    assert_true(w.answer.is_active);
    assert_contains(w.answer.inputs[0].text, "has shown nothing but zeros since it became Ready");
    world_wait(&w, 15);
    pages_text(&w, pages_of(&w, 1), zeros);
    assert_near(VALUE(w), 0);
    assert_false(w.answer.is_active);
    assert_string_equal(w.answer.inputs[0].text, "");
}

static void test_another_pod_at_the_address_leaves_nothing_behind(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, WAITING);
    pages_vllm(&w, 1, 8, 40, 100); /* of the one before */
    world_wait(&w, 10);
    struct kube_pod pod = pages_kube_pod(&w, 1);
    pod.meta.created_s = pod.started_s = pod.condition_s = world_api_now(&w) - 3;
    (void)world_add(&w, &pod);
    assert_int_not_equal(reading_of(&w, 0), SCALING_READ_OK);
}

/* ---- what a number is ---- */

static void test_the_window_is_a_mean_over_its_time(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, "metricType", "requests_waiting", "targetValue", "5", "window", "20");
    pages_serve(&w, 1, 8, 0, 50);
    world_wait(&w, 10);
    pages_vllm(&w, 1, 8, 10, 50);
    world_wait(&w, 10);
    assert_near(VALUE(w), 5);
}

static void test_waiting_requests_make_a_prefill_bound_server_full(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, KV); /* case O31: the cache is at 32 %, and the queue grows */
    pages_serve(&w, 1, 20, 5, 32);
    assert_near(VALUE(w), 125);
    assert_int_equal(w.answer.sent.proposal, 2);
    world_wait(&w, 5);
    pages_vllm(&w, 1, 20, 60, 32);
    world_wait(&w, 8);
    pages_vllm(&w, 1, 20, 60, 32);
    world_wait(&w, 8);
    assert_near(VALUE(w), 200);
    assert_int_equal(w.answer.sent.proposal, 3);
}

static void test_a_full_cache_without_a_queue_grows_by_one(void **state)
{
    (void)state;
    WORLD w;
    WORLD near;
    PAGES_INIT(w, KV);
    pages_serve(&w, 1, 20, 0, 97);
    assert_near(VALUE(w), 97);
    assert_int_equal(w.answer.sent.proposal, 2);
    PAGES_INIT(near, KV); /* case O37: within the HPA's tolerance */
    pages_serve(&near, 1, 20, 0, 87);
    assert_near(VALUE(near), 87);
    assert_int_equal(near.answer.sent.proposal, 1);
}

static void test_one_request_is_no_reason_to_grow(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, KV); /* case O41: utilisation would say 98 % */
    pages_serve(&w, 1, 1, 0, 3);
    assert_near(VALUE(w), 3);
    assert_int_equal(w.answer.sent.proposal, 1);
    assert_true(w.answer.is_active);
}

static void test_a_latency_is_the_mean_over_requests(void **state)
{
    (void)state;
    static const char page[] = "vllm:num_requests_running{engine=\"0\"} 2\nvllm:num_requests_waiting{engine=\"0\"} 0\n"
                               "# TYPE vllm:request_queue_time_seconds histogram\n"
                               "vllm:request_queue_time_seconds_bucket{engine=\"0\",le=\"+Inf\"} %2$d\n"
                               "vllm:request_queue_time_seconds_sum{engine=\"0\"} %1$g\n"
                               "vllm:request_queue_time_seconds_count{engine=\"0\"} %2$d\n";
    WORLD w;
    PAGES_INIT(w, "metricType", "queue_wait_ms", "targetValue", "100");
    for (unsigned i = 1; i <= 3; i++) {
        (void)pages_pod(&w, i);
        pages_say(&w, pages_of(&w, i), page, 0.0, 0);
    }
    world_wait(&w, 5);
    pages_say(&w, pages_of(&w, 1), page, 9.0, 90); /* 100 ms each */
    pages_say(&w, pages_of(&w, 2), page, 3.0, 10); /* 300 ms each */
    pages_say(&w, pages_of(&w, 3), page, 0.0, 0);
    assert_near(VALUE(w), 3 * 120);
    const struct workload_input *in = w.answer.inputs;
    assert_near(in[0].counted->load.window.value, 100);
    assert_near(in[0].counted->load.weight, 90);
    assert_near(in[1].counted->load.window.value, 300);
    assert_near(in[2].counted->load.weight, 0);
}

static void test_a_server_that_hangs_orders_no_replicas(void **state)
{
    (void)state;
    static const char page[] = "vllm:num_requests_running{engine=\"0\"} 1\nvllm:num_requests_waiting{engine=\"0\"} 14\n"
                               "vllm:kv_cache_usage_perc{engine=\"0\"} 0.76\n"
                               "# TYPE vllm:generation_tokens_total counter\n"
                               "vllm:generation_tokens_total{engine=\"0\"} %g\n";
    WORLD w;
    PAGES_INIT(w, KV); /* cases O27 and O33: 900 tokens a second, then 5.4 */
    (void)pages_pod(&w, 1);
    double tokens = 1000;
    for (int i = 0; i < 24; i++, tokens += 4500, world_wait(&w, 5))
        pages_say(&w, pages_of(&w, 1), page, tokens);
    pages_say(&w, pages_of(&w, 1), page, tokens);
    assert_near(VALUE(w), 200);
    for (int i = 0; i < 61; i++) {
        world_wait(&w, 5);
        tokens += 27;
        pages_say(&w, pages_of(&w, 1), page, tokens);
    }
    assert_near(VALUE(w), 0);
    assert_true(w.answer.inputs[0].page->is_stalled);
    assert_true(w.answer.is_active); /* hung is not idle */
}

static void test_a_cache_that_looks_used_with_nothing_running_is_idle(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, KV); /* case O26 */
    (void)pages_pod(&w, 1);
    for (int i = 0; i < 13; i++, world_wait(&w, 5))
        pages_vllm(&w, 1, 0, 0, 99);
    pages_vllm(&w, 1, 0, 0, 99);
    assert_near(VALUE(w), 0);
    assert_true(w.answer.inputs[0].page->is_idle_gauge);
    assert_false(w.answer.is_active);
}

static void test_a_latency_that_more_replicas_cannot_better_holds_nothing_up(void **state)
{
    (void)state;
    static const char page[] = "vllm:num_requests_running{engine=\"0\"} 1\nvllm:num_requests_waiting{engine=\"0\"} 0\n"
                               "# TYPE vllm:time_to_first_token_seconds histogram\n"
                               "vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"+Inf\"} %2$d\n"
                               "vllm:time_to_first_token_seconds_sum{engine=\"0\"} %1$g\n"
                               "vllm:time_to_first_token_seconds_count{engine=\"0\"} %2$d\n";
    WORLD w;
    PAGES_INIT(w, "metricType", "time_to_first_token_ms", "targetValue", "500");
    for (unsigned i = 1; i <= 2; i++)
        (void)pages_pod(&w, i);
    for (int k = 0; k < 5; k++, world_wait(&w, 5)) /* case O62: 900 ms each, alone on the server */
        for (unsigned i = 1; i <= 2; i++)
            pages_say(&w, pages_of(&w, i), page, 0.9 * k, k);
    assert_near(VALUE(w), 0);
    assert_true(w.answer.inputs[0].page->is_uncontended);
    assert_int_equal(w.answer.sent.proposal, 0);
}

/* ---- activity ---- */

static void test_any_request_is_work_where_no_threshold_is_given(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, WAITING);
    pages_serve(&w, 1, 1, 0, 1); /* nothing waits */
    assert_near(VALUE(w), 0);
    assert_true(w.answer.is_active && w.answer.is_above);
    world_wait(&w, 40);
    pages_vllm(&w, 1, 0, 0, 0);
    world_wait(&w, 30);
    pages_vllm(&w, 1, 0, 0, 0);
    world_wait(&w, 31);
    pages_vllm(&w, 1, 0, 0, 0);
    (void)VALUE(w);
    assert_false(w.answer.is_active);
}

static void test_a_threshold_in_the_metadata_is_of_the_signal(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, WAITING, "activationThreshold", "2");
    pages_serve(&w, 1, 5, 2, 1);
    (void)VALUE(w);
    assert_false(w.answer.is_active);
    world_wait(&w, 1);
    pages_vllm(&w, 1, 5, 3, 1);
    (void)VALUE(w);
    assert_true(w.answer.is_active && w.answer.is_above);
}

static void test_a_burst_between_two_questions_is_seen(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, WAITING);
    pages_serve(&w, 1, 3, 0, 1);
    world_wait(&w, 5);
    pages_vllm(&w, 1, 0, 0, 0);
    world_wait(&w, 40);
    pages_vllm(&w, 1, 0, 0, 0);
    (void)VALUE(w);
    assert_true(w.answer.is_active);
}

static void test_requests_too_short_for_any_gauge_are_work_too(void **state)
{
    (void)state;
    static const char page[] = "vllm:num_requests_running{engine=\"0\"} 0\nvllm:num_requests_waiting{engine=\"0\"} 0\n"
                               "vllm:kv_cache_usage_perc{engine=\"0\"} 0\n"
                               "# TYPE vllm:request_success_total counter\n"
                               "vllm:request_success_total{engine=\"0\",finished_reason=\"stop\"} %d\n";
    WORLD w;
    PAGES_INIT(w, KV);
    (void)pages_pod(&w, 1);
    pages_say(&w, pages_of(&w, 1), page, 100);
    (void)VALUE(w);
    assert_false(w.answer.is_active); /* one page says nothing of a change */
    world_wait(&w, 5);
    pages_say(&w, pages_of(&w, 1), page, 150);
    assert_near(VALUE(w), 0);
    assert_true(w.answer.is_active && w.answer.is_above);
    for (int i = 0; i < 13; i++) {
        world_wait(&w, 5);
        pages_say(&w, pages_of(&w, 1), page, 150);
    }
    (void)VALUE(w);
    assert_false(w.answer.is_active);
}

/* ---- who is looked at, and how ---- */

static void test_only_the_leader_of_a_group_has_a_page(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, WAITING);
    for (unsigned i = 1; i <= 4; i++) {
        struct kube_pod pod = pages_kube_pod(&w, i);
        pod.group = (i - 1) / 2;
        pod.worker = (i - 1) % 2;
        (void)world_add(&w, &pod);
    }
    pages_vllm(&w, 1, 8, 7, 90);
    pages_vllm(&w, 3, 8, 4, 90);
    w.facts.spec = w.facts.status = 2;
    assert_near(VALUE(w), 11);
    assert_int_equal(w.n_pages, 2);
    assert_int_equal(w.answer.result.replicas.ready, 4);
    assert_int_equal(w.answer.result.n, 2);
    assert_null(w.answer.inputs[1].counted);
}

static void test_where_a_page_is_follows_the_pod(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, WAITING);
    struct kube_pod pod = pages_kube_pod(&w, 1);
    pod.n_ports = 1;
    pod.ports[0] = (struct kube_port){.name = "http", .number = 8000};
    struct workload_pod *p = world_add(&w, &pod);
    pages_vllm(&w, 1, 1, 2, 3);
    assert_near(VALUE(w), 2);
    assert_int_equal(w.last_port, 8000);
    pod.ip = "10.0.0.9";
    pod.ports[0].number = 9000;
    pod.annotated_path = "/prom";
    world_update(&w, p, &pod);
    pages_vllm(&w, 9, 1, 6, 3);
    assert_near(VALUE(w), 6);
    assert_int_equal(w.last_port, 9000);
    assert_string_equal(w.last_path, "/prom");
}

static void test_pages_are_kept_wanted_between_questions(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, WAITING);
    (void)pages_pod(&w, 1);
    world_look(&w);
    assert_int_equal(w.n_pages, 1);
    for (int i = 0; i < 4; i++, world_wait(&w, 5)) {
        pages_vllm(&w, 1, 1, 2, 3);
        world_look(&w);
    }
    assert_near(VALUE(w), 2); /* at the first question */
}

static void test_a_page_read_for_less_than_the_window_holds(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, WAITING);
    w.is_new = true; /* another hub may know of the load before */
    pages_serve(&w, 1, 8, 40, 90);
    assert_near(VALUE(w), 5);
    assert_true(w.answer.result.is_hold && w.answer.is_active);
    assert_contains(w.answer.inputs[0].text, "has not been read for as long as the window yet");
    world_wait(&w, 10);
    pages_vllm(&w, 1, 8, 40, 90);
    assert_near(VALUE(w), 5);
    world_wait(&w, 5);
    pages_vllm(&w, 1, 8, 40, 90);
    assert_near(VALUE(w), 40);
}

static void test_what_was_said_before_an_outage_is_no_value_after_it(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, WAITING);
    pages_serve(&w, 1, 8, 40, 90);
    assert_near(VALUE(w), 40);
    world_wait(&w, 200);
    pages_fail(&w, pages_of(&w, 1), "HTTP 500");
    world_look(&w);
    pages_vllm(&w, 1, 1, 0, 9);
    for (int i = 0; i < 3; i++) {
        assert_near(VALUE(w), 5);
        assert_true(w.answer.result.is_hold);
        world_wait(&w, 5);
        pages_vllm(&w, 1, 1, 0, 9);
    }
    assert_near(VALUE(w), 0);
}

static void test_the_pages_of_running_jobs_say_nothing_of_what_waits(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, WAITING);
    pages_serve(&w, 1, 1, 12, 50);
    w.facts.is_job = true;
    w.facts.is_scale_known = false;
    assert_refused(w, ERR_FAILED_PRECONDITION, "scope cluster, and vllmEndpoint or tritonEndpoint");
}

static void test_a_metric_of_the_users_choice(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, "metricType", "engine_metric", "engineMetric", "my_backlog", "targetValue", "10");
    (void)pages_pod(&w, 1);
    (void)pages_pod(&w, 2);
    pages_text(&w, pages_of(&w, 1), "# TYPE my_backlog gauge\nmy_backlog{q=\"a\"} 3\nmy_backlog{q=\"b\"} 4\n");
    pages_text(&w, pages_of(&w, 2), "my_backlog 5\n");
    assert_near(VALUE(w), 12);
}

/* ---- scope cluster ---- */

static void test_scope_cluster_reads_the_page_of_the_endpoint(void **state)
{
    (void)state;
    WORLD w;
    WORLD none;
    PAGES_INIT(w, "profile", "vllm-queue-depth", "scope", "cluster", "vllmEndpoint", "http://router/metrics");
    pages_say(&w, world_url(&w, "http://router/metrics"),
              "vllm:num_requests_waiting{engine=\"0\"} 14\nvllm:num_requests_running{engine=\"0\"} 1\n");
    assert_near(VALUE(w), 14); /* reference A.12 16 */
    assert_true(w.answer.is_active && w.answer.is_cluster && w.answer.is_above);
    w.page_why = "is a link-local address";
    assert_refused(w, ERR_UNAVAILABLE, "link-local");
    WORLD_INIT(none, "profile", "vllm-queue-depth", "scope", "cluster", "vllmEndpoint", "http://router/metrics");
    assert_refused(none, ERR_UNAVAILABLE, "pages of endpoints are not fetched here");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_waits_in_front_of_all_pods_adds_up),
        cmocka_unit_test(test_engines_may_differ_from_pod_to_pod),
        cmocka_unit_test(test_ranks_of_a_server_add_up_and_the_fullest_cache_counts),
        cmocka_unit_test(test_a_page_that_cannot_be_read_is_missing_and_holds),
        cmocka_unit_test(test_a_page_too_old_is_no_value),
        cmocka_unit_test(test_of_a_missing_page_the_last_good_value_is_kept),
        cmocka_unit_test(test_after_five_minutes_it_is_like_the_others),
        cmocka_unit_test(test_nothing_is_known_before_the_first_fetch),
        cmocka_unit_test(test_a_page_that_was_not_read_yet_lets_nobody_take_replicas_away),
        cmocka_unit_test(test_a_pod_that_became_ready_a_moment_ago_holds_until_its_first_page),
        cmocka_unit_test(test_a_signal_that_the_page_does_not_have_is_named),
        cmocka_unit_test(test_where_pages_are_not_fetched_that_is_the_answer),
        cmocka_unit_test(test_a_pod_without_an_address_is_missing),
        cmocka_unit_test(test_pods_that_do_not_count_are_not_asked),
        cmocka_unit_test(test_a_stuck_pod_does_not_stop_the_others_from_shrinking),
        cmocka_unit_test(test_an_overloaded_pod_that_lost_readiness_counts_as_its_page_says),
        cmocka_unit_test(test_pages_of_the_time_before_ready_do_not_count_as_since_ready),
        cmocka_unit_test(test_a_page_that_was_there_from_ready_on_needs_no_more_past),
        cmocka_unit_test(test_a_page_first_asked_long_after_ready_says_nothing_of_the_time_before),
        cmocka_unit_test(test_the_first_zeros_of_a_server_are_no_idleness),
        cmocka_unit_test(test_another_pod_at_the_address_leaves_nothing_behind),
        cmocka_unit_test(test_the_window_is_a_mean_over_its_time),
        cmocka_unit_test(test_waiting_requests_make_a_prefill_bound_server_full),
        cmocka_unit_test(test_a_full_cache_without_a_queue_grows_by_one),
        cmocka_unit_test(test_one_request_is_no_reason_to_grow),
        cmocka_unit_test(test_a_latency_is_the_mean_over_requests),
        cmocka_unit_test(test_any_request_is_work_where_no_threshold_is_given),
        cmocka_unit_test(test_a_threshold_in_the_metadata_is_of_the_signal),
        cmocka_unit_test(test_a_burst_between_two_questions_is_seen),
        cmocka_unit_test(test_requests_too_short_for_any_gauge_are_work_too),
        cmocka_unit_test(test_a_server_that_hangs_orders_no_replicas),
        cmocka_unit_test(test_a_cache_that_looks_used_with_nothing_running_is_idle),
        cmocka_unit_test(test_a_latency_that_more_replicas_cannot_better_holds_nothing_up),
        cmocka_unit_test(test_only_the_leader_of_a_group_has_a_page),
        cmocka_unit_test(test_where_a_page_is_follows_the_pod),
        cmocka_unit_test(test_pages_are_kept_wanted_between_questions),
        cmocka_unit_test(test_a_page_read_for_less_than_the_window_holds),
        cmocka_unit_test(test_what_was_said_before_an_outage_is_no_value_after_it),
        cmocka_unit_test(test_the_pages_of_running_jobs_say_nothing_of_what_waits),
        cmocka_unit_test(test_a_metric_of_the_users_choice),
        cmocka_unit_test(test_scope_cluster_reads_the_page_of_the_endpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
