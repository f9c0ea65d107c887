/* 2.4, 2.6 and 4: one value and one yes or no from the intervals of all replicas. It does not know the HPA's
 * arithmetic; answer.c does. */
#include "scaling/gather.h"

#include <assert.h>
#include <math.h>

static const double value_max = 1e12;

static const struct {
    enum err_class class;
    const char *sentence;
} rule_facts[SCALING_RULE_COUNT] = {
#define X(id, class, sentence) [SCALING_RULE_##id] = {ERR_##class, (sentence)},
    SCALING_RULES(X)
#undef X
};

static const struct {
    bool is_active;
    const char *sentence;
} active_facts[SCALING_ACTIVE_RULE_COUNT] = {
#define X(id, is_active, sentence) [SCALING_ACTIVE_##id] = {(is_active), (sentence)},
    SCALING_ACTIVE_RULES(X)
#undef X
};

const char *scaling_rule_sentence(enum scaling_rule rule)
{
    return rule < SCALING_RULE_COUNT ? rule_facts[rule].sentence : "unknown";
}

bool scaling_rule_has_interval(enum scaling_rule rule)
{
    return rule == SCALING_RULE_KNOWN || rule == SCALING_RULE_GROW || rule == SCALING_RULE_SHRINK ||
           rule == SCALING_RULE_HOLD || rule == SCALING_RULE_HOLD_PART;
}

const char *scaling_active_sentence(enum scaling_active_rule rule)
{
    return rule < SCALING_ACTIVE_RULE_COUNT ? active_facts[rule].sentence : "unknown";
}

const char *scaling_warning_sentence(enum scaling_warning warning)
{
    static const char *const sentences[SCALING_WARN_COUNT] = {
#define X(id, sentence) [SCALING_WARN_##id] = (sentence),
        SCALING_WARNINGS(X)
#undef X
    };
    return warning < SCALING_WARN_COUNT ? sentences[warning] : "unknown";
}

/* One evaluation on its way. */
struct evaluation {
    const struct scaling_rules *rules;
    const struct scaling_workload *workload;
    struct scaling_gathered gathered;
    struct scaling_result *ret;
    enum scaling_aggregation aggregation;
};

static bool is_avg(const struct evaluation *ev)
{
    return ev->aggregation == SCALING_AVG;
}

bool scaling_counts(const struct scaling_rules *rules, const struct scaling_replica *r)
{
    if (r->state == SCALING_POD_GONE || r->state == SCALING_POD_STUCK)
        return false;
    bool is_missing = r->state == SCALING_POD_MISSING || r->state == SCALING_POD_UNOBSERVABLE;
    if (rules->is_engine && r->reading == SCALING_READ_UNDECIDED) /* its page is read, and tells all in a moment */
        return true;
    return !is_missing || rules->on_missing != SCALING_IGNORE_MISSING;
}

static bool counts(const struct evaluation *ev, const struct scaling_replica *r)
{
    return scaling_counts(ev->rules, r);
}

/* ---- intervals of all replicas ---- */

/* a(lowers): over the replicas with a lower of their own; T if there are none. */
static double aggregate_lowers(struct evaluation *ev)
{
    const struct scaling_gathered *g = &ev->gathered;
    size_t n = 0, n_idle = 0;
    if (is_avg(ev) && ev->rules->is_weighted)
        return scaling_weighted_lower(ev->rules, g->items, g->n_items);
    for (size_t i = 0; i < g->n_items; i++) {
        const struct scaling_replica *r = &g->items[i];
        if (!r->lower.is_known || !counts(ev, r))
            continue;
        if (scaling_is_idle(ev->rules, r))
            n_idle++;
        else
            g->scratch[n++] = r->lower.value;
    }
    if (n > 0)
        return scaling_aggregate(ev->aggregation, g->scratch, n);
    return n_idle > 0 ? 0 : ev->rules->target;
}

