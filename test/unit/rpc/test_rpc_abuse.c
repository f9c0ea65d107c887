/* What a hostile or broken peer can do to a server session (the table of attacks of docs/internals/rpc.md): each is
 * stopped or bounded, memory stays flat, and the limit that did it is counted. */
#include "peer.h"

#include <malloc.h>

/* ASan's count of live bytes where it is linked, else the allocator's. */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static size_t heap_bytes(void)
{
    return __sanitizer_get_current_allocated_bytes ? __sanitizer_get_current_allocated_bytes() : mallinfo2().uordblks;
}

static struct rpc_call *open_call;
static int n_ended;

static void echo(struct rpc_call *call, struct str request, void *context)
{
    (void)context;
    rpc_call_reply(call, request.ptr, request.len);
}

static void keep_open(struct rpc_call *call, struct str request, void *context)
{
    (void)context;
    (void)request;
    open_call = call;
    rpc_call_send_headers(call);
}

static void ended(struct rpc_call *call, void *context)
{
    (void)call;
    (void)context;
    n_ended++;
}

static const struct rpc_method methods[] = {
    {.path = "/t.T/Unary", .deadline_ns = NS_PER_S, .message = echo, .ended = ended},
    {.path = "/t.T/Stream", .is_server_streaming = true, .message = keep_open, .ended = ended},
};

static void start(struct peer *p)
{
    n_ended = 0;
    open_call = NULL;
    peer_init(p, methods, ARRAY_LEN(methods));
    peer_pump(p);
}

/* ---- raw frames ---- */

enum { H_END_STREAM = 1, H_END_HEADERS = 4, H_PADDED = 8 };

/* A request's header block without Huffman or dynamic table: POST http /t.T/Unary. */
static size_t put_block(uint8_t *out)
{
    static const char block[] = "\x83\x86\x04\x0a/t.T/Unary\x01\x04test\x0f\x10\x10"
                                "application/grpc";
    memcpy(out, block, sizeof(block) - 1);
    return sizeof(block) - 1;
}

static size_t put_request(uint8_t *out, int32_t id, uint8_t flags)
{
    size_t len = put_block(out + 9);
    (void)peer_frame(out, len, NGHTTP2_HEADERS, flags, id);
    return 9 + len;
}

static size_t put_u32_frame(uint8_t *out, uint8_t type, int32_t id, uint32_t value)
{
    (void)peer_frame(out, 4, type, 0, id);
    for (int i = 0; i < 4; i++)
        out[9 + i] = (uint8_t)(value >> (24 - 8 * i));
    return 13;
}

/* Writes the nth attack step; returns its length. */
typedef size_t (*step_fn)(uint8_t *out, int n);

struct flood {
    const char *name;
    step_fn step;
    int n_steps;
    bool is_deaf;         /* never reads what we send */
    bool is_closed;       /* want: the connection is closed */
    int closed_before;    /* by this step at the latest */
    enum net_limit limit; /* want: this was counted; NET_LIMIT_COUNT = nghttp2's own */
};

static size_t rapid_reset(uint8_t *out, int n)
{
    size_t len = put_request(out, 2 * n + 1, H_END_HEADERS);
    return len + put_u32_frame(out + len, NGHTTP2_RST_STREAM, 2 * n + 1, NGHTTP2_CANCEL);
}

static size_t reset_of_closed(uint8_t *out, int n)
{
    size_t len = n == 0 ? put_request(out, 1, H_END_HEADERS | H_END_STREAM) : 0;
    return len + put_u32_frame(out + len, NGHTTP2_RST_STREAM, 1, NGHTTP2_CANCEL);
}

static size_t continuations(uint8_t *out, int n)
{
    if (n == 0)
        return put_request(out, 1, 0);
    out[9] = 0x82; /* something indexed */
    return peer_frame(out, 1, NGHTTP2_CONTINUATION, 0, 1) + 1;
}

static size_t pings(uint8_t *out, int n)
{
    memset(out + 9, n, 8);
    return peer_frame(out, 8, NGHTTP2_PING, 0, 0) + 8;
}

static size_t ping_acks(uint8_t *out, int n)
{
    memset(out + 9, n, 8);
    return peer_frame(out, 8, NGHTTP2_PING, 1, 0) + 8;
}

static size_t settings(uint8_t *out, int n)
{
    (void)n;
    return peer_frame(out, 0, NGHTTP2_SETTINGS, 0, 0);
}

