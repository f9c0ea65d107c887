/* tree: one YAML document as a tree of nodes that remember line and column. Anchors, aliases, tags, duplicate keys and
 * anything past the ceilings are refused. It knows nothing of scenarios. */
#ifndef SCENE_TREE_H
#define SCENE_TREE_H

#include "base/base.h"

enum { TREE_BYTES_MAX = 1 << 20, TREE_NODES_MAX = 100000, TREE_DEPTH_MAX = 16 };

enum tree_kind { TREE_SCALAR, TREE_LIST, TREE_MAP };

struct tree_node {
    enum tree_kind kind;
    size_t line, column;     /* from 1 */
    const char *text;        /* scalar: NUL-terminated, valid UTF-8 without NUL bytes */
    bool is_quoted;          /* scalar: in quotes or a block, so never null or a number */
    struct tree_node *first; /* list: first item; map: first key, a scalar */
    struct tree_node *next;  /* next item or key */
    struct tree_node *value; /* of a key */
    size_t n_children;
};

/* Parse text into nodes allocated from `arena`. `name` stands in front of errors ("name:line:column: ...").
 * Returns the root, or NULL with e set; an empty document is an error. */
struct tree_node *tree_parse(const char *name, struct str text, struct arena *arena, struct err *e);

/* Fill e with "name:line:column: message". Returns -1. */
int tree_error(const char *name, const struct tree_node *node, struct err *e, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Is it a plain (unquoted) null: empty, ~, null? */
bool tree_is_null(const struct tree_node *node);
/* "a number", "a list", ...: what the node is, for error messages. */
const char *tree_describe(const struct tree_node *node);

#endif
