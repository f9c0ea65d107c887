/* Random worlds. What comes out is what scaling makes of inputs that are derived here by themselves; other tenants
 * change nothing; and a hub that has just started never turns around what one with a past says. */
#include "workload/workload.h"

#include "../scaling/random.h"
#include "world.h"

#include <math.h>

enum { PODS = 6 };

/* ---- against scaling, by hand ---- */

struct model {
    struct scaling_pod pods[PODS];
    size_t n;
};

static const char *const pod_names[PODS] = {"a", "b", "c", "d", "e", "f"};
static const char *const node_names[] = {"n1", "n2"};

/* One or two GPUs of its own, each of which may not be readable. */
static void add_gpus(struct world *w, struct random *r, const char *name, const char *node, struct scaling_pod *pod)
{
    int64_t n = random_int(r, 1, 2);
    double sum = 0;
    bool is_read = true;
    for (int64_t i = 0; i < n; i++) {
        struct fleet_device *d = world_gpu(w, node);
        (void)world_hold(w, node, "ml", name, d);
        double load = random_double(r, 0, 100);
        world_read(w, d, SNAPSHOT_UTILIZATION, load);
        sum += load;
        if (random_is(r, 0.15)) {
            world_readings(w, d)[0].status = FLEET_MISSING;
            is_read = false;
        }
    }
    pod->reading = is_read ? SCALING_READ_OK : SCALING_READ_MISSING;
    struct scaling_maybe p = {.is_known = is_read, .value = is_read ? sum / (double)n : 0};
    pod->load = (struct scaling_load){.window = p, .since_ready = p, .peak = p};
    pod->last_good = p;
}

static void add_random_pod(struct world *w, struct random *r, struct model *m)
{
    const char *node = random_is(r, 0.1) ? "nowhere" : node_names[random_int(r, 0, 1)];
    struct kube_pod kube = world_kube_pod(w, pod_names[m->n], node);
    double age_s = random_double(r, 20, 2000);
    kube.is_ready = random_is(r, 0.8);
    kube.meta.is_deleted = random_is(r, 0.1);
    kube.condition_s = world_api_now(w) - age_s;
    kube.started_s = kube.condition_s - random_double(r, 0, 40);
    kube.meta.created_s = kube.started_s - 5;
    (void)world_add(w, &kube);
    struct scaling_pod *pod = &m->pods[m->n++];
    *pod = (struct scaling_pod){.phase = SCALING_PHASE_RUNNING,
                                .is_deleted = kube.meta.is_deleted,
                                .is_ready = kube.is_ready,
                                .created_age_s = world_api_now(w) - kube.meta.created_s,
                                .condition_age_s = {true, world_api_now(w) - kube.condition_s},
                                .started_age_s = {true, world_api_now(w) - kube.started_s},
                                .has_gpu = true,
                                .group = -1,
                                .reading = SCALING_READ_MISSING};
    if (strcmp(node, "nowhere") != 0)
        add_gpus(w, r, pod_names[m->n - 1], node, pod);
}

static void compare(struct world *w, const struct model *m)
{
    struct scaling_rules rules = {.aggregation = w->trigger->aggregation,
                                  .target = w->trigger->target,
                                  .window_s = 15,
                                  .warmup_s = 900,
                                  .ceiling = 100,
                                  .activation = w->trigger->activation};
    struct scaling_workload workload = {
        .pods = m->pods,
        .n_pods = m->n,
        .is_scale_known = true,
        .replicas = {.spec = w->facts.spec, .status = w->facts.status, .ready = scaling_count_ready(m->pods, m->n)}};
    struct scaling_hpa hpa = {.target = rules.target, .tolerance_up = 0.1, .tolerance_down = 0.1};
    struct scaling_result result;
    struct scaling_answer sent;
    ARENA_AUTO struct arena arena;
    arena_init(&arena, WORLD_ARENA_BYTES);
    scaling_evaluate(&rules, &workload, &arena, &result);
    scaling_for_hpa(&hpa, &result, &sent);
    const struct workload_answer *a = world_evaluate(w);
    assert_int_equal(a->result.rule, result.rule);
    assert_int_equal(a->result.active_rule, result.active_rule);
    assert_int_equal(a->value_error.class, sent.error.class);
    assert_int_equal(a->active_error.class, result.active_error.class);
    assert_double_near(a->value, sent.error.class == ERR_NONE ? sent.value : 0, 1e-6);
    assert_int_equal(a->is_active, result.is_active);
}