/* A pod that cannot be read, among pods whose memory says nothing, is one of them. */
static void join_preallocated(struct evaluation *ev)
{
    const struct scaling_gathered *g = &ev->gathered;
    size_t n_honest = 0, n_preallocated = 0;
    for (size_t i = 0; i < g->n_items; i++) {
        bool has_lower = g->items[i].lower.is_known;
        n_preallocated += has_lower && g->items[i].is_preallocated;
        n_honest += has_lower && !g->items[i].is_preallocated;
    }
    for (size_t i = 0; n_preallocated && !n_honest && i < g->n_items; i++)
        if (g->items[i].state == SCALING_POD_UNOBSERVABLE)
            g->items[i].is_preallocated = true;
}

static void set_intervals(struct evaluation *ev)
{
    struct scaling_gathered *g = &ev->gathered;
    for (size_t i = 0; i < g->n_items; i++)
        g->items[i].lower = scaling_own_lower(ev->rules, &g->items[i]);
    join_preallocated(ev);
    double a_lowers = aggregate_lowers(ev);
    ev->ret->a_lowers = a_lowers;
    for (size_t i = 0; i < g->n_items; i++) {
        struct scaling_replica *r = &g->items[i];
        r->upper = scaling_upper(ev->rules, r, a_lowers);
        if (r->state == SCALING_POD_UNOBSERVABLE)
            r->lower = r->upper;
    }
}

/* ---- 2.4 ---- */

/* ceil(value / T), in whole milli. */
static int64_t asks(double value, double target)
{
    int64_t value_milli = scaling_milli(value), target_milli = scaling_milli(target);
    return (value_milli + target_milli - 1) / target_milli;
}

/* How often a maximum, minimum or percentile counts: at most C times, a rollout's surge is no load. */
static double factor(const struct evaluation *ev, size_t n)
{
    return fmin((double)n, (double)ev->workload->replicas.spec);
}

/* A sum in which all pods with preallocated memory together count at most T C: they may let the workload shrink, never
 * grow. For max and percentiles each counts at most T, and the factor at most C, by themselves. 2.7 */
struct sum {
    double others, preallocated;
};

static void add(struct sum *sum, const struct scaling_replica *r, struct scaling_maybe end)
{
    *(r->is_preallocated ? &sum->preallocated : &sum->others) += end.is_known ? end.value : 0;
}

static double total(const struct evaluation *ev, struct sum sum)
{
    return sum.others + fmin(sum.preallocated, ev->rules->target * (double)ev->workload->replicas.spec);
}

static bool has_own_lower(const struct evaluation *ev)
{
    for (size_t i = 0; i < ev->gathered.n_items; i++) {
        const struct scaling_replica *r = &ev->gathered.items[i];
        if (counts(ev, r) && r->lower.is_known && r->state != SCALING_POD_UNOBSERVABLE)
            return true;
    }
    return false;
}

/* |L| a(lowers) and n a(uppers). Returns whether each lower is its upper. */
static bool sum_up(struct evaluation *ev)
{
    const struct scaling_gathered *g = &ev->gathered;
    struct scaling_result *ret = ev->ret;
    struct sum lowers = {0, 0}, uppers = {0, 0};
    size_t n_busy = 0;
    bool is_known = true;
    for (size_t i = 0; i < g->n_items; i++) {
        const struct scaling_replica *r = &g->items[i];
        if (!counts(ev, r))
            continue;
        if (!scaling_is_idle(ev->rules, r))
            g->scratch[n_busy++] = r->upper.value;
        ret->n++;
        ret->n_lower += r->lower.is_known;
        add(&lowers, r, r->lower);
        add(&uppers, r, r->upper);
        is_known &= r->lower.is_known && scaling_milli(r->lower.value) == scaling_milli(r->upper.value);
    }
    if (is_avg(ev) && ev->rules->is_weighted) {
        scaling_weighted_bounds(ev->rules, g->items, g->n_items, &ret->lo, &ret->hi);
        ret->lo *= factor(ev, ret->n);
        ret->hi *= factor(ev, ret->n);
    } else if (is_avg(ev)) {
        ret->lo = total(ev, lowers);
        ret->hi = total(ev, uppers);
    } else {
        double a_uppers = n_busy > 0 ? scaling_aggregate(ev->aggregation, g->scratch, n_busy) : 0;
        /* T stands for a(lowers) where there are none, and can be more than a D that bounds all there is */
        ret->lo = factor(ev, ret->n_lower) * (has_own_lower(ev) ? ret->a_lowers : fmin(ret->a_lowers, a_uppers));
        ret->hi = factor(ev, ret->n) * a_uppers;
    }
    return is_known;
}

