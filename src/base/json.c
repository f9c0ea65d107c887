/* A JSON writer. */
#include "base/json.h"

#include "base/num.h"
#include "base/str.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

void json_init(struct json *j, struct buf *out, int indent)
{
    *j = (struct json){.out = out, .indent = indent, .is_first = {true}};
}

static void newline(struct json *j)
{
    if (j->indent > 0)
        (void)buf_printf(j->out, "\n%*s", j->depth * j->indent, "");
}

/* What goes before a value or key: a comma after the first, and the line break. */
static void separate(struct json *j)
{
    if (j->is_after_key) {
        j->is_after_key = false;
        return;
    }
    if (!j->is_first[j->depth])
        (void)buf_append_char(j->out, ',');
    j->is_first[j->depth] = false;
    if (j->depth > 0)
        newline(j);
}

static void open_level(struct json *j, char bracket)
{
    separate(j);
    assert(j->depth + 1 < JSON_DEPTH_MAX);
    (void)buf_append_char(j->out, bracket);
    j->is_first[++j->depth] = true;
}

static void close_level(struct json *j, char bracket)
{
    assert(j->depth > 0);
    bool is_empty = j->is_first[j->depth--];
    if (!is_empty)
        newline(j);
    (void)buf_append_char(j->out, bracket);
}

void json_object_begin(struct json *j)
{
    open_level(j, '{');
}

void json_object_end(struct json *j)
{
    close_level(j, '}');
}

void json_array_begin(struct json *j)
{
    open_level(j, '[');
}

void json_array_end(struct json *j)
{
    close_level(j, ']');
}

/* One character below U+0100, c its number. Control characters, which terminals obey, are spelled out. */
static void quote_char(struct buf *out, unsigned char c)
{
    const char *escape = c == '"'    ? "\\\""
                         : c == '\\' ? "\\\\"
                         : c == '\n' ? "\\n"
                         : c == '\r' ? "\\r"
                         : c == '\t' ? "\\t"
                                     : NULL;
    if (escape)
        (void)buf_append_str(out, escape);
    else if (c < 0x20 || c >= 0x7f)
        (void)buf_printf(out, "\\u%04x", c);
    else
        (void)buf_append_char(out, (char)c);
}

void json_quote(struct buf *out, const char *text, size_t len)
{
    (void)buf_append_char(out, '"');
    for (size_t i = 0; i < len;) {
        unsigned char c = (unsigned char)text[i];
        size_t sequence = c < 0x80 ? 1 : c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
        bool is_c1 =
            c == 0xC2 && len - i > 1 && (unsigned char)text[i + 1] >= 0x80 && (unsigned char)text[i + 1] < 0xA0;
        if (c < 0x80 || is_c1) {
            quote_char(out, is_c1 ? (unsigned char)text[i + 1] : c);
        } else if (sequence <= len - i && str_is_utf8((struct str){text + i, sequence})) {
            (void)buf_append(out, text + i, sequence);
        } else {
            (void)buf_append_str(out, "\xEF\xBF\xBD");
            sequence = 1;
        }
        i += sequence;
    }
    (void)buf_append_char(out, '"');
}

void json_key(struct json *j, const char *key)
{
    separate(j);
    json_quote(j->out, key, strlen(key));
    (void)buf_append_str(j->out, j->indent > 0 ? ": " : ":");
    j->is_after_key = true;
}

void json_string(struct json *j, const char *text)
{
    if (!text) {
        json_null(j);
        return;
    }
    separate(j);
    json_quote(j->out, text, strlen(text));
}

static void literal(struct json *j, const char *text)
{
    separate(j);
    (void)buf_append_str(j->out, text);
}

void json_double(struct json *j, double value)
{
    char text[NUM_TEXT_MAX];
    num_format_double(text, value);
    literal(j, isfinite(value) ? text : "null");
}

void json_i64(struct json *j, int64_t value)
{
    separate(j);
    (void)buf_printf(j->out, "%" PRId64, value);
}

void json_bool(struct json *j, bool value)
{
    literal(j, value ? "true" : "false");
}

void json_null(struct json *j)
{
    literal(j, "null");
}

void json_kv_string(struct json *j, const char *key, const char *text)
{
    json_key(j, key);
    json_string(j, text);
}

void json_kv_double(struct json *j, const char *key, double value)
{
    json_key(j, key);
    json_double(j, value);
}

void json_kv_i64(struct json *j, const char *key, int64_t value)
{
    json_key(j, key);
    json_i64(j, value);
}

void json_kv_bool(struct json *j, const char *key, bool value)
{
    json_key(j, key);
    json_bool(j, value);
}

void json_kv_maybe(struct json *j, const char *key, bool is_there, double value)
{
    json_key(j, key);
    if (is_there)
        json_double(j, value);
    else
        json_null(j);
}
