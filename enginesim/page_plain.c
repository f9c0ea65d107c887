/* Engines whose pages have no labels for model or rank: TGI and llama.cpp. Neither tells of its KV cache. */
#include "enginesim/page.h"

#define ROW(kind, name, help, source) PAGE_ROW(kind, name, help, source, PAGE_OF_NOTHING, 0)
#define MEASURE(name)                 (PAGE_MEASURE + QUEUE_##name)

static const struct page_row tgi_rows[] = {
    ROW(BARE_COUNTER, "tgi_request_count", "Requests.", PAGE_ARRIVED),
    ROW(BARE_COUNTER, "tgi_request_success", "Successful requests.", PAGE_FINISHED),
    ROW(GAUGE, "tgi_queue_size", "Requests in the queue.", PAGE_WAITING),
    ROW(GAUGE, "tgi_batch_current_size", "Requests in the batch.", PAGE_RUNNING),
    ROW(GAUGE, "tgi_batch_current_max_tokens", "Tokens that the batch may grow to.", PAGE_KV_TOKENS),
    ROW(HISTOGRAM, "tgi_request_duration", "Time of a request as a whole, in seconds.", MEASURE(WHOLE)),
    ROW(HISTOGRAM, "tgi_request_queue_duration", "Time in the queue, in seconds.", MEASURE(WAIT)),
    ROW(HISTOGRAM, "tgi_request_inference_duration", "Time in the batch, in seconds.", MEASURE(INFERENCE)),
    ROW(HISTOGRAM, "tgi_request_mean_time_per_token_duration", "Mean time per token, in seconds.", MEASURE(MEAN_TOKEN)),
    ROW(HISTOGRAM, "tgi_request_input_length", "Input tokens of a request.", MEASURE(PROMPT_TOKENS)),
    ROW(HISTOGRAM, "tgi_request_generated_tokens", "Generated tokens of a request.", MEASURE(OUTPUT_TOKENS)),
};
const struct page_table page_tgi = {tgi_rows, ARRAY_LEN(tgi_rows), false};

static const struct page_row llamacpp_rows[] = {
    ROW(COUNTER, "llamacpp:prompt_tokens", "Prompt tokens processed.", PAGE_PROMPT),
    ROW(COUNTER, "llamacpp:prompt_seconds", "Prompt process time.", PAGE_SUM + QUEUE_PREFILL),
    ROW(COUNTER, "llamacpp:tokens_predicted", "Generation tokens processed.", PAGE_OUTPUT),
    ROW(COUNTER, "llamacpp:tokens_predicted_seconds", "Predict process time.", PAGE_SUM + QUEUE_DECODE),
    ROW(COUNTER, "llamacpp:n_decode", "Calls of the decoder.", PAGE_OUTPUT),
    ROW(GAUGE, "llamacpp:n_busy_slots_per_decode", "Mean busy slots per call.", PAGE_RUNNING),
    ROW(GAUGE, "llamacpp:predicted_tokens_seconds", "Generation throughput in tokens a second.", PAGE_OUTPUT_RATE),
    ROW(GAUGE, "llamacpp:requests_processing", "Requests processing.", PAGE_RUNNING),
    ROW(GAUGE, "llamacpp:requests_deferred", "Requests deferred.", PAGE_WAITING),
};
const struct page_table page_llamacpp = {llamacpp_rows, ARRAY_LEN(llamacpp_rows), false};
