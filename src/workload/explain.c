/* An answer as sentences for people and as one JSON object (docs/explain.md). It decides nothing: what it shows was
 * decided by evaluate.c, cluster.c, scaling/ and trigger/. */
#include "workload/explain.h"

#include <inttypes.h>
#include <string.h>

/* Lines for pods and their devices; more are counted, not shown. */
enum { ROWS_MAX = 300, AGE_MAX = TIME_DURATION_MAX };

/* ---- what both forms show ---- */

/* What the HPA makes of the answer, as far as bounds and behaviour are known. */
struct outlook {
    bool is_known;
    int64_t bounded; /* its proposal within its bounds */
    int64_t next;    /* what its next sync sets, if it did nothing before */
    struct scaling_behaviour behaviour;
};

static struct outlook outlook_of(const struct workload_facts *facts, const struct workload_answer *a)
{
    struct outlook o = {.is_known = false};
    bool has_proposal = a->value_error.class == ERR_NONE && a->result.rule != SCALING_RULE_ZERO;
    if (!facts || !has_proposal || facts->hpa_state != WORKLOAD_HPA_KNOWN || !facts->hpa)
        return o;
    struct scaling_history history = {.n_proposals = 0};
    o.is_known = true;
    o.behaviour = workload_behaviour(facts->hpa);
    o.bounded = a->sent.proposal < facts->hpa->min   ? facts->hpa->min
                : a->sent.proposal > facts->hpa->max ? facts->hpa->max
                                                     : a->sent.proposal;
    o.next = scaling_hpa_limit(&o.behaviour, &history, 0, facts->spec, a->sent.proposal);
    return o;
}

static const char *hpa_state_name(enum workload_hpa_state state)
{
    static const char *const names[] = {
#define X(id, sentence) [WORKLOAD_HPA_##id] = #id,
        WORKLOAD_HPA_STATES(X)
#undef X
    };
    return names[state];
}

static const char *hpa_state_sentence(enum workload_hpa_state state)
{
    static const char *const sentences[] = {
#define X(id, sentence) [WORKLOAD_HPA_##id] = (sentence),
        WORKLOAD_HPA_STATES(X)
#undef X
    };
    return sentences[state];
}

static const char *type_name(enum scaling_metric_type type)
{
    return type == SCALING_VALUE ? "Value" : "AverageValue";
}

static const char *state_name(const struct workload_input *in)
{
    return in->replica ? scaling_pod_state_name(in->replica->state) : "not_counted";
}

static size_t count_places(const struct workload_answer *a, enum scaling_pod_state state)
{
    size_t n = 0;
    for (size_t i = 0; i < a->result.n_items; i++)
        n += a->result.items[i].is_place && a->result.items[i].state == state;
    return n;
}

/* How many pods are shown: with their devices at most ROWS_MAX lines. */
static size_t shown_pods(const struct workload_answer *a)
{
    size_t rows = 0, n = 0;
    while (n < a->n_inputs) {
        rows += 1 + a->inputs[n].n_devices + workload_count_page_lines(&a->inputs[n]);
        if (rows > ROWS_MAX)
            break;
        n++;
    }
    return n;
}

/* ---- warnings ---- */

static bool has_own_neighbours(const struct workload_answer *a)
{
    for (size_t i = 0; i < a->n_inputs; i++)
        for (size_t k = 0; k < a->inputs[i].n_devices; k++)
            if (a->inputs[i].devices[k].holder && a->inputs[i].devices[k].counted.own_holders > 1)
                return true;
    return false;
}

static bool is_simulated(const struct workload_answer *a)
{
    for (size_t i = 0; i < a->n_inputs; i++)
        if (a->inputs[i].node && a->inputs[i].node->is_simulated)
            return true;
    return false;
}

