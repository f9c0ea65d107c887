/* For the tests of Fleet/Watch: a hub as fleet.proto describes one, kept plain: it opens a stream, does what each
 * update says, and lets readings stand that nothing is said of. */
#ifndef TEST_SERVICE_HUB_H
#define TEST_SERVICE_HUB_H

#include "rig.h"

#define FLEET_WATCH  "/kedagpuscaler.fleet.v1.Fleet/Watch"
#define STATUS(name) KEDAGPUSCALER__FLEET__V1__STATUS__##name
enum { HUB_THINGS_MAX = 5000, HUB_WANTS_MAX = 64, NO_STATUS = -1 };

typedef Kedagpuscaler__Fleet__V1__WatchUpdate hub_update;
typedef Kedagpuscaler__Fleet__V1__Device hub_device;
typedef Kedagpuscaler__Fleet__V1__Holder hub_holder;

struct hub_reading {
    int status; /* NO_STATUS: nothing was said of it */
    double mean, peak, integral, valid_s;
    int64_t taken_ms;
};

struct hub_readings {
    uint32_t id, device_id;
    struct hub_reading of[HUB_WANTS_MAX];
};

/* Devices, or holders with readings of their own. */
struct hub_list {
    struct hub_readings *items;
    size_t n;
};

struct hub {
    struct rpc_client_call *call;
    bool is_done;
    struct err status;
    size_t n_updates, bytes;
    uint64_t sequence;
    int64_t at_ms; /* of the snapshot that the last update was made from, by the agent's clock */
    hub_update *last;
    struct hub_list devices, holders; /* holders: all of them */
    bool has_own[HUB_THINGS_MAX];     /* by place in holders */
};

static inline struct hub_readings *hub_find(struct hub_list *list, uint32_t id)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->items[i].id == id)
            return &list->items[i];
    return NULL;
}

static inline void hub_reset(struct hub_readings *r)
{
    for (size_t i = 0; i < HUB_WANTS_MAX; i++)
        r->of[i] = (struct hub_reading){.status = NO_STATUS};
}

static inline struct hub_readings *hub_add(struct hub_list *list, uint32_t id)
{
    if (!list->items)
        list->items = (struct hub_readings *)mem_new_array(HUB_THINGS_MAX, sizeof(*list->items));
    assert_true(list->n < HUB_THINGS_MAX);
    struct hub_readings *r = &list->items[list->n++];
    *r = (struct hub_readings){.id = id};
    hub_reset(r);
    return r;
}

static inline void hub_remove_holder(struct hub *h, size_t at)
{
    h->holders.n--;
    memmove(&h->holders.items[at], &h->holders.items[at + 1], (h->holders.n - at) * sizeof(h->holders.items[0]));
    memmove(&h->has_own[at], &h->has_own[at + 1], (h->holders.n - at) * sizeof(h->has_own[0]));
}

static inline void hub_remove_device(struct hub *h, uint32_t id)
{
    struct hub_readings *d = hub_find(&h->devices, id);
    assert_non_null(d);
    size_t at = (size_t)(d - h->devices.items);
    h->devices.n--;
    memmove(d, d + 1, (h->devices.n - at) * sizeof(*d));
    for (size_t i = h->holders.n; i-- > 0;)
        if (h->holders.items[i].device_id == id)
            hub_remove_holder(h, i);
}

static inline void hub_advance(struct hub_list *list, int64_t passed_ms)
{
    for (size_t i = 0; i < list->n; i++)
        for (size_t k = 0; k < HUB_WANTS_MAX; k++) {
            struct hub_reading *r = &list->items[i].of[k];
            if (r->status != STATUS(OK))
                continue;
            r->taken_ms += passed_ms;
            r->valid_s += (double)passed_ms / 1000;
            r->integral += r->mean * (double)passed_ms / 1000;
        }
}

static inline void hub_read(struct hub *h, struct hub_readings *r, const Kedagpuscaler__Fleet__V1__Readings *said)
{
    assert_non_null(r);
    for (size_t i = 0; i < said->n_readings; i++) {
        const Kedagpuscaler__Fleet__V1__Reading *m = said->readings[i];
        assert_true(m->want < HUB_WANTS_MAX);
        r->of[m->want] = (struct hub_reading){.status = (int)m->status,
                                              .mean = m->mean,
                                              .peak = m->peak,
                                              .integral = m->integral,
                                              .valid_s = m->valid_s,
                                              .taken_ms = h->at_ms - m->age_ms};
    }
}

