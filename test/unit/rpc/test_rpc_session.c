/* The server's session core with an in-memory client: header rules, framing, status, deadlines, cancel, drain. */
#include "peer.h"

#include <stdio.h>

/* ---- methods under test ---- */

static struct {
    int n_messages, n_ended, n_half_closed;
    char last[64];
    struct rpc_call *open;
} seen;

static void remember(struct str request)
{
    seen.n_messages++;
    (void)str_copy(seen.last, sizeof(seen.last), request);
}

static void echo(struct rpc_call *call, struct str request, void *context)
{
    (void)context;
    remember(request);
    rpc_call_reply(call, request.ptr, request.len);
}

static void keep_open(struct rpc_call *call, struct str request, void *context)
{
    (void)context;
    remember(request);
    seen.open = call;
}

static void fail_call(struct rpc_call *call, struct str request, void *context)
{
    (void)context;
    remember(request);
    struct err e;
    (void)err_set(&e, ERR_UNAVAILABLE, "100%% of the GPUs are l\xC3\xB6st");
    rpc_call_fail(call, &e);
}

static void say_nothing(struct rpc_call *call, struct str request, void *context)
{
    (void)context;
    remember(request);
    rpc_call_finish(call, ERR_NONE, NULL);
}

static void three(struct rpc_call *call, struct str request, void *context)
{
    (void)context;
    remember(request);
    for (int i = 0; i < 3; i++)
        assert_int_equal(rpc_call_send(call, "m", 1), 0);
    rpc_call_finish(call, ERR_NOT_FOUND, "no more");
}

static void open_stream(struct rpc_call *call, struct str request, void *context)
{
    (void)context;
    remember(request);
    rpc_call_send_headers(call);
    rpc_call_set_state(call, &seen);
    seen.open = call;
}

static void ended(struct rpc_call *call, void *context)
{
    (void)context;
    seen.n_ended++;
    if (seen.open == call)
        seen.open = NULL;
}

static void half_closed(struct rpc_call *call, void *context)
{
    (void)context;
    seen.n_half_closed++;
    rpc_call_finish(call, ERR_NONE, NULL);
}

static void chat(struct rpc_call *call, struct str request, void *context)
{
    (void)context;
    remember(request);
    (void)rpc_call_send(call, request.ptr, request.len);
    if (str_equals(request, "bye"))
        rpc_call_finish(call, ERR_NONE, NULL);
}

static const struct rpc_method methods[] = {
    {.path = "/t.T/Unary", .deadline_ns = NS_PER_S, .message = echo, .ended = ended},
    {.path = "/t.T/Hang", .deadline_ns = NS_PER_S, .message = keep_open, .ended = ended},
    {.path = "/t.T/Fail", .message = fail_call, .ended = ended},
    {.path = "/t.T/Nothing", .message = say_nothing, .ended = ended},
    {.path = "/t.T/Three", .is_server_streaming = true, .message = three, .ended = ended},
    {.path = "/t.T/Stream", .is_server_streaming = true, .message = open_stream, .ended = ended},
    {.path = "/t.T/State",
     .is_server_streaming = true,
     .is_state_stream = true,
     .message = open_stream,
     .ended = ended},
    {.path = "/t.T/Chat",
     .is_server_streaming = true,
     .is_client_streaming = true,
     .message = chat,
     .half_closed = half_closed,
     .ended = ended},
};

static int64_t still_clock(void)
{
    return 0;
}

static void start(struct peer *p)
{
    memset(&seen, 0, sizeof(seen));
    peer_init(p, methods, ARRAY_LEN(methods));
    p->server->clock_ns = still_clock;
    peer_pump(p);
    assert_int_equal(p->rc, 0);
    assert_int_equal(p->n_established, 1);
}

static const struct answer *ask(struct peer *p, const struct request *r)
{
    int32_t id = peer_request(p, r);
    peer_pump(p);
    return peer_answer(p, id);
}

/* ---- answers ---- */

static void test_a_unary_call_is_answered_with_headers_data_and_trailers(void **state)
{
    (void)state;
    struct peer p;
    start(&p);
    const struct answer *a = ask(&p, &(struct request){BODY("\5hello")});
    assert_string_equal(a->status, "200");
    assert_string_equal(a->content_type, "application/grpc");
    assert_string_equal(a->grpc_status, "0");
    assert_string_equal(a->grpc_message, "");
    assert_int_equal(a->n_headers, 2);
    assert_true(a->has_trailers && !a->is_data_end && a->is_closed && !a->is_reset);
    assert_memory_equal(a->body, "\0\0\0\0\5hello", 10);
    assert_int_equal(a->body_len, 10);
    assert_int_equal(seen.n_ended, 1);
    peer_fini(&p);
}

