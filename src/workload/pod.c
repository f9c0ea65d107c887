/* A pod as this hub remembers it: what the API said last, and what was seen of its way to Ready. It decides nothing;
 * readings are devices.c's. */
#include "workload/look.h"

#include <string.h>

/* Beyond this nothing more is taken down: 16 devices under all wants. */
enum { MARKS_MAX = FLEET_WANTS_MAX * 16 };

/* Not Ready, and not because it lost it: the same rule as scaling's for a pod that was Ready in this life. */
static bool is_before_ready(const struct kube_pod *pod)
{
    if (pod->is_ready)
        return false;
    bool was_ready = pod->phase != KUBE_PENDING && pod->has_condition && pod->started_s > 0 &&
                     pod->condition_s - pod->started_s > 10;
    return !was_ready;
}

/* Texts are kept while they say the same: this is done for each message of the API. */
static void take_text(char **kept, const char *text)
{
    const char *said = text ? text : "";
    if (*kept && strcmp(*kept, said) == 0)
        return;
    free(*kept);
    *kept = mem_strdup(said);
}

static void free_ports(struct workload_pod *p)
{
    for (size_t i = 0; i < p->ports.len; i++)
        free((char *)(uintptr_t)p->ports.items[i].name);
    vec_fini(&p->ports);
}

static bool has_ports(const struct workload_pod *p, const struct kube_pod *pod)
{
    bool is_same = p->ports.len == pod->n_ports;
    for (size_t i = 0; is_same && i < pod->n_ports; i++)
        is_same =
            p->ports.items[i].number == pod->ports[i].number && strcmp(p->ports.items[i].name, pod->ports[i].name) == 0;
    return is_same;
}

static void take_place(struct workload_pod *p, const struct kube_pod *pod)
{
    take_text(&p->ip, pod->ip);
    take_text(&p->annotated_port, pod->annotated_port);
    take_text(&p->annotated_path, pod->annotated_path);
    take_text(&p->annotated_scheme, pod->annotated_scheme);
    if (has_ports(p, pod))
        return;
    free_ports(p);
    for (size_t i = 0; i < pod->n_ports; i++) {
        struct kube_port port = {.name = mem_strdup(pod->ports[i].name), .number = pod->ports[i].number};
        vec_push(&p->ports, port);
    }
}

static void take_facts(struct workload_pod *p, const struct kube_pod *pod)
{
    take_text(&p->node, pod->node);
    take_place(p, pod);
    p->phase = pod->phase;
    p->is_deleted = pod->meta.is_deleted;
    p->has_condition = pod->has_condition;
    p->is_ready = pod->is_ready;
    p->requests_gpu = pod->requests_gpu;
    p->created_s = pod->meta.created_s;
    p->condition_s = pod->condition_s;
    p->started_s = pod->started_s;
    p->group = pod->group < 0 ? -1 : pod->group;
    p->worker = pod->worker;
    if (pod->is_ready)
        p->ready_since_s = pod->condition_s > 0 ? pod->condition_s : pod->meta.created_s;
}

struct workload_pod *workload_pod_new(const struct kube_pod *pod, int64_t now_ns)
{
    (void)now_ns;
    struct workload_pod *p = mem_new(struct workload_pod);
    p->ns = mem_strdup(pod->meta.ns);
    p->name = mem_strdup(pod->meta.name);
    p->uid = mem_strdup(pod->meta.uid);
    p->is_first_ready_due = is_before_ready(pod);
    take_facts(p, pod);
    return p;
}

void workload_pod_free(struct workload_pod *p)
{
    if (!p)
        return;
    free(p->ns);
    free(p->name);
    free(p->uid);
    free(p->node);
    free(p->ip);
    free(p->annotated_port);
    free(p->annotated_path);
    free(p->annotated_scheme);
    free_ports(p);
    vec_fini(&p->marks);
    free(p);
}

const char *workload_pod_name(const struct workload_pod *p)
{
    return p->name;
}

const char *workload_pod_node(const struct workload_pod *p)
{
    return p->node;
}

/* ---- at the change to Ready ---- */

