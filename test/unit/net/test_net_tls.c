/* TLS on loopback: ALPN, trust in both directions, names, bytes both ways, and what goes wrong. */
#include "net/tls_rig.h"

#include "net/conn.h"

#include <fcntl.h>
#include <sys/ioctl.h>

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
    enum { UPDATES = 1000, RECORD_BYTES = 27 };
    assert_int_equal(send_key_updates(&raw, SSL_KEY_UPDATE_NOT_REQUESTED, UPDATES), UPDATES);
    int64_t limit = time_mono_ns() + 20 * NS_PER_S;
    while (waiting_bytes(w) < UPDATES * RECORD_BYTES && time_mono_ns() < limit)
        ; /* the kernel delivers them */
    (void)net_loop_turn(w->loop);
    assert_in_range(waiting_bytes(w), UPDATES * RECORD_BYTES - 4096, UPDATES * RECORD_BYTES - 1);
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
    turn_now(w->loop, w->server == NULL);
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
    turn_now(w->loop, limit_hits(w->metrics, NET_LIMIT_HANDSHAKE_MS) == 1);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
