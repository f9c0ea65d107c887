/* The messages of the fleet protocol, field by field. Texts and numbers are judged here; what they mean for a node is
 * the store's. Field numbers are those of proto/fleet.proto. */
#include "fleet/message.h"

#include "fleet/wire.h"

enum { READINGS_ID = 1, READINGS_READING = 2 };

static bool is_text(struct str text)
{
    return text.len <= FLEET_TEXT_MAX && str_is_utf8(text);
}

/* Every text is looked at once the message is read: of a field that comes twice, the last one counts. */
static int check_texts(const struct str *texts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!is_text(texts[i]))
            return -1;
    return 0;
}

/* ---- Node ---- */

static void add_age_limit(struct fleet_node_message *m, uint64_t ms)
{
    if (m->n_wants < FLEET_WANTS_MAX)
        m->age_limits_ms[m->n_wants++] = (uint32_t)ms;
}

static int add_age_limits(struct fleet_node_message *m, struct str packed)
{
    uint64_t ms;
    int rv;
    while ((rv = fleet_wire_next_varint(&packed, &ms)) > 0)
        add_age_limit(m, ms);
    return rv;
}

static int set_node_field(struct fleet_node_message *m, const struct fleet_wire *f)
{
    switch (f->key) {
    case WIRE_KEY(1, WIRE_BYTES):
        m->texts[FLEET_NODE_TEXT_name] = f->bytes;
        break;
    case WIRE_KEY(2, WIRE_BYTES):
        m->texts[FLEET_NODE_TEXT_version] = f->bytes;
        break;
    case WIRE_KEY(3, WIRE_VARINT):
        m->instance = f->number;
        break;
    case WIRE_KEY(4, WIRE_VARINT):
        m->is_simulated = f->number != 0;
        break;
    case WIRE_KEY(5, WIRE_VARINT):
        m->period_ms = (uint32_t)f->number;
        break;
    case WIRE_KEY(6, WIRE_BYTES):
    case WIRE_KEY(7, WIRE_BYTES):
    case WIRE_KEY(8, WIRE_BYTES):
    case WIRE_KEY(9, WIRE_BYTES):
    case WIRE_KEY(10, WIRE_BYTES):
    case WIRE_KEY(11, WIRE_BYTES):
    case WIRE_KEY(12, WIRE_BYTES): /* from `driver` on in the order of the texts */
        m->texts[FLEET_NODE_TEXT_driver + (f->key >> 3) - 6] = f->bytes;
        break;
    case WIRE_KEY(13, WIRE_VARINT):
        add_age_limit(m, f->number);
        break;
    case WIRE_KEY(13, WIRE_BYTES):
        return add_age_limits(m, f->bytes);
    default:
        break;
    }
    return 0;
}

int fleet_read_node(struct str bytes, struct fleet_node_message *ret)
{
    struct fleet_wire f;
    int rv;
    *ret = (struct fleet_node_message){.n_wants = 0};
    while ((rv = fleet_wire_next(&bytes, &f)) > 0)
        if (set_node_field(ret, &f) < 0)
            return -1;
    return rv < 0 ? -1 : check_texts(ret->texts, FLEET_NODE_TEXT_COUNT);
}

/* ---- Device ---- */

static void set_device_field(struct fleet_device_message *m, const struct fleet_wire *f)
{
    switch (f->key) {
    case WIRE_KEY(1, WIRE_VARINT):
        m->id = (uint32_t)f->number;
        break;
    case WIRE_KEY(2, WIRE_BYTES):
        m->texts[FLEET_DEVICE_TEXT_uuid] = f->bytes;
        break;
    case WIRE_KEY(3, WIRE_BYTES):
        m->texts[FLEET_DEVICE_TEXT_parent_uuid] = f->bytes;
        break;
    case WIRE_KEY(4, WIRE_VARINT):
        m->kind = f->number;
        break;
    case WIRE_KEY(5, WIRE_VARINT):
        m->index = (uint32_t)f->number;
        break;
    case WIRE_KEY(6, WIRE_BYTES):
        m->texts[FLEET_DEVICE_TEXT_product] = f->bytes;
        break;
    case WIRE_KEY(7, WIRE_BYTES):
        m->texts[FLEET_DEVICE_TEXT_mig_profile] = f->bytes;
        break;
    case WIRE_KEY(8, WIRE_BYTES):
        m->texts[FLEET_DEVICE_TEXT_lost_reason] = f->bytes;
        break;
    case WIRE_KEY(9, WIRE_VARINT):
        m->memory_total = f->number;
        break;
    case WIRE_KEY(10, WIRE_VARINT):
        m->memory_reserved = f->number;
        break;
    case WIRE_KEY(11, WIRE_VARINT):
        m->gpu_instance = fleet_wire_zigzag(f->number);
        break;
    default:
        break;
    }
}

