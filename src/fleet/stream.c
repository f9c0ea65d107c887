/* One agent's stream: dialling, the Watch call, what its end means, and the state that people see. When all agents are
 * dialled is fleet.c's; what updates mean is the store's. */
#include "fleet/fleet_private.h"

#include <stdio.h>

static const char method[] = "/kedagpuscaler.fleet.v1.Fleet/Watch";

#define SILENCE_NS       (5 * NS_PER_S)  /* then it is stale */
#define LOST_NS          (20 * NS_PER_S) /* then the stream is given up */
#define ANSWER_NS        (30 * NS_PER_S) /* from the dial to the first update */
#define LASTING_NS       (10 * NS_PER_S) /* a stream that lived for that long was a success */
#define LATE_NS          (5 * NS_PER_S)  /* what arrives later than that arrives late */
#define LATE_MAX_NS      (10 * NS_PER_S) /* for so long: the clocks are compared anew */
#define REOPEN_NS        (500 * NS_PER_MS)
#define RETRY_NS         (5 * NS_PER_S)
#define REFUSED_MIN_NS   (30 * NS_PER_S)
#define BACKOFF_MAX_NS   (30 * NS_PER_S)
#define BACKOFF_BASE_NS  (500 * NS_PER_MS)
#define BACKOFF_LEAST_NS (100 * NS_PER_MS)
enum { PERIODS_STALE = 3, PERIODS_LOST = 12, REQUEST_BYTES_MAX = 16384 };

int64_t fleet_backoff_ns(int n_failures, double random)
{
    int64_t ns = BACKOFF_BASE_NS;
    for (int i = 0; i < n_failures && ns < BACKOFF_MAX_NS; i++)
        ns *= 2;
    if (ns > BACKOFF_MAX_NS)
        ns = BACKOFF_MAX_NS;
    return BACKOFF_LEAST_NS + (int64_t)((double)ns * random);
}

static const struct fleet_node *node_of(const struct fleet_peer *p)
{
    return &p->store->node;
}

static int64_t now_of(const struct fleet_peer *p)
{
    return net_now_ns(p->fleet->config.loop);
}

