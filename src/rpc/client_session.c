/* One connection of the client: requests out, answers in, and what each end of a stream means as a status
 * (grpc-http2.md 3.4 to 3.6). No socket: bytes come in and go out. */
#include "rpc/client.h"

#include <string.h>

static struct rpc_client_session *session_of(void *user_data)
{
    return CONTAINER_OF((struct rpc_h2 *)user_data, struct rpc_client_session, h2);
}

static struct rpc_client_call *call_of(nghttp2_session *ng, int32_t stream_id)
{
    return (struct rpc_client_call *)nghttp2_session_get_stream_user_data(ng, stream_id);
}

/* ---- requests ---- */

static ssize_t read_request(nghttp2_session *ng, int32_t stream_id, uint8_t *out, size_t size, uint32_t *flags,
                            nghttp2_data_source *source, void *user_data)
{
    (void)source;
    (void)user_data;
    struct rpc_client_call *call = call_of(ng, stream_id);
    if (!call)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* ended meanwhile */
    size_t left = call->request.len - call->request_at, n = left < size ? left : size;
    memcpy(out, call->request.data + call->request_at, n);
    call->request_at += n;
    if (n == left)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static nghttp2_nv nv_of(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name), strlen(value),
                        NGHTTP2_NV_FLAG_NONE};
}

static void reset_answer(struct rpc_client_call *call)
{
    call->request_at = 0;
    call->http_status = call->grpc_status = -1;
    call->is_grpc = call->has_encoding = call->has_headers = call->is_remote_closed = false;
    call->header_bytes = 0;
    call->content_type[0] = '\0';
    free(call->text);
    call->text = NULL;
    rpc_reader_reset(&call->reader, 0);
}

void rpc_client_session_submit(struct rpc_client_session *s, struct rpc_client_call *call)
{
    struct rpc_client *client = s->client;
    bool is_timed = call->deadline_ns != INT64_MAX;
    char timeout[RPC_TIMEOUT_MAX] = "";
    if (is_timed)
        rpc_timeout_format(timeout, call->deadline_ns - client->io->now_ns(client));
    nghttp2_nv nva[] = {nv_of(":method", "POST"),
                        nv_of(":scheme", client->is_tls ? "https" : "http"),
                        nv_of(":path", call->path),
                        nv_of(":authority", client->authority),
                        nv_of("content-type", "application/grpc"),
                        nv_of("user-agent", "keda-gpu-scaler"),
                        nv_of("te", "trailers"),
                        nv_of("grpc-timeout", timeout)};
    reset_answer(call);
    call->attempts++;
    nghttp2_data_provider provider = {.read_callback = read_request};
    call->stream_id = nghttp2_submit_request(s->h2.ng, NULL, nva, ARRAY_LEN(nva) - (is_timed ? 0 : 1), &provider, call);
    if (call->stream_id < 0) { /* stream ids are used up, or memory is */
        rpc_client_call_end(call, ERR_UNAVAILABLE, "cannot open a stream: %s", nghttp2_strerror(call->stream_id));
        return;
    }
    call->session = s;
    rpc_link_remove(&call->link);
    rpc_list_push(&s->calls, &call->link);
    s->h2.env.wake(s->h2.env.context);
}

static void detach(struct rpc_client_call *call)
{
    (void)nghttp2_session_set_stream_user_data(call->session->h2.ng, call->stream_id, NULL);
    rpc_link_remove(&call->link);
    call->session = NULL;
}

void rpc_client_session_drop(struct rpc_client_call *call)
{
    struct rpc_client_session *s = call->session;
    bool is_complete = call->is_remote_closed && call->request_at == call->request.len;
    if (!is_complete) /* else the stream closes by itself */
        (void)nghttp2_submit_rst_stream(s->h2.ng, NGHTTP2_FLAG_NONE, call->stream_id, NGHTTP2_CANCEL);
    detach(call);
    s->h2.env.wake(s->h2.env.context);
}

/* ---- answers: headers and trailers ---- */

static void on_status(struct rpc_client_call *call, struct str value)
{
    int64_t status;
    call->http_status = num_parse_i64(value, &status) == 0 && status >= 100 && status <= 999 ? (int)status : -1;
}

