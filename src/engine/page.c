/* Pages: who wants each how often, when it is fetched, when nobody wants it any more, and how it stands. */
#include "engine/private.h"

#include <stdio.h>
#include <string.h>

enum { KEY_MAX = 2 * ENGINE_URL_MAX };

/* FNV-1a: only to spread pages in time. */
static uint64_t hash_of(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325ULL;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3ULL;
    return hash ^ hash >> 32;
}

/* "http://10.0.0.7:8000/metrics" -> "10.0.0.7:8000" */
static void host_of(const char *url, char ret[ENGINE_URL_MAX])
{
    const char *colon = strstr(url, "://"), *host = colon ? colon + 3 : url;
    (void)str_copy(ret, ENGINE_URL_MAX, (struct str){host, strcspn(host, "/?#")});
    str_lower(ret);
}

/* The URL, a NUL, the metric. */
static size_t key_of(const struct engine_want *want, char ret[KEY_MAX])
{
    size_t url = strlen(want->url), metric = strlen(want->metric);
    if (url >= ENGINE_URL_MAX || metric >= KEY_MAX - ENGINE_URL_MAX)
        return 0;
    memcpy(ret, want->url, url + 1);
    memcpy(ret + url + 1, want->metric, metric);
    return url + 1 + metric;
}

static void join_host(struct engine_page *page)
{
    struct map *hosts = page->engine->hosts;
    char key[ENGINE_URL_MAX];
    host_of(page->url, key);
    page->host_key = mem_strdup(key);
    size_t len = strlen(key);
    page->host = (struct engine_host *)map_get(hosts, page->host_key, len);
    if (!page->host) {
        page->host = mem_new(struct engine_host);
        map_put(hosts, page->host_key, len, page->host);
    }
    page->host->n_pages++;
}

static void set_stand(struct engine_page *page, enum engine_stand stand)
{
    metric_add(page->engine->stands[page->stand], -1);
    metric_add(page->engine->stands[stand], 1);
    page->stand = stand;
}

static void due(void *context)
{
    struct engine_page *page = (struct engine_page *)context;
    engine_queue_add(page, false);
}

static struct engine_page *page_new(struct engine *e, const struct engine_want *want)
{
    struct engine_page *page = mem_new(struct engine_page);
    page->engine = e;
    page->url = mem_strdup(want->url);
    page->metric = mem_strdup(want->metric);
    page->is_endpoint = page->is_suspect = want->is_endpoint;
    page->hash = hash_of(want->url);
    page->history = signals_history_new();
    page->timer = net_timer_new(e->loop, due, page);
    page->since_ns = net_now_ns(e->loop);
    page->error = mem_strdup("");
    page->feed = (struct signals_feed){.url = page->url, .history = page->history, .error = page->error};
    metric_add(e->stands[ENGINE_UNREAD], 1);
    join_host(page);
    return page;
}

void engine_page_free(void *value)
{
    struct engine_page *page = (struct engine_page *)value;
    struct engine *e = page->engine;
    engine_queue_remove(page);
    engine_asks_finish(e, &page->waiting);
    engine_asks_finish(e, &page->begun);
    if (--page->host->n_pages == 0)
        map_remove(e->hosts, page->host_key, strlen(page->host_key));
    metric_add(e->stands[page->stand], -1);
    net_timer_free(page->timer);
    signals_history_free(page->history);
    free(page->host_key);
    free(page->error);
    free(page->metric);
    free(page->url);
    free(page);
}

struct engine_page *engine_page_get(struct engine *e, const struct engine_want *want)
{
    char key[KEY_MAX];
    size_t len = key_of(want, key);
    struct map *pages = e->pages[want->is_endpoint];
    struct engine_page *page = len > 0 ? (struct engine_page *)map_get(pages, key, len) : NULL;
    if (!page && len > 0) {
        size_t most = e->max_pages[want->is_endpoint];
        if (map_len(pages) >= most)
            engine_page_sweep(e);
        if (map_len(pages) >= most)
            return NULL;
        page = page_new(e, want);
        map_put(pages, key, len, page);
    }
    if (page)
        page->asked_ns = net_now_ns(e->loop);
    return page;
}

/* ---- time ---- */

static int64_t keep_ns(const struct engine_page *page)
{
    return page->is_endpoint ? ENGINE_KEEP_NAMED_NS : ENGINE_KEEP_NS;
}

