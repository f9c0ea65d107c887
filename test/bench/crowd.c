/* crowd ADDRESS [CERT KEY CA]: one process that answers Fleet.Watch as any number of agents would, each with eight
 * GPUs and a pod on each of them, once a second with readings that all have moved. Every call is an agent of its own:
 * the node's name is the number of the call.
 * crowd PORT FIRST COUNT WORKLOADS: agents FIRST to FIRST + COUNT - 1 of a fleet, each at that port of an address of
 * its own (127.1.x.y); all eighths of the fleet together are the pods of so many workloads, named as bench_kube.py
 * names them. It is the load of fleet_bench and of a hub, and no part of the program. */
#include "base/base.h"
#include "net/net.h"
#include "proto/proto.h"
#include "rpc/rpc.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum { GPUS = 8, WANTS_MAX = 64, MINUTES = 30, SLICES_MAX = 1000, TEAMS = 50, MESSAGE_BYTES_MAX = 1 << 16 };

typedef Kedagpuscaler__Fleet__V1__WatchUpdate update_message;
typedef Kedagpuscaler__Fleet__V1__Readings readings_message;
typedef Kedagpuscaler__Fleet__V1__Reading reading_message;
typedef Kedagpuscaler__Fleet__V1__WatchRequest request_message;

struct agent {
    struct agent *next, *prev; /* of its slice */
    struct rpc_call *call;
    uint64_t sequence;
    size_t number, n_wants, slice;
};

/* An agent with an address of its own. */
struct stand {
    struct rpc_method method;
    struct rpc_server *server;
    struct net_listener *listener;
    size_t number;
};

struct crowd {
    struct net_loop *loop;
    struct metrics *metrics;
    size_t n_workloads;              /* that the pods belong to; 0 none */
    struct agent slices[SLICES_MAX]; /* heads of rings: each is told in its part of the second */
    size_t n_agents, n_calls, slice, n_slices;
    struct buf message;
    size_t n_sent, n_refused;
};

static struct crowd crowd;

/* ---- messages ---- */

struct rows {
    readings_message readings[GPUS], *list[GPUS];
    reading_message of[GPUS][WANTS_MAX], *of_list[GPUS][WANTS_MAX];
};

/* Readings of all GPUs that depend on the time: none is what it was a second before. Those of a workload are spread, so
 * that its mean stays about where it is. */
static void fill_rows(struct rows *rows, const struct agent *a, int64_t now_ns)
{
    size_t n_wants = a->n_wants;
    double now_s = (double)now_ns / (double)NS_PER_S;
    for (size_t i = 0; i < GPUS; i++) {
        readings_message *m = rows->list[i] = &rows->readings[i];
        int64_t place = crowd.n_workloads ? (int64_t)((a->number * GPUS + i) / crowd.n_workloads) * 3 : (int64_t)i * 11;
        kedagpuscaler__fleet__v1__readings__init(m);
        m->id = (uint32_t)i + 1;
        m->n_readings = n_wants;
        m->readings = rows->of_list[i];
        for (size_t k = 0; k < n_wants; k++) {
            reading_message *r = rows->of_list[i][k] = &rows->of[i][k];
            kedagpuscaler__fleet__v1__reading__init(r);
            r->want = (uint32_t)k;
            r->mean = 50 + (double)((now_ns / NS_PER_S * 7 + place) % 50);
            r->peak = r->mean + 1.5;
            r->integral = now_s * 61.25;
            r->valid_s = now_s;
            r->age_ms = 40;
        }
    }
}

static void pack(const update_message *m)
{
    buf_reset(&crowd.message);
    char *to = buf_reserve(&crowd.message, kedagpuscaler__fleet__v1__watch_update__get_packed_size(m));
    if (to)
        buf_advance(&crowd.message, kedagpuscaler__fleet__v1__watch_update__pack(m, (uint8_t *)to));
}

