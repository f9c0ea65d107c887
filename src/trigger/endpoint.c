/* The static half of the endpoint guard: what can be told from the URL's text alone. It resolves and connects nothing;
 * which addresses are refused is base's table. */
#include "trigger/endpoint.h"

#include <string.h>

static const char metadata[] = "is a metadata service or the Kubernetes API, not an engine";

/* What a host name may not be; a trailing dot is dropped first. */
static const char *const refused_names[] = {
    "metadata",
    "metadata.google.internal",
    "metadata.goog",
    "metadata.azure.internal",
    "instance-data",
    "instance-data.ec2.internal",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
};

/* A host in brackets, which are cut off already. */
static const char *fault_of_bracketed(const char *host)
{
    struct ip ip;
    if (strchr(host, '%'))
        return "has a zone in its address";
    if (ip_parse(str_of(host), &ip) < 0 || !ip.is_v6)
        return "has no IPv6 address between its brackets";
    return ip_fault(&ip);
}

/* Does the last label read as a number? Resolvers take such hosts for IPv4 addresses in short, octal or hex forms. */
static bool ends_in_number(const char *host)
{
    const char *dot = strrchr(host, '.'), *label = dot ? dot + 1 : host;
    if (label[0] == '0' && (label[1] == 'x' || label[1] == 'X'))
        return label[2 + strspn(label + 2, "0123456789abcdefABCDEF")] == '\0';
    return *label && label[strspn(label, "0123456789")] == '\0';
}

static const char *fault_of_name(const char *host)
{
    static const char name_bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
    if (host[strspn(host, name_bytes)] || host[0] == '.' || strstr(host, ".."))
        return "has a host that is no DNS name";
    if (ends_in_number(host)) {
        struct ip ip;
        if (ip_parse(str_of(host), &ip) < 0)
            return "has an IPv4 address that is not four decimal numbers";
        return ip_fault(&ip);
    }
    for (size_t i = 0; i < ARRAY_LEN(refused_names); i++)
        if (str_equals_nocase(str_of(host), refused_names[i]))
            return metadata;
    return NULL;
}

static bool is_port(struct str text)
{
    uint64_t port = 0;
    return num_parse_u64(text, &port) == 0 && port >= 1 && port <= 65535;
}

/* Splits host[:port] or [host][:port]; *ret_port.ptr is NULL without a port. Returns false if it is neither. */
static bool split_authority(struct str authority, struct str *ret_host, struct str *ret_port, bool *ret_is_bracketed)
{
    struct str rest = authority;
    *ret_is_bracketed = authority.len > 0 && authority.ptr[0] == '[';
    if (!*ret_is_bracketed) {
        *ret_host = str_cut(&rest, ':');
        *ret_port = rest;
        return true;
    }
    *ret_host = str_cut(&rest, ']');
    *ret_host = (struct str){ret_host->ptr + 1, ret_host->len - 1};
    bool has_port = rest.ptr && rest.len > 0;
    *ret_port = has_port ? (struct str){rest.ptr + 1, rest.len - 1} : (struct str){NULL, 0};
    return rest.ptr && (!has_port || rest.ptr[0] == ':');
}

static const char *fault_of_authority(struct str authority)
{
    struct str name, port;
    bool is_bracketed = false;
    if (authority.len && memchr(authority.ptr, '@', authority.len))
        return "has a user name or password in it";
    if (!split_authority(authority, &name, &port, &is_bracketed))
        return "has no host";
    if (port.ptr && !is_port(port))
        return "has a port that is not from 1 to 65535";
    if (!is_bracketed && name.len > 1 && name.ptr[name.len - 1] == '.')
        name.len--; /* the root's dot */
    char host[256];
    if (name.len == 0)
        return "has no host";
    if (!str_copy(host, sizeof(host), name))
        return "has a host that is too long";
    return is_bracketed ? fault_of_bracketed(host) : fault_of_name(host);
}

const char *trigger_endpoint_fault(struct str url)
{
    for (size_t i = 0; i < url.len; i++) {
        unsigned char c = (unsigned char)url.ptr[i];
        if (c <= 0x20 || c >= 0x7F || c == '\\')
            return "has characters that a URL does not have";
    }
    static const char *const schemes[] = {"http://", "https://"};
    struct str rest = {NULL, 0};
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        size_t len = strlen(schemes[i]);
        if (url.len >= len && str_equals_nocase((struct str){url.ptr, len}, schemes[i]))
            rest = (struct str){url.ptr + len, url.len - len};
    }
    if (!rest.ptr)
        return "is neither http:// nor https://";
    size_t end = 0;
    while (end < rest.len && !strchr("/?#", rest.ptr[end]))
        end++;
    return fault_of_authority((struct str){rest.ptr, end});
}
