/* For the tests of workload/: nodes, devices, holders and pods written down by a test, on two clocks that move
 * together. What the hub asks of agents is answered by a table of readings by field. */
#ifndef TEST_WORKLOAD_WORLD_H
#define TEST_WORKLOAD_WORLD_H

#include "workload/workload.h"

#include "../trigger/metadata.h"

#include <stdio.h>

enum {
    WORLD_NODES = 4,
    WORLD_DEVICES = 8,
    WORLD_HOLDERS = 32,
    WORLD_PODS = 32,
    WORLD_WANTS = 8,
    WORLD_PAGES = 16,
    WORLD_ARENA_BYTES = 1 << 20,
};
static const double world_api_s = 1000000; /* the API's clock at now_ns 0 */

struct world_node {
    struct fleet_node node;
    char name[16];
    struct fleet_device devices[WORLD_DEVICES];
    char uuids[WORLD_DEVICES][32];
    struct fleet_holder holders[WORLD_HOLDERS];
    struct fleet_reading of_devices[WORLD_DEVICES][WORLD_WANTS], of_holders[WORLD_HOLDERS][WORLD_WANTS];
    struct snapshot_extremes minutes[WORLD_HOLDERS][SNAPSHOT_MINUTES];
    int64_t limits[WORLD_WANTS];
};

/* A metrics page of a server, as the hub's fetches know it. */
struct world_page {
    char url[64];
    struct signals_reader *reader;
    struct signals_history *history;
    struct signals_feed feed;
    char error[128];
};

struct world {
    int64_t now_ns;
    bool has_pages; /* the fleet fetches pages: those below, each found by the address of its pod */
    struct world_page pages[WORLD_PAGES];
    size_t n_pages;
    bool is_new;          /* the hub has just started: a page has no past */
    const char *page_why; /* why a page is not asked for; NULL */
    uint16_t last_port;   /* of the pod that was asked for last: its first port, and the annotated path */
    char last_path[32];
    struct world_node nodes[WORLD_NODES];
    const struct fleet_node *list[WORLD_NODES];
    size_t n_nodes;
    struct fleet_want wants[WORLD_WANTS];
    size_t n_wants, wants_max;
    struct workload_pod *pods[WORLD_PODS];
    char names[WORLD_PODS][24];
    struct workload_facts facts;
    struct trigger *trigger;
    struct workload_memory *memory;
    struct arena arena;
    struct workload_answer answer;
};

static inline const struct fleet_node *world_find_node(void *context, const char *name)
{
    struct world *w = context;
    for (size_t i = 0; i < w->n_nodes; i++)
        if (strcmp(w->nodes[i].name, name) == 0)
            return &w->nodes[i].node;
    return NULL;
}

static inline const struct fleet_node *const *world_nodes(void *context, size_t *ret_n)
{
    struct world *w = context;
    *ret_n = w->n_nodes;
    return w->list;
}

static inline int world_want(void *context, const struct fleet_want *want)
{
    struct world *w = context;
    for (size_t i = 0; i < w->n_wants; i++)
        if (memcmp(&w->wants[i], want, sizeof(*want)) == 0)
            return (int)i;
    if (w->n_wants == w->wants_max)
        return -1;
    w->wants[w->n_wants] = *want;
    return (int)w->n_wants++;
}

static inline struct world_page *world_url(struct world *w, const char *url)
{
    for (size_t i = 0; i < w->n_pages; i++)
        if (strcmp(w->pages[i].url, url) == 0)
            return &w->pages[i];
    assert_true(w->n_pages < WORLD_PAGES);
    struct world_page *p = &w->pages[w->n_pages++];
    (void)str_copy(p->url, sizeof(p->url), str_of(url));
    p->history = signals_history_new();
    p->feed =
        (struct signals_feed){.url = p->url, .history = p->history, .error = p->error, .interval_ns = 5 * NS_PER_S};
    return p;
}

