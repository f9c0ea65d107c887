/* 2.2: from the devices of a pod to the pod's value, own shares of devices shared in time included. It does not know
 * pods, their state or the target. */
#include "scaling/scaling.h"

#include <assert.h>
#include <math.h>

enum combine { COMBINE_MEAN, COMBINE_MAX, COMBINE_SUM };
enum share { SHARE_FAIR, SHARE_MEMORY, SHARE_OWN, SHARE_WHOLE };

static const struct {
    enum combine combine;
    double ceiling;
    enum share share;
} kinds[SCALING_KIND_COUNT] = {
#define X(id, combine, ceiling, share) [SCALING_KIND_##id] = {COMBINE_##combine, (ceiling), SHARE_##share},
    SCALING_KINDS(X)
#undef X
};

double scaling_kind_ceiling(enum scaling_kind kind)
{
    assert(kind < SCALING_KIND_COUNT);
    return kinds[kind].ceiling;
}

const char *scaling_reading_name(enum scaling_reading reading)
{
    static const char *const names[SCALING_READ_COUNT] = {
#define X(id, name, sentence) [SCALING_READ_##id] = (name),
        SCALING_READINGS(X)
#undef X
    };
    return reading < SCALING_READ_COUNT ? names[reading] : "unknown";
}

const char *scaling_reading_sentence(enum scaling_reading reading)
{
    static const char *const sentences[SCALING_READ_COUNT] = {
#define X(id, name, sentence) [SCALING_READ_##id] = (sentence),
        SCALING_READINGS(X)
#undef X
    };
    return reading < SCALING_READ_COUNT ? sentences[reading] : "unknown";
}

double scaling_fair_share(double share, double device, double share_sum, unsigned sharers)
{
    if (!(share > 0))
        return 0;
    double busy = fmin(100, fmax(device, share_sum));
    double fair = sharers > 0 ? 100.0 / sharers : 100;
    return 100 * share / fmax(share + 100 - busy, fair);
}

struct scaling_maybe scaling_memory_share(double own, double free)
{
    if (!(own + free > 0))
        return (struct scaling_maybe){.is_known = false};
    return (struct scaling_maybe){.is_known = true, .value = 100 * own / (own + free)};
}

static struct scaling_maybe known(double value)
{
    return (struct scaling_maybe){.is_known = true, .value = value};
}

/* Without per-process data the load is split evenly, if nobody else's can be in it. */
static bool find_share(enum share rule, const struct scaling_device *device, struct scaling_device *ret_device)
{
    *ret_device = *device;
    if (device->has_shares)
        return rule != SHARE_OWN || device->share >= 0;
    if (device->own_holders < device->holders)
        return false;
    ret_device->share = device->value / device->holders;
    ret_device->share_sum = device->value;
    ret_device->sharers = device->holders;
    return true;
}

/* What one device says about the pod; not known: its part cannot be told. */
static struct scaling_maybe device_value(enum scaling_kind kind, const struct scaling_device *device)
{
    enum share rule = kinds[kind].share;
    struct scaling_device shared;
    if (device->holders <= 1 || rule == SHARE_WHOLE)
        return known(device->value);
    if (!find_share(rule, device, &shared))
        return (struct scaling_maybe){.is_known = false};
    if (rule == SHARE_MEMORY)
        return scaling_memory_share(shared.share, shared.free);
    if (rule == SHARE_FAIR)
        return known(scaling_fair_share(shared.share, shared.value, shared.share_sum, shared.sharers));
    return known(shared.share);
}

struct tally {
    size_t n, n_missing, n_unshared, n_unsupported;
    double sum, max;
};

static void add_device(struct tally *tally, enum scaling_kind kind, const struct scaling_device *device)
{
    if (device->reading == SCALING_READ_UNSUPPORTED) {
        tally->n_unsupported++;
        return;
    }
    if (device->reading != SCALING_READ_OK) {
        tally->n_missing++;
        return;
    }
    struct scaling_maybe value = device_value(kind, device);
    if (!value.is_known && kinds[kind].share == SHARE_MEMORY && device->has_shares) {
        tally->n_missing++; /* own and free are both 0: no memory that could be told apart */
        return;
    }
    double counted = value.is_known ? value.value : device->value;
    tally->n_unshared += !value.is_known;
    tally->sum += counted;
    tally->max = tally->n ? fmax(tally->max, counted) : counted;
    tally->n++;
}

void scaling_combine_devices(enum scaling_kind kind, const struct scaling_device *devices, size_t n,
                             struct scaling_pod_value *ret_value)
{
    assert(kind < SCALING_KIND_COUNT);
    struct tally tally = {.n = 0};
    for (size_t i = 0; i < n; i++)
        add_device(&tally, kind, &devices[i]);
    *ret_value = (struct scaling_pod_value){.reading = SCALING_READ_MISSING, .n_unsupported = tally.n_unsupported};
    if (n > 0 && tally.n_unsupported == n)
        ret_value->reading = SCALING_READ_UNSUPPORTED;
    if (tally.n == 0 || tally.n_missing > 0)
        return;
    double combined = kinds[kind].combine == COMBINE_MAX   ? tally.max
                      : kinds[kind].combine == COMBINE_SUM ? tally.sum
                                                           : tally.sum / (double)tally.n;
    ret_value->reading = tally.n_unshared ? SCALING_READ_UNSHARED : SCALING_READ_OK;
    *(tally.n_unshared ? &ret_value->bound : &ret_value->value) = combined;
}
