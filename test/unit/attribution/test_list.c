/* Answers of List, packed by protobuf-c as the kubelet packs them, to owners. */
#include "attribution/attribution_private.h"
#include "proto/proto.h"

#include "support.h"

#include <stdio.h>
#include <string.h>

#define GPU_A "GPU-11111111-2222-3333-4444-555555555555"
#define GPU_B "GPU-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
#define GONE  "GPU-99999999-9999-9999-9999-999999999999"

static int set_up(void **state)
{
    struct snapshot_store *store = snapshot_store_new(NS_PER_S);
    static const char *const uuids[] = {GPU_A, GPU_B};
    for (int i = 0; i < 2; i++) {
        struct snapshot_device d = {.kind = SNAPSHOT_GPU, .index = i, .minor = 1 - i, .gpu_instance = -1};
        (void)str_copy(d.uuid, sizeof(d.uuid), str_of(uuids[i]));
        (void)snapshot_store_add(store, &d);
    }
    *state = snapshot_store_publish(store, NS_PER_S);
    snapshot_store_free(store);
    return 0;
}

static int tear_down(void **state)
{
    snapshot_unref(*state);
    return 0;
}

/* One container of a pod with the ids of one resource, or one claim on a DRA device. */
struct entry {
    const char *ns, *pod, *container, *resource;
    const char *ids[4];
    const char *claim; /* of DRA: ids are devices of gpu.nvidia.com, the resource counts for nothing */
};

/* Append a field that holds a message or text. */
static void put(struct buf *out, unsigned field, const void *bytes, size_t len)
{
    (void)buf_append_char(out, (char)(field << 3 | 2));
    for (size_t rest = len;; rest >>= 7) {
        (void)buf_append_char(out, (char)(rest > 0x7F ? (rest & 0x7F) | 0x80 : rest));
        if (rest <= 0x7F)
            break;
    }
    (void)buf_append(out, bytes, len);
}

static void put_packed(struct buf *out, unsigned field, const ProtobufCMessage *message)
{
    BUF_AUTO struct buf bytes;
    buf_init(&bytes, 1 << 20);
    size_t len = protobuf_c_message_get_packed_size(message);
    char *to = buf_reserve(&bytes, len + 1);
    buf_advance(&bytes, protobuf_c_message_pack(message, (uint8_t *)to));
    put(out, field, bytes.data, len);
}

static char *text(const char *constant)
{
    return (char *)(uintptr_t)constant; /* protobuf-c does not write to it */
}

/* A pod of one container. */
static void put_pod(struct buf *out, const struct entry *entry)
{
    V1__ContainerDevices devices[4];
    V1__ContainerDevices *device_list[4];
    V1__ClaimResource claims[4];
    V1__ClaimResource *claim_list[4];
    V1__DynamicResource dynamic, *dynamic_list = &dynamic;
    V1__ContainerResources container, *container_list = &container;
    V1__PodResources pod;
    char *ids[4];
    size_t n = 0;
    v1__container_resources__init(&container);
    v1__dynamic_resource__init(&dynamic);
    v1__pod_resources__init(&pod);
    for (; n < ARRAY_LEN(ids) && entry->ids[n]; n++) {
        ids[n] = text(entry->ids[n]);
        v1__container_devices__init(&devices[n]);
        v1__claim_resource__init(&claims[n]);
        devices[n].resource_name = text(entry->resource);
        devices[n].device_ids = &ids[n];
        devices[n].n_device_ids = 1;
        claims[n].driver_name = text("gpu.nvidia.com");
        claims[n].pool_name = text("node-1");
        claims[n].device_name = ids[n];
        device_list[n] = &devices[n];
        claim_list[n] = &claims[n];
    }
    container.name = text(entry->container);
    container.cpu_ids = (int64_t[]){0, 1, 200};
    container.n_cpu_ids = 3;
    if (entry->claim) {
        dynamic.claim_name = text(entry->claim);
        dynamic.claim_namespace = text(entry->ns);
        dynamic.claim_resources = claim_list;
        dynamic.n_claim_resources = n;
        container.dynamic_resources = &dynamic_list;
        container.n_dynamic_resources = 1;
    } else {
        container.devices = device_list;
        container.n_devices = n;
    }
    pod.name = text(entry->pod);
    pod.namespace_ = text(entry->ns);
    pod.containers = &container_list;
    pod.n_containers = 1;
    put_packed(out, 1, &pod.base);
}

