/* trigger: KEDA metadata -> validated trigger; trigger x snapshot -> value, activity and their explanation.
 * Owns keys, profiles, metric types and their refusals, the cache by text, and the value rules of scopes `node` and
 * `cluster` (scaling-semantics 3, 4); the rules of scope `workload` are in scaling/. No clock, no I/O. */
#ifndef TRIGGER_TRIGGER_H
#define TRIGGER_TRIGGER_H

#include "base/base.h"
#include "scaling/scaling.h"
#include "signals/signals.h"
#include "snapshot/snapshot.h"

enum trigger_scope { TRIGGER_NODE, TRIGGER_WORKLOAD, TRIGGER_CLUSTER };
enum trigger_on_missing { TRIGGER_MISSING_CONSERVATIVE, TRIGGER_MISSING_ERROR, TRIGGER_MISSING_IGNORE };
const char *trigger_scope_name(enum trigger_scope scope);
const char *trigger_on_missing_name(enum trigger_on_missing on_missing);

/* Metric types: X(id, name, alias or NULL, source, unit, divisor).
 * source: a snapshot field, MEMORY_PERCENT (used of total), or a signal of the workload's own server. The last four are
 * the reference's spellings.
 * unit: as sent to KEDA; the field's base unit divided by divisor. Change procedure: names are public API; a new type
 * also goes into docs/triggers.md, docs/compatibility.md and the golden test of the list. */
#define TRIGGER_METRICS(X)                                                                                             \
    X(GPU_UTILIZATION, "gpu_utilization", NULL, SNAPSHOT_UTILIZATION, "%", 1)                                          \
    X(MEMORY_UTILIZATION, "memory_utilization", NULL, SNAPSHOT_MEMORY_UTILIZATION, "%", 1)                             \
    X(MEMORY_USED_MIB, "memory_used_mib", NULL, SNAPSHOT_MEMORY_USED, "MiB", 1048576)                                  \
    X(MEMORY_USED_PERCENT, "memory_used_percent", NULL, TRIGGER_SOURCE_MEMORY_PERCENT, "%", 1)                         \
    X(MEMORY_USED, "memory_used", "gpu_memory_used", TRIGGER_SOURCE_MEMORY_PERCENT, "%", 1)                            \
    X(TEMPERATURE, "temperature", NULL, SNAPSHOT_TEMPERATURE, "C", 1)                                                  \
    X(POWER_DRAW, "power_draw", NULL, SNAPSHOT_POWER, "W", 1)                                                          \
    X(PCIE_TX_KBPS, "pcie_tx_kbps", NULL, SNAPSHOT_PCIE_TX, "kB/s", 1000)                                              \
    X(PCIE_RX_KBPS, "pcie_rx_kbps", NULL, SNAPSHOT_PCIE_RX, "kB/s", 1000)                                              \
    X(NVLINK_TX_MBPS, "nvlink_tx_mbps", NULL, SNAPSHOT_NVLINK_TX, "MiB/s", 1048576)                                    \
    X(NVLINK_RX_MBPS, "nvlink_rx_mbps", NULL, SNAPSHOT_NVLINK_RX, "MiB/s", 1048576)                                    \
    X(SM_ACTIVITY, "sm_activity", NULL, SNAPSHOT_SM_ACTIVITY, "%", 1)                                                  \
    X(SM_OCCUPANCY, "sm_occupancy", NULL, SNAPSHOT_SM_OCCUPANCY, "%", 1)                                               \
    X(TENSOR_ACTIVITY, "tensor_activity", NULL, SNAPSHOT_TENSOR_ACTIVITY, "%", 1)                                      \
    X(DRAM_ACTIVITY, "dram_activity", NULL, SNAPSHOT_DRAM_ACTIVITY, "%", 1)                                            \
    X(ENCODER_UTILIZATION, "encoder_utilization", NULL, SNAPSHOT_ENCODER_UTILIZATION, "%", 1)                          \
    X(DECODER_UTILIZATION, "decoder_utilization", NULL, SNAPSHOT_DECODER_UTILIZATION, "%", 1)                          \
    X(REQUESTS_WAITING, "requests_waiting", NULL, TRIGGER_SIGNAL(REQUESTS_WAITING), "requests", 1)                     \
    X(REQUESTS_RUNNING, "requests_running", NULL, TRIGGER_SIGNAL(REQUESTS_RUNNING), "requests", 1)                     \
    X(REQUESTS_IN_FLIGHT, "requests_in_flight", NULL, TRIGGER_SIGNAL(REQUESTS_IN_FLIGHT), "requests", 1)               \
    X(KV_CACHE_USAGE, "kv_cache_usage", NULL, TRIGGER_SIGNAL(KV_CACHE_USAGE), "%", 1)                                  \
    X(TOKENS_WAITING, "tokens_waiting", NULL, TRIGGER_SIGNAL(TOKENS_WAITING), "tokens", 1)                             \
    X(TOKENS_PER_SECOND, "tokens_per_second", NULL, TRIGGER_SIGNAL(TOKENS_PER_SECOND), "tokens/s", 1)                  \
    X(QUEUE_WAIT_MS, "queue_wait_ms", NULL, TRIGGER_SIGNAL(QUEUE_WAIT_MS), "ms", 1)                                    \
    X(TIME_TO_FIRST_TOKEN_MS, "time_to_first_token_ms", NULL, TRIGGER_SIGNAL(TIME_TO_FIRST_TOKEN_MS), "ms", 1)         \
    X(INTER_TOKEN_LATENCY_MS, "inter_token_latency_ms", NULL, TRIGGER_SIGNAL(INTER_TOKEN_LATENCY_MS), "ms", 1)         \
    X(REQUEST_RATE, "request_rate", NULL, TRIGGER_SIGNAL(REQUEST_RATE), "requests/s", 1)                               \
    X(ENGINE_METRIC, "engine_metric", NULL, TRIGGER_SIGNAL(CUSTOM), "", 1)                                             \
    X(VLLM_QUEUE_DEPTH, "vllm_queue_depth", NULL, TRIGGER_SIGNAL(REQUESTS_WAITING), "requests", 1)                     \
    X(VLLM_KV_CACHE_USAGE, "vllm_kv_cache_usage", NULL, TRIGGER_SIGNAL(KV_CACHE_USAGE), "%", 1)                        \
    X(TRITON_QUEUE_WAIT_MS, "triton_queue_wait_ms", NULL, TRIGGER_SIGNAL(QUEUE_WAIT_MS), "ms", 1)                      \
    X(TRITON_REQUEST_RATE, "triton_request_rate", NULL, TRIGGER_SIGNAL(REQUEST_RATE), "requests/s", 1)

