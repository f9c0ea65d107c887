/* What each pod does on each device: one row for a pod on a device, made of what the kubelet lists and of the pod's
 * processes, with the readings of its own processes and their past. It invents nothing: a pod without a process has 0
 * only where every process of the device is accounted for. */
#include "attribution/attribution_private.h"

#include <stdio.h>
#include <string.h>

#define MINUTE_NS      (60 * NS_PER_S)
#define LIST_PERIOD_NS (5 * NS_PER_S)

struct row {
    uint32_t id;
    char uuid[SNAPSHOT_UUID_MAX];
    struct attribution_pod_name name; /* "" not known */
    char pod_uid[ATTRIBUTION_UID_MAX];
    int64_t since_ns;
    struct snapshot_device *use; /* in the store; NULL where processes are not looked at */
    struct snapshot_minutes minutes;
    uint32_t device_id;
    size_t place; /* of the device in the snapshot */
    /* Of the pass at hand. */
    bool is_listed, is_shared;
    uint32_t shares;
    size_t n_processes, n_without_memory, n_without_utilization;
    double memory_bytes, utilization;
};

/* How many processes of one device have something of a field, or may have, that is not in the row of its pod. */
struct census {
    struct doubt {
        size_t n_untold;   /* whose pod could not be told: it may be any */
        size_t n_nameless; /* in a pod of which only the UID is known: it may be any whose UID is not */
    } memory, utilization;
};

struct attribution_holders {
    struct snapshot_store *store; /* of uses; NULL where processes are not looked at */
    const struct snapshot *uses;  /* a reference */
    VEC(struct row *) rows;       /* at most SNAPSHOT_DEVICES_MAX */
    VEC(struct census) census;    /* by place of the device */
    VEC(struct snapshot_holder) shown;
    struct snapshot_holders list;
    int64_t list_period_ns; /* between the driver's lists of processes */
    uint32_t last_id;
    size_t n_dropped;
    struct metric_series *dropped;
};

/* One update. */
struct pass {
    struct attribution_holders *h;
    const struct snapshot *s;
    const struct attribution_processes *processes;
    bool has_news; /* a named pod was seen for the first time by a process, before it was listed */
};

static bool has_name(const struct attribution_pod_name *name)
{
    return *name->pod != '\0';
}

static bool is_named(const struct row *r, const char *ns, const char *pod)
{
    return strcmp(r->name.pod, pod) == 0 && strcmp(r->name.ns, ns) == 0;
}

static bool is_host(const struct row *r)
{
    return !has_name(&r->name) && !*r->pod_uid;
}

/* ---- rows ---- */

static struct row *add_row(struct pass *pass, size_t place, const struct attribution_pod_name *name,
                           const char *pod_uid)
{
    struct attribution_holders *h = pass->h;
    const struct snapshot_device *d = &pass->s->devices[place];
    if (h->rows.len == SNAPSHOT_DEVICES_MAX) {
        h->n_dropped++;
        return NULL;
    }
    struct row *r = mem_new(struct row);
    r->id = ++h->last_id;
    r->device_id = d->id;
    r->place = place;
    r->name = *name;
    r->since_ns = pass->s->taken_ns;
    (void)str_copy(r->uuid, sizeof(r->uuid), str_of(d->uuid));
    (void)str_copy(r->pod_uid, sizeof(r->pod_uid), str_of(pod_uid));
    if (h->store) {
        struct snapshot_device use = {.kind = d->kind, .index = (int)place, .gpu_instance = -1, .compute_instance = -1};
        (void)snprintf(use.uuid, sizeof(use.uuid), "%u", r->id);
        r->use = snapshot_store_add(h->store, &use);
    }
    vec_push(&h->rows, r);
    return r;
}

static void remove_row(struct attribution_holders *h, size_t i)
{
    struct row *r = h->rows.items[i];
    if (r->use)
        snapshot_store_remove(h->store, r->use->uuid);
    free(r);
    vec_remove(&h->rows, i);
}

static bool find_place(const struct snapshot *s, uint32_t device_id, size_t *place)
{
    if (*place < s->n_devices && s->devices[*place].id == device_id)
        return true;
    for (size_t i = 0; i < s->n_devices; i++)
        if (s->devices[i].id == device_id) {
            *place = i;
            return true;
        }
    return false;
}

