/* A trigger on the page of an engine that the metadata names, in scopes node and cluster: value and activity by what
 * the page says, and that in sentences. Pages are read by signals/ and fetched by others. */
#include "trigger/trigger.h"

#include "trigger/evaluate.h"
#include "trigger/say.h"
#include "trigger/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Requests that end are counted over this many seconds before none means idle. */
enum { TOLD_S = 1 };

/* ---- what the page says ---- */

static void ask(const struct trigger_evaluation *ev, enum signals_id signal, struct signals_answer *ret)
{
    const struct trigger *t = ev->trigger;
    const struct signals_feed *feed = ev->feed;
    const struct signals_question question = {.signal = signal,
                                              .now_ns = ev->now_ns,
                                              .window_ns = t->window_ns,
                                              .activation_window_ns = t->activation_window_ns,
                                              .max_age_ns = signals_feed_max_age_ns(feed)};
    signals_read(feed->history, &question, ret);
}

/* Latencies and rates are there only while requests end. */
static bool is_of_ended_requests(const struct trigger *t)
{
    enum signals_kind kind = signals_kind_of(trigger_metric_signal(t->metric));
    return kind == SIGNALS_RATE || kind == SIGNALS_LATENCY;
}

static void say_name(struct buf *out, const struct trigger *t)
{
    (void)buf_append_str(out, t->engine_metric[0] ? t->engine_metric : trigger_metric_name(t->metric));
}

/* Why the page leaves no answer. Returns -1. */
static int refuse_page(const struct trigger_evaluation *ev, struct err *e)
{
    const struct signals_feed *feed = ev->feed;
    const struct signals_answer *page = &ev->page;
    char age[TRIGGER_AGE_MAX];
    BUF_AUTO struct buf text;
    buf_init(&text, TRIGGER_SENTENCE_BYTES);
    (void)buf_printf(&text, "page %s", feed->url);
    if (page->reading == SIGNALS_READ_ABSENT) {
        (void)buf_printf(&text, " (%s) does not have ", signals_engine_name(page->engine));
        say_name(&text, ev->trigger);
        if (page->missing && page->missing[0])
            (void)buf_printf(&text, ": looked for %s", page->missing);
        return err_set(e, ERR_FAILED_PRECONDITION, "%s", buf_cstr(&text));
    }
    if (page->age_s >= 0) {
        trigger_show_age(age, llround(page->age_s * (double)NS_PER_S));
        (void)buf_printf(&text, " was last %s", age);
    } else if (!feed->error[0]) {
        (void)buf_append_str(&text, " was never read");
    }
    if (feed->error[0])
        (void)buf_printf(&text, ": %s", feed->error);
    return err_set(e, ERR_UNAVAILABLE, "%s", buf_cstr(&text));
}

/* ---- value and activity ---- */

/* The first read of a counter is answered with 0, as the reference does (A.12 18). That requests wait without a known
 * size is no 0, nor that each page is of another server. Returns NULL, or why nothing is known. */
static const char *why_unknown(const struct trigger_evaluation *ev)
{
    const struct signals_history *h = ev->feed->history;
    if (ev->page.reading != SIGNALS_READ_NOT_YET)
        return NULL;
    if (ev->trigger->metric == TRIGGER_TOKENS_WAITING)
        return "requests wait, and how long prompts are is known when the first request has ended";
    if (signals_history_oldest_ns(h) < signals_history_newest_ns(h))
        return "one server after the other answers there, and counters of two do not make a difference";
    return NULL;
}

static void decide_value(struct trigger_evaluation *ev)
{
    double value = ev->page.reading == SIGNALS_READ_NOT_YET ? 0 : ev->page.value;
    const char *why = why_unknown(ev);
    if (why)
        (void)err_set(&ev->value_error, ERR_UNAVAILABLE, "page %s: %s", ev->feed->url, why);
    else if (!isfinite(value) || value < 0 || value > TRIGGER_VALUE_MAX)
        (void)err_set(&ev->value_error, ERR_INTERNAL, "%s of page %s is %g, no value that KEDA can take",
                      trigger_metric_name(ev->trigger->metric), ev->feed->url, value);
    else
        ev->value = value;
}

/* Is the signal itself compared with the threshold? Always where the metadata says one and where the page does not tell
 * its requests; and where the signal may show requests that came and went between two pages. */
static bool compares_signal(const struct trigger_evaluation *ev)
{
    const struct trigger *t = ev->trigger;
    return t->has_activation || !ev->page.in_flight.is_known || is_of_ended_requests(t) ||
           t->metric == TRIGGER_ENGINE_METRIC;
}

/* Requests count as activity unless the metadata says what does. */
static bool compares_requests(const struct trigger_evaluation *ev)
{
    bool is_told = !ev->trigger->has_activation || ev->page.reading == SIGNALS_READ_NOT_YET;
    return is_told && ev->page.in_flight.is_known;
}

/* Short requests come and go between two reads, and no gauge shows them; the count of ended ones does. */
static bool find_ended(const struct trigger_evaluation *ev)
{
    struct signals_answer ended;
    ask(ev, SIGNALS_REQUEST_RATE, &ended);
    return ended.peak.is_known && ended.peak.value > 0;
}