/* Of this answer. Ids are public, as those of lint. */
static void each_warning(const struct workload_answer *a, workload_told told, void *context)
{
    static const char *const ids[SCALING_WARN_COUNT] = {
#define X(id, sentence) [SCALING_WARN_##id] = #id,
        SCALING_WARNINGS(X)
#undef X
    };
    for (size_t i = 0; i < a->trigger->n_warnings && !a->is_cluster; i++)
        told(context, "trigger", a->trigger->warnings[i]);
    for (unsigned i = 0; i < SCALING_WARN_COUNT; i++)
        if (a->result.warnings & 1U << i)
            told(context, ids[i], scaling_warning_sentence((enum scaling_warning)i));
    if (has_own_neighbours(a))
        told(context, "shared_device",
             "replicas share one GPU: more of them on it add no capacity, only turns at the same one");
    if (is_simulated(a))
        told(context, "simulated", "agents simulate their GPUs: the numbers are of a scenario, not of the workload");
    workload_tell_pages(a, told, context);
    if (a->n_silent_nodes > 0)
        told(context, "silent_nodes", "nodes that have not answered yet are not in the value");
}

/* ---- text ---- */

void workload_put_number(struct buf *out, const char *before, double value, const char *after)
{
    char number[NUM_TEXT_MAX];
    num_format_milli(number, value);
    (void)buf_printf(out, "%s%s%s", before, number, after);
}

void workload_put_age(struct buf *out, double seconds)
{
    char age[AGE_MAX] = "under 1s";
    if (seconds >= 1)
        time_format_duration(age, (int64_t)seconds * NS_PER_S);
    (void)buf_append_str(out, age);
}

static void put_workload(const struct workload_facts *facts, const struct workload_answer *a, struct buf *out)
{
    (void)buf_printf(out, "workload %s/%s: ", facts->ns, facts->name);
    if (facts->is_job) {
        (void)buf_append_str(out, "a ScaledJob, which has no replica count\n");
        return;
    }
    (void)buf_printf(out, "%s %s", facts->target_kind && facts->target_kind[0] ? facts->target_kind : "unknown target",
                     facts->target_name ? facts->target_name : "");
    if (facts->is_scale_known)
        (void)buf_printf(out, ", %" PRId64 " replicas wanted, %" PRId64 " there, %" PRId64 " Ready\n", facts->spec,
                         facts->status, a->result.replicas.ready);
    else
        (void)buf_printf(out, ", its replica count is not known%s%s\n", facts->scale_error[0] ? ": " : "",
                         facts->scale_error);
}

static double seconds_before(const struct workload_answer *a, int64_t then_ns)
{
    return (double)(a->now_ns - then_ns) / (double)NS_PER_S;
}

/* What KEDA was answered last, which may differ from what it would be answered now. */
static void put_last(const struct workload_answer *a, struct buf *out)
{
    const struct workload_asked *last = a->last;
    if (!last || (!last->value_ns && !last->active_ns)) {
        (void)buf_append_str(out, "asked    not yet\n");
        return;
    }
    (void)buf_append_str(out, "asked    ");
    if (last->value_ns) {
        workload_put_age(out, seconds_before(a, last->value_ns));
        (void)buf_append_str(out, " ago: ");
        if (last->value_error.class == ERR_NONE)
            workload_put_number(out, "", last->value, "");
        else
            (void)buf_append_str(out, err_class_name(last->value_error.class));
    }
    if (last->active_ns) {
        (void)buf_append_str(out, last->value_ns ? "; active " : "active ");
        workload_put_age(out, seconds_before(a, last->active_ns));
        (void)buf_printf(out, " ago: %s",
                         last->active_error.class ? err_class_name(last->active_error.class)
                         : last->is_active        ? "yes"
                                                  : "no");
    }
    (void)buf_append_char(out, '\n');
}

static void put_value(const struct workload_answer *a, struct buf *out)
{
    const char *unit = trigger_unit(a->trigger);
    if (a->value_error.class == ERR_NONE)
        workload_put_number(out, "value    ", a->value, " ");
    else
        (void)buf_printf(out, "value    none: %s: %s\n", err_class_name(a->value_error.class), a->value_error.text);
    if (a->value_error.class != ERR_NONE)
        return;
    (void)buf_printf(out, "%s: ", unit);
    scaling_say(&a->rules, &a->result, &a->sent, out);
    (void)buf_append_char(out, '\n');
}

/* Of the ScaledObject, beside the one that asks: what may wake the workload. */
static int64_t count_other_triggers(const struct kube_scaled_object *object)
{
    size_t n = object->n_triggers + object->n_other_triggers;
    return n > 0 ? (int64_t)n - 1 : 0;
}

