/* What the facts of a node mean for the agent: one line a check, with what to do. Pure: it looks at nothing itself. */
#include "cli/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void say(struct check_line *line, enum check_result result, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void advise(struct check_line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct check_line *line, enum check_result result, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    line->result = result;
    (void)vsnprintf(line->text, sizeof(line->text), format, arguments);
    va_end(arguments);
}

static void advise(struct check_line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(line->hint, sizeof(line->hint), format, arguments);
    va_end(arguments);
}

/* Did nvmlInit succeed, whatever it then showed? */
static bool is_initialised(const struct check_facts *f)
{
    return f->has_answer && (f->state == SNAPSHOT_DRIVER_OK || f->state == SNAPSHOT_DRIVER_NO_DEVICES);
}

static void judge_driver(const struct check_facts *f, struct check_line *line)
{
    bool is_live = !*f->module_state || strcmp(f->module_state, "live") == 0;
    if (*f->kernel_version && is_live) {
        say(line, CHECK_OK, "NVIDIA kernel driver %s is loaded", f->kernel_version);
    } else if (*f->module_state && !is_live) {
        say(line, CHECK_FAIL, "the kernel module nvidia is %s", f->module_state);
        advise(line, "wait until it is live; if it stays so, see dmesg for lines with NVRM");
    } else if (is_initialised(f)) {
        say(line, CHECK_OK, "driver %s answers; its kernel module is not visible here%s", f->driver_version,
            f->is_wsl ? " (WSL2)" : "");
    } else {
        say(line, CHECK_FAIL, "no NVIDIA kernel driver: there is no /proc/driver/nvidia/version");
        advise(line, "install the driver on the node, or wait for the GPU Operator's driver pod to be ready");
    }
}

static void judge_library(const struct check_facts *f, struct check_line *line)
{
    if (*f->library_path) {
        say(line, CHECK_OK, "%s", f->library_path);
    } else if (!f->has_answer) {
        say(line, CHECK_WARN, "not known: %s", f->no_answer);
        advise(line, "see the line init");
    } else {
        bool is_nowhere = f->state == SNAPSHOT_DRIVER_NO_LIBRARY;
        if (is_nowhere && f->asked_library)
            say(line, CHECK_FAIL, "there is no %s", f->asked_library);
        else
            say(line, CHECK_FAIL, "%s",
                is_nowhere ? "the loader finds no libnvidia-ml.so.1, nor is one where the GPU Operator, GKE, WSL2 and "
                             "Jetson have it"
                           : f->state_text);
        advise(line, "in Kubernetes: runtimeClassName: nvidia, NVIDIA_VISIBLE_DEVICES=all, "
                     "NVIDIA_DRIVER_CAPABILITIES=utility; elsewhere install the driver, or give the path with "
                     "--nvml-library");
    }
}

static void judge_init(const struct check_facts *f, struct check_line *line)
{
    if (!f->has_answer) {
        say(line, CHECK_FAIL, "%s", f->no_answer);
        advise(line, "see dmesg for Xid 119, 120 or 154; a driver that hangs needs a GPU reset or a reboot");
    } else if (is_initialised(f)) {
        say(line, CHECK_OK, "NVML %s initialised", *f->nvml_version ? f->nvml_version : "of unknown version");
    } else if (!*f->library_path) {
        say(line, CHECK_FAIL, "not tried: there is no library");
        advise(line, "see the line library");
    } else {
        say(line, CHECK_FAIL, "%s", *f->state_text ? f->state_text : snapshot_driver_state_name(f->state));
        advise(line, f->state == SNAPSHOT_DRIVER_MISMATCH
                         ? "start the container anew: it keeps the library from before the driver was upgraded"
                         : "the driver's own tool, nvidia-smi, ought to say the same on the node");
    }
}

/* "12.550.54.15" is the CUDA major and the driver that the library belongs to. nvml.md 1 */
static const char *version_of_library(const char *nvml_version)
{
    const char *dot = strchr(nvml_version, '.');
    return dot && strchr(dot + 1, '.') ? dot + 1 : nvml_version;
}