static inline const struct signals_feed *world_find_page(void *context, const struct workload_place *place,
                                                         const struct trigger *t, const char **ret_why)
{
    struct world *w = context;
    char url[64];
    (void)t;
    (void)snprintf(url, sizeof(url), "http://%s:8000/metrics", place->ip);
    w->last_port = place->n_ports ? place->ports[0].number : 0;
    (void)str_copy(w->last_path, sizeof(w->last_path), str_of(place->annotated_path));
    *ret_why = w->page_why;
    return w->page_why ? NULL : &world_url(w, url)->feed;
}

static inline const struct signals_feed *world_find_endpoint(void *context, const char *url, const char *ns,
                                                             const char *metric, const struct trigger *t,
                                                             const char **ret_why)
{
    struct world *w = context;
    (void)ns;
    (void)metric;
    (void)t;
    *ret_why = w->page_why;
    return w->page_why ? NULL : &world_url(w, url)->feed;
}

static inline struct workload_fleet world_fleet(struct world *w)
{
    return (struct workload_fleet){.find_node = world_find_node,
                                   .nodes = world_nodes,
                                   .want = world_want,
                                   .page = w->has_pages ? world_find_page : NULL,
                                   .endpoint = w->has_pages ? world_find_endpoint : NULL,
                                   .context = w};
}

static inline void world_init(struct world *w, struct metadata m)
{
    memset(w, 0, sizeof(*w));
    w->now_ns = 10000 * NS_PER_S;
    w->wants_max = WORLD_WANTS;
    w->trigger = parse_with(&hub_settings, m);
    w->memory = workload_memory_new(w->trigger);
    arena_init(&w->arena, WORLD_ARENA_BYTES);
    w->facts = (struct workload_facts){.ns = "ml",
                                       .name = "llama",
                                       .is_api_synced = true,
                                       .is_known = true,
                                       .target_kind = "Deployment",
                                       .target_name = "llama",
                                       .is_scale_known = true,
                                       .pods = w->pods,
                                       .hpa_state = WORKLOAD_HPA_NOT_PERMITTED,
                                       .default_tolerance = 0.1};
}
#define WORLD_INIT(w, ...) world_init(&(w), METADATA(__VA_ARGS__))

static inline void world_fini(struct world *w)
{
    for (size_t i = 0; i < w->facts.n_pods; i++)
        workload_pod_free(w->pods[i]);
    for (size_t i = 0; i < w->n_pages; i++) {
        signals_reader_free(w->pages[i].reader);
        signals_history_free(w->pages[i].history);
    }
    workload_memory_free(w->memory);
    trigger_unref(w->trigger);
    arena_fini(&w->arena);
}
#define WORLD __attribute__((cleanup(world_fini))) struct world

static inline double world_api_now(const struct world *w)
{
    return world_api_s + (double)w->now_ns / (double)NS_PER_S;
}

/* ---- nodes ---- */

static inline struct world_node *world_node(struct world *w, const char *name)
{
    for (size_t i = 0; i < w->n_nodes; i++)
        if (strcmp(w->nodes[i].name, name) == 0)
            return &w->nodes[i];
    assert_true(w->n_nodes < WORLD_NODES);
    struct world_node *n = &w->nodes[w->n_nodes];
    w->list[w->n_nodes++] = &n->node;
    (void)str_copy(n->name, sizeof(n->name), str_of(name));
    for (size_t i = 0; i < WORLD_WANTS; i++)
        n->limits[i] = 5 * NS_PER_S;
    n->node = (struct fleet_node){.name = n->name,
                                  .address = "10.0.0.1:6000",
                                  .version = "1.0.0",
                                  .state = FLEET_NODE_UP,
                                  .is_synced = true,
                                  .heard_ns = w->now_ns,
                                  .taken_ns = w->now_ns,
                                  .period_ns = NS_PER_S,
                                  .driver = "ok",
                                  .driver_text = "",
                                  .driver_version = "550",
                                  .owners = "ok",
                                  .owners_text = "",
                                  .sight = "ok",
                                  .sight_text = "",
                                  .n_wants = WORLD_WANTS,
                                  .age_limits_ns = n->limits,
                                  .devices = n->devices,
                                  .holders = n->holders};
    return n;
}

