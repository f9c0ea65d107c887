/* Shared by the tests of signals: pages from text or from test/pages, a history of them, and questions about it. */
#ifndef TEST_SIGNALS_PAGES_H
#define TEST_SIGNALS_PAGES_H

#include "signals/signals.h"

#include <stdlib.h>
#include <string.h>

#include "support.h"

#define AT(seconds) ((int64_t)((seconds)*1e9) + NS_PER_S * 1000000)

static inline struct signals_page *read_page_in(const char *text, size_t len, size_t piece, const char *metric,
                                                struct err *e)
{
    struct signals_reader *r = signals_reader_new(metric);
    struct signals_page *page = NULL;
    int result = 0;
    signals_reader_begin(r);
    for (size_t at = 0; at < len && result == 0; at += piece) {
        /* A copy of its own: reading past a piece is found. */
        size_t n = len - at < piece ? len - at : piece;
        char *copy = mem_strndup(text + at, n);
        result = signals_reader_feed(r, copy, n, e);
        free(copy);
    }
    if (result == 0)
        page = signals_reader_end(r, e);
    signals_reader_free(r);
    return page;
}

static inline struct signals_page *read_page(const char *text, const char *metric)
{
    struct err e;
    struct signals_page *page = read_page_in(text, strlen(text), strlen(text) + 1, metric, &e);
    if (!page)
        fail_msg("%s", e.text);
    return page;
}

static inline void add_page(struct signals_history *h, const char *text, double at_s)
{
    signals_history_add(h, read_page(text, NULL), AT(at_s));
}

/* A history of one page at 0 s. */
static inline struct signals_history *history_of(const char *text)
{
    struct signals_history *h = signals_history_new();
    add_page(h, text, 0);
    return h;
}

static inline struct signals_answer ask(const struct signals_history *h, enum signals_id signal, double now_s,
                                        double window_s)
{
    struct signals_question q = {.signal = signal,
                                 .now_ns = AT(now_s),
                                 .window_ns = (int64_t)(window_s * 1e9),
                                 .activation_window_ns = 60 * NS_PER_S};
    struct signals_answer a;
    signals_read(h, &q, &a);
    return a;
}

/* The value of one page alone; fails where it is not there. */
static inline double value_of(const char *text, enum signals_id signal)
{
    struct signals_history *h = history_of(text);
    struct signals_answer a = ask(h, signal, 0, 0);
    signals_history_free(h);
    if (a.reading != SIGNALS_READ_OK)
        fail_msg("%s is %s", signals_name(signal), signals_reading_name(a.reading));
    return a.value;
}

static inline enum signals_reading reading_of(const char *text, enum signals_id signal)
{
    struct signals_history *h = history_of(text);
    enum signals_reading reading = ask(h, signal, 0, 0).reading;
    signals_history_free(h);
    return reading;
}

/* Why it is no page; fails where it is one. */
static inline struct err fault_of(const char *text, const char *metric)
{
    struct err e = {.class = ERR_NONE};
    struct signals_page *page = read_page_in(text, strlen(text), strlen(text) + 1, metric, &e);
    assert_null(page);
    return e;
}

#endif
