/* The devices that a pod holds, and what each says in the unit of the metric: of its own, or its part of a device that
 * is shared (scaling-semantics 2.1, 2.2). How parts make a value is scaling's. */
#include "workload/look.h"

#include <math.h>
#include <string.h>

/* A want that a node has not heard of yet is due within this time; then it is missing. */
#define NOT_YET_MAX_NS (5 * NS_PER_S)

/* ---- one reading ---- */

struct quantity {
    enum scaling_reading reading;
    double value; /* in the field's unit, where OK */
};

/* Whose signal is read, and of which time. */
struct reader {
    const struct look *look;
    const struct workload_input *input;
    const struct fleet_node *node;
    const struct signal *signal;
    enum span span;
};

/* Readings of a holder or of a device. */
struct owner {
    const struct fleet_reading *readings;
    uint32_t id;
    bool is_holder;
};

static struct owner device_owner(const struct fleet_device *d)
{
    return (struct owner){.readings = d->readings, .id = d->id};
}

/* A holder without readings of its own has its device's. */
static struct owner holder_owner(const struct fleet_holder *h)
{
    return h->readings ? (struct owner){.readings = h->readings, .id = h->id, .is_holder = true}
                       : device_owner(h->device);
}

static const struct fleet_reading *reading_of(const struct reader *r, struct owner owner)
{
    int place = r->signal->asked->place;
    bool is_there = owner.readings && place >= 0 && (size_t)place < r->node->n_wants;
    return is_there ? &owner.readings[place] : NULL;
}

/* The mean since the pod became Ready, from what was taken down then. */
static struct quantity since_ready(const struct reader *r, struct owner owner, const struct fleet_reading *reading)
{
    const struct workload_pod *pod = r->input->pod;
    const struct mark *mark = workload_pod_mark(pod, owner.is_holder, owner.id, (size_t)r->signal->asked->place);
    struct quantity none = {.reading = SCALING_READ_NOT_YET};
    bool is_same_agent = pod->marks_instance == r->node->instance; /* else it counts from its own start */
    if (!mark || !is_same_agent || pod->ready_seen_ns < r->signal->asked->since_ns) /* the place had another want */
        return none;
    double valid_s = reading->valid_s - mark->valid_s, integral = reading->integral - mark->integral;
    double most_s = (double)(r->look->now_ns - pod->ready_seen_ns + 2 * r->node->period_ns) / (double)NS_PER_S;
    if (!(valid_s > 0 && valid_s <= most_s && integral >= 0))
        return none;
    return (struct quantity){.reading = SCALING_READ_OK, .value = integral / valid_s};
}

static struct quantity quantity_of(const struct reader *r, struct owner owner)
{
    const struct fleet_reading *reading = reading_of(r, owner);
    int64_t now_ns = r->look->now_ns;
    if (!reading) {
        bool is_due = now_ns - r->signal->asked->since_ns > NOT_YET_MAX_NS || !owner.readings;
        return (struct quantity){.reading = is_due ? SCALING_READ_MISSING : SCALING_READ_NOT_YET};
    }
    if (reading->status == FLEET_UNSUPPORTED)
        return (struct quantity){.reading = SCALING_READ_UNSUPPORTED};
    if (reading->status == FLEET_NOT_YET && r->node->state == FLEET_NODE_UP)
        return (struct quantity){.reading = SCALING_READ_NOT_YET};
    if (!fleet_reading_is_fresh(r->node, (size_t)r->signal->asked->place, reading, now_ns))
        return (struct quantity){.reading = SCALING_READ_MISSING};
    if (r->span == SPAN_SINCE_READY)
        return since_ready(r, owner, reading);
    return (struct quantity){.reading = SCALING_READ_OK, .value = r->span == SPAN_PEAK ? reading->peak : reading->mean};
}

/* ---- holders of a device ---- */

static bool is_named(const struct fleet_holder *h, const char *ns, const char *pod)
{
    return strcmp(h->pod, pod) == 0 && strcmp(h->ns, ns) == 0;
}

/* The board of a MIG device carries the values of the board; its holders are those of all MIG devices on it. */
static bool is_on(const struct fleet_holder *h, const struct fleet_device *d)
{
    return h->device == d || (d->kind == SNAPSHOT_MIG_PARENT && strcmp(h->device->parent_uuid, d->uuid) == 0);
}

