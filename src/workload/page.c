/* What a pod's own metrics page says of it, as scaling takes it, and why it says nothing. It fetches no page and reads
 * no exposition text: the hub's feeds and signals/ do. It also decides whether the pods of an engine's profile are
 * measured by their pages or by their GPUs. */
#include "workload/look.h"

#include <math.h>

/* The first fetch is made within this time; before that nothing has failed. */
#define FIRST_FETCH_NS (13 * NS_PER_S)
/* Nothing but zeros for so long after Ready: some servers publish their first numbers late (case O30). */
static const double zeros_s = 30;
/* Pages that were there are waited for so long before GPUs are read in their place. */
#define PAGES_KEPT_NS (15 * 60 * NS_PER_S)
/* A page that was asked for so soon after Ready has seen all since then. */
#define FIRST_PAGE_NS (5 * NS_PER_S)
enum { REASON_BYTES = 1024 };

bool workload_reads_pages(const struct trigger *t)
{
    return trigger_metric_is_engine(t->metric) || t->prefers_engine;
}

enum signals_id workload_signal(const struct trigger *t)
{
    return trigger_metric_is_engine(t->metric) ? trigger_metric_signal(t->metric) : SIGNALS_KV_CACHE_USAGE;
}

/* ---- one question to a page ---- */

static int64_t ns_before(const struct look *look, double age_s)
{
    return look->now_ns - (int64_t)(fmax(0, age_s) * (double)NS_PER_S);
}

/* An older page was written by the server's life before this one, or by another pod that had the address. */
static int64_t started_ns(const struct look *look, const struct scaling_pod *pod)
{
    return ns_before(look, pod->started_age_s.is_known ? pod->started_age_s.value : pod->created_age_s);
}

static int64_t ready_ns(const struct look *look, const struct workload_pod *p, const struct scaling_pod *pod)
{
    return workload_is_change_seen(look, p, pod) ? p->ready_seen_ns : ns_before(look, workload_ready_age_s(pod));
}

static void ask_signal(const struct look *look, enum signals_id signal, const struct signals_feed *feed,
                       int64_t since_ns, struct signals_answer *ret)
{
    struct signals_question question = {.signal = signal,
                                        .now_ns = look->now_ns,
                                        .window_ns = look->trigger->window_ns,
                                        .activation_window_ns = look->trigger->activation_window_ns,
                                        .since_ns = since_ns,
                                        .max_age_ns = signals_feed_max_age_ns(feed)};
    *ret = (struct signals_answer){.reading = SIGNALS_READ_NEVER, .age_s = -1, .missing = ""};
    if (feed->history)
        signals_read(feed->history, &question, ret);
}

static void ask_page(const struct look *look, const struct signals_feed *feed, int64_t since_ns,
                     struct signals_answer *ret)
{
    ask_signal(look, workload_signal(look->trigger), feed, since_ns, ret);
}

/* Short requests come and go between two pages, and no gauge shows them; that some ended shows that there was one. */
static void count_ended(const struct look *look, const struct signals_feed *feed, int64_t since_ns,
                        struct signals_answer *page)
{
    if (!page->in_flight.is_known || page->in_flight.value > 0)
        return;
    struct signals_answer ended;
    ask_signal(look, SIGNALS_REQUEST_RATE, feed, since_ns, &ended);
    if (ended.peak.is_known && ended.peak.value > 0)
        page->in_flight.value = 1;
}

static int64_t later_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* What was said before an outage, or in another life of the server, is no value after it: the page begins anew, as for
 * a hub that has just started. */
static void note_outage(const struct signals_feed *feed, const struct signals_answer *page, struct pod_memory *m)
{
    bool has_past = page->age_s >= 0; /* one that was never read has nothing from before */
    bool is_lost = page->reading == SIGNALS_READ_STALE || (page->reading == SIGNALS_READ_NEVER && has_past);
    if (m->is_page_lost && !is_lost)
        m->page_since_ns = signals_history_newest_ns(feed->history);
    m->is_page_lost = is_lost;
}