static void test_settings_come_first_and_at_once(void **state)
{
    (void)state;
    struct peer p;
    peer_init(&p, methods, ARRAY_LEN(methods));
    const uint8_t *bytes;
    size_t n = rpc_session_pull(p.session, &bytes);
    assert_true(n > 9);
    assert_int_equal(bytes[3], NGHTTP2_SETTINGS);
    assert_true(nghttp2_session_mem_recv(p.ng, bytes, n) == (ssize_t)n);
    assert_int_equal(nghttp2_session_get_remote_settings(p.ng, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS), 1000);
    assert_int_equal(nghttp2_session_get_remote_settings(p.ng, NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE), 16384);
    peer_fini(&p);
}

static void test_an_empty_message_is_a_message(void **state)
{
    (void)state;
    struct peer p;
    start(&p);
    const struct answer *a = ask(&p, &(struct request){BODY("\0")});
    assert_string_equal(a->grpc_status, "0");
    assert_int_equal(a->body_len, 5);
    peer_fini(&p);
}

static void test_an_error_before_any_message_is_trailers_only(void **state)
{
    (void)state;
    struct peer p;
    start(&p);
    const struct answer *a = ask(&p, &(struct request){.path = "/t.T/Fail", BODY("\1x")});
    assert_string_equal(a->status, "200");
    assert_string_equal(a->content_type, "application/grpc");
    assert_string_equal(a->grpc_status, "14");
    assert_string_equal(a->grpc_message, "100%25 of the GPUs are l%C3%B6st");
    assert_int_equal(a->n_headers, 1);
    assert_int_equal(a->body_len, 0);
    assert_true(a->has_trailers && a->is_closed);
    peer_fini(&p);
}

static void test_messages_before_an_error_arrive_before_it(void **state)
{
    (void)state;
    struct peer p;
    start(&p);
    const struct answer *a = ask(&p, &(struct request){.path = "/t.T/Three", BODY("\1x")});
    assert_int_equal(a->body_len, 18);
    assert_string_equal(a->grpc_status, "5");
    assert_string_equal(a->grpc_message, "no more");
    assert_int_equal(a->n_headers, 2);
    assert_true(a->has_trailers && !a->is_data_end);
    peer_fini(&p);
}

static void test_a_method_that_ends_without_an_answer_is_our_fault(void **state)
{
    (void)state;
    struct peer p;
    start(&p);
    const struct answer *a = ask(&p, &(struct request){.path = "/t.T/Nothing", BODY("\1x")});
    assert_string_equal(a->grpc_status, "13");
    peer_fini(&p);
}

static void test_stream_headers_go_out_before_any_message(void **state)
{
    (void)state;
    struct peer p;
    start(&p);
    const struct answer *a = ask(&p, &(struct request){.path = "/t.T/Stream", BODY("\1x")});
    assert_string_equal(a->status, "200");
    assert_int_equal(a->n_headers, 1);
    assert_false(a->has_trailers);
    assert_int_equal(rpc_call_send(seen.open, "one", 3), 0);
    peer_pump(&p);
    assert_int_equal(a->body_len, 8);
    assert_int_equal(rpc_call_send(seen.open, "two", 3), 0);
    rpc_call_finish(seen.open, ERR_NONE, NULL);
    assert_int_equal(seen.n_ended, 0); /* never from inside finish */
    peer_pump(&p);
    assert_int_equal(a->body_len, 16);
    assert_string_equal(a->grpc_status, "0");
    assert_int_equal(seen.n_ended, 1);
    peer_fini(&p);
}

static void test_a_bidi_method_gets_each_message_and_the_end(void **state)
{
    (void)state;
    struct peer p;
    start(&p);
    const struct answer *a = ask(&p, &(struct request){.path = "/t.T/Chat", BODY("\2hi\0\0\0\0\3you")});
    assert_int_equal(seen.n_messages, 2);
    assert_int_equal(seen.n_half_closed, 1);
    assert_int_equal(a->body_len, 15);
    assert_string_equal(a->grpc_status, "0");
    const struct answer *early =
        ask(&p, &(struct request){.path = "/t.T/Chat", BODY("\3bye\0\0\0\0\3you"), .is_open = true});
    assert_int_equal(seen.n_messages, 3); /* what follows the end is not delivered */
    assert_string_equal(early->grpc_status, "0");
    assert_true(early->is_reset && early->reset_code == NGHTTP2_NO_ERROR);
    peer_fini(&p);
}

