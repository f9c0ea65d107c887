/* For the tests of service/: the services on a real loopback connection, asked by rpc's own client; the readings and
 * the clock that their ages are taken by are the test's. */
#ifndef TEST_SERVICE_RIG_H
#define TEST_SERVICE_RIG_H

#include "service/service.h"

#include "proto/proto.h"
#include "trigger/node.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SCALER "/externalscaler.ExternalScaler/"
enum { REPLIES_MAX = 8, REPLY_BYTES = 256 << 10, RIG_STREAM_BYTES = 4 << 20 };

/* What a call brought: its messages in order, and its status once it is over. */
struct reply {
    struct {
        uint8_t bytes[REPLY_BYTES];
        size_t len;
    } messages[REPLIES_MAX];
    size_t n_messages;
    bool is_done;
    struct err status;
    struct rpc_client_call *call; /* until done */
};

struct rig {
    struct node node;
    struct metrics *metrics;
    struct net_loop *loop;
    struct rpc_server *server;
    struct trigger_cache *triggers;
    struct service *service;
    struct net_listener *listener;
    struct net_limits limits; /* of the listener's connections; may change at any time */
    struct rpc_client *client;
    struct service_evaluator evaluator; /* answer NULL: of the snapshots */
    struct service_source pages;        /* prepare, cancel and page of it, with the rig as context; NULL: none */
    struct snapshot_owners *owners;     /* a reference; what Fleet tells of owners and holders; NULL: not asked for */
    struct snapshot_holders *holders;
    /* what the program was told */
    uint64_t wanted_fields; /* by hubs: a bit each */
    size_t n_watching;
    char watching_hub[64];
    size_t n_observed, n_routine, n_refused;
    char observed_method[32], observed_subject[64], refused_subject[64], refused_text[ERR_TEXT_MAX];
};

static inline const struct snapshot *rig_current(void *context)
{
    return ((struct rig *)context)->node.latest;
}

static inline int64_t rig_now_ns(void *context)
{
    return ((struct rig *)context)->node.now_ns;
}

static inline void rig_observe(void *context, const struct service_observation *o)
{
    struct rig *r = (struct rig *)context;
    r->n_observed++;
    r->n_routine += o->is_routine;
    (void)snprintf(r->observed_method, sizeof(r->observed_method), "%s", o->question->method);
    (void)snprintf(r->observed_subject, sizeof(r->observed_subject), "%s/%s", o->question->ns, o->question->name);
}

static inline void rig_refuse(void *context, const struct service_refusal *refusal)
{
    struct rig *r = (struct rig *)context;
    r->n_refused++;
    (void)snprintf(r->refused_subject, sizeof(r->refused_subject), "%s/%s", refusal->ns, refusal->name);
    (void)snprintf(r->refused_text, sizeof(r->refused_text), "%s", refusal->error->text);
}

static inline const struct snapshot_owners *rig_owners(void *context)
{
    return ((struct rig *)context)->owners;
}

static inline const struct snapshot_holders *rig_holders(void *context)
{
    return ((struct rig *)context)->holders;
}

static inline void rig_want(void *context, enum snapshot_field field)
{
    ((struct rig *)context)->wanted_fields |= UINT64_C(1) << field;
}

static inline void rig_watched(void *context, const struct service_watcher *watcher)
{
    struct rig *r = (struct rig *)context;
    r->n_watching += watcher->is_open ? 1 : SIZE_MAX;
    (void)snprintf(r->watching_hub, sizeof(r->watching_hub), "%s", watcher->hub);
}

/* Serves what node reads; the node is made by the test before. */
static inline void rig_start(struct rig *r)
{
    struct err e;
    r->metrics = metrics_new();
    r->loop = net_loop_new(r->metrics, &e);
    assert_non_null(r->loop);
    r->server = rpc_server_new(&(struct rpc_server_config){.loop = r->loop, .metrics = r->metrics});
    r->triggers = trigger_cache_new(&agent_settings, 64);
    r->service = service_new(&(struct service_config){.metrics = r->metrics,
                                                      .server = r->server,
                                                      .triggers = r->triggers,
                                                      .source = {.current = rig_current,
                                                                 .now_ns = rig_now_ns,
                                                                 .context = r,
                                                                 .prepare = r->pages.prepare,
                                                                 .cancel = r->pages.cancel,
                                                                 .page = r->pages.page},
                                                      .evaluator = r->evaluator,
                                                      .fleet = {.node_name = "node-1",
                                                                .version = "1.2.3",
                                                                .owners = rig_owners,
                                                                .holders = rig_holders,
                                                                .want = rig_want,
                                                                .watched = rig_watched,
                                                                .context = r},
                                                      .has_reflection = true,
                                                      .max_stream_bytes = RIG_STREAM_BYTES,
                                                      .observe = rig_observe,
                                                      .refuse = rig_refuse,
                                                      .observe_context = r});
    r->limits = net_limits_default;
    r->listener = net_listen(r->loop,
                             &(struct net_listen_config){
                                 .address = "127.0.0.1:0", .h2 = rpc_server_protocol(r->server), .limits = &r->limits},
                             &e);
    if (!r->listener)
        fail_msg("%s", e.text);
    r->client =
        rpc_client_new(&(struct rpc_client_config){.loop = r->loop, .address = net_listener_address(r->listener)}, &e);
    assert_non_null(r->client);
}

