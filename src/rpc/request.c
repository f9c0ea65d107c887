/* A request as it comes in: which header rules it breaks, which method it means, and its messages.
 * grpc-http2.md 3.2, 3.3. */
#include "rpc/server.h"

#include <string.h>

static struct str text_of(nghttp2_rcbuf *rcbuf)
{
    if (!rcbuf)
        return (struct str){"", 0};
    nghttp2_vec vec = nghttp2_rcbuf_get_buf(rcbuf);
    return (struct str){(const char *)vec.base, vec.len};
}

/* ---- headers, one by one ---- */

static void keep(nghttp2_rcbuf **slot, nghttp2_rcbuf *value)
{
    if (*slot) /* the first counts; nghttp2 refuses doubled pseudo headers itself */
        return;
    nghttp2_rcbuf_incref(value);
    *slot = value;
}

static void forget(nghttp2_rcbuf **slot)
{
    if (*slot)
        nghttp2_rcbuf_decref(*slot);
    *slot = NULL;
}

void rpc_request_forget_headers(struct rpc_call *call)
{
    forget(&call->path);
    forget(&call->authority);
    forget(&call->accept);
    forget(&call->accept_encoding);
    forget(&call->user_agent);
}

static void on_method(struct rpc_call *call, nghttp2_rcbuf *value)
{
    struct str verb = text_of(value);
    call->verb = str_equals(verb, "POST")   ? RPC_VERB_POST
                 : str_equals(verb, "GET")  ? RPC_VERB_GET
                 : str_equals(verb, "HEAD") ? RPC_VERB_HEAD
                                            : RPC_VERB_OTHER;
}

static void on_path(struct rpc_call *call, nghttp2_rcbuf *value)
{
    keep(&call->path, value);
}

static void on_authority(struct rpc_call *call, nghttp2_rcbuf *value)
{
    keep(&call->authority, value);
}

static void on_host(struct rpc_call *call, nghttp2_rcbuf *value)
{
    struct str host = text_of(value), authority = text_of(call->authority);
    if (call->authority && (host.len != authority.len || memcmp(host.ptr, authority.ptr, host.len) != 0))
        call->is_host_different = true;
}

static void on_content_type(struct rpc_call *call, nghttp2_rcbuf *value)
{
    call->is_grpc = rpc_is_grpc_content_type(text_of(value)) && (call->is_grpc || !call->has_content_type);
    call->has_content_type = true;
}

static void on_timeout(struct rpc_call *call, nghttp2_rcbuf *value)
{
    if (call->timeout_ns >= 0 || rpc_timeout_parse(text_of(value), &call->timeout_ns) < 0)
        call->is_timeout_bad = true;
}

static void on_encoding(struct rpc_call *call, nghttp2_rcbuf *value)
{
    call->has_encoding = !str_equals(text_of(value), "identity");
}

static void on_accept(struct rpc_call *call, nghttp2_rcbuf *value)
{
    if (call->verb != RPC_VERB_POST)
        keep(&call->accept, value);
}

static void on_accept_encoding(struct rpc_call *call, nghttp2_rcbuf *value)
{
    if (call->verb != RPC_VERB_POST)
        keep(&call->accept_encoding, value);
}

static void on_user_agent(struct rpc_call *call, nghttp2_rcbuf *value)
{
    if (call->verb != RPC_VERB_POST)
        keep(&call->user_agent, value);
}

/* The headers that mean something to us; all others are application metadata, which no method here reads. */
static const struct {
    const char *name;
    size_t len;
    void (*handle)(struct rpc_call *call, nghttp2_rcbuf *value);
} headers[] = {
#define HEADER(name, handle)                                                                                           \
    {                                                                                                                  \
        name, sizeof(name) - 1, handle                                                                                 \
    }
    HEADER(":method", on_method),
    HEADER(":path", on_path),
    HEADER(":authority", on_authority),
    HEADER("host", on_host),
    HEADER("content-type", on_content_type),
    HEADER("grpc-timeout", on_timeout),
    HEADER("grpc-encoding", on_encoding),
    HEADER("accept", on_accept),
    HEADER("accept-encoding", on_accept_encoding),
    HEADER("user-agent", on_user_agent),
#undef HEADER
};

