/* The messages of Fleet/Watch: node, devices and holders as protobuf. Texts that are no UTF-8 are replaced: one of them
 * would make the whole update unreadable. */
#include "service/watch.h"

#include <string.h>

enum { VARINT_MAX = 10, VARINT_BITS = 7 };

static char *text_of(const char *text)
{
    return (char *)(uintptr_t)(str_is_utf8(str_of(text)) ? text : "(no UTF-8)");
}

static void put_varint(struct buf *out, uint64_t value)
{
    uint8_t bytes[VARINT_MAX];
    size_t n = 0;
    for (; value >= 0x80; value >>= VARINT_BITS)
        bytes[n++] = (uint8_t)(value | 0x80);
    bytes[n++] = (uint8_t)value;
    (void)buf_append(out, bytes, n);
}

void watch_put_head(struct buf *out, const ProtobufCMessage *message)
{
    size_t len = protobuf_c_message_get_packed_size(message);
    char *to = buf_reserve(out, len);
    if (!to)
        return;
    (void)protobuf_c_message_pack(message, (uint8_t *)to);
    buf_advance(out, len);
}

void watch_put(struct buf *out, unsigned field, const ProtobufCMessage *message)
{
    put_varint(out, (uint64_t)field << 3 | 2);
    put_varint(out, protobuf_c_message_get_packed_size(message));
    watch_put_head(out, message);
}

void watch_put_bytes(struct buf *out, unsigned field, const struct buf *bytes)
{
    put_varint(out, (uint64_t)field << 3 | 2);
    put_varint(out, bytes->len);
    (void)buf_append(out, bytes->data, bytes->len);
}

