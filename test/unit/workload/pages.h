/* For the tests of workload/: servers whose pages a test writes, and pods in front of them. */
#ifndef TEST_WORKLOAD_PAGES_H
#define TEST_WORKLOAD_PAGES_H

#include "world.h"

#include "support.h"

#include <stdarg.h>

#define assert_near(got, want) assert_double_near((got), (want), 1e-9)

/* A world whose hub fetches pages. */
#define PAGES_INIT(w, ...)                                                                                             \
    do {                                                                                                               \
        WORLD_INIT(w, __VA_ARGS__);                                                                                    \
        (w).has_pages = true;                                                                                          \
    } while (0)

/* The page of pod number `i`: 10.0.0.i. */
static inline struct world_page *pages_of(struct world *w, unsigned i)
{
    char url[64];
    (void)snprintf(url, sizeof(url), "http://10.0.0.%u:8000/metrics", i);
    return world_url(w, url);
}

static inline struct signals_page *pages_read(struct world_page *p, const char *text)
{
    struct err e = {.class = ERR_NONE};
    signals_reader_begin(p->reader);
    assert_int_equal(signals_reader_feed(p->reader, text, strlen(text), &e), 0);
    struct signals_page *page = signals_reader_end(p->reader, &e);
    if (!page)
        print_error("refused: %s\n", e.text);
    assert_non_null(page);
    return page;
}

/* It was fetched now, and this is on it. The first page was there before, but for a new hub. */
static inline void pages_text(struct world *w, struct world_page *p, const char *text)
{
    if (!p->reader)
        p->reader = signals_reader_new(w->trigger->engine_metric[0] ? w->trigger->engine_metric : NULL);
    if (p->feed.last_good_ns == 0 && !w->is_new)
        signals_history_add(p->history, pages_read(p, text), w->now_ns - 100 * NS_PER_S);
    signals_history_add(p->history, pages_read(p, text), w->now_ns);
    p->feed.last_try_ns = p->feed.last_good_ns = w->now_ns;
    p->error[0] = '\0';
}

__attribute__((format(printf, 3, 4))) static inline void pages_say(struct world *w, struct world_page *p,
                                                                   const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    pages_text(w, p, text);
}

/* It was tried now, and failed. */
static inline void pages_fail(struct world *w, struct world_page *p, const char *error)
{
    p->feed.last_try_ns = w->now_ns;
    (void)str_copy(p->error, sizeof(p->error), str_of(error));
}

/* A vLLM server: what runs, what waits, how much of the KV cache is used (percent). */
static inline void pages_vllm(struct world *w, unsigned i, double running, double waiting, double kv_percent)
{
    pages_say(w, pages_of(w, i),
              "# TYPE vllm:num_requests_running gauge\n"
              "vllm:num_requests_running{engine=\"0\",model_name=\"chat-8b\"} %g\n"
              "# TYPE vllm:num_requests_waiting gauge\n"
              "vllm:num_requests_waiting{engine=\"0\",model_name=\"chat-8b\"} %g\n"
              "# TYPE vllm:kv_cache_usage_perc gauge\n"
              "vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"chat-8b\"} %g\n"
              "# TYPE vllm:generation_tokens_total counter\n"
              "vllm:generation_tokens_total{engine=\"0\",model_name=\"chat-8b\"} %g\n",
              running, waiting, kv_percent / 100, running > 0 ? 100 * (double)w->now_ns / (double)NS_PER_S : 1);
}

/* The next pod, "p1" at 10.0.0.1 and so on, as world_kube_pod; a test may change it before world_add. */
static inline struct kube_pod pages_kube_pod(struct world *w, unsigned i)
{
    static char names[WORLD_PODS][8], ips[WORLD_PODS][16];
    (void)snprintf(names[i], sizeof(names[i]), "p%u", i);
    (void)snprintf(ips[i], sizeof(ips[i]), "10.0.0.%u", i);
    struct kube_pod pod = world_kube_pod(w, names[i], "n1");
    pod.ip = ips[i];
    return pod;
}

static inline struct workload_pod *pages_pod(struct world *w, unsigned i)
{
    struct kube_pod pod = pages_kube_pod(w, i);
    return world_add(w, &pod);
}

/* A pod whose page says that, now. */
static inline void pages_serve(struct world *w, unsigned i, double running, double waiting, double kv_percent)
{
    (void)pages_pod(w, i);
    pages_vllm(w, i, running, waiting, kv_percent);
}

/* A pod whose page is refused, now. */
static inline void pages_dead(struct world *w, unsigned i)
{
    (void)pages_pod(w, i);
    pages_fail(w, pages_of(w, i), "connection refused");
}

#endif
