/* Where the answers of an agent come from: the newest snapshot, and for triggers that name an endpoint its page, which
 * is read inside the call (reference A.12 18, 19). */
#include "agent/agent_private.h"

static int64_t current_ns(void *context)
{
    const struct agent *a = context;
    return net_now_ns(a->loop);
}

static struct service_wait *prepare(void *context, const struct service_question *question,
                                    void (*ready)(void *ready_context), void *ready_context)
{
    const struct agent *a = context;
    return (struct service_wait *)daemon_engines_ask(a->engines, question->trigger, question->ns, ready, ready_context);
}

static void cancel(void *context, struct service_wait *wait)
{
    (void)context;
    engine_ask_cancel((struct engine_ask *)wait);
}

static const struct signals_feed *page(void *context, const struct service_question *question, const char **ret_why)
{
    const struct agent *a = context;
    const struct trigger *t = question->trigger;
    struct daemon_endpoint asked = {
        .url = trigger_endpoint(t), .ns = question->ns, .metric = t->engine_metric, .trigger = t};
    return daemon_engines_endpoint(a->engines, &asked, ret_why);
}

struct service_source agent_source(struct agent *a)
{
    return (struct service_source){.current = agent_newest,
                                   .now_ns = current_ns,
                                   .prepare = prepare,
                                   .cancel = cancel,
                                   .page = page,
                                   .context = a};
}

void agent_write_state(void *context, struct buf *out)
{
    const struct agent *a = context;
    agent_write_driver(context, out);
    engine_write_state(daemon_engines_engine(a->engines), out);
}
