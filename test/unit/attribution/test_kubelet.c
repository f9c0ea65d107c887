/* The client against a server of ours on a unix socket, both on one loop: good answers, errors, a socket that goes and
 * comes back, reads on demand. */
#include "attribution/attribution.h"
#include "rpc/rpc.h"

#include "support.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define GPU "GPU-11111111-2222-3333-4444-555555555555"

static struct {
    struct metrics *metrics;
    struct net_loop *loop;
    struct rpc_server *server;
    struct net_listener *listener;
    struct attribution *attribution;
    const struct snapshot *snapshot;
    char folder[64], path[96];
    int n_calls, n_changes, n_seen;
    enum err_class answer; /* NONE: an answer with a holding */
    bool is_silent, is_garbage;
    size_t padding_bytes; /* of CPU ids in the answer */
} rig;

static void put(struct buf *out, unsigned field, const void *bytes, size_t len)
{
    (void)buf_append_char(out, (char)(field << 3 | 2));
    size_t rest = len;
    for (; rest > 0x7F; rest >>= 7)
        (void)buf_append_char(out, (char)((rest & 0x7F) | 0x80));
    (void)buf_append_char(out, (char)rest);
    (void)buf_append(out, bytes, len);
}

static void put_buf(struct buf *out, unsigned field, const struct buf *message)
{
    put(out, field, message->data, message->len);
}

/* Pod "trainer" in "ml" with the GPU, and CPU ids. */
static void write_answer(struct buf *out)
{
    BUF_AUTO struct buf devices;
    BUF_AUTO struct buf container;
    BUF_AUTO struct buf pod;
    buf_init(&devices, 1024);
    buf_init(&container, 64 << 20);
    buf_init(&pod, 64 << 20);
    put(&devices, 1, "nvidia.com/gpu", 14);
    put(&devices, 2, GPU, strlen(GPU));
    put(&container, 1, "main", 4);
    put_buf(&container, 2, &devices);
    MEM_AUTO char *cpu_ids = mem_new_array(rig.padding_bytes + 1, 1);
    put(&container, 3, cpu_ids, rig.padding_bytes);
    put(&pod, 1, "trainer", 7);
    put(&pod, 2, "ml", 2);
    put_buf(&pod, 3, &container);
    put_buf(out, 1, &pod);
}

static void list(struct rpc_call *call, struct str request, void *context)
{
    (void)context;
    assert_int_equal(request.len, 0);
    rig.n_calls++;
    if (rig.is_silent)
        return;
    if (rig.answer != ERR_NONE) {
        rpc_call_finish(call, rig.answer, "rejected by rate limit");
        return;
    }
    BUF_AUTO struct buf answer;
    buf_init(&answer, 64 << 20);
    if (rig.is_garbage)
        (void)buf_append_str(&answer, "\x0b\x0b");
    else
        write_answer(&answer);
    rpc_call_reply(call, answer.data, answer.len);
}

static const struct snapshot *snapshot(void *context)
{
    (void)context;
    return rig.snapshot;
}

static void changed(void *context, const struct snapshot_owners *owners)
{
    (void)context;
    assert_ptr_equal(owners, attribution_owners(rig.attribution));
    rig.n_changes++;
}

static void open_socket(void)
{
    char address[128];
    struct err e;
    (void)snprintf(address, sizeof(address), "unix:%s", rig.path);
    rig.listener = net_listen(
        rig.loop, &(struct net_listen_config){.address = address, .h2 = rpc_server_protocol(rig.server)}, &e);
    if (!rig.listener)
        fail_msg("%s", e.text);
}

static void close_socket(void)
{
    net_listener_free(rig.listener);
    rig.listener = NULL;
    (void)unlink(rig.path);
}

static int set_up(void **state)
{
    (void)state;
    struct err e;
    static struct rpc_method method = {.path = "/v1.PodResourcesLister/List", .message = list};
    memset(&rig, 0, sizeof(rig));
    rig.metrics = metrics_new();
    rig.loop = net_loop_new(rig.metrics, &e);
    assert_non_null(rig.loop);
    rig.server = rpc_server_new(&(struct rpc_server_config){.loop = rig.loop, .metrics = rig.metrics});
    rpc_server_add(rig.server, &method, 1);
    (void)str_copy(rig.folder, sizeof(rig.folder), str_of("/tmp/kubelet-XXXXXX"));
    assert_non_null(mkdtemp(rig.folder));
    (void)snprintf(rig.path, sizeof(rig.path), "%s/kubelet.sock", rig.folder);
    struct snapshot_store *store = snapshot_store_new(NS_PER_S);
    struct snapshot_device d = {.kind = SNAPSHOT_GPU, .uuid = GPU};
    (void)snapshot_store_add(store, &d);
    rig.snapshot = snapshot_store_publish(store, NS_PER_S);
    snapshot_store_free(store);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    attribution_free(rig.attribution);
    close_socket();
    rpc_server_free(rig.server);
    net_loop_free(rig.loop);
    metrics_free(rig.metrics);
    snapshot_unref(rig.snapshot);
    return rmdir(rig.folder);
}

