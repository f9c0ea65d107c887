/* Per-request memory: blocks of growing size, freed together. */
#include "base/arena.h"

#include "base/alloc.h"

#include <string.h>

struct arena_block {
    struct arena_block *next;
    size_t size, used;
    _Alignas(16) char bytes[];
};

enum { ARENA_FIRST_BLOCK = 2048, ARENA_LARGEST_BLOCK = 65536 };

void arena_init(struct arena *a, size_t max_bytes)
{
    *a = (struct arena){.max_bytes = max_bytes};
}

void arena_fini(struct arena *a)
{
    while (a->blocks) {
        struct arena_block *next = a->blocks->next;
        free(a->blocks);
        a->blocks = next;
    }
    a->used_bytes = 0;
}

static struct arena_block *add_block(struct arena *a, size_t size)
{
    size_t left = a->max_bytes - a->used_bytes;
    if (left < sizeof(struct arena_block) || size > left - sizeof(struct arena_block))
        return NULL;
    size_t bytes = a->blocks ? a->blocks->size * 2 : ARENA_FIRST_BLOCK;
    if (bytes > ARENA_LARGEST_BLOCK)
        bytes = ARENA_LARGEST_BLOCK;
    if (bytes < size)
        bytes = size;
    if (bytes > left - sizeof(struct arena_block)) /* the last block takes what is left */
        bytes = left - sizeof(struct arena_block);
    struct arena_block *block = (struct arena_block *)mem_resize(NULL, 1, sizeof(*block) + bytes);
    *block = (struct arena_block){.next = a->blocks, .size = bytes};
    a->blocks = block;
    a->used_bytes += sizeof(*block) + bytes;
    return block;
}

void *arena_alloc(struct arena *a, size_t size)
{
    if (size > a->max_bytes)
        return NULL;
    size = (size + 15) & ~(size_t)15;
    struct arena_block *block = a->blocks;
    if (!block || block->size - block->used < size)
        block = add_block(a, size);
    if (!block)
        return NULL;
    void *memory = block->bytes + block->used;
    block->used += size;
    return memory;
}

char *arena_strndup(struct arena *a, const char *text, size_t len)
{
    char *copy = (char *)arena_alloc(a, len + 1);
    if (!copy)
        return NULL;
    memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}
