/* Answers about windows of time, by vectors that were reckoned by hand; and what an answer says beside its value. */
#include "pages.h"

#include <math.h>
#include <stdio.h>

static const char *page_of(int running, int waiting, double kv, double tokens)
{
    static char page[512];
    int len = 0;
    if (running >= 0)
        len += snprintf(page, sizeof(page), "vllm:num_requests_running %d\n", running);
    if (waiting >= 0)
        len += snprintf(page + len, sizeof(page) - (size_t)len, "vllm:num_requests_waiting %d\n", waiting);
    if (kv >= 0)
        len += snprintf(page + len, sizeof(page) - (size_t)len, "vllm:kv_cache_usage_perc %g\n", kv);
    if (tokens >= 0)
        (void)snprintf(page + len, sizeof(page) - (size_t)len, "vllm:generation_tokens_total %.15g\n", tokens);
    return page;
}

/* Pages at 0, 10, 20, 25 s with 4, 8, 2, 6 waiting and 0, 100, 400, 450 tokens. */
static struct signals_history *four_pages(void)
{
    struct signals_history *h = signals_history_new();
    add_page(h, page_of(1, 4, 0.1, 0), 0);
    add_page(h, page_of(1, 8, 0.2, 100), 10);
    add_page(h, page_of(1, 2, 0.3, 400), 20);
    add_page(h, page_of(1, 6, 0.4, 450), 25);
    return h;
}

static void test_a_level_is_its_mean_over_the_window(void **state)
{
    (void)state;
    static const struct {
        double now_s, window_s, want;
    } rows[] = {
        {25, 0, 6}, /* the newest page */
        {30, 0, 6},
        {30, 5, 6}, /* it held all the time */
        {30, 10, (2 * 5 + 6 * 5) / 10.0},
        {30, 15, (8 * 5 + 2 * 5 + 6 * 5) / 15.0}, /* the page at 10 s held until 20 s */
        {25, 15, (8 * 10 + 2 * 5) / 15.0},
        {25, 300, (4 * 10 + 8 * 10 + 2 * 5) / 25.0}, /* since the first page */
        {30, 30, (4 * 10 + 8 * 10 + 2 * 5 + 6 * 5) / 30.0},
        {26, 1, 6},
        {26, 1.5, (2 * 0.5 + 6 * 1) / 1.5},
    };
    struct signals_history *h = four_pages();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_double_near(ask(h, SIGNALS_REQUESTS_WAITING, rows[i].now_s, rows[i].window_s).value, rows[i].want, 1e-9);
    signals_history_free(h);
}

static void test_a_rate_is_the_growth_since_the_oldest_page_of_the_window(void **state)
{
    (void)state;
    static const struct {
        double now_s, window_s, want;
    } rows[] = {
        {25, 300, 450 / 25.0}, {25, 15, 350 / 15.0}, {25, 14, 50 / 5.0}, {25, 5, 10},
        {25, 0, 10},           {30, 5, 10},          {40, 5, 10},
    };
    struct signals_history *h = four_pages();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_double_near(ask(h, SIGNALS_TOKENS_PER_SECOND, rows[i].now_s, rows[i].window_s).value, rows[i].want,
                           1e-6);
    struct signals_answer a = ask(h, SIGNALS_TOKENS_PER_SECOND, 25, 300);
    assert_double_near(a.peak.value, 30, 1e-6); /* from 10 to 20 s */
    signals_history_free(h);
}

static void test_a_peak_is_the_largest_page_of_the_activation_window(void **state)
{
    (void)state;
    struct signals_history *h = four_pages();
    static const struct {
        double window_s, want;
    } rows[] = {{0, 6}, {5, 6}, {6, 6}, {15, 8}, {29, 8}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct signals_question q = {.signal = SIGNALS_REQUESTS_WAITING,
                                     .now_ns = AT(30),
                                     .window_ns = 0,
                                     .activation_window_ns = (int64_t)(rows[i].window_s * 1e9)};
        struct signals_answer a;
        signals_read(h, &q, &a);
        assert_true(a.peak.is_known);
        assert_double_same(a.peak.value, rows[i].want);
        assert_double_same(a.in_flight.value, rows[i].want + 1);
    }
    signals_history_free(h);
}

