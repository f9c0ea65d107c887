/* For the tests of cluster/: one cluster on a loop whose clock the test moves, and the objects that the API tells it.
 */
#ifndef TEST_CLUSTER_WORLD_H
#define TEST_CLUSTER_WORLD_H

#include "cluster/cluster.h"

#include "cluster/fake_kube.h"

struct world {
    struct metrics *metrics;
    struct net_loop *loop;
    struct trigger_cache *triggers;
    struct workload_fleet fleet;
    struct cluster *cluster;
    size_t n_wants;  /* questions to agents so far, repeated ones too */
    struct buf told; /* "scale of ml/web: words; " */
    struct arena arena;
    struct workload_facts facts;
};

static const struct fleet_node *world_no_node(void *context, const char *name)
{
    (void)context;
    (void)name;
    return NULL;
}

static const struct fleet_node *const *world_no_nodes(void *context, size_t *ret_n)
{
    (void)context;
    *ret_n = 0;
    return NULL;
}

static int world_want(void *context, const struct fleet_want *want)
{
    struct world *w = context;
    (void)want;
    w->n_wants++;
    return 0;
}

static void world_told(void *context, const char *what, const struct err *error)
{
    struct world *w = context;
    (void)buf_printf(&w->told, "%s: %s; ", what, error ? err_class_name(error->class) : "works");
}

static const struct trigger_settings world_settings = {.default_scope = TRIGGER_WORKLOAD};

static int world_set_up(void **state)
{
    struct world *w = mem_new(struct world);
    struct err e;
    memset(&fake_kube, 0, sizeof(fake_kube));
    w->metrics = metrics_new();
    w->loop = net_loop_new(w->metrics, &e);
    assert_non_null(w->loop);
    w->triggers = trigger_cache_new(&world_settings, 1000);
    w->fleet =
        (struct workload_fleet){.find_node = world_no_node, .nodes = world_no_nodes, .want = world_want, .context = w};
    buf_init(&w->told, 1 << 16);
    arena_init(&w->arena, 1 << 24);
    w->cluster = cluster_new(&(struct cluster_config){.loop = w->loop,
                                                      .metrics = w->metrics,
                                                      .triggers = w->triggers,
                                                      .fleet = &w->fleet,
                                                      .service = "keda-gpu-scaler",
                                                      .service_ns = "gpu",
                                                      .hpa_tolerance = 0.1,
                                                      .told = world_told,
                                                      .context = w});
    *state = w;
    return 0;
}

static int world_tear_down(void **state)
{
    struct world *w = *state;
    cluster_free(w->cluster);
    assert_null(fake_kube.watches);
    assert_null(fake_kube.gets);
    trigger_cache_free(w->triggers);
    net_loop_free(w->loop);
    metrics_free(w->metrics);
    buf_fini(&w->told);
    arena_fini(&w->arena);
    free(w);
    return 0;
}

/* So many seconds pass, each in a turn of its own. */
static inline void world_pass(struct world *w, int seconds)
{
    for (int i = 0; i < seconds; i++) {
        net_loop_skip(w->loop, NS_PER_S);
        (void)net_loop_turn(w->loop);
    }
}

/* ---- objects ---- */

#define META(ns_, name_)                                                                                               \
    {                                                                                                                  \
        .ns = (ns_), .name = (name_), .uid = "u-" name_, .resource_version = "1"                                       \
    }

/* A ScaledObject on a Deployment of the same name, with one trigger at this address. The name is overwritten once it
 * was told. */
static inline void tell_scaled_object_of(struct world *w, const char *ns, const char *name, const char *address,
                                         const char *kind, const char *target)
{
    (void)w;
    char own[300];
    (void)snprintf(own, sizeof(own), "%s", name);
    struct kube_pair pairs[] = {{"scalerAddress", address}, {"metricType", "gpu_utilization"}, {"targetValue", "50"}};
    struct kube_trigger trigger = {"external", "", pairs, ARRAY_LEN(pairs)};
    struct kube_scaled_object object = {.meta = {.ns = ns, .name = own, .uid = "u", .resource_version = "1"},
                                        .target_api_version = "apps/v1",
                                        .target_kind = kind,
                                        .target_name = target,
                                        .hpa_name = own,
                                        .triggers = &trigger,
                                        .n_triggers = 1,
                                        .fallback_behavior = ""};
    struct kube_object told = {.kind = KUBE_SCALED_OBJECT, .meta = object.meta, .scaled_object = &object};
    fake_tell(fake_watch(KUBE_SCALED_OBJECT, NULL), &told);
    memset(own, '#', sizeof(own) - 1);
}

