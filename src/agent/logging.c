/* What the agent logs of readings: changes of the driver's state and of the devices, not the readings themselves. */
#include "agent/agent_private.h"

#include <string.h>

static void log_driver(const struct snapshot *s)
{
    if (s->driver == SNAPSHOT_DRIVER_OK)
        log_info("nvml", "driver is ready", LOG_STR("driver_version", s->driver_version),
                 LOG_STR("nvml_version", s->nvml_version), LOG_STR("library", s->library_path),
                 LOG_INT("devices", s->n_devices));
    else if (s->driver == SNAPSHOT_DRIVER_STARTING || s->driver == SNAPSHOT_DRIVER_RELEASED)
        log_info("nvml", "driver is not read", LOG_STR("state", snapshot_driver_state_name(s->driver)),
                 LOG_STR("reason", s->driver_text));
    else
        log_warn("nvml", "driver is not available; keeps trying",
                 LOG_STR("state", snapshot_driver_state_name(s->driver)), LOG_STR("reason", s->driver_text));
}

static void log_device(const struct snapshot_device *d, const char *event)
{
    log_info("nvml", event, LOG_INT("index", d->index), LOG_STR("uuid", d->uuid), LOG_STR("product", d->product),
             LOG_STR("pci", d->pci_bus_id));
}

static const struct snapshot_device *find(const struct snapshot *s, uint32_t id)
{
    for (size_t i = 0; s && i < s->n_devices; i++)
        if (s->devices[i].id == id)
            return &s->devices[i];
    return NULL;
}

static void log_xids(const struct snapshot_device *was, const struct snapshot_device *is)
{
    for (size_t i = 0; i < is->n_xids; i++) {
        uint64_t before = 0;
        for (size_t k = 0; was && k < was->n_xids; k++)
            if (was->xids[k].xid == is->xids[i].xid)
                before = was->xids[k].count;
        if (is->xids[i].count > before)
            log_warn("nvml", "xid", LOG_INT("xid", is->xids[i].xid), LOG_STR("uuid", is->uuid),
                     LOG_INT("count", is->xids[i].count));
    }
}

/* A GPU's instances are not logged one by one: eight GPUs have 56. */
static size_t count_mig(const struct snapshot *s, const struct snapshot_device *gpu)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_devices; i++)
        n += s->devices[i].kind == SNAPSHOT_MIG && strcmp(s->devices[i].parent_uuid, gpu->uuid) == 0;
    return n;
}

static void log_mig(const struct snapshot *previous, const struct snapshot *now, const struct snapshot_device *gpu)
{
    size_t before = previous ? count_mig(previous, gpu) : 0, after = count_mig(now, gpu);
    if (before != after)
        log_info("nvml", "MIG devices changed", LOG_INT("index", gpu->index), LOG_STR("uuid", gpu->uuid),
                 LOG_INT("before", before), LOG_INT("now", after));
}

void agent_log_snapshot(struct agent *a, const struct snapshot *previous, const struct snapshot *now)
{
    if (!a->has_logged_driver || a->logged_driver != now->driver) {
        log_driver(now);
        a->has_logged_driver = true;
        a->logged_driver = now->driver;
    }
    for (size_t i = 0; i < now->n_devices; i++) {
        const struct snapshot_device *is = &now->devices[i], *was = find(previous, is->id);
        if (is->kind == SNAPSHOT_MIG)
            continue;
        if (!was)
            log_device(is, "device found");
        else if (is->is_lost && !was->is_lost)
            log_warn("nvml", "device lost; its readings are missing from now on", LOG_STR("uuid", is->uuid),
                     LOG_STR("reason", is->lost_reason));
        else if (!is->is_lost && was->is_lost)
            log_device(is, "device is back");
        log_mig(previous, now, is);
        log_xids(was, is);
    }
    for (size_t i = 0; previous && i < previous->n_devices; i++)
        if (previous->devices[i].kind != SNAPSHOT_MIG && !find(now, previous->devices[i].id))
            log_device(&previous->devices[i], "device gone");
}

void agent_log_owners(struct agent *a, const struct snapshot_owners *owners)
{
    if (owners->state == a->logged_owners)
        return;
    a->logged_owners = owners->state;
    if (owners->state == SNAPSHOT_OWNERS_OK)
        log_info("owners", "pods are known", LOG_INT("pods", owners->n_pods), LOG_INT("holdings", owners->n_holdings),
                 LOG_INT("unmatched", owners->n_unmatched));
    else if (owners->state == SNAPSHOT_OWNERS_NO_SOCKET) /* outside Kubernetes this is how it is */
        log_info("owners", "pods are not known; keeps looking", LOG_STR("reason", owners->text));
    else
        log_warn("owners", "pods cannot be read; keeps trying",
                 LOG_STR("state", snapshot_owners_state_name(owners->state)), LOG_STR("reason", owners->text));
}

void agent_log_sight(struct agent *a, const struct snapshot_holders *holders)
{
    enum snapshot_sight sight = holders->sight;
    if (sight == a->logged_sight || sight == SNAPSHOT_SIGHT_OFF || sight == SNAPSHOT_SIGHT_STARTING)
        return;
    a->logged_sight = sight;
    if (sight == SNAPSHOT_SIGHT_OK)
        log_info("processes", "processes are told apart by pod", LOG_INT("unattributed", holders->n_unattributed));
    else
        log_warn("processes", "processes cannot be told apart by pod; keeps trying",
                 LOG_STR("state", snapshot_sight_name(sight)), LOG_STR("reason", holders->text));
}
