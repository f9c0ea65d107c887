/* The devices of pods: several, shared, MIG, chosen, simulated; and the past of memory. */
#include "workload/workload.h"

#include "world.h"

#include <math.h>

#define UTILIZATION_80 "metricType", "gpu_utilization", "targetValue", "80"

/* ---- several GPUs ---- */

static struct fleet_device *give(struct world *w, const char *pod, const char *node, enum snapshot_field field,
                                 double value)
{
    struct fleet_device *d = world_gpu(w, node);
    (void)world_hold(w, node, "ml", pod, d);
    world_read(w, d, field, value);
    return d;
}

static void test_gpus_of_a_pod_make_one_value(void **state)
{
    (void)state;
    static const struct {
        const char *metric;
        enum snapshot_field field;
        double readings[2], want;
    } cases[] = {
        {"gpu_utilization", SNAPSHOT_UTILIZATION, {40, 80}, 60},
        {"memory_utilization", SNAPSHOT_MEMORY_UTILIZATION, {10, 20}, 15},
        {"sm_activity", SNAPSHOT_SM_ACTIVITY, {10, 30}, 20},
        {"encoder_utilization", SNAPSHOT_ENCODER_UTILIZATION, {10, 30}, 20},
        {"temperature", SNAPSHOT_TEMPERATURE, {60, 75}, 75},
        {"power_draw", SNAPSHOT_POWER, {200, 300}, 500},
        {"pcie_tx_kbps", SNAPSHOT_PCIE_TX, {1000, 3000}, 4},
        {"nvlink_rx_mbps", SNAPSHOT_NVLINK_RX, {1048576, 1048576}, 2},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        WORLD w;
        WORLD_INIT(w, "metricType", cases[i].metric, "targetValue", "80");
        (void)world_pod(&w, "a", "n1");
        (void)give(&w, "a", "n1", cases[i].field, cases[i].readings[0]);
        (void)give(&w, "a", "n1", cases[i].field, cases[i].readings[1]);
        assert_double_near(VALUE(w), cases[i].want, 1e-9);
    }
}

static void test_devices_are_chosen_within_each_pod(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value;
        double want;
    } cases[] = {
        {"gpuIndex", "0", 10 + 30},  {"gpuIndex", "1", 20 + 40},        {"gpuUUID", "GPU-n1-1", 20},
        {"gpuUUID", "gpu-n1-2", 30}, {"gpuProduct", "h100", 100.0 / 2}, {"gpuProduct", "H100-80GB", 100.0 / 2},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        WORLD w;
        WORLD_INIT(w, UTILIZATION_80, cases[i].key, cases[i].value);
        (void)world_pod(&w, "a", "n1");
        (void)world_pod(&w, "b", "n1");
        (void)give(&w, "a", "n1", SNAPSHOT_UTILIZATION, 10);
        (void)give(&w, "a", "n1", SNAPSHOT_UTILIZATION, 20);
        (void)give(&w, "b", "n1", SNAPSHOT_UTILIZATION, 30);
        (void)give(&w, "b", "n1", SNAPSHOT_UTILIZATION, 40);
        const struct workload_answer *a = world_evaluate(&w);
        double sum = 0;
        for (size_t k = 0; k < 2; k++)
            sum += a->inputs[k].counted->load.window.value;
        assert_double_near(sum, cases[i].want, 1e-9);
    }
}

static void test_gpus_of_a_pod_are_in_the_order_of_the_node(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80, "gpuIndex", "0");
    (void)world_pod(&w, "a", "n1");
    struct fleet_device *first = world_gpu(&w, "n1"), *second = world_gpu(&w, "n1");
    (void)world_hold(&w, "n1", "ml", "a", second);
    (void)world_hold(&w, "n1", "ml", "a", first);
    world_read(&w, first, SNAPSHOT_UTILIZATION, 10);
    world_read(&w, second, SNAPSHOT_UTILIZATION, 20);
    assert_double_near(VALUE(w), 10, 1e-9);
}

static void test_choice_that_fits_no_gpu_of_any_pod_is_refused_and_named(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80, "gpuIndex", "3");
    (void)world_busy(&w, "a", "n1", 50);
    assert_refused(w, ERR_FAILED_PRECONDITION, "none of its GPUs on node n1 is asked for by gpuIndex");
}