static const char *const our_address = "keda-gpu-scaler.gpu.svc:6000";

static inline void tell_scaled_object(struct world *w, const char *ns, const char *name, const char *address)
{
    tell_scaled_object_of(w, ns, name, address, "Deployment", name);
}

static inline void tell_scaled_job(const char *ns, const char *name)
{
    struct kube_scaled_job job = {.meta = {.ns = ns, .name = name, .uid = "u", .resource_version = "1"}};
    fake_tell(fake_watch(KUBE_SCALED_JOB, NULL),
              &(struct kube_object){.kind = KUBE_SCALED_JOB, .meta = job.meta, .scaled_job = &job});
}

static inline void tell_hpa(const char *ns, const char *name)
{
    struct kube_hpa hpa = {.meta = {.ns = ns, .name = name, .uid = "u", .resource_version = "1"},
                           .target_api_version = "apps/v1",
                           .target_kind = "Deployment",
                           .target_name = name,
                           .min = 1,
                           .max = 7,
                           .up = {.select = "Max"},
                           .down = {.select = "Max"},
                           .metrics = {{.name = "s0-gpu_utilization", .target = 50}},
                           .n_metrics = 1};
    fake_tell(fake_watch(KUBE_HPA, NULL), &(struct kube_object){.kind = KUBE_HPA, .meta = hpa.meta, .hpa = &hpa});
}

struct pod_row {
    const char *name, *uid;
    enum kube_phase phase;
    bool is_deleted, is_ready;
};
static inline void tell_pod(const char *ns, struct pod_row row)
{
    struct kube_pod pod = {.meta = {.ns = ns,
                                    .name = row.name,
                                    .uid = row.uid ? row.uid : row.name,
                                    .resource_version = "1",
                                    .is_deleted = row.is_deleted},
                           .node = "n1",
                           .ip = "",
                           .phase = row.phase,
                           .has_condition = true,
                           .is_ready = row.is_ready,
                           .requests_gpu = true,
                           .group = -1};
    fake_tell(fake_watch(KUBE_POD, ns), &(struct kube_object){.kind = KUBE_POD, .meta = pod.meta, .pod = &pod});
}

static inline void lists_are_complete(void)
{
    fake_synced(fake_watch(KUBE_SCALED_OBJECT, NULL));
    fake_synced(fake_watch(KUBE_SCALED_JOB, NULL));
    fake_synced(fake_watch(KUBE_HPA, NULL));
}

static inline void gone(struct kube_watch *w, const char *ns, const char *name, const char *uid)
{
    assert_non_null(w);
    w->config.gone(w->config.context, ns, name, uid);
}

/* ---- questions ---- */

static inline const struct workload_facts *facts_of(struct world *w, const char *ns, const char *name)
{
    const struct cluster_workload *it = cluster_find(w->cluster, ns, name);
    assert_non_null(it);
    arena_fini(&w->arena);
    arena_init(&w->arena, 1 << 24);
    assert_int_equal(cluster_facts(it, &w->arena, &w->facts), 0);
    return &w->facts;
}

static inline bool is_tracked(struct world *w, const char *ns, const char *name)
{
    return cluster_find(w->cluster, ns, name) != NULL;
}

/* ml/web, known, asked for, with this scale and complete lists of everything. */
static inline void world_of_web(struct world *w, int64_t replicas)
{
    tell_scaled_object(w, "ml", "web", our_address);
    lists_are_complete();
    assert_non_null(cluster_ask(w->cluster, "ml", "web", ""));
    fake_scale(replicas, replicas, "app=web");
    fake_synced(fake_watch(KUBE_POD, "ml"));
}

#endif
