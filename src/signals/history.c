/* Pages over time: counters to growth, series by series, levels to samples, and what the watchdogs remember. As much is
 * kept as the longest window needs; memory depends on how often a page is read, never on what is on it. */
#include "signals/history.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define IDLE_NS    (30 * NS_PER_S) /* that long nothing grew: what the gauges say is left over (case O26) */
#define DEMAND_MAX 200.0           /* a backlog that piled up during a slow start must not order a fleet */

struct signals_history *signals_history_new(void)
{
    return mem_new(struct signals_history);
}

void signals_history_free(struct signals_history *h)
{
    if (!h)
        return;
    signals_page_free(h->page);
    for (size_t i = 0; i < HISTORY_SERVERS_MAX; i++)
        signals_page_free(h->others[i].page);
    free(h->samples);
    free(h);
}

int64_t signals_history_newest_ns(const struct signals_history *h)
{
    return h->page ? h->newest_ns : 0;
}

int64_t signals_history_oldest_ns(const struct signals_history *h)
{
    return h->n > 0 ? history_sample(h, 0)->at_ns : 0;
}

/* ---- several servers behind one address ---- */

static bool is_same_server(const struct signals_page *a, const struct signals_page *b)
{
    return !a->server || !b->server || a->server == b->server;
}

/* What the growth of a page counts from: the page before, or the last of its server; NULL where that was not read
 * lately. A jump from one server's counts to those of another is no growth. Reference B.1 16 */
static const struct signals_page *page_before(const struct signals_history *h, const struct signals_page *page,
                                              int64_t at_ns)
{
    if (is_same_server(h->page, page))
        return h->page;
    for (size_t i = 0; i < HISTORY_SERVERS_MAX; i++)
        if (h->others[i].page && h->others[i].page->server == page->server &&
            at_ns - h->others[i].at_ns <= HISTORY_S * NS_PER_S)
            return h->others[i].page;
    return NULL;
}

/* The newest page makes room for the next. Where that is of another server it is kept, in the place of what is oldest
 * or of either server. */
static void put_aside(struct signals_history *h, const struct signals_page *next)
{
    struct other_server *place = &h->others[0];
    if (!h->page || is_same_server(h->page, next)) {
        signals_page_free(h->page);
        return;
    }
    for (size_t i = 0; i < HISTORY_SERVERS_MAX; i++) {
        struct other_server *o = &h->others[i];
        if (o->page && (o->page->server == next->server || o->page->server == h->page->server)) {
            signals_page_free(o->page);
            *o = (struct other_server){.page = NULL};
        }
        if (place->page && (!o->page || o->at_ns < place->at_ns))
            place = o;
    }
    signals_page_free(place->page);
    *place = (struct other_server){h->page, h->newest_ns};
}

/* ---- growth ---- */

static bool is_before(const struct page_counter *a, const struct page_counter *b)
{
    return a->quantity != b->quantity ? a->quantity < b->quantity : a->key < b->key;
}

/* A counter that fell began anew: it grew by what it is. A series that was not there before says nothing yet (another
 * rank, another server behind the same address), but for those that the user names: what wakes a workload must not miss
 * the first request of a kind. Case O23 */
static double grown_since(const struct page_counter *before, const struct page_counter *c)
{
    if (before)
        return c->value < before->value ? c->value : c->value - before->value;
    return c->quantity == QUANTITY_CUSTOM_COUNTER ? c->value : 0;
}

static void add_growth(const struct signals_page *old, const struct signals_page *fresh, float increase[COUNTER_COUNT])
{
    size_t k = 0;
    for (size_t i = 0; i < fresh->n_counters; i++) {
        const struct page_counter *c = &fresh->counters[i];
        while (k < old->n_counters && is_before(&old->counters[k], c))
            k++;
        bool is_new = k == old->n_counters || is_before(c, &old->counters[k]);
        increase[page_counter_index(c->quantity)] += (float)grown_since(is_new ? NULL : &old->counters[k], c);
    }
}

