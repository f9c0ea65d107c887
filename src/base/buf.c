/* A growable byte buffer with a ceiling. */
#include "base/buf.h"

#include "base/alloc.h"
#include "base/str.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

void buf_init(struct buf *b, size_t max_bytes)
{
    *b = (struct buf){.max_bytes = max_bytes};
}

void buf_fini(struct buf *b)
{
    free(b->data);
    *b = (struct buf){.max_bytes = b->max_bytes};
}

void buf_reset(struct buf *b)
{
    b->len = 0;
    b->is_overflowed = false;
}

/* One byte beyond the content is always allocated, for buf_cstr's NUL. */
char *buf_reserve(struct buf *b, size_t len)
{
    if (b->is_overflowed || len > b->max_bytes || b->len > b->max_bytes - len) {
        b->is_overflowed = true;
        return NULL;
    }
    size_t need = b->len + len + 1;
    if (need > b->capacity) {
        size_t grown = b->capacity < 64 ? 64 : b->capacity + b->capacity / 2;
        if (grown > b->max_bytes) /* a ceiling on the content is one on the memory */
            grown = b->max_bytes + 1;
        b->capacity = grown < need ? need : grown;
        b->data = (char *)mem_resize(b->data, b->capacity, 1);
    }
    return b->data + b->len;
}

void buf_advance(struct buf *b, size_t len)
{
    if (len == 0)
        return;
    assert(b->len + len < b->capacity);
    b->len += len;
}

int buf_append(struct buf *b, const void *bytes, size_t len)
{
    char *at = buf_reserve(b, len);
    if (!at)
        return -1;
    if (len)
        memcpy(at, bytes, len);
    b->len += len;
    return 0;
}

int buf_append_str(struct buf *b, const char *text)
{
    return buf_append(b, text, strlen(text));
}

int buf_append_char(struct buf *b, char c)
{
    return buf_append(b, &c, 1);
}

int buf_printf(struct buf *b, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *at = len < 0 ? NULL : buf_reserve(b, (size_t)len);
    if (at) {
        (void)vsnprintf(at, (size_t)len + 1, format, again);
        b->len += (size_t)len;
    }
    va_end(again);
    return at ? 0 : -1;
}

void buf_consume(struct buf *b, size_t len)
{
    if (len >= b->len) {
        b->len = 0;
        return;
    }
    memmove(b->data, b->data + len, b->len - len);
    b->len -= len;
}

void buf_make_printable(struct buf *b, size_t from)
{
    for (size_t i = from; i < b->len; i++)
        if (b->data[i] != '\n')
            memset(&b->data[i], '?', str_control_len((struct str){&b->data[i], b->len - i}));
}

const char *buf_cstr(struct buf *b)
{
    if (!b->data)
        return "";
    b->data[b->len] = '\0';
    return b->data;
}
