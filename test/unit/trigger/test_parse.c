/* trigger_parse: every key with its defaults and limits, what overrules what, and the refusals. */
#include "trigger/trigger.h"

#include "metadata.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define PARSE(...)      parse_with(&agent_settings, METADATA(__VA_ARGS__))
#define WARNED(t, part) has_warning((const char(*)[TRIGGER_TEXT_MAX])(t)->warnings, (t)->n_warnings, (part))

/* ---- specs: reference A.12 #4 and the rows on metadata ---- */

static const struct {
    const char *texts[12];
    const char *name;
    double target;
    enum trigger_metric metric;
    double activation;
} specs[] = {
    {{NULL}, "keda_gpu_metric", 80, TRIGGER_GPU_UTILIZATION, 0},
    {{"scalerAddress", "keda-gpu-scaler.keda.svc:6000", NULL}, "keda_gpu_metric", 80, TRIGGER_GPU_UTILIZATION, 0},
    {{"profile", "vllm-inference", NULL}, "keda_gpu_vllm_inference", 80, TRIGGER_MEMORY_USED_PERCENT, 5},
    {{"profile", "tgi-inference", NULL}, "keda_gpu_tgi_inference", 75, TRIGGER_MEMORY_USED_PERCENT, 5},
    {{"profile", "triton-inference", NULL}, "keda_gpu_triton_inference", 75, TRIGGER_GPU_UTILIZATION, 10},
    {{"profile", "training", NULL}, "keda_gpu_training", 90, TRIGGER_GPU_UTILIZATION, 0},
    {{"profile", "batch", NULL}, "keda_gpu_batch", 70, TRIGGER_MEMORY_USED_PERCENT, 1},
    {{"profile", "ollama", NULL}, "keda_gpu_ollama", 70, TRIGGER_MEMORY_USED_PERCENT, 3},
    {{"profile", "distributed-training", NULL}, "keda_gpu_distributed_training", 50000, TRIGGER_NVLINK_TX_MBPS, 5000},
    /* B.1 #9: active from one waiting request means strictly above 0 */
    {{"profile", "vllm-queue-depth", "vllmEndpoint", "http://vllm:8000/metrics", NULL},
     "keda_gpu_vllm_queue_depth",
     5,
     TRIGGER_VLLM_QUEUE_DEPTH,
     0},
    {{"profile", "triton-queue-wait", "tritonEndpoint", "http://triton:8002/metrics", NULL},
     "keda_gpu_triton_queue_wait",
     50,
     TRIGGER_TRITON_QUEUE_WAIT_MS,
     5},
    {{"profile", "triton-request-rate", "tritonEndpoint", "http://triton:8002/metrics", NULL},
     "keda_gpu_triton_request_rate",
     50,
     TRIGGER_TRITON_REQUEST_RATE,
     1},
    {{"metricType", "vllm_kv_cache_usage", "vllmEndpoint", "https://vllm/metrics", "targetValue", "80", NULL},
     "keda_gpu_metric",
     80,
     TRIGGER_VLLM_KV_CACHE_USAGE,
     0},
    {{"targetValue", "60", NULL}, "keda_gpu_metric", 60, TRIGGER_GPU_UTILIZATION, 0},
    {{"targetValue", "95", "metricName", "custom_metric", NULL}, "custom_metric", 95, TRIGGER_GPU_UTILIZATION, 0},
    {{"profile", "vllm-inference", "targetValue", "90", NULL},
     "keda_gpu_vllm_inference",
     90,
     TRIGGER_MEMORY_USED_PERCENT,
     5},
    {{"profile", "vllm-inference", "metricName", "Mine", NULL}, "mine", 80, TRIGGER_MEMORY_USED_PERCENT, 5},
    {{"profile", "vllm-inference", "activationThreshold", "0.5", NULL},
     "keda_gpu_vllm_inference",
     80,
     TRIGGER_MEMORY_USED_PERCENT,
     0.5},
    /* activation follows the metric that was chosen: semantics 6, B.1 #24 */
    {{"profile", "triton-inference", "metricType", "power_draw", NULL},
     "keda_gpu_triton_inference",
     75,
     TRIGGER_POWER_DRAW,
     0},
    {{"profile", "batch", "metricType", "memory_used", NULL}, "keda_gpu_batch", 70, TRIGGER_MEMORY_USED, 1},
    {{"profile", "distributed-training", "targetGpuUtilization", "80", NULL},
     "keda_gpu_distributed_training",
     80,
     TRIGGER_GPU_UTILIZATION,
     0},
    {{"profile", "triton-inference", "metricType", "power_draw", "activationThreshold", "50", NULL},
     "keda_gpu_triton_inference",
     75,
     TRIGGER_POWER_DRAW,
     50},
    {{"targetGpuUtilization", "70", NULL}, "keda_gpu_metric", 70, TRIGGER_GPU_UTILIZATION, 0},
    {{"targetMemoryUtilization", "65", NULL}, "keda_gpu_metric", 65, TRIGGER_MEMORY_USED_PERCENT, 0},
    {{"targetGpuUtilization", "70", "targetMemoryUtilization", "65", NULL},
     "keda_gpu_metric",
     65,
     TRIGGER_MEMORY_USED_PERCENT,
     0},
    {{"metricType", "power_draw", "targetValue", "300", "targetGpuUtilization", "80", NULL},
     "keda_gpu_metric",
     80,
     TRIGGER_GPU_UTILIZATION,
     0},
    /* the first document's ScaledObject */
    {{"scalerAddress", "x:9090", "metricName", "gpu_memory_used", "targetValue", "80", "activationTargetValue", "50",
      NULL},
     "gpu_memory_used",
     80,
     TRIGGER_MEMORY_USED,
     50},
    {{"metricName", "GPU_Utilization", NULL}, "gpu_utilization", 80, TRIGGER_GPU_UTILIZATION, 0},
    {{"metricName", "temperature", "targetValue", "75", NULL}, "temperature", 75, TRIGGER_TEMPERATURE, 0},
    {{"metricName", "temperature", "metricType", "power_draw", "targetValue", "200", NULL},
     "temperature",
     200,
     TRIGGER_POWER_DRAW,
     0},
    {{"metricName", "memory_free", "metricType", "memory_used", NULL}, "memory_free", 80, TRIGGER_MEMORY_USED, 0},
    {{"metricName", "a.b-c:d_9", NULL}, "a.b-c:d_9", 80, TRIGGER_GPU_UTILIZATION, 0},
    {{"targetValue", "0.001", NULL}, "keda_gpu_metric", 0.001, TRIGGER_GPU_UTILIZATION, 0},
    {{"targetValue", "1000000000", NULL}, "keda_gpu_metric", 1e9, TRIGGER_GPU_UTILIZATION, 0},
    {{"targetValue", " 80.5\n", NULL}, "keda_gpu_metric", 80.5, TRIGGER_GPU_UTILIZATION, 0},
    {{"targetValueFromEnv", "42", NULL}, "keda_gpu_metric", 42, TRIGGER_GPU_UTILIZATION, 0},
    {{"targetValueFromEnv", "42", "targetValue", "42", NULL}, "keda_gpu_metric", 42, TRIGGER_GPU_UTILIZATION, 0},
    {{"activationTargetValueFromEnv", "3", NULL}, "keda_gpu_metric", 80, TRIGGER_GPU_UTILIZATION, 3},
    {{"activationThreshold", "1000000000000", NULL}, "keda_gpu_metric", 80, TRIGGER_GPU_UTILIZATION, 1e12},
    {{"activationThreshold", "-0", NULL}, "keda_gpu_metric", 80, TRIGGER_GPU_UTILIZATION, 0},
    {{"enableTLS", "true", "unsafeSsl", "true", "tlsCertFile", "/x", "scalerAddressFromEnv", "y", NULL},
     "keda_gpu_metric",
     80,
     TRIGGER_GPU_UTILIZATION,
     0},
};

