/* The guard of fetches whose URL a user chose. libcurl asks for a socket before it connects to each address of a host,
 * so what a name resolves to is judged where it is used: nothing can change in between (reference B.6 #65). */
#include "http/guard.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

/* An address of another family has no text, and is refused. */
static bool write_address(const struct curl_sockaddr *address, char out[GUARD_ADDRESS_MAX])
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    if (address->family == AF_INET) {
        memcpy(&v4, &address->addr, sizeof(v4));
        return inet_ntop(AF_INET, &v4.sin_addr, out, GUARD_ADDRESS_MAX) != NULL;
    }
    if (address->family != AF_INET6 || address->addrlen < sizeof(v6))
        return false;
    memcpy(&v6, (const void *)&address->addr, sizeof(v6));
    return inet_ntop(AF_INET6, &v6.sin6_addr, out, GUARD_ADDRESS_MAX) != NULL;
}

static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct guard *guard = (struct guard *)context;
    char text[GUARD_ADDRESS_MAX];
    (void)purpose;
    const char *why =
        write_address(address, text) ? guard->fault(guard->context, text) : "is of a family that is not fetched from";
    if (!why) {
        guard->has_tried = true;
        return net_socket_new(address->family, address->socktype, address->protocol);
    }
    if (!guard->why) {
        guard->why = why;
        (void)str_copy(guard->refused, sizeof(guard->refused), str_of(text));
    }
    return CURL_SOCKET_BAD;
}

void guard_set(struct guard *guard, CURL *easy)
{
    (void)curl_easy_setopt(easy, CURLOPT_PROXY, "");
    (void)curl_easy_setopt(easy, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    (void)curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, guard);
}

bool guard_has_refused(const struct guard *guard)
{
    return guard->why && !guard->has_tried;
}
