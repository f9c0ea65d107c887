/* Places and endpoints from arbitrary text: a URL that comes out goes to the pod's own address, or to the host that the
 * endpoint names, whatever the annotations say; and has no byte that would end a request line. */
#include "engine/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXTS = 7 };

static void check_place(char *const texts[TEXTS])
{
    char url[ENGINE_URL_MAX], plain[128], tls[128];
    const struct engine_port ports[] = {{texts[6], 8000}, {"metrics", 9090}};
    struct err e;
    struct engine_place place = {.ip = texts[0],
                                 .annotated_port = texts[1],
                                 .annotated_path = texts[2],
                                 .annotated_scheme = texts[3],
                                 .path = texts[4],
                                 .scheme = texts[5],
                                 .ports = ports,
                                 .n_ports = ARRAY_LEN(ports)};
    if (engine_place_url(&place, url, &e) < 0)
        return;
    struct ip ip;
    if (ip_parse(str_of(texts[0]), &ip) < 0)
        abort();
    (void)snprintf(plain, sizeof(plain), ip.is_v6 ? "http://[%s]:" : "http://%s:", texts[0]);
    (void)snprintf(tls, sizeof(tls), ip.is_v6 ? "https://[%s]:" : "https://%s:", texts[0]);
    const char *rest = url;
    if (str_has_prefix(str_of(url), plain))
        rest += strlen(plain);
    else if (str_has_prefix(str_of(url), tls))
        rest += strlen(tls);
    else
        abort();
    size_t digits = strspn(rest, "0123456789");
    if (digits == 0 || digits > 5 || rest[digits] != '/')
        abort();
    for (const char *c = url; *c; c++)
        if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7F)
            abort();
}

/* What was named is in what is asked, but for the namespace. */
static void check_endpoint(const char *endpoint)
{
    char here[ENGINE_URL_MAX], there[ENGINE_URL_MAX];
    int rc = engine_endpoint_url(endpoint, "ns", false, here, NULL);
    if (rc == 0 && !str_has_prefix(str_of(here), endpoint))
        abort();
    if (engine_endpoint_url(endpoint, "ns", true, there, NULL) < 0 || rc < 0)
        return;
    char *added = strstr(there, ".ns.svc");
    if (strcmp(here, there) == 0)
        return;
    if (!added || strlen(there) != strlen(here) + 7 || memcmp(here, there, (size_t)(added - there)) != 0)
        abort();
}

/* The texts stand one to a line. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = {(const char *)data, size};
    char *texts[TEXTS];
    for (size_t i = 0; i < TEXTS; i++) {
        struct str text = rest.ptr ? str_cut(&rest, '\n') : (struct str){"", 0};
        texts[i] = mem_strndup(text.ptr ? text.ptr : "", text.len);
    }
    check_place(texts);
    check_endpoint(texts[0]);
    for (size_t i = 0; i < TEXTS; i++)
        free(texts[i]);
    return 0;
}
