/* GPM: the pair of samples of each GPU or GPU instance, between which the driver works out activity. */
#include "gpu/core.h"

/* Refused (rc 4 can come after hours of success, DCGM #214) or unknown: ask again, but slowly. */
static const int64_t refused_retry_ns = 60 * NS_PER_S;
static const int64_t shortest_pair_ns = 100 * NS_PER_MS;

void gpu_gpm_reset(struct gpu_core *core, struct gpu_device *d)
{
    if (core->nvml) {
        nvml_gpm_sample_free(core->nvml, d->gpm.older);
        nvml_gpm_sample_free(core->nvml, d->gpm.newer);
    }
    d->gpm = (struct gpu_gpm){0};
}

/* Support is a property of the chip: a MIG device has it if its parent has. */
static int ask_support(struct gpu_core *core, struct gpu_device *d, struct nvml_device *gpu)
{
    if (!d->gpm.is_known) {
        bool is_supported = false;
        int rc = nvml_gpm_supported(core->nvml, gpu, &is_supported);
        if (nvml_rc_kind(rc) == NVML_KIND_TRANSIENT || gpu_ends_session(core, rc))
            return rc;
        d->gpm.is_known = true;
        d->gpm.is_supported = rc == NVML_RC_SUCCESS && is_supported;
    }
    return d->gpm.is_supported ? NVML_RC_SUCCESS : NVML_RC_NOT_SUPPORTED;
}

static int allocate(struct gpu_core *core, struct gpu_gpm *gpm)
{
    int rc = NVML_RC_SUCCESS;
    if (!gpm->older)
        rc = nvml_gpm_sample_new(core->nvml, &gpm->older);
    if (rc == NVML_RC_SUCCESS && !gpm->newer)
        rc = nvml_gpm_sample_new(core->nvml, &gpm->newer);
    return rc;
}

/* The newest sample becomes the older one, and its place is filled. On failure the pair is seeded anew. */
static int take(struct gpu_core *core, struct gpu_device *d, struct nvml_device *gpu)
{
    struct gpu_gpm *gpm = &d->gpm;
    struct nvml_gpm_sample *reused = gpm->older;
    gpm->older = gpm->newer;
    gpm->older_ns = gpm->newer_ns;
    gpm->newer = reused;
    int rc = d->kind == SNAPSHOT_MIG ? nvml_gpm_take_mig(core->nvml, gpu, d->gpu_instance, gpm->newer)
                                     : nvml_gpm_take(core->nvml, gpu, gpm->newer);
    gpm->newer_ns = rc == NVML_RC_SUCCESS ? core->clock_ns() : 0;
    return rc;
}

static struct nvml_device *gpu_handle(struct gpu_core *core, const struct gpu_device *d)
{
    if (d->kind != SNAPSHOT_MIG)
        return d->handle;
    const struct gpu_device *parent = gpu_inventory_find(core, d->parent_uuid);
    return parent ? parent->handle : NULL;
}

/* A pair that spans more than three periods averages over a gap that nobody sampled: it is dropped. */
static bool is_usable_pair(const struct gpu_core *core, const struct gpu_gpm *gpm)
{
    int64_t span_ns = gpm->newer_ns - gpm->older_ns;
    int64_t longest_ns = 3 * core->config.period_ns;
    if (longest_ns < 5 * NS_PER_S)
        longest_ns = 5 * NS_PER_S;
    return gpm->older_ns && gpm->newer_ns && span_ns >= shortest_pair_ns && span_ns <= longest_ns;
}

int gpu_gpm_read(struct gpu_core *core, struct gpu_device *d, struct nvml_gpm_metric *metrics, size_t len,
                 int64_t *ret_taken_ns)
{
    struct gpu_gpm *gpm = &d->gpm;
    int64_t now_ns = core->clock_ns();
    struct nvml_device *gpu = gpu_handle(core, d);
    if (!gpu || (gpm->newer_ns && now_ns - gpm->newer_ns < shortest_pair_ns))
        return NVML_RC_NOT_READY;
    if (now_ns < gpm->retry_ns)
        return NVML_RC_NO_PERMISSION;
    int rc = ask_support(core, d, gpu);
    if (rc == NVML_RC_SUCCESS)
        rc = allocate(core, gpm);
    if (rc == NVML_RC_SUCCESS)
        rc = take(core, d, gpu);
    if (rc == NVML_RC_NO_PERMISSION)
        gpm->retry_ns = now_ns + refused_retry_ns;
    if (rc != NVML_RC_SUCCESS)
        return rc;
    *ret_taken_ns = gpm->newer_ns;
    if (!is_usable_pair(core, gpm))
        return NVML_RC_NOT_READY;
    return nvml_gpm_read(core->nvml, gpm->older, gpm->newer, metrics, len);
}
