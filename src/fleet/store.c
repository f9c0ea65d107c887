/* One node as its agent tells it: is an update the next one, does it fit, how old is what it says; then the state that
 * it replaces or changes (parts.c). It owns the memory of one node. No socket and no clock: bytes and `now` come in. */
#include "fleet/store.h"

#include <assert.h>
#include <string.h>

const char *fleet_node_state_name(enum fleet_node_state state)
{
    static const char *const names[] = {
#define X(id, name) [FLEET_NODE_##id] = (name),
        FLEET_NODE_STATES(X)
#undef X
    };
    return names[state];
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
    c->n_new_devices += fleet_store_find_device(c->s, m.id, &c->device_hint) == NULL;
}

static void count_holder(void *context, struct str message, uint32_t id)
{
    struct count *c = (struct count *)context;
    struct fleet_holder_message m;
    (void)id;
    (void)fleet_read_holder(message, &m);
    c->n_new_holders += fleet_store_find_holder(c->s, m.id, &c->holder_hint) == NULL;
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
    int64_t age_ns = u->age_ms < FLEET_AGE_MAX_NS / NS_PER_MS ? (int64_t)u->age_ms * NS_PER_MS : FLEET_AGE_MAX_NS;
    return fleet_not_never(now_ns - s->lag_ns - age_ns);
}

/* ---- applying ---- */

/* What a full update replaces, as a store of nothing else. */
static struct fleet_store start_anew(struct fleet_store *s, const struct fleet_update *u)
{
    struct fleet_node *node = &s->node;
    struct fleet_store old = {.devices = s->devices, .holders = s->holders};
    old.node.n_devices = node->n_devices;
    old.node.n_holders = node->n_holders;
    old.node.n_wants = node->n_wants;
    old.node.instance = node->instance;
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
        struct fleet_store old = start_anew(s, &u);
        fleet_store_apply_parts(s, &u, taken_ns);
        fleet_store_carry(s, &old);
        fleet_store_drop_parts(&old);
    } else {
        if (taken_ns < s->node.taken_ns)
            taken_ns = s->node.taken_ns;
        fleet_store_advance(s, taken_ns - s->node.taken_ns);
        fleet_store_apply_parts(s, &u, taken_ns);
    }
    s->sequence = u.sequence;
    s->is_following = true;
    s->node.is_synced = (s->node.is_synced && !u.is_full) || !u.has_more;
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

void fleet_store_expect_name(struct fleet_store *s, const char *name)
{
    bool is_shown = s->node.name == s->expected_name;
    char *before = s->expected_name;
    s->node.expected = s->expected_name = mem_strdup(name);
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
    s->node.name = s->node.expected = s->expected_name;
    s->node.version = s->node.driver = s->node.driver_text = s->node.driver_version = "";
    s->node.owners = s->node.owners_text = s->node.sight = s->node.sight_text = "";
    return s;
}

void fleet_store_free(struct fleet_store *s)
{
    if (!s)
        return;
    fleet_store_drop_parts(s);
    free(s->texts);
    free(s->by_id);
    free(s->address);
    free(s->expected_name);
    free(s->age_limits_ns);
    free(s);
}

const struct fleet_node *fleet_store_node(const struct fleet_store *s)
{
    return &s->node;
}
