/* Our Node service: Explain. */
#include "service/service_private.h"

static void explain(struct rpc_call *call, struct str request, void *context)
{
    enum { TEXT_MAX = 256 << 10 };
    struct service *s = context;
    const Kedagpuscaler__V1__ExplainRequest *asked =
        service_decode(call, rpc_call_arena(call), request, &kedagpuscaler__v1__explain_request__descriptor);
    if (!asked)
        return;
    struct err e;
    struct trigger *t = service_trigger(s, call, asked->scaledobjectref, &e);
    if (!t) {
        rpc_call_fail(call, &e);
        return;
    }
    struct service_question question = service_question_of(call, "Explain", TRIGGER_ASK_ALL, asked->scaledobjectref, t);
    struct service_answer answer;
    ARENA_AUTO struct arena arena;
    arena_init(&arena, SERVICE_EVALUATION_MAX);
    service_ask(s, &question, &arena, &answer);
    BUF_AUTO struct buf text;
    BUF_AUTO struct buf json;
    struct json writer;
    buf_init(&text, TEXT_MAX);
    buf_init(&json, TEXT_MAX);
    json_init(&writer, &json, 0);
    s->config.evaluator.explain(s->config.evaluator.context, &question, &answer, &text, &writer);

    Kedagpuscaler__V1__ExplainResponse response;
    kedagpuscaler__v1__explain_response__init(&response);
    response.text = (char *)(uintptr_t)buf_cstr(&text);
    response.json = (char *)(uintptr_t)buf_cstr(&json);
    if (text.is_overflowed || json.is_overflowed)
        rpc_call_finish(call, ERR_RESOURCE_EXHAUSTED, "the explanation is too long: choose GPUs, or ask /metrics");
    else
        service_reply(call, &response.base);
    trigger_unref(t);
}

void service_add_node(struct service *s)
{
    static const struct rpc_method method = {
        .path = "/kedagpuscaler.v1.Node/Explain", .deadline_ns = SERVICE_DEADLINE_NS, .message = explain};
    service_add_method(s, &method);
}
