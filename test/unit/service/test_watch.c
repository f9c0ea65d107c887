/* Fleet/Watch: what is said at once, what later, and what goes without saying. The hub is the one of hub.h. */
#include "hub.h"

static struct str one_want(double window, double activation_window)
{
    return WANTS({"utilization", window, activation_window});
}

/* ---- the first update ---- */

static void test_the_first_update_tells_all_of_node_and_devices(void **state)
{
    (void)state;
    HUB h = {0};
    RIG_WITH(r, 50, 70);
    snapshot_store_header(r.node.store)->is_simulated = true;
    (void)snprintf(snapshot_store_header(r.node.store)->driver_version, 80, "535.261.03");
    (void)snprintf(snapshot_store_find(r.node.store, "GPU-1")->lost_reason, SNAPSHOT_TEXT_MAX, "Xid 79");
    snapshot_store_find(r.node.store, "GPU-1")->is_lost = true;
    node_read(&r.node, "GPU-0", SNAPSHOT_MEMORY_TOTAL, 80e9);
    node_read(&r.node, "GPU-0", SNAPSHOT_MEMORY_RESERVED, 1e9);
    node_publish(&r.node);
    node_wait(&r.node, 0.25);
    hub_watch(&r, &h, one_want(15, 60));
    assert_int_equal(h.n_updates, 1);
    assert_int_equal(h.last->sequence, 1);
    assert_true(h.last->is_full);
    assert_false(h.last->has_more);
    assert_int_equal(h.last->age_ms, 250);
    assert_int_equal(h.last->sent_ms, r.node.now_ns / NS_PER_MS);
    const Kedagpuscaler__Fleet__V1__Node *node = h.last->node;
    assert_string_equal(node->name, "node-1");
    assert_string_equal(node->version, "1.2.3");
    assert_true(node->instance > 0);
    assert_true(node->is_simulated);
    assert_int_equal(node->period_ms, 1000);
    assert_string_equal(node->driver, "ok");
    assert_string_equal(node->driver_text, "");
    assert_string_equal(node->driver_version, "535.261.03");
    assert_string_equal(node->owners, "");
    assert_string_equal(node->sight, "off");
    assert_int_equal(node->n_age_limits_ms, 1);
    assert_int_equal(node->age_limits_ms[0], 5000);
    assert_int_equal(h.last->n_devices, 2);
    const hub_device *d = h.last->devices[0];
    assert_true(d->id > 0);
    assert_string_equal(d->uuid, "GPU-0");
    assert_string_equal(d->product, "NVIDIA H100 80GB HBM3");
    assert_string_equal(d->lost_reason, "");
    assert_int_equal(d->kind, KEDAGPUSCALER__FLEET__V1__DEVICE_KIND__GPU);
    assert_int_equal(d->gpu_instance, -1);
    assert_true(d->memory_total == 80000000000 && d->memory_reserved == 1000000000);
    assert_string_equal(h.last->devices[1]->lost_reason, "Xid 79");
    assert_int_equal(h.last->devices[1]->index, 1);
    assert_int_equal(hub_reading(&r, &h, "GPU-1", 0).status, STATUS(MISSING)); /* lost */
    struct hub_reading reading = hub_reading(&r, &h, "GPU-0", 0);
    assert_int_equal(reading.status, STATUS(OK));
    assert_double_same(reading.mean, 50);
    assert_double_same(reading.peak, 50);
    assert_double_same(reading.integral, 50);
    assert_double_same(reading.valid_s, 1);
    assert_int_equal(reading.taken_ms, h.at_ms);
}

static void test_mig_devices_are_told_with_their_parent(void **state)
{
    (void)state;
    HUB h = {0};
    RIG_WITH(r);
    (void)node_add(&r.node, SNAPSHOT_MIG_PARENT, 0, "GPU-0");
    (void)node_add_mig(&r.node, 0, 7, 0);
    node_fail(&r.node, "GPU-0", SNAPSHOT_UTILIZATION, SNAPSHOT_UNSUPPORTED);
    node_read(&r.node, "MIG-0-7-0", SNAPSHOT_UTILIZATION, 30);
    node_publish(&r.node);
    hub_watch(&r, &h, one_want(15, 60));
    assert_int_equal(h.last->n_devices, 2);
    assert_int_equal(h.last->devices[0]->kind, KEDAGPUSCALER__FLEET__V1__DEVICE_KIND__MIG_PARENT);
    const hub_device *mig = h.last->devices[1];
    assert_int_equal(mig->kind, KEDAGPUSCALER__FLEET__V1__DEVICE_KIND__MIG);
    assert_string_equal(mig->parent_uuid, "GPU-0");
    assert_string_equal(mig->mig_profile, "1g.10gb");
    assert_int_equal(mig->gpu_instance, 7);
    assert_int_equal(hub_reading(&r, &h, "GPU-0", 0).status, STATUS(UNSUPPORTED));
    assert_double_same(hub_reading(&r, &h, "MIG-0-7-0", 0).mean, 30);
}