static void test_metadata_gives_the_documented_spec(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
        TRIGGER_AUTO t = parse_with(&agent_settings, metadata_of(specs[i].texts));
        assert_string_equal(t->metric_name, specs[i].name);
        assert_double_same(t->target, specs[i].target);
        assert_string_equal(trigger_metric_name(t->metric), trigger_metric_name(specs[i].metric));
        assert_double_same(t->activation, specs[i].activation);
        assert_false(signbit(t->activation));
    }
}

static void test_every_metric_type_is_accepted_under_each_of_its_names(void **state)
{
    (void)state;
    static const struct {
        const char *name, *alias;
    } names[] = {
#define X(id, name, alias, source, unit, divisor) {name, alias},
        TRIGGER_METRICS(X)
#undef X
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *both[] = {names[i].name, names[i].alias};
        for (size_t j = 0; j < 2 && both[j]; j++) {
            const char *endpoint = strncmp(both[j], "triton", 6) == 0 ? "tritonEndpoint" : "vllmEndpoint";
            bool needs_name = i == TRIGGER_ENGINE_METRIC; /* of a metric; with others it would choose engine_metric */
            TRIGGER_AUTO t =
                PARSE("metricType", both[j], "targetValue", "5", endpoint, "http://a/m", "engineMetric", "queue_depth");
            assert_int_equal(t->metric, i);
            assert_string_equal(t->metric_name, "keda_gpu_metric");
            TRIGGER_AUTO named = PARSE("metricName", both[j], "targetValue", "5", endpoint, "http://a/m",
                                       needs_name ? "engineMetric" : "window", needs_name ? "queue_depth" : "15");
            assert_int_equal(named->metric, i);
            assert_string_equal(named->metric_name, both[j]);
        }
    }
    enum trigger_metric metric;
    assert_false(trigger_find_metric(str_of("GPU_UTILIZATION"), &metric));
    assert_string_equal(trigger_metric_name(TRIGGER_METRIC_COUNT), "unknown");
    assert_string_equal(trigger_metric_unit(TRIGGER_METRIC_COUNT), "unknown");
    assert_string_equal(trigger_metric_unit(TRIGGER_PCIE_TX_KBPS), "kB/s");
}

