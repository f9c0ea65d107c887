/* scaling: from what is known of pods to the one value sent to KEDA, and what the HPA makes of it. Pure functions on
 * plain structs, without clock, I/O or allocation that outlives a call. The rules are docs/internals/scaling.md, which
 * numbers them as scaling-semantics 2-4 does; the letters T, C, S, R, p, lo and hi are those of that page. */
#ifndef SCALING_SCALING_H
#define SCALING_SCALING_H

#include "base/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A number that may not be known: absent is not zero. `value` is 0 where it is not known. */
struct scaling_maybe {
    bool is_known;
    double value;
};

/* ---- aggregation ---- */

#define SCALING_AGGREGATIONS(X)                                                                                        \
    X(MAX, "max")                                                                                                      \
    X(MIN, "min")                                                                                                      \
    X(AVG, "avg")                                                                                                      \
    X(SUM, "sum")                                                                                                      \
    X(P95, "p95")                                                                                                      \
    X(P99, "p99")

enum scaling_aggregation {
#define X(id, name) SCALING_##id,
    SCALING_AGGREGATIONS(X)
#undef X
        SCALING_AGGREGATION_COUNT
};

const char *scaling_aggregation_name(enum scaling_aggregation aggregation);
/* The aggregation of this name, spelled as in the table. Returns false if there is none. */
bool scaling_find_aggregation(struct str name, enum scaling_aggregation *ret_aggregation);

/* One number from n >= 1 values (finite). Percentiles are nearest rank: element ceil(p * n), counted from 1, of the
 * ascending order. */
double scaling_aggregate(enum scaling_aggregation aggregation, const double *values, size_t n);

/* ---- the HPA's arithmetic ---- */

enum scaling_metric_type { SCALING_AVERAGE_VALUE, SCALING_VALUE };

struct scaling_hpa {
    enum scaling_metric_type type;
    double target;                       /* T, at least 0.001 */
    double tolerance_up, tolerance_down; /* 0.1 unless the HPA says otherwise; >= 0 */
    bool has_modifiers;                  /* scalingModifiers stand between our value and the HPA's target */
};

struct scaling_replicas {
    int64_t spec;   /* C: spec.replicas of /scale */
    int64_t status; /* S: status.replicas, surge pods included */
    int64_t ready;  /* R: running and Ready pods, as the HPA counts them; matters for SCALING_VALUE only */
};

/* A metric in the HPA's unit: whole thousandths, rounded. */
int64_t scaling_milli(double value);

/* The replicas that the HPA proposes for this value, before its bounds and behaviour. keda.md 8.2, 8.3 */
int64_t scaling_hpa_desired(const struct scaling_hpa *hpa, double value, const struct scaling_replicas *replicas);

/* Bounds and `behavior` of an HPA. keda.md 8.6 */
enum scaling_policy_type { SCALING_PODS, SCALING_PERCENT };
struct scaling_policy {
    enum scaling_policy_type type;
    int64_t amount;   /* pods or percent */
    int64_t period_s; /* 1-1800 */
};
enum scaling_select { SCALING_SELECT_MAX, SCALING_SELECT_MIN, SCALING_SELECT_DISABLED };
enum { SCALING_POLICIES_MAX = 8 };
struct scaling_direction {
    int64_t window_s; /* stabilization: 0-3600 */
    enum scaling_select select;
    struct scaling_policy policies[SCALING_POLICIES_MAX];
    size_t n_policies;
};
struct scaling_behaviour {
    int64_t min, max; /* minReplicas, maxReplicas */
    bool is_given; /* false: no `behavior` in the HPA, the older rules: up to max(2 C, 4) a sync, down.window_s down */
    struct scaling_direction up, down;
};
/* `behavior` with what Kubernetes fills in where nothing is said: up by 4 pods or 100 % in 15 s, whichever is more;
 * down by 100 % in 15 s with a window of 300 s. `is_given` chooses whether it is there. */
struct scaling_behaviour scaling_default_behaviour(int64_t min, int64_t max, bool is_given);

/* What the HPA controller remembers of one HPA: proposals and rescales, newest last. Zeroed = just started. 512 of each
 * are an hour at 7 s a sync; older ones are forgotten. */
enum { SCALING_HISTORY_MAX = 512 };
struct scaling_history {
    struct scaling_event {
        int64_t at_s, count;
    } proposals[SCALING_HISTORY_MAX], ups[SCALING_HISTORY_MAX], downs[SCALING_HISTORY_MAX];
    size_t n_proposals, n_ups, n_downs;
};

