/* grpc.health.v1.Health: which names there are, what each says of process, drain and driver, and when Watch speaks. */
#include "rig.h"

#define HEALTH       "/grpc.health.v1.Health/"
#define STATUS(name) GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__##name

static struct reply reply, stream;

static const char *const of_process[] = {
    "",          "externalscaler.ExternalScaler", "grpc.health.v1.Health", "kedagpuscaler.v1.Node", "liveness",
    "readiness", "kedagpuscaler.fleet.v1.Fleet"};

static struct str packed_name(const char *service)
{
    Grpc__Health__V1__HealthCheckRequest request;
    grpc__health__v1__health_check_request__init(&request);
    request.service = (char *)(uintptr_t)service;
    return packed(&request.base);
}

static int read_status(const struct reply *r, size_t at)
{
    assert_true(at < r->n_messages);
    Grpc__Health__V1__HealthCheckResponse *m =
        grpc__health__v1__health_check_response__unpack(NULL, r->messages[at].len, r->messages[at].bytes);
    assert_non_null(m);
    int status = (int)m->status;
    grpc__health__v1__health_check_response__free_unpacked(m, NULL);
    return status;
}

static int check(struct rig *r, const char *service)
{
    rig_call(r, HEALTH "Check", packed_name(service), &reply);
    assert_ok(&reply);
    return read_status(&reply, 0);
}

static void watch(struct rig *r, const char *service)
{
    rig_begin(r, HEALTH "Watch", packed_name(service), &stream);
    rig_settle(r);
}

static void test_the_process_serves_whatever_the_driver_does(void **state)
{
    (void)state;
    RIG_WITH(r);
    snapshot_unref(r.node.latest);
    r.node.latest = NULL;
    for (size_t i = 0; i < ARRAY_LEN(of_process); i++)
        assert_int_equal(check(&r, of_process[i]), STATUS(SERVING));
    assert_int_equal(check(&r, "nvml"), STATUS(NOT_SERVING));
}

static void test_a_drain_ends_everything_but_liveness(void **state)
{
    (void)state;
    RIG_WITH(r, 50);
    assert_int_equal(check(&r, "nvml"), STATUS(SERVING));
    service_drain(r.service);
    for (size_t i = 0; i < ARRAY_LEN(of_process); i++)
        assert_int_equal(check(&r, of_process[i]),
                         strcmp(of_process[i], "liveness") == 0 ? STATUS(SERVING) : STATUS(NOT_SERVING));
    assert_int_equal(check(&r, "nvml"), STATUS(NOT_SERVING));
}

static void test_an_unknown_name_is_not_found(void **state)
{
    (void)state;
    static const char *const names[] = {"NVML", "nvml ", "externalscaler", "grpc.health.v1.Health/Check"};
    RIG_WITH(r, 50);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        rig_call(&r, HEALTH "Check", packed_name(names[i]), &reply);
        assert_failed(&reply, ERR_NOT_FOUND, "no such service");
    }
    rig_call(&r, HEALTH "Check", (struct str){"\x0a\x05nvml\0", 7}, &reply); /* "nvml" with a NUL is another name */
    assert_failed(&reply, ERR_INTERNAL, "NUL");
}

static void test_the_driver_serves_while_its_readings_are_young(void **state)
{
    (void)state;
    static const struct {
        int64_t period_ns;
        double age;
        int want;
    } rows[] = {
        {NS_PER_S, 0, STATUS(SERVING)},
        {NS_PER_S, 2, STATUS(SERVING)},
        {NS_PER_S, 2.1, STATUS(NOT_SERVING)},
        {NS_PER_S / 10, 2, STATUS(SERVING)},
        {NS_PER_S / 10, 2.1, STATUS(NOT_SERVING)},
        {10 * NS_PER_S, 20, STATUS(SERVING)},
        {10 * NS_PER_S, 20.1, STATUS(NOT_SERVING)},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        RIG_WITH(r, 50);
        snapshot_store_header(r.node.store)->period_ns = rows[i].period_ns;
        node_publish(&r.node);
        node_wait(&r.node, rows[i].age);
        assert_int_equal(check(&r, "nvml"), rows[i].want);
    }
}