int fleet_read_device(struct str bytes, struct fleet_device_message *ret)
{
    struct fleet_wire f;
    int rv;
    *ret = (struct fleet_device_message){.id = 0};
    while ((rv = fleet_wire_next(&bytes, &f)) > 0)
        set_device_field(ret, &f);
    return rv < 0 ? -1 : check_texts(ret->texts, FLEET_DEVICE_TEXT_COUNT);
}

/* ---- Holder ---- */

static void add_float(float *list, size_t *n, uint32_t bits)
{
    if (*n < SNAPSHOT_MINUTES)
        list[(*n)++] = fleet_wire_float(bits);
}

static int add_floats(float *list, size_t *n, struct str packed)
{
    if (packed.len % sizeof(uint32_t))
        return -1;
    for (size_t i = 0; i < packed.len && *n < SNAPSHOT_MINUTES; i += sizeof(uint32_t)) {
        const unsigned char *b = (const unsigned char *)packed.ptr + i;
        add_float(list, n, (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24);
    }
    return 0;
}

static int set_holder_list(struct fleet_holder_message *m, const struct fleet_wire *f)
{
    switch (f->key) {
    case WIRE_KEY(12, WIRE_BYTES):
        return add_floats(m->low, &m->n_low, f->bytes);
    case WIRE_KEY(12, WIRE_FIXED32):
        add_float(m->low, &m->n_low, (uint32_t)f->number);
        return 0;
    case WIRE_KEY(13, WIRE_BYTES):
        return add_floats(m->high, &m->n_high, f->bytes);
    case WIRE_KEY(13, WIRE_FIXED32):
        add_float(m->high, &m->n_high, (uint32_t)f->number);
        return 0;
    default:
        return 0;
    }
}

static int set_holder_field(struct fleet_holder_message *m, const struct fleet_wire *f)
{
    switch (f->key) {
    case WIRE_KEY(1, WIRE_VARINT):
        m->id = (uint32_t)f->number;
        break;
    case WIRE_KEY(2, WIRE_VARINT):
        m->device = (uint32_t)f->number;
        break;
    case WIRE_KEY(3, WIRE_BYTES):
        m->texts[FLEET_HOLDER_TEXT_ns] = f->bytes;
        break;
    case WIRE_KEY(4, WIRE_BYTES):
        m->texts[FLEET_HOLDER_TEXT_pod] = f->bytes;
        break;
    case WIRE_KEY(5, WIRE_BYTES):
        m->texts[FLEET_HOLDER_TEXT_pod_uid] = f->bytes;
        break;
    case WIRE_KEY(6, WIRE_VARINT):
        m->is_listed = f->number != 0;
        break;
    case WIRE_KEY(7, WIRE_VARINT):
        m->is_shared = f->number != 0;
        break;
    case WIRE_KEY(8, WIRE_VARINT):
        m->shares = (uint32_t)f->number;
        break;
    case WIRE_KEY(9, WIRE_VARINT):
        m->processes = (uint32_t)f->number;
        break;
    case WIRE_KEY(10, WIRE_VARINT):
        m->is_measured = f->number != 0;
        break;
    case WIRE_KEY(11, WIRE_VARINT):
        m->held_ms = f->number;
        break;
    case WIRE_KEY(14, WIRE_VARINT):
        m->minute = f->number;
        break;
    default:
        return set_holder_list(m, f);
    }
    return 0;
}

int fleet_read_holder(struct str bytes, struct fleet_holder_message *ret)
{
    struct fleet_wire f;
    int rv;
    *ret = (struct fleet_holder_message){.id = 0};
    while ((rv = fleet_wire_next(&bytes, &f)) > 0)
        if (set_holder_field(ret, &f) < 0)
            return -1;
    return rv < 0 ? -1 : check_texts(ret->texts, FLEET_HOLDER_TEXT_COUNT);
}

/* ---- Readings ---- */

static int read_reading(struct str bytes, struct fleet_reading_message *ret)
{
    struct fleet_wire f;
    int rv;
    *ret = (struct fleet_reading_message){.want = 0};
    while ((rv = fleet_wire_next(&bytes, &f)) > 0)
        switch (f.key) {
        case WIRE_KEY(1, WIRE_VARINT):
            ret->want = f.number;
            break;
        case WIRE_KEY(2, WIRE_VARINT):
            ret->status = f.number;
            break;
        case WIRE_KEY(3, WIRE_FIXED64):
            ret->mean = fleet_wire_double(&f);
            break;
        case WIRE_KEY(4, WIRE_FIXED64):
            ret->peak = fleet_wire_double(&f);
            break;
        case WIRE_KEY(5, WIRE_FIXED64):
            ret->integral = fleet_wire_double(&f);
            break;
        case WIRE_KEY(6, WIRE_FIXED64):
            ret->valid_s = fleet_wire_double(&f);
            break;
        case WIRE_KEY(7, WIRE_VARINT):
            ret->age_ms = (uint32_t)f.number;
            break;
        default:
            break;
        }
    return rv;
}

int fleet_read_readings_id(struct str bytes, uint32_t *ret_id)
{
    struct fleet_wire f;
    int rv;
    *ret_id = 0;
    while ((rv = fleet_wire_next(&bytes, &f)) > 0)
        if (f.key == WIRE_KEY(READINGS_ID, WIRE_VARINT))
            *ret_id = (uint32_t)f.number;
    return rv;
}

int fleet_next_reading(struct str *rest, struct fleet_reading_message *ret)
{
    struct fleet_wire f;
    int rv;
    while ((rv = fleet_wire_next(rest, &f)) > 0)
        if (f.key == WIRE_KEY(READINGS_READING, WIRE_BYTES))
            return read_reading(f.bytes, ret) < 0 ? -1 : 1;
    return rv;
}

/* ---- WatchUpdate ---- */

static int check_readings(struct str bytes)
{
    struct fleet_reading_message reading;
    uint32_t id;
    size_t n = 0;
    int rv = fleet_read_readings_id(bytes, &id);
    if (rv < 0)
        return -1;
    while ((rv = fleet_next_reading(&bytes, &reading)) > 0)
        if (++n > FLEET_WANTS_MAX)
            return -1;
    return rv;
}

static int count_ids(struct str packed, size_t *n)
{
    uint64_t id;
    int rv;
    while ((rv = fleet_wire_next_varint(&packed, &id)) > 0)
        ++*n;
    return rv;
}

static int check_part(enum fleet_part part, struct str bytes)
{
    union {
        struct fleet_node_message node;
        struct fleet_device_message device;
        struct fleet_holder_message holder;
    } m;
    switch (part) {
    case FLEET_PART_NODE:
        return fleet_read_node(bytes, &m.node);
    case FLEET_PART_DEVICE:
        return fleet_read_device(bytes, &m.device);
    case FLEET_PART_HOLDER:
        return fleet_read_holder(bytes, &m.holder);
    case FLEET_PART_DEVICE_READINGS:
    case FLEET_PART_HOLDER_READINGS:
        return check_readings(bytes);
    case FLEET_PART_REMOVED_DEVICE:
    case FLEET_PART_REMOVED_HOLDER:
    case FLEET_PART_COUNT:
    default:
        return 0;
    }
}

static int read_part(struct fleet_update *u, const struct fleet_wire *f)
{
    enum fleet_part part = (enum fleet_part)(f->key >> 3);
    if (part == FLEET_PART_REMOVED_DEVICE || part == FLEET_PART_REMOVED_HOLDER)
        return count_ids(f->bytes, &u->n[part]);
    u->n[part]++;
    if (part == FLEET_PART_NODE)
        u->node = f->bytes;
    return check_part(part, f->bytes);
}

static int read_field(struct fleet_update *u, const struct fleet_wire *f)
{
    switch (f->key) {
    case WIRE_KEY(1, WIRE_VARINT):
        u->sequence = f->number;
        return 0;
    case WIRE_KEY(2, WIRE_VARINT):
        u->is_full = f->number != 0;
        return 0;
    case WIRE_KEY(3, WIRE_VARINT):
        u->age_ms = f->number;
        return 0;
    case WIRE_KEY(11, WIRE_VARINT):
        u->sent_ms = f->number;
        return 0;
    case WIRE_KEY(12, WIRE_VARINT):
        u->has_more = f->number != 0;
        return 0;
    case WIRE_KEY(FLEET_PART_REMOVED_DEVICE, WIRE_VARINT):
    case WIRE_KEY(FLEET_PART_REMOVED_HOLDER, WIRE_VARINT):
        u->n[f->key >> 3]++;
        return 0;
    default:
        break;
    }
    bool is_part = (f->key & 7) == WIRE_BYTES && f->key >> 3 >= FLEET_PART_NODE && f->key >> 3 < FLEET_PART_COUNT;
    return is_part ? read_part(u, f) : 0;
}

/* One update may name each thing once. */
static int check_counts(const struct fleet_update *u, struct err *e)
{
    static const size_t most[FLEET_PART_COUNT] = {[FLEET_PART_NODE] = 1,
                                                  [FLEET_PART_DEVICE] = FLEET_DEVICES_MAX,
                                                  [FLEET_PART_REMOVED_DEVICE] = FLEET_DEVICES_MAX,
                                                  [FLEET_PART_HOLDER] = FLEET_HOLDERS_MAX,
                                                  [FLEET_PART_REMOVED_HOLDER] = FLEET_HOLDERS_MAX,
                                                  [FLEET_PART_DEVICE_READINGS] = FLEET_DEVICES_MAX,
                                                  [FLEET_PART_HOLDER_READINGS] = FLEET_HOLDERS_MAX};
    for (size_t part = FLEET_PART_NODE; part < FLEET_PART_COUNT; part++)
        if (u->n[part] > most[part])
            return err_set(e, ERR_RESOURCE_EXHAUSTED, "field %zu of the agent's update has %zu entries, at most %zu",
                           part, u->n[part], most[part]);
    return 0;
}

int fleet_read_update(struct str bytes, struct fleet_update *ret, struct err *e)
{
    struct fleet_update u = {.bytes = bytes};
    struct fleet_wire f;
    int rv;
    while ((rv = fleet_wire_next(&bytes, &f)) > 0)
        if (read_field(&u, &f) < 0)
            return err_set(e, ERR_INTERNAL,
                           "field %u of the agent's update is broken, or has a text that is no UTF-8 "
                           "or over %d bytes",
                           f.key >> 3, FLEET_TEXT_MAX);
    if (rv < 0)
        return err_set(e, ERR_INTERNAL, "the agent's update is no protobuf message");
    if (check_counts(&u, e) < 0)
        return -1;
    *ret = u;
    return 0;
}

void fleet_each_part(const struct fleet_update *u, enum fleet_part part,
                     void (*visit)(void *context, struct str message, uint32_t id), void *context)
{
    struct str rest = u->bytes, none = {NULL, 0};
    bool is_ids = part == FLEET_PART_REMOVED_DEVICE || part == FLEET_PART_REMOVED_HOLDER;
    struct fleet_wire f;
    uint64_t id;
    if (u->n[part] == 0)
        return;
    while (fleet_wire_next(&rest, &f) > 0)
        if (is_ids && f.key == WIRE_KEY(part, WIRE_VARINT))
            visit(context, none, (uint32_t)f.number);
        else if (is_ids && f.key == WIRE_KEY(part, WIRE_BYTES))
            while (fleet_wire_next_varint(&f.bytes, &id) > 0)
                visit(context, none, (uint32_t)id);
        else if (f.key == WIRE_KEY(part, WIRE_BYTES))
            visit(context, f.bytes, 0);
}
