/* All agents together: who ought to report, when each is dialled, what is asked of them, and their nodes by name. One
 * stream's life is stream.c's. */
#include "fleet/fleet.h"

#include "fleet/fleet_private.h"
#include "fleet/wire.h"

#include <assert.h>
#include <string.h>

#define WANT_IDLE_NS (900 * NS_PER_S) /* a want that nobody asked for in that time makes room */
#define WANT_LOOK_NS (60 * NS_PER_S)
#define UNLISTED_NS  (15 * 60 * NS_PER_S) /* for as long as a missing device counts */
#define DIAL_SAVE_NS FLEET_QUICK_TICK_NS  /* dials that a tick may make up for */
enum { HUB_MAX = 253, CLIENTS_MAX = 20000 };

/* Nodes by name, put in order when somebody asks. Answers look nodes up by the dozen: in a fleet of thousands a search
 * by halves would be most of what an answer costs. */
struct fleet_index {
    const struct fleet_node **nodes;
    size_t n;
    bool is_in_order;
    struct fleet_slot *slots; /* n_slots, a power of two, at least half of them empty */
    size_t n_slots;
    uint64_t seed; /* agents choose their names */
};
/* The first of a name in `nodes`. */
struct fleet_slot {
    uint32_t hash;
    uint32_t place; /* + 1; 0 empty */
};

/* ---- metrics ---- */

static const double lag_bounds[] = {0.01, 0.05, 0.25, 1, 5};
static const struct metric_desc agents_desc = {.name = "keda_gpu_scaler_fleet_agents",
                                               .help = "Agents that ought to report, by state of their stream.",
                                               .kind = METRIC_GAUGE,
                                               .labels = {"state"}};
static const struct metric_desc updates_desc = {
    .name = "keda_gpu_scaler_fleet_updates", .help = "Updates of agents that were taken.", .kind = METRIC_COUNTER};
static const struct metric_desc faults_desc = {.name = "keda_gpu_scaler_fleet_update_faults",
                                               .help = "Updates of agents that broke the protocol or a ceiling.",
                                               .kind = METRIC_COUNTER};
static const struct metric_desc opened_desc = {.name = "keda_gpu_scaler_fleet_streams_opened",
                                               .help = "Streams that were asked of agents.",
                                               .kind = METRIC_COUNTER};
static const struct metric_desc lost_desc = {.name = "keda_gpu_scaler_fleet_streams_lost",
                                             .help = "Streams, and tries to open one, that ended in an error.",
                                             .kind = METRIC_COUNTER};
static const struct metric_desc lag_desc = {.name = "keda_gpu_scaler_fleet_update_lag_seconds",
                                            .help = "How late updates arrived, against the quickest one of the stream.",
                                            .unit = "seconds",
                                            .kind = METRIC_HISTOGRAM,
                                            .bounds = lag_bounds,
                                            .n_bounds = ARRAY_LEN(lag_bounds)};

static void register_metrics(struct fleet_metrics *m, struct metrics *metrics)
{
    struct metric_family *agents = metric_register(metrics, &agents_desc);
    for (size_t i = 0; i < ARRAY_LEN(m->by_state); i++)
        m->by_state[i] = metric_series(agents, (const char *const[]){fleet_node_state_name((enum fleet_node_state)i)});
    m->updates = metric_only(metric_register(metrics, &updates_desc));
    m->faults = metric_only(metric_register(metrics, &faults_desc));
    m->opened = metric_only(metric_register(metrics, &opened_desc));
    m->lost = metric_only(metric_register(metrics, &lost_desc));
    m->lag = metric_only(metric_register(metrics, &lag_desc));
}

void fleet_count_state(struct fleet *f, enum fleet_node_state from, enum fleet_node_state to)
{
    metric_add(f->metrics.by_state[from], -1);
    metric_add(f->metrics.by_state[to], 1);
}

/* ---- small services for stream.c ---- */

double fleet_random(struct fleet *f)
{
    f->random = f->random * 6364136223846793005U + 1442695040888963407U;
    return (double)(f->random >> 11) * 0x1p-53;
}

void fleet_tell_changed(struct fleet *f, const struct fleet_node *node)
{
    if (f->config.changed)
        f->config.changed(f->config.context, node);
}

void fleet_names_changed(struct fleet *f)
{
    f->index->is_in_order = false;
}

/* ---- the request ---- */

static void put_varint(struct buf *out, uint64_t value)
{
    for (; value > 0x7F; value >>= 7)
        (void)buf_append_char(out, (char)(value | 0x80));
    (void)buf_append_char(out, (char)value);
}

static void put_bytes(struct buf *out, unsigned field, const void *bytes, size_t len)
{
    put_varint(out, WIRE_KEY(field, WIRE_BYTES));
    put_varint(out, len);
    (void)buf_append(out, bytes, len);
}

