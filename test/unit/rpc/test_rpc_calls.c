/* The life of calls on the server's session core: deadlines, cancel, output ceilings, pages, drain, metrics. */
#include "methods.h"

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

static void feed_data(struct peer *p, int32_t id, struct str bytes)
{
    uint8_t frame[64];
    memcpy(frame + 9, bytes.ptr, bytes.len);
    peer_feed(p, frame, peer_frame(frame, bytes.len, NGHTTP2_DATA, 0, id) + bytes.len);
    peer_pump(p);
}

/* Each of a stream's messages has its time from its first byte on; between them there is no limit. */
static void test_a_message_of_a_stream_that_does_not_end_has_its_time(void **state)
{
    (void)state;
    struct peer p;
    start(&p);
    const struct answer *a = ask(&p, &(struct request){.path = "/t.T/Chat", .is_open = true});
    p.now_ns += 60 * NS_PER_S;
    (void)rpc_server_sweep(p.server, p.now_ns);
    feed_data(&p, 1, (struct str){"\0\0\0\0\5he", 7});
    p.now_ns += 9 * NS_PER_S;
    feed_data(&p, 1, (struct str){"llo\0", 4}); /* and the next one begins */
    p.now_ns += 9 * NS_PER_S;
    (void)rpc_server_sweep(p.server, p.now_ns);
    feed_data(&p, 1, (struct str){"\0\0\0", 3});
    assert_int_equal(seen.n_messages, 1);
    assert_false(a->is_closed);
    (void)rpc_server_sweep(p.server, p.now_ns + NS_PER_S);
    peer_pump(&p);
    assert_string_equal(a->grpc_status, "4");
    assert_int_equal(p.hits[NET_LIMIT_BODY_MS], 1);
    assert_int_equal(p.server->received_bytes, 0);
    peer_fini(&p);
}