int rpc_request_header(struct rpc_call *call, nghttp2_rcbuf *name, nghttp2_rcbuf *value)
{
    enum { OVERHEAD = 32, DROP_FACTOR = 4 }; /* RFC 9113 6.5.2 */
    struct str key = text_of(name);
    struct rpc_h2 *h = &call->session->h2;
    int64_t limit = rpc_h2_limit(h, NET_LIMIT_HEADER_LIST_BYTES);
    call->header_bytes += key.len + nghttp2_rcbuf_get_buf(value).len + OVERHEAD;
    if ((int64_t)call->header_bytes > DROP_FACTOR * limit)
        return rpc_h2_trip(h, NET_LIMIT_HEADER_LIST_BYTES, NGHTTP2_ENHANCE_YOUR_CALM, "header_list_too_large");
    if (call->is_open || call->is_finished) /* the client's trailers */
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(headers); i++)
        if (headers[i].len == key.len && memcmp(headers[i].name, key.ptr, key.len) == 0) {
            headers[i].handle(call, value);
            break;
        }
    return 0;
}

/* ---- GET and HEAD ---- */

static int refuse_http(struct rpc_call *call, int http_status, enum err_class status, const char *text)
{
    rpc_call_answer_http(call, http_status, status, text);
    return rpc_h2_glitch(&call->session->h2);
}

static int answer_get(struct rpc_call *call)
{
    struct str query = text_of(call->path), raw = str_cut(&query, '?');
    BUF_AUTO struct buf path;
    buf_init(&path, raw.len);
    (void)buf_append(&path, raw.ptr, raw.len);
    if (raw.len == 0 || raw.ptr[0] != '/' || net_gets_decode_path(path.data, &path.len) < 0)
        return refuse_http(call, 400, ERR_INVALID_ARGUMENT, "malformed path");
    if (call->request_bytes > 0 || !call->is_remote_closed)
        return refuse_http(call, 400, ERR_INVALID_ARGUMENT, "no request body is taken here");
    struct net_get_request request = {
        .path = {path.data, path.len},
        .query = query.ptr ? query : (struct str){"", 0},
        .accept = text_of(call->accept),
        .accept_encoding = text_of(call->accept_encoding),
        .user_agent = text_of(call->user_agent),
        .is_head = call->verb == RPC_VERB_HEAD,
    };
    struct net_get_response response = {.status = 200};
    call->session->h2.pages_in_turn++;
    buf_init(&response.body, 64U << 20);
    if (call->session->server->gets)
        net_gets_answer(call->session->server->gets, &request, &response);
    else
        response.status = 404;
    rpc_call_answer_get(call, &response);
    buf_fini(&response.body);
    return 0;
}

/* ---- the judgement ---- */

static int64_t later(int64_t from_ns, int64_t span_ns)
{
    return span_ns > INT64_MAX - from_ns ? INT64_MAX : from_ns + span_ns;
}

static void set_deadlines(struct rpc_call *call)
{
    int64_t now_ns = call->session->h2.now_ns, ours_ns = call->entry->method->deadline_ns;
    if (ours_ns > 0)
        call->deadline_ns = later(now_ns, ours_ns);
    if (call->timeout_ns >= 0 && later(now_ns, call->timeout_ns) < call->deadline_ns)
        call->deadline_ns = later(now_ns, call->timeout_ns);
    if (!call->entry->method->is_client_streaming && !call->is_remote_closed)
        call->body_due_ns = later(now_ns, rpc_h2_limit(&call->session->h2, NET_LIMIT_BODY_MS) * NS_PER_MS);
    rpc_call_set_timed(call);
}

