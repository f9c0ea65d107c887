/* What the hub shows: /metrics with the fleet as the agents see it, and the API: /api/v1/workloads, /nodes, /gpus as
 * JSON (docs/explain.md), or as text for people with ?output=text. */
#include "hub/private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ARENA_MAX = 64 << 20 };

static const struct metric_desc utilization_desc = {
    .name = "keda_gpu_scaler_fleet_gpu_utilization_ratio",
    .help = "Share of time in which any kernel ran, as the node's agent last said.",
    .unit = "ratio",
    .kind = METRIC_GAUGE,
    .labels = {"node", "gpu", "uuid", "mig_profile"},
    .max_series = 100000,
};
static const struct metric_desc memory_desc = {
    .name = "keda_gpu_scaler_fleet_gpu_memory_used_bytes",
    .help = "Device memory in use, as the node's agent last said.",
    .unit = "bytes",
    .kind = METRIC_GAUGE,
    .labels = {"node", "gpu", "uuid", "mig_profile"},
    .max_series = 100000,
};

/* ---- helpers ---- */

static bool wants_text(struct str query)
{
    while (query.ptr) {
        struct str part = str_cut(&query, '&');
        if (str_equals(part, "output=text"))
            return true;
    }
    return false;
}

static void begin_json(struct json *j, const struct hub *h, struct net_get_response *response)
{
    response->content_type = "application/json";
    json_init(j, &response->body, 2);
    json_object_begin(j);
    json_kv_string(j, "hub", h->config->name);
}

static void end_json(struct json *j, struct net_get_response *response)
{
    json_object_end(j);
    (void)buf_append_char(&response->body, '\n');
}

static void begin_text(struct net_get_response *response)
{
    response->content_type = "text/plain; charset=utf-8";
}

/* Names and reasons are those of agents and drivers. */
static void end_text(struct net_get_response *response)
{
    buf_make_printable(&response->body, 0);
}

static double seconds_since(const struct hub *h, int64_t then_ns)
{
    return (double)(net_now_ns(h->loop) - then_ns) / (double)NS_PER_S;
}

/* As short as it can be, to a thousandth: targets may be small. */
static void put_exact(struct buf *out, bool is_known, double value, int width)
{
    char text[NUM_TEXT_MAX] = "-";
    if (is_known)
        num_format_milli(text, value);
    (void)buf_printf(out, "%*s", width, text);
}

/* A number of one decimal, or "-". */
static void put_number(struct buf *out, bool is_known, double value, int width)
{
    char text[32] = "-";
    if (is_known)
        (void)snprintf(text, sizeof(text), "%.1f", value);
    (void)buf_printf(out, "%*s", width, text);
}

/* ---- nodes ---- */

static void node_json(struct json *j, const struct hub *h, const struct fleet_node *n)
{
    json_object_begin(j);
    json_kv_string(j, "name", n->name);
    json_kv_string(j, "address", n->address);
    json_kv_string(j, "state", fleet_node_state_name(n->state));
    json_kv_string(j, "reason", n->text);
    json_kv_string(j, "version", n->version);
    json_kv_bool(j, "simulated", n->is_simulated);
    json_kv_maybe(j, "heardSecondsAgo", n->heard_ns != 0, seconds_since(h, n->heard_ns));
    json_kv_maybe(j, "readSecondsAgo", n->taken_ns != 0, seconds_since(h, n->taken_ns));
    json_kv_string(j, "driver", n->driver);
    json_kv_string(j, "driverReason", n->driver_text);
    json_kv_string(j, "driverVersion", n->driver_version);
    json_kv_string(j, "owners", n->owners);
    json_kv_string(j, "ownersReason", n->owners_text);
    json_kv_string(j, "processes", n->sight);
    json_kv_string(j, "processesReason", n->sight_text);
    json_kv_i64(j, "gpus", (int64_t)n->n_devices);
    json_kv_i64(j, "holders", (int64_t)n->n_holders);
    json_object_end(j);
}

