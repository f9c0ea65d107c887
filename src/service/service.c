/* Wiring of the services: methods, decoding helpers, the list of open streams. */
#include "service/service.h"

#include "service/service_private.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_MAX = 1 << 20, STREAM_BYTES_MAX = 128 << 20 };

static const struct metric_desc streams_desc = {
    .name = "keda_gpu_scaler_open_streams",
    .help = "Open server streams by method.",
    .kind = METRIC_GAUGE,
    .labels = {"method"},
};
static const struct metric_desc cached_desc = {
    .name = "keda_gpu_scaler_cached_triggers",
    .help = "Distinct trigger texts held parsed.",
    .kind = METRIC_GAUGE,
};

struct service *service_new(const struct service_config *config)
{
    static const char *const kinds[] = {"StreamIsActive", "StreamMetricSpec", "Watch", "Fleet.Watch"};
    struct service *s = mem_new(struct service);
    s->config = *config;
    if (s->config.max_stream_bytes == 0)
        s->config.max_stream_bytes = STREAM_BYTES_MAX;
    if (!s->config.evaluator.answer)
        s->config.evaluator = service_snapshot_evaluator(s);
    assert(!s->config.evaluator.prepare || s->config.evaluator.cancel);
    s->subjects = service_subjects_new(config->metrics);
    struct metric_family *streams = metric_register(config->metrics, &streams_desc);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        s->open_streams[i] = metric_series(streams, &kinds[i]);
    s->cached_triggers = metric_only(metric_register(config->metrics, &cached_desc));
    service_add_external_scaler(s);
    service_add_streams(s);
    service_add_health(s);
    service_add_node(s);
    if (config->fleet.node_name)
        service_add_fleet(s);
    if (config->has_reflection)
        service_add_reflection(s);
    return s;
}

void service_free(struct service *s)
{
    if (!s)
        return;
    service_subjects_free(s->subjects);
    free(s);
}

void service_add_method(struct service *s, const struct rpc_method *method)
{
    assert(s->n_methods < SERVICE_METHODS_MAX);
    struct rpc_method *own = &s->methods[s->n_methods++];
    *own = *method;
    own->context = s;
    rpc_server_add(s->config.server, own, 1);
}

void service_add_unary(struct service *s, const char *path,
                       void (*message)(struct rpc_call *call, struct str request, void *context))
{
    const struct rpc_method method = {.path = path,
                                      .deadline_ns =
                                          s->config.evaluator.prepare ? SERVICE_WAIT_DEADLINE_NS : SERVICE_DEADLINE_NS,
                                      .message = message,
                                      .ended = service_unary_ended};
    service_add_method(s, &method);
}

void service_tick(struct service *s)
{
    metric_set(s->cached_triggers, (double)trigger_cache_len(s->config.triggers));
    service_tick_subjects(s);
    service_tick_streams(s);
    service_tick_health(s);
    service_tick_fleet(s);
}

void service_reload(struct service *s)
{
    service_reload_streams(s);
}

void service_drain(struct service *s)
{
    s->is_draining = true;
    service_tick_health(s);
}

/* ---- messages ---- */

static void *arena_allocate(void *context, size_t size)
{
    return arena_alloc(context, size);
}

static void arena_release(void *context, void *memory)
{
    (void)context;
    (void)memory;
}

void *service_decode(struct rpc_call *call, struct arena *arena, struct str request,
                     const ProtobufCMessageDescriptor *type)
{
    ProtobufCAllocator allocator = {.alloc = arena_allocate, .free = arena_release, .allocator_data = arena};
    void *message = NULL;
    if (!service_has_nul(request, type))
        message = protobuf_c_message_unpack(type, &allocator, request.len, (const uint8_t *)request.ptr);
    if (!message)
        rpc_call_finish(
            call, ERR_INTERNAL,
            "the request could not be decoded: it is not a valid protobuf message of this method, holds a NUL "
            "inside a text, or decodes to more than 8 times its size");
    return message;
}

int service_send(struct rpc_call *call, const ProtobufCMessage *message)
{
    enum { SMALL = 1024 };
    uint8_t small[SMALL];
    size_t len = protobuf_c_message_get_packed_size(message);
    if (len > MESSAGE_MAX)
        return -1;
    MEM_AUTO uint8_t *large = len > SMALL ? (uint8_t *)mem_new_array(len, 1) : NULL;
    uint8_t *bytes = large ? large : small;
    (void)protobuf_c_message_pack(message, bytes);
    return rpc_call_send(call, bytes, len);
}

void service_reply(struct rpc_call *call, const ProtobufCMessage *message)
{
    if (service_send(call, message) == 0)
        rpc_call_finish(call, ERR_NONE, NULL);
    else
        rpc_call_finish(call, ERR_RESOURCE_EXHAUSTED, "the answer does not fit the limits of this connection");
}

