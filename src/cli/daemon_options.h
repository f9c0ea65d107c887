/* Flags that every long-running program has, and the way from them to the daemon's configuration. Private to cli. */
#ifndef CLI_DAEMON_OPTIONS_H
#define CLI_DAEMON_OPTIONS_H

#include "cli/cli.h"
#include "daemon/daemon.h"
#include "engine/engine.h"

/* Rows of an option table, in the order of --help. */
#define DAEMON_OPTIONS_ADDRESSES                                                                                       \
    {.name = "port",                                                                                                   \
     .kind = OPTION_INT,                                                                                               \
     .fallback = "6000",                                                                                               \
     .metavar = "PORT",                                                                                                \
     .help = "gRPC port, on all addresses; 0 = any free one",                                                          \
     .min = 0,                                                                                                         \
     .max = 65535},                                                                                                    \
        {.name = "listen",                                                                                             \
         .kind = OPTION_LIST,                                                                                          \
         .fallback = "",                                                                                               \
         .metavar = "ADDR",                                                                                            \
         .help = "gRPC address instead of --port: 127.0.0.1:6000, [::1]:6000, unix:/path; may be repeated"},           \
        {.name = "metrics-port",                                                                                       \
         .kind = OPTION_INT,                                                                                           \
         .fallback = "9090",                                                                                           \
         .metavar = "PORT",                                                                                            \
         .help = "port of /metrics; 0 = none",                                                                         \
         .min = -1,                                                                                                    \
         .max = 65535},                                                                                                \
        {.name = "metrics-listen",                                                                                     \
         .kind = OPTION_TEXT,                                                                                          \
         .fallback = "",                                                                                               \
         .metavar = "ADDR",                                                                                            \
         .help = "address instead of --metrics-port"},                                                                 \
        {.name = "probe-port",                                                                                         \
         .kind = OPTION_INT,                                                                                           \
         .fallback = "8081",                                                                                           \
         .metavar = "PORT",                                                                                            \
         .help = "port of /livez and /readyz, always plaintext; 0 = none",                                             \
         .min = -1,                                                                                                    \
         .max = 65535},                                                                                                \
        {.name = "probe-listen",                                                                                       \
         .kind = OPTION_TEXT,                                                                                          \
         .fallback = "",                                                                                               \
         .metavar = "ADDR",                                                                                            \
         .help = "address instead of --probe-port"},                                                                   \
    {                                                                                                                  \
        .name = "health-check-interval", .kind = OPTION_DURATION, .fallback = "30s", .metavar = "D",                   \
        .help = "accepted for compatibility: health follows every sample", .min = 0, .max = 24 * 3600 * NS_PER_S       \
    }
#define DAEMON_OPTIONS_TLS                                                                                             \
    {.name = "node-name",                                                                                              \
     .kind = OPTION_TEXT,                                                                                              \
     .fallback = "",                                                                                                   \
     .metavar = "NAME",                                                                                                \
     .help = "name of this node (default $NODE_NAME, else the host name)"},                                            \
        {.name = "tls-cert",                                                                                           \
         .kind = OPTION_TEXT,                                                                                          \
         .fallback = "",                                                                                               \
         .metavar = "FILE",                                                                                            \
         .help = "serve TLS with this PEM certificate chain; reloaded when it changes"},                               \
        {.name = "tls-key", .kind = OPTION_TEXT, .fallback = "", .metavar = "FILE", .help = "PEM key of --tls-cert"},  \
        {.name = "tls-client-ca",                                                                                      \
         .kind = OPTION_TEXT,                                                                                          \
         .fallback = "",                                                                                               \
         .metavar = "FILE",                                                                                            \
         .help = "demand client certificates signed by this CA"},                                                      \
    {                                                                                                                  \
        .name = "metrics-tls", .kind = OPTION_BOOL, .fallback = "false", .help = "TLS on the metrics port too"         \
    }