/* A program that has just started, whose page shows no running requests: what ended in a moment is no word about
 * idleness (reference B.1 17). A window that is shorter itself has what it asks for. */
static bool is_too_early(const struct trigger_evaluation *ev)
{
    const struct signals_answer *page = &ev->page;
    bool tells_all = page->waiting.is_known && page->running.is_known;
    if (tells_all || !is_of_ended_requests(ev->trigger))
        return false;
    return page->reading == SIGNALS_READ_NOT_YET ||
           (page->span_s < TOLD_S && ev->trigger->window_ns >= (int64_t)TOLD_S * 2 * NS_PER_S);
}

static void decide_activity(struct trigger_evaluation *ev)
{
    const struct signals_answer *page = &ev->page;
    bool has_peak = compares_signal(ev) && page->peak.is_known;
    bool has_requests = compares_requests(ev);
    bool is_peak_above = has_peak && page->peak.value > ev->trigger->activation;
    bool is_busy = has_requests && page->in_flight.value > 0;
    ev->has_ended = has_requests && !is_busy && find_ended(ev);
    ev->is_above = is_peak_above || is_busy || ev->has_ended;
    bool is_unknown = (!has_peak && !has_requests) || is_too_early(ev);
    ev->is_active = ev->is_above || is_unknown; /* unknown is not idle */
    if (is_busy || (has_requests && !has_peak))
        ev->activity = page->in_flight.value;
    else if (has_peak)
        ev->activity = page->peak.value;
}

/* Returns -1 and the error of both answers where the page has none. */
static int judge_page(struct trigger_evaluation *ev, const struct signals_feed *feed, const char *why, struct err *e)
{
    const struct trigger *t = ev->trigger;
    if (trigger_refuse_elsewhere(t, e) < 0)
        return -1;
    if (!trigger_endpoint(t))
        return err_set(e, ERR_FAILED_PRECONDITION, "metric type %s is not read from an engine's page",
                       trigger_metric_name(t->metric));
    if (!feed)
        return err_set(e, ERR_UNAVAILABLE, "page %s was not asked: %s", trigger_endpoint(t),
                       why && why[0] ? why : "this program fetches no pages");
    ev->feed = feed;
    ask(ev, trigger_metric_signal(t->metric), &ev->page);
    bool is_read = ev->page.reading == SIGNALS_READ_OK || ev->page.reading == SIGNALS_READ_NOT_YET;
    return is_read ? 0 : refuse_page(ev, e);
}

void trigger_evaluate_page(const struct trigger *t, const struct signals_feed *feed, const char *why, int64_t now_ns,
                           enum trigger_question asked, struct trigger_evaluation *ret)
{
    trigger_evaluation_begin(t, now_ns, asked, ret);
    if (judge_page(ret, feed, why, &ret->value_error) < 0) {
        ret->active_error = ret->value_error;
        return;
    }
    if (asked & TRIGGER_ASK_VALUE)
        decide_value(ret);
    if (asked & TRIGGER_ASK_ACTIVITY)
        decide_activity(ret);
}

/* ---- in sentences ---- */

static void say_value(struct buf *out, const struct trigger *t, double value)
{
    char text[TRIGGER_VALUE_TEXT_MAX];
    trigger_show_value(text, value, trigger_metric_unit(t->metric));
    (void)buf_append_str(out, text);
}

static void say_time(struct buf *out, const char *before, double seconds)
{
    char text[TIME_DURATION_MAX];
    time_format_duration(text, llround(seconds * 1e3) * NS_PER_MS);
    (void)buf_printf(out, "%s%s", before, text);
}

/* What a rule made of the page, if one did. */
static void say_flags(struct buf *out, const struct signals_answer *page)
{
    if (page->is_demand)
        (void)buf_append_str(out, "; requests wait, so it is the demand and not the share in use");
    if (page->is_idle_gauge)
        (void)buf_append_str(out, "; the gauge is left over: nothing runs, waits or is generated, so it counts as 0");
    if (page->is_stalled)
        (void)buf_append_str(out, "; stalled: requests wait and next to nothing was done for 5 minutes, so it counts "
                                  "as 0");
    if (page->is_uncontended)
        (void)buf_append_str(out, "; the requests had the server to themselves, more replicas do not help");
}

void trigger_say_page_rule(const struct trigger_evaluation *ev, char rule[TRIGGER_TEXT_MAX])
{
    const struct trigger *t = ev->trigger;
    const struct signals_answer *page = &ev->page;
    BUF_AUTO struct buf text;
    buf_init(&text, TRIGGER_SENTENCE_BYTES);
    (void)buf_printf(&text, "page of %s, ", signals_engine_name(page->engine));
    if (page->reading == SIGNALS_READ_NOT_YET) {
        (void)buf_append_str(&text, "read once: ");
        say_value(&text, t, ev->value);
        (void)buf_append_str(&text, " until a second one tells what changed");
    } else {
        if (page->span_s > 0)
            say_time(&text, "two reads ", page->span_s);
        else if (t->window_ns > 0)
            say_time(&text, "over ", (double)t->window_ns / (double)NS_PER_S);
        (void)buf_append_str(&text, page->span_s > 0 ? " apart: " : t->window_ns > 0 ? ": " : "newest read: ");
        say_value(&text, t, ev->value);
    }
    say_flags(&text, page);
    trigger_fit(rule, str_of(buf_cstr(&text)));
}