static void test_delivered_messages_are_not_held(void **state)
{
    (void)state;
    static char body[100 * 55];
    struct peer p;
    start(&p);
    p.limits.values[NET_LIMIT_RECEIVE_BYTES] = sizeof(body); /* room for one read, not for two */
    for (size_t i = 0; i < sizeof(body); i += 55)
        body[i + 4] = 50;
    for (int i = 0; i < 3; i++) {
        const struct answer *a =
            ask(&p, &(struct request){.path = "/t.T/Chat", .body = body, .body_len = sizeof(body), .is_open = true});
        assert_int_equal(a->n_body_bytes, sizeof(body));
        assert_int_equal(p.server->received_bytes, 0);
    }
    assert_int_equal(seen.n_messages, 300);
    peer_fini(&p);
}

/* ---- header rules ---- */

static const struct header_row {
    const char *name;
    struct request request;
    const char *http, *grpc;
    int n_messages;
} header_rows[] = {
    {"plain", {BODY("\1x")}, "200", "0", 1},
    {"put", {.method = "PUT", BODY("\1x")}, "405", "13", 0},
    {"options", {.method = "OPTIONS"}, "405", "13", 0},
    {"no content-type", {.content_type = "", BODY("\1x")}, "415", "3", 0},
    {"json", {.content_type = "application/json", BODY("\1x")}, "415", "3", 0},
    {"grpc-web", {.content_type = "application/grpc-web", BODY("\1x")}, "415", "3", 0},
    {"subtype json", {.content_type = "application/grpc+json", BODY("\1x")}, "415", "3", 0},
    {"subtype proto", {.content_type = "application/grpc+proto", BODY("\1x")}, "200", "0", 1},
    {"first content-type",
     {.content_type = "text/plain", .extra = {"content-type", "application/grpc"}, BODY("\1x")},
     "415",
     "3",
     0},
    {"second content-type", {.extra = {"content-type", "text/plain"}, BODY("\1x")}, "415", "3", 0},
    {"unknown method", {.path = "/t.T/Nope", BODY("\1x")}, "200", "12", 0},
    {"unknown service", {.path = "/x/Unary", BODY("\1x")}, "200", "12", 0},
    {"other case", {.path = "/t.t/unary", BODY("\1x")}, "200", "12", 0},
    {"query", {.path = "/t.T/Unary?x", BODY("\1x")}, "200", "12", 0},
    {"root", {.path = "/", BODY("\1x")}, "200", "12", 0},
    {"host alike", {.extra = {"host", "test"}, BODY("\1x")}, "200", "0", 1},
    {"host other", {.extra = {"host", "evil"}, BODY("\1x")}, "400", "13", 0},
    {"timeout", {.extra = {"grpc-timeout", "5S"}, BODY("\1x")}, "200", "0", 1},
    {"bad timeout", {.extra = {"grpc-timeout", "5x"}, BODY("\1x")}, "400", "13", 0},
    {"two timeouts", {.extra = {"grpc-timeout", "5S", "grpc-timeout", "6S"}, BODY("\1x")}, "400", "13", 0},
    {"timeout over", {.extra = {"grpc-timeout", "0n"}, BODY("\1x")}, "200", "4", 0},
    {"gzip, plain message", {.extra = {"grpc-encoding", "gzip"}, BODY("\1x")}, "200", "0", 1},
    {"metadata",
     {.extra = {"x-any", "1", "y-bin", "AAE", "grpc-accept-encoding", "zstd,gzip"}, BODY("\1x")},
     "200",
     "0",
     1},
    {"no message", {.path = "/t.T/Unary"}, "200", "12", 0},
    {"no message, stream", {.path = "/t.T/Stream"}, "200", "12", 0},
    {"two messages", {BODY("\1x\0\0\0\0\1y")}, "200", "12", 0},
    {"cut message", {BODY("\4x")}, "200", "13", 0},
    {"cut prefix", {.body = "\0\0\0", .body_len = 3}, "200", "13", 0},
    {"compressed, no encoding", {.body = "\1\0\0\0\1x", .body_len = 6}, "200", "13", 0},
    {"compressed, identity",
     {.extra = {"grpc-encoding", "identity"}, .body = "\1\0\0\0\1x", .body_len = 6},
     "200",
     "13",
     0},
    {"compressed, gzip", {.extra = {"grpc-encoding", "gzip"}, .body = "\1\0\0\0\1x", .body_len = 6}, "200", "12", 0},
    {"flag 2", {.body = "\2\0\0\0\1x", .body_len = 6}, "200", "13", 0},
    {"too big", {.body = "\0\0\1\0\1x", .body_len = 6}, "200", "8", 0},
};

