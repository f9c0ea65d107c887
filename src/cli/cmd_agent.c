/* `agent`: its option table, and the way from options to the agent's configuration. */
#include "agent/agent.h"
#include "attribution/attribution.h"
#include "cli/daemon_options.h"

const struct option_def agent_options[] = {
    DAEMON_OPTIONS_ADDRESSES,
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
    OPTIONS_POD_NAMES,
    DAEMON_OPTIONS_ENDPOINTS,
    DAEMON_OPTIONS_TLS,
    {.name = "dcgm-metrics",
     .kind = OPTION_BOOL,
     .fallback = "true",
     .help = "names of dcgm-exporter on /metrics too; =false leaves them out"},
    DAEMON_OPTIONS_REST,
};
const size_t agent_option_count = ARRAY_LEN(agent_options);

int agent_config_from_options(struct option_set *set, struct agent_config *config, struct err *e)
{
    if (daemon_config_from_options(set, &config->daemon, e) < 0 ||
        engine_config_from_options(set, &config->engine, e) < 0)
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
    config->has_dcgm_metrics = option_bool(set, "dcgm-metrics");
    config->has_reflection = option_bool(set, "grpc-reflection");
    return 0;
}

static int run(struct option_set *set)
{
    struct agent_config config = {.pod_resources = NULL};
    struct err e;
    if (agent_config_from_options(set, &config, &e) < 0)
        return cli_fail(&e, "");
    if (option_bool(set, "print-config")) {
        daemon_print_config(set, &config.daemon);
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