static void test_defaults_of_every_other_key(void **state)
{
    (void)state;
    TRIGGER_AUTO t = PARSE();
    assert_int_equal(t->scope, TRIGGER_NODE);
    assert_int_equal(t->aggregation, SCALING_MAX);
    assert_int_equal(t->on_missing, TRIGGER_MISSING_CONSERVATIVE);
    assert_int_equal(t->gpu_index, -1);
    assert_int_equal(t->window_ns, 15 * NS_PER_S);
    assert_int_equal(t->activation_window_ns, 60 * NS_PER_S);
    assert_int_equal(t->warmup_ns, 900 * NS_PER_S);
    assert_int_equal(t->poll_interval_ns, NS_PER_S);
    assert_string_equal(t->gpu_uuid, "");
    assert_string_equal(t->gpu_product, "");
    assert_string_equal(t->pod_selector, "");
    assert_string_equal(t->hpa_metric_type, "");
    assert_string_equal(t->vllm_endpoint, "");
    assert_string_equal(t->triton_endpoint, "");
    assert_string_equal(t->profile, "");
    assert_false(t->is_always_active);
    assert_false(t->is_for_hub);
}

static void test_every_other_key_is_read(void **state)
{
    (void)state;
    TRIGGER_AUTO t = PARSE("scope", "node", "aggregation", "p95", "onMissing", "error", "gpuIndex", "1023", "window",
                           "0", "activationWindow", "5m", "warmupSeconds", "20m", "pollIntervalSeconds", "7", "gpuUUID",
                           "gpu-5c0e1a", "gpuProduct", "NVIDIA-A10G", "podSelector", "app=x", "hpaMetricType", "Value",
                           "vllmEndpoint", "http://10.0.1.5:8000/metrics", "tritonEndpoint", "http://127.0.0.1/m");
    assert_int_equal(t->aggregation, SCALING_P95);
    assert_int_equal(t->on_missing, TRIGGER_MISSING_ERROR);
    assert_int_equal(t->gpu_index, 1023);
    assert_int_equal(t->window_ns, 0);
    assert_int_equal(t->activation_window_ns, 300 * NS_PER_S);
    assert_int_equal(t->warmup_ns, 1200 * NS_PER_S);
    assert_int_equal(t->poll_interval_ns, 7 * NS_PER_S);
    assert_string_equal(t->gpu_uuid, "gpu-5c0e1a");
    assert_string_equal(t->gpu_product, "NVIDIA-A10G");
    assert_string_equal(t->pod_selector, "app=x");
    assert_string_equal(t->hpa_metric_type, "Value");
    assert_string_equal(t->vllm_endpoint, "http://10.0.1.5:8000/metrics");
    assert_string_equal(t->triton_endpoint, "http://127.0.0.1/m");
}

static void test_durations_are_seconds_or_go_durations(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ns;
    } cases[] = {{"15", 15 * NS_PER_S},
                 {"15s", 15 * NS_PER_S},
                 {"0", 0},
                 {"0s", 0},
                 {"1.5", 1500 * NS_PER_MS},
                 {"300ms", 300 * NS_PER_MS},
                 {"300", 300 * NS_PER_S},
                 {"4m59s", 299 * NS_PER_S},
                 {"5m", 300 * NS_PER_S}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        TRIGGER_AUTO t = PARSE("window", cases[i].text);
        assert_int_equal(t->window_ns, cases[i].ns);
    }
}

static void test_training_is_always_active_in_scope_node(void **state)
{
    (void)state;
    TRIGGER_AUTO t = PARSE("profile", "training");
    assert_true(t->is_always_active);
    assert_false(WARNED(t, "always active"));
    TRIGGER_AUTO with = PARSE("profile", "training", "activationThreshold", "5");
    assert_true(with->is_always_active);
    assert_true(WARNED(with, "activationThreshold has no effect"));
    TRIGGER_AUTO hub = parse_with(&hub_settings, METADATA("profile", "training"));
    assert_false(hub->is_always_active);
    TRIGGER_AUTO other = PARSE("profile", "distributed-training");
    assert_false(other->is_always_active);
}