/* Pods of the workload are in order of name. */
static bool is_own(const struct look *look, const struct fleet_holder *h)
{
    const struct workload_facts *facts = look->facts;
    size_t low = 0, high = facts->n_pods;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(facts->pods[middle]->name, h->pod);
        if (order == 0)
            return strcmp(facts->pods[middle]->ns, h->ns) == 0;
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return false;
}

static void count_holders(const struct look *look, const struct fleet_node *node, const struct fleet_device *d,
                          struct scaling_device *ret)
{
    const struct fleet_holder *last = NULL;
    ret->holders = ret->own_holders = 0;
    for (size_t i = 0; i < node->n_holders; i++) {
        const struct fleet_holder *h = &node->holders[i];
        if (!is_on(h, d) || (last && is_named(last, h->ns, h->pod))) /* of one pod they are in a row */
            continue;
        last = h;
        ret->holders++;
        ret->own_holders += h->pod[0] && is_own(look, h);
    }
}

/* ---- the value of a device ---- */

/* From a reading to the metric's unit. Returns false where the total that a percentage refers to is not known. */
static bool find_factor(const struct signal *signal, const struct fleet_device *d, double *ret_factor)
{
    if (signal->is_memory_percent && d->memory_total == 0)
        return false;
    *ret_factor = signal->is_memory_percent ? 100 / (double)d->memory_total : 1 / signal->divisor;
    return true;
}

static bool is_memory(const struct signal *signal)
{
    return signal->kind == SCALING_KIND_MEMORY_PERCENT || signal->kind == SCALING_KIND_MEMORY_SIZE;
}

/* Adds up what the processes of all holders do. False where a part is not known: as none, it would make the others look
 * as if they had the device to themselves. A holder without a first sample has just come; a mean since Ready reaches
 * back behind it. */
static bool add_shares(const struct reader *r, const struct fleet_device *d, double factor, struct scaling_device *ret)
{
    for (size_t i = 0; i < r->node->n_holders; i++) {
        const struct fleet_holder *other = &r->node->holders[i];
        if (other->device != d || !other->is_measured || !other->readings)
            continue;
        struct quantity share = quantity_of(r, holder_owner(other));
        if (share.reading == SCALING_READ_MISSING ||
            (share.reading == SCALING_READ_NOT_YET && r->span == SPAN_SINCE_READY))
            return false;
        if (share.reading != SCALING_READ_OK)
            continue;
        ret->share_sum += share.value * factor;
        ret->sharers += share.value > 0;
    }
    return true;
}

/* What the processes of each holder do. Nothing is known of other metrics by process; of memory its own is enough. */
static void read_shares(const struct reader *r, const struct workload_device *wd, double factor,
                        struct scaling_device *ret)
{
    const struct fleet_holder *h = wd->holder;
    if (!h || !h->is_measured || !h->readings || (r->signal->kind != SCALING_KIND_UTILIZATION && !is_memory(r->signal)))
        return;
    struct quantity own = quantity_of(r, holder_owner(h));
    if (own.reading == SCALING_READ_UNSUPPORTED)
        return;
    if (own.reading != SCALING_READ_OK) {
        ret->reading = own.reading;
        return;
    }
    ret->share = own.value * factor;
    ret->has_shares = add_shares(r, wd->device, factor, ret) || is_memory(r->signal);
}

static void read_shared(const struct reader *r, const struct workload_device *wd, double factor,
                        struct scaling_device *ret)
{
    const struct fleet_device *d = wd->device;
    if (is_memory(r->signal)) {
        double usable = d->memory_total > d->memory_reserved ? (double)(d->memory_total - d->memory_reserved) : 0;
        ret->free = fmax(0, usable * factor - ret->value);
    }
    read_shares(r, wd, factor, ret);
}

/* The readings that are the pod's where it has the device for itself. */
static struct owner owner_of(const struct workload_device *wd, bool is_alone)
{
    bool is_own = wd->holder && wd->holder->device == wd->device && !wd->holder->is_shared && is_alone;
    return is_own ? holder_owner(wd->holder) : device_owner(wd->device);
}

static struct scaling_device read_device(const struct reader *r, const struct workload_device *wd)
{
    struct scaling_device ret = {.holders = wd->counted.holders, .own_holders = wd->counted.own_holders};
    double factor;
    struct quantity q = quantity_of(r, owner_of(wd, ret.holders <= 1));
    ret.reading = wd->device->lost_reason[0] ? SCALING_READ_MISSING : q.reading;
    if (ret.reading != SCALING_READ_OK)
        return ret;
    if (!find_factor(r->signal, wd->device, &factor)) {
        ret.reading = SCALING_READ_MISSING;
        return ret;
    }
    ret.value = q.value * factor;
    if (ret.holders > 1)
        read_shared(r, wd, factor, &ret);
    return ret;
}