/* Readings age by the periods of what they are made from. */
static void set_periods(const struct pass *pass)
{
    struct snapshot *header = snapshot_store_header(pass->h->store);
    header->period_ns = pass->s->period_ns;
    header->field_period_ns[SNAPSHOT_MEMORY_USED] = pass->h->list_period_ns;
    header->driver = pass->s->driver;
}

/* Forget what is of one pass only, and the rows of devices that are gone. */
static void begin(struct pass *pass)
{
    struct attribution_holders *h = pass->h;
    if (h->store && pass->s)
        set_periods(pass);
    h->n_dropped = 0;
    h->list.n_unattributed = 0;
    h->census.len = 0;
    for (size_t i = 0; pass->s && i < pass->s->n_devices; i++)
        vec_push(&h->census, ((struct census){.memory = {0, 0}}));
    for (size_t i = h->rows.len; i-- > 0;) {
        struct row *r = h->rows.items[i];
        if (!pass->s || !find_place(pass->s, r->device_id, &r->place)) {
            remove_row(h, i);
            continue;
        }
        r->is_listed = r->is_shared = false;
        r->shares = 0;
        r->n_processes = 0;
        r->n_without_memory = r->n_without_utilization = 0;
        r->memory_bytes = r->utilization = 0;
    }
}

/* ---- processes ---- */

/* How well a row fits a process: its own pod; the pod of that name whose UID is not known yet; the pod of that UID
 * whose name was not known yet. 0: not at all. A pod that comes back under its name has another UID and is another. */
static int fit(const struct row *r, const struct attribution_pod_name *name, const char *pod_uid)
{
    bool is_same_uid = strcmp(r->pod_uid, pod_uid) == 0, is_same_name = is_named(r, name->ns, name->pod);
    if (is_same_uid && (is_same_name || (!has_name(name) && *pod_uid)))
        return 3;
    if (is_same_name && has_name(name) && (!*r->pod_uid || !*pod_uid))
        return 2;
    return is_same_uid && *pod_uid && !has_name(&r->name) ? 1 : 0;
}

static struct row *row_of_process(struct pass *pass, size_t place, const struct attribution_pod_name *name,
                                  const char *pod_uid)
{
    struct row *best = NULL;
    for (size_t i = 0; i < pass->h->rows.len; i++) {
        struct row *r = pass->h->rows.items[i];
        int r_fit = r->place == place ? fit(r, name, pod_uid) : 0;
        if (r_fit > (best ? fit(best, name, pod_uid) : 0))
            best = r;
    }
    if (!best) {
        pass->has_news = pass->has_news || has_name(name);
        return add_row(pass, place, name, pod_uid);
    }
    if (*pod_uid)
        (void)str_copy(best->pod_uid, sizeof(best->pod_uid), str_of(pod_uid));
    if (has_name(name))
        best->name = *name;
    return best;
}

static void doubt(struct doubt *d, enum attribution_place where, bool may_have)
{
    d->n_untold += may_have && where == ATTRIBUTION_UNTOLD;
    d->n_nameless += may_have && where == ATTRIBUTION_IN_POD;
}

static void count_process(struct pass *pass, size_t place, const struct snapshot_process *listed)
{
    static const struct attribution_pod_name nobody = {"", ""};
    const struct attribution_process *p = attribution_processes_find(pass->processes, listed->pid);
    enum attribution_place where = attribution_processes_place(pass->processes, p);
    bool is_in_pod = where == ATTRIBUTION_IN_POD, is_gone = p && !p->is_there;
    /* What has ended has given its memory back; the driver still has samples of it. */
    bool may_have_memory = listed->has_memory ? listed->memory_bytes > 0 && !is_gone : !is_gone;
    bool may_have_utilization = !listed->has_utilization || listed->utilization > 0;
    if (where == ATTRIBUTION_UNTOLD || (is_in_pod && !has_name(&p->name))) {
        struct census *c = &pass->h->census.items[place];
        doubt(&c->memory, where, may_have_memory);
        doubt(&c->utilization, where, may_have_utilization);
    }
    pass->h->list.n_unattributed += where == ATTRIBUTION_UNTOLD;
    struct row *r =
        is_in_pod ? row_of_process(pass, place, &p->name, p->cgroup.pod_uid) : row_of_process(pass, place, &nobody, "");
    if (!r)
        return;
    r->n_processes += 1;
    r->n_without_memory += !listed->has_memory && may_have_memory;
    r->n_without_utilization += !listed->has_utilization;
    r->memory_bytes += listed->has_memory ? (double)listed->memory_bytes : 0;
    r->utilization += listed->has_utilization ? listed->utilization : 0;
}

