/* TLS on loopback: ALPN, trust in both directions, names, reload of rotated files, and what goes wrong. Peers are our
 * own client and, where it must misbehave, OpenSSL itself. */
#include "net/peer.h"

#include "net/certs.h"
#include "net/conn.h"

#include <fcntl.h>
#include <sys/ioctl.h>
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

static void *open_session(struct world *w, struct net_conn *conn, const char *name, struct session **place)
{
    struct session *s = mem_new(struct session);
    *s = (struct session){.w = w, .conn = conn, .name = name, .place = place};
    buf_init(&s->got, 64 << 20);
    *place = s;
    net_conn_established(conn);
    return s;
}

static void *open_h2(void *context, struct net_conn *conn)
{
    return open_session((struct world *)context, conn, "h2", &((struct world *)context)->server);
}

static void *open_http1(void *context, struct net_conn *conn)
{
    return open_session((struct world *)context, conn, "http1", &((struct world *)context)->server);
}

static void *open_client(void *context, struct net_conn *conn)
{
    return open_session((struct world *)context, conn, "client", &((struct world *)context)->dialled);
}

static int echo(void *context, const uint8_t *bytes, size_t len)
{
    struct session *s = (struct session *)context;
    (void)buf_append(&s->got, bytes, len);
    return net_conn_send(s->conn, bytes, len);
}

static int collect(void *context, const uint8_t *bytes, size_t len)
{
    (void)buf_append(&((struct session *)context)->got, bytes, len);
    return 0;
}

static void close_session(void *context)
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

static void write_certs(struct world *w)
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

static void told_of_reload(void *context, const struct err *error)
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

static void start_server(struct world *w, const char *ca)
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

static int set_up(void **state)
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

static void remove_files(const struct world *w)
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

static int tear_down(void **state)
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

static void dial_failed(void *context, const struct err *e)
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
static struct net_tls *dial(struct world *w, const struct dialling *how)
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

static struct raw raw_new(const struct world *w)
{
    struct raw raw = {.context = SSL_CTX_new(TLS_client_method()), .fd = peer_connect(net_listener_port(w->listener))};
    raw.ssl = SSL_new(raw.context);
    assert_int_equal(SSL_set_fd(raw.ssl, raw.fd), 1);
    SSL_set_connect_state(raw.ssl);
    return raw;
}

static void raw_free(struct raw *raw)
{
    SSL_free(raw->ssl);
    SSL_CTX_free(raw->context);
    if (raw->fd >= 0)
        (void)close(raw->fd);
}

static void raw_unblock(const struct raw *raw)
{
    struct timeval soon = {.tv_usec = 1000};
    assert_int_equal(setsockopt(raw->fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon)), 0);
}

/* Handshake while turning the loop: 1, or 0 when it failed. */
static int raw_handshake(struct world *w, struct raw *raw)
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

static void raw_say(struct raw *raw, const char *text)
{
    assert_int_equal(SSL_write(raw->ssl, text, (int)strlen(text)), (int)strlen(text));
}

/* Read n bytes while turning the loop; -1 when the stream ended before, with *ret_clean: by close_notify. */
static int raw_read(struct world *w, struct raw *raw, char *bytes, int n, bool *ret_clean)
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
static long served_serial(struct world *w)
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

/* ---- choosing the protocol ---- */