static double age_of(const struct reader *r, const struct workload_device *wd)
{
    const struct fleet_reading *reading = reading_of(r, owner_of(wd, wd->counted.holders <= 1));
    if (!reading || reading->taken_ns == 0)
        return -1;
    int64_t age_ns = r->look->now_ns - reading->taken_ns;
    return age_ns > 0 ? (double)age_ns / (double)NS_PER_S : 0;
}

/* A first sample that is not due yet is no failure, if nothing else failed. */
static void settle_not_yet(const struct scaling_device *devices, size_t n, struct scaling_pod_value *ret)
{
    size_t n_not_yet = 0, n_missing = 0;
    for (size_t i = 0; i < n; i++) {
        n_not_yet += devices[i].reading == SCALING_READ_NOT_YET;
        n_missing += devices[i].reading == SCALING_READ_MISSING;
    }
    if (n_not_yet > 0 && n_missing == 0)
        ret->reading = SCALING_READ_NOT_YET;
}

void workload_read_devices(const struct look *look, struct workload_input *input, const struct signal *signal,
                           enum span span, struct scaling_device *scratch, struct scaling_pod_value *ret)
{
    struct reader r = {.look = look, .input = input, .node = input->node, .signal = signal, .span = span};
    struct workload_device *devices = input->devices;
    for (size_t i = 0; i < input->n_devices; i++) {
        scratch[i] = read_device(&r, &devices[i]);
        if (signal != &look->signals[ASKED_METRIC] || span != SPAN_WINDOW)
            continue;
        devices[i].counted = scratch[i];
        devices[i].age_s = age_of(&r, &devices[i]);
    }
    scaling_combine_devices(signal->kind, scratch, input->n_devices, ret);
    settle_not_yet(scratch, input->n_devices, ret);
}

/* ---- which devices ---- */

static bool is_simulated(const struct fleet_node *node)
{
    if (!node->is_simulated)
        return false;
    for (size_t i = 0; i < node->n_holders; i++)
        if (node->holders[i].is_listed)
            return false;
    return true;
}

static const struct fleet_device *find_parent(const struct fleet_node *node, const struct fleet_device *d)
{
    for (size_t i = 0; i < node->n_devices; i++)
        if (strcmp(node->devices[i].uuid, d->parent_uuid) == 0)
            return &node->devices[i];
    return NULL;
}

/* The device that the metric is read from: of a MIG device the board for what only boards have; NULL: it says nothing
 * about load. */
static const struct fleet_device *counted_device(const struct look *look, const struct fleet_node *node,
                                                 const struct fleet_device *d)
{
    bool is_of_board = look->signals[ASKED_METRIC].is_of_board;
    if (d->kind == SNAPSHOT_MIG && is_of_board)
        return find_parent(node, d);
    return d->kind == SNAPSHOT_MIG_PARENT && !is_of_board ? NULL : d;
}

/* All compute instances of a GPU instance report that instance's memory and activity: it counts once in a pod. */
static bool is_same(const struct fleet_device *a, const struct fleet_device *b)
{
    bool is_same_instance = a->kind == SNAPSHOT_MIG && b->kind == SNAPSHOT_MIG && a->gpu_instance >= 0 &&
                            a->gpu_instance == b->gpu_instance && strcmp(a->parent_uuid, b->parent_uuid) == 0;
    return a == b || is_same_instance;
}

static int compare_devices(const void *left, const void *right)
{
    const struct fleet_device *a = ((const struct workload_device *)left)->device;
    const struct fleet_device *b = ((const struct workload_device *)right)->device;
    return (a > b) - (a < b); /* one array, in the agent's order */
}

static size_t add_device(struct workload_device *devices, size_t n, const struct workload_device *added)
{
    for (size_t i = 0; i < n; i++)
        if (is_same(devices[i].device, added->device))
            return n;
    devices[n] = *added;
    return n + 1;
}

