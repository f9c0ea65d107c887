/* What pods do on devices: processes of a driver's lists put to pods by a /proc tree made for the test, names from
 * trees of logs, and the kubelet's holdings, all to one row for a pod on a device. */
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

static void write_text(const char *folder, const char *name, const char *text)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void make_folder(const char *folder, const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    (void)mkdir(path, 0700);
}

static void put_process_in(const char *who, unsigned start, const char *cgroup)
{
    char folder[512], stat[256];
    make_folder(rig.procfs, who);
    (void)snprintf(folder, sizeof(folder), "%s/%s", rig.procfs, who);
    (void)snprintf(stat, sizeof(stat), "1 (a) b) c) S 1 1 0 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 %u 1 2\n", start);
    write_text(folder, "stat", stat);
    if (cgroup)
        write_text(folder, "cgroup", cgroup);
}

static void put_process(uint32_t pid, unsigned start, const char *cgroup)
{
    char who[16];
    (void)snprintf(who, sizeof(who), "%u", pid);
    put_process_in(who, start, cgroup);
}

static void put_in_pod(uint32_t pid, const char *uid, const char *id)
{
    char text[256];
    (void)snprintf(text, sizeof(text), "0::/kubepods/burstable/pod%s/%s\n", uid, id);
    put_process(pid, pid, text);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void remove_tree(const char *path)
{
    (void)nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static void end_process(uint32_t pid)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/%u", rig.procfs, pid);
    remove_tree(path);
}

static void put_self(const char *pid_namespace, const char *cgroup)
{
    char path[512];
    put_process_in("self", 1, cgroup);
    (void)snprintf(path, sizeof(path), "%s/self/ns", rig.procfs);
    (void)mkdir(path, 0700);
    (void)snprintf(path, sizeof(path), "%s/self/ns/pid", rig.procfs);
    (void)unlink(path);
    assert_int_equal(symlink(pid_namespace, path), 0);
}

static void name_pod(const char *ns, const char *pod, const char *uid)
{
    char name[512];
    (void)snprintf(name, sizeof(name), "%s_%s_%s", ns, pod, uid);
    make_folder(rig.pod_logs, name);
}

/* ---- the node ---- */

static struct snapshot_device *device(int which)
{
    return snapshot_store_find(rig.store, uuids[which]);
}

static void record(int which, double utilization, double used, double unused)
{
    snapshot_store_record(rig.store, device(which), SNAPSHOT_UTILIZATION, utilization, rig.now_ns);
    snapshot_store_record(rig.store, device(which), SNAPSHOT_MEMORY_USED, used, rig.now_ns);
    snapshot_store_record(rig.store, device(which), SNAPSHOT_MEMORY_FREE, unused, rig.now_ns);
    snapshot_store_record(rig.store, device(which), SNAPSHOT_MEMORY_TOTAL, used + unused, rig.now_ns);
}

static void list_n(int which, const struct use *uses, size_t n)
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

static void update(void)
{
    rig.has_news = attribution_holders_update(rig.holders, rig.snapshot, rig.owners, rig.processes);
}

static void on_looked(void *context, const struct snapshot *looked)
{
    (void)context;
    assert_ptr_equal(looked, rig.snapshot);
    rig.n_done++;
}

/* Publish, look where that is due, and bring the rows up to date. Returns whether /proc was looked at. */
static bool look(void)
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

static void pass_time(int64_t ns)
{
    rig.now_ns += ns;
    net_loop_skip(rig.loop, ns);
    (void)net_loop_turn(rig.loop);
}

static void hold_in(enum snapshot_owners_state state, const struct snapshot_holding *holdings, size_t n)
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

static const struct snapshot_holders *seen(void)
{
    return attribution_holders_list(rig.holders);
}

static void write_value(char out[16], const struct snapshot_holder *h, enum snapshot_field field)
{
    double value;
    (void)snprintf(out, 16, "-");
    if (h->use && snapshot_mean(seen()->uses, h->use, field, rig.now_ns, 0, &value))
        (void)snprintf(out, 16, "%g", value);
}

/* Each row as "device namespace/pod first-letter-of-the-UID flags processes utilization memory"; flags: Listed, Shared.
 */
static void assert_seen_at(const char *want, int line)
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

static void assert_sight(enum snapshot_sight want, const char *part)
{
    assert_string_equal(snapshot_sight_name(seen()->sight), snapshot_sight_name(want));
    if (*part ? !strstr(seen()->text, part) : *seen()->text != '\0')
        fail_msg("\"%s\"", seen()->text);
}

/* ---- the rig ---- */

static void add_device(int which, enum snapshot_kind kind)
{
    struct snapshot_device d = {.kind = kind, .index = which == MIG ? MIG_PARENT : which};
    (void)str_copy(d.uuid, sizeof(d.uuid), str_of(uuids[which]));
    (void)snapshot_store_add(rig.store, &d);
}

static void start(bool has_procfs)
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

static int set_up(void **state)
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

static int set_up_running(void **state)
{
    if (set_up(state) < 0)
        return -1;
    start(true);
    return 0;
}

static int tear_down(void **state)
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

/* ---- tests: who is where ---- */

static void test_without_procfs_rows_are_what_the_kubelet_lists(void **state)
{
    (void)state;
    start(false);
    update();
    assert_int_equal(seen()->n_holders, 0);
    hold(ALONE(GPU0, "a"), SHARED(GPU1, "b"), SHARED(GPU1, "a"), ALONE(MIG, "c"));
    look();
    assert_seen("GPU-0 ml/a ? L0 - -; GPU-1 ml/a ? LS0 - -; GPU-1 ml/b ? LS0 - -; MIG-3 ml/c ? L0 - -");
    assert_sight(SNAPSHOT_SIGHT_OFF, "");
    assert_null(seen()->uses);
    assert_int_equal(seen()->taken_ns, rig.now_ns);
    assert_int_equal(seen()->holders[0].since_ns, rig.now_ns);
}

static void test_containers_of_a_pod_are_one_row_and_its_shares_a_sum(void **state)
{
    (void)state;
    start(false);
    hold({.uuid = "GPU-0", .ns = "ml", .pod = "a", .is_shared = true, .shares = 2},
         {.uuid = "GPU-0", .ns = "ml", .pod = "a", .is_shared = true, .shares = 3});
    look();
    assert_int_equal(seen()->n_holders, 1);
    assert_int_equal(seen()->holders[0].shares, 5);
    look();
    assert_int_equal(seen()->holders[0].shares, 5);
}

static void test_pods_on_a_shared_gpu_each_have_the_sum_of_their_processes(void **state)
{
    (void)state;
    hold(SHARED(GPU0, "a"), SHARED(GPU0, "b"));
    put_in_pod(11, UID_A, ID_A);
    put_in_pod(12, UID_A, ID_A);
    put_in_pod(13, UID_B, ID_B);
    list(GPU0, {11, 100, 10}, {12, 200, 15}, {13, 1000, 40});
    list_none(GPU1);
    assert_true(look());
    assert_seen("GPU-0 ml/a a LS2 25 300; GPU-0 ml/b b LS1 40 1000");
    assert_sight(SNAPSHOT_SIGHT_OK, "");
    assert_int_equal(seen()->n_unattributed, 0);
    assert_string_equal(seen()->holders[0].pod_uid, UID_A);
}

static void test_a_holder_without_a_process_has_0(void **state)
{
    (void)state;
    hold(SHARED(GPU0, "a"), SHARED(GPU0, "b"), ALONE(GPU1, "b"));
    put_in_pod(11, UID_A, ID_A);
    list(GPU0, {11, 100, 30});
    list_none(GPU1);
    look();
    assert_seen("GPU-0 ml/a a LS1 30 100; GPU-0 ml/b ? LS0 0 0; GPU-1 ml/b ? L0 0 0");
}

static void test_a_holder_is_unknown_while_a_pod_without_a_name_is_on_the_device(void **state)
{
    (void)state;
    hold(SHARED(GPU0, "a"), SHARED(GPU0, "nameless"), ALONE(GPU1, "b"));
    put_in_pod(11, UID_A, ID_A);
    put_in_pod(12, UID_C, ID_B);
    list(GPU0, {11, 100, 30}, {12, 200, 60});
    list_none(GPU1);
    look();
    assert_seen("GPU-0 / c S1 60 200; GPU-0 ml/a a LS1 30 100; GPU-0 ml/nameless ? LS0 - -; GPU-1 ml/b ? L0 0 0");
    assert_int_equal(seen()->n_unattributed, 0);
}

static void test_processes_of_no_pod_are_a_row_without_a_name(void **state)
{
    (void)state;
    hold(SHARED(GPU0, "a"));
    put_in_pod(11, UID_A, ID_A);
    put_process(12, 1, HOST);
    put_process(13, 1, "0::/system.slice/docker-" ID_B ".scope\n");
    list(GPU0, {11, 100, 30}, {12, 7, 5}, {13, 8, 6});
    look();
    assert_seen("GPU-0 / ? S2 11 15; GPU-0 ml/a a LS1 30 100");
    assert_int_equal(seen()->n_unattributed, 0);
}

static void test_a_process_that_was_gone_before_the_look_is_untold_and_nobody_else_is_measured(void **state)
{
    (void)state;
    hold(SHARED(GPU0, "a"), ALONE(GPU1, "b"));
    list(GPU0, {11, 100, 30});
    list_none(GPU1);
    look();
    assert_seen("GPU-0 / ? S1 30 100; GPU-0 ml/a ? LS0 - 0; GPU-1 ml/b ? L0 0 0");
    assert_int_equal(seen()->n_unattributed, 1);
}

static void test_what_has_ended_has_no_memory_and_what_did_nothing_is_no_doubt(void **state)
{
    (void)state;
    hold(SHARED(GPU0, "a"));
    put_in_pod(11, UID_A, ID_A);
    list(GPU0, {11, 100, 30}, {12, -1, 7}); /* 12 has ended, the driver still has samples of it */
    look();
    assert_seen("GPU-0 / ? S1 7 0; GPU-0 ml/a a LS1 - 100");
    pass_time(5 * NS_PER_S);
    list(GPU0, {11, 100, 30}, {12, 50, 0});
    look();
    assert_seen("GPU-0 / ? S1 0 50; GPU-0 ml/a a LS1 30 100");
}

static void test_a_pod_without_a_name_that_does_nothing_is_no_doubt(void **state)
{
    (void)state;
    hold(SHARED(GPU0, "a"));
    put_in_pod(12, UID_C, ID_B);
    list(GPU0, {12, 200, 0});
    look();
    assert_seen("GPU-0 / c S1 0 200; GPU-0 ml/a ? LS0 0 -");
}

static void test_a_path_that_is_hidden_by_a_cgroup_namespace_is_untold(void **state)
{
    (void)state;
    put_process(11, 1, "0::/../cri-containerd-" ID_A ".scope\n");
    list(GPU0, {11, 100, 30});
    look();
    assert_int_equal(seen()->n_unattributed, 1);
}

static void test_a_process_that_ends_after_a_look_keeps_its_pod_while_it_is_listed(void **state)
{
    (void)state;
    put_in_pod(11, UID_A, ID_A);
    list(GPU0, {11, 100, 30});
    look();
    end_process(11);
    pass_time(5 * NS_PER_S);
    list(GPU0, {11, 100, 20});
    look();
    assert_seen("GPU-0 ml/a a S1 20 100");
}

static void test_a_pid_that_is_used_again_is_another_process(void **state)
{
    (void)state;
    put_in_pod(11, UID_A, ID_A);
    list(GPU0, {11, 100, 30});
    look();
    assert_seen("GPU-0 ml/a a S1 30 100");
    end_process(11);
    put_process(11, 999, "0::/kubepods/pod" UID_B "/" ID_B "\n");
    pass_time(5 * NS_PER_S);
    list(GPU0, {11, 200, 40});
    assert_true(look());
    assert_seen("GPU-0 ml/b b S1 40 200");
}

static void test_the_same_start_is_the_same_process_and_its_cgroup_is_not_read_again(void **state)
{
    (void)state;
    put_process(11, 5, "0::/kubepods/pod" UID_A "/" ID_A "\n");
    list(GPU0, {11, 100, 30});
    look();
    put_process(11, 5, HOST);
    pass_time(5 * NS_PER_S);
    list(GPU0, {11, 100, 30});
    look();
    assert_seen("GPU-0 ml/a a S1 30 100");
}

static void test_a_process_that_appears_between_lists_is_looked_at(void **state)
{
    (void)state;
    put_in_pod(11, UID_A, ID_A);
    put_in_pod(12, UID_B, ID_B);
    list(GPU0, {11, 100, 30});
    assert_true(look());
    assert_false(look());
    struct snapshot_process both[] = {{.pid = 11, .has_memory = true}, {.pid = 12, .has_memory = true}};
    snapshot_store_set_processes(rig.store, device(GPU0), both, 2);
    assert_true(look());
    assert_int_equal(seen()->n_holders, 2);
}

static void test_a_static_pod_is_named_by_the_hash_of_its_file(void **state)
{
    (void)state;
    name_pod("kube-system", "proxy-node1", STATIC);
    put_in_pod(11, STATIC, ID_A);
    list(GPU0, {11, 1, 2});
    look();
    assert_seen("GPU-0 kube-system/proxy-node1 d S1 2 1");
}

static void test_links_of_logs_name_pods_whose_uid_is_hidden(void **state)
{
    (void)state;
    hold(SHARED(GPU0, "c"), SHARED(GPU0, "d"));
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/c_ml_main-" ID_A ".log", rig.log_links);
    assert_int_equal(symlink("/nowhere", path), 0);
    put_process(11, 1, "0::/../cri-containerd-" ID_A ".scope\n");
    list(GPU0, {11, 1, 2});
    look();
    assert_seen("GPU-0 ml/c ? LS1 2 1; GPU-0 ml/d ? LS0 0 0");
    assert_int_equal(seen()->n_unattributed, 0);
}

static void test_a_name_that_comes_later_is_found_and_the_past_stays(void **state)
{
    (void)state;
    put_in_pod(11, UID_C, ID_A);
    list(GPU0, {11, 1, 2});
    look();
    assert_seen("GPU-0 / c S1 2 1");
    uint32_t id = seen()->holders[0].id;
    name_pod("ml", "late", UID_C);
    pass_time(5 * NS_PER_S);
    list(GPU0, {11, 1, 4});
    look();
    assert_seen("GPU-0 ml/late c S1 4 1");
    assert_int_equal(seen()->holders[0].id, id);
}

static void test_folders_are_read_once_a_second_at_most_and_seldom_where_it_does_not_help(void **state)
{
    (void)state;
    put_in_pod(11, UID_C, ID_A);
    list(GPU0, {11, 1, 2});
    look(); /* read: in vain */
    name_pod("ml", "late", UID_C);
    pass_time(NS_PER_S / 2);
    list(GPU0, {11, 1, 2});
    look();
    assert_seen("GPU-0 / c S1 2 1");
    pass_time(NS_PER_S);
    list(GPU0, {11, 1, 2});
    look();
    assert_seen("GPU-0 ml/late c S1 2 1");
}

/* ---- tests: rows over time ---- */

static void test_a_row_stays_while_it_is_listed_and_goes_with_its_last_reason(void **state)
{
    (void)state;
    hold(SHARED(GPU0, "a"));
    put_in_pod(11, UID_A, ID_A);
    put_in_pod(12, UID_B, ID_B);
    list(GPU0, {11, 100, 30}, {12, 5, 6});
    look();
    assert_seen("GPU-0 ml/a a LS1 30 100; GPU-0 ml/b b S1 6 5");
    pass_time(5 * NS_PER_S);
    list_none(GPU0);
    look();
    assert_seen("GPU-0 ml/a a LS0 0 0");
    hold_in(SNAPSHOT_OWNERS_OK, NULL, 0);
    update();
    assert_int_equal(seen()->n_holders, 0);
}

static void test_rows_of_the_last_good_list_stay_while_the_kubelet_fails(void **state)
{
    (void)state;
    static const struct snapshot_holding one[] = {SHARED(GPU0, "a")};
    hold_in(SNAPSHOT_OWNERS_OK, one, 1);
    list_none(GPU0);
    look();
    uint32_t id = seen()->holders[0].id;
    hold_in(SNAPSHOT_OWNERS_FAILED, one, 1);
    update();
    assert_int_equal(seen()->n_holders, 1);
    assert_int_equal(seen()->holders[0].id, id);
    hold_in(SNAPSHOT_OWNERS_FAILED, NULL, 0);
    update();
    assert_int_equal(seen()->n_holders, 0);
}

static void test_a_pod_that_comes_back_under_its_name_is_a_new_one(void **state)
{
    (void)state;
    hold(SHARED(GPU0, "a"));
    put_in_pod(11, UID_A, ID_A);
    list(GPU0, {11, 100, 30});
    look();
    uint32_t id = seen()->holders[0].id;
    name_pod("ml", "a", UID_C);
    put_in_pod(12, UID_C, ID_B);
    pass_time(5 * NS_PER_S);
    list(GPU0, {12, 7, 8});
    look();
    assert_seen("GPU-0 ml/a c LS1 8 7");
    assert_true(seen()->holders[0].id > id);
    assert_int_equal(seen()->holders[0].since_ns, rig.now_ns);
}

static void test_a_device_that_is_gone_takes_its_rows_along(void **state)
{
    (void)state;
    hold(SHARED(GPU0, "a"), ALONE(GPU1, "b"));
    look();
    snapshot_store_remove(rig.store, uuids[GPU0]);
    pass_time(NS_PER_S);
    look();
    assert_int_equal(seen()->n_holders, 1);
    assert_string_equal(seen()->holders[0].uuid, "GPU-1");
    attribution_holders_update(rig.holders, NULL, rig.owners, rig.processes);
    assert_int_equal(seen()->n_holders, 0);
}

static void test_a_pod_that_is_not_listed_is_news_once(void **state)
{
    (void)state;
    put_in_pod(11, UID_A, ID_A);
    put_process(12, 1, HOST);
    list(GPU0, {11, 1, 2}, {12, 1, 2});
    look();
    assert_true(rig.has_news);
    look();
    assert_false(rig.has_news);
    assert_true(attribution_holders_has_process(rig.holders, "GPU-0", "ml", "a"));
    assert_false(attribution_holders_has_process(rig.holders, "GPU-1", "ml", "a"));
    assert_false(attribution_holders_has_process(rig.holders, "GPU-0", "ml", "b"));
}

static void test_means_and_peaks_of_a_pod_are_those_of_any_reading(void **state)
{
    (void)state;
    double mean, peak;
    put_in_pod(11, UID_A, ID_A);
    for (int i = 0; i < 10; i++) {
        list(GPU0, {11, 100, i % 2 ? 80 : 20});
        look();
        pass_time(NS_PER_S);
    }
    const struct snapshot_holder *h = &seen()->holders[0];
    rig.now_ns -= NS_PER_S;
    assert_true(snapshot_mean(seen()->uses, h->use, SNAPSHOT_UTILIZATION, rig.now_ns, 4 * NS_PER_S, &mean));
    assert_double_near(mean, 50, 1e-9);
    assert_true(snapshot_peak(seen()->uses, h->use, SNAPSHOT_UTILIZATION, rig.now_ns, 4 * NS_PER_S, &peak));
    assert_double_same(peak, 80);
    assert_true(snapshot_is_fresh(seen()->uses, h->use, SNAPSHOT_MEMORY_USED, rig.now_ns + 14 * NS_PER_S));
    assert_false(snapshot_is_fresh(seen()->uses, h->use, SNAPSHOT_MEMORY_USED, rig.now_ns + 16 * NS_PER_S));
    assert_false(snapshot_is_fresh(seen()->uses, h->use, SNAPSHOT_UTILIZATION, rig.now_ns + 6 * NS_PER_S));
}

static void test_a_list_that_was_read_once_is_recorded_once(void **state)
{
    (void)state;
    put_in_pod(11, UID_A, ID_A);
    list(GPU0, {11, 100, 30});
    look();
    int64_t taken_ns = rig.now_ns;
    for (int i = 0; i < 3; i++) {
        pass_time(NS_PER_S);
        assert_false(look());
    }
    assert_int_equal(seen()->holders[0].use->readings[SNAPSHOT_MEMORY_USED].taken_ns, taken_ns);
    assert_int_equal(seen()->holders[0].use->readings[SNAPSHOT_UTILIZATION].taken_ns, taken_ns);
}

static void test_a_list_that_fails_stands_for_a_while(void **state)
{
    (void)state;
    put_in_pod(11, UID_A, ID_A);
    list(GPU0, {11, 100, 30});
    look();
    device(GPU0)->process_list.status = SNAPSHOT_FAILED;
    pass_time(14 * NS_PER_S);
    look();
    assert_int_equal(seen()->n_holders, 1);
    pass_time(2 * NS_PER_S);
    look();
    assert_int_equal(seen()->n_holders, 0);
}

/* ---- tests: what is not measured ---- */

static void test_of_a_mig_device_only_memory_is_told(void **state)
{
    (void)state;
    hold(ALONE(MIG, "a"), ALONE(GPU0, "b"));
    put_in_pod(11, UID_A, ID_A);
    list(MIG, {11, 100, -1});
    list_none(GPU0);
    look();
    assert_seen("GPU-0 ml/b ? L0 0 0; MIG-3 ml/a a L1 - 100");
}

static void test_what_the_driver_does_not_say_of_one_process_is_not_known_of_the_pod(void **state)
{
    (void)state;
    put_in_pod(11, UID_A, ID_A);
    put_in_pod(12, UID_A, ID_A);
    put_in_pod(13, UID_B, ID_A);
    list(GPU0, {11, 100, -1}, {12, -1, 30}, {13, 7, 8});
    look();
    assert_seen("GPU-0 ml/a a S2 - -; GPU-0 ml/b b S1 8 7");
}

static void test_more_than_100_percent_is_100(void **state)
{
    (void)state;
    put_in_pod(11, UID_A, ID_A);
    put_in_pod(12, UID_A, ID_A);
    list(GPU0, {11, 1, 70}, {12, 1, 60});
    look();
    assert_seen("GPU-0 ml/a a S2 100 2");
}

static void test_a_device_whose_processes_are_not_given_measures_nobody(void **state)
{
    (void)state;
    hold(SHARED(GPU0, "a"), ALONE(GPU1, "b"));
    list_none(GPU0);
    device(GPU1)->process_list.status = SNAPSHOT_UNSUPPORTED;
    device(GPU1)->process_utilization.status = SNAPSHOT_UNSUPPORTED;
    look();
    assert_seen("GPU-0 ml/a ? LS0 0 0; GPU-1 ml/b ? L0 - -");
    assert_null(seen()->holders[1].use);
    assert_sight(SNAPSHOT_SIGHT_OK, "");
}

static void test_rows_beyond_the_ceiling_are_left_out_and_counted(void **state)
{
    (void)state;
    struct snapshot_holding *many = mem_new_array(SNAPSHOT_DEVICES_MAX + 5, sizeof(*many));
    char(*names)[16] = mem_new_array(SNAPSHOT_DEVICES_MAX + 5, sizeof(*names));
    for (size_t i = 0; i < SNAPSHOT_DEVICES_MAX + 5; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "p-%zu", i);
        many[i] = (struct snapshot_holding)SHARED(GPU0, names[i]);
    }
    hold_in(SNAPSHOT_OWNERS_OK, many, SNAPSHOT_DEVICES_MAX + 5);
    look();
    assert_int_equal(seen()->n_holders, SNAPSHOT_DEVICES_MAX);
    static const struct metric_desc same = {.name = "keda_gpu_scaler_holders_dropped"};
    assert_double_same(metric_value(metric_only(metric_register(rig.metrics, &same))), 5);
    free(many);
    free(names);
}

