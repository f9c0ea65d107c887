/* Shared by the files of workload only: a pod and a trigger as they are remembered, and one look at all of a
 * workload's pods. */
#ifndef WORKLOAD_LOOK_H
#define WORKLOAD_LOOK_H

#include "workload/workload.h"

#include "base/vec.h"

/* ---- pod.c ---- */

/* An integral as it stood when the pod became Ready. */
struct mark {
    uint32_t id; /* of the holder or the device */
    uint32_t want;
    bool is_holder;
    double integral, valid_s;
};

struct workload_pod {
    char *ns, *name, *uid, *node;
    enum kube_phase phase;
    bool is_deleted, has_condition, is_ready, requests_gpu;
    double created_s, condition_s, started_s;
    int64_t group, worker;
    char *ip, *annotated_port, *annotated_path, *annotated_scheme; /* where its page may be */
    VEC(struct kube_port) ports;                                   /* names are its own */
    bool is_first_ready_due;   /* seen in this life before it was Ready, and not Ready since */
    bool was_first_ready_seen; /* it is Ready, and this hub saw that it was the first time */
    double ready_since_s;      /* the newest Ready that this hub saw, by the API's clock; 0 none */
    int64_t ready_seen_ns;     /* when it saw the change; 0: it did not */
    uint64_t marks_instance;   /* of the agent that they were taken from */
    VEC(struct mark) marks;    /* taken down then */
};

/* The integral of this holder or device as it stood at Ready; NULL: not taken down. */
const struct mark *workload_pod_mark(const struct workload_pod *p, bool is_holder, uint32_t id, size_t want);

/* Drops them once no window reaches back to Ready. */
void workload_pod_forget_marks(struct workload_pod *p, int64_t now_ns);

/* ---- memory.c ---- */

/* What the agents are asked, and since when under this place. */
struct asked {
    struct fleet_want want;
    int place; /* -1: no room */
    int64_t since_ns;
};
enum { ASKED_METRIC, ASKED_UTILIZATION, ASKED_MAX };

/* A pod under one trigger. */
struct pod_memory {
    char *uid;
    uint64_t look;            /* the last one that saw it */
    int64_t missing_since_ns; /* -1: nothing that it needs is missing */
    struct scaling_maybe last_good;
    int64_t page_asked_ns;            /* since when its page is asked for; -1: it is not */
    int64_t page_since_ns;            /* since when it can be read, after it could not; 0 as far back as it goes */
    bool is_page_lost;                /* it cannot be read now */
    bool has_held;                    /* a GPU, at some time */
    struct snapshot_minutes *minutes; /* of memory, of GPUs that are simulated and given; NULL */
};

/* Places beyond it count as seen just now. */
enum { PLACES_MAX = 4096, PODS_MAX = 65536 };

struct workload_memory {
    struct trigger *trigger;
    struct asked asked[ASKED_MAX];
    size_t n_asked;
    struct workload_memory *parts[TRIGGER_PARTS_MAX]; /* of several signals, each its own; then nothing else is asked */
    size_t n_parts;
    struct map *pods; /* by uid */
    uint64_t looks;
    struct workload_asked last;
    int64_t born_ns;     /* of the first look; -1 */
    int64_t paged_ns;    /* when a pod's page last gave what the trigger is measured by; -1 never */
    VEC(int64_t) places; /* since when they are seen without a pod, oldest first */
};

/* ---- observe.c ---- */

static inline struct scaling_maybe workload_known(double value)
{
    return (struct scaling_maybe){.is_known = true, .value = value};
}

/* One of the signals that are read of a pod. */
struct signal {
    enum scaling_kind kind;
    const struct asked *asked;
    bool is_memory_percent, is_of_board;
    double divisor;
};

/* One look at a workload: its pods as they count. */
struct look {
    struct workload_memory *memory;
    const struct trigger *trigger;
    const struct workload_facts *facts;
    const struct workload_fleet *fleet;
    int64_t now_ns;
    struct arena *arena;
    struct scaling_rules rules;
    enum workload_mode mode;
    struct signal signals[ASKED_MAX];
    size_t n_signals;
    struct workload_input *inputs; /* of all pods */
    struct scaling_pod *pods;      /* of those that count, in the same order */
    size_t n_pods;
    int64_t n_ready; /* R, of all */
};

