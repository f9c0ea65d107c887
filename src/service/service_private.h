/* Shared by the files of service only. */
#ifndef SERVICE_SERVICE_PRIVATE_H
#define SERVICE_SERVICE_PRIVATE_H

#include "proto/proto.h"
#include "service/service.h"

enum { SERVICE_METHODS_MAX = 16 };
/* Our own limit on each unary call: KEDA sets none, and a scaler that hangs stalls every HPA. keda.md 3.6 */
#define SERVICE_DEADLINE_NS (1 * NS_PER_S)
/* Of calls whose answer may wait for a page: longer than a fetch takes at most, so that its reason is what they end
 * with.
 */
#define SERVICE_WAIT_DEADLINE_NS (4 * NS_PER_S)
/* Memory of one evaluation, apart from the call's: that has a ceiling by the size of the request, this one by the GPUs
 * and pods that are looked at. Scope cluster of 80,000 GPUs takes 12 MB. */
enum { SERVICE_EVALUATION_MAX = 32 << 20 };

enum stream_kind { STREAM_IS_ACTIVE, STREAM_METRIC_SPEC, STREAM_HEALTH, STREAM_FLEET, STREAM_KINDS };

/* A call that stays open and is looked at on each tick. Linked into its service's list of that kind. What it was asked
 * stays where it was decoded, in the call's arena. */
struct stream {
    enum stream_kind kind;
    struct stream *next, **link;
    struct rpc_call *call;
    size_t bytes; /* that it counts for in stream_bytes */
    /* StreamIsActive and StreamMetricSpec */
    const Externalscaler__ScaledObjectRef *ref;
    struct trigger *trigger; /* a reference */
    bool was_active;         /* at the last look */
    int64_t next_look_ns;
    char sent_name[TRIGGER_NAME_MAX]; /* the last spec sent; "" none */
    double sent_target;
    /* Health.Watch */
    const char *watched;
    int last_status;     /* what was sent last, -1 nothing */
    struct watch *watch; /* Fleet/Watch */
};

/* Since when hubs ask for a field, and when they did last; 0 = never. */
struct service_asked {
    int64_t since_ns, last_ns;
};

struct service {
    struct service_config config;
    uint64_t instance; /* of this process, for hubs */
    struct service_asked asked[SNAPSHOT_FIELD_COUNT];
    struct stream *streams[STREAM_KINDS];
    size_t stream_bytes; /* held by all streams */
    bool is_draining;
    struct subjects *subjects;
    struct metric_series *open_streams[STREAM_KINDS];
    struct metric_series *cached_triggers;
    struct rpc_method methods[SERVICE_METHODS_MAX]; /* as registered: the server keeps pointers to them */
    size_t n_methods;
};

/* The request as a message of this type, in the arena; NULL after the call was failed with INTERNAL, as other gRPC
 * servers do. */
void *service_decode(struct rpc_call *call, struct arena *arena, struct str request,
                     const ProtobufCMessageDescriptor *type);
/* Pack and send one message of the call. Returns -1 when the stream no longer takes messages. */
int service_send(struct rpc_call *call, const ProtobufCMessage *message);
/* service_send and finish with OK. */
void service_reply(struct rpc_call *call, const ProtobufCMessage *message);
/* The trigger of a reference (a reference count for the caller), or NULL and the refusal, of which the program is told:
 * also where ref is NULL, not sent. */
struct trigger *service_trigger(struct service *s, struct rpc_call *call, const Externalscaler__ScaledObjectRef *ref,
                                struct err *e);
/* The source's clock. */
static inline int64_t service_now_ns(const struct service *s)
{
    return s->config.source.now_ns(s->config.source.context);
}
/* What a reference asks: the trigger's and the reference's texts are borrowed. */
struct service_question service_question_of(struct rpc_call *call, const char *method, enum trigger_question asked,
                                            const Externalscaler__ScaledObjectRef *ref, const struct trigger *t);
/* Ask the evaluator, and let the program observe the answer. */
void service_ask(struct service *s, const struct service_question *question, struct arena *arena,
                 struct service_answer *ret);
/* snapshots.c: the evaluator of an agent, on service's source. */
struct service_evaluator service_snapshot_evaluator(struct service *s);

/* ---- unary.c: calls that are answered once ---- */

/* Turns an answer into the call's end. */
typedef void service_finish(struct service *s, struct rpc_call *call, const struct service_question *question,
                            const void *message, const struct service_answer *answer);
/* Answer now, or once what the evaluator prepares is there. `message` is in the call's arena; takes the trigger's
 * reference. service_unary_ended is the method's `ended`. */
void service_unary(struct service *s, struct rpc_call *call, const struct service_question *question,
                   const void *message, struct trigger *t, service_finish *finish);
void service_unary_ended(struct rpc_call *call, void *context);
/* Register a method that answers by service_unary. */
void service_add_unary(struct service *s, const char *path,
                       void (*message)(struct rpc_call *call, struct str request, void *context));

/* ---- subjects.c: what /metrics shows of each ScaledObject's metric ---- */

struct subjects;
struct subject;
enum subject_fact { SUBJECT_VALUE, SUBJECT_TARGET, SUBJECT_ACTIVE, SUBJECT_ERRORS, SUBJECT_FACTS };

struct subjects *service_subjects_new(struct metrics *metrics);
void service_subjects_free(struct subjects *all);
/* Of this ScaledObject and metric ("" where the metadata could not be read), made if new. Borrowed until the next call
 * of this or service_tick_subjects: there is a ceiling, and who was not asked about for longest makes room. */
struct subject *service_subject(struct service *s, const char *ns, const char *name, const char *metric);
void service_subject_show(struct subject *subject, enum subject_fact fact, double value);
/* Count an error; what the question was about is shown no longer (SUBJECT_ERRORS: nothing of it is shown). */
void service_subject_fail(struct subject *subject, enum subject_fact fact);
/* Drop those that nobody asks about any more. */
void service_tick_subjects(struct service *s);

/* ---- streams ---- */

/* A stream, linked and set as the call's state; service_stream_ended is the method's `ended`. NULL after the call was
 * failed: all streams together have a ceiling of memory. */
struct stream *service_stream_new(struct service *s, struct rpc_call *call, enum stream_kind kind);
void service_stream_ended(struct rpc_call *call, void *context);

/* Register one method with the server; its context becomes s. */
void service_add_method(struct service *s, const struct rpc_method *method);

/* Each registers its methods. */
void service_add_external_scaler(struct service *s);
void service_add_streams(struct service *s);
void service_add_health(struct service *s);
void service_add_reflection(struct service *s);
void service_add_node(struct service *s);
void service_add_fleet(struct service *s);

void service_tick_streams(struct service *s);
void service_reload_streams(struct service *s);
void service_tick_health(struct service *s);
void service_tick_fleet(struct service *s);
/* Fill the one spec of a trigger. `spec` must outlive nothing: it borrows the trigger's name. */
void service_fill_spec(Externalscaler__MetricSpec *spec, const struct trigger *t);

/* Does a message of this type hold a NUL inside a string field? protobuf-c would cut the string there without a word.
 */
bool service_has_nul(struct str message, const ProtobufCMessageDescriptor *type);

#endif