static uint32_t ms_of(int64_t ns)
{
    int64_t ms = ns / NS_PER_MS;
    return ms < 0 ? 0 : ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

/* ---- Node ---- */

static void fill_owners(const struct service_fleet *f, Kedagpuscaler__Fleet__V1__Node *node)
{
    const struct snapshot_owners *owners = f->owners ? f->owners(f->context) : NULL;
    if (!owners)
        return;
    node->owners = text_of(snapshot_owners_state_name(owners->state));
    node->owners_text = text_of(owners->text);
}

void watch_write_node(const struct service *s, const struct watch *w, const struct snapshot *snapshot,
                      const struct snapshot_holders *holders, struct buf *out)
{
    const struct service_fleet *f = &s->config.fleet;
    uint32_t limits[WATCH_WANTS_MAX] = {0};
    for (size_t i = 0; i < w->n_wants; i++)
        if (w->wants[i].kind == WATCH_FIELD)
            limits[i] = ms_of(snapshot_age_limit_ns(snapshot, w->wants[i].field));
    Kedagpuscaler__Fleet__V1__Node node;
    kedagpuscaler__fleet__v1__node__init(&node);
    node.name = text_of(f->node_name);
    node.version = text_of(f->version);
    node.instance = s->instance;
    node.is_simulated = snapshot->is_simulated;
    node.period_ms = ms_of(snapshot->period_ns);
    node.driver = text_of(snapshot_driver_state_name(snapshot->driver));
    node.driver_text = text_of(snapshot->driver_text);
    node.driver_version = text_of(snapshot->driver_version);
    fill_owners(f, &node);
    node.sight = text_of(snapshot_sight_name(holders ? holders->sight : SNAPSHOT_SIGHT_OFF));
    node.sight_text = text_of(holders ? holders->text : "");
    node.n_age_limits_ms = w->n_wants;
    node.age_limits_ms = limits;
    watch_put_head(out, &node.base);
}

/* ---- Device ---- */

static Kedagpuscaler__Fleet__V1__DeviceKind kind_of(enum snapshot_kind kind)
{
    switch (kind) {
    case SNAPSHOT_MIG_PARENT:
        return KEDAGPUSCALER__FLEET__V1__DEVICE_KIND__MIG_PARENT;
    case SNAPSHOT_MIG:
        return KEDAGPUSCALER__FLEET__V1__DEVICE_KIND__MIG;
    case SNAPSHOT_GPU:
    default:
        return KEDAGPUSCALER__FLEET__V1__DEVICE_KIND__GPU;
    }
}

/* A size does not age. */
static uint64_t bytes_of(const struct snapshot_device *d, enum snapshot_field field)
{
    return d->readings[field].taken_ns ? (uint64_t)d->readings[field].value : 0;
}

void watch_write_device(const struct snapshot_device *d, struct buf *out)
{
    const char *lost_reason = *d->lost_reason ? d->lost_reason : "lost";
    Kedagpuscaler__Fleet__V1__Device device;
    kedagpuscaler__fleet__v1__device__init(&device);
    device.id = d->id;
    device.uuid = text_of(d->uuid);
    device.parent_uuid = text_of(d->parent_uuid);
    device.kind = kind_of(d->kind);
    device.index = d->index >= 0 ? (uint32_t)d->index : 0;
    device.product = text_of(d->product);
    device.mig_profile = text_of(d->mig_profile);
    device.lost_reason = text_of(d->is_lost ? lost_reason : "");
    device.memory_total = bytes_of(d, SNAPSHOT_MEMORY_TOTAL);
    device.memory_reserved = bytes_of(d, SNAPSHOT_MEMORY_RESERVED);
    device.gpu_instance = d->gpu_instance;
    watch_put_head(out, &device.base);
}

/* ---- Holder ---- */

static void fill_holder(const struct snapshot_holder *h, Kedagpuscaler__Fleet__V1__Holder *holder)
{
    kedagpuscaler__fleet__v1__holder__init(holder);
    holder->id = h->id;
    holder->device = h->device_id;
    holder->namespace_ = text_of(h->ns);
    holder->pod = text_of(h->pod);
    holder->pod_uid = text_of(h->pod_uid);
    holder->is_listed = h->is_listed;
    holder->is_shared = h->is_shared;
    holder->shares = h->shares;
    holder->processes = h->n_processes < UINT32_MAX ? (uint32_t)h->n_processes : UINT32_MAX;
    holder->is_measured = h->is_shared && h->use;
}

void watch_write_holder(const struct snapshot_holder *h, struct buf *out)
{
    Kedagpuscaler__Fleet__V1__Holder holder;
    fill_holder(h, &holder);
    watch_put_head(out, &holder.base);
}

/* The minutes from the newest back to the one that the hub has, which has gone on since; those in which nothing was
 * read have low > high. Returns how many. */
static size_t list_minutes(const struct snapshot_minutes *m, int64_t known, float low[SNAPSHOT_MINUTES],
                           float high[SNAPSHOT_MINUTES])
{
    size_t n = 0, last = 0;
    for (int64_t minute = m->minute; minute > m->minute - SNAPSHOT_MINUTES && minute >= 0 && minute >= known;
         minute--) {
        const struct snapshot_extremes *x = &m->of[minute % SNAPSHOT_MINUTES];
        bool is_read = x->low <= x->high;
        low[n] = is_read ? x->low : 1;
        high[n++] = is_read ? x->high : 0;
        last = is_read ? n : last;
    }
    return known ? n : last;
}

void watch_put_holder(const struct snapshot_holder *h, const struct watch_told *told, int64_t at_ns, struct buf *out)
{
    float low[SNAPSHOT_MINUTES], high[SNAPSHOT_MINUTES];
    Kedagpuscaler__Fleet__V1__Holder holder;
    fill_holder(h, &holder);
    holder.held_ms = at_ns > h->since_ns ? (uint64_t)((at_ns - h->since_ns) / NS_PER_MS) : 0;
    if (h->memory && h->memory->minute) {
        size_t n = list_minutes(h->memory, told->minute, low, high);
        holder.minute = (uint64_t)h->memory->minute;
        holder.n_memory_low = holder.n_memory_high = n;
        holder.memory_low = low;
        holder.memory_high = high;
    }
    watch_put(out, WATCH_HOLDERS, &holder.base);
}
