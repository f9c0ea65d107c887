/* pages ADDRESS: one process that is any number of pods: each loopback address is one, with a page of 120 kB as vLLM
 * writes them, whose counters move. Other paths are pods that misbehave: /endless, /dribble, /lies, /silent. It is the
 * load of engine_bench, and no part of the program. */
#include "base/base.h"
#include "net/net.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum { PAGE_BYTES = 120000, PIECE_BYTES = 64 << 10 };

static const char *const histograms[] = {
    "time_to_first_token_seconds",       "inter_token_latency_seconds",  "e2e_request_latency_seconds",
    "request_queue_time_seconds",        "request_prefill_time_seconds", "request_decode_time_seconds",
    "request_inference_time_seconds",    "request_prompt_tokens",        "request_generation_tokens",
    "request_max_num_generation_tokens", "iteration_tokens_total",       "request_params_n"};
#define LABELS "engine=\"0\",model_name=\"meta-llama/Llama-3.3-70B-Instruct\""

struct pages {
    struct net_loop *loop;
    struct buf page;             /* the whole answer */
    size_t n_moving, moving[64]; /* where nine digits stand that move */
    uint64_t tick;
    char endless[PIECE_BYTES];
    struct session *dribblers;
    struct net_timer *timer;
};
static struct pages pages;

struct session {
    struct net_conn *conn;
    struct buf request;
    bool is_endless;
    struct session *next, *prev; /* of dribblers */
    bool is_dribbler;
};

/* ---- the page ---- */

static void add_counter(struct buf *out, const char *name, const char *labels)
{
    (void)buf_printf(out, "vllm:%s{%s%s} ", name, labels, LABELS);
    if (pages.n_moving < ARRAY_LEN(pages.moving))
        pages.moving[pages.n_moving++] = out->len;
    (void)buf_append_str(out, "100000000.0\n");
}

static void add_histogram(struct buf *out, const char *name, const char *labels)
{
    char full[96];
    (void)buf_printf(out, "# HELP vllm:%s Histogram of something in seconds or tokens.\n# TYPE vllm:%s histogram\n",
                     name, name);
    for (int i = 0; i < 24; i++)
        (void)buf_printf(out, "vllm:%s_bucket{%s%s,le=\"%g\"} %d.0\n", name, labels, LABELS, 0.001 * (1 << i),
                         4000 * i);
    (void)buf_printf(out, "vllm:%s_bucket{%s%s,le=\"+Inf\"} 100000.0\n", name, labels, LABELS);
    (void)snprintf(full, sizeof(full), "%s_count", name);
    add_counter(out, full, labels);
    (void)snprintf(full, sizeof(full), "%s_sum", name);
    add_counter(out, full, labels);
}

static void make_page(struct buf *out)
{
    static const char *const counters[] = {"prompt_tokens_total", "generation_tokens_total", "num_preemptions_total",
                                           "prefix_cache_queries_total", "prefix_cache_hits_total"};
    (void)buf_append_str(out, "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{" LABELS "} 37.0\n"
                              "# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting{" LABELS "} 5.0\n"
                              "# TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc{" LABELS "} 0.61\n");
    for (size_t i = 0; i < ARRAY_LEN(counters); i++) {
        (void)buf_printf(out, "# TYPE vllm:%s counter\n", counters[i]);
        add_counter(out, counters[i], "");
    }
    add_counter(out, "request_success_total", "finished_reason=\"stop\",");
    add_counter(out, "request_success_total", "finished_reason=\"length\",");
    for (size_t i = 0; i < ARRAY_LEN(histograms); i++)
        add_histogram(out, histograms[i], "");
    for (int i = 0; out->len < PAGE_BYTES; i++) { /* what the HTTP server in front of the engine adds */
        (void)buf_printf(out,
                         "http_request_duration_seconds_bucket{handler=\"/v1/chat/completions\",method=\"POST\","
                         "status=\"2xx\",instance=\"%d\",le=\"%g\"} %d.0\n",
                         i / 20, 0.005 * (1 << i % 20), i);
    }
}

