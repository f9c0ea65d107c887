/* nvml: reads NVIDIA GPUs through libnvidia-ml.so.1, opened at run time and never linked. It owns the library handle,
 * the choice between old and new symbols, the shape of the answers and the check that they are possible. It has no
 * thread, no lock, no clock and no memory of earlier values: the caller calls from one thread and decides when.
 *
 * Every `nvml_read_*`, `nvml_find_*` and `nvml_gpm_*` returns an NVML return code (abi.h), or one of ours below.
 * Outputs are untouched unless it is 0. A function that the driver lacks gives FUNCTION_NOT_FOUND. A value of all ones
 * or a memory total of 0 gives NOT_SUPPORTED: absent is never zero. What to do with a code: nvml_rc_kind. Any call can
 * block for as long as the driver likes. Device handles die with nvml_shutdown. */
#ifndef NVML_NVML_H
#define NVML_NVML_H

#include "base/err.h"
#include "base/vec.h"
#include "nvml/abi.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- return codes ---- */

/* Ours: the driver said success and gave a value that cannot be (over 100 %, 10 kW, 150 degrees C, pid out of range).
 * Clamping would invent a value, so the reading is dropped. */
enum { NVML_RC_IMPLAUSIBLE = -1 };

/* What a return code asks of the caller. */
enum nvml_rc_kind {
    NVML_KIND_VALUE,         /* a value */
    NVML_KIND_ABSENT,        /* this device has no such value: absent, may be remembered */
    NVML_KIND_ABSENT_LOGGED, /* absent as well, but worth one line in the log: permission, version or argument */
    NVML_KIND_TRANSIENT,     /* drop the sample, count an error, keep the device, ask again */
    NVML_KIND_LIFECYCLE,     /* NVML as a whole is gone: nvml_close, back off, nvml_open and nvml_init again */
    NVML_KIND_GPU_LOST,      /* this GPU is gone until it is reset; the others go on; do not re-initialise for it */
    NVML_KIND_NEEDS_RESTART, /* as LIFECYCLE, and if it lasts for minutes only a new container helps */
};

/* The kind of a code that a reading returned; TRANSIENT for codes unknown to us. */
enum nvml_rc_kind nvml_rc_kind(int rc);
/* The kind of a code that nvml_init returned: only VALUE, LIFECYCLE or NEEDS_RESTART. 999 there means that the
 * container has lost its devices to a cgroup update (nvidia-container-toolkit #48); 18 that the driver was upgraded
 * under us. */
enum nvml_rc_kind nvml_init_rc_kind(int rc);
/* "GPU_IS_LOST"; "UNKNOWN_CODE" for codes unknown to us. Static, never NULL. */
const char *nvml_rc_name(int rc);
/* What it means, without a full stop: "the NVIDIA driver is not loaded". Static, never NULL. */
const char *nvml_rc_text(int rc);
/* What a person can do when nvml_init returned rc. Static, never NULL. */
const char *nvml_init_advice(int rc);

/* ---- the library ---- */

struct nvml;

/* Load the library at `path` and nothing else, or with NULL the one that $NVML_LIB names, or the first usable of: the
 * dynamic loader's choice, the GPU Operator's driver container, GKE, WSL2, Jetson. Returns NULL on failure with
 * UNAVAILABLE (none found; the text lists what was tried and what to do) or FAILED_PRECONDITION (found, but not
 * loadable or without one of the required symbols). Does not call into the library. */
struct nvml *nvml_open(const char *path, struct err *e) __attribute__((warn_unused_result));
/* nvml_shutdown, unload, free. NULL is fine. Handles, event sets and GPM samples are invalid afterwards. */
void nvml_close(struct nvml *n);

/* Initialise, once; 0 when it already is. Does not touch the GPUs: the first handle of each does (seconds without
 * persistence mode). Costs up to 50 ms without a driver: retry at 5 s or slower. As root the library may create
 * /dev/nvidiactl, so that file is no sign of a driver. */
int nvml_init(struct nvml *n) __attribute__((warn_unused_result));
/* Give the driver back (an open NVML blocks a MIG change, a reset and an unload). Harmless when not initialised. */
int nvml_shutdown(struct nvml *n);
bool nvml_is_initialised(const struct nvml *n);

/* Where the library was loaded from, resolved; owned by n. */
const char *nvml_library_path(const struct nvml *n);
/* Is it nvmlsim, whose GPUs are a scenario's? By a symbol that NVIDIA's library does not have. */
bool nvml_is_simulated(const struct nvml *n);
/* "535.261.03", read by nvml_init; "" when unknown. Owned by n. */
const char *nvml_driver_version(const struct nvml *n);
/* "12.535.261.03", the library's own; "" when unknown. Owned by n, read by nvml_init. */
const char *nvml_library_version(const struct nvml *n);
/* Does the library export `symbol` (one of NVML_SYMBOLS)? */
bool nvml_has_symbol(const struct nvml *n, const char *symbol);
/* Be told of every call into the library: with its symbol before, with NULL after. For counting, and for saying which
 * call does not return. One observer; NULL ends it. `on_call` runs on the calling thread and must be quick. */
