/* The rows of the lint table about engines' pages, and about several signals in one trigger. */
#include "workload/workload.h"

#include "linting.h"

static void min_zero(struct world *w, struct objects *o)
{
    (void)w;
    o->object.min = 0;
}
static void min_zero_and_another_trigger(struct world *w, struct objects *o)
{
    min_zero(w, o);
    o->object.n_other_triggers = 1;
}
static void another_trigger(struct world *w, struct objects *o)
{
    (void)w;
    o->object.n_other_triggers = 1;
}
static void object_unknown(struct world *w, struct objects *o)
{
    (void)o;
    w->facts.scaled_object = NULL;
}
static void fixed_count(struct world *w, struct objects *o)
{
    (void)w;
    o->object.min = o->object.max;
}
static void wide_tolerance(struct world *w, struct objects *o)
{
    (void)w;
    o->hpa.has_behavior = true;
    o->hpa.up.has_tolerance = true;
    o->hpa.up.tolerance = 0.3;
}

#define NAMED        "metricName", "load"
#define SIGNAL(type) "metricType", type, NAMED
#define KV           SIGNAL("kv_cache_usage")
#define IN_FLIGHT    SIGNAL("requests_in_flight")
#define WAITING      SIGNAL("requests_waiting")
#define TTFT         SIGNAL("time_to_first_token_ms")
#define VLLM         "profile", "vllm-inference", NAMED
#define WAKE         "wakeEndpoint", "http://router:9090/metrics", "wakeMetric", "router_queue"

