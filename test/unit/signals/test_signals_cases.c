/* What users of autoscalers ran into with engines' pages, case by case: each test fails without its rule. */
#include "pages.h"

#include <stdio.h>

static void test_a_nan_queue_is_absent_and_not_empty(void **state) /* O04 */
{
    (void)state;
    assert_int_equal(
        reading_of("vllm:num_requests_waiting{engine=\"0\",model_name=\"chat-8b\"} NaN\n", SIGNALS_REQUESTS_WAITING),
        SIGNALS_READ_ABSENT);
}

static void test_an_empty_page_and_an_html_page_differ(void **state) /* O10 */
{
    (void)state;
    struct err empty = fault_of("", NULL), html = fault_of("<html>\n<body>503</body>\n</html>\n", NULL);
    assert_int_equal(empty.class, ERR_NOT_FOUND);
    assert_string_equal(empty.text, "the page is empty");
    assert_int_equal(html.class, ERR_INVALID_ARGUMENT);
}

static void test_a_restarted_counter_is_neither_negative_nor_huge(void **state) /* O23 */
{
    (void)state;
    struct signals_history *h = history_of("vllm:generation_tokens_total{engine=\"0\"} 500\n");
    add_page(h, "vllm:generation_tokens_total{engine=\"0\"} 4\n", 15);
    struct signals_answer a = ask(h, SIGNALS_TOKENS_PER_SECOND, 15, 60);
    assert_int_equal(a.reading, SIGNALS_READ_OK);
    assert_double_near(a.value, 4.0 / 15, 1e-9);
    signals_history_free(h);
}

#define NEW_KV "vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"chat-8b\"} 0.83\n"
#define OLD_KV "vllm:gpu_cache_usage_perc{engine=\"0\",model_name=\"chat-8b\"} 0.83\n"

static void test_a_renamed_share_is_read_under_either_name_and_never_added(void **state) /* O24 */
{
    (void)state;
    static const char *const pages[] = {NEW_KV, OLD_KV, NEW_KV OLD_KV, OLD_KV NEW_KV};
    for (size_t i = 0; i < ARRAY_LEN(pages); i++)
        assert_double_near(value_of(pages[i], SIGNALS_KV_CACHE_USAGE), 83, 1e-9);
}

static void test_both_generations_of_a_histogram_count_once(void **state) /* O25 */
{
    (void)state;
    static const char old[] = "vllm:time_per_output_token_seconds_sum 0\nvllm:time_per_output_token_seconds_count 0\n"
                              "vllm:inter_token_latency_seconds_sum 0\nvllm:inter_token_latency_seconds_count 0\n";
    static const char fresh[] =
        "vllm:time_per_output_token_seconds_sum 50\nvllm:time_per_output_token_seconds_count 1000\n"
        "vllm:inter_token_latency_seconds_sum 20\nvllm:inter_token_latency_seconds_count 1000\n";
    struct signals_history *h = history_of(old);
    add_page(h, fresh, 5);
    struct signals_answer a = ask(h, SIGNALS_INTER_TOKEN_LATENCY_MS, 5, 15);
    assert_double_near(a.value, 20, 1e-4);
    assert_double_same(a.weight, 1000);
    signals_history_free(h);
}

static void test_sum_and_count_are_of_one_family(void **state) /* O25 */
{
    (void)state;
    assert_int_equal(
        reading_of("vllm:time_per_output_token_seconds_sum 50\nvllm:inter_token_latency_seconds_count 1000\n",
                   SIGNALS_INTER_TOKEN_LATENCY_MS),
        SIGNALS_READ_ABSENT);
}

static const char *vllm(int running, int waiting, double kv, double tokens)
{
    static char page[512];
    (void)snprintf(page, sizeof(page),
                   "vllm:num_requests_running{engine=\"0\"} %d\nvllm:num_requests_waiting{engine=\"0\"} %d\n"
                   "vllm:kv_cache_usage_perc{engine=\"0\"} %g\nvllm:generation_tokens_total{engine=\"0\"} %.10g\n",
                   running, waiting, kv, tokens);
    return page;
}

