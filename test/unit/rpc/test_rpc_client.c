/* The client's calls: what answers mean as a status, retries, deadlines, cancel. */
#include "client_rig.h"

/* ---- what answers mean ---- */

static const struct answer_row {
    const char *name;
    struct script script;
    enum err_class class;
    const char *text; /* contained in the status */
    int n_messages;
} answer_rows[] = {
    {"plain",
     {.headers = OK_HEADERS, .data = "\0\0\0\0\2ok", .data_len = 7, .trailers = {"grpc-status", "0"}},
     ERR_NONE,
     "",
     1},
    {"two messages",
     {.headers = OK_HEADERS, .data = "\0\0\0\0\2ok\0\0\0\0\0", .data_len = 12, .trailers = {"grpc-status", "0"}},
     ERR_NONE,
     "",
     2},
    {"trailers only",
     {.headers = {":status", "200", "content-type", "application/grpc", "grpc-status", "5", "grpc-message",
                  "no%20such%C3%BC"}},
     ERR_NOT_FOUND,
     "no such\xC3\xBC",
     0},
    {"error after data",
     {.headers = OK_HEADERS,
      .data = "\0\0\0\0\2ok",
      .data_len = 7,
      .trailers = {"grpc-status", "14", "grpc-message", "gone"}},
     ERR_UNAVAILABLE,
     "gone",
     1},
    {"status without class",
     {.headers = {":status", "200", "content-type", "application/grpc", "grpc-status", "10", "grpc-message",
                  "aborted"}},
     ERR_UNKNOWN,
     "gRPC status 10: aborted",
     0},
    {"garbled status",
     {.headers = {":status", "200", "content-type", "application/grpc", "grpc-status", "x"}},
     ERR_UNKNOWN,
     "",
     0},
    {"no status",
     {.headers = OK_HEADERS, .data = "\0\0\0\0\2ok", .data_len = 7, .trailers = {"x", "y"}},
     ERR_INTERNAL,
     "without a grpc-status",
     1},
    {"no trailers",
     {.headers = OK_HEADERS, .data = "\0\0\0\0\2ok", .data_len = 7, .is_data_end = true},
     ERR_INTERNAL,
     "without trailers",
     1},
    {"cut message",
     {.headers = OK_HEADERS, .data = "\0\0\0\0\5ok", .data_len = 7, .trailers = {"grpc-status", "0"}},
     ERR_INTERNAL,
     "inside a message",
     0},
    {"HTTP 404",
     {.headers = {":status", "404", "content-type", "text/plain"}, .data = "no", .data_len = 2, .is_data_end = true},
     ERR_UNIMPLEMENTED,
     "HTTP status 404, content-type \"text/plain\"",
     0},
    {"HTTP 503 alone", {.headers = {":status", "503"}}, ERR_UNAVAILABLE, "HTTP status 503", 0},
    {"HTTP 401", {.headers = {":status", "401"}, .is_data_end = true}, ERR_UNAUTHENTICATED, "HTTP status 401", 0},
    {"web page",
     {.headers = {":status", "200", "content-type", "text/html"}, .data = "<p>", .data_len = 3, .is_data_end = true},
     ERR_UNKNOWN,
     "text/html",
     0},
    {"compressed",
     {.headers = OK_HEADERS, .data = "\1\0\0\0\2ok", .data_len = 7, .trailers = {"grpc-status", "0"}},
     ERR_INTERNAL,
     "compressed",
     0},
    {"bad flag",
     {.headers = OK_HEADERS, .data = "\7\0\0\0\2ok", .data_len = 7, .trailers = {"grpc-status", "0"}},
     ERR_INTERNAL,
     "flag",
     0},
    {"too big",
     {.headers = OK_HEADERS, .data = "\0\0\1\0\0ok", .data_len = 7, .trailers = {"grpc-status", "0"}},
     ERR_RESOURCE_EXHAUSTED,
     "65536 bytes; at most 1000",
     0},
    {"reset cancel", {.is_reset = true, .reset_code = NGHTTP2_CANCEL}, ERR_CANCELLED, "CANCEL", 0},
    {"reset calm", {.is_reset = true, .reset_code = NGHTTP2_ENHANCE_YOUR_CALM}, ERR_RESOURCE_EXHAUSTED, "ENHANCE", 0},
    {"reset internal", {.is_reset = true, .reset_code = NGHTTP2_INTERNAL_ERROR}, ERR_INTERNAL, "INTERNAL", 0},
};