static void put_number(struct buf *out, unsigned field, int64_t number)
{
    put_varint(out, WIRE_KEY(field, WIRE_VARINT));
    put_varint(out, (uint64_t)number);
}

void fleet_write_request(const struct fleet *f, struct buf *out, uint64_t *ret_live)
{
    BUF_AUTO struct buf want;
    buf_init(&want, 256);
    *ret_live = 0;
    put_bytes(out, 1, f->hub, strlen(f->hub));
    for (size_t i = 0; i < f->n_places; i++) {
        const struct fleet_place *p = &f->places[i];
        buf_reset(&want);
        if (p->is_used) { /* else an empty one holds the place */
            const char *name = snapshot_field_name(p->want.field);
            put_bytes(&want, 1, name, strlen(name));
            put_number(&want, 2, p->want.window_ns / NS_PER_MS);
            put_number(&want, 3, p->want.activation_window_ns / NS_PER_MS);
            *ret_live |= UINT64_C(1) << i;
        }
        put_bytes(out, 2, want.data, want.len);
    }
    assert(!out->is_overflowed && !want.is_overflowed);
}

/* ---- wants ---- */

static bool is_same_want(const struct fleet_want *a, const struct fleet_want *b)
{
    return a->field == b->field && a->window_ns == b->window_ns && a->activation_window_ns == b->activation_window_ns;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* A wave of new streams begins; not before the last one is through. What is asked for before it begins is part of it:
 * waves of their own would make each of many triggers wait for all before it. */
static void wants_changed(struct fleet *f, int64_t now_ns)
{
    f->generation++;
    if (f->spread_from_ns > now_ns)
        return;
    f->spread_from_ns = f->n_peers ? later(now_ns, f->spread_from_ns + FLEET_SPREAD_NS) : now_ns - FLEET_SPREAD_NS;
}

static bool is_idle(const struct fleet_place *p, int64_t now_ns)
{
    return p->is_used && now_ns - p->asked_ns > WANT_IDLE_NS;
}

/* Free what nobody asks for; returns whether anything was. */
static bool drop_idle_wants(struct fleet *f, int64_t now_ns)
{
    bool is_changed = false;
    for (size_t i = 0; i < f->n_places; i++)
        if (is_idle(&f->places[i], now_ns)) {
            f->places[i].is_used = false;
            is_changed = true;
        }
    while (f->n_places > 0 && !f->places[f->n_places - 1].is_used)
        f->n_places--;
    return is_changed;
}

static void set_quick(struct fleet *f, bool is_quick);

static int take_place(struct fleet *f, const struct fleet_want *want, int64_t now_ns)
{
    size_t i = 0;
    while (i < FLEET_WANTS_MAX && f->places[i].is_used)
        i++;
    if (i == FLEET_WANTS_MAX)
        return -1;
    if (f->places[i].was_used)
        for (size_t k = 0; k < f->n_peers; k++)
            fleet_peer_forget_want(f->peers[k], i);
    f->places[i] = (struct fleet_place){.want = *want, .is_used = true, .was_used = true, .asked_ns = now_ns};
    if (i >= f->n_places)
        f->n_places = i + 1;
    wants_changed(f, now_ns);
    set_quick(f, true);
    return (int)i;
}

int fleet_want(struct fleet *f, const struct fleet_want *want)
{
    int64_t now_ns = net_now_ns(f->config.loop);
    for (size_t i = 0; i < f->n_places; i++)
        if (f->places[i].is_used && is_same_want(&f->places[i].want, want)) {
            f->places[i].asked_ns = now_ns;
            return (int)i;
        }
    int place = take_place(f, want, now_ns);
    return place < 0 && drop_idle_wants(f, now_ns) ? take_place(f, want, now_ns) : place;
}

/* ---- time ---- */

static void set_quick(struct fleet *f, bool is_quick)
{
    int64_t pace_ns = is_quick ? FLEET_QUICK_TICK_NS : FLEET_TICK_NS;
    if (f->is_quick == is_quick)
        return;
    f->is_quick = is_quick;
    net_timer_start(f->timer, pace_ns, pace_ns);
}

/* The look goes on where it stopped, so that with more due than may be dialled each has its turn. */
static void remove_peer(struct fleet *f, struct fleet_peer *p)
{
    metric_add(f->metrics.by_state[p->store->node.state], -1);
    f->n_synced -= p->is_synced;
    fleet_peer_free(p);
}

static void index_peers(struct fleet *f)
{
    f->index->n = 0;
    f->index->nodes = (const struct fleet_node **)mem_resize(f->index->nodes, f->n_peers + 1, sizeof(*f->index->nodes));
    for (size_t i = 0; i < f->n_peers; i++)
        f->index->nodes[f->index->n++] = &f->peers[i]->store->node;
    fleet_names_changed(f);
}

/* Too long ago to count, or another agent speaks for the node by now. */
static bool is_over(const struct fleet *f, const struct fleet_peer *p, int64_t now_ns)
{
    if (!p->unlisted_ns)
        return false;
    const struct fleet_node *node = &p->store->node, *now = fleet_find_node(f, node->name);
    bool is_replaced = now && now != node && now->state == FLEET_NODE_UP && now->is_synced;
    return is_replaced || now_ns - p->unlisted_ns >= UNLISTED_NS;
}

/* A mark first: finding a node puts the index in order, so nothing may go meanwhile. */
static void drop_unlisted(struct fleet *f, int64_t now_ns)
{
    size_t n = 0, n_over = 0;
    for (size_t i = 0; i < f->n_peers; i++) {
        f->peers[i]->is_over = is_over(f, f->peers[i], now_ns);
        n_over += f->peers[i]->is_over;
    }
    if (n_over == 0)
        return;
    for (size_t i = 0; i < f->n_peers; i++)
        if (f->peers[i]->is_over)
            remove_peer(f, f->peers[i]);
        else
            f->peers[n++] = f->peers[i];
    f->n_peers = n;
    f->next_peer = 0;
    index_peers(f);
}

static void tick(void *context)
{
    struct fleet *f = (struct fleet *)context;
    int64_t now_ns = net_now_ns(f->config.loop);
    bool is_waiting = false;
    drop_unlisted(f, now_ns);
    size_t first = f->next_peer, n = f->n_peers;
    if (now_ns - f->looked_at_wants_ns > WANT_LOOK_NS) {
        f->looked_at_wants_ns = now_ns;
        if (drop_idle_wants(f, now_ns))
            wants_changed(f, now_ns);
    }
    f->dial_free_ns = later(f->dial_free_ns, now_ns - DIAL_SAVE_NS);
    for (size_t k = 0; k < n; k++) {
        size_t i = first + k < n ? first + k : first + k - n;
        if (fleet_peer_tick(f->peers[i], now_ns, f->dial_free_ns <= now_ns)) {
            f->dial_free_ns += FLEET_DIAL_GAP_NS;
            f->next_peer = i + 1 < n ? i + 1 : 0;
        }
        is_waiting |= fleet_peer_is_waiting(f->peers[i], now_ns);
    }
    set_quick(f, is_waiting);
}

/* ---- agents ---- */

static int compare_agents(const void *left, const void *right)
{
    const struct fleet_agent *a = (const struct fleet_agent *)left, *b = (const struct fleet_agent *)right;
    return strcmp(a->address, b->address);
}

static void add_peer(struct fleet *f, struct fleet_peer **peers, size_t *n, const struct fleet_agent *agent)
{
    peers[(*n)++] = fleet_peer_new(f, agent);
    metric_add(f->metrics.by_state[FLEET_NODE_CONNECTING], 1);
}

/* A node that was heard does not vanish with its agent's address: a pod that is replaced or cannot start takes the
 * readings of its GPUs with it, and what was busy would look idle. They are missing, for as long as a missing device
 * counts. scaling-semantics 3 */
static void leave_peer(struct fleet *f, struct fleet_peer **peers, size_t *n, struct fleet_peer *p)
{
    if (!p->is_synced || p->store->node.n_devices == 0) {
        remove_peer(f, p);
        return;
    }
    fleet_peer_unlist(p, net_now_ns(f->config.loop));
    peers[(*n)++] = p;
}

/* Both in order of address. */
static void merge_peers(struct fleet *f, const struct fleet_agent *agents, size_t n_agents)
{
    struct fleet_peer **peers = (struct fleet_peer **)mem_new_array(n_agents + f->n_peers + 1, sizeof(*peers));
    size_t n = 0, at = 0;
    for (size_t i = 0; i < n_agents; i++) {
        if (i && strcmp(agents[i - 1].address, agents[i].address) == 0)
            continue;
        int order = 1;
        while (at < f->n_peers && (order = strcmp(f->peers[at]->store->address, agents[i].address)) < 0)
            leave_peer(f, peers, &n, f->peers[at++]);
        if (at < f->n_peers && order == 0) {
            fleet_store_expect_name(f->peers[at]->store, agents[i].node);
            fleet_peer_list(f->peers[at], net_now_ns(f->config.loop));
            peers[n++] = f->peers[at++];
        } else {
            add_peer(f, peers, &n, &agents[i]);
        }
    }
    while (at < f->n_peers)
        leave_peer(f, peers, &n, f->peers[at++]);
    free(f->peers);
    f->peers = peers;
    f->n_peers = n;
}

void fleet_set_agents(struct fleet *f, const struct fleet_agent *agents, size_t n)
{
    struct fleet_agent *sorted = (struct fleet_agent *)mem_new_array(n + 1, sizeof(*sorted));
    if (n)
        memcpy(sorted, agents, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), compare_agents);
    merge_peers(f, sorted, n);
    free(sorted);
    f->has_agents = true;
    f->next_peer = 0;
    index_peers(f);
    set_quick(f, true);
}

