/* TLS files: which are refused, and how rotated ones are taken into use. */
#include "net/tls_rig.h"

/* ---- at the start ---- */

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
