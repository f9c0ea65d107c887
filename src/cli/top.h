/* What `top` shows: a sample of a node's devices, read from a page of metrics, and its forms. Private to cli. */
#ifndef CLI_TOP_H
#define CLI_TOP_H

#include "cli/cli.h"
#include "cli/job.h"
#include "cli/top_pods.h"
#include "snapshot/snapshot.h"

/* Values of a device: X(id, key, header, family, scale, form, view).
 * key: in JSON and CSV, public API. header: in tables. family: on the page, behind keda_gpu_scaler_gpu_. scale: from
 * there to the key's unit. form: how people read it. view: the smallest table that has it.
 * Change procedure: keys are public API; docs/top.md and the goldens of test/unit/cli/test_top.c change with them. */
#define TOP_VALUES(X)                                                                                                  \
    X(UTILIZATION, "utilization_percent", "UTIL", "utilization_ratio", 100, PERCENT, TABLE)                            \
    X(GRAPHICS_ACTIVITY, "graphics_activity_percent", "GR-ACT", "graphics_activity_ratio", 100, PERCENT, TABLE)        \
    X(MEMORY_UTILIZATION, "memory_utilization_percent", "MEM-UTIL", "memory_utilization_ratio", 100, PERCENT, WIDE)    \
    X(MEMORY_USED, "memory_used_bytes", "MEM-USED", "memory_used_bytes", 1, BYTES, TABLE)                              \
    X(MEMORY_FREE, "memory_free_bytes", "MEM-FREE", "memory_free_bytes", 1, BYTES, DATA)                               \
    X(MEMORY_RESERVED, "memory_reserved_bytes", "MEM-RESERVED", "memory_reserved_bytes", 1, BYTES, DATA)               \
    X(MEMORY_TOTAL, "memory_total_bytes", "MEM-TOTAL", "memory_total_bytes", 1, BYTES, TABLE)                          \
    X(TEMPERATURE, "temperature_celsius", "TEMP", "temperature_celsius", 1, CELSIUS, TABLE)                            \
    X(POWER, "power_watts", "POWER", "power_watts", 1, WATTS, TABLE)                                                   \
    X(POWER_LIMIT, "power_limit_watts", "LIMIT", "power_limit_watts", 1, WATTS, TABLE)                                 \
    X(PCIE_TX, "pcie_tx_bytes_per_second", "PCIE-TX", "pcie_transmit_bytes_per_second", 1, RATE, WIDE)                 \
    X(PCIE_RX, "pcie_rx_bytes_per_second", "PCIE-RX", "pcie_receive_bytes_per_second", 1, RATE, WIDE)                  \
    X(NVLINK_TX, "nvlink_tx_bytes_per_second", "NVLINK-TX", "nvlink_transmit_bytes_per_second", 1, RATE, WIDE)         \
    X(NVLINK_RX, "nvlink_rx_bytes_per_second", "NVLINK-RX", "nvlink_receive_bytes_per_second", 1, RATE, WIDE)          \
    X(SM_CLOCK, "sm_clock_hertz", "SM-CLOCK", "sm_clock_hertz", 1, HERTZ, WIDE)                                        \
    X(MEMORY_CLOCK, "memory_clock_hertz", "MEM-CLOCK", "memory_clock_hertz", 1, HERTZ, DATA)                           \
    X(ENCODER, "encoder_utilization_percent", "ENC", "encoder_utilization_ratio", 100, PERCENT, DATA)                  \
    X(DECODER, "decoder_utilization_percent", "DEC", "decoder_utilization_ratio", 100, PERCENT, DATA)                  \
    X(SM_ACTIVITY, "sm_activity_percent", "SM-ACT", "sm_activity_ratio", 100, PERCENT, WIDE)                           \
    X(SM_OCCUPANCY, "sm_occupancy_percent", "SM-OCC", "sm_occupancy_ratio", 100, PERCENT, DATA)                        \
    X(TENSOR_ACTIVITY, "tensor_activity_percent", "TENSOR", "tensor_activity_ratio", 100, PERCENT, WIDE)               \
    X(DRAM_ACTIVITY, "dram_activity_percent", "DRAM", "dram_activity_ratio", 100, PERCENT, WIDE)                       \
    X(ENERGY, "energy_joules", "ENERGY", "energy_joules_total", 1, JOULES, DATA)

enum top_value {
#define X(id, key, header, family, scale, form, view) TOP_##id,
    TOP_VALUES(X)
#undef X
        TOP_VALUE_COUNT
};

/* A pod on a device: it holds the device, or has processes there, or both. */
struct top_pod {
    char ns[64], name[256]; /* "" where not known */
    char uid[64];           /* "" where not known; with ns and name "" too: processes of no pod */
    bool is_listed;         /* the kubelet says that it holds the device; else only its processes are seen there */
    bool is_shared;         /* others may hold the device too */
    int shares;             /* of a shared device that its containers have; 0 unknown or none */
    double utilization_percent, memory_used_bytes; /* of its own processes; NaN where not measured */
};

