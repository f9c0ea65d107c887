/* Several metric types in one trigger: "a,b" in metricType with a target each. Which of them decides is for whoever
 * evaluates the trigger; here they are read, checked and made triggers of their own. */
#include "trigger/parse.h"

#include <assert.h>
#include <string.h>

bool trigger_is_list(const struct trigger_value *v)
{
    return v && v->text.len && memchr(v->text.ptr, ',', v->text.len);
}

/* The next item of a list, with the key that it came under. False at the end. */
static bool next_item(const struct trigger_value *v, struct str *rest, struct trigger_value *ret)
{
    if (!rest->ptr)
        return false;
    *ret = (struct trigger_value){.key = v->key, .text = str_trim(str_cut(rest, ','))};
    return true;
}

static bool has_type(const struct draft *d, enum trigger_metric metric)
{
    for (size_t i = 0; i < d->n_types; i++)
        if (trigger_metrics_are_same(d->types[i], metric))
            return true;
    return false;
}

static void warn_of_overruled(struct draft *d)
{
    char types[TRIGGER_TYPES_MAX];
    trigger_show_draft(d, types);
    if (d->metric_from[0] && !has_type(d, d->t->metric))
        TRIGGER_DRAFT_WARN(d, "metricType selects %s and overrules %s, which %s selects", types,
                           trigger_metric_name(d->t->metric), d->metric_from);
}

int trigger_read_types(struct draft *d, const struct trigger_value *v, struct err *e)
{
    struct str rest = v->text;
    struct trigger_value item;
    while (next_item(v, &rest, &item)) {
        enum trigger_metric metric;
        if (item.text.len == 0)
            return trigger_refuse(v, TRIGGER_KEY_METRIC_TYPE, "has a comma without a name beside it", e);
        if (trigger_is_memory_free(item.text))
            return trigger_refuse_memory_free(d, &item, e);
        if (!trigger_find_metric(item.text, &metric))
            return trigger_refuse_choice(&item, TRIGGER_CHOICE_METRIC, e);
        if (has_type(d, metric))
            return trigger_refuse(v, TRIGGER_KEY_METRIC_TYPE, "names one metric twice", e);
        if (d->n_types == TRIGGER_PARTS_MAX)
            return trigger_refuse(v, TRIGGER_KEY_METRIC_TYPE, "names too many metric types", e);
        d->types[d->n_types++] = metric;
    }
    warn_of_overruled(d);
    d->t->metric = d->types[0];
    (void)str_copy(d->metric_from, sizeof(d->metric_from), str_of(trigger_key_facts(TRIGGER_KEY_METRIC_TYPE)->name));
    return 0;
}

/* As many numbers as metric types, into `numbers`. */
static int read_numbers(const struct draft *d, enum trigger_key key, struct trigger_range range,
                        double numbers[TRIGGER_PARTS_MAX], struct err *e)
{
    const struct trigger_value *v = trigger_given(d, key);
    assert(v); /* asked for only where it is there */
    struct str rest = v->text;
    struct trigger_value item;
    size_t n = 0;
    for (; next_item(v, &rest, &item); n++)
        if (n < d->n_types && trigger_read_number(&item, key, range, &numbers[n], e) < 0)
            return -1;
    if (n == d->n_types)
        return 0;
    char shown[TRIGGER_SHOWN_MAX], types[TRIGGER_TYPES_MAX];
    trigger_show(shown, v->text);
    trigger_show_draft(d, types);
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "metadata %s: \"%s\" has %zu of %zu numbers: one is needed for each metric type, in the order of "
                   "metricType \"%s\"",
                   trigger_key_facts(key)->name, shown, n, d->n_types, types);
}

int trigger_read_part_targets(struct draft *d, struct err *e)
{
    static const enum trigger_key of_one[] = {TRIGGER_KEY_TARGET_GPU_UTILIZATION,
                                              TRIGGER_KEY_TARGET_MEMORY_UTILIZATION};
    char types[TRIGGER_TYPES_MAX];
    trigger_show_draft(d, types);
    for (size_t i = 0; i < ARRAY_LEN(of_one); i++)
        if (trigger_given(d, of_one[i]))
            return err_set(e, ERR_INVALID_ARGUMENT,
                           "metadata %s: selects one metric and does not go with metricType \"%s\"; name all metric "
                           "types there, and their targets in targetValue",
                           trigger_key_facts(of_one[i])->name, types);
    if (!trigger_given(d, TRIGGER_KEY_TARGET_VALUE))
        return err_set(
            e, ERR_INVALID_ARGUMENT,
            "metadata targetValue is missing: metricType \"%s\" needs a target for each, for example \"16,80\"", types);
    d->t->target = 100;
    d->target_from = trigger_key_facts(TRIGGER_KEY_TARGET_VALUE)->name;
    return read_numbers(d, TRIGGER_KEY_TARGET_VALUE, TRIGGER_TARGET_RANGE, d->targets, e);
}

int trigger_read_part_activations(struct draft *d, struct err *e)
{
    const struct trigger_value *v = trigger_given(d, TRIGGER_KEY_ACTIVATION_THRESHOLD);
    if (!v)
        return 0;
    if (trigger_is_list(v))
        return read_numbers(d, TRIGGER_KEY_ACTIVATION_THRESHOLD, TRIGGER_ACTIVATION_RANGE, d->activations, e);
    double all = 0;
    if (trigger_read_number(v, TRIGGER_KEY_ACTIVATION_THRESHOLD, TRIGGER_ACTIVATION_RANGE, &all, e) < 0)
        return -1;
    for (size_t i = 0; i < d->n_types; i++)
        d->activations[i] = all;
    return 0;
}

int trigger_check_parts(const struct draft *d, struct err *e)
{
    if (d->n_types == 0 || d->t->scope == TRIGGER_WORKLOAD)
        return 0;
    return trigger_refuse(trigger_given(d, TRIGGER_KEY_METRIC_TYPE), TRIGGER_KEY_METRIC_TYPE,
                          "names several metric types, which only scope workload weighs against each other; elsewhere "
                          "each needs a trigger of its own, of which KEDA takes the largest",
                          e);
}
