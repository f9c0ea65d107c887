/* TLS on loopback for tests: a world with certificates, a server, our own client, and OpenSSL itself as the peer that
 * may misbehave. */
#ifndef TEST_NET_TLS_RIG_H
#define TEST_NET_TLS_RIG_H

#include "net/peer.h"

#include "net/certs.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

struct session {
    struct world *w;
    struct net_conn *conn;
    const char *name;
    struct buf got;
    struct session **place; /* where the world points to it */
};

struct world {
    struct metrics *metrics;
    struct net_loop *loop;
    struct net_tls *server_tls;
    struct net_listener *listener;
    struct net_limits limits;
    struct net_protocol h2, http1, client;
    struct session *server, *dialled;
    int n_closed, n_failed, n_told;
    bool frees_when_told;
    char end_reason[128];
    struct err error, told;
    char dir[32], cert[CERT_PATH_MAX], key[CERT_PATH_MAX], ca[CERT_PATH_MAX];
    char client_cert[CERT_PATH_MAX], client_key[CERT_PATH_MAX];
    struct cert authority, other_authority;
};

/* ---- protocols ---- */

static inline void *open_session(struct world *w, struct net_conn *conn, const char *name, struct session **place)
{
    struct session *s = mem_new(struct session);
    *s = (struct session){.w = w, .conn = conn, .name = name, .place = place};
    buf_init(&s->got, 64 << 20);
    *place = s;
    net_conn_established(conn);
    return s;
}

static inline void *open_h2(void *context, struct net_conn *conn)
{
    return open_session((struct world *)context, conn, "h2", &((struct world *)context)->server);
}

static inline void *open_http1(void *context, struct net_conn *conn)
{
    return open_session((struct world *)context, conn, "http1", &((struct world *)context)->server);
}

static inline void *open_client(void *context, struct net_conn *conn)
{
    return open_session((struct world *)context, conn, "client", &((struct world *)context)->dialled);
}

static inline int echo(void *context, const uint8_t *bytes, size_t len)
{
    struct session *s = (struct session *)context;
    (void)buf_append(&s->got, bytes, len);
    return net_conn_send(s->conn, bytes, len);
}

static inline int collect(void *context, const uint8_t *bytes, size_t len)
{
    (void)buf_append(&((struct session *)context)->got, bytes, len);
    return 0;
}

static inline void close_session(void *context)
{
    struct session *s = (struct session *)context;
    s->w->n_closed++;
    (void)str_copy(s->w->end_reason, sizeof(s->w->end_reason), str_of(net_conn_end_reason(s->conn)));
    if (*s->place == s)
        *s->place = NULL;
    buf_fini(&s->got);
    free(s);
}

/* ---- the world ---- */

static inline void write_certs(struct world *w)
{
    w->authority = cert_make(&(struct cert_request){.name = "test CA"});
    w->other_authority = cert_make(&(struct cert_request){.name = "other CA"});
    struct cert server = cert_make(
        &(struct cert_request){.name = "server", .san = "DNS:localhost,IP:127.0.0.1", .signer = &w->authority});
    struct cert client =
        cert_make(&(struct cert_request){.name = "client", .san = "DNS:client", .signer = &w->authority});
    cert_write(&w->authority, w->dir, "ca", NULL);
    cert_write(&w->other_authority, w->dir, "other", NULL);
    cert_write(&server, w->dir, "tls", NULL);
    cert_write(&client, w->dir, "client", NULL);
    cert_free(&server);
    cert_free(&client);
}

static inline void told_of_reload(void *context, const struct err *error)
{
    struct world *w = (struct world *)context;
    w->n_told++;
    if (w->frees_when_told) {
        net_listener_free(w->listener);
        net_tls_free(w->server_tls);
        w->listener = NULL;
        w->server_tls = NULL;
    }
    w->told = error ? *error : (struct err){.class = ERR_NONE};
}

static inline void start_server(struct world *w, const char *ca)
{
    struct err e = {0};
    struct net_tls_files files = {.cert = w->cert, .key = w->key, .ca = ca};
    w->server_tls = net_tls_server_new(w->loop, &files, &e);
    if (!w->server_tls)
        print_error("%s\n", e.text);
    assert_non_null(w->server_tls);
    net_tls_on_reload(w->server_tls, told_of_reload, w);
    struct net_listen_config config = {
        .address = "127.0.0.1:0", .tls = w->server_tls, .h2 = &w->h2, .http1 = &w->http1, .limits = &w->limits};
    w->listener = net_listen(w->loop, &config, &e);
    assert_non_null(w->listener);
}

static inline int set_up(void **state)
{
    struct world *w = mem_new(struct world);
    struct err e;
    w->metrics = metrics_new();
    w->loop = net_loop_new(w->metrics, &e);
    w->limits = net_limits_default;
    memcpy(w->dir, "/tmp/net-tls-XXXXXX", 20);
    assert_non_null(mkdtemp(w->dir));
    (void)snprintf(w->cert, sizeof(w->cert), "%s/tls.crt", w->dir);
    (void)snprintf(w->key, sizeof(w->key), "%s/tls.key", w->dir);
    (void)snprintf(w->ca, sizeof(w->ca), "%s/ca.crt", w->dir);
    (void)snprintf(w->client_cert, sizeof(w->client_cert), "%s/client.crt", w->dir);
    (void)snprintf(w->client_key, sizeof(w->client_key), "%s/client.key", w->dir);
    write_certs(w);
    w->h2 = (struct net_protocol){"h2", "h2", w, open_h2, echo, NULL, NULL, close_session, NULL};
    w->http1 = (struct net_protocol){"http/1.1", "http/1.1", w, open_http1, echo, NULL, NULL, close_session, NULL};
    w->client = (struct net_protocol){"client", "h2", w, open_client, collect, NULL, NULL, close_session, NULL};
    start_server(w, NULL);
    *state = w;
    return 0;
}

