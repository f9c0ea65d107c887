/* Scope cluster: the devices of all nodes under the rules that trigger has for one (scaling-semantics 3). It only reads
 * them: a node that has fallen silent has missing devices with their last good values. */
#include "workload/look.h"

/* 16 bytes for each device of the fleet, beside what trigger takes for those that are selected. */
struct place {
    const struct fleet_node *node;
    const struct fleet_device *device;
};

struct cluster {
    const struct asked *asked;
    int64_t now_ns, born_ns;
    bool is_memory_percent;
    double divisor;
    const struct place *places;
    size_t n;
};

static struct trigger_device device_at(void *context, size_t i)
{
    const struct cluster *c = context;
    const struct fleet_device *d = c->places[i].device;
    return (struct trigger_device){.node = c->places[i].node->name,
                                   .uuid = d->uuid,
                                   .parent_uuid = d->parent_uuid,
                                   .product = d->product,
                                   .mig_profile = d->mig_profile,
                                   .lost_reason = d->lost_reason,
                                   .kind = d->kind,
                                   .index = d->index,
                                   .gpu_instance = d->gpu_instance,
                                   .is_lost = d->lost_reason[0] != '\0'};
}

static const struct fleet_reading *reading_at(const struct cluster *c, const struct place *p)
{
    bool is_there = c->asked->place >= 0 && (size_t)c->asked->place < p->node->n_wants && p->device->readings;
    return is_there ? &p->device->readings[c->asked->place] : NULL;
}

/* Why a reading of this node is missing; "" where the node is not the reason. */
static const char *reason_of(const struct fleet_node *node)
{
    if (node->state != FLEET_NODE_UP)
        return node->text[0] ? node->text : fleet_node_state_name(node->state);
    return node->driver_text;
}

/* One that was never read is missing for as long as this hub has asked for it. */
static enum trigger_input_state absent_state(const struct cluster *c, const struct fleet_reading *r)
{
    if (!r || r->status == FLEET_NOT_YET)
        return TRIGGER_INPUT_MISSING;
    int64_t since_ns = r->taken_ns ? r->taken_ns : c->born_ns;
    return c->now_ns - since_ns > TRIGGER_MISSING_MAX_NS ? TRIGGER_INPUT_EXPIRED : TRIGGER_INPUT_MISSING;
}

static void read_device(void *context, size_t i, struct trigger_input *in)
{
    const struct cluster *c = context;
    const struct place *p = &c->places[i];
    const struct fleet_reading *r = reading_at(c, p);
    if (r && r->status == FLEET_UNSUPPORTED) {
        in->state = TRIGGER_INPUT_UNSUPPORTED;
        return;
    }
    in->state = absent_state(c, r);
    in->reason = reason_of(p->node);
    bool has_scale = !c->is_memory_percent || p->device->memory_total > 0;
    if (!r || r->taken_ns == 0 || !has_scale)
        return;
    double factor = c->is_memory_percent ? 100 / (double)p->device->memory_total : 1 / c->divisor;
    in->age_ns = c->now_ns > r->taken_ns ? c->now_ns - r->taken_ns : 0;
    in->has_value = true;
    in->value = r->mean * factor;
    if (p->device->lost_reason[0] || !fleet_reading_is_fresh(p->node, (size_t)c->asked->place, r, c->now_ns))
        return;
    in->state = TRIGGER_INPUT_MEASURED;
    in->peak = r->peak * factor;
}

/* All devices of all nodes; counts nodes that never said which they have. */
static bool list_devices(const struct workload_fleet *fleet, struct arena *arena, struct cluster *c,
                         struct workload_answer *ret)
{
    const struct fleet_node *const *nodes = fleet->nodes(fleet->context, &ret->n_nodes);
    size_t n = 0;
    for (size_t i = 0; i < ret->n_nodes; i++) {
        n += nodes[i]->n_devices;
        ret->n_silent_nodes += !nodes[i]->is_synced && nodes[i]->n_devices == 0;
    }
    struct place *places = (struct place *)arena_alloc(arena, (n + 1) * sizeof(*places));
    for (size_t i = 0; places && i < ret->n_nodes; i++)
        for (size_t k = 0; k < nodes[i]->n_devices; k++)
            places[c->n++] = (struct place){.node = nodes[i], .device = &nodes[i]->devices[k]};
    c->places = places;
    return places != NULL;
}

/* A metric of GPUs. Returns false where the arena is full. */
static bool evaluate_devices(const struct workload_memory *m, const struct workload_fleet *fleet, int64_t now_ns,
                             struct arena *arena, struct workload_answer *ret)
{
    const struct trigger *t = m->trigger;
    struct cluster c = {.asked = &m->asked[ASKED_METRIC],
                        .now_ns = now_ns,
                        .born_ns = m->born_ns,
                        .is_memory_percent = trigger_metric_source(t->metric) == TRIGGER_SOURCE_MEMORY_PERCENT,
                        .divisor = trigger_metric_divisor(t->metric)};
    if (!list_devices(fleet, arena, &c, ret))
        return false;
    struct trigger_source source = {.n = c.n,
                                    .device = device_at,
                                    .read = read_device,
                                    .none = ret->n_nodes ? "no GPU to read: no node has reported one yet"
                                                         : "no GPU to read: no agent is known",
                                    .context = &c};
    trigger_evaluate_devices(t, &source, now_ns, TRIGGER_ASK_ALL, arena, &ret->cluster);
    return true;
}

/* A metric of the page that the metadata names. */
static void evaluate_endpoint(const struct trigger *t, const struct workload_fleet *fleet, const char *ns,
                              int64_t now_ns, struct trigger_evaluation *ret)
{
    const char *why = "pages of endpoints are not fetched here";
    const struct signals_feed *feed = NULL;
    if (fleet->endpoint)
        feed = fleet->endpoint(fleet->context, trigger_endpoint(t), ns, t->engine_metric, t, &why);
    trigger_evaluate_page(t, feed, why, now_ns, TRIGGER_ASK_ALL, ret);
}

static void take(struct workload_answer *ret)
{
    ret->value = ret->cluster.value;
    ret->value_error = ret->cluster.value_error;
    ret->is_active = ret->cluster.is_active;
    ret->active_error = ret->cluster.active_error;
    ret->is_above = ret->cluster.is_above;
}

void workload_evaluate_cluster(struct workload_memory *m, const char *ns, const struct workload_fleet *fleet,
                               int64_t now_ns, struct arena *arena, struct workload_answer *ret)
{
    if (trigger_endpoint(m->trigger)) {
        evaluate_endpoint(m->trigger, fleet, ns, now_ns, &ret->cluster);
    } else if (!evaluate_devices(m, fleet, now_ns, arena, ret)) {
        (void)err_set(&ret->value_error, ERR_RESOURCE_EXHAUSTED, "more GPUs than a call may look at");
        ret->active_error = ret->value_error;
        return;
    }
    take(ret);
}
