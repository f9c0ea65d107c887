/* Pods on their way: what the API and this hub's memory say of them, places, groups, nodes without agents, and what is
 * refused before any pod is looked at. */
#include "workload/workload.h"

#include "world.h"

#define UTILIZATION_80 "metricType", "gpu_utilization", "targetValue", "80"

/* ---- to Ready ---- */

/* Started and not Ready yet. */
static struct kube_pod loading_pod(const struct world *w, const char *name, const char *node, double age_s)
{
    struct kube_pod pod = world_kube_pod(w, name, node);
    double at_s = world_api_now(w) - age_s;
    pod.meta.created_s = pod.condition_s = pod.started_s = at_s;
    pod.is_ready = false;
    return pod;
}

static struct kube_pod ready_now(const struct world *w, struct kube_pod pod)
{
    pod.is_ready = true;
    pod.condition_s = world_api_now(w);
    return pod;
}

/* Becomes Ready at 100 %, and is at 20 % from then on, for `seconds`. */
static void come_up(struct world *w, bool is_seen, double seconds)
{
    struct kube_pod pod = loading_pod(w, "b", "n2", 60);
    (void)world_add(w, &pod);
    struct fleet_device *d = world_gpu(w, "n2");
    (void)world_hold(w, "n2", "ml", "b", d);
    for (int i = 0; i < 20; i++) {
        world_wait(w, 1);
        world_read(w, d, SNAPSHOT_UTILIZATION, 100);
    }
    if (is_seen) {
        pod = ready_now(w, pod);
        world_update(w, w->pods[w->facts.n_pods - 1], &pod);
    } else {
        pod = ready_now(w, pod);
        workload_pod_free(w->pods[w->facts.n_pods - 1]);
        w->pods[w->facts.n_pods - 1] = workload_pod_new(&pod, w->now_ns);
    }
    for (int i = 0; i < (int)seconds; i++) {
        world_wait(w, 1);
        world_read(w, d, SNAPSHOT_UTILIZATION, 20);
    }
    for (size_t i = 0; i < w->n_wants; i++) { /* the window still has the loading in it, the peak too */
        world_node(w, "n2")->of_devices[0][i].mean = (100 * (15 - seconds) + 20 * seconds) / 15;
        world_node(w, "n2")->of_devices[0][i].peak = 100;
    }
}

static void test_pod_counts_its_load_since_ready(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    struct fleet_device *a = world_busy(&w, "a", "n1", 60);
    come_up(&w, true, 5);
    world_read(&w, a, SNAPSHOT_UTILIZATION, 60);
    const struct workload_answer *answer = world_evaluate(&w);
    assert_int_equal(state_of(answer, 1), SCALING_POD_YOUNG);
    const struct scaling_replica *r = answer->inputs[1].replica;
    assert_true(r->load.since_ready.is_known);
    assert_double_near(r->load.since_ready.value, 20, 1e-9);
    assert_double_near(r->lower.value, 20 * 5 / 15.0, 1e-9);
    assert_double_near(r->upper.value, 20, 1e-9);
    world_wait(&w, 12);
    world_read(&w, a, SNAPSHOT_UTILIZATION, 60);
    world_read(&w, &world_node(&w, "n2")->devices[0], SNAPSHOT_UTILIZATION, 20);
    assert_double_near(VALUE(w), 80, 1e-9);
    assert_int_equal(state_of(&w.answer, 1), SCALING_POD_MEASURED);
}

static void test_ready_that_was_not_seen_only_bounds(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    struct fleet_device *a = world_busy(&w, "a", "n1", 60);
    come_up(&w, false, 5);
    world_read(&w, a, SNAPSHOT_UTILIZATION, 60);
    const struct workload_answer *answer = world_evaluate(&w);
    assert_int_equal(state_of(answer, 1), SCALING_POD_READY_AGAIN);
    const struct scaling_replica *r = answer->inputs[1].replica;
    assert_false(r->load.since_ready.is_known);
    assert_false(r->lower.is_known);
    assert_double_near(r->upper.value, 100, 1e-9); /* its peak, above T and p */
    assert_double_near(VALUE(w), 160, 1e-9);
}

