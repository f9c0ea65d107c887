/* Bytes of a peer into a server session: whatever comes, memory is bounded and calls end exactly once. */
#include "rpc/server.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int n_begun, n_ended;

static void check(bool is_true)
{
    if (!is_true)
        abort();
}

static void begin(struct rpc_call *call)
{
    n_begun += rpc_call_state(call) ? 0 : 1;
    rpc_call_set_state(call, &n_begun);
}

static void echo(struct rpc_call *call, struct str request, void *context)
{
    (void)context;
    begin(call);
    char *copy = arena_strndup(rpc_call_arena(call), request.ptr, request.len);
    rpc_call_reply(call, copy ? copy : "", copy ? request.len : 0);
}

static void stay(struct rpc_call *call, struct str request, void *context)
{
    (void)context;
    begin(call);
    (void)rpc_call_send(call, request.ptr, request.len);
    (void)rpc_call_send(call, "newest", 6);
}

static void chat(struct rpc_call *call, struct str request, void *context)
{
    (void)context;
    begin(call);
    (void)rpc_call_send(call, request.ptr, request.len);
    if (request.len == 3)
        rpc_call_finish(call, ERR_NOT_FOUND, "three \xFF%");
}

static void ended(struct rpc_call *call, void *context)
{
    (void)context;
    n_ended += rpc_call_state(call) ? 1 : 0;
}

static const struct rpc_method methods[] = {
    {.path = "/t.T/Unary", .deadline_ns = NS_PER_S, .message = echo, .ended = ended},
    {.path = "/t.T/Stream", .is_server_streaming = true, .message = stay, .ended = ended},
    {.path = "/t.T/State", .is_server_streaming = true, .is_state_stream = true, .message = stay, .ended = ended},
    {.path = "/t.T/Chat", .is_client_streaming = true, .is_server_streaming = true, .message = chat, .ended = ended},
};

static void page(void *context, const struct net_get_request *request, struct net_get_response *response)
{
    (void)context;
    (void)buf_append(&response->body, request->query.ptr, request->query.len);
    (void)str_copy(response->extra, sizeof(response->extra), request->accept);
}

static void nothing(void *context)
{
    (void)context;
}

static void no_limit(void *context, enum net_limit limit)
{
    (void)context;
    (void)limit;
}

/* The first byte chooses how the rest is cut, whether output is read, and whether the session drains on the way. */
static void play(struct rpc_server *server, struct rpc_session *s, const uint8_t *data, size_t size)
{
    uint8_t mode = size ? data[0] : 0;
    size_t step = (size_t)1 << (mode & 15), at = size ? 1 : 0;
    int64_t now_ns = NS_PER_S;
    const uint8_t *bytes;
    int rv = 0;
    while (at < size && rv == 0) {
        size_t n = size - at < step ? size - at : step;
        rv = rpc_session_receive(s, data + at, n, now_ns);
        at += n;
        while (!(mode & 16) && rpc_session_pull(s, &bytes) > 0)
            ;
        if (mode & 32)
            rpc_session_drain(s, now_ns);
        now_ns += mode & 64 ? NS_PER_S / 2 : NS_PER_MS;
        (void)rpc_server_sweep(server, now_ns);
        rpc_session_tick(s, now_ns);
        check(server->received_bytes >= 0 && server->unsent_bytes >= 0);
        check(s->received_bytes <= rpc_h2_limit(&s->h2, NET_LIMIT_RECEIVE_BYTES));
    }
    while (rpc_session_pull(s, &bytes) > 0)
        ;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct metrics *metrics = metrics_new();
    struct net_gets *gets = net_gets_new();
    struct rpc_server *server = rpc_server_new(&(struct rpc_server_config){.metrics = metrics, .gets = gets});
    struct rpc_env env = {.limits = &net_limits_default,
                          .peer = "fuzz",
                          .wake = nothing,
                          .again = nothing,
                          .limit_hit = no_limit,
                          .established = nothing};
    net_gets_add(gets, "/page", page, NULL);
    rpc_server_add(server, methods, ARRAY_LEN(methods));
    n_begun = n_ended = 0;
    struct rpc_session *s = rpc_session_new(server, &env, NS_PER_S);
    play(server, s, data, size);
    rpc_session_free(s);
    check(n_begun == n_ended && server->n_calls == 0);
    check(server->received_bytes == 0 && server->unsent_bytes == 0);
    rpc_server_free(server);
    net_gets_free(gets);
    metrics_free(metrics);
    return 0;
}
