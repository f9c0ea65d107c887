/* When pages are fetched: as often as somebody wants, one at a time of a host, and at once where somebody asks. */
#define POD_NET "127.23.0."
#include "engine/pods.h"

static void test_a_wanted_page_is_read_within_a_second_and_then_each_interval(void **state)
{
    struct world *w = (struct world *)*state;
    struct engine_want want = want_of(&w->pods[0]);
    const struct signals_feed *feed = engine_page(w->engine, &want);
    assert_string_equal(feed->url, want.url);
    assert_string_equal(feed->error, "");
    assert_int_equal(feed->last_try_ns, 0);
    assert_double_same(pages(w, "unread"), 1);
    net_loop_skip(w->loop, NS_PER_S);
    world_until(w, feed->last_try_ns > 0);
    assert_int_equal(w->pods[0].n_requests, 1);
    assert_int_equal(feed->last_good_ns, feed->last_try_ns);
    assert_double_same(waiting_of(w, feed), 7);
    assert_double_same(outcomes(w, "ok"), 1);
    assert_double_same(pages(w, "read"), 1);
    assert_double_same(pages(w, "unread"), 0);
    int seconds = 0;
    for (; w->pods[0].n_requests < 2; seconds++)
        world_pass(w, 1);
    assert_in_range(seconds, 2, 8); /* from half of an interval to one and a half, then each */
    for (size_t i = 3; i < 12; i++) {
        (void)engine_page(w->engine, &want);
        world_pass(w, 5);
        assert_int_equal(w->pods[0].n_requests, i);
    }
    assert_int_equal(w->pods[0].n_connections, 1);
}

static void test_a_page_that_nobody_wants_is_fetched_no_more_and_goes(void **state)
{
    struct world *w = (struct world *)*state;
    struct engine_want want = want_of(&w->pods[0]), named = want_of(&w->pods[1]);
    named.is_endpoint = true;
    (void)engine_page(w->engine, &want);
    (void)engine_page(w->engine, &named);
    net_loop_skip(w->loop, NS_PER_S);
    world_until(w, outcomes(w, "ok") == 2);
    world_pass(w, 70);
    assert_double_same(pages(w, "read"), 1);
    size_t of_pod = w->pods[0].n_requests, of_endpoint = w->pods[1].n_requests;
    assert_in_range(of_pod, 12, 14);
    world_pass(w, 50);
    assert_int_equal(w->pods[0].n_requests, of_pod);
    assert_true(w->pods[1].n_requests >= of_endpoint + 9); /* endpoints are asked for a quarter of an hour */
    net_loop_skip(w->loop, 900 * NS_PER_S);
    world_some(w);
    assert_double_same(pages(w, "read"), 0);
}

/* Seconds between two fetches, over a minute in which it is wanted each so many. */
static double seconds_between(struct world *w, int64_t interval_ns, int64_t other_ns)
{
    struct engine_want want = want_of(&w->pods[0]);
    size_t before = w->pods[0].n_requests;
    int64_t from_ns = net_now_ns(w->loop);
    while (net_now_ns(w->loop) - from_ns < 60 * NS_PER_S) {
        want.interval_ns = interval_ns;
        (void)engine_page(w->engine, &want);
        want.interval_ns = other_ns;
        (void)engine_page(w->engine, &want);
        net_loop_skip(w->loop, NS_PER_S / 2);
        world_some(w);
    }
    return (double)(net_now_ns(w->loop) - from_ns) / (double)NS_PER_S / (double)(w->pods[0].n_requests - before);
}

static void test_the_least_interval_counts_until_whoever_wanted_it_is_gone(void **state)
{
    struct world *w = (struct world *)*state;
    assert_double_near(seconds_between(w, 5 * NS_PER_S, 5 * NS_PER_S), 5, 0.5);
    assert_double_near(seconds_between(w, 5 * NS_PER_S, 1), 1, 0.1); /* never more often than once a second */
    (void)seconds_between(w, 5 * NS_PER_S, 5 * NS_PER_S);
    (void)seconds_between(w, 5 * NS_PER_S, 5 * NS_PER_S);
    assert_double_near(seconds_between(w, 5 * NS_PER_S, 5 * NS_PER_S), 5, 0.5);
}

