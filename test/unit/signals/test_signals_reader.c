/* Pages as bytes come: pieces, line ends, ceilings, the user's metric, and what is no page. */
#include "pages.h"

#include <stdio.h>

static void test_line_ends_timestamps_and_exemplars_do_not_matter(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "vllm:num_requests_waiting 14\n",
        "vllm:num_requests_waiting 14",
        "vllm:num_requests_waiting 14\r\n",
        "\r\n\n  vllm:num_requests_waiting 14 1700000000123\r\n\r\n",
        "# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting{model_name=\"a}b{\\\"\"} 14.0 # {id=\"x\"} "
        "1\n# EOF\n",
        "vllm:num_requests_waiting{a=\"1\",b=\"2\"} 10\nvllm:num_requests_waiting{b=\"3\",a=\"1\"} 4\n",
        "vllm:num_requests_waiting{a=\"1\",b=\"2\"} 14\nvllm:num_requests_waiting{b=\"2\",a=\"1\"} 14\n", /* the same
                                                                                                             series */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_double_same(value_of(rows[i], SIGNALS_REQUESTS_WAITING), 14);
}

static void test_a_broken_line_takes_nothing_else_with_it(void **state)
{
    (void)state;
    static const char page[] =
        "vllm:num_requests_waiting{engine=\"0} 5\nvllm:num_requests_running 3\nvllm:num_requests_waiting 2 x y\n";
    assert_double_same(value_of(page, SIGNALS_REQUESTS_RUNNING), 3);
    assert_int_equal(reading_of(page, SIGNALS_REQUESTS_WAITING), SIGNALS_READ_ABSENT);
}

static void test_a_longer_name_is_another_metric(void **state)
{
    (void)state;
    static const char page[] =
        "vllm:num_requests_waiting 2\nvllm:num_requests_waiting_other 7\nvllm:num_requests_waitin 9\n";
    assert_double_same(value_of(page, SIGNALS_REQUESTS_WAITING), 2);
}

static void test_what_is_no_metrics_page_is_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "<!doctype html>\n<html><body>hello</body></html>\n",
        "{\"error\": \"not found\"}",
        "404 page not found\n",
        "Not Found",
        "\x7f"
        "ELF\x02\x01\x01\n\x03\x04",
        "Internal Server Error: try again later\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err e = fault_of(rows[i], NULL);
        if (e.class != ERR_INVALID_ARGUMENT)
            fail_msg("%s: %s", rows[i], e.text);
        assert_int_equal(fault_of(rows[i], "my_queue").class, ERR_INVALID_ARGUMENT);
    }
}

static void test_a_page_without_samples_is_empty(void **state)
{
    (void)state;
    static const char *const rows[] = {"", "\n\n", "# HELP a b\n# TYPE a gauge\n# EOF\n"};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_string_equal(fault_of(rows[i], NULL).text, "the page is empty");
        assert_string_equal(fault_of(rows[i], "my_queue").text, "the page is empty");
    }
}

/* A page of n copies of a line, then one of another. */
static struct signals_page *repeated(const char *line, size_t n, const char *last, struct err *e)
{
    struct signals_reader *r = signals_reader_new(NULL);
    struct signals_page *page = NULL;
    int result = 0;
    signals_reader_begin(r);
    for (size_t i = 0; i < n && result == 0; i++)
        result = signals_reader_feed(r, line, strlen(line), e);
    if (result == 0 && signals_reader_feed(r, last, strlen(last), e) == 0)
        page = signals_reader_end(r, e);
    else
        assert_null(signals_reader_end(r, e)); /* says it again */
    signals_reader_free(r);
    return page;
}

static void expect_ceiling(const char *line, size_t most, const char *what)
{
    struct err e;
    struct signals_page *page = repeated(line, most - 1, "vllm:num_requests_running 1\n", &e);
    assert_non_null(page);
    signals_page_free(page);
    assert_null(repeated(line, most, "vllm:num_requests_running 1\n", &e));
    assert_int_equal(e.class, ERR_RESOURCE_EXHAUSTED);
    if (!strstr(e.text, what))
        fail_msg("%s", e.text);
}

static void test_more_lines_than_a_page_may_have_are_refused(void **state)
{
    (void)state;
    expect_ceiling("other 1\n", SIGNALS_LINES_MAX, "400000 lines");
}

static void test_more_series_than_a_page_may_have_are_refused(void **state)
{
    (void)state;
    expect_ceiling("vllm:num_requests_waiting 1\n", SIGNALS_SERIES_MAX, "4096 series");
}

static void test_more_bytes_than_a_page_may_have_are_refused(void **state)
{
    (void)state;
    char *kilobyte = mem_new_array(1025, 1);
    struct err e;
    memset(kilobyte, 'x', 1024); /* one line that never ends */
    assert_null(repeated(kilobyte, (SIGNALS_PAGE_BYTES_MAX >> 10) + 1, "", &e));
    assert_int_equal(e.class, ERR_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(e.text, "16777216 bytes"));
    memcpy(kilobyte, "other 1\n# x", 11);
    kilobyte[1023] = '\n';
    assert_null(repeated(kilobyte, (SIGNALS_PAGE_BYTES_MAX >> 10) + 1, "", &e));
    assert_int_equal(e.class, ERR_RESOURCE_EXHAUSTED);
    free(kilobyte);
}

