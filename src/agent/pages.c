/* The agent's small pages: /livez, /readyz, /healthz in Kubernetes' format, /version, and an index. Health is about the
 * process: the driver's state is shown with ?verbose and never a reason to leave the Service. ecosystem.md 3.2 */
#include "agent/agent_private.h"

#include <stdio.h>
#include <string.h>

/* One line of a health page. */
struct health_check {
    const char *name;
    bool is_ok;
    const char *reason; /* for people, where it is not ok */
};

static size_t collect_checks(const struct agent *a, bool is_readiness, struct health_check checks[4])
{
    size_t n = 0;
    checks[n++] = (struct health_check){"loop", true, ""}; /* it turns: this page is answered on it */
    if (is_readiness)
        checks[n++] = (struct health_check){"serving", !a->is_draining, "shutting down"};
    return n;
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

static void write_driver(const struct agent *a, struct buf *out)
{
    const struct snapshot *s = a->snapshot;
    int64_t stuck_ns = s ? snapshot_stuck_ns(s, net_now_ns(a->loop)) : 0;
    if (stuck_ns) { /* whatever the last snapshot says of the driver is as old as it */
        char age[TIME_DURATION_MAX];
        time_format_duration(age, stuck_ns / NS_PER_S * NS_PER_S);
        (void)buf_printf(out, "[-]nvml hangs (information only): no sampling cycle has ended for %s\n", age);
        return;
    }
    bool is_ok = s && s->driver == SNAPSHOT_DRIVER_OK;
    (void)buf_printf(out, "[%c]nvml %s (information only)%s%s\n", is_ok ? '+' : '-',
                     s ? snapshot_driver_state_name(s->driver) : "starting", s && *s->driver_text ? ": " : "",
                     s ? s->driver_text : "");
}

static void health_page(const struct agent *a, bool is_readiness, const char *page,
                        const struct net_get_request *request, struct net_get_response *response)
{
    struct health_check checks[4];
    size_t n = collect_checks(a, is_readiness, checks);
    struct str only = request->path; /* "/readyz", "/readyz/" or "/readyz/check" */
    (void)str_cut(&only, '/');
    (void)str_cut(&only, '/');
    bool is_ok = true, is_known = only.len == 0;
    BUF_AUTO struct buf lines;
    buf_init(&lines, 4096);
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
    if (only.len == 0)
        write_driver(a, &lines);
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

/* gzip where the client takes it and the page gets smaller: 8 GPUs are 40 kB of text. */
static void metrics_page(void *context, const struct net_get_request *request, struct net_get_response *response)
{
    struct agent *a = context;
    enum promtext_format format = promtext_negotiate(request->accept);
    const struct snapshot_owners *owners = a->attribution ? attribution_owners(a->attribution) : NULL;
    struct exporter_view view = {.snapshot = a->snapshot, .owners = owners, .now_ns = net_now_ns(a->loop)};
    exporter_render(a->exporter, &view, format, &response->body);
    response->content_type = promtext_content_type(format);
    if (http_accepts_gzip(request->accept_encoding) && http_gzip(&response->body) == 0)
        response->content_encoding = "gzip";
    (void)snprintf(response->extra, sizeof(response->extra), "Vary: Accept, Accept-Encoding\r\n");
}

static void version(void *context, const struct net_get_request *request, struct net_get_response *response)
{
    (void)request;
    const struct agent *a = context;
    struct json j;
    json_init(&j, &response->body, 2);
    json_object_begin(&j);
    json_kv_string(&j, "program", "keda-gpu-scaler");
    json_kv_string(&j, "mode", "agent");
    json_kv_string(&j, "version", a->config->version);
    json_kv_string(&j, "gitVersion", a->config->version);
    json_kv_string(&j, "compiler", a->config->build);
    json_kv_string(&j, "node", a->config->node_name);
    json_object_end(&j);
    (void)buf_append_char(&response->body, '\n');
    response->content_type = "application/json";
}

static void page_of_contents(void *context, const struct net_get_request *request, struct net_get_response *response)
{
    (void)request;
    const struct agent *a = context;
    (void)buf_printf(&response->body,
                     "keda-gpu-scaler %s, agent on node %s\n\n/metrics\n/livez\n/readyz?verbose\n/healthz\n/version\n\n"
                     "gRPC on the same port: externalscaler.ExternalScaler, grpc.health.v1.Health, "
                     "kedagpuscaler.v1.Node\n",
                     a->config->version, *a->config->node_name ? a->config->node_name : "(unknown)");
    response->content_type = "text/plain; charset=utf-8";
}

void agent_add_pages(struct agent *a)
{
    static const struct {
        const char *path;
        void (*handler)(void *, const struct net_get_request *, struct net_get_response *);
    } pages[] = {
        {"/", page_of_contents}, {"/livez", livez},      {"/livez/", livez},
        {"/healthz", healthz},   {"/healthz/", healthz}, {"/readyz", readyz},
        {"/readyz/", readyz},    {"/version", version},  {"/metrics", metrics_page},
    };
    for (size_t i = 0; i < ARRAY_LEN(pages); i++)
        net_gets_add(a->gets, pages[i].path, pages[i].handler, a);
}
