/* Every form of a device's id, on a node where minor numbers are not indices. */
#include "attribution/attribution_private.h"

#include "support.h"

#include <string.h>

#define GPU_A "GPU-11111111-2222-3333-4444-555555555555"
#define GPU_B "GPU-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
#define MIG_1 "MIG-10000000-0000-0000-0000-000000000001"
#define MIG_2 "MIG-10000000-0000-0000-0000-000000000002"
#define MIG_3 "MIG-10000000-0000-0000-0000-000000000003"

static void add_mig(struct snapshot_store *store, const char *uuid, int gi, const char *profile)
{
    struct snapshot_device d = {.kind = SNAPSHOT_MIG, .index = 1, .minor = 2, .gpu_instance = gi};
    (void)str_copy(d.uuid, sizeof(d.uuid), str_of(uuid));
    (void)str_copy(d.parent_uuid, sizeof(d.parent_uuid), str_of(GPU_B));
    (void)str_copy(d.mig_profile, sizeof(d.mig_profile), str_of(profile));
    (void)snapshot_store_add(store, &d);
}

/* GPU A: index 0, minor 3. GPU B: index 1, minor 2, cut into 2g.20gb (instance 5), 1g.10gb (7) and 1g.10gb+me (9). */
static int set_up(void **state)
{
    struct snapshot_store *store = snapshot_store_new(NS_PER_S);
    struct snapshot_device a = {.kind = SNAPSHOT_GPU, .index = 0, .minor = 3, .gpu_instance = -1};
    struct snapshot_device b = {.kind = SNAPSHOT_MIG_PARENT, .index = 1, .minor = 2, .gpu_instance = -1};
    (void)str_copy(a.uuid, sizeof(a.uuid), str_of(GPU_A));
    (void)str_copy(b.uuid, sizeof(b.uuid), str_of(GPU_B));
    (void)snapshot_store_add(store, &a);
    (void)snapshot_store_add(store, &b);
    add_mig(store, MIG_1, 5, "2g.20gb");
    add_mig(store, MIG_2, 7, "1g.10gb");
    add_mig(store, MIG_3, 9, "1g.10gb+me");
    *state = snapshot_store_publish(store, NS_PER_S);
    snapshot_store_free(store);
    return 0;
}

static int tear_down(void **state)
{
    snapshot_unref(*state);
    return 0;
}

struct row {
    const char *id;
    const char *device; /* UUID of the device found, NULL none */
    bool is_gpu, is_shared;
    int replica;
    const char *uuid; /* without a device: what the id itself says */
};

static void check(const char *id, const struct row *want, const struct attribution_device *got)
{
    const char *device = got->device ? got->device->uuid : NULL;
    bool is_device_right = want->device ? device && strcmp(device, want->device) == 0 : !device;
    if (got->is_gpu != want->is_gpu || !is_device_right)
        fail_msg("%s: is_gpu %d, device %s", id, got->is_gpu, device ? device : "none");
    if (want->is_gpu && (got->is_shared != want->is_shared || got->replica != want->replica))
        fail_msg("%s: shared %d, replica %d", id, got->is_shared, got->replica);
    if (want->uuid && !str_equals(got->uuid, want->uuid))
        fail_msg("%s: uuid %.*s", id, (int)got->uuid.len, got->uuid.ptr);
}

