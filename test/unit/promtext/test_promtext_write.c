/* Writing: escapes, suffixes and metadata of both formats, and content negotiation. */
#include "promtext/promtext.h"

#include <math.h>
#include <string.h>

#include "support.h"

static const struct promtext_family counter = {
    .name = "x_events", .help = "Events \\ with \"quotes\"\nand a line.", .type = PROMTEXT_COUNTER};
static const struct promtext_family info = {.name = "x_build", .help = "Build.", .type = PROMTEXT_INFO};
static const struct promtext_family gauge = {
    .name = "x_age_seconds", .help = "Age.", .unit = "seconds", .type = PROMTEXT_GAUGE};
static const struct promtext_family histogram = {
    .name = "x_time_seconds", .help = "Time.", .unit = "seconds", .type = PROMTEXT_HISTOGRAM};

static void write_page(struct buf *out, enum promtext_format format)
{
    struct promtext p;
    promtext_init(&p, out, format);
    promtext_begin(&p, &counter);
    struct promtext_label labels[] = {{"a", "q\"b\\n\n"}, {"empty", ""}, {"bad", "\xff!"}};
    promtext_sample(&p, labels, 3, 3);
    promtext_begin(&p, &info);
    promtext_sample(&p, (struct promtext_label[]){{"version", "1"}}, 1, 1);
    promtext_begin(&p, &gauge);
    promtext_sample(&p, NULL, 0, 0.25);
    promtext_begin(&p, &histogram);
    static const double bounds[] = {0.5, 1}, counts[] = {1, 2};
    promtext_histogram(
        &p, NULL, 0,
        &(struct promtext_histogram){.bounds = bounds, .cumulative = counts, .n_bounds = 2, .sum = 4.5, .count = 3});
    promtext_end(&p);
}

static void test_text_page_has_the_text_spelling(void **state)
{
    (void)state;
    BUF_AUTO struct buf out;
    buf_init(&out, 1 << 16);
    write_page(&out, PROMTEXT_TEXT);
    assert_string_equal(buf_cstr(&out), "# HELP x_events_total Events \\\\ with \"quotes\"\\nand a line.\n"
                                        "# TYPE x_events_total counter\n"
                                        "x_events_total{a=\"q\\\"b\\\\n\\n\",bad=\"\xEF\xBF\xBD!\"} 3\n"
                                        "# HELP x_build_info Build.\n"
                                        "# TYPE x_build_info gauge\n"
                                        "x_build_info{version=\"1\"} 1\n"
                                        "# HELP x_age_seconds Age.\n"
                                        "# TYPE x_age_seconds gauge\n"
                                        "x_age_seconds 0.25\n"
                                        "# HELP x_time_seconds Time.\n"
                                        "# TYPE x_time_seconds histogram\n"
                                        "x_time_seconds_bucket{le=\"0.5\"} 1\n"
                                        "x_time_seconds_bucket{le=\"1\"} 2\n"
                                        "x_time_seconds_bucket{le=\"+Inf\"} 3\n"
                                        "x_time_seconds_sum 4.5\n"
                                        "x_time_seconds_count 3\n");
}

static void test_openmetrics_page_has_its_own_spelling(void **state)
{
    (void)state;
    BUF_AUTO struct buf out;
    buf_init(&out, 1 << 16);
    write_page(&out, PROMTEXT_OPENMETRICS);
    assert_string_equal(buf_cstr(&out), "# TYPE x_events counter\n"
                                        "# HELP x_events Events \\\\ with \\\"quotes\\\"\\nand a line.\n"
                                        "x_events_total{a=\"q\\\"b\\\\n\\n\",bad=\"\xEF\xBF\xBD!\"} 3\n"
                                        "# TYPE x_build info\n"
                                        "# HELP x_build Build.\n"
                                        "x_build_info{version=\"1\"} 1\n"
                                        "# TYPE x_age_seconds gauge\n"
                                        "# UNIT x_age_seconds seconds\n"
                                        "# HELP x_age_seconds Age.\n"
                                        "x_age_seconds 0.25\n"
                                        "# TYPE x_time_seconds histogram\n"
                                        "# UNIT x_time_seconds seconds\n"
                                        "# HELP x_time_seconds Time.\n"
                                        "x_time_seconds_bucket{le=\"0.5\"} 1\n"
                                        "x_time_seconds_bucket{le=\"1.0\"} 2\n"
                                        "x_time_seconds_bucket{le=\"+Inf\"} 3\n"
                                        "x_time_seconds_sum 4.5\n"
                                        "x_time_seconds_count 3\n"
                                        "# EOF\n");
}

static void test_nan_is_left_out(void **state)
{
    (void)state;
    BUF_AUTO struct buf out;
    struct promtext p;
    buf_init(&out, 4096);
    promtext_init(&p, &out, PROMTEXT_TEXT);
    promtext_begin(&p, &gauge);
    size_t before = out.len;
    promtext_sample(&p, NULL, 0, (double)NAN);
    assert_int_equal(out.len, before);
}

static void test_negotiation_takes_the_best_that_is_allowed(void **state)
{
    (void)state;
    static const struct {
        const char *accept;
        enum promtext_format want;
    } rows[] = {
        {"", PROMTEXT_TEXT},
        {"*/*", PROMTEXT_TEXT},
        {"text/html", PROMTEXT_TEXT},
        {"text/plain;version=0.0.4", PROMTEXT_TEXT},
        {"application/openmetrics-text", PROMTEXT_OPENMETRICS},
        {"application/openmetrics-text;version=0.0.1", PROMTEXT_TEXT},
        {"application/openmetrics-text;version=1.0.0;q=0", PROMTEXT_TEXT},
        {"application/openmetrics-text;version=1.0.0;q=0.2,text/plain;q=0.9", PROMTEXT_TEXT},
        /* Prometheus 3.5 */
        {"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
         "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
         "text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
         PROMTEXT_OPENMETRICS},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(promtext_negotiate(str_of(rows[i].accept)), rows[i].want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_page_has_the_text_spelling),
        cmocka_unit_test(test_openmetrics_page_has_its_own_spelling),
        cmocka_unit_test(test_nan_is_left_out),
        cmocka_unit_test(test_negotiation_takes_the_best_that_is_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
