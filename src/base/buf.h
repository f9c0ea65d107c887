/* A growable byte buffer with a ceiling. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes at data[0..len); data may be NULL while empty. Once an append would pass max_bytes nothing more is taken and
 * is_overflowed stays set until buf_reset: check it once at the end. */
struct buf {
    char *data;
    size_t len, capacity, max_bytes;
    bool is_overflowed;
};

#define BUF_AUTO __attribute__((cleanup(buf_fini)))

void buf_init(struct buf *b, size_t max_bytes);
void buf_fini(struct buf *b);
/* Empty again; keeps the memory. */
void buf_reset(struct buf *b);

/* Each returns 0, or -1 when the ceiling was hit (nothing of this call was appended). */
int buf_append(struct buf *b, const void *bytes, size_t len);
int buf_append_str(struct buf *b, const char *text);
int buf_append_char(struct buf *b, char c);
int buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Room for `len` more bytes at the end; returns where to write them (then call buf_advance), or NULL at the ceiling. */
char *buf_reserve(struct buf *b, size_t len);
void buf_advance(struct buf *b, size_t len);
/* Drop the first `len` bytes (at most all). */
void buf_consume(struct buf *b, size_t len);

/* Bytes from there on that could command a terminal (controls, but for newlines) become '?'. */
void buf_make_printable(struct buf *b, size_t from);

/* The content as a NUL-terminated string, owned by the buffer, valid until the next change. Never NULL. */
const char *buf_cstr(struct buf *b);

#endif
