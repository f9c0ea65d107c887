/* Addresses from arbitrary text: what is taken has a port in range and a host that, written again, is read the same. */
#include "net/net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_again(const char *host, int port)
{
    char text[300], again[256];
    int port_again;
    struct err e;
    (void)snprintf(text, sizeof(text), strchr(host, ':') ? "[%s]:%d" : "%s:%d", host, port);
    bool is_same =
        net_split_address(text, again, &port_again, &e) == 0 && strcmp(host, again) == 0 && port == port_again;
    bool is_odd = strchr(host, '[') || strchr(host, ']'); /* only a bracketed host may hold those */
    if (!is_same && !is_odd)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char host[256] = "";
    int port = -1;
    struct err e = {.class = ERR_NONE};
    MEM_AUTO char *text = mem_strndup((const char *)data, size);
    if (net_split_address(text, host, &port, &e) < 0) {
        if (e.class != ERR_INVALID_ARGUMENT || port != -1)
            abort();
        return 0;
    }
    if (port < 0 || port > 65535 || strlen(host) > 255)
        abort();
    check_again(host, port);
    return 0;
}
