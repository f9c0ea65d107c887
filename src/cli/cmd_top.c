/* `top`: the devices of a node as a table or as data, once or again and again; from NVML on this machine or from an
 * agent's /metrics. Where a sample comes from and when; its forms are top_render's. */
#include "cli/sampling.h"
#include "cli/top.h"

#include "exporter/exporter.h"
#include "http/http.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_LOST = 3, PAGE_MAX = 16 << 20 };
#define STUCK_NS (5 * NS_PER_S) /* a call that does not return; as the agent's warning has it */

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
    {.name = "nvml-library",
     .kind = OPTION_TEXT,
     .fallback = "",
     .metavar = "PATH",
     .help = "libnvidia-ml.so.1 to load (default: search, NVML_LIB first)"},
    {.name = "timeout",
     .kind = OPTION_DURATION,
     .fallback = "10s",
     .metavar = "D",
     .help = "longest wait for the driver's first readings, or for the agent's page",
     .min = NS_PER_MS,
     .max = 3600 * NS_PER_S},
};

enum output { OUTPUT_TABLE, OUTPUT_WIDE, OUTPUT_JSON, OUTPUT_JSONL, OUTPUT_CSV, OUTPUT_PROM };

struct top {
    const char *address; /* NULL: this machine */
    enum output output;
    int64_t interval_ns, timeout_ns;
    bool is_watch, is_live, has_colour;
    bool has_shown; /* something was printed before */
    struct sampling sampling;
    struct metrics *metrics;
    struct exporter *exporter;
    struct buf page, out;
    char said[ERR_TEXT_MAX]; /* the last message: said once while it stays the same */
};

/* Say what is wrong; returns the exit status for it. */
static int complain(struct top *t, const struct err *e)
{
    if (strcmp(t->said, e->text) != 0)
        (void)cli_fail(e, t->address ? "" : "keda-gpu-scaler check says what this machine lacks");
    (void)str_copy(t->said, sizeof(t->said), str_of(e->text));
    return err_exit_code(e->class);
}

/* ---- where a sample comes from ---- */

static int read_page(struct top *t, struct top_sample *ret_sample, struct err *e)
{
    if (t->page.is_overflowed)
        return err_set(e, ERR_RESOURCE_EXHAUSTED, "the page is larger than %d bytes", PAGE_MAX);
    if (top_read((struct str){t->page.data ? t->page.data : "", t->page.len}, ret_sample, e) < 0)
        return -1;
    ret_sample->collected_ns = top_collected_ns(ret_sample, time_wall_ns());
    return 0;
}

static int read_agent(struct top *t, struct top_sample *ret_sample, struct err *e)
{
    int status = http_get_blocking(t->address, "/metrics", t->timeout_ns, &t->page, e);
    if (status < 0)
        return -1;
    if (status != 200)
        return err_set(e, ERR_FAILED_PRECONDITION, "%s answers /metrics with status %d", t->address, status);
    return read_page(t, ret_sample, e) < 0 ? err_wrap(e, "%s", t->address) : 0;
}

/* The newest snapshot as the page that an agent would show. */
static int read_machine(struct top *t, struct top_sample *ret_sample, struct err *e)
{
    struct exporter_view view = {.snapshot = t->sampling.newest, .now_ns = time_mono_ns()};
    exporter_render(t->exporter, &view, PROMTEXT_TEXT, &t->page);
    return read_page(t, ret_sample, e);
}

/* PCIe counters that block are read only while somebody wants them. */
static void want_rates(struct top *t)
{
    int64_t until_ns = time_mono_ns() + t->interval_ns + t->timeout_ns;
    if (t->output == OUTPUT_TABLE)
        return;
    gpu_want(t->sampling.gpu, SNAPSHOT_PCIE_TX, until_ns);
    gpu_want(t->sampling.gpu, SNAPSHOT_PCIE_RX, until_ns);
}

/* ---- one sample ---- */

static void render_live(struct top *t, const struct top_sample *sample, enum top_view view)
{
    char time[TIME_RFC3339_MAX] = "";
    struct buf table BUF_AUTO;
    buf_init(&table, PAGE_MAX);
    if (sample->collected_ns)
        time_format_rfc3339(time, sample->collected_ns);
    (void)buf_printf(&table, "%s%sdriver %s   %s\n\n", sample->node, *sample->node ? "   " : "",
                     *sample->driver_version ? sample->driver_version : sample->state, time);
    top_render_table(sample, view, t->has_colour, &table);
    (void)buf_append_str(&t->out, t->has_shown ? "\033[H" : "\033[H\033[2J");
    struct str rest = {table.data, table.len};
    while (rest.len) { /* each line over what stood there, then nothing below */
        struct str line = str_cut(&rest, '\n');
        (void)buf_printf(&t->out, "%.*s\033[K\n", (int)line.len, line.ptr);
    }
    (void)buf_append_str(&t->out, "\033[J");
}

