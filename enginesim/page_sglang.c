/* SGLang's names. The scheduler of each rank has gauges of its own, repeated by each tensor rank of it; what the
 * tokenizer's process counts is there once. The old pages lack the label moe_ep_rank. */
#include "enginesim/page.h"

#define GAUGE(name, help, source)     PAGE_ROW(GAUGE, "sglang:" name, help, source, PAGE_OF_SGLANG, 0)
#define COUNTER(name, help, source)   PAGE_ROW(COUNTER, "sglang:" name, help, source, PAGE_OF_NAME, 0)
#define HISTOGRAM(name, help, source) PAGE_ROW(HISTOGRAM, "sglang:" name, help, source, PAGE_OF_NAME, 0)
#define MEASURE(name)                 (PAGE_MEASURE + QUEUE_##name)

static const struct page_row rows[] = {
    GAUGE("num_running_reqs", "Running requests.", PAGE_RUNNING),
    GAUGE("num_used_tokens", "Used tokens.", PAGE_KV_TOKENS),
    GAUGE("token_usage", "Token usage.", PAGE_KV),
    GAUGE("gen_throughput", "Generation throughput in tokens a second.", PAGE_OUTPUT_RATE),
    GAUGE("num_queue_reqs", "Requests in the waiting queue.", PAGE_WAITING),
    GAUGE("num_grammar_queue_reqs", "Requests that wait for a grammar.", PAGE_ZERO),
    GAUGE("cache_hit_rate", "Prefix cache hit rate.", PAGE_ZERO),
    GAUGE("utilization", "Utilization.", PAGE_ZERO),
    COUNTER("prompt_tokens", "Prefill tokens processed.", PAGE_PROMPT),
    COUNTER("generation_tokens", "Generation tokens processed.", PAGE_OUTPUT),
    COUNTER("cached_tokens", "Cached prompt tokens.", PAGE_ZERO),
    COUNTER("num_requests", "Requests processed.", PAGE_FINISHED),
    COUNTER("num_aborted_requests", "Requests aborted.", PAGE_ABORTED),
    HISTOGRAM("queue_time_seconds", "Time in the waiting queue.", MEASURE(WAIT)),
    HISTOGRAM("time_to_first_token_seconds", "Time to the first token.", MEASURE(FIRST)),
    HISTOGRAM("inter_token_latency_seconds", "Time between tokens.", MEASURE(TOKEN)),
    HISTOGRAM("e2e_request_latency_seconds", "Time of a request as a whole.", MEASURE(WHOLE)),
};

const struct page_table page_sglang = {rows, ARRAY_LEN(rows), false};