/* A line of `name` with a label of so many bytes; the caller's to free. */
static char *long_line(const char *name, size_t len)
{
    size_t room = len + 128;
    char *text = mem_new_array(room, 1);
    int front = snprintf(text, room, "%s{x=\"", name);
    memset(text + front, 'y', len);
    (void)snprintf(text + (size_t)front + len, room - (size_t)front - len, "\"} 5\nvllm:num_requests_running 2\n");
    return text;
}

static void test_long_lines_are_read_where_they_are_wanted_and_else_passed_over(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t len;
        bool is_refused;
    } rows[] = {
        {"vllm:num_requests_waiting", 1000, false},   {"vllm:num_requests_waiting", 1024, false},
        {"vllm:num_requests_waiting", 65000, false},  {"vllm:num_requests_waiting", 65536, true},
        {"vllm:num_requests_waiting", 3 << 20, true}, {"vllm:lora_requests_info", 65536, false},
        {"vllm:lora_requests_info", 3 << 20, false},  {"# HELP x ", 3 << 20, false},
    };
    static const size_t pieces[] = {1, 100, 1023, 1024, 1025, 16384, SIZE_MAX / 2};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (size_t k = rows[i].len > 70000 ? 2 : 0; k < ARRAY_LEN(pieces); k++) {
            struct err e;
            char *text = long_line(rows[i].name, rows[i].len);
            struct signals_page *page = read_page_in(text, strlen(text), pieces[k], NULL, &e);
            free(text);
            assert_int_equal(!page, rows[i].is_refused);
            if (!page) {
                assert_int_equal(e.class, ERR_RESOURCE_EXHAUSTED);
                continue;
            }
            struct signals_history *h = signals_history_new();
            signals_history_add(h, page, AT(0));
            assert_double_same(ask(h, SIGNALS_REQUESTS_RUNNING, 0, 0).value, 2);
            assert_int_equal(ask(h, SIGNALS_REQUESTS_WAITING, 0, 0).reading,
                             strstr(rows[i].name, "waiting") ? SIGNALS_READ_OK : SIGNALS_READ_ABSENT);
            signals_history_free(h);
        }
}

static void test_a_reader_forgets_the_page_before(void **state)
{
    (void)state;
    struct signals_reader *r = signals_reader_new("mine");
    struct err e;
    static const char *const broken[] = {"<html>\n", "vllm:num_requests_waiting{x=\"",
                                         "mine 3\nvllm:num_requests_waiting 9\n"};
    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        signals_reader_begin(r);
        (void)signals_reader_feed(r, broken[i], strlen(broken[i]), &e);
        signals_reader_begin(r);
        assert_int_equal(signals_reader_feed(r, "sglang:num_running_reqs 1\n", 26, &e), 0);
        struct signals_page *page = signals_reader_end(r, &e);
        assert_non_null(page);
        assert_int_equal(signals_page_engine(page), SIGNALS_ENGINE_SGLANG);
        struct signals_history *h = signals_history_new();
        signals_history_add(h, page, AT(0));
        assert_int_equal(ask(h, SIGNALS_REQUESTS_WAITING, 0, 0).reading, SIGNALS_READ_ABSENT);
        assert_int_equal(ask(h, SIGNALS_CUSTOM, 0, 0).reading, SIGNALS_READ_ABSENT);
        signals_history_free(h);
    }
    signals_reader_free(r);
}

/* ---- the user's metric ---- */

static struct signals_answer custom(const char *metric, const char *before, const char *after)
{
    struct signals_history *h = signals_history_new();
    signals_history_add(h, read_page(before, metric), AT(0));
    signals_history_add(h, read_page(after, metric), AT(10));
    struct signals_answer a = ask(h, SIGNALS_CUSTOM, 10, 15);
    a.missing = "";
    signals_history_free(h);
    return a;
}

