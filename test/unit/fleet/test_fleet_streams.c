/* Streams against agents in this process: what becomes of a node when its agent answers, falls silent, goes, returns or
 * refuses, and how newer wants reach it. */
#include "fleet/agents.h"

#define S(x) ((int64_t)((x) * (double)NS_PER_S))

static const struct fleet_reading *reading(size_t agent, size_t want)
{
    return &node_of(agent)->devices[0].readings[want];
}

static double metric(const char *name, const char *label)
{
    const struct metric_desc desc = {
        .name = name, .kind = label ? METRIC_GAUGE : METRIC_COUNTER, .labels = {label ? "state" : NULL}};
    struct metric_family *family = metric_register(rig.metrics, &desc);
    return metric_value(label ? metric_series(family, &label) : metric_only(family));
}

static void test_an_agent_that_answers_is_up_and_stays_up(void **state)
{
    (void)state;
    rig_start(1);
    assert_false(fleet_is_synced(rig.fleet));
    rig_watch(1);
    assert_false(fleet_is_synced(rig.fleet));
    assert_int_equal(node_of(0)->state, FLEET_NODE_CONNECTING);
    pass_until_up(0);
    assert_true(fleet_is_synced(rig.fleet));
    assert_string_equal(node_of(0)->name, "node-b");
    assert_string_equal(node_of(0)->text, "");
    assert_ptr_equal(fleet_find_node(rig.fleet, "node-b"), node_of(0));
    assert_string_equal(rig.agents[0].wants[0], "utilization");
    rig.agents[0].mean = 70;
    size_t changes = rig.n_changes;
    rig_pass(S(120), true);
    assert_int_equal(node_of(0)->state, FLEET_NODE_UP);
    assert_int_equal(rig.agents[0].n_calls, 1);
    assert_double_same(reading(0, 0)->mean, 70);
    assert_in_range(rig.n_changes - changes, 118, 121);
    assert_double_same(metric("keda_gpu_scaler_fleet_agents", "up"), 1);
    assert_double_same(metric("keda_gpu_scaler_fleet_agents", "connecting"), 0);
    rig_stop();
}

static void test_an_agent_that_dies_is_connecting_until_it_returns(void **state)
{
    (void)state;
    rig_start(2);
    rig_watch(2);
    pass_until_up(0);
    pass_until_up(1);
    agent_stop(&rig.agents[0]);
    pass_until(is_state(0, FLEET_NODE_CONNECTING), S(5));
    assert_string_not_equal(node_of(0)->text, "");
    assert_double_same(reading(0, 0)->mean, 50); /* it ages */
    assert_true(fleet_is_synced(rig.fleet));
    double opened = metric("keda_gpu_scaler_fleet_streams_opened", NULL);
    rig_pass(S(60), true);
    assert_int_equal(node_of(0)->state, FLEET_NODE_CONNECTING);
    opened = metric("keda_gpu_scaler_fleet_streams_opened", NULL) - opened;
    assert_true(opened >= 1 && opened <= 40); /* back-off grows: 30 s apart at most, 15 s in the mean */
    assert_false(fleet_reading_is_fresh(node_of(0), 0, reading(0, 0), net_now_ns(rig.loop)));
    assert_int_equal(node_of(1)->state, FLEET_NODE_UP);
    rig.agents[0].mean = 20;
    agent_start(&rig.agents[0]);
    pass_until_up(0);
    assert_int_equal(node_of(0)->instance, 2);
    assert_double_same(reading(0, 0)->mean, 20);
    assert_true(metric("keda_gpu_scaler_fleet_streams_lost", NULL) >= 2);
    rig_stop();
}