static void test_the_driver_does_not_serve_in_any_other_state(void **state)
{
    (void)state;
#define X(id, name) SNAPSHOT_DRIVER_##id,
    static const enum snapshot_driver_state states[] = {SNAPSHOT_DRIVER_STATES(X)};
#undef X
    RIG_WITH(r, 50);
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        snapshot_store_header(r.node.store)->driver = states[i];
        node_publish(&r.node);
        assert_int_equal(check(&r, "nvml"), states[i] == SNAPSHOT_DRIVER_OK ? STATUS(SERVING) : STATUS(NOT_SERVING));
    }
}

static void test_list_says_of_each_name_what_check_says(void **state)
{
    (void)state;
    static struct reply listed;
    RIG_WITH(r, 50);
    node_wait(&r.node, 60);
    rig_call(&r, HEALTH "List", (struct str){"", 0}, &listed);
    assert_ok(&listed);
    Grpc__Health__V1__HealthListResponse *m =
        grpc__health__v1__health_list_response__unpack(NULL, listed.messages[0].len, listed.messages[0].bytes);
    assert_non_null(m);
    assert_int_equal(m->n_statuses, ARRAY_LEN(of_process) + 1);
    for (size_t i = 0; i < m->n_statuses; i++)
        assert_int_equal(m->statuses[i]->value->status, check(&r, m->statuses[i]->key));
    grpc__health__v1__health_list_response__free_unpacked(m, NULL);
}

static void test_watch_tells_the_state_at_once_and_then_changes_only(void **state)
{
    (void)state;
    RIG_WITH(r, 50);
    watch(&r, "nvml");
    assert_int_equal(stream.n_messages, 1);
    assert_int_equal(read_status(&stream, 0), STATUS(SERVING));
    for (int i = 0; i < 5; i++) { /* the driver hangs */
        node_wait(&r.node, 1);
        service_tick(r.service);
    }
    rig_settle(&r);
    assert_int_equal(stream.n_messages, 2);
    assert_int_equal(read_status(&stream, 1), STATUS(NOT_SERVING));
    node_publish(&r.node);
    service_tick(r.service);
    service_tick(r.service);
    rig_settle(&r);
    assert_int_equal(stream.n_messages, 3);
    assert_int_equal(read_status(&stream, 2), STATUS(SERVING));
    assert_double_same(METRIC(&r, "keda_gpu_scaler_open_streams", "Watch"), 1);
    rig_cancel(&r, &stream);
    assert_double_same(METRIC(&r, "keda_gpu_scaler_open_streams", "Watch"), 0);
}

static void test_watch_of_an_unknown_name_stays_open(void **state)
{
    (void)state;
    RIG_WITH(r, 50);
    watch(&r, "nobody");
    service_tick(r.service);
    rig_settle(&r);
    assert_false(stream.is_done);
    assert_int_equal(stream.n_messages, 1);
    assert_int_equal(read_status(&stream, 0), STATUS(SERVICE_UNKNOWN));
}

static void no_more(void *context)
{
    *(bool *)context = true;
}

static void test_watch_hears_of_a_drain_before_it_ends_with_ok(void **state)
{
    (void)state;
    bool is_drained = false;
    RIG_WITH(r, 50);
    watch(&r, "");
    service_drain(r.service);
    net_listener_drain(r.listener, NS_PER_S, no_more, &is_drained);
    TURN_UNTIL(&r, stream.is_done && is_drained);
    assert_ok(&stream);
    assert_int_equal(stream.n_messages, 2);
    assert_int_equal(read_status(&stream, 1), STATUS(NOT_SERVING));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_process_serves_whatever_the_driver_does),
        cmocka_unit_test(test_a_drain_ends_everything_but_liveness),
        cmocka_unit_test(test_an_unknown_name_is_not_found),
        cmocka_unit_test(test_the_driver_serves_while_its_readings_are_young),
        cmocka_unit_test(test_the_driver_does_not_serve_in_any_other_state),
        cmocka_unit_test(test_list_says_of_each_name_what_check_says),
        cmocka_unit_test(test_watch_tells_the_state_at_once_and_then_changes_only),
        cmocka_unit_test(test_watch_of_an_unknown_name_stays_open),
        cmocka_unit_test(test_watch_hears_of_a_drain_before_it_ends_with_ok),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