static void test_device_without_the_metric_is_left_out(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    (void)world_busy(&w, "a", "n1", 50);
    world_status(&w, give(&w, "a", "n1", SNAPSHOT_UTILIZATION, 0), FLEET_UNSUPPORTED);
    assert_double_near(VALUE(w), 50, 1e-9);
    world_status(&w, &world_node(&w, "n1")->devices[0], FLEET_UNSUPPORTED);
    assert_refused(w, ERR_FAILED_PRECONDITION, "GPU 0 of node n1 does not have gpu_utilization");
}

static void test_one_missing_device_makes_the_pod_missing(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    (void)world_busy(&w, "a", "n1", 50);
    (void)world_busy(&w, "b", "n1", 50);
    struct fleet_device *d = give(&w, "b", "n1", SNAPSHOT_UTILIZATION, 20);
    static const enum fleet_status bad[] = {FLEET_MISSING, FLEET_NOT_YET};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        world_status(&w, d, bad[i]);
        assert_double_near(VALUE(w), 160, 1e-9);
        assert_int_equal(state_of(&w.answer, 1), SCALING_POD_MISSING);
        assert_int_equal(w.answer.inputs[1].counted->reading, i ? SCALING_READ_NOT_YET : SCALING_READ_MISSING);
    }
    world_status(&w, &world_node(&w, "n1")->devices[1], FLEET_MISSING); /* beside one that is not due yet */
    (void)world_evaluate(&w);
    assert_int_equal(w.answer.inputs[1].counted->reading, SCALING_READ_MISSING);
    world_status(&w, &world_node(&w, "n1")->devices[1], FLEET_OK);
    world_node(&w, "n1")->node.state = FLEET_NODE_STALE; /* nothing is due from a silent node */
    (void)world_evaluate(&w);
    assert_int_equal(w.answer.inputs[1].counted->reading, SCALING_READ_MISSING);
    world_node(&w, "n1")->node.state = FLEET_NODE_UP;
    world_status(&w, d, FLEET_OK);
    d->lost_reason = "fell off the bus";
    assert_double_near(VALUE(w), 160, 1e-9);
    assert_contains(w.answer.inputs[1].text, "GPU 2 of node n1 is lost: fell off the bus");
}

static void test_exclusive_holder_counts_what_is_its_own_time(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    (void)world_busy(&w, "a", "n1", 90); /* the window still has the pod before it */
    world_read_holder(&w, "n1", "a", SNAPSHOT_UTILIZATION, 12);
    assert_double_near(VALUE(w), 12, 1e-9);
}

static void test_devices_with_processes_only_count_where_none_is_listed(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    (void)world_busy(&w, "a", "n1", 50);
    struct fleet_device *other = world_gpu(&w, "n1");
    world_hold(&w, "n1", "ml", "a", other)->is_listed = false;
    world_read(&w, other, SNAPSHOT_UTILIZATION, 100);
    assert_double_near(VALUE(w), 50, 1e-9);
    struct fleet_holder *h = world_node(&w, "n1")->holders;
    h[0].is_listed = h[1].is_listed = false;
    assert_double_near(VALUE(w), 75, 1e-9);
}

/* ---- shared ---- */

/* A device with these holders: pods of this workload "a", "b", ... and then others. */
static struct fleet_device *share(struct world *w, const double *shares, size_t own, size_t others, double device)
{
    static const char *const names[] = {"a", "b", "c", "d"}, *const tenants[] = {"x", "y", "z"};
    struct fleet_device *d = world_gpu(w, "n1");
    world_read(w, d, SNAPSHOT_UTILIZATION, device);
    for (size_t i = 0; i < own + others; i++) {
        const char *name = i < own ? names[i] : tenants[i - own];
        if (i < own)
            (void)world_pod(w, name, "n1");
        struct fleet_holder *h = world_hold(w, "n1", i < own ? "ml" : "other", name, d);
        h->is_shared = true;
        h->is_measured = shares != NULL;
        if (shares)
            world_read_holder(w, "n1", name, SNAPSHOT_UTILIZATION, shares[i]);
    }
    return d;
}