static void test_a_hub_that_has_just_started_knows_means_and_peaks(void **state)
{
    (void)state;
    HUB h = {0};
    RIG_WITH(r, 10);
    for (int i = 1; i <= 20; i++) {
        node_wait(&r.node, 1);
        node_read(&r.node, "GPU-0", SNAPSHOT_UTILIZATION, i == 3 ? 100 : i <= 10 ? 10 : 60);
        node_publish(&r.node);
    }
    hub_watch(&r, &h, WANTS({"utilization", 15, 60}, {"utilization", 5, 5}, {"utilization", 0, 0}));
    assert_double_near(hub_reading(&r, &h, "GPU-0", 0).mean, (5 * 10 + 10 * 60) / 15.0, 1e-9);
    assert_double_same(hub_reading(&r, &h, "GPU-0", 0).peak, 100);
    assert_double_same(hub_reading(&r, &h, "GPU-0", 1).mean, 60);
    assert_double_same(hub_reading(&r, &h, "GPU-0", 1).peak, 60);
    assert_double_same(hub_reading(&r, &h, "GPU-0", 2).mean, 60);
    assert_double_same(hub_reading(&r, &h, "GPU-0", 0).valid_s, 21);
    assert_double_near(hub_reading(&r, &h, "GPU-0", 0).integral, 10 * 10 + 100 + 10 * 60, 1e-9);
}

static void test_nothing_is_said_before_driver_and_kubelet_were_looked_at(void **state)
{
    (void)state;
    struct snapshot_owners owners = {.state = SNAPSHOT_OWNERS_STARTING};
    HUB h = {0};
    RIG_WITH(r);
    snapshot_unref(r.node.latest);
    r.node.latest = NULL;
    hub_watch(&r, &h, one_want(0, 0));
    assert_int_equal(h.n_updates, 0);
    snapshot_store_header(r.node.store)->driver = SNAPSHOT_DRIVER_STARTING;
    assert_int_equal(hub_cycle(&r, &h, 0.5), 0);
    snapshot_store_header(r.node.store)->driver = SNAPSHOT_DRIVER_OK;
    r.owners = snapshot_owners_new(&owners);
    assert_int_equal(hub_cycle(&r, &h, 0.5), 0);
    snapshot_owners_unref(r.owners);
    owners.state = SNAPSHOT_OWNERS_DENIED;
    (void)snprintf(owners.text, sizeof(owners.text), "mount it");
    r.owners = snapshot_owners_new(&owners);
    assert_int_equal(hub_cycle(&r, &h, 0.5), 1);
    assert_string_equal(h.last->node->owners, "denied");
    assert_string_equal(h.last->node->owners_text, "mount it");
}

static void test_a_first_look_that_does_not_end_is_told_after_five_seconds(void **state)
{
    (void)state;
    HUB h = {0};
    RIG_WITH(r);
    snapshot_store_header(r.node.store)->driver = SNAPSHOT_DRIVER_STARTING;
    node_publish(&r.node);
    hub_watch(&r, &h, one_want(0, 0));
    for (int i = 1; i < 5; i++) {
        node_wait(&r.node, 1);
        assert_int_equal(hub_tick(&r, &h), 0);
    }
    node_wait(&r.node, 1);
    assert_int_equal(hub_tick(&r, &h), 1);
    assert_string_equal(h.last->node->driver, "starting");
    assert_int_equal(h.last->age_ms, 5000);
}

/* ---- wants ---- */

static void test_a_field_that_the_agent_does_not_know_is_missing_and_none_at_all_is_silent(void **state)
{
    (void)state;
    HUB h = {0};
    RIG_WITH(r, 50, 70);
    hub_watch(&r, &h, WANTS({"utilisation", 15, 60}, {"", 0, 0}, {"utilization", 15, 60}, {"power_limit", 15, 60}));
    for (size_t i = 0; i < h.devices.n; i++) {
        assert_int_equal(h.devices.items[i].of[0].status, STATUS(MISSING));
        assert_int_equal(h.devices.items[i].of[1].status, NO_STATUS);
        assert_int_equal(h.devices.items[i].of[2].status, STATUS(OK));
    }
    assert_int_equal(h.last->node->n_age_limits_ms, 4);
    assert_int_equal(h.last->node->age_limits_ms[0], 0);
    assert_int_equal(h.last->node->age_limits_ms[2], 5000);
}

