/* A served call from its answer's side: messages out, status, trailers, and its end. What comes in is request.c's. */
#include "rpc/server.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    POOLED_CALLS_MAX = 128,
    POOLED_BUFFER_BYTES = 1024, /* a pooled call keeps no larger buffer */
    STALL_STEP_BYTES = 16384,   /* less of it is no progress, as in net */
    ARENA_BYTES_MIN = 65536,
    ARENA_PER_REQUEST_BYTE = 8
};

#define NV_STATIC(key, text)                                                                                           \
    {                                                                                                                  \
        (uint8_t *)(uintptr_t)(key), (uint8_t *)(uintptr_t)(text), sizeof(key) - 1, sizeof(text) - 1,                  \
            NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE                                               \
    }

/* nghttp2 wants bytes it promises not to change. */
static nghttp2_nv nv_text(const char *name, const char *value, size_t value_len)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name), value_len,
                        NGHTTP2_NV_FLAG_NONE};
}

/* ---- new, end, release ---- */

static struct rpc_call *take_pooled(struct rpc_server *server)
{
    struct rpc_call *call = server->free_calls;
    if (!call) {
        call = mem_new(struct rpc_call);
        rpc_reader_init(&call->reader, 0, true);
        buf_init(&call->out, SIZE_MAX / 2);
        return call;
    }
    server->free_calls = call->next_free;
    server->n_free_calls--;
    return call;
}

struct rpc_call *rpc_call_new(struct rpc_session *s, int32_t stream_id)
{
    struct rpc_call *call = take_pooled(s->server);
    struct rpc_reader reader = call->reader;
    struct buf out = call->out;
    *call = (struct rpc_call){.session = s,
                              .stream_id = stream_id,
                              .reader = reader,
                              .out = out,
                              .timeout_ns = -1,
                              .deadline_ns = INT64_MAX,
                              .body_due_ns = INT64_MAX,
                              .stall_due_ns = INT64_MAX};
    call->reader.max_bytes = call->reader.message.max_bytes = (size_t)rpc_h2_limit(&s->h2, NET_LIMIT_MESSAGE_BYTES);
    rpc_list_push(&s->calls, &call->link);
    s->n_calls++;
    s->server->n_calls++;
    return call;
}

static void drop_unsent(struct rpc_call *call)
{
    int64_t unsent = (int64_t)(call->out.len - call->out_at);
    call->session->unsent_bytes -= unsent;
    call->session->server->unsent_bytes -= unsent;
    buf_reset(&call->out);
    call->out_at = 0;
}

void rpc_call_drop_held(struct rpc_call *call)
{
    call->session->received_bytes -= (int64_t)call->held_bytes;
    call->session->server->received_bytes -= (int64_t)call->held_bytes;
    call->held_bytes = 0;
    rpc_reader_reset(&call->reader, POOLED_BUFFER_BYTES);
}

static void count_handled(struct rpc_call *call, enum err_class status)
{
    struct rpc_server *server = call->session->server;
    rpc_entry_count_handled(server, call->entry, status);
    metric_observe(call->entry->seconds, (double)(server->clock_ns() - call->clock_started_ns) / (double)NS_PER_S);
}

void rpc_call_end(struct rpc_call *call)
{
    if (!call->is_open)
        return;
    call->is_open = false;
    rpc_link_remove(&call->finished_link);
    rpc_call_drop_held(call);
    metric_add(call->entry->open, -1);
    const struct rpc_method *m = call->entry->method;
    if (m && m->ended)
        m->ended(call, m->context);
    call->state = NULL;
    if (call->has_arena)
        arena_fini(&call->arena);
    call->has_arena = false;
}

