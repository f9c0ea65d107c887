/* Quantities of a GPU: their keys, and the range that a curve of theirs must stay in, so that playing never clamps and
 * every integral stays exact. */
#include "nvmlsim/parse.h"

#define X(name, key, lowest, highest, is_of_instance) key,
const char *const signal_keys[SIGNAL_COUNT] = {SIGNALS(X)};
#undef X
#define X(name, key, lowest, highest, is_of_instance) {lowest, highest},
static const double signal_range[SIGNAL_COUNT][2] = {SIGNALS(X)};
#undef X

int parse_signal(struct reader *r, const struct tree_node *node, struct curve *curves, enum signal signal)
{
    return reader_curve(r, node, signal_range[signal][0], signal_range[signal][1], &curves[signal]);
}