void nvml_observe(struct nvml *n, void (*on_call)(void *context, const char *symbol), void *context);
/* 12020 for CUDA 12.2. */
int nvml_read_cuda_version(const struct nvml *n, int32_t *ret_version);

/* ---- devices ---- */

/* Counts devices that we may not open, too. 0 with success means that all are hidden or lost, not that there are none.
 */
int nvml_read_count(const struct nvml *n, uint32_t *ret_count);
/* A failure concerns that index alone (GPU_IS_LOST, UNKNOWN, NO_PERMISSION, IRQ_ISSUE): go on with the next. */
int nvml_find_by_index(const struct nvml *n, uint32_t index, struct nvml_device **ret_device);
/* "GPU-..." or "MIG-...". NOT_FOUND when there is none. */
int nvml_find_by_uuid(const struct nvml *n, const char *uuid, struct nvml_device **ret_device);
/* "0000:3b:00.0" or "00000000:3B:00.0"; stays valid when another GPU is lost, unlike the index. */
int nvml_find_by_bus_id(const struct nvml *n, const char *bus_id, struct nvml_device **ret_device);

/* Texts: NUL-terminated UTF-8, without white space at the ends, never empty (NO_DATA instead). */
int nvml_read_name(const struct nvml *n, struct nvml_device *d, char ret_text[NVML_NAME_MAX]);
int nvml_read_uuid(const struct nvml *n, struct nvml_device *d, char ret_text[NVML_UUID_MAX]);
int nvml_read_serial(const struct nvml *n, struct nvml_device *d, char ret_text[NVML_SERIAL_MAX]);
int nvml_read_vbios(const struct nvml *n, struct nvml_device *d, char ret_text[NVML_VBIOS_MAX]);

/* N of /dev/nvidiaN; not the NVML index. NOT_SUPPORTED on WSL2. */
int nvml_read_minor(const struct nvml *n, struct nvml_device *d, uint32_t *ret_minor);
int nvml_read_index(const struct nvml *n, struct nvml_device *d, uint32_t *ret_index);
int nvml_read_architecture(const struct nvml *n, struct nvml_device *d, uint32_t *ret_architecture); /* NVML_ARCH_ */
int nvml_read_compute_capability(const struct nvml *n, struct nvml_device *d, int32_t *ret_major, int32_t *ret_minor);
int nvml_read_virtualization(const struct nvml *n, struct nvml_device *d, uint32_t *ret_mode); /* NVML_VIRT_ */
/* bus_id is always the long form with the 8-digit domain, whichever symbol answered. */
int nvml_read_pci(const struct nvml *n, struct nvml_device *d, struct nvml_pci_info *ret_pci);

/* ---- readings ---- */

/* Framebuffer. With has_reserved, total = used + free + reserved, as nvidia-smi shows it. Without (old library) used
 * contains the driver's reserve of 0.3 to 0.9 GB from R510 on, and reserved_bytes is meaningless. NOT_SUPPORTED on
 * machines with unified memory (GB10, Jetson Thor). */
struct nvml_memory_reading {
    uint64_t total_bytes, used_bytes, free_bytes, reserved_bytes;
    bool has_reserved;
};
int nvml_read_memory(const struct nvml *n, struct nvml_device *d, struct nvml_memory_reading *ret_memory);
int nvml_read_bar1(const struct nvml *n, struct nvml_device *d, struct nvml_memory *ret_memory);

/* Percent, 0 to 100. NOT_SUPPORTED on every GPU with MIG on. */
int nvml_read_utilization(const struct nvml *n, struct nvml_device *d, struct nvml_utilization *ret_utilization);
enum nvml_engine { NVML_ENGINE_ENCODER, NVML_ENGINE_DECODER, NVML_ENGINE_JPEG, NVML_ENGINE_OFA };
int nvml_read_engine(const struct nvml *n, struct nvml_device *d, enum nvml_engine engine, uint32_t *ret_percent);

/* The caller's array; len and value_type are set by the call. */
struct nvml_samples {
    struct nvml_sample *samples;
    uint32_t capacity, len;
    enum nvml_value_type value_type;
};
/* The driver's own ring of samples of `kind` (NVML_SAMPLES_) newer than since_us, wall clock; an array of 120 has room
 * for every kind, a smaller one gives INSUFFICIENT_SIZE. None newer: success and len 0. Not with MIG on. */
