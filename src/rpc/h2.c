/* HTTP/2 sessions as both ends share them: input and output by frames, and the budgets of the abuse table. It
 * does not know what a stream carries. */
#include "rpc/h2.h"

#include <string.h>

enum {
    REST_BYTES_MAX = 262144,  /* input that waits for the next turn: what one receive brought, and no more */
    RESET_RATE_HEADROOM = 2,  /* nghttp2's own reset limit stands behind ours */
    WINDOW_CREDIT_MAX = 4000, /* WINDOW_UPDATE frames that need no DATA of ours to explain them */
    WINDOW_CREDIT_PER_FRAME = 2
};

bool rpc_bucket_take(struct rpc_bucket *b, int64_t now_ns, int64_t rate, int64_t burst)
{
    int64_t token_ns = NS_PER_S / (rate > 0 ? rate : 1);
    int64_t passed_ns = now_ns > b->last_ns ? now_ns - b->last_ns : 0;
    b->used_ns = b->used_ns > passed_ns ? b->used_ns - passed_ns : 0;
    b->last_ns = now_ns;
    if (b->used_ns + token_ns > burst * token_ns)
        return false;
    b->used_ns += token_ns;
    return true;
}

/* ---- budgets ---- */

int rpc_h2_trip(struct rpc_h2 *h, enum net_limit limit, uint32_t code, const char *text)
{
    if (limit != NET_LIMIT_COUNT)
        rpc_h2_hit(h, limit);
    if (!h->is_closing)
        (void)nghttp2_submit_goaway(h->ng, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(h->ng), code,
                                    (const uint8_t *)text, strlen(text));
    h->is_closing = true;
    h->env.wake(h->env.context);
    return NGHTTP2_ERR_CALLBACK_FAILURE;
}

int rpc_h2_glitch(struct rpc_h2 *h)
{
    int64_t rate = rpc_h2_limit(h, NET_LIMIT_GLITCHES_PER_S);
    if (rpc_bucket_take(&h->glitches, h->now_ns, rate, rate))
        return 0;
    return rpc_h2_trip(h, NET_LIMIT_GLITCHES_PER_S, NGHTTP2_ENHANCE_YOUR_CALM, "too_many_useless_frames");
}

static int on_reset_begin(struct rpc_h2 *h)
{
    int64_t rate = rpc_h2_limit(h, NET_LIMIT_RESETS_PER_S), burst = rpc_h2_limit(h, NET_LIMIT_STREAMS);
    if (rpc_bucket_take(&h->resets, h->now_ns, rate, burst))
        return 0;
    return rpc_h2_trip(h, NET_LIMIT_RESETS_PER_S, NGHTTP2_ENHANCE_YOUR_CALM, "too_many_resets");
}

static void earn_window_credit(struct rpc_h2 *h)
{
    if (h->window_credit < WINDOW_CREDIT_MAX)
        h->window_credit += WINDOW_CREDIT_PER_FRAME;
}

/* A WINDOW_UPDATE, and the ping of a server's bandwidth estimator, answer DATA of ours; what goes beyond is useless. */
static int spend_window_credit(struct rpc_h2 *h)
{
    if (h->window_credit == 0)
        return rpc_h2_glitch(h);
    h->window_credit--;
    return 0;
}

static int on_block_begin(struct rpc_h2 *h, size_t length, bool is_first)
{
    h->block_bytes = (is_first ? 0 : h->block_bytes) + (int64_t)length;
    if (is_first) {
        earn_window_credit(h);
        h->headers_since_ns = h->now_ns;
    }
    if (h->block_bytes <= 4 * rpc_h2_limit(h, NET_LIMIT_HEADER_LIST_BYTES))
        return 0;
    return rpc_h2_trip(h, NET_LIMIT_HEADER_LIST_BYTES, NGHTTP2_ENHANCE_YOUR_CALM, "header_list_too_large");
}

