/* The part of the explanation that is about pages: which signal drives, what each pod's page said, what a rule made of
 * that, and what to open where no page could be read. It decides nothing. */
#include "workload/explain.h"

#include <string.h>

/* What a rule made of a page: X(member, name, sentence). Names are trigger's, and ids of warnings. */
#define PAGE_FLAGS(X)                                                                                                  \
    X(is_demand, "demand", "requests wait, so the demand for the KV cache counts, not only its use")                   \
    X(is_idle_gauge, "idle_gauge", "its KV cache looks used and nothing runs, waits or is generated: it counts as 0")  \
    X(is_stalled, "stalled",                                                                                           \
      "requests wait and for five minutes next to nothing was done: it counts as 0; more replicas do not help a "      \
      "server that hangs, a liveness probe on its progress does")                                                      \
    X(is_uncontended, "uncontended",                                                                                   \
      "its requests had the server to themselves: more replicas make them no faster, so the latency does not count")   \
    X(is_only_zeros, "only_zeros", "nothing but zeros since the pod became Ready")

struct flag {
    const char *name, *sentence;
    bool is_set;
};
#define X(member, name, sentence) +1
enum { FLAGS = 0 PAGE_FLAGS(X) };
#undef X

static void find_flags(const struct signals_answer *page, struct flag flags[FLAGS])
{
    const struct flag found[] = {
#define X(member, name, sentence) {(name), (sentence), page->member},
        PAGE_FLAGS(X)
#undef X
    };
    memcpy(flags, found, sizeof(found));
}

static const char *mode_name(enum workload_mode mode)
{
    static const char *const names[] = {
#define X(id, name, sentence) [WORKLOAD_##id] = (name),
        WORKLOAD_MODES(X)
#undef X
    };
    return names[mode];
}

static const char *mode_sentence(enum workload_mode mode)
{
    static const char *const sentences[] = {
#define X(id, name, sentence) [WORKLOAD_##id] = (sentence),
        WORKLOAD_MODES(X)
#undef X
    };
    return sentences[mode];
}

/* The name of what is measured: by pages a profile's own metric gives way. */
static const char *signal_name(const struct trigger *t, enum workload_mode mode)
{
    bool gives_way = mode == WORKLOAD_BY_PAGE && !trigger_metric_is_engine(t->metric);
    return gives_way ? signals_name(workload_signal(t)) : trigger_metric_name(t->metric);
}

/* ---- text ---- */

static void put_signal(const struct trigger *t, enum workload_mode mode, bool is_tried, struct buf *out)
{
    (void)buf_printf(out, "%s, %s", signal_name(t, mode), mode_sentence(mode));
    if (t->prefers_engine && mode == WORKLOAD_BY_PAGE)
        (void)buf_printf(out, ", in place of %s", trigger_metric_name(t->metric));
    if (t->prefers_engine && mode == WORKLOAD_BY_GPU && !is_tried)
        (void)buf_append_str(out, ", or by the pods' own metrics pages once a pod is Ready");
    if (t->prefers_engine && mode == WORKLOAD_BY_GPU && is_tried)
        (void)buf_append_str(out, ": no page of the pods says how much of the KV cache is used, which would show "
                                  "requests that wait; the pods' lines say what was tried");
    if (trigger_endpoint_hint(t) && mode == WORKLOAD_BY_PAGE)
        (void)buf_append_str(out, "; the endpoint's port, path and scheme are used for each pod's own page");
}

static void put_part(const struct workload_part *part, bool is_decisive, struct buf *out)
{
    const struct trigger *t = part->trigger;
    (void)buf_append_str(out, "signal   ");
    put_signal(t, part->mode, true, out); /* a profile has no parts */
    if (part->result.error.class != ERR_NONE) {
        (void)buf_printf(out, ": no value: %s\n", part->result.error.text);
        return;
    }
    workload_put_number(out, ": ", part->result.value, " ");
    (void)buf_append_str(out, trigger_metric_unit(t->metric));
    workload_put_number(out, ", target ", part->result.target, " ");
    (void)buf_append_str(out, trigger_metric_unit(t->metric));
    workload_put_number(out, ": enough for ", part->result.value / part->result.target, " replicas");
    (void)buf_printf(out, "%s%s\n", part->result.is_hold ? ", held" : "", is_decisive ? "; decides" : "");
}

/* Was a page of any pod looked for? Those that load are not asked. */
static bool is_any_tried(const struct workload_answer *a)
{
    for (size_t i = 0; i < a->n_inputs; i++)
        if (a->inputs[i].page_text[0])
            return true;
    return false;
}

