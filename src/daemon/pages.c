/* The small pages: /livez, /readyz, /healthz in Kubernetes' format, /version, and an index. Health is about the
 * process; what else there is to say of the program is shown with ?verbose. ecosystem.md 3.2 */
#include "daemon/private.h"

#include <stdio.h>

static size_t collect_checks(const struct daemon *d, bool is_readiness, struct daemon_check checks[DAEMON_CHECKS_MAX])
{
    checks[0] = (struct daemon_check){"loop", true, ""}; /* it turns: this page is answered on it */
    if (!is_readiness)
        return 1;
    checks[1] = (struct daemon_check){"serving", !d->is_draining, "shutting down"};
    if (!d->program.checks)
        return 2;
    return 2 + d->program.checks(d->program.context, &checks[2], DAEMON_CHECKS_MAX - 2);
}

static bool wants(struct str query, const char *word)
{
    while (query.ptr) {
        struct str part = str_cut(&query, '&'), value = part;
        struct str key = str_cut(&value, '=');
        if (str_equals(key, word))
            return true;
    }
    return false;
}

/* Is the check left out by ?exclude=name? */
static bool is_excluded(struct str query, const char *name)
{
    while (query.ptr) {
        struct str value = str_cut(&query, '&');
        struct str key = str_cut(&value, '=');
        if (str_equals(key, "exclude") && value.ptr && str_equals(value, name))
            return true;
    }
    return false;
}

/* The check that "/readyz/check" asks for; "" for all. */
static struct str only_check(struct str path)
{
    (void)str_cut(&path, '/');
    (void)str_cut(&path, '/');
    return path;
}

static void health_page(const struct daemon *d, bool is_readiness, const char *page,
                        const struct net_get_request *request, struct net_get_response *response)
{
    struct daemon_check checks[DAEMON_CHECKS_MAX];
    size_t n = collect_checks(d, is_readiness, checks);
    struct str only = only_check(request->path);
    bool is_ok = true, is_known = only.len == 0;
    BUF_AUTO struct buf lines;
    buf_init(&lines, 8192);
    for (size_t i = 0; i < n; i++) {
        if ((only.len && !str_equals(only, checks[i].name)) || is_excluded(request->query, checks[i].name))
            continue;
        is_known = true;
        is_ok = is_ok && checks[i].is_ok;
        (void)buf_printf(&lines, checks[i].is_ok ? "[+]%s ok\n" : "[-]%s failed: %s\n", checks[i].name,
                         checks[i].reason);
    }
    response->content_type = "text/plain; charset=utf-8";
    if (!is_known) {
        response->status = 404;
        (void)buf_append_str(&response->body, "no such check\n");
        return;
    }
    response->status = is_ok ? 200 : 503;
    if (is_ok && !wants(request->query, "verbose")) {
        (void)buf_append_str(&response->body, "ok");
        return;
    }
    if (only.len == 0 && d->program.verbose)
        d->program.verbose(d->program.context, &lines);
    (void)buf_printf(&response->body, "%s%s check %s\n", buf_cstr(&lines), page, is_ok ? "passed" : "failed");
}

static void livez(void *context, const struct net_get_request *request, struct net_get_response *response)
{
    health_page(context, false, "livez", request, response);
}

static void healthz(void *context, const struct net_get_request *request, struct net_get_response *response)
{
    health_page(context, false, "healthz", request, response);
}

static void readyz(void *context, const struct net_get_request *request, struct net_get_response *response)
{
    health_page(context, true, "readyz", request, response);
}

static void version(void *context, const struct net_get_request *request, struct net_get_response *response)
{
    (void)request;
    const struct daemon *d = context;
    struct json j;
    json_init(&j, &response->body, 2);
    json_object_begin(&j);
    json_kv_string(&j, "program", "keda-gpu-scaler");
    json_kv_string(&j, "mode", d->config.mode);
    json_kv_string(&j, "version", d->config.version);
    json_kv_string(&j, "gitVersion", d->config.version);
    json_kv_string(&j, "compiler", d->config.build);
    json_kv_string(&j, "node", d->config.node_name);
    json_object_end(&j);
    (void)buf_append_char(&response->body, '\n');
    response->content_type = "application/json";
}

static void page_of_contents(void *context, const struct net_get_request *request, struct net_get_response *response)
{
    (void)request;
    const struct daemon *d = context;
    (void)buf_printf(&response->body,
                     "keda-gpu-scaler %s, %s on node %s\n\n%s/livez\n/readyz?verbose\n/healthz\n/version\n\n"
                     "gRPC on the same port: %s\n",
                     d->config.version, d->config.mode, *d->config.node_name ? d->config.node_name : "(unknown)",
                     d->program.pages, d->program.services);
    response->content_type = "text/plain; charset=utf-8";
}

/* 8 GPUs are 40 kB of text. */
void daemon_answer_metrics(struct exporter *exporter, const struct exporter_view *view,
                           const struct net_get_request *request, struct net_get_response *response)
{
    enum promtext_format format = promtext_negotiate(request->accept);
    exporter_render(exporter, view, format, &response->body);
    response->content_type = promtext_content_type(format);
    if (http_accepts_gzip(request->accept_encoding) && http_gzip(&response->body) == 0)
        response->content_encoding = "gzip";
    (void)snprintf(response->extra, sizeof(response->extra), "Vary: Accept, Accept-Encoding\r\n");
}

void daemon_add_pages(struct daemon *d)
{
    static const struct {
        const char *path;
        void (*handler)(void *, const struct net_get_request *, struct net_get_response *);
    } pages[] = {
        {"/", page_of_contents}, {"/livez", livez},   {"/livez/", livez},   {"/healthz", healthz},
        {"/healthz/", healthz},  {"/readyz", readyz}, {"/readyz/", readyz}, {"/version", version},
    };
    for (size_t i = 0; i < ARRAY_LEN(pages); i++)
        net_gets_add(d->gets, pages[i].path, pages[i].handler, d);
}