static void judge_versions(const struct check_facts *f, struct check_line *line)
{
    const char *library = version_of_library(f->nvml_version);
    const char *driver = *f->driver_version ? f->driver_version : f->kernel_version;
    bool is_older = f->has_answer && f->state == SNAPSHOT_DRIVER_MISMATCH;
    bool differs = *library && *driver && strcmp(library, driver) != 0;
    if (is_older || differs) {
        say(line, CHECK_FAIL, "driver %s, library %s", *driver ? driver : "of another version",
            *library ? library : "of another version");
        advise(line, "start the container anew: it keeps the library from before the driver was upgraded");
    } else if (*library && *driver) {
        say(line, CHECK_OK, "driver and library are both %s", driver);
    } else {
        say(line, CHECK_WARN, "driver %s, library %s", *driver ? driver : "unknown", *library ? library : "unknown");
        advise(line, "they can be compared once NVML initialises");
    }
}

static void judge_devices(const struct check_facts *f, struct check_line *line)
{
    size_t n_lost = 0;
    const char *reason = "";
    for (size_t i = 0; i < f->gpus.len; i++)
        if (f->gpus.items[i].is_lost) {
            n_lost++;
            reason = f->gpus.items[i].lost_reason;
        }
    if (n_lost) {
        say(line, CHECK_FAIL, "%zu of %zu GPUs lost: %s", n_lost, f->gpus.len, reason);
        advise(line, "see dmesg for Xid messages; the GPU needs a reset or the node a reboot");
    } else if (f->has_unopened) {
        say(line, CHECK_FAIL, "%zu GPUs visible, and at least one that the driver lists cannot be opened", f->gpus.len);
        advise(line, "see dmesg for Xid messages; the GPU needs a reset or the node a reboot");
    } else if (f->gpus.len == 0) {
        say(line, CHECK_FAIL, "no GPU is visible%s%s", is_initialised(f) && *f->state_text ? ": " : "",
            is_initialised(f) ? f->state_text : "");
        advise(line, "NVIDIA_VISIBLE_DEVICES=all, and device access: privileged, or the CDI device "
                     "management.nvidia.com/gpu=all");
    } else {
        say(line, CHECK_OK, "%zu GPU%s visible", f->gpus.len, f->gpus.len == 1 ? "" : "s");
    }
}

static void judge_device_files(const struct check_facts *f, struct check_line *line)
{
    char missing[256] = "";
    bool is_denied = f->control_file == CHECK_FILE_DENIED;
    size_t len = 0;
    if (f->control_file != CHECK_FILE_USABLE)
        len = (size_t)snprintf(missing, sizeof(missing), "/dev/nvidiactl");
    for (size_t i = 0; i < f->gpus.len; i++) {
        const struct check_gpu *gpu = &f->gpus.items[i];
        if (gpu->minor < 0 || gpu->device_file == CHECK_FILE_USABLE)
            continue;
        is_denied = is_denied || gpu->device_file == CHECK_FILE_DENIED;
        if (len < sizeof(missing) - 1)
            len +=
                (size_t)snprintf(missing + len, sizeof(missing) - len, "%s/dev/nvidia%d", len ? ", " : "", gpu->minor);
    }
    if (!*missing || f->is_wsl) {
        say(line, CHECK_OK, "%s",
            *missing      ? "none, as is right on WSL2"
            : f->gpus.len ? "/dev/nvidiactl and one for each GPU"
                          : "/dev/nvidiactl");
        return;
    }
    say(line, is_initialised(f) && !is_denied ? CHECK_WARN : CHECK_FAIL, "%s: %s",
        is_denied ? "not readable and writable" : "not there", missing);
    advise(line, is_denied ? "run as root (privileged), or give the container the devices through CDI"
                           : "let the NVIDIA container toolkit add them (runtimeClassName: nvidia), or on the node "
                             "run nvidia-modprobe");
}