static inline struct fleet_device *world_device(struct world *w, const char *node, enum snapshot_kind kind, int index)
{
    struct world_node *n = world_node(w, node);
    size_t i = n->node.n_devices++;
    assert_true(i < WORLD_DEVICES);
    (void)snprintf(n->uuids[i], sizeof(n->uuids[i]), "%s-%s-%zu", kind == SNAPSHOT_MIG ? "MIG" : "GPU", node, i);
    n->devices[i] = (struct fleet_device){.id = (uint32_t)i + 1,
                                          .kind = kind,
                                          .index = index,
                                          .gpu_instance = -1,
                                          .uuid = n->uuids[i],
                                          .parent_uuid = "",
                                          .product = "NVIDIA H100 80GB HBM3",
                                          .mig_profile = "",
                                          .lost_reason = "",
                                          .memory_total = UINT64_C(80) << 30,
                                          .readings = n->of_devices[i]};
    return &n->devices[i];
}

static inline struct fleet_device *world_gpu(struct world *w, const char *node)
{
    return world_device(w, node, SNAPSHOT_GPU, (int)world_node(w, node)->node.n_devices);
}

/* In order of namespace and pod, as a fleet keeps them. Pointers to holders are not valid after the next one. */
static inline struct fleet_holder *world_hold(struct world *w, const char *node, const char *ns, const char *pod,
                                              const struct fleet_device *device)
{
    struct world_node *n = world_node(w, node);
    size_t at = 0;
    while (at < n->node.n_holders && (strcmp(n->holders[at].ns, ns) < 0 ||
                                      (strcmp(n->holders[at].ns, ns) == 0 && strcmp(n->holders[at].pod, pod) <= 0)))
        at++;
    assert_true(n->node.n_holders < WORLD_HOLDERS);
    memmove(&n->holders[at + 1], &n->holders[at], (n->node.n_holders - at) * sizeof(n->holders[0]));
    uint32_t id = (uint32_t)++n->node.n_holders;
    n->holders[at] = (struct fleet_holder){.id = id,
                                           .device = device,
                                           .ns = ns,
                                           .pod = pod,
                                           .pod_uid = "",
                                           .is_listed = true,
                                           .shares = 1,
                                           .since_ns = w->now_ns,
                                           .minutes = n->minutes[id - 1]};
    return &n->holders[at];
}

/* ---- readings: of a field under all wants that ask for it ---- */

static inline void world_set(struct world *w, struct fleet_reading *readings, enum snapshot_field field, double mean,
                             double peak)
{
    for (size_t i = 0; i < w->n_wants; i++)
        if (w->wants[i].field == field) {
            struct fleet_reading *r = &readings[i];
            double passed_s = r->taken_ns ? (double)(w->now_ns - r->taken_ns) / (double)NS_PER_S : 1;
            *r = (struct fleet_reading){.status = FLEET_OK,
                                        .mean = mean,
                                        .peak = peak,
                                        .integral = r->integral + mean * passed_s,
                                        .valid_s = r->valid_s + passed_s,
                                        .taken_ns = w->now_ns};
        }
}

/* What the trigger wants is known to the agents only once it has asked. */
static inline void world_ask_wants(struct world *w)
{
    struct workload_fleet fleet = world_fleet(w);
    workload_memory_look(w->memory, NULL, &fleet, w->now_ns);
}

static inline struct fleet_reading *world_readings(struct world *w, const struct fleet_device *device)
{
    for (size_t i = 0; i < w->n_nodes; i++)
        for (size_t k = 0; k < w->nodes[i].node.n_devices; k++)
            if (&w->nodes[i].devices[k] == device)
                return w->nodes[i].of_devices[k];
    return NULL;
}

static inline void world_read(struct world *w, const struct fleet_device *device, enum snapshot_field field,
                              double value)
{
    world_ask_wants(w);
    world_set(w, world_readings(w, device), field, value, value);
}

static inline void world_status(struct world *w, const struct fleet_device *device, enum fleet_status status)
{
    world_ask_wants(w);
    for (size_t i = 0; i < WORLD_WANTS; i++)
        world_readings(w, device)[i].status = status;
}

