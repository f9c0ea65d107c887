/* One node as its agent tells it: the state that updates replace and change, with readings that stand while nothing is
 * said of them. It owns the memory of one node. No socket and no clock: bytes and `now` come in. */
#include "fleet/store.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define AGE_MAX_NS       (INT64_C(1000000) * NS_PER_S) /* what is older is as old */
#define AGE_LIMIT_MAX_NS (600 * NS_PER_S) /* ten times the slowest field's period: no agent makes readings eternal */

#define NUMBER_MAX 1e30 /* of any field, and of its integral over centuries */

static const struct snapshot_extremes nothing_read = {.low = 1, .high = 0};

const char *fleet_node_state_name(enum fleet_node_state state)
{
    static const char *const names[] = {
#define X(id, name) [FLEET_NODE_##id] = (name),
        FLEET_NODE_STATES(X)
#undef X
    };
    return names[state];
}

/* ---- texts: those of one thing in one piece of memory ---- */

/* Copies of the texts one after the other; ret_texts[i] is "" where there is none. NULL where all are empty. */
static char *pack_texts(const struct str *texts, size_t n, const char **ret_texts)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        bytes += texts[i].len ? texts[i].len + 1 : 0;
        ret_texts[i] = "";
    }
    if (bytes == 0)
        return NULL;
    char *packed = (char *)mem_new_array(bytes, 1), *to = packed;
    for (size_t i = 0; i < n; i++) {
        if (texts[i].len == 0)
            continue;
        ret_texts[i] = to;
        memcpy(to, texts[i].ptr, texts[i].len);
        to += texts[i].len + 1;
    }
    return packed;
}

/* ---- readings ---- */

static void reset_readings(struct fleet_reading *readings, size_t n)
{
    for (size_t i = 0; i < n; i++)
        readings[i] = (struct fleet_reading){.status = FLEET_NOT_YET};
}

static bool is_good_number(double value)
{
    return isfinite(value) && value >= 0 && value <= NUMBER_MAX;
}

static bool has_good_numbers(const struct fleet_reading_message *m)
{
    return is_good_number(m->mean) && is_good_number(m->peak) && is_good_number(m->integral) &&
           is_good_number(m->valid_s);
}

static enum fleet_status status_of(const struct fleet_reading_message *m)
{
    switch (m->status) {
    case 0:
        return has_good_numbers(m) ? FLEET_OK : FLEET_MISSING;
    case 1:
        return FLEET_NOT_YET;
    case 3:
        return FLEET_UNSUPPORTED;
    default: /* also one that a newer agent knows */
        return FLEET_MISSING;
    }
}

static int64_t not_never(int64_t taken_ns)
{
    return taken_ns ? taken_ns : 1;
}

static void set_reading(struct fleet_reading *r, const struct fleet_reading_message *m, int64_t taken_ns)
{
    enum fleet_status status = status_of(m);
    if (status == FLEET_OK)
        *r = (struct fleet_reading){.mean = m->mean,
                                    .peak = m->peak,
                                    .integral = m->integral,
                                    .valid_s = m->valid_s,
                                    .taken_ns = not_never(taken_ns - (int64_t)m->age_ms * NS_PER_MS)};
    r->status = status;
}

static void advance_readings(struct fleet_reading *readings, size_t n, int64_t dt_ns)
{
    double dt_s = (double)dt_ns / (double)NS_PER_S;
    for (size_t i = 0; i < n; i++) {
        struct fleet_reading *r = &readings[i];
        if (r->status != FLEET_OK)
            continue;
        r->taken_ns = not_never(r->taken_ns + dt_ns);
        r->integral += r->mean * dt_s;
        r->valid_s += dt_s;
    }
}

/* What is missing keeps the last good numbers, over a new stream too. */
static void carry_readings(struct fleet_reading *to, const struct fleet_reading *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (to[i].status != FLEET_OK && to[i].taken_ns == 0) {
            enum fleet_status status = to[i].status;
            to[i] = from[i];
            to[i].status = status;
        }
}