static void test_a_share_left_over_by_cancelled_requests_is_zero(void **state) /* O26 */
{
    (void)state;
    struct signals_history *h = signals_history_new();
    for (int t = 0; t <= 60; t += 5)
        add_page(h, vllm(0, 0, 0.99, 1000), t);
    struct signals_answer a = ask(h, SIGNALS_KV_CACHE_USAGE, 60, 15);
    assert_double_same(a.value, 0);
    assert_true(a.is_idle_gauge);
    assert_double_near(a.kv_percent.value, 99, 1e-9);
    signals_history_free(h);
}

static void test_a_share_is_believed_while_tokens_are_made_or_requests_run(void **state) /* O26 */
{
    (void)state;
    for (int is_running = 0; is_running < 2; is_running++) {
        struct signals_history *h = signals_history_new();
        for (int t = 0; t <= 60; t += 5)
            add_page(h, vllm(is_running, 0, 0.99, is_running ? 1000 : 1000 + t), t);
        struct signals_answer a = ask(h, SIGNALS_KV_CACHE_USAGE, 60, 15);
        assert_double_near(a.value, 99, 1e-9);
        assert_false(a.is_idle_gauge);
        signals_history_free(h);
    }
}

static void test_ghosts_in_a_queue_are_stalled_after_five_minutes(void **state) /* O27 */
{
    (void)state;
    struct signals_history *h = signals_history_new();
    for (int t = 0; t < 300; t += 5)
        add_page(h, vllm(0, 213, 0, 5000), t);
    struct signals_answer a = ask(h, SIGNALS_REQUESTS_WAITING, 295, 15);
    assert_false(a.is_stalled);
    assert_double_same(a.value, 213);
    add_page(h, vllm(0, 213, 0, 5000), 300);
    a = ask(h, SIGNALS_REQUESTS_WAITING, 300, 15);
    assert_true(a.is_stalled);
    assert_double_same(a.value, 0);
    assert_double_same(a.in_flight.value, 213); /* who is not known to be dead is not idle */
    assert_true(ask(h, SIGNALS_KV_CACHE_USAGE, 300, 15).is_stalled);
    signals_history_free(h);
}

static void test_a_metric_that_is_not_there_is_named_with_those_that_are(void **state) /* O28, O56 */
{
    (void)state;
    static const char page[] =
        "llamacpp:requests_processing 1\nllamacpp:requests_deferred 2\nllamacpp:kv_cache_tokens 7\n";
    struct signals_history *h = signals_history_new();
    signals_history_add(h, read_page(page, "llamacpp:kv_cache_usage"), AT(0));
    struct signals_answer a = ask(h, SIGNALS_CUSTOM, 0, 0);
    assert_int_equal(a.reading, SIGNALS_READ_ABSENT);
    assert_string_equal(a.missing,
                        "llamacpp:kv_cache_usage (is it llamacpp:kv_cache_tokens? The page has "
                        "llamacpp:requests_processing, llamacpp:requests_deferred, llamacpp:kv_cache_tokens)");
    a = ask(h, SIGNALS_KV_CACHE_USAGE, 0, 0);
    assert_double_same(a.value, 200); /* two wait and one runs: the demand is known without the share */
    a = ask(h, SIGNALS_TIME_TO_FIRST_TOKEN_MS, 0, 0);
    assert_int_equal(a.reading, SIGNALS_READ_ABSENT);
    assert_string_equal(a.missing, "");
    signals_history_free(h);
    struct err e =
        fault_of("# TYPE x gauge\npython_info 1\nmy_queue_total{a=\"1\"} 3\nmy_queue_created 4\nmy_size_sum 1\n", NULL);
    assert_int_equal(e.class, ERR_NOT_FOUND);
    assert_non_null(strstr(e.text, "vllm:num_requests_waiting"));
    assert_non_null(strstr(e.text, "it has my_queue, my_size"));
}

static void test_data_parallel_engines_add_up_and_the_fullest_share_counts(void **state) /* O29 */
{
    (void)state;
    static const char page[] = "vllm:num_requests_waiting{engine=\"0\",model_name=\"chat-8b\"} 117\n"
                               "vllm:num_requests_waiting{engine=\"1\",model_name=\"chat-8b\"} 3\n"
                               "vllm:num_requests_waiting{engine=\"2\",model_name=\"chat-8b\"} 0\n"
                               "vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"chat-8b\"} 1.0\n"
                               "vllm:kv_cache_usage_perc{engine=\"1\",model_name=\"chat-8b\"} 0.41\n"
                               "vllm:kv_cache_usage_perc{engine=\"2\",model_name=\"chat-8b\"} 0.0\n";
    assert_double_same(value_of(page, SIGNALS_REQUESTS_WAITING), 120);
    assert_double_same(value_of(page, SIGNALS_KV_CACHE_USAGE), 100);
}

