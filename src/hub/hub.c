/* The hub: start, run, reload, stop. */
#include "hub/hub.h"

#include "hub/private.h"

#include <math.h>
#include <string.h>

enum { TRIGGERS_MAX = 20000, LOGGED_MAX = 20000 };

static const struct metric_desc decisions_desc = {
    .name = "keda_gpu_scaler_decisions",
    .help = "Answers to GetMetrics by the rule that they came from.",
    .kind = METRIC_COUNTER,
    .labels = {"reason"},
};

/* ---- how other modules see the fleet ---- */

static const struct fleet_node *find_node(void *context, const char *name)
{
    return fleet_find_node(((struct hub *)context)->fleet, name);
}

static const struct fleet_node *const *all_nodes(void *context, size_t *ret_n)
{
    return fleet_nodes(((struct hub *)context)->fleet, ret_n);
}

static int want(void *context, const struct fleet_want *w)
{
    struct hub *h = context;
    int place = fleet_want(h->fleet, w);
    if (place >= (int)h->n_wants)
        h->n_wants = (size_t)place + 1;
    return place;
}

static const struct snapshot *no_snapshot(void *context)
{
    (void)context;
    return NULL;
}

static int64_t current_ns(void *context)
{
    return net_now_ns(((struct hub *)context)->loop);
}

/* A stream that was opened before a trigger was known has no readings for it: its first answer would be a hold where
 * another hub has a value. */
static bool has_answers(const struct hub *h)
{
    size_t n;
    const struct fleet_node *const *nodes = fleet_nodes(h->fleet, &n);
    for (size_t i = 0; i < n; i++)
        if (nodes[i]->state == FLEET_NODE_UP && nodes[i]->n_wants < h->n_wants)
            return false;
    return true;
}

bool hub_is_settled(struct hub *h)
{
    if (h->is_settled)
        return true;
    bool is_late = net_now_ns(h->loop) - h->start_ns >= HUB_START_NS;
    bool is_heard = hub_agents_are_found(h->agents) && fleet_is_synced(h->fleet) && has_answers(h);
    h->is_settled = is_late || (cluster_is_synced(h->cluster) && is_heard);
    if (h->is_settled)
        log_info("hub", "ready", LOG_BOOL("api", cluster_is_synced(h->cluster)),
                 LOG_BOOL("agents", fleet_is_synced(h->fleet)), LOG_INT("workloads", cluster_len(h->cluster)));
    return h->is_settled;
}

const char *hub_waits_for(const struct hub *h)
{
    return cluster_is_synced(h->cluster) ? "not all agents have been heard yet"
                                         : "the Kubernetes API has not been read yet";
}

/* ---- log ---- */

/* Once a change of state: updates come each second. */
static void on_node(void *context, const struct fleet_node *node)
{
    static char marks[FLEET_NODE_REFUSED + 1]; /* a place a state */
    struct hub *h = context;
    size_t len = strlen(node->address);
    if (map_get(h->logged_states, node->address, len) == &marks[node->state])
        return;
    map_put(h->logged_states, node->address, len, &marks[node->state]);
    if (node->state == FLEET_NODE_UP && *node->expected && strcmp(node->name, node->expected) != 0)
        log_warn("fleet", "agent names another node than its EndpointSlice: its pods are not found; set its NODE_NAME",
                 LOG_STR("node", node->name), LOG_STR("expected", node->expected), LOG_STR("address", node->address));
    if (node->state == FLEET_NODE_UP)
        log_info("fleet", "agent is up", LOG_STR("node", node->name), LOG_STR("address", node->address),
                 LOG_STR("version", node->version), LOG_INT("gpus", node->n_devices));
    else
        log_warn("fleet", "agent is not up", LOG_STR("node", node->name), LOG_STR("address", node->address),
                 LOG_STR("state", fleet_node_state_name(node->state)), LOG_STR("reason", node->text));
}

static void on_told(void *context, const char *what, const struct err *error)
{
    (void)context;
    if (error)
        log_warn("kube", "cannot be read; keeps trying", LOG_STR("what", what), LOG_STR("error", error->text));
    else
        log_info("kube", "can be read again", LOG_STR("what", what));
}