static void test_answers_become_messages_and_a_status(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(answer_rows); i++) {
        const struct answer_row *row = &answer_rows[i];
        struct result r;
        start_rig();
        rig.script = &row->script;
        (void)call(&r, 0, false);
        assert_int_equal(rig.n_dials, 1);
        connect_rig();
        pump();
        if (r.n_done != 1 || r.status.class != row->class || !strstr(r.status.text, row->text) ||
            r.n_messages != row->n_messages)
            fail_msg("%s: %d done, %s \"%s\", %d messages", row->name, r.n_done, err_class_name(r.status.class),
                     r.status.text, r.n_messages);
        stop_rig();
    }
}

static void test_a_request_is_what_grpc_asks_for(void **state)
{
    (void)state;
    struct result r;
    start_rig();
    rig.script = &plain;
    (void)call(&r, 2 * NS_PER_S, false);
    rig.now_ns += 500 * NS_PER_MS;
    connect_rig();
    pump();
    assert_string_equal(rig.path, "/t.T/Unary");
    assert_string_equal(rig.authority, "node:6000");
    assert_string_equal(rig.scheme, "http");
    assert_string_equal(rig.timeout, "1500000u");
    assert_int_equal(rig.request_len, 10);
    assert_memory_equal(rig.request, "\0\0\0\0\5hello", 10);
    assert_false(rig.is_reset); /* a finished stream is not reset */
    assert_string_equal(r.last, "ok");
    stop_rig();
}

static void test_a_deadline_resets_the_stream_and_is_told(void **state)
{
    (void)state;
    struct result r;
    start_rig();
    rig.script = &silent;
    (void)call(&r, NS_PER_S, false);
    connect_rig();
    pump();
    assert_int_equal(rig.n_requests, 1);
    assert_true(rpc_client_tick(&rig.client, rig.now_ns) == rig.now_ns + NS_PER_S);
    rig.now_ns += NS_PER_S;
    (void)rpc_client_tick(&rig.client, rig.now_ns);
    pump();
    assert_int_equal(r.n_done, 1);
    assert_int_equal(r.status.class, ERR_DEADLINE_EXCEEDED);
    assert_string_equal(r.status.text, "no answer within 1s");
    assert_true(rig.is_reset && rig.reset_code == NGHTTP2_CANCEL);
    stop_rig();
}

static void test_cancel_resets_the_stream_and_done_comes_later(void **state)
{
    (void)state;
    struct result r;
    start_rig();
    rig.script = &silent;
    struct rpc_client_call *c = call(&r, 0, false);
    connect_rig();
    pump();
    rpc_client_cancel(c);
    assert_int_equal(r.n_done, 0);
    pump();
    assert_int_equal(r.n_done, 1);
    assert_int_equal(r.status.class, ERR_CANCELLED);
    assert_true(rig.is_reset && rig.reset_code == NGHTTP2_CANCEL);
    stop_rig();
}

static void test_refused_streams_are_tried_again_three_times(void **state)
{
    (void)state;
    struct result r;
    start_rig();
    rig.script = &refusing;
    (void)call(&r, 0, false);
    connect_rig();
    for (int i = 0; i < 5; i++) {
        pump();
        (void)rpc_client_tick(&rig.client, rig.now_ns);
    }
    pump();
    assert_int_equal(rig.n_requests, 3);
    assert_int_equal(r.n_done, 1);
    assert_int_equal(r.status.class, ERR_UNAVAILABLE);
    stop_rig();
}