static struct snapshot_owners *parse_with(const struct entry *entries, size_t n, const struct snapshot *s,
                                          const struct attribution_evidence *evidence)
{
    BUF_AUTO struct buf bytes;
    struct err e;
    buf_init(&bytes, 1 << 24);
    for (size_t i = 0; i < n; i++)
        put_pod(&bytes, &entries[i]);
    struct snapshot_owners *owners =
        attribution_read_list((struct str){bytes.data, bytes.len}, s, evidence, 5 * NS_PER_S, &e);
    assert_non_null(owners);
    assert_int_equal(owners->n_pods, n);
    return owners;
}

static struct snapshot_owners *parse(const struct entry *entries, size_t n, const struct snapshot *s)
{
    return parse_with(entries, n, s, NULL);
}

/* The holders of a device as "ns/pod/container ns/pod/container". */
static void assert_holders(const struct snapshot_owners *owners, const char *uuid, const char *want)
{
    char got[512] = "";
    size_t n, len = 0;
    const struct snapshot_holding *h = snapshot_owners_of(owners, uuid, &n);
    for (size_t i = 0; i < n; i++)
        len += (size_t)snprintf(got + len, sizeof(got) - len, "%s%s/%s/%s", i ? " " : "", h[i].ns, h[i].pod,
                                h[i].container);
    assert_string_equal(got, want);
}

static const struct snapshot_holding *only_holding(const struct snapshot_owners *owners)
{
    assert_int_equal(owners->n_holdings, 1);
    return &owners->holdings[0];
}

static void test_a_container_holds_its_gpus(void **state)
{
    static const struct entry rows[] = {
        {"ml", "trainer", "main", "nvidia.com/gpu", {GPU_A, GPU_B}, NULL},
        {"kube-system", "proxy", "proxy", "", {NULL}, NULL},
    };
    struct snapshot_owners *owners = parse(rows, ARRAY_LEN(rows), *state);
    assert_int_equal(owners->state, SNAPSHOT_OWNERS_OK);
    assert_int_equal(owners->taken_ns, 5 * NS_PER_S);
    assert_int_equal(owners->n_holdings, 2);
    assert_int_equal(owners->n_matched, 2);
    assert_int_equal(owners->n_unmatched, 0);
    assert_holders(owners, GPU_A, "ml/trainer/main");
    assert_holders(owners, GPU_B, "ml/trainer/main");
    assert_string_equal(owners->holdings[0].resource, "nvidia.com/gpu");
    assert_false(owners->holdings[0].is_shared);
    snapshot_owners_unref(owners);
}

static void test_an_id_listed_for_each_numa_node_is_held_once(void **state)
{
    static const struct entry row = {"ml", "trainer", "main", "company.com/gpu", {GPU_A, GPU_A}, NULL};
    struct snapshot_owners *owners = parse(&row, 1, *state);
    assert_int_equal(only_holding(owners)->shares, 1);
    assert_int_equal(owners->n_matched, 1);
    snapshot_owners_unref(owners);
}

static void test_two_replicas_of_a_gpu_are_one_holding_of_two_shares(void **state)
{
    static const struct entry rows[] = {
        {"ml", "a", "main", "nvidia.com/gpu.shared", {GPU_A "::1", GPU_A "::3", GPU_A "::1"}, NULL},
        {"ml", "b", "main", "nvidia.com/gpu.shared", {GPU_A "::0"}, NULL},
    };
    struct snapshot_owners *owners = parse(rows, ARRAY_LEN(rows), *state);
    assert_holders(owners, GPU_A, "ml/a/main ml/b/main");
    assert_int_equal(owners->holdings[0].shares, 2);
    assert_int_equal(owners->holdings[0].replica, 1);
    assert_int_equal(owners->holdings[1].shares, 1);
    assert_true(owners->holdings[0].is_shared && owners->holdings[1].is_shared);
    assert_int_equal(owners->n_superseded, 0);
    snapshot_owners_unref(owners);
}

