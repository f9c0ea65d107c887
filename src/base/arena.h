/* Per-request memory that dies at once, with a hard cap against amplification. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *blocks;
    size_t used_bytes, max_bytes; /* counted with block overhead and padding */
};

#define ARENA_AUTO __attribute__((cleanup(arena_fini)))

void arena_init(struct arena *a, size_t max_bytes);
void arena_fini(struct arena *a);

/* Memory aligned to 16 bytes, not zeroed, or NULL when the cap would be passed. Lives until arena_fini. */
void *arena_alloc(struct arena *a, size_t size);
/* A NUL-terminated copy, or NULL at the cap. */
char *arena_strndup(struct arena *a, const char *text, size_t len);

#endif
