/* Triton's names: the core's counters and its one gauge of waiting requests, the TensorRT-LLM backend's gauges beside
 * them, and TensorRT-LLM's own server. Counters move only when a request has been answered. */
#include "enginesim/page.h"

#define MODEL_COUNTER(name, help, source, scale)                                                                       \
    PAGE_ROW_OF(BARE_COUNTER, "nv_inference_" name, help, source, scale, PAGE_OF_VERSION, NULL, NULL)
#define SUM(name) (PAGE_SUM + QUEUE_##name)

#define CORE_ROWS                                                                                                      \
    MODEL_COUNTER("request_success", "Successful inference requests.", PAGE_FINISHED, 1),                              \
        PAGE_ROW_OF(BARE_COUNTER, "nv_inference_request_failure", "Failed inference requests.", PAGE_ABORTED, 1,       \
                    PAGE_OF_VERSION, "reason", "CANCELED"),                                                            \
        MODEL_COUNTER("count", "Inferences performed.", PAGE_FINISHED, 1),                                             \
        MODEL_COUNTER("exec_count", "Batches executed.", PAGE_FINISHED, 1),                                            \
        MODEL_COUNTER("request_duration_us", "Cumulative request duration in microseconds.", SUM(WHOLE), 1e6),         \
        MODEL_COUNTER("queue_duration_us", "Cumulative queuing duration in microseconds.", SUM(WAIT), 1e6),            \
        MODEL_COUNTER("compute_input_duration_us", "Cumulative compute input duration in microseconds.", PAGE_ZERO,    \
                      1),                                                                                              \
        MODEL_COUNTER("compute_infer_duration_us", "Cumulative compute inference duration in microseconds.",           \
                      SUM(INFERENCE), 1e6),                                                                            \
        MODEL_COUNTER("compute_output_duration_us", "Cumulative compute output duration in microseconds.", PAGE_ZERO,  \
                      1),                                                                                              \
        PAGE_ROW(GAUGE, "nv_inference_pending_request_count", "Requests that wait for execution.", PAGE_WAITING,       \
                 PAGE_OF_VERSION, 0),                                                                                  \
        PAGE_ROW(GAUGE, "nv_gpu_utilization", "GPU utilization rate, 0 to 1.", PAGE_BUSY, PAGE_OF_GPU, 0)

static const struct page_row core_rows[] = {CORE_ROWS};
const struct page_table page_triton = {core_rows, ARRAY_LEN(core_rows), false};

#define REQUESTS(type, source)                                                                                         \
    PAGE_ROW_OF(GAUGE, "nv_trt_llm_request_metrics", "TRT LLM request metrics", source, 1, PAGE_OF_VERSION,            \
                "request_type", type)
#define BLOCKS(type, source, scale)                                                                                    \
    PAGE_ROW_OF(GAUGE, "nv_trt_llm_kv_cache_block_metrics", "TRT LLM KV cache block metrics", source, scale,           \
                PAGE_OF_VERSION, "kv_cache_block_type", type)
enum { BLOCKS_MAX = 6239, TOKENS_PER_BLOCK = 64 };

static const struct page_row backend_rows[] = {
    CORE_ROWS,
    REQUESTS("waiting", PAGE_WAITING),
    REQUESTS("context", PAGE_ZERO),
    REQUESTS("scheduled", PAGE_RUNNING),
    REQUESTS("max", PAGE_SLOTS),
    REQUESTS("active", PAGE_RUNNING),
    BLOCKS("fraction", PAGE_KV, 1),
    BLOCKS("tokens_per", PAGE_ONE, TOKENS_PER_BLOCK),
    BLOCKS("used", PAGE_KV, BLOCKS_MAX),
    BLOCKS("max", PAGE_ONE, BLOCKS_MAX),
};
const struct page_table page_triton_trtllm = {backend_rows, ARRAY_LEN(backend_rows), false};

#define GAUGE(name, help, source)     PAGE_ROW(GAUGE, "trtllm_" name, help, source, PAGE_OF_NAME, 0)
#define HISTOGRAM(name, help, source) PAGE_ROW(HISTOGRAM, "trtllm_" name, help, PAGE_MEASURE + source, PAGE_OF_NAME, 0)

static const struct page_row server_rows[] = {
    GAUGE("num_requests_running", "Requests in the batch.", PAGE_RUNNING),
    GAUGE("num_requests_waiting", "Requests that wait.", PAGE_WAITING),
    GAUGE("kv_cache_utilization", "KV cache utilization, 0 to 1.", PAGE_KV),
    GAUGE("kv_cache_hit_rate", "KV cache hit rate.", PAGE_ZERO),
    PAGE_ROW_OF(COUNTER, "trtllm_request_success", "Count of requests that ended.", PAGE_FINISHED, 1, PAGE_OF_NAME,
                "finished_reason", "stop"),
    HISTOGRAM("e2e_request_latency_seconds", "Time of a request as a whole.", QUEUE_WHOLE),
    HISTOGRAM("time_to_first_token_seconds", "Time to the first token.", QUEUE_FIRST),
    HISTOGRAM("time_per_output_token_seconds", "Mean time per output token of a request.", QUEUE_MEAN_TOKEN),
    HISTOGRAM("request_queue_time_seconds", "Time of a request before the batch.", QUEUE_WAIT),
};
const struct page_table page_trtllm = {server_rows, ARRAY_LEN(server_rows), true};