static void test_fields_without_a_past_have_their_newest_reading_at_each_update(void **state)
{
    (void)state;
    HUB h = {0};
    RIG_WITH(r, 50);
    node_read(&r.node, "GPU-0", SNAPSHOT_POWER_LIMIT, 700);
    node_publish(&r.node);
    hub_watch(&r, &h, WANTS({"power_limit", 15, 60}));
    for (int i = 0; i < 3; i++) {
        struct hub_reading reading = hub_reading(&r, &h, "GPU-0", 0);
        assert_int_equal(reading.status, STATUS(OK));
        assert_double_same(reading.mean, 700);
        assert_double_same(reading.peak, 700);
        assert_double_same(reading.integral, 0); /* a hub that let it stand would make one up */
        node_read(&r.node, "GPU-0", SNAPSHOT_POWER_LIMIT, 700);
        assert_int_equal(hub_cycle(&r, &h, 1), 1);
    }
}

static void test_a_stream_without_wants_tells_who_is_there(void **state)
{
    (void)state;
    HUB h = {0};
    RIG_WITH(r, 50, 70);
    hub_watch_bytes(&r, &h, (struct str){"", 0});
    rig_settle(&r);
    assert_int_equal(h.last->n_devices, 2);
    assert_int_equal(h.last->n_device_readings, 0);
}

static void test_wants_that_cannot_be_are_refused(void **state)
{
    (void)state;
    static struct hub_want many[HUB_WANTS_MAX + 1];
    HUB h = {0};
    RIG_WITH(r, 50);
    for (size_t i = 0; i < ARRAY_LEN(many); i++)
        many[i] = (struct hub_want){"utilization", (double)i, 0};
    static const struct {
        double window, activation_window;
        bool is_taken;
    } rows[] = {{300, 300, true}, {300.001, 0, false}, {0, 300.001, false}, {0, 0, true}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        hub_watch(&r, &h, one_want(rows[i].window, rows[i].activation_window));
        assert_int_equal(h.is_done, !rows[i].is_taken);
        if (rows[i].is_taken) {
            hub_leave(&r, &h);
            hub_fini(&h);
            continue;
        }
        assert_int_equal(h.status.class, ERR_INVALID_ARGUMENT);
        assert_contains(h.status.text, "at most 300000 ms");
    }
    hub_watch(&r, &h, packed_wants(many, HUB_WANTS_MAX + 1));
    assert_int_equal(h.status.class, ERR_INVALID_ARGUMENT);
    assert_contains(h.status.text, "at most 64");
    hub_watch(&r, &h, packed_wants(many, HUB_WANTS_MAX));
    assert_false(h.is_done);
    assert_int_equal(h.devices.items[0].of[HUB_WANTS_MAX - 1].status, STATUS(OK));
    hub_leave(&r, &h);
    hub_fini(&h);
    hub_watch_bytes(&r, &h, (struct str){"\x0a\xff", 2});
    TURN_UNTIL(&r, h.is_done);
    assert_int_equal(h.status.class, ERR_INTERNAL);
}

static void test_the_program_hears_what_is_asked_for_and_by_whom(void **state)
{
    (void)state;
    HUB h = {0};
    RIG_WITH(r, 50);
    hub_watch(&r, &h, WANTS({"pcie_tx", 15, 60}, {"what", 0, 0}));
    assert_true(r.wanted_fields == UINT64_C(1) << SNAPSHOT_PCIE_TX);
    assert_int_equal(r.n_watching, 1);
    assert_string_equal(r.watching_hub, "hub-0");
    assert_double_same(METRIC(&r, "keda_gpu_scaler_open_streams", "Fleet.Watch"), 1);
    r.wanted_fields = 0;
    (void)hub_cycle(&r, &h, 1);
    assert_true(r.wanted_fields != 0);
    hub_leave(&r, &h);
    assert_int_equal(r.n_watching, 0);
    assert_double_same(METRIC(&r, "keda_gpu_scaler_open_streams", "Fleet.Watch"), 0);
    r.wanted_fields = 0;
    service_tick(r.service);
    assert_true(r.wanted_fields == 0);
}

/* ---- states of a reading ---- */

