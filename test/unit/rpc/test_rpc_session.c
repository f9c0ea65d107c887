/* The server's session core with an in-memory client: answers, header rules, framing. */
#include "methods.h"

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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
