/* For the tests of trigger/: metadata from a list of strings. */
#ifndef TEST_TRIGGER_METADATA_H
#define TEST_TRIGGER_METADATA_H

#include "trigger/trigger.h"

#include "support.h"

#include <string.h>

enum { METADATA_MAX = 80 };

struct metadata {
    struct trigger_pair pairs[METADATA_MAX];
    size_t n;
};

/* key, value, key, value, ..., NULL */
static inline struct metadata metadata_of(const char *const *texts)
{
    struct metadata m = {.n = 0};
    for (size_t i = 0; texts[i] && m.n < METADATA_MAX; i += 2)
        m.pairs[m.n++] = (struct trigger_pair){str_of(texts[i]), str_of(texts[i + 1])};
    return m;
}
#define METADATA(...) metadata_of((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

static const struct trigger_settings agent_settings = {.default_scope = TRIGGER_NODE};
static const struct trigger_settings hub_settings = {.default_scope = TRIGGER_WORKLOAD};

/* The trigger, which must parse; the caller unrefs it. */
static inline struct trigger *parse_with(const struct trigger_settings *settings, struct metadata m)
{
    struct err e = {.class = ERR_NONE};
    struct trigger *t = trigger_parse(m.pairs, m.n, settings, &e);
    if (!t)
        print_error("refused: %s\n", e.text);
    assert_non_null(t);
    return t;
}

/* The refusal, which must come. */
static inline struct err refusal_of(struct metadata m)
{
    struct err e = {.class = ERR_NONE};
    struct trigger *t = trigger_parse(m.pairs, m.n, &agent_settings, &e);
    if (t)
        print_error("%s was accepted\n", m.n ? m.pairs[0].key.ptr : "nothing");
    assert_null(t);
    assert_int_equal(e.class, ERR_INVALID_ARGUMENT);
    assert_true(str_is_utf8(str_of(e.text)) && e.text[0]);
    return e;
}

static inline void assert_contains_at(const char *text, const char *part, const char *file, int line)
{
    if (strstr(text, part))
        return;
    print_error("\"%s\" is not in \"%s\"\n", part, text);
    _fail(file, line);
}
#define assert_contains(text, part) assert_contains_at((text), (part), __FILE__, __LINE__)

/* Is a sentence with this part among the warnings? */
static inline bool has_warning(const char (*warnings)[TRIGGER_TEXT_MAX], size_t n, const char *part)
{
    for (size_t i = 0; i < n; i++)
        if (strstr(warnings[i], part))
            return true;
    return false;
}

static inline void unref_cleanup(struct trigger **t)
{
    trigger_unref(*t);
}
#define TRIGGER_AUTO __attribute__((cleanup(unref_cleanup))) struct trigger *

#endif