bool fleet_reading_is_fresh(const struct fleet_node *node, size_t want, const struct fleet_reading *r, int64_t now_ns)
{
    return want < node->n_wants && r->status == FLEET_OK && r->taken_ns != 0 &&
           now_ns - r->taken_ns <= node->age_limits_ns[want];
}

/* ---- devices and holders, by id ---- */

static struct fleet_reading *readings_of_device(const struct fleet_device *d)
{
    return ((struct fleet_device_own *)d->own)->readings;
}

static struct fleet_holder_own *own_of(const struct fleet_holder *h)
{
    return (struct fleet_holder_own *)h->own;
}

/* Updates name things in the order in which they are kept: look from the last one on. */
static struct fleet_device *find_device(const struct fleet_store *s, uint32_t id, size_t *hint)
{
    size_t n = s->node.n_devices;
    for (size_t k = 0; k < n; k++) {
        size_t i = *hint + k < n ? *hint + k : *hint + k - n;
        if (s->devices[i].id == id) {
            *hint = i + 1 < n ? i + 1 : 0;
            return &s->devices[i];
        }
    }
    return NULL;
}

static struct fleet_holder *find_holder(const struct fleet_store *s, uint32_t id, size_t *hint)
{
    size_t n = s->node.n_holders;
    for (size_t k = 0; k < n; k++) {
        size_t i = *hint + k < n ? *hint + k : *hint + k - n;
        if (s->holders[i].id == id) {
            *hint = i + 1 < n ? i + 1 : 0;
            return &s->holders[i];
        }
    }
    return NULL;
}

static void free_device(struct fleet_device *d)
{
    struct fleet_device_own *own = (struct fleet_device_own *)d->own;
    free(own->texts);
    free(own);
}

static void free_holder(struct fleet_holder *h)
{
    struct fleet_holder_own *own = own_of(h);
    free(own->texts);
    free(own->readings);
    free(own);
}

static void free_devices(struct fleet_device *devices, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free_device(&devices[i]);
    free(devices);
}

static void free_holders(struct fleet_holder *holders, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free_holder(&holders[i]);
    free(holders);
}

/* ---- an update ---- */

struct apply {
    struct fleet_store *s;
    int64_t taken_ns;
    size_t device_hint, holder_hint; /* where find_* looks first */
    bool has_new_shape;              /* devices or holders came, went or changed */
};

static void apply_node(void *context, struct str message, uint32_t id)
{
    struct fleet_store *s = ((struct apply *)context)->s;
    struct fleet_node *node = &s->node;
    struct fleet_node_message m;
    const char *texts[FLEET_NODE_TEXT_COUNT];
    (void)id;
    (void)fleet_read_node(message, &m);
    char *before = s->texts; /* the name so far may be in it */
    s->texts = pack_texts(m.texts, FLEET_NODE_TEXT_COUNT, texts);
    if (m.texts[FLEET_NODE_TEXT_name].len == 0)
        texts[FLEET_NODE_TEXT_name] = s->expected_name;
    s->n_names += strcmp(node->name, texts[FLEET_NODE_TEXT_name]) != 0;
    free(before);
#define X(name) node->name = texts[FLEET_NODE_TEXT_##name];
    FLEET_NODE_TEXTS(X)
#undef X
    node->instance = m.instance;
    node->is_simulated = m.is_simulated;
    node->period_ns = (int64_t)m.period_ms * NS_PER_MS;
    for (size_t i = 0; i < node->n_wants; i++) {
        int64_t limit_ns = i < m.n_wants ? (int64_t)m.age_limits_ms[i] * NS_PER_MS : 0;
        s->age_limits_ns[i] = limit_ns < AGE_LIMIT_MAX_NS ? limit_ns : AGE_LIMIT_MAX_NS;
    }
}

static enum snapshot_kind kind_of(uint64_t kind)
{
    return kind == 1 ? SNAPSHOT_MIG_PARENT : kind == 2 ? SNAPSHOT_MIG : SNAPSHOT_GPU;
}

static struct fleet_device *add_device(struct fleet_store *s)
{
    size_t n = s->node.n_devices++;
    s->devices = (struct fleet_device *)mem_resize(s->devices, n + 1, sizeof(*s->devices));
    struct fleet_device_own *own =
        (struct fleet_device_own *)mem_new_array(1, sizeof(*own) + s->node.n_wants * sizeof(struct fleet_reading));
    reset_readings(own->readings, s->node.n_wants);
    s->devices[n] = (struct fleet_device){.readings = own->readings, .own = own};
    return &s->devices[n];
}