/* One sync with a valid proposal at `now_s`: the count that the HPA sets in place of `spec`, noted in *history. */
int64_t scaling_hpa_limit(const struct scaling_behaviour *behaviour, struct scaling_history *history, int64_t now_s,
                          int64_t spec, int64_t proposal);

/* ---- 2.2: the devices of a pod -> its value ---- */

/* X(id, how devices make one number, ceiling (0: none), whose share of a device shared in time). */
#define SCALING_KINDS(X)                                                                                               \
    X(UTILIZATION, MEAN, 100, FAIR)      /* own share of what the pod could fairly have */                             \
    X(RATIO, MEAN, 100, FAIR)            /* activities and other ratios: shares are not measured, only split */        \
    X(MEMORY_PERCENT, MEAN, 100, MEMORY) /* own / (own + free) */                                                      \
    X(MEMORY_SIZE, SUM, 0, OWN)          /* MiB: the pod's own */                                                      \
    X(ADDITIVE, SUM, 0, OWN)             /* watts, bytes per second */                                                 \
    X(TEMPERATURE, MAX, 0, WHOLE)        /* the same for everybody on the device */
enum scaling_kind {
#define X(id, combine, ceiling, share) SCALING_KIND_##id,
    SCALING_KINDS(X)
#undef X
        SCALING_KIND_COUNT
};
/* What no reading can exceed: 100 for ratios; 0 where there is no such number. */
double scaling_kind_ceiling(enum scaling_kind kind);

/* How a reading stands. X(id, name, sentence about a pod). */
#define SCALING_READINGS(X)                                                                                            \
    X(OK, "read", "read")                                                                                              \
    X(NOT_YET, "not_yet", "its agent answers, and the first sample is not due yet")                                    \
    X(MISSING, "missing", "a reading failed or is too old, or its node has no agent")                                  \
    X(UNSUPPORTED, "unsupported", "none of its devices has this metric")                                               \
    X(UNSHARED, "unshared", "its share of a GPU with other holders cannot be told")                                    \
    X(UNDECIDED, "undecided", "it is not known yet whether its memory says anything about load")
enum scaling_reading {
#define X(id, name, sentence) SCALING_READ_##id,
    SCALING_READINGS(X)
#undef X
        SCALING_READ_COUNT
};
const char *scaling_reading_name(enum scaling_reading reading);
const char *scaling_reading_sentence(enum scaling_reading reading);

/* One device of a pod (a MIG slice is one), in the unit of the metric. */
struct scaling_device {
    enum scaling_reading reading; /* OK, MISSING or UNSUPPORTED */
    double value;                 /* 2.1: mean over the window; of a shared device D, what all its holders do */
    unsigned holders;             /* pods that hold the device; 0 and 1: this one alone */
    unsigned own_holders;         /* of them pods of this workload */
    bool has_shares;              /* per-process data: the three below are known */
    double share;                 /* s: this pod's part (memory: what it uses) */
    double share_sum;             /* of all holders */
    unsigned sharers;             /* n: holders with a share above 0 */
    double free;                  /* memory kinds: free memory, in the unit of `share` and `value` */
};

/* 100 s / max(s + 100 - D, 100 / n): what the pod does of what it could fairly have. D is taken as at least share_sum
 * and at most 100. 0 if s = 0. */
double scaling_fair_share(double share, double device, double share_sum, unsigned sharers);
/* 100 own / (own + free); not known if both are 0. */
struct scaling_maybe scaling_memory_share(double own, double free);

struct scaling_pod_value {
    enum scaling_reading reading; /* OK, MISSING, UNSUPPORTED or UNSHARED */
    double value;                 /* p where OK */
    double bound;                 /* the upper bound D where UNSHARED */
    size_t n_unsupported;         /* devices left out */
};
/* p of a pod that holds these n devices. Without a device: MISSING. */
void scaling_combine_devices(enum scaling_kind kind, const struct scaling_device *devices, size_t n,
                             struct scaling_pod_value *ret_value);

/* ---- 2.3: pods ---- */

enum scaling_phase {
    SCALING_PHASE_PENDING,
    SCALING_PHASE_RUNNING,
    SCALING_PHASE_SUCCEEDED,
    SCALING_PHASE_FAILED,
    SCALING_PHASE_UNKNOWN
};

