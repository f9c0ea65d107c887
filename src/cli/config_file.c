/* The configuration file: YAML whose keys are the flags' names, plus `metrics:`. Strict: an unknown key, an alias or a
 * value of the wrong kind is an error with file:line:column. libyaml's document API; no tags, no merging. */
#include "agent/agent.h"
#include "cli/cli.h"
#include "exporter/exporter.h"

#include <assert.h>
#include <string.h>
#include <yaml.h>

enum { CONFIG_MAX_BYTES = 1 << 20, METRICS_MAX = 256 };

struct reader {
    const char *path;
    yaml_document_t document;
    struct option_set *set;
    VEC(struct trigger_default) defaults;
};

/* A node of the document. libyaml gives NULL only for indexes that a document does not hold. */
static const yaml_node_t *node_at(struct reader *r, int index)
{
    yaml_node_t *node = yaml_document_get_node(&r->document, index);
    assert(node);
    return node;
}

static int fail_at(const struct reader *r, const yaml_node_t *node, struct err *e)
{
    return err_wrap(e, "%s:%zu:%zu", r->path, node->start_mark.line + 1, node->start_mark.column + 1);
}

static int refuse(const struct reader *r, const yaml_node_t *node, struct err *e, const char *text)
{
    (void)err_set(e, ERR_INVALID_ARGUMENT, "%s", text);
    return fail_at(r, node, e);
}

static const char *scalar(const yaml_node_t *node)
{
    return node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : NULL;
}

/* ---- metrics: ---- */

static int read_aggregation(const char *text, struct trigger_default *entry, struct err *e)
{
    for (int i = 0; i < SCALING_AGGREGATION_COUNT; i++)
        if (strcmp(text, scaling_aggregation_name((enum scaling_aggregation)i)) == 0) {
            entry->aggregation = (enum scaling_aggregation)i;
            entry->has_aggregation = true;
            return 0;
        }
    return err_set(e, ERR_INVALID_ARGUMENT, "aggregation \"%s\" is not one of max, min, avg, sum, p95, p99", text);
}

static int read_metric_key(const char *key, const char *value, struct trigger_default *entry, struct err *e)
{
    int64_t index;
    if (strcmp(key, "name") == 0) {
        if (!*value || !str_copy(entry->name, sizeof(entry->name), str_of(value)))
            return err_set(e, ERR_INVALID_ARGUMENT, "name must have 1 to %zu characters", sizeof(entry->name) - 1);
        str_lower(entry->name);
        return 0;
    }
    if (strcmp(key, "targetValue") == 0) {
        entry->has_target = true;
        if (num_parse_double(str_of(value), &entry->target) < 0 || entry->target < 0.001 || entry->target > 1e9)
            return err_set(e, ERR_INVALID_ARGUMENT, "targetValue \"%s\" is not a number from 0.001 to 1e9", value);
        return 0;
    }
    if (strcmp(key, "gpuIndex") == 0) {
        if (num_parse_i64(str_of(value), &index) < 0 || index < -1 || index >= SNAPSHOT_DEVICES_MAX)
            return err_set(e, ERR_INVALID_ARGUMENT, "gpuIndex \"%s\" is neither -1 (all) nor an index", value);
        entry->has_gpu_index = true;
        entry->gpu_index = (int)index;
        return 0;
    }
    if (strcmp(key, "aggregation") == 0)
        return read_aggregation(value, entry, e);
    if (strcmp(key, "type") == 0) /* the chart's word for what the number is; the target decides, so it has no effect */
        return 0;
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "unknown key \"%s\"; a metrics entry has name, type, targetValue, aggregation, gpuIndex", key);
}

/* Each entry is a family on /metrics: two of one name, or a name of the page's own, would spoil the whole page. */
static int check_family(const struct reader *r, const char *name, struct err *e)
{
    char family[EXPORTER_NAME_MAX], other[EXPORTER_NAME_MAX];
    if (exporter_name_entry(name, family, e) < 0)
        return -1;
    for (size_t i = 0; i < r->defaults.len; i++) {
        const char *before = r->defaults.items[i].name;
        if (strcmp(before, name) == 0)
            return err_set(e, ERR_INVALID_ARGUMENT, "this name is already in the list");
        if (exporter_name_entry(before, other, e) == 0 && strcmp(family, other) == 0)
            return err_set(e, ERR_INVALID_ARGUMENT, "name \"%s\" is not allowed: on /metrics it is %s, as \"%s\" is",
                           name, family, before);
    }
    return 0;
}

static int read_metric(struct reader *r, const yaml_node_t *node, struct err *e)
{
    if (node->type != YAML_MAPPING_NODE)
        return refuse(r, node, e, "a metrics entry must be a mapping with at least `name`");
    struct trigger_default entry = {.gpu_index = -1};
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = node_at(r, pair->key), *value = node_at(r, pair->value);
        const char *name = scalar(key), *text = scalar(value);
        if (!name || !text)
            return refuse(r, key, e, "must be `key: value` with plain values");
        if (read_metric_key(name, text, &entry, e) < 0)
            return fail_at(r, value, e);
    }
    if (!*entry.name)
        return refuse(r, node, e, "a metrics entry needs a `name`");
    if (check_family(r, entry.name, e) < 0)
        return fail_at(r, node, e);
    if (r->defaults.len >= METRICS_MAX)
        return refuse(r, node, e, "too many metrics entries");
    vec_push(&r->defaults, entry);
    return 0;
}

