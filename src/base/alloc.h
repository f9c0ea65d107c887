/* Allocation that aborts on out-of-memory, and the cleanup attribute's helpers. */
#ifndef BASE_ALLOC_H
#define BASE_ALLOC_H

#include <stddef.h>
#include <stdlib.h>

/* Zeroed memory of n * size bytes, the caller's to free(). Aborts when there is none or n * size overflows; never NULL.
 */
void *mem_new_array(size_t n, size_t size) __attribute__((malloc, returns_nonnull, warn_unused_result));

/* `old` (may be NULL) grown or shrunk to n * size bytes; new bytes are not set. Aborts like mem_new_array. */
void *mem_resize(void *old, size_t n, size_t size) __attribute__((returns_nonnull, warn_unused_result));

/* A copy of a NUL-terminated string, or of len bytes with a NUL added; the caller's to free(). text may not be NULL. */
char *mem_strdup(const char *text) __attribute__((malloc, returns_nonnull, warn_unused_result));
char *mem_strndup(const char *text, size_t len) __attribute__((malloc, returns_nonnull, warn_unused_result));

#define mem_new(type) ((type *)mem_new_array(1, sizeof(type)))

/* For `__attribute__((cleanup(mem_cleanup)))` on a pointer local: frees what it points to at scope end. */
static inline void mem_cleanup(void *pointer_to_pointer)
{
    free(*(void **)pointer_to_pointer);
}
#define MEM_AUTO __attribute__((cleanup(mem_cleanup)))

#define ARRAY_LEN(array)                    (sizeof(array) / sizeof((array)[0]))
#define CONTAINER_OF(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#endif
