/* The whole: life, asking, and what people and /metrics are told. */
#include "engine/engine.h"

#include "engine/private.h"

#include <assert.h>
#include <stdio.h>

#define SWEEP_NS (5 * NS_PER_S)

static const double seconds_bounds[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5};
static const struct metric_desc scrapes_desc = {.name = "keda_gpu_scaler_engine_scrapes",
                                                .help = "Fetches of engines' metrics pages, by how they went.",
                                                .kind = METRIC_COUNTER,
                                                .labels = {"outcome"}};
static const struct metric_desc seconds_desc = {.name = "keda_gpu_scaler_engine_scrape_seconds",
                                                .help = "Time from the start of a fetch to its end.",
                                                .unit = "seconds",
                                                .kind = METRIC_HISTOGRAM,
                                                .bounds = seconds_bounds,
                                                .n_bounds = ARRAY_LEN(seconds_bounds)};
static const struct metric_desc pages_desc = {.name = "keda_gpu_scaler_engine_pages",
                                              .help = "Engines' metrics pages that are followed, by how they stand.",
                                              .kind = METRIC_GAUGE,
                                              .labels = {"state"}};

static void register_metrics(struct engine *e, struct metrics *metrics)
{
    static const char *const outcomes[] = {
#define X(id, label) label,
        ENGINE_OUTCOMES(X)
#undef X
    };
    static const char *const stands[ENGINE_STANDS] = {"unread", "read", "failing"};
    struct metric_family *scrapes = metric_register(metrics, &scrapes_desc);
    struct metric_family *pages = metric_register(metrics, &pages_desc);
    for (size_t i = 0; i < ARRAY_LEN(outcomes); i++)
        e->outcomes[i] = metric_series(scrapes, &outcomes[i]);
    for (size_t i = 0; i < ARRAY_LEN(stands); i++)
        e->stands[i] = metric_series(pages, &stands[i]);
    e->seconds = metric_only(metric_register(metrics, &seconds_desc));
}

/* An endpoint is a stranger's: it is shown no certificate. */
static void trust(void *context)
{
    struct engine *e = (struct engine *)context;
    struct http_client_tls tls = engine_files_tls(e->files);
    http_client_set_tls(e->clients[0], &tls);
    tls.cert = tls.key = (struct str){0};
    http_client_set_tls(e->clients[1], &tls);
}

static void sweep(void *context)
{
    engine_page_sweep((struct engine *)context);
}

static int start(struct engine *e, const struct engine_config *config, struct err *error)
{
    if (engine_lists_init(&e->lists, config->allow, config->deny, error) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(e->clients); i++)
        if (!(e->clients[i] = http_client_new(e->loop, error)))
            return -1;
    if (!(e->files = engine_files_new(config, trust, e, error)))
        return -1;
    http_client_set_kept(e->clients[0], ENGINE_KEPT_CONNECTIONS);
    trust(e);
    return 0;
}

struct engine *engine_new(const struct engine_config *config, struct err *error)
{
    struct engine *e = mem_new(struct engine);
    e->loop = config->loop;
    e->timeout_ns = config->timeout_ns > 0 ? config->timeout_ns : ENGINE_TIMEOUT_NS;
    e->max_pages[0] = config->max_pages ? config->max_pages : ENGINE_PAGES_MAX;
    e->max_pages[1] = config->max_endpoints ? config->max_endpoints : ENGINE_ENDPOINTS_MAX;
    e->max_at_once = config->max_at_once ? config->max_at_once : ENGINE_AT_ONCE;
    e->is_token_plain = config->is_token_plain;
    e->hosts = map_new(e->max_pages[0] + e->max_pages[1] + 1, free);
    for (size_t i = 0; i < ARRAY_LEN(e->pages); i++)
        e->pages[i] = map_new(e->max_pages[i] + 1, engine_page_free);
    e->sweep = net_timer_new(e->loop, sweep, e);
    register_metrics(e, config->metrics);
    if (start(e, config, error) < 0) {
        engine_free(e);
        return NULL;
    }
    net_timer_start(e->sweep, SWEEP_NS, SWEEP_NS);
    return e;
}

/* ---- asking ---- */

void engine_asks_add(struct engine_asks *asks, struct engine_ask *ask)
{
    if (ask->in) {
        *(ask->next ? &ask->next->prev : &ask->in->last) = ask->prev;
        *(ask->prev ? &ask->prev->next : &ask->in->first) = ask->next;
    }
    ask->in = asks;
    ask->next = NULL;
    if (!asks)
        return;
    ask->prev = asks->last;
    *(asks->last ? &asks->last->next : &asks->first) = ask;
    asks->last = ask;
}

