/* Keys of engines' pages, and several metric types in one trigger: what they mean, what has no effect, what is refused.
 */
#include "trigger/trigger.h"

#include "metadata.h"

#define PARSE(...)         parse_with(&agent_settings, METADATA(__VA_ARGS__))
#define PARSE_FOR_HUB(...) parse_with(&hub_settings, METADATA(__VA_ARGS__))
#define WARNED(t, part)    has_warning((const char(*)[TRIGGER_TEXT_MAX])(t)->warnings, (t)->n_warnings, (part))

/* ---- where pages are ---- */

static void test_keys_of_the_page_are_read(void **state)
{
    (void)state;
    TRIGGER_AUTO t = PARSE_FOR_HUB("metricType", "requests_waiting", "targetValue", "5", "enginePort", "8123",
                                   "enginePath", "/custom/metrics?x=1", "engineScheme", "https");
    assert_int_equal(t->engine_port, 8123);
    assert_string_equal(t->engine_path, "/custom/metrics?x=1");
    assert_string_equal(t->engine_scheme, "https");
    assert_int_equal(t->engine, SIGNALS_ENGINE_UNKNOWN);
    assert_int_equal(t->n_warnings, 0);
    assert_null(trigger_endpoint(t));
    assert_null(trigger_endpoint_hint(t));
    TRIGGER_AUTO plain = PARSE_FOR_HUB("metricType", "requests_waiting", "targetValue", "5");
    assert_int_equal(plain->engine_port, 0);
    assert_string_equal(plain->engine_path, "");
    assert_string_equal(plain->engine_scheme, "");
}

