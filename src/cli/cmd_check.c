/* `check`: what a node needs for the agent, each line ok, or what to do about it. */
#include "cli/check.h"

#include <stdio.h>
#include <string.h>

enum { EXIT_PROBLEMS = 3 }; /* as promtool has it */

static const struct option_def check_options[] = {
    {.name = "output",
     .kind = OPTION_CHOICE,
     .fallback = "text",
     .metavar = "FORMAT",
     .help = "form of the output",
     .choices = "text|json",
     .letter = 'o'},
    {.name = "strict", .kind = OPTION_BOOL, .fallback = "false", .help = "a warning is a problem too"},
    OPTION_NVML_SEARCHED,
    {.name = "pod-resources",
     .kind = OPTION_TEXT,
     .fallback = "/var/lib/kubelet/pod-resources/kubelet.sock",
     .metavar = "PATH",
     .help = "the kubelet's socket; empty = do not ask"},
    {.name = "procfs",
     .kind = OPTION_TEXT,
     .fallback = "",
     .metavar = "PATH",
     .help = "the host's /proc that the agent would tell processes apart by; empty = not asked for"},
    {.name = "port",
     .kind = OPTION_INT,
     .fallback = "6000",
     .metavar = "PORT",
     .help = "the agent's gRPC port; 0 or -1 = none",
     .min = -1,
     .max = 65535},
    {.name = "metrics-port",
     .kind = OPTION_INT,
     .fallback = "9090",
     .metavar = "PORT",
     .help = "the agent's port for /metrics; 0 or -1 = none",
     .min = -1,
     .max = 65535},
    {.name = "probe-port",
     .kind = OPTION_INT,
     .fallback = "8081",
     .metavar = "PORT",
     .help = "the agent's port for probes; 0 or -1 = none",
     .min = -1,
     .max = 65535},
    {.name = "root",
     .kind = OPTION_TEXT,
     .fallback = "",
     .metavar = "DIR",
     .help = "look for /proc, /sys, /dev and the socket under this folder; NVML is asked all the same"},
    {.name = "timeout",
     .kind = OPTION_DURATION,
     .fallback = "10s",
     .metavar = "D",
     .help = "longest wait for NVML, and again for the kubelet",
     .min = NS_PER_MS,
     .max = 3600 * NS_PER_S},
};

static int run_check(struct option_set *set)
{
    const char *library = option_text(set, "nvml-library");
    struct check_config config = {
        .root = option_text(set, "root"),
        .library_path = *library ? library : NULL,
        .kubelet_socket = option_text(set, "pod-resources"),
        .procfs = option_text(set, "procfs"),
        .ports = {(int)option_int(set, "port"), (int)option_int(set, "metrics-port"),
                  (int)option_int(set, "probe-port")},
        .timeout_ns = option_duration(set, "timeout"),
    };
    struct check_facts facts;
    struct check_report report;
    char now[TIME_RFC3339_MAX];
    BUF_AUTO struct buf text;
    buf_init(&text, 1 << 20);
    time_format_rfc3339(now, time_wall_ns());
    check_collect(&config, &facts);
    check_judge(&facts, &report);
    if (strcmp(option_text(set, "output"), "json") == 0)
        check_render_json(&report, now, &text);
    else
        check_render_text(&report, cli_has_colour(), &text);
    bool is_fine = report.n_failures == 0 && !(option_bool(set, "strict") && report.n_warnings);
    check_report_fini(&report);
    check_facts_fini(&facts);
    if (fputs(buf_cstr(&text), stdout) < 0)
        return 1;
    return is_fine ? 0 : EXIT_PROBLEMS;
}

const struct command command_check = {
    .name = "check",
    .summary = "Look at what a node needs for the agent, and say what to do about it",
    .usage = "[flags]",
    .details =
        "Driver, library, versions, GPUs and their files, MIG, activity metrics, the kubelet's pod-resources socket,\n"
        "visible processes, permissions and ports. Each line is ok, warn (the agent works, with less) or fail.\n\n"
        "Exit status: 0 no problem, 2 wrong usage, 3 problems found (with --strict: or warnings).",
    .options = check_options,
    .n_options = ARRAY_LEN(check_options),
    .env_prefix = "KEDA_GPU_SCALER_",
    .run = run_check,
};
