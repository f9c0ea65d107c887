/* player: a scenario and a time give the value of everything. Pure: no clock, no state but the counters' base, which
 * lets energy and byte counters go on evenly when the scenario is replaced. What NVML makes of it is not its business.
 */
#ifndef NVMLSIM_PLAYER_H
#define NVMLSIM_PLAYER_H

#include "nvmlsim/scenario.h"

/* Counters of one GPU, and of the instances at each memory slice, are integral + base. */
struct player_base {
    double gpu[SIGNAL_COUNT], instance[MIG_MEMORY_SLICES][SIGNAL_COUNT];
};

struct player {
    struct scenario *scenario; /* owned */
    struct player_base *bases; /* one per GPU */
};

/* Plays `s` (taken) with counters that start at 0. */
void player_init(struct player *p, struct scenario *s);
void player_fini(struct player *p);
/* Go over to `s` (taken) at old_s of the old scenario's time and new_s of the new one's: counters of GPUs with the same
 * uuid, and of instances with the same place and profile, go on without a step. */
void player_replace(struct player *p, struct scenario *s, double old_s, double new_s);

/* How many GPUs are there: the first so many of scenario->gpus. */
size_t player_gpu_count(const struct player *p, double t_s);
/* The division of a GPU at this time. Never NULL. */
const struct mig_layout *player_layout(const struct gpu *g, double t_s);

/* A signal of a whole GPU, given or derived. */
double player_value(const struct player *p, size_t gpu, enum signal signal, double t_s);
/* Its integral since time 0 plus the counter base: a counter in signal-seconds that never falls (while the signal is
 * not negative). Not for clocks and memory, which nothing integrates. */
double player_counter(const struct player *p, size_t gpu, enum signal signal, double t_s);
/* The mean over the last window_s (less at the start). */
double player_mean(const struct player *p, size_t gpu, enum signal signal, double t_s, double window_s);

/* The same of a GPU instance in the layout that holds at t_s. Its counters start when the layout does. */
double player_instance_value(const struct gpu *g, const struct mig_instance *gi, enum signal signal, double t_s);
double player_instance_counter(const struct player *p, size_t gpu, const struct mig_layout *layout,
                               const struct mig_instance *gi, enum signal signal, double t_s);

double player_ecc(const struct player *p, size_t gpu, enum ecc_count which, double t_s);
/* NVML_REASON_ bits: given, by event, and what follows from load and power. */
uint64_t player_throttle(const struct player *p, size_t gpu, double t_s);
/* Seconds since 0 in which any of `bits` was given or set by event. */
double player_throttled_s(const struct player *p, size_t gpu, uint64_t bits, double t_s);
uint32_t player_recovery_action(const struct player *p, size_t gpu, double t_s);

bool player_is_running(const struct process *process, double t_s);

/* What the faults make of one call. gpu is SIZE_MAX for calls without one. A call that finds a GPU only in its course
 * is judged twice: without the GPU, then with it and is_again, which leaves out what has struck already. */
struct player_call {
    const char *function;
    size_t gpu;
    double t_s;
    bool is_again;
};
struct player_verdict {
    int rc; /* 0 or an NVML return code */
    double slow_ms;
    bool is_hung;
};
struct player_verdict player_judge(const struct player *p, const struct player_call *call);
/* Is this field switched off by a fault? */
bool player_is_field_off(const struct player *p, size_t gpu, uint32_t field, double t_s);

#endif
