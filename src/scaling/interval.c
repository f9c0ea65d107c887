/* 2.3, the right half of its table: between which two values each replica lies. It does not know where states and
 * readings come from. */
#include "scaling/scaling.h"

#include <math.h>

static const struct scaling_maybe none = {.is_known = false};

static struct scaling_maybe known(double value)
{
    return (struct scaling_maybe){.is_known = true, .value = value};
}

static bool is_avg(const struct scaling_rules *rules)
{
    return rules->aggregation == SCALING_AVG || rules->aggregation == SCALING_SUM;
}

/* The load since Ready, spread over the whole window. */
static struct scaling_maybe spread(const struct scaling_rules *rules, const struct scaling_replica *r)
{
    if (!r->load.since_ready.is_known)
        return none;
    return known(r->load.since_ready.value * fmin(1, fmax(0, r->ready_age_s) / rules->window_s));
}

struct scaling_maybe scaling_own_lower(const struct scaling_rules *rules, const struct scaling_replica *r)
{
    struct scaling_maybe p = r->load.window, young;
    switch (r->state) {
    case SCALING_POD_MEASURED:
    case SCALING_POD_UNREADY:
        return p;
    case SCALING_POD_YOUNG:
        return is_avg(rules) ? spread(rules, r) : none;
    case SCALING_POD_READY_AGAIN:
        young = is_avg(rules) ? spread(rules, r) : none;
        return young.is_known && p.is_known ? known(fmin(p.value, young.value)) : none;
    case SCALING_POD_HUNG:
        /* it takes a place; a mean over requests has its place in the number that multiplies it */
        return is_avg(rules) && !rules->is_weighted && p.is_known ? known(fmax(rules->target, p.value)) : p;
    case SCALING_POD_GONE:
    case SCALING_POD_MISSING:
    case SCALING_POD_UNOBSERVABLE:
    case SCALING_POD_LOADING:
    case SCALING_POD_STUCK:
    case SCALING_POD_STATE_COUNT:
        break;
    }
    return none;
}

/* What a pod without a reading can be at most. */
static struct scaling_maybe unknown_upper(const struct scaling_rules *rules, const struct scaling_replica *r,
                                          double a_lowers)
{
    if (r->bound.is_known)
        return r->bound;
    if (rules->ceiling > 0)
        return known(rules->ceiling);
    double last_good = r->last_good.is_known ? r->last_good.value : 0;
    return known(fmax(rules->target, fmax(last_good, a_lowers)));
}

static struct scaling_maybe young_upper(const struct scaling_rules *rules, const struct scaling_replica *r,
                                        double a_lowers)
{
    if (is_avg(rules))
        return r->load.since_ready.is_known ? r->load.since_ready : unknown_upper(rules, r, a_lowers);
    return r->load.window.is_known ? known(fmax(a_lowers, r->load.window.value)) : unknown_upper(rules, r, a_lowers);
}

static struct scaling_maybe ready_again_upper(const struct scaling_rules *rules, const struct scaling_replica *r,
                                              double a_lowers)
{
    if (!r->load.window.is_known || (is_avg(rules) && !r->load.since_ready.is_known))
        return unknown_upper(rules, r, a_lowers);
    double since_ready = r->load.since_ready.is_known ? r->load.since_ready.value : 0;
    return known(fmax(rules->target, fmax(r->load.window.value, since_ready)));
}

struct scaling_maybe scaling_upper(const struct scaling_rules *rules, const struct scaling_replica *r, double a_lowers)
{
    switch (r->state) {
    case SCALING_POD_MEASURED:
        return r->load.window;
    case SCALING_POD_YOUNG:
        return young_upper(rules, r, a_lowers);
    case SCALING_POD_READY_AGAIN:
        return ready_again_upper(rules, r, a_lowers);
    case SCALING_POD_UNREADY:
        return r->load.window.is_known ? known(fmax(rules->target, r->load.window.value))
                                       : unknown_upper(rules, r, a_lowers);
    case SCALING_POD_HUNG:
        return r->load.window.is_known ? scaling_own_lower(rules, r) : unknown_upper(rules, r, a_lowers);
    case SCALING_POD_MISSING:
        return unknown_upper(rules, r, a_lowers);
    case SCALING_POD_UNOBSERVABLE: /* like the others, but never more than is known of it: both hubs know D */
        return known(r->bound.is_known ? fmin(a_lowers, r->bound.value) : a_lowers);
    case SCALING_POD_LOADING:
        return known(is_avg(rules) ? rules->target : fmin(rules->target, a_lowers));
    case SCALING_POD_GONE:
    case SCALING_POD_STUCK:
    case SCALING_POD_STATE_COUNT:
        break;
    }
    return none;
}