static int start_call(struct rpc_call *call)
{
    struct rpc_server *server = call->session->server;
    struct str path = text_of(call->path);
    call->entry = rpc_server_find(server, path);
    call->is_open = true;
    call->started_ns = call->session->h2.now_ns;
    call->clock_started_ns = server->clock_ns();
    metric_add(call->entry->started, 1);
    metric_add(call->entry->open, 1);
    if (call->entry->method) {
        call->reader.is_held = !call->entry->method->is_client_streaming;
        set_deadlines(call);
        return 0;
    }
    int shown = path.len < 200 ? (int)path.len : 200;
    rpc_call_refuse(call, ERR_UNIMPLEMENTED, "unknown method %.*s", shown, path.ptr);
    return 0;
}

static int judge_grpc(struct rpc_call *call)
{
    if (call->is_host_different)
        return refuse_http(call, 400, ERR_INTERNAL, ":authority and host differ");
    if (call->is_timeout_bad)
        return refuse_http(call, 400, ERR_INTERNAL, "malformed grpc-timeout");
    return start_call(call);
}

int rpc_request_answer_plain(struct rpc_call *call)
{
    int rv;
    call->is_plain = false;
    rpc_link_remove(&call->timed_link);
    if (call->verb == RPC_VERB_GET || call->verb == RPC_VERB_HEAD)
        rv = answer_get(call);
    else if (call->verb != RPC_VERB_POST)
        rv = refuse_http(call, 405, ERR_INTERNAL, "the method must be POST, GET or HEAD");
    else
        rv = refuse_http(call, 415, ERR_INVALID_ARGUMENT, "the content-type must be application/grpc");
    rpc_request_forget_headers(call);
    return rv;
}

int rpc_request_judge(struct rpc_call *call)
{
    struct rpc_h2 *h = &call->session->h2;
    int rv = 0;
    if ((int64_t)call->header_bytes > rpc_h2_limit(h, NET_LIMIT_HEADER_LIST_BYTES)) {
        rpc_h2_hit(h, NET_LIMIT_HEADER_LIST_BYTES);
        rv = refuse_http(call, 431, ERR_RESOURCE_EXHAUSTED, "the request's headers are too large");
    } else if (call->verb == RPC_VERB_POST && call->is_grpc) {
        rv = judge_grpc(call);
    } else { /* answered at its end, so that what is malformed in it is found (RFC 9113 8.1.1) */
        call->is_plain = true;
        call->body_due_ns = later(h->now_ns, rpc_h2_limit(h, NET_LIMIT_BODY_MS) * NS_PER_MS);
        if (!call->is_remote_closed)
            rpc_call_set_timed(call);
        return 0;
    }
    rpc_request_forget_headers(call);
    return rv;
}

/* ---- messages ---- */

static void refuse_read(struct rpc_call *call, enum rpc_read read)
{
    switch (read) {
    case RPC_READ_TOO_BIG:
        rpc_h2_hit(&call->session->h2, NET_LIMIT_MESSAGE_BYTES);
        rpc_call_refuse(call, ERR_RESOURCE_EXHAUSTED, "the request message has %zu bytes; at most %zu are taken",
                        call->reader.need, call->reader.max_bytes);
        break;
    case RPC_READ_COMPRESSED:
        if (call->has_encoding)
            rpc_call_refuse(call, ERR_UNIMPLEMENTED, "compressed messages are not supported; use identity");
        else
            rpc_call_refuse(call, ERR_INTERNAL, "a compressed message without grpc-encoding");
        break;
    case RPC_READ_BAD_FLAG:
        rpc_call_refuse(call, ERR_INTERNAL, "the message's flag byte is neither 0 nor 1");
        break;
    case RPC_READ_MORE:
    case RPC_READ_MESSAGE:
    default:
        break;
    }
}

/* Take `len` bytes onto the budgets of the connection and of all. False when they are used up. */
static bool hold(struct rpc_call *call, size_t len)
{
    struct rpc_session *s = call->session;
    enum net_limit over = NET_LIMIT_COUNT;
    if (s->received_bytes + (int64_t)len > rpc_h2_limit(&s->h2, NET_LIMIT_RECEIVE_BYTES))
        over = NET_LIMIT_RECEIVE_BYTES;
    else if (s->server->received_bytes + (int64_t)len > rpc_h2_limit(&s->h2, NET_LIMIT_RECEIVE_BYTES_ALL) &&
             s->received_bytes + (int64_t)len > NET_OWN_BYTES)
        over = NET_LIMIT_RECEIVE_BYTES_ALL;
    if (over != NET_LIMIT_COUNT) {
        rpc_h2_hit(&s->h2, over);
        rpc_call_refuse(call, ERR_RESOURCE_EXHAUSTED, "too many request bytes are held (limit %s)",
                        net_limit_name(over));
        return false;
    }
    s->received_bytes += (int64_t)len;
    s->server->received_bytes += (int64_t)len;
    call->held_bytes += len;
    return true;
}

