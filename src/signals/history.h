/* How pages are kept over time; history.c adds them, stall.c watches over them, read.c answers from them. */
#ifndef SIGNALS_HISTORY_H
#define SIGNALS_HISTORY_H

#include "signals/page.h"

/* What a page says at its moment, per page as pods make a value of it. */
enum sample_level { SAMPLE_WAITING, SAMPLE_RUNNING, SAMPLE_IN_FLIGHT, SAMPLE_KV, SAMPLE_CUSTOM, SAMPLE_LEVELS };

/* One page; pages that came within a second of each other are one sample, its levels their mean and their largest. */
struct sample {
    int64_t at_ns; /* of the first of its pages */
    double level[SAMPLE_LEVELS], peak[SAMPLE_LEVELS];
    float increase[COUNTER_COUNT]; /* of each counter since the sample before */
    uint16_t known;                /* bits of sample_level */
    bool is_demand;                /* SAMPLE_KV is more than the share in use: requests waited */
    bool is_idle_gauge;            /* SAMPLE_KV is 0 although the page says otherwise */
    bool is_shared;                /* more than one request, or who knows */
    bool has_values;               /* anything but zeros */
    bool is_of_new_server;         /* growth is not known: a server that was not read lately */
};

enum {
    HISTORY_S = 300,       /* the longest window, and what the watchdog looks at */
    HISTORY_SPACING_S = 1, /* between two samples */
    HISTORY_SAMPLES_MAX = HISTORY_S / HISTORY_SPACING_S + 4,
    HISTORY_MINUTES = 60, /* whose best rate is remembered */
    HISTORY_SERVERS_MAX = 16,
};
/* Growth of counters in one minute, for the best of the last hour. */
struct minute {
    int64_t number; /* since the clock's zero, from 1; 0 none */
    float increase[COUNTER_COUNT];
};

/* The last page of a server that shares the address (a Service) with the newest page's. */
struct other_server {
    struct signals_page *page;
    int64_t at_ns;
};

struct signals_history {
    struct signals_page *page;                       /* the newest; NULL none yet */
    struct other_server others[HISTORY_SERVERS_MAX]; /* page NULL: none */
    int64_t newest_ns;
    struct sample *samples; /* a ring, oldest first from `first` on */
    size_t first, n, capacity;
    int64_t moved_ns;                /* when a counter last grew; at first when the first page was read */
    int64_t grown_ns[COUNTER_COUNT]; /* the same of each counter */
    double last_mean[COUNTER_COUNT]; /* by the counter of a sum: the mean when the count last grew */
    int64_t waiting_since_ns;        /* since when each page has had waiting requests; 0 the newest has none */
    int64_t newest_minute;           /* number of the last that was noted */
    struct minute minutes[HISTORY_MINUTES];
};

static inline struct sample *history_sample(const struct signals_history *h, size_t i)
{
    return &h->samples[(h->first + i) % h->capacity];
}

/* Growth from one page to the next, into its minute. */
void history_note_minute(struct signals_history *h, const float increase[COUNTER_COUNT], int64_t since_ns,
                         int64_t at_ns);
/* Have requests waited on each page of five minutes from since_ns on, while neither what moves as requests are computed
 * nor prompt tokens (a server that only prefills is alive) grew by 2 % of their best minute? Where nothing on the page
 * moves while requests are computed, nobody can tell: no. */
bool history_is_stalled(const struct signals_history *h, int64_t since_ns);

#endif
