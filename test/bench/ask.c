/* ask PORT FILE SECONDS GAP_US: one client that asks GetMetrics over one connection, one question at a time, in turn
 * each request of FILE (four bytes of length, then the message), and prints how long the answers took, one "name value"
 * a line. GAP_US 0: the next question follows the answer. Else questions are due at random times, GAP_US apart on
 * average; one that is due while another one waits counts from when it was due, so that a server that stands still is
 * seen by all that come. */
#include "base/base.h"
#include "net/net.h"
#include "rpc/rpc.h"

#include <stdio.h>
#include <string.h>

enum { DEADLINE_S = 10, FILE_BYTES_MAX = 64 << 20 };

struct ask {
    struct net_loop *loop;
    struct rpc_client *client;
    struct net_timer *timer;
    char *file;
    size_t file_len, at;
    int64_t gap_ns, end_ns, due_ns, from_ns;
    size_t n_errors;
    VEC(double) us;
    char error[256];
};

static void send_next(struct ask *a);

/* ---- when ---- */

static void plan(struct ask *a)
{
    int64_t now_ns = time_mono_ns();
    if (now_ns >= a->end_ns) {
        net_loop_stop(a->loop);
        return;
    }
    if (a->gap_ns == 0) {
        a->from_ns = now_ns;
        send_next(a);
        return;
    }
    a->due_ns += (int64_t)(2 * net_random(a->loop) * (double)a->gap_ns);
    a->from_ns = a->due_ns;
    if (a->due_ns <= now_ns)
        send_next(a);
    else
        net_timer_start(a->timer, a->due_ns - now_ns, 0);
}

/* Nothing waited: how late this client wakes up is not the server's. */
static void on_due(void *context)
{
    struct ask *a = context;
    a->from_ns = time_mono_ns();
    send_next(a);
}

/* ---- questions ---- */

static void on_message(void *context, struct str message)
{
    (void)context;
    (void)message;
}

static void on_done(void *context, const struct err *status)
{
    struct ask *a = context;
    double us = (double)(time_mono_ns() - a->from_ns) / 1e3;
    vec_push(&a->us, us);
    if (status->class != ERR_NONE) {
        a->n_errors++;
        (void)str_copy(a->error, sizeof(a->error), str_of(status->text));
    }
    plan(a);
}

static void send_next(struct ask *a)
{
    if (a->at >= a->file_len)
        a->at = 0;
    const unsigned char *head = (const unsigned char *)&a->file[a->at];
    size_t len = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
    const char *message = &a->file[a->at + 4];
    a->at += 4 + len;
    (void)rpc_client_start(a->client,
                           &(struct rpc_client_call_config){.path = "/externalscaler.ExternalScaler/GetMetrics",
                                                            .deadline_ns = DEADLINE_S * NS_PER_S,
                                                            .message = on_message,
                                                            .done = on_done,
                                                            .context = a},
                           message, len);
}

/* ---- all of them ---- */

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void report(struct ask *a)
{
    static const struct {
        const char *name;
        double part;
    } rows[] = {{"p50_us", 0.5}, {"p90_us", 0.9}, {"p99_us", 0.99}, {"p999_us", 0.999}, {"max_us", 1}};
    qsort(a->us.items, a->us.len, sizeof(*a->us.items), compare);
    printf("answers %zu\nerrors %zu\n", a->us.len, a->n_errors);
    for (size_t i = 0; i < ARRAY_LEN(rows) && a->us.len > 0; i++) {
        size_t at = (size_t)((double)a->us.len * rows[i].part);
        printf("%s %.1f\n", rows[i].name, a->us.items[at < a->us.len ? at : a->us.len - 1]);
    }
    if (a->n_errors)
        (void)fprintf(stderr, "ask: the last error: %s\n", a->error);
}

static int read_whole(const char *path, struct ask *a)
{
    FILE *file = fopen(path, "re");
    a->file = (char *)mem_new_array(FILE_BYTES_MAX, 1);
    if (!file)
        return -1;
    a->file_len = fread(a->file, 1, FILE_BYTES_MAX, file);
    (void)fclose(file);
    return a->file_len > 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
    struct ask a = {.file = NULL};
    struct err e;
    int64_t port, gap_us;
    double seconds;
    if (argc != 5 || num_parse_i64(str_of(argv[1]), &port) < 0 || num_parse_double(str_of(argv[3]), &seconds) < 0 ||
        num_parse_i64(str_of(argv[4]), &gap_us) < 0 || read_whole(argv[2], &a) < 0) {
        (void)fprintf(stderr, "usage: ask PORT FILE SECONDS GAP_US\n");
        return 2;
    }
    char address[32];
    (void)snprintf(address, sizeof(address), "127.0.0.1:%d", (int)port);
    a.loop = net_loop_new(NULL, &e);
    a.client = a.loop ? rpc_client_new(&(struct rpc_client_config){.loop = a.loop, .address = address}, &e) : NULL;
    if (!a.client) {
        (void)fprintf(stderr, "ask: %s\n", e.text);
        return 1;
    }
    a.timer = net_timer_new(a.loop, on_due, &a);
    a.gap_ns = gap_us * 1000;
    a.due_ns = time_mono_ns();
    a.end_ns = a.due_ns + (int64_t)(seconds * 1e9);
    plan(&a);
    net_loop_run(a.loop);
    report(&a);
    rpc_client_free(a.client);
    net_timer_free(a.timer);
    net_loop_free(a.loop);
    vec_fini(&a.us);
    free(a.file);
    return 0;
}