static void test_zeros_since_the_pod_was_ready_are_told_apart(void **state) /* O30 */
{
    (void)state;
    struct signals_history *h = history_of(vllm(0, 0, 0, 0));
    add_page(h, vllm(0, 0, 0, 0), 10);
    assert_true(ask(h, SIGNALS_REQUESTS_WAITING, 10, 15).is_only_zeros);
    add_page(h, vllm(0, 0, 0, 17), 15);
    assert_false(ask(h, SIGNALS_REQUESTS_WAITING, 15, 15).is_only_zeros);
    signals_history_free(h);
}

static void test_a_page_with_one_signal_says_which_others_it_lacks(void **state) /* O32 */
{
    (void)state;
    struct signals_history *h = history_of("vllm:num_requests_running 7\n");
    assert_double_same(ask(h, SIGNALS_REQUESTS_RUNNING, 0, 0).value, 7);
    assert_double_same(ask(h, SIGNALS_REQUESTS_IN_FLIGHT, 0, 0).value, 7);
    struct signals_answer a = ask(h, SIGNALS_REQUESTS_WAITING, 0, 0);
    assert_int_equal(a.reading, SIGNALS_READ_ABSENT);
    assert_string_equal(a.missing, "vllm:num_requests_waiting_by_reason or vllm:num_requests_waiting");
    a = ask(h, SIGNALS_KV_CACHE_USAGE, 0, 0);
    assert_int_equal(a.reading, SIGNALS_READ_ABSENT);
    assert_string_equal(a.missing, "vllm:kv_cache_usage_perc or vllm:gpu_cache_usage_perc");
    signals_history_free(h);
}

/* Ten minutes at 900 tokens/s with a queue, then so many tokens/s. */
static struct signals_answer after_a_fall_to(double tokens_per_s, double prompt_tokens_per_s)
{
    struct signals_history *h = signals_history_new();
    struct signals_answer a = {0};
    double tokens = 0, prompts = 0;
    for (int t = 0; t <= 900; t += 5) {
        char page[1024];
        tokens += 5 * (t <= 600 ? 900 : tokens_per_s);
        prompts += 5 * (t <= 600 ? 4000 : prompt_tokens_per_s);
        (void)snprintf(page, sizeof(page), "%svllm:prompt_tokens_total %.10g\n", vllm(1, 14, 0.765, tokens), prompts);
        add_page(h, page, t);
        a = ask(h, SIGNALS_REQUESTS_WAITING, t, 15);
        if (t < 895 && a.is_stalled)
            fail_msg("stalled at %d s", t);
    }
    signals_history_free(h);
    return a;
}

static void test_an_engine_that_trickles_is_stalled(void **state) /* O33 */
{
    (void)state;
    assert_true(after_a_fall_to(5.4, 0).is_stalled);
    assert_true(after_a_fall_to(0, 0).is_stalled);
    assert_true(after_a_fall_to(0, 60).is_stalled);
    assert_false(after_a_fall_to(27, 0).is_stalled);  /* 3 % of its best */
    assert_false(after_a_fall_to(0, 120).is_stalled); /* it reads prompts: long ones, perhaps */
    assert_double_same(after_a_fall_to(27, 0).value, 14);
}

static void test_latency_of_a_server_where_nothing_ends_grows_with_the_clock(void **state) /* O34 */
{
    (void)state;
    char page[512];
    struct signals_history *h = signals_history_new();
    double last = 0;
    for (int t = 0; t <= 60; t += 5) {
        (void)snprintf(page, sizeof(page),
                       "%svllm:time_to_first_token_seconds_sum %d\nvllm:time_to_first_token_seconds_count %d\n",
                       vllm(256, 251, 0.9, 1000), t ? 7020 : 7000, t ? 1010 : 1000);
        add_page(h, page, t);
        struct signals_answer a = ask(h, SIGNALS_TIME_TO_FIRST_TOKEN_MS, t + 1, 15);
        if (t >= 25) { /* the last answers have left the window */
            assert_true(a.value > last);
            assert_double_near(a.value, (t + 1 - 5) * 1000.0, 1e-6);
            assert_double_same(a.weight, 251);
            last = a.value;
        }
    }
    signals_history_free(h);
}

