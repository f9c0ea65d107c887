/* Listeners, the clock, and the scenario's file. */
#include "enginesim/host.h"

#include "enginesim/page.h"
#include "enginesim/wire.h"

#include "http/http.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { PAGE_BYTES_MAX = SCRIPT_PAD_MAX + (1 << 20) };
/* The file is looked at so often; models go on by themselves so often, so that none has hours to catch up with. */
#define LOOK_NS  (50 * NS_PER_MS)
#define AWAKE_NS NS_PER_S

/* One simulated server. */
struct site {
    struct host *host;
    struct model model;
    struct wire wire;
    struct net_gets *gets;
    struct http_server *http;
    struct net_tls *tls;
    struct net_listener *listener;
    char path[256];
    struct buf frozen; /* the page that FREEZE shows; empty: not frozen */
    bool is_wanted;    /* by the scenario that is being taken over */
};

struct host {
    struct net_loop *loop;
    struct metrics *metrics;
    char path[PATH_MAX];
    struct file_stamp stamp;
    bool is_missing;
    struct script *script;
    struct net_timer *timer;
    int64_t epoch_ns, advanced_ns;
    double wall_s; /* since 1970 at the epoch */
    double zero_s; /* when the scenario's time was 0 */
    struct site **sites;
    size_t n_sites;
};

static double host_now_s(const struct host *h)
{
    return (double)(net_now_ns(h->loop) - h->epoch_ns) * 1e-9;
}

/* ---- answers ---- */

static void freeze_or_thaw(struct site *site, double now_s)
{
    bool is_frozen = model_fault(&site->model, SCRIPT_FAULT_FREEZE, now_s) != NULL;
    if (!is_frozen)
        buf_reset(&site->frozen);
    else if (site->frozen.len == 0)
        page_write(&site->model, site->host->wall_s, &site->frozen);
}

static void write_page(void *context, struct buf *out)
{
    struct site *site = (struct site *)context;
    double now_s = host_now_s(site->host);
    model_advance(&site->model, now_s);
    freeze_or_thaw(site, now_s);
    if (site->frozen.len)
        (void)buf_append(out, site->frozen.data, site->frozen.len);
    else
        page_write(&site->model, site->host->wall_s, out);
}

static enum script_fault_kind judge(void *context)
{
    const struct site *site = (const struct site *)context;
    double now_s = host_now_s(site->host);
    for (int kind = 0; kind < SCRIPT_FAULT_COUNT; kind++) {
        bool is_of_engine = kind == SCRIPT_FAULT_FREEZE || kind == SCRIPT_FAULT_SLOW || kind == SCRIPT_FAULT_CANCEL;
        if (!is_of_engine && model_fault(&site->model, (enum script_fault_kind)kind, now_s))
            return (enum script_fault_kind)kind;
    }
    return SCRIPT_FAULT_COUNT;
}

static const char *token_of(void *context)
{
    return ((const struct site *)context)->model.server->token;
}

static const char html_page[] = "<!DOCTYPE html>\n<html><head><title>Chat</title></head>\n"
                                "<body><h1>Welcome</h1><p>This is not the page you look for.</p></body></html>\n";

static void answer_page(void *context, const struct net_get_request *request, struct net_get_response *response)
{
    struct site *site = (struct site *)context;
    enum script_fault_kind kind = judge(site);
    if (!str_equals(request->path, site->path)) {
        response->status = 404; /* it was the page's path before the scenario was rewritten */
        return;
    }
    buf_fini(&response->body);
    buf_init(&response->body, PAGE_BYTES_MAX);
    response->content_type = "text/plain; version=0.0.4; charset=utf-8";
    if (kind == SCRIPT_FAULT_STATUS) {
        response->status = (int)model_fault(&site->model, kind, host_now_s(site->host))->code;
        response->content_type = "text/plain; charset=utf-8";
        (void)buf_append_str(&response->body, "a simulated fault\n");
    } else if (kind == SCRIPT_FAULT_HTML) {
        response->content_type = "text/html; charset=utf-8";
        (void)buf_append_str(&response->body, html_page);
    } else if (kind != SCRIPT_FAULT_EMPTY) {
        write_page(site, &response->body);
        if (site->model.server->is_gzipped && http_accepts_gzip(request->accept_encoding) &&
            http_gzip(&response->body) == 0)
            response->content_encoding = "gzip";
    }
}

static void answer_state(void *context, const struct net_get_request *request, struct net_get_response *response)
{
    struct site *site = (struct site *)context;
    (void)request;
    model_advance(&site->model, host_now_s(site->host));
    response->content_type = "application/json";
    page_write_state(&site->model, &response->body);
}

