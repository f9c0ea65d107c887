/* daemon: what every long-running program of ours has in common: the loop, listeners with TLS, the health pages,
 * signals, reload of certificates, the drain. It knows nothing of GPUs and decides nothing about answers. */
#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

#include "base/base.h"
#include "http/http.h"
#include "net/net.h"
#include "rpc/rpc.h"

#include <stdbool.h>

enum { DAEMON_LISTEN_MAX = 8 };

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
    void (*hangup)(void *context);   /* optional: SIGHUP; certificates are looked at already */
    void (*usr2)(void *context);     /* optional: SIGUSR2; without it the signal ends the program as usual */
    /* Optional: what /readyz asks beside "not draining"; returns how many of at most `max`. */
    size_t (*checks)(void *context, struct daemon_check *out, size_t max);
    void (*verbose)(void *context, struct buf *out); /* optional: information lines of ?verbose */
    const char *pages;                               /* for the index: "/metrics\n" lines; "" none */
    const char *services;                            /* for the index: names of gRPC services */
    void *context;
};

struct daemon;
/* A loop, GET table and servers; nothing listens yet. metrics outlive it. NULL and an error when the system refuses. */
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
/* Signals and listeners; each address is logged. */
int daemon_listen(struct daemon *d, struct err *e);
const char *daemon_address(const struct daemon *d); /* of the first listener, with the port that the system chose */
bool daemon_has_tls(const struct daemon *d);
bool daemon_is_draining(const struct daemon *d);
/* Drain as after SIGTERM, and exit with this code. */
void daemon_end(struct daemon *d, int exit_code);
/* Runs until a signal, or daemon_end, ends it. Returns the exit code. */
int daemon_run(struct daemon *d);

#endif
