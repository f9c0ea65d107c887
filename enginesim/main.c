/* keda-gpu-scaler-enginesim: simulated model servers from a scenario file, until it is told to stop. */
#include "enginesim/host.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const char usage[] =
    "Usage: keda-gpu-scaler-enginesim [--with-parent] SCENARIO.yaml\n"
    "Plays the /metrics pages of model servers (vLLM, SGLang, TGI, Triton, TensorRT-LLM, llama.cpp) from a scenario\n"
    "file, which is read again when it changes. Prints one line a server, then \"ready\"; ends on SIGINT or SIGTERM,\n"
    "with --with-parent also when standard input ends.\n"
    "The format: docs/enginesim.md.\n";

static void on_signal(void *context)
{
    net_loop_stop((struct net_loop *)context);
}

/* Standard input: whoever started it is gone when it ends. */
static void on_input(void *context, bool is_readable, bool is_writable)
{
    char bytes[256];
    (void)is_readable;
    (void)is_writable;
    if (read(STDIN_FILENO, bytes, sizeof(bytes)) <= 0)
        net_loop_stop((struct net_loop *)context);
}

/* Hundreds of servers have a socket each, and one for each that asks. */
static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int fail(const struct err *e)
{
    (void)fprintf(stderr, "enginesim: %s\n", e->text);
    return err_exit_code(e->class);
}

static void announce(const struct host *host)
{
    BUF_AUTO struct buf text;
    buf_init(&text, 1 << 20);
    host_describe(host, &text);
    (void)fprintf(stdout, "%sready\n", buf_cstr(&text));
    (void)fflush(stdout);
}

static int run(struct net_loop *loop, struct metrics *metrics, const char *path, bool is_with_parent)
{
    static const int numbers[] = {SIGINT, SIGTERM};
    struct net_signal *signals[ARRAY_LEN(numbers)] = {NULL};
    struct err e = {0};
    struct host *host = host_new(loop, metrics, path, &e);
    bool is_fine = host != NULL;
    for (size_t i = 0; i < ARRAY_LEN(numbers) && is_fine; i++) {
        signals[i] = net_signal_new(loop, numbers[i], on_signal, loop, &e);
        is_fine = signals[i] != NULL;
    }
    struct net_poll *input = is_fine && is_with_parent ? net_poll_new(loop, STDIN_FILENO, on_input, loop, &e) : NULL;
    is_fine = is_fine && (input || !is_with_parent);
    if (input)
        net_poll_want(input, true, false);
    if (is_fine) {
        announce(host);
        net_loop_run(loop);
    }
    net_poll_free(input);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        net_signal_free(signals[i]);
    host_free(host);
    return is_fine ? 0 : fail(&e);
}

int main(int argc, char **argv)
{
    struct err e = {0};
    if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
        (void)fputs(usage, stdout);
        return 0;
    }
    bool is_with_parent = argc == 3 && !strcmp(argv[1], "--with-parent");
    const char *path = argv[argc - 1];
    if (argc != (is_with_parent ? 3 : 2) || path[0] == '-') {
        (void)fputs(usage, stderr);
        return 2;
    }
    raise_file_limit();
    struct metrics *metrics = metrics_new();
    struct net_loop *loop = net_loop_new(metrics, &e);
    int rc = loop ? run(loop, metrics, path, is_with_parent) : fail(&e);
    net_loop_free(loop);
    metrics_free(metrics);
    return rc;
}
