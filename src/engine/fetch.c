/* One fetch of one page: what is sent, what is taken, and how it went, in a sentence with the next step. A page that is
 * not whole is none: half of one could say that nobody waits. */
#include "engine/private.h"

#include <stdio.h>
#include <string.h>

enum { REFUSAL_BYTES_MAX = 64 << 10 };

/* What to do about it; 401 and 403 depend on the token. */
static const char *const next_steps[ENGINE_OUTCOME_COUNT] = {
    [ENGINE_ADDRESS_REFUSED] = "name an address of the engine itself",
    [ENGINE_UNREACHABLE] = "is the engine up, and is that its page's port (enginePort, annotation prometheus.io/port)?",
    [ENGINE_TIMEOUT] = "the engine is stuck or slow (--engine-timeout), or a NetworkPolicy drops the packets",
    [ENGINE_CUT_SHORT] = "half a page is not read",
    [ENGINE_HTTP_3XX] = "redirects are not followed: name the page's own address",
    [ENGINE_HTTP_404] = "start SGLang with --enable-metrics, or give enginePath or the annotation prometheus.io/path",
    [ENGINE_HTTP_4XX] = "are path and scheme (enginePath, engineScheme) right?",
    [ENGINE_HTTP_5XX] = "the engine is starting or failing; llama.cpp says 501 unless it is started with --metrics",
    [ENGINE_HTTP_OTHER] = "only 200 is a page",
};

/* Nothing that is said of pods moves an endpoint: its URL does. */
static const char *const next_steps_of_endpoint[ENGINE_OUTCOME_COUNT] = {
    [ENGINE_UNREACHABLE] = "is it up, and is that its page's port?",
    [ENGINE_HTTP_404] = "is that the page's path? SGLang has one only with --enable-metrics",
    [ENGINE_HTTP_4XX] = "are path and scheme right?",
};

static void next_step_for_token(const struct engine_page *page, struct buf *out)
{
    const char *path = engine_files_token_path(page->engine->files);
    if (page->is_endpoint)
        (void)buf_append_str(out, "endpoints are asked without a token: name a page that needs none");
    else if (page->has_token)
        (void)buf_printf(out, "the token in %s is not accepted%s%s", path,
                         *engine_files_error(page->engine->files) ? ": " : "", engine_files_error(page->engine->files));
    else if (path)
        (void)buf_append_str(out, "the token is sent over https only: set engineScheme or the annotation "
                                  "prometheus.io/scheme to https, or --engine-token-plain");
    else
        (void)buf_append_str(out, "the page wants a token: give its file with --engine-token-file");
}

/* A pod is asked at its address, which few certificates name. */
static const char *next_step(const struct engine_page *page, enum engine_outcome outcome)
{
    if (outcome == ENGINE_UNREACHABLE && str_has_prefix(str_of(page->url), "https:"))
        return "is the engine up, is that its page's port, and does it speak https there, with a certificate for that "
               "very address by somebody trusted (--engine-ca-file)?";
    if (page->is_endpoint && next_steps_of_endpoint[outcome])
        return next_steps_of_endpoint[outcome];
    return next_steps[outcome];
}

static void say(const struct engine_page *page, enum engine_outcome outcome, const struct err *error, struct buf *out)
{
    if (error)
        (void)buf_append_str(out, error->text);
    else
        (void)buf_printf(out, "HTTP %d", page->status);
    if (outcome == ENGINE_HTTP_401 || outcome == ENGINE_HTTP_403) {
        (void)buf_append_str(out, "; ");
        next_step_for_token(page, out);
    } else if (next_step(page, outcome)) {
        (void)buf_printf(out, "; %s", next_step(page, outcome));
    }
}

static enum engine_outcome outcome_of_status(int status)
{
    switch (status) {
    case 401:
        return ENGINE_HTTP_401;
    case 403:
        return ENGINE_HTTP_403;
    case 404:
        return ENGINE_HTTP_404;
    default:
        break;
    }
    static const enum engine_outcome hundreds[] = {[3] = ENGINE_HTTP_3XX, [4] = ENGINE_HTTP_4XX, [5] = ENGINE_HTTP_5XX};
    return status >= 300 && status < 600 ? hundreds[status / 100] : ENGINE_HTTP_OTHER;
}

static enum engine_outcome outcome_of_error(const struct engine_page *page, const struct err *error)
{
    if (error->class == ERR_PERMISSION_DENIED)
        return ENGINE_ADDRESS_REFUSED;
    if (error->class == ERR_DEADLINE_EXCEEDED)
        return ENGINE_TIMEOUT;
    return page->status == 200 ? ENGINE_CUT_SHORT : ENGINE_UNREACHABLE;
}

static enum engine_outcome outcome_of_reader(const struct err *fault)
{
    switch ((int)fault->class) {
    case ERR_RESOURCE_EXHAUSTED:
        return ENGINE_TOO_LARGE;
    case ERR_NOT_FOUND:
        return ENGINE_NO_RULE;
    default:
        return ENGINE_NOT_A_PAGE;
    }
}

/* ---- the reader: a few are kept, without a name of a metric ---- */

