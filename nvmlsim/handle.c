/* Interned device handles: one per GPU and per compute instance that was ever seen, never freed. */
#include "nvmlsim/sim.h"

#include <string.h>

enum { HANDLES_MAX = 2048 };

static struct nvml_device handles[HANDLES_MAX];
static size_t n_handles;

bool sim_is_handle(const struct nvml_device *device)
{
    uintptr_t at = (uintptr_t)device, first = (uintptr_t)handles;
    return at >= first && at < first + n_handles * sizeof(handles[0]) && (at - first) % sizeof(handles[0]) == 0;
}

struct nvml_device *sim_handle(const struct gpu *g, const struct mig_instance *gi, const struct compute_instance *ci)
{
    const char *mig_uuid = ci ? ci->uuid : "";
    for (size_t i = 0; i < n_handles; i++)
        if (!strcmp(handles[i].gpu_uuid, g->uuid) && !strcmp(handles[i].mig_uuid, mig_uuid))
            return &handles[i];
    if (n_handles == HANDLES_MAX)
        return NULL;
    struct nvml_device *h = &handles[n_handles++];
    memcpy(h->gpu_uuid, g->uuid, sizeof(h->gpu_uuid));
    h->is_mig = ci != NULL;
    h->gpu_instance = gi ? gi->id : NVML_NONE_U32;
    h->compute_instance = ci ? ci->id : NVML_NONE_U32;
    (void)str_copy(h->mig_uuid, sizeof(h->mig_uuid), str_of(mig_uuid));
    return h;
}