static void test_pages_are_spread_over_time(void **state)
{
    struct world *w = (struct world *)*state;
    char url[64];
    for (int i = 0; i < 100; i++) { /* nobody listens there: each fetch ends at once */
        (void)snprintf(url, sizeof(url), "http://127.21.1.%d:1/metrics", i + 1);
        (void)engine_page(w->engine, &(struct engine_want){.url = url, .metric = "", .interval_ns = 5 * NS_PER_S});
    }
    net_loop_skip(w->loop, NS_PER_S);
    world_until(w, outcomes(w, "unreachable") == 100); /* the first of each, within a second */
    int64_t from_ns = net_now_ns(w->loop), step_ns = from_ns;
    double last = 100, most = 0;
    while (step_ns - from_ns < 20 * NS_PER_S) {
        net_loop_skip(w->loop, NS_PER_S / 10);
        world_some(w);
        double now = outcomes(w, "unreachable"),
               tenths = (double)(net_now_ns(w->loop) - step_ns) / (double)(NS_PER_S / 10);
        most = (now - last) / tenths > most ? (now - last) / tenths : most;
        last = now;
        step_ns = net_now_ns(w->loop);
    }
    assert_in_range((uintmax_t)last, 400, 510); /* four times each, give or take one */
    assert_in_range((uintmax_t)most, 1, 15);    /* two in a tenth of a second are the mean */
    assert_double_same(pages(w, "failing"), 100);
}

static void test_an_ask_is_a_fetch_that_begins_after_it(void **state)
{
    struct world *w = (struct world *)*state;
    struct engine_want want = want_of(&w->pods[0]);
    assert_double_same(waiting_of(w, world_ask(w, &want)), 7);
    assert_int_equal(w->pods[0].n_requests, 1);
    const char *answer = w->pods[0].answer;
    w->pods[0].answer = NULL;
    assert_non_null(engine_ask(w->engine, &want, on_told, w)); /* begins now */
    world_until(w, w->pods[0].n_requests == 2);
    for (int i = 0; i < 5; i++) /* these come too late for that fetch, and share the next */
        assert_non_null(engine_ask(w->engine, &want, on_told, w));
    world_some(w);
    assert_int_equal(w->n_told, 1);
    assert_int_equal(w->pods[0].n_requests, 2);
    w->pods[0].answer = answer;
    for (size_t i = 0; i < POD_CONNECTIONS; i++)
        if (w->pods[0].fds[i] >= 0)
            peer_say(w->pods[0].fds[i], answer);
    world_until(w, w->n_told == 7);
    assert_int_equal(w->pods[0].n_requests, 3);
    world_some(w);
    assert_int_equal(w->pods[0].n_requests, 3);
}

static void test_an_ask_ends_in_time_and_a_cancelled_one_is_silent(void **state)
{
    struct world *w = (struct world *)*state;
    struct engine_want want = want_of(&w->pods[0]), other = want;
    char url[96];
    w->pods[0].answer = NULL;
    (void)snprintf(url, sizeof(url), "%s?other", want.url);
    other.url = url;
    assert_non_null(engine_ask(w->engine, &want, on_told, w));
    assert_non_null(engine_ask(w->engine, &other, on_told, w)); /* of the same host: has to wait */
    struct engine_ask *dropped = engine_ask(w->engine, &want, on_told, w);
    world_until(w, w->pods[0].n_requests == 1);
    engine_ask_cancel(dropped);
    net_loop_skip(w->loop, 3 * NS_PER_S);
    for (int i = 0; i < 5; i++)
        (void)net_loop_turn(w->loop);
    assert_int_equal(w->n_told, 2);
    assert_non_null(strstr(engine_page(w->engine, &want)->error, "no complete page within 3s"));
    assert_non_null(strstr(engine_page(w->engine, &other)->error, "with the time that it waited for its turn"));
    world_some(w);
    assert_int_equal(w->n_told, 2);
}