static size_t empty_data(uint8_t *out, int n)
{
    size_t len = n == 0 ? put_request(out, 1, H_END_HEADERS) : 0;
    return len + peer_frame(out + len, 0, NGHTTP2_DATA, 0, 1);
}

/* MadeYouReset (CVE-2025-8671) by more DATA than the content-length says: the reset is ours. */
static size_t wrong_length(uint8_t *out, int n)
{
    static const uint8_t three[] = {0x0f, 0x0d, 1, '3'}; /* content-length (static index 28), not indexed: "3" */
    size_t len = put_block(out + 9);
    memcpy(out + 9 + len, three, sizeof(three));
    len += sizeof(three);
    (void)peer_frame(out, len, NGHTTP2_HEADERS, H_END_HEADERS, 2 * n + 1);
    memset(out + 9 + len + 9, 0, 10);
    return 9 + len + peer_frame(out + 9 + len, 10, NGHTTP2_DATA, H_END_STREAM, 2 * n + 1) + 10;
}

static size_t padding_only(uint8_t *out, int n)
{
    size_t len = n == 0 ? put_request(out, 1, H_END_HEADERS) : 0;
    memset(out + len + 9, 0, 4);
    out[len + 9] = 3;
    return len + peer_frame(out + len, 4, NGHTTP2_DATA, H_PADDED, 1) + 4;
}

static size_t unknown_frames(uint8_t *out, int n)
{
    (void)n;
    return peer_frame(out, 0, 0xEE, 0, 0);
}

static size_t data_of_closed(uint8_t *out, int n)
{
    size_t len = n == 0 ? put_request(out, 1, H_END_HEADERS | H_END_STREAM) : 0;
    return len + peer_frame(out + len, 0, NGHTTP2_DATA, 0, 1);
}

static size_t priorities(uint8_t *out, int n)
{
    memset(out + 9, 0, 5);
    return peer_frame(out, 5, NGHTTP2_PRIORITY, 0, 2 * n + 1) + 5;
}

static size_t window_updates(uint8_t *out, int n)
{
    (void)n;
    return put_u32_frame(out, NGHTTP2_WINDOW_UPDATE, 0, 1);
}

static size_t window_overflow(uint8_t *out, int n)
{
    size_t len = put_request(out, 2 * n + 1, H_END_HEADERS);
    return len + put_u32_frame(out + len, NGHTTP2_WINDOW_UPDATE, 2 * n + 1, 0x7FFFFFFF);
}

static size_t self_dependency(uint8_t *out, int n)
{
    size_t len = put_request(out, 2 * n + 1, H_END_HEADERS);
    uint8_t *frame = out + len;
    len += put_u32_frame(frame, NGHTTP2_PRIORITY, 2 * n + 1, (uint32_t)(2 * n + 1));
    frame[2] = 5;
    out[len] = 0;
    return len + 1;
}

static size_t bad_headers(uint8_t *out, int n)
{
    static const char extra[] = "\x00\x0a"
                                "connection\x05"
                                "close";
    size_t len = put_block(out + 9);
    memcpy(out + 9 + len, extra, sizeof(extra) - 1);
    len += sizeof(extra) - 1;
    return peer_frame(out, len, NGHTTP2_HEADERS, H_END_HEADERS | H_END_STREAM, 2 * n + 1) + len;
}

static size_t bad_method(uint8_t *out, int n) /* PUT: 405 */
{
    static const char block[] = "\x02\x03PUT\x86\x84\x01\x04test";
    memcpy(out + 9, block, sizeof(block) - 1);
    return peer_frame(out, sizeof(block) - 1, NGHTTP2_HEADERS, H_END_HEADERS | H_END_STREAM, 2 * n + 1) +
           sizeof(block) - 1;
}

static size_t no_content_type(uint8_t *out, int n) /* 415 */
{
    static const char block[] = "\x83\x86\x84\x01\x04test";
    memcpy(out + 9, block, sizeof(block) - 1);
    return peer_frame(out, sizeof(block) - 1, NGHTTP2_HEADERS, H_END_HEADERS | H_END_STREAM, 2 * n + 1) +
           sizeof(block) - 1;
}

static size_t never_ending_requests(uint8_t *out, int n)
{
    return put_request(out, 2 * n + 1, H_END_HEADERS);
}

static size_t goaways(uint8_t *out, int n)
{
    (void)n;
    memset(out + 9, 0, 8);
    return peer_frame(out, 8, NGHTTP2_GOAWAY, 0, 0) + 8;
}

