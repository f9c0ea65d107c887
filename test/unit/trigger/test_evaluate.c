/* trigger_evaluate: values, activity, missing and unsupported devices, and the sentences about them. */
#include "trigger/trigger.h"

#include "node.h"

/* ---- reference A.12 ---- */

static void test_aggregations_of_the_conformance_cases(void **state)
{
    (void)state;
    NODE one;
    NODE_WITH(one, 75);
    assert_double_same(VALUE(one), 75);
    NODE two;
    NODE_WITH(two, 30, 90);
    assert_double_same(VALUE(two, "gpuIndex", "1"), 90);
    NODE even;
    NODE_WITH(even, 60, 80);
    assert_double_same(VALUE(even, "aggregation", "avg"), 70);
    NODE four;
    NODE_WITH(four, 80, 40, 90, 55);
    assert_double_same(VALUE(four, "aggregation", "min"), 40);
    NODE three;
    NODE_WITH(three, 20, 30, 50);
    assert_double_same(VALUE(three, "aggregation", "sum"), 100);
    NODE hot;
    NODE_WITH(hot, 20, 30, 40, 95);
    assert_double_same(VALUE(hot, "aggregation", "p95"), 95);
    NODE many;
    NODE_WITH(many, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20);
    assert_double_same(VALUE(many, "aggregation", "p99"), 20);
    assert_double_same(VALUE(many, "aggregation", "p95"), 19);
}

static void add_state_t(struct node *n)
{
    static const struct {
        enum snapshot_field field;
        double gpu0, gpu1;
    } rows[] = {
        {SNAPSHOT_UTILIZATION, 80, 30},
        {SNAPSHOT_MEMORY_USED, 40960 * MIB, 16384 * MIB},
        {SNAPSHOT_MEMORY_TOTAL, 81920 * MIB, 81920 * MIB},
        {SNAPSHOT_TEMPERATURE, 65, 45},
        {SNAPSHOT_POWER, 250, 100},
        {SNAPSHOT_PCIE_TX, 8000e3, 2000e3},
        {SNAPSHOT_PCIE_RX, 4000e3, 1000e3},
        {SNAPSHOT_NVLINK_TX, 600 * MIB, 200 * MIB},
        {SNAPSHOT_NVLINK_RX, 500 * MIB, 150 * MIB},
    };
    node_init(n);
    (void)node_add(n, SNAPSHOT_GPU, 0, "GPU-0");
    (void)node_add(n, SNAPSHOT_GPU, 1, "GPU-1");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        node_read(n, "GPU-0", rows[i].field, rows[i].gpu0);
        node_read(n, "GPU-1", rows[i].field, rows[i].gpu1);
    }
    node_publish(n);
}

static void test_values_of_the_state_t(void **state)
{
    (void)state;
    static const struct {
        const char *texts[8];
        double want;
    } cases[] = {
        {{NULL}, 80},
        {{"aggregation", "avg"}, 55},
        {{"aggregation", "sum"}, 110},
        {{"aggregation", "min"}, 30},
        {{"aggregation", "p95"}, 80},
        {{"aggregation", "p99"}, 80},
        {{"gpuIndex", "0", "metricType", "memory_used_percent"}, 50},
        {{"gpuIndex", "1", "metricType", "memory_used"}, 20},
        {{"metricType", "temperature"}, 65},
        {{"metricType", "power_draw", "aggregation", "sum"}, 350},
        {{"metricType", "pcie_tx_kbps"}, 8000},
        {{"metricType", "pcie_rx_kbps", "aggregation", "sum"}, 5000},
        {{"metricType", "nvlink_tx_mbps"}, 600},
        {{"metricType", "nvlink_rx_mbps", "aggregation", "avg"}, 325},
        {{"gpuIndex", "1", "aggregation", "sum"}, 30},
        {{"metricType", "memory_used_mib"}, 40960},
        {{"profile", "distributed-training"}, 600},
    };
    NODE n;
    add_state_t(&n);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct answer a = ask(&n, metadata_of(cases[i].texts));
        assert_double_same(a.value, cases[i].want);
        assert_contains(a.said.rule, trigger_metric_unit(a.all.trigger->metric));
    }
}