static void judge_mig(const struct check_facts *f, struct check_line *line)
{
    size_t n_divided = 0, n_instances = 0, n_empty = 0, n_pending = 0, pending = 0;
    for (size_t i = 0; i < f->gpus.len; i++) {
        pending = f->gpus.items[i].is_mig_pending && !n_pending ? i : pending;
        n_pending += f->gpus.items[i].is_mig_pending;
        n_divided += f->gpus.items[i].is_divided;
        n_instances += f->gpus.items[i].n_instances;
        n_empty += f->gpus.items[i].is_divided && !f->gpus.items[i].n_instances;
    }
    if (n_divided && f->mig_monitor_minor >= 0 && f->mig_monitor_file != CHECK_FILE_USABLE) {
        say(line, CHECK_FAIL, "/dev/nvidia-caps/nvidia-cap%d (monitor) cannot be opened", f->mig_monitor_minor);
        advise(line, "set NVIDIA_MIG_MONITOR_DEVICES=all and run privileged: MIG devices cannot be read without it");
    } else if (n_pending) {
        say(line, CHECK_WARN, "GPU %d has MIG %s until its next reset, and then %s%s", f->gpus.items[pending].index,
            f->gpus.items[pending].is_divided ? "on" : "off", f->gpus.items[pending].is_divided ? "off" : "on",
            n_pending > 1 ? "; others likewise" : "");
        advise(line, "end what uses the GPU, the agent too (SIGUSR2 lets go of NVML), then nvidia-smi --gpu-reset or a "
                     "reboot");
    } else if (n_divided == 0) {
        say(line, CHECK_OK, "no GPU is divided");
    } else if (n_empty) {
        say(line, CHECK_WARN, "%zu divided GPUs have no instance", n_empty);
        advise(line, "make instances, or switch MIG off on them; with the GPU Operator see the node label "
                     "nvidia.com/mig.config.state");
    } else {
        say(line, CHECK_OK, "%zu MIG device%s on %zu GPU%s", n_instances, n_instances == 1 ? "" : "s", n_divided,
            n_divided == 1 ? "" : "s");
    }
}

static void judge_profiling(const struct check_facts *f, struct check_line *line)
{
    if (f->is_profiling_admin_only < 0) {
        say(line, CHECK_OK, "the driver does not say that it restricts activity metrics (GPM)");
    } else if (f->is_profiling_admin_only && !f->has_sys_admin) {
        say(line, CHECK_WARN, "activity metrics (GPM) are for administrators only: RmProfilingAdminOnly is 1");
        advise(line, "give the container CAP_SYS_ADMIN, or load the driver with NVreg_RestrictProfilingToAdminUsers=0; "
                     "on MIG devices utilisation comes from GPM alone");
    } else {
        say(line, CHECK_OK, "activity metrics (GPM) may be read%s",
            f->is_profiling_admin_only ? " (CAP_SYS_ADMIN)" : "");
    }
}

/* The answer of a kubelet to the call, or what stood in its way. */
static void judge_kubelet(const struct check_facts *f, struct check_line *line)
{
    static const char *const mount = "mount the folder (not the socket) read-only: hostPath "
                                     "/var/lib/kubelet/pod-resources, and --pod-resources where it is elsewhere; "
                                     "outside Kubernetes nothing is missing";
    bool is_answer = f->kubelet_error.class == ERR_NONE || f->kubelet_error.class == ERR_RESOURCE_EXHAUSTED;
    if (!*f->kubelet_socket) {
        say(line, CHECK_OK, "not to be asked");
    } else if (f->kubelet_file == CHECK_FILE_ABSENT) {
        say(line, CHECK_WARN, "no %s: which pod holds which GPU stays unknown", f->kubelet_socket);
        advise(line, "%s", mount);
    } else if (f->kubelet_file == CHECK_FILE_DENIED) {
        say(line, CHECK_WARN, "%s may not be opened", f->kubelet_socket);
        advise(line, "run as root; under SELinux with container-selinux of 2023-10 or later, or as spc_t");
    } else if (is_answer) {
        say(line, CHECK_OK, "the kubelet answers on %s", f->kubelet_socket);
    } else {
        say(line, CHECK_WARN, "%s does not answer: %s: %s", f->kubelet_socket, err_class_name(f->kubelet_error.class),
            f->kubelet_error.text);
        advise(line, "if the kubelet was started anew, mount the folder and not the socket");
    }
}

static void judge_processes(const struct check_facts *f, struct check_line *line)
{
    if (!f->sees_host_pids) {
        say(line, CHECK_WARN, "only this container's processes are visible: which pod uses a shared GPU stays unknown");
        advise(line, "set hostPID: true; newer drivers show the processes of others to nobody else");
    } else if (*f->procfs && !f->has_procfs) {
        say(line, CHECK_WARN, "no process can be read in %s: which pod uses a shared GPU stays unknown", f->procfs);
        advise(line, "mount the host's /proc there read-only, or with hostPID: true give --procfs /proc");
    } else {
        say(line, CHECK_OK, "the machine's processes are visible%s",
            *f->procfs ? "" : "; an agent with --procfs tells them apart by pod");
    }
}

static void judge_permissions(const struct check_facts *f, struct check_line *line)
{
    if (f->uid == 0)
        say(line, CHECK_OK, "root%s", f->has_sys_admin ? " with CAP_SYS_ADMIN" : "");
    else
        say(line, CHECK_OK, "user %u; what it may not open stands above", f->uid);
}

