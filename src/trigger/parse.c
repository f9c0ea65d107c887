/* From the metadata of a ScaledObject to a validated trigger: which key decides what, in which order, and which keys
 * overrule each other. Reading single values is value.c's business, evaluating the trigger is evaluate.c's. */
#include "trigger/parse.h"

#include "trigger/lint.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { NAME_LEN_MAX = 120 };

/* A trigger with its reference count; users see only the trigger. Its warnings stand behind it. */
struct counted {
    unsigned refs;
    struct trigger trigger;
    char warnings[][TRIGGER_TEXT_MAX];
};

static const char *key_name(enum trigger_key key)
{
    return trigger_key_facts(key)->name;
}

#define WARN(d, ...) TRIGGER_DRAFT_WARN(d, __VA_ARGS__)

/* ---- which pair belongs to which key ---- */

static int refuse_second(const struct trigger_value *first, const struct trigger_value *second, struct err *e)
{
    char keys[2][TRIGGER_SHOWN_MAX], values[2][TRIGGER_SHOWN_MAX];
    const struct trigger_value *both[2] = {first, second};
    bool is_swapped = first->key.len > second->key.len; /* the same sentence whatever the order on the wire */
    for (int i = 0; i < 2; i++) {
        trigger_show(keys[i], both[i ^ is_swapped]->key);
        trigger_show(values[i], both[i ^ is_swapped]->text);
    }
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "metadata %s: \"%s\" and %s: \"%s\" mean the same key and differ; keep one of them", keys[0],
                   values[0], keys[1], values[1]);
}

static int collect_pair(struct draft *d, const struct trigger_pair *pair, struct err *e)
{
    struct trigger_value v = {.key = pair->key, .text = str_trim(pair->value)};
    if (!v.key.ptr)
        v.key.ptr = ""; /* an empty key */
    enum trigger_key key;
    if (!str_is_utf8(v.key) || !str_is_utf8(v.text)) {
        char shown[TRIGGER_SHOWN_MAX];
        trigger_show(shown, v.key);
        return err_set(e, ERR_INVALID_ARGUMENT, "metadata %s: key or value is not valid UTF-8", shown);
    }
    if (trigger_is_passed_over(v.key))
        return 0;
    if (!trigger_find_key(v.key, &key))
        return trigger_refuse_key(v.key, e);
    const struct trigger_value *first = trigger_given(d, key);
    bool is_same = first && first->text.len == v.text.len &&
                   (v.text.len == 0 || memcmp(first->text.ptr, v.text.ptr, v.text.len) == 0);
    if (first && !is_same)
        return refuse_second(first, &v, e);
    d->values[key] = v;
    return 0;
}

static int check_size(const struct trigger_pair *pairs, size_t n, struct err *e)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n && n <= TRIGGER_PAIRS_MAX && bytes <= TRIGGER_BYTES_MAX; i++)
        bytes += pairs[i].key.len + pairs[i].value.len;
    if (n > TRIGGER_PAIRS_MAX)
        return err_set(e, ERR_INVALID_ARGUMENT, "metadata: %zu keys; allowed: at most %d", n, TRIGGER_PAIRS_MAX);
    if (bytes > TRIGGER_BYTES_MAX)
        return err_set(e, ERR_INVALID_ARGUMENT, "metadata: too large; allowed: at most %d bytes of keys and values",
                       TRIGGER_BYTES_MAX);
    return 0;
}

/* ---- metric, name and target, in the order in which later keys win (reference A.2) ---- */

void trigger_show_draft(const struct draft *d, char out[TRIGGER_TYPES_MAX])
{
    (void)str_copy(out, TRIGGER_TYPES_MAX, str_of(trigger_metric_name(d->n_types > 0 ? d->types[0] : d->t->metric)));
    for (size_t i = 1; i < d->n_types; i++) {
        size_t len = strlen(out);
        (void)snprintf(out + len, TRIGGER_TYPES_MAX - len, ",%s", trigger_metric_name(d->types[i]));
    }
}