static void apply_device(void *context, struct str message, uint32_t id)
{
    struct apply *a = (struct apply *)context;
    struct fleet_device_message m;
    const char *texts[FLEET_DEVICE_TEXT_COUNT];
    (void)id;
    (void)fleet_read_device(message, &m);
    struct fleet_device *d = find_device(a->s, m.id, &a->device_hint);
    if (!d)
        d = add_device(a->s);
    struct fleet_device_own *own = (struct fleet_device_own *)d->own;
    own->is_unknown_kind = m.kind > SNAPSHOT_MIG;
    if (own->is_unknown_kind && m.texts[FLEET_DEVICE_TEXT_lost_reason].len == 0)
        m.texts[FLEET_DEVICE_TEXT_lost_reason] = str_of("of a kind that this version does not know");
    free(own->texts);
    own->texts = pack_texts(m.texts, FLEET_DEVICE_TEXT_COUNT, texts);
#define X(name) d->name = texts[FLEET_DEVICE_TEXT_##name];
    FLEET_DEVICE_TEXTS(X)
#undef X
    d->id = m.id;
    d->kind = kind_of(m.kind);
    d->index = m.index <= INT32_MAX ? (int)m.index : INT32_MAX;
    d->gpu_instance = m.gpu_instance;
    d->memory_total = m.memory_total;
    d->memory_reserved = m.memory_reserved;
    a->has_new_shape = true;
}

static void remove_device(void *context, struct str message, uint32_t id)
{
    struct apply *a = (struct apply *)context;
    struct fleet_store *s = a->s;
    struct fleet_device *d = find_device(s, id, &a->device_hint);
    (void)message;
    if (!d)
        return;
    size_t at = (size_t)(d - s->devices);
    free_device(d);
    memmove(d, d + 1, (s->node.n_devices - at - 1) * sizeof(*d));
    s->node.n_devices--;
    a->device_hint = 0;
    a->has_new_shape = true; /* its holders go then */
}

static float extreme_of(float percent)
{
    return isfinite(percent) && percent >= 0 ? percent : -1;
}

/* The minutes of the message in front of those that are kept. */
static void apply_minutes(struct fleet_holder *h, const struct fleet_holder_message *m)
{
    struct fleet_holder_own *own = own_of(h);
    size_t n = m->n_low < m->n_high ? m->n_low : m->n_high;
    if (n == 0)
        return;
    bool is_later = m->minute >= own->minute && m->minute - own->minute < SNAPSHOT_MINUTES;
    size_t shift = is_later && h->n_minutes ? (size_t)(m->minute - own->minute) : SNAPSHOT_MINUTES;
    memmove(&own->minutes[shift], own->minutes, (SNAPSHOT_MINUTES - shift) * sizeof(own->minutes[0]));
    for (size_t i = 0; i < shift; i++)
        own->minutes[i] = nothing_read;
    for (size_t i = 0; i < n; i++) {
        struct snapshot_extremes x = {extreme_of(m->low[i]), extreme_of(m->high[i])};
        own->minutes[i] = x.low < 0 || x.high < 0 ? nothing_read : x;
    }
    own->minute = m->minute;
    h->minutes = own->minutes;
    h->n_minutes = SNAPSHOT_MINUTES;
    while (h->n_minutes > 0 && own->minutes[h->n_minutes - 1].low > own->minutes[h->n_minutes - 1].high)
        h->n_minutes--;
}

static struct fleet_holder *add_holder(struct fleet_store *s)
{
    size_t n = s->node.n_holders++;
    s->holders = (struct fleet_holder *)mem_resize(s->holders, n + 1, sizeof(*s->holders));
    struct fleet_holder_own *own = mem_new(struct fleet_holder_own);
    for (size_t i = 0; i < SNAPSHOT_MINUTES; i++)
        own->minutes[i] = nothing_read;
    s->holders[n] = (struct fleet_holder){.own = own};
    return &s->holders[n];
}