int nvml_read_samples(const struct nvml *n, struct nvml_device *d, uint32_t kind, uint64_t since_us,
                      struct nvml_samples *samples);
/* A sample's value as a number, by the type of the whole set. */
double nvml_sample_number(enum nvml_value_type type, union nvml_value value);

/* Degrees C, -20 to 150. */
int nvml_read_temperature(const struct nvml *n, struct nvml_device *d, int32_t *ret_celsius);
int nvml_read_threshold(const struct nvml *n, struct nvml_device *d, uint32_t threshold, uint32_t *ret_celsius);
int nvml_read_fan(const struct nvml *n, struct nvml_device *d, uint32_t *ret_percent); /* slow: 137 us */

/* Milliwatts, at most 10 kW. The usage is instantaneous on A100 and before, a 1 s average on other Ampere and later. */
int nvml_read_power(const struct nvml *n, struct nvml_device *d, uint32_t *ret_mw);
int nvml_read_power_limit(const struct nvml *n, struct nvml_device *d, uint32_t *ret_mw);
/* Millijoules since the driver was loaded; starts again at 0 after a reload or reset. Volta and later. */
int nvml_read_energy(const struct nvml *n, struct nvml_device *d, uint64_t *ret_mj);

int nvml_read_clock(const struct nvml *n, struct nvml_device *d, uint32_t clock, uint32_t *ret_mhz); /* NVML_CLK_ */
int nvml_read_max_clock(const struct nvml *n, struct nvml_device *d, uint32_t clock, uint32_t *ret_mhz);
/* NVML_REASON_ bits; unknown bits may be set. */
int nvml_read_clock_reasons(const struct nvml *n, struct nvml_device *d, uint64_t *ret_reasons);

/* KB/s over a window of 20 ms inside the call: BLOCKS 20 ms. Prefer the fields PCIE_TX_BYTES and PCIE_RX_BYTES. */
int nvml_read_pcie_blocking(const struct nvml *n, struct nvml_device *d, uint32_t counter, uint32_t *ret_kb_per_s);
int nvml_read_pcie_replays(const struct nvml *n, struct nvml_device *d, uint32_t *ret_count);
struct nvml_pcie_link {
    uint32_t generation, width;
};
/* The link now (generation 1 when idle is normal), or the best the GPU and the slot can do. */
int nvml_read_pcie_link(const struct nvml *n, struct nvml_device *d, struct nvml_pcie_link *ret_link);
int nvml_read_pcie_link_max(const struct nvml *n, struct nvml_device *d, struct nvml_pcie_link *ret_link);
int nvml_read_nvlink(const struct nvml *n, struct nvml_device *d, uint32_t link, bool *ret_is_active);
/* Bytes sent and received over all links since the driver was loaded, from fields 138 and 139 or, NVLink 5, 202 and
 * 204. A 32-bit counter, which 900 GB/s turn over within seconds, is NOT_SUPPORTED: its sum would mean nothing. */
int nvml_read_nvlink_bytes(const struct nvml *n, struct nvml_device *d, uint64_t *ret_bytes);

int nvml_read_ecc_mode(const struct nvml *n, struct nvml_device *d, bool *ret_is_on, bool *ret_is_pending_on);
/* error: NVML_ECC_; counter: NVML_COUNT_. */
int nvml_read_ecc(const struct nvml *n, struct nvml_device *d, uint32_t error, uint32_t counter, uint64_t *ret_count);
struct nvml_remapped_rows {
    uint32_t correctable, uncorrectable;
    bool is_pending, is_failed;
};
int nvml_read_remapped_rows(const struct nvml *n, struct nvml_device *d, struct nvml_remapped_rows *ret_rows);

/* Many fields in one call: the caller sets field_id and scope_id, the rest is overwritten. Returns the call's code;
 * each value's own code stands in its rc (the call's, where the call failed). */
int nvml_read_fields(const struct nvml *n, struct nvml_device *d, struct nvml_field_value *values, size_t len);
/* One answered field as a number; its rc, or NOT_SUPPORTED for all ones, or IMPLAUSIBLE (bounds are known for
 * temperature and power). A 32-bit counter (value_type NVML_VALUE_U32) wraps at 2^32. */
int nvml_field_u64(const struct nvml_field_value *value, uint64_t *ret_number);
int nvml_field_i64(const struct nvml_field_value *value, int64_t *ret_number);

int nvml_read_fabric(const struct nvml *n, struct nvml_device *d, struct nvml_fabric_info *ret_info);

/* ---- processes ---- */

enum nvml_process_kind { NVML_PROCESS_COMPUTE, NVML_PROCESS_GRAPHICS, NVML_PROCESS_MPS, NVML_PROCESS_KINDS };
enum { NVML_PROCESSES_MAX = 16384 }; /* ceiling of a list; a longer one gives INSUFFICIENT_SIZE */

