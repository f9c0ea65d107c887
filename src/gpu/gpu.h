/* gpu: the sampler thread. It alone talks to NVML and hands finished, immutable snapshots to whoever takes them.
 * Owns the NVML session (open, lost, closed, released), the plan of readings and the thread. It does not decide what a
 * value means (snapshot, trigger), who holds a device (attribution), or when the program ends (agent). */
#ifndef GPU_GPU_H
#define GPU_GPU_H

#include "base/base.h"
#include "snapshot/snapshot.h"

#include <stdbool.h>
#include <stdint.h>

/* All zero is a good configuration: 0 and NULL mean the default in brackets. */
struct gpu_config {
    const char *library_path; /* [search] libnvidia-ml.so.1 by path; copied */
    int64_t period_ns;        /* [1 s] of the main cycle */
    int64_t slow_period_ns;   /* [10 s] of the readings that cost more or move little: limits, fan, ECC, link, codecs */
    int64_t retry_min_ns;     /* [5 s] first wait before NVML is opened again; it doubles up to: */
    int64_t retry_max_ns;     /* [30 s] */
    int64_t restart_after_ns; /* [5 min] how long a failure that only a restart of the process can end is waited out */
    bool has_processes; /* read the processes of each device, and what each uses; else they are NOT_READ, at no cost */
    int64_t process_period_ns; /* [5 s] of the lists of processes, which cost milliseconds; what each uses: period_ns */
    int64_t stop_timeout_ns;   /* [2 s] how long gpu_stop waits for a thread that is inside the driver */
};

struct gpu_sampler;

/* Start the thread and return at once: nothing of NVML runs on the caller's thread, and no library, no driver and no
 * device are states that snapshots report, not failures. The first snapshot (driver STARTING) is there before the first
 * NVML call. on_snapshot (may be NULL) is called on the sampler thread after each publication; it must be quick, may
 * not call gpu_*, and is never called after gpu_stop has returned. The thread blocks all signals. Returns NULL and
 * fills e only when no thread can be made. End it with gpu_stop. */
struct gpu_sampler *gpu_start(const struct gpu_config *config, void (*on_snapshot)(void *context), void *context,
                              struct err *e);

/* Ask the thread to shut NVML down and end, wait for at most stop_timeout_ns, and free. Accepts NULL. Returns false
 * when the thread did not answer (a driver call that does not return): it is left behind, touches nothing of the
 * caller's any more and frees what it holds if the call ever returns. */
bool gpu_stop(struct gpu_sampler *s);

/* The newest snapshot if none was taken since it was published, else NULL. The caller owns the reference
 * (snapshot_unref). Any one thread at a time; never blocks. A stuck thread shows as snapshots that stop coming. */
struct snapshot *gpu_take(struct gpu_sampler *s);

/* Let go of NVML (nvmlShutdown, dlclose) for a MIG mode change, a GPU reset or a driver upgrade, which an open handle
 * blocks ("In use by another client"); and take it up again. Asynchronous and idempotent: snapshots say RELEASED
 * once it has happened. Any thread. */
void gpu_release(struct gpu_sampler *s);
void gpu_resume(struct gpu_sampler *s);
/* Was gpu_release the last of the two calls? */
bool gpu_is_released(const struct gpu_sampler *s);

/* Somebody needs this field until then (monotonic clock). Matters for PCIE_TX and PCIE_RX only: on boards without PCIe
 * counters and without GPM each reading blocks for 20 ms, so it is taken for one GPU and direction a cycle, and only
 * while wanted. Call it again with each question. Any thread; never blocks. */
void gpu_want(struct gpu_sampler *s, enum snapshot_field field, int64_t until_ns);

/* Why only a restart of this process can bring readings back, or NULL. Set when nvmlInit has answered "unknown error"
 * (device access taken from the container) or "driver/library version mismatch" (the container still has the library
 * from before a driver upgrade) for longer than restart_after_ns. Static text for the log; the program then exits
 * non-zero so that its supervisor starts it anew. */
const char *gpu_restart_reason(const struct gpu_sampler *s);

/* Is the thread inside one NVML call for longer than limit_ns? Then returns true and writes which call into
 * out[size], for people: "nvmlDeviceGetPowerUsage for 12s". Never blocks. */
bool gpu_is_stuck(const struct gpu_sampler *s, int64_t now_ns, int64_t limit_ns, char *out, size_t size);

#endif
