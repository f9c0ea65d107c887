/* Addresses and prefixes: what is read, what is refused, what matches. */
#include "base/base.h"

#include "support.h"

#include <string.h>

static struct ip ip_of(const char *text)
{
    struct ip ip;
    if (ip_parse(str_of(text), &ip) < 0)
        fail_msg("%s was not read", text);
    return ip;
}

static void test_addresses_are_read_and_other_spellings_are_not(void **state)
{
    static const char *const wrong[] = {"",     "1.2.3",     "1.2.3.4.5", "01.2.3.4", "0x7f.0.0.1", "2130706433",
                                        "::1%", "fe80::1%1", "[::1]",     "1.2.3.4 ", "::g",        "1.2.3.256"};
    (void)state;
    struct ip ip = ip_of("10.0.1.5");
    assert_false(ip.is_v6);
    assert_memory_equal(ip.bytes, "\x0a\x00\x01\x05", 4);
    ip = ip_of("fd12::a00:1");
    assert_true(ip.is_v6);
    assert_memory_equal(ip.bytes, "\xfd\x12\0\0\0\0\0\0\0\0\0\0\x0a\0\0\x01", 16);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        if (ip_parse(str_of(wrong[i]), &ip) == 0)
            fail_msg("\"%s\" was read", wrong[i]);
    assert_int_equal(ip_parse((struct str){"1.2.3.4\0x", 9}, &ip), -1);
    assert_int_equal(ip.bytes[0], 0xfd); /* as it was */
}

static void test_refused_addresses_are_refused_in_every_form(void **state)
{
    static const struct {
        const char *text, *part; /* NULL: good */
    } cases[] = {
        {"10.0.1.5", NULL},
        {"127.0.0.1", NULL},
        {"100.64.0.1", NULL},
        {"::1", NULL},
        {"fd12:3456::1", NULL},
        {"2001:db8::1", NULL},
        {"::ffff:10.0.0.1", NULL},
        {"64:ff9b::a00:1", NULL},
        {"64:ff9b:1::a00:1", NULL},
        {"2002:a00:1::1", NULL},
        {"0.0.0.0", "unspecified"},
        {"169.254.169.254", "link-local"},
        {"169.253.255.255", NULL},
        {"169.255.0.0", NULL},
        {"224.0.0.1", "multicast"},
        {"223.255.255.255", NULL},
        {"255.255.255.255", "broadcast"},
        {"100.100.100.200", "metadata"},
        {"168.63.129.16", "metadata"},
        {"192.0.0.192", "metadata"},
        {"::", "unspecified"},
        {"fe80::1", "link-local"},
        {"ff02::1", "multicast"},
        {"fd00:ec2::254", "metadata"},
        {"fd20:ce::254", "metadata"},
        {"fd00:c1::a9fe:a9fe", "metadata"},
        {"2001::1", "Teredo"},
        {"::ffff:169.254.169.254", "link-local"},
        {"::ffff:0.0.0.0", "unspecified"},
        {"::ffff:0:169.254.169.254", "link-local"},
        {"::169.254.169.254", "link-local"},
        {"64:ff9b::169.254.169.254", "link-local"},
        {"2002:a9fe:a9fe::1", "link-local"},
        {"64:ff9b:1::169.254.169.254", "link-local"},
        {"64:ff9b:1:a9fe:a9:fe00:a00:1", "link-local"}, /* a prefix of 48 bits */
        {"64:ff9b:1:a9:fe:a9fe:a00:1", "link-local"},   /* of 56 */
        {"64:ff9b:1:0:a9:fea9:fe00:1", "link-local"},   /* of 64 */
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct ip ip = ip_of(cases[i].text);
        const char *fault = ip_fault(&ip);
        if (cases[i].part ? !fault || !strstr(fault, cases[i].part) : fault != NULL)
            fail_msg("%s: %s", cases[i].text, fault ? fault : "allowed");
    }
}

