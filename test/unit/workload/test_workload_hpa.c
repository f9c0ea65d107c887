/* What the HPA's type, target and tolerance do to the answer, and which of its metrics is the trigger's. */
#include "workload/workload.h"

#include "objects.h"

#define UTILIZATION_80 "metricType", "gpu_utilization", "metricName", "load", "targetValue", "80"

static void test_type_and_target_are_those_of_the_hpa(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool is_value;
        double target;
        enum scaling_metric_type type;
        double want_target;
    } cases[] = {
        {"s0-load", false, 80, SCALING_AVERAGE_VALUE, 80},
        {"s12-LOAD", true, 70, SCALING_VALUE, 70}, /* KEDA may change the case */
        {"s0-loads", true, 70, SCALING_AVERAGE_VALUE, 80},
        {"load", true, 70, SCALING_AVERAGE_VALUE, 80},
        {"s-load", true, 70, SCALING_AVERAGE_VALUE, 80},
        {"s0-s1-load", true, 70, SCALING_AVERAGE_VALUE, 80},
        {"s0-load", true, 0.0004, SCALING_VALUE, 0.001},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        WORLD w;
        WORLD_INIT(w, UTILIZATION_80);
        (void)world_busy(&w, "a", "n1", 90);
        struct objects o;
        objects_init(&o, &w);
        objects_metric(&o, cases[i].name, cases[i].is_value, cases[i].target);
        const struct workload_answer *a = world_evaluate(&w);
        assert_int_equal(a->hpa.type, cases[i].type);
        assert_double_near(a->hpa.target, cases[i].want_target, 1e-12);
        assert_double_near(a->rules.target, cases[i].want_target, 1e-12);
    }
}

static void test_of_several_targets_the_nearest_is_ours(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    (void)world_busy(&w, "a", "n1", 90);
    struct objects o;
    objects_init(&o, &w);
    objects_metric(&o, "s0-load", false, 50);
    objects_metric(&o, "s1-load", false, 79);
    objects_metric(&o, "s2-load", false, 90);
    (void)world_evaluate(&w);
    assert_double_near(w.answer.hpa.target, 79, 1e-9);
}

static void test_value_is_divided_by_the_ready_pods(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    static const char *const names[] = {"a", "b", "c"};
    for (size_t i = 0; i < 3; i++)
        (void)world_busy(&w, names[i], "n1", 95);
    struct objects o;
    objects_init(&o, &w);
    objects_metric(&o, "s0-load", true, 80);
    assert_double_near(VALUE(w), 95, 1e-9);
    assert_int_equal(w.answer.sent.proposal, 4);
    assert_int_equal(w.answer.sent.fit, SCALING_FIT_PER_READY);
}

static void test_two_candidates_of_different_type(void **state)
{
    (void)state;
    static const struct {
        const char *hpa_metric_type;
        const char *types[2]; /* of the ScaledObject's triggers, of which the first one asks; NULL: not known */
        int type;             /* -1: refused */
    } cases[] = {
        {"Value", {NULL}, SCALING_VALUE},     {"AverageValue", {NULL}, SCALING_AVERAGE_VALUE}, {NULL, {NULL}, -1},
        {NULL, {"Value", ""}, SCALING_VALUE}, {NULL, {"", "Value"}, SCALING_AVERAGE_VALUE},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        WORLD w;
        struct metadata m = METADATA(UTILIZATION_80), other = METADATA(UTILIZATION_80, "gpuIndex", "1");
        if (cases[i].hpa_metric_type)
            m = METADATA(UTILIZATION_80, "hpaMetricType", cases[i].hpa_metric_type);
        world_init(&w, m);
        (void)world_busy(&w, "a", "n1", 90);
        struct objects o;
        objects_init(&o, &w);
        objects_metric(&o, "s0-load", true, 80);
        objects_metric(&o, "s1-load", false, 80);
        if (cases[i].types[0]) {
            objects_trigger(&o, 0, cases[i].types[0], m);
            objects_trigger(&o, 1, cases[i].types[1], other);
        }
        const struct workload_answer *a = world_evaluate(&w);
        if (cases[i].type < 0) {
            assert_int_equal(a->value_error.class, ERR_FAILED_PRECONDITION);
            assert_contains(a->value_error.text, "hpaMetricType");
            assert_int_equal(a->active_error.class, ERR_NONE);
        } else {
            assert_int_equal(a->value_error.class, ERR_NONE);
            assert_int_equal(a->hpa.type, cases[i].type);
        }
    }
}