static void read_now(const struct look *look, const struct signals_feed *feed, const struct scaling_pod *pod,
                     struct pod_memory *m, struct signals_answer *ret)
{
    int64_t start_ns = started_ns(look, pod);
    ask_page(look, feed, later_of(start_ns, m->page_since_ns), ret);
    bool was_lost = m->is_page_lost;
    note_outage(feed, ret, m);
    if (was_lost && !m->is_page_lost)
        ask_page(look, feed, later_of(start_ns, m->page_since_ns), ret);
    count_ended(look, feed, later_of(start_ns, m->page_since_ns), ret);
}

/* ---- why it says nothing ---- */

static const char *why_not_yet(const struct look *look)
{
    return workload_signal(look->trigger) == SIGNALS_TOKENS_WAITING
               ? "says that requests wait, and none has ended yet that would tell how long they are"
               : "was read once, and a rate needs two pages";
}

static void say_unread(const struct look *look, const struct signals_feed *feed, const struct signals_answer *page,
                       struct buf *text)
{
    (void)buf_printf(text, "its page %s", feed->url);
    if (page->reading == SIGNALS_READ_ABSENT)
        (void)buf_printf(text, " (%s) has no %s: no %s", signals_engine_name(page->engine),
                         signals_name(workload_signal(look->trigger)),
                         page->missing[0] ? page->missing : "metric that it is read from");
    else if (page->reading == SIGNALS_READ_NOT_YET)
        (void)buf_printf(text, " %s", why_not_yet(look));
    else if (page->age_s >= 0)
        (void)buf_printf(text, " was last read %.0f s ago", page->age_s);
    else if (!feed->error[0])
        (void)buf_append_str(text, " has not been read yet");
    bool is_failing = feed->error[0] && page->reading != SIGNALS_READ_ABSENT;
    if (is_failing)
        (void)buf_printf(text, "%s%s", page->age_s >= 0 ? "; " : ": ", feed->error);
}

static void say_pageless(const struct workload_pod *p, const char *why, struct buf *text)
{
    if (p->worker > 0)
        (void)buf_printf(text, "it is worker %d of its group, and only a leader has a page", (int)p->worker);
    else if (!p->ip[0])
        (void)buf_append_str(text, "it has no address yet");
    else
        (void)buf_printf(text, "its page cannot be asked for%s%s", why && why[0] ? ": " : "", why ? why : "");
}

static void explain_page(const struct look *look, struct workload_input *input, const char *why)
{
    BUF_AUTO struct buf text;
    buf_init(&text, REASON_BYTES);
    if (!input->feed)
        say_pageless(input->pod, why, &text);
    else if (input->page->reading != SIGNALS_READ_OK)
        say_unread(look, input->feed, input->page, &text);
    input->page_text = text.len > 0 ? workload_keep_text(look, &text) : "";
}

/* ---- which page ---- */

static const struct signals_feed *find_feed(const struct look *look, const struct workload_pod *p, const char **ret_why)
{
    struct workload_place place = {.ns = p->ns,
                                   .pod = p->name,
                                   .ip = p->ip,
                                   .annotated_port = p->annotated_port,
                                   .annotated_path = p->annotated_path,
                                   .annotated_scheme = p->annotated_scheme,
                                   .ports = p->ports.items,
                                   .n_ports = p->ports.len};
    *ret_why = NULL;
    if (!look->fleet->page || !p->ip[0] || p->worker > 0)
        return NULL;
    return look->fleet->page(look->fleet->context, &place, look->trigger, ret_why);
}

bool workload_find_page(const struct look *look, size_t index, const struct scaling_pod *pod, struct pod_memory *m)
{
    struct workload_input *input = &look->inputs[index];
    if (!scaling_ought_to_be_read(&look->rules, pod)) /* a server that loads answers nobody */
        return true;
    const char *why;
    input->feed = find_feed(look, input->pod, &why);
    if (!input->feed)
        m->page_asked_ns = -1;
    else if (m->page_asked_ns < 0)
        m->page_asked_ns = look->now_ns;
    if (input->feed) {
        struct signals_answer *page = (struct signals_answer *)arena_alloc(look->arena, sizeof(*page));
        if (!page)
            return false;
        read_now(look, input->feed, pod, m, page);
        input->page = page;
    }
    explain_page(look, input, why);
    return true;
}