static enum scaling_rule finish(struct scaling_result *ret, enum scaling_rule rule, double value)
{
    if (!isfinite(value) || value < 0 || value > value_max)
        return SCALING_RULE_OUT_OF_RANGE;
    ret->value = value;
    return rule;
}

static enum scaling_rule hold(struct evaluation *ev, enum scaling_rule rule)
{
    ev->ret->is_hold = true;
    return finish(ev->ret, rule, ev->rules->target * (double)ev->workload->replicas.spec);
}

static enum scaling_rule weigh(struct evaluation *ev)
{
    struct scaling_result *ret = ev->ret;
    bool is_known = sum_up(ev);
    if (!(ret->lo <= value_max && ret->hi <= value_max)) /* also keeps asks() within 64 bits */
        return SCALING_RULE_OUT_OF_RANGE;
    int64_t c = ev->workload->replicas.spec;
    ret->asks_lo = asks(ret->lo, ret->target);
    ret->asks_hi = asks(ret->hi, ret->target);
    if (is_known)
        return finish(ret, SCALING_RULE_KNOWN, ret->lo);
    if (ret->asks_lo > c)
        return finish(ret, SCALING_RULE_GROW, ret->lo);
    if (ret->asks_hi < c)
        return finish(ret, SCALING_RULE_SHRINK, ret->hi);
    return hold(ev, SCALING_RULE_HOLD);
}

/* ---- 2.6 ---- */

static bool is_not_yet(const struct scaling_replica *r)
{
    bool is_fresh = r->state == SCALING_POD_YOUNG || r->state == SCALING_POD_READY_AGAIN;
    return is_fresh && r->reading == SCALING_READ_NOT_YET;
}

/* Why not one of the pods that ought to be read is. */
static enum scaling_rule nothing_read(const struct evaluation *ev)
{
    const struct scaling_gathered *g = &ev->gathered;
    if (g->by_reading[SCALING_READ_UNSHARED] == g->n_ought)
        return SCALING_RULE_UNSHARED;
    if (g->by_reading[SCALING_READ_UNSUPPORTED] == g->n_ought)
        return ev->rules->is_engine ? SCALING_RULE_NO_SIGNAL : SCALING_RULE_UNSUPPORTED;
    return SCALING_RULE_NOTHING_READ;
}

static enum scaling_rule decide_counted(struct evaluation *ev)
{
    const struct scaling_gathered *g = &ev->gathered;
    size_t n_counted = 0, n_waiting = 0;
    for (size_t i = 0; i < g->n_items; i++) {
        const struct scaling_replica *r = &g->items[i];
        n_counted += counts(ev, r);
        n_waiting += r->state == SCALING_POD_LOADING || is_not_yet(r);
    }
    enum scaling_rule unread = g->n_ought > 0 && g->n_read == 0 ? nothing_read(ev) : SCALING_RULE_COUNT;
    if (unread == SCALING_RULE_UNSHARED || unread == SCALING_RULE_UNSUPPORTED || unread == SCALING_RULE_NO_SIGNAL)
        return unread;
    if (ev->rules->on_missing == SCALING_MISSING_IS_ERROR && ev->ret->counts[SCALING_POD_MISSING] > 0)
        return SCALING_RULE_MISSING_IS_ERROR;
    if (unread != SCALING_RULE_COUNT)
        return unread;
    if (n_counted == 0)
        return g->n_ought > 0 ? SCALING_RULE_NOTHING_READ : SCALING_RULE_ALL_STUCK;
    if (n_waiting == n_counted)
        return hold(ev, SCALING_RULE_HOLD_LOADING);
    return weigh(ev);
}

