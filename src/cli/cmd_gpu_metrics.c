/* `gpu-metrics`: the GPUs of a Slurm or Flux job, a pod or a machine, under the name, flags and forms that the
 * reference implementation's program of that name has. Its own: flags and the plan of --dry-run. */
#include "cli/top.h"

#include <stdio.h>
#include <string.h>

static const struct option_def gpu_metrics_options[] = {
    {.name = "format",
     .kind = OPTION_CHOICE,
     .fallback = "table",
     .metavar = "FORMAT",
     .help = "form of the output",
     .choices = "table|json|csv"},
    {.name = "interval",
     .kind = OPTION_DURATION,
     .fallback = "0",
     .metavar = "D",
     .help = "time between samples, until it is interrupted; 0 = one sample",
     .min = 0,
     .max = 24 * 3600 * NS_PER_S},
    {.name = "device",
     .kind = OPTION_INT,
     .fallback = "-1",
     .metavar = "N",
     .help = "this GPU alone, by its NVML index; -1 = the job's, or all",
     .min = -1,
     .max = 1 << 20},
    {.name = "env",
     .kind = OPTION_CHOICE,
     .fallback = "auto",
     .metavar = "KIND",
     .help = "where this process runs",
     .choices = "auto|k8s|kubernetes|slurm|flux|standalone"},
    {.name = "quiet", .kind = OPTION_BOOL, .fallback = "false", .help = "nothing on stderr"},
    {.name = "dry-run", .kind = OPTION_BOOL, .fallback = "false", .help = "print what would be read, and end"},
    OPTION_NVML_SEARCHED,
    {.name = "timeout",
     .kind = OPTION_DURATION,
     .fallback = "10s",
     .metavar = "D",
     .help = "longest wait for the driver's first readings",
     .min = NS_PER_MS,
     .max = 3600 * NS_PER_S},
};

struct view {
    const char *format;
    const struct job_plan *plan;
    bool is_watch, has_shown;
};

static void render(void *context, const struct top_sample *sample, struct str page, struct buf *out)
{
    struct view *v = context;
    (void)page;
    if (strcmp(v->format, "json") == 0) {
        top_render_compat_json(sample, v->plan, v->is_watch ? 0 : 2, out);
    } else if (strcmp(v->format, "csv") == 0) {
        if (!v->has_shown)
            top_render_compat_csv_header(out);
        top_render_compat_csv(sample, v->plan, out);
    } else {
        (void)buf_append_str(out, v->has_shown ? "\n" : "");
        top_render_compat_table(sample, v->plan, out);
    }
    v->has_shown = true;
}

static const char *or_dash(const char *text)
{
    return *text ? text : "-";
}

static void print_plan(const struct option_set *set, const struct job_plan *plan)
{
    BUF_AUTO struct buf devices;
    char rank[24] = "-";
    buf_init(&devices, 64 << 10);
    job_plan_describe(plan, &devices);
    if (plan->task_rank >= 0)
        (void)snprintf(rank, sizeof(rank), "%lld", (long long)plan->task_rank);
    (void)printf("Environment   : %s\n", job_environment_name(plan->environment));
    (void)printf("Node          : %s\n", or_dash(plan->node));
    (void)printf("Job / Rank    : %s / %s\n", or_dash(plan->job_id), rank);
    (void)printf("Pod           : %s\n", or_dash(plan->pod));
    (void)printf("Namespace     : %s\n", or_dash(plan->ns));
    (void)printf("Partition     : %s\n", or_dash(plan->partition));
    (void)printf("Output format : %s\n", option_text(set, "format"));
    (void)printf("Device filter : %s\n", buf_cstr(&devices));
    (void)printf("Interval      : %s\n",
                 option_duration(set, "interval") ? option_text(set, "interval") : "0 (one sample)");
}

static const char *environment_word(void *context, const char *name)
{
    (void)context;
    return getenv(name);
}

static int sample(const struct option_set *set, const struct job_plan *plan)
{
    int64_t interval_ns = option_duration(set, "interval");
    struct view v = {.format = option_text(set, "format"), .plan = plan, .is_watch = interval_ns > 0};
    return top_run(&(struct top_run_config){
        .library_path = option_text_or_null(set, "nvml-library"),
        .plan = plan,
        .interval_ns = interval_ns,
        .timeout_ns = option_duration(set, "timeout"),
        .is_watch = v.is_watch,
        .is_quiet = option_bool(set, "quiet"),
        .has_rates = true,
        .render = render,
        .context = &v,
    });
}

static int run_gpu_metrics(struct option_set *set)
{
    struct err e;
    int64_t interval_ns = option_duration(set, "interval");
    if (interval_ns > 0 && interval_ns < 100 * NS_PER_MS) {
        (void)err_set(&e, ERR_INVALID_ARGUMENT, "--interval \"%s\": must be 0, or at least 100ms",
                      option_text(set, "interval"));
        return cli_fail(&e, "");
    }
    char node[256];
    struct job_plan plan;
    enum job_environment environment = JOB_STANDALONE;
    top_node_name(node, sizeof(node));
    (void)job_environment_of(option_text(set, "env"), environment_word, NULL, &environment);
    job_plan_init(&plan, environment, option_int(set, "device"), node, environment_word, NULL);
    int rc = 0;
    if (option_bool(set, "dry-run"))
        print_plan(set, &plan);
    else
        rc = sample(set, &plan);
    job_plan_fini(&plan);
    return rc;
}

const struct command command_gpu_metrics = {
    .name = "gpu-metrics",
    .summary = "Show the GPUs of a Slurm or Flux job, as the program of that name does",
    .usage = "[flags]",
    .details =
        "For scripts that call the reference implementation's gpu-metrics; `top` shows more. Also the program itself,\n"
        "when it is called by this name. Unknown values are \"-\" in tables, null in JSON, empty in CSV; never 0.\n\n"
        "Exit status: 0 done or interrupted, 1 nothing to read, 2 wrong usage, 3 a device is lost or one of the job's\n"
        "is not there, 124 no answer within --timeout; of the last sample.",
    .options = gpu_metrics_options,
    .n_options = ARRAY_LEN(gpu_metrics_options),
    .run = run_gpu_metrics,
};
