/* Certificates of our own: an authority, what it signs, and whether a pair is still fit. P-256 and SHA-256 only. Uses
 * OpenSSL, as openssl.c does; owns no file and keeps nothing. */
#include "net/net.h"

#include <arpa/inet.h>
#include <string.h>
#include <time.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#pragma GCC diagnostic ignored "-Wcast-qual"

enum {
    SERIAL_BITS = 127,     /* positive, and far beyond the 64 bits of chance that are asked for */
    COMMON_NAME_MAX = 64,  /* RFC 5280, ub-common-name */
    DNS_NAME_MAX = 253,    /* RFC 1035 */
    CERTS_MAX = 16,        /* of one text */
    BUNDLE_MAX = 4,        /* authorities that are trusted at once */
    VERSION_3 = 2,         /* as X.509 counts */
    BACKDATED_S = 15 * 60, /* clocks of nodes differ */
};

/* ---- what OpenSSL allocates ---- */

static void free_cert(X509 **cert)
{
    X509_free(*cert);
}
#define CERT_AUTO __attribute__((cleanup(free_cert)))

static void free_certs(STACK_OF(X509) * *certs)
{
    sk_X509_pop_free(*certs, X509_free);
}
#define CERTS_AUTO __attribute__((cleanup(free_certs)))

static void free_key(EVP_PKEY **key)
{
    EVP_PKEY_free(*key);
}
#define KEY_AUTO __attribute__((cleanup(free_key)))

static void free_bio(BIO **bio)
{
    BIO_free(*bio);
}
#define BIO_AUTO __attribute__((cleanup(free_bio)))

static int openssl_error(struct err *e, const char *what)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    (void)err_set(e, ERR_INTERNAL, "cannot %s: %s", what, reason ? reason : "no reason given");
    ERR_clear_error();
    return -1;
}

void net_pem_init(struct net_pem *pem)
{
    buf_init(&pem->cert, NET_PEM_BYTES_MAX);
    buf_init(&pem->key, NET_PEM_BYTES_MAX);
}

void net_pem_fini(struct net_pem *pem)
{
    if (pem->key.data)
        OPENSSL_cleanse(pem->key.data, pem->key.capacity);
    buf_fini(&pem->key);
    buf_fini(&pem->cert);
}

/* ---- reading ---- */

static STACK_OF(X509) * read_certs(const struct buf *pem)
{
    STACK_OF(X509) *certs = sk_X509_new_null();
    BIO *bio BIO_AUTO = BIO_new_mem_buf(pem->data ? pem->data : "", (int)pem->len);
    X509 *cert;
    while (bio && certs && sk_X509_num(certs) < CERTS_MAX && (cert = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL)
        if (sk_X509_push(certs, cert) <= 0)
            X509_free(cert);
    ERR_clear_error();
    return certs;
}

/* NULL where there is none. An empty passphrase, else OpenSSL asks on the terminal. */
static EVP_PKEY *read_key(const struct buf *pem)
{
    BIO *bio BIO_AUTO = BIO_new_mem_buf(pem->data ? pem->data : "", (int)pem->len);
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, NULL, (void *)"") : NULL;
    ERR_clear_error();
    return key;
}

static int write_cert(struct buf *out, X509 *cert)
{
    char *text;
    BIO *bio BIO_AUTO = BIO_new(BIO_s_mem());
    if (!bio || PEM_write_bio_X509(bio, cert) != 1)
        return -1;
    long len = BIO_get_mem_data(bio, &text);
    return buf_append(out, text, (size_t)len);
}

static int write_key(struct buf *out, const EVP_PKEY *key)
{
    char *text;
    BIO *bio BIO_AUTO = BIO_new(BIO_s_secmem());
    if (!bio || PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) != 1)
        return -1;
    long len = BIO_get_mem_data(bio, &text);
    return buf_append(out, text, (size_t)len);
}

/* ---- making ---- */

static bool is_address(const char *name)
{
    unsigned char bytes[16];
    return inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1;
}

