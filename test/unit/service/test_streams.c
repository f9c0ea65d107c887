/* StreamIsActive and StreamMetricSpec: when they speak, and above all when they do not. */
#include "rig.h"

static struct reply reply, stream;

static void read_all(struct rig *r, double utilization)
{
    for (size_t i = 0; i < r->node.latest->n_devices; i++)
        node_read(&r->node, r->node.latest->devices[i].uuid, SNAPSHOT_UTILIZATION, utilization);
    node_publish(&r->node);
}

/* So many seconds pass and the program ticks, as at its end; what was sent has arrived when this returns. */
static void tick_after(struct rig *r, double seconds)
{
    node_wait(&r->node, seconds);
    service_tick(r->service);
    rig_settle(r);
}

/* As KEDA's operator: looks each 10 s, active above 5 by the newest reading alone. */
#define PUSH METADATA("pollIntervalSeconds", "10", "activationThreshold", "5", "activationWindow", "0", "window", "0")

static void open_push(struct rig *r, struct metadata m)
{
    rig_begin(r, SCALER "StreamIsActive", packed_ref(m), &stream);
    rig_settle(r);
}

/* All that ever came is true, n times, and the stream is open. */
static void assert_woken(size_t n)
{
    assert_false(stream.is_done);
    assert_int_equal(stream.n_messages, n);
    for (size_t i = 0; i < n; i++)
        assert_true(read_active(&stream, i));
}

/* ---- StreamIsActive ---- */

static void test_a_stream_that_opens_active_says_so_once(void **state)
{
    (void)state;
    RIG_WITH(r, 50);
    open_push(&r, PUSH);
    assert_woken(1);
    for (int i = 0; i < 30; i++) {
        node_wait(&r.node, 10);
        read_all(&r, 50 + i);
        tick_after(&r, 0);
    }
    assert_woken(1);
}

static void test_each_change_to_active_is_told_once_and_inactivity_never(void **state)
{
    (void)state;
    RIG_WITH(r, 0);
    open_push(&r, PUSH);
    assert_woken(0);
    for (size_t flap = 1; flap <= 6; flap++) {
        for (int i = 0; i < 3; i++) {
            node_wait(&r.node, 10);
            read_all(&r, 50);
            tick_after(&r, 0);
        }
        assert_woken(flap);
        node_wait(&r.node, 10);
        read_all(&r, 5); /* not above */
        tick_after(&r, 0);
        assert_woken(flap);
    }
}

static void test_activity_is_looked_at_each_poll_interval(void **state)
{
    (void)state;
    RIG_WITH(r, 0);
    open_push(&r, PUSH);
    node_wait(&r.node, 1);
    read_all(&r, 50);
    for (int i = 0; i < 8; i++)
        tick_after(&r, 1); /* 9 s after it opened */
    assert_woken(0);
    read_all(&r, 50);
    tick_after(&r, 1);
    assert_woken(1);
}

static void test_a_missing_reading_wakes_nobody(void **state)
{
    (void)state;
    RIG_WITH(r, 0, 0);
    open_push(&r, PUSH);
    for (int i = 0; i < 6; i++) { /* GPU 1 falls silent: IsActive says true from then on */
        node_wait(&r.node, 10);
        node_read(&r.node, "GPU-0", SNAPSHOT_UTILIZATION, 0);
        node_publish(&r.node);
        tick_after(&r, 0);
    }
    rig_call(&r, SCALER "IsActive", packed_ref(PUSH), &reply);
    assert_true(read_active(&reply, 0));
    assert_woken(0);

    node_wait(&r.node, 10);
    node_read(&r.node, "GPU-0", SNAPSHOT_UTILIZATION, 50);
    node_publish(&r.node);
    tick_after(&r, 0);
    assert_woken(1);
}

static void test_a_stream_that_opens_active_for_want_of_a_reading_says_what_is_active_says(void **state)
{
    (void)state;
    RIG_WITH(r, 0, 0);
    node_wait(&r.node, 60);
    node_read(&r.node, "GPU-0", SNAPSHOT_UTILIZATION, 0);
    node_publish(&r.node);
    open_push(&r, PUSH);
    assert_woken(1);
    node_wait(&r.node, 10);
    read_all(&r, 50); /* active by measurement now: it was active before */
    tick_after(&r, 0);
    assert_woken(1);
}

