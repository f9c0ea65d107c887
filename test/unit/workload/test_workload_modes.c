/* Which of several things a trigger is measured by: an engine's profile by pages or by GPUs, several signals by the
 * busiest, a workload at zero by wakeMetric; and what the HPA makes of all that over time. */
#include "workload/workload.h"

#include "objects.h"
#include "pages.h"

#define VLLM "profile", "vllm-inference"
#define TGI  "profile", "tgi-inference"
#define BOTH "metricType", "requests_in_flight,kv_cache_usage", "targetValue", "16,80"
#define WAKE                                                                                                           \
    "metricType", "requests_waiting", "targetValue", "5", "wakeEndpoint", "http://router/metrics", "wakeMetric",       \
        "queued"
#define ROUTER "http://router/metrics"

/* ---- profiles of engines ---- */

/* The GPU of pod `i`: all of its memory filled at the start, this busy. */
static void give_gpu(struct world *w, unsigned i, double utilization)
{
    char name[8];
    (void)snprintf(name, sizeof(name), "p%u", i);
    struct world_node *n = world_node(w, "n1");
    struct fleet_device *d = NULL;
    for (size_t k = 0; k < n->node.n_holders; k++)
        if (strcmp(n->holders[k].pod, name) == 0)
            d = (struct fleet_device *)(uintptr_t)n->holders[k].device;
    if (!d) {
        d = world_gpu(w, "n1");
        (void)world_hold(w, "n1", "ml", w->pods[i - 1] ? workload_pod_name(w->pods[i - 1]) : "", d);
    }
    world_read(w, d, SNAPSHOT_MEMORY_USED, 0.9 * (double)d->memory_total);
    world_read(w, d, SNAPSHOT_UTILIZATION, utilization);
}

static void test_a_profile_goes_by_the_pages_where_they_can_be_read(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, VLLM);
    pages_serve(&w, 1, 8, 0, 50);
    pages_serve(&w, 2, 8, 0, 60);
    give_gpu(&w, 1, 100);
    give_gpu(&w, 2, 100);
    assert_near(VALUE(w), 110);
    assert_int_equal(w.answer.mode, WORKLOAD_BY_PAGE);
    assert_near(w.answer.rules.ceiling, 200);
    assert_true(w.answer.is_active);
    pages_vllm(&w, 1, 8, 8, 50); /* a queue as long as the batch: twice of it is wanted */
    world_wait(&w, 15);
    pages_vllm(&w, 1, 8, 8, 50);
    pages_vllm(&w, 2, 8, 0, 60);
    assert_near(VALUE(w), 260);
    assert_int_equal(w.answer.sent.proposal, 4);
}

static void test_an_idle_server_with_all_its_memory_shrinks(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, VLLM);
    pages_serve(&w, 1, 0, 0, 0);
    pages_serve(&w, 2, 0, 0, 0);
    give_gpu(&w, 1, 0);
    give_gpu(&w, 2, 0);
    assert_near(VALUE(w), 0);
    assert_false(w.answer.is_active);
    assert_int_equal(w.answer.active_error.class, ERR_NONE);
}

static void test_without_pages_it_goes_by_the_gpus(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, VLLM);
    pages_dead(&w, 1);
    give_gpu(&w, 1, 95);
    assert_near(VALUE(w), 80); /* preallocated: it may shrink, never grow */
    assert_int_equal(w.answer.mode, WORKLOAD_BY_GPU);
    assert_true(w.answer.inputs[0].replica->is_preallocated);
    assert_contains(w.answer.inputs[0].page_text, "http://10.0.0.1:8000/metrics: connection refused");
    WORLD none; /* as on a hub that fetches no page */
    WORLD_INIT(none, VLLM);
    (void)pages_pod(&none, 1);
    give_gpu(&none, 1, 95);
    assert_near(VALUE(none), 80);
    assert_int_equal(none.answer.mode, WORKLOAD_BY_GPU);
}

