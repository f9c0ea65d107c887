/* For the tests of the lint table: what is said of a set-up that a test may change. */
#ifndef TEST_WORKLOAD_LINTING_H
#define TEST_WORKLOAD_LINTING_H

#include "objects.h"

#include <stdio.h>

struct said {
    char ids[16][32];
    char sentences[16][512];
    size_t n;
};

static inline void note(void *context, const char *id, const char *sentence)
{
    struct said *s = context;
    assert_true(s->n < 16);
    (void)snprintf(s->ids[s->n], sizeof(s->ids[0]), "%s", id);
    (void)snprintf(s->sentences[s->n++], sizeof(s->sentences[0]), "%s", sentence);
}

static inline const char *find(const struct said *s, const char *id)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->ids[i], id) == 0)
            return s->sentences[i];
    return NULL;
}

/* A change to the objects of a set-up that is right. */
typedef void (*change)(struct world *w, struct objects *o);

static inline void no_change(struct world *w, struct objects *o)
{
    (void)w;
    (void)o;
}
static inline struct said lint(struct metadata m, change changed)
{
    WORLD w;
    world_init(&w, m);
    struct objects o;
    objects_init(&o, &w);
    o.object.max = o.hpa.max = 12;
    objects_trigger(&o, 0, "", m);
    objects_metric(&o, "s0-load", false, w.trigger->target);
    changed(&w, &o);
    struct said said = {.n = 0};
    workload_lint(&w.facts, w.trigger, note, &said);
    return said;
}

#endif