/* In the order in which a program ends. */
static inline void rig_stop(struct rig *r)
{
    rpc_client_free(r->client);
    net_listener_free(r->listener);
    rpc_server_free(r->server);
    service_free(r->service);
    trigger_cache_free(r->triggers);
    net_loop_free(r->loop);
    metrics_free(r->metrics);
    snapshot_owners_unref(r->owners);
    node_fini(&r->node);
}

/* A rig over GPUs 0, 1, ... with these utilizations. */
#define RIG_WITH(r, ...)                                                                                               \
    __attribute__((cleanup(rig_stop))) struct rig r = {.n_observed = 0};                                               \
    NODE_WITH(r.node, __VA_ARGS__);                                                                                    \
    rig_start(&r)

/* Turns until the condition holds; the sockets are local, so the kernel has the bytes at once. */
#define TURN_UNTIL(r, condition)                                                                                       \
    do {                                                                                                               \
        int64_t end_ns_ = time_mono_ns() + 20 * NS_PER_S;                                                              \
        while (!(condition) && time_mono_ns() < end_ns_)                                                               \
            (void)net_loop_turn((r)->loop);                                                                            \
        assert_true(condition);                                                                                        \
    } while (0)

/* All that was sent has arrived: an answer to a call made later on the same connection is there. */
static inline void rig_settle(struct rig *r);

static inline void rig_message(void *context, struct str message)
{
    struct reply *reply = (struct reply *)context;
    assert_true(reply->n_messages < REPLIES_MAX && message.len <= REPLY_BYTES);
    memcpy(reply->messages[reply->n_messages].bytes, message.ptr, message.len);
    reply->messages[reply->n_messages++].len = message.len;
}

static inline void rig_done(void *context, const struct err *status)
{
    struct reply *reply = (struct reply *)context;
    reply->is_done = true;
    reply->status = *status;
    reply->call = NULL;
}

/* Start a call. reply must stay until it is done. */
static inline void rig_begin(struct rig *r, const char *path, struct str request, struct reply *reply)
{
    memset(reply, 0, sizeof(*reply));
    reply->call = rpc_client_start(
        r->client,
        &(struct rpc_client_call_config){.path = path, .message = rig_message, .done = rig_done, .context = reply},
        request.ptr, request.len);
}

/* Make a call and wait for its end. */
static inline void rig_call(struct rig *r, const char *path, struct str request, struct reply *reply)
{
    rig_begin(r, path, request, reply);
    TURN_UNTIL(r, reply->is_done);
}

static inline void rig_settle(struct rig *r)
{
    static struct reply reply;
    rig_call(r, "/grpc.health.v1.Health/Check", (struct str){"", 0}, &reply);
}

/* The client forgets a stream; the server has noticed when this returns. */
static inline void rig_cancel(struct rig *r, struct reply *reply)
{
    rpc_client_cancel(reply->call);
    TURN_UNTIL(r, reply->is_done);
    rig_settle(r);
}

static inline void assert_ok(const struct reply *reply)
{
    if (reply->status.class != ERR_NONE)
        fail_msg("%s: %s", err_class_name(reply->status.class), reply->status.text);
}

static inline void assert_failed(const struct reply *reply, enum err_class class, const char *part)
{
    if (reply->status.class != class)
        fail_msg("%s instead of %s: %s", err_class_name(reply->status.class), err_class_name(class),
                 reply->status.text);
    assert_contains(reply->status.text, part);
    assert_int_equal(reply->n_messages, 0);
}

/* ---- requests ---- */

/* A packed message; valid until the next is packed. */
static inline struct str packed(const ProtobufCMessage *message)
{
    static uint8_t bytes[1 << 20];
    assert_true(protobuf_c_message_get_packed_size(message) <= sizeof(bytes));
    return (struct str){(const char *)bytes, protobuf_c_message_pack(message, bytes)};
}

struct ref {
    Externalscaler__ScaledObjectRef message;
    Externalscaler__ScaledObjectRef__ScalerMetadataEntry entries[METADATA_MAX], *rows[METADATA_MAX];
};

