/* Addresses as people write them, and socket addresses as people read them. Looks no names up: that is dial.c's and
 * listener.c's business. */
#include "net/conn.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

static const char forms[] = "write host:port, [IPv6]:port, :port or unix:/path";

static int parse_port(struct str text, const char *address, int *ret_port, struct err *e)
{
    uint64_t port;
    if (num_parse_u64(text, &port) < 0 || port > 65535)
        return err_set(e, ERR_INVALID_ARGUMENT, "address \"%.200s\": the port must be a number from 0 to 65535",
                       address);
    *ret_port = (int)port;
    return 0;
}

/* Cut "[v6]" or the part before the last colon off; what follows the colon stays in *rest. */
static int cut_host(struct str *rest, struct str *ret_host)
{
    const char *colon = (const char *)memrchr(rest->ptr, ':', rest->len);
    if (!colon)
        return -1;
    struct str host = {rest->ptr, (size_t)(colon - rest->ptr)};
    rest->len -= host.len + 1;
    rest->ptr = colon + 1;
    bool is_bracketed = host.len >= 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']';
    if (is_bracketed)
        host = (struct str){host.ptr + 1, host.len - 2};
    else if (memchr(host.ptr, ':', host.len) || memchr(host.ptr, '[', host.len) || memchr(host.ptr, ']', host.len))
        return -1;
    if (is_bracketed && host.len == 0)
        return -1;
    *ret_host = host;
    return 0;
}

int net_split_address(const char *address, char host[256], int *ret_port, struct err *e)
{
    struct str rest = str_of(address), name;
    if (cut_host(&rest, &name) < 0 || name.len > 255)
        return err_set(e, ERR_INVALID_ARGUMENT, "address \"%.200s\" is not understood: %s", address, forms);
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.ptr[i] <= ' ' || name.ptr[i] == '/')
            return err_set(e, ERR_INVALID_ARGUMENT, "address \"%.200s\" is not understood: %s", address, forms);
    int port = 0;
    if (parse_port(rest, address, &port, e) < 0)
        return -1;
    (void)str_copy(host, 256, name);
    *ret_port = port;
    return 0;
}

const char *net_unix_path(const char *address)
{
    return str_has_prefix(str_of(address), "unix:") ? address + 5 : NULL;
}

int net_fill_unix(const char *path, struct sockaddr_un *ret_address, struct err *e)
{
    size_t len = strlen(path);
    if (len == 0 || len >= sizeof(ret_address->sun_path))
        return err_set(e, ERR_INVALID_ARGUMENT, "unix socket path \"%.200s\" must have 1 to %zu bytes", path,
                       sizeof(ret_address->sun_path) - 1);
    memset(ret_address, 0, sizeof(*ret_address));
    ret_address->sun_family = AF_UNIX;
    memcpy(ret_address->sun_path, path, len);
    return 0;
}

static void format_v6(const struct sockaddr_in6 *v6, char *out, size_t size)
{
    char text[INET6_ADDRSTRLEN] = "", zone[IF_NAMESIZE] = "";
    if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
        (void)inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], text, sizeof(text));
        (void)snprintf(out, size, "%s:%d", text, ntohs(v6->sin6_port));
        return;
    }
    (void)inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
    bool has_zone = v6->sin6_scope_id != 0 && if_indextoname(v6->sin6_scope_id, zone);
    (void)snprintf(out, size, "[%s%s%s]:%d", text, has_zone ? "%" : "", zone, ntohs(v6->sin6_port));
}

void net_format_sockaddr(const struct sockaddr_storage *address, char *out, size_t size)
{
    char text[INET_ADDRSTRLEN] = "";
    if (address->ss_family == AF_INET6) {
        format_v6((const struct sockaddr_in6 *)address, out, size);
    } else if (address->ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
        (void)inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
        (void)snprintf(out, size, "%s:%d", text, ntohs(v4->sin_port));
    } else {
        (void)snprintf(out, size, "unix");
    }
}