static void test_an_agent_that_hangs_is_stale_then_dialled_anew(void **state)
{
    (void)state;
    rig_start(1);
    rig_watch(1);
    pass_until_up(0);
    rig_pass(S(4.5), false);
    assert_int_equal(node_of(0)->state, FLEET_NODE_UP);
    rig_pass(S(2), false);
    assert_int_equal(node_of(0)->state, FLEET_NODE_STALE);
    assert_string_not_equal(node_of(0)->text, "");
    agent_tell_change(&rig.agents[0]);
    pass_until_up(0);
    assert_int_equal(rig.agents[0].n_calls, 1);
    rig.agents[0].manner = IS_SILENT;
    pass_until(is_state(0, FLEET_NODE_CONNECTING), S(25));
    assert_non_null(strstr(node_of(0)->text, "silent"));
    pass_until(rig.agents[0].n_calls == 2, S(5));
    pass_until(rig.agents[0].n_calls == 3, S(60)); /* it never answered the second one */
    assert_non_null(strstr(node_of(0)->text, "did not answer"));
    rig.agents[0].manner = ANSWERS;
    pass_until_up(0);
    rig_stop();
}

static void test_an_agent_that_refuses_is_asked_again_after_half_a_minute(void **state)
{
    (void)state;
    rig_start(1);
    rig.agents[0].manner = HAS_NO_SUCH_CALL;
    rig_watch(1);
    pass_until(is_state(0, FLEET_NODE_REFUSED), S(5));
    assert_string_equal(node_of(0)->text, "no such call");
    assert_false(fleet_is_synced(rig.fleet));
    rig_pass(S(29), false);
    assert_int_equal(rig.agents[0].n_calls, 1);
    assert_double_same(metric("keda_gpu_scaler_fleet_agents", "refused"), 1);
    rig.agents[0].manner = ANSWERS;
    pass_until_up(0);
    assert_int_equal(rig.agents[0].n_calls, 2);
    rig_stop();
}

/* As when the agent's server drains a connection for its age. */
static void test_a_stream_that_ends_in_good_order_is_no_outage(void **state)
{
    (void)state;
    rig_start(1);
    rig_watch(1);
    pass_until_up(0);
    rig_pass(S(15), true);
    rpc_call_finish(rig.agents[0].call, ERR_NONE, NULL);
    for (int i = 0; i < 20; i++) {
        rig_step();
        assert_int_equal(node_of(0)->state, FLEET_NODE_UP);
    }
    assert_int_equal(rig.agents[0].n_calls, 2);
    rig_pass(S(3), true);
    assert_int_equal(node_of(0)->state, FLEET_NODE_UP);
    rpc_call_finish(rig.agents[0].call, ERR_NONE, NULL); /* so soon after: something is wrong */
    pass_until(is_state(0, FLEET_NODE_CONNECTING), S(1));
    pass_until_up(0);
    rig_stop();
}

static void test_a_fault_of_the_agent_ends_its_stream_and_a_whole_update_heals(void **state)
{
    (void)state;
    rig_start(1);
    rig_watch(1);
    pass_until_up(0);
    agent_send(&rig.agents[0], &(struct update){.sequence = 9});
    pass_until(is_state(0, FLEET_NODE_CONNECTING), S(5));
    assert_non_null(strstr(node_of(0)->text, "update 9 after 1"));
    assert_double_same(metric("keda_gpu_scaler_fleet_update_faults", NULL), 1);
    assert_double_same(reading(0, 0)->mean, 50);
    pass_until_up(0);
    assert_int_equal(rig.agents[0].n_calls, 2);
    assert_int_equal(rig.agents[0].n_open, 1);
    rig_stop();
}

/* A machine was suspended: all that comes seems late from then on, until the clocks are compared anew. */
static void test_updates_that_stay_late_open_the_stream_anew(void **state)
{
    (void)state;
    rig_start(1);
    rig_watch(1);
    pass_until_up(0);
    uint64_t sent_ms = 100000;
    int64_t taken_ns = 0;
    struct agent *a = &rig.agents[0];
    for (int i = 0; i < 30 && a->n_calls == 1; i++, sent_ms += 1000) {
        agent_send(a, &(struct update){.sent_ms = i < 5 ? sent_ms : sent_ms - 60000});
        rig_pass(S(1), false);
        if (i < 5)
            taken_ns = node_of(0)->taken_ns;
        else if (a->n_calls == 1)
            assert_int_equal(node_of(0)->taken_ns, taken_ns); /* nothing is fresh for having come */
    }
    pass_until(a->n_calls == 2, S(5));
    pass_until_up(0);
    assert_true(net_now_ns(rig.loop) - node_of(0)->taken_ns < S(5));
    rig_stop();
}

