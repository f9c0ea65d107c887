/* A blocking gRPC client for commands. */
#include "cli/client.h"

#include <string.h>

static int init_tls(struct client *c, const struct option_set *set, struct err *e)
{
    struct net_tls_files files = {.cert = option_text_or_null(set, "tls-cert"),
                                  .key = option_text_or_null(set, "tls-key"),
                                  .ca = option_text_or_null(set, "tls-ca"),
                                  .is_insecure = option_bool(set, "insecure")};
    if (!option_bool(set, "tls") && !files.cert && !files.key && !files.ca && !files.is_insecure)
        return 0;
    c->tls = net_tls_client_new(c->loop, &files, e);
    return c->tls ? 0 : -1;
}

int client_init(struct client *c, const struct option_set *set, const char *address, struct err *e)
{
    *c = (struct client){.metrics = metrics_new(), .timeout_ns = option_duration(set, "timeout")};
    c->loop = net_loop_new(c->metrics, e);
    if (!c->loop || init_tls(c, set, e) < 0)
        return -1;
    struct rpc_client_config config = {
        .loop = c->loop,
        .address = address,
        .tls = c->tls,
        .server_name = option_text_or_null(set, "tls-server-name"),
        .authority = str_has_prefix(str_of(address), "unix:") ? "localhost" : NULL,
    };
    c->rpc = rpc_client_new(&config, e);
    return c->rpc ? 0 : -1;
}

void client_fini(struct client *c)
{
    rpc_client_free(c->rpc);
    net_tls_free(c->tls);
    net_loop_free(c->loop);
    metrics_free(c->metrics);
    *c = (struct client){0};
}

/* One call in the making. */
struct pending {
    struct client *client;
    struct rpc_client_call *call;
    const struct client_stream *stream; /* NULL for a unary call */
    struct buf *response;
    struct err status;
    bool is_done, is_enough;
};

static void on_message(void *context, struct str message)
{
    struct pending *p = context;
    if (!p->stream) {
        (void)buf_append(p->response, message.ptr, message.len);
        return;
    }
    if (!p->is_enough && !p->stream->message(p->stream->context, message)) {
        p->is_enough = true;
        rpc_client_cancel(p->call);
    }
}

static void on_done(void *context, const struct err *status)
{
    struct pending *p = context;
    p->status = *status;
    p->is_done = true;
    net_loop_stop(p->client->loop);
}

static void on_enough(void *context)
{
    struct pending *p = context;
    p->is_enough = true;
    rpc_client_cancel(p->call);
}

static int run(struct pending *p, const char *path, int64_t deadline_ns, const ProtobufCMessage *request, struct err *e)
{
    size_t len = protobuf_c_message_get_packed_size(request);
    MEM_AUTO uint8_t *bytes = (uint8_t *)mem_new_array(len, 1);
    (void)protobuf_c_message_pack(request, bytes);
    struct rpc_client_call_config config = {
        .path = path, .deadline_ns = deadline_ns, .message = on_message, .done = on_done, .context = p};
    p->call = rpc_client_start(p->client->rpc, &config, bytes, len);
    struct net_timer *enough = net_timer_new(p->client->loop, on_enough, p);
    if (p->stream && p->stream->max_ns)
        net_timer_start(enough, p->stream->max_ns, 0);
    while (!p->is_done)
        net_loop_run(p->client->loop);
    net_timer_free(enough);
    if (p->status.class == ERR_NONE || p->is_enough)
        return 0;
    *e = p->status;
    return -1;
}

int client_call(struct client *c, const char *path, const ProtobufCMessage *request, struct buf *response,
                struct err *e)
{
    struct pending p = {.client = c, .response = response};
    return run(&p, path, c->timeout_ns, request, e);
}

int client_stream(struct client *c, const char *path, const ProtobufCMessage *request,
                  const struct client_stream *stream, struct err *e)
{
    struct pending p = {.client = c, .stream = stream};
    return run(&p, path, 0, request, e);
}