static void judge_ports(const struct check_facts *f, struct check_line *line)
{
    char taken[160] = "", wanted[96] = "";
    size_t n_taken = 0, n_wanted = 0;
    for (size_t i = 0; i < CHECK_PORTS; i++) {
        const struct check_port *p = &f->ports[i];
        if (p->port <= 0)
            continue;
        n_wanted +=
            (size_t)snprintf(wanted + n_wanted, sizeof(wanted) - n_wanted, "%s%d", n_wanted ? ", " : "", p->port);
        if (p->is_taken)
            n_taken += (size_t)snprintf(taken + n_taken, sizeof(taken) - n_taken, "%s%d (%s)", n_taken ? ", " : "",
                                        p->port, p->flag);
    }
    if (n_taken) {
        say(line, CHECK_WARN, "somebody listens on %s", taken);
        advise(line, "if it is not an agent that runs already, give the agent other ports");
    } else {
        say(line, CHECK_OK, "%s %s free", n_wanted ? wanted : "none wanted:", n_wanted ? "are" : "all");
    }
}

/* Change procedure: names are public API. A new check appears in docs/check.md, in the man page and in the golden of
 * test/unit/cli/test_check.c. */
static const struct {
    const char *name;
    void (*judge)(const struct check_facts *, struct check_line *);
} checks[] = {
    {"driver", judge_driver},
    {"library", judge_library},
    {"init", judge_init},
    {"versions", judge_versions},
    {"devices", judge_devices},
    {"device-files", judge_device_files},
    {"mig", judge_mig},
    {"profiling", judge_profiling},
    {"pod-resources", judge_kubelet},
    {"processes", judge_processes},
    {"permissions", judge_permissions},
    {"ports", judge_ports},
};

void check_judge(const struct check_facts *facts, struct check_report *ret_report)
{
    *ret_report = (struct check_report){0};
    for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
        struct check_line line = {.name = checks[i].name};
        checks[i].judge(facts, &line);
        ret_report->n_warnings += line.result == CHECK_WARN;
        ret_report->n_failures += line.result == CHECK_FAIL;
        vec_push(&ret_report->lines, line);
    }
}

void check_report_fini(struct check_report *report)
{
    vec_fini(&report->lines);
}

const char *check_result_name(enum check_result result)
{
    static const char *const names[] = {"ok", "warn", "fail"};
    return names[result];
}

static void render_word(enum check_result result, bool has_colour, struct buf *out)
{
    static const char *const colours[] = {"\033[32m", "\033[33m", "\033[31m"};
    (void)buf_printf(out, "%s%-4s%s", has_colour ? colours[result] : "", check_result_name(result),
                     has_colour ? "\033[0m" : "");
}

void check_render_text(const struct check_report *report, bool has_colour, struct buf *out)
{
    for (size_t i = 0; i < report->lines.len; i++) {
        const struct check_line *line = &report->lines.items[i];
        render_word(line->result, has_colour, out);
        (void)buf_printf(out, "  %-13s  %s\n", line->name, line->text);
        if (*line->hint)
            (void)buf_printf(out, "%21shint: %s\n", "", line->hint);
    }
    (void)buf_printf(out, "%zu problem%s, %zu warning%s\n", report->n_failures, report->n_failures == 1 ? "" : "s",
                     report->n_warnings, report->n_warnings == 1 ? "" : "s");
}

void check_render_json(const struct check_report *report, const char *checked_at, struct buf *out)
{
    struct json j;
    json_init(&j, out, 2);
    json_object_begin(&j);
    json_kv_i64(&j, "schema_version", 1);
    json_kv_string(&j, "checked_at", checked_at);
    json_kv_i64(&j, "problems", (int64_t)report->n_failures);
    json_kv_i64(&j, "warnings", (int64_t)report->n_warnings);
    json_key(&j, "checks");
    json_array_begin(&j);
    for (size_t i = 0; i < report->lines.len; i++) {
        const struct check_line *line = &report->lines.items[i];
        json_object_begin(&j);
        json_kv_string(&j, "name", line->name);
        json_kv_string(&j, "result", check_result_name(line->result));
        json_kv_string(&j, "text", line->text);
        json_kv_string(&j, "hint", *line->hint ? line->hint : NULL);
        json_object_end(&j);
    }
    json_array_end(&j);
    json_object_end(&j);
    (void)buf_append_char(out, '\n');
}
