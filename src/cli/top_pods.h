/* The pods of this machine for `top`: what its kubelet lists and what the processes of pods use, by attribution on a
 * loop that turns only while `top` waits. Private to cli. */
#ifndef CLI_TOP_PODS_H
#define CLI_TOP_PODS_H

#include "attribution/attribution.h"
#include "cli/sampling.h"

/* Where to look; texts outlive the pods. */
struct top_pods_config {
    const char *pod_resources;        /* the kubelet's socket; NULL = not asked */
    const char *procfs;               /* the host's /proc; NULL = processes are not looked at */
    const char *pod_logs, *log_links; /* names of pods; NULL = where kubelets have them */
};
/* Is there anything to look at? */
bool top_pods_are_wanted(const struct top_pods_config *config);
/* For "auto": "/proc" where that is the host's, seen from the host's pid namespace, and a kubelet's socket or folder of
 * logs can be read there; else NULL: a machine without pods has no rows of processes. */
const char *top_pods_default_procfs(const struct top_pods_config *config);

struct top_pods;
/* Takes the sampler's snapshots from here on; both outlive the pods. metrics: of attribution. NULL where a path is not
 * absolute or the system refuses. */
struct top_pods *top_pods_new(const struct top_pods_config *config, struct sampling *sampling, struct metrics *metrics,
                              struct err *e);
void top_pods_free(struct top_pods *p); /* accepts NULL */

/* As sampling_wait, with the loop turning. */
bool top_pods_wait(struct top_pods *p, bool (*is_enough)(const struct snapshot *), int64_t deadline_ns);
/* Wait until owners and holders are of the newest snapshot, at most wait_ns: devices are not held up by a kubelet. One
 * that let the first wait pass is not waited for again. */
void top_pods_settle(struct top_pods *p, int64_t wait_ns);

/* As attribution has them; valid until the next wait. */
const struct snapshot_owners *top_pods_owners(const struct top_pods *p);
const struct snapshot_holders *top_pods_holders(const struct top_pods *p);
/* What keeps pods or their use from being shown, and what to do about it, for people; false where there is nothing to
 * say: a machine without a kubelet lacks nothing. */
bool top_pods_explain(const struct top_pods *p, struct err *ret);

#endif