static void send_update(struct agent *a, update_message *m)
{
    int64_t now_ns = time_mono_ns();
    m->sequence = ++a->sequence;
    m->age_ms = 15;
    m->sent_ms = (uint64_t)(now_ns / NS_PER_MS);
    pack(m);
    crowd.n_sent++;
    if (rpc_call_send(a->call, crowd.message.data, crowd.message.len) < 0)
        crowd.n_refused++;
}

static void tell_change(struct agent *a)
{
    static struct rows rows;
    update_message m;
    kedagpuscaler__fleet__v1__watch_update__init(&m);
    fill_rows(&rows, a, time_mono_ns());
    m.n_device_readings = GPUS;
    m.device_readings = rows.list;
    send_update(a, &m);
}

static char *text_of(char *out, size_t size, const char *format, size_t number, size_t i)
{
    char head[32];
    (void)str_copy(head, sizeof(head), str_of(format));
    (void)snprintf(out, size, "%s-%05zu-%zu", head, number, i);
    return out;
}

/* The pod on a GPU: of a workload, or of none that is known. */
static void name_pod(Kedagpuscaler__Fleet__V1__Holder *h, char (*texts)[64], size_t number, size_t i)
{
    static char ns[] = "inference";
    size_t pod = number * GPUS + i;
    h->namespace_ = ns;
    h->pod = text_of(texts[1], sizeof(texts[1]), "llama-server-7d9c5b6f4", number, i);
    h->pod_uid = text_of(texts[2], sizeof(texts[2]), "9b1deb4d-3b7d-4bad-9bdd-2b", number, i);
    if (!crowd.n_workloads)
        return;
    size_t workload = pod % crowd.n_workloads;
    h->pod = text_of(texts[1], sizeof(texts[1]), "llama", workload, pod / crowd.n_workloads);
    h->namespace_ = texts[3];
    (void)snprintf(texts[3], sizeof(texts[3]), "team-%zu", workload % TEAMS);
}

static void tell_all(struct agent *a)
{
    static struct rows rows;
    static char texts[GPUS][4][64], name[64], empty[1], product[] = "NVIDIA H100 80GB HBM3";
    static char version[] = "1.0.0", driver_version[] = "550.54.15", state[] = "ok", uid[] = "off";
    static uint32_t limits[WANTS_MAX];
    static float low[MINUTES], high[MINUTES];
    Kedagpuscaler__Fleet__V1__Node node;
    Kedagpuscaler__Fleet__V1__Device devices[GPUS], *device_list[GPUS];
    Kedagpuscaler__Fleet__V1__Holder holders[GPUS], *holder_list[GPUS];
    update_message m;
    kedagpuscaler__fleet__v1__node__init(&node);
    kedagpuscaler__fleet__v1__watch_update__init(&m);
    for (size_t i = 0; i < WANTS_MAX; i++)
        limits[i] = 5000;
    for (size_t i = 0; i < MINUTES; i++) {
        low[i] = 40;
        high[i] = 60;
    }
    node.name = text_of(name, sizeof(name), "node", a->number, 0);
    node.version = version;
    node.driver = node.owners = state;
    node.driver_version = driver_version;
    node.sight = uid;
    node.driver_text = node.owners_text = node.sight_text = empty;
    node.instance = a->number + 1;
    node.period_ms = 1000;
    node.n_age_limits_ms = a->n_wants;
    node.age_limits_ms = limits;
    for (size_t i = 0; i < GPUS; i++) {
        Kedagpuscaler__Fleet__V1__Device *d = device_list[i] = &devices[i];
        Kedagpuscaler__Fleet__V1__Holder *h = holder_list[i] = &holders[i];
        kedagpuscaler__fleet__v1__device__init(d);
        kedagpuscaler__fleet__v1__holder__init(h);
        d->id = (uint32_t)i + 1;
        d->uuid = text_of(texts[i][0], sizeof(texts[i][0]), "GPU-3a1f0c52-77de-4a64-9d8e-11", a->number, i);
        d->parent_uuid = d->mig_profile = d->lost_reason = empty;
        d->product = product;
        d->index = (uint32_t)i;
        d->gpu_instance = -1;
        d->memory_total = UINT64_C(85520809984);
        h->id = (uint32_t)(100 + i);
        h->device = d->id;
        name_pod(h, texts[i], a->number, i);
        h->is_listed = true;
        h->shares = 1;
        h->processes = 1;
        h->held_ms = 3600000;
        h->n_memory_low = h->n_memory_high = MINUTES;
        h->memory_low = low;
        h->memory_high = high;
        h->minute = 1000;
    }
    fill_rows(&rows, a, time_mono_ns());
    m.is_full = true;
    m.node = &node;
    m.n_devices = m.n_holders = m.n_device_readings = GPUS;
    m.devices = device_list;
    m.holders = holder_list;
    m.device_readings = rows.list;
    send_update(a, &m);
}

