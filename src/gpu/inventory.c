/* Which GPUs and MIG devices there are, in the core's list and in the store alike: found, changed, lost and found
 * again. A GPU is known by its UUID, never by its index: that changes when another GPU falls off the bus. */
#include "gpu/core.h"

#include <stdio.h>
#include <string.h>

struct gpu_device *gpu_inventory_find(struct gpu_core *core, const char *uuid)
{
    for (size_t i = 0; i < core->devices.len; i++)
        if (strcmp(core->devices.items[i].uuid, uuid) == 0)
            return &core->devices.items[i];
    return NULL;
}

static void copy(char *out, size_t size, const char *text)
{
    (void)str_copy(out, size, str_of(text));
}

/* ---- losing and finding again ---- */

static void mark(struct gpu_core *core, struct gpu_device *d, bool is_lost, const char *reason)
{
    d->is_lost = is_lost;
    struct snapshot_device *place = snapshot_store_find(core->store, d->uuid);
    if (!place)
        return;
    place->is_lost = is_lost;
    copy(place->lost_reason, sizeof(place->lost_reason), reason);
}

static void mark_family(struct gpu_core *core, struct gpu_device *gpu, bool is_lost, const char *reason)
{
    mark(core, gpu, is_lost, reason);
    for (size_t i = 0; i < core->devices.len; i++) {
        struct gpu_device *d = &core->devices.items[i];
        if (d->kind == SNAPSHOT_MIG && strcmp(d->parent_uuid, gpu->uuid) == 0)
            mark(core, d, is_lost, reason);
    }
}

static void lose(struct gpu_core *core, struct gpu_device *gpu, const char *reason)
{
    int64_t wait_ns = gpu->lost_wait_ns ? gpu->lost_wait_ns * 2 : core->config.retry_min_ns;
    gpu->lost_wait_ns = wait_ns < core->config.retry_max_ns ? wait_ns : core->config.retry_max_ns;
    gpu->lost_retry_ns = core->clock_ns() + gpu->lost_wait_ns;
    mark_family(core, gpu, true, reason);
    gpu_events_reset(core); /* waiting on a set with a lost GPU answers "lost" for ever, and for nobody else */
}

void gpu_inventory_lose(struct gpu_core *core, struct gpu_device *d, int rc)
{
    gpu_count_error(core, rc);
    struct gpu_device *gpu = d->kind == SNAPSHOT_MIG ? gpu_inventory_find(core, d->parent_uuid) : d;
    lose(core, gpu ? gpu : d, nvml_rc_text(rc));
}

/* A reading decides: a lost GPU still gives out its handle. */
static void probe(struct gpu_core *core, struct gpu_device *gpu)
{
    struct nvml_device *handle = NULL;
    int32_t celsius;
    int rc = gpu->bus_id[0] ? nvml_find_by_bus_id(core->nvml, gpu->bus_id, &handle)
                            : nvml_find_by_uuid(core->nvml, gpu->uuid, &handle);
    if (rc == NVML_RC_SUCCESS)
        rc = nvml_read_temperature(core->nvml, handle, &celsius);
    if (gpu_ends_session(core, rc))
        return;
    if (nvml_rc_kind(rc) != NVML_KIND_VALUE && nvml_rc_kind(rc) != NVML_KIND_ABSENT) {
        lose(core, gpu, nvml_rc_text(rc));
        return;
    }
    gpu->handle = handle;
    gpu->lost_wait_ns = 0;
    gpu_gpm_reset(core, gpu);
    gpu_plan_reset(core, gpu);
    gpu_process_reset(gpu);
    mark_family(core, gpu, false, "");
    gpu_events_reset(core);
}

static void probe_lost(struct gpu_core *core)
{
    for (size_t i = 0; i < core->devices.len && !core->ending_rc; i++) {
        struct gpu_device *d = &core->devices.items[i];
        if (d->is_lost && d->kind != SNAPSHOT_MIG && core->clock_ns() >= d->lost_retry_ns)
            probe(core, d);
    }
}

/* ---- adding and removing ---- */

