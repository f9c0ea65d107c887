/* The store's inside, for the streams that feed it. Private to fleet/ and its tests. */
#ifndef FLEET_STORE_H
#define FLEET_STORE_H

#include "fleet/fleet.h"
#include "fleet/message.h"

#define FLEET_AGE_MAX_NS (INT64_C(1000000) * NS_PER_S) /* what is older is as old */

/* 0 says never: what happens to be taken then is taken a moment later. */
static inline int64_t fleet_not_never(int64_t taken_ns)
{
    return taken_ns ? taken_ns : 1;
}

/* What is behind a device. */
struct fleet_device_own {
    char *texts;
    bool is_unknown_kind; /* nothing of it can be relied on */
    struct fleet_reading readings[];
};

/* What is behind a holder. */
struct fleet_holder_own {
    char *texts;
    struct fleet_reading *readings; /* NULL: none of its own */
    uint32_t device_id;
    uint64_t minute; /* number of minutes[0], by the agent's clock */
    struct snapshot_extremes minutes[SNAPSHOT_MINUTES];
};

struct fleet_store {
    struct fleet_node node; /* devices and holders point to the arrays below */
    struct fleet_device *devices;
    struct fleet_holder *holders;
    uint32_t *by_id; /* places of holders in order of their ids, where there are many; NULL where not */
    char *texts, *address, *expected_name;
    int64_t *age_limits_ns;
    uint64_t sequence;
    unsigned n_names; /* how often the name has changed */
    uint64_t live;    /* wants by place whose readings may be taken: others have changed since the stream was opened */
    size_t n_requested; /* wants of the stream that is being read */
    bool is_following;  /* a change may come; else only a full one */
    bool has_offset;
    int64_t least_offset_ns, lag_ns; /* our clock less the agent's; how late the newest update was */
};

/* The next update is the first of a call with n_wants wants. Readings of places that are not in `live` are passed over.
 */
void fleet_store_begin(struct fleet_store *s, size_t n_wants, uint64_t live);
/* A place is given to another want: what was read of it is of the old one. */
void fleet_store_forget_want(struct fleet_store *s, size_t want);
/* The node's name as the program expects it, shown until the agent says its own. */
void fleet_store_expect_name(struct fleet_store *s, const char *name);

/* ---- parts.c ---- */
/* By id, NULL if there is none; the look begins at *hint, which is then the next one's place. */
struct fleet_device *fleet_store_find_device(const struct fleet_store *s, uint32_t id, size_t *hint);
struct fleet_holder *fleet_store_find_holder(const struct fleet_store *s, uint32_t id, size_t *hint);
/* Do what the update says; it was judged before. */
void fleet_store_apply_parts(struct fleet_store *s, const struct fleet_update *u, int64_t taken_ns);
/* Readings stand at their mean for that time. */
void fleet_store_advance(struct fleet_store *s, int64_t dt_ns);
/* Readings that are missing take the last good numbers of the same device or holder in `old`. */
void fleet_store_carry(struct fleet_store *s, const struct fleet_store *old);
/* Free devices and holders. */
void fleet_store_drop_parts(struct fleet_store *s);

#endif
