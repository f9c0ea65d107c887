/* Heads of HTTP/1: what is taken, what is refused and with which status, whatever the pieces they come in. */
#include "support.h"

#include "http/parse.h"

#include <string.h>

/* Scan and parse a whole text. Returns the status of the refusal, 0 when it is taken, -1 when more is wanted. */
static int parse(const char *text, char *head, struct http_request *ret_request)
{
    struct http_scan scan = {0};
    struct http_refusal refusal = {0};
    size_t len = strlen(text);
    memcpy(head, text, len);
    long end = http_scan_head(&scan, head, len, 8192, &refusal);
    if (end == 0)
        return -1;
    if (end < 0 || http_parse_request(head + scan.start, (size_t)end - scan.start, ret_request, &refusal) < 0)
        return refusal.status;
    return 0;
}

static void test_refusals_have_the_right_status(void **state)
{
    static const struct {
        const char *text;
        int status;
    } cases[] = {
        {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 0},
        {"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 0},
        {"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\n", -1},
        {"GET / HTTP/1.1\r\nHost: a\r\n\r", -1},
        {"", -1},
        {"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", 0},
        {"GET / HTTP/1.0\r\n\r\n", 0},
        {"GET / HTTP/1.2\r\nHost: a\r\n\r\n", 0},
        {"GET / HTTP/1.1\r\nHost:\r\n\r\n", 0},
        {"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 0},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", 0},
        {"GET / HTTP/1.1\r\nHost: a\r\nX-Empty:\r\n\r\n", 0},
        {"GET / HTTP/1.1\r\nhOsT: [::1]:8080\r\n\r\n", 0},
        /* methods and the request line */
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", 405},
        {"PUT / HTTP/1.1\r\nHost: a\r\n\r\n", 405},
        {"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", 405},
        {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 405},
        {"get / HTTP/1.1\r\nHost: a\r\n\r\n", 405},
        {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400},
        {"GET /\r\n\r\n", 400},
        {"INVALID CONNECTION PREFACE\r\n\r\n", HTTP_NO_ANSWER},
        {"SSH-2.0-OpenSSH_9.2 a b\r\n\r\n", HTTP_NO_ANSWER},
        {"GET\r\n\r\n", 400},
        {"GET /\tx HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"G@T / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET / http/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET / HTTP/1.1x\r\nHost: a\r\n\r\n", 400},
        {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
        {"GET / HTTP/0.9\r\nHost: a\r\n\r\n", 505},
        {"PRI * HTTP/2.0\r\n\r\n", 505},
        /* targets */
        {"GET metrics HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET http:// HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET /#x HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET /%4 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET /%0d%0a HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET /\xc3\xa4 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        /* lines */
        {"GET / HTTP/1.1\nHost: a\n\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n: a\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nX: \x7f\r\n\r\n", 400},
        {"\x16\x03\x01", 400}, /* a TLS client on the plain port learns at once */
        {" GET / HTTP/1.1\r\n\r\n", 400},
        /* Host */
        {"GET / HTTP/1.1\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400},
        {"GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", 400},
        /* bodies */
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0, 0\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -0\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: +0\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\ntransfer-encoding: identity\r\n\r\n", 400},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char head[512];
        struct http_request request;
        int status = parse(cases[i].text, head, &request);
        if (status != cases[i].status)
            print_error("case %zu: %s\n", i, cases[i].text);
        assert_int_equal(status, cases[i].status);
    }
}

static void test_a_request_is_read_into_its_parts(void **state)
{
    char head[512];
    struct http_request request;
    (void)state;
    assert_int_equal(parse("HEAD http://h:1/a%20b%2fc?d=%20&e HTTP/1.1\r\nHost: h\r\nACCEPT: \t text/plain \t\r\n"
                           "Accept: text/html\r\nAccept-Encoding: gzip\r\nUser-Agent: a b\r\n\r\n",
                           head, &request),
                     0);
    assert_true(str_equals(request.path, "/a b/c"));
    assert_true(str_equals(request.query, "d=%20&e"));
    assert_true(str_equals(request.accept, "text/plain"));
    assert_true(str_equals(request.accept_encoding, "gzip"));
    assert_true(str_equals(request.user_agent, "a b"));
    assert_true(request.is_head && request.is_keep_alive && !request.is_http10);
}

static void test_what_is_absent_is_empty(void **state)
{
    char head[512];
    struct http_request request;
    (void)state;
    assert_int_equal(parse("GET /a? HTTP/1.0\r\n\r\n", head, &request), 0);
    assert_true(str_equals(request.path, "/a"));
    assert_true(str_equals(request.query, ""));
    assert_true(str_equals(request.accept, "") && str_equals(request.accept_encoding, "") &&
                str_equals(request.user_agent, ""));
    assert_true(!request.is_head && !request.is_keep_alive && request.is_http10);
}

static void test_connection_close_wins(void **state)
{
    static const struct {
        const char *text;
        bool is_keep_alive;
    } cases[] = {
        {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", true},
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", false},
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, CLOSE\r\n\r\n", false},
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nConnection: keep-alive\r\n\r\n", false},
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n", false},
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: closed\r\n\r\n", true},
        {"GET / HTTP/1.0\r\n\r\n", false},
        {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char head[512];
        struct http_request request;
        assert_int_equal(parse(cases[i].text, head, &request), 0);
        assert_int_equal(request.is_keep_alive, cases[i].is_keep_alive);
    }
}

static void test_too_many_fields_are_refused(void **state)
{
    char text[2048] = "GET / HTTP/1.1\r\nHost: a\r\n", head[2048];
    struct http_request request;
    (void)state;
    size_t len = strlen(text);
    for (int i = 0; i < 64; i++) {
        memcpy(text + len, "X: y\r\n", 6);
        len += 6;
    }
    memcpy(text + len, "\r\n", 3);
    assert_int_equal(parse(text, head, &request), 431);
}

static void test_the_length_of_a_head_is_limited(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t max;
        int status;
    } cases[] = {
        {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27, 0},
        {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 26, 431},
        {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 15, 414},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct http_scan scan = {0};
        struct http_refusal refusal = {0};
        long head = http_scan_head(&scan, cases[i].text, strlen(cases[i].text), cases[i].max, &refusal);
        assert_int_equal(head, cases[i].status ? -1 : 27);
        assert_int_equal(refusal.status, cases[i].status);
    }
}

static void test_replies(void **state)
{
    static const struct {
        const char *text;
        int status;
        long length;
    } cases[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", 200, 3},
        {"HTTP/1.0 503 Service Unavailable\r\n\r\n", 503, -1},
        {"HTTP/1.1 204\r\n\r\n", 204, -1},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 0, 0},
        {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", 0, 0},
        {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 0, 0},
        {"HTTP/2 200 OK\r\n\r\n", 0, 0},
        {"HTTP/1.1 99 OK\r\n\r\n", 0, 0},
        {"SSH-2.0-OpenSSH\r\n\r\n", 0, 0},
        {"\r\n", 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct http_reply reply = {0};
        int rc = http_parse_reply(cases[i].text, strlen(cases[i].text), &reply);
        assert_int_equal(rc, cases[i].status ? 0 : -1);
        assert_int_equal(reply.status, cases[i].status);
        assert_int_equal(reply.content_length, cases[i].length);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals_have_the_right_status),
        cmocka_unit_test(test_a_request_is_read_into_its_parts),
        cmocka_unit_test(test_what_is_absent_is_empty),
        cmocka_unit_test(test_connection_close_wins),
        cmocka_unit_test(test_too_many_fields_are_refused),
        cmocka_unit_test(test_the_length_of_a_head_is_limited),
        cmocka_unit_test(test_replies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