static void test_either_endpoint_serves_any_engine_metric(void **state)
{
    (void)state;
    static const struct {
        const char *metric, *key;
    } rows[] = {{"requests_waiting", "vllmEndpoint"},
                {"requests_waiting", "tritonEndpoint"},
                {"vllm_queue_depth", "tritonEndpoint"},
                {"triton_request_rate", "vllmEndpoint"},
                {"triton_request_rate", "tritonEndpoint"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        TRIGGER_AUTO t = PARSE("metricType", rows[i].metric, "targetValue", "5", rows[i].key, "http://a/m");
        assert_string_equal(trigger_endpoint(t), "http://a/m");
        assert_false(WARNED(t, "no effect"));
        TRIGGER_AUTO cluster = PARSE_FOR_HUB("metricType", rows[i].metric, "targetValue", "5", rows[i].key,
                                             "http://a/m", "scope", "cluster");
        assert_string_equal(trigger_endpoint(cluster), "http://a/m");
        TRIGGER_AUTO workload =
            PARSE_FOR_HUB("metricType", rows[i].metric, "targetValue", "5", rows[i].key, "http://a/m");
        assert_null(trigger_endpoint(workload)); /* each pod's own page is read */
        assert_string_equal(trigger_endpoint_hint(workload), "http://a/m");
        TRIGGER_AUTO for_hub =
            PARSE("metricType", rows[i].metric, "targetValue", "5", rows[i].key, "http://a/m", "scope", "cluster");
        assert_null(trigger_endpoint(for_hub));
    }
    TRIGGER_AUTO gpu = PARSE("vllmEndpoint", "http://a/m");
    assert_null(trigger_endpoint(gpu));
    assert_null(trigger_endpoint_hint(gpu));
    TRIGGER_AUTO profile = PARSE_FOR_HUB("profile", "vllm-inference", "vllmEndpoint", "http://a/m");
    assert_string_equal(trigger_endpoint_hint(profile), "http://a/m");
    assert_int_equal(profile->n_warnings, 0);
}

static void test_of_two_endpoints_the_metric_type_tells_which(void **state)
{
    (void)state;
    TRIGGER_AUTO vllm = PARSE("metricType", "vllm_queue_depth", "targetValue", "5", "vllmEndpoint", "http://a/m",
                              "tritonEndpoint", "http://b/m");
    assert_string_equal(trigger_endpoint(vllm), "http://a/m");
    assert_true(WARNED(vllm, "tritonEndpoint has no effect: vllmEndpoint is read"));
    TRIGGER_AUTO triton =
        PARSE("profile", "triton-queue-wait", "vllmEndpoint", "http://a/m", "tritonEndpoint", "http://b/m");
    assert_string_equal(trigger_endpoint(triton), "http://b/m");
    assert_true(WARNED(triton, "vllmEndpoint has no effect: tritonEndpoint is read"));
    TRIGGER_AUTO same = PARSE("metricType", "request_rate", "targetValue", "5", "vllmEndpoint", "http://a/m",
                              "tritonEndpoint", "http://a/m");
    assert_string_equal(trigger_endpoint(same), "http://a/m");
    assert_false(WARNED(same, "no effect"));
}

static void test_profile_and_metric_type_name_the_engine(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value;
        enum signals_engine engine;
        bool prefers_engine;
    } rows[] = {{"profile", "vllm-inference", SIGNALS_ENGINE_VLLM, true},
                {"profile", "tgi-inference", SIGNALS_ENGINE_TGI, true},
                {"profile", "triton-inference", SIGNALS_ENGINE_TRITON, true},
                {"profile", "vllm-queue-depth", SIGNALS_ENGINE_VLLM, false},
                {"profile", "triton-request-rate", SIGNALS_ENGINE_TRITON, false},
                {"profile", "batch", SIGNALS_ENGINE_UNKNOWN, false},
                {"profile", "ollama", SIGNALS_ENGINE_UNKNOWN, false},
                {"metricType", "vllm_kv_cache_usage", SIGNALS_ENGINE_VLLM, false},
                {"metricType", "triton_queue_wait_ms", SIGNALS_ENGINE_TRITON, false},
                {"metricType", "requests_in_flight", SIGNALS_ENGINE_UNKNOWN, false},
                {"metricType", "gpu_utilization", SIGNALS_ENGINE_UNKNOWN, false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        TRIGGER_AUTO t = PARSE_FOR_HUB(rows[i].key, rows[i].value, "targetValue", "50");
        assert_int_equal(t->engine, rows[i].engine);
        assert_int_equal(t->prefers_engine, rows[i].prefers_engine);
    }
}

static void test_page_takes_the_place_of_memory_only_where_the_profile_alone_chose(void **state)
{
    (void)state;
    TRIGGER_AUTO node = PARSE("profile", "vllm-inference"); /* there the documents' raw percentage stays */
    assert_false(node->prefers_engine);
    TRIGGER_AUTO cluster = PARSE_FOR_HUB("profile", "vllm-inference", "scope", "cluster");
    assert_false(cluster->prefers_engine);
    TRIGGER_AUTO with = PARSE_FOR_HUB("profile", "vllm-inference", "targetValue", "60", "metricName", "mine");
    assert_true(with->prefers_engine);
    TRIGGER_AUTO typed = PARSE_FOR_HUB("profile", "vllm-inference", "metricType", "memory_used_percent");
    assert_false(typed->prefers_engine);
    TRIGGER_AUTO shorthand = PARSE_FOR_HUB("profile", "vllm-inference", "targetMemoryUtilization", "70");
    assert_false(shorthand->prefers_engine);
}

/* ---- engineMetric ---- */

static void test_engine_metric_selects_its_type_unless_another_is_named(void **state)
{
    (void)state;
    TRIGGER_AUTO t = PARSE_FOR_HUB("engineMetric", "my_app:queue_depth", "targetValue", "5");
    assert_int_equal(t->metric, TRIGGER_ENGINE_METRIC);
    assert_string_equal(t->engine_metric, "my_app:queue_depth");
    assert_string_equal(t->metric_name, "keda_gpu_metric");
    TRIGGER_AUTO typed = PARSE_FOR_HUB("engineMetric", "q_total", "metricType", "engine_metric", "targetValue", "5");
    assert_int_equal(typed->metric, TRIGGER_ENGINE_METRIC);
    TRIGGER_AUTO other = PARSE_FOR_HUB("engineMetric", "q", "metricType", "requests_waiting", "targetValue", "5");
    assert_int_equal(other->metric, TRIGGER_REQUESTS_WAITING);
    assert_string_equal(other->engine_metric, "");
    assert_true(WARNED(other, "engineMetric has no effect: requests_waiting is measured"));
    TRIGGER_AUTO profile = PARSE_FOR_HUB("engineMetric", "q", "profile", "vllm-inference", "targetValue", "5");
    assert_int_equal(profile->metric, TRIGGER_ENGINE_METRIC);
    assert_true(WARNED(profile, "engineMetric selects engine_metric and overrules memory_used_percent"));
    TRIGGER_AUTO unnamed = PARSE_FOR_HUB("engineMetric", "q");
    assert_true(WARNED(unnamed, "no targetValue: 80 from the default is taken as 80"));
}

/* ---- activity ---- */

static void test_a_threshold_counts_as_given_only_in_the_metadata(void **state)
{
    (void)state;
    TRIGGER_AUTO none = PARSE_FOR_HUB("profile", "triton-queue-wait");
    assert_false(none->has_activation);
    assert_double_same(none->activation, 5);
    TRIGGER_AUTO given = PARSE_FOR_HUB("profile", "triton-queue-wait", "activationTargetValue", "7");
    assert_true(given->has_activation);
    assert_double_same(given->activation, 7);
}

/* ---- waking from zero ---- */

static void test_wake_signal_is_a_page_and_a_metric_of_it(void **state)
{
    (void)state;
    TRIGGER_AUTO t = PARSE_FOR_HUB("wakeEndpoint", "http://router.ml.svc:9000/metrics", "wakeMetric", "queue_depth");
    assert_string_equal(t->wake_endpoint, "http://router.ml.svc:9000/metrics");
    assert_string_equal(t->wake_metric, "queue_depth");
    assert_int_equal(t->n_warnings, 0);
    TRIGGER_AUTO node = PARSE("wakeEndpoint", "http://router/metrics", "wakeMetric", "queue_depth");
    assert_true(WARNED(node, "wakeEndpoint has no effect in scope node"));
    TRIGGER_AUTO cluster = PARSE_FOR_HUB("wakeEndpoint", "http://router/m", "wakeMetric", "q", "scope", "cluster");
    assert_true(WARNED(cluster, "wakeEndpoint has no effect in scope cluster"));
}

/* ---- warnings ---- */

static const struct {
    const char *texts[12];
    const char *part; /* of a warning that must be there; after "!" of one that must not */
} warnings[] = {
    {{"enginePort", "1"}, "enginePort has no effect: gpu_utilization is measured"},
    {{"enginePath", "/m"}, "enginePath has no effect: gpu_utilization is measured"},
    {{"engineScheme", "http"}, "engineScheme has no effect: gpu_utilization is measured"},
    {{"engineMetric", "q", "metricType", "power_draw"}, "engineMetric has no effect: power_draw is measured"},
    {{"profile", "vllm-inference", "enginePort", "1"}, "!no effect"},
    {{"profile", "vllm-inference", "gpuIndex", "1"}, "!no effect"},
    {{"metricType", "kv_cache_usage", "enginePort", "1", "scope", "cluster", "vllmEndpoint", "http://a/m"},
     "enginePort has no effect in scope cluster: the endpoint's URL says it"},
    {{"metricType", "kv_cache_usage", "gpuIndex", "1"},
     "gpuIndex has no effect: kv_cache_usage is of the engine's page"},
    {{"metricType", "kv_cache_usage", "gpuUUID", "GPU-1"}, "gpuUUID has no effect"},
    {{"metricType", "kv_cache_usage", "gpuProduct", "A10"}, "gpuProduct has no effect"},
    {{"metricType", "kv_cache_usage,gpu_utilization", "targetValue", "1,2", "gpuIndex", "1"}, "!no effect"},
    {{"metricType", "requests_waiting", "aggregation", "max"},
     "aggregation max of requests_waiting takes one replica for all of them"},
    {{"metricType", "request_rate", "aggregation", "p95"}, "aggregation p95 of request_rate"},
    {{"metricType", "requests_waiting", "aggregation", "avg"}, "!aggregation"},
    {{"metricType", "requests_waiting", "aggregation", "sum"}, "!aggregation"},
    {{"metricType", "kv_cache_usage", "aggregation", "max"}, "!aggregation"},
    {{"metricType", "queue_wait_ms", "aggregation", "max"}, "!aggregation"},
    {{"metricType", "gpu_utilization,requests_running", "targetValue", "1,2", "aggregation", "max"},
     "aggregation max of requests_running"},
    {{"metricType", "requests_waiting", "aggregation", "max", "scope", "cluster", "vllmEndpoint", "http://a/m"},
     "aggregation has no effect: one page is read"},
    {{"metricType", "requests_waiting", "scope", "cluster", "vllmEndpoint", "http://a/m"},
     "one page is read: behind a Service"},
    {{"metricType", "requests_waiting", "vllmEndpoint", "http://a/m"}, "!one page is read"},
    {{"metricType", "queue_wait_ms", "scope", "cluster", "vllmEndpoint", "http://a/m"},
     "never settles: under AverageValue (KEDA's default) the HPA asks for queue_wait_ms / target replicas"},
    {{"metricType", "queue_wait_ms", "scope", "cluster", "vllmEndpoint", "http://a/m", "hpaMetricType", "Value"},
     "!never settles"},
    {{"metricType", "requests_waiting", "scope", "cluster", "vllmEndpoint", "http://a/m"}, "!never settles"},
    {{"metricType", "queue_wait_ms", "vllmEndpoint", "http://a/m"}, "!never settles"},
    {{"metricType", "requests_waiting,gpu_utilization", "targetValue", "1,2", "profile", "training"}, "!overrules"},
    {{"metricType", "requests_waiting,power_draw", "targetValue", "1,2", "profile", "training"},
     "metricType selects requests_waiting,power_draw and overrules gpu_utilization, which profile training selects"},
    {{"metricType", "requests_waiting,power_draw", "targetValue", "1,2", "profile", "triton-inference"},
     "activation threshold 10 of profile triton-inference is for gpu_utilization: 0 applies"},
    {{"metricType", "requests_waiting,power_draw", "targetValue", "1,2", "profile", "triton-inference"},
     "the name stays keda_gpu_triton_inference, although requests_waiting,power_draw is measured"},
    {{"metricType", "requests_waiting,power_draw", "targetValue", "1,2", "metricName", "temperature"},
     "metricName temperature is only a name"},
};

static void test_warnings_come_where_they_apply_and_only_there(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(warnings); i++) {
        bool is_wanted = warnings[i].part[0] != '!';
        TRIGGER_AUTO t = parse_with(&hub_settings, metadata_of(warnings[i].texts));
        if (WARNED(t, warnings[i].part + !is_wanted) == is_wanted)
            continue;
        print_error("row %zu: \"%s\"; there are:\n", i, warnings[i].part);
        for (size_t j = 0; j < t->n_warnings; j++)
            print_error("  %s\n", t->warnings[j]);
        fail();
    }
}

