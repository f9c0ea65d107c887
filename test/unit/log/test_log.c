/* Log lines: both formats, escapes, cuts, levels, the limit by call site, whole lines from several threads. */
#include "log/log.h"

#include "capture.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WALL_NS 1795874539123456789LL

static void assert_line(enum log_format format, const struct log_pair *pairs, const char *want)
{
    BUF_AUTO struct buf out;
    buf_init(&out, 4096);
    const struct log_line line = {WALL_NS, LOG_WARN, "agent", "driver lost", pairs};
    log_format_line(&out, format, &line);
    assert_string_equal(buf_cstr(&out), want);
}

static void test_text_line_is_logfmt(void **state)
{
    (void)state;
    const struct log_pair pairs[] = {
        LOG_STR("uuid", "GPU-1"), LOG_STR("reason", "it's gone"), LOG_INT("gpus", -8),   LOG_DBL("value", 87.5),
        LOG_BOOL("ready", true),  LOG_BOOL("stale", false),       LOG_STR("none", NULL), {.key = NULL},
    };
    assert_line(LOG_TEXT, pairs,
                "ts=2026-11-28T14:02:19.123Z level=warn component=agent msg=\"driver lost\" uuid=GPU-1 "
                "reason=\"it's gone\" gpus=-8 value=87.5 ready=true stale=false none=\"\"\n");
}

static void test_json_line_is_one_object(void **state)
{
    (void)state;
    const struct log_pair pairs[] = {
        LOG_STR("uuid", "GPU-1"), LOG_INT("max", INT64_MAX), LOG_DBL("value", 87.5), LOG_DBL("nan", (double)NAN),
        LOG_BOOL("ready", true),  LOG_STR("none", NULL),     {.key = NULL},
    };
    assert_line(
        LOG_JSON, pairs,
        "{\"ts\":\"2026-11-28T14:02:19.123Z\",\"level\":\"warn\",\"component\":\"agent\",\"msg\":\"driver lost\","
        "\"uuid\":\"GPU-1\",\"max\":9223372036854775807,\"value\":87.5,\"nan\":null,\"ready\":true,\"none\":\"\"}\n");
}