/* ---- tests: sight ---- */

static void test_nothing_is_said_before_the_first_look(void **state)
{
    (void)state;
    update();
    assert_sight(SNAPSHOT_SIGHT_STARTING, "");
}

static void test_a_procfs_that_is_not_there_is_said(void **state)
{
    (void)state;
    remove_tree(rig.procfs);
    hold(SHARED(GPU0, "a"));
    list(GPU0, {11, 100, 30});
    look();
    assert_seen("GPU-0 ml/a ? LS0 - -");
    assert_sight(SNAPSHOT_SIGHT_NO_PROCFS, "mount the host's /proc");
    assert_int_equal(seen()->n_unattributed, 1);
}

static void test_in_a_pid_namespace_of_its_own_nobody_is_measured(void **state)
{
    (void)state;
    put_self(NESTED, "0::/\n");
    hold(SHARED(GPU0, "a"));
    list_none(GPU0);
    look();
    assert_seen("GPU-0 ml/a ? LS0 - -");
    assert_sight(SNAPSHOT_SIGHT_NO_HOST_PIDS, "agent.hostPID=true");
}

static void test_in_a_nested_node_pids_that_are_in_other_pods_prove_the_sight(void **state)
{
    (void)state;
    put_self(NESTED, "0::/\n");
    hold(SHARED(GPU0, "a"), SHARED(GPU0, "b"));
    put_in_pod(11, UID_A, ID_A);
    list(GPU0, {11, 100, 30}, {12, 1, 1});
    look();
    assert_sight(SNAPSHOT_SIGHT_OK, "");
    pass_time(5 * NS_PER_S);
    list_none(GPU0); /* nothing speaks against it */
    look();
    assert_seen("GPU-0 ml/a a LS0 0 0; GPU-0 ml/b ? LS0 0 0");
}

