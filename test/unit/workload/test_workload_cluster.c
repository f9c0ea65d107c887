/* Scope cluster: the devices of all nodes, silent ones included. */
#include "workload/workload.h"

#include "world.h"

#define CLUSTER "metricType", "gpu_utilization", "targetValue", "80", "scope", "cluster"

static void four_gpus(struct world *w)
{
    static const double loads[] = {10, 20, 30, 60};
    for (size_t i = 0; i < 4; i++)
        world_read(w, world_gpu(w, i < 2 ? "n1" : "n2"), SNAPSHOT_UTILIZATION, loads[i]);
}

static const struct workload_answer *ask_without_facts(struct world *w)
{
    struct workload_fleet fleet = world_fleet(w);
    arena_fini(&w->arena);
    arena_init(&w->arena, WORLD_ARENA_BYTES);
    workload_evaluate(w->memory, NULL, &fleet, w->now_ns, &w->arena, &w->answer);
    return &w->answer;
}

static void test_aggregation_is_over_all_nodes(void **state)
{
    (void)state;
    static const struct {
        const char *aggregation;
        double want;
    } cases[] = {{"max", 60}, {"min", 10}, {"avg", 30}, {"sum", 120}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        WORLD w;
        WORLD_INIT(w, CLUSTER, "aggregation", cases[i].aggregation);
        four_gpus(&w);
        const struct workload_answer *a = ask_without_facts(&w);
        assert_int_equal(a->value_error.class, ERR_NONE);
        assert_true(a->is_cluster);
        assert_double_near(a->value, cases[i].want, 1e-9);
        assert_true(a->is_active && a->is_above);
        assert_int_equal(a->cluster.n_inputs, 4);
        assert_string_equal(a->cluster.inputs[2].device.node, "n2");
        assert_int_equal(a->n_nodes, 2);
    }
}

static void test_devices_of_a_silent_node_stay_for_15_minutes(void **state)
{
    (void)state;
    static const struct {
        double silent_s, want;
        enum trigger_input_state state;
    } cases[] = {
        {5, 120, TRIGGER_INPUT_MEASURED},
        {6, 30 + 80 + 80, TRIGGER_INPUT_MISSING},
        {900, 30 + 80 + 80, TRIGGER_INPUT_MISSING},
        {901, 30, TRIGGER_INPUT_EXPIRED},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        WORLD w;
        WORLD_INIT(w, CLUSTER, "aggregation", "sum");
        four_gpus(&w);
        world_node(&w, "n2")->node.state = FLEET_NODE_STALE;
        (void)snprintf(world_node(&w, "n2")->node.text, SNAPSHOT_TEXT_MAX, "silent for a while");
        world_wait(&w, cases[i].silent_s);
        for (size_t k = 0; k < 2; k++)
            world_read(&w, &world_node(&w, "n1")->devices[k], SNAPSHOT_UTILIZATION, k ? 20 : 10);
        const struct workload_answer *a = ask_without_facts(&w);
        assert_double_near(a->value, cases[i].want, 1e-9);
        assert_int_equal(a->cluster.inputs[3].state, cases[i].state);
        assert_double_near(a->cluster.inputs[3].value, 60, 1e-9);
        struct trigger_explanation said;
        trigger_explain(&a->cluster, &said);
        if (cases[i].state != TRIGGER_INPUT_MEASURED)
            assert_contains(said.warnings[said.n_warnings - 1], "n2 GPU 0 (last read");
    }
}

static void test_device_that_was_never_read_is_left_out_after_15_minutes(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, CLUSTER, "aggregation", "sum");
    four_gpus(&w);
    struct fleet_device *d = world_gpu(&w, "n1");
    world_status(&w, d, FLEET_MISSING);
    for (size_t i = 0; i < 4; i++)
        world_readings(&w, &world_node(&w, i < 2 ? "n1" : "n2")->devices[i % 2])[0].status = FLEET_OK;
    assert_double_near(ask_without_facts(&w)->value, 200, 1e-9);
    assert_int_equal(w.answer.cluster.inputs[2].age_ns, -1);
    world_wait(&w, 901);
    four_gpus(&w); /* others */
    for (size_t i = 0; i < 2; i++)
        world_read(&w, &world_node(&w, "n1")->devices[i], SNAPSHOT_UTILIZATION, 1);
    (void)ask_without_facts(&w);
    assert_int_equal(w.answer.cluster.inputs[2].state, TRIGGER_INPUT_EXPIRED);
}