/* ---- sites ---- */

static void free_site(struct site *site)
{
    net_listener_free(site->listener);
    net_tls_free(site->tls);
    http_server_free(site->http);
    net_gets_free(site->gets);
    model_fini(&site->model);
    buf_fini(&site->frozen);
    free(site);
}

static void serve_paths(struct site *site, const char *path)
{
    if (!strcmp(site->path, path))
        return;
    (void)str_copy(site->path, sizeof(site->path), str_of(path));
    net_gets_add(site->gets, site->path, answer_page, site);
}

/* A file's place: beside the scenario unless its path is absolute. */
static int find_beside(const struct host *h, const char *path, char out[PATH_MAX], struct err *e)
{
    const char *slash = strrchr(h->path, '/');
    int len = path[0] == '/' || !slash ? snprintf(out, PATH_MAX, "%s", path)
                                       : snprintf(out, PATH_MAX, "%.*s/%s", (int)(slash - h->path), h->path, path);
    return len < 0 || len >= PATH_MAX ? err_set(e, ERR_INVALID_ARGUMENT, "%.100s: the path is too long", path) : 0;
}

static struct net_tls *load_tls(struct host *h, const struct script_server *server, struct err *e)
{
    char cert[PATH_MAX], key[PATH_MAX];
    if (find_beside(h, server->tls_cert, cert, e) < 0 || find_beside(h, server->tls_key, key, e) < 0)
        return NULL;
    return net_tls_server_new(h->loop, &(struct net_tls_files){.cert = cert, .key = key}, e);
}

static struct site *new_site(struct host *h, const struct script_server *server, uint64_t seed, struct err *e)
{
    struct site *site = mem_new(struct site);
    site->host = h;
    model_init(&site->model, server, seed, host_now_s(h), h->zero_s);
    buf_init(&site->frozen, PAGE_BYTES_MAX);
    site->gets = net_gets_new();
    net_gets_add(site->gets, "/state", answer_state, site);
    serve_paths(site, server->path);
    site->http = http_server_new(site->gets, h->metrics);
    site->wire = (struct wire){.server = http_server_protocol(site->http),
                               .path = site->path,
                               .token = token_of,
                               .judge = judge,
                               .page = write_page,
                               .context = site};
    wire_init(&site->wire);
    bool is_fine = !server->tls_cert || (site->tls = load_tls(h, server, e)) != NULL;
    const struct net_listen_config config = {
        .address = server->listen, .tls = site->tls, .http1 = &site->wire.protocol};
    site->listener = is_fine ? net_listen(h->loop, &config, e) : NULL;
    if (!site->listener) {
        free_site(site);
        return NULL;
    }
    return site;
}

static struct site *find_site(const struct host *h, const struct script_server *server)
{
    for (size_t i = 0; i < h->n_sites; i++)
        if (!strcmp(h->sites[i]->model.server->listen, server->listen) && !h->sites[i]->is_wanted)
            return h->sites[i];
    return NULL;
}

/* Before any model is moved over: every new address must be had, or nothing changes. */
static int open_new(struct host *h, const struct script *script, struct site **fresh, struct err *e)
{
    for (size_t i = 0; i < h->n_sites; i++)
        h->sites[i]->is_wanted = false;
    for (size_t i = 0; i < script->n_servers; i++) {
        struct site *site = find_site(h, &script->servers[i]);
        if (site)
            site->is_wanted = true;
        else if (!(fresh[i] = new_site(h, &script->servers[i], curve_hash(script->seed + i), e)))
            return -1;
    }
    return 0;
}

static void keep_or_start_anew(struct host *h, struct site *site, const struct script_server *server, uint64_t seed)
{
    double now_s = host_now_s(h);
    model_advance(&site->model, now_s);
    bool is_other = site->model.server->engine != server->engine;
    if (is_other) {
        model_fini(&site->model);
        model_init(&site->model, server, seed, now_s, h->zero_s);
    } else {
        model_replace(&site->model, server, h->zero_s);
    }
    serve_paths(site, server->path);
}