void trigger_choose_metric(struct draft *d, enum trigger_metric metric, const char *from)
{
    if (d->metric_from[0] && !trigger_metrics_are_same(d->t->metric, metric))
        WARN(d, "%s selects %s and overrules %s, which %s selects", from, trigger_metric_name(metric),
             trigger_metric_name(d->t->metric), d->metric_from);
    d->t->metric = metric;
    (void)str_copy(d->metric_from, sizeof(d->metric_from), str_of(from));
}

static void choose_target(struct draft *d, double target, enum trigger_key from)
{
    bool is_other = d->t->target < target || d->t->target > target;
    if (d->target_from && is_other) {
        char old[NUM_TEXT_MAX], new[NUM_TEXT_MAX];
        num_format_milli(old, d->t->target);
        num_format_milli(new, target);
        WARN(d, "%s %s overrules %s %s", key_name(from), new, d->target_from, old);
    }
    d->t->target = target;
    d->target_from = key_name(from);
}

static int read_profile(struct draft *d, struct err *e)
{
    const struct trigger_value *v = trigger_given(d, TRIGGER_KEY_PROFILE);
    if (!v)
        return 0;
    const struct trigger_profile *profile = trigger_find_profile(v->text);
    if (!profile)
        return trigger_refuse_choice(v, TRIGGER_CHOICE_PROFILE, e);
    char from[TRIGGER_SHOWN_MAX];
    (void)snprintf(from, sizeof(from), "profile %s", profile->name);
    trigger_choose_metric(d, profile->metric, from);
    d->profile = profile;
    d->t->target = profile->target;
    (void)str_copy(d->t->profile, sizeof(d->t->profile), str_of(profile->name));
    (void)str_copy(d->t->metric_name, sizeof(d->t->metric_name), str_of(profile->metric_name));
    return 0;
}

/* More load makes free memory fall: as a trigger it would run to the maximum at idle. */
int trigger_refuse_memory_free(const struct draft *d, const struct trigger_value *v, struct err *e)
{
    char shown[TRIGGER_SHOWN_MAX], instead[128] = "100 minus the free percentage";
    trigger_show(shown, v->text);
    const struct trigger_value *target = trigger_given(d, TRIGGER_KEY_TARGET_VALUE);
    double free_percent = d->entry && d->entry->has_target ? d->entry->target : 0;
    bool is_read = !target || num_parse_double(target->text, &free_percent) == 0;
    if (is_read && free_percent > 0 && free_percent < 100) {
        char used[NUM_TEXT_MAX];
        num_format_milli(used, 100 - free_percent);
        (void)snprintf(instead, sizeof(instead), "\"%s\"", used);
    }
    char key[TRIGGER_SHOWN_MAX];
    trigger_show(key, v->key);
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "metadata %s: \"%s\" is exported but not scaled on: it falls when load rises, so the workload would "
                   "run to its maximum at idle; allowed instead: %s \"memory_used\" with targetValue %s",
                   key, shown, key, instead);
}

bool trigger_is_memory_free(struct str text)
{
    return str_equals(text, "memory_free") || str_equals(text, "gpu_memory_free");
}

