/* Shared by the files of Fleet/Watch only: the state of one stream, and what is said in it. */
#ifndef SERVICE_WATCH_H
#define SERVICE_WATCH_H

#include "service/service_private.h"

enum { WATCH_WANTS_MAX = 64 };

struct watch_want {
    enum { WATCH_NOTHING, WATCH_UNKNOWN, WATCH_FIELD } kind; /* NOTHING: only a place; UNKNOWN: no field of ours */
    enum snapshot_field field;                               /* where kind is WATCH_FIELD */
    int64_t window_ns, activation_window_ns;
};

/* ---- watch_reading.c: readings, and which of them go without saying ---- */

struct watch_reading {
    Kedagpuscaler__Fleet__V1__Status status;
    double newest, mean, peak, integral, valid_s; /* where OK; else 0 */
    int64_t age_ns;                               /* of the newest sample when the snapshot was taken */
};

/* Whose readings: a device's, or those of one pod on it. */
struct watch_subject {
    const struct snapshot *s; /* of the device, or of the pods' own processes */
    const struct snapshot_device *d;
    bool is_use;         /* d is what the processes of one pod do */
    int64_t at_ns;       /* the moment that is told of: when the node's snapshot was taken */
    int64_t since_ns;    /* nothing before it counts; INT64_MIN = everything does */
    int64_t due_from_ns; /* the first sample is due within the field's age limit from here on */
    const struct service_asked
        *asked; /* by field, since when: it is not due before either; NULL where not by request */
};
void watch_read(const struct watch_subject *subject, const struct watch_want *want, struct watch_reading *ret);

/* A reading as the hub got it, and when the snapshot was taken that it came with. */
struct watch_sent {
    struct watch_reading reading;
    int64_t at_ns; /* 0 = nothing was sent */
};
/* Does the hub, which goes on with what was sent, arrive at this reading by itself? slack_ns: by how much samples may
 * lie apart from where they would be if they came evenly. */
bool watch_goes_without_saying(const struct watch_sent *sent, const struct watch_reading *r, int64_t at_ns,
                               int64_t slack_ns);

/* ---- watch_told.c: what one hub was told ---- */

/* One device or holder. */
struct watch_told {
    uint32_t id, device_id;
    bool is_there;  /* seen in the look at hand */
    char *identity; /* what was said of it, apart from what moves; identity_len bytes */
    size_t identity_len;
    int64_t minute; /* of a holder: the newest minute of memory that was sent, 0 = none, and what it was then */
    struct snapshot_extremes extremes;
    struct watch_sent *readings; /* by want; NULL: none */
};

struct watch_list {
    VEC(struct watch_told) of; /* in the order of ids */
};

struct watch {
    struct stream *stream;
    size_t n_wants;
    struct watch_want wants[WATCH_WANTS_MAX];
    bool has_wants; /* other than places */
    int64_t opened_ns, sent_ns;
    int64_t at_ns; /* of the snapshot last told of */
    uint64_t sequence;
    char *node; /* as sent last; node_len bytes */
    size_t node_len;
    struct watch_list devices, holders;
    size_t bytes, counted_bytes; /* held in all of this, and as counted for the service's ceiling */
    const char *hub;             /* in the call's arena */
    bool is_over;
};

/* The entry of an id, new if need be. Valid until the next call. */
struct watch_told *watch_tell(struct watch *w, struct watch_list *list, uint32_t id);
void watch_forget(struct watch *w, struct watch_list *list, size_t at);
/* Is this what was said of it last? If not it is from now on. */
bool watch_is_news(struct watch *w, struct watch_told *told, const struct buf *identity);
/* Readings, none of which was sent. */
void watch_add_readings(struct watch *w, struct watch_told *told);
void watch_drop_readings(struct watch *w, struct watch_told *told);
void watch_free(struct watch *w); /* accepts NULL */

/* ---- watch_message.c: messages ---- */

/* Append a message as one field of WatchUpdate; or its bytes. */
void watch_put(struct buf *out, unsigned field, const ProtobufCMessage *message);
void watch_put_bytes(struct buf *out, unsigned field, const struct buf *bytes);
/* Append the message itself. Fields that follow are of the same message. */
void watch_put_head(struct buf *out, const ProtobufCMessage *message);
/* Node, as a message of its own. */
void watch_write_node(const struct service *s, const struct watch *w, const struct snapshot *snapshot,
                      const struct snapshot_holders *holders, struct buf *out);
/* What `device` says, without its place in an update; the same bytes as long as nothing of it changes. */
void watch_write_device(const struct snapshot_device *d, struct buf *out);
/* Likewise of a holder; without what moves with each second: how long it holds, and memory by minutes. */
void watch_write_holder(const struct snapshot_holder *h, struct buf *out);
/* The holder as an element, with all of it; minutes back to the one that `told` has. */
void watch_put_holder(const struct snapshot_holder *h, const struct watch_told *told, int64_t at_ns, struct buf *out);

enum { /* numbers of WatchUpdate's fields */
       WATCH_NODE = 4,
       WATCH_DEVICES = 5,
       WATCH_HOLDERS = 7,
       WATCH_DEVICE_READINGS = 9,
       WATCH_HOLDER_READINGS = 10,
};

#endif
