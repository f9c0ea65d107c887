/* Agents in this process: an rpc server each, on the loop that the fleet runs on, which tests move through time.
 * Included by one test file. */
#ifndef TEST_FLEET_AGENTS_H
#define TEST_FLEET_AGENTS_H

#include "fleet/fleet_private.h"

#include "fleet/updates.h"
#include "support.h"

#include <stdio.h>
#include <string.h>

enum { AGENTS_MAX = 4, CALLS_MAX = 8 };

/* What an agent does with a call. */
enum manner { ANSWERS, IS_SILENT, HAS_NO_SUCH_CALL, IS_BUSY };

struct agent {
    enum manner manner;
    const char *name;
    struct rpc_server *server;
    struct net_listener *listener;
    char address[64];
    struct rpc_call *call; /* the last one; NULL = over */
    uint64_t sequence, instance;
    size_t n_calls, n_open, n_wants;
    char wants[UPDATE_WANTS_MAX][32]; /* fields of the last request */
    double mean;                      /* of the one device, for every want */
};

static struct {
    struct net_loop *loop;
    struct metrics *metrics;
    struct fleet *fleet;
    struct agent agents[AGENTS_MAX];
    size_t n_changes;
} rig;

/* ---- an agent ---- */

static inline void agent_send(struct agent *a, struct update *u)
{
    BUF_AUTO struct buf bytes;
    buf_init(&bytes, 1 << 16);
    u->sequence = u->sequence ? u->sequence : ++a->sequence;
    u->name = a->name;
    u->instance = a->instance;
    pack_update(&bytes, u);
    assert_int_equal(rpc_call_send(a->call, bytes.data, bytes.len), 0);
}

static inline void agent_fill_row(const struct agent *a, struct row *row)
{
    row->id = 1;
    row->n = a->n_wants;
    for (size_t i = 0; i < a->n_wants; i++) {
        row->of[i].want = (uint32_t)i;
        row->of[i].mean = row->of[i].peak = a->mean;
    }
}

static inline void agent_tell_all(struct agent *a)
{
    struct update u = {.is_full = true, .n_devices = 1, .n_device_rows = 1, .n_wants = a->n_wants};
    u.devices[0].id = 1;
    u.devices[0].uuid = "GPU-a";
    for (size_t i = 0; i < a->n_wants; i++)
        u.age_limits_ms[i] = 5000;
    agent_fill_row(a, &u.device_rows[0]);
    agent_send(a, &u);
}

static inline void agent_tell_change(struct agent *a)
{
    struct update u = {.n_device_rows = 1};
    agent_fill_row(a, &u.device_rows[0]);
    agent_send(a, &u);
}

static inline void agent_on_watch(struct rpc_call *call, struct str request, void *context)
{
    struct agent *a = context;
    Kedagpuscaler__Fleet__V1__WatchRequest *m =
        kedagpuscaler__fleet__v1__watch_request__unpack(NULL, request.len, (const uint8_t *)request.ptr);
    assert_non_null(m);
    assert_string_equal(m->hub, "hub-1");
    a->call = call;
    a->n_calls++;
    a->n_open++;
    a->sequence = 0;
    a->n_wants = m->n_wants < UPDATE_WANTS_MAX ? m->n_wants : UPDATE_WANTS_MAX;
    for (size_t i = 0; i < a->n_wants; i++)
        (void)str_copy(a->wants[i], sizeof(a->wants[i]), str_of(m->wants[i]->field));
    kedagpuscaler__fleet__v1__watch_request__free_unpacked(m, NULL);
    if (a->manner == ANSWERS)
        agent_tell_all(a);
    else if (a->manner == HAS_NO_SUCH_CALL)
        rpc_call_finish(call, ERR_UNIMPLEMENTED, "no such call");
    else if (a->manner == IS_BUSY)
        rpc_call_finish(call, ERR_RESOURCE_EXHAUSTED, "too many streams");
}

static inline void agent_on_ended(struct rpc_call *call, void *context)
{
    struct agent *a = context;
    a->n_open--;
    if (a->call == call)
        a->call = NULL;
}

/* Listens where it did before, or on a port that the system chooses. */
static inline void agent_start(struct agent *a)
{
    static struct rpc_method methods[AGENTS_MAX];
    struct rpc_method *method = &methods[a - rig.agents];
    struct err e;
    *method = (struct rpc_method){.path = "/kedagpuscaler.fleet.v1.Fleet/Watch",
                                  .is_server_streaming = true,
                                  .message = agent_on_watch,
                                  .ended = agent_on_ended,
                                  .context = a};
    a->server = rpc_server_new(&(struct rpc_server_config){.loop = rig.loop, .metrics = rig.metrics});
    rpc_server_add(a->server, method, 1);
    struct net_listen_config config = {.address = *a->address ? a->address : "127.0.0.1:0",
                                       .h2 = rpc_server_protocol(a->server)};
    a->listener = net_listen(rig.loop, &config, &e);
    if (!a->listener)
        fail_msg("%s", e.text);
    (void)str_copy(a->address, sizeof(a->address), str_of(net_listener_address(a->listener)));
    a->instance++;
}

