/* attribution: which pods hold which devices, as the kubelet's pod-resources API says, and which pods' processes use
 * them, as the driver's process lists and /proc say. It owns the client of that socket, the reading of its answers, the
 * forms of device ids and of cgroup paths, and what each pod does on each device; it decides nothing about values. */
#ifndef ATTRIBUTION_ATTRIBUTION_H
#define ATTRIBUTION_ATTRIBUTION_H

#include "base/base.h"
#include "net/net.h"
#include "snapshot/snapshot.h"

/* Where kubelets have their socket; mount its directory, since a restarted kubelet makes a new one. */
#define ATTRIBUTION_SOCKET "/var/lib/kubelet/pod-resources/kubelet.sock"

/* Where kubelets leave names of pods: folders by UID, links by container id. */
#define ATTRIBUTION_POD_LOGS  "/var/log/pods"
#define ATTRIBUTION_LOG_LINKS "/var/log/containers"

struct attribution;
struct attribution_config {
    struct net_loop *loop;
    struct metrics *metrics;   /* keda_gpu_scaler_pod_resources_*, _process_*, _processes_* and _holders */
    const char *path;          /* of the socket; copied; NULL = the kubelet is not asked */
    int64_t period_ns;         /* between reads; 0 = 10 s */
    const char *procfs;        /* the host's /proc; NULL = processes are not looked at. Copied, as the two below */
    int64_t process_period_ns; /* between the driver's lists of processes; 0 = 5 s */
    const char *pod_logs;      /* names of pods by UID; NULL = ATTRIBUTION_POD_LOGS */
    const char *log_links;     /* names of pods by container id; NULL = ATTRIBUTION_LOG_LINKS */
    /* The newest snapshot or NULL: ids are matched with its devices. */
    const struct snapshot *(*snapshot)(void *context);
    /* Optional: a read has ended, well or not; owners as attribution_owners gives them from now on. */
    void (*changed)(void *context, const struct snapshot_owners *owners);
    /* Optional: holders are of a newer snapshot; from inside attribution_observe, or later where /proc was looked at
     * first. */
    void (*seen)(void *context, const struct snapshot_holders *holders);
    void *context;
};
/* The first read begins after a second, or when the devices are known (attribution_refresh). Nothing here blocks; a
 * socket that is not there is tried again. NULL and an error where a path is not absolute or too long. */
struct attribution *attribution_new(const struct attribution_config *config, struct err *e);
void attribution_free(struct attribution *a); /* accepts NULL; no `changed` comes from inside */

/* The devices have changed: read again soon, at most once a second. */
void attribution_refresh(struct attribution *a);
/* NULL where the kubelet is not asked; valid until the next turn of the loop unless referenced. */
const struct snapshot_owners *attribution_owners(const struct attribution *a);

/* A new snapshot is there: its processes are put to pods, and what each pod does is recorded. Where /proc has to be
 * looked at first, holders stay those of the snapshot before until `seen` comes. */
void attribution_observe(struct attribution *a, const struct snapshot *snapshot);
/* Who holds and uses each device, as of the last attribution_observe and the newest owners. Never NULL; valid until the
 * next turn of the loop. */
const struct snapshot_holders *attribution_holders(const struct attribution *a);

/* One answer of List, matched with the devices of a snapshot (may be NULL): new owners in state OK, taken at now_ns,
 * with one reference; or NULL where the bytes are no ListPodResourcesResponse. Unknown fields are passed over; memory
 * is bounded whatever the answer holds. */
struct snapshot_owners *attribution_parse(struct str answer, const struct snapshot *snapshot, int64_t now_ns,
                                          struct err *e);

#endif
