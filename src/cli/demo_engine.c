/* The demo's model servers: a simulated engine's page in a process of its own, with one rank for each replica, as a
 * router's page over all replicas shows them. It owns that process, its scenario, and what is shown of it beside the
 * agent's value. */
#include "cli/demo.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A request takes two steps in a batch of eight places, so a replica can end four a step. */
enum { STEPS_PER_REQUEST = 2, KV_PERCENT = 10, READY_MS = 10000 };

static const struct {
    const char *name, *played; /* of --engine; of the scenario */
} engines[] = {
    {"vllm", "vllm"},
    {"sglang", "sglang"},
    {"tgi", "tgi"},
    {"triton", "triton-tensorrtllm"},
};

/* Demand in requests a step: what one replica does at its target is three a step, so 15 want five. */
static const struct demo_point demand_curve[] = {{0, 1.5},  {4, 1.5}, {10, 15}, {DEMO_HIGH_STEPS, 15},
                                                 {32, 1.5}, {46, 1.5}};

double demo_engine_demand(const struct demo *d)
{
    double a_step = demo_curve_at(demand_curve, ARRAY_LEN(demand_curve), d->step);
    return a_step * (double)NS_PER_S / (double)d->step_ns;
}

/* ---- its scenario ---- */

int demo_engine_write(const struct demo *d, struct err *e)
{
    const struct demo_engine *engine = &d->engine;
    char temporary[sizeof(engine->scenario) + 8];
    double step_s = (double)d->step_ns / (double)NS_PER_S;
    (void)snprintf(temporary, sizeof(temporary), "%s.new", engine->scenario);
    FILE *file = fopen(temporary, "we");
    if (!file)
        return err_set(e, ERR_UNAVAILABLE, "cannot write %s", temporary);
    (void)fprintf(file,
                  "servers:\n  - {engine: %s, listen: \"127.0.0.1:0\", model: demo, ranks: %d, arrivals: %.3f, "
                  "service_rate: %.3f, slots: %d, kv_per_request_percent: %d}\n",
                  engine->played, d->replicas, d->load, DEMO_SLOTS / (STEPS_PER_REQUEST * step_s), DEMO_SLOTS,
                  KV_PERCENT);
    if (fclose(file) != 0 || rename(temporary, engine->scenario) != 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot write %s", engine->scenario);
    return 0;
}

/* ---- its process ---- */

/* Beside this program, in the build tree's folder for it, or where programs are installed. */
static int find_program(char path[600], struct err *e)
{
    static const char *const places[] = {"keda-gpu-scaler-enginesim", "enginesim/keda-gpu-scaler-enginesim"};
    char program[512];
    ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
    struct str folder = {program, len > 0 ? (size_t)len : 0};
    while (folder.len && folder.ptr[folder.len - 1] != '/')
        folder.len--;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        (void)snprintf(path, 600, "%.*s%s", (int)folder.len, folder.ptr, places[i]);
        if (access(path, X_OK) == 0)
            return 0;
    }
    return err_set(e, ERR_NOT_FOUND, "the simulated engine keda-gpu-scaler-enginesim is not beside the program");
}

