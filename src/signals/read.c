/* Answers about a window of time: means, rates and latencies from the samples, and the rules about what a value may not
 * be taken for (docs/internals/signals.md). */
#include "signals/history.h"

#include <math.h>
#include <string.h>

/* What of the history one question is about. */
struct span {
    const struct signals_history *h;
    const struct signals_question *q;
    size_t first;     /* the oldest sample that counts at all */
    size_t window;    /* the oldest sample read within the window */
    size_t held;      /* the oldest whose levels held in the window: that one, or the one before */
    int64_t begin_ns; /* of the window */
};

static size_t first_since(const struct signals_history *h, int64_t ns)
{
    size_t i = 0;
    while (i + 1 < h->n && history_sample(h, i)->at_ns < ns)
        i++;
    return i;
}

static struct span span_of(const struct signals_history *h, const struct signals_question *q, int64_t window_ns)
{
    struct span s = {.h = h, .q = q, .first = first_since(h, q->since_ns)};
    s.begin_ns = q->now_ns - window_ns;
    s.window = first_since(h, s.begin_ns);
    s.window = s.window > s.first ? s.window : s.first;
    bool is_held = window_ns > 0 && s.window > s.first && history_sample(h, s.window)->at_ns > s.begin_ns;
    s.held = s.window - is_held;
    return s;
}

/* ---- levels ---- */

static int64_t end_of(const struct span *s, size_t i)
{
    return i + 1 < s->h->n ? history_sample(s->h, i + 1)->at_ns : s->q->now_ns;
}

/* Each page's level holds until the next page, the newest until now. False where the newest does not have it. */
static bool mean_level(const struct span *s, enum sample_level level, double *ret)
{
    double sum = 0, time = 0;
    const struct sample *newest = history_sample(s->h, s->h->n - 1);
    if (!(newest->known & (1U << level)))
        return false;
    for (size_t i = s->held; i < s->h->n; i++) {
        const struct sample *x = history_sample(s->h, i);
        int64_t from = x->at_ns > s->begin_ns ? x->at_ns : s->begin_ns, to = end_of(s, i);
        if (!(x->known & (1U << level)) || to <= from)
            continue;
        sum += x->level[level] * (double)(to - from);
        time += (double)(to - from);
    }
    *ret = time > 0 ? sum / time : newest->level[level];
    return true;
}

static struct signals_maybe peak_level(const struct span *s, enum sample_level level)
{
    struct signals_maybe peak = {false, 0};
    for (size_t i = s->held; i < s->h->n; i++) {
        const struct sample *x = history_sample(s->h, i);
        if (x->known & (1U << level))
            peak = (struct signals_maybe){true, fmax(peak.value, x->peak[level])};
    }
    return peak;
}

static bool any_in(const struct span *s, bool (*is)(const struct sample *))
{
    for (size_t i = s->held; i < s->h->n; i++)
        if (is(history_sample(s->h, i)))
            return true;
    return false;
}

static bool is_demand(const struct sample *s)
{
    return s->is_demand;
}

static bool is_shared(const struct sample *s)
{
    return s->is_shared;
}

/* ---- counters ---- */

static bool has_counter(const struct signals_history *h, enum quantity quantity)
{
    return h->page->has_counter[page_counter_index(quantity)];
}

static double span_s(const struct span *s, size_t base)
{
    return (double)(s->h->newest_ns - history_sample(s->h, base)->at_ns) / 1e9;
}

/* The oldest sample of the window, or the one before where the window has but one; false where there is none. */
static bool base_of(const struct span *s, size_t *ret)
{
    *ret = s->window + 1 < s->h->n ? s->window : s->window > s->first ? s->window - 1 : s->window;
    return *ret + 1 < s->h->n && history_sample(s->h, *ret)->at_ns < s->h->newest_ns;
}

/* Is it known over any of the time how much counters grew? */
static bool has_growth(const struct span *s, size_t base)
{
    for (size_t i = base + 1; i < s->h->n; i++)
        if (!history_sample(s->h, i)->is_of_new_server)
            return true;
    return false;
}

static double growth(const struct span *s, size_t base, enum quantity quantity)
{
    double sum = 0;
    for (size_t i = base + 1; i < s->h->n; i++)
        sum += (double)history_sample(s->h, i)->increase[page_counter_index(quantity)];
    return sum;
}

/* The largest of one pair of neighbours: growth over time, or over the growth of another counter. */
static struct signals_maybe peak_growth(const struct span *s, enum quantity quantity, bool is_rate)
{
    struct signals_maybe peak = {false, 0};
    size_t i = s->window > s->first ? s->window : s->first + 1, index = page_counter_index(quantity);
    for (; i < s->h->n; i++) {
        const struct sample *x = history_sample(s->h, i), *before = history_sample(s->h, i - 1);
        double by = is_rate ? (double)(x->at_ns - before->at_ns) / 1e9 : (double)x->increase[index + 1];
        if (by > 0 && !x->is_of_new_server)
            peak = (struct signals_maybe){true, fmax(peak.value, (double)x->increase[index] / by)};
    }
    return peak;
}