static void test_errors_are_silent_and_change_nothing(void **state)
{
    (void)state;
    static const struct {
        double before, after;
        size_t woken;
    } rows[] = {{0, 50, 1}, {50, 50, 1}, {0, 0, 0}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        RIG_WITH(r, rows[i].before);
        open_push(&r, PUSH);
        for (int k = 0; k < 3; k++)
            tick_after(&r, 16 * 60); /* nothing is read for long */
        rig_call(&r, SCALER "IsActive", packed_ref(PUSH), &reply);
        assert_failed(&reply, ERR_UNAVAILABLE, "");
        node_wait(&r.node, 10);
        read_all(&r, rows[i].after);
        tick_after(&r, 0);
        assert_woken(rows[i].woken);
    }
}

static void test_a_stream_that_opens_before_the_first_reading_waits_for_it(void **state)
{
    (void)state;
    RIG_WITH(r, 50);
    const struct snapshot *first = snapshot_ref(r.node.latest);
    snapshot_unref(r.node.latest);
    r.node.latest = NULL;
    open_push(&r, PUSH);
    assert_woken(0);
    r.node.latest = snapshot_ref(first);
    snapshot_unref(first);
    tick_after(&r, 16 * 60);
    assert_woken(0); /* too old meanwhile */
    node_wait(&r.node, 10);
    read_all(&r, 50);
    tick_after(&r, 0);
    assert_woken(1);
}

static void test_profile_training_is_active_from_the_start_and_says_so_once(void **state)
{
    (void)state;
    RIG_WITH(r, 0);
    open_push(&r, METADATA("profile", "training"));
    for (int i = 0; i < 5; i++)
        tick_after(&r, 60);
    assert_woken(1);
}

static void test_the_program_sees_each_look_and_which_were_routine(void **state)
{
    (void)state;
    RIG_WITH(r, 0);
    open_push(&r, PUSH);
    assert_int_equal(r.n_observed, 1);
    assert_string_equal(r.observed_method, "StreamIsActive");
    assert_string_equal(r.observed_subject, "ml/llm");
    assert_int_equal(r.n_routine, 0);
    tick_after(&r, 10);
    assert_int_equal(r.n_observed, 2);
    assert_int_equal(r.n_routine, 1);
    node_wait(&r.node, 10);
    read_all(&r, 50);
    tick_after(&r, 0);
    assert_int_equal(r.n_observed, 3);
    assert_int_equal(r.n_routine, 1);
}

/* ---- StreamMetricSpec ---- */

static void open_spec(struct rig *r, struct metadata m)
{
    rig_begin(r, SCALER "StreamMetricSpec", packed_ref(m), &stream);
    rig_settle(r);
}

/* The newest message is what GetMetricSpec answers. */
static void assert_spec_is_current(struct rig *r, struct metadata m)
{
    rig_call(r, SCALER "GetMetricSpec", packed_ref(m), &reply);
    assert_ok(&reply);
    assert_int_equal(stream.messages[stream.n_messages - 1].len, reply.messages[0].len);
    assert_memory_equal(stream.messages[stream.n_messages - 1].bytes, reply.messages[0].bytes, reply.messages[0].len);
}

static void reload(struct rig *r, const struct trigger_settings *settings)
{
    trigger_cache_flush(r->triggers, settings);
    service_reload(r->service);
    rig_settle(r);
}

/* The configuration is read again and has this one entry. */
static void reload_with(struct rig *r, const struct trigger_default *entry)
{
    reload(r, &(struct trigger_settings){.default_scope = TRIGGER_NODE, .defaults = entry, .n_defaults = 1});
}

#define WATTS METADATA("metricName", "watts", "metricType", "power_draw")
static const struct trigger_default at_300 = {.name = "watts", .has_target = true, .target = 300};
static const struct trigger_default at_250 = {.name = "watts", .has_target = true, .target = 250.5};

static void test_the_spec_comes_at_once_and_again_when_a_reload_changes_it(void **state)
{
    (void)state;
    RIG_WITH(r, 0);
    reload_with(&r, &at_300);
    open_spec(&r, WATTS);
    assert_int_equal(stream.n_messages, 1);
    assert_spec_is_current(&r, WATTS);
    for (int i = 0; i < 3; i++) {
        reload_with(&r, &at_300);
        tick_after(&r, 60);
    }
    assert_int_equal(stream.n_messages, 1);

    reload_with(&r, &at_250);
    assert_int_equal(stream.n_messages, 2);
    assert_double_same(read_spec(&stream, 1).real, 250.5);
    assert_double_same(METRIC(&r, "keda_gpu_scaler_metric_target", "ml", "llm", "watts"), 250.5);
    assert_spec_is_current(&r, WATTS);
    assert_false(stream.is_done);
}

