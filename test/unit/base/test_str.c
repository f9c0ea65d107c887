/* Text views, UTF-8, near matches. */
#include "base/base.h"

#include "support.h"

#include <string.h>

static void test_equality_compares_whole_texts(void **state)
{
    (void)state;
    assert_true(str_equals(str_of("abc"), "abc"));
    assert_false(str_equals(str_of("abc"), "ab"));
    assert_false(str_equals(str_of("ab"), "abc"));
    assert_false(str_equals(str_of("abc"), "abC"));
    assert_true(str_equals((struct str){NULL, 0}, ""));
    assert_false(str_equals((struct str){"a\0b", 3}, "a"));
    assert_true(str_equals_nocase(str_of("GPU"), "gpu"));
    assert_false(str_equals_nocase(str_of("GPU"), "gpus"));
}

static void test_prefix_and_suffix_at_the_edges(void **state)
{
    (void)state;
    assert_true(str_has_prefix(str_of("gpu.util"), "gpu."));
    assert_true(str_has_prefix(str_of(""), ""));
    assert_false(str_has_prefix(str_of("gp"), "gpu"));
    assert_true(str_has_suffix(str_of("gpu.util"), ".util"));
    assert_true(str_has_suffix(str_of("x"), ""));
    assert_false(str_has_suffix(str_of("il"), "util"));
}

