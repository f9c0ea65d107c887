/* trigger_cache: one trigger a text, whatever the order, with a ceiling. */
#include "trigger/trigger.h"

#include "metadata.h"

#include <stdio.h>

static void cache_cleanup(struct trigger_cache **cache)
{
    trigger_cache_free(*cache);
}
#define CACHE_AUTO __attribute__((cleanup(cache_cleanup))) struct trigger_cache *

static struct trigger *get(struct trigger_cache *cache, struct metadata m)
{
    struct trigger *t = trigger_cache_get(cache, m.pairs, m.n, NULL);
    assert_non_null(t);
    return t;
}

static void test_same_text_in_any_order_is_parsed_once(void **state)
{
    (void)state;
    CACHE_AUTO cache = trigger_cache_new(&agent_settings, 8);
    TRIGGER_AUTO a = get(cache, METADATA("profile", "batch", "targetValue", "60", "gpuIndex", "0"));
    TRIGGER_AUTO b = get(cache, METADATA("gpuIndex", "0", "profile", "batch", "targetValue", "60"));
    assert_ptr_equal(a, b);
    assert_int_equal(trigger_cache_len(cache), 1);
    TRIGGER_AUTO none = get(cache, METADATA());
    TRIGGER_AUTO null = trigger_cache_get(cache, NULL, 0, NULL);
    assert_ptr_equal(none, null);
    assert_int_equal(trigger_cache_len(cache), 2);
}

static void test_texts_that_only_look_alike_are_different_triggers(void **state)
{
    (void)state;
    CACHE_AUTO cache = trigger_cache_new(&agent_settings, 8);
    TRIGGER_AUTO a = get(cache, METADATA("metricName", "ab", "gpuProduct", "c"));
    TRIGGER_AUTO b = get(cache, METADATA("metricName", "a", "gpuProduct", "bc"));
    assert_ptr_not_equal(a, b);
    assert_string_equal(a->metric_name, "ab");
    assert_string_equal(b->metric_name, "a");
}

static void test_refusals_are_not_kept(void **state)
{
    (void)state;
    CACHE_AUTO cache = trigger_cache_new(&agent_settings, 8);
    struct metadata m = METADATA("targetValue", "x");
    struct err e;
    assert_null(trigger_cache_get(cache, m.pairs, m.n, &e));
    assert_int_equal(e.class, ERR_INVALID_ARGUMENT);
    assert_int_equal(trigger_cache_len(cache), 0);
}

static void test_of_two_faults_the_same_is_named_in_any_order(void **state)
{
    (void)state;
    CACHE_AUTO cache = trigger_cache_new(&agent_settings, 8);
    struct metadata m = METADATA("zeta", "1", "alpha", "2"), turned = METADATA("alpha", "2", "zeta", "1");
    struct err first, second;
    assert_null(trigger_cache_get(cache, m.pairs, m.n, &first));
    assert_null(trigger_cache_get(cache, turned.pairs, turned.n, &second));
    assert_string_equal(first.text, second.text);
    assert_contains(first.text, "\"alpha\"");
}

static void test_ceiling_holds_and_triggers_in_use_live_on(void **state)
{
    (void)state;
    CACHE_AUTO cache = trigger_cache_new(&agent_settings, 4);
    TRIGGER_AUTO first = get(cache, METADATA("targetValue", "1"));
    for (int i = 2; i <= 100; i++) {
        char text[16];
        (void)snprintf(text, sizeof(text), "%d", i);
        trigger_unref(get(cache, METADATA("targetValue", text)));
        assert_true(trigger_cache_len(cache) <= 4);
    }
    assert_double_same(first->target, 1); /* dropped by the cache, held by us */
    TRIGGER_AUTO again = get(cache, METADATA("targetValue", "1"));
    assert_ptr_not_equal(again, first);
}