/* Letters, digits and hyphens in labels, "*." in front allowed: nothing that means something in a list of names. */
static bool is_dns_name(const char *name)
{
    size_t len = strlen(name);
    const char *rest = str_has_prefix(str_of(name), "*.") ? name + 2 : name;
    bool is_label_empty = true;
    for (const char *c = rest; *c; c++) {
        bool is_plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '-';
        if (!is_plain && (*c != '.' || is_label_empty))
            return false;
        is_label_empty = *c == '.';
    }
    return len <= DNS_NAME_MAX && !is_label_empty;
}

int net_issue_check(const struct net_issue *issue, struct err *e)
{
    size_t len = strlen(issue->common_name);
    if (len == 0 || len > COMMON_NAME_MAX)
        return err_set(e, ERR_INVALID_ARGUMENT, "\"%.100s\" is no common name: 1 to 64 bytes", issue->common_name);
    for (size_t i = 0; i < issue->n_names; i++)
        if (!is_address(issue->names[i]) && !is_dns_name(issue->names[i]))
            return err_set(e, ERR_INVALID_ARGUMENT,
                           "\"%.260s\" is no name for a certificate: a DNS name such as gpu.example.com, or an address",
                           issue->names[i]);
    return 0;
}

/* "DNS:a,IP:1.2.3.4" */
static void write_names(struct buf *out, const struct net_issue *issue)
{
    for (size_t i = 0; i < issue->n_names; i++)
        (void)buf_printf(out, "%s%s:%s", i ? "," : "", is_address(issue->names[i]) ? "IP" : "DNS", issue->names[i]);
}

static int extend(X509 *cert, const X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, (X509 *)issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    int rc = extension && X509_add_ext(cert, extension, -1) == 1 ? 0 : -1;
    X509_EXTENSION_free(extension);
    return rc;
}

static int set_serial(X509 *cert)
{
    BIGNUM *number = BN_new();
    bool is_set = number && BN_rand(number, SERIAL_BITS, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
                  BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert)) != NULL;
    BN_free(number);
    return is_set ? 0 : -1;
}

/* All but names, extensions and the signature. NULL: there is no memory or no chance. */
static X509 *new_cert(const struct net_issue *issue, EVP_PKEY *key)
{
    X509 *cert = X509_new();
    const unsigned char *name = (const unsigned char *)issue->common_name;
    if (cert && X509_set_version(cert, VERSION_3) == 1 && set_serial(cert) == 0 &&
        X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_UTF8, name, -1, -1, 0) == 1 &&
        ASN1_TIME_set(X509_getm_notBefore(cert), (time_t)(issue->from_s - BACKDATED_S)) &&
        ASN1_TIME_set(X509_getm_notAfter(cert), (time_t)issue->until_s) && X509_set_pubkey(cert, key) == 1)
        return cert;
    X509_free(cert);
    return NULL;
}

static int sign(X509 *cert, const X509 *issuer, EVP_PKEY *issuer_key)
{
    return X509_set_issuer_name(cert, X509_get_subject_name(issuer)) == 1 &&
                   X509_sign(cert, issuer_key, EVP_sha256()) > 0
               ? 0
               : -1;
}

static int put(struct net_pem *ret, X509 *cert, const EVP_PKEY *key, const char *what, struct err *e)
{
    struct net_pem fresh;
    net_pem_init(&fresh);
    if (write_cert(&fresh.cert, cert) < 0 || write_key(&fresh.key, key) < 0) {
        net_pem_fini(&fresh);
        return openssl_error(e, what);
    }
    net_pem_fini(ret);
    *ret = fresh;
    return 0;
}

