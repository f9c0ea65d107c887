/* The lists that all workloads share, and which workloads are tracked. */
#include "cluster/cluster.h"

#include "cluster/private.h"

#include <stdio.h>
#include <string.h>

/* Where no list says which names there are, each name that a peer invents costs a watch of the API server. */
enum { OBJECTS_MAX = 100000, WORKLOADS_MAX = 20000, UNLISTED_MAX = 1000 };
/* Each workload is looked at every 5 s, and ticks every second: so few at a time that no question waits for long. */
enum { LOOKS_A_STEP = 1, TICKS_A_STEP = 50 };
#define LOOK_NS     (5 * NS_PER_S)
#define TICK_NS     (1 * NS_PER_S)
#define STEP_MAX_NS (50 * NS_PER_MS)
#define FORGET_NS   (15 * 60 * NS_PER_S)
#define GOES_ON_NS  (60 * NS_PER_S) /* longer than any pause between tries */

static const struct metric_desc tracked_desc = {
    .name = "keda_gpu_scaler_workloads",
    .help = "ScaledObjects and ScaledJobs whose pods are followed.",
    .kind = METRIC_GAUGE,
};

void cluster_key(char key[CLUSTER_KEY_MAX], const char *ns, const char *name)
{
    (void)snprintf(key, CLUSTER_KEY_MAX, "%s/%s", ns, name);
}

const struct kube_scaled_object *cluster_find_object(const struct cluster *c, const char *ns, const char *name)
{
    char key[CLUSTER_KEY_MAX];
    cluster_key(key, ns, name);
    const struct cluster_scaled_object *o = map_get(c->objects, key, strlen(key));
    return o ? &o->is : NULL;
}

static bool is_settled(const struct cluster_list *list)
{
    return list->is_synced || list->is_denied;
}

/* ---- tracked workloads ---- */

static int compare(const struct cluster_workload *w, const char *ns, const char *name)
{
    int order = strcmp(w->ns, ns);
    return order ? order : strcmp(w->name, name);
}

