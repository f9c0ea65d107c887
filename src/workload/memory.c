/* What a hub remembers of one trigger of one ScaledObject, by its own clock: since when readings are missing and places
 * without a pod, last good values, and what it asks of the agents. What is remembered may only make it hold
 * (scaling-semantics 2.8). */
#include "workload/look.h"

#include <string.h>

/* Of one look without a question. */
enum { LOOK_BYTES = 16 << 20 };

static void free_pod(void *value)
{
    struct pod_memory *p = value;
    free(p->uid);
    free(p->minutes);
    free(p);
}

static void add_want(struct workload_memory *m, enum snapshot_field field)
{
    m->asked[m->n_asked++] = (struct asked){.want = {.field = field,
                                                     .window_ns = m->trigger->window_ns,
                                                     .activation_window_ns = m->trigger->activation_window_ns},
                                            .place = -1,
                                            .since_ns = 0};
}

struct workload_memory *workload_memory_new(const struct trigger *t)
{
    struct workload_memory *m = mem_new(struct workload_memory);
    m->trigger = trigger_ref((struct trigger *)(uintptr_t)t);
    m->pods = map_new(PODS_MAX, free_pod);
    m->born_ns = m->paged_ns = -1;
    for (; m->n_parts < t->n_parts; m->n_parts++)
        m->parts[m->n_parts] = workload_memory_new(t->parts[m->n_parts]);
    int source = trigger_metric_source(t->metric);
    if (m->n_parts > 0 || trigger_metric_is_engine(t->metric))
        return m;
    add_want(m, source == TRIGGER_SOURCE_MEMORY_PERCENT ? SNAPSHOT_MEMORY_USED : (enum snapshot_field)source);
    if (workload_is_memory(t->metric) && t->scope == TRIGGER_WORKLOAD)
        add_want(m, SNAPSHOT_UTILIZATION);
    return m;
}

void workload_memory_free(struct workload_memory *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n_parts; i++)
        workload_memory_free(m->parts[i]);
    map_free(m->pods);
    vec_fini(&m->places);
    trigger_unref(m->trigger);
    free(m);
}

const struct trigger *workload_memory_trigger(const struct workload_memory *m)
{
    return m->trigger;
}

int workload_ask(struct workload_memory *m, const struct workload_fleet *fleet, int64_t now_ns, struct err *e)
{
    if (m->born_ns < 0)
        m->born_ns = now_ns;
    for (size_t i = 0; i < m->n_parts; i++)
        if (workload_ask(m->parts[i], fleet, now_ns, e) < 0)
            return -1;
    for (size_t i = 0; i < m->n_asked; i++) {
        struct asked *a = &m->asked[i];
        int place = fleet->want(fleet->context, &a->want);
        if (place != a->place)
            a->since_ns = now_ns;
        a->place = place;
        if (place < 0)
            return err_set(e, ERR_RESOURCE_EXHAUSTED,
                           "the agents are asked %d different questions already: triggers with the same metric, window "
                           "and activationWindow ask the same",
                           FLEET_WANTS_MAX);
    }
    return 0;
}

void workload_memory_note(struct workload_memory *m, enum trigger_question asked, const struct workload_answer *answer)
{
    struct workload_asked *last = &m->last;
    if (asked & TRIGGER_ASK_VALUE) {
        last->value_ns = answer->now_ns;
        last->value = answer->value;
        last->value_error = answer->value_error;
    }
    if (asked & TRIGGER_ASK_ACTIVITY) {
        last->active_ns = answer->now_ns;
        last->is_active = answer->is_active;
        last->active_error = answer->active_error;
    }
}

struct pod_memory *workload_pod_memory(struct workload_memory *m, const struct workload_pod *pod)
{
    const char *key = pod->uid[0] ? pod->uid : pod->name;
    struct pod_memory *known = map_get(m->pods, key, strlen(key));
    if (!known) {
        known = mem_new(struct pod_memory);
        known->uid = mem_strdup(key);
        known->missing_since_ns = -1;
        known->page_asked_ns = -1;
        map_put(m->pods, key, strlen(key), known);
    }
    known->look = m->looks;
    return known;
}

