/* Errors: sentences, cuts, wraps and the table of classes. */
#include "base/base.h"

#include "support.h"

#include <errno.h>
#include <string.h>

static void test_set_fills_class_and_text_and_returns_minus_one(void **state)
{
    (void)state;
    struct err e = {0};
    assert_int_equal(err_set(&e, ERR_NOT_FOUND, "no %s number %d", "GPU", 7), -1);
    assert_int_equal(e.class, ERR_NOT_FOUND);
    assert_string_equal(e.text, "no GPU number 7");
}

static void test_null_error_is_accepted_everywhere(void **state)
{
    (void)state;
    assert_int_equal(err_set(NULL, ERR_INTERNAL, "x"), -1);
    assert_int_equal(err_set_errno(NULL, ERR_INTERNAL, ENOENT, "x"), -1);
    assert_int_equal(err_wrap(NULL, "x"), -1);
}

static void test_errno_text_follows_the_sentence(void **state)
{
    (void)state;
    struct err e = {0};
    (void)err_set_errno(&e, ERR_NOT_FOUND, ENOENT, "cannot open %s", "a.yaml");
    assert_string_equal(e.text, "cannot open a.yaml: No such file or directory");
    (void)err_set_errno(&e, ERR_UNKNOWN, 123456, "x");
    assert_string_equal(e.text, "x: unknown system error");
}

static void test_wrap_puts_the_place_in_front_and_keeps_the_class(void **state)
{
    (void)state;
    struct err e = {0};
    (void)err_set(&e, ERR_INVALID_ARGUMENT, "targetValue is 0");
    (void)err_wrap(&e, "trigger %s/%s", "ns", "llm");
    (void)err_wrap(&e, "request");
    assert_string_equal(e.text, "request: trigger ns/llm: targetValue is 0");
    assert_int_equal(e.class, ERR_INVALID_ARGUMENT);
}

/* A text of `n` times `unit`. */
static char *repeat(const char *unit, size_t n)
{
    size_t len = strlen(unit);
    char *text = (char *)mem_new_array(n * len + 1, 1);
    for (size_t i = 0; i < n; i++)
        memcpy(text + i * len, unit, len);
    return text;
}

static void test_text_that_just_fits_is_not_marked_as_cut(void **state)
{
    (void)state;
    struct err e = {0};
    MEM_AUTO char *fits = repeat("a", ERR_TEXT_MAX - 1);
    (void)err_set(&e, ERR_INTERNAL, "%s", fits);
    assert_string_equal(e.text, fits);
}

static void test_long_text_ends_with_dots_between_characters(void **state)
{
    (void)state;
    static const char *const units[] = {"a", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"};
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        for (size_t shift = 0; shift < 4; shift++) {
            struct err e = {0};
            MEM_AUTO char *text = repeat(units[i], ERR_TEXT_MAX);
            (void)err_set(&e, ERR_INTERNAL, "%.*s%s", (int)shift, "xxxx", text);
            assert_true(str_has_suffix(str_of(e.text), "..."));
            assert_true(str_is_utf8(str_of(e.text)));
            assert_true(strlen(e.text) >= ERR_TEXT_MAX - 5);
        }
}

static void test_long_places_and_reasons_stay_utf8(void **state)
{
    (void)state;
    struct err e = {0};
    MEM_AUTO char *place = repeat("x\xE2\x82\xAC", ERR_TEXT_MAX);
    (void)err_set_errno(&e, ERR_INTERNAL, ENOENT, "%s", place);
    assert_true(str_has_suffix(str_of(e.text), "...: No such file or directory"));
    (void)err_set(&e, ERR_INTERNAL, "the reason");
    (void)err_wrap(&e, "%s", place);
    assert_true(str_has_suffix(str_of(e.text), "...: the reason"));
    for (int i = 0; i < 5; i++)
        (void)err_wrap(&e, "%s", place);
    assert_true(str_is_utf8(str_of(e.text)));
}

static void test_classes_carry_their_codes(void **state)
{
    (void)state;
    static const struct {
        enum err_class class;
        const char *name;
        int grpc, http, exit_code;
    } cases[] = {
        {ERR_NONE, "OK", 0, 200, 0},
        {ERR_INVALID_ARGUMENT, "INVALID_ARGUMENT", 3, 400, 2},
        {ERR_DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED", 4, 504, 124},
        {ERR_FAILED_PRECONDITION, "FAILED_PRECONDITION", 9, 412, 1},
        {ERR_UNIMPLEMENTED, "UNIMPLEMENTED", 12, 501, 1},
        {ERR_UNAVAILABLE, "UNAVAILABLE", 14, 503, 1},
        {ERR_UNAUTHENTICATED, "UNAUTHENTICATED", 16, 401, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_string_equal(err_class_name(cases[i].class), cases[i].name);
        assert_int_equal(err_grpc_status(cases[i].class), cases[i].grpc);
        assert_int_equal(err_http_status(cases[i].class), cases[i].http);
        assert_int_equal(err_exit_code(cases[i].class), cases[i].exit_code);
        assert_int_equal(err_class_of_grpc(cases[i].grpc), cases[i].class);
    }
}

static void test_grpc_code_without_a_class_is_unknown(void **state)
{
    (void)state;
    static const int codes[] = {-1, 6, 10, 11, 15, 17, 1000};
    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        assert_int_equal(err_class_of_grpc(codes[i]), ERR_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_fills_class_and_text_and_returns_minus_one),
        cmocka_unit_test(test_null_error_is_accepted_everywhere),
        cmocka_unit_test(test_errno_text_follows_the_sentence),
        cmocka_unit_test(test_wrap_puts_the_place_in_front_and_keeps_the_class),
        cmocka_unit_test(test_text_that_just_fits_is_not_marked_as_cut),
        cmocka_unit_test(test_long_text_ends_with_dots_between_characters),
        cmocka_unit_test(test_long_places_and_reasons_stay_utf8),
        cmocka_unit_test(test_classes_carry_their_codes),
        cmocka_unit_test(test_grpc_code_without_a_class_is_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