/* Fold and check a metricName: what the HPA takes as a path segment (keda.md 5). */
static int fold_name(const struct trigger_value *v, char name[TRIGGER_NAME_MAX], struct err *e)
{
    if (v->text.len == 0)
        return trigger_refuse(v, TRIGGER_KEY_METRIC_NAME, "is empty", e);
    if (v->text.len > NAME_LEN_MAX)
        return trigger_refuse(v, TRIGGER_KEY_METRIC_NAME, "is too long", e);
    (void)str_copy(name, TRIGGER_NAME_MAX, v->text);
    str_lower(name);
    bool is_dots = strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
    if (is_dots || name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._:-")])
        return trigger_refuse(v, TRIGGER_KEY_METRIC_NAME, "is not a valid metric name", e);
    return 0;
}

static void find_entry(struct draft *d)
{
    for (size_t i = 0; i < d->settings->n_defaults; i++)
        if (strcmp(d->settings->defaults[i].name, d->t->metric_name) == 0)
            d->entry = &d->settings->defaults[i];
    if (d->entry && d->entry->has_target && !d->profile)
        d->t->target = d->entry->target;
}

static int read_metric_name(struct draft *d, struct err *e)
{
    const struct trigger_value *v = trigger_given(d, TRIGGER_KEY_METRIC_NAME);
    if (!v)
        return 0;
    char name[TRIGGER_NAME_MAX];
    if (fold_name(v, name, e) < 0)
        return -1;
    (void)str_copy(d->t->metric_name, sizeof(d->t->metric_name), str_of(name));
    find_entry(d);

    enum trigger_metric named;
    const struct trigger_value *type = trigger_given(d, TRIGGER_KEY_METRIC_TYPE);
    if (!type && trigger_is_memory_free(str_of(name)))
        return trigger_refuse_memory_free(d, v, e);
    if (!trigger_find_metric(str_of(name), &named))
        return 0;
    enum trigger_metric typed;
    if (trigger_is_list(type))
        WARN(d, "metricName %s is only a name here: metricType says what is measured", name);
    else if (!type)
        trigger_choose_metric(d, named, key_name(TRIGGER_KEY_METRIC_NAME));
    else if (trigger_find_metric(type->text, &typed) && !trigger_metrics_are_same(named, typed))
        WARN(d, "metricName %s is only a name here: metricType %s is measured", name, trigger_metric_name(typed));
    return 0;
}

static int read_metric_type(struct draft *d, struct err *e)
{
    const struct trigger_value *v = trigger_given(d, TRIGGER_KEY_METRIC_TYPE);
    if (!v)
        return 0;
    static const char *const of_hpa[] = {"AverageValue", "Value", "Utilization"};
    for (size_t i = 0; i < ARRAY_LEN(of_hpa); i++)
        if (str_equals(v->text, of_hpa[i]))
            return trigger_refuse(v, TRIGGER_KEY_METRIC_TYPE,
                                  "is the HPA's metric type, which stands beside metadata in the trigger, not in it",
                                  e);
    if (trigger_is_list(v))
        return trigger_read_types(d, v, e);
    if (trigger_is_memory_free(v->text))
        return trigger_refuse_memory_free(d, v, e);
    enum trigger_metric metric;
    if (!trigger_find_metric(v->text, &metric))
        return trigger_refuse_choice(v, TRIGGER_CHOICE_METRIC, e);
    trigger_choose_metric(d, metric, key_name(TRIGGER_KEY_METRIC_TYPE));
    return 0;
}

/* A list where one number is wanted. */
static int refuse_list(const struct draft *d, enum trigger_key key, struct err *e)
{
    const struct trigger_value *v = trigger_given(d, key);
    if (!trigger_is_list(v))
        return 0;
    return trigger_refuse(v, key, "has a comma: lists go with several metric types, \"a,b\" in metricType", e);
}

static int read_targets(struct draft *d, struct err *e)
{
    static const struct {
        enum trigger_key key;
        bool has_metric;
        enum trigger_metric metric;
    } targets[] = {
        {TRIGGER_KEY_TARGET_VALUE, false, TRIGGER_GPU_UTILIZATION},
        {TRIGGER_KEY_TARGET_GPU_UTILIZATION, true, TRIGGER_GPU_UTILIZATION},
        {TRIGGER_KEY_TARGET_MEMORY_UTILIZATION, true, TRIGGER_MEMORY_USED_PERCENT},
    };
    if (d->n_types > 0)
        return trigger_read_part_targets(d, e);
    if (refuse_list(d, TRIGGER_KEY_TARGET_VALUE, e) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        const struct trigger_value *v = trigger_given(d, targets[i].key);
        double target = 0;
        if (!v)
            continue;
        if (trigger_read_number(v, targets[i].key, TRIGGER_TARGET_RANGE, &target, e) < 0)
            return -1;
        choose_target(d, target, targets[i].key);
        if (targets[i].has_metric)
            trigger_choose_metric(d, targets[i].metric, key_name(targets[i].key));
    }
    return 0;
}

/* The threshold, where the metadata says one. */
static int read_activation(struct draft *d, struct err *e)
{
    const struct trigger_value *v = trigger_given(d, TRIGGER_KEY_ACTIVATION_THRESHOLD);
    d->t->has_activation = v != NULL;
    if (d->n_types > 0)
        return trigger_read_part_activations(d, e);
    if (!v)
        return 0;
    if (refuse_list(d, TRIGGER_KEY_ACTIVATION_THRESHOLD, e) < 0)
        return -1;
    return trigger_read_number(v, TRIGGER_KEY_ACTIVATION_THRESHOLD, TRIGGER_ACTIVATION_RANGE, &d->t->activation, e);
}

/* What the profile said about a metric that is not measured in the end. */
static void leave_profile(struct draft *d)
{
    char activation[NUM_TEXT_MAX], types[TRIGGER_TYPES_MAX];
    trigger_show_draft(d, types);
    num_format_milli(activation, d->profile->activation);
    if (!d->t->has_activation && d->profile->activation > 0)
        WARN(d, "activation threshold %s of profile %s is for %s: 0 applies", activation, d->profile->name,
             trigger_metric_name(d->profile->metric));
    if (!trigger_given(d, TRIGGER_KEY_METRIC_NAME))
        WARN(d, "the name stays %s, although %s is measured", d->t->metric_name, types);
}

/* What follows from a profile, or from none, for threshold, name and target. */
static int apply_profile(struct draft *d, struct err *e)
{
    (void)e;
    struct trigger *t = d->t;
    bool is_of_profile = d->profile && d->n_types == 0 && trigger_metrics_are_same(t->metric, d->profile->metric);
    if (is_of_profile && !t->has_activation)
        t->activation = d->profile->activation;
    if (d->profile && !is_of_profile)
        leave_profile(d);
    if (d->n_types > 0 && !d->profile && !trigger_given(d, TRIGGER_KEY_METRIC_NAME))
        (void)str_copy(t->metric_name, sizeof(t->metric_name), str_of("keda_gpu_signals"));
    char target[NUM_TEXT_MAX];
    const char *unit = trigger_metric_unit(t->metric);
    num_format_milli(target, t->target);
    bool is_inherited = !d->target_from && !(d->entry && d->entry->has_target && !d->profile);
    if (is_inherited && strcmp(unit, d->profile ? trigger_metric_unit(d->profile->metric) : "%") != 0)
        WARN(d, "no targetValue: %s from %s is taken as %s%s%s", target, d->profile ? "the profile" : "the default",
             target, unit[0] ? " " : "", unit);
    return 0;
}

/* ---- what is measured, when, and what happens without data ---- */

static int read_choice(const struct draft *d, enum trigger_key key, enum trigger_choice choice, size_t *ret,
                       struct err *e)
{
    const struct trigger_value *v = trigger_given(d, key);
    return v ? trigger_read_choice(v, choice, ret, e) : 0;
}

static int read_scope(struct draft *d, struct err *e)
{
    size_t scope = d->settings->default_scope, on_missing = TRIGGER_MISSING_CONSERVATIVE, type = 0;
    if (read_choice(d, TRIGGER_KEY_SCOPE, TRIGGER_CHOICE_SCOPE, &scope, e) < 0 ||
        read_choice(d, TRIGGER_KEY_ON_MISSING, TRIGGER_CHOICE_ON_MISSING, &on_missing, e) < 0 ||
        read_choice(d, TRIGGER_KEY_HPA_METRIC_TYPE, TRIGGER_CHOICE_HPA_METRIC_TYPE, &type, e) < 0)
        return -1;
    struct trigger *t = d->t;
    t->scope = (enum trigger_scope)scope;
    t->on_missing = (enum trigger_on_missing)on_missing;
    if (trigger_given(d, TRIGGER_KEY_HPA_METRIC_TYPE))
        (void)str_copy(t->hpa_metric_type, sizeof(t->hpa_metric_type),
                       str_of(trigger_choices(TRIGGER_CHOICE_HPA_METRIC_TYPE).names[type]));
    t->is_for_hub = d->settings->default_scope == TRIGGER_NODE && t->scope != TRIGGER_NODE;
    t->is_always_active = t->scope == TRIGGER_NODE && strcmp(t->profile, "training") == 0;
    if (t->is_always_active && trigger_given(d, TRIGGER_KEY_ACTIVATION_THRESHOLD))
        WARN(d, "activationThreshold has no effect: profile training is always active");
    return trigger_check_parts(d, e);
}

static int read_gpu_index(struct draft *d, struct err *e)
{
    const struct trigger_value *v = trigger_given(d, TRIGGER_KEY_GPU_INDEX);
    d->t->gpu_index = d->entry && d->entry->has_gpu_index ? d->entry->gpu_index : -1;
    if (!v)
        return 0;
    int64_t index = 0;
    if (num_parse_i64(v->text, &index) < 0)
        return trigger_refuse(v, TRIGGER_KEY_GPU_INDEX, "is not a whole number", e);
    if (index < -1 || index >= SNAPSHOT_DEVICES_MAX)
        return trigger_refuse(v, TRIGGER_KEY_GPU_INDEX, "is out of range", e);
    d->t->gpu_index = (int)index;
    return 0;
}

static int read_gpu_uuid(struct draft *d, struct err *e)
{
    const struct trigger_value *v = trigger_given(d, TRIGGER_KEY_GPU_UUID);
    if (!v)
        return 0;
    struct str prefix = {v->text.ptr, v->text.len < 4 ? v->text.len : 4};
    bool is_uuid = v->text.len > 4 && (str_equals_nocase(prefix, "GPU-") || str_equals_nocase(prefix, "MIG-"));
    if (!is_uuid || memchr(v->text.ptr, ' ', v->text.len))
        return trigger_refuse(v, TRIGGER_KEY_GPU_UUID, "is not a GPU's UUID", e);
    return trigger_read_text(v, TRIGGER_KEY_GPU_UUID, sizeof(d->t->gpu_uuid), d->t->gpu_uuid, e);
}

static int read_devices(struct draft *d, struct err *e)
{
    struct trigger *t = d->t;
    t->aggregation = t->scope == TRIGGER_WORKLOAD ? SCALING_AVG : SCALING_MAX;
    if (d->entry && d->entry->has_aggregation)
        t->aggregation = d->entry->aggregation;
    size_t aggregation = t->aggregation;
    if (read_gpu_index(d, e) < 0 ||
        read_choice(d, TRIGGER_KEY_AGGREGATION, TRIGGER_CHOICE_AGGREGATION, &aggregation, e) < 0 ||
        read_gpu_uuid(d, e) < 0)
        return -1;
    t->aggregation = (enum scaling_aggregation)aggregation;
    const struct trigger_value *product = trigger_given(d, TRIGGER_KEY_GPU_PRODUCT);
    if (product)
        return trigger_read_text(product, TRIGGER_KEY_GPU_PRODUCT, sizeof(t->gpu_product), t->gpu_product, e);
    return 0;
}

static int read_times(struct draft *d, struct err *e)
{
    struct trigger *t = d->t;
    const struct {
        enum trigger_key key;
        struct trigger_range range;
        int64_t *ns;
        int64_t default_s;
    } times[] = {
        {TRIGGER_KEY_POLL_INTERVAL_SECONDS, {1, 3600}, &t->poll_interval_ns, 1},
        {TRIGGER_KEY_WINDOW, {0, 300}, &t->window_ns, 15},
        {TRIGGER_KEY_ACTIVATION_WINDOW, {0, 300}, &t->activation_window_ns, 60},
        {TRIGGER_KEY_WARMUP_SECONDS, {0, 86400}, &t->warmup_ns, 900},
    };
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        const struct trigger_value *v = trigger_given(d, times[i].key);
        *times[i].ns = times[i].default_s * NS_PER_S;
        if (v && trigger_read_duration(v, times[i].key, times[i].range, times[i].ns, e) < 0)
            return -1;
    }
    return 0;
}