static void start(int64_t period_ns)
{
    struct err e;
    rig.attribution = attribution_new(&(struct attribution_config){.loop = rig.loop,
                                                                   .metrics = rig.metrics,
                                                                   .path = rig.path,
                                                                   .period_ns = period_ns,
                                                                   .snapshot = snapshot,
                                                                   .changed = changed},
                                      &e);
    assert_non_null(rig.attribution);
    assert_int_equal(attribution_owners(rig.attribution)->state, SNAPSHOT_OWNERS_STARTING);
}

/* Turn the loop until the count is there. */
static void turn_until_count(const int *count, int want)
{
    int64_t end_ns = time_mono_ns() + 30 * NS_PER_S;
    while (*count < want && time_mono_ns() < end_ns)
        (void)net_loop_turn(rig.loop);
    assert_int_equal(*count, want);
}

/* Turn the loop until n more reads have ended. */
static const struct snapshot_owners *run_reads(int n)
{
    turn_until_count(&rig.n_changes, rig.n_changes + n);
    return attribution_owners(rig.attribution);
}

static void assert_held(const struct snapshot_owners *owners)
{
    size_t n;
    const struct snapshot_holding *h = snapshot_owners_of(owners, GPU, &n);
    assert_int_equal(n, 1);
    assert_string_equal(h->pod, "trainer");
}

static double errors_of(const char *reason)
{
    static const struct metric_desc same = {.name = "keda_gpu_scaler_pod_resources_errors"};
    return metric_value(metric_series(metric_register(rig.metrics, &same), &reason));
}

static void test_the_kubelets_answer_becomes_the_owners(void **state)
{
    (void)state;
    open_socket();
    start(5 * NS_PER_MS);
    const struct snapshot_owners *owners = run_reads(3);
    assert_int_equal(owners->state, SNAPSHOT_OWNERS_OK);
    assert_string_equal(owners->text, "");
    assert_int_equal(owners->n_matched, 1);
    assert_int_equal(rig.n_calls, 3);
    assert_held(owners);
}

static void test_an_answer_near_the_kubelets_limit_is_taken(void **state)
{
    (void)state;
    rig.padding_bytes = (16 << 20) - 4096;
    open_socket();
    start(NS_PER_S);
    const struct snapshot_owners *owners = run_reads(1);
    assert_string_equal(owners->text, "");
    assert_held(owners);
}

static void test_an_answer_beyond_it_is_a_failure_with_a_reason(void **state)
{
    (void)state;
    rig.padding_bytes = (16 << 20) + 1;
    open_socket();
    start(NS_PER_S);
    assert_int_equal(run_reads(1)->state, SNAPSHOT_OWNERS_FAILED);
    assert_double_same(errors_of("too_large"), 1);
}

static void test_no_socket_is_a_state_and_looked_for_again(void **state)
{
    (void)state;
    start(5 * NS_PER_MS);
    const struct snapshot_owners *owners = run_reads(2);
    assert_int_equal(owners->state, SNAPSHOT_OWNERS_NO_SOCKET);
    assert_non_null(strstr(owners->text, rig.path));
    assert_double_same(errors_of("no_socket"), 2);
    open_socket();
    owners = run_reads(1);
    assert_int_equal(owners->state, SNAPSHOT_OWNERS_OK);
    assert_held(owners);
}

static void test_the_last_holdings_stand_while_the_kubelet_restarts(void **state)
{
    (void)state;
    open_socket();
    start(5 * NS_PER_MS);
    int64_t taken_ns = run_reads(1)->taken_ns;
    close_socket();
    const struct snapshot_owners *owners = run_reads(2);
    assert_int_equal(owners->state, SNAPSHOT_OWNERS_NO_SOCKET);
    assert_int_equal(owners->taken_ns, taken_ns); /* how old they are is seen */
    assert_held(owners);
    open_socket(); /* a new inode */
    owners = run_reads(1);
    assert_int_equal(owners->state, SNAPSHOT_OWNERS_OK);
    assert_true(owners->taken_ns > taken_ns);
}

static void test_a_rate_limit_makes_reads_rarer_until_one_gets_through(void **state)
{
    (void)state;
    open_socket();
    rig.answer = ERR_RESOURCE_EXHAUSTED;
    start(10 * NS_PER_MS);
    int64_t began_ns = time_mono_ns();
    const struct snapshot_owners *owners = run_reads(4); /* 20, 40 and 80 ms apart */
    assert_true(time_mono_ns() - began_ns >= 140 * NS_PER_MS);
    assert_int_equal(owners->state, SNAPSHOT_OWNERS_FAILED);
    assert_non_null(strstr(owners->text, "rate limit"));
    assert_double_same(errors_of("rate_limited"), 4);
    rig.answer = ERR_NONE;
    assert_int_equal(run_reads(1)->state, SNAPSHOT_OWNERS_OK);
}

