/* A resolver for tests: the names of one table and nothing else. It stands in for libc's, for libraries too, because
 * the program's own functions come first. Numeric hosts are what they are. */
#ifndef TEST_NET_NAMES_H
#define TEST_NET_NAMES_H

#include "base/base.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

struct test_name {
    const char *name;
    const char *addresses[4]; /* in this order */
};
/* Ends with a NULL name. Set before a name is looked up. */
static const struct test_name *test_names;

struct test_found {
    struct addrinfo info;
    struct sockaddr_storage address;
};

static struct addrinfo *test_info(const char *text, int port, int type)
{
    struct test_found *found = mem_new(struct test_found);
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    bool is_v4 = inet_pton(AF_INET, text, &v4.sin_addr) == 1;
    if (!is_v4 && inet_pton(AF_INET6, text, &v6.sin6_addr) != 1) {
        free(found);
        return NULL;
    }
    memcpy(&found->address, is_v4 ? (const void *)&v4 : (const void *)&v6, is_v4 ? sizeof(v4) : sizeof(v6));
    found->info = (struct addrinfo){.ai_family = is_v4 ? AF_INET : AF_INET6,
                                    .ai_socktype = type ? type : SOCK_STREAM,
                                    .ai_protocol = IPPROTO_TCP,
                                    .ai_addrlen = is_v4 ? sizeof(v4) : sizeof(v6),
                                    .ai_addr = (struct sockaddr *)&found->address};
    return &found->info;
}

__attribute__((visibility("default"))) void freeaddrinfo(struct addrinfo *info)
{
    for (struct addrinfo *next; info; info = next) {
        next = info->ai_next;
        free(CONTAINER_OF(info, struct test_found, info));
    }
}

/* Any thread. */
__attribute__((visibility("default"))) int getaddrinfo(const char *restrict node, const char *restrict service,
                                                       const struct addrinfo *restrict hints,
                                                       struct addrinfo **restrict ret)
{
    uint64_t port = 0;
    struct addrinfo *first = NULL, **end = &first;
    const char *const numeric[] = {node, NULL}, *const *addresses = numeric;
    if (service && num_parse_u64(str_of(service), &port) < 0)
        return EAI_SERVICE;
    for (const struct test_name *known = test_names; known && known->name; known++)
        if (strcmp(known->name, node) == 0)
            addresses = known->addresses;
    for (; *addresses; addresses++)
        if ((*end = test_info(*addresses, (int)port, hints ? hints->ai_socktype : 0)) != NULL)
            end = &(*end)->ai_next;
    *ret = first;
    return first ? 0 : EAI_NONAME;
}

#endif