static void apply_holder(void *context, struct str message, uint32_t id)
{
    struct apply *a = (struct apply *)context;
    struct fleet_holder_message m;
    const char *texts[FLEET_HOLDER_TEXT_COUNT];
    (void)id;
    (void)fleet_read_holder(message, &m);
    struct fleet_holder *h = find_holder(a->s, m.id, &a->holder_hint);
    if (!h)
        h = add_holder(a->s);
    struct fleet_holder_own *own = own_of(h);
    free(own->texts);
    own->texts = pack_texts(m.texts, FLEET_HOLDER_TEXT_COUNT, texts);
#define X(name) h->name = texts[FLEET_HOLDER_TEXT_##name];
    FLEET_HOLDER_TEXTS(X)
#undef X
    int64_t held_ns = m.held_ms < AGE_MAX_NS / NS_PER_MS ? (int64_t)m.held_ms * NS_PER_MS : AGE_MAX_NS;
    h->id = m.id;
    h->is_listed = m.is_listed;
    h->is_shared = m.is_shared;
    h->is_measured = m.is_measured;
    h->shares = m.shares;
    h->n_processes = m.processes;
    h->since_ns = a->taken_ns - held_ns;
    own->device_id = m.device;
    apply_minutes(h, &m);
    a->has_new_shape = true;
}

static void drop_holder(struct fleet_store *s, struct fleet_holder *h)
{
    size_t at = (size_t)(h - s->holders);
    free_holder(h);
    memmove(h, h + 1, (s->node.n_holders - at - 1) * sizeof(*h));
    s->node.n_holders--;
}

static void remove_holder(void *context, struct str message, uint32_t id)
{
    struct apply *a = (struct apply *)context;
    struct fleet_holder *h = find_holder(a->s, id, &a->holder_hint);
    (void)message;
    if (!h)
        return;
    drop_holder(a->s, h);
    a->holder_hint = 0;
    a->has_new_shape = true;
}

static void apply_readings(const struct apply *a, struct fleet_reading *readings, struct str message, bool is_missing)
{
    const struct fleet_store *s = a->s;
    struct fleet_reading_message m;
    while (fleet_next_reading(&message, &m) > 0) {
        if (m.want >= s->node.n_wants || !(s->live >> m.want & 1))
            continue;
        if (is_missing)
            m.status = FLEET_MISSING;
        set_reading(&readings[m.want], &m, a->taken_ns);
    }
}

static void apply_device_readings(void *context, struct str message, uint32_t id)
{
    struct apply *a = (struct apply *)context;
    (void)fleet_read_readings_id(message, &id);
    const struct fleet_device *d = find_device(a->s, id, &a->device_hint);
    if (d)
        apply_readings(a, readings_of_device(d), message, ((struct fleet_device_own *)d->own)->is_unknown_kind);
}

static void apply_holder_readings(void *context, struct str message, uint32_t id)
{
    struct apply *a = (struct apply *)context;
    struct fleet_reading_message m;
    struct str rest = message;
    (void)fleet_read_readings_id(message, &id);
    struct fleet_holder *h = find_holder(a->s, id, &a->holder_hint);
    if (!h)
        return;
    struct fleet_holder_own *own = own_of(h);
    if (fleet_next_reading(&rest, &m) == 0) { /* none of its own any more */
        free(own->readings);
        own->readings = NULL;
    } else {
        if (!own->readings) {
            own->readings = (struct fleet_reading *)mem_new_array(a->s->node.n_wants + 1, sizeof(*own->readings));
            reset_readings(own->readings, a->s->node.n_wants);
        }
        apply_readings(a, own->readings, message, false);
    }
    h->readings = own->readings;
}

/* ---- order ---- */

static int compare_place(const struct fleet_holder *h, const char *ns, const char *pod)
{
    int order = strcmp(h->ns, ns);
    return order ? order : strcmp(h->pod, pod);
}