static void test_peak_of_a_short_activation_window_bounds_nothing(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, "metricType", "power_draw", "targetValue", "300", "activationWindow", "2");
    (void)world_pod(&w, "a", "n1");
    struct fleet_device *d = world_gpu(&w, "n1");
    (void)world_hold(&w, "n1", "ml", "a", d);
    struct kube_pod pod = world_kube_pod(&w, "a", "n1");
    pod.condition_s = world_api_now(&w) - 5;
    world_update(&w, w.pods[0], &pod);
    world_read(&w, d, SNAPSHOT_POWER, 100);
    (void)world_evaluate(&w);
    assert_false(w.answer.inputs[0].counted->bound.is_known);
    assert_double_near(w.answer.inputs[0].replica->upper.value, 300, 1e-9);
}

static void test_second_ready_is_not_the_first(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    struct fleet_device *d = world_busy(&w, "a", "n1", 60);
    struct kube_pod pod = world_kube_pod(&w, "a", "n1"), lost = pod;
    lost.is_ready = false;
    lost.condition_s = world_api_now(&w);
    world_update(&w, w.pods[0], &lost);
    (void)world_evaluate(&w);
    assert_int_equal(state_of(&w.answer, 0), SCALING_POD_UNREADY);
    world_wait(&w, 30);
    world_read(&w, d, SNAPSHOT_UTILIZATION, 60);
    pod = ready_now(&w, pod);
    world_update(&w, w.pods[0], &pod);
    (void)world_evaluate(&w);
    assert_int_equal(state_of(&w.answer, 0), SCALING_POD_READY_AGAIN);
    /* lost and found between two messages */
    world_wait(&w, 60);
    world_read(&w, d, SNAPSHOT_UTILIZATION, 60);
    pod.condition_s = world_api_now(&w) - 3;
    world_update(&w, w.pods[0], &pod);
    (void)world_evaluate(&w);
    assert_int_equal(state_of(&w.answer, 0), SCALING_POD_READY_AGAIN);
    assert_false(w.answer.inputs[0].replica->load.since_ready.is_known);
}

static void test_first_ready_is_the_first_only_once(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    come_up(&w, true, 5);
    (void)world_evaluate(&w);
    assert_int_equal(state_of(&w.answer, 0), SCALING_POD_YOUNG);
    struct kube_pod pod = loading_pod(&w, "b", "n2", 90);
    pod.is_ready = true;
    pod.condition_s = world_api_now(&w) - 2; /* lost and found between two messages */
    world_update(&w, w.pods[0], &pod);
    (void)world_evaluate(&w);
    assert_int_equal(state_of(&w.answer, 0), SCALING_POD_READY_AGAIN);
    pod.is_ready = false;
    pod.condition_s = world_api_now(&w) - 1;
    world_update(&w, w.pods[0], &pod);
    pod = ready_now(&w, pod);
    world_update(&w, w.pods[0], &pod);
    world_wait(&w, 1);
    world_read(&w, &world_node(&w, "n2")->devices[0], SNAPSHOT_UTILIZATION, 20);
    (void)world_evaluate(&w);
    assert_int_equal(state_of(&w.answer, 0), SCALING_POD_READY_AGAIN);
    assert_true(w.answer.inputs[0].replica->load.since_ready.is_known); /* this one was seen */
}

static void test_marks_of_another_life_are_not_used(void **state)
{
    (void)state;
    WORLD restarted;
    WORLD_INIT(restarted, UTILIZATION_80);
    come_up(&restarted, true, 5);
    struct fleet_reading *r = world_readings(&restarted, &world_node(&restarted, "n2")->devices[0]);
    r[0].integral = 0; /* the agent counts from the start again */
    (void)world_evaluate(&restarted);
    assert_false(restarted.answer.inputs[0].replica->load.since_ready.is_known);
    WORLD other_process; /* its integrals look plausible, and are of another start */
    WORLD_INIT(other_process, UTILIZATION_80);
    come_up(&other_process, true, 5);
    (void)world_evaluate(&other_process);
    assert_true(other_process.answer.inputs[0].replica->load.since_ready.is_known);
    world_node(&other_process, "n2")->node.instance++;
    (void)world_evaluate(&other_process);
    assert_false(other_process.answer.inputs[0].replica->load.since_ready.is_known);
    WORLD moved;
    WORLD_INIT(moved, UTILIZATION_80);
    come_up(&moved, true, 5);
    struct fleet_want other = {.field = SNAPSHOT_POWER};
    moved.n_wants = 0; /* the want has another place now, where there was another one at Ready */
    (void)world_want(&moved, &other);
    r = world_readings(&moved, &world_node(&moved, "n2")->devices[0]);
    r[1] = r[0];
    r[1].integral = 150;
    r[1].valid_s = 3; /* as if it were of the same want */
    (void)world_evaluate(&moved);
    assert_int_equal(moved.answer.inputs[0].counted->reading, SCALING_READ_OK);
    assert_false(moved.answer.inputs[0].replica->load.since_ready.is_known);
}

