/* daemon: what every long-running program of ours has in common: the loop, listeners with TLS, the health pages,
 * signals, reload, the cache of triggers, the drain. It knows nothing of GPUs and decides nothing about answers. */
#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

#include "base/base.h"
#include "engine/engine.h"
#include "exporter/exporter.h"
#include "http/http.h"
#include "log/log.h"
#include "net/net.h"
#include "rpc/rpc.h"
#include "trigger/trigger.h"

#include <stdbool.h>

enum { DAEMON_LISTEN_MAX = 8 };

/* What a reload may change. */
struct daemon_reloadable {
    enum log_level log_level;
    enum log_format log_format;
    struct trigger_default *defaults; /* of the `metrics:` entries; malloc'ed; the daemon takes them over */
    size_t n_defaults;
};

/* What the command line came to. Texts outlive the daemon. */
struct daemon_config {
    const char *mode;                      /* "agent": what it calls itself in the log and on /version */
    const char *version, *build;           /* "0.1.0", "gcc 12.2" */
    const char *node_name;                 /* "" unknown */
    const char *listen[DAEMON_LISTEN_MAX]; /* gRPC (and GET) addresses; at least one */
    size_t n_listen;
    const char *metrics_listen; /* NULL = off */
    const char *probe_listen;   /* NULL = off; always plaintext: the kubelet's probes know no client certificate */
    struct net_tls_files tls;   /* cert NULL = plaintext */
    bool is_metrics_tls;        /* the metrics port speaks TLS too */
    struct net_limits limits;
    int64_t drain_ns;          /* longest time from SIGTERM to exit */
    int64_t shutdown_delay_ns; /* NOT_SERVING, but still serving, before the drain starts */
    struct daemon_reloadable reloadable;
    /* SIGHUP: read the configuration again. 0 and all of *ret, or -1 and an error: the old one stays. May be NULL. */
    int (*reload)(void *context, struct daemon_reloadable *ret, struct err *e);
    void *reload_context;
};

/* One line of a health page. */
struct daemon_check {
    const char *name;
    bool is_ok;
    char reason[256]; /* for people, where it is not ok */
};
enum { DAEMON_CHECKS_MAX = 8 };

/* The program behind it. Optional ones may be NULL. */
struct daemon_program {
    void (*draining)(void *context); /* optional: say NOT_SERVING */
    void (*hangup)(void *context);   /* optional: SIGHUP; the daemon's own certificates are looked at already */
    void (*usr2)(void *context);     /* optional: SIGUSR2; without it the signal ends the program as usual */
    /* Optional: this configuration is in force: from inside daemon_new, and after each reload. */
    void (*applied)(void *context, const struct daemon_reloadable *now);
    enum trigger_scope default_scope; /* of triggers that name none */
    size_t triggers_max;              /* distinct ones that are held parsed */
    /* Optional: what /readyz asks beside "not draining"; returns how many of at most `max`. */
    size_t (*checks)(void *context, struct daemon_check *out, size_t max);
    void (*verbose)(void *context, struct buf *out); /* optional: information lines of ?verbose */
    const char *pages;                               /* for the index: "/metrics\n" lines; "" none */
    const char *services;                            /* for the index: names of gRPC services */
    void *context;
};

struct daemon;
/* A loop, GET table, servers and triggers; nothing listens yet. It owns config->reloadable.defaults from here on.
 * metrics outlive it. NULL and an error when the system refuses. */
struct daemon *daemon_new(const struct daemon_config *config, const struct daemon_program *program,
                          struct metrics *metrics, struct err *e);
/* Listeners and signals first, servers and the loop last; what the program made in the loop goes before. Accepts NULL.
 */
void daemon_free(struct daemon *d);
/* Ends listeners and servers, for programs whose own parts must outlive those but not the loop. */
void daemon_close(struct daemon *d);

struct net_loop *daemon_loop(const struct daemon *d);
struct rpc_server *daemon_rpc(const struct daemon *d);
struct net_gets *daemon_gets(const struct daemon *d);
struct trigger_cache *daemon_triggers(const struct daemon *d);
/* Log that metadata was refused, at most one line a second: KEDA repeats a refused question, and any peer can send bad
 * metadata. */
void daemon_log_refusal(struct daemon *d, const char *ns, const char *name, const char *peer, const struct err *error);
/* The answer of /metrics: the page in the form that the client asks for, gzipped where it takes that and gets smaller.
 */
void daemon_answer_metrics(struct exporter *exporter, const struct exporter_view *view,
                           const struct net_get_request *request, struct net_get_response *response);
/* Signals and listeners; each address is logged. */
int daemon_listen(struct daemon *d, struct err *e);
const char *daemon_address(const struct daemon *d); /* of the first listener, with the port that the system chose */
bool daemon_has_tls(const struct daemon *d);
bool daemon_is_draining(const struct daemon *d);
/* Drain as after SIGTERM, and exit with this code. */
void daemon_end(struct daemon *d, int exit_code);
/* Runs until a signal, or daemon_end, ends it. Returns the exit code. */
int daemon_run(struct daemon *d);

/* ---- pages of inference engines ---- */

/* An engine of this daemon's loop, and how the endpoints are called that triggers name. */
struct daemon_engines;
/* config->loop and ->metrics are not looked at; metrics outlive it. NULL and the engine's error. */
struct daemon_engines *daemon_engines_new(struct daemon *d, const struct engine_config *config, struct metrics *metrics,
                                          struct err *e);
/* Accepts NULL. Before the daemon's loop, after whoever waits for a page. */
void daemon_engines_free(struct daemon_engines *engines);
/* Each second: a change of whether its files are in use is logged, once. */
void daemon_engines_look(struct daemon_engines *engines);
struct engine *daemon_engines_engine(const struct daemon_engines *engines);
/* How often a page must be read for the trigger's windows. */
int64_t daemon_engines_interval_ns(const struct trigger *t);
/* engine_page; NULL with the reason, static text. */
const struct signals_feed *daemon_engines_page(struct daemon_engines *engines, const struct engine_want *want,
                                               const char **ret_why);
struct daemon_endpoint {
    const char *url, *ns; /* as the user wrote it, and the namespace of the ScaledObject */
    const char *metric;   /* that the user named; "" none */
    const struct trigger *trigger;
};
/* The page of an endpoint, fetched from now on as often as the trigger needs. NULL and the reason, valid until the next
 * call. */
const struct signals_feed *daemon_engines_endpoint(struct daemon_engines *engines, const struct daemon_endpoint *asked,
                                                   const char **ret_why);
/* engine_ask for the endpoint that the trigger measures; NULL: there is none, or its page cannot be asked for, and
 * `done` is not called. */
struct engine_ask *daemon_engines_ask(struct daemon_engines *engines, const struct trigger *t, const char *ns,
                                      void (*done)(void *context), void *context);

/* A `metrics:` entry as what /metrics shows under its name. */
struct daemon_entry {
    struct trigger *trigger; /* that has only this name; NULL: free memory, on which nothing scales */
    enum scaling_aggregation aggregation;
    int gpu_index; /* -1 all */
    char name[EXPORTER_NAME_MAX], help[160];
};
struct daemon_entries {
    struct daemon_entry *items;
    size_t n;
};
/* One for each entry that a trigger of the settings' scope can be made of, or that is only exported. */
struct daemon_entries *daemon_entries_new(const struct trigger_settings *settings);
void daemon_entries_free(struct daemon_entries *entries); /* accepts NULL */

#endif
