/* Look-ups in the embedded descriptors. */
#include "proto/proto.h"

#include <string.h>

const struct proto_file *proto_find_file(const char *name)
{
    for (size_t i = 0; i < proto_file_count; i++)
        if (strcmp(proto_files[i].name, name) == 0)
            return &proto_files[i];
    return NULL;
}

const struct proto_file *proto_find_symbol(const char *symbol)
{
    for (size_t i = 0; i < proto_file_count; i++)
        for (const char *const *known = proto_files[i].symbols; *known; known++)
            if (strcmp(*known, symbol) == 0)
                return &proto_files[i];
    return NULL;
}
