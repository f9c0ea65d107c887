/* The watchdog: requests wait, and next to nothing is done (cases O27, O33). Growth is remembered by the minute, for
 * the best of the last hour; while a server is stalled it is not, or its standstill would become what it is measured
 * by. */
#include "signals/history.h"

#include <math.h>

#define STALLED_NS (HISTORY_S * NS_PER_S)
/* Of the best minute; the first report had 5.4 of 900 tokens/s. */
#define STALLED_SHARE 0.02

void history_note_minute(struct signals_history *h, const float increase[COUNTER_COUNT], int64_t since_ns,
                         int64_t at_ns)
{
    int64_t number = at_ns / (60 * NS_PER_S) + 1;
    struct minute *m = &h->minutes[number % HISTORY_MINUTES];
    if (m->number != number)
        *m = (struct minute){.number = number};
    double share = fmin(1, 60e9 / (double)(at_ns - since_ns)); /* pages far apart: of more than a minute */
    for (size_t i = 0; i < COUNTER_COUNT; i++)
        m->increase[i] += (float)((double)increase[i] * share);
    h->newest_minute = number;
}

static double best_minute(const struct signals_history *h, enum quantity quantity)
{
    double best = 0;
    for (size_t i = 0; i < HISTORY_MINUTES; i++)
        if (h->minutes[i].number && h->newest_minute - h->minutes[i].number < HISTORY_MINUTES)
            best = fmax(best, (double)h->minutes[i].increase[page_counter_index(quantity)]);
    return best;
}

static bool has_counter(const struct signals_history *h, enum quantity quantity)
{
    return h->page->has_counter[page_counter_index(quantity)];
}

static bool is_standing(const struct signals_history *h, enum quantity quantity)
{
    double grown = 0;
    for (size_t i = 1; i < h->n; i++)
        if (history_sample(h, i)->at_ns > h->newest_ns - STALLED_NS)
            grown += (double)history_sample(h, i)->increase[page_counter_index(quantity)];
    return grown <= 0 || grown / (HISTORY_S / 60.0) < STALLED_SHARE * best_minute(h, quantity);
}

bool history_is_stalled(const struct signals_history *h, int64_t since_ns)
{
    int64_t waiting_ns = h->waiting_since_ns > since_ns ? h->waiting_since_ns : since_ns;
    if (!h->waiting_since_ns || h->newest_ns - waiting_ns < STALLED_NS || !has_counter(h, QUANTITY_PROGRESS))
        return false;
    for (size_t i = 1; i < h->n; i++)
        if (history_sample(h, i)->is_of_new_server)
            return false;
    return is_standing(h, QUANTITY_PROGRESS) &&
           (!has_counter(h, QUANTITY_PROMPT_TOKENS) || is_standing(h, QUANTITY_PROMPT_TOKENS));
}