void rpc_call_release(struct rpc_call *call)
{
    struct rpc_server *server = call->session->server;
    if (call->is_open && !call->is_finished) {
        call->is_finished = true; /* the peer or its connection went away */
        count_handled(call, ERR_CANCELLED);
    }
    rpc_call_end(call);
    rpc_link_remove(&call->timed_link);
    rpc_request_forget_headers(call);
    rpc_call_drop_held(call);
    drop_unsent(call);
    free(call->text);
    call->text = NULL;
    rpc_link_remove(&call->link);
    call->session->n_calls--;
    server->n_calls--;
    if (call->out.capacity > POOLED_BUFFER_BYTES)
        buf_fini(&call->out);
    if (server->n_free_calls >= POOLED_CALLS_MAX) {
        rpc_reader_fini(&call->reader);
        buf_fini(&call->out);
        free(call);
        return;
    }
    call->next_free = server->free_calls;
    server->free_calls = call;
    server->n_free_calls++;
}

/* ---- trailers and headers ---- */

static const char *const status_digits[] = {"0", "1",  "2",  "3",  "4",  "5",  "6",  "7", "8",
                                            "9", "10", "11", "12", "13", "14", "15", "16"};

/* grpc-status and, with a text, grpc-message. Returns how many were written. */
static size_t put_status(nghttp2_nv *nva, enum err_class status, const char *text, char encoded[RPC_ENCODED_MAX])
{
    const char *digits = status_digits[err_grpc_status(status)];
    nva[0] = nv_text("grpc-status", digits, strlen(digits));
    nva[0].flags = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE;
    if (!text || !*text)
        return 1;
    nva[1] = nv_text("grpc-message", encoded, rpc_percent_encode(encoded, text));
    return 2;
}

/* One HEADERS frame for a call that ends without a message: PROTOCOL-HTTP2.md, "Trailers-Only". */
static void submit_trailers_only(struct rpc_call *call, const char *http_status, const char *text)
{
    char encoded[RPC_ENCODED_MAX];
    nghttp2_nv nva[5] = {NV_STATIC(":status", "200"), NV_STATIC("content-type", "application/grpc")};
    size_t n = 2;
    if (http_status)
        nva[0] = nv_text(":status", http_status, strlen(http_status));
    if (call->has_encoding && call->status == ERR_UNIMPLEMENTED)
        nva[n++] = (nghttp2_nv)NV_STATIC("grpc-accept-encoding", "identity");
    n += put_status(nva + n, call->status, text, encoded);
    call->are_headers_out = true;
    (void)nghttp2_submit_response(call->session->h2.ng, call->stream_id, nva, n, NULL);
}

static void submit_trailers(struct rpc_call *call)
{
    char encoded[RPC_ENCODED_MAX];
    nghttp2_nv nva[2];
    size_t n = put_status(nva, call->status, call->text, encoded);
    (void)nghttp2_submit_trailer(call->session->h2.ng, call->stream_id, nva, n);
}

/* ---- output that nobody takes ---- */

static size_t unsent_of(const struct rpc_call *call)
{
    return call->out.len - call->out_at;
}

/* An answer that a peer does not take is not kept for ever. */
static void limit_stall(struct rpc_call *call)
{
    const struct rpc_h2 *h = &call->session->h2;
    size_t unsent = unsent_of(call);
    call->stall_left_bytes = unsent < STALL_STEP_BYTES ? unsent : STALL_STEP_BYTES;
    call->stall_due_ns = h->now_ns + rpc_h2_limit(h, NET_LIMIT_WRITE_STALL_MS) * NS_PER_MS;
    rpc_call_set_timed(call);
}

static void note_progress(struct rpc_call *call, size_t n)
{
    if (call->stall_due_ns == INT64_MAX)
        return;
    if (unsent_of(call) == 0 && !call->is_finished) {
        call->stall_due_ns = INT64_MAX;
        rpc_call_set_timed(call);
    } else if (n >= call->stall_left_bytes) {
        limit_stall(call);
    } else {
        call->stall_left_bytes -= n;
    }
}

/* Of a state stream at most one message waits, for as long as the peer likes. */
static void limit_stream(struct rpc_call *call)
{
    const struct rpc_method *m = call->entry->method;
    if (m->is_server_streaming && !m->is_state_stream && call->stall_due_ns == INT64_MAX)
        limit_stall(call);
}

/* ---- output ---- */