static struct gpu_device *add(struct gpu_core *core, const struct gpu_device *device,
                              const struct snapshot_device *identity)
{
    if (!snapshot_store_add(core->store, identity))
        return NULL;
    vec_push(&core->devices, *device);
    struct gpu_device *d = &core->devices.items[core->devices.len - 1];
    gpu_plan_reset(core, d);
    snapshot_store_sort(core->store);
    return d;
}

static void remove_at(struct gpu_core *core, size_t i)
{
    struct gpu_device *d = &core->devices.items[i];
    gpu_gpm_reset(core, d);
    gpu_process_fini(d);
    snapshot_store_remove(core->store, d->uuid);
    vec_remove(&core->devices, i);
}

static void remove_instances(struct gpu_core *core, const char *parent, bool only_unseen)
{
    char parent_uuid[SNAPSHOT_UUID_MAX]; /* a copy: the parent may be an element of the list that shrinks here */
    copy(parent_uuid, sizeof(parent_uuid), parent);
    for (size_t i = core->devices.len; i-- > 0;) {
        const struct gpu_device *d = &core->devices.items[i];
        if (d->kind == SNAPSHOT_MIG && strcmp(d->parent_uuid, parent_uuid) == 0 && !(only_unseen && d->is_seen))
            remove_at(core, i);
    }
}

void gpu_inventory_forget(struct gpu_core *core)
{
    gpu_events_reset(core);
    for (size_t i = 0; i < core->devices.len; i++) {
        struct gpu_device *d = &core->devices.items[i];
        gpu_gpm_reset(core, d);
        gpu_plan_reset(core, d);
        gpu_process_reset(d);
        d->handle = NULL;
        d->is_mig_incapable = d->has_events = false;
        d->lost_retry_ns = d->lost_wait_ns = 0;
    }
    core->count = 0;
    core->next_inventory_ns = 0;
}

/* ---- GPUs ---- */

/* Serial, minor and name may be absent; UUID and PCI id name the GPU. */
static void read_identity(struct gpu_core *core, struct gpu_device *d, struct snapshot_device *ret)
{
    char name[NVML_NAME_MAX], serial[NVML_SERIAL_MAX];
    uint32_t minor;
    struct nvml_pci_info pci;
    *ret = (struct snapshot_device){.kind = d->kind, .minor = -1, .gpu_instance = -1, .compute_instance = -1};
    copy(ret->uuid, sizeof(ret->uuid), d->uuid);
    if (nvml_read_name(core->nvml, d->handle, name) == NVML_RC_SUCCESS)
        copy(ret->product, sizeof(ret->product), name);
    if (nvml_read_serial(core->nvml, d->handle, serial) == NVML_RC_SUCCESS)
        copy(ret->serial, sizeof(ret->serial), serial);
    if (nvml_read_minor(core->nvml, d->handle, &minor) == NVML_RC_SUCCESS)
        ret->minor = (int)minor;
    if (nvml_read_pci(core->nvml, d->handle, &pci) == NVML_RC_SUCCESS)
        copy(ret->pci_bus_id, sizeof(ret->pci_bus_id), pci.bus_id);
    copy(d->bus_id, sizeof(d->bus_id), ret->pci_bus_id);
}

static void add_gpu(struct gpu_core *core, struct nvml_device *handle, const char *uuid, uint32_t index)
{
    struct gpu_device device = {.handle = handle, .kind = SNAPSHOT_GPU, .is_seen = true};
    struct snapshot_device identity;
    copy(device.uuid, sizeof(device.uuid), uuid);
    read_identity(core, &device, &identity);
    identity.index = (int)index;
    (void)add(core, &device, &identity);
}

/* The same GPU under a handle of this session; its index may have moved. */
static void meet_again(struct gpu_core *core, struct gpu_device *d, struct nvml_device *handle, uint32_t index)
{
    d->is_seen = true;
    d->handle = handle;
    struct snapshot_device *place = snapshot_store_find(core->store, d->uuid);
    if (!place || place->index == (int)index)
        return;
    place->index = (int)index;
    for (size_t i = 0; i < core->devices.len; i++) {
        struct snapshot_device *child = snapshot_store_find(core->store, core->devices.items[i].uuid);
        if (child && strcmp(child->parent_uuid, d->uuid) == 0)
            child->index = (int)index;
    }
    snapshot_store_sort(core->store);
}

