/* Random numbers for the property tests of scaling: a fixed seed gives the same run everywhere. */
#ifndef TEST_SCALING_RANDOM_H
#define TEST_SCALING_RANDOM_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct random {
    uint64_t state;
};

/* splitmix64 */
static inline uint64_t random_next(struct random *r)
{
    uint64_t z = (r->state += 0x9E3779B97F4A7C15U);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
}

static inline double random_double(struct random *r, double low, double high)
{
    return low + (high - low) * ((double)(random_next(r) >> 11) / 9007199254740992.0);
}

/* Both ends belong to it. */
static inline int64_t random_int(struct random *r, int64_t low, int64_t high)
{
    return low + (int64_t)(random_next(r) % (uint64_t)(high - low + 1));
}

static inline bool random_is(struct random *r, double probability)
{
    return random_double(r, 0, 1) < probability;
}

/* How many rounds: PROPERTY_ROUNDS times the usual number; PROPERTY_SEED starts elsewhere. */
static inline uint64_t random_env(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static inline uint64_t random_rounds(uint64_t usual)
{
    return usual * random_env("PROPERTY_ROUNDS", 1);
}

static inline struct random random_start(const char *what, uint64_t seed)
{
    seed = random_env("PROPERTY_SEED", seed);
    printf("%s: seed %" PRIu64 "\n", what, seed);
    return (struct random){.state = seed};
}

#endif