static void test_activity_of_the_state_t(void **state)
{
    (void)state;
    NODE n;
    add_state_t(&n);
    assert_int_equal(ACTIVE(n, "activationThreshold", "50"), 1);
    assert_int_equal(ACTIVE(n, "activationThreshold", "90"), 0);
    assert_int_equal(ACTIVE(n, "activationThreshold", "80"), 0); /* strictly above */
    assert_int_equal(ACTIVE(n, "activationThreshold", "79.999"), 1);
    assert_int_equal(ACTIVE(n, "activationThreshold", "0"), 1);
    assert_int_equal(ACTIVE(n, "gpuIndex", "0", "activationThreshold", "50"), 1);
    assert_int_equal(ACTIVE(n, "gpuIndex", "1", "activationThreshold", "50"), 0);
    assert_int_equal(ACTIVE(n), 1);
    assert_int_equal(ACTIVE(n, "profile", "distributed-training"), 0);
    assert_int_equal(ACTIVE(n, "gpuIndex", "99"), -1);
}

static void memory_node(struct node *n, double used_mib, double total_mib)
{
    node_init(n);
    (void)node_add(n, SNAPSHOT_GPU, 0, "GPU-0");
    node_read(n, "GPU-0", SNAPSHOT_MEMORY_USED, used_mib * MIB);
    node_read(n, "GPU-0", SNAPSHOT_MEMORY_TOTAL, total_mib * MIB);
    node_publish(n);
}

static void test_memory_and_activity_of_the_conformance_cases(void **state)
{
    (void)state;
    NODE n;
    memory_node(&n, 6144, 8192);
    assert_double_same(VALUE(n, "metricType", "memory_used_percent"), 75);
    NODE full;
    memory_node(&full, 6000, 8192);
    assert_int_equal(ACTIVE(full, "profile", "vllm-inference"), 1);
    assert_int_equal(ACTIVE(full, "profile", "tgi-inference"), 1);
    NODE idle; /* B.1 #7: memory v2 without reserved */
    memory_node(&idle, 0, 15360);
    assert_int_equal(ACTIVE(idle, "profile", "batch"), 0);
    NODE busy;
    NODE_WITH(busy, 50);
    assert_int_equal(ACTIVE(busy), 1);
    NODE calm;
    NODE_WITH(calm, 5);
    assert_int_equal(ACTIVE(calm, "activationThreshold", "10"), 0);
    NODE mixed;
    NODE_WITH(mixed, 5, 90);
    assert_int_equal(ACTIVE(mixed, "activationThreshold", "50"), 1);
    NODE out;
    NODE_WITH(out, 95, 88);
    struct answer a = ASK(out, "activationThreshold", "10");
    assert_true(a.active == 1 && a.value > 80);
    NODE in;
    NODE_WITH(in, 5, 3);
    a = ASK(in, "activationThreshold", "10");
    assert_true(a.active == 0 && a.value < 80);
}

static void test_fractions_are_not_cut_off(void **state)
{
    (void)state;
    NODE n; /* B.2 #42 */
    memory_node(&n, (MIB - 1) / MIB, 1);
    node_read(&n, "GPU-0", SNAPSHOT_POWER, 0.999);
    node_publish(&n);
    assert_double_same(VALUE(n, "metricType", "power_draw"), 0.999);
    assert_double_same(VALUE(n, "metricType", "memory_used_mib"), (MIB - 1) / MIB);
    assert_true(VALUE(n, "metricType", "memory_used_percent") > 99.99);
}

/* ---- windows ---- */

static void test_value_is_the_mean_of_the_window(void **state)
{
    (void)state;
    NODE n;
    NODE_WITH(n, 100);
    for (int i = 0; i < 20; i++) {
        node_wait(&n, 1);
        node_read(&n, "GPU-0", SNAPSHOT_UTILIZATION, i < 15 ? 20 : 80);
        node_publish(&n);
    }
    struct answer a = ASK(n);
    assert_double_near(a.value, (10 * 20 + 5 * 80) / 15.0, 1e-9);
    assert_string_equal(a.said.rule, "max of 1 GPU over 15s: 40 % (GPU 0, GPU-0)");
    a = ASK(n, "window", "0");
    assert_double_same(a.value, 80);
    assert_string_equal(a.said.rule, "max of 1 GPU, newest reading: 80 % (GPU 0, GPU-0)");
    assert_double_near(VALUE(n, "window", "5"), 80, 1e-9);
}