static void add_tenants(struct world *w, struct random *r)
{
    for (int64_t i = random_int(r, 0, 2); i > 0; i--) {
        struct fleet_device *d = world_gpu(w, "n2");
        (void)world_hold(w, "n2", random_is(r, 0.5) ? "other" : "ml", "tenant", d);
        world_read(w, d, SNAPSHOT_UTILIZATION, random_double(r, 0, 100));
    }
}

static void test_answers_are_scalings_of_what_is_there(void **state)
{
    (void)state;
    struct random r = random_start("workloads", 7);
    uint64_t rounds = random_rounds(4000);
    static const char *const aggregations[] = {"avg", "max", "min", "p95"};
    for (uint64_t round = 0; round < rounds; round++) {
        WORLD w;
        WORLD_INIT(w, "metricType", "gpu_utilization", "targetValue", "80", "aggregation",
                   aggregations[random_int(&r, 0, 3)]);
        struct model m = {.n = 0};
        for (int64_t i = random_int(&r, 1, 3); i > 0; i--)
            add_random_pod(&w, &r, &m);
        w.facts.spec = random_int(&r, 0, 4);
        w.facts.status = w.facts.spec + random_int(&r, 0, 2);
        compare(&w, &m);
        add_tenants(&w, &r);
        compare(&w, &m);
    }
}

/* ---- two hubs ---- */

enum { SECONDS = 1000, WINDOW_S = 15, PEAK_S = 60 };

/* A cluster, second by second: one GPU for each pod on a node of its own, seen by a hub with a past and a new one. */
struct twins {
    struct world w;
    enum snapshot_field field;
    double loads[PODS][SECONDS], others[PODS][SECONDS]; /* of the field; utilisation beside memory */
    size_t n, idle;                                     /* pods; those from `idle` on have little to do */
    double flat[PODS];                                  /* memory that never moves; 0: it does */
    struct kube_pod kube[PODS];
    char nodes[PODS][8];
    int64_t silent_until[PODS];
};

static void begin(struct twins *t, struct random *r, bool is_memory, const char *aggregation)
{
    world_init(&t->w, METADATA("metricType", is_memory ? "memory_used_percent" : "gpu_utilization", "targetValue",
                               random_is(r, 0.5) ? "80" : "20", "aggregation", aggregation));
    t->field = is_memory ? SNAPSHOT_MEMORY_USED : SNAPSHOT_UTILIZATION;
    t->n = (size_t)random_int(r, 1, 4);
    t->idle = (size_t)random_int(r, 1, 6);
    for (size_t i = 0; i < t->n; i++) {
        (void)snprintf(t->nodes[i], sizeof(t->nodes[i]), "m%zu", i);
        t->kube[i] = world_kube_pod(&t->w, pod_names[i], t->nodes[i]);
        if (random_is(r, 0.6)) { /* it comes up while it is looked at */
            t->kube[i].is_ready = false;
            t->kube[i].condition_s = t->kube[i].started_s = t->kube[i].meta.created_s = world_api_now(&t->w);
        }
        (void)world_add(&t->w, &t->kube[i]);
        (void)world_hold(&t->w, t->nodes[i], "ml", pod_names[i], world_gpu(&t->w, t->nodes[i]));
        t->silent_until[i] = 0;
        t->flat[i] = random_is(r, 0.4) ? random_double(r, 50, 95) : 0;
    }
}

/* Overload takes all of them at once. */
static void change_readiness(struct twins *t, struct random *r, bool is_overload, size_t i)
{
    if (!random_is(r, t->kube[i].is_ready ? 0.004 : 0.03) && !(is_overload && t->kube[i].is_ready))
        return;
    t->kube[i].is_ready = !t->kube[i].is_ready;
    t->kube[i].condition_s = world_api_now(&t->w);
    world_update(&t->w, t->w.pods[i], &t->kube[i]);
}

/* Mean and peak of a series under a want, as an agent would send them. */
static void read_series(struct twins *t, size_t i, size_t want, const double *series, int64_t second)
{
    double sum = 0, peak = 0, factor = t->field == SNAPSHOT_MEMORY_USED && want == 0 ? 0.01 * (UINT64_C(80) << 30) : 1;
    int64_t n = 0;
    for (int64_t s = second; s >= 0 && s > second - PEAK_S; s--) {
        peak = fmax(peak, series[s]);
        if (s > second - WINDOW_S) {
            sum += series[s];
            n++;
        }
    }
    struct fleet_device *d = &world_node(&t->w, t->nodes[i])->devices[0];
    world_read(&t->w, d, t->w.wants[want].field, series[second] * factor);
    world_readings(&t->w, d)[want].mean = sum / (double)n * factor;
    world_readings(&t->w, d)[want].peak = peak * factor;
}

