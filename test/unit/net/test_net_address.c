/* Addresses as people write them, and the GET table's matching. */
#include "support.h"

#include "net/net.h"

#include <string.h>

static void test_addresses_are_split(void **state)
{
    static const struct {
        const char *address, *host; /* NULL: refused */
        int port;
    } cases[] = {
        {"127.0.0.1:6000", "127.0.0.1", 6000},
        {"example.com:80", "example.com", 80},
        {":6000", "", 6000},
        {"[::1]:6000", "::1", 6000},
        {"[fe80::1%eth0]:1", "fe80::1%eth0", 1},
        {"localhost:0", "localhost", 0},
        {"a:65535", "a", 65535},
        {"a:65536", NULL, 0},
        {"a:-1", NULL, 0},
        {"a:", NULL, 0},
        {"a", NULL, 0},
        {"", NULL, 0},
        {"6000", NULL, 0},
        {"::1:6000", NULL, 0},
        {"[::1]", NULL, 0},
        {"[]:6000", NULL, 0},
        {"[::1:6000", NULL, 0},
        {"::1]:6000", NULL, 0},
        {"[::1]x:6000", NULL, 0},
        {"http://a:80", NULL, 0},
        {"a b:80", NULL, 0},
        {"a/b:80", NULL, 0},
        {"a:80x", NULL, 0},
        {"a:+80", NULL, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char host[256] = "unset";
        int port = -1;
        struct err e = {0};
        int rc = net_split_address(cases[i].address, host, &port, &e);
        if (rc != (cases[i].host ? 0 : -1))
            print_error("address %s\n", cases[i].address);
        assert_int_equal(rc, cases[i].host ? 0 : -1);
        assert_string_equal(host, cases[i].host ? cases[i].host : "unset");
        assert_int_equal(port, cases[i].host ? cases[i].port : -1);
        assert_int_equal(e.class, cases[i].host ? ERR_NONE : ERR_INVALID_ARGUMENT);
    }
}

static void test_a_long_host_is_refused(void **state)
{
    char address[300], host[256];
    int port;
    struct err e;
    (void)state;
    memset(address, 'a', sizeof(address));
    memcpy(address + 255, ":1", 3);
    assert_int_equal(net_split_address(address, host, &port, &e), 0);
    memcpy(address + 255, "a:1", 4);
    assert_int_equal(net_split_address(address, host, &port, &e), -1);
}

static void answer_with(void *context, const struct net_get_request *request, struct net_get_response *response)
{
    (void)request;
    (void)buf_append_str(&response->body, (const char *)context);
}

static void overflow(void *context, const struct net_get_request *request, struct net_get_response *response)
{
    (void)context;
    (void)request;
    response->content_type = "application/json";
    while (buf_append_str(&response->body, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef") == 0)
        (void)buf_reserve(&response->body, response->body.len);
}

static void test_the_longest_match_answers(void **state)
{
    static const struct {
        const char *path;
        int status;
        const char *body;
    } cases[] = {
        {"/", 200, "root"},
        {"/metrics", 200, "metrics"},
        {"/metrics/", 404, NULL},
        {"/metricsx", 404, NULL},
        {"/readyz", 200, "readyz"},
        {"/readyz/", 200, "readyz tree"},
        {"/readyz/nvml", 200, "readyz tree"},
        {"/readyz/deep/er", 200, "deep tree"},
        {"/readyz/deep", 200, "readyz tree"},
        {"/x", 404, NULL},
        {"", 404, NULL},
    };
    static const char *const paths[][2] = {
        {"/readyz/", "readyz tree"},    {"/", "root"}, {"/metrics", "metrics"}, {"/readyz", "readyz"},
        {"/readyz/deep/", "deep tree"},
    };
    struct net_gets *gets = net_gets_new();
    (void)state;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        union {
            const char *text;
            void *context;
        } body = {.text = paths[i][1]};
        net_gets_add(gets, paths[i][0], answer_with, body.context);
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct net_get_request request = {.path = str_of(cases[i].path)};
        struct net_get_response response;
        net_gets_answer(gets, &request, &response);
        assert_int_equal(response.status, cases[i].status);
        if (cases[i].body)
            assert_string_equal(buf_cstr(&response.body), cases[i].body);
        else
            assert_non_null(strstr(buf_cstr(&response.body), "  /metrics\n"));
        assert_string_equal(response.content_type, "text/plain; charset=utf-8");
        buf_fini(&response.body);
    }
    net_gets_free(gets);
    net_gets_free(NULL);
}

static void test_an_answer_beyond_its_ceiling_becomes_a_500(void **state)
{
    struct net_gets *gets = net_gets_new();
    struct net_get_request request = {.path = str_of("/big")};
    struct net_get_response response;
    (void)state;
    net_gets_add(gets, "/big", overflow, NULL);
    net_gets_answer(gets, &request, &response);
    assert_int_equal(response.status, 500);
    assert_string_equal(response.content_type, "text/plain; charset=utf-8");
    assert_true(response.body.len < 100);
    buf_fini(&response.body);
    net_gets_free(gets);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses_are_split),
        cmocka_unit_test(test_a_long_host_is_refused),
        cmocka_unit_test(test_the_longest_match_answers),
        cmocka_unit_test(test_an_answer_beyond_its_ceiling_becomes_a_500),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
