/* `top`: the devices of a node and the pods on them as a table or as data, once or again and again; from NVML on this
 * machine or from an agent's /metrics. Its flags and which form is asked for; samples are top_run's, forms
 * top_render's.
 */
#include "cli/top.h"

#include "attribution/attribution.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct option_def top_options[] = {
    {.name = "output",
     .kind = OPTION_CHOICE,
     .fallback = "table",
     .metavar = "FORMAT",
     .help = "form of the output",
     .choices = "table|wide|json|jsonl|csv|prom",
     .letter = 'o'},
    {.name = "watch",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "again and again, until it is interrupted",
     .letter = 'w'},
    {.name = "interval",
     .kind = OPTION_DURATION,
     .fallback = "2s",
     .metavar = "D",
     .help = "time between samples (means --watch)",
     .min = 100 * NS_PER_MS,
     .max = 24 * 3600 * NS_PER_S},
    {.name = "count",
     .kind = OPTION_INT,
     .fallback = "0",
     .metavar = "N",
     .help = "end after so many samples (means --watch); 0 = never",
     .min = 0,
     .max = 1000000000},
    OPTION_NVML_SEARCHED,
    {.name = "timeout",
     .kind = OPTION_DURATION,
     .fallback = "10s",
     .metavar = "D",
     .help = "longest wait for the driver's first readings, or for the agent's page",
     .min = NS_PER_MS,
     .max = 3600 * NS_PER_S},
    {.name = "job",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "only the devices of the Slurm or Flux job that this process is in"},
    {.name = "env",
     .kind = OPTION_CHOICE,
     .fallback = "auto",
     .metavar = "KIND",
     .help = "where this process runs, for --job (means --job)",
     .choices = "auto|k8s|kubernetes|slurm|flux|standalone"},
    {.name = "pod-resources",
     .kind = OPTION_TEXT,
     .fallback = ATTRIBUTION_SOCKET,
     .metavar = "PATH",
     .help = "the kubelet's socket on this machine, for pods; empty = do not ask"},
    {.name = "procfs",
     .kind = OPTION_TEXT,
     .fallback = "auto",
     .metavar = "PATH",
     .help = "the host's /proc, to measure what pods use; empty = do not; auto = where pods can be told"},
    OPTIONS_POD_NAMES,
};

enum { PAGE_MAX = 16 << 20 };
enum output { OUTPUT_TABLE, OUTPUT_WIDE, OUTPUT_JSON, OUTPUT_JSONL, OUTPUT_CSV, OUTPUT_PROM };

struct view {
    enum output output;
    bool is_watch, is_live, has_colour;
    bool has_shown;              /* something was printed before */
    const struct job_plan *plan; /* NULL: not asked for */
};

static void render_live(struct view *v, const struct top_sample *sample, enum top_view view, struct buf *out)
{
    char time[TIME_RFC3339_MAX] = "";
    struct buf table BUF_AUTO;
    buf_init(&table, PAGE_MAX);
    if (sample->collected_ns)
        time_format_rfc3339(time, sample->collected_ns);
    (void)buf_printf(&table, "%s%sdriver %s   %s\n\n", sample->node, *sample->node ? "   " : "",
                     *sample->driver_version ? sample->driver_version : sample->state, time);
    top_render_table(sample, view, v->has_colour, &table);
    (void)buf_append_str(out, v->has_shown ? "\033[H" : "\033[H\033[2J");
    struct str rest = {table.data, table.len};
    while (rest.len) { /* each line over what stood there, then nothing below */
        struct str line = str_cut(&rest, '\n');
        (void)buf_printf(out, "%.*s\033[K\n", (int)line.len, line.ptr);
    }
    (void)buf_append_str(out, "\033[J");
}

static void render(void *context, const struct top_sample *sample, struct str page, struct buf *out)
{
    struct view *v = context;
    enum top_view view = v->output == OUTPUT_WIDE ? TOP_VIEW_WIDE : TOP_VIEW_TABLE;
    switch (v->output) {
    case OUTPUT_TABLE:
    case OUTPUT_WIDE:
        if (v->is_live) {
            render_live(v, sample, view, out);
            break;
        }
        if (v->has_shown)
            (void)buf_append_char(out, '\n');
        top_render_table(sample, view, v->has_colour, out);
        break;
    case OUTPUT_JSON:
    case OUTPUT_JSONL:
        top_render_json(sample, v->plan, v->output == OUTPUT_JSON && !v->is_watch ? 2 : 0, out);
        break;
    case OUTPUT_CSV:
        if (!v->has_shown)
            top_render_csv_header(out);
        top_render_csv(sample, out);
        break;
    case OUTPUT_PROM:
        top_render_prom(page, out);
        break;
    }
    v->has_shown = true;
}