int net_issue_authority(const struct net_issue *issue, struct net_pem *authority, struct err *e)
{
    static const char what[] = "make an authority";
    if (net_issue_check(issue, e) < 0)
        return -1;
    bool is_new = authority->key.len == 0;
    EVP_PKEY *key KEY_AUTO = is_new ? EVP_EC_gen("P-256") : read_key(&authority->key);
    if (!key && !is_new)
        return err_set(e, ERR_FAILED_PRECONDITION,
                       "the authority's key cannot be read: PEM without a passphrase is expected");
    X509 *cert CERT_AUTO = key ? new_cert(issue, key) : NULL;
    if (!cert || extend(cert, cert, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") < 0 ||
        extend(cert, cert, NID_key_usage, "critical,keyCertSign,cRLSign") < 0 ||
        extend(cert, cert, NID_subject_key_identifier, "hash") < 0 || sign(cert, cert, key) < 0)
        return openssl_error(e, what);
    return put(authority, cert, key, what, e);
}

static int extend_end(X509 *cert, const X509 *issuer, const struct net_issue *issue)
{
    struct buf names BUF_AUTO;
    buf_init(&names, NET_PEM_BYTES_MAX);
    write_names(&names, issue);
    const struct {
        int nid;
        const char *value;
    } extensions[] = {
        {NID_basic_constraints, "critical,CA:FALSE"},   {NID_key_usage, "critical,digitalSignature"},
        {NID_ext_key_usage, "serverAuth,clientAuth"},   {NID_subject_key_identifier, "hash"},
        {NID_authority_key_identifier, "keyid:always"}, {NID_subject_alt_name, buf_cstr(&names)},
    };
    if (names.is_overflowed)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(extensions); i++)
        if (extend(cert, issuer, extensions[i].nid, extensions[i].value) < 0)
            return -1;
    return 0;
}

int net_issue_certificate(const struct net_issue *issue, const struct net_pem *authority, struct net_pem *ret,
                          struct err *e)
{
    static const char what[] = "make a certificate";
    if (net_issue_check(issue, e) < 0)
        return -1;
    if (issue->n_names == 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "a certificate needs a name");
    EVP_PKEY *issuer_key KEY_AUTO = read_key(&authority->key), *key KEY_AUTO = EVP_EC_gen("P-256");
    STACK_OF(X509) *issuers CERTS_AUTO = read_certs(&authority->cert);
    const X509 *issuer = sk_X509_num(issuers) > 0 ? sk_X509_value(issuers, 0) : NULL;
    if (!issuer_key || !issuer)
        return err_set(e, ERR_FAILED_PRECONDITION, "the authority is not complete");
    X509 *cert CERT_AUTO = key ? new_cert(issue, key) : NULL;
    if (!cert || extend_end(cert, issuer, issue) < 0 || sign(cert, issuer, issuer_key) < 0)
        return openssl_error(e, what);
    return put(ret, cert, key, what, e);
}

/* ---- judging ---- */

static int64_t end_of(const X509 *cert)
{
    ASN1_TIME *epoch = ASN1_TIME_set(NULL, 0);
    int days = 0, seconds = 0;
    bool is_read = epoch && ASN1_TIME_diff(&days, &seconds, epoch, X509_get0_notAfter(cert)) == 1;
    ASN1_TIME_free(epoch);
    return is_read ? (int64_t)days * 86400 + seconds : 0;
}

int64_t net_cert_until_s(const struct buf *pem)
{
    STACK_OF(X509) *certs CERTS_AUTO = read_certs(pem);
    return sk_X509_num(certs) > 0 ? end_of(sk_X509_value(certs, 0)) : 0;
}

/* By one name of the certificate's own, never its subject. A name with an asterisk must stand there as it is. */
static bool has_name(X509 *cert, const char *name)
{
    unsigned flags = X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS;
    if (is_address(name))
        return X509_check_ip_asc(cert, name, flags) == 1;
    return X509_check_host(cert, name, 0, flags | (*name == '*' ? X509_CHECK_FLAG_NO_WILDCARDS : 0), NULL) == 1;
}

/* Is the chain good at that time, for this purpose? */
static int verify(X509 *cert, STACK_OF(X509) * chain, STACK_OF(X509) * trusted, int64_t at_s, int purpose)
{
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *context = X509_STORE_CTX_new();
    int result = X509_V_ERR_OUT_OF_MEM;
    if (store && context && X509_STORE_CTX_init(context, store, cert, chain) == 1) {
        X509_STORE_CTX_set0_trusted_stack(context, trusted);
        X509_STORE_CTX_set_time(context, 0, (time_t)at_s);
        (void)X509_STORE_CTX_set_purpose(context, purpose);
        result = X509_verify_cert(context) == 1 ? X509_V_OK : X509_STORE_CTX_get_error(context);
    }
    X509_STORE_CTX_free(context);
    X509_STORE_free(store);
    ERR_clear_error();
    return result;
}

