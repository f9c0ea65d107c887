/* 2.4 for latencies: the mean over the requests of all replicas, and between which two numbers it lies while some are
 * not known. It does not know how states and intervals come about. */
#include "scaling/gather.h"

#include <math.h>

static bool is_exact(const struct scaling_replica *r)
{
    return r->lower.is_known && scaling_milli(r->lower.value) == scaling_milli(r->upper.value);
}

bool scaling_is_idle(const struct scaling_rules *rules, const struct scaling_replica *r)
{
    bool is_read = r->state == SCALING_POD_MEASURED || r->state == SCALING_POD_HUNG;
    return rules->is_weighted && is_read && r->lower.is_known && r->load.weight <= 0;
}

/* Taken to be like the others: it leaves their mean as it is. */
static bool follows(const struct scaling_replica *r)
{
    return r->state == SCALING_POD_UNOBSERVABLE;
}

struct mean {
    double sum, weight;
};

static void add(struct mean *mean, double value, double weight)
{
    mean->sum += value * weight;
    mean->weight += weight;
}

static double mean_of(struct mean mean)
{
    return mean.weight > 0 ? mean.sum / mean.weight : 0;
}

double scaling_weighted_lower(const struct scaling_rules *rules, const struct scaling_replica *replicas, size_t n)
{
    struct mean mean = {0, 0};
    bool is_any = false;
    for (size_t i = 0; i < n; i++) {
        const struct scaling_replica *r = &replicas[i];
        if (!scaling_counts(rules, r) || !r->lower.is_known || follows(r))
            continue;
        is_any = true;
        add(&mean, r->lower.value, r->load.weight);
    }
    return is_any ? mean_of(mean) : rules->target;
}

/* How many requests a replica that is not known for sure may have had. */
struct weights {
    double most; /* as many as the busiest that is known; 1 for each where none had any */
    bool is_none;
};

static struct weights find_weights(const struct scaling_rules *rules, const struct scaling_replica *replicas, size_t n)
{
    struct weights weights = {.most = 0};
    for (size_t i = 0; i < n; i++)
        if (scaling_counts(rules, &replicas[i]) && replicas[i].lower.is_known && !follows(&replicas[i]))
            weights.most = fmax(weights.most, replicas[i].load.weight);
    weights.is_none = !(weights.most > 0);
    weights.most = weights.is_none ? 1 : weights.most;
    return weights;
}

static double weight_of(const struct weights *weights, const struct scaling_replica *r)
{
    return weights->is_none ? 1 : r->load.weight;
}

static double lower_mean(const struct scaling_rules *rules, const struct scaling_replica *replicas, size_t n,
                         const struct weights *weights)
{
    struct mean mean = {0, 0};
    for (size_t i = 0; i < n; i++) {
        const struct scaling_replica *r = &replicas[i];
        if (!scaling_counts(rules, r) || follows(r))
            continue;
        if (r->lower.is_known)
            add(&mean, r->lower.value, weight_of(weights, r));
        else
            add(&mean, 0, weights->most);
    }
    return mean_of(mean);
}

/* A reading that is not there may be of any number of requests. */
static bool is_unbounded(const struct scaling_replica *r)
{
    return !r->lower.is_known && r->state != SCALING_POD_LOADING;
}

/* The mean at the upper ends, where those that may have had more requests, and are above `level`, had them. */
static double upper_mean_above(const struct scaling_rules *rules, const struct scaling_replica *replicas, size_t n,
                               const struct weights *weights, double level)
{
    struct mean mean = {0, 0};
    for (size_t i = 0; i < n; i++) {
        const struct scaling_replica *r = &replicas[i];
        if (!scaling_counts(rules, r) || follows(r) || is_unbounded(r))
            continue;
        double least = r->lower.is_known || weights->is_none ? weight_of(weights, r) : 0;
        double most = is_exact(r) ? least : fmax(least, weights->most);
        add(&mean, r->upper.value, r->upper.value > level ? most : least);
    }
    return mean_of(mean);
}

void scaling_weighted_bounds(const struct scaling_rules *rules, const struct scaling_replica *replicas, size_t n,
                             double *ret_lower, double *ret_upper)
{
    struct weights weights = find_weights(rules, replicas, n);
    *ret_lower = lower_mean(rules, replicas, n, &weights);
    /* the largest mean: those above it count with all that they may have, the others with the least; each step rises */
    double level = upper_mean_above(rules, replicas, n, &weights, (double)INFINITY), next = level;
    do {
        level = next;
        next = upper_mean_above(rules, replicas, n, &weights, level);
    } while (next > level);
    for (size_t i = 0; i < n; i++)
        if (scaling_counts(rules, &replicas[i]) && is_unbounded(&replicas[i]) && !follows(&replicas[i]))
            level = fmax(level, replicas[i].upper.value);
    *ret_upper = level;
}