static void on_content_type(struct rpc_client_call *call, struct str value)
{
    rpc_text_clean(call->content_type, sizeof(call->content_type), value);
    call->is_grpc = rpc_is_grpc_content_type(value);
}

static void on_grpc_status(struct rpc_client_call *call, struct str value)
{
    int64_t status;
    call->grpc_status = num_parse_i64(value, &status) == 0 && status >= 0 && status <= 999 ? (int)status : 2;
}

static void on_grpc_message(struct rpc_client_call *call, struct str value)
{
    if (!call->text)
        call->text = (char *)mem_new_array(RPC_ANSWER_TEXT_MAX, 1);
    rpc_percent_decode(call->text, RPC_ANSWER_TEXT_MAX, value);
}

static void on_encoding(struct rpc_client_call *call, struct str value)
{
    call->has_encoding = !str_equals(value, "identity");
}

static const struct {
    const char *name;
    void (*handle)(struct rpc_client_call *call, struct str value);
} headers[] = {
    {":status", on_status},          {"content-type", on_content_type},
    {"grpc-status", on_grpc_status}, {"grpc-message", on_grpc_message},
    {"grpc-encoding", on_encoding},
};

static int on_header(nghttp2_session *ng, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
                     const uint8_t *value, size_t value_len, uint8_t flags, void *user_data)
{
    enum { OVERHEAD = 32, DROP_FACTOR = 4 }; /* RFC 9113 6.5.2 */
    struct rpc_client_session *s = session_of(user_data);
    struct rpc_client_call *call = call_of(ng, frame->hd.stream_id);
    (void)flags;
    if (!call)
        return 0;
    int64_t limit = rpc_h2_limit(&s->h2, NET_LIMIT_HEADER_LIST_BYTES);
    call->header_bytes += name_len + value_len + OVERHEAD;
    if ((int64_t)call->header_bytes > DROP_FACTOR * limit)
        return rpc_h2_trip(&s->h2, NET_LIMIT_HEADER_LIST_BYTES, NGHTTP2_ENHANCE_YOUR_CALM, "header_list_too_large");
    struct str key = {(const char *)name, name_len};
    for (size_t i = 0; i < ARRAY_LEN(headers); i++)
        if (str_equals(key, headers[i].name))
            headers[i].handle(call, (struct str){(const char *)value, value_len});
    return 0;
}

static void end_by_grpc_status(struct rpc_client_call *call)
{
    enum err_class class = err_class_of_grpc(call->grpc_status);
    const char *text = call->text ? call->text : "";
    if (class == ERR_NONE && rpc_reader_is_inside(&call->reader))
        rpc_client_call_end(call, ERR_INTERNAL, "the answer ends inside a message");
    else if (class == ERR_UNKNOWN && call->grpc_status != err_grpc_status(ERR_UNKNOWN))
        rpc_client_call_end(call, class, "gRPC status %d: %s", call->grpc_status, text);
    else
        rpc_client_call_end(call, class, "%s", class == ERR_NONE ? "" : text);
}

/* The stream ended with a header block. */
static void end_by_trailers(struct rpc_client_call *call)
{
    if (!call->has_headers && call->http_status != 200 && call->grpc_status < 0)
        rpc_client_call_end(call, rpc_class_of_http(call->http_status), "HTTP status %d", call->http_status);
    else if (call->grpc_status < 0)
        rpc_client_call_end(call, ERR_INTERNAL, "the server ended the answer without a grpc-status");
    else
        end_by_grpc_status(call);
}

static void on_headers(struct rpc_client_session *s, struct rpc_client_call *call, const nghttp2_frame *frame)
{
    if ((int64_t)call->header_bytes > rpc_h2_limit(&s->h2, NET_LIMIT_HEADER_LIST_BYTES)) {
        rpc_h2_hit(&s->h2, NET_LIMIT_HEADER_LIST_BYTES);
        rpc_client_call_end(call, ERR_RESOURCE_EXHAUSTED, "the answer's headers are too large");
    } else if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
        end_by_trailers(call);
    } else if (call->has_headers || (call->http_status >= 100 && call->http_status < 200)) {
        return; /* 1xx; nghttp2 refuses other header blocks in the middle */
    } else if (call->http_status != 200) {
        rpc_client_call_end(call, rpc_class_of_http(call->http_status), "HTTP status %d, content-type \"%s\"",
                            call->http_status, call->content_type);
    } else if (!call->is_grpc) {
        rpc_client_call_end(call, ERR_UNKNOWN, "the server does not speak gRPC: content-type \"%s\"",
                            call->content_type);
    } else {
        call->has_headers = true;
    }
}