static const struct {
    const char *id;
    const char *applies[14];
    change applied;
    const char *quiet[14];
    change quieted;
    const char *part; /* of the sentence */
} rows[] = {
    {"fraction", {KV, "targetValue", "0.8"}, no_change, {IN_FLIGHT, "targetValue", "0.8"}, no_change, "is written 80"},
    {"fraction",
     {SIGNAL("requests_in_flight,kv_cache_usage"), "targetValue", "16,0.8"},
     no_change,
     {SIGNAL("requests_in_flight,kv_cache_usage"), "targetValue", "0.8,80"},
     no_change,
     "target 0.8 of kv_cache_usage is 0.8 %"},
    {"never_grows", {KV, "targetValue", "190"}, no_change, {KV, "targetValue", "80"}, no_change, "at most 200"},
    {"never_grows", {VLLM, "targetValue", "185"}, no_change, {VLLM, "targetValue", "95"}, no_change, "above 203.5"},
    {"grows_by_queue_only", {KV, "targetValue", "95"}, no_change, {KV, "targetValue", "90"}, no_change, "above 104.5"},
    {"grows_by_queue_only",
     {KV, "targetValue", "80"},
     wide_tolerance,
     {KV, "targetValue", "80"},
     no_change,
     "above 104"},
    {"grows_by_queue_only", {VLLM, "targetValue", "95"}, no_change, {VLLM}, no_change, "kv_cache_usage"},
    {"grows_by_queue_only",
     {KV, "targetValue", "95"},
     no_change,
     {SIGNAL("kv_cache_usage,requests_in_flight"), "targetValue", "95,16"},
     no_change,
     "requests wait"},
    {"never_wakes",
     {IN_FLIGHT, "targetValue", "16"},
     min_zero,
     {IN_FLIGHT, "targetValue", "16", WAKE},
     min_zero,
     "no page to look at: name a page that is there without them (wakeEndpoint and wakeMetric"},
    {"never_wakes",
     {IN_FLIGHT, "targetValue", "16"},
     min_zero,
     {IN_FLIGHT, "targetValue", "16"},
     min_zero_and_another_trigger,
     "never wakes"},
    {"never_wakes",
     {SIGNAL("requests_in_flight,kv_cache_usage"), "targetValue", "16,80"},
     min_zero,
     {SIGNAL("requests_in_flight,kv_cache_usage"), "targetValue", "16,80", WAKE},
     min_zero,
     "never wakes"},
    {"never_wakes",
     {VLLM},
     min_zero,
     {SIGNAL("requests_waiting"), "targetValue", "5", "scope", "cluster", "vllmEndpoint", "http://router:8000/metrics"},
     min_zero,
     "no page"},
    {"never_wakes",
     {SIGNAL("gpu_utilization"), "targetValue", "60"},
     min_zero,
     {SIGNAL("gpu_utilization"), "targetValue", "60", WAKE},
     min_zero,
     "no GPU"},
    {"running_saturates",
     {SIGNAL("requests_running"), "targetValue", "256"},
     no_change,
     {IN_FLIGHT, "targetValue", "256"},
     no_change,
     "above 281.6"},
    {"latency_lags",
     {TTFT, "targetValue", "500"},
     no_change,
     {TTFT, "targetValue", "500"},
     another_trigger,
     "rises late"},
    {"latency_lags",
     {SIGNAL("queue_wait_ms,inter_token_latency_ms"), "targetValue", "500,50"},
     no_change,
     {SIGNAL("time_to_first_token_ms,requests_in_flight"), "targetValue", "500,16"},
     no_change,
     "requests_in_flight"},
    {"latency_lags", {TTFT, "targetValue", "500"}, no_change, {TTFT, "targetValue", "500"}, object_unknown, "late"},
    {"swings", {WAITING, "targetValue", "5"}, no_change, {IN_FLIGHT, "targetValue", "5"}, no_change, "taken away"},
    {"swings", {"profile", "vllm-queue-depth", NAMED}, no_change, {WAITING, "targetValue", "5"}, fixed_count, "waits"},
    {"swings",
     {SIGNAL("requests_waiting,tokens_waiting"), "targetValue", "5,4000"},
     no_change,
     {SIGNAL("requests_waiting,kv_cache_usage"), "targetValue", "5,80"},
     no_change,
     "requests_in_flight"},
    {"short_rate_window",
     {SIGNAL("tokens_per_second"), "targetValue", "900", "window", "2"},
     no_change,
     {SIGNAL("tokens_per_second"), "targetValue", "900", "window", "3"},
     no_change,
     "2.5 s or longer"},
    {"short_rate_window",
     {TTFT, "targetValue", "500", "window", "0"},
     no_change,
     {KV, "targetValue", "80", "window", "0"},
     no_change,
     "window 0 s"},
    {"short_rate_window",
     {SIGNAL("requests_in_flight,request_rate"), "targetValue", "16,9", "window", "1"},
     no_change,
     {SIGNAL("requests_in_flight,kv_cache_usage"), "targetValue", "16,80", "window", "1"},
     no_change,
     "request_rate"},
    {"short_rate_window",
     {SIGNAL("request_rate"), "targetValue", "9", "window", "2.4"},
     no_change,
     {SIGNAL("request_rate"), "targetValue", "9", "window", "2.5", "activationWindow", "1"},
     no_change,
     "window 2.4 s"},
    {"swings",
     {WAITING, "targetValue", "5"},
     min_zero,
     {WAITING, "targetValue", "5", "scope", "cluster", "vllmEndpoint", "http://router:8000/metrics"},
     no_change,
     "taken away"},
    {"grows_by_queue_only",
     {KV, "targetValue", "95"},
     no_change,
     {KV, "targetValue", "95", "scope", "cluster", "vllmEndpoint", "http://router:8000/metrics"},
     no_change,
     "grows only"},
    {"tokens_estimated",
     {SIGNAL("tokens_waiting"), "targetValue", "4000"},
     no_change,
     {WAITING, "targetValue", "5"},
     no_change,
     "estimate"},
    {"part_never_grows",
     {SIGNAL("requests_in_flight,gpu_utilization"), "targetValue", "16,95"},
     no_change,
     {SIGNAL("requests_in_flight,gpu_utilization"), "targetValue", "16,90"},
     no_change,
     "gpu_utilization never asks for more"},
    {"part_never_grows",
     {SIGNAL("requests_in_flight,kv_cache_usage"), "targetValue", "16,190"},
     no_change,
     {SIGNAL("requests_in_flight,kv_cache_usage"), "targetValue", "16,95"},
     no_change,
     "at most 200"},
    {"part_never_decides",
     {SIGNAL("requests_waiting,requests_in_flight"), "targetValue", "16,16"},
     no_change,
     {SIGNAL("requests_waiting,requests_in_flight"), "targetValue", "4,16"},
     no_change,
     "requests_waiting with target 16 never decides"},
    {"part_never_decides",
     {SIGNAL("requests_in_flight,requests_running"), "targetValue", "8,9"},
     no_change,
     {SIGNAL("requests_running,kv_cache_usage"), "targetValue", "9,80"},
     no_change,
     "requests_in_flight with target 8"},
    {"never_active",
     {KV, "targetValue", "80", "activationThreshold", "200"},
     no_change,
     {KV, "targetValue", "80", "activationThreshold", "50"},
     no_change,
     "cannot be above 200"},
    {"activation_above_target",
     {IN_FLIGHT, "targetValue", "4", "activationThreshold", "5"},
     no_change,
     {IN_FLIGHT, "targetValue", "4"},
     no_change,
     "5 is above target 4"},
    {"hot_pod",
     {IN_FLIGHT, "targetValue", "16", "aggregation", "max"},
     no_change,
     {IN_FLIGHT, "targetValue", "16"},
     no_change,
     "maximum of 12"},
};

