/* The families that dcgm-exporter gives, under its names, units and labels, as far as NVML measures them; private to
 * exporter. */
#ifndef EXPORTER_DCGM_H
#define EXPORTER_DCGM_H

#include "promtext/promtext.h"
#include "snapshot/snapshot.h"

struct dcgm_source {
    const struct snapshot *snapshot;
    const struct snapshot_owners *owners; /* may be NULL: unknown */
    int64_t now_ns;
    const char *node_name; /* "" unknown */
};
/* Append the families; a value that is unknown or too old has no line. */
void dcgm_render(struct promtext *text, const struct dcgm_source *source);

#endif