/* Of several signals the one whose activity it is. */
static const struct trigger *trigger_of_activity(const struct workload_answer *a)
{
    return a->n_parts > 0 ? a->parts[a->result.active_part < a->n_parts ? a->result.active_part : 0].trigger
                          : a->trigger;
}

const struct trigger *workload_trigger_of_pods(const struct workload_answer *a)
{
    return a->n_parts > 0 ? a->parts[a->result.part < a->n_parts ? a->result.part : 0].trigger : a->trigger;
}

static void put_active(const struct workload_facts *facts, const struct workload_answer *a, struct buf *out)
{
    if (a->active_error.class != ERR_NONE) {
        (void)buf_printf(out, "active   unknown: %s: %s\n", err_class_name(a->active_error.class),
                         a->active_error.text);
        return;
    }
    (void)buf_printf(out, "active   %s: %s", a->is_active ? "yes" : "no",
                     scaling_active_sentence(a->result.active_rule));
    const char *unit = trigger_metric_unit(trigger_of_activity(a)->metric);
    if (a->result.in_flight.is_known)
        workload_put_number(out, "; at most ", a->result.in_flight.value, " requests at once in one pod");
    if (a->result.activity.is_known) {
        workload_put_number(out, "; peak ", a->result.activity.value, " ");
        (void)buf_append_str(out, unit);
        workload_put_number(out, ", threshold ", trigger_of_activity(a)->activation, " ");
        (void)buf_append_str(out, unit);
    }
    if (a->result.active_rule == SCALING_ACTIVE_ZERO && facts->scaled_object)
        (void)buf_printf(out, "; the ScaledObject has %" PRId64 " other triggers that may",
                         count_other_triggers(facts->scaled_object));
    if (a->wake_text[0])
        (void)buf_printf(out, "; %s", a->wake_text);
    (void)buf_append_char(out, '\n');
}

/* The value alone asks for another count than the present one, and the HPA lets it pass. */
static bool is_tolerated(const struct workload_facts *facts, const struct workload_answer *a)
{
    return a->result.rule == SCALING_RULE_KNOWN && a->sent.fit == SCALING_FIT_AS_IS &&
           a->sent.proposal == facts->spec && a->result.asks_hi != facts->spec;
}

static void put_outlook(const struct workload_facts *facts, const struct workload_answer *a, struct buf *out)
{
    struct outlook o = outlook_of(facts, a);
    if (!o.is_known)
        return;
    (void)buf_printf(out, "; it answers %" PRId64 "%s, within %" PRId64 " to %" PRId64 " that is %" PRId64,
                     a->sent.proposal, is_tolerated(facts, a) ? ", since the value is within its tolerance" : "",
                     facts->hpa->min, facts->hpa->max, o.bounded);
    if (o.bounded > facts->spec && o.next < o.bounded)
        (void)buf_printf(out, ", of which the next sync may set %" PRId64, o.next);
    if (o.bounded < facts->spec && o.behaviour.down.window_s > 0)
        (void)buf_printf(out, ", once nothing more was asked for in %" PRId64 " s", o.behaviour.down.window_s);
}

static void put_hpa(const struct workload_facts *facts, const struct workload_answer *a, struct buf *out)
{
    (void)buf_printf(out, "hpa      %s", type_name(a->hpa.type));
    workload_put_number(out, ", target ", a->hpa.target, "");
    workload_put_number(out, ", tolerance ", 100 * a->hpa.tolerance_up, " % up");
    workload_put_number(out, " and ", 100 * a->hpa.tolerance_down, " % down");
    (void)buf_printf(out, " (%s)", hpa_state_sentence(facts->hpa_state));
    put_outlook(facts, a, out);
    if (a->value_error.class != ERR_NONE)
        (void)buf_append_str(out, "; without a value it changes nothing, unless a fallback of KEDA acts");
    (void)buf_append_char(out, '\n');
}

static void put_maybe(struct buf *out, const char *before, struct scaling_maybe value)
{
    if (value.is_known)
        workload_put_number(out, before, value.value, "");
    else
        (void)buf_printf(out, "%snone", before);
}