/* What the node's agent lists for the pod; where it lists nothing, where the pod has processes. */
static size_t take_held(const struct look *look, const struct fleet_node *node, const struct fleet_holder *holders,
                        size_t n_holders, struct workload_device *devices)
{
    size_t n = 0;
    bool has_listed = false;
    for (size_t i = 0; i < n_holders; i++)
        has_listed |= holders[i].is_listed;
    for (size_t i = 0; i < n_holders; i++) {
        const struct fleet_holder *h = &holders[i];
        const struct fleet_device *d = counted_device(look, node, h->device);
        if (!d || h->is_listed != has_listed)
            continue;
        struct workload_device device = {
            .node = node, .device = d, .holder = h, .counted = {.holders = 1, .own_holders = 1}};
        if (h->is_shared || d != h->device)
            count_holders(look, node, d, &device.counted);
        n = add_device(devices, n, &device);
    }
    qsort(devices, n, sizeof(*devices), compare_devices);
    return n;
}

/* Pods of this workload on the same node, before this one and in all, in order of name. */
static size_t count_neighbours(const struct look *look, size_t index, size_t *ret_rank)
{
    size_t n = 0;
    *ret_rank = 0;
    for (size_t i = 0; i < look->facts->n_pods; i++) {
        const struct workload_pod *p = look->facts->pods[i];
        bool is_ended = p->is_deleted || p->phase == KUBE_SUCCEEDED || p->phase == KUBE_FAILED;
        if (is_ended || strcmp(p->node, look->facts->pods[index]->node) != 0)
            continue;
        *ret_rank += i < index;
        n++;
    }
    return n;
}

static bool can_be_given(const struct fleet_device *d)
{
    return d->kind != SNAPSHOT_MIG_PARENT;
}

/* GPUs of a node whose agent simulates and where nobody hands GPUs out: the pods take the next ones in order of name,
 * and start from the first again where there are not enough. */
static size_t take_simulated(const struct look *look, const struct fleet_node *node, size_t index,
                             struct workload_device *devices)
{
    size_t rank, each = look->facts->simulated_gpus_per_pod, n_gpus = 0, n = 0, at = 0;
    size_t n_pods = count_neighbours(look, index, &rank);
    for (size_t i = 0; i < node->n_devices; i++)
        n_gpus += can_be_given(&node->devices[i]);
    each = each < n_gpus ? each : n_gpus;
    for (size_t i = 0; i < node->n_devices; i++) {
        const struct fleet_device *d = &node->devices[i];
        if (!can_be_given(d))
            continue;
        size_t first = rank * each % n_gpus, distance = (at + n_gpus - first) % n_gpus;
        size_t n_given = n_pods * each, holders = n_given / n_gpus + (at < n_given % n_gpus);
        at++;
        const struct fleet_device *counted = distance < each ? counted_device(look, node, d) : NULL;
        if (!counted)
            continue;
        struct workload_device device = {.node = node,
                                         .device = counted,
                                         .counted = {.holders = (unsigned)holders, .own_holders = (unsigned)holders}};
        n = add_device(devices, n, &device);
    }
    return n;
}

/* Keeps the k-th GPU, and those of the UUID and product that are asked for. */
static size_t select_devices(const struct trigger *t, struct workload_device *devices, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        const struct fleet_device *d = devices[i].device, *held = devices[i].holder ? devices[i].holder->device : d;
        struct trigger_device identity = {
            .kind = held->kind, .uuid = held->uuid, .parent_uuid = held->parent_uuid, .product = held->product};
        if ((t->gpu_index < 0 || (size_t)t->gpu_index == i) && trigger_matches(t, &identity))
            devices[kept++] = devices[i];
    }
    return kept;
}

bool workload_find_devices(const struct look *look, size_t index, size_t *ret_n_held)
{
    struct workload_input *input = &look->inputs[index];
    const struct fleet_node *node = input->node;
    *ret_n_held = 0;
    input->devices = NULL;
    input->n_devices = 0;
    if (!node)
        return true;
    size_t n_holders = 0;
    const struct fleet_holder *holders = fleet_holders_of(node, input->pod->ns, input->pod->name, &n_holders);
    bool is_given = n_holders == 0 && look->facts->simulated_gpus_per_pod > 0 && is_simulated(node);
    size_t room = is_given ? node->n_devices : n_holders;
    if (room == 0)
        return true;
    struct workload_device *devices = (struct workload_device *)arena_alloc(look->arena, room * sizeof(*devices));
    if (!devices)
        return false;
    *ret_n_held =
        is_given ? take_simulated(look, node, index, devices) : take_held(look, node, holders, n_holders, devices);
    input->devices = devices;
    input->n_devices = select_devices(look->trigger, devices, *ret_n_held);
    return true;
}