static void test_header_and_framing_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(header_rows); i++) {
        const struct header_row *row = &header_rows[i];
        struct peer p;
        start(&p);
        const struct answer *a = ask(&p, &row->request);
        if (strcmp(a->status, row->http) != 0 || strcmp(a->grpc_status, row->grpc) != 0 ||
            seen.n_messages != row->n_messages || !a->is_closed || !a->has_trailers)
            fail_msg("%s: HTTP %s, gRPC %s (%s), %d messages", row->name, a->status, a->grpc_status, a->grpc_message,
                     seen.n_messages);
        assert_string_equal(ask(&p, &(struct request){BODY("\1z")})->grpc_status, "0"); /* the connection lives on */
        peer_fini(&p);
    }
}

static void test_an_unknown_encoding_is_answered_with_what_is_known(void **state)
{
    (void)state;
    struct peer p;
    start(&p);
    const struct answer *a =
        ask(&p, &(struct request){.extra = {"grpc-encoding", "gzip"}, .body = "\1\0\0\0\1x", .body_len = 6});
    assert_string_equal(a->extra, "identity");
    peer_fini(&p);
}

static void test_forbidden_headers_reset_the_stream(void **state)
{
    (void)state;
    static const char *const extras[][2] = {{"connection", "close"}, {"te", "gzip"}, {"transfer-encoding", "chunked"}};
    struct peer p;
    start(&p);
    for (size_t i = 0; i < ARRAY_LEN(extras); i++) {
        const struct answer *a = ask(&p, &(struct request){.extra = {extras[i][0], extras[i][1]}, BODY("\1x")});
        assert_true(a->is_reset && a->reset_code == NGHTTP2_PROTOCOL_ERROR);
    }
    assert_int_equal(seen.n_messages, 0);
    assert_int_equal(p.rc, 0);
    peer_fini(&p);
}

static void test_an_early_answer_is_followed_by_reset_no_error(void **state)
{
    (void)state;
    struct peer p;
    start(&p);
    const struct answer *a = ask(&p, &(struct request){.path = "/t.T/Nope", .is_open = true});
    assert_string_equal(a->grpc_status, "12");
    assert_true(a->is_reset && a->reset_code == NGHTTP2_NO_ERROR && a->is_closed);
    peer_fini(&p);
}

/* ---- bytes split anywhere ---- */

static void record_request(struct peer *p, struct buf *out)
{
    const uint8_t *bytes;
    ssize_t n;
    buf_init(out, 65536);
    while ((n = nghttp2_session_mem_send(p->ng, &bytes)) > 0)
        assert_int_equal(buf_append(out, bytes, (size_t)n), 0);
}

static void test_input_may_be_split_at_every_byte(void **state)
{
    (void)state;
    for (size_t cut = 1;; cut++) {
        struct peer p;
        memset(&seen, 0, sizeof(seen));
        peer_init(&p, methods, ARRAY_LEN(methods));
        nghttp2_nv nva[] = {peer_nv(":method", "POST"), peer_nv(":scheme", "http"), peer_nv(":path", "/t.T/Unary"),
                            peer_nv(":authority", "test"), peer_nv("content-type", "application/grpc")};
        struct peer_body body = {"\0\0\0\0\5hello", 10, false};
        nghttp2_data_provider provider = {.source.ptr = &body, .read_callback = peer_read_body};
        assert_int_equal(nghttp2_submit_request(p.ng, NULL, nva, ARRAY_LEN(nva), &provider, NULL), 1);
        struct buf bytes;
        record_request(&p, &bytes);
        bool is_over = cut >= bytes.len;
        peer_feed(&p, bytes.data, is_over ? bytes.len : cut);
        (void)peer_read(&p);
        if (!is_over)
            peer_feed(&p, bytes.data + cut, bytes.len - cut);
        peer_pump(&p);
        assert_string_equal(p.answers[0].grpc_status, "0");
        assert_int_equal(p.answers[0].body_len, 10);
        assert_string_equal(seen.last, "hello");
        buf_fini(&bytes);
        peer_fini(&p);
        if (is_over)
            break;
    }
}

/* ---- deadlines and cancel ---- */

