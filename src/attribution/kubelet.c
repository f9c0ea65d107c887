/* The client of the kubelet's pod-resources socket: one List at a time on a slow cycle, with the last good answer kept
 * while it fails. It does not exit, log or block: what it sees is the state of the owners. */
#include "attribution/attribution_private.h"
#include "rpc/rpc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PERIOD_NS      (10 * NS_PER_S)
#define DEADLINE_NS    (10 * NS_PER_S)  /* of one read */
#define SOON_NS        NS_PER_S         /* between reads on demand: all clients share 100 a second */
#define BACKOFF_MAX_NS (80 * NS_PER_S)  /* while the kubelet says that there are too many reads */
#define HOLD_NS        (120 * NS_PER_S) /* how long the last good answer stands */
enum { ANSWER_BYTES = 16 << 20 /* what the kubelet may send */, WINDOW_BYTES = 1 << 20 };

/* Why a read failed: the label of the errors counter. */
#define REASONS(X)                                                                                                     \
    X(NO_SOCKET, "no_socket")                                                                                          \
    X(DENIED, "denied")                                                                                                \
    X(UNAVAILABLE, "unavailable")                                                                                      \
    X(RATE_LIMITED, "rate_limited")                                                                                    \
    X(DEADLINE, "deadline")                                                                                            \
    X(TOO_LARGE, "too_large")                                                                                          \
    X(UNIMPLEMENTED, "unimplemented")                                                                                  \
    X(OTHER, "other")
enum reason {
#define X(id, name) REASON_##id,
    REASONS(X)
#undef X
        REASON_COUNT
};

struct attribution_kubelet {
    struct attribution_config config;
    struct attribution_evidence evidence;
    char path[256], address[270];
    struct net_timer *timer;
    struct rpc_client *client;
    struct rpc_client_call *call;   /* the read in progress */
    struct snapshot_owners *owners; /* a reference */
    struct snapshot_owners *answer; /* of the read in progress */
    struct err answer_error;        /* where its answer could not be read */
    int64_t started_ns;             /* of the newest read; 0 none yet */
    bool is_wanted;                 /* the devices have changed since it began */
    bool is_broken;                 /* the last read failed: dial anew, whatever rpc's back-off says */
    int n_rate_limited;             /* in a row */
    struct metric_series *reads, *errors[REASON_COUNT];
};

/* ---- outcome ---- */

static void publish(struct attribution_kubelet *k, struct snapshot_owners *fresh)
{
    snapshot_owners_unref(k->owners);
    k->owners = fresh;
    if (k->config.changed)
        k->config.changed(k->config.context, fresh);
}

/* The look at the file comes after the failure: what is missing then is the likely reason. */
static enum reason reason_of(const struct attribution_kubelet *k, const struct err *e)
{
    switch (e->class) {
    case ERR_UNAVAILABLE:
        if (access(k->path, R_OK | W_OK) == 0)
            return REASON_UNAVAILABLE;
        return errno == EACCES ? REASON_DENIED : errno == ENOENT || errno == ENOTDIR ? REASON_NO_SOCKET : REASON_OTHER;
    case ERR_RESOURCE_EXHAUSTED: /* ours where the answer is too large, the kubelet's where it limits */
        return strstr(e->text, "rate limit") ? REASON_RATE_LIMITED : REASON_TOO_LARGE;
    case ERR_DEADLINE_EXCEEDED:
        return REASON_DEADLINE;
    case ERR_UNIMPLEMENTED:
        return REASON_UNIMPLEMENTED;
    case ERR_NONE:
    case ERR_CANCELLED:
    case ERR_UNKNOWN:
    case ERR_INVALID_ARGUMENT:
    case ERR_NOT_FOUND:
    case ERR_PERMISSION_DENIED:
    case ERR_FAILED_PRECONDITION:
    case ERR_INTERNAL:
    case ERR_UNAUTHENTICATED:
    default:
        return REASON_OTHER;
    }
}

/* State and text of a failure, for people. */
static void describe(const struct attribution_kubelet *k, enum reason reason, const struct err *e,
                     struct snapshot_owners *ret)
{
    ret->state = SNAPSHOT_OWNERS_FAILED;
    if (reason == REASON_NO_SOCKET) {
        ret->state = SNAPSHOT_OWNERS_NO_SOCKET;
        (void)snprintf(ret->text, sizeof(ret->text), "no %.100s: mount the kubelet's pod-resources directory", k->path);
    } else if (reason == REASON_DENIED) {
        ret->state = SNAPSHOT_OWNERS_DENIED;
        (void)snprintf(ret->text, sizeof(ret->text), "may not open %.100s: run as root", k->path);
    } else if (reason == REASON_UNIMPLEMENTED) {
        (void)snprintf(ret->text, sizeof(ret->text), "the kubelet has no pod-resources API v1: it needs 1.20");
    } else {
        (void)snprintf(ret->text, sizeof(ret->text), "%.*s", (int)sizeof(ret->text) - 1, e->text);
    }
}

/* The last good holdings with the new state, or none once they are too old. */
static void fail(struct attribution_kubelet *k, const struct err *e)
{
    enum reason reason = reason_of(k, e);
    struct snapshot_owners next = *k->owners;
    metric_add(k->errors[reason], 1);
    if (net_now_ns(k->config.loop) - next.taken_ns > HOLD_NS)
        next = (struct snapshot_owners){.taken_ns = 0};
    describe(k, reason, e, &next);
    k->n_rate_limited = reason == REASON_RATE_LIMITED ? k->n_rate_limited + 1 : 0;
    k->is_broken = reason != REASON_RATE_LIMITED;
    publish(k, snapshot_owners_new(&next));
}

