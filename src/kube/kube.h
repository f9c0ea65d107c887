/* kube: a client of the Kubernetes API that reads (get, list, watch), and writes nothing but Secrets. It owns the
 * configuration (in a cluster or a kubeconfig file), the API server's clock, retries and the decoding of the few kinds
 * that the hub knows. What the objects mean for a value is not its business (workload). Nothing here blocks the loop.
 */
#ifndef KUBE_KUBE_H
#define KUBE_KUBE_H

#include "base/base.h"
#include "net/net.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- the client ---- */

struct kube;
struct kube_config {
    struct net_loop *loop;
    struct metrics *metrics;         /* keda_gpu_scaler_kube_* */
    const char *kubeconfig;          /* path; NULL: the files and variables of a pod */
    const char *service_account_dir; /* NULL = /var/run/secrets/kubernetes.io/serviceaccount */
    int64_t timeout_ns;              /* of a get or one page of a list; 0 = 10 s */
};
/* Reads the configuration; the API server is not asked yet. NULL and INVALID_ARGUMENT naming what is wrong: a file that
 * cannot be read, exec and auth-provider plugins (refused with what to use in their place), no configuration at all. */
struct kube *kube_new(const struct kube_config *config, struct err *e);
/* Watches and reads that are left end without a callback and are freed with it. Accepts NULL; also from inside any
 * callback. */
void kube_free(struct kube *k);
const char *kube_server(const struct kube *k);    /* "https://10.96.0.1:443" */
const char *kube_namespace(const struct kube *k); /* of this pod or of the kubeconfig's context; "default" if unsaid */

/* Wall clock time in seconds as the API server has it now: the Date header of its last answer (in whole seconds) and
 * what has passed since on the monotonic clock. False before the first answer. */
bool kube_now_s(const struct kube *k, double *ret_now_s);

/* ---- objects. All texts are valid during the callback only; none is NULL. Times are wall clock seconds, 0 unknown. */

struct kube_meta {
    const char *ns, *name, *uid, *resource_version;
    double created_s;
    bool is_deleted; /* has a deletionTimestamp */
};

enum kube_phase { KUBE_PENDING, KUBE_RUNNING, KUBE_SUCCEEDED, KUBE_FAILED, KUBE_PHASE_UNKNOWN };
enum { KUBE_PORTS_MAX = 16 };
struct kube_port {
    const char *name; /* "" none */
    uint16_t number;
};
/* GPU containers: those with limits "nvidia.com/..." or resource claims, init sidecars included; all if none is. */
struct kube_pod {
    struct kube_meta meta;
    const char *node; /* spec.nodeName; "" not scheduled */
    const char *ip;   /* status.podIP; "" */
    enum kube_phase phase;
    bool has_condition, is_ready; /* the Ready condition: is it there, is it True */
    double condition_s;           /* its lastTransitionTime */
    double started_s;             /* the latest startedAt of running GPU containers; 0 none runs */
    bool requests_gpu;            /* a container has a limit "nvidia.com/..." above 0 or a claim */
    int64_t group;                /* label leaderworkerset.sh/group-index; -1 none */
    int64_t worker;               /* label leaderworkerset.sh/worker-index; -1 none, 0 the leader */
    /* annotations prometheus.io/port, /path and /scheme; "" */
    const char *annotated_port, *annotated_path, *annotated_scheme;
    struct kube_port ports[KUBE_PORTS_MAX]; /* TCP containerPorts, those of GPU containers first */
    size_t n_ports;
};

struct kube_pair {
    const char *key, *value;
};
/* A trigger of type external or external-push. */
struct kube_trigger {
    const char *type;
    const char *metric_type; /* "AverageValue", "Value"; "" where unsaid, which means AverageValue */
    const struct kube_pair *metadata;
    size_t n_metadata;
};
struct kube_scaled_object {
    struct kube_meta meta;
    const char *target_api_version, *target_kind, *target_name; /* defaults filled in: apps/v1, Deployment */
    const char *hpa_name;                                       /* status.hpaName; "" not made yet */
    const struct kube_trigger *triggers;
    size_t n_triggers;       /* of ours: external and external-push */
    size_t n_other_triggers; /* of other types: something else may wake the workload */
    bool has_modifiers;      /* advanced.scalingModifiers.formula */
    bool is_paused;
    int64_t min, max; /* minReplicaCount (0), maxReplicaCount (100) */
    bool has_fallback;
    const char *fallback_behavior; /* "static" by default; "" without a fallback */
    int64_t fallback_replicas;
};
/* Known to be a job's: name and namespace are all that matters. */
struct kube_scaled_job {
    struct kube_meta meta;
};