/* ---- signals ---- */

static void read_level(const struct span *window, const struct span *active, enum sample_level level,
                       struct signals_answer *ret)
{
    ret->peak = peak_level(active, level);
    if (mean_level(window, level, &ret->value))
        ret->reading = SIGNALS_READ_OK;
}

static void read_rate(const struct span *window, const struct span *active, enum quantity quantity,
                      struct signals_answer *ret)
{
    size_t base;
    if (!has_counter(window->h, quantity))
        return;
    ret->reading = SIGNALS_READ_NOT_YET;
    ret->peak = peak_growth(active, quantity, true);
    if (!base_of(window, &base) || !has_growth(window, base))
        return;
    ret->span_s = span_s(window, base);
    ret->value = growth(window, base, quantity) / ret->span_s;
    ret->reading = SIGNALS_READ_OK;
}

/* Nothing ended in the window. Where requests wait, whoever is next has waited at least as long as nothing ended, and
 * that grows with the clock (cases O34, O49); else nobody is there to wait. */
static void read_silence(const struct span *window, enum quantity sum, struct signals_answer *ret)
{
    const struct signals_history *h = window->h;
    double waiting = h->page->level[QUANTITY_WAITING].value;
    if (!(waiting > 0))
        return;
    double silent_ms = (double)(window->q->now_ns - h->grown_ns[page_counter_index(sum) + 1]) / 1e6;
    ret->value = fmax(silent_ms, h->last_mean[page_counter_index(sum)]);
    ret->weight = waiting;
    ret->peak = (struct signals_maybe){true, fmax(ret->peak.value, ret->value)};
}

static void read_latency(const struct span *window, const struct span *active, enum quantity sum,
                         struct signals_answer *ret)
{
    size_t base;
    ret->weight = 0;
    if (!has_counter(window->h, sum))
        return;
    ret->reading = SIGNALS_READ_NOT_YET;
    if (!base_of(window, &base) || !has_growth(window, base))
        return;
    ret->reading = SIGNALS_READ_OK;
    ret->span_s = span_s(window, base);
    ret->peak = peak_growth(active, sum, false);
    double count = growth(window, base, sum + 1);
    if (!(count > 0)) {
        read_silence(window, sum, ret);
        return;
    }
    double sum_ms = growth(window, base, sum);
    ret->value = sum_ms / count;
    /* short requests that no page shows were several at once where their times add up to more than there was */
    ret->is_uncontended = !any_in(window, is_shared) && sum_ms <= ret->span_s * 1000;
    ret->weight = ret->is_uncontended ? 0 : count;
}

/* Tokens of a request: over the window, else since the server began. False where no request ended yet. */
static bool prompt_mean(const struct span *window, double *ret)
{
    bool has_own = has_counter(window->h, QUANTITY_PROMPT_SUM);
    enum quantity sum = has_own ? QUANTITY_PROMPT_SUM : QUANTITY_PROMPT_TOKENS;
    enum quantity count = has_own ? QUANTITY_PROMPT_COUNT : QUANTITY_REQUESTS;
    const double *total = window->h->page->total;
    size_t base;
    double n = base_of(window, &base) ? growth(window, base, count) : 0;
    if (n > 0)
        *ret = growth(window, base, sum) / n;
    else if (total[page_counter_index(count)] > 0)
        *ret = total[page_counter_index(sum)] / total[page_counter_index(count)];
    else
        return false;
    return true;
}

static void read_tokens_waiting(const struct span *window, const struct span *active, struct signals_answer *ret)
{
    const struct signals_history *h = window->h;
    double mean = 0;
    bool has_prompts = has_counter(h, QUANTITY_PROMPT_SUM) ||
                       (has_counter(h, QUANTITY_PROMPT_TOKENS) && has_counter(h, QUANTITY_REQUESTS));
    if (!has_prompts)
        return;
    read_level(window, active, SAMPLE_WAITING, ret);
    if (ret->reading != SIGNALS_READ_OK)
        return;
    if (!prompt_mean(window, &mean) && ret->peak.value > 0)
        ret->reading = SIGNALS_READ_NOT_YET;
    ret->value *= mean;
    ret->peak.value *= mean;
}

/* Which of the three things that it takes is not there. */
static enum quantity names_of_tokens_waiting(const struct signals_history *h)
{
    if (!h->page->level[QUANTITY_WAITING].is_known)
        return QUANTITY_WAITING;
    return has_counter(h, QUANTITY_PROMPT_TOKENS) ? QUANTITY_REQUESTS : QUANTITY_PROMPT_SUM;
}

static void read_custom(const struct span *window, const struct span *active, struct signals_answer *ret)
{
    if (has_counter(window->h, QUANTITY_CUSTOM_COUNTER))
        read_rate(window, active, QUANTITY_CUSTOM_COUNTER, ret);
    else
        read_level(window, active, SAMPLE_CUSTOM, ret);
}

