/* From an agent's page of metrics to a sample. What this machine's sampler reads comes through the same page, so that
 * both sources mean the same by every value. */
#include "cli/top.h"

#include "promtext/promtext.h"

#include <math.h>
#include <string.h>

#define PREFIX "keda_gpu_scaler_"

static const struct {
    const char *family;
    double scale;
} values[] = {
#define X(id, key, header, family, scale, form, view) {family, scale},
    TOP_VALUES(X)
#undef X
};

void top_sample_fini(struct top_sample *sample)
{
    for (size_t i = 0; i < sample->devices.len; i++)
        vec_fini(&sample->devices.items[i].pods);
    vec_fini(&sample->devices);
}

static struct str label(const struct promtext_read_sample *s, const char *name)
{
    for (size_t i = 0; i < s->n_labels; i++)
        if (str_equals(s->labels[i].name, name))
            return s->labels[i].value;
    return (struct str){"", 0};
}

static void copy_label(char *out, size_t size, const struct promtext_read_sample *s, const char *name)
{
    (void)str_copy(out, size, label(s, name));
}

/* A label that is a whole number, or -1. */
static int number_label(const struct promtext_read_sample *s, const char *name)
{
    int64_t number;
    return num_parse_i64(label(s, name), &number) == 0 && number >= 0 && number < 1 << 20 ? (int)number : -1;
}

/* The sample's device, made when this is the first of its samples; NULL without a UUID and when there are too many. */
static struct top_device *device_of(struct top_sample *sample, const struct promtext_read_sample *s)
{
    struct str uuid = label(s, "uuid");
    if (!uuid.len || uuid.len >= SNAPSHOT_UUID_MAX)
        return NULL;
    for (size_t i = 0; i < sample->devices.len; i++)
        if (str_equals(uuid, sample->devices.items[i].uuid))
            return &sample->devices.items[i];
    if (sample->devices.len == TOP_DEVICES_MAX)
        return NULL;
    struct top_device device = {.index = number_label(s, "gpu"),
                                .gpu_instance = -1,
                                .compute_instance = -1,
                                .age_seconds = (double)NAN,
                                .kind = str_has_prefix(uuid, "MIG-") ? SNAPSHOT_MIG : SNAPSHOT_GPU};
    for (size_t i = 0; i < TOP_VALUE_COUNT; i++)
        device.values[i] = (double)NAN;
    (void)str_copy(device.uuid, sizeof(device.uuid), uuid);
    vec_push(&sample->devices, device);
    return &sample->devices.items[sample->devices.len - 1];
}

static void read_identity(struct top_device *d, const struct promtext_read_sample *s)
{
    struct str kind = label(s, "kind");
    if (kind.len)
        d->kind = str_equals(kind, "mig")          ? SNAPSHOT_MIG
                  : str_equals(kind, "mig_parent") ? SNAPSHOT_MIG_PARENT
                                                   : SNAPSHOT_GPU;
    copy_label(d->name, sizeof(d->name), s, "product");
    copy_label(d->parent_uuid, sizeof(d->parent_uuid), s, "parent_uuid");
    copy_label(d->mig_profile, sizeof(d->mig_profile), s, "mig_profile");
    copy_label(d->pci_bus_id, sizeof(d->pci_bus_id), s, "pci_bus_id");
    copy_label(d->serial, sizeof(d->serial), s, "serial");
    d->gpu_instance = number_label(s, "gpu_instance");
    d->compute_instance = number_label(s, "compute_instance");
}

/* A ratio of 0.29 is 29 %, not 28.999999999999996. */
static double scaled(double value, double scale)
{
    return scale <= 1 ? value : round(value * scale * 1e6) / 1e6;
}

/* The pod's row on the sample's device, made when this is the first of its samples; NULL when there are too many. The
 * kubelet's answer has no UIDs: a row without one is the pod of that name. */