static void render(struct top *t, const struct top_sample *sample)
{
    enum top_view view = t->output == OUTPUT_WIDE ? TOP_VIEW_WIDE : TOP_VIEW_TABLE;
    switch (t->output) {
    case OUTPUT_TABLE:
    case OUTPUT_WIDE:
        if (t->is_live) {
            render_live(t, sample, view);
            break;
        }
        if (t->has_shown)
            (void)buf_append_char(&t->out, '\n');
        top_render_table(sample, view, t->has_colour, &t->out);
        break;
    case OUTPUT_JSON:
    case OUTPUT_JSONL:
        top_render_json(sample, t->output == OUTPUT_JSON && !t->is_watch ? 2 : 0, &t->out);
        break;
    case OUTPUT_CSV:
        if (!t->has_shown)
            top_render_csv_header(&t->out);
        top_render_csv(sample, &t->out);
        break;
    case OUTPUT_PROM:
        top_render_prom((struct str){t->page.data, t->page.len}, &t->out);
        break;
    }
    t->has_shown = true;
}

/* Print what was rendered; false once nobody reads any more. */
static bool print(struct top *t)
{
    if (t->out.len)
        (void)fwrite(t->out.data, 1, t->out.len, stdout);
    return cli_flush();
}

/* What is wrong with a sample that has no device, by the sampler's own words where it is ours. */
static int say_state(struct top *t, const struct top_sample *sample)
{
    struct err e;
    const char *text = t->sampling.newest ? t->sampling.newest->driver_text : "";
    bool is_empty = strcmp(sample->state, snapshot_driver_state_name(SNAPSHOT_DRIVER_NO_DEVICES)) == 0;
    if (strcmp(sample->state, snapshot_driver_state_name(SNAPSHOT_DRIVER_NO_LIBRARY)) == 0)
        (void)err_set(&e, ERR_UNAVAILABLE, "no GPU to show: libnvidia-ml.so.1 is not found");
    else if (*text)
        (void)err_set(&e, ERR_UNAVAILABLE, "%s", text);
    else
        (void)err_set(&e, ERR_UNAVAILABLE, "no GPU to show: driver %s", sample->state);
    int status = complain(t, &e);
    return is_empty ? 0 : status;
}

static int status_of(struct top *t, const struct top_sample *sample)
{
    struct err e;
    bool has_lost = false;
    for (size_t i = 0; i < sample->devices.len; i++)
        has_lost = has_lost || sample->devices.items[i].is_lost;
    if (has_lost)
        return EXIT_LOST;
    if (t->sampling.newest && sampling_has_unopened(t->sampling.newest)) {
        (void)err_set(&e, ERR_UNAVAILABLE,
                      "a GPU that the driver lists cannot be opened: it is lost, see the kernel log");
        (void)complain(t, &e);
        return EXIT_LOST;
    }
    if (sample->devices.len == 0)
        return say_state(t, sample);
    *t->said = '\0';
    return 0;
}

/* Nothing is printed for a machine that cannot be read; an empty list for one without GPUs. */
static int show(struct top *t, const struct top_sample *sample)
{
    int status = status_of(t, sample);
    if (status == 0 || status == EXIT_LOST)
        render(t, sample);
    return status;
}

/* Read and print one sample. Returns its status, or -1 when nobody reads any more. */
static int take_sample(struct top *t)
{
    struct top_sample sample = {0};
    struct err e, late = {.class = ERR_NONE};
    char call[128];
    buf_reset(&t->page);
    buf_reset(&t->out);
    int rc;
    if (t->address) {
        rc = read_agent(t, &sample, &e);
    } else {
        want_rates(t);
        if (!sampling_wait(&t->sampling, sampling_has_rates, time_mono_ns() + t->timeout_ns))
            sampling_explain(&t->sampling, t->timeout_ns, &late);
        else if (gpu_is_stuck(t->sampling.gpu, time_mono_ns(), STUCK_NS, call, sizeof(call)))
            (void)err_set(&late, ERR_DEADLINE_EXCEEDED, "the driver does not answer, readings age: %s", call);
        bool has_any = t->sampling.newest && t->sampling.newest->driver != SNAPSHOT_DRIVER_STARTING;
        rc = late.class == ERR_NONE || has_any ? read_machine(t, &sample, &e) : -1;
        if (rc < 0 && late.class != ERR_NONE)
            e = late;
    }
    int status = rc < 0 ? complain(t, &e) : show(t, &sample);
    if (rc == 0 && late.class != ERR_NONE)
        status = complain(t, &late);
    top_sample_fini(&sample);
    return print(t) ? status : -1;
}

/* ---- again and again ---- */

static void end_now(int number)
{
    (void)number;
    _exit(0); /* whatever the driver or the peer is at */
}