static uint32_t read_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Frames after the peer itself ended the stream: RFC 9113 5.1. nghttp2 forgets closed streams (no_closed_streams), so
 * the last ended ones are kept here. What is on its way to a stream that we reset is not meant. */
static int check_stream_open(struct rpc_h2 *h, uint8_t type, uint8_t flags, uint32_t id)
{
    uint32_t *slot = &h->ended_ids[(id >> 1) % RPC_ENDED_IDS];
    bool is_message = type == NGHTTP2_DATA || type == NGHTTP2_HEADERS;
    if (is_message && *slot == id)
        return rpc_h2_trip(h, NET_LIMIT_COUNT, NGHTTP2_STREAM_CLOSED, "frame_after_end_of_stream");
    if (type == NGHTTP2_RST_STREAM || (is_message && (flags & NGHTTP2_FLAG_END_STREAM)))
        *slot = id;
    return 0;
}

/* nghttp2 ignores PRIORITY as our settings say, and with it what is wrong in it: RFC 9113 6.3. */
static int on_priority(struct rpc_h2 *h, size_t length, uint32_t id, uint32_t dependency)
{
    if (id == 0 || (length == RPC_PRIORITY_BYTES && dependency == id))
        return rpc_h2_trip(h, NET_LIMIT_COUNT, NGHTTP2_PROTOCOL_ERROR, "bad_priority");
    return rpc_h2_glitch(h);
}

/* Judge a frame by its header alone. 0 or rpc_h2_trip's value. */
static int on_frame_head(struct rpc_h2 *h, size_t length, const uint8_t *head)
{
    uint8_t type = head[3], flags = head[4];
    uint32_t id = read_u32(head + 5) & INT32_MAX;
    bool is_ack = flags & NGHTTP2_FLAG_ACK;
    h->frames_in_turn++;
    if (id != 0 && h->is_server && check_stream_open(h, type, flags, id) != 0)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    switch (type) {
    case NGHTTP2_DATA:
        return length == 0 && !(flags & NGHTTP2_FLAG_END_STREAM) ? rpc_h2_glitch(h) : 0;
    case NGHTTP2_HEADERS:
    case NGHTTP2_CONTINUATION:
        return on_block_begin(h, length, type == NGHTTP2_HEADERS);
    case NGHTTP2_PRIORITY:
        return on_priority(h, length, id, read_u32(head + RPC_FRAME_HEAD_BYTES) & INT32_MAX);
    case NGHTTP2_RST_STREAM:
        return h->is_server ? on_reset_begin(h) : 0;
    case NGHTTP2_WINDOW_UPDATE:
        return spend_window_credit(h);
    case NGHTTP2_PING: /* a server counts strikes; an ACK must have been asked for */
        if (is_ack)
            return h->pings_out > 0 ? 0 : rpc_h2_glitch(h);
        return h->is_server ? 0 : spend_window_credit(h);
    case NGHTTP2_SETTINGS:
        return is_ack ? 0 : rpc_h2_glitch(h);
    default: /* GOAWAY, PUSH_PROMISE, extensions */
        return rpc_h2_glitch(h);
    }
}

/* Bytes of a frame that are looked at: its header, and the dependency of a PRIORITY. */
static size_t head_bytes(const struct rpc_h2 *h)
{
    bool is_priority = h->scan_len >= RPC_FRAME_HEAD_BYTES && h->scan_head[3] == NGHTTP2_PRIORITY &&
                       h->scan_head[2] == RPC_PRIORITY_BYTES && h->scan_head[1] == 0 && h->scan_head[0] == 0;
    return is_priority ? sizeof(h->scan_head) : RPC_FRAME_HEAD_BYTES;
}

static void on_frame_end(struct rpc_h2 *h)
{
    bool is_block = h->scan_head[3] == NGHTTP2_HEADERS || h->scan_head[3] == NGHTTP2_CONTINUATION;
    if (is_block && (h->scan_head[4] & NGHTTP2_FLAG_END_HEADERS))
        h->headers_since_ns = 0;
}

