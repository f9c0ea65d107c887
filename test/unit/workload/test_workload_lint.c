/* Each row of the lint table applies where it should, and nowhere in a set-up that is right. */
#include "workload/workload.h"

#include "linting.h"

#define LOAD "metricType", "gpu_utilization", "metricName", "load"

static void min_zero(struct world *w, struct objects *o)
{
    (void)w;
    o->object.min = 0;
}
static void min_zero_and_another_trigger(struct world *w, struct objects *o)
{
    (void)w;
    o->object.min = 0;
    o->object.n_other_triggers = 1;
}
static void as_value(struct world *w, struct objects *o)
{
    (void)w;
    o->hpa.metrics[0].is_value = true;
}
static void few_replicas(struct world *w, struct objects *o)
{
    (void)w;
    o->object.max = 8;
}
static void as_value_with_a_long_window(struct world *w, struct objects *o)
{
    as_value(w, o);
    o->hpa.has_behavior = true;
    o->hpa.down.has_window = true;
    o->hpa.down.window_s = 1200;
}
static void contested(struct world *w, struct objects *o)
{
    (void)o;
    w->facts.n_scalers = 2;
}
static void without_metric(struct world *w, struct objects *o)
{
    (void)w;
    o->hpa.n_metrics = 0;
}
static void both_types(struct world *w, struct objects *o)
{
    (void)w;
    objects_metric(o, "s1-load", true, 60);
}
static void other_target(struct world *w, struct objects *o)
{
    (void)w;
    o->hpa.metrics[0].target = 55;
}
static void fallback_zero(struct world *w, struct objects *o)
{
    min_zero(w, o);
    o->object.has_fallback = true;
    o->object.fallback_behavior = "currentReplicas";
}
static void fallback_static(struct world *w, struct objects *o)
{
    (void)w;
    o->object.has_fallback = true;
    o->object.fallback_replicas = 3;
    o->object.fallback_behavior = "static";
}
static void fallback_value(struct world *w, struct objects *o)
{
    fallback_static(w, o);
    o->object.fallback_behavior = "currentReplicas";
    as_value(w, o);
}
static void paused(struct world *w, struct objects *o)
{
    (void)w;
    o->object.is_paused = true;
}
static void modifiers(struct world *w, struct objects *o)
{
    (void)w;
    o->object.has_modifiers = true;
}
static void object_unknown(struct world *w, struct objects *o)
{
    (void)o;
    w->facts.scaled_object = NULL;
}
static void hpa_unknown(struct world *w, struct objects *o)
{
    (void)o;
    w->facts.hpa = NULL;
    w->facts.hpa_state = WORKLOAD_HPA_NOT_MADE;
}