static void test_activity_remembers_a_burst_for_its_window(void **state)
{
    (void)state;
    NODE n;
    NODE_WITH(n, 97);
    for (int i = 0; i < 59; i++) {
        node_wait(&n, 1);
        node_read(&n, "GPU-0", SNAPSHOT_UTILIZATION, 3);
        node_publish(&n);
    }
    struct answer a = ASK(n, "activationThreshold", "50");
    assert_int_equal(a.active, 1);
    assert_double_same(a.all.activity, 97);
    assert_double_same(a.value, 3);
    assert_string_equal(a.said.active_rule, "busiest GPU 0: 97 % within 1m, above 50 %");
    assert_int_equal(ACTIVE(n, "activationThreshold", "50", "activationWindow", "30"), 0);
    a = ASK(n, "activationThreshold", "50", "activationWindow", "0");
    assert_int_equal(a.active, 0);
    assert_string_equal(a.said.active_rule, "busiest GPU 0: 3 %, not above 50 %");
}

/* ---- missing, expired, unsupported ---- */

/* GPU 0 at `lost` goes silent for `seconds`, GPU 1 stays at `other`. */
static void silent_node(struct node *n, double lost, double other, double seconds)
{
    node_with(n, (const double[]){lost, other}, 2);
    node_wait(n, seconds);
    node_fail(n, "GPU-0", SNAPSHOT_UTILIZATION, SNAPSHOT_FAILED);
    node_read(n, "GPU-1", SNAPSHOT_UTILIZATION, other);
    node_publish(n);
}