static void test_values_cannot_forge_keys_or_lines(void **state)
{
    (void)state;
    static const struct {
        const char *value, *text, *json;
    } cases[] = {
        {"a b", "\"a b\"", "\"a b\""},
        {"a=b", "\"a=b\"", "\"a=b\""},
        {"a\nlevel=error", "\"a\\nlevel=error\"", "\"a\\nlevel=error\""},
        {"say \"hi\"", "\"say \\\"hi\\\"\"", "\"say \\\"hi\\\"\""},
        {"back\\slash", "\"back\\\\slash\"", "\"back\\\\slash\""},
        {"\x1b[31m", "\"\\u001b[31m\"", "\"\\u001b[31m\""},
        {"\xFF", "\"\xEF\xBF\xBD\"", "\"\xEF\xBF\xBD\""},
        {"caf\xC3\xA9", "\"caf\xC3\xA9\"", "\"caf\xC3\xA9\""},
        {"/metrics?x", "/metrics?x", "\"/metrics?x\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[200], json[300];
        const struct log_pair pairs[] = {LOG_STR("k", cases[i].value), {.key = NULL}};
        (void)snprintf(text, sizeof(text),
                       "ts=2026-11-28T14:02:19.123Z level=warn component=agent msg=\"driver lost\" k=%s\n",
                       cases[i].text);
        (void)snprintf(json, sizeof(json),
                       "{\"ts\":\"2026-11-28T14:02:19.123Z\",\"level\":\"warn\",\"component\":\"agent\","
                       "\"msg\":\"driver lost\",\"k\":%s}\n",
                       cases[i].json);
        assert_line(LOG_TEXT, pairs, text);
        assert_line(LOG_JSON, pairs, json);
    }
}

static void test_long_line_keeps_its_shape_with_texts_cut(void **state)
{
    (void)state;
    for (enum log_format format = LOG_TEXT; format <= LOG_JSON; format++) {
        MEM_AUTO char *longest = (char *)mem_new_array(20001, 1);
        for (size_t i = 0; i < 20000; i += 2)
            memcpy(longest + i, "\xC3\xA9", 2);
        BUF_AUTO struct buf out;
        buf_init(&out, 4096);
        const struct log_pair pairs[] = {LOG_STR("long", longest), LOG_INT("n", 7), {.key = NULL}};
        const struct log_line line = {WALL_NS, LOG_INFO, "agent", "m", pairs};
        log_format_line(&out, format, &line);
        assert_false(out.is_overflowed);
        assert_true(str_is_utf8(str_of(buf_cstr(&out))));
        assert_true(str_has_suffix(str_of(buf_cstr(&out)), format == LOG_TEXT ? "\" n=7\n" : "\",\"n\":7}\n"));
    }
}

static void test_names_of_levels_and_formats_are_read_exactly(void **state)
{
    (void)state;
    enum log_level level = LOG_ERROR;
    enum log_format format = LOG_JSON;
    for (int i = 0; i < LOG_LEVEL_COUNT; i++) {
        assert_int_equal(log_parse_level(log_level_name((enum log_level)i), &level), 0);
        assert_int_equal(level, i);
    }
    assert_int_equal(log_parse_level("Info", &level), -1);
    assert_int_equal(log_parse_level("", &level), -1);
    assert_int_equal(log_parse_level("warning", &level), -1);
    assert_int_equal(level, LOG_ERROR);
    assert_int_equal(log_parse_format("text", &format), 0);
    assert_int_equal(format, LOG_TEXT);
    assert_int_equal(log_parse_format("json", &format), 0);
    assert_int_equal(format, LOG_JSON);
    assert_int_equal(log_parse_format("xml", &format), -1);
}

static void test_lines_under_the_level_are_not_written_and_not_evaluated(void **state)
{
    (void)state;
    int evaluated = 0;
    log_configure(LOG_WARN, LOG_TEXT);
    struct capture c = capture_begin();
    log_debug("t", "hidden", LOG_INT("n", ++evaluated));
    log_info("t", "hidden");
    log_warn("t", "shown");
    log_error("t", "shown", LOG_INT("n", ++evaluated));
    MEM_AUTO char *text = capture_end(&c);
    assert_int_equal(count(text, "hidden"), 0);
    assert_int_equal(count(text, "msg=shown"), 2);
    assert_int_equal(evaluated, 1);
    assert_false(log_is_on(LOG_INFO));
    assert_true(log_is_on(LOG_WARN));
}

static void test_busy_site_is_limited_and_says_what_it_left_out(void **state)
{
    (void)state;
    log_configure(LOG_INFO, LOG_TEXT);
    struct log_site site = {0}, other = {0};
    const struct log_pair none[] = {{.key = NULL}};
    struct capture c = capture_begin();
    for (int i = 0; i < 3 * LOG_BURST; i++)
        log_write(&site, LOG_INFO, "t", "busy", none);
    log_write(&other, LOG_INFO, "t", "other", none);
    atomic_store(&site.window_start_ns, time_mono_ns() - 11 * NS_PER_S); /* the window has passed */
    log_write(&site, LOG_INFO, "t", "busy", none);
    log_write(&site, LOG_INFO, "t", "busy", none);
    MEM_AUTO char *text = capture_end(&c);
    assert_int_equal(count(text, "msg=busy"), LOG_BURST + 2);
    assert_int_equal(count(text, "msg=other"), 1);
    assert_int_equal(count(text, "msg=busy suppressed=40\n"), 1);
    assert_int_equal(count(text, "suppressed"), 1);
}

static void test_errno_survives_logging(void **state)
{
    (void)state;
    log_configure(LOG_INFO, LOG_TEXT);
    int saved_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    (void)close(STDERR_FILENO); /* the write fails */
    errno = ENOENT;
    log_error("t", "nobody reads this");
    int after = errno;
    assert_true(dup2(saved_fd, STDERR_FILENO) >= 0);
    (void)close(saved_fd);
    assert_int_equal(after, ENOENT);
}

static void test_more_pairs_than_fit_are_left_out(void **state)
{
    (void)state;
    log_configure(LOG_INFO, LOG_TEXT);
    struct log_pair pairs[41] = {{.key = NULL}};
    for (int i = 0; i < 40; i++)
        pairs[i] = LOG_INT("k", i);
    struct log_site site = {0};
    struct capture c = capture_begin();
    log_write(&site, LOG_INFO, "t", "many", pairs);
    MEM_AUTO char *text = capture_end(&c);
    assert_int_equal(count(text, " k="), 24);
    assert_int_equal(count(text, "\n"), 1);
}

enum { THREADS = 4, LINES = 500 };

static void *write_lines(void *argument)
{
    for (int i = 0; i < LINES; i++) {
        struct log_site site = {0};
        const struct log_pair pairs[] = {LOG_STR("text", (const char *)argument), LOG_INT("i", i), {.key = NULL}};
        log_write(&site, LOG_INFO, "t", "line", pairs);
    }
    return NULL;
}

static void test_lines_of_several_threads_stay_whole(void **state)
{
    (void)state;
    static char text_a[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", text_b[] = "bb";
    log_configure(LOG_INFO, LOG_JSON);
    struct capture c = capture_begin();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, i % 2 ? text_a : text_b), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    MEM_AUTO char *text = capture_end(&c);
    size_t n = 0;
    for (struct str rest = str_of(text); rest.ptr && rest.len > 0; n++) {
        struct str line = str_cut(&rest, '\n');
        assert_true(str_has_prefix(line, "{\"ts\":\"") && str_has_suffix(line, "}"));
    }
    assert_int_equal(n, THREADS * LINES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_line_is_logfmt),
        cmocka_unit_test(test_json_line_is_one_object),
        cmocka_unit_test(test_values_cannot_forge_keys_or_lines),
        cmocka_unit_test(test_long_line_keeps_its_shape_with_texts_cut),
        cmocka_unit_test(test_names_of_levels_and_formats_are_read_exactly),
        cmocka_unit_test(test_lines_under_the_level_are_not_written_and_not_evaluated),
        cmocka_unit_test(test_busy_site_is_limited_and_says_what_it_left_out),
        cmocka_unit_test(test_errno_survives_logging),
        cmocka_unit_test(test_more_pairs_than_fit_are_left_out),
        cmocka_unit_test(test_lines_of_several_threads_stay_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