/* One signal of one pod. */
struct scaling_load {
    struct scaling_maybe window;      /* p: the mean over `window`, clipped to the time that the pod holds the device */
    struct scaling_maybe since_ready; /* the mean since the pod became Ready, at most over `window` */
    struct scaling_maybe peak;        /* the largest sample of `activationWindow` */
    double weight; /* with rules.is_weighted: how many requests `window` is the mean of; 0: none, it says nothing */
    /* The most requests that ran or waited at once in `activationWindow`. Where it is known the pod is active with any
     * of them, and `peak` is not compared with the threshold. 4 */
    struct scaling_maybe in_flight;
};

/* What a memory metric needs beside its own readings; all in the unit of the metric. 2.7 */
struct scaling_memory {
    double full;                                      /* all memory of the pod's devices: 100 for percent */
    double history_s;                                 /* how far back, since Ready, the agents remember */
    struct scaling_maybe lowest, highest;             /* in that time */
    struct scaling_maybe lowest_10min, highest_10min; /* in the last 10 minutes of it */
    struct scaling_load utilization;                  /* percent */
};

/* What is known of a pod. Ages are seconds on the API server's clock; one just below 0, by its rounding, is 0. */
struct scaling_pod {
    enum scaling_phase phase;
    bool is_deleted;                      /* has a deletionTimestamp */
    bool is_ready;                        /* the Ready condition is True */
    double created_age_s;                 /* creationTimestamp */
    struct scaling_maybe condition_age_s; /* lastTransitionTime of the Ready condition */
    struct scaling_maybe started_age_s;   /* the latest startedAt of its GPU containers */
    bool was_first_ready_seen;            /* this hub saw it become Ready for the first time */
    bool has_gpu;                         /* requests one (limits `nvidia.com/...`, claims) or holds one */
    int64_t group;                        /* leaderworkerset.sh/group-index; negative: a replica by itself */
    enum scaling_reading reading;         /* of `load`; every other value than OK says why p is not known */
    double
        missing_for_s; /* this hub's clock: since when a reading that it needs is missing, or its node has no agent */
    struct scaling_load load;
    struct scaling_maybe bound;     /* D, where the reading is UNSHARED */
    struct scaling_maybe last_good; /* p when it was last known to this hub */
    struct scaling_memory memory;   /* read only if the rules say `is_memory` */
};

/* The states, in the page's order: X(id, name, badness in a group), and when. */
#define SCALING_POD_STATES(X)                                                                                          \
    X(GONE, "gone", 9)                 /* being deleted (deletionTimestamp), Succeeded, Failed */                      \
    X(MEASURED, "measured", 0)         /* Ready for at least `window`, all its devices read */                         \
    X(YOUNG, "young", 1)               /* became Ready less than `window` ago, and this hub saw the first time */      \
    X(READY_AGAIN, "ready_again", 2)   /* became Ready less than `window` ago otherwise */                             \
    X(UNREADY, "unready", 3)           /* Ready=False since more than 10 s after the start of its GPU containers */    \
    X(HUNG, "hung", 4)                 /* unready for more than 5 minutes */                                           \
    X(MISSING, "missing", 6)           /* ought to be read, but a reading is missing */                                \
    X(UNOBSERVABLE, "unobservable", 5) /* that for 5 minutes, while half of those that ought to be read are */         \
    X(LOADING, "loading", 7)           /* pending or not yet Ready in this life, up to `warmupSeconds`; and places */  \
    X(STUCK, "stuck", 8)               /* loading for longer */
enum scaling_pod_state {
#define X(id, name, badness) SCALING_POD_##id,
    SCALING_POD_STATES(X)
#undef X
        SCALING_POD_STATE_COUNT
};
const char *scaling_pod_state_name(enum scaling_pod_state state);

enum scaling_on_missing { SCALING_CONSERVATIVE, SCALING_MISSING_IS_ERROR, SCALING_IGNORE_MISSING };

/* What the trigger and its workload say; the same for every pod. */
struct scaling_rules {
    enum scaling_aggregation aggregation; /* SUM means AVG here */
    double target;                        /* T */
    double window_s;
    double warmup_s;
    double ceiling;   /* of the metric: 100 for ratios, 200 where demand is in it; 0 none */
    bool is_memory;   /* a memory metric: 2.7 applies */
    bool is_engine;   /* a signal of the pods' own servers, which needs no GPU */
    bool is_weighted; /* a latency: the mean is over requests (load.weight), and pods without any are left out. 2.4 */
    bool is_job;      /* a ScaledJob: 2.9 */
    bool is_training; /* profile `training` */
    enum scaling_on_missing on_missing;
    double activation; /* threshold, in the unit of the metric */
};

