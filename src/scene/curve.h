/* curve: a quantity over time, and its exact integral. Pure: time comes in as a parameter, in seconds.
 * It does not read files or YAML and knows no units. */
#ifndef SCENE_CURVE_H
#define SCENE_CURVE_H

#include <stddef.h>
#include <stdint.h>

enum curve_kind { CURVE_NONE, CURVE_CONSTANT, CURVE_STEP, CURVE_RAMP, CURVE_SINE, CURVE_NOISE };

/* One corner of a step or ramp curve. `area` is the integral from 0 to t_s. */
struct curve_point {
    double t_s, value, area;
};

/* A zeroed curve is CURVE_NONE: not given. Step holds each value until the next point, ramp goes in straight lines;
 * both hold the first value before the first point, and the last one after the last, unless they loop. */
struct curve {
    enum curve_kind kind;
    double mean, amplitude; /* constant, sine, noise */
    double period_s;        /* sine; noise: how long one value holds */
    double phase_s;         /* sine: shifts the wave to the left */
    double loop_s;          /* step, ramp: repeat after so long; 0 = never */
    uint32_t noise_offset;
    const struct curve_point *points; /* step, ramp: owned elsewhere, ascending in time */
    size_t n_points;
};

/* Fill in the areas of n points, ascending in time. */
void curve_measure(enum curve_kind kind, struct curve_point *points, size_t n);
/* Value at t_s (below 0: at 0). 0 for CURVE_NONE. */
double curve_value(const struct curve *c, double t_s);
/* Integral from 0 to t_s, in value-seconds. 0 for CURVE_NONE and for t_s <= 0. */
double curve_integral(const struct curve *c, double t_s);
/* The lowest and highest value it can take. */
void curve_bounds(const struct curve *c, double *ret_lowest, double *ret_highest);

/* Mixes the bits of x: equal in, equal out, on every machine. For noise and made-up identifiers. */
uint64_t curve_hash(uint64_t x);

#endif