static void take_down(struct workload_pod *p, const struct fleet_node *node, uint32_t id, bool is_holder,
                      const struct fleet_reading *readings)
{
    for (size_t i = 0; readings && i < node->n_wants && p->marks.len < MARKS_MAX; i++) {
        struct mark mark = {.id = id,
                            .want = (uint32_t)i,
                            .is_holder = is_holder,
                            .integral = readings[i].integral,
                            .valid_s = readings[i].valid_s};
        vec_push(&p->marks, mark);
    }
}

static bool is_of_pod(const struct workload_pod *p, const struct fleet_holder *h)
{
    return strcmp(h->pod, p->name) == 0 && strcmp(h->ns, p->ns) == 0;
}

/* Does the pod hold this device, or a MIG device on it? */
static bool holds(const struct workload_pod *p, const struct fleet_node *node, const struct fleet_device *d)
{
    for (size_t i = 0; i < node->n_holders; i++) {
        const struct fleet_holder *h = &node->holders[i];
        bool is_on = h->device == d || (d->kind == SNAPSHOT_MIG_PARENT && strcmp(h->device->parent_uuid, d->uuid) == 0);
        if (is_on && is_of_pod(p, h))
            return true;
    }
    return false;
}

/* Of its devices, and of all that hold them: a shared device's load is told apart by all of its holders. */
static void take_down_devices(struct workload_pod *p, const struct fleet_node *node)
{
    for (size_t i = 0; i < node->n_devices; i++) {
        const struct fleet_device *d = &node->devices[i];
        if (!holds(p, node, d))
            continue;
        take_down(p, node, d->id, false, d->readings);
        for (size_t k = 0; k < node->n_holders; k++)
            if (node->holders[k].device == d)
                take_down(p, node, node->holders[k].id, true, node->holders[k].readings);
    }
}

const struct mark *workload_pod_mark(const struct workload_pod *p, bool is_holder, uint32_t id, size_t want)
{
    for (size_t i = 0; i < p->marks.len; i++) {
        const struct mark *m = &p->marks.items[i];
        if (m->id == id && m->want == want && m->is_holder == is_holder)
            return m;
    }
    return NULL;
}

void workload_pod_forget_marks(struct workload_pod *p, int64_t now_ns)
{
    if (p->marks.len > 0 && now_ns - p->ready_seen_ns > SNAPSHOT_WINDOW_MAX_NS + 10 * NS_PER_S)
        vec_fini(&p->marks);
}

static void become_ready(struct workload_pod *p, const struct workload_fleet *fleet, int64_t now_ns)
{
    p->was_first_ready_seen = p->is_first_ready_due;
    p->is_first_ready_due = false;
    p->ready_seen_ns = now_ns;
    p->marks.len = 0;
    const struct fleet_node *node = p->node[0] ? fleet->find_node(fleet->context, p->node) : NULL;
    if (!node)
        return;
    p->marks_instance = node->instance;
    take_down_devices(p, node);
}

/* Nothing is known of when it became what it is. */
static void forget_ready(struct workload_pod *p)
{
    p->was_first_ready_seen = false;
    p->ready_seen_ns = 0;
    vec_fini(&p->marks);
}

/* Another pod under the same name. */
static void start_anew(struct workload_pod *p, const struct kube_pod *pod)
{
    free(p->uid);
    p->uid = mem_strdup(pod->meta.uid);
    p->ready_since_s = 0;
    p->is_first_ready_due = is_before_ready(pod);
    forget_ready(p);
    take_facts(p, pod);
}

void workload_pod_update(struct workload_pod *p, const struct kube_pod *pod, const struct workload_fleet *fleet,
                         int64_t now_ns)
{
    if (strcmp(p->uid, pod->meta.uid) != 0) {
        start_anew(p, pod);
        return;
    }
    bool was_ready = p->is_ready;
    /* it was Ready, lost it and became so again between two messages */
    bool is_missed =
        was_ready && pod->is_ready && (p->condition_s < pod->condition_s || pod->condition_s < p->condition_s);
    take_facts(p, pod);
    if (is_missed || (was_ready && !p->is_ready))
        forget_ready(p);
    else if (!was_ready && p->is_ready)
        become_ready(p, fleet, now_ns);
}
