/* What a node consists of: devices, holders and their readings, as the parts of an update change them, and the order in
 * which they stand. Whether an update may be applied is store.c's. */
#include "fleet/store.h"

#include <math.h>
#include <string.h>

#define AGE_LIMIT_MAX_NS (600 * NS_PER_S) /* ten times the slowest field's period: no agent makes readings eternal */
#define NUMBER_MAX       1e30             /* of any field, and of its integral over centuries */

enum { MANY_HOLDERS = 32 };
static const struct snapshot_extremes nothing_read = {.low = 1, .high = 0};

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

static void set_reading(struct fleet_reading *r, const struct fleet_reading_message *m, int64_t taken_ns)
{
    enum fleet_status status = status_of(m);
    if (status == FLEET_OK)
        *r = (struct fleet_reading){.mean = m->mean,
                                    .peak = m->peak,
                                    .integral = m->integral,
                                    .valid_s = m->valid_s,
                                    .taken_ns = fleet_not_never(taken_ns - (int64_t)m->age_ms * NS_PER_MS)};
    r->status = status;
}

static void advance_readings(struct fleet_reading *readings, size_t n, int64_t dt_ns)
{
    double dt_s = (double)dt_ns / (double)NS_PER_S;
    for (size_t i = 0; i < n; i++) {
        struct fleet_reading *r = &readings[i];
        if (r->status != FLEET_OK)
            continue;
        r->taken_ns = fleet_not_never(r->taken_ns + dt_ns);
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
struct fleet_device *fleet_store_find_device(const struct fleet_store *s, uint32_t id, size_t *hint)
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

struct fleet_holder *fleet_store_find_holder(const struct fleet_store *s, uint32_t id, size_t *hint)
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

/* The same for readings, once settle is through: agents go by id, the store by pod. */
static struct fleet_holder *find_settled_holder(const struct fleet_store *s, uint32_t id, size_t *hint)
{
    size_t low = 0, high = s->node.n_holders;
    if (!s->by_id)
        return fleet_store_find_holder(s, id, hint);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->holders[s->by_id[middle]].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_there = low < s->node.n_holders && s->holders[s->by_id[low]].id == id;
    return is_there ? &s->holders[s->by_id[low]] : NULL;
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

void fleet_store_drop_parts(struct fleet_store *s)
{
    for (size_t i = 0; i < s->node.n_devices; i++)
        free_device(&s->devices[i]);
    for (size_t i = 0; i < s->node.n_holders; i++)
        free_holder(&s->holders[i]);
    free(s->devices);
    free(s->holders);
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
    struct fleet_device *d = fleet_store_find_device(a->s, m.id, &a->device_hint);
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
    struct fleet_device *d = fleet_store_find_device(s, id, &a->device_hint);
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
    struct fleet_holder *h = fleet_store_find_holder(a->s, m.id, &a->holder_hint);
    if (!h)
        h = add_holder(a->s);
    struct fleet_holder_own *own = own_of(h);
    free(own->texts);
    own->texts = pack_texts(m.texts, FLEET_HOLDER_TEXT_COUNT, texts);
#define X(name) h->name = texts[FLEET_HOLDER_TEXT_##name];
    FLEET_HOLDER_TEXTS(X)
#undef X
    int64_t held_ns = m.held_ms < FLEET_AGE_MAX_NS / NS_PER_MS ? (int64_t)m.held_ms * NS_PER_MS : FLEET_AGE_MAX_NS;
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
    struct fleet_holder *h = fleet_store_find_holder(a->s, id, &a->holder_hint);
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
    const struct fleet_device *d = fleet_store_find_device(a->s, id, &a->device_hint);
    if (d)
        apply_readings(a, readings_of_device(d), message, ((struct fleet_device_own *)d->own)->is_unknown_kind);
}

static void apply_holder_readings(void *context, struct str message, uint32_t id)
{
    struct apply *a = (struct apply *)context;
    struct fleet_reading_message m;
    struct str rest = message;
    (void)fleet_read_readings_id(message, &id);
    struct fleet_holder *h = find_settled_holder(a->s, id, &a->holder_hint);
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

static int compare_ids(const void *left, const void *right, void *context)
{
    const struct fleet_holder *holders = (const struct fleet_holder *)context;
    uint32_t a = holders[*(const uint32_t *)left].id, b = holders[*(const uint32_t *)right].id;
    return a < b ? -1 : a > b;
}

static void index_holders(struct fleet_store *s)
{
    size_t n = s->node.n_holders;
    free(s->by_id);
    s->by_id = NULL;
    if (n < MANY_HOLDERS)
        return;
    s->by_id = (uint32_t *)mem_new_array(n, sizeof(*s->by_id));
    for (size_t i = 0; i < n; i++)
        s->by_id[i] = (uint32_t)i;
    qsort_r(s->by_id, n, sizeof(*s->by_id), compare_ids, s->holders);
}

/* Tie holders to their devices, drop those without one, and put them in order. */
static void settle(struct fleet_store *s)
{
    struct fleet_node *node = &s->node;
    size_t hint = 0, kept = 0;
    for (size_t i = 0; i < node->n_holders; i++) {
        struct fleet_holder h = s->holders[i];
        h.device = fleet_store_find_device(s, own_of(&h)->device_id, &hint);
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
    index_holders(s);
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

/* ---- all parts of an update ---- */

/* In this order: what goes makes room, holders need their devices. Readings come last. */
static const struct {
    enum fleet_part part;
    void (*apply)(void *context, struct str message, uint32_t id);
} steps[] = {
    {FLEET_PART_NODE, apply_node},
    {FLEET_PART_REMOVED_HOLDER, remove_holder},
    {FLEET_PART_REMOVED_DEVICE, remove_device},
    {FLEET_PART_DEVICE, apply_device},
    {FLEET_PART_HOLDER, apply_holder},
};

void fleet_store_apply_parts(struct fleet_store *s, const struct fleet_update *u, int64_t taken_ns)
{
    struct apply a = {.s = s, .taken_ns = taken_ns};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++)
        fleet_each_part(u, steps[i].part, steps[i].apply, &a);
    if (a.has_new_shape || u->is_full)
        settle(s);
    a.device_hint = a.holder_hint = 0;
    fleet_each_part(u, FLEET_PART_DEVICE_READINGS, apply_device_readings, &a);
    fleet_each_part(u, FLEET_PART_HOLDER_READINGS, apply_holder_readings, &a);
}

/* ---- all readings ---- */

void fleet_store_advance(struct fleet_store *s, int64_t dt_ns)
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

void fleet_store_carry(struct fleet_store *s, const struct fleet_store *old)
{
    size_t n = old->node.n_wants < s->node.n_wants ? old->node.n_wants : s->node.n_wants, hint = 0;
    if (old->node.instance != s->node.instance)
        return;
    for (size_t i = 0; i < s->node.n_devices; i++) {
        const struct fleet_device *was = fleet_store_find_device(old, s->devices[i].id, &hint);
        if (was)
            carry_readings(readings_of_device(&s->devices[i]), was->readings, n);
    }
    hint = 0;
    for (size_t i = 0; i < s->node.n_holders; i++) {
        const struct fleet_holder *was = fleet_store_find_holder(old, s->holders[i].id, &hint);
        if (was && was->readings && s->holders[i].readings)
            carry_readings(own_of(&s->holders[i])->readings, was->readings, n);
    }
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
