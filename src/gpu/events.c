/* Xids: critical errors that the driver reports as events, counted per device and number. */
#include "gpu/core.h"

#include <string.h>

/* A storm of events must not hold up the readings; the rest is fetched in the next cycle. */
enum { EVENTS_PER_CYCLE = 64 };

void gpu_events_reset(struct gpu_core *core)
{
    if (core->nvml)
        nvml_events_free(core->nvml, core->events);
    core->events = NULL;
    for (size_t i = 0; i < core->devices.len; i++)
        core->devices.items[i].has_events = false;
}

/* MIG handles cannot be registered: the parent reports for its instances. A GPU that refuses is not asked again. */
static void register_gpus(struct gpu_core *core)
{
    for (size_t i = 0; i < core->devices.len; i++) {
        struct gpu_device *d = &core->devices.items[i];
        if (d->has_events || d->is_lost || !d->handle || d->kind == SNAPSHOT_MIG)
            continue;
        d->has_events = true;
        (void)nvml_events_register(core->nvml, core->events, d->handle, NVML_EVENT_XID_CRITICAL);
    }
}

/* The same number again, a free place, or that of the Xid which has been quiet for longest. */
static struct snapshot_xid *place_for(struct snapshot_device *d, uint32_t xid)
{
    struct snapshot_xid *oldest = &d->xids[0];
    for (size_t i = 0; i < d->n_xids; i++) {
        if (d->xids[i].xid == xid)
            return &d->xids[i];
        if (d->xids[i].last_ns < oldest->last_ns)
            oldest = &d->xids[i];
    }
    if (d->n_xids < SNAPSHOT_XIDS_MAX)
        oldest = &d->xids[d->n_xids++];
    *oldest = (struct snapshot_xid){.xid = xid};
    return oldest;
}

/* By handle, or by the UUID that the driver gives for it: an event may carry another handle of the same GPU. */
static const struct gpu_device *gpu_of(struct gpu_core *core, struct nvml_device *handle)
{
    char uuid[NVML_UUID_MAX];
    for (size_t i = 0; i < core->devices.len; i++)
        if (core->devices.items[i].handle == handle && core->devices.items[i].kind != SNAPSHOT_MIG)
            return &core->devices.items[i];
    if (!handle || nvml_read_uuid(core->nvml, handle, uuid) != NVML_RC_SUCCESS)
        return NULL;
    return gpu_inventory_find(core, uuid);
}

/* The MIG device that the event names: that compute instance, or the only one of the GPU instance; NULL if none. */
static const struct gpu_device *instance_of(const struct gpu_core *core, const struct gpu_device *gpu,
                                            const struct nvml_event_data *event)
{
    const struct gpu_device *found = NULL;
    for (size_t i = 0; i < core->devices.len; i++) {
        const struct gpu_device *d = &core->devices.items[i];
        bool is_inside = d->kind == SNAPSHOT_MIG && d->gpu_instance == event->gpu_instance_id &&
                         strcmp(d->parent_uuid, gpu->uuid) == 0;
        if (is_inside && d->compute_instance == event->compute_instance_id)
            return d;
        if (is_inside && event->compute_instance_id == NVML_NONE_U32) {
            if (found)
                return NULL; /* which of several is not said */
            found = d;
        }
    }
    return found;
}

static struct snapshot_device *device_of(struct gpu_core *core, const struct nvml_event_data *event)
{
    const struct gpu_device *gpu = gpu_of(core, event->device), *instance = NULL;
    if (!gpu)
        return NULL;
    if (event->gpu_instance_id != NVML_NONE_U32)
        instance = instance_of(core, gpu, event);
    return snapshot_store_find(core->store, instance ? instance->uuid : gpu->uuid);
}

static void count_xid(struct gpu_core *core, const struct nvml_event_data *event)
{
    struct snapshot_device *d = device_of(core, event);
    if (!d || !(event->type & NVML_EVENT_XID_CRITICAL))
        return;
    struct snapshot_xid *place = place_for(d, (uint32_t)event->data);
    place->count++;
    place->last_ns = core->clock_ns();
}

/* After any refusal the set is dropped and made anew later: a lost GPU's set answers GPU_IS_LOST at once, every time.
 */
static void back_off(struct gpu_core *core)
{
    gpu_events_reset(core);
    core->events_retry_ns = core->clock_ns() + core->config.retry_min_ns;
}

void gpu_events_poll(struct gpu_core *core)
{
    if (core->clock_ns() < core->events_retry_ns)
        return;
    if (!core->events && nvml_events_new(core->nvml, &core->events) != NVML_RC_SUCCESS) {
        core->events = NULL;
        back_off(core);
        return;
    }
    register_gpus(core);
    for (int i = 0; i < EVENTS_PER_CYCLE; i++) {
        struct nvml_event_data event = {0};
        int rc = nvml_events_wait(core->nvml, core->events, 0, &event);
        if (rc == NVML_RC_TIMEOUT)
            return;
        if (rc != NVML_RC_SUCCESS) {
            back_off(core);
            return;
        }
        count_xid(core, &event);
    }
}
