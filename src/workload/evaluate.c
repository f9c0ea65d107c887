/* The answer for a workload: what can be refused at once, then the pods as they are observed, scaling's rules on them,
 * and what the HPA is to be sent. */
#include "workload/look.h"

#include "workload/wake.h"

#include <assert.h>
#include <string.h>

enum { NAMED_MAX = 3, REASONS_BYTES = 4096 };

static void refuse_both(struct workload_answer *ret, const struct err *e)
{
    ret->value_error = ret->active_error = *e;
}

/* ---- before any pod is looked at ---- */

static int refuse_early(const struct trigger *t, const struct workload_facts *facts, const struct workload_fleet *fleet,
                        struct err *e)
{
    if (t->scope == TRIGGER_NODE)
        return err_set(
            e, ERR_FAILED_PRECONDITION,
            "scope node is one node's, and is measured by its agent: point scalerAddress at an agent, or set "
            "scope: workload");
    if (t->scope == TRIGGER_CLUSTER)
        return 0;
    for (size_t i = 0; i < t->n_parts; i++)
        if (refuse_early(t->parts[i], facts, fleet, e) < 0)
            return -1;
    if (t->n_parts == 0 && trigger_metric_is_engine(t->metric) && !fleet->page)
        return err_set(e, ERR_FAILED_PRECONDITION,
                       "metric type %s is read from the metrics pages of the workload's pods, and pages are not "
                       "fetched here",
                       trigger_metric_name(t->metric));
    if (!facts || !facts->is_api_synced)
        return err_set(e, ERR_UNAVAILABLE, "not yet: the Kubernetes API has not been read in whole%s%s",
                       facts && facts->scale_error[0] ? ": " : "", facts ? facts->scale_error : "");
    if (!facts->is_known)
        return err_set(
            e, ERR_UNAVAILABLE,
            "no ScaledObject %s/%s is known here: it may be too new, or may not be read (then podSelector in "
            "the metadata names the pods)%s%s",
            facts->ns, facts->name, facts->scale_error[0] ? ": " : "", facts->scale_error);
    return 0;
}

/* ---- after it ---- */

/* A group counts as one replica; its members share it. */
static const struct scaling_replica *find_group(const struct scaling_result *r, int64_t group)
{
    for (size_t i = 0; i < r->n_items; i++)
        if (r->items[i].group == group)
            return &r->items[i];
    return NULL;
}

static void link_replicas(const struct look *look, const struct scaling_result *r)
{
    for (size_t i = 0; i < r->n_items; i++) {
        const struct scaling_replica *item = &r->items[i];
        for (size_t k = item->first_pod; !item->is_place && k < look->facts->n_pods; k++)
            if (look->inputs[k].counted == &look->pods[item->first_pod]) {
                look->inputs[k].replica = item;
                break;
            }
    }
    for (size_t i = 0; i < look->facts->n_pods; i++) {
        struct workload_input *input = &look->inputs[i];
        if (!input->replica && input->counted && input->counted->group >= 0)
            input->replica = find_group(r, input->counted->group);
    }
}

static bool is_about_pods(enum scaling_rule rule)
{
    return rule == SCALING_RULE_NOTHING_READ || rule == SCALING_RULE_UNSUPPORTED || rule == SCALING_RULE_UNSHARED ||
           rule == SCALING_RULE_MISSING_IS_ERROR || rule == SCALING_RULE_NO_GPU || rule == SCALING_RULE_NO_SIGNAL;
}

/* The first few pods, and why they could not be read. */
static void add_reasons(const struct look *look, const struct scaling_result *r, struct err *e)
{
    BUF_AUTO struct buf text;
    buf_init(&text, REASONS_BYTES);
    size_t n = 0;
    for (size_t i = 0; i < look->facts->n_pods && is_about_pods(r->rule); i++) {
        const struct workload_input *input = &look->inputs[i];
        bool is_asked = input->counted && input->counted->reading != SCALING_READ_OK &&
                        scaling_ought_to_be_read(&look->rules, input->counted);
        if (!is_asked || !input->text[0] || n++ >= NAMED_MAX)
            continue;
        (void)buf_printf(&text, "; pod %s: %s", input->pod->name, input->text);
    }
    if (n > NAMED_MAX)
        (void)buf_printf(&text, "; and %zu more", n - NAMED_MAX);
    if (r->rule == SCALING_RULE_NO_SCALE && look->facts->scale_error[0])
        (void)buf_printf(&text, ": %s", look->facts->scale_error);
    struct err plain = *e;
    if (text.len > 0)
        (void)err_set(e, plain.class, "%s%s", plain.text, buf_cstr(&text));
}

/* One signal of the pods as they were observed. */
static void evaluate_pods(const struct look *look, struct workload_part *ret)
{
    const struct workload_facts *facts = look->facts;
    const struct workload_memory *m = look->memory;
    double *ages = (double *)arena_alloc(look->arena, (m->places.len + 1) * sizeof(*ages));
    size_t n_ages = ages ? m->places.len : 0;
    for (size_t i = 0; i < n_ages; i++)
        ages[i] = (double)(look->now_ns - m->places.items[i]) / (double)NS_PER_S;
    struct scaling_workload workload = {
        .pods = look->pods,
        .n_pods = look->n_pods,
        .is_scale_known = facts->is_scale_known,
        .replicas = {.spec = facts->spec, .status = facts->status, .ready = look->n_ready},
        .place_ages_s = ages,
        .n_place_ages = n_ages,
    };
    scaling_evaluate(&look->rules, &workload, look->arena, &ret->result);
    link_replicas(look, &ret->result);
    if (ret->result.error.class != ERR_NONE)
        add_reasons(look, &ret->result, &ret->result.error);
    if (ret->result.active_error.class != ERR_NONE)
        add_reasons(look, &ret->result, &ret->result.active_error);
    ret->mode = look->mode;
    ret->rules = look->rules;
    ret->inputs = look->inputs;
}

