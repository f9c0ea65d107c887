/* The table of limits, and every metric family that net moves. Change procedure: a new limit is one row in NET_LIMITS
 * (net.h); it then appears in the defaults, in the metric and in docs/metrics.md's list. */
#include "net/loop.h"

const struct net_limits net_limits_default = {.values = {
#define X(id, name, value, help) [NET_LIMIT_##id] = (value),
                                                  NET_LIMITS(X)
#undef X
                                              }};

static const char *const names[NET_LIMIT_COUNT] = {
#define X(id, name, value, help) name,
    NET_LIMITS(X)
#undef X
};

static const char *const end_names[NET_END_COUNT] = {
#define X(id, name) name,
    NET_ENDS(X)
#undef X
};

static const struct metric_desc limit_hits_desc = {
    .name = "keda_gpu_scaler_limit_hits",
    .help = "Times that a limit on peers was hit, by limit.",
    .kind = METRIC_COUNTER,
    .labels = {"limit"},
};
static const struct metric_desc connections_desc = {
    .name = "keda_gpu_scaler_connections",
    .help = "Open connections, those in TLS handshake included.",
    .kind = METRIC_GAUGE,
    .labels = {"direction"},
};
static const struct metric_desc accepted_desc = {
    .name = "keda_gpu_scaler_connections_accepted",
    .help = "Connections taken from peers.",
    .kind = METRIC_COUNTER,
};
static const struct metric_desc closed_desc = {
    .name = "keda_gpu_scaler_connections_closed",
    .help = "Connections that ended, by what ended them.",
    .kind = METRIC_COUNTER,
    .labels = {"reason"},
};
static const struct metric_desc accept_errors_desc = {
    .name = "keda_gpu_scaler_accept_errors",
    .help = "Connections that the system would not give us; reason fd_limit: no file descriptor was free.",
    .kind = METRIC_COUNTER,
    .labels = {"reason"},
};
static const struct metric_desc handshake_failures_desc = {
    .name = "keda_gpu_scaler_tls_handshake_failures",
    .help = "TLS handshakes that failed, by our side in them.",
    .kind = METRIC_COUNTER,
    .labels = {"side"},
};
static const struct metric_desc tls_reloads_desc = {
    .name = "keda_gpu_scaler_tls_reloads",
    .help = "Changed TLS files that were taken into use, by certificate file.",
    .kind = METRIC_COUNTER,
    .labels = {"file"},
};
static const struct metric_desc tls_reload_errors_desc = {
    .name = "keda_gpu_scaler_tls_reload_errors",
    .help = "Changed TLS files that were refused, by certificate file. The previous ones stay in use.",
    .kind = METRIC_COUNTER,
    .labels = {"file"},
};
static const struct metric_desc tls_reload_ok_desc = {
    .name = "keda_gpu_scaler_tls_last_reload_successful",
    .help = "1 while the newest TLS files are the ones in use, else 0; by certificate file.",
    .kind = METRIC_GAUGE,
    .labels = {"file"},
};
static const struct metric_desc tls_expiry_desc = {
    .name = "keda_gpu_scaler_tls_certificate_expiry_timestamp_seconds",
    .help = "When the certificate in use expires, seconds since 1970; by certificate file.",
    .unit = "seconds",
    .kind = METRIC_GAUGE,
    .labels = {"file"},
};

const char *net_limit_name(enum net_limit limit)
{
    return names[limit];
}

void net_limit_hit(struct net_loop *loop, enum net_limit limit)
{
    metric_add(loop->series.limit_hits[limit], 1);
}

static struct metric_series *series_of(struct metric_family *family, const char *value)
{
    return metric_series(family, &value);
}

void net_series_setup(struct net_series *series, struct metrics *metrics)
{
    struct metric_family *limits = metric_register(metrics, &limit_hits_desc);
    for (int i = 0; i < NET_LIMIT_COUNT; i++)
        series->limit_hits[i] = series_of(limits, names[i]);
    struct metric_family *connections = metric_register(metrics, &connections_desc);
    series->inbound = series_of(connections, "in");
    series->outbound = series_of(connections, "out");
    series->accepted = metric_only(metric_register(metrics, &accepted_desc));
    struct metric_family *closed = metric_register(metrics, &closed_desc);
    for (int i = 0; i < NET_END_COUNT; i++)
        series->closed[i] = series_of(closed, end_names[i]);
    struct metric_family *errors = metric_register(metrics, &accept_errors_desc);
    series->accept_fd_limit = series_of(errors, "fd_limit");
    series->accept_other = series_of(errors, "other");
    struct metric_family *failures = metric_register(metrics, &handshake_failures_desc);
    series->server_handshake_failures = series_of(failures, "server");
    series->client_handshake_failures = series_of(failures, "client");
    series->tls_reloads = metric_register(metrics, &tls_reloads_desc);
    series->tls_reload_errors = metric_register(metrics, &tls_reload_errors_desc);
    series->tls_reload_ok = metric_register(metrics, &tls_reload_ok_desc);
    series->tls_expiry = metric_register(metrics, &tls_expiry_desc);
}