/* nghttp2 asks for DATA. Trailers are submitted here and not before: they would overtake it (nghttp2 issue 269). */
static ssize_t read_out(nghttp2_session *ng, int32_t stream_id, uint8_t *out, size_t size, uint32_t *flags,
                        nghttp2_data_source *source, void *user_data)
{
    struct rpc_call *call = (struct rpc_call *)source->ptr;
    (void)ng;
    (void)stream_id;
    (void)user_data;
    size_t left = unsent_of(call), n = left < size ? left : size;
    if (left == 0 && !call->is_finished) {
        call->is_deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    if (n)
        memcpy(out, call->out.data + call->out_at, n);
    call->out_at += n;
    call->session->unsent_bytes -= (int64_t)n;
    call->session->server->unsent_bytes -= (int64_t)n;
    note_progress(call, n);
    if (n < left)
        return (ssize_t)n;
    buf_reset(&call->out);
    call->out_at = call->last_message_at = 0;
    if (call->is_finished) {
        *flags |= NGHTTP2_DATA_FLAG_EOF | (call->is_get ? 0U : NGHTTP2_DATA_FLAG_NO_END_STREAM);
        if (!call->is_get)
            submit_trailers(call);
    }
    return (ssize_t)n;
}

static void wake(struct rpc_call *call)
{
    struct rpc_session *s = call->session;
    if (call->is_deferred) {
        call->is_deferred = false;
        (void)nghttp2_session_resume_data(s->h2.ng, call->stream_id);
    }
    s->h2.env.wake(s->h2.env.context);
}

void rpc_call_send_headers(struct rpc_call *call)
{
    static const nghttp2_nv nva[] = {NV_STATIC(":status", "200"), NV_STATIC("content-type", "application/grpc")};
    if (call->are_headers_out || call->is_finished || !call->is_open)
        return;
    call->are_headers_out = true;
    nghttp2_data_provider provider = {.source.ptr = call, .read_callback = read_out};
    (void)nghttp2_submit_response(call->session->h2.ng, call->stream_id, nva, ARRAY_LEN(nva), &provider);
    wake(call);
}

/* Does `len` fit when `dropped` unsent bytes make room? One message of any size fits where nothing else waits. */
static bool has_room(const struct rpc_call *call, size_t len, size_t dropped)
{
    const struct rpc_session *s = call->session;
    int64_t mine = s->unsent_bytes - (int64_t)dropped + (int64_t)len;
    const struct {
        enum net_limit limit;
        int64_t unsent, always; /* what the connection may hold in any case */
    } rows[] = {
        {NET_LIMIT_STREAM_OUTPUT_BYTES, (int64_t)unsent_of(call), 0},
        {NET_LIMIT_OUTPUT_BYTES, s->unsent_bytes, 0},
        {NET_LIMIT_OUTPUT_BYTES_ALL, s->server->unsent_bytes, NET_OWN_BYTES},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t others = rows[i].unsent - (int64_t)dropped;
        if (others > 0 && mine > rows[i].always && others + (int64_t)len > rpc_h2_limit(&s->h2, rows[i].limit)) {
            rpc_h2_hit(&s->h2, rows[i].limit);
            return false;
        }
    }
    return true;
}

/* Bytes of the newest message when it may still be replaced. */
static size_t replaceable_bytes(const struct rpc_call *call)
{
    bool is_whole = call->out.len > call->last_message_at && call->out_at <= call->last_message_at;
    return call->entry->method->is_state_stream && is_whole ? call->out.len - call->last_message_at : 0;
}

static void count_unsent(struct rpc_call *call, int64_t bytes)
{
    call->session->unsent_bytes += bytes;
    call->session->server->unsent_bytes += bytes;
}

int rpc_call_send(struct rpc_call *call, const void *message, size_t len)
{
    if (call->is_finished || !call->is_open)
        return -1;
    size_t dropped = replaceable_bytes(call);
    if (!has_room(call, RPC_PREFIX_BYTES + len, dropped))
        return -1;
    call->out.len -= dropped;
    buf_consume(&call->out, call->out_at);
    call->out_at = 0;
    call->last_message_at = call->out.len;
    uint8_t prefix[RPC_PREFIX_BYTES];
    rpc_prefix_write(prefix, len);
    (void)buf_append(&call->out, prefix, sizeof(prefix));
    (void)buf_append(&call->out, message, len);
    count_unsent(call, (int64_t)(RPC_PREFIX_BYTES + len) - (int64_t)dropped);
    call->n_sent++;
    metric_add(call->entry->sent, 1);
    limit_stream(call);
    rpc_call_send_headers(call);
    wake(call);
    return 0;
}

/* ---- finish ---- */

/* From here on only the peer's taking of it is limited. */
static void limit_end(struct rpc_call *call)
{
    call->is_finished = true;
    call->deadline_ns = call->body_due_ns = INT64_MAX;
    limit_stall(call);
}

static void finish(struct rpc_call *call, enum err_class status, const char *text)
{
    call->status = status;
    count_handled(call, status);
    limit_end(call);
    rpc_list_push(&call->session->finished, &call->finished_link);
    if (!call->are_headers_out)
        submit_trailers_only(call, NULL, text);
    else if (text && *text)
        call->text = mem_strndup(text, strnlen(text, RPC_TEXT_MAX + 4));
    wake(call);
}

void rpc_call_finish(struct rpc_call *call, enum err_class status, const char *text)
{
    if (call->is_finished || !call->is_open) /* its deadline or its peer was faster */
        return;
    if (status == ERR_NONE && call->n_sent == 0 && call->entry->method && !call->entry->method->is_server_streaming)
        finish(call, ERR_INTERNAL, "the method ended without an answer");
    else
        finish(call, status, status == ERR_NONE ? NULL : text);
}

void rpc_call_fail(struct rpc_call *call, const struct err *e)
{
    rpc_call_finish(call, e->class == ERR_NONE ? ERR_INTERNAL : e->class, e->text);
}

void rpc_call_reply(struct rpc_call *call, const void *message, size_t len)
{
    if (rpc_call_send(call, message, len) == 0)
        rpc_call_finish(call, ERR_NONE, NULL);
    else
        rpc_call_finish(call, ERR_RESOURCE_EXHAUSTED, "the connection holds too many answers that were not read");
}

void rpc_call_refuse(struct rpc_call *call, enum err_class status, const char *format, ...)
{
    char text[RPC_TEXT_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (!call->is_finished)
        finish(call, status, text);
}

/* Data that a stalled peer does not take cannot be followed by trailers: reset. The client sees its own deadline. */
static void reset(struct rpc_call *call)
{
    rpc_link_remove(&call->timed_link);
    drop_unsent(call);
    (void)nghttp2_submit_rst_stream(call->session->h2.ng, NGHTTP2_FLAG_NONE, call->stream_id, NGHTTP2_CANCEL);
    call->session->h2.env.wake(call->session->h2.env.context);
}

static void reset_open(struct rpc_call *call, enum err_class status)
{
    call->is_finished = true;
    call->status = status;
    count_handled(call, status);
    rpc_list_push(&call->session->finished, &call->finished_link);
    reset(call);
}

static void expire_stalled(struct rpc_call *call)
{
    rpc_h2_hit(&call->session->h2, NET_LIMIT_WRITE_STALL_MS);
    if (call->is_finished)
        reset(call);
    else
        reset_open(call, ERR_CANCELLED);
}

void rpc_call_expire(struct rpc_call *call, int64_t now_ns)
{
    if (call->stall_due_ns <= now_ns) {
        expire_stalled(call);
        return;
    }
    if (call->deadline_ns > now_ns) {
        rpc_h2_hit(&call->session->h2, NET_LIMIT_BODY_MS);
        if (call->is_plain) {
            (void)rpc_request_answer_plain(call);
            return;
        }
        rpc_call_refuse(call, ERR_DEADLINE_EXCEEDED, "the request message did not come within its time");
        return;
    }
    char limit[TIME_DURATION_MAX];
    time_format_duration(limit, call->deadline_ns - call->started_ns);
    if (unsent_of(call) > 0)
        reset_open(call, ERR_DEADLINE_EXCEEDED);
    else
        rpc_call_refuse(call, ERR_DEADLINE_EXCEEDED, "no answer within %s", limit);
}

int64_t rpc_call_due_ns(const struct rpc_call *call)
{
    int64_t due_ns = call->deadline_ns < call->body_due_ns ? call->deadline_ns : call->body_due_ns;
    return due_ns < call->stall_due_ns ? due_ns : call->stall_due_ns;
}

void rpc_call_set_timed(struct rpc_call *call)
{
    int64_t due_ns = rpc_call_due_ns(call);
    if (due_ns == INT64_MAX) {
        rpc_link_remove(&call->timed_link);
        return;
    }
    if (!rpc_link_is_linked(&call->timed_link))
        rpc_list_push(&call->session->server->timed, &call->timed_link);
    rpc_server_net_hurry(call->session->server, due_ns);
}

/* ---- answers that are not gRPC ---- */

void rpc_call_answer_http(struct rpc_call *call, int http_status, enum err_class status, const char *text)
{
    char digits[12];
    (void)snprintf(digits, sizeof(digits), "%d", http_status);
    call->is_finished = true;
    call->status = status;
    submit_trailers_only(call, digits, text);
    wake(call);
}

/* Split the handler's further lines "name: value\r\n" into nva; names become lower case as HTTP/2 wants them. */
static size_t put_extra(nghttp2_nv *nva, size_t room, char *lines)
{
    struct str rest = str_of(lines);
    size_t n = 0;
    while (rest.ptr && rest.len > 0 && n < room) {
        struct str value = str_trim(str_cut(&rest, '\n'));
        struct str name = str_cut(&value, ':');
        if (!value.ptr || name.len == 0)
            continue;
        char *key = lines + (name.ptr - lines);
        key[name.len] = '\0';
        str_lower(key);
        value = str_trim(value);
        nva[n++] = nv_text(key, value.ptr, value.len);
    }
    return n;
}

void rpc_call_answer_get(struct rpc_call *call, struct net_get_response *response)
{
    if (!call->is_finished && !has_room(call, response->body.len, 0)) {
        response->status = 503;
        buf_reset(&response->body);
    }
    char status[12], length[24];
    (void)snprintf(status, sizeof(status), "%d", response->status);
    (void)snprintf(length, sizeof(length), "%zu", response->body.len);
    const char *type = response->content_type ? response->content_type : "text/plain; charset=utf-8";
    nghttp2_nv nva[12] = {nv_text(":status", status, strlen(status)), nv_text("content-type", type, strlen(type)),
                          nv_text("content-length", length, strlen(length))};
    size_t n = 3;
    if (response->content_encoding)
        nva[n++] = nv_text("content-encoding", response->content_encoding, strlen(response->content_encoding));
    n += put_extra(nva + n, ARRAY_LEN(nva) - n, response->extra);
    call->is_get = call->are_headers_out = true;
    nghttp2_data_provider provider = {.source.ptr = call, .read_callback = read_out};
    bool has_body = call->verb == RPC_VERB_GET && response->body.len > 0;
    if (has_body) {
        struct buf spare = call->out;
        call->out = response->body;
        response->body = spare; /* freed with the response */
        call->out.max_bytes = SIZE_MAX / 2;
        count_unsent(call, (int64_t)call->out.len);
    }
    limit_end(call);
    (void)nghttp2_submit_response(call->session->h2.ng, call->stream_id, nva, n, has_body ? &provider : NULL);
    wake(call);
}

/* ---- what handlers ask ---- */

void rpc_call_set_state(struct rpc_call *call, void *state)
{
    call->state = state;
}

void *rpc_call_state(const struct rpc_call *call)
{
    return call->state;
}

const char *rpc_call_peer(const struct rpc_call *call)
{
    return call->session->h2.env.peer;
}

struct arena *rpc_call_arena(struct rpc_call *call)
{
    if (!call->has_arena) {
        size_t wanted = ARENA_PER_REQUEST_BYTE * call->request_bytes;
        arena_init(&call->arena, wanted > ARENA_BYTES_MIN ? wanted : ARENA_BYTES_MIN);
        call->has_arena = true;
    }
    return &call->arena;
}
