/* scenario: what a simulated machine is and does over time, as parsed from YAML. Plain data and a pure parser: no
 * clock, no NVML; files other than the text itself come through a callback. The format is described in docs/nvmlsim.md.
 */
#ifndef NVMLSIM_SCENARIO_H
#define NVMLSIM_SCENARIO_H

#include "nvmlsim/board.h"

#include "base/base.h"
#include "scene/scene.h"

enum {
    SCENARIO_GPUS_MAX = 64,
    SCENARIO_PROCESSES_MAX = 256, /* of one GPU */
    SCENARIO_EVENTS_MAX = 1000,
    SCENARIO_FAULTS_MAX = 1000,
};

/* Quantities of a GPU over time: X(name, key in the file, lowest, highest, also of a MIG instance).
 * To add one: a line here, its default in player.c, a row in docs/nvmlsim.md. */
#define SIGNALS(X)                                                                                                     \
    X(UTILIZATION, "utilization", 0, 100, true)                                                                        \
    X(MEMORY_UTILIZATION, "memory_utilization", 0, 100, false)                                                         \
    X(MEMORY_USED, "memory_used_mib", 0, 1e9, true)                                                                    \
    X(TEMPERATURE, "temperature", -20, 150, false)                                                                     \
    X(MEMORY_TEMPERATURE, "memory_temperature", -20, 150, false)                                                       \
    X(POWER, "power_w", 0, 10000, false)                                                                               \
    X(PCIE_TX, "pcie_tx_kbps", 0, 4e9, false)                                                                          \
    X(PCIE_RX, "pcie_rx_kbps", 0, 4e9, false)                                                                          \
    X(NVLINK_TX, "nvlink_tx_kibps", 0, 1e10, false)                                                                    \
    X(NVLINK_RX, "nvlink_rx_kibps", 0, 1e10, false)                                                                    \
    X(ENCODER, "encoder", 0, 100, false)                                                                               \
    X(DECODER, "decoder", 0, 100, false)                                                                               \
    X(JPEG, "jpeg", 0, 100, false)                                                                                     \
    X(OFA, "ofa", 0, 100, false)                                                                                       \
    X(SM_ACTIVITY, "sm_activity", 0, 100, true)                                                                        \
    X(SM_OCCUPANCY, "sm_occupancy", 0, 100, true)                                                                      \
    X(TENSOR_ACTIVITY, "tensor_activity", 0, 100, true)                                                                \
    X(DRAM_ACTIVITY, "dram_activity", 0, 100, true)                                                                    \
    X(FP64_ACTIVITY, "fp64_activity", 0, 100, true)                                                                    \
    X(FP32_ACTIVITY, "fp32_activity", 0, 100, true)                                                                    \
    X(FP16_ACTIVITY, "fp16_activity", 0, 100, true)                                                                    \
    X(SM_CLOCK, "sm_clock_mhz", 0, 10000, false)                                                                       \
    X(MEMORY_CLOCK, "memory_clock_mhz", 0, 20000, false)                                                               \
    X(VIDEO_CLOCK, "video_clock_mhz", 0, 10000, false)

enum signal {
#define X(name, key, lowest, highest, is_of_instance) SIGNAL_##name,
    SIGNALS(X)
#undef X
        SIGNAL_COUNT
};

/* Error counters: X(name, key). All start at what `ecc:` gives and grow by events. */
#define ECC_COUNTS(X)                                                                                                  \
    X(CORRECTED, "corrected")                                                                                          \
    X(UNCORRECTED, "uncorrected")                                                                                      \
    X(REMAPPED_CORRECTABLE, "remapped_correctable")                                                                    \
    X(REMAPPED_UNCORRECTABLE, "remapped_uncorrectable")                                                                \
    X(REMAP_PENDING, "remap_pending")                                                                                  \
    X(REMAP_FAILURE, "remap_failure")                                                                                  \
    X(RETIRED_PAGES, "retired_pages")                                                                                  \
    X(PCIE_REPLAYS, "pcie_replays")

enum ecc_count {
#define X(name, key) ECC_##name,
    ECC_COUNTS(X)
#undef X
        ECC_COUNT
};

enum process_type { PROCESS_COMPUTE, PROCESS_GRAPHICS, PROCESS_MPS };

struct process {
    uint32_t pid;
    enum process_type type;
    bool is_hidden;         /* of another pid namespace: not listed, and sampled under the host's pid */
    double from_s, until_s; /* until: INFINITY = for ever */
    struct curve memory_mib, sm, memory, encoder, decoder;
    uint32_t gpu_instance, compute_instance; /* UINT32_MAX outside MIG */
};

struct compute_instance {
    uint32_t id, start, slices; /* start: first slice within the GPU instance */
    char profile[24];           /* "3g.40gb", "1c.3g.40gb" */
    char uuid[48]; /* "MIG-8-4-4-4-12": depends on GPU, shape and place, so the same layout gives it again */
};