static void test_shared_gpu_counts_what_is_done_of_what_is_fair(void **state)
{
    (void)state;
    static const struct {
        double shares[4];
        size_t own, others;
        double device, want; /* of pod a */
    } cases[] = {
        {{25, 25, 25, 25}, 4, 0, 100, 100}, /* four that fight for a full GPU */
        {{8, 92}, 1, 1, 100, 16},
        {{0, 92}, 1, 1, 92, 0},
        {{25}, 1, 0, 30, 30},         /* alone: the device's */
        {{10, 0, 90}, 1, 2, 100, 20}, /* who does nothing takes no part */
        {{20, 20}, 1, 1, 40, 100 * 20 / 80.0},
        {{60, 50}, 1, 1, 100, 100}, /* the device is at least the sum, at most 100 */
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        WORLD w;
        WORLD_INIT(w, UTILIZATION_80);
        (void)share(&w, cases[i].shares, cases[i].own, cases[i].others, cases[i].device);
        const struct workload_answer *a = world_evaluate(&w);
        assert_int_equal(a->inputs[0].counted->reading, SCALING_READ_OK);
        assert_double_near(a->inputs[0].counted->load.window.value, cases[i].want, 1e-9);
        assert_int_equal(a->inputs[0].devices[0].counted.holders, cases[i].own + cases[i].others);
        assert_int_equal(a->inputs[0].devices[0].counted.own_holders, cases[i].own);
    }
}

static void test_shared_gpu_without_shares_is_split_where_all_is_ours(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    (void)share(&w, NULL, 2, 0, 100);
    (void)world_evaluate(&w);
    assert_double_near(w.answer.inputs[0].counted->load.window.value, 100, 1e-9);
    assert_double_near(VALUE(w), 200, 1e-9);
}

static void test_shared_gpu_without_shares_bounds_the_pod(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    (void)share(&w, NULL, 1, 1, 60);
    assert_refused(w, ERR_FAILED_PRECONDITION, "GPU 0 of node n1 has 2 holders, 1 of them of this workload");
    assert_true(w.answer.is_active); /* unknown is not idle */
    (void)world_busy(&w, "b", "n1", 50);
    assert_double_near(VALUE(w), 160, 1e-9); /* between 50 and 110: the worst case asks for the present 2 */
    assert_double_near(w.answer.result.hi, 110, 1e-9);
    assert_double_near(w.answer.inputs[0].counted->bound.value, 60, 1e-9);
}

static void test_host_process_on_a_shared_gpu_is_a_foreign_holder(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    struct fleet_device *d = share(&w, (const double[]){20}, 1, 0, 60);
    struct fleet_holder *host = world_hold(&w, "n1", "", "", d);
    host->is_listed = false;
    host->is_measured = host->is_shared = true;
    world_read_holder(&w, "n1", "", SNAPSHOT_UTILIZATION, 40);
    (void)world_evaluate(&w);
    const struct scaling_device *counted = &w.answer.inputs[0].devices[0].counted;
    assert_int_equal(counted->holders, 2);
    assert_int_equal(counted->own_holders, 1);
    assert_int_equal(counted->sharers, 2);
    assert_double_near(counted->share_sum, 60, 1e-9);
}

static void test_tenant_with_a_name_like_ours_is_foreign(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    struct fleet_device *d = share(&w, NULL, 1, 0, 60);
    world_hold(&w, "n1", "other", "a", d)->is_shared = true;
    (void)world_evaluate(&w);
    assert_int_equal(w.answer.inputs[0].devices[0].counted.own_holders, 1);
    assert_int_equal(w.answer.inputs[0].counted->reading, SCALING_READ_UNSHARED);
}

static void test_missing_share_is_a_missing_pod(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    (void)share(&w, (const double[]){20, 30}, 1, 1, 60);
    struct world_node *n = world_node(&w, "n1");
    n->of_holders[0][0].status = FLEET_MISSING;
    (void)world_evaluate(&w);
    assert_int_equal(w.answer.inputs[0].counted->reading, SCALING_READ_MISSING);
    n->of_holders[0][0].status = FLEET_UNSUPPORTED; /* the driver gives none: as without shares */
    (void)world_evaluate(&w);
    assert_int_equal(w.answer.inputs[0].counted->reading, SCALING_READ_UNSHARED);
}

/* 50 of a full GPU beside one that does the rest is 100; as if alone it would be 50. */
static void test_part_of_another_holder_that_is_not_known_is_not_none(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    (void)share(&w, (const double[]){50, 50}, 1, 1, 100);
    struct world_node *n = world_node(&w, "n1");
    n->of_holders[1][0].status = FLEET_MISSING;
    (void)world_evaluate(&w);
    assert_int_equal(w.answer.inputs[0].counted->reading, SCALING_READ_UNSHARED);
    assert_double_near(w.answer.inputs[0].counted->bound.value, 100, 1e-9);
    n->of_holders[1][0].status = FLEET_NOT_YET; /* it has just come */
    (void)world_evaluate(&w);
    assert_int_equal(w.answer.inputs[0].counted->reading, SCALING_READ_OK);
}