static void test_alpn_chooses_the_protocol(void **state)
{
    static const struct {
        const char *offer;
        unsigned len;
        const char *name; /* NULL: the handshake fails */
    } cases[] = {
        {"\x02h2", 3, "h2"},
        {"\x08http/1.1", 9, "http1"},
        {"\x08http/1.1\x02h2", 12, "h2"},
        {"\x04spdy\x08http/1.1", 14, "http1"},
        {"\x04spdy", 5, NULL},
    };
    struct world *w = (struct world *)*state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct raw raw = raw_new(w);
        assert_int_equal(SSL_set_alpn_protos(raw.ssl, (const unsigned char *)cases[i].offer, cases[i].len), 0);
        assert_int_equal(raw_handshake(w, &raw), cases[i].name ? 1 : 0);
        if (cases[i].name) {
            turn_until(w->loop, w->server != NULL);
            assert_string_equal(w->server->name, cases[i].name);
            assert_true(net_conn_is_tls(w->server->conn));
        }
        raw_free(&raw);
        turn_until(w->loop, metric_of(w->metrics, "keda_gpu_scaler_connections", "in") == 0);
    }
    assert_double_same(metric_of(w->metrics, "keda_gpu_scaler_tls_handshake_failures", "server"), 1);
}

static void test_without_alpn_the_first_bytes_choose(void **state)
{
    static const char *const cases[][2] = {{"GET / HTTP/1.1\r\n", "http1"}, {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "h2"}};
    struct world *w = (struct world *)*state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct raw raw = raw_new(w);
        assert_int_equal(raw_handshake(w, &raw), 1);
        raw_say(&raw, cases[i][0]);
        turn_until(w->loop, w->server && w->server->got.len);
        assert_string_equal(w->server->name, cases[i][1]);
        raw_free(&raw);
        turn_until(w->loop, !w->server);
    }
}

/* A TLS 1.2 server that demands a certificate, on its end of a socket pair: it tells the client during the handshake.
 */