static void test_an_idle_server_has_no_latency_and_no_weight(void **state) /* O34 */
{
    (void)state;
    static const char page[] =
        "vllm:num_requests_waiting 0\nvllm:num_requests_running 0\n"
        "vllm:time_to_first_token_seconds_sum 7000\nvllm:time_to_first_token_seconds_count 1000\n";
    struct signals_history *h = history_of(page);
    add_page(h, page, 60);
    struct signals_answer a = ask(h, SIGNALS_TIME_TO_FIRST_TOKEN_MS, 60, 15);
    assert_int_equal(a.reading, SIGNALS_READ_OK);
    assert_double_same(a.value, 0);
    assert_double_same(a.weight, 0);
    signals_history_free(h);
}

static void test_only_those_that_wait_for_capacity_wait(void **state) /* O39 */
{
    (void)state;
    static const char page[] =
        "vllm:num_requests_waiting 12\nvllm:num_requests_waiting_by_reason{reason=\"deferred\"} 3\n"
        "vllm:num_requests_waiting_by_reason{reason=\"capacity\"} 9\n";
    assert_double_same(value_of(page, SIGNALS_REQUESTS_WAITING), 9);
    assert_double_same(value_of("vllm:num_requests_waiting 12\n", SIGNALS_REQUESTS_WAITING), 12);
}

static void test_a_zero_under_the_new_name_beats_the_old_name(void **state) /* O44 */
{
    (void)state;
    assert_double_same(value_of("vllm:gpu_cache_usage_perc 0.7\nvllm:kv_cache_usage_perc 0\n", SIGNALS_KV_CACHE_USAGE),
                       0);
    assert_double_near(value_of("vllm:gpu_cache_usage_perc 0.5\n", SIGNALS_KV_CACHE_USAGE), 50, 1e-9);
}

static void test_each_page_tells_its_engine(void **state) /* O46 */
{
    (void)state;
    double sum = value_of("vllm:num_requests_waiting 4\n", SIGNALS_REQUESTS_WAITING) +
                 value_of("sglang:num_queue_reqs 6\n", SIGNALS_REQUESTS_WAITING);
    assert_double_same(sum, 10);
}

static void test_pending_requests_without_answers_are_pressure(void **state) /* O49 */
{
    (void)state;
    static const char page[] = "nv_inference_pending_request_count{model=\"resnet\",version=\"1\"} 40\n"
                               "nv_inference_count{model=\"resnet\",version=\"1\"} 1000\n"
                               "nv_inference_queue_duration_us{model=\"resnet\",version=\"1\"} 5000000\n";
    struct signals_history *h = history_of(page);
    double last = 0;
    for (int t = 5; t <= 60; t += 5) {
        add_page(h, page, t);
        struct signals_answer a = ask(h, SIGNALS_QUEUE_WAIT_MS, t, 15);
        assert_int_equal(a.reading, SIGNALS_READ_OK);
        assert_true(a.value > last);
        assert_double_same(a.weight, 40);
        last = a.value;
    }
    assert_double_same(ask(h, SIGNALS_REQUESTS_WAITING, 60, 15).value, 40);
    signals_history_free(h);
}

static void test_hours_of_queueing_in_the_past_are_no_level(void **state) /* O50 */
{
    (void)state;
    struct signals_history *h =
        history_of("nv_inference_request_success 1000000\nnv_inference_queue_duration_us 20200000000\n");
    add_page(h, "nv_inference_request_success 1003000\nnv_inference_queue_duration_us 20200870000\n", 15);
    assert_double_near(ask(h, SIGNALS_QUEUE_WAIT_MS, 15, 15).value, 0.29, 1e-9);
    signals_history_free(h);
}

static void test_the_busiest_model_is_named(void **state) /* O51 */
{
    (void)state;
    struct signals_history *h = history_of("nv_inference_pending_request_count{model=\"b\",version=\"1\"} 0\n"
                                           "nv_inference_pending_request_count{model=\"a\",version=\"1\"} 60\n");
    struct signals_answer a = ask(h, SIGNALS_REQUESTS_WAITING, 0, 0);
    assert_double_same(a.value, 60);
    assert_string_equal(a.model, "a");
    signals_history_free(h);
    h = history_of("vllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 1\n"
                   "vllm:num_requests_waiting{engine=\"1\",model_name=\"m\"} 2\n");
    assert_string_equal(ask(h, SIGNALS_REQUESTS_WAITING, 0, 0).model, "");
    signals_history_free(h);
}