struct mig_instance {
    struct mig_profile profile;
    uint32_t id, start; /* start: first memory slice */
    size_t n_compute;
    struct compute_instance compute[MIG_SLICES];
    const struct curve *curves; /* SIGNAL_COUNT of them */
};

/* How a GPU is divided from since_s on. */
struct mig_layout {
    double since_s;
    bool is_enabled;
    size_t n_instances;
    struct mig_instance *instances; /* at most MIG_SLICES, by ascending start */
};

struct gpu {
    const struct board *board;
    char uuid[48];
    char serial[24];
    uint32_t domain, bus, slot; /* PCI */
    uint32_t minor;
    const struct curve *curves; /* SIGNAL_COUNT of them */
    bool is_memory_percent;     /* memory_used came as percent of the total */
    double ecc[ECC_COUNT];
    uint64_t throttle;        /* NVML_REASON_ bits on top of the derived ones */
    uint32_t recovery_action; /* field 230 */
    bool is_mig_pending;      /* the other MIG mode waits for a reset */
    size_t n_processes;
    const struct process *processes;
    size_t n_layouts;
    struct mig_layout *layouts; /* at least one, ascending in time, the first since 0 */
};

enum event_kind { EVENT_XID, EVENT_ECC, EVENT_MIG, EVENT_COUNT, EVENT_THROTTLE, EVENT_RECOVERY };
enum { EVENT_ALL_GPUS = UINT32_MAX };

struct event {
    double at_s;
    enum event_kind kind;
    uint32_t gpu;    /* index, or EVENT_ALL_GPUS */
    uint64_t number; /* the Xid, count, throttle bits, recovery action */
    double ecc[ECC_COUNT];
};

/* X(name, key, NVML return code or 0 where the fault is about time). */
#define FAULTS(X)                                                                                                      \
    X(LOST, "lost", 15)                                                                                                \
    X(NOT_SUPPORTED, "not_supported", 3)                                                                               \
    X(NO_PERMISSION, "no_permission", 4)                                                                               \
    X(UNKNOWN, "unknown", 999)                                                                                         \
    X(UNINITIALIZED, "uninitialized", 1)                                                                               \
    X(DRIVER_NOT_LOADED, "driver_not_loaded", 9)                                                                       \
    X(LIB_RM_VERSION_MISMATCH, "lib_rm_version_mismatch", 18)                                                          \
    X(RESET_REQUIRED, "reset_required", 16)                                                                            \
    X(FUNCTION_NOT_FOUND, "function_not_found", 13)                                                                    \
    X(TIMEOUT, "timeout", 10)                                                                                          \
    X(SLOW, "slow", 0)                                                                                                 \
    X(HUNG, "hung", 0)                                                                                                 \
    X(INIT_HANG, "init_hang", 0)

enum fault_kind {
#define X(name, key, rc) FAULT_##name,
    FAULTS(X)
#undef X
        FAULT_COUNT
};

struct fault {
    enum fault_kind kind;
    double from_s, until_s;
    uint32_t gpu;         /* index, or EVENT_ALL_GPUS */
    const char *function; /* exported name, or a prefix with is_prefix; NULL = every function */
    bool is_prefix;
    uint32_t field; /* 0 = not about one field */
    double slow_ms;
};

struct scenario {
    struct arena arena; /* holds everything below */
    char driver[40], nvml[56];
    uint32_t driver_major, driver_minor; /* 535, 86 of "535.86.10" */
    int32_t cuda;                        /* 12040 = 12.4 */
    uint64_t seed;
    bool restart_clock;
    uint32_t pcie_counter_bits; /* 64, or 32: fields 197 and 198 wrap */
    size_t n_gpus, n_events, n_faults;
    struct gpu *gpus;     /* by index */
    struct event *events; /* ascending in time */
    struct fault *faults;
};

/* Where the parser gets other things from. */
struct scenario_source {
    const char *name; /* in front of every error: "name:line:column: ..." */
    /* Append a CSV file's content to out; 0 or -1 with e set. NULL: no CSV files. */
    int (*read_file)(void *context, const char *path, struct buf *out, struct err *e);
    /* Is this an exported function of ours? For `function:` in faults. `functions` feeds the "nearest" hint. */
    const char *const *functions;
    size_t n_functions;
    void *context;
};

/* Parse `text`. Returns the scenario, to be freed with scenario_free, or NULL with e set to one line with line, column,
 * what was wrong and what is allowed. */
struct scenario *scenario_parse(const struct scenario_source *source, struct str text, struct err *e);
void scenario_free(struct scenario *s);

#define SCENARIO_DEFAULT_DRIVER "570.172.08"

/* The text that is played when no file is given: two GPUs at moderate load. */
extern const char scenario_default_text[];

#endif
