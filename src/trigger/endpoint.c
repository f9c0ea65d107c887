/* The static half of the endpoint guard: what can be told from the URL's text alone. It resolves and connects nothing.
 */
#include "trigger/endpoint.h"

#include <arpa/inet.h>
#include <string.h>

static const char no_address[] = "is at an address that is not fetched from (link-local, multicast or unspecified)";
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

/* Prefixes of IPv4 addresses that are not fetched from. */
static const struct {
    unsigned char bytes[4];
    int bits;
    const char *fault;
} refused_v4[] = {
    {{0, 0, 0, 0}, 8, no_address},        {{169, 254, 0, 0}, 16, no_address},
    {{100, 100, 100, 200}, 32, metadata}, /* Alibaba Cloud */
    {{168, 63, 129, 16}, 32, metadata},   /* Azure */
    {{192, 0, 0, 192}, 32, metadata},     /* Oracle Cloud */
    {{224, 0, 0, 0}, 3, no_address},      /* multicast, reserved, broadcast */
};

/* Prefixes of IPv6 addresses, the first that fits decides. v4_at: where the IPv4 address is that such an address stands
 * for; -1: there is none, and `fault` is the answer. */
static const struct {
    unsigned char bytes[16];
    int bits, v4_at;
    const char *fault;
} known_v6[] = {
    {{0}, 128, -1, no_address},                                                   /* :: */
    {{[15] = 1}, 128, -1, NULL},                                                  /* ::1, allowed */
    {{[10] = 0xff, [11] = 0xff}, 96, 12, NULL},                                   /* mapped */
    {{0}, 96, 12, NULL},                                                          /* compatible */
    {{[8] = 0xff, [9] = 0xff}, 96, 12, NULL},                                     /* translated */
    {{0x00, 0x64, 0xff, 0x9b}, 96, 12, NULL},                                     /* NAT64 */
    {{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48, -1, no_address},                   /* local NAT64 */
    {{0x20, 0x02}, 16, 2, NULL},                                                  /* 6to4 */
    {{0x20, 0x01, 0, 0}, 32, -1, no_address},                                     /* Teredo */
    {{0xfe, 0x80}, 10, -1, no_address},                                           /* link-local */
    {{0xff}, 8, -1, no_address},                                                  /* multicast */
    {{0xfd, 0x00, 0x0e, 0xc2}, 32, -1, metadata},                                 /* AWS */
    {{0xfd, 0x20, 0x00, 0xce, [14] = 0x02, [15] = 0x54}, 128, -1, metadata},      /* Google Cloud */
    {{0xfd, 0x00, 0x00, 0xc1, [12] = 0xa9, 0xfe, 0xa9, 0xfe}, 128, -1, metadata}, /* Oracle Cloud */
};

static bool has_prefix(const unsigned char *address, const unsigned char *prefix, int bits)
{
    for (int i = 0; i < bits; i += 8) {
        unsigned mask = bits - i >= 8 ? 0xFFU : 0xFFU << (8 - (bits - i)) & 0xFFU;
        if ((address[i / 8] ^ prefix[i / 8]) & mask)
            return false;
    }
    return true;
}

static const char *fault_of_v4(const unsigned char address[4])
{
    for (size_t i = 0; i < ARRAY_LEN(refused_v4); i++)
        if (has_prefix(address, refused_v4[i].bytes, refused_v4[i].bits))
            return refused_v4[i].fault;
    return NULL;
}

static const char *fault_of_v6(const unsigned char address[16])
{
    for (size_t i = 0; i < ARRAY_LEN(known_v6); i++) {
        if (!has_prefix(address, known_v6[i].bytes, known_v6[i].bits))
            continue;
        return known_v6[i].v4_at >= 0 ? fault_of_v4(address + known_v6[i].v4_at) : known_v6[i].fault;
    }
    return NULL;
}

/* A host in brackets, which are cut off already. */
static const char *fault_of_bracketed(const char *host)
{
    unsigned char address[16];
    if (strchr(host, '%'))
        return "has a zone in its address";
    if (inet_pton(AF_INET6, host, address) != 1)
        return "has no IPv6 address between its brackets";
    return fault_of_v6(address);
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
        unsigned char address[4];
        if (inet_pton(AF_INET, host, address) != 1)
            return "has an IPv4 address that is not four decimal numbers";
        return fault_of_v4(address);
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
