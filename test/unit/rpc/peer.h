/* An HTTP/2 client in memory against the server's session core: what it sends goes into the session, what the session
 * gives goes to it. The clock is a number that tests move. */
#ifndef TEST_RPC_PEER_H
#define TEST_RPC_PEER_H

#include "rpc/server.h"
#include "support.h"

#include <string.h>

enum { PEER_STREAMS = 64 };

struct answer {
    char status[8], grpc_status[8], grpc_message[4096], content_type[64], extra[128];
    char body[8192];
    size_t body_len, n_headers, n_body_bytes;
    bool is_closed, has_trailers, is_data_end;
    uint32_t reset_code; /* of RST_STREAM or 0 */
    bool is_reset;
};

struct peer {
    struct metrics *metrics;
    struct net_gets *gets;
    struct rpc_server *server;
    struct rpc_session *session;
    struct net_limits limits;
    nghttp2_session *ng;
    struct answer answers[PEER_STREAMS]; /* by (id - 1) / 2, of the first streams */
    int64_t now_ns;
    int rc; /* what receive last returned */
    int n_wakes, n_again, n_established;
    int hits[NET_LIMIT_COUNT];
    bool is_goaway;
    uint32_t goaway_code;
    int32_t goaway_last;
    char goaway_text[64];
    int n_goaways, n_pings, n_ping_acks;
    size_t n_discarded;
};

#define PEER_FN __attribute__((unused)) static

PEER_FN void peer_wake(void *context)
{
    ((struct peer *)context)->n_wakes++;
}
PEER_FN void peer_again(void *context)
{
    ((struct peer *)context)->n_again++;
}
PEER_FN void peer_established(void *context)
{
    ((struct peer *)context)->n_established++;
}
PEER_FN void peer_limit_hit(void *context, enum net_limit limit)
{
    ((struct peer *)context)->hits[limit]++;
}

PEER_FN struct answer *peer_answer(struct peer *p, int32_t id)
{
    static struct answer other;
    size_t at = (size_t)(id - 1) / 2;
    return id > 0 && at < PEER_STREAMS ? &p->answers[at] : &other;
}

PEER_FN void peer_copy(char *out, size_t size, const uint8_t *value, size_t len)
{
    (void)str_copy(out, size, (struct str){(const char *)value, len});
}

PEER_FN int peer_on_header(nghttp2_session *ng, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
                           const uint8_t *value, size_t value_len, uint8_t flags, void *user_data)
{
    (void)ng;
    (void)flags;
    struct answer *a = peer_answer((struct peer *)user_data, frame->hd.stream_id);
    struct str key = {(const char *)name, name_len};
    if (str_equals(key, ":status"))
        peer_copy(a->status, sizeof(a->status), value, value_len);
    else if (str_equals(key, "grpc-status"))
        peer_copy(a->grpc_status, sizeof(a->grpc_status), value, value_len);
    else if (str_equals(key, "grpc-message"))
        peer_copy(a->grpc_message, sizeof(a->grpc_message), value, value_len);
    else if (str_equals(key, "content-type"))
        peer_copy(a->content_type, sizeof(a->content_type), value, value_len);
    else
        peer_copy(a->extra, sizeof(a->extra), value, value_len);
    return 0;
}

PEER_FN int peer_on_frame(nghttp2_session *ng, const nghttp2_frame *frame, void *user_data)
{
    struct peer *p = (struct peer *)user_data;
    struct answer *a = peer_answer(p, frame->hd.stream_id);
    (void)ng;
    bool is_end = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    if (frame->hd.type == NGHTTP2_HEADERS) {
        a->n_headers++;
        a->has_trailers = a->has_trailers || is_end;
    } else if (frame->hd.type == NGHTTP2_DATA && is_end) {
        a->is_data_end = true;
    } else if (frame->hd.type == NGHTTP2_RST_STREAM) {
        a->is_reset = true;
        a->reset_code = frame->rst_stream.error_code;
    } else if (frame->hd.type == NGHTTP2_PING) {
        *(frame->hd.flags & NGHTTP2_FLAG_ACK ? &p->n_ping_acks : &p->n_pings) += 1;
    }
    return 0;
}

