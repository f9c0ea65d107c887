/* libyaml events into tree nodes, within ceilings. */
#include "scene/tree.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

/* One open list or map while events come in. */
struct level {
    struct tree_node *container;
    struct tree_node *last; /* newest child */
    bool is_value_due;      /* map: a key waits for its value */
};

struct builder {
    const char *name;
    struct arena *arena;
    struct err *e;
    yaml_parser_t parser;
    struct level levels[TREE_DEPTH_MAX];
    size_t depth, n_nodes;
    struct tree_node *root;
};

/* One line, whatever the file's own words in it hold. */
static int error_at(const char *name, size_t line, size_t column, struct err *e, const char *message)
{
    char clean[ERR_TEXT_MAX];
    (void)str_copy(clean, sizeof(clean), str_of(message));
    for (char *c = clean; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
    return err_set(e, ERR_INVALID_ARGUMENT, "%s:%zu:%zu: %s", name, line, column, clean);
}

int tree_error(const char *name, const struct tree_node *node, struct err *e, const char *format, ...)
{
    char message[ERR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    return error_at(name, node->line, node->column, e, message);
}

bool tree_is_null(const struct tree_node *node)
{
    return node->kind == TREE_SCALAR && !node->is_quoted &&
           (node->text[0] == '\0' || !strcmp(node->text, "~") || !strcmp(node->text, "null"));
}

const char *tree_describe(const struct tree_node *node)
{
    double number;
    switch (node->kind) {
    case TREE_LIST:
        return "a list";
    case TREE_MAP:
        return "a map";
    case TREE_SCALAR:
        break;
    }
    if (tree_is_null(node))
        return "nothing";
    return !node->is_quoted && num_parse_double(str_of(node->text), &number) == 0 ? "a number" : "text";
}

static int refuse(struct builder *b, const yaml_mark_t *mark, const char *message)
{
    return error_at(b->name, mark->line + 1, mark->column + 1, b->e, message);
}

static struct tree_node *new_node(struct builder *b, const yaml_event_t *event, enum tree_kind kind)
{
    struct tree_node *node = (struct tree_node *)arena_alloc(b->arena, sizeof(*node));
    if (!node || ++b->n_nodes > TREE_NODES_MAX) {
        (void)refuse(b, &event->start_mark, "the document is too large");
        return NULL;
    }
    *node =
        (struct tree_node){.kind = kind, .line = event->start_mark.line + 1, .column = event->start_mark.column + 1};
    return node;
}

static int add_key(struct builder *b, struct level *l, struct tree_node *node)
{
    if (node->kind != TREE_SCALAR)
        return tree_error(b->name, node, b->e, "a key must be plain text");
    for (const struct tree_node *key = l->container->first; key; key = key->next)
        if (!strcmp(key->text, node->text))
            return tree_error(b->name, node, b->e, "duplicate key `%s`, first given on line %zu", node->text,
                              key->line);
    if (l->container->n_children >= 256)
        return tree_error(b->name, node, b->e, "more than 256 keys in one map");
    l->is_value_due = true;
    return 0;
}

/* Hang a finished scalar or a just opened container where it belongs. */
static int attach(struct builder *b, struct tree_node *node)
{
    if (b->depth == 0) {
        b->root = node;
        return 0;
    }
    struct level *l = &b->levels[b->depth - 1];
    if (l->container->kind == TREE_MAP && l->is_value_due) {
        l->last->value = node;
        l->is_value_due = false;
        return 0;
    }
    if (l->container->kind == TREE_MAP && add_key(b, l, node) < 0)
        return -1;
    if (l->last)
        l->last->next = node;
    else
        l->container->first = node;
    l->last = node;
    l->container->n_children++;
    return 0;
}

static int open_container(struct builder *b, const yaml_event_t *event, enum tree_kind kind)
{
    if (b->depth == TREE_DEPTH_MAX)
        return refuse(b, &event->start_mark, "nested too deeply");
    struct tree_node *node = new_node(b, event, kind);
    if (!node || attach(b, node) < 0)
        return -1;
    b->levels[b->depth++] = (struct level){.container = node};
    return 0;
}

static int add_scalar(struct builder *b, const yaml_event_t *event)
{
    struct str text = {(const char *)event->data.scalar.value, event->data.scalar.length};
    struct tree_node *node = new_node(b, event, TREE_SCALAR);
    if (!node)
        return -1;
    if (!str_is_utf8(text))
        return refuse(b, &event->start_mark, "text must be UTF-8 without NUL bytes");
    node->text = arena_strndup(b->arena, text.ptr, text.len);
    node->is_quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    return node->text ? attach(b, node) : refuse(b, &event->start_mark, "the document is too large");
}

static const yaml_char_t *anchor_or_tag(const yaml_event_t *event)
{
    if (event->type == YAML_SCALAR_EVENT)
        return event->data.scalar.anchor ? event->data.scalar.anchor : event->data.scalar.tag;
    if (event->type == YAML_SEQUENCE_START_EVENT)
        return event->data.sequence_start.anchor ? event->data.sequence_start.anchor : event->data.sequence_start.tag;
    if (event->type == YAML_MAPPING_START_EVENT)
        return event->data.mapping_start.anchor ? event->data.mapping_start.anchor : event->data.mapping_start.tag;
    return NULL;
}

/* Returns 1 at the end of the stream. */
static int take_event(struct builder *b, const yaml_event_t *event)
{
    if (event->type == YAML_ALIAS_EVENT || anchor_or_tag(event))
        return refuse(b, &event->start_mark, "anchors, aliases and tags are not allowed");
    if (event->type == YAML_DOCUMENT_START_EVENT && b->root)
        return refuse(b, &event->start_mark, "only one document is allowed");
    if (event->type == YAML_SCALAR_EVENT)
        return add_scalar(b, event);
    if (event->type == YAML_SEQUENCE_START_EVENT)
        return open_container(b, event, TREE_LIST);
    if (event->type == YAML_MAPPING_START_EVENT)
        return open_container(b, event, TREE_MAP);
    if (event->type == YAML_SEQUENCE_END_EVENT || event->type == YAML_MAPPING_END_EVENT)
        b->depth--;
    return event->type == YAML_STREAM_END_EVENT;
}

static int scanner_error(struct builder *b)
{
    const char *problem = b->parser.problem ? b->parser.problem : "not YAML";
    if (b->parser.error == YAML_READER_ERROR)
        return err_set(b->e, ERR_INVALID_ARGUMENT, "%s:%zu:1: %s (byte %zu)", b->name, b->parser.mark.line + 1, problem,
                       b->parser.problem_offset);
    return refuse(b, &b->parser.problem_mark, problem);
}

struct tree_node *tree_parse(const char *name, struct str text, struct arena *arena, struct err *e)
{
    struct builder b = {.name = name, .arena = arena, .e = e};
    if (text.len > TREE_BYTES_MAX) {
        (void)err_set(e, ERR_INVALID_ARGUMENT, "%s:1:1: larger than %d bytes", name, TREE_BYTES_MAX);
        return NULL;
    }
    if (!yaml_parser_initialize(&b.parser)) {
        (void)err_set(e, ERR_RESOURCE_EXHAUSTED, "%s:1:1: no memory for the YAML parser", name);
        return NULL;
    }
    yaml_parser_set_input_string(&b.parser, (const unsigned char *)text.ptr, text.len);
    int state = 0;
    while (state == 0) {
        yaml_event_t event;
        if (!yaml_parser_parse(&b.parser, &event)) {
            state = scanner_error(&b);
            break;
        }
        state = take_event(&b, &event);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&b.parser);
    if (state > 0 && !b.root)
        (void)error_at(name, 1, 1, e, "the document is empty");
    return state > 0 ? b.root : NULL;
}
