/* Where agents are found: EndpointSlices of a headless Service, every address of a DNS name, a fixed list. All of them
 * together are who ought to report. */
#include "hub/private.h"

#include <stdio.h>
#include <string.h>

enum { SLICES_MAX = 10000, RESOLVE_S = 10 };

/* One item of --agents. */
struct source {
    struct hub_agents *agents;
    enum hub_agent_source kind;
    char text[512], ns[254], name[254], port[64];
    struct kube_watch *watch;  /* SERVICE */
    bool is_told, is_read;     /* read: it has said once which agents there are */
    struct net_lookup *lookup; /* DNS, while it runs */
    VEC(char *) addresses;     /* DNS: of the last answer */
};

/* An agent of one EndpointSlice. */
struct endpoint {
    char *node, *address;
};
struct slice {
    VEC(struct endpoint) endpoints;
};

struct hub_agents {
    struct hub *hub;
    struct source sources[HUB_AGENTS_MAX];
    size_t n_sources;
    struct map *slices; /* "source ns/name" -> struct slice */
    struct net_timer *again;
    bool is_due; /* the set has changed and is not told to the fleet yet */
};

/* ---- the set ---- */

struct gathered {
    VEC(struct fleet_agent) agents;
};

static void add_slice(void *context, const void *key, size_t key_len, void *value)
{
    struct gathered *g = context;
    const struct slice *s = value;
    (void)key;
    (void)key_len;
    for (size_t i = 0; i < s->endpoints.len; i++) {
        struct fleet_agent agent = {.node = s->endpoints.items[i].node, .address = s->endpoints.items[i].address};
        vec_push(&g->agents, agent);
    }
}

static int by_address(const void *left, const void *right)
{
    return strcmp(((const struct fleet_agent *)left)->address, ((const struct fleet_agent *)right)->address);
}

/* An endpoint that moves between slices is in both for a moment. */
static void drop_doubles(struct gathered *g)
{
    if (g->agents.len < 2)
        return;
    qsort(g->agents.items, g->agents.len, sizeof(g->agents.items[0]), by_address);
    size_t n = 1;
    for (size_t i = 1; i < g->agents.len; i++)
        if (by_address(&g->agents.items[i], &g->agents.items[n - 1]) != 0)
            g->agents.items[n++] = g->agents.items[i];
    g->agents.len = n;
}

static void tell_fleet(void *context)
{
    struct hub_agents *a = context;
    struct gathered g = {.agents = {.items = NULL}};
    a->is_due = false;
    map_each(a->slices, add_slice, &g);
    for (size_t i = 0; i < a->n_sources; i++) {
        const struct source *s = &a->sources[i];
        struct fleet_agent fixed = {.node = "", .address = s->text};
        if (s->kind == HUB_AGENTS_FIXED)
            vec_push(&g.agents, fixed);
        for (size_t k = 0; k < s->addresses.len; k++) {
            struct fleet_agent agent = {.node = "", .address = s->addresses.items[k]};
            vec_push(&g.agents, agent);
        }
    }
    drop_doubles(&g);
    fleet_set_agents(a->hub->fleet, g.agents.items, g.agents.len);
    vec_fini(&g.agents);
}

/* Once a turn, however many slices changed. */
static void change(struct hub_agents *a)
{
    if (!a->is_due)
        net_defer(a->hub->loop, tell_fleet, a);
    a->is_due = true;
}

/* ---- EndpointSlices ---- */

static void free_slice(void *value)
{
    struct slice *s = value;
    for (size_t i = 0; i < s->endpoints.len; i++) {
        free(s->endpoints.items[i].node);
        free(s->endpoints.items[i].address);
    }
    vec_fini(&s->endpoints);
    free(s);
}

static void key_of(char key[1024], const struct source *s, const char *ns, const char *name)
{
    (void)snprintf(key, 1024, "%td %s/%s", s - s->agents->sources, ns, name);
}