static void test_each_form_of_an_id_finds_its_device(void **state)
{
    static const struct row rows[] = {
        {GPU_A, GPU_A, true, false, -1, NULL},
        {"GPU-AAAAAAAA-BBBB-CCCC-DDDD-EEEEEEEEEEEE", GPU_B, true, false, -1, NULL},
        {MIG_2, MIG_2, true, false, -1, NULL},
        {"MIG-" GPU_B "/7/0", MIG_2, true, false, -1, NULL}, /* before R470 */
        {GPU_A "::0", GPU_A, true, true, 0, NULL},
        {GPU_A "::11", GPU_A, true, true, 11, NULL},
        {MIG_1 "::7", MIG_1, true, true, 7, NULL},
        {GPU_A "-3", GPU_A, true, true, 3, NULL},  /* HAMi */
        {"nvidia3", GPU_A, true, false, -1, NULL}, /* GKE: the minor, not the index */
        {"nvidia2/gi7", MIG_2, true, false, -1, NULL},
        {"nvidia3/vgpu0", GPU_A, true, true, 0, NULL},
        {"nvidia2/gi5/vgpu2", MIG_1, true, true, 2, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct attribution_device got = attribution_resolve_id(str_of(rows[i].id), str_of("any.com/name"), *state);
        check(rows[i].id, &rows[i], &got);
    }
}

static void test_a_gpu_that_is_not_there_is_no_other_one(void **state)
{
    static const struct row rows[] = {
        {"GPU-99999999-2222-3333-4444-555555555555", NULL, true, false, -1, "GPU-99999999-2222-3333-4444-555555555555"},
        {"GPU-99999999-2222-3333-4444-555555555555::4", NULL, true, true, 4,
         "GPU-99999999-2222-3333-4444-555555555555"},
        {"MIG-99999999-0000-0000-0000-000000000001", NULL, true, false, -1, "MIG-99999999-0000-0000-0000-000000000001"},
        {"MIG-" GPU_B "/8/0", NULL, true, false, -1, "MIG-" GPU_B "/8/0"},
        {"MIG-" GPU_B "/7", NULL, true, false, -1, NULL},
        {"MIG-" GPU_B "/7/0/1", NULL, true, false, -1, NULL},
        {"nvidia0", NULL, true, false, -1, ""}, /* an index, were it one, would find A */
        {"nvidia2/gi1", NULL, true, false, -1, ""},
        {"nvidia99999999999", NULL, false, false, -1, NULL},
        {GPU_A "x", NULL, true, false, -1, NULL},
        {GPU_A "-3x", NULL, true, false, -1, NULL},
        {"GPU-short", NULL, true, false, -1, "GPU-short"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct attribution_device got = attribution_resolve_id(str_of(rows[i].id), str_of("nvidia.com/gpu"), *state);
        check(rows[i].id, &rows[i], &got);
    }
}

static void test_what_is_no_gpu_is_passed_over(void **state)
{
    static const char *const ids[] = {
        "",        "0",        "1234", "0000:3b:00.0", "nvidia", "nvidiactl", "nvidia2/x",
        "nvidia-", "/dev/kvm", "::",   "/vgpu0",       "gpu-3",  "nvidia3x",  "nvidia2/gi"};
    static const struct row none = {.is_gpu = false};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        struct attribution_device got = attribution_resolve_id(str_of(ids[i]), str_of("nvidia.com/gpu"), *state);
        check(ids[i], &none, &got);
    }
}

static void test_words_count_for_nvidias_resources_only(void **state)
{
    struct attribution_device got = attribution_resolve_id(str_of("all"), str_of("nvidia.com/gpu"), *state);
    assert_true(got.is_gpu && got.is_all);
    got = attribution_resolve_id(str_of("all"), str_of("example.com/fuse"), *state);
    assert_false(got.is_gpu);
    got = attribution_resolve_id(str_of("tegra"), str_of("nvidia.com/gpu"), *state);
    assert_true(got.is_gpu);
    assert_null(got.device); /* a Jetson has one GPU */
}

static void test_dra_names_of_both_generations_find_their_device(void **state)
{
    static const struct row rows[] = {
        {"gpu-3", GPU_A, true, false, -1, NULL},
        {"gpu-2", GPU_B, true, false, -1, NULL},
        {"gpu-2-mig-2g20gb-14-0", MIG_1, true, false, -1, NULL},
        {"gpu-2-mig-1g10gb-19-4", MIG_2, true, false, -1, NULL},
        {"gpu-2-mig-1g10gb-me-20-6", MIG_3, true, false, -1, NULL},
        {"gpu-2-mig-3g40gb-9-4", NULL, true, false, -1, NULL},
        {"gpu-2-mig-19-4-1", NULL, true, false, -1, NULL}, /* which of three, its placement would say */
        {"gpu-2-mig-", NULL, true, false, -1, NULL},
        {"gpu-2-mig-1", NULL, true, false, -1, NULL},
        {"gpu-7", NULL, true, false, -1, NULL},
        {"gpu-vfio-0", NULL, false, false, -1, NULL},
        {"gpu-", NULL, false, false, -1, NULL},
        {"", NULL, false, false, -1, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct attribution_device got = attribution_resolve_dra(str_of("gpu.nvidia.com"), str_of(rows[i].id), *state);
        check(rows[i].id, &rows[i], &got);
    }
    assert_false(attribution_resolve_dra(str_of("compute-domain.nvidia.com"), str_of("gpu-3"), *state).is_gpu);
}

static void test_a_placement_of_the_older_names_is_plain_where_there_is_one_instance(void **state)
{
    (void)state;
    struct snapshot_store *store = snapshot_store_new(NS_PER_S);
    struct snapshot_device b = {.kind = SNAPSHOT_MIG_PARENT, .minor = 2, .gpu_instance = -1};
    (void)str_copy(b.uuid, sizeof(b.uuid), str_of(GPU_B));
    (void)snapshot_store_add(store, &b);
    add_mig(store, MIG_2, 7, "1g.10gb");
    struct snapshot *s = snapshot_store_publish(store, NS_PER_S);
    struct attribution_device got = attribution_resolve_dra(str_of("gpu.nvidia.com"), str_of("gpu-2-mig-19-4-1"), s);
    assert_non_null(got.device);
    assert_string_equal(got.device->uuid, MIG_2);
    snapshot_unref(s);
    snapshot_store_free(store);
}

static void test_placements_tell_apart_devices_of_one_profile(void **state)
{
    (void)state;
    static const char *const uuids[] = {MIG_1, MIG_2, MIG_3};
    static const struct row rows[] = {
        {"gpu-2-mig-1g10gb-19-0", MIG_1, true, false, -1, NULL},
        {"gpu-2-mig-1g10gb-19-2", MIG_2, true, false, -1, NULL},
        {"gpu-2-mig-1g10gb-19-4", MIG_3, true, false, -1, NULL},
        {"gpu-2-mig-1g10gb-19-6", NULL, true, false, -1, NULL},
        {"gpu-2-mig-19-2-1", MIG_2, true, false, -1, NULL},
        {"gpu-2-mig-15-2-2", NULL, true, false, -1, NULL},
        {"gpu-2-mig-2g20gb-14-2", NULL, true, false, -1, NULL},
    };
    struct snapshot_store *store = snapshot_store_new(NS_PER_S);
    struct snapshot_device b = {.kind = SNAPSHOT_MIG_PARENT, .minor = 2, .gpu_instance = -1};
    (void)str_copy(b.uuid, sizeof(b.uuid), str_of(GPU_B));
    (void)snapshot_store_add(store, &b);
    for (uint32_t i = 0; i < 3; i++) {
        add_mig(store, uuids[i], 7 + (int)i, "1g.10gb");
        struct snapshot_device *d = snapshot_store_find(store, uuids[i]);
        d->placement_start = 2 * i;
        d->placement_size = 1;
    }
    struct snapshot *s = snapshot_store_publish(store, NS_PER_S);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct attribution_device got = attribution_resolve_dra(str_of("gpu.nvidia.com"), str_of(rows[i].id), s);
        check(rows[i].id, &rows[i], &got);
    }
    snapshot_unref(s);
    snapshot_store_free(store);
}

static void test_without_a_snapshot_ids_are_read_all_the_same(void **state)
{
    (void)state;
    struct attribution_device got = attribution_resolve_id(str_of(GPU_A "::1"), str_of("nvidia.com/gpu"), NULL);
    assert_true(got.is_gpu && got.is_shared);
    assert_null(got.device);
    assert_true(str_equals(got.uuid, GPU_A));
    assert_true(attribution_resolve_dra(str_of("gpu.nvidia.com"), str_of("gpu-1-mig-1g10gb-19-4"), NULL).is_gpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_form_of_an_id_finds_its_device),
        cmocka_unit_test(test_a_gpu_that_is_not_there_is_no_other_one),
        cmocka_unit_test(test_what_is_no_gpu_is_passed_over),
        cmocka_unit_test(test_words_count_for_nvidias_resources_only),
        cmocka_unit_test(test_dra_names_of_both_generations_find_their_device),
        cmocka_unit_test(test_a_placement_of_the_older_names_is_plain_where_there_is_one_instance),
        cmocka_unit_test(test_placements_tell_apart_devices_of_one_profile),
        cmocka_unit_test(test_without_a_snapshot_ids_are_read_all_the_same),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