/* It is in some list until here. */
static void ask_free(struct engine_ask *ask)
{
    const struct engine_asks *in = ask->in;
    engine_asks_add(NULL, ask);
    assert(in && in->first != ask);
    net_timer_free(ask->deadline);
    free(ask);
}

/* Whoever is told may ask again, and cancel others that wait to be told. */
static void tell(void *context)
{
    struct engine *e = (struct engine *)context;
    struct engine_asks now = {0};
    while (e->finished.first)
        engine_asks_add(&now, e->finished.first);
    while (now.first) {
        struct engine_ask *ask = now.first;
        void (*done)(void *) = ask->done;
        void *of = ask->context;
        ask_free(ask);
        done(of);
    }
}

static void finish(struct engine_ask *ask)
{
    struct engine *e = ask->engine;
    if (!e->finished.first)
        net_defer(e->loop, tell, e);
    net_timer_stop(ask->deadline);
    ask->page = NULL;
    engine_asks_add(&e->finished, ask);
}

void engine_asks_finish(struct engine *e, struct engine_asks *asks)
{
    (void)e;
    while (asks->first)
        finish(asks->first);
}

/* Its turn never came, or came late. */
static void too_late(void *context)
{
    struct engine_ask *ask = (struct engine_ask *)context;
    struct engine_page *page = ask->page;
    char limit[TIME_DURATION_MAX], text[128];
    time_format_duration(limit, page->engine->timeout_ns);
    bool is_begun = ask->in == &page->begun;
    (void)snprintf(text, sizeof(text),
                   is_begun ? "no complete page within %s, with the time that it waited for its turn"
                            : "no turn within %s: other pages of its host, or of too many other hosts, hang",
                   limit);
    engine_page_set_error(page, text);
    page->feed.last_try_ns = net_now_ns(page->engine->loop);
    finish(ask);
}

struct engine_ask *engine_ask(struct engine *e, const struct engine_want *want, void (*done)(void *context),
                              void *context)
{
    struct engine_page *page = engine_page_get(e, want);
    if (!page)
        return NULL;
    struct engine_ask *ask = mem_new(struct engine_ask);
    *ask = (struct engine_ask){.engine = e, .page = page, .done = done, .context = context};
    ask->deadline = net_timer_new(e->loop, too_late, ask);
    net_timer_start(ask->deadline, e->timeout_ns, 0);
    engine_asks_add(&page->waiting, ask);
    engine_queue_add(page, true);
    return ask;
}

void engine_ask_cancel(struct engine_ask *ask)
{
    ask_free(ask);
}

/* ---- the rest ---- */

void engine_free(struct engine *e)
{
    if (!e)
        return;
    e->max_at_once = 0; /* nothing starts any more */
    for (size_t i = 0; i < ARRAY_LEN(e->pages); i++)
        map_free(e->pages[i]);
    for (struct engine_ask *ask = e->finished.first, *next; ask; ask = next) {
        next = ask->next;
        net_timer_free(ask->deadline);
        free(ask);
    }
    net_defer_cancel(e->loop, e);
    map_free(e->hosts);
    for (size_t i = 0; i < e->readers.len; i++)
        signals_reader_free(e->readers.items[i]);
    vec_fini(&e->readers);
    for (size_t i = 0; i < ARRAY_LEN(e->clients); i++)
        http_client_free(e->clients[i]);
    engine_files_free(e->files);
    engine_lists_fini(&e->lists);
    net_timer_free(e->sweep);
    free(e);
}

void engine_reload(struct engine *e)
{
    engine_files_look(e->files);
}

const char *engine_files_fault(const struct engine *e)
{
    return engine_files_error(e->files);
}

void engine_write_state(const struct engine *e, struct buf *out)
{
    double unread = metric_value(e->stands[ENGINE_UNREAD]), read = metric_value(e->stands[ENGINE_READ]);
    double failing = metric_value(e->stands[ENGINE_FAILING]);
    (void)buf_printf(out, "[%c]engine pages: %.0f read, %.0f failing, %.0f not read yet (information only)\n",
                     failing > 0 ? '-' : '+', read, failing, unread);
    const char *error = engine_files_error(e->files);
    if (*error)
        (void)buf_printf(out, "[-]engine files: %s; the ones before are in use (information only)\n", error);
}
