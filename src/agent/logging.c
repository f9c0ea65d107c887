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
             LOG_STR("mig_profile", d->mig_profile), LOG_STR("pci", d->pci_bus_id));
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

void agent_log_snapshot(struct agent *a, const struct snapshot *previous, const struct snapshot *now)
{
    if (!a->has_logged_driver || a->logged_driver != now->driver) {
        log_driver(now);
        a->has_logged_driver = true;
        a->logged_driver = now->driver;
    }
    for (size_t i = 0; i < now->n_devices; i++) {
        const struct snapshot_device *is = &now->devices[i], *was = find(previous, is->id);
        if (!was)
            log_device(is, "device found");
        else if (is->is_lost && !was->is_lost)
            log_warn("nvml", "device lost; its readings are missing from now on", LOG_STR("uuid", is->uuid),
                     LOG_STR("reason", is->lost_reason));
        else if (!is->is_lost && was->is_lost)
            log_device(is, "device is back");
        log_xids(was, is);
    }
    for (size_t i = 0; previous && i < previous->n_devices; i++)
        if (!find(now, previous->devices[i].id))
            log_device(&previous->devices[i], "device gone");
}