static void test_of_two_pods_with_one_exclusive_gpu_the_later_holds_it(void **state)
{
    static const struct entry rows[] = {
        {"ml", "ended", "main", "nvidia.com/gpu", {GPU_A}, NULL},
        {"ml", "runs", "main", "nvidia.com/gpu", {GPU_A}, NULL},
    };
    struct snapshot_owners *owners = parse(rows, ARRAY_LEN(rows), *state);
    assert_holders(owners, GPU_A, "ml/runs/main");
    assert_false(owners->holdings[0].is_shared);
    assert_int_equal(owners->n_superseded, 1);
    snapshot_owners_unref(owners);
}

/* The pods of "ml" that the text names have processes on GPU A. */
static bool is_alive(void *context, const char *uuid, const char *ns, const char *pod)
{
    return strcmp(uuid, GPU_A) == 0 && strcmp(ns, "ml") == 0 && strstr(context, pod) != NULL;
}

static void test_of_two_pods_with_one_exclusive_gpu_the_one_with_a_process_holds_it(void **state)
{
    static const struct entry rows[] = {
        {"ml", "first", "one", "nvidia.com/gpu", {GPU_A, GPU_B}, NULL},
        {"ml", "second", "one", "nvidia.com/gpu", {GPU_A, GPU_B}, NULL},
        {"ml", "third", "one", "nvidia.com/gpu", {GPU_A, GPU_B}, NULL},
    };
    static const struct {
        const char *alive, *want;
    } cases[] = {
        {"", "ml/third/one"},      {"first", "ml/first/one"},         {"second", "ml/second/one"},
        {"third", "ml/third/one"}, {"first second", "ml/second/one"}, {"first second third", "ml/third/one"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char alive[32];
        (void)str_copy(alive, sizeof(alive), str_of(cases[i].alive));
        struct snapshot_owners *owners =
            parse_with(rows, ARRAY_LEN(rows), *state, &(struct attribution_evidence){is_alive, alive});
        assert_holders(owners, GPU_A, cases[i].want);
        assert_holders(owners, GPU_B, "ml/third/one");
        assert_int_equal(owners->n_superseded, 4);
        snapshot_owners_unref(owners);
    }
}

static void test_a_sidecar_and_the_main_container_of_a_pod_hold_one_gpu_both(void **state)
{
    static const struct entry rows[] = {
        /* two messages of one pod read as two containers would */
        {"ml", "trainer", "sidecar", "nvidia.com/gpu", {GPU_A}, NULL},
        {"ml", "trainer", "main", "nvidia.com/gpu", {GPU_A}, NULL},
    };
    struct snapshot_owners *owners = parse(rows, ARRAY_LEN(rows), *state);
    assert_holders(owners, GPU_A, "ml/trainer/main ml/trainer/sidecar");
    assert_int_equal(owners->n_superseded, 0);
    assert_false(owners->holdings[0].is_shared); /* one pod has it to itself */
    snapshot_owners_unref(owners);
}

static void test_a_gpu_that_only_an_init_container_has_is_nobodys(void **state)
{
    static const struct entry row = {"ml", "starts", "main", "nvidia.com/gpu", {NULL}, NULL}; /* List leaves it out */
    struct snapshot_owners *owners = parse(&row, 1, *state);
    assert_int_equal(owners->n_holdings, 0);
    snapshot_owners_unref(owners);
}

static void test_the_holder_of_a_lost_gpu_is_kept(void **state)
{
    static const struct entry row = {"ml", "trainer", "main", "nvidia.com/gpu", {GONE, "nvidia9"}, NULL};
    struct snapshot_owners *owners = parse(&row, 1, *state);
    assert_holders(owners, GONE, "ml/trainer/main");
    assert_int_equal(owners->n_unmatched, 2);
    assert_int_equal(owners->n_holdings, 2);
    assert_string_equal(owners->holdings[0].uuid, ""); /* nvidia9 names no UUID */
    assert_string_equal(owners->holdings[0].device_id, "nvidia9");
    assert_false(owners->holdings[1].is_matched);
    snapshot_owners_unref(owners);
}

static void test_devices_of_other_kinds_are_not_counted(void **state)
{
    static const struct entry row = {"ml", "vm", "compute", "devices.kubevirt.io/kvm", {"kvm12", "0000:3b:00.0"}, NULL};
    struct snapshot_owners *owners = parse(&row, 1, *state);
    assert_int_equal(owners->n_holdings, 0);
    assert_int_equal(owners->n_unmatched, 0);
    snapshot_owners_unref(owners);
}

static void test_pods_on_one_claim_share_its_device(void **state)
{
    static const struct entry rows[] = {
        {"ml", "a", "one", "", {"gpu-1"}, "half"},
        {"ml", "a", "two", "", {"gpu-1"}, "half"},
        {"ml", "b", "one", "", {"gpu-1", "gpu-0"}, "half"},
    };
    struct snapshot_owners *owners = parse(rows, ARRAY_LEN(rows), *state);
    assert_holders(owners, GPU_A, "ml/a/one ml/a/two ml/b/one");
    assert_true(owners->holdings[0].is_shared && owners->holdings[0].is_dra);
    assert_string_equal(owners->holdings[0].claim, "half");
    assert_string_equal(owners->holdings[0].claim_ns, "ml");
    assert_string_equal(owners->holdings[0].resource, "gpu.nvidia.com");
    assert_holders(owners, GPU_B, "ml/b/one");
    assert_int_equal(owners->n_superseded, 0);
    snapshot_owners_unref(owners);
}

static void test_two_containers_of_one_pod_on_a_claim_do_not_share_with_others(void **state)
{
    static const struct entry rows[] = {
        {"ml", "a", "one", "", {"gpu-1"}, "whole"},
        {"ml", "a", "two", "", {"gpu-1"}, "whole"},
    };
    struct snapshot_owners *owners = parse(rows, ARRAY_LEN(rows), *state);
    assert_holders(owners, GPU_A, "ml/a/one ml/a/two");
    assert_false(owners->holdings[0].is_shared);
    snapshot_owners_unref(owners);
}

static void test_all_gpus_of_wsl_are_held(void **state)
{
    static const struct entry row = {"ml", "a", "one", "nvidia.com/gpu", {"all"}, NULL};
    struct snapshot_owners *owners = parse(&row, 1, *state);
    assert_holders(owners, GPU_A, "ml/a/one");
    assert_holders(owners, GPU_B, "ml/a/one");
    snapshot_owners_unref(owners);
}

static void test_the_longest_names_come_through_whole(void **state)
{
    char ns[64], pod[254], container[64];
    memset(ns, 'n', 63);
    memset(pod, 'p', 253);
    memset(container, 'c', 63);
    ns[63] = pod[253] = container[63] = '\0';
    struct entry row = {ns, pod, container, "nvidia.com/gpu", {GPU_A}, NULL};
    struct snapshot_owners *owners = parse(&row, 1, *state);
    assert_string_equal(only_holding(owners)->pod, pod);
    assert_string_equal(only_holding(owners)->ns, ns);
    assert_string_equal(only_holding(owners)->container, container);
    snapshot_owners_unref(owners);
}

static void test_unusual_bytes_in_names_are_carried_as_they_are(void **state)
{
    static const struct entry row = {"m\"l", "a\\b\n\xff", "\xc3\xa4", "nvidia.com/gpu", {GPU_A}, NULL};
    struct snapshot_owners *owners = parse(&row, 1, *state);
    assert_holders(owners, GPU_A, "m\"l/a\\b\n\xff/\xc3\xa4"); /* whoever shows them escapes them */
    snapshot_owners_unref(owners);
}

static void test_fields_of_a_newer_api_are_passed_over(void **state)
{
    BUF_AUTO struct buf pod;
    BUF_AUTO struct buf bytes;
    struct err e;
    static const struct entry row = {"ml", "a", "one", "nvidia.com/gpu", {GPU_A}, NULL};
    buf_init(&pod, 4096);
    buf_init(&bytes, 4096);
    put(&bytes, 14, "later", 5);
    (void)buf_append(&bytes, "\x78\x96\x01", 3);         /* 15: varint */
    (void)buf_append(&bytes, "\x79\0\0\0\0\0\0\0\0", 9); /* 15: 64 bit */
    (void)buf_append(&bytes, "\x7d\0\0\0\0", 5);         /* 15: 32 bit */
    put_pod(&bytes, &row);
    struct snapshot_owners *owners = attribution_parse((struct str){bytes.data, bytes.len}, *state, 1, &e);
    assert_non_null(owners);
    assert_holders(owners, GPU_A, "ml/a/one");
    snapshot_owners_unref(owners);
}

static void test_an_empty_answer_is_good_and_holds_nothing(void **state)
{
    struct err e;
    struct snapshot_owners *owners = attribution_parse((struct str){"", 0}, *state, 1, &e);
    assert_non_null(owners);
    assert_int_equal(owners->n_holdings, 0);
    assert_int_equal(owners->state, SNAPSHOT_OWNERS_OK);
    snapshot_owners_unref(owners);
}

static void test_an_answer_that_is_cut_is_refused_wherever_it_is_cut(void **state)
{
    BUF_AUTO struct buf bytes;
    struct err e;
    static const struct entry row = {"ml", "a", "one", "nvidia.com/gpu", {GPU_A}, NULL};
    buf_init(&bytes, 4096);
    put_pod(&bytes, &row);
    for (size_t len = 1; len < bytes.len; len++)
        if (attribution_parse((struct str){bytes.data, len}, *state, 1, &e))
            fail_msg("%zu of %zu bytes are taken", len, bytes.len);
    static const char *const bad[] = {"\x0b", "\x08", "\x0a\x05", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_null(attribution_parse(str_of(bad[i]), *state, 1, &e));
    assert_int_equal(e.class, ERR_INTERNAL);
}

static void test_more_holdings_than_the_ceiling_are_counted_not_kept(void **state)
{
    BUF_AUTO struct buf bytes;
    struct err e;
    char name[32];
    buf_init(&bytes, 1 << 24);
    for (int i = 0; i < SNAPSHOT_HOLDINGS_MAX + 5; i++) {
        (void)snprintf(name, sizeof(name), "pod-%d", i);
        struct entry row = {"ml", name, "one", "nvidia.com/gpu.shared", {GPU_A "::1"}, NULL};
        put_pod(&bytes, &row);
    }
    struct snapshot_owners *owners = attribution_parse((struct str){bytes.data, bytes.len}, *state, 1, &e);
    assert_non_null(owners);
    assert_int_equal(owners->n_holdings, SNAPSHOT_HOLDINGS_MAX);
    assert_int_equal(owners->n_dropped, 5);
    snapshot_owners_unref(owners);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_container_holds_its_gpus),
        cmocka_unit_test(test_an_id_listed_for_each_numa_node_is_held_once),
        cmocka_unit_test(test_two_replicas_of_a_gpu_are_one_holding_of_two_shares),
        cmocka_unit_test(test_of_two_pods_with_one_exclusive_gpu_the_later_holds_it),
        cmocka_unit_test(test_of_two_pods_with_one_exclusive_gpu_the_one_with_a_process_holds_it),
        cmocka_unit_test(test_a_sidecar_and_the_main_container_of_a_pod_hold_one_gpu_both),
        cmocka_unit_test(test_a_gpu_that_only_an_init_container_has_is_nobodys),
        cmocka_unit_test(test_the_holder_of_a_lost_gpu_is_kept),
        cmocka_unit_test(test_devices_of_other_kinds_are_not_counted),
        cmocka_unit_test(test_pods_on_one_claim_share_its_device),
        cmocka_unit_test(test_two_containers_of_one_pod_on_a_claim_do_not_share_with_others),
        cmocka_unit_test(test_all_gpus_of_wsl_are_held),
        cmocka_unit_test(test_the_longest_names_come_through_whole),
        cmocka_unit_test(test_unusual_bytes_in_names_are_carried_as_they_are),
        cmocka_unit_test(test_fields_of_a_newer_api_are_passed_over),
        cmocka_unit_test(test_an_empty_answer_is_good_and_holds_nothing),
        cmocka_unit_test(test_an_answer_that_is_cut_is_refused_wherever_it_is_cut),
        cmocka_unit_test(test_more_holdings_than_the_ceiling_are_counted_not_kept),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
