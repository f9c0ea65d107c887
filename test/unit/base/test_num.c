/* Numbers from and to text: what is read, what is refused, and that writing loses nothing. */
#include "base/base.h"

#include "support.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void test_plain_decimals_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double want;
    } cases[] = {
        {"0", 0},
        {"-0", 0},
        {"80", 80},
        {"1.5", 1.5},
        {".5", .5},
        {"5.", 5},
        {"-2.25", -2.25},
        {"1e3", 1000},
        {"1E-2", 0.01},
        {"1e+2", 100},
        {"007", 7},
        {"1e308", 1e308},
        {"4.9e-324", 4.9e-324},
        {"1e-400", 0},
        {"9007199254740993", 9007199254740992.0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        double got = -1;
        if (num_parse_double(str_of(cases[i].text), &got) < 0)
            fail_msg("%s was refused", cases[i].text);
        assert_double_same(got, cases[i].want);
    }
}

static void test_anything_but_a_plain_decimal_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"",       " ",     " 1",  "1 ",  "+1",      "--1",  "1,5",      "1_000",
                                        "0x10",   "0x1p3", "nan", "NaN", "inf",     "-Inf", "infinity", "1e309",
                                        "-1e309", "1e",    "1e+", "e5",  ".",       "-",    "-.",       "1.2.3",
                                        "80%",    "1f",    "1d",  "0b1", "\xD9\xA1"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        double value = 42;
        if (num_parse_double(str_of(texts[i]), &value) == 0)
            fail_msg("'%s' was read as %g", texts[i], value);
        assert_double_same(value, 42);
    }
}

static void test_text_with_nul_or_over_63_characters_is_refused(void **state)
{
    (void)state;
    double value = 42;
    int64_t i = 42;
    uint64_t u = 42;
    assert_int_equal(num_parse_double((struct str){"1\0", 2}, &value), -1);
    assert_int_equal(num_parse_i64((struct str){"1\0", 2}, &i), -1);
    assert_int_equal(num_parse_u64((struct str){"1\0", 2}, &u), -1);
    char zeros[65];
    memset(zeros, '0', sizeof(zeros));
    assert_int_equal(num_parse_double((struct str){zeros, 63}, &value), 0);
    value = 42;
    assert_int_equal(num_parse_double((struct str){zeros, 64}, &value), -1);
    assert_double_same(value, 42);
    assert_int_equal(i, 42);
    assert_int_equal(u, 42);
}

static void test_view_is_read_no_further_than_its_end(void **state)
{
    (void)state;
    double value = 0;
    assert_int_equal(num_parse_double((struct str){"12345", 2}, &value), 0);
    assert_double_same(value, 12);
}

static void test_signed_integers_at_their_limits(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int result;
        int64_t want;
    } cases[] = {
        {"0", 0, 0},
        {"-1", 0, -1},
        {"9223372036854775807", 0, INT64_MAX},
        {"-9223372036854775808", 0, INT64_MIN},
        {"9223372036854775808", -1, 42},
        {"-9223372036854775809", -1, 42},
        {"", -1, 42},
        {"-", -1, 42},
        {"+1", -1, 42},
        {" 1", -1, 42},
        {"1 ", -1, 42},
        {"1.0", -1, 42},
        {"1e3", -1, 42},
        {"0x1", -1, 42},
        {"--1", -1, 42},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t got = 42;
        assert_int_equal(num_parse_i64(str_of(cases[i].text), &got), cases[i].result);
        assert_true(got == cases[i].want);
    }
}

static void test_unsigned_integers_at_their_limits(void **state)
{
    (void)state;
    uint64_t got = 42;
    assert_int_equal(num_parse_u64(str_of("18446744073709551616"), &got), -1);
    assert_int_equal(num_parse_u64(str_of("-1"), &got), -1);
    assert_int_equal(num_parse_u64(str_of("-0"), &got), -1);
    assert_int_equal(num_parse_u64(str_of(""), &got), -1);
    assert_true(got == 42);
    assert_int_equal(num_parse_u64(str_of("18446744073709551615"), &got), 0);
    assert_true(got == UINT64_MAX);
}

static void test_booleans_have_four_spellings_each(void **state)
{
    (void)state;
    static const char *const yes[] = {"true", "1", "yes", "on", "TRUE", "Yes", "oN"};
    static const char *const no[] = {"false", "0", "no", "off", "False", "OFF"};
    static const char *const neither[] = {"", "t", "y", "2", "true ", "enabled", "-1"};
    bool value = false;
    for (size_t i = 0; i < ARRAY_LEN(yes); i++)
        assert_true(num_parse_bool(str_of(yes[i]), &value) == 0 && value);
    for (size_t i = 0; i < ARRAY_LEN(no); i++)
        assert_true(num_parse_bool(str_of(no[i]), &value) == 0 && !value);
    for (size_t i = 0; i < ARRAY_LEN(neither); i++)
        assert_int_equal(num_parse_bool(str_of(neither[i]), &value), -1);
}

