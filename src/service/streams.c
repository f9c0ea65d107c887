/* The server streams of ExternalScaler: StreamIsActive and StreamMetricSpec. keda.md 4.2, scaling-semantics 4 and 5. */
#include "service/service_private.h"

#include <math.h>
#include <string.h>

static const Externalscaler__ScaledObjectRef *decode(struct rpc_call *call, struct str request)
{
    ProtobufCAllocator allocator = service_allocator(call);
    const Externalscaler__ScaledObjectRef *ref = NULL;
    if (!service_has_nul(request, 'r'))
        ref = externalscaler__scaled_object_ref__unpack(&allocator, request.len, (const uint8_t *)request.ptr);
    if (!ref)
        service_fail_decode(call);
    return ref;
}

/* The metadata outlives the request in one allocation: pairs first, texts behind. */
static void keep_pairs(struct stream *stream, const struct trigger_pair *pairs, size_t n)
{
    size_t bytes = n * sizeof(*pairs) + 1;
    for (size_t i = 0; i < n; i++)
        bytes += pairs[i].key.len + pairs[i].value.len;
    stream->pairs = (struct trigger_pair *)mem_new_array(1, bytes);
    stream->n_pairs = n;
    char *text = (char *)(stream->pairs + n);
    for (size_t i = 0; i < n; i++) {
        struct str from[] = {pairs[i].key, pairs[i].value}, *to[] = {&stream->pairs[i].key, &stream->pairs[i].value};
        for (size_t k = 0; k < ARRAY_LEN(from); k++) {
            if (from[k].len)
                memcpy(text, from[k].ptr, from[k].len);
            *to[k] = (struct str){text, from[k].len};
            text += from[k].len;
        }
    }
}

/* A stream with its trigger and metadata, its headers sent; NULL after the call was failed. */
static struct stream *open_stream(struct service *s, struct rpc_call *call, const Externalscaler__ScaledObjectRef *ref,
                                  enum stream_kind kind)
{
    struct trigger_pair *pairs;
    size_t n;
    struct err e;
    struct trigger *t = service_trigger(s, call, ref, &e);
    if (!t || service_pairs(call, ref, &pairs, &n, &e) < 0) {
        trigger_unref(t);
        rpc_call_fail(call, &e);
        return NULL;
    }
    struct stream *stream = service_stream_new(s, call, kind);
    stream->trigger = t;
    keep_pairs(stream, pairs, n);
    rpc_call_send_headers(call);
    return stream;
}

/* ---- StreamIsActive ---- */

/* Active by measurement: what is active only because a reading is missing wakes nobody. */
static bool is_measured_active(const struct trigger_evaluation *evaluation)
{
    const struct trigger *t = evaluation->trigger;
    return evaluation->active_error.class == ERR_NONE && evaluation->is_active &&
           (t->is_always_active || evaluation->activity > t->activation);
}

static void send_active(struct rpc_call *call)
{
    Externalscaler__IsActiveResponse response;
    externalscaler__is_active_response__init(&response);
    response.result = 1;
    (void)service_send(call, &response.base); /* a peer that does not read is dropped by its write deadline */
}

static void stream_is_active(struct rpc_call *call, struct str request, void *context)
{
    static const struct service_question asks_activity = {"StreamIsActive", TRIGGER_ASK_ACTIVITY};
    struct service *s = context;
    const Externalscaler__ScaledObjectRef *ref = decode(call, request);
    if (!ref)
        return;
    struct stream *stream = open_stream(s, call, ref, STREAM_IS_ACTIVE);
    if (!stream)
        return;
    struct trigger *t = stream->trigger;

    struct trigger_evaluation evaluation;
    service_evaluate(s, call, &asks_activity, ref, t, &evaluation);
    stream->next_look_ns = service_now_ns(s) + t->poll_interval_ns;
    stream->was_active = evaluation.active_error.class == ERR_NONE && evaluation.is_active;
    if (stream->was_active)
        send_active(call);
}

