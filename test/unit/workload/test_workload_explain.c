/* The explanation: what is in it, in text and JSON, whatever the answer. */
#include "workload/workload.h"

#include "objects.h"

#define LOAD "metricType", "gpu_utilization", "metricName", "load", "targetValue", "80"

struct explained {
    struct buf text, json;
};

static void explained_fini(struct explained *e)
{
    buf_fini(&e->text);
    buf_fini(&e->json);
}
#define EXPLAINED __attribute__((cleanup(explained_fini))) struct explained

static void explain_with(struct world *w, const struct workload_facts *facts, struct explained *e)
{
    (void)world_evaluate(w);
    struct json json;
    buf_init(&e->text, 256 << 10);
    buf_init(&e->json, 256 << 10);
    json_init(&json, &e->json, 0);
    workload_explain_text(facts, &w->answer, &e->text);
    workload_explain_json(facts, &w->answer, &json);
    assert_false(e->text.is_overflowed || e->json.is_overflowed);
    assert_int_equal(json.depth, 0);
}

static void explain(struct world *w, struct explained *e)
{
    explain_with(w, &w->facts, e);
}

static void assert_has(struct buf *text, const char *const *parts)
{
    for (size_t i = 0; parts[i]; i++)
        assert_contains(buf_cstr(text), parts[i]);
}
#define HAS(text, ...) assert_has((text), (const char *const[]){__VA_ARGS__, NULL})

static void test_everything_that_counted_is_shown(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, LOAD);
    (void)world_busy(&w, "a", "n1", 95);
    (void)world_busy(&w, "b", "n1", 95);
    (void)world_pod(&w, "c", "nowhere");
    w.facts.spec = 4;
    struct objects o;
    objects_init(&o, &w);
    objects_metric(&o, "s0-load", false, 80);
    EXPLAINED e;
    explain(&w, &e);
    HAS(&e.text, "; peak 95 %, threshold 0 %\n");
    HAS(&e.text, "trigger  load: avg of gpu_utilization in scope workload, target 80 %",
        "workload ml/llama: Deployment llama, 4 replicas wanted, 3 there, 3 Ready\n",
        "value    320 %: avg of 4: at least 190 from 2 (asks for 3), at most 370 (asks for 5), present 4",
        "active   yes: the busiest pod is above the activation threshold; peak 95 %",
        "hpa      AverageValue, target 80, tolerance 10 % up and 10 % down (read from the HPA); it answers 4, within 1 "
        "to 50",
        "pod      a on n1: measured, value 95, counts from 95 to 95, Ready for 1h\n",
        "device   GPU 0 GPU-n1-0 NVIDIA H100 80GB HBM3: read, 95 %, read under 1s ago\n",
        "pod      c on nowhere: missing, value none, counts from none to 100, Ready for 1h: node nowhere has no "
        "agent\n",
        "place    1 without a pod: loading\n", "lint     grows slowly");
    HAS(&e.json, "\"metricName\":\"load\"", "\"value\":320", "\"low\":190", "\"high\":370", "\"lowAsksFor\":3",
        "\"isHold\":true", "\"states\":{\"measured\":2,\"missing\":1,\"loading\":1}", "\"proposal\":4", "\"bounded\":4",
        "\"state\":\"KNOWN\"", "\"reason\":\"node nowhere has no agent\"", "\"uuid\":\"GPU-n1-1\"",
        "\"places\":{\"loading\":1,\"stuck\":0}", "{\"id\":\"slow_growth\"", "\"isGiven\":false", "\"specReplicas\":4");
}

static void test_growth_and_shrinking_say_what_the_hpa_will_do(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, LOAD);
    for (size_t i = 0; i < 8; i++) {
        (void)snprintf(w.names[i], sizeof(w.names[i]), "p%zu", i);
        (void)world_busy(&w, w.names[i], "n1", 100);
    }
    struct objects o;
    objects_init(&o, &w);
    objects_metric(&o, "s0-load", false, 20);
    o.hpa.max = 30;
    EXPLAINED grow;
    explain(&w, &grow);
    HAS(&grow.text, "it answers 40, within 1 to 30 that is 30, of which the next sync may set 16");
    HAS(&grow.json, "\"proposal\":40", "\"bounded\":30", "\"nextSync\":16");
    for (size_t i = 0; i < 8; i++)
        world_read(&w, &world_node(&w, "n1")->devices[i], SNAPSHOT_UTILIZATION, 5);
    EXPLAINED shrink;
    explain(&w, &shrink);
    HAS(&shrink.text, "it answers 2, within 1 to 30 that is 2, once nothing more was asked for in 300 s");
}

