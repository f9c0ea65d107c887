/* One workload: its /scale, its pods and what is remembered of its triggers. */
#include "cluster/private.h"

#include <stdio.h>
#include <string.h>

/* How often /scale is read without a reason: while somebody asks, and while nobody has yet. */
#define READ_ASKED_NS   (10 * NS_PER_S)
#define READ_UNASKED_NS (60 * NS_PER_S)
/* A change of the pods or of the HPA is a reason: after this long, so that several make one read, this long after the
 * last read at least, and once more when the controllers have had the time to count what has changed. */
#define READ_SOON_NS  (100 * NS_PER_MS)
#define READ_GAP_NS   (500 * NS_PER_MS)
#define READ_AGAIN_NS (1 * NS_PER_S)
#define READ_RETRY_NS (2 * NS_PER_S)
/* One read stands for this much longer than the time to the next. */
#define READ_STANDS_NS (30 * NS_PER_S)
/* After an answer by which the HPA changes the count, the read before it stands for this long. */
#define CHANGE_STANDS_NS (5 * NS_PER_S)
/* Pods of which nothing was heard for so long, while tries go on failing, are no longer known. A quiet watch is none:
 * not every API server sends bookmarks. */
#define PODS_STAND_NS (120 * NS_PER_S)
#define FAILING_NS    (90 * NS_PER_S)
/* Who asks is KEDA, at most each polling interval; what nobody asked for this long is forgotten. */
#define FORGET_NS (15 * 60 * NS_PER_S)
enum { MEMORIES_MAX = 64 }; /* of one workload */

static int64_t now_ns(const struct cluster_workload *w)
{
    return net_now_ns(w->cluster->config.loop);
}

bool cluster_workload_is_asked(const struct cluster_workload *w)
{
    return w->asked_ns != 0 && now_ns(w) - w->asked_ns < FORGET_NS;
}

static int64_t read_period_ns(const struct cluster_workload *w)
{
    return cluster_workload_is_asked(w) ? READ_ASKED_NS : READ_UNASKED_NS;
}

/* ---- pods ---- */