static const struct {
    const char *id;
    const char *applies[12];
    change applied;
    const char *quiet[12];
    change quieted;
    const char *part; /* of the sentence */
} rows[] = {
    {"never_grows", {LOAD, "targetValue", "95"}, no_change, {LOAD, "targetValue", "90"}, no_change, "above 104.5"},
    {"never_past",
     {LOAD, "targetValue", "60", "scope", "cluster"},
     no_change,
     {LOAD, "targetValue", "60", "scope", "cluster"},
     as_value,
     "never past 2 of 12"},
    {"sum_with_value",
     {LOAD, "targetValue", "60", "scope", "cluster", "aggregation", "sum"},
     as_value,
     {LOAD, "targetValue", "60", "scope", "cluster", "aggregation", "sum"},
     no_change,
     "runs away"},
    {"other_tenants",
     {LOAD, "targetValue", "60", "scope", "cluster"},
     no_change,
     {LOAD, "targetValue", "60"},
     no_change,
     "other workloads"},
    {"hot_pod",
     {LOAD, "targetValue", "60", "aggregation", "max"},
     no_change,
     {LOAD, "targetValue", "60"},
     no_change,
     "maximum of 12"},
    {"never_wakes",
     {LOAD, "targetValue", "60"},
     min_zero,
     {LOAD, "targetValue", "60"},
     min_zero_and_another_trigger,
     "never wakes"},
    {"memory_never_sleeps",
     {"metricType", "memory_used_percent", "metricName", "load", "targetValue", "60", "scope", "cluster"},
     min_zero,
     {"metricType", "memory_used_percent", "metricName", "load", "targetValue", "60"},
     min_zero,
     "never sleeps"},
    {"never_sleeps",
     {"metricType", "power_draw", "metricName", "load", "targetValue", "300", "activationThreshold", "10"},
     min_zero,
     {"metricType", "power_draw", "metricName", "load", "targetValue", "300", "activationThreshold", "80"},
     min_zero,
     "activationThreshold 10 W"},
    {"never_active",
     {LOAD, "targetValue", "60", "activationThreshold", "100"},
     no_change,
     {LOAD, "targetValue", "60", "activationThreshold", "50"},
     no_change,
     "above 100"},
    {"activation_above_target",
     {LOAD, "targetValue", "60", "activationThreshold", "61"},
     no_change,
     {LOAD, "targetValue", "60", "activationThreshold", "60"},
     no_change,
     "61 is above target 60"},
    {"slow_growth",
     {LOAD, "targetValue", "80"},
     no_change,
     {LOAD, "targetValue", "80"},
     few_replicas,
     "12 steps from 1 to 12"},
    {"short_window",
     {LOAD, "targetValue", "60", "scope", "cluster"},
     as_value,
     {LOAD, "targetValue", "60", "scope", "cluster"},
     as_value_with_a_long_window,
     "window of 300 s"},
    {"two_scalers", {LOAD, "targetValue", "60"}, contested, {LOAD, "targetValue", "60"}, no_change, "2 scalers own"},
    {"no_external_metric",
     {LOAD, "targetValue", "60"},
     without_metric,
     {LOAD, "targetValue", "60"},
     hpa_unknown,
     "s<index>-load"},
    {"ambiguous_type",
     {LOAD, "targetValue", "60", "gpuIndex", "1", "window", "10"},
     both_types,
     {LOAD, "targetValue", "60", "hpaMetricType", "Value"},
     both_types,
     NULL},
    {"type_overruled",
     {LOAD, "targetValue", "60", "hpaMetricType", "Value"},
     no_change,
     {LOAD, "targetValue", "60", "hpaMetricType", "AverageValue"},
     no_change,
     "the HPA has AverageValue"},
    {"target_not_taken",
     {LOAD, "targetValue", "60"},
     other_target,
     {LOAD, "targetValue", "60"},
     no_change,
     "target 55 where the metadata has 60"},
    {"fallback_to_zero", {LOAD, "targetValue", "60"}, fallback_zero, {LOAD, "targetValue", "60"}, min_zero, "to zero"},
    {"static_fallback",
     {LOAD, "targetValue", "60"},
     fallback_static,
     {LOAD, "targetValue", "60"},
     fallback_value,
     "3 replicas"},
    {"fallback_with_value",
     {LOAD, "targetValue", "60"},
     fallback_value,
     {LOAD, "targetValue", "60"},
     fallback_static,
     "none is Ready"},
    {"is_paused", {LOAD, "targetValue", "60"}, paused, {LOAD, "targetValue", "60"}, no_change, "pauses"},
    {"sum_is_avg",
     {LOAD, "targetValue", "60", "aggregation", "sum"},
     no_change,
     {LOAD, "targetValue", "60", "aggregation", "avg"},
     no_change,
     "means avg"},
    {"percentile_is_max",
     {LOAD, "targetValue", "60", "aggregation", "p95"},
     no_change,
     {LOAD, "targetValue", "60", "aggregation", "max"},
     no_change,
     "at most 12 pods"},
    {"modifiers_hold", {LOAD, "targetValue", "60"}, modifiers, {LOAD, "targetValue", "60"}, no_change, "UNAVAILABLE"},
};

static void test_each_row_applies_and_stays_away(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct said with = lint(metadata_of(rows[i].applies), rows[i].applied);
        struct said without = lint(metadata_of(rows[i].quiet), rows[i].quieted);
        if (rows[i].part && !find(&with, rows[i].id))
            print_error("%s does not apply\n", rows[i].id);
        if (find(&without, rows[i].id))
            print_error("%s applies where it should not\n", rows[i].id);
        if (rows[i].part)
            assert_contains(find(&with, rows[i].id), rows[i].part);
        assert_null(find(&without, rows[i].id));
    }
}

static void test_two_types_that_cannot_be_told_apart_are_said(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, LOAD, "targetValue", "60");
    struct objects o;
    objects_init(&o, &w);
    objects_metric(&o, "s0-load", false, 60);
    objects_metric(&o, "s1-load", true, 60);
    struct said said = {.n = 0};
    workload_lint(&w.facts, w.trigger, note, &said);
    assert_contains(find(&said, "ambiguous_type"), "hpaMetricType");
    assert_null(find(&said, "no_external_metric"));
}

static void test_good_set_up_is_left_in_peace(void **state)
{
    (void)state;
    static const change unknowns[] = {no_change, object_unknown, hpa_unknown};
    for (size_t i = 0; i < ARRAY_LEN(unknowns); i++) {
        struct said said = lint(METADATA(LOAD, "targetValue", "60"), unknowns[i]);
        for (size_t k = 0; k < said.n; k++)
            print_error("%s: %s\n", said.ids[k], said.sentences[k]);
        assert_int_equal(said.n, 0);
    }
}

static void test_nothing_is_said_of_what_is_not_known(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, LOAD, "targetValue", "95", "aggregation", "max");
    struct said said = {.n = 0};
    workload_lint(&w.facts, w.trigger, note, &said);
    workload_lint(NULL, w.trigger, note, &said);
    assert_int_equal(said.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_row_applies_and_stays_away),
        cmocka_unit_test(test_two_types_that_cannot_be_told_apart_are_said),
        cmocka_unit_test(test_good_set_up_is_left_in_peace),
        cmocka_unit_test(test_nothing_is_said_of_what_is_not_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
