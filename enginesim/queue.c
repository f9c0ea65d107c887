/* The rings of waiting and running requests, and what is counted when one starts, gives its first token and ends. */
#include "enginesim/queue.h"

#include <math.h>
#include <string.h>

static const double bounds_s[QUEUE_BOUNDS] = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
                                              1,     2.5,   5,    7.5,  10,   20,   40,   80,  160,  640, 2560};
static const double bounds_tokens[QUEUE_BOUNDS] = {1,    2,     5,     10,  20,  50,  100, 200, 500, 1000, 2000,
                                                   5000, 10000, 20000, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6,  1e7};

const double *queue_bounds(enum queue_measure measure)
{
    return measure == QUEUE_PROMPT_TOKENS || measure == QUEUE_OUTPUT_TOKENS ? bounds_tokens : bounds_s;
}

void queue_init(struct queue *q, double now_s)
{
    *q = (struct queue){.now_s = now_s};
}

void queue_fini(struct queue *q)
{
    free(q->waiting.arrived_s);
    free(q->running.items);
    *q = (struct queue){0};
}

static void observe(struct queue *q, enum queue_measure measure, double value, double n)
{
    struct queue_histogram *h = &q->measures[measure];
    const double *bounds = queue_bounds(measure);
    h->sum += value * n;
    h->count += n;
    for (size_t i = 0; i < QUEUE_BOUNDS; i++)
        if (value <= bounds[i]) {
            h->counts[i] += n;
            return;
        }
}

/* ---- the rings ---- */

/* A ring of `capacity` items of `size` bytes, of which n from `first` on are in use, with room for twice as many. */
static void *widen(void *items, size_t size, size_t *capacity, size_t *first, size_t n)
{
    size_t wider = *capacity ? *capacity * 2 : 16;
    char *old = (char *)items, *to = (char *)mem_new_array(wider, size);
    for (size_t i = 0; i < n; i++)
        memcpy(to + i * size, old + (*first + i) % *capacity * size, size);
    free(old);
    *capacity = wider;
    *first = 0;
    return to;
}

static struct queue_running *running_at(const struct queue *q, size_t i)
{
    return &q->running.items[(q->running.first + i) % q->running.capacity];
}

static void push_waiting(struct queue *q, double arrived_s)
{
    if (q->waiting.n == q->waiting.capacity)
        q->waiting.arrived_s = (double *)widen(q->waiting.arrived_s, sizeof(double), &q->waiting.capacity,
                                               &q->waiting.first, q->waiting.n);
    q->waiting.arrived_s[(q->waiting.first + q->waiting.n) % q->waiting.capacity] = arrived_s;
    q->waiting.n++;
}

static double pop_waiting(struct queue *q)
{
    double arrived_s = q->waiting.arrived_s[q->waiting.first];
    q->waiting.first = (q->waiting.first + 1) % q->waiting.capacity;
    q->waiting.n--;
    return arrived_s;
}

void queue_arrive(struct queue *q, double t_s)
{
    q->arrived++;
    if (q->waiting.n == QUEUE_WAITING_MAX)
        q->rejected++;
    else
        push_waiting(q, t_s);
}

/* ---- a request's way ---- */

static void start(struct queue *q, const struct queue_pace *pace)
{
    if (q->running.n == q->running.capacity)
        q->running.items = (struct queue_running *)widen(q->running.items, sizeof(struct queue_running),
                                                         &q->running.capacity, &q->running.first, q->running.n);
    double arrived_s = pop_waiting(q), started_s = fmax(fmax(arrived_s, q->freed_s), q->now_s);
    double last_s = q->running.n ? running_at(q, q->running.n - 1)->ends_s : 0;
    q->running.n++;
    *running_at(q, q->running.n - 1) = (struct queue_running){
        .arrived_s = arrived_s,
        .started_s = started_s,
        .first_s = started_s + pace->prefill_s,
        .ends_s = fmax(started_s + pace->batch_s, last_s), /* none overtakes, also when the pace has changed */
        .prompt_tokens = pace->prompt_tokens,
        .output_tokens = pace->output_tokens,
    };
}