static void put_device(const struct workload_device *wd, const char *unit, struct buf *out)
{
    (void)buf_printf(out, "device   GPU %d %s %s: %s", wd->device->index, wd->device->uuid,
                     wd->device->mig_profile[0] ? wd->device->mig_profile : wd->device->product,
                     scaling_reading_name(wd->counted.reading));
    if (wd->counted.reading == SCALING_READ_OK)
        workload_put_number(out, ", ", wd->counted.value, " ");
    if (wd->counted.reading == SCALING_READ_OK)
        (void)buf_append_str(out, unit);
    if (wd->age_s >= 0) {
        (void)buf_append_str(out, ", read ");
        workload_put_age(out, wd->age_s);
        (void)buf_append_str(out, " ago");
    }
    if (wd->counted.holders > 1)
        (void)buf_printf(out, ", shared by %u pods, %u of this workload", wd->counted.holders, wd->counted.own_holders);
    if (wd->counted.has_shares) {
        workload_put_number(out, ", own part ", wd->counted.share, "");
        workload_put_number(out, " of ", wd->counted.share_sum, "");
    }
    (void)buf_append_str(out, wd->holder ? "\n" : ", simulated\n");
}

static void put_pod(const struct workload_input *in, const char *unit, struct buf *out)
{
    (void)buf_printf(out, "pod      %s on %s: %s", workload_pod_name(in->pod),
                     workload_pod_node(in->pod)[0] ? workload_pod_node(in->pod) : "no node", state_name(in));
    if (in->replica && in->replica->upper.is_known) {
        put_maybe(out, ", value ", in->replica->load.window);
        put_maybe(out, ", counts from ", in->replica->lower);
        put_maybe(out, " to ", in->replica->upper);
    }
    if (in->replica && in->replica->is_preallocated)
        (void)buf_append_str(out, ", by its utilisation");
    if (in->counted && in->counted->condition_age_s.is_known) {
        (void)buf_append_str(out, in->counted->is_ready ? ", Ready for " : ", not Ready for ");
        workload_put_age(out, in->counted->condition_age_s.value);
    }
    if (in->counted && in->counted->missing_for_s > 0) {
        (void)buf_append_str(out, ", missing for ");
        workload_put_age(out, in->counted->missing_for_s);
    }
    (void)buf_printf(out, "%s%s\n", in->text[0] ? ": " : "", in->text);
    workload_put_page(in, out);
    for (size_t i = 0; i < in->n_devices; i++)
        put_device(&in->devices[i], unit, out);
}

static void put_places(const struct workload_answer *a, struct buf *out)
{
    size_t loading = count_places(a, SCALING_POD_LOADING), stuck = count_places(a, SCALING_POD_STUCK);
    if (loading > 0)
        (void)buf_printf(out, "place    %zu without a pod: loading\n", loading);
    if (stuck > 0)
        (void)buf_printf(out, "place    %zu without a pod for longer than warmupSeconds: stuck\n", stuck);
}

static void put_warning(void *context, const char *id, const char *sentence)
{
    struct buf *out = context;
    (void)buf_printf(out, "warning  %s (%s)\n", sentence, id);
}

static void put_lint(void *context, const char *id, const char *sentence)
{
    struct buf *out = context;
    (void)buf_printf(out, "lint     %s (%s)\n", sentence, id);
}

static void put_errors(const struct workload_answer *a, struct buf *out)
{
    (void)buf_printf(out, "value    none: %s: %s\n", err_class_name(a->value_error.class), a->value_error.text);
    (void)buf_printf(out, "active   unknown: %s: %s\n", err_class_name(a->active_error.class), a->active_error.text);
}

static bool has_cluster(const struct workload_answer *a)
{
    return a->is_cluster && a->cluster.trigger;
}

/* Were pods looked at, or was the question refused before? */
static bool has_pods(const struct workload_answer *a)
{
    return !a->is_cluster && a->inputs;
}

static void put_pods(const struct workload_facts *facts, const struct workload_answer *a, struct buf *out)
{
    size_t n = shown_pods(a);
    put_workload(facts, a, out);
    put_value(a, out);
    workload_put_signals(a, out);
    put_active(facts, a, out);
    put_hpa(facts, a, out);
    for (size_t i = 0; i < n; i++)
        put_pod(&a->inputs[i], trigger_metric_unit(workload_trigger_of_pods(a)->metric), out);
    if (n < a->n_inputs)
        (void)buf_printf(out, "pod      and %zu more\n", a->n_inputs - n);
    put_places(a, out);
}