/* Only what waits in the reader is held. */
static void release_read(struct rpc_call *call)
{
    size_t surplus = call->held_bytes - call->reader.message.len;
    call->session->received_bytes -= (int64_t)surplus;
    call->session->server->received_bytes -= (int64_t)surplus;
    call->held_bytes -= surplus;
}

static void deliver(struct rpc_call *call, struct str message)
{
    const struct rpc_method *m = call->entry->method;
    if (call->deadline_ns <= call->session->h2.now_ns)
        rpc_call_expire(call, call->session->h2.now_ns);
    else
        m->message(call, message, m->context);
}

static void on_message(struct rpc_call *call, struct str message)
{
    call->n_received++;
    call->request_bytes = message.len;
    metric_add(call->entry->received, 1);
    if (call->entry->method->is_client_streaming)
        deliver(call, message); /* a unary one waits for END_STREAM in the reader */
}

/* Where messages come one by one, each has its time from its first byte to its last. */
static void time_message(struct rpc_call *call, bool is_new)
{
    bool is_inside = rpc_reader_is_inside(&call->reader), was_inside = call->body_due_ns != INT64_MAX;
    if (call->is_finished || (is_inside == was_inside && !(is_inside && is_new)))
        return;
    int64_t limit_ns = rpc_h2_limit(&call->session->h2, NET_LIMIT_BODY_MS) * NS_PER_MS;
    call->body_due_ns = is_inside ? later(call->session->h2.now_ns, limit_ns) : INT64_MAX;
    rpc_call_set_timed(call);
}

void rpc_request_data(struct rpc_call *call, const uint8_t *bytes, size_t len)
{
    struct str rest = {(const char *)bytes, len};
    size_t n_before = call->n_received;
    if (call->is_plain)
        call->request_bytes += len;
    if (!call->is_open || !call->entry->method || !hold(call, len))
        return;
    bool is_single = !call->entry->method->is_client_streaming;
    while (rest.len > 0 && !call->is_finished) {
        if (is_single && call->n_received == 1) {
            rpc_call_refuse(call, ERR_UNIMPLEMENTED, "the method takes one message, and a second one came");
            break;
        }
        struct str message;
        enum rpc_read read = rpc_reader_feed(&call->reader, &rest, &message);
        if (read == RPC_READ_MESSAGE)
            on_message(call, message);
        else
            refuse_read(call, read);
    }
    release_read(call);
    if (!is_single)
        time_message(call, call->n_received != n_before);
}

static void end_unary(struct rpc_call *call)
{
    if (call->n_received == 0) {
        rpc_call_refuse(call, ERR_UNIMPLEMENTED, "the method takes one message, and none came");
        return;
    }
    call->body_due_ns = INT64_MAX;
    deliver(call, (struct str){call->reader.message.data ? call->reader.message.data : "", call->reader.message.len});
    if (!call->is_finished)
        rpc_call_set_timed(call);
    rpc_call_drop_held(call);
}

int rpc_request_end(struct rpc_call *call)
{
    if (call->is_plain)
        return rpc_request_answer_plain(call);
    if (!call->is_open || !call->entry->method)
        return 0;
    const struct rpc_method *m = call->entry->method;
    if (rpc_reader_is_inside(&call->reader))
        rpc_call_refuse(call, ERR_INTERNAL, "the request ends inside a message");
    else if (!m->is_client_streaming)
        end_unary(call);
    else if (m->half_closed)
        m->half_closed(call, m->context);
    else
        rpc_call_finish(call, ERR_NONE, NULL);
    return 0;
}