static int read_hub_keys(struct draft *d, struct err *e)
{
    static const enum trigger_key keys[] = {TRIGGER_KEY_POD_SELECTOR, TRIGGER_KEY_WARMUP_SECONDS};
    const struct trigger_value *v = trigger_given(d, TRIGGER_KEY_POD_SELECTOR);
    if (v && trigger_read_text(v, TRIGGER_KEY_POD_SELECTOR, sizeof(d->t->pod_selector), d->t->pod_selector, e) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(keys) && d->t->scope == TRIGGER_NODE; i++)
        if (trigger_given(d, keys[i]))
            WARN(d, "%s has no effect in scope node", key_name(keys[i]));
    return 0;
}

/* One of several metric types, as a trigger of its own; the warnings are the whole's. */
static struct trigger *make_part(const struct draft *d, size_t i)
{
    struct counted *counted = mem_new(struct counted);
    counted->refs = 1;
    struct trigger *part = &counted->trigger;
    *part = *d->t;
    part->metric = d->types[i];
    part->target = d->targets[i];
    part->activation = d->activations[i];
    part->warnings = NULL;
    part->n_warnings = 0;
    if (part->metric != TRIGGER_ENGINE_METRIC)
        part->engine_metric[0] = '\0';
    return part;
}

/* As large as its warnings: most triggers have none, and a thousand may be kept. */
static struct trigger *finish(struct counted *counted, const struct draft *d)
{
    struct trigger *parts[TRIGGER_PARTS_MAX];
    for (size_t i = 0; i < d->n_types; i++)
        parts[i] = make_part(d, i);
    size_t bytes = d->t->n_warnings * sizeof(d->warnings[0]);
    counted = (struct counted *)mem_resize(counted, 1, sizeof(*counted) + bytes);
    memcpy(counted->warnings, d->warnings, bytes);
    struct trigger *t = &counted->trigger;
    t->warnings = counted->warnings;
    t->n_parts = d->n_types;
    memcpy(t->parts, parts, d->n_types * sizeof(struct trigger *));
    return t;
}

