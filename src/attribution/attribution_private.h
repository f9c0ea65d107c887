/* Shared by the files of attribution only. */
#ifndef ATTRIBUTION_ATTRIBUTION_PRIVATE_H
#define ATTRIBUTION_ATTRIBUTION_PRIVATE_H

#include "attribution/attribution.h"

enum { ATTRIBUTION_NAME_MAX = 320 /* of a name; the API allows 253 */ };

/* ---- device_id.c ---- */

/* What one id names. */
struct attribution_device {
    bool is_gpu;                          /* it has the form of a GPU's id; else nothing below counts */
    bool is_all;                          /* every GPU of the node (WSL2) */
    bool is_shared;                       /* one of several shares of the device */
    int replica;                          /* number of the share, -1 none */
    const struct snapshot_device *device; /* NULL: the snapshot has no such device */
    struct str uuid;                      /* without a device: the UUID in the id, or empty */
};

/* An id of the device plugin API, of whatever plugin. s may be NULL. */
struct attribution_device attribution_resolve_id(struct str id, struct str resource, const struct snapshot *s);
/* The name of a device of the DRA driver gpu.nvidia.com. */
struct attribution_device attribution_resolve_dra(struct str driver, struct str name, const struct snapshot *s);

/* ---- list.c ---- */

/* Does a pod have a live process on a device? */
struct attribution_evidence {
    bool (*is_alive)(void *context, const char *uuid, const char *ns, const char *pod);
    void *context;
};
/* As attribution_parse. Of several pods with one exclusive device the one with a live process holds it, else the later.
 * evidence may be NULL. */
struct snapshot_owners *attribution_read_list(struct str answer, const struct snapshot *snapshot,
                                              const struct attribution_evidence *evidence, int64_t now_ns,
                                              struct err *e);

/* ---- kubelet.c ---- */

struct attribution_kubelet;
struct attribution_kubelet *attribution_kubelet_new(const struct attribution_config *config,
                                                    const struct attribution_evidence *evidence, struct err *e);
void attribution_kubelet_free(struct attribution_kubelet *k); /* accepts NULL */
void attribution_kubelet_refresh(struct attribution_kubelet *k);
const struct snapshot_owners *attribution_kubelet_owners(const struct attribution_kubelet *k);

/* ---- cgroup.c ---- */

enum { ATTRIBUTION_UID_MAX = 37, ATTRIBUTION_CONTAINER_MAX = 65 };

/* What /proc/<pid>/cgroup says of a process. */
struct attribution_cgroup {
    bool is_pod;                       /* there is a pod UID */
    bool is_relative;                  /* the path begins above the reader's own root: part of it is hidden */
    char pod_uid[ATTRIBUTION_UID_MAX]; /* with dashes; of static pods 32 hex digits; "" none */
    char container_id[ATTRIBUTION_CONTAINER_MAX]; /* 64 hex digits; "" none */
};
/* False where the text has no line of a cgroup; *ret is untouched then. */
bool attribution_cgroup_parse(struct str content, struct attribution_cgroup *ret);
/* When the process started, from the text of /proc/<pid>/stat: with the pid it tells processes apart. proc(5) */
bool attribution_stat_parse(struct str content, uint64_t *ret_start_ticks);

/* ---- pod_names.c ---- */

struct attribution_pod_name {
    char ns[ATTRIBUTION_NAME_MAX + 1], pod[ATTRIBUTION_NAME_MAX + 1];
};
/* From the name of a folder of /var/log/pods, <namespace>_<pod>_<uid>; *ret_uid is a part of it. */
bool attribution_pod_folder_parse(struct str name, struct attribution_pod_name *ret, struct str *ret_uid);
/* From the name of a link of /var/log/containers, <pod>_<namespace>_<container>-<id>.log; *ret_id is a part of it. */
bool attribution_log_link_parse(struct str name, struct attribution_pod_name *ret, struct str *ret_id);

/* ---- processes.c ---- */

/* A process that the driver listed, as /proc showed it. */
struct attribution_process {
    uint32_t pid;
    bool is_listed;       /* by the driver, with its memory; else there are only samples of it */
    bool is_read;         /* its cgroup was read, now or while it lived */
    bool is_there;        /* at the last look */
    uint64_t start_ticks; /* when it started: the same pid with another start is another process */
    struct attribution_cgroup cgroup;
    struct attribution_pod_name name; /* "" not known */
};
enum attribution_place {
    ATTRIBUTION_IN_POD,  /* of the name, or of the UID alone */
    ATTRIBUTION_ON_HOST, /* of no pod */
    ATTRIBUTION_UNTOLD,  /* it was gone too soon, or its path is hidden */
};

/* What one look at /proc takes and gives. It runs off the loop and touches nothing else. */
struct attribution_look {
    char procfs[256], pod_logs[256], log_links[256];
    struct attribution_process *processes; /* by pid; in: what was known of each pid */
    size_t n_processes;
    bool wants_names;    /* folders may be read for names that are missing */
    bool has_read_names; /* out: they were */
    bool lacks_names;    /* out: some names are missing still */
    bool has_procfs;     /* out */
    bool is_initial;     /* out: this program is in the host's pid namespace */
    size_t n_found;      /* out: processes that the driver lists and that are there */
    size_t n_foreign;    /* out: of those, in another pod than this program */
    size_t n_never;      /* out: that the driver lists and that were not there at any look */
};
void attribution_look(struct attribution_look *look);
void attribution_find_names(struct attribution_look *look);

struct attribution_processes;
/* procfs, pod_logs, log_links and metrics are of config. done: a look that attribution_processes_look began has ended.
 */
struct attribution_processes *attribution_processes_new(const struct attribution_config *config,
                                                        void (*done)(void *context, const struct snapshot *looked),
                                                        void *context, struct err *e);
void attribution_processes_free(struct attribution_processes *p); /* accepts NULL */
/* Look at the processes of the snapshot. False where its lists were looked at already; else done follows, for this
 * snapshot or a later one. */
bool attribution_processes_look(struct attribution_processes *p, const struct snapshot *s);
/* NULL: the last look had no such pid. */
const struct attribution_process *attribution_processes_find(const struct attribution_processes *p, uint32_t pid);
/* Where a process of that answer is; NULL: UNTOLD. Outside of the host's pid namespace drivers give samples of
 * processes of other namespaces with pids that mean nothing here: what is not listed is UNTOLD there. */
enum attribution_place attribution_processes_place(const struct attribution_processes *p,
                                                   const struct attribution_process *process);
/* What can be seen, for the devices of s. text: SNAPSHOT_TEXT_MAX bytes. */
enum snapshot_sight attribution_processes_sight(const struct attribution_processes *p, const struct snapshot *s,
                                                char *text);

/* ---- holders.c ---- */

struct attribution_holders;
struct attribution_holders *attribution_holders_new(const struct attribution_config *config);
void attribution_holders_free(struct attribution_holders *h); /* accepts NULL */
/* Bring everything up to date. s, processes and owners may be NULL; processes are of s. Returns true where a pod that
 * the kubelet did not list is seen on a device for the first time: the list is worth another read. */
bool attribution_holders_update(struct attribution_holders *h, const struct snapshot *s,
                                const struct snapshot_owners *owners, const struct attribution_processes *processes);
const struct snapshot_holders *attribution_holders_list(const struct attribution_holders *h);
bool attribution_holders_has_process(const struct attribution_holders *h, const char *uuid, const char *ns,
                                     const char *pod);

#endif
