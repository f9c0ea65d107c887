/* The JSON writer on arbitrary bytes: the output is valid UTF-8 and its quotes and brackets balance. */
#include "base/base.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The closing quote of the JSON string that starts at text[0] == '"', or NULL. */
static const char *string_end(const char *text)
{
    for (text++; *text && *text != '"'; text++) {
        if ((unsigned char)*text < 0x20)
            return NULL;
        if (*text == '\\' && *++text == '\0')
            return NULL;
    }
    return *text ? text : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    BUF_AUTO struct buf quoted, document;
    buf_init(&quoted, 8 * size + 2);
    buf_init(&document, 16 * size + 64);
    json_quote(&quoted, (const char *)data, size);
    const char *text = buf_cstr(&quoted);
    if (quoted.is_overflowed || !str_is_utf8(str_of(text)) || string_end(text) != text + quoted.len - 1)
        abort();

    MEM_AUTO char *copy = mem_strndup((const char *)data, size);
    struct json j;
    json_init(&j, &document, (int)(size % 3));
    json_object_begin(&j);
    json_kv_string(&j, copy, copy);
    json_kv_i64(&j, "size", (int64_t)size);
    json_object_end(&j);
    if (document.is_overflowed || document.data[document.len - 1] != '}')
        abort();
    return 0;
}
