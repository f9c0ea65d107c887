/* kedagpuscaler.fleet.v1.Fleet/Watch: a hub is told all of this node, then at each look what changed. What a hub has
 * not been told of is in watch_told; one that does not take its updates is ended, so that none is ever left out. */
#include "service/watch.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum {
    MESSAGE_MAX = 3 << 20, /* a hub takes 4 MiB */
    ONE_MAX = 64 << 10,    /* one device, holder or node */
    WINDOW_MAX_MS = (int)(SNAPSHOT_WINDOW_MAX_NS / NS_PER_MS),
};
/* An update at least this often: a second less the jitter of a timer. */
#define BEAT_NS (950 * NS_PER_MS)
/* For how long a stream waits for the first look at driver and kubelet: a hub that hears "no device" and "no holder" of
 * an agent that has just started would take it for an answer. */
#define FIRST_LOOK_NS (5 * NS_PER_S)

/* A field that nobody asked for in so long is asked for anew. */
#define ASKED_NS (60 * NS_PER_S)

/* One update in the making. */
struct update {
    struct service *s;
    struct watch *w;
    const struct snapshot *snapshot;
    const struct snapshot_holders *holders; /* NULL: not asked for */
    int64_t at_ns, slack_ns, settled_ns;
    bool is_full, has_more;
    VEC(uint32_t) removed_devices, removed_holders;
    struct buf node; /* empty: as sent before */
    struct buf body; /* devices, holders and readings, as elements */
    struct buf one;  /* scratch */
};

static void update_init(struct update *u)
{
    buf_init(&u->node, ONE_MAX);
    buf_init(&u->body, SIZE_MAX / 2);
    buf_init(&u->one, ONE_MAX);
}

static void update_fini(struct update *u)
{
    vec_fini(&u->removed_devices);
    vec_fini(&u->removed_holders);
    buf_fini(&u->node);
    buf_fini(&u->body);
    buf_fini(&u->one);
}

/* What does not fit any more is said in the next one. */
static bool is_filled(struct update *u)
{
    u->has_more = u->has_more || u->body.len >= MESSAGE_MAX;
    return u->has_more;
}

/* ---- readings ---- */

static void put_reading(Kedagpuscaler__Fleet__V1__Reading *to, size_t want, const struct watch_reading *r)
{
    kedagpuscaler__fleet__v1__reading__init(to);
    to->want = (uint32_t)want;
    to->status = r->status;
    to->mean = r->mean;
    to->peak = r->peak;
    to->integral = r->integral;
    to->valid_s = r->valid_s;
    to->age_ms = r->age_ns / NS_PER_MS < UINT32_MAX ? (uint32_t)(r->age_ns / NS_PER_MS) : UINT32_MAX;
}

static void say_readings(struct update *u, unsigned field, struct watch_told *told, const struct watch_subject *subject)
{
    Kedagpuscaler__Fleet__V1__Readings message;
    Kedagpuscaler__Fleet__V1__Reading readings[WATCH_WANTS_MAX], *rows[WATCH_WANTS_MAX];
    kedagpuscaler__fleet__v1__readings__init(&message);
    message.id = told->id;
    message.readings = rows;
    if (!told->readings)
        watch_add_readings(u->w, told);
    for (size_t i = 0; i < u->w->n_wants; i++) {
        struct watch_reading r;
        struct watch_sent *sent = &told->readings[i];
        if (u->w->wants[i].kind == WATCH_NOTHING)
            continue;
        watch_read(subject, &u->w->wants[i], &r);
        if (watch_goes_without_saying(sent, &r, u->at_ns, u->slack_ns))
            continue;
        *sent = (struct watch_sent){.reading = r, .at_ns = u->at_ns};
        put_reading(&readings[message.n_readings], i, &r);
        rows[message.n_readings] = &readings[message.n_readings];
        message.n_readings++;
    }
    if (message.n_readings)
        watch_put(&u->body, field, &message.base);
}

