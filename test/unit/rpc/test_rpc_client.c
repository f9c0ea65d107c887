/* The client's core against a scripted HTTP/2 server in memory: what answers mean, retries, back-off, deadlines. */
#include "rpc/client.h"
#include "support.h"

#include <string.h>

/* ---- the rig ---- */

struct result {
    int n_done, n_messages;
    size_t message_bytes;
    char last[32];
    struct err status;
};

struct script {
    const char *headers[10], *trailers[6]; /* name, value, ... */
    const char *data;
    size_t data_len;
    bool is_data_end, is_reset, is_silent;
    uint32_t reset_code;
};

static struct {
    struct rpc_client client;
    struct rpc_client_session *session;
    struct net_limits limits;
    nghttp2_session *server;
    int64_t now_ns;
    int n_dials, n_requests, hits[NET_LIMIT_COUNT];
    const struct script *script;
    size_t data_at;
    char timeout[16], path[32], authority[32], scheme[8];
    bool is_ended, is_reset;
    uint32_t reset_code;
    char request[64];
    size_t request_len;
} rig;

static void rig_dial(struct rpc_client *client)
{
    (void)client;
    rig.n_dials++;
}
static void rig_wake(struct rpc_client *client)
{
    (void)client;
}
static int64_t rig_now(const struct rpc_client *client)
{
    (void)client;
    return rig.now_ns;
}
static const struct rpc_client_io rig_io = {.dial = rig_dial, .wake = rig_wake, .now_ns = rig_now};

static void env_wake(void *context)
{
    (void)context;
}
static void env_established(void *context)
{
    (void)context;
    rpc_client_ready(rig.session);
}
static void env_limit_hit(void *context, enum net_limit limit)
{
    (void)context;
    rig.hits[limit]++;
}

static ssize_t read_data(nghttp2_session *ng, int32_t id, uint8_t *out, size_t size, uint32_t *flags,
                         nghttp2_data_source *source, void *user_data)
{
    (void)source;
    (void)user_data;
    size_t left = rig.script->data_len - rig.data_at, n = left < size ? left : size;
    if (n)
        memcpy(out, rig.script->data + rig.data_at, n);
    rig.data_at += n;
    if (n < left)
        return (ssize_t)n;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (rig.script->is_data_end)
        return (ssize_t)n;
    *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    nghttp2_nv nva[3];
    size_t count = 0;
    for (size_t i = 0; i + 1 < ARRAY_LEN(rig.script->trailers) && rig.script->trailers[i]; i += 2)
        nva[count++] = (nghttp2_nv){(uint8_t *)(uintptr_t)rig.script->trailers[i],
                                    (uint8_t *)(uintptr_t)rig.script->trailers[i + 1], strlen(rig.script->trailers[i]),
                                    strlen(rig.script->trailers[i + 1]), 0};
    if (count)
        (void)nghttp2_submit_trailer(ng, id, nva, count);
    return (ssize_t)n;
}

static void answer(nghttp2_session *ng, int32_t id)
{
    const struct script *script = rig.script;
    nghttp2_nv nva[5];
    size_t n = 0;
    if (script->is_reset && !script->headers[0]) {
        (void)nghttp2_submit_rst_stream(ng, 0, id, script->reset_code);
        return;
    }
    for (size_t i = 0; i + 1 < ARRAY_LEN(script->headers) && script->headers[i]; i += 2)
        nva[n++] = (nghttp2_nv){(uint8_t *)(uintptr_t)script->headers[i], (uint8_t *)(uintptr_t)script->headers[i + 1],
                                strlen(script->headers[i]), strlen(script->headers[i + 1]), 0};
    nghttp2_data_provider provider = {.read_callback = read_data};
    rig.data_at = 0;
    bool has_data = script->data_len > 0 || script->trailers[0] || script->is_data_end;
    (void)nghttp2_submit_response(ng, id, nva, n, has_data ? &provider : NULL);
}

static int server_frame(nghttp2_session *ng, const nghttp2_frame *frame, void *user_data)
{
    (void)user_data;
    if (frame->hd.type == NGHTTP2_RST_STREAM) {
        rig.is_reset = true;
        rig.reset_code = frame->rst_stream.error_code;
    }
    bool is_request = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    if (!is_request || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return 0;
    rig.n_requests++;
    rig.is_ended = true;
    if (rig.script && !rig.script->is_silent)
        answer(ng, frame->hd.stream_id);
    return 0;
}

static int server_header(nghttp2_session *ng, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
                         const uint8_t *value, size_t value_len, uint8_t flags, void *user_data)
{
    (void)ng;
    (void)frame;
    (void)flags;
    (void)user_data;
    struct str key = {(const char *)name, name_len}, text = {(const char *)value, value_len};
    if (str_equals(key, "grpc-timeout"))
        (void)str_copy(rig.timeout, sizeof(rig.timeout), text);
    if (str_equals(key, ":path"))
        (void)str_copy(rig.path, sizeof(rig.path), text);
    if (str_equals(key, ":authority"))
        (void)str_copy(rig.authority, sizeof(rig.authority), text);
    if (str_equals(key, ":scheme"))
        (void)str_copy(rig.scheme, sizeof(rig.scheme), text);
    return 0;
}

static int server_data(nghttp2_session *ng, uint8_t flags, int32_t id, const uint8_t *bytes, size_t len,
                       void *user_data)
{
    (void)ng;
    (void)flags;
    (void)id;
    (void)user_data;
    size_t room = sizeof(rig.request) - rig.request_len, n = len < room ? len : room;
    memcpy(rig.request + rig.request_len, bytes, n);
    rig.request_len += n;
    return 0;
}

static void new_server(void)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    assert_int_equal(nghttp2_session_callbacks_new(&callbacks), 0);
    assert_int_equal(nghttp2_option_new(&option), 0);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, server_frame);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, server_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, server_data);
    nghttp2_option_set_no_http_messaging(option, 1);
    assert_int_equal(nghttp2_session_server_new2(&rig.server, callbacks, NULL, option), 0);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    (void)nghttp2_submit_settings(rig.server, 0, NULL, 0);
}

