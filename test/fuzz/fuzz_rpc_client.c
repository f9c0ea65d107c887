/* Bytes of a server into a client session with calls under way: every call is told its end exactly once. */
#include "rpc/client.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CALLS = 4 };

static struct rpc_client_session *session;
static struct rpc_client_call *calls[CALLS];
static int n_done[CALLS];
static size_t largest;
static int64_t now_ns;

static void check(bool is_true)
{
    if (!is_true)
        abort();
}

static void dial(struct rpc_client *client)
{
    (void)client;
}
static int64_t now_of(const struct rpc_client *client)
{
    (void)client;
    return now_ns;
}
static const struct rpc_client_io io = {.dial = dial, .wake = dial, .now_ns = now_of};

static void nothing(void *context)
{
    (void)context;
}
static void no_limit(void *context, enum net_limit limit)
{
    (void)context;
    (void)limit;
}
static void established(void *context)
{
    (void)context;
    rpc_client_ready(session);
}

static void on_message(void *context, struct str message)
{
    size_t i = (size_t)((int *)context - n_done);
    largest = message.len > largest ? message.len : largest;
    if (message.len == 3 && i + 1 < CALLS && n_done[i + 1] == 0)
        rpc_client_cancel(calls[i + 1]); /* a handler ends another call */
}

static void on_done(void *context, const struct err *status)
{
    check(str_is_utf8(str_of(status->text)));
    ++*(int *)context;
}

static void start_calls(struct rpc_client *client)
{
    for (int i = 0; i < CALLS; i++)
        calls[i] = rpc_client_start(client,
                                    &(struct rpc_client_call_config){.path = "/t.T/Unary",
                                                                     .deadline_ns = (i + 1) * NS_PER_S,
                                                                     .is_wait_for_ready = i & 1,
                                                                     .message = on_message,
                                                                     .done = on_done,
                                                                     .context = &n_done[i]},
                                    "hello", 5);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rpc_client client;
    struct rpc_env env = {.limits = &net_limits_default,
                          .peer = "fuzz",
                          .wake = nothing,
                          .again = nothing,
                          .limit_hit = no_limit,
                          .established = established};
    uint8_t mode = size ? data[0] : 0;
    size_t step = (size_t)1 << (mode & 15), at = size ? 1 : 0;
    const uint8_t *bytes;
    now_ns = NS_PER_S;
    largest = 0;
    memset(n_done, 0, sizeof(n_done));
    rpc_client_core_init(&client, &(struct rpc_client_config){.address = "fuzz:1", .max_message_bytes = 10000}, &io);
    start_calls(&client);
    session = rpc_client_session_new(&client, &env, now_ns);
    int rv = 0;
    while (at < size && rv == 0) {
        size_t n = size - at < step ? size - at : step;
        rv = rpc_client_session_receive(session, data + at, n, now_ns);
        at += n;
        while (!(mode & 16) && rpc_client_session_pull(session, &bytes) > 0)
            ;
        now_ns += mode & 32 ? NS_PER_S / 2 : NS_PER_MS;
        (void)rpc_client_tick(&client, now_ns);
        if (mode & 64)
            rpc_client_reap(&client);
    }
    while (rpc_client_session_pull(session, &bytes) > 0)
        ;
    rpc_client_session_free(session, "");
    rpc_client_cancel_all(&client);
    rpc_client_reap(&client);
    for (int i = 0; i < CALLS; i++)
        check(n_done[i] == 1);
    check(largest <= 10000);
    rpc_client_core_fini(&client);
    return 0;
}
