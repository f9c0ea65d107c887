/* sim: the frame around every simulated NVML call. It owns the one lock, the clock, the scenario in play and its
 * reload, reference-counted init, handles and faults. The nvml_*.c files answer; they see one moment of the scenario at
 * a time. */
#ifndef NVMLSIM_SIM_H
#define NVMLSIM_SIM_H

#include "nvmlsim/exports.h"
#include "nvmlsim/player.h"

/* What handles point at. Handles are interned and never freed, so an old one stays harmless. */
struct nvml_device {
    char gpu_uuid[48];
    bool is_mig;
    uint32_t gpu_instance, compute_instance;
    char mig_uuid[48];
};

/* One call while it holds the lock. */
struct sim_call {
    const char *function;
    int rc; /* not 0: answer this at once; the lock is not held */
    bool is_locked;
    double t_s; /* scenario time */
    const struct player *player;
    const struct nvml_device *handle;
    /* of the device, if the call has one */
    size_t index;
    const struct gpu *gpu;
    const struct mig_layout *layout;
    const struct mig_instance *instance; /* NULL for a whole GPU */
    const struct compute_instance *compute;
};

/* Which handles a call takes: any; whole GPUs (a MIG device gives NOT_SUPPORTED); MIG devices only. */
enum sim_scope { SIM_ANY, SIM_WHOLE, SIM_MIG };

/* Start a call; returns its rc. On 0 the lock is held until sim_end. */
int sim_begin(struct sim_call *c, const char *function);
int sim_begin_device(struct sim_call *c, const char *function, struct nvml_device *device, enum sim_scope scope);
/* Faults of one GPU for a call that has no handle yet (HandleBy*). Returns the rc; may wait without the lock. */
int sim_judge_gpu(struct sim_call *c, size_t index);
void sim_end(struct sim_call *c);
/* Let others in for `ms`, then go on at the new time. Returns 0 or the rc to answer when the device is gone by then. */
int sim_pause(struct sim_call *c, double ms);

/* Open a call in the current function, or return its rc. */
#define SIM_CALL(c)                                                                                                    \
    struct sim_call c __attribute__((cleanup(sim_end)));                                                               \
    if (sim_begin(&c, __func__) != NVML_RC_SUCCESS)                                                                    \
    return c.rc
#define SIM_DEVICE(c, device, scope)                                                                                   \
    struct sim_call c __attribute__((cleanup(sim_end)));                                                               \
    if (sim_begin_device(&c, __func__, device, scope) != NVML_RC_SUCCESS)                                              \
    return c.rc

/* The one handle of a GPU, or of a compute instance; NULL when there are too many. Lock held. */
struct nvml_device *sim_handle(const struct gpu *g, const struct mig_instance *gi, const struct compute_instance *ci);

/* Is it one of ours? Any pointer is safe to ask. */
bool sim_is_handle(const struct nvml_device *device);

/* Microseconds since 1970 of a scenario time, and back. */
uint64_t sim_time_us(const struct sim_call *c, double t_s);
double sim_time_s(const struct sim_call *c, uint64_t time_us);

/* Does the device tell of remapped rows? */
bool sim_has_remapped_rows(const struct sim_call *c);

/* Copy text into a caller's buffer as NVML does: nothing and INSUFFICIENT_SIZE when it does not fit. */
int sim_text(char *out, uint32_t size, const char *text);

/* Answer an integer, or INVALID_ARGUMENT without a place for it. */
int sim_u32(uint32_t *out, uint32_t value);
int sim_u64(uint64_t *out, uint64_t value);
/* The nearest whole number of a value that is not negative. */
uint32_t sim_round(double value);

/* Monotonic time at which the scenario's time was 0: with t_s it dates things across a restarted clock. Lock held. */
int64_t sim_epoch_ns(void);

/* How many times the scenario was replaced: positions in its lists are stale when this moves. Lock held. */
uint64_t sim_generation(void);

/* The clock: replaced by tests. sleep_ns must make mono_ns go on. */
struct sim_clock {
    int64_t (*mono_ns)(void);
    int64_t (*wall_ns)(void);
    void (*sleep_ns)(int64_t ns);
};
void sim_set_clock(const struct sim_clock *clock);
/* Forget everything, as if the library had just been loaded. For tests. */
void sim_reset(void);

#endif