/* A source that is a signal of an engine's page: below all others. */
#define TRIGGER_SIGNAL(id) (TRIGGER_SOURCE_FIRST_SIGNAL - (int)SIGNALS_##id)

enum trigger_metric {
#define X(id, name, alias, source, unit, divisor) TRIGGER_##id,
    TRIGGER_METRICS(X)
#undef X
        TRIGGER_METRIC_COUNT
};
enum { TRIGGER_SOURCE_MEMORY_PERCENT = -1, TRIGGER_SOURCE_FIRST_SIGNAL = -16 };

const char *trigger_metric_name(enum trigger_metric metric);
const char *trigger_metric_unit(enum trigger_metric metric);
/* A snapshot field, MEMORY_PERCENT or TRIGGER_SIGNAL(...); and what a reading of the field is divided by to be in the
 * metric's unit.
 */
int trigger_metric_source(enum trigger_metric metric);
double trigger_metric_divisor(enum trigger_metric metric);
bool trigger_metric_is_engine(enum trigger_metric metric);
/* Which signal; only of metrics that are an engine's. */
enum signals_id trigger_metric_signal(enum trigger_metric metric);
/* Read once per chip (temperature, power, links), not per MIG device. */
bool trigger_metric_is_of_board(enum trigger_metric metric);
/* The metric type of this name or alias, spelled as in the table. Returns false if there is none. */
bool trigger_find_metric(struct str name, enum trigger_metric *ret_metric);

/* Profiles: X(name, metricName, metric type, target, activation threshold, engine). reference A.3, but for
 * vllm-queue-depth, whose documents say "active from 1 waiting request": strictly above 0 (scaling-semantics 4).
 * engine: SIGNALS_ENGINE_ of the server that the profile is for; a GPU's metric then gives way to the engine's page
 * where that can be read (scaling-semantics 2.7). */