/* An index that fails concerns that index alone; NO_PERMISSION is a GPU that is not ours to see. Returns the code. */
static int enumerate_one(struct gpu_core *core, uint32_t index)
{
    struct nvml_device *handle;
    char uuid[NVML_UUID_MAX];
    int rc = nvml_find_by_index(core->nvml, index, &handle);
    if (rc == NVML_RC_SUCCESS)
        rc = nvml_read_uuid(core->nvml, handle, uuid);
    if (rc != NVML_RC_SUCCESS) {
        if (nvml_rc_kind(rc) != NVML_KIND_ABSENT_LOGGED && !gpu_ends_session(core, rc))
            gpu_count_error(core, rc);
        return rc;
    }
    struct gpu_device *known = gpu_inventory_find(core, uuid);
    if (known)
        meet_again(core, known, handle, index);
    else
        add_gpu(core, handle, uuid, index);
    return rc;
}

/* After a release the new list is the truth. */
static void remove_unseen(struct gpu_core *core)
{
    for (size_t i = 0; i < core->devices.len;) {
        const struct gpu_device *d = &core->devices.items[i];
        if (d->is_seen || d->kind == SNAPSHOT_MIG) {
            i++;
            continue;
        }
        remove_instances(core, d->uuid, false); /* they stand behind their parent: i stays its place */
        remove_at(core, i);
    }
}

/* A GPU that the driver lists no more has fallen off the bus, with or without an Xid (NVSentinel #155). `rc` is why an
 * index could not be opened, or 0. */
static void lose_unseen(struct gpu_core *core, int rc)
{
    for (size_t i = 0; i < core->devices.len; i++) {
        struct gpu_device *d = &core->devices.items[i];
        if (!d->is_seen && !d->is_lost && d->kind != SNAPSHOT_MIG)
            lose(core, d, rc ? nvml_rc_text(rc) : "the driver no longer lists it");
    }
}

/* A count of 0 is a failed look, not an empty machine: everything stays as it was, and ages. */
static void enumerate(struct gpu_core *core, uint32_t count)
{
    int last_rc = NVML_RC_SUCCESS;
    core->count = count;
    for (size_t i = 0; i < core->devices.len; i++)
        core->devices.items[i].is_seen = false;
    for (uint32_t i = 0; i < count && i < SNAPSHOT_DEVICES_MAX; i++) {
        int rc = enumerate_one(core, i);
        if (core->ending_rc)
            return;
        if (rc != NVML_RC_SUCCESS)
            last_rc = rc;
    }
    /* Opening a broken GPU may block: less often then. */
    int64_t wait_ns = last_rc == NVML_RC_SUCCESS ? core->config.slow_period_ns : core->config.retry_max_ns;
    core->next_inventory_ns = core->clock_ns() + wait_ns;
    if (count == 0)
        return;
    if (core->was_released)
        remove_unseen(core);
    else
        lose_unseen(core, last_rc);
    core->was_released = false;
}

/* ---- MIG ---- */

/* "1g.10gb" is the last word of "NVIDIA H100 80GB HBM3 MIG 1g.10gb"; a driver that leaves it out has the slices. */
static void read_profile(struct gpu_core *core, struct nvml_device *mig, char *out, size_t size)
{
    char name[NVML_NAME_MAX];
    struct nvml_attributes attributes;
    if (nvml_read_name(core->nvml, mig, name) == NVML_RC_SUCCESS) {
        const char *word = strstr(name, " MIG ");
        if (word) {
            copy(out, size, word + strlen(" MIG "));
            return;
        }
    }
    if (nvml_read_mig_attributes(core->nvml, mig, &attributes) != NVML_RC_SUCCESS)
        return;
    unsigned gib = (unsigned)((attributes.memory_mib + 512) / 1024);
    if (attributes.compute_instance_slices != attributes.gpu_instance_slices)
        (void)snprintf(out, size, "%uc.%ug.%ugb", attributes.compute_instance_slices, attributes.gpu_instance_slices,
                       gib);
    else
        (void)snprintf(out, size, "%ug.%ugb", attributes.gpu_instance_slices, gib);
}