/* ScaledObject ml/llm with this metadata, whose texts end with NUL. */
static inline void ref_init(struct ref *ref, struct metadata m)
{
    externalscaler__scaled_object_ref__init(&ref->message);
    ref->message.name = (char *)(uintptr_t) "llm";
    ref->message.namespace_ = (char *)(uintptr_t) "ml";
    ref->message.n_scalermetadata = m.n;
    ref->message.scalermetadata = ref->rows;
    for (size_t i = 0; i < m.n; i++) {
        externalscaler__scaled_object_ref__scaler_metadata_entry__init(&ref->entries[i]);
        ref->entries[i].key = (char *)(uintptr_t)m.pairs[i].key.ptr;
        ref->entries[i].value = (char *)(uintptr_t)m.pairs[i].value.ptr;
        ref->rows[i] = &ref->entries[i];
    }
}

static inline struct str packed_ref(struct metadata m)
{
    struct ref ref;
    ref_init(&ref, m);
    return packed(&ref.message.base);
}

/* GetMetrics for a metric of this name. */
static inline struct str packed_question(const char *metric, struct metadata m)
{
    struct ref ref;
    Externalscaler__GetMetricsRequest request;
    ref_init(&ref, m);
    externalscaler__get_metrics_request__init(&request);
    request.scaledobjectref = &ref.message;
    request.metricname = (char *)(uintptr_t)metric;
    return packed(&request.base);
}

/* ---- answers ---- */

/* IsActive's or StreamIsActive's message. */
static inline bool read_active(const struct reply *reply, size_t at)
{
    assert_true(at < reply->n_messages);
    Externalscaler__IsActiveResponse *m =
        externalscaler__is_active_response__unpack(NULL, reply->messages[at].len, reply->messages[at].bytes);
    assert_non_null(m);
    bool result = m->result;
    externalscaler__is_active_response__free_unpacked(m, NULL);
    return result;
}

struct number {
    size_t n; /* how many there were; the rest is of the first */
    char name[TRIGGER_NAME_MAX];
    int64_t whole;
    double real;
};

static inline struct number read_spec(const struct reply *reply, size_t at)
{
    assert_true(at < reply->n_messages);
    Externalscaler__GetMetricSpecResponse *m =
        externalscaler__get_metric_spec_response__unpack(NULL, reply->messages[at].len, reply->messages[at].bytes);
    assert_non_null(m);
    assert_true(m->n_metricspecs > 0);
    struct number number = {
        .n = m->n_metricspecs, .whole = m->metricspecs[0]->targetsize, .real = m->metricspecs[0]->targetsizefloat};
    assert_true(str_copy(number.name, sizeof(number.name), str_of(m->metricspecs[0]->metricname)));
    externalscaler__get_metric_spec_response__free_unpacked(m, NULL);
    return number;
}

static inline struct number read_value(const struct reply *reply)
{
    assert_int_equal(reply->n_messages, 1);
    Externalscaler__GetMetricsResponse *m =
        externalscaler__get_metrics_response__unpack(NULL, reply->messages[0].len, reply->messages[0].bytes);
    assert_non_null(m);
    assert_true(m->n_metricvalues > 0);
    struct number number = {
        .n = m->n_metricvalues, .whole = m->metricvalues[0]->metricvalue, .real = m->metricvalues[0]->metricvaluefloat};
    assert_true(str_copy(number.name, sizeof(number.name), str_of(m->metricvalues[0]->metricname)));
    externalscaler__get_metrics_response__free_unpacked(m, NULL);
    return number;
}

/* ---- metrics ---- */

struct rig_look {
    const char *name, *const *labels;
    size_t n_series;
    double value; /* NaN: none with these labels */
};

static inline void rig_look_at_family(void *context, const struct metric_desc *desc)
{
    (void)context;
    (void)desc;
}

static inline void rig_look_at_sample(void *context, const struct metric_sample *sample)
{
    struct rig_look *look = (struct rig_look *)context;
    if (strcmp(sample->desc->name, look->name) != 0)
        return;
    look->n_series++;
    for (size_t i = 0; look->labels && i < METRIC_LABELS_MAX && sample->desc->labels[i]; i++)
        if (strcmp(sample->label_values[i], look->labels[i]) != 0)
            return;
    look->value = sample->value;
}

static inline struct rig_look rig_look(const struct rig *r, const char *name, const char *const *labels)
{
    struct rig_look look = {.name = name, .labels = labels, .value = (double)NAN};
    const struct metric_visitor visitor = {
        .family = rig_look_at_family, .sample = rig_look_at_sample, .context = &look};
    metrics_visit(r->metrics, &visitor);
    return look;
}

/* The series with these label values; NaN when there is none. */
#define METRIC(r, name, ...) (rig_look((r), (name), (const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL}).value)
#define SERIES_OF(r, name)   (rig_look((r), (name), NULL).n_series)

#endif
