/* snapshot: an immutable reading of one node's GPUs: devices, fields with their validity, age and past.
 * Owns the writer's store that snapshots are published from, and the questions that readers ask. It knows no NVML, no
 * trigger and no clock: `now` is a parameter (nanoseconds of the monotonic clock). */
#ifndef SNAPSHOT_SNAPSHOT_H
#define SNAPSHOT_SNAPSHOT_H

#include "base/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is known of a device: X(id, name, unit, keeps a past).
 * Units are base units: percent 0-100, bytes, degrees Celsius, watts, joules, hertz, bytes per second, counts, seconds.
 * energy, nvlink_bytes (both directions), violation_*, pcie_replays and the errors count up, most since the driver was
 * loaded; violation_*: for how long the clocks were held down for that reason.
 * A field with a past has running integrals and answers for windows up to SNAPSHOT_WINDOW_MAX_NS. */
#define SNAPSHOT_FIELDS(X)                                                                                             \
    X(UTILIZATION, "utilization", "percent", true)                                                                     \
    X(MEMORY_UTILIZATION, "memory_utilization", "percent", true)                                                       \
    X(MEMORY_USED, "memory_used", "bytes", true)                                                                       \
    X(MEMORY_FREE, "memory_free", "bytes", false)                                                                      \
    X(MEMORY_RESERVED, "memory_reserved", "bytes", false)                                                              \
    X(MEMORY_TOTAL, "memory_total", "bytes", false)                                                                    \
    X(TEMPERATURE, "temperature", "celsius", true)                                                                     \
    X(MEMORY_TEMPERATURE, "memory_temperature", "celsius", false)                                                      \
    X(POWER, "power", "watts", true)                                                                                   \
    X(POWER_LIMIT, "power_limit", "watts", false)                                                                      \
    X(ENERGY, "energy", "joules", false)                                                                               \
    X(SM_CLOCK, "sm_clock", "hertz", false)                                                                            \
    X(MEMORY_CLOCK, "memory_clock", "hertz", false)                                                                    \
    X(THROTTLE_REASONS, "throttle_reasons", "bits", false)                                                             \
    X(VIOLATION_POWER, "violation_power", "seconds", false)                                                            \
    X(VIOLATION_THERMAL, "violation_thermal", "seconds", false)                                                        \
    X(VIOLATION_SYNC_BOOST, "violation_sync_boost", "seconds", false)                                                  \
    X(VIOLATION_BOARD_LIMIT, "violation_board_limit", "seconds", false)                                                \
    X(VIOLATION_LOW_UTILIZATION, "violation_low_utilization", "seconds", false)                                        \
    X(VIOLATION_RELIABILITY, "violation_reliability", "seconds", false)                                                \
    X(PCIE_TX, "pcie_tx", "bytes_per_second", true)                                                                    \
    X(PCIE_RX, "pcie_rx", "bytes_per_second", true)                                                                    \
    X(PCIE_REPLAYS, "pcie_replays", "count", false)                                                                    \
    X(PCIE_LINK_GENERATION, "pcie_link_generation", "count", false)                                                    \
    X(PCIE_LINK_WIDTH, "pcie_link_width", "count", false)                                                              \
    X(NVLINK_TX, "nvlink_tx", "bytes_per_second", true)                                                                \
    X(NVLINK_RX, "nvlink_rx", "bytes_per_second", true)                                                                \
    X(NVLINK_BYTES, "nvlink_bytes", "bytes", false)                                                                    \
    X(ENCODER_UTILIZATION, "encoder_utilization", "percent", true)                                                     \
    X(DECODER_UTILIZATION, "decoder_utilization", "percent", true)                                                     \
    X(ECC_CORRECTED, "ecc_corrected", "count", false)                                                                  \
    X(ECC_UNCORRECTED, "ecc_uncorrected", "count", false)                                                              \
    X(REMAPPED_ROWS_CORRECTABLE, "remapped_rows_correctable", "count", false)                                          \
    X(REMAPPED_ROWS_UNCORRECTABLE, "remapped_rows_uncorrectable", "count", false)                                      \
    X(REMAPPED_ROWS_PENDING, "remapped_rows_pending", "bool", false)                                                   \
    X(REMAPPED_ROWS_FAILED, "remapped_rows_failed", "bool", false)                                                     \
    X(FAN_SPEED, "fan_speed", "percent", false)                                                                        \
    X(RECOVERY_ACTION, "recovery_action", "code", false)                                                               \
    X(GRAPHICS_ACTIVITY, "graphics_activity", "percent", true)                                                         \
    X(SM_ACTIVITY, "sm_activity", "percent", true)                                                                     \
    X(SM_OCCUPANCY, "sm_occupancy", "percent", true)                                                                   \
    X(TENSOR_ACTIVITY, "tensor_activity", "percent", true)                                                             \
    X(DRAM_ACTIVITY, "dram_activity", "percent", true)