/* Find the next frame in the input before nghttp2 does: it tells nobody of those that it ignores (unknown types, closed
 * streams). Returns how many bytes reach to its end, at most len, or -1 when rpc_h2_trip was called. */
static ssize_t scan(struct rpc_h2 *h, const uint8_t *bytes, size_t len)
{
    size_t at = 0;
    if (h->scan_skip == 0) {
        while (at < len && h->scan_len < head_bytes(h))
            h->scan_head[h->scan_len++] = bytes[at++];
        if (h->scan_len < head_bytes(h))
            return (ssize_t)at;
        const uint8_t *head = h->scan_head; /* RFC 9113 section 4.1 */
        size_t length = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
        h->scan_skip = length - (h->scan_len - RPC_FRAME_HEAD_BYTES);
        h->scan_len = 0;
        if (on_frame_head(h, length, head) != 0)
            return -1;
    }
    size_t n = h->scan_skip < len - at ? h->scan_skip : len - at;
    h->scan_skip -= n;
    if (h->scan_skip == 0)
        on_frame_end(h);
    return (ssize_t)(at + n);
}

/* gRFC A8: pings that come too soon without anything of ours in between. */
static int on_ping(struct rpc_h2 *h)
{
    int64_t last_ns = h->last_ping_ns;
    h->last_ping_ns = h->now_ns;
    if (h->has_answered) {
        h->has_answered = false;
        h->ping_strikes = 0;
        return 0;
    }
    bool is_early = last_ns && h->now_ns - last_ns < rpc_h2_limit(h, NET_LIMIT_PING_INTERVAL_MS) * NS_PER_MS;
    if (!is_early)
        return 0;
    rpc_h2_hit(h, NET_LIMIT_PING_INTERVAL_MS);
    if (++h->ping_strikes <= rpc_h2_limit(h, NET_LIMIT_PING_STRIKES))
        return 0;
    return rpc_h2_trip(h, NET_LIMIT_PING_STRIKES, NGHTTP2_ENHANCE_YOUR_CALM, "too_many_pings");
}

static void on_settings(struct rpc_h2 *h, bool is_ack)
{
    if (is_ack)
        h->is_settings_acked = true;
    else if (!h->is_established) {
        h->is_established = true;
        h->env.established(h->env.context);
    }
}

int rpc_h2_on_frame_recv(struct rpc_h2 *h, const nghttp2_frame *frame)
{
    bool is_ack = frame->hd.flags & NGHTTP2_FLAG_ACK;
    switch (frame->hd.type) {
    case NGHTTP2_DATA: /* nothing but padding is as empty as empty */
        return frame->hd.length > 0 && frame->hd.length == frame->data.padlen ? rpc_h2_glitch(h) : 0;
    case NGHTTP2_SETTINGS:
        on_settings(h, is_ack);
        return 0;
    case NGHTTP2_PING:
        if (is_ack && h->pings_out > 0 && --h->pings_out == 0)
            h->ping_sent_ns = 0;
        return is_ack || !h->is_server ? 0 : on_ping(h);
    default:
        return 0;
    }
}

/* A reset that the peer provoked. nghttp2 tells of most causes beforehand, in on_invalid_frame, but not of all: DATA
 * that does not fit the content-length is one. Each cause counts once. */
static void on_provoked_reset(struct rpc_h2 *h)
{
    if (h->n_told_causes > 0)
        h->n_told_causes--;
    else
        (void)rpc_h2_glitch(h);
}

void rpc_h2_on_frame_send(struct rpc_h2 *h, const nghttp2_frame *frame)
{
    if (frame->hd.type == NGHTTP2_RST_STREAM && frame->rst_stream.error_code == NGHTTP2_PROTOCOL_ERROR)
        on_provoked_reset(h);
    if (frame->hd.type != NGHTTP2_DATA && frame->hd.type != NGHTTP2_HEADERS)
        return;
    h->has_answered = true;
    if (frame->hd.type == NGHTTP2_DATA)
        earn_window_credit(h);
}