/* When the next read begins, from now. */
static int64_t delay_ns(const struct attribution_kubelet *k)
{
    int64_t ns = k->config.period_ns;
    if (k->is_wanted && !k->n_rate_limited)
        return SOON_NS < ns ? SOON_NS : ns;
    for (int i = 0; i < k->n_rate_limited && ns < BACKOFF_MAX_NS; i++)
        ns *= 2;
    return ns;
}

static void on_message(void *context, struct str message)
{
    struct attribution_kubelet *k = context;
    snapshot_owners_unref(k->answer); /* rpc lets one message through only; of two the later */
    k->answer = attribution_read_list(message, k->config.snapshot(k->config.context), &k->evidence,
                                      net_now_ns(k->config.loop), &k->answer_error);
}

static void on_done(void *context, const struct err *status)
{
    struct attribution_kubelet *k = context;
    struct snapshot_owners *answer = k->answer;
    k->call = NULL;
    k->answer = NULL;
    if (!k->timer) { /* attribution_kubelet_free */
        snapshot_owners_unref(answer);
        return;
    }
    if (status->class == ERR_NONE && answer) {
        k->n_rate_limited = 0;
        k->is_broken = false;
        publish(k, answer);
    } else {
        snapshot_owners_unref(answer);
        fail(k, status->class == ERR_NONE ? &k->answer_error : status);
    }
    net_timer_start(k->timer, delay_ns(k), 0);
}

/* ---- reads ---- */

static int dial(struct attribution_kubelet *k, struct err *e)
{
    k->client = rpc_client_new(&(struct rpc_client_config){.loop = k->config.loop,
                                                           .address = k->address,
                                                           .authority = "localhost",
                                                           .max_message_bytes = ANSWER_BYTES,
                                                           .window_bytes = WINDOW_BYTES},
                               e);
    return k->client ? 0 : -1;
}

static void start_read(void *context)
{
    struct attribution_kubelet *k = context;
    struct err e;
    if (k->call)
        return;
    if (k->is_broken) {
        rpc_client_free(k->client);
        k->client = NULL;
    }
    k->started_ns = net_now_ns(k->config.loop);
    k->is_wanted = false;
    metric_add(k->reads, 1);
    (void)err_set(&k->answer_error, ERR_INTERNAL, "the kubelet answered nothing");
    if (!k->client && dial(k, &e) < 0) {
        fail(k, &e);
        net_timer_start(k->timer, delay_ns(k), 0);
        return;
    }
    k->call = rpc_client_start(k->client,
                               &(struct rpc_client_call_config){.path = "/v1.PodResourcesLister/List",
                                                                .deadline_ns = DEADLINE_NS,
                                                                .message = on_message,
                                                                .done = on_done,
                                                                .context = k},
                               "", 0); /* ListPodResourcesRequest has no fields */
}

void attribution_kubelet_refresh(struct attribution_kubelet *k)
{
    int64_t since_ns = net_now_ns(k->config.loop) - k->started_ns;
    k->is_wanted = true;
    if (k->call || k->n_rate_limited)
        return; /* read again after it */
    net_timer_start(k->timer, since_ns < SOON_NS && k->started_ns ? SOON_NS - since_ns : 0, 0);
}

const struct snapshot_owners *attribution_kubelet_owners(const struct attribution_kubelet *k)
{
    return k->owners;
}

/* ---- new and free ---- */

static void add_metrics(struct attribution_kubelet *k)
{
    static const struct metric_desc reads = {.name = "keda_gpu_scaler_pod_resources_reads",
                                             .help = "Reads of the kubelet's pod-resources begun.",
                                             .kind = METRIC_COUNTER};
    static const struct metric_desc errors = {.name = "keda_gpu_scaler_pod_resources_errors",
                                              .help = "Reads of the kubelet's pod-resources that failed, by reason.",
                                              .kind = METRIC_COUNTER,
                                              .labels = {"reason"}};
#define X(id, name) (name),
    static const char *const names[] = {REASONS(X)};
#undef X
    k->reads = metric_only(metric_register(k->config.metrics, &reads));
    for (size_t i = 0; i < REASON_COUNT; i++)
        k->errors[i] = metric_series(metric_register(k->config.metrics, &errors), &names[i]);
}

struct attribution_kubelet *attribution_kubelet_new(const struct attribution_config *config,
                                                    const struct attribution_evidence *evidence, struct err *e)
{
    const char *path = strncmp(config->path, "unix:", 5) == 0 ? config->path + 5 : config->path;
    struct attribution_kubelet *k = mem_new(struct attribution_kubelet);
    k->config = *config;
    k->evidence = *evidence;
    if (k->config.period_ns <= 0)
        k->config.period_ns = PERIOD_NS;
    bool is_whole = str_copy(k->path, sizeof(k->path), str_of(path));
    (void)snprintf(k->address, sizeof(k->address), "unix:%s", k->path);
    if (!is_whole || *k->path != '/' || dial(k, e) < 0) {
        (void)err_set(e, ERR_INVALID_ARGUMENT, "pod-resources socket \"%.200s\": must be an absolute path", path);
        free(k);
        return NULL;
    }
    add_metrics(k);
    k->owners = snapshot_owners_new(&(struct snapshot_owners){.state = SNAPSHOT_OWNERS_STARTING});
    k->timer = net_timer_new(config->loop, start_read, k);
    net_timer_start(k->timer, SOON_NS < k->config.period_ns ? SOON_NS : k->config.period_ns, 0);
    return k;
}

void attribution_kubelet_free(struct attribution_kubelet *k)
{
    if (!k)
        return;
    net_timer_free(k->timer);
    k->timer = NULL;
    rpc_client_free(k->client);
    snapshot_owners_unref(k->owners);
    free(k);
}