PEER_FN int peer_on_data(nghttp2_session *ng, uint8_t flags, int32_t id, const uint8_t *bytes, size_t len,
                         void *user_data)
{
    (void)ng;
    (void)flags;
    struct answer *a = peer_answer((struct peer *)user_data, id);
    size_t room = sizeof(a->body) - a->body_len, n = len < room ? len : room;
    memcpy(a->body + a->body_len, bytes, n);
    a->body_len += n;
    a->n_body_bytes += len;
    return 0;
}

PEER_FN int peer_on_close(nghttp2_session *ng, int32_t id, uint32_t code, void *user_data)
{
    (void)ng;
    (void)code;
    peer_answer((struct peer *)user_data, id)->is_closed = true;
    return 0;
}

/* Methods may be NULL. */
PEER_FN void peer_init(struct peer *p, const struct rpc_method *methods, size_t n)
{
    *p = (struct peer){.now_ns = 1000 * NS_PER_S, .limits = net_limits_default};
    p->metrics = metrics_new();
    p->gets = net_gets_new();
    p->server = rpc_server_new(&(struct rpc_server_config){.metrics = p->metrics, .gets = p->gets});
    rpc_server_add(p->server, methods, n);
    struct rpc_env env = {.context = p,
                          .limits = &p->limits,
                          .peer = "test",
                          .wake = peer_wake,
                          .again = peer_again,
                          .limit_hit = peer_limit_hit,
                          .established = peer_established};
    p->session = rpc_session_new(p->server, &env, p->now_ns);
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    assert_int_equal(nghttp2_session_callbacks_new(&callbacks), 0);
    assert_int_equal(nghttp2_option_new(&option), 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, peer_on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, peer_on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, peer_on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, peer_on_close);
    nghttp2_option_set_no_http_messaging(option, 1); /* it may send what is wrong */
    assert_int_equal(nghttp2_session_client_new2(&p->ng, callbacks, p, option), 0);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    (void)nghttp2_submit_settings(p->ng, 0, NULL, 0);
}

PEER_FN void peer_fini(struct peer *p)
{
    rpc_session_free(p->session);
    p->session = NULL;
    assert_int_equal(p->server->n_calls, 0);
    assert_int_equal(p->server->received_bytes, 0);
    assert_int_equal(p->server->unsent_bytes, 0);
    rpc_server_free(p->server);
    net_gets_free(p->gets);
    metrics_free(p->metrics);
    nghttp2_session_del(p->ng);
}

/* Bytes of the client into the session, as they are. */
PEER_FN void peer_feed(struct peer *p, const void *bytes, size_t len)
{
    p->rc = rpc_session_receive(p->session, (const uint8_t *)bytes, len, p->now_ns);
}

/* What the client wants to send. Returns whether there was any. */
PEER_FN bool peer_send(struct peer *p)
{
    const uint8_t *bytes;
    ssize_t n;
    bool has_any = false;
    while ((n = nghttp2_session_mem_send(p->ng, &bytes)) > 0) {
        peer_feed(p, bytes, (size_t)n);
        has_any = true;
    }
    return has_any;
}

PEER_FN uint32_t peer_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* From the bytes: nghttp2's client shows only the first, and none once it has found an error. */
PEER_FN void peer_note_goaway(struct peer *p, const uint8_t *bytes, size_t len)
{
    p->is_goaway = true;
    p->n_goaways++;
    p->goaway_last = (int32_t)peer_u32(bytes + 9);
    p->goaway_code = peer_u32(bytes + 13);
    peer_copy(p->goaway_text, sizeof(p->goaway_text), bytes + 17, len - 17);
}

