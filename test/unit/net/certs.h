/* Certificates for tests, made on the spot: a CA and what it signs, as PEM files in a temporary folder. */
#ifndef TEST_NET_CERTS_H
#define TEST_NET_CERTS_H

#include "support.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

enum { CERT_PATH_MAX = 128 };

struct cert {
    EVP_PKEY *key;
    X509 *x509;
};

struct cert_request {
    const char *name;             /* common name */
    const char *san;              /* "DNS:localhost,IP:127.0.0.1", NULL for a CA */
    const struct cert *signer;    /* NULL: itself */
    long serial, from_s, until_s; /* relative to now */
};

static inline void cert_extend(X509 *x509, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, x509, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    assert_non_null(extension);
    assert_int_equal(X509_add_ext(x509, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

static inline struct cert cert_make(const struct cert_request *request)
{
    struct cert cert = {EVP_EC_gen("P-256"), X509_new()};
    const struct cert *signer = request->signer ? request->signer : &cert;
    X509_NAME *name = X509_get_subject_name(cert.x509);
    assert_int_equal(X509_set_version(cert.x509, 2), 1);
    assert_int_equal(ASN1_INTEGER_set(X509_get_serialNumber(cert.x509), request->serial ? request->serial : 1), 1);
    assert_int_equal(
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)request->name, -1, -1, 0), 1);
    (void)X509_gmtime_adj(X509_getm_notBefore(cert.x509), request->from_s ? request->from_s : -3600);
    (void)X509_gmtime_adj(X509_getm_notAfter(cert.x509), request->until_s ? request->until_s : 86400);
    assert_int_equal(X509_set_issuer_name(cert.x509, X509_get_subject_name(signer->x509)), 1);
    assert_int_equal(X509_set_pubkey(cert.x509, cert.key), 1);
    cert_extend(cert.x509, signer->x509, NID_basic_constraints, request->san ? "CA:FALSE" : "critical,CA:TRUE");
    if (request->san)
        cert_extend(cert.x509, signer->x509, NID_subject_alt_name, request->san);
    assert_true(X509_sign(cert.x509, signer->key, EVP_sha256()) > 0);
    return cert;
}

static inline void cert_free(struct cert *cert)
{
    EVP_PKEY_free(cert->key);
    X509_free(cert->x509);
}

/* Write <dir>/<name>.crt and <dir>/<name>.key, by renaming, as careful writers do. passphrase may be NULL. */
static inline void cert_write(const struct cert *cert, const char *dir, const char *name, const char *passphrase)
{
    char path[CERT_PATH_MAX], temporary[CERT_PATH_MAX];
    (void)snprintf(temporary, sizeof(temporary), "%s/new", dir);
    (void)snprintf(path, sizeof(path), "%s/%s.crt", dir, name);
    FILE *file = fopen(temporary, "we");
    assert_non_null(file);
    assert_int_equal(PEM_write_X509(file, cert->x509), 1);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename(temporary, path), 0);
    (void)snprintf(path, sizeof(path), "%s/%s.key", dir, name);
    file = fopen(temporary, "we");
    assert_non_null(file);
    const unsigned char *secret = (const unsigned char *)passphrase;
    assert_int_equal(PEM_write_PrivateKey(file, cert->key, passphrase ? EVP_aes_128_cbc() : NULL, secret,
                                          passphrase ? (int)strlen(passphrase) : 0, NULL, NULL),
                     1);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename(temporary, path), 0);
}

#endif
