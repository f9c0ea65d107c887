/* Addresses and prefixes from text, and the table of addresses that nothing is fetched from. Resolves and connects
 * nothing. */
#include "base/ip.h"

#include "base/alloc.h"
#include "base/num.h"

#include <arpa/inet.h>
#include <string.h>

static const char unspecified[] = "is an unspecified address";
static const char link_local[] = "is a link-local address";
static const char multicast[] = "is a multicast, reserved or broadcast address";
static const char tunnel[] = "is an address of a tunnel (Teredo)";
static const char metadata[] = "is the address of a cloud's metadata service";

/* Prefixes of IPv4 addresses that are not fetched from. */
static const struct {
    uint8_t bytes[4];
    int bits;
    const char *fault;
} refused_v4[] = {
    {{0, 0, 0, 0}, 8, unspecified},       {{169, 254, 0, 0}, 16, link_local},
    {{100, 100, 100, 200}, 32, metadata}, /* Alibaba Cloud */
    {{168, 63, 129, 16}, 32, metadata},   /* Azure */
    {{192, 0, 0, 192}, 32, metadata},     /* Oracle Cloud */
    {{224, 0, 0, 0}, 3, multicast},
};

/* Prefixes of IPv6 addresses, the first that fits decides. v4_at: where the IPv4 address is that such an address stands
 * for; NONE: there is none, and `fault` is the answer. */
enum { NONE = -1, LOCAL_NAT64 = -2 };
static const struct {
    uint8_t bytes[16];
    int bits, v4_at;
    const char *fault;
} known_v6[] = {
    {{0}, 128, NONE, unspecified},                                                  /* :: */
    {{[15] = 1}, 128, NONE, NULL},                                                  /* ::1, allowed */
    {{[10] = 0xff, [11] = 0xff}, 96, 12, NULL},                                     /* mapped */
    {{0}, 96, 12, NULL},                                                            /* compatible */
    {{[8] = 0xff, [9] = 0xff}, 96, 12, NULL},                                       /* translated */
    {{0x00, 0x64, 0xff, 0x9b}, 96, 12, NULL},                                       /* NAT64 */
    {{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48, LOCAL_NAT64, NULL},                  /* NAT64 of a network */
    {{0x20, 0x02}, 16, 2, NULL},                                                    /* 6to4 */
    {{0x20, 0x01, 0, 0}, 32, NONE, tunnel},                                         /* Teredo */
    {{0xfe, 0x80}, 10, NONE, link_local},                                           /* */
    {{0xff}, 8, NONE, multicast},                                                   /* */
    {{0xfd, 0x00, 0x0e, 0xc2}, 32, NONE, metadata},                                 /* AWS */
    {{0xfd, 0x20, 0x00, 0xce, [14] = 0x02, [15] = 0x54}, 128, NONE, metadata},      /* Google Cloud */
    {{0xfd, 0x00, 0x00, 0xc1, [12] = 0xa9, 0xfe, 0xa9, 0xfe}, 128, NONE, metadata}, /* Oracle Cloud */
};

static bool has_prefix(const uint8_t *address, const uint8_t *prefix, int bits)
{
    for (int i = 0; i < bits; i += 8) {
        unsigned mask = bits - i >= 8 ? 0xFFU : 0xFFU << (8 - (bits - i)) & 0xFFU;
        if ((address[i / 8] ^ prefix[i / 8]) & mask)
            return false;
    }
    return true;
}

static const char *fault_of_v4(const uint8_t address[4])
{
    for (size_t i = 0; i < ARRAY_LEN(refused_v4); i++)
        if (has_prefix(address, refused_v4[i].bytes, refused_v4[i].bits))
            return refused_v4[i].fault;
    return NULL;
}

/* RFC 6052 2.2: where the IPv4 address is depends on the length of the translator's prefix, which only its operator
 * knows. Any reading that is refused refuses; but 0.x.y.z before the last place is most likely none. */
static const char *fault_of_local_nat64(const uint8_t address[16])
{
    static const uint8_t places[][4] = {{6, 7, 9, 10}, {7, 9, 10, 11}, {9, 10, 11, 12}};
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        const uint8_t v4[4] = {address[places[i][0]], address[places[i][1]], address[places[i][2]],
                               address[places[i][3]]};
        const char *fault = v4[0] == 0 ? NULL : fault_of_v4(v4);
        if (fault)
            return fault;
    }
    return fault_of_v4(address + 12);
}