static void test_peak_bounds_no_part_of_a_shared_device(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    struct fleet_device *d = world_busy(&w, "a", "n1", 60);
    struct kube_pod pod = world_kube_pod(&w, "a", "n1");
    pod.condition_s = world_api_now(&w) - 5;
    world_update(&w, w.pods[0], &pod);
    (void)world_evaluate(&w);
    assert_true(w.answer.inputs[0].counted->bound.is_known);
    world_node(&w, "n1")->holders[0].is_shared = true;
    world_hold(&w, "n1", "other", "x", d)->is_shared = true;
    for (size_t i = 0; i < 2; i++) {
        world_node(&w, "n1")->holders[i].is_measured = true;
        world_read_holder(&w, "n1", i ? "x" : "a", SNAPSHOT_UTILIZATION, 30);
    }
    (void)world_evaluate(&w);
    assert_int_equal(w.answer.inputs[0].counted->reading, SCALING_READ_OK);
    assert_false(w.answer.inputs[0].counted->bound.is_known);
}

static void test_pods_that_went_are_forgotten(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    (void)world_busy(&w, "a", "n1", 60);
    world_look(&w);
    size_t n = w.facts.n_pods;
    w.facts.n_pods = 0;
    world_look(&w);
    w.facts.n_pods = n;
    world_status(&w, &world_node(&w, "n1")->devices[0], FLEET_MISSING);
    (void)world_evaluate(&w);
    assert_false(w.answer.inputs[0].counted->last_good.is_known);
    assert_true(w.answer.is_active);
    assert_false(w.answer.is_above); /* active, and not by measurement */
}

static void test_change_that_was_seen_late_is_no_mark(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    come_up(&w, true, 8);
    struct kube_pod pod = loading_pod(&w, "b", "n2", 90);
    world_update(&w, w.pods[0], &pod);
    pod = ready_now(&w, pod);
    pod.condition_s -= 6; /* the watch was away */
    world_update(&w, w.pods[0], &pod);
    world_wait(&w, 1);
    world_read(&w, &world_node(&w, "n2")->devices[0], SNAPSHOT_UTILIZATION, 20);
    (void)world_evaluate(&w);
    assert_false(w.answer.inputs[0].replica->load.since_ready.is_known);
}

static void test_other_pod_under_the_same_name_starts_anew(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    (void)world_busy(&w, "a", "n1", 60);
    (void)world_evaluate(&w);
    struct kube_pod pod = world_kube_pod(&w, "a", "n1");
    pod.meta.uid = "another";
    pod.condition_s = world_api_now(&w) - 5;
    world_update(&w, w.pods[0], &pod);
    world_status(&w, &world_node(&w, "n1")->devices[0], FLEET_MISSING);
    (void)world_evaluate(&w);
    assert_false(w.answer.inputs[0].counted->was_first_ready_seen);
    assert_false(w.answer.inputs[0].counted->last_good.is_known);
}

/* ---- missing ---- */

static void test_pod_without_readings_is_like_the_others_after_5_minutes(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    struct fleet_device *a = world_busy(&w, "a", "n1", 30), *b = world_busy(&w, "b", "n1", 30);
    (void)world_pod(&w, "c", "nowhere");
    for (int i = 0; i <= 300; i += 5) {
        world_read(&w, a, SNAPSHOT_UTILIZATION, 30);
        world_read(&w, b, SNAPSHOT_UTILIZATION, 30);
        world_look(&w); /* without a question too */
        world_wait(&w, 5);
    }
    world_read(&w, a, SNAPSHOT_UTILIZATION, 30);
    world_read(&w, b, SNAPSHOT_UTILIZATION, 30);
    assert_double_near(VALUE(w), 90, 1e-9);
    assert_int_equal(state_of(&w.answer, 2), SCALING_POD_UNOBSERVABLE);
    assert_contains(w.answer.inputs[2].text, "node nowhere has no agent");
    assert_true(w.answer.inputs[2].counted->missing_for_s >= 300);
    /* a hub that has just started waits */
    workload_memory_free(w.memory);
    w.memory = workload_memory_new(w.trigger);
    (void)world_evaluate(&w);
    assert_int_equal(state_of(&w.answer, 2), SCALING_POD_MISSING);
}