/* A list that failed to be read stands as long as a reading of its period would. */
static bool stands_list(const struct pass *pass, const struct snapshot_device *d)
{
    int64_t limit_ns = 3 * pass->h->list_period_ns > 5 * NS_PER_S ? 3 * pass->h->list_period_ns : 5 * NS_PER_S;
    return (d->process_list.status == SNAPSHOT_OK || d->process_list.status == SNAPSHOT_FAILED) &&
           d->process_list.taken_ns && pass->s->taken_ns - d->process_list.taken_ns <= limit_ns;
}

static void count_processes(struct pass *pass)
{
    const struct snapshot *s = pass->s;
    size_t place = 0;
    if (pass->h->list.sight != SNAPSHOT_SIGHT_OK) {
        pass->h->list.n_unattributed = s->n_processes;
        return;
    }
    for (size_t i = 0; i < s->n_processes; i++)
        if (find_place(s, s->processes[i].device_id, &place) && stands_list(pass, &s->devices[place]))
            count_process(pass, place, &s->processes[i]);
}

/* ---- the kubelet's list ---- */

/* The pod's row, of several of that name the one with processes, else the newest: the others are earlier pods. */
static struct row *row_of_listing(struct pass *pass, size_t place, const struct snapshot_holding *holding)
{
    struct row *best = NULL;
    for (size_t i = 0; i < pass->h->rows.len; i++) {
        struct row *r = pass->h->rows.items[i];
        if (r->place != place || !is_named(r, holding->ns, holding->pod) || !*holding->pod)
            continue;
        bool has_more = !best || (r->n_processes > 0) > (best->n_processes > 0);
        bool is_newer = best && (r->n_processes > 0) == (best->n_processes > 0) && r->id > best->id;
        if (has_more || is_newer)
            best = r;
    }
    if (best)
        return best;
    struct attribution_pod_name name;
    (void)str_copy(name.ns, sizeof(name.ns), str_of(holding->ns));
    (void)str_copy(name.pod, sizeof(name.pod), str_of(holding->pod));
    return add_row(pass, place, &name, "");
}

static void count_holdings(struct pass *pass, const struct snapshot_owners *owners)
{
    for (size_t i = 0; i < pass->s->n_devices; i++) {
        size_t n;
        const struct snapshot_holding *holdings = snapshot_owners_of(owners, pass->s->devices[i].uuid, &n);
        for (size_t k = 0; k < n; k++) {
            struct row *r = row_of_listing(pass, i, &holdings[k]);
            if (!r)
                continue;
            r->is_listed = true;
            r->is_shared = r->is_shared || holdings[k].is_shared;
            r->shares += holdings[k].shares;
        }
    }
}

/* A pod that only has processes somewhere is there beside others. */
static void end_rows(struct attribution_holders *h)
{
    for (size_t i = h->rows.len; i-- > 0;) {
        struct row *r = h->rows.items[i];
        r->is_shared = r->is_shared || !r->is_listed;
        if (!r->is_listed && r->n_processes == 0)
            remove_row(h, i);
    }
}

/* ---- readings ---- */

/* Is all that the row's pod has of a field among the processes that were counted for it? */
static bool is_accounted(const struct pass *pass, const struct row *r, const struct doubt *d)
{
    if (pass->h->list.sight != SNAPSHOT_SIGHT_OK || pass->s->n_processes_dropped)
        return false;
    return is_host(r) || (d->n_untold == 0 && (*r->pod_uid || d->n_nameless == 0));
}

static void record_one(const struct pass *pass, struct row *r, enum snapshot_field field, double value, bool is_known,
                       int64_t taken_ns)
{
    if (is_known)
        snapshot_store_record(pass->h->store, r->use, field, value, taken_ns);
    else
        snapshot_store_fail(r->use, field, SNAPSHOT_FAILED);
}

