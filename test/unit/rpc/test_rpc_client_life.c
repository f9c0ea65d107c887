/* The client's connection: dials that fail, back-off, keepalive, windows, and servers that misbehave. */
#include "client_rig.h"

static void test_a_failed_dial_fails_impatient_calls_and_keeps_the_others(void **state)
{
    (void)state;
    struct result hasty, patient, late;
    struct err e;
    start_rig();
    (void)call(&hasty, 0, false);
    (void)call(&patient, 0, true);
    (void)err_set(&e, ERR_UNAVAILABLE, "cannot connect to node:6000: Connection refused");
    rpc_client_dial_failed(&rig.client, &e);
    rpc_client_reap(&rig.client);
    assert_int_equal(hasty.status.class, ERR_UNAVAILABLE);
    assert_string_equal(hasty.status.text, "cannot connect to node:6000: Connection refused");
    assert_int_equal(patient.n_done, 0);
    (void)call(&late, 0, false); /* in back-off: at once, but not inside start */
    assert_int_equal(late.n_done, 0);
    rpc_client_reap(&rig.client);
    assert_int_equal(late.n_done, 1);
    assert_int_equal(rig.n_dials, 1);
    int64_t next_ns = rpc_client_tick(&rig.client, rig.now_ns);
    assert_true(next_ns >= rig.now_ns + 800 * NS_PER_MS && next_ns <= rig.now_ns + 1200 * NS_PER_MS);
    rig.now_ns = next_ns;
    (void)rpc_client_tick(&rig.client, rig.now_ns);
    assert_int_equal(rig.n_dials, 2);
    rig.script = &plain;
    connect_rig();
    pump();
    assert_int_equal(patient.status.class, ERR_NONE);
    stop_rig();
}

static void test_a_waiting_call_tells_at_its_deadline_why_there_was_no_connection(void **state)
{
    (void)state;
    struct result r;
    struct err e;
    start_rig();
    (void)call(&r, 5 * NS_PER_S, true);
    (void)err_set(&e, ERR_UNAVAILABLE, "cannot connect to node:6000: Connection refused");
    rpc_client_dial_failed(&rig.client, &e);
    rig.now_ns += 5 * NS_PER_S;
    (void)rpc_client_tick(&rig.client, rig.now_ns);
    rpc_client_reap(&rig.client);
    assert_int_equal(r.status.class, ERR_DEADLINE_EXCEEDED);
    assert_string_equal(r.status.text, "no connection within 5s: cannot connect to node:6000: Connection refused");
    stop_rig();
    start_rig();
    (void)call(&r, 5 * NS_PER_S, true); /* a dial that hangs */
    rig.now_ns += 5 * NS_PER_S;
    (void)rpc_client_tick(&rig.client, rig.now_ns);
    rpc_client_reap(&rig.client);
    assert_string_equal(r.status.text, "no connection to node:6000 within 5s");
    stop_rig();
}

static void test_back_off_grows_to_its_ceiling_and_starts_again_after_success(void **state)
{
    (void)state;
    assert_true(rpc_backoff_ns(1, 0.5) == NS_PER_S);
    assert_true(rpc_backoff_ns(2, 0.5) == 1600 * NS_PER_MS);
    assert_true(rpc_backoff_ns(1, 0) == 800 * NS_PER_MS);
    assert_true(rpc_backoff_ns(3, 0) < rpc_backoff_ns(3, 0.99));
    assert_true(rpc_backoff_ns(1000, 0.5) == 120 * NS_PER_S);
    assert_true(rpc_backoff_ns(1000, 0.99) == 120 * NS_PER_S);
    struct result r;
    struct err e;
    start_rig();
    (void)err_set(&e, ERR_UNAVAILABLE, "refused");
    for (int i = 0; i < 5; i++)
        rpc_client_dial_failed(&rig.client, &e);
    rig.now_ns = rig.client.dial_at_ns;
    rig.script = &plain;
    (void)call(&r, 0, false);
    connect_rig();
    pump();
    assert_int_equal(r.status.class, ERR_NONE);
    rig.now_ns += 2 * NS_PER_S;
    disconnect_rig();
    assert_int_equal(rig.client.n_failures, 0);
    (void)call(&r, 0, false);
    connect_rig();
    pump(); /* and a server that hangs up at once is not dialled in a loop */
    disconnect_rig();
    assert_int_equal(rig.client.n_failures, 1);
    assert_int_equal(rig.client.state, RPC_CLIENT_BACKOFF);
    stop_rig();
}

static void test_a_server_that_never_speaks_is_given_up(void **state)
{
    (void)state;
    struct result r;
    start_rig();
    (void)call(&r, 0, false);
    connect_rig();
    rig.now_ns += 10 * NS_PER_S;
    (void)rpc_client_tick(&rig.client, rig.now_ns);
    assert_true(rpc_client_session_is_done(rig.session));
    disconnect_rig();
    rpc_client_reap(&rig.client);
    assert_int_equal(r.status.class, ERR_UNAVAILABLE);
    assert_string_equal(r.status.text, "the connection to node:6000 was lost before the server spoke HTTP/2: "
                                       "Connection reset by peer");
    stop_rig();
}

static void test_a_silent_connection_is_pinged_and_given_up(void **state)
{
    (void)state;
    struct result r;
    start_rig();
    rig.script = &silent;
    (void)call(&r, 0, false);
    connect_rig();
    pump();
    rig.now_ns += 30 * NS_PER_S;
    (void)rpc_client_tick(&rig.client, rig.now_ns);
    pump(); /* the server answers */
    assert_false(rpc_client_session_is_done(rig.session));
    rig.now_ns += 30 * NS_PER_S;
    assert_true(rpc_client_tick(&rig.client, rig.now_ns) == rig.now_ns + 20 * NS_PER_S);
    rig.now_ns += 20 * NS_PER_S;
    (void)rpc_client_tick(&rig.client, rig.now_ns);
    assert_true(rig.session->h2.is_dead);
    stop_rig();
}

