/* trigger: what must hold on every node, tried on random ones: values are values, IsActive fails only with GetMetrics
 * and in the same words, and a GPU that is lost takes nothing away. */
#include "node.h"

#include <math.h>

enum { DEVICES_MAX = 24, ROUNDS = 4000 };

/* 0 to n - 1, the same in every run. */
static uint32_t pick(uint32_t *seed, uint32_t n)
{
    *seed = *seed * 1664525U + 1013904223U;
    return (*seed >> 16) % n;
}

static const enum snapshot_field fields[] = {SNAPSHOT_UTILIZATION, SNAPSHOT_SM_ACTIVITY, SNAPSHOT_MEMORY_USED,
                                             SNAPSHOT_MEMORY_TOTAL, SNAPSHOT_POWER};

/* Each reading steady at its value, so that the last one is also the mean; some old, failed, absent or never read. */
static void read_randomly(struct node *n, uint32_t *seed, const char *uuid)
{
    for (size_t f = 0; f < ARRAY_LEN(fields); f++) {
        int64_t now_ns = n->now_ns;
        uint32_t kind = pick(seed, 12);
        double most = fields[f] == SNAPSHOT_MEMORY_TOTAL ? 80e9 : fields[f] == SNAPSHOT_MEMORY_USED ? 70e9 : 100;
        if (kind == 0)
            node_fail(n, uuid, fields[f], SNAPSHOT_UNSUPPORTED);
        if (kind <= 1)
            continue;
        if (kind == 2)
            n->now_ns -= (int64_t)pick(seed, 1200) * NS_PER_S;
        node_read(n, uuid, fields[f], pick(seed, 5) == 0 ? 0 : most * (1 + pick(seed, 100)) / 100);
        n->now_ns = now_ns;
        if (kind == 3)
            node_fail(n, uuid, fields[f], SNAPSHOT_FAILED);
    }
}

/* Returns how many devices the node has: GPUs, and MIG devices of some of them. */
static size_t build_node(struct node *n, uint32_t *seed, char uuids[DEVICES_MAX][24])
{
    node_init(n);
    node_wait(n, 2000);
    size_t count = 0, gpus = pick(seed, 9);
    for (size_t g = 0; g < gpus; g++) {
        bool is_mig = pick(seed, 5) == 0;
        (void)snprintf(uuids[count], sizeof(uuids[count]), "GPU-%zu", g);
        (void)node_add(n, is_mig ? SNAPSHOT_MIG_PARENT : SNAPSHOT_GPU, (int)g, uuids[count++]);
        for (int i = 0; is_mig && i < 2 && count < DEVICES_MAX; i++) {
            (void)node_add_mig(n, (int)g, i, 0);
            (void)snprintf(uuids[count], sizeof(uuids[count]), "MIG-%zu-%d-0", g, i);
            count++;
        }
    }
    for (size_t i = 0; i < count; i++) {
        read_randomly(n, seed, uuids[i]);
        snapshot_store_find(n->store, uuids[i])->is_lost = pick(seed, 12) == 0;
    }
    node_publish(n);
    return count;
}

static struct answer ask_randomly(struct node *n, uint32_t seed)
{
    static const char *const metrics[] = {"gpu_utilization", "sm_activity", "memory_used", "memory_used_mib",
                                          "power_draw"};
    static const char *const aggregations[] = {"max", "min", "avg", "sum", "p95", "p99"};
    static const char *const rules[] = {"conservative", "conservative", "error", "ignore"};
    static const char *const thresholds[] = {"0", "50", "99"};
    static const char *const indexes[] = {"-1", "-1", "-1", "0", "5"};
    const char *metric = metrics[pick(&seed, 5)], *aggregation = aggregations[pick(&seed, 6)];
    const char *rule = rules[pick(&seed, 4)], *threshold = thresholds[pick(&seed, 3)], *index = indexes[pick(&seed, 5)];
    return ASK(*n, "metricType", metric, "aggregation", aggregation, "onMissing", rule, "activationThreshold",
               threshold, "gpuIndex", index, "targetValue", "60");
}

static void check_answer(const struct answer *a)
{
    const struct trigger_evaluation *all = &a->all;
    if (all->value_error.class == ERR_NONE)
        assert_true(isfinite(all->value) && all->value >= 0 && all->value <= 1e12);
    else
        assert_true(all->value_error.class == ERR_UNAVAILABLE || all->value_error.class == ERR_FAILED_PRECONDITION);
    assert_true((a->said.rule[0] != '\0') == (all->value_error.class == ERR_NONE));
    assert_true((a->said.active_rule[0] != '\0') == (all->active_error.class == ERR_NONE));
    if (all->active_error.class == ERR_NONE)
        return;
    assert_int_equal(all->active_error.class, all->value_error.class);
    assert_string_equal(all->active_error.text, all->value_error.text);
}

/* The value is what it was or more while a lost GPU counts, and the trigger does not fall asleep. */
static void check_loss(struct node *n, uint32_t question, const char *uuid)
{
    struct answer before = ask_randomly(n, question);
    if (before.all.trigger->on_missing != TRIGGER_MISSING_CONSERVATIVE || before.value < 0)
        return;
    bool was_active = before.active == 1;
    snapshot_store_find(n->store, uuid)->is_lost = true;
    node_publish(n);
    struct answer after = ask_randomly(n, question);
    check_answer(&after);
    if (after.value >= 0) /* else none is left, and KEDA's fallback acts */
        assert_true(after.value >= before.value - 1e-9);
    assert_true(!was_active || after.active == 1);
}

static void test_random_nodes_keep_the_rules(void **state)
{
    (void)state;
    uint32_t seed = 11;
    for (int round = 0; round < ROUNDS; round++) {
        char uuids[DEVICES_MAX][24];
        NODE n;
        size_t count = build_node(&n, &seed, uuids);
        uint32_t question = pick(&seed, 60000);
        struct answer a = ask_randomly(&n, question);
        check_answer(&a);
        for (size_t i = 0; count > 0 && i < 2; i++)
            check_loss(&n, question, uuids[pick(&seed, (uint32_t)count)]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_nodes_keep_the_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
