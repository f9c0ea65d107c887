/* What wakeMetric says: demand, none, or not known, from pages read over time. */
#include "workload/wake.h"

#include "world.h"

#include <stdio.h>

#define ENDPOINT "http://router:9090/metrics"

/* A page each five seconds. NULL: it was not read. */
struct pages {
    const char *text[16];
    size_t n;
};
#define PAGES(...)                                                                                                     \
    {                                                                                                                  \
        {__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)                                     \
    }

static struct trigger *trigger_of(const char *activation)
{
    const struct trigger_settings settings = {.default_scope = TRIGGER_WORKLOAD};
    struct trigger_pair pairs[] = {
        {str_of("metricType"), str_of("requests_in_flight")}, {str_of("targetValue"), str_of("16")},
        {str_of("activationWindow"), str_of("60")},           {str_of("wakeEndpoint"), str_of(ENDPOINT)},
        {str_of("wakeMetric"), str_of("router_demand")},      {str_of("activationThreshold"), str_of(activation)},
    };
    struct err e;
    struct trigger *t = trigger_parse(pairs, ARRAY_LEN(pairs) - (*activation ? 0 : 1), &settings, &e);
    if (!t)
        fail_msg("%s", e.text);
    return t;
}

static const int64_t start_ns = 1000 * NS_PER_S, interval_ns = 5 * NS_PER_S;

static struct signals_history *read_pages(const struct pages *pages)
{
    struct signals_history *h = signals_history_new();
    struct signals_reader *reader = signals_reader_new("router_demand");
    for (size_t i = 0; i < pages->n; i++) {
        struct err e;
        if (!pages->text[i])
            continue;
        signals_reader_begin(reader);
        assert_int_equal(signals_reader_feed(reader, pages->text[i], strlen(pages->text[i]), &e), 0);
        struct signals_page *page = signals_reader_end(reader, &e);
        if (page)
            signals_history_add(h, page, start_ns + (int64_t)i * interval_ns);
    }
    signals_reader_free(reader);
    return h;
}

/* One second after the last page that was due. */
static struct workload_wake wake_of(const struct pages *pages, const char *activation, const char *error)
{
    struct trigger *t = trigger_of(activation);
    struct signals_history *h = read_pages(pages);
    struct signals_feed feed = {.url = ENDPOINT, .history = h, .error = error, .interval_ns = interval_ns};
    struct workload_wake wake;
    int64_t last_ns = start_ns + (int64_t)(pages->n > 0 ? pages->n - 1 : 0) * interval_ns;
    workload_wake(t, &feed, NULL, last_ns + NS_PER_S, &wake);
    signals_history_free(h);
    trigger_unref(t);
    return wake;
}

#define ENGINE     "vllm:num_requests_running 0\nvllm:num_requests_waiting 0\n"
#define GAUGE(v)   "# TYPE router_demand gauge\nrouter_demand " v "\nother 1\n"
#define COUNTER(v) "# TYPE router_demand counter\nrouter_demand " v "\nother 1\n"

static void test_a_gauge_by_its_newest_value_and_a_counter_by_its_rise(void **state)
{
    (void)state;
    const struct {
        const char *what;
        struct pages pages;
        const char *activation;
        enum scaling_wake wake;
        const char *text;
    } cases[] = {
        {"a queue", PAGES(GAUGE("3")), "", SCALING_WAKE_ACTIVE, "router_demand is 3, above 0"},
        {"an empty one", PAGES(GAUGE("0")), "", SCALING_WAKE_INACTIVE, "router_demand is 0, not above 0"},
        {"it has emptied", PAGES(GAUGE("3"), GAUGE("0")), "", SCALING_WAKE_INACTIVE, "is 0"},
        {"it fills", PAGES(GAUGE("0"), GAUGE("0.5")), "", SCALING_WAKE_ACTIVE, "is 0.5"},
        {"at the threshold", PAGES(GAUGE("3")), "3", SCALING_WAKE_INACTIVE, "not above 3"},
        {"above it", PAGES(GAUGE("3.5")), "3", SCALING_WAKE_ACTIVE, "above 3"},
        {"series add up", PAGES("router_demand{m=\"a\"} 1\nrouter_demand{m=\"b\"} 3\n"), "3", SCALING_WAKE_ACTIVE,
         "is 4"},
        {"O40: requests while there are no pods", PAGES(COUNTER("100"), COUNTER("100"), COUNTER("103")), "",
         SCALING_WAKE_ACTIVE, "router_demand rose by 3, above 0"},
        {"none", PAGES(COUNTER("100"), COUNTER("100"), COUNTER("100")), "", SCALING_WAKE_INACTIVE, "rose by 0"},
        {"a rise half a minute ago", PAGES(COUNTER("1"), COUNTER("9"), COUNTER("9"), COUNTER("9"), COUNTER("9")), "",
         SCALING_WAKE_ACTIVE, "rose by 8"},
        {"one before activationWindow",
         PAGES(COUNTER("1"), COUNTER("9"), COUNTER("9"), COUNTER("9"), COUNTER("9"), COUNTER("9"), COUNTER("9"),
               COUNTER("9"), COUNTER("9"), COUNTER("9"), COUNTER("9"), COUNTER("9"), COUNTER("9"), COUNTER("9"),
               COUNTER("9")),
         "", SCALING_WAKE_INACTIVE, "rose by 0"},
        {"the router began anew", PAGES(COUNTER("100"), COUNTER("2")), "", SCALING_WAKE_ACTIVE, "rose by 2"},
        {"anew without requests", PAGES(COUNTER("100"), COUNTER("0")), "", SCALING_WAKE_INACTIVE, "rose by 0"},
        {"at the threshold, in whole milli", PAGES(COUNTER("0"), COUNTER("1"), COUNTER("2"), COUNTER("3")), "3",
         SCALING_WAKE_INACTIVE, "rose by 3, not above 3"},
        {"O40: the first request makes the series", PAGES(ENGINE, ENGINE, ENGINE COUNTER("1")), "", SCALING_WAKE_ACTIVE,
         "rose by 1"},
        {"one page of a counter says nothing", PAGES(COUNTER("100")), "", SCALING_WAKE_UNKNOWN, ENDPOINT},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct workload_wake wake = wake_of(&cases[i].pages, cases[i].activation, "");
        if (wake.state != cases[i].wake || !strstr(wake.text, cases[i].text))
            fail_msg("%s: %d, \"%s\"", cases[i].what, (int)wake.state, wake.text);
    }
}