static size_t place_of(const struct cluster *c, const char *ns, const char *name)
{
    size_t low = 0, high = c->workloads.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(c->workloads.items[middle], ns, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct cluster_workload *cluster_find(struct cluster *c, const char *ns, const char *name)
{
    char key[CLUSTER_KEY_MAX];
    cluster_key(key, ns, name);
    return map_get(c->by_name, key, strlen(key));
}

static struct cluster_workload *track(struct cluster *c, const char *ns, const char *name)
{
    struct cluster_workload *w = cluster_find(c, ns, name);
    if (w)
        return w;
    char key[CLUSTER_KEY_MAX];
    w = cluster_workload_new(c, ns, name);
    size_t at = place_of(c, w->ns, w->name);
    vec_push(&c->workloads, w);
    memmove(&c->workloads.items[at + 1], &c->workloads.items[at], (c->workloads.len - 1 - at) * sizeof(w));
    c->workloads.items[at] = w;
    c->look.next += at < c->look.next;
    c->tick.next += at < c->tick.next;
    cluster_key(key, ns, name);
    map_put(c->by_name, key, strlen(key), w);
    metric_set(c->tracked, (double)c->workloads.len);
    return w;
}

static void forget(struct cluster *c, size_t at)
{
    struct cluster_workload *w = c->workloads.items[at];
    char key[CLUSTER_KEY_MAX];
    cluster_key(key, w->ns, w->name);
    vec_remove(&c->workloads, at);
    c->look.next -= at < c->look.next;
    c->tick.next -= at < c->tick.next;
    map_remove(c->by_name, key, strlen(key));
    metric_set(c->tracked, (double)c->workloads.len);
}

/* Peers may ask for any name: one that the lists do not have is not tracked. */
static bool is_nobody(const struct cluster *c, const char *ns, const char *name)
{
    char key[CLUSTER_KEY_MAX];
    if (strlen(ns) >= CLUSTER_NAME_MAX || strlen(name) >= CLUSTER_NAME_MAX)
        return true;
    cluster_key(key, ns, name);
    bool has_lists = c->scaled_objects.is_synced && !c->scaled_objects.is_denied && is_settled(&c->scaled_jobs);
    return has_lists && !map_get(c->objects, key, strlen(key)) && !map_get(c->jobs, key, strlen(key));
}

struct cluster_workload *cluster_ask(struct cluster *c, const char *ns, const char *name, const char *pod_selector)
{
    struct cluster_workload *w = cluster_find(c, ns, name);
    size_t most = c->scaled_objects.is_denied ? UNLISTED_MAX : WORKLOADS_MAX;
    if (!w && (is_nobody(c, ns, name) || c->workloads.len >= most))
        return NULL;
    w = w ? w : track(c, ns, name);
    bool was_asked = cluster_workload_is_asked(w), is_same = strcmp(w->pod_selector, pod_selector) == 0;
    w->asked_ns = net_now_ns(c->config.loop);
    (void)str_copy(w->pod_selector, sizeof(w->pod_selector), str_of(pod_selector));
    if (!was_asked)
        cluster_workload_touch(w); /* from now on it is read more often */
    if (!was_asked || !is_same)    /* at once: nobody is answered with another selector's pods */
        cluster_workload_tick(w);
    return w;
}

void cluster_each(struct cluster *c, void (*visit)(void *context, struct cluster_workload *w), void *context)
{
    for (size_t i = 0; i < c->workloads.len; i++)
        visit(context, c->workloads.items[i]);
}

size_t cluster_len(const struct cluster *c)
{
    return c->workloads.len;
}

/* ---- which ScaledObjects are ours ---- */

/* "keda-gpu-scaler.gpu-scaler.svc:6000", "dns:///keda-gpu-scaler:6000", "dns://10.0.0.1/keda-gpu-scaler:6000",
 * "dns:keda-gpu-scaler:6000" (gRPC's forms): the labels of the host. */
static bool is_our_address(const struct cluster_config *config, struct str address)
{
    static const struct str scheme = {"dns:", 4};
    for (size_t i = address.len; i > 0; i--)
        if (address.ptr[i - 1] == '/') {
            address = (struct str){&address.ptr[i], address.len - i};
            break;
        }
    if (str_has_prefix(address, scheme.ptr))
        address = (struct str){&address.ptr[scheme.len], address.len - scheme.len};
    struct str host = str_cut(&address, ':');
    struct str name = str_cut(&host, '.');
    struct str ns = host.ptr ? str_cut(&host, '.') : (struct str){NULL, 0};
    return str_equals(name, config->service) && (!ns.ptr || !*config->service_ns || str_equals(ns, config->service_ns));
}

bool cluster_is_our_trigger(const struct cluster_config *config, const struct kube_trigger *t)
{
    for (size_t i = 0; i < t->n_metadata; i++)
        if (strcmp(t->metadata[i].key, "scalerAddress") == 0 &&
            is_our_address(config, str_trim(str_of(t->metadata[i].value))))
            return true;
    return false;
}

static bool is_ours(const struct cluster_config *config, const struct kube_scaled_object *o)
{
    for (size_t i = 0; i < o->n_triggers; i++)
        if (cluster_is_our_trigger(config, &o->triggers[i]))
            return true;
    return false;
}

/* ---- the lists ---- */

static void on_scaled_object(void *context, const struct kube_object *object)
{
    struct cluster *c = ((struct cluster_list *)context)->cluster;
    const struct kube_scaled_object *o = object->scaled_object;
    char key[CLUSTER_KEY_MAX];
    cluster_key(key, o->meta.ns, o->meta.name);
    struct cluster_scaled_object *copy = o->n_triggers ? cluster_copy_scaled_object(o) : NULL;
    if (copy)
        map_put(c->objects, key, strlen(key), copy);
    else
        map_remove(c->objects, key, strlen(key));
    struct cluster_workload *w = cluster_find(c, o->meta.ns, o->meta.name);
    bool is_expected = copy && is_ours(&c->config, o);
    if (!w && is_expected && c->workloads.len < OBJECTS_MAX)
        w = track(c, o->meta.ns, o->meta.name);
    if (!w)
        return;
    w->is_expected = is_expected;
    cluster_workload_touch(w);
    if (is_expected) /* agents are asked for it from now on, not from the first question on */
        cluster_workload_look(w);
}

static void on_scaled_object_gone(void *context, const char *ns, const char *name, const char *uid)
{
    struct cluster *c = ((struct cluster_list *)context)->cluster;
    (void)uid;
    char key[CLUSTER_KEY_MAX];
    cluster_key(key, ns, name);
    map_remove(c->objects, key, strlen(key));
    struct cluster_workload *w = cluster_find(c, ns, name);
    if (w)
        w->is_expected = false;
}

static void on_scaled_job(void *context, const struct kube_object *object)
{
    static char mark;
    struct cluster *c = ((struct cluster_list *)context)->cluster;
    char key[CLUSTER_KEY_MAX];
    cluster_key(key, object->meta.ns, object->meta.name);
    if (!map_get(c->jobs, key, strlen(key)))
        map_put(c->jobs, key, strlen(key), &mark);
}

static void on_scaled_job_gone(void *context, const char *ns, const char *name, const char *uid)
{
    struct cluster *c = ((struct cluster_list *)context)->cluster;
    (void)uid;
    char key[CLUSTER_KEY_MAX];
    cluster_key(key, ns, name);
    map_remove(c->jobs, key, strlen(key));
}

static bool touch_if_owner(struct cluster *c, struct cluster_workload *w, const struct kube_hpa *hpa)
{
    const struct kube_scaled_object *o = cluster_find_object(c, w->ns, w->name);
    bool is_owner = o && strcmp(o->hpa_name, hpa->meta.name) == 0;
    if (is_owner)
        cluster_workload_touch(w);
    return is_owner;
}

/* The workload whose HPA it is reads /scale again: the HPA may just have changed it. An HPA that KEDA made carries the
 * ScaledObject's name behind "keda-hpa-", unless the user named it. */
static void touch_owner(struct cluster *c, const struct kube_hpa *hpa)
{
    static const char prefix[] = "keda-hpa-";
    struct cluster_workload *named = str_has_prefix(str_of(hpa->meta.name), prefix)
                                         ? cluster_find(c, hpa->meta.ns, hpa->meta.name + strlen(prefix))
                                         : NULL;
    if (named && touch_if_owner(c, named, hpa))
        return;
    for (size_t i = place_of(c, hpa->meta.ns, ""); i < c->workloads.len; i++) {
        if (strcmp(c->workloads.items[i]->ns, hpa->meta.ns) != 0)
            return;
        (void)touch_if_owner(c, c->workloads.items[i], hpa);
    }
}

static void on_hpa(void *context, const struct kube_object *object)
{
    struct cluster *c = ((struct cluster_list *)context)->cluster;
    const struct kube_hpa *hpa = object->hpa;
    char key[CLUSTER_KEY_MAX];
    cluster_key(key, hpa->meta.ns, hpa->meta.name);
    const struct cluster_hpa *before = map_get(c->hpas_by_name, key, strlen(key));
    bool is_moved = before ? before->is.desired != hpa->desired : c->hpas.is_synced;
    struct cluster_hpa *copy = cluster_copy_hpa(hpa); /* without an external metric too: people must be told so */
    if (copy)
        map_put(c->hpas_by_name, key, strlen(key), copy);
    else
        map_remove(c->hpas_by_name, key, strlen(key));
    if (is_moved) /* not with each sync that shows other readings */
        touch_owner(c, hpa);
}

static void on_hpa_gone(void *context, const char *ns, const char *name, const char *uid)
{
    struct cluster *c = ((struct cluster_list *)context)->cluster;
    (void)uid;
    char key[CLUSTER_KEY_MAX];
    cluster_key(key, ns, name);
    map_remove(c->hpas_by_name, key, strlen(key));
}

/* ---- who scales a target ---- */

struct count {
    const struct cluster *cluster;
    const struct kube_scaled_object *object; /* whose target it is */
    size_t n;
};

static bool is_target(const struct count *count, const char *ns, const char *kind, const char *name)
{
    const struct kube_scaled_object *o = count->object;
    return strcmp(ns, o->meta.ns) == 0 && strcmp(kind, o->target_kind) == 0 && strcmp(name, o->target_name) == 0;
}

static void count_hpa(void *context, const void *key, size_t key_len, void *value)
{
    struct count *count = context;
    const struct kube_hpa *hpa = &((const struct cluster_hpa *)value)->is;
    (void)key;
    (void)key_len;
    count->n += is_target(count, hpa->meta.ns, hpa->target_kind, hpa->target_name);
}

/* Those that have an HPA are counted by it. */
static void count_object(void *context, const void *key, size_t key_len, void *value)
{
    struct count *count = context;
    const struct kube_scaled_object *o = &((const struct cluster_scaled_object *)value)->is;
    char hpa[CLUSTER_KEY_MAX];
    (void)key;
    (void)key_len;
    if (!is_target(count, o->meta.ns, o->target_kind, o->target_name))
        return;
    cluster_key(hpa, o->meta.ns, o->hpa_name);
    count->n += !map_get(count->cluster->hpas_by_name, hpa, strlen(hpa));
}

size_t cluster_count_scalers(const struct cluster_workload *w)
{
    const struct cluster *c = w->cluster;
    struct count count = {.cluster = c, .object = cluster_find_object(c, w->ns, w->name)};
    if (!count.object)
        return 0;
    map_each(c->hpas_by_name, count_hpa, &count);
    map_each(c->objects, count_object, &count);
    return count.n;
}

/* ---- all lists ---- */

static void tell_works(struct cluster_list *list)
{
    const struct cluster_config *config = &list->cluster->config;
    if (list->is_told && config->told)
        config->told(config->context, list->name, NULL);
    list->is_told = false;
}

static void on_synced(void *context)
{
    struct cluster_list *list = context;
    list->is_synced = true;
    list->is_denied = false;
    tell_works(list);
}

/* No permission, and no such kind, are answers; whatever was read before is no longer known to be right. */
static void on_failed(void *context, const struct err *error)
{
    struct cluster_list *list = context;
    struct cluster *c = list->cluster;
    list->is_denied = error->class == ERR_PERMISSION_DENIED || error->class == ERR_NOT_FOUND;
    if (!list->is_told && c->config.told)
        c->config.told(c->config.context, list->name, error);
    list->is_told = true;
    list->failed_ns = net_now_ns(c->config.loop);
}

bool cluster_goes_on(const struct cluster *c, const struct kube_watch *watch, int64_t failed_ns)
{
    int64_t now_ns = net_now_ns(c->config.loop);
    return kube_watch_is_synced(watch) && now_ns - failed_ns > GOES_ON_NS && kube_watch_silent_ns(watch, now_ns) == 0;
}

static void look_at_list(struct cluster_list *list)
{
    if (list->is_told && cluster_goes_on(list->cluster, list->watch, list->failed_ns))
        tell_works(list);
}

static void start_list(struct cluster *c, struct cluster_list *list, enum kube_kind kind, const char *name,
                       void (*changed)(void *, const struct kube_object *),
                       void (*gone)(void *, const char *, const char *, const char *))
{
    *list = (struct cluster_list){.cluster = c, .name = name};
    list->watch = kube_watch_start(
        c->config.kube,
        &(struct kube_watch_config){
            .kind = kind, .changed = changed, .gone = gone, .synced = on_synced, .failed = on_failed, .context = list});
}

void cluster_reload(struct cluster *c)
{
    uint64_t generation = trigger_cache_generation(c->config.triggers);
    if (generation == c->generation) /* what is remembered of triggers is not lost with each new certificate */
        return;
    c->generation = generation;
    for (size_t i = 0; i < c->workloads.len; i++)
        cluster_workload_reload(c->workloads.items[i]);
}

bool cluster_is_synced(const struct cluster *c)
{
    return is_settled(&c->scaled_objects) && is_settled(&c->scaled_jobs) && is_settled(&c->hpas);
}

void cluster_write_state(const struct cluster *c, struct buf *out)
{
    const struct cluster_list *lists[] = {&c->scaled_objects, &c->scaled_jobs, &c->hpas};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        (void)buf_printf(out, "[%c]%s %s (information only)\n", is_settled(lists[i]) ? '+' : '-', lists[i]->name,
                         lists[i]->is_denied   ? "may not be read"
                         : lists[i]->is_synced ? "followed"
                                               : "not read yet");
}

/* ---- time ---- */

/* How many are due by now for each to have its turn once a period; after a turn that took long none has two. */
static size_t count_due(struct cluster_sweep *sweep, size_t n, int64_t period_ns, int64_t now_ns)
{
    int64_t due = (int64_t)n * (now_ns - sweep->done_ns) / period_ns;
    if (due >= (int64_t)n) {
        sweep->done_ns = now_ns;
        return n;
    }
    sweep->done_ns += due * period_ns / (int64_t)n;
    return (size_t)due;
}

static struct cluster_workload *take_next(struct cluster *c, struct cluster_sweep *sweep)
{
    if (sweep->next >= c->workloads.len)
        sweep->next = 0;
    return c->workloads.items[sweep->next++];
}

static void tick(struct cluster *c, struct cluster_workload *w, int64_t now_ns)
{
    if (!w->is_expected && now_ns - w->asked_ns >= FORGET_NS)
        forget(c, c->tick.next - 1);
    else
        cluster_workload_tick(w);
}

static void plan_step(struct cluster *c)
{
    int64_t n = (int64_t)c->workloads.len, look_ns = LOOK_NS * LOOKS_A_STEP / (n + 1),
            tick_ns = TICK_NS * TICKS_A_STEP / (n + 1), step_ns = look_ns < tick_ns ? look_ns : tick_ns;
    net_timer_start(c->step, step_ns < STEP_MAX_NS ? step_ns : STEP_MAX_NS, 0);
}

static void on_step(void *context)
{
    struct cluster *c = context;
    int64_t now_ns = net_now_ns(c->config.loop);
    for (size_t i = count_due(&c->look, c->workloads.len, LOOK_NS, now_ns); i > 0; i--)
        cluster_workload_look(take_next(c, &c->look));
    for (size_t i = count_due(&c->tick, c->workloads.len, TICK_NS, now_ns); i > 0; i--)
        tick(c, take_next(c, &c->tick), now_ns);
    plan_step(c);
}

static void on_second(void *context)
{
    struct cluster *c = context;
    look_at_list(&c->scaled_objects);
    look_at_list(&c->scaled_jobs);
    look_at_list(&c->hpas);
}

static void on_soon(void *context)
{
    struct cluster *c = context;
    for (size_t i = 0; i < c->workloads.len && c->n_touched; i++)
        if (c->workloads.items[i]->is_touched)
            cluster_workload_tick(c->workloads.items[i]);
}

struct cluster *cluster_new(const struct cluster_config *config)
{
    struct cluster *c = mem_new(struct cluster);
    c->config = *config;
    c->objects = map_new(OBJECTS_MAX, cluster_free_scaled_object);
    c->jobs = map_new(OBJECTS_MAX, NULL);
    c->hpas_by_name = map_new(OBJECTS_MAX, cluster_free_hpa);
    c->by_name = map_new(OBJECTS_MAX, cluster_workload_free);
    c->generation = trigger_cache_generation(config->triggers);
    c->tracked = metric_only(metric_register(config->metrics, &tracked_desc));
    start_list(c, &c->scaled_objects, KUBE_SCALED_OBJECT, "scaledobjects", on_scaled_object, on_scaled_object_gone);
    start_list(c, &c->scaled_jobs, KUBE_SCALED_JOB, "scaledjobs", on_scaled_job, on_scaled_job_gone);
    start_list(c, &c->hpas, KUBE_HPA, "horizontalpodautoscalers", on_hpa, on_hpa_gone);
    c->soon = net_timer_new(config->loop, on_soon, c);
    c->second = net_timer_new(config->loop, on_second, c);
    net_timer_start(c->second, NS_PER_S, NS_PER_S);
    c->step = net_timer_new(config->loop, on_step, c);
    c->look.done_ns = c->tick.done_ns = net_now_ns(config->loop);
    plan_step(c);
    return c;
}

void cluster_free(struct cluster *c)
{
    if (!c)
        return;
    net_timer_free(c->second);
    net_timer_free(c->step);
    kube_watch_free(c->scaled_objects.watch);
    kube_watch_free(c->scaled_jobs.watch);
    kube_watch_free(c->hpas.watch);
    vec_fini(&c->workloads);
    map_free(c->by_name);
    net_timer_free(c->soon); /* workloads stop it */
    map_free(c->objects);
    map_free(c->jobs);
    map_free(c->hpas_by_name);
    free(c);
}