static size_t finished_calls(uint8_t *out, int n) /* answers that are never read */
{
    size_t len = put_request(out, 2 * n + 1, H_END_HEADERS);
    memcpy(out + len + 9, "\0\0\0\0\5hello", 10);
    return len + peer_frame(out + len, 10, NGHTTP2_DATA, H_END_STREAM, 2 * n + 1) + 10;
}

static const struct flood floods[] = {
    {"rapid reset", rapid_reset, 20000, false, true, 1200, NET_LIMIT_RESETS_PER_S},
    {"rapid reset, deaf", rapid_reset, 20000, true, true, 1200, NET_LIMIT_RESETS_PER_S},
    {"400 cancels at once are legitimate", rapid_reset, 400, false, false, 0, NET_LIMIT_COUNT},
    {"RST of a closed stream", reset_of_closed, 20000, false, true, 2000, NET_LIMIT_RESETS_PER_S},
    {"CONTINUATION flood", continuations, 1000, false, true, 500, NET_LIMIT_COUNT},
    {"PING flood, deaf", pings, 100000, true, true, 1000, NET_LIMIT_PING_STRIKES},
    {"PING flood", pings, 100000, false, true, 1000, NET_LIMIT_PING_STRIKES},
    {"PING ACK flood", ping_acks, 100000, false, true, 1000, NET_LIMIT_GLITCHES_PER_S},
    {"SETTINGS flood, deaf", settings, 100000, true, true, 1000, NET_LIMIT_COUNT},
    {"SETTINGS flood", settings, 100000, false, true, 1000, NET_LIMIT_GLITCHES_PER_S},
    {"empty DATA", empty_data, 100000, false, true, 1000, NET_LIMIT_GLITCHES_PER_S},
    {"padding only", padding_only, 100000, false, true, 1000, NET_LIMIT_GLITCHES_PER_S},
    {"unknown frames", unknown_frames, 100000, false, true, 1000, NET_LIMIT_GLITCHES_PER_S},
    {"DATA after the end", data_of_closed, 100000, false, true, 1000, NET_LIMIT_COUNT},
    {"PRIORITY flood", priorities, 100000, false, true, 1000, NET_LIMIT_GLITCHES_PER_S},
    {"GOAWAY flood", goaways, 100000, false, true, 1000, NET_LIMIT_GLITCHES_PER_S},
    {"WINDOW_UPDATE flood", window_updates, 100000, false, true, 5000, NET_LIMIT_GLITCHES_PER_S},
    {"window overflow", window_overflow, 20000, false, true, 400, NET_LIMIT_GLITCHES_PER_S},
    {"self dependency", self_dependency, 20000, false, true, 100, NET_LIMIT_COUNT},
    {"bad headers", bad_headers, 20000, false, true, 400, NET_LIMIT_GLITCHES_PER_S},
    {"wrong content-length", wrong_length, 20000, false, true, 400, NET_LIMIT_GLITCHES_PER_S},
    {"405 storm", bad_method, 20000, false, true, 400, NET_LIMIT_GLITCHES_PER_S},
    {"415 storm, deaf", no_content_type, 20000, true, true, 400, NET_LIMIT_GLITCHES_PER_S},
    {"streams beyond the limit", never_ending_requests, 20000, false, true, 1200, NET_LIMIT_STREAMS},
    {"streams beyond the limit, deaf", never_ending_requests, 20000, true, true, 1200, NET_LIMIT_STREAMS},
    {"answers that are not read", finished_calls, 100000, true, true, 20000, NET_LIMIT_COUNT},
};

/* The peer reads what we send, or as much of it as a connection takes before it is full. */
static void discard_output(struct peer *p, bool is_deaf)
{
    const uint8_t *bytes;
    size_t n, full = (size_t)p->limits.values[NET_LIMIT_OUTPUT_BYTES] / 2;
    while ((!is_deaf || p->n_discarded < full) && (n = rpc_session_pull(p->session, &bytes)) > 0)
        p->n_discarded += n;
}

enum { HEAP_ALLOWED_BYTES = 3 << 20 }; /* a full house of 1000 streams, and no more */

