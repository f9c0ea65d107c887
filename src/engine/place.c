/* Where a page is: from what the API and the trigger say of a pod, or from the URL that a user named. Pure: looks no
 * name up and asks nobody. */
#include "engine/private.h"

#include <string.h>

/* A number from 1 to 65535, or 0. */
static uint16_t port_number(struct str text)
{
    uint64_t port = 0;
    return num_parse_u64(text, &port) == 0 && port <= 65535 ? (uint16_t)port : 0;
}

static uint16_t port_named(const struct engine_place *place, const char *name)
{
    for (size_t i = 0; i < place->n_ports; i++)
        if (strcmp(place->ports[i].name, name) == 0)
            return place->ports[i].number;
    return 0;
}

static bool has_port(const struct engine_place *place, uint16_t number)
{
    for (size_t i = 0; i < place->n_ports; i++)
        if (place->ports[i].number == number)
            return true;
    return false;
}

/* The engine that the profile or metric type names, unless the pod has another one's usual port and not its. */
static enum signals_engine guess_engine(const struct engine_place *place)
{
    if (place->engine != SIGNALS_ENGINE_UNKNOWN && has_port(place, signals_engine_port(place->engine)))
        return place->engine;
    for (int i = SIGNALS_ENGINE_UNKNOWN + 1; i < SIGNALS_ENGINE_COUNT; i++)
        if (has_port(place, signals_engine_port((enum signals_engine)i)))
            return (enum signals_engine)i;
    return place->engine;
}

/* Where the port of a pod's page is found, the first that there is. */
static int find_port(const struct engine_place *place, uint16_t *ret_port, enum signals_engine *ret_engine,
                     struct err *e)
{
    static const char *const names[] = {"metrics", "http"};
    uint16_t port = place->is_port_certain ? place->port : 0;
    *ret_engine = place->engine;
    if (!port && *place->annotated_port) {
        port = port_number(str_of(place->annotated_port));
        port = port ? port : port_named(place, place->annotated_port);
        if (!port)
            return err_set(e, ERR_INVALID_ARGUMENT,
                           "the annotation prometheus.io/port: \"%.64s\" is neither a port nor the name of one of the "
                           "pod's ports",
                           place->annotated_port);
    }
    for (size_t i = 0; i < ARRAY_LEN(names) && !port; i++)
        port = port_named(place, names[i]);
    port = port ? port : place->port;
    if (!port) {
        *ret_engine = guess_engine(place);
        port = signals_engine_port(*ret_engine);
    }
    *ret_port = port;
    return 0;
}

/* The trigger's word comes first, unless it is an endpoint's: that says how the page of a Service is reached. */
static const char *choose(const struct engine_place *place, const char *said, const char *annotated, const char *usual)
{
    bool is_certain = place->is_port_certain || !place->port;
    if (*said && (is_certain || !*annotated))
        return said;
    return *annotated ? annotated : usual;
}

static const char *scheme_of(const char *text)
{
    static const char *const schemes[] = {"http", "https"};
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
        if (str_equals_nocase(str_of(text), schemes[i]))
            return schemes[i];
    return NULL;
}

static bool is_path(const char *path)
{
    for (; *path; path++)
        if ((unsigned char)*path <= ' ' || (unsigned char)*path >= 0x7F || *path == '#' || *path == '\\')
            return false;
    return true;
}

int engine_place_url(const struct engine_place *place, char ret_url[ENGINE_URL_MAX], struct err *e)
{
    struct ip ip;
    uint16_t port = 0;
    enum signals_engine engine = place->engine;
    if (!*place->ip)
        return err_set(e, ERR_FAILED_PRECONDITION, "the pod has no address yet");
    if (ip_parse(str_of(place->ip), &ip) < 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "the pod's address \"%.64s\" is none", place->ip);
    if (ip_fault(&ip))
        return err_set(e, ERR_INVALID_ARGUMENT, "the pod's address %s %s: nothing is fetched from there", place->ip,
                       ip_fault(&ip));
    if (find_port(place, &port, &engine, e) < 0)
        return -1;
    const char *path = choose(place, place->path, place->annotated_path, signals_engine_path(engine));
    const char *said = choose(place, place->scheme, place->annotated_scheme, "http"), *scheme = scheme_of(said);
    if (!scheme)
        return err_set(e, ERR_INVALID_ARGUMENT, "the scheme of the pod's page is \"%.16s\", neither http nor https",
                       said);
    if (!is_path(path))
        return err_set(e, ERR_INVALID_ARGUMENT, "the path of the pod's page has characters that a URL does not have");
    struct buf url BUF_AUTO;
    buf_init(&url, ENGINE_URL_MAX - 1);
    (void)buf_printf(&url, "%s://%s%s%s:%u%s%s", scheme, ip.is_v6 ? "[" : "", place->ip, ip.is_v6 ? "]" : "", port,
                     *path == '/' ? "" : "/", path);
    if (url.is_overflowed)
        return err_set(e, ERR_INVALID_ARGUMENT, "the URL of the pod's page is longer than %d characters",
                       ENGINE_URL_MAX - 1);
    (void)str_copy(ret_url, ENGINE_URL_MAX, str_of(buf_cstr(&url)));
    return 0;
}

/* Scheme with "://", host without a port, and what follows it. */
struct parts {
    struct str scheme, host, rest;
};

static struct parts split(const char *url)
{
    const char *colon = strstr(url, "://"), *host = colon ? colon + 3 : url;
    size_t len = *host == '[' ? strcspn(host, "]/?#") : strcspn(host, ":/?#");
    len += host[len] == ']';
    return (struct parts){{url, (size_t)(host - url)}, {host, len}, str_of(host + len)};
}

/* Where no path is given, nothing but "/metrics" can be meant. */
static bool has_path(struct str rest)
{
    return rest.len > 0 && strpbrk(rest.ptr, "/?#") != NULL;
}

int engine_endpoint_url(const char *endpoint, const char *ns, bool has_cluster_dns, char ret_url[ENGINE_URL_MAX],
                        struct err *e)
{
    struct parts parts = split(endpoint);
    bool is_service = has_cluster_dns && *ns && parts.host.len > 0 && parts.host.ptr[0] != '[' &&
                      !memchr(parts.host.ptr, '.', parts.host.len) && !str_equals_nocase(parts.host, "localhost");
    struct buf url BUF_AUTO;
    buf_init(&url, ENGINE_URL_MAX - 1);
    (void)buf_append(&url, parts.scheme.ptr, parts.scheme.len);
    (void)buf_append(&url, parts.host.ptr, parts.host.len);
    if (is_service)
        (void)buf_printf(&url, ".%s.svc", ns);
    (void)buf_printf(&url, "%s%s", parts.rest.ptr, has_path(parts.rest) ? "" : "/metrics");
    if (url.is_overflowed)
        return err_set(e, ERR_INVALID_ARGUMENT, "the endpoint's URL is longer than %d characters", ENGINE_URL_MAX - 1);
    (void)str_copy(ret_url, ENGINE_URL_MAX, str_of(buf_cstr(&url)));
    return 0;
}