enum { KUBE_POLICIES_MAX = 8, KUBE_METRICS_MAX = 32 };
struct kube_policy {
    bool is_percent; /* else pods */
    int64_t value, period_s;
};
struct kube_direction {
    bool has_window, has_tolerance;
    int64_t window_s;
    double tolerance;   /* 0.1 is 10 % */
    const char *select; /* "Max" where unsaid, "Min", "Disabled" */
    struct kube_policy policies[KUBE_POLICIES_MAX];
    size_t n_policies;
};
struct kube_hpa_metric { /* of type External only */
    const char *name;    /* "s0-keda_gpu_vllm_inference" */
    bool is_value;       /* target.type Value; else AverageValue */
    double target;       /* as the quantity says, to a thousandth */
};
struct kube_hpa {
    struct kube_meta meta;
    const char *target_api_version, *target_kind, *target_name;
    int64_t min, max;
    bool has_behavior;
    struct kube_direction up, down;
    struct kube_hpa_metric metrics[KUBE_METRICS_MAX];
    size_t n_metrics;
    int64_t desired; /* status.desiredReplicas */
};

struct kube_endpoint {
    const char *address, *node, *pod; /* the first address; nodeName and targetRef.name, "" unknown */
    bool is_terminating;
};
struct kube_endpoint_slice {
    struct kube_meta meta;
    const char *service; /* label kubernetes.io/service-name */
    struct {
        const char *name;
        uint16_t number;
    } ports[16];
    size_t n_ports;
    const struct kube_endpoint *endpoints; /* ready or not: an agent that is not ready may answer */
    size_t n_endpoints;
};

/* X(id, plural, API path before the namespace, struct) */
#define KUBE_KINDS(X)                                                                                                  \
    X(POD, "pods", "/api/v1", pod)                                                                                     \
    X(SCALED_OBJECT, "scaledobjects", "/apis/keda.sh/v1alpha1", scaled_object)                                         \
    X(SCALED_JOB, "scaledjobs", "/apis/keda.sh/v1alpha1", scaled_job)                                                  \
    X(HPA, "horizontalpodautoscalers", "/apis/autoscaling/v2", hpa)                                                    \
    X(ENDPOINT_SLICE, "endpointslices", "/apis/discovery.k8s.io/v1", endpoint_slice)
enum kube_kind {
#define X(id, plural, path, type) KUBE_##id,
    KUBE_KINDS(X)
#undef X
        KUBE_KIND_COUNT
};

/* One object of any kind. */
struct kube_object {
    enum kube_kind kind;
    struct kube_meta meta; /* a copy of the member's own */
    union {
        const struct kube_pod *pod;
        const struct kube_scaled_object *scaled_object;
        const struct kube_scaled_job *scaled_job;
        const struct kube_hpa *hpa;
        const struct kube_endpoint_slice *endpoint_slice;
    };
};

/* One object from its JSON (a pod, not a list), in the arena. Fields that are not there have their defaults; fields of
 * the wrong type are an error that names them. 0, or -1 and INVALID_ARGUMENT. For the watch, tests and fuzzing. */
int kube_decode(enum kube_kind kind, struct str body, struct arena *arena, struct kube_object *ret, struct err *e);

/* ---- watch ---- */

