/* From the series of a page to one number a quantity: which of the names counts, what ranks, models and servers make of
 * each other, and which values are none. */
#include "signals/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of a share that is written as one: above it is another unit, which nobody can tell. */
#define SHARE_MAX 1.05

struct making {
    struct signals_page *page;
    const struct page_series *series;
    size_t n;
    bool is_known[QUANTITY_COUNT];
};

static int by_sink_and_key(const void *a, const void *b)
{
    const struct page_series *x = a, *y = b;
    if (x->sink != y->sink)
        return x->sink < y->sink ? -1 : 1;
    return x->key == y->key ? 0 : x->key < y->key ? -1 : 1;
}

/* Series of one key say the same of the same: the largest counts. Returns how many are left. */
static size_t put_in_order(struct page_series *series, size_t n)
{
    size_t kept = 0;
    if (n)
        qsort(series, n, sizeof(*series), by_sink_and_key);
    for (size_t i = 0; i < n; i++)
        if (kept && by_sink_and_key(&series[kept - 1], &series[i]) == 0)
            series[kept - 1].value = fmax(series[kept - 1].value, series[i].value);
        else
            series[kept++] = series[i];
    return kept;
}

static const struct page_series *find_sink(const struct making *m, unsigned sink, size_t *ret_n)
{
    size_t low = 0, high = m->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->series[middle].sink < sink)
            low = middle + 1;
        else
            high = middle;
    }
    for (high = low; high < m->n && m->series[high].sink == sink;)
        high++;
    *ret_n = high - low;
    return m->n ? &m->series[low] : NULL;
}

/* Levels add up; of shares the largest counts: the fullest server is the one that makes requests wait. Case O29 */
static void take_level(struct making *m, enum quantity quantity, unsigned sink)
{
    size_t n;
    const struct page_series *s = find_sink(m, sink, &n);
    double value = 0;
    for (size_t i = 0; i < n; i++)
        value = quantity == QUANTITY_KV ? fmax(value, s[i].value) : value + s[i].value;
    m->is_known[quantity] = n > 0;
    m->page->level[quantity] = (struct signals_maybe){n > 0, value};
    m->page->has_values |= value > 0 && quantity != QUANTITY_KV_MAX; /* room is no use of it */
}

static void take_counter(struct making *m, enum quantity quantity, unsigned sink, double scale)
{
    size_t n;
    const struct page_series *s = find_sink(m, sink, &n);
    struct signals_page *page = m->page;
    for (size_t i = 0; i < n; i++) {
        uint64_t key = s[i].key ^ (0x9e3779b97f4a7c15ULL * (sink + 1)); /* another name is another counter */
        page->counters[page->n_counters++] = (struct page_counter){quantity, key, s[i].value * scale};
        page->total[page_counter_index(quantity)] += s[i].value * scale;
        page->has_values |= s[i].value > 0;
    }
    m->is_known[quantity] = n > 0;
    page->has_counter[page_counter_index(quantity)] = n > 0;
}

static bool has_sink(const struct making *m, unsigned sink)
{
    size_t n;
    (void)find_sink(m, sink, &n);
    return n > 0;
}

static void take_row(struct making *m, size_t row)
{
    const struct alias *a = &aliases[row];
    unsigned sink = (unsigned)row * ALIAS_PARTS;
    switch (a->kind) {
    case ALIAS_LEVEL:
        take_level(m, a->quantity, sink);
        break;
    case ALIAS_COUNTER:
        take_counter(m, a->quantity, sink + !has_sink(m, sink), a->scale);
        break;
    case ALIAS_HISTOGRAM:
    case ALIAS_PAIR:
        if (has_sink(m, sink) && has_sink(m, sink + 1)) {
            take_counter(m, a->quantity, sink, a->scale);
            take_counter(m, a->quantity + 1, sink + 1, 1);
        }
        break;
    }
}

/* As many as could be needed: a series is taken at most once for each row that names it. */
static struct signals_page *allocate(size_t n)
{
    return mem_new_array(1, sizeof(struct signals_page) + n * sizeof(struct page_counter));
}

static void take_custom(struct making *m, bool is_counter)
{
    unsigned exact = (unsigned)aliases_len * ALIAS_PARTS, total = exact + 1;
    bool is_total = !has_sink(m, exact) && has_sink(m, total);
    if (is_counter || is_total)
        take_counter(m, QUANTITY_CUSTOM_COUNTER, is_total ? total : exact, 1);
    else
        take_level(m, QUANTITY_CUSTOM_LEVEL, exact);
}

static void make_kv_percent(struct signals_page *page)
{
    struct signals_maybe *kv = &page->level[QUANTITY_KV];
    const struct signals_maybe *used = &page->level[QUANTITY_KV_USED], *max = &page->level[QUANTITY_KV_MAX];
    if (kv->is_known && kv->value > SHARE_MAX)
        *kv = (struct signals_maybe){false, 0};
    if (!kv->is_known && used->is_known && max->is_known && max->value > 0)
        *kv = (struct signals_maybe){true, used->value / max->value};
    kv->value = fmin(kv->value * 100, 100);
}

static int by_quantity_and_key(const void *a, const void *b)
{
    const struct page_counter *x = a, *y = b;
    if (x->quantity != y->quantity)
        return x->quantity < y->quantity ? -1 : 1;
    return x->key == y->key ? 0 : x->key < y->key ? -1 : 1;
}

struct signals_page *page_new(enum dialect dialect, struct page_series *series, size_t n, bool is_counter)
{
    struct making m = {.page = allocate(n), .series = series, .n = put_in_order(series, n)};
    m.page->dialect = dialect;
    for (size_t i = 0; i < aliases_len; i++)
        if (dialect < DIALECT_COUNT && !m.is_known[aliases[i].quantity] &&
            (aliases[i].dialect == dialect || (aliases[i].also & (1U << dialect))))
            take_row(&m, i);
    take_custom(&m, is_counter);
    make_kv_percent(m.page);
    if (m.page->n_counters)
        qsort(m.page->counters, m.page->n_counters, sizeof(m.page->counters[0]), by_quantity_and_key);
    return m.page;
}

void signals_page_free(struct signals_page *page)
{
    if (page)
        free(page->missing);
    free(page);
}

enum signals_engine signals_page_engine(const struct signals_page *page)
{
    return dialect_engine(page->dialect);
}
