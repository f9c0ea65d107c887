/* Clocks and the texts of times and durations. */
#include "base/base.h"

#include "support.h"

static void test_rfc3339_is_utc_with_milliseconds(void **state)
{
    (void)state;
    static const struct {
        int64_t wall_ns;
        const char *want;
    } cases[] = {
        {0, "1970-01-01T00:00:00.000Z"},
        {1795874539123456789LL, "2026-11-28T14:02:19.123Z"},
        {951782399999999999LL, "2000-02-28T23:59:59.999Z"},
        {951782400 * NS_PER_S, "2000-02-29T00:00:00.000Z"},
        {-1, "1969-12-31T23:59:59.999Z"},
        {-1500 * NS_PER_MS, "1969-12-31T23:59:58.500Z"},
        {INT64_MAX, "2262-04-11T23:47:16.854Z"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[TIME_RFC3339_MAX];
        time_format_rfc3339(text, cases[i].wall_ns);
        assert_string_equal(text, cases[i].want);
    }
}

static void test_durations_are_written_as_go_writes_them(void **state)
{
    (void)state;
    static const struct {
        int64_t ns;
        const char *want;
    } cases[] = {
        {0, "0ms"},
        {1, "1ns"},
        {999, "999ns"},
        {NS_PER_US, "1us"},
        {999999, "999us"},
        {NS_PER_MS, "1ms"},
        {300 * NS_PER_MS, "300ms"},
        {NS_PER_S - 1, "999ms"},
        {NS_PER_S, "1s"},
        {1500 * NS_PER_MS, "1.5s"},
        {1001 * NS_PER_MS, "1.001s"},
        {59999 * NS_PER_MS, "59.999s"},
        {60 * NS_PER_S, "1m"},
        {60 * NS_PER_S + 500 * NS_PER_MS, "1m0.5s"},
        {90 * NS_PER_S, "1m30s"},
        {3600 * NS_PER_S, "1h"},
        {3601 * NS_PER_S, "1h1s"},
        {3660 * NS_PER_S, "1h1m"},
        {86400 * NS_PER_S, "24h"},
        {INT64_MAX, "2562047h47m16.854s"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[TIME_DURATION_MAX];
        time_format_duration(text, cases[i].ns);
        assert_string_equal(text, cases[i].want);
    }
}

static void test_go_durations_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t want_ns;
    } cases[] = {
        {"0", 0},
        {"0s", 0},
        {"5s", 5 * NS_PER_S},
        {"300ms", 300 * NS_PER_MS},
        {"1.5s", 1500 * NS_PER_MS},
        {".5s", 500 * NS_PER_MS},
        {"1m30s", 90 * NS_PER_S},
        {"1h0m0.250s", 3600 * NS_PER_S + 250 * NS_PER_MS},
        {"20us", 20 * NS_PER_US},
        {"20\xC2\xB5s", 20 * NS_PER_US},
        {"20\xCE\xBCs", 20 * NS_PER_US},
        {"7ns", 7},
        {"30s1m", 90 * NS_PER_S}, /* Go takes any order */
        {"2555555h", 2555555LL * 3600 * NS_PER_S},
        {"1h59m59.999999999s", 7199999999999LL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t got = -1;
        if (time_parse_duration(cases[i].text, &got) < 0)
            fail_msg("%s was refused", cases[i].text);
        assert_true(got == cases[i].want_ns);
    }
}

static void test_anything_but_a_duration_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",   " ",    "5",     "1.5",  "s",    "-5s",  "+5s",  "5 s",   "5s ",       " 5s",  "5S",   "5sec",     "1d",
        "1w", "1e3s", "1..5s", "1h30", "1,5s", "infs", "NaNs", "9e99h", "99999999h", "0x5s", "5m s", "\xC2\xB5s"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        int64_t ns = 42;
        if (time_parse_duration(texts[i], &ns) == 0)
            fail_msg("'%s' was read as %lld ns", texts[i], (long long)ns);
        assert_true(ns == 42);
    }
}

static void test_written_durations_are_read_back_to_the_millisecond(void **state)
{
    (void)state;
    for (int64_t ms = 1; ms < 400LL * 86400 * 1000; ms = ms * 17 / 16 + 1) {
        char text[TIME_DURATION_MAX];
        int64_t back = 0;
        time_format_duration(text, ms * NS_PER_MS);
        assert_int_equal(time_parse_duration(text, &back), 0);
        assert_true(back == ms * NS_PER_MS);
    }
}

static void test_clocks_run_forward(void **state)
{
    (void)state;
    int64_t last = time_mono_ns();
    assert_true(last > 0);
    for (int i = 0; i < 1000; i++) {
        int64_t now = time_mono_ns();
        assert_true(now >= last);
        last = now;
    }
    assert_true(time_wall_ns() > 1600000000 * NS_PER_S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rfc3339_is_utc_with_milliseconds),
        cmocka_unit_test(test_durations_are_written_as_go_writes_them),
        cmocka_unit_test(test_go_durations_are_read),
        cmocka_unit_test(test_anything_but_a_duration_is_refused),
        cmocka_unit_test(test_written_durations_are_read_back_to_the_millisecond),
        cmocka_unit_test(test_clocks_run_forward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