#define TRIGGER_PROFILES(X)                                                                                            \
    X("batch", "keda_gpu_batch", MEMORY_USED_PERCENT, 70, 1, UNKNOWN)                                                  \
    X("distributed-training", "keda_gpu_distributed_training", NVLINK_TX_MBPS, 50000, 5000, UNKNOWN)                   \
    X("ollama", "keda_gpu_ollama", MEMORY_USED_PERCENT, 70, 3, UNKNOWN)                                                \
    X("tgi-inference", "keda_gpu_tgi_inference", MEMORY_USED_PERCENT, 75, 5, TGI)                                      \
    X("training", "keda_gpu_training", GPU_UTILIZATION, 90, 0, UNKNOWN)                                                \
    X("triton-inference", "keda_gpu_triton_inference", GPU_UTILIZATION, 75, 10, TRITON)                                \
    X("triton-queue-wait", "keda_gpu_triton_queue_wait", TRITON_QUEUE_WAIT_MS, 50, 5, TRITON)                          \
    X("triton-request-rate", "keda_gpu_triton_request_rate", TRITON_REQUEST_RATE, 50, 1, TRITON)                       \
    X("vllm-inference", "keda_gpu_vllm_inference", MEMORY_USED_PERCENT, 80, 5, VLLM)                                   \
    X("vllm-queue-depth", "keda_gpu_vllm_queue_depth", VLLM_QUEUE_DEPTH, 5, 0, VLLM)

/* Metadata keys: X(id, name, alias or NULL, what is allowed). `<key>FromEnv` is the key. scaling-semantics 6. Change
 * procedure: keys are public API; a new one also goes into docs/triggers.md, which a unit test compares with this. */
#define TRIGGER_KEYS(X)                                                                                                \
    X(PROFILE, "profile", NULL, "the name of a profile")                                                               \
    X(METRIC_NAME, "metricName", NULL, "1 to 120 letters, digits, '.', '_', ':' and '-'; not \".\" or \"..\"")         \
    X(METRIC_TYPE, "metricType", NULL, "names of metric types, at most four, \"a,b\"")                                 \
    X(TARGET_VALUE, "targetValue", NULL, "a plain decimal number from 0.001 to 1000000000")                            \
    X(TARGET_GPU_UTILIZATION, "targetGpuUtilization", NULL, "a plain decimal number from 0.001 to 1000000000")         \
    X(TARGET_MEMORY_UTILIZATION, "targetMemoryUtilization", NULL, "a plain decimal number from 0.001 to 1000000000")   \
    X(ACTIVATION_THRESHOLD, "activationThreshold", "activationTargetValue",                                            \
      "a plain decimal number from 0 to 1000000000000")                                                                \
    X(GPU_INDEX, "gpuIndex", NULL, "a whole number from -1 (all GPUs) to 1023")                                        \
    X(AGGREGATION, "aggregation", NULL, "the name of an aggregation")                                                  \
    X(POLL_INTERVAL_SECONDS, "pollIntervalSeconds", NULL, "1 to 3600 seconds, as \"15\" or \"15s\"")                   \
    X(SCOPE, "scope", NULL, "the name of a scope")                                                                     \
    X(WINDOW, "window", NULL, "0 to 300 seconds, as \"15\" or \"15s\"")                                                \
    X(ACTIVATION_WINDOW, "activationWindow", NULL, "0 to 300 seconds, as \"60\" or \"1m\"")                            \
    X(ON_MISSING, "onMissing", NULL, "the name of a rule for missing data")                                            \
    X(WARMUP_SECONDS, "warmupSeconds", NULL, "0 to 86400 seconds, as \"900\" or \"15m\"")                              \
    X(GPU_UUID, "gpuUUID", NULL, "\"GPU-\" or \"MIG-\" and at most 91 characters without spaces")                      \
    X(GPU_PRODUCT, "gpuProduct", NULL, "a part of the product name, 1 to 95 printable characters")                     \
    X(VLLM_ENDPOINT, "vllmEndpoint", NULL, "http:// or https:// URL of the server's metrics page, at most 255 bytes")  \
    X(TRITON_ENDPOINT, "tritonEndpoint", NULL,                                                                         \
      "http:// or https:// URL of the server's metrics page, at most 255 bytes")                                       \
    X(ENGINE_PORT, "enginePort", NULL, "a port from 1 to 65535")                                                       \
    X(ENGINE_PATH, "enginePath", NULL, "a path that begins with '/', at most 255 bytes")                               \
    X(ENGINE_SCHEME, "engineScheme", NULL, "http or https")                                                            \
    X(ENGINE_METRIC, "engineMetric", NULL, "the name of a metric on the engine's page, 1 to 127 characters")           \
    X(WAKE_ENDPOINT, "wakeEndpoint", NULL,                                                                             \
      "http:// or https:// URL of a metrics page that is there without pods, at most 255 bytes")                       \
    X(WAKE_METRIC, "wakeMetric", NULL, "the name of a metric on the page of wakeEndpoint, 1 to 127 characters")        \
    X(POD_SELECTOR, "podSelector", NULL, "a label selector, 1 to 255 printable characters")                            \
    X(HPA_METRIC_TYPE, "hpaMetricType", NULL, "the HPA's metric type")

