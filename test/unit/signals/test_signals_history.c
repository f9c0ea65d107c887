/* Pages over time: growth of counters series by series, and how much is kept. */
#include "signals/history.h"

#include "pages.h"

#include <math.h>
#include <stdio.h>

static double growth_between(const char *before, const char *after, enum signals_id signal)
{
    struct signals_history *h = history_of(before);
    add_page(h, after, 1);
    struct signals_answer a = ask(h, signal, 1, 15);
    signals_history_free(h);
    assert_int_equal(a.reading, SIGNALS_READ_OK);
    return a.value;
}

static void test_growth_is_counted_series_by_series(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after;
        double want;
    } rows[] = {
        /* grew */
        {"nv_inference_request_success{model=\"a\"} 5\n", "nv_inference_request_success{model=\"a\"} 8\n", 3},
        /* the order of labels and lines does not matter */
        {"nv_inference_request_success{model=\"a\",version=\"1\"} 5\nnv_inference_request_success{model=\"b\"} 1\n",
         "nv_inference_request_success{model=\"b\"} 2\nnv_inference_request_success{version=\"1\",model=\"a\"} 8\n", 4},
        /* one began anew, the other grew */
        {"nv_inference_request_success{model=\"a\"} 500\nnv_inference_request_success{model=\"b\"} 10\n",
         "nv_inference_request_success{model=\"a\"} 4\nnv_inference_request_success{model=\"b\"} 13\n", 7},
        /* one that was not there before says nothing yet */
        {"nv_inference_request_success{model=\"a\"} 5\n",
         "nv_inference_request_success{model=\"a\"} 6\nnv_inference_request_success{model=\"b\"} 1000000\n", 1},
        /* one went away */
        {"nv_inference_request_success{model=\"a\"} 5\nnv_inference_request_success{model=\"b\"} 1000\n",
         "nv_inference_request_success{model=\"a\"} 6\n", 1},
        /* nothing */
        {"nv_inference_request_success{model=\"a\"} 5\n", "nv_inference_request_success{model=\"a\"} 5\n", 0},
        /* another name of the same quantity is another counter */
        {"tgi_request_count 100\n", "tgi_request_success 900\ntgi_request_count 103\n", 0},
        /* with and without _total at once: one of them */
        {"ray_vllm_request_success 5\nray_vllm_request_success_total 5\n",
         "ray_vllm_request_success 8\nray_vllm_request_success_total 8\n", 3},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        double got = growth_between(rows[i].before, rows[i].after, SIGNALS_REQUEST_RATE);
        if (fabs(got - rows[i].want) > 1e-6)
            fail_msg("row %zu: %g, want %g", i, got, rows[i].want);
    }
}

static void test_triton_counts_requests_and_not_the_items_of_their_batches(void **state)
{
    (void)state;
    static const char before[] = "nv_inference_request_success 10\nnv_inference_count 80\n";
    assert_double_near(
        growth_between(before, "nv_inference_request_success 20\nnv_inference_count 160\n", SIGNALS_REQUEST_RATE), 10,
        1e-6);
    /* a page on which only the items move */
    assert_double_near(
        growth_between(before, "nv_inference_request_success 10\nnv_inference_count 160\n", SIGNALS_REQUEST_RATE), 80,
        1e-6);
}

static const char *waiting(double n, double tokens)
{
    static char page[256];
    (void)snprintf(page, sizeof(page),
                   "vllm:num_requests_waiting %.10g\nvllm:num_requests_running 1\nvllm:generation_tokens_total %.15g\n",
                   n, tokens);
    return page;
}

/* Reference B.1 16: the address is a Service's, and each page may be another pod's. */
static void add_page_of_server(struct signals_history *h, bool has_gpu, int server, double count, double at_s)
{
    char page[512], mark[128];
    if (has_gpu)
        (void)snprintf(mark, sizeof(mark), "nv_gpu_memory_total_bytes{gpu_uuid=\"GPU-%d\"} 8e10\n", server);
    else
        (void)snprintf(mark, sizeof(mark), "process_start_time_seconds 17000000%02d\n", server);
    (void)snprintf(page, sizeof(page),
                   "%snv_inference_request_success %.0f\nnv_inference_pending_request_count 2\n"
                   "nv_inference_queue_duration_us %.0f\n",
                   mark, count, 1000 * count);
    add_page(h, page, at_s);
}

