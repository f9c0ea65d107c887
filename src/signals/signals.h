/* signals: what the metrics page of an inference engine says, under names that are the same for every engine. It reads
 * a page as it comes, finds out which engine wrote it, adds ranks, models and servers up or takes the worst of them,
 * and keeps enough pages to answer for a window of time. Pure: no clock, no I/O; times come in. Facts of engines are
 * one table (aliases.c); rules are docs/internals/signals.md. */
#ifndef SIGNALS_SIGNALS_H
#define SIGNALS_SIGNALS_H

#include "base/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a signal of one page comes about, and what pods make of it together. */
enum signals_kind {
    SIGNALS_LEVEL,   /* a gauge, time-weighted mean over the window; adds up over pods */
    SIGNALS_RATE,    /* increase of a counter a second over the window; adds up over pods */
    SIGNALS_RATIO,   /* 0-100, time-weighted mean over the window; mean over pods */
    SIGNALS_LATENCY, /* ms: increase of a sum by increase of a count; mean over pods, weighted by requests */
};

/* X(id, name, unit, kind, what it is). Change procedure: names are public API (trigger metric types); a new row needs
 * its aliases in aliases.c, a recorded page and a line in docs/engines.md. */
#define SIGNALS(X)                                                                                                     \
    X(REQUESTS_WAITING, "requests_waiting", "requests", LEVEL, "requests that wait for a place in a batch")            \
    X(REQUESTS_RUNNING, "requests_running", "requests", LEVEL, "requests that are computed")                           \
    X(REQUESTS_IN_FLIGHT, "requests_in_flight", "requests", LEVEL, "running and waiting requests")                     \
    X(KV_CACHE_USAGE, "kv_cache_usage", "%", RATIO, "use of the KV cache; with waiting requests the demand for it")    \
    X(TOKENS_WAITING, "tokens_waiting", "tokens", LEVEL, "prompt tokens of waiting requests")                          \
    X(TOKENS_PER_SECOND, "tokens_per_second", "tokens/s", RATE, "generated tokens")                                    \
    X(QUEUE_WAIT_MS, "queue_wait_ms", "ms", LATENCY, "time in the queue of a request")                                 \
    X(TIME_TO_FIRST_TOKEN_MS, "time_to_first_token_ms", "ms", LATENCY, "time to the first token of a request")         \
    X(INTER_TOKEN_LATENCY_MS, "inter_token_latency_ms", "ms", LATENCY, "time between two tokens of a request")         \
    X(REQUEST_RATE, "request_rate", "requests/s", RATE, "requests that ended")                                         \
    X(CUSTOM, "engine_metric", "", LEVEL, "the metric that engineMetric names; a counter as its rate a second")

enum signals_id {
#define X(id, name, unit, kind, what) SIGNALS_##id,
    SIGNALS(X)
#undef X
        SIGNALS_COUNT
};
const char *signals_name(enum signals_id id);
const char *signals_unit(enum signals_id id);
const char *signals_sentence(enum signals_id id); /* what it is */
enum signals_kind signals_kind_of(enum signals_id id);

/* X(id, name, usual port, usual path). */
#define SIGNALS_ENGINES(X)                                                                                             \
    X(UNKNOWN, "unknown", 8000, "/metrics")                                                                            \
    X(VLLM, "vLLM", 8000, "/metrics")                                                                                  \
    X(SGLANG, "SGLang", 30000, "/metrics")                                                                             \
    X(TGI, "TGI", 80, "/metrics")                                                                                      \
    X(TRTLLM, "TensorRT-LLM", 8000, "/prometheus/metrics")                                                             \
    X(TRITON, "Triton", 8002, "/metrics") /* with the TensorRT-LLM backend too */                                      \
    X(LLAMA_CPP, "llama.cpp", 8080, "/metrics")                                                                        \
    X(RAY_SERVE, "Ray Serve", 8080, "/metrics")
enum signals_engine {
#define X(id, name, port, path) SIGNALS_ENGINE_##id,
    SIGNALS_ENGINES(X)
#undef X
        SIGNALS_ENGINE_COUNT
};
const char *signals_engine_name(enum signals_engine engine);
uint16_t signals_engine_port(enum signals_engine engine);
const char *signals_engine_path(enum signals_engine engine);

struct signals_maybe {
    bool is_known;
    double value; /* 0 where it is not known */
};

/* ---- a page ---- */

/* What a page may have: more is refused, with the number. Lines and series beyond the last two are passed over where
 * nothing in them is wanted. */
enum {
    SIGNALS_PAGE_BYTES_MAX = 16 << 20,
    SIGNALS_LINES_MAX = 400000,
    SIGNALS_LINE_MAX = 64 << 10,
    SIGNALS_SERIES_MAX = 4096
};

