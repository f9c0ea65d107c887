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

static void count(struct hub *h, const char *reason)
{
    char lower[32];
    (void)str_copy(lower, sizeof(lower), str_of(reason));
    str_lower(lower);
    const char *labels[] = {lower};
    metric_add(metric_series(h->decisions, labels), 1);
}

/* The rule that decided; "refused" where none was asked. */
static const char *reason_of(struct hub *h, const struct workload_answer *answer)
{
    bool is_refused = answer->value_error.class != ERR_NONE && answer->result.rule == SCALING_RULE_ZERO;
    return !hub_is_settled(h)   ? "not_yet"
           : answer->is_cluster ? "cluster"
           : is_refused         ? "refused"
                                : rule_name(answer->result.rule);
}

/* The workload that the question is about, and its facts; facts->ns is NULL where it is none that is known. Returns -1
 * where the arena is full. */
static int find_facts(struct cluster_workload *w, struct arena *arena, struct workload_facts *ret)
{
    *ret = (struct workload_facts){.ns = NULL};
    if (!w)
        return 0;
    return cluster_facts(w, arena, ret);
}

/* Until everybody has been heard there is no value and no word about idleness: a part of the fleet is not the fleet. */
static void evaluate(struct hub *h, struct workload_memory *m, const char *ns, struct arena *arena,
                     struct hub_answer *ret)
{
    struct workload_answer *a = &ret->answer;
    const struct workload_facts nobody = {.ns = ns, .name = ""}; /* endpoints are named from somewhere all the same */
    workload_evaluate(m, ret->facts.ns ? &ret->facts : &nobody, &h->nodes, net_now_ns(h->loop), arena, a);
    if (hub_is_settled(h) || a->value_error.class == ERR_FAILED_PRECONDITION)
        return;
    (void)err_set(&a->value_error, ERR_UNAVAILABLE, "not yet: %s", hub_waits_for(h));
    a->active_error = a->value_error;
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

/* The HPA makes another count of this answer, as far as its bounds let it. */
static bool changes_count(const struct hub_answer *detail)
{
    const struct workload_facts *facts = &detail->facts;
    const struct workload_answer *a = &detail->answer;
    if (a->is_cluster || a->value_error.class != ERR_NONE || !facts->hpa)
        return false;
    int64_t count = a->sent.proposal;
    count = count < facts->hpa->min ? facts->hpa->min : count > facts->hpa->max ? facts->hpa->max : count;
    return count != facts->spec;
}

static void answer(void *context, const struct service_question *question, struct arena *arena,
                   struct service_answer *ret)
{
    struct hub *h = context;
    const struct trigger *t = question->trigger;
    struct cluster_workload *w = cluster_ask(h->cluster, question->ns, question->name, t->pod_selector);
    struct hub_answer *detail = arena_alloc(arena, sizeof(*detail));
    bool has_value = question->asked & TRIGGER_ASK_VALUE;
    if (!detail || find_facts(w, arena, &detail->facts) < 0) {
        refuse(ret, ERR_RESOURCE_EXHAUSTED, "more pods than one call may look at");
        return;
    }
    if (!w && t->scope == TRIGGER_WORKLOAD) {
        if (has_value)
            count(h, "refused");
        refuse(ret, ERR_FAILED_PRECONDITION,
               "there is no ScaledObject of this name with an external trigger: scope workload measures the pods of "
               "one; to ask by hand, name one that exists or set scope: cluster");
        return;
    }
    struct workload_memory *memory = find_memory(h, w, t);
    evaluate(h, memory, question->ns, arena, detail);
    const struct workload_answer *a = &detail->answer;
    if (question->asked != TRIGGER_ASK_ALL) /* a person's, who wants to see what KEDA was told */
        workload_memory_note(memory, question->asked, a);
    if (has_value)
        count(h, reason_of(h, a));
    if (has_value && w && changes_count(detail))
        cluster_expect_change(w);
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
    struct hub *h = context;
    const struct hub_answer *detail = ret->detail;
    if (!detail) {
        (void)buf_printf(text, "%s: %s\n", err_class_name(ret->value_error.class), ret->value_error.text);
        json_object_begin(json);
        json_kv_string(json, "error", ret->value_error.text);
        json_object_end(json);
        return;
    }
    struct workload_facts facts = detail->facts;
    const struct cluster_workload *w = cluster_find(h->cluster, question->ns, question->name);
    facts.n_scalers = w ? cluster_count_scalers(w) : 0;
    workload_explain_text(facts.ns ? &facts : NULL, &detail->answer, text);
    workload_explain_json(facts.ns ? &facts : NULL, &detail->answer, json);
}

/* ---- what an answer waits for ---- */

/* Scope cluster measures the page itself, as reference A.12 18 and 19 want it: not older than the question. The pages
 * of pods are read all the time. */
static struct service_wait *prepare(void *context, const struct service_question *question,
                                    void (*ready)(void *ready_context), void *ready_context)
{
    const struct hub *h = context;
    return (struct service_wait *)daemon_engines_ask(h->engines, question->trigger, question->ns, ready, ready_context);
}

static void cancel(void *context, struct service_wait *wait)
{
    (void)context;
    engine_ask_cancel((struct engine_ask *)wait);
}

struct service_evaluator hub_evaluator(struct hub *h)
{
    return (struct service_evaluator){
        .prepare = prepare, .cancel = cancel, .answer = answer, .explain = explain, .context = h};
}

const struct hub_answer *hub_look(struct hub *h, struct cluster_workload *w, struct workload_memory *m,
                                  struct arena *arena)
{
    struct hub_answer *detail = arena_alloc(arena, sizeof(*detail));
    if (!detail || find_facts(w, arena, &detail->facts) < 0)
        return NULL;
    evaluate(h, m, cluster_ns(w), arena, detail);
    return detail;
}
