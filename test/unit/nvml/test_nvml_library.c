/* Finding, loading, initialising and letting go of the library. */
#include "fake.h"

static void test_a_missing_library_says_what_was_tried_and_what_to_do(void **state)
{
    (void)state;
    static const char *const paths[] = {"libno-such-nvml.so.1", "/run/nvidia/no/libnvidia-ml.so.1", NULL};
    struct err e = {0};
    assert_null(nvml_open_first(paths, &e));
    assert_int_equal(e.class, ERR_UNAVAILABLE);
    static const char *const wanted[] = {"libno-such-nvml.so.1", "/run/nvidia/no/libnvidia-ml.so.1",
                                         "runtimeClassName: nvidia", "NVIDIA_VISIBLE_DEVICES=all", "--nvml-library"};
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        if (!strstr(e.text, wanted[i]))
            fail_msg("no \"%s\" in: %s", wanted[i], e.text);
}

static void test_the_text_about_all_default_places_is_not_cut(void **state)
{
    (void)state;
    size_t len = 0;
    for (size_t i = 0; nvml_search_paths[i]; i++)
        len += strlen(nvml_search_paths[i]) + 2;
    assert_true(len + 260 < ERR_TEXT_MAX);
    assert_string_equal(nvml_search_paths[0], "libnvidia-ml.so.1");
}

static void test_a_path_that_was_given_is_the_only_one_tried(void **state)
{
    (void)state;
    struct err e = {0};
    assert_null(nvml_open("/nowhere/libnvidia-ml.so.1", &e));
    assert_int_equal(e.class, ERR_UNAVAILABLE);
    assert_non_null(strstr(e.text, "tried /nowhere/libnvidia-ml.so.1)"));
}

static void test_the_environment_names_the_library_when_no_path_is_given(void **state)
{
    (void)state;
    assert_int_equal(setenv("NVML_LIB", fake_path("535"), 1), 0);
    struct err e = {0};
    struct nvml *n = nvml_open(NULL, &e);
    assert_non_null(n);
    assert_non_null(strstr(nvml_library_path(n), "libfake_nvml_535.so"));
    assert_false(nvml_is_simulated(n));
    nvml_close(n);
    n = nvml_open(fake_path("470"), &e); /* the flag wins */
    assert_non_null(strstr(nvml_library_path(n), "libfake_nvml_470.so"));
    nvml_close(n);
    assert_int_equal(setenv("NVML_LIB", "/nowhere/x.so", 1), 0);
    assert_null(nvml_open(NULL, &e));
    assert_non_null(strstr(e.text, "/nowhere/x.so"));
    assert_int_equal(unsetenv("NVML_LIB"), 0);
}

static void test_the_first_usable_candidate_wins(void **state)
{
    (void)state;
    char *broken = mem_strdup(fake_path("broken")), *good = mem_strdup(fake_path("610")),
         *other = mem_strdup(fake_path("470"));
    const char *const paths[] = {"/nowhere/libnvidia-ml.so.1", broken, good, other, NULL};
    struct err e = {0};
    struct nvml *n = nvml_open_first(paths, &e);
    assert_non_null(n);
    assert_non_null(strstr(nvml_library_path(n), "610"));
    nvml_close(n);
    free(broken);
    free(good);
    free(other);
}

static void test_a_library_without_a_required_symbol_is_refused_by_name(void **state)
{
    (void)state;
    struct err e = {0};
    assert_null(nvml_open(fake_path("broken"), &e));
    assert_int_equal(e.class, ERR_FAILED_PRECONDITION);
    assert_non_null(strstr(e.text, "has no nvmlDeviceGetUUID"));
    assert_null(strstr(e.text, "nvmlInit_v2"));
}

static void test_a_file_that_is_no_library_is_told_from_a_missing_one(void **state)
{
    (void)state;
    char path[] = "/tmp/nvml-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "text", 4), 4);
    (void)close(fd);
    struct err e = {0};
    assert_null(nvml_open(path, &e));
    (void)unlink(path);
    assert_int_equal(e.class, ERR_FAILED_PRECONDITION);
    assert_non_null(strstr(e.text, path));
    assert_non_null(strstr(e.text, "--nvml-library"));
}

static void test_an_error_may_be_unwanted(void **state)
{
    (void)state;
    assert_null(nvml_open("/nowhere/libnvidia-ml.so.1", NULL));
    nvml_close(NULL);
}