static void test_shared_memory_is_own_of_own_and_free(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, "metricType", "memory_used_percent", "targetValue", "80");
    const double gib = 1073741824;
    struct fleet_device *d = share(&w, (const double[]){1, 1}, 1, 1, 50);
    d->memory_reserved = UINT64_C(4) << 30;
    world_read(&w, d, SNAPSHOT_MEMORY_USED, 40 * gib);
    world_read_holder(&w, "n1", "a", SNAPSHOT_MEMORY_USED, 12 * gib);
    world_read_holder(&w, "n1", "x", SNAPSHOT_MEMORY_USED, 28 * gib);
    (void)world_evaluate(&w);
    const struct scaling_device *counted = &w.answer.inputs[0].devices[0].counted;
    assert_double_near(counted->value, 50, 1e-9);
    assert_double_near(counted->share, 15, 1e-9);
    assert_double_near(counted->free, 45, 1e-9);
    assert_double_near(w.answer.inputs[0].counted->load.window.value, 25, 1e-9); /* 12 of 12 + 36 */
}

/* ---- MIG ---- */

static void test_mig_slices_count_and_boards_carry_board_values(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, "metricType", "power_draw", "targetValue", "200");
    (void)world_pod(&w, "a", "n1");
    (void)world_pod(&w, "b", "n1");
    struct fleet_device *parent = world_device(&w, "n1", SNAPSHOT_MIG_PARENT, 0);
    for (size_t i = 0; i < 3; i++) {
        struct fleet_device *slice = world_device(&w, "n1", SNAPSHOT_MIG, 0);
        slice->parent_uuid = parent->uuid;
        slice->gpu_instance = (int)i + 1;
        (void)world_hold(&w, "n1", "ml", i < 2 ? "a" : "b", slice);
    }
    world_read(&w, parent, SNAPSHOT_POWER, 300);
    assert_double_near(VALUE(w), 300, 1e-9); /* all of it is ours: 150 each */
    assert_int_equal(w.answer.inputs[0].n_devices, 1);
    assert_ptr_equal(w.answer.inputs[0].devices[0].device, parent);
    assert_double_near(w.answer.inputs[0].counted->load.window.value, 150, 1e-9);
    struct fleet_device *other = world_device(&w, "n1", SNAPSHOT_MIG, 0);
    other->parent_uuid = parent->uuid;
    (void)world_hold(&w, "n1", "other", "tenant", other);
    (void)world_evaluate(&w);
    assert_int_equal(w.answer.inputs[0].counted->reading, SCALING_READ_UNSHARED);
}

static void test_compute_instances_of_one_gpu_instance_count_once_in_a_pod(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, "metricType", "memory_used_mib", "targetValue", "100");
    (void)world_pod(&w, "a", "n1");
    for (size_t i = 0; i < 2; i++) {
        struct fleet_device *slice = world_device(&w, "n1", SNAPSHOT_MIG, 0);
        slice->parent_uuid = "GPU-board";
        slice->gpu_instance = 3;
        (void)world_hold(&w, "n1", "ml", "a", slice);
        world_read(&w, slice, SNAPSHOT_MEMORY_USED, 50 * 1048576.0);
    }
    (void)world_evaluate(&w);
    assert_int_equal(w.answer.inputs[0].n_devices, 1);
    assert_double_near(w.answer.inputs[0].counted->load.window.value, 50, 1e-9);
}

/* ---- simulated ---- */

static void simulate(struct world *w, size_t gpus, unsigned each)
{
    for (size_t i = 0; i < gpus; i++)
        world_read(w, world_gpu(w, "n1"), SNAPSHOT_UTILIZATION, 10 * (double)(i + 1));
    world_node(w, "n1")->node.is_simulated = true;
    w->facts.simulated_gpus_per_pod = each;
}

static void test_simulated_gpus_go_to_pods_in_order_of_name(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    static const char *const names[] = {"a", "b", "c"};
    for (size_t i = 0; i < 3; i++) {
        struct kube_pod pod = world_kube_pod(&w, names[i], "n1");
        pod.requests_gpu = false;
        (void)world_add(&w, &pod);
    }
    simulate(&w, 4, 0);
    assert_refused(w, ERR_FAILED_PRECONDITION, "requests no GPU and holds none");
    w.facts.simulated_gpus_per_pod = 1;
    assert_double_near(VALUE(w), 60, 1e-9);
    assert_int_equal(w.answer.inputs[2].devices[0].device->index, 2);
    assert_null(w.answer.inputs[2].devices[0].holder);
    w.facts.simulated_gpus_per_pod = 2; /* a: 10, 20; b: 30, 40; c: as a */
    assert_double_near(VALUE(w), 35.0 + 100 * (5.0 / (5 + 90) + 10.0 / (10 + 80)), 1e-9);
}