static void test_before_any_page_was_tried_nothing_is_decided_by_gpus(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, VLLM);
    (void)pages_pod(&w, 1);
    give_gpu(&w, 1, 0);
    assert_refused(w, ERR_UNAVAILABLE, "has not been read yet");
    pages_fail(&w, pages_of(&w, 1), "connection refused");
    assert_near(VALUE(w), 0);
    (void)pages_pod(&w, 2); /* a new pod does not change what the others go by */
    give_gpu(&w, 2, 0);
    assert_near(VALUE(w), 0);
    assert_int_equal(w.answer.mode, WORKLOAD_BY_GPU);
}

static void test_a_dead_page_among_others_does_not_scale_down(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, VLLM);
    pages_serve(&w, 1, 1, 0, 30);
    pages_serve(&w, 2, 8, 0, 70);
    pages_dead(&w, 3);
    for (unsigned i = 1; i <= 3; i++)
        give_gpu(&w, i, 0);
    assert_near(VALUE(w), 240);
    assert_true(w.answer.result.is_hold);
    assert_int_equal(state_of(&w.answer, 2), SCALING_POD_MISSING);
}

static void test_pages_that_were_there_are_waited_for(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, VLLM);
    pages_serve(&w, 1, 8, 0, 70);
    give_gpu(&w, 1, 40);
    assert_near(VALUE(w), 70);
    world_wait(&w, 60);
    give_gpu(&w, 1, 40);
    pages_fail(&w, pages_of(&w, 1), "HTTP 500");
    assert_refused(w, ERR_UNAVAILABLE, "HTTP 500"); /* not the GPUs' number all of a sudden */
    assert_int_equal(w.answer.mode, WORKLOAD_BY_PAGE);
    world_wait(&w, 841);
    give_gpu(&w, 1, 40);
    pages_fail(&w, pages_of(&w, 1), "HTTP 500");
    assert_near(VALUE(w), 40);
    assert_int_equal(w.answer.mode, WORKLOAD_BY_GPU);
    for (int i = 0; i < 4; i++, world_wait(&w, 5)) {
        pages_vllm(&w, 1, 8, 0, 70);
        (void)VALUE(w);
        assert_int_equal(w.answer.mode, WORKLOAD_BY_PAGE);
    }
    assert_near(VALUE(w), 70);
}

static void tgi(struct world *w, unsigned i, double running, double waiting)
{
    pages_say(w, pages_of(w, i),
              "# TYPE tgi_queue_size gauge\ntgi_queue_size %g\n# TYPE tgi_batch_current_size gauge\n"
              "tgi_batch_current_size %g\n",
              waiting, running);
}

static void test_a_server_without_a_cache_on_its_page_goes_by_its_gpu_until_something_waits(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, TGI);
    (void)pages_pod(&w, 1);
    (void)pages_pod(&w, 2);
    tgi(&w, 1, 8, 0);
    tgi(&w, 2, 8, 0);
    give_gpu(&w, 1, 100);
    give_gpu(&w, 2, 40);
    assert_near(VALUE(w), 115); /* by the rule of preallocated memory: min(75, 100) + 40 */
    assert_int_equal(w.answer.mode, WORKLOAD_BY_GPU);
    world_wait(&w, 5);
    tgi(&w, 1, 8, 4);
    give_gpu(&w, 1, 100);
    give_gpu(&w, 2, 40);
    tgi(&w, 2, 8, 0);
    world_wait(&w, 15);
    tgi(&w, 1, 8, 4);
    tgi(&w, 2, 8, 0);
    give_gpu(&w, 1, 100);
    give_gpu(&w, 2, 40);
    assert_near(VALUE(w), 190); /* 100 * 12 / 8, and 40 */
    give_gpu(&w, 2, 100);
    assert_near(VALUE(w), 225); /* and 75: utilisation lets nobody grow */
    assert_int_equal(w.answer.mode, WORKLOAD_BY_PAGE);
    assert_true(w.answer.is_active);
}

/* ---- several signals ---- */