static void test_states_of_a_reading(void **state)
{
    (void)state;
    enum how { NEVER, GOOD, FAILS, GOOD_THEN_FAILS, UNSUPPORTED };
    static const struct {
        enum how how;
        double age; /* of device and reading */
        int want;
    } rows[] = {
        {NEVER, 0, STATUS(NOT_YET)},
        {NEVER, 5, STATUS(NOT_YET)},
        {NEVER, 5.1, STATUS(MISSING)},
        {GOOD, 0, STATUS(OK)},
        {GOOD, 5, STATUS(OK)},
        {GOOD, 5.1, STATUS(MISSING)},
        {FAILS, 0, STATUS(MISSING)},
        {GOOD_THEN_FAILS, 5, STATUS(OK)},
        {GOOD_THEN_FAILS, 5.1, STATUS(MISSING)},
        {UNSUPPORTED, 0, STATUS(UNSUPPORTED)},
        {UNSUPPORTED, 9, STATUS(UNSUPPORTED)},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        HUB h = {0};
        RIG_WITH(r);
        (void)node_add(&r.node, SNAPSHOT_GPU, 0, "GPU-0");
        node_publish(&r.node);
        hub_watch(&r, &h, one_want(15, 60));
        if (rows[i].how == GOOD || rows[i].how == GOOD_THEN_FAILS)
            node_read(&r.node, "GPU-0", SNAPSHOT_UTILIZATION, 50);
        if (rows[i].how == FAILS || rows[i].how == GOOD_THEN_FAILS)
            node_fail(&r.node, "GPU-0", SNAPSHOT_UTILIZATION, SNAPSHOT_FAILED);
        if (rows[i].how == UNSUPPORTED)
            node_fail(&r.node, "GPU-0", SNAPSHOT_UTILIZATION, SNAPSHOT_UNSUPPORTED);
        (void)hub_cycle(&r, &h, rows[i].age);
        if (hub_reading(&r, &h, "GPU-0", 0).status != rows[i].want)
            fail_msg("row %zu: %d", i, hub_reading(&r, &h, "GPU-0", 0).status);
    }
}

static void test_a_field_that_is_read_because_it_is_watched_is_not_yet_there_at_first(void **state)
{
    (void)state;
    HUB h = {0};
    RIG_WITH(r, 50);
    node_wait(&r.node, 3600);
    node_read(&r.node, "GPU-0", SNAPSHOT_UTILIZATION, 50);
    node_publish(&r.node);
    hub_watch(&r, &h, WANTS({"pcie_tx", 15, 60}));
    assert_int_equal(hub_reading(&r, &h, "GPU-0", 0).status, STATUS(NOT_YET));
    (void)hub_cycle(&r, &h, 5.1);
    assert_int_equal(hub_reading(&r, &h, "GPU-0", 0).status, STATUS(MISSING));
    hub_leave(&r, &h);
    hub_fini(&h);
    hub_watch(&r, &h, WANTS({"pcie_tx", 15, 60})); /* another hub says the same */
    assert_int_equal(hub_reading(&r, &h, "GPU-0", 0).status, STATUS(MISSING));
    hub_leave(&r, &h);
    hub_fini(&h);
    node_wait(&r.node, 61);
    node_publish(&r.node);
    hub_watch(&r, &h, WANTS({"pcie_tx", 15, 60}));
    assert_int_equal(hub_reading(&r, &h, "GPU-0", 0).status, STATUS(NOT_YET));
}

/* ---- what comes when ---- */

static void test_what_stands_still_is_not_said_again(void **state)
{
    (void)state;
    HUB h = {0}, other = {0};
    RIG_WITH(r, 50, 70);
    hub_watch(&r, &h, one_want(15, 60));
    for (int i = 1; i <= 10; i++) {
        node_wait(&r.node, 1);
        node_read(&r.node, "GPU-0", SNAPSHOT_UTILIZATION, 50);
        node_read(&r.node, "GPU-1", SNAPSHOT_UTILIZATION, i < 5 ? 70 : 80);
        node_publish(&r.node);
        assert_int_equal(hub_tick(&r, &h), 1);
        assert_false(h.last->is_full);
        assert_null(h.last->node);
        assert_int_equal(h.last->n_devices, 0);
        assert_false(hub_was_told(&h, r.node.latest->devices[0].id, 0));
        assert_int_equal(hub_was_told(&h, r.node.latest->devices[1].id, 0), i >= 5);
        hub_watch(&r, &other, one_want(15, 60));
        assert_same_hub(&h, &other, 1e-9);
        hub_leave(&r, &other);
        hub_fini(&other);
        memset(&other, 0, sizeof(other));
    }
}

/* Means of a steady past, but the newest sample differs; a mean that moves while samples stand; and so on. */
static void test_a_reading_is_left_out_only_where_all_of_it_stands(void **state)
{
    (void)state;
    static const double histories[][6] = {{50, 50, 50, 50, 50, 60}, {50, 60, 60, 60, 60, 60}, {0, 0, 0, 0, 0, 0},
                                          {10, 20, 10, 20, 10, 20}, {-1, 50, -1, 50, 50, 50}, {50, -1, -1, -1, -1, 50}};
    for (size_t i = 0; i < ARRAY_LEN(histories); i++) {
        HUB h = {0}, other = {0};
        RIG_WITH(r, 50);
        hub_watch(&r, &h, WANTS({"utilization", 3, 4}, {"utilization", 0, 0}, {"utilization", 300, 0}));
        for (size_t k = 0; k < 40; k++) {
            double value = histories[i][k < 20 ? k % 6 : 5];
            node_wait(&r.node, 1);
            if (value < 0)
                node_fail(&r.node, "GPU-0", SNAPSHOT_UTILIZATION, SNAPSHOT_FAILED);
            else
                node_read(&r.node, "GPU-0", SNAPSHOT_UTILIZATION, value);
            node_publish(&r.node);
            (void)hub_tick(&r, &h);
            hub_watch(&r, &other, WANTS({"utilization", 3, 4}, {"utilization", 0, 0}, {"utilization", 300, 0}));
            assert_same_hub(&h, &other, 0.25);
            hub_leave(&r, &other);
            hub_fini(&other);
            memset(&other, 0, sizeof(other));
        }
    }
}