/* Its row among the known ones, or ARRAY_LEN(known_v6). */
static size_t row_of(const uint8_t address[16])
{
    size_t row = 0;
    while (row < ARRAY_LEN(known_v6) && !has_prefix(address, known_v6[row].bytes, known_v6[row].bits))
        row++;
    return row;
}

static const char *fault_of_v6(const uint8_t address[16])
{
    size_t row = row_of(address);
    if (row == ARRAY_LEN(known_v6))
        return NULL;
    if (known_v6[row].v4_at == LOCAL_NAT64)
        return fault_of_local_nat64(address);
    return known_v6[row].v4_at == NONE ? known_v6[row].fault : fault_of_v4(address + known_v6[row].v4_at);
}

const char *ip_fault(const struct ip *ip)
{
    return ip->is_v6 ? fault_of_v6(ip->bytes) : fault_of_v4(ip->bytes);
}

bool ip_v4_of(const struct ip *ip, struct ip *ret)
{
    size_t row = ip->is_v6 ? row_of(ip->bytes) : ARRAY_LEN(known_v6);
    if (row == ARRAY_LEN(known_v6) || known_v6[row].v4_at == NONE)
        return false;
    *ret = (struct ip){.is_v6 = false};
    memcpy(ret->bytes, ip->bytes + (known_v6[row].v4_at == LOCAL_NAT64 ? 12 : known_v6[row].v4_at), 4);
    return true;
}

int ip_parse(struct str text, struct ip *ret)
{
    char copy[INET6_ADDRSTRLEN];
    struct ip ip = {0};
    if (!text.ptr || !str_copy(copy, sizeof(copy), text) || strlen(copy) != text.len)
        return -1;
    ip.is_v6 = strchr(copy, ':') != NULL;
    if (inet_pton(ip.is_v6 ? AF_INET6 : AF_INET, copy, ip.bytes) != 1)
        return -1;
    *ret = ip;
    return 0;
}

static bool has_bits_from(const struct ip *ip, int bits)
{
    for (int i = bits; i < (ip->is_v6 ? 128 : 32); i++)
        if (ip->bytes[i / 8] & (0x80U >> (i % 8)))
            return true;
    return false;
}

int ip_prefix_parse(struct str text, struct ip_prefix *ret, struct err *e)
{
    struct str rest = text, address = str_cut(&rest, '/');
    struct ip_prefix prefix;
    uint64_t bits = 0;
    if (ip_parse(address, &prefix.ip) < 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "\"%.*s\" is no address or prefix; write 10.0.0.0/8 or fd00::/8",
                       (int)(text.len < 64 ? text.len : 64), text.ptr ? text.ptr : "");
    uint64_t most = prefix.ip.is_v6 ? 128 : 32;
    if (!rest.ptr)
        bits = most;
    else if (num_parse_u64(rest, &bits) < 0 || bits > most)
        return err_set(e, ERR_INVALID_ARGUMENT, "\"%.*s\" has no number of bits from 0 to %d behind the slash",
                       (int)(text.len < 64 ? text.len : 64), text.ptr, (int)most);
    prefix.bits = (int)bits;
    if (has_bits_from(&prefix.ip, prefix.bits))
        return err_set(e, ERR_INVALID_ARGUMENT, "\"%.*s\" has bits set behind its prefix of %d",
                       (int)(text.len < 64 ? text.len : 64), text.ptr, prefix.bits);
    *ret = prefix;
    return 0;
}

bool ip_prefix_has(const struct ip_prefix *prefix, const struct ip *ip)
{
    static const uint8_t mapped[16] = {[10] = 0xff, [11] = 0xff};
    if (prefix->ip.is_v6 == ip->is_v6)
        return has_prefix(ip->bytes, prefix->ip.bytes, prefix->bits);
    return ip->is_v6 && has_prefix(ip->bytes, mapped, 96) && has_prefix(ip->bytes + 12, prefix->ip.bytes, prefix->bits);
}