static void test_doubles_are_written_as_short_as_exact(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *want;
    } cases[] = {
        {0, "0"},
        {-0.0, "0"},
        {1, "1"},
        {-80, "-80"},
        {0.1, "0.1"},
        {1.0 / 3, "0.3333333333333333"},
        {0.1 + 0.2, "0.30000000000000004"},
        {87.5, "87.5"},
        {1e-7, "1e-07"},
        {999999999999999.0, "999999999999999"},
        {1e15, "1e+15"},
        {123456789.125, "123456789.125"},
        {DBL_MAX, "1.7976931348623157e+308"},
        {DBL_MIN, "2.2250738585072014e-308"},
        {4.9406564584124654e-324, "5e-324"},
        {(double)NAN, "NaN"},
        {(double)INFINITY, "+Inf"},
        {-(double)INFINITY, "-Inf"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[NUM_TEXT_MAX];
        num_format_double(text, cases[i].value);
        assert_string_equal(text, cases[i].want);
    }
}

static void test_numbers_for_people_are_rounded_to_thousandths(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *want;
    } cases[] = {
        {0, "0"},
        {-0.0, "0"},
        {0.0004, "0"},
        {-0.0004, "0"},
        {0.0005001, "0.001"},
        {-0.25, "-0.25"},
        {80, "80"},
        {100, "100"},
        {59.499999999999986, "59.5"},
        {50.22131217891342, "50.221"},
        {1189.2331494123573, "1189.233"},
        {25165824, "25165824"},
        {1e12, "1000000000000"},
        {999999999999999.0, "999999999999999"},
        {1e15, "1e+15"},
        {(double)NAN, "NaN"},
        {-(double)INFINITY, "-Inf"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[NUM_TEXT_MAX];
        num_format_milli(text, cases[i].value);
        assert_string_equal(text, cases[i].want);
    }
}

/* xorshift: the same numbers in every run. */
static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static void test_every_double_survives_being_written_and_read(void **state)
{
    (void)state;
    uint64_t seed = 88172645463325252U;
    for (int i = 0; i < 100000; i++) {
        uint64_t bits = next_random(&seed);
        double value = 0, again = 0;
        memcpy(&value, &bits, sizeof(value));
        if (!isfinite(value))
            continue;
        char text[NUM_TEXT_MAX], one_less[400];
        num_format_double(text, value);
        if (num_parse_double(str_of(text), &again) < 0 || again < value || again > value)
            fail_msg("%.17g was written as %s", value, text);
        int digits = 0; /* and with a digit less it would not */
        for (const char *c = text; *c && *c != 'e'; c++)
            digits += *c >= '0' && *c <= '9';
        (void)snprintf(one_less, sizeof(one_less), "%.*g", digits - 1, value);
        double shorter = strtod(one_less, NULL);
        assert_true(digits < 2 || !strchr(text, 'e') || shorter < value || shorter > value);
    }
}

/* The definition: the fewest digits that read back. */
static void format_slowly(char out[NUM_TEXT_MAX], double value)
{
    for (int digits = 1; digits <= 17; digits++) {
        (void)snprintf(out, NUM_TEXT_MAX, "%.*g", digits, value);
        double back = strtod(out, NULL);
        if (!(back < value) && !(back > value) && (!strchr(out, 'e') || fabs(value) >= 1e15 || fabs(value) < 1e-4))
            return;
    }
}

/* Readings as they come: decimals, ratios of them, sums, and what lies next to each. */
static void test_decimals_and_their_neighbours_are_written_as_by_trial(void **state)
{
    (void)state;
    uint64_t seed = 42;
    for (int i = 0; i < 100000; i++) {
        double tens = pow(10, (double)(next_random(&seed) % 16));
        uint64_t digits = next_random(&seed) % (uint64_t)pow(10, (double)(1 + next_random(&seed) % 16));
        double value = (double)digits / tens;
        if (i % 4 == 1)
            value = value / 100;
        if (i % 4 == 2)
            value = nextafter(value, (double)(next_random(&seed) % 2) * 1e18);
        if (i % 4 == 3)
            value = -value;
        char got[NUM_TEXT_MAX], want[NUM_TEXT_MAX];
        num_format_double(got, value);
        format_slowly(want, value);
        if (strcmp(got, want) != 0 && strcmp(want, "-0") != 0)
            fail_msg("%.17g was written as %s, not %s", value, got, want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_decimals_are_read),
        cmocka_unit_test(test_anything_but_a_plain_decimal_is_refused),
        cmocka_unit_test(test_text_with_nul_or_over_63_characters_is_refused),
        cmocka_unit_test(test_view_is_read_no_further_than_its_end),
        cmocka_unit_test(test_signed_integers_at_their_limits),
        cmocka_unit_test(test_unsigned_integers_at_their_limits),
        cmocka_unit_test(test_booleans_have_four_spellings_each),
        cmocka_unit_test(test_doubles_are_written_as_short_as_exact),
        cmocka_unit_test(test_every_double_survives_being_written_and_read),
        cmocka_unit_test(test_decimals_and_their_neighbours_are_written_as_by_trial),
        cmocka_unit_test(test_numbers_for_people_are_rounded_to_thousandths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
