/* The explanation as JSON and as text. */
#include "trigger/trigger.h"

#include "node.h"

static const char *json_of(struct buf *out, struct node *n, const struct trigger *t)
{
    struct trigger_evaluation ev;
    struct json j;
    buf_reset(out);
    node_evaluate(n, t, &ev);
    json_init(&j, out, 0);
    trigger_explain_json(&ev, &j);
    return buf_cstr(out);
}

static const char *text_of(struct buf *out, struct node *n, const struct trigger *t)
{
    struct trigger_evaluation ev;
    buf_reset(out);
    node_evaluate(n, t, &ev);
    trigger_explain_text(&ev, out);
    return buf_cstr(out);
}

static void test_json_has_trigger_result_inputs_and_warnings(void **state)
{
    (void)state;
    NODE n;
    NODE_WITH(n, 30, 90);
    BUF_AUTO struct buf out;
    buf_init(&out, 1 << 16);
    TRIGGER_AUTO t = parse_with(&agent_settings, METADATA("profile", "triton-inference", "aggregation", "sum"));
    assert_string_equal(
        json_of(&out, &n, t),
        "{\"metricName\":\"keda_gpu_triton_inference\",\"metricType\":\"gpu_utilization\",\"unit\":\"%\","
        "\"profile\":\"triton-inference\",\"scope\":\"node\",\"aggregation\":\"sum\",\"target\":75,"
        "\"activationThreshold\":10,\"onMissing\":\"conservative\",\"gpuIndex\":-1,\"gpuUUID\":null,"
        "\"gpuProduct\":null,\"windowSeconds\":15,\"activationWindowSeconds\":60,\"value\":120,"
        "\"rule\":\"sum of 2 GPUs over 15s: 120 %\",\"active\":true,"
        "\"activeRule\":\"busiest GPU 1: 90 % within 1m, above 10 %\",\"activity\":90,\"inputs\":["
        "{\"uuid\":\"GPU-0\",\"index\":0,\"label\":\"H100 80GB HBM3\",\"state\":\"measured\",\"value\":30,"
        "\"counted\":30,\"peak\":30,\"ageSeconds\":0},"
        "{\"uuid\":\"GPU-1\",\"index\":1,\"label\":\"H100 80GB HBM3\",\"state\":\"measured\",\"value\":90,"
        "\"counted\":90,\"peak\":90,\"ageSeconds\":0}],\"warnings\":[]}");
}

static void test_json_has_null_for_what_is_unknown_and_errors_beside_it(void **state)
{
    (void)state;
    NODE n;
    node_init(&n);
    BUF_AUTO struct buf out;
    buf_init(&out, 1 << 16);
    TRIGGER_AUTO t = parse_with(&agent_settings, METADATA("aggregation", "sum"));
    const char *text = json_of(&out, &n, t);
    assert_contains(text, "\"profile\":null");
    assert_contains(text, "\"value\":null,\"rule\":null,\"valueError\":{\"code\":\"UNAVAILABLE\",\"message\":\"no GPU");
    assert_contains(text, "\"active\":null,\"activeRule\":null,\"activity\":null,\"activeError\":{\"code\":");
    assert_contains(text, "\"inputs\":[]");

    (void)node_add(&n, SNAPSHOT_GPU, 0, "GPU-0");
    (void)node_add(&n, SNAPSHOT_GPU, 1, "GPU-1");
    node_read(&n, "GPU-0", SNAPSHOT_UTILIZATION, 5);
    node_fail(&n, "GPU-1", SNAPSHOT_UTILIZATION, SNAPSHOT_UNSUPPORTED);
    node_publish(&n);
    text = json_of(&out, &n, t);
    assert_contains(text,
                    "\"state\":\"unsupported\",\"value\":null,\"counted\":null,\"peak\":null,\"ageSeconds\":null}");
    assert_contains(text, "\"warnings\":[\"left out, without gpu_utilization: GPU 1\"]");
}

static void test_text_has_a_line_for_each_part(void **state)
{
    (void)state;
    NODE n;
    NODE_WITH(n, 30, 90);
    node_wait(&n, 10);
    node_read(&n, "GPU-1", SNAPSHOT_UTILIZATION, 60.1234567);
    node_publish(&n);
    BUF_AUTO struct buf out;
    buf_init(&out, 1 << 16);
    TRIGGER_AUTO t = parse_with(&agent_settings, METADATA("profile", "triton-inference", "aggregation", "sum"));
    assert_string_equal(
        text_of(&out, &n, t),
        "trigger  keda_gpu_triton_inference: sum of gpu_utilization in scope node, target 75 %, active above 10 %, "
        "profile triton-inference\n"
        "value    150.062 %: sum of 2 GPUs over 15s: 150.062 %; 1 missing counted as at least 75 %\n"
        "active   yes: busiest GPU 1: 90 % within 1m, above 10 %\n"
        "input    GPU 0 GPU-0 H100 80GB HBM3: missing, 30 %, read 10s ago, counted as 75\n"
        "input    GPU 1 GPU-1 H100 80GB HBM3: measured, 75.062 %, read under 1s ago, counted as 75.062\n"
        "warning  missing: GPU 0 (last read 10s ago)\n");
}