enum snapshot_field {
#define X(id, name, unit, has_past) SNAPSHOT_##id,
    SNAPSHOT_FIELDS(X)
#undef X
        SNAPSHOT_FIELD_COUNT
};

const char *snapshot_field_name(enum snapshot_field field);
const char *snapshot_field_unit(enum snapshot_field field);
bool snapshot_field_has_past(enum snapshot_field field);

/* How the last attempt to read a field went. */
enum snapshot_status {
    SNAPSHOT_NOT_READ,    /* no attempt yet */
    SNAPSHOT_OK,          /* value and taken_ns are of that attempt */
    SNAPSHOT_UNSUPPORTED, /* this board, driver or permission does not give it; not an error and not a 0 */
    SNAPSHOT_FAILED,      /* value and taken_ns are of the last good one, taken_ns 0 if there never was one */
};

struct snapshot_reading {
    enum snapshot_status status;
    int code;         /* FAILED: NVML's return code, for people; 0 unknown */
    double value;     /* of the last good reading, in the field's unit; finite and >= 0 */
    int64_t taken_ns; /* when that was; 0 = never */
};

enum {
    SNAPSHOT_UUID_MAX = 96, /* as NVML's v2 buffer */
    SNAPSHOT_NAME_MAX = 96,
    SNAPSHOT_TEXT_MAX = 192,
    SNAPSHOT_XIDS_MAX = 16,
    SNAPSHOT_DEVICES_MAX = 1024,
};
#define SNAPSHOT_WINDOW_MAX_NS (300 * NS_PER_S)

enum snapshot_kind {
    SNAPSHOT_GPU,        /* a whole GPU, MIG off */
    SNAPSHOT_MIG_PARENT, /* a GPU with MIG on: carries board values once; no load of its own */
    SNAPSHOT_MIG,        /* a MIG device (compute instance) */
};

struct snapshot_xid {
    uint32_t xid;
    uint64_t count;
    int64_t last_ns;
};

struct snapshot_device {
    uint32_t id;           /* of this incarnation: never used again, even if the same UUID comes back */
    int64_t first_seen_ns; /* taken_ns of the first snapshot that had this incarnation; set by the store */
    enum snapshot_kind kind;
    bool is_lost;        /* fell off the bus or needs a reset: its readings no longer move */
    bool is_mig_pending; /* a GPU whose MIG mode changes with its next reset */
    char lost_reason[SNAPSHOT_TEXT_MAX];
    int index;                                /* NVML index of the GPU (of the parent for a MIG device) */
    int minor;                                /* N of /dev/nvidiaN, -1 unknown */
    char uuid[SNAPSHOT_UUID_MAX];             /* "GPU-..." or "MIG-..." */
    char parent_uuid[SNAPSHOT_UUID_MAX];      /* MIG device: its GPU; else "" */
    int gpu_instance, compute_instance;       /* MIG device; else -1 */
    char mig_profile[32];                     /* "1g.10gb"; else "" */
    uint32_t placement_start, placement_size; /* MIG device: the memory slices of its GPU instance; size 0 unknown */
    char product[SNAPSHOT_NAME_MAX];          /* "NVIDIA H100 80GB HBM3" */
    char pci_bus_id[32];                      /* "00000000:3B:00.0" */
    char serial[32];                          /* "" unknown */
    struct snapshot_reading readings[SNAPSHOT_FIELD_COUNT];
    struct snapshot_xid xids[SNAPSHOT_XIDS_MAX];
    size_t n_xids;
    /* Processes: how the last reading of the list and of each one's utilisation went, and when the last good one was.
     * OK with no process in the snapshot: nobody is there. FAILED: the list is that of the last good reading, until it
     * is too old; then it is empty, and each process without utilisation. A MIG parent is UNSUPPORTED: its processes
     * are those of its MIG devices. */
    struct {
        enum snapshot_status status;
        int64_t taken_ns;
    } process_list, process_utilization;
};