/* What needs no look at the pods. */
static enum scaling_rule decide_first(const struct evaluation *ev)
{
    const struct scaling_workload *w = ev->workload;
    if (ev->rules->is_job)
        return SCALING_RULE_JOB;
    if (!w->is_scale_known)
        return SCALING_RULE_NO_SCALE;
    return w->replicas.spec <= 0 ? SCALING_RULE_ZERO : SCALING_RULE_COUNT;
}

static void set_warnings(struct evaluation *ev)
{
    const struct scaling_gathered *g = &ev->gathered;
    bool is_preallocated = false;
    for (size_t i = 0; i < g->n_items; i++)
        is_preallocated |= g->items[i].is_preallocated;
    const struct {
        enum scaling_warning warning;
        bool is_set;
    } warnings[] = {
        {SCALING_WARN_STUCK, ev->ret->counts[SCALING_POD_STUCK] > 0},
        {SCALING_WARN_UNOBSERVABLE, ev->ret->counts[SCALING_POD_UNOBSERVABLE] > 0},
        {ev->rules->is_engine ? SCALING_WARN_NO_SIGNAL : SCALING_WARN_UNSUPPORTED,
         g->by_reading[SCALING_READ_UNSUPPORTED] > 0},
        {SCALING_WARN_UNSHARED, g->by_reading[SCALING_READ_UNSHARED] > 0},
        {SCALING_WARN_PREALLOCATED, is_preallocated},
        {SCALING_WARN_HUNG, ev->ret->counts[SCALING_POD_HUNG] > 0},
        {SCALING_WARN_NO_BOUND, !is_avg(ev) && ev->aggregation != SCALING_MAX},
    };
    for (size_t i = 0; i < ARRAY_LEN(warnings); i++)
        ev->ret->warnings |= warnings[i].is_set ? 1U << warnings[i].warning : 0;
}

static enum scaling_rule decide(struct evaluation *ev, struct arena *arena)
{
    enum scaling_rule rule = decide_first(ev);
    if (rule != SCALING_RULE_COUNT)
        return rule;
    struct scaling_gathered *g = &ev->gathered;
    if (!scaling_gather(ev->rules, ev->workload, arena, g))
        return SCALING_RULE_TOO_MANY;
    ev->ret->items = g->items;
    ev->ret->n_items = g->n_items;
    for (size_t i = 0; i < g->n_items; i++)
        ev->ret->counts[g->items[i].state]++;
    set_intervals(ev);
    set_warnings(ev);
    if (ev->workload->n_pods > 0 && !g->has_gpu && !ev->rules->is_engine)
        return SCALING_RULE_NO_GPU;
    return decide_counted(ev);
}

/* ---- 4 ---- */

static void take_larger(struct scaling_maybe *largest, const struct scaling_maybe *value)
{
    if (value->is_known && (!largest->is_known || value->value > largest->value))
        *largest = *value;
}

static void find_busiest(struct evaluation *ev)
{
    for (size_t i = 0; i < ev->gathered.n_items; i++) {
        const struct scaling_replica *r = &ev->gathered.items[i];
        if (r->state == SCALING_POD_GONE || r->state == SCALING_POD_STUCK)
            continue;
        if (r->load.in_flight.is_known)
            take_larger(&ev->ret->in_flight, &r->load.in_flight);
        else
            take_larger(&ev->ret->activity, &r->load.peak);
    }
}

/* With these errors of the value there still are pods whose activity is known or, being missing, not idle. */
static bool has_something_to_read(enum scaling_rule rule)
{
    return rule_facts[rule].class == ERR_NONE || rule == SCALING_RULE_MISSING_IS_ERROR ||
           rule == SCALING_RULE_NOTHING_READ || rule == SCALING_RULE_UNSHARED || rule == SCALING_RULE_OUT_OF_RANGE;
}