void workload_explain_text(const struct workload_facts *facts, const struct workload_answer *answer, struct buf *out)
{
    size_t from = out->len;
    if (has_cluster(answer)) {
        trigger_explain_text(&answer->cluster, out);
        (void)buf_printf(out, "nodes    %zu, of which %zu have not answered yet\n", answer->n_nodes,
                         answer->n_silent_nodes);
    } else {
        trigger_describe_text(answer->trigger, out);
        if (facts && has_pods(answer))
            put_pods(facts, answer, out);
        else
            put_errors(answer, out);
    }
    put_last(answer, out);
    each_warning(answer, put_warning, out);
    if (facts)
        workload_lint(facts, answer->trigger, put_lint, out);
    buf_make_printable(out, from); /* names and reasons come from elsewhere */
}

/* ---- JSON ---- */

static void known_kv(struct json *out, const char *key, struct scaling_maybe value)
{
    json_kv_maybe(out, key, value.is_known, value.value);
}

static void error_kv(struct json *out, const char *key, const struct err *e)
{
    if (e->class == ERR_NONE)
        return;
    json_key(out, key);
    json_object_begin(out);
    json_kv_string(out, "code", err_class_name(e->class));
    json_kv_string(out, "message", e->text);
    json_object_end(out);
}

static void answer_json(const struct workload_answer *a, struct json *out)
{
    BUF_AUTO struct buf rule;
    buf_init(&rule, 2048);
    bool has_value = a->value_error.class == ERR_NONE, has_active = a->active_error.class == ERR_NONE;
    if (has_pods(a))
        scaling_say(&a->rules, &a->result, &a->sent, &rule);
    json_kv_maybe(out, "value", has_value, a->value);
    json_kv_string(out, "rule", has_pods(a) ? buf_cstr(&rule) : NULL);
    error_kv(out, "valueError", &a->value_error);
    json_key(out, "active");
    if (has_active)
        json_bool(out, a->is_active);
    else
        json_null(out);
    json_kv_string(out, "activeRule", has_active ? scaling_active_sentence(a->result.active_rule) : NULL);
    known_kv(out, "activity", a->result.activity);
    known_kv(out, "mostRequests", a->result.in_flight);
    json_kv_string(out, "wake", a->wake_text[0] ? a->wake_text : NULL);
    error_kv(out, "activeError", &a->active_error);
}

static void workload_json(const struct workload_facts *facts, const struct workload_answer *a, struct json *out)
{
    json_key(out, "workload");
    json_object_begin(out);
    json_kv_string(out, "namespace", facts->ns);
    json_kv_string(out, "name", facts->name);
    json_kv_string(out, "kind", facts->is_job ? "ScaledJob" : "ScaledObject");
    json_kv_string(out, "targetKind", facts->target_kind);
    json_kv_string(out, "targetName", facts->target_name);
    json_kv_maybe(out, "specReplicas", facts->is_scale_known, (double)facts->spec);
    json_kv_maybe(out, "statusReplicas", facts->is_scale_known, (double)facts->status);
    json_kv_string(out, "scaleError", facts->scale_error[0] ? facts->scale_error : NULL);
    json_kv_maybe(out, "otherTriggers", facts->scaled_object != NULL,
                  facts->scaled_object ? (double)count_other_triggers(facts->scaled_object) : 0);
    json_kv_maybe(out, "readyPods", has_pods(a), (double)a->result.replicas.ready);
    json_object_end(out);
}

