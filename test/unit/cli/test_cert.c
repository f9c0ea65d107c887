/* When certificates stay and when they are made anew. */
#include "support.h"

#include "cli/cert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DAY_S = 86400 };
static const int64_t start_s = 1800000000;
static const char *const names[] = {"gpu.svc", "127.0.0.1"};

static struct cert_wish wish_at(int64_t day)
{
    return (struct cert_wish){.common_name = "gpu.ns",
                              .names = names,
                              .n_names = 1,
                              .now_s = start_s + day * DAY_S,
                              .valid_s = 365 * DAY_S,
                              .authority_valid_s = 3650 * DAY_S,
                              .renew_before_s = 60 * DAY_S};
}

static enum cert_outcome renew(struct cert_store *store, const struct cert_wish *wish, struct cert_result *ret)
{
    struct err e = {0};
    if (cert_renew(store, wish, ret, &e) < 0)
        fail_msg("%s", e.text);
    return ret->outcome;
}

/* May those who trust this bundle go on trusting what is served? */
static bool trusts(struct buf *bundle, const struct cert_store *store, int64_t day)
{
    struct err e;
    const struct net_cert_wish wish = {
        .names = names, .n_names = 1, .now_s = start_s + day * DAY_S, .until_s = start_s + day * DAY_S};
    return net_cert_check(&store->end, bundle, &wish, &e) == 0;
}

static int set_up(void **state)
{
    struct cert_store *store = mem_new(struct cert_store);
    struct cert_wish wish = wish_at(0);
    struct cert_result result;
    cert_store_init(store);
    assert_int_equal(renew(store, &wish, &result), CERT_MADE);
    assert_true(result.has_new_authority);
    *state = store;
    return 0;
}

static int tear_down(void **state)
{
    struct cert_store *store = (struct cert_store *)*state;
    cert_store_fini(store);
    free(store);
    return 0;
}

static void test_a_certificate_stays_until_its_end_is_near(void **state)
{
    struct cert_store *store = (struct cert_store *)*state;
    struct cert_result result;
    char *first MEM_AUTO = mem_strdup(buf_cstr(&store->end.cert));
    for (int64_t day = 0; day <= 305; day += 61) {
        struct cert_wish wish = wish_at(day);
        assert_int_equal(renew(store, &wish, &result), CERT_KEPT);
    }
    assert_string_equal(buf_cstr(&store->end.cert), first);
    struct cert_wish late = wish_at(306);
    assert_int_equal(renew(store, &late, &result), CERT_MADE);
    assert_false(result.has_new_authority);
    assert_non_null(strstr(result.why.text, "it ends at"));
    assert_string_not_equal(buf_cstr(&store->end.cert), first);
    assert_true(trusts(&store->trusted, store, 306 + 364));
}

static void test_a_new_name_is_taken_up_at_once_by_the_same_authority(void **state)
{
    struct cert_store *store = (struct cert_store *)*state;
    struct cert_wish wish = wish_at(1);
    struct cert_result result;
    wish.n_names = 2;
    assert_int_equal(renew(store, &wish, &result), CERT_MADE);
    assert_false(result.has_new_authority);
    assert_string_equal(result.why.text, "it lacks the name 127.0.0.1");
    wish.n_names = 1; /* a name too many does no harm */
    assert_int_equal(renew(store, &wish, &result), CERT_KEPT);
}

/* A release whose certificates Helm made: nobody has the key of their authority. */
static void lose_authority(struct cert_store *store)
{
    net_pem_fini(&store->authority);
    net_pem_init(&store->authority);
}

static void test_without_the_authoritys_key_a_fit_certificate_stays(void **state)
{
    struct cert_store *store = (struct cert_store *)*state;
    struct cert_wish wish = wish_at(300);
    struct cert_result result;
    lose_authority(store);
    assert_int_equal(renew(store, &wish, &result), CERT_KEPT);
    assert_int_equal(store->authority.key.len, 0);
}

static void test_a_new_authority_is_announced_before_it_is_used(void **state)
{
    struct cert_store *store = (struct cert_store *)*state;
    struct cert_result result;
    struct buf copy; /* of somebody who took ca.crt long ago */
    char *first MEM_AUTO = mem_strdup(buf_cstr(&store->end.cert));
    buf_init(&copy, NET_PEM_BYTES_MAX);
    (void)buf_append(&copy, store->trusted.data, store->trusted.len);
    lose_authority(store);
    struct cert_wish early = wish_at(310), again = wish_at(334), late = wish_at(336), later = wish_at(337);
    assert_int_equal(renew(store, &early, &result), CERT_ANNOUNCED);
    assert_true(result.has_new_authority);
    assert_string_equal(buf_cstr(&store->end.cert), first);
    assert_true(trusts(&copy, store, 310));
    assert_true(trusts(&store->trusted, store, 310));
    struct buf bundle; /* of somebody who took ca.crt after the announcement */
    buf_init(&bundle, NET_PEM_BYTES_MAX);
    (void)buf_append(&bundle, store->trusted.data, store->trusted.len);
    assert_int_equal(renew(store, &again, &result), CERT_ANNOUNCED); /* those who copy it have had no month yet */
    assert_false(result.has_new_authority);
    assert_string_equal(buf_cstr(&store->end.cert), first);
    assert_true(trusts(&copy, store, 334));
    assert_int_equal(renew(store, &late, &result), CERT_MADE);
    assert_false(result.has_new_authority);
    assert_int_equal(renew(store, &later, &result), CERT_KEPT);
    assert_false(trusts(&copy, store, 336));
    assert_true(trusts(&bundle, store, 336));
    buf_fini(&bundle);
    buf_fini(&copy);
}