static void test_a_burst_between_two_looks_is_in_the_peak(void **state)
{
    (void)state;
    struct signals_history *h = signals_history_new();
    for (int t = 0; t <= 60; t += 5)
        add_page(h, page_of(0, t == 10 ? 1 : 0, 0, 0), t);
    assert_double_same(ask(h, SIGNALS_REQUESTS_WAITING, 60, 15).value, 0);
    assert_double_same(ask(h, SIGNALS_REQUESTS_WAITING, 60, 15).peak.value, 1);
    assert_double_same(ask(h, SIGNALS_REQUESTS_WAITING, 60, 15).in_flight.value, 1);
    signals_history_free(h);
}

static void test_pages_before_a_moment_do_not_count(void **state)
{
    (void)state;
    struct signals_history *h = four_pages();
    struct signals_question q = {.signal = SIGNALS_REQUESTS_WAITING,
                                 .now_ns = AT(30),
                                 .window_ns = 300 * NS_PER_S,
                                 .activation_window_ns = 300 * NS_PER_S,
                                 .since_ns = AT(20)};
    struct signals_answer a;
    signals_read(h, &q, &a);
    assert_double_near(a.value, 4, 1e-9); /* 2 and 6, five seconds each */
    assert_double_same(a.peak.value, 6);
    q.signal = SIGNALS_TOKENS_PER_SECOND;
    signals_read(h, &q, &a);
    assert_double_near(a.value, 10, 1e-6);
    q.since_ns = AT(21);
    signals_read(h, &q, &a);
    assert_int_equal(a.reading, SIGNALS_READ_NOT_YET);
    q.since_ns = AT(26);
    signals_read(h, &q, &a);
    assert_int_equal(a.reading, SIGNALS_READ_NEVER);
    signals_history_free(h);
}

static void test_an_old_page_is_stale_and_no_value(void **state)
{
    (void)state;
    struct signals_history *h = four_pages();
    struct signals_question q = {
        .signal = SIGNALS_REQUESTS_WAITING, .now_ns = AT(40), .window_ns = 15 * NS_PER_S, .max_age_ns = 15 * NS_PER_S};
    struct signals_answer a;
    signals_read(h, &q, &a);
    assert_int_equal(a.reading, SIGNALS_READ_OK);
    assert_double_near(a.age_s, 15, 1e-9);
    q.now_ns++;
    signals_read(h, &q, &a);
    assert_int_equal(a.reading, SIGNALS_READ_STALE);
    assert_double_same(a.value, 0);
    assert_double_same(a.weight, 0);
    signals_history_free(h);
}

static void test_without_a_page_there_is_no_answer(void **state)
{
    (void)state;
    struct signals_history *h = signals_history_new();
    struct signals_answer a = ask(h, SIGNALS_REQUESTS_WAITING, 0, 15);
    assert_int_equal(a.reading, SIGNALS_READ_NEVER);
    assert_true(a.age_s < 0);
    assert_string_equal(a.missing, "");
    assert_int_equal(ask(NULL, SIGNALS_REQUESTS_WAITING, 0, 15).reading, SIGNALS_READ_NEVER);
    signals_history_free(h);
}

static void test_a_signal_that_went_away_is_absent(void **state)
{
    (void)state;
    struct signals_history *h = history_of(page_of(1, 5, 0.5, 0));
    add_page(h, page_of(1, -1, -1, -1), 5);
    assert_int_equal(ask(h, SIGNALS_REQUESTS_WAITING, 5, 15).reading, SIGNALS_READ_ABSENT);
    assert_int_equal(ask(h, SIGNALS_KV_CACHE_USAGE, 5, 15).reading, SIGNALS_READ_ABSENT);
    assert_int_equal(ask(h, SIGNALS_TOKENS_PER_SECOND, 5, 15).reading, SIGNALS_READ_ABSENT);
    assert_double_same(ask(h, SIGNALS_REQUESTS_IN_FLIGHT, 5, 0).value, 1);
    /* and back: the time without it is not counted as zero */
    add_page(h, page_of(1, 5, 0.5, 0), 10);
    assert_double_same(ask(h, SIGNALS_REQUESTS_WAITING, 15, 15).value, 5);
    signals_history_free(h);
}