struct kube_watch;
struct kube_watch_config {
    enum kube_kind kind;
    const char *ns;             /* NULL: all namespaces; copied, as the two below */
    const char *label_selector; /* NULL: all */
    const char *field_selector; /* NULL: all */
    size_t max_objects;         /* more are refused with an error; 0 = 100,000 */
    /* Added, or changed (after a new list also where nothing changed). */
    void (*changed)(void *context, const struct kube_object *object);
    /* No longer there, or no longer selected. */
    void (*gone)(void *context, const char *ns, const char *name, const char *uid);
    /* All objects of a list were told, and what is gone since the last one too. Optional. */
    void (*synced)(void *context);
    /* A try failed; another one comes by itself. Also for one object that cannot be decoded, with its name: it is not
     * gone. A place that expired (410) is no failure. PERMISSION_DENIED and NOT_FOUND (no such resource, as where KEDA
     * is not installed) too. Optional. */
    void (*failed)(void *context, const struct err *error);
    void *context;
};
/* Lists in pages of 500, then watches with bookmarks from there on; lists again after 410 and where the server lost the
 * place. Failures back off with full jitter, 1 s to 30 s. Callbacks never come from inside this function. A watch holds
 * a connection (with TLS about 80 kB): few watches over many objects are better than many watches. */
struct kube_watch *kube_watch_start(struct kube *k, const struct kube_watch_config *config);
void kube_watch_free(struct kube_watch *w); /* accepts NULL; also from inside its callbacks */
/* Was there a complete list, ever? */
bool kube_watch_is_synced(const struct kube_watch *w);
/* For how long nothing was heard from the API server by this watch: events, bookmarks and answers count; 0 while a
 * watch connection is open and healthy. */
int64_t kube_watch_silent_ns(const struct kube_watch *w, int64_t now_ns);

/* ---- the scale subresource ---- */

struct kube_scale {
    int64_t spec, status; /* spec.replicas, status.replicas of one read */
    const char *selector; /* status.selector as text: "app=x,tier in (a,b)" */
};
/* GET of .../<plural>/<name>/scale of any kind that has one; the plural comes from the API's discovery, kept for ten
 * minutes. done is called once, never from inside: scale NULL and the error (NOT_FOUND: no such object; UNIMPLEMENTED:
 * the kind has no scale subresource; PERMISSION_DENIED; UNAVAILABLE), or the scale, valid during the call. */
struct kube_get;
struct kube_target {
    const char *api_version, *kind, *ns, *name; /* copied */
};
struct kube_get *kube_get_scale(struct kube *k, const struct kube_target *target,
                                void (*done)(void *context, const struct kube_scale *scale, const struct err *error),
                                void *context);
void kube_get_cancel(struct kube_get *get); /* not after done; done is not called */

/* ---- Secrets, for the command that keeps certificates; agents and hubs have no right to any ---- */

enum { KUBE_SECRET_ITEMS_MAX = 8 };
struct kube_secret {
    struct kube_meta meta; /* ns, name; resource_version "": to be created, else the version that is replaced */
    const char *type;      /* "kubernetes.io/tls" */
    struct kube_pair items[KUBE_SECRET_ITEMS_MAX]; /* decoded; others, and what is no text, are left alone */
    size_t n_items;
    const struct kube_pair *labels, *annotations; /* to be written */
    size_t n_labels, n_annotations;
    bool is_helms, is_kept; /* read: part of a release, kept when that loses it (helm.sh/resource-policy: keep) */
};
/* One at a time. done is called once, never from inside, also with an error: NOT_FOUND, FAILED_PRECONDITION (somebody
 * else wrote meanwhile), PERMISSION_DENIED, UNAVAILABLE, DEADLINE_EXCEEDED. kube_free ends it without a call. The
 * secret, its texts too, is valid during the call. keys: those to be read, NULL-terminated. */
typedef void kube_secret_done(void *context, const struct kube_secret *secret, const struct err *error);
struct kube_secret_name {
    const char *ns, *name;
    const char *const *keys;
};
void kube_secret_get(struct kube *k, const struct kube_secret_name *what, kube_secret_done *done, void *context);
/* Create it, or lay items, labels and annotations over those of that version. The answer has no items. */
void kube_secret_put(struct kube *k, const struct kube_secret *secret, kube_secret_done *done, void *context);

#endif
