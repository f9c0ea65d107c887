/* The tables of trigger.h as data, private to trigger/: lookups and lists of names for refusals. */
#ifndef TRIGGER_FACTS_H
#define TRIGGER_FACTS_H

#include "trigger/trigger.h"

struct trigger_metric_facts {
    const char *name, *alias;
    int source; /* a snapshot field, or a TRIGGER_SOURCE */
    const char *unit;
    double divisor;
};

struct trigger_profile {
    const char *name, *metric_name;
    enum trigger_metric metric;
    double target, activation;
    enum signals_engine engine;
};

struct trigger_key_facts {
    const char *name, *alias, *allowed;
};

const struct trigger_metric_facts *trigger_metric_facts(enum trigger_metric metric);
const struct trigger_key_facts *trigger_key_facts(enum trigger_key key);
/* NULL if there is no such profile. */
const struct trigger_profile *trigger_find_profile(struct str name);

/* The key that this text spells: its name, its alias, or one of them with FromEnv behind. Returns false for others. */
bool trigger_find_key(struct str name, enum trigger_key *ret_key);
/* Is it one of KEDA's own keys? */
bool trigger_is_passed_over(struct str name);

/* Do both read the same thing in the same unit? */
bool trigger_metrics_are_same(enum trigger_metric a, enum trigger_metric b);

/* Names to choose from, in static storage: what a refusal lists. Some may be NULL: no alias. */
struct trigger_choices {
    const char *const *names;
    size_t n;
};
enum trigger_choice {
    TRIGGER_CHOICE_PROFILE,
    TRIGGER_CHOICE_METRIC,
    TRIGGER_CHOICE_AGGREGATION,
    TRIGGER_CHOICE_SCOPE,
    TRIGGER_CHOICE_ON_MISSING,
    TRIGGER_CHOICE_HPA_METRIC_TYPE,
    TRIGGER_CHOICE_SCHEME,
    TRIGGER_CHOICE_KEY, /* names, aliases and KEDA's own */
};
/* In order of the table; for TRIGGER_CHOICE_SCOPE, _ON_MISSING, _HPA_METRIC_TYPE and _SCHEME the place is the enum's
 * value. */
struct trigger_choices trigger_choices(enum trigger_choice choice);

#endif