static void test_in_a_nested_node_pids_of_another_namespace_prove_nothing(void **state)
{
    (void)state;
    put_self(NESTED, "0::/\n");
    put_in_pod(11, UID_A, ID_A);
    list(GPU0, {11, 100, 30}, {12, 1, 1}, {13, 1, 1});
    look();
    assert_int_equal(seen()->n_holders, 0);
    assert_sight(SNAPSHOT_SIGHT_NO_HOST_PIDS, "hostPID");
}

static void test_a_process_of_the_own_pod_proves_nothing(void **state)
{
    (void)state;
    put_self(NESTED, "0::/kubepods/pod" UID_A "/" ID_B "\n");
    put_in_pod(11, UID_A, ID_A);
    list(GPU0, {11, 100, 30});
    look();
    assert_sight(SNAPSHOT_SIGHT_NO_HOST_PIDS, "hostPID");
}

static void test_a_driver_that_lists_no_processes_is_said(void **state)
{
    (void)state;
    for (int i = GPU0; i <= GPU1; i++)
        device(i)->process_list.status = SNAPSHOT_UNSUPPORTED;
    hold(SHARED(GPU0, "a"));
    look();
    assert_seen("GPU-0 ml/a ? LS0 - -");
    assert_sight(SNAPSHOT_SIGHT_NOT_GIVEN, "lists no processes");
}

