/* model: one simulated server: ranks with a queue each, who gets the next request, the KV cache, and what its faults do
 * to the engine. It goes on in fixed steps, so that its state at a time does not depend on who asked before. Pure. */
#ifndef ENGINESIM_MODEL_H
#define ENGINESIM_MODEL_H

#include "enginesim/queue.h"
#include "enginesim/script.h"

#define MODEL_STEP_S 0.02
enum { MODEL_BUSY_STEPS = 50 }; /* busy: in the last second */

struct model_rank {
    struct queue queue;
    double kv_left_percent;         /* what a mass cancel left on the gauge */
    double credit;                  /* of its share of the arrivals */
    bool is_busy[MODEL_BUSY_STEPS]; /* something was in the batch: each of the last steps */
};

struct model {
    const struct script_server *server;
    double zero_s;   /* when the scenario's time was 0 */
    double since_s;  /* when its counters were 0 */
    int64_t n_steps; /* done, since time 0 */
    double due;      /* requests to come before the next one does: below 0 it is there */
    uint64_t seed, n_drawn;
    size_t n_ranks, next_rank;
    struct model_rank *ranks;
};

/* The server must outlive the model, or be replaced. */
void model_init(struct model *m, const struct script_server *server, uint64_t seed, double now_s, double zero_s);
void model_fini(struct model *m);
/* The scenario was rewritten: go on with this one. Ranks that are no more lose what runs; what waits goes to the
 * others. */
void model_replace(struct model *m, const struct script_server *server, double zero_s);
/* Go on to the last whole step by now_s. */
void model_advance(struct model *m, double now_s);
/* Its time: that of the last whole step. */
double model_now_s(const struct model *m);
/* Is the fault on at this time of the program? NULL, or the first of the kind. */
const struct script_fault *model_fault(const struct model *m, enum script_fault_kind kind, double now_s);

/* Of one rank, from 0 to 100: the KV cache in use; the share of the last second with something in the batch. */
double model_kv_percent(const struct model *m, size_t rank);
double model_busy_percent(const struct model *m, size_t rank);
/* Places in a rank's batch: its slots, or fewer where the KV cache holds no more. */
uint32_t model_slots(const struct script_server *server);

#endif