static inline void hub_apply_holders(struct hub *h, const hub_update *u)
{
    for (size_t i = 0; i < u->n_removed_holders; i++) {
        struct hub_readings *gone = hub_find(&h->holders, u->removed_holders[i]);
        assert_non_null(gone);
        hub_remove_holder(h, (size_t)(gone - h->holders.items));
    }
    for (size_t i = 0; i < u->n_holders; i++) {
        struct hub_readings *r = hub_find(&h->holders, u->holders[i]->id);
        if (!r) {
            r = hub_add(&h->holders, u->holders[i]->id);
            h->has_own[h->holders.n - 1] = false;
        }
        r->device_id = u->holders[i]->device;
        assert_non_null(hub_find(&h->devices, r->device_id));
    }
    for (size_t i = 0; i < u->n_holder_readings; i++) {
        struct hub_readings *r = hub_find(&h->holders, u->holder_readings[i]->id);
        assert_non_null(r);
        size_t at = (size_t)(r - h->holders.items);
        h->has_own[at] = u->holder_readings[i]->n_readings > 0;
        if (!h->has_own[at])
            hub_reset(r);
        hub_read(h, r, u->holder_readings[i]);
    }
}

static inline void hub_apply(struct hub *h, const hub_update *u)
{
    int64_t at_ms = (int64_t)u->sent_ms - (int64_t)u->age_ms;
    assert_int_equal(u->sequence, h->sequence + 1);
    assert_int_equal(u->is_full, h->sequence == 0);
    h->sequence = u->sequence;
    if (u->is_full) {
        h->devices.n = h->holders.n = 0;
        assert_non_null(u->node);
    } else {
        assert_true(at_ms >= h->at_ms);
        hub_advance(&h->devices, at_ms - h->at_ms);
        hub_advance(&h->holders, at_ms - h->at_ms);
    }
    h->at_ms = at_ms;
    for (size_t i = 0; i < u->n_removed_devices; i++)
        hub_remove_device(h, u->removed_devices[i]);
    for (size_t i = 0; i < u->n_devices; i++)
        if (!hub_find(&h->devices, u->devices[i]->id))
            (void)hub_add(&h->devices, u->devices[i]->id);
    for (size_t i = 0; i < u->n_device_readings; i++)
        hub_read(h, hub_find(&h->devices, u->device_readings[i]->id), u->device_readings[i]);
    hub_apply_holders(h, u);
}

static inline void hub_message(void *context, struct str message)
{
    struct hub *h = (struct hub *)context;
    if (h->last)
        kedagpuscaler__fleet__v1__watch_update__free_unpacked(h->last, NULL);
    h->last = kedagpuscaler__fleet__v1__watch_update__unpack(NULL, message.len, (const uint8_t *)message.ptr);
    assert_non_null(h->last);
    h->n_updates++;
    h->bytes += message.len;
    hub_apply(h, h->last);
}

static inline void hub_done(void *context, const struct err *status)
{
    struct hub *h = (struct hub *)context;
    h->is_done = true;
    h->status = *status;
    h->call = NULL;
}

static inline void hub_fini(struct hub *h)
{
    assert_null(h->call);
    if (h->last)
        kedagpuscaler__fleet__v1__watch_update__free_unpacked(h->last, NULL);
    free(h->devices.items);
    free(h->holders.items);
}
#define HUB __attribute__((cleanup(hub_fini))) struct hub

struct hub_want {
    const char *field;
    double window, activation_window; /* seconds */
};

static inline void hub_watch_bytes(struct rig *r, struct hub *h, struct str request)
{
    memset(h, 0, sizeof(*h));
    h->call = rpc_client_start(
        r->client,
        &(struct rpc_client_call_config){.path = FLEET_WATCH, .message = hub_message, .done = hub_done, .context = h},
        request.ptr, request.len);
}