/* One process on one device, as the driver lists it: of a GPU, or of a MIG device. */
struct snapshot_process {
    uint32_t device_id; /* snapshot_device.id */
    uint32_t pid;       /* as the driver counts: a host pid where this program sees the host's processes */
    bool has_memory;    /* false: the driver does not say */
    uint64_t memory_bytes;
    bool has_utilization; /* false: not given for this device; else 0 where the driver has no sample: idle */
    double utilization;   /* percent of the whole device, mean over the last cycle; 0-100 */
};
enum { SNAPSHOT_PROCESSES_MAX = 8192 };

/* The driver as the sampler last saw it. */
#define SNAPSHOT_DRIVER_STATES(X)                                                                                      \
    X(STARTING, "starting")     /* nothing has been tried yet */                                                       \
    X(OK, "ok")                 /* initialised, devices are read */                                                    \
    X(NO_LIBRARY, "no_library") /* libnvidia-ml.so.1 was not found */                                                  \
    X(NOT_LOADED, "not_loaded") /* library there, kernel driver not */                                                 \
    X(MISMATCH, "mismatch")     /* library and kernel driver of different versions */                                  \
    X(NO_DEVICES, "no_devices") /* initialised, but no device is visible */                                            \
    X(FAILED, "failed")         /* any other failure; the text says which */                                           \
    X(RELEASED, "released")     /* let go of on request */
enum snapshot_driver_state {
#define X(id, name) SNAPSHOT_DRIVER_##id,
    SNAPSHOT_DRIVER_STATES(X)
#undef X
};
const char *snapshot_driver_state_name(enum snapshot_driver_state state);

/* What the sampler counts about itself; all since the process started. */
struct snapshot_sampler {
    uint64_t cycles, nvml_calls, errors, reinits;
    double last_cycle_seconds, max_cycle_seconds;
    struct {
        int code; /* NVML return code */
        uint64_t count;
    } errors_by_code[32];
    size_t n_error_codes;
};

struct snapshot_frame; /* the integrals of all devices at one past moment */

struct snapshot {
    int64_t taken_ns;  /* end of the sampling cycle that published it */
    int64_t period_ns; /* of the main cycle */
    enum snapshot_driver_state driver;
    char driver_text[SNAPSHOT_TEXT_MAX]; /* for people: what is wrong and the next step; "" when OK */
    char driver_version[80], nvml_version[80], library_path[256];
    bool is_simulated; /* the devices are nvmlsim's */
    struct snapshot_sampler sampler;
    int64_t field_period_ns[SNAPSHOT_FIELD_COUNT]; /* how often each field is read; 0 = every main cycle */
    size_t n_devices;
    const struct snapshot_device *devices;    /* GPUs in index order, each followed by its MIG devices */
    size_t n_processes, n_processes_dropped;  /* dropped: beyond SNAPSHOT_PROCESSES_MAX */
    const struct snapshot_process *processes; /* in the order of devices, then by pid; each pid once a device */
    /* private: the past */
    size_t n_frames;
    struct snapshot_frame *const *frames; /* oldest first, the last one is of taken_ns */
};