struct trigger *trigger_parse(const struct trigger_pair *pairs, size_t n, const struct trigger_settings *settings,
                              struct err *e)
{
    static int (*const steps[])(struct draft * d, struct err * e) = {
        read_profile,     read_metric_name,    trigger_read_engine_metric,
        read_metric_type, read_targets,        read_activation,
        apply_profile,    read_scope,          read_devices,
        read_times,       trigger_read_engine, read_hub_keys,
    };
    if (check_size(pairs, n, e) < 0)
        return NULL;
    struct counted *counted = mem_new(struct counted);
    counted->refs = 1;
    struct draft d = {.t = &counted->trigger, .settings = settings};
    d.t->warnings = d.warnings;
    d.t->metric = TRIGGER_GPU_UTILIZATION;
    d.t->target = 80;
    (void)str_copy(d.t->metric_name, sizeof(d.t->metric_name), str_of("keda_gpu_metric"));

    for (size_t i = 0; i < n; i++)
        if (collect_pair(&d, &pairs[i], e) < 0)
            goto fail;
    for (size_t i = 0; i < ARRAY_LEN(steps); i++)
        if (steps[i](&d, e) < 0)
            goto fail;
    trigger_lint(d.t);
    return finish(counted, &d);

fail:
    free(counted);
    return NULL;
}

struct trigger *trigger_ref(struct trigger *t)
{
    CONTAINER_OF(t, struct counted, trigger)->refs++;
    return t;
}

void trigger_unref(struct trigger *t)
{
    if (!t)
        return;
    struct counted *counted = CONTAINER_OF(t, struct counted, trigger);
    assert(counted->refs > 0);
    if (--counted->refs > 0)
        return;
    for (size_t i = 0; i < t->n_parts; i++)
        trigger_unref(t->parts[i]);
    free(counted);
}