static void observe(void *context, const struct service_observation *o)
{
    (void)context;
    if (!log_is_on(LOG_DEBUG) || o->is_routine)
        return;
    const struct service_question *q = o->question;
    const struct service_answer *a = o->answer;
    bool has_value = (q->asked & TRIGGER_ASK_VALUE) && a->value_error.class == ERR_NONE;
    const char *active = !(q->asked & TRIGGER_ASK_ACTIVITY) || a->active_error.class != ERR_NONE ? "unknown"
                         : a->is_active                                                          ? "true"
                                                                                                 : "false";
    log_debug("trigger", "evaluated", LOG_STR("method", q->method), LOG_STR("namespace", q->ns),
              LOG_STR("name", q->name), LOG_STR("peer", q->peer), LOG_STR("metric", q->trigger->metric_name),
              LOG_DBL("value", has_value ? a->value : (double)NAN), LOG_DBL("target", q->trigger->target),
              LOG_STR("active", active), LOG_STR("error", a->value_error.text));
}

static void log_refusal(void *context, const struct service_refusal *r)
{
    struct hub *h = context;
    daemon_log_refusal(h->daemon, r->ns, r->name, r->peer, r->error);
}

/* ---- what the daemon asks ---- */

static void on_drain(void *context)
{
    service_drain(((struct hub *)context)->service);
}

static void on_applied(void *context, const struct daemon_reloadable *now)
{
    struct hub *h = context;
    hub_entries_free(h->entries);
    h->entries = hub_entries_new(now);
    if (h->cluster)
        cluster_reload(h->cluster);
    if (h->service)
        service_reload(h->service);
}

static void on_hangup(void *context)
{
    struct hub *h = context;
    if (h->agent_tls)
        net_tls_reload(h->agent_tls);
    engine_reload(daemon_engines_engine(h->engines));
}

/* True once, true for ever: a hub that leaves the Service for want of agents takes the spec and the fallback away. */
static size_t checks(void *context, struct daemon_check *out, size_t max)
{
    struct hub *h = context;
    (void)max;
    out[0] = (struct daemon_check){.name = "heard", .is_ok = hub_is_settled(h)};
    (void)str_copy(out[0].reason, sizeof(out[0].reason), str_of(hub_waits_for(h)));
    return 1;
}

static void verbose(void *context, struct buf *out)
{
    struct hub *h = context;
    size_t n, up = 0;
    const struct fleet_node *const *nodes = fleet_nodes(h->fleet, &n);
    for (size_t i = 0; i < n; i++)
        up += nodes[i]->state == FLEET_NODE_UP;
    (void)buf_printf(out, "[%c]agents %zu of %zu up (information only)\n", up == n ? '+' : '-', up, n);
    cluster_write_state(h->cluster, out);
    engine_write_state(daemon_engines_engine(h->engines), out);
}

static void want_shown(struct hub *h)
{
    if (h->config->max_devices_shown == 0)
        return;
    hub_want_shown(h);
    hub_entries_want(h->entries, &h->nodes, net_now_ns(h->loop));
}

static void on_second(void *context)
{
    struct hub *h = context;
    (void)hub_is_settled(h);
    daemon_engines_look(h->engines);
    want_shown(h);
    service_tick(h->service);
}

/* ---- start and stop ---- */

static void build_service(struct hub *h)
{
    h->service = service_new(&(struct service_config){
        .metrics = h->metrics,
        .server = daemon_rpc(h->daemon),
        .triggers = daemon_triggers(h->daemon),
        .source = {.current = no_snapshot, .now_ns = current_ns, .context = h},
        .evaluator = hub_evaluator(h),
        .has_reflection = h->config->has_reflection,
        .observe = observe,
        .refuse = log_refusal,
        .observe_context = h,
    });
    h->exporter = exporter_new(&(struct exporter_config){
        .metrics = h->metrics,
        .node_name = h->config->daemon.node_name,
        .version = h->config->daemon.version,
        .start_wall_ns = time_wall_ns(),
    });
    h->decisions = metric_register(h->metrics, &decisions_desc);
}

