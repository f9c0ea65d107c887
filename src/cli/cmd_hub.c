/* `hub`: its option table, and the way from options to the hub's configuration. */
#include "cli/daemon_options.h"
#include "hub/hub.h"

#include <stdio.h>
#include <unistd.h>

static const struct option_def hub_options[] = {
    DAEMON_OPTIONS_ADDRESSES,
    {.name = "agents",
     .kind = OPTION_LIST,
     .fallback = "",
     .metavar = "WHERE",
     .help = "where agents are: service:[NAMESPACE/]NAME[:PORT], dns:HOST:PORT, HOST:PORT; may be repeated (default "
             "service:keda-gpu-scaler-agents)"},
    {.name = "agents-tls", .kind = OPTION_BOOL, .fallback = "false", .help = "speak TLS with agents"},
    {.name = "agents-tls-ca",
     .kind = OPTION_TEXT,
     .fallback = "",
     .metavar = "FILE",
     .help = "PEM certificates that agents' are signed by, instead of the system's"},
    {.name = "agents-tls-cert",
     .kind = OPTION_TEXT,
     .fallback = "",
     .metavar = "FILE",
     .help = "own PEM certificate for agents that demand one"},
    {.name = "agents-tls-key", .kind = OPTION_TEXT, .fallback = "", .metavar = "FILE", .help = "PEM key of that"},
    {.name = "agents-tls-server-name",
     .kind = OPTION_TEXT,
     .fallback = "",
     .metavar = "NAME",
     .help = "name in the agents' certificates (default: the address)"},
    {.name = "kubeconfig",
     .kind = OPTION_TEXT,
     .fallback = "",
     .metavar = "FILE",
     .help = "how the Kubernetes API is reached (default: as a pod, by its service account)"},
    {.name = "service-name",
     .kind = OPTION_TEXT,
     .fallback = CLI_PROGRAM,
     .metavar = "NAME",
     .help = "Service that scalerAddress names: ScaledObjects that ask there are followed before they ask"},
    {.name = "service-namespace",
     .kind = OPTION_TEXT,
     .fallback = "",
     .metavar = "NS",
     .help = "its namespace (default: the hub's)"},
    {.name = "hub-name",
     .kind = OPTION_TEXT,
     .fallback = "",
     .metavar = "NAME",
     .help = "name of this hub in answers (default $POD_NAME, else the host name)"},
    {.name = "hpa-tolerance",
     .kind = OPTION_TEXT,
     .fallback = "0.1",
     .metavar = "N",
     .help = "tolerance of the HPA controller, where an HPA names none: 0 to 1"},
    {.name = "simulated-gpus",
     .kind = OPTION_INT,
     .fallback = "1",
     .metavar = "N",
     .help = "simulated GPUs that each pod gets on a node whose agent simulates; 0 = none",
     .min = 0,
     .max = 64},
    {.name = "shown-gpus",
     .kind = OPTION_INT,
     .fallback = "1000",
     .metavar = "N",
     .help = "GPUs of the fleet that /metrics shows at most; 0 = none",
     .min = 0,
     .max = 100000},
    DAEMON_OPTIONS_ENDPOINTS,
    {.name = "engine-cert-file",
     .kind = OPTION_TEXT,
     .fallback = "",
     .metavar = "FILE",
     .help = "own PEM certificate for https pages of pods that demand one"},
    {.name = "engine-key-file", .kind = OPTION_TEXT, .fallback = "", .metavar = "FILE", .help = "PEM key of that"},
    {.name = "engine-token-file",
     .kind = OPTION_TEXT,
     .fallback = "",
     .metavar = "FILE",
     .help = "bearer token for https pages of pods, read anew when it changes; never sent to endpoints"},
    {.name = "engine-token-plain",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "send the token to http pages of pods too, where who listens on the way can read it"},
    DAEMON_OPTIONS_TLS,
    DAEMON_OPTIONS_REST,
};

static char own_name[256];

static const char *hub_name(const struct option_set *set)
{
    const char *name = *option_text(set, "hub-name") ? option_text(set, "hub-name") : getenv("POD_NAME");
    if (name && *name)
        return name;
    return gethostname(own_name, sizeof(own_name) - 1) == 0 ? own_name : "hub";
}