void workload_put_signals(const struct workload_answer *a, struct buf *out)
{
    for (size_t i = 0; i < a->n_parts; i++)
        put_part(&a->parts[i], a->result.part == i, out);
    if (a->n_parts > 0 || !workload_reads_pages(a->trigger))
        return;
    (void)buf_append_str(out, "signal   ");
    put_signal(a->trigger, a->mode, is_any_tried(a), out);
    (void)buf_append_char(out, '\n');
}

size_t workload_count_page_lines(const struct workload_input *in)
{
    return in->feed && in->page && (in->page->age_s >= 0 || in->page_text != in->text) ? 1 : 0;
}

/* What a rule made of it, and why it is not used. */
static void put_judged(const struct workload_input *in, struct buf *out)
{
    struct flag flags[FLAGS];
    find_flags(in->page, flags);
    for (size_t i = 0; i < FLAGS; i++)
        if (flags[i].is_set)
            (void)buf_printf(out, "; %s", flags[i].sentence);
    if (in->page->reading == SIGNALS_READ_ABSENT && in->page_text != in->text)
        (void)buf_printf(out, "; it has no %s", in->page->missing);
}

void workload_put_page(const struct workload_input *in, struct buf *out)
{
    if (workload_count_page_lines(in) == 0)
        return;
    (void)buf_append_str(out, "page     ");
    trigger_say_page(in->feed, in->page, out);
    put_judged(in, out);
    (void)buf_append_char(out, '\n');
}

/* ---- JSON ---- */

static void part_json(const struct workload_part *part, bool is_decisive, struct json *out)
{
    bool has_value = part->result.error.class == ERR_NONE;
    json_object_begin(out);
    json_kv_string(out, "metricType", trigger_metric_name(part->trigger->metric));
    json_kv_string(out, "mode", mode_name(part->mode));
    json_kv_string(out, "signal", signal_name(part->trigger, part->mode));
    json_kv_maybe(out, "value", has_value, part->result.value);
    json_kv_double(out, "target", part->result.target);
    json_kv_maybe(out, "replicas", has_value, has_value ? part->result.value / part->result.target : 0);
    json_kv_bool(out, "isHold", part->result.is_hold);
    json_kv_bool(out, "decides", is_decisive);
    json_kv_string(out, "rule", scaling_rule_sentence(part->result.rule));
    json_kv_string(out, "error", has_value ? NULL : part->result.error.text);
    json_object_end(out);
}

void workload_signals_json(const struct workload_answer *a, struct json *out)
{
    json_kv_string(out, "mode", mode_name(a->mode));
    json_kv_string(out, "signal", signal_name(workload_trigger_of_pods(a), a->mode));
    if (a->n_parts == 0)
        return;
    json_key(out, "signals");
    json_array_begin(out);
    for (size_t i = 0; i < a->n_parts; i++)
        part_json(&a->parts[i], a->result.part == i, out);
    json_array_end(out);
}

void workload_page_json(const struct workload_input *in, struct json *out)
{
    json_key(out, "page");
    if (!in->feed) {
        json_null(out);
        return;
    }
    json_object_begin(out);
    trigger_page_members(in->feed, in->page, out);
    json_kv_string(out, "reason", in->page_text[0] ? in->page_text : NULL);
    json_object_end(out);
}

/* ---- warnings ---- */

/* Those of the flags that a person should act on; the others are in the pods' lines. */
static bool is_warning(const struct flag *flag)
{
    return strcmp(flag->name, "stalled") == 0 || strcmp(flag->name, "uncontended") == 0;
}

void workload_tell_pages(const struct workload_answer *a, workload_told told, void *context)
{
    size_t counts[FLAGS] = {0};
    struct flag flags[FLAGS];
    for (size_t i = 0; i < a->n_inputs; i++) {
        if (!a->inputs[i].page)
            continue;
        find_flags(a->inputs[i].page, flags);
        for (size_t k = 0; k < FLAGS; k++)
            counts[k] += flags[k].is_set;
    }
    for (size_t k = 0; k < FLAGS; k++) {
        if (counts[k] == 0 || !is_warning(&flags[k]))
            continue;
        BUF_AUTO struct buf text;
        buf_init(&text, 1024);
        (void)buf_printf(&text, "%zu of %zu pods: %s", counts[k], a->n_inputs, flags[k].sentence);
        told(context, flags[k].name, buf_cstr(&text));
    }
    if (a->trigger->prefers_engine && a->mode == WORKLOAD_BY_GPU && is_any_tried(a))
        told(context, "no_page",
             "no page of the pods says how much of the KV cache is used, so GPUs are measured, which saturate with one "
             "request: open the page that a pod's line names, or say where it is (enginePort, enginePath, "
             "engineScheme)");
}