static void node_row(struct buf *out, const struct hub *h, const struct fleet_node *n)
{
    const char *reason = *n->text ? n->text : *n->driver_text ? n->driver_text : n->owners_text;
    (void)buf_printf(out, "%-28s %-11s %-9s", *n->name ? n->name : n->address, fleet_node_state_name(n->state),
                     *n->driver ? n->driver : "-");
    put_number(out, n->heard_ns != 0, seconds_since(h, n->heard_ns), 8);
    (void)buf_printf(out, "%6zu %8zu  %s%s\n", n->n_devices, n->n_holders, n->is_simulated ? "simulated  " : "",
                     reason);
}

static void nodes_page(void *context, const struct net_get_request *request, struct net_get_response *response)
{
    struct hub *h = context;
    size_t n;
    const struct fleet_node *const *nodes = fleet_nodes(h->fleet, &n);
    if (wants_text(request->query)) {
        begin_text(response);
        (void)buf_append_str(&response->body,
                             "NODE                         STATE       DRIVER     HEARD s  GPUS  HOLDERS\n");
        for (size_t i = 0; i < n; i++)
            node_row(&response->body, h, nodes[i]);
        end_text(response);
        return;
    }
    struct json j;
    begin_json(&j, h, response);
    json_key(&j, "nodes");
    json_array_begin(&j);
    for (size_t i = 0; i < n; i++)
        node_json(&j, h, nodes[i]);
    json_array_end(&j);
    end_json(&j, response);
}

/* ---- GPUs ---- */

static int want_newest(struct hub *h, enum snapshot_field field)
{
    return h->nodes.want(h->nodes.context, &(struct fleet_want){.field = field});
}

void hub_want_shown(struct hub *h)
{
    (void)want_newest(h, SNAPSHOT_UTILIZATION);
    (void)want_newest(h, SNAPSHOT_MEMORY_USED);
}

double hub_newest(struct hub *h, const struct fleet_node *n, const struct fleet_device *d, enum snapshot_field field)
{
    int want = want_newest(h, field);
    bool is_there = want >= 0 && (size_t)want < n->n_wants;
    if (!is_there || !fleet_reading_is_fresh(n, (size_t)want, &d->readings[want], net_now_ns(h->loop)))
        return (double)NAN;
    return d->readings[want].mean;
}

static void holder_json(struct json *j, const struct fleet_holder *holder)
{
    json_object_begin(j);
    json_kv_string(j, "namespace", holder->ns);
    json_kv_string(j, "pod", holder->pod);
    json_kv_string(j, "uid", holder->pod_uid);
    json_kv_bool(j, "listed", holder->is_listed);
    json_kv_bool(j, "shared", holder->is_shared);
    json_kv_i64(j, "shares", holder->shares);
    json_kv_i64(j, "processes", holder->n_processes);
    json_object_end(j);
}

static void gpu_json(struct json *j, struct hub *h, const struct fleet_node *n, const struct fleet_device *d)
{
    json_object_begin(j);
    json_kv_string(j, "node", n->name);
    json_kv_i64(j, "index", d->index);
    json_kv_string(j, "uuid", d->uuid);
    json_kv_string(j, "product", d->product);
    json_kv_string(j, "migProfile", d->mig_profile);
    json_kv_bool(j, "simulated", n->is_simulated);
    json_kv_string(j, "lost", d->lost_reason);
    json_kv_double(j, "utilizationPercent", hub_newest(h, n, d, SNAPSHOT_UTILIZATION));
    json_kv_double(j, "memoryUsedBytes", hub_newest(h, n, d, SNAPSHOT_MEMORY_USED));
    json_kv_maybe(j, "memoryTotalBytes", d->memory_total != 0, (double)d->memory_total);
    json_key(j, "holders");
    json_array_begin(j);
    for (size_t i = 0; i < n->n_holders; i++)
        if (n->holders[i].device == d)
            holder_json(j, &n->holders[i]);
    json_array_end(j);
    json_object_end(j);
}