static void test_our_deadline_ends_a_call_that_hangs(void **state)
{
    (void)state;
    struct peer p;
    start(&p);
    const struct answer *a = ask(&p, &(struct request){.path = "/t.T/Hang", BODY("\1x")});
    assert_int_equal(rpc_server_sweep(p.server, p.now_ns), p.now_ns + NS_PER_S);
    (void)rpc_server_sweep(p.server, p.now_ns + NS_PER_S - 1);
    peer_pump(&p);
    assert_false(a->is_closed);
    assert_true(rpc_server_sweep(p.server, p.now_ns + NS_PER_S) == INT64_MAX);
    peer_pump(&p);
    assert_string_equal(a->grpc_status, "4");
    assert_string_equal(a->grpc_message, "no answer within 1s");
    assert_int_equal(seen.n_ended, 1);
    peer_fini(&p);
}

static void test_the_clients_deadline_counts_when_it_is_sooner(void **state)
{
    (void)state;
    struct peer p;
    start(&p);
    const struct answer *a =
        ask(&p, &(struct request){.path = "/t.T/Hang", .extra = {"grpc-timeout", "100m"}, BODY("\1x")});
    const struct answer *b =
        ask(&p, &(struct request){.path = "/t.T/Hang", .extra = {"grpc-timeout", "1H"}, BODY("\1x")});
    const struct answer *c =
        ask(&p, &(struct request){.path = "/t.T/Stream", .extra = {"grpc-timeout", "99999999H"}, BODY("\1x")});
    (void)rpc_server_sweep(p.server, p.now_ns + 100 * NS_PER_MS);
    peer_pump(&p);
    assert_string_equal(a->grpc_status, "4");
    assert_false(b->is_closed);
    (void)rpc_server_sweep(p.server, p.now_ns + NS_PER_S);
    peer_pump(&p);
    assert_string_equal(b->grpc_status, "4");
    assert_false(c->is_closed);
    peer_fini(&p);
}

static void test_a_request_that_does_not_end_has_its_time(void **state)
{
    (void)state;
    struct peer p;
    start(&p);
    const struct answer *a = ask(&p, &(struct request){.path = "/t.T/Fail", BODY("\5he"), .is_open = true});
    (void)rpc_server_sweep(p.server, p.now_ns + 10 * NS_PER_S - 1);
    peer_pump(&p);
    assert_false(a->is_closed);
    (void)rpc_server_sweep(p.server, p.now_ns + 10 * NS_PER_S);
    peer_pump(&p);
    assert_string_equal(a->grpc_status, "4");
    assert_int_equal(p.hits[NET_LIMIT_BODY_MS], 1);
    assert_int_equal(seen.n_messages, 0);
    peer_fini(&p);
}

static void test_cancel_frees_the_call_at_once(void **state)
{
    (void)state;
    struct peer p;
    start(&p);
    (void)ask(&p, &(struct request){.path = "/t.T/Stream", BODY("\1x")});
    assert_non_null(seen.open);
    assert_int_equal(nghttp2_submit_rst_stream(p.ng, 0, 1, NGHTTP2_CANCEL), 0);
    (void)peer_send(&p);
    assert_int_equal(seen.n_ended, 1);
    assert_int_equal(p.server->n_calls, 0);
    peer_pump(&p);
    assert_string_equal(ask(&p, &(struct request){BODY("\1x")})->grpc_status, "0");
    peer_fini(&p);
}

static void test_a_lost_connection_ends_its_calls(void **state)
{
    (void)state;
    struct peer p;
    start(&p);
    (void)ask(&p, &(struct request){.path = "/t.T/Stream", BODY("\1x")});
    (void)ask(&p, &(struct request){.path = "/t.T/Hang", BODY("\1x")});
    peer_fini(&p);
    assert_int_equal(seen.n_ended, 2);
}

static void test_late_answers_of_an_expired_call_are_dropped(void **state)
{
    (void)state;
    struct peer p;
    start(&p);
    const struct answer *a = ask(&p, &(struct request){.path = "/t.T/Hang", BODY("\1x")});
    (void)rpc_server_sweep(p.server, p.now_ns + NS_PER_S);
    rpc_call_reply(seen.open, "late", 4); /* `ended` has not told the handler yet */
    peer_pump(&p);
    assert_string_equal(a->grpc_status, "4");
    assert_int_equal(a->body_len, 0);
    peer_fini(&p);
}

/* ---- output ceilings ---- */

static void close_window(struct peer *p)
{
    nghttp2_settings_entry entry = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0};
    assert_int_equal(nghttp2_submit_settings(p->ng, 0, &entry, 1), 0);
    peer_pump(p);
}

