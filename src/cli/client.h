/* A blocking gRPC client for commands: one call after another on a private loop. Private to cli. */
#ifndef CLI_CLIENT_H
#define CLI_CLIENT_H

#include "cli/cli.h"
#include "proto/proto.h"
#include "rpc/rpc.h"

/* Flags that every command that dials takes; put at the end of its table. */
#define CLIENT_OPTIONS                                                                                                 \
    {.name = "timeout",                                                                                                \
     .kind = OPTION_DURATION,                                                                                          \
     .fallback = "5s",                                                                                                 \
     .metavar = "D",                                                                                                   \
     .help = "longest time for one call",                                                                              \
     .min = NS_PER_MS,                                                                                                 \
     .max = 3600 * NS_PER_S},                                                                                          \
        {.name = "tls", .kind = OPTION_BOOL, .fallback = "false", .help = "speak TLS"},                                \
        {.name = "tls-ca",                                                                                             \
         .kind = OPTION_TEXT,                                                                                          \
         .fallback = "",                                                                                               \
         .metavar = "FILE",                                                                                            \
         .help = "PEM certificates to trust instead of the system's (means --tls)"},                                   \
        {.name = "tls-cert",                                                                                           \
         .kind = OPTION_TEXT,                                                                                          \
         .fallback = "",                                                                                               \
         .metavar = "FILE",                                                                                            \
         .help = "own PEM certificate (means --tls)"},                                                                 \
        {.name = "tls-key", .kind = OPTION_TEXT, .fallback = "", .metavar = "FILE", .help = "PEM key of --tls-cert"},  \
        {.name = "tls-server-name",                                                                                    \
         .kind = OPTION_TEXT,                                                                                          \
         .fallback = "",                                                                                               \
         .metavar = "NAME",                                                                                            \
         .help = "name that the server's certificate must have (default: the host part of the address)"},              \
    {                                                                                                                  \
        .name = "insecure", .kind = OPTION_BOOL, .fallback = "false",                                                  \
        .help = "TLS without verifying the server (means --tls)"                                                       \
    }

struct client {
    struct metrics *metrics;
    struct net_loop *loop;
    struct net_tls *tls;
    struct rpc_client *rpc;
    int64_t timeout_ns;
};

/* From the flags above. client_fini in any case. */
int client_init(struct client *c, const struct option_set *set, const char *address, struct err *e);
void client_fini(struct client *c);

/* One unary call. The response is in *response (initialised by the caller). -1 and the status on failure. */
int client_call(struct client *c, const char *path, const ProtobufCMessage *request, struct buf *response,
                struct err *e);

/* A server stream: message for each answer until it ends, max_ns have passed (then 0), or message returns false. */
struct client_stream {
    bool (*message)(void *context, struct str message);
    void *context;
    int64_t max_ns; /* 0 = no end */
};
int client_stream(struct client *c, const char *path, const ProtobufCMessage *request,
                  const struct client_stream *stream, struct err *e);

#endif