static enum output output_of(const struct option_set *set)
{
    static const char *const names[] = {"table", "wide", "json", "jsonl", "csv", "prom"};
    size_t at = 0;
    while (strcmp(names[at], option_text(set, "output")) != 0)
        at++; /* the table of options knows no other */
    return (enum output)at;
}

static const char *environment_word(void *context, const char *name)
{
    (void)context;
    return getenv(name);
}

static int refuse(const char *what, const char *hint)
{
    struct err e;
    (void)err_set(&e, ERR_INVALID_ARGUMENT, "%s", what);
    return cli_fail(&e, hint);
}

static struct top_pods_config pods_of(const struct option_set *set)
{
    struct top_pods_config pods = {.pod_resources = option_text_or_null(set, "pod-resources"),
                                   .pod_logs = option_text_or_null(set, "pod-logs"),
                                   .log_links = option_text_or_null(set, "container-logs")};
    bool is_auto = strcmp(option_text(set, "procfs"), "auto") == 0;
    pods.procfs = is_auto ? top_pods_default_procfs(&pods) : option_text_or_null(set, "procfs");
    return pods;
}

static int run_view(struct option_set *set, struct view *v, const struct job_plan *plan)
{
    const char *term = getenv("TERM");
    v->is_live = v->is_watch && isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
    return top_run(&(struct top_run_config){
        .address = set->operands.len ? set->operands.items[0] : NULL,
        .library_path = option_text_or_null(set, "nvml-library"),
        .pods = pods_of(set),
        .plan = plan,
        .interval_ns = option_duration(set, "interval"),
        .timeout_ns = option_duration(set, "timeout"),
        .count = option_int(set, "count"),
        .is_watch = v->is_watch,
        .has_rates = v->output != OUTPUT_TABLE,
        .render = render,
        .context = v,
    });
}

static int run_top(struct option_set *set)
{
    struct view v = {
        .output = output_of(set),
        .is_watch = option_bool(set, "watch") || option_is_set(set, "interval") || option_is_set(set, "count"),
        .has_colour = cli_has_colour(),
    };
    bool is_job = option_bool(set, "job") || option_is_set(set, "env");
    if (v.is_watch && v.output == OUTPUT_PROM)
        return refuse("-o prom is one page and cannot be watched", "scrape the agent's /metrics instead");
    if (is_job && v.output == OUTPUT_PROM)
        return refuse("-o prom is the whole page and cannot be that of a job", "-o json --job has its devices");
    struct job_plan plan = {.choice = JOB_ALL};
    enum job_environment environment = JOB_STANDALONE;
    char node[256];
    top_node_name(node, sizeof(node));
    (void)job_environment_of(option_text(set, "env"), environment_word, NULL, &environment);
    if (is_job) {
        job_plan_init(&plan, environment, -1, node, environment_word, NULL);
        v.plan = &plan;
    }
    int rc = run_view(set, &v, &plan);
    job_plan_fini(&plan);
    return rc;
}

const struct command command_top = {
    .name = "top",
    .summary = "Show the GPUs and MIG devices of a node, and the pods on them",
    .usage = "[ADDRESS] [flags]",
    .max_operands = 1,
    .details = "Without ADDRESS from NVML on this machine; with it from an agent's /metrics, such as 10.0.0.5:9090 or\n"
               "unix:/path. Unknown values are \"-\" in tables, null in JSON, empty in CSV; never 0.\n\n"
               "Exit status: 0 done or interrupted in --watch, 1 nothing to read, 2 wrong usage, 3 a device is lost or "
               "one of\n"
               "the job's is not there, 124\n"
               "no answer within --timeout; of the last sample.",
    .options = top_options,
    .n_options = ARRAY_LEN(top_options),
    .run = run_top,
};
