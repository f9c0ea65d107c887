/* What the `metrics:` entries of the configuration come to on this node, for /metrics; private to agent. */
#ifndef AGENT_ENTRIES_H
#define AGENT_ENTRIES_H

#include "exporter/exporter.h"
#include "trigger/trigger.h"

/* One for each entry that a trigger of its name can be made of, or that is exported only (memory_free). */
struct agent_entries;
struct agent_entries *agent_entries_new(const struct trigger_settings *settings);
void agent_entries_free(struct agent_entries *entries); /* accepts NULL */

/* Their values as GetMetrics would give them at now_ns; an error is no value (NaN). snapshot may be NULL. The array is
 * of *ret_n, belongs to `entries` and stands until the next call. NULL entries have none. */
const struct exporter_entry *agent_entries_evaluate(struct agent_entries *entries, const struct snapshot *snapshot,
                                                    int64_t now_ns, size_t *ret_n);

#endif
