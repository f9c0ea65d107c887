/* From the id of a device, as plugins and drivers write it, to the device of a snapshot. Resource names do not matter:
 * administrators rename them. */
#include "attribution/attribution_private.h"

#include <string.h>

enum { UUID_CHARS = 36, GPU_UUID_CHARS = 40 /* with "GPU-" */ };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_alphanumeric(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Take a decimal number of at most 9 digits off the front. */
static bool take_number(struct str *rest, int *ret)
{
    int value = 0;
    size_t n = 0;
    for (; n < rest->len && n < 10 && is_digit(rest->ptr[n]); n++)
        value = n < 9 ? value * 10 + (rest->ptr[n] - '0') : value;
    if (n == 0 || n == 10)
        return false;
    *rest = (struct str){rest->ptr + n, rest->len - n};
    *ret = value;
    return true;
}

static bool take_word(struct str *rest, const char *word)
{
    if (!str_has_prefix(*rest, word))
        return false;
    size_t n = strlen(word);
    *rest = (struct str){rest->ptr + n, rest->len - n};
    return true;
}

/* Is the text a number and nothing else? */
static bool is_number(struct str text, int *ret)
{
    int number;
    if (!take_number(&text, &number) || text.len > 0)
        return false;
    *ret = number;
    return true;
}

static bool has_uuid_shape(struct str text)
{
    for (size_t i = 0; i < UUID_CHARS; i++) {
        bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (i >= text.len || (is_dash ? text.ptr[i] != '-' : !is_alphanumeric(text.ptr[i])))
            return false;
    }
    return true;
}

/* ---- devices of the snapshot ---- */

static const struct snapshot_device *find_uuid(const struct snapshot *s, struct str uuid)
{
    char text[SNAPSHOT_UUID_MAX];
    return s && uuid.len && str_copy(text, sizeof(text), uuid) ? snapshot_find_device(s, text) : NULL;
}

static const struct snapshot_device *find_minor(const struct snapshot *s, int minor)
{
    for (size_t i = 0; s && i < s->n_devices; i++)
        if (s->devices[i].kind != SNAPSHOT_MIG && s->devices[i].minor == minor)
            return &s->devices[i];
    return NULL;
}

/* The MIG device of a GPU by its instances; compute_instance -1: the first. */
static const struct snapshot_device *find_instance(const struct snapshot *s, const struct snapshot_device *gpu,
                                                   int gpu_instance, int compute_instance)
{
    for (size_t i = 0; gpu && i < s->n_devices; i++) {
        const struct snapshot_device *d = &s->devices[i];
        if (d->kind == SNAPSHOT_MIG && d->gpu_instance == gpu_instance && strcmp(d->parent_uuid, gpu->uuid) == 0 &&
            (compute_instance < 0 || d->compute_instance == compute_instance))
            return d;
    }
    return NULL;
}

/* ---- the forms ---- */

/* MIG-GPU-<uuid>/<gpu instance>/<compute instance>: drivers before R470. */
static bool read_old_mig(struct str id, const struct snapshot *s, struct attribution_device *ret)
{
    struct str rest = id;
    if (!take_word(&rest, "MIG-GPU-"))
        return false;
    struct str uuid = {id.ptr + strlen("MIG-"), id.len - strlen("MIG-")};
    struct str instances = uuid;
    uuid = str_cut(&instances, '/');
    struct str compute = instances;
    struct str gpu = str_cut(&compute, '/');
    int gi, ci;
    ret->uuid = id;
    if (instances.ptr && compute.ptr && is_number(gpu, &gi) && is_number(compute, &ci))
        ret->device = find_instance(s, find_uuid(s, uuid), gi, ci);
    return true;
}

/* GPU-<uuid>, and GPU-<uuid>-<share> of plugins that split GPUs by themselves. MIG-<uuid>. */
static bool read_uuid(struct str id, struct attribution_device *ret)
{
    struct str rest = id;
    bool is_gpu = take_word(&rest, "GPU-"), is_mig = !is_gpu && take_word(&rest, "MIG-");
    if (!is_gpu && !is_mig)
        return false;
    ret->uuid = id;
    if (!is_gpu || !has_uuid_shape(rest) || id.len == GPU_UUID_CHARS)
        return true;
    struct str share = {id.ptr + GPU_UUID_CHARS, id.len - GPU_UUID_CHARS};
    if (!take_word(&share, "-") || !is_number(share, &ret->replica))
        return true; /* no form that is known: matches no device */
    ret->is_shared = true;
    ret->uuid.len = GPU_UUID_CHARS;
    return true;
}

/* nvidia<minor> and nvidia<minor>/gi<gpu instance>: GKE. */
static bool read_device_file(struct str id, const struct snapshot *s, struct attribution_device *ret)
{
    struct str rest = id;
    int minor, gi;
    if (!take_word(&rest, "nvidia") || !take_number(&rest, &minor))
        return false;
    const struct snapshot_device *gpu = find_minor(s, minor);
    if (rest.len == 0) {
        ret->device = gpu;
        return true;
    }
    if (!take_word(&rest, "/gi") || !is_number(rest, &gi))
        return false;
    ret->device = find_instance(s, gpu, gi, -1);
    return true;
}

/* "tegra": the one GPU of a Jetson; "all": WSL2. Other plugins may use such words, so here the resource counts. */
static bool read_word(struct str id, struct str resource, const struct snapshot *s, struct attribution_device *ret)
{
    if (!str_has_prefix(resource, "nvidia.com/"))
        return false;
    ret->is_all = str_equals(id, "all");
    if (str_equals(id, "tegra") && s && s->n_devices == 1)
        ret->device = &s->devices[0];
    return ret->is_all || str_equals(id, "tegra");
}

/* Cut "::<n>" (time-slicing, MPS) and "/vgpu<n>" (GKE) off the end. */
static struct str cut_replica(struct str id, struct attribution_device *ret)
{
    for (size_t i = 0; i + 1 < id.len; i++) {
        if (id.ptr[i] != ':' || id.ptr[i + 1] != ':')
            continue;
        ret->is_shared = true;
        (void)is_number((struct str){id.ptr + i + 2, id.len - i - 2}, &ret->replica);
        id.len = i;
        break;
    }
    size_t slash = id.len;
    while (slash > 0 && id.ptr[slash - 1] != '/')
        slash--;
    struct str last = {id.ptr + slash, id.len - slash};
    if (slash > 0 && take_word(&last, "vgpu") && is_number(last, &ret->replica)) {
        ret->is_shared = true;
        id.len = slash - 1;
    }
    return id;
}

struct attribution_device attribution_resolve_id(struct str id, struct str resource, const struct snapshot *s)
{
    struct attribution_device ret = {.replica = -1};
    id = cut_replica(id, &ret);
    ret.device = find_uuid(s, id); /* as NVML spells it, whatever the form: drivers before R470 too */
    ret.is_gpu = ret.device || read_old_mig(id, s, &ret) || read_uuid(id, &ret) || read_device_file(id, s, &ret) ||
                 read_word(id, resource, s, &ret);
    if (!ret.device)
        ret.device = find_uuid(s, ret.uuid);
    return ret;
}

/* ---- DRA ---- */

/* Cut the part after the last dash off the end. */
static struct str cut_last(struct str *rest)
{
    size_t dash = rest->len;
    while (dash > 0 && rest->ptr[dash - 1] != '-')
        dash--;
    struct str last = {rest->ptr + dash, rest->len - dash};
    rest->len = dash > 0 ? dash - 1 : 0;
    return last;
}

/* Is "1g20gb-me" the profile "1g.20gb+me"? Names of devices keep letters and digits only. */
static bool is_profile(struct str name, const char *profile)
{
    size_t i = 0;
    for (; *profile; profile++) {
        if (!is_alphanumeric(*profile))
            continue;
        while (i < name.len && !is_alphanumeric(name.ptr[i]))
            i++;
        if (i == name.len || name.ptr[i++] != *profile)
            return false;
    }
    return i == name.len;
}

/* Which MIG device a DRA name means. */
struct wanted {
    struct str profile; /* empty: any */
    int start, size;    /* memory slices; size 0: any */
};

static bool is_wanted(const struct snapshot_device *d, const struct wanted *w)
{
    if (w->profile.len && !is_profile(w->profile, d->mig_profile))
        return false;
    return d->placement_size == 0 ||
           (d->placement_start == (uint32_t)w->start && (w->size == 0 || d->placement_size == (uint32_t)w->size));
}

/* The one MIG device that fits; NULL where several do: without the right to monitor MIG the driver gives no placements.
 */
static const struct snapshot_device *find_placed(const struct snapshot *s, const struct snapshot_device *gpu,
                                                 const struct wanted *w)
{
    const struct snapshot_device *found = NULL;
    for (size_t i = 0; gpu && i < s->n_devices; i++) {
        const struct snapshot_device *d = &s->devices[i];
        if (d->kind != SNAPSHOT_MIG || strcmp(d->parent_uuid, gpu->uuid) != 0 || !is_wanted(d, w))
            continue;
        if (found)
            return NULL;
        found = d;
    }
    return found;
}

/* gpu-<minor>; MIG up to driver 25.8 gpu-<minor>-mig-<profile id>-<start>-<size>, from 25.12
 * gpu-<minor>-mig-<profile>-<profile id>-<start>. gpu-vfio-<n> is passed through: NVML does not see it. */
struct attribution_device attribution_resolve_dra(struct str driver, struct str name, const struct snapshot *s)
{
    struct attribution_device ret = {.replica = -1};
    int minor, first, second, profile_id;
    if (!str_equals(driver, "gpu.nvidia.com") || !take_word(&name, "gpu-") || !take_number(&name, &minor))
        return ret;
    const struct snapshot_device *gpu = find_minor(s, minor);
    ret.is_gpu = true;
    if (name.len == 0) {
        ret.device = gpu;
        return ret;
    }
    if (!take_word(&name, "-mig-") || !is_number(cut_last(&name), &second) || !is_number(cut_last(&name), &first))
        return ret;
    struct wanted wanted = {.profile = name, .start = second};
    if (is_number(name, &profile_id))
        wanted = (struct wanted){.start = first, .size = second};
    ret.device = find_placed(s, gpu, &wanted);
    return ret;
}
