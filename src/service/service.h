/* service: the gRPC services on top of rpc: ExternalScaler, Health, Reflection, Node and Fleet. It turns messages into
 * triggers and evaluations into messages; where the readings come from is a snapshot_source of the program. It never
 * logs, and answers from the last snapshot only: nothing here waits for a GPU. */
#ifndef SERVICE_SERVICE_H
#define SERVICE_SERVICE_H

#include "base/base.h"
#include "rpc/rpc.h"
#include "snapshot/snapshot.h"
#include "trigger/trigger.h"

struct service_question;
/* Something that an answer waits for. */
struct service_wait;

/* Where snapshots come from: the newest one, borrowed until the callback returns to the loop; NULL before the first.
 * And the clock that their ages are taken by: the loop's, read once a turn. */
struct service_source {
    const struct snapshot *(*current)(void *context);
    int64_t (*now_ns)(void *context);
    void *context;
    /* Pages of engines that triggers name (trigger_endpoint), for the evaluator of snapshots. All NULL: this program
     * fetches none. prepare and cancel as those of the evaluator; page: how it stands now, valid until the next turn,
     * NULL and *ret_why where it cannot be asked. */
    struct service_wait *(*prepare)(void *context, const struct service_question *question,
                                    void (*ready)(void *ready_context), void *ready_context);
    void (*cancel)(void *context, struct service_wait *wait);
    const struct signals_feed *(*page)(void *context, const struct service_question *question, const char **ret_why);
};

/* What is asked about a trigger, and who asks ("GetMetrics", "IsActive", ...). */
struct service_question {
    const char *method, *ns, *name, *peer; /* ns and name of the ScaledObject, as sent */
    const struct trigger *trigger;
    enum trigger_question asked;
};

/* What it came to, as far as it was asked. */
struct service_answer {
    double value;            /* finite, 0 <= value <= 1e12, where value_error.class is NONE */
    struct err value_error;  /* what GetMetrics answers instead */
    bool is_active;          /* where active_error.class is NONE */
    bool is_above;           /* active by measurement: what is active only because a reading is missing wakes nobody */
    struct err active_error; /* what IsActive answers instead */
    const void *detail;      /* the evaluator's own, in the arena; of snapshots: a struct trigger_evaluation */
};

/* Who turns questions into answers. */
struct service_evaluator {
    /* What must be read before GetMetrics, IsActive or Explain can be answered is asked for here (a trigger on one
     * engine's page). NULL: nothing; `ready` is not called. Else `ready` is called once, never from inside, within the
     * program's own time limit, and `answer` follows. The question stays until then. Optional; streams do not wait. */
    struct service_wait *(*prepare)(void *context, const struct service_question *question,
                                    void (*ready)(void *ready_context), void *ready_context);
    /* The call ended: ready is not called. */
    void (*cancel)(void *context, struct service_wait *wait);
    /* Never fails and never waits: errors are in *ret. */
    void (*answer)(void *context, const struct service_question *question, struct arena *arena,
                   struct service_answer *ret);
    /* An answer to TRIGGER_ASK_ALL in sentences for people, and as one object for machines. */
    void (*explain)(void *context, const struct service_question *question, const struct service_answer *answer,
                    struct buf *text, struct json *json);
    void *context;
};

/* For the program's debug log. */
struct service_observation {
    const struct service_question *question;
    bool is_routine; /* a look of an open stream that sent nothing: there are many */
    const struct service_answer *answer;
};

/* For the program's log: metadata that was refused. KEDA drops the text of a refusal from the ScaledObject's condition.
 */
struct service_refusal {
    const char *ns, *name, *peer; /* ns and name are as sent, "" when the reference was missing */
    const struct err *error;
};

/* Somebody watches this node, or no longer does. */
struct service_watcher {
    const char *hub, *peer; /* hub: the name that it gives itself, "" none; needs escaping */
    size_t n_wants;
    bool is_open;
};

/* What Fleet/Watch tells hubs besides the source's snapshots. What the callbacks give is borrowed as a snapshot is. */
struct service_fleet {
    const char *node_name, *version; /* of the agent; "" unknown; node_name NULL: Fleet is not served */
    /* Each may be NULL, and may give NULL: not asked for. */
    const struct snapshot_owners *(*owners)(void *context);
    const struct snapshot_holders *(*holders)(void *context);
    /* A hub asks for this field, told at each look (may be NULL): some are only read while somebody asks. */
    void (*want)(void *context, enum snapshot_field field);
    /* May be NULL. As often as peers like, so the program limits what it logs. */
    void (*watched)(void *context, const struct service_watcher *watcher);
    void *context;
};

struct service_config {
    struct metrics *metrics;
    struct rpc_server *server;
    struct trigger_cache *triggers;
    struct service_source source;       /* current may give NULL for ever: a hub has no GPU of its own */
    struct service_evaluator evaluator; /* answer NULL: trigger_evaluate on the source's snapshots */
    struct service_fleet fleet;         /* all zero: this program has no GPUs to tell of */
    bool has_reflection;
    size_t max_stream_bytes; /* held for all open streams together; 0 = 128 MiB, some 15,000 usual ones */
    /* Called with each answer (may be NULL); also when it is an error. */
    void (*observe)(void *context, const struct service_observation *observation);
    /* Called with each refusal (may be NULL): as often as a peer asks, so the program limits what it logs. */
    void (*refuse)(void *context, const struct service_refusal *refusal);
    void *observe_context; /* of observe and refuse */
};

struct service;
/* Registers its methods with the server. Everything in config outlives the service. */
struct service *service_new(const struct service_config *config);
/* After the server is freed. Accepts NULL. */
void service_free(struct service *s);

/* A new snapshot is there, or a second has passed: look at open streams. */
void service_tick(struct service *s);
/* The configuration changed and the trigger cache was flushed: StreamMetricSpec streams whose spec differs get it. */
void service_reload(struct service *s);
/* Health turns NOT_SERVING, for good. The server's drain ends the streams. */
void service_drain(struct service *s);

#endif
