/* Type, target and tolerances that the HPA has for a trigger, and its bounds and behaviour (scaling-semantics 2.5). It
 * reads what the API gave; the HPA's arithmetic is scaling's. */
#include "workload/look.h"

#include <math.h>
#include <string.h>

/* The part behind KEDA's "s<index>-"; NULL where it is not so made. keda.md 5 */
static const char *plain_name(const char *name)
{
    const char *c = name;
    if (*c++ != 's' || *c < '0' || *c > '9')
        return NULL;
    while (*c >= '0' && *c <= '9')
        c++;
    return *c == '-' ? c + 1 : NULL;
}

static bool is_of_trigger(const struct trigger *t, const struct kube_hpa_metric *m)
{
    const char *name = plain_name(m->name);
    return name && str_equals_nocase(str_of(name), t->metric_name);
}

static enum scaling_metric_type type_named(const char *name)
{
    return strcmp(name, "Value") == 0 ? SCALING_VALUE : SCALING_AVERAGE_VALUE;
}

/* ---- the triggers of the ScaledObject ---- */

static bool is_from_env(const char *key)
{
    return str_has_suffix(str_of(key), "FromEnv");
}

/* What decides the metric's name. */
static bool is_naming(const char *key)
{
    return str_has_prefix(str_of(key), "metric") || str_has_prefix(str_of(key), "profile");
}

/* Is it the trigger that asks? What comes from the environment is not in the object, so that it may be any. */
static bool is_asking(const struct trigger *t, const struct kube_trigger *k, const struct trigger_settings *settings)
{
    static const struct trigger_settings plain = {.default_scope = TRIGGER_WORKLOAD};
    struct trigger_pair pairs[TRIGGER_PAIRS_MAX];
    size_t n = 0;
    bool has_env = false, has_name_from_env = false;
    for (size_t i = 0; i < k->n_metadata && n < TRIGGER_PAIRS_MAX; i++) {
        has_env |= is_from_env(k->metadata[i].key);
        has_name_from_env |= is_from_env(k->metadata[i].key) && is_naming(k->metadata[i].key);
        if (!is_from_env(k->metadata[i].key))
            pairs[n++] = (struct trigger_pair){str_of(k->metadata[i].key), str_of(k->metadata[i].value)};
    }
    struct trigger *other = trigger_parse(pairs, n, settings ? settings : &plain, NULL);
    if (!other)
        return has_env;
    bool is_same = strcmp(other->metric_name, t->metric_name) == 0 || has_name_from_env;
    bool is_equal = other->metric == t->metric && other->aggregation == t->aggregation && other->scope == t->scope &&
                    other->gpu_index == t->gpu_index && other->window_ns == t->window_ns &&
                    strcmp(other->hpa_metric_type, t->hpa_metric_type) == 0 &&
                    scaling_milli(other->target) == scaling_milli(t->target) &&
                    scaling_milli(other->activation) == scaling_milli(t->activation);
    trigger_unref(other);
    return is_same && (is_equal || has_env);
}

/* The types that the ScaledObject gives to triggers that may be the one that asks: bits 1 << type. */
static unsigned object_types(const struct trigger *t, const struct workload_facts *facts)
{
    const struct kube_scaled_object *object = facts->scaled_object;
    unsigned types = 0;
    for (size_t i = 0; object && i < object->n_triggers; i++)
        if (is_asking(t, &object->triggers[i], facts->settings))
            types |= 1U << type_named(object->triggers[i].metric_type);
    return types;
}

static bool is_one(unsigned types)
{
    return types == 1U << SCALING_AVERAGE_VALUE || types == 1U << SCALING_VALUE;
}

static enum scaling_metric_type only_of(unsigned types)
{
    return types & 1U << SCALING_VALUE ? SCALING_VALUE : SCALING_AVERAGE_VALUE;
}

/* ---- the type ---- */

static int refuse_types(const struct trigger *t, struct err *e)
{
    return err_set(
        e, ERR_FAILED_PRECONDITION,
        "two triggers have the metric name %s, one with metricType AverageValue and one with Value, and which "
        "of them asks cannot be told: give them different metricName, or set hpaMetricType in the metadata",
        t->metric_name);
}