static void test_missing_is_counted_from_when_the_reading_is_needed(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    struct fleet_device *a = world_busy(&w, "a", "n1", 30);
    struct kube_pod pod = loading_pod(&w, "b", "nowhere", 10);
    (void)world_add(&w, &pod);
    for (int i = 0; i < 100; i++) {
        world_wait(&w, 5);
        world_look(&w);
    }
    pod = ready_now(&w, pod);
    world_update(&w, w.pods[1], &pod);
    world_wait(&w, 20);
    world_read(&w, a, SNAPSHOT_UTILIZATION, 30);
    world_look(&w);
    world_wait(&w, 2);
    (void)world_evaluate(&w);
    assert_int_equal(state_of(&w.answer, 1), SCALING_POD_MISSING);
    assert_double_near(w.answer.inputs[1].counted->missing_for_s, 2, 1e-9);
}

static void test_last_good_value_is_kept(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, "metricType", "power_draw", "targetValue", "100");
    (void)world_pod(&w, "a", "n1");
    (void)world_pod(&w, "b", "n1");
    for (size_t i = 0; i < 2; i++) {
        (void)world_hold(&w, "n1", "ml", i ? "b" : "a", world_gpu(&w, "n1"));
        world_read(&w, &world_node(&w, "n1")->devices[i], SNAPSHOT_POWER, i ? 350 : 90);
    }
    world_look(&w);
    world_status(&w, &world_node(&w, "n1")->devices[1], FLEET_MISSING);
    (void)world_evaluate(&w);
    assert_double_near(w.answer.inputs[1].replica->upper.value, 350, 1e-9);
}

static void test_reasons_name_the_place(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    (void)world_busy(&w, "a", "n1", 30);
    (void)world_pod(&w, "b", "n1");
    struct fleet_node *n = &world_node(&w, "n1")->node;
    assert_double_near(VALUE(w), 160, 1e-9);
    assert_string_equal(w.answer.inputs[1].text, "the agent of node n1 lists no GPU of it");
    n->owners = "denied";
    n->owners_text = "may not open the kubelet's socket";
    (void)world_evaluate(&w);
    assert_contains(w.answer.inputs[1].text, "does not know which pods hold its GPUs: may not open the kubelet's");
    n->is_synced = false;
    n->state = FLEET_NODE_REFUSED;
    (void)snprintf(n->text, sizeof(n->text), "too old");
    (void)world_evaluate(&w);
    assert_contains(w.answer.inputs[1].text,
                    "the agent of node n1 has not answered yet; its agent is refused: too old");
}

static void test_long_reasons_are_cut_and_never_lost(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    (void)world_pod(&w, "a", "n1");
    struct fleet_node *n = &world_node(&w, "n1")->node;
    char words[SNAPSHOT_TEXT_MAX];
    memset(words, 'x', sizeof(words) - 1);
    words[sizeof(words) - 1] = '\0';
    words[3] = '\n';
    words[4] = 0x1B;
    n->owners = "failed";
    n->owners_text = words;
    n->state = FLEET_NODE_STALE;
    (void)snprintf(n->text, sizeof(n->text), "%s", words);
    assert_refused(w, ERR_UNAVAILABLE, "pod a: the agent of node n1 does not know which pods hold its GPUs: xxx??xxx");
    assert_contains(w.answer.inputs[0].text, "; its agent is stale: xxx??xxx");
    assert_null(strchr(w.answer.value_error.text, '\n'));
}

static void test_pod_that_requests_nothing_keeps_what_it_held(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    (void)world_busy(&w, "a", "n1", 30);
    struct kube_pod pod = world_kube_pod(&w, "a", "n1");
    pod.requests_gpu = false;
    world_update(&w, w.pods[0], &pod);
    assert_double_near(VALUE(w), 30, 1e-9);
    struct fleet_node *n = &world_node(&w, "n1")->node;
    n->n_holders = 0;
    assert_refused(w, ERR_UNAVAILABLE, "could be read");
    workload_memory_free(w.memory); /* a new hub knows of none */
    w.memory = workload_memory_new(w.trigger);
    assert_refused(w, ERR_FAILED_PRECONDITION, "no pod of the workload requests or holds a GPU");
    n->is_synced = false; /* but before the agent has answered it cannot say so */
    assert_refused(w, ERR_UNAVAILABLE, "could be read");
    assert_true(w.answer.is_active);
}