/* The same reading recorded twice is one: it stands for the time since the one before it. */
static void record(const struct pass *pass, struct row *r)
{
    const struct snapshot_device *d = &pass->s->devices[r->place];
    const struct census *c = &pass->h->census.items[r->place];
    if (d->process_list.status == SNAPSHOT_UNSUPPORTED)
        snapshot_store_fail(r->use, SNAPSHOT_MEMORY_USED, SNAPSHOT_UNSUPPORTED);
    else if (d->process_list.status == SNAPSHOT_OK)
        record_one(pass, r, SNAPSHOT_MEMORY_USED, r->memory_bytes,
                   is_accounted(pass, r, &c->memory) && !r->n_without_memory, d->process_list.taken_ns);
    if (d->process_utilization.status == SNAPSHOT_UNSUPPORTED || d->kind == SNAPSHOT_MIG)
        snapshot_store_fail(r->use, SNAPSHOT_UTILIZATION, SNAPSHOT_UNSUPPORTED);
    else if (d->process_list.status == SNAPSHOT_OK && d->process_utilization.status == SNAPSHOT_OK)
        record_one(pass, r, SNAPSHOT_UTILIZATION, r->utilization < 100 ? r->utilization : 100,
                   is_accounted(pass, r, &c->utilization) && !r->n_without_utilization,
                   d->process_utilization.taken_ns);
}

static bool fresh_value(const struct snapshot *s, const struct snapshot_device *d, enum snapshot_field field,
                        double *ret)
{
    return snapshot_mean(s, d, field, s->taken_ns, 0, ret);
}

/* The row's own memory, as the store has it now. */
static bool own_memory(const struct pass *pass, const struct row *r, double *ret)
{
    return r->use && snapshot_mean(snapshot_store_header(pass->h->store), r->use, SNAPSHOT_MEMORY_USED,
                                   pass->s->taken_ns, 0, ret);
}

/* Memory as scaling-semantics 2.2 and 6 count it: of a shared device own of own and free, of others used of total. */
static bool memory_percent(const struct pass *pass, const struct row *r, double *ret)
{
    const struct snapshot_device *d = &pass->s->devices[r->place];
    double used, whole;
    if (r->is_shared) {
        if (!own_memory(pass, r, &used) || !fresh_value(pass->s, d, SNAPSHOT_MEMORY_FREE, &whole))
            return false;
        whole += used;
    } else if (!fresh_value(pass->s, d, SNAPSHOT_MEMORY_USED, &used) ||
               !fresh_value(pass->s, d, SNAPSHOT_MEMORY_TOTAL, &whole)) {
        return false;
    }
    if (!(whole > 0))
        return false;
    *ret = 100 * used / whole;
    return true;
}

static void record_minute(const struct pass *pass, struct row *r)
{
    struct snapshot_minutes *m = &r->minutes;
    int64_t minute = pass->s->taken_ns / MINUTE_NS;
    double percent;
    if (!memory_percent(pass, r, &percent))
        return;
    int64_t first = m->minute && minute - m->minute < SNAPSHOT_MINUTES ? m->minute + 1 : minute - SNAPSHOT_MINUTES + 1;
    for (int64_t i = first > 0 ? first : 0; i <= minute; i++)
        m->of[i % SNAPSHOT_MINUTES] = (struct snapshot_extremes){.low = 1, .high = 0};
    m->minute = minute;
    struct snapshot_extremes *x = &m->of[minute % SNAPSHOT_MINUTES];
    float value = (float)percent;
    bool is_first = x->low > x->high;
    x->low = is_first || value < x->low ? value : x->low;
    x->high = is_first || value > x->high ? value : x->high;
}

/* ---- the list ---- */

static int compare_rows(const void *left, const void *right)
{
    const struct row *a = *(struct row *const *)left, *b = *(struct row *const *)right;
    if (a->place != b->place)
        return a->place < b->place ? -1 : 1;
    int order = strcmp(a->name.ns, b->name.ns);
    order = order ? order : strcmp(a->name.pod, b->name.pod);
    order = order ? order : strcmp(a->pod_uid, b->pod_uid);
    return order ? order : a->id < b->id ? -1 : 1;
}

static int compare_device_ids(const void *left, const void *right)
{
    const struct snapshot_device *a = left, *b = right;
    return a->id < b->id ? -1 : a->id > b->id;
}

