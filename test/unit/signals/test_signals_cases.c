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
        cmocka_unit_test(test_data_parallel_engines_add_up_and_the_fullest_share_counts),
        cmocka_unit_test(test_a_waiting_count_of_one_page_is_its_value),
        cmocka_unit_test(test_a_rate_of_one_page_is_not_yet_known_and_of_two_milliseconds_apart_it_is),
        cmocka_unit_test(test_a_wait_is_the_growth_of_its_sum_by_that_of_its_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
