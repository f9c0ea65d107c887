/* The endpoint guard as far as the URL's text tells. */
#include "trigger/endpoint.h"

#include "support.h"

#include <string.h>

static const char *const allowed[] = {
    "http://vllm:8000/metrics",
    "https://vllm.ai.svc.cluster.local:8000/metrics",
    "HTTP://Vllm/metrics?x=y#z",
    "http://10.0.1.5:8000/metrics",
    "http://127.0.0.1:8000/metrics",
    "http://192.168.1.7/",
    "http://172.16.0.1",
    "http://[::1]:8000/",
    "http://[fd12:3456::1]/",
    "http://[2001:db8::1]/",
    "http://[::ffff:10.0.0.1]/",
    "http://[64:ff9b::8.8.8.8]/",
    "http://vllm.:8000/",
    "http://my_server/",
    "http://metadata-store.ml.svc/",
    "http://a.1b/",
    "http://host:1/",
    "http://host:65535/",
    "http://host?x",
};

static const struct {
    const char *url, *part;
} refused[] = {
    {"", "neither"},
    {"vllm:8000", "neither"},
    {"ftp://vllm/", "neither"},
    {"file:///etc/passwd", "neither"},
    {"http:/vllm/", "neither"},
    {"http://", "no host"},
    {"http:///metrics", "no host"},
    {"http://:8000/", "no host"},
    {"http://?x", "no host"},
    {"http://[]/", "no host"},
    {"http://[::1/", "no host"},
    {"http://[::1]x/", "no host"},
    {"http://user@vllm/", "user name"},
    {"http://user:secret@vllm/", "user name"},
    {"http://10.0.0.1@169.254.169.254/", "user name"},
    {"http://vllm:0/", "port"},
    {"http://vllm:65536/", "port"},
    {"http://vllm:/", "port"},
    {"http://vllm:80:90/", "port"},
    {"http://vllm:8o/", "port"},
    {"http://a b/", "characters"},
    {"http://a\n/", "characters"},
    {"http://a\\@b/", "characters"},
    {"http://\303\251/", "characters"},
    {"http://a%2eb/", "no DNS name"},
    {"http://a..b/", "no DNS name"},
    {"http://.a/", "no DNS name"},
    {"http://a,b/", "no DNS name"},
    {"http://169.254.169.254/latest/meta-data/", "link-local"},
    {"http://169.254.169.254./", "link-local"},
    {"http://169.254.1.1/", "link-local"},
    {"http://0.0.0.0/", "unspecified"},
    {"http://0.1.2.3/", "unspecified"},
    {"http://224.0.0.1/", "multicast"},
    {"http://255.255.255.255/", "multicast"},
    {"http://100.100.100.200/", "metadata"},
    {"http://168.63.129.16/", "metadata"},
    {"http://192.0.0.192/", "metadata"},
    {"http://2852039166/", "four decimal"},
    {"http://0xa9fea9fe/", "four decimal"},
    {"http://0xA9.0xFE.0xA9.0xFE/", "four decimal"},
    {"http://0251.0376.0251.0376/", "four decimal"},
    {"http://169.16689662/", "four decimal"},
    {"http://1.2.3/", "four decimal"},
    {"http://1.2.3.4.5/", "four decimal"},
    {"http://127.1/", "four decimal"},
    {"http://0x/", "four decimal"},
    {"http://metadata/", "metadata"},
    {"http://METADATA.google.internal/", "metadata"},
    {"http://metadata.google.internal./", "metadata"},
    {"http://metadata.goog/", "metadata"},
    {"http://instance-data/", "metadata"},
    {"http://instance-data.ec2.internal/", "metadata"},
    {"http://kubernetes.default.svc/", "Kubernetes API"},
    {"https://kubernetes.default.svc.cluster.local:443/", "Kubernetes API"},
    {"http://[::]/", "unspecified"},
    {"http://[fe80::1]/", "link-local"},
    {"http://[febf::1]/", "link-local"},
    {"http://[fe80::1%25eth0]/", "zone"},
    {"http://[fe80::1%eth0]/", "zone"},
    {"http://[ff02::1]/", "multicast"},
    {"http://[::ffff:169.254.169.254]/", "link-local"},
    {"http://[::ffff:a9fe:a9fe]/", "link-local"},
    {"http://[::169.254.169.254]/", "link-local"},
    {"http://[64:ff9b::a9fe:a9fe]/", "link-local"},
    {"http://[64:ff9b:1::a9fe:a9fe]/", "link-local"},
    {"http://[2002:a9fe:a9fe::1]/", "link-local"},
    {"http://[::ffff:0:a9fe:a9fe]/", "link-local"},
    {"http://[2001:0::1]/", "tunnel"},
    {"http://[fd00:ec2::254]/", "metadata"},
    {"http://[fd20:ce::254]/", "metadata"},
    {"http://[fd00:c1::a9fe:a9fe]/", "metadata"},
    {"http://[::ffff:100.100.100.200]/", "metadata"},
    {"http://[1.2.3.4]/", "no IPv6"},
    {"http://[::1]:99999/", "port"},
};

static void test_engines_at_private_and_loopback_addresses_are_allowed(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++) {
        const char *fault = trigger_endpoint_fault(str_of(allowed[i]));
        if (fault)
            print_error("%s %s\n", allowed[i], fault);
        assert_null(fault);
    }
}

static void test_other_hosts_and_spellings_are_refused_with_the_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        const char *fault = trigger_endpoint_fault(str_of(refused[i].url));
        if (!fault || !strstr(fault, refused[i].part))
            print_error("%s: %s\n", refused[i].url, fault ? fault : "allowed");
        assert_true(fault && strstr(fault, refused[i].part));
    }
}

static void test_host_longer_than_dns_allows_is_refused(void **state)
{
    (void)state;
    char url[400] = "http://";
    memset(url + 7, 'a', 300);
    assert_string_equal(trigger_endpoint_fault(str_of(url)), "has a host that is too long");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_engines_at_private_and_loopback_addresses_are_allowed),
        cmocka_unit_test(test_other_hosts_and_spellings_are_refused_with_the_reason),
        cmocka_unit_test(test_host_longer_than_dns_allows_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
