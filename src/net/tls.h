/* The inside of TLS, for net's own files: a context is one loaded set of files, a session one connection's state.
 * openssl.c alone knows sessions of OpenSSL. */
#ifndef NET_TLS_H
#define NET_TLS_H

#include "net/net.h"

struct tls_context;
struct tls_session;

/* ---- openssl.c ---- */

/* Load the files; blocks. Counted: each context_new/ref is paired with one unref. NULL and an error when a file is
 * missing, is not PEM, or key and certificate do not belong together. Any thread. */
struct tls_context *tls_context_new(bool is_server, const struct net_tls_files *files, struct err *e);
void tls_context_unref(struct tls_context *context); /* accepts NULL */
/* This thread is done with TLS: let go of what OpenSSL keeps for it (threads of the pool live as long as the process).
 */
void tls_thread_end(void);
/* When the certificate is valid, seconds since 1970; both 0 without one. */
void tls_context_validity(const struct tls_context *context, int64_t *ret_from_s, int64_t *ret_until_s);

enum tls_result { TLS_OK, TLS_WANT_READ, TLS_WANT_WRITE, TLS_ENDED, TLS_FAILED };

struct tls_offer {
    bool has_h2, has_http1;
};
/* A session on a connected socket; the context may go before it. `offer` is what a server selects from by ALPN, h2
 * first. */
struct tls_session *tls_session_new_server(struct tls_context *context, int fd, struct tls_offer offer);
/* name is verified (DNS name or IP address) and, for a DNS name, sent as SNI. alpn is the protocol that must be
 * selected. */
struct tls_session *tls_session_new_client(struct tls_context *context, int fd, const char *name, const char *alpn,
                                           struct err *e);
void tls_session_free(struct tls_session *session); /* accepts NULL */

/* TLS_FAILED sets e. */
enum tls_result tls_handshake(struct tls_session *session, struct err *e);
/* Was the failed handshake plain HTTP on our TLS port? */
bool tls_is_plain_http(const struct tls_session *session);
/* One record at most. TLS_WANT_READ also after a record without data; TLS_WANT_WRITE when it has to be answered first.
 */
enum tls_result tls_read(struct tls_session *session, void *bytes, size_t size, size_t *ret_len);
enum tls_result tls_write(struct tls_session *session, const void *bytes, size_t len, size_t *ret_len);
/* Why the last read or write failed: static text, or NULL where errno says it. */
const char *tls_reason(const struct tls_session *session);
/* Decrypted bytes that no readiness of the socket will announce. */
size_t tls_pending(const struct tls_session *session);
/* Send close_notify, as far as the socket takes it. */
void tls_shutdown(struct tls_session *session);
/* "h2", "http/1.1", or "" when the peer did not use ALPN. */
const char *tls_alpn(const struct tls_session *session);

/* ---- tls.c ---- */

/* The context for a new connection, valid until the next turn; sessions keep what they need. */
struct tls_context *net_tls_context(const struct net_tls *tls);

#endif
