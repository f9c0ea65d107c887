/* Lookups in the tables of trigger.h. Whatever a user can type or a refusal can list comes from there. */
#include "trigger/facts.h"

#include <stdio.h>
#include <string.h>

static const struct trigger_metric_facts metrics[TRIGGER_METRIC_COUNT] = {
#define X(id, name, alias, source, unit, divisor) [TRIGGER_##id] = {name, alias, source, unit, divisor},
    TRIGGER_METRICS(X)
#undef X
};

static const struct trigger_profile profiles[] = {
#define X(name, metric_name, metric, target, activation, engine)                                                       \
    {name, metric_name, TRIGGER_##metric, target, activation, SIGNALS_ENGINE_##engine},
    TRIGGER_PROFILES(X)
#undef X
};

static const struct trigger_key_facts keys[TRIGGER_KEY_COUNT] = {
#define X(id, name, alias, allowed) [TRIGGER_KEY_##id] = {name, alias, allowed},
    TRIGGER_KEYS(X)
#undef X
};

static const char *const scope_names[] = {
    [TRIGGER_NODE] = "node", [TRIGGER_WORKLOAD] = "workload", [TRIGGER_CLUSTER] = "cluster"};
static const char *const on_missing_names[] = {[TRIGGER_MISSING_CONSERVATIVE] = "conservative",
                                               [TRIGGER_MISSING_ERROR] = "error",
                                               [TRIGGER_MISSING_IGNORE] = "ignore"};
static const char *const hpa_metric_types[] = {"AverageValue", "Value"};
static const char *const schemes[] = {"http", "https"};
static const char *const passed_over[] = {
#define X(name) name,
    TRIGGER_PASSED_OVER(X)
#undef X
};

const struct trigger_metric_facts *trigger_metric_facts(enum trigger_metric metric)
{
    return &metrics[metric];
}

const struct trigger_key_facts *trigger_key_facts(enum trigger_key key)
{
    return &keys[key];
}

const char *trigger_metric_name(enum trigger_metric metric)
{
    return metric < TRIGGER_METRIC_COUNT ? metrics[metric].name : "unknown";
}

const char *trigger_metric_unit(enum trigger_metric metric)
{
    return metric < TRIGGER_METRIC_COUNT ? metrics[metric].unit : "unknown";
}

int trigger_metric_source(enum trigger_metric metric)
{
    return metrics[metric].source;
}

double trigger_metric_divisor(enum trigger_metric metric)
{
    return metrics[metric].divisor;
}

const char *trigger_unit(const struct trigger *t)
{
    return t->n_parts > 0 ? "%" : trigger_metric_unit(t->metric);
}

void trigger_show_types(const struct trigger *t, char out[TRIGGER_TYPES_MAX])
{
    size_t len = 0, n = t->n_parts > 0 ? t->n_parts : 1;
    for (size_t i = 0; i < n; i++) {
        const char *name = trigger_metric_name(t->n_parts > 0 ? t->parts[i]->metric : t->metric);
        (void)snprintf(out + len, TRIGGER_TYPES_MAX - len, "%s%s", i ? "," : "", name);
        len = strlen(out);
    }
}

const char *trigger_scope_name(enum trigger_scope scope)
{
    return scope < ARRAY_LEN(scope_names) ? scope_names[scope] : "unknown";
}

const char *trigger_on_missing_name(enum trigger_on_missing on_missing)
{
    return on_missing < ARRAY_LEN(on_missing_names) ? on_missing_names[on_missing] : "unknown";
}

bool trigger_find_metric(struct str name, enum trigger_metric *ret_metric)
{
    for (unsigned i = 0; i < TRIGGER_METRIC_COUNT; i++) {
        if (!str_equals(name, metrics[i].name) && !(metrics[i].alias && str_equals(name, metrics[i].alias)))
            continue;
        *ret_metric = (enum trigger_metric)i;
        return true;
    }
    return false;
}

const struct trigger_profile *trigger_find_profile(struct str name)
{
    for (size_t i = 0; i < ARRAY_LEN(profiles); i++)
        if (str_equals(name, profiles[i].name))
            return &profiles[i];
    return NULL;
}

static struct str without_from_env(struct str name)
{
    static const char suffix[] = "FromEnv";
    if (str_has_suffix(name, suffix))
        name.len -= sizeof(suffix) - 1;
    return name;
}

bool trigger_find_key(struct str name, enum trigger_key *ret_key)
{
    struct str plain = without_from_env(name);
    for (unsigned i = 0; i < TRIGGER_KEY_COUNT; i++) {
        if (!str_equals(plain, keys[i].name) && !(keys[i].alias && str_equals(plain, keys[i].alias)))
            continue;
        *ret_key = (enum trigger_key)i;
        return true;
    }
    return false;
}

bool trigger_is_passed_over(struct str name)
{
    struct str plain = without_from_env(name);
    for (size_t i = 0; i < ARRAY_LEN(passed_over); i++)
        if (str_equals(plain, passed_over[i]))
            return true;
    return false;
}

bool trigger_metric_is_engine(enum trigger_metric metric)
{
    return metrics[metric].source <= TRIGGER_SOURCE_FIRST_SIGNAL;
}

enum signals_id trigger_metric_signal(enum trigger_metric metric)
{
    return (enum signals_id)(TRIGGER_SOURCE_FIRST_SIGNAL - metrics[metric].source);
}

bool trigger_metric_is_of_board(enum trigger_metric metric)
{
    static const int board[] = {SNAPSHOT_TEMPERATURE, SNAPSHOT_POWER,     SNAPSHOT_PCIE_TX,
                                SNAPSHOT_PCIE_RX,     SNAPSHOT_NVLINK_TX, SNAPSHOT_NVLINK_RX};
    for (size_t i = 0; i < ARRAY_LEN(board); i++)
        if (metrics[metric].source == board[i])
            return true;
    return false;
}

bool trigger_metrics_are_same(enum trigger_metric a, enum trigger_metric b)
{
    return a == b || (metrics[a].source == metrics[b].source && strcmp(metrics[a].unit, metrics[b].unit) == 0);
}

static const char *const profile_names[] = {
#define X(name, metric_name, metric, target, activation, engine) name,
    TRIGGER_PROFILES(X)
#undef X
};
static const char *const aggregation_names[] = {
#define X(id, name) name,
    SCALING_AGGREGATIONS(X)
#undef X
};

/* Names and aliases, in two static tables with holes (NULL) where there is no alias. */
static const char *const metric_names[] = {
#define X(id, name, alias, source, unit, divisor) name, alias,
    TRIGGER_METRICS(X)
#undef X
};
static const char *const key_names[] = {
#define X(id, name, alias, allowed) name, alias,
    TRIGGER_KEYS(X)
#undef X
#define X(name) name,
        TRIGGER_PASSED_OVER(X)
#undef X
};

#define CHOICES(array) ((struct trigger_choices){(array), ARRAY_LEN(array)})

struct trigger_choices trigger_choices(enum trigger_choice choice)
{
    switch (choice) {
    case TRIGGER_CHOICE_PROFILE:
        return CHOICES(profile_names);
    case TRIGGER_CHOICE_METRIC:
        return CHOICES(metric_names);
    case TRIGGER_CHOICE_AGGREGATION:
        return CHOICES(aggregation_names);
    case TRIGGER_CHOICE_SCOPE:
        return CHOICES(scope_names);
    case TRIGGER_CHOICE_ON_MISSING:
        return CHOICES(on_missing_names);
    case TRIGGER_CHOICE_HPA_METRIC_TYPE:
        return CHOICES(hpa_metric_types);
    case TRIGGER_CHOICE_SCHEME:
        return CHOICES(schemes);
    case TRIGGER_CHOICE_KEY:
        break;
    }
    return CHOICES(key_names);
}
