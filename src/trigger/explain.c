/* An evaluation as JSON and as lines of text. It adds nothing: what it shows was decided in evaluate.c and is worded by
 * say.c. */
#include "trigger/trigger.h"

#include "trigger/text.h"

#include <assert.h>

static void duration_kv(struct json *out, const char *key, int64_t ns)
{
    json_kv_double(out, key, (double)ns / (double)NS_PER_S);
}

/* What is said only of triggers that read engines' pages. */
static void engine_json(const struct trigger *t, struct json *out)
{
    if (t->engine_metric[0])
        json_kv_string(out, "engineMetric", t->engine_metric);
    if (trigger_endpoint_hint(t))
        json_kv_string(out, "endpoint", trigger_endpoint_hint(t));
    if (t->prefers_engine)
        json_kv_bool(out, "prefersEngine", true);
    if (!t->wake_endpoint[0])
        return;
    json_kv_string(out, "wakeEndpoint", t->wake_endpoint);
    json_kv_string(out, "wakeMetric", t->wake_metric);
}

static void parts_json(const struct trigger *t, struct json *out)
{
    if (t->n_parts == 0)
        return;
    json_key(out, "parts");
    json_array_begin(out);
    for (size_t i = 0; i < t->n_parts; i++) {
        const struct trigger *part = t->parts[i];
        json_object_begin(out);
        json_kv_string(out, "metricType", trigger_metric_name(part->metric));
        json_kv_string(out, "unit", trigger_unit(part));
        json_kv_double(out, "target", part->target);
        json_kv_double(out, "activationThreshold", part->activation);
        if (part->engine_metric[0])
            json_kv_string(out, "engineMetric", part->engine_metric);
        json_object_end(out);
    }
    json_array_end(out);
}

void trigger_describe_json(const struct trigger *t, struct json *out)
{
    json_kv_string(out, "metricName", t->metric_name);
    char types[TRIGGER_TYPES_MAX];
    trigger_show_types(t, types);
    json_kv_string(out, "metricType", types);
    json_kv_string(out, "unit", trigger_unit(t));
    json_kv_string(out, "profile", t->profile[0] ? t->profile : NULL);
    json_kv_string(out, "scope", trigger_scope_name(t->scope));
    json_kv_string(out, "aggregation", scaling_aggregation_name(t->aggregation));
    json_kv_double(out, "target", t->target);
    json_kv_double(out, "activationThreshold", t->activation);
    json_kv_string(out, "onMissing", trigger_on_missing_name(t->on_missing));
    json_kv_i64(out, "gpuIndex", t->gpu_index);
    json_kv_string(out, "gpuUUID", t->gpu_uuid[0] ? t->gpu_uuid : NULL);
    json_kv_string(out, "gpuProduct", t->gpu_product[0] ? t->gpu_product : NULL);
    duration_kv(out, "windowSeconds", t->window_ns);
    duration_kv(out, "activationWindowSeconds", t->activation_window_ns);
    engine_json(t, out);
    parts_json(t, out);
}

static void error_json(const struct err *e, struct json *out)
{
    json_object_begin(out);
    json_kv_string(out, "code", err_class_name(e->class));
    json_kv_string(out, "message", e->text);
    json_object_end(out);
}

static void input_json(const struct trigger_input *in, struct json *out)
{
    json_object_begin(out);
    if (in->device.node[0])
        json_kv_string(out, "node", in->device.node);
    json_kv_string(out, "uuid", in->device.uuid);
    json_kv_i64(out, "index", in->device.index);
    json_kv_string(out, "label", trigger_input_label(in));
    json_kv_string(out, "state", trigger_input_state_name(in->state));
    json_kv_maybe(out, "value", in->has_value, in->value);
    json_kv_maybe(out, "counted", in->is_counted, in->counted);
    json_kv_maybe(out, "peak", in->state == TRIGGER_INPUT_MEASURED, in->peak);
    json_kv_maybe(out, "ageSeconds", in->age_ns >= 0, (double)in->age_ns / (double)NS_PER_S);
    json_object_end(out);
}

static void result_json(const struct trigger_evaluation *ev, const struct trigger_explanation *said, struct json *out)
{
    bool has_value = ev->value_error.class == ERR_NONE, has_active = ev->active_error.class == ERR_NONE;
    json_kv_maybe(out, "value", has_value, ev->value);
    json_kv_string(out, "rule", has_value ? said->rule : NULL);
    if (!has_value) {
        json_key(out, "valueError");
        error_json(&ev->value_error, out);
    }
    json_key(out, "active");
    if (has_active)
        json_bool(out, ev->is_active);
    else
        json_null(out);
    json_kv_string(out, "activeRule", has_active ? said->active_rule : NULL);
    json_kv_maybe(out, "activity", ev->activity >= 0, ev->activity);
    if (!has_active) {
        json_key(out, "activeError");
        error_json(&ev->active_error, out);
    }
}

static size_t shown_inputs(const struct trigger_evaluation *ev)
{
    return ev->n_inputs < TRIGGER_INPUTS_SHOWN ? ev->n_inputs : TRIGGER_INPUTS_SHOWN;
}

void trigger_explain_members(const struct trigger_evaluation *evaluation, struct json *out)
{
    assert(evaluation->asked == TRIGGER_ASK_ALL);
    struct trigger_explanation said;
    trigger_explain(evaluation, &said);
    trigger_describe_json(evaluation->trigger, out);
    result_json(evaluation, &said, out);
    if (evaluation->feed) {
        json_key(out, "page");
        json_object_begin(out);
        trigger_page_members(evaluation->feed, &evaluation->page, out);
        json_object_end(out);
    }
    json_key(out, "inputs");
    json_array_begin(out);
    for (size_t i = 0; i < shown_inputs(evaluation); i++)
        input_json(&evaluation->inputs[i], out);
    json_array_end(out);
    if (shown_inputs(evaluation) < evaluation->n_inputs)
        json_kv_i64(out, "inputsLeftOut", (int64_t)(evaluation->n_inputs - shown_inputs(evaluation)));
    json_key(out, "warnings");
    json_array_begin(out);
    for (size_t i = 0; i < said.n_warnings; i++)
        json_string(out, said.warnings[i]);
    json_array_end(out);
}

