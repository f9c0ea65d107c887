/* Which page a pod or an endpoint has, as workload/ asks for it: what the API says of the pod and the trigger's hints
 * become a URL. */
#include "hub/private.h"

#include <string.h>

/* Of an endpoint's URL; "" and 0 where it does not say. */
struct hint {
    char scheme[8], path[TRIGGER_TEXT_MAX];
    uint16_t port;
};

/* The endpoint is a Service before one pod at a time: its port is often the pods' own, and so are path and scheme. The
 * URL is one that the trigger took: it has a scheme and a host. */
static void read_hint(const char *endpoint, struct hint *ret)
{
    *ret = (struct hint){.port = 0};
    const char *host = endpoint ? strstr(endpoint, "://") : NULL;
    if (!host)
        return;
    (void)str_copy(ret->scheme, sizeof(ret->scheme), (struct str){endpoint, (size_t)(host - endpoint)});
    str_lower(ret->scheme);
    host += strlen("://");
    size_t len = strcspn(host, "/?#");
    const char *path = host + len, *colon = memrchr(host, ':', len), *bracket = memrchr(host, ']', len);
    int64_t port = 0;
    bool has_port = colon && (!bracket || bracket < colon);
    if (has_port && num_parse_i64((struct str){colon + 1, (size_t)(path - colon - 1)}, &port) == 0)
        ret->port = port > 0 && port <= UINT16_MAX ? (uint16_t)port : 0;
    if (*path == '/')
        (void)str_copy(ret->path, sizeof(ret->path), (struct str){path, strcspn(path, "#")});
}

/* The trigger's own word, else what the pod says, else the endpoint's; of the pod's only whether it says anything. */
static const char *choose(const char *own, const char *annotated, const char *hint)
{
    return *own ? own : *annotated ? "" : hint;
}

static size_t copy_ports(const struct workload_place *place, struct engine_port ports[ENGINE_PORTS_MAX])
{
    size_t n = place->n_ports < ENGINE_PORTS_MAX ? place->n_ports : ENGINE_PORTS_MAX;
    for (size_t i = 0; i < n; i++)
        ports[i] = (struct engine_port){.name = place->ports[i].name, .number = place->ports[i].number};
    return n;
}

static const struct signals_feed *page(void *context, const struct workload_place *place, const struct trigger *t,
                                       const char **ret_why)
{
    struct hub *h = context;
    struct hint hint;
    struct engine_port ports[ENGINE_PORTS_MAX];
    char url[ENGINE_URL_MAX];
    read_hint(trigger_endpoint_hint(t), &hint);
    struct engine_place at = {.ip = place->ip,
                              .annotated_port = place->annotated_port,
                              .annotated_path = *t->engine_path ? "" : place->annotated_path,
                              .annotated_scheme = *t->engine_scheme ? "" : place->annotated_scheme,
                              .ports = ports,
                              .n_ports = copy_ports(place, ports),
                              .port = t->engine_port ? t->engine_port : hint.port,
                              .path = choose(t->engine_path, place->annotated_path, hint.path),
                              .scheme = choose(t->engine_scheme, place->annotated_scheme, hint.scheme),
                              .is_port_certain = t->engine_port != 0,
                              .engine = t->engine};
    *ret_why = h->no_page.text;
    if (engine_place_url(&at, url, &h->no_page) < 0)
        return NULL;
    struct engine_want want = {
        .url = url, .metric = t->engine_metric, .interval_ns = daemon_engines_interval_ns(t), .is_endpoint = false};
    return daemon_engines_page(h->engines, &want, ret_why);
}

static const struct signals_feed *endpoint(void *context, const char *url, const char *ns, const char *metric,
                                           const struct trigger *t, const char **ret_why)
{
    const struct hub *h = context;
    struct daemon_endpoint asked = {.url = url, .ns = ns, .metric = metric, .trigger = t};
    return daemon_engines_endpoint(h->engines, &asked, ret_why);
}

void hub_add_engines(struct hub *h)
{
    h->nodes.page = page;
    h->nodes.endpoint = endpoint;
}
