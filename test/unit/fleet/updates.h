/* Updates as an agent packs them, with the generated messages. Included by one test file each. */
#ifndef TEST_FLEET_UPDATES_H
#define TEST_FLEET_UPDATES_H

#include "base/base.h"
#include "proto/proto.h"

#include <assert.h>

typedef Kedagpuscaler__Fleet__V1__WatchUpdate update_message;
typedef Kedagpuscaler__Fleet__V1__Node node_message;
typedef Kedagpuscaler__Fleet__V1__Device device_message;
typedef Kedagpuscaler__Fleet__V1__Holder holder_message;
typedef Kedagpuscaler__Fleet__V1__Readings readings_message;
typedef Kedagpuscaler__Fleet__V1__Reading reading_message;

enum { UPDATE_DEVICES_MAX = 8, UPDATE_HOLDERS_MAX = 8, UPDATE_WANTS_MAX = 4, UPDATE_REMOVED_MAX = 4 };

/* One reading; n_readings of them from want 0 on, but where `want` says otherwise. */
struct row {
    uint32_t id;
    size_t n;
    struct {
        uint32_t want;
        int status;
        double mean, peak, integral, valid_s;
        uint32_t age_ms;
    } of[UPDATE_WANTS_MAX];
};

struct update {
    uint64_t sequence, age_ms, sent_ms;
    bool is_full, has_node, has_more;
    uint64_t instance;
    const char *name;
    uint32_t age_limits_ms[UPDATE_WANTS_MAX];
    size_t n_wants, n_devices, n_holders, n_removed_devices, n_removed_holders, n_device_rows, n_holder_rows;
    struct {
        uint32_t id;
        const char *uuid, *lost_reason;
        int kind;
    } devices[UPDATE_DEVICES_MAX];
    struct {
        uint32_t id, device;
        const char *ns, *pod;
        bool is_shared;
        uint64_t held_ms, minute;
        size_t n_minutes;
        float low[4], high[4];
    } holders[UPDATE_HOLDERS_MAX];
    uint32_t removed_devices[UPDATE_REMOVED_MAX], removed_holders[UPDATE_REMOVED_MAX];
    struct row device_rows[UPDATE_DEVICES_MAX], holder_rows[UPDATE_HOLDERS_MAX];
};

static inline char *text_field(const char *text)
{
    return (char *)(uintptr_t)(text ? text : "");
}

struct packed_row {
    readings_message readings;
    reading_message of[UPDATE_WANTS_MAX], *list[UPDATE_WANTS_MAX];
};

static inline readings_message *pack_row(struct packed_row *p, const struct row *row)
{
    kedagpuscaler__fleet__v1__readings__init(&p->readings);
    p->readings.id = row->id;
    p->readings.n_readings = row->n;
    p->readings.readings = p->list;
    for (size_t i = 0; i < row->n; i++) {
        reading_message *m = p->list[i] = &p->of[i];
        kedagpuscaler__fleet__v1__reading__init(m);
        m->want = row->of[i].want;
        m->status = (Kedagpuscaler__Fleet__V1__Status)row->of[i].status;
        m->mean = row->of[i].mean;
        m->peak = row->of[i].peak;
        m->integral = row->of[i].integral;
        m->valid_s = row->of[i].valid_s;
        m->age_ms = row->of[i].age_ms;
    }
    return &p->readings;
}

/* Everything that a message points to while it is packed. */
struct packed {
    update_message update;
    node_message node;
    device_message devices[UPDATE_DEVICES_MAX], *device_list[UPDATE_DEVICES_MAX];
    holder_message holders[UPDATE_HOLDERS_MAX], *holder_list[UPDATE_HOLDERS_MAX];
    struct packed_row device_rows[UPDATE_DEVICES_MAX], holder_rows[UPDATE_HOLDERS_MAX];
    readings_message *device_row_list[UPDATE_DEVICES_MAX], *holder_row_list[UPDATE_HOLDERS_MAX];
};