static int compare_holders(const void *left, const void *right)
{
    const struct fleet_holder *a = (const struct fleet_holder *)left, *b = (const struct fleet_holder *)right;
    int order = compare_place(a, b->ns, b->pod);
    if (order)
        return order;
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

/* Tie holders to their devices, drop those without one, and put them in order. */
static void settle(struct fleet_store *s)
{
    struct fleet_node *node = &s->node;
    size_t hint = 0, kept = 0;
    for (size_t i = 0; i < node->n_holders; i++) {
        struct fleet_holder h = s->holders[i];
        h.device = find_device(s, own_of(&h)->device_id, &hint);
        if (h.device)
            s->holders[kept++] = h;
        else
            free_holder(&h);
    }
    node->n_holders = kept;
    if (kept > 1)
        qsort(s->holders, kept, sizeof(*s->holders), compare_holders);
    node->devices = s->devices;
    node->holders = s->holders;
}

const struct fleet_holder *fleet_holders_of(const struct fleet_node *node, const char *ns, const char *pod,
                                            size_t *ret_n)
{
    size_t low = 0, high = node->n_holders, n = 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_place(&node->holders[middle], ns, pod) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    while (low + n < node->n_holders && compare_place(&node->holders[low + n], ns, pod) == 0)
        n++;
    *ret_n = n;
    return n ? &node->holders[low] : NULL;
}

/* ---- is it the next one, and does it fit? ---- */

static size_t n_wants_of(const struct fleet_store *s, const struct fleet_node_message *m)
{
    return m->n_wants < s->n_requested ? m->n_wants : s->n_requested;
}

/* The first of a call is full. After a fault nothing counts until a full one comes. */
static int check_sequence(const struct fleet_store *s, const struct fleet_update *u, struct err *e)
{
    bool is_next = s->sequence != 0 && u->sequence == s->sequence + 1;
    if (u->is_full && u->n[FLEET_PART_NODE] == 0)
        return err_set(e, ERR_INTERNAL, "the agent's full update says nothing of the node");
    if (u->is_full && (u->sequence == 1 || is_next))
        return 0;
    if (!s->is_following)
        return err_set(e, ERR_INTERNAL, "the agent sent a change (%llu) before the whole",
                       (unsigned long long)u->sequence);
    if (!is_next)
        return err_set(e, ERR_INTERNAL, "the agent sent update %llu after %llu", (unsigned long long)u->sequence,
                       (unsigned long long)s->sequence);
    return 0;
}

static int check_same_node(const struct fleet_store *s, const struct fleet_update *u, struct err *e)
{
    struct fleet_node_message m;
    if (u->is_full || u->n[FLEET_PART_NODE] == 0)
        return 0;
    (void)fleet_read_node(u->node, &m);
    if (m.instance != s->node.instance)
        return err_set(e, ERR_INTERNAL, "the agent became another one within a call");
    if (n_wants_of(s, &m) != s->node.n_wants)
        return err_set(e, ERR_INTERNAL, "the agent answers %zu wants instead of %zu", m.n_wants, s->node.n_wants);
    return 0;
}

struct count {
    const struct fleet_store *s;
    size_t device_hint, holder_hint, n_new_devices, n_new_holders;
};

static void count_device(void *context, struct str message, uint32_t id)
{
    struct count *c = (struct count *)context;
    struct fleet_device_message m;
    (void)id;
    (void)fleet_read_device(message, &m);
    c->n_new_devices += find_device(c->s, m.id, &c->device_hint) == NULL;
}

static void count_holder(void *context, struct str message, uint32_t id)
{
    struct count *c = (struct count *)context;
    struct fleet_holder_message m;
    (void)id;
    (void)fleet_read_holder(message, &m);
    c->n_new_holders += find_holder(c->s, m.id, &c->holder_hint) == NULL;
}

/* What comes must fit beside what is there, whatever goes. Of a full update alone fleet_read_update has counted. */
static int check_room(const struct fleet_store *s, const struct fleet_update *u, struct err *e)
{
    struct count c = {.s = s};
    if (u->is_full)
        return 0;
    fleet_each_part(u, FLEET_PART_DEVICE, count_device, &c);
    fleet_each_part(u, FLEET_PART_HOLDER, count_holder, &c);
    if (s->node.n_devices + c.n_new_devices > FLEET_DEVICES_MAX)
        return err_set(e, ERR_RESOURCE_EXHAUSTED, "the agent has more than %d devices", FLEET_DEVICES_MAX);
    if (s->node.n_holders + c.n_new_holders > FLEET_HOLDERS_MAX)
        return err_set(e, ERR_RESOURCE_EXHAUSTED, "the agent has more than %d holders", FLEET_HOLDERS_MAX);
    return 0;
}

/* ---- clocks ---- */

/* How late the update came, by the two clocks: the quickest one so far was on time. The clocks may drift apart by 200
 * millionths; a full one compares anew. */
static int64_t lag_of(struct fleet_store *s, const struct fleet_update *u, int64_t now_ns)
{
    enum { DRIFT = 5000 };
    if (u->sent_ms == 0 || u->sent_ms > INT64_MAX / NS_PER_MS / 2)
        return 0;
    int64_t offset_ns = now_ns - (int64_t)u->sent_ms * NS_PER_MS;
    if (u->is_full || !s->has_offset)
        s->least_offset_ns = offset_ns;
    else
        s->least_offset_ns += (now_ns - s->node.heard_ns) / DRIFT;
    if (offset_ns < s->least_offset_ns)
        s->least_offset_ns = offset_ns;
    s->has_offset = true;
    return offset_ns - s->least_offset_ns;
}

static int64_t taken_of(const struct fleet_store *s, const struct fleet_update *u, int64_t now_ns)
{
    int64_t age_ns = u->age_ms < AGE_MAX_NS / NS_PER_MS ? (int64_t)u->age_ms * NS_PER_MS : AGE_MAX_NS;
    return not_never(now_ns - s->lag_ns - age_ns);
}

/* ---- applying ---- */

/* What a full update replaces. */
struct old {
    struct fleet_device *devices;
    struct fleet_holder *holders;
    size_t n_devices, n_holders, n_wants;
    uint64_t instance;
};

static struct old start_anew(struct fleet_store *s, const struct fleet_update *u)
{
    struct fleet_node *node = &s->node;
    struct old old = {.devices = s->devices,
                      .holders = s->holders,
                      .n_devices = node->n_devices,
                      .n_holders = node->n_holders,
                      .n_wants = node->n_wants,
                      .instance = node->instance};
    struct fleet_node_message m;
    (void)fleet_read_node(u->node, &m);
    s->devices = NULL;
    s->holders = NULL;
    node->n_devices = node->n_holders = 0;
    node->n_wants = n_wants_of(s, &m);
    s->age_limits_ns = (int64_t *)mem_resize(s->age_limits_ns, node->n_wants + 1, sizeof(*s->age_limits_ns));
    node->age_limits_ns = s->age_limits_ns;
    return old;
}

static void carry_over(struct fleet_store *s, const struct old *old)
{
    struct fleet_store before = {.devices = old->devices, .holders = old->holders};
    size_t n = old->n_wants < s->node.n_wants ? old->n_wants : s->node.n_wants, hint = 0;
    before.node.n_devices = old->n_devices;
    before.node.n_holders = old->n_holders;
    if (old->instance != s->node.instance)
        return;
    for (size_t i = 0; i < s->node.n_devices; i++) {
        const struct fleet_device *was = find_device(&before, s->devices[i].id, &hint);
        if (was)
            carry_readings(readings_of_device(&s->devices[i]), was->readings, n);
    }
    hint = 0;
    for (size_t i = 0; i < s->node.n_holders; i++) {
        const struct fleet_holder *was = find_holder(&before, s->holders[i].id, &hint);
        if (was && was->readings && s->holders[i].readings)
            carry_readings(own_of(&s->holders[i])->readings, was->readings, n);
    }
}

static void advance_all(struct fleet_store *s, int64_t dt_ns)
{
    size_t n = s->node.n_wants;
    if (dt_ns <= 0)
        return;
    for (size_t i = 0; i < s->node.n_devices; i++)
        advance_readings(readings_of_device(&s->devices[i]), n, dt_ns);
    for (size_t i = 0; i < s->node.n_holders; i++)
        if (s->holders[i].readings)
            advance_readings(own_of(&s->holders[i])->readings, n, dt_ns);
}

/* In this order: what goes makes room, holders need their devices, readings need both. */
static const struct {
    enum fleet_part part;
    void (*apply)(void *context, struct str message, uint32_t id);
} steps[] = {
    {FLEET_PART_NODE, apply_node},
    {FLEET_PART_REMOVED_HOLDER, remove_holder},
    {FLEET_PART_REMOVED_DEVICE, remove_device},
    {FLEET_PART_DEVICE, apply_device},
    {FLEET_PART_HOLDER, apply_holder},
    {FLEET_PART_DEVICE_READINGS, apply_device_readings},
    {FLEET_PART_HOLDER_READINGS, apply_holder_readings},
};

static void apply_steps(struct fleet_store *s, const struct fleet_update *u, int64_t taken_ns)
{
    struct apply a = {.s = s, .taken_ns = taken_ns};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++)
        fleet_each_part(u, steps[i].part, steps[i].apply, &a);
    if (a.has_new_shape || u->is_full)
        settle(s);
}

