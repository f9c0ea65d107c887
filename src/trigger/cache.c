/* Triggers by the text they were parsed from, whatever the order of the pairs on the wire: a map is sent in random
 * order. Owns the text's canonical form and the cache's references. */
#include "trigger/trigger.h"

#include <string.h>

struct trigger_cache {
    struct trigger_settings settings;
    uint64_t generation; /* of the settings */
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

static bool is_same_entry(const struct trigger_default *a, const struct trigger_default *b)
{
    bool is_same_target = !(a->target < b->target) && !(a->target > b->target);
    return strcmp(a->name, b->name) == 0 && a->has_target == b->has_target && is_same_target &&
           a->has_aggregation == b->has_aggregation && a->aggregation == b->aggregation &&
           a->has_gpu_index == b->has_gpu_index && a->gpu_index == b->gpu_index;
}

static bool are_same(const struct trigger_settings *a, const struct trigger_settings *b)
{
    bool is_same = a->default_scope == b->default_scope && a->n_defaults == b->n_defaults;
    for (size_t i = 0; is_same && i < a->n_defaults; i++)
        is_same = is_same_entry(&a->defaults[i], &b->defaults[i]);
    return is_same;
}

void trigger_cache_flush(struct trigger_cache *cache, const struct trigger_settings *settings)
{
    bool is_same = are_same(&cache->settings, settings);
    cache->settings = *settings;
    if (is_same)
        return;
    cache->generation++;
    map_clear(cache->triggers);
}

uint64_t trigger_cache_generation(const struct trigger_cache *cache)
{
    return cache->generation;
}

size_t trigger_cache_len(const struct trigger_cache *cache)
{
    return map_len(cache->triggers);
}

const struct trigger_settings *trigger_cache_settings(const struct trigger_cache *cache)
{
    return &cache->settings;
}

static int compare_text(struct str a, struct str b)
{
    size_t shared = a.len < b.len ? a.len : b.len;
    int order = shared ? memcmp(a.ptr, b.ptr, shared) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_pairs(const struct trigger_pair *a, const struct trigger_pair *b)
{
    int order = compare_text(a->key, b->key);
    return order ? order : compare_text(a->value, b->value);
}

/* By insertion: a handful of pairs, TRIGGER_PAIRS_MAX at most. */
static void sort_pairs(struct trigger_pair *sorted, const struct trigger_pair *pairs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t at = i;
        for (; at > 0 && compare_pairs(&pairs[i], &sorted[at - 1]) < 0; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = pairs[i];
    }
}

/* Bytes of the canonical text, or 0 where the metadata is too large for any trigger. */
static size_t text_size(const struct trigger_pair *pairs, size_t n)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        if (pairs[i].key.len > TRIGGER_BYTES_MAX || pairs[i].value.len > TRIGGER_BYTES_MAX)
            return 0;
        bytes += 2 * sizeof(uint32_t) + pairs[i].key.len + pairs[i].value.len;
    }
    return bytes <= TRIGGER_BYTES_MAX + TRIGGER_PAIRS_MAX * 2 * sizeof(uint32_t) ? bytes : 0;
}

static char *put_text(char *out, struct str text)
{
    uint32_t len = (uint32_t)text.len;
    memcpy(out, &len, sizeof(len));
    if (len)
        memcpy(out + sizeof(len), text.ptr, len);
    return out + sizeof(len) + len;
}

/* Sorted pairs, each text behind its length: equal for equal metadata and only then. */
static void put_pairs(char *out, const struct trigger_pair *sorted, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out = put_text(put_text(out, sorted[i].key), sorted[i].value);
}

struct trigger *trigger_cache_get(struct trigger_cache *cache, const struct trigger_pair *pairs, size_t n,
                                  struct err *e)
{
    if (n > TRIGGER_PAIRS_MAX)
        return trigger_parse(pairs, n, &cache->settings, e);
    struct trigger_pair sorted[TRIGGER_PAIRS_MAX];
    sort_pairs(sorted, pairs, n);
    enum { SMALL = 1024 };
    char small[SMALL];
    size_t size = text_size(sorted, n);
    bool is_cached = size > 0 || n == 0;
    MEM_AUTO char *large = size > SMALL ? (char *)mem_new_array(size, 1) : NULL;
    char *text = large ? large : small;
    struct trigger *t = NULL;
    if (is_cached) {
        put_pairs(text, sorted, n);
        t = (struct trigger *)map_get(cache->triggers, text, size);
    }
    if (t)
        return trigger_ref(t);
    t = trigger_parse(sorted, n, &cache->settings, e); /* sorted: of two faults always the same one is named */
    if (t && is_cached)
        map_put(cache->triggers, text, size, trigger_ref(t));
    return t;
}