/* In a folder the authority and those that are trusted are one file. */
static void test_in_a_folder_an_announced_authority_waits_too(void **state)
{
    struct cert_store *store = (struct cert_store *)*state;
    struct cert_wish early = wish_at(310), again = wish_at(334), late = wish_at(336);
    static const char *const files[] = {"ca.crt", "ca.key", "tls.crt", "tls.key"};
    char folder[] = "/tmp/test-cert-XXXXXX", path[64];
    struct cert_result result;
    struct cert_store copy;
    struct err e;
    assert_non_null(mkdtemp(folder));
    lose_authority(store);
    assert_int_equal(renew(store, &early, &result), CERT_ANNOUNCED);
    assert_int_equal(cert_files_write(folder, store, &e), 0);
    cert_store_init(&copy);
    assert_int_equal(cert_files_read(folder, &copy, &e), 0);
    assert_int_equal(renew(&copy, &again, &result), CERT_ANNOUNCED);
    assert_false(result.has_new_authority);
    assert_string_equal(buf_cstr(&copy.trusted), buf_cstr(&store->trusted));
    assert_int_equal(renew(&copy, &late, &result), CERT_MADE);
    assert_true(trusts(&store->trusted, &copy, 336));
    cert_store_fini(&copy);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(folder), 0);
}

static void test_what_cannot_wait_is_not_announced(void **state)
{
    struct cert_store *store = (struct cert_store *)*state;
    struct cert_result result;
    struct cert_wish wish = wish_at(400); /* it has ended */
    lose_authority(store);
    assert_int_equal(renew(store, &wish, &result), CERT_MADE);
    assert_true(trusts(&store->trusted, store, 400));
    lose_authority(store);
    wish.n_names = 2; /* it lacks a name */
    assert_int_equal(renew(store, &wish, &result), CERT_MADE);
    assert_true(result.has_new_authority);
}

static void test_an_authority_near_its_end_is_made_anew_with_its_key(void **state)
{
    struct cert_store *store = (struct cert_store *)*state;
    struct cert_result result;
    struct buf copy;
    buf_init(&copy, NET_PEM_BYTES_MAX);
    (void)buf_append(&copy, store->trusted.data, store->trusted.len);
    for (int64_t day = 306; day < 3600; day += 306) {
        struct cert_wish wish = wish_at(day);
        assert_int_equal(renew(store, &wish, &result), CERT_MADE);
        assert_true(trusts(&copy, store, day));
    }
    assert_true(net_cert_until_s(&store->authority.cert) > start_s + 6000 * (int64_t)DAY_S);
    assert_true(net_cert_until_s(&store->end.cert) <= net_cert_until_s(&store->authority.cert));
    buf_fini(&copy);
}

static void test_a_pair_that_does_not_belong_together_is_replaced(void **state)
{
    struct cert_store *store = (struct cert_store *)*state;
    struct cert_wish wish = wish_at(0);
    struct cert_result result;
    buf_reset(&store->end.key);
    (void)buf_append(&store->end.key, store->authority.key.data, store->authority.key.len);
    assert_int_equal(renew(store, &wish, &result), CERT_MADE);
    assert_string_equal(result.why.text, "the key does not belong to the certificate");
    buf_reset(&store->trusted); /* somebody emptied ca.crt */
    assert_int_equal(renew(store, &wish, &result), CERT_MADE);
    assert_true(trusts(&store->trusted, store, 0));
}

static void test_a_bad_name_changes_nothing(void **state)
{
    struct cert_store *store = (struct cert_store *)*state;
    static const char *const bad[] = {"a b"};
    struct cert_wish wish = wish_at(400);
    struct cert_result result;
    struct err e;
    char *first MEM_AUTO = mem_strdup(buf_cstr(&store->end.cert));
    wish.names = bad;
    assert_int_equal(cert_renew(store, &wish, &result, &e), -1);
    assert_int_equal(e.class, ERR_INVALID_ARGUMENT);
    assert_string_equal(buf_cstr(&store->end.cert), first);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_certificate_stays_until_its_end_is_near, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_new_name_is_taken_up_at_once_by_the_same_authority, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_without_the_authoritys_key_a_fit_certificate_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_new_authority_is_announced_before_it_is_used, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_in_a_folder_an_announced_authority_waits_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_cannot_wait_is_not_announced, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_authority_near_its_end_is_made_anew_with_its_key, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_pair_that_does_not_belong_together_is_replaced, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_bad_name_changes_nothing, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