/* ---- several metric types ---- */

static void test_each_of_several_metric_types_is_a_trigger_of_its_own(void **state)
{
    (void)state;
    TRIGGER_AUTO t = PARSE_FOR_HUB("metricType", "requests_in_flight, kv_cache_usage ,engine_metric", "targetValue",
                                   "16 , 80,2.5", "activationThreshold", "1,5,0", "engineMetric", "q", "window", "30",
                                   "scope", "workload", "aggregation", "max");
    assert_string_equal(t->metric_name, "keda_gpu_signals");
    assert_double_same(t->target, 100);
    assert_int_equal(t->metric, TRIGGER_REQUESTS_IN_FLIGHT);
    assert_string_equal(trigger_unit(t), "%");
    assert_int_equal(t->n_parts, 3);
    static const struct {
        enum trigger_metric metric;
        double target, activation;
        const char *engine_metric, *unit;
    } parts[] = {{TRIGGER_REQUESTS_IN_FLIGHT, 16, 1, "", "requests"},
                 {TRIGGER_KV_CACHE_USAGE, 80, 5, "", "%"},
                 {TRIGGER_ENGINE_METRIC, 2.5, 0, "q", ""}};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        const struct trigger *part = t->parts[i];
        assert_int_equal(part->metric, parts[i].metric);
        assert_double_same(part->target, parts[i].target);
        assert_double_same(part->activation, parts[i].activation);
        assert_string_equal(part->engine_metric, parts[i].engine_metric);
        assert_string_equal(trigger_unit(part), parts[i].unit);
        assert_int_equal(part->window_ns, 30 * NS_PER_S);
        assert_int_equal(part->aggregation, SCALING_MAX);
        assert_int_equal(part->scope, TRIGGER_WORKLOAD);
        assert_true(part->has_activation);
        assert_int_equal(part->n_parts, 0);
        assert_int_equal(part->n_warnings, 0);
    }
    char types[TRIGGER_TYPES_MAX];
    trigger_show_types(t, types);
    assert_string_equal(types, "requests_in_flight,kv_cache_usage,engine_metric");
    trigger_show_types(t->parts[1], types);
    assert_string_equal(types, "kv_cache_usage");
}