static int start_kube(struct hub *h, struct err *e)
{
    h->kube =
        kube_new(&(struct kube_config){.loop = h->loop, .metrics = h->metrics, .kubeconfig = h->config->kubeconfig}, e);
    if (!h->kube)
        return -1;
    const struct hub_config *c = h->config;
    log_info("kube", "reads", LOG_STR("server", kube_server(h->kube)), LOG_STR("namespace", kube_namespace(h->kube)));
    h->cluster = cluster_new(&(struct cluster_config){
        .loop = h->loop,
        .metrics = h->metrics,
        .kube = h->kube,
        .triggers = daemon_triggers(h->daemon),
        .fleet = &h->nodes,
        .service = c->service,
        .service_ns = c->service_ns ? c->service_ns : kube_namespace(h->kube),
        .hpa_tolerance = c->hpa_tolerance,
        .simulated_gpus_per_pod = c->simulated_gpus_per_pod,
        .told = on_told,
        .context = h,
    });
    return 0;
}

static int start_fleet(struct hub *h, struct err *e)
{
    const struct hub_config *c = h->config;
    if (c->has_agent_tls && !(h->agent_tls = net_tls_client_new(h->loop, &c->agent_tls, e)))
        return -1;
    h->fleet = fleet_new(&(struct fleet_config){.loop = h->loop,
                                                .metrics = h->metrics,
                                                .tls = h->agent_tls,
                                                .server_name = c->agent_server_name,
                                                .hub = c->name,
                                                .changed = on_node,
                                                .context = h});
    h->nodes = (struct workload_fleet){.find_node = find_node, .nodes = all_nodes, .want = want, .context = h};
    hub_add_engines(h);
    want_shown(h); /* before streams are opened */
    return 0;
}

/* Answers "not yet" from the first moment on: GetMetricSpec needs neither API nor agents. */
static int start(struct hub *h, struct err *e)
{
    struct daemon_config daemon = h->config->daemon;
    daemon.mode = "hub";
    h->daemon =
        daemon_new(&daemon,
                   &(struct daemon_program){.draining = on_drain,
                                            .hangup = on_hangup,
                                            .applied = on_applied,
                                            .default_scope = TRIGGER_WORKLOAD,
                                            .triggers_max = TRIGGERS_MAX,
                                            .checks = checks,
                                            .verbose = verbose,
                                            .pages = "/metrics\n/api/v1/workloads\n/api/v1/nodes\n/api/v1/gpus\n",
                                            .services = "externalscaler.ExternalScaler, "
                                                        "grpc.health.v1.Health, kedagpuscaler.v1.Node",
                                            .context = h},
                   h->metrics, e);
    if (!h->daemon)
        return -1;
    h->loop = daemon_loop(h->daemon);
    h->start_ns = net_now_ns(h->loop);
    h->logged_states = map_new(LOGGED_MAX, NULL);
    build_service(h);
    h->engines = daemon_engines_new(h->daemon, &h->config->engine, h->metrics, e);
    if (!h->engines || start_fleet(h, e) < 0 || start_kube(h, e) < 0 || !(h->agents = hub_agents_new(h, e)))
        return -1;
    hub_add_pages(h);
    h->second = net_timer_new(h->loop, on_second, h);
    net_timer_start(h->second, NS_PER_S, NS_PER_S);
    return daemon_listen(h->daemon, e);
}

static void stop(struct hub *h)
{
    net_timer_free(h->second);
    if (h->daemon)
        daemon_close(h->daemon);
    hub_agents_free(h->agents);
    cluster_free(h->cluster);
    daemon_engines_free(h->engines);
    kube_free(h->kube);
    fleet_free(h->fleet);
    if (h->logged_states)
        map_free(h->logged_states);
    workload_memory_free(h->loose);
    hub_entries_free(h->entries);
    service_free(h->service);
    exporter_free(h->exporter);
    net_tls_free(h->agent_tls);
    daemon_free(h->daemon);
    metrics_free(h->metrics);
}

int hub_run(const struct hub_config *config)
{
    struct hub h = {.config = config, .metrics = metrics_new()};
    struct err e;
    int exit_code;
    log_configure(config->daemon.reloadable.log_level, config->daemon.reloadable.log_format);
    log_info("hub", "starting", LOG_STR("version", config->daemon.version), LOG_STR("name", config->name));
    if (start(&h, &e) < 0) {
        log_error("hub", "cannot start", LOG_STR("error", e.text));
        exit_code = e.class == ERR_INVALID_ARGUMENT ? 2 : 1;
    } else {
        exit_code = daemon_run(h.daemon);
        log_info("hub", "stopped", LOG_INT("exit_code", exit_code));
    }
    stop(&h);
    return exit_code;
}