/* What KEDA was answered last, which may differ from what it would be answered now. */
static void last_json(const struct workload_answer *a, struct json *out)
{
    const struct workload_asked *last = a->last;
    bool has_value = last && last->value_ns, has_active = last && last->active_ns;
    json_key(out, "lastAnswer");
    json_object_begin(out);
    json_kv_maybe(out, "valueSecondsAgo", has_value, has_value ? seconds_before(a, last->value_ns) : 0);
    json_kv_maybe(out, "value", has_value && last->value_error.class == ERR_NONE, has_value ? last->value : 0);
    json_kv_string(out, "valueError", has_value && last->value_error.class ? last->value_error.text : NULL);
    json_kv_maybe(out, "activeSecondsAgo", has_active, has_active ? seconds_before(a, last->active_ns) : 0);
    json_key(out, "active");
    if (has_active && last->active_error.class == ERR_NONE)
        json_bool(out, last->is_active);
    else
        json_null(out);
    json_kv_string(out, "activeError", has_active && last->active_error.class ? last->active_error.text : NULL);
    json_object_end(out);
}

static void interval_json(const struct scaling_result *r, struct json *out)
{
    bool has_low = scaling_rule_has_interval(r->rule), has_high = has_low && r->rule != SCALING_RULE_HOLD_PART;
    json_key(out, "interval");
    json_object_begin(out);
    json_kv_double(out, "target", r->target);
    json_kv_maybe(out, "low", has_low, r->lo);
    json_kv_maybe(out, "high", has_high, r->hi);
    json_kv_maybe(out, "lowAsksFor", has_low, (double)r->asks_lo);
    json_kv_maybe(out, "highAsksFor", has_high, (double)r->asks_hi);
    json_kv_i64(out, "counted", (int64_t)r->n);
    json_kv_i64(out, "withLower", (int64_t)r->n_lower);
    json_kv_maybe(out, "beforeHPA", r->error.class == ERR_NONE, r->value);
    json_kv_bool(out, "isHold", r->is_hold);
    json_object_end(out);
    json_key(out, "states");
    json_object_begin(out);
    for (unsigned i = 0; i < SCALING_POD_STATE_COUNT; i++)
        if (r->counts[i] > 0)
            json_kv_i64(out, scaling_pod_state_name((enum scaling_pod_state)i), (int64_t)r->counts[i]);
    json_object_end(out);
}

static void hpa_json(const struct workload_facts *facts, const struct workload_answer *a, struct json *out)
{
    struct outlook o = outlook_of(facts, a);
    bool is_sent = a->value_error.class == ERR_NONE;
    json_key(out, "hpa");
    json_object_begin(out);
    json_kv_string(out, "state", hpa_state_name(facts->hpa_state));
    json_kv_string(out, "name", facts->hpa ? facts->hpa->meta.name : NULL);
    json_kv_string(out, "type", type_name(a->hpa.type));
    json_kv_double(out, "target", a->hpa.target);
    json_kv_double(out, "toleranceUp", a->hpa.tolerance_up);
    json_kv_double(out, "toleranceDown", a->hpa.tolerance_down);
    json_kv_bool(out, "hasModifiers", a->hpa.has_modifiers);
    json_kv_string(out, "fit", is_sent ? scaling_fit_sentence(a->sent.fit) : NULL);
    json_kv_maybe(out, "wanted", is_sent, (double)a->sent.wanted);
    json_kv_maybe(out, "proposal", is_sent, (double)a->sent.proposal);
    json_kv_maybe(out, "min", facts->hpa != NULL, facts->hpa ? (double)facts->hpa->min : 0);
    json_kv_maybe(out, "max", facts->hpa != NULL, facts->hpa ? (double)facts->hpa->max : 0);
    json_kv_maybe(out, "bounded", o.is_known, (double)o.bounded);
    json_kv_maybe(out, "nextSync", o.is_known, (double)o.next);
    json_object_end(out);
}

static void device_json(const struct workload_device *wd, struct json *out)
{
    const struct scaling_device *c = &wd->counted;
    bool is_read = c->reading == SCALING_READ_OK;
    json_object_begin(out);
    json_kv_string(out, "uuid", wd->device->uuid);
    json_kv_i64(out, "index", wd->device->index);
    json_kv_string(out, "label", wd->device->mig_profile[0] ? wd->device->mig_profile : wd->device->product);
    json_kv_string(out, "reading", scaling_reading_name(c->reading));
    json_kv_maybe(out, "value", is_read, c->value);
    json_kv_i64(out, "holders", c->holders);
    json_kv_i64(out, "ownHolders", c->own_holders);
    json_kv_maybe(out, "share", c->has_shares, c->share);
    json_kv_maybe(out, "shareSum", c->has_shares, c->share_sum);
    json_kv_maybe(out, "ageSeconds", wd->age_s >= 0, wd->age_s);
    json_kv_bool(out, "isSimulated", wd->node->is_simulated);
    json_kv_bool(out, "isGiven", !wd->holder);
    json_object_end(out);
}