/* The holder has its device's readings from now on. */
static void say_no_readings(struct update *u, struct watch_told *told)
{
    Kedagpuscaler__Fleet__V1__Readings message;
    if (!told->readings)
        return;
    kedagpuscaler__fleet__v1__readings__init(&message);
    message.id = told->id;
    watch_put(&u->body, WATCH_HOLDER_READINGS, &message.base);
    watch_drop_readings(u->w, told);
}

/* ---- devices ---- */

static void say_device(struct update *u, const struct snapshot_device *d)
{
    struct watch_told *told = watch_tell(u->w, &u->w->devices, d->id);
    told->is_there = true;
    if (is_filled(u))
        return;
    buf_reset(&u->one);
    watch_write_device(d, &u->one);
    if (watch_is_news(u->w, told, &u->one))
        watch_put_bytes(&u->body, WATCH_DEVICES, &u->one);
    struct watch_subject subject = {.s = u->snapshot,
                                    .d = d,
                                    .at_ns = u->at_ns,
                                    .since_ns = INT64_MIN,
                                    .due_from_ns = d->first_seen_ns,
                                    .asked = u->s->asked};
    if (u->w->has_wants)
        say_readings(u, WATCH_DEVICE_READINGS, told, &subject);
}

/* ---- holders ---- */

/* Whose readings are the holder's own, or false where it has none: its device's are its own, or its part of a shared
 * device is not measured. */
static bool find_subject(const struct update *u, const struct snapshot_holder *h, const struct snapshot_device *d,
                         struct watch_subject *ret)
{
    bool is_settled = u->at_ns - h->since_ns >= u->settled_ns;
    *ret = (struct watch_subject){.s = u->snapshot,
                                  .d = d,
                                  .at_ns = u->at_ns,
                                  .since_ns = h->since_ns,
                                  .due_from_ns = h->since_ns,
                                  .asked = u->s->asked};
    if (!u->w->has_wants)
        return false;
    if (!h->is_shared)
        return !is_settled;
    *ret = (struct watch_subject){.s = u->holders->uses,
                                  .d = h->use,
                                  .is_use = true,
                                  .at_ns = u->at_ns,
                                  .since_ns = h->since_ns,
                                  .due_from_ns = h->since_ns};
    return h->use && u->holders->uses;
}

/* Did memory move since the holder was sent? */
static bool has_new_minute(const struct watch_told *told, const struct snapshot_holder *h)
{
    if (!h->memory || !h->memory->minute)
        return false;
    const struct snapshot_extremes *x = &h->memory->of[h->memory->minute % SNAPSHOT_MINUTES];
    return told->minute != h->memory->minute || x->low < told->extremes.low || x->high > told->extremes.high ||
           x->low > told->extremes.low || x->high < told->extremes.high;
}

static void say_holder(struct update *u, const struct snapshot_holder *h, const struct snapshot_device *d)
{
    struct watch_told *told = watch_tell(u->w, &u->w->holders, h->id);
    told->is_there = true;
    told->device_id = h->device_id;
    if (is_filled(u))
        return;
    buf_reset(&u->one);
    watch_write_holder(h, &u->one);
    bool is_news = watch_is_news(u->w, told, &u->one);
    if (is_news || has_new_minute(told, h)) {
        watch_put_holder(h, told, u->at_ns, &u->body);
        told->minute = h->memory ? h->memory->minute : 0;
        if (told->minute)
            told->extremes = h->memory->of[told->minute % SNAPSHOT_MINUTES];
    }
    struct watch_subject subject;
    if (find_subject(u, h, d, &subject))
        say_readings(u, WATCH_HOLDER_READINGS, told, &subject);
    else
        say_no_readings(u, told);
}

