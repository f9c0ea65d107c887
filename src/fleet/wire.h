/* Protobuf as it lies in a message: one field after the other, without a tree and without memory. It knows the encoding
 * and no message. */
#ifndef FLEET_WIRE_H
#define FLEET_WIRE_H

#include "base/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* protobuf.dev/programming-guides/encoding */
enum fleet_wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

/* A field's number and type in one word, to switch over: a known number of another type is an unknown field. */
#define WIRE_KEY(number, type) ((uint32_t)(number) << 3 | (uint32_t)(type))

struct fleet_wire {
    uint32_t key;
    uint64_t number;  /* VARINT, FIXED32, FIXED64 */
    struct str bytes; /* BYTES */
};

/* The next field of *rest: 1, 0 at its end, -1 where it is no protobuf. */
int fleet_wire_next(struct str *rest, struct fleet_wire *ret);
/* The next of the packed varints of *rest; the same results. */
int fleet_wire_next_varint(struct str *rest, uint64_t *ret);

static inline double fleet_wire_double(const struct fleet_wire *f)
{
    double value;
    memcpy(&value, &f->number, sizeof(value));
    return value;
}

static inline float fleet_wire_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline int32_t fleet_wire_zigzag(uint64_t number)
{
    uint32_t n = (uint32_t)number;
    return (int32_t)(n >> 1 ^ (0 - (n & 1)));
}

#endif