void trigger_explain_json(const struct trigger_evaluation *evaluation, struct json *out)
{
    json_object_begin(out);
    trigger_explain_members(evaluation, out);
    json_object_end(out);
}

/* "requests_waiting", "engine_metric my_queue"; of several metric types "a,b". */
static void say_measured(const struct trigger *t, struct buf *out)
{
    char types[TRIGGER_TYPES_MAX];
    trigger_show_types(t, types);
    if (t->prefers_engine)
        (void)buf_printf(out, "kv_cache_usage, or %s without pages,", types);
    else
        (void)buf_printf(out, "%s%s%s", types, t->engine_metric[0] ? " " : "", t->engine_metric);
}

static void say_limits(const struct trigger *t, struct buf *out)
{
    char target[TRIGGER_VALUE_TEXT_MAX], activation[TRIGGER_VALUE_TEXT_MAX];
    trigger_show_value(target, t->target, trigger_unit(t));
    trigger_show_value(activation, t->activation, trigger_unit(t));
    (void)buf_printf(out, ", target %s, active ", target);
    if (t->has_activation || !(t->prefers_engine || trigger_metric_is_engine(t->metric)))
        (void)buf_printf(out, "above %s", activation);
    else if (t->prefers_engine)
        (void)buf_printf(out, "with any request, or above %s without pages", activation);
    else
        (void)buf_append_str(out, "with any request");
}

void trigger_describe_text(const struct trigger *t, struct buf *out)
{
    (void)buf_printf(out, "trigger  %s: ", t->metric_name);
    if (!trigger_endpoint(t))
        (void)buf_printf(out, "%s of ", scaling_aggregation_name(t->aggregation));
    say_measured(t, out);
    (void)buf_printf(out, "%s in scope %s", trigger_endpoint(t) ? " of one page" : "", trigger_scope_name(t->scope));
    if (t->n_parts > 0)
        (void)buf_append_str(out, ", target 100 % of their targets, active with any of them");
    else
        say_limits(t, out);
    (void)buf_printf(out, "%s%s\n", t->profile[0] ? ", profile " : "", t->profile);
    for (size_t i = 0; i < t->n_parts; i++) {
        (void)buf_append_str(out, "part     ");
        say_measured(t->parts[i], out);
        say_limits(t->parts[i], out);
        (void)buf_append_char(out, '\n');
    }
}

static void result_text(const struct trigger_evaluation *ev, const struct trigger_explanation *said, struct buf *out)
{
    char value[TRIGGER_VALUE_TEXT_MAX];
    trigger_show_value(value, ev->value, trigger_metric_unit(ev->trigger->metric));
    if (ev->value_error.class == ERR_NONE)
        (void)buf_printf(out, "value    %s: %s\n", value, said->rule);
    else
        (void)buf_printf(out, "value    none: %s: %s\n", err_class_name(ev->value_error.class), ev->value_error.text);
    if (ev->active_error.class == ERR_NONE)
        (void)buf_printf(out, "active   %s: %s\n", ev->is_active ? "yes" : "no", said->active_rule);
    else
        (void)buf_printf(out, "active   unknown: %s: %s\n", err_class_name(ev->active_error.class),
                         ev->active_error.text);
}

static void input_text(const struct trigger_input *in, const char *unit, struct buf *out)
{
    char value[NUM_TEXT_MAX] = "-", counted[NUM_TEXT_MAX], age[TRIGGER_AGE_MAX];
    (void)buf_printf(out, "input    %s%sGPU %d %s %s: %s, ", in->device.node, in->device.node[0] ? " " : "",
                     in->device.index, in->device.uuid, trigger_input_label(in), trigger_input_state_name(in->state));
    if (in->has_value)
        num_format_milli(value, in->value);
    num_format_milli(counted, in->counted);
    trigger_show_age(age, in->age_ns);
    if (in->state != TRIGGER_INPUT_UNSUPPORTED)
        (void)buf_printf(out, "%s%s%s, %s, ", value, in->has_value ? " " : "", in->has_value ? unit : "", age);
    (void)buf_printf(out, "%s%s\n", in->is_counted ? "counted as " : "not counted", in->is_counted ? counted : "");
}

void trigger_explain_text(const struct trigger_evaluation *evaluation, struct buf *out)
{
    assert(evaluation->asked == TRIGGER_ASK_ALL);
    struct trigger_explanation said;
    trigger_explain(evaluation, &said);
    trigger_describe_text(evaluation->trigger, out);
    result_text(evaluation, &said, out);
    if (evaluation->feed) {
        (void)buf_append_str(out, "page     ");
        trigger_say_page(evaluation->feed, &evaluation->page, out);
        (void)buf_append_char(out, '\n');
    }
    for (size_t i = 0; i < shown_inputs(evaluation); i++)
        input_text(&evaluation->inputs[i], trigger_metric_unit(evaluation->trigger->metric), out);
    if (shown_inputs(evaluation) < evaluation->n_inputs)
        (void)buf_printf(out, "input    and %zu more\n", evaluation->n_inputs - shown_inputs(evaluation));
    for (size_t i = 0; i < said.n_warnings; i++)
        (void)buf_printf(out, "warning  %s\n", said.warnings[i]);
}