static struct top_pod *pod_of(struct top_sample *sample, const struct promtext_read_sample *s)
{
    struct top_device *d = device_of(sample, s);
    struct str ns = label(s, "pod_namespace"), name = label(s, "pod_name"), uid = label(s, "pod_uid");
    for (size_t i = 0; d && i < d->pods.len; i++) {
        struct top_pod *pod = &d->pods.items[i];
        bool is_named = str_equals(ns, pod->ns) && str_equals(name, pod->name);
        if (!is_named || (*pod->uid && uid.len && !str_equals(uid, pod->uid)))
            continue;
        if (!*pod->uid)
            (void)str_copy(pod->uid, sizeof(pod->uid), uid);
        return pod;
    }
    if (!d || sample->n_pods == TOP_PODS_MAX)
        return NULL;
    struct top_pod pod = {.utilization_percent = (double)NAN, .memory_used_bytes = (double)NAN};
    (void)str_copy(pod.ns, sizeof(pod.ns), ns);
    (void)str_copy(pod.name, sizeof(pod.name), name);
    (void)str_copy(pod.uid, sizeof(pod.uid), uid);
    vec_push(&d->pods, pod);
    sample->n_pods++;
    return &d->pods.items[d->pods.len - 1];
}

static void read_owner(struct top_sample *sample, const struct promtext_read_sample *s)
{
    struct top_pod *pod = pod_of(sample, s);
    if (!pod)
        return;
    pod->is_listed = true;
    pod->is_shared = str_equals(label(s, "sharing"), "shared");
    int shares = number_label(s, "shares");
    pod->shares += shares > 0 ? shares : 0;
}

/* Families of what a pod does on a device. */
static void read_pod(struct top_sample *sample, struct str family, const struct promtext_read_sample *s)
{
    bool is_utilization = str_equals(family, "utilization_ratio");
    if ((!is_utilization && !str_equals(family, "memory_used_bytes")) || !isfinite(s->value) || s->value < 0)
        return;
    struct top_pod *pod = pod_of(sample, s);
    sample->has_pods = true;
    if (pod && is_utilization)
        pod->utilization_percent = scaled(s->value, 100);
    else if (pod)
        pod->memory_used_bytes = s->value;
}

static void read_device(struct top_sample *sample, struct str family, const struct promtext_read_sample *s)
{
    if (str_equals(family, "owner_info")) {
        read_owner(sample, s);
        return;
    }
    bool is_info = str_equals(family, "info"), is_up = str_equals(family, "up");
    bool is_age = str_equals(family, "reading_age_seconds");
    size_t at = 0;
    while (at < TOP_VALUE_COUNT && !str_equals(family, values[at].family))
        at++;
    if ((!is_info && !is_up && !is_age && at == TOP_VALUE_COUNT) || !isfinite(s->value) || s->value < 0)
        return;
    struct top_device *d = device_of(sample, s);
    if (!d)
        return;
    if (is_info)
        read_identity(d, s);
    else if (is_up)
        d->is_lost = s->value < 0.5;
    else if (is_age)
        d->age_seconds = s->value;
    else
        d->values[at] = scaled(s->value, values[at].scale);
}

static void read_node(struct top_sample *sample, struct str family, const struct promtext_read_sample *s)
{
    if (str_equals(family, "nvml_up"))
        sample->is_up = s->value > 0.5;
    else if (str_equals(family, "nvml_state") && s->value > 0.5)
        copy_label(sample->state, sizeof(sample->state), s, "state");
    else if (str_equals(family, "snapshot_age_seconds") && isfinite(s->value) && s->value >= 0)
        sample->age_seconds = s->value;
    else if (str_equals(family, "nvml_info"))
        copy_label(sample->driver_version, sizeof(sample->driver_version), s, "driver_version");
    else if (str_equals(family, "owners_state") && s->value > 0.5)
        copy_label(sample->owners, sizeof(sample->owners), s, "state");
    else if (str_equals(family, "owners_age_seconds"))
        sample->has_pods = true; /* there is an answer of the kubelet's */
    else if (str_equals(family, "build_info"))
        copy_label(sample->node, sizeof(sample->node), s, "node_name");
}