static void pod_json(const struct workload_input *in, struct json *out)
{
    static const struct scaling_pod none = {.group = -1};
    const struct scaling_pod *p = in->counted ? in->counted : &none;
    static const struct scaling_replica no_replica = {.group = -1};
    const struct scaling_replica *r = in->replica ? in->replica : &no_replica;
    json_object_begin(out);
    json_kv_string(out, "name", workload_pod_name(in->pod));
    json_kv_string(out, "node", workload_pod_node(in->pod)[0] ? workload_pod_node(in->pod) : NULL);
    json_kv_string(out, "state", state_name(in));
    json_kv_string(out, "reading", in->counted ? scaling_reading_name(p->reading) : NULL);
    known_kv(out, "value", r->load.window);
    known_kv(out, "sinceReady", r->load.since_ready);
    known_kv(out, "peak", r->load.peak);
    known_kv(out, "lower", r->lower);
    known_kv(out, "upper", r->upper);
    known_kv(out, "lastGood", p->last_good);
    json_kv_bool(out, "isReady", p->is_ready);
    known_kv(out, "conditionAgeSeconds", p->condition_age_s);
    json_kv_maybe(out, "createdAgeSeconds", in->counted != NULL, p->created_age_s);
    json_kv_maybe(out, "missingSeconds", p->missing_for_s > 0, p->missing_for_s);
    json_kv_bool(out, "isPreallocated", r->is_preallocated);
    json_kv_maybe(out, "group", p->group >= 0, (double)p->group);
    json_kv_string(out, "reason", in->text[0] ? in->text : NULL);
    workload_page_json(in, out);
    json_key(out, "devices");
    json_array_begin(out);
    for (size_t i = 0; i < in->n_devices; i++)
        device_json(&in->devices[i], out);
    json_array_end(out);
    json_object_end(out);
}

static void pods_json(const struct workload_answer *a, struct json *out)
{
    size_t n = shown_pods(a);
    json_key(out, "pods");
    json_array_begin(out);
    for (size_t i = 0; i < n; i++)
        pod_json(&a->inputs[i], out);
    json_array_end(out);
    if (n < a->n_inputs)
        json_kv_i64(out, "podsLeftOut", (int64_t)(a->n_inputs - n));
    json_key(out, "places");
    json_object_begin(out);
    json_kv_i64(out, "loading", (int64_t)count_places(a, SCALING_POD_LOADING));
    json_kv_i64(out, "stuck", (int64_t)count_places(a, SCALING_POD_STUCK));
    json_object_end(out);
}

static void told_json(void *context, const char *id, const char *sentence)
{
    struct json *out = context;
    json_object_begin(out);
    json_kv_string(out, "id", id);
    json_kv_string(out, "text", sentence);
    json_object_end(out);
}

void workload_explain_json(const struct workload_facts *facts, const struct workload_answer *answer, struct json *out)
{
    json_object_begin(out);
    if (has_cluster(answer)) {
        trigger_explain_members(&answer->cluster, out);
        json_kv_i64(out, "nodes", (int64_t)answer->n_nodes);
        json_kv_i64(out, "silentNodes", (int64_t)answer->n_silent_nodes);
    } else {
        trigger_describe_json(answer->trigger, out);
        answer_json(answer, out);
    }
    last_json(answer, out);
    if (facts)
        workload_json(facts, answer, out);
    if (facts && has_pods(answer)) {
        workload_signals_json(answer, out);
        interval_json(&answer->result, out);
        hpa_json(facts, answer, out);
        pods_json(answer, out);
    }
    json_key(out, "notes");
    json_array_begin(out);
    each_warning(answer, told_json, out);
    json_array_end(out);
    json_key(out, "lint");
    json_array_begin(out);
    if (facts)
        workload_lint(facts, answer->trigger, told_json, out);
    json_array_end(out);
    json_object_end(out);
}
