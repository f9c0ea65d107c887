/* Questions of KEDA and of people to workload/: which facts, which memory. */
#include "hub/private.h"

#include <string.h>

/* The same error to both questions. */
static void refuse(struct service_answer *ret, enum err_class class, const char *text)
{
    *ret = (struct service_answer){.value = 0};
    (void)err_set(&ret->value_error, class, "%s", text);
    ret->active_error = ret->value_error;
}

static const char *rule_name(enum scaling_rule rule)
{
    static const char *const names[] = {
#define X(id, class, sentence) [SCALING_RULE_##id] = #id,
        SCALING_RULES(X)
#undef X
    };
    return rule < ARRAY_LEN(names) ? names[rule] : "unknown";
}

static void count(struct hub *h, const struct workload_answer *answer)
{
    char reason[32];
    (void)str_copy(reason, sizeof(reason), str_of(answer->is_cluster ? "CLUSTER" : rule_name(answer->result.rule)));
    str_lower(reason);
    const char *labels[] = {reason};
    metric_add(metric_series(h->decisions, labels), 1);
}

/* The workload that the question is about, and its facts; facts->ns is NULL where it is none that is known. Returns -1
 * where the arena is full. */
static int find_facts(struct hub *h, struct cluster_workload *w, struct arena *arena, struct workload_facts *ret)
{
    *ret = (struct workload_facts){.ns = NULL};
    if (!w)
        return 0;
    if (cluster_facts(w, arena, ret) < 0)
        return -1;
    ret->is_api_synced = ret->is_api_synced && hub_is_settled(h);
    return 0;
}

static struct workload_memory *find_memory(struct hub *h, struct cluster_workload *w, const struct trigger *t)
{
    if (w)
        return cluster_memory(w, t);
    if (!h->loose || workload_memory_trigger(h->loose) != t) {
        workload_memory_free(h->loose);
        h->loose = workload_memory_new(t);
    }
    return h->loose;
}

static void answer(void *context, const struct service_question *question, struct arena *arena,
                   struct service_answer *ret)
{
    struct hub *h = context;
    const struct trigger *t = question->trigger;
    struct cluster_workload *w = cluster_ask(h->cluster, question->ns, question->name, t->pod_selector);
    struct hub_answer *detail = arena_alloc(arena, sizeof(*detail));
    if (!detail || find_facts(h, w, arena, &detail->facts) < 0) {
        refuse(ret, ERR_RESOURCE_EXHAUSTED, "more pods than one call may look at");
        return;
    }
    if (!w && t->scope == TRIGGER_WORKLOAD) {
        refuse(ret, ERR_FAILED_PRECONDITION,
               "there is no ScaledObject of this name with an external trigger: scope workload measures the pods of "
               "one; to ask by hand, name one that exists or set scope: cluster");
        return;
    }
    workload_evaluate(find_memory(h, w, t), detail->facts.ns ? &detail->facts : NULL, &h->nodes, net_now_ns(h->loop),
                      arena, &detail->answer);
    const struct workload_answer *a = &detail->answer;
    if (question->asked & TRIGGER_ASK_VALUE)
        count(h, a);
    *ret = (struct service_answer){.value = a->value,
                                   .value_error = a->value_error,
                                   .is_active = a->is_active,
                                   .is_above = a->is_above,
                                   .active_error = a->active_error,
                                   .detail = detail};
}

static void explain(void *context, const struct service_question *question, const struct service_answer *ret,
                    struct buf *text, struct json *json)
{
    (void)context;
    (void)question;
    const struct hub_answer *detail = ret->detail;
    if (!detail) {
        (void)buf_printf(text, "%s: %s\n", err_class_name(ret->value_error.class), ret->value_error.text);
        json_object_begin(json);
        json_kv_string(json, "error", ret->value_error.text);
        json_object_end(json);
        return;
    }
    const struct workload_facts *facts = detail->facts.ns ? &detail->facts : NULL;
    workload_explain_text(facts, &detail->answer, text);
    workload_explain_json(facts, &detail->answer, json);
}

struct service_evaluator hub_evaluator(struct hub *h)
{
    return (struct service_evaluator){.answer = answer, .explain = explain, .context = h};
}

const struct hub_answer *hub_look(struct hub *h, struct cluster_workload *w, struct workload_memory *m,
                                  struct arena *arena)
{
    struct hub_answer *detail = arena_alloc(arena, sizeof(*detail));
    if (!detail || find_facts(h, w, arena, &detail->facts) < 0)
        return NULL;
    workload_evaluate(m, &detail->facts, &h->nodes, net_now_ns(h->loop), arena, &detail->answer);
    return detail;
}
