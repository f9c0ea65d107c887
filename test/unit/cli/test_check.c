/* What check makes of a node's facts, and how it reads two files of the kernel. */
#include "cli/check.h"

#include <stdio.h>
#include <string.h>

#include "support.h"

/* A node in order: one GPU, the agent's user is root. */
static struct check_facts good(void)
{
    struct check_facts f = {
        .kernel_version = "550.54.15",
        .module_state = "live",
        .control_file = CHECK_FILE_USABLE,
        .is_profiling_admin_only = 0,
        .mig_monitor_minor = -1,
        .has_answer = true,
        .state = SNAPSHOT_DRIVER_OK,
        .driver_version = "550.54.15",
        .nvml_version = "12.550.54.15",
        .library_path = "/usr/lib/libnvidia-ml.so.550.54.15",
        .has_sys_admin = true,
        .sees_host_pids = true,
        .procfs = "/proc",
        .has_procfs = true,
        .kubelet_socket = "/var/lib/kubelet/pod-resources/kubelet.sock",
        .kubelet_file = CHECK_FILE_USABLE,
        .ports = {{"--port", 6000, false}, {"--metrics-port", 9090, false}, {"--probe-port", 8081, false}},
    };
    vec_push(&f.gpus, ((struct check_gpu){.index = 0, .minor = 0, .uuid = "GPU-0", .device_file = CHECK_FILE_USABLE}));
    return f;
}

static const struct check_line *line_of(const struct check_report *report, const char *name)
{
    for (size_t i = 0; i < report->lines.len; i++)
        if (strcmp(report->lines.items[i].name, name) == 0)
            return &report->lines.items[i];
    fail_msg("no line %s", name);
    return NULL;
}

static void test_a_node_in_order_has_no_problem_and_no_hint(void **state)
{
    (void)state;
    struct check_facts f = good();
    struct check_report report;
    check_judge(&f, &report);
    assert_int_equal(report.n_failures, 0);
    assert_int_equal(report.n_warnings, 0);
    for (size_t i = 0; i < report.lines.len; i++) {
        assert_int_equal(report.lines.items[i].result, CHECK_OK);
        assert_string_not_equal(report.lines.items[i].text, "");
        assert_string_equal(report.lines.items[i].hint, "");
    }
    check_report_fini(&report);
    check_facts_fini(&f);
}

/* ---- what spoils one thing each ---- */

static void set(char *out, size_t size, const char *text)
{
    (void)str_copy(out, size, str_of(text));
}

static void spoil_driver(struct check_facts *f)
{
    set(f->kernel_version, sizeof(f->kernel_version), "");
    set(f->module_state, sizeof(f->module_state), "");
    f->state = SNAPSHOT_DRIVER_NOT_LOADED;
    set(f->state_text, sizeof(f->state_text), "the NVIDIA driver is not loaded");
}

static void hide_proc(struct check_facts *f)
{
    set(f->kernel_version, sizeof(f->kernel_version), "");
    set(f->module_state, sizeof(f->module_state), "");
}

static void keep_coming(struct check_facts *f)
{
    set(f->module_state, sizeof(f->module_state), "coming");
}

static void lose_library(struct check_facts *f)
{
    set(f->library_path, sizeof(f->library_path), "");
    set(f->state_text, sizeof(f->state_text), "no NVML library found");
    f->state = SNAPSHOT_DRIVER_NO_LIBRARY;
}

static void lose_asked_library(struct check_facts *f)
{
    lose_library(f);
    f->asked_library = "/opt/libnvidia-ml.so.1";
}

static void hang(struct check_facts *f)
{
    set(f->library_path, sizeof(f->library_path), "");
    set(f->no_answer, sizeof(f->no_answer), "the driver does not answer: nvmlInit_v2 for 10s");
    f->has_answer = false;
}

static void mismatch(struct check_facts *f)
{
    f->state = SNAPSHOT_DRIVER_MISMATCH;
    set(f->driver_version, sizeof(f->driver_version), "");
    set(f->nvml_version, sizeof(f->nvml_version), "");
    set(f->state_text, sizeof(f->state_text), "driver and library differ");
}

