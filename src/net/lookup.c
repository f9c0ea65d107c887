/* All addresses of a name, looked up off the loop: for who wants to know them, not only to reach one. */
#include "net/net.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { LOOKUP_ADDRESSES_MAX = 20000, ADDRESS_TEXT_MAX = INET6_ADDRSTRLEN + 16 };

struct net_lookup {
    void (*done)(void *context, const char *const *addresses, size_t n, const struct err *error);
    void *context;
    bool is_cancelled;
    char host[256], service[8];
    int rc;
    VEC(char *) found;
};

static char *text_of(const struct sockaddr *address)
{
    char ip[INET6_ADDRSTRLEN], text[ADDRESS_TEXT_MAX];
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    if (address->sa_family == AF_INET) {
        memcpy(&v4, address, sizeof(v4));
        (void)inet_ntop(AF_INET, &v4.sin_addr, ip, sizeof(ip));
        (void)snprintf(text, sizeof(text), "%s:%u", ip, ntohs(v4.sin_port));
    } else {
        memcpy(&v6, address, sizeof(v6));
        (void)inet_ntop(AF_INET6, &v6.sin6_addr, ip, sizeof(ip));
        (void)snprintf(text, sizeof(text), "[%s]:%u", ip, ntohs(v6.sin6_port));
    }
    return mem_strdup(text);
}

/* On a worker thread. */
static void look_up(void *context)
{
    struct net_lookup *l = context;
    struct addrinfo hints = {.ai_flags = AI_NUMERICSERV, .ai_socktype = SOCK_STREAM}, *found = NULL;
    l->rc = getaddrinfo(l->host, l->service, &hints, &found);
    if (l->rc != 0)
        return;
    for (const struct addrinfo *at = found; at && l->found.len < LOOKUP_ADDRESSES_MAX; at = at->ai_next)
        if (at->ai_family == AF_INET || at->ai_family == AF_INET6)
            vec_push(&l->found, text_of(at->ai_addr));
    freeaddrinfo(found);
}

static void looked_up(void *context)
{
    struct net_lookup *l = context;
    struct err e = {.class = ERR_NONE};
    if (l->rc != 0)
        (void)err_set(&e, ERR_UNAVAILABLE, "cannot look up %s: %s", l->host, gai_strerror(l->rc));
    if (!l->is_cancelled)
        l->done(l->context, (const char *const *)l->found.items, l->found.len, l->rc != 0 ? &e : NULL);
    for (size_t i = 0; i < l->found.len; i++)
        free(l->found.items[i]);
    vec_fini(&l->found);
    free(l);
}

struct net_lookup *net_lookup_start(struct net_loop *loop, const char *address,
                                    void (*done)(void *context, const char *const *addresses, size_t n,
                                                 const struct err *error),
                                    void *context)
{
    struct net_lookup *l = mem_new(struct net_lookup);
    *l = (struct net_lookup){.done = done, .context = context};
    int port = 0;
    l->rc = net_split_address(address, l->host, &port, NULL) < 0 ? EAI_NONAME : 0;
    (void)snprintf(l->service, sizeof(l->service), "%d", port);
    if (l->rc == 0)
        net_work(loop, look_up, looked_up, l);
    else
        net_defer(loop, looked_up, l);
    return l;
}

void net_lookup_cancel(struct net_lookup *l)
{
    if (l)
        l->is_cancelled = true;
}
