/* The `metrics:` entries of the configuration as triggers: one that has nothing but the entry's name, so that /metrics
 * and KEDA's answers come from one rule. What they come to is evaluated by the program that has the readings. */
#include "daemon/daemon.h"

#include <stdio.h>
#include <string.h>

/* The profile whose metric has this name in the HPA, or NULL. */
static const char *profile_of(const char *metric_name)
{
    static const struct {
        const char *profile, *metric_name;
    } rows[] = {
#define X(profile_, metric_name_, metric, target, activation, engine) {(profile_), (metric_name_)},
        TRIGGER_PROFILES(X)
#undef X
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(rows[i].metric_name, metric_name) == 0)
            return rows[i].profile;
    return NULL;
}

static bool is_memory_free(const char *name)
{
    return strcmp(name, "memory_free") == 0 || strcmp(name, "gpu_memory_free") == 0;
}

static void describe(struct daemon_entry *entry, const char *what, const char *unit, const char *whose)
{
    char which[32] = "all GPUs";
    if (entry->gpu_index >= 0)
        (void)snprintf(which, sizeof(which), "GPU %d", entry->gpu_index);
    (void)snprintf(entry->help, sizeof(entry->help), "%s of %s, %s of %s of %s%s.",
                   scaling_aggregation_name(entry->aggregation), what, unit, which, whose,
                   entry->trigger ? ", as a trigger of this name sees it" : "");
}

/* False where no trigger of this name can be had from the GPUs alone: an engine's metric needs an endpoint. */
static bool read_entry(const struct trigger_default *d, const struct trigger_settings *settings,
                       struct daemon_entry *ret)
{
    struct err e;
    const char *whose = settings->default_scope == TRIGGER_NODE ? "this node" : "the node";
    *ret = (struct daemon_entry){.aggregation = d->has_aggregation ? d->aggregation : SCALING_MAX,
                                 .gpu_index = d->has_gpu_index ? d->gpu_index : -1};
    if (exporter_name_entry(d->name, ret->name, &e) < 0)
        return false;
    if (is_memory_free(d->name)) {
        describe(ret, "memory_free", "%", whose);
        return true;
    }
    const char *profile = profile_of(d->name);
    const struct trigger_pair pairs[] = {{str_of("metricName"), str_of(d->name)},
                                         {str_of("profile"), str_of(profile ? profile : "")}};
    ret->trigger = trigger_parse(pairs, profile ? 2 : 1, settings, &e);
    if (ret->trigger)
        describe(ret, trigger_metric_name(ret->trigger->metric), trigger_metric_unit(ret->trigger->metric), whose);
    return ret->trigger != NULL;
}

struct daemon_entries *daemon_entries_new(const struct trigger_settings *settings)
{
    struct daemon_entries *entries = mem_new(struct daemon_entries);
    entries->items = (struct daemon_entry *)mem_new_array(settings->n_defaults, sizeof(struct daemon_entry));
    for (size_t i = 0; i < settings->n_defaults; i++)
        entries->n += read_entry(&settings->defaults[i], settings, &entries->items[entries->n]);
    return entries;
}

void daemon_entries_free(struct daemon_entries *entries)
{
    if (!entries)
        return;
    for (size_t i = 0; i < entries->n; i++)
        trigger_unref(entries->items[i].trigger);
    free(entries->items);
    free(entries);
}
