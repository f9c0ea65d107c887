/* What `cert` keeps: an authority and one certificate, in files or in Secrets of Kubernetes. Private to cli. */
#ifndef CLI_CERT_H
#define CLI_CERT_H

#include "base/base.h"
#include "net/net.h"

#include <stdbool.h>

/* Everything that is kept. Empty texts are not there. */
struct cert_store {
    struct net_pem authority; /* its key never leaves the place where it is kept */
    struct net_pem end;       /* what programs serve and show */
    struct buf trusted;       /* what others trust by: the authority, and former ones that have not ended */
};
void cert_store_init(struct cert_store *store);
void cert_store_fini(struct cert_store *store);

struct cert_wish {
    const char *common_name; /* of the certificate; the authority's is this and " authority" */
    const char *const *names;
    size_t n_names;
    int64_t now_s, valid_s, authority_valid_s, renew_before_s;
};

enum cert_outcome {
    CERT_KEPT,
    CERT_ANNOUNCED, /* a new authority is among the trusted ones, and the certificate stays for a while */
    CERT_MADE,
};
struct cert_result {
    enum cert_outcome outcome;
    bool has_new_authority; /* the authority's pair changed */
    struct err why;         /* not kept: what the former certificate lacks */
};
/* Bring the store to where it should be. A certificate that is fit stays. Else a new one is made, by the authority that
 * is there; a new authority is announced first where the former certificate still lasts for half of renew_before_s,
 * since those who trust by copies of `trusted` need time. 0, or -1 with the store as it was in all that counts. */
int cert_renew(struct cert_store *store, const struct cert_wish *wish, struct cert_result *ret, struct err *e);

/* A folder with ca.crt, ca.key, tls.crt and tls.key; keys are readable by their owner alone. Files that are not there
 * are empty texts. Written one by one, each by renaming. 0, or -1. */
int cert_files_read(const char *folder, struct cert_store *store, struct err *e);
int cert_files_write(const char *folder, struct cert_store *store, struct err *e);

/* Secrets of type kubernetes.io/tls: `name` with ca.crt, tls.crt and tls.key, `authority` with its own pair. */
struct cert_secrets {
    const char *kubeconfig, *ns; /* NULL: of this pod; of the pod or the kubeconfig's context */
    const char *name, *authority;
    int64_t timeout_ns;
};
/* Read, renew, write; again from the start where somebody else wrote meanwhile. ret_store is what is in force. */
int cert_secrets_renew(const struct cert_secrets *secrets, const struct cert_wish *wish, struct cert_store *ret_store,
                       struct cert_result *ret, struct err *e);

#endif