static void test_demand_is_more_than_what_is_in_use(void **state)
{
    (void)state;
    static const struct {
        int running, waiting;
        double kv, want;
        bool is_demand;
    } rows[] = {
        {10, 0, 0.32, 32, false}, {20, 5, 0.32, 125, true},  {20, 20, 0.9, 200, true}, {1, 500, 0.1, 200, true},
        {0, 3, 0.0, 200, true},   {100, 1, 0.99, 101, true}, {10, 5, -1, 150, true},   {0, 0, 0.5, 50, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct signals_history *h = history_of(page_of(rows[i].running, rows[i].waiting, rows[i].kv, 1));
        struct signals_answer a = ask(h, SIGNALS_KV_CACHE_USAGE, 0, 0);
        assert_int_equal(a.reading, SIGNALS_READ_OK);
        assert_double_near(a.value, rows[i].want, 1e-6);
        assert_int_equal(a.is_demand, rows[i].is_demand);
        signals_history_free(h);
    }
}

static void test_demand_never_hides_what_is_in_use(void **state)
{
    (void)state;
    struct signals_history *h =
        history_of("vllm:num_requests_waiting 0.5\nvllm:num_requests_running 0\nvllm:kv_cache_usage_perc 0.8\n");
    struct signals_answer a = ask(h, SIGNALS_KV_CACHE_USAGE, 0, 0);
    assert_double_near(a.value, 80, 1e-9);
    assert_false(a.is_demand);
    signals_history_free(h);
}

static void test_demand_needs_to_know_what_runs(void **state)
{
    (void)state;
    assert_double_near(value_of(page_of(-1, 5, 0.4, 1), SIGNALS_KV_CACHE_USAGE), 40, 1e-9);
    assert_int_equal(reading_of(page_of(-1, 5, -1, 1), SIGNALS_KV_CACHE_USAGE), SIGNALS_READ_ABSENT);
    assert_int_equal(reading_of(page_of(5, 0, -1, 1), SIGNALS_KV_CACHE_USAGE), SIGNALS_READ_ABSENT);
}

static void test_demand_is_a_mean_over_the_window_like_any_level(void **state)
{
    (void)state;
    struct signals_history *h = history_of(page_of(10, 0, 0.5, 0));
    add_page(h, page_of(10, 10, 0.9, 100), 10);
    struct signals_answer a = ask(h, SIGNALS_KV_CACHE_USAGE, 20, 20);
    assert_double_near(a.value, (50 + 200) / 2.0, 1e-9);
    assert_double_same(a.peak.value, 200);
    assert_true(a.is_demand);
    signals_history_free(h);
}

static void test_prefill_heavy_load_is_seen_although_the_cache_is_not_full(void **state) /* O31 */
{
    (void)state;
    struct signals_history *h = signals_history_new();
    double last = 0;
    for (int t = 0; t <= 60; t += 5) {
        add_page(h, page_of(20, 5 + t, 0.32, t), t);
        double value = ask(h, SIGNALS_KV_CACHE_USAGE, t, 0).value;
        assert_true(value >= last && value > 100);
        last = value;
    }
    signals_history_free(h);
}

static const char *prompts(int waiting, double sum, double count)
{
    static char page[256];
    (void)snprintf(
        page, sizeof(page),
        "vllm:num_requests_waiting %d\nvllm:request_prompt_tokens_sum %.10g\nvllm:request_prompt_tokens_count %.10g\n",
        waiting, sum, count);
    return page;
}

static void test_waiting_tokens_are_requests_times_the_tokens_of_recent_ones(void **state)
{
    (void)state;
    struct signals_history *h = history_of(prompts(4, 1000, 10)); /* 100 a request so far */
    assert_double_near(ask(h, SIGNALS_TOKENS_WAITING, 0, 0).value, 400, 1e-6);
    add_page(h, prompts(4, 4000, 20), 10); /* 300 of late */
    struct signals_answer a = ask(h, SIGNALS_TOKENS_WAITING, 10, 15);
    assert_double_near(a.value, 1200, 1e-6);
    assert_double_near(a.peak.value, 1200, 1e-6);
    signals_history_free(h);
}

static void test_waiting_tokens_before_the_first_request_ended_are_not_known(void **state)
{
    (void)state;
    assert_int_equal(reading_of(prompts(4, 0, 0), SIGNALS_TOKENS_WAITING), SIGNALS_READ_NOT_YET);
    assert_double_same(value_of(prompts(0, 0, 0), SIGNALS_TOKENS_WAITING), 0);
}

static void test_what_waiting_tokens_lack_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *page, *want;
    } rows[] = {
        {"vllm:num_requests_waiting 1\n", "vllm:request_prompt_tokens"},
        {"vllm:num_requests_waiting 1\nvllm:prompt_tokens_total 5\n",
         "vllm:request_success or nv_inference_request_success"},
        {"vllm:prompt_tokens_total 5\nvllm:request_success_total 1\n",
         "vllm:num_requests_waiting_by_reason or vllm:num_requests_waiting"},
        {"llamacpp:requests_deferred 1\nllamacpp:prompt_tokens_total 5\n", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct signals_history *h = history_of(rows[i].page);
        struct signals_answer a = ask(h, SIGNALS_TOKENS_WAITING, 0, 0);
        assert_int_equal(a.reading, SIGNALS_READ_ABSENT);
        assert_string_equal(a.missing, rows[i].want);
        signals_history_free(h);
    }
}