static void differ(struct check_facts *f)
{
    set(f->nvml_version, sizeof(f->nvml_version), "12.535.161.08");
}

static void lose_gpu(struct check_facts *f)
{
    f->gpus.items[0].is_lost = true;
    set(f->gpus.items[0].lost_reason, sizeof(f->gpus.items[0].lost_reason), "the GPU is lost");
}

static void never_open(struct check_facts *f)
{
    f->has_unopened = true;
}

static void hide_gpus(struct check_facts *f)
{
    f->gpus.len = 0;
    f->state = SNAPSHOT_DRIVER_NO_DEVICES;
    set(f->state_text, sizeof(f->state_text), "the driver shows no GPU to this process");
}

static void remove_file(struct check_facts *f)
{
    f->gpus.items[0].device_file = CHECK_FILE_ABSENT;
}

static void deny_file(struct check_facts *f)
{
    f->control_file = CHECK_FILE_DENIED;
}

static void be_wsl(struct check_facts *f)
{
    f->control_file = CHECK_FILE_ABSENT;
    f->is_wsl = true;
}

static void divide(struct check_facts *f)
{
    f->gpus.items[0].is_divided = true;
    f->gpus.items[0].n_instances = 2;
    f->mig_monitor_minor = 2;
}

static void divide_with_monitor(struct check_facts *f)
{
    divide(f);
    f->mig_monitor_file = CHECK_FILE_USABLE;
}

static void divide_into_nothing(struct check_facts *f)
{
    divide_with_monitor(f);
    f->gpus.items[0].n_instances = 0;
}

static void restrict_profiling(struct check_facts *f)
{
    f->is_profiling_admin_only = 1;
    f->has_sys_admin = false;
}

static void restrict_profiling_not_for_us(struct check_facts *f)
{
    f->is_profiling_admin_only = 1;
}

static void remove_socket(struct check_facts *f)
{
    f->kubelet_file = CHECK_FILE_ABSENT;
}

static void break_socket(struct check_facts *f)
{
    (void)err_set(&f->kubelet_error, ERR_UNAVAILABLE, "Connection refused");
}

static void limit_rate(struct check_facts *f)
{
    (void)err_set(&f->kubelet_error, ERR_RESOURCE_EXHAUSTED, "rejected by rate limit");
}

static void ask_no_kubelet(struct check_facts *f)
{
    f->kubelet_socket = "";
    f->kubelet_file = CHECK_FILE_ABSENT;
}

static void hide_processes(struct check_facts *f)
{
    f->sees_host_pids = false;
}

static void hide_procfs(struct check_facts *f)
{
    f->has_procfs = false;
}

static void want_no_procfs(struct check_facts *f)
{
    f->procfs = "";
    f->has_procfs = false;
}

static void wait_for_mig(struct check_facts *f)
{
    f->gpus.items[0].is_mig_pending = true;
}

static void wait_for_mig_to_end(struct check_facts *f)
{
    divide_with_monitor(f);
    f->gpus.items[0].is_mig_pending = true;
}

static void wait_for_mig_without_monitor(struct check_facts *f)
{
    divide(f);
    f->gpus.items[0].is_mig_pending = true;
}

static void deny_socket(struct check_facts *f)
{
    f->kubelet_file = CHECK_FILE_DENIED;
}

static void take_port(struct check_facts *f)
{
    f->ports[1].is_taken = true;
}

