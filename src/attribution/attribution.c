/* The parts of attribution put together: what the kubelet lists, what /proc shows, and the holders made of both. */
#include "attribution/attribution.h"

#include "attribution/attribution_private.h"

struct attribution {
    struct attribution_config config;
    struct attribution_kubelet *kubelet;     /* NULL: not asked */
    struct attribution_processes *processes; /* NULL: not looked at */
    struct attribution_holders *holders;
    const struct snapshot *snapshot; /* that holders are of; a reference or NULL */
};

const struct snapshot_owners *attribution_owners(const struct attribution *a)
{
    return a->kubelet ? attribution_kubelet_owners(a->kubelet) : NULL;
}

const struct snapshot_holders *attribution_holders(const struct attribution *a)
{
    return attribution_holders_list(a->holders);
}

void attribution_refresh(struct attribution *a)
{
    if (a->kubelet)
        attribution_kubelet_refresh(a->kubelet);
}

static void update(struct attribution *a)
{
    if (attribution_holders_update(a->holders, a->snapshot, attribution_owners(a), a->processes))
        attribution_refresh(a);
}

static void on_looked(void *context, const struct snapshot *looked)
{
    struct attribution *a = context;
    if (looked != a->snapshot) {
        snapshot_unref(a->snapshot);
        a->snapshot = snapshot_ref(looked);
    }
    update(a);
    if (a->config.seen)
        a->config.seen(a->config.context, attribution_holders(a));
}

void attribution_observe(struct attribution *a, const struct snapshot *snapshot)
{
    if (!a->processes || !attribution_processes_look(a->processes, snapshot))
        on_looked(a, snapshot);
}

/* ---- the kubelet's side ---- */

static void on_owners(void *context, const struct snapshot_owners *owners)
{
    struct attribution *a = context;
    update(a);
    if (a->config.changed)
        a->config.changed(a->config.context, owners);
}

static const struct snapshot *newest_snapshot(void *context)
{
    const struct attribution *a = context;
    return a->config.snapshot(a->config.context);
}

static bool is_alive(void *context, const char *uuid, const char *ns, const char *pod)
{
    const struct attribution *a = context;
    return attribution_holders_has_process(a->holders, uuid, ns, pod);
}

/* ---- new and free ---- */

static int start(struct attribution *a, struct err *e)
{
    struct attribution_config kubelet = a->config;
    kubelet.snapshot = newest_snapshot;
    kubelet.changed = on_owners;
    kubelet.context = a;
    if (a->config.path &&
        !(a->kubelet = attribution_kubelet_new(&kubelet, &(struct attribution_evidence){is_alive, a}, e)))
        return -1;
    if (a->config.procfs && !(a->processes = attribution_processes_new(&a->config, on_looked, a, e)))
        return -1;
    return 0;
}

struct attribution *attribution_new(const struct attribution_config *config, struct err *e)
{
    struct attribution *a = mem_new(struct attribution);
    a->config = *config;
    a->holders = attribution_holders_new(config);
    if (start(a, e) < 0) {
        attribution_free(a);
        return NULL;
    }
    return a;
}

void attribution_free(struct attribution *a)
{
    if (!a)
        return;
    attribution_kubelet_free(a->kubelet);
    attribution_processes_free(a->processes);
    attribution_holders_free(a->holders);
    snapshot_unref(a->snapshot);
    free(a);
}