static void test_gpus_are_not_given_where_somebody_hands_them_out(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    (void)world_pod(&w, "a", "n1");
    simulate(&w, 2, 1);
    (void)world_hold(&w, "n1", "other", "tenant", &world_node(&w, "n1")->devices[1]);
    assert_refused(w, ERR_UNAVAILABLE, "the agent of node n1 lists no GPU of it");
}

/* ---- memory's past ---- */

static void set_minutes(struct world *w, const float *lows, const float *highs, size_t n)
{
    struct world_node *node = world_node(w, "n1");
    for (size_t i = 0; i < n; i++)
        node->minutes[0][i] = (struct snapshot_extremes){.low = lows[i], .high = highs[i]};
    node->holders[0].n_minutes = n;
}

static struct fleet_device *memory_pod(struct world *w, double ready_s, double used_percent, double utilization)
{
    struct kube_pod pod = world_kube_pod(w, "a", "n1");
    pod.condition_s = world_api_now(w) - ready_s;
    (void)world_add(w, &pod);
    struct fleet_device *d = world_gpu(w, "n1");
    (void)world_hold(w, "n1", "ml", "a", d);
    world_read(w, d, SNAPSHOT_MEMORY_USED, (double)d->memory_total * used_percent / 100);
    world_read(w, d, SNAPSHOT_UTILIZATION, utilization);
    return d;
}

static void test_memory_that_says_nothing_counts_as_utilization(void **state)
{
    (void)state;
    static const struct {
        double ready_s;
        float low, high; /* of each minute; the last one has been at `first` */
        float first;
        double used, want; /* -1: held for want of a verdict */
    } cases[] = {
        {3600, 90, 90, 90, 90, 30},                            /* never below T */
        {3600, 50, 50, 50, 50, 30},                            /* flat for ten minutes */
        {3600, 40, 60, 40, 60, 60},                            /* honest */
        {660, 40, 60, 40, 60, 60},                             /* eleven whole minutes */
        {200, 50, 50, 50, 50, -1},                             /* not known yet */
        {600, 50, 50, 50, 50, -1},                             /* nine finished minutes and a part */
        {660, 50, 50, 50, 50, 30},  {200, 90, 90, 20, 90, 30}, /* what was before Ready does not count */
        {30, 20, 90, 20, 90, 30},                              /* no minute began since Ready: the reading alone */
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        WORLD w;
        WORLD_INIT(w, "metricType", "memory_used_percent", "targetValue", "80");
        (void)memory_pod(&w, cases[i].ready_s, cases[i].used, 30);
        float lows[SNAPSHOT_MINUTES], highs[SNAPSHOT_MINUTES];
        for (size_t k = 0; k < SNAPSHOT_MINUTES; k++) {
            lows[k] = k == 5 ? cases[i].first : cases[i].low;
            highs[k] = cases[i].high;
        }
        set_minutes(&w, lows, highs, SNAPSHOT_MINUTES);
        double value = VALUE(w);
        assert_int_equal(w.answer.result.is_hold, cases[i].want < 0);
        if (cases[i].want >= 0)
            assert_double_near(value, cases[i].want, 1e-9);
    }
}

static void test_unready_pod_does_not_become_honest_by_its_loading(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, "metricType", "memory_used_percent", "targetValue", "80");
    (void)memory_pod(&w, 3600, 90, 30);
    float lows[SNAPSHOT_MINUTES], highs[SNAPSHOT_MINUTES];
    for (size_t k = 0; k < SNAPSHOT_MINUTES; k++)
        lows[k] = highs[k] = k > 5 ? 5 : 90;
    set_minutes(&w, lows, highs, SNAPSHOT_MINUTES);
    struct kube_pod pod = world_kube_pod(&w, "a", "n1");
    pod.is_ready = false;
    pod.condition_s = world_api_now(&w) - 60;
    workload_pod_free(w.pods[0]);
    w.pods[0] = workload_pod_new(&pod, w.now_ns); /* a hub that never saw it Ready */
    (void)world_evaluate(&w);
    assert_int_equal(w.answer.inputs[0].counted->reading, SCALING_READ_UNDECIDED);
    assert_double_near(w.answer.inputs[0].counted->bound.value, 90, 1e-9);
    assert_true(w.answer.result.is_hold);
    struct kube_pod ready = world_kube_pod(&w, "a", "n1"); /* one that did knows what is of its life */
    workload_pod_free(w.pods[0]);
    w.pods[0] = workload_pod_new(&ready, w.now_ns);
    world_update(&w, w.pods[0], &pod);
    (void)world_evaluate(&w);
    assert_true(w.answer.inputs[0].counted->memory.history_s >= 600);
}

