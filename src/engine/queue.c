/* Whose turn it is: at most one fetch of a host, at most so many of all, and of those at most half for pages whose last
 * fetch hung, and for endpoints that were not read. So pods that hang cost each other's time and nobody else's, and
 * whoever names one address after the other takes no pod its turn. */
#include "engine/private.h"

static void push(struct engine_queue *queue, struct engine_page *page, bool is_first)
{
    page->next = is_first ? queue->first : NULL;
    page->prev = is_first ? NULL : queue->last;
    *(page->next ? &page->next->prev : &queue->last) = page;
    *(page->prev ? &page->prev->next : &queue->first) = page;
}

static void unlink_page(struct engine_queue *queue, struct engine_page *page)
{
    *(page->next ? &page->next->prev : &queue->last) = page->prev;
    *(page->prev ? &page->prev->next : &queue->first) = page->next;
    page->next = page->prev = NULL;
}

static void make_ready(struct engine_page *page, bool is_urgent)
{
    page->turn = ENGINE_READY;
    push(&page->engine->ready[page->is_suspect], page, is_urgent);
}

static bool may_start(const struct engine *e, bool is_suspect)
{
    size_t most = is_suspect ? (e->max_at_once + 1) / 2 : e->max_at_once;
    return e->ready[is_suspect].first && e->n_in_air[0] + e->n_in_air[1] < e->max_at_once &&
           e->n_in_air[is_suspect] < most;
}

static void start_those_that_may(struct engine *e)
{
    while (may_start(e, true) || may_start(e, false)) {
        bool is_suspect = may_start(e, true);
        struct engine_page *page = e->ready[is_suspect].first;
        unlink_page(&e->ready[is_suspect], page);
        page->turn = ENGINE_IN_AIR;
        page->is_suspect_in_air = is_suspect;
        e->n_in_air[is_suspect]++;
        engine_fetch_start(page);
    }
}

void engine_queue_add(struct engine_page *page, bool is_urgent)
{
    if (page->turn != ENGINE_IDLE)
        return;
    if (page->host->is_busy) {
        page->turn = ENGINE_WAITING;
        push(&page->host->waiting, page, is_urgent);
        return;
    }
    page->host->is_busy = true;
    make_ready(page, is_urgent);
    start_those_that_may(page->engine);
}

/* The host is free for the next of its pages. */
static void pass_on(struct engine_host *host)
{
    struct engine_page *next = host->waiting.first;
    host->is_busy = next != NULL;
    if (!next)
        return;
    unlink_page(&host->waiting, next);
    make_ready(next, next->waiting.first != NULL);
}

void engine_queue_release(struct engine_page *page)
{
    struct engine *e = page->engine;
    e->n_in_air[page->is_suspect_in_air]--;
    page->turn = ENGINE_IDLE;
    pass_on(page->host);
    start_those_that_may(e);
}

void engine_queue_remove(struct engine_page *page)
{
    enum engine_turn turn = page->turn;
    page->turn = ENGINE_IDLE;
    switch (turn) {
    case ENGINE_IDLE:
        break;
    case ENGINE_WAITING:
        unlink_page(&page->host->waiting, page);
        break;
    case ENGINE_READY:
        unlink_page(&page->engine->ready[page->is_suspect], page);
        pass_on(page->host);
        start_those_that_may(page->engine);
        break;
    case ENGINE_IN_AIR:
        engine_fetch_cancel(page);
        engine_queue_release(page);
        break;
    }
}
