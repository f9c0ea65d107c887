/* Return codes: names, meanings, and what each asks of the caller; and the facts of the ABI header. */
#include "fake.h"

static const struct {
    int rc;
    enum nvml_rc_kind kind, init_kind;
} kinds[] = {
    {NVML_RC_SUCCESS, NVML_KIND_VALUE, NVML_KIND_VALUE},
    {NVML_RC_UNINITIALIZED, NVML_KIND_LIFECYCLE, NVML_KIND_LIFECYCLE},
    {NVML_RC_INVALID_ARGUMENT, NVML_KIND_ABSENT_LOGGED, NVML_KIND_LIFECYCLE},
    {NVML_RC_NOT_SUPPORTED, NVML_KIND_ABSENT, NVML_KIND_LIFECYCLE},
    {NVML_RC_NO_PERMISSION, NVML_KIND_ABSENT_LOGGED, NVML_KIND_LIFECYCLE},
    {NVML_RC_ALREADY_INITIALIZED, NVML_KIND_TRANSIENT, NVML_KIND_LIFECYCLE},
    {NVML_RC_NOT_FOUND, NVML_KIND_TRANSIENT, NVML_KIND_LIFECYCLE},
    {NVML_RC_INSUFFICIENT_SIZE, NVML_KIND_TRANSIENT, NVML_KIND_LIFECYCLE},
    {NVML_RC_INSUFFICIENT_POWER, NVML_KIND_TRANSIENT, NVML_KIND_LIFECYCLE},
    {NVML_RC_DRIVER_NOT_LOADED, NVML_KIND_LIFECYCLE, NVML_KIND_LIFECYCLE},
    {NVML_RC_TIMEOUT, NVML_KIND_TRANSIENT, NVML_KIND_LIFECYCLE},
    {NVML_RC_IRQ_ISSUE, NVML_KIND_TRANSIENT, NVML_KIND_LIFECYCLE},
    {NVML_RC_LIBRARY_NOT_FOUND, NVML_KIND_TRANSIENT, NVML_KIND_LIFECYCLE},
    {NVML_RC_FUNCTION_NOT_FOUND, NVML_KIND_ABSENT, NVML_KIND_LIFECYCLE},
    {NVML_RC_CORRUPTED_INFOROM, NVML_KIND_TRANSIENT, NVML_KIND_LIFECYCLE},
    {NVML_RC_GPU_IS_LOST, NVML_KIND_GPU_LOST, NVML_KIND_LIFECYCLE},
    {NVML_RC_RESET_REQUIRED, NVML_KIND_GPU_LOST, NVML_KIND_LIFECYCLE},
    {NVML_RC_OPERATING_SYSTEM, NVML_KIND_TRANSIENT, NVML_KIND_LIFECYCLE},
    {NVML_RC_LIB_RM_VERSION_MISMATCH, NVML_KIND_NEEDS_RESTART, NVML_KIND_NEEDS_RESTART},
    {NVML_RC_IN_USE, NVML_KIND_TRANSIENT, NVML_KIND_LIFECYCLE},
    {NVML_RC_MEMORY, NVML_KIND_TRANSIENT, NVML_KIND_LIFECYCLE},
    {NVML_RC_NO_DATA, NVML_KIND_TRANSIENT, NVML_KIND_LIFECYCLE},
    {NVML_RC_VGPU_ECC_NOT_SUPPORTED, NVML_KIND_TRANSIENT, NVML_KIND_LIFECYCLE},
    {NVML_RC_INSUFFICIENT_RESOURCES, NVML_KIND_TRANSIENT, NVML_KIND_LIFECYCLE},
    {NVML_RC_FREQ_NOT_SUPPORTED, NVML_KIND_TRANSIENT, NVML_KIND_LIFECYCLE},
    {NVML_RC_ARGUMENT_VERSION_MISMATCH, NVML_KIND_ABSENT_LOGGED, NVML_KIND_LIFECYCLE},
    {NVML_RC_DEPRECATED, NVML_KIND_ABSENT, NVML_KIND_LIFECYCLE},
    {NVML_RC_NOT_READY, NVML_KIND_TRANSIENT, NVML_KIND_LIFECYCLE},
    {NVML_RC_GPU_NOT_FOUND, NVML_KIND_LIFECYCLE, NVML_KIND_LIFECYCLE},
    {NVML_RC_INVALID_STATE, NVML_KIND_TRANSIENT, NVML_KIND_LIFECYCLE},
    {NVML_RC_RESET_TYPE_NOT_SUPPORTED, NVML_KIND_TRANSIENT, NVML_KIND_LIFECYCLE},
    {NVML_RC_UNKNOWN, NVML_KIND_TRANSIENT, NVML_KIND_NEEDS_RESTART},
    {NVML_RC_IMPLAUSIBLE, NVML_KIND_TRANSIENT, NVML_KIND_LIFECYCLE},
    {31, NVML_KIND_TRANSIENT, NVML_KIND_LIFECYCLE},
    {-7, NVML_KIND_TRANSIENT, NVML_KIND_LIFECYCLE},
};

