/* Allocation that aborts on out-of-memory. A process that cannot get a few kilobytes has no honest answer to give. */
#include "base/alloc.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void die_out_of_memory(size_t n, size_t size)
{
    (void)fprintf(stderr, "out of memory: %zu * %zu bytes\n", n, size);
    abort();
}

void *mem_new_array(size_t n, size_t size)
{
    void *memory = calloc(n ? n : 1, size ? size : 1);
    if (!memory)
        die_out_of_memory(n, size);
    return memory;
}

void *mem_resize(void *old, size_t n, size_t size)
{
    void *memory = reallocarray(old, n ? n : 1, size ? size : 1);
    if (!memory)
        die_out_of_memory(n, size);
    return memory;
}

char *mem_strndup(const char *text, size_t len)
{
    char *copy = (char *)mem_new_array(len + 1, 1);
    memcpy(copy, text, len);
    return copy;
}

char *mem_strdup(const char *text)
{
    return mem_strndup(text, strlen(text));
}
