/* trigger_evaluate: which devices count, by index, UUID and product, and on GPUs with MIG. */
#include "trigger/trigger.h"

#include "node.h"

/* ---- selection ---- */

static void test_devices_are_selected_by_index_uuid_and_product(void **state)
{
    (void)state;
    NODE n;
    NODE_WITH(n, 10, 20, 30);
    (void)str_copy(snapshot_store_find(n.store, "GPU-2")->product, SNAPSHOT_NAME_MAX, str_of("NVIDIA A10G"));
    node_publish(&n);
    assert_double_same(VALUE(n), 30);
    assert_double_same(VALUE(n, "gpuIndex", "0"), 10);
    assert_double_same(VALUE(n, "gpuIndex", "-1"), 30);
    assert_double_same(VALUE(n, "gpuUUID", "gpu-1"), 20);
    assert_double_same(VALUE(n, "gpuProduct", "h100"), 20);
    assert_double_same(VALUE(n, "gpuProduct", "NVIDIA-A10G"), 30); /* as node labels spell it */
    assert_double_same(VALUE(n, "gpuProduct", "nvidia a10"), 30);
    assert_double_same(VALUE(n, "gpuProduct", "NVIDIA", "gpuIndex", "1"), 20);
}

static void test_no_match_names_what_there_is(void **state)
{
    (void)state;
    NODE n;
    NODE_WITH(n, 10, 20);
    struct answer a = ASK(n, "gpuIndex", "99");
    assert_both_refused(&a, ERR_FAILED_PRECONDITION,
                        "no GPU matches gpuIndex 99; there are: GPU 0 (NVIDIA H100 80GB HBM3, GPU-0), GPU 1 (");
    a = ASK(n, "gpuUUID", "GPU-1", "gpuIndex", "0");
    assert_both_refused(&a, ERR_FAILED_PRECONDITION, "no GPU matches gpuIndex 0 gpuUUID GPU-1; there are");
    a = ASK(n, "gpuProduct", "B200");
    assert_both_refused(&a, ERR_FAILED_PRECONDITION, "no GPU matches gpuProduct B200; there are");
    NODE many;
    NODE_WITH(many, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
    a = ASK(many, "gpuIndex", "10");
    assert_contains(a.all.value_error.text, " and 2 more");
}

static void test_no_snapshot_and_no_device_are_unavailable_for_both(void **state)
{
    (void)state;
    NODE n;
    node_init(&n);
    struct answer a = ASK(n);
    assert_both_refused(&a, ERR_UNAVAILABLE, "no GPU has been read yet");
    node_publish(&n);
    snapshot_store_header(n.store)->driver = SNAPSHOT_DRIVER_NO_DEVICES;
    node_publish(&n);
    a = ASK(n);
    assert_both_refused(&a, ERR_UNAVAILABLE, "driver no_devices");
    assert_int_equal(a.all.n_inputs, 0);
}

/* ---- MIG ---- */

/* GPU 0 whole; GPU 1 with MIG: gpu instances 1 (two compute instances) and 2. */
static void mig_node(struct node *n)
{
    node_init(n);
    (void)node_add(n, SNAPSHOT_GPU, 0, "GPU-0");
    (void)node_add(n, SNAPSHOT_MIG_PARENT, 1, "GPU-1");
    (void)node_add_mig(n, 1, 1, 0);
    (void)node_add_mig(n, 1, 1, 1);
    (void)node_add_mig(n, 1, 2, 0);
    static const struct {
        const char *uuid;
        double used, total, activity;
    } rows[] = {{"GPU-0", 8192, 81920, 40},
                {"GPU-1", 30000, 81920, -1},
                {"MIG-1-1-0", 5120, 10240, 60},
                {"MIG-1-1-1", 5120, 10240, 60},
                {"MIG-1-2-0", 1024, 10240, 20}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        node_read(n, rows[i].uuid, SNAPSHOT_MEMORY_USED, rows[i].used * MIB);
        node_read(n, rows[i].uuid, SNAPSHOT_MEMORY_TOTAL, rows[i].total * MIB);
        if (rows[i].activity >= 0)
            node_read(n, rows[i].uuid, SNAPSHOT_SM_ACTIVITY, rows[i].activity);
        bool is_mig = rows[i].uuid[0] == 'M';
        if (is_mig || rows[i].activity < 0)
            node_fail(n, rows[i].uuid, SNAPSHOT_UTILIZATION, SNAPSHOT_UNSUPPORTED);
        if (!is_mig)
            node_read(n, rows[i].uuid, SNAPSHOT_POWER, 100 + 550 * (double)i);
    }
    node_read(n, "GPU-0", SNAPSHOT_UTILIZATION, 40);
    node_publish(n);
}

static void test_mig_memory_counts_once_an_instance_and_not_the_parents(void **state)
{
    (void)state;
    NODE n;
    mig_node(&n);
    struct answer a = ASK(n, "metricType", "memory_used_mib", "aggregation", "sum");
    assert_double_same(a.value, 8192 + 5120 + 1024);
    assert_int_equal(a.all.n_inputs, 3);
    assert_string_equal(a.all.inputs[1].device.uuid, "MIG-1-1-0");
    assert_string_equal(trigger_input_label(&a.all.inputs[1]), "1g.10gb");
    assert_string_equal(trigger_input_label(&a.all.inputs[0]), "H100 80GB HBM3");
    assert_contains(a.said.rule, "sum of 3 devices over 15s");
    assert_double_same(VALUE(n, "metricType", "memory_used"), 50);
}

static void test_mig_board_values_count_once_a_chip(void **state)
{
    (void)state;
    NODE n; /* B.2 #33 */
    mig_node(&n);
    struct answer a = ASK(n, "metricType", "power_draw", "aggregation", "sum", "targetValue", "300");
    assert_double_same(a.value, 750);
    assert_int_equal(a.all.n_inputs, 2);
    a = ASK(n, "metricType", "power_draw", "gpuUUID", "MIG-1-2-0", "targetValue", "300");
    assert_double_same(a.value, 650); /* the chip that the MIG device is on */
}

static void test_mig_utilization_is_absent_and_activity_is_read(void **state)
{
    (void)state;
    NODE n; /* B.2 #32 */
    mig_node(&n);
    struct answer a = ASK(n, "aggregation", "avg");
    assert_double_same(a.value, 40);
    assert_true(WARNED(a, "NVML has no utilisation of MIG devices"));
    assert_double_near(VALUE(n, "metricType", "sm_activity", "aggregation", "avg"), 40, 1e-9);
    a = ASK(n, "gpuIndex", "1");
    assert_both_refused(&a, ERR_FAILED_PRECONDITION, "GPU 1 MIG 1g.10gb");
}

static void test_what_is_unsupported_is_said_with_the_reason_that_applies(void **state)
{
    (void)state;
    NODE n;
    mig_node(&n);
    node_fail(&n, "MIG-1-1-0", SNAPSHOT_SM_ACTIVITY, SNAPSHOT_UNSUPPORTED); /* as gpu/ does for shared instances */
    node_fail(&n, "MIG-1-1-1", SNAPSHOT_SM_ACTIVITY, SNAPSHOT_UNSUPPORTED);
    node_publish(&n);
    struct answer a = ASK(n, "metricType", "sm_activity");
    assert_true(WARNED(a, "left out, without sm_activity: GPU 1 MIG 1g.10gb; compute instances that share a GPU "
                          "instance have no activity of their own"));
    assert_false(WARNED(a, "Hopper"));
    node_fail(&n, "GPU-0", SNAPSHOT_SM_ACTIVITY, SNAPSHOT_UNSUPPORTED);
    node_publish(&n);
    a = ASK(n, "metricType", "sm_activity");
    assert_true(WARNED(a, "share a GPU instance"));
    assert_true(WARNED(a, "activity needs a Hopper or newer GPU and the right to profile it"));
    node_fail(&n, "MIG-1-1-0", SNAPSHOT_ENCODER_UTILIZATION, SNAPSHOT_UNSUPPORTED);
    node_publish(&n);
    a = ASK(n, "metricType", "encoder_utilization", "gpuUUID", "MIG-1-1-0");
    assert_both_refused(&a, ERR_FAILED_PRECONDITION, "NVML has no utilisation of MIG devices");
}

static void test_mig_devices_are_selected_by_their_gpu_and_by_uuid(void **state)
{
    (void)state;
    NODE n;
    mig_node(&n);
    struct answer a = ASK(n, "metricType", "memory_used", "gpuIndex", "1");
    assert_double_same(a.value, 50);
    assert_int_equal(a.all.n_inputs, 2);
    assert_int_equal(ASK(n, "metricType", "memory_used", "gpuUUID", "GPU-1").all.n_inputs, 2);
    a = ASK(n, "metricType", "memory_used", "gpuUUID", "MIG-1-1-1"); /* the second of its instance, asked for */
    assert_int_equal(a.all.n_inputs, 1);
    assert_string_equal(a.all.inputs[0].device.uuid, "MIG-1-1-1");
    NODE empty;
    node_init(&empty);
    (void)node_add(&empty, SNAPSHOT_MIG_PARENT, 0, "GPU-0");
    node_publish(&empty);
    a = ASK(empty);
    assert_both_refused(&a, ERR_FAILED_PRECONDITION, "GPU 0 (NVIDIA H100 80GB HBM3, MIG on, GPU-0)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices_are_selected_by_index_uuid_and_product),
        cmocka_unit_test(test_no_match_names_what_there_is),
        cmocka_unit_test(test_no_snapshot_and_no_device_are_unavailable_for_both),
        cmocka_unit_test(test_mig_memory_counts_once_an_instance_and_not_the_parents),
        cmocka_unit_test(test_mig_board_values_count_once_a_chip),
        cmocka_unit_test(test_mig_utilization_is_absent_and_activity_is_read),
        cmocka_unit_test(test_what_is_unsupported_is_said_with_the_reason_that_applies),
        cmocka_unit_test(test_mig_devices_are_selected_by_their_gpu_and_by_uuid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
