/* workload: the value of what a ScaledObject scales, from the GPUs that its own pods hold, wherever they run. It puts
 * together what the Kubernetes API says of the workload, what the agents say of its pods' devices, and what this hub
 * remembers, gives that to scaling/ and says why. It reads no socket and no clock: facts and ages come in, an answer
 * comes out. The rules: scaling-semantics 1, 2 and 3 (scope cluster). */
#ifndef WORKLOAD_WORKLOAD_H
#define WORKLOAD_WORKLOAD_H

#include "base/base.h"
#include "fleet/fleet.h"
#include "kube/kube.h"
#include "scaling/scaling.h"
#include "signals/signals.h"
#include "trigger/trigger.h"

/* ---- what comes in ---- */

/* Where a pod's own metrics page may be, as the API says it. No text is NULL. */
struct workload_place {
    const char *ns, *pod, *ip; /* "" no address yet */
    const char *annotated_port, *annotated_path, *annotated_scheme;
    const struct kube_port *ports;
    size_t n_ports;
};

/* Where nodes and engines' pages are found: fleet_find_node and engine_page, or a test's own. */
struct workload_fleet {
    const struct fleet_node *(*find_node)(void *context, const char *name);
    const struct fleet_node *const *(*nodes)(void *context, size_t *ret_n);
    int (*want)(void *context, const struct fleet_want *want);
    /* The page of a pod, fetched from now on as often as the trigger's windows need; valid until the next turn. NULL
     * and *ret_why (static or the arena's text) where it cannot be asked. Optional: without it no page is read. */
    const struct signals_feed *(*page)(void *context, const struct workload_place *place, const struct trigger *t,
                                       const char **ret_why);
    /* The page of vllmEndpoint, tritonEndpoint (scope cluster) or wakeEndpoint, likewise. Optional. */
    const struct signals_feed *(*endpoint)(void *context, const char *url, const char *ns, const char *metric,
                                           const struct trigger *t, const char **ret_why);
    void *context;
};

/* A pod of the workload with what the hub remembers of it. Made from kube_pod; owns its texts. */
struct workload_pod;

/* X(id, sentence). Why the HPA's type, target and tolerance are known, or not. */
#define WORKLOAD_HPA_STATES(X)                                                                                         \
    X(KNOWN, "read from the HPA")                                                                                      \
    X(NOT_MADE, "KEDA has not made the HPA yet: AverageValue is assumed")                                              \
    X(NOT_PERMITTED, "HPAs may not be read: AverageValue is assumed")                                                  \
    X(NOT_READ, "HPAs have not been read yet")
enum workload_hpa_state {
#define X(id, sentence) WORKLOAD_HPA_##id,
    WORKLOAD_HPA_STATES(X)
#undef X
};

/* All that the API says of one ScaledObject (or ScaledJob) and what it scales. Texts and arrays are the caller's. */
struct workload_facts {
    const char *ns, *name;                 /* of the ScaledObject */
    bool is_api_synced;                    /* the lists that these facts come from were complete once */
    bool is_job;                           /* a ScaledJob */
    bool is_known;                         /* the ScaledObject was found, or podSelector stands in for it */
    const char *target_kind, *target_name; /* "" unknown */
    bool is_scale_known;                   /* C and S below are of one read of /scale that still stands */
    char scale_error[SNAPSHOT_TEXT_MAX];   /* why not; "" */
    int64_t spec, status;                  /* C, S */
    double api_now_s;                      /* the API server's clock, wall seconds; ages of its times are taken by it */
    struct workload_pod *const *pods;      /* of /scale's selector, in order of name */
    size_t n_pods;
    enum workload_hpa_state hpa_state;
    const struct kube_hpa *hpa; /* NULL unless KNOWN */
    const struct kube_scaled_object
        *scaled_object;                      /* for the trigger's metric type, modifiers and lint; NULL unknown */
    const struct trigger_settings *settings; /* by which its triggers are read; NULL: the hub's, without entries */
    double default_tolerance;                /* --hpa-tolerance: 0.1 */
    /* ScaledObjects and other HPAs that are known to scale this target; 0 not counted. For lint. */
    size_t n_scalers;
    /* How many simulated GPUs each pod gets on a node whose agent simulates and lists no holder; 0 = none. */
    unsigned simulated_gpus_per_pod;
};

/* ---- what the hub remembers ---- */

/* A new pod, first seen at now_ns; whether it was seen before it became Ready decides `was_first_ready_seen`. */
struct workload_pod *workload_pod_new(const struct kube_pod *pod, int64_t now_ns);
void workload_pod_free(struct workload_pod *p); /* accepts NULL */
/* The API has told the pod again. At the change to Ready the integrals of its devices are taken down. */
void workload_pod_update(struct workload_pod *p, const struct kube_pod *pod, const struct workload_fleet *fleet,
                         int64_t now_ns);
const char *workload_pod_name(const struct workload_pod *p);
const char *workload_pod_node(const struct workload_pod *p);

/* What is remembered of one trigger of one ScaledObject: since when places are empty and readings missing, last good
 * values, the last question and answer. */