/* Ask for what the trigger needs. -1 and an error where the agents are asked too much already. */
int workload_ask(struct workload_memory *m, const struct workload_fleet *fleet, int64_t now_ns, struct err *e);
/* Fills inputs, pods and n_ready; keeps what is to be remembered. Returns false where the arena is full. */
bool workload_observe(struct look *look);
/* Keeps since when places are without a pod; where C is not known it stays as it was. */
void workload_watch_places(struct look *look);
struct pod_memory *workload_pod_memory(struct workload_memory *m, const struct workload_pod *pod);
/* For how long it is Ready, by the API's clock; from 0. */
double workload_ready_age_s(const struct scaling_pod *pod);
/* Was the change to Ready that the API tells of the one that this hub saw? */
bool workload_is_change_seen(const struct look *look, const struct workload_pod *p, const struct scaling_pod *pod);
/* A text of others as one line in the arena; "" where that is full. */
const char *workload_keep_text(const struct look *look, struct buf *text);

struct scaling_rules workload_rules(const struct trigger *t, const struct workload_facts *facts);
/* What of the trigger's metric is read: TRIGGER's own, and the utilisation beside memory. */
enum scaling_kind workload_kind(enum trigger_metric metric);
bool workload_is_memory(enum trigger_metric metric);

/* ---- devices.c ---- */

/* Over which time a reading is taken. */
enum span { SPAN_WINDOW, SPAN_SINCE_READY, SPAN_PEAK };

/* The devices of a pod that count for the trigger: sets node, devices and n_devices. *ret_n_held: all that it holds.
 * Returns false where the arena is full. */
bool workload_find_devices(const struct look *look, size_t index, size_t *ret_n_held);
/* One signal of all devices of a pod, of one span. `scratch` has room for n_devices; NULL: the input's own `counted`
 * are set (the window's, with counts of holders and ages). */
void workload_read_devices(const struct look *look, struct workload_input *input, const struct signal *signal,
                           enum span span, struct scaling_device *scratch, struct scaling_pod_value *ret);
/* ---- page.c ---- */

/* May the trigger be measured by pages, and by which signal? */
bool workload_reads_pages(const struct trigger *t);
enum signals_id workload_signal(const struct trigger *t);
/* Asks for the page of a pod and for what it says of the signal: sets feed, page and page_text. Returns false where the
 * arena is full. */
bool workload_find_page(const struct look *look, size_t index, const struct scaling_pod *pod, struct pod_memory *m);
/* By what the pods are measured, once all their pages were looked for; notes when one was there. Changes the rules. */
void workload_choose_mode(struct look *look);
/* The page of wakeEndpoint, which is wanted from now on; NULL and why not, or NULL and NULL where the trigger has none.
 */
const struct signals_feed *workload_find_wake(const struct trigger *t, const struct workload_facts *facts,
                                              const struct workload_fleet *fleet, const char **ret_why);
/* The most requests that a page showed, where any of them makes the pod active. */
struct scaling_maybe workload_in_flight(const struct look *look, const struct signals_answer *page);
/* The pod's load as its page says it. Returns false where there is a page without the signal, in a profile that has the
 * pod's GPUs to go by. */
bool workload_read_page(const struct look *look, size_t index, struct scaling_pod *pod, const struct pod_memory *m);

/* ---- past.c ---- */

/* A reading of the memory of a pod whose GPUs are simulated and given to it. */
void workload_note_memory(struct pod_memory *m, double value, int64_t now_ns);
/* Lowest and highest memory since the pod became Ready `ready_age_s` ago. */
void workload_read_memory(const struct look *look, const struct workload_input *input, const struct pod_memory *noted,
                          double ready_age_s, struct scaling_memory *ret);

/* ---- hpa.c ---- */

/* Type, T and tolerances for the trigger. *ret_metric: the HPA's entry, NULL if there is none or it is not known. -1
 * and FAILED_PRECONDITION where several could be meant that differ. */
int workload_find_hpa(const struct trigger *t, const struct workload_facts *facts, struct scaling_hpa *ret_hpa,
                      const struct kube_hpa_metric **ret_metric, struct err *e);
struct scaling_behaviour workload_behaviour(const struct kube_hpa *hpa);

/* ---- cluster.c ---- */

/* `ns` is where endpoints without a namespace are; "" not known. */
void workload_evaluate_cluster(struct workload_memory *m, const char *ns, const struct workload_fleet *fleet,
                               int64_t now_ns, struct arena *arena, struct workload_answer *ret);

#endif