static void test_a_stalled_state_stream_keeps_only_the_newest(void **state)
{
    (void)state;
    struct peer p;
    start(&p);
    close_window(&p);
    const struct answer *a = ask(&p, &(struct request){.path = "/t.T/State", BODY("\1x")});
    for (int i = 0; i < 10000; i++) {
        char text[8];
        (void)snprintf(text, sizeof(text), "%04d", i);
        assert_int_equal(rpc_call_send(seen.open, text, 4), 0);
        if (i % 1000 == 0)
            peer_pump(&p);
        assert_true(p.server->unsent_bytes <= 18);
    }
    assert_int_equal(a->body_len, 0);
    assert_int_equal(nghttp2_submit_window_update(p.ng, 0, 1, 65535), 0);
    peer_pump(&p);
    assert_int_equal(a->body_len, 9);
    assert_memory_equal(a->body + 5, "9999", 4);
    peer_fini(&p);
}

static void test_a_stalled_stream_refuses_what_its_ceiling_cannot_hold(void **state)
{
    (void)state;
    struct peer p;
    char message[1000] = {0};
    start(&p);
    close_window(&p);
    (void)ask(&p, &(struct request){.path = "/t.T/Stream", BODY("\1x")});
    int n = 0;
    while (n < 1000 && rpc_call_send(seen.open, message, sizeof(message)) == 0)
        n++;
    assert_int_equal(n, 65);
    assert_int_equal(p.hits[NET_LIMIT_STREAM_OUTPUT_BYTES], 1);
    peer_fini(&p);
}

static void test_unread_answers_of_a_connection_have_a_ceiling(void **state)
{
    (void)state;
    struct peer p;
    start(&p);
    p.limits.values[NET_LIMIT_OUTPUT_BYTES] = 100;
    close_window(&p);
    const struct answer *last = NULL;
    for (int i = 0; i < 11; i++)
        last = ask(&p, &(struct request){BODY("\5hello")});
    assert_string_equal(last->grpc_status, "8");
    assert_int_equal(p.server->unsent_bytes, 100);
    assert_int_equal(p.hits[NET_LIMIT_OUTPUT_BYTES], 1);
    peer_fini(&p);
}

static void test_a_deadline_behind_a_closed_window_resets(void **state)
{
    (void)state;
    struct peer p;
    start(&p);
    close_window(&p);
    const struct answer *a = ask(&p, &(struct request){.path = "/t.T/Hang", BODY("\1x")});
    assert_int_equal(rpc_call_send(seen.open, "x", 1), 0);
    peer_pump(&p);
    (void)rpc_server_sweep(p.server, p.now_ns + NS_PER_S);
    peer_pump(&p);
    assert_true(a->is_reset && a->reset_code == NGHTTP2_CANCEL);
    assert_int_equal(p.server->unsent_bytes, 0);
    peer_fini(&p);
}

static void test_an_answer_that_is_not_taken_is_dropped_in_the_end(void **state)
{
    (void)state;
    struct peer p;
    start(&p);
    close_window(&p);
    const struct answer *a = ask(&p, &(struct request){BODY("\5hello")});
    assert_int_equal(p.server->unsent_bytes, 10);
    assert_int_equal(seen.n_ended, 1); /* the handler is done */
    (void)rpc_server_sweep(p.server, p.now_ns + 20 * NS_PER_S - 1);
    peer_pump(&p);
    assert_false(a->is_closed);
    (void)rpc_server_sweep(p.server, p.now_ns + 20 * NS_PER_S);
    peer_pump(&p);
    assert_true(a->is_reset && a->reset_code == NGHTTP2_CANCEL);
    assert_int_equal(p.server->unsent_bytes, 0);
    assert_int_equal(p.hits[NET_LIMIT_WRITE_STALL_MS], 1);
    assert_int_equal(seen.n_ended, 1);
    peer_fini(&p);
}

/* ---- GET ---- */

static void get_page(void *context, const struct net_get_request *request, struct net_get_response *response)
{
    (void)context;
    response->content_type = "text/plain";
    (void)snprintf(response->extra, sizeof(response->extra), "X-Seen: %.*s\r\n", (int)request->accept.len,
                   request->accept.ptr);
    (void)buf_printf(&response->body, "path %.*s query %.*s", (int)request->path.len, request->path.ptr,
                     (int)request->query.len, request->query.ptr);
}