static inline void pack_node(struct packed *p, struct update *u)
{
    kedagpuscaler__fleet__v1__node__init(&p->node);
    p->node.name = text_field(u->name ? u->name : "node-1");
    p->node.version = text_field("1.2.3");
    p->node.driver = text_field("ok");
    p->node.driver_version = text_field("550.54");
    p->node.instance = u->instance ? u->instance : 7;
    p->node.period_ms = 1000;
    p->node.n_age_limits_ms = u->n_wants;
    p->node.age_limits_ms = u->age_limits_ms;
    if (u->is_full || u->has_node)
        p->update.node = &p->node;
}

static inline void pack_devices(struct packed *p, const struct update *u)
{
    for (size_t i = 0; i < u->n_devices; i++) {
        device_message *m = p->device_list[i] = &p->devices[i];
        kedagpuscaler__fleet__v1__device__init(m);
        m->id = u->devices[i].id;
        m->uuid = text_field(u->devices[i].uuid);
        m->lost_reason = text_field(u->devices[i].lost_reason);
        m->product = text_field("NVIDIA H100 80GB HBM3");
        m->kind = (Kedagpuscaler__Fleet__V1__DeviceKind)u->devices[i].kind;
        m->index = (uint32_t)i;
        m->gpu_instance = -1;
        m->memory_total = 80000;
    }
    p->update.n_devices = u->n_devices;
    p->update.devices = p->device_list;
}

static inline void pack_holders(struct packed *p, struct update *u)
{
    for (size_t i = 0; i < u->n_holders; i++) {
        holder_message *m = p->holder_list[i] = &p->holders[i];
        kedagpuscaler__fleet__v1__holder__init(m);
        m->id = u->holders[i].id;
        m->device = u->holders[i].device;
        m->namespace_ = text_field(u->holders[i].ns ? u->holders[i].ns : "ml");
        m->pod = text_field(u->holders[i].pod);
        m->pod_uid = text_field("0f");
        m->is_listed = true;
        m->is_shared = u->holders[i].is_shared;
        m->shares = 1;
        m->held_ms = u->holders[i].held_ms;
        m->minute = u->holders[i].minute;
        m->n_memory_low = m->n_memory_high = u->holders[i].n_minutes;
        m->memory_low = u->holders[i].low;
        m->memory_high = u->holders[i].high;
    }
    p->update.n_holders = u->n_holders;
    p->update.holders = p->holder_list;
}

/* Append the update's bytes to out. */
static inline void pack_update(struct buf *out, struct update *u)
{
    static struct packed p;
    kedagpuscaler__fleet__v1__watch_update__init(&p.update);
    p.update.sequence = u->sequence;
    p.update.is_full = u->is_full;
    p.update.has_more = u->has_more;
    p.update.age_ms = u->age_ms;
    p.update.sent_ms = u->sent_ms;
    pack_node(&p, u);
    pack_devices(&p, u);
    pack_holders(&p, u);
    p.update.n_removed_devices = u->n_removed_devices;
    p.update.removed_devices = u->removed_devices;
    p.update.n_removed_holders = u->n_removed_holders;
    p.update.removed_holders = u->removed_holders;
    for (size_t i = 0; i < u->n_device_rows; i++)
        p.device_row_list[i] = pack_row(&p.device_rows[i], &u->device_rows[i]);
    for (size_t i = 0; i < u->n_holder_rows; i++)
        p.holder_row_list[i] = pack_row(&p.holder_rows[i], &u->holder_rows[i]);
    p.update.n_device_readings = u->n_device_rows;
    p.update.device_readings = p.device_row_list;
    p.update.n_holder_readings = u->n_holder_rows;
    p.update.holder_readings = p.holder_row_list;
    size_t len = kedagpuscaler__fleet__v1__watch_update__get_packed_size(&p.update);
    char *to = buf_reserve(out, len + 1);
    assert(to);
    buf_advance(out, kedagpuscaler__fleet__v1__watch_update__pack(&p.update, (uint8_t *)to));
}

#endif