static void test_a_host_is_asked_one_thing_at_a_time(void **state)
{
    struct world *w = (struct world *)*state;
    char urls[4][96];
    const char *answer = w->pods[0].answer;
    w->pods[0].answer = NULL;
    for (size_t i = 0; i < 4; i++) {
        (void)snprintf(urls[i], sizeof(urls[i]), "%s?%zu", w->pods[0].url, i);
        assert_non_null(engine_ask(w->engine, &(struct engine_want){.url = urls[i], .metric = ""}, on_told, w));
    }
    world_until(w, w->pods[0].n_requests == 1);
    world_some(w);
    assert_int_equal(w->pods[0].n_requests, 1);
    w->pods[0].answer = answer;
    peer_say(w->pods[0].fds[0], answer);
    world_until(w, w->n_told == 4);
    assert_int_equal(w->pods[0].n_requests, 4);
    assert_int_equal(w->pods[0].n_connections, 1);
}

/* As Python servers do after 5 s, which is also an interval. */
static void test_a_server_that_ends_kept_connections_costs_no_reading(void **state)
{
    struct world *w = (struct world *)*state;
    struct engine_want want = want_of(&w->pods[0]);
    for (size_t i = 1; i <= 5; i++) {
        const struct signals_feed *feed = world_ask(w, &want);
        assert_string_equal(feed->error, "");
        assert_int_equal(w->pods[0].n_connections, i);
        for (size_t j = 0; j < POD_CONNECTIONS; j++) /* the engine learns of it with the next request at the earliest */
            pod_hang_up(&w->pods[0], j);
    }
    (void)world_ask(w, &want);
    const char *answer = w->pods[0].answer;
    w->pods[0].answer = NULL;
    w->n_told = 0;
    assert_non_null(engine_ask(w->engine, &want, on_told, w));
    world_until(w, w->pods[0].n_requests == 7); /* on the kept connection, which ends at that moment */
    w->pods[0].answer = answer;
    for (size_t j = 0; j < POD_CONNECTIONS; j++)
        pod_hang_up(&w->pods[0], j);
    world_until(w, w->n_told == 1);
    assert_string_equal(engine_page(w->engine, &want)->error, "");
    assert_int_equal(w->pods[0].n_requests, 8);
}

/* Two at once, one of them for a page that hung the last time. */
static void test_pods_that_hang_cost_each_other_time_and_nobody_else(void **state)
{
    struct world *w = (struct world *)*state;
    world_engine(w, (struct engine_config){.max_at_once = 2});
    for (size_t i = 0; i < 3; i++)
        w->pods[i].answer = NULL;
    for (int i = 0; i < 13; i++) { /* 26 s */
        for (size_t j = 0; j < PODS; j++) {
            struct engine_want want = want_of(&w->pods[j]);
            (void)engine_page(w->engine, &want);
        }
        net_loop_skip(w->loop, 2 * NS_PER_S);
        world_some(w);
    }
    for (size_t j = 0; j < PODS; j++) {
        struct engine_want want = want_of(&w->pods[j]);
        const struct signals_feed *feed = engine_page(w->engine, &want);
        assert_true(j < 3 ? feed->last_good_ns == 0 : feed->last_good_ns > 0);
        if (j < 3)
            assert_in_range(w->pods[j].n_requests, 1, 6);
        else
            assert_in_range(w->pods[j].n_requests, 3, 6);
    }
}

/* Anybody can name endpoints, each of them once: until one was read, it is not trusted with a pod's turn. */
static void test_endpoints_that_hang_take_no_turn_from_pods(void **state)
{
    struct world *w = (struct world *)*state;
    world_engine(w, (struct engine_config){.max_at_once = 2});
    struct engine_want want = want_of(&w->pods[2]);
    for (size_t i = 0; i < 2; i++) {
        struct engine_want hangs = want_of(&w->pods[i]);
        hangs.is_endpoint = true;
        w->pods[i].answer = NULL;
        assert_non_null(engine_ask(w->engine, &hangs, on_told, w));
    }
    world_until(w, w->pods[0].n_requests == 1);
    assert_non_null(engine_ask(w->engine, &want, on_told, w));
    world_until(w, w->n_told == 1);
    assert_double_same(waiting_of(w, engine_page(w->engine, &want)), 7);
    assert_int_equal(w->pods[1].n_requests, 0);
    for (int i = 0; i < 2; i++) { /* both have had their time */
        net_loop_skip(w->loop, 3 * NS_PER_S);
        world_some(w);
    }
    struct engine_want good = want_of(&w->pods[3]), hangs = want_of(&w->pods[0]);
    good.is_endpoint = hangs.is_endpoint = true;
    (void)world_ask(w, &good);
    assert_non_null(engine_ask(w->engine, &hangs, on_told, w));
    world_until(w, w->pods[0].n_requests == 2);
    assert_double_same(waiting_of(w, world_ask(w, &good)), 7); /* it was read: it waits for none that hangs */
    assert_int_equal(w->pods[3].n_requests, 2);
}

