/* exporter: what /metrics shows: devices of the newest snapshot, what pods do on them, the sampler, the process, and
 * the counters that other modules registered. Rendering only: it decides no value. */
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

/* One number of a family that has the name of a `metrics:` entry of the configuration: what it comes to on a node. */
struct exporter_entry {
    const char *name; /* of the family, as exporter_name_entry gives it */
    const char *help;
    double value;     /* NaN: there is none now */
    const char *node; /* label; NULL: this node, without one */
};
enum { EXPORTER_NAME_MAX = 80 };
/* The family of an entry's name (lower case, at most 63 bytes): what no family may contain becomes an underscore.
 * INVALID_ARGUMENT where that would be, or could become, a name of the page's own. */
int exporter_name_entry(const char *entry, char ret_name[EXPORTER_NAME_MAX], struct err *e);

/* What one scrape sees: all of one moment. */
struct exporter_view {
    const struct snapshot *snapshot;        /* NULL: nothing read yet */
    const struct snapshot_owners *owners;   /* NULL: not asked for */
    const struct snapshot_holders *holders; /* NULL: not asked for */
    int64_t now_ns;                         /* ages are taken at it */
    int64_t wall_ns;                        /* since 1970 at that moment; 0 unknown: no times of events */
    const struct exporter_entry *entries;   /* those of one name in a row, each node once */
    size_t n_entries;
};
/* Append the whole page. */
void exporter_render(struct exporter *x, const struct exporter_view *view, enum promtext_format format,
                     struct buf *out);

#endif