/* What is asked for, and the quantity whose names say what was looked for. */
static enum quantity read_signal(const struct span *window, const struct span *active, struct signals_answer *ret)
{
    switch (window->q->signal) {
    case SIGNALS_REQUESTS_WAITING:
        read_level(window, active, SAMPLE_WAITING, ret);
        return QUANTITY_WAITING;
    case SIGNALS_REQUESTS_RUNNING:
        read_level(window, active, SAMPLE_RUNNING, ret);
        return QUANTITY_RUNNING;
    case SIGNALS_REQUESTS_IN_FLIGHT:
        read_level(window, active, SAMPLE_IN_FLIGHT, ret);
        return QUANTITY_WAITING;
    case SIGNALS_KV_CACHE_USAGE:
        read_level(window, active, SAMPLE_KV, ret);
        return QUANTITY_KV;
    case SIGNALS_TOKENS_WAITING:
        read_tokens_waiting(window, active, ret);
        return names_of_tokens_waiting(window->h);
    case SIGNALS_TOKENS_PER_SECOND:
        read_rate(window, active, QUANTITY_TOKENS, ret);
        return QUANTITY_TOKENS;
    case SIGNALS_QUEUE_WAIT_MS:
        read_latency(window, active, QUANTITY_QUEUE_SUM, ret);
        return QUANTITY_QUEUE_SUM;
    case SIGNALS_TIME_TO_FIRST_TOKEN_MS:
        read_latency(window, active, QUANTITY_TTFT_SUM, ret);
        return QUANTITY_TTFT_SUM;
    case SIGNALS_INTER_TOKEN_LATENCY_MS:
        read_latency(window, active, QUANTITY_ITL_SUM, ret);
        return QUANTITY_ITL_SUM;
    case SIGNALS_REQUEST_RATE:
        read_rate(window, active, QUANTITY_REQUESTS, ret);
        return QUANTITY_REQUESTS;
    case SIGNALS_CUSTOM:
        read_custom(window, active, ret);
        return QUANTITY_CUSTOM_LEVEL;
    case SIGNALS_COUNT:
        break;
    }
    return QUANTITY_WAITING;
}

/* ---- the answer ---- */

static void describe_page(const struct signals_history *h, struct signals_answer *ret)
{
    const struct signals_page *page = h->page;
    ret->engine = dialect_engine(page->dialect);
    ret->waiting = page->level[QUANTITY_WAITING];
    ret->running = page->level[QUANTITY_RUNNING];
    ret->kv_percent = page->level[QUANTITY_KV];
    memcpy(ret->model, page->model, sizeof(ret->model));
}

static bool has_only_zeros(const struct span *s)
{
    for (size_t i = s->first; i < s->h->n; i++)
        if (history_sample(s->h, i)->has_values)
            return false;
    return true;
}

static void judge(const struct span *window, struct signals_answer *ret)
{
    const struct signals_history *h = window->h;
    ret->is_idle_gauge = history_sample(h, h->n - 1)->is_idle_gauge;
    ret->is_demand = window->q->signal == SIGNALS_KV_CACHE_USAGE && any_in(window, is_demand);
    ret->is_only_zeros = has_only_zeros(window);
    ret->is_stalled = history_is_stalled(h, window->q->since_ns);
    if (ret->is_stalled)
        ret->value = ret->weight = 0;
}

void signals_read(const struct signals_history *h, const struct signals_question *q, struct signals_answer *ret)
{
    *ret = (struct signals_answer){.reading = SIGNALS_READ_NEVER, .age_s = -1, .missing = ""};
    if (!h || !h->page)
        return;
    describe_page(h, ret);
    ret->is_counter = q->signal == SIGNALS_CUSTOM && has_counter(h, QUANTITY_CUSTOM_COUNTER);
    ret->age_s = fmax(0, (double)(q->now_ns - h->newest_ns) / 1e9);
    if (h->newest_ns < q->since_ns)
        return;
    if (q->max_age_ns > 0 && q->now_ns - h->newest_ns > q->max_age_ns) {
        ret->reading = SIGNALS_READ_STALE;
        return;
    }
    struct span window = span_of(h, q, q->window_ns), active = span_of(h, q, q->activation_window_ns);
    ret->in_flight = peak_level(&active, SAMPLE_IN_FLIGHT);
    ret->reading = SIGNALS_READ_ABSENT;
    ret->weight = 1;
    enum quantity looked_for = read_signal(&window, &active, ret);
    if (ret->reading == SIGNALS_READ_ABSENT)
        ret->missing = q->signal == SIGNALS_CUSTOM && h->page->missing ? h->page->missing
                                                                       : alias_names(looked_for, h->page->dialect);
    judge(&window, ret);
    if (ret->reading != SIGNALS_READ_OK)
        ret->value = ret->weight = 0;
}