static void test_each_failure_is_named(void **state)
{
    (void)state;
    static const struct {
        enum err_class answer;
        const char *reason;
    } rows[] = {{ERR_UNAVAILABLE, "unavailable"},
                {ERR_UNIMPLEMENTED, "unimplemented"},
                {ERR_INTERNAL, "other"},
                {ERR_DEADLINE_EXCEEDED, "deadline"}};
    open_socket();
    start(2 * NS_PER_MS);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        rig.answer = rows[i].answer;
        const struct snapshot_owners *owners = run_reads(1);
        assert_int_equal(owners->state, SNAPSHOT_OWNERS_FAILED);
        assert_true(strlen(owners->text) > 0);
        assert_double_same(errors_of(rows[i].reason), 1);
    }
}

static void test_bytes_that_are_no_answer_change_nothing(void **state)
{
    (void)state;
    open_socket();
    start(5 * NS_PER_MS);
    (void)run_reads(1);
    rig.is_garbage = true;
    const struct snapshot_owners *owners = run_reads(1);
    assert_int_equal(owners->state, SNAPSHOT_OWNERS_FAILED);
    assert_held(owners);
}

static void test_new_devices_are_asked_for_at_once_but_not_without_end(void **state)
{
    (void)state;
    open_socket();
    start(3600 * NS_PER_S);
    (void)run_reads(1);
    int64_t began_ns = time_mono_ns();
    attribution_refresh(rig.attribution);
    attribution_refresh(rig.attribution);
    (void)run_reads(1);
    assert_int_equal(rig.n_calls, 2);
    assert_true(time_mono_ns() - began_ns >= 900 * NS_PER_MS);
}

static void seen(void *context, const struct snapshot_holders *holders)
{
    (void)context;
    assert_ptr_equal(holders, attribution_holders(rig.attribution));
    assert_int_equal(holders->taken_ns, rig.snapshot->taken_ns);
    rig.n_seen++;
}

static void test_holders_are_of_the_newest_list_and_of_the_snapshot_observed(void **state)
{
    (void)state;
    open_socket();
    start(5 * NS_PER_MS);
    assert_int_equal(attribution_holders(rig.attribution)->n_holders, 0);
    attribution_observe(rig.attribution, rig.snapshot);
    (void)run_reads(1);
    const struct snapshot_holders *holders = attribution_holders(rig.attribution);
    assert_int_equal(holders->n_holders, 1);
    assert_string_equal(holders->holders[0].pod, "trainer");
    assert_true(holders->holders[0].is_listed);
    assert_int_equal(holders->sight, SNAPSHOT_SIGHT_OFF);
}

static void test_without_a_path_nobody_is_asked(void **state)
{
    (void)state;
    struct err e;
    rig.attribution = attribution_new(
        &(struct attribution_config){
            .loop = rig.loop, .metrics = rig.metrics, .procfs = "/nonexistent", .snapshot = snapshot, .seen = seen},
        &e);
    assert_non_null(rig.attribution);
    assert_null(attribution_owners(rig.attribution));
    attribution_refresh(rig.attribution);
    attribution_observe(rig.attribution, rig.snapshot);
    turn_until_count(&rig.n_seen, 1);
    assert_int_equal(attribution_holders(rig.attribution)->sight, SNAPSHOT_SIGHT_NO_PROCFS);
    attribution_observe(rig.attribution, rig.snapshot); /* its lists were looked at: at once */
    assert_int_equal(rig.n_seen, 2);
}

static void test_it_can_go_while_a_read_is_under_way(void **state)
{
    (void)state;
    open_socket();
    rig.is_silent = true;
    start(NS_PER_S);
    turn_until_count(&rig.n_calls, 1);
    attribution_free(rig.attribution);
    rig.attribution = NULL;
    assert_int_equal(rig.n_changes, 0);
    attribution_free(NULL);
}

static void test_a_path_that_is_none_is_refused(void **state)
{
    (void)state;
    struct err e;
    struct attribution_config config = {
        .loop = rig.loop, .metrics = rig.metrics, .path = "kubelet.sock", .snapshot = snapshot};
    assert_null(attribution_new(&config, &e));
    assert_int_equal(e.class, ERR_INVALID_ARGUMENT);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_the_kubelets_answer_becomes_the_owners),
        TEST(test_an_answer_near_the_kubelets_limit_is_taken),
        TEST(test_an_answer_beyond_it_is_a_failure_with_a_reason),
        TEST(test_no_socket_is_a_state_and_looked_for_again),
        TEST(test_the_last_holdings_stand_while_the_kubelet_restarts),
        TEST(test_a_rate_limit_makes_reads_rarer_until_one_gets_through),
        TEST(test_each_failure_is_named),
        TEST(test_bytes_that_are_no_answer_change_nothing),
        TEST(test_new_devices_are_asked_for_at_once_but_not_without_end),
        TEST(test_holders_are_of_the_newest_list_and_of_the_snapshot_observed),
        TEST(test_without_a_path_nobody_is_asked),
        TEST(test_it_can_go_while_a_read_is_under_way),
        TEST(test_a_path_that_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