static struct trigger *find_trigger(struct service *s, const Externalscaler__ScaledObjectRef *ref, struct err *e)
{
    if (!ref) {
        (void)err_set(e, ERR_INVALID_ARGUMENT,
                      "scaledObjectRef is missing; KEDA sends the ScaledObject's name, namespace and metadata in it");
        return NULL;
    }
    struct trigger_pair pairs[TRIGGER_PAIRS_MAX]; /* more are refused unread */
    for (size_t i = 0; i < ref->n_scalermetadata && i < TRIGGER_PAIRS_MAX; i++)
        pairs[i] = (struct trigger_pair){.key = str_of(ref->scalermetadata[i]->key),
                                         .value = str_of(ref->scalermetadata[i]->value)};
    return trigger_cache_get(s->config.triggers, pairs, ref->n_scalermetadata, e);
}

struct trigger *service_trigger(struct service *s, struct rpc_call *call, const Externalscaler__ScaledObjectRef *ref,
                                struct err *e)
{
    struct trigger *t = find_trigger(s, ref, e);
    if (!t && s->config.refuse) {
        struct service_refusal refusal = {
            .ns = ref ? ref->namespace_ : "", .name = ref ? ref->name : "", .peer = rpc_call_peer(call), .error = e};
        s->config.refuse(s->config.observe_context, &refusal);
    }
    return t;
}

struct service_question service_question_of(struct rpc_call *call, const char *method, enum trigger_question asked,
                                            const Externalscaler__ScaledObjectRef *ref, const struct trigger *t)
{
    return (struct service_question){.method = method,
                                     .ns = ref->namespace_,
                                     .name = ref->name,
                                     .peer = rpc_call_peer(call),
                                     .trigger = t,
                                     .asked = asked};
}

void service_ask(struct service *s, const struct service_question *question, struct arena *arena,
                 struct service_answer *ret)
{
    const struct service_evaluator *evaluator = &s->config.evaluator;
    evaluator->answer(evaluator->context, question, arena, ret);
    struct service_observation observation = {.question = question, .answer = ret};
    if (s->config.observe)
        s->config.observe(s->config.observe_context, &observation);
}

/* ---- streams ---- */

struct stream *service_stream_new(struct service *s, struct rpc_call *call, enum stream_kind kind)
{
    size_t bytes = sizeof(struct stream) + sizeof(struct trigger) + rpc_call_arena(call)->used_bytes;
    if (s->stream_bytes + bytes > s->config.max_stream_bytes) {
        rpc_call_finish(call, ERR_RESOURCE_EXHAUSTED, "open streams hold as much memory as they may; try again later");
        return NULL;
    }
    struct stream *stream = mem_new(struct stream);
    *stream = (struct stream){.kind = kind, .call = call, .bytes = bytes, .last_status = -1};
    stream->link = &s->streams[kind];
    stream->next = *stream->link;
    if (stream->next)
        stream->next->link = &stream->next;
    *stream->link = stream;
    s->stream_bytes += bytes;
    metric_add(s->open_streams[kind], 1);
    rpc_call_set_state(call, stream);
    return stream;
}

void service_stream_ended(struct rpc_call *call, void *context)
{
    struct service *s = context;
    struct stream *stream = rpc_call_state(call);
    if (!stream)
        return;
    metric_add(s->open_streams[stream->kind], -1);
    s->stream_bytes -= stream->bytes;
    *stream->link = stream->next;
    if (stream->next)
        stream->next->link = stream->link;
    trigger_unref(stream->trigger);
    free(stream);
}

/* ---- NUL inside strings ---- */

/* Reads a varint; returns its length in bytes, 0 when it is malformed. */
static size_t read_varint(struct str in, uint64_t *ret)
{
    uint64_t value = 0;
    for (size_t i = 0; i < in.len && i < 10; i++) {
        uint64_t byte = (unsigned char)in.ptr[i];
        value |= (byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *ret = value;
            return i + 1;
        }
    }
    return 0;
}

/* The next length-delimited field; other kinds are passed over. False at the end or where the wire format breaks (the
 * decoder then says so). */
static bool next_field(struct str *in, uint64_t *ret_number, struct str *ret_content)
{
    while (in->len > 0) {
        uint64_t tag = 0, value = 0;
        size_t used = read_varint(*in, &tag);
        struct str rest = {in->ptr + used, in->len - used};
        size_t len = (tag & 7) == 1 ? 8 : (tag & 7) == 5 ? 4 : used ? read_varint(rest, &value) : 0;
        if (used == 0 || len == 0 || len > rest.len)
            return false;
        rest = (struct str){rest.ptr + len, rest.len - len};
        if ((tag & 7) == 2) {
            if (value > rest.len)
                return false;
            *ret_number = tag >> 3;
            *ret_content = (struct str){rest.ptr, value};
            *in = (struct str){rest.ptr + value, rest.len - value};
            return true;
        }
        *in = rest;
    }
    return false;
}

bool service_has_nul(struct str message, const ProtobufCMessageDescriptor *type)
{
    uint64_t number;
    struct str content;
    while (next_field(&message, &number, &content)) {
        const ProtobufCFieldDescriptor *field =
            number <= UINT_MAX ? protobuf_c_message_descriptor_get_field(type, (unsigned)number) : NULL;
        if (!field) /* of a newer proto: whatever it is, it is passed over */
            continue;
        if (field->type == PROTOBUF_C_TYPE_STRING && memchr(content.ptr, '\0', content.len))
            return true;
        if (field->type == PROTOBUF_C_TYPE_MESSAGE && service_has_nul(content, field->descriptor))
            return true;
    }
    return false;
}