static void test_the_busiest_signal_relative_to_its_target_decides(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, BOTH);
    pages_serve(&w, 1, 12, 0, 90);
    pages_serve(&w, 2, 12, 0, 70);
    assert_near(VALUE(w), 200); /* 24 of 16 is 1.5; 160 of 80 is 2 */
    assert_int_equal(w.answer.n_parts, 2);
    assert_int_equal(w.answer.result.part, 1);
    assert_near(w.answer.parts[0].result.value, 24);
    assert_near(w.answer.parts[1].result.value, 160);
    assert_near(w.answer.hpa.target, 100);
    world_wait(&w, 1);
    pages_vllm(&w, 1, 12, 28, 50);
    pages_vllm(&w, 2, 12, 28, 50);
    world_wait(&w, 14);
    pages_vllm(&w, 1, 12, 28, 50);
    pages_vllm(&w, 2, 12, 28, 50);
    world_wait(&w, 15);
    assert_near(VALUE(w), 500); /* 80 of 16, and 400 of 80 */
    assert_int_equal(w.answer.sent.proposal, 5);
}

static void test_a_signal_that_cannot_be_read_blocks_shrinking_only(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, BOTH);
    for (unsigned i = 1; i <= 2; i++) {
        (void)pages_pod(&w, i);
        tgi(&w, i, 2, 0);
    }
    assert_near(VALUE(w), 200); /* 4 in flight would do with one replica, but nothing is known of the cache */
    assert_int_equal(w.answer.result.rule, SCALING_RULE_HOLD_PART);
    assert_int_equal(w.answer.result.n_failed, 1);
    for (unsigned i = 1; i <= 2; i++)
        tgi(&w, i, 40, 0);
    world_wait(&w, 15);
    for (unsigned i = 1; i <= 2; i++)
        tgi(&w, i, 40, 0);
    assert_near(VALUE(w), 500);
    assert_true(w.answer.is_active);
}

static void test_without_any_signal_the_first_ones_error_is_the_answer(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, BOTH);
    pages_dead(&w, 1);
    assert_refused(w, ERR_UNAVAILABLE, "connection refused");
    WORLD none;
    WORLD_INIT(none, BOTH);
    (void)pages_pod(&none, 1);
    assert_refused(none, ERR_FAILED_PRECONDITION, "requests_in_flight is read from the metrics pages");
}

static void test_a_signal_of_gpus_may_be_one_of_several(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, "metricType", "gpu_utilization,requests_waiting", "targetValue", "50,5");
    pages_serve(&w, 1, 8, 5, 50);
    give_gpu(&w, 1, 100);
    assert_near(VALUE(w), 200);
    assert_int_equal(w.answer.result.part, 0);
    assert_int_equal(w.answer.parts[0].mode, WORKLOAD_BY_GPU);
    assert_int_equal(w.answer.parts[1].mode, WORKLOAD_BY_PAGE);
    assert_near(w.answer.parts[1].result.value, 5);
}

/* ---- from zero ---- */

static void test_a_routers_page_wakes_what_has_no_pod(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, WAKE);
    w.facts.spec = 0;
    world_look(&w);
    assert_int_equal(w.n_pages, 1); /* asked before the first question */
    pages_fail(&w, world_url(&w, ROUTER), "HTTP 404");
    (void)VALUE(w);
    assert_int_equal(w.answer.active_error.class, ERR_UNAVAILABLE);
    assert_contains(w.answer.active_error.text, "HTTP 404");
}

static void say_queued(struct world *w, double queued)
{
    struct world_page *p = world_url(w, ROUTER);
    if (!p->reader)
        p->reader = signals_reader_new("queued");
    pages_say(w, p, "# TYPE queued gauge\nqueued %g\n", queued);
}

static void test_demand_at_the_router_is_activity(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, WAKE);
    w.facts.spec = 0;
    say_queued(&w, 0);
    assert_near(VALUE(w), 0);
    assert_false(w.answer.is_active);
    assert_int_equal(w.answer.active_error.class, ERR_NONE);
    world_wait(&w, 5);
    say_queued(&w, 3);
    assert_near(VALUE(w), 0);
    assert_true(w.answer.is_active && w.answer.is_above);
    pages_serve(&w, 1, 0, 0, 1); /* an idle pod, and more demand in front of it */
    assert_near(VALUE(w), 0);
    assert_true(w.answer.is_active && w.answer.is_above);
    assert_int_equal(w.answer.result.active_rule, SCALING_ACTIVE_WAKE);
    world_wait(&w, 60);
    pages_vllm(&w, 1, 0, 0, 1);
    (void)VALUE(w); /* the router has fallen silent */
    assert_true(w.answer.is_active && !w.answer.is_above);
}

