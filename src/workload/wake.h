/* Private to workload/: what the page of wakeEndpoint says of demand that no pod can show. */
#ifndef WORKLOAD_WAKE_H
#define WORKLOAD_WAKE_H

#include "workload/workload.h"

struct workload_wake {
    enum scaling_wake state; /* NONE: the trigger has no wakeEndpoint */
    double value; /* of a gauge its newest value, of a counter its increase in activationWindow; 0 unless read */
    double
        threshold; /* above which it is demand: activationThreshold of one signal, where the metadata says it; else 0 */
    bool is_counter;
    char text[2 * TRIGGER_TEXT_MAX + 64]; /* for people: what it says, or why that is not known; "" NONE */
};
/* Reads wakeMetric of the page of wakeEndpoint. A gauge is demand where its newest value is above the threshold, a
 * counter where its increase over activationWindow is, for which it takes two pages. `feed` NULL: the page is not asked
 * for, and `why` (may be NULL) says why. */
void workload_wake(const struct trigger *t, const struct signals_feed *feed, const char *why, int64_t now_ns,
                   struct workload_wake *ret);

#endif