static void test_new_container_may_not_be_listed_yet(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    (void)world_busy(&w, "a", "n1", 30);
    struct kube_pod pod = world_kube_pod(&w, "b", "n1");
    pod.started_s = world_api_now(&w) - 4;
    pod.condition_s = world_api_now(&w) - 2;
    (void)world_add(&w, &pod);
    (void)world_evaluate(&w);
    assert_int_equal(w.answer.inputs[1].counted->reading, SCALING_READ_NOT_YET);
    world_wait(&w, 8); /* a List each 10 s, then a sample and an update */
    world_read(&w, &world_node(&w, "n1")->devices[0], SNAPSHOT_UTILIZATION, 30);
    (void)world_evaluate(&w);
    assert_int_equal(w.answer.inputs[1].counted->reading, SCALING_READ_NOT_YET);
    world_wait(&w, 2);
    world_read(&w, &world_node(&w, "n1")->devices[0], SNAPSHOT_UTILIZATION, 30);
    (void)world_evaluate(&w);
    assert_int_equal(w.answer.inputs[1].counted->reading, SCALING_READ_MISSING);
}

static void test_want_that_a_node_does_not_know_is_due_for_5_seconds(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    (void)world_busy(&w, "a", "n1", 30);
    world_node(&w, "n1")->node.n_wants = 0;
    (void)world_evaluate(&w);
    assert_int_equal(w.answer.inputs[0].counted->reading, SCALING_READ_NOT_YET);
    assert_int_equal(w.answer.value_error.class, ERR_UNAVAILABLE);
    world_wait(&w, 6);
    (void)world_evaluate(&w);
    assert_int_equal(w.answer.inputs[0].counted->reading, SCALING_READ_MISSING);
}

static void test_on_missing_error_and_ignore(void **state)
{
    (void)state;
    static const char *const rules[] = {"error", "ignore"};
    for (size_t i = 0; i < 2; i++) {
        WORLD w;
        WORLD_INIT(w, UTILIZATION_80, "onMissing", rules[i]);
        (void)world_busy(&w, "a", "n1", 30);
        (void)world_pod(&w, "b", "nowhere");
        if (i == 0)
            assert_refused(w, ERR_UNAVAILABLE, "onMissing is error; pod b: node nowhere has no agent");
        else
            assert_double_near(VALUE(w), 30, 1e-9);
    }
}

/* ---- which pods count ---- */

static void test_gone_pods_do_not_count_but_r_has_them(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    (void)world_busy(&w, "a", "n1", 60);
    struct kube_pod pod = world_kube_pod(&w, "b", "n1");
    pod.meta.is_deleted = true;
    (void)world_add(&w, &pod);
    pod = world_kube_pod(&w, "c", "n1");
    pod.phase = KUBE_SUCCEEDED;
    pod.is_ready = false;
    (void)world_add(&w, &pod);
    pod = world_kube_pod(&w, "d", "n1");
    pod.phase = KUBE_FAILED;
    pod.is_ready = false;
    (void)world_add(&w, &pod);
    w.facts.spec = w.facts.status = 1;
    assert_double_near(VALUE(w), 60, 1e-9);
    for (size_t i = 1; i < 4; i++)
        assert_int_equal(state_of(&w.answer, i), SCALING_POD_GONE);
    assert_int_equal(w.answer.result.replicas.ready, 2);
}