static void test_memory_in_mib_has_its_past_in_mib(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, "metricType", "memory_used_mib", "targetValue", "60000");
    (void)memory_pod(&w, 3600, 50, 30);
    set_minutes(&w, (const float[]){25, 25}, (const float[]){50, 50}, 2);
    (void)world_evaluate(&w);
    const struct scaling_memory *m = &w.answer.inputs[0].counted->memory;
    assert_double_near(m->full, 81920, 1e-9);
    assert_double_near(m->lowest.value, 20480, 1e-3);
    assert_double_near(m->highest.value, 40960, 1e-3);
    assert_double_near(m->history_s, 0, 0); /* the ten minutes are not whole */
}

static void test_simulated_memory_has_the_past_that_this_hub_saw(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, "metricType", "memory_used_percent", "targetValue", "80");
    (void)world_pod(&w, "a", "n1");
    simulate(&w, 1, 1);
    struct fleet_device *d = &world_node(&w, "n1")->devices[0];
    for (int i = 0; i < 13; i++) {
        world_wait(&w, 60);
        world_read(&w, d, SNAPSHOT_UTILIZATION, 20);
        world_read(&w, d, SNAPSHOT_MEMORY_USED, (double)d->memory_total * (i % 2 ? 0.4 : 0.5));
        world_look(&w);
    }
    assert_double_near(VALUE(w), 50, 1e-4);
    const struct scaling_memory *m = &w.answer.inputs[0].counted->memory;
    assert_double_near(m->lowest.value, 40, 1e-4);
    assert_double_near(m->highest.value, 50, 1e-4);
    assert_true(m->history_s >= 600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpus_of_a_pod_make_one_value),
        cmocka_unit_test(test_devices_are_chosen_within_each_pod),
        cmocka_unit_test(test_gpus_of_a_pod_are_in_the_order_of_the_node),
        cmocka_unit_test(test_choice_that_fits_no_gpu_of_any_pod_is_refused_and_named),
        cmocka_unit_test(test_device_without_the_metric_is_left_out),
        cmocka_unit_test(test_one_missing_device_makes_the_pod_missing),
        cmocka_unit_test(test_exclusive_holder_counts_what_is_its_own_time),
        cmocka_unit_test(test_devices_with_processes_only_count_where_none_is_listed),
        cmocka_unit_test(test_shared_gpu_counts_what_is_done_of_what_is_fair),
        cmocka_unit_test(test_shared_gpu_without_shares_is_split_where_all_is_ours),
        cmocka_unit_test(test_shared_gpu_without_shares_bounds_the_pod),
        cmocka_unit_test(test_host_process_on_a_shared_gpu_is_a_foreign_holder),
        cmocka_unit_test(test_tenant_with_a_name_like_ours_is_foreign),
        cmocka_unit_test(test_missing_share_is_a_missing_pod),
        cmocka_unit_test(test_part_of_another_holder_that_is_not_known_is_not_none),
        cmocka_unit_test(test_shared_memory_is_own_of_own_and_free),
        cmocka_unit_test(test_mig_slices_count_and_boards_carry_board_values),
        cmocka_unit_test(test_compute_instances_of_one_gpu_instance_count_once_in_a_pod),
        cmocka_unit_test(test_simulated_gpus_go_to_pods_in_order_of_name),
        cmocka_unit_test(test_gpus_are_not_given_where_somebody_hands_them_out),
        cmocka_unit_test(test_memory_that_says_nothing_counts_as_utilization),
        cmocka_unit_test(test_unready_pod_does_not_become_honest_by_its_loading),
        cmocka_unit_test(test_memory_in_mib_has_its_past_in_mib),
        cmocka_unit_test(test_simulated_memory_has_the_past_that_this_hub_saw),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