static inline void remove_files(const struct world *w)
{
    static const char *const names[] = {"ca.crt",     "ca.key",     "other.crt", "other.key", "tls.crt", "tls.key",
                                        "client.crt", "client.key", "data",      "x.crt",     "x.key"};
    char path[CERT_PATH_MAX];
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", w->dir, names[i]);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(w->dir), 0);
}

static inline int tear_down(void **state)
{
    struct world *w = (struct world *)*state;
    net_listener_free(w->listener);
    net_tls_free(w->server_tls);
    net_loop_free(w->loop);
    assert_double_same(metric_of(w->metrics, "keda_gpu_scaler_connections", "in"), 0);
    assert_double_same(metric_of(w->metrics, "keda_gpu_scaler_connections", "out"), 0);
    metrics_free(w->metrics);
    cert_free(&w->authority);
    cert_free(&w->other_authority);
    remove_files(w);
    free(w);
    return 0;
}

static inline void dial_failed(void *context, const struct err *e)
{
    struct world *w = (struct world *)context;
    w->n_failed++;
    w->error = *e;
}

struct dialling {
    const char *ca, *server_name;
    bool is_insecure, has_cert;
};

/* Dial the server with our client; turn until it is open or has failed. Returns the TLS object, to be freed. */
static inline struct net_tls *dial(struct world *w, const struct dialling *how)
{
    struct err e = {0};
    char address[64];
    (void)snprintf(address, sizeof(address), "127.0.0.1:%d", net_listener_port(w->listener));
    struct net_tls_files files = {.ca = how->ca,
                                  .is_insecure = how->is_insecure,
                                  .cert = how->has_cert ? w->client_cert : NULL,
                                  .key = how->has_cert ? w->client_key : NULL};
    struct net_tls *tls = net_tls_client_new(w->loop, &files, &e);
    assert_non_null(tls);
    struct net_connect_config config = {.address = address,
                                        .tls = tls,
                                        .server_name = how->server_name,
                                        .protocol = &w->client,
                                        .timeout_ns = 10 * NS_PER_S,
                                        .failed = dial_failed,
                                        .context = w};
    w->n_failed = 0;
    assert_non_null(net_connect(w->loop, &config, &e));
    turn_until(w->loop, w->dialled || w->n_failed);
    return tls;
}

/* ---- raw OpenSSL peers ---- */

struct raw {
    SSL_CTX *context;
    SSL *ssl;
    int fd;
};

static inline struct raw raw_new(const struct world *w)
{
    struct raw raw = {.context = SSL_CTX_new(TLS_client_method()), .fd = peer_connect(net_listener_port(w->listener))};
    raw.ssl = SSL_new(raw.context);
    assert_int_equal(SSL_set_fd(raw.ssl, raw.fd), 1);
    SSL_set_connect_state(raw.ssl);
    return raw;
}

static inline void raw_free(struct raw *raw)
{
    SSL_free(raw->ssl);
    SSL_CTX_free(raw->context);
    if (raw->fd >= 0)
        (void)close(raw->fd);
}

static inline void raw_unblock(const struct raw *raw)
{
    struct timeval soon = {.tv_usec = 1000};
    assert_int_equal(setsockopt(raw->fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon)), 0);
}

/* Handshake while turning the loop: 1, or 0 when it failed. */
static inline int raw_handshake(struct world *w, struct raw *raw)
{
    raw_unblock(raw);
    for (int64_t limit = time_mono_ns() + 20 * NS_PER_S; time_mono_ns() < limit;) {
        ERR_clear_error();
        int rc = SSL_do_handshake(raw->ssl);
        if (rc == 1)
            return 1;
        if (SSL_get_error(raw->ssl, rc) != SSL_ERROR_WANT_READ)
            return 0;
        (void)net_loop_turn(w->loop);
    }
    return 0;
}

static inline void raw_say(struct raw *raw, const char *text)
{
    assert_int_equal(SSL_write(raw->ssl, text, (int)strlen(text)), (int)strlen(text));
}

/* Read n bytes while turning the loop; -1 when the stream ended before, with *ret_clean: by close_notify. */
static inline int raw_read(struct world *w, struct raw *raw, char *bytes, int n, bool *ret_clean)
{
    int have = 0;
    for (int64_t limit = time_mono_ns() + 20 * NS_PER_S; have < n && time_mono_ns() < limit;) {
        ERR_clear_error();
        int rc = SSL_read(raw->ssl, bytes + have, n - have);
        if (rc > 0) {
            have += rc;
            continue;
        }
        int error = SSL_get_error(raw->ssl, rc);
        if (error != SSL_ERROR_WANT_READ) {
            *ret_clean = error == SSL_ERROR_ZERO_RETURN;
            return -1;
        }
        (void)net_loop_turn(w->loop);
    }
    return have;
}

/* The serial number of the certificate that a new connection gets. */
static inline long served_serial(struct world *w)
{
    struct raw raw = raw_new(w);
    assert_int_equal(raw_handshake(w, &raw), 1);
    X509 *cert = SSL_get1_peer_certificate(raw.ssl);
    long serial = ASN1_INTEGER_get(X509_get0_serialNumber(cert));
    X509_free(cert);
    raw_free(&raw);
    turn_some(w->loop);
    return serial;
}

#endif