static void add_instance(struct gpu_core *core, const char *parent_uuid, struct nvml_device *mig, const char *uuid)
{
    struct nvml_mig_ids ids;
    const struct snapshot_device *parent = snapshot_store_find(core->store, parent_uuid);
    if (!parent || nvml_read_mig_ids(core->nvml, mig, &ids) != NVML_RC_SUCCESS)
        return; /* destroyed meanwhile, or asked again in the next cycle */
    struct gpu_device device = {.handle = mig,
                                .kind = SNAPSHOT_MIG,
                                .gpu_instance = ids.gpu_instance,
                                .compute_instance = ids.compute_instance,
                                .is_seen = true};
    copy(device.uuid, sizeof(device.uuid), uuid);
    copy(device.parent_uuid, sizeof(device.parent_uuid), parent_uuid);
    struct snapshot_device identity = {.kind = SNAPSHOT_MIG,
                                       .index = parent->index,
                                       .minor = parent->minor,
                                       .gpu_instance = (int)ids.gpu_instance,
                                       .compute_instance = (int)ids.compute_instance};
    copy(identity.uuid, sizeof(identity.uuid), uuid);
    copy(identity.parent_uuid, sizeof(identity.parent_uuid), parent_uuid);
    copy(identity.product, sizeof(identity.product), parent->product);
    copy(identity.pci_bus_id, sizeof(identity.pci_bus_id), parent->pci_bus_id);
    copy(identity.serial, sizeof(identity.serial), parent->serial);
    read_profile(core, mig, identity.mig_profile, sizeof(identity.mig_profile));
    struct gpu_device *gpu = gpu_inventory_find(core, parent_uuid);
    struct nvml_gpu_instance_info info;
    if (gpu && nvml_read_mig_placement(core->nvml, gpu->handle, ids.gpu_instance, &info) == NVML_RC_SUCCESS) {
        identity.placement_start = info.start;
        identity.placement_size = info.size;
    }
    (void)add(core, &device, &identity);
}

/* Same UUID, other handle or instance: the layout was made anew between two cycles (UUIDs are derived from the shape),
 * so samples of before say nothing about it. */
static bool is_same_instance(struct gpu_core *core, const struct gpu_device *d, struct nvml_device *mig)
{
    struct nvml_mig_ids ids;
    if (d->handle == mig)
        return true;
    return nvml_read_mig_ids(core->nvml, mig, &ids) == NVML_RC_SUCCESS && ids.gpu_instance == d->gpu_instance &&
           ids.compute_instance == d->compute_instance;
}

static void meet_instance(struct gpu_core *core, const char *parent_uuid, struct nvml_device *mig, const char *uuid)
{
    struct gpu_device *known = gpu_inventory_find(core, uuid);
    if (known && !is_same_instance(core, known, mig)) {
        remove_at(core, (size_t)(known - core->devices.items));
        known = NULL;
    }
    if (!known) {
        add_instance(core, parent_uuid, mig, uuid);
        return;
    }
    if (known->handle != mig)
        gpu_gpm_reset(core, known);
    known->handle = mig;
    known->is_seen = true;
}

/* The indexes are sparse. A failure other than "nothing there" says nothing about the rest: the list stays as it was.
 */
