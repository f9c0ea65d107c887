/* The server streams of ExternalScaler: StreamIsActive and StreamMetricSpec. keda.md 4.2, scaling-semantics 4 and 5. */
#include "service/service_private.h"

#include <math.h>
#include <string.h>

/* A stream with its trigger, its headers sent; NULL after the call was failed. */
static struct stream *open_stream(struct service *s, struct rpc_call *call, struct str request, enum stream_kind kind)
{
    const Externalscaler__ScaledObjectRef *ref =
        service_decode(call, rpc_call_arena(call), request, &externalscaler__scaled_object_ref__descriptor);
    if (!ref)
        return NULL;
    struct err e;
    struct trigger *t = service_trigger(s, call, ref, &e);
    if (!t) {
        rpc_call_fail(call, &e);
        return NULL;
    }
    struct stream *stream = service_stream_new(s, call, kind);
    if (!stream) {
        trigger_unref(t);
        return NULL;
    }
    stream->ref = ref;
    stream->trigger = t;
    size_t parts_bytes = t->n_parts * sizeof(struct trigger);
    stream->bytes += parts_bytes;
    s->stream_bytes += parts_bytes;
    rpc_call_send_headers(call);
    return stream;
}

/* ---- StreamIsActive ---- */

static int send_active(struct rpc_call *call)
{
    Externalscaler__IsActiveResponse response;
    externalscaler__is_active_response__init(&response);
    response.result = 1;
    return service_send(call, &response.base);
}

/* `true` when it opens active, and once at each change from inactive to active by measurement. Never `false` (KEDA
 * before 2.18 scales to zero on it), never repeated (it blocks scale to zero), nothing on errors. What the connection
 * has no room for is tried again at the next look. */
static void look_at_activity(struct service *s, struct stream *stream, bool is_opening)
{
    int64_t now_ns = service_now_ns(s);
    stream->next_look_ns = now_ns + stream->trigger->poll_interval_ns;
    ARENA_AUTO struct arena arena;
    arena_init(&arena, SERVICE_EVALUATION_MAX);
    struct service_question question =
        service_question_of(stream->call, "StreamIsActive", TRIGGER_ASK_ACTIVITY, stream->ref, stream->trigger);
    struct service_answer answer;
    s->config.evaluator.answer(s->config.evaluator.context, &question, &arena, &answer);
    bool is_valid = answer.active_error.class == ERR_NONE;
    bool is_change = is_valid && answer.is_active && !stream->was_active;
    bool wakes = is_change && (is_opening || answer.is_above) && send_active(stream->call) == 0;
    if (is_valid)
        stream->was_active = answer.is_active && (stream->was_active || wakes);
    struct service_observation observation = {
        .question = &question, .is_routine = !is_opening && !wakes, .answer = &answer};
    if (s->config.observe)
        s->config.observe(s->config.observe_context, &observation);
}

static void stream_is_active(struct rpc_call *call, struct str request, void *context)
{
    struct service *s = context;
    struct stream *stream = open_stream(s, call, request, STREAM_IS_ACTIVE);
    if (stream)
        look_at_activity(s, stream, true);
}

/* ---- StreamMetricSpec ---- */

/* Send the spec unless it is what was sent last. Without room it is tried again at the next tick. */
static void update_spec(struct service *s, struct stream *stream)
{
    const struct trigger *t = stream->trigger;
    if (strcmp(stream->sent_name, t->metric_name) == 0 && fabs(stream->sent_target - t->target) < 1e-9)
        return;
    Externalscaler__MetricSpec spec, *specs[] = {&spec};
    Externalscaler__GetMetricSpecResponse response;
    service_fill_spec(&spec, t);
    externalscaler__get_metric_spec_response__init(&response);
    response.n_metricspecs = 1;
    response.metricspecs = specs;
    if (service_send(stream->call, &response.base) < 0)
        return;
    (void)str_copy(stream->sent_name, sizeof(stream->sent_name), str_of(t->metric_name));
    stream->sent_target = t->target;
    service_subject_show(service_subject(s, stream->ref->namespace_, stream->ref->name, t->metric_name), SUBJECT_TARGET,
                         t->target);
}

static void stream_metric_spec(struct rpc_call *call, struct str request, void *context)
{
    struct service *s = context;
    struct stream *stream = open_stream(s, call, request, STREAM_METRIC_SPEC);
    if (stream)
        update_spec(s, stream);
}

/* ---- both ---- */

/* Handlers of one stream never free another: finished calls end later. */
void service_tick_streams(struct service *s)
{
    int64_t now_ns = service_now_ns(s);
    for (struct stream *stream = s->streams[STREAM_IS_ACTIVE]; stream; stream = stream->next)
        if (now_ns >= stream->next_look_ns)
            look_at_activity(s, stream, false);
    for (struct stream *stream = s->streams[STREAM_METRIC_SPEC]; stream; stream = stream->next)
        update_spec(s, stream);
}

/* The stream's trigger as the new configuration reads its text. It may now refuse it: the stream then ends with that
 * refusal, as GetMetricSpec answers from here on. */
static void renew_trigger(struct service *s, struct stream *stream)
{
    struct err e;
    struct trigger *t = service_trigger(s, stream->call, stream->ref, &e);
    if (!t) {
        rpc_call_fail(stream->call, &e);
        return;
    }
    trigger_unref(stream->trigger);
    stream->trigger = t;
}

void service_reload_streams(struct service *s)
{
    static const enum stream_kind kinds[] = {STREAM_METRIC_SPEC, STREAM_IS_ACTIVE};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        for (struct stream *stream = s->streams[kinds[i]]; stream; stream = stream->next)
            renew_trigger(s, stream);
    service_tick_streams(s);
}

void service_add_streams(struct service *s)
{
    static const struct rpc_method methods[] = {
        {.path = "/externalscaler.ExternalScaler/StreamIsActive",
         .is_server_streaming = true,
         .is_state_stream = true,
         .message = stream_is_active,
         .ended = service_stream_ended},
        {.path = "/externalscaler.ExternalScaler/StreamMetricSpec",
         .is_server_streaming = true,
         .is_state_stream = true,
         .message = stream_metric_spec,
         .ended = service_stream_ended},
    };
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        service_add_method(s, &methods[i]);
}
