/* Certificates of our own: what is made, and what is judged unfit. */
#include "net/net.h"

#include "net/certs.h"

enum { DAY_S = 86400 };
static const int64_t now_s = 1800000000; /* 2027 */
static const char *const names[] = {"gpu.svc", "*.gpu.example.com", "127.0.0.1", "::1"};

struct chain {
    struct net_pem authority, end;
};

static struct net_issue issue_of(const char *common_name, int64_t days)
{
    return (struct net_issue){.common_name = common_name, .from_s = now_s, .until_s = now_s + days * DAY_S};
}

static struct net_issue end_issue(int64_t days)
{
    struct net_issue issue = issue_of("gpu", days);
    issue.names = names;
    issue.n_names = ARRAY_LEN(names);
    return issue;
}

static int set_up(void **state)
{
    struct chain *chain = mem_new(struct chain);
    struct net_issue authority = issue_of("gpu authority", 3650), end = end_issue(365);
    struct err e = {0};
    net_pem_init(&chain->authority);
    net_pem_init(&chain->end);
    assert_int_equal(net_issue_authority(&authority, &chain->authority, &e), 0);
    assert_int_equal(net_issue_certificate(&end, &chain->authority, &chain->end, &e), 0);
    *state = chain;
    return 0;
}

static int tear_down(void **state)
{
    struct chain *chain = (struct chain *)*state;
    net_pem_fini(&chain->authority);
    net_pem_fini(&chain->end);
    free(chain);
    return 0;
}

static X509 *parse(struct buf *pem)
{
    BIO *bio = BIO_new_mem_buf(buf_cstr(pem), -1);
    X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    assert_non_null(cert);
    BIO_free(bio);
    return cert;
}

static void test_a_certificate_says_what_it_is_for_and_nothing_more(void **state)
{
    struct chain *chain = (struct chain *)*state;
    X509 *authority = parse(&chain->authority.cert), *end = parse(&chain->end.cert);
    assert_int_equal(X509_check_ca(authority), 1);
    assert_int_equal(X509_get_pathlen(authority), 0);
    assert_int_equal(X509_get_key_usage(authority), KU_KEY_CERT_SIGN | KU_CRL_SIGN);
    assert_int_equal(X509_check_ca(end), 0);
    assert_int_equal(X509_get_key_usage(end), KU_DIGITAL_SIGNATURE);
    assert_int_equal(X509_get_extended_key_usage(end), XKU_SSL_SERVER | XKU_SSL_CLIENT);
    assert_int_equal(X509_check_issued(authority, end), X509_V_OK);
    assert_int_equal(X509_verify(end, X509_get0_pubkey(authority)), 1);
    assert_int_equal(EVP_PKEY_get_bits(X509_get0_pubkey(end)), 256);
    assert_int_equal(X509_get_signature_nid(end), NID_ecdsa_with_SHA256);
    assert_int_equal(X509_get_version(end), X509_VERSION_3);
    X509_free(authority);
    X509_free(end);
}

static void test_serial_numbers_are_long_and_never_the_same(void **state)
{
    struct chain *chain = (struct chain *)*state;
    struct net_issue issue = end_issue(365);
    struct err e;
    X509 *first = parse(&chain->end.cert);
    assert_int_equal(net_issue_certificate(&issue, &chain->authority, &chain->end, &e), 0);
    X509 *second = parse(&chain->end.cert);
    assert_int_not_equal(ASN1_INTEGER_cmp(X509_get0_serialNumber(first), X509_get0_serialNumber(second)), 0);
    assert_int_equal(ASN1_STRING_length(X509_get0_serialNumber(first)), 16);
    assert_false(EVP_PKEY_eq(X509_get0_pubkey(first), X509_get0_pubkey(second)) == 1);
    X509_free(first);
    X509_free(second);
}

static int check(struct chain *chain, const struct net_cert_wish *wish, struct err *e)
{
    *e = (struct err){0};
    return net_cert_check(&chain->end, &chain->authority.cert, wish, e);
}

