/* reader: typed values out of tree nodes, each with an error that names line, column and what is allowed. Private to
 * the scenario parser; it knows YAML nodes and ranges, the parse_*.c files know what the keys mean. */
#ifndef NVMLSIM_READER_H
#define NVMLSIM_READER_H

#include "nvmlsim/scenario.h"
#include "nvmlsim/tree.h"

struct reader {
    const struct scenario_source *source;
    struct scenario *scenario; /* being built; its arena holds all results */
    struct err *e;
    uint32_t n_noises; /* so that each noise starts elsewhere */
};

/* Fill the error with the node's place. Returns -1. */
int reader_error(struct reader *r, const struct tree_node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Zeroed memory of the scenario for n items, or NULL with the error set. */
void *reader_alloc(struct reader *r, const struct tree_node *node, size_t n, size_t size);

/* How one key of a map is read: `param` tells a shared function what to do, mostly an offset into `target`. */
struct key_rule {
    const char *key;
    int (*read)(struct reader *r, const struct tree_node *value, void *target, size_t param);
    size_t param;
};
/* Read every key of `map` by its rule. A key without a rule is an error with the nearest key and all allowed ones;
 * `what` names the map in it. */
int reader_map(struct reader *r, const struct tree_node *map, const char *what, const struct key_rule *rules, size_t n,
               void *target);
/* A rule's read function: store the node itself at offset `param` of target, for later. */
int reader_defer(struct reader *r, const struct tree_node *value, void *target, size_t param);

/* Scalars. Outputs are untouched on failure. */
int reader_double(struct reader *r, const struct tree_node *node, double lowest, double highest, double *ret);
int reader_u32(struct reader *r, const struct tree_node *node, uint32_t lowest, uint32_t highest, uint32_t *ret);
int reader_bool(struct reader *r, const struct tree_node *node, bool *ret);
/* The text of a scalar of 1 to max_len bytes, or NULL. */
const char *reader_text(struct reader *r, const struct tree_node *node, size_t max_len);
/* Which of the n names the scalar is. */
int reader_choice(struct reader *r, const struct tree_node *node, const char *const *names, size_t n, size_t *ret);
/* Is it a list of at most `max` items? */
int reader_list(struct reader *r, const struct tree_node *node, const char *what, size_t max);

/* A number or a curve within [lowest, highest]. */
int parse_curve(struct reader *r, const struct tree_node *node, double lowest, double highest, struct curve *ret);
/* The rules' form of it for signals: param is the enum signal, target an array of SIGNAL_COUNT curves. */
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
