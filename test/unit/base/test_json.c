/* The JSON writer: shapes, escapes, numbers; and an independent reader, Python's, agrees. */
#include "base/base.h"

#include "support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void assert_quoted(const char *bytes, size_t len, const char *want)
{
    BUF_AUTO struct buf out;
    buf_init(&out, 1000);
    json_quote(&out, bytes, len);
    assert_string_equal(buf_cstr(&out), want);
}

static void test_strings_are_escaped(void **state)
{
    (void)state;
    assert_quoted("", 0, "\"\"");
    assert_quoted("plain /", 7, "\"plain /\"");
    assert_quoted("a\"b\\c", 5, "\"a\\\"b\\\\c\"");
    assert_quoted("\n\r\t", 3, "\"\\n\\r\\t\"");
    assert_quoted("\x01\x1f\x7f", 3, "\"\\u0001\\u001f\\u007f\"");
    assert_quoted("a\0b", 3, "\"a\\u0000b\"");
    assert_quoted("\xC2\x80\xC2\x9B\xC2\x9F\xC2\xA0", 8, "\"\\u0080\\u009b\\u009f\xC2\xA0\"");
    assert_quoted("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", 9, "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"");
}

static void test_broken_utf8_becomes_replacement_characters(void **state)
{
    (void)state;
    assert_quoted("\xFF", 1, "\"\xEF\xBF\xBD\"");
    assert_quoted("a\xC2", 2, "\"a\xEF\xBF\xBD\"");
    assert_quoted("a\xC3", 2, "\"a\xEF\xBF\xBD\"");
    assert_quoted("\xC3(", 2, "\"\xEF\xBF\xBD(\"");
    assert_quoted("\xC0\x80", 2, "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");
    assert_quoted("\xF0\x9F\x98", 3, "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
    assert_quoted("\xED\xA0\x80z", 4, "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDz\"");
}

static void write_sample(struct json *j)
{
    json_object_begin(j);
    json_kv_string(j, "name", "llm");
    json_kv_string(j, "absent", NULL);
    json_kv_double(j, "value", 87.5);
    json_kv_double(j, "nan", (double)NAN);
    json_kv_i64(j, "max", INT64_MAX);
    json_kv_bool(j, "ok", true);
    json_key(j, "empty");
    json_object_begin(j);
    json_object_end(j);
    json_key(j, "list");
    json_array_begin(j);
    json_i64(j, INT64_MIN);
    json_double(j, (double)INFINITY);
    json_bool(j, false);
    json_null(j);
    json_array_begin(j);
    json_array_end(j);
    json_object_begin(j);
    json_kv_i64(j, "a", 1);
    json_object_end(j);
    json_array_end(j);
    json_object_end(j);
}

static void test_number_that_is_not_there_is_null(void **state)
{
    (void)state;
    BUF_AUTO struct buf out;
    buf_init(&out, 100);
    struct json j;
    json_init(&j, &out, 0);
    json_object_begin(&j);
    json_kv_maybe(&j, "there", true, 1.5);
    json_kv_maybe(&j, "not", false, 1.5);
    json_object_end(&j);
    assert_string_equal(buf_cstr(&out), "{\"there\":1.5,\"not\":null}");
}

static void test_document_on_one_line(void **state)
{
    (void)state;
    BUF_AUTO struct buf out;
    buf_init(&out, 1000);
    struct json j;
    json_init(&j, &out, 0);
    write_sample(&j);
    assert_string_equal(buf_cstr(&out),
                        "{\"name\":\"llm\",\"absent\":null,\"value\":87.5,\"nan\":null,\"max\":9223372036854775807,"
                        "\"ok\":true,\"empty\":{},\"list\":[-9223372036854775808,null,false,null,[],{\"a\":1}]}");
}

static void test_indented_document(void **state)
{
    (void)state;
    BUF_AUTO struct buf out;
    buf_init(&out, 1000);
    struct json j;
    json_init(&j, &out, 2);
    json_object_begin(&j);
    json_kv_i64(&j, "a", 1);
    json_key(&j, "b");
    json_array_begin(&j);
    json_i64(&j, 2);
    json_i64(&j, 3);
    json_array_end(&j);
    json_key(&j, "c");
    json_array_begin(&j);
    json_array_end(&j);
    json_object_end(&j);
    assert_string_equal(buf_cstr(&out), "{\n  \"a\": 1,\n  \"b\": [\n    2,\n    3\n  ],\n  \"c\": []\n}");
}

static void test_deepest_allowed_level_works(void **state)
{
    (void)state;
    BUF_AUTO struct buf out;
    buf_init(&out, 1000);
    struct json j;
    json_init(&j, &out, 0);
    for (int i = 0; i < JSON_DEPTH_MAX - 1; i++)
        json_array_begin(&j);
    for (int i = 0; i < JSON_DEPTH_MAX - 1; i++)
        json_array_end(&j);
    assert_int_equal(out.len, 2 * (JSON_DEPTH_MAX - 1));
}

static void test_full_buffer_shows_as_overflow_not_as_broken_json(void **state)
{
    (void)state;
    BUF_AUTO struct buf out;
    buf_init(&out, 20);
    struct json j;
    json_init(&j, &out, 0);
    write_sample(&j);
    assert_true(out.is_overflowed);
}

/* Doubles and a string of every byte, written as the lines `JSON text`, TAB, `what Python should make of it`. */
static void write_cases(FILE *file)
{
    static const double doubles[] = {0, -0.0, 0.1, 1.0 / 3, 1e21, -2.5e-300, 5e-324, 1.7976931348623157e308, 87.5};
    for (size_t i = 0; i < ARRAY_LEN(doubles); i++) {
        BUF_AUTO struct buf out;
        buf_init(&out, 100);
        struct json j;
        json_init(&j, &out, 0);
        json_double(&j, doubles[i]);
        (void)fprintf(file, "%s\t%.17g\n", buf_cstr(&out), doubles[i]);
    }
    for (int c = 0; c < 256; c++) {
        BUF_AUTO struct buf out;
        buf_init(&out, 100);
        char text[] = {'<', (char)c, '>'};
        json_quote(&out, text, sizeof(text));
        (void)fprintf(file, "%s\t\"<%s>\"\n", buf_cstr(&out), c < 0x80 ? "ascii" : "replaced");
    }
}

static const char reader[] = "import json, sys\n"
                             "lines = open(sys.argv[1], encoding='utf-8', newline='\\n').read().split('\\n')[:-1]\n"
                             "assert len(lines) == 9 + 256, len(lines)\n"
                             "for n, line in enumerate(lines):\n"
                             "    text, want = line.split('\\t')\n"
                             "    got = json.loads(text)\n"
                             "    if n < 9:\n"
                             "        assert got == float(want), line\n"
                             "    else:\n"
                             "        assert got == '<' + (chr(n - 9) if n - 9 < 128 else chr(0xFFFD)) + '>', line\n";

static void test_python_reads_what_is_written(void **state)
{
    (void)state;
    char path[] = "/tmp/test-json-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    write_cases(file);
    assert_int_equal(fclose(file), 0);
    pid_t child = fork();
    if (child == 0) {
        (void)execlp("python3", "python3", "-c", reader, path, (char *)NULL);
        _exit(127);
    }
    int status = -1;
    assert_true(waitpid(child, &status, 0) == child);
    (void)unlink(path);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strings_are_escaped),
        cmocka_unit_test(test_broken_utf8_becomes_replacement_characters),
        cmocka_unit_test(test_number_that_is_not_there_is_null),
        cmocka_unit_test(test_document_on_one_line),
        cmocka_unit_test(test_indented_document),
        cmocka_unit_test(test_deepest_allowed_level_works),
        cmocka_unit_test(test_full_buffer_shows_as_overflow_not_as_broken_json),
        cmocka_unit_test(test_python_reads_what_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
