/* What the files of gpu/ share: the sampler's core (session, devices, plan of readings) as plain functions of a clock,
 * without a thread. thread.c runs it; tests run it with a clock of their own. Included by gpu/ and its tests only. */
#ifndef GPU_CORE_H
#define GPU_CORE_H

#include "gpu/gpu.h"
#include "nvml/nvml.h"

#include <stdatomic.h>

/* What crosses threads besides snapshots. Any thread may touch it. */
struct gpu_shared {
    atomic_bool is_released;                 /* asked for by gpu_release */
    _Atomic int64_t pcie_tx_wanted_until_ns; /* gpu_want */
    _Atomic int64_t pcie_rx_wanted_until_ns;
    _Atomic(const char *) restart_reason; /* static text or NULL */
    _Atomic(const char *) call;           /* static name of the NVML call the thread is in, or NULL */
    _Atomic int64_t call_since_ns;
};

/* A cumulative counter on its way to a rate. */
struct gpu_rate {
    uint64_t last;
    int64_t last_ns; /* 0 = none yet */
};

/* Two GPM samples between which activity is measured, of one GPU or one GPU instance. */
struct gpu_gpm {
    struct nvml_gpm_sample *older, *newer; /* NULL until the first use */
    int64_t older_ns, newer_ns;            /* 0 = nothing in it */
    bool is_known, is_supported;           /* the driver's answer, asked once per device */
    int64_t retry_ns;                      /* after a refusal: not before this time */
};

/* The processes of one device. */
struct gpu_processes {
    VEC(struct snapshot_process)
    list; /* first those that the driver lists, by pid; then those that only have samples */
    size_t n_listed;
    int64_t next_list_ns;
    uint64_t since_us;    /* samples of utilisation after this are new; wall clock */
    uint64_t sampled_us;  /* of the newest sample ever seen; 0 = none */
    uint8_t absent_lists; /* bits of enum nvml_process_kind: the driver has no such list; not asked again */
    bool is_utilization_absent, is_utilization_asked;
};

/* What one process used in the last cycle. */
struct gpu_usage {
    uint32_t pid;
    bool is_known; /* false: the driver said something impossible */
    double percent;
};
struct gpu_usage_list {
    VEC(struct gpu_usage);
};

enum { GPU_ROW_NONE = 0xff };

/* One GPU or MIG device as the core knows it; its readings stand in the store, under the same UUID. */
struct gpu_device {
    struct nvml_device *handle; /* NULL while NVML is closed */
    enum snapshot_kind kind;
    char uuid[SNAPSHOT_UUID_MAX], parent_uuid[SNAPSHOT_UUID_MAX]; /* parent: of a MIG device, else "" */
    char bus_id[NVML_BUS_ID_MAX];
    uint32_t gpu_instance, compute_instance; /* of a MIG device */
    bool is_seen;                            /* by the enumeration that is going on */
    bool is_mig_incapable;                   /* the driver said so; not asked again */
    bool has_events;                         /* registered with the event set */
    bool is_lost;
    int64_t lost_retry_ns, lost_wait_ns;
    int64_t next_slow_ns;
    double pcie_capacity;                /* bytes per second that the link can carry at most; 0 = not asked yet */
    uint8_t rows[SNAPSHOT_FIELD_COUNT];  /* the row of the plan that serves each field, or GPU_ROW_NONE */
    bool is_tried[SNAPSHOT_FIELD_COUNT]; /* has this row been asked at all? */
    struct gpu_rate rates[SNAPSHOT_FIELD_COUNT];
    struct gpu_gpm gpm;
    struct gpu_processes processes;
};

/* The session with NVML. */
enum gpu_phase {
    GPU_CLOSED,   /* no library held; opened again at retry_ns */
    GPU_OPEN,     /* initialised; devices are read each cycle */
    GPU_RELEASED, /* no library held, on request */
};

struct gpu_core {
    struct gpu_config config;
    struct gpu_shared *shared;
    int64_t (*clock_ns)(void), (*wall_ns)(void); /* wall: the driver stamps samples of processes with it */
    struct snapshot_store *store;
    struct snapshot *header; /* the store's; counts and driver state are written here */

    enum gpu_phase phase;
    struct nvml *nvml; /* NULL unless OPEN */
    int64_t retry_ns, retry_wait_ns;
    int64_t hopeless_since_ns; /* since when only failures that a restart can end have come; 0 = not */
    bool was_released;         /* the next enumeration is the truth: what it does not list is gone, not lost */

    VEC(struct gpu_device) devices; /* GPUs and MIG devices, in no order */
    uint32_t count;                 /* NVML's, at the last enumeration */
    int64_t next_inventory_ns;
    struct nvml_event_set *events;
    int64_t events_retry_ns;
    size_t sampled_cursor; /* device * 2 + direction of the next sampled PCIe call */

    /* process.c's, kept for their room */
    struct nvml_process_list list, found;
    VEC(struct snapshot_process) fresh;
    struct nvml_process_utilization_list samples;
    struct gpu_usage_list usages;

