/* The unary calls of KEDA's ExternalScaler: IsActive, GetMetricSpec, GetMetrics. keda.md sections 1, 5 and 13. */
#include "service/service_private.h"

#include <math.h>

/* A value or target as KEDA before 2.17 reads it. */
static int64_t rounded(double value, int64_t least)
{
    int64_t whole = (int64_t)llround(value);
    return whole < least ? least : whole;
}

void service_fill_spec(Externalscaler__MetricSpec *spec, const struct trigger *t)
{
    externalscaler__metric_spec__init(spec);
    spec->metricname = (char *)(uintptr_t)t->metric_name; /* protobuf-c's structs know no const */
    spec->targetsize = rounded(t->target, 1);
    spec->targetsizefloat = t->target;
}

/* The trigger of a reference (the caller's reference count); NULL after the call was failed. */
static struct trigger *get_trigger(struct service *s, struct rpc_call *call, const Externalscaler__ScaledObjectRef *ref)
{
    struct err e;
    struct trigger *t = service_trigger(s, call, ref, &e);
    if (t)
        return t;
    if (ref)
        service_subject_fail(service_subject(s, ref->namespace_, ref->name, ""), SUBJECT_ERRORS);
    rpc_call_fail(call, &e);
    return NULL;
}

static void get_metric_spec(struct rpc_call *call, struct str request, void *context)
{
    struct service *s = context;
    const Externalscaler__ScaledObjectRef *ref =
        service_decode(call, rpc_call_arena(call), request, &externalscaler__scaled_object_ref__descriptor);
    if (!ref)
        return;
    struct trigger *t = get_trigger(s, call, ref);
    if (!t)
        return;
    Externalscaler__MetricSpec spec, *specs[] = {&spec};
    Externalscaler__GetMetricSpecResponse response;
    service_fill_spec(&spec, t);
    externalscaler__get_metric_spec_response__init(&response);
    response.n_metricspecs = 1;
    response.metricspecs = specs;

    service_subject_show(service_subject(s, ref->namespace_, ref->name, t->metric_name), SUBJECT_TARGET, t->target);
    service_reply(call, &response.base);
    trigger_unref(t);
}

/* KEDA asks with the name of the spec, in lower case before 2.12, and with an `sN-` prefix before 2.7. Another name is
 * answered all the same (there is one metric a trigger), as the reference does; the answer echoes what was asked. */
static void reply_value(struct rpc_call *call, const char *asked_name, const struct trigger *t, double v)
{
    Externalscaler__MetricValue value, *values[] = {&value};
    Externalscaler__GetMetricsResponse response;
    externalscaler__metric_value__init(&value);
    value.metricname = (char *)(uintptr_t)(*asked_name ? asked_name : t->metric_name);
    value.metricvalue = rounded(v, 0);
    value.metricvaluefloat = v;
    /* KEDA takes the integer where the float is 0: a value that rounds to 1 while the float is > 0 is never mixed up,
     * because a float > 0 wins. */
    externalscaler__get_metrics_response__init(&response);
    response.n_metricvalues = 1;
    response.metricvalues = values;
    service_reply(call, &response.base);
}

static void finish_value(struct service *s, struct rpc_call *call, const struct service_question *question,
                         const void *message, const struct service_answer *answer)
{
    const Externalscaler__GetMetricsRequest *asked = message;
    const struct trigger *t = question->trigger;
    struct subject *subject = service_subject(s, question->ns, question->name, t->metric_name);
    if (answer->value_error.class != ERR_NONE) {
        service_subject_fail(subject, SUBJECT_VALUE);
        rpc_call_fail(call, &answer->value_error);
        return;
    }
    service_subject_show(subject, SUBJECT_VALUE, answer->value);
    reply_value(call, asked->metricname, t, answer->value);
}

static void get_metrics(struct rpc_call *call, struct str request, void *context)
{
    struct service *s = context;
    const Externalscaler__GetMetricsRequest *asked =
        service_decode(call, rpc_call_arena(call), request, &externalscaler__get_metrics_request__descriptor);
    if (!asked)
        return;
    struct trigger *t = get_trigger(s, call, asked->scaledobjectref);
    if (!t)
        return;
    struct service_question question =
        service_question_of(call, "GetMetrics", TRIGGER_ASK_VALUE, asked->scaledobjectref, t);
    service_unary(s, call, &question, asked, t, finish_value);
}

static void finish_activity(struct service *s, struct rpc_call *call, const struct service_question *question,
                            const void *message, const struct service_answer *answer)
{
    (void)message;
    struct subject *subject = service_subject(s, question->ns, question->name, question->trigger->metric_name);
    if (answer->active_error.class != ERR_NONE) {
        service_subject_fail(subject, SUBJECT_ACTIVE);
        rpc_call_fail(call, &answer->active_error);
        return;
    }
    service_subject_show(subject, SUBJECT_ACTIVE, answer->is_active);
    Externalscaler__IsActiveResponse response;
    externalscaler__is_active_response__init(&response);
    response.result = answer->is_active;
    service_reply(call, &response.base);
}

static void is_active(struct rpc_call *call, struct str request, void *context)
{
    struct service *s = context;
    const Externalscaler__ScaledObjectRef *ref =
        service_decode(call, rpc_call_arena(call), request, &externalscaler__scaled_object_ref__descriptor);
    if (!ref)
        return;
    struct trigger *t = get_trigger(s, call, ref);
    if (!t)
        return;
    struct service_question question = service_question_of(call, "IsActive", TRIGGER_ASK_ACTIVITY, ref, t);
    service_unary(s, call, &question, ref, t, finish_activity);
}

void service_add_external_scaler(struct service *s)
{
    static const struct rpc_method spec = {.path = "/externalscaler.ExternalScaler/GetMetricSpec",
                                           .deadline_ns = SERVICE_DEADLINE_NS,
                                           .message = get_metric_spec};
    service_add_method(s, &spec);
    service_add_unary(s, "/externalscaler.ExternalScaler/GetMetrics", get_metrics);
    service_add_unary(s, "/externalscaler.ExternalScaler/IsActive", is_active);
}
