/* agent: the program that runs on each GPU node. It wires the sampler to the servers, and decides about signals,
 * reload, drain and logging. Wiring only: every rule lives in a module below. */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include "base/base.h"
#include "daemon/daemon.h"
#include "engine/engine.h"
#include "gpu/gpu.h"
#include "log/log.h"
#include "net/net.h"
#include "trigger/trigger.h"

/* What the command line, environment and file came to. Texts outlive the agent. */
struct agent_config {
    struct daemon_config daemon; /* mode is filled in by the agent */
    struct gpu_config gpu;
    struct engine_config engine;           /* loop and metrics are filled in by the agent */
    const char *pod_resources;             /* socket of the kubelet's pod-resources; NULL = owners are not asked for */
    const char *procfs;                    /* the host's /proc; NULL = processes are not put to pods */
    const char *pod_logs, *container_logs; /* where the kubelet leaves names of pods; NULL = its own folders */
    bool has_reflection;
    bool has_dcgm_metrics; /* the families of dcgm-exporter on /metrics too */
    /* Called on the loop once everything listens (may be NULL): for demo, which goes on in the same loop. */
    void (*started)(void *context, struct net_loop *loop, const char *address);
    /* Called on the loop before it ends (may be NULL): what `started` made in it goes. */
    void (*stopping)(void *context);
    void *started_context;
};

/* Runs until a signal ends it. Returns the exit code of the program: 0 after a drain, 1 after a failure that was logged
 * (a listener that cannot be had, a state that only a restart helps), 2 where the configuration is wrong. */
int agent_run(const struct agent_config *config);

#endif