/* ---- calls ---- */

static void on_watch(struct rpc_call *call, struct str request, void *context)
{
    const struct stand *stand = context;
    request_message *m =
        kedagpuscaler__fleet__v1__watch_request__unpack(NULL, request.len, (const uint8_t *)request.ptr);
    struct agent *a = mem_new(struct agent);
    a->call = call;
    a->number = stand ? stand->number : crowd.n_calls++;
    a->slice = a->number % crowd.n_slices;
    a->n_wants = m && m->n_wants < WANTS_MAX ? m->n_wants : 0;
    if (m)
        kedagpuscaler__fleet__v1__watch_request__free_unpacked(m, NULL);
    struct agent *head = &crowd.slices[a->slice];
    a->next = head;
    a->prev = head->prev;
    head->prev->next = a;
    head->prev = a;
    crowd.n_agents++;
    rpc_call_set_state(call, a);
    tell_all(a);
}

static void on_ended(struct rpc_call *call, void *context)
{
    struct agent *a = (struct agent *)rpc_call_state(call);
    (void)context;
    if (!a)
        return;
    a->prev->next = a->next;
    a->next->prev = a->prev;
    crowd.n_agents--;
    free(a);
}

static void on_tick(void *context)
{
    (void)context;
    struct agent *head = &crowd.slices[crowd.slice];
    crowd.slice = (crowd.slice + 1) % crowd.n_slices;
    for (struct agent *a = head->next, *next; a != head; a = next) {
        next = a->next;
        tell_change(a);
    }
}

static void on_report(void *context)
{
    (void)context;
    printf("%zu agents, %zu updates sent, %zu refused\n", crowd.n_agents, crowd.n_sent, crowd.n_refused);
    (void)fflush(stdout);
}

static void on_signal(void *context)
{
    (void)context;
    net_loop_stop(crowd.loop);
}

/* ---- main ---- */

static void raise_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static struct net_tls *tls_of(char **argv, struct err *e)
{
    struct net_tls_files files = {.cert = argv[0], .key = argv[1], .ca = argv[2]};
    return net_tls_server_new(crowd.loop, &files, e);
}

static int set_up(struct stand *s, const char *address, struct net_tls *tls, struct err *e)
{
    static struct net_limits limits;
    limits = net_limits_default;
    limits.values[NET_LIMIT_CONNECTIONS] = limits.values[NET_LIMIT_CONNECTIONS_PER_IP] = 20000;
    s->method = (struct rpc_method){.path = "/kedagpuscaler.fleet.v1.Fleet/Watch",
                                    .is_server_streaming = true,
                                    .message = on_watch,
                                    .ended = on_ended,
                                    .context = crowd.n_workloads ? s : NULL};
    s->server = rpc_server_new(&(struct rpc_server_config){.loop = crowd.loop, .metrics = crowd.metrics});
    rpc_server_add(s->server, &s->method, 1);
    struct net_listen_config config = {
        .address = address, .tls = tls, .h2 = rpc_server_protocol(s->server), .limits = &limits};
    s->listener = net_listen(crowd.loop, &config, e);
    return s->listener ? 0 : -1;
}