/* Holders come in the order of devices; one of a device that is gone is gone too. */
static void say_holders(struct update *u)
{
    size_t place = 0, n = u->snapshot->n_devices;
    for (size_t i = 0; u->holders && i < u->holders->n_holders; i++) {
        const struct snapshot_holder *h = &u->holders->holders[i];
        for (size_t k = 0; k < n && u->snapshot->devices[place].id != h->device_id; k++)
            place = place + 1 < n ? place + 1 : 0;
        if (n > 0 && u->snapshot->devices[place].id == h->device_id)
            say_holder(u, h, &u->snapshot->devices[place]);
    }
}

/* ---- who is gone ---- */

static void forget_devices(struct update *u)
{
    struct watch_list *list = &u->w->devices;
    for (size_t i = list->of.len; i-- > 0;) {
        if (list->of.items[i].is_there)
            continue;
        vec_push(&u->removed_devices, list->of.items[i].id);
        watch_forget(u->w, list, i);
    }
}

static bool is_removed(const struct update *u, uint32_t device_id)
{
    for (size_t i = 0; i < u->removed_devices.len; i++)
        if (u->removed_devices.items[i] == device_id)
            return true;
    return false;
}

static void forget_holders(struct update *u)
{
    struct watch_list *list = &u->w->holders;
    for (size_t i = list->of.len; i-- > 0;) {
        if (list->of.items[i].is_there)
            continue;
        if (!is_removed(u, list->of.items[i].device_id)) /* else it goes with its device */
            vec_push(&u->removed_holders, list->of.items[i].id);
        watch_forget(u->w, list, i);
    }
}

static void expect_all(struct watch_list *list)
{
    for (size_t i = 0; i < list->of.len; i++)
        list->of.items[i].is_there = false;
}

/* ---- an update ---- */

static void say_node(struct update *u)
{
    struct watch *w = u->w;
    watch_write_node(u->s, w, u->snapshot, u->holders, &u->node);
    if (w->node && w->node_len == u->node.len && memcmp(w->node, u->node.data, u->node.len) == 0) {
        buf_reset(&u->node);
        return;
    }
    free(w->node);
    w->bytes += u->node.len - w->node_len;
    w->node = mem_strndup(u->node.data, u->node.len);
    w->node_len = u->node.len;
}

