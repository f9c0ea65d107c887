/* Methods for the tests of the server's core: one of each shape, with what they saw. */
#ifndef TEST_RPC_METHODS_H
#define TEST_RPC_METHODS_H

#include "peer.h"

#include <stdio.h>

/* ---- methods under test ---- */

static struct {
    int n_messages, n_ended, n_half_closed;
    char last[64];
    struct rpc_call *open;
} seen;

PEER_FN void remember(struct str request)
{
    seen.n_messages++;
    (void)str_copy(seen.last, sizeof(seen.last), request);
}

PEER_FN void echo(struct rpc_call *call, struct str request, void *context)
{
    (void)context;
    remember(request);
    rpc_call_reply(call, request.ptr, request.len);
}

PEER_FN void keep_open(struct rpc_call *call, struct str request, void *context)
{
    (void)context;
    remember(request);
    seen.open = call;
}

PEER_FN void fail_call(struct rpc_call *call, struct str request, void *context)
{
    (void)context;
    remember(request);
    struct err e;
    (void)err_set(&e, ERR_UNAVAILABLE, "100%% of the GPUs are l\xC3\xB6st");
    rpc_call_fail(call, &e);
}

PEER_FN void say_nothing(struct rpc_call *call, struct str request, void *context)
{
    (void)context;
    remember(request);
    rpc_call_finish(call, ERR_NONE, NULL);
}

PEER_FN void three(struct rpc_call *call, struct str request, void *context)
{
    (void)context;
    remember(request);
    for (int i = 0; i < 3; i++)
        assert_int_equal(rpc_call_send(call, "m", 1), 0);
    rpc_call_finish(call, ERR_NOT_FOUND, "no more");
}

PEER_FN void open_stream(struct rpc_call *call, struct str request, void *context)
{
    (void)context;
    remember(request);
    rpc_call_send_headers(call);
    rpc_call_set_state(call, &seen);
    seen.open = call;
}

PEER_FN void ended(struct rpc_call *call, void *context)
{
    (void)context;
    seen.n_ended++;
    if (seen.open == call)
        seen.open = NULL;
}

PEER_FN void half_closed(struct rpc_call *call, void *context)
{
    (void)context;
    seen.n_half_closed++;
    rpc_call_finish(call, ERR_NONE, NULL);
}

PEER_FN void chat(struct rpc_call *call, struct str request, void *context)
{
    (void)context;
    remember(request);
    (void)rpc_call_send(call, request.ptr, request.len);
    if (str_equals(request, "bye"))
        rpc_call_finish(call, ERR_NONE, NULL);
}

static const struct rpc_method methods[] = {
    {.path = "/t.T/Unary", .deadline_ns = NS_PER_S, .message = echo, .ended = ended},
    {.path = "/t.T/Hang", .deadline_ns = NS_PER_S, .message = keep_open, .ended = ended},
    {.path = "/t.T/Fail", .message = fail_call, .ended = ended},
    {.path = "/t.T/Nothing", .message = say_nothing, .ended = ended},
    {.path = "/t.T/Three", .is_server_streaming = true, .message = three, .ended = ended},
    {.path = "/t.T/Stream", .is_server_streaming = true, .message = open_stream, .ended = ended},
    {.path = "/t.T/State",
     .is_server_streaming = true,
     .is_state_stream = true,
     .message = open_stream,
     .ended = ended},
    {.path = "/t.T/Chat",
     .is_server_streaming = true,
     .is_client_streaming = true,
     .message = chat,
     .half_closed = half_closed,
     .ended = ended},
};

PEER_FN int64_t still_clock(void)
{
    return 0;
}

PEER_FN void start(struct peer *p)
{
    memset(&seen, 0, sizeof(seen));
    peer_init(p, methods, ARRAY_LEN(methods));
    p->server->clock_ns = still_clock;
    peer_pump(p);
    assert_int_equal(p->rc, 0);
    assert_int_equal(p->n_established, 1);
}

PEER_FN const struct answer *ask(struct peer *p, const struct request *r)
{
    int32_t id = peer_request(p, r);
    peer_pump(p);
    return peer_answer(p, id);
}

#endif
