/* Rows of the lint table about signals of engines' pages, and about several signals in one trigger. */
#include "workload/lint.h"

#include <math.h>
#include <string.h>

static const double full = 100; /* of a KV cache, without requests that wait */
/* A rate needs two pages in its window, and they are read each second at most. */
static const double rate_window_s = 2.5;

static bool is_signal(const struct trigger *t, enum signals_id signal)
{
    return trigger_metric_is_engine(t->metric) && trigger_metric_signal(t->metric) == signal;
}

static bool is_latency(const struct trigger *t)
{
    return is_signal(t, SIGNALS_QUEUE_WAIT_MS) || is_signal(t, SIGNALS_TIME_TO_FIRST_TOKEN_MS) ||
           is_signal(t, SIGNALS_INTER_TOKEN_LATENCY_MS);
}

static bool is_rate(const struct trigger *t)
{
    return is_latency(t) || is_signal(t, SIGNALS_TOKENS_PER_SECOND) || is_signal(t, SIGNALS_REQUEST_RATE);
}

static bool is_queue(const struct trigger *t)
{
    return is_signal(t, SIGNALS_REQUESTS_WAITING) || is_signal(t, SIGNALS_TOKENS_WAITING);
}

/* Is each signal of the whole trigger such a one, and no other trigger there that could make up for it? */
static bool is_all_there_is(const struct lint *l, bool (*is_such)(const struct trigger *t))
{
    if (!l->is_workload || !l->object || l->object->n_triggers != 1 || l->object->n_other_triggers > 0)
        return false;
    for (size_t i = 0; i < l->whole->n_parts; i++)
        if (!is_such(l->whole->parts[i]))
            return false;
    return l->whole->n_parts > 0 || is_such(l->whole);
}

double lint_ceiling(const struct trigger *t)
{
    if (t->prefers_engine || is_signal(t, SIGNALS_KV_CACHE_USAGE))
        return 2 * full; /* what waits is in it */
    return trigger_metric_is_engine(t->metric) ? 0 : scaling_kind_ceiling(workload_kind(t->metric));
}

bool lint_grows_by_queue_only(const struct lint *l, struct buf *out)
{
    double above = lint_grows_above(l);
    bool is_kv = is_signal(l->t, SIGNALS_KV_CACHE_USAGE) || l->t->prefers_engine;
    if (!l->is_workload || !is_kv || above < full || above >= l->ceiling)
        return false;
    (void)buf_printf(out,
                     "grows only while requests wait: without them kv_cache_usage is at most 100, and with target %s "
                     "and its tolerance the HPA adds replicas only above %s",
                     lint_number(l->arithmetic.target).text, lint_number(above).text);
    return true;
}

bool lint_running_saturates(const struct lint *l, struct buf *out)
{
    if (!l->is_workload || !is_signal(l->t, SIGNALS_REQUESTS_RUNNING))
        return false;
    (void)buf_printf(out,
                     "requests_running stops at what a server admits at once (vLLM --max-num-seqs, SGLang "
                     "--max-running-requests, llama.cpp --parallel): the HPA adds replicas only above %s, so that "
                     "must be less; requests_in_flight counts those that wait too",
                     lint_number(lint_grows_above(l)).text);
    return true;
}

bool lint_latency_lags(const struct lint *l, struct buf *out)
{
    if (!is_all_there_is(l, is_latency))
        return false;
    (void)buf_printf(out, "a latency is known when requests have got that far, so it rises late, and where one request "
                          "alone takes longer than the target no number of replicas meets it; requests_in_flight or "
                          "kv_cache_usage in the same trigger see the load itself");
    return true;
}

bool lint_swings(const struct lint *l, struct buf *out)
{
    bool has_room = l->min >= 0 && l->max > l->min;
    if (!has_room || !is_all_there_is(l, is_queue))
        return false;
    (void)buf_printf(out,
                     "nothing waits while the replicas suffice, so they are taken away until requests wait again, and "
                     "so on; requests_in_flight, in its place or in the same trigger, holds the count");
    return true;
}

bool lint_short_rate_window(const struct lint *l, struct buf *out)
{
    double window_s = (double)l->t->window_ns / (double)NS_PER_S;
    if (!l->is_workload || !is_rate(l->t) || window_s >= rate_window_s)
        return false;
    (void)buf_printf(out, "window %s s may have one page only, and %s is the difference of two: make it %s s or longer",
                     lint_number(window_s).text, trigger_metric_name(l->t->metric), lint_number(rate_window_s).text);
    return true;
}

bool lint_tokens_estimated(const struct lint *l, struct buf *out)
{
    if (!is_signal(l->t, SIGNALS_TOKENS_WAITING))
        return false;
    (void)buf_printf(out, "tokens_waiting is an estimate on engines that do not show it: the waiting requests times "
                          "the mean prompt of those that were served");
    return true;
}

/* ---- several signals ---- */

bool lint_part_never_grows(const struct lint *l, struct buf *out)
{
    for (size_t i = 0; l->is_workload && i < l->whole->n_parts; i++) {
        const struct trigger *part = l->whole->parts[i];
        double above = part->target * (1 + l->arithmetic.tolerance_up), most = lint_ceiling(part);
        if (most <= 0 || above < most)
            continue;
        (void)buf_printf(out,
                         "of the signals, %s never asks for more: it is at most %s, and with target %s and its "
                         "tolerance the HPA adds replicas only above %s",
                         trigger_metric_name(part->metric), lint_number(most).text, lint_number(part->target).text,
                         lint_number(above).text);
        return true;
    }
    return false;
}

static bool is_same_measure(const struct trigger *a, const struct trigger *b)
{
    double ratio = trigger_metric_divisor(a->metric) / trigger_metric_divisor(b->metric);
    return trigger_metric_source(a->metric) == trigger_metric_source(b->metric) && fabs(ratio - 1) < 1e-9;
}

/* Is `less` at most `more`, whatever happens? Waiting and running requests are parts of those in flight. */
static bool is_at_most(const struct trigger *less, const struct trigger *more)
{
    bool is_part = is_signal(less, SIGNALS_REQUESTS_WAITING) || is_signal(less, SIGNALS_REQUESTS_RUNNING);
    return (is_part && is_signal(more, SIGNALS_REQUESTS_IN_FLIGHT)) || is_same_measure(less, more);
}

bool lint_part_never_decides(const struct lint *l, struct buf *out)
{
    size_t n = l->whole->n_parts;
    for (size_t i = 0; i < n * n; i++) {
        const struct trigger *less = l->whole->parts[i / n], *more = l->whole->parts[i % n];
        if (less == more || !is_at_most(less, more) || less->target < more->target)
            continue;
        (void)buf_printf(out,
                         "of the signals, %s with target %s never decides: %s with target %s always asks for at "
                         "least as much",
                         trigger_metric_name(less->metric), lint_number(less->target).text,
                         trigger_metric_name(more->metric), lint_number(more->target).text);
        return true;
    }
    return false;
}
