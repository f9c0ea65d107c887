/* A trigger in the making, private to trigger/: what the steps of parse.c, parse_engine.c and parse_parts.c share. */
#ifndef TRIGGER_PARSE_H
#define TRIGGER_PARSE_H

#include "trigger/trigger.h"

#include "trigger/facts.h"
#include "trigger/text.h"
#include "trigger/value.h"

struct draft {
    struct trigger *t;
    char warnings[TRIGGER_WARNINGS_MAX][TRIGGER_TEXT_MAX]; /* the trigger's, until it is finished */
    const struct trigger_settings *settings;
    struct trigger_value values[TRIGGER_KEY_COUNT];
    const struct trigger_profile *profile;
    const struct trigger_default *entry; /* of `metrics:` for this metricName */
    char metric_from[TRIGGER_SHOWN_MAX]; /* the key that chose the metric; "" while nobody has */
    const char *target_from;             /* the key that chose the target; NULL for the profile and defaults */
    /* Several metric types; n_types is 0 where there is one, t->metric. */
    enum trigger_metric types[TRIGGER_PARTS_MAX];
    double targets[TRIGGER_PARTS_MAX], activations[TRIGGER_PARTS_MAX];
    size_t n_types;
};

/* What the metadata gives for a key; NULL where it gives nothing. */
static inline const struct trigger_value *trigger_given(const struct draft *d, enum trigger_key key)
{
    return d->values[key].key.ptr ? &d->values[key] : NULL;
}

#define TRIGGER_TARGET_RANGE     ((struct trigger_range){0.001, 1e9})
#define TRIGGER_ACTIVATION_RANGE ((struct trigger_range){0, 1e12})

#define TRIGGER_DRAFT_WARN(d, ...) trigger_warn((d)->t->warnings, &(d)->t->n_warnings, __VA_ARGS__)

/* What is measured as the metadata spells it, for sentences: "a" or "a,b". */
void trigger_show_draft(const struct draft *d, char out[TRIGGER_TYPES_MAX]);
/* `from` selects the metric. Overruling what another key selected is worth a warning. */
void trigger_choose_metric(struct draft *d, enum trigger_metric metric, const char *from);
/* INVALID_ARGUMENT: exported, never scaled on; with the equivalent in `memory_used`. Returns -1. */
int trigger_refuse_memory_free(const struct draft *d, const struct trigger_value *v, struct err *e);
bool trigger_is_memory_free(struct str text);

/* ---- parse_parts.c: several metric types in one trigger ---- */

/* Is the value a list, "a,b"? */
bool trigger_is_list(const struct trigger_value *v);
/* metricType "a,b"; targetValue and activationThreshold of those; scope. Each returns 0, or -1 and the refusal. */
int trigger_read_types(struct draft *d, const struct trigger_value *v, struct err *e);
int trigger_read_part_targets(struct draft *d, struct err *e);
int trigger_read_part_activations(struct draft *d, struct err *e);
int trigger_check_parts(const struct draft *d, struct err *e);

/* ---- parse_engine.c: keys of engines' pages, and which keys have an effect with them ---- */

/* engineMetric, which may choose the metric. */
int trigger_read_engine_metric(struct draft *d, struct err *e);
/* Endpoints, enginePort and the like, and wakeEndpoint, after the metric and the scope are settled. */
int trigger_read_engine(struct draft *d, struct err *e);
/* Does the trigger read engines' pages at all; and nothing else? */
bool trigger_reads_pages(const struct draft *d);
bool trigger_reads_only_pages(const struct draft *d);

#endif
