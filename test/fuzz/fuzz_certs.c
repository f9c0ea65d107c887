/* Certificates and keys, any bytes: a bundle, then after a NUL byte a certificate with its key. Nothing that was not
 * made here is ever fit for a name that it lacks. */
#include "net/net.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"gpu.svc", "127.0.0.1", "*.example.com"};
    const int64_t now_s = 1800000000;
    const struct net_cert_wish wish = {.names = names, .n_names = ARRAY_LEN(names), .now_s = now_s, .until_s = now_s};
    const uint8_t *cut = size ? memchr(data, '\0', size) : NULL;
    size_t len = cut ? (size_t)(cut - data) : size;
    struct net_pem pem, authority;
    struct buf bundle;
    struct err e;
    net_pem_init(&pem);
    net_pem_init(&authority);
    buf_init(&bundle, NET_PEM_BYTES_MAX);
    if (len > 0)
        (void)buf_append(&bundle, data, len);
    if (cut) {
        (void)buf_append(&pem.cert, cut + 1, size - len - 1);
        (void)buf_append(&pem.key, cut + 1, size - len - 1);
    }
    (void)net_cert_until_s(&bundle);
    (void)net_authority_check(&pem, now_s, now_s, &e);
    if (net_cert_check(&pem, &bundle, &wish, &e) == 0)
        assert(net_cert_until_s(&pem.cert) >= now_s);
    const struct net_issue issue = {.common_name = "fuzz", .from_s = now_s, .until_s = now_s + 86400};
    assert(net_issue_authority(&issue, &authority, &e) == 0);
    assert(net_bundle_join(&authority.cert, &bundle, now_s, &bundle) == 0);
    assert(str_has_prefix(str_of(buf_cstr(&bundle)), buf_cstr(&authority.cert)));
    net_pem_fini(&pem);
    net_pem_fini(&authority);
    buf_fini(&bundle);
    return 0;
}