/* Reads one page after another as their bytes come, in pieces of any size; allocates nothing for a line. */
struct signals_reader;
/* `metric`: a name that the user gave (SIGNALS_CUSTOM), with or without a suffix; NULL none. Copied. */
struct signals_reader *signals_reader_new(const char *metric);
void signals_reader_free(struct signals_reader *r); /* accepts NULL */
/* A new page begins; what was read before is forgotten. */
void signals_reader_begin(struct signals_reader *r);
/* -1 and RESOURCE_EXHAUSTED beyond the ceilings above. */
int signals_reader_feed(struct signals_reader *r, const char *bytes, size_t len, struct err *e);

/* What one page says at one moment; ratios are percent. Counters are kept by series inside. */
struct signals_page;
/* The whole page was fed. NULL and INVALID_ARGUMENT where it is no exposition page (HTML, JSON, binary), and
 * NOT_FOUND where no rule fits: the sentence names what was looked for and some of the names that are there. An empty
 * page is NOT_FOUND too. With a metric that the user gave every other page is one: where it is not there,
 * SIGNALS_CUSTOM is ABSENT. The page is the caller's. */
struct signals_page *signals_reader_end(struct signals_reader *r, struct err *e);
void signals_page_free(struct signals_page *page); /* accepts NULL */
enum signals_engine signals_page_engine(const struct signals_page *page);

/* ---- pages over time ---- */

/* The pages of one server, newest last: as many as any window (300 s) and the watchdogs need, about 10 kB. */
struct signals_history;
struct signals_history *signals_history_new(void);
void signals_history_free(struct signals_history *h); /* accepts NULL */
/* A page was read at `at_ns` (monotonic; not before the last one). Takes the page. A counter that fell began anew. */
void signals_history_add(struct signals_history *h, struct signals_page *page, int64_t at_ns);

/* X(id, name, sentence) */
#define SIGNALS_READINGS(X)                                                                                            \
    X(OK, "read", "read")                                                                                              \
    X(NEVER, "never", "its page was never read")                                                                       \
    X(NOT_YET, "not_yet", "a rate needs two pages, and one was read")                                                  \
    X(STALE, "stale", "its page was last read too long ago")                                                           \
    X(ABSENT, "absent", "its page does not have this signal")
enum signals_reading {
#define X(id, name, sentence) SIGNALS_READ_##id,
    SIGNALS_READINGS(X)
#undef X
        SIGNALS_READING_COUNT
};
const char *signals_reading_name(enum signals_reading reading);
const char *signals_reading_sentence(enum signals_reading reading);

struct signals_question {
    enum signals_id signal;
    int64_t now_ns;
    int64_t window_ns;            /* 0: the newest page */
    int64_t activation_window_ns; /* of the peaks */
    int64_t since_ns;             /* pages before it do not count (the pod was another, or not Ready); 0 all do */
    int64_t max_age_ns;           /* of the newest page, beyond which it is STALE */
};
struct signals_answer {
    enum signals_reading reading;
    double value;              /* over the window, where OK */
    double weight;             /* latencies: how many requests it is the mean of; 0 none: then value is 0. Else 1 */
    struct signals_maybe peak; /* the largest of one page (of a rate: between two) in activationWindow */
    struct signals_maybe in_flight; /* the most requests running or waiting in activationWindow */
    double age_s;                   /* of the newest page; < 0 never */
    enum signals_engine engine;
    /* for people, of the newest page: */
    struct signals_maybe waiting, running, kv_percent;
    /* what a rule made of it */
    bool is_demand;      /* kv_cache_usage: requests waited, so it is more than the share in use */
    bool is_idle_gauge;  /* the share in use was left over: nothing runs, waits or is generated. It counts as 0 */
    bool is_stalled;     /* requests wait, and for five minutes next to nothing was done: value is 0 (cases O27, O33) */
    bool is_uncontended; /* latency of requests that had the server to themselves: more replicas do not help */
    bool is_only_zeros;  /* since since_ns no page showed anything but zeros */
    bool is_counter;     /* SIGNALS_CUSTOM: the metric is a counter, and value its rate */
    double span_s;       /* of a rate or latency: the time between the two pages that it is taken from; else 0 */
    const char *missing; /* ABSENT: the names that were looked for, "a, b or c", of SIGNALS_CUSTOM with what is on the
                          * page instead; valid until the history gets its next page. Else "" */
    char model[64];      /* whose series has most waiting requests, where there are several; "" */
};
void signals_read(const struct signals_history *h, const struct signals_question *q, struct signals_answer *ret);
/* When the newest page was read, and the oldest of those that are kept; 0 none. */
int64_t signals_history_newest_ns(const struct signals_history *h);
int64_t signals_history_oldest_ns(const struct signals_history *h);

/* ---- how a page stands, for those who do not fetch it ---- */

struct signals_feed {
    const char *url;
    const struct signals_history *history;
    const char *error;    /* of the last try, in a sentence; "" it succeeded, or there was none yet */
    int64_t interval_ns;  /* between two tries */
    int64_t last_try_ns;  /* when the last one ended; 0 none yet */
    int64_t last_good_ns; /* when the last page was read; 0 never */
};
/* How old the newest page may be to say something of now (signals_question.max_age_ns): 3 intervals, at least 5 s. */
int64_t signals_feed_max_age_ns(const struct signals_feed *feed);

#endif
