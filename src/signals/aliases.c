/* The table of names: which engine calls what how, in which unit, told apart by which label. Where each name comes from
 * stands in test/pages/README.md. Change procedure: a new name goes above the older ones of its quantity and engine, a
 * page with it into test/pages, and its engine's row in docs/engines.md is brought up to date. */
#include "signals/aliases.h"

#include <stdio.h>
#include <string.h>

#define BIT(dialect) (1U << DIALECT_##dialect)
#define LEVEL(quantity, dialect, name)                                                                                 \
    {                                                                                                                  \
        QUANTITY_##quantity, DIALECT_##dialect, 0, ALIAS_LEVEL, name, NULL, NULL, NULL, 1                              \
    }
#define LEVEL_WHERE(quantity, dialect, name, label, value)                                                             \
    {                                                                                                                  \
        QUANTITY_##quantity, DIALECT_##dialect, 0, ALIAS_LEVEL, name, label, value, NULL, 1                            \
    }
#define COUNTER(quantity, dialect, name)                                                                               \
    {                                                                                                                  \
        QUANTITY_##quantity, DIALECT_##dialect, 0, ALIAS_COUNTER, name, NULL, NULL, NULL, 1                            \
    }
#define COUNTER_WHERE(quantity, dialect, name, label, value)                                                           \
    {                                                                                                                  \
        QUANTITY_##quantity, DIALECT_##dialect, 0, ALIAS_COUNTER, name, label, value, NULL, 1                          \
    }
#define COUNTER_ALSO(quantity, dialect, also, name)                                                                    \
    {                                                                                                                  \
        QUANTITY_##quantity, DIALECT_##dialect, also, ALIAS_COUNTER, name, NULL, NULL, NULL, 1                         \
    }
#define SECONDS(quantity, dialect, name)                                                                               \
    {                                                                                                                  \
        QUANTITY_##quantity##_SUM, DIALECT_##dialect, 0, ALIAS_HISTOGRAM, name, NULL, NULL, NULL, 1000                 \
    }
#define TOKENS(quantity, dialect, name)                                                                                \
    {                                                                                                                  \
        QUANTITY_##quantity##_SUM, DIALECT_##dialect, 0, ALIAS_HISTOGRAM, name, NULL, NULL, NULL, 1                    \
    }