static int fill_agents(const struct option_set *set, struct hub_config *config, struct err *e)
{
    size_t n;
    char *const *agents = option_list(set, "agents", &n);
    if (n > HUB_AGENTS_MAX)
        return err_set(e, ERR_INVALID_ARGUMENT, "--agents: at most %d", HUB_AGENTS_MAX);
    for (size_t i = 0; i < n; i++)
        config->agents[config->n_agents++] = agents[i];
    if (n == 0)
        config->agents[config->n_agents++] = "service:keda-gpu-scaler-agents";
    config->has_agent_tls = option_bool(set, "agents-tls");
    config->agent_tls = (struct net_tls_files){.cert = option_text_or_null(set, "agents-tls-cert"),
                                               .key = option_text_or_null(set, "agents-tls-key"),
                                               .ca = option_text_or_null(set, "agents-tls-ca")};
    config->agent_server_name = option_text_or_null(set, "agents-tls-server-name");
    bool has_files = config->agent_tls.cert || config->agent_tls.key || config->agent_tls.ca;
    if (has_files && !config->has_agent_tls)
        return err_set(e, ERR_INVALID_ARGUMENT, "--agents-tls-ca, -cert and -key only work with --agents-tls");
    if (!config->agent_tls.cert != !config->agent_tls.key)
        return err_set(e, ERR_INVALID_ARGUMENT, "--agents-tls-cert and --agents-tls-key only work together");
    return 0;
}

/* Who the hub is to the workloads' pods. */
static int fill_engine(const struct option_set *set, struct engine_config *config, struct err *e)
{
    if (engine_config_from_options(set, config, e) < 0)
        return -1;
    config->cert_file = option_text_or_null(set, "engine-cert-file");
    config->key_file = option_text_or_null(set, "engine-key-file");
    config->token_file = option_text_or_null(set, "engine-token-file");
    config->is_token_plain = option_bool(set, "engine-token-plain");
    if (!config->cert_file != !config->key_file)
        return err_set(e, ERR_INVALID_ARGUMENT, "--engine-cert-file and --engine-key-file only work together");
    if (config->is_token_plain && !config->token_file)
        return err_set(e, ERR_INVALID_ARGUMENT, "--engine-token-plain only works with --engine-token-file");
    return 0;
}

static int fill_config(struct option_set *set, struct hub_config *config, struct err *e)
{
    if (daemon_config_from_options(set, &config->daemon, e) < 0 || fill_agents(set, config, e) < 0)
        return -1;
    const char *tolerance = option_text(set, "hpa-tolerance");
    if (num_parse_double(str_of(tolerance), &config->hpa_tolerance) < 0 || config->hpa_tolerance < 0 ||
        config->hpa_tolerance > 1)
        return err_set(e, ERR_INVALID_ARGUMENT, "--hpa-tolerance \"%s\": must be a number from 0 to 1", tolerance);
    if (fill_engine(set, &config->engine, e) < 0)
        return -1;
    config->kubeconfig = option_text_or_null(set, "kubeconfig");
    config->service = option_text(set, "service-name");
    config->service_ns = option_text_or_null(set, "service-namespace");
    config->name = hub_name(set);
    config->simulated_gpus_per_pod = (unsigned)option_int(set, "simulated-gpus");
    config->max_devices_shown = (size_t)option_int(set, "shown-gpus");
    config->has_reflection = option_bool(set, "grpc-reflection");
    return 0;
}

static int run(struct option_set *set)
{
    struct hub_config config = {.n_agents = 0};
    struct err e;
    if (fill_config(set, &config, &e) < 0)
        return cli_fail(&e, "");
    if (option_bool(set, "print-config")) {
        daemon_print_config(set, &config.daemon);
        return 0;
    }
    return hub_run(&config);
}

const struct command command_hub = {
    .name = "hub",
    .summary = "Serve KEDA from the GPUs of the whole cluster",
    .usage = "[flags]",
    .details =
        "Follows every agent and the Kubernetes API, and answers KEDA's ExternalScaler with the value of the workload\n"
        "that the ScaledObject scales, from its own pods: the GPUs that they hold on all nodes, and their metrics\n"
        "pages. Why: `explain`, or /api/v1/workloads on any port.\n\n"
        "SIGHUP reads the configuration and certificates again; SIGTERM drains and exits 0.",
    .options = hub_options,
    .n_options = ARRAY_LEN(hub_options),
    .env_prefix = "KEDA_GPU_SCALER_",
    .run = run,
};
