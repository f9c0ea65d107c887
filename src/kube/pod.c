/* Pods: which containers use GPUs, since when the last of them runs, the Ready condition, and what they say of their
 * metrics pages. */
#include "kube/kube_private.h"

#include <string.h>

enum { CONTAINERS_MAX = 1024 };

struct container {
    const char *name;
    bool is_gpu;
};
struct containers {
    struct container *list;
    size_t n, n_gpu;
};

/* Limits of nvidia.com/gpu, nvidia.com/gpu.shared and nvidia.com/mig-...; requests always equal limits for these. */
static bool uses_gpu(struct kube_reader *r, const struct kube_at *container)
{
    struct kube_at resources = kube_at_object(r, container, "resources");
    struct kube_at limits = kube_at_object(r, &resources, "limits");
    struct kube_at claims = kube_at_array(r, &resources, "claims");
    double amount;
    for (void *i = json_object_iter(limits.json); i; i = json_object_iter_next(limits.json, i)) {
        const char *key = json_object_iter_key(i);
        if (str_has_prefix(str_of(key), "nvidia.com/") && kube_at_quantity(r, &limits, key, &amount) && amount > 0)
            return true;
    }
    return kube_at_len(&claims) > 0;
}

static bool is_sidecar(struct kube_reader *r, const struct kube_at *init_container)
{
    return strcmp(kube_at_text(r, init_container, "restartPolicy", ""), "Always") == 0;
}

static void read_containers(struct kube_reader *r, const struct kube_at *spec, const char *key, bool sidecars_only,
                            struct containers *into)
{
    struct kube_at list = kube_at_array(r, spec, key);
    for (size_t i = 0; i < kube_at_len(&list) && !r->is_failed; i++) {
        struct kube_at at = kube_at_item(r, &list, i);
        if (sidecars_only && !is_sidecar(r, &at))
            continue;
        struct container *c = &into->list[into->n++];
        c->name = kube_at_text(r, &at, "name", "");
        c->is_gpu = uses_gpu(r, &at);
        into->n_gpu += c->is_gpu;
    }
}

/* Containers and restartable init containers. */
static struct containers read_all(struct kube_reader *r, const struct kube_at *spec)
{
    struct kube_at normal = kube_at_array(r, spec, "containers"), init = kube_at_array(r, spec, "initContainers");
    struct containers all = {0};
    size_t n = kube_at_len(&normal) + kube_at_len(&init);
    if (n > CONTAINERS_MAX)
        kube_refuse(r, spec, NULL, "has more than 1024 containers");
    all.list = (struct container *)kube_reader_alloc(r, n, sizeof(*all.list));
    read_containers(r, spec, "containers", false, &all);
    read_containers(r, spec, "initContainers", true, &all);
    return all;
}

static bool counts(const struct containers *all, const char *name)
{
    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->list[i].name, name) == 0)
            return all->list[i].is_gpu || all->n_gpu == 0;
    return false;
}

/* ---- ports ---- */

/* The TCP ports of one container; what is beyond the room is left out: a page is on one of the first. */
static void read_ports(struct kube_reader *r, const struct kube_at *container, struct kube_pod *ret)
{
    struct kube_at list = kube_at_array(r, container, "ports");
    for (size_t i = 0; i < kube_at_len(&list) && !r->is_failed && ret->n_ports < KUBE_PORTS_MAX; i++) {
        struct kube_at at = kube_at_item(r, &list, i);
        int64_t number = kube_at_int(r, &at, "containerPort", 0);
        bool is_tcp = strcmp(kube_at_text(r, &at, "protocol", "TCP"), "TCP") == 0;
        if (!is_tcp || number < 1 || number > 65535)
            continue; /* a hint for where to look; the pod counts all the same */
        struct kube_port port = {.name = kube_at_text(r, &at, "name", ""), .number = (uint16_t)number};
        ret->ports[ret->n_ports++] = port;
    }
}