/* Triton counts requests and the items in them. A page on which only the items move counts them. */
static void count_items(enum dialect dialect, float increase[COUNTER_COUNT])
{
    const float *items = &increase[page_counter_index(QUANTITY_INFERENCES)];
    float *requests = &increase[page_counter_index(QUANTITY_REQUESTS)];
    float *queued = &increase[page_counter_index(QUANTITY_QUEUE_COUNT)];
    if (dialect != DIALECT_TRITON && dialect != DIALECT_TRITON_TRTLLM)
        return;
    if (!(*requests > 0))
        *requests = *items;
    if (!(*queued > 0))
        *queued = *items;
}

static void note_means(struct signals_history *h, const float increase[COUNTER_COUNT])
{
    static const enum quantity sums[] = {QUANTITY_QUEUE_SUM, QUANTITY_TTFT_SUM, QUANTITY_ITL_SUM};
    for (size_t i = 0; i < ARRAY_LEN(sums); i++) {
        size_t sum = page_counter_index(sums[i]);
        if (increase[sum + 1] > 0)
            h->last_mean[sum] = (double)increase[sum] / (double)increase[sum + 1];
    }
}

static void note_growth(struct signals_history *h, const struct signals_page *page, struct sample *s)
{
    bool is_first = !h->page, was_stalled = !is_first && history_is_stalled(h, 0);
    const struct signals_page *before = is_first ? NULL : page_before(h, page, s->at_ns);
    s->is_of_new_server = !before;
    if (before) {
        add_growth(before, page, s->increase);
        count_items(page->dialect, s->increase);
        note_means(h, s->increase);
        if (s->at_ns > h->newest_ns && !was_stalled)
            history_note_minute(h, s->increase, h->newest_ns, s->at_ns);
    }
    if (!before) /* it may have */
        h->moved_ns = s->at_ns;
    for (size_t i = 0; i < COUNTER_COUNT; i++) {
        if (!before || s->increase[i] > 0)
            h->grown_ns[i] = s->at_ns;
        if (s->increase[i] > 0 && i != page_counter_index(QUANTITY_CUSTOM_COUNTER))
            h->moved_ns = s->at_ns;
    }
}

/* ---- levels ---- */

static void set_level(struct sample *s, enum sample_level level, bool is_known, double value)
{
    if (!is_known)
        return;
    s->known |= (uint16_t)(1U << level);
    s->level[level] = s->peak[level] = value;
}

static bool has_counters(const struct signals_page *page)
{
    for (size_t i = 0; i < COUNTER_COUNT; i++)
        if (page->has_counter[i] && i != page_counter_index(QUANTITY_CUSTOM_COUNTER))
            return true;
    return false;
}

/* The share in use, and with waiting requests the demand for it: nothing waits for what is free. */
static void set_kv(const struct signals_history *h, const struct signals_page *page, struct sample *s)
{
    const struct signals_maybe *kv = &page->level[QUANTITY_KV], *waiting = &page->level[QUANTITY_WAITING],
                               *running = &page->level[QUANTITY_RUNNING];
    if (waiting->value > 0 && running->is_known) {
        double demand = 100 * (running->value + waiting->value) / fmax(running->value, 1);
        s->is_demand = !kv->is_known || demand > kv->value;
        set_level(s, SAMPLE_KV, true, fmin(DEMAND_MAX, fmax(kv->value, demand)));
        return;
    }
    s->is_idle_gauge = kv->value > 0 && waiting->is_known && running->is_known && !(running->value > 0) &&
                       has_counters(page) && s->at_ns - h->moved_ns >= IDLE_NS;
    set_level(s, SAMPLE_KV, kv->is_known, s->is_idle_gauge ? 0 : kv->value);
}