/* Whoever has begun to answer has begun to work: it is not asked twice. */
static void test_a_stream_that_is_refused_after_its_headers_is_not_tried_again(void **state)
{
    (void)state;
    struct result r;
    nghttp2_nv nva[] = {{(uint8_t *)(uintptr_t) ":status", (uint8_t *)(uintptr_t) "200", 7, 3, 0},
                        {(uint8_t *)(uintptr_t) "content-type", (uint8_t *)(uintptr_t) "application/grpc", 12, 16, 0}};
    start_rig();
    rig.script = &silent;
    (void)call(&r, 0, false);
    connect_rig();
    pump();
    assert_int_equal(nghttp2_submit_headers(rig.server, 0, 1, NULL, nva, 2, NULL), 0);
    pump();
    assert_int_equal(nghttp2_submit_rst_stream(rig.server, 0, 1, NGHTTP2_REFUSED_STREAM), 0);
    pump();
    (void)rpc_client_tick(&rig.client, rig.now_ns);
    pump();
    assert_int_equal(rig.n_requests, 1);
    assert_int_equal(r.status.class, ERR_UNAVAILABLE);
    stop_rig();
}

static void test_a_server_that_gives_up_at_the_deadline_is_late(void **state)
{
    (void)state;
    struct result r;
    start_rig();
    rig.script = &silent;
    (void)call(&r, 5 * NS_PER_S, false);
    connect_rig();
    pump();
    rig.now_ns += 5 * NS_PER_S;
    assert_int_equal(nghttp2_submit_rst_stream(rig.server, 0, 1, NGHTTP2_CANCEL), 0);
    pump();
    assert_int_equal(r.status.class, ERR_DEADLINE_EXCEEDED);
    stop_rig();
}

static void test_goaway_moves_unprocessed_calls_to_a_new_connection(void **state)
{
    (void)state;
    struct result first, second;
    start_rig();
    rig.script = &silent;
    (void)call(&first, 0, false);
    connect_rig();
    pump();
    rig.now_ns += 10 * NS_PER_S;
    (void)call(&second, 0, false);
    const uint8_t *bytes;
    while (rpc_client_session_pull(rig.session, &bytes) > 0) /* the second request is lost on the way */
        ;
    assert_int_equal(nghttp2_submit_goaway(rig.server, 0, 1, NGHTTP2_NO_ERROR, NULL, 0), 0);
    to_client();
    (void)rpc_client_tick(&rig.client, rig.now_ns);
    assert_int_equal(rig.n_dials, 2); /* at once: the connection had lived */
    assert_int_equal(first.n_done, 0);
    struct rpc_client_session *old = rig.session;
    nghttp2_session *old_server = rig.server;
    rig.script = &plain;
    connect_rig();
    pump();
    assert_int_equal(second.n_done, 1);
    assert_int_equal(second.status.class, ERR_NONE);
    assert_false(rpc_client_session_is_done(old)); /* the first call is still on it */
    rpc_client_session_free(old, "");
    nghttp2_session_del(old_server);
    rpc_client_reap(&rig.client);
    assert_int_equal(first.status.class, ERR_UNAVAILABLE);
    stop_rig();
}

static void test_a_lost_connection_ends_its_calls_with_unavailable(void **state)
{
    (void)state;
    struct result r;
    start_rig();
    rig.script = &silent;
    (void)call(&r, 0, true);
    connect_rig();
    pump();
    rig.now_ns += 2 * NS_PER_S;
    disconnect_rig();
    rpc_client_reap(&rig.client);
    assert_int_equal(r.status.class, ERR_UNAVAILABLE);
    assert_string_equal(r.status.text, "the connection to node:6000 was lost: Connection reset by peer");
    assert_int_equal(rig.client.state, RPC_CLIENT_IDLE);
    stop_rig();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_become_messages_and_a_status),
        cmocka_unit_test(test_a_request_is_what_grpc_asks_for),
        cmocka_unit_test(test_a_deadline_resets_the_stream_and_is_told),
        cmocka_unit_test(test_cancel_resets_the_stream_and_done_comes_later),
        cmocka_unit_test(test_refused_streams_are_tried_again_three_times),
        cmocka_unit_test(test_a_stream_that_is_refused_after_its_headers_is_not_tried_again),
        cmocka_unit_test(test_a_server_that_gives_up_at_the_deadline_is_late),
        cmocka_unit_test(test_goaway_moves_unprocessed_calls_to_a_new_connection),
        cmocka_unit_test(test_a_lost_connection_ends_its_calls_with_unavailable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