static inline void agent_stop(struct agent *a)
{
    net_listener_free(a->listener);
    a->listener = NULL;
    for (int i = 0; i < 3; i++)
        (void)net_loop_turn(rig.loop);
    rpc_server_free(a->server);
    a->server = NULL;
}

/* ---- the rig ---- */

static inline void on_changed(void *context, const struct fleet_node *node)
{
    (void)context;
    assert_non_null(node);
    rig.n_changes++;
}

static inline void rig_watch(size_t n)
{
    struct fleet_agent agents[AGENTS_MAX];
    for (size_t i = 0; i < n; i++)
        agents[i] = (struct fleet_agent){.node = "", .address = rig.agents[i].address};
    fleet_set_agents(rig.fleet, agents, n);
}

static inline void rig_start(size_t n_agents)
{
    static const char *const names[AGENTS_MAX] = {"node-b", "node-a", "node-d", "node-c"};
    struct err e;
    memset(&rig, 0, sizeof(rig));
    rig.metrics = metrics_new();
    rig.loop = net_loop_new(rig.metrics, &e);
    assert_non_null(rig.loop);
    rig.fleet = fleet_new(
        &(struct fleet_config){.loop = rig.loop, .metrics = rig.metrics, .hub = "hub-1", .changed = on_changed});
    for (size_t i = 0; i < n_agents; i++) {
        rig.agents[i].name = names[i];
        rig.agents[i].mean = 50;
        agent_start(&rig.agents[i]);
    }
    assert_int_equal(fleet_want(rig.fleet, &(struct fleet_want){SNAPSHOT_UTILIZATION, 15 * NS_PER_S, 60 * NS_PER_S}),
                     0);
}

static inline void rig_stop(void)
{
    fleet_free(rig.fleet);
    for (int i = 0; i < 5; i++)
        (void)net_loop_turn(rig.loop);
    for (size_t i = 0; i < AGENTS_MAX; i++) {
        assert_int_equal(rig.agents[i].n_open, 0);
        if (rig.agents[i].listener)
            agent_stop(&rig.agents[i]);
    }
    net_loop_free(rig.loop);
    metrics_free(rig.metrics);
}

/* ---- time: of the loop, which no test waits for ---- */

#define STEP_NS (50 * NS_PER_MS)

/* One step of it, with turns enough for what it starts to cross the loopback a few times. */
static inline void rig_step(void)
{
    net_loop_skip(rig.loop, STEP_NS);
    for (int i = 0; i < 8; i++)
        (void)net_loop_turn(rig.loop);
}

/* Agents that can be heard say something each second. */
static inline void rig_pass(int64_t ns, bool is_heard)
{
    int64_t next_ns = 0;
    for (int64_t passed_ns = 0; passed_ns < ns; passed_ns += STEP_NS) {
        for (size_t i = 0; is_heard && passed_ns >= next_ns && i < AGENTS_MAX; i++)
            if (rig.agents[i].call && rig.agents[i].manner == ANSWERS)
                agent_tell_change(&rig.agents[i]);
        next_ns += passed_ns >= next_ns ? NS_PER_S : 0;
        rig_step();
    }
}

/* Steps until the condition holds, through at most `limit_ns` of the loop's time. Sockets are real: where the kernel is
 * slower than the steps the last ones are waited for. */
#define pass_until(condition, limit_ns)                                                                                \
    do {                                                                                                               \
        for (int64_t passed_ns = 0; !(condition) && passed_ns < (limit_ns); passed_ns += STEP_NS)                      \
            rig_step();                                                                                                \
        for (int64_t end_ns = time_mono_ns() + 10 * NS_PER_S; !(condition) && time_mono_ns() < end_ns;)                \
            (void)net_loop_turn(rig.loop);                                                                             \
        assert_true(condition);                                                                                        \
    } while (0)

static inline const struct fleet_node *node_of(size_t agent)
{
    size_t n;
    const struct fleet_node *const *nodes = fleet_nodes(rig.fleet, &n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(nodes[i]->address, rig.agents[agent].address) == 0)
            return nodes[i];
    fail_msg("agent %zu has no node", agent);
    return NULL;
}

static inline bool is_state(size_t agent, enum fleet_node_state state)
{
    return node_of(agent)->state == state;
}

#define pass_until_up(agent) pass_until(is_state((agent), FLEET_NODE_UP), 40 * NS_PER_S)

#endif