#define DAEMON_OPTIONS_ENDPOINTS                                                                                       \
    {.name = "engine-timeout",                                                                                         \
     .kind = OPTION_DURATION,                                                                                          \
     .fallback = "3s",                                                                                                 \
     .metavar = "D",                                                                                                   \
     .help = "longest time that one page of an inference engine may take",                                             \
     .min = 100 * NS_PER_MS,                                                                                           \
     .max = 3 * NS_PER_S},                                                                                             \
        {.name = "engine-ca-file",                                                                                     \
         .kind = OPTION_TEXT,                                                                                          \
         .fallback = "",                                                                                               \
         .metavar = "FILE",                                                                                            \
         .help = "PEM certificates that those of https pages are signed by, instead of the system's"},                 \
        {.name = "engine-insecure",                                                                                    \
         .kind = OPTION_BOOL,                                                                                          \
         .fallback = "false",                                                                                          \
         .help = "do not verify the certificates of https pages"},                                                     \
        {.name = "endpoint-allow",                                                                                     \
         .kind = OPTION_LIST,                                                                                          \
         .fallback = "",                                                                                               \
         .metavar = "CIDR",                                                                                            \
         .help =                                                                                                       \
             "addresses that vllmEndpoint, tritonEndpoint and wakeEndpoint may have, and no others; may be repeated"}, \
    {                                                                                                                  \
        .name = "endpoint-deny", .kind = OPTION_LIST, .fallback = "", .metavar = "CIDR",                               \
        .help = "addresses that they may not have; may be repeated"                                                    \
    }
#define DAEMON_OPTIONS_REST                                                                                            \
    {.name = "grpc-reflection",                                                                                        \
     .kind = OPTION_BOOL,                                                                                              \
     .fallback = "true",                                                                                               \
     .help = "serve gRPC reflection; =false does not"},                                                                \
        {.name = "limit",                                                                                              \
         .kind = OPTION_LIST,                                                                                          \
         .fallback = "",                                                                                               \
         .metavar = "NAME=N",                                                                                          \
         .help = "change one limit on peers (--print-config lists them); may be repeated"},                            \
        {.name = "drain-timeout",                                                                                      \
         .kind = OPTION_DURATION,                                                                                      \
         .fallback = "4s",                                                                                             \
         .metavar = "D",                                                                                               \
         .help = "longest time that open calls get to end after SIGTERM",                                              \
         .min = 0,                                                                                                     \
         .max = 600 * NS_PER_S},                                                                                       \
        {.name = "shutdown-delay",                                                                                     \
         .kind = OPTION_DURATION,                                                                                      \
         .fallback = "0s",                                                                                             \
         .metavar = "D",                                                                                               \
         .help = "keep serving this long after SIGTERM, as not ready",                                                 \
         .min = 0,                                                                                                     \
         .max = 600 * NS_PER_S},                                                                                       \
        {.name = "log-level",                                                                                          \
         .kind = OPTION_CHOICE,                                                                                        \
         .fallback = "info",                                                                                           \
         .metavar = "LEVEL",                                                                                           \
         .help = "least level to log",                                                                                 \
         .choices = "debug|info|warn|error"},                                                                          \
        {.name = "log-format",                                                                                         \
         .kind = OPTION_CHOICE,                                                                                        \
         .fallback = "text",                                                                                           \
         .metavar = "FORMAT",                                                                                          \
         .help = "form of log lines",                                                                                  \
         .choices = "text|json"},                                                                                      \
        {.name = "config",                                                                                             \
         .kind = OPTION_TEXT,                                                                                          \
         .fallback = "",                                                                                               \
         .metavar = "FILE",                                                                                            \
         .help = "YAML file: the flags' names as keys, and `metrics:`; read again on SIGHUP",                          \
         .is_flag_only = true},                                                                                        \
    {                                                                                                                  \
        .name = "print-config", .kind = OPTION_BOOL, .fallback = "false", .is_flag_only = true,                        \
        .help = "print the configuration in force and where each value came from, then exit"                           \
    }

/* Fill *config from the set, which must outlive it; its defaults are malloced. The `metrics:` entries of --config are
 * read here too. SIGHUP reads the file again under the same flags and environment. */
int daemon_config_from_options(struct option_set *set, struct daemon_config *config, struct err *e);
/* What DAEMON_OPTIONS_ENDPOINTS say; the set must outlive it. INVALID_ARGUMENT names the range that is none. */
int engine_config_from_options(const struct option_set *set, struct engine_config *config, struct err *e);
/* --print-config: a file that --config reads, the limits in force as comments. Frees the defaults. */
void daemon_print_config(const struct option_set *set, struct daemon_config *config);

#endif