static void test_a_connection_without_calls_is_not_pinged(void **state)
{
    (void)state;
    struct result r;
    const uint8_t *bytes;
    start_rig();
    rig.script = &silent;
    struct rpc_client_call *c = call(&r, 0, false);
    connect_rig();
    pump();
    rpc_client_cancel(c);
    pump();
    rig.now_ns += 300 * NS_PER_S;
    (void)rpc_client_tick(&rig.client, rig.now_ns);
    assert_int_equal(rpc_client_session_pull(rig.session, &bytes), 0);
    stop_rig();
}

static void test_the_windows_are_as_large_as_asked_for(void **state)
{
    (void)state;
    struct result r;
    start_rig();
    rig.client.window_bytes = 1 << 20;
    rig.script = &silent;
    (void)call(&r, 0, false);
    connect_rig();
    pump();
    assert_int_equal(nghttp2_session_get_remote_settings(rig.server, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE), 1 << 20);
    assert_int_equal(nghttp2_session_get_remote_window_size(rig.server), 1 << 20);
    stop_rig();
}

static void test_too_many_pings_doubles_the_interval(void **state)
{
    (void)state;
    start_rig();
    connect_rig();
    pump();
    assert_int_equal(
        nghttp2_submit_goaway(rig.server, 0, 0, NGHTTP2_ENHANCE_YOUR_CALM, (const uint8_t *)"too_many_pings", 14), 0);
    to_client();
    assert_true(rig.client.keepalive_ns == 60 * NS_PER_S);
    stop_rig();
}

static void test_a_server_that_floods_is_left(void **state)
{
    (void)state;
    static uint8_t frames[9 * 400];
    struct result r;
    start_rig();
    rig.script = &silent;
    (void)call(&r, 0, false);
    connect_rig();
    pump();
    for (size_t i = 0; i < 400; i++)
        frames[9 * i + 3] = 0xEE; /* a type that does not exist */
    assert_int_equal(rpc_client_session_receive(rig.session, frames, sizeof(frames), rig.now_ns), -1);
    assert_int_equal(rig.hits[NET_LIMIT_GLITCHES_PER_S], 1);
    disconnect_rig();
    rpc_client_reap(&rig.client);
    assert_int_equal(r.status.class, ERR_UNAVAILABLE);
    stop_rig();
}

static void test_headers_without_end_are_not_kept(void **state)
{
    (void)state;
    static char value[20000];
    static struct script huge = {.headers = {":status", "200", "content-type", "application/grpc", "a", value}};
    struct result r;
    start_rig();
    memset(value, 'v', sizeof(value) - 1);
    rig.script = &huge;
    (void)call(&r, 0, false);
    connect_rig();
    pump();
    assert_int_equal(r.status.class, ERR_RESOURCE_EXHAUSTED);
    assert_int_equal(rig.hits[NET_LIMIT_HEADER_LIST_BYTES], 1);
    stop_rig();
}

/* One 4 kB entry in the dynamic table, named by one byte thousands of times. */
static void test_an_hpack_bomb_of_a_server_is_left(void **state)
{
    (void)state;
    static uint8_t bytes[16384 + 9] = {
        0x00, 0x40, 0x00, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 0, 0, 0, 1, 0x88, 0x40, 1, 'x', 0x7F, 0xA1, 0x1E};
    struct result r;
    start_rig();
    rig.script = &silent;
    (void)call(&r, 0, false);
    connect_rig();
    pump();
    memset(bytes + 16, 'v', 4000);
    memset(bytes + 4016, 0xBE, sizeof(bytes) - 4016);
    assert_int_equal(rpc_client_session_receive(rig.session, bytes, sizeof(bytes), rig.now_ns), -1);
    assert_int_equal(rig.hits[NET_LIMIT_HEADER_LIST_BYTES], 1);
    stop_rig();
}

static void test_the_authority_of_a_unix_socket_is_localhost(void **state)
{
    (void)state;
    static const struct {
        struct rpc_client_config config;
        const char *authority;
    } rows[] = {
        {{.address = "unix:/run/k.sock"}, "localhost"}, /* strict servers refuse a path */
        {{.address = "unix:/run/k.sock", .authority = "kubelet"}, "kubelet"},
        {{.address = "[::1]:6000"}, "[::1]:6000"},
        {{.address = "a:1", .authority = "b"}, "b"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct rpc_client client;
        rpc_client_core_init(&client, &rows[i].config, &rig_io);
        assert_string_equal(client.authority, rows[i].authority);
        rpc_client_core_fini(&client);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_failed_dial_fails_impatient_calls_and_keeps_the_others),
        cmocka_unit_test(test_a_waiting_call_tells_at_its_deadline_why_there_was_no_connection),
        cmocka_unit_test(test_back_off_grows_to_its_ceiling_and_starts_again_after_success),
        cmocka_unit_test(test_a_server_that_never_speaks_is_given_up),
        cmocka_unit_test(test_a_silent_connection_is_pinged_and_given_up),
        cmocka_unit_test(test_a_connection_without_calls_is_not_pinged),
        cmocka_unit_test(test_the_windows_are_as_large_as_asked_for),
        cmocka_unit_test(test_too_many_pings_doubles_the_interval),
        cmocka_unit_test(test_a_server_that_floods_is_left),
        cmocka_unit_test(test_headers_without_end_are_not_kept),
        cmocka_unit_test(test_an_hpack_bomb_of_a_server_is_left),
        cmocka_unit_test(test_the_authority_of_a_unix_socket_is_localhost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
