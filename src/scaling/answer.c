/* 2.5: from our value to the number that makes the HPA answer what we mean, found in the HPA's own arithmetic. It does
 * not know pods. */
#include "scaling/scaling.h"

#include <inttypes.h>
#include <math.h>

static const int64_t milli_max = 1000000000000000; /* 1e12, the largest value that is sent */

const char *scaling_fit_sentence(enum scaling_fit fit)
{
    static const char *const sentences[] = {
#define X(id, sentence) [SCALING_FIT_##id] = (sentence),
        SCALING_FITS(X)
#undef X
    };
    return (size_t)fit < ARRAY_LEN(sentences) ? sentences[fit] : "unknown";
}

/* What the HPA answers, as a function of the milli that it is sent. Without its tolerance the answer never falls as the
 * value grows; the tolerance cuts one band out of that, in which the answer is one number. */
struct curve {
    const struct scaling_hpa *hpa;
    const struct scaling_replicas *replicas;
};

static int64_t answer_at(const struct curve *c, int64_t milli)
{
    return scaling_hpa_desired(c->hpa, (double)milli / 1000, c->replicas);
}

static double ratio_at(const struct curve *c, int64_t milli)
{
    double target = (double)scaling_milli(c->hpa->target);
    if (c->hpa->type == SCALING_VALUE)
        return (double)milli / target;
    if (c->replicas->status <= 0)
        return (double)INFINITY;
    return (double)milli / (target * (double)c->replicas->status);
}

/* The three questions whose answer turns from no to yes once as the milli grows. */
enum question { PLAIN_AT_LEAST, RATIO_AT_LEAST, RATIO_ABOVE };

static bool holds_at(const struct curve *c, enum question question, double bound, int64_t milli)
{
    double ready = c->hpa->type == SCALING_VALUE ? (double)c->replicas->ready : 1;
    switch (question) {
    case PLAIN_AT_LEAST: /* outside of the band; the order of operations is the HPA's */
        return ceil((double)milli / (double)scaling_milli(c->hpa->target) * ready) >= bound;
    case RATIO_AT_LEAST:
        return bound <= ratio_at(c, milli);
    case RATIO_ABOVE:
        break;
    }
    return ratio_at(c, milli) > bound;
}