static void test_parts_live_as_long_as_their_references(void **state)
{
    (void)state;
    struct trigger *t = PARSE_FOR_HUB("metricType", "kv_cache_usage,gpu_utilization", "targetValue", "80,60");
    struct trigger *part = trigger_ref(t->parts[1]);
    trigger_unref(t);
    assert_double_same(part->target, 60);
    trigger_unref(part);
}

static void test_one_threshold_is_for_each_of_several_metric_types(void **state)
{
    (void)state;
    TRIGGER_AUTO one = PARSE_FOR_HUB("metricType", "requests_in_flight,kv_cache_usage", "targetValue", "16,80",
                                     "activationThreshold", "3");
    assert_double_same(one->parts[0]->activation, 3);
    assert_double_same(one->parts[1]->activation, 3);
    TRIGGER_AUTO none = PARSE_FOR_HUB("metricType", "requests_in_flight,kv_cache_usage", "targetValue", "16,80");
    assert_double_same(none->parts[1]->activation, 0);
    assert_false(none->parts[1]->has_activation);
}

static void test_names_of_several_metric_types_come_from_profile_or_metadata(void **state)
{
    (void)state;
    TRIGGER_AUTO profile = PARSE_FOR_HUB("metricType", "requests_in_flight,kv_cache_usage", "targetValue", "16,80",
                                         "profile", "vllm-inference");
    assert_string_equal(profile->metric_name, "keda_gpu_vllm_inference");
    assert_int_equal(profile->engine, SIGNALS_ENGINE_VLLM);
    assert_false(profile->prefers_engine);
    TRIGGER_AUTO named =
        PARSE_FOR_HUB("metricType", "requests_in_flight,kv_cache_usage", "targetValue", "16,80", "metricName", "load");
    assert_string_equal(named->metric_name, "load");
}

