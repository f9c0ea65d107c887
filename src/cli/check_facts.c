/* Collects what check judges: files of the kernel's side, NVML's side through the sampler, the kubelet's socket, ports.
 * It judges nothing and fails at nothing. */
#include "cli/check.h"

#include "cli/kubelet.h"
#include "cli/sampling.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 512, FILE_SIZE_MAX = 1 << 20, CAP_SYS_ADMIN_BIT = 21 };

/* ---- files below the root ---- */

/* The content of root/path, trimmed; empty when it cannot be read. A view into *content. */
static struct str read_text(const char *root, const char *path, struct buf *content)
{
    char full[PATH_SIZE];
    (void)snprintf(full, sizeof(full), "%s%s", root, path);
    buf_reset(content);
    if (file_read(full, content, NULL) < 0)
        return (struct str){"", 0};
    return str_trim(str_of(buf_cstr(content)));
}

/* The text behind "key:" on a line of its own, or an empty one. */
static struct str value_of(struct str text, const char *key)
{
    while (text.ptr) {
        struct str rest = str_cut(&text, '\n'), name = str_cut(&rest, ':');
        if (rest.ptr && str_equals(str_trim(name), key))
            return str_trim(rest);
    }
    return (struct str){"", 0};
}

static enum check_file look_at(const char *root, const char *path)
{
    char full[PATH_SIZE];
    (void)snprintf(full, sizeof(full), "%s%s", root, path);
    if (access(full, R_OK | W_OK) == 0)
        return CHECK_FILE_USABLE;
    return errno == ENOENT || errno == ENOTDIR ? CHECK_FILE_ABSENT : CHECK_FILE_DENIED;
}

/* The first word of digits and at least one dot. */
void check_parse_kernel_version(struct str text, char ret_version[64])
{
    ret_version[0] = '\0';
    struct str line = str_cut(&text, '\n');
    while (line.ptr) {
        struct str word = str_cut(&line, ' ');
        size_t n_dots = 0, n_digits = 0;
        for (size_t i = 0; i < word.len; i++) {
            n_dots += word.ptr[i] == '.';
            n_digits += word.ptr[i] >= '0' && word.ptr[i] <= '9';
        }
        if (n_dots && n_digits && n_dots + n_digits == word.len && str_copy(ret_version, 64, word))
            return;
    }
    ret_version[0] = '\0';
}

static void collect_kernel(const char *root, struct check_facts *f)
{
    BUF_AUTO struct buf text;
    buf_init(&text, FILE_SIZE_MAX);
    check_parse_kernel_version(read_text(root, "/proc/driver/nvidia/version", &text), f->kernel_version);
    (void)str_copy(f->module_state, sizeof(f->module_state), read_text(root, "/sys/module/nvidia/initstate", &text));
    f->control_file = look_at(root, "/dev/nvidiactl");
    f->is_wsl = look_at(root, "/dev/dxg") != CHECK_FILE_ABSENT;
    int64_t number;
    struct str only = value_of(read_text(root, "/proc/driver/nvidia/params", &text), "RmProfilingAdminOnly");
    f->is_profiling_admin_only = num_parse_i64(only, &number) == 0 ? number != 0 : -1;
    struct str minor =
        value_of(read_text(root, "/proc/driver/nvidia/capabilities/mig/monitor", &text), "DeviceFileMinor");
    f->mig_monitor_minor = -1;
    if (num_parse_i64(minor, &number) < 0 || number < 0 || number > 1 << 20)
        return;
    char path[64];
    f->mig_monitor_minor = (int)number;
    (void)snprintf(path, sizeof(path), "/dev/nvidia-caps/nvidia-cap%d", f->mig_monitor_minor);
    f->mig_monitor_file = look_at(root, path);
}

/* ---- this process ---- */

/* The first process namespace has a fixed inode number (PROC_PID_INIT_INO of the kernel's proc_ns.h); NVIDIA's kernel
 * module lists the processes of others to nobody else. Where the number cannot be read, kernel threads are visible in
 * that namespace alone; where it can, they would only say whose /proc is mounted. */
static bool sees_host_pids(const char *root)
{
    char path[PATH_SIZE], target[64];
    (void)snprintf(path, sizeof(path), "%s/proc/self/ns/pid", root);
    ssize_t len = readlink(path, target, sizeof(target));
    if (len > 0)
        return str_equals((struct str){target, (size_t)len}, "pid:[4026531836]");
    BUF_AUTO struct buf text;
    buf_init(&text, FILE_SIZE_MAX);
    return str_equals(read_text(root, "/proc/2/comm", &text), "kthreadd");
}

static bool has_capability(struct str hex, unsigned bit)
{
    uint64_t mask = 0;
    for (size_t i = 0; i < hex.len; i++) {
        char c = hex.ptr[i];
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                                                : 16U;
        if (digit > 15)
            return false;
        mask = mask << 4 | digit;
    }
    return mask >> bit & 1;
}

static void collect_process(const struct check_config *config, struct check_facts *f)
{
    const char *root = config->root;
    char stat[PATH_SIZE];
    BUF_AUTO struct buf text;
    buf_init(&text, FILE_SIZE_MAX);
    f->uid = geteuid();
    f->has_sys_admin =
        has_capability(value_of(read_text(root, "/proc/self/status", &text), "CapEff"), CAP_SYS_ADMIN_BIT);
    f->sees_host_pids = sees_host_pids(root);
    f->procfs = config->procfs;
    (void)snprintf(stat, sizeof(stat), "%s/1/stat", config->procfs);
    f->has_procfs = *config->procfs && read_text(root, stat, &text).len > 0;
}