static int find_type(const struct trigger *t, const struct workload_facts *facts, unsigned types,
                     enum scaling_metric_type *ret_type, struct err *e)
{
    unsigned of_object = object_types(t, facts);
    if (is_one(types))
        *ret_type = only_of(types);
    else if (t->hpa_metric_type[0])
        *ret_type = type_named(t->hpa_metric_type);
    else if (is_one(of_object))
        *ret_type = only_of(of_object);
    else if (types || of_object)
        return refuse_types(t, e);
    else
        *ret_type = SCALING_AVERAGE_VALUE;
    return 0;
}

/* Of this type, the one whose target is nearest to the trigger's. */
static const struct kube_hpa_metric *nearest(const struct trigger *t, const struct kube_hpa *hpa,
                                             enum scaling_metric_type type)
{
    const struct kube_hpa_metric *best = NULL;
    for (size_t i = 0; i < hpa->n_metrics; i++) {
        const struct kube_hpa_metric *m = &hpa->metrics[i];
        if (!is_of_trigger(t, m) || m->is_value != (type == SCALING_VALUE))
            continue;
        if (!best || fabs(m->target - t->target) < fabs(best->target - t->target))
            best = m;
    }
    return best;
}

static double tolerance_of(const struct kube_direction *direction, double otherwise)
{
    return direction && direction->has_tolerance ? direction->tolerance : otherwise;
}

int workload_find_hpa(const struct trigger *t, const struct workload_facts *facts, struct scaling_hpa *ret_hpa,
                      const struct kube_hpa_metric **ret_metric, struct err *e)
{
    const struct kube_hpa *hpa = facts->hpa_state == WORKLOAD_HPA_KNOWN ? facts->hpa : NULL;
    unsigned types = 0;
    for (size_t i = 0; hpa && i < hpa->n_metrics; i++)
        if (is_of_trigger(t, &hpa->metrics[i]))
            types |= 1U << (hpa->metrics[i].is_value ? SCALING_VALUE : SCALING_AVERAGE_VALUE);
    struct scaling_hpa found = {
        .target = fmax(0.001, (double)scaling_milli(t->target) / 1000),
        .tolerance_up = tolerance_of(hpa ? &hpa->up : NULL, facts->default_tolerance),
        .tolerance_down = tolerance_of(hpa ? &hpa->down : NULL, facts->default_tolerance),
        .has_modifiers = facts->scaled_object && facts->scaled_object->has_modifiers,
    };
    *ret_metric = NULL;
    *ret_hpa = found;
    if (found.has_modifiers) /* the HPA has one metric that is none of ours */
        return 0;
    if (find_type(t, facts, types, &found.type, e) < 0)
        return -1;
    *ret_metric = hpa ? nearest(t, hpa, found.type) : NULL;
    if (*ret_metric)
        found.target = fmax(0.001, (double)scaling_milli((*ret_metric)->target) / 1000);
    *ret_hpa = found;
    return 0;
}

/* ---- bounds and behaviour ---- */

static enum scaling_select select_named(const char *name)
{
    return strcmp(name, "Disabled") == 0 ? SCALING_SELECT_DISABLED
           : strcmp(name, "Min") == 0    ? SCALING_SELECT_MIN
                                         : SCALING_SELECT_MAX;
}

/* What is said takes the place of what Kubernetes fills in. keda.md 8.6 */
static void take_direction(const struct kube_direction *said, struct scaling_direction *ret)
{
    if (said->has_window)
        ret->window_s = said->window_s;
    ret->select = select_named(said->select);
    if (said->n_policies == 0)
        return;
    ret->n_policies = said->n_policies < SCALING_POLICIES_MAX ? said->n_policies : SCALING_POLICIES_MAX;
    for (size_t i = 0; i < ret->n_policies; i++)
        ret->policies[i] =
            (struct scaling_policy){.type = said->policies[i].is_percent ? SCALING_PERCENT : SCALING_PODS,
                                    .amount = said->policies[i].value,
                                    .period_s = said->policies[i].period_s};
}

struct scaling_behaviour workload_behaviour(const struct kube_hpa *hpa)
{
    struct scaling_behaviour ret = scaling_default_behaviour(hpa->min, hpa->max, hpa->has_behavior);
    if (!hpa->has_behavior)
        return ret;
    take_direction(&hpa->up, &ret.up);
    take_direction(&hpa->down, &ret.down);
    return ret;
}
