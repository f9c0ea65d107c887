/* The client's core against a scripted HTTP/2 server in memory. The clock is a number that tests move. */
#ifndef TEST_RPC_CLIENT_RIG_H
#define TEST_RPC_CLIENT_RIG_H

#include "rpc/client.h"
#include "support.h"

#include <string.h>

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

static inline void rig_dial(struct rpc_client *client)
{
    (void)client;
    rig.n_dials++;
}
static inline void rig_wake(struct rpc_client *client)
{
    (void)client;
}
static inline int64_t rig_now(const struct rpc_client *client)
{
    (void)client;
    return rig.now_ns;
}
static const struct rpc_client_io rig_io = {.dial = rig_dial, .wake = rig_wake, .now_ns = rig_now};

static inline void env_wake(void *context)
{
    (void)context;
}
static inline void env_established(void *context)
{
    (void)context;
    rpc_client_ready(rig.session);
}
static inline void env_limit_hit(void *context, enum net_limit limit)
{
    (void)context;
    rig.hits[limit]++;
}

static inline ssize_t read_data(nghttp2_session *ng, int32_t id, uint8_t *out, size_t size, uint32_t *flags,
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

static inline void answer(nghttp2_session *ng, int32_t id)
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

static inline int server_frame(nghttp2_session *ng, const nghttp2_frame *frame, void *user_data)
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

static inline int server_header(nghttp2_session *ng, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
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

static inline int server_data(nghttp2_session *ng, uint8_t flags, int32_t id, const uint8_t *bytes, size_t len,
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

static inline void new_server(void)
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

static inline void connect_rig(void)
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

static inline void disconnect_rig(void)
{
    rpc_client_session_free(rig.session, "Connection reset by peer");
    rig.session = NULL;
    nghttp2_session_del(rig.server);
    rig.server = NULL;
}

static inline void start_rig(void)
{
    memset(&rig, 0, sizeof(rig));
    rig.now_ns = 1000 * NS_PER_S;
    rig.limits = net_limits_default;
    rpc_client_core_init(&rig.client, &(struct rpc_client_config){.address = "node:6000", .max_message_bytes = 1000},
                         &rig_io);
}

static inline void stop_rig(void)
{
    rpc_client_cancel_all(&rig.client);
    rpc_client_reap(&rig.client);
    if (rig.session)
        disconnect_rig();
    rpc_client_core_fini(&rig.client);
}

static inline void to_client(void)
{
    const uint8_t *bytes;
    ssize_t n;
    while (rig.session && (n = nghttp2_session_mem_send(rig.server, &bytes)) > 0)
        (void)rpc_client_session_receive(rig.session, bytes, (size_t)n, rig.now_ns);
}

static inline void pump(void)
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

static inline void on_message(void *context, struct str message)
{
    struct result *r = (struct result *)context;
    r->n_messages++;
    r->message_bytes += message.len;
    (void)str_copy(r->last, sizeof(r->last), message);
}

static inline void on_done(void *context, const struct err *status)
{
    struct result *r = (struct result *)context;
    r->n_done++;
    r->status = *status;
}

static inline struct rpc_client_call *call(struct result *r, int64_t deadline_ns, bool is_waiting)
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

/* ---- scripts ---- */

#define OK_HEADERS                                                                                                     \
    {                                                                                                                  \
        ":status", "200", "content-type", "application/grpc"                                                           \
    }

static const struct script plain = {
    .headers = OK_HEADERS, .data = "\0\0\0\0\2ok", .data_len = 7, .trailers = {"grpc-status", "0"}};
static const struct script silent = {.is_silent = true};
static const struct script refusing = {.is_reset = true, .reset_code = NGHTTP2_REFUSED_STREAM};

#endif