/* The port by its name or number; without one "grpc", else the first. 0: there is none. */
static unsigned port_of(const struct source *s, const struct kube_endpoint_slice *slice)
{
    const char *wanted = *s->port ? s->port : "grpc";
    int64_t number;
    if (num_parse_i64(str_of(wanted), &number) == 0 && number > 0 && number <= UINT16_MAX)
        return (unsigned)number;
    for (size_t i = 0; i < slice->n_ports; i++)
        if (strcmp(slice->ports[i].name, wanted) == 0)
            return slice->ports[i].number;
    return *s->port || slice->n_ports == 0 ? 0 : slice->ports[0].number;
}

static void on_slice(void *context, const struct kube_object *object)
{
    struct source *s = context;
    const struct kube_endpoint_slice *from = object->endpoint_slice;
    unsigned port = port_of(s, from);
    char key[1024];
    struct slice *slice = mem_new(struct slice);
    for (size_t i = 0; i < from->n_endpoints && port; i++) {
        const struct kube_endpoint *e = &from->endpoints[i];
        if (!*e->address || e->is_terminating)
            continue;
        char address[320];
        (void)snprintf(address, sizeof(address), strchr(e->address, ':') ? "[%s]:%u" : "%s:%u", e->address, port);
        struct endpoint endpoint = {.node = mem_strdup(e->node), .address = mem_strdup(address)};
        vec_push(&slice->endpoints, endpoint);
    }
    key_of(key, s, from->meta.ns, from->meta.name);
    map_put(s->agents->slices, key, strlen(key), slice);
    change(s->agents);
}

static void on_slice_gone(void *context, const char *ns, const char *name, const char *uid)
{
    struct source *s = context;
    (void)uid;
    char key[1024];
    key_of(key, s, ns, name);
    map_remove(s->agents->slices, key, strlen(key));
    change(s->agents);
}

/* Also where there is no slice: nobody ought to report, which the fleet must know. */
static void on_slices_synced(void *context)
{
    struct source *s = context;
    if (s->is_told)
        log_info("kube", "can be read again", LOG_STR("what", "endpointslices"));
    s->is_told = false;
    s->is_read = true;
    change(s->agents);
}

static void on_slices_failed(void *context, const struct err *error)
{
    struct source *s = context;
    if (!s->is_told)
        log_warn("kube", "cannot be read; keeps trying", LOG_STR("what", "endpointslices"),
                 LOG_STR("error", error->text));
    s->is_told = true;
}

static void watch_slices(struct source *s)
{
    char selector[320];
    struct kube *kube = s->agents->hub->kube;
    (void)snprintf(selector, sizeof(selector), "kubernetes.io/service-name=%s", s->name);
    s->watch = kube_watch_start(kube, &(struct kube_watch_config){.kind = KUBE_ENDPOINT_SLICE,
                                                                  .ns = *s->ns ? s->ns : kube_namespace(kube),
                                                                  .label_selector = selector,
                                                                  .changed = on_slice,
                                                                  .gone = on_slice_gone,
                                                                  .synced = on_slices_synced,
                                                                  .failed = on_slices_failed,
                                                                  .context = s});
}

/* ---- DNS ---- */

static void clear_addresses(struct source *s)
{
    for (size_t i = 0; i < s->addresses.len; i++)
        free(s->addresses.items[i]);
    s->addresses.len = 0;
}

/* An answer that fails leaves the last one: a name server that is away is no reason to hang up on agents. */
static void on_resolved(void *context, const char *const *addresses, size_t n, const struct err *error)
{
    struct source *s = context;
    s->lookup = NULL;
    if (error && !s->is_told)
        log_warn("fleet", "cannot find agents; keeps trying", LOG_STR("name", s->text), LOG_STR("error", error->text));
    s->is_told = error != NULL;
    if (error)
        return;
    clear_addresses(s);
    s->is_read = true;
    for (size_t i = 0; i < n; i++)
        vec_push(&s->addresses, mem_strdup(addresses[i]));
    change(s->agents);
}