static void gpu_row(struct buf *out, struct hub *h, const struct fleet_node *n, const struct fleet_device *d)
{
    enum { GIB_SHIFT = 30 };
    double utilization = hub_newest(h, n, d, SNAPSHOT_UTILIZATION), used = hub_newest(h, n, d, SNAPSHOT_MEMORY_USED);
    (void)buf_printf(out, "%-28s %4d  %-22.22s", n->name, d->index, *d->mig_profile ? d->mig_profile : d->product);
    put_number(out, !isnan(utilization), utilization, 7);
    put_number(out, !isnan(used), used / (double)(1ULL << GIB_SHIFT), 9);
    put_number(out, d->memory_total != 0, (double)d->memory_total / (double)(1ULL << GIB_SHIFT), 9);
    (void)buf_append_str(out, "  ");
    bool is_first = true;
    for (size_t i = 0; i < n->n_holders; i++) {
        const struct fleet_holder *holder = &n->holders[i];
        if (holder->device != d || !*holder->pod)
            continue;
        (void)buf_printf(out, "%s%s/%s", is_first ? "" : ", ", holder->ns, holder->pod);
        is_first = false;
    }
    (void)buf_append_str(out, *d->lost_reason ? "  lost\n" : "\n");
}

static void gpus_page(void *context, const struct net_get_request *request, struct net_get_response *response)
{
    struct hub *h = context;
    size_t n;
    const struct fleet_node *const *nodes = fleet_nodes(h->fleet, &n);
    bool is_text = wants_text(request->query);
    struct json j;
    if (is_text) {
        begin_text(response);
        (void)buf_append_str(
            &response->body,
            "NODE                          GPU  MODEL                  UTIL %  USED GiB  OF  GiB  PODS\n");
    } else {
        begin_json(&j, h, response);
        json_key(&j, "gpus");
        json_array_begin(&j);
    }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < nodes[i]->n_devices; k++) {
            if (is_text)
                gpu_row(&response->body, h, nodes[i], &nodes[i]->devices[k]);
            else
                gpu_json(&j, h, nodes[i], &nodes[i]->devices[k]);
        }
    if (is_text) {
        end_text(response);
        return;
    }
    json_array_end(&j);
    end_json(&j, response);
}

/* ---- workloads ---- */

/* A walk over the triggers of workloads, with what they would be answered now. */
struct walk {
    struct hub *hub;
    struct cluster_workload *workload;
    struct buf *text; /* NULL: JSON */
    struct json *json;
    void (*show)(const struct walk *walk, const struct hub_answer *look);
};

static void show_memory(void *context, struct workload_memory *m)
{
    struct walk *walk = context;
    ARENA_AUTO struct arena arena;
    arena_init(&arena, ARENA_MAX);
    const struct hub_answer *look = hub_look(walk->hub, walk->workload, m, &arena);
    if (look)
        walk->show(walk, look);
}

/* Each trigger of the walk's workload. */
static void show_each(struct walk *walk, void (*show)(const struct walk *walk, const struct hub_answer *look))
{
    walk->show = show;
    cluster_each_memory(walk->workload, show_memory, walk);
}

static void trigger_json(const struct walk *walk, const struct hub_answer *look)
{
    const struct workload_answer *a = &look->answer;
    struct json *j = walk->json;
    json_object_begin(j);
    json_kv_string(j, "metric", a->trigger->metric_name);
    json_kv_string(j, "type", trigger_metric_name(a->trigger->metric));
    json_kv_double(j, "target", a->trigger->target);
    json_kv_maybe(j, "value", a->value_error.class == ERR_NONE, a->value);
    json_kv_string(j, "error", a->value_error.text);
    json_key(j, "active");
    if (a->active_error.class == ERR_NONE)
        json_bool(j, a->is_active);
    else
        json_null(j);
    json_object_end(j);
}

static void trigger_row(const struct walk *walk, const struct hub_answer *look)
{
    const struct workload_answer *a = &look->answer;
    char name[600];
    (void)snprintf(name, sizeof(name), "%s/%s", look->facts.ns, look->facts.name);
    (void)buf_printf(walk->text, "%-36s %-28s", name, a->trigger->metric_name);
    put_exact(walk->text, look->facts.is_scale_known, (double)look->facts.spec, 9);
    put_exact(walk->text, a->value_error.class == ERR_NONE, a->value, 10);
    put_exact(walk->text, true, a->trigger->target, 10);
    (void)buf_printf(walk->text, "  %-7s %s\n",
                     a->active_error.class != ERR_NONE ? "unknown"
                     : a->is_active                    ? "yes"
                                                       : "no",
                     a->value_error.text[0] ? a->value_error.text : a->active_error.text);
}

