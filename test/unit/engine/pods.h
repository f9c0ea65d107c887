/* Pods for tests of engine: servers in the same process, each at a loopback address of its own, that behave as they are
 * told. Nothing here sleeps. Tests that run side by side say in POD_NET what their addresses begin with. */
#ifndef TEST_ENGINE_PODS_H
#define TEST_ENGINE_PODS_H

#include "net/peer.h"

#include "engine/engine.h"

#ifndef POD_NET
#define POD_NET "127.21.0."
#endif

enum { POD_PORT = 21080, POD_CONNECTIONS = 8 };

#define VLLM_PAGE                                                                                                      \
    "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine=\"0\",model_name=\"m\"} 3\n"             \
    "# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 7\n"

struct pod {
    int listening;
    char url[64];
    const char *answer; /* head and body as they stand; NULL: nothing is said */
    bool hangs_up;      /* after the answer */
    const char *more;   /* said again at each turn, after the answer */
    int fds[POD_CONNECTIONS];
    bool is_answered[POD_CONNECTIONS];
    struct buf requests[POD_CONNECTIONS];
    char request[2048]; /* the last one */
    size_t n_requests, n_connections;
};

static inline void pod_open(struct pod *pod, const char *ip)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(POD_PORT)};
    *pod = (struct pod){.answer = "HTTP/1.1 200 OK\r\nContent-Length: 188\r\n\r\n" VLLM_PAGE};
    assert_int_equal(sizeof(VLLM_PAGE) - 1, 188);
    assert_int_equal(inet_pton(AF_INET, ip, &address.sin_addr), 1);
    pod->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(setsockopt(pod->listening, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)), 0);
    assert_int_equal(bind(pod->listening, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(pod->listening, 64), 0);
    (void)snprintf(pod->url, sizeof(pod->url), "http://%s:%d/metrics", ip, POD_PORT);
    for (size_t i = 0; i < POD_CONNECTIONS; i++) {
        pod->fds[i] = -1;
        buf_init(&pod->requests[i], 65536);
    }
}

static inline void pod_hang_up(struct pod *pod, size_t i)
{
    if (pod->fds[i] >= 0)
        (void)close(pod->fds[i]);
    pod->fds[i] = -1;
    pod->is_answered[i] = false;
    buf_reset(&pod->requests[i]);
}

static inline void pod_close(struct pod *pod)
{
    for (size_t i = 0; i < POD_CONNECTIONS; i++) {
        pod_hang_up(pod, i);
        buf_fini(&pod->requests[i]);
    }
    (void)close(pod->listening);
}

static inline void pod_take_requests(struct pod *pod, size_t i)
{
    if (!peer_read(pod->fds[i], &pod->requests[i])) {
        pod_hang_up(pod, i);
        return;
    }
    char *end = strstr(buf_cstr(&pod->requests[i]), "\r\n\r\n");
    if (!end)
        return;
    size_t len = (size_t)(end + 4 - pod->requests[i].data);
    (void)str_copy(pod->request, sizeof(pod->request), (struct str){pod->requests[i].data, len});
    buf_consume(&pod->requests[i], len);
    pod->n_requests++;
    if (!pod->answer)
        return;
    (void)send(pod->fds[i], pod->answer, strlen(pod->answer), MSG_NOSIGNAL | MSG_DONTWAIT);
    pod->is_answered[i] = true;
    if (pod->hangs_up)
        pod_hang_up(pod, i);
}