/* `true` once at each change from inactive to active by measurement. Never `false` (KEDA before 2.18 scales to zero on
 * it), never repeated (it blocks scale to zero), nothing on errors. */
static void look_at_activity(struct service *s, struct stream *stream, int64_t now_ns)
{
    if (now_ns < stream->next_look_ns)
        return;
    stream->next_look_ns = now_ns + stream->trigger->poll_interval_ns;
    ARENA_AUTO struct arena arena;
    arena_init(&arena, SERVICE_EVALUATION_MAX);
    struct trigger_evaluation evaluation;
    trigger_evaluate(stream->trigger, s->config.source.current(s->config.source.context), now_ns, TRIGGER_ASK_ACTIVITY,
                     &arena, &evaluation);
    if (evaluation.active_error.class != ERR_NONE)
        return;
    bool is_rising = !stream->was_active && is_measured_active(&evaluation);
    stream->was_active = evaluation.is_active && (stream->was_active || is_rising);
    if (is_rising)
        send_active(stream->call);
}

/* ---- StreamMetricSpec ---- */

static void send_spec(struct stream *stream)
{
    const struct trigger *t = stream->trigger;
    Externalscaler__MetricSpec spec, *specs[] = {&spec};
    Externalscaler__GetMetricSpecResponse response;
    service_fill_spec(&spec, t);
    externalscaler__get_metric_spec_response__init(&response);
    response.n_metricspecs = 1;
    response.metricspecs = specs;
    (void)str_copy(stream->sent_name, sizeof(stream->sent_name), str_of(t->metric_name));
    stream->sent_target = t->target;
    (void)service_send(stream->call, &response.base);
}

static void stream_metric_spec(struct rpc_call *call, struct str request, void *context)
{
    struct service *s = context;
    const Externalscaler__ScaledObjectRef *ref = decode(call, request);
    if (!ref)
        return;
    struct stream *stream = open_stream(s, call, ref, STREAM_METRIC_SPEC);
    if (stream)
        send_spec(stream);
}

void service_tick_streams(struct service *s)
{
    int64_t now_ns = service_now_ns(s);
    for (struct stream *stream = s->streams[STREAM_IS_ACTIVE], *next; stream; stream = next) {
        next = stream->next;
        look_at_activity(s, stream, now_ns);
    }
}

/* The stream's trigger as the new configuration reads its text. It may now refuse it: the stream then ends with that
 * refusal, as GetMetricSpec answers from here on. */
static void renew_trigger(struct service *s, struct stream *stream)
{
    struct err e;
    struct trigger *t = trigger_cache_get(s->config.triggers, stream->pairs, stream->n_pairs, &e);
    if (!t) {
        rpc_call_fail(stream->call, &e);
        return;
    }
    trigger_unref(stream->trigger);
    stream->trigger = t;
    bool is_same = strcmp(stream->sent_name, t->metric_name) == 0 && fabs(stream->sent_target - t->target) < 1e-9;
    if (stream->kind == STREAM_METRIC_SPEC && !is_same)
        send_spec(stream);
}

void service_reload_streams(struct service *s)
{
    struct stream *lists[] = {s->streams[STREAM_METRIC_SPEC], s->streams[STREAM_IS_ACTIVE]};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        for (struct stream *stream = lists[i], *next; stream; stream = next) {
            next = stream->next;
            renew_trigger(s, stream);
        }
}

void service_add_streams(struct service *s)
{
    static const struct rpc_method methods[] = {
        {.path = "/externalscaler.ExternalScaler/StreamIsActive",
         .is_server_streaming = true,
         .message = stream_is_active,
         .ended = service_stream_ended},
        {.path = "/externalscaler.ExternalScaler/StreamMetricSpec",
         .is_server_streaming = true,
         .message = stream_metric_spec,
         .ended = service_stream_ended},
    };
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        service_add_method(s, &methods[i]);
}