static void test_counters_of_servers_behind_one_address_do_not_mix(void **state)
{
    (void)state;
    static const double begins[] = {1000, 1000000, 50};
    for (int has_gpu = 0; has_gpu < 2; has_gpu++) {
        struct signals_history *h = signals_history_new();
        for (int t = 0; t <= 120; t += 5) {
            int server = t / 5 % 3;
            add_page_of_server(h, has_gpu, server, begins[server] + 10 * t, t);
            struct signals_answer a = ask(h, SIGNALS_REQUEST_RATE, t, 15);
            if (t <= 10) /* each was seen once */
                assert_int_equal(a.reading, SIGNALS_READ_NOT_YET);
            else
                assert_int_equal(a.reading, SIGNALS_READ_OK);
            assert_true(a.value <= 30.001);
            if (t >= 30) {
                assert_double_near(a.value, 30, 1e-3); /* 10/s of each */
                assert_double_near(ask(h, SIGNALS_QUEUE_WAIT_MS, t, 15).value, 1, 1e-3);
            }
        }
        signals_history_free(h);
    }
}

static void test_more_servers_than_are_kept_are_unknown_and_take_no_more_room(void **state)
{
    (void)state;
    struct signals_history *h = signals_history_new();
    for (int t = 0; t <= 600; t += 5) {
        add_page_of_server(h, false, t / 5 % 40, t, t);
        struct signals_answer a = ask(h, SIGNALS_REQUEST_RATE, t, 15);
        assert_int_equal(a.reading, SIGNALS_READ_NOT_YET);
        assert_false(a.is_stalled || a.peak.is_known); /* nobody knows */
    }
    for (int t = 605; t <= 615; t += 5) /* the one that was last */
        add_page_of_server(h, false, 0, t, t);
    assert_double_near(ask(h, SIGNALS_REQUEST_RATE, 615, 15).value, 1, 1e-3);
    signals_history_free(h);
}

static void test_as_much_is_kept_as_the_longest_window_needs(void **state)
{
    (void)state;
    struct signals_history *h = signals_history_new();
    size_t most = 0;
    /* 100 pages a second for ten minutes: 60,000 */
    for (int i = 0; i <= 60000; i++) {
        add_page(h, waiting(i % 7, i), i * 0.01);
        most = h->n > most ? h->n : most;
    }
    assert_true(most <= HISTORY_SAMPLES_MAX);
    assert_true(h->capacity <= 512);
    struct signals_answer a = ask(h, SIGNALS_REQUESTS_WAITING, 600, 300);
    assert_double_near(a.value, 3, 0.05);
    assert_double_same(a.peak.value, 6);
    assert_double_near(ask(h, SIGNALS_TOKENS_PER_SECOND, 600, 300).value, 100, 0.1);
    signals_history_free(h);
}

static void test_pages_five_seconds_apart_take_little_memory(void **state)
{
    (void)state;
    struct signals_history *h = signals_history_new();
    for (int i = 0; i <= 1000; i++)
        add_page(h, waiting(1, i), i * 5);
    assert_true(h->capacity <= 64);
    assert_true(h->n >= 61);
    assert_true(sizeof(*h) + h->capacity * sizeof(struct sample) < 16384);
    signals_history_free(h);
}

