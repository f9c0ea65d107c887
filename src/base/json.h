/* A JSON writer: well-formed by construction, valid UTF-8 whatever goes in, numbers that are JSON. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum { JSON_DEPTH_MAX = 32 };

/* Writes into a caller's buffer; indent 0 gives one line, else that many spaces a level. */
struct json {
    struct buf *out;
    int indent, depth;
    bool is_first[JSON_DEPTH_MAX], is_after_key;
};

void json_init(struct json *j, struct buf *out, int indent);
void json_object_begin(struct json *j);
void json_object_end(struct json *j);
void json_array_begin(struct json *j);
void json_array_end(struct json *j);
void json_key(struct json *j, const char *key);
/* NULL text is written as null; invalid UTF-8 bytes as U+FFFD. */
void json_string(struct json *j, const char *text);
/* NaN and infinities are written as null: JSON has none. */
void json_double(struct json *j, double value);
void json_i64(struct json *j, int64_t value);
void json_bool(struct json *j, bool value);
void json_null(struct json *j);

/* key and value in one call. */
void json_kv_string(struct json *j, const char *key, const char *text);
void json_kv_double(struct json *j, const char *key, double value);
void json_kv_i64(struct json *j, const char *key, int64_t value);
void json_kv_bool(struct json *j, const char *key, bool value);
/* A number that is there under a condition only: else null. */
void json_kv_maybe(struct json *j, const char *key, bool is_there, double value);

/* Append text as a quoted JSON string. */
void json_quote(struct buf *out, const char *text, size_t len);

#endif