static void test_a_gap_is_told_even_where_the_value_stands(void **state)
{
    (void)state;
    HUB h = {0};
    RIG_WITH(r, 50);
    uint32_t id = r.node.latest->devices[0].id;
    hub_watch(&r, &h, one_want(300, 300));
    node_wait(&r.node, 4); /* a long cycle: the reading stands for all of it */
    node_read(&r.node, "GPU-0", SNAPSHOT_UTILIZATION, 50);
    node_publish(&r.node);
    assert_int_equal(hub_tick(&r, &h), 1);
    assert_false(hub_was_told(&h, id, 0));
    assert_double_near(hub_reading(&r, &h, "GPU-0", 0).valid_s, 5, 1e-9);
    node_wait(&r.node, 6); /* a gap: it stands for one period */
    node_read(&r.node, "GPU-0", SNAPSHOT_UTILIZATION, 50);
    node_publish(&r.node);
    assert_int_equal(hub_tick(&r, &h), 1);
    assert_true(hub_was_told(&h, id, 0));
    assert_double_near(hub_reading(&r, &h, "GPU-0", 0).valid_s, 6, 1e-9);
    assert_double_near(hub_reading(&r, &h, "GPU-0", 0).integral, 300, 1e-9);
    /* a cycle that does not read it: the hub would make the sample younger than it is */
    assert_int_equal(hub_cycle(&r, &h, 1), 1);
    assert_true(hub_was_told(&h, id, 0));
    assert_int_equal(h.at_ms - hub_reading(&r, &h, "GPU-0", 0).taken_ms, 1000);
    assert_double_near(hub_reading(&r, &h, "GPU-0", 0).valid_s, 6, 1e-9);
}

static void test_a_gap_of_an_idle_device_is_told(void **state)
{
    (void)state;
    HUB h = {0};
    RIG_WITH(r, 0);
    hub_watch(&r, &h, one_want(300, 300));
    node_wait(&r.node, 6);
    node_read(&r.node, "GPU-0", SNAPSHOT_UTILIZATION, 0);
    node_publish(&r.node);
    assert_int_equal(hub_tick(&r, &h), 1);
    assert_double_near(hub_reading(&r, &h, "GPU-0", 0).valid_s, 2, 1e-9);
}

static void test_a_reading_below_its_peak_is_said_each_time(void **state)
{
    (void)state;
    HUB h = {0};
    RIG_WITH(r, 90);
    hub_watch(&r, &h, one_want(3, 60));
    for (int i = 1; i <= 10; i++) {
        node_wait(&r.node, 1);
        node_read(&r.node, "GPU-0", SNAPSHOT_UTILIZATION, 60);
        node_publish(&r.node);
        assert_int_equal(hub_tick(&r, &h), 1);
        assert_true(hub_was_told(&h, r.node.latest->devices[0].id, 0));
    }
}

static void test_a_device_that_was_lost_before_its_first_reading_is_missing(void **state)
{
    (void)state;
    HUB h = {0};
    RIG_WITH(r);
    node_add(&r.node, SNAPSHOT_GPU, 0, "GPU-0")->is_lost = true;
    node_publish(&r.node);
    hub_watch(&r, &h, one_want(15, 60));
    assert_int_equal(hub_reading(&r, &h, "GPU-0", 0).status, STATUS(MISSING));
}

static void test_a_driver_that_hangs_is_told_each_second_by_the_age_of_the_snapshot(void **state)
{
    (void)state;
    HUB h = {0};
    RIG_WITH(r, 50);
    hub_watch(&r, &h, one_want(15, 60));
    int64_t taken_ms = hub_reading(&r, &h, "GPU-0", 0).taken_ms;
    for (int i = 1; i <= 20; i++) {
        node_wait(&r.node, 1);
        assert_int_equal(hub_tick(&r, &h), 1);
        assert_int_equal(h.last->age_ms, 1000 * i);
        assert_int_equal(h.at_ms, taken_ms);
        assert_int_equal(h.last->n_device_readings, 0);
        struct hub_reading reading = hub_reading(&r, &h, "GPU-0", 0);
        assert_int_equal(reading.status, STATUS(OK)); /* as it was: it is the hub that sees its age */
        assert_int_equal(reading.taken_ms, taken_ms);
        assert_double_same(reading.valid_s, 1);
    }
    assert_int_equal(h.at_ms, taken_ms);
    node_read(&r.node, "GPU-0", SNAPSHOT_UTILIZATION, 50); /* it comes back */
    node_publish(&r.node);
    assert_int_equal(hub_tick(&r, &h), 1);
    assert_double_same(hub_reading(&r, &h, "GPU-0", 0).valid_s, 2);
    assert_int_equal(hub_reading(&r, &h, "GPU-0", 0).taken_ms, h.at_ms);
}

