/* Typed values out of tree nodes. */
#include "scene/reader.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int reader_error(struct reader *r, const struct tree_node *node, const char *format, ...)
{
    char message[ERR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    return tree_error(r->name, node, r->e, "%s", message);
}

void *reader_alloc(struct reader *r, const struct tree_node *node, size_t n, size_t size)
{
    void *memory = n <= SCENE_BYTES_MAX / size ? arena_alloc(r->arena, n * size) : NULL;
    if (!memory) {
        (void)reader_error(r, node, "the scenario needs more than %d MiB", SCENE_BYTES_MAX >> 20);
        return NULL;
    }
    memset(memory, 0, n * size);
    return memory;
}

static void append_allowed(struct buf *out, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)buf_printf(out, "%s%s", i ? ", " : "", names[i]);
}

static int unknown_name(struct reader *r, const struct tree_node *node, const char *what, const char *const *names,
                        size_t n)
{
    BUF_AUTO struct buf allowed;
    buf_init(&allowed, 4096);
    append_allowed(&allowed, names, n);
    const char *nearest = str_nearest(node->text, names, n);
    return reader_error(r, node, "%s `%.40s`%s%s%s; allowed: %s", what, node->text, nearest ? ", did you mean `" : "",
                        nearest ? nearest : "", nearest ? "`?" : "", buf_cstr(&allowed));
}

static int unknown_key(struct reader *r, const struct tree_node *key, const char *what, const struct key_rule *rules,
                       size_t n)
{
    const char *names[64];
    char text[64];
    for (size_t i = 0; i < n && i < ARRAY_LEN(names); i++)
        names[i] = rules[i].key;
    (void)snprintf(text, sizeof(text), "%s has no key", what);
    return unknown_name(r, key, text, names, n < ARRAY_LEN(names) ? n : ARRAY_LEN(names));
}

int reader_map(struct reader *r, const struct tree_node *map, const char *what, const struct key_rule *rules, size_t n,
               void *target)
{
    if (map->kind != TREE_MAP)
        return reader_error(r, map, "%s must be a map of keys and values, not %s", what, tree_describe(map));
    for (const struct tree_node *key = map->first; key; key = key->next) {
        size_t i = 0;
        while (i < n && strcmp(rules[i].key, key->text) != 0)
            i++;
        if (i == n)
            return unknown_key(r, key, what, rules, n);
        if (rules[i].read(r, key->value, target, rules[i].param) < 0)
            return -1;
    }
    return 0;
}

int reader_defer(struct reader *r, const struct tree_node *value, void *target, size_t param)
{
    (void)r;
    memcpy((char *)target + param, &value, sizeof(const struct tree_node *));
    return 0;
}

int reader_double(struct reader *r, const struct tree_node *node, double lowest, double highest, double *ret)
{
    double value;
    if (node->kind != TREE_SCALAR || num_parse_double(str_of(node->text), &value) < 0)
        return reader_error(r, node, "must be a number from %g to %g, not %s", lowest, highest, tree_describe(node));
    if (!(value >= lowest && value <= highest))
        return reader_error(r, node, "%g is out of range: allowed is %g to %g", value, lowest, highest);
    *ret = value;
    return 0;
}

int reader_u32(struct reader *r, const struct tree_node *node, uint32_t lowest, uint32_t highest, uint32_t *ret)
{
    uint64_t value;
    if (node->kind != TREE_SCALAR || num_parse_u64(str_of(node->text), &value) < 0)
        return reader_error(r, node, "must be a whole number from %u to %u, not %s", lowest, highest,
                            tree_describe(node));
    if (value < lowest || value > highest)
        return reader_error(r, node, "%s is out of range: allowed is %u to %u", node->text, lowest, highest);
    *ret = (uint32_t)value;
    return 0;
}

int reader_bool(struct reader *r, const struct tree_node *node, bool *ret)
{
    if (node->kind != TREE_SCALAR || num_parse_bool(str_of(node->text), ret) < 0)
        return reader_error(r, node, "must be true or false, not %s", tree_describe(node));
    return 0;
}

const char *reader_text(struct reader *r, const struct tree_node *node, size_t max_len)
{
    if (node->kind != TREE_SCALAR || tree_is_null(node)) {
        (void)reader_error(r, node, "must be text, not %s", tree_describe(node));
        return NULL;
    }
    size_t len = strlen(node->text);
    if (len == 0 || len > max_len) {
        (void)reader_error(r, node, "must be text of 1 to %zu bytes", max_len);
        return NULL;
    }
    return node->text;
}

int reader_choice(struct reader *r, const struct tree_node *node, const char *const *names, size_t n, size_t *ret)
{
    const char *text = reader_text(r, node, 64);
    if (!text)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (str_equals_nocase(str_of(text), names[i])) {
            *ret = i;
            return 0;
        }
    return unknown_name(r, node, "unknown name", names, n);
}

int reader_list(struct reader *r, const struct tree_node *node, const char *what, size_t max)
{
    if (node->kind != TREE_LIST)
        return reader_error(r, node, "%s must be a list, not %s", what, tree_describe(node));
    if (node->n_children > max)
        return reader_error(r, node, "%s has %zu entries, at most %zu are allowed", what, node->n_children, max);
    return 0;
}