static int64_t longer(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- state ---- */

/* Returns whether something is different. */
static bool set_state(struct fleet_peer *p, enum fleet_node_state state, const char *text)
{
    struct fleet_node *node = &p->store->node;
    if (node->state == state && str_equals(str_of(node->text), text))
        return false;
    fleet_count_state(p->fleet, node->state, state);
    node->state = state;
    (void)str_copy(node->text, sizeof(node->text), str_of(text));
    return true;
}

/* ---- the end of streams ---- */

/* Nobody waits for this call any more. */
static void let_go(struct fleet_watch **watch)
{
    struct fleet_watch *w = *watch;
    *watch = NULL;
    if (!w)
        return;
    w->peer = NULL;
    rpc_client_cancel(w->call);
}

static void close_all(struct fleet_peer *p)
{
    struct rpc_client *client = p->client;
    if (p->current)
        p->current->peer = NULL;
    if (p->opening)
        p->opening->peer = NULL;
    p->current = p->opening = NULL;
    p->client = NULL;
    rpc_client_free(client);
}

static bool is_refusal(enum err_class class)
{
    return class == ERR_UNIMPLEMENTED || class == ERR_PERMISSION_DENIED || class == ERR_UNAUTHENTICATED;
}

/* Nothing is open from here on; when to try again. The client's own back-off is not used: each attempt has a client of
 * its own, so that all of them are paced here. */
static void fail(struct fleet_peer *p, const struct err *e, bool has_lasted)
{
    int64_t now_ns = now_of(p);
    bool is_refused = is_refusal(e->class);
    double random = fleet_random(p->fleet);
    close_all(p);
    metric_add(p->fleet->metrics.lost, 1);
    p->n_failures = has_lasted ? 0 : p->n_failures + 1;
    p->open_at_ns = now_ns + (is_refused ? REFUSED_MIN_NS + (int64_t)(random * (double)REFUSED_MIN_NS)
                                         : fleet_backoff_ns(p->n_failures, random));
    if (set_state(p, is_refused ? FLEET_NODE_REFUSED : FLEET_NODE_CONNECTING, e->text))
        fleet_tell_changed(p->fleet, node_of(p));
}

static void on_done(void *context, const struct err *status)
{
    struct fleet_watch *w = (struct fleet_watch *)context;
    struct fleet_peer *p = w->peer;
    bool has_lasted = p && p->current == w && now_of(p) - w->opened_ns >= LASTING_NS;
    bool is_current = p && p->current == w;
    free(w);
    if (!p)
        return;
    if (is_current)
        p->current = NULL;
    else
        p->opening = NULL;
    if (!is_current && p->current) { /* what is open goes on */
        p->retry_at_ns = now_of(p) + RETRY_NS;
        return;
    }
    if (status->class == ERR_NONE && has_lasted) { /* the agent closes connections for their age, or goes */
        if (!p->opening)
            p->open_at_ns = now_of(p) + (int64_t)(fleet_random(p->fleet) * (double)REOPEN_NS);
        return;
    }
    struct err e = *status;
    if (e.class == ERR_NONE)
        (void)err_set(&e, ERR_UNAVAILABLE, "the agent ended the stream");
    fail(p, &e, has_lasted);
}

/* ---- updates ---- */

/* The first update of a newer stream: the older one has done its part. */
static void begin(struct fleet_peer *p, struct fleet_watch *w)
{
    p->opening = NULL;
    let_go(&p->current);
    p->current = w;
    p->late_since_ns = 0;
    fleet_store_begin(p->store, w->n_wants, w->live);
}

/* Is what comes late for so long that the clocks have moved against each other (a machine was suspended)? */
static bool is_out_of_step(struct fleet_peer *p, int64_t now_ns)
{
    if (p->store->lag_ns <= LATE_NS) {
        p->late_since_ns = 0;
        return false;
    }
    if (!p->late_since_ns)
        p->late_since_ns = now_ns;
    return now_ns - p->late_since_ns > LATE_MAX_NS;
}

static void on_message(void *context, struct str message)
{
    struct fleet_watch *w = (struct fleet_watch *)context;
    struct fleet_peer *p = w->peer;
    struct err e;
    if (!p)
        return;
    struct fleet *f = p->fleet;
    int64_t now_ns = now_of(p);
    if (p->opening == w)
        begin(p, w);
    if (fleet_store_apply(p->store, message, now_ns, &e) < 0) {
        metric_add(f->metrics.faults, 1);
        fail(p, &e, false);
        return;
    }
    metric_add(f->metrics.updates, 1);
    metric_observe(f->metrics.lag, (double)p->store->lag_ns / (double)NS_PER_S);
    if (!p->is_synced && fleet_store_node(p->store)->is_synced) {
        f->n_synced++;
        p->is_synced = true;
    }
    if (p->n_names != p->store->n_names) {
        p->n_names = p->store->n_names;
        fleet_names_changed(f);
    }
    if (is_out_of_step(p, now_ns)) {
        (void)err_set(&e, ERR_UNAVAILABLE, "the agent's updates come late for over %lld s", LATE_MAX_NS / NS_PER_S);
        fail(p, &e, true);
        return;
    }
    (void)set_state(p, FLEET_NODE_UP, "");
    fleet_tell_changed(f, node_of(p));
}

/* ---- opening ---- */

static void open_watch(struct fleet_peer *p, int64_t now_ns)
{
    struct fleet *f = p->fleet;
    BUF_AUTO struct buf request;
    buf_init(&request, REQUEST_BYTES_MAX);
    struct fleet_watch *w = mem_new(struct fleet_watch);
    w->peer = p;
    w->opened_ns = now_ns;
    w->generation = f->generation;
    w->n_wants = f->n_places;
    fleet_write_request(f, &request, &w->live);
    struct rpc_client_call_config config = {.path = method, .message = on_message, .done = on_done, .context = w};
    w->call = rpc_client_start(p->client, &config, request.data, request.len);
    p->opening = w;
    metric_add(f->metrics.opened, 1);
}

static void dial(struct fleet_peer *p, int64_t now_ns)
{
    struct fleet *f = p->fleet;
    struct rpc_client_config config = {.loop = f->config.loop,
                                       .address = node_of(p)->address,
                                       .tls = f->config.tls,
                                       .server_name = f->server_name,
                                       .pool = f->pool};
    struct err e;
    p->client = rpc_client_new(&config, &e);
    if (p->client)
        open_watch(p, now_ns);
    else
        fail(p, &e, false);
}

/* ---- time ---- */

static bool has_other_wants(const struct fleet_peer *p)
{
    const struct fleet_watch *newest = p->opening ? p->opening : p->current;
    return newest && newest->generation != p->fleet->generation;
}

static void follow_wants(struct fleet_peer *p, int64_t now_ns)
{
    if (!has_other_wants(p) || now_ns < p->fleet->spread_from_ns + p->place_ns || now_ns < p->retry_at_ns)
        return;
    let_go(&p->opening);
    open_watch(p, now_ns);
}

static void check_silence(struct fleet_peer *p, int64_t now_ns)
{
    const struct fleet_node *node = node_of(p);
    int64_t silent_ns = now_ns - node->heard_ns;
    struct err e;
    if (p->current && silent_ns > longer(LOST_NS, PERIODS_LOST * node->period_ns)) {
        (void)err_set(&e, ERR_UNAVAILABLE, "the agent keeps its stream open and is silent");
        fail(p, &e, true);
    } else if (!p->current && p->opening && now_ns - p->opening->opened_ns > ANSWER_NS) {
        (void)err_set(&e, ERR_UNAVAILABLE, "the agent did not answer within %lld s", ANSWER_NS / NS_PER_S);
        fail(p, &e, false);
    } else if (node->state == FLEET_NODE_UP && silent_ns > longer(SILENCE_NS, PERIODS_STALE * node->period_ns)) {
        if (set_state(p, FLEET_NODE_STALE, "nothing was heard of the agent for some seconds"))
            fleet_tell_changed(p->fleet, node);
    }
}

bool fleet_peer_is_waiting(const struct fleet_peer *p, int64_t now_ns)
{
    bool is_closed = !p->current && !p->opening;
    return (is_closed && p->open_at_ns - FLEET_TICK_NS < now_ns) || has_other_wants(p);
}

bool fleet_peer_tick(struct fleet_peer *p, int64_t now_ns, bool may_dial)
{
    check_silence(p, now_ns);
    if (p->current || p->opening) {
        follow_wants(p, now_ns);
        return false;
    }
    if (now_ns < p->open_at_ns || !may_dial)
        return false;
    if (p->client) /* closed in good order: the client dials by itself */
        open_watch(p, now_ns);
    else
        dial(p, now_ns);
    return true;
}

/* ---- life ---- */

void fleet_peer_unlist(struct fleet_peer *p, int64_t now_ns)
{
    if (p->unlisted_ns)
        return;
    close_all(p);
    p->unlisted_ns = now_ns;
    p->open_at_ns = INT64_MAX;
    if (set_state(p, FLEET_NODE_CONNECTING, "its agent is no longer listed"))
        fleet_tell_changed(p->fleet, node_of(p));
}

void fleet_peer_list(struct fleet_peer *p, int64_t now_ns)
{
    if (!p->unlisted_ns)
        return;
    p->unlisted_ns = 0;
    p->n_failures = 0;
    p->open_at_ns = now_ns;
}

void fleet_peer_forget_want(struct fleet_peer *p, size_t want)
{
    uint64_t others = ~(UINT64_C(1) << want);
    if (p->current)
        p->current->live &= others;
    if (p->opening)
        p->opening->live &= others;
    fleet_store_forget_want(p->store, want);
}

struct fleet_peer *fleet_peer_new(struct fleet *f, const struct fleet_agent *agent)
{
    struct fleet_peer *p = mem_new(struct fleet_peer);
    p->fleet = f;
    p->store = fleet_store_new(agent->address);
    p->place_ns = (int64_t)(fleet_random(f) * (double)FLEET_SPREAD_NS);
    p->open_at_ns = net_now_ns(f->config.loop) + fleet_backoff_ns(0, fleet_random(f)) - BACKOFF_LEAST_NS;
    fleet_store_expect_name(p->store, agent->node);
    (void)str_copy(p->store->node.text, sizeof(p->store->node.text), str_of("not heard yet"));
    return p;
}

void fleet_peer_free(struct fleet_peer *p)
{
    close_all(p);
    fleet_store_free(p->store);
    free(p);
}