static void test_what_the_tolerance_lets_pass_is_said(void **state)
{
    (void)state;
    static const struct {
        double load;
        const char *said;
    } rows[] = {{21, "it answers 2, since the value is within its tolerance, within 1 to 30"},
                {20, "it answers 2, within 1 to 30"},
                {23, "it answers 3, within 1 to 30"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        WORLD w;
        WORLD_INIT(w, LOAD);
        (void)world_busy(&w, "a", "n1", rows[i].load);
        (void)world_busy(&w, "b", "n1", rows[i].load);
        struct objects o;
        objects_init(&o, &w);
        objects_metric(&o, "s0-load", false, 20);
        o.hpa.max = 30;
        EXPLAINED found;
        explain(&w, &found);
        HAS(&found.text, rows[i].said);
    }
}

static void test_memory_that_says_nothing_is_marked(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, "metricType", "memory_used_percent", "targetValue", "80");
    (void)world_pod(&w, "a", "n1");
    struct fleet_device *d = world_gpu(&w, "n1");
    (void)world_hold(&w, "n1", "ml", "a", d);
    world_read(&w, d, SNAPSHOT_MEMORY_USED, (double)d->memory_total * 0.9);
    world_read(&w, d, SNAPSHOT_UTILIZATION, 20);
    EXPLAINED e;
    explain(&w, &e);
    HAS(&e.text, "value 20, counts from 20 to 20, by its utilisation, Ready for 1h", "(PREALLOCATED)");
    HAS(&e.json, "\"isPreallocated\":true", "{\"id\":\"PREALLOCATED\"");
}

static void test_errors_are_explained_too(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, LOAD);
    w.facts.is_api_synced = false;
    EXPLAINED early;
    explain(&w, &early);
    HAS(&early.text, "value    none: UNAVAILABLE: not yet", "active   unknown: UNAVAILABLE: not yet");
    HAS(&early.json, "\"value\":null", "\"valueError\":{\"code\":\"UNAVAILABLE\"", "\"active\":null", "\"lint\":[]");
    w.facts.is_api_synced = true;
    (void)world_pod(&w, "a", "nowhere");
    EXPLAINED late;
    explain(&w, &late);
    HAS(&late.text, "value    none: UNAVAILABLE: no pod that ought to be read could be read; pod a: node nowhere",
        "active   yes: a pod that ought to be read is missing", "without a value it changes nothing");
    HAS(&late.json, "\"proposal\":null", "\"fit\":null", "\"low\":null", "\"active\":true");
}

static void test_a_scaled_job_is_called_one(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, LOAD);
    w.facts.is_job = true;
    w.facts.is_scale_known = false;
    w.facts.target_kind = w.facts.target_name = "";
    EXPLAINED e;
    explain(&w, &e);
    HAS(&e.text, "workload ml/llama: a ScaledJob, which has no replica count\n");
}

static void test_last_answer_to_keda_is_shown_beside_what_is_now(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, LOAD);
    w.facts.spec = 1;
    (void)world_busy(&w, "a", "n1", 95);
    EXPLAINED e;
    explain(&w, &e);
    HAS(&e.text, "asked    not yet\n");
    HAS(&e.json,
        "\"lastAnswer\":{\"valueSecondsAgo\":null,\"value\":null,\"valueError\":null,\"activeSecondsAgo\":null,"
        "\"active\":null,\"activeError\":null}");
    workload_memory_note(w.memory, TRIGGER_ASK_VALUE, world_evaluate(&w));
    w.now_ns += 7 * NS_PER_S;
    w.facts.is_api_synced = false;
    workload_memory_note(w.memory, TRIGGER_ASK_ACTIVITY, world_evaluate(&w));
    w.now_ns += NS_PER_S;
    EXPLAINED later;
    explain(&w, &later);
    HAS(&later.text, "asked    8s ago: 95; active 1s ago: UNAVAILABLE\n");
    HAS(&later.json, "\"lastAnswer\":{\"valueSecondsAgo\":8,\"value\":95,\"valueError\":null,\"activeSecondsAgo\":1,"
                     "\"active\":null,\"activeError\":\"not yet");
}

static void test_what_may_wake_it_from_zero_is_said(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, LOAD);
    struct objects o;
    objects_init(&o, &w);
    objects_trigger(&o, 0, "", METADATA(LOAD));
    o.object.n_other_triggers = 2;
    w.facts.spec = w.facts.status = 0;
    EXPLAINED e;
    explain(&w, &e);
    HAS(&e.text, "active   no: there are no replicas", "has 2 other triggers that may\n");
    HAS(&e.json, "\"otherTriggers\":2", "\"value\":0");
}

