/* Fields of a protobuf message, read where they lie. It owns no memory and knows no message. */
#include "fleet/wire.h"

enum { VARINT_BYTES_MAX = 10 };

int fleet_wire_next_varint(struct str *rest, uint64_t *ret)
{
    uint64_t value = 0;
    if (rest->len == 0)
        return 0;
    for (size_t i = 0; i < rest->len && i < VARINT_BYTES_MAX; i++) {
        unsigned char byte = (unsigned char)rest->ptr[i];
        value |= (uint64_t)(byte & 0x7F) << (7 * i);
        if (byte & 0x80)
            continue;
        *rest = (struct str){rest->ptr + i + 1, rest->len - i - 1};
        *ret = value;
        return 1;
    }
    return -1;
}

static uint64_t little_endian(struct str bytes)
{
    uint64_t value = 0;
    for (size_t i = bytes.len; i > 0; i--)
        value = value << 8 | (unsigned char)bytes.ptr[i - 1];
    return value;
}

static int take_bytes(struct str *rest, uint64_t n, struct str *ret)
{
    if (n > rest->len)
        return -1;
    *ret = (struct str){rest->ptr, (size_t)n};
    *rest = (struct str){rest->ptr + n, rest->len - (size_t)n};
    return 1;
}

static int take_fixed(struct str *rest, size_t n, uint64_t *ret)
{
    struct str bytes;
    if (take_bytes(rest, n, &bytes) < 0)
        return -1;
    *ret = little_endian(bytes);
    return 1;
}

int fleet_wire_next(struct str *rest, struct fleet_wire *ret)
{
    uint64_t key;
    int rv = fleet_wire_next_varint(rest, &key);
    if (rv <= 0)
        return rv;
    if (key >> 3 == 0 || key > UINT32_MAX)
        return -1;
    ret->key = (uint32_t)key;
    switch (key & 7) {
    case WIRE_VARINT:
        return fleet_wire_next_varint(rest, &ret->number) > 0 ? 1 : -1;
    case WIRE_FIXED64:
        return take_fixed(rest, 8, &ret->number);
    case WIRE_BYTES:
        if (fleet_wire_next_varint(rest, &ret->number) <= 0)
            return -1;
        return take_bytes(rest, ret->number, &ret->bytes);
    case WIRE_FIXED32:
        return take_fixed(rest, 4, &ret->number);
    default: /* groups: proto3 has none */
        return -1;
    }
}