static void test_an_agent_takes_several_metric_types_for_the_hub(void **state)
{
    (void)state;
    TRIGGER_AUTO t =
        PARSE("metricType", "requests_in_flight,kv_cache_usage", "targetValue", "16,80", "scope", "workload");
    assert_true(t->is_for_hub);
    assert_true(t->parts[1]->is_for_hub);
}

/* ---- refusals ---- */

static const struct {
    const char *texts[10];
    const char *parts[4]; /* each must be in the refusal */
} refusals[] = {
    {{"enginePort", "0"}, {"enginePort: \"0\" is out of range", "1 to 65535", NULL}},
    {{"enginePort", "65536"}, {"out of range", NULL}},
    {{"enginePort", "http"}, {"is not a whole number", NULL}},
    {{"enginePort", "-1"}, {"is not a whole number", NULL}},
    {{"enginePath", "metrics"}, {"enginePath: \"metrics\" does not begin with '/'", NULL}},
    {{"enginePath", ""}, {"is empty", NULL}},
    {{"enginePath", "/a b"}, {"has characters", NULL}},
    {{"enginePath", "/a#b"}, {"has characters", NULL}},
    {{"enginePath", "/m\303\251"}, {"has characters", NULL}},
    {{"engineScheme", "HTTPS"}, {"engineScheme: \"HTTPS\" is not known", "did you mean \"https\"?", NULL}},
    {{"engineMetric", "a{b=\"c\"}"}, {"is no metric name", "no labels", NULL}},
    {{"engineMetric", "9lives"}, {"is no metric name", NULL}},
    {{"engineMetric", ""}, {"is empty", NULL}},
    {{"metricType", "engine_metric"}, {"engineMetric is missing", "1 to 127 characters", NULL}},
    {{"metricName", "engine_metric"}, {"engineMetric is missing", NULL}},
    {{"metricType", "engine_metric,kv_cache_usage", "targetValue", "1,2", "scope", "workload"},
     {"engineMetric is missing", NULL}},
    {{"engineMetric", "q", "targetValue", "5"}, {"vllmEndpoint (or tritonEndpoint) is missing", "engine_metric", NULL}},
    {{"metricType", "kv_cache_usage", "vllmEndpoint", "http://a/", "tritonEndpoint", "http://b/"},
     {"vllmEndpoint and tritonEndpoint name two pages", "kv_cache_usage", "keep one", NULL}},
    {{"metricType", "kv_cache_usage", "vllmEndpoint", "http://169.254.169.254/"}, {"vllmEndpoint", NULL}},
    {{"wakeEndpoint", "http://a/m"}, {"wakeMetric is missing", NULL}},
    {{"wakeMetric", "q"}, {"wakeEndpoint is missing", NULL}},
    {{"wakeEndpoint", "http://metadata.google.internal/m", "wakeMetric", "q"}, {"wakeEndpoint", "metadata", NULL}},
    {{"wakeEndpoint", "http://a/m", "wakeMetric", "q q"}, {"wakeMetric: \"q q\" is no metric name", NULL}},
    /* several metric types */
    {{"metricType", "kv_cache_usage,nonsense", "targetValue", "1,2"}, {"metricType: \"nonsense\" is not known", NULL}},
    {{"metricType", "kv_cache_usage,", "targetValue", "1,2"},
     {"a comma without a name beside it", "kv_cache_usage,", NULL}},
    {{"metricType", ",", "targetValue", "1,2"}, {"a comma without a name beside it", NULL}},
    {{"metricType", "kv_cache_usage,kv_cache_usage"}, {"names one metric twice", NULL}},
    {{"metricType", "kv_cache_usage,vllm_kv_cache_usage"}, {"names one metric twice", NULL}},
    {{"metricType", "memory_used,memory_used_percent"}, {"names one metric twice", NULL}},
    {{"metricType", "kv_cache_usage,memory_free"}, {"\"memory_free\" is exported but not scaled on", NULL}},
    {{"metricType", "requests_waiting,requests_running,kv_cache_usage,queue_wait_ms,power_draw"},
     {"names too many metric types", "at most four", NULL}},
    {{"metricType", "requests_in_flight,kv_cache_usage", "scope", "workload"},
     {"targetValue is missing", "requests_in_flight,kv_cache_usage", "\"16,80\"", NULL}},
    {{"metricType", "requests_in_flight,kv_cache_usage", "targetValue", "16", "scope", "workload"},
     {"targetValue: \"16\" has 1 of 2 numbers", "in the order of metricType", NULL}},
    {{"metricType", "requests_in_flight,kv_cache_usage", "targetValue", "16,80,90"}, {"has 3 of 2 numbers", NULL}},
    {{"metricType", "requests_in_flight,kv_cache_usage", "targetValue", "16,0"}, {"\"0\" is out of range", NULL}},
    {{"metricType", "requests_in_flight,kv_cache_usage", "targetValue", "16,"}, {"not a plain decimal", NULL}},
    {{"metricType", "requests_in_flight,kv_cache_usage", "targetValue", "1,2", "activationThreshold", "1,2,3"},
     {"activationThreshold: \"1,2,3\" has 3 of 2 numbers", NULL}},
    {{"metricType", "requests_in_flight,kv_cache_usage", "targetValue", "1,2", "activationThreshold", "x"},
     {"activationThreshold: \"x\"", NULL}},
    {{"metricType", "requests_in_flight,gpu_utilization", "targetGpuUtilization", "80"},
     {"targetGpuUtilization: selects one metric", "targetValue", NULL}},
    {{"metricType", "requests_in_flight,gpu_utilization", "targetValue", "1,2", "targetMemoryUtilization", "80"},
     {"targetMemoryUtilization: selects one metric", NULL}},
    {{"metricType", "requests_in_flight,kv_cache_usage", "targetValue", "16,80"},
     {"names several metric types, which only scope workload", "a trigger of its own", NULL}},
    {{"metricType", "requests_in_flight,kv_cache_usage", "targetValue", "16,80", "scope", "cluster"},
     {"only scope workload", NULL}},
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
    } limits[] = {{"enginePath", "/", 255}, {"engineMetric", "m", 127}};
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        char text[300];
        memset(text, 'x', sizeof(text));
        memcpy(text, limits[i].prefix, strlen(limits[i].prefix));
        text[limits[i].max + 1] = '\0';
        assert_contains(refusal_of(METADATA(limits[i].key, text)).text, "too long");
        text[limits[i].max] = '\0';
        TRIGGER_AUTO t = PARSE_FOR_HUB(limits[i].key, text);
        assert_non_null(t);
    }
}

