/* Random servers and two hubs that read their pages: one that has watched all along, and one that starts again and
 * again. They never answer in opposite directions. */
#include "workload/workload.h"

#include "../scaling/random.h"
#include "pages.h"

enum { PODS = 5, SECONDS = 600, STEP_S = 5 };

struct server {
    struct kube_pod kube;
    double running, waiting, kv, rate, wait_s; /* as they are now */
    double ended, waited_s;                    /* counters */
    int64_t dead_until;
};

struct twins {
    struct world old, new;
    struct server servers[PODS];
    unsigned n;
    struct metadata metadata;
};

static struct world *hub_of(struct twins *t, bool is_new)
{
    return is_new ? &t->new : &t->old;
}

static void start_hub(struct twins *t, bool is_new, int64_t now_ns)
{
    struct world *w = hub_of(t, is_new);
    world_init(w, t->metadata);
    w->now_ns = now_ns;
    w->has_pages = w->is_new = true;
    for (unsigned i = 0; i < t->n; i++)
        (void)world_add(w, &t->servers[i].kube);
}

static void begin(struct twins *t, struct random *r, struct metadata m)
{
    memset(t, 0, sizeof(*t));
    t->metadata = m;
    t->n = (unsigned)random_int(r, 1, PODS);
    struct world clock = {.now_ns = 10000 * NS_PER_S};
    for (unsigned i = 0; i < t->n; i++) {
        struct server *s = &t->servers[i];
        s->kube = pages_kube_pod(&clock, i + 1);
        if (random_is(r, 0.5)) { /* it comes up while it is looked at */
            s->kube.is_ready = false;
            s->kube.condition_s = s->kube.started_s = s->kube.meta.created_s = world_api_now(&clock);
        }
    }
    start_hub(t, false, clock.now_ns);
    start_hub(t, true, clock.now_ns);
}

/* Where there is none, a pod that cannot be read counts with T unless more is remembered of it (2.3), which a new hub
 * cannot. So pages of such metrics are always there. */
static bool has_ceiling(const struct world *w)
{
    const struct trigger *t = w->trigger;
    return t->n_parts == 0 && (t->prefers_engine || t->metric == TRIGGER_KV_CACHE_USAGE);
}

static void change(struct twins *t, struct random *r, unsigned i, int64_t second)
{
    struct server *s = &t->servers[i];
    if (random_is(r, 0.1)) {
        s->running = (double)random_int(r, 0, 16);
        s->waiting = s->running < 16 || random_is(r, 0.5) ? 0 : (double)random_int(r, 0, 30);
        s->kv = s->running / 16 * random_double(r, 50, 100);
        s->rate = (double)random_int(r, 0, 8);
        s->wait_s = random_double(r, 0, 2);
    }
    s->ended += s->rate * STEP_S;
    s->waited_s += s->rate * STEP_S * s->wait_s;
    if (random_is(r, 0.01) && has_ceiling(&t->old))
        s->dead_until = second + random_int(r, 5, 400);
    if (!random_is(r, s->kube.is_ready ? 0.02 : 0.15))
        return;
    s->kube.is_ready = !s->kube.is_ready;
    s->kube.condition_s = world_api_now(&t->old);
    for (int k = 0; k < 2; k++)
        world_update(hub_of(t, k), hub_of(t, k)->pods[i], &s->kube);
}

static void fetch(struct world *w, unsigned i, const struct server *s, int64_t second)
{
    if (second < s->dead_until) {
        pages_fail(w, pages_of(w, i + 1), "connection refused");
        return;
    }
    pages_say(w, pages_of(w, i + 1),
              "vllm:num_requests_running{engine=\"0\"} %g\nvllm:num_requests_waiting{engine=\"0\"} %g\n"
              "vllm:kv_cache_usage_perc{engine=\"0\"} %g\n"
              "# TYPE vllm:request_success_total counter\nvllm:request_success_total{engine=\"0\"} %g\n"
              "# TYPE vllm:generation_tokens_total counter\nvllm:generation_tokens_total{engine=\"0\"} %g\n"
              "# TYPE vllm:request_queue_time_seconds histogram\n"
              "vllm:request_queue_time_seconds_sum{engine=\"0\"} %g\n"
              "vllm:request_queue_time_seconds_count{engine=\"0\"} %g\n",
              s->running, s->waiting, s->kv / 100, s->ended, 100 * s->ended, s->waited_s, s->ended);
}

static void live(struct twins *t, struct random *r, int64_t second)
{
    if (random_is(r, 0.03)) {
        int64_t now_ns = t->new.now_ns;
        world_fini(&t->new);
        start_hub(t, true, now_ns);
    }
    for (int k = 0; k < 2; k++)
        world_wait(hub_of(t, k), STEP_S);
    for (unsigned i = 0; i < t->n; i++)
        change(t, r, i, second);
    for (int k = 0; k < 2; k++) {
        world_look(hub_of(t, k));
        for (unsigned i = 0; i < t->n; i++)
            fetch(hub_of(t, k), i, &t->servers[i], second);
        world_look(hub_of(t, k));
    }
}

static int direction(struct world *w, int64_t spec)
{
    w->facts.spec = w->facts.status = spec;
    const struct workload_answer *a = world_evaluate(w);
    if (a->value_error.class != ERR_NONE)
        return 0;
    return (a->sent.proposal > spec) - (a->sent.proposal < spec);
}

static struct metadata random_metadata(struct random *r)
{
    static const char *const windows[] = {"0", "15", "60"}, *const targets[] = {"2", "5", "80"},
                             *const aggregations[] = {"avg", "max"};
    static const char *const types[] = {"requests_waiting", "kv_cache_usage", "request_rate", "queue_wait_ms",
                                        "requests_in_flight"};
    const char *window = windows[random_int(r, 0, 2)];
    if (random_is(r, 0.2))
        return METADATA("profile", "vllm-inference", "window", window);
    if (random_is(r, 0.2))
        return METADATA("metricType", "requests_in_flight,kv_cache_usage", "targetValue", "8,80", "window", window);
    return METADATA("metricType", types[random_int(r, 0, 4)], "targetValue", targets[random_int(r, 0, 2)],
                    "aggregation", aggregations[random_int(r, 0, 1)], "window", window);
}

static void test_a_hub_that_starts_never_turns_around_what_another_says(void **state)
{
    (void)state;
    struct random r = random_start("two hubs on pages", 5);
    uint64_t rounds = random_rounds(60), n_both = 0, n_moves = 0;
    struct twins *t = mem_new(struct twins);
    for (uint64_t round = 0; round < rounds; round++) {
        struct metadata m = random_metadata(&r);
        begin(t, &r, m);
        for (int64_t second = 0; second < SECONDS; second += STEP_S) {
            live(t, &r, second);
            int64_t spec = random_int(&r, 1, 6);
            int old = direction(&t->old, spec), new = direction(&t->new, spec);
            if (old * new < 0)
                print_error("round %" PRIu64 ", second %" PRId64 ", %s: %d (%g) and %d (%g)\n", round, second,
                            t->old.trigger->profile[0] ? t->old.trigger->profile
                                                       : trigger_metric_name(t->old.trigger->metric),
                            old, t->old.answer.value, new, t->new.answer.value);
            assert_true(old * new >= 0);
            n_both += old * new > 0;
            n_moves += old != 0;
        }
        world_fini(&t->old);
        world_fini(&t->new);
    }
    free(t);
    assert_true(n_both > rounds && n_moves >= n_both); /* they do say something */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_hub_that_starts_never_turns_around_what_another_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