static void test_of_two_specs_before_the_client_reads_only_the_newer_is_sent(void **state)
{
    (void)state;
    RIG_WITH(r, 0);
    reload_with(&r, &at_300);
    open_spec(&r, WATTS);
    static const struct trigger_default *const entries[] = {&at_250, &at_300, &at_250};
    for (size_t i = 0; i < ARRAY_LEN(entries); i++) { /* within one turn */
        struct trigger_settings settings = {.default_scope = TRIGGER_NODE, .defaults = entries[i], .n_defaults = 1};
        trigger_cache_flush(r.triggers, &settings);
        service_reload(r.service);
    }
    rig_settle(&r);
    assert_int_equal(stream.n_messages, 2);
    assert_double_same(read_spec(&stream, 1).real, 250.5);
}

static void test_a_reload_that_refuses_a_trigger_ends_its_streams_with_the_refusal(void **state)
{
    (void)state;
    static struct reply push;
    const struct metadata engine = METADATA("metricType", "vllm_queue_depth");
    RIG_WITH(r, 0);
    reload(&r, &hub_settings); /* which finds the endpoint by itself */
    open_spec(&r, engine);
    rig_begin(&r, SCALER "StreamIsActive", packed_ref(engine), &push);
    rig_settle(&r);
    reload(&r, &agent_settings);
    TURN_UNTIL(&r, stream.is_done && push.is_done);
    rig_call(&r, SCALER "GetMetricSpec", packed_ref(engine), &reply);
    assert_int_equal(reply.status.class, ERR_INVALID_ARGUMENT);
    assert_int_equal(stream.status.class, ERR_INVALID_ARGUMENT);
    assert_string_equal(stream.status.text, reply.status.text);
    assert_string_equal(push.status.text, reply.status.text);
    assert_int_equal(r.n_refused, 3);
    assert_string_equal(r.refused_subject, "ml/llm");
}

static void test_a_reload_changes_what_a_push_stream_compares_with(void **state)
{
    (void)state;
    static const struct trigger_default second_gpu = {.name = "m", .has_gpu_index = true, .gpu_index = 1};
    RIG_WITH(r, 0, 50);
    static const struct trigger_default first_gpu = {.name = "m", .has_gpu_index = true, .gpu_index = 0};
    reload_with(&r, &first_gpu);
    open_push(&r, METADATA("metricName", "m", "pollIntervalSeconds", "1"));
    assert_woken(0);
    reload_with(&r, &second_gpu);
    tick_after(&r, 1);
    assert_woken(1);
}

/* ---- both ---- */

static void test_open_streams_are_counted_until_they_are_cancelled(void **state)
{
    (void)state;
    enum { STREAMS = 200 };
    static struct reply streams[STREAMS];
    static const char *const names[] = {"StreamIsActive", "StreamMetricSpec"};
    RIG_WITH(r, 50);
    for (size_t i = 0; i < STREAMS; i++) {
        char path[64];
        (void)snprintf(path, sizeof(path), SCALER "%s", names[i % 2]);
        rig_begin(&r, path, packed_ref(PUSH), &streams[i]);
    }
    rig_settle(&r);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_double_same(METRIC(&r, "keda_gpu_scaler_open_streams", names[i]), STREAMS / 2);
    for (size_t i = 0; i < STREAMS; i++) {
        assert_int_equal(streams[i].n_messages, 1);
        rpc_client_cancel(streams[(i * 77) % STREAMS].call); /* in no order */
    }
    TURN_UNTIL(&r, streams[STREAMS - 1].is_done);
    rig_settle(&r);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_double_same(METRIC(&r, "keda_gpu_scaler_open_streams", names[i]), 0);
    service_tick(r.service);
}

/* The connection has room for one more message and no other. */
static void fill_output(struct rig *r, bool is_full)
{
    r->limits.values[NET_LIMIT_OUTPUT_BYTES] = is_full ? 1 : net_limits_default.values[NET_LIMIT_OUTPUT_BYTES];
}