const struct signals_feed *workload_find_wake(const struct trigger *t, const struct workload_facts *facts,
                                              const struct workload_fleet *fleet, const char **ret_why)
{
    *ret_why = NULL;
    if (!t->wake_endpoint[0])
        return NULL;
    *ret_why = "pages of endpoints are not fetched here";
    return fleet->endpoint ? fleet->endpoint(fleet->context, t->wake_endpoint, facts->ns, t->wake_metric, t, ret_why)
                           : NULL;
}

/* ---- pages or GPUs ---- */

static void set_mode(struct look *look, enum workload_mode mode)
{
    look->mode = mode;
    if (mode == WORKLOAD_BY_GPU)
        return;
    enum signals_id signal = workload_signal(look->trigger);
    enum signals_kind kind = signals_kind_of(signal);
    static const double demand_ceiling = 200; /* of the KV cache with what waits for it */
    look->rules.is_engine = true;
    look->rules.is_memory = false;
    look->rules.is_weighted = kind == SIGNALS_LATENCY;
    look->rules.ceiling = signal == SIGNALS_KV_CACHE_USAGE ? demand_ceiling : 0;
}

/* A page that nobody had to fetch yet has not failed. */
static bool is_waited_for(const struct look *look, const struct signals_feed *feed, const struct pod_memory *m)
{
    return feed->last_try_ns == 0 && look->now_ns - m->page_asked_ns < FIRST_FETCH_NS;
}

void workload_choose_mode(struct look *look)
{
    struct workload_memory *m = look->memory;
    if (trigger_metric_is_engine(look->trigger->metric)) {
        set_mode(look, WORKLOAD_BY_PAGE);
        return;
    }
    size_t n_tried = 0, n_untried = 0;
    for (size_t i = 0; look->trigger->prefers_engine && i < look->facts->n_pods; i++) {
        const struct workload_input *input = &look->inputs[i];
        if (!input->feed)
            continue;
        n_tried += input->feed->last_try_ns > 0;
        n_untried += is_waited_for(look, input->feed, workload_pod_memory(m, input->pod));
        if (input->page->reading == SIGNALS_READ_OK)
            m->paged_ns = look->now_ns;
    }
    bool was_paged = m->paged_ns >= 0 && look->now_ns - m->paged_ns <= PAGES_KEPT_NS;
    bool is_untried = n_untried > 0 && n_tried == 0; /* nobody can say yet that there are no pages */
    set_mode(look, was_paged || is_untried ? WORKLOAD_BY_PAGE : WORKLOAD_BY_GPU);
}

/* ---- the load ---- */

static struct scaling_maybe maybe(struct signals_maybe value)
{
    return (struct scaling_maybe){.is_known = value.is_known, .value = value.value};
}

/* So much that nobody takes replicas away, whatever the other pods say. */
static double most_of(const struct look *look, const struct scaling_pod *pod)
{
    double all = look->rules.target * fmax(1, (double)look->facts->spec);
    return fmax(pod->load.window.value, fmax(look->rules.ceiling, all));
}

static bool is_fresh(const struct look *look, const struct scaling_pod *pod)
{
    return pod->is_ready && workload_ready_age_s(pod) < look->rules.window_s;
}

/* Nothing has failed, and what is to be known soon may be anything of a pod that has worked for long. */
static void wait_for(const struct look *look, struct scaling_pod *pod)
{
    pod->reading = SCALING_READ_NOT_YET;
    if (!is_fresh(look, pod))
        pod->bound = workload_known(most_of(look, pod));
}

/* Was the page asked for from Ready on, so that its mean since then is one? */
static bool has_since_ready(const struct look *look, const struct workload_input *input, const struct scaling_pod *pod,
                            const struct pod_memory *m)
{
    int64_t late_ns = m->page_asked_ns - input->pod->ready_seen_ns;
    return workload_is_change_seen(look, input->pod, pod) && late_ns <= FIRST_PAGE_NS;
}