    /* of the cycle that is going on */
    int ending_rc; /* a code that ends the session, or 0 */
    int count_rc;  /* why the GPUs could not be counted, or 0 */
    uint32_t n_values, n_unknown;
    uint32_t all_unknown_cycles; /* consecutive cycles in which every reading failed with 999 */
};

/* `shared` must outlive the core. clock_ns reads the monotonic clock (time_mono_ns, or a test's own; such a test sets
 * wall_ns as well). */
struct gpu_core *gpu_core_new(const struct gpu_config *config, struct gpu_shared *shared, int64_t (*clock_ns)(void));
/* Shuts NVML down and frees. Accepts NULL. */
void gpu_core_free(struct gpu_core *core);
/* One cycle: whatever the session's state asks for at this time: try to open, read what is due, close. */
void gpu_core_cycle(struct gpu_core *core);
/* A snapshot of what is known now; one reference for the caller. */
struct snapshot *gpu_core_publish(struct gpu_core *core);
/* The configuration with its defaults filled in. */
struct gpu_config gpu_config_complete(const struct gpu_config *config);

/* ---- failures ---- */

/* Count a failed call under its code. */
void gpu_count_error(struct gpu_core *core, int rc);
/* Note a code that ends the session; returns true when it does. */
bool gpu_ends_session(struct gpu_core *core, int rc);

/* ---- inventory.c: which devices there are ---- */

/* Bring core->devices and the store in line with the driver: count and MIG layout each cycle, identity of all GPUs
 * when the count changed or the slow period has passed; ask lost GPUs again when their time has come. */
void gpu_inventory_refresh(struct gpu_core *core);
/* The GPU stopped answering with rc: it and its MIG devices are lost until a later probe finds it again. */
void gpu_inventory_lose(struct gpu_core *core, struct gpu_device *d, int rc);
/* Forget handles and everything learnt in this session (before NVML is closed). */
void gpu_inventory_forget(struct gpu_core *core);
/* By UUID; NULL if there is none. */
struct gpu_device *gpu_inventory_find(struct gpu_core *core, const char *uuid);

/* ---- plan.c: what is read of each, and how ---- */

/* Start the plan of a device anew: every field at its first source. Fields without any source are UNSUPPORTED. */
void gpu_plan_reset(struct gpu_core *core, struct gpu_device *d);
/* Read what is due of one device. */
void gpu_plan_read(struct gpu_core *core, struct gpu_device *d);
/* The sampled PCIe call, for at most one GPU and direction, while wanted. */
void gpu_plan_sample_pcie(struct gpu_core *core);
/* Fill the header's field periods. */
void gpu_plan_write_periods(struct gpu_core *core);

/* ---- process.c, usage.c: who is there, and what they use ---- */

/* The lists that are due, and the utilisation of this cycle, of all devices; nothing unless configured. */
void gpu_process_read(struct gpu_core *core);
/* Take away what is too old to be true. */
void gpu_process_age(struct gpu_core *core);
/* Forget what the driver can and cannot do; what was read stays until it is too old. */
void gpu_process_reset(struct gpu_device *d);
/* Forget all and free. */
void gpu_process_fini(struct gpu_device *d);
/* The mean of each process over the time that the samples are of, by pid. NVML gives each process one sample, its mean
 * since the time asked for: that is the answer. Where a process has samples of several moments the driver gives its raw
 * ones, one a moment and process that was active: the mean is over all moments, so that processes which take turns add
 * up to what the GPU did. Samples of one moment add up, to 100 at most. Puts `samples` in another order. */
void gpu_usage_of(struct nvml_process_utilization_list *samples, struct gpu_usage_list *ret);

/* ---- gpm.c: activity on Hopper and later ---- */

/* Take a sample and give `len` metrics (metric_id set by the caller, rc and value filled) since the one before.
 * Returns 0, or the code why there is none now: NOT_READY while the pair is being seeded, NO_PERMISSION,
 * NOT_SUPPORTED, ... *ret_taken_ns is when the newer sample was taken. */
int gpu_gpm_read(struct gpu_core *core, struct gpu_device *d, struct nvml_gpm_metric *metrics, size_t len,
                 int64_t *ret_taken_ns);
/* Free the samples and forget the pair. */
void gpu_gpm_reset(struct gpu_core *core, struct gpu_device *d);

/* ---- events.c: Xids ---- */

/* Count what has come since the last cycle; never waits. */
void gpu_events_poll(struct gpu_core *core);
/* Drop the event set; it is built anew at the next poll. */
void gpu_events_reset(struct gpu_core *core);

/* ---- rate.c: counters to rates ---- */

struct gpu_count {
    uint64_t raw;
    bool is_32_bit;  /* wraps at 2^32 */
    double capacity; /* raw units per second that the hardware can do at most */
};
/* The rate in raw units per second since the last count; false when there is none: the first one, a counter that was
 * reset, a 32-bit counter that may have wrapped more than once, or more than the hardware can do. */
bool gpu_rate_step(struct gpu_rate *rate, const struct gpu_count *count, int64_t now_ns, double *ret_per_second);
/* Can a counter of 32 bits be read often enough at this period? */
bool gpu_rate_is_unambiguous(double capacity, int64_t period_ns);

#endif