static void test_places_load_until_their_warm_up_is_over(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80, "warmupSeconds", "60");
    struct fleet_device *a = world_busy(&w, "a", "n1", 30);
    w.facts.spec = 2;
    assert_double_near(VALUE(w), 160, 1e-9); /* a place that is still to be filled holds */
    assert_int_equal(w.answer.result.counts[SCALING_POD_LOADING], 1);
    for (int i = 0; i < 14; i++) {
        world_wait(&w, 5);
        world_look(&w);
    }
    w.facts.spec = 3; /* another one, seen just now */
    world_read(&w, a, SNAPSHOT_UTILIZATION, 30);
    (void)world_evaluate(&w);
    assert_int_equal(w.answer.result.counts[SCALING_POD_STUCK], 1);
    assert_int_equal(w.answer.result.counts[SCALING_POD_LOADING], 1);
    (void)world_busy(&w, "b", "n1", 30); /* takes the longest-waiting place */
    w.facts.spec = 3;
    (void)world_evaluate(&w);
    assert_int_equal(w.answer.result.counts[SCALING_POD_STUCK], 0);
    assert_int_equal(w.answer.result.counts[SCALING_POD_LOADING], 1);
}

static struct kube_pod member(const struct world *w, const char *name, int64_t group)
{
    struct kube_pod pod = world_kube_pod(w, name, "n1");
    pod.group = group;
    return pod;
}

static void test_group_is_one_replica_and_its_leader_needs_no_gpu(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    static const char *const names[] = {"x-0", "x-0-1", "x-0-2", "x-1", "x-1-1", "x-1-2"};
    for (size_t i = 0; i < 6; i++) {
        struct kube_pod pod = member(&w, names[i], (int64_t)i / 3);
        pod.requests_gpu = i % 3 != 0;
        (void)world_add(&w, &pod);
        if (i % 3 == 0)
            continue;
        struct fleet_device *d = world_gpu(&w, "n1");
        (void)world_hold(&w, "n1", "ml", names[i], d);
        world_read(&w, d, SNAPSHOT_UTILIZATION, i < 3 ? 40 : 90);
    }
    w.facts.spec = w.facts.status = 2;
    assert_double_near(VALUE(w), 130, 1e-9);
    assert_null(w.answer.inputs[0].replica);
    assert_ptr_equal(w.answer.inputs[1].replica, w.answer.inputs[2].replica);
    assert_double_near(w.answer.inputs[4].replica->load.window.value, 90, 1e-9);
    assert_int_equal(w.answer.result.replicas.ready, 6);
    assert_int_equal(w.answer.result.counts[SCALING_POD_LOADING], 0);
}

static void test_place_of_a_group_that_lost_a_member_loads(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    static const char *const names[] = {"x-0", "x-0-1", "x-1", "x-1-1"};
    for (size_t i = 0; i < 4; i++) {
        struct kube_pod pod = member(&w, names[i], (int64_t)i / 2);
        pod.meta.is_deleted = i == 3;
        (void)world_add(&w, &pod);
        struct fleet_device *d = world_gpu(&w, "n1");
        (void)world_hold(&w, "n1", "ml", names[i], d);
        world_read(&w, d, SNAPSHOT_UTILIZATION, 40);
    }
    w.facts.spec = w.facts.status = 2;
    (void)world_evaluate(&w);
    assert_int_equal(w.answer.result.counts[SCALING_POD_GONE], 1);
    assert_int_equal(w.answer.result.counts[SCALING_POD_LOADING], 1);
    for (int i = 0; i < 200; i++) { /* the place is as old as the loss */
        world_wait(&w, 5);
        world_look(&w);
    }
    (void)world_evaluate(&w);
    assert_int_equal(w.answer.result.counts[SCALING_POD_STUCK], 1);
}

/* ---- refusals ---- */

static void test_questions_that_have_no_answer_yet_or_ever(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, UTILIZATION_80);
    (void)world_busy(&w, "a", "n1", 60);
    w.facts.is_api_synced = false;
    assert_refused(w, ERR_UNAVAILABLE, "not yet");
    assert_int_equal(w.answer.active_error.class, ERR_UNAVAILABLE); /* never idle */
    w.facts.is_api_synced = true;
    w.facts.is_known = false;
    assert_refused(w, ERR_UNAVAILABLE, "no ScaledObject ml/llama is known here");
    w.facts.is_known = true;
    w.facts.is_scale_known = false;
    (void)snprintf(w.facts.scale_error, sizeof(w.facts.scale_error), "the kind has no scale subresource");
    assert_refused(w, ERR_UNAVAILABLE, "does not answer: the kind has no scale subresource");
    w.facts.is_scale_known = true;
    w.facts.hpa_state = WORKLOAD_HPA_NOT_READ;
    assert_refused(w, ERR_UNAVAILABLE, "not yet: HPAs have not been read");
    assert_int_equal(w.answer.active_error.class, ERR_NONE);
    assert_true(w.answer.is_active);
    w.facts.hpa_state = WORKLOAD_HPA_NOT_PERMITTED;
    w.facts.is_job = true;
    assert_refused(w, ERR_FAILED_PRECONDITION, "ScaledJob");
    w.facts.is_job = false;
    assert_double_near(VALUE(w), 60, 1e-9);
    w.facts.spec = w.facts.status = 0;
    w.facts.hpa_state = WORKLOAD_HPA_NOT_READ;
    assert_double_same(VALUE(w), 0);
    assert_false(w.answer.is_active);
}