static const char *queue(int waiting, double sum_s, double count)
{
    static char page[256];
    (void)snprintf(
        page, sizeof(page),
        "vllm:num_requests_waiting %d\nvllm:num_requests_running 8\nvllm:request_queue_time_seconds_sum %.10g\n"
        "vllm:request_queue_time_seconds_count %.10g\n",
        waiting, sum_s, count);
    return page;
}

static void test_a_latency_is_weighted_by_requests(void **state)
{
    (void)state;
    struct signals_history *h = history_of(queue(1, 0, 0));
    add_page(h, queue(1, 1, 10), 5);   /* 100 ms, 10 requests */
    add_page(h, queue(1, 13, 40), 10); /* 400 ms, 30 requests */
    struct signals_answer a = ask(h, SIGNALS_QUEUE_WAIT_MS, 10, 15);
    assert_double_near(a.value, 325, 1e-3);
    assert_double_same(a.weight, 40);
    assert_double_near(a.peak.value, 400, 1e-3);
    a = ask(h, SIGNALS_QUEUE_WAIT_MS, 10, 5);
    assert_double_near(a.value, 400, 1e-3);
    assert_double_same(a.weight, 30);
    signals_history_free(h);
}

static void test_a_latency_does_not_fall_when_nothing_ends_any_more(void **state)
{
    (void)state;
    struct signals_history *h = history_of(queue(5, 0, 0));
    add_page(h, queue(5, 200, 10), 5); /* 20 s each */
    double last = 20000;
    for (int t = 10; t <= 60; t += 5) {
        add_page(h, queue(5, 200, 10), t);
        double value = ask(h, SIGNALS_QUEUE_WAIT_MS, t, 15).value;
        assert_true(value >= last - 1e-3);
        last = value;
    }
    assert_double_near(last, 55000, 1e-3);
    signals_history_free(h);
}

static void test_a_stalled_pod_needs_its_whole_five_minutes_in_this_life(void **state)
{
    (void)state;
    struct signals_history *h = signals_history_new();
    for (int t = 0; t <= 400; t += 5)
        add_page(h, page_of(1, 5, 0.5, 100), t);
    struct signals_question q = {
        .signal = SIGNALS_REQUESTS_WAITING, .now_ns = AT(400), .window_ns = 15 * NS_PER_S, .since_ns = AT(101)};
    struct signals_answer a;
    signals_read(h, &q, &a);
    assert_false(a.is_stalled);
    q.since_ns = AT(100);
    signals_read(h, &q, &a);
    assert_true(a.is_stalled);
    assert_double_same(a.weight, 0);
    add_page(h, page_of(1, 0, 0.5, 100), 405); /* the queue was empty once */
    add_page(h, page_of(1, 5, 0.5, 100), 410);
    assert_false(ask(h, SIGNALS_REQUESTS_WAITING, 410, 15).is_stalled);
    signals_history_free(h);
}

static void test_a_page_without_counters_is_never_stalled(void **state)
{
    (void)state;
    struct signals_history *h = signals_history_new();
    for (int t = 0; t <= 600; t += 5)
        add_page(h, page_of(1, 5, 0.5, -1), t);
    assert_false(ask(h, SIGNALS_REQUESTS_WAITING, 600, 15).is_stalled);
    signals_history_free(h);
}