enum trigger_key {
#define X(id, name, alias, allowed) TRIGGER_KEY_##id,
    TRIGGER_KEYS(X)
#undef X
        TRIGGER_KEY_COUNT
};

/* KEDA's own keys, which arrive in the map too and are passed over. keda.md 2, 3.3 */
#define TRIGGER_PASSED_OVER(X) X("scalerAddress") X("enableTLS") X("unsafeSsl") X("tlsCertFile")

/* What a client sent: the metadata map, in any order; bytes are not NUL-terminated. */
struct trigger_pair {
    struct str key, value;
};

/* One `metrics:` entry of the configuration: the default for triggers that name that metric. */
struct trigger_default {
    char name[64]; /* metricName that it applies to, lower case */
    bool has_target, has_aggregation, has_gpu_index;
    double target;
    enum scaling_aggregation aggregation;
    int gpu_index;
};
struct trigger_settings {
    enum trigger_scope default_scope; /* node for an agent, workload for the hub */
    const struct trigger_default *defaults;
    size_t n_defaults;
};

enum { TRIGGER_NAME_MAX = 128, TRIGGER_WARNINGS_MAX = 12, TRIGGER_TEXT_MAX = 256, TRIGGER_PARTS_MAX = 4 };

/* A validated trigger; immutable, shared by reference count (one thread). Values are in the unit of the metric. */
struct trigger {
    char metric_name[TRIGGER_NAME_MAX]; /* lower case, a valid path segment */
    char profile[40];                   /* "" none */
    enum trigger_metric metric;
    enum trigger_scope scope;
    enum scaling_aggregation aggregation;
    enum trigger_on_missing on_missing;
    double target, activation;
    int gpu_index;                       /* -1 all */
    char gpu_uuid[SNAPSHOT_UUID_MAX];    /* "" all */
    char gpu_product[SNAPSHOT_NAME_MAX]; /* "" all; matched as a case-insensitive part of the product name */
    int64_t window_ns, activation_window_ns, warmup_ns, poll_interval_ns;
    char hpa_metric_type[16]; /* "", "AverageValue" or "Value" */
    char vllm_endpoint[TRIGGER_TEXT_MAX], triton_endpoint[TRIGGER_TEXT_MAX], pod_selector[TRIGGER_TEXT_MAX];
    enum signals_engine engine;                           /* that the profile or the metric type names; else UNKNOWN */
    char engine_path[TRIGGER_TEXT_MAX], engine_scheme[8]; /* "" as the pod says */
    uint16_t engine_port;                                 /* 0 as the pod says */
    char engine_metric[TRIGGER_NAME_MAX];                 /* of metric type engine_metric; else "" */
    char wake_endpoint[TRIGGER_TEXT_MAX], wake_metric[TRIGGER_NAME_MAX]; /* both or neither */
    bool has_activation; /* the metadata says a threshold; else an engine's pod is active with any request */
    bool prefers_engine; /* profile of an engine in scope workload: kv_cache_usage of the pods' pages, where they can be
                            read, in place of `metric` (scaling-semantics 2.7) */
    /* Several metric types: each as a trigger of its own (scope, windows and the rest are this one's). Then `target` is
     * 100 and `metric` the first one's: the value is 100 times the largest share of its target. Else 0 and NULL. */
    struct trigger *parts[TRIGGER_PARTS_MAX];
    size_t n_parts;
    bool is_always_active; /* profile training in scope node: scaling-semantics 4 */
    bool is_for_hub;       /* a scope that only the hub serves, sent to an agent: trigger_evaluate refuses it */
    char (*warnings)[TRIGGER_TEXT_MAX]; /* keys that overrule each other, and the lint table; in the same block */
    size_t n_warnings;
};

enum { TRIGGER_PAIRS_MAX = 64, TRIGGER_BYTES_MAX = 65536 }; /* of the metadata of one trigger */

/* Parse and validate. Returns a trigger with one reference, or NULL and INVALID_ARGUMENT naming the key, the value,
 * what is allowed and the nearest known key. White space around a value is not part of it. GetMetricSpec needs no more
 * than what this returns: metric_name and target. More pairs than TRIGGER_PAIRS_MAX are refused unread.
 * scaling-semantics 6, reference A.2-A.4 */