/* ---- closed loop ---- */

enum { STEP_S = 5, SYNC_S = 15, LOAD_S = 60, SLOTS = 16, LOOP_PODS = 9 };
static const double served_each = 4; /* requests a second of a full batch */

/* vLLM servers that hold all GPU memory, behind a router that splits arrivals evenly, under an HPA; a second hub starts
 * later and sees the same. */
struct loop {
    struct world hubs[2];
    size_t n_hubs;
    double in_flight[LOOP_PODS + 1];
    double ready_at_s[LOOP_PODS + 1];
    struct scaling_behaviour behaviour;
    struct scaling_history history;
    int64_t most, now_s;
    unsigned n_pods;
};

static void add_pod(struct loop *l)
{
    l->n_pods++;
    l->in_flight[l->n_pods] = 0;
    l->ready_at_s[l->n_pods] = (double)(l->now_s + LOAD_S);
    for (size_t i = 0; i < l->n_hubs; i++) {
        struct world *w = &l->hubs[i];
        struct kube_pod pod = pages_kube_pod(w, l->n_pods);
        pod.is_ready = false;
        pod.meta.created_s = pod.condition_s = pod.started_s = world_api_now(w);
        (void)world_add(w, &pod);
    }
}

static void remove_pod(struct loop *l)
{
    for (size_t i = 0; i < l->n_hubs; i++)
        workload_pod_free(l->hubs[i].pods[--l->hubs[i].facts.n_pods]);
    l->n_pods--;
}

static void become_ready(struct loop *l, unsigned pod)
{
    for (size_t i = 0; i < l->n_hubs; i++) {
        struct world *w = &l->hubs[i];
        struct kube_pod kube = pages_kube_pod(w, pod);
        kube.meta.created_s = kube.started_s = world_api_now(w) - LOAD_S;
        kube.condition_s = world_api_now(w);
        world_update(w, w->pods[pod - 1], &kube);
    }
}

static void serve(struct loop *l, double arrivals)
{
    unsigned n_ready = 0;
    for (unsigned i = 1; i <= l->n_pods; i++)
        n_ready += (double)l->now_s >= l->ready_at_s[i];
    for (unsigned i = 1; i <= l->n_pods; i++) {
        if ((double)l->now_s < l->ready_at_s[i])
            continue;
        if ((double)(l->now_s - STEP_S) < l->ready_at_s[i])
            become_ready(l, i);
        for (int k = 0; k < 10 * STEP_S; k++) { /* by tenths of a second */
            double running = l->in_flight[i] < SLOTS ? l->in_flight[i] : SLOTS;
            l->in_flight[i] += 0.1 * (arrivals / n_ready - served_each * running / SLOTS);
        }
        l->in_flight[i] = l->in_flight[i] < 0.01 ? 0 : l->in_flight[i];
        double running = l->in_flight[i] < SLOTS ? l->in_flight[i] : SLOTS;
        for (size_t h = 0; h < l->n_hubs; h++)
            pages_vllm(&l->hubs[h], i, running, l->in_flight[i] - running, 100 * running / SLOTS);
    }
}

static int64_t sync(struct loop *l)
{
    int64_t wanted[2] = {0, 0}, spec = l->hubs[0].facts.spec;
    for (size_t i = 0; i < l->n_hubs; i++) {
        struct world *w = &l->hubs[i];
        const struct workload_answer *a = world_evaluate(w);
        wanted[i] = a->value_error.class == ERR_NONE ? a->sent.proposal : spec;
    }
    if (l->n_hubs == 2) /* they never turn each other around */
        assert_false((wanted[0] > spec && wanted[1] < spec) || (wanted[0] < spec && wanted[1] > spec));
    return scaling_hpa_limit(&l->behaviour, &l->history, l->now_s, spec,
                             wanted[l->now_s / SYNC_S % (int64_t)l->n_hubs]);
}