void engine_page_sweep(struct engine *e)
{
    int64_t now = net_now_ns(e->loop);
    for (size_t i = 0; i < ARRAY_LEN(e->pages); i++) {
        const struct engine_page *oldest;
        while ((oldest = (const struct engine_page *)map_oldest(e->pages[i])) != NULL &&
               now - oldest->asked_ns > keep_ns(oldest) + e->timeout_ns) {
            char key[KEY_MAX];
            size_t len = key_of(&(struct engine_want){.url = oldest->url, .metric = oldest->metric}, key);
            map_remove(e->pages[i], key, len);
        }
    }
}

static int64_t least_interval(const struct engine_page *page)
{
    int64_t before = page->interval_before_ns, now = page->interval_ns;
    return before && before < now ? before : now;
}

/* The page is in time with the others of its interval, at a place of its own. The first fetch comes within a second. */
void engine_page_schedule(struct engine_page *page)
{
    int64_t now = net_now_ns(page->engine->loop), interval = least_interval(page);
    int64_t pause = page->is_too_large ? ENGINE_TOO_LARGE_NS : interval;
    if (!page->polled_ns || now - page->polled_ns > keep_ns(page)) {
        net_timer_stop(page->timer);
        page->polled_ns = 0;
        return;
    }
    page->feed.interval_ns = interval;
    if (!page->began_ns) {
        net_timer_start(page->timer, (int64_t)(page->hash % (uint64_t)ENGINE_MIN_NS), 0);
        return;
    }
    int64_t from = page->began_ns + pause / 2;
    from = from > now ? from : now + 1;
    int64_t place = (int64_t)(page->hash % (uint64_t)pause);
    int64_t at = from + (pause - (from - place) % pause) % pause;
    net_timer_start(page->timer, at - now, 0);
}

/* Whoever asked for the least may have gone: what was asked for in the time before counts for as long again. */
static bool note_interval(struct engine_page *page, int64_t want_ns)
{
    int64_t now = net_now_ns(page->engine->loop), before = least_interval(page), age = now - page->since_ns;
    want_ns = want_ns > ENGINE_MIN_NS ? want_ns : ENGINE_MIN_NS;
    if (age > keep_ns(page)) {
        page->interval_before_ns = age > 2 * keep_ns(page) ? 0 : page->interval_ns;
        page->interval_ns = want_ns;
        page->since_ns = now;
    } else if (!page->interval_ns || want_ns < page->interval_ns) {
        page->interval_ns = want_ns;
    }
    return least_interval(page) != before;
}

const struct signals_feed *engine_page(struct engine *e, const struct engine_want *want)
{
    struct engine_page *page = engine_page_get(e, want);
    if (!page)
        return NULL;
    bool is_new = !page->polled_ns, has_changed = note_interval(page, want->interval_ns);
    page->polled_ns = net_now_ns(e->loop);
    if ((is_new || has_changed) && page->turn == ENGINE_IDLE)
        engine_page_schedule(page);
    return &page->feed;
}

int64_t engine_interval_ns(int64_t window_ns, int64_t activation_window_ns)
{
    bool has_shorter = activation_window_ns > 0 && (window_ns <= 0 || activation_window_ns < window_ns);
    int64_t third = (has_shorter ? activation_window_ns : window_ns) / 3;
    if (third > 5 * NS_PER_S)
        return 5 * NS_PER_S;
    return third > ENGINE_MIN_NS ? third : ENGINE_MIN_NS;
}

/* ---- how it stands ---- */

void engine_page_set_error(struct engine_page *page, const char *error)
{
    free(page->error);
    page->error = mem_strdup(error);
    page->feed.error = page->error;
}

void engine_page_tell(struct engine_page *page, enum engine_outcome outcome, const char *error)
{
    struct engine *e = page->engine;
    int64_t now = net_now_ns(e->loop);
    metric_add(e->outcomes[outcome], 1);
    metric_observe(e->seconds, (double)(now - page->began_ns) / (double)NS_PER_S);
    engine_page_set_error(page, error);
    page->feed.last_try_ns = now;
    if (outcome == ENGINE_OK)
        page->feed.last_good_ns = now;
    set_stand(page, outcome == ENGINE_OK ? ENGINE_READ : ENGINE_FAILING);
    page->is_too_large = outcome == ENGINE_TOO_LARGE;
    page->is_suspect = outcome == ENGINE_TIMEOUT || (page->is_endpoint && outcome != ENGINE_OK);
}