struct trigger *trigger_parse(const struct trigger_pair *pairs, size_t n, const struct trigger_settings *settings,
                              struct err *e);
struct trigger *trigger_ref(struct trigger *t);
void trigger_unref(struct trigger *t);
/* The unit of the value: the metric's, or % (of the targets) where there are several metric types. */
const char *trigger_unit(const struct trigger *t);
/* The metric type, or all of several, "a,b". */
enum { TRIGGER_TYPES_MAX = 128 };
void trigger_show_types(const struct trigger *t, char out[TRIGGER_TYPES_MAX]);

/* Parsed once per distinct text. A refusal is not cached. Flush after the settings were read anew: the entries that
 * they point to are the caller's and must live until then. Where they say the same as before, triggers stay. */
struct trigger_cache;
struct trigger_cache *trigger_cache_new(const struct trigger_settings *settings, size_t max_entries);
void trigger_cache_free(struct trigger_cache *cache);
void trigger_cache_flush(struct trigger_cache *cache, const struct trigger_settings *settings);
/* Another number: the settings have changed since. */
uint64_t trigger_cache_generation(const struct trigger_cache *cache);
/* A reference for the caller, or NULL and an error as trigger_parse. */
struct trigger *trigger_cache_get(struct trigger_cache *cache, const struct trigger_pair *pairs, size_t n,
                                  struct err *e);
size_t trigger_cache_len(const struct trigger_cache *cache);
/* Those by which texts are read now. */
const struct trigger_settings *trigger_cache_settings(const struct trigger_cache *cache);

/* ---- evaluation ---- */

/* Who a device is. No text is NULL. */
struct trigger_device {
    const char *node; /* "" where there is one only */
    const char *uuid, *parent_uuid, *product, *mig_profile, *lost_reason;
    enum snapshot_kind kind;
    int index, gpu_instance; /* of a MIG device; else -1 */
    bool is_lost;
};
/* Is it of the UUID (its own or its GPU's) and the product that the trigger asks for? gpuIndex is not looked at. */
bool trigger_matches(const struct trigger *t, const struct trigger_device *d);

enum trigger_input_state {
    TRIGGER_INPUT_MEASURED,
    TRIGGER_INPUT_MISSING,     /* ought to be read and is not */
    TRIGGER_INPUT_UNSUPPORTED, /* the board does not have it: left out */
    TRIGGER_INPUT_EXPIRED,     /* missing for more than 15 minutes: left out */
};
const char *trigger_input_state_name(enum trigger_input_state state);

#define TRIGGER_INPUT_STATES ((size_t)TRIGGER_INPUT_EXPIRED + 1)

/* One device that counts. `value` and `peak` are there as far as they were asked for. */
struct trigger_input {
    struct trigger_device device; /* its texts are the source's */
    const char *reason;           /* why it is missing, beside what `device` and `code` say; "" */
    enum trigger_input_state state;
    bool has_value, is_counted;
    bool shares_instance; /* a MIG device with another compute instance in its GPU instance */
    int16_t code;         /* NVML's return code where the last attempt failed; else 0 */
    double value;         /* measured: the window's mean; missing: the last good value */
    double counted;       /* what went into the aggregation, where is_counted */
    double peak;          /* measured: the largest sample of the activation window */
    int64_t age_ns;       /* of the newest good reading; -1 never */
};
/* The product without its maker, or the profile of a MIG device. Lives as long as the device. */
const char *trigger_input_label(const struct trigger_input *in);

enum trigger_question {
    TRIGGER_ASK_VALUE = 1,    /* what GetMetrics answers */
    TRIGGER_ASK_ACTIVITY = 2, /* what IsActive answers */
    TRIGGER_ASK_ALL = 3,
};

/* What came out, with the facts that trigger_explain makes sentences of. Refers to the trigger, the source of the
 * readings and the arena, and is valid as long as all three are. */