static int check_time(const X509 *cert, int64_t until_s, struct err *e)
{
    char end[TIME_RFC3339_MAX];
    if (end_of(cert) >= until_s)
        return 0;
    time_format_rfc3339(end, end_of(cert) * NS_PER_S);
    return err_set(e, ERR_FAILED_PRECONDITION, "it ends at %s", end);
}

static int check_pair(const struct net_pem *pem, STACK_OF(X509) * certs, struct err *e)
{
    EVP_PKEY *key KEY_AUTO = read_key(&pem->key);
    if (sk_X509_num(certs) <= 0 || !key)
        return err_set(e, ERR_FAILED_PRECONDITION, "there is no %s", key ? "certificate" : "key");
    bool is_pair = X509_check_private_key(sk_X509_value(certs, 0), key) == 1;
    ERR_clear_error();
    return is_pair ? 0 : err_set(e, ERR_FAILED_PRECONDITION, "the key does not belong to the certificate");
}

int net_cert_check(const struct net_pem *pem, const struct buf *trusted, const struct net_cert_wish *wish,
                   struct err *e)
{
    static const int purposes[] = {X509_PURPOSE_SSL_SERVER, X509_PURPOSE_SSL_CLIENT};
    STACK_OF(X509) *certs CERTS_AUTO = read_certs(&pem->cert), *roots CERTS_AUTO = read_certs(trusted);
    if (check_pair(pem, certs, e) < 0)
        return -1;
    X509 *cert = sk_X509_value(certs, 0);
    for (size_t i = 0; i < wish->n_names; i++)
        if (!has_name(cert, wish->names[i]))
            return err_set(e, ERR_FAILED_PRECONDITION, "it lacks the name %.260s", wish->names[i]);
    for (size_t i = 0; i < ARRAY_LEN(purposes); i++) {
        int result = verify(cert, certs, roots, wish->now_s, purposes[i]);
        if (result != X509_V_OK)
            return err_set(e, ERR_FAILED_PRECONDITION, "it is not trusted: %s", X509_verify_cert_error_string(result));
    }
    return check_time(cert, wish->until_s, e);
}

int net_authority_check(const struct net_pem *authority, int64_t now_s, int64_t until_s, struct err *e)
{
    STACK_OF(X509) *certs CERTS_AUTO = read_certs(&authority->cert);
    if (check_pair(authority, certs, e) < 0)
        return -1;
    X509 *cert = sk_X509_value(certs, 0);
    if (X509_check_ca(cert) != 1)
        return err_set(e, ERR_FAILED_PRECONDITION, "it is no authority");
    int result = verify(cert, NULL, certs, now_s, X509_PURPOSE_ANY);
    if (result != X509_V_OK)
        return err_set(e, ERR_FAILED_PRECONDITION, "it is not fit: %s", X509_verify_cert_error_string(result));
    return check_time(cert, until_s, e);
}

/* ---- bundles ---- */

/* Whatever one of them signed, the other verifies: same name, same key. */
static bool is_same_authority(const X509 *a, const X509 *b)
{
    bool is_same = X509_NAME_cmp(X509_get_subject_name(a), X509_get_subject_name(b)) == 0 &&
                   EVP_PKEY_eq(X509_get0_pubkey(a), X509_get0_pubkey(b)) == 1;
    ERR_clear_error();
    return is_same;
}

int net_bundle_join(const struct buf *authority, const struct buf *others, int64_t now_s, struct buf *ret)
{
    STACK_OF(X509) *ours CERTS_AUTO = read_certs(authority), *all CERTS_AUTO = read_certs(others);
    struct buf out;
    int n = 1;
    buf_init(&out, NET_PEM_BYTES_MAX);
    if (sk_X509_num(ours) <= 0 || write_cert(&out, sk_X509_value(ours, 0)) < 0)
        return -1;
    for (int i = 0; i < sk_X509_num(all) && n < BUNDLE_MAX; i++) {
        X509 *cert = sk_X509_value(all, i);
        if (end_of(cert) <= now_s || is_same_authority(cert, sk_X509_value(ours, 0)))
            continue;
        (void)write_cert(&out, cert);
        n++;
    }
    buf_fini(ret);
    *ret = out;
    return 0;
}
