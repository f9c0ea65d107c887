/* fleet_bench AGENTS PORT SECONDS [CERT KEY CA]: the hub's side of the fleet alone, against `crowd` on that port of the
 * loopback addresses. Waits until all agents are up, lets a few seconds pass, and prints what the figures of
 * test/bench/run are made of, one "name value" a line. */
#include "self.h"

#include "base/base.h"
#include "fleet/fleet.h"
#include "net/net.h"

#include <stdio.h>
#include <string.h>

enum { SETTLE_S = 4, ADDRESS_MAX = 32, PATIENCE_S = 180, ROUNDS = 2, AGAIN_MAX = 2000 };

struct bench {
    struct net_loop *loop;
    struct metrics *metrics;
    struct fleet *fleet;
    size_t n, n_updates;
    double idle_kb;
};

static void on_changed(void *context, const struct fleet_node *node)
{
    (void)node;
    ((struct bench *)context)->n_updates++;
}

static void stop(void *context)
{
    net_loop_stop((struct net_loop *)context);
}

static void run_for(struct bench *b, int64_t ns)
{
    struct net_timer *timer = net_timer_new(b->loop, stop, b->loop);
    net_timer_start(timer, ns, 0);
    net_loop_run(b->loop);
    net_timer_free(timer);
}

static size_t n_up(const struct bench *b)
{
    size_t n, up = 0;
    const struct fleet_node *const *nodes = fleet_nodes(b->fleet, &n);
    for (size_t i = 0; i < n; i++)
        up += nodes[i]->state == FLEET_NODE_UP;
    return up;
}

/* 127.x.y.z: an address for each. */
static void name_agents(struct fleet_agent *agents, char (*addresses)[ADDRESS_MAX], size_t n, int port)
{
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(addresses[i], ADDRESS_MAX, "127.1.%zu.%zu:%d", i / 250, i % 250 + 1, port);
        agents[i] = (struct fleet_agent){.node = "", .address = addresses[i]};
    }
}

static int wait_until_up(struct bench *b)
{
    for (int i = 0; i < PATIENCE_S * 5 && n_up(b) < b->n; i++)
        run_for(b, NS_PER_S / 5);
    if (n_up(b) == b->n)
        return 0;
    (void)fprintf(stderr, "fleet_bench: %zu of %zu agents are up\n", n_up(b), b->n);
    size_t n;
    const struct fleet_node *const *nodes = fleet_nodes(b->fleet, &n);
    for (size_t i = 0, told = 0; i < n && told < 3; i++)
        if (nodes[i]->state != FLEET_NODE_UP && ++told)
            (void)fprintf(stderr, "%s: %s\n", nodes[i]->address, nodes[i]->text);
    return -1;
}

static int measure(struct bench *b, double seconds)
{
    double cpu = cpu_s();
    int64_t from_ns = time_mono_ns();
    if (wait_until_up(b) < 0)
        return -1;
    printf("open_s %.2f\nopen_cpu_s %.2f\n", (double)(time_mono_ns() - from_ns) / 1e9, cpu_s() - cpu);
    run_for(b, SETTLE_S * NS_PER_S);
    cpu = cpu_s();
    from_ns = time_mono_ns();
    b->n_updates = 0;
    run_for(b, (int64_t)(seconds * 1e9));
    double wall = (double)(time_mono_ns() - from_ns) / 1e9;
    cpu = cpu_s() - cpu;
    printf("cpu_percent %.3f\n", cpu / wall * 100);
    printf("updates_per_s %.1f\nus_per_update %.2f\n", (double)b->n_updates / wall, cpu * 1e6 / (double)b->n_updates);
    printf("kb_per_agent %.2f\n", (private_kb() - b->idle_kb) / (double)b->n);
    return 0;
}

/* The same agents on new connections, some times over: what is left in the heap by then stays. */
static int measure_again(struct bench *b, const struct fleet_agent *agents)
{
    for (int i = 0; i < ROUNDS; i++) {
        fleet_set_agents(b->fleet, NULL, 0);
        run_for(b, NS_PER_S / 2);
        fleet_set_agents(b->fleet, agents, b->n);
        if (wait_until_up(b) < 0)
            return -1;
    }
    run_for(b, SETTLE_S * NS_PER_S);
    printf("kb_per_agent_again %.2f\n", (private_kb() - b->idle_kb) / (double)b->n);
    return 0;
}

static int bench(struct bench *b, int port, double seconds, struct net_tls *tls)
{
    struct fleet_agent *agents = (struct fleet_agent *)mem_new_array(b->n, sizeof(*agents));
    char(*addresses)[ADDRESS_MAX] = (char(*)[ADDRESS_MAX])mem_new_array(b->n, ADDRESS_MAX);
    name_agents(agents, addresses, b->n, port);
    b->fleet = fleet_new(&(struct fleet_config){.loop = b->loop,
                                                .metrics = b->metrics,
                                                .tls = tls,
                                                .server_name = tls ? "localhost" : NULL,
                                                .hub = "bench",
                                                .changed = on_changed,
                                                .context = b});
    (void)fleet_want(b->fleet, &(struct fleet_want){SNAPSHOT_UTILIZATION, 15 * NS_PER_S, 60 * NS_PER_S});
    (void)fleet_want(b->fleet, &(struct fleet_want){SNAPSHOT_MEMORY_USED, 15 * NS_PER_S, 60 * NS_PER_S});
    b->idle_kb = private_kb();
    fleet_set_agents(b->fleet, agents, b->n);
    int rv = measure(b, seconds);
    if (rv == 0 && b->n <= AGAIN_MAX)
        rv = measure_again(b, agents);
    fleet_free(b->fleet);
    free(agents);
    free(addresses);
    return rv;
}

int main(int argc, char **argv)
{
    struct rlimit limit;
    struct err e;
    int64_t n, port, seconds;
    if ((argc != 4 && argc != 7) || num_parse_i64(str_of(argv[1]), &n) < 0 || n < 1 || n > 60000 ||
        num_parse_i64(str_of(argv[2]), &port) < 0 || num_parse_i64(str_of(argv[3]), &seconds) < 0) {
        (void)fprintf(stderr, "usage: fleet_bench AGENTS PORT SECONDS [CERT KEY CA]\n");
        return 2;
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    struct bench b = {.metrics = metrics_new(), .n = (size_t)n};
    b.loop = net_loop_new(b.metrics, &e);
    struct net_tls *tls = NULL;
    if (b.loop && argc == 7)
        tls = net_tls_client_new(b.loop, &(struct net_tls_files){.cert = argv[4], .key = argv[5], .ca = argv[6]}, &e);
    if (!b.loop || (argc == 7 && !tls)) {
        (void)fprintf(stderr, "fleet_bench: %s\n", e.text);
        return 1;
    }
    int rv = bench(&b, (int)port, (double)seconds, tls);
    net_tls_free(tls);
    net_loop_free(b.loop);
    metrics_free(b.metrics);
    return rv < 0;
}