const struct alias aliases[] = {
    /* Only those that wait for capacity: the rest is deferred on purpose. Case O39 */
    LEVEL_WHERE(WAITING, VLLM, "vllm:num_requests_waiting_by_reason", "reason", "capacity"),
    LEVEL(WAITING, VLLM, "vllm:num_requests_waiting"),
    LEVEL(WAITING, SGLANG, "sglang:num_queue_reqs"),
    LEVEL(WAITING, TGI, "tgi_queue_size"),
    LEVEL(WAITING, TRTLLM, "trtllm_num_requests_waiting"),
    LEVEL_WHERE(WAITING, TRITON_TRTLLM, "nv_trt_llm_request_metrics", "request_type", "waiting"),
    LEVEL(WAITING, TRITON, "nv_inference_pending_request_count"),
    LEVEL(WAITING, LLAMA_CPP, "llamacpp:requests_deferred"),
    LEVEL(WAITING, RAY_SERVE, "ray_serve_deployment_queued_queries"),

    LEVEL(RUNNING, VLLM, "vllm:num_requests_running"),
    LEVEL(RUNNING, SGLANG, "sglang:num_running_reqs"),
    LEVEL(RUNNING, TGI, "tgi_batch_current_size"),
    LEVEL(RUNNING, TRTLLM, "trtllm_num_requests_running"),
    LEVEL_WHERE(RUNNING, TRITON_TRTLLM, "nv_trt_llm_request_metrics", "request_type", "scheduled"),
    LEVEL(RUNNING, LLAMA_CPP, "llamacpp:requests_processing"),
    LEVEL(RUNNING, RAY_SERVE, "ray_serve_replica_processing_queries"),

    LEVEL(KV, VLLM, "vllm:kv_cache_usage_perc"),
    LEVEL(KV, VLLM, "vllm:gpu_cache_usage_perc"), /* until 0.12 */
    LEVEL(KV, SGLANG, "sglang:token_usage"),
    LEVEL(KV, TRTLLM, "trtllm_kv_cache_utilization"),
    LEVEL_WHERE(KV, TRITON_TRTLLM, "nv_trt_llm_kv_cache_block_metrics", "kv_cache_block_type", "fraction"),
    LEVEL(KV, LLAMA_CPP, "llamacpp:kv_cache_usage_ratio"), /* builds until the middle of 2025 (case O56) */
    LEVEL(KV_USED, SGLANG, "sglang:num_used_tokens"),
    LEVEL(KV_USED, TRTLLM, "trtllm_kv_cache_used_blocks"),
    LEVEL_WHERE(KV_USED, TRITON_TRTLLM, "nv_trt_llm_kv_cache_block_metrics", "kv_cache_block_type", "used"),
    LEVEL(KV_MAX, SGLANG, "sglang:max_total_num_tokens"),
    LEVEL(KV_MAX, TRTLLM, "trtllm_kv_cache_max_blocks"),
    LEVEL_WHERE(KV_MAX, TRITON_TRTLLM, "nv_trt_llm_kv_cache_block_metrics", "kv_cache_block_type", "max"),

    COUNTER(TOKENS, VLLM, "vllm:generation_tokens"),
    COUNTER_WHERE(TOKENS, SGLANG, "sglang:realtime_tokens", "mode", "decode"), /* moves with each step */
    COUNTER(TOKENS, SGLANG, "sglang:generation_tokens"),                       /* moves when a request ends */
    COUNTER(TOKENS, TGI, "tgi_request_generated_tokens_sum"),
    COUNTER(TOKENS, TRTLLM, "trtllm_generation_tokens"),
    COUNTER(TOKENS, LLAMA_CPP, "llamacpp:tokens_predicted"),

    COUNTER(PROMPT_TOKENS, VLLM, "vllm:prompt_tokens"),
    COUNTER(PROMPT_TOKENS, SGLANG, "sglang:prompt_tokens"),
    COUNTER(PROMPT_TOKENS, TGI, "tgi_request_input_length_sum"),
    COUNTER(PROMPT_TOKENS, TRTLLM, "trtllm_prompt_tokens"),
    COUNTER(PROMPT_TOKENS, LLAMA_CPP, "llamacpp:prompt_tokens"),

    COUNTER(REQUESTS, VLLM, "vllm:request_success"),
    COUNTER(REQUESTS, SGLANG, "sglang:num_requests"),
    COUNTER(REQUESTS, TGI, "tgi_request_success"),
    COUNTER(REQUESTS, TGI, "tgi_request_count"),
    COUNTER(REQUESTS, TRTLLM, "trtllm_request_success"),
    COUNTER(REQUESTS, TRTLLM, "trtllm_num_requests_completed"),
    /* Requests, not the items of their batches. An engine in Triton that does not count them itself is served too. */
    COUNTER_ALSO(REQUESTS, TRITON, BIT(VLLM) | BIT(TRITON_TRTLLM), "nv_inference_request_success"),
    COUNTER_ALSO(REQUESTS, TRITON, BIT(TRITON_TRTLLM), "nv_inference_count"),
    COUNTER(REQUESTS, RAY_SERVE, "ray_serve_deployment_request_counter"),
    COUNTER_ALSO(INFERENCES, TRITON, BIT(TRITON_TRTLLM), "nv_inference_count"),

    /* Only what moves while requests are computed: what moves when they end stands still for minutes under long
     * generations, and a server is not stalled for that. */
    COUNTER(PROGRESS, VLLM, "vllm:generation_tokens"),
    COUNTER_WHERE(PROGRESS, SGLANG, "sglang:realtime_tokens", "mode", "decode"),
    COUNTER_WHERE(PROGRESS, TGI, "tgi_batch_inference_count", "method", "decode"),
    COUNTER(PROGRESS, LLAMA_CPP, "llamacpp:n_decode"),

    SECONDS(QUEUE, VLLM, "vllm:request_queue_time_seconds"),
    SECONDS(QUEUE, VLLM, "vllm:time_in_queue_requests"), /* the first generation of the engine */
    SECONDS(QUEUE, SGLANG, "sglang:queue_time_seconds"),
    SECONDS(QUEUE, TGI, "tgi_request_queue_duration"),
    SECONDS(QUEUE, TRTLLM, "trtllm_request_queue_time_seconds"),
    {QUANTITY_QUEUE_SUM, DIALECT_TRITON, BIT(VLLM) | BIT(TRITON_TRTLLM), ALIAS_PAIR, "nv_inference_queue_duration_us",
     NULL, NULL, "nv_inference_request_success", 0.001},
    {QUANTITY_QUEUE_SUM, DIALECT_TRITON, BIT(VLLM) | BIT(TRITON_TRTLLM), ALIAS_PAIR, "nv_inference_queue_duration_us",
     NULL, NULL, "nv_inference_count", 0.001},

    SECONDS(TTFT, VLLM, "vllm:time_to_first_token_seconds"),
    SECONDS(TTFT, SGLANG, "sglang:time_to_first_token_seconds"),
    SECONDS(TTFT, TRTLLM, "trtllm_time_to_first_token_seconds"),
    {QUANTITY_TTFT_SUM, DIALECT_TRITON, BIT(TRITON_TRTLLM), ALIAS_HISTOGRAM, "nv_inference_first_response_histogram_ms",
     NULL, NULL, NULL, 1},

    SECONDS(ITL, VLLM, "vllm:inter_token_latency_seconds"),
    SECONDS(ITL, VLLM, "vllm:time_per_output_token_seconds"), /* until 0.12; for a while both (case O25) */
    SECONDS(ITL, SGLANG, "sglang:inter_token_latency_seconds"),
    SECONDS(ITL, SGLANG, "sglang:time_per_output_token_seconds"),
    SECONDS(ITL, TGI, "tgi_request_mean_time_per_token_duration"), /* a request's mean */
    SECONDS(ITL, TRTLLM, "trtllm_time_per_output_token_seconds"),

    TOKENS(PROMPT, VLLM, "vllm:request_prompt_tokens"),
    TOKENS(PROMPT, SGLANG, "sglang:prompt_tokens_histogram"),
    TOKENS(PROMPT, TGI, "tgi_request_input_length"),
};
const size_t aliases_len = ARRAY_LEN(aliases);