/* ---- ports ---- */

/* A row of /proc/net/tcp: "0: 0100007F:1770 00000000:0000 0A ...", the port in hex, 0A = LISTEN. */
static bool is_row_listening(struct str row, int port)
{
    char want[8];
    (void)snprintf(want, sizeof(want), ":%04X", (unsigned)port & 0xffffU);
    struct str word[4];
    size_t n = 0;
    row = str_trim(row);
    while (row.ptr && n < ARRAY_LEN(word)) {
        struct str next = str_cut(&row, ' ');
        if (next.len)
            word[n++] = next;
    }
    return n == ARRAY_LEN(word) && str_has_suffix(word[1], want) && str_equals(word[3], "0A");
}

bool check_is_listening(struct str table, int port)
{
    while (table.ptr)
        if (is_row_listening(str_cut(&table, '\n'), port))
            return true;
    return false;
}

static void collect_ports(const struct check_config *config, struct check_facts *f)
{
    static const char *const flags[CHECK_PORTS] = {"--port", "--metrics-port", "--probe-port"};
    static const char *const tables[] = {"/proc/net/tcp", "/proc/net/tcp6"};
    BUF_AUTO struct buf text;
    buf_init(&text, 16 << 20);
    for (size_t i = 0; i < CHECK_PORTS; i++)
        f->ports[i] = (struct check_port){.flag = flags[i], .port = config->ports[i]};
    for (size_t t = 0; t < ARRAY_LEN(tables); t++) {
        struct str table = read_text(config->root, tables[t], &text);
        for (size_t i = 0; i < CHECK_PORTS; i++)
            f->ports[i].is_taken = f->ports[i].is_taken || check_is_listening(table, f->ports[i].port);
    }
}

/* ---- the kubelet ---- */

static void collect_kubelet(const struct check_config *config, struct check_facts *f)
{
    char path[PATH_SIZE];
    BUF_AUTO struct buf answer;
    buf_init(&answer, 16 << 20);
    (void)snprintf(path, sizeof(path), "%s%s", config->root, config->kubelet_socket);
    f->kubelet_socket = config->kubelet_socket;
    if (!*config->kubelet_socket)
        return;
    f->kubelet_file = look_at(config->root, config->kubelet_socket);
    if (f->kubelet_file == CHECK_FILE_USABLE && kubelet_list(path, config->timeout_ns, &answer, &f->kubelet_error) == 0)
        f->kubelet_error = (struct err){.class = ERR_NONE};
}

/* ---- NVML ---- */

static void add_gpu(const char *root, const struct snapshot *s, size_t at, struct check_facts *f)
{
    const struct snapshot_device *d = &s->devices[at];
    struct check_gpu gpu = {.index = d->index,
                            .minor = d->minor,
                            .is_lost = d->is_lost,
                            .is_divided = d->kind == SNAPSHOT_MIG_PARENT,
                            .is_mig_pending = d->is_mig_pending};
    (void)str_copy(gpu.uuid, sizeof(gpu.uuid), str_of(d->uuid));
    (void)str_copy(gpu.lost_reason, sizeof(gpu.lost_reason), str_of(d->lost_reason));
    for (size_t i = at + 1; i < s->n_devices && s->devices[i].kind == SNAPSHOT_MIG; i++)
        gpu.n_instances++;
    char path[64];
    (void)snprintf(path, sizeof(path), "/dev/nvidia%d", d->minor);
    gpu.device_file = look_at(root, path);
    vec_push(&f->gpus, gpu);
}

/* Copied, for the snapshot goes with the sampler. */
static void keep(const char *root, const struct snapshot *s, struct check_facts *f)
{
    f->state = s->driver;
    (void)str_copy(f->state_text, sizeof(f->state_text), str_of(s->driver_text));
    (void)str_copy(f->driver_version, sizeof(f->driver_version), str_of(s->driver_version));
    (void)str_copy(f->nvml_version, sizeof(f->nvml_version), str_of(s->nvml_version));
    (void)str_copy(f->library_path, sizeof(f->library_path), str_of(s->library_path));
    bool has_lost = false;
    for (size_t i = 0; i < s->n_devices; i++) {
        has_lost = has_lost || s->devices[i].is_lost;
        if (s->devices[i].kind != SNAPSHOT_MIG)
            add_gpu(root, s, i, f);
    }
    f->has_unopened = !has_lost && sampling_has_unopened(s);
}

static void collect_nvml(const struct check_config *config, struct check_facts *f)
{
    struct sampling sampling;
    struct err e;
    struct gpu_config gpu = {.library_path = config->library_path, .stop_timeout_ns = 100 * NS_PER_MS};
    f->asked_library = config->library_path;
    bool has_started = sampling_start(&sampling, &gpu, &e) == 0;
    f->has_answer = has_started && sampling_wait(&sampling, sampling_has_tried, time_mono_ns() + config->timeout_ns);
    if (f->has_answer)
        keep(config->root, sampling.newest, f);
    else if (has_started)
        sampling_explain(&sampling, config->timeout_ns, &e);
    if (!f->has_answer)
        (void)str_copy(f->no_answer, sizeof(f->no_answer), str_of(e.text));
    sampling_stop(&sampling);
}

void check_collect(const struct check_config *config, struct check_facts *ret_facts)
{
    *ret_facts = (struct check_facts){0};
    collect_kernel(config->root, ret_facts);
    collect_process(config, ret_facts);
    collect_ports(config, ret_facts);
    collect_nvml(config, ret_facts);
    collect_kubelet(config, ret_facts);
}

void check_facts_fini(struct check_facts *facts)
{
    vec_fini(&facts->gpus);
}
