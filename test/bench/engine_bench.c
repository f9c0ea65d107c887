/* engine_bench PODS BAD PORT SECONDS: the hub's side of engines' pages alone, against `pages` on that port of the
 * loopback addresses: so many pods that are good and so many that never end, dribble, lie about their length or say
 * nothing, each wanted each 5 s. Prints what the figures of test/bench/run are made of, one "name value" a line. */
#include "self.h"

#include "base/base.h"
#include "engine/engine.h"
#include "net/net.h"

#include <stdio.h>
#include <string.h>

enum { SETTLE_S = 7, ROUNDS = 64, URL_MAX = 64 }; /* of 5 s: by then each page has the past that is kept of it */
#define INTERVAL_NS (5 * NS_PER_S)

struct bench {
    struct net_loop *loop;
    struct metrics *metrics;
    struct engine *engine;
    char (*urls)[URL_MAX];
    size_t n_good, n;
    double n_scrapes, n_ok;
};

static void family(void *context, const struct metric_desc *desc)
{
    (void)context;
    (void)desc;
}

static void sample(void *context, const struct metric_sample *s)
{
    struct bench *b = (struct bench *)context;
    if (strcmp(s->desc->name, "keda_gpu_scaler_engine_scrapes") != 0)
        return;
    b->n_scrapes += s->value;
    if (strcmp(s->label_values[0], "ok") == 0)
        b->n_ok += s->value;
}

static void count(struct bench *b)
{
    b->n_scrapes = b->n_ok = 0;
    metrics_visit(b->metrics, &(struct metric_visitor){family, sample, b});
}

/* As a hub does that is asked about each pod. */
static void want_all(void *context)
{
    struct bench *b = (struct bench *)context;
    for (size_t i = 0; i < b->n; i++)
        (void)engine_page(b->engine,
                          &(struct engine_want){.url = b->urls[i], .metric = "", .interval_ns = INTERVAL_NS});
}

static void stop(void *context)
{
    net_loop_stop((struct net_loop *)context);
}

static void run_for(struct bench *b, int64_t ns)
{
    struct net_timer *timer = net_timer_new(b->loop, stop, b->loop);
    net_timer_start(timer, ns, 0);
    net_loop_run(b->loop);
    net_timer_free(timer);
}

static void name_pods(struct bench *b, int64_t port)
{
    static const char *const bad[] = {"endless", "dribble", "lies", "silent"};
    b->urls = (char(*)[URL_MAX])mem_new_array(b->n, URL_MAX);
    for (size_t i = 0; i < b->n; i++)
        (void)snprintf(b->urls[i], URL_MAX, "http://127.3.%zu.%zu:%lld/%s", i / 250, i % 250 + 1, (long long)port,
                       i < b->n_good ? "metrics" : bad[(i - b->n_good) % ARRAY_LEN(bad)]);
}

/* How old the oldest page of a good pod is. */
static double oldest_s(struct bench *b)
{
    int64_t oldest_ns = INT64_MAX;
    for (size_t i = 0; i < b->n_good; i++) {
        const struct signals_feed *feed =
            engine_page(b->engine, &(struct engine_want){.url = b->urls[i], .metric = "", .interval_ns = INTERVAL_NS});
        oldest_ns = feed->last_good_ns < oldest_ns ? feed->last_good_ns : oldest_ns;
    }
    return oldest_ns > 0 ? (double)(net_now_ns(b->loop) - oldest_ns) / 1e9 : 1e9;
}

static void measure(struct bench *b, int64_t seconds)
{
    struct net_timer *timer = net_timer_new(b->loop, want_all, b);
    double idle_kb = private_kb(), oldest = 0;
    want_all(b);
    net_timer_start(timer, INTERVAL_NS, INTERVAL_NS);
    for (int i = 0; i < ROUNDS; i++) {
        want_all(b);
        net_loop_skip(b->loop, INTERVAL_NS);
        run_for(b, NS_PER_S / 2);
    }
    run_for(b, SETTLE_S * NS_PER_S);
    count(b);
    double warm_kb = private_kb(), cpu = cpu_s(), scrapes = b->n_scrapes, ok = b->n_ok;
    int64_t from_ns = time_mono_ns();
    for (int64_t i = 0; i < seconds; i++) {
        run_for(b, NS_PER_S);
        double age = oldest_s(b);
        oldest = age > oldest ? age : oldest;
    }
    double wall = (double)(time_mono_ns() - from_ns) / 1e9;
    cpu = cpu_s() - cpu;
    count(b);
    printf("cpu_percent %.3f\n", cpu / wall * 100);
    printf("scrapes_per_s %.1f\nok_per_s %.1f\n", (b->n_scrapes - scrapes) / wall, (b->n_ok - ok) / wall);
    printf("us_per_scrape %.1f\n", cpu * 1e6 / (b->n_scrapes - scrapes));
    printf("oldest_s %.2f\n", oldest);
    printf("kb_per_page %.2f\nwarm_mb %.2f\ngrowth_kb %.0f\n", (warm_kb - idle_kb) / (double)b->n, warm_kb / 1024,
           private_kb() - warm_kb);
    net_timer_free(timer);
}

int main(int argc, char **argv)
{
    struct rlimit limit;
    struct err e = {0};
    int64_t numbers[4];
    bool is_understood = argc == 5;
    for (int i = 0; i < 4 && is_understood; i++)
        is_understood = num_parse_i64(str_of(argv[i + 1]), &numbers[i]) == 0 && numbers[i] >= 0 && numbers[i] <= 60000;
    if (!is_understood) {
        (void)fprintf(stderr, "usage: engine_bench PODS BAD PORT SECONDS\n");
        return 2;
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    struct bench b = {.metrics = metrics_new(), .n_good = (size_t)numbers[0], .n = (size_t)(numbers[0] + numbers[1])};
    b.loop = net_loop_new(b.metrics, &e);
    b.engine = b.loop ? engine_new(&(struct engine_config){.loop = b.loop, .metrics = b.metrics}, &e) : NULL;
    if (!b.engine) {
        (void)fprintf(stderr, "engine_bench: %s\n", e.text);
        return 1;
    }
    name_pods(&b, numbers[2]);
    measure(&b, numbers[3]);
    engine_free(b.engine);
    net_loop_free(b.loop);
    metrics_free(b.metrics);
    free(b.urls);
    return 0;
}
