/* A hash map from byte strings to pointers, with a ceiling and an order of last use. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stddef.h>

struct map;

/* Values are freed with free_value (may be NULL) when they leave the map. At most max_entries; a further insert drops
 * the entry that was not got or put for longest. The hash is keyed by a random seed: keys may come from a peer. */
struct map *map_new(size_t max_entries, void (*free_value)(void *value));
void map_free(struct map *m);

size_t map_len(const struct map *m);
/* The value, now the most recently used, or NULL. */
void *map_get(struct map *m, const void *key, size_t key_len);
/* The value that was not got or put for longest, which this does not change; NULL when there is none. */
void *map_oldest(const struct map *m);
/* Insert or replace. Copies the key, takes the value (not NULL, and not the one that the map holds under this key). */
void map_put(struct map *m, const void *key, size_t key_len, void *value);
/* Remove and free; nothing if it is not there. */
void map_remove(struct map *m, const void *key, size_t key_len);
void map_clear(struct map *m);
/* Call visit for every entry, most recently used first; visit must not change the map. */
void map_each(const struct map *m, void (*visit)(void *context, const void *key, size_t key_len, void *value),
              void *context);

#endif