static void test_what_finds_no_room_is_sent_later(void **state)
{
    (void)state;
    static struct reply streams[4];
    RIG_WITH(r, 0);
    reload_with(&r, &at_300);
    for (size_t i = 0; i < ARRAY_LEN(streams); i++)
        rig_begin(&r, i < 2 ? SCALER "StreamIsActive" : SCALER "StreamMetricSpec", packed_ref(i < 2 ? PUSH : WATTS),
                  &streams[i]);
    rig_settle(&r);

    node_wait(&r.node, 10);
    read_all(&r, 50);
    fill_output(&r, true);
    service_tick(r.service);
    fill_output(&r, false);
    rig_settle(&r);
    assert_int_equal(streams[0].n_messages + streams[1].n_messages, 1);
    node_wait(&r.node, 10);
    read_all(&r, 50);
    tick_after(&r, 0);
    tick_after(&r, 0);
    assert_int_equal(streams[0].n_messages, 1);
    assert_int_equal(streams[1].n_messages, 1);

    struct trigger_settings settings = {.default_scope = TRIGGER_NODE, .defaults = &at_250, .n_defaults = 1};
    trigger_cache_flush(r.triggers, &settings);
    fill_output(&r, true);
    service_reload(r.service);
    fill_output(&r, false);
    rig_settle(&r);
    assert_int_equal(streams[2].n_messages + streams[3].n_messages, 3);
    tick_after(&r, 0);
    tick_after(&r, 0);
    assert_int_equal(streams[2].n_messages, 2);
    assert_int_equal(streams[3].n_messages, 2);
}

/* Metadata that nobody needs, as much as a request may have: 60 kB each, 4 MiB in all. */
static void test_all_streams_together_hold_bounded_memory(void **state)
{
    (void)state;
    enum { STREAMS = 100 };
    static struct reply streams[STREAMS];
    static char value[60000];
    size_t n_open = 0;
    RIG_WITH(r, 50);
    memset(value, 'a', sizeof(value) - 1);
    for (size_t i = 0; i < STREAMS; i++) {
        rig_begin(&r, SCALER "StreamMetricSpec", packed_ref(METADATA("scalerAddress", value)), &streams[i]);
        rig_settle(&r);
        n_open += !streams[i].is_done;
    }
    assert_in_range(n_open, RIG_STREAM_BYTES / 80000, RIG_STREAM_BYTES / 60000);
    assert_failed(&streams[STREAMS - 1], ERR_RESOURCE_EXHAUSTED, "hold as much memory as they may");
    for (size_t i = 0; i < n_open; i++)
        rig_cancel(&r, &streams[i]);
    rig_begin(&r, SCALER "StreamMetricSpec", packed_ref(METADATA("scalerAddress", value)), &stream);
    rig_settle(&r);
    assert_int_equal(stream.n_messages, 1); /* there is room again */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stream_that_opens_active_says_so_once),
        cmocka_unit_test(test_each_change_to_active_is_told_once_and_inactivity_never),
        cmocka_unit_test(test_activity_is_looked_at_each_poll_interval),
        cmocka_unit_test(test_a_missing_reading_wakes_nobody),
        cmocka_unit_test(test_a_stream_that_opens_active_for_want_of_a_reading_says_what_is_active_says),
        cmocka_unit_test(test_errors_are_silent_and_change_nothing),
        cmocka_unit_test(test_a_stream_that_opens_before_the_first_reading_waits_for_it),
        cmocka_unit_test(test_profile_training_is_active_from_the_start_and_says_so_once),
        cmocka_unit_test(test_the_program_sees_each_look_and_which_were_routine),
        cmocka_unit_test(test_the_spec_comes_at_once_and_again_when_a_reload_changes_it),
        cmocka_unit_test(test_of_two_specs_before_the_client_reads_only_the_newer_is_sent),
        cmocka_unit_test(test_a_reload_that_refuses_a_trigger_ends_its_streams_with_the_refusal),
        cmocka_unit_test(test_a_reload_changes_what_a_push_stream_compares_with),
        cmocka_unit_test(test_open_streams_are_counted_until_they_are_cancelled),
        cmocka_unit_test(test_what_finds_no_room_is_sent_later),
        cmocka_unit_test(test_all_streams_together_hold_bounded_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