static void test_a_users_metric_is_a_level_unless_it_counts(void **state)
{
    (void)state;
    static const struct {
        const char *metric, *before, *after;
        double want;
    } rows[] = {
        {"my_queue", "my_queue{a=\"1\"} 3\nmy_queue{a=\"2\"} 4\n", "my_queue{a=\"1\"} 3\nmy_queue{a=\"2\"} 4\n", 7},
        {"my_queue", "# TYPE my_queue gauge\nmy_queue 7\n", "my_queue 7\n", 7},
        {"my_total", "my_total 100\n", "my_total 130\n", 3},
        {"my", "my_total 100\n", "my_total 130\n", 3},
        {"my", "my_total 1\nmy 7\n", "my_total 50\nmy 7\n", 7},
        {"my_things", "# TYPE my_things counter\nmy_things 100\n", "# TYPE my_things counter\nmy_things 130\n", 3},
        {"my_h_sum", "# TYPE my_h histogram\nmy_h_sum 100\n", "# TYPE my_h histogram\nmy_h_sum 130\n", 3},
        {"my_h_count", "# TYPE my_h summary\nmy_h_count 100\n", "# TYPE my_h summary\nmy_h_count 130\n", 3},
        {"my_h_bucket", "# TYPE my_h histogram\nmy_h_bucket{le=\"1\"} 100\n",
         "# TYPE my_h histogram\nmy_h_bucket{le=\"1\"} 130\n", 3},
        {"app_depth", "# TYPE app:depth counter\napp:depth 100\n", "# TYPE app:depth counter\napp:depth 130\n", 3},
        {"app:depth", "app_depth 5\n", "app_depth 5\n", 5},
        {"vllm:num_requests_waiting", "vllm:num_requests_waiting 5\n", "vllm:num_requests_waiting 5\n", 5},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct signals_answer a = custom(rows[i].metric, rows[i].before, rows[i].after);
        if (a.reading != SIGNALS_READ_OK)
            fail_msg("%zu: %s", i, signals_reading_name(a.reading));
        assert_double_near(a.value, rows[i].want, 1e-6);
    }
}

static void test_the_first_count_of_a_users_metric_is_not_missed(void **state)
{
    (void)state;
    struct signals_answer a = custom("incoming_total", "up 1\n", "up 1\nincoming_total{route=\"/\"} 3\n");
    assert_int_equal(a.reading, SIGNALS_READ_OK);
    assert_double_near(a.value, 0.3, 1e-6);
    assert_double_near(a.peak.value, 0.3, 1e-6);
    assert_true(a.is_counter);
    assert_double_near(a.value * a.span_s, 3, 1e-6); /* how many there were */
    /* of a route that was never asked before, beside one that was */
    a = custom("incoming_total", "incoming_total{route=\"/a\"} 70\n",
               "incoming_total{route=\"/a\"} 70\nincoming_total{route=\"/b\"} 1\n");
    assert_double_near(a.value * a.span_s, 1, 1e-6);
    a = custom("incoming", "incoming 70\n", "incoming 70\n");
    assert_false(a.is_counter);
    assert_double_same(a.span_s, 0);
}

static void test_a_users_metric_does_not_hide_the_engine(void **state)
{
    (void)state;
    struct signals_history *h = signals_history_new();
    signals_history_add(h, read_page("vllm:num_requests_waiting 4\nmine 2\n", "mine"), AT(0));
    assert_double_same(ask(h, SIGNALS_REQUESTS_WAITING, 0, 0).value, 4);
    assert_int_equal(ask(h, SIGNALS_CUSTOM, 0, 0).engine, SIGNALS_ENGINE_VLLM);
    signals_history_free(h);
}

static void test_an_overlong_users_metric_is_none(void **state)
{
    (void)state;
    char name[300];
    memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    struct signals_reader *r = signals_reader_new(name);
    signals_reader_free(r);
    signals_reader_free(signals_reader_new(""));
    signals_reader_free(NULL);
}

static void test_shares_in_another_unit_are_absent(void **state)
{
    (void)state;
    assert_int_equal(reading_of("vllm:kv_cache_usage_perc 45\n", SIGNALS_KV_CACHE_USAGE), SIGNALS_READ_ABSENT);
    assert_double_same(value_of("vllm:kv_cache_usage_perc 1.01\n", SIGNALS_KV_CACHE_USAGE), 100);
    assert_double_near(
        value_of("sglang:num_used_tokens 250\nsglang:max_total_num_tokens 1000\n", SIGNALS_KV_CACHE_USAGE), 25, 1e-9);
    assert_int_equal(reading_of("sglang:num_used_tokens 0\nsglang:max_total_num_tokens 0\n", SIGNALS_KV_CACHE_USAGE),
                     SIGNALS_READ_ABSENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line_ends_timestamps_and_exemplars_do_not_matter),
        cmocka_unit_test(test_a_broken_line_takes_nothing_else_with_it),
        cmocka_unit_test(test_a_longer_name_is_another_metric),
        cmocka_unit_test(test_what_is_no_metrics_page_is_refused),
        cmocka_unit_test(test_a_page_without_samples_is_empty),
        cmocka_unit_test(test_more_lines_than_a_page_may_have_are_refused),
        cmocka_unit_test(test_more_series_than_a_page_may_have_are_refused),
        cmocka_unit_test(test_more_bytes_than_a_page_may_have_are_refused),
        cmocka_unit_test(test_long_lines_are_read_where_they_are_wanted_and_else_passed_over),
        cmocka_unit_test(test_a_reader_forgets_the_page_before),
        cmocka_unit_test(test_a_users_metric_is_a_level_unless_it_counts),
        cmocka_unit_test(test_the_first_count_of_a_users_metric_is_not_missed),
        cmocka_unit_test(test_a_users_metric_does_not_hide_the_engine),
        cmocka_unit_test(test_an_overlong_users_metric_is_none),
        cmocka_unit_test(test_shares_in_another_unit_are_absent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