static size_t place_of(const struct cluster_workload *w, const char *name)
{
    size_t low = 0, high = w->pods.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(workload_pod_name(w->pods.items[middle].pod), name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const struct cluster_workload *w, size_t i, const char *name)
{
    return i < w->pods.len && strcmp(workload_pod_name(w->pods.items[i].pod), name) == 0;
}

static void insert(struct cluster_workload *w, size_t at, const struct kube_pod *pod)
{
    struct cluster_pod fresh = {.pod = workload_pod_new(pod, now_ns(w))};
    (void)str_copy(fresh.uid, sizeof(fresh.uid), str_of(pod->meta.uid));
    vec_push(&w->pods, fresh);
    memmove(&w->pods.items[at + 1], &w->pods.items[at], (w->pods.len - 1 - at) * sizeof(fresh));
    w->pods.items[at] = fresh;
}

static void remove_pod(struct cluster_workload *w, size_t at)
{
    workload_pod_free(w->pods.items[at].pod);
    vec_remove(&w->pods, at);
}

static bool is_gone(const struct kube_pod *pod)
{
    return pod->meta.is_deleted || pod->phase == KUBE_SUCCEEDED || pod->phase == KUBE_FAILED;
}

/* There is one more, or one less. */
static void change_pods(struct cluster_workload *w)
{
    w->pods_changed_ns = now_ns(w);
    cluster_workload_touch(w);
}

static void on_pod(void *context, const struct kube_object *object)
{
    struct cluster_workload *w = context;
    const struct kube_pod *pod = object->pod;
    size_t at = place_of(w, pod->meta.name);
    bool is_known = is_at(w, at, pod->meta.name);
    if (is_known && strcmp(w->pods.items[at].uid, pod->meta.uid) != 0) { /* a new pod of the same name */
        remove_pod(w, at);
        is_known = false;
    }
    if (!is_known)
        insert(w, at, pod);
    else
        workload_pod_update(w->pods.items[at].pod, pod, w->cluster->config.fleet, now_ns(w));
    if (!is_known || w->pods.items[at].is_gone != is_gone(pod))
        change_pods(w);
    w->pods.items[at].is_gone = is_gone(pod);
}

static void on_pod_gone(void *context, const char *ns, const char *name, const char *uid)
{
    struct cluster_workload *w = context;
    (void)ns;
    size_t at = place_of(w, name);
    if (is_at(w, at, name) && strcmp(w->pods.items[at].uid, uid) == 0) {
        remove_pod(w, at);
        change_pods(w);
    }
}

static void tell(struct cluster_workload *w, const char *what, const struct err *error)
{
    char text[CLUSTER_KEY_MAX + 64];
    (void)snprintf(text, sizeof(text), "%s of %s/%s", what, w->ns, w->name);
    if (w->cluster->config.told)
        w->cluster->config.told(w->cluster->config.context, text, error);
}

static void on_pods_failed(void *context, const struct err *error)
{
    struct cluster_workload *w = context;
    if (!w->is_pods_told)
        tell(w, "pods", error);
    w->is_pods_told = true;
    (void)str_copy(w->pods_error, sizeof(w->pods_error), str_of(error->text));
    if (error->class != ERR_DEADLINE_EXCEEDED)
        w->pods_failed_ns = now_ns(w);
}

static void on_pods_synced(void *context)
{
    struct cluster_workload *w = context;
    if (w->is_pods_told)
        tell(w, "pods", NULL);
    w->is_pods_told = false;
    w->pods_error[0] = '\0';
    w->pods_failed_ns = 0;
}

/* As the workload's controller counts them for status.replicas. */
static int64_t count_pods(const struct cluster_workload *w)
{
    int64_t n = 0;
    for (size_t i = 0; i < w->pods.len; i++)
        n += !w->pods.items[i].is_gone;
    return n;
}

static void stop_watching(struct cluster_workload *w)
{
    w->has_surplus = false;
    w->pods_error[0] = '\0';
    w->pods_failed_ns = 0;
    kube_watch_free(w->watch);
    w->watch = NULL;
    free(w->selector);
    w->selector = NULL;
    while (w->pods.len)
        remove_pod(w, w->pods.len - 1);
}

static void watch_pods(struct cluster_workload *w, const char *selector)
{
    if (w->watch && strcmp(w->selector, selector) == 0)
        return;
    stop_watching(w);
    w->selector = mem_strdup(selector);
    w->watch = kube_watch_start(w->cluster->config.kube, &(struct kube_watch_config){.kind = KUBE_POD,
                                                                                     .ns = w->ns,
                                                                                     .label_selector = w->selector,
                                                                                     .changed = on_pod,
                                                                                     .gone = on_pod_gone,
                                                                                     .synced = on_pods_synced,
                                                                                     .failed = on_pods_failed,
                                                                                     .context = w});
}

/* ---- /scale ---- */

static void fail_scale(struct cluster_workload *w, const char *text)
{
    (void)str_copy(w->scale_error, sizeof(w->scale_error), str_of(text));
    w->next_read_ns = now_ns(w) + READ_RETRY_NS;
}

/* After a read: what it says of the pods stands if none had come or gone just before it. */
static void plan_next_read(struct cluster_workload *w)
{
    int64_t next_ns = w->scale_ns + read_period_ns(w);
    bool is_calm = w->asked_scale_ns - w->pods_changed_ns >= READ_AGAIN_NS;
    if (is_calm && w->watch && kube_watch_is_synced(w->watch)) {
        int64_t surplus = count_pods(w) - w->status;
        w->has_surplus = true;
        w->surplus = surplus > 0 ? surplus : 0;
    }
    if (!is_calm && next_ns > w->pods_changed_ns + READ_AGAIN_NS)
        next_ns = w->pods_changed_ns + READ_AGAIN_NS;
    if (!w->next_read_ns || w->next_read_ns > next_ns) /* else something changed while it was read */
        w->next_read_ns = next_ns;
}

static void on_scale(void *context, const struct kube_scale *scale, const struct err *error)
{
    struct cluster_workload *w = context;
    bool was_failed = w->scale_error[0] != '\0';
    w->get = NULL;
    if (!scale) {
        if (!was_failed)
            tell(w, "scale", error);
        if (error->class == ERR_NOT_FOUND || error->class == ERR_UNIMPLEMENTED)
            w->is_scale_known = false;
        fail_scale(w, error->text);
        return;
    }
    if (scale->spec > 0 && !*scale->selector) {
        fail_scale(w, "its scale subresource says no selector, so its pods are not known");
        return;
    }
    if (was_failed)
        tell(w, "scale", NULL);
    w->scale_error[0] = '\0';
    w->is_scale_known = true;
    w->spec = scale->spec;
    w->status = scale->status;
    w->scale_ns = now_ns(w);
    w->scale_ends_ns = w->scale_ns + read_period_ns(w) + READ_STANDS_NS;
    plan_next_read(w);
    if (*scale->selector)
        watch_pods(w, scale->selector);
}

static void forget_scale(struct cluster_workload *w)
{
    if (w->get)
        kube_get_cancel(w->get);
    w->get = NULL;
    w->is_scale_known = false;
    w->scale_error[0] = w->target[0] = '\0';
    w->next_read_ns = 0;
}

static void read_scale(struct cluster_workload *w, const struct kube_scaled_object *o)
{
    char target[sizeof(w->target)];
    (void)snprintf(target, sizeof(target), "%s %s %s", o->target_api_version, o->target_kind, o->target_name);
    if (strcmp(target, w->target) != 0) { /* another target: nothing of the old one counts */
        forget_scale(w);
        stop_watching(w);
        (void)str_copy(w->target, sizeof(w->target), str_of(target));
    }
    if (w->get || now_ns(w) < w->next_read_ns)
        return;
    w->next_read_ns = 0;
    w->asked_scale_ns = now_ns(w);
    struct kube_target asked = {o->target_api_version, o->target_kind, w->ns, o->target_name};
    w->get = kube_get_scale(w->cluster->config.kube, &asked, on_scale, w);
}

void cluster_workload_touch(struct cluster_workload *w)
{
    struct cluster *c = w->cluster;
    int64_t soon_ns = now_ns(w) + READ_SOON_NS, gap_ns = w->asked_scale_ns + READ_GAP_NS;
    soon_ns = soon_ns > gap_ns ? soon_ns : gap_ns;
    if (w->get || w->next_read_ns > soon_ns)
        w->next_read_ns = soon_ns;
    if (w->is_touched)
        return;
    w->is_touched = true;
    if (c->n_touched++ == 0)
        net_timer_start(c->soon, READ_SOON_NS, READ_SOON_NS);
}

/* Until it has been calm for long enough: then each second will do. */
void cluster_workload_calm(struct cluster_workload *w)
{
    if (!w->is_touched)
        return;
    w->is_touched = false;
    if (--w->cluster->n_touched == 0)
        net_timer_stop(w->cluster->soon);
}

void cluster_expect_change(struct cluster_workload *w)
{
    int64_t ends_ns = now_ns(w) + CHANGE_STANDS_NS;
    w->scale_ends_ns = w->scale_ends_ns < ends_ns ? w->scale_ends_ns : ends_ns;
    cluster_workload_touch(w);
}

/* ---- triggers ---- */

static void forget_memory(struct cluster_workload *w, size_t at)
{
    workload_memory_free(w->memories.items[at].memory);
    vec_remove(&w->memories, at);
}

/* Peers may ask with any metadata: beyond the ceiling the one goes that was not asked for longest, those that the
 * ScaledObject has last. */
static void make_room(struct cluster_workload *w)
{
    size_t oldest = 0;
    if (w->memories.len < MEMORIES_MAX)
        return;
    for (size_t i = 1; i < w->memories.len; i++) {
        const struct cluster_memory_row *row = &w->memories.items[i], *best = &w->memories.items[oldest];
        if (row->is_expected != best->is_expected ? best->is_expected : row->asked_ns < best->asked_ns)
            oldest = i;
    }
    forget_memory(w, oldest);
}

static struct cluster_memory_row *row_of(struct cluster_workload *w, const struct trigger *t)
{
    for (size_t i = 0; i < w->memories.len; i++) {
        struct cluster_memory_row *row = &w->memories.items[i];
        if (workload_memory_trigger(row->memory) == t) {
            row->asked_ns = now_ns(w);
            return row;
        }
    }
    make_room(w);
    struct cluster_memory_row row = {.memory = workload_memory_new(t), .asked_ns = now_ns(w)};
    vec_push(&w->memories, row);
    return &w->memories.items[w->memories.len - 1];
}

struct workload_memory *cluster_memory(struct cluster_workload *w, const struct trigger *t)
{
    return row_of(w, t)->memory;
}

static void forget_memories(struct cluster_workload *w)
{
    for (size_t i = w->memories.len; i > 0; i--)
        if (now_ns(w) - w->memories.items[i - 1].asked_ns >= FORGET_NS)
            forget_memory(w, i - 1);
}

void cluster_each_memory(struct cluster_workload *w, void (*visit)(void *context, struct workload_memory *m),
                         void *context)
{
    for (size_t i = 0; i < w->memories.len; i++)
        visit(context, w->memories.items[i].memory);
}

/* As KEDA will send it; NULL and an error where it will be refused. */
static struct trigger *parse(const struct cluster_workload *w, const struct kube_trigger *from, struct err *e)
{
    struct trigger_pair pairs[TRIGGER_PAIRS_MAX];
    size_t n = from->n_metadata < TRIGGER_PAIRS_MAX ? from->n_metadata : TRIGGER_PAIRS_MAX;
    for (size_t k = 0; k < n; k++)
        pairs[k] = (struct trigger_pair){str_of(from->metadata[k].key), str_of(from->metadata[k].value)};
    return trigger_cache_get(w->cluster->config.triggers, pairs, from->n_metadata, e);
}

/* What a ScaledObject asks of us is remembered before it asks. What it asked before it was changed is forgotten. */
static void expect_triggers(struct cluster_workload *w, const struct kube_scaled_object *o)
{
    struct err e;
    bool *was_expected MEM_AUTO = (bool *)mem_new_array(w->memories.len + 1, sizeof(bool));
    size_t n_before = w->memories.len;
    if (n_before + o->n_triggers > MEMORIES_MAX) /* rows may go on the way */
        n_before = 0;
    for (size_t i = 0; i < n_before; i++) {
        was_expected[i] = w->memories.items[i].is_expected;
        w->memories.items[i].is_expected = false;
    }
    for (size_t i = 0; i < o->n_triggers; i++) {
        struct trigger *t =
            cluster_is_our_trigger(&w->cluster->config, &o->triggers[i]) ? parse(w, &o->triggers[i], &e) : NULL;
        if (!t)
            continue;
        row_of(w, t)->is_expected = true;
        trigger_unref(t);
    }
    for (size_t i = n_before; i > 0; i--)
        if (was_expected[i - 1] && !w->memories.items[i - 1].is_expected)
            forget_memory(w, i - 1);
}

void cluster_each_refusal(const struct cluster_workload *w, void (*visit)(void *context, const char *error),
                          void *context)
{
    const struct kube_scaled_object *o = cluster_find_object(w->cluster, w->ns, w->name);
    for (size_t i = 0; o && i < o->n_triggers; i++) {
        struct err e;
        if (!cluster_is_our_trigger(&w->cluster->config, &o->triggers[i]))
            continue;
        struct trigger *t = parse(w, &o->triggers[i], &e);
        if (!t)
            visit(context, e.text);
        trigger_unref(t);
    }
}

/* ---- the whole ---- */

struct cluster_workload *cluster_workload_new(struct cluster *c, const char *ns, const char *name)
{
    struct cluster_workload *w = mem_new(struct cluster_workload);
    w->cluster = c;
    (void)str_copy(w->ns, sizeof(w->ns), str_of(ns));
    (void)str_copy(w->name, sizeof(w->name), str_of(name));
    return w;
}

void cluster_workload_free(void *workload)
{
    struct cluster_workload *w = workload;
    cluster_workload_calm(w);
    forget_scale(w);
    stop_watching(w);
    vec_fini(&w->pods);
    for (size_t i = 0; i < w->memories.len; i++)
        workload_memory_free(w->memories.items[i].memory);
    vec_fini(&w->memories);
    free(w);
}

void cluster_workload_tick(struct cluster_workload *w)
{
    const struct kube_scaled_object *o = cluster_find_object(w->cluster, w->ns, w->name);
    if (!o || (!w->get && w->next_read_ns > now_ns(w) + READ_AGAIN_NS))
        cluster_workload_calm(w);
    forget_memories(w);
    if (o)
        read_scale(w, o);
    else if (*w->pod_selector && w->cluster->scaled_objects.is_denied)
        watch_pods(w, w->pod_selector);
    else
        stop_watching(w);
    if (w->is_pods_told && w->watch && cluster_goes_on(w->cluster, w->watch, w->pods_failed_ns))
        on_pods_synced(w);
}

void cluster_workload_look(struct cluster_workload *w)
{
    enum { LOOK_MAX = 4 << 20 };
    ARENA_AUTO struct arena arena;
    struct workload_facts facts;
    arena_init(&arena, LOOK_MAX);
    const struct kube_scaled_object *o = cluster_find_object(w->cluster, w->ns, w->name);
    if (o && w->is_expected)
        expect_triggers(w, o);
    if (cluster_facts(w, &arena, &facts) < 0)
        return;
    for (size_t i = 0; i < w->memories.len; i++)
        workload_memory_look(w->memories.items[i].memory, &facts, w->cluster->config.fleet, now_ns(w));
}

void cluster_workload_reload(struct cluster_workload *w)
{
    for (size_t i = 0; i < w->memories.len; i++)
        workload_memory_free(w->memories.items[i].memory);
    w->memories.len = 0;
    cluster_workload_look(w);
}

/* ---- facts ---- */

/* The HPA may read /scale after us: a pod that has come since, as in a rollout with surge, is in status.replicas as
 * soon as its controller has counted it. What is right for more replicas there is right for fewer. */
static int64_t status_by_now(const struct cluster_workload *w)
{
    int64_t counted = w->has_surplus ? count_pods(w) - w->surplus : w->status;
    return counted > w->status ? counted : w->status;
}

static bool are_pods_known(const struct cluster_workload *w)
{
    bool is_failing = w->pods_failed_ns && now_ns(w) - w->pods_failed_ns < FAILING_NS;
    bool is_silent = w->watch && kube_watch_silent_ns(w->watch, now_ns(w)) > PODS_STAND_NS;
    return w->watch && kube_watch_is_synced(w->watch) && !(is_failing && is_silent);
}

/* Of one read of /scale that still stands, with pods that do; with podSelector alone the pods themselves are counted.
 */
static void fill_scale(const struct cluster_workload *w, struct workload_facts *ret)
{
    (void)str_copy(ret->scale_error, sizeof(ret->scale_error), str_of(w->scale_error));
    ret->is_scale_known = w->is_scale_known && now_ns(w) <= w->scale_ends_ns;
    ret->spec = w->spec;
    ret->status = status_by_now(w);
    if (!ret->scaled_object) {
        ret->is_scale_known = w->watch && kube_watch_is_synced(w->watch);
        ret->spec = ret->status = count_pods(w);
    }
    if (w->pods_error[0] && !are_pods_known(w)) {
        ret->is_scale_known = false;
        (void)snprintf(ret->scale_error, sizeof(ret->scale_error), "its pods cannot be read: %.*s", 160, w->pods_error);
    }
}

static void fill_hpa(const struct cluster_workload *w, struct workload_facts *ret)
{
    const struct cluster *c = w->cluster;
    char key[CLUSTER_KEY_MAX];
    const char *name = ret->scaled_object ? ret->scaled_object->hpa_name : "";
    cluster_key(key, w->ns, name);
    const struct cluster_hpa *hpa = *name ? map_get(c->hpas_by_name, key, strlen(key)) : NULL;
    ret->hpa = hpa ? &hpa->is : NULL;
    ret->hpa_state = hpa                  ? WORKLOAD_HPA_KNOWN
                     : c->hpas.is_denied  ? WORKLOAD_HPA_NOT_PERMITTED
                     : !c->hpas.is_synced ? WORKLOAD_HPA_NOT_READ
                     : ret->scaled_object ? WORKLOAD_HPA_NOT_MADE
                                          : WORKLOAD_HPA_NOT_PERMITTED;
}

static bool is_synced(const struct cluster_workload *w, const struct workload_facts *facts)
{
    if (facts->is_job)
        return true;
    if (!cluster_is_synced(w->cluster))
        return false;
    if (!facts->is_known)
        return true;
    bool has_pods = w->watch && kube_watch_is_synced(w->watch);
    bool wants_none = w->is_scale_known && w->spec == 0 && !w->watch;
    bool has_no_selector = w->scale_error[0] != '\0' && !w->watch; /* a part of a list of pods is no list */
    return has_pods || wants_none || has_no_selector;
}

int cluster_facts(const struct cluster_workload *w, struct arena *arena, struct workload_facts *ret)
{
    const struct cluster *c = w->cluster;
    char key[CLUSTER_KEY_MAX];
    *ret = (struct workload_facts){.ns = w->ns,
                                   .name = w->name,
                                   .target_kind = "",
                                   .target_name = "",
                                   .scaled_object = cluster_find_object(c, w->ns, w->name),
                                   .settings = trigger_cache_settings(c->config.triggers),
                                   .default_tolerance = c->config.hpa_tolerance,
                                   .simulated_gpus_per_pod = c->config.simulated_gpus_per_pod};
    cluster_key(key, w->ns, w->name);
    ret->is_job = !ret->scaled_object && map_get(c->jobs, key, strlen(key)) != NULL;
    ret->is_known = ret->scaled_object || ret->is_job || (*w->pod_selector && c->scaled_objects.is_denied);
    if (ret->scaled_object) {
        ret->target_kind = ret->scaled_object->target_kind;
        ret->target_name = ret->scaled_object->target_name;
    }
    struct workload_pod **pods =
        (struct workload_pod **)arena_alloc(arena, (w->pods.len + 1) * sizeof(struct workload_pod *));
    if (!pods)
        return -1;
    for (size_t i = 0; i < w->pods.len; i++)
        pods[i] = w->pods.items[i].pod;
    ret->pods = pods;
    ret->n_pods = w->pods.len;
    if (!kube_now_s(c->config.kube, &ret->api_now_s))
        ret->api_now_s = 0;
    fill_scale(w, ret);
    fill_hpa(w, ret);
    ret->is_api_synced = is_synced(w, ret);
    return 0;
}

const char *cluster_ns(const struct cluster_workload *w)
{
    return w->ns;
}

const char *cluster_name(const struct cluster_workload *w)
{
    return w->name;
}