static void refused_row(void *context, const char *error)
{
    struct walk *walk = context;
    char name[600];
    (void)snprintf(name, sizeof(name), "%s/%s", cluster_ns(walk->workload), cluster_name(walk->workload));
    (void)buf_printf(walk->text, "%-36s %-28s%9s%10s%10s  %-7s %s\n", name, "(refused)", "-", "-", "-", "unknown",
                     error);
}

static void refused_text(void *context, const char *error)
{
    struct walk *walk = context;
    (void)buf_printf(walk->text, "trigger  refused: %s\n", error);
}

static void refused_string(void *context, const char *error)
{
    struct walk *walk = context;
    json_string(walk->json, error);
}

static void refused_json(struct walk *walk, const struct cluster_workload *w)
{
    json_key(walk->json, "refused");
    json_array_begin(walk->json);
    cluster_each_refusal(w, refused_string, walk);
    json_array_end(walk->json);
}

static void workload_row(void *context, struct cluster_workload *w)
{
    struct walk *walk = context;
    walk->workload = w;
    if (walk->text) {
        show_each(walk, trigger_row);
        cluster_each_refusal(w, refused_row, walk);
        return;
    }
    struct json *j = walk->json;
    ARENA_AUTO struct arena arena;
    arena_init(&arena, ARENA_MAX);
    struct workload_facts facts;
    if (cluster_facts(w, &arena, &facts) < 0)
        return;
    json_object_begin(j);
    json_kv_string(j, "namespace", facts.ns);
    json_kv_string(j, "name", facts.name);
    json_kv_string(j, "kind", facts.is_job ? "ScaledJob" : "ScaledObject");
    json_kv_string(j, "targetKind", facts.target_kind);
    json_kv_string(j, "targetName", facts.target_name);
    json_kv_maybe(j, "specReplicas", facts.is_scale_known, (double)facts.spec);
    json_kv_maybe(j, "statusReplicas", facts.is_scale_known, (double)facts.status);
    json_kv_string(j, "scaleError", facts.scale_error);
    json_kv_i64(j, "pods", (int64_t)facts.n_pods);
    json_key(j, "triggers");
    json_array_begin(j);
    show_each(walk, trigger_json);
    json_array_end(j);
    refused_json(walk, w);
    json_object_end(j);
}

static void workloads_page(void *context, const struct net_get_request *request, struct net_get_response *response)
{
    struct hub *h = context;
    struct json j;
    struct walk walk = {.hub = h, .json = &j};
    if (wants_text(request->query)) {
        begin_text(response);
        walk.text = &response->body;
        (void)buf_append_str(&response->body, "SCALEDOBJECT                         METRIC                        "
                                              "REPLICAS     VALUE    TARGET  ACTIVE  PROBLEM\n");
        cluster_each(h->cluster, workload_row, &walk);
        end_text(response);
        return;
    }
    begin_json(&j, h, response);
    json_key(&j, "workloads");
    json_array_begin(&j);
    cluster_each(h->cluster, workload_row, &walk);
    json_array_end(&j);
    end_json(&j, response);
}

static void explain_json(const struct walk *walk, const struct hub_answer *look)
{
    struct workload_facts facts = look->facts;
    facts.n_scalers = cluster_count_scalers(walk->workload);
    workload_explain_json(&facts, &look->answer, walk->json);
}

static void explain_text(const struct walk *walk, const struct hub_answer *look)
{
    struct workload_facts facts = look->facts;
    facts.n_scalers = cluster_count_scalers(walk->workload);
    workload_explain_text(&facts, &look->answer, walk->text);
}