static void set_levels(const struct signals_history *h, const struct signals_page *page, struct sample *s)
{
    const struct signals_maybe *waiting = &page->level[QUANTITY_WAITING], *running = &page->level[QUANTITY_RUNNING],
                               *custom = &page->level[QUANTITY_CUSTOM_LEVEL];
    set_level(s, SAMPLE_WAITING, waiting->is_known, waiting->value);
    set_level(s, SAMPLE_RUNNING, running->is_known, running->value);
    set_level(s, SAMPLE_IN_FLIGHT, waiting->is_known || running->is_known, waiting->value + running->value);
    set_level(s, SAMPLE_CUSTOM, custom->is_known, custom->value);
    set_kv(h, page, s);
    s->is_shared = !waiting->is_known || !running->is_known || waiting->value > 0 || running->value > 1;
    s->has_values = page->has_values;
}

/* ---- the ring ---- */

static void grow(struct signals_history *h)
{
    size_t capacity = h->capacity ? h->capacity * 2 : 8;
    struct sample *samples = mem_new_array(capacity, sizeof(*samples));
    for (size_t i = 0; i < h->n; i++)
        samples[i] = *history_sample(h, i);
    free(h->samples);
    h->samples = samples;
    h->first = 0;
    h->capacity = capacity;
}

/* Two means of one level over the times that each held, where both are known. */
static void merge_level(struct sample *into, const struct sample *s, enum sample_level level, double share)
{
    unsigned bit = 1U << level;
    if (!(s->known & bit))
        return;
    if (into->known & bit) {
        into->level[level] += (s->level[level] - into->level[level]) * share;
        into->peak[level] = fmax(into->peak[level], s->peak[level]);
    } else {
        into->level[level] = s->level[level];
        into->peak[level] = s->peak[level];
        into->known |= (uint16_t)bit;
    }
}

/* The newest sample becomes part of the one before, now that it is known how long it held. */
static void merge_newest(struct signals_history *h, struct sample *fresh)
{
    struct sample *s = history_sample(h, h->n - 1), *into = history_sample(h, h->n - 2);
    double whole = (double)(fresh->at_ns - into->at_ns),
           share = whole > 0 ? (double)(fresh->at_ns - s->at_ns) / whole : 1;
    for (int level = 0; level < SAMPLE_LEVELS; level++)
        merge_level(into, s, (enum sample_level)level, share);
    for (size_t i = 0; i < COUNTER_COUNT; i++)
        fresh->increase[i] += s->increase[i];
    into->is_demand |= s->is_demand;
    into->is_idle_gauge |= s->is_idle_gauge;
    into->is_shared |= s->is_shared;
    into->has_values |= s->has_values;
    fresh->is_of_new_server &= s->is_of_new_server;
    h->n--;
}

static void push(struct signals_history *h, struct sample *fresh)
{
    if (h->n >= 2 &&
        history_sample(h, h->n - 1)->at_ns - history_sample(h, h->n - 2)->at_ns < HISTORY_SPACING_S * NS_PER_S)
        merge_newest(h, fresh);
    while (h->n >= 2 && history_sample(h, 1)->at_ns <= fresh->at_ns - HISTORY_S * NS_PER_S) {
        h->first = (h->first + 1) % h->capacity;
        h->n--;
    }
    if (h->n == h->capacity)
        grow(h);
    assert(h->n < HISTORY_SAMPLES_MAX);
    *history_sample(h, h->n++) = *fresh;
}

void signals_history_add(struct signals_history *h, struct signals_page *page, int64_t at_ns)
{
    struct sample s = {.at_ns = at_ns};
    assert(!h->page || at_ns >= h->newest_ns);
    note_growth(h, page, &s);
    set_levels(h, page, &s);
    if (!(page->level[QUANTITY_WAITING].value > 0))
        h->waiting_since_ns = 0;
    else if (!h->waiting_since_ns)
        h->waiting_since_ns = at_ns;
    push(h, &s);
    put_aside(h, page);
    h->page = page;
    h->newest_ns = at_ns;
}