bool fleet_is_synced(const struct fleet *f)
{
    return f->has_agents && f->n_synced == f->n_peers;
}

/* ---- nodes by name ---- */

static int compare_nodes(const void *left, const void *right)
{
    const struct fleet_node *a = *(const struct fleet_node *const *)left, *b = *(const struct fleet_node *const *)right;
    int order = strcmp(a->name, b->name);
    return order ? order : strcmp(a->address, b->address);
}

static uint32_t hash_of(const struct fleet_index *index, const char *name)
{
    uint64_t hash = index->seed;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3U;
    return (uint32_t)(hash >> 32 ^ hash);
}

/* Where the name is, or the empty slot where it would be. */
static struct fleet_slot *slot_of(const struct fleet_index *index, const char *name, uint32_t hash)
{
    for (size_t i = hash & (index->n_slots - 1);; i = (i + 1) & (index->n_slots - 1)) {
        struct fleet_slot *slot = &index->slots[i];
        if (slot->place == 0 || (slot->hash == hash && strcmp(index->nodes[slot->place - 1]->name, name) == 0))
            return slot;
    }
}

static void put_in_order(struct fleet_index *index)
{
    enum { LEAST_SLOTS = 8 };
    if (index->n > 1)
        qsort(index->nodes, index->n, sizeof(*index->nodes), compare_nodes);
    size_t n_slots = LEAST_SLOTS;
    while (n_slots < 2 * index->n)
        n_slots *= 2;
    free(index->slots);
    index->n_slots = n_slots;
    index->slots = (struct fleet_slot *)mem_new_array(n_slots, sizeof(*index->slots));
    for (size_t i = 0; i < index->n; i++) {
        uint32_t hash = hash_of(index, index->nodes[i]->name);
        struct fleet_slot *slot = slot_of(index, index->nodes[i]->name, hash);
        if (slot->place == 0)
            *slot = (struct fleet_slot){.hash = hash, .place = (uint32_t)i + 1};
    }
    index->is_in_order = true;
}

