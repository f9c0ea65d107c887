/* IP addresses as bytes: reading them, which ones nothing of ours fetches from, and prefixes as operators write them.
 * The one table of refused addresses, for whoever judges a URL's text and for whoever connects. */
#ifndef BASE_IP_H
#define BASE_IP_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct ip {
    bool is_v6;
    uint8_t bytes[16]; /* network order; of IPv4 the first four */
};

/* Four decimal numbers, or IPv6 without brackets and without a zone. 0, or -1 and *ret as it was. */
int ip_parse(struct str text, struct ip *ret) __attribute__((warn_unused_result));

/* NULL, or why no page is fetched from there, as the end of a sentence ("is a link-local address"), static text:
 * link-local, unspecified, multicast, reserved, and the metadata services of clouds. IPv6 forms that stand for an IPv4
 * address (mapped, compatible, translated, NAT64, 6to4) are judged as that. Private addresses and loopback are good.
 * reference B.6 #65; RFC 4291, 6052, 6890, 8215 */
const char *ip_fault(const struct ip *ip);

/* The IPv4 address that an IPv6 address stands for, in those forms; of a network's own NAT64 as if its prefix had 96
 * bits. False: it stands for none, and *ret is as it was. */
bool ip_v4_of(const struct ip *ip, struct ip *ret);

/* "10.0.0.0/8", "fd00::/8", or one address. */
struct ip_prefix {
    struct ip ip;
    int bits;
};
/* 0, or -1 and INVALID_ARGUMENT: no address, too many bits, or bits set behind the prefix. */
int ip_prefix_parse(struct str text, struct ip_prefix *ret, struct err *e) __attribute__((warn_unused_result));
/* An IPv6 address that is a mapped IPv4 one counts as that; other kinds of prefix and address never match. */
bool ip_prefix_has(const struct ip_prefix *prefix, const struct ip *ip);

#endif
