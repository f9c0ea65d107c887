/* Triggers by the text they were parsed from, whatever the order of the pairs on the wire: a map is sent in random
 * order. Owns the text's canonical form and the cache's references. */
#include "trigger/trigger.h"

#include <string.h>

struct trigger_cache {
    struct trigger_settings settings;
    struct map *triggers;
};

static void unref_value(void *value)
{
    trigger_unref((struct trigger *)value);
}

struct trigger_cache *trigger_cache_new(const struct trigger_settings *settings, size_t max_entries)
{
    struct trigger_cache *cache = mem_new(struct trigger_cache);
    cache->settings = *settings;
    cache->triggers = map_new(max_entries, unref_value);
    return cache;
}

void trigger_cache_free(struct trigger_cache *cache)
{
    if (!cache)
        return;
    map_free(cache->triggers);
    free(cache);
}

void trigger_cache_flush(struct trigger_cache *cache, const struct trigger_settings *settings)
{
    map_clear(cache->triggers);
    cache->settings = *settings;
}

size_t trigger_cache_len(const struct trigger_cache *cache)
{
    return map_len(cache->triggers);
}

static int compare_text(struct str a, struct str b)
{
    size_t shared = a.len < b.len ? a.len : b.len;
    int order = shared ? memcmp(a.ptr, b.ptr, shared) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_pairs(const void *left, const void *right)
{
    const struct trigger_pair *a = (const struct trigger_pair *)left, *b = (const struct trigger_pair *)right;
    int order = compare_text(a->key, b->key);
    return order ? order : compare_text(a->value, b->value);
}

static int append_text(struct buf *out, struct str text)
{
    uint32_t len = (uint32_t)text.len;
    return buf_append(out, &len, sizeof(len)) < 0 || buf_append(out, text.ptr, text.len) < 0 ? -1 : 0;
}

/* Sorted pairs, each text behind its length: equal for equal metadata and only then. */
static int canonical_text(const struct trigger_pair *sorted, size_t n, struct buf *out)
{
    for (size_t i = 0; i < n; i++)
        if (sorted[i].key.len > TRIGGER_BYTES_MAX || sorted[i].value.len > TRIGGER_BYTES_MAX ||
            append_text(out, sorted[i].key) < 0 || append_text(out, sorted[i].value) < 0)
            return -1;
    return 0;
}

struct trigger *trigger_cache_get(struct trigger_cache *cache, const struct trigger_pair *pairs, size_t n,
                                  struct err *e)
{
    if (n > TRIGGER_PAIRS_MAX)
        return trigger_parse(pairs, n, &cache->settings, e);
    struct trigger_pair sorted[TRIGGER_PAIRS_MAX];
    if (n > 0) {
        memcpy(sorted, pairs, n * sizeof(*pairs));
        qsort(sorted, n, sizeof(*sorted), compare_pairs);
    }
    BUF_AUTO struct buf text;
    buf_init(&text, TRIGGER_BYTES_MAX + TRIGGER_PAIRS_MAX * 2 * sizeof(uint32_t));
    bool is_small = canonical_text(sorted, n, &text) == 0;
    struct trigger *t = is_small ? (struct trigger *)map_get(cache->triggers, text.data, text.len) : NULL;
    if (t)
        return trigger_ref(t);
    t = trigger_parse(sorted, n, &cache->settings, e); /* sorted: of two faults always the same one is named */
    if (t && is_small)
        map_put(cache->triggers, text.data, text.len, trigger_ref(t));
    return t;
}