static void test_flush_with_settings_that_say_the_same_keeps_triggers(void **state)
{
    (void)state;
    const struct trigger_default entry = {.name = "load", .has_target = true, .target = 55};
    struct trigger_default others[] = {entry, entry, entry};
    others[1].target = 56;
    (void)snprintf(others[2].name, sizeof(others[2].name), "loads");
    CACHE_AUTO cache = trigger_cache_new(&(struct trigger_settings){TRIGGER_NODE, &entry, 1}, 8);
    TRIGGER_AUTO t = get(cache, METADATA("metricType", "gpu_utilization", "metricName", "load"));
    uint64_t generation = trigger_cache_generation(cache);
    trigger_cache_flush(cache, &(struct trigger_settings){TRIGGER_NODE, &others[0], 1});
    assert_ptr_equal(trigger_cache_settings(cache)->defaults, &others[0]);
    assert_int_equal(trigger_cache_len(cache), 1);
    assert_int_equal(trigger_cache_generation(cache), generation);
    const struct trigger_settings changes[] = {{TRIGGER_NODE, &others[1], 1},
                                               {TRIGGER_NODE, &others[2], 1},
                                               {TRIGGER_NODE, NULL, 0},
                                               {TRIGGER_WORKLOAD, NULL, 0}};
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        trigger_cache_flush(cache, &changes[i]);
        assert_int_equal(trigger_cache_len(cache), 0);
        assert_int_equal(trigger_cache_generation(cache), generation + 1 + i);
        TRIGGER_AUTO again = get(cache, METADATA("metricType", "gpu_utilization", "metricName", "load"));
        assert_ptr_not_equal(again, t);
    }
}

static void test_flush_takes_the_new_settings(void **state)
{
    (void)state;
    static const struct trigger_default entry = {.name = "gpu_utilization", .has_target = true, .target = 55};
    const struct trigger_settings settings = {TRIGGER_NODE, &entry, 1};
    CACHE_AUTO cache = trigger_cache_new(&agent_settings, 8);
    TRIGGER_AUTO old = get(cache, METADATA("metricName", "gpu_utilization"));
    trigger_cache_flush(cache, &settings);
    assert_int_equal(trigger_cache_len(cache), 0);
    TRIGGER_AUTO new = get(cache, METADATA("metricName", "gpu_utilization"));
    assert_double_same(old->target, 80);
    assert_double_same(new->target, 55);
}

static void test_signals_of_a_trigger_live_as_long_as_it_does(void **state)
{
    (void)state;
    static const struct trigger_default entry = {.name = "gpu_utilization", .has_target = true, .target = 55};
    const struct trigger_settings settings = {TRIGGER_WORKLOAD, &entry, 1};
    CACHE_AUTO cache = trigger_cache_new(&hub_settings, 1);
    struct metadata m = METADATA("metricType", "requests_in_flight,kv_cache_usage", "targetValue", "16,80");
    TRIGGER_AUTO old = get(cache, m);
    TRIGGER_AUTO again = get(cache, m);
    assert_ptr_equal(old, again);
    TRIGGER_AUTO part = trigger_ref(old->parts[1]); /* as a hub's memory of it does */
    TRIGGER_AUTO other = get(cache, METADATA());    /* no room for both */
    trigger_cache_flush(cache, &settings);
    TRIGGER_AUTO renewed = get(cache, m);
    assert_ptr_not_equal(renewed, old);
    assert_int_equal(old->n_parts, 2);
    assert_double_same(old->parts[0]->target, 16);
    assert_double_same(part->target, 80);
}

static void test_oversized_metadata_is_refused_without_being_kept(void **state)
{
    (void)state;
    CACHE_AUTO cache = trigger_cache_new(&agent_settings, 8);
    MEM_AUTO char *large = (char *)mem_new_array(2, TRIGGER_BYTES_MAX);
    memset(large, 'x', TRIGGER_BYTES_MAX + 7);
    struct metadata m = METADATA("scalerAddress", large);
    struct err e;
    assert_null(trigger_cache_get(cache, m.pairs, m.n, &e));
    assert_contains(e.text, "too large");
    for (m.n = 0; m.n <= TRIGGER_PAIRS_MAX; m.n++)
        m.pairs[m.n] = (struct trigger_pair){str_of("gpuIndex"), str_of("0")};
    assert_null(trigger_cache_get(cache, m.pairs, m.n, &e));
    assert_contains(e.text, "65 keys");
    assert_int_equal(trigger_cache_len(cache), 0);
    trigger_cache_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_text_in_any_order_is_parsed_once),
        cmocka_unit_test(test_texts_that_only_look_alike_are_different_triggers),
        cmocka_unit_test(test_refusals_are_not_kept),
        cmocka_unit_test(test_of_two_faults_the_same_is_named_in_any_order),
        cmocka_unit_test(test_ceiling_holds_and_triggers_in_use_live_on),
        cmocka_unit_test(test_flush_takes_the_new_settings),
        cmocka_unit_test(test_flush_with_settings_that_say_the_same_keeps_triggers),
        cmocka_unit_test(test_signals_of_a_trigger_live_as_long_as_it_does),
        cmocka_unit_test(test_oversized_metadata_is_refused_without_being_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
