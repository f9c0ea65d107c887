/* Reading a JSON document field by field: types are checked, absence has a default, and an error names the field. Owns
 * no rule about what the fields mean. */
#include "kube/kube_private.h"

#include <string.h>

static void write_path(struct buf *out, const struct kube_at *at)
{
    if (at->up)
        write_path(out, at->up);
    if (!at->up)
        return;
    if (at->key)
        (void)buf_printf(out, "%s%s", out->len ? "." : "", at->key);
    else
        (void)buf_printf(out, "[%zu]", at->index);
}

void kube_refuse(struct kube_reader *r, const struct kube_at *at, const char *key, const char *what)
{
    if (r->is_failed)
        return;
    r->is_failed = true;
    struct buf path BUF_AUTO;
    buf_init(&path, 256);
    write_path(&path, at);
    if (key)
        (void)buf_printf(&path, "%s%s", path.len ? "." : "", key);
    (void)err_set(r->e, ERR_INVALID_ARGUMENT, "%s %s", path.len ? buf_cstr(&path) : "the object", what);
}

void *kube_reader_alloc(struct kube_reader *r, size_t n, size_t size)
{
    void *memory = r->is_failed || (n && size > SIZE_MAX / n) ? NULL : arena_alloc(r->arena, n * size);
    if (memory)
        return memset(memory, 0, n * size);
    if (!r->is_failed)
        (void)err_set(r->e, ERR_INVALID_ARGUMENT, "the object is too large");
    r->is_failed = true;
    return NULL;
}

static json_t *member(const struct kube_reader *r, const struct kube_at *up, const char *key)
{
    json_t *json = r->is_failed || !up->json ? NULL : json_object_get(up->json, key);
    return json && !json_is_null(json) ? json : NULL;
}

struct kube_at kube_at_object(struct kube_reader *r, const struct kube_at *up, const char *key)
{
    struct kube_at at = {.up = up, .key = key, .json = member(r, up, key)};
    if (at.json && !json_is_object(at.json)) {
        kube_refuse(r, &at, NULL, "is not an object");
        at.json = NULL;
    }
    return at;
}

struct kube_at kube_at_array(struct kube_reader *r, const struct kube_at *up, const char *key)
{
    struct kube_at at = {.up = up, .key = key, .json = member(r, up, key)};
    if (at.json && !json_is_array(at.json)) {
        kube_refuse(r, &at, NULL, "is not a list");
        at.json = NULL;
    }
    return at;
}

size_t kube_at_len(const struct kube_at *array)
{
    return json_array_size(array->json);
}

struct kube_at kube_at_item(struct kube_reader *r, const struct kube_at *array, size_t i)
{
    struct kube_at at = {.up = array, .index = i, .json = r->is_failed ? NULL : json_array_get(array->json, i)};
    if (at.json && !json_is_object(at.json)) {
        kube_refuse(r, &at, NULL, "is not an object");
        at.json = NULL;
    }
    return at;
}

static const char *copy_text(struct kube_reader *r, const json_t *json)
{
    size_t len = json_string_length(json);
    char *copy = (char *)kube_reader_alloc(r, len + 1, 1);
    if (!copy)
        return "";
    memcpy(copy, json_string_value(json), len);
    return copy;
}

const char *kube_at_text(struct kube_reader *r, const struct kube_at *up, const char *key, const char *otherwise)
{
    const json_t *json = member(r, up, key);
    if (!json)
        return otherwise;
    if (json_is_string(json))
        return copy_text(r, json);
    kube_refuse(r, up, key, "is not a text");
    return otherwise;
}

const char *kube_at_item_text(struct kube_reader *r, const struct kube_at *array, size_t i)
{
    const struct kube_at at = {.up = array, .index = i, .json = r->is_failed ? NULL : json_array_get(array->json, i)};
    if (json_is_string(at.json))
        return copy_text(r, at.json);
    if (at.json)
        kube_refuse(r, &at, NULL, "is not a text");
    return "";
}

int64_t kube_at_int(struct kube_reader *r, const struct kube_at *up, const char *key, int64_t otherwise)
{
    const json_t *json = member(r, up, key);
    if (!json)
        return otherwise;
    if (json_is_integer(json))
        return json_integer_value(json);
    kube_refuse(r, up, key, "is not a whole number");
    return otherwise;
}

bool kube_at_bool(struct kube_reader *r, const struct kube_at *up, const char *key, bool otherwise)
{
    const json_t *json = member(r, up, key);
    if (!json)
        return otherwise;
    if (json_is_boolean(json))
        return json_is_true(json);
    kube_refuse(r, up, key, "is neither true nor false");
    return otherwise;
}

double kube_at_time(struct kube_reader *r, const struct kube_at *up, const char *key)
{
    double at_s = 0;
    const json_t *json = member(r, up, key);
    if (!json)
        return 0;
    if (!json_is_string(json) ||
        kube_parse_time((struct str){json_string_value(json), json_string_length(json)}, &at_s) < 0)
        kube_refuse(r, up, key, "is not a time as RFC 3339 has it");
    return at_s;
}

bool kube_at_quantity(struct kube_reader *r, const struct kube_at *up, const char *key, double *ret)
{
    char number[NUM_TEXT_MAX];
    struct str text = {0};
    const json_t *json = member(r, up, key);
    if (!json)
        return false;
    if (json_is_string(json)) {
        text = (struct str){json_string_value(json), json_string_length(json)};
    } else if (json_is_number(json)) {
        num_format_double(number, json_number_value(json));
        text = str_of(number);
    }
    if (text.ptr && kube_parse_quantity(text, ret) == 0)
        return true;
    kube_refuse(r, up, key, "is not a quantity");
    return false;
}
