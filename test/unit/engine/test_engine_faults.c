/* Pods that misbehave: each costs its own reading, says how and what to do, and a good one beside it is read. */
#include "engine/pods.h"

#define HEAD(status) "HTTP/1.1 " status "\r\n"
#define EMPTY        "Content-Length: 0\r\n\r\n"
#define GOOD_LINE    "vllm:num_requests_waiting{model_name=\"m\"} 14\n"
#define TEN          "# 0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123\n"
#define HUNDRED      TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
#define DIGITS       "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
#define KILOBYTE     DIGITS DIGITS DIGITS DIGITS DIGITS DIGITS DIGITS DIGITS DIGITS DIGITS
#define FIELD        "X-Filler: 0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567\r\n"

static const struct fault {
    const char *what, *answer, *more;
    bool hangs_up, takes_time; /* until the deadline, which the clock is moved to */
    const char *outcome, *part;
} faults[] = {
    {"401", HEAD("401 Unauthorized") EMPTY, NULL, false, false, "http_401",
     "HTTP 401; the page wants a token: give its file with --engine-token-file"},
    {"403", HEAD("403 Forbidden") EMPTY, NULL, false, false, "http_403", "HTTP 403; the page wants a token"},
    {"404", HEAD("404 Not Found") EMPTY, NULL, false, false, "http_404",
     "HTTP 404; start SGLang with --enable-metrics"},
    {"405", HEAD("405 No") EMPTY, NULL, false, false, "http_4xx", "HTTP 405; are path and scheme"},
    {"redirect", HEAD("302 Found") "Location: http://127.21.0.2:21080/metrics\r\n" EMPTY, NULL, false, false,
     "http_3xx", "HTTP 302; redirects are not followed"},
    {"501", HEAD("501 Not Implemented") EMPTY, NULL, false, false, "http_5xx",
     "llama.cpp says 501 unless it is started with --metrics"},
    {"503 with a page", HEAD("503 Service Unavailable") "Content-Length: 45\r\n\r\n" GOOD_LINE, NULL, false, false,
     "http_5xx", "HTTP 503"},
    {"204", HEAD("204 No Content") "\r\n", NULL, false, false, "http_other", "HTTP 204; only 200 is a page"},
    {"206 with a page", HEAD("206 Partial Content") "Content-Length: 45\r\n\r\n" GOOD_LINE, NULL, false, false,
     "http_other", "HTTP 206"},
    {"404 without an end", HEAD("404 Not Found") "\r\n", HUNDRED, false, false, "http_404", "HTTP 404"},
    {"HTML", HEAD("200 OK") "Content-Length: 38\r\n\r\n<html><body>Welcome here</body></html>", NULL, false, false,
     "not_a_page", ""},
    {"JSON", HEAD("200 OK") "Content-Length: 17\r\n\r\n{\"detail\":\"none\"}", NULL, false, false, "not_a_page", ""},
    {"nothing", HEAD("200 OK") EMPTY, NULL, false, false, "no_rule", ""},
    {"another program's", HEAD("200 OK") "Content-Length: 18\r\n\r\ngo_goroutines 123\n", NULL, false, false, "no_rule",
     "go_goroutines"},
    {"half a number", HEAD("200 OK") "Content-Length: 43\r\n\r\n" GOOD_LINE, NULL, false, false, "cut_short",
     "its last line has no end"},
    {"half a page, of no length", HEAD("200 OK") "\r\nvllm:num_requests_waiting{model_name=\"m\"} 1", NULL, true, false,
     "cut_short", "its last line has no end"},
    {"less than the length", HEAD("200 OK") "Content-Length: 99\r\n\r\n" GOOD_LINE, NULL, true, false, "cut_short",
     "half a page is not read"},
    {"less than the length, and waits", HEAD("200 OK") "Content-Length: 99\r\n\r\n" GOOD_LINE, NULL, false, true,
     "timeout", "no complete page within 3s; the engine is stuck or slow"},
    {"an open chunk", HEAD("200 OK") "Transfer-Encoding: chunked\r\n\r\n99\r\n" GOOD_LINE, NULL, true, false,
     "cut_short", "half a page is not read"},
    {"not packed as it says", HEAD("200 OK") "Content-Encoding: gzip\r\nContent-Length: 45\r\n\r\n" GOOD_LINE, NULL,
     false, false, "cut_short", ""},
    {"closes at once", "", NULL, true, false, "unreachable", "Empty reply from server; is the engine up"},
    {"not HTTP", "SSH-2.0-OpenSSH\r\n", NULL, true, false, "unreachable", "is the engine up"},
    {"silence", NULL, NULL, false, true, "timeout", "no complete page within 3s"},
    {"dribbles a head", HEAD("200 OK") "X-Slow: ", "x", false, true, "timeout", "no complete page within 3s"},
    {"dribbles a body", HEAD("200 OK") "\r\n" GOOD_LINE, "#", false, true, "timeout", "no complete page within 3s"},
    {"never ends", HEAD("200 OK") "\r\n" GOOD_LINE, HUNDRED HUNDRED HUNDRED HUNDRED, false, false, "too_large", ""},
    {"a line that never ends", HEAD("200 OK") "\r\n" GOOD_LINE "# ",
     KILOBYTE KILOBYTE KILOBYTE KILOBYTE KILOBYTE KILOBYTE, false, false, "too_large", ""},
    {"a head that never ends", HEAD("200 OK"), FIELD FIELD FIELD FIELD, false, false, "unreachable",
     "the head of the answer is longer than 64 kB"},
};

