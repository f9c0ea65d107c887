/* exporter: what /metrics shows: devices of the newest snapshot, the sampler, the process, and the counters that other
 * modules registered. Rendering only: it decides no value. */
#ifndef EXPORTER_EXPORTER_H
#define EXPORTER_EXPORTER_H

#include "base/base.h"
#include "promtext/promtext.h"
#include "snapshot/snapshot.h"

#include <stdbool.h>

struct exporter;
struct exporter_config {
    const struct metrics *metrics; /* counters of other modules */
    const char *node_name;         /* "" unknown */
    const char *version;
    int64_t start_wall_ns; /* of the process */
    bool has_dcgm;         /* the families of dcgm-exporter too */
};
struct exporter *exporter_new(const struct exporter_config *config);
void exporter_free(struct exporter *x); /* accepts NULL */

/* Append the whole page. snapshot may be NULL: nothing read yet; owners may be NULL: not asked for. Ages are taken at
 * now_ns. */
void exporter_render(struct exporter *x, const struct snapshot *snapshot, const struct snapshot_owners *owners,
                     int64_t now_ns, enum promtext_format format, struct buf *out);

#endif