static void test_get_and_head_reach_the_pages(void **state)
{
    (void)state;
    struct peer p;
    start(&p);
    net_gets_add(p.gets, "/page", get_page, NULL);
    const struct answer *a =
        ask(&p, &(struct request){
                    .method = "GET", .path = "/p%61ge?a=%20b", .content_type = "", .extra = {"accept", "text/x"}});
    assert_string_equal(a->status, "200");
    assert_string_equal(a->content_type, "text/plain");
    assert_string_equal(a->extra, "text/x");
    assert_int_equal(a->body_len, 23);
    assert_memory_equal(a->body, "path /page query a=%20b", 23);
    assert_true(a->is_data_end && a->is_closed);
    a = ask(&p, &(struct request){.method = "HEAD", .path = "/page", .content_type = ""});
    assert_string_equal(a->status, "200");
    assert_int_equal(a->body_len, 0);
    a = ask(&p, &(struct request){.method = "GET", .path = "/nope", .content_type = ""});
    assert_string_equal(a->status, "404");
    a = ask(&p, &(struct request){.method = "GET", .path = "/p%zz", .content_type = ""});
    assert_string_equal(a->status, "400");
    a = ask(&p, &(struct request){.method = "GET", .path = "/page", .content_type = "", .body = "x", .body_len = 1});
    assert_string_equal(a->status, "400");
    a = ask(&p, &(struct request){.method = "GET", .path = "/page", .content_type = "", .is_open = true});
    assert_string_equal(a->status, ""); /* its end may show that it is malformed */
    (void)rpc_server_sweep(p.server, p.now_ns + 10 * NS_PER_S);
    peer_pump(&p);
    assert_string_equal(a->status, "400");
    assert_true(a->is_reset && a->reset_code == NGHTTP2_NO_ERROR);
    peer_fini(&p);
}

/* ---- drain ---- */

static void test_drain_announces_ends_streams_and_lets_calls_finish(void **state)
{
    (void)state;
    struct peer p;
    start(&p);
    const struct answer *stream = ask(&p, &(struct request){.path = "/t.T/Stream", BODY("\1x")});
    const struct answer *hang = ask(&p, &(struct request){.path = "/t.T/Hang", BODY("\1x")});
    rpc_session_drain(p.session, p.now_ns);
    (void)peer_read(&p);
    assert_true(p.is_goaway);
    assert_int_equal(p.goaway_last, INT32_MAX);
    assert_int_equal(p.goaway_code, NGHTTP2_NO_ERROR);
    assert_string_equal(stream->grpc_status, "0");
    assert_false(hang->is_closed);
    (void)peer_send(&p); /* the ACK of the ping */
    rpc_session_tick(p.session, p.now_ns + 50 * NS_PER_MS);
    peer_pump(&p);
    assert_int_equal(p.n_goaways, 2);
    assert_int_equal(p.goaway_last, 3);
    assert_false(rpc_session_is_done(p.session));
    rpc_call_reply(seen.open, "done", 4);
    peer_pump(&p);
    assert_string_equal(hang->grpc_status, "0");
    assert_true(rpc_session_is_done(p.session));
    peer_fini(&p);
}

static void test_drain_does_not_wait_for_a_silent_peer(void **state)
{
    (void)state;
    struct peer p;
    start(&p);
    rpc_session_drain(p.session, p.now_ns);
    (void)peer_read(&p);
    rpc_session_tick(p.session, p.now_ns + NS_PER_S - 1);
    (void)peer_read(&p);
    assert_false(rpc_session_is_done(p.session));
    rpc_session_tick(p.session, p.now_ns + NS_PER_S);
    (void)peer_read(&p);
    assert_int_equal(p.n_goaways, 2);
    assert_true(rpc_session_is_done(p.session));
    peer_fini(&p);
}

/* ---- metrics ---- */

struct wanted {
    const char *name, *method, *code;
    double value;
    bool is_found;
};

static void on_sample(void *context, const struct metric_sample *sample)
{
    struct wanted *w = (struct wanted *)context;
    if (strcmp(sample->desc->name, w->name) != 0 || strcmp(sample->label_values[1], w->method) != 0)
        return;
    if (w->code && strcmp(sample->label_values[3], w->code) != 0)
        return;
    w->value = sample->desc->kind == METRIC_HISTOGRAM ? sample->count : sample->value;
    w->is_found = true;
}

static void on_family(void *context, const struct metric_desc *desc)
{
    (void)context;
    (void)desc;
}

