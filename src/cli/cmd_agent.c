/* `agent`: its option table, and the way from options to the agent's configuration. */
#include "agent/agent.h"
#include "attribution/attribution.h"
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

const struct option_def agent_options[] = {
    {.name = "port",
     .kind = OPTION_INT,
     .fallback = "6000",
     .metavar = "PORT",
     .help = "gRPC port, on all addresses; 0 = any free one",
     .min = 0,
     .max = 65535},
    {.name = "listen",
     .kind = OPTION_LIST,
     .fallback = "",
     .metavar = "ADDR",
     .help = "gRPC address instead of --port: 127.0.0.1:6000, [::1]:6000, unix:/path; may be repeated"},
    {.name = "metrics-port",
     .kind = OPTION_INT,
     .fallback = "9090",
     .metavar = "PORT",
     .help = "port of /metrics; 0 = none",
     .min = -1,
     .max = 65535},
    {.name = "metrics-listen",
     .kind = OPTION_TEXT,
     .fallback = "",
     .metavar = "ADDR",
     .help = "address instead of --metrics-port"},
    {.name = "probe-port",
     .kind = OPTION_INT,
     .fallback = "8081",
     .metavar = "PORT",
     .help = "port of /livez and /readyz, always plaintext; 0 = none",
     .min = -1,
     .max = 65535},
    {.name = "probe-listen",
     .kind = OPTION_TEXT,
     .fallback = "",
     .metavar = "ADDR",
     .help = "address instead of --probe-port"},
    {.name = "health-check-interval",
     .kind = OPTION_DURATION,
     .fallback = "30s",
     .metavar = "D",
     .help = "accepted for compatibility: health follows every sample",
     .min = 0,
     .max = 24 * 3600 * NS_PER_S},
    {.name = "sample-interval",
     .kind = OPTION_DURATION,
     .fallback = "1s",
     .metavar = "D",
     .help = "time between readings",
     .min = 50 * NS_PER_MS,
     .max = 60 * NS_PER_S},
    {.name = "slow-interval",
     .kind = OPTION_DURATION,
     .fallback = "10s",
     .metavar = "D",
     .help = "time between readings that cost more",
     .min = 50 * NS_PER_MS,
     .max = 600 * NS_PER_S},
    {.name = "restart-after",
     .kind = OPTION_DURATION,
     .fallback = "5m",
     .metavar = "D",
     .help = "how long to wait out a driver state that only a restart ends, before exiting",
     .min = NS_PER_S,
     .max = 24 * 3600 * NS_PER_S},
    {.name = "nvml-library",
     .kind = OPTION_TEXT,
     .fallback = "",
     .metavar = "PATH",
     .help = "libnvidia-ml.so.1 to load instead of searching"},
    {.name = "pod-resources",
     .kind = OPTION_TEXT,
     .fallback = ATTRIBUTION_SOCKET,
     .metavar = "PATH",
     .help = "kubelet socket that says which pods hold which GPUs; empty = do not ask"},
    {.name = "procfs",
     .kind = OPTION_TEXT,
     .fallback = "",
     .metavar = "PATH",
     .help = "the host's /proc, to tell processes on GPUs apart by pod; empty = do not look"},
    {.name = "pod-logs",
     .kind = OPTION_TEXT,
     .fallback = ATTRIBUTION_POD_LOGS,
     .metavar = "PATH",
     .help = "with --procfs: the kubelet's folders of logs, which name pods by UID"},
    {.name = "container-logs",
     .kind = OPTION_TEXT,
     .fallback = ATTRIBUTION_LOG_LINKS,
     .metavar = "PATH",
     .help = "with --procfs: the kubelet's links to logs, which name pods by container"},
    {.name = "node-name",
     .kind = OPTION_TEXT,
     .fallback = "",
     .metavar = "NAME",
     .help = "name of this node (default $NODE_NAME, else the host name)"},
    {.name = "tls-cert",
     .kind = OPTION_TEXT,
     .fallback = "",
     .metavar = "FILE",
     .help = "serve TLS with this PEM certificate chain; reloaded when it changes"},
    {.name = "tls-key", .kind = OPTION_TEXT, .fallback = "", .metavar = "FILE", .help = "PEM key of --tls-cert"},
    {.name = "tls-client-ca",
     .kind = OPTION_TEXT,
     .fallback = "",
     .metavar = "FILE",
     .help = "demand client certificates signed by this CA"},
    {.name = "metrics-tls", .kind = OPTION_BOOL, .fallback = "false", .help = "TLS on the metrics port too"},
    {.name = "dcgm-metrics",
     .kind = OPTION_BOOL,
     .fallback = "true",
     .help = "names of dcgm-exporter on /metrics too; =false leaves them out"},
    {.name = "grpc-reflection",
     .kind = OPTION_BOOL,
     .fallback = "true",
     .help = "serve gRPC reflection; =false does not"},
    {.name = "limit",
     .kind = OPTION_LIST,
     .fallback = "",
     .metavar = "NAME=N",
     .help = "change one limit on peers (--print-config lists them); may be repeated"},
    {.name = "drain-timeout",
     .kind = OPTION_DURATION,
     .fallback = "4s",
     .metavar = "D",
     .help = "longest time that open calls get to end after SIGTERM",
     .min = 0,
     .max = 600 * NS_PER_S},
    {.name = "shutdown-delay",
     .kind = OPTION_DURATION,
     .fallback = "0s",
     .metavar = "D",
     .help = "keep serving this long after SIGTERM, as not ready",
     .min = 0,
     .max = 600 * NS_PER_S},
    {.name = "log-level",
     .kind = OPTION_CHOICE,
     .fallback = "info",
     .metavar = "LEVEL",
     .help = "least level to log",
     .choices = "debug|info|warn|error"},
    {.name = "log-format",
     .kind = OPTION_CHOICE,
     .fallback = "text",
     .metavar = "FORMAT",
     .help = "form of log lines",
     .choices = "text|json"},
    {.name = "config",
     .kind = OPTION_TEXT,
     .fallback = "",
     .metavar = "FILE",
     .help = "YAML file: the flags' names as keys, and `metrics:`; read again on SIGHUP",
     .is_flag_only = true},
    {.name = "print-config",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .is_flag_only = true,
     .help = "print the configuration in force and where each value came from, then exit"},
};
const size_t agent_option_count = ARRAY_LEN(agent_options);

