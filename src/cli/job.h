/* Whose GPUs are of interest where this process runs: the environment of a Slurm or Flux job, of a pod or of a bare
 * machine, in; a plan of devices and the words of the context, out. Pure: it reads variables through the caller and
 * looks at devices that the caller describes. Private to cli. */
#ifndef CLI_JOB_H
#define CLI_JOB_H

#include "base/base.h"

#include <stdbool.h>
#include <stddef.h>

enum job_environment { JOB_STANDALONE, JOB_KUBERNETES, JOB_SLURM, JOB_FLUX };
/* "standalone", "k8s", "slurm" or "flux", as the reference implementation calls them. */
const char *job_environment_name(enum job_environment environment);
/* A value of --env: "auto" gives the first that its variable shows (Slurm, Flux, Kubernetes, then standalone). -1 for
 * any other word. */
typedef const char *job_getenv(void *context, const char *name); /* NULL when unset */
int job_environment_of(const char *word, job_getenv *get, void *context, enum job_environment *ret);

/* In which order integers count GPUs. */
enum job_order {
    JOB_ORDER_NODE,    /* as NVML counts, over all GPUs of the node: --device and Slurm's own variables */
    JOB_ORDER_PCI,     /* CUDA with CUDA_DEVICE_ORDER=PCI_BUS_ID, over those that this process may use */
    JOB_ORDER_FASTEST, /* CUDA's default: its ranking is known where all GPUs are of one model */
};

/* One device of a list: an index; a UUID or its beginning; or "MIG-GPU-uuid/gi/ci", the MIG form of drivers before
 * 470, in parts. */
struct job_device {
    int index;      /* -1: by UUID */
    char uuid[96];  /* "GPU-...", "MIG-..."; "" by index */
    int gi, ci;     /* with the UUID of the GPU; else -1 */
    char words[96]; /* as the list has it, for messages */
};

enum { JOB_DEVICES_MAX = 1024, JOB_WORD_MAX = 256 };

enum job_choice {
    JOB_ALL,  /* nothing restricts: every device that is visible */
    JOB_NONE, /* a variable says that there is none */
    JOB_LIST,
};

struct job_plan {
    enum job_environment environment;
    /* Context; "" unknown */
    char node[JOB_WORD_MAX], job_id[JOB_WORD_MAX], partition[JOB_WORD_MAX], pod[JOB_WORD_MAX], ns[JOB_WORD_MAX],
        flux_uri[JOB_WORD_MAX];
    int64_t task_rank; /* -1 unknown */
    /* Devices */
    enum job_choice choice;
    const char *source; /* the variable or flag that chose; NULL with ALL */
    enum job_order order;
    VEC(struct job_device) devices;
    char unread[JOB_WORD_MAX]; /* the first word of the list that names no device; "" none */
};

/* The plan of an environment. device_index: --device, -1 unless given: it wins. host_name: the node's name where no
 * variable gives one. job_plan_fini afterwards. */
void job_plan_init(struct job_plan *plan, enum job_environment environment, int64_t device_index, const char *host_name,
                   job_getenv *get, void *context);
void job_plan_fini(struct job_plan *plan);

/* "all GPUs", "none (CUDA_VISIBLE_DEVICES)", or "0, 2 (SLURM_STEP_GPUS)". */
void job_plan_describe(const struct job_plan *plan, struct buf *out);

/* What a device is, to be found in a list. GPUs in NVML's order, each followed by its MIG devices. */
struct job_seen {
    const char *uuid, *parent_uuid; /* parent_uuid "" unless a MIG device */
    const char *pci_bus_id;         /* of a GPU; "" unknown */
    const char *model;
    int index, gi, ci; /* index of the GPU; gi and ci -1 unless a MIG device */
};

/* Which of the devices are the job's: ret_is_chosen[i] for each of the n. A GPU that is chosen brings its MIG devices.
 * Returns how many words of the list name no device here, the unread one included; `note` then says which, or what
 * else is doubtful: "" nothing. */
size_t job_match(const struct job_plan *plan, const struct job_seen *seen, size_t n, bool *ret_is_chosen,
                 struct buf *note);

#endif