static inline void pod_serve(struct pod *pod)
{
    for (size_t i = 0; i < POD_CONNECTIONS; i++) {
        if (pod->fds[i] < 0 && (pod->fds[i] = accept4(pod->listening, NULL, NULL, SOCK_CLOEXEC)) >= 0)
            pod->n_connections++;
        if (pod->fds[i] >= 0)
            pod_take_requests(pod, i);
        if (pod->fds[i] >= 0 && pod->is_answered[i] && pod->more)
            (void)send(pod->fds[i], pod->more, strlen(pod->more), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
}

/* An engine and some pods. */
enum { PODS = 6 };
struct world {
    struct net_loop *loop;
    struct metrics *metrics;
    struct engine *engine;
    struct pod pods[PODS];
    int n_told;
};

static inline void world_turn(struct world *w)
{
    for (size_t i = 0; i < PODS; i++)
        pod_serve(&w->pods[i]);
    (void)net_loop_turn(w->loop);
}

#define world_until(w, condition)                                                                                      \
    do {                                                                                                               \
        int64_t world_limit = time_mono_ns() + 20 * NS_PER_S;                                                          \
        while (!(condition) && time_mono_ns() < world_limit)                                                           \
            world_turn(w);                                                                                             \
        assert_true(condition);                                                                                        \
    } while (0)

static inline void world_some(struct world *w)
{
    for (int i = 0; i < 30; i++)
        world_turn(w);
}

/* So many seconds, one after the other. */
static inline void world_pass(struct world *w, int seconds)
{
    for (int i = 0; i < seconds; i++) {
        net_loop_skip(w->loop, NS_PER_S);
        world_some(w);
    }
}

static inline void world_engine(struct world *w, struct engine_config config)
{
    struct err e = {0};
    engine_free(w->engine);
    config.loop = w->loop;
    config.metrics = w->metrics;
    w->engine = engine_new(&config, &e);
    if (!w->engine)
        fail_msg("%s", e.text);
}

static inline int world_set_up(void **state)
{
    struct world *w = mem_new(struct world);
    struct err e;
    w->loop = net_loop_new(NULL, &e);
    w->metrics = metrics_new();
    for (int i = 0; i < PODS; i++) {
        char ip[32];
        (void)snprintf(ip, sizeof(ip), POD_NET "%d", i + 1);
        pod_open(&w->pods[i], ip);
    }
    world_engine(w, (struct engine_config){0});
    *state = w;
    return 0;
}

static inline int world_tear_down(void **state)
{
    struct world *w = (struct world *)*state;
    engine_free(w->engine);
    for (size_t i = 0; i < PODS; i++)
        pod_close(&w->pods[i]);
    net_loop_free(w->loop);
    metrics_free(w->metrics);
    free(w);
    return 0;
}

static inline struct engine_want want_of(const struct pod *pod)
{
    return (struct engine_want){.url = pod->url, .metric = "", .interval_ns = 5 * NS_PER_S};
}

static inline double outcomes(const struct world *w, const char *outcome)
{
    return metric_of(w->metrics, "keda_gpu_scaler_engine_scrapes", outcome);
}

static inline double pages(const struct world *w, const char *state)
{
    return metric_of(w->metrics, "keda_gpu_scaler_engine_pages", state);
}

static inline void on_told(void *context)
{
    ((struct world *)context)->n_told++;
}

/* Ask for the page now, and until it is told. */
static inline const struct signals_feed *world_ask(struct world *w, const struct engine_want *want)
{
    int before = w->n_told;
    assert_non_null(engine_ask(w->engine, want, on_told, w));
    assert_int_equal(w->n_told, before); /* never from inside */
    world_until(w, w->n_told == before + 1);
    return engine_page(w->engine, want);
}

/* What the newest page says of requests that wait; -1: not OK. */
static inline double waiting_of(const struct world *w, const struct signals_feed *feed)
{
    struct signals_answer answer;
    signals_read(feed->history,
                 &(struct signals_question){.signal = SIGNALS_REQUESTS_WAITING,
                                            .now_ns = net_now_ns(w->loop),
                                            .activation_window_ns = 60 * NS_PER_S,
                                            .max_age_ns = 15 * NS_PER_S},
                 &answer);
    return answer.reading == SIGNALS_READ_OK ? answer.value : -1;
}

#endif
