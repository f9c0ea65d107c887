/* The messages of proto/fleet.proto as the store reads them: each into a plain struct whose texts lie in the message.
 * It decides what is a fault of the sender; it keeps nothing. */
#ifndef FLEET_MESSAGE_H
#define FLEET_MESSAGE_H

#include "fleet/fleet.h"

enum { FLEET_TEXT_MAX = 1024, FLEET_DEVICES_MAX = SNAPSHOT_DEVICES_MAX, FLEET_HOLDERS_MAX = 4096 };

/* Fields of WatchUpdate that are messages or lists, by number. */
enum fleet_part {
    FLEET_PART_NODE = 4,
    FLEET_PART_DEVICE = 5,
    FLEET_PART_REMOVED_DEVICE = 6,
    FLEET_PART_HOLDER = 7,
    FLEET_PART_REMOVED_HOLDER = 8,
    FLEET_PART_DEVICE_READINGS = 9,
    FLEET_PART_HOLDER_READINGS = 10,
    FLEET_PART_COUNT = 11,
};

struct fleet_update {
    struct str bytes, node; /* node: the last of that part, empty where there is none */
    uint64_t sequence, age_ms, sent_ms;
    bool is_full, has_more;
    size_t n[FLEET_PART_COUNT]; /* how many of each part */
};

/* X(name): texts of a node, a device, a holder, in the order in which they are kept. */
#define FLEET_NODE_TEXTS(X)                                                                                            \
    X(name) X(version) X(driver) X(driver_text) X(driver_version) X(owners) X(owners_text) X(sight) X(sight_text)
#define FLEET_DEVICE_TEXTS(X) X(uuid) X(parent_uuid) X(product) X(mig_profile) X(lost_reason)
#define FLEET_HOLDER_TEXTS(X) X(ns) X(pod) X(pod_uid)

#define X(name) FLEET_NODE_TEXT_##name,
enum fleet_node_text { FLEET_NODE_TEXTS(X) FLEET_NODE_TEXT_COUNT };
#undef X
#define X(name) FLEET_DEVICE_TEXT_##name,
enum fleet_device_text { FLEET_DEVICE_TEXTS(X) FLEET_DEVICE_TEXT_COUNT };
#undef X
#define X(name) FLEET_HOLDER_TEXT_##name,
enum fleet_holder_text { FLEET_HOLDER_TEXTS(X) FLEET_HOLDER_TEXT_COUNT };
#undef X

struct fleet_node_message {
    struct str texts[FLEET_NODE_TEXT_COUNT];
    uint64_t instance;
    bool is_simulated;
    uint32_t period_ms;
    size_t n_wants;
    uint32_t age_limits_ms[FLEET_WANTS_MAX];
};

struct fleet_device_message {
    struct str texts[FLEET_DEVICE_TEXT_COUNT];
    uint32_t id, index;
    uint64_t kind, memory_total, memory_reserved;
    int32_t gpu_instance;
};

struct fleet_holder_message {
    struct str texts[FLEET_HOLDER_TEXT_COUNT];
    uint32_t id, device, shares, processes;
    bool is_listed, is_shared, is_measured;
    uint64_t held_ms, minute;
    size_t n_low, n_high;
    float low[SNAPSHOT_MINUTES], high[SNAPSHOT_MINUTES]; /* what goes beyond is passed over */
};

struct fleet_reading_message {
    uint64_t want, status;
    double mean, peak, integral, valid_s;
    uint32_t age_ms;
};

/* Each returns 0, or -1 where the bytes are none such message (with an error where it takes one). */
int fleet_read_update(struct str bytes, struct fleet_update *ret, struct err *e);
int fleet_read_node(struct str bytes, struct fleet_node_message *ret);
int fleet_read_device(struct str bytes, struct fleet_device_message *ret);
int fleet_read_holder(struct str bytes, struct fleet_holder_message *ret);
/* Of Readings: its id, and the next of its readings in *rest: 1, or 0 at the end. *rest is the message at first. */
int fleet_read_readings_id(struct str bytes, uint32_t *ret_id);
int fleet_next_reading(struct str *rest, struct fleet_reading_message *ret);

/* Call visit with each message of this part, or with each id of a list as one without bytes. The bytes were read by
 * fleet_read_update before: nothing is wrong in them. */
void fleet_each_part(const struct fleet_update *u, enum fleet_part part,
                     void (*visit)(void *context, struct str message, uint32_t id), void *context);

#endif