/* Devices of the store are in the order of their ids: they come at the end. */
static const struct snapshot_device *use_of(const struct attribution_holders *h, const struct row *r)
{
    if (!r->use || !h->uses ||
        (!r->use->readings[SNAPSHOT_UTILIZATION].taken_ns && !r->use->readings[SNAPSHOT_MEMORY_USED].taken_ns))
        return NULL;
    return bsearch(r->use, h->uses->devices, h->uses->n_devices, sizeof(*r->use), compare_device_ids);
}

static void show(struct attribution_holders *h, const struct row *r)
{
    struct snapshot_holder holder = {.id = r->id,
                                     .device_id = r->device_id,
                                     .uuid = r->uuid,
                                     .ns = r->name.ns,
                                     .pod = r->name.pod,
                                     .pod_uid = r->pod_uid,
                                     .is_listed = r->is_listed,
                                     .is_shared = r->is_shared,
                                     .shares = r->shares,
                                     .n_processes = r->n_processes,
                                     .since_ns = r->since_ns,
                                     .use = use_of(h, r),
                                     .memory = r->minutes.minute ? &r->minutes : NULL};
    vec_push(&h->shown, holder);
}

static void publish(struct pass *pass)
{
    struct attribution_holders *h = pass->h;
    if (h->store && pass->s && pass->s->taken_ns > 0) {
        snapshot_unref(h->uses);
        h->uses = snapshot_store_publish(h->store, pass->s->taken_ns);
    }
    if (h->rows.len)
        qsort(h->rows.items, h->rows.len, sizeof(h->rows.items[0]), compare_rows);
    h->shown.len = 0;
    for (size_t i = 0; i < h->rows.len; i++)
        show(h, h->rows.items[i]);
    h->list.taken_ns = pass->s ? pass->s->taken_ns : 0;
    h->list.uses = h->uses;
    h->list.n_holders = h->shown.len;
    h->list.holders = h->shown.items;
}

bool attribution_holders_update(struct attribution_holders *h, const struct snapshot *s,
                                const struct snapshot_owners *owners, const struct attribution_processes *processes)
{
    struct pass pass = {.h = h, .s = s, .processes = processes};
    h->list.sight = attribution_processes_sight(processes, s, h->list.text);
    begin(&pass);
    if (s) {
        count_processes(&pass);
        count_holdings(&pass, owners);
        end_rows(h);
        for (size_t i = 0; i < h->rows.len; i++) {
            if (h->store)
                record(&pass, h->rows.items[i]);
            record_minute(&pass, h->rows.items[i]);
        }
    }
    publish(&pass);
    metric_set(h->dropped, (double)h->n_dropped);
    return pass.has_news;
}

const struct snapshot_holders *attribution_holders_list(const struct attribution_holders *h)
{
    return &h->list;
}

bool attribution_holders_has_process(const struct attribution_holders *h, const char *uuid, const char *ns,
                                     const char *pod)
{
    for (size_t i = 0; i < h->rows.len; i++) {
        const struct row *r = h->rows.items[i];
        if (r->n_processes && strcmp(r->uuid, uuid) == 0 && is_named(r, ns, pod))
            return true;
    }
    return false;
}

/* ---- new and free ---- */

struct attribution_holders *attribution_holders_new(const struct attribution_config *config)
{
    static const struct metric_desc dropped = {.name = "keda_gpu_scaler_holders_dropped",
                                               .help = "Pods on devices that were left out: there are too many.",
                                               .kind = METRIC_GAUGE};
    struct attribution_holders *h = mem_new(struct attribution_holders);
    h->store = config->procfs ? snapshot_store_new(NS_PER_S) : NULL;
    h->list_period_ns = config->process_period_ns > 0 ? config->process_period_ns : LIST_PERIOD_NS;
    h->list.sight = config->procfs ? SNAPSHOT_SIGHT_STARTING : SNAPSHOT_SIGHT_OFF;
    h->dropped = metric_only(metric_register(config->metrics, &dropped));
    return h;
}

void attribution_holders_free(struct attribution_holders *h)
{
    if (!h)
        return;
    while (h->rows.len)
        remove_row(h, h->rows.len - 1);
    vec_fini(&h->rows);
    vec_fini(&h->census);
    vec_fini(&h->shown);
    snapshot_unref(h->uses);
    snapshot_store_free(h->store);
    free(h);
}