static void read_minutes(struct twins *t, size_t i, int64_t second)
{
    struct world_node *n = world_node(&t->w, t->nodes[i]);
    n->holders[0].n_minutes = 0;
    for (int64_t s = second; s >= 0; s--) {
        size_t minute = (size_t)(second / 60 - s / 60);
        struct snapshot_extremes *at = &n->minutes[0][minute];
        if (n->holders[0].n_minutes == minute) {
            *at = (struct snapshot_extremes){.low = 200, .high = -1};
            n->holders[0].n_minutes++;
        }
        at->low = fminf(at->low, (float)t->loads[i][s]);
        at->high = fmaxf(at->high, (float)t->loads[i][s]);
    }
}

static void read_node(struct twins *t, size_t i, int64_t second)
{
    world_ask_wants(&t->w);
    read_series(t, i, 0, t->loads[i], second);
    if (t->field != SNAPSHOT_MEMORY_USED)
        return;
    read_series(t, i, 1, t->others[i], second);
    read_minutes(t, i, second);
}

static void live(struct twins *t, struct random *r, int64_t second)
{
    world_wait(&t->w, 1);
    double demand = random_is(r, 0.05) ? random_double(r, 0, 100) : t->loads[0][second > 0 ? second - 1 : 0];
    bool is_overload = random_is(r, 0.005);
    for (size_t i = 0; i < t->n; i++) {
        change_readiness(t, r, is_overload, i);
        double load = i >= t->idle ? random_double(r, 0, 8)
                      : i == 0     ? demand
                                   : fmin(100, demand * random_double(r, 0.8, 1.2));
        t->others[i][second] = second > 0 && random_is(r, 0.95) ? t->others[i][second - 1] : random_double(r, 0, 100);
        t->loads[i][second] = t->flat[i] > 0 && t->field == SNAPSHOT_MEMORY_USED && i > 0 ? t->flat[i] : load;
        if (random_is(r, 0.004))
            t->silent_until[i] = second + random_int(r, 5, 350);
        if (second >= t->silent_until[i])
            read_node(t, i, second);
    }
    if (second % 5 == 0)
        world_look(&t->w);
}

static int direction(const struct workload_answer *a)
{
    if (a->value_error.class != ERR_NONE)
        return 0;
    return (a->sent.proposal > a->result.replicas.spec) - (a->sent.proposal < a->result.replicas.spec);
}

/* What a hub says that has seen nothing of this before. */
static int ask_new_hub(struct twins *t)
{
    struct world *w = &t->w;
    struct workload_pod *pods[PODS];
    struct workload_facts facts = w->facts;
    facts.pods = pods;
    facts.api_now_s = world_api_now(w);
    for (size_t i = 0; i < facts.n_pods; i++)
        pods[i] = workload_pod_new(&t->kube[i], w->now_ns);
    struct workload_memory *memory = workload_memory_new(w->trigger);
    struct workload_fleet fleet = world_fleet(w);
    ARENA_AUTO struct arena arena;
    arena_init(&arena, WORLD_ARENA_BYTES);
    struct workload_answer a;
    workload_evaluate(memory, &facts, &fleet, w->now_ns, &arena, &a);
    int ret = direction(&a);
    for (size_t i = 0; i < facts.n_pods; i++)
        workload_pod_free(pods[i]);
    workload_memory_free(memory);
    return ret;
}

static void test_new_hub_never_turns_around_what_an_old_one_says(void **state)
{
    (void)state;
    struct random r = random_start("two hubs", 11);
    uint64_t rounds = random_rounds(40), n_both = 0, n_moves = 0;
    for (uint64_t round = 0; round < rounds; round++) {
        struct twins *t = mem_new(struct twins);
        begin(t, &r, round % 4 >= 2, round % 2 ? "max" : "avg");
        for (int64_t second = 0; second < SECONDS; second++) {
            live(t, &r, second);
            t->w.facts.spec = t->w.facts.status = random_int(&r, 1, 6);
            int old = direction(world_evaluate(&t->w)), new = ask_new_hub(t);
            if (old * new < 0)
                print_error("round %" PRIu64 ", second %" PRId64 ": %d and %d\n", round, second, old, new);
            assert_true(old * new >= 0);
            n_both += old * new > 0;
            n_moves += old != 0;
        }
        world_fini(&t->w);
        free(t);
    }
    assert_true(n_both > rounds && n_moves >= n_both); /* they do say something */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_are_scalings_of_what_is_there),
        cmocka_unit_test(test_new_hub_never_turns_around_what_an_old_one_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
