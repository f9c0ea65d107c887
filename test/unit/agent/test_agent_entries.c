/* `metrics:` entries as numbers of the node: each is what a trigger of its name gets. */
#include "agent/entries.h"

#include "trigger/node.h"

#include <math.h>

/* Two GPUs with 60 and 80 GB of which 15 and 60 are used and 40 and 20 free: the rest is the driver's. */
static void two_gpus(struct node *n)
{
    static const struct {
        const char *uuid;
        double total, used, free, utilization;
    } rows[] = {{"GPU-0", 60e9, 15e9, 40e9, 30}, {"GPU-1", 80e9, 60e9, 16e9, 70}};
    node_init(n);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        (void)node_add(n, SNAPSHOT_GPU, (int)i, rows[i].uuid);
        node_read(n, rows[i].uuid, SNAPSHOT_MEMORY_TOTAL, rows[i].total);
        node_read(n, rows[i].uuid, SNAPSHOT_MEMORY_USED, rows[i].used);
        node_read(n, rows[i].uuid, SNAPSHOT_MEMORY_FREE, rows[i].free);
        node_read(n, rows[i].uuid, SNAPSHOT_UTILIZATION, rows[i].utilization);
    }
    node_publish(n);
}

static struct trigger_default entry(const char *name, enum scaling_aggregation aggregation, int gpu_index)
{
    struct trigger_default d = {
        .has_aggregation = true, .aggregation = aggregation, .has_gpu_index = true, .gpu_index = gpu_index};
    (void)str_copy(d.name, sizeof(d.name), str_of(name));
    return d;
}

static struct agent_entries *entries_of(const struct trigger_default *defaults, size_t n)
{
    return agent_entries_new(
        &(struct trigger_settings){.default_scope = TRIGGER_NODE, .defaults = defaults, .n_defaults = n});
}

/* The value of the only entry; NaN where there is none. */
static double value_of(struct node *n, struct trigger_default d)
{
    size_t count;
    struct agent_entries *entries = entries_of(&d, 1);
    const struct exporter_entry *values = agent_entries_evaluate(entries, n->latest, n->now_ns, &count);
    double value = count ? values[0].value : (double)NAN;
    agent_entries_free(entries);
    return value;
}

static void test_an_entry_is_what_a_trigger_of_its_name_gets(void **state)
{
    (void)state;
    NODE n;
    two_gpus(&n);
    static const struct {
        const char *name;
        enum scaling_aggregation aggregation;
        int gpu_index;
        double want;
    } rows[] = {{"gpu_memory_used", SCALING_MAX, -1, 75},       {"gpu_memory_used", SCALING_AVG, -1, 50},
                {"gpu_memory_used", SCALING_MAX, 0, 25},        {"memory_used_mib", SCALING_SUM, -1, 75e9 / MIB},
                {"gpu_utilization", SCALING_MIN, -1, 30},       {"my-own-name", SCALING_MAX, -1, 70},
                {"keda_gpu_training", SCALING_AVG, -1, 50},     {"keda_gpu_vllm_inference", SCALING_MAX, -1, 75},
                {"keda_gpu_vllm_inference", SCALING_MAX, 0, 25}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_double_near(value_of(&n, entry(rows[i].name, rows[i].aggregation, rows[i].gpu_index)), rows[i].want,
                           1e-6);
    struct trigger_default d = entry("gpu_memory_used", SCALING_AVG, 0);
    d.has_aggregation = d.has_gpu_index = false;
    assert_double_near(value_of(&n, d), 75, 1e-9); /* the largest of all, as without an entry */
}

/* scaling-semantics 6: exported, not scaled on. */
static void test_free_memory_is_a_share_of_the_total(void **state)
{
    (void)state;
    NODE n;
    two_gpus(&n);
    assert_double_near(value_of(&n, entry("gpu_memory_free", SCALING_MAX, -1)), 40.0 / 60 * 100, 1e-9);
    assert_double_near(value_of(&n, entry("gpu_memory_free", SCALING_MIN, -1)), 20, 1e-9);
    assert_double_near(value_of(&n, entry("memory_free", SCALING_AVG, 1)), 20, 1e-9);
    node_wait(&n, 10);
    assert_double_near(value_of(&n, entry("memory_free", SCALING_MAX, -1)), (double)NAN, 0);
}

static void test_what_mig_devices_share_counts_once(void **state)
{
    (void)state;
    NODE n;
    node_init(&n);
    (void)node_add(&n, SNAPSHOT_MIG_PARENT, 0, "GPU-0");
    static const struct {
        int gi, ci;
        double free;
    } rows[] = {{1, 0, 10}, {1, 1, 10}, {2, 0, 40}};
    node_read(&n, "GPU-0", SNAPSHOT_MEMORY_TOTAL, 200);
    node_read(&n, "GPU-0", SNAPSHOT_MEMORY_FREE, 200);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct snapshot_device *d = node_add_mig(&n, 0, rows[i].gi, rows[i].ci);
        snapshot_store_record(n.store, d, SNAPSHOT_MEMORY_TOTAL, 100, n.now_ns);
        snapshot_store_record(n.store, d, SNAPSHOT_MEMORY_FREE, rows[i].free, n.now_ns);
    }
    node_publish(&n);
    assert_double_near(value_of(&n, entry("gpu_memory_free", SCALING_SUM, -1)), 50, 1e-9);
}