/* Texts that the configuration points to; one agent a process. */
static char metrics_address[32], probe_address[32], port_address[32], host_name[256];

#define LIMIT_MAX 1000000000000LL

static const char *address_of_port(const struct option_set *set, const char *address, const char *port, char out[32])
{
    if (*option_text(set, address))
        return option_text(set, address);
    if (option_int(set, port) <= 0)
        return NULL;
    (void)snprintf(out, 32, ":%d", (int)option_int(set, port));
    return out;
}

static const char *node_name(const struct option_set *set)
{
    const char *name = *option_text(set, "node-name") ? option_text(set, "node-name") : getenv("NODE_NAME");
    if (name && *name)
        return name;
    return gethostname(host_name, sizeof(host_name) - 1) == 0 ? host_name : "";
}

/* Only a connection's age may be without limit. The ceiling keeps milliseconds and their sums countable. */
static int set_limit(struct net_limits *limits, const char *text, struct err *e)
{
    struct str value = str_of(text), name = str_cut(&value, '=');
    int64_t number, least = str_equals(name, net_limit_name(NET_LIMIT_CONNECTION_AGE_MS)) ? 0 : 1;
    if (!value.ptr || num_parse_i64(value, &number) < 0 || number < least || number > LIMIT_MAX)
        return err_set(e, ERR_INVALID_ARGUMENT, "--limit \"%s\": must be NAME=N with N from %d to %lld", text,
                       (int)least, (long long)LIMIT_MAX);
    const char *names[NET_LIMIT_COUNT];
    for (size_t i = 0; i < NET_LIMIT_COUNT; i++) {
        names[i] = net_limit_name((enum net_limit)i);
        if (str_equals(name, names[i])) {
            limits->values[i] = number;
            return 0;
        }
    }
    char word[64];
    (void)str_copy(word, sizeof(word), name);
    const char *near = str_nearest(word, names, NET_LIMIT_COUNT);
    return err_set(e, ERR_INVALID_ARGUMENT, "--limit \"%s\": there is no limit \"%s\"%s%s%s; --print-config lists them",
                   text, word, near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
}

static int fill_listeners(struct option_set *set, struct agent_config *config, struct err *e)
{
    size_t n;
    char *const *listen = option_list(set, "listen", &n);
    if (n > DAEMON_LISTEN_MAX)
        return err_set(e, ERR_INVALID_ARGUMENT, "--listen: at most %d addresses", DAEMON_LISTEN_MAX);
    for (size_t i = 0; i < n; i++)
        config->daemon.listen[i] = listen[i];
    config->daemon.n_listen = n;
    if (n == 0) {
        (void)snprintf(port_address, sizeof(port_address), ":%d", (int)option_int(set, "port"));
        config->daemon.listen[config->daemon.n_listen++] = port_address;
    }
    config->daemon.metrics_listen = address_of_port(set, "metrics-listen", "metrics-port", metrics_address);
    config->daemon.probe_listen = address_of_port(set, "probe-listen", "probe-port", probe_address);
    return 0;
}

static int fill_tls(const struct option_set *set, struct agent_config *config, struct err *e)
{
    config->daemon.tls = (struct net_tls_files){.cert = option_text_or_null(set, "tls-cert"),
                                                .key = option_text_or_null(set, "tls-key"),
                                                .ca = option_text_or_null(set, "tls-client-ca")};
    config->daemon.is_metrics_tls = option_bool(set, "metrics-tls");
    bool has_pair = config->daemon.tls.cert && config->daemon.tls.key;
    if (!has_pair &&
        (config->daemon.tls.cert || config->daemon.tls.key || config->daemon.tls.ca || config->daemon.is_metrics_tls))
        return err_set(
            e, ERR_INVALID_ARGUMENT,
            "TLS needs both --tls-cert and --tls-key; --tls-client-ca and --metrics-tls only work with them");
    return 0;
}

static int fill_reloadable(struct option_set *set, struct agent_reloadable *ret, struct err *e)
{
    const char *path = option_text(set, "config");
    if (*path && config_file_read(path, set, ret, e) < 0)
        return -1;
    (void)log_parse_level(option_text(set, "log-level"), &ret->log_level);
    (void)log_parse_format(option_text(set, "log-format"), &ret->log_format);
    return 0;
}

int agent_config_from_options(struct option_set *set, struct agent_config *config, struct err *e)
{
    if (fill_reloadable(set, &config->reloadable, e) < 0 || fill_listeners(set, config, e) < 0 ||
        fill_tls(set, config, e) < 0)
        return -1;
    config->daemon.limits = net_limits_default;
    size_t n;
    char *const *limits = option_list(set, "limit", &n);
    for (size_t i = 0; i < n; i++)
        if (set_limit(&config->daemon.limits, limits[i], e) < 0)
            return -1;
    config->gpu = (struct gpu_config){
        .library_path = option_text_or_null(set, "nvml-library"),
        .period_ns = option_duration(set, "sample-interval"),
        .slow_period_ns = option_duration(set, "slow-interval"),
        .restart_after_ns = option_duration(set, "restart-after"),
        .has_processes = *option_text(set, "procfs") != '\0',
    };
    config->pod_resources = option_text_or_null(set, "pod-resources");
    config->procfs = option_text_or_null(set, "procfs");
    config->pod_logs = option_text_or_null(set, "pod-logs");
    config->container_logs = option_text_or_null(set, "container-logs");
    config->daemon.node_name = node_name(set);
    config->has_dcgm_metrics = option_bool(set, "dcgm-metrics");
    config->has_reflection = option_bool(set, "grpc-reflection");
    config->daemon.drain_ns = option_duration(set, "drain-timeout");
    config->daemon.shutdown_delay_ns = option_duration(set, "shutdown-delay");
    config->daemon.version = CLI_VERSION;
    config->daemon.build = cli_compiler();
    return 0;
}

/* The file again, under the same flags and environment: values of the old file are forgotten first. */
static int reload(void *context, struct agent_reloadable *ret, struct err *e)
{
    const struct option_set *running = context;
    struct option_set fresh;
    option_set_init(&fresh, running->defs, running->n, running->env_prefix);
    for (size_t i = 0; i < running->n; i++)
        for (size_t k = 0; running->values[i].origin > OPTION_FILE && k < running->values[i].texts.len; k++) {
            fresh.values[i].origin = running->values[i].origin;
            vec_push(&fresh.values[i].texts, mem_strdup(running->values[i].texts.items[k]));
        }
    struct agent_reloadable next = {0};
    int rc = fill_reloadable(&fresh, &next, e);
    option_set_fini(&fresh);
    if (rc == 0)
        *ret = next;
    else
        free(next.defaults);
    return rc;
}

static void print_defaults(const struct agent_reloadable *reloadable, struct buf *out)
{
    (void)buf_append_str(out, reloadable->n_defaults ? "metrics:\n" : "metrics: []\n");
    for (size_t i = 0; i < reloadable->n_defaults; i++) {
        const struct trigger_default *d = &reloadable->defaults[i];
        char target[NUM_TEXT_MAX];
        num_format_double(target, d->target);
        (void)buf_append_str(out, "  - {name: ");
        json_quote(out, d->name, strlen(d->name));
        if (d->has_target)
            (void)buf_printf(out, ", targetValue: %s", target);
        if (d->has_aggregation)
            (void)buf_printf(out, ", aggregation: %s", scaling_aggregation_name(d->aggregation));
        if (d->has_gpu_index)
            (void)buf_printf(out, ", gpuIndex: %d", d->gpu_index);
        (void)buf_append_str(out, "}\n");
    }
}

/* A file that --config reads, the limits in force as comments. */
static void print_config(const struct option_set *set, const struct agent_config *config)
{
    BUF_AUTO struct buf text;
    buf_init(&text, 1 << 20);
    option_print(set, &text);
    print_defaults(&config->reloadable, &text);
    (void)buf_append_str(&text, "# limits in force:\n");
    for (size_t i = 0; i < NET_LIMIT_COUNT; i++)
        (void)buf_printf(&text, "#   %s=%lld\n", net_limit_name((enum net_limit)i),
                         (long long)config->daemon.limits.values[i]);
    (void)fputs(buf_cstr(&text), stdout);
}

static int run(struct option_set *set)
{
    struct agent_config config = {.reload = reload, .reload_context = set};
    struct err e;
    if (agent_config_from_options(set, &config, &e) < 0)
        return cli_fail(&e, "");
    if (option_bool(set, "print-config")) {
        print_config(set, &config);
        free(config.reloadable.defaults);
        return 0;
    }
    return agent_run(&config);
}

const struct command command_agent = {
    .name = "agent",
    .summary = "Serve KEDA from this node's GPUs",
    .usage = "[flags]",
    .details =
        "Reads the GPUs of this node through NVML and answers KEDA's ExternalScaler over gRPC. Every port speaks\n"
        "HTTP/2 and HTTP/1.1: /metrics, /livez, /readyz and /version are on each of them.\n\n"
        "SIGHUP reads the configuration and certificates again; SIGUSR2 lets go of NVML until the next SIGUSR2 (for\n"
        "a MIG change or a driver upgrade); SIGTERM drains and exits 0.",
    .options = agent_options,
    .n_options = ARRAY_LEN(agent_options),
    .env_prefix = "KEDA_GPU_SCALER_",
    .run = run,
};
