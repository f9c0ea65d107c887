/* OpenSSL, and nothing else: contexts loaded from files, sessions on sockets. This file and issue.c, which makes
 * certificates, alone include its headers, whose macros cast const away, hence the one warning switched off here. */
#include "net/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#pragma GCC diagnostic ignored "-Wcast-qual"

/* TLS 1.2 with forward secrecy and AEAD only: HTTP/2 forbids the rest (RFC 9113, 9.2.2). TLS 1.3 has nothing else. */
static const char tls12_ciphers[] = "ECDHE+AESGCM:ECDHE+CHACHA20";
enum { TLS_DEPTH_MAX = 8 };

struct tls_context {
    SSL_CTX *ssl;
    atomic_int n_refs;
    int64_t valid_from_s, valid_until_s;
};

struct tls_session {
    SSL *ssl;
    struct tls_offer offer;
    const char *alpn;   /* client: must be selected */
    const char *reason; /* of the last failure, by OpenSSL's own strings */
    bool is_plain_http;
};

/* ---- errors ---- */

/* OpenSSL's newest error as text; the queue is empty afterwards. */
static const char *take_reason(void)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    ERR_clear_error();
    return reason ? reason : "no reason given";
}

static int file_error(struct err *e, const char *what, const char *path)
{
    int system_error = 0;
    unsigned long first = ERR_peek_error();
    if (ERR_SYSTEM_ERROR(first))
        system_error = ERR_GET_REASON(first);
    const char *reason = take_reason();
    if (system_error)
        return err_set_errno(e, ERR_FAILED_PRECONDITION, system_error, "cannot read %s %s", what, path);
    return err_set(e, ERR_FAILED_PRECONDITION, "cannot use %s %s: %s (PEM is expected)", what, path, reason);
}

/* ---- contexts ---- */

static int no_passphrase(char *buffer, int size, int is_for_writing, void *context)
{
    (void)buffer;
    (void)size;
    (void)is_for_writing;
    (void)context;
    return 0; /* without this, OpenSSL asks on the terminal */
}

static int64_t seconds_of(const ASN1_TIME *time)
{
    ASN1_TIME *epoch = ASN1_TIME_set(NULL, 0);
    int days = 0, seconds = 0;
    int64_t result = 0;
    if (epoch && ASN1_TIME_diff(&days, &seconds, epoch, time) == 1)
        result = (int64_t)days * 86400 + seconds;
    ASN1_TIME_free(epoch);
    return result;
}

static int load_pair(struct tls_context *context, const struct net_tls_files *files, struct err *e)
{
    if (!files->cert && !files->key)
        return 0;
    if (!files->cert || !files->key)
        return err_set(e, ERR_INVALID_ARGUMENT, "a certificate and its key are needed together");
    if (SSL_CTX_use_certificate_chain_file(context->ssl, files->cert) != 1)
        return file_error(e, "certificate", files->cert);
    if (SSL_CTX_use_PrivateKey_file(context->ssl, files->key, SSL_FILETYPE_PEM) != 1) {
        if (ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH) {
            ERR_clear_error();
            return err_set(e, ERR_FAILED_PRECONDITION, "key %s does not belong to certificate %s", files->key,
                           files->cert);
        }
        return file_error(e, "key", files->key);
    }
    if (SSL_CTX_check_private_key(context->ssl) != 1) {
        ERR_clear_error();
        return err_set(e, ERR_FAILED_PRECONDITION, "key %s does not belong to certificate %s", files->key, files->cert);
    }
    const X509 *cert = SSL_CTX_get0_certificate(context->ssl);
    context->valid_from_s = seconds_of(X509_get0_notBefore(cert));
    context->valid_until_s = seconds_of(X509_get0_notAfter(cert));
    return 0;
}

static int load_ca(struct tls_context *context, bool is_server, const char *ca, struct err *e)
{
    if (SSL_CTX_load_verify_file(context->ssl, ca) != 1)
        return file_error(e, "CA certificates", ca);
    if (!is_server)
        return 0;
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(ca);
    if (!names)
        return file_error(e, "CA certificates", ca);
    SSL_CTX_set_client_CA_list(context->ssl, names);
    return 0;
}

static int set_verification(struct tls_context *context, bool is_server, const struct net_tls_files *files,
                            struct err *e)
{
    if (is_server && !files->ca)
        return 0;
    if (!is_server && files->is_insecure)
        return 0;
    SSL_CTX_set_verify(context->ssl, SSL_VERIFY_PEER | (is_server ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), NULL);
    SSL_CTX_set_verify_depth(context->ssl, TLS_DEPTH_MAX);
    if (files->ca)
        return load_ca(context, is_server, files->ca, e);
    if (SSL_CTX_set_default_verify_paths(context->ssl) == 1)
        return 0;
    return err_set(e, ERR_FAILED_PRECONDITION, "cannot load the system's CA certificates: %s", take_reason());
}