static void test_init_happens_once_and_close_shuts_down(void **state)
{
    (void)state;
    struct fake *f;
    struct nvml *n = fake_open("535", &f);
    assert_int_equal(f->calls, 0); /* opening calls nothing */
    assert_string_equal(nvml_driver_version(n), "");
    f->driver_version = "535.261.03";
    assert_int_equal(nvml_init(n), 0);
    assert_int_equal(nvml_init(n), 0);
    assert_int_equal(f->init_calls, 1);
    assert_true(nvml_is_initialised(n));
    assert_string_equal(nvml_driver_version(n), "535.261.03");
    assert_string_equal(nvml_library_version(n), "12.535.261.03");
    assert_int_equal(nvml_shutdown(n), 0);
    assert_int_equal(nvml_shutdown(n), 0);
    assert_int_equal(f->shutdown_calls, 1);
    assert_false(nvml_is_initialised(n));
    assert_int_equal(nvml_init(n), 0); /* and again, as after a release */
    assert_int_equal(f->init_calls, 2);
    nvml_close(n);
}

static void test_a_failed_init_leaves_nothing_to_shut_down(void **state)
{
    (void)state;
    struct fake *f;
    struct nvml *n = fake_open("535", &f);
    f->rules[0].symbol = "nvmlInit_v2";
    f->rules[0].rc = NVML_RC_DRIVER_NOT_LOADED;
    assert_int_equal(nvml_init(n), NVML_RC_DRIVER_NOT_LOADED);
    assert_false(nvml_is_initialised(n));
    assert_int_equal(nvml_shutdown(n), 0);
    assert_int_equal(f->shutdown_calls, 0);
    f->rules[0].rc = NVML_RC_SUCCESS; /* the driver came */
    assert_int_equal(nvml_init(n), 0);
    nvml_close(n);
}

static void test_symbols_can_be_asked_for(void **state)
{
    (void)state;
    struct fake *f;
    struct nvml *n = fake_open("470", &f);
    assert_true(nvml_has_symbol(n, "nvmlInit_v2"));
    assert_true(nvml_has_symbol(n, "nvmlDeviceGetComputeRunningProcesses_v2"));
    assert_false(nvml_has_symbol(n, "nvmlDeviceGetComputeRunningProcesses_v3"));
    assert_false(nvml_has_symbol(n, "nvmlNoSuchThing"));
    nvml_close(n);
}

struct watch {
    unsigned enters, leaves;
    char last[64];
};

static void on_call(void *context, const char *symbol)
{
    struct watch *w = context;
    if (!symbol) {
        w->leaves++;
        return;
    }
    w->enters++;
    (void)snprintf(w->last, sizeof(w->last), "%s", symbol);
}

static void test_an_observer_sees_every_call_and_its_end(void **state)
{
    (void)state;
    struct fake *f;
    struct watch w = {0};
    struct nvml *n = fake_open("535", &f);
    nvml_observe(n, on_call, &w);
    assert_int_equal(nvml_init(n), 0);
    uint32_t mw = 0;
    assert_int_equal(nvml_read_power(n, fake_device(), &mw), 0);
    assert_string_equal(w.last, "nvmlDeviceGetPowerUsage");
    struct nvml_process_list list = {0};
    assert_int_equal(nvml_read_processes(n, fake_device(), NVML_PROCESS_COMPUTE, &list), 0);
    assert_string_equal(w.last, "nvmlDeviceGetComputeRunningProcesses_v3");
    assert_int_equal(w.enters, f->calls);
    assert_int_equal(w.leaves, w.enters);
    nvml_observe(n, NULL, NULL);
    assert_int_equal(nvml_read_power(n, fake_device(), &mw), 0);
    assert_int_equal(w.leaves, w.enters);
    assert_int_equal(w.enters, f->calls - 1);
    vec_fini(&list);
    nvml_close(n);
}

int main(void)
{
    (void)unsetenv("NVML_LIB");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_missing_library_says_what_was_tried_and_what_to_do),
        cmocka_unit_test(test_the_text_about_all_default_places_is_not_cut),
        cmocka_unit_test(test_a_path_that_was_given_is_the_only_one_tried),
        cmocka_unit_test(test_the_environment_names_the_library_when_no_path_is_given),
        cmocka_unit_test(test_the_first_usable_candidate_wins),
        cmocka_unit_test(test_a_library_without_a_required_symbol_is_refused_by_name),
        cmocka_unit_test(test_a_file_that_is_no_library_is_told_from_a_missing_one),
        cmocka_unit_test(test_an_error_may_be_unwanted),
        cmocka_unit_test(test_init_happens_once_and_close_shuts_down),
        cmocka_unit_test(test_a_failed_init_leaves_nothing_to_shut_down),
        cmocka_unit_test(test_symbols_can_be_asked_for),
        cmocka_unit_test(test_an_observer_sees_every_call_and_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