int rpc_h2_on_invalid_frame(struct rpc_h2 *h)
{
    h->n_told_causes++;
    return rpc_h2_glitch(h);
}

static int on_invalid_frame(nghttp2_session *ng, const nghttp2_frame *frame, int error, void *user_data)
{
    (void)ng;
    (void)frame;
    (void)error;
    return rpc_h2_on_invalid_frame((struct rpc_h2 *)user_data);
}

/* ---- life ---- */

nghttp2_session_callbacks *rpc_h2_callbacks_new(void)
{
    nghttp2_session_callbacks *callbacks = NULL;
    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        abort(); /* out of memory */
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid_frame);
    return callbacks;
}

/* grpc-http2.md 2.1 has the reason for each. */
nghttp2_option *rpc_h2_option_new(bool is_server, const struct net_limits *limits)
{
    nghttp2_option *option = NULL;
    if (nghttp2_option_new(&option) != 0)
        abort(); /* out of memory */
    uint64_t streams = (uint64_t)limits->values[NET_LIMIT_STREAMS];
    uint64_t resets = (uint64_t)limits->values[NET_LIMIT_RESETS_PER_S];
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_option_set_max_outbound_ack(option, 128);
    nghttp2_option_set_max_continuations(option, 8);
    if (is_server)
        nghttp2_option_set_stream_reset_rate_limit(option, RESET_RATE_HEADROOM * streams, RESET_RATE_HEADROOM * resets);
    return option;
}

static void submit_settings(struct rpc_h2 *h, const struct rpc_h2_config *config)
{
    nghttp2_settings_entry entries[6];
    size_t n = 0;
    entries[n++] = (nghttp2_settings_entry){NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,
                                            (uint32_t)rpc_h2_limit(h, NET_LIMIT_HEADER_LIST_BYTES)};
    entries[n++] = (nghttp2_settings_entry){NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1};
    if (config->is_server)
        entries[n++] = (nghttp2_settings_entry){NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
                                                (uint32_t)rpc_h2_limit(h, NET_LIMIT_STREAMS)};
    else
        entries[n++] = (nghttp2_settings_entry){NGHTTP2_SETTINGS_ENABLE_PUSH, 0};
    if (config->has_no_tables)
        entries[n++] = (nghttp2_settings_entry){NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, 0};
    if (config->window_bytes > NGHTTP2_INITIAL_WINDOW_SIZE)
        entries[n++] = (nghttp2_settings_entry){NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, (uint32_t)config->window_bytes};
    (void)nghttp2_submit_settings(h->ng, NGHTTP2_FLAG_NONE, entries, n);
    if (config->window_bytes > NGHTTP2_INITIAL_CONNECTION_WINDOW_SIZE)
        (void)nghttp2_session_set_local_window_size(h->ng, NGHTTP2_FLAG_NONE, 0, (int32_t)config->window_bytes);
}

void rpc_h2_init(struct rpc_h2 *h, const struct rpc_h2_config *config)
{
    *h = (struct rpc_h2){.env = *config->env,
                         .is_server = config->is_server,
                         .now_ns = config->now_ns,
                         .opened_ns = config->now_ns,
                         .last_read_ns = config->now_ns,
                         .window_credit = WINDOW_CREDIT_MAX,
                         .scan_skip = config->is_server ? NGHTTP2_CLIENT_MAGIC_LEN : 0};
    buf_init(&h->rest, REST_BYTES_MAX);
    if (config->is_server)
        h->ended_ids = (uint32_t *)mem_new_array(RPC_ENDED_IDS, sizeof(*h->ended_ids));
    int rv = config->is_server ? nghttp2_session_server_new3(&h->ng, config->callbacks, h, config->option, config->mem)
                               : nghttp2_session_client_new3(&h->ng, config->callbacks, h, config->option, config->mem);
    if (rv != 0)
        abort(); /* out of memory */
    submit_settings(h, config);
}