static void test_scope_comes_from_the_program_unless_given(void **state)
{
    (void)state;
    TRIGGER_AUTO hub = parse_with(&hub_settings, METADATA("aggregation", "avg"));
    assert_int_equal(hub->scope, TRIGGER_WORKLOAD);
    assert_false(hub->is_for_hub);
    TRIGGER_AUTO plain = parse_with(&hub_settings, METADATA("profile", "batch"));
    assert_int_equal(plain->aggregation, SCALING_AVG); /* avg by default in scope workload */
    assert_int_equal(plain->n_warnings, 0);
    /* the hub reads the pods' own pages */
    TRIGGER_AUTO engine = parse_with(&hub_settings, METADATA("profile", "vllm-queue-depth"));
    assert_int_equal(engine->metric, TRIGGER_VLLM_QUEUE_DEPTH);
    TRIGGER_AUTO cluster = parse_with(&hub_settings, METADATA("scope", "cluster"));
    assert_int_equal(cluster->aggregation, SCALING_MAX);
    assert_false(cluster->is_for_hub);
    static const char *const scopes[] = {"workload", "cluster"};
    for (size_t i = 0; i < ARRAY_LEN(scopes); i++) { /* parses, so that GetMetricSpec answers */
        TRIGGER_AUTO t = PARSE("scope", scopes[i]);
        assert_true(t->is_for_hub);
    }
    assert_string_equal(trigger_scope_name(TRIGGER_CLUSTER), "cluster");
    assert_string_equal(trigger_scope_name((enum trigger_scope)9), "unknown");
    assert_string_equal(trigger_on_missing_name((enum trigger_on_missing)9), "unknown");
}

/* ---- the configuration's metrics entries ---- */

static void test_configuration_gives_defaults_by_metric_name(void **state)
{
    (void)state;
    static const struct trigger_default entries[] = {
        {.name = "gpu_memory_used", .has_target = true, .target = 85, .has_gpu_index = true, .gpu_index = 1},
        {.name = "gpu_utilization",
         .has_aggregation = true,
         .aggregation = SCALING_AVG,
         .has_target = true,
         .target = 70},
        {.name = "queue", .has_target = true, .target = 7},
    };
    const struct trigger_settings settings = {TRIGGER_NODE, entries, ARRAY_LEN(entries)};
    TRIGGER_AUTO memory = parse_with(&settings, METADATA("metricName", "GPU_memory_used"));
    assert_double_same(memory->target, 85);
    assert_int_equal(memory->gpu_index, 1);
    assert_int_equal(memory->aggregation, SCALING_MAX);
    assert_int_equal(memory->metric, TRIGGER_MEMORY_USED);
    TRIGGER_AUTO gpu = parse_with(&settings, METADATA("metricName", "gpu_utilization"));
    assert_double_same(gpu->target, 70);
    assert_int_equal(gpu->aggregation, SCALING_AVG);
    assert_int_equal(gpu->gpu_index, -1);
    TRIGGER_AUTO other = parse_with(&settings, METADATA("metricName", "gpu_utilisation"));
    assert_double_same(other->target, 80);
    TRIGGER_AUTO unnamed = parse_with(&settings, METADATA("metricType", "gpu_utilization"));
    assert_double_same(unnamed->target, 80);
    /* what the metadata says wins, a profile included */
    TRIGGER_AUTO over = parse_with(&settings, METADATA("metricName", "gpu_memory_used", "targetValue", "60",
                                                       "aggregation", "min", "gpuIndex", "0"));
    assert_double_same(over->target, 60);
    assert_int_equal(over->aggregation, SCALING_MIN);
    assert_int_equal(over->gpu_index, 0);
    TRIGGER_AUTO profile = parse_with(&settings, METADATA("metricName", "queue", "profile", "batch"));
    assert_double_same(profile->target, 70);
    TRIGGER_AUTO watts = parse_with(&settings, METADATA("metricName", "queue", "metricType", "power_draw"));
    assert_double_same(watts->target, 7);
    assert_false(WARNED(watts, "no targetValue"));
}

/* ---- refusals ---- */

