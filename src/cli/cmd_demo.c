/* `demo`: the whole way from GPU readings to replicas, on one machine. It starts simulated GPUs (one pod each), the
 * real agent, a workload whose load rises and falls, and a loop that asks over gRPC as KEDA does and computes as the
 * HPA does. With --real the GPUs are the machine's own and only watched. The model of the workload is the demo's; every
 * value is the agent's. */
#include "cli/demo.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct option_def demo_options[] = {
    {.name = "real",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "read this machine's GPUs and only watch: no simulated load"},
    {.name = "engine",
     .kind = OPTION_CHOICE,
     .fallback = "none",
     .metavar = "NAME",
     .help = "scale simulated model servers by their page, not by GPU readings",
     .choices = "none|vllm|sglang|tgi|triton"},
    {.name = "forever", .kind = OPTION_BOOL, .fallback = "false", .help = "go on until interrupted"},
    {.name = "step",
     .kind = OPTION_DURATION,
     .fallback = "1s",
     .metavar = "D",
     .help = "time between two questions",
     .min = 200 * NS_PER_MS,
     .max = 60 * NS_PER_S},
    {.name = "listen",
     .kind = OPTION_TEXT,
     .fallback = "127.0.0.1:0",
     .metavar = "ADDR",
     .help = "address of the agent (port 0: any free one)"},
    {.name = "metadata",
     .kind = OPTION_LIST,
     .fallback = "",
     .metavar = "KEY=VALUE",
     .help = "trigger metadata instead of the demo's own; may be repeated",
     .letter = 'm'},
    {.name = "nvml-library",
     .kind = OPTION_TEXT,
     .fallback = "",
     .metavar = "PATH",
     .help = "simulated (or, with --real, real) libnvidia-ml.so.1"},
    {.name = "log-level",
     .kind = OPTION_CHOICE,
     .fallback = "error",
     .metavar = "LEVEL",
     .help = "least level of the agent's log",
     .choices = "debug|info|warn|error"},
};

/* Demand in percent of one GPU at a time of the demo, in steps: up to five GPUs' worth, and down again. */
static const struct demo_point demand_curve[] = {{0, 40}, {4, 40}, {16, 390}, {24, 390}, {34, 50}, {46, 50}};
enum { DEMO_STEPS = 46, REAL_STEPS = 15 };

double demo_curve_at(const struct demo_point *points, size_t n, double step)
{
    step = fmod(step, points[n - 1].step);
    size_t i = 1;
    while (i < n - 1 && step > points[i].step)
        i++;
    const struct demo_point *a = &points[i - 1], *b = &points[i];
    return a->value + (b->value - a->value) * (step - a->step) / (b->step - a->step);
}

static bool has_engine(const struct demo *d)
{
    return *d->engine.name != '\0';
}

static double demand_now(const struct demo *d)
{
    return has_engine(d) ? demo_engine_demand(d) : demo_curve_at(demand_curve, ARRAY_LEN(demand_curve), d->step);
}

/* What a pod's GPU shows: its share of the load; or that a model server is at work, with all its memory taken. */
static double gpu_percent(const struct demo *d, int gpu)
{
    if (gpu >= d->replicas)
        return 0;
    return has_engine(d) ? d->engine.busy_percent[gpu] : fmin(100, d->load / d->replicas);
}

/* The pods share the demand evenly; none can do more than 100 %. The simulated driver reads the file again by itself.
 */