static void test_prefixes_match_their_addresses_and_no_others(void **state)
{
    static const struct {
        const char *prefix, *address;
        bool has;
    } cases[] = {
        {"10.0.0.0/8", "10.255.0.1", true},
        {"10.0.0.0/8", "11.0.0.0", false},
        {"10.0.0.0/8", "::ffff:10.0.0.1", true},
        {"10.0.0.0/8", "64:ff9b::a00:1", false},
        {"10.1.2.3", "10.1.2.3", true},
        {"10.1.2.3", "10.1.2.2", false},
        {"0.0.0.0/0", "8.8.8.8", true},
        {"0.0.0.0/0", "fd00::1", false},
        {"::/0", "fd00::1", true},
        {"::/0", "10.0.0.1", false},
        {"fd00:10::/33", "fd00:10:7fff::1", true},
        {"fd00:10::/33", "fd00:10:8000::1", false},
        {"192.168.16.0/20", "192.168.31.255", true},
        {"192.168.16.0/20", "192.168.32.0", false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct ip_prefix prefix;
        struct ip ip = ip_of(cases[i].address);
        struct err e;
        assert_int_equal(ip_prefix_parse(str_of(cases[i].prefix), &prefix, &e), 0);
        if (ip_prefix_has(&prefix, &ip) != cases[i].has)
            fail_msg("%s, %s", cases[i].prefix, cases[i].address);
    }
}

static void test_the_ipv4_address_that_an_ipv6_stands_for_is_known(void **state)
{
    static const struct {
        const char *text, *v4; /* NULL: none */
    } cases[] = {
        {"::ffff:10.0.0.1", "10.0.0.1"},
        {"::10.0.0.1", "10.0.0.1"},
        {"::ffff:0:10.0.0.1", "10.0.0.1"},
        {"64:ff9b::10.0.0.1", "10.0.0.1"},
        {"2002:a00:1::5", "10.0.0.1"},
        {"64:ff9b:1:2:3:4:10.0.0.1", "10.0.0.1"},
        {"10.0.0.1", NULL},
        {"fd00::10.0.0.1", NULL},
        {"::1", NULL},
        {"fe80::10.0.0.1", NULL},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct ip ip = ip_of(cases[i].text), v4 = {0}, wanted = {0};
        if (cases[i].v4)
            wanted = ip_of(cases[i].v4);
        if (ip_v4_of(&ip, &v4) != (cases[i].v4 != NULL) || memcmp(&v4, &wanted, sizeof(v4)) != 0)
            fail_msg("%s", cases[i].text);
    }
}

static void test_what_is_no_prefix_is_refused_with_the_reason(void **state)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"", "is no address or prefix"},
        {"vllm", "is no address or prefix"},
        {"10.0.0/8", "is no address or prefix"},
        {"10.0.0.0/", "from 0 to 32"},
        {"10.0.0.0/33", "from 0 to 32"},
        {"fd00::/129", "from 0 to 128"},
        {"10.0.0.0/8/8", "from 0 to 32"},
        {"10.0.0.0/-1", "from 0 to 32"},
        {"10.0.0.1/8", "bits set behind its prefix of 8"},
        {"fd00::1/64", "bits set behind"},
        {"/8", "is no address or prefix"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct ip_prefix prefix;
        struct err e = {0};
        if (ip_prefix_parse(str_of(cases[i].text), &prefix, &e) == 0 || !strstr(e.text, cases[i].part))
            fail_msg("\"%s\": %s", cases[i].text, e.text);
        assert_int_equal(e.class, ERR_INVALID_ARGUMENT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses_are_read_and_other_spellings_are_not),
        cmocka_unit_test(test_refused_addresses_are_refused_in_every_form),
        cmocka_unit_test(test_prefixes_match_their_addresses_and_no_others),
        cmocka_unit_test(test_the_ipv4_address_that_an_ipv6_stands_for_is_known),
        cmocka_unit_test(test_what_is_no_prefix_is_refused_with_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
