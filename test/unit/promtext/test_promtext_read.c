/* Reading: what other exporters write, and what must not be misread. */
#include "promtext/promtext.h"

#include <math.h>
#include <string.h>

#include "support.h"

/* Every sample as "name{k=v,...}=value@timestamp;" in one text. */

static void on_sample(void *context, const struct promtext_read_sample *s)
{
    struct buf *out = context;
    char number[NUM_TEXT_MAX];
    num_format_double(number, s->value);
    (void)buf_printf(out, "%.*s", (int)s->name.len, s->name.ptr);
    for (size_t i = 0; i < s->n_labels; i++)
        (void)buf_printf(out, "%c%.*s=%.*s", i ? ',' : '{', (int)s->labels[i].name.len, s->labels[i].name.ptr,
                         (int)s->labels[i].value.len, s->labels[i].value.ptr);
    (void)buf_printf(out, "%s=%s", s->n_labels ? "}" : "", number);
    if (s->has_timestamp)
        (void)buf_printf(out, "@%lld", (long long)s->timestamp_ms);
    (void)buf_append_char(out, ';');
}

static void test_lines_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *page, *want;
        size_t bad;
    } rows[] = {
        {"", "", 0},
        {"# HELP a b\n# TYPE a gauge\na 1\n", "a=1;", 0},
        {"a 1", "a=1;", 0},
        {"a{} 1\r\n", "a=1;", 0},
        {"a{x=\"}\"} 42\n", "a{x=}}=42;", 0},
        {"a{x=\"1\",y=\"2\",} 3\n", "a{x=1,y=2}=3;", 0},
        {"a{ x = \"1\" , y=\"2\" } 3\n", "a{x=1,y=2}=3;", 0},
        {"a{x=\"q\\\"b\\\\n\"} 3\n", "a{x=q\"b\\n}=3;", 0},
        {"a NaN\na +Inf\na -Inf\n", "a=NaN;a=+Inf;a=-Inf;", 0},
        {"a 1 1700000000123\n", "a=1@1700000000123;", 0},
        {"a 1 1700000000.5\n", "a=1@1700000000500;", 0},
        {"a_bucket{le=\"1.0\"} 2 # {trace_id=\"x\"} 0.5\n", "a_bucket{le=1.0}=2;", 0},
        {"vllm:num_requests_waiting{model=\"m\"} 14.0\n", "vllm:num_requests_waiting{model=m}=14;", 0},
        {"a 1e3\nb +2\n", "a=1000;b=2;", 0},
        {"a\nb 2\n", "b=2;", 1},
        {"a{x=\"1} 3\nb 2\n", "b=2;", 1},
        {"a 0x10\nb 2\n", "b=2;", 1},
        {"a 1 junk\nb 2\n", "b=2;", 1},
        {"a{x=1} 3\nb 2\n", "b=2;", 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        BUF_AUTO struct buf out;
        struct err e;
        size_t bad;
        buf_init(&out, 4096);
        assert_int_equal(promtext_read(str_of(rows[i].page), on_sample, &out, &bad, &e), 0);
        assert_string_equal(buf_cstr(&out), rows[i].want);
        assert_int_equal(bad, rows[i].bad);
    }
}

static void test_a_page_that_is_none_is_an_error(void **state)
{
    (void)state;
    BUF_AUTO struct buf out;
    struct err e;
    size_t bad;
    buf_init(&out, 4096);
    assert_int_equal(promtext_read(str_of("<html>\n<body>404</body>\n</html>\n"), on_sample, &out, &bad, &e), -1);
    assert_non_null(strstr(e.text, "not a metrics page"));
    assert_int_equal(out.len, 0);
}

static void test_a_line_longer_than_64_kib_is_read(void **state)
{
    (void)state;
    BUF_AUTO struct buf page;
    BUF_AUTO struct buf out;
    struct err e;
    size_t bad;
    buf_init(&page, 1 << 20);
    buf_init(&out, 1 << 20);
    (void)buf_append_str(&page, "# HELP a ");
    for (int i = 0; i < 100000; i++)
        (void)buf_append_char(&page, 'x');
    (void)buf_append_str(&page, "\na 1\n");
    assert_int_equal(promtext_read((struct str){page.data, page.len}, on_sample, &out, &bad, &e), 0);
    assert_string_equal(buf_cstr(&out), "a=1;");
}

static void test_what_is_written_reads_back(void **state)
{
    (void)state;
    BUF_AUTO struct buf page;
    BUF_AUTO struct buf out;
    struct promtext p;
    struct err e;
    size_t bad;
    static const struct promtext_family family = {.name = "x", .help = "X.", .type = PROMTEXT_GAUGE};
    buf_init(&page, 4096);
    buf_init(&out, 4096);
    promtext_init(&p, &page, PROMTEXT_TEXT);
    promtext_begin(&p, &family);
    promtext_sample(&p, (struct promtext_label[]){{"l", "a\\b\"c}{,=\n"}}, 1, 0.1);
    assert_int_equal(promtext_read((struct str){page.data, page.len}, on_sample, &out, &bad, &e), 0);
    assert_string_equal(buf_cstr(&out), "x{l=a\\b\"c}{,=\n}=0.1;");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_are_read),
        cmocka_unit_test(test_a_page_that_is_none_is_an_error),
        cmocka_unit_test(test_a_line_longer_than_64_kib_is_read),
        cmocka_unit_test(test_what_is_written_reads_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