static int run_flood(struct peer *p, const struct flood *f, size_t *ret_peak)
{
    static uint8_t chunk[4096];
    size_t base = heap_bytes(), peak = base, len = 0;
    int n = 0;
    for (; n < f->n_steps && p->rc == 0; n++) {
        len += f->step(chunk + len, n);
        if (len < sizeof(chunk) - 512 && n + 1 < f->n_steps)
            continue;
        peer_feed(p, chunk, len);
        len = 0;
        discard_output(p, f->is_deaf);
        size_t now = heap_bytes();
        peak = now > peak ? now : peak;
    }
    *ret_peak = peak - base;
    return n;
}

static void test_floods_are_stopped_with_flat_memory(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(floods); i++) {
        const struct flood *f = &floods[i];
        struct peer p;
        start(&p);
        size_t peak = 0;
        int n = run_flood(&p, f, &peak);
        bool is_closed = p.rc != 0 || rpc_session_is_done(p.session);
        bool is_counted = f->limit == NET_LIMIT_COUNT || p.hits[f->limit] > 0;
        if (is_closed != f->is_closed || (f->is_closed && n > f->closed_before) || !is_counted ||
            peak > HEAP_ALLOWED_BYTES)
            fail_msg("%s: closed %d after %d steps, limit counted %d, %zu bytes of heap", f->name, is_closed, n,
                     is_counted, peak);
        peer_fini(&p);
    }
}

/* ---- pings ---- */

static void test_pings_strike_with_the_text_that_clients_know(void **state)
{
    (void)state;
    struct peer p;
    start(&p);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(p.rc, 0);
        assert_int_equal(nghttp2_submit_ping(p.ng, 0, NULL), 0);
        (void)peer_send(&p);
    }
    (void)peer_read(&p);
    assert_int_equal(p.goaway_code, NGHTTP2_ENHANCE_YOUR_CALM);
    assert_string_equal(p.goaway_text, "too_many_pings");
    assert_int_equal(p.hits[NET_LIMIT_PING_INTERVAL_MS], 3);
    assert_int_equal(p.hits[NET_LIMIT_PING_STRIKES], 1);
    peer_fini(&p);
}

static void test_a_ping_after_each_answer_is_no_strike(void **state)
{
    (void)state;
    struct peer p;
    start(&p);
    (void)peer_request(&p, &(struct request){.path = "/t.T/Stream", BODY("\1x")});
    peer_pump(&p);
    for (int i = 0; i < 200; i++) { /* the bandwidth estimator of grpc-go */
        assert_int_equal(rpc_call_send(open_call, "x", 1), 0);
        peer_pump(&p);
        assert_int_equal(nghttp2_submit_ping(p.ng, 0, (const uint8_t *)"\2\4\20\20\11\16\7\7"), 0);
        peer_pump(&p);
    }
    assert_int_equal(p.rc, 0);
    assert_int_equal(p.n_ping_acks, 200);
    peer_fini(&p);
}

static void test_an_answer_forgives_earlier_strikes(void **state)
{
    (void)state;
    struct peer p;
    start(&p);
    (void)peer_request(&p, &(struct request){.path = "/t.T/Stream", BODY("\1x")});
    peer_pump(&p);
    for (int i = 0; i < 40; i++) {
        if (i % 3 == 0)
            assert_int_equal(rpc_call_send(open_call, "x", 1), 0);
        assert_int_equal(nghttp2_submit_ping(p.ng, 0, NULL), 0);
        (void)peer_read(&p);
        (void)peer_send(&p);
    }
    assert_int_equal(p.rc, 0);
    peer_fini(&p);
}

static void test_pings_at_the_allowed_interval_are_welcome(void **state)
{
    (void)state;
    struct peer p;
    start(&p);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(nghttp2_submit_ping(p.ng, 0, NULL), 0);
        peer_pump(&p);
        p.now_ns += 10 * NS_PER_S;
    }
    assert_int_equal(p.rc, 0);
    peer_fini(&p);
}

/* ---- header lists ---- */