struct trigger_evaluation {
    const struct trigger *trigger;
    const struct snapshot *snapshot; /* NULL: nothing read yet, or read elsewhere */
    int64_t now_ns;                  /* of the question */
    enum trigger_question asked;     /* the other answer is not there */
    double value;                    /* finite, 0 <= value <= 1e12, where value_error.class is NONE */
    bool is_active;                  /* where active_error.class is NONE */
    bool is_above;                   /* active by measurement, not because something is unknown */
    bool has_ended;                  /* of a page: requests ended in activationWindow, which no read of it showed */
    double activity;                 /* what was compared with the activation threshold; < 0 unknown */
    struct trigger_input *inputs;    /* in the arena */
    size_t n_inputs, n_in_state[TRIGGER_INPUT_STATES];
    const struct signals_feed *feed; /* of an engine's page; NULL */
    struct err value_error;          /* what GetMetrics answers instead */
    struct err active_error;         /* what IsActive answers instead */
    struct signals_answer page;      /* what it said, where feed is there */
};

/* Evaluate scopes node and cluster on one snapshot (may be NULL: nothing read yet). Never fails: errors are in *ret.
 * Scope workload is FAILED_PRECONDITION here, as are scopes other than node in an agent (is_for_hub) and metric types
 * of engines. scaling-semantics 2.1, 3, 4 */
void trigger_evaluate(const struct trigger *t, const struct snapshot *s, int64_t now_ns, enum trigger_question asked,
                      struct arena *arena, struct trigger_evaluation *ret);

/* The page of vllmEndpoint or tritonEndpoint that the trigger measures, where it does: an engine's metric type in scope
 * node or cluster. NULL where it measures GPUs; scope workload reads each pod's own page instead. */
const char *trigger_endpoint(const struct trigger *t);
/* The endpoint that the metadata names for the page, in any scope: in scope workload its port, path and scheme are
 * hints for the pods' own pages. NULL: none, or no page is read. */
const char *trigger_endpoint_hint(const struct trigger *t);
/* The same rules on the page of that endpoint (feed NULL: it was never asked; `why` says so). The first answer for a
 * rate or latency is 0, as the reference's is. */
void trigger_evaluate_page(const struct trigger *t, const struct signals_feed *feed, const char *why, int64_t now_ns,
                           enum trigger_question asked, struct trigger_evaluation *ret);
/* A page as it stands, for explanations: the members of an object without its braces, and a line without its end. */
void trigger_page_members(const struct signals_feed *feed, const struct signals_answer *page, struct json *out);
void trigger_say_page(const struct signals_feed *feed, const struct signals_answer *page, struct buf *out);

/* Devices from elsewhere than one snapshot: of many nodes. Those of one GPU instance stand side by side. */
struct trigger_source {
    size_t n;
    struct trigger_device (*device)(void *context, size_t i);
    /* Sets the state of the i-th, has_value, value, peak, age_ns, code and reason; the rest is there or is not the
     * source's. A missing one is EXPIRED after TRIGGER_MISSING_MAX_NS. */
    void (*read)(void *context, size_t i, struct trigger_input *in);
    const char *none; /* why n is 0: the sentence of the error */
    void *context;
};
#define TRIGGER_MISSING_MAX_NS (15 * 60 * NS_PER_S)

/* The same rules on such devices; of the scopes only cluster and node are no error. The arena holds some 150 bytes for
 * each device that is selected; RESOURCE_EXHAUSTED beyond it. */
void trigger_evaluate_devices(const struct trigger *t, const struct trigger_source *source, int64_t now_ns,
                              enum trigger_question asked, struct arena *arena, struct trigger_evaluation *ret);

/* The evaluation in sentences: made when somebody wants to read them, from what decided it. */
struct trigger_explanation {
    char rule[TRIGGER_TEXT_MAX]; /* how the value came about, with numbers; "" where there is none */
    char active_rule[TRIGGER_TEXT_MAX];
    char warnings[TRIGGER_WARNINGS_MAX][TRIGGER_TEXT_MAX]; /* the trigger's own come first */
    size_t n_warnings;
};
void trigger_explain(const struct trigger_evaluation *evaluation, struct trigger_explanation *ret);

/* The whole of an evaluation with TRIGGER_ASK_ALL, for machines (one object, documented in docs/explain.md) and for
 * people (several lines). */
void trigger_explain_json(const struct trigger_evaluation *evaluation, struct json *out);
void trigger_explain_text(const struct trigger_evaluation *evaluation, struct buf *out);
/* Parts of it for other explanations: the members of the object without its braces, those that are of the trigger
 * alone, and the line about the trigger. */
void trigger_explain_members(const struct trigger_evaluation *evaluation, struct json *out);
void trigger_describe_json(const struct trigger *t, struct json *out);
void trigger_describe_text(const struct trigger *t, struct buf *out);
/* More inputs than this are counted, not shown. */
enum { TRIGGER_INPUTS_SHOWN = 400 };

#endif