static void make_answer(void)
{
    struct buf page BUF_AUTO;
    buf_init(&page, 1 << 20);
    buf_init(&pages.page, 1 << 20);
    make_page(&page);
    (void)buf_printf(&pages.page,
                     "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: %zu\r\n\r\n",
                     page.len);
    for (size_t i = 0; i < pages.n_moving; i++)
        pages.moving[i] += pages.page.len;
    (void)buf_append(&pages.page, page.data, page.len);
    memset(pages.endless, '#', sizeof(pages.endless));
    for (size_t i = 99; i < sizeof(pages.endless); i += 100)
        pages.endless[i] = '\n';
}

/* Each answer has larger counters than the one before. */
static void move_on(void)
{
    char digits[16];
    (void)snprintf(digits, sizeof(digits), "%09llu", 100000000ULL + (unsigned long long)++pages.tick);
    for (size_t i = 0; i < pages.n_moving; i++)
        memcpy(pages.page.data + pages.moving[i], digits, 9);
}

/* ---- connections ---- */

static void *session_open(void *context, struct net_conn *conn)
{
    struct session *s = mem_new(struct session);
    (void)context;
    s->conn = conn;
    buf_init(&s->request, 65536);
    return s;
}

static void be_a_dribbler(struct session *s)
{
    s->is_dribbler = true;
    s->next = pages.dribblers;
    if (s->next)
        s->next->prev = s;
    pages.dribblers = s;
}

static void session_close(void *session)
{
    struct session *s = (struct session *)session;
    if (s->is_dribbler) {
        *(s->prev ? &s->prev->next : &pages.dribblers) = s->next;
        if (s->next)
            s->next->prev = s->prev;
    }
    buf_fini(&s->request);
    free(s);
}

/* Up to the ceiling of its output: `writable` is told when half of that is gone. */
static void go_on(void *session)
{
    struct session *s = (struct session *)session;
    while (s->is_endless && net_conn_send(s->conn, pages.endless, sizeof(pages.endless)) == 0)
        continue;
}

static int answer(struct session *s, struct str request)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n";
    static const char lie[] = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nvllm:num_requests_waiting 1\n";
    if (str_has_prefix(request, "GET /metrics")) {
        move_on();
        return net_conn_send(s->conn, pages.page.data, pages.page.len);
    }
    if (str_has_prefix(request, "GET /lies"))
        return net_conn_send(s->conn, lie, sizeof(lie) - 1);
    if (str_has_prefix(request, "GET /silent"))
        return 0;
    (void)net_conn_send(s->conn, head, sizeof(head) - 1);
    s->is_endless = str_has_prefix(request, "GET /endless");
    if (!s->is_endless && !s->is_dribbler)
        be_a_dribbler(s);
    go_on(s);
    return 0;
}

static int session_receive(void *session, const uint8_t *bytes, size_t len)
{
    struct session *s = (struct session *)session;
    (void)buf_append(&s->request, bytes, len);
    if (s->request.is_overflowed || !strstr(buf_cstr(&s->request), "\r\n\r\n"))
        return s->request.is_overflowed ? -1 : 0;
    int rv = answer(s, (struct str){s->request.data, s->request.len});
    buf_reset(&s->request);
    net_conn_established(s->conn);
    return rv;
}

static void dribble(void *context)
{
    (void)context;
    for (struct session *s = pages.dribblers; s; s = s->next)
        (void)net_conn_send(s->conn, "#", 1);
}

int main(int argc, char **argv)
{
    static const struct net_protocol protocol = {.name = "pages",
                                                 .alpn = "http/1.1",
                                                 .open = session_open,
                                                 .receive = session_receive,
                                                 .writable = go_on,
                                                 .close = session_close};
    struct rlimit limit;
    struct err e = {0};
    if (argc != 2) {
        (void)fprintf(stderr, "usage: pages ADDRESS\n");
        return 2;
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    make_answer();
    pages.loop = net_loop_new(NULL, &e);
    struct net_listener *listener =
        pages.loop ? net_listen(pages.loop, &(struct net_listen_config){.address = argv[1], .http1 = &protocol}, &e)
                   : NULL;
    if (!listener) {
        (void)fprintf(stderr, "pages: %s\n", e.text);
        return 1;
    }
    pages.timer = net_timer_new(pages.loop, dribble, NULL);
    net_timer_start(pages.timer, NS_PER_S, NS_PER_S);
    net_loop_run(pages.loop);
    return 0;
}
