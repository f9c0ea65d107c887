/* queue: the requests of one engine's rank: they come, wait in order, run in the batch and end. Time is a parameter, so
 * hours of it are played in no time; it knows neither engines' names nor pages. */
#ifndef ENGINESIM_QUEUE_H
#define ENGINESIM_QUEUE_H

#include "base/base.h"

enum { QUEUE_WAITING_MAX = 1 << 20, QUEUE_SLOTS_MAX = 4096 };

/* What engines have histograms of: X(name). Seconds, but for the two of tokens. Written when a request ends, but for
 * FIRST, which is written with its first token. */
#define QUEUE_MEASURES(X)                                                                                              \
    X(WAIT)       /* from arrival to the batch */                                                                      \
    X(PREFILL)    /* from the batch to the first token */                                                              \
    X(DECODE)     /* from the first token to the end */                                                                \
    X(INFERENCE)  /* from the batch to the end */                                                                      \
    X(WHOLE)      /* from arrival to the end */                                                                        \
    X(FIRST)      /* from arrival to the first token */                                                                \
    X(TOKEN)      /* from token to token: as many as a request has tokens after the first */                           \
    X(MEAN_TOKEN) /* the mean of that, one of each request */                                                          \
    X(PROMPT_TOKENS)                                                                                                   \
    X(OUTPUT_TOKENS)

enum queue_measure {
#define X(name) QUEUE_##name,
    QUEUE_MEASURES(X)
#undef X
        QUEUE_MEASURE_COUNT
};

/* Upper bounds of the histograms, of times in seconds and of tokens. */
enum { QUEUE_BOUNDS = 22 };
const double *queue_bounds(enum queue_measure measure);
struct queue_histogram {
    double counts[QUEUE_BOUNDS]; /* of each bucket alone */
    double sum, count;
};

/* How requests are served from now on. */
struct queue_pace {
    double batch_s;   /* from start to end, whoever else is in the batch; > 0 */
    double prefill_s; /* of these, to the first token; < batch_s */
    uint32_t slots;   /* places in the batch, 1 to QUEUE_SLOTS_MAX */
    double prompt_tokens, output_tokens;
};

struct queue_running {
    double arrived_s, started_s, first_s, ends_s;
    double prompt_tokens, output_tokens;
};

struct queue {
    double now_s;
    double freed_s; /* when a place in the batch became free, last */
    struct {
        double *arrived_s; /* a ring */
        size_t capacity, first, n;
    } waiting;
    struct {
        struct queue_running *items; /* a ring; they end in the order in which they started */
        size_t capacity, first, n;
        size_t n_first; /* of these, from the first on: the first token is out */
    } running;
    /* Since the start; all but `running` and `waiting` only grow. */
    double arrived, finished, aborted, rejected;
    double prompt_tokens; /* of requests whose first token is out */
    double output_tokens; /* of ended requests; queue_output_tokens adds those under way */
    double busy_s;        /* time with something in the batch */
    struct queue_histogram measures[QUEUE_MEASURE_COUNT];
};

void queue_init(struct queue *q, double now_s);
void queue_fini(struct queue *q);
/* One request comes at t_s (not before the last call's time). Beyond QUEUE_WAITING_MAX it is rejected. */
void queue_arrive(struct queue *q, double t_s);
/* Go on to t_s: end what ends by then, start what has come and has a place, in order. */
void queue_advance(struct queue *q, const struct queue_pace *pace, double t_s);
/* From now_s to t_s only `rate` (0 to 1) of the work was done: everything in the batch ends that much later. Call
 * before queue_advance to the same t_s; with rate 0 nothing starts either. */
void queue_slow(struct queue *q, double rate, double t_s);
/* All requests go away, unfinished. */
void queue_abort(struct queue *q);
/* The waiting ones go over to another queue, behind what waits there. */
void queue_move_waiting(struct queue *from, struct queue *to);
/* Tokens given out until now: of ended requests, and of those in the batch in proportion to their time. */
double queue_output_tokens(const struct queue *q);

#endif