/* What the session wants to send. */
PEER_FN bool peer_read(struct peer *p)
{
    const uint8_t *bytes;
    size_t n;
    bool has_any = false;
    while ((n = rpc_session_pull(p->session, &bytes)) > 0) {
        if (bytes[3] == NGHTTP2_GOAWAY)
            peer_note_goaway(p, bytes, n);
        assert_true(nghttp2_session_mem_recv(p->ng, bytes, n) == (ssize_t)n);
        has_any = true;
    }
    return has_any;
}

/* Both directions until nothing moves. */
PEER_FN void peer_pump(struct peer *p)
{
    bool moves = true;
    while (moves) {
        moves = peer_send(p);
        moves = peer_read(p) || moves;
    }
}

PEER_FN nghttp2_nv peer_nv(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name), strlen(value), 0};
}

/* What a request is made of; the zero value is a good gRPC POST without a message. */
struct request {
    const char *path, *method, *content_type; /* NULL = "/t.T/Unary", POST, application/grpc */
    const char *extra[8];                     /* name, value, ... */
    const char *body;                         /* bytes of DATA */
    size_t body_len;
    bool is_open; /* no END_STREAM */
};

struct peer_body {
    const char *bytes;
    size_t len;
    bool is_open;
};

/* The body goes out at once: it lives until the next pump. */
PEER_FN ssize_t peer_read_body(nghttp2_session *ng, int32_t id, uint8_t *out, size_t size, uint32_t *flags,
                               nghttp2_data_source *source, void *user_data)
{
    struct peer_body *body = (struct peer_body *)source->ptr;
    (void)ng;
    (void)id;
    (void)user_data;
    size_t n = body->len < size ? body->len : size;
    if (n == 0 && body->is_open)
        return NGHTTP2_ERR_DEFERRED;
    if (n)
        memcpy(out, body->bytes, n);
    body->bytes += n;
    body->len -= n;
    if (body->len == 0 && !body->is_open)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

/* Returns the stream id. Sends what it can. */
PEER_FN int32_t peer_request(struct peer *p, const struct request *r)
{
    nghttp2_nv nva[10];
    size_t n = 0;
    nva[n++] = peer_nv(":method", r->method ? r->method : "POST");
    nva[n++] = peer_nv(":scheme", "http");
    nva[n++] = peer_nv(":path", r->path ? r->path : "/t.T/Unary");
    nva[n++] = peer_nv(":authority", "test");
    if (!r->content_type || *r->content_type)
        nva[n++] = peer_nv("content-type", r->content_type ? r->content_type : "application/grpc");
    nva[n++] = peer_nv("te", "trailers");
    for (size_t i = 0; i + 1 < ARRAY_LEN(r->extra) && r->extra[i]; i += 2)
        nva[n++] = peer_nv(r->extra[i], r->extra[i + 1]);
    static struct peer_body bodies[PEER_STREAMS];
    static size_t next;
    struct peer_body *body = &bodies[next++ % PEER_STREAMS];
    *body = (struct peer_body){r->body, r->body_len, r->is_open};
    nghttp2_data_provider provider = {.source.ptr = body, .read_callback = peer_read_body};
    bool has_body = r->body_len > 0 || r->is_open;
    int32_t id = nghttp2_submit_request(p->ng, NULL, nva, n, has_body ? &provider : NULL, NULL);
    assert_true(id > 0);
    (void)peer_send(p);
    return id;
}

/* One message with its prefix as a literal: BODY("abc") in an initialiser of struct request. */
#define BODY(text)              .body = "\0\0\0\0" text, .body_len = sizeof("\0\0\0\0" text) - 1
#define MESSAGE(len_char, text) "\0\0\0\0" len_char text

/* A raw frame header. */
PEER_FN size_t peer_frame(uint8_t *out, size_t payload_len, uint8_t type, uint8_t flags, int32_t id)
{
    out[0] = (uint8_t)(payload_len >> 16);
    out[1] = (uint8_t)(payload_len >> 8);
    out[2] = (uint8_t)payload_len;
    out[3] = type;
    out[4] = flags;
    for (int i = 0; i < 4; i++)
        out[5 + i] = (uint8_t)((uint32_t)id >> (24 - 8 * i));
    return 9;
}

#endif