/* It ends when its standard input does, so also when this program is killed. */
static int spawn(struct demo_engine *engine, int *ret_output, struct err *e)
{
    char program[600];
    int in[2], out[2];
    if (find_program(program, e) < 0)
        return -1;
    if (pipe2(in, O_CLOEXEC) < 0)
        return err_set_errno(e, ERR_UNAVAILABLE, errno, "pipe");
    if (pipe2(out, O_CLOEXEC) < 0) {
        (void)close(in[0]);
        (void)close(in[1]);
        return err_set_errno(e, ERR_UNAVAILABLE, errno, "pipe");
    }
    posix_spawn_file_actions_t actions;
    char flag[] = "--with-parent";
    char *const argv[] = {program, flag, engine->scenario, NULL};
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    int rc = posix_spawn(&engine->child, program, &actions, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(in[0]);
    (void)close(out[1]);
    engine->input = in[1];
    *ret_output = out[0];
    if (rc != 0)
        engine->child = 0;
    return rc == 0 ? 0 : err_set_errno(e, ERR_UNAVAILABLE, rc, "%s", program);
}

/* "127.0.0.1:41234 vllm /metrics", then "ready". */
static int read_address(struct demo_engine *engine, int output, struct err *e)
{
    char text[512];
    size_t len = 0;
    int64_t deadline_ns = time_mono_ns() + READY_MS * NS_PER_MS;
    for (;;) {
        struct pollfd wait = {.fd = output, .events = POLLIN};
        int64_t left_ms = (deadline_ns - time_mono_ns()) / NS_PER_MS;
        if (left_ms <= 0 || poll(&wait, 1, (int)left_ms) <= 0)
            break;
        ssize_t n = read(output, text + len, sizeof(text) - 1 - len);
        if (n <= 0)
            break;
        len += (size_t)n;
        text[len] = '\0';
        if (!strstr(text, "ready\n"))
            continue;
        struct str rest = str_of(text);
        (void)str_copy(engine->address, sizeof(engine->address), str_cut(&rest, ' '));
        return 0;
    }
    return err_set(e, ERR_UNAVAILABLE, "the simulated engine did not start");
}

int demo_engine_start(struct demo *d, struct err *e)
{
    struct demo_engine *engine = &d->engine;
    int output = -1;
    for (size_t i = 0; i < ARRAY_LEN(engines); i++)
        if (!strcmp(engines[i].name, engine->name))
            engine->played = engines[i].played;
    buf_init(&engine->state, 65536);
    (void)snprintf(engine->scenario, sizeof(engine->scenario), "%s/engine.yaml", d->folder);
    if (demo_engine_write(d, e) < 0 || spawn(engine, &output, e) < 0)
        return -1;
    int rc = read_address(engine, output, e);
    (void)close(output);
    return rc;
}

void demo_engine_stop(struct demo *d)
{
    struct demo_engine *engine = &d->engine;
    if (engine->input > 0)
        (void)close(engine->input);
    if (engine->child > 0) {
        (void)kill(engine->child, SIGTERM);
        (void)waitpid(engine->child, NULL, 0);
    }
    if (*engine->scenario)
        (void)unlink(engine->scenario);
    buf_fini(&engine->state);
}

/* ---- what it does, for those who watch ---- */

/* The number behind the n-th "key": from 0; of its state, the first is the sum, then come the ranks. 0 without one. */
static double number_of(const char *text, const char *key, int n)
{
    char quoted[48];
    double value = 0;
    (void)snprintf(quoted, sizeof(quoted), "\"%s\":", key);
    const char *at = strstr(text, quoted);
    for (; at && n > 0; n--)
        at = strstr(at + 1, quoted);
    if (!at)
        return 0;
    at += strlen(quoted);
    return num_parse_double((struct str){at, strspn(at, "-+.0123456789eE")}, &value) == 0 ? value : 0;
}

static void read_state(struct demo_engine *engine)
{
    const char *text = buf_cstr(&engine->state);
    engine->waiting = number_of(text, "waiting", 0);
    engine->running = number_of(text, "running", 0);
    engine->kv_percent = number_of(text, "kv_percent", 0);
    for (int i = 0; i < DEMO_GPUS; i++) {
        engine->busy_percent[i] = number_of(text, "busy_percent", 1 + i);
        engine->batch_percent[i] = 100 * number_of(text, "running", 1 + i) / DEMO_SLOTS;
    }
}

static int on_body(void *context, const char *bytes, size_t len)
{
    struct demo *d = context;
    return buf_append(&d->engine.state, bytes, len);
}

static void on_done(void *context, const struct err *error)
{
    struct demo *d = context;
    d->engine.fetch = NULL;
    if (!error)
        read_state(&d->engine);
    d->engine.then(d);
}

int demo_engine_look(struct demo *d, struct net_loop *loop, void (*then)(struct demo *d), struct err *e)
{
    struct demo_engine *engine = &d->engine;
    char url[160];
    if (!engine->http && !(engine->http = http_client_new(loop, e)))
        return -1;
    (void)snprintf(url, sizeof(url), "http://%s/state", engine->address);
    buf_reset(&engine->state);
    engine->then = then;
    engine->fetch = http_fetch_start(
        engine->http, &(struct http_fetch_config){
                          .url = url, .timeout_ns = 2 * NS_PER_S, .body = on_body, .done = on_done, .context = d});
    return 0;
}

void demo_engine_leave_loop(struct demo *d)
{
    http_client_free(d->engine.http); /* ends the fetch */
    d->engine.http = NULL;
    d->engine.fetch = NULL;
}