static void test_ranks_of_the_same_work_count_once_and_others_add_up(void **state) /* O52 */
{
    (void)state;
    BUF_AUTO struct buf page;
    buf_init(&page, 8192);
    for (int rank = 0; rank < 8; rank++)
        (void)buf_printf(&page,
                         "sglang:num_queue_reqs{dp_rank=\"%d\",engine_type=\"unified\",model_name=\"m\",pp_rank=\"0\","
                         "tp_rank=\"%d\"} %d\n",
                         rank, rank, rank == 2 ? 11 : 0);
    assert_double_same(value_of(buf_cstr(&page), SIGNALS_REQUESTS_WAITING), 11);
    buf_reset(&page);
    for (int rank = 0; rank < 4; rank++)
        (void)buf_printf(&page,
                         "sglang:num_queue_reqs{dp_rank=\"0\",engine_type=\"unified\",model_name=\"m\",pp_rank=\"0\","
                         "tp_rank=\"%d\"} 5\n",
                         rank);
    assert_double_same(value_of(buf_cstr(&page), SIGNALS_REQUESTS_WAITING), 5);
    (void)buf_append_str(&page, "sglang:num_queue_reqs{dp_rank=\"1\",engine_type=\"unified\",model_name=\"m\",pp_rank="
                                "\"0\",tp_rank=\"0\"} 2\n");
    assert_double_same(value_of(buf_cstr(&page), SIGNALS_REQUESTS_WAITING), 7);
}

static void test_ranks_of_a_kind_that_is_not_known_yet_count_once(void **state) /* O52 */
{
    (void)state;
    static const char page[] = "sglang:num_queue_reqs{dp_rank=\"0\",model_name=\"m\",attn_cp_rank=\"0\"} 5\n"
                               "sglang:num_queue_reqs{dp_rank=\"0\",model_name=\"m\",attn_cp_rank=\"1\"} 5\n";
    assert_double_same(value_of(page, SIGNALS_REQUESTS_WAITING), 5);
}

static void test_counters_of_ranks_that_do_the_same_work_count_once(void **state) /* O52 */
{
    (void)state;
    struct signals_history *h = signals_history_new();
    for (int i = 0; i < 2; i++) {
        BUF_AUTO struct buf page;
        buf_init(&page, 8192);
        for (int rank = 0; rank < 4; rank++)
            (void)buf_printf(&page, "sglang:realtime_tokens_total{mode=\"decode\",dp_rank=\"0\",tp_rank=\"%d\"} %d\n",
                             rank, i * 500);
        add_page(h, buf_cstr(&page), i * 5);
    }
    assert_double_near(ask(h, SIGNALS_TOKENS_PER_SECOND, 5, 15).value, 100, 1e-9);
    signals_history_free(h);
}

/* Of SGLang's queues the series with an empty priority is the total. Of what ended there is none: a request counts
 * under its own priority, and one without under the empty one. */
static void test_priorities_are_parts_of_a_queue_and_of_what_ended(void **state)
{
    (void)state;
    static const char before[] = "sglang:num_queue_reqs{priority=\"\"} 7\n"
                                 "sglang:num_queue_reqs{priority=\"0\"} 3\n"
                                 "sglang:num_queue_reqs{priority=\"10\"} 4\n"
                                 "sglang:num_requests_total{is_streaming=\"true\",priority=\"\"} 5\n"
                                 "sglang:num_requests_total{is_streaming=\"true\",priority=\"0\"} 10\n"
                                 "sglang:num_requests_total{is_streaming=\"true\",priority=\"10\"} 20\n";
    static const char after[] = "sglang:num_queue_reqs{priority=\"\"} 7\n"
                                "sglang:num_queue_reqs{priority=\"0\"} 3\n"
                                "sglang:num_queue_reqs{priority=\"10\"} 4\n"
                                "sglang:num_requests_total{is_streaming=\"true\",priority=\"\"} 15\n"
                                "sglang:num_requests_total{is_streaming=\"true\",priority=\"0\"} 30\n"
                                "sglang:num_requests_total{is_streaming=\"true\",priority=\"10\"} 60\n";
    struct signals_history *h = history_of(before);
    add_page(h, after, 10);
    assert_double_same(ask(h, SIGNALS_REQUESTS_WAITING, 10, 15).value, 7);
    assert_double_near(ask(h, SIGNALS_REQUEST_RATE, 10, 15).value, 7, 1e-6);
    signals_history_free(h);
}