static void say_all(struct update *u)
{
    expect_all(&u->w->devices);
    expect_all(&u->w->holders);
    say_node(u);
    for (size_t i = 0; i < u->snapshot->n_devices; i++)
        say_device(u, &u->snapshot->devices[i]);
    say_holders(u);
    forget_devices(u);
    forget_holders(u);
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static bool has_news(const struct update *u)
{
    return u->is_full || u->node.len || u->body.len || u->removed_devices.len || u->removed_holders.len;
}

static int send_update(struct update *u, int64_t now_ns)
{
    struct watch *w = u->w;
    Kedagpuscaler__Fleet__V1__WatchUpdate head;
    kedagpuscaler__fleet__v1__watch_update__init(&head);
    head.sequence = ++w->sequence;
    head.is_full = u->is_full;
    head.has_more = u->has_more;
    /* From whole milliseconds: their difference is the snapshot's time, and is the same for each update of it. */
    head.sent_ms = (uint64_t)(later(now_ns, u->at_ns) / NS_PER_MS);
    head.age_ms = head.sent_ms - (uint64_t)(u->at_ns / NS_PER_MS);
    head.n_removed_devices = u->removed_devices.len;
    head.removed_devices = u->removed_devices.items;
    head.n_removed_holders = u->removed_holders.len;
    head.removed_holders = u->removed_holders.items;
    BUF_AUTO struct buf message;
    buf_init(&message, SIZE_MAX / 2);
    watch_put_head(&message, &head.base);
    if (u->node.len)
        watch_put_bytes(&message, WATCH_NODE, &u->node);
    if (u->body.len)
        (void)buf_append(&message, u->body.data, u->body.len);
    w->sent_ns = now_ns;
    w->at_ns = u->at_ns;
    return rpc_call_send(w->stream->call, message.data, message.len);
}

/* ---- looks ---- */

/* Has nobody looked at the driver or asked the kubelet yet? */
static bool is_starting(const struct service *s, const struct snapshot *snapshot)
{
    const struct service_fleet *f = &s->config.fleet;
    const struct snapshot_owners *owners = f->owners ? f->owners(f->context) : NULL;
    return snapshot->driver == SNAPSHOT_DRIVER_STARTING || (owners && owners->state == SNAPSHOT_OWNERS_STARTING);
}

static void end(struct watch *w, enum err_class class, const char *text)
{
    w->is_over = true;
    rpc_call_finish(w->stream->call, class, text);
}

/* Some fields are only read while somebody asks: their first sample is due from then on, for all hubs alike. */
static void ask_for_fields(struct service *s, const struct watch *w, int64_t now_ns)
{
    const struct service_fleet *f = &s->config.fleet;
    for (size_t i = 0; i < w->n_wants; i++) {
        enum snapshot_field field = w->wants[i].field;
        if (w->wants[i].kind != WATCH_FIELD)
            continue;
        if (s->asked[field].last_ns == 0 || now_ns - s->asked[field].last_ns > ASKED_NS)
            s->asked[field].since_ns = now_ns;
        s->asked[field].last_ns = now_ns;
        if (f->want)
            f->want(f->context, field);
    }
}

/* All streams together have a ceiling of memory, what a hub was told of counts too. */
static bool count_bytes(struct service *s, struct watch *w)
{
    s->stream_bytes += w->bytes - w->counted_bytes;
    w->stream->bytes += w->bytes - w->counted_bytes;
    w->counted_bytes = w->bytes;
    return s->stream_bytes <= s->config.max_stream_bytes;
}

/* A pod that holds its device for as long as any window, and as any reading that counts is old, has its readings. */
static int64_t settled_ns(const struct watch *w, const struct snapshot *snapshot)
{
    int64_t longest_ns = 0;
    for (size_t i = 0; i < w->n_wants; i++) {
        const struct watch_want *want = &w->wants[i];
        longest_ns = later(longest_ns, later(want->window_ns, want->activation_window_ns));
        if (want->kind == WATCH_FIELD)
            longest_ns = later(longest_ns, snapshot_age_limit_ns(snapshot, want->field));
    }
    return longest_ns;
}

static void look(struct service *s, struct watch *w)
{
    const struct service_fleet *f = &s->config.fleet;
    const struct snapshot *snapshot = s->config.source.current(s->config.source.context);
    int64_t now_ns = service_now_ns(s);
    if (w->is_over || !snapshot)
        return;
    ask_for_fields(s, w, now_ns);
    bool is_first = w->sequence == 0;
    if (is_first && now_ns - w->opened_ns < FIRST_LOOK_NS && is_starting(s, snapshot))
        return;
    struct update u __attribute__((cleanup(update_fini))) = {.s = s,
                                                             .w = w,
                                                             .snapshot = snapshot,
                                                             .holders = f->holders ? f->holders(f->context) : NULL,
                                                             .at_ns = snapshot->taken_ns,
                                                             .slack_ns = snapshot->period_ns / 4,
                                                             .settled_ns = settled_ns(w, snapshot),
                                                             .is_full = is_first};
    update_init(&u);
    say_all(&u);
    if (!has_news(&u) && now_ns - w->sent_ns < BEAT_NS)
        return;
    if (send_update(&u, now_ns) < 0)
        end(w, ERR_RESOURCE_EXHAUSTED, "updates were not read as fast as they come; watch again");
    else if (!count_bytes(s, w))
        end(w, ERR_RESOURCE_EXHAUSTED, "open streams hold as much memory as they may; try again later");
}

void service_tick_fleet(struct service *s)
{
    for (struct stream *stream = s->streams[STREAM_FLEET]; stream; stream = stream->next)
        look(s, stream->watch);
}

/* ---- the call ---- */

static bool find_field(const char *name, enum snapshot_field *ret)
{
    for (int i = 0; i < SNAPSHOT_FIELD_COUNT; i++)
        if (strcmp(snapshot_field_name((enum snapshot_field)i), name) == 0) {
            *ret = (enum snapshot_field)i;
            return true;
        }
    return false;
}

static int read_want(const Kedagpuscaler__Fleet__V1__Want *asked, struct watch_want *ret, struct err *e)
{
    if (asked->window_ms > WINDOW_MAX_MS || asked->activation_window_ms > WINDOW_MAX_MS)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "a want of %.64s has a window of %u ms and an activation window of %u ms: at most %d ms",
                       asked->field, asked->window_ms, asked->activation_window_ms, WINDOW_MAX_MS);
    *ret = (struct watch_want){.kind = *asked->field ? WATCH_UNKNOWN : WATCH_NOTHING,
                               .window_ns = asked->window_ms * NS_PER_MS,
                               .activation_window_ns = asked->activation_window_ms * NS_PER_MS};
    if (find_field(asked->field, &ret->field))
        ret->kind = WATCH_FIELD;
    return 0;
}