/* The first milli with a yes; one beyond the largest if there is none. */
static int64_t find_first(const struct curve *c, enum question question, double bound)
{
    int64_t low = 0, high = milli_max + 1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (holds_at(c, question, bound, middle))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Both ends belong to it; empty where first > last. */
struct span {
    int64_t first, last;
};

/* All that is answered with `wanted`. The band always holds the value at which the plain answer is the band's own (S,
 * or R), so it overlaps the plain span of any other count from one side only. */
static struct span find_span(const struct curve *c, int64_t wanted)
{
    struct span plain = {find_first(c, PLAIN_AT_LEAST, (double)wanted),
                         find_first(c, PLAIN_AT_LEAST, (double)wanted + 1) - 1};
    struct span band = {find_first(c, RATIO_AT_LEAST, 1.0 - c->hpa->tolerance_down),
                        find_first(c, RATIO_ABOVE, 1.0 + c->hpa->tolerance_up) - 1};
    if (band.first > band.last)
        return plain;
    int64_t in_band = c->hpa->type == SCALING_VALUE ? c->replicas->spec : c->replicas->status;
    if (in_band == wanted) {
        plain.first = band.first < plain.first ? band.first : plain.first;
        plain.last = band.last > plain.last ? band.last : plain.last;
    } else if (band.first <= plain.last && plain.first <= band.last) {
        if (band.first <= plain.first)
            plain.first = band.last + 1;
        else
            plain.last = band.first - 1;
    }
    return plain;
}

/* The milli nearest to `value` that is answered with `wanted`, `margin` away from where the answer changes; -1: none.
 */
static int64_t find_nearest(const struct curve *c, int64_t wanted, double value, int64_t margin)
{
    struct span span = find_span(c, wanted);
    int64_t first = span.first > 0 ? span.first + margin : 0, last = span.last - margin;
    int64_t milli = scaling_milli(value);
    if (first > last)
        return -1;
    return milli < first ? first : milli > last ? last : milli;
}

static void send(struct scaling_answer *ret, enum scaling_fit fit, double value)
{
    ret->fit = fit;
    ret->value = value;
}

static void fit_average(const struct curve *c, const struct scaling_result *result, struct scaling_answer *ret)
{
    if (answer_at(c, scaling_milli(result->value)) == ret->wanted) {
        send(ret, SCALING_FIT_AS_IS, result->value);
        return;
    }
    int64_t milli = find_nearest(c, ret->wanted, result->value, 1);
    if (milli >= 0) {
        send(ret, SCALING_FIT_NEAREST, (double)milli / 1000);
        return;
    }
    send(ret, SCALING_FIT_NONE, result->value);
    /* An error leaves the count alone, which is the answer wanted; for any other answer it would be wrong. */
    if (ret->wanted != c->replicas->spec || c->replicas->status <= c->replicas->spec)
        return;
    send(ret, SCALING_FIT_REFUSED, 0);
    (void)err_set(&ret->error, ERR_UNAVAILABLE,
                  "the present count of %" PRId64 " is to stay, and during this rollout the HPA would answer %" PRId64
                  " to any value near it (kubernetes #123296)",
                  c->replicas->spec, c->replicas->status);
}

static void fit_value(const struct curve *c, const struct scaling_result *result, struct scaling_answer *ret)
{
    if (ret->wanted == c->replicas->spec || c->replicas->ready <= 0) {
        send(ret, SCALING_FIT_TARGET, c->hpa->target);
        return;
    }
    double per_ready = result->value / (double)c->replicas->ready;
    int64_t milli = find_nearest(c, ret->wanted, per_ready, 0);
    if (milli < 0)
        send(ret, SCALING_FIT_NONE, per_ready);
    else
        send(ret, milli == scaling_milli(per_ready) ? SCALING_FIT_PER_READY : SCALING_FIT_NEAREST,
             (double)milli / 1000);
}

/* d: what the HPA would answer to v if S were C. */
static int64_t find_wanted(const struct scaling_hpa *hpa, const struct scaling_result *result)
{
    struct scaling_hpa average = *hpa;
    average.type = SCALING_AVERAGE_VALUE;
    struct scaling_replicas settled = {.spec = result->replicas.spec, .status = result->replicas.spec};
    return scaling_hpa_desired(&average, result->value, &settled);
}

void scaling_for_hpa(const struct scaling_hpa *hpa, const struct scaling_result *result, struct scaling_answer *ret)
{
    *ret = (struct scaling_answer){.fit = SCALING_FIT_REFUSED, .error = result->error};
    if (result->error.class != ERR_NONE)
        return;
    if (result->rule == SCALING_RULE_ZERO) { /* the HPA computes nothing at 0 */
        send(ret, SCALING_FIT_AS_IS, result->value);
        return;
    }
    struct curve curve = {.hpa = hpa, .replicas = &result->replicas};
    ret->wanted = find_wanted(hpa, result);
    ret->proposal = ret->wanted;
    if (hpa->has_modifiers) {
        if (result->is_hold)
            (void)err_set(&ret->error, ERR_UNAVAILABLE,
                          "the present count is to stay, and with scalingModifiers no value of one trigger says so");
        else
            send(ret, SCALING_FIT_AS_IS, result->value);
        return;
    }
    if (hpa->type == SCALING_VALUE)
        fit_value(&curve, result, ret);
    else
        fit_average(&curve, result, ret);
    if (ret->error.class == ERR_NONE)
        ret->proposal = answer_at(&curve, scaling_milli(ret->value));
}