static void test_text_names_errors_by_their_code(void **state)
{
    (void)state;
    NODE n;
    node_init(&n);
    BUF_AUTO struct buf out;
    buf_init(&out, 1 << 16);
    TRIGGER_AUTO t = parse_with(&agent_settings, METADATA("aggregation", "sum"));
    const char *text = text_of(&out, &n, t);
    assert_contains(text, "value    none: UNAVAILABLE: no GPU has been read yet\n");
    assert_contains(text, "active   unknown: UNAVAILABLE: no GPU has been read yet\n");
    (void)node_add(&n, SNAPSHOT_GPU, 0, "GPU-0");
    node_publish(&n);
    assert_contains(text_of(&out, &n, t),
                    "input    GPU 0 GPU-0 H100 80GB HBM3: missing, -, not read yet, not counted\n");
    node_fail(&n, "GPU-0", SNAPSHOT_UTILIZATION, SNAPSHOT_UNSUPPORTED);
    node_publish(&n);
    assert_contains(text_of(&out, &n, t), "input    GPU 0 GPU-0 H100 80GB HBM3: unsupported, not counted\n");
}

static const char *described(struct buf *out, const struct trigger *t)
{
    struct json j;
    buf_reset(out);
    json_init(&j, out, 0);
    json_object_begin(&j);
    trigger_describe_json(t, &j);
    json_object_end(&j);
    return buf_cstr(out);
}

static const char *described_in_words(struct buf *out, const struct trigger *t)
{
    buf_reset(out);
    trigger_describe_text(t, out);
    return buf_cstr(out);
}

static void test_several_metric_types_are_shown_each_with_its_target(void **state)
{
    (void)state;
    BUF_AUTO struct buf out;
    buf_init(&out, 1 << 16);
    TRIGGER_AUTO t =
        parse_with(&hub_settings, METADATA("metricType", "requests_in_flight,gpu_utilization,engine_metric",
                                           "targetValue", "16,80,2.5", "engineMetric", "q"));
    assert_string_equal(described_in_words(&out, t),
                        "trigger  keda_gpu_signals: avg of requests_in_flight,gpu_utilization,engine_metric q in scope "
                        "workload, target 100 % of their targets, active with any of them\n"
                        "part     requests_in_flight, target 16 requests, active with any request\n"
                        "part     gpu_utilization, target 80 %, active above 0 %\n"
                        "part     engine_metric q, target 2.5, active with any request\n");
    const char *json = described(&out, t);
    assert_contains(json, "\"metricType\":\"requests_in_flight,gpu_utilization,engine_metric\",\"unit\":\"%\"");
    assert_contains(json, "\"target\":100,");
    assert_contains(json, "\"engineMetric\":\"q\",\"parts\":[{\"metricType\":\"requests_in_flight\",\"unit\":"
                          "\"requests\",\"target\":16,\"activationThreshold\":0},{\"metricType\":\"gpu_utilization\",");
    assert_contains(json, "{\"metricType\":\"engine_metric\",\"unit\":\"\",\"target\":2.5,\"activationThreshold\":0,"
                          "\"engineMetric\":\"q\"}]}");
}

static void test_keys_of_engines_are_shown_where_they_count(void **state)
{
    (void)state;
    BUF_AUTO struct buf out;
    buf_init(&out, 1 << 16);
    TRIGGER_AUTO t = parse_with(&hub_settings, METADATA("profile", "vllm-inference", "vllmEndpoint", "http://a/m",
                                                        "wakeEndpoint", "http://r/m", "wakeMetric", "q"));
    assert_contains(described(&out, t), "\"activationWindowSeconds\":60,\"endpoint\":\"http://a/m\","
                                        "\"prefersEngine\":true,\"wakeEndpoint\":\"http://r/m\",\"wakeMetric\":\"q\"}");
    assert_string_equal(
        described_in_words(&out, t),
        "trigger  keda_gpu_vllm_inference: avg of kv_cache_usage, or memory_used_percent without pages, "
        "in scope workload, target 80 %, active with any request, or above 5 % without pages, profile "
        "vllm-inference\n");
    TRIGGER_AUTO gpu = parse_with(&hub_settings, METADATA("vllmEndpoint", "http://a/m"));
    assert_contains(described(&out, gpu), "\"activationWindowSeconds\":60}");
    TRIGGER_AUTO given =
        parse_with(&hub_settings, METADATA("metricType", "kv_cache_usage", "activationThreshold", "5"));
    assert_string_equal(described_in_words(&out, given), "trigger  keda_gpu_metric: avg of kv_cache_usage in scope "
                                                         "workload, target 80 %, active above 5 %\n");
}

static void test_states_have_names(void **state)
{
    (void)state;
    assert_string_equal(trigger_input_state_name(TRIGGER_INPUT_EXPIRED), "expired");
    assert_string_equal(trigger_input_state_name((enum trigger_input_state)9), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_has_trigger_result_inputs_and_warnings),
        cmocka_unit_test(test_json_has_null_for_what_is_unknown_and_errors_beside_it),
        cmocka_unit_test(test_text_has_a_line_for_each_part),
        cmocka_unit_test(test_text_names_errors_by_their_code),
        cmocka_unit_test(test_several_metric_types_are_shown_each_with_its_target),
        cmocka_unit_test(test_keys_of_engines_are_shown_where_they_count),
        cmocka_unit_test(test_states_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
