/* What is kept of one page, between the reader that makes it and the history that holds it. */
#ifndef SIGNALS_PAGE_H
#define SIGNALS_PAGE_H

#include "signals/aliases.h"

/* One series of a counter: what it was, so that the next page tells by how much it grew. */
struct page_counter {
    enum quantity quantity;
    uint64_t key; /* hash of its row and of the labels that count */
    double value;
};
struct signals_page {
    enum dialect dialect;
    uint64_t server; /* hash of what tells servers behind one address apart (start of the process, GPUs); 0 not known */
    struct signals_maybe level[QUANTITY_LEVELS]; /* shares as percent */
    bool has_counter[COUNTER_COUNT];
    double total[COUNTER_COUNT]; /* over its series, in the signal's unit */
    bool has_values;             /* anything but zeros */
    char model[64];              /* whose series has most waiting requests, where there are several; "" */
    char *missing;               /* the user's metric and what is there instead; NULL none is named, or it is there */
    size_t n_counters;
    struct page_counter counters[]; /* by quantity and key */
};

/* One series as it was read: part `sink % ALIAS_PARTS` of row `sink / ALIAS_PARTS`, the rows of the user's metric after
 * those of the table. */
struct page_series {
    unsigned sink;
    uint64_t key;
    double value;
};
/* Makes a page of what was read; series is put in order. is_counter: of the user's metric. */
struct signals_page *page_new(enum dialect dialect, struct page_series *series, size_t n, bool is_counter);

static inline size_t page_counter_index(enum quantity quantity)
{
    return (size_t)quantity - (size_t)QUANTITY_LEVELS;
}

#endif
