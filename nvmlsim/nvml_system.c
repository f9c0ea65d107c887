/* The library and driver as a whole, and the ways to a device handle. */
#include "nvmlsim/sim.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Never NULL, also for codes that do not exist; needs no init. Texts that people search for are NVIDIA's own. */
const char *nvmlErrorString(int rc)
{
    static const struct {
        int rc;
        const char *text;
    } texts[] = {{NVML_RC_DRIVER_NOT_LOADED, "Driver Not Loaded"},
                 {NVML_RC_GPU_IS_LOST, "GPU is lost"},
                 {NVML_RC_LIB_RM_VERSION_MISMATCH, "Driver/library version mismatch"},
                 {NVML_RC_IN_USE, "In use by another client"},
                 {NVML_RC_UNKNOWN, "Unknown Error"},
#define X(name, theirs, number, text) {number, text},
                 NVML_RETURN_CODES(X)
#undef X
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (texts[i].rc == rc)
            return texts[i].text;
    return "Unknown Error";
}

const char *nvmlsimName(void)
{
    return "nvmlsim";
}

int nvmlSystemGetDriverVersion(char *text, uint32_t size)
{
    SIM_CALL(c);
    return sim_text(text, size, c.player->scenario->driver);
}

/* Works without init since R535; the simulation then tells the default version, as it has not read the scenario yet. */
int nvmlSystemGetNVMLVersion(char *text, uint32_t size)
{
    struct sim_call c __attribute__((cleanup(sim_end)));
    int rc = sim_begin(&c, __func__);
    if (rc == NVML_RC_UNINITIALIZED)
        return sim_text(text, size, "12." SCENARIO_DEFAULT_DRIVER);
    return rc == NVML_RC_SUCCESS ? sim_text(text, size, c.player->scenario->nvml) : rc;
}

int nvmlSystemGetCudaDriverVersion(int32_t *version)
{
    SIM_CALL(c);
    if (!version)
        return NVML_RC_INVALID_ARGUMENT;
    *version = c.player->scenario->cuda;
    return NVML_RC_SUCCESS;
}

int nvmlSystemGetCudaDriverVersion_v2(int32_t *version)
{
    SIM_CALL(c);
    if (!version)
        return NVML_RC_INVALID_ARGUMENT;
    *version = c.player->scenario->cuda;
    return NVML_RC_SUCCESS;
}

/* The real one needs the process's namespaces, too. */
int nvmlSystemGetProcessName(uint32_t pid, char *text, uint32_t size)
{
    SIM_CALL(c);
    char path[32];
    BUF_AUTO struct buf line;
    buf_init(&line, 65536);
    (void)snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
    if (!text || size == 0)
        return NVML_RC_INVALID_ARGUMENT;
    if (file_read(path, &line, NULL) < 0)
        return NVML_RC_NOT_FOUND;
    (void)str_copy(text, size, str_of(buf_cstr(&line)));
    return NVML_RC_SUCCESS;
}

/* ---- counts and handles ---- */

int nvmlDeviceGetCount_v2(uint32_t *n)
{
    SIM_CALL(c);
    return sim_u32(n, (uint32_t)player_gpu_count(c.player, c.t_s));
}

int nvmlDeviceGetCount(uint32_t *n)
{
    SIM_CALL(c);
    return sim_u32(n, (uint32_t)player_gpu_count(c.player, c.t_s));
}

/* Hand out GPU `index`, unless a fault of it says no. */
static int give_gpu(struct sim_call *c, size_t index, struct nvml_device **ret_device)
{
    int rc = sim_judge_gpu(c, index);
    if (rc != NVML_RC_SUCCESS)
        return rc;
    struct nvml_device *handle = sim_handle(&c->player->scenario->gpus[index], NULL, NULL);
    if (!handle)
        return NVML_RC_MEMORY;
    *ret_device = handle;
    return NVML_RC_SUCCESS;
}

static int by_index(struct sim_call *c, uint32_t index, struct nvml_device **device)
{
    if (!device || index >= player_gpu_count(c->player, c->t_s))
        return NVML_RC_INVALID_ARGUMENT;
    return give_gpu(c, index, device);
}

int nvmlDeviceGetHandleByIndex_v2(uint32_t index, struct nvml_device **device)
{
    SIM_CALL(c);
    return by_index(&c, index, device);
}

int nvmlDeviceGetHandleByIndex(uint32_t index, struct nvml_device **device)
{
    SIM_CALL(c);
    return by_index(&c, index, device);
}

static bool is_old_mig_name(const char *text, const struct gpu *g, const struct mig_instance *gi,
                            const struct compute_instance *ci)
{
    char name[80];
    (void)snprintf(name, sizeof(name), "MIG-%s/%u/%u", g->uuid, gi->id, ci->id);
    return !strcasecmp(text, name);
}

/* The MIG device with this name on GPU `index`; false when it has none. */
static bool find_mig(const struct sim_call *c, const char *uuid, size_t index, const struct mig_instance **ret_gi,
                     const struct compute_instance **ret_ci)
{
    const struct gpu *g = &c->player->scenario->gpus[index];
    const struct mig_layout *l = player_layout(g, c->t_s);
    for (size_t i = 0; i < l->n_instances; i++)
        for (size_t k = 0; k < l->instances[i].n_compute; k++) {
            *ret_gi = &l->instances[i];
            *ret_ci = &l->instances[i].compute[k];
            if (!strcasecmp((*ret_ci)->uuid, uuid) || is_old_mig_name(uuid, g, *ret_gi, *ret_ci))
                return true;
        }
    return false;
}

static int mig_by_uuid(struct sim_call *c, const char *uuid, size_t index, struct nvml_device **device)
{
    const struct mig_instance *gi;
    const struct compute_instance *ci;
    if (!find_mig(c, uuid, index, &gi, &ci))
        return NVML_RC_NOT_FOUND;
    int rc = sim_judge_gpu(c, index);
    if (rc != NVML_RC_SUCCESS)
        return rc;
    if (!find_mig(c, uuid, index, &gi, &ci)) /* again: judging may have waited, and the scenario changed */
        return NVML_RC_NOT_FOUND;
    struct nvml_device *handle = sim_handle(&c->player->scenario->gpus[index], gi, ci);
    if (!handle)
        return NVML_RC_MEMORY;
    *device = handle;
    return NVML_RC_SUCCESS;
}

/* "GPU-...", "MIG-..." and the older "MIG-GPU-.../gi/ci". */
int nvmlDeviceGetHandleByUUID(const char *uuid, struct nvml_device **device)
{
    SIM_CALL(c);
    if (!uuid || !device || (strncasecmp(uuid, "GPU-", 4) != 0 && strncasecmp(uuid, "MIG-", 4) != 0))
        return NVML_RC_INVALID_ARGUMENT;
    for (size_t i = 0; i < player_gpu_count(c.player, c.t_s); i++) {
        if (!strcasecmp(c.player->scenario->gpus[i].uuid, uuid))
            return give_gpu(&c, i, device);
        if (strncasecmp(uuid, "MIG-", 4) != 0)
            continue;
        int rc = mig_by_uuid(&c, uuid, i, device);
        if (rc != NVML_RC_NOT_FOUND)
            return rc;
    }
    return NVML_RC_NOT_FOUND;
}

int nvmlDeviceGetHandleBySerial(const char *serial, struct nvml_device **device)
{
    SIM_CALL(c);
    if (!serial || !device)
        return NVML_RC_INVALID_ARGUMENT;
    for (size_t i = 0; i < player_gpu_count(c.player, c.t_s); i++)
        if (!strcmp(c.player->scenario->gpus[i].serial, serial))
            return give_gpu(&c, i, device);
    return NVML_RC_NOT_FOUND;
}

static int by_bus_id(struct sim_call *c, const char *bus_id, struct nvml_device **device)
{
    unsigned domain, bus, slot;
    if (!bus_id || !device || sscanf(bus_id, "%8x:%2x:%2x", &domain, &bus, &slot) != 3)
        return NVML_RC_INVALID_ARGUMENT;
    for (size_t i = 0; i < player_gpu_count(c->player, c->t_s); i++) {
        const struct gpu *g = &c->player->scenario->gpus[i];
        if (g->domain == domain && g->bus == bus && g->slot == slot)
            return give_gpu(c, i, device);
    }
    return NVML_RC_NOT_FOUND;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, struct nvml_device **device)
{
    SIM_CALL(c);
    return by_bus_id(&c, bus_id, device);
}

int nvmlDeviceGetHandleByPciBusId(const char *bus_id, struct nvml_device **device)
{
    SIM_CALL(c);
    return by_bus_id(&c, bus_id, device);
}