static void test_headers_over_the_limit_are_answered_with_431(void **state)
{
    (void)state;
    struct peer p;
    char value[15000];
    memset(value, 'v', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    start(&p);
    (void)peer_request(&p, &(struct request){.extra = {"a", value}, BODY("\1x")});
    peer_pump(&p);
    assert_string_equal(p.answers[0].grpc_status, "0");
    (void)peer_request(&p, &(struct request){.extra = {"a", value, "b", value}, BODY("\1x")});
    peer_pump(&p);
    assert_string_equal(p.answers[1].status, "431");
    assert_string_equal(p.answers[1].grpc_status, "8");
    assert_int_equal(p.hits[NET_LIMIT_HEADER_LIST_BYTES], 1);
    assert_int_equal(p.rc, 0);
    peer_fini(&p);
}

/* One 4 kB entry in the dynamic table, named by one byte 16,000 times: 64 MB of headers in 20 kB. */
static void test_an_hpack_bomb_costs_no_more_than_four_lists(void **state)
{
    (void)state;
    struct peer p;
    static uint8_t bytes[16384 + 9];
    start(&p);
    size_t len = 9 + put_block(bytes + 9);
    bytes[len++] = 0x40; /* literal with indexing, new name */
    bytes[len++] = 1;
    bytes[len++] = 'x';
    bytes[len++] = 0x7F; /* length 127 + 3873 = 4000 */
    bytes[len++] = 0xA1;
    bytes[len++] = 0x1E;
    memset(bytes + len, 'v', 4000);
    len += 4000;
    memset(bytes + len, 0xBE, sizeof(bytes) - len); /* index 62: the newest entry */
    (void)peer_frame(bytes, sizeof(bytes) - 9, NGHTTP2_HEADERS, H_END_HEADERS, 1);
    size_t base = heap_bytes();
    peer_feed(&p, bytes, sizeof(bytes));
    assert_int_equal(p.rc, -1);
    assert_true(p.hits[NET_LIMIT_HEADER_LIST_BYTES] >= 1);
    assert_true(heap_bytes() < base + 65536);
    (void)peer_read(&p);
    assert_int_equal(p.goaway_code, NGHTTP2_ENHANCE_YOUR_CALM);
    peer_fini(&p);
}

/* ---- memory ---- */

static void test_unfinished_messages_share_the_connections_budget(void **state)
{
    (void)state;
    struct peer p;
    char part[8192 + 5] = {0};
    part[3] = (char)0xFF; /* announces 65,280 bytes */
    start(&p);
    p.limits.values[NET_LIMIT_RECEIVE_BYTES] = 100000;
    size_t base = heap_bytes();
    for (int i = 0; i < 50; i++) {
        (void)peer_request(&p, &(struct request){.body = part, .body_len = sizeof(part), .is_open = true});
        peer_pump(&p);
        assert_true(p.server->received_bytes <= 100000);
    }
    assert_true(heap_bytes() < base + 600000);
    assert_string_equal(p.answers[49].grpc_status, "8");
    assert_int_equal(p.hits[NET_LIMIT_RECEIVE_BYTES], 38);
    assert_int_equal(nghttp2_submit_rst_stream(p.ng, 0, 1, NGHTTP2_CANCEL), 0); /* room again */
    peer_pump(&p);
    (void)peer_request(&p, &(struct request){BODY("\1x")});
    peer_pump(&p);
    assert_string_equal(p.answers[50].grpc_status, "0");
    peer_fini(&p);
}

static void test_all_connections_share_one_budget(void **state)
{
    (void)state;
    struct peer p;
    char part[5000] = {0};
    part[3] = 32; /* announces 8,192 */
    start(&p);
    int64_t others = rpc_h2_limit(&p.session->h2, NET_LIMIT_RECEIVE_BYTES_ALL);
    p.server->received_bytes = others;
    (void)peer_request(&p, &(struct request){.body = part, .body_len = sizeof(part), .is_open = true});
    peer_pump(&p);
    assert_string_equal(p.answers[0].grpc_status, "8");
    assert_int_equal(p.hits[NET_LIMIT_RECEIVE_BYTES_ALL], 1);
    (void)peer_request(&p, &(struct request){BODY("\1x")}); /* what KEDA sends is served whoever holds how much */
    p.server->unsent_bytes = rpc_h2_limit(&p.session->h2, NET_LIMIT_OUTPUT_BYTES_ALL);
    peer_pump(&p);
    assert_string_equal(p.answers[1].grpc_status, "0");
    assert_int_equal(p.hits[NET_LIMIT_RECEIVE_BYTES_ALL] + p.hits[NET_LIMIT_OUTPUT_BYTES_ALL], 1);
    p.server->received_bytes -= others;
    p.server->unsent_bytes = 0;
    peer_fini(&p);
}

static void test_answers_to_all_connections_have_a_ceiling(void **state)
{
    (void)state;
    struct peer p;
    char message[5000] = {0};
    start(&p);
    (void)peer_request(&p, &(struct request){.path = "/t.T/Stream", BODY("\1x")});
    peer_pump(&p);
    int64_t others = rpc_h2_limit(&p.session->h2, NET_LIMIT_OUTPUT_BYTES_ALL);
    p.server->unsent_bytes += others;
    assert_int_equal(rpc_call_send(open_call, message, sizeof(message)), -1);
    assert_int_equal(p.hits[NET_LIMIT_OUTPUT_BYTES_ALL], 1);
    assert_int_equal(rpc_call_send(open_call, message, 2000), 0);
    assert_int_equal(rpc_call_send(open_call, message, 2000), 0);
    assert_int_equal(rpc_call_send(open_call, message, 2000), -1); /* that was its own share */
    p.server->unsent_bytes -= others;
    peer_fini(&p);
}

static void test_streams_of_all_connections_have_a_ceiling(void **state)
{
    (void)state;
    struct peer p;
    start(&p);
    p.limits.values[NET_LIMIT_STREAMS_ALL] = 2; /* others hold all of them: this one still has its own few */
    for (int i = 0; i < NET_OWN_STREAMS + 1; i++)
        (void)peer_request(&p, &(struct request){.path = "/t.T/Stream", BODY("\1x")});
    peer_pump(&p);
    assert_false(p.answers[NET_OWN_STREAMS - 1].is_reset);
    assert_true(p.answers[NET_OWN_STREAMS].is_reset);
    assert_int_equal(p.answers[NET_OWN_STREAMS].reset_code, NGHTTP2_REFUSED_STREAM);
    assert_int_equal(p.hits[NET_LIMIT_STREAMS_ALL], 1);
    assert_int_equal(p.rc, 0);
    rpc_session_tick(p.session, p.now_ns + 30 * NS_PER_S); /* its other streams go on */
    assert_false(rpc_session_is_done(p.session));
    assert_int_equal(p.hits[NET_LIMIT_HEADERS_MS], 0);
    peer_fini(&p);
}

static void test_refusals_that_are_not_read_end_the_connection(void **state)
{
    (void)state;
    struct peer p;
    static uint8_t bytes[512];
    start(&p);
    p.limits.values[NET_LIMIT_STREAMS_ALL] = 0;
    p.limits.values[NET_LIMIT_STREAMS] = -400; /* 2 x streams + 1000 = 200 frames may wait */
    for (int i = 0; i < NET_OWN_STREAMS; i++)
        (void)peer_request(&p, &(struct request){.path = "/t.T/Stream", BODY("\1x")});
    peer_pump(&p);
    size_t base = heap_bytes();
    int n = 0;
    for (; n < 20000 && p.rc == 0; n++)
        peer_feed(&p, bytes, put_request(bytes, 2 * (NET_OWN_STREAMS + n) + 1, H_END_HEADERS | H_END_STREAM));
    assert_in_range(n, 200, 202);
    assert_true(p.session->h2.is_dead);
    assert_int_equal(p.hits[NET_LIMIT_OUTPUT_BYTES], 1);
    assert_true(heap_bytes() < base + (1 << 20));
    peer_fini(&p);
}

/* ---- frames where none belong ---- */

/* The nth row: what is sent, cut in two reads, and the GOAWAY that it brings (-1 = none). */
static void test_frames_after_a_streams_end(void **state)
{
    (void)state;
    enum { HEADERS_AGAIN, DATA_AGAIN, DATA_AFTER_RESET, PRIORITY_OF_0, DATA_AFTER_OUR_RESET, ROWS };
    static const int codes[ROWS] = {NGHTTP2_STREAM_CLOSED, NGHTTP2_STREAM_CLOSED, NGHTTP2_STREAM_CLOSED,
                                    NGHTTP2_PROTOCOL_ERROR, -1};
    for (int row = 0; row < ROWS; row++) {
        struct peer p;
        uint8_t bytes[256];
        bool is_left_open = row == DATA_AFTER_RESET || row == DATA_AFTER_OUR_RESET;
        start(&p);
        peer_feed(&p, bytes, put_request(bytes, 1, H_END_HEADERS | (is_left_open ? 0 : H_END_STREAM)));
        (void)peer_read(&p);
        if (row == DATA_AFTER_RESET)
            peer_feed(&p, bytes, put_u32_frame(bytes, NGHTTP2_RST_STREAM, 1, NGHTTP2_CANCEL));
        if (row == DATA_AFTER_OUR_RESET)
            (void)rpc_server_sweep(p.server, p.now_ns + 20 * NS_PER_S);
        (void)peer_read(&p);
        assert_int_equal(p.server->n_calls, 0);
        assert_int_equal(p.rc, 0);
        bytes[9] = 0;
        size_t len = row == HEADERS_AGAIN   ? put_request(bytes, 1, H_END_HEADERS | H_END_STREAM)
                     : row == PRIORITY_OF_0 ? peer_frame(bytes, 5, NGHTTP2_PRIORITY, 0, 0) + 5
                                            : peer_frame(bytes, 1, NGHTTP2_DATA, 0, 1) + 1;
        peer_feed(&p, bytes, len);
        assert_int_equal(p.rc, codes[row] < 0 ? 0 : -1);
        (void)peer_read(&p);
        assert_int_equal(p.is_goaway ? (int)p.goaway_code : -1, codes[row]);
        peer_fini(&p);
    }
}

/* ---- time ---- */

static void test_settings_must_be_acknowledged(void **state)
{
    (void)state;
    struct peer p;
    peer_init(&p, methods, ARRAY_LEN(methods));
    (void)peer_send(&p); /* preface and SETTINGS, but it reads nothing */
    rpc_session_tick(p.session, p.now_ns + 10 * NS_PER_S - 1);
    assert_false(rpc_session_is_done(p.session));
    rpc_session_tick(p.session, p.now_ns + 10 * NS_PER_S);
    assert_true(rpc_session_is_done(p.session));
    assert_int_equal(p.hits[NET_LIMIT_SETTINGS_ACK_MS], 1);
    peer_fini(&p);
}

static void test_slow_headers_end_the_connection(void **state)
{
    (void)state;
    struct peer p;
    uint8_t bytes[128];
    start(&p);
    size_t len = put_request(bytes, 1, H_END_HEADERS);
    peer_feed(&p, bytes, len - 1);
    for (int i = 0; i < 9; i++)
        rpc_session_tick(p.session, p.now_ns + i * NS_PER_S);
    assert_false(rpc_session_is_done(p.session));
    rpc_session_tick(p.session, p.now_ns + 10 * NS_PER_S);
    assert_true(rpc_session_is_done(p.session));
    assert_int_equal(p.hits[NET_LIMIT_HEADERS_MS], 1);
    peer_fini(&p);
}

static void test_silence_is_pinged_and_ends_without_an_answer(void **state)
{
    (void)state;
    struct peer p;
    start(&p);
    rpc_session_tick(p.session, p.now_ns + 59 * NS_PER_S);
    (void)peer_read(&p);
    assert_int_equal(p.n_pings, 0);
    p.now_ns += 60 * NS_PER_S;
    rpc_session_tick(p.session, p.now_ns);
    peer_pump(&p);
    assert_int_equal(p.n_pings, 1);
    assert_int_equal(p.hits[NET_LIMIT_KEEPALIVE_MS], 1);
    rpc_session_tick(p.session, p.now_ns + 30 * NS_PER_S); /* it was answered */
    assert_false(rpc_session_is_done(p.session));
    p.now_ns += 60 * NS_PER_S;
    rpc_session_tick(p.session, p.now_ns);
    (void)peer_read(&p);
    assert_int_equal(p.n_pings, 2);
    rpc_session_tick(p.session, p.now_ns + 20 * NS_PER_S);
    assert_true(rpc_session_is_done(p.session));
    assert_int_equal(p.hits[NET_LIMIT_KEEPALIVE_TIMEOUT_MS], 1);
    peer_fini(&p);
}

/* Any byte is life, but it does not stand for ever: whoever never answers a ping is still found out. */
static void test_other_bytes_are_life_and_silence_after_them_is_not(void **state)
{
    (void)state;
    struct peer p;
    uint8_t bytes[64];
    const uint8_t *out;
    start(&p);
    for (int i = 0; i < 6; i++) {
        p.now_ns += 60 * NS_PER_S;
        rpc_session_tick(p.session, p.now_ns); /* a ping, which this peer does not see */
        while (rpc_session_pull(p.session, &out) > 0)
            ;
        p.now_ns += 10 * NS_PER_S;
        peer_feed(&p, bytes, put_u32_frame(bytes, NGHTTP2_WINDOW_UPDATE, 0, 1));
        rpc_session_tick(p.session, p.now_ns + 15 * NS_PER_S);
        assert_false(rpc_session_is_done(p.session));
    }
    assert_int_equal(p.hits[NET_LIMIT_KEEPALIVE_MS], 6);
    rpc_session_tick(p.session, p.now_ns + 60 * NS_PER_S);
    rpc_session_tick(p.session, p.now_ns + 80 * NS_PER_S);
    assert_true(rpc_session_is_done(p.session));
    peer_fini(&p);
}

/* ---- turns ---- */

static void test_frames_beyond_a_turns_budget_wait_for_the_next(void **state)
{
    (void)state;
    struct peer p;
    static uint8_t bytes[65536];
    start(&p);
    p.limits.values[NET_LIMIT_FRAMES_PER_TURN] = 100;
    size_t len = 0;
    for (int i = 0; i < 400; i++)
        len += finished_calls(bytes + len, i);
    peer_feed(&p, bytes, len);
    discard_output(&p, false);
    assert_int_equal(p.n_again, 1);
    assert_int_equal(n_ended, 50);
    for (int turns = 0; p.n_again > turns; turns++) {
        peer_feed(&p, NULL, 0);
        discard_output(&p, false);
    }
    assert_int_equal(n_ended, 400); /* none is lost */
    assert_int_equal(p.rc, 0);
    peer_fini(&p);
}

static void count_page(void *context, const struct net_get_request *request, struct net_get_response *response)
{
    (void)request;
    ++*(int *)context;
    (void)buf_append_str(&response->body, "page");
}

/* Pages cost more than calls: a few a turn, as over HTTP/1.1. */
static void test_pages_have_a_budget_a_turn(void **state)
{
    (void)state;
    static const char block[] = "\x82\x86\x04\x02/p\x01\x04test";
    struct peer p;
    uint8_t bytes[4096];
    int n_pages = 0;
    size_t len = 0;
    start(&p);
    net_gets_add(p.gets, "/p", count_page, &n_pages);
    for (int i = 0; i < 100; i++) {
        len += peer_frame(bytes + len, sizeof(block) - 1, NGHTTP2_HEADERS, H_END_HEADERS | H_END_STREAM, 2 * i + 1);
        memcpy(bytes + len, block, sizeof(block) - 1);
        len += sizeof(block) - 1;
    }
    peer_feed(&p, bytes, len);
    int turns = 1;
    while (n_pages < 100) {
        assert_int_equal(n_pages, 8 * turns < 100 ? 8 * turns : 100);
        assert_int_equal(p.n_again, turns++);
        peer_feed(&p, NULL, 0);
    }
    assert_int_equal(p.hits[NET_LIMIT_REQUESTS_PER_TURN], 12);
    discard_output(&p, false);
    assert_int_equal(p.rc, 0);
    peer_fini(&p);
}

static void test_other_protocols_are_not_spoken(void **state)
{
    (void)state;
    static const char *const texts[] = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\x16\x03\x01\x02",
                                        "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct peer p;
        peer_init(&p, methods, ARRAY_LEN(methods));
        peer_feed(&p, texts[i], strlen(texts[i]));
        assert_int_equal(p.rc, -1);
        peer_fini(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floods_are_stopped_with_flat_memory),
        cmocka_unit_test(test_pings_strike_with_the_text_that_clients_know),
        cmocka_unit_test(test_a_ping_after_each_answer_is_no_strike),
        cmocka_unit_test(test_an_answer_forgives_earlier_strikes),
        cmocka_unit_test(test_pings_at_the_allowed_interval_are_welcome),
        cmocka_unit_test(test_headers_over_the_limit_are_answered_with_431),
        cmocka_unit_test(test_an_hpack_bomb_costs_no_more_than_four_lists),
        cmocka_unit_test(test_unfinished_messages_share_the_connections_budget),
        cmocka_unit_test(test_all_connections_share_one_budget),
        cmocka_unit_test(test_answers_to_all_connections_have_a_ceiling),
        cmocka_unit_test(test_streams_of_all_connections_have_a_ceiling),
        cmocka_unit_test(test_refusals_that_are_not_read_end_the_connection),
        cmocka_unit_test(test_frames_after_a_streams_end),
        cmocka_unit_test(test_settings_must_be_acknowledged),
        cmocka_unit_test(test_slow_headers_end_the_connection),
        cmocka_unit_test(test_silence_is_pinged_and_ends_without_an_answer),
        cmocka_unit_test(test_other_bytes_are_life_and_silence_after_them_is_not),
        cmocka_unit_test(test_frames_beyond_a_turns_budget_wait_for_the_next),
        cmocka_unit_test(test_pages_have_a_budget_a_turn),
        cmocka_unit_test(test_other_protocols_are_not_spoken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
