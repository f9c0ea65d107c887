/* Names of signals, engines and readings: the public tables of signals.h. */
#include "signals/signals.h"

#include <assert.h>

static const struct {
    const char *name, *unit, *sentence;
    enum signals_kind kind;
} facts[] = {
#define X(id, name, unit, kind, what) [SIGNALS_##id] = {name, unit, what, SIGNALS_##kind},
    SIGNALS(X)
#undef X
};

static const struct {
    const char *name, *path;
    uint16_t port;
} engines[] = {
#define X(id, name, port, path) [SIGNALS_ENGINE_##id] = {name, path, port},
    SIGNALS_ENGINES(X)
#undef X
};

static const struct {
    const char *name, *sentence;
} readings[] = {
#define X(id, name, sentence) [SIGNALS_READ_##id] = {name, sentence},
    SIGNALS_READINGS(X)
#undef X
};

const char *signals_name(enum signals_id id)
{
    assert(id < SIGNALS_COUNT);
    return facts[id].name;
}

const char *signals_unit(enum signals_id id)
{
    assert(id < SIGNALS_COUNT);
    return facts[id].unit;
}

const char *signals_sentence(enum signals_id id)
{
    assert(id < SIGNALS_COUNT);
    return facts[id].sentence;
}

enum signals_kind signals_kind_of(enum signals_id id)
{
    assert(id < SIGNALS_COUNT);
    return facts[id].kind;
}

const char *signals_engine_name(enum signals_engine engine)
{
    assert(engine < SIGNALS_ENGINE_COUNT);
    return engines[engine].name;
}

uint16_t signals_engine_port(enum signals_engine engine)
{
    assert(engine < SIGNALS_ENGINE_COUNT);
    return engines[engine].port;
}

const char *signals_engine_path(enum signals_engine engine)
{
    assert(engine < SIGNALS_ENGINE_COUNT);
    return engines[engine].path;
}

const char *signals_reading_name(enum signals_reading reading)
{
    assert(reading < SIGNALS_READING_COUNT);
    return readings[reading].name;
}

const char *signals_reading_sentence(enum signals_reading reading)
{
    assert(reading < SIGNALS_READING_COUNT);
    return readings[reading].sentence;
}

int64_t signals_feed_max_age_ns(const struct signals_feed *feed)
{
    int64_t age_ns = 3 * feed->interval_ns, least_ns = 5 * NS_PER_S;
    return age_ns > least_ns ? age_ns : least_ns;
}