static struct signals_reader *take_reader(struct engine_page *page)
{
    struct engine *e = page->engine;
    struct signals_reader *reader = !*page->metric && e->readers.len > 0 ? e->readers.items[--e->readers.len] : NULL;
    if (!reader)
        reader = signals_reader_new(*page->metric ? page->metric : NULL);
    signals_reader_begin(reader);
    return reader;
}

static void drop_reader(struct engine_page *page)
{
    struct engine *e = page->engine;
    if (page->reader && !*page->metric && e->readers.len < e->max_at_once)
        vec_push(&e->readers, page->reader);
    else
        signals_reader_free(page->reader);
    page->reader = NULL;
}

/* ---- what http tells ---- */

static void on_head(void *context, const struct http_head *head)
{
    ((struct engine_page *)context)->status = head->status;
}

static int on_body(void *context, const char *bytes, size_t len)
{
    struct engine_page *page = (struct engine_page *)context;
    page->n_bytes += len;
    if (page->status != 200)
        return page->n_bytes > REFUSAL_BYTES_MAX ? -1 : 0;
    if (len == 0)
        return 0;
    page->last_byte = bytes[len - 1];
    if (!page->reader)
        page->reader = take_reader(page);
    page->has_fault = signals_reader_feed(page->reader, bytes, len, &page->fault) < 0;
    return page->has_fault ? -1 : 0;
}

/* The answer came whole. */
static enum engine_outcome read_page(struct engine_page *page)
{
    if (!page->reader)
        page->reader = take_reader(page); /* an empty page */
    struct signals_page *read = signals_reader_end(page->reader, &page->fault);
    page->has_fault = !read;
    if (!read)
        return outcome_of_reader(&page->fault);
    if (page->last_byte != '\n') { /* each line of the format ends; without a length nothing else tells */
        signals_page_free(read);
        (void)err_set(&page->fault, ERR_UNAVAILABLE, "its last line has no end");
        page->has_fault = true;
        return ENGINE_CUT_SHORT;
    }
    signals_history_add(page->history, read, net_now_ns(page->engine->loop));
    return ENGINE_OK;
}

static enum engine_outcome judge(struct engine_page *page, const struct err *error)
{
    if (page->has_fault)
        return outcome_of_reader(&page->fault);
    if (page->status != 0 && page->status != 200 && !(error && error->class == ERR_DEADLINE_EXCEEDED))
        return outcome_of_status(page->status);
    if (!error)
        return read_page(page);
    page->fault = *error;
    page->has_fault = true;
    if (error->class == ERR_DEADLINE_EXCEEDED) {
        char limit[TIME_DURATION_MAX];
        time_format_duration(limit, page->engine->timeout_ns);
        (void)err_set(&page->fault, ERR_DEADLINE_EXCEEDED, "no complete page within %s", limit);
    }
    return outcome_of_error(page, error);
}

static void on_done(void *context, const struct err *error)
{
    struct engine_page *page = (struct engine_page *)context;
    struct engine *e = page->engine;
    struct buf text BUF_AUTO;
    buf_init(&text, ENGINE_ERROR_MAX);
    page->fetch = NULL;
    enum engine_outcome outcome = judge(page, error);
    if (outcome != ENGINE_OK)
        say(page, outcome, page->has_fault ? &page->fault : NULL, &text);
    drop_reader(page);
    engine_page_tell(page, outcome, buf_cstr(&text));
    if (outcome == ENGINE_HTTP_401)
        engine_files_look(e->files);
    engine_asks_finish(e, &page->begun);
    engine_queue_release(page);
    engine_page_schedule(page);
    if (page->waiting.first)
        engine_queue_add(page, true);
}

static const char *address_fault(void *context, const char *address)
{
    const struct engine_page *page = (const struct engine_page *)context;
    return engine_lists_fault(&page->engine->lists, address);
}

/* A page that is sent as it is costs the engine and us less than one that is packed. */
void engine_fetch_start(struct engine_page *page)
{
    struct engine *e = page->engine;
    const char *token = page->is_endpoint ? NULL : engine_files_header(e->files);
    bool is_tls = str_has_prefix(str_of(page->url), "https:");
    page->has_token = token && (is_tls || e->is_token_plain);
    const char *headers[] = {"Accept: text/plain;version=0.0.4,*/*;q=0.1", "Accept-Encoding: identity",
                             page->has_token ? token : NULL, NULL};
    page->status = 0;
    page->n_bytes = 0;
    page->last_byte = '\0';
    page->has_fault = false;
    page->began_ns = net_now_ns(e->loop);
    while (page->waiting.first)
        engine_asks_add(&page->begun, page->waiting.first);
    page->fetch =
        http_fetch_start(e->clients[page->is_endpoint],
                         &(struct http_fetch_config){.url = page->url,
                                                     .headers = headers,
                                                     .timeout_ns = e->timeout_ns,
                                                     .address_fault = page->is_endpoint ? address_fault : NULL,
                                                     .head = on_head,
                                                     .body = on_body,
                                                     .done = on_done,
                                                     .context = page});
}

void engine_fetch_cancel(struct engine_page *page)
{
    http_fetch_cancel(page->fetch);
    page->fetch = NULL;
    drop_reader(page);
}
