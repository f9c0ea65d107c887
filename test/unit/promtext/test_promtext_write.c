/* Writing: escapes, suffixes and metadata of both formats, and content negotiation. */
#include "promtext/promtext.h"

#include "page.h"

static const struct promtext_family counter = {
    .name = "x_events", .help = "Events \\ with \"quotes\"\nand a line.", .type = PROMTEXT_COUNTER};
static const struct promtext_family info = {.name = "x_build", .help = "Build.", .type = PROMTEXT_INFO};
static const struct promtext_family bare = {.name = "X_ROWS", .help = "Rows.", .type = PROMTEXT_BARE_COUNTER};
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

static void test_both_pages_keep_the_rules(void **state)
{
    (void)state;
    static const enum promtext_format formats[] = {PROMTEXT_TEXT, PROMTEXT_OPENMETRICS};
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        BUF_AUTO struct buf out;
        buf_init(&out, 1 << 16);
        write_page(&out, formats[i]);
        assert_int_equal(page_check((struct str){out.data, out.len}, formats[i]), 4);
    }
}

static void test_a_family_without_samples_is_not_on_the_page(void **state)
{
    (void)state;
    BUF_AUTO struct buf out;
    struct promtext p;
    buf_init(&out, 4096);
    promtext_init(&p, &out, PROMTEXT_OPENMETRICS);
    promtext_begin(&p, &counter);
    promtext_begin(&p, &gauge);
    promtext_sample(&p, NULL, 0, (double)NAN);
    promtext_sample(&p, NULL, 0, 1);
    promtext_begin(&p, &info);
    promtext_end(&p);
    assert_string_equal(buf_cstr(&out), "# TYPE x_age_seconds gauge\n"
                                        "# UNIT x_age_seconds seconds\n"
                                        "# HELP x_age_seconds Age.\n"
                                        "x_age_seconds 1\n"
                                        "# EOF\n");
}

/* ---- hostile texts ---- */

struct read_back {
    size_t n;
    char value[256];
};

static void on_sample(void *context, const struct promtext_read_sample *sample)
{
    struct read_back *back = context;
    back->n++;
    assert_int_equal(sample->n_labels, 1);
    assert_true(str_copy(back->value, sizeof(back->value), sample->labels[0].value));
}

/* One sample whose label and help are this text; what a reader makes of the label. */
static struct read_back write_and_read(const char *text, enum promtext_format format)
{
    BUF_AUTO struct buf out;
    struct promtext p;
    struct err e;
    size_t bad = 0;
    struct read_back back = {.n = 0};
    const struct promtext_family family = {.name = "x", .help = text, .type = PROMTEXT_GAUGE};
    buf_init(&out, 1 << 16);
    promtext_init(&p, &out, format);
    promtext_begin(&p, &family);
    promtext_sample(&p, (struct promtext_label[]){{"l", text}}, 1, 1);
    promtext_end(&p);
    (void)page_check((struct str){out.data, out.len}, format);
    assert_int_equal(promtext_read((struct str){out.data, out.len}, on_sample, &back, &bad, &e), 0);
    assert_int_equal(bad, 0);
    assert_int_equal(back.n, 1);
    return back;
}

static void test_texts_arrive_as_they_are_or_mended(void **state)
{
    (void)state;
#define MENDED "\xEF\xBF\xBD"
    static const struct {
        const char *text, *want; /* NULL: the same */
    } rows[] = {
        {"plain", NULL},
        {"\\", NULL},
        {"\\n is not a newline", NULL},
        {"\n", NULL},
        {"\"} 7\nx{l=\"forged", NULL},
        {"# EOF\n", NULL},
        {"{}=,", NULL},
        {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", NULL},
        {"\x01\x1b[31m\x7f", NULL}, /* any character but CR is allowed */
        {"a\rb", "a b"},
        {"\xff", MENDED},
        {"\x80", MENDED},
        {"\xC3", MENDED},
        {"\xC3(", MENDED "("},
        {"\xE2\x82", MENDED MENDED},
        {"\xC0\x80", MENDED MENDED},            /* overlong */
        {"\xED\xA0\x80", MENDED MENDED MENDED}, /* a surrogate */
        {"\xF4\x90\x80\x80", MENDED MENDED MENDED MENDED},
        {"\xC3\"", MENDED "\""}, /* the quote is not swallowed */
        {"\xF0\x9F\\", MENDED MENDED "\\"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (size_t f = 0; f < 2; f++) {
            struct read_back back = write_and_read(rows[i].text, (enum promtext_format)f);
            assert_string_equal(back.value, rows[i].want ? rows[i].want : rows[i].text);
        }
}

static void test_any_bytes_make_a_valid_page(void **state)
{
    (void)state;
    static const char spice[] = "\"\\\n\r{}=,# \xff\xc3\xa9\xe2\xed\xf0\x9f\x80";
    uint32_t random = 1;
    for (int round = 0; round < 2000; round++) {
        char text[32];
        size_t len = 1 + (size_t)round % (sizeof(text) - 2);
        for (size_t i = 0; i < len; i++) {
            random = random * 1664525U + 1013904223U;
            uint32_t pick = random >> 16;
            text[i] = pick & 1 ? spice[pick / 2 % (sizeof(spice) - 1)] : (char)(1 + pick / 2 % 255);
        }
        text[len] = '\0';
        struct read_back back = write_and_read(text, (enum promtext_format)(round % 2));
        bool is_kept = str_is_utf8(str_of(text)) && !strchr(text, '\r');
        assert_true(!is_kept || strcmp(back.value, text) == 0);
        assert_true(str_is_utf8(str_of(back.value)));
    }
}

static void test_a_foreign_counter_keeps_its_name_in_both_formats(void **state)
{
    (void)state;
    static const char *const want[] = {[PROMTEXT_TEXT] = "# HELP X_ROWS Rows.\n# TYPE X_ROWS counter\nX_ROWS 2\n",
                                       [PROMTEXT_OPENMETRICS] =
                                           "# TYPE X_ROWS unknown\n# HELP X_ROWS Rows.\nX_ROWS 2\n# EOF\n"};
    for (int format = 0; format < 2; format++) {
        BUF_AUTO struct buf out;
        struct promtext p;
        buf_init(&out, 1 << 10);
        promtext_init(&p, &out, (enum promtext_format)format);
        promtext_begin(&p, &bare);
        promtext_sample(&p, NULL, 0, 2);
        promtext_end(&p);
        assert_string_equal(buf_cstr(&out), want[format]);
    }
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
        cmocka_unit_test(test_both_pages_keep_the_rules),
        cmocka_unit_test(test_a_family_without_samples_is_not_on_the_page),
        cmocka_unit_test(test_texts_arrive_as_they_are_or_mended),
        cmocka_unit_test(test_any_bytes_make_a_valid_page),
        cmocka_unit_test(test_a_foreign_counter_keeps_its_name_in_both_formats),
        cmocka_unit_test(test_nan_is_left_out),
        cmocka_unit_test(test_negotiation_takes_the_best_that_is_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