static void test_each_row_applies_and_stays_away(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct said with = lint(metadata_of(rows[i].applies), rows[i].applied);
        struct said without = lint(metadata_of(rows[i].quiet), rows[i].quieted);
        if (!find(&with, rows[i].id))
            fail_msg("row %zu: %s does not apply", i, rows[i].id);
        if (find(&without, rows[i].id))
            fail_msg("row %zu: %s applies where it should not: %s", i, rows[i].id, find(&without, rows[i].id));
        assert_contains(find(&with, rows[i].id), rows[i].part);
    }
}

static void test_good_set_ups_are_left_in_peace(void **state)
{
    (void)state;
    const struct metadata good[] = {
        METADATA(IN_FLIGHT, "targetValue", "16"),
        METADATA(KV, "targetValue", "80"),
        METADATA(VLLM),
        METADATA("profile", "tgi-inference", NAMED),
        METADATA(SIGNAL("requests_in_flight,kv_cache_usage"), "targetValue", "16,80"),
        METADATA(SIGNAL("requests_in_flight,gpu_utilization"), "targetValue", "16,60"),
        METADATA(SIGNAL("requests_in_flight,time_to_first_token_ms"), "targetValue", "16,500"),
        METADATA(SIGNAL("tokens_per_second"), "targetValue", "900"),
    };
    static const change unknowns[] = {no_change, object_unknown};
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        for (size_t k = 0; k < ARRAY_LEN(unknowns); k++) {
            struct said said = lint(good[i], unknowns[k]);
            if (said.n > 0)
                fail_msg("set-up %zu: %s: %s", i, said.ids[0], said.sentences[0]);
        }
}

static void test_what_is_of_gpus_is_not_said_of_a_page(void **state)
{
    (void)state;
    struct said said = lint(METADATA(WAITING, "targetValue", "5", "scope", "cluster", "vllmEndpoint",
                                     "http://router:8000/metrics", "aggregation", "sum"),
                            min_zero);
    assert_null(find(&said, "other_tenants"));
    assert_null(find(&said, "sum_with_value"));
    assert_null(find(&said, "memory_never_sleeps"));
    assert_null(find(&said, "swings")); /* the endpoint may be a router's, which sees more than the pods */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_row_applies_and_stays_away),
        cmocka_unit_test(test_good_set_ups_are_left_in_peace),
        cmocka_unit_test(test_what_is_of_gpus_is_not_said_of_a_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