/* The state of one pod by itself. `is_half_read`: at least half of the workload's pods that ought to be read are.
 * The pod is taken as it is: for a memory metric give what scaling_apply_memory() made of it. */
enum scaling_pod_state scaling_pod_state(const struct scaling_rules *rules, const struct scaling_pod *pod,
                                         bool is_half_read);
/* Does the Ready condition say that this pod ought to be read: is it measured, young, ready again, unready or hung? */
bool scaling_ought_to_be_read(const struct scaling_rules *rules, const struct scaling_pod *pod);
/* R: pods that the HPA counts: running and Ready, deleted ones too. */
int64_t scaling_count_ready(const struct scaling_pod *pods, size_t n);

/* ---- 2.7: memory that says nothing about load ---- */

enum scaling_memory_verdict {
    SCALING_MEMORY_HONEST, /* has been below T and has moved; also every pod under any other metric */
    SCALING_MEMORY_PREALLOCATED,
    SCALING_MEMORY_UNDECIDED
};
/* The verdict on a pod with a reading, and the pod as it counts then: preallocated: its load is min(T, utilisation),
 * its activity its utilisation; undecided: its reading is UNDECIDED with the bound max(T, memory). */
enum scaling_memory_verdict scaling_apply_memory(const struct scaling_rules *rules, const struct scaling_pod *pod,
                                                 struct scaling_pod *ret_pod);

/* ---- 2.3: intervals ---- */

/* What counts as one replica: a pod, a group of pods, or a place without a pod. */
struct scaling_replica {
    enum scaling_pod_state state;
    enum scaling_reading reading; /* of the pod, of the worst one of a group */
    bool is_place;
    bool is_preallocated;
    size_t first_pod, n_pods; /* index of (one of) its pods; of a place 0 and 0 */
    int64_t group;            /* negative: none */
    double ready_age_s;       /* of a Ready pod, of the youngest of a group */
    struct scaling_load load; /* as it counts */
    struct scaling_maybe bound;
    struct scaling_maybe last_good;
    struct scaling_maybe lower, upper; /* the interval; upper is known for each replica that counts */
};

/* The lower end of its own, "none" for most states. The column of 2.3, but for unobservable. */
struct scaling_maybe scaling_own_lower(const struct scaling_rules *rules, const struct scaling_replica *replica);
/* The upper end; a_lowers is a(lowers), T if no replica has a lower of its own. Not known for gone and stuck. */
struct scaling_maybe scaling_upper(const struct scaling_rules *rules, const struct scaling_replica *replica,
                                   double a_lowers);

/* ---- 2.4, 2.6: the value; 4: activity ---- */

struct scaling_workload {
    const struct scaling_pod *pods; /* of /scale's selector */
    size_t n_pods;
    bool is_scale_known;              /* false: the API is away */
    struct scaling_replicas replicas; /* C and S of one read of /scale; R */
    const double *place_ages_s;       /* since this hub first saw a place without a pod, oldest first; may be NULL */
    size_t n_place_ages;              /* places beyond it were seen just now */
};

/* How the value came about: X(id, error class, sentence). NONE: there is a value. */
#define SCALING_RULES(X)                                                                                               \
    X(ZERO, NONE, "no replicas are wanted, so nothing is measured")                                                    \
    X(KNOWN, NONE, "every pod is known")                                                                               \
    X(GROW, NONE, "what is known asks for more by itself")                                                             \
    X(SHRINK, NONE, "even the worst case asks for less")                                                               \
    X(HOLD, NONE, "what is not known could decide it, so the present count stays")                                     \
    X(HOLD_LOADING, NONE, "nothing but loading pods yet, so the present count stays")                                  \
    X(HOLD_PART, NONE, "a signal that has no value could decide it, so the present count stays")                       \
    X(JOB, FAILED_PRECONDITION,                                                                                        \
      "the load of a ScaledJob's running jobs does not say how many more are wanted: measure what is waiting, at a "   \
      "server or router that is always there (scope cluster, and vllmEndpoint or tritonEndpoint)")                     \
    X(NO_SCALE, UNAVAILABLE, "the replica count of the scale target is not known: the Kubernetes API does not answer") \
    X(NO_GPU, FAILED_PRECONDITION, "no pod of the workload requests or holds a GPU")                                   \
    X(UNSUPPORTED, FAILED_PRECONDITION, "no GPU of the workload has this metric")                                      \
    X(NO_SIGNAL, FAILED_PRECONDITION, "no page of the workload's pods has this metric")                                \
    X(UNSHARED, FAILED_PRECONDITION,                                                                                   \
      "the pods share GPUs with other workloads, and their part cannot be told without per-process data: set the "     \
      "chart's agent.hostPID to true")                                                                                 \
    X(MISSING_IS_ERROR, UNAVAILABLE, "a reading is missing, and onMissing is error")                                   \
    X(NOTHING_READ, UNAVAILABLE, "no pod that ought to be read could be read")                                         \
    X(ALL_STUCK, UNAVAILABLE, "no pod became Ready in its warm-up time, so there is nothing to measure")               \
    X(OUT_OF_RANGE, INTERNAL, "the result is no value that KEDA can take")                                             \
    X(TOO_MANY, RESOURCE_EXHAUSTED, "more pods than one call may look at")
