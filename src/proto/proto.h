/* proto: the generated protobuf-c messages, and the descriptors that server reflection hands out. No logic. */
#ifndef PROTO_PROTO_H
#define PROTO_PROTO_H

#include <stddef.h>

#include "externalscaler.pb-c.h"
#include "fleet.pb-c.h"
#include "health.pb-c.h"
#include "node.pb-c.h"
#include "podresources.pb-c.h"
#include "reflection_v1.pb-c.h"

/* One .proto file; lists end with NULL; static storage. */
struct proto_file {
    const char *name; /* as other files import it */
    const unsigned char *bytes;
    size_t len; /* of the serialised FileDescriptorProto */
    const char *const *imports;
    const char *const *symbols;  /* full names of messages, fields, enums, services, methods */
    const char *const *services; /* full names */
};
extern const struct proto_file proto_files[];
extern const size_t proto_file_count;

/* The file of this name, or that defines this symbol ("grpc.health.v1.Health.Check"); NULL if none does. */
const struct proto_file *proto_find_file(const char *name);
const struct proto_file *proto_find_symbol(const char *symbol);

#endif