static void connect_rig(void)
{
    struct rpc_env env = {.limits = &rig.limits,
                          .peer = "test",
                          .wake = env_wake,
                          .again = env_wake,
                          .limit_hit = env_limit_hit,
                          .established = env_established};
    new_server();
    rig.session = rpc_client_session_new(&rig.client, &env, rig.now_ns);
}

static void disconnect_rig(void)
{
    rpc_client_session_free(rig.session, "Connection reset by peer");
    rig.session = NULL;
    nghttp2_session_del(rig.server);
    rig.server = NULL;
}

static void start_rig(void)
{
    memset(&rig, 0, sizeof(rig));
    rig.now_ns = 1000 * NS_PER_S;
    rig.limits = net_limits_default;
    rpc_client_core_init(&rig.client, &(struct rpc_client_config){.address = "node:6000", .max_message_bytes = 1000},
                         &rig_io);
}

static void stop_rig(void)
{
    rpc_client_cancel_all(&rig.client);
    rpc_client_reap(&rig.client);
    if (rig.session)
        disconnect_rig();
    rpc_client_core_fini(&rig.client);
}

static void to_client(void)
{
    const uint8_t *bytes;
    ssize_t n;
    while (rig.session && (n = nghttp2_session_mem_send(rig.server, &bytes)) > 0)
        (void)rpc_client_session_receive(rig.session, bytes, (size_t)n, rig.now_ns);
}

static void pump(void)
{
    const uint8_t *bytes;
    for (int i = 0; i < 50; i++) {
        size_t n;
        while ((n = rpc_client_session_pull(rig.session, &bytes)) > 0)
            assert_true(nghttp2_session_mem_recv(rig.server, bytes, n) == (ssize_t)n);
        to_client();
    }
    rpc_client_reap(&rig.client);
}

static void on_message(void *context, struct str message)
{
    struct result *r = (struct result *)context;
    r->n_messages++;
    r->message_bytes += message.len;
    (void)str_copy(r->last, sizeof(r->last), message);
}

static void on_done(void *context, const struct err *status)
{
    struct result *r = (struct result *)context;
    r->n_done++;
    r->status = *status;
}

static struct rpc_client_call *call(struct result *r, int64_t deadline_ns, bool is_waiting)
{
    memset(r, 0, sizeof(*r));
    return rpc_client_start(&rig.client,
                            &(struct rpc_client_call_config){.path = "/t.T/Unary",
                                                             .deadline_ns = deadline_ns,
                                                             .is_wait_for_ready = is_waiting,
                                                             .message = on_message,
                                                             .done = on_done,
                                                             .context = r},
                            "hello", 5);
}

/* ---- what answers mean ---- */

#define OK_HEADERS                                                                                                     \
    {                                                                                                                  \
        ":status", "200", "content-type", "application/grpc"                                                           \
    }

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

static const struct script plain = {
    .headers = OK_HEADERS, .data = "\0\0\0\0\2ok", .data_len = 7, .trailers = {"grpc-status", "0"}};
static const struct script silent = {.is_silent = true};
static const struct script refusing = {.is_reset = true, .reset_code = NGHTTP2_REFUSED_STREAM};

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
        cmocka_unit_test(test_answers_become_messages_and_a_status),
        cmocka_unit_test(test_a_request_is_what_grpc_asks_for),
        cmocka_unit_test(test_a_deadline_resets_the_stream_and_is_told),
        cmocka_unit_test(test_cancel_resets_the_stream_and_done_comes_later),
        cmocka_unit_test(test_refused_streams_are_tried_again_three_times),
        cmocka_unit_test(test_goaway_moves_unprocessed_calls_to_a_new_connection),
        cmocka_unit_test(test_a_lost_connection_ends_its_calls_with_unavailable),
        cmocka_unit_test(test_a_failed_dial_fails_impatient_calls_and_keeps_the_others),
        cmocka_unit_test(test_a_waiting_call_tells_at_its_deadline_why_there_was_no_connection),
        cmocka_unit_test(test_back_off_grows_to_its_ceiling_and_starts_again_after_success),
        cmocka_unit_test(test_a_server_that_never_speaks_is_given_up),
        cmocka_unit_test(test_a_silent_connection_is_pinged_and_given_up),
        cmocka_unit_test(test_too_many_pings_doubles_the_interval),
        cmocka_unit_test(test_a_server_that_floods_is_left),
        cmocka_unit_test(test_headers_without_end_are_not_kept),
        cmocka_unit_test(test_the_authority_of_a_unix_socket_is_localhost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