/* Snapshots are shared between threads by reference count; both only for what snapshot_store_publish returned. */
struct snapshot *snapshot_ref(const struct snapshot *s);
void snapshot_unref(const struct snapshot *s); /* accepts NULL */

/* ---- questions ---- */

/* Beyond this age a reading of the field is missing: max(3 of its sampling periods, 5 s). scaling-semantics 2.1 */
int64_t snapshot_age_limit_ns(const struct snapshot *s, enum snapshot_field field);

/* Is there a good reading, not older than the limit, on a device that is not lost? A failed attempt alone does not end
 * a reading: it ages. */
bool snapshot_is_fresh(const struct snapshot *s, const struct snapshot_device *d, enum snapshot_field field,
                       int64_t now_ns);

/* For how long no sampling cycle has ended, where that is longer than a reading of the main cycle may be old: a driver
 * call hangs. 0 while cycles end. */
int64_t snapshot_stuck_ns(const struct snapshot *s, int64_t now_ns);

/* The time-weighted mean of the field over [now - window, now], over the valid part of that time; window 0, or a window
 * without a sample of its own (slow fields), gives the newest reading. A turn that began before the snapshot was taken
 * asks as of the snapshot. Returns false when the field is not fresh. `field` must keep a past unless window is 0. */
bool snapshot_mean(const struct snapshot *s, const struct snapshot_device *d, enum snapshot_field field, int64_t now_ns,
                   int64_t window_ns, double *ret_mean);

/* The largest sample of the field taken in [now - window, now]; at least the newest reading. Same conditions. Samples
 * less than a second apart are kept together, so that one just before the window may count. */
bool snapshot_peak(const struct snapshot *s, const struct snapshot_device *d, enum snapshot_field field, int64_t now_ns,
                   int64_t window_ns, double *ret_peak);

/* The processes of one device, by pid, *ret_n of them in a row; NULL and 0 if there are none. */
const struct snapshot_process *snapshot_processes_of(const struct snapshot *s, const struct snapshot_device *d,
                                                     size_t *ret_n);

/* The value integrated over valid time since the device appeared, in unit x seconds, and that time in seconds, as the
 * snapshot has them: differences between two snapshots are what the time between them is worth. False where the field
 * keeps no past or had no good reading yet; both are then 0. */
bool snapshot_total(const struct snapshot *s, const struct snapshot_device *d, enum snapshot_field field,
                    double *ret_integral, double *ret_valid_s);

/* By UUID, any case; NULL if there is none. */
const struct snapshot_device *snapshot_find_device(const struct snapshot *s, const char *uuid);

/* ---- owners: which pods hold which devices ---- */

/* How the last attempt to learn the owners went. */
#define SNAPSHOT_OWNERS_STATES(X)                                                                                      \
    X(STARTING, "starting")   /* no answer yet */                                                                      \
    X(OK, "ok")               /* holdings are of that attempt */                                                       \
    X(NO_SOCKET, "no_socket") /* the kubelet's socket is not there or nobody listens */                                \
    X(DENIED, "denied")       /* it is there and may not be opened */                                                  \
    X(FAILED, "failed")       /* any other failure; the text says which */
enum snapshot_owners_state {
#define X(id, name) SNAPSHOT_OWNERS_##id,
    SNAPSHOT_OWNERS_STATES(X)
#undef X
};
const char *snapshot_owners_state_name(enum snapshot_owners_state state);

/* One container that holds one device. Texts belong to the owners; none is NULL; they come from the cluster and need
 * escaping wherever they are shown. */