static const char *suffix_of(const struct alias *a, int part)
{
    switch (a->kind) {
    case ALIAS_LEVEL:
        return part == 0 ? "" : NULL;
    case ALIAS_COUNTER:
        return part == 0 ? "_total" : "";
    case ALIAS_HISTOGRAM:
        return part == 0 ? "_sum" : "_count";
    case ALIAS_PAIR:
        break;
    }
    return "";
}

bool alias_name(const struct alias *a, int part, char ret[ALIAS_NAME_MAX])
{
    const char *suffix = suffix_of(a, part);
    if (!suffix)
        return false;
    (void)snprintf(ret, ALIAS_NAME_MAX, "%s%s", a->kind == ALIAS_PAIR && part ? a->count_name : a->name, suffix);
    return true;
}

static bool is_one_of(struct str text, const char *const *words)
{
    for (; *words; words++)
        if (str_equals(text, *words))
            return true;
    return false;
}

bool alias_label_counts(enum dialect dialect, bool is_level, struct str label)
{
    static const char *const replicas[] = {"model_name", "engine_type", "dp_rank", NULL};
    /* Not `priority`: of what ended, SGLang counts each request under its own only. */
    static const char *const ranks[] = {"tp_rank", "pp_rank", "moe_ep_rank", "pid", NULL};
    static const char *const processes[] = {"pid", NULL};
    if (dialect == DIALECT_SGLANG)
        return is_level ? is_one_of(label, replicas) : !is_one_of(label, ranks);
    return !is_one_of(label, processes);
}

enum signals_engine dialect_engine(enum dialect dialect)
{
    static const enum signals_engine engines[DIALECT_COUNT + 1] = {
#define X(id, engine) [DIALECT_##id] = SIGNALS_ENGINE_##engine,
        DIALECTS(X)
#undef X
            [DIALECT_COUNT] = SIGNALS_ENGINE_UNKNOWN,
    };
    return engines[dialect];
}

enum { NAMES_MAX = 384 };

static void list_names(enum quantity quantity, enum dialect dialect, char out[NAMES_MAX])
{
    const char *found[32];
    size_t n = 0, len = 0;
    for (size_t i = 0; i < aliases_len && n < ARRAY_LEN(found); i++) {
        const struct alias *a = &aliases[i];
        if (a->quantity == quantity &&
            (dialect == DIALECT_COUNT || a->dialect == dialect || (a->also & (1U << dialect))) &&
            (n == 0 || strcmp(found[n - 1], a->name) != 0))
            found[n++] = a->name;
    }
    for (size_t i = 0; i < n && len < NAMES_MAX; i++)
        len += (size_t)snprintf(out + len, NAMES_MAX - len, "%s%s", i == 0 ? "" : i + 1 == n ? " or " : ", ", found[i]);
}

const char *alias_names(enum quantity quantity, enum dialect dialect)
{
    static char texts[QUANTITY_COUNT][DIALECT_COUNT + 1][NAMES_MAX]; /* made when first asked for, the same each time */
    char *text = texts[quantity][dialect];
    if (!*text)
        list_names(quantity, dialect, text);
    return text;
}