void rpc_h2_fini(struct rpc_h2 *h)
{
    nghttp2_session_del(h->ng);
    buf_fini(&h->rest);
    free(h->ended_ids);
}

/* ---- bytes in ---- */

/* nghttp2 keeps a frame for every RST and ACK that a peer does not read: such a peer goes. */
static void check_queue(struct rpc_h2 *h)
{
    size_t queued = nghttp2_session_get_outbound_queue_size(h->ng);
    if ((int64_t)queued <= 2 * rpc_h2_limit(h, NET_LIMIT_STREAMS) + 1000)
        return;
    (void)rpc_h2_trip(h, NET_LIMIT_OUTPUT_BYTES, NGHTTP2_ENHANCE_YOUR_CALM, "output_not_read");
    h->is_dead = true;
}

static bool has_frames_left(const struct rpc_h2 *h)
{
    return h->frames_in_turn < rpc_h2_limit(h, NET_LIMIT_FRAMES_PER_TURN);
}

/* Feed until the input or the turn's budget is used up. Returns the bytes taken, or -1. */
static ssize_t feed(struct rpc_h2 *h, const uint8_t *bytes, size_t len)
{
    size_t taken = 0;
    h->frames_in_turn = h->pages_in_turn = 0;
    while (taken < len && has_frames_left(h) && h->pages_in_turn < rpc_h2_limit(h, NET_LIMIT_REQUESTS_PER_TURN)) {
        ssize_t n = scan(h, bytes + taken, len - taken);
        if (n < 0 || nghttp2_session_mem_recv(h->ng, bytes + taken, (size_t)n) < 0 || h->is_closing)
            return -1;
        taken += (size_t)n; /* no callback of ours pauses nghttp2: it takes all */
    }
    return (ssize_t)taken;
}

static int wait_with(struct rpc_h2 *h, const uint8_t *bytes, size_t len)
{
    if (buf_append(&h->rest, bytes, len) == 0)
        return 0;
    (void)rpc_h2_trip(h, NET_LIMIT_FRAMES_PER_TURN, NGHTTP2_ENHANCE_YOUR_CALM, "too_many_frames");
    return -1;
}

/* What waited from the turn before goes first; should there be new bytes too, they queue behind it. */
static int receive_any(struct rpc_h2 *h, const uint8_t *bytes, size_t len)
{
    bool has_waited = h->rest.len > 0;
    if (has_waited && wait_with(h, bytes, len) < 0)
        return -1;
    if (has_waited) {
        bytes = (const uint8_t *)h->rest.data;
        len = h->rest.len;
    }
    ssize_t taken = feed(h, bytes, len);
    if (taken < 0)
        return -1;
    if ((size_t)taken == len) {
        buf_fini(&h->rest);
        return 0;
    }
    rpc_h2_hit(h, has_frames_left(h) ? NET_LIMIT_REQUESTS_PER_TURN : NET_LIMIT_FRAMES_PER_TURN);
    h->env.again(h->env.context);
    if (!has_waited)
        return wait_with(h, bytes + taken, len - (size_t)taken);
    buf_consume(&h->rest, (size_t)taken);
    return 0;
}

int rpc_h2_receive(struct rpc_h2 *h, const uint8_t *bytes, size_t len, int64_t now_ns)
{
    if (h->is_closing)
        return -1;
    h->now_ns = now_ns;
    if (len > 0)
        h->last_read_ns = now_ns;
    if (receive_any(h, bytes, len) < 0) {
        h->is_closing = true;
        return -1;
    }
    check_queue(h);
    return h->is_closing ? -1 : 0;
}

/* ---- bytes out ---- */