static void test_a_pair_is_fit_for_its_names_while_it_lasts(void **state)
{
    struct chain *chain = (struct chain *)*state;
    static const char *const mine[] = {"gpu.svc", "127.0.0.1", "::1", "*.gpu.example.com", "a.gpu.example.com"};
    static const char *const other[] = {"gpu.svc", "other.svc"}, *const wider[] = {"*.example.com"},
                             *const address[] = {"127.0.0.2"};
    const struct {
        struct net_cert_wish wish;
        const char *text; /* NULL: fit */
    } cases[] = {
        {{mine, 5, now_s, now_s + 300 * DAY_S}, NULL},
        {{mine, 5, now_s - 600, now_s}, NULL}, /* made by a clock that is ahead */
        {{mine, 5, now_s, now_s + 365 * DAY_S}, NULL},
        {{mine, 5, now_s, now_s + 365 * DAY_S + 1}, "it ends at 2028-01-15T08:00:00.000Z"},
        {{mine, 5, now_s - DAY_S, now_s}, "not yet valid"},
        {{mine, 5, now_s + 366 * DAY_S, 0}, "expired"},
        {{other, 2, now_s, now_s}, "it lacks the name other.svc"},
        {{wider, 1, now_s, now_s}, "it lacks the name *.example.com"},
        {{address, 1, now_s, now_s}, "it lacks the name 127.0.0.2"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e;
        int rc = check(chain, &cases[i].wish, &e);
        if ((rc == 0) != !cases[i].text || (cases[i].text && !strstr(e.text, cases[i].text)))
            fail_msg("case %zu: %d %s", i, rc, e.text);
    }
}

static void test_a_pair_of_another_authority_or_key_is_unfit(void **state)
{
    struct chain *chain = (struct chain *)*state, *other;
    struct net_cert_wish wish = {.now_s = now_s, .until_s = now_s};
    struct err e;
    void *second = NULL;
    (void)set_up(&second);
    other = (struct chain *)second;
    assert_int_equal(net_cert_check(&chain->end, &other->authority.cert, &wish, &e), -1);
    assert_non_null(strstr(e.text, "it is not trusted"));
    struct net_pem mixed = {.cert = chain->end.cert, .key = other->end.key}, empty;
    assert_int_equal(net_cert_check(&mixed, &chain->authority.cert, &wish, &e), -1);
    assert_string_equal(e.text, "the key does not belong to the certificate");
    net_pem_init(&empty);
    assert_int_equal(net_cert_check(&empty, &chain->authority.cert, &wish, &e), -1);
    assert_string_equal(e.text, "there is no key");
    assert_int_equal(net_authority_check(&chain->end, now_s, now_s, &e), -1);
    assert_string_equal(e.text, "it is no authority");
    assert_int_equal(net_authority_check(&chain->authority, now_s, now_s + 3651 * DAY_S, &e), -1);
    assert_int_equal(net_authority_check(&chain->authority, now_s, now_s + 3650 * DAY_S, &e), 0);
    (void)tear_down(&second);
}

static void test_an_authority_made_anew_with_its_key_verifies_what_the_former_did(void **state)
{
    struct chain *chain = (struct chain *)*state;
    struct net_issue longer = issue_of("gpu authority", 7300), end = end_issue(365);
    struct net_cert_wish wish = {.names = names, .n_names = ARRAY_LEN(names), .now_s = now_s, .until_s = now_s};
    struct buf former;
    struct err e;
    buf_init(&former, NET_PEM_BYTES_MAX);
    (void)buf_append(&former, chain->authority.cert.data, chain->authority.cert.len);
    assert_int_equal(net_issue_authority(&longer, &chain->authority, &e), 0);
    assert_int_equal(net_cert_until_s(&chain->authority.cert), now_s + 7300 * DAY_S);
    assert_int_equal(check(chain, &wish, &e), 0);
    assert_int_equal(net_issue_certificate(&end, &chain->authority, &chain->end, &e), 0);
    assert_int_equal(net_cert_check(&chain->end, &former, &wish, &e), 0);
    buf_fini(&former);
}

static void test_a_key_that_cannot_be_read_is_not_replaced(void **state)
{
    struct chain *chain = (struct chain *)*state;
    struct net_issue issue = issue_of("gpu authority", 3650);
    struct err e = {0};
    buf_reset(&chain->authority.key);
    (void)buf_append_str(&chain->authority.key, "-----BEGIN ENCRYPTED PRIVATE KEY-----\n");
    assert_int_equal(net_issue_authority(&issue, &chain->authority, &e), -1);
    assert_non_null(strstr(e.text, "cannot be read"));
    assert_string_equal(buf_cstr(&chain->authority.key), "-----BEGIN ENCRYPTED PRIVATE KEY-----\n");
}

static size_t count_certs(struct buf *pem)
{
    size_t n = 0;
    for (const char *at = buf_cstr(pem); (at = strstr(at, "BEGIN CERTIFICATE")) != NULL; at++)
        n++;
    return n;
}

static void test_a_bundle_keeps_former_authorities_until_they_end(void **state)
{
    struct chain *chain = (struct chain *)*state, *other;
    void *second = NULL;
    struct buf bundle;
    (void)set_up(&second);
    other = (struct chain *)second;
    buf_init(&bundle, NET_PEM_BYTES_MAX);
    assert_int_equal(net_bundle_join(&chain->authority.cert, &bundle, now_s, &bundle), 0);
    assert_int_equal(count_certs(&bundle), 1);
    assert_int_equal(net_bundle_join(&chain->authority.cert, &bundle, now_s, &bundle), 0);
    assert_int_equal(count_certs(&bundle), 1);
    assert_int_equal(net_bundle_join(&other->authority.cert, &bundle, now_s, &bundle), 0);
    assert_int_equal(count_certs(&bundle), 2);
    assert_true(str_has_prefix(str_of(buf_cstr(&bundle)), buf_cstr(&other->authority.cert)));
    assert_non_null(strstr(buf_cstr(&bundle), buf_cstr(&chain->authority.cert)));
    assert_int_equal(net_bundle_join(&other->authority.cert, &bundle, now_s + 4000 * DAY_S, &bundle), 0);
    assert_int_equal(count_certs(&bundle), 1);
    buf_reset(&bundle);
    assert_int_equal(net_bundle_join(&bundle, &bundle, now_s, &bundle), -1);
    buf_fini(&bundle);
    (void)tear_down(&second);
}

static void test_names_that_could_be_read_as_something_else_are_refused(void **state)
{
    struct chain *chain = (struct chain *)*state;
    static const char *const bad[] = {"",
                                      "a,DNS:b",
                                      "a b",
                                      ".a",
                                      "a..b",
                                      "a.",
                                      "*",
                                      "*.",
                                      "a.*.b",
                                      "a\nb",
                                      "https://a",
                                      "m\xc3\xbcl.de",
                                      "1.2.3.4,IP:0.0.0.0"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct net_issue issue = issue_of("gpu", 1);
        struct err e = {0};
        issue.names = &bad[i];
        issue.n_names = 1;
        if (net_issue_certificate(&issue, &chain->authority, &chain->end, &e) == 0)
            fail_msg("accepted: %s", bad[i]);
        assert_int_equal(e.class, ERR_INVALID_ARGUMENT);
    }
    struct net_issue nameless = issue_of("", 1);
    struct err e;
    assert_int_equal(net_issue_authority(&nameless, &chain->authority, &e), -1);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_certificate_says_what_it_is_for_and_nothing_more, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_serial_numbers_are_long_and_never_the_same, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_pair_is_fit_for_its_names_while_it_lasts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_pair_of_another_authority_or_key_is_unfit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_authority_made_anew_with_its_key_verifies_what_the_former_did, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_key_that_cannot_be_read_is_not_replaced, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_bundle_keeps_former_authorities_until_they_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_names_that_could_be_read_as_something_else_are_refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