/* Readings of a holder's own. */
static inline void world_read_holder(struct world *w, const char *node, const char *pod, enum snapshot_field field,
                                     double value)
{
    world_ask_wants(w);
    struct world_node *n = world_node(w, node);
    for (size_t i = 0; i < n->node.n_holders; i++) {
        struct fleet_holder *h = &n->holders[i];
        if (strcmp(h->pod, pod) != 0)
            continue;
        h->readings = n->of_holders[h->id - 1];
        world_set(w, n->of_holders[h->id - 1], field, value, value);
    }
}

/* ---- pods ---- */

/* Running and Ready for an hour, with a GPU. */
static inline struct kube_pod world_kube_pod(const struct world *w, const char *name, const char *node)
{
    double now_s = world_api_now(w);
    return (struct kube_pod){
        .meta = {.ns = "ml", .name = name, .uid = name, .resource_version = "1", .created_s = now_s - 7200},
        .node = node,
        .ip = "",
        .phase = KUBE_RUNNING,
        .has_condition = true,
        .is_ready = true,
        .condition_s = now_s - 3600,
        .started_s = now_s - 7000,
        .requests_gpu = true,
        .group = -1};
}

/* Pods are to be added in order of name. */
static inline struct workload_pod *world_add(struct world *w, const struct kube_pod *pod)
{
    assert_true(w->facts.n_pods < WORLD_PODS);
    w->pods[w->facts.n_pods] = workload_pod_new(pod, w->now_ns);
    w->facts.spec = w->facts.status = (int64_t)w->facts.n_pods + 1;
    return w->pods[w->facts.n_pods++];
}

static inline struct workload_pod *world_pod(struct world *w, const char *name, const char *node)
{
    struct kube_pod pod = world_kube_pod(w, name, node);
    return world_add(w, &pod);
}

/* A pod with a GPU of its own at this utilisation. */
static inline struct fleet_device *world_busy(struct world *w, const char *name, const char *node, double utilization)
{
    (void)world_pod(w, name, node);
    struct fleet_device *d = world_gpu(w, node);
    (void)world_hold(w, node, "ml", name, d);
    world_read(w, d, SNAPSHOT_UTILIZATION, utilization);
    return d;
}

static inline void world_update(struct world *w, struct workload_pod *pod, const struct kube_pod *kube)
{
    struct workload_fleet fleet = world_fleet(w);
    workload_pod_update(pod, kube, &fleet, w->now_ns);
}

/* ---- questions ---- */

static inline void world_wait(struct world *w, double seconds)
{
    w->now_ns += (int64_t)(seconds * 1e9);
}

static inline void world_look(struct world *w)
{
    struct workload_fleet fleet = world_fleet(w);
    w->facts.api_now_s = world_api_now(w);
    workload_memory_look(w->memory, &w->facts, &fleet, w->now_ns);
}

static inline const struct workload_answer *world_evaluate(struct world *w)
{
    struct workload_fleet fleet = world_fleet(w);
    w->facts.api_now_s = world_api_now(w);
    arena_fini(&w->arena);
    arena_init(&w->arena, WORLD_ARENA_BYTES);
    workload_evaluate(w->memory, &w->facts, &fleet, w->now_ns, &w->arena, &w->answer);
    return &w->answer;
}

static inline double value_at(const struct workload_answer *a, const char *file, int line)
{
    if (a->value_error.class != ERR_NONE) {
        print_error("no value: %s: %s\n", err_class_name(a->value_error.class), a->value_error.text);
        _fail(file, line);
    }
    return a->value;
}
#define VALUE(w) value_at(world_evaluate(&(w)), __FILE__, __LINE__)

static inline enum scaling_pod_state state_of(const struct workload_answer *a, size_t pod)
{
    assert_non_null(a->inputs[pod].replica);
    return a->inputs[pod].replica->state;
}

#define assert_refused(w, wanted_class, part)                                                                          \
    do {                                                                                                               \
        const struct workload_answer *a_ = world_evaluate(&(w));                                                       \
        assert_int_equal(a_->value_error.class, (wanted_class));                                                       \
        assert_contains(a_->value_error.text, (part));                                                                 \
    } while (0)

#endif