static void not_found(struct net_get_response *response, const char *text)
{
    response->status = 404;
    begin_text(response);
    (void)buf_append_str(&response->body, text);
}

/* "/api/v1/workloads/<namespace>/<name>" */
static void workload_page(void *context, const struct net_get_request *request, struct net_get_response *response)
{
    struct hub *h = context;
    struct str name = request->path;
    for (int i = 0; i < 4; i++) /* "", "api", "v1", "workloads" */
        (void)str_cut(&name, '/');
    struct str ns = str_cut(&name, '/');
    char ns_text[254], name_text[254];
    if (!name.ptr || !str_copy(ns_text, sizeof(ns_text), ns) || !str_copy(name_text, sizeof(name_text), name)) {
        not_found(response, "ask for /api/v1/workloads/NAMESPACE/NAME of a ScaledObject\n");
        return;
    }
    struct cluster_workload *w = cluster_find(h->cluster, ns_text, name_text);
    if (!w) {
        not_found(response,
                  "no ScaledObject or ScaledJob of this name has a trigger at this hub, or has asked it in the "
                  "last 15 minutes; `keda-gpu-scaler get workloads` (/api/v1/workloads) lists those that have\n");
        return;
    }
    struct json j;
    struct walk walk = {.hub = h, .workload = w, .json = &j};
    if (wants_text(request->query)) {
        begin_text(response);
        walk.text = &response->body;
        show_each(&walk, explain_text);
        cluster_each_refusal(w, refused_text, &walk);
        return;
    }
    begin_json(&j, h, response);
    json_key(&j, "triggers");
    json_array_begin(&j);
    show_each(&walk, explain_json);
    json_array_end(&j);
    refused_json(&walk, w);
    end_json(&j, response);
}

/* ---- /metrics ---- */

static void show_device(struct hub *h, const struct fleet_node *n, const struct fleet_device *d)
{
    char index[16];
    (void)snprintf(index, sizeof(index), "%d", d->index);
    const char *labels[] = {n->name, index, d->uuid, d->mig_profile};
    double utilization = hub_newest(h, n, d, SNAPSHOT_UTILIZATION), used = hub_newest(h, n, d, SNAPSHOT_MEMORY_USED);
    enum { PERCENT = 100 };
    if (!isnan(utilization))
        metric_set(metric_series_new(h->shown_utilization, labels), utilization / PERCENT);
    if (!isnan(used))
        metric_set(metric_series_new(h->shown_memory, labels), used);
}

/* Made anew for each scrape: what is gone is gone. */
static void show_fleet(struct hub *h)
{
    metric_clear(h->shown_utilization);
    metric_clear(h->shown_memory);
    size_t n, shown = 0;
    const struct fleet_node *const *nodes = fleet_nodes(h->fleet, &n);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < nodes[i]->n_devices && shown < h->config->max_devices_shown; k++, shown++)
            show_device(h, nodes[i], &nodes[i]->devices[k]);
}

static void metrics_page(void *context, const struct net_get_request *request, struct net_get_response *response)
{
    struct hub *h = context;
    show_fleet(h);
    struct exporter_view view = {.now_ns = net_now_ns(h->loop), .wall_ns = time_wall_ns()};
    view.entries = hub_entries_evaluate(h->entries, h, h->config->max_devices_shown, &view.n_entries);
    daemon_answer_metrics(h->exporter, &view, request, response);
}

void hub_add_pages(struct hub *h)
{
    static const struct {
        const char *path;
        void (*handler)(void *, const struct net_get_request *, struct net_get_response *);
    } pages[] = {
        {"/metrics", metrics_page},    {"/api/v1/workloads", workloads_page}, {"/api/v1/workloads/", workload_page},
        {"/api/v1/nodes", nodes_page}, {"/api/v1/gpus", gpus_page},
    };
    h->shown_utilization = metric_register(h->metrics, &utilization_desc);
    h->shown_memory = metric_register(h->metrics, &memory_desc);
    for (size_t i = 0; i < ARRAY_LEN(pages); i++)
        net_gets_add(daemon_gets(h->daemon), pages[i].path, pages[i].handler, h);
}