/* ---- who ought to report ---- */

static void test_agents_that_stay_keep_their_streams_and_others_end(void **state)
{
    (void)state;
    rig_start(3);
    rig_watch(2);
    pass_until_up(0);
    pass_until_up(1);
    size_t n;
    const struct fleet_node *const *nodes = fleet_nodes(rig.fleet, &n);
    assert_int_equal(n, 2);
    assert_string_equal(nodes[0]->name, "node-a");
    assert_string_equal(nodes[1]->name, "node-b");
    fleet_set_agents(rig.fleet,
                     (const struct fleet_agent[]){
                         {"", rig.agents[2].address}, {"", rig.agents[1].address}, {"twice", rig.agents[2].address}},
                     3);
    assert_false(fleet_is_synced(rig.fleet));
    pass_until_up(2);
    assert_int_equal(rig.agents[1].n_calls, 1);
    assert_int_equal(rig.agents[0].n_open, 0);
    fleet_set_agents(rig.fleet, NULL, 0);
    rig_pass(S(2), false);
    net_loop_skip(rig.loop, S(15 * 60));
    rig_pass(S(2), false);
    (void)fleet_nodes(rig.fleet, &n);
    assert_int_equal(n, 0);
    assert_true(fleet_is_synced(rig.fleet));
    assert_double_same(metric("keda_gpu_scaler_fleet_agents", "up"), 0);
    assert_double_same(metric("keda_gpu_scaler_fleet_agents", "connecting"), 0);
    rig_stop();
}

/* Its agent's pod is replaced or cannot start: what was busy must not look idle for it. */
static void test_a_node_whose_agent_is_no_longer_listed_is_missing_not_gone(void **state)
{
    (void)state;
    rig_start(2);
    rig_watch(2);
    pass_until_up(0);
    pass_until_up(1);
    const struct fleet_agent second = {"", rig.agents[1].address};
    const struct fleet_agent both[] = {{"", rig.agents[0].address}, second};
    const char *name = fleet_nodes(rig.fleet, &(size_t){0})[0]->name;
    char lost[64];
    (void)str_copy(lost, sizeof(lost), str_of(name));
    bool is_first = strcmp(fleet_find_node(rig.fleet, lost)->address, rig.agents[0].address) == 0;
    fleet_set_agents(rig.fleet, is_first ? &second : &both[0], 1);
    const struct fleet_node *node = fleet_find_node(rig.fleet, lost);
    assert_non_null(node);
    assert_int_equal(node->state, FLEET_NODE_CONNECTING);
    assert_string_equal(node->text, "its agent is no longer listed");
    assert_int_equal(node->n_devices, 1);
    assert_true(node->devices[0].readings[0].taken_ns > 0);
    assert_true(fleet_is_synced(rig.fleet));
    rig_pass(S(10), false);
    assert_int_equal(rig.agents[is_first ? 0 : 1].n_open, 0); /* nobody dials it */
    fleet_set_agents(rig.fleet, both, 2);
    pass_until_up(is_first ? 0 : 1);
    assert_int_equal(fleet_find_node(rig.fleet, lost)->state, FLEET_NODE_UP);
    rig_stop();
}

static void test_of_two_agents_of_one_node_the_one_that_speaks_counts(void **state)
{
    (void)state;
    rig_start(2);
    rig.agents[1].name = rig.agents[0].name;
    rig_watch(2);
    pass_until_up(0);
    pass_until_up(1);
    for (size_t gone = 0; gone < 2; gone++) {
        agent_stop(&rig.agents[gone]);
        pass_until(is_state(gone, FLEET_NODE_CONNECTING), S(5));
        assert_string_equal(fleet_find_node(rig.fleet, "node-b")->address, rig.agents[1 - gone].address);
        agent_start(&rig.agents[gone]);
        pass_until_up(gone);
    }
    rig_stop();
}