static void test_samples_of_one_second_keep_what_was_between_them(void **state)
{
    (void)state;
    struct signals_history *h = signals_history_new();
    add_page(h, waiting(0, 0), 0);
    add_page(h, waiting(10, 10), 0.25); /* holds for half a second */
    add_page(h, waiting(2, 30), 0.75);
    add_page(h, waiting(2, 40), 1.0);
    add_page(h, waiting(4, 50), 2.0);
    add_page(h, waiting(4, 60), 3.0);
    struct signals_answer a = ask(h, SIGNALS_REQUESTS_WAITING, 4, 4);
    /* 0 x 0.25 + 10 x 0.5 + 2 x 0.25 + 2 x 1 + 4 x 1 + 4 x 1, over 4 s */
    assert_double_near(a.value, (5 + 0.5 + 2 + 4 + 4) / 4, 1e-9);
    assert_double_same(a.peak.value, 10);
    assert_double_near(ask(h, SIGNALS_TOKENS_PER_SECOND, 4, 4).value, 20, 1e-6);
    signals_history_free(h);
}

static void test_two_pages_at_one_moment_are_no_rate(void **state)
{
    (void)state;
    struct signals_history *h = history_of(waiting(1, 0));
    add_page(h, waiting(3, 10), 0);
    assert_int_equal(ask(h, SIGNALS_TOKENS_PER_SECOND, 0, 15).reading, SIGNALS_READ_NOT_YET);
    assert_double_same(ask(h, SIGNALS_REQUESTS_WAITING, 0, 15).value, 3);
    add_page(h, waiting(5, 20), 0);
    add_page(h, waiting(5, 30), 1);
    assert_double_near(ask(h, SIGNALS_TOKENS_PER_SECOND, 1, 15).value, 30, 1e-6);
    signals_history_free(h);
}

static void test_pages_long_apart_are_still_a_rate(void **state)
{
    (void)state;
    struct signals_history *h = history_of(waiting(1, 0));
    add_page(h, waiting(1, 9000), 900);
    struct signals_answer a = ask(h, SIGNALS_TOKENS_PER_SECOND, 900, 15);
    assert_int_equal(a.reading, SIGNALS_READ_OK);
    assert_double_near(a.value, 10, 1e-6);
    signals_history_free(h);
}

static void test_random_counters_never_give_a_negative_or_a_huge_rate(void **state)
{
    (void)state;
    unsigned seed = 12345;
    for (int round = 0; round < 200; round++) {
        struct signals_history *h = signals_history_new();
        double total = 0;
        for (int i = 0; i <= 20; i++) {
            seed = seed * 1103515245U + 12345U;
            total = (seed >> 16) % 5 == 0 ? (seed >> 20) % 50 : total + (seed >> 20) % 1000;
            add_page(h, waiting(0, total), i * 5);
            struct signals_answer a = ask(h, SIGNALS_TOKENS_PER_SECOND, i * 5, 30);
            assert_int_equal(a.reading, i ? SIGNALS_READ_OK : SIGNALS_READ_NOT_YET);
            assert_true(a.value >= 0 && a.value <= 1000 / 5.0);
        }
        signals_history_free(h);
    }
}

static void test_the_newest_page_is_told_by_its_time(void **state)
{
    (void)state;
    struct signals_history *h = signals_history_new();
    assert_int_equal(signals_history_newest_ns(h), 0);
    assert_int_equal(signals_history_oldest_ns(h), 0);
    add_page(h, waiting(1, 0), 5);
    assert_int_equal(signals_history_newest_ns(h), AT(5));
    assert_int_equal(signals_history_oldest_ns(h), AT(5));
    signals_history_free(h);
    signals_history_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_growth_is_counted_series_by_series),
        cmocka_unit_test(test_triton_counts_requests_and_not_the_items_of_their_batches),
        cmocka_unit_test(test_counters_of_servers_behind_one_address_do_not_mix),
        cmocka_unit_test(test_more_servers_than_are_kept_are_unknown_and_take_no_more_room),
        cmocka_unit_test(test_as_much_is_kept_as_the_longest_window_needs),
        cmocka_unit_test(test_pages_five_seconds_apart_take_little_memory),
        cmocka_unit_test(test_samples_of_one_second_keep_what_was_between_them),
        cmocka_unit_test(test_two_pages_at_one_moment_are_no_rate),
        cmocka_unit_test(test_pages_long_apart_are_still_a_rate),
        cmocka_unit_test(test_random_counters_never_give_a_negative_or_a_huge_rate),
        cmocka_unit_test(test_the_newest_page_is_told_by_its_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