/* Take over a script: it is the host's from here on, or freed on failure. */
static int play(struct host *h, struct script *script, struct err *e)
{
    MEM_AUTO void *memory = mem_new_array(script->n_servers + 1, sizeof(struct site *));
    struct site **fresh = (struct site **)memory;
    double old_zero_s = h->zero_s;
    if (script->restart_clock)
        h->zero_s = host_now_s(h);
    if (open_new(h, script, fresh, e) < 0) {
        for (size_t i = 0; i < script->n_servers; i++)
            if (fresh[i])
                free_site(fresh[i]);
        h->zero_s = old_zero_s;
        script_free(script);
        return -1;
    }
    struct site **sites = (struct site **)mem_new_array(script->n_servers + 1, sizeof(*sites));
    for (size_t i = 0; i < h->n_sites; i++)
        if (!h->sites[i]->is_wanted)
            free_site(h->sites[i]);
        else
            for (size_t k = 0; k < script->n_servers; k++)
                if (!fresh[k] && !sites[k] && !strcmp(script->servers[k].listen, h->sites[i]->model.server->listen)) {
                    sites[k] = h->sites[i];
                    keep_or_start_anew(h, sites[k], &script->servers[k], curve_hash(script->seed + k));
                    break;
                }
    for (size_t k = 0; k < script->n_servers; k++)
        sites[k] = fresh[k] ? fresh[k] : sites[k];
    free(h->sites);
    h->sites = sites;
    h->n_sites = script->n_servers;
    script_free(h->script);
    h->script = script;
    return 0;
}

/* ---- the scenario's file ---- */

static int read_beside(void *context, const char *path, struct buf *out, struct err *e)
{
    const struct host *h = (const struct host *)context;
    char full[PATH_MAX];
    return find_beside(h, path, full, e) < 0 ? -1 : file_read(full, out, e);
}

static int load(struct host *h, struct err *e)
{
    BUF_AUTO struct buf text;
    buf_init(&text, SCENE_TEXT_MAX);
    const struct script_source source = {.name = h->path, .read_file = read_beside, .context = h};
    if (file_read(h->path, &text, e) < 0)
        return -1;
    struct script *script = script_parse(&source, (struct str){text.data ? text.data : "", text.len}, e);
    return script ? play(h, script, e) : -1;
}

/* A rewritten file is played from now on; a bad one is reported once and not played. */
static void look_for_change(struct host *h)
{
    struct file_stamp stamp;
    struct err e = {0};
    bool is_missing = file_stamp(h->path, &stamp) < 0;
    if (is_missing && !h->is_missing)
        (void)fprintf(stderr, "enginesim: %s: the file is gone; the old scenario stays\n", h->path);
    bool is_same = is_missing || (!h->is_missing && !memcmp(&stamp, &h->stamp, sizeof(stamp)));
    h->is_missing = is_missing;
    if (is_same)
        return;
    h->stamp = stamp;
    if (load(h, &e) < 0)
        (void)fprintf(stderr, "enginesim: %s; the old scenario stays\n", e.text);
}

static void on_timer(void *context)
{
    struct host *h = (struct host *)context;
    look_for_change(h);
    if (net_now_ns(h->loop) - h->advanced_ns < AWAKE_NS)
        return;
    h->advanced_ns = net_now_ns(h->loop);
    for (size_t i = 0; i < h->n_sites; i++) {
        model_advance(&h->sites[i]->model, host_now_s(h));
        freeze_or_thaw(h->sites[i], host_now_s(h));
    }
}

struct host *host_new(struct net_loop *loop, struct metrics *metrics, const char *path, struct err *e)
{
    struct host *h = mem_new(struct host);
    h->loop = loop;
    h->metrics = metrics;
    h->epoch_ns = h->advanced_ns = net_now_ns(loop);
    h->wall_s = (double)time_wall_ns() * 1e-9;
    h->timer = net_timer_new(loop, on_timer, h);
    if (!str_copy(h->path, sizeof(h->path), str_of(path))) {
        (void)err_set(e, ERR_INVALID_ARGUMENT, "the path of the scenario is too long");
        host_free(h);
        return NULL;
    }
    (void)file_stamp(path, &h->stamp); /* what load says of it says more */
    if (load(h, e) < 0) {
        host_free(h);
        return NULL;
    }
    net_timer_start(h->timer, LOOK_NS, LOOK_NS);
    return h;
}

void host_free(struct host *h)
{
    if (!h)
        return;
    net_timer_free(h->timer);
    for (size_t i = 0; i < h->n_sites; i++)
        free_site(h->sites[i]);
    free(h->sites);
    script_free(h->script);
    free(h);
}

void host_describe(const struct host *h, struct buf *out)
{
    for (size_t i = 0; i < h->n_sites; i++) {
        const struct script_server *server = h->sites[i]->model.server;
        (void)buf_printf(out, "%s %s %s\n", net_listener_address(h->sites[i]->listener), script_engines[server->engine],
                         server->path);
    }
}
