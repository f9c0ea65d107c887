/* service: the gRPC services on top of rpc: ExternalScaler, Health, Reflection and Node. It turns messages into
 * triggers and evaluations into messages; where the readings come from is a snapshot_source of the program. It never
 * logs, and answers from the last snapshot only: nothing here waits for a GPU. */
#ifndef SERVICE_SERVICE_H
#define SERVICE_SERVICE_H

#include "base/base.h"
#include "rpc/rpc.h"
#include "snapshot/snapshot.h"
#include "trigger/trigger.h"

/* Where snapshots come from: the newest one, borrowed until the callback returns to the loop; NULL before the first.
 * And the clock that their ages are taken by: the loop's, read once a turn. */
struct service_source {
    const struct snapshot *(*current)(void *context);
    int64_t (*now_ns)(void *context);
    void *context;
};

/* For the program's debug log: an evaluation and who asked ("GetMetrics", "IsActive", ...). */
struct service_observation {
    const char *method, *ns, *name, *peer;
    bool is_routine; /* a look of an open stream that sent nothing: there are many */
    const struct trigger_evaluation *evaluation;
};

/* For the program's log: metadata that was refused. KEDA drops the text of a refusal from the ScaledObject's condition.
 */
struct service_refusal {
    const char *ns, *name, *peer; /* ns and name are as sent, "" when the reference was missing */
    const struct err *error;
};

struct service_config {
    struct metrics *metrics;
    struct rpc_server *server;
    struct trigger_cache *triggers;
    struct service_source source;
    bool has_reflection;
    size_t max_stream_bytes; /* held for all open streams together; 0 = 128 MiB, some 15,000 usual ones */
    /* Called with each evaluation (may be NULL); also when it ends in an error. */
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

/* A new snapshot is there, or a second has passed: look at open StreamIsActive and Health.Watch streams. */
void service_tick(struct service *s);
/* The configuration changed and the trigger cache was flushed: StreamMetricSpec streams whose spec differs get it. */
void service_reload(struct service *s);
/* Health turns NOT_SERVING, for good. The server's drain ends the streams. */
void service_drain(struct service *s);

#endif
