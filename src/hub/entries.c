/* The `metrics:` entries as numbers of each node, as the agents' readings give them: a trigger of scope cluster over
 * one node alone; free memory, on which nothing scales, is computed here. */
#include "hub/private.h"

#include <math.h>
#include <string.h>

enum { EVALUATION_BYTES = 1 << 20 };

struct hub_entries {
    struct daemon_entries *entries;
    struct workload_memory **memories; /* one an entry; NULL for free memory */
    VEC(struct exporter_entry) values;
};

struct hub_entries *hub_entries_new(const struct daemon_reloadable *config)
{
    struct trigger_settings settings = {
        .default_scope = TRIGGER_CLUSTER, .defaults = config->defaults, .n_defaults = config->n_defaults};
    struct hub_entries *e = mem_new(struct hub_entries);
    e->entries = daemon_entries_new(&settings);
    e->memories = (struct workload_memory **)mem_new_array(e->entries->n, sizeof(struct workload_memory *));
    for (size_t i = 0; i < e->entries->n; i++)
        if (e->entries->items[i].trigger)
            e->memories[i] = workload_memory_new(e->entries->items[i].trigger);
    return e;
}

void hub_entries_free(struct hub_entries *e)
{
    if (!e)
        return;
    for (size_t i = 0; i < e->entries->n; i++)
        workload_memory_free(e->memories[i]);
    free((void *)e->memories);
    daemon_entries_free(e->entries);
    vec_fini(&e->values);
    free(e);
}

void hub_entries_want(struct hub_entries *e, const struct workload_fleet *fleet, int64_t now_ns)
{
    for (size_t i = 0; i < e->entries->n; i++)
        if (e->memories[i])
            workload_memory_look(e->memories[i], NULL, fleet, now_ns);
}

/* ---- one node ---- */

/* A fleet of one. */
struct one {
    const struct workload_fleet *all;
    const struct fleet_node *node;
};

static const struct fleet_node *find_one(void *context, const char *name)
{
    const struct one *one = context;
    return strcmp(one->node->name, name) == 0 ? one->node : NULL;
}

static const struct fleet_node *const *only(void *context, size_t *ret_n)
{
    const struct one *one = context;
    *ret_n = 1;
    return &one->node;
}

static int want_of_all(void *context, const struct fleet_want *want)
{
    const struct one *one = context;
    return one->all->want(one->all->context, want);
}

static double evaluate(struct workload_memory *m, struct one *one, int64_t now_ns)
{
    ARENA_AUTO struct arena arena;
    struct workload_answer answer;
    struct workload_fleet fleet = {.find_node = find_one, .nodes = only, .want = want_of_all, .context = one};
    arena_init(&arena, EVALUATION_BYTES);
    workload_evaluate(m, NULL, &fleet, now_ns, &arena, &answer);
    return answer.value_error.class == ERR_NONE ? answer.value : (double)NAN;
}

static bool is_same_instance(const struct fleet_device *a, const struct fleet_device *b)
{
    return a->kind == SNAPSHOT_MIG && b->kind == SNAPSHOT_MIG && a->gpu_instance == b->gpu_instance &&
           strcmp(a->parent_uuid, b->parent_uuid) == 0;
}

/* Free of total memory in percent, of GPUs and MIG devices, what compute instances share once. */
static double memory_free(const struct daemon_entry *entry, struct hub *h, const struct fleet_node *node)
{
    double values[SNAPSHOT_DEVICES_MAX];
    size_t n = 0;
    for (size_t i = 0; i < node->n_devices && n < ARRAY_LEN(values); i++) {
        const struct fleet_device *d = &node->devices[i];
        double used = hub_newest(h, node, d, SNAPSHOT_MEMORY_USED), total = (double)d->memory_total;
        bool is_wanted = d->kind != SNAPSHOT_MIG_PARENT && (entry->gpu_index < 0 || d->index == entry->gpu_index);
        bool is_again = i > 0 && is_same_instance(d - 1, d);
        if (is_wanted && !is_again && !isnan(used) && total > 0)
            values[n++] = fmax(0, total - (double)d->memory_reserved - used) * 100 / total;
    }
    return n ? scaling_aggregate(entry->aggregation, values, n) : (double)NAN;
}

const struct exporter_entry *hub_entries_evaluate(struct hub_entries *e, struct hub *h, size_t max_devices,
                                                  size_t *ret_n)
{
    size_t n_nodes;
    const struct fleet_node *const *nodes = fleet_nodes(h->fleet, &n_nodes);
    e->values.len = 0;
    for (size_t i = 0; i < e->entries->n; i++) {
        const struct daemon_entry *entry = &e->entries->items[i];
        size_t shown = 0;
        for (size_t k = 0; k < n_nodes && shown < max_devices; shown += nodes[k++]->n_devices) {
            struct one one = {&h->nodes, nodes[k]};
            struct exporter_entry value = {.name = entry->name, .help = entry->help, .node = nodes[k]->name};
            value.value =
                e->memories[i] ? evaluate(e->memories[i], &one, net_now_ns(h->loop)) : memory_free(entry, h, nodes[k]);
            if (nodes[k]->n_devices && *nodes[k]->name)
                vec_push(&e->values, value);
        }
    }
    *ret_n = e->values.len;
    return e->values.items;
}