static void test_an_address_that_is_none_is_a_state_with_a_reason(void **state)
{
    (void)state;
    rig_start(0);
    fleet_set_agents(rig.fleet, &(struct fleet_agent){"worker", "no port"}, 1);
    rig_pass(S(2), false);
    const struct fleet_node *node = fleet_find_node(rig.fleet, "worker");
    assert_int_equal(node->state, FLEET_NODE_CONNECTING);
    assert_non_null(strstr(node->text, "no port"));
    rig_stop();
}

/* ---- wants ---- */

static const struct fleet_want memory = {SNAPSHOT_MEMORY_USED, 0, 60 * NS_PER_S};

static void test_a_new_want_is_asked_for_without_losing_the_old_readings(void **state)
{
    (void)state;
    rig_start(1);
    rig_watch(1);
    pass_until_up(0);
    rig.agents[0].manner = IS_SILENT; /* slow to answer the second stream */
    struct rpc_call *first = rig.agents[0].call;
    assert_int_equal(fleet_want(rig.fleet, &memory), 1);
    assert_int_equal(fleet_want(rig.fleet, &memory), 1);
    assert_int_equal(node_of(0)->n_wants, 1);
    pass_until(rig.agents[0].n_calls == 2, S(2.5));
    assert_int_equal(rig.agents[0].n_open, 2);
    assert_string_equal(rig.agents[0].wants[1], "memory_used");
    assert_double_same(reading(0, 0)->mean, 50);
    assert_int_equal(node_of(0)->state, FLEET_NODE_UP);
    rig.agents[0].mean = 60;
    assert_ptr_not_equal(rig.agents[0].call, first);
    agent_tell_all(&rig.agents[0]);
    pass_until(node_of(0)->n_wants == 2, S(1));
    assert_double_same(reading(0, 1)->mean, 60);
    pass_until(rig.agents[0].n_open == 1, S(1));
    assert_int_equal(rig.agents[0].n_calls, 2);
    rig_stop();
}

static void test_a_stream_for_new_wants_that_is_refused_leaves_the_old_one(void **state)
{
    (void)state;
    rig_start(1);
    rig_watch(1);
    pass_until_up(0);
    struct rpc_call *first = rig.agents[0].call;
    rig.agents[0].manner = IS_BUSY;
    (void)fleet_want(rig.fleet, &memory);
    pass_until(rig.agents[0].n_calls == 2, S(2.5));
    rig_pass(S(2), false);
    assert_int_equal(node_of(0)->state, FLEET_NODE_UP);
    assert_int_equal(rig.agents[0].n_open, 1);
    assert_int_equal(rig.agents[0].n_calls, 2);
    rig.agents[0].call = first;
    rig.agents[0].manner = ANSWERS;
    pass_until(node_of(0)->n_wants == 2, S(6));
    rig_stop();
}

static void test_wants_have_a_ceiling_and_make_room_when_nobody_asks(void **state)
{
    (void)state;
    rig_start(1);
    rig_watch(1);
    pass_until_up(0);
    for (int i = 1; i < FLEET_WANTS_MAX; i++)
        assert_int_equal(fleet_want(rig.fleet, &(struct fleet_want){SNAPSHOT_POWER, i * NS_PER_S, 0}), i);
    assert_int_equal(fleet_want(rig.fleet, &memory), -1);
    net_loop_skip(rig.loop, S(899));
    (void)net_loop_turn(rig.loop);
    assert_int_equal(fleet_want(rig.fleet, &memory), -1);
    assert_int_equal(fleet_want(rig.fleet, &(struct fleet_want){SNAPSHOT_POWER, 7 * NS_PER_S, 0}), 7);
    net_loop_skip(rig.loop, S(2));
    (void)net_loop_turn(rig.loop);
    assert_int_equal(fleet_want(rig.fleet, &memory), 0);
    assert_int_equal(fleet_want(rig.fleet, &(struct fleet_want){SNAPSHOT_POWER, 7 * NS_PER_S, 0}), 7);
    assert_int_equal(fleet_want(rig.fleet, &(struct fleet_want){SNAPSHOT_POWER, NS_PER_S, 0}), 1);
    rig_stop();
}