static int write_scenario(struct demo *d, struct err *e)
{
    char temporary[sizeof(d->scenario) + 8];
    (void)snprintf(temporary, sizeof(temporary), "%s.new", d->scenario);
    FILE *file = fopen(temporary, "we");
    if (!file)
        return err_set(e, ERR_UNAVAILABLE, "cannot write %s", temporary);
    (void)fprintf(file, "gpus:\n");
    for (int gpu = 0; gpu < DEMO_GPUS; gpu++)
        (void)fprintf(file, "  - {board: H100, utilization: %.0f, memory_used_mib: %d}\n", gpu_percent(d, gpu),
                      gpu < d->replicas ? 60000 : 600);
    if (fclose(file) != 0 || rename(temporary, d->scenario) != 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot write %s", d->scenario);
    return 0;
}

/* ---- one step: spec, metrics, activity, in KEDA's order; then the HPA's arithmetic ---- */

static void end_demo(struct demo *d)
{
    d->is_over = true;
    net_timer_stop(d->timer);
    (void)kill(getpid(), SIGTERM); /* the agent drains, as it would on a node */
}

/* Scale up at most to max(2 x, 4), as the HPA does in one period; down to the highest proposal of the last few steps:
 * the HPA's stabilization window, shortened. keda.md 8.6 */
static int apply_behaviour(struct demo *d, int64_t desired)
{
    int64_t limit = d->replicas * 2 > 4 ? d->replicas * 2 : 4;
    if (desired > limit)
        desired = limit;
    d->proposals[d->step % DEMO_WINDOW] = desired;
    for (int i = 0; i < DEMO_WINDOW; i++)
        if (d->proposals[i] > desired && d->proposals[i] <= d->replicas)
            desired = d->proposals[i];
    return (int)(desired < 1 ? 1 : desired > DEMO_GPUS ? DEMO_GPUS : desired);
}

static void decide(struct demo *d)
{
    struct scaling_hpa hpa = {.target = d->target, .tolerance_up = 0.1, .tolerance_down = 0.1};
    struct scaling_replicas replicas = {.spec = d->replicas, .status = d->replicas, .ready = d->replicas};
    int64_t desired = scaling_hpa_desired(&hpa, d->value, &replicas);
    int next = apply_behaviour(d, desired);
    double ratio = d->value / (d->target * d->replicas);
    if (fabs(ratio - 1) <= 0.1)
        (void)snprintf(d->why, sizeof(d->why), "%.0f is within 10 %% of %d x %.0f: stays", d->value, d->replicas,
                       d->target);
    else if (next == desired)
        (void)snprintf(d->why, sizeof(d->why), "%.0f / %.0f = %.2f: %d", d->value, d->target, d->value / d->target,
                       next);
    else
        (void)snprintf(d->why, sizeof(d->why), "%.0f / %.0f = %.2f: %" PRId64 ", %s %d", d->value, d->target,
                       d->value / d->target, desired, next > desired ? "held by the window at" : "limited to", next);
    d->next_replicas = next;
}

/* Metadata that is refused stays refused, and a simulation that gives nothing does not begin to. */
static bool is_hopeless(const struct demo *d)
{
    return d->error.class == ERR_INVALID_ARGUMENT ||
           (!d->is_real && d->errors == d->step && d->step + d->n_waits >= DEMO_PATIENCE);
}

/* Before the sampler's first reading, which on a busy machine can take longer than a step: the demo starts with it. */
static bool is_too_early(struct demo *d)
{
    return !d->is_real && d->step == 0 && d->error.class == ERR_UNAVAILABLE && ++d->n_waits < DEMO_PATIENCE;
}

static void finish_step(struct demo *d)
{
    int64_t took_ns = time_mono_ns() - d->asked_ns;
    d->is_asking = false;
    if (d->is_ending || is_too_early(d))
        return;
    d->slowest_ns = took_ns > d->slowest_ns ? took_ns : d->slowest_ns;
    if (d->error.class != ERR_NONE) {
        d->errors++;
        d->next_replicas = d->replicas;
        bool is_long = strlen(d->error.text) > 280;
        (void)snprintf(d->why, sizeof(d->why), "%s: %.280s%s", err_class_name(d->error.class), d->error.text,
                       is_long ? "..." : "");
    } else {
        decide(d);
    }
    demo_show(d);
    if (!d->is_real)
        d->replicas = d->next_replicas;
    d->highest = d->replicas > d->highest ? d->replicas : d->highest;
    d->settled = d->step == DEMO_HIGH_STEPS ? d->replicas : d->settled;
    d->step++;
    if (d->is_unread || is_hopeless(d) || (!d->is_forever && d->step >= (d->is_real ? REAL_STEPS : DEMO_STEPS)))
        end_demo(d);
}

static void ask(struct demo *d, const char *path, const ProtobufCMessage *request, void (*message)(void *, struct str),
                void (*done)(void *, const struct err *))
{
    uint8_t bytes[8192];
    size_t len = protobuf_c_message_get_packed_size(request);
    if (len > sizeof(bytes))
        abort(); /* the metadata was limited when it was read */
    (void)protobuf_c_message_pack(request, bytes);
    struct rpc_client_call_config config = {
        .path = path, .deadline_ns = 5 * NS_PER_S, .message = message, .done = done, .context = d};
    (void)rpc_client_start(d->rpc, &config, bytes, len);
}

static void on_active(void *context, struct str message)
{
    struct demo *d = context;
    Externalscaler__IsActiveResponse *response =
        externalscaler__is_active_response__unpack(NULL, message.len, (const uint8_t *)message.ptr);
    d->is_active = response && response->result;
    if (response)
        externalscaler__is_active_response__free_unpacked(response, NULL);
}

static void on_active_done(void *context, const struct err *status)
{
    struct demo *d = context;
    if (d->error.class == ERR_NONE)
        d->error = *status;
    finish_step(d);
}

static void on_metrics(void *context, struct str message)
{
    struct demo *d = context;
    Externalscaler__GetMetricsResponse *response =
        externalscaler__get_metrics_response__unpack(NULL, message.len, (const uint8_t *)message.ptr);
    if (response && response->n_metricvalues == 1)
        d->value = response->metricvalues[0]->metricvaluefloat;
    else
        (void)err_set(&d->error, ERR_INTERNAL, "GetMetrics did not answer with one value");
    if (response)
        externalscaler__get_metrics_response__free_unpacked(response, NULL);
}

static void on_metrics_done(void *context, const struct err *status)
{
    struct demo *d = context;
    if (d->error.class == ERR_NONE)
        d->error = *status;
    ask(d, "/externalscaler.ExternalScaler/IsActive", &d->ref.base, on_active, on_active_done);
}

static void on_spec(void *context, struct str message)
{
    struct demo *d = context;
    Externalscaler__GetMetricSpecResponse *response =
        externalscaler__get_metric_spec_response__unpack(NULL, message.len, (const uint8_t *)message.ptr);
    if (response && response->n_metricspecs == 1) {
        d->target = response->metricspecs[0]->targetsizefloat;
        (void)str_copy(d->metric, sizeof(d->metric), str_of(response->metricspecs[0]->metricname));
    }
    if (response)
        externalscaler__get_metric_spec_response__free_unpacked(response, NULL);
}

static void on_spec_done(void *context, const struct err *status)
{
    struct demo *d = context;
    d->error = *status;
    if (status->class != ERR_NONE) {
        finish_step(d);
        return;
    }
    Externalscaler__GetMetricsRequest request;
    externalscaler__get_metrics_request__init(&request);
    request.scaledobjectref = &d->ref;
    request.metricname = d->metric;
    ask(d, "/externalscaler.ExternalScaler/GetMetrics", &request.base, on_metrics, on_metrics_done);
}

static void start_asking(struct demo *d)
{
    d->asked_ns = time_mono_ns();
    ask(d, "/externalscaler.ExternalScaler/GetMetricSpec", &d->ref.base, on_spec, on_spec_done);
}

static int simulate(struct demo *d, struct err *e)
{
    d->load = demand_now(d);
    return has_engine(d) && demo_engine_write(d, e) < 0 ? -1 : write_scenario(d, e);
}

static void on_step(void *context)
{
    struct demo *d = context;
    struct err e;
    if (d->is_asking || d->is_over)
        return;
    d->is_asking = true;
    if ((!d->is_real && simulate(d, &e) < 0) || (has_engine(d) && demo_engine_look(d, d->loop, start_asking, &e) < 0)) {
        (void)cli_fail(&e, "");
        d->errors++;
        end_demo(d);
        return;
    }
    if (!has_engine(d))
        start_asking(d);
}

/* ---- start and end ---- */

static void on_end(void *context)
{
    struct demo *d = context;
    d->is_ending = true;
    net_timer_stop(d->timer);
}

static void on_started(void *context, struct net_loop *loop, const char *address)
{
    struct demo *d = context;
    struct err e;
    d->loop = loop;
    (void)str_copy(d->address, sizeof(d->address), str_of(address));
    d->rpc = rpc_client_new(&(struct rpc_client_config){.loop = loop, .address = d->address}, &e);
    if (!d->rpc) {
        (void)cli_fail(&e, "");
        d->errors++;
        end_demo(d);
        return;
    }
    demo_show_start(d);
    d->timer = net_timer_new(loop, on_step, d);
    static const int numbers[] = {SIGINT, SIGTERM};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        d->signals[i] = net_signal_new(loop, numbers[i], on_end, d, &e); /* without it only a count is off by one */
    net_timer_start(d->timer, d->step_ns, d->step_ns);                   /* one step for the first readings */
}

/* Before the loop goes: what the demo made in it. */
static void on_stopping(void *context)
{
    struct demo *d = context;
    d->is_ending = true;
    for (size_t i = 0; i < ARRAY_LEN(d->signals); i++)
        net_signal_free(d->signals[i]);
    net_timer_free(d->timer);
    rpc_client_free(d->rpc);
    demo_engine_leave_loop(d);
    d->timer = NULL;
    d->rpc = NULL;
}

/* Entries that depend on the run. */
struct demo_words {
    char window[32], endpoint[128];
};

/* The demo's own metadata, or what the user gave instead; with an engine also where its page is. */
static size_t list_metadata(struct demo *d, const struct option_set *set, const struct demo_words *own,
                            const char *words[DEMO_ENTRIES_MAX + 1])
{
    size_t n, count = 0;
    char *const *given = option_list(set, "metadata", &n);
    const char *const gpus[] = {"metricType=gpu_utilization", "targetValue=80", "aggregation=sum",
                                "metricName=demo_gpu_utilization", own->window};
    const char *const servers[] = {"metricType=requests_in_flight", "targetValue=6",
                                   "metricName=demo_requests_in_flight", "window=0s"};
    bool has_page = !has_engine(d);
    d->has_own_metadata = n > 0;
    for (; count < n && count < DEMO_ENTRIES_MAX; count++) {
        words[count] = given[count];
        has_page = has_page || str_has_prefix(str_of(given[count]), "vllmEndpoint=") ||
                   str_has_prefix(str_of(given[count]), "tritonEndpoint=");
    }
    for (size_t i = 0; n == 0 && i < (has_engine(d) ? ARRAY_LEN(servers) : ARRAY_LEN(gpus)); i++)
        words[count++] = has_engine(d) ? servers[i] : gpus[i];
    if (!has_page)
        words[count++] = own->endpoint;
    return n > DEMO_ENTRIES_MAX ? n : count;
}

static int fill_metadata(struct demo *d, const struct option_set *set, struct err *e)
{
    struct demo_words own; /* two steps; a step that is shorter than what a window is kept by: the newest reading */
    (void)snprintf(own.window, sizeof(own.window), "window=%lldms",
                   d->step_ns < NS_PER_S ? 0 : 2 * d->step_ns / NS_PER_MS);
    (void)snprintf(own.endpoint, sizeof(own.endpoint), "vllmEndpoint=http://%s/metrics", d->engine.address);
    const char *words[DEMO_ENTRIES_MAX + 1];
    size_t count = list_metadata(d, set, &own, words);
    if (count > DEMO_ENTRIES_MAX)
        return err_set(e, ERR_INVALID_ARGUMENT, "--metadata: at most %d entries", DEMO_ENTRIES_MAX);
    externalscaler__scaled_object_ref__init(&d->ref);
    d->ref.name = d->name;
    d->ref.namespace_ = d->name;
    d->ref.scalermetadata = d->rows;
    for (size_t i = 0; i < count; i++) {
        struct str value = str_of(words[i]), key = str_cut(&value, '=');
        if (!value.ptr || !str_copy(d->keys[i], sizeof(d->keys[i]), key) ||
            !str_copy(d->values[i], sizeof(d->values[i]), value))
            return err_set(e, ERR_INVALID_ARGUMENT, "--metadata \"%s\" is not KEY=VALUE, or is too long", words[i]);
        externalscaler__scaled_object_ref__scaler_metadata_entry__init(&d->entries[i]);
        d->entries[i].key = d->keys[i];
        d->entries[i].value = d->values[i];
        d->rows[i] = &d->entries[i];
    }
    d->ref.n_scalermetadata = count;
    return 0;
}

/* The simulated library beside the program (build tree), or where it was installed. */
static int find_simulation(struct demo *d, const struct option_set *set, struct err *e)
{
    const char *given = option_text(set, "nvml-library");
    if (*given) {
        (void)str_copy(d->library, sizeof(d->library), str_of(given));
        return access(given, R_OK) == 0 ? 0 : err_set_errno(e, ERR_NOT_FOUND, errno, "--nvml-library %s", given);
    }
    char program[512];
    ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
    struct str folder = {program, len > 0 ? (size_t)len : 0};
    while (folder.len && folder.ptr[folder.len - 1] != '/')
        folder.len--;
    (void)snprintf(d->library, sizeof(d->library), "%.*snvmlsim/libnvidia-ml.so.1", (int)folder.len, folder.ptr);
    if (access(d->library, R_OK) == 0)
        return 0;
    (void)snprintf(d->library, sizeof(d->library), "%s/libnvidia-ml.so.1", CLI_NVMLSIM_DIR);
    if (access(d->library, R_OK) == 0)
        return 0;
    return err_set(e, ERR_NOT_FOUND,
                   "the simulated libnvidia-ml.so.1 is neither beside the program nor in %s; give its "
                   "path with --nvml-library, or use --real",
                   CLI_NVMLSIM_DIR);
}

static int start_simulation(struct demo *d, const struct option_set *set, struct err *e)
{
    const char *base = getenv("TMPDIR");
    if (find_simulation(d, set, e) < 0)
        return -1;
    (void)snprintf(d->folder, sizeof(d->folder), "%s/keda-gpu-scaler-demo.XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(d->folder)) {
        *d->folder = '\0';
        return err_set(e, ERR_UNAVAILABLE, "cannot make a folder for the scenario under %s",
                       base && *base ? base : "/tmp");
    }
    (void)snprintf(d->scenario, sizeof(d->scenario), "%s/scenario.yaml", d->folder);
    d->load = demand_now(d);
    if (write_scenario(d, e) < 0 || (has_engine(d) && demo_engine_start(d, e) < 0))
        return -1;
    return setenv("NVMLSIM_SCENARIO", d->scenario, 1) == 0 ? 0 : err_set(e, ERR_INTERNAL, "setenv failed");
}

static void remove_simulation(struct demo *d)
{
    demo_engine_stop(d);
    if (*d->scenario)
        (void)unlink(d->scenario);
    if (*d->folder)
        (void)rmdir(d->folder);
}

static int run_agent(struct demo *d, const struct option_set *set)
{
    struct agent_config config = {
        .daemon = {.listen = {option_text(set, "listen")},
                   .n_listen = 1,
                   .limits = net_limits_default,
                   .node_name = "demo",
                   .drain_ns = 2 * NS_PER_S,
                   .version = CLI_VERSION,
                   .build = cli_compiler()},
        .has_reflection = true,
        .has_dcgm_metrics = true,
        .gpu = {.library_path = *d->library ? d->library : NULL, .period_ns = d->step_ns / 4},
        .started = on_started,
        .stopping = on_stopping,
        .started_context = d,
    };
    (void)log_parse_level(option_text(set, "log-level"), &config.daemon.reloadable.log_level);
    return agent_run(&config);
}

static int run_demo(struct option_set *set)
{
    struct err e;
    struct demo *d = mem_new(struct demo);
    *d = (struct demo){.is_real = option_bool(set, "real"),
                       .is_forever = option_bool(set, "forever"),
                       .step_ns = option_duration(set, "step"),
                       .replicas = 1,
                       .highest = 1,
                       .name = "demo",
                       .engine = {.name = option_text(set, "engine")}};
    int rc = 0;
    if (!strcmp(d->engine.name, "none"))
        d->engine.name = "";
    if (d->is_real)
        (void)str_copy(d->library, sizeof(d->library), str_of(option_text(set, "nvml-library")));
    if (d->is_real && has_engine(d)) {
        (void)err_set(&e, ERR_INVALID_ARGUMENT, "--real and --engine exclude each other");
        rc = cli_fail(&e, "");
    } else if ((!d->is_real && start_simulation(d, set, &e) < 0) || fill_metadata(d, set, &e) < 0)
        rc = cli_fail(&e, "");
    else
        rc = run_agent(d, set);
    remove_simulation(d);
    if (rc == 0)
        rc = demo_verdict(d);
    free(d);
    return rc;
}

const struct command command_demo = {
    .name = "demo",
    .summary = "Watch simulated GPUs being scaled: agent, KEDA's questions, HPA's arithmetic",
    .usage = "[flags]",
    .details =
        "Starts eight simulated GPUs (one pod each), the agent, a workload whose load rises and falls, and a loop "
        "that\n"
        "asks over gRPC what KEDA asks and computes what the HPA computes. Ends by itself with a verdict.\n"
        "With --engine the workload is simulated model servers, and their page scales them: requests waiting and\n"
        "running, while their GPUs show 100 % with one request as with many.\n\n"
        "Exit status: 0 if the replicas followed the load and every step had a value, 1 if not, 2 wrong usage, 130\n"
        "after an interrupt.",
    .options = demo_options,
    .n_options = ARRAY_LEN(demo_options),
    .run = run_demo,
};