static void test_counters_that_move_only_when_requests_end_tell_of_no_stall(void **state)
{
    (void)state;
    static const char *const pages[] = {
        "sglang:num_queue_reqs 4\nsglang:num_running_reqs 9\nsglang:generation_tokens_total "
        "70\nsglang:prompt_tokens_total 70\n",
        "trtllm_num_requests_waiting 4\ntrtllm_num_requests_running 9\ntrtllm_generation_tokens_total 70\n",
        "nv_inference_pending_request_count 4\nnv_inference_request_success 7\nnv_inference_exec_count 7\n",
        "nv_trt_llm_request_metrics{request_type=\"waiting\"} 4\nnv_inference_request_success "
        "7\nnv_inference_exec_count 7\n",
        "ray_serve_deployment_queued_queries 4\nray_serve_deployment_request_counter_total 7\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
        struct signals_history *h = signals_history_new();
        for (int t = 0; t <= 600; t += 5)
            add_page(h, pages[i], t);
        struct signals_answer a = ask(h, SIGNALS_REQUESTS_WAITING, 600, 15);
        assert_false(a.is_stalled);
        assert_double_same(a.value, 4);
        signals_history_free(h);
    }
}

/* Case O30: what a server has room for is on its page from the start. */
static void test_room_that_a_server_has_is_no_sign_of_work(void **state)
{
    (void)state;
    static const char *const pages[] = {
        "sglang:num_queue_reqs 0\nsglang:num_running_reqs 0\nsglang:max_total_num_tokens 412000\n",
        "trtllm_num_requests_waiting 0\ntrtllm_kv_cache_used_blocks 0\ntrtllm_kv_cache_max_blocks 900\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
        struct signals_history *h = history_of(pages[i]);
        assert_true(ask(h, SIGNALS_REQUESTS_IN_FLIGHT, 0, 0).is_only_zeros);
        signals_history_free(h);
    }
}

/* Case O62: pages between short requests show an empty server. 0.9 s of waiting in each second is one request after the
 * other; 1.8 s are two at once. */
static void test_requests_that_no_page_shows_may_crowd_all_the_same(void **state)
{
    (void)state;
    for (int at_once = 1; at_once <= 2; at_once++) {
        struct signals_history *h = signals_history_new();
        for (int t = 0; t <= 30; t += 5) {
            char page[256];
            (void)snprintf(page, sizeof(page),
                           "vllm:num_requests_waiting 0\nvllm:num_requests_running 0\n"
                           "vllm:time_to_first_token_seconds_sum %g\nvllm:time_to_first_token_seconds_count %d\n",
                           0.9 * at_once * t, 10 * at_once * t);
            add_page(h, page, t);
        }
        struct signals_answer a = ask(h, SIGNALS_TIME_TO_FIRST_TOKEN_MS, 30, 15);
        assert_double_near(a.value, 90, 1e-3);
        assert_int_equal(a.is_uncontended, at_once == 1);
        assert_double_same(a.weight, at_once == 1 ? 0 : 300);
        signals_history_free(h);
    }
}

/* Case O33: the first report was of an hour and more. */
static void test_a_stalled_server_stays_so_until_it_works_again(void **state)
{
    (void)state;
    struct signals_history *h = signals_history_new();
    double tokens = 0;
    for (int t = 0; t <= 3 * 3600; t += 5) {
        char page[256];
        bool is_well = t <= 600 || t > 2 * 3600;
        tokens += is_well ? 4500 : 27;
        (void)snprintf(page, sizeof(page),
                       "vllm:num_requests_waiting 14\nvllm:num_requests_running 1\nvllm:generation_tokens_total %g\n",
                       tokens);
        add_page(h, page, t);
        bool is_stalled = ask(h, SIGNALS_REQUESTS_IN_FLIGHT, t, 15).is_stalled;
        if (t > 960 && t <= 2 * 3600)
            assert_true(is_stalled);
        if (is_well)
            assert_false(is_stalled);
    }
    signals_history_free(h);
}

static void test_a_page_that_came_after_now_is_new(void **state)
{
    (void)state;
    struct signals_history *h = four_pages();
    struct signals_answer a = ask(h, SIGNALS_REQUESTS_WAITING, 24.9, 15);
    assert_int_equal(a.reading, SIGNALS_READ_OK);
    assert_double_same(a.age_s, 0);
    signals_history_free(h);
}