static void test_each_code_asks_for_one_thing(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (nvml_rc_kind(kinds[i].rc) != kinds[i].kind || nvml_init_rc_kind(kinds[i].rc) != kinds[i].init_kind)
            fail_msg("code %d: kind %d, at init %d", kinds[i].rc, nvml_rc_kind(kinds[i].rc),
                     nvml_init_rc_kind(kinds[i].rc));
    }
}

static void test_the_table_of_kinds_has_every_code(void **state)
{
    (void)state;
    static const int codes[] = {
#define X(name, theirs, number, text) number,
        NVML_RETURN_CODES(X)
#undef X
    };
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        size_t at = 0;
        while (at < ARRAY_LEN(kinds) && kinds[at].rc != codes[i])
            at++;
        if (at == ARRAY_LEN(kinds))
            fail_msg("code %d is not in this test's table", codes[i]);
    }
}

static void test_codes_have_names_meanings_and_advice(void **state)
{
    (void)state;
    assert_string_equal(nvml_rc_name(NVML_RC_GPU_IS_LOST), "GPU_IS_LOST");
    assert_string_equal(nvml_rc_name(999), "UNKNOWN");
    assert_string_equal(nvml_rc_name(NVML_RC_IMPLAUSIBLE), "IMPLAUSIBLE");
    assert_string_equal(nvml_rc_name(4711), "UNKNOWN_CODE");
    assert_string_equal(nvml_rc_text(NVML_RC_DRIVER_NOT_LOADED), "the NVIDIA driver is not loaded");
    assert_non_null(strstr(nvml_init_advice(NVML_RC_LIB_RM_VERSION_MISMATCH), "restart the container"));
    assert_non_null(strstr(nvml_init_advice(NVML_RC_NO_PERMISSION), "runtimeClassName: nvidia"));
    for (int rc = -2; rc < 1001; rc++) {
        assert_true(strlen(nvml_rc_name(rc)) > 0);
        assert_true(strlen(nvml_rc_text(rc)) > 0);
        assert_true(strlen(nvml_init_advice(rc)) > 0);
    }
}

static void test_version_words_hold_size_and_number(void **state)
{
    (void)state;
    assert_int_equal(NVML_MEMORY_V2, 0x02000028);
    assert_int_equal(NVML_TEMPERATURE_V1, 0x0100000c);
    assert_int_equal(NVML_FABRIC_INFO_V2, 0x02000024);
    assert_int_equal(NVML_GPM_VERSION, 1); /* no size in it: go-nvml #168 */
}

static void test_few_symbols_are_required_and_none_stands_twice(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool is_required;
    } symbols[] = {
#define REQUIRED                   true
#define OPTIONAL                   false
#define X(need, name, ret, params) {#name, need},
        NVML_SYMBOLS(X)
#undef X
#undef REQUIRED
#undef OPTIONAL
    };
    size_t required = 0;
    for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
        required += symbols[i].is_required;
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(symbols[i].name, symbols[j].name);
    }
    assert_int_equal(required, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_code_asks_for_one_thing),
        cmocka_unit_test(test_the_table_of_kinds_has_every_code),
        cmocka_unit_test(test_codes_have_names_meanings_and_advice),
        cmocka_unit_test(test_version_words_hold_size_and_number),
        cmocka_unit_test(test_few_symbols_are_required_and_none_stands_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