/* RFC 7301: h2 before http/1.1; no common protocol is a fatal alert. */
static int select_alpn(SSL *ssl, const unsigned char **ret_name, unsigned char *ret_len, const unsigned char *names,
                       unsigned len, void *context)
{
    const struct tls_session *session = (const struct tls_session *)SSL_get_app_data(ssl);
    static const unsigned char both[] = "\x02h2\x08http/1.1", h2[] = "\x02h2", http1[] = "\x08http/1.1";
    const unsigned char *ours = session->offer.has_h2 ? (session->offer.has_http1 ? both : h2) : http1;
    unsigned char *selected;
    (void)context;
    if (SSL_select_next_proto(&selected, ret_len, ours, (unsigned)strlen((const char *)ours), names, len) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *ret_name = selected;
    return SSL_TLSEXT_ERR_OK;
}

static void set_options(SSL_CTX *ssl, bool is_server)
{
    (void)SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION);
    (void)SSL_CTX_set_cipher_list(ssl, tls12_ciphers);
    (void)SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    (void)SSL_CTX_clear_mode(ssl, SSL_MODE_AUTO_RETRY); /* a read ends after each record, with data or without */
    (void)SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
    (void)SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    (void)SSL_CTX_set_num_tickets(ssl, 0);
    SSL_CTX_set_default_passwd_cb(ssl, no_passphrase);
    if (is_server)
        SSL_CTX_set_alpn_select_cb(ssl, select_alpn, NULL);
}

struct tls_context *tls_context_new(bool is_server, const struct net_tls_files *files, struct err *e)
{
    struct tls_context *context = mem_new(struct tls_context);
    atomic_init(&context->n_refs, 1);
    ERR_clear_error();
    context->ssl = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());
    if (!context->ssl) {
        (void)err_set(e, ERR_UNAVAILABLE, "cannot set TLS up: %s", take_reason());
        goto fail;
    }
    set_options(context->ssl, is_server);
    if (is_server && !files->cert) {
        (void)err_set(e, ERR_INVALID_ARGUMENT, "a TLS server needs a certificate and a key");
        goto fail;
    }
    if (load_pair(context, files, e) < 0 || set_verification(context, is_server, files, e) < 0)
        goto fail;
    return context;
fail:
    tls_context_unref(context);
    return NULL;
}

void tls_context_unref(struct tls_context *context)
{
    if (!context || atomic_fetch_sub(&context->n_refs, 1) > 1)
        return;
    SSL_CTX_free(context->ssl);
    free(context);
}

void tls_thread_end(void)
{
    OPENSSL_thread_stop();
}

void tls_context_validity(const struct tls_context *context, int64_t *ret_from_s, int64_t *ret_until_s)
{
    *ret_from_s = context->valid_from_s;
    *ret_until_s = context->valid_until_s;
}

/* ---- sessions ---- */

static struct tls_session *session_new(const struct tls_context *context, int fd)
{
    struct tls_session *session = mem_new(struct tls_session);
    ERR_clear_error();
    session->ssl = SSL_new(context->ssl); /* holds its own reference to the SSL_CTX */
    if (session->ssl && SSL_set_fd(session->ssl, fd) == 1 && SSL_set_app_data(session->ssl, session) == 1)
        return session;
    tls_session_free(session);
    return NULL;
}

struct tls_session *tls_session_new_server(struct tls_context *context, int fd, struct tls_offer offer)
{
    struct tls_session *session = session_new(context, fd);
    if (!session)
        return NULL;
    session->offer = offer;
    SSL_set_accept_state(session->ssl);
    return session;
}

static bool is_ip_address(const char *name)
{
    unsigned char bytes[16];
    return inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1;
}

/* SNI carries DNS names only, without the root's dot (RFC 6066, 3). Names are checked against SANs, never the subject.
 */
static int set_peer_name(SSL *ssl, const char *name)
{
    char host[256];
    struct str bare = str_of(name);
    if (bare.len > 1 && bare.ptr[bare.len - 1] == '.')
        bare.len--;
    if (!str_copy(host, sizeof(host), bare))
        return 0;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    if (is_ip_address(host))
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host);
    return SSL_set_tlsext_host_name(ssl, host) == 1 && SSL_set1_host(ssl, host) == 1;
}

static int offer_alpn(SSL *ssl, const char *alpn)
{
    unsigned char wire[64];
    size_t len = strlen(alpn);
    if (len >= sizeof(wire))
        return 0;
    wire[0] = (unsigned char)len;
    memcpy(wire + 1, alpn, len);
    return SSL_set_alpn_protos(ssl, wire, (unsigned)len + 1) == 0;
}

struct tls_session *tls_session_new_client(struct tls_context *context, int fd, const char *name, const char *alpn,
                                           struct err *e)
{
    struct tls_session *session = session_new(context, fd);
    if (!session || set_peer_name(session->ssl, name) != 1 || (alpn && offer_alpn(session->ssl, alpn) != 1)) {
        (void)err_set(e, ERR_INVALID_ARGUMENT, "cannot use TLS with the name \"%.200s\": %s", name, take_reason());
        tls_session_free(session);
        return NULL;
    }
    session->alpn = alpn;
    SSL_set_connect_state(session->ssl);
    return session;
}