static enum scaling_active_rule decide_activity(struct evaluation *ev)
{
    struct scaling_result *ret = ev->ret;
    if (ret->rule == SCALING_RULE_ZERO)
        return SCALING_ACTIVE_ZERO;
    find_busiest(ev);
    if (ret->in_flight.is_known && ret->in_flight.value > 0)
        return SCALING_ACTIVE_REQUESTS;
    if (!has_something_to_read(ret->rule))
        return SCALING_ACTIVE_ERROR;
    size_t n_waiting = 0, n_alive = 0;
    for (size_t i = 0; i < ret->n_items; i++) {
        n_waiting += is_not_yet(&ret->items[i]);
        n_alive += !ret->items[i].is_place && ret->items[i].state != SCALING_POD_GONE &&
                   ret->items[i].state != SCALING_POD_STUCK;
    }
    if (ret->activity.is_known && ret->activity.value > ev->rules->activation)
        return SCALING_ACTIVE_ABOVE;
    if (ev->rules->is_training && n_alive > 0)
        return SCALING_ACTIVE_TRAINING;
    if (ret->counts[SCALING_POD_LOADING] > 0)
        return SCALING_ACTIVE_LOADING;
    if (ret->counts[SCALING_POD_MISSING] > 0)
        return SCALING_ACTIVE_MISSING;
    if (n_waiting > 0)
        return SCALING_ACTIVE_NOT_YET;
    return ret->activity.is_known || !ret->in_flight.is_known ? SCALING_ACTIVE_NOT_ABOVE : SCALING_ACTIVE_NO_REQUESTS;
}

bool scaling_active_is_measured(enum scaling_active_rule rule)
{
    return rule == SCALING_ACTIVE_ABOVE || rule == SCALING_ACTIVE_REQUESTS || rule == SCALING_ACTIVE_WAKE;
}

void scaling_apply_wake(struct scaling_result *r, enum scaling_wake wake, const char *why)
{
    if (wake == SCALING_WAKE_UNKNOWN && r->rule == SCALING_RULE_ZERO) {
        /* true would wake it for nothing, false would call unknown idle; with an error KEDA leaves it at zero */
        r->active_rule = SCALING_ACTIVE_ERROR;
        (void)err_set(&r->active_error, ERR_UNAVAILABLE, "whether it must wake is not known: %s", why);
        return;
    }
    bool is_unknown = wake == SCALING_WAKE_UNKNOWN && !r->is_active && r->active_error.class == ERR_NONE;
    if (!is_unknown && wake != SCALING_WAKE_ACTIVE)
        return;
    if (!scaling_active_is_measured(r->active_rule))
        r->active_rule = is_unknown ? SCALING_ACTIVE_WAKE_UNKNOWN : SCALING_ACTIVE_WAKE;
    r->is_active = true;
    r->active_error = (struct err){.class = ERR_NONE};
}

void scaling_evaluate(const struct scaling_rules *rules, const struct scaling_workload *workload, struct arena *arena,
                      struct scaling_result *ret)
{
    assert(rules->target >= 0.001);
    *ret = (struct scaling_result){.target = rules->target, .replicas = workload->replicas};
    struct evaluation ev = {.rules = rules,
                            .workload = workload,
                            .ret = ret,
                            .aggregation = rules->aggregation == SCALING_SUM ? SCALING_AVG : rules->aggregation};
    ret->rule = decide(&ev, arena);
    if (rule_facts[ret->rule].class != ERR_NONE) {
        ret->is_hold = false;
        (void)err_set(&ret->error, rule_facts[ret->rule].class, "%s", rule_facts[ret->rule].sentence);
    }
    ret->active_rule = decide_activity(&ev);
    ret->is_active = active_facts[ret->active_rule].is_active;
    if (ret->active_rule == SCALING_ACTIVE_ERROR)
        ret->active_error = ret->error;
}
