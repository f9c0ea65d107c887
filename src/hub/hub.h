/* hub: the program that answers KEDA for the whole cluster. It wires the API client, the agents' streams and the
 * services together, and decides about start, reload and logging. Wiring only: every rule lives in a module below. */
#ifndef HUB_HUB_H
#define HUB_HUB_H

#include "base/base.h"
#include "daemon/daemon.h"
#include "engine/engine.h"
#include "log/log.h"
#include "trigger/trigger.h"

/* Where agents are found: X(id, prefix, what follows it). */
#define HUB_AGENT_SOURCES(X)                                                                                           \
    X(SERVICE,                                                                                                         \
      "service:", "[NAMESPACE/]NAME[:PORT]") /* EndpointSlices of a headless Service; PORT a name or number */         \
    X(DNS, "dns:", "HOST:PORT")              /* every address of the name, asked again each 10 s */                    \
    X(FIXED, "", "HOST:PORT")                /* one agent; may be repeated */
enum hub_agent_source {
#define X(id, prefix, form) HUB_AGENTS_##id,
    HUB_AGENT_SOURCES(X)
#undef X
};
enum { HUB_AGENTS_MAX = 256 };

/* What the command line, environment and file came to. Texts outlive the hub. */
struct hub_config {
    struct daemon_config daemon;        /* mode is filled in by the hub */
    const char *kubeconfig;             /* NULL: as a pod, by its service account */
    const char *agents[HUB_AGENTS_MAX]; /* each of a form of HUB_AGENT_SOURCES */
    size_t n_agents;
    bool has_agent_tls;               /* agents are dialled with TLS */
    struct net_tls_files agent_tls;   /* of the hub as a client */
    const char *agent_server_name;    /* in the agents' certificates; NULL = the address */
    const char *service, *service_ns; /* which scalerAddress means this hub; service_ns NULL = the hub's namespace */
    const char *name;                 /* of this hub, for answers and the agents' logs */
    double hpa_tolerance;
    unsigned simulated_gpus_per_pod;
    struct engine_config engine; /* loop and metrics are filled in by the hub */
    size_t max_devices_shown;    /* on /metrics; 0 none */
    bool has_reflection;
};

/* Runs until a signal ends it. Returns the exit code of the program: 0 after a drain, 1 after a failure that was
 * logged, 2 where the configuration is wrong. */
int hub_run(const struct hub_config *config);

#endif
