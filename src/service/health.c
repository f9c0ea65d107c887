/* grpc.health.v1.Health. "" and each service are about this process: they serve until the drain. "nvml" is the driver:
 * it serves while its readings come. A driver that is gone is no reason to leave a Service: see docs/ARCHITECTURE.md.
 */
#include "service/service_private.h"

#include <string.h>

typedef Grpc__Health__V1__HealthCheckResponse__ServingStatus serving_status;
enum {
    SERVING = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING,
    NOT_SERVING = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING,
    SERVICE_UNKNOWN = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVICE_UNKNOWN,
};

#define FLEET "kedagpuscaler.fleet.v1.Fleet"

/* What can be asked for, FLEET where it is served. `liveness` and `readiness` are the names that KEDA's http-add-on
 * made usual. */
static const char *const names[] = {
    "",
    "externalscaler.ExternalScaler",
    "grpc.health.v1.Health",
    "kedagpuscaler.v1.Node",
    "liveness",
    "readiness",
    "nvml",
    FLEET,
};

/* The driver answers: its last cycle said so, and is not older than two periods, at least 2 s. */
static bool is_driver_serving(const struct service *s)
{
    const struct snapshot *snapshot = s->config.source.current(s->config.source.context);
    if (!snapshot || snapshot->driver != SNAPSHOT_DRIVER_OK)
        return false;
    int64_t period_ns = snapshot->period_ns > NS_PER_S ? snapshot->period_ns : NS_PER_S;
    return service_now_ns(s) - snapshot->taken_ns <= 2 * period_ns;
}

static size_t n_names(const struct service *s)
{
    return ARRAY_LEN(names) - (s->config.fleet.node_name ? 0 : 1);
}

static int status_of(const struct service *s, const char *name)
{
    bool is_known = false;
    for (size_t i = 0; i < n_names(s) && !is_known; i++)
        is_known = strcmp(names[i], name) == 0;
    if (!is_known)
        return SERVICE_UNKNOWN;
    if (strcmp(name, "nvml") == 0 && !is_driver_serving(s))
        return NOT_SERVING;
    return s->is_draining && strcmp(name, "liveness") != 0 ? NOT_SERVING : SERVING;
}

static const Grpc__Health__V1__HealthCheckRequest *decode(struct rpc_call *call, struct str request)
{
    return service_decode(call, rpc_call_arena(call), request, &grpc__health__v1__health_check_request__descriptor);
}

static void check(struct rpc_call *call, struct str request, void *context)
{
    struct service *s = context;
    const Grpc__Health__V1__HealthCheckRequest *asked = decode(call, request);
    if (!asked)
        return;
    int status = status_of(s, asked->service);
    if (status == SERVICE_UNKNOWN) {
        rpc_call_finish(call, ERR_NOT_FOUND, "no such service; ask for \"\" (this process) or \"nvml\" (the driver)");
        return;
    }
    Grpc__Health__V1__HealthCheckResponse response;
    grpc__health__v1__health_check_response__init(&response);
    response.status = (serving_status)status;
    service_reply(call, &response.base);
}

static void list(struct rpc_call *call, struct str request, void *context)
{
    (void)request;
    struct service *s = context;
    Grpc__Health__V1__HealthCheckResponse values[ARRAY_LEN(names)];
    Grpc__Health__V1__HealthListResponse__StatusesEntry entries[ARRAY_LEN(names)], *rows[ARRAY_LEN(names)];
    for (size_t i = 0; i < n_names(s); i++) {
        grpc__health__v1__health_check_response__init(&values[i]);
        values[i].status = (serving_status)status_of(s, names[i]);
        grpc__health__v1__health_list_response__statuses_entry__init(&entries[i]);
        entries[i].key = (char *)(uintptr_t)names[i];
        entries[i].value = &values[i];
        rows[i] = &entries[i];
    }
    Grpc__Health__V1__HealthListResponse response;
    grpc__health__v1__health_list_response__init(&response);
    response.n_statuses = n_names(s);
    response.statuses = rows;
    service_reply(call, &response.base);
}

static void send_status(struct service *s, struct stream *stream)
{
    int status = status_of(s, stream->watched);
    if (status == stream->last_status)
        return;
    Grpc__Health__V1__HealthCheckResponse response;
    grpc__health__v1__health_check_response__init(&response);
    response.status = (serving_status)status;
    if (service_send(stream->call, &response.base) == 0)
        stream->last_status = status;
}

static void watch(struct rpc_call *call, struct str request, void *context)
{
    struct service *s = context;
    const Grpc__Health__V1__HealthCheckRequest *asked = decode(call, request);
    if (!asked)
        return;
    struct stream *stream = service_stream_new(s, call, STREAM_HEALTH);
    if (!stream)
        return;
    stream->watched = asked->service;
    rpc_call_send_headers(call);
    send_status(s, stream);
}

void service_tick_health(struct service *s)
{
    for (struct stream *stream = s->streams[STREAM_HEALTH]; stream; stream = stream->next)
        send_status(s, stream);
}

void service_add_health(struct service *s)
{
    static const struct rpc_method methods[] = {
        {.path = "/grpc.health.v1.Health/Check", .deadline_ns = SERVICE_DEADLINE_NS, .message = check},
        {.path = "/grpc.health.v1.Health/List", .deadline_ns = SERVICE_DEADLINE_NS, .message = list},
        {.path = "/grpc.health.v1.Health/Watch",
         .is_server_streaming = true,
         .is_state_stream = true,
         .message = watch,
         .ended = service_stream_ended},
    };
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        service_add_method(s, &methods[i]);
}
