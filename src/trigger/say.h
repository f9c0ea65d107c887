/* Sentences about an evaluation, private to trigger/: what evaluate.c refuses with and explain.c shows. */
#ifndef TRIGGER_SAY_H
#define TRIGGER_SAY_H

#include "trigger/trigger.h"

enum { TRIGGER_SENTENCE_BYTES = 640 };

/* "GPU 3", "GPU 3 MIG 1g.10gb", "gpu-node-7 GPU 3" */
void trigger_say_device(struct buf *out, const struct trigger_device *d);

/* "; no sampling cycle has ended for 12s: a driver call hangs" where the snapshot is older than a reading may be. */
void trigger_say_stuck(struct buf *out, const struct snapshot *s, int64_t now_ns);

/* Why devices without a reading leave no value: UNAVAILABLE, or FAILED_PRECONDITION where none has the metric. Returns
 * -1. */
int trigger_refuse_absent(const struct trigger_evaluation *evaluation, struct err *e);

/* Is one of the devices missing, which the trigger does not ignore? Unknown is not idle. */
bool trigger_has_unknown(const struct trigger_evaluation *evaluation);

#endif