static void test_paths_must_be_absolute(void **state)
{
    (void)state;
    struct err e;
    struct attribution_config config = {.loop = rig.loop, .metrics = rig.metrics, .procfs = "proc"};
    assert_null(attribution_processes_new(&config, on_looked, NULL, &e));
    assert_int_equal(e.class, ERR_INVALID_ARGUMENT);
    config.procfs = "/proc";
    config.pod_logs = "pods";
    assert_null(attribution_processes_new(&config, on_looked, NULL, &e));
}

/* ---- tests: memory by the minute ---- */

static void assert_minute(int64_t back, double low, double high)
{
    const struct snapshot_minutes *m = seen()->holders[0].memory;
    assert_non_null(m);
    assert_int_equal(m->minute, rig.now_ns / (60 * NS_PER_S));
    const struct snapshot_extremes *x = &m->of[(m->minute - back) % SNAPSHOT_MINUTES];
    if (low > high) {
        assert_true(x->low > x->high);
        return;
    }
    assert_double_near((double)x->low, low, 1e-4);
    assert_double_near((double)x->high, high, 1e-4);
}

static void test_memory_of_a_device_held_alone_is_the_devices(void **state)
{
    (void)state;
    hold(ALONE(GPU0, "a"));
    look();
    assert_null(seen()->holders[0].memory);
    rig.now_ns = 6000 * NS_PER_S;
    static const double used[] = {40, 20, 90, 60};
    for (size_t i = 0; i < ARRAY_LEN(used); i++) {
        record(GPU0, 0, used[i], 100 - used[i]);
        look();
        pass_time(NS_PER_S);
    }
    rig.now_ns -= NS_PER_S;
    assert_minute(0, 20, 90);
    assert_minute(1, 1, 0);
    pass_time(60 * NS_PER_S);
    record(GPU0, 0, 50, 50);
    look();
    assert_minute(0, 50, 50);
    assert_minute(1, 20, 90);
    pass_time(29 * 60 * NS_PER_S);
    record(GPU0, 0, 70, 30);
    look();
    assert_minute(0, 70, 70);
    assert_minute(29, 50, 50);
    assert_minute(28, 1, 0);
    pass_time(3600 * NS_PER_S);
    record(GPU0, 0, 10, 90);
    look();
    for (int64_t back = 1; back < SNAPSHOT_MINUTES; back++)
        assert_minute(back, 1, 0);
}