static void enumerate_instances(struct gpu_core *core, struct nvml_device *gpu, const char *gpu_uuid)
{
    uint32_t max = 0;
    int rc = nvml_read_mig_max(core->nvml, gpu, &max);
    for (size_t i = 0; i < core->devices.len; i++)
        core->devices.items[i].is_seen = false;
    for (uint32_t i = 0; i < max && rc == NVML_RC_SUCCESS; i++) {
        struct nvml_device *mig;
        char uuid[NVML_UUID_MAX];
        rc = nvml_find_mig(core->nvml, gpu, i, &mig);
        if (rc == NVML_RC_SUCCESS)
            rc = nvml_read_uuid(core->nvml, mig, uuid);
        if (rc == NVML_RC_SUCCESS)
            meet_instance(core, gpu_uuid, mig, uuid);
        else if (rc == NVML_RC_NOT_FOUND || rc == NVML_RC_INVALID_ARGUMENT)
            rc = NVML_RC_SUCCESS;
    }
    if (rc == NVML_RC_SUCCESS) {
        remove_instances(core, gpu_uuid, true);
        return;
    }
    if (!gpu_ends_session(core, rc))
        gpu_count_error(core, rc);
}

/* With MIG on, the GPU gives other readings: it becomes another device of the snapshot, with no past. */
static void change_kind(struct gpu_core *core, const char *uuid, enum snapshot_kind kind)
{
    struct gpu_device *d = gpu_inventory_find(core, uuid);
    struct snapshot_device *place = snapshot_store_find(core->store, uuid);
    if (!d || !place)
        return;
    struct snapshot_device identity = *place;
    identity.kind = d->kind = kind;
    snapshot_store_remove(core->store, uuid);
    (void)snapshot_store_add(core->store, &identity);
    snapshot_store_sort(core->store);
    gpu_gpm_reset(core, d);
    gpu_plan_reset(core, d);
    gpu_process_fini(d);
}

static void refresh_mig(struct gpu_core *core, struct gpu_device *d)
{
    struct nvml_mig_mode mode = {0};
    char uuid[SNAPSHOT_UUID_MAX];
    struct nvml_device *handle = d->handle;
    int rc = nvml_read_mig_mode(core->nvml, handle, &mode);
    if (nvml_rc_kind(rc) == NVML_KIND_GPU_LOST)
        gpu_inventory_lose(core, d, rc);
    if (gpu_ends_session(core, rc) || nvml_rc_kind(rc) == NVML_KIND_GPU_LOST)
        return;
    if (nvml_rc_kind(rc) == NVML_KIND_TRANSIENT) {
        gpu_count_error(core, rc);
        return;
    }
    d->is_mig_incapable = rc != NVML_RC_SUCCESS;
    struct snapshot_device *place = snapshot_store_find(core->store, d->uuid);
    if (place)
        place->is_mig_pending = rc == NVML_RC_SUCCESS && mode.is_on != mode.is_pending_on;
    bool is_on = rc == NVML_RC_SUCCESS && mode.is_on;
    copy(uuid, sizeof(uuid), d->uuid); /* d moves when devices come and go */
    if (is_on != (d->kind == SNAPSHOT_MIG_PARENT))
        change_kind(core, uuid, is_on ? SNAPSHOT_MIG_PARENT : SNAPSHOT_GPU);
    if (is_on)
        enumerate_instances(core, handle, uuid);
    else
        remove_instances(core, uuid, false);
}

/* Devices come and go while this runs: GPUs that were added stand behind, MIG devices are passed over. */
static void refresh_all_mig(struct gpu_core *core)
{
    for (size_t i = 0; i < core->devices.len && !core->ending_rc; i++) {
        struct gpu_device *d = &core->devices.items[i];
        if (d->kind != SNAPSHOT_MIG && !d->is_lost && d->handle && !d->is_mig_incapable)
            refresh_mig(core, d);
    }
}

void gpu_inventory_refresh(struct gpu_core *core)
{
    uint32_t count = 0;
    int rc = core->count_rc = nvml_read_count(core->nvml, &count);
    if (rc != NVML_RC_SUCCESS) {
        if (!gpu_ends_session(core, rc))
            gpu_count_error(core, rc);
        return;
    }
    if (count != core->count || core->clock_ns() >= core->next_inventory_ns)
        enumerate(core, count);
    if (!core->ending_rc)
        probe_lost(core);
    if (!core->ending_rc)
        refresh_all_mig(core);
}