/* The place of a want that went is held by an empty one, and what a late update says of it is not taken for the new. */
static void test_a_reused_place_never_shows_readings_of_the_want_before(void **state)
{
    (void)state;
    rig_start(1);
    assert_int_equal(fleet_want(rig.fleet, &memory), 1);
    rig_watch(1);
    pass_until_up(0);
    assert_double_same(reading(0, 0)->mean, 50);
    for (int64_t passed_ns = 0; passed_ns < S(1000); passed_ns += S(20)) {
        net_loop_skip(rig.loop, S(15));
        rig_pass(S(5), true);
        (void)fleet_want(rig.fleet, &memory); /* only this one is asked for */
    }
    pass_until(*rig.agents[0].wants[0] == '\0', S(10));
    assert_string_equal(rig.agents[0].wants[1], "memory_used");
    pass_until_up(0);
    rig.agents[0].manner = IS_SILENT;
    struct rpc_call *old = rig.agents[0].call;
    size_t n_calls = rig.agents[0].n_calls;
    uint64_t sequence = rig.agents[0].sequence;
    assert_int_equal(fleet_want(rig.fleet, &(struct fleet_want){SNAPSHOT_POWER, 0, 0}), 0);
    pass_until(rig.agents[0].n_calls > n_calls, S(5));
    assert_string_equal(rig.agents[0].wants[0], "power");
    struct rpc_call *newer = rig.agents[0].call;
    rig.agents[0].call = old;
    rig.agents[0].sequence = sequence;
    rig.agents[0].mean = 33;
    agent_tell_change(&rig.agents[0]);
    pass_until(reading(0, 1)->mean == 33.0, S(1));
    assert_int_equal(reading(0, 0)->status, FLEET_NOT_YET);
    rig.agents[0].call = newer;
    rig.agents[0].sequence = 0;
    rig.agents[0].mean = 400;
    agent_tell_all(&rig.agents[0]);
    pass_until(reading(0, 0)->status == FLEET_OK, S(1));
    assert_double_same(reading(0, 0)->mean, 400);
    rig_stop();
}

static void test_streams_for_new_wants_are_opened_at_different_times(void **state)
{
    (void)state;
    rig_start(2);
    rig_watch(2);
    pass_until_up(0);
    pass_until_up(1);
    rig.fleet->peers[0]->place_ns = 0;
    rig.fleet->peers[1]->place_ns = S(1.9);
    (void)fleet_want(rig.fleet, &memory);
    rig_pass(S(1), true);
    assert_int_equal(rig.agents[0].n_calls + rig.agents[1].n_calls, 3);
    rig_pass(S(1.1), true);
    assert_int_equal(rig.agents[0].n_calls + rig.agents[1].n_calls, 4);
    (void)fleet_want(rig.fleet, &(struct fleet_want){SNAPSHOT_POWER, 0, 0});
    (void)fleet_want(rig.fleet, &(struct fleet_want){SNAPSHOT_POWER, NS_PER_S, 0}); /* in one wave */
    rig_pass(S(6), true);
    assert_int_equal(rig.agents[0].n_calls + rig.agents[1].n_calls, 6);
    assert_int_equal(node_of(0)->n_wants, 4);
    rig_stop();
}