struct top_device {
    enum snapshot_kind kind;
    bool is_lost;
    int index;                          /* of the GPU, of its parent for a MIG device; -1 unknown */
    int gpu_instance, compute_instance; /* MIG device; else -1 */
    char uuid[SNAPSHOT_UUID_MAX], parent_uuid[SNAPSHOT_UUID_MAX], name[SNAPSHOT_NAME_MAX];
    char mig_profile[32], pci_bus_id[32], serial[32]; /* "" none or unknown */
    double age_seconds;                               /* of its newest reading; NaN never read */
    double values[TOP_VALUE_COUNT];                   /* NaN = unknown, never 0 for it */
    VEC(struct top_pod) pods;
};

struct top_sample {
    bool is_up;           /* the driver answers */
    bool has_pods;        /* pods are known: a device without one has none */
    size_t n_pods;        /* of all devices, at most TOP_PODS_MAX */
    char state[32];       /* of the driver, as snapshot_driver_state_name */
    char owners[32];      /* how the kubelet was read last, as snapshot_owners_state_name; "" it was not asked */
    double age_seconds;   /* of the newest reading; NaN where there is none */
    int64_t collected_ns; /* wall clock, when that was; 0 never. Set by the caller of top_read */
    char node[256], driver_version[80];
    VEC(struct top_device) devices;
};
void top_sample_fini(struct top_sample *sample);

enum { TOP_DEVICES_MAX = SNAPSHOT_DEVICES_MAX, TOP_PODS_MAX = 8192 };

/* Read an agent's page, in text. -1 when it is none (FAILED_PRECONDITION). top_sample_fini in any case. */
int top_read(struct str page, struct top_sample *ret_sample, struct err *e);

/* When a reading of this age was taken, by a clock that shows wall_ns now. 0 when there is none. */
int64_t top_collected_ns(const struct top_sample *sample, int64_t wall_ns);

/* Take away the devices that are not the plan's. Returns how many of its list are not there; `note` says which, and
 * what else is doubtful ("" nothing). */
size_t top_choose(struct top_sample *sample, const struct job_plan *plan, struct buf *note);

/* ---- one sample, or one after another ---- */

enum { TOP_EXIT_PARTIAL = 3 }; /* a device is lost, or one of the job's is not there */

struct top_run_config {
    const char *address;         /* of an agent; NULL = this machine */
    const char *library_path;    /* this machine's; NULL = search */
    struct top_pods_config pods; /* of this machine; all NULL = not looked at */
    const struct job_plan *plan;
    int64_t interval_ns, timeout_ns, count; /* count 0 = no end */
    bool is_watch, is_quiet;                /* is_quiet: nothing on stderr */
    bool has_rates;                         /* PCIe rates are shown: on older boards reading them costs time */
    /* Append what is to be printed. page: the text that the sample is of. */
    void (*render)(void *context, const struct top_sample *sample, struct str page, struct buf *out);
    void *context;
};
/* Sample and print until the count, or SIGINT or SIGTERM with is_watch: they end it at once with status 0, but never
 * within a line. Returns the exit status of the last sample. */
int top_run(const struct top_run_config *config);

/* NODE_NAME, or the host's name. */
void top_node_name(char *out, size_t size);

/* ---- forms ---- */

enum top_view { TOP_VIEW_TABLE, TOP_VIEW_WIDE, TOP_VIEW_DATA };
/* has_colour: lost devices in red. Widths go by characters; nothing is cut. */
void top_render_table(const struct top_sample *sample, enum top_view view, bool has_colour, struct buf *out);
/* One document, on one line with indent 0. plan: its context stands under "environment"; NULL = null. */
void top_render_json(const struct top_sample *sample, const struct job_plan *plan, int indent, struct buf *out);
/* The plan's context as the members of an object, of "environment". */
void top_render_environment(const struct job_plan *plan, struct json *j);
/* Quoted as RFC 4180 has it, lines end with LF. */
void top_csv_text(struct buf *out, const char *text);
void top_render_csv_header(struct buf *out);
void top_render_csv(const struct top_sample *sample, struct buf *out);
/* The families of a page that are about devices and driver, as they stand. */
void top_render_prom(struct str page, struct buf *out);
/* "40%", "20.0GiB", "-": a value as tables have it. */
void top_format_value(char *out, size_t size, enum top_value value, double number);
/* "0" of a GPU, "0.7.0" (GPU, GPU instance, compute instance) of a MIG device. */
void top_format_index(char *out, size_t size, const struct top_device *device);

/* ---- the forms of gpu-metrics, as its users' parsers have them ---- */

void top_render_compat_json(const struct top_sample *sample, const struct job_plan *plan, int indent, struct buf *out);
void top_render_compat_csv_header(struct buf *out);
void top_render_compat_csv(const struct top_sample *sample, const struct job_plan *plan, struct buf *out);
void top_render_compat_table(const struct top_sample *sample, const struct job_plan *plan, struct buf *out);

#endif