static bool never(const struct snapshot *snapshot)
{
    (void)snapshot;
    return false;
}

static void wait_until(struct top *t, int64_t deadline_ns)
{
    if (!t->address) {
        (void)sampling_wait(&t->sampling, never, deadline_ns);
        return;
    }
    int64_t left_ns;
    while ((left_ns = deadline_ns - time_mono_ns()) > 0)
        (void)poll(NULL, 0, (int)((left_ns + NS_PER_MS - 1) / NS_PER_MS));
}

/* The status of the last sample. */
static int watch(struct top *t, int64_t count)
{
    struct sigaction end = {.sa_handler = end_now};
    (void)sigaction(SIGINT, &end, NULL);
    (void)sigaction(SIGTERM, &end, NULL);
    int64_t tick_ns = 0;
    for (int64_t n = 1;; n++) {
        int status = take_sample(t);
        if (status < 0)
            return 0; /* cli_main looks at the output itself */
        if (n == count)
            return status;
        int64_t now_ns = time_mono_ns();
        tick_ns = tick_ns ? tick_ns : now_ns; /* the first sample may have waited for the driver */
        do                                    /* ticks that were missed are left out */
            tick_ns += t->interval_ns;
        while (tick_ns <= now_ns);
        wait_until(t, tick_ns);
    }
}

static int run_source(struct top *t, const struct option_set *set)
{
    struct err e;
    const char *library = option_text(set, "nvml-library");
    int64_t period_ns = t->is_watch && t->interval_ns > NS_PER_S ? NS_PER_S : NS_PER_S / 2;
    struct gpu_config config = {.library_path = *library ? library : NULL,
                                .period_ns = t->is_watch && t->interval_ns < period_ns ? t->interval_ns : period_ns,
                                .stop_timeout_ns = 100 * NS_PER_MS};
    if (!t->address && sampling_start(&t->sampling, &config, &e) < 0)
        return cli_fail(&e, "");
    if (t->is_watch)
        return watch(t, option_int(set, "count"));
    int status = take_sample(t);
    return status < 0 ? 0 : status;
}

static enum output output_of(const struct option_set *set)
{
    static const char *const names[] = {"table", "wide", "json", "jsonl", "csv", "prom"};
    size_t at = 0;
    while (strcmp(names[at], option_text(set, "output")) != 0)
        at++; /* the table of options knows no other */
    return (enum output)at;
}

static void read_node_name(char *out, size_t size)
{
    const char *name = getenv("NODE_NAME");
    if (name && *name)
        (void)str_copy(out, size, str_of(name));
    else if (gethostname(out, size) < 0)
        out[0] = '\0';
    out[size - 1] = '\0';
}

static int run_top(struct option_set *set)
{
    struct top t = {
        .address = set->operands.len ? set->operands.items[0] : NULL,
        .output = output_of(set),
        .interval_ns = option_duration(set, "interval"),
        .timeout_ns = option_duration(set, "timeout"),
        .is_watch = option_bool(set, "watch") || option_is_set(set, "interval") || option_is_set(set, "count"),
        .has_colour = cli_has_colour(),
        .sampling = {.event = -1},
        .metrics = metrics_new(),
    };
    const char *term = getenv("TERM");
    t.is_live = t.is_watch && isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
    struct err e;
    if (t.is_watch && t.output == OUTPUT_PROM) {
        metrics_free(t.metrics);
        (void)err_set(&e, ERR_INVALID_ARGUMENT, "-o prom is one page and cannot be watched");
        return cli_fail(&e, "scrape the agent's /metrics instead");
    }
    char node[256];
    read_node_name(node, sizeof(node));
    t.exporter = exporter_new(&(struct exporter_config){
        .metrics = t.metrics, .node_name = node, .version = CLI_VERSION, .start_wall_ns = time_wall_ns()});
    buf_init(&t.page, PAGE_MAX);
    buf_init(&t.out, PAGE_MAX);
    int rc = run_source(&t, set);
    sampling_stop(&t.sampling);
    exporter_free(t.exporter);
    metrics_free(t.metrics);
    buf_fini(&t.page);
    buf_fini(&t.out);
    return rc;
}

const struct command command_top = {
    .name = "top",
    .summary = "Show the GPUs and MIG devices of a node",
    .usage = "[ADDRESS] [flags]",
    .max_operands = 1,
    .details =
        "Without ADDRESS from NVML on this machine; with it from an agent's /metrics, such as 10.0.0.5:9090 or\n"
        "unix:/path. Unknown values are \"-\" in tables, null in JSON, empty in CSV; never 0.\n\n"
        "Exit status: 0 done or interrupted in --watch, 1 nothing to read, 2 wrong usage, 3 a device is lost, 124\n"
        "no answer within --timeout; of the last sample.",
    .options = top_options,
    .n_options = ARRAY_LEN(top_options),
    .run = run_top,
};