void tls_session_free(struct tls_session *session)
{
    if (!session)
        return;
    SSL_free(session->ssl);
    free(session);
}

/* What SSL_get_error says, for a call that returned rc. errno is 0 where the failure is not the system's. */
static enum tls_result result_of(struct tls_session *session, int rc)
{
    int saved = errno, reason;
    switch (SSL_get_error(session->ssl, rc)) {
    case SSL_ERROR_WANT_READ:
        return TLS_WANT_READ;
    case SSL_ERROR_WANT_WRITE:
        return TLS_WANT_WRITE;
    case SSL_ERROR_ZERO_RETURN:
        return TLS_ENDED;
    case SSL_ERROR_SYSCALL:
        errno = saved;
        return TLS_FAILED;
    default:
        errno = 0;
        reason = ERR_GET_REASON(ERR_peek_error());
        session->reason = ERR_reason_error_string(ERR_peek_error());
        return reason == SSL_R_UNEXPECTED_EOF_WHILE_READING ? TLS_ENDED : TLS_FAILED;
    }
}

static enum tls_result describe_failure(struct tls_session *session, enum tls_result result, struct err *e)
{
    int saved = errno;
    bool is_verified = SSL_get_verify_mode(session->ssl) != SSL_VERIFY_NONE; /* else it was looked at and ignored */
    long verified = is_verified ? SSL_get_verify_result(session->ssl) : X509_V_OK;
    session->is_plain_http = ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST;
    if (verified != X509_V_OK)
        (void)err_set(e, ERR_UNAVAILABLE, "TLS: the peer's certificate is not trusted: %s",
                      X509_verify_cert_error_string(verified));
    else if (result == TLS_ENDED)
        (void)err_set(e, ERR_UNAVAILABLE, "TLS: the peer closed the connection during the handshake");
    else if (saved != 0 && ERR_peek_error() == 0)
        (void)err_set_errno(e, ERR_UNAVAILABLE, saved, "TLS handshake");
    else
        (void)err_set(e, ERR_UNAVAILABLE, "TLS handshake: %s", take_reason());
    ERR_clear_error();
    return TLS_FAILED;
}

/* Without the right protocol a client would speak HTTP/2 to something that does not (RFC 9113, 3.3). */
static enum tls_result check_alpn(const struct tls_session *session, struct err *e)
{
    const char *selected = tls_alpn(session);
    if (!session->alpn || strcmp(selected, session->alpn) == 0)
        return TLS_OK;
    if (selected[0] == '\0' && strcmp(session->alpn, "h2") != 0)
        return TLS_OK;
    (void)err_set(e, ERR_UNAVAILABLE, "TLS: the server does not offer \"%s\" by ALPN", session->alpn);
    return TLS_FAILED;
}

enum tls_result tls_handshake(struct tls_session *session, struct err *e)
{
    ERR_clear_error();
    errno = 0;
    int rc = SSL_do_handshake(session->ssl);
    if (rc == 1)
        return check_alpn(session, e);
    enum tls_result result = result_of(session, rc);
    if (result == TLS_ENDED || result == TLS_FAILED)
        return describe_failure(session, result, e);
    return result;
}

bool tls_is_plain_http(const struct tls_session *session)
{
    return session->is_plain_http;
}

enum tls_result tls_read(struct tls_session *session, void *bytes, size_t size, size_t *ret_len)
{
    ERR_clear_error();
    errno = 0;
    int rc = SSL_read_ex(session->ssl, bytes, size, ret_len);
    return rc == 1 ? TLS_OK : result_of(session, rc);
}

enum tls_result tls_write(struct tls_session *session, const void *bytes, size_t len, size_t *ret_len)
{
    ERR_clear_error();
    errno = 0;
    int rc = SSL_write_ex(session->ssl, bytes, len, ret_len);
    return rc == 1 ? TLS_OK : result_of(session, rc);
}

const char *tls_reason(const struct tls_session *session)
{
    return session->reason;
}

size_t tls_pending(const struct tls_session *session)
{
    return (size_t)SSL_pending(session->ssl);
}

void tls_shutdown(struct tls_session *session)
{
    ERR_clear_error();
    (void)SSL_shutdown(session->ssl); /* our half only; the peer's is not waited for */
    ERR_clear_error();
}

const char *tls_alpn(const struct tls_session *session)
{
    const unsigned char *name = NULL;
    unsigned len = 0;
    SSL_get0_alpn_selected(session->ssl, &name, &len);
    if (len == 2 && memcmp(name, "h2", 2) == 0)
        return "h2";
    return len == 8 && memcmp(name, "http/1.1", 8) == 0 ? "http/1.1" : "";
}