static void test_device_whose_first_sample_is_not_due_stays(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, CLUSTER, "aggregation", "sum");
    struct fleet_device *d = world_gpu(&w, "n1"), *lost = world_gpu(&w, "n1");
    (void)ask_without_facts(&w);
    world_wait(&w, 1000);
    world_read(&w, world_gpu(&w, "n1"), SNAPSHOT_UTILIZATION, 10);
    world_read(&w, lost, SNAPSHOT_UTILIZATION, 95);
    world_status(&w, d, FLEET_NOT_YET);
    lost->lost_reason = "fell off the bus";
    assert_double_near(ask_without_facts(&w)->value, 10 + 80 + 95, 1e-9);
    assert_int_equal(w.answer.cluster.inputs[0].state, TRIGGER_INPUT_MISSING);
    assert_int_equal(w.answer.cluster.inputs[1].state, TRIGGER_INPUT_MISSING);
}

static void test_memory_is_a_percentage_of_each_device(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, "metricType", "memory_used_percent", "targetValue", "80", "scope", "cluster");
    struct fleet_device *a = world_gpu(&w, "n1"), *b = world_gpu(&w, "n2");
    world_read(&w, a, SNAPSHOT_MEMORY_USED, (double)a->memory_total / 4);
    world_read(&w, b, SNAPSHOT_MEMORY_USED, (double)b->memory_total / 2);
    assert_double_near(ask_without_facts(&w)->value, 50, 1e-9);
    b->memory_total = 0; /* not known: no percentage of it, and unknown is not idle */
    assert_double_near(ask_without_facts(&w)->value, 80, 1e-9);
    assert_int_equal(w.answer.cluster.inputs[1].state, TRIGGER_INPUT_MISSING);
    assert_int_equal(w.n_wants, 1);
}

static void test_unsupported_devices_are_left_out(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, CLUSTER, "aggregation", "avg");
    four_gpus(&w);
    world_status(&w, &world_node(&w, "n2")->devices[1], FLEET_UNSUPPORTED);
    assert_double_near(ask_without_facts(&w)->value, 20, 1e-9);
    for (size_t i = 0; i < 4; i++)
        world_status(&w, &world_node(&w, i < 2 ? "n1" : "n2")->devices[i % 2], FLEET_UNSUPPORTED);
    assert_int_equal(ask_without_facts(&w)->value_error.class, ERR_FAILED_PRECONDITION);
    assert_contains(w.answer.value_error.text, "n1 GPU 0");
}

static void test_without_nodes_there_is_no_value(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, CLUSTER);
    assert_int_equal(ask_without_facts(&w)->value_error.class, ERR_UNAVAILABLE);
    assert_contains(w.answer.value_error.text, "no agent is known");
    world_node(&w, "n1")->node.is_synced = false;
    (void)ask_without_facts(&w);
    assert_contains(w.answer.value_error.text, "no node has reported one yet");
    assert_int_equal(w.answer.n_silent_nodes, 1);
    assert_int_equal(w.answer.active_error.class, ERR_UNAVAILABLE);
    four_gpus(&w);
    struct workload_fleet fleet = world_fleet(&w);
    ARENA_AUTO struct arena small;
    arena_init(&small, 600);
    workload_evaluate(w.memory, NULL, &fleet, w.now_ns, &small, &w.answer);
    assert_int_equal(w.answer.value_error.class, ERR_RESOURCE_EXHAUSTED);
}

static void test_scope_workload_needs_facts(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, "metricType", "gpu_utilization", "targetValue", "80");
    assert_int_equal(ask_without_facts(&w)->value_error.class, ERR_UNAVAILABLE);
}

static void test_a_mig_device_chooses_its_board_for_board_metrics(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, "metricType", "power_draw", "targetValue", "300", "scope", "cluster", "gpuUUID", "mig-n1-1");
    struct fleet_device *parent = world_device(&w, "n1", SNAPSHOT_MIG_PARENT, 0);
    struct fleet_device *slice = world_device(&w, "n1", SNAPSHOT_MIG, 0);
    slice->parent_uuid = parent->uuid;
    world_read(&w, world_gpu(&w, "n1"), SNAPSHOT_POWER, 700);
    world_read(&w, parent, SNAPSHOT_POWER, 250);
    assert_double_near(ask_without_facts(&w)->value, 250, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_aggregation_is_over_all_nodes),
        cmocka_unit_test(test_devices_of_a_silent_node_stay_for_15_minutes),
        cmocka_unit_test(test_device_that_was_never_read_is_left_out_after_15_minutes),
        cmocka_unit_test(test_device_whose_first_sample_is_not_due_stays),
        cmocka_unit_test(test_memory_is_a_percentage_of_each_device),
        cmocka_unit_test(test_unsupported_devices_are_left_out),
        cmocka_unit_test(test_without_nodes_there_is_no_value),
        cmocka_unit_test(test_scope_workload_needs_facts),
        cmocka_unit_test(test_a_mig_device_chooses_its_board_for_board_metrics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