static void on_sample(void *context, const struct promtext_read_sample *s)
{
    static const size_t node = sizeof(PREFIX) - 1, device = sizeof(PREFIX "gpu_") - 1,
                        pod = sizeof(PREFIX "pod_gpu_") - 1;
    if (str_has_prefix(s->name, PREFIX "pod_gpu_"))
        read_pod(context, (struct str){s->name.ptr + pod, s->name.len - pod}, s);
    else if (str_has_prefix(s->name, PREFIX "gpu_"))
        read_device(context, (struct str){s->name.ptr + device, s->name.len - device}, s);
    else if (str_has_prefix(s->name, PREFIX))
        read_node(context, (struct str){s->name.ptr + node, s->name.len - node}, s);
}

int top_read(struct str page, struct top_sample *ret_sample, struct err *e)
{
    size_t bad_lines;
    *ret_sample = (struct top_sample){.age_seconds = (double)NAN};
    if (promtext_read(page, on_sample, ret_sample, &bad_lines, e) < 0)
        return -1;
    if (*ret_sample->state)
        return 0;
    return err_set(e, ERR_FAILED_PRECONDITION, "the page is not one of an agent: it has no " PREFIX "nvml_state");
}

int64_t top_collected_ns(const struct top_sample *sample, int64_t wall_ns)
{
    if (isnan(sample->age_seconds) || sample->age_seconds > 1e9)
        return 0;
    return wall_ns - (int64_t)(sample->age_seconds * 1e9);
}

/* Is the line of one of the families that are shown, whether a sample or a comment? */
static bool is_line_shown(struct str line)
{
    static const char *const starts[] = {PREFIX "gpu_",       PREFIX "pod_gpu_",  PREFIX "nvml_up",
                                         PREFIX "nvml_state", PREFIX "nvml_info", PREFIX "snapshot_age"};
    for (size_t i = 0; i < 2; i++)
        if (str_has_prefix(line, i ? "# TYPE " : "# HELP "))
            line = (struct str){line.ptr + 7, line.len - 7};
    for (size_t i = 0; i < ARRAY_LEN(starts); i++)
        if (str_has_prefix(line, starts[i]))
            return true;
    return false;
}

void top_render_prom(struct str page, struct buf *out)
{
    while (page.ptr) {
        struct str line = str_cut(&page, '\n');
        if (!is_line_shown(line))
            continue;
        (void)buf_append(out, line.ptr, line.len);
        (void)buf_append_char(out, '\n');
    }
}

/* ---- the job's devices ---- */

size_t top_choose(struct top_sample *sample, const struct job_plan *plan, struct buf *note)
{
    size_t n = sample->devices.len, n_kept = 0;
    struct top_device *d = sample->devices.items;
    MEM_AUTO struct job_seen *seen = (struct job_seen *)mem_new_array(n + 1, sizeof(*seen));
    MEM_AUTO bool *is_chosen = (bool *)mem_new_array(n + 1, sizeof(*is_chosen));
    for (size_t i = 0; i < n; i++)
        seen[i] = (struct job_seen){.uuid = d[i].uuid,
                                    .parent_uuid = d[i].kind == SNAPSHOT_MIG ? d[i].parent_uuid : "",
                                    .pci_bus_id = d[i].pci_bus_id,
                                    .model = d[i].name,
                                    .index = d[i].index,
                                    .gi = d[i].gpu_instance,
                                    .ci = d[i].compute_instance};
    size_t n_missing = job_match(plan, seen, n, is_chosen, note);
    for (size_t i = 0; i < n; i++) {
        if (is_chosen[i])
            d[n_kept++] = d[i];
        else
            vec_fini(&d[i].pods);
    }
    sample->devices.len = n_kept;
    return n_missing;
}