static void test_updates_of_one_snapshot_agree_on_its_time(void **state)
{
    (void)state;
    HUB h = {0};
    RIG_WITH(r, 50);
    r.node.now_ns += 700 * 1000;
    node_read(&r.node, "GPU-0", SNAPSHOT_UTILIZATION, 50);
    node_publish(&r.node);
    hub_watch(&r, &h, one_want(15, 60));
    int64_t at_ms = h.at_ms;
    for (int i = 1; i <= 10; i++) {
        r.node.now_ns += NS_PER_S + 370 * 1000;
        assert_int_equal(hub_tick(&r, &h), 1);
        assert_int_equal(h.at_ms, at_ms);
    }
}

static void test_ticks_between_snapshots_say_nothing_before_a_second_has_passed(void **state)
{
    (void)state;
    HUB h = {0};
    RIG_WITH(r, 50);
    hub_watch(&r, &h, one_want(15, 60));
    node_wait(&r.node, 0.6);
    assert_int_equal(hub_tick(&r, &h), 0);
    node_wait(&r.node, 0.4);
    node_read(&r.node, "GPU-0", SNAPSHOT_UTILIZATION, 50);
    node_publish(&r.node);
    assert_int_equal(hub_tick(&r, &h), 1);
    assert_int_equal(hub_tick(&r, &h), 0);
    node_wait(&r.node, 0.6);
    assert_int_equal(hub_tick(&r, &h), 0);
    snapshot_store_header(r.node.store)->driver = SNAPSHOT_DRIVER_FAILED; /* news do not wait */
    (void)snprintf(snapshot_store_header(r.node.store)->driver_text, SNAPSHOT_TEXT_MAX, "GPU is lost");
    assert_int_equal(hub_cycle(&r, &h, 0.1), 1);
    assert_string_equal(h.last->node->driver, "failed");
    assert_string_equal(h.last->node->driver_text, "GPU is lost");
}

static void test_fast_snapshots_are_told_as_they_change(void **state)
{
    (void)state;
    HUB h = {0};
    RIG_WITH(r, 50);
    size_t n = 0;
    snapshot_store_header(r.node.store)->period_ns = 200 * NS_PER_MS;
    hub_watch(&r, &h, one_want(0, 0));
    for (int i = 1; i <= 10; i++) {
        node_wait(&r.node, 0.2);
        node_read(&r.node, "GPU-0", SNAPSHOT_UTILIZATION, 50 + i);
        node_publish(&r.node);
        assert_int_equal(hub_tick(&r, &h), 1);
    }
    for (int i = 1; i <= 10; i++) {
        node_wait(&r.node, 0.2);
        node_read(&r.node, "GPU-0", SNAPSHOT_UTILIZATION, 60);
        node_publish(&r.node);
        n += hub_tick(&r, &h);
    }
    assert_int_equal(n, 2); /* one a second */
}

static void test_devices_come_and_go(void **state)
{
    (void)state;
    HUB h = {0};
    RIG_WITH(r, 50, 70);
    hub_watch(&r, &h, one_want(15, 60));
    uint32_t gone = r.node.latest->devices[0].id, stays = r.node.latest->devices[1].id;
    snapshot_store_remove(r.node.store, "GPU-0");
    (void)node_add(&r.node, SNAPSHOT_GPU, 0, "GPU-0"); /* the same GPU, after a reset */
    node_read(&r.node, "GPU-0", SNAPSHOT_UTILIZATION, 5);
    node_read(&r.node, "GPU-1", SNAPSHOT_UTILIZATION, 70);
    assert_int_equal(hub_cycle(&r, &h, 1), 1);
    assert_int_equal(h.last->n_removed_devices, 1);
    assert_int_equal(h.last->removed_devices[0], gone);
    assert_int_equal(h.last->n_devices, 1);
    assert_true(h.last->devices[0]->id != gone && h.last->devices[0]->id != stays);
    assert_double_same(hub_reading(&r, &h, "GPU-0", 0).mean, 5);
    snapshot_store_remove_all(r.node.store);
    assert_int_equal(hub_cycle(&r, &h, 1), 1);
    assert_int_equal(h.last->n_removed_devices, 2);
    assert_int_equal(h.devices.n, 0);
}