static void test_what_stands_before_an_at_sign_is_not_shown(void **state)
{
    (void)state;
    static const char *const urls[] = {"http://me:secret@vllm.ml:8000/metrics", "ftp://secret@vllm.ml:8000/metrics",
                                       "http://a:secret@b@vllm.ml:8000/metrics", "secret@vllm.ml:8000/metrics",
                                       "http://me:sec ret@vllm.ml:8000/metrics"};
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        struct err e = refusal_of(METADATA("vllmEndpoint", urls[i]));
        assert_contains(e.text, "metadata vllmEndpoint: \"...@vllm.ml:8000/metrics\"");
        assert_null(strstr(e.text, "sec"));
    }
    assert_contains(refusal_of(METADATA("vllmEndpoint", urls[0])).text, "user name or password");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_of_the_page_are_read),
        cmocka_unit_test(test_either_endpoint_serves_any_engine_metric),
        cmocka_unit_test(test_of_two_endpoints_the_metric_type_tells_which),
        cmocka_unit_test(test_profile_and_metric_type_name_the_engine),
        cmocka_unit_test(test_page_takes_the_place_of_memory_only_where_the_profile_alone_chose),
        cmocka_unit_test(test_engine_metric_selects_its_type_unless_another_is_named),
        cmocka_unit_test(test_a_threshold_counts_as_given_only_in_the_metadata),
        cmocka_unit_test(test_wake_signal_is_a_page_and_a_metric_of_it),
        cmocka_unit_test(test_warnings_come_where_they_apply_and_only_there),
        cmocka_unit_test(test_each_of_several_metric_types_is_a_trigger_of_its_own),
        cmocka_unit_test(test_parts_live_as_long_as_their_references),
        cmocka_unit_test(test_one_threshold_is_for_each_of_several_metric_types),
        cmocka_unit_test(test_names_of_several_metric_types_come_from_profile_or_metadata),
        cmocka_unit_test(test_an_agent_takes_several_metric_types_for_the_hub),
        cmocka_unit_test(test_refusals_name_key_value_and_what_is_allowed),
        cmocka_unit_test(test_texts_up_to_their_limits_are_accepted_and_beyond_refused),
        cmocka_unit_test(test_what_stands_before_an_at_sign_is_not_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
