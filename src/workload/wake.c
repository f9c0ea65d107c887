/* Whether a page that is there without pods shows demand: wakeMetric on the page of wakeEndpoint, a router's or a
 * gateway's. Pages are read by signals/ and fetched by others. */
#include "workload/wake.h"

#include <math.h>
#include <stdio.h>

static const double rise_intervals = 2.5; /* that a rise needs to have two pages */

struct number {
    char text[NUM_TEXT_MAX];
};

static struct number number_of(double value)
{
    struct number n;
    num_format_milli(n.text, value);
    return n;
}

static int64_t later_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void say_unknown(const char *url, const char *why, struct workload_wake *ret)
{
    ret->state = SCALING_WAKE_UNKNOWN;
    (void)snprintf(ret->text, sizeof(ret->text), "wakeEndpoint %s: %s", url, why);
}

static void explain_unknown(const struct trigger *t, const struct signals_feed *feed, const struct signals_answer *page,
                            struct workload_wake *ret)
{
    char why[TRIGGER_TEXT_MAX + 32];
    if (page->reading == SIGNALS_READ_ABSENT)
        (void)snprintf(why, sizeof(why), "no %s on its page", t->wake_metric);
    else if (feed->error[0])
        (void)str_copy(why, sizeof(why), str_of(feed->error));
    else
        (void)str_copy(why, sizeof(why), str_of(signals_reading_sentence(page->reading)));
    say_unknown(feed->url, why, ret);
}

static void judge(const struct trigger *t, struct workload_wake *ret)
{
    bool is_demand = scaling_milli(ret->value) > scaling_milli(ret->threshold);
    ret->state = is_demand ? SCALING_WAKE_ACTIVE : SCALING_WAKE_INACTIVE;
    (void)snprintf(ret->text, sizeof(ret->text), "%s %s %s, %s %s", t->wake_metric, ret->is_counter ? "rose by" : "is",
                   number_of(ret->value).text, is_demand ? "above" : "not above", number_of(ret->threshold).text);
}

void workload_wake(const struct trigger *t, const struct signals_feed *feed, const char *why, int64_t now_ns,
                   struct workload_wake *ret)
{
    *ret = (struct workload_wake){.state = SCALING_WAKE_NONE, .threshold = t->has_activation ? t->activation : 0};
    if (!t->wake_endpoint[0])
        return;
    if (!feed) {
        say_unknown(t->wake_endpoint, why && why[0] ? why : "it is not asked", ret);
        return;
    }
    struct signals_question question = {.signal = SIGNALS_CUSTOM,
                                        .now_ns = now_ns,
                                        .activation_window_ns = t->activation_window_ns,
                                        .max_age_ns = signals_feed_max_age_ns(feed)};
    struct signals_answer page;
    signals_read(feed->history, &question, &page); /* the newest page */
    ret->is_counter = page.is_counter;
    if (ret->is_counter) {
        question.window_ns = later_of(t->activation_window_ns, llround(rise_intervals * (double)feed->interval_ns));
        signals_read(feed->history, &question, &page);
    }
    if (page.reading != SIGNALS_READ_OK) {
        explain_unknown(t, feed, &page, ret);
        return;
    }
    ret->value = ret->is_counter ? page.value * page.span_s : page.value;
    judge(t, ret);
}
