/* parse: what the parse_*.c files share: the scenario being built and where it comes from, around scene's reader.
 * Private to the scenario parser. */
#ifndef NVMLSIM_PARSE_H
#define NVMLSIM_PARSE_H

#include "nvmlsim/scenario.h"

struct parser {
    struct reader reader; /* first: the rules' functions get this one */
    const struct scenario_source *source;
    struct scenario *scenario; /* being built; its arena holds all results */
};

/* The scenario that a rule's function is building. */
static inline struct scenario *parse_target(struct reader *r)
{
    return CONTAINER_OF(r, struct parser, reader)->scenario;
}

static inline const struct scenario_source *parse_source(struct reader *r)
{
    return CONTAINER_OF(r, struct parser, reader)->source;
}

/* A number or a curve in the range of the signal. */
int parse_signal(struct reader *r, const struct tree_node *node, struct curve *curves, enum signal signal);
extern const char *const signal_keys[SIGNAL_COUNT];

/* Where two places in the file name a GPU: an index, or `all`. */
int parse_gpu_number(struct reader *r, const struct tree_node *node, uint32_t *ret);
/* `mig:` of a GPU or an event, from since_s on. */
int parse_mig(struct reader *r, const struct tree_node *node, const struct gpu *gpu, struct mig_layout *ret);
int parse_processes(struct reader *r, const struct tree_node *node, struct gpu *gpu);
/* `ecc:`: counts added to ret[ECC_COUNT]. */
int parse_ecc(struct reader *r, const struct tree_node *node, double *ret);
/* A list of throttle reasons as NVML_REASON_ bits. */
int parse_throttle(struct reader *r, const struct tree_node *node, uint64_t *ret);

int parse_gpus(struct reader *r, const struct tree_node *node);
int parse_events(struct reader *r, const struct tree_node *node);
int parse_faults(struct reader *r, const struct tree_node *node);

#endif
