/* What the agent tells hubs that watch it: where service takes it from, and a line in the log for each that comes or
 * goes. */
#include "agent/agent_private.h"

/* A stream asks at each look; a field that is only read while wanted is read for so long after the last one. */
#define WATCHED_NS (60 * NS_PER_S)

static const struct snapshot_owners *owners(void *context)
{
    const struct agent *a = context;
    return a->attribution ? attribution_owners(a->attribution) : NULL;
}

static const struct snapshot_holders *holders(void *context)
{
    const struct agent *a = context;
    return a->attribution ? attribution_holders(a->attribution) : NULL;
}

static void want(void *context, enum snapshot_field field)
{
    const struct agent *a = context;
    if (a->sampler)
        gpu_want(a->sampler, field, net_now_ns(a->loop) + WATCHED_NS);
}

/* At most one line a second: any peer can watch, and leave. */
static void watched(void *context, const struct service_watcher *w)
{
    struct agent *a = context;
    int64_t now_ns = net_now_ns(a->loop);
    if (now_ns < a->next_watcher_ns) {
        a->unlogged_watchers++;
        return;
    }
    log_info("fleet", w->is_open ? "a hub watches this node" : "a hub no longer watches this node",
             LOG_STR("hub", w->hub), LOG_STR("peer", w->peer), LOG_INT("wants", w->n_wants),
             LOG_INT("others_not_logged", a->unlogged_watchers));
    a->next_watcher_ns = now_ns + NS_PER_S;
    a->unlogged_watchers = 0;
}

struct service_fleet agent_fleet(struct agent *a)
{
    return (struct service_fleet){.node_name = a->config->daemon.node_name,
                                  .version = a->config->daemon.version,
                                  .owners = owners,
                                  .holders = holders,
                                  .want = want,
                                  .watched = watched,
                                  .context = a};
}