static const struct {
    const char *texts[8];
    const char *parts[4]; /* each must be in the refusal */
} refusals[] = {
    /* A.12 #8, #17, #20 and the rows on metadata; B.4 #56-59; B.3 #48; B.2 #43 */
    {{"profile", "doesnt-exist"}, {"profile: \"doesnt-exist\"", "batch, distributed-training, ollama", NULL}},
    {{"profile", "vllm-inferense"}, {"did you mean \"vllm-inference\"?", NULL}},
    {{"profile", "Training"}, {"did you mean \"training\"?", NULL}},
    {{"profile", ""}, {"profile: \"\"", NULL}},
    {{"targetValue", "abc"}, {"targetValue: \"abc\" is not a plain decimal number", "0.001 to 1000000000", NULL}},
    {{"targetValue", ""}, {"targetValue: \"\"", NULL}},
    {{"targetValue", "  "}, {"targetValue: \"\"", NULL}},
    {{"targetValue", "NaN"}, {"\"NaN\"", NULL}},
    {{"targetValue", "Inf"}, {"\"Inf\"", NULL}},
    {{"targetValue", "+Inf"}, {"\"+Inf\"", NULL}},
    {{"targetValue", "1e999"}, {"\"1e999\"", NULL}},
    {{"targetValue", "0"}, {"\"0\" is out of range", NULL}},
    {{"targetValue", "-5"}, {"\"-5\" is out of range", NULL}},
    {{"targetValue", "0.0009"}, {"out of range", NULL}},
    {{"targetValue", "1000000001"}, {"out of range", NULL}},
    {{"targetValue", "0x1p10"}, {"not a plain decimal", NULL}},
    {{"targetValue", "1_0"}, {"not a plain decimal", NULL}},
    {{"targetValue", "80%"}, {"not a plain decimal", NULL}},
    {{"targetValue", "8 0"}, {"not a plain decimal", NULL}},
    {{"targetGpuUtilization", "x"}, {"targetGpuUtilization: \"x\"", NULL}},
    {{"targetMemoryUtilization", "x"}, {"targetMemoryUtilization: \"x\"", NULL}},
    {{"targetGpuUtilization", "0"}, {"out of range", NULL}},
    {{"activationThreshold", "NaN"}, {"activationThreshold: \"NaN\"", NULL}},
    {{"activationThreshold", "-1"}, {"out of range", "0 to 1000000000000", NULL}},
    {{"activationThreshold", "1000000000001"}, {"out of range", NULL}},
    {{"activationTargetValue", "x"}, {"activationTargetValue: \"x\"", NULL}},
    {{"gpuIndex", "xyz"}, {"gpuIndex: \"xyz\" is not a whole number", "-1 (all GPUs) to 1023", NULL}},
    {{"gpuIndex", ""}, {"gpuIndex: \"\"", NULL}},
    {{"gpuIndex", "-2"}, {"out of range", NULL}},
    {{"gpuIndex", "-100"}, {"out of range", NULL}},
    {{"gpuIndex", "1024"}, {"out of range", NULL}},
    {{"gpuIndex", "4294967296"}, {"out of range", NULL}},
    {{"gpuIndex", "18446744073709551616"}, {"not a whole number", NULL}},
    {{"gpuIndex", "0.5"}, {"not a whole number", NULL}},
    {{"aggregation", "median"}, {"\"median\" is not known", "avg, max, min, p95, p99, sum", NULL}},
    {{"aggregation", "mean"}, {"allowed: avg", NULL}},
    {{"aggregation", "MAX"}, {"did you mean \"max\"?", NULL}},
    {{"metricType", "gpu_utilisation"}, {"did you mean \"gpu_utilization\"?", "temperature", NULL}},
    {{"metricType", ""}, {"metricType: \"\"", NULL}},
    {{"metricType", "Value"}, {"beside metadata", NULL}},
    {{"metricType", "Utilization"}, {"beside metadata", NULL}},
    {{"metricType", "memory_free"}, {"exported but not scaled on", "100 minus", NULL}},
    {{"metricType", "gpu_memory_free", "targetValue", "20"},
     {"metricType: \"gpu_memory_free\"", "metricType \"memory_used\" with targetValue \"80\"", NULL}},
    {{"metricName", "gpu_memory_free", "targetValue", "12.5"}, {"metricName \"memory_used\"", "\"87.5\"", NULL}},
    {{"metricName", "memory_free", "targetValue", "20000"}, {"100 minus", NULL}},
    {{"metricName", "memory_free", "targetValue", "x"}, {"100 minus", NULL}},
    {{"metricName", ""}, {"metricName: \"\" is empty", NULL}},
    {{"metricName", "a/b"}, {"\"a/b\" is not a valid metric name", NULL}},
    {{"metricName", "a%b"}, {"not a valid metric name", NULL}},
    {{"metricName", "."}, {"not a valid metric name", NULL}},
    {{"metricName", ".."}, {"not a valid metric name", NULL}},
    {{"metricName", "a b"}, {"not a valid metric name", NULL}},
    {{"metricName", "m\303\251moire"}, {"\"m\303\251moire\" is not a valid", NULL}},
    {{"pollIntervalSeconds", ""}, {"is not a duration", NULL}},
    {{"pollIntervalSeconds", "0"}, {"out of range", "1 to 3600 seconds", NULL}},
    {{"pollIntervalSeconds", "-5"}, {"out of range", NULL}},
    {{"pollIntervalSeconds", "9223372037"}, {"out of range", NULL}},
    {{"pollIntervalSeconds", "61m"}, {"out of range", NULL}},
    {{"window", "301"}, {"out of range", "0 to 300 seconds", NULL}},
    {{"window", "-1s"}, {"is not a duration", NULL}},
    {{"window", "15 s"}, {"is not a duration", NULL}},
    {{"window", "NaN"}, {"is not a duration", NULL}},
    {{"activationWindow", "6m"}, {"out of range", NULL}},
    {{"warmupSeconds", "86401"}, {"out of range", NULL}},
    {{"warmupSeconds", "soon"}, {"is not a duration", NULL}},
    {{"scope", "fleet"}, {"\"fleet\" is not known", "cluster, node, workload", NULL}},
    {{"scope", "Node"}, {"did you mean \"node\"?", NULL}},
    {{"onMissing", "zero"}, {"conservative, error, ignore", NULL}},
    {{"hpaMetricType", "Utilization"}, {"AverageValue, Value", NULL}},
    {{"hpaMetricType", "value"}, {"did you mean \"Value\"?", NULL}},
    {{"gpuUUID", "0"}, {"is not a GPU's UUID", NULL}},
    {{"gpuUUID", "GPU-"}, {"is not a GPU's UUID", NULL}},
    {{"gpuUUID", "GPU-1 2"}, {"is not a GPU's UUID", NULL}},
    {{"gpuUUID", "GPU-\001"}, {"\"GPU-?\" has characters", NULL}},
    {{"gpuProduct", ""}, {"is empty", NULL}},
    {{"podSelector", "a\nb"}, {"\"a?b\" has characters", NULL}},
    {{"vllmEndpoint", "ftp://a/"}, {"vllmEndpoint: \"ftp://a/\" is neither http:// nor https://", NULL}},
    {{"vllmEndpoint", ""}, {"is empty", NULL}},
    {{"tritonEndpoint", "http://169.254.169.254/"}, {"tritonEndpoint", "link-local", NULL}},
    {{"metricType", "vllm_queue_depth"},
     {"vllmEndpoint (or tritonEndpoint) is missing", "in scope node", "vllm_queue_depth", NULL}},
    {{"metricType", "kv_cache_usage"}, {"vllmEndpoint (or tritonEndpoint) is missing", NULL}},
    {{"profile", "vllm-queue-depth"}, {"vllmEndpoint (or tritonEndpoint) is missing", NULL}},
    {{"metricType", "triton_queue_wait_ms"}, {"tritonEndpoint (or vllmEndpoint) is missing", NULL}},
    {{"profile", "triton-request-rate"}, {"tritonEndpoint (or vllmEndpoint) is missing", NULL}},
    {{"targetValue", "16,80"}, {"targetValue: \"16,80\" has a comma", "several metric types", NULL}},
    {{"activationThreshold", "1,5"}, {"has a comma", NULL}},
    /* unknown keys */
    {{"targetvalue", "10"}, {"key \"targetvalue\" is not known", "did you mean \"targetValue\"?", "gpuIndex", NULL}},
    {{"treshold", "10"}, {"known keys: activationTargetValue, activationThreshold, activationWindow", NULL}},
    {{"metricTypeFromenv", "x"}, {"\"metricTypeFromenv\" is not known", NULL}},
    {{"FromEnv", "x"}, {"\"FromEnv\" is not known", NULL}},
    {{"", "x"}, {"key \"\" is not known", NULL}},
    {{"scaleraddress", "x"}, {"did you mean \"scalerAddress\"?", NULL}},
    /* one key twice */
    {{"targetValue", "1", "targetValue", "2"}, {"mean the same key and differ", NULL}},
    {{"activationThreshold", "1", "activationTargetValue", "2"},
     {"activationThreshold: \"1\" and activationTargetValue: \"2\"", NULL}},
    {{"activationTargetValue", "2", "activationThreshold", "1"},
     {"activationThreshold: \"1\" and activationTargetValue: \"2\"", NULL}},
    {{"targetValueFromEnv", "2", "targetValue", "1"}, {"targetValue: \"1\" and targetValueFromEnv: \"2\"", NULL}},
    /* texts of others are shown printable and short */
    {{"targetValue", "\"\t\377"}, {"UTF-8", NULL}},
    {{"\377", "1"}, {"metadata ?: key or value is not valid UTF-8", NULL}},
    {{"targetValue", "a\"b"}, {"\"a?b\"", NULL}},
    {{"targetValue", "1234567890123456789012345678901234567890123456789012345678901234567890123456789"},
     {"\"123456789012345678901234567890123456789012345678901234567890123456789012...\"", NULL}},
};

