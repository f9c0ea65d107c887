/* The evaluator of a program that reads GPUs itself: triggers of scope node on the newest snapshot, or on the page that
 * they name. */
#include "service/service_private.h"

/* Where even the evaluation does not fit into the call's memory. */
static void refuse(struct service_answer *ret)
{
    (void)err_set(&ret->value_error, ERR_RESOURCE_EXHAUSTED, "more GPUs than a call may look at");
    ret->active_error = ret->value_error;
}

static void answer(void *context, const struct service_question *question, struct arena *arena,
                   struct service_answer *ret)
{
    struct service *s = context;
    *ret = (struct service_answer){.value = 0};
    struct trigger_evaluation *evaluation = arena_alloc(arena, sizeof(*evaluation));
    if (!evaluation) {
        refuse(ret);
        return;
    }
    const struct snapshot *snapshot = s->config.source.current(s->config.source.context);
    const struct trigger *t = question->trigger;
    const struct service_source *source = &s->config.source;
    if (trigger_endpoint(t) && source->page) {
        const char *why = "";
        const struct signals_feed *feed = source->page(source->context, question, &why);
        trigger_evaluate_page(t, feed, why, service_now_ns(s), question->asked, evaluation);
    } else {
        trigger_evaluate(t, snapshot, service_now_ns(s), question->asked, arena, evaluation);
    }
    *ret = (struct service_answer){.value = evaluation->value,
                                   .value_error = evaluation->value_error,
                                   .is_active = evaluation->is_active,
                                   .is_above = evaluation->is_above,
                                   .active_error = evaluation->active_error,
                                   .detail = evaluation};
}

static void explain(void *context, const struct service_question *question, const struct service_answer *ret,
                    struct buf *text, struct json *json)
{
    (void)context;
    (void)question;
    if (!ret->detail)
        return;
    trigger_explain_text(ret->detail, text);
    trigger_explain_json(ret->detail, json);
}

static struct service_wait *prepare(void *context, const struct service_question *question,
                                    void (*ready)(void *ready_context), void *ready_context)
{
    const struct service_source *source = &((struct service *)context)->config.source;
    return trigger_endpoint(question->trigger) ? source->prepare(source->context, question, ready, ready_context)
                                               : NULL;
}

static void cancel(void *context, struct service_wait *wait)
{
    const struct service_source *source = &((struct service *)context)->config.source;
    source->cancel(source->context, wait);
}

struct service_evaluator service_snapshot_evaluator(struct service *s)
{
    bool can_wait = s->config.source.prepare && s->config.source.cancel;
    return (struct service_evaluator){.prepare = can_wait ? prepare : NULL,
                                      .cancel = can_wait ? cancel : NULL,
                                      .answer = answer,
                                      .explain = explain,
                                      .context = s};
}