static void test_each_thing_that_is_wrong_is_said_on_its_line_with_what_to_do(void **state)
{
    (void)state;
    static const struct {
        void (*spoil)(struct check_facts *);
        const char *name;
        enum check_result result;
        const char *text, *hint; /* parts of them */
    } rows[] = {
        {spoil_driver, "driver", CHECK_FAIL, "no NVIDIA kernel driver", "install the driver"},
        {spoil_driver, "init", CHECK_FAIL, "the NVIDIA driver is not loaded", "nvidia-smi"},
        {hide_proc, "driver", CHECK_OK, "driver 550.54.15 answers", ""},
        {keep_coming, "driver", CHECK_FAIL, "nvidia is coming", "dmesg"},
        {lose_library, "library", CHECK_FAIL, "the loader finds no libnvidia-ml.so.1", "runtimeClassName: nvidia"},
        {lose_asked_library, "library", CHECK_FAIL, "there is no /opt/libnvidia-ml.so.1", "--nvml-library"},
        {lose_library, "init", CHECK_FAIL, "there is no library", "library"},
        {hang, "library", CHECK_WARN, "nvmlInit_v2 for 10s", "init"},
        {hang, "init", CHECK_FAIL, "nvmlInit_v2 for 10s", "Xid"},
        {mismatch, "init", CHECK_FAIL, "differ", "start the container anew"},
        {mismatch, "versions", CHECK_FAIL, "driver 550.54.15, library of another", "start the container anew"},
        {differ, "versions", CHECK_FAIL, "driver 550.54.15, library 535.161.08", "start the container anew"},
        {lose_gpu, "devices", CHECK_FAIL, "1 of 1 GPUs lost: the GPU is lost", "Xid"},
        {never_open, "devices", CHECK_FAIL, "cannot be opened", "Xid"},
        {hide_gpus, "devices", CHECK_FAIL, "no GPU is visible: the driver shows", "NVIDIA_VISIBLE_DEVICES=all"},
        {hide_gpus, "init", CHECK_OK, "NVML 12.550.54.15 initialised", ""},
        {remove_file, "device-files", CHECK_WARN, "not there: /dev/nvidia0", "runtimeClassName: nvidia"},
        {deny_file, "device-files", CHECK_FAIL, "not readable and writable: /dev/nvidiactl", "privileged"},
        {be_wsl, "device-files", CHECK_OK, "WSL2", ""},
        {divide, "mig", CHECK_FAIL, "/dev/nvidia-caps/nvidia-cap2", "NVIDIA_MIG_MONITOR_DEVICES=all"},
        {divide_with_monitor, "mig", CHECK_OK, "2 MIG devices on 1 GPU", ""},
        {divide_into_nothing, "mig", CHECK_WARN, "no instance", "mig.config.state"},
        {restrict_profiling, "profiling", CHECK_WARN, "RmProfilingAdminOnly is 1", "CAP_SYS_ADMIN"},
        {restrict_profiling_not_for_us, "profiling", CHECK_OK, "CAP_SYS_ADMIN", ""},
        {remove_socket, "pod-resources", CHECK_WARN, "no /var/lib/kubelet/pod-resources/kubelet.sock", "hostPath"},
        {break_socket, "pod-resources", CHECK_WARN, "Connection refused", "folder and not the socket"},
        {limit_rate, "pod-resources", CHECK_OK, "the kubelet answers", ""},
        {ask_no_kubelet, "pod-resources", CHECK_OK, "not to be asked", ""},
        {deny_socket, "pod-resources", CHECK_WARN, "may not be opened", "run as root"},
        {wait_for_mig, "mig", CHECK_WARN, "GPU 0 has MIG off until its next reset, and then on", "--gpu-reset"},
        {wait_for_mig_to_end, "mig", CHECK_WARN, "GPU 0 has MIG on until its next reset, and then off", "SIGUSR2"},
        {wait_for_mig_without_monitor, "mig", CHECK_FAIL, "/dev/nvidia-caps/nvidia-cap2", "NVIDIA_MIG_MONITOR_DEVICES"},
        {hide_procfs, "processes", CHECK_WARN, "no process can be read in /proc", "hostPID: true"},
        {want_no_procfs, "processes", CHECK_OK, "an agent with --procfs", ""},
        {hide_processes, "processes", CHECK_WARN, "only this container's", "hostPID: true"},
        {take_port, "ports", CHECK_WARN, "listens on 9090 (--metrics-port)", "other ports"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct check_facts f = good();
        struct check_report report;
        rows[i].spoil(&f);
        check_judge(&f, &report);
        const struct check_line *line = line_of(&report, rows[i].name);
        if (line->result != rows[i].result || !strstr(line->text, rows[i].text) || !strstr(line->hint, rows[i].hint) ||
            (*rows[i].hint == '\0') != (*line->hint == '\0'))
            fail_msg("row %zu, %s: %s \"%s\" hint \"%s\"", i, line->name, check_result_name(line->result), line->text,
                     line->hint);
        check_report_fini(&report);
        check_facts_fini(&f);
    }
}

static void test_nothing_at_all_is_judged_without_a_crash(void **state)
{
    (void)state;
    struct check_facts f = {.mig_monitor_minor = -1, .is_profiling_admin_only = -1, .kubelet_socket = "/none"};
    struct check_report report;
    check_judge(&f, &report);
    assert_int_equal(line_of(&report, "ports")->result, CHECK_OK);
    assert_int_equal(line_of(&report, "devices")->result, CHECK_FAIL);
    assert_true(report.n_failures >= 3);
    check_report_fini(&report);
}

static void test_text_and_json_say_the_same(void **state)
{
    (void)state;
    struct check_facts f = good();
    struct check_report report;
    struct buf text BUF_AUTO, json BUF_AUTO;
    buf_init(&text, 1 << 16);
    buf_init(&json, 1 << 16);
    hide_processes(&f);
    lose_gpu(&f);
    check_judge(&f, &report);
    check_render_text(&report, false, &text);
    check_render_json(&report, "2026-11-30T14:02:19.123Z", &json);
    assert_non_null(strstr(buf_cstr(&text), "ok    driver         NVIDIA kernel driver 550.54.15 is loaded\n"
                                            "ok    library        /usr/lib/libnvidia-ml.so.550.54.15\n"));
    assert_non_null(strstr(buf_cstr(&text), "warn  processes      only this container's"));
    assert_non_null(strstr(buf_cstr(&text), "\n                     hint: set hostPID: true; newer drivers"));
    assert_non_null(strstr(buf_cstr(&text), "\n1 problem, 1 warning\n"));
    assert_null(strstr(buf_cstr(&text), "\033"));
    assert_non_null(strstr(buf_cstr(&json), "{\n  \"schema_version\": 1,\n"
                                            "  \"checked_at\": \"2026-11-30T14:02:19.123Z\",\n"
                                            "  \"problems\": 1,\n  \"warnings\": 1,\n  \"checks\": [\n"));
    assert_non_null(strstr(buf_cstr(&json), "\"hint\": null"));
    buf_reset(&text);
    check_render_text(&report, true, &text);
    assert_non_null(strstr(buf_cstr(&text), "\033[31mfail\033[0m  devices"));
    check_report_fini(&report);
    check_facts_fini(&f);
}

/* ---- files of the kernel ---- */

static void test_the_version_is_found_in_both_texts_of_the_kernel_module(void **state)
{
    (void)state;
    static const struct {
        const char *text, *version;
    } rows[] = {
        {"NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.261.03  Tue Jun 10 2025\nGCC version:  12.2",
         "535.261.03"},
        {"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  590.48.01  Release Build", "590.48.01"},
        {"GCC version:\nNVRM", ""},
        {"", ""},
        {"NVRM version: 1.2x 3", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char version[64];
        check_parse_kernel_version(str_of(rows[i].text), version);
        assert_string_equal(version, rows[i].version);
    }
}

static void test_only_a_listening_socket_takes_a_port(void **state)
{
    (void)state;
    static const char table[] =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        "   0: 00000000:1770 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1\n"
        "   1: 0100007F:2382 0100007F:1F91 01 00000000:00000000 00:00000000 00000000     0        0 2 1\n";
    assert_true(check_is_listening(str_of(table), 6000));
    assert_false(check_is_listening(str_of(table), 9090));
    assert_false(check_is_listening(str_of(table), 8081));
    assert_false(check_is_listening(str_of(""), 6000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_node_in_order_has_no_problem_and_no_hint),
        cmocka_unit_test(test_each_thing_that_is_wrong_is_said_on_its_line_with_what_to_do),
        cmocka_unit_test(test_nothing_at_all_is_judged_without_a_crash),
        cmocka_unit_test(test_text_and_json_say_the_same),
        cmocka_unit_test(test_the_version_is_found_in_both_texts_of_the_kernel_module),
        cmocka_unit_test(test_only_a_listening_socket_takes_a_port),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
