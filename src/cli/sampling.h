/* One reading of this machine's GPUs for a command, from gpu's sampler and with a time limit: a driver that hangs
 * cannot hold the command. Private to cli. */
#ifndef CLI_SAMPLING_H
#define CLI_SAMPLING_H

#include "cli/cli.h"
#include "gpu/gpu.h"
#include "snapshot/snapshot.h"

struct sampling {
    struct gpu_sampler *gpu;
    int event; /* readable once there is a snapshot that nobody has taken */
    struct snapshot *newest;
};

/* sampling_stop in any case. `s` must stay where it is until then. */
int sampling_start(struct sampling *s, const struct gpu_config *config, struct err *e);

/* Keep the newest snapshot in s->newest, without waiting; true where it is another one. For those who wait for s->event
 * themselves. */
bool sampling_take(struct sampling *s);

/* Wait until the newest snapshot, kept in s->newest, is one that is_enough accepts. Returns false at the deadline
 * (monotonic clock); s->newest is then what came last, or NULL. */
bool sampling_wait(struct sampling *s, bool (*is_enough)(const struct snapshot *), int64_t deadline_ns);

/* For is_enough: has the sampler tried? A state to report, or a first reading of all devices. */
bool sampling_has_tried(const struct snapshot *snapshot);
/* The same, and have rates had two readings to come from? */
bool sampling_has_rates(const struct snapshot *snapshot);

/* Has the driver listed a GPU that could not be opened because it is lost? One that was never seen is in no snapshot.
 */
bool sampling_has_unopened(const struct snapshot *snapshot);

/* Why nothing came in time, as DEADLINE_EXCEEDED: which call of the driver does not return, if one does not. */
void sampling_explain(const struct sampling *s, int64_t waited_ns, struct err *e);

/* Does not wait for a thread that is stuck in the driver. */
void sampling_stop(struct sampling *s);

#endif