static void test_memory_on_a_shared_device_is_own_of_own_and_free(void **state)
{
    (void)state;
    hold(SHARED(GPU0, "a"));
    put_in_pod(11, UID_A, ID_A);
    put_in_pod(12, UID_B, ID_B);
    list(GPU0, {11, 20, 1}, {12, 50, 1});
    record(GPU0, 0, 70, 30);
    look();
    assert_minute(0, 40, 40);
}

static void test_memory_on_a_shared_device_is_not_known_without_processes(void **state)
{
    (void)state;
    hold(SHARED(GPU0, "a"));
    record(GPU0, 0, 70, 30);
    look();
    assert_null(seen()->holders[0].memory);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up_running, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_without_procfs_rows_are_what_the_kubelet_lists, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_containers_of_a_pod_are_one_row_and_its_shares_a_sum, set_up, tear_down),
        T(test_pods_on_a_shared_gpu_each_have_the_sum_of_their_processes),
        T(test_a_holder_without_a_process_has_0),
        T(test_a_holder_is_unknown_while_a_pod_without_a_name_is_on_the_device),
        T(test_processes_of_no_pod_are_a_row_without_a_name),
        T(test_a_process_that_was_gone_before_the_look_is_untold_and_nobody_else_is_measured),
        T(test_what_has_ended_has_no_memory_and_what_did_nothing_is_no_doubt),
        T(test_a_pod_without_a_name_that_does_nothing_is_no_doubt),
        T(test_a_path_that_is_hidden_by_a_cgroup_namespace_is_untold),
        T(test_a_process_that_ends_after_a_look_keeps_its_pod_while_it_is_listed),
        T(test_a_pid_that_is_used_again_is_another_process),
        T(test_the_same_start_is_the_same_process_and_its_cgroup_is_not_read_again),
        T(test_a_process_that_appears_between_lists_is_looked_at),
        T(test_a_static_pod_is_named_by_the_hash_of_its_file),
        T(test_links_of_logs_name_pods_whose_uid_is_hidden),
        T(test_a_name_that_comes_later_is_found_and_the_past_stays),
        T(test_folders_are_read_once_a_second_at_most_and_seldom_where_it_does_not_help),
        T(test_a_row_stays_while_it_is_listed_and_goes_with_its_last_reason),
        T(test_rows_of_the_last_good_list_stay_while_the_kubelet_fails),
        T(test_a_pod_that_comes_back_under_its_name_is_a_new_one),
        T(test_a_device_that_is_gone_takes_its_rows_along),
        T(test_a_pod_that_is_not_listed_is_news_once),
        T(test_means_and_peaks_of_a_pod_are_those_of_any_reading),
        T(test_a_list_that_was_read_once_is_recorded_once),
        T(test_a_list_that_fails_stands_for_a_while),
        T(test_of_a_mig_device_only_memory_is_told),
        T(test_what_the_driver_does_not_say_of_one_process_is_not_known_of_the_pod),
        T(test_more_than_100_percent_is_100),
        T(test_a_device_whose_processes_are_not_given_measures_nobody),
        T(test_rows_beyond_the_ceiling_are_left_out_and_counted),
        T(test_nothing_is_said_before_the_first_look),
        T(test_a_procfs_that_is_not_there_is_said),
        T(test_in_a_pid_namespace_of_its_own_nobody_is_measured),
        T(test_in_a_nested_node_pids_that_are_in_other_pods_prove_the_sight),
        T(test_in_a_nested_node_pids_of_another_namespace_prove_nothing),
        T(test_a_process_of_the_own_pod_proves_nothing),
        T(test_a_driver_that_lists_no_processes_is_said),
        T(test_paths_must_be_absolute),
        T(test_memory_of_a_device_held_alone_is_the_devices),
        T(test_memory_on_a_shared_device_is_own_of_own_and_free),
        T(test_memory_on_a_shared_device_is_not_known_without_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