static void test_what_cannot_be_read_is_not_known_and_says_why(void **state)
{
    (void)state;
    const struct {
        const char *what;
        struct pages pages;
        const char *error, *text;
    } cases[] = {
        {"never read", {{NULL}, 0}, "HTTP 404", "wakeEndpoint " ENDPOINT ": HTTP 404"},
        {"never tried", {{NULL}, 0}, "", "never read"},
        {"not for three intervals", PAGES(GAUGE("3"), NULL, NULL, NULL), "connection refused", "connection refused"},
        {"two failures are bridged by what was read", PAGES(GAUGE("3"), NULL, NULL), "connection refused", "is 3"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct workload_wake wake = wake_of(&cases[i].pages, "", cases[i].error);
        bool is_read = strcmp(cases[i].text, "is 3") == 0;
        bool is_unknown = wake.state == SCALING_WAKE_UNKNOWN;
        if (is_unknown == is_read || !strstr(wake.text, cases[i].text))
            fail_msg("%s: %d, \"%s\"", cases[i].what, (int)wake.state, wake.text);
    }
}

static void test_a_page_without_the_metric_is_not_idle(void **state)
{
    (void)state;
    /* the page of an engine is read whatever else is on it */
    const struct pages pages = PAGES(ENGINE);
    struct workload_wake wake = wake_of(&pages, "", "");
    assert_int_equal(wake.state, SCALING_WAKE_UNKNOWN);
    assert_contains(wake.text, "router_demand");
}

static void test_without_a_wake_endpoint_there_is_nothing_to_say(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, "metricType", "requests_in_flight", "targetValue", "16");
    struct workload_wake wake;
    workload_wake(w.trigger, NULL, "", start_ns, &wake);
    assert_int_equal(wake.state, SCALING_WAKE_NONE);
    assert_string_equal(wake.text, "");
}

static void test_a_page_that_is_not_asked_for_is_not_known(void **state)
{
    (void)state;
    struct trigger *t = trigger_of("");
    struct workload_wake wake;
    workload_wake(t, NULL, "20000 pages are asked for already", start_ns, &wake);
    assert_int_equal(wake.state, SCALING_WAKE_UNKNOWN);
    assert_string_equal(wake.text, "wakeEndpoint " ENDPOINT ": 20000 pages are asked for already");
    workload_wake(t, NULL, "", start_ns, &wake);
    assert_contains(wake.text, "not asked");
    workload_wake(t, NULL, NULL, start_ns, &wake);
    assert_int_equal(wake.state, SCALING_WAKE_UNKNOWN);
    assert_contains(wake.text, "not asked");
    trigger_unref(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_gauge_by_its_newest_value_and_a_counter_by_its_rise),
        cmocka_unit_test(test_what_cannot_be_read_is_not_known_and_says_why),
        cmocka_unit_test(test_a_page_without_the_metric_is_not_idle),
        cmocka_unit_test(test_without_a_wake_endpoint_there_is_nothing_to_say),
        cmocka_unit_test(test_a_page_that_is_not_asked_for_is_not_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