struct snapshot_holding {
    const char *uuid; /* of the GPU or MIG device; "" where the id names none that was ever seen (is_matched false) */
    const char *device_id;            /* as listed; of several shares the first */
    const char *ns, *pod, *container; /* namespace, pod and container name */
    const char *resource;             /* "nvidia.com/gpu"; of DRA the driver's name */
    const char *claim_ns, *claim;     /* DRA: the ResourceClaim; else "" */
    bool is_matched;                  /* the device is in the snapshot that the answer was matched with */
    bool is_shared;                   /* others may hold it too: a replica, or a claim with several holders */
    bool is_dra;                      /* by a resource claim, not by the device plugin */
    int replica;                      /* of the first share: "::7" is 7; -1 not a replica */
    uint32_t shares;                  /* replicas of this device that the container has; at least 1 */
};

enum { SNAPSHOT_HOLDINGS_MAX = 4096 };

/* Immutable. Where status is not OK the holdings are those of the last good answer, until they are too old. */
struct snapshot_owners {
    int64_t taken_ns; /* when the kubelet gave the holdings; 0 = never, or too long ago */
    enum snapshot_owners_state state;
    char text[SNAPSHOT_TEXT_MAX];  /* for people: what is wrong and the next step; "" when OK */
    size_t n_pods;                 /* that the answer listed */
    size_t n_matched, n_unmatched; /* ids of GPUs that name a device of the snapshot, and that do not */
    size_t n_superseded; /* left out: an exclusive device that a later pod of the list has (its holder has ended) */
    size_t n_dropped;    /* left out: beyond SNAPSHOT_HOLDINGS_MAX */
    size_t n_holdings;
    const struct snapshot_holding *holdings; /* by uuid, then namespace, pod, container */
};

/* A copy of *owners with everything that it points to and one reference; holdings are put in order. */
struct snapshot_owners *snapshot_owners_new(const struct snapshot_owners *owners);
struct snapshot_owners *snapshot_owners_ref(const struct snapshot_owners *owners);
void snapshot_owners_unref(const struct snapshot_owners *owners); /* accepts NULL */
/* The holdings of one device, as it spells its UUID, *ret_n of them in a row; NULL and 0 if there are none. owners may
 * be NULL. */
const struct snapshot_holding *snapshot_owners_of(const struct snapshot_owners *owners, const char *uuid,
                                                  size_t *ret_n);

/* ---- holders: what each pod does on each device ---- */

/* The lowest and the highest memory use in percent of the device, of each of the last 30 minutes. 2.8 */
enum { SNAPSHOT_MINUTES = 30 };
struct snapshot_minutes {
    int64_t minute; /* number of the newest one on the monotonic clock: now_ns / 60 s; 0 = nothing yet */
    struct snapshot_extremes {
        float low, high;    /* low > high: nothing was read in that minute */
    } of[SNAPSHOT_MINUTES]; /* by minute modulo SNAPSHOT_MINUTES; older ones are forgotten */
};

/* One pod on one device. Texts live as long as the struct that lists it. */
struct snapshot_holder {
    uint32_t id;          /* never used again: the same pod that comes back is a new one */
    uint32_t device_id;   /* snapshot_device.id */
    const char *uuid;     /* of the device */
    const char *ns, *pod; /* "" where not known */
    const char *pod_uid;  /* "" where not known; with ns and pod "" too: a process of no pod */
    bool is_listed;       /* the kubelet says that it holds the device; else it only has processes there */
    bool is_shared;       /* others may hold the device too */
    uint32_t shares;      /* replicas of the device that it has; 0 where not listed */
    size_t n_processes;   /* that were attributed to it at the last look */
    int64_t since_ns;     /* since when, as this program saw it */
    /* What it does, with its past: UTILIZATION (percent of the whole device) and MEMORY_USED of its own processes, each
     * as far as the driver gives it; in `uses` of the list. NULL: nothing of it is measured by process. Ask
     * snapshot_mean and snapshot_peak of `uses`. */
    const struct snapshot_device *use;
    /* Of a shared device its own memory, in percent of that and what is free; of others the device's. NULL: not read.
     */
    const struct snapshot_minutes *memory;
};

