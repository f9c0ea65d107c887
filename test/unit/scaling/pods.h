/* Short ways to say pods, rules and workloads in the tests of scaling. */
#ifndef TEST_SCALING_PODS_H
#define TEST_SCALING_PODS_H

#include "scaling/scaling.h"

#include "support.h"

#include <math.h>

#define KNOWN(v)  ((struct scaling_maybe){.is_known = true, .value = (v)})
#define UNKNOWN   ((struct scaling_maybe){.is_known = false})
#define ALL_OF(v) ((struct scaling_load){.window = KNOWN(v), .since_ready = KNOWN(v), .peak = KNOWN(v)})

/* A percentage with T = 80, window 15 s, warm-up 900 s. */
static inline struct scaling_rules rules_of(enum scaling_aggregation aggregation)
{
    return (struct scaling_rules){
        .aggregation = aggregation, .target = 80, .window_s = 15, .warmup_s = 900, .ceiling = 100, .activation = 5};
}

/* Ready for an hour, started two hours ago, at p. */
static inline struct scaling_pod measured_pod(double p)
{
    return (struct scaling_pod){.phase = SCALING_PHASE_RUNNING,
                                .is_ready = true,
                                .created_age_s = 7200,
                                .condition_age_s = KNOWN(3600),
                                .started_age_s = KNOWN(7000),
                                .has_gpu = true,
                                .group = -1,
                                .reading = SCALING_READ_OK,
                                .load = ALL_OF(p)};
}

/* p is the mean of n requests. */
static inline struct scaling_pod with_requests(struct scaling_pod pod, double n)
{
    pod.load.weight = n;
    return pod;
}

static inline struct scaling_pod missing_pod(double for_s)
{
    struct scaling_pod pod = measured_pod(0);
    pod.reading = SCALING_READ_MISSING;
    pod.missing_for_s = for_s;
    pod.load = (struct scaling_load){.window = UNKNOWN};
    return pod;
}

/* Became Ready `age_s` ago with the mean m since then and p over the window. */
static inline struct scaling_pod fresh_pod(bool was_first_seen, double age_s, double m, double p)
{
    struct scaling_pod pod = measured_pod(p);
    pod.condition_age_s = KNOWN(age_s);
    pod.started_age_s = KNOWN(age_s + 60);
    pod.created_age_s = age_s + 90;
    pod.was_first_ready_seen = was_first_seen;
    pod.load.since_ready = KNOWN(m);
    return pod;
}

static inline struct scaling_pod unready_pod(double for_s, double p)
{
    struct scaling_pod pod = measured_pod(p);
    pod.is_ready = false;
    pod.condition_age_s = KNOWN(for_s);
    return pod;
}

/* Started and never Ready. */
static inline struct scaling_pod loading_pod(double age_s)
{
    struct scaling_pod pod = measured_pod(0);
    pod.is_ready = false;
    pod.created_age_s = age_s;
    pod.condition_age_s = pod.started_age_s = KNOWN(age_s);
    pod.load = (struct scaling_load){.window = UNKNOWN};
    pod.reading = SCALING_READ_NOT_YET;
    return pod;
}

static inline struct scaling_pod pending_pod(double age_s)
{
    struct scaling_pod pod = loading_pod(age_s);
    pod.phase = SCALING_PHASE_PENDING;
    pod.condition_age_s = pod.started_age_s = UNKNOWN;
    return pod;
}

static inline struct scaling_pod deleted_pod(double p)
{
    struct scaling_pod pod = measured_pod(p);
    pod.is_deleted = true;
    return pod;
}

#define PODS(...)                                                                                                      \
    (const struct scaling_pod[]){__VA_ARGS__},                                                                         \
        sizeof((const struct scaling_pod[]){__VA_ARGS__}) / sizeof(struct scaling_pod)

/* With C = S, and R as the HPA counts it. */
static inline struct scaling_result evaluate_rules(const struct scaling_rules *rules, int64_t c,
                                                   const struct scaling_pod *pods, size_t n, struct arena *arena)
{
    struct scaling_workload workload = {
        .pods = pods,
        .n_pods = n,
        .is_scale_known = true,
        .replicas = {.spec = c, .status = c, .ready = scaling_count_ready(pods, n)},
    };
    struct scaling_result result;
    scaling_evaluate(rules, &workload, arena, &result);
    return result;
}

#define assert_known_same(got, want)                                                                                   \
    do {                                                                                                               \
        struct scaling_maybe got_ = (got), want_ = (want);                                                             \
        assert_int_equal(got_.is_known, want_.is_known);                                                               \
        if (want_.is_known)                                                                                            \
            assert_double_near(got_.value, want_.value, 1e-9);                                                         \
    } while (0)

#endif
