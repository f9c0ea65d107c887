/* Our Node service: Explain. */
#include "service/service_private.h"

static void finish_explain(struct service *s, struct rpc_call *call, const struct service_question *question,
                           const void *message, const struct service_answer *answer)
{
    enum { TEXT_MAX = 256 << 10 };
    (void)message;
    BUF_AUTO struct buf text;
    BUF_AUTO struct buf json;
    struct json writer;
    buf_init(&text, TEXT_MAX);
    buf_init(&json, TEXT_MAX);
    json_init(&writer, &json, 0);
    s->config.evaluator.explain(s->config.evaluator.context, question, answer, &text, &writer);

    Kedagpuscaler__V1__ExplainResponse response;
    kedagpuscaler__v1__explain_response__init(&response);
    response.text = (char *)(uintptr_t)buf_cstr(&text);
    response.json = (char *)(uintptr_t)buf_cstr(&json);
    if (text.is_overflowed || json.is_overflowed)
        rpc_call_finish(call, ERR_RESOURCE_EXHAUSTED, "the explanation is too long: choose GPUs, or ask /metrics");
    else
        service_reply(call, &response.base);
}

static void explain(struct rpc_call *call, struct str request, void *context)
{
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
    service_unary(s, call, &question, asked, t, finish_explain);
}

void service_add_node(struct service *s)
{
    service_add_unary(s, "/kedagpuscaler.v1.Node/Explain", explain);
}