static void test_processes_that_report_one_engine_count_once(void **state)
{
    (void)state;
    static const char page[] = "vllm:num_requests_waiting{engine=\"0\",pid=\"71\"} 3\n"
                               "vllm:num_requests_waiting{engine=\"0\",pid=\"72\"} 5\n"
                               "vllm:num_requests_waiting{engine=\"1\",pid=\"71\"} 2\n";
    assert_double_same(value_of(page, SIGNALS_REQUESTS_WAITING), 7);
}

static void test_a_negative_gauge_is_absent(void **state) /* O53 */
{
    (void)state;
    assert_int_equal(
        reading_of("sglang:token_usage{tp_rank=\"0\"} -1.0\nsglang:num_queue_reqs 0\n", SIGNALS_KV_CACHE_USAGE),
        SIGNALS_READ_ABSENT);
    assert_int_equal(reading_of("sglang:num_queue_reqs +Inf\n", SIGNALS_REQUESTS_WAITING), SIGNALS_READ_ABSENT);
}

static void test_colons_and_underscores_are_the_same(void **state) /* O54 */
{
    (void)state;
    assert_double_same(value_of("sglang_num_queue_reqs{model_name=\"m\"} 6\n", SIGNALS_REQUESTS_WAITING), 6);
    assert_double_same(value_of("sglang:num_queue_reqs 6\n", SIGNALS_REQUESTS_WAITING), 6);
    assert_double_same(value_of("trtllm:num_requests_waiting 3\n", SIGNALS_REQUESTS_WAITING), 3);
}

static struct signals_answer ttft_with(int running, int waiting)
{
    char page[512];
    struct signals_history *h = signals_history_new();
    for (int t = 0; t <= 30; t += 5) {
        (void)snprintf(page, sizeof(page),
                       "%svllm:time_to_first_token_seconds_sum %g\nvllm:time_to_first_token_seconds_count %d\n",
                       vllm(running, waiting, 0.1, t), t * 0.9, t);
        add_page(h, page, t);
    }
    struct signals_answer a = ask(h, SIGNALS_TIME_TO_FIRST_TOKEN_MS, 30, 15);
    signals_history_free(h);
    return a;
}

static void test_latency_that_a_lone_request_has_is_no_reason_for_replicas(void **state) /* O62 */
{
    (void)state;
    struct signals_answer alone = ttft_with(1, 0), crowd = ttft_with(2, 0), queue = ttft_with(1, 1);
    assert_double_near(alone.value, 900, 1e-3);
    assert_true(alone.is_uncontended);
    assert_double_same(alone.weight, 0);
    assert_false(crowd.is_uncontended);
    assert_double_same(crowd.weight, 15);
    assert_false(queue.is_uncontended);
}

static void add_triton(struct signals_history *h, long count, long queue_us, double at_s)
{
    char page[256];
    (void)snprintf(page, sizeof(page),
                   "nv_inference_count{model=\"resnet\",version=\"1\"} %ld\n"
                   "nv_inference_queue_duration_us{model=\"resnet\",version=\"1\"} %ld\n",
                   count, queue_us);
    add_page(h, page, at_s);
}

static void test_a_waiting_count_of_one_page_is_its_value(void **state) /* reference A.12 16 */
{
    (void)state;
    struct signals_history *h = history_of("vllm:num_requests_waiting{model_name=\"m\"} 14\n");
    struct signals_answer a = ask(h, SIGNALS_REQUESTS_WAITING, 0, 15);
    assert_double_same(a.value, 14);
    assert_double_same(a.peak.value, 14);
    signals_history_free(h);
}