static void test_refusals_name_key_value_and_what_is_allowed(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
        struct err e = refusal_of(metadata_of(refusals[i].texts));
        for (size_t j = 0; j < ARRAY_LEN(refusals[i].parts) && refusals[i].parts[j]; j++)
            assert_contains(e.text, refusals[i].parts[j]);
        assert_true(strlen(e.text) < ERR_TEXT_MAX - 4); /* nothing had to be cut */
    }
}

static void test_texts_up_to_their_limits_are_accepted_and_beyond_refused(void **state)
{
    (void)state;
    static const struct {
        const char *key, *prefix;
        size_t max;
    } limits[] = {{"metricName", "m", 120},
                  {"gpuUUID", "GPU-", 95},
                  {"gpuProduct", "A", 95},
                  {"podSelector", "a", 255},
                  {"vllmEndpoint", "http://a/", 255},
                  {"tritonEndpoint", "http://a/", 255}};
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        char text[300];
        memset(text, 'x', sizeof(text));
        memcpy(text, limits[i].prefix, strlen(limits[i].prefix));
        text[limits[i].max + 1] = '\0';
        struct err e = refusal_of(METADATA(limits[i].key, text));
        assert_contains(e.text, "too long");
        text[limits[i].max] = '\0';
        TRIGGER_AUTO t = PARSE(limits[i].key, text);
        assert_non_null(t);
    }
}