struct workload_memory;
struct workload_memory *workload_memory_new(const struct trigger *t); /* takes a reference of the trigger */
void workload_memory_free(struct workload_memory *m);                 /* accepts NULL */
const struct trigger *workload_memory_trigger(const struct workload_memory *m);
/* Look at the facts without a question, every few seconds: what is remembered must not depend on who asks when. */
void workload_memory_look(struct workload_memory *m, const struct workload_facts *facts,
                          const struct workload_fleet *fleet, int64_t now_ns);

/* What the trigger was asked last, and what the answer was. */
struct workload_asked {
    int64_t value_ns, active_ns; /* when, on the caller's clock; 0: never */
    double value;
    bool is_active;
    struct err value_error, active_error; /* class NONE: value and is_active hold */
};

/* ---- the answer ---- */

/* A device of a pod as it counted. */
struct workload_device {
    const struct fleet_node *node;
    const struct fleet_device *device;
    const struct fleet_holder *holder; /* NULL: given to the pod because its node simulates */
    struct scaling_device counted;     /* in the metric's unit */
    double age_s;                      /* of the newest sample; < 0 never */
};
/* A pod as it counted. */
struct workload_input {
    const struct workload_pod *pod;
    const struct scaling_pod *counted;
    const struct scaling_replica *replica; /* in result.items: its own, or its group's; NULL: nothing was evaluated, or
                                              it is the member of a group that has no GPU, beside others that have */
    const struct fleet_node *node;         /* NULL: not scheduled, or no agent of its node is known */
    struct workload_device *devices;
    size_t n_devices;
    const char *text;                  /* why a reading is missing: the node, its agent, the driver, the page; "" */
    const struct signals_feed *feed;   /* its page, where it is asked for; NULL */
    const struct signals_answer *page; /* what that says of the signal; NULL */
    const char *page_text;             /* why it says nothing, also where GPUs are read in its place; "" */
};

/* By what the pods of a workload are measured: X(id, name, sentence). */
#define WORKLOAD_MODES(X)                                                                                              \
    X(BY_GPU, "gpu", "by the GPUs that the pods hold")                                                                 \
    X(BY_PAGE, "page", "by the pods' own metrics pages")
enum workload_mode {
#define X(id, name, sentence) WORKLOAD_##id,
    WORKLOAD_MODES(X)
#undef X
};

/* One of several signals of a trigger, as if it were the only one. */
struct workload_part {
    const struct trigger *trigger;
    enum workload_mode mode;
    struct scaling_rules rules;
    struct scaling_result result;
    const struct workload_input *inputs; /* as of the answer */
};

struct workload_answer {
    const struct trigger *trigger;
    int64_t now_ns;
    bool is_cluster; /* scope cluster: `cluster` below, no pods */
    /* scope workload */
    enum workload_mode mode;
    struct scaling_rules rules;
    struct scaling_hpa hpa;
    struct scaling_result result;
    struct scaling_answer sent;
    const struct workload_input *inputs; /* in the arena, in the order of facts->pods */
    size_t n_inputs;
    /* Of a trigger with several signals; result combines them, and mode, rules and inputs are those of the one that
     * decided, or of the first. 0 and NULL of others. */
    const struct workload_part *parts;
    size_t n_parts;
    enum scaling_wake wake; /* what wakeMetric says of demand, and in words; "" where there is none */
    const char *wake_text;
    /* scope cluster */
    struct trigger_evaluation cluster;
    size_t n_nodes, n_silent_nodes; /* all, and those that never said what they have */
    /* both: what GetMetrics and IsActive answer */
    double value;
    struct err value_error;
    bool is_active, is_above;
    struct err active_error;
    const struct workload_asked *last; /* the question before this one, if workload_memory_note was told of it */
};
/* An arena for scope cluster holds about 170 bytes for each device that counts: 16 MiB for 80,000; for scope workload
 * about 1000 for each pod and place, and 200 for each of its devices, for each signal. RESOURCE_EXHAUSTED beyond it.
 * Scope workload from the facts, scope cluster from all nodes; scope node is FAILED_PRECONDITION here. Never fails:
 * errors are in *ret, which refers to the facts, the fleet and the arena. `facts` NULL: scope cluster only. */
void workload_evaluate(struct workload_memory *m, const struct workload_facts *facts,
                       const struct workload_fleet *fleet, int64_t now_ns, struct arena *arena,
                       struct workload_answer *ret);

/* The answer goes to who asked: from here on it is the last one. */
void workload_memory_note(struct workload_memory *m, enum trigger_question asked, const struct workload_answer *answer);

/* Where the answer comes from, in sentences for people (several lines) and as one JSON object (docs/explain.md): the
 * rule with its numbers, each pod and device with state and age, clamps, what the HPA will make of it, and warnings. */
void workload_explain_text(const struct workload_facts *facts, const struct workload_answer *answer, struct buf *out);
void workload_explain_json(const struct workload_facts *facts, const struct workload_answer *answer, struct json *out);

/* ---- lint: scaling-semantics 7 ---- */

/* Sentences about what this ScaledObject can never do or will do wrong; one call of `told` each, with the id of the row
 * (docs/explain.md). Needs facts->hpa or facts->scaled_object; says nothing about what is not known, nor in scope node.
 */
void workload_lint(const struct workload_facts *facts, const struct trigger *t,
                   void (*told)(void *context, const char *id, const char *sentence), void *context);

#endif