/* As where a hub finds many ScaledObjects: the second wave begins when the first is through, and takes all of them. */
static void test_many_wants_one_after_another_wait_for_one_wave(void **state)
{
    (void)state;
    rig_start(1);
    rig_watch(1);
    pass_until_up(0);
    rig.fleet->peers[0]->place_ns = S(1.9);
    for (int i = 0; i < UPDATE_WANTS_MAX - 1; i++) {
        (void)fleet_want(rig.fleet, &(struct fleet_want){SNAPSHOT_POWER, i * NS_PER_S, 0});
        rig_pass(S(0.05), true);
    }
    rig_pass(S(4.3), true);
    assert_int_equal(node_of(0)->n_wants, UPDATE_WANTS_MAX);
    rig_stop();
}

/* The stream was opened for the want before and answers after the place has another one. */
static void test_a_stream_that_was_being_opened_does_not_fill_a_reused_place(void **state)
{
    (void)state;
    rig_start(1);
    rig_watch(1);
    pass_until_up(0);
    rig.agents[0].manner = IS_SILENT;
    (void)fleet_want(rig.fleet, &memory);
    pass_until(rig.agents[0].n_calls == 2, S(2.5));
    for (int i = 2; i < FLEET_WANTS_MAX; i++)
        assert_int_equal(fleet_want(rig.fleet, &(struct fleet_want){SNAPSHOT_POWER, i * NS_PER_S, 0}), i);
    rig.fleet->places[0].asked_ns -= S(1000);
    assert_int_equal(fleet_want(rig.fleet, &(struct fleet_want){SNAPSHOT_POWER, NS_PER_S, 0}), 0);
    rig.agents[0].mean = 60;
    agent_tell_all(&rig.agents[0]);
    pass_until(node_of(0)->n_wants == 2, S(1));
    assert_int_equal(rig.agents[0].n_calls, 2);
    assert_int_equal(reading(0, 0)->status, FLEET_NOT_YET);
    assert_double_same(reading(0, 1)->mean, 60);
    rig_stop();
}

/* ---- a crowd ---- */

/* Many addresses of one listener: 127.0.0.2, .3, ... */
static void test_dials_are_paced_and_those_that_fail_spread_out(void **state)
{
    enum { N = 150 };
    (void)state;
    static char addresses[N][32];
    struct fleet_agent agents[N];
    rig_start(0);
    rig.agents[0].name = "node";
    rig.agents[0].mean = 1;
    (void)str_copy(rig.agents[0].address, sizeof(rig.agents[0].address), str_of("0.0.0.0:0"));
    agent_start(&rig.agents[0]);
    for (size_t i = 0; i < N; i++) {
        (void)snprintf(addresses[i], sizeof(addresses[i]), "127.0.0.%zu:%d", i + 2,
                       net_listener_port(rig.agents[0].listener));
        agents[i] = (struct fleet_agent){"", addresses[i]};
    }
    fleet_set_agents(rig.fleet, agents, N);
    double opened = 0;
    for (int64_t passed_ns = 0; passed_ns < S(1.5); passed_ns += STEP_NS) {
        rig_step();
        double now = metric("keda_gpu_scaler_fleet_streams_opened", NULL);
        assert_true(now - opened <= 21); /* 200 a second, and what the step before left */
        opened = now;
    }
    assert_double_same(opened, N);
    pass_until(rig.agents[0].n_open == N, S(5));
    agent_stop(&rig.agents[0]);
    double before = metric("keda_gpu_scaler_fleet_streams_opened", NULL);
    size_t busy = 0;
    for (int64_t passed_ns = 0; passed_ns < S(1.2); passed_ns += STEP_NS) {
        rig_step();
        double now = metric("keda_gpu_scaler_fleet_streams_opened", NULL);
        assert_true(now - before <= 21);
        busy += now > before;
        before = now;
    }
    assert_true(busy > 10); /* of 24 steps: nobody is in lockstep */
    rig_stop();
}

