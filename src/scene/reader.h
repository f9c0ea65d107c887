/* reader: typed values out of tree nodes, each with an error that names line, column and what is allowed. It knows YAML
 * nodes, ranges and curves; what the keys of a file mean is its caller's business. */
#ifndef SCENE_READER_H
#define SCENE_READER_H

#include "scene/curve.h"
#include "scene/tree.h"

enum {
    SCENE_POINTS_MAX = 20000,      /* of one curve */
    SCENE_TEXT_MAX = 1 << 20,      /* of a scenario's file */
    SCENE_CSV_BYTES_MAX = 4 << 20, /* of a file that a curve is read from */
    SCENE_BYTES_MAX = 64 << 20,    /* memory of one parsed scenario */
};

struct reader {
    const char *name;    /* in front of every error: "name:line:column: ..." */
    struct arena *arena; /* holds all results; of at most SCENE_BYTES_MAX */
    struct err *e;
    /* Append a CSV file's content to out; 0 or -1 with e set. NULL: no CSV files. */
    int (*read_file)(void *context, const char *path, struct buf *out, struct err *e);
    void *context;
    uint64_t seed;     /* of noise */
    uint32_t n_noises; /* so that each noise starts elsewhere */
};

/* Fill the error with the node's place. Returns -1. */
int reader_error(struct reader *r, const struct tree_node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Zeroed memory of the arena for n items, or NULL with the error set. */
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
/* The text of a scalar of 1 to max_len bytes, or NULL. It lives as long as the nodes. */
const char *reader_text(struct reader *r, const struct tree_node *node, size_t max_len);
/* Which of the n names the scalar is. */
int reader_choice(struct reader *r, const struct tree_node *node, const char *const *names, size_t n, size_t *ret);
/* Is it a list of at most `max` items? */
int reader_list(struct reader *r, const struct tree_node *node, const char *what, size_t max);
/* A number or a curve (a constant, {step}, {ramp}, {sine}, {noise}, {csv}) that never leaves [lowest, highest]. */
int reader_curve(struct reader *r, const struct tree_node *node, double lowest, double highest, struct curve *ret);
/* A curve's own part of the noise, next in turn. */
uint32_t reader_next_noise(struct reader *r);

#endif