const struct fleet_node *const *fleet_nodes(const struct fleet *f, size_t *ret_n)
{
    struct fleet_index *index = f->index;
    if (!index->is_in_order)
        put_in_order(index);
    *ret_n = index->n;
    return index->nodes;
}

/* While a node's agent is replaced there are two of its name: the one that speaks. */
static bool is_better(const struct fleet_node *a, const struct fleet_node *b)
{
    bool is_a_up = a->state == FLEET_NODE_UP, is_b_up = b->state == FLEET_NODE_UP;
    return is_a_up != is_b_up ? is_a_up : a->heard_ns > b->heard_ns;
}

const struct fleet_node *fleet_find_node(const struct fleet *f, const char *name)
{
    size_t n;
    const struct fleet_node *const *nodes = fleet_nodes(f, &n);
    const struct fleet_slot *slot = slot_of(f->index, name, hash_of(f->index, name));
    if (slot->place == 0)
        return NULL;
    const struct fleet_node *best = nodes[slot->place - 1];
    for (size_t i = slot->place; i < n && strcmp(nodes[i]->name, name) == 0; i++)
        if (is_better(nodes[i], best))
            best = nodes[i];
    return best;
}

/* ---- life ---- */

struct fleet *fleet_new(const struct fleet_config *config)
{
    const char *hub = config->hub ? config->hub : "";
    struct fleet *f = mem_new(struct fleet);
    f->config = *config;
    f->hub = mem_strndup(hub, strnlen(hub, HUB_MAX));
    f->server_name = config->server_name ? mem_strdup(config->server_name) : NULL;
    f->index = mem_new(struct fleet_index);
    f->random = (uint64_t)time_mono_ns() ^ (uint64_t)(uintptr_t)f;
    f->index->seed = f->random ^ 0xcbf29ce484222325U;
    f->looked_at_wants_ns = net_now_ns(config->loop);
    register_metrics(&f->metrics, config->metrics);
    f->pool = rpc_pool_new(CLIENTS_MAX);
    f->timer = net_timer_new(config->loop, tick, f);
    net_timer_start(f->timer, FLEET_TICK_NS, FLEET_TICK_NS);
    return f;
}

void fleet_free(struct fleet *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->n_peers; i++)
        remove_peer(f, f->peers[i]);
    net_timer_free(f->timer);
    rpc_pool_free(f->pool);
    free(f->peers);
    free(f->index->nodes);
    free(f->index->slots);
    free(f->index);
    free(f->hub);
    free(f->server_name);
    free(f);
}
