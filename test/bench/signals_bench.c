/* What reading a page of an engine costs: vLLM's with so many data-parallel engines as make 120 kB, and one with few
 * lines that are wanted, read in pieces of 16 KiB into a history, in turn with memchr for the line ends of the same
 * bytes and a copy of them. Prints `read_us scan_us page_bytes` for each pair, `sparse_us scan_us page_bytes` with the
 * other page, and `growth bytes pages`. test/bench/run judges. */
#include "self.h"

#include "signals/signals.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PIECE = 16384, PAGE_MAX = 1 << 20, PAIRS = 9, TIMES = 400, ENGINES = 8 };

static void histogram(struct buf *page, const char *name, int engine, double sum, double count, int n_buckets)
{
    for (int i = 1; i <= n_buckets; i++)
        (void)buf_printf(page, "%s_bucket{engine=\"%d\",le=\"%g\",model_name=\"org/some-chat-model-70b\"} %.1f\n", name,
                         engine, 0.001 * i * i, count * i / n_buckets);
    (void)buf_printf(page, "%s_count{engine=\"%d\",model_name=\"org/some-chat-model-70b\"} %.1f\n", name, engine,
                     count);
    (void)buf_printf(page, "%s_sum{engine=\"%d\",model_name=\"org/some-chat-model-70b\"} %.17g\n", name, engine, sum);
}

/* Families as vLLM writes them: most lines are buckets. */
static void make_page(struct buf *page)
{
    static const char *const histograms[] = {
        "vllm:time_to_first_token_seconds",
        "vllm:inter_token_latency_seconds",
        "vllm:request_time_per_output_token_seconds",
        "vllm:e2e_request_latency_seconds",
        "vllm:request_queue_time_seconds",
        "vllm:request_inference_time_seconds",
        "vllm:request_prefill_time_seconds",
        "vllm:request_decode_time_seconds",
        "vllm:request_prompt_tokens",
        "vllm:request_generation_tokens",
        "vllm:iteration_tokens_total",
        "vllm:request_params_max_tokens",
    };
    static const char *const others[] = {
        "vllm:num_requests_running",    "vllm:num_requests_waiting",    "vllm:kv_cache_usage_perc",
        "vllm:prompt_tokens_total",     "vllm:generation_tokens_total", "vllm:prefix_cache_queries_total",
        "vllm:prefix_cache_hits_total",
    };
    buf_init(page, PAGE_MAX);
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        (void)buf_printf(page, "# HELP %s What it is, in a sentence of the usual length.\n# TYPE %s gauge\n", others[i],
                         others[i]);
        for (int engine = 0; engine < ENGINES; engine++)
            (void)buf_printf(page, "%s{engine=\"%d\",model_name=\"org/some-chat-model-70b\"} 0.%d\n", others[i], engine,
                             engine);
    }
    for (size_t i = 0; i < ARRAY_LEN(histograms) && page->len < 120000; i++) {
        (void)buf_printf(page, "# HELP %s What it is, in a sentence of the usual length.\n# TYPE %s histogram\n",
                         histograms[i], histograms[i]);
        for (int engine = 0; engine < ENGINES; engine++)
            histogram(page, histograms[i], engine, 1234.56789 * engine, 1000 * engine, 20);
    }
}

/* As of a node where an engine is one of many things: names that differ from line to line. */
static void make_sparse_page(struct buf *page)
{
    buf_init(page, PAGE_MAX);
    for (int i = 0; page->len < 120000; i++)
        (void)buf_printf(
            page,
            "some_subsystem_of_many_%d_things_total{node=\"10.0.0.7\",component=\"number-%d\",session=\"abcdef\"} %d\n",
            i, i % 7, i * 17);
    (void)buf_append_str(page, "vllm:num_requests_waiting 3\nvllm:num_requests_running 4\n");
}

static void read_once(struct signals_reader *r, struct signals_history *h, const struct buf *page, int64_t at_ns)
{
    struct err e;
    signals_reader_begin(r);
    for (size_t at = 0; at < page->len; at += PIECE)
        if (signals_reader_feed(r, page->data + at, page->len - at < PIECE ? page->len - at : PIECE, &e) < 0)
            abort();
    struct signals_page *read = signals_reader_end(r, &e);
    if (!read)
        abort();
    signals_history_add(h, read, at_ns);
}

/* The least that reading can cost: each byte is looked at once, and copied once. */
static size_t scan_once(const struct buf *page, char *copy)
{
    size_t lines = 0;
    memcpy(copy, page->data, page->len);
    for (const char *at = copy, *end = copy + page->len; (at = memchr(at, '\n', (size_t)(end - at))); at++)
        lines++;
    return lines;
}

static void measure(const struct buf *page)
{
    struct signals_reader *r = signals_reader_new(NULL);
    struct signals_history *h = signals_history_new();
    char *copy = mem_new_array(page->len, 1);
    int64_t now = 0;
    size_t lines = 0;
    for (int pair = 0; pair < PAIRS; pair++) {
        double begin = cpu_us();
        for (int i = 0; i < TIMES; i++)
            read_once(r, h, page, now += 5 * NS_PER_S);
        double middle = cpu_us();
        for (int i = 0; i < TIMES; i++)
            lines += scan_once(page, copy);
        printf("%.3f %.3f %zu\n", (middle - begin) / TIMES, (cpu_us() - middle) / TIMES, page->len);
    }
    if (lines == 0)
        abort();
    free(copy);
    signals_history_free(h);
    signals_reader_free(r);
}

static void measure_growth(const struct buf *page, int pages)
{
    struct signals_reader *r = signals_reader_new(NULL);
    struct signals_history *h = signals_history_new();
    size_t before = 0;
    for (int i = 0; i < 1000 + pages; i++) {
        if (i == 1000)
            before = mallinfo2().uordblks;
        read_once(r, h, page, i * NS_PER_S);
    }
    printf("growth %lld %d\n", (long long)mallinfo2().uordblks - (long long)before, pages);
    signals_history_free(h);
    signals_reader_free(r);
}

int main(void)
{
    struct buf page, sparse;
    make_page(&page);
    make_sparse_page(&sparse);
    measure(&page);
    measure(&sparse);
    measure_growth(&page, 20000);
    buf_fini(&page);
    buf_fini(&sparse);
    return 0;
}