/* Pods that the last look did not see are gone for good: a uid never comes back. */
static void forget_pods(struct workload_memory *m)
{
    struct pod_memory *oldest = map_oldest(m->pods);
    while (oldest && oldest->look != m->looks) {
        map_remove(m->pods, oldest->uid, strlen(oldest->uid));
        oldest = map_oldest(m->pods);
    }
}

static int compare_groups(const void *left, const void *right)
{
    const struct scaling_pod *a = *(const struct scaling_pod *const *)left;
    const struct scaling_pod *b = *(const struct scaling_pod *const *)right;
    return (a->group > b->group) - (a->group < b->group);
}

static bool is_gone(const struct scaling_pod *pod)
{
    return pod->is_deleted || pod->phase == SCALING_PHASE_SUCCEEDED || pod->phase == SCALING_PHASE_FAILED;
}

/* Replicas that have their pods: a group without one of its members is gone. -1: the arena is full. */
static int64_t count_alive(const struct look *look)
{
    const struct scaling_pod **sorted =
        (const struct scaling_pod **)arena_alloc(look->arena, (look->n_pods + 1) * sizeof(*sorted));
    if (!sorted)
        return -1;
    for (size_t i = 0; i < look->n_pods; i++)
        sorted[i] = &look->pods[i];
    qsort(sorted, look->n_pods, sizeof(*sorted), compare_groups);
    int64_t n = 0;
    for (size_t i = 0; i < look->n_pods;) {
        size_t end = i;
        bool is_whole = true;
        do
            is_whole = is_whole && !is_gone(sorted[end++]);
        while (sorted[i]->group >= 0 && end < look->n_pods && sorted[end]->group == sorted[i]->group);
        n += is_whole;
        i = end;
    }
    return n;
}

void workload_watch_places(struct look *look)
{
    struct workload_memory *m = look->memory;
    int64_t alive = count_alive(look), missing = look->facts->spec - alive;
    if (!look->facts->is_scale_known || alive < 0)
        return;
    size_t places = missing <= 0 ? 0 : missing > PLACES_MAX ? PLACES_MAX : (size_t)missing;
    if (m->places.len >
        places) { /* the longest-waiting one is taken first: the others look younger, which can only hold */
        size_t n_taken = m->places.len - places;
        memmove(m->places.items, m->places.items + n_taken, places * sizeof(*m->places.items));
        m->places.len = places;
    }
    while (m->places.len < places)
        vec_push(&m->places, look->now_ns);
}

static void look_at_pods(struct workload_memory *m, const struct workload_facts *facts,
                         const struct workload_fleet *fleet, int64_t now_ns)
{
    ARENA_AUTO struct arena arena;
    arena_init(&arena, LOOK_BYTES);
    struct look look = {.memory = m,
                        .trigger = m->trigger,
                        .facts = facts,
                        .fleet = fleet,
                        .now_ns = now_ns,
                        .arena = &arena,
                        .rules = workload_rules(m->trigger, facts)};
    if (workload_observe(&look))
        forget_pods(m);
}

void workload_memory_look(struct workload_memory *m, const struct workload_facts *facts,
                          const struct workload_fleet *fleet, int64_t now_ns)
{
    struct err e;
    if (workload_ask(m, fleet, now_ns, &e) < 0 || m->trigger->scope != TRIGGER_WORKLOAD || !facts ||
        !facts->is_api_synced || !facts->is_known)
        return;
    const char *why;
    (void)workload_find_wake(m->trigger, facts, fleet, &why); /* it must not be first asked at the first question */
    for (size_t i = 0; i < m->n_parts; i++)
        look_at_pods(m->parts[i], facts, fleet, now_ns);
    if (m->n_parts == 0)
        look_at_pods(m, facts, fleet, now_ns);
}