static void test_a_device_that_changes_is_told_again_and_keeps_its_readings(void **state)
{
    (void)state;
    HUB h = {0};
    RIG_WITH(r, 50, 70);
    hub_watch(&r, &h, one_want(15, 60));
    struct snapshot_device *d = snapshot_store_find(r.node.store, "GPU-1");
    d->is_lost = true;
    node_read(&r.node, "GPU-0", SNAPSHOT_UTILIZATION, 50);
    assert_int_equal(hub_cycle(&r, &h, 1), 1);
    assert_int_equal(h.last->n_devices, 1);
    assert_string_equal(h.last->devices[0]->lost_reason, "lost");
    assert_int_equal(hub_reading(&r, &h, "GPU-1", 0).status, STATUS(MISSING));
    assert_double_same(hub_reading(&r, &h, "GPU-0", 0).mean, 50);
    assert_int_equal(hub_cycle(&r, &h, 1), 1);
    assert_int_equal(h.last->n_devices, 0);
}

static void test_a_text_that_is_no_utf8_does_not_spoil_the_rest(void **state)
{
    (void)state;
    HUB h = {0};
    RIG_WITH(r, 50);
    struct snapshot_device *d = snapshot_store_find(r.node.store, "GPU-0");
    (void)snprintf(d->product, sizeof(d->product), "H\xff");
    node_publish(&r.node);
    hub_watch(&r, &h, one_want(15, 60));
    assert_string_equal(h.last->devices[0]->product, "(no UTF-8)");
}

/* ---- many streams, and ends ---- */

static void test_each_hub_has_what_it_asked_for(void **state)
{
    (void)state;
    HUB a = {0}, b = {0};
    RIG_WITH(r, 50);
    hub_watch(&r, &a, WANTS({"utilization", 15, 60}));
    node_wait(&r.node, 1);
    node_read(&r.node, "GPU-0", SNAPSHOT_UTILIZATION, 90);
    node_read(&r.node, "GPU-0", SNAPSHOT_POWER, 400);
    node_publish(&r.node);
    hub_watch(&r, &b, WANTS({"power", 0, 0}, {"utilization", 0, 0}));
    assert_int_equal(b.last->sequence, 1);
    assert_int_equal(hub_tick(&r, &a), 1);
    assert_int_equal(a.last->sequence, 2);
    assert_int_equal(b.n_updates, 1); /* it has it all */
    assert_double_same(hub_reading(&r, &a, "GPU-0", 0).mean, 70);
    assert_double_same(hub_reading(&r, &b, "GPU-0", 0).mean, 400);
    assert_double_same(hub_reading(&r, &b, "GPU-0", 1).mean, 90);
    hub_leave(&r, &a);
    node_read(&r.node, "GPU-0", SNAPSHOT_POWER, 500);
    assert_int_equal(hub_cycle(&r, &b, 1), 1);
    assert_double_same(hub_reading(&r, &b, "GPU-0", 0).mean, 500);
}

static void test_a_hub_that_does_not_read_is_ended_not_told_less(void **state)
{
    (void)state;
    HUB h = {0};
    RIG_WITH(r, 50);
    hub_watch(&r, &h, one_want(15, 60));
    r.limits.values[NET_LIMIT_STREAM_OUTPUT_BYTES] = 100;
    for (int i = 0; i < 10; i++) { /* nothing of it goes out before the loop turns */
        node_wait(&r.node, 1);
        node_read(&r.node, "GPU-0", SNAPSHOT_UTILIZATION, i);
        node_publish(&r.node);
        service_tick(r.service);
    }
    TURN_UNTIL(&r, h.is_done);
    assert_int_equal(h.status.class, ERR_RESOURCE_EXHAUSTED);
    assert_contains(h.status.text, "watch again");
    hub_fini(&h);
    hub_watch(&r, &h, one_want(15, 60)); /* which tells it all again */
    assert_true(h.last->is_full);
    assert_int_equal(r.n_watching, 1);
}

static void test_what_hubs_were_told_counts_as_memory_of_streams(void **state)
{
    (void)state;
    enum { GPUS = 1000 };
    HUB h = {0};
    RIG_WITH(r);
    for (int i = 0; i < GPUS; i++) {
        char uuid[16];
        (void)snprintf(uuid, sizeof(uuid), "GPU-%d", i);
        (void)node_add(&r.node, SNAPSHOT_GPU, i, uuid);
    }
    node_publish(&r.node);
    static struct hub_want wants[HUB_WANTS_MAX];
    for (size_t i = 0; i < HUB_WANTS_MAX; i++)
        wants[i] = (struct hub_want){"utilization", (double)i, 60};
    hub_watch(&r, &h, packed_wants(wants, HUB_WANTS_MAX)); /* some 5 MB, of 4 MiB */
    TURN_UNTIL(&r, h.is_done);
    assert_int_equal(h.status.class, ERR_RESOURCE_EXHAUSTED);
    assert_contains(h.status.text, "as much memory as they may");
    hub_fini(&h);
    hub_watch(&r, &h, packed_wants(wants, 1)); /* all of it is free again */
    assert_int_equal(h.devices.n, GPUS);
    (void)hub_cycle(&r, &h, 1);
    assert_false(h.is_done);
}