static void test_pages_far_apart_do_not_make_a_best_minute(void **state)
{
    (void)state;
    struct signals_history *h = signals_history_new();
    add_page(h, page_of(1, 5, 0.5, 0), 0);
    add_page(h, page_of(1, 5, 0.5, 540000), 1800); /* half an hour at 300 tokens/s */
    for (int t = 1805; t <= 2200; t += 5)          /* then 10 tokens/s: 3 % */
        add_page(h, page_of(1, 5, 0.5, 540000 + (t - 1800) * 10), t);
    assert_false(ask(h, SIGNALS_REQUESTS_WAITING, 2200, 15).is_stalled);
    signals_history_free(h);
}

static void test_names_units_and_kinds_are_told(void **state)
{
    (void)state;
    assert_string_equal(signals_name(SIGNALS_KV_CACHE_USAGE), "kv_cache_usage");
    assert_string_equal(signals_unit(SIGNALS_KV_CACHE_USAGE), "%");
    assert_int_equal(signals_kind_of(SIGNALS_KV_CACHE_USAGE), SIGNALS_RATIO);
    assert_int_equal(signals_kind_of(SIGNALS_REQUEST_RATE), SIGNALS_RATE);
    for (int i = 0; i < SIGNALS_COUNT; i++)
        assert_true(*signals_sentence((enum signals_id)i));
    for (int i = 0; i < SIGNALS_ENGINE_COUNT; i++) {
        assert_true(signals_engine_port((enum signals_engine)i) > 0);
        assert_int_equal(signals_engine_path((enum signals_engine)i)[0], '/');
        assert_true(*signals_engine_name((enum signals_engine)i));
    }
    for (int i = 0; i < SIGNALS_READING_COUNT; i++)
        assert_true(*signals_reading_name((enum signals_reading)i) &&
                    *signals_reading_sentence((enum signals_reading)i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_level_is_its_mean_over_the_window),
        cmocka_unit_test(test_a_rate_is_the_growth_since_the_oldest_page_of_the_window),
        cmocka_unit_test(test_a_peak_is_the_largest_page_of_the_activation_window),
        cmocka_unit_test(test_a_burst_between_two_looks_is_in_the_peak),
        cmocka_unit_test(test_pages_before_a_moment_do_not_count),
        cmocka_unit_test(test_an_old_page_is_stale_and_no_value),
        cmocka_unit_test(test_without_a_page_there_is_no_answer),
        cmocka_unit_test(test_a_signal_that_went_away_is_absent),
        cmocka_unit_test(test_demand_is_more_than_what_is_in_use),
        cmocka_unit_test(test_demand_never_hides_what_is_in_use),
        cmocka_unit_test(test_demand_needs_to_know_what_runs),
        cmocka_unit_test(test_demand_is_a_mean_over_the_window_like_any_level),
        cmocka_unit_test(test_prefill_heavy_load_is_seen_although_the_cache_is_not_full),
        cmocka_unit_test(test_waiting_tokens_are_requests_times_the_tokens_of_recent_ones),
        cmocka_unit_test(test_waiting_tokens_before_the_first_request_ended_are_not_known),
        cmocka_unit_test(test_what_waiting_tokens_lack_is_named),
        cmocka_unit_test(test_a_latency_is_weighted_by_requests),
        cmocka_unit_test(test_a_latency_does_not_fall_when_nothing_ends_any_more),
        cmocka_unit_test(test_a_stalled_pod_needs_its_whole_five_minutes_in_this_life),
        cmocka_unit_test(test_a_page_without_counters_is_never_stalled),
        cmocka_unit_test(test_counters_that_move_only_when_requests_end_tell_of_no_stall),
        cmocka_unit_test(test_room_that_a_server_has_is_no_sign_of_work),
        cmocka_unit_test(test_requests_that_no_page_shows_may_crowd_all_the_same),
        cmocka_unit_test(test_a_stalled_server_stays_so_until_it_works_again),
        cmocka_unit_test(test_a_page_that_came_after_now_is_new),
        cmocka_unit_test(test_pages_far_apart_do_not_make_a_best_minute),
        cmocka_unit_test(test_names_units_and_kinds_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
