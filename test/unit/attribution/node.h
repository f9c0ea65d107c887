/* What the tests of processes and holders stand on: a node of two GPUs and a divided one, a /proc and trees of logs
 * made for the test, and rows as text. */
#ifndef TEST_ATTRIBUTION_NODE_H
#define TEST_ATTRIBUTION_NODE_H

#include "attribution/attribution_private.h"

#include "support.h"

#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define UID_A  "aaaaaaaa-0000-4000-8000-000000000001"
#define UID_B  "bbbbbbbb-0000-4000-8000-000000000002"
#define UID_C  "cccccccc-0000-4000-8000-000000000003"
#define STATIC "dddddddd000040008000000000000004"
#define ID_A   "a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0"
#define ID_B   "b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0"

#define HOST    "0::/system.slice/nvtop.service\n"
#define INITIAL "pid:[4026531836]"
#define NESTED  "pid:[4026532777]"

enum { GPU0, GPU1, MIG_PARENT, MIG, DEVICE_COUNT };
static const char *const uuids[] = {"GPU-0", "GPU-1", "GPU-2", "MIG-3"};

struct use {
    uint32_t pid;
    int memory, utilization; /* -1: the driver does not say */
};

static struct {
    struct metrics *metrics;
    struct net_loop *loop;
    char folder[64], procfs[96], pod_logs[96], log_links[96];
    struct attribution_config config;
    struct attribution_processes *processes;
    struct attribution_holders *holders;
    struct snapshot_store *store;
    const struct snapshot *snapshot;
    struct snapshot_owners *owners;
    int64_t now_ns;
    int n_done;
    bool has_news;
} rig;

/* ---- trees ---- */