int fleet_store_apply(struct fleet_store *s, struct str update, int64_t now_ns, struct err *e)
{
    struct fleet_update u;
    if (fleet_read_update(update, &u, e) < 0 || check_sequence(s, &u, e) < 0 || check_same_node(s, &u, e) < 0 ||
        check_room(s, &u, e) < 0) {
        s->is_following = false;
        return -1;
    }
    s->lag_ns = lag_of(s, &u, now_ns);
    int64_t taken_ns = taken_of(s, &u, now_ns);
    if (u.is_full) {
        struct old old = start_anew(s, &u);
        apply_steps(s, &u, taken_ns);
        carry_over(s, &old);
        free_devices(old.devices, old.n_devices);
        free_holders(old.holders, old.n_holders);
    } else {
        if (taken_ns < s->node.taken_ns)
            taken_ns = s->node.taken_ns;
        advance_all(s, taken_ns - s->node.taken_ns);
        apply_steps(s, &u, taken_ns);
    }
    s->sequence = u.sequence;
    s->is_following = s->node.is_synced = true;
    s->node.taken_ns = taken_ns;
    s->node.heard_ns = now_ns;
    return 0;
}

/* ---- life ---- */

void fleet_store_begin(struct fleet_store *s, size_t n_wants, uint64_t live)
{
    assert(n_wants <= FLEET_WANTS_MAX);
    s->n_requested = n_wants;
    s->live = live;
    s->sequence = 0;
    s->is_following = false;
}