static void test_endpoints_have_a_ceiling_of_their_own(void **state)
{
    struct world *w = (struct world *)*state;
    world_engine(w, (struct engine_config){.max_pages = 2, .max_endpoints = 1});
    for (size_t i = 0; i < 3; i++) {
        struct engine_want pod = want_of(&w->pods[i]), endpoint = pod;
        endpoint.is_endpoint = true;
        assert_true((engine_page(w->engine, &endpoint) != NULL) == (i < 1));
        assert_true((engine_page(w->engine, &pod) != NULL) == (i < 2));
    }
}

static void test_beyond_the_ceiling_there_is_no_page(void **state)
{
    struct world *w = (struct world *)*state;
    world_engine(w, (struct engine_config){.max_pages = 2});
    for (size_t i = 0; i < 3; i++) {
        struct engine_want want = want_of(&w->pods[i]);
        assert_true((engine_page(w->engine, &want) != NULL) == (i < 2));
        assert_true((engine_page(w->engine, &want) != NULL) == (i < 2)); /* again */
    }
    struct engine_want third = want_of(&w->pods[2]), with_metric = want_of(&w->pods[0]);
    assert_null(engine_ask(w->engine, &third, on_told, w));
    with_metric.metric = "my_queue";
    assert_null(engine_page(w->engine, &with_metric)); /* a page of its own */
    net_loop_skip(w->loop, 70 * NS_PER_S);
    assert_non_null(engine_page(w->engine, &third)); /* the others are no longer wanted */
}

static void test_intervals_are_a_third_of_the_window(void **state)
{
    (void)state;
    assert_int_equal(engine_interval_ns(60 * NS_PER_S, 0), 5 * NS_PER_S);
    assert_int_equal(engine_interval_ns(60 * NS_PER_S, 9 * NS_PER_S), 3 * NS_PER_S);
    assert_int_equal(engine_interval_ns(0, 0), NS_PER_S);
    assert_int_equal(engine_interval_ns(6 * NS_PER_S, 60 * NS_PER_S), 2 * NS_PER_S);
    assert_int_equal(engine_interval_ns(0, 12 * NS_PER_S), 4 * NS_PER_S);
    assert_int_equal(signals_feed_max_age_ns(&(struct signals_feed){.interval_ns = NS_PER_S}), 5 * NS_PER_S);
    assert_int_equal(signals_feed_max_age_ns(&(struct signals_feed){.interval_ns = 5 * NS_PER_S}), 15 * NS_PER_S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_wanted_page_is_read_within_a_second_and_then_each_interval, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(test_a_page_that_nobody_wants_is_fetched_no_more_and_goes, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(test_the_least_interval_counts_until_whoever_wanted_it_is_gone, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(test_pages_are_spread_over_time, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(test_an_ask_is_a_fetch_that_begins_after_it, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(test_an_ask_ends_in_time_and_a_cancelled_one_is_silent, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(test_a_host_is_asked_one_thing_at_a_time, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(test_a_server_that_ends_kept_connections_costs_no_reading, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(test_pods_that_hang_cost_each_other_time_and_nobody_else, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(test_endpoints_that_hang_take_no_turn_from_pods, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(test_endpoints_have_a_ceiling_of_their_own, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(test_beyond_the_ceiling_there_is_no_page, world_set_up, world_tear_down),
        cmocka_unit_test(test_intervals_are_a_third_of_the_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