/* It is read, and what it says is not to be acted on yet. Nothing has failed. */
static void leave_undecided(const struct look *look, struct workload_input *input, struct scaling_pod *pod,
                            const char *why)
{
    pod->reading = is_fresh(look, pod) ? SCALING_READ_NOT_YET : SCALING_READ_UNDECIDED;
    pod->bound = workload_known(most_of(look, pod));
    BUF_AUTO struct buf text;
    buf_init(&text, REASON_BYTES);
    (void)buf_printf(&text, "its page %s %s", input->feed->url, why);
    input->page_text = workload_keep_text(look, &text);
}

/* A pod that became Ready a moment ago: its mean since then, and whether it has shown anything at all (case O30). */
static void read_fresh(const struct look *look, struct workload_input *input, struct scaling_pod *pod,
                       const struct pod_memory *m)
{
    struct signals_answer since_ready;
    bool is_new = is_fresh(look, pod), is_early = pod->is_ready && workload_ready_age_s(pod) < zeros_s;
    if (!is_new && !is_early)
        return;
    ask_page(look, input->feed, ready_ns(look, input->pod, pod), &since_ready);
    bool is_read = since_ready.reading == SIGNALS_READ_OK;
    if (is_new && is_read && has_since_ready(look, input, pod, m))
        pod->load.since_ready = workload_known(since_ready.value);
    else if (is_new)
        pod->load.since_ready = (struct scaling_maybe){.is_known = false};
    if (is_read && since_ready.is_only_zeros && is_early)
        leave_undecided(look, input, pod,
                        "has shown nothing but zeros since it became Ready: servers may publish late");
}

/* A hub that has just begun to read a page, or reads it again, knows a part of the window only. What another hub makes
 * of all of it may be anything, so this one must hold (2.8). A page that was there from Ready on has no more to tell.
 */
static void read_short_past(const struct look *look, struct workload_input *input, struct scaling_pod *pod,
                            const struct pod_memory *m)
{
    int64_t oldest_ns = later_of(signals_history_oldest_ns(input->feed->history), m->page_since_ns);
    int64_t first_due_ns = input->pod->ready_seen_ns + FIRST_PAGE_NS + input->feed->interval_ns;
    bool is_from_ready = workload_is_change_seen(look, input->pod, pod) && oldest_ns <= first_due_ns;
    if (!is_fresh(look, pod) && !is_from_ready && look->now_ns - oldest_ns < look->trigger->window_ns)
        leave_undecided(look, input, pod, "has not been read for as long as the window yet");
}

/* With a threshold in the metadata the signal itself is compared with it; else any request is work. */
struct scaling_maybe workload_in_flight(const struct look *look, const struct signals_answer *page)
{
    return look->trigger->has_activation || !page ? (struct scaling_maybe){.is_known = false} : maybe(page->in_flight);
}

static void take_load(const struct look *look, const struct signals_answer *page, struct scaling_pod *pod)
{
    pod->reading = SCALING_READ_OK;
    pod->load = (struct scaling_load){.window = workload_known(page->value),
                                      .since_ready = workload_known(page->value),
                                      .peak = maybe(page->peak),
                                      .weight = page->weight,
                                      .in_flight = workload_in_flight(look, page)};
}

bool workload_read_page(const struct look *look, size_t index, struct scaling_pod *pod, const struct pod_memory *m)
{
    struct workload_input *input = &look->inputs[index];
    bool has_rule = true;
    pod->reading = SCALING_READ_MISSING;
    if (input->feed) {
        switch (input->page->reading) {
        case SIGNALS_READ_OK:
            take_load(look, input->page, pod);
            read_short_past(look, input, pod, m);
            read_fresh(look, input, pod, m);
            break;
        case SIGNALS_READ_NEVER:
            if (is_waited_for(look, input->feed, m))
                wait_for(look, pod);
            break;
        case SIGNALS_READ_NOT_YET:
            wait_for(look, pod);
            break;
        case SIGNALS_READ_ABSENT:
            pod->reading = SCALING_READ_UNSUPPORTED;
            has_rule = trigger_metric_is_engine(look->trigger->metric);
            break;
        case SIGNALS_READ_STALE:
        case SIGNALS_READING_COUNT:
            break;
        }
    }
    if (has_rule)
        input->text = input->page_text;
    return has_rule;
}
