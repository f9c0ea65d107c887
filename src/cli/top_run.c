/* Samples of a node's devices, one or one after another: from NVML on this machine or from an agent's /metrics, printed
 * as the command renders them. It owns the waiting, the messages and the exit status; what is shown is the command's.
 */
#include "cli/sampling.h"
#include "cli/top.h"

#include "exporter/exporter.h"
#include "http/http.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PAGE_MAX = 16 << 20 };
#define STUCK_NS     (5 * NS_PER_S) /* a call that does not return; as the agent's warning has it */
#define PODS_WAIT_NS (2 * NS_PER_S) /* at most: devices are not held up by a kubelet */

struct top {
    const struct top_run_config *config;
    struct sampling sampling;
    struct metrics *metrics;
    struct exporter *exporter;
    struct top_pods *pods; /* NULL: not of this machine, or nothing to look at */
    struct buf page, out, note;
    char said[ERR_TEXT_MAX], said_of_pods[ERR_TEXT_MAX]; /* the last messages: said once while they stay the same */
};

/* Say what is wrong; returns the exit status for it. */
static int complain_with(struct top *t, const struct err *e, const char *hint)
{
    if (strcmp(t->said, e->text) != 0 && !t->config->is_quiet)
        (void)cli_fail(e, hint);
    (void)str_copy(t->said, sizeof(t->said), str_of(e->text));
    return err_exit_code(e->class);
}

static int complain(struct top *t, const struct err *e)
{
    return complain_with(t, e, t->config->address ? "" : "keda-gpu-scaler check says what this machine lacks");
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
    int status = http_get_blocking(t->config->address, "/metrics", t->config->timeout_ns, &t->page, e);
    if (status < 0)
        return -1;
    if (status != 200)
        return err_set(e, ERR_FAILED_PRECONDITION, "%s answers /metrics with status %d", t->config->address, status);
    return read_page(t, ret_sample, e) < 0 ? err_wrap(e, "%s", t->config->address) : 0;
}

/* The newest snapshot as the page that an agent would show. */
static int read_machine(struct top *t, struct top_sample *ret_sample, struct err *e)
{
    struct exporter_view view = {.snapshot = t->sampling.newest, .now_ns = time_mono_ns(), .wall_ns = time_wall_ns()};
    if (t->pods) {
        view.owners = top_pods_owners(t->pods);
        view.holders = top_pods_holders(t->pods);
    }
    exporter_render(t->exporter, &view, PROMTEXT_TEXT, &t->page);
    return read_page(t, ret_sample, e);
}

/* Wait for a snapshot that is enough; what pods do keeps up with it. */
static bool wait_for(struct top *t, bool (*is_enough)(const struct snapshot *), int64_t deadline_ns)
{
    return t->pods ? top_pods_wait(t->pods, is_enough, deadline_ns)
                   : sampling_wait(&t->sampling, is_enough, deadline_ns);
}

static void settle_pods(struct top *t)
{
    int64_t timeout_ns = t->config->timeout_ns;
    if (t->pods)
        top_pods_settle(t->pods, timeout_ns < PODS_WAIT_NS ? timeout_ns : PODS_WAIT_NS);
}

/* PCIe counters that block are read only while somebody wants them. */
static void want_rates(struct top *t)
{
    int64_t until_ns = time_mono_ns() + t->config->interval_ns + t->config->timeout_ns;
    if (!t->config->has_rates)
        return;
    gpu_want(t->sampling.gpu, SNAPSHOT_PCIE_TX, until_ns);
    gpu_want(t->sampling.gpu, SNAPSHOT_PCIE_RX, until_ns);
}

/* ---- one sample ---- */

static volatile sig_atomic_t is_printing, is_over;

/* Whatever the driver or the peer is at; but a line that has begun is ended, unless nobody takes it within a second. */
static void end_now(int number)
{
    if (!is_printing || number == SIGALRM)
        _exit(0);
    is_over = 1;
    (void)alarm(1);
}

