/* The `metrics:` entries as numbers of this node. An entry is evaluated as the trigger that has nothing but its name,
 * so that /metrics and KEDA's answers come from one rule; free memory, on which nothing scales, is computed here. */
#include "agent/entries.h"

#include "scaling/scaling.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVALUATION_BYTES = 1 << 20 };

struct entry {
    struct trigger *trigger; /* NULL: free memory */
    enum scaling_aggregation aggregation;
    int gpu_index;
    char name[EXPORTER_NAME_MAX], help[160];
};

struct agent_entries {
    struct entry *entries;
    struct exporter_entry *values;
    size_t n;
};

/* ---- from the configuration ---- */

/* The profile whose metric has this name in the HPA, or NULL. */
static const char *profile_of(const char *metric_name)
{
    static const struct {
        const char *profile, *metric_name;
    } rows[] = {
#define X(profile_, metric_name_, metric, target, activation) {(profile_), (metric_name_)},
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

static void describe(struct entry *entry, const char *what, const char *unit)
{
    char which[32] = "all GPUs";
    if (entry->gpu_index >= 0)
        (void)snprintf(which, sizeof(which), "GPU %d", entry->gpu_index);
    (void)snprintf(entry->help, sizeof(entry->help), "%s of %s, %s of %s of this node%s.",
                   scaling_aggregation_name(entry->aggregation), what, unit, which,
                   entry->trigger ? ", as a trigger of this name sees it" : "");
}

/* False where no trigger of this name can be had from the GPUs alone: an engine's metric needs an endpoint. */
static bool read_entry(const struct trigger_default *d, const struct trigger_settings *settings, struct entry *ret)
{
    struct err e;
    *ret = (struct entry){.aggregation = d->has_aggregation ? d->aggregation : SCALING_MAX,
                          .gpu_index = d->has_gpu_index ? d->gpu_index : -1};
    if (exporter_name_entry(d->name, ret->name, &e) < 0)
        return false;
    if (is_memory_free(d->name)) {
        describe(ret, "memory_free", "%");
        return true;
    }
    const char *profile = profile_of(d->name);
    const struct trigger_pair pairs[] = {{str_of("metricName"), str_of(d->name)},
                                         {str_of("profile"), str_of(profile ? profile : "")}};
    ret->trigger = trigger_parse(pairs, profile ? 2 : 1, settings, &e);
    if (ret->trigger)
        describe(ret, trigger_metric_name(ret->trigger->metric), trigger_metric_unit(ret->trigger->metric));
    return ret->trigger != NULL;
}

struct agent_entries *agent_entries_new(const struct trigger_settings *settings)
{
    struct agent_entries *entries = mem_new(struct agent_entries);
    entries->entries = (struct entry *)mem_new_array(settings->n_defaults, sizeof(struct entry));
    entries->values = (struct exporter_entry *)mem_new_array(settings->n_defaults, sizeof(struct exporter_entry));
    for (size_t i = 0; i < settings->n_defaults; i++) {
        struct entry *entry = &entries->entries[entries->n];
        if (!read_entry(&settings->defaults[i], settings, entry))
            continue;
        entries->values[entries->n++] = (struct exporter_entry){entry->name, entry->help, (double)NAN};
    }
    return entries;
}

void agent_entries_free(struct agent_entries *entries)
{
    if (!entries)
        return;
    for (size_t i = 0; i < entries->n; i++)
        trigger_unref(entries->entries[i].trigger);
    free(entries->entries);
    free(entries->values);
    free(entries);
}

/* ---- values ---- */

static bool is_same_instance(const struct snapshot_device *a, const struct snapshot_device *b)
{
    return a->kind == SNAPSHOT_MIG && b->kind == SNAPSHOT_MIG && a->gpu_instance == b->gpu_instance &&
           strcmp(a->parent_uuid, b->parent_uuid) == 0;
}

/* Free of total memory in percent, the newest readings: of GPUs and MIG devices, what compute instances share once. */
static double memory_free(const struct entry *entry, const struct snapshot *s, int64_t now_ns)
{
    double values[SNAPSHOT_DEVICES_MAX];
    size_t n = 0;
    for (size_t i = 0; s && i < s->n_devices; i++) {
        const struct snapshot_device *d = &s->devices[i];
        double total = d->readings[SNAPSHOT_MEMORY_TOTAL].value;
        bool is_wanted = d->kind != SNAPSHOT_MIG_PARENT && (entry->gpu_index < 0 || d->index == entry->gpu_index);
        bool is_again = i > 0 && is_same_instance(&s->devices[i - 1], d);
        if (is_wanted && !is_again && snapshot_is_fresh(s, d, SNAPSHOT_MEMORY_FREE, now_ns) && total > 0)
            values[n++] = d->readings[SNAPSHOT_MEMORY_FREE].value * 100 / total;
    }
    return n ? scaling_aggregate(entry->aggregation, values, n) : (double)NAN;
}

static double evaluate(const struct entry *entry, const struct snapshot *snapshot, int64_t now_ns)
{
    if (!entry->trigger)
        return memory_free(entry, snapshot, now_ns);
    ARENA_AUTO struct arena arena;
    struct trigger_evaluation evaluation;
    arena_init(&arena, EVALUATION_BYTES);
    trigger_evaluate(entry->trigger, snapshot, now_ns, TRIGGER_ASK_VALUE, &arena, &evaluation);
    return evaluation.value_error.class == ERR_NONE ? evaluation.value : (double)NAN;
}

const struct exporter_entry *agent_entries_evaluate(struct agent_entries *entries, const struct snapshot *snapshot,
                                                    int64_t now_ns, size_t *ret_n)
{
    *ret_n = 0;
    if (!entries)
        return NULL;
    for (size_t i = 0; i < entries->n; i++)
        entries->values[i].value = evaluate(&entries->entries[i], snapshot, now_ns);
    *ret_n = entries->n;
    return entries->values;
}