static void give_first_token(struct queue *q)
{
    const struct queue_running *r = running_at(q, q->running.n_first);
    q->running.n_first++;
    q->prompt_tokens += r->prompt_tokens;
    observe(q, QUEUE_FIRST, r->first_s - r->arrived_s, 1);
}

/* Most engines write a request's times when it ends: until then their histograms know nothing of it. */
static void end_first(struct queue *q)
{
    if (q->running.n_first == 0)
        give_first_token(q);
    struct queue_running r = *running_at(q, 0);
    q->running.first = (q->running.first + 1) % q->running.capacity;
    q->running.n--;
    q->running.n_first--;
    q->finished++;
    q->output_tokens += r.output_tokens;
    q->freed_s = r.ends_s;
    observe(q, QUEUE_WAIT, r.started_s - r.arrived_s, 1);
    observe(q, QUEUE_PREFILL, r.first_s - r.started_s, 1);
    observe(q, QUEUE_DECODE, r.ends_s - r.first_s, 1);
    observe(q, QUEUE_INFERENCE, r.ends_s - r.started_s, 1);
    observe(q, QUEUE_WHOLE, r.ends_s - r.arrived_s, 1);
    observe(q, QUEUE_MEAN_TOKEN, (r.ends_s - r.started_s) / r.output_tokens, 1);
    observe(q, QUEUE_PROMPT_TOKENS, r.prompt_tokens, 1);
    observe(q, QUEUE_OUTPUT_TOKENS, r.output_tokens, 1);
    if (r.output_tokens > 1)
        observe(q, QUEUE_TOKEN, (r.ends_s - r.first_s) / (r.output_tokens - 1), r.output_tokens - 1);
}

void queue_advance(struct queue *q, const struct queue_pace *pace, double t_s)
{
    bool is_busy = q->running.n > 0;
    for (;;) {
        while (q->waiting.n && q->running.n < pace->slots)
            start(q, pace);
        is_busy = is_busy || q->running.n > 0;
        if (!q->running.n || running_at(q, 0)->ends_s > t_s)
            break;
        end_first(q);
    }
    while (q->running.n_first < q->running.n && running_at(q, q->running.n_first)->first_s <= t_s)
        give_first_token(q);
    if (is_busy)
        q->busy_s += t_s - q->now_s;
    q->now_s = t_s;
}

void queue_slow(struct queue *q, double rate, double t_s)
{
    double later_s = (t_s - q->now_s) * (1 - rate);
    for (size_t i = 0; i < q->running.n; i++) {
        struct queue_running *r = running_at(q, i);
        r->first_s += later_s;
        r->ends_s += later_s;
    }
    if (rate > 0)
        return;
    if (q->running.n)
        q->busy_s += t_s - q->now_s;
    q->now_s = t_s; /* what waits starts after this */
}

void queue_abort(struct queue *q)
{
    q->output_tokens = queue_output_tokens(q);
    q->aborted += (double)(q->waiting.n + q->running.n);
    q->waiting.n = q->running.n = q->running.n_first = 0;
}

void queue_move_waiting(struct queue *from, struct queue *to)
{
    while (from->waiting.n) {
        double arrived_s = pop_waiting(from);
        queue_arrive(to, arrived_s);
    }
}

double queue_output_tokens(const struct queue *q)
{
    double tokens = q->output_tokens;
    for (size_t i = 0; i < q->running.n_first; i++) {
        const struct queue_running *r = running_at(q, i);
        double whole_s = r->ends_s - r->first_s;
        double share = whole_s > 0 ? (q->now_s - r->first_s) / whole_s : 1;
        tokens += floor(1 + (r->output_tokens - 1) * fmin(fmax(share, 0), 1));
    }
    return tokens;
}
