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

struct attribution {
    struct attribution_config config;
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

static void publish(struct attribution *a, struct snapshot_owners *fresh)
{
    snapshot_owners_unref(a->owners);
    a->owners = fresh;
    if (a->config.changed)
        a->config.changed(a->config.context, fresh);
}

/* The look at the file comes after the failure: what is missing then is the likely reason. */
static enum reason reason_of(const struct attribution *a, const struct err *e)
{
    switch (e->class) {
    case ERR_UNAVAILABLE:
        if (access(a->path, R_OK | W_OK) == 0)
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
static void describe(const struct attribution *a, enum reason reason, const struct err *e, struct snapshot_owners *ret)
{
    ret->state = SNAPSHOT_OWNERS_FAILED;
    if (reason == REASON_NO_SOCKET) {
        ret->state = SNAPSHOT_OWNERS_NO_SOCKET;
        (void)snprintf(ret->text, sizeof(ret->text), "no %.100s: mount the kubelet's pod-resources directory", a->path);
    } else if (reason == REASON_DENIED) {
        ret->state = SNAPSHOT_OWNERS_DENIED;
        (void)snprintf(ret->text, sizeof(ret->text), "may not open %.100s: run as root", a->path);
    } else if (reason == REASON_UNIMPLEMENTED) {
        (void)snprintf(ret->text, sizeof(ret->text), "the kubelet has no pod-resources API v1: it needs 1.20");
    } else {
        (void)snprintf(ret->text, sizeof(ret->text), "%.*s", (int)sizeof(ret->text) - 1, e->text);
    }
}

/* The last good holdings with the new state, or none once they are too old. */
static void fail(struct attribution *a, const struct err *e)
{
    enum reason reason = reason_of(a, e);
    struct snapshot_owners next = *a->owners;
    metric_add(a->errors[reason], 1);
    if (net_now_ns(a->config.loop) - next.taken_ns > HOLD_NS)
        next = (struct snapshot_owners){.taken_ns = 0};
    describe(a, reason, e, &next);
    a->n_rate_limited = reason == REASON_RATE_LIMITED ? a->n_rate_limited + 1 : 0;
    a->is_broken = reason != REASON_RATE_LIMITED;
    publish(a, snapshot_owners_new(&next));
}

/* When the next read begins, from now. */
static int64_t delay_ns(const struct attribution *a)
{
    int64_t ns = a->config.period_ns;
    if (a->is_wanted && !a->n_rate_limited)
        return SOON_NS < ns ? SOON_NS : ns;
    for (int i = 0; i < a->n_rate_limited && ns < BACKOFF_MAX_NS; i++)
        ns *= 2;
    return ns;
}

static void on_message(void *context, struct str message)
{
    struct attribution *a = context;
    snapshot_owners_unref(a->answer); /* rpc lets one message through only; of two the later */
    a->answer =
        attribution_parse(message, a->config.snapshot(a->config.context), net_now_ns(a->config.loop), &a->answer_error);
}

static void on_done(void *context, const struct err *status)
{
    struct attribution *a = context;
    struct snapshot_owners *answer = a->answer;
    a->call = NULL;
    a->answer = NULL;
    if (!a->timer) { /* attribution_free */
        snapshot_owners_unref(answer);
        return;
    }
    if (status->class == ERR_NONE && answer) {
        a->n_rate_limited = 0;
        a->is_broken = false;
        publish(a, answer);
    } else {
        snapshot_owners_unref(answer);
        fail(a, status->class == ERR_NONE ? &a->answer_error : status);
    }
    net_timer_start(a->timer, delay_ns(a), 0);
}

/* ---- reads ---- */

static int dial(struct attribution *a, struct err *e)
{
    a->client = rpc_client_new(&(struct rpc_client_config){.loop = a->config.loop,
                                                           .address = a->address,
                                                           .authority = "localhost",
                                                           .max_message_bytes = ANSWER_BYTES,
                                                           .window_bytes = WINDOW_BYTES},
                               e);
    return a->client ? 0 : -1;
}

static void start_read(void *context)
{
    struct attribution *a = context;
    struct err e;
    if (a->call)
        return;
    if (a->is_broken) {
        rpc_client_free(a->client);
        a->client = NULL;
    }
    a->started_ns = net_now_ns(a->config.loop);
    a->is_wanted = false;
    metric_add(a->reads, 1);
    (void)err_set(&a->answer_error, ERR_INTERNAL, "the kubelet answered nothing");
    if (!a->client && dial(a, &e) < 0) {
        fail(a, &e);
        net_timer_start(a->timer, delay_ns(a), 0);
        return;
    }
    a->call = rpc_client_start(a->client,
                               &(struct rpc_client_call_config){.path = "/v1.PodResourcesLister/List",
                                                                .deadline_ns = DEADLINE_NS,
                                                                .message = on_message,
                                                                .done = on_done,
                                                                .context = a},
                               "", 0); /* ListPodResourcesRequest has no fields */
}

void attribution_refresh(struct attribution *a)
{
    int64_t since_ns = net_now_ns(a->config.loop) - a->started_ns;
    a->is_wanted = true;
    if (a->call || a->n_rate_limited)
        return; /* read again after it */
    net_timer_start(a->timer, since_ns < SOON_NS && a->started_ns ? SOON_NS - since_ns : 0, 0);
}

const struct snapshot_owners *attribution_owners(const struct attribution *a)
{
    return a->owners;
}

/* ---- new and free ---- */

static void add_metrics(struct attribution *a)
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
    a->reads = metric_only(metric_register(a->config.metrics, &reads));
    for (size_t i = 0; i < REASON_COUNT; i++)
        a->errors[i] = metric_series(metric_register(a->config.metrics, &errors), &names[i]);
}

struct attribution *attribution_new(const struct attribution_config *config, struct err *e)
{
    const char *path = strncmp(config->path, "unix:", 5) == 0 ? config->path + 5 : config->path;
    struct attribution *a = mem_new(struct attribution);
    a->config = *config;
    if (a->config.period_ns <= 0)
        a->config.period_ns = PERIOD_NS;
    bool is_whole = str_copy(a->path, sizeof(a->path), str_of(path));
    (void)snprintf(a->address, sizeof(a->address), "unix:%s", a->path);
    if (!is_whole || *a->path != '/' || dial(a, e) < 0) {
        (void)err_set(e, ERR_INVALID_ARGUMENT, "pod-resources socket \"%.200s\": must be an absolute path", path);
        free(a);
        return NULL;
    }
    add_metrics(a);
    a->owners = snapshot_owners_new(&(struct snapshot_owners){.state = SNAPSHOT_OWNERS_STARTING});
    a->timer = net_timer_new(config->loop, start_read, a);
    net_timer_start(a->timer, SOON_NS < a->config.period_ns ? SOON_NS : a->config.period_ns, 0);
    return a;
}

void attribution_free(struct attribution *a)
{
    if (!a)
        return;
    net_timer_free(a->timer);
    a->timer = NULL;
    rpc_client_free(a->client);
    snapshot_owners_unref(a->owners);
    free(a);
}