static void run(struct loop *l, double arrivals, int64_t seconds)
{
    for (int64_t until_s = l->now_s + seconds; l->now_s < until_s;) {
        l->now_s += STEP_S;
        for (size_t i = 0; i < l->n_hubs; i++)
            world_wait(&l->hubs[i], STEP_S);
        serve(l, arrivals);
        for (size_t i = 0; i < l->n_hubs; i++)
            world_look(&l->hubs[i]);
        if (l->now_s % SYNC_S != 0)
            continue;
        int64_t count = sync(l);
        l->most = count > l->most ? count : l->most;
        while (l->n_pods < count)
            add_pod(l);
        while (l->n_pods > count)
            remove_pod(l);
        for (size_t i = 0; i < l->n_hubs; i++)
            l->hubs[i].facts.spec = l->hubs[i].facts.status = count;
    }
}

static void start_hub(struct loop *l)
{
    struct world *w = &l->hubs[l->n_hubs];
    PAGES_INIT(*w, VLLM);
    w->now_ns += l->now_s * NS_PER_S;
    w->is_new = true;
    w->facts.hpa_state = WORKLOAD_HPA_NOT_MADE;
    for (unsigned i = 1; i <= l->n_pods; i++) {
        struct kube_pod pod = pages_kube_pod(w, i);
        bool is_ready = (double)l->now_s >= l->ready_at_s[i];
        double since_s = world_api_now(w) - ((double)l->now_s - l->ready_at_s[i]);
        pod.is_ready = is_ready;
        pod.meta.created_s = pod.started_s = since_s - LOAD_S;
        pod.condition_s = is_ready ? since_s : since_s - LOAD_S;
        (void)world_add(w, &pod);
    }
    l->n_hubs++;
}

static void start_loop(struct loop *l)
{
    memset(l, 0, sizeof(*l));
    l->behaviour = scaling_default_behaviour(1, LOOP_PODS, false);
    start_hub(l);
    add_pod(l);
    l->ready_at_s[1] = 1;
}

static void end_loop(struct loop *l)
{
    for (size_t i = 0; i < l->n_hubs; i++)
        world_fini(&l->hubs[i]);
    free(l);
}

static void test_servers_that_hold_all_memory_end_at_the_right_count(void **state)
{
    (void)state;
    struct loop *l = mem_new(struct loop);
    start_loop(l);
    run(l, 2, 600);
    assert_int_equal(l->hubs[0].facts.spec, 1);
    run(l, 10, 900); /* 2.5 full batches */
    assert_in_range(l->hubs[0].facts.spec, 3, 4);
    start_hub(l);
    run(l, 20, 1500); /* 5 full batches: each at 80 % would be 6.25 */
    assert_in_range(l->hubs[0].facts.spec, 6, 7);
    assert_true(l->most <= 9);
    run(l, 2, 1500);
    assert_int_equal(l->hubs[0].facts.spec, 1);
    run(l, 0, 900);
    assert_near(VALUE(l->hubs[0]), 0);
    assert_false(l->hubs[0].answer.is_active);
    assert_int_equal(l->hubs[0].answer.mode, WORKLOAD_BY_PAGE);
    end_loop(l);
}

static void test_waiting_requests_double_the_replicas_in_one_step(void **state)
{
    (void)state;
    struct loop *l = mem_new(struct loop);
    start_loop(l);
    run(l, 3, 300);
    assert_int_equal(l->hubs[0].facts.spec, 1);
    run(l, 8, 45);
    assert_in_range(l->hubs[0].facts.spec, 2, 3);
    end_loop(l);
}

/* ---- what is known soon ---- */

static void test_what_waits_and_has_no_size_yet_lets_nobody_take_replicas_away(void **state)
{
    (void)state;
    static const char idle[] = "vllm:num_requests_running 0\nvllm:num_requests_waiting 0\n"
                               "vllm:request_prompt_tokens_sum 9000\nvllm:request_prompt_tokens_count 10\n";
    static const char first[] = "vllm:num_requests_running 8\nvllm:num_requests_waiting 50\n"
                                "vllm:request_prompt_tokens_sum 0\nvllm:request_prompt_tokens_count 0\n";
    WORLD w;
    PAGES_INIT(w, "metricType", "tokens_waiting", "targetValue", "1000");
    for (unsigned i = 1; i <= 3; i++) {
        (void)pages_pod(&w, i);
        pages_text(&w, pages_of(&w, i), i < 3 ? idle : first);
    }
    assert_near(VALUE(w), 3000);
    assert_int_equal(w.answer.result.rule, SCALING_RULE_HOLD);
    assert_true(w.answer.is_active);
    assert_contains(w.answer.inputs[2].text, "requests wait, and none has ended yet that would tell how long they are");
}