/* Can processes be told apart by pod? X(id, name) */
#define SNAPSHOT_SIGHT_STATES(X)                                                                                       \
    X(OFF, "off")                   /* not asked for */                                                                \
    X(STARTING, "starting")         /* nothing was looked at yet */                                                    \
    X(OK, "ok")                     /* the host's processes are seen */                                                \
    X(NO_HOST_PIDS, "no_host_pids") /* this program is in a pid namespace of its own */                                \
    X(NO_PROCFS, "no_procfs")       /* the host's /proc is not there or not readable */                                \
    X(NOT_GIVEN, "not_given")       /* the driver lists no processes on any device */
enum snapshot_sight {
#define X(id, name) SNAPSHOT_SIGHT_##id,
    SNAPSHOT_SIGHT_STATES(X)
#undef X
};
const char *snapshot_sight_name(enum snapshot_sight sight);

struct snapshot_holders {
    int64_t taken_ns; /* of the snapshot that it was made with; 0 = never */
    enum snapshot_sight sight;
    char text[SNAPSHOT_TEXT_MAX]; /* for people: what is wrong and the next step; "" when OK, OFF or STARTING */
    const struct snapshot *uses;  /* what `use` points into; NULL: nothing is measured by process */
    size_t n_unattributed;        /* processes whose pod could not be told */
    size_t n_holders;
    const struct snapshot_holder *holders; /* in the order of devices, then by namespace and pod */
};

/* ---- the writer's side: one thread ---- */

struct snapshot_store;
struct snapshot_store *snapshot_store_new(int64_t period_ns);
void snapshot_store_free(struct snapshot_store *store);

/* What snapshots will carry besides devices; the caller sets its fields at any time (devices, frames, taken_ns apart).
 */
struct snapshot *snapshot_store_header(struct snapshot_store *store);

/* Add a device at the end (copy of *device with a fresh id; readings are reset). Returns its place for record/fail,
 * valid until it is removed. NULL at SNAPSHOT_DEVICES_MAX. Remove an old incarnation of the UUID first: nothing here
 * does. */
struct snapshot_device *snapshot_store_add(struct snapshot_store *store, const struct snapshot_device *device);
/* The device of this UUID as the store has it, or NULL. The caller may change identity fields, is_lost, xids and
 * how the readings of processes went. */
struct snapshot_device *snapshot_store_find(struct snapshot_store *store, const char *uuid);
void snapshot_store_remove(struct snapshot_store *store, const char *uuid);
void snapshot_store_remove_all(struct snapshot_store *store);
/* Keep devices in index order, each GPU followed by its MIG devices by instance ids. */
void snapshot_store_sort(struct snapshot_store *store);

/* A good reading, taken at now_ns > 0. The value stands for the time since the previous good reading of the field (for
 * one period of the field when that is older than the age limit): integrals grow by value * time. Values that are not
 * finite or < 0 count as a failure. */
void snapshot_store_record(struct snapshot_store *store, struct snapshot_device *device, enum snapshot_field field,
                           double value, int64_t now_ns);
/* An attempt without a value: SNAPSHOT_UNSUPPORTED or SNAPSHOT_FAILED. Sets no code: the caller may. */
void snapshot_store_fail(struct snapshot_device *device, enum snapshot_field field, enum snapshot_status status);

/* Replaces the processes of the device by a copy of these n, in any order, each pid once; device_id is filled in. They
 * go when the device goes. Beyond SNAPSHOT_PROCESSES_MAX in all, the last devices' are left out of what is published,
 * and counted. The device's process_list and process_utilization are the caller's to set. */
void snapshot_store_set_processes(struct snapshot_store *store, struct snapshot_device *device,
                                  const struct snapshot_process *processes, size_t n);

/* An immutable snapshot of everything as it stands, with one reference for the caller. A frame closer than
 * 950 ms to the last kept one is in this snapshot only; at most 320 are kept: those of the longest window and one
 * before it. now_ns > 0 and not before the last call's. */
struct snapshot *snapshot_store_publish(struct snapshot_store *store, int64_t now_ns);

#endif
