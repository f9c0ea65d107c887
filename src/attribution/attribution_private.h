/* Shared by the files of attribution only. */
#ifndef ATTRIBUTION_ATTRIBUTION_PRIVATE_H
#define ATTRIBUTION_ATTRIBUTION_PRIVATE_H

#include "attribution/attribution.h"

/* What one id names. */
struct attribution_device {
    bool is_gpu;                          /* it has the form of a GPU's id; else nothing below counts */
    bool is_all;                          /* every GPU of the node (WSL2) */
    bool is_shared;                       /* one of several shares of the device */
    int replica;                          /* number of the share, -1 none */
    const struct snapshot_device *device; /* NULL: the snapshot has no such device */
    struct str uuid;                      /* without a device: the UUID in the id, or empty */
};

/* An id of the device plugin API, of whatever plugin. s may be NULL. */
struct attribution_device attribution_resolve_id(struct str id, struct str resource, const struct snapshot *s);
/* The name of a device of the DRA driver gpu.nvidia.com. */
struct attribution_device attribution_resolve_dra(struct str driver, struct str name, const struct snapshot *s);

#endif