void fleet_store_forget_want(struct fleet_store *s, size_t want)
{
    s->live &= ~(UINT64_C(1) << want);
    if (want >= s->node.n_wants)
        return;
    for (size_t i = 0; i < s->node.n_devices; i++)
        reset_readings(&readings_of_device(&s->devices[i])[want], 1);
    for (size_t i = 0; i < s->node.n_holders; i++)
        if (s->holders[i].readings)
            reset_readings(&own_of(&s->holders[i])->readings[want], 1);
}

void fleet_store_expect_name(struct fleet_store *s, const char *name)
{
    bool is_shown = s->node.name == s->expected_name;
    char *before = s->expected_name;
    s->expected_name = mem_strdup(name);
    if (is_shown)
        s->node.name = s->expected_name;
    free(before);
}

struct fleet_store *fleet_store_new(const char *address)
{
    struct fleet_store *s = mem_new(struct fleet_store);
    s->address = mem_strdup(address);
    s->expected_name = mem_strdup("");
    s->n_requested = FLEET_WANTS_MAX;
    s->live = UINT64_MAX;
    s->node.address = s->address;
    s->node.name = s->expected_name;
    s->node.version = s->node.driver = s->node.driver_text = s->node.driver_version = "";
    s->node.owners = s->node.owners_text = s->node.sight = s->node.sight_text = "";
    return s;
}

void fleet_store_free(struct fleet_store *s)
{
    if (!s)
        return;
    free_devices(s->devices, s->node.n_devices);
    free_holders(s->holders, s->node.n_holders);
    free(s->texts);
    free(s->address);
    free(s->expected_name);
    free(s->age_limits_ns);
    free(s);
}

const struct fleet_node *fleet_store_node(const struct fleet_store *s)
{
    return &s->node;
}