/* Print what was rendered; false once nobody reads any more. */
static bool print(struct top *t)
{
    is_printing = 1;
    if (t->out.len)
        (void)fwrite(t->out.data, 1, t->out.len, stdout);
    bool is_read = cli_flush();
    is_printing = 0;
    if (is_over)
        _exit(0);
    return is_read;
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

static bool has_lost(const struct top_sample *sample)
{
    for (size_t i = 0; i < sample->devices.len; i++)
        if (sample->devices.items[i].is_lost)
            return true;
    return false;
}

/* Why there are no pods to show, where there is more to say than that nobody asks for them. The status stays: what was
 * asked for first, the devices, is there. */
static void say_pods(struct top *t, const struct top_sample *sample)
{
    struct err e = {.class = ERR_NONE};
    bool is_denied = strcmp(sample->owners, snapshot_owners_state_name(SNAPSHOT_OWNERS_DENIED)) == 0;
    bool is_failed = strcmp(sample->owners, snapshot_owners_state_name(SNAPSHOT_OWNERS_FAILED)) == 0;
    if (t->pods)
        (void)top_pods_explain(t->pods, &e);
    else if (is_denied || is_failed)
        (void)err_set(&e, ERR_UNAVAILABLE, "pods are not known to the agent on %s: %s", t->config->address,
                      is_denied ? "it may not open the kubelet's socket" : "the kubelet does not answer it");
    if (e.class != ERR_NONE && strcmp(t->said_of_pods, e.text) != 0 && !t->config->is_quiet)
        (void)cli_fail(&e, "");
    (void)str_copy(t->said_of_pods, sizeof(t->said_of_pods), str_of(e.class == ERR_NONE ? "" : e.text));
}

/* The status of a sample of `n_seen` devices, of which those of the plan are left. */
static int status_of(struct top *t, const struct top_sample *sample, size_t n_seen, size_t n_missing)
{
    struct err e;
    if (n_seen == 0)
        return say_state(t, sample);
    if (n_missing) {
        (void)err_set(&e, ERR_UNAVAILABLE, "%s", buf_cstr(&t->note));
        (void)complain_with(t, &e, "");
        return TOP_EXIT_PARTIAL;
    }
    if (has_lost(sample))
        return TOP_EXIT_PARTIAL;
    if (t->sampling.newest && t->config->plan->choice == JOB_ALL && sampling_has_unopened(t->sampling.newest)) {
        (void)err_set(&e, ERR_UNAVAILABLE,
                      "a GPU that the driver lists cannot be opened: it is lost, see the kernel log");
        (void)complain(t, &e);
        return TOP_EXIT_PARTIAL;
    }
    if (t->note.len) {
        (void)err_set(&e, ERR_UNAVAILABLE, "%s", buf_cstr(&t->note));
        (void)complain_with(t, &e, "");
        return 0;
    }
    *t->said = '\0';
    return 0;
}

/* Nothing is printed for a machine that cannot be read; an empty list for one without GPUs. */
static int show(struct top *t, struct top_sample *sample)
{
    size_t n_seen = sample->devices.len;
    buf_reset(&t->note);
    size_t n_missing = n_seen ? top_choose(sample, t->config->plan, &t->note) : 0;
    int status = status_of(t, sample, n_seen, n_missing);
    if (n_seen)
        say_pods(t, sample);
    if (status == 0 || status == TOP_EXIT_PARTIAL)
        t->config->render(t->config->context, sample, (struct str){t->page.data, t->page.len}, &t->out);
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
    if (t->config->address) {
        rc = read_agent(t, &sample, &e);
    } else {
        want_rates(t);
        if (!wait_for(t, sampling_has_rates, time_mono_ns() + t->config->timeout_ns))
            sampling_explain(&t->sampling, t->config->timeout_ns, &late);
        else if (gpu_is_stuck(t->sampling.gpu, time_mono_ns(), STUCK_NS, call, sizeof(call)))
            (void)err_set(&late, ERR_DEADLINE_EXCEEDED, "the driver does not answer, readings age: %s", call);
        settle_pods(t);
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

static bool never(const struct snapshot *snapshot)
{
    (void)snapshot;
    return false;
}

static void wait_until(struct top *t, int64_t deadline_ns)
{
    if (!t->config->address) {
        (void)wait_for(t, never, deadline_ns);
        return;
    }
    int64_t left_ns;
    while ((left_ns = deadline_ns - time_mono_ns()) > 0)
        (void)poll(NULL, 0, (int)((left_ns + NS_PER_MS - 1) / NS_PER_MS));
}

static void end_on_signals(void)
{
    struct sigaction end = {.sa_handler = end_now, .sa_flags = SA_RESTART};
    (void)sigaction(SIGINT, &end, NULL);
    (void)sigaction(SIGTERM, &end, NULL);
    (void)sigaction(SIGALRM, &end, NULL);
}

/* The status of the last sample. */
static int watch(struct top *t)
{
    int64_t tick_ns = 0;
    end_on_signals();
    for (int64_t n = 1;; n++) {
        int status = take_sample(t);
        if (status < 0)
            return 0; /* cli_main looks at the output itself */
        if (n == t->config->count)
            return status;
        int64_t now_ns = time_mono_ns();
        tick_ns = tick_ns ? tick_ns : now_ns; /* the first sample may have waited for the driver */
        do                                    /* ticks that were missed are left out */
            tick_ns += t->config->interval_ns;
        while (tick_ns <= now_ns);
        wait_until(t, tick_ns);
    }
}

static int start_pods(struct top *t, struct err *e)
{
    const struct top_pods_config *config = &t->config->pods;
    if (top_pods_are_wanted(config))
        t->pods = top_pods_new(config, &t->sampling, t->metrics, e);
    return t->pods || !top_pods_are_wanted(config) ? 0 : -1;
}

static int run_source(struct top *t)
{
    struct err e;
    const struct top_run_config *c = t->config;
    int64_t period_ns = c->is_watch && c->interval_ns > NS_PER_S ? NS_PER_S : NS_PER_S / 2;
    struct gpu_config config = {.library_path = c->library_path,
                                .period_ns = c->is_watch && c->interval_ns < period_ns ? c->interval_ns : period_ns,
                                .has_processes = c->pods.procfs != NULL,
                                .stop_timeout_ns = 100 * NS_PER_MS};
    if (!c->address && (sampling_start(&t->sampling, &config, &e) < 0 || start_pods(t, &e) < 0))
        return complain_with(t, &e, "");
    if (c->is_watch)
        return watch(t);
    int status = take_sample(t);
    return status < 0 ? 0 : status;
}

void top_node_name(char *out, size_t size)
{
    const char *name = getenv("NODE_NAME");
    if (name && *name)
        (void)str_copy(out, size, str_of(name));
    else if (gethostname(out, size) < 0)
        out[0] = '\0';
    out[size - 1] = '\0';
}

int top_run(const struct top_run_config *config)
{
    struct top t = {.config = config, .sampling = {.event = -1}, .metrics = metrics_new()};
    char node[256];
    top_node_name(node, sizeof(node));
    t.exporter = exporter_new(&(struct exporter_config){
        .metrics = t.metrics, .node_name = node, .version = CLI_VERSION, .start_wall_ns = time_wall_ns()});
    buf_init(&t.page, PAGE_MAX);
    buf_init(&t.out, PAGE_MAX);
    buf_init(&t.note, ERR_TEXT_MAX);
    int rc = run_source(&t);
    top_pods_free(t.pods);
    sampling_stop(&t.sampling);
    exporter_free(t.exporter);
    metrics_free(t.metrics);
    buf_fini(&t.page);
    buf_fini(&t.out);
    buf_fini(&t.note);
    return rc;
}
