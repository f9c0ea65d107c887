/* One sample line: what exporters write is read, what could be misread is not. */
#include "signals/line.h"

#include <stdio.h>

#include "support.h"

static char *written(const char *text)
{
    static char out[512];
    struct line line;
    char number[NUM_TEXT_MAX];
    if (!line_read(str_of(text), &line))
        return NULL;
    int len = snprintf(out, sizeof(out), "%.*s", (int)line.name.len, line.name.ptr);
    for (size_t i = 0; i < line.n_labels; i++)
        len +=
            snprintf(out + len, sizeof(out) - (size_t)len, "%c%.*s=%.*s", i ? ',' : '{', (int)line.labels[i].name.len,
                     line.labels[i].name.ptr, (int)line.labels[i].value.len, line.labels[i].value.ptr);
    num_format_double(number, line.value);
    (void)snprintf(out + len, sizeof(out) - (size_t)len, "%s=%s", line.n_labels ? "}" : "",
                   line.is_number ? number : "none");
    return out;
}

static void test_lines_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"a 1", "a=1"},
        {"a{} 1", "a=1"},
        {"a{x=\"}\"} 42", "a{x=}}=42"},
        {"a{x=\"1\",y=\"2\",} 3", "a{x=1,y=2}=3"},
        {"a{ x = \"1\" , y=\"2\" }\t3", "a{x=1,y=2}=3"},
        {"a{x=\"q\\\"b\\\\\"} 3", "a{x=q\\\"b\\\\}=3"},
        {"a{x=\"1\"}3", "a{x=1}=3"},
        {"a NaN", "a=none"},
        {"a +Inf", "a=none"},
        {"a -Inf", "a=none"},
        {"a nan", "a=none"},
        {"a -1.5", "a=-1.5"},
        {"a +2", "a=2"},
        {"a 1.7904e+09", "a=1790400000"},
        {"a 1 1700000000123", "a=1"},
        {"a 1 1700000000.5", "a=1"},
        {"a_bucket{le=\"1.0\"} 2 # {trace_id=\"x\"} 0.5", "a_bucket{le=1.0}=2"},
        {"a_total 2 1700000000.5 # {trace_id=\"x\"} 0.5 1700000000.1", "a_total=2"},
        {"vllm:num_requests_waiting{model=\"m\"} 14.0", "vllm:num_requests_waiting{model=m}=14"},
        {"a 1  ", "a=1"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char *got = written(rows[i].text);
        if (!got)
            fail_msg("not read: %s", rows[i].text);
        assert_string_equal(got, rows[i].want);
    }
}

static void test_what_is_no_sample_is_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",          "a",           "a ",
        "1a 2",      "a1.5",        "a{x=\"1} 3",
        "a{x=1} 3",  "a{=\"1\"} 3", "a 0x10",
        "a 1 junk",  "a 1 2 junk",  "a {x=\"\\\"} 1",
        "a{x=\"1\"", "a{x=\"1\"}",  "a{x=\"\\",
        "<html> 3",  "{\"a\":1}",   "a +-1",
        "a 1e999",   "a --1",       "a{x=\"1\"y=\"2\"} 3",
        "Not Found", "a 1,5",
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (written(rows[i]))
            fail_msg("read: %s", rows[i]);
}

static void test_more_labels_than_a_line_may_have_are_refused(void **state)
{
    (void)state;
    for (int n = LINE_LABELS_MAX; n <= LINE_LABELS_MAX + 1; n++) {
        BUF_AUTO struct buf text;
        struct line line;
        buf_init(&text, 4096);
        (void)buf_append_str(&text, "a{");
        for (int i = 0; i < n; i++)
            (void)buf_printf(&text, "l%d=\"v\",", i);
        (void)buf_append_str(&text, "} 1");
        assert_int_equal(line_read(str_of(buf_cstr(&text)), &line), n == LINE_LABELS_MAX);
    }
}

static void test_a_label_for_people_is_unescaped_and_harmless(void **state)
{
    (void)state;
    struct line line;
    char out[12];
    assert_true(line_read(str_of("a{m=\"x\\\"y\\\\z\x1b\\n!\"} 1"), &line));
    line_label_text(&line, "m", out, sizeof(out));
    assert_string_equal(out, "x\"y\\z? !");
    assert_true(line_read(str_of("a{m=\"\xc2\x9b"
                                 "2J\xc3\x9b\"} 1"),
                          &line));
    line_label_text(&line, "m", out, sizeof(out));
    assert_string_equal(out, "?2J\xc3\x9b"); /* U+009B begins a command, U+00DB is a letter */
    assert_true(line_read(str_of("a{m=\"x\\\"y\"} 1"), &line));
    line_label_text(&line, "n", out, sizeof(out));
    assert_string_equal(out, "");
    line_label_text(&line, "m", out, 4);
    assert_string_equal(out, "x\"y");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_are_read),
        cmocka_unit_test(test_what_is_no_sample_is_refused),
        cmocka_unit_test(test_more_labels_than_a_line_may_have_are_refused),
        cmocka_unit_test(test_a_label_for_people_is_unescaped_and_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