/* ---- a server that began anew ---- */

static void test_what_another_life_of_the_server_said_is_no_past_of_its_page(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, "metricType", "requests_waiting", "targetValue", "5");
    struct kube_pod pod = pages_kube_pod(&w, 1);
    struct workload_pod *p = world_add(&w, &pod);
    pages_vllm(&w, 1, 8, 20, 90);
    world_look(&w);
    pod.is_ready = false;
    pod.condition_s = pod.started_s = world_api_now(&w) + 1;
    world_update(&w, p, &pod);
    world_wait(&w, 20);
    pod.is_ready = true;
    pod.condition_s = world_api_now(&w);
    world_update(&w, p, &pod);
    for (int i = 0; i < 12; i++, world_wait(&w, 5)) {
        pages_fail(&w, pages_of(&w, 1), "the answer took longer than 3 s");
        world_look(&w);
    }
    pages_vllm(&w, 1, 8, 0, 90);
    assert_near(VALUE(w), 5); /* the moment of one page is not its window: held */
    assert_int_equal(w.answer.inputs[0].counted->reading, SCALING_READ_UNDECIDED);
    for (int i = 0; i < 3; i++) {
        world_wait(&w, 5);
        pages_vllm(&w, 1, 8, 0, 90);
    }
    assert_near(VALUE(w), 0);
}

static void test_a_page_read_for_part_of_the_window_is_not_missing_to_be_ignored(void **state)
{
    (void)state;
    WORLD w;
    PAGES_INIT(w, "metricType", "requests_waiting", "targetValue", "5", "onMissing", "ignore");
    pages_serve(&w, 1, 8, 1, 60);
    w.is_new = true; /* the hub has just begun to read it */
    pages_serve(&w, 2, 8, 9, 60);
    assert_near(VALUE(w), 10);
    assert_true(w.answer.result.is_hold);
    WORLD both;
    PAGES_INIT(both, "metricType", "requests_waiting", "targetValue", "5", "onMissing", "ignore");
    both.is_new = true;
    pages_serve(&both, 1, 8, 1, 60);
    assert_near(VALUE(both), 5);
    assert_true(both.answer.result.is_hold);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_profile_goes_by_the_pages_where_they_can_be_read),
        cmocka_unit_test(test_an_idle_server_with_all_its_memory_shrinks),
        cmocka_unit_test(test_without_pages_it_goes_by_the_gpus),
        cmocka_unit_test(test_before_any_page_was_tried_nothing_is_decided_by_gpus),
        cmocka_unit_test(test_a_dead_page_among_others_does_not_scale_down),
        cmocka_unit_test(test_pages_that_were_there_are_waited_for),
        cmocka_unit_test(test_a_server_without_a_cache_on_its_page_goes_by_its_gpu_until_something_waits),
        cmocka_unit_test(test_the_busiest_signal_relative_to_its_target_decides),
        cmocka_unit_test(test_a_signal_that_cannot_be_read_blocks_shrinking_only),
        cmocka_unit_test(test_without_any_signal_the_first_ones_error_is_the_answer),
        cmocka_unit_test(test_a_signal_of_gpus_may_be_one_of_several),
        cmocka_unit_test(test_a_routers_page_wakes_what_has_no_pod),
        cmocka_unit_test(test_demand_at_the_router_is_activity),
        cmocka_unit_test(test_servers_that_hold_all_memory_end_at_the_right_count),
        cmocka_unit_test(test_waiting_requests_double_the_replicas_in_one_step),
        cmocka_unit_test(test_what_waits_and_has_no_size_yet_lets_nobody_take_replicas_away),
        cmocka_unit_test(test_what_another_life_of_the_server_said_is_no_past_of_its_page),
        cmocka_unit_test(test_a_page_read_for_part_of_the_window_is_not_missing_to_be_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