/* ---- answers: messages ---- */

static void refuse_read(struct rpc_client_call *call, enum rpc_read read)
{
    switch (read) {
    case RPC_READ_TOO_BIG:
        rpc_client_call_end(call, ERR_RESOURCE_EXHAUSTED,
                            "the answer has a message of %zu bytes; at most %zu are taken", call->reader.need,
                            call->reader.max_bytes);
        break;
    case RPC_READ_COMPRESSED:
        rpc_client_call_end(call, ERR_INTERNAL, "the server sent a compressed message%s",
                            call->has_encoding ? " in an encoding that was not offered" : " without grpc-encoding");
        break;
    case RPC_READ_BAD_FLAG:
        rpc_client_call_end(call, ERR_INTERNAL, "a message's flag byte is neither 0 nor 1");
        break;
    case RPC_READ_MORE:
    case RPC_READ_MESSAGE:
    default:
        break;
    }
}

static int on_data_chunk(nghttp2_session *ng, uint8_t flags, int32_t stream_id, const uint8_t *bytes, size_t len,
                         void *user_data)
{
    struct rpc_client_call *call = call_of(ng, stream_id);
    (void)flags;
    (void)user_data;
    if (!call)
        return 0;
    struct str rest = {(const char *)bytes, len}, message;
    call->is_inside = true; /* a handler may end the call, or free the client */
    while (rest.len > 0 && !call->is_over) {
        enum rpc_read read = rpc_reader_feed(&call->reader, &rest, &message);
        if (read != RPC_READ_MESSAGE)
            refuse_read(call, read);
        else if (call->config.message)
            call->config.message(call->config.context, message);
    }
    call->is_inside = false;
    if (call->is_told)
        rpc_client_call_free(call);
    return 0;
}

/* ---- nghttp2's callbacks ---- */

static int on_begin_headers(nghttp2_session *ng, const nghttp2_frame *frame, void *user_data)
{
    struct rpc_client_call *call = call_of(ng, frame->hd.stream_id);
    (void)user_data;
    if (call && !call->has_headers)
        call->http_status = -1; /* a 1xx answer came before */
    return 0;
}

static void on_goaway(struct rpc_client_session *s, const nghttp2_goaway *goaway)
{
    struct err e;
    struct str text = {(const char *)goaway->opaque_data, goaway->opaque_data_len};
    if (goaway->error_code == NGHTTP2_ENHANCE_YOUR_CALM && str_equals(text, "too_many_pings"))
        s->client->keepalive_ns *= 2; /* gRFC A8 */
    (void)err_set(&e, ERR_UNAVAILABLE, "%s closes connections (%s)", s->client->address,
                  nghttp2_http2_strerror(goaway->error_code));
    rpc_client_leave(s, &e);
}

static int on_frame_recv(nghttp2_session *ng, const nghttp2_frame *frame, void *user_data)
{
    struct rpc_client_session *s = session_of(user_data);
    int rv = rpc_h2_on_frame_recv(&s->h2, frame);
    if (rv != 0)
        return rv;
    struct rpc_client_call *call = frame->hd.stream_id > 0 ? call_of(ng, frame->hd.stream_id) : NULL;
    if (call && (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA))
        call->is_remote_closed = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    if (frame->hd.type == NGHTTP2_GOAWAY)
        on_goaway(s, &frame->goaway);
    else if (frame->hd.type == NGHTTP2_HEADERS && call)
        on_headers(s, call, frame);
    else if (frame->hd.type == NGHTTP2_DATA && call && call->is_remote_closed)
        rpc_client_call_end(call, ERR_INTERNAL, "the server ended the answer without trailers");
    return 0;
}

static int on_frame_send(nghttp2_session *ng, const nghttp2_frame *frame, void *user_data)
{
    (void)ng;
    rpc_h2_on_frame_send((struct rpc_h2 *)user_data, frame);
    return 0;
}