size_t rpc_h2_pull(struct rpc_h2 *h, const uint8_t **ret_bytes)
{
    if (h->is_dead)
        return 0;
    ssize_t n = nghttp2_session_mem_send(h->ng, ret_bytes);
    if (n < 0)
        h->is_closing = h->is_dead = true;
    else if (n == 0 && !nghttp2_session_want_read(h->ng) && !nghttp2_session_want_write(h->ng))
        h->is_closing = true; /* nghttp2 itself ended it, and its GOAWAY is out */
    return n > 0 ? (size_t)n : 0;
}

void rpc_h2_ping(struct rpc_h2 *h, const uint8_t opaque[8])
{
    if (nghttp2_submit_ping(h->ng, NGHTTP2_FLAG_NONE, opaque) != 0)
        return;
    h->pings_out++;
    if (!h->ping_sent_ns)
        h->ping_sent_ns = h->now_ns;
    h->env.wake(h->env.context);
}

static void tick_keepalive(struct rpc_h2 *h, int64_t keepalive_ns)
{
    int64_t timeout_ns = rpc_h2_limit(h, NET_LIMIT_KEEPALIVE_TIMEOUT_MS) * NS_PER_MS;
    if (h->ping_sent_ns && h->last_read_ns > h->ping_sent_ns)
        h->ping_sent_ns = 0; /* any byte is life */
    if (h->ping_sent_ns && h->now_ns - h->ping_sent_ns >= timeout_ns) {
        rpc_h2_hit(h, NET_LIMIT_KEEPALIVE_TIMEOUT_MS);
        h->is_closing = h->is_dead = true;
        h->env.wake(h->env.context);
    } else if (!h->ping_sent_ns && h->now_ns - h->last_read_ns >= keepalive_ns) {
        if (h->is_server) /* a client's silence is its own affair */
            rpc_h2_hit(h, NET_LIMIT_KEEPALIVE_MS);
        rpc_h2_ping(h, (const uint8_t *)"kgsalive");
    }
}

void rpc_h2_tick(struct rpc_h2 *h, int64_t now_ns, int64_t keepalive_ns)
{
    if (h->is_closing)
        return;
    h->now_ns = now_ns;
    int64_t ack_ns = rpc_h2_limit(h, NET_LIMIT_SETTINGS_ACK_MS) * NS_PER_MS;
    int64_t headers_ns = rpc_h2_limit(h, NET_LIMIT_HEADERS_MS) * NS_PER_MS;
    if (!h->is_settings_acked && now_ns - h->opened_ns >= ack_ns)
        (void)rpc_h2_trip(h, NET_LIMIT_SETTINGS_ACK_MS, NGHTTP2_SETTINGS_TIMEOUT, "settings_not_acknowledged");
    else if (h->headers_since_ns && now_ns - h->headers_since_ns >= headers_ns)
        (void)rpc_h2_trip(h, NET_LIMIT_HEADERS_MS, NGHTTP2_ENHANCE_YOUR_CALM, "headers_too_slow");
    else
        tick_keepalive(h, keepalive_ns);
}

int64_t rpc_h2_next_ns(const struct rpc_h2 *h, int64_t keepalive_ns)
{
    int64_t next_ns = keepalive_ns == INT64_MAX ? INT64_MAX : h->last_read_ns + keepalive_ns, other_ns;
    if (h->is_closing)
        return INT64_MAX;
    if (h->ping_sent_ns && h->last_read_ns <= h->ping_sent_ns)
        next_ns = h->ping_sent_ns + rpc_h2_limit(h, NET_LIMIT_KEEPALIVE_TIMEOUT_MS) * NS_PER_MS;
    other_ns = h->opened_ns + rpc_h2_limit(h, NET_LIMIT_SETTINGS_ACK_MS) * NS_PER_MS;
    if (!h->is_settings_acked && other_ns < next_ns)
        next_ns = other_ns;
    other_ns = h->headers_since_ns + rpc_h2_limit(h, NET_LIMIT_HEADERS_MS) * NS_PER_MS;
    if (h->headers_since_ns && other_ns < next_ns)
        next_ns = other_ns;
    return next_ns;
}