enum scaling_rule {
#define X(id, class, sentence) SCALING_RULE_##id,
    SCALING_RULES(X)
#undef X
        SCALING_RULE_COUNT
};
const char *scaling_rule_sentence(enum scaling_rule rule);
/* Did lo and hi decide it? Of HOLD_PART only lo is known: what has no value has no upper end. */
bool scaling_rule_has_interval(enum scaling_rule rule);

/* Why it is active or not: X(id, is active, sentence). */
#define SCALING_ACTIVE_RULES(X)                                                                                        \
    X(ABOVE, true, "the busiest pod is above the activation threshold")                                                \
    X(REQUESTS, true, "requests run or wait")                                                                          \
    X(WAKE, true, "wakeMetric shows demand")                                                                           \
    X(WAKE_UNKNOWN, true, "wakeMetric cannot be read, and unknown is not idle")                                        \
    X(NO_REQUESTS, false, "no request runs or waits")                                                                  \
    X(NOT_ABOVE, false, "no pod is above the activation threshold")                                                    \
    X(TRAINING, true, "profile training keeps a workload active while it has a pod that is not stuck")                 \
    X(LOADING, true, "a pod is loading")                                                                               \
    X(MISSING, true, "a pod that ought to be read is missing, and unknown is not idle")                                \
    X(NOT_YET, true, "a pod has just become Ready and has no sample yet, and unknown is not idle")                     \
    X(PART, true, "a signal has no value, and unknown is not idle")                                                    \
    X(ZERO, false, "there are no replicas; only a trigger that sees demand without pods can wake the workload")        \
    X(ERROR, false, "there is nothing to read")
enum scaling_active_rule {
#define X(id, is_active, sentence) SCALING_ACTIVE_##id,
    SCALING_ACTIVE_RULES(X)
#undef X
        SCALING_ACTIVE_RULE_COUNT
};
const char *scaling_active_sentence(enum scaling_active_rule rule);
/* Active because demand was seen, not because something is unknown or loading: ABOVE, REQUESTS and WAKE. */
bool scaling_active_is_measured(enum scaling_active_rule rule);

/* Things that a person should see: X(id, sentence). Bits of scaling_result.warnings. */
#define SCALING_WARNINGS(X)                                                                                            \
    X(STUCK, "pods or places loading for longer than warmupSeconds are not counted")                                   \
    X(UNOBSERVABLE, "pods that could not be read for 5 minutes are taken to be like the others")                       \
    X(UNSUPPORTED, "some pods hold only GPUs that do not have this metric")                                            \
    X(NO_SIGNAL, "the pages of some pods do not have this metric")                                                     \
    X(UNSHARED, "the part of some pods in shared GPUs cannot be told")                                                 \
    X(PREALLOCATED, "memory says nothing about load: the server fills it at start, so utilisation is used instead; "   \
                    "better signals are utilisation, waiting requests or the use of the KV cache")                     \
    X(HUNG, "pods not Ready for more than 5 minutes")                                                                  \
    X(NO_BOUND, "with min and percentiles what is known is no lower bound of the whole")
enum scaling_warning {
#define X(id, sentence) SCALING_WARN_##id,
    SCALING_WARNINGS(X)
#undef X
        SCALING_WARN_COUNT
};
const char *scaling_warning_sentence(enum scaling_warning warning);