static void take_down(struct stand *stands, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        net_listener_free(stands[i].listener);
        rpc_server_free(stands[i].server);
    }
}

static int run(const char *address, struct err *e)
{
    struct net_timer *tick = net_timer_new(crowd.loop, on_tick, NULL);
    struct net_timer *report = net_timer_new(crowd.loop, on_report, NULL);
    net_timer_start(tick, NS_PER_S / (int64_t)crowd.n_slices, NS_PER_S / (int64_t)crowd.n_slices);
    net_timer_start(report, 5 * NS_PER_S, 5 * NS_PER_S);
    struct net_signal *signal = net_signal_new(crowd.loop, SIGTERM, on_signal, NULL, e);
    printf("%s\n", address);
    (void)fflush(stdout);
    net_loop_run(crowd.loop);
    net_signal_free(signal);
    net_timer_free(tick);
    net_timer_free(report);
    return 0;
}

/* All agents at one address. */
static int serve(const char *address, char **tls_files, struct err *e)
{
    struct stand stand = {.number = 0};
    struct net_tls *tls = tls_files ? tls_of(tls_files, e) : NULL;
    if ((tls_files && !tls) || set_up(&stand, address, tls, e) < 0)
        return -1;
    int rv = run(net_listener_address(stand.listener), e);
    take_down(&stand, 1);
    net_tls_free(tls);
    return rv;
}

/* Each at its own. */
static int serve_fleet(int64_t port, size_t first, size_t n, struct err *e)
{
    struct stand *stands = (struct stand *)mem_new_array(n, sizeof(*stands));
    int rv = 0;
    for (size_t i = 0; i < n && rv == 0; i++) {
        char address[64];
        stands[i].number = first + i;
        (void)snprintf(address, sizeof(address), "127.1.%zu.%zu:%d", stands[i].number / 250, stands[i].number % 250 + 1,
                       (int)port);
        rv = set_up(&stands[i], address, NULL, e);
    }
    if (rv == 0)
        rv = run("ready", e);
    take_down(stands, n);
    free(stands);
    return rv;
}

static int parse_numbers(char **argv, int64_t numbers[4])
{
    for (int i = 0; i < 4; i++)
        if (num_parse_i64(str_of(argv[i]), &numbers[i]) < 0 || numbers[i] < 0)
            return -1;
    return 0;
}

int main(int argc, char **argv)
{
    struct err e;
    int64_t numbers[4] = {0};
    bool is_fleet = argc == 5 && parse_numbers(argv + 1, numbers) == 0;
    if (argc != 2 && argc != 5) {
        (void)fprintf(stderr, "usage: crowd ADDRESS [CERT KEY CA], crowd PORT FIRST COUNT WORKLOADS\n");
        return 2;
    }
    raise_descriptors();
    buf_init(&crowd.message, MESSAGE_BYTES_MAX);
    crowd.metrics = metrics_new();
    crowd.n_workloads = (size_t)numbers[3];
    crowd.n_slices = is_fleet ? SLICES_MAX : SLICES_MAX / 20; /* a hub's answers wait for what comes at once */
    for (size_t i = 0; i < SLICES_MAX; i++)
        crowd.slices[i].next = crowd.slices[i].prev = &crowd.slices[i];
    crowd.loop = net_loop_new(crowd.metrics, &e);
    int rv = !crowd.loop ? -1
             : is_fleet  ? serve_fleet(numbers[0], (size_t)numbers[1], (size_t)numbers[2], &e)
                         : serve(argv[1], argc == 5 ? argv + 2 : NULL, &e);
    if (rv < 0)
        (void)fprintf(stderr, "crowd: %s\n", e.text);
    net_loop_free(crowd.loop);
    metrics_free(crowd.metrics);
    buf_fini(&crowd.message);
    return rv < 0;
}