/* Those of containers that use GPUs, or of all others. */
static void read_ports_of(struct kube_reader *r, const struct kube_at *spec, bool of_gpu, struct kube_pod *ret)
{
    static const char *const keys[] = {"containers", "initContainers"};
    for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
        struct kube_at list = kube_at_array(r, spec, keys[k]);
        for (size_t i = 0; i < kube_at_len(&list) && !r->is_failed; i++) {
            struct kube_at at = kube_at_item(r, &list, i);
            bool is_running_long = k == 0 || is_sidecar(r, &at);
            if (is_running_long && uses_gpu(r, &at) == of_gpu)
                read_ports(r, &at, ret);
        }
    }
}

/* ---- status ---- */

static double latest_start(struct kube_reader *r, const struct kube_at *status, const char *key,
                           const struct containers *all)
{
    double latest_s = 0;
    struct kube_at list = kube_at_array(r, status, key);
    if (kube_at_len(&list) > CONTAINERS_MAX)
        kube_refuse(r, &list, NULL, "has more than 1024 entries");
    for (size_t i = 0; i < kube_at_len(&list) && !r->is_failed; i++) {
        struct kube_at at = kube_at_item(r, &list, i);
        struct kube_at state = kube_at_object(r, &at, "state");
        struct kube_at running = kube_at_object(r, &state, "running");
        double started_s = kube_at_time(r, &running, "startedAt");
        if (started_s > latest_s && counts(all, kube_at_text(r, &at, "name", "")))
            latest_s = started_s;
    }
    return latest_s;
}

static void read_ready(struct kube_reader *r, const struct kube_at *status, struct kube_pod *ret)
{
    struct kube_at list = kube_at_array(r, status, "conditions");
    for (size_t i = 0; i < kube_at_len(&list) && !r->is_failed && !ret->has_condition; i++) {
        struct kube_at at = kube_at_item(r, &list, i);
        if (strcmp(kube_at_text(r, &at, "type", ""), "Ready") != 0)
            continue;
        ret->has_condition = true;
        ret->is_ready = strcmp(kube_at_text(r, &at, "status", ""), "True") == 0;
        ret->condition_s = kube_at_time(r, &at, "lastTransitionTime");
    }
}

static enum kube_phase phase_of(const char *text)
{
    static const char *const names[] = {[KUBE_PENDING] = "Pending",
                                        [KUBE_RUNNING] = "Running",
                                        [KUBE_SUCCEEDED] = "Succeeded",
                                        [KUBE_FAILED] = "Failed"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(text, names[i]) == 0)
            return (enum kube_phase)i;
    return KUBE_PHASE_UNKNOWN;
}

/* A label that is a number from 0 on; -1 where it is not there, or is not one: a label is anybody's text. */
static int64_t number_label(struct kube_reader *r, const struct kube_at *root, const char *key)
{
    int64_t number;
    const char *text = kube_read_mark(r, root, "labels", key);
    return text && num_parse_i64(str_of(text), &number) == 0 && number >= 0 ? number : -1;
}

static const char *annotation(struct kube_reader *r, const struct kube_at *root, const char *key)
{
    const char *text = kube_read_mark(r, root, "annotations", key);
    return text ? text : "";
}

void kube_read_pod(struct kube_reader *r, const struct kube_at *root, struct kube_pod *ret)
{
    kube_read_meta(r, root, &ret->meta);
    struct kube_at spec = kube_at_object(r, root, "spec"), status = kube_at_object(r, root, "status");
    ret->node = kube_at_text(r, &spec, "nodeName", "");
    ret->ip = kube_at_text(r, &status, "podIP", "");
    ret->phase = phase_of(kube_at_text(r, &status, "phase", ""));
    read_ready(r, &status, ret);
    struct containers all = read_all(r, &spec);
    double started_s = latest_start(r, &status, "containerStatuses", &all);
    double sidecar_s = latest_start(r, &status, "initContainerStatuses", &all);
    ret->started_s = started_s > sidecar_s ? started_s : sidecar_s;
    ret->requests_gpu = all.n_gpu > 0;
    read_ports_of(r, &spec, true, ret);
    read_ports_of(r, &spec, false, ret);
    ret->group = number_label(r, root, "leaderworkerset.sh/group-index");
    ret->worker = number_label(r, root, "leaderworkerset.sh/worker-index");
    ret->annotated_port = annotation(r, root, "prometheus.io/port");
    ret->annotated_path = annotation(r, root, "prometheus.io/path");
    ret->annotated_scheme = annotation(r, root, "prometheus.io/scheme");
}