/* Zero-initialise, reuse between calls, free with vec_fini. */
struct nvml_process_list {
    VEC(struct nvml_process);
};
struct nvml_process_utilization_list {
    VEC(struct nvml_process_utilization);
};

/* Replaces the content of `list`. used_bytes is NVML_NONE_U64 where the driver does not know it. Costs milliseconds. A
 * process that uses several APIs is in several lists: merge by pid before adding memory. */
int nvml_read_processes(struct nvml *n, struct nvml_device *d, enum nvml_process_kind kind,
                        struct nvml_process_list *list);
/* Replaces the content of `list` with the samples newer than since_us (pass the newest time seen; wall clock). No
 * process was active: success and an empty list. Samples with pid 0 or older than asked are the driver's leftovers and
 * dropped. In one with a value over 100 % all values are NVML_NONE_U32: nobody knows what the process did. */
int nvml_read_process_utilization(struct nvml *n, struct nvml_device *d, uint64_t since_us,
                                  struct nvml_process_utilization_list *list);

/* ---- events ---- */

int nvml_events_new(const struct nvml *n, struct nvml_event_set **ret_set);
void nvml_events_free(const struct nvml *n, struct nvml_event_set *set); /* NULL is fine */
/* Registers those of `types` that the device supports; NOT_SUPPORTED when none. Not for MIG handles: use the parent. */
int nvml_events_register(const struct nvml *n, struct nvml_event_set *set, struct nvml_device *d, uint64_t types);
/* One event; TIMEOUT when there is none. With a lost GPU it returns GPU_IS_LOST at once, every time: back off 1 s. */
int nvml_events_wait(const struct nvml *n, struct nvml_event_set *set, uint32_t timeout_ms,
                     struct nvml_event_data *ret_event);

/* ---- MIG ---- */

struct nvml_mig_mode {
    bool is_on, is_pending_on; /* they differ: a reset is wanted, let go of the GPU */
};
/* NOT_SUPPORTED: not capable of MIG. That and is_on == false both mean "a whole GPU". */
int nvml_read_mig_mode(const struct nvml *n, struct nvml_device *d, struct nvml_mig_mode *ret_mode);
/* How many there can be; the indexes are sparse, so ask each and pass over NOT_FOUND. 0 with MIG off. */
int nvml_read_mig_max(const struct nvml *n, struct nvml_device *d, uint32_t *ret_max);
int nvml_find_mig(const struct nvml *n, struct nvml_device *d, uint32_t index, struct nvml_device **ret_mig);
int nvml_find_mig_parent(const struct nvml *n, struct nvml_device *mig, struct nvml_device **ret_device);
int nvml_read_is_mig(const struct nvml *n, struct nvml_device *d, bool *ret_is_mig);
struct nvml_mig_ids {
    uint32_t gpu_instance, compute_instance;
};
int nvml_read_mig_ids(const struct nvml *n, struct nvml_device *mig, struct nvml_mig_ids *ret_ids);
/* Where a GPU instance lies, by its whole GPU; NO_PERMISSION without the right to monitor MIG. */
int nvml_read_mig_placement(const struct nvml *n, struct nvml_device *gpu, uint32_t gpu_instance,
                            struct nvml_gpu_instance_info *ret_info);
int nvml_read_mig_attributes(const struct nvml *n, struct nvml_device *mig, struct nvml_attributes *ret_attributes);

/* ---- GPM: activity of Hopper and later ---- */

int nvml_gpm_supported(const struct nvml *n, struct nvml_device *d, bool *ret_is_supported);
int nvml_gpm_sample_new(const struct nvml *n, struct nvml_gpm_sample **ret_sample);
void nvml_gpm_sample_free(const struct nvml *n, struct nvml_gpm_sample *sample); /* NULL is fine */
/* Fill the sample now. NO_PERMISSION can come at any time (DCGM #214). */
int nvml_gpm_take(const struct nvml *n, struct nvml_device *d, struct nvml_gpm_sample *sample);
/* The same for one GPU instance; `d` is the parent GPU. */
int nvml_gpm_take_mig(const struct nvml *n, struct nvml_device *d, uint32_t gpu_instance,
                      struct nvml_gpm_sample *sample);
enum { NVML_GPM_METRICS_MAX = 64 }; /* in one call of ours */
/* Metrics between two samples taken at least 100 ms apart, older first. The caller sets metric_id; each gets its rc and
 * value (percent 0 to 100, MiB/s). Returns the call's code, which is also each metric's rc when the call failed. */
int nvml_gpm_read(struct nvml *n, struct nvml_gpm_sample *older, struct nvml_gpm_sample *newer,
                  struct nvml_gpm_metric *metrics, size_t len);

#endif