static void test_shared_and_simulated_devices_are_marked(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, LOAD);
    (void)world_pod(&w, "a", "n1");
    (void)world_pod(&w, "b", "n1");
    struct fleet_device *d = world_gpu(&w, "n1");
    world_read(&w, d, SNAPSHOT_UTILIZATION, 50);
    for (size_t i = 0; i < 2; i++) {
        struct fleet_holder *h = world_hold(&w, "n1", "ml", i ? "b" : "a", d);
        h->is_shared = h->is_measured = true;
        world_read_holder(&w, "n1", i ? "b" : "a", SNAPSHOT_UTILIZATION, 25);
    }
    EXPLAINED shared;
    explain(&w, &shared);
    HAS(&shared.text, "shared by 2 pods, 2 of this workload, own part 25 of 50\n", "(shared_device)");
    HAS(&shared.json, "\"holders\":2,\"ownHolders\":2,\"share\":25,\"shareSum\":50", "{\"id\":\"shared_device\"");
    world_node(&w, "n1")->node.n_holders = 0;
    world_node(&w, "n1")->node.is_simulated = true;
    w.facts.simulated_gpus_per_pod = 1;
    EXPLAINED given;
    explain(&w, &given);
    HAS(&given.text, ", simulated\n", "(simulated)");
    HAS(&given.json, "\"isSimulated\":true,\"isGiven\":true");
}

static void test_texts_of_others_cannot_break_the_json(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, LOAD);
    (void)world_pod(&w, "a\"\n\xff", "n1");
    (void)world_node(&w, "n1");
    w.facts.target_name = "x\"y";
    EXPLAINED e;
    explain(&w, &e);
    HAS(&e.json, "\"targetName\":\"x\\\"y\"", "\"name\":\"a\\\"\\n");
    assert_true(str_is_utf8((struct str){e.json.data, e.json.len}));
}

static void test_cluster_is_explained_as_a_node_is_and_more(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, LOAD, "scope", "cluster", "aggregation", "sum");
    world_read(&w, world_gpu(&w, "n1"), SNAPSHOT_UTILIZATION, 50);
    world_node(&w, "n2")->node.is_synced = false;
    EXPLAINED e;
    explain_with(&w, NULL, &e);
    HAS(&e.text, "input    n1 GPU 0 GPU-n1-0 H100 80GB HBM3: measured", "nodes    2, of which 1 have not answered yet",
        "(silent_nodes)");
    HAS(&e.json, "\"node\":\"n1\"", "\"nodes\":2,\"silentNodes\":1", "\"lint\":[]", "\"value\":50");
}

static void test_long_lists_are_cut_and_counted(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, LOAD);
    (void)world_busy(&w, "a", "n1", 50);
    (void)world_evaluate(&w);
    struct workload_input inputs[350];
    for (size_t i = 0; i < ARRAY_LEN(inputs); i++)
        inputs[i] = w.answer.inputs[0];
    struct workload_answer many = w.answer;
    many.inputs = inputs;
    many.n_inputs = ARRAY_LEN(inputs);
    EXPLAINED e;
    struct json json;
    buf_init(&e.text, 256 << 10);
    buf_init(&e.json, 256 << 10);
    json_init(&json, &e.json, 0);
    workload_explain_text(&w.facts, &many, &e.text);
    workload_explain_json(&w.facts, &many, &json);
    assert_false(e.text.is_overflowed || e.json.is_overflowed);
    HAS(&e.text, "pod      and 200 more\n");
    HAS(&e.json, "\"podsLeftOut\":200");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything_that_counted_is_shown),
        cmocka_unit_test(test_what_the_tolerance_lets_pass_is_said),
        cmocka_unit_test(test_growth_and_shrinking_say_what_the_hpa_will_do),
        cmocka_unit_test(test_memory_that_says_nothing_is_marked),
        cmocka_unit_test(test_errors_are_explained_too),
        cmocka_unit_test(test_a_scaled_job_is_called_one),
        cmocka_unit_test(test_last_answer_to_keda_is_shown_beside_what_is_now),
        cmocka_unit_test(test_what_may_wake_it_from_zero_is_said),
        cmocka_unit_test(test_shared_and_simulated_devices_are_marked),
        cmocka_unit_test(test_texts_of_others_cannot_break_the_json),
        cmocka_unit_test(test_cluster_is_explained_as_a_node_is_and_more),
        cmocka_unit_test(test_long_lists_are_cut_and_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