static int read_request(const Kedagpuscaler__Fleet__V1__WatchRequest *asked, struct watch *w, struct err *e)
{
    if (asked->n_wants > WATCH_WANTS_MAX)
        return err_set(e, ERR_INVALID_ARGUMENT, "%zu wants: at most %d", asked->n_wants, WATCH_WANTS_MAX);
    w->n_wants = asked->n_wants;
    w->hub = asked->hub;
    for (size_t i = 0; i < asked->n_wants; i++) {
        struct watch_want *want = &w->wants[i];
        if (read_want(asked->wants[i], want, e) < 0)
            return -1;
        w->has_wants = w->has_wants || want->kind != WATCH_NOTHING;
    }
    return 0;
}

static void tell_program(const struct service *s, const struct watch *w, bool is_open)
{
    const struct service_fleet *f = &s->config.fleet;
    struct service_watcher watcher = {
        .hub = w->hub, .peer = rpc_call_peer(w->stream->call), .n_wants = w->n_wants, .is_open = is_open};
    if (f->watched)
        f->watched(f->context, &watcher);
}

static void watch(struct rpc_call *call, struct str request, void *context)
{
    struct service *s = context;
    const Kedagpuscaler__Fleet__V1__WatchRequest *asked =
        service_decode(call, rpc_call_arena(call), request, &kedagpuscaler__fleet__v1__watch_request__descriptor);
    struct err e;
    if (!asked)
        return;
    struct watch *w = mem_new(struct watch);
    if (read_request(asked, w, &e) < 0) {
        watch_free(w);
        rpc_call_fail(call, &e);
        return;
    }
    w->stream = service_stream_new(s, call, STREAM_FLEET);
    if (!w->stream) {
        watch_free(w);
        return;
    }
    w->stream->watch = w;
    w->bytes = sizeof(*w);
    w->opened_ns = service_now_ns(s);
    rpc_call_send_headers(call);
    tell_program(s, w, true);
    look(s, w);
    (void)count_bytes(s, w);
}

static void ended(struct rpc_call *call, void *context)
{
    struct stream *stream = rpc_call_state(call);
    if (stream) {
        tell_program(context, stream->watch, false);
        watch_free(stream->watch);
    }
    service_stream_ended(call, context);
}

void service_add_fleet(struct service *s)
{
    static const struct rpc_method method = {
        .path = "/kedagpuscaler.fleet.v1.Fleet/Watch", .is_server_streaming = true, .message = watch, .ended = ended};
    s->instance = (uint64_t)time_wall_ns();
    service_add_method(s, &method);
}
