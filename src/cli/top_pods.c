/* Attribution for `top`: the agent's order of calls, on a loop of its own that waits for the sampler, the kubelet and a
 * deadline. What is shown of it is top_run's. */
#include "cli/top_pods.h"

#include <string.h>
#include <unistd.h>

struct top_pods {
    struct top_pods_config config;
    struct sampling *sampling;
    struct net_loop *loop;
    struct net_poll *readable; /* the sampler's event */
    struct net_timer *deadline;
    struct attribution *attribution;
    size_t n_devices; /* of the newest snapshot, and the highest of their ids: no id is used again, so other devices */
    uint32_t last_id; /* have another pair */
    int64_t devices_ns; /* since when it has these devices; 0 = none was seen yet */
    bool has_given_up;  /* the kubelet let a wait pass */
};

bool top_pods_are_wanted(const struct top_pods_config *config)
{
    return config->pod_resources || config->procfs;
}

static bool can_read(const char *path, const char *otherwise)
{
    return access(path ? path : otherwise, R_OK) == 0;
}

const char *top_pods_default_procfs(const struct top_pods_config *config)
{
    static const char initial[] = "pid:[4026531836]"; /* PROC_PID_INIT_INO of the kernel */
    char target[64];
    ssize_t len = readlink("/proc/self/ns/pid", target, sizeof(target));
    if (len < 0 || !str_equals((struct str){target, (size_t)len}, initial))
        return NULL;
    bool has_pods = (config->pod_resources && can_read(config->pod_resources, "")) ||
                    can_read(config->pod_logs, ATTRIBUTION_POD_LOGS) ||
                    can_read(config->log_links, ATTRIBUTION_LOG_LINKS);
    return has_pods ? "/proc" : NULL;
}

/* ---- what comes in ---- */

static const struct snapshot *newest(void *context)
{
    const struct top_pods *p = context;
    return p->sampling->newest;
}

static void on_owners(void *context, const struct snapshot_owners *owners)
{
    struct top_pods *p = context;
    (void)owners;
    net_loop_stop(p->loop);
}

static void on_holders(void *context, const struct snapshot_holders *holders)
{
    struct top_pods *p = context;
    (void)holders;
    net_loop_stop(p->loop);
}

static void note_devices(struct top_pods *p, const struct snapshot *s)
{
    uint32_t last_id = 0;
    for (size_t i = 0; i < s->n_devices; i++)
        last_id = s->devices[i].id > last_id ? s->devices[i].id : last_id;
    if (p->devices_ns && p->n_devices == s->n_devices && p->last_id == last_id)
        return;
    p->n_devices = s->n_devices;
    p->last_id = last_id;
    p->devices_ns = net_now_ns(p->loop);
    attribution_refresh(p->attribution);
}

/* Before the driver was tried there are no devices that ids could be matched with. */
static void take(struct top_pods *p)
{
    if (!sampling_take(p->sampling) || !sampling_has_tried(p->sampling->newest))
        return;
    note_devices(p, p->sampling->newest);
    attribution_observe(p->attribution, p->sampling->newest);
}

static void on_readable(void *context, bool is_readable, bool is_writable)
{
    struct top_pods *p = context;
    (void)is_writable;
    if (is_readable)
        take(p);
    net_loop_stop(p->loop);
}

static void on_deadline(void *context)
{
    struct top_pods *p = context;
    net_loop_stop(p->loop);
}

/* ---- waits ---- */

/* Until something happens; false once the deadline has passed. */
static bool turn(struct top_pods *p, int64_t deadline_ns)
{
    int64_t left_ns = deadline_ns - time_mono_ns();
    if (left_ns <= 0)
        return false;
    net_timer_start(p->deadline, left_ns, 0);
    net_loop_run(p->loop);
    return true;
}

bool top_pods_wait(struct top_pods *p, bool (*is_enough)(const struct snapshot *), int64_t deadline_ns)
{
    take(p);
    while (!p->sampling->newest || !is_enough(p->sampling->newest))
        if (!turn(p, deadline_ns))
            return false;
    return true;
}

static bool has_owners(const struct top_pods *p)
{
    const struct snapshot_owners *owners = top_pods_owners(p);
    if (!owners)
        return true;
    bool is_fine = owners->state == SNAPSHOT_OWNERS_OK;
    return is_fine ? owners->taken_ns >= p->devices_ns : owners->state != SNAPSHOT_OWNERS_STARTING;
}

static bool has_holders(const struct top_pods *p)
{
    return top_pods_holders(p)->taken_ns >= p->sampling->newest->taken_ns;
}

void top_pods_settle(struct top_pods *p, int64_t wait_ns)
{
    int64_t deadline_ns = time_mono_ns() + wait_ns;
    if (p->devices_ns == 0)
        return;
    while (!has_holders(p) || !(p->has_given_up || has_owners(p)))
        if (!turn(p, deadline_ns))
            break;
    p->has_given_up = !has_owners(p);
}

/* ---- what is known ---- */

const struct snapshot_owners *top_pods_owners(const struct top_pods *p)
{
    return attribution_owners(p->attribution);
}

const struct snapshot_holders *top_pods_holders(const struct top_pods *p)
{
    return attribution_holders(p->attribution);
}

bool top_pods_explain(const struct top_pods *p, struct err *ret)
{
    const struct snapshot_owners *owners = top_pods_owners(p);
    const struct snapshot_holders *holders = top_pods_holders(p);
    bool is_refused = owners && (owners->state == SNAPSHOT_OWNERS_DENIED || owners->state == SNAPSHOT_OWNERS_FAILED);
    if (is_refused)
        (void)err_set(ret, ERR_UNAVAILABLE, "pods are not known: %s", owners->text);
    else if (p->has_given_up)
        (void)err_set(ret, ERR_UNAVAILABLE, "pods are not known: the kubelet on %s does not answer",
                      p->config.pod_resources);
    else if (*holders->text)
        (void)err_set(ret, ERR_UNAVAILABLE, "what pods use is not measured: %s", holders->text);
    return is_refused || p->has_given_up || *holders->text;
}

/* ---- new and free ---- */

static int start(struct top_pods *p, struct metrics *metrics, struct err *e)
{
    p->loop = net_loop_new(metrics, e);
    if (!p->loop)
        return -1;
    p->readable = net_poll_new(p->loop, p->sampling->event, on_readable, p, e);
    if (!p->readable)
        return -1;
    net_poll_want(p->readable, true, false);
    p->deadline = net_timer_new(p->loop, on_deadline, p);
    p->attribution = attribution_new(&(struct attribution_config){.loop = p->loop,
                                                                  .metrics = metrics,
                                                                  .path = p->config.pod_resources,
                                                                  .procfs = p->config.procfs,
                                                                  .pod_logs = p->config.pod_logs,
                                                                  .log_links = p->config.log_links,
                                                                  .snapshot = newest,
                                                                  .changed = on_owners,
                                                                  .seen = on_holders,
                                                                  .context = p},
                                     e);
    return p->attribution ? 0 : -1;
}

struct top_pods *top_pods_new(const struct top_pods_config *config, struct sampling *sampling, struct metrics *metrics,
                              struct err *e)
{
    struct top_pods *p = mem_new(struct top_pods);
    p->config = *config;
    p->sampling = sampling;
    if (start(p, metrics, e) < 0) {
        top_pods_free(p);
        return NULL;
    }
    return p;
}

void top_pods_free(struct top_pods *p)
{
    if (!p)
        return;
    attribution_free(p->attribution);
    net_timer_free(p->deadline);
    net_poll_free(p->readable);
    net_loop_free(p->loop);
    free(p);
}
