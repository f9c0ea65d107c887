/* The `metrics:` entries as numbers of this node: those that are triggers as a trigger is evaluated; free memory, on
 * which nothing scales, is computed here. */
#include "agent/entries.h"

#include "daemon/daemon.h"
#include "scaling/scaling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EVALUATION_BYTES = 1 << 20 };

struct agent_entries {
    struct daemon_entries *entries;
    struct exporter_entry *values;
};

struct agent_entries *agent_entries_new(const struct trigger_settings *settings)
{
    struct agent_entries *entries = mem_new(struct agent_entries);
    entries->entries = daemon_entries_new(settings);
    size_t n = entries->entries->n;
    entries->values = (struct exporter_entry *)mem_new_array(n, sizeof(struct exporter_entry));
    for (size_t i = 0; i < n; i++)
        entries->values[i] = (struct exporter_entry){
            .name = entries->entries->items[i].name, .help = entries->entries->items[i].help, .value = (double)NAN};
    return entries;
}

void agent_entries_free(struct agent_entries *entries)
{
    if (!entries)
        return;
    daemon_entries_free(entries->entries);
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
static double memory_free(const struct daemon_entry *entry, const struct snapshot *s, int64_t now_ns)
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

static double evaluate(const struct daemon_entry *entry, const struct snapshot *snapshot, int64_t now_ns)
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
    *ret_n = entries->entries->n;
    for (size_t i = 0; i < *ret_n; i++)
        entries->values[i].value = evaluate(&entries->entries->items[i], snapshot, now_ns);
    return entries->values;
}
