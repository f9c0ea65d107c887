/* A hash map with a ceiling: buckets of chained entries, threaded by a list in order of last use. */
#include "base/map.h"

#include "base/alloc.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

struct entry {
    struct entry *chain;         /* next in the bucket */
    struct entry *newer, *older; /* order of last use */
    uint64_t hash;
    void *value;
    size_t key_len;
    char key[];
};

struct map {
    struct entry **buckets;
    size_t n_buckets, len, max_entries;
    struct entry *newest, *oldest;
    void (*free_value)(void *);
    uint64_t seed;
};

/* The two halves of the product folded into one: each bit of both factors reaches all of the result. */
static uint64_t mix(uint64_t a, uint64_t b)
{
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Eight bytes a step over a random seed: whole metadata texts are keys, and nobody can predict collisions. */
static uint64_t hash_bytes(uint64_t seed, const unsigned char *bytes, size_t len)
{
    static const uint64_t odd = 0x9e3779b97f4a7c15U, other = 0xd1b54a32d192ed03U;
    uint64_t hash = seed ^ (len * odd), word;
    for (; len >= sizeof(word); bytes += sizeof(word), len -= sizeof(word)) {
        memcpy(&word, bytes, sizeof(word));
        hash = mix(hash ^ word, seed ^ odd);
    }
    word = 0;
    if (len)
        memcpy(&word, bytes, len);
    return mix(hash ^ word, seed ^ other);
}

struct map *map_new(size_t max_entries, void (*free_value)(void *value))
{
    struct map *m = mem_new(struct map);
    m->max_entries = max_entries ? max_entries : 1;
    m->free_value = free_value;
    m->n_buckets = 16;
    m->buckets = (struct entry **)mem_new_array(m->n_buckets, sizeof(*m->buckets));
    if (getrandom(&m->seed, sizeof(m->seed), GRND_NONBLOCK) != (ssize_t)sizeof(m->seed))
        m->seed = (uint64_t)(uintptr_t)m;
    return m;
}

static void unlink_use(struct map *m, struct entry *e)
{
    *(e->newer ? &e->newer->older : &m->newest) = e->older;
    *(e->older ? &e->older->newer : &m->oldest) = e->newer;
}

static void link_newest(struct map *m, struct entry *e)
{
    e->newer = NULL;
    e->older = m->newest;
    *(m->newest ? &m->newest->newer : &m->oldest) = e;
    m->newest = e;
}

static bool is_same_key(const struct entry *e, const void *key, size_t key_len)
{
    return e->key_len == key_len && (key_len == 0 || memcmp(e->key, key, key_len) == 0);
}

static struct entry **find(const struct map *m, uint64_t hash, const void *key, size_t key_len)
{
    struct entry **at = &m->buckets[hash & (m->n_buckets - 1)];
    while (*at && !((*at)->hash == hash && is_same_key(*at, key, key_len)))
        at = &(*at)->chain;
    return at;
}

static void drop(struct map *m, struct entry **at)
{
    struct entry *e = *at;
    assert(e);
    *at = e->chain;
    unlink_use(m, e);
    m->len--;
    if (m->free_value)
        m->free_value(e->value);
    free(e);
}

static void grow(struct map *m)
{
    free(m->buckets);
    m->n_buckets *= 2;
    m->buckets = (struct entry **)mem_new_array(m->n_buckets, sizeof(*m->buckets));
    for (struct entry *e = m->oldest; e; e = e->newer) {
        struct entry **bucket = &m->buckets[e->hash & (m->n_buckets - 1)];
        e->chain = *bucket;
        *bucket = e;
    }
}

size_t map_len(const struct map *m)
{
    return m->len;
}

void *map_get(struct map *m, const void *key, size_t key_len)
{
    struct entry *e = *find(m, hash_bytes(m->seed, key, key_len), key, key_len);
    if (!e)
        return NULL;
    unlink_use(m, e);
    link_newest(m, e);
    return e->value;
}

void *map_oldest(const struct map *m)
{
    return m->oldest ? m->oldest->value : NULL;
}

void map_put(struct map *m, const void *key, size_t key_len, void *value)
{
    uint64_t hash = hash_bytes(m->seed, key, key_len);
    struct entry **at = find(m, hash, key, key_len);
    if (*at)
        drop(m, at);
    else if (m->len >= m->max_entries)
        drop(m, find(m, m->oldest->hash, m->oldest->key, m->oldest->key_len));
    if (m->len >= m->n_buckets)
        grow(m);

    struct entry *e = (struct entry *)mem_new_array(1, sizeof(*e) + key_len);
    e->hash = hash;
    e->value = value;
    e->key_len = key_len;
    if (key_len)
        memcpy(e->key, key, key_len);
    struct entry **bucket = &m->buckets[hash & (m->n_buckets - 1)];
    e->chain = *bucket;
    *bucket = e;
    link_newest(m, e);
    m->len++;
}

void map_remove(struct map *m, const void *key, size_t key_len)
{
    struct entry **at = find(m, hash_bytes(m->seed, key, key_len), key, key_len);
    if (*at)
        drop(m, at);
}

void map_clear(struct map *m)
{
    while (m->oldest)
        drop(m, find(m, m->oldest->hash, m->oldest->key, m->oldest->key_len));
}

void map_free(struct map *m)
{
    if (!m)
        return;
    map_clear(m);
    free(m->buckets);
    free(m);
}

void map_each(const struct map *m, void (*visit)(void *context, const void *key, size_t key_len, void *value),
              void *context)
{
    for (const struct entry *e = m->newest; e; e = e->older)
        visit(context, e->key, e->key_len, e->value);
}