/* Not processed: try again, behind those that wait already. */
static bool requeue(struct rpc_client_call *call)
{
    struct rpc_client *client = call->client;
    if (call->attempts >= RPC_ATTEMPTS_MAX || call->has_headers)
        return false;
    detach(call);
    rpc_list_push(&client->queued, &call->link);
    client->io->wake(client);
    return true;
}

/* A stream that ended without trailers. Never fails: CVE-2023-35945. */
static int on_stream_close(nghttp2_session *ng, int32_t stream_id, uint32_t error_code, void *user_data)
{
    struct rpc_client_call *call = call_of(ng, stream_id);
    (void)user_data;
    if (!call || (error_code == NGHTTP2_REFUSED_STREAM && requeue(call)))
        return 0;
    enum err_class class = rpc_class_of_reset(error_code);
    bool is_late = class == ERR_CANCELLED && call->deadline_ns <= call->client->io->now_ns(call->client);
    detach(call);
    rpc_list_push(&call->client->queued, &call->link); /* in some list until its end is told */
    if (is_late)
        rpc_client_call_end(call, ERR_DEADLINE_EXCEEDED, "the server gave up at the deadline");
    else
        rpc_client_call_end(call, class, "the server reset the stream (%s)", nghttp2_http2_strerror(error_code));
    return 0;
}

nghttp2_session_callbacks *rpc_client_callbacks_new(void)
{
    nghttp2_session_callbacks *callbacks = rpc_h2_callbacks_new();
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame_recv);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data_chunk);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_send);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    return callbacks;
}

/* ---- life ---- */

struct rpc_client_session *rpc_client_session_new(struct rpc_client *client, const struct rpc_env *env, int64_t now_ns)
{
    struct rpc_client_session *s = mem_new(struct rpc_client_session);
    s->client = client;
    rpc_list_init(&s->calls);
    nghttp2_option *option = rpc_h2_option_new(false, env->limits);
    nghttp2_mem mem = rpc_pool_mem(&s->share);
    struct rpc_h2_config config = {.env = env,
                                   .callbacks = client->callbacks,
                                   .option = option,
                                   .window_bytes = client->window_bytes,
                                   .now_ns = now_ns};
    if (client->pool) {
        s->share.pool = client->pool;
        config.callbacks = rpc_pool_callbacks(client->pool);
        config.mem = &mem;
        config.has_no_tables = true;
        nghttp2_option_set_max_deflate_dynamic_table_size(option, 0);
    }
    rpc_h2_init(&s->h2, &config);
    nghttp2_option_del(option);
    rpc_list_push(&client->sessions, &s->link);
    client->current = s;
    return s;
}

void rpc_client_session_free(struct rpc_client_session *s, const char *reason)
{
    if (!s)
        return;
    struct err e;
    struct rpc_client *client = s->client;
    (void)err_set(&e, ERR_UNAVAILABLE, "the connection to %s was lost%s%s%s", client->address,
                  s->h2.is_established ? "" : " before the server spoke HTTP/2", *reason ? ": " : "", reason);
    s->h2.is_closing = true;
    while (!rpc_list_is_empty(&s->calls)) {
        struct rpc_client_call *call = CONTAINER_OF(s->calls.next, struct rpc_client_call, link);
        rpc_client_call_end(call, ERR_UNAVAILABLE, "%s", e.text);
    }
    rpc_client_leave(s, &e);
    rpc_link_remove(&s->link);
    rpc_h2_fini(&s->h2);
    free(s);
}

int rpc_client_session_receive(struct rpc_client_session *s, const uint8_t *bytes, size_t len, int64_t now_ns)
{
    return rpc_h2_receive(&s->h2, bytes, len, now_ns);
}

size_t rpc_client_session_pull(struct rpc_client_session *s, const uint8_t **ret_bytes)
{
    size_t n = rpc_h2_pull(&s->h2, ret_bytes);
    if (n > 0)
        s->share.is_touched = true;
    else
        rpc_pool_release(&s->share);
    return n;
}

bool rpc_client_session_is_done(const struct rpc_client_session *s)
{
    return s->h2.is_closing ||
           (s->is_leaving && rpc_list_is_empty(&s->calls) && nghttp2_session_get_outbound_queue_size(s->h2.ng) == 0);
}