static int read_metrics(struct reader *r, const yaml_node_t *node, struct err *e)
{
    if (node->type != YAML_SEQUENCE_NODE)
        return refuse(r, node, e, "metrics must be a list of entries with name, targetValue, aggregation, gpuIndex");
    for (const yaml_node_item_t *item = node->data.sequence.items.start; item < node->data.sequence.items.top; item++)
        if (read_metric(r, node_at(r, *item), e) < 0)
            return -1;
    return 0;
}

/* ---- flags ---- */

static int read_option(struct reader *r, const char *key, const yaml_node_t *node, struct err *e)
{
    const char *text = scalar(node);
    if (text)
        return option_set_file_value(r->set, key, text, e) < 0 ? fail_at(r, node, e) : 0;
    if (node->type != YAML_SEQUENCE_NODE)
        return refuse(r, node, e, "must be a plain value or a list of them");
    for (const yaml_node_item_t *item = node->data.sequence.items.start; item < node->data.sequence.items.top; item++) {
        const yaml_node_t *one = node_at(r, *item);
        const char *part = scalar(one);
        if (!part)
            return refuse(r, one, e, "must be a plain value");
        if (option_set_file_value(r->set, key, part, e) < 0)
            return fail_at(r, one, e);
    }
    return 0;
}

static int read_pair(struct reader *r, const yaml_node_pair_t *pair, struct err *e)
{
    const yaml_node_t *key = node_at(r, pair->key), *value = node_at(r, pair->value);
    const char *name = scalar(key);
    if (!name)
        return refuse(r, key, e, "a key must be plain text");
    for (const yaml_node_pair_t *other = yaml_document_get_root_node(&r->document)->data.mapping.pairs.start;
         other < pair; other++) {
        const char *before = scalar(node_at(r, other->key));
        if (before && strcmp(before, name) == 0)
            return refuse(r, key, e, "this key is already set above");
    }
    if (strcmp(name, "metrics") == 0)
        return read_metrics(r, value, e);
    bool is_list;
    if (option_set_file_key(r->set, name, &is_list, e) < 0)
        return fail_at(r, key, e);
    if (!is_list && !scalar(value))
        return refuse(r, value, e, "must be one plain value");
    return read_option(r, name, value, e);
}

/* Aliases would let a small file grow without bound and are of no use here: libyaml resolves them to shared nodes, so
 * they are refused on the token level. */
static int refuse_aliases(const char *path, struct str text, struct err *e)
{
    yaml_parser_t parser;
    yaml_event_t event;
    int rc = 0;
    bool is_end = false;
    if (!yaml_parser_initialize(&parser))
        abort();
    yaml_parser_set_input_string(&parser, (const unsigned char *)text.ptr, text.len);
    while (!is_end && rc == 0 && yaml_parser_parse(&parser, &event)) {
        is_end = event.type == YAML_STREAM_END_EVENT;
        if (event.type == YAML_ALIAS_EVENT) {
            rc = err_set(e, ERR_INVALID_ARGUMENT, "%s:%zu:%zu: aliases (*name) are not allowed here", path,
                         event.start_mark.line + 1, event.start_mark.column + 1);
        }
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return rc;
}

static int load(struct reader *r, struct str text, struct err *e)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        abort();
    yaml_parser_set_input_string(&parser, (const unsigned char *)text.ptr, text.len);
    int rc = 0;
    if (!yaml_parser_load(&parser, &r->document)) {
        rc = err_set(e, ERR_INVALID_ARGUMENT, "%s:%zu:%zu: not valid YAML: %s", r->path, parser.problem_mark.line + 1,
                     parser.problem_mark.column + 1, parser.problem ? parser.problem : "unknown problem");
        memset(&r->document, 0, sizeof(r->document));
    }
    yaml_parser_delete(&parser);
    return rc;
}

static int read_root(struct reader *r, struct err *e)
{
    const yaml_node_t *root = yaml_document_get_root_node(&r->document);
    if (!root)
        return 0; /* an empty file sets nothing */
    if (root->type != YAML_MAPPING_NODE)
        return refuse(r, root, e, "must be a mapping: flag names as keys, and `metrics:`");
    for (const yaml_node_pair_t *pair = root->data.mapping.pairs.start; pair < root->data.mapping.pairs.top; pair++)
        if (read_pair(r, pair, e) < 0)
            return -1;
    return 0;
}

int config_text_read(const char *path, struct str text, struct option_set *set, struct daemon_reloadable *ret,
                     struct err *e)
{
    struct reader r = {.path = path, .set = set};
    if (text.len > CONFIG_MAX_BYTES)
        return err_set(e, ERR_INVALID_ARGUMENT, "%s is larger than %d bytes", path, CONFIG_MAX_BYTES);
    if (refuse_aliases(path, text, e) < 0 || load(&r, text, e) < 0)
        return -1;
    int rc = read_root(&r, e);
    yaml_document_delete(&r.document);
    if (rc < 0) {
        vec_fini(&r.defaults);
        return -1;
    }
    ret->defaults = r.defaults.items;
    ret->n_defaults = r.defaults.len;
    return 0;
}

int config_file_read(const char *path, struct option_set *set, struct daemon_reloadable *ret, struct err *e)
{
    BUF_AUTO struct buf text;
    buf_init(&text, CONFIG_MAX_BYTES);
    if (file_read(path, &text, e) < 0) {
        if (e->class == ERR_RESOURCE_EXHAUSTED)
            e->class = ERR_INVALID_ARGUMENT; /* a wrong file, not a lack of ours */
        return err_wrap(e, "--config");
    }
    return config_text_read(path, (struct str){text.data ? text.data : "", text.len}, set, ret, e);
}