static void check(struct world *w, const struct fault *fault)
{
    struct engine_want bad = want_of(&w->pods[0]), good = want_of(&w->pods[1]);
    double before = outcomes(w, fault->outcome), good_before = outcomes(w, "ok");
    w->pods[0].answer = fault->answer;
    w->pods[0].more = fault->more;
    w->pods[0].hangs_up = fault->hangs_up;
    w->n_told = 0;
    assert_non_null(engine_ask(w->engine, &bad, on_told, w));
    assert_non_null(engine_ask(w->engine, &good, on_told, w));
    if (fault->takes_time) {
        world_until(w, w->n_told == 1); /* the good one */
        world_some(w);
        assert_int_equal(w->n_told, 1);
        net_loop_skip(w->loop, 3 * NS_PER_S);
    }
    world_until(w, w->n_told == 2);
    const struct signals_feed *feed = engine_page(w->engine, &bad);
    if (outcomes(w, fault->outcome) != before + 1 || !strstr(feed->error, fault->part) || !*feed->error)
        fail_msg("%s: %s %g: %s", fault->what, fault->outcome, outcomes(w, fault->outcome) - before, feed->error);
    assert_int_equal(feed->last_good_ns, 0);
    assert_true(feed->last_try_ns > 0);
    assert_double_same(waiting_of(w, feed), -1);
    feed = engine_page(w->engine, &good);
    assert_string_equal(feed->error, "");
    assert_double_same(waiting_of(w, feed), 7);
    assert_double_same(outcomes(w, "ok"), good_before + 1);
    for (size_t i = 0; i < POD_CONNECTIONS; i++)
        pod_hang_up(&w->pods[0], i);
}

static void test_each_fault_costs_one_pod_its_reading_and_says_what_to_do(void **state)
{
    struct world *w = (struct world *)*state;
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        /* each begins with a page that was never read; and real time is slow on some machines */
        world_engine(w, (struct engine_config){.timeout_ns = faults[i].takes_time ? 0 : 60 * NS_PER_S});
        check(w, &faults[i]);
    }
}

