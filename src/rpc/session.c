/* One server connection: nghttp2's callbacks tied to calls, drain, and the turn's bookkeeping. Header rules are
 * request.c's, answers call.c's, budgets h2.c's. */
#include "rpc/server.h"

#include <assert.h>

enum { DRAIN_NOTICE_NS_MAX = 1000000000 };
static const uint8_t drain_ping[8] = {'k', 'g', 's', 'd', 'r', 'a', 'i', 'n'};

static struct rpc_session *session_of(void *user_data)
{
    return CONTAINER_OF((struct rpc_h2 *)user_data, struct rpc_session, h2);
}

static struct rpc_call *call_of(nghttp2_session *ng, int32_t stream_id)
{
    return (struct rpc_call *)nghttp2_session_get_stream_user_data(ng, stream_id);
}

/* ---- nghttp2's callbacks ---- */

static int on_begin_headers(nghttp2_session *ng, const nghttp2_frame *frame, void *user_data)
{
    struct rpc_session *s = session_of(user_data);
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    if ((int64_t)s->server->n_calls >= rpc_h2_limit(&s->h2, NET_LIMIT_STREAMS_ALL) && s->n_calls >= NET_OWN_STREAMS) {
        rpc_h2_hit(&s->h2, NET_LIMIT_STREAMS_ALL);
        (void)nghttp2_submit_rst_stream(ng, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_REFUSED_STREAM);
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    struct rpc_call *call = rpc_call_new(s, frame->hd.stream_id);
    (void)nghttp2_session_set_stream_user_data(ng, frame->hd.stream_id, call);
    return 0;
}

static int on_header(nghttp2_session *ng, const nghttp2_frame *frame, nghttp2_rcbuf *name, nghttp2_rcbuf *value,
                     uint8_t flags, void *user_data)
{
    (void)flags;
    (void)user_data;
    struct rpc_call *call = call_of(ng, frame->hd.stream_id);
    return call ? rpc_request_header(call, name, value) : 0;
}

static int on_headers_complete(struct rpc_call *call, const nghttp2_frame *frame)
{
    bool is_end = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    call->is_remote_closed = is_end;
    int rv = frame->headers.cat == NGHTTP2_HCAT_REQUEST ? rpc_request_judge(call) : 0;
    return rv == 0 && is_end && !call->is_finished ? rpc_request_end(call) : rv;
}

static int on_frame_recv(nghttp2_session *ng, const nghttp2_frame *frame, void *user_data)
{
    struct rpc_session *s = session_of(user_data);
    int rv = rpc_h2_on_frame_recv(&s->h2, frame);
    if (rv != 0)
        return rv;
    if (frame->hd.type == NGHTTP2_PING && s->drain == RPC_DRAIN_NOTICE && (frame->hd.flags & NGHTTP2_FLAG_ACK) &&
        memcmp(frame->ping.opaque_data, drain_ping, sizeof(drain_ping)) == 0)
        s->is_draining_pinged = true;
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
        return 0;
    struct rpc_call *call = call_of(ng, frame->hd.stream_id);
    if (!call)
        return 0;
    if (frame->hd.type == NGHTTP2_HEADERS)
        return on_headers_complete(call, frame);
    if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return 0;
    call->is_remote_closed = true;
    return call->is_finished ? 0 : rpc_request_end(call);
}

static int on_data_chunk(nghttp2_session *ng, uint8_t flags, int32_t stream_id, const uint8_t *bytes, size_t len,
                         void *user_data)
{
    (void)flags;
    (void)user_data;
    struct rpc_call *call = call_of(ng, stream_id);
    if (call && !call->is_finished)
        rpc_request_data(call, bytes, len);
    return 0;
}

/* nghttp2 refuses streams beyond the limit by itself: by RST before our SETTINGS are acknowledged, with the whole
 * connection after. Either comes here. */
static int on_invalid_frame(nghttp2_session *ng, const nghttp2_frame *frame, int error, void *user_data)
{
    struct rpc_session *s = session_of(user_data);
    (void)ng;
    (void)error;
    if (frame->hd.type == NGHTTP2_HEADERS && (int64_t)s->n_calls >= rpc_h2_limit(&s->h2, NET_LIMIT_STREAMS))
        rpc_h2_hit(&s->h2, NET_LIMIT_STREAMS);
    return rpc_h2_on_invalid_frame(&s->h2);
}

/* Trailers before the client's END_STREAM: tell it to stop sending (PROTOCOL-HTTP2.md; RFC 9113 8.1). */
static int on_frame_send(nghttp2_session *ng, const nghttp2_frame *frame, void *user_data)
{
    struct rpc_session *s = session_of(user_data);
    rpc_h2_on_frame_send(&s->h2, frame);
    bool is_end = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    if (!is_end || (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
        return 0;
    struct rpc_call *call = call_of(ng, frame->hd.stream_id);
    if (call && !call->is_remote_closed)
        (void)nghttp2_submit_rst_stream(ng, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR);
    return 0;
}

/* Never fails: CVE-2023-35945. */
static int on_stream_close(nghttp2_session *ng, int32_t stream_id, uint32_t error_code, void *user_data)
{
    (void)error_code;
    (void)user_data;
    struct rpc_call *call = call_of(ng, stream_id);
    if (call)
        rpc_call_release(call);
    return 0;
}

nghttp2_session_callbacks *rpc_session_callbacks_new(void)
{
    nghttp2_session_callbacks *callbacks = rpc_h2_callbacks_new();
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback2(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame_recv);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data_chunk);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_send);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    return callbacks;
}

/* ---- life ---- */

struct rpc_session *rpc_session_new(struct rpc_server *server, const struct rpc_env *env, int64_t now_ns)
{
    struct rpc_session *s = mem_new(struct rpc_session);
    s->server = server;
    rpc_list_init(&s->calls);
    rpc_list_init(&s->finished);
    nghttp2_option *option = rpc_h2_option_new(true, env->limits);
    rpc_h2_init(&s->h2,
                &(struct rpc_h2_config){
                    .env = env, .callbacks = server->callbacks, .option = option, .is_server = true, .now_ns = now_ns});
    nghttp2_option_del(option);
    rpc_list_push(&server->sessions, &s->link);
    return s;
}

/* Call `ended` of what handlers finished. It may finish other calls: until none is left. */
static void reap(struct rpc_session *s)
{
    while (!rpc_list_is_empty(&s->finished))
        rpc_call_end(CONTAINER_OF(s->finished.next, struct rpc_call, finished_link));
}

void rpc_session_free(struct rpc_session *s)
{
    if (!s)
        return;
    s->h2.is_closing = true;
    reap(s);
    while (!rpc_list_is_empty(&s->calls))
        rpc_call_release(CONTAINER_OF(s->calls.next, struct rpc_call, link));
    if (s->drain != RPC_OPEN)
        s->server->n_draining--;
    rpc_link_remove(&s->link);
    rpc_h2_fini(&s->h2);
    free(s);
}

int rpc_session_receive(struct rpc_session *s, const uint8_t *bytes, size_t len, int64_t now_ns)
{
    reap(s);
    int rv = rpc_h2_receive(&s->h2, bytes, len, now_ns);
    reap(s);
    return rv;
}

size_t rpc_session_pull(struct rpc_session *s, const uint8_t **ret_bytes)
{
    reap(s);
    return rpc_h2_pull(&s->h2, ret_bytes);
}

/* ---- drain: grpc-http2.md 3.7 ---- */

/* KEDA reopens a stream that ended with OK after 2 s without back-off. */
static void end_streams(struct rpc_session *s)
{
    struct rpc_link *link = s->calls.next;
    while (link != &s->calls) {
        struct rpc_call *call = CONTAINER_OF(link, struct rpc_call, link);
        link = link->next;
        if (call->is_open && !call->is_finished && call->entry->method && call->entry->method->is_server_streaming)
            rpc_call_finish(call, ERR_NONE, NULL);
    }
}

void rpc_session_drain(struct rpc_session *s, int64_t now_ns)
{
    if (s->drain != RPC_OPEN || s->h2.is_closing)
        return;
    s->h2.now_ns = now_ns;
    s->drain = RPC_DRAIN_NOTICE;
    s->drain_since_ns = now_ns;
    s->server->n_draining++;
    (void)nghttp2_submit_shutdown_notice(s->h2.ng);
    rpc_h2_ping(&s->h2, drain_ping);
    end_streams(s);
    rpc_server_net_hurry(s->server, now_ns);
}

/* Notice -> final: the peer has seen the notice (its ACK) or had its second. Streams opened meanwhile end too. */
static void drain_step(struct rpc_session *s)
{
    if (s->drain != RPC_DRAIN_NOTICE || s->h2.is_closing)
        return;
    if (!s->is_draining_pinged && s->h2.now_ns - s->drain_since_ns < DRAIN_NOTICE_NS_MAX)
        return;
    s->drain = RPC_DRAIN_FINAL;
    end_streams(s);
    (void)nghttp2_submit_goaway(s->h2.ng, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(s->h2.ng),
                                NGHTTP2_NO_ERROR, NULL, 0);
    s->h2.env.wake(s->h2.env.context);
}

void rpc_session_tick(struct rpc_session *s, int64_t now_ns)
{
    rpc_h2_tick(&s->h2, now_ns, rpc_h2_limit(&s->h2, NET_LIMIT_KEEPALIVE_MS) * NS_PER_MS);
    drain_step(s);
    reap(s);
}

bool rpc_session_is_done(const struct rpc_session *s)
{
    if (s->h2.is_closing)
        return true;
    return s->drain == RPC_DRAIN_FINAL && s->n_calls == 0 && nghttp2_session_get_outbound_queue_size(s->h2.ng) == 0;
}
