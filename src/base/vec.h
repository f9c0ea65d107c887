/* A typed growable array: `struct { VEC(struct item) items; }`, or `VEC(int) numbers = {0};`. */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include "base/alloc.h"

#include <string.h>

/* items[0..len) are in use. Zero-initialise; free with vec_fini. The owner checks its own ceiling before a push. */
#define VEC(type)                                                                                                      \
    struct {                                                                                                           \
        type *items;                                                                                                   \
        size_t len, capacity;                                                                                          \
    }

/* Append a copy of `item`. Pointers into the vector are invalid afterwards. */
#define vec_push(v, item)                                                                                              \
    do {                                                                                                               \
        if ((v)->len == (v)->capacity) {                                                                               \
            (v)->capacity = (v)->capacity ? (v)->capacity * 2 : 8;                                                     \
            (v)->items = (__typeof__((v)->items))mem_resize((v)->items, (v)->capacity, sizeof(*(v)->items));           \
        }                                                                                                              \
        (v)->items[(v)->len++] = (item);                                                                               \
    } while (0)

/* Remove item i, keeping the order. */
#define vec_remove(v, i)                                                                                               \
    do {                                                                                                               \
        memmove(&(v)->items[i], &(v)->items[(i) + 1], ((v)->len - (i)-1) * sizeof(*(v)->items));                       \
        (v)->len--;                                                                                                    \
    } while (0)

#define vec_fini(v)                                                                                                    \
    do {                                                                                                               \
        free((v)->items);                                                                                              \
        (v)->items = NULL;                                                                                             \
        (v)->len = (v)->capacity = 0;                                                                                  \
    } while (0)

#endif