struct scaling_result {
    enum scaling_rule rule;
    struct err error; /* class NONE: `value` is valid; else what GetMetrics answers */
    double value;     /* v: finite, 0 <= v <= 1e12 */
    bool is_hold;     /* v = T C because of what is not known */
    enum scaling_active_rule active_rule;
    struct err active_error; /* class NONE: `is_active` is valid */
    bool is_active;
    struct scaling_maybe activity;  /* the busiest replica's peak, of those that are compared with the threshold */
    struct scaling_maybe in_flight; /* the most requests that ran or waited in one replica, of those that know it */
    /* the explanation */
    double target;                    /* T */
    struct scaling_replicas replicas; /* C, S, R */
    double lo, hi;                    /* valid where the rule is KNOWN, GROW, SHRINK or HOLD */
    int64_t asks_lo, asks_hi;         /* ceil(lo / T), ceil(hi / T) */
    double a_lowers;
    size_t n, n_lower;                      /* replicas that count, and |L| */
    size_t counts[SCALING_POD_STATE_COUNT]; /* by state */
    unsigned warnings;                      /* 1u << SCALING_WARN_... */
    const struct scaling_replica *items;    /* in the arena: ungrouped pods, groups, places */
    size_t n_items;
    /* of scaling_combine() only: */
    size_t n_parts, n_failed; /* parts, and of them those without a value; 0 and 0 otherwise */
    size_t part;              /* which one decided the value; n_parts: none did (HOLD_PART, ZERO, an error) */
    size_t active_part;       /* whose activity it is */
};

/* The value of the workload, its activity and why. Never fails: errors are in *ret. *ret refers to the arena only. */
void scaling_evaluate(const struct scaling_rules *rules, const struct scaling_workload *workload, struct arena *arena,
                      struct scaling_result *ret);

/* Several signals of one workload, each with a target of its own, as one result with the target `target` (100): the
 * largest v / T decides, as the HPA would over several metrics. A part without a value blocks shrinking and never
 * growing; all in error: the first one's error. Active if any part is, or has no value (unknown is not idle); an error
 * if all are. lo, hi and what they ask for are the largest of the parts; states, items and a_lowers are those of the
 * part that decided, of the first one where none did. Parts are of one look at one workload (the same C and S), n >= 1.
 */
void scaling_combine(const struct scaling_result *parts, size_t n, double target, struct scaling_result *ret);

/* What wakeMetric says of a workload (section 4): demand makes it active whatever the pods say, from zero too. One that
 * cannot be read wakes nothing: at C = 0 the activity is UNAVAILABLE with `why`; else the workload stays active. */
enum scaling_wake { SCALING_WAKE_NONE, SCALING_WAKE_ACTIVE, SCALING_WAKE_INACTIVE, SCALING_WAKE_UNKNOWN };
void scaling_apply_wake(struct scaling_result *result, enum scaling_wake wake, const char *why);

/* ---- 2.5: what the HPA makes of it ---- */

/* X(id, sentence) */
#define SCALING_FITS(X)                                                                                                \
    X(AS_IS, "sent as it is")                                                                                          \
    X(NEAREST, "sent as the nearest value to which the HPA gives the same answer")                                     \
    X(TARGET, "sent as the target, to which the HPA answers the present count")                                        \
    X(PER_READY, "sent divided by the Ready pods, with which the HPA multiplies it")                                   \
    X(NONE, "no value exists to which the HPA gives this answer")                                                      \
    X(REFUSED, "not sent: the HPA would not keep the present count")
enum scaling_fit {
#define X(id, sentence) SCALING_FIT_##id,
    SCALING_FITS(X)
#undef X
};
const char *scaling_fit_sentence(enum scaling_fit fit);

struct scaling_answer {
    struct err error; /* class NONE: `value` is what to send */
    double value;
    enum scaling_fit fit;
    int64_t wanted;   /* d: what the HPA would answer to v if S were C */
    int64_t proposal; /* what it answers to `value`, with the S and R that it has; `wanted` with scalingModifiers */
};
/* From the value to the number that is sent. hpa->target has three decimals. Never fails: errors are in *ret. */
void scaling_for_hpa(const struct scaling_hpa *hpa, const struct scaling_result *result, struct scaling_answer *ret);

/* One sentence with numbers: how the value came about, and (answer may be NULL) what the HPA makes of it. Of a combined
 * result: which part decided (counted from 1), with any part's rules. */
void scaling_say(const struct scaling_rules *rules, const struct scaling_result *result,
                 const struct scaling_answer *answer, struct buf *out);

#endif