static void resolve_all(void *context)
{
    struct hub_agents *a = context;
    for (size_t i = 0; i < a->n_sources; i++) {
        struct source *s = &a->sources[i];
        if (s->kind == HUB_AGENTS_DNS && !s->lookup)
            s->lookup = net_lookup_start(a->hub->loop, s->text, on_resolved, s);
    }
}

/* ---- all of them ---- */

static int refuse(const char *text, struct err *e)
{
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "--agents \"%s\": must be service:[NAMESPACE/]NAME[:PORT], dns:HOST:PORT or HOST:PORT", text);
}

/* Lower case letters, digits and '-', as names of Services, namespaces and ports are. */
static bool copy_label(char *ret, size_t size, struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789-", text.ptr[i]))
            return false;
    return text.len > 0 && str_copy(ret, size, text);
}

static bool is_port(const char *text)
{
    bool is_number = strspn(text, "0123456789") == strlen(text);
    int64_t number;
    return !is_number || (num_parse_i64(str_of(text), &number) == 0 && number > 0 && number <= UINT16_MAX);
}

static int parse_service(struct source *s, struct str text)
{
    struct str port = text, name = str_cut(&port, ':'), rest = name, ns = str_cut(&rest, '/');
    if (port.ptr && (!copy_label(s->port, sizeof(s->port), port) || !is_port(s->port)))
        return -1;
    if (!rest.ptr)
        return copy_label(s->name, sizeof(s->name), name) ? 0 : -1;
    return copy_label(s->ns, sizeof(s->ns), ns) && copy_label(s->name, sizeof(s->name), rest) ? 0 : -1;
}

static int parse(struct source *s, const char *text, struct err *e)
{
    static const char *const prefixes[] = {
#define X(id, prefix, form) [HUB_AGENTS_##id] = (prefix),
        HUB_AGENT_SOURCES(X)
#undef X
    };
    s->kind = HUB_AGENTS_SERVICE;
    while (!str_has_prefix(str_of(text), prefixes[s->kind])) /* the last one is empty */
        s->kind++;
    struct str rest = str_of(text + strlen(prefixes[s->kind]));
    if (s->kind == HUB_AGENTS_SERVICE)
        return parse_service(s, rest) < 0 ? refuse(text, e) : 0;
    char host[256];
    int port;
    if (!str_copy(s->text, sizeof(s->text), rest) || net_split_address(s->text, host, &port, NULL) < 0 || !*host)
        return refuse(text, e);
    return 0;
}

struct hub_agents *hub_agents_new(struct hub *h, struct err *e)
{
    struct hub_agents *a = mem_new(struct hub_agents);
    a->hub = h;
    a->slices = map_new(SLICES_MAX, free_slice);
    for (size_t i = 0; i < h->config->n_agents; i++) {
        struct source *s = &a->sources[a->n_sources++];
        s->agents = a;
        if (parse(s, h->config->agents[i], e) < 0) {
            hub_agents_free(a);
            return NULL;
        }
        if (s->kind == HUB_AGENTS_SERVICE)
            watch_slices(s);
    }
    a->again = net_timer_new(h->loop, resolve_all, a);
    net_timer_start(a->again, 0, RESOLVE_S * NS_PER_S);
    for (size_t i = 0; i < a->n_sources; i++)
        if (a->sources[i].kind == HUB_AGENTS_FIXED)
            change(a);
    return a;
}

bool hub_agents_are_found(const struct hub_agents *a)
{
    for (size_t i = 0; i < a->n_sources; i++)
        if (!a->sources[i].is_read && a->sources[i].kind != HUB_AGENTS_FIXED)
            return false;
    return true;
}

void hub_agents_free(struct hub_agents *a)
{
    if (!a)
        return;
    net_timer_free(a->again);
    net_defer_cancel(a->hub->loop, a);
    for (size_t i = 0; i < a->n_sources; i++) {
        struct source *s = &a->sources[i];
        kube_watch_free(s->watch);
        net_lookup_cancel(s->lookup);
        clear_addresses(s);
        vec_fini(&s->addresses);
    }
    map_free(a->slices);
    free(a);
}