/* Returns false where the arena is full. */
static bool evaluate_signal(const struct look *base, struct workload_memory *m, double target,
                            struct workload_part *ret)
{
    struct look look = *base;
    look.memory = m;
    look.trigger = ret->trigger = m->trigger;
    look.rules = workload_rules(m->trigger, base->facts);
    look.rules.target = target > 0 ? target : look.rules.target;
    if (!workload_observe(&look))
        return false;
    evaluate_pods(&look, ret);
    return true;
}

/* Several signals: each by itself, then the one that is busiest relative to its target. */
static bool evaluate_parts(const struct look *base, struct workload_answer *ret, struct workload_part *decided)
{
    struct workload_memory *m = base->memory;
    struct workload_part *parts = (struct workload_part *)arena_alloc(base->arena, m->n_parts * sizeof(*parts));
    struct scaling_result results[TRIGGER_PARTS_MAX], combined;
    if (!parts)
        return false;
    for (size_t i = 0; i < m->n_parts; i++) {
        if (!evaluate_signal(base, m->parts[i], 0, &parts[i]))
            return false;
        results[i] = parts[i].result;
    }
    scaling_combine(results, m->n_parts, ret->hpa.target, &combined);
    *decided = parts[combined.part < m->n_parts ? combined.part : 0];
    decided->result = combined;
    ret->parts = parts;
    ret->n_parts = m->n_parts;
    return true;
}

/* Demand that no pod can show. */
static void apply_wake(const struct look *base, struct scaling_result *r, struct workload_answer *ret)
{
    struct workload_wake wake;
    const char *why;
    const struct signals_feed *feed = workload_find_wake(base->trigger, base->facts, base->fleet, &why);
    workload_wake(base->trigger, feed, why, base->now_ns, &wake);
    const char *text = arena_strndup(base->arena, wake.text, strlen(wake.text));
    ret->wake = wake.state;
    ret->wake_text = text ? text : "";
    scaling_apply_wake(r, wake.state, ret->wake_text);
}

static void take_decided(const struct workload_part *decided, const struct look *base, struct workload_answer *ret)
{
    ret->mode = decided->mode;
    ret->rules = decided->rules;
    ret->result = decided->result;
    ret->inputs = decided->inputs;
    ret->n_inputs = base->facts->n_pods;
    ret->is_active = ret->result.is_active;
    ret->is_above = scaling_active_is_measured(ret->result.active_rule);
    ret->active_error = ret->result.active_error;
    scaling_for_hpa(&ret->hpa, &ret->result, &ret->sent);
    ret->value = ret->sent.value;
}

static void evaluate_workload(const struct look *base, struct workload_answer *ret)
{
    struct err refused = {.class = ERR_NONE};
    const struct kube_hpa_metric *metric;
    if (workload_find_hpa(base->trigger, base->facts, &ret->hpa, &metric, &refused) == 0 &&
        base->facts->hpa_state == WORKLOAD_HPA_NOT_READ && !ret->hpa.has_modifiers)
        (void)err_set(&refused, ERR_UNAVAILABLE,
                      "not yet: HPAs have not been read, and type and target come from them");
    struct workload_part decided;
    bool is_done = base->memory->n_parts > 0 ? evaluate_parts(base, ret, &decided)
                                             : evaluate_signal(base, base->memory, ret->hpa.target, &decided);
    if (!is_done) {
        (void)err_set(&refused, ERR_RESOURCE_EXHAUSTED, "%s", scaling_rule_sentence(SCALING_RULE_TOO_MANY));
        refuse_both(ret, &refused);
        return;
    }
    apply_wake(base, &decided.result, ret);
    take_decided(&decided, base, ret);
    bool is_refused = refused.class != ERR_NONE && ret->result.error.class == ERR_NONE;
    ret->value_error = is_refused && ret->result.rule != SCALING_RULE_ZERO ? refused : ret->sent.error;
    if (ret->value_error.class != ERR_NONE)
        ret->value = 0;
}

void workload_evaluate(struct workload_memory *m, const struct workload_facts *facts,
                       const struct workload_fleet *fleet, int64_t now_ns, struct arena *arena,
                       struct workload_answer *ret)
{
    const struct trigger *t = m->trigger;
    *ret = (struct workload_answer){
        .trigger = t, .now_ns = now_ns, .is_cluster = t->scope == TRIGGER_CLUSTER, .wake_text = "", .last = &m->last};
    struct err e;
    if (refuse_early(t, facts, fleet, &e) < 0 || workload_ask(m, fleet, now_ns, &e) < 0) {
        refuse_both(ret, &e);
        return;
    }
    if (ret->is_cluster) {
        workload_evaluate_cluster(m, facts ? facts->ns : "", fleet, now_ns, arena, ret);
        return;
    }
    assert(facts); /* without them scope workload was refused */
    struct look look = {.memory = m, .trigger = t, .facts = facts, .fleet = fleet, .now_ns = now_ns, .arena = arena};
    evaluate_workload(&look, ret);
}