static void test_missing_device_counts_as_target_or_last_value_where_that_raises(void **state)
{
    (void)state;
    static const struct {
        double lost, other;
        const char *aggregation;
        double want;
        bool is_counted;
    } cases[] = {
        {95, 5, "max", 95, true}, /* B.2 #30: a lost busy GPU does not scale down */
        {10, 5, "max", 80, true}, /* at least the target */
        {10, 90, "max", 90, false}, {95, 5, "avg", 50, true},  {95, 99, "avg", 99, false},
        {10, 5, "sum", 85, true},   {95, 5, "sum", 100, true}, {95, 5, "min", 5, false},
        {10, 99, "min", 99, false}, {95, 5, "p95", 95, true},  {80, 80, "max", 80, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        NODE n;
        silent_node(&n, cases[i].lost, cases[i].other, 10);
        struct answer a = ASK(n, "aggregation", cases[i].aggregation);
        assert_double_near(a.value, cases[i].want, 1e-9);
        assert_int_equal(a.all.inputs[0].state, TRIGGER_INPUT_MISSING);
        assert_int_equal(a.all.inputs[0].is_counted, cases[i].is_counted);
        assert_double_same(a.all.inputs[0].value, cases[i].lost);
        assert_true(a.all.inputs[1].is_counted);
        assert_true(WARNED(a, "missing: GPU 0 (last read 10s ago)"));
        assert_int_equal(strstr(a.said.rule, "1 missing counted as at least 80 %") != NULL, cases[i].is_counted);
        assert_int_equal(a.active, 1);
    }
}

static void test_several_missing_devices_count_only_as_far_as_they_raise(void **state)
{
    (void)state;
    NODE n;
    NODE_WITH(n, 95, 10, 85);
    node_wait(&n, 10);
    node_read(&n, "GPU-2", SNAPSHOT_UTILIZATION, 85);
    node_publish(&n);
    struct answer a = ASK(n, "aggregation", "avg"); /* 95 raises 85, the target 80 would lower it */
    assert_double_near(a.value, 90, 1e-9);
    assert_true(a.all.inputs[0].is_counted);
    assert_false(a.all.inputs[1].is_counted);
    assert_double_same(a.all.inputs[1].counted, 0);
    assert_double_near(VALUE(n, "aggregation", "sum"), 95 + 80 + 85, 1e-9);
}

static void test_lost_device_is_missing_at_once_with_its_reason(void **state)
{
    (void)state;
    NODE n;
    NODE_WITH(n, 95, 5);
    struct snapshot_device *d = snapshot_store_find(n.store, "GPU-0");
    d->is_lost = true;
    (void)str_copy(d->lost_reason, sizeof(d->lost_reason), str_of("GPU is lost"));
    node_publish(&n);
    struct answer a = ASK(n);
    assert_double_same(a.value, 95);
    assert_true(WARNED(a, "GPU 0 (last read under 1s ago; lost: GPU is lost)"));
}

static void test_all_devices_missing_is_unavailable_and_active(void **state)
{
    (void)state;
    NODE n; /* B.2 #28, #29 */
    NODE_WITH(n, 95, 5);
    node_wait(&n, 5);
    assert_double_same(VALUE(n), 95); /* still within the age limit */
    node_wait(&n, 0.001);
    struct answer a = ASK(n);
    assert_refused(&a, ERR_UNAVAILABLE, "no GPU could be read: GPU 0 (last read 5s ago), GPU 1 (last read 5s ago)");
    assert_int_equal(a.active, 1);
    assert_contains(a.said.active_rule, "unknown is not idle: GPU 0");
    assert_double_same(a.all.activity, -1);
}

static void test_driver_state_is_the_reason_when_nothing_is_read(void **state)
{
    (void)state;
    NODE n;
    NODE_WITH(n, 95);
    struct snapshot *header = snapshot_store_header(n.store);
    header->driver = SNAPSHOT_DRIVER_FAILED;
    (void)str_copy(header->driver_text, sizeof(header->driver_text), str_of("driver was reloaded"));
    node_wait(&n, 10);
    node_publish(&n);
    struct answer a = ASK(n);
    assert_refused(&a, ERR_UNAVAILABLE, "; driver failed: driver was reloaded");
    snapshot_store_remove_all(n.store);
    header->driver = SNAPSHOT_DRIVER_NOT_LOADED;
    (void)str_copy(header->driver_text, sizeof(header->driver_text), str_of("load the kernel module"));
    node_publish(&n);
    a = ASK(n);
    assert_both_refused(&a, ERR_UNAVAILABLE, "no GPU to read: driver not_loaded: load the kernel module");
}

/* A driver call that does not return: the readings are as old as the snapshot, and the driver was fine in it. */
static void test_a_cycle_that_does_not_end_is_the_reason_of_old_readings(void **state)
{
    (void)state;
    NODE n;
    NODE_WITH(n, 30, 40);
    node_wait(&n, 12);
    struct answer a = ASK(n);
    assert_refused(&a, ERR_UNAVAILABLE,
                   "no GPU could be read: GPU 0 (last read 12s ago), GPU 1 (last read 12s ago); no sampling cycle has "
                   "ended for 12s: a driver call hangs");
    node_publish(&n);
    a = ASK(n);
    assert_null(strstr(a.all.value_error.text, "hangs"));
    NODE empty;
    node_init(&empty);
    snapshot_store_header(empty.store)->driver = SNAPSHOT_DRIVER_STARTING;
    node_publish(&empty);
    node_wait(&empty, 5);
    a = ASK(empty);
    assert_both_refused(&a, ERR_UNAVAILABLE, "driver starting");
    assert_null(strstr(a.all.value_error.text, "hangs"));
    node_wait(&empty, 1);
    a = ASK(empty);
    assert_both_refused(&a, ERR_UNAVAILABLE, "no sampling cycle has ended for 6s: a driver call hangs");
}

static void test_a_read_that_fails_is_missing_with_nvmls_code(void **state)
{
    (void)state;
    NODE n;
    NODE_WITH(n, 30, 40);
    node_wait(&n, 20);
    node_fail(&n, "GPU-0", SNAPSHOT_UTILIZATION, SNAPSHOT_FAILED);
    snapshot_store_find(n.store, "GPU-0")->readings[SNAPSHOT_UTILIZATION].code = 999;
    node_fail(&n, "GPU-1", SNAPSHOT_POWER, SNAPSHOT_FAILED); /* another field's code is no reason */
    snapshot_store_find(n.store, "GPU-1")->readings[SNAPSHOT_POWER].code = 10;
    node_publish(&n);
    struct answer a = ASK(n);
    assert_refused(&a, ERR_UNAVAILABLE, "GPU 0 (last read 20s ago; NVML error 999), GPU 1 (last read 20s ago)");
    a = ASK(n, "metricType", "power_draw", "gpuIndex", "1");
    assert_refused(&a, ERR_UNAVAILABLE, "GPU 1 (not read yet; NVML error 10)");
    a = ASK(n, "metricType", "memory_used");
    assert_refused(&a, ERR_UNAVAILABLE, "GPU 0 (not read yet), GPU 1 (not read yet)");
}

static void test_missing_device_expires_after_fifteen_minutes(void **state)
{
    (void)state;
    NODE n;
    silent_node(&n, 95, 5, 900);
    assert_double_same(VALUE(n), 95);
    NODE after;
    silent_node(&after, 95, 5, 900.001);
    struct answer a = ASK(after);
    assert_double_same(a.value, 5);
    assert_int_equal(a.all.inputs[0].state, TRIGGER_INPUT_EXPIRED);
    assert_true(WARNED(a, "missing: GPU 0 (last read 15m ago)"));
    assert_int_equal(ACTIVE(after, "activationThreshold", "10"), 0); /* it no longer speaks for activity either */
}

static void test_device_never_read_counts_from_when_it_was_first_seen(void **state)
{
    (void)state;
    NODE n;
    NODE_WITH(n, 5);
    (void)node_add(&n, SNAPSHOT_GPU, 1, "GPU-1");
    node_publish(&n);
    struct answer a = ASK(n);
    assert_double_same(a.value, 80);
    assert_false(a.all.inputs[1].has_value);
    assert_int_equal(a.all.inputs[1].age_ns, -1);
    assert_true(WARNED(a, "GPU 1 (not read yet)"));
    node_wait(&n, 901);
    node_read(&n, "GPU-0", SNAPSHOT_UTILIZATION, 5);
    node_publish(&n);
    a = ASK(n);
    assert_double_same(a.value, 5);
    assert_int_equal(a.all.inputs[1].state, TRIGGER_INPUT_EXPIRED);
}

static void test_only_expired_devices_are_an_error_for_both(void **state)
{
    (void)state;
    NODE n;
    NODE_WITH(n, 95);
    node_wait(&n, 1000);
    node_publish(&n);
    struct answer a = ASK(n);
    assert_both_refused(&a, ERR_UNAVAILABLE, "no GPU could be read: GPU 0 (last read 16m40s ago)");
}

static void test_on_missing_error_and_ignore(void **state)
{
    (void)state;
    NODE n;
    silent_node(&n, 95, 5, 10);
    struct answer a = ASK(n, "onMissing", "error");
    assert_refused(&a, ERR_UNAVAILABLE, "onMissing is error, and missing is: GPU 0 (last read 10s ago)");
    assert_int_equal(a.active, 1);
    a = ASK(n, "onMissing", "ignore", "activationThreshold", "10");
    assert_double_same(a.value, 5);
    assert_int_equal(a.active, 0);
    assert_false(a.all.inputs[0].is_counted);
    node_wait(&n, 10);
    a = ASK(n, "onMissing", "ignore");
    assert_both_refused(&a, ERR_UNAVAILABLE, "no GPU could be read");
    NODE expired;
    silent_node(&expired, 95, 5, 2000);
    a = ASK(expired, "onMissing", "error");
    assert_refused(&a, ERR_UNAVAILABLE, "onMissing is error");
}

static void test_unsupported_devices_are_left_out_and_never_zero(void **state)
{
    (void)state;
    NODE n; /* B.2 #31 */
    NODE_WITH(n, 60, 70, 50);
    node_fail(&n, "GPU-2", SNAPSHOT_UTILIZATION, SNAPSHOT_UNSUPPORTED);
    node_publish(&n);
    struct answer a = ASK(n, "aggregation", "min");
    assert_double_same(a.value, 60);
    assert_int_equal(a.all.inputs[2].state, TRIGGER_INPUT_UNSUPPORTED);
    assert_false(a.all.inputs[2].has_value);
    assert_true(WARNED(a, "left out, without gpu_utilization: GPU 2"));
    a = ASK(n, "gpuIndex", "2");
    assert_both_refused(&a, ERR_FAILED_PRECONDITION, "no GPU here has gpu_utilization: GPU 2");
    node_fail(&n, "GPU-0", SNAPSHOT_SM_ACTIVITY, SNAPSHOT_UNSUPPORTED);
    node_publish(&n);
    a = ASK(n, "metricType", "sm_activity", "gpuIndex", "0");
    assert_both_refused(&a, ERR_FAILED_PRECONDITION, "needs a Hopper or newer GPU");
    a = ASK(n, "metricType", "nvlink_tx_mbps", "targetValue", "5"); /* not read yet is not unsupported */
    assert_refused(&a, ERR_UNAVAILABLE, "GPU 0 (not read yet)");
}

static void test_memory_percent_needs_a_total(void **state)
{
    (void)state;
    NODE n;
    memory_node(&n, 10, 100);
    node_wait(&n, 100); /* a size does not age, the used bytes do */
    node_read(&n, "GPU-0", SNAPSHOT_MEMORY_USED, 20 * MIB);
    node_publish(&n);
    assert_double_near(VALUE(n, "metricType", "memory_used"), 20, 1e-9);
    NODE none;
    memory_node(&none, 10, 0);
    struct answer a = ASK(none, "metricType", "memory_used");
    assert_refused(&a, ERR_UNAVAILABLE, "no GPU could be read");
    assert_false(a.all.inputs[0].has_value);
    NODE without;
    NODE_WITH(without, 5);
    node_read(&without, "GPU-0", SNAPSHOT_MEMORY_USED, 20 * MIB);
    node_publish(&without);
    a = ASK(without, "metricType", "memory_used");
    assert_refused(&a, ERR_UNAVAILABLE, "no GPU could be read");
    node_fail(&without, "GPU-0", SNAPSHOT_MEMORY_TOTAL, SNAPSHOT_UNSUPPORTED);
    node_publish(&without);
    a = ASK(without, "metricType", "memory_used");
    assert_both_refused(&a, ERR_FAILED_PRECONDITION, "no GPU here has memory_used");
}

/* ---- activity, scopes, engines ---- */

static void test_training_is_active_whatever_is_read(void **state)
{
    (void)state;
    NODE n; /* B.1 #8 */
    NODE_WITH(n, 0);
    assert_int_equal(ACTIVE(n), 0);
    struct answer a = ASK(n, "profile", "training");
    assert_int_equal(a.active, 1);
    assert_double_same(a.value, 0);
    assert_contains(a.said.active_rule, "always active");
    node_wait(&n, 3600);
    a = ASK(n, "profile", "training");
    assert_int_equal(a.active, 1);
    assert_refused(&a, ERR_UNAVAILABLE, "no GPU could be read");
}

static void test_scopes_of_the_hub_are_refused_by_an_agent(void **state)
{
    (void)state;
    NODE n;
    NODE_WITH(n, 50);
    static const char *const scopes[] = {"workload", "cluster"};
    for (size_t i = 0; i < ARRAY_LEN(scopes); i++) {
        struct answer a = ASK(n, "scope", scopes[i]);
        assert_both_refused(&a, ERR_FAILED_PRECONDITION, "point scalerAddress at the hub");
    }
    struct trigger_evaluation ev;
    TRIGGER_AUTO cluster = parse_with(&hub_settings, METADATA("scope", "cluster"));
    node_evaluate(&n, cluster, &ev);
    assert_int_equal(ev.value_error.class, ERR_NONE);
    assert_double_same(ev.value, 50);
    TRIGGER_AUTO workload = parse_with(&hub_settings, METADATA("profile", "training"));
    node_evaluate(&n, workload, &ev);
    assert_int_equal(ev.value_error.class, ERR_FAILED_PRECONDITION);
    assert_int_equal(ev.active_error.class, ERR_FAILED_PRECONDITION);
}

static void test_engine_metrics_are_refused_until_they_can_be_fetched(void **state)
{
    (void)state;
    NODE n;
    NODE_WITH(n, 50);
    struct answer a = ASK(n, "profile", "vllm-queue-depth", "vllmEndpoint", "http://vllm:8000/metrics");
    assert_both_refused(&a, ERR_FAILED_PRECONDITION, "vllm_queue_depth");
}

/* ---- sentences and limits ---- */

static void test_warnings_of_the_trigger_come_first(void **state)
{
    (void)state;
    NODE n;
    silent_node(&n, 95, 5, 10);
    struct answer a = ASK(n, "targetValue", "80");
    assert_true(a.said.n_warnings >= 2);
    assert_contains(a.said.warnings[0], "never past 2 replicas");
    assert_contains(a.said.warnings[a.said.n_warnings - 1], "missing");
}

static void test_warnings_of_the_evaluation_have_room_beside_those_of_the_trigger(void **state)
{
    (void)state;
    NODE n;
    silent_node(&n, 95, 5, 10);
    struct answer a =
        ASK(n, "profile", "vllm-queue-depth", "vllmEndpoint", "http://v/m", "tritonEndpoint", "http://t/m",
            "metricType", "power_draw", "targetValue", "7", "targetMemoryUtilization", "98", "targetGpuUtilization",
            "99", "podSelector", "a=b", "warmupSeconds", "5", "activationThreshold", "100");
    assert_true(a.all.trigger->n_warnings >= 10);
    assert_refused(&a, ERR_UNAVAILABLE, "not read yet"); /* memory, in the end */
    (void)node_add(&n, SNAPSHOT_GPU, 2, "GPU-2");
    node_read(&n, "GPU-1", SNAPSHOT_MEMORY_USED, MIB);
    node_read(&n, "GPU-1", SNAPSHOT_MEMORY_TOTAL, 2 * MIB);
    node_fail(&n, "GPU-2", SNAPSHOT_MEMORY_USED, SNAPSHOT_UNSUPPORTED);
    node_publish(&n);
    a = ASK(n, "profile", "vllm-queue-depth", "vllmEndpoint", "http://v/m", "tritonEndpoint", "http://t/m",
            "metricType", "power_draw", "targetValue", "7", "targetMemoryUtilization", "98", "targetGpuUtilization",
            "99", "podSelector", "a=b", "warmupSeconds", "5", "activationThreshold", "100", "aggregation", "p99");
    assert_true(WARNED(a, "left out, without"));
    assert_true(WARNED(a, "missing: GPU 0"));
    assert_true(WARNED(a, "is their maximum"));
    assert_true(a.said.n_warnings <= TRIGGER_WARNINGS_MAX);
}

static void test_reading_newer_than_the_question_has_age_zero(void **state)
{
    (void)state;
    NODE n;
    NODE_WITH(n, 50);
    n.now_ns -= NS_PER_MS;
    struct answer a = ASK(n);
    assert_double_same(a.value, 50);
    assert_int_equal(a.all.inputs[0].age_ns, 0);
    assert_double_same(a.all.activity, 50);
}

static void test_percentile_of_few_devices_is_named_as_their_maximum(void **state)
{
    (void)state;
    NODE n; /* B.1 #22 */
    NODE_WITH(n, 100, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10);
    struct answer a = ASK(n, "aggregation", "p95");
    assert_double_same(a.value, 100);
    assert_true(WARNED(a, "p95 of 16 GPUs is their maximum: it takes 20"));
    NODE twenty;
    NODE_WITH(twenty, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20);
    assert_false(WARNED(ASK(twenty, "aggregation", "p95"), "is their maximum"));
    assert_true(WARNED(ASK(twenty, "aggregation", "p99"), "it takes 100"));
}

static void test_many_missing_devices_are_named_briefly(void **state)
{
    (void)state;
    NODE n;
    NODE_WITH(n, 1, 2, 3, 4, 5, 6, 7, 8);
    node_wait(&n, 10);
    struct answer a = ASK(n);
    assert_contains(a.all.value_error.text, "GPU 2 (last read 10s ago) and 5 more");
}

static void test_value_beyond_what_keda_takes_is_an_error(void **state)
{
    (void)state;
    NODE n;
    node_init(&n);
    (void)node_add(&n, SNAPSHOT_GPU, 0, "GPU-0");
    (void)node_add(&n, SNAPSHOT_GPU, 1, "GPU-1");
    node_read(&n, "GPU-0", SNAPSHOT_POWER, 1e12);
    node_read(&n, "GPU-1", SNAPSHOT_POWER, 1);
    node_publish(&n);
    assert_double_same(VALUE(n, "metricType", "power_draw"), 1e12);
    struct answer a = ASK(n, "metricType", "power_draw", "aggregation", "sum");
    assert_refused(&a, ERR_INTERNAL, "no value that KEDA can take");
    assert_int_equal(a.active, 1);
}

static void test_arena_without_room_is_an_error_and_no_crash(void **state)
{
    (void)state;
    NODE n;
    NODE_WITH(n, 1, 2, 3, 4, 5, 6, 7, 8);
    TRIGGER_AUTO t = parse_with(&agent_settings, METADATA());
    size_t n_refused = 0;
    for (size_t size = 0; size <= 4096; size += 16) {
        ARENA_AUTO struct arena small;
        arena_init(&small, size);
        struct trigger_evaluation ev;
        trigger_evaluate(t, n.latest, n.now_ns, TRIGGER_ASK_ALL, &small, &ev);
        if (ev.value_error.class == ERR_NONE) {
            assert_double_same(ev.value, 8);
            continue;
        }
        assert_int_equal(ev.value_error.class, ERR_RESOURCE_EXHAUSTED);
        assert_int_equal(++n_refused, size / 16 + 1); /* once there is room, there is room */
    }
    assert_true(n_refused > 8 && n_refused < 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_aggregations_of_the_conformance_cases),
        cmocka_unit_test(test_values_of_the_state_t),
        cmocka_unit_test(test_activity_of_the_state_t),
        cmocka_unit_test(test_memory_and_activity_of_the_conformance_cases),
        cmocka_unit_test(test_fractions_are_not_cut_off),
        cmocka_unit_test(test_value_is_the_mean_of_the_window),
        cmocka_unit_test(test_activity_remembers_a_burst_for_its_window),
        cmocka_unit_test(test_missing_device_counts_as_target_or_last_value_where_that_raises),
        cmocka_unit_test(test_several_missing_devices_count_only_as_far_as_they_raise),
        cmocka_unit_test(test_lost_device_is_missing_at_once_with_its_reason),
        cmocka_unit_test(test_all_devices_missing_is_unavailable_and_active),
        cmocka_unit_test(test_driver_state_is_the_reason_when_nothing_is_read),
        cmocka_unit_test(test_a_cycle_that_does_not_end_is_the_reason_of_old_readings),
        cmocka_unit_test(test_a_read_that_fails_is_missing_with_nvmls_code),
        cmocka_unit_test(test_missing_device_expires_after_fifteen_minutes),
        cmocka_unit_test(test_device_never_read_counts_from_when_it_was_first_seen),
        cmocka_unit_test(test_only_expired_devices_are_an_error_for_both),
        cmocka_unit_test(test_on_missing_error_and_ignore),
        cmocka_unit_test(test_unsupported_devices_are_left_out_and_never_zero),
        cmocka_unit_test(test_memory_percent_needs_a_total),
        cmocka_unit_test(test_training_is_active_whatever_is_read),
        cmocka_unit_test(test_scopes_of_the_hub_are_refused_by_an_agent),
        cmocka_unit_test(test_engine_metrics_are_refused_until_they_can_be_fetched),
        cmocka_unit_test(test_warnings_of_the_trigger_come_first),
        cmocka_unit_test(test_warnings_of_the_evaluation_have_room_beside_those_of_the_trigger),
        cmocka_unit_test(test_reading_newer_than_the_question_has_age_zero),
        cmocka_unit_test(test_percentile_of_few_devices_is_named_as_their_maximum),
        cmocka_unit_test(test_many_missing_devices_are_named_briefly),
        cmocka_unit_test(test_value_beyond_what_keda_takes_is_an_error),
        cmocka_unit_test(test_arena_without_room_is_an_error_and_no_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