static inline struct str packed_wants(const struct hub_want *wants, size_t n)
{
    static Kedagpuscaler__Fleet__V1__Want messages[100], *rows[100];
    Kedagpuscaler__Fleet__V1__WatchRequest request;
    kedagpuscaler__fleet__v1__watch_request__init(&request);
    assert_true(n <= ARRAY_LEN(rows));
    for (size_t i = 0; i < n; i++) {
        kedagpuscaler__fleet__v1__want__init(&messages[i]);
        messages[i].field = (char *)(uintptr_t)wants[i].field;
        messages[i].window_ms = (uint32_t)(wants[i].window * 1000);
        messages[i].activation_window_ms = (uint32_t)(wants[i].activation_window * 1000);
        rows[i] = &messages[i];
    }
    request.hub = (char *)(uintptr_t) "hub-0";
    request.n_wants = n;
    request.wants = rows;
    return packed(&request.base);
}

#define WANTS(...)                                                                                                     \
    packed_wants((const struct hub_want[]){__VA_ARGS__},                                                               \
                 sizeof((const struct hub_want[]){__VA_ARGS__}) / sizeof(struct hub_want))

/* Open a stream and take what it says at once. */
static inline void hub_watch(struct rig *r, struct hub *h, struct str request)
{
    hub_watch_bytes(r, h, request);
    rig_settle(r);
}

static inline void hub_leave(struct rig *r, struct hub *h)
{
    rpc_client_cancel(h->call);
    TURN_UNTIL(r, h->is_done);
    rig_settle(r);
}

/* The program looks at its streams; how many updates came of it. */
static inline size_t hub_tick(struct rig *r, struct hub *h)
{
    size_t before = h->n_updates;
    service_tick(r->service);
    rig_settle(r);
    return h->n_updates - before;
}

/* A cycle of the sampler, `seconds` after the last, without new readings; then a tick. */
static inline size_t hub_cycle(struct rig *r, struct hub *h, double seconds)
{
    node_wait(&r->node, seconds);
    node_publish(&r->node);
    return hub_tick(r, h);
}

/* The reading of a device of this UUID. */
static inline struct hub_reading hub_reading(struct rig *r, struct hub *h, const char *uuid, size_t want)
{
    const struct snapshot_device *d = snapshot_find_device(r->node.latest, uuid);
    assert_non_null(d);
    struct hub_readings *readings = hub_find(&h->devices, d->id);
    assert_non_null(readings);
    return readings->of[want];
}

/* Was anything said in the last update of this device's want? */
static inline bool hub_was_told(const struct hub *h, uint32_t id, size_t want)
{
    for (size_t i = 0; i < h->last->n_device_readings; i++)
        for (size_t k = 0; h->last->device_readings[i]->id == id && k < h->last->device_readings[i]->n_readings; k++)
            if (h->last->device_readings[i]->readings[k]->want == want)
                return true;
    return false;
}

/* What a hub has is what one that comes now would be told, but for the unevenness of samples. */
static inline void assert_same_reading(const struct hub_reading *a, const struct hub_reading *b, double slack_s)
{
    assert_int_equal(a->status, b->status);
    if (a->status != STATUS(OK))
        return;
    assert_double_same(a->mean, b->mean);
    assert_double_same(a->peak, b->peak);
    assert_double_near(a->valid_s, b->valid_s, slack_s);
    assert_double_near(a->integral, b->integral, slack_s * (1 + b->mean));
    assert_double_near((double)a->taken_ms / 1000, (double)b->taken_ms / 1000, slack_s + 0.001);
}

static inline void assert_same_hub(struct hub *a, struct hub *b, double slack_s)
{
    assert_int_equal(a->devices.n, b->devices.n);
    assert_int_equal(a->holders.n, b->holders.n);
    for (size_t i = 0; i < b->devices.n; i++) {
        struct hub_readings *d = hub_find(&a->devices, b->devices.items[i].id);
        assert_non_null(d);
        for (size_t k = 0; k < HUB_WANTS_MAX; k++)
            assert_same_reading(&d->of[k], &b->devices.items[i].of[k], slack_s);
    }
    for (size_t i = 0; i < b->holders.n; i++) {
        struct hub_readings *o = hub_find(&a->holders, b->holders.items[i].id);
        assert_non_null(o);
        assert_int_equal(a->has_own[o - a->holders.items], b->has_own[i]);
        for (size_t k = 0; k < HUB_WANTS_MAX; k++)
            assert_same_reading(&o->of[k], &b->holders.items[i].of[k], slack_s);
    }
}

#endif
