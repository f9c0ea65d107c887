/* The table of methods with their metrics, and the sweep over deadlines. It does not touch a connection's bytes. */
#include "rpc/server.h"

#include <assert.h>
#include <string.h>

static const double seconds_bounds[] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                        0.05,   0.1,     0.25,   0.5,   1,      2.5,   5,    10};

/* The usual names of gRPC's Prometheus middleware: dashboards for them exist. */
#define METHOD_LABELS "grpc_service", "grpc_method", "grpc_type"
static const struct metric_desc desc_started = {.name = "grpc_server_started",
                                                .help = "RPCs started on the server.",
                                                .kind = METRIC_COUNTER,
                                                .labels = {METHOD_LABELS}};
static const struct metric_desc desc_handled = {.name = "grpc_server_handled",
                                                .help = "RPCs completed on the server, by status code.",
                                                .kind = METRIC_COUNTER,
                                                .labels = {METHOD_LABELS, "grpc_code"},
                                                .max_series = 512};
static const struct metric_desc desc_received = {.name = "grpc_server_msg_received",
                                                 .help = "RPC messages received on the server.",
                                                 .kind = METRIC_COUNTER,
                                                 .labels = {METHOD_LABELS}};
static const struct metric_desc desc_sent = {.name = "grpc_server_msg_sent",
                                             .help = "RPC messages sent by the server.",
                                             .kind = METRIC_COUNTER,
                                             .labels = {METHOD_LABELS}};
static const struct metric_desc desc_seconds = {
    .name = "grpc_server_handling_seconds",
    .help = "Time from a complete header block to the status, or to the end of a stream.",
    .unit = "seconds",
    .kind = METRIC_HISTOGRAM,
    .labels = {METHOD_LABELS},
    .bounds = seconds_bounds,
    .n_bounds = ARRAY_LEN(seconds_bounds)};
static const struct metric_desc desc_open = {
    .name = "grpc_server_open_calls", .help = "RPCs open now.", .kind = METRIC_GAUGE, .labels = {METHOD_LABELS}};

static const char *type_label(const struct rpc_method *m)
{
    if (!m)
        return "unary";
    return m->is_client_streaming ? (m->is_server_streaming ? "bidi_stream" : "client_stream")
                                  : (m->is_server_streaming ? "server_stream" : "unary");
}

static void make_series(struct rpc_server *server, struct rpc_entry *entry)
{
    const char *const labels[] = {entry->service, entry->name, type_label(entry->method)};
    entry->started = metric_series(server->families.started, labels);
    entry->received = metric_series(server->families.received, labels);
    entry->sent = metric_series(server->families.sent, labels);
    entry->seconds = metric_series(server->families.seconds, labels);
    entry->open = metric_series(server->families.open, labels);
}

void rpc_entry_count_handled(struct rpc_server *server, struct rpc_entry *entry, enum err_class status)
{
    if (!entry->handled[status]) {
        const char *const labels[] = {entry->service, entry->name, type_label(entry->method), rpc_code_label(status)};
        entry->handled[status] = metric_series(server->families.handled, labels);
    }
    metric_add(entry->handled[status], 1);
}

static void fill_entry(struct rpc_server *server, struct rpc_entry *entry, const struct rpc_method *m)
{
    struct str rest = str_of(m->path + 1);
    assert(m->path[0] == '/' && strchr(m->path + 1, '/'));
    struct str service = str_cut(&rest, '/');
    *entry = (struct rpc_entry){.method = m, .path_len = strlen(m->path)};
    entry->service = mem_strndup(service.ptr, service.len);
    entry->name = mem_strndup(rest.ptr, rest.len);
    make_series(server, entry);
}

void rpc_server_add(struct rpc_server *server, const struct rpc_method *methods, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct rpc_entry *entry = mem_new(struct rpc_entry);
        fill_entry(server, entry, &methods[i]);
        vec_push(&server->entries, entry);
    }
}

struct rpc_entry *rpc_server_find(struct rpc_server *server, struct str path)
{
    for (size_t i = 0; i < server->entries.len; i++) {
        struct rpc_entry *entry = server->entries.items[i];
        if (entry->path_len == path.len && memcmp(entry->method->path, path.ptr, path.len) == 0)
            return entry;
    }
    return &server->unknown;
}

void rpc_server_core_init(struct rpc_server *server, const struct rpc_server_config *config)
{
    *server = (struct rpc_server){.loop = config->loop, .gets = config->gets, .clock_ns = time_mono_ns};
    rpc_list_init(&server->sessions);
    rpc_list_init(&server->timed);
    server->callbacks = rpc_session_callbacks_new();
    server->families.started = metric_register(config->metrics, &desc_started);
    server->families.handled = metric_register(config->metrics, &desc_handled);
    server->families.received = metric_register(config->metrics, &desc_received);
    server->families.sent = metric_register(config->metrics, &desc_sent);
    server->families.seconds = metric_register(config->metrics, &desc_seconds);
    server->families.open = metric_register(config->metrics, &desc_open);
    server->unknown.service = mem_strdup("unknown");
    server->unknown.name = mem_strdup("unknown");
    make_series(server, &server->unknown);
}

void rpc_server_core_fini(struct rpc_server *server)
{
    assert(rpc_list_is_empty(&server->sessions));
    while (server->free_calls) {
        struct rpc_call *call = server->free_calls;
        server->free_calls = call->next_free;
        rpc_reader_fini(&call->reader);
        buf_fini(&call->out);
        free(call);
    }
    for (size_t i = 0; i < server->entries.len; i++) {
        free(server->entries.items[i]->service);
        free(server->entries.items[i]->name);
        free(server->entries.items[i]);
    }
    vec_fini(&server->entries);
    free(server->unknown.service);
    free(server->unknown.name);
    nghttp2_session_callbacks_del(server->callbacks);
}

struct rpc_server *rpc_server_new(const struct rpc_server_config *config)
{
    struct rpc_server *server = mem_new(struct rpc_server);
    rpc_server_core_init(server, config);
    rpc_server_net_init(server);
    return server;
}

void rpc_server_free(struct rpc_server *server)
{
    if (!server)
        return;
    rpc_server_net_fini(server);
    rpc_server_core_fini(server);
    free(server);
}

const struct net_protocol *rpc_server_protocol(struct rpc_server *server)
{
    return &server->protocol;
}

int64_t rpc_server_sweep(struct rpc_server *server, int64_t now_ns)
{
    int64_t next_ns = INT64_MAX;
    struct rpc_link *link = server->timed.next;
    while (link != &server->timed) {
        struct rpc_call *call = CONTAINER_OF(link, struct rpc_call, timed_link);
        link = link->next; /* expiring unlinks this call only: handlers run later */
        int64_t due_ns = rpc_call_due_ns(call);
        if (due_ns <= now_ns)
            rpc_call_expire(call, now_ns);
        else if (due_ns < next_ns)
            next_ns = due_ns;
    }
    return next_ns;
}