static struct raw demanding_server(const struct world *w, int fd)
{
    struct raw raw = {.context = SSL_CTX_new(TLS_server_method()), .fd = fd};
    assert_int_equal(SSL_CTX_use_certificate_chain_file(raw.context, w->cert), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey_file(raw.context, w->key, SSL_FILETYPE_PEM), 1);
    (void)SSL_CTX_set_max_proto_version(raw.context, TLS1_2_VERSION);
    SSL_CTX_set_verify(raw.context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    raw.ssl = SSL_new(raw.context);
    assert_int_equal(SSL_set_fd(raw.ssl, fd), 1);
    SSL_set_accept_state(raw.ssl);
    return raw;
}

/* What is not checked is not the reason why it failed. */
static void test_an_insecure_client_is_told_the_true_reason(void **state)
{
    struct world *w = (struct world *)*state;
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    struct err e = {0};
    struct net_tls *tls = net_tls_client_new(w->loop, &(struct net_tls_files){.is_insecure = true}, &e);
    struct tls_session *client = tls_session_new_client(net_tls_context(tls), pair[0], "localhost", NULL, &e);
    struct raw server = demanding_server(w, pair[1]);
    enum tls_result result = TLS_WANT_READ;
    for (int i = 0; i < 100 && (result = tls_handshake(client, &e)) == TLS_WANT_READ; i++)
        (void)SSL_do_handshake(server.ssl);
    assert_int_equal(result, TLS_FAILED);
    if (!strstr(e.text, "alert handshake failure"))
        fail_msg("%s", e.text);
    tls_session_free(client);
    net_tls_free(tls);
    raw_free(&server);
    (void)close(pair[0]);
}

static void test_old_versions_of_tls_are_refused(void **state)
{
    struct world *w = (struct world *)*state;
    struct raw raw = raw_new(w);
    SSL_set_security_level(raw.ssl, 0);
    (void)SSL_set_max_proto_version(raw.ssl, TLS1_1_VERSION);
    assert_int_equal(raw_handshake(w, &raw), 0);
    raw_free(&raw);
    raw = raw_new(w);
    (void)SSL_set_max_proto_version(raw.ssl, TLS1_2_VERSION);
    assert_int_equal(raw_handshake(w, &raw), 1);
    raw_free(&raw);
}

static void test_renegotiation_is_refused_and_no_ticket_is_given(void **state)
{
    struct world *w = (struct world *)*state;
    struct raw raw = raw_new(w);
    char bytes[4];
    bool is_clean;
    (void)SSL_set_max_proto_version(raw.ssl, TLS1_2_VERSION);
    assert_int_equal(raw_handshake(w, &raw), 1);
    assert_false(SSL_SESSION_has_ticket(SSL_get_session(raw.ssl)));
    raw_say(&raw, "GETx");
    assert_int_equal(raw_read(w, &raw, bytes, 4, &is_clean), 4);
    (void)SSL_renegotiate(raw.ssl);
    assert_int_equal(raw_handshake(w, &raw), 0);
    raw_free(&raw);
}

/* ---- trust ---- */

static void test_our_client_trusts_by_ca_and_name(void **state)
{
    struct world *w = (struct world *)*state;
    char other[CERT_PATH_MAX];
    (void)snprintf(other, sizeof(other), "%s/other.crt", w->dir);
    const struct {
        struct dialling how;
        const char *error; /* NULL: it works */
    } cases[] = {
        {{.ca = w->ca}, NULL}, /* 127.0.0.1 is in the SANs */
        {{.ca = w->ca, .server_name = "localhost"}, NULL},
        {{.ca = w->ca, .server_name = "localhost."}, NULL}, /* the root's dot is no part of names in certificates */
        {{.ca = w->ca, .server_name = "example.com"}, "hostname mismatch"},
        {{.ca = w->ca, .server_name = "127.0.0.2"}, "IP address mismatch"},
        {{.ca = w->ca, .server_name = "server"}, "hostname mismatch"}, /* the subject does not count */
        {{.ca = other}, "unable to get local issuer certificate"},
        {{.ca = NULL}, "unable to get local issuer certificate"}, /* the system's CAs do not know ours */
        {{.is_insecure = true, .server_name = "example.com"}, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct net_tls *tls = dial(w, &cases[i].how);
        if (cases[i].error) {
            assert_int_equal(w->n_failed, 1);
            if (!strstr(w->error.text, cases[i].error))
                print_error("case %zu: %s\n", i, w->error.text);
            assert_non_null(strstr(w->error.text, cases[i].error));
            assert_true(str_has_prefix(str_of(w->error.text), "cannot connect to 127.0.0.1:"));
            assert_null(w->dialled);
        } else {
            if (!w->dialled)
                print_error("case %zu: %s\n", i, w->error.text);
            assert_non_null(w->dialled);
            (void)net_conn_send(w->dialled->conn, "ping", 4);
            turn_until(w->loop, w->dialled->got.len == 4);
            net_conn_close(w->dialled->conn);
            turn_until(w->loop, !w->dialled && !w->server);
        }
        net_tls_free(tls);
        turn_until(w->loop, metric_of(w->metrics, "keda_gpu_scaler_connections", "in") == 0);
    }
    assert_double_same(metric_of(w->metrics, "keda_gpu_scaler_tls_handshake_failures", "client"), 5);
}

static void test_a_server_without_alpn_is_refused_by_our_h2_client(void **state)
{
    struct world *w = (struct world *)*state;
    net_listener_free(w->listener);
    struct net_listen_config config = {.address = "127.0.0.1:0", .tls = w->server_tls, .http1 = &w->http1};
    struct err e;
    w->listener = net_listen(w->loop, &config, &e);
    struct net_tls *tls = dial(w, &(struct dialling){.ca = w->ca});
    assert_int_equal(w->n_failed, 1);
    net_tls_free(tls);
}

static void test_client_certificates_are_demanded(void **state)
{
    struct world *w = (struct world *)*state;
    net_listener_free(w->listener);
    net_tls_free(w->server_tls);
    start_server(w, w->ca);
    struct net_tls *tls = dial(w, &(struct dialling){.ca = w->ca, .has_cert = true});
    assert_non_null(w->dialled);
    (void)net_conn_send(w->dialled->conn, "ping", 4);
    turn_until(w->loop, w->dialled->got.len == 4);
    net_conn_close(w->dialled->conn);
    turn_until(w->loop, !w->dialled && !w->server);
    net_tls_free(tls);

    /* In TLS 1.3 the client is done before the server has looked: the connection opens and ends. */
    tls = dial(w, &(struct dialling){.ca = w->ca});
    turn_until(w->loop, !w->dialled);
    assert_null(w->server);
    assert_string_equal(w->end_reason, "tlsv13 alert certificate required");
    net_tls_free(tls);

    struct cert stranger =
        cert_make(&(struct cert_request){.name = "client", .san = "DNS:client", .signer = &w->other_authority});
    cert_write(&stranger, w->dir, "client", NULL);
    cert_free(&stranger);
    tls = dial(w, &(struct dialling){.ca = w->ca, .has_cert = true});
    turn_until(w->loop, !w->dialled);
    assert_null(w->server);
    assert_string_equal(w->end_reason, "tlsv1 alert unknown ca");
    net_tls_free(tls);
    assert_double_same(metric_of(w->metrics, "keda_gpu_scaler_tls_handshake_failures", "server"), 2);
}

/* ---- bytes ---- */

static void test_much_data_goes_both_ways(void **state)
{
    struct world *w = (struct world *)*state;
    struct net_tls *tls = dial(w, &(struct dialling){.ca = w->ca});
    enum { CHUNK = 100000, CHUNKS = 60 };
    char *chunk = (char *)mem_new_array(CHUNK, 1);
    for (int i = 0; i < CHUNK; i++)
        chunk[i] = (char)(i * 7);
    for (int sent = 0; sent < CHUNKS;) {
        if (net_conn_unsent_bytes(w->dialled->conn) < CHUNK) {
            assert_int_equal(net_conn_send(w->dialled->conn, chunk, CHUNK), 0);
            sent++;
        }
        (void)net_loop_turn(w->loop);
        assert_non_null(w->dialled);
    }
    turn_until(w->loop, w->dialled->got.len == (size_t)CHUNK * CHUNKS);
    for (int i = 0; i < CHUNKS; i++)
        assert_memory_equal(w->dialled->got.data + (size_t)i * CHUNK, chunk, CHUNK);
    free(chunk);
    net_conn_abort(w->dialled->conn);
    turn_until(w->loop, !w->dialled && !w->server);
    net_tls_free(tls);
}

static void test_records_beyond_a_turns_budget_are_read_in_the_next(void **state)
{
    struct world *w = (struct world *)*state;
    w->limits.values[NET_LIMIT_READ_BYTES_PER_TURN] = 1000;
    struct net_tls *tls = dial(w, &(struct dialling){.ca = w->ca});
    char block[16000] = {0};
    (void)net_conn_send(w->dialled->conn, block, sizeof(block)); /* one record: the socket is empty after it was read */
    turn_until(w->loop, w->server && w->server->got.len == sizeof(block));
    assert_true(limit_hits(w->metrics, NET_LIMIT_READ_BYTES_PER_TURN) >= 15);
    net_tls_free(tls);
}

static void test_an_orderly_close_says_close_notify(void **state)
{
    struct world *w = (struct world *)*state;
    struct raw raw = raw_new(w);
    char bytes[8];
    bool is_clean = false;
    assert_int_equal(raw_handshake(w, &raw), 1);
    raw_say(&raw, "GETx");
    assert_int_equal(raw_read(w, &raw, bytes, 4, &is_clean), 4);
    (void)net_conn_send(w->server->conn, "bye", 3);
    net_conn_close(w->server->conn);
    assert_int_equal(raw_read(w, &raw, bytes, 3, &is_clean), 3);
    assert_int_equal(raw_read(w, &raw, bytes, 1, &is_clean), -1);
    assert_true(is_clean);
    raw_free(&raw);
}

/* ---- what goes wrong ---- */

/* Key updates (TLS 1.3, RFC 8446 4.6.3) until the socket takes no more. Returns how many. */
static int send_key_updates(struct raw *raw, int kind, int max)
{
    assert_int_equal(fcntl(raw->fd, F_SETFL, O_NONBLOCK), 0);
    int n = 0;
    while (n < max && SSL_key_update(raw->ssl, kind) == 1 && SSL_do_handshake(raw->ssl) == 1)
        n++;
    ERR_clear_error();
    return n;
}

static int waiting_bytes(const struct world *w)
{
    int n = 0;
    assert_int_equal(ioctl(w->server->conn->fd, FIONREAD, &n), 0);
    return n;
}

/* A record without data costs as much as one with: OpenSSL by itself would read on until there is data. */
static void test_records_without_data_are_read_a_turns_worth_at_a_time(void **state)
{
    struct world *w = (struct world *)*state;
    struct raw raw = raw_new(w);
    assert_int_equal(raw_handshake(w, &raw), 1);
    raw_say(&raw, "GETx");
    turn_until(w->loop, w->server && w->server->got.len == 4);
    assert_true(send_key_updates(&raw, SSL_KEY_UPDATE_NOT_REQUESTED, 4000) > 1000);
    int before = waiting_bytes(w);
    (void)net_loop_turn(w->loop);
    assert_in_range(before - waiting_bytes(w), 1, 4096);
    turn_until(w->loop, waiting_bytes(w) == 0);
    raw_free(&raw);
}

/* Reading makes us answer key updates; to a peer that does not take the answers it must not spin. */
static void test_reading_that_waits_for_room_to_write_watches_for_that(void **state)
{
    struct world *w = (struct world *)*state;
    struct raw raw = raw_new(w);
    int small = 4096;
    assert_int_equal(raw_handshake(w, &raw), 1);
    raw_say(&raw, "GETx");
    turn_until(w->loop, w->server && w->server->got.len == 4);
    assert_int_equal(setsockopt(w->server->conn->fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
    const struct net_conn *conn = w->server->conn;
    for (int i = 0; i < 3000 && (conn->events & UV_READABLE); i++) {
        (void)send_key_updates(&raw, SSL_KEY_UPDATE_REQUESTED, 50);
        turn_some(w->loop);
    }
    assert_int_equal(conn->events, UV_WRITABLE);
    net_loop_skip(w->loop, 21 * NS_PER_S); /* nor may it stay so */
    turn_until(w->loop, w->server == NULL);
    assert_double_same(limit_hits(w->metrics, NET_LIMIT_WRITE_STALL_MS), 1);
    raw_free(&raw);
}

static void test_a_handshake_has_an_absolute_deadline(void **state)
{
    struct world *w = (struct world *)*state;
    BUF_AUTO struct buf got;
    buf_init(&got, 1024);
    int fd = peer_connect(net_listener_port(w->listener));
    peer_send(fd, "\x16\x03\x01\x02\x00\x01", 6); /* half a ClientHello */
    turn_some(w->loop);
    net_loop_skip(w->loop, 4 * NS_PER_S);
    turn_some(w->loop);
    assert_true(peer_read(fd, &got));
    net_loop_skip(w->loop, 2 * NS_PER_S);
    peer_read_all(w->loop, fd, &got);
    assert_double_same(limit_hits(w->metrics, NET_LIMIT_HANDSHAKE_MS), 1);
    assert_double_same(metric_of(w->metrics, "keda_gpu_scaler_tls_handshake_failures", "server"), 1);
    (void)close(fd);
}

/* What is closed with input unread is reset, and a reset can overtake what was said. */
static void test_a_failed_handshake_ends_in_order(void **state)
{
    struct world *w = (struct world *)*state;
    char bytes[100000];
    int fd = peer_connect(net_listener_port(w->listener));
    memset(bytes, 'x', sizeof(bytes));
    memcpy(bytes, "GET / HTTP/1.1\r\nX: ", 19);
    peer_send(fd, bytes, sizeof(bytes));
    size_t len = 0;
    ssize_t n = -1;
    for (int64_t limit = time_mono_ns() + 20 * NS_PER_S; n != 0 && time_mono_ns() < limit;) {
        (void)net_loop_turn(w->loop);
        n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        assert_true(n >= 0 || errno == EAGAIN); /* not ECONNRESET */
        len += n > 0 ? (size_t)n : 0;
    }
    assert_int_equal(n, 0);
    assert_true(len > 100);
    (void)close(fd);
    turn_until(w->loop, metric_of(w->metrics, "keda_gpu_scaler_connections", "in") == 0);
    assert_double_same(metric_of(w->metrics, "keda_gpu_scaler_connections_closed", "error"), 1);
}

static void test_plain_http_on_the_tls_port_is_told_so(void **state)
{
    struct world *w = (struct world *)*state;
    BUF_AUTO struct buf got;
    buf_init(&got, 1024);
    int fd = peer_connect(net_listener_port(w->listener));
    peer_say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    peer_read_all(w->loop, fd, &got);
    assert_non_null(strstr(buf_cstr(&got), "use https"));
    (void)close(fd);
}

static void test_a_crowd_of_handshakes_is_served_in_turns(void **state)
{
    struct world *w = (struct world *)*state;
    struct raw raws[12];
    w->limits.values[NET_LIMIT_HANDSHAKES_PER_TURN] = 4;
    for (size_t i = 0; i < ARRAY_LEN(raws); i++) {
        raws[i] = raw_new(w);
        raw_unblock(&raws[i]);
        assert_int_equal(SSL_do_handshake(raws[i].ssl), -1); /* the ClientHello is out */
    }
    turn_some(w->loop);
    assert_true(limit_hits(w->metrics, NET_LIMIT_HANDSHAKES_PER_TURN) > 0);
    for (size_t i = 0; i < ARRAY_LEN(raws); i++)
        assert_int_equal(raw_handshake(w, &raws[i]), 1);
    for (size_t i = 0; i < ARRAY_LEN(raws); i++)
        raw_free(&raws[i]);
}

static void test_unfit_files_are_refused_at_the_start(void **state)
{
    struct world *w = (struct world *)*state;
    char missing[CERT_PATH_MAX], locked[CERT_PATH_MAX], locked_key[CERT_PATH_MAX];
    (void)snprintf(missing, sizeof(missing), "%s/missing", w->dir);
    (void)snprintf(locked, sizeof(locked), "%s/x.crt", w->dir);
    (void)snprintf(locked_key, sizeof(locked_key), "%s/x.key", w->dir);
    struct cert cert = cert_make(&(struct cert_request){.name = "x", .san = "DNS:x", .signer = &w->authority});
    cert_write(&cert, w->dir, "x", "secret");
    cert_free(&cert);
    const struct {
        struct net_tls_files files;
        const char *text;
    } cases[] = {
        {{.cert = missing, .key = w->key}, "cannot read certificate"},
        {{.cert = w->cert, .key = missing}, "cannot read key"},
        {{.cert = w->key, .key = w->key}, "cannot use certificate"},
        {{.cert = w->cert, .key = w->cert}, "cannot use key"},
        {{.cert = w->cert, .key = w->client_key}, "does not belong to certificate"},
        {{.cert = locked, .key = locked_key}, "cannot use key"},
        {{.cert = w->cert, .key = w->key, .ca = missing}, "cannot read CA certificates"},
        {{.cert = w->cert, .key = w->key, .ca = w->key}, "CA certificates"},
        {{.cert = w->cert}, "needed together"},
        {{.key = w->key}, "needs a certificate"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = {0};
        assert_null(net_tls_server_new(w->loop, &cases[i].files, &e));
        if (!strstr(e.text, cases[i].text))
            print_error("case %zu: %s\n", i, e.text);
        assert_non_null(strstr(e.text, cases[i].text));
    }
}

/* ---- reload ---- */

static void replace_server_cert(struct world *w, const struct cert_request *request)
{
    struct cert_request full = *request;
    full.name = "server";
    full.san = "DNS:localhost,IP:127.0.0.1";
    full.signer = &w->authority;
    struct cert cert = cert_make(&full);
    cert_write(&cert, w->dir, "tls", NULL);
    cert_free(&cert);
}

static double tls_metric(const struct world *w, const char *name)
{
    char full[128];
    (void)snprintf(full, sizeof(full), "keda_gpu_scaler_tls_%s", name);
    return metric_of(w->metrics, full, w->cert);
}

static void test_rotated_files_are_used_for_new_connections(void **state)
{
    struct world *w = (struct world *)*state;
    struct net_tls *tls = dial(w, &(struct dialling){.ca = w->ca});
    double expiry = tls_metric(w, "certificate_expiry_timestamp_seconds");
    assert_double_near(expiry, (double)(time_wall_ns() / NS_PER_S) + 86400, 60);
    assert_int_equal(served_serial(w), 1);
    replace_server_cert(w, &(struct cert_request){.serial = 2, .until_s = 5 * 86400});
    net_loop_skip(w->loop, 9 * NS_PER_S);
    turn_some(w->loop);
    assert_int_equal(w->n_told, 0);
    net_loop_skip(w->loop, 2 * NS_PER_S); /* the watch looks every 10 s */
    turn_until(w->loop, w->n_told == 1);
    assert_int_equal(w->told.class, ERR_NONE);
    assert_int_equal(served_serial(w), 2);
    assert_double_near(tls_metric(w, "certificate_expiry_timestamp_seconds") - expiry, 4 * 86400, 60);
    assert_double_same(tls_metric(w, "reloads"), 1);
    (void)net_conn_send(w->dialled->conn, "still here", 10);
    turn_until(w->loop, w->dialled->got.len == 10);
    net_tls_free(tls);
}

/* Kubernetes mounts tls.crt -> ..data/tls.crt, ..data -> a folder, and swaps ..data. */
static void test_a_swapped_symlink_is_seen(void **state)
{
    struct world *w = (struct world *)*state;
    char target[CERT_PATH_MAX], link_path[CERT_PATH_MAX];
    (void)snprintf(link_path, sizeof(link_path), "%s/data", w->dir);
    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? "x" : "client";
        (void)snprintf(target, sizeof(target), "%s.crt", name);
        (void)unlink(link_path);
        assert_int_equal(symlink(target, link_path), 0);
        struct file_stamp stamp;
        assert_int_equal(file_stamp(link_path, &stamp), i == 0 ? -1 : 0);
    }
    struct err e;
    char key[CERT_PATH_MAX];
    (void)snprintf(key, sizeof(key), "%s", w->client_key);
    struct net_tls_files files = {.cert = link_path, .key = key};
    struct net_tls *tls = net_tls_server_new(w->loop, &files, &e);
    assert_non_null(tls);
    net_tls_on_reload(tls, told_of_reload, w);
    (void)unlink(link_path);
    assert_int_equal(symlink("tls.crt", link_path), 0); /* the key is still the old one's */
    net_tls_reload(tls);
    turn_until(w->loop, w->n_told == 1);
    assert_non_null(strstr(net_tls_error(tls), "does not belong to certificate"));
    (void)unlink(link_path);
    assert_int_equal(symlink("client.crt", link_path), 0);
    net_loop_skip(w->loop, 10 * NS_PER_S);
    turn_until(w->loop, net_tls_error(tls)[0] == '\0');
    net_tls_free(tls);
}

static void test_unfit_new_files_leave_the_old_ones_in_use(void **state)
{
    struct world *w = (struct world *)*state;
    FILE *file = fopen(w->cert, "we");
    assert_non_null(file);
    (void)fputs("rubbish\n", file);
    assert_int_equal(fclose(file), 0);
    assert_double_same(tls_metric(w, "reload_errors"), 0);
    for (int i = 0; i < 3; i++) { /* looked at again and again, counted and told once */
        net_loop_skip(w->loop, 10 * NS_PER_S);
        turn_until(w->loop, w->n_told == 1);
        turn_some(w->loop);
    }
    assert_int_equal(w->told.class, ERR_FAILED_PRECONDITION);
    assert_double_same(tls_metric(w, "reload_errors"), 1);
    assert_double_same(tls_metric(w, "last_reload_successful"), 0);
    assert_string_equal(net_tls_error(w->server_tls), w->told.text);
    assert_int_equal(served_serial(w), 1);

    replace_server_cert(w, &(struct cert_request){.serial = 3});
    net_tls_reload(w->server_tls);
    turn_until(w->loop, w->n_told == 2);
    assert_double_same(tls_metric(w, "last_reload_successful"), 1);
    assert_string_equal(net_tls_error(w->server_tls), "");
    assert_int_equal(served_serial(w), 3);
}

static void test_a_certificate_out_of_its_time_does_not_replace_a_valid_one(void **state)
{
    static const struct cert_request cases[] = {{.serial = 7, .from_s = -7200, .until_s = -3600},
                                                {.serial = 8, .from_s = 3600, .until_s = 7200}};
    struct world *w = (struct world *)*state;
    for (int i = 0; i < 2; i++) {
        replace_server_cert(w, &cases[i]);
        net_tls_reload(w->server_tls);
        turn_until(w->loop, w->n_told == i + 1);
        assert_non_null(strstr(w->told.text, "expired or not valid yet"));
        assert_int_equal(served_serial(w), 1);
    }
}

static void test_tls_may_go_when_it_tells_of_a_reload(void **state)
{
    struct world *w = (struct world *)*state;
    w->frees_when_told = true;
    net_tls_reload(w->server_tls);
    net_tls_reload(w->server_tls); /* a second one is wanted when the first tells */
    turn_until(w->loop, w->n_told == 1);
    turn_some(w->loop);
    assert_int_equal(w->n_told, 1);
}

static void test_tls_may_go_while_it_reloads(void **state)
{
    struct world *w = (struct world *)*state;
    struct err e;
    struct net_tls_files files = {.cert = w->cert, .key = w->key};
    struct net_tls *tls = net_tls_server_new(w->loop, &files, &e);
    net_tls_reload(tls);
    net_tls_reload(tls);
    net_tls_free(tls);
    net_tls_free(NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_alpn_chooses_the_protocol),
        TEST(test_without_alpn_the_first_bytes_choose),
        TEST(test_an_insecure_client_is_told_the_true_reason),
        TEST(test_old_versions_of_tls_are_refused),
        TEST(test_renegotiation_is_refused_and_no_ticket_is_given),
        TEST(test_our_client_trusts_by_ca_and_name),
        TEST(test_a_server_without_alpn_is_refused_by_our_h2_client),
        TEST(test_client_certificates_are_demanded),
        TEST(test_much_data_goes_both_ways),
        TEST(test_records_beyond_a_turns_budget_are_read_in_the_next),
        TEST(test_an_orderly_close_says_close_notify),
        TEST(test_records_without_data_are_read_a_turns_worth_at_a_time),
        TEST(test_reading_that_waits_for_room_to_write_watches_for_that),
        TEST(test_a_handshake_has_an_absolute_deadline),
        TEST(test_a_failed_handshake_ends_in_order),
        TEST(test_plain_http_on_the_tls_port_is_told_so),
        TEST(test_a_crowd_of_handshakes_is_served_in_turns),
        TEST(test_unfit_files_are_refused_at_the_start),
        TEST(test_rotated_files_are_used_for_new_connections),
        TEST(test_a_swapped_symlink_is_seen),
        TEST(test_unfit_new_files_leave_the_old_ones_in_use),
        TEST(test_a_certificate_out_of_its_time_does_not_replace_a_valid_one),
        TEST(test_tls_may_go_when_it_tells_of_a_reload),
        TEST(test_tls_may_go_while_it_reloads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
