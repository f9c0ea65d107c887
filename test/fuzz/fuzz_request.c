/* A message of arbitrary bytes to each method of the services, over HTTP/2 and back: decoded, judged, evaluated and
 * answered or refused. The first byte chooses the method and what happens while the call is open. */
#include "rpc/server.h"
#include "service/service.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NOW (1000 * NS_PER_S)

/* One agent for all inputs, as in life; what inputs leave behind has ceilings. */
static struct {
    struct metrics *metrics;
    struct rpc_server *server;
    struct trigger_cache *triggers;
    struct service *service;
    struct snapshot *snapshot;
} node;

static const struct snapshot *current(void *context)
{
    (void)context;
    return node.snapshot;
}

static int64_t now_ns(void *context)
{
    (void)context;
    return NOW;
}

static struct snapshot *two_gpus(void)
{
    struct snapshot_store *store = snapshot_store_new(NS_PER_S);
    snapshot_store_header(store)->driver = SNAPSHOT_DRIVER_OK;
    for (int i = 0; i < 2; i++) {
        struct snapshot_device d = {.index = i, .gpu_instance = -1, .compute_instance = -1, .uuid = "GPU-0"};
        d.uuid[4] = (char)('0' + i);
        struct snapshot_device *place = snapshot_store_add(store, &d);
        for (int f = 0; place && f < SNAPSHOT_FIELD_COUNT; f++)
            snapshot_store_record(store, place, (enum snapshot_field)f, 50 + i, NOW);
    }
    struct snapshot *s = snapshot_store_publish(store, NOW);
    snapshot_store_free(store);
    return s;
}

static void start(void)
{
    static const struct trigger_settings settings = {.default_scope = TRIGGER_NODE};
    node.metrics = metrics_new();
    node.server = rpc_server_new(&(struct rpc_server_config){.metrics = node.metrics});
    node.triggers = trigger_cache_new(&settings, 64);
    node.snapshot = two_gpus();
    node.service = service_new(&(struct service_config){.metrics = node.metrics,
                                                        .server = node.server,
                                                        .triggers = node.triggers,
                                                        .source = {.current = current, .now_ns = now_ns},
                                                        .has_reflection = true});
}

static void stop(void)
{
    rpc_server_free(node.server);
    service_free(node.service);
    trigger_cache_free(node.triggers);
    snapshot_unref(node.snapshot);
    metrics_free(node.metrics);
}

static void nothing(void *context)
{
    (void)context;
}

static void no_limit(void *context, enum net_limit limit)
{
    (void)context;
    (void)limit;
}

/* ---- the client's bytes ---- */

static void put_frame(struct buf *out, uint8_t type, uint8_t flags, uint8_t stream, const void *payload, size_t len)
{
    const uint8_t head[] = {(uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len, type, flags, 0, 0, 0, stream};
    (void)buf_append(out, head, sizeof(head));
    (void)buf_append(out, payload, len);
}

/* HPACK: a literal that enters no table. RFC 7541 6.2.2 */
static void put_header(struct buf *out, const char *name, const char *value)
{
    (void)buf_append_char(out, '\0');
    (void)buf_append_char(out, (char)strlen(name));
    (void)buf_append_str(out, name);
    (void)buf_append_char(out, (char)strlen(value));
    (void)buf_append_str(out, value);
}

static void put_call(struct buf *out, const char *path, const uint8_t *message, size_t len)
{
    enum { HEADERS_END = 4, DATA_END_STREAM = 1, DATA_MAX = 16384 };
    BUF_AUTO struct buf part;
    buf_init(&part, 1 << 20);
    (void)buf_append_str(out, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    put_frame(out, 4, 0, 0, "", 0);
    put_header(&part, ":method", "POST");
    put_header(&part, ":scheme", "http");
    put_header(&part, ":path", path);
    put_header(&part, ":authority", "fuzz");
    put_header(&part, "content-type", "application/grpc");
    put_frame(out, 1, HEADERS_END, 1, part.data, part.len);
    buf_reset(&part);
    uint8_t prefix[RPC_PREFIX_BYTES];
    rpc_prefix_write(prefix, len);
    (void)buf_append(&part, prefix, sizeof(prefix));
    (void)buf_append(&part, message, len);
    for (size_t at = 0; at < part.len; at += DATA_MAX) {
        size_t n = part.len - at < DATA_MAX ? part.len - at : DATA_MAX;
        put_frame(out, 0, at + n == part.len ? DATA_END_STREAM : 0, 1, part.data + at, n);
    }
}

/* ---- the call ---- */

static void check(bool is_true)
{
    if (!is_true)
        abort();
}

static void reload(bool has_entry)
{
    static const struct trigger_default entry = {.name = "m", .has_target = true, .target = 7};
    trigger_cache_flush(
        node.triggers,
        &(struct trigger_settings){.default_scope = TRIGGER_NODE, .defaults = &entry, .n_defaults = has_entry ? 1 : 0});
    service_reload(node.service);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const paths[] = {
        "/externalscaler.ExternalScaler/GetMetricSpec",
        "/externalscaler.ExternalScaler/GetMetrics",
        "/externalscaler.ExternalScaler/IsActive",
        "/externalscaler.ExternalScaler/StreamIsActive",
        "/externalscaler.ExternalScaler/StreamMetricSpec",
        "/grpc.health.v1.Health/Check",
        "/grpc.health.v1.Health/Watch",
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "/kedagpuscaler.v1.Node/Explain",
    };
    if (!node.server) {
        start();
        (void)atexit(stop);
    }
    struct rpc_env env = {.limits = &net_limits_default,
                          .peer = "fuzz",
                          .wake = nothing,
                          .again = nothing,
                          .limit_hit = no_limit,
                          .established = nothing};
    BUF_AUTO struct buf bytes;
    buf_init(&bytes, 1 << 20);
    uint8_t mode = size ? data[0] : 0;
    put_call(&bytes, paths[mode % ARRAY_LEN(paths)], data + (size > 0), size - (size > 0));

    struct rpc_session *s = rpc_session_new(node.server, &env, NOW);
    const uint8_t *out;
    (void)rpc_session_receive(s, (const uint8_t *)bytes.data, bytes.len, NOW);
    service_tick(node.service);
    if (mode & 0x80)
        reload(mode & 0x40);
    while (rpc_session_pull(s, &out) > 0)
        ;
    rpc_session_free(s);
    check(node.server->n_calls == 0 && node.server->received_bytes == 0 && node.server->unsent_bytes == 0);
    return 0;
}