static void test_keys_from_the_environment_fit_any_value(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    (void)world_busy(&w, "a", "n1", 90);
    struct objects o;
    objects_init(&o, &w);
    w.facts.hpa_state = WORKLOAD_HPA_NOT_MADE;
    objects_trigger(&o, 0, "Value",
                    METADATA("metricType", "gpu_utilization", "metricName", "load", "targetValueFromEnv", "TARGET"));
    (void)world_evaluate(&w);
    assert_int_equal(w.answer.hpa.type, SCALING_VALUE);
    objects_trigger(&o, 0, "Value",
                    METADATA("metricType", "gpu_utilization", "metricName", "another", "targetValueFromEnv", "TARGET"));
    (void)world_evaluate(&w);
    assert_int_equal(w.answer.hpa.type, SCALING_AVERAGE_VALUE);
    objects_trigger(&o, 0, "Value",
                    METADATA("metricType", "gpu_utilization", "metricNameFromEnv", "NAME", "targetValue", "80"));
    (void)world_evaluate(&w);
    assert_int_equal(w.answer.hpa.type, SCALING_VALUE);
}

static void test_without_an_hpa_the_object_says_the_type(void **state)
{
    (void)state;
    static const enum workload_hpa_state states[] = {WORKLOAD_HPA_NOT_MADE, WORKLOAD_HPA_NOT_PERMITTED};
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        WORLD w;
        WORLD_INIT(w, UTILIZATION_80);
        (void)world_busy(&w, "a", "n1", 90);
        struct objects o;
        objects_init(&o, &w);
        w.facts.hpa_state = states[i];
        w.facts.hpa = NULL;
        (void)world_evaluate(&w);
        assert_int_equal(w.answer.hpa.type, SCALING_AVERAGE_VALUE);
        objects_trigger(&o, 0, "Value", METADATA(UTILIZATION_80));
        (void)world_evaluate(&w);
        assert_int_equal(w.answer.hpa.type, SCALING_VALUE);
    }
}

/* The object says neither target nor aggregation: both come from an entry of `metrics:`. */
static void test_entries_are_read_with_the_object(void **state)
{
    (void)state;
    static const struct trigger_default entry = {.name = "load", .has_target = true, .target = 70};
    static const struct trigger_settings settings = {
        .default_scope = TRIGGER_WORKLOAD, .defaults = &entry, .n_defaults = 1};
    WORLD w;
    WORLD_INIT(w, "metricType", "gpu_utilization", "metricName", "load", "targetValue", "70");
    (void)world_busy(&w, "a", "n1", 90);
    struct objects o;
    objects_init(&o, &w);
    objects_trigger(&o, 0, "Value", METADATA("metricType", "gpu_utilization", "metricName", "load"));
    w.facts.hpa_state = WORKLOAD_HPA_NOT_PERMITTED;
    w.facts.hpa = NULL;
    w.facts.settings = &settings;
    assert_int_equal(world_evaluate(&w)->hpa.type, SCALING_VALUE);
}

static void test_tolerances_are_those_of_the_behavior(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    (void)world_busy(&w, "a", "n1", 85);
    struct objects o;
    objects_init(&o, &w);
    objects_metric(&o, "s0-load", false, 80);
    (void)VALUE(w);
    assert_int_equal(w.answer.sent.proposal, 1);
    o.hpa.has_behavior = true;
    o.hpa.up.has_tolerance = true;
    o.hpa.up.tolerance = 0.05;
    (void)VALUE(w);
    assert_double_same(w.answer.hpa.tolerance_up, 0.05);
    assert_double_same(w.answer.hpa.tolerance_down, 0.1);
    assert_int_equal(w.answer.sent.proposal, 2);
}

static void test_with_modifiers_a_hold_is_no_value(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    (void)world_busy(&w, "a", "n1", 90);
    struct objects o;
    objects_init(&o, &w);
    objects_metric(&o, "s0-composite-metric", false, 2);
    objects_metric(&o, "s0-load", true, 2); /* KEDA makes no such one with modifiers */
    o.object.has_modifiers = true;
    assert_double_near(VALUE(w), 90, 1e-9);
    assert_double_near(w.answer.hpa.target, 80, 1e-9);
    (void)world_pod(&w, "b", "nowhere");
    assert_refused(w, ERR_UNAVAILABLE, "scalingModifiers");
}

static void test_rollout_near_the_target_does_not_ratchet(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    static const char *const names[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < 4; i++)
        (void)world_busy(&w, names[i], "n1", 80);
    w.facts.status = 5;
    struct objects o;
    objects_init(&o, &w);
    objects_metric(&o, "s0-load", false, 80);
    (void)VALUE(w);
    assert_int_equal(w.answer.sent.wanted, 4);
    assert_int_equal(w.answer.sent.proposal, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_type_and_target_are_those_of_the_hpa),
        cmocka_unit_test(test_of_several_targets_the_nearest_is_ours),
        cmocka_unit_test(test_value_is_divided_by_the_ready_pods),
        cmocka_unit_test(test_two_candidates_of_different_type),
        cmocka_unit_test(test_keys_from_the_environment_fit_any_value),
        cmocka_unit_test(test_without_an_hpa_the_object_says_the_type),
        cmocka_unit_test(test_entries_are_read_with_the_object),
        cmocka_unit_test(test_tolerances_are_those_of_the_behavior),
        cmocka_unit_test(test_with_modifiers_a_hold_is_no_value),
        cmocka_unit_test(test_rollout_near_the_target_does_not_ratchet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