static void test_metadata_beyond_its_ceilings_is_refused(void **state)
{
    (void)state;
    struct metadata m = {.n = 0};
    for (m.n = 0; m.n < TRIGGER_PAIRS_MAX; m.n++)
        m.pairs[m.n] = (struct trigger_pair){str_of("gpuIndex"), str_of("0")};
    TRIGGER_AUTO t = parse_with(&agent_settings, m);
    assert_int_equal(t->gpu_index, 0);
    m.pairs[m.n++] = m.pairs[0];
    struct err e = refusal_of(m);
    assert_contains(e.text, "65 keys; allowed: at most 64");

    MEM_AUTO char *large = (char *)mem_new_array(1, TRIGGER_BYTES_MAX + 1);
    memset(large, 'x', TRIGGER_BYTES_MAX);
    struct metadata big = METADATA("scalerAddress", large);
    e = refusal_of(big);
    assert_contains(e.text, "at most 65536 bytes");
    big.pairs[0].value.len = TRIGGER_BYTES_MAX - strlen("scalerAddress");
    TRIGGER_AUTO passed = parse_with(&agent_settings, big);
    assert_non_null(passed);
}

static void test_refusal_without_a_place_for_the_error_is_only_null(void **state)
{
    (void)state;
    struct metadata m = METADATA("targetValue", "x");
    assert_null(trigger_parse(m.pairs, m.n, &agent_settings, NULL));
}

static void test_no_pairs_at_all_give_all_defaults(void **state)
{
    (void)state;
    TRIGGER_AUTO t = trigger_parse(NULL, 0, &agent_settings, NULL);
    assert_non_null(t);
    assert_string_equal(t->metric_name, "keda_gpu_metric");
    struct trigger_pair empty = {{NULL, 0}, {NULL, 0}};
    struct err e;
    assert_null(trigger_parse(&empty, 1, &agent_settings, &e));
    struct trigger_pair no_value = {str_of("targetValue"), {NULL, 0}};
    assert_null(trigger_parse(&no_value, 1, &agent_settings, &e));
    assert_contains(e.text, "targetValue: \"\"");
}

/* ---- warnings ---- */

static const struct {
    const char *texts[10];
    const char *part; /* of a warning that must be there; after "!" of one that must not */
} warnings[] = {
    {{"profile", "vllm-queue-depth", "vllmEndpoint", "http://v/m", "targetGpuUtilization", "80"},
     "targetGpuUtilization selects gpu_utilization and overrules vllm_queue_depth, which profile vllm-queue-depth"},
    {{"profile", "vllm-queue-depth", "vllmEndpoint", "http://v/m", "targetGpuUtilization", "80"},
     "the name stays keda_gpu_vllm_queue_depth, although gpu_utilization is measured"},
    {{"profile", "vllm-queue-depth", "vllmEndpoint", "http://v/m", "targetGpuUtilization", "80"},
     "vllmEndpoint has no effect"},
    {{"targetGpuUtilization", "70", "targetMemoryUtilization", "65"}, "targetMemoryUtilization 65 overrules"},
    {{"targetGpuUtilization", "70", "targetMemoryUtilization", "65"}, "selects memory_used_percent and overrules"},
    {{"metricType", "power_draw", "targetValue", "300", "targetGpuUtilization", "80"},
     "targetGpuUtilization 80 overrules targetValue 300"},
    {{"targetValue", "80", "targetGpuUtilization", "80"}, "!overrules"},
    {{"profile", "batch", "targetValue", "60"}, "!overrules"},
    {{"profile", "batch", "metricType", "memory_used"}, "!overrules"},
    {{"profile", "batch", "metricType", "memory_used"}, "!the name stays"},
    {{"profile", "batch", "targetMemoryUtilization", "60"}, "!overrules"},
    {{"profile", "triton-inference", "metricType", "power_draw"}, "threshold 10 of profile triton-inference is for"},
    {{"profile", "triton-inference", "metricType", "power_draw"}, "75 from the profile is taken as 75 W"},
    {{"profile", "triton-inference", "metricType", "power_draw", "targetValue", "250"}, "!is taken as"},
    {{"metricType", "power_draw"}, "80 from the default is taken as 80 W"},
    {{"metricType", "sm_activity"}, "!is taken as"},
    {{"metricName", "temperature", "metricType", "power_draw"}, "metricName temperature is only a name"},
    {{"profile", "batch", "metricName", "gpu_utilization"}, "metricName selects gpu_utilization and overrules"},
    {{"podSelector", "a=b"}, "podSelector has no effect in scope node"},
    {{"warmupSeconds", "5"}, "warmupSeconds has no effect in scope node"},
    {{"tritonEndpoint", "http://a/m"}, "tritonEndpoint has no effect"},
    {{"targetValue", "80"}, "never past 2 replicas: max of gpu_utilization"},
    {{"targetValue", "30"}, "never past 4 replicas"},
    {{"targetValue", "100"}, "!never past"}, /* it never grows: once is enough */
    {{"targetValue", "100"}, "at most 100, and with target 100 the HPA adds replicas only above 110"},
    {{"targetValue", "200", "hpaMetricType", "Value"}, "with target 200 the HPA adds replicas only above 220"},
    {{"targetValue", "80", "aggregation", "sum"}, "!never past"},
    {{"targetValue", "80", "hpaMetricType", "Value"}, "!never past"},
    {{"targetValue", "80", "hpaMetricType", "AverageValue"}, "never past 2"},
    {{"targetValue", "80", "metricType", "power_draw"}, "!never past"},
    {{"targetValue", "91"}, "never grows: max of gpu_utilization is at most 100"},
    {{"targetValue", "91"}, "only above 100.1 "},
    {{"targetValue", "90"}, "!never grows"},
    {{"hpaMetricType", "Value", "aggregation", "sum"}, "runs away"},
    {{"hpaMetricType", "Value", "aggregation", "avg"}, "!runs away"},
    {{"profile", "vllm-inference"}, "memory is no load"},
    {{"metricType", "memory_used_mib", "targetValue", "30000"}, "memory is no load"},
    {{"metricType", "memory_utilization"}, "!memory is no load"},
    {{"activationThreshold", "100"}, "never active: gpu_utilization cannot be above 100"},
    {{"activationThreshold", "99"}, "activationThreshold 99 is above target 80"},
    {{"activationThreshold", "80"}, "!activationThreshold 80 is above"},
};

