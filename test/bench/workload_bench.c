/* What an answer about a workload of 500 pods costs, each with the past of five minutes of a page of its own: for one
 * signal, a profile and several signals, and the look between questions. Prints `NAME us arena_kb` for each, the least
 * of several runs. test/bench/run judges. */
#include "self.h"

#include "workload/workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PODS = 500, PAST_S = 300, INTERVAL_S = 5, RUNS = 20, NAME_LEN = 64, ARENA_BYTES = 64 << 20 };
static const double api_s = 1000000; /* the API's clock at the start of ours */

static struct {
    char names[PODS][NAME_LEN], ips[PODS][NAME_LEN], urls[PODS][NAME_LEN];
    struct workload_pod *pods[PODS];
    struct signals_history *histories[PODS];
    struct signals_feed feeds[PODS];
    int64_t now_ns;
} bench;

static const struct fleet_node *find_node(void *context, const char *name)
{
    (void)context;
    (void)name;
    return NULL;
}

static int want(void *context, const struct fleet_want *w)
{
    (void)context;
    return (int)w->field;
}

/* "10.0.3.7" is pod 3 * 250 + 7. */
static const struct signals_feed *page(void *context, const struct workload_place *place, const struct trigger *t,
                                       const char **ret_why)
{
    (void)context;
    (void)t;
    *ret_why = NULL;
    long high = strtol(place->ip + strlen("10.0."), NULL, 10), low = strtol(strrchr(place->ip, '.') + 1, NULL, 10);
    return &bench.feeds[high * 250 + low];
}

static struct signals_page *read_page(struct signals_reader *r, int pod, int64_t second)
{
    struct err e;
    char text[1024];
    (void)snprintf(text, sizeof(text),
                   "vllm:num_requests_running{engine=\"0\"} %d\nvllm:num_requests_waiting{engine=\"0\"} %d\n"
                   "vllm:kv_cache_usage_perc{engine=\"0\"} 0.%d\nvllm:generation_tokens_total{engine=\"0\"} %lld\n"
                   "vllm:request_success_total{engine=\"0\"} %lld\n",
                   1 + pod % 8, pod % 3, 10 + pod % 80, (long long)second * 900, (long long)second * 3);
    signals_reader_begin(r);
    if (signals_reader_feed(r, text, strlen(text), &e) < 0)
        abort();
    struct signals_page *read = signals_reader_end(r, &e);
    if (!read)
        abort();
    return read;
}

static void make_pod(struct signals_reader *r, int i)
{
    (void)snprintf(bench.names[i], NAME_LEN, "llama-%04d", i);
    (void)snprintf(bench.ips[i], NAME_LEN, "10.0.%d.%d", i / 250, i % 250);
    (void)snprintf(bench.urls[i], NAME_LEN, "http://10.0.%d.%d:8000/metrics", i / 250, i % 250);
    bench.pods[i] = workload_pod_new(&(struct kube_pod){.meta = {.ns = "ml",
                                                                 .name = bench.names[i],
                                                                 .uid = bench.names[i],
                                                                 .resource_version = "1",
                                                                 .created_s = api_s - 7200},
                                                        .node = "n1",
                                                        .ip = bench.ips[i],
                                                        .phase = KUBE_RUNNING,
                                                        .has_condition = true,
                                                        .is_ready = true,
                                                        .condition_s = api_s - 3600,
                                                        .started_s = api_s - 7000,
                                                        .requests_gpu = true,
                                                        .group = -1},
                                     0);
    bench.histories[i] = signals_history_new();
    for (int64_t s = 1; s <= PAST_S; s += INTERVAL_S)
        signals_history_add(bench.histories[i], read_page(r, i, s), s * NS_PER_S);
    int64_t last_ns = signals_history_newest_ns(bench.histories[i]);
    bench.feeds[i] = (struct signals_feed){.url = bench.urls[i],
                                           .history = bench.histories[i],
                                           .error = "",
                                           .interval_ns = INTERVAL_S * NS_PER_S,
                                           .last_try_ns = last_ns,
                                           .last_good_ns = last_ns};
}

static struct trigger *parse(const char *type, const char *of, const char *target)
{
    struct err e;
    struct trigger_pair pairs[] = {{str_of(type), str_of(of)}, {str_of("targetValue"), str_of(target ? target : "")}};
    struct trigger *t =
        trigger_parse(pairs, target ? 2 : 1, &(struct trigger_settings){.default_scope = TRIGGER_WORKLOAD}, &e);
    if (!t)
        abort();
    return t;
}

static const struct workload_fleet fleet = {.find_node = find_node, .want = want, .page = page};

static void measure(const char *name, struct trigger *t)
{
    struct workload_memory *m = workload_memory_new(t);
    struct workload_facts facts = {.ns = "ml",
                                   .name = "llama",
                                   .is_api_synced = true,
                                   .is_known = true,
                                   .target_kind = "Deployment",
                                   .target_name = "llama",
                                   .is_scale_known = true,
                                   .spec = PODS,
                                   .status = PODS,
                                   .api_now_s = api_s + PAST_S,
                                   .pods = bench.pods,
                                   .n_pods = PODS,
                                   .hpa_state = WORKLOAD_HPA_NOT_PERMITTED,
                                   .default_tolerance = 0.1};
    double least_us = (double)INFINITY, least_look_us = (double)INFINITY;
    size_t used = 0;
    for (int i = 0; i < RUNS; i++) {
        struct workload_answer answer;
        struct arena arena;
        arena_init(&arena, ARENA_BYTES);
        double begin = cpu_us();
        workload_evaluate(m, &facts, &fleet, bench.now_ns, &arena, &answer);
        least_us = fmin(least_us, cpu_us() - begin);
        if (answer.value_error.class != ERR_NONE || answer.value <= 0)
            abort();
        used = arena.used_bytes;
        arena_fini(&arena);
        begin = cpu_us();
        workload_memory_look(m, &facts, &fleet, bench.now_ns);
        least_look_us = fmin(least_look_us, cpu_us() - begin);
    }
    printf("%s %.1f %zu\n%s-look %.1f 0\n", name, least_us, used / 1024, name, least_look_us);
    workload_memory_free(m);
    trigger_unref(t);
}

int main(void)
{
    struct signals_reader *r = signals_reader_new(NULL);
    bench.now_ns = (PAST_S + 1) * NS_PER_S;
    for (int i = 0; i < PODS; i++)
        make_pod(r, i);
    measure("one", parse("metricType", "requests_waiting", "5"));
    measure("profile", parse("profile", "vllm-inference", NULL));
    measure("several", parse("metricType", "requests_in_flight,kv_cache_usage,request_rate", "16,80,5"));
    for (int i = 0; i < PODS; i++) {
        workload_pod_free(bench.pods[i]);
        signals_history_free(bench.histories[i]);
    }
    signals_reader_free(r);
    return 0;
}
