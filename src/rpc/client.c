/* The client's calls and its connection's life: queueing, back-off, deadlines, retries that gRPC calls transparent.
 * What goes over a connection is client_session.c's; sockets are client_net.c's. */
#include "rpc/client.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_MESSAGE_BYTES = 4 << 20 };
#define BACKOFF_FIRST_NS NS_PER_S
#define BACKOFF_MAX_NS   (120 * NS_PER_S)
#define SHORT_LIFE_NS    NS_PER_S /* a connection that lasted less counts as a failed dial */

int64_t rpc_backoff_ns(int n_failures, double random)
{
    double ns = (double)BACKOFF_FIRST_NS;
    for (int i = 1; i < n_failures && ns < (double)BACKOFF_MAX_NS; i++)
        ns *= 1.6;
    if (ns > (double)BACKOFF_MAX_NS)
        ns = (double)BACKOFF_MAX_NS;
    ns *= 0.8 + 0.4 * random;
    return ns > (double)BACKOFF_MAX_NS ? BACKOFF_MAX_NS : (int64_t)ns;
}

static double next_random(struct rpc_client *client)
{
    client->random = client->random * 6364136223846793005U + 1442695040888963407U;
    return (double)(client->random >> 11) * 0x1p-53;
}

/* ---- new and free ---- */

void rpc_client_core_init(struct rpc_client *client, const struct rpc_client_config *config,
                          const struct rpc_client_io *io)
{
    bool is_unix = strncmp(config->address, "unix:", 5) == 0;
    const char *authority = config->authority ? config->authority : is_unix ? "localhost" : config->address;
    *client = (struct rpc_client){.io = io,
                                  .is_tls = config->tls != NULL,
                                  .pool = config->pool ? rpc_pool_ref(config->pool) : NULL,
                                  .max_message_bytes =
                                      config->max_message_bytes ? config->max_message_bytes : (size_t)MAX_MESSAGE_BYTES,
                                  .window_bytes = config->window_bytes,
                                  .keepalive_ns = config->keepalive_ns ? config->keepalive_ns : 30 * NS_PER_S,
                                  .random = (uint64_t)time_mono_ns() ^ (uint64_t)(uintptr_t)client};
    client->address = mem_strdup(config->address);
    client->authority = mem_strdup(authority);
    client->server_name = config->server_name ? mem_strdup(config->server_name) : NULL;
    client->callbacks = client->pool ? NULL : rpc_client_callbacks_new();
    rpc_list_init(&client->queued);
    rpc_list_init(&client->over);
    rpc_list_init(&client->sessions);
}

void rpc_client_core_fini(struct rpc_client *client)
{
    assert(rpc_list_is_empty(&client->queued) && rpc_list_is_empty(&client->over));
    assert(rpc_list_is_empty(&client->sessions));
    if (client->callbacks)
        nghttp2_session_callbacks_del(client->callbacks);
    rpc_pool_free(client->pool);
    free(client->address);
    free(client->authority);
    free(client->server_name);
    free(client->last_error);
}

void rpc_client_call_free(struct rpc_client_call *call)
{
    free(call->path);
    buf_fini(&call->request);
    rpc_reader_fini(&call->reader);
    free(call->text);
    free(call->status);
    free(call);
}

/* ---- the end of a call ---- */

void rpc_client_call_end(struct rpc_client_call *call, enum err_class class, const char *format, ...)
{
    if (call->is_over)
        return;
    va_list args;
    call->status = mem_new(struct err); /* not before: most calls of a crowd of streams never end */
    va_start(args, format);
    (void)vsnprintf(call->status->text, sizeof(call->status->text), format, args);
    va_end(args);
    call->status->class = class;
    call->is_over = true;
    if (call->session)
        rpc_client_session_drop(call);
    rpc_link_remove(&call->link);
    rpc_list_push(&call->client->over, &call->link);
    call->client->io->wake(call->client);
}

void rpc_client_reap(struct rpc_client *client)
{
    client->depth++;
    struct rpc_link *link;
    while ((link = rpc_list_pop(&client->over)) != NULL) {
        struct rpc_client_call *call = CONTAINER_OF(link, struct rpc_client_call, link);
        call->is_told = true;
        call->config.done(call->config.context, call->status);
        if (!call->is_inside) /* else its message handler is on the stack and frees it */
            rpc_client_call_free(call);
    }
    client->depth--;
}

static void cancel_list(struct rpc_link *list)
{
    while (!rpc_list_is_empty(list))
        rpc_client_call_end(CONTAINER_OF(list->next, struct rpc_client_call, link), ERR_CANCELLED,
                            "the client was closed");
}

void rpc_client_cancel_all(struct rpc_client *client)
{
    cancel_list(&client->queued);
    for (struct rpc_link *link = client->sessions.next; link != &client->sessions; link = link->next)
        cancel_list(&CONTAINER_OF(link, struct rpc_client_session, link)->calls);
}

void rpc_client_cancel(struct rpc_client_call *call)
{
    rpc_client_call_end(call, ERR_CANCELLED, "cancelled by the caller");
}

/* ---- the connection's life ---- */

static void fail_impatient(struct rpc_client *client)
{
    struct rpc_link *link = client->queued.next;
    while (link != &client->queued) {
        struct rpc_client_call *call = CONTAINER_OF(link, struct rpc_client_call, link);
        link = link->next;
        if (!call->config.is_wait_for_ready)
            rpc_client_call_end(call, ERR_UNAVAILABLE, "%s", client->last_error->text);
    }
}