static void test_warnings_come_where_they_apply_and_only_there(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(warnings); i++) {
        bool is_wanted = warnings[i].part[0] != '!';
        TRIGGER_AUTO t = parse_with(&agent_settings, metadata_of(warnings[i].texts));
        if (WARNED(t, warnings[i].part + !is_wanted) == is_wanted)
            continue;
        print_error("row %zu: \"%s\"; there are:\n", i, warnings[i].part);
        for (size_t j = 0; j < t->n_warnings; j++)
            print_error("  %s\n", t->warnings[j]);
        fail();
    }
}

static void test_trigger_lives_as_long_as_its_references(void **state)
{
    (void)state;
    struct trigger *t = PARSE();
    assert_ptr_equal(trigger_ref(t), t);
    trigger_unref(t);
    assert_double_same(t->target, 80);
    trigger_unref(t);
    trigger_unref(NULL);
}

/* ---- docs/triggers.md says what the tables say ---- */

static void assert_documented(const char *docs, const char *what)
{
    char cell[160];
    if (!what)
        return; /* no alias */
    (void)snprintf(cell, sizeof(cell), "`%s`", what);
    assert_contains(docs, cell);
}

static void test_documentation_has_every_key_metric_and_profile(void **state)
{
    (void)state;
    char path[512];
    struct err e;
    BUF_AUTO struct buf docs;
    buf_init(&docs, 1 << 20);
    const char *test_dir = getenv("TEST_DATA");
    (void)snprintf(path, sizeof(path), "%s/../docs/triggers.md", test_dir ? test_dir : "test");
    assert_int_equal(file_read(path, &docs, &e), 0);
    const char *text = buf_cstr(&docs);
#define X(id, name, alias, allowed)                                                                                    \
    assert_documented(text, name);                                                                                     \
    assert_documented(text, alias);
    TRIGGER_KEYS(X)
#undef X
#define X(name) assert_documented(text, name);
    TRIGGER_PASSED_OVER(X)
#undef X
    char row[256];
#define X(id, name, alias, source, unit, divisor)                                                                      \
    (void)snprintf(row, sizeof(row), "| `%s` |%s%s |", name, (unit)[0] ? " " : "", unit);                              \
    assert_contains(text, row);                                                                                        \
    assert_documented(text, alias);
    TRIGGER_METRICS(X)
#undef X
#define X(name, metric_name, metric, target, activation, engine)                                                       \
    (void)snprintf(row, sizeof(row), "| `%s` | `%s` | `%s` | %g | %g |", name, metric_name,                            \
                   trigger_metric_name(TRIGGER_##metric), (double)(target), (double)(activation));                     \
    assert_contains(text, row);
    TRIGGER_PROFILES(X)
#undef X
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_metadata_gives_the_documented_spec),
        cmocka_unit_test(test_every_metric_type_is_accepted_under_each_of_its_names),
        cmocka_unit_test(test_defaults_of_every_other_key),
        cmocka_unit_test(test_every_other_key_is_read),
        cmocka_unit_test(test_durations_are_seconds_or_go_durations),
        cmocka_unit_test(test_training_is_always_active_in_scope_node),
        cmocka_unit_test(test_scope_comes_from_the_program_unless_given),
        cmocka_unit_test(test_configuration_gives_defaults_by_metric_name),
        cmocka_unit_test(test_refusals_name_key_value_and_what_is_allowed),
        cmocka_unit_test(test_texts_up_to_their_limits_are_accepted_and_beyond_refused),
        cmocka_unit_test(test_metadata_beyond_its_ceilings_is_refused),
        cmocka_unit_test(test_refusal_without_a_place_for_the_error_is_only_null),
        cmocka_unit_test(test_no_pairs_at_all_give_all_defaults),
        cmocka_unit_test(test_warnings_come_where_they_apply_and_only_there),
        cmocka_unit_test(test_trigger_lives_as_long_as_its_references),
        cmocka_unit_test(test_documentation_has_every_key_metric_and_profile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
