/* Where a page is: of a pod, and of the URL that a user named. */
#include "engine/engine.h"

#include "support.h"

#include <string.h>

#define PORTS(...)                                                                                                     \
    .ports = (const struct engine_port[]){__VA_ARGS__},                                                                \
    .n_ports = sizeof((const struct engine_port[]){__VA_ARGS__}) / sizeof(struct engine_port)

/* What is left out is unsaid, and the address this one. */
static struct engine_place said(struct engine_place place)
{
    const char **texts[] = {&place.annotated_port, &place.annotated_path, &place.annotated_scheme, &place.path,
                            &place.scheme};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        *texts[i] = *texts[i] ? *texts[i] : "";
    place.ip = place.ip ? place.ip : "10.0.0.7";
    return place;
}

static void test_a_pods_page_is_found_by_the_first_word_that_there_is(void **state)
{
    const struct {
        struct engine_place place;
        const char *want;
    } cases[] = {
        {{0}, "http://10.0.0.7:8000/metrics"},
        /* port */
        {{.annotated_port = "9400"}, "http://10.0.0.7:9400/metrics"},
        {{.annotated_port = "stats", PORTS({"http", 8000}, {"stats", 9401})}, "http://10.0.0.7:9401/metrics"},
        {{.annotated_port = "9400", .port = 7000, .is_port_certain = true}, "http://10.0.0.7:7000/metrics"},
        {{.annotated_port = "9400", .port = 7000}, "http://10.0.0.7:9400/metrics"},
        {{PORTS({"", 8000}, {"http", 8080}, {"metrics", 9090})}, "http://10.0.0.7:9090/metrics"},
        {{PORTS({"", 8000}, {"http", 8080})}, "http://10.0.0.7:8080/metrics"},
        {{PORTS({"http", 8080}, {"http", 8081})}, "http://10.0.0.7:8080/metrics"},
        {{.port = 7000, PORTS({"http", 8080})}, "http://10.0.0.7:8080/metrics"},
        {{.port = 7000, PORTS({"grpc", 8081})}, "http://10.0.0.7:7000/metrics"},
        /* usual ports */
        {{.engine = SIGNALS_ENGINE_TRITON}, "http://10.0.0.7:8002/metrics"},
        {{.engine = SIGNALS_ENGINE_TRTLLM}, "http://10.0.0.7:8000/prometheus/metrics"},
        {{.engine = SIGNALS_ENGINE_VLLM, PORTS({"", 30000})}, "http://10.0.0.7:30000/metrics"},
        {{.engine = SIGNALS_ENGINE_TRITON, PORTS({"", 8000}, {"", 8001}, {"", 8002})}, "http://10.0.0.7:8002/metrics"},
        {{.engine = SIGNALS_ENGINE_TRTLLM, PORTS({"", 8000})}, "http://10.0.0.7:8000/prometheus/metrics"},
        {{PORTS({"", 8001}, {"", 80})}, "http://10.0.0.7:80/metrics"},
        {{PORTS({"", 12345})}, "http://10.0.0.7:8000/metrics"},
        /* path and scheme */
        {{.annotated_path = "/stats", .annotated_scheme = "https"}, "https://10.0.0.7:8000/stats"},
        {{.annotated_path = "stats?x=1", .annotated_scheme = "HTTPS"}, "https://10.0.0.7:8000/stats?x=1"},
        {{.annotated_path = "/stats", .path = "/mine", .scheme = "https"}, "https://10.0.0.7:8000/mine"},
        {{.annotated_path = "/stats", .path = "/of-service", .scheme = "https", .port = 443},
         "https://10.0.0.7:443/stats"},
        {{.annotated_path = "/stats", .path = "/mine", .port = 7000, .is_port_certain = true},
         "http://10.0.0.7:7000/mine"},
        {{.annotated_port = "8000", .engine = SIGNALS_ENGINE_TRTLLM}, "http://10.0.0.7:8000/prometheus/metrics"},
        /* IPv6 */
        {{.ip = "fd00:10::7", .annotated_port = "9400"}, "http://[fd00:10::7]:9400/metrics"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char url[ENGINE_URL_MAX];
        struct err e = {0};
        struct engine_place place = said(cases[i].place);
        if (engine_place_url(&place, url, &e) < 0)
            fail_msg("case %zu: %s", i, e.text);
        assert_string_equal(url, cases[i].want);
    }
}

static void test_what_is_no_place_is_refused_with_the_reason(void **state)
{
    static char long_path[ENGINE_URL_MAX + 1];
    memset(long_path, 'a', ENGINE_URL_MAX);
    const struct {
        struct engine_place place;
        enum err_class class;
        const char *part;
    } cases[] = {
        {{.ip = ""}, ERR_FAILED_PRECONDITION, "no address yet"},
        {{.ip = "10.0.0.7/x"}, ERR_INVALID_ARGUMENT, "\"10.0.0.7/x\" is none"},
        {{.ip = "169.254.169.254"}, ERR_INVALID_ARGUMENT, "the pod's address 169.254.169.254 is a link-local address"},
        {{.ip = "::ffff:169.254.169.254"}, ERR_INVALID_ARGUMENT, "is a link-local address"},
        {{.annotated_port = "stats"}, ERR_INVALID_ARGUMENT, "prometheus.io/port: \"stats\" is neither"},
        {{.annotated_port = "0"}, ERR_INVALID_ARGUMENT, "\"0\" is neither"},
        {{.annotated_port = "65536"}, ERR_INVALID_ARGUMENT, "\"65536\" is neither"},
        {{.annotated_port = "80@evil"}, ERR_INVALID_ARGUMENT, "is neither"},
        {{.annotated_scheme = "gopher"}, ERR_INVALID_ARGUMENT, "\"gopher\", neither http nor https"},
        {{.scheme = "http://evil/"}, ERR_INVALID_ARGUMENT, "neither http nor https"},
        {{.annotated_path = "/a b"}, ERR_INVALID_ARGUMENT, "characters"},
        {{.annotated_path = "/a\r\nX: y"}, ERR_INVALID_ARGUMENT, "characters"},
        {{.path = "/a#b"}, ERR_INVALID_ARGUMENT, "characters"},
        {{.path = long_path}, ERR_INVALID_ARGUMENT, "longer than 511"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char url[ENGINE_URL_MAX] = "as it was";
        struct err e = {0};
        struct engine_place place = said(cases[i].place);
        if (engine_place_url(&place, url, &e) == 0 || !strstr(e.text, cases[i].part))
            fail_msg("case %zu: %s %s", i, url, e.text);
        assert_int_equal(e.class, cases[i].class);
        assert_string_equal(url, "as it was");
    }
}

static void test_an_endpoint_is_asked_as_it_is_named_in_its_namespace(void **state)
{
    static const struct {
        const char *endpoint, *in_cluster, *elsewhere;
    } cases[] = {
        {"http://vllm:8000/metrics", "http://vllm.ai.svc:8000/metrics", "http://vllm:8000/metrics"},
        {"https://vllm/stats?x=1", "https://vllm.ai.svc/stats?x=1", "https://vllm/stats?x=1"},
        {"http://vllm:8000", "http://vllm.ai.svc:8000/metrics", "http://vllm:8000/metrics"},
        {"http://vllm", "http://vllm.ai.svc/metrics", "http://vllm/metrics"},
        {"http://vllm:8000/", "http://vllm.ai.svc:8000/", "http://vllm:8000/"},
        {"http://vllm?x=1", "http://vllm.ai.svc?x=1", "http://vllm?x=1"},
        {"http://vllm.other:8000/metrics", "http://vllm.other:8000/metrics", "http://vllm.other:8000/metrics"},
        {"http://vllm.:8000/metrics", "http://vllm.:8000/metrics", "http://vllm.:8000/metrics"},
        {"http://localhost:8000/metrics", "http://localhost:8000/metrics", "http://localhost:8000/metrics"},
        {"http://LocalHost/metrics", "http://LocalHost/metrics", "http://LocalHost/metrics"},
        {"http://10.0.0.7:8000/metrics", "http://10.0.0.7:8000/metrics", "http://10.0.0.7:8000/metrics"},
        {"http://[::1]:8000", "http://[::1]:8000/metrics", "http://[::1]:8000/metrics"},
        {"http://[fd00::7]/metrics", "http://[fd00::7]/metrics", "http://[fd00::7]/metrics"},
        {"HTTP://vllm/metrics", "HTTP://vllm.ai.svc/metrics", "HTTP://vllm/metrics"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char url[ENGINE_URL_MAX];
        assert_int_equal(engine_endpoint_url(cases[i].endpoint, "ai", true, url, NULL), 0);
        assert_string_equal(url, cases[i].in_cluster);
        assert_int_equal(engine_endpoint_url(cases[i].endpoint, "ai", false, url, NULL), 0);
        assert_string_equal(url, cases[i].elsewhere);
    }
}

static void test_an_endpoint_beyond_the_longest_url_is_refused(void **state)
{
    char endpoint[ENGINE_URL_MAX + 8] = "http://vllm/", url[ENGINE_URL_MAX] = "as it was";
    struct err e = {0};
    (void)state;
    memset(endpoint + 12, 'a', ENGINE_URL_MAX - 12 - 1);
    assert_int_equal(engine_endpoint_url(endpoint, "ai", false, url, &e), 0);
    assert_int_equal(engine_endpoint_url(endpoint, "ai", true, url, &e), -1);
    assert_int_equal(e.class, ERR_INVALID_ARGUMENT);
}

static void test_addresses_are_judged_by_the_table_first_and_then_by_the_lists(void **state)
{
    static const char *const ten[] = {"10.0.0.0/8", "fd00::/8", NULL}, *const one[] = {"10.0.0.7", NULL};
    static const char *const all[] = {"0.0.0.0/0", "::/0", NULL}, *const none[] = {NULL}, *const bad[] = {"vllm", NULL};
    static const struct {
        const char *address;
        const char *const *allow, *const *deny;
        const char *part; /* NULL: good */
    } cases[] = {
        {"10.0.0.7", NULL, NULL, NULL},
        {"127.0.0.1", NULL, NULL, NULL},
        {"::1", none, none, NULL},
        {"169.254.169.254", NULL, NULL, "is a link-local address"},
        {"::ffff:169.254.169.254", NULL, NULL, "is a link-local address"},
        {"64:ff9b::a9fe:a9fe", NULL, NULL, "is a link-local address"},
        {"169.254.169.254", all, NULL, "is a link-local address"},
        {"fd00:ec2::254", ten, NULL, "metadata"},
        {"10.0.0.7", ten, NULL, NULL},
        {"::ffff:10.0.0.7", ten, NULL, NULL},
        {"192.168.0.1", ten, NULL, "is not among those of --endpoint-allow"},
        {"::1", ten, NULL, "is not among those of --endpoint-allow"},
        {"10.0.0.7", NULL, one, "is denied by --endpoint-deny"},
        {"10.0.0.8", NULL, one, NULL},
        {"::ffff:10.0.0.7", NULL, one, "is denied by --endpoint-deny"},
        {"64:ff9b::10.0.0.7", NULL, one, "is denied by --endpoint-deny"},
        {"2002:a00:7::1", all, one, "is denied by --endpoint-deny"},
        {"64:ff9b::10.0.0.8", ten, NULL, "is not among those of --endpoint-allow"},
        {"10.0.0.7", ten, one, "is denied by --endpoint-deny"},
        {"fe80::1%eth0", NULL, NULL, "is no IP address"},
        {"localhost", NULL, NULL, "is no IP address"},
        {"10.0.0.7", bad, NULL, "no prefix"},
        {"10.0.0.7", NULL, bad, "no prefix"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *fault = engine_address_fault(cases[i].address, cases[i].allow, cases[i].deny);
        if (cases[i].part ? !fault || !strstr(fault, cases[i].part) : fault != NULL)
            fail_msg("case %zu: %s: %s", i, cases[i].address, fault ? fault : "allowed");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_pods_page_is_found_by_the_first_word_that_there_is),
        cmocka_unit_test(test_what_is_no_place_is_refused_with_the_reason),
        cmocka_unit_test(test_an_endpoint_is_asked_as_it_is_named_in_its_namespace),
        cmocka_unit_test(test_an_endpoint_beyond_the_longest_url_is_refused),
        cmocka_unit_test(test_addresses_are_judged_by_the_table_first_and_then_by_the_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