static void test_what_is_gone_counts_no_longer(void **state)
{
    (void)state;
    enum { GPUS = 100, CYCLES = 12 };
    static struct hub_want wants[HUB_WANTS_MAX];
    HUB h = {0};
    RIG_WITH(r);
    for (size_t i = 0; i < HUB_WANTS_MAX; i++)
        wants[i] = (struct hub_want){"utilization", (double)i, 60};
    hub_watch(&r, &h, packed_wants(wants, HUB_WANTS_MAX));
    for (int cycle = 0; cycle < CYCLES; cycle++) { /* 500 kB each, of 4 MiB */
        snapshot_store_remove_all(r.node.store);
        for (int i = 0; i < GPUS; i++) {
            char uuid[16];
            (void)snprintf(uuid, sizeof(uuid), "GPU-%d", i);
            (void)node_add(&r.node, SNAPSHOT_GPU, i, uuid);
        }
        assert_int_equal(hub_cycle(&r, &h, 1), 1);
        assert_int_equal(h.devices.n, GPUS);
    }
    assert_false(h.is_done);
}

static void set_true(void *context)
{
    *(bool *)context = true;
}

static void test_a_drain_ends_streams_with_ok(void **state)
{
    (void)state;
    bool is_drained = false;
    HUB h = {0};
    RIG_WITH(r, 50);
    hub_watch(&r, &h, one_want(15, 60));
    service_drain(r.service);
    net_listener_drain(r.listener, NS_PER_S, set_true, &is_drained);
    TURN_UNTIL(&r, h.is_done && is_drained);
    assert_int_equal(h.status.class, ERR_NONE);
    assert_int_equal(r.n_watching, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_update_tells_all_of_node_and_devices),
        cmocka_unit_test(test_mig_devices_are_told_with_their_parent),
        cmocka_unit_test(test_a_hub_that_has_just_started_knows_means_and_peaks),
        cmocka_unit_test(test_nothing_is_said_before_driver_and_kubelet_were_looked_at),
        cmocka_unit_test(test_a_first_look_that_does_not_end_is_told_after_five_seconds),
        cmocka_unit_test(test_a_field_that_the_agent_does_not_know_is_missing_and_none_at_all_is_silent),
        cmocka_unit_test(test_fields_without_a_past_have_their_newest_reading_at_each_update),
        cmocka_unit_test(test_a_stream_without_wants_tells_who_is_there),
        cmocka_unit_test(test_wants_that_cannot_be_are_refused),
        cmocka_unit_test(test_the_program_hears_what_is_asked_for_and_by_whom),
        cmocka_unit_test(test_states_of_a_reading),
        cmocka_unit_test(test_a_field_that_is_read_because_it_is_watched_is_not_yet_there_at_first),
        cmocka_unit_test(test_what_stands_still_is_not_said_again),
        cmocka_unit_test(test_a_reading_is_left_out_only_where_all_of_it_stands),
        cmocka_unit_test(test_a_gap_is_told_even_where_the_value_stands),
        cmocka_unit_test(test_a_gap_of_an_idle_device_is_told),
        cmocka_unit_test(test_a_reading_below_its_peak_is_said_each_time),
        cmocka_unit_test(test_a_device_that_was_lost_before_its_first_reading_is_missing),
        cmocka_unit_test(test_a_driver_that_hangs_is_told_each_second_by_the_age_of_the_snapshot),
        cmocka_unit_test(test_updates_of_one_snapshot_agree_on_its_time),
        cmocka_unit_test(test_ticks_between_snapshots_say_nothing_before_a_second_has_passed),
        cmocka_unit_test(test_fast_snapshots_are_told_as_they_change),
        cmocka_unit_test(test_devices_come_and_go),
        cmocka_unit_test(test_a_device_that_changes_is_told_again_and_keeps_its_readings),
        cmocka_unit_test(test_a_text_that_is_no_utf8_does_not_spoil_the_rest),
        cmocka_unit_test(test_each_hub_has_what_it_asked_for),
        cmocka_unit_test(test_a_hub_that_does_not_read_is_ended_not_told_less),
        cmocka_unit_test(test_what_hubs_were_told_counts_as_memory_of_streams),
        cmocka_unit_test(test_what_is_gone_counts_no_longer),
        cmocka_unit_test(test_a_drain_ends_streams_with_ok),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