static void test_with_more_dials_due_than_may_be_made_each_agent_has_its_turn(void **state)
{
    enum { N = 60, STEPS = 40 };
    (void)state;
    static char addresses[N][32], names[N][32];
    struct fleet_agent agents[N];
    rig_start(1);
    agent_stop(&rig.agents[0]); /* nobody listens on its port */
    const char *port = strrchr(rig.agents[0].address, ':');
    for (size_t i = 0; i < N; i++) {
        (void)snprintf(addresses[i], sizeof(addresses[i]), "127.0.0.%zu%s", i + 2, port);
        (void)snprintf(names[i], sizeof(names[i]), "node-%02zu", (i * 7) % N);
        agents[i] = (struct fleet_agent){names[i], addresses[i]};
    }
    size_t n;
    fleet_set_agents(rig.fleet, agents, 1);
    (void)fleet_nodes(rig.fleet, &n);
    fleet_set_agents(rig.fleet, agents, N);
    const struct fleet_node *const *nodes = fleet_nodes(rig.fleet, &n);
    for (size_t i = 1; i < n; i++)
        assert_true(strcmp(nodes[i - 1]->name, nodes[i]->name) < 0);
    for (int i = 0; i < STEPS; i++) {
        for (size_t k = 0; k < N; k++)
            rig.fleet->peers[k]->open_at_ns = 0;
        rig_step();
    }
    for (size_t k = 0; k < N; k++)
        assert_in_range(rig.fleet->peers[k]->n_failures, 4, 10);
    rig_stop();
}

static void test_backoff_grows_and_is_all_jitter(void **state)
{
    (void)state;
    static const struct {
        int n_failures;
        double random;
        int64_t want_ns;
    } rows[] = {{0, 0, S(0.1)}, {0, 1, S(0.6)},   {1, 0.5, S(0.6)},    {3, 1, S(4.1)},
                {5, 0, S(0.1)}, {20, 1, S(30.1)}, {1000, 0.5, S(15.1)}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_in_range(fleet_backoff_ns(rows[i].n_failures, rows[i].random), rows[i].want_ns - 1, rows[i].want_ns + 1);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_agent_that_answers_is_up_and_stays_up),
        cmocka_unit_test(test_an_agent_that_dies_is_connecting_until_it_returns),
        cmocka_unit_test(test_an_agent_that_hangs_is_stale_then_dialled_anew),
        cmocka_unit_test(test_an_agent_that_refuses_is_asked_again_after_half_a_minute),
        cmocka_unit_test(test_a_stream_that_ends_in_good_order_is_no_outage),
        cmocka_unit_test(test_a_fault_of_the_agent_ends_its_stream_and_a_whole_update_heals),
        cmocka_unit_test(test_updates_that_stay_late_open_the_stream_anew),
        cmocka_unit_test(test_agents_that_stay_keep_their_streams_and_others_end),
        cmocka_unit_test(test_a_node_whose_agent_is_no_longer_listed_is_missing_not_gone),
        cmocka_unit_test(test_of_two_agents_of_one_node_the_one_that_speaks_counts),
        cmocka_unit_test(test_an_address_that_is_none_is_a_state_with_a_reason),
        cmocka_unit_test(test_a_new_want_is_asked_for_without_losing_the_old_readings),
        cmocka_unit_test(test_a_stream_for_new_wants_that_is_refused_leaves_the_old_one),
        cmocka_unit_test(test_wants_have_a_ceiling_and_make_room_when_nobody_asks),
        cmocka_unit_test(test_a_reused_place_never_shows_readings_of_the_want_before),
        cmocka_unit_test(test_streams_for_new_wants_are_opened_at_different_times),
        cmocka_unit_test(test_many_wants_one_after_another_wait_for_one_wave),
        cmocka_unit_test(test_a_stream_that_was_being_opened_does_not_fill_a_reused_place),
        cmocka_unit_test(test_dials_are_paced_and_those_that_fail_spread_out),
        cmocka_unit_test(test_with_more_dials_due_than_may_be_made_each_agent_has_its_turn),
        cmocka_unit_test(test_backoff_grows_and_is_all_jitter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
