/* Pages of engines, any bytes: two pages and how they are cut. Whatever the pieces, the answers are the same; and they
 * are finite, not negative, and shares at most 200. */
#include "base/base.h"
#include "signals/signals.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct signals_page *read_in_pieces(struct signals_reader *r, struct str text, size_t piece, struct err *e)
{
    signals_reader_begin(r);
    for (size_t at = 0; at < text.len; at += piece)
        if (signals_reader_feed(r, text.ptr + at, text.len - at < piece ? text.len - at : piece, e) < 0)
            return NULL;
    return signals_reader_end(r, e);
}

static void check_answers(const struct signals_history *a, const struct signals_history *b, int64_t now_ns)
{
    for (int signal = 0; signal < SIGNALS_COUNT; signal++) {
        struct signals_question q = {.signal = (enum signals_id)signal,
                                     .now_ns = now_ns,
                                     .window_ns = 15 * NS_PER_S,
                                     .activation_window_ns = 60 * NS_PER_S};
        struct signals_answer x, y;
        signals_read(a, &q, &x);
        signals_read(b, &q, &y);
        assert(x.reading == y.reading && !(x.value < y.value) && !(x.value > y.value));
        assert(isfinite(x.value) && x.value >= 0 && isfinite(x.weight) && x.weight >= 0);
        assert(isfinite(x.peak.value) && x.peak.value >= 0 && x.missing);
        assert(signals_kind_of((enum signals_id)signal) != SIGNALS_RATIO || x.value <= 200);
        assert(strcmp(x.missing, y.missing) == 0 && strcmp(x.model, y.model) == 0);
    }
}

/* The first byte says how the pages are cut, the second whether a metric is named; a NUL byte ends the first page. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct str rest = {(const char *)data + 2, size - 2};
    struct signals_reader *r = signals_reader_new(data[1] & 1 ? "my_queue" : NULL);
    struct signals_history *whole = signals_history_new(), *cut = signals_history_new();
    for (int i = 0; i < 2 && rest.ptr; i++) {
        struct str text = str_cut(&rest, '\0');
        struct err e = {.class = ERR_NONE}, f = {.class = ERR_NONE};
        struct signals_page *a = read_in_pieces(r, text, text.len + 1, &e);
        struct signals_page *b = read_in_pieces(r, text, (size_t)data[0] + 1, &f);
        assert(!a == !b && e.class == f.class && strcmp(a ? "" : e.text, b ? "" : f.text) == 0);
        if (!a)
            continue;
        assert(signals_page_engine(a) == signals_page_engine(b));
        signals_history_add(whole, a, (i + 1) * 5 * NS_PER_S);
        signals_history_add(cut, b, (i + 1) * 5 * NS_PER_S);
        check_answers(whole, cut, (i + 1) * 5 * NS_PER_S);
    }
    check_answers(whole, cut, 400 * NS_PER_S);
    signals_history_free(whole);
    signals_history_free(cut);
    signals_reader_free(r);
    return 0;
}