static void test_scopes_and_metrics_that_are_not_the_hubs(void **state)
{
    (void)state;
    WORLD node;
    WORLD_INIT(node, UTILIZATION_80, "scope", "node");
    assert_refused(node, ERR_FAILED_PRECONDITION, "point scalerAddress at an agent");
    WORLD engine;
    WORLD_INIT(engine, "profile", "vllm-queue-depth");
    assert_refused(engine, ERR_FAILED_PRECONDITION,
                   "vllm_queue_depth is read from the metrics pages of the workload's pods");
    WORLD full;
    WORLD_INIT(full, UTILIZATION_80);
    full.wants_max = 0;
    assert_refused(full, ERR_RESOURCE_EXHAUSTED, "the agents are asked 64 different questions");
}

static void test_arena_without_room_is_an_error_and_no_crash(void **state)
{
    (void)state;
    WORLD w;
    WORLD_INIT(w, "metricType", "memory_used_percent", "targetValue", "80");
    (void)world_busy(&w, "a", "n1", 60);
    (void)world_busy(&w, "b", "n1", 60);
    struct workload_fleet fleet = world_fleet(&w);
    w.facts.api_now_s = world_api_now(&w);
    size_t n_refused = 0;
    for (size_t size = 0; size <= 16384; size += 64) {
        ARENA_AUTO struct arena small;
        arena_init(&small, size);
        struct workload_answer a;
        workload_evaluate(w.memory, &w.facts, &fleet, w.now_ns, &small, &a);
        n_refused += a.value_error.class == ERR_RESOURCE_EXHAUSTED;
    }
    assert_true(n_refused > 4 && n_refused < 250);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pod_counts_its_load_since_ready),
        cmocka_unit_test(test_ready_that_was_not_seen_only_bounds),
        cmocka_unit_test(test_peak_of_a_short_activation_window_bounds_nothing),
        cmocka_unit_test(test_second_ready_is_not_the_first),
        cmocka_unit_test(test_first_ready_is_the_first_only_once),
        cmocka_unit_test(test_marks_of_another_life_are_not_used),
        cmocka_unit_test(test_peak_bounds_no_part_of_a_shared_device),
        cmocka_unit_test(test_pods_that_went_are_forgotten),
        cmocka_unit_test(test_change_that_was_seen_late_is_no_mark),
        cmocka_unit_test(test_other_pod_under_the_same_name_starts_anew),
        cmocka_unit_test(test_pod_without_readings_is_like_the_others_after_5_minutes),
        cmocka_unit_test(test_missing_is_counted_from_when_the_reading_is_needed),
        cmocka_unit_test(test_last_good_value_is_kept),
        cmocka_unit_test(test_reasons_name_the_place),
        cmocka_unit_test(test_long_reasons_are_cut_and_never_lost),
        cmocka_unit_test(test_pod_that_requests_nothing_keeps_what_it_held),
        cmocka_unit_test(test_new_container_may_not_be_listed_yet),
        cmocka_unit_test(test_want_that_a_node_does_not_know_is_due_for_5_seconds),
        cmocka_unit_test(test_on_missing_error_and_ignore),
        cmocka_unit_test(test_gone_pods_do_not_count_but_r_has_them),
        cmocka_unit_test(test_places_load_until_their_warm_up_is_over),
        cmocka_unit_test(test_group_is_one_replica_and_its_leader_needs_no_gpu),
        cmocka_unit_test(test_place_of_a_group_that_lost_a_member_loads),
        cmocka_unit_test(test_questions_that_have_no_answer_yet_or_ever),
        cmocka_unit_test(test_scopes_and_metrics_that_are_not_the_hubs),
        cmocka_unit_test(test_arena_without_room_is_an_error_and_no_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