static void test_nobody_at_the_port_is_unreachable(void **state)
{
    struct world *w = (struct world *)*state;
    struct engine_want want = {.url = "http://127.21.0.1:1/metrics", .metric = ""};
    const struct signals_feed *feed = world_ask(w, &want);
    assert_double_same(outcomes(w, "unreachable"), 1);
    assert_non_null(strstr(feed->error, "Failed to connect to 127.21.0.1 port 1"));
    assert_non_null(strstr(feed->error, "is that its page's port"));
    assert_double_same(pages(w, "failing"), 1);
}

static void test_of_an_endpoint_no_key_of_pods_is_named(void **state)
{
    struct world *w = (struct world *)*state;
    static const struct {
        const char *answer, *text;
    } rows[] = {{HEAD("404 Not Found") EMPTY, "HTTP 404; is that the page's path? SGLang"},
                {HEAD("405 Method Not Allowed") EMPTY, "HTTP 405; are path and scheme right?"},
                {HEAD("503 Service Unavailable") EMPTY, "HTTP 503; the engine is starting"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        world_engine(w, (struct engine_config){.timeout_ns = 60 * NS_PER_S});
        struct engine_want want = want_of(&w->pods[0]);
        want.is_endpoint = true;
        w->pods[0].answer = rows[i].answer;
        assert_non_null(strstr(world_ask(w, &want)->error, rows[i].text));
    }
    struct engine_want nobody = {.url = "http://127.21.0.1:1/metrics", .metric = "", .is_endpoint = true};
    const char *error = world_ask(w, &nobody)->error;
    assert_non_null(strstr(error, "is it up, and is that its page's port?"));
    assert_null(strstr(error, "enginePort"));
}

/* The reading of before stays, with its age, and the error stands beside it until a fetch succeeds. */
static void test_a_fault_leaves_earlier_pages_as_they_are(void **state)
{
    struct world *w = (struct world *)*state;
    struct engine_want want = want_of(&w->pods[0]);
    const char *answer = w->pods[0].answer;
    (void)world_ask(w, &want);
    net_loop_skip(w->loop, 2 * NS_PER_S);
    w->pods[0].answer = HEAD("503 Service Unavailable") EMPTY;
    const struct signals_feed *feed = world_ask(w, &want);
    assert_double_same(waiting_of(w, feed), 7);
    assert_true(feed->last_good_ns > 0 && feed->last_good_ns < feed->last_try_ns);
    assert_double_same(pages(w, "failing"), 1);
    net_loop_skip(w->loop, 15 * NS_PER_S);
    assert_double_same(waiting_of(w, feed), -1); /* stale */
    w->pods[0].answer = answer;
    feed = world_ask(w, &want);
    assert_string_equal(feed->error, "");
    assert_double_same(waiting_of(w, feed), 7);
    assert_double_same(pages(w, "failing"), 0);
}

/* Megabytes for nothing each second would be the time of all others. */
static void test_a_page_that_is_too_large_is_asked_for_again_after_a_minute(void **state)
{
    struct world *w = (struct world *)*state;
    struct engine_want want = want_of(&w->pods[0]);
    want.interval_ns = NS_PER_S;
    w->pods[0].answer = HEAD("200 OK") "\r\n";
    w->pods[0].more = KILOBYTE KILOBYTE KILOBYTE KILOBYTE KILOBYTE KILOBYTE;
    w->pods[1].answer = HEAD("503 Service Unavailable") EMPTY;
    struct engine_want failing = want_of(&w->pods[1]);
    failing.interval_ns = NS_PER_S;
    (void)world_ask(w, &want);
    assert_double_same(outcomes(w, "too_large"), 1);
    w->pods[0].more = NULL;
    w->pods[0].answer = HEAD("200 OK") "Content-Length: 45\r\n\r\n" GOOD_LINE;
    size_t n = w->pods[0].n_requests;
    for (int i = 0; i < 25; i++) {
        (void)engine_page(w->engine, &want);
        (void)engine_page(w->engine, &failing);
        world_pass(w, 1);
    }
    assert_int_equal(w->pods[0].n_requests, n);
    assert_true(w->pods[1].n_requests > 8);
    for (int i = 0; i < 70; i++) {
        (void)engine_page(w->engine, &want);
        world_pass(w, 1);
    }
    assert_true(w->pods[0].n_requests > n + 1); /* it was read, and has its interval again */
    assert_string_equal(engine_page(w->engine, &want)->error, "");
}

/* 17 MB of one line, packed into a few kB. */
static void test_a_page_that_unpacks_beyond_the_ceiling_is_too_large(void **state)
{
    struct world *w = (struct world *)*state;
    struct engine_want want = want_of(&w->pods[0]);
    struct buf page BUF_AUTO, answer BUF_AUTO;
    buf_init(&page, 32 << 20);
    buf_init(&answer, 1 << 20);
    while (page.len < SIGNALS_PAGE_BYTES_MAX + (1 << 20))
        (void)buf_append_str(&page, TEN);
    assert_int_equal(http_gzip(&page), 0);
    (void)buf_printf(&answer, HEAD("200 OK") "Content-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n", page.len);
    (void)buf_append(&answer, page.data, page.len);
    w->pods[0].answer = NULL;
    assert_non_null(engine_ask(w->engine, &want, on_told, w));
    world_until(w, w->pods[0].n_requests == 1);
    peer_send(w->pods[0].fds[0], answer.data, answer.len);
    world_until(w, w->n_told == 1);
    assert_double_same(outcomes(w, "too_large"), 1);
}

static void test_people_are_told_how_many_pages_are_read(void **state)
{
    struct world *w = (struct world *)*state;
    struct engine_want good = want_of(&w->pods[0]), bad = want_of(&w->pods[1]);
    struct buf text BUF_AUTO;
    buf_init(&text, 4096);
    engine_write_state(w->engine, &text);
    assert_string_equal(buf_cstr(&text), "[+]engine pages: 0 read, 0 failing, 0 not read yet (information only)\n");
    w->pods[1].answer = HEAD("503 Service Unavailable") EMPTY;
    (void)world_ask(w, &good);
    (void)world_ask(w, &bad);
    buf_reset(&text);
    engine_write_state(w->engine, &text);
    assert_string_equal(buf_cstr(&text), "[-]engine pages: 1 read, 1 failing, 0 not read yet (information only)\n");
}

/* Whatever is in the air, ready or waiting. */
static void test_an_engine_may_go_at_any_moment(void **state)
{
    struct world *w = (struct world *)*state;
    char url[96];
    for (int turns = 0; turns < 8; turns++) {
        world_engine(w, (struct engine_config){.max_at_once = 2});
        w->pods[0].answer = NULL;
        for (size_t i = 0; i < PODS; i++) {
            struct engine_want want = want_of(&w->pods[i]);
            assert_non_null(engine_ask(w->engine, &want, on_told, w));
            (void)snprintf(url, sizeof(url), "%s?x", w->pods[i].url);
            want.url = url;
            assert_non_null(engine_ask(w->engine, &want, on_told, w));
            (void)engine_page(w->engine, &want);
        }
        for (int i = 0; i < turns; i++)
            world_turn(w);
        engine_free(w->engine);
        w->engine = NULL;
        int told = w->n_told;
        world_some(w);
        assert_int_equal(w->n_told, told);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_fault_costs_one_pod_its_reading_and_says_what_to_do, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(test_of_an_endpoint_no_key_of_pods_is_named, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(test_nobody_at_the_port_is_unreachable, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(test_a_fault_leaves_earlier_pages_as_they_are, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(test_a_page_that_is_too_large_is_asked_for_again_after_a_minute, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(test_a_page_that_unpacks_beyond_the_ceiling_is_too_large, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(test_people_are_told_how_many_pages_are_read, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(test_an_engine_may_go_at_any_moment, world_set_up, world_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
