/* Values and closed-form integrals of the curve kinds. */
#include "scene/curve.h"

#include <math.h>

/* Noise is one fixed ring of this many values in [-1, 1); a curve starts at its own offset in it. */
enum { NOISE_LEN = 1024 };

static const double two_pi = 6.283185307179586476925;

/* The finaliser of splitmix64. */
uint64_t curve_hash(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static double noise_at(uint64_t step)
{
    return (double)(int64_t)curve_hash(step % NOISE_LEN) * 0x1p-63;
}

void curve_measure(enum curve_kind kind, struct curve_point *points, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (i == 0) {
            points[0].area = points[0].value * points[0].t_s;
            continue;
        }
        const struct curve_point *a = &points[i - 1];
        double height = kind == CURVE_RAMP ? (a->value + points[i].value) / 2 : a->value;
        points[i].area = a->area + height * (points[i].t_s - a->t_s);
    }
}

/* The last point at or before t, or NULL when t lies before the first. */
static const struct curve_point *point_before(const struct curve *c, double t)
{
    size_t low = 0, high = c->n_points;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (c->points[middle].t_s <= t)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &c->points[low - 1] : NULL;
}

static double points_value(const struct curve *c, double t)
{
    const struct curve_point *a = point_before(c, t);
    if (!a)
        return c->points[0].value;
    if (c->kind == CURVE_STEP || a == &c->points[c->n_points - 1])
        return a->value;
    return a->value + (a[1].value - a->value) * (t - a->t_s) / (a[1].t_s - a->t_s);
}

static double points_area(const struct curve *c, double t)
{
    const struct curve_point *a = point_before(c, t);
    if (!a)
        return c->points[0].value * t;
    double height = c->kind == CURVE_RAMP ? (a->value + points_value(c, t)) / 2 : a->value;
    return a->area + height * (t - a->t_s);
}

static double noise_area(const struct curve *c, double t)
{
    double steps = floor(t / c->period_s);
    double rest = t - steps * c->period_s, ring = 0, part = 0;
    uint64_t tail = (uint64_t)fmod(steps, NOISE_LEN);
    for (uint64_t i = 0; i < NOISE_LEN; i++) {
        double value = noise_at(c->noise_offset + i);
        ring += value;
        if (i < tail)
            part += value;
    }
    double whole = floor(steps / NOISE_LEN) * ring + part;
    return c->mean * t + c->amplitude * (whole * c->period_s + noise_at(c->noise_offset + tail) * rest);
}

static double sine_area(const struct curve *c, double t)
{
    double w = two_pi / c->period_s;
    return c->mean * t + c->amplitude / w * (cos(w * c->phase_s) - cos(w * (t + c->phase_s)));
}

double curve_value(const struct curve *c, double t_s)
{
    double t = t_s > 0 ? t_s : 0;
    switch (c->kind) {
    case CURVE_NONE:
        return 0;
    case CURVE_CONSTANT:
        return c->mean;
    case CURVE_STEP:
    case CURVE_RAMP:
        return points_value(c, c->loop_s > 0 ? fmod(t, c->loop_s) : t);
    case CURVE_SINE:
        return c->mean + c->amplitude * sin(two_pi * (t + c->phase_s) / c->period_s);
    case CURVE_NOISE:
        return c->mean + c->amplitude * noise_at(c->noise_offset + (uint64_t)fmod(floor(t / c->period_s), NOISE_LEN));
    }
    return 0;
}

double curve_integral(const struct curve *c, double t_s)
{
    if (!(t_s > 0))
        return 0;
    switch (c->kind) {
    case CURVE_NONE:
        return 0;
    case CURVE_CONSTANT:
        return c->mean * t_s;
    case CURVE_STEP:
    case CURVE_RAMP: {
        if (c->loop_s <= 0)
            return points_area(c, t_s);
        double rounds = floor(t_s / c->loop_s);
        double rest = fmod(t_s, c->loop_s);
        return rounds * points_area(c, c->loop_s) + points_area(c, rest);
    }
    case CURVE_SINE:
        return sine_area(c, t_s);
    case CURVE_NOISE:
        return noise_area(c, t_s);
    }
    return 0;
}

void curve_bounds(const struct curve *c, double *ret_lowest, double *ret_highest)
{
    double low = c->mean - fabs(c->amplitude), high = c->mean + fabs(c->amplitude);
    for (size_t i = 0; i < c->n_points; i++) {
        low = i && c->points[i].value > low ? low : c->points[i].value;
        high = i && c->points[i].value < high ? high : c->points[i].value;
    }
    *ret_lowest = low;
    *ret_highest = high;
}
