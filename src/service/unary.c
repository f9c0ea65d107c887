/* Unary calls about a trigger whose answer may have to wait until something was read: an engine's page, asked for when
 * the call comes. Owns such calls while they wait; what is read, and for how long at most, is the evaluator's. */
#include "service/service_private.h"

#include <stdlib.h>

/* A call that waits. What it was asked stays where it was decoded, in the call's arena. */
struct unary {
    struct service *s;
    struct rpc_call *call;
    struct service_question question;
    struct trigger *trigger; /* a reference */
    const void *message;
    service_finish *finish;
    struct service_wait *wait;
};

static void answer(struct service *s, struct rpc_call *call, const struct service_question *question,
                   const void *message, service_finish *finish)
{
    struct service_answer ret;
    ARENA_AUTO struct arena arena;
    arena_init(&arena, SERVICE_EVALUATION_MAX);
    service_ask(s, question, &arena, &ret);
    finish(s, call, question, message, &ret);
}

static void unary_free(struct unary *u)
{
    trigger_unref(u->trigger);
    free(u);
}

/* What the answer waited for is there, or will not come. */
static void ready(void *context)
{
    struct unary *u = context;
    u->wait = NULL;
    rpc_call_set_state(u->call, NULL);
    answer(u->s, u->call, &u->question, u->message, u->finish);
    unary_free(u);
}

void service_unary(struct service *s, struct rpc_call *call, const struct service_question *question,
                   const void *message, struct trigger *t, service_finish *finish)
{
    const struct service_evaluator *evaluator = &s->config.evaluator;
    struct unary *u = NULL;
    if (evaluator->prepare) {
        u = mem_new(struct unary);
        *u = (struct unary){
            .s = s, .call = call, .question = *question, .trigger = t, .message = message, .finish = finish};
        u->wait = evaluator->prepare(evaluator->context, &u->question, ready, u);
    }
    if (!u || !u->wait) {
        free(u);
        answer(s, call, question, message, finish);
        trigger_unref(t);
        return;
    }
    rpc_call_set_state(call, u);
}

void service_unary_ended(struct rpc_call *call, void *context)
{
    (void)context;
    struct unary *u = rpc_call_state(call);
    if (!u) /* it did not wait, or has its answer */
        return;
    const struct service_evaluator *evaluator = &u->s->config.evaluator;
    evaluator->cancel(evaluator->context, u->wait);
    unary_free(u);
}
