/* vLLM's names: V1 as of 0.10 to 0.13, those that were renamed in 0.9, and the waiting ones by reason of later
 * versions. Ranks are the label `engine`; the old pages have none. */
#include "enginesim/page.h"

#define GAUGE(name, help, source, when)     PAGE_ROW(GAUGE, "vllm:" name, help, source, PAGE_OF_ENGINE, when)
#define COUNTER(name, help, source, when)   PAGE_ROW(COUNTER, "vllm:" name, help, source, PAGE_OF_ENGINE, when)
#define HISTOGRAM(name, help, source, when) PAGE_ROW(HISTOGRAM, "vllm:" name, help, source, PAGE_OF_ENGINE, when)
#define ENDED(reason, source)                                                                                          \
    PAGE_ROW_OF(COUNTER, "vllm:request_success", "Count of requests that ended.", source, 1, PAGE_OF_ENGINE,           \
                "finished_reason", reason)
#define MEASURE(name) (PAGE_MEASURE + QUEUE_##name)

static const struct page_row rows[] = {
    PAGE_ROW(GAUGE, "process_start_time_seconds", "Start time of the process since the epoch, in seconds.", PAGE_SINCE,
             PAGE_OF_NOTHING, PAGE_IF_ONE_PROCESS),
    GAUGE("num_requests_running", "Requests in the execution batch.", PAGE_RUNNING, 0),
    GAUGE("num_requests_waiting", "Requests that wait to be processed.", PAGE_WAITING, 0),
    {.family = {.name = "vllm:num_requests_waiting_by_reason",
                .help = "Requests that wait, by reason.",
                .type = PROMTEXT_GAUGE},
     .source = PAGE_WAITING,
     .scale = 1,
     .labels = PAGE_OF_ENGINE,
     .extra = {"reason", "capacity"},
     .when = PAGE_IF_REASONS},
    {.family = {.name = "vllm:num_requests_waiting_by_reason",
                .help = "Requests that wait, by reason.",
                .type = PROMTEXT_GAUGE},
     .source = PAGE_ZERO,
     .scale = 1,
     .labels = PAGE_OF_ENGINE,
     .extra = {"reason", "deferred"},
     .when = PAGE_IF_REASONS},
    GAUGE("gpu_cache_usage_perc", "KV cache usage, 1 is 100 percent.", PAGE_KV, PAGE_IF_OLD),
    GAUGE("kv_cache_usage_perc", "KV cache usage, 1 is 100 percent.", PAGE_KV, PAGE_IF_NEW),
    COUNTER("prefix_cache_queries", "Tokens that were looked up in the prefix cache.", PAGE_PROMPT, PAGE_IF_NEW),
    COUNTER("prefix_cache_hits", "Tokens that were found in the prefix cache.", PAGE_ZERO, PAGE_IF_NEW),
    COUNTER("num_preemptions", "Preempted requests.", PAGE_ZERO, 0),
    COUNTER("prompt_tokens", "Prefill tokens processed.", PAGE_PROMPT, 0),
    COUNTER("generation_tokens", "Generation tokens processed.", PAGE_OUTPUT, 0),
    ENDED("stop", PAGE_FINISHED),
    ENDED("length", PAGE_ZERO),
    ENDED("abort", PAGE_ABORTED),
    HISTOGRAM("request_prompt_tokens", "Prefill tokens of a request.", MEASURE(PROMPT_TOKENS), 0),
    HISTOGRAM("request_generation_tokens", "Generation tokens of a request.", MEASURE(OUTPUT_TOKENS), 0),
    HISTOGRAM("time_to_first_token_seconds", "Time to the first token.", MEASURE(FIRST), 0),
    HISTOGRAM("time_per_output_token_seconds", "Time per output token.", MEASURE(TOKEN), PAGE_IF_OLD),
    HISTOGRAM("inter_token_latency_seconds", "Time between tokens.", MEASURE(TOKEN), PAGE_IF_NEW),
    HISTOGRAM("request_time_per_output_token_seconds", "Mean time per output token of a request.", MEASURE(MEAN_TOKEN),
              PAGE_IF_NEW),
    HISTOGRAM("e2e_request_latency_seconds", "Time of a request as a whole.", MEASURE(WHOLE), 0),
    HISTOGRAM("request_queue_time_seconds", "Time of a request before the batch.", MEASURE(WAIT), 0),
    HISTOGRAM("request_inference_time_seconds", "Time of a request in the batch.", MEASURE(INFERENCE), 0),
    HISTOGRAM("request_prefill_time_seconds", "Time of a request's prefill.", MEASURE(PREFILL), 0),
    HISTOGRAM("request_decode_time_seconds", "Time of a request's decode.", MEASURE(DECODE), 0),
};

const struct page_table page_vllm = {rows, ARRAY_LEN(rows), true};