static void back_off(struct rpc_client *client, const struct err *e)
{
    free(client->last_error);
    client->last_error = mem_new(struct err);
    *client->last_error = *e;
    client->last_error->class = ERR_UNAVAILABLE;
    client->n_failures++;
    client->state = RPC_CLIENT_BACKOFF;
    client->dial_at_ns = client->io->now_ns(client) + rpc_backoff_ns(client->n_failures, next_random(client));
    fail_impatient(client);
    client->io->wake(client); /* the time to dial again is new */
}

void rpc_client_dial_failed(struct rpc_client *client, const struct err *e)
{
    client->current = NULL;
    back_off(client, e);
}

static void dial(struct rpc_client *client)
{
    client->state = RPC_CLIENT_DIALLING;
    client->io->dial(client);
}

static void submit_queued(struct rpc_client *client)
{
    while (client->current && !rpc_list_is_empty(&client->queued))
        rpc_client_session_submit(client->current, CONTAINER_OF(client->queued.next, struct rpc_client_call, link));
}

void rpc_client_advance(struct rpc_client *client)
{
    if (client->is_freed || rpc_list_is_empty(&client->queued))
        return;
    switch (client->state) {
    case RPC_CLIENT_IDLE:
        dial(client);
        break;
    case RPC_CLIENT_READY:
        submit_queued(client);
        break;
    case RPC_CLIENT_BACKOFF:
        if (client->io->now_ns(client) >= client->dial_at_ns)
            dial(client);
        else
            fail_impatient(client);
        break;
    case RPC_CLIENT_DIALLING: /* the outcome comes by itself */
    default:
        break;
    }
}

void rpc_client_ready(struct rpc_client_session *s)
{
    struct rpc_client *client = s->client;
    if (client->current != s)
        return;
    client->state = RPC_CLIENT_READY;
    client->ready_at_ns = client->io->now_ns(client);
    free(client->last_error);
    client->last_error = NULL;
    submit_queued(client);
}

void rpc_client_leave(struct rpc_client_session *s, const struct err *e)
{
    struct rpc_client *client = s->client;
    s->is_leaving = true;
    if (client->current != s)
        return;
    client->current = NULL;
    if (client->state == RPC_CLIENT_READY && client->io->now_ns(client) - client->ready_at_ns >= SHORT_LIFE_NS) {
        client->n_failures = 0;
        client->state = RPC_CLIENT_IDLE;
        rpc_client_advance(client);
    } else {
        back_off(client, e);
    }
}

/* ---- calls ---- */

struct rpc_client_call *rpc_client_start(struct rpc_client *client, const struct rpc_client_call_config *config,
                                         const void *request, size_t len)
{
    struct rpc_client_call *call = mem_new(struct rpc_client_call);
    int64_t now_ns = client->io->now_ns(client);
    bool is_timed = config->deadline_ns > 0 && config->deadline_ns < INT64_MAX - now_ns;
    call->client = client;
    call->config = *config;
    call->path = mem_strdup(config->path);
    call->config.path = call->path;
    call->deadline_ns = is_timed ? now_ns + config->deadline_ns : INT64_MAX;
    rpc_reader_init(&call->reader, client->max_message_bytes, false);
    uint8_t prefix[RPC_PREFIX_BYTES];
    rpc_prefix_write(prefix, len);
    buf_init(&call->request, RPC_PREFIX_BYTES + len);
    (void)buf_append(&call->request, prefix, sizeof(prefix));
    (void)buf_append(&call->request, request, len);
    rpc_list_push(&client->queued, &call->link);
    rpc_client_advance(client);
    client->io->wake(client);
    return call;
}

static void expire(struct rpc_client_call *call)
{
    const struct rpc_client *client = call->client;
    char limit[TIME_DURATION_MAX];
    time_format_duration(limit, call->config.deadline_ns);
    if (call->session)
        rpc_client_call_end(call, ERR_DEADLINE_EXCEEDED, "no answer within %s", limit);
    else if (!client->last_error)
        rpc_client_call_end(call, ERR_DEADLINE_EXCEEDED, "no connection to %s within %s", client->address, limit);
    else
        rpc_client_call_end(call, ERR_DEADLINE_EXCEEDED, "no connection within %s: %s", limit,
                            client->last_error->text);
}

/* Returns the soonest deadline that is left in the list. */
static int64_t expire_list(struct rpc_link *list, int64_t now_ns)
{
    int64_t next_ns = INT64_MAX;
    struct rpc_link *link = list->next;
    while (link != list) {
        struct rpc_client_call *call = CONTAINER_OF(link, struct rpc_client_call, link);
        link = link->next;
        if (call->deadline_ns <= now_ns)
            expire(call);
        else if (call->deadline_ns < next_ns)
            next_ns = call->deadline_ns;
    }
    return next_ns;
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t rpc_client_tick(struct rpc_client *client, int64_t now_ns)
{
    int64_t next_ns = expire_list(&client->queued, now_ns);
    struct rpc_link *link = client->sessions.next;
    while (link != &client->sessions) {
        struct rpc_client_session *s = CONTAINER_OF(link, struct rpc_client_session, link);
        link = link->next;
        next_ns = sooner(next_ns, expire_list(&s->calls, now_ns));
        /* without calls a ping could be a strike: servers' defaults allow none (gRFC A8) */
        int64_t keepalive_ns = rpc_list_is_empty(&s->calls) ? INT64_MAX : client->keepalive_ns;
        rpc_h2_tick(&s->h2, now_ns, keepalive_ns);
        next_ns = sooner(next_ns, rpc_h2_next_ns(&s->h2, keepalive_ns));
    }
    rpc_client_advance(client);
    if (client->state == RPC_CLIENT_BACKOFF && !rpc_list_is_empty(&client->queued))
        next_ns = sooner(next_ns, client->dial_at_ns);
    return next_ns;
}