static void test_calls_that_are_over_hold_little_memory(void **state)
{
    (void)state;
    enum { BURST = 200, KEPT = 128, BYTES = 5000 };
    static char big[BYTES + 5] = {0, 0, 0, BYTES >> 8, (char)(BYTES & 0xFF)};
    struct peer p;
    start(&p);
    for (int i = 0; i < BURST; i++)
        (void)peer_request(&p, &(struct request){.path = "/t.T/Stream", BODY("\1x")});
    peer_pump(&p);
    assert_int_equal(p.server->n_calls, BURST);
    for (int i = 0; i < BURST; i++)
        assert_int_equal(nghttp2_submit_rst_stream(p.ng, 0, 2 * i + 1, NGHTTP2_CANCEL), 0);
    peer_pump(&p);
    assert_int_equal(p.server->n_calls, 0);
    assert_int_equal(p.server->n_free_calls, KEPT);
    (void)ask(&p, &(struct request){.body = big, .body_len = sizeof(big)});
    assert_int_equal(p.server->n_free_calls, KEPT);
    assert_true(p.server->free_calls->out.capacity <= 1024);
    assert_true(p.server->free_calls->reader.message.capacity <= 1024);
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

/* Messages of an open stream that nobody takes hold memory of all: they have the same limit. */
static void test_a_stream_that_is_not_taken_ends_unless_only_its_state_waits(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        bool is_ended;
    } rows[] = {{"/t.T/Stream", true}, {"/t.T/Chat", true}, {"/t.T/State", false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct peer p;
        start(&p);
        close_window(&p);
        const struct answer *a = ask(&p, &(struct request){.path = rows[i].path, BODY("\1x"), .is_open = i == 1});
        if (i != 1)
            assert_int_equal(rpc_call_send(seen.open, "x", 1), 0);
        peer_pump(&p);
        (void)rpc_server_sweep(p.server, p.now_ns + 20 * NS_PER_S - 1);
        peer_pump(&p);
        assert_false(a->is_closed);
        (void)rpc_server_sweep(p.server, p.now_ns + 20 * NS_PER_S);
        peer_pump(&p);
        assert_int_equal(a->is_reset && a->reset_code == NGHTTP2_CANCEL, rows[i].is_ended);
        assert_int_equal(p.server->unsent_bytes, rows[i].is_ended ? 0 : 6);
        assert_int_equal(p.hits[NET_LIMIT_WRITE_STALL_MS], rows[i].is_ended);
        assert_int_equal(seen.n_ended, rows[i].is_ended);
        peer_fini(&p);
    }
}

static void big_page(void *context, const struct net_get_request *request, struct net_get_response *response)
{
    (void)context;
    (void)request;
    char *room = buf_reserve(&response->body, 200000);
    memset(room, 'x', 200000);
    buf_advance(&response->body, 200000);
}

/* Open the stream's window by so much, and say how many bytes of DATA that brings. The peer's own nghttp2 does not see
 * them: it would open the window by itself. */
static size_t take_data(struct peer *p, uint8_t n)
{
    uint8_t frame[13] = {0, 0, 4, NGHTTP2_WINDOW_UPDATE, 0, 0, 0, 0, 1, 0, 0, n, 0};
    const uint8_t *bytes;
    size_t len, n_data = 0;
    peer_feed(p, frame, sizeof(frame));
    while ((len = rpc_session_pull(p->session, &bytes)) > 0)
        n_data += bytes[3] == NGHTTP2_DATA ? len - 9 : 0;
    return n_data;
}

/* The limit is on the lack of progress, as for a connection: 16 kB or all that waits. */
static void test_progress_buys_time_and_drops_of_it_do_not(void **state)
{
    (void)state;
    struct peer p;
    start(&p);
    net_gets_add(p.gets, "/big", big_page, NULL);
    close_window(&p);
    (void)ask(&p, &(struct request){.method = "GET", .path = "/big", .content_type = ""});
    for (int i = 0; i < 3; i++) {
        p.now_ns += 19 * NS_PER_S;
        (void)rpc_server_sweep(p.server, p.now_ns);
        assert_int_equal(take_data(&p, 64), 16384);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(p.server->n_calls, 1);
        p.now_ns += 8 * NS_PER_S;
        (void)rpc_server_sweep(p.server, p.now_ns);
        (void)take_data(&p, 1);
    }
    assert_int_equal(p.server->n_calls, 0);
    assert_int_equal(p.hits[NET_LIMIT_WRITE_STALL_MS], 1);
    assert_int_equal(p.server->unsent_bytes, 0);
    peer_fini(&p);
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
    a = ask(&p, &(struct request){.method = "GET", .path = "/p%0age", .content_type = ""});
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

static void test_streams_that_open_during_a_drain_end_too(void **state)
{
    (void)state;
    struct peer p;
    start(&p);
    rpc_session_drain(p.session, p.now_ns);
    const struct answer *late =
        peer_answer(&p, peer_request(&p, &(struct request){.path = "/t.T/Stream", BODY("\1x")}));
    rpc_session_tick(p.session, p.now_ns + NS_PER_S);
    peer_pump(&p);
    assert_string_equal(late->grpc_status, "0");
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
        cmocka_unit_test(test_our_deadline_ends_a_call_that_hangs),
        cmocka_unit_test(test_the_clients_deadline_counts_when_it_is_sooner),
        cmocka_unit_test(test_a_request_that_does_not_end_has_its_time),
        cmocka_unit_test(test_a_message_of_a_stream_that_does_not_end_has_its_time),
        cmocka_unit_test(test_calls_that_are_over_hold_little_memory),
        cmocka_unit_test(test_cancel_frees_the_call_at_once),
        cmocka_unit_test(test_a_lost_connection_ends_its_calls),
        cmocka_unit_test(test_late_answers_of_an_expired_call_are_dropped),
        cmocka_unit_test(test_a_stalled_state_stream_keeps_only_the_newest),
        cmocka_unit_test(test_a_stalled_stream_refuses_what_its_ceiling_cannot_hold),
        cmocka_unit_test(test_unread_answers_of_a_connection_have_a_ceiling),
        cmocka_unit_test(test_a_deadline_behind_a_closed_window_resets),
        cmocka_unit_test(test_an_answer_that_is_not_taken_is_dropped_in_the_end),
        cmocka_unit_test(test_a_stream_that_is_not_taken_ends_unless_only_its_state_waits),
        cmocka_unit_test(test_progress_buys_time_and_drops_of_it_do_not),
        cmocka_unit_test(test_get_and_head_reach_the_pages),
        cmocka_unit_test(test_drain_announces_ends_streams_and_lets_calls_finish),
        cmocka_unit_test(test_streams_that_open_during_a_drain_end_too),
        cmocka_unit_test(test_drain_does_not_wait_for_a_silent_peer),
        cmocka_unit_test(test_calls_are_counted_under_the_usual_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
