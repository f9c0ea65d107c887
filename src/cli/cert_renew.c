/* When a certificate stays and when a new one is made. Owns no place where they are kept and no clock. */
#include "cli/cert.h"

#include <stdio.h>
#include <string.h>

void cert_store_init(struct cert_store *store)
{
    net_pem_init(&store->authority);
    net_pem_init(&store->end);
    buf_init(&store->trusted, NET_PEM_BYTES_MAX);
}

void cert_store_fini(struct cert_store *store)
{
    net_pem_fini(&store->authority);
    net_pem_fini(&store->end);
    buf_fini(&store->trusted);
}

/* Is the certificate fit for so long, for those who trust by that bundle? */
static int check(const struct cert_store *store, const struct buf *trusted, const struct cert_wish *wish,
                 int64_t left_s, struct err *e)
{
    const struct net_cert_wish fit = {
        .names = wish->names, .n_names = wish->n_names, .now_s = wish->now_s, .until_s = wish->now_s + left_s};
    return net_cert_check(&store->end, trusted, &fit, e);
}

/* An authority that outlasts what it is going to sign; with its own key where it has one, so that nobody's trust ends.
 */
static int ensure_authority(struct cert_store *store, const struct cert_wish *wish, struct cert_result *ret,
                            struct err *e)
{
    char name[80];
    struct err ignored;
    if (net_authority_check(&store->authority, wish->now_s, wish->now_s + wish->valid_s, &ignored) == 0)
        return 0;
    (void)snprintf(name, sizeof(name), "%.54s authority", wish->common_name);
    const struct net_issue issue = {
        .common_name = name, .from_s = wish->now_s, .until_s = wish->now_s + wish->authority_valid_s};
    ret->has_new_authority = true;
    return net_issue_authority(&issue, &store->authority, e);
}

static int make(struct cert_store *store, const struct cert_wish *wish, struct err *e)
{
    int64_t until_s = wish->now_s + wish->valid_s, authority_s = net_cert_until_s(&store->authority.cert);
    const struct net_issue issue = {.common_name = wish->common_name,
                                    .names = wish->names,
                                    .n_names = wish->n_names,
                                    .from_s = wish->now_s,
                                    .until_s = until_s < authority_s ? until_s : authority_s};
    return net_issue_certificate(&issue, &store->authority, &store->end, e);
}

int cert_renew(struct cert_store *store, const struct cert_wish *wish, struct cert_result *ret, struct err *e)
{
    const struct net_issue names = {.common_name = wish->common_name, .names = wish->names, .n_names = wish->n_names};
    struct err ignored;
    *ret = (struct cert_result){.outcome = CERT_KEPT};
    if (net_issue_check(&names, e) < 0)
        return -1;
    if (check(store, &store->trusted, wish, wish->renew_before_s, &ret->why) == 0)
        return 0;
    bool has_time = check(store, &store->trusted, wish, wish->renew_before_s / 2, &ignored) == 0;
    if (ensure_authority(store, wish, ret, e) < 0)
        return -1;
    bool is_same = check(store, &store->authority.cert, wish, wish->renew_before_s / 2, &ignored) == 0;
    if (net_bundle_join(&store->authority.cert, &store->trusted, wish->now_s, &store->trusted) < 0)
        return err_set(e, ERR_INTERNAL, "the authority that was made cannot be read");
    ret->outcome = has_time && !is_same ? CERT_ANNOUNCED : CERT_MADE;
    return ret->outcome == CERT_MADE ? make(store, wish, e) : 0;
}