static inline void write_text(const char *folder, const char *name, const char *text)
{
    char path[1100];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static inline void make_folder(const char *folder, const char *name)
{
    char path[1100];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    (void)mkdir(path, 0700);
}

static inline void put_process_in(const char *who, unsigned start, const char *cgroup)
{
    char folder[512], stat[256];
    make_folder(rig.procfs, who);
    (void)snprintf(folder, sizeof(folder), "%s/%s", rig.procfs, who);
    (void)snprintf(stat, sizeof(stat), "1 (a) b) c) S 1 1 0 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 %u 1 2\n", start);
    write_text(folder, "stat", stat);
    if (cgroup)
        write_text(folder, "cgroup", cgroup);
}

static inline void put_process(uint32_t pid, unsigned start, const char *cgroup)
{
    char who[16];
    (void)snprintf(who, sizeof(who), "%u", pid);
    put_process_in(who, start, cgroup);
}

static inline void put_in_pod(uint32_t pid, const char *uid, const char *id)
{
    char text[256];
    (void)snprintf(text, sizeof(text), "0::/kubepods/burstable/pod%s/%s\n", uid, id);
    put_process(pid, pid, text);
}

static inline int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static inline void remove_tree(const char *path)
{
    (void)nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static inline void end_process(uint32_t pid)
{
    char path[1100];
    (void)snprintf(path, sizeof(path), "%s/%u", rig.procfs, pid);
    remove_tree(path);
}

static inline void put_self(const char *pid_namespace, const char *cgroup)
{
    char path[1100];
    put_process_in("self", 1, cgroup);
    (void)snprintf(path, sizeof(path), "%s/self/ns", rig.procfs);
    (void)mkdir(path, 0700);
    (void)snprintf(path, sizeof(path), "%s/self/ns/pid", rig.procfs);
    (void)unlink(path);
    assert_int_equal(symlink(pid_namespace, path), 0);
}

static inline void name_pod(const char *ns, const char *pod, const char *uid)
{
    char name[512];
    (void)snprintf(name, sizeof(name), "%s_%s_%s", ns, pod, uid);
    make_folder(rig.pod_logs, name);
}

/* ---- the node ---- */

static inline struct snapshot_device *device(int which)
{
    return snapshot_store_find(rig.store, uuids[which]);
}

static inline void record(int which, double utilization, double used, double unused)
{
    snapshot_store_record(rig.store, device(which), SNAPSHOT_UTILIZATION, utilization, rig.now_ns);
    snapshot_store_record(rig.store, device(which), SNAPSHOT_MEMORY_USED, used, rig.now_ns);
    snapshot_store_record(rig.store, device(which), SNAPSHOT_MEMORY_FREE, unused, rig.now_ns);
    snapshot_store_record(rig.store, device(which), SNAPSHOT_MEMORY_TOTAL, used + unused, rig.now_ns);
}

static inline void list_n(int which, const struct use *uses, size_t n)
{
    struct snapshot_process *processes = mem_new_array(n + 1, sizeof(*processes));
    for (size_t i = 0; i < n; i++)
        processes[i] = (struct snapshot_process){.pid = uses[i].pid,
                                                 .has_memory = uses[i].memory >= 0,
                                                 .memory_bytes = uses[i].memory >= 0 ? (uint64_t)uses[i].memory : 0,
                                                 .has_utilization = uses[i].utilization >= 0,
                                                 .utilization = uses[i].utilization >= 0 ? uses[i].utilization : 0};
    snapshot_store_set_processes(rig.store, device(which), processes, n);
    device(which)->process_list.status = SNAPSHOT_OK;
    device(which)->process_list.taken_ns = rig.now_ns;
    if (device(which)->kind != SNAPSHOT_MIG) {
        device(which)->process_utilization.status = SNAPSHOT_OK;
        device(which)->process_utilization.taken_ns = rig.now_ns;
    } else {
        device(which)->process_utilization.status = SNAPSHOT_UNSUPPORTED;
    }
    free(processes);
}
#define list(which, ...) list_n(which, (struct use[]){__VA_ARGS__}, ARRAY_LEN(((struct use[]){__VA_ARGS__})))
#define list_none(which) list_n(which, NULL, 0)

static inline void update(void)
{
    rig.has_news = attribution_holders_update(rig.holders, rig.snapshot, rig.owners, rig.processes);
}

static inline void on_looked(void *context, const struct snapshot *looked)
{
    (void)context;
    assert_ptr_equal(looked, rig.snapshot);
    rig.n_done++;
}

/* Publish, look where that is due, and bring the rows up to date. Returns whether /proc was looked at. */
static inline bool look(void)
{
    snapshot_unref(rig.snapshot);
    rig.snapshot = snapshot_store_publish(rig.store, rig.now_ns);
    int before = rig.n_done;
    bool is_looking = rig.processes && attribution_processes_look(rig.processes, rig.snapshot);
    int64_t end_ns = time_mono_ns() + 30 * NS_PER_S;
    while (is_looking && rig.n_done == before && time_mono_ns() < end_ns)
        (void)net_loop_turn(rig.loop);
    assert_int_equal(rig.n_done, before + is_looking);
    update();
    return is_looking;
}

static inline void pass_time(int64_t ns)
{
    rig.now_ns += ns;
    net_loop_skip(rig.loop, ns);
    (void)net_loop_turn(rig.loop);
}

static inline void hold_in(enum snapshot_owners_state state, const struct snapshot_holding *holdings, size_t n)
{
    struct snapshot_holding *whole = mem_new_array(n + 1, sizeof(*whole));
    for (size_t i = 0; i < n; i++) {
        whole[i] = holdings[i];
        whole[i].device_id = whole[i].uuid;
        whole[i].container = "main";
        whole[i].resource = "nvidia.com/gpu";
        whole[i].claim = whole[i].claim_ns = "";
        whole[i].shares = whole[i].shares ? whole[i].shares : 1;
    }
    snapshot_owners_unref(rig.owners);
    rig.owners = snapshot_owners_new(
        &(struct snapshot_owners){.state = state, .taken_ns = n ? 1 : 0, .n_holdings = n, .holdings = whole});
    free(whole);
}
#define hold(...)                                                                                                      \
    hold_in(SNAPSHOT_OWNERS_OK, (struct snapshot_holding[]){__VA_ARGS__},                                              \
            ARRAY_LEN(((struct snapshot_holding[]){__VA_ARGS__})))
#define SHARED(which, pod_name)                                                                                        \
    {                                                                                                                  \
        .uuid = uuids[which], .ns = "ml", .pod = (pod_name), .is_shared = true                                         \
    }
#define ALONE(which, pod_name)                                                                                         \
    {                                                                                                                  \
        .uuid = uuids[which], .ns = "ml", .pod = (pod_name)                                                            \
    }

/* ---- what is seen ---- */

static inline const struct snapshot_holders *seen(void)
{
    return attribution_holders_list(rig.holders);
}

static inline void write_value(char out[16], const struct snapshot_holder *h, enum snapshot_field field)
{
    double value;
    (void)snprintf(out, 16, "-");
    if (h->use && snapshot_mean(seen()->uses, h->use, field, rig.now_ns, 0, &value))
        (void)snprintf(out, 16, "%g", value);
}

/* Each row as "device namespace/pod first-letter-of-the-UID flags processes utilization memory"; flags: Listed, Shared.
 */
static inline void assert_seen_at(const char *want, int line)
{
    char got[4096] = "", utilization[16], memory[16];
    size_t len = 0;
    for (size_t i = 0; i < seen()->n_holders; i++) {
        const struct snapshot_holder *h = &seen()->holders[i];
        write_value(utilization, h, SNAPSHOT_UTILIZATION);
        write_value(memory, h, SNAPSHOT_MEMORY_USED);
        len += (size_t)snprintf(got + len, sizeof(got) - len, "%s%s %s/%s %.1s %s%s%zu %s %s", i ? "; " : "", h->uuid,
                                h->ns, h->pod, *h->pod_uid ? h->pod_uid : "?", h->is_listed ? "L" : "",
                                h->is_shared ? "S" : "", h->n_processes, utilization, memory);
    }
    if (strcmp(got, want) != 0)
        fail_msg("line %d:\n got %s\nwant %s", line, got, want);
}
#define assert_seen(want) assert_seen_at(want, __LINE__)

static inline void assert_sight(enum snapshot_sight want, const char *part)
{
    assert_string_equal(snapshot_sight_name(seen()->sight), snapshot_sight_name(want));
    if (*part ? !strstr(seen()->text, part) : *seen()->text != '\0')
        fail_msg("\"%s\"", seen()->text);
}

/* ---- the rig ---- */

static inline void add_device(int which, enum snapshot_kind kind)
{
    struct snapshot_device d = {.kind = kind, .index = which == MIG ? MIG_PARENT : which};
    (void)str_copy(d.uuid, sizeof(d.uuid), str_of(uuids[which]));
    (void)snapshot_store_add(rig.store, &d);
}

static inline void start(bool has_procfs)
{
    struct err e;
    rig.config = (struct attribution_config){.loop = rig.loop,
                                             .metrics = rig.metrics,
                                             .procfs = has_procfs ? rig.procfs : NULL,
                                             .pod_logs = rig.pod_logs,
                                             .log_links = rig.log_links};
    if (has_procfs)
        rig.processes = attribution_processes_new(&rig.config, on_looked, NULL, &e);
    rig.holders = attribution_holders_new(&rig.config);
}

static inline int set_up(void **state)
{
    (void)state;
    memset(&rig, 0, sizeof(rig));
    rig.now_ns = 1000 * NS_PER_S;
    rig.metrics = metrics_new();
    rig.loop = net_loop_new(rig.metrics, NULL);
    (void)str_copy(rig.folder, sizeof(rig.folder), str_of("/tmp/holders-XXXXXX"));
    if (!rig.loop || !mkdtemp(rig.folder))
        return -1;
    (void)snprintf(rig.procfs, sizeof(rig.procfs), "%s/proc", rig.folder);
    (void)snprintf(rig.pod_logs, sizeof(rig.pod_logs), "%s/pods", rig.folder);
    (void)snprintf(rig.log_links, sizeof(rig.log_links), "%s/containers", rig.folder);
    make_folder(rig.folder, "proc");
    make_folder(rig.folder, "pods");
    make_folder(rig.folder, "containers");
    put_self(INITIAL, "0::/kubepods/pod" UID_C "/" ID_B "\n");
    name_pod("ml", "a", UID_A);
    name_pod("ml", "b", UID_B);
    rig.store = snapshot_store_new(NS_PER_S);
    add_device(GPU0, SNAPSHOT_GPU);
    add_device(GPU1, SNAPSHOT_GPU);
    add_device(MIG_PARENT, SNAPSHOT_MIG_PARENT);
    add_device(MIG, SNAPSHOT_MIG);
    return 0;
}

static inline int set_up_running(void **state)
{
    if (set_up(state) < 0)
        return -1;
    start(true);
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    attribution_holders_free(rig.holders);
    attribution_processes_free(rig.processes);
    snapshot_owners_unref(rig.owners);
    snapshot_unref(rig.snapshot);
    snapshot_store_free(rig.store);
    net_loop_free(rig.loop);
    metrics_free(rig.metrics);
    remove_tree(rig.folder);
    return 0;
}

#endif