static void test_a_rate_of_one_page_is_not_yet_known_and_of_two_milliseconds_apart_it_is(void **state) /* A.12 18 */
{
    (void)state;
    struct signals_history *h = signals_history_new();
    add_triton(h, 200, 0, 0);
    assert_int_equal(ask(h, SIGNALS_REQUEST_RATE, 0, 15).reading, SIGNALS_READ_NOT_YET);
    add_triton(h, 300, 0, 0.004);
    struct signals_answer a = ask(h, SIGNALS_REQUEST_RATE, 0.004, 15);
    assert_int_equal(a.reading, SIGNALS_READ_OK);
    assert_double_near(a.value, 100 / 0.004, 1);
    add_triton(h, 400, 0, 0.008);
    a = ask(h, SIGNALS_REQUEST_RATE, 0.008, 15);
    assert_double_near(a.value, 200 / 0.008, 1);
    assert_true(a.peak.value > 0);
    signals_history_free(h);
}

static void test_a_wait_is_the_growth_of_its_sum_by_that_of_its_count(void **state) /* A.12 19 */
{
    (void)state;
    struct signals_history *h = signals_history_new();
    add_triton(h, 1000, 5000000, 0);
    add_triton(h, 1200, 5020000, 0.003);
    struct signals_answer a = ask(h, SIGNALS_QUEUE_WAIT_MS, 0.003, 15);
    assert_int_equal(a.reading, SIGNALS_READ_OK);
    assert_double_near(a.value, 0.1, 1e-9);
    assert_double_same(a.weight, 200);
    signals_history_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_nan_queue_is_absent_and_not_empty),
        cmocka_unit_test(test_an_empty_page_and_an_html_page_differ),
        cmocka_unit_test(test_a_restarted_counter_is_neither_negative_nor_huge),
        cmocka_unit_test(test_a_renamed_share_is_read_under_either_name_and_never_added),
        cmocka_unit_test(test_both_generations_of_a_histogram_count_once),
        cmocka_unit_test(test_sum_and_count_are_of_one_family),
        cmocka_unit_test(test_a_share_left_over_by_cancelled_requests_is_zero),
        cmocka_unit_test(test_a_share_is_believed_while_tokens_are_made_or_requests_run),
        cmocka_unit_test(test_ghosts_in_a_queue_are_stalled_after_five_minutes),
        cmocka_unit_test(test_a_metric_that_is_not_there_is_named_with_those_that_are),
        cmocka_unit_test(test_data_parallel_engines_add_up_and_the_fullest_share_counts),
        cmocka_unit_test(test_zeros_since_the_pod_was_ready_are_told_apart),
        cmocka_unit_test(test_a_page_with_one_signal_says_which_others_it_lacks),
        cmocka_unit_test(test_an_engine_that_trickles_is_stalled),
        cmocka_unit_test(test_latency_of_a_server_where_nothing_ends_grows_with_the_clock),
        cmocka_unit_test(test_an_idle_server_has_no_latency_and_no_weight),
        cmocka_unit_test(test_only_those_that_wait_for_capacity_wait),
        cmocka_unit_test(test_a_zero_under_the_new_name_beats_the_old_name),
        cmocka_unit_test(test_each_page_tells_its_engine),
        cmocka_unit_test(test_pending_requests_without_answers_are_pressure),
        cmocka_unit_test(test_hours_of_queueing_in_the_past_are_no_level),
        cmocka_unit_test(test_the_busiest_model_is_named),
        cmocka_unit_test(test_ranks_of_the_same_work_count_once_and_others_add_up),
        cmocka_unit_test(test_ranks_of_a_kind_that_is_not_known_yet_count_once),
        cmocka_unit_test(test_counters_of_ranks_that_do_the_same_work_count_once),
        cmocka_unit_test(test_priorities_are_parts_of_a_queue_and_of_what_ended),
        cmocka_unit_test(test_processes_that_report_one_engine_count_once),
        cmocka_unit_test(test_a_negative_gauge_is_absent),
        cmocka_unit_test(test_colons_and_underscores_are_the_same),
        cmocka_unit_test(test_latency_that_a_lone_request_has_is_no_reason_for_replicas),
        cmocka_unit_test(test_a_waiting_count_of_one_page_is_its_value),
        cmocka_unit_test(test_a_rate_of_one_page_is_not_yet_known_and_of_two_milliseconds_apart_it_is),
        cmocka_unit_test(test_a_wait_is_the_growth_of_its_sum_by_that_of_its_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