static double metric_of(const struct peer *p, const char *name, const char *method, const char *code)
{
    struct wanted w = {name, method, code, -1, false};
    metrics_visit(p->metrics, &(struct metric_visitor){.family = on_family, .sample = on_sample, .context = &w});
    return w.value;
}

static void test_calls_are_counted_under_the_usual_names(void **state)
{
    (void)state;
    struct peer p;
    start(&p);
    (void)ask(&p, &(struct request){BODY("\1x")});
    (void)ask(&p, &(struct request){BODY("\1x")});
    (void)ask(&p, &(struct request){.path = "/t.T/Fail", BODY("\1x")});
    (void)ask(&p, &(struct request){.path = "/t.T/Three", BODY("\1x")});
    (void)ask(&p, &(struct request){.path = "/t.T/Stream", BODY("\1x")});
    (void)ask(&p, &(struct request){.path = "/no/Such", BODY("\1x")});
    assert_double_same(metric_of(&p, "grpc_server_started", "Unary", NULL), 2);
    assert_double_same(metric_of(&p, "grpc_server_handled", "Unary", "OK"), 2);
    assert_double_same(metric_of(&p, "grpc_server_handled", "Fail", "Unavailable"), 1);
    assert_double_same(metric_of(&p, "grpc_server_msg_received", "Unary", NULL), 2);
    assert_double_same(metric_of(&p, "grpc_server_msg_sent", "Three", NULL), 3);
    assert_double_same(metric_of(&p, "grpc_server_handling_seconds", "Unary", NULL), 2);
    assert_double_same(metric_of(&p, "grpc_server_open_calls", "Stream", NULL), 1);
    assert_double_same(metric_of(&p, "grpc_server_open_calls", "Unary", NULL), 0);
    assert_double_same(metric_of(&p, "grpc_server_handled", "unknown", "Unimplemented"), 1);
    assert_int_equal(nghttp2_submit_rst_stream(p.ng, 0, 9, NGHTTP2_CANCEL), 0);
    peer_pump(&p);
    assert_double_same(metric_of(&p, "grpc_server_handled", "Stream", "Canceled"), 1);
    assert_double_same(metric_of(&p, "grpc_server_open_calls", "Stream", NULL), 0);
    peer_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_unary_call_is_answered_with_headers_data_and_trailers),
        cmocka_unit_test(test_settings_come_first_and_at_once),
        cmocka_unit_test(test_an_empty_message_is_a_message),
        cmocka_unit_test(test_an_error_before_any_message_is_trailers_only),
        cmocka_unit_test(test_messages_before_an_error_arrive_before_it),
        cmocka_unit_test(test_a_method_that_ends_without_an_answer_is_our_fault),
        cmocka_unit_test(test_stream_headers_go_out_before_any_message),
        cmocka_unit_test(test_a_bidi_method_gets_each_message_and_the_end),
        cmocka_unit_test(test_delivered_messages_are_not_held),
        cmocka_unit_test(test_header_and_framing_rules),
        cmocka_unit_test(test_an_unknown_encoding_is_answered_with_what_is_known),
        cmocka_unit_test(test_forbidden_headers_reset_the_stream),
        cmocka_unit_test(test_an_early_answer_is_followed_by_reset_no_error),
        cmocka_unit_test(test_input_may_be_split_at_every_byte),
        cmocka_unit_test(test_our_deadline_ends_a_call_that_hangs),
        cmocka_unit_test(test_the_clients_deadline_counts_when_it_is_sooner),
        cmocka_unit_test(test_a_request_that_does_not_end_has_its_time),
        cmocka_unit_test(test_cancel_frees_the_call_at_once),
        cmocka_unit_test(test_a_lost_connection_ends_its_calls),
        cmocka_unit_test(test_late_answers_of_an_expired_call_are_dropped),
        cmocka_unit_test(test_a_stalled_state_stream_keeps_only_the_newest),
        cmocka_unit_test(test_a_stalled_stream_refuses_what_its_ceiling_cannot_hold),
        cmocka_unit_test(test_unread_answers_of_a_connection_have_a_ceiling),
        cmocka_unit_test(test_a_deadline_behind_a_closed_window_resets),
        cmocka_unit_test(test_an_answer_that_is_not_taken_is_dropped_in_the_end),
        cmocka_unit_test(test_get_and_head_reach_the_pages),
        cmocka_unit_test(test_drain_announces_ends_streams_and_lets_calls_finish),
        cmocka_unit_test(test_drain_does_not_wait_for_a_silent_peer),
        cmocka_unit_test(test_calls_are_counted_under_the_usual_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