void trigger_say_page_activity(const struct trigger_evaluation *ev, char rule[TRIGGER_TEXT_MAX])
{
    const struct trigger *t = ev->trigger;
    const struct signals_answer *page = &ev->page;
    bool has_peak = compares_signal(ev) && page->peak.is_known, has_requests = compares_requests(ev);
    char within[TIME_DURATION_MAX + 16] = "", number[NUM_TEXT_MAX];
    BUF_AUTO struct buf text;
    buf_init(&text, TRIGGER_SENTENCE_BYTES);
    if (t->activation_window_ns > 0) {
        char window[TIME_DURATION_MAX];
        time_format_duration(window, t->activation_window_ns);
        (void)snprintf(within, sizeof(within), " within %s", window);
    }
    if (has_requests) {
        num_format_milli(number, page->in_flight.value);
        (void)buf_printf(&text, "at most %s requests running or waiting%s", number, within);
    }
    if (has_peak) {
        (void)buf_append_str(&text, has_requests ? "; " : "");
        (void)buf_append_str(&text, "at most ");
        say_value(&text, t, page->peak.value);
        (void)buf_printf(&text, "%s, %s ", within, page->peak.value > t->activation ? "above" : "not above");
        say_value(&text, t, t->activation);
    }
    if (ev->has_ended)
        (void)buf_append_str(&text, "; some ended that no read showed");
    if (!has_peak && !has_requests)
        (void)buf_append_str(&text, "one read does not tell, and unknown is not idle");
    else if (!ev->is_above && is_too_early(ev))
        (void)buf_append_str(&text, "; the reads so far do not tell, and unknown is not idle");
    trigger_fit(rule, str_of(buf_cstr(&text)));
}

/* ---- the page by itself, for explanations ---- */

static const struct {
    const char *name;
    size_t at;
} flags[] = {{"demand", offsetof(struct signals_answer, is_demand)},
             {"idle_gauge", offsetof(struct signals_answer, is_idle_gauge)},
             {"stalled", offsetof(struct signals_answer, is_stalled)},
             {"uncontended", offsetof(struct signals_answer, is_uncontended)},
             {"only_zeros", offsetof(struct signals_answer, is_only_zeros)}};

static bool has_flag(const struct signals_answer *page, size_t i)
{
    bool is_set;
    memcpy(&is_set, (const char *)page + flags[i].at, sizeof(is_set));
    return is_set;
}

static bool was_read(const struct signals_answer *page)
{
    return page->age_s >= 0;
}

void trigger_page_members(const struct signals_feed *feed, const struct signals_answer *page, struct json *out)
{
    json_kv_string(out, "url", feed->url);
    json_kv_string(out, "engine", was_read(page) ? signals_engine_name(page->engine) : NULL);
    json_kv_string(out, "reading", signals_reading_name(page->reading));
    json_kv_maybe(out, "ageSeconds", was_read(page), page->age_s);
    json_kv_maybe(out, "waiting", page->waiting.is_known, page->waiting.value);
    json_kv_maybe(out, "running", page->running.is_known, page->running.value);
    json_kv_maybe(out, "kvCachePercent", page->kv_percent.is_known, page->kv_percent.value);
    json_kv_maybe(out, "peakInFlight", page->in_flight.is_known, page->in_flight.value);
    json_kv_string(out, "model", page->model[0] ? page->model : NULL);
    json_key(out, "flags");
    json_array_begin(out);
    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        if (has_flag(page, i))
            json_string(out, flags[i].name);
    json_array_end(out);
    json_kv_string(out, "error", feed->error[0] ? feed->error : NULL);
}

static void say_maybe(struct buf *out, const char *before, const struct signals_maybe *value, const char *after)
{
    char number[NUM_TEXT_MAX];
    num_format_milli(number, value->value);
    if (value->is_known)
        (void)buf_printf(out, "%s%s%s", before, number, after);
}

void trigger_say_page(const struct signals_feed *feed, const struct signals_answer *page, struct buf *out)
{
    char age[TRIGGER_AGE_MAX];
    trigger_show_age(age, was_read(page) ? llround(page->age_s * (double)NS_PER_S) : -1);
    (void)buf_printf(out, "%s %s%s%s", feed->url, was_read(page) ? signals_engine_name(page->engine) : "",
                     was_read(page) ? ": " : "", age);
    say_maybe(out, ", ", &page->waiting, " waiting");
    say_maybe(out, ", ", &page->running, " running");
    say_maybe(out, ", KV cache ", &page->kv_percent, " %");
    if (page->model[0])
        (void)buf_printf(out, ", busiest model %s", page->model);
    if (feed->error[0])
        (void)buf_printf(out, "; last try: %s", feed->error);
}
