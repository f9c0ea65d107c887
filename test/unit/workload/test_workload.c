/* workload_evaluate in scope workload: from the API's facts and the agents' readings to the value and why. */
#include "workload/workload.h"

#include "world.h"

static void test_value_is_the_sum_over_the_pods_own_gpus(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, "metricType", "gpu_utilization", "targetValue", "80");
    (void)world_busy(&w, "a", "n1", 90);
    (void)world_busy(&w, "b", "n2", 70);
    struct fleet_device *other = world_gpu(&w, "n1");
    (void)world_hold(&w, "n1", "other", "tenant", other);
    world_read(&w, other, SNAPSHOT_UTILIZATION, 100);
    assert_double_near(VALUE(w), 160, 1e-9);
    assert_int_equal(w.answer.result.rule, SCALING_RULE_KNOWN);
    assert_true(w.answer.is_active && w.answer.is_above);
    assert_int_equal(w.answer.n_inputs, 2);
    assert_string_equal(workload_pod_name(w.answer.inputs[1].pod), "b");
    assert_int_equal(w.answer.inputs[1].n_devices, 1);
    assert_double_near(w.answer.inputs[1].devices[0].counted.value, 70, 1e-9);
    assert_int_equal(w.answer.sent.proposal, 2);
}

static void test_max_counts_the_busiest_pod_for_all(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, "metricType", "gpu_utilization", "targetValue", "80", "aggregation", "max");
    (void)world_busy(&w, "a", "n1", 95);
    (void)world_busy(&w, "b", "n2", 20);
    assert_double_near(VALUE(w), 190, 1e-9);
}

static void test_dead_agent_does_not_scale_down(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, "metricType", "gpu_utilization", "targetValue", "80");
    struct fleet_device *a = world_busy(&w, "a", "n1", 80);
    (void)world_busy(&w, "b", "n2", 80);
    (void)VALUE(w);
    world_node(&w, "n2")->node.state = FLEET_NODE_CONNECTING;
    world_wait(&w, 6);
    world_read(&w, a, SNAPSHOT_UTILIZATION, 30);
    assert_double_near(VALUE(w), 160, 1e-9);
    assert_true(w.answer.result.is_hold);
    assert_int_equal(state_of(&w.answer, 1), SCALING_POD_MISSING);
    assert_contains(w.answer.inputs[1].text, "GPU 0 of node n2 was last read 6 s ago; its agent is connecting");
    assert_true(w.answer.is_active);
    assert_double_near(w.answer.inputs[1].counted->last_good.value, 80, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_value_is_the_sum_over_the_pods_own_gpus),
        cmocka_unit_test(test_max_counts_the_busiest_pod_for_all),
        cmocka_unit_test(test_dead_agent_does_not_scale_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