static void test_trim_takes_ascii_white_space_off_both_ends(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } cases[] = {{"", ""}, {" ", ""}, {"a", "a"}, {" \t\r\n\v\fa b \n", "a b"}, {"\xC2\xA0x", "\xC2\xA0x"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_true(str_equals(str_trim(str_of(cases[i].text)), cases[i].want));
}

static void test_cut_yields_every_part_once(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want; /* parts, each ended by | */
    } cases[] = {{"", "|"}, {"a", "a|"}, {"a,b", "a|b|"}, {",", "||"}, {"a,,b,", "a||b||"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        BUF_AUTO struct buf parts;
        buf_init(&parts, 100);
        for (struct str rest = str_of(cases[i].text); rest.ptr;) {
            struct str part = str_cut(&rest, ',');
            (void)buf_append(&parts, part.ptr, part.len);
            (void)buf_append_char(&parts, '|');
        }
        assert_string_equal(buf_cstr(&parts), cases[i].want);
    }
}

static void test_copy_says_when_it_cut(void **state)
{
    (void)state;
    char out[4];
    assert_true(str_copy(out, sizeof(out), str_of("abc")));
    assert_string_equal(out, "abc");
    assert_false(str_copy(out, sizeof(out), str_of("abcd")));
    assert_string_equal(out, "abc");
    assert_true(str_copy(out, 1, str_of("")));
    assert_false(str_copy(out, 1, str_of("a")));
    assert_string_equal(out, "");
}

static void test_lower_changes_ascii_letters_only(void **state)
{
    (void)state;
    char text[] = "AZaz09@[`{\xC3\x89";
    str_lower(text);
    assert_string_equal(text, "azaz09@[`{\xC3\x89");
}

/* The table of RFC 3629 section 4, with the first and last of each range and what lies just outside. */
static void test_utf8_follows_the_table_of_the_rfc(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        bool is_valid;
    } cases[] = {
        {"", true},
        {"plain", true},
        {"\x7F", true},
        {"\x80", false},
        {"\xBF", false},
        {"\xC0\x80", false}, /* overlong NUL */
        {"\xC1\xBF", false},
        {"\xC2\x80", true},
        {"\xC2\x7F", false},
        {"\xC2\xC0", false},
        {"\xDF\xBF", true},
        {"\xE0\x9F\xBF", false}, /* overlong */
        {"\xE0\xA0\x80", true},
        {"\xED\x9F\xBF", true},
        {"\xED\xA0\x80", false}, /* surrogates */
        {"\xED\xBF\xBF", false},
        {"\xEE\x80\x80", true},
        {"\xEF\xBF\xBF", true},
        {"\xF0\x8F\xBF\xBF", false}, /* overlong */
        {"\xF0\x90\x80\x80", true},
        {"\xF4\x8F\xBF\xBF", true},
        {"\xF4\x90\x80\x80", false}, /* beyond U+10FFFF */
        {"\xF5\x80\x80\x80", false},
        {"\xFE", false},
        {"\xFF", false},
        {"\xE2\x82", false}, /* cut */
        {"\xF0\x9F\x98", false},
        {"\xC3", false},
        {"a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z", true},
        {"ok\xE2\x28\xA1", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (str_is_utf8(str_of(cases[i].bytes)) != cases[i].is_valid)
            fail_msg("case %zu should be %s", i, cases[i].is_valid ? "valid" : "invalid");
    assert_false(str_is_utf8((struct str){"a\0b", 3}));
}

static void test_distance_counts_single_edits(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        size_t want;
    } cases[] = {
        {"", "", 0},
        {"", "abc", 3},
        {"abc", "", 3},
        {"kitten", "sitting", 3},
        {"target", "tarhet", 1},
        {"target", "targe", 1},
        {"target", "targett", 1},
        {"target", "tagret", 1},
        {"ab", "ba", 1},
        {"abcd", "badc", 2},
        {"GPU", "gpu", 0},
        {"ca", "abc", 3},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(str_distance(cases[i].a, cases[i].b), cases[i].want);
        assert_int_equal(str_distance(cases[i].b, cases[i].a), cases[i].want);
    }
}

static void test_distance_gives_up_on_long_words(void **state)
{
    (void)state;
    char longest[66];
    memset(longest, 'a', 65);
    longest[65] = '\0';
    assert_int_equal(str_distance(longest, "a"), SIZE_MAX);
    assert_int_equal(str_distance("a", longest), SIZE_MAX);
    longest[64] = '\0';
    assert_int_equal(str_distance(longest, "a"), 63);
    assert_int_equal(str_distance(longest, longest), 0);
}

static void test_nearest_suggests_only_what_is_near(void **state)
{
    (void)state;
    static const char *const keys[] = {"targetValue", "activationThreshold", "metricType", "gpuIndex", "window"};
    static const struct {
        const char *word, *want;
    } cases[] = {
        {"targetvalue", "targetValue"},
        {"targetVaule", "targetValue"},
        {"target", NULL},
        {"metrictype", "metricType"},
        {"metricTyp", "metricType"},
        {"gpuindx", "gpuIndex"},
        {"windw", "window"},
        {"wndw", NULL},
        {"nothing", NULL},
        {"", NULL},
        {"x", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *got = str_nearest(cases[i].word, keys, ARRAY_LEN(keys));
        if (cases[i].want)
            assert_string_equal(got, cases[i].want);
        else
            assert_null(got);
    }
    assert_null(str_nearest("a", keys, 0));
}

static void test_nearest_prefers_the_smaller_distance_then_the_first(void **state)
{
    (void)state;
    static const char *const words[] = {"memory_usex", "memory_uses", "memory_used", "memory_usee"};
    assert_string_equal(str_nearest("memory_used", words, 4), "memory_used");
    assert_string_equal(str_nearest("memory_user", words, 4), "memory_usex");
}

static void test_a_percent_escape_is_one_byte(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int byte;
    } rows[] = {{"%41", 'A'}, {"%fFx", 255}, {"%00", 0}, {"%0g", -1}, {"%g0", -1}, {"%4", -1},
                {"%", -1},    {"", -1},      {"41", -1}, {"%-1", -1}, {"% 1", -1}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(str_percent_byte(str_of(rows[i].text)), rows[i].byte);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equality_compares_whole_texts),
        cmocka_unit_test(test_prefix_and_suffix_at_the_edges),
        cmocka_unit_test(test_a_percent_escape_is_one_byte),
        cmocka_unit_test(test_trim_takes_ascii_white_space_off_both_ends),
        cmocka_unit_test(test_cut_yields_every_part_once),
        cmocka_unit_test(test_copy_says_when_it_cut),
        cmocka_unit_test(test_lower_changes_ascii_letters_only),
        cmocka_unit_test(test_utf8_follows_the_table_of_the_rfc),
        cmocka_unit_test(test_distance_counts_single_edits),
        cmocka_unit_test(test_distance_gives_up_on_long_words),
        cmocka_unit_test(test_nearest_suggests_only_what_is_near),
        cmocka_unit_test(test_nearest_prefers_the_smaller_distance_then_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