static void test_an_error_is_no_value(void **state)
{
    (void)state;
    NODE n;
    two_gpus(&n);
    assert_double_near(value_of(&n, entry("gpu_memory_used", SCALING_MAX, 7)), (double)NAN, 0); /* no such GPU */
    assert_double_near(value_of(&n, entry("sm_activity", SCALING_MAX, -1)), (double)NAN, 0);    /* never read */
    assert_double_near(value_of(&n, entry("vllm_queue_depth", SCALING_MAX, -1)), (double)NAN,
                       0); /* needs an endpoint */
    node_wait(&n, 60);
    assert_double_near(value_of(&n, entry("gpu_utilization", SCALING_MAX, -1)), (double)NAN, 0); /* too old */
    snapshot_unref(n.latest);
    n.latest = NULL;
    assert_double_near(value_of(&n, entry("gpu_utilization", SCALING_MAX, -1)), (double)NAN, 0);
    assert_double_near(value_of(&n, entry("gpu_memory_free", SCALING_MAX, -1)), (double)NAN, 0);
}

static void test_families_say_what_they_are(void **state)
{
    (void)state;
    const struct trigger_default defaults[] = {
        entry("gpu_memory_used", SCALING_AVG, -1), entry("vllm_queue_depth", SCALING_MAX, -1),
        entry("keda-gpu-ollama", SCALING_P95, 3), entry("gpu_memory_free", SCALING_MIN, -1)};
    size_t n;
    struct agent_entries *entries = entries_of(defaults, ARRAY_LEN(defaults));
    const struct exporter_entry *values = agent_entries_evaluate(entries, NULL, NS_PER_S, &n);
    assert_int_equal(n, 3);
    assert_string_equal(values[0].name, "gpu_memory_used");
    assert_string_equal(values[0].help,
                        "avg of memory_used, % of all GPUs of this node, as a trigger of this name sees it.");
    assert_string_equal(values[1].name, "keda_gpu_ollama");
    assert_string_equal(values[1].help,
                        "p95 of gpu_utilization, % of GPU 3 of this node, as a trigger of this name sees it.");
    assert_string_equal(values[2].help, "min of memory_free, % of all GPUs of this node.");
    agent_entries_free(entries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_entry_is_what_a_trigger_of_its_name_gets),
        cmocka_unit_test(test_free_memory_is_a_share_of_the_total),
        cmocka_unit_test(test_what_mig_devices_share_counts_once),
        cmocka_unit_test(test_an_error_is_no_value),
        cmocka_unit_test(test_families_say_what_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
