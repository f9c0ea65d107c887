/* One workload: when its /scale is read, how long a read stands, its pods, its HPA, its triggers. */
#include "cluster/world.h"

static void test_facts_are_of_one_read_of_scale_and_the_pods_that_it_selects(void **state)
{
    struct world *w = *state;
    fake_kube.now_s = 1234;
    tell_scaled_object_of(w, "ml", "web", our_address, "StatefulSet", "server");
    lists_are_complete();
    (void)cluster_ask(w->cluster, "ml", "web", "");
    assert_string_equal(fake_kube.gets->asked, "apps/v1 StatefulSet ml/server");
    assert_false(facts_of(w, "ml", "web")->is_api_synced);
    fake_scale(3, 4, "app in (web,api),!old");
    assert_string_equal(fake_watch(KUBE_POD, "ml")->selector, "app in (web,api),!old");
    tell_pod("ml", (struct pod_row){"b", NULL, KUBE_RUNNING, false, true});
    tell_pod("ml", (struct pod_row){"a", NULL, KUBE_PENDING, false, false});
    assert_false(facts_of(w, "ml", "web")->is_api_synced); /* there may be more */
    fake_synced(fake_watch(KUBE_POD, "ml"));
    const struct workload_facts *f = facts_of(w, "ml", "web");
    assert_true(f->is_api_synced && f->is_known && f->is_scale_known && !f->is_job);
    assert_int_equal(f->spec, 3);
    assert_int_equal(f->status, 4);
    assert_string_equal(f->ns, "ml");
    assert_string_equal(f->name, "web");
    assert_string_equal(f->target_kind, "StatefulSet");
    assert_string_equal(f->target_name, "server");
    assert_double_same(f->api_now_s, 1234);
    assert_double_same(f->default_tolerance, 0.1);
    assert_int_equal(f->n_pods, 2);
    assert_string_equal(workload_pod_name(f->pods[0]), "a"); /* in order of name */
    assert_string_equal(workload_pod_name(f->pods[1]), "b");
    assert_string_equal(f->scaled_object->meta.name, "web"); /* a copy of what was overwritten */
}

static void test_scale_is_read_every_10_s_while_asked_and_every_minute_while_not(void **state)
{
    struct world *w = *state;
    tell_scaled_object(w, "ml", "web", our_address);
    lists_are_complete();
    world_pass(w, 1);
    assert_int_equal(fake_kube.n_gets, 1);
    fake_scale(1, 1, "app=web");
    world_pass(w, 58);
    assert_int_equal(fake_kube.n_gets, 1);
    world_pass(w, 3);
    assert_int_equal(fake_kube.n_gets, 2);
    fake_scale(1, 1, "app=web");
    (void)cluster_ask(w->cluster, "ml", "web", "");
    for (int i = 0; i < 60; i++) {
        world_pass(w, 1);
        if (fake_kube.gets)
            fake_scale(1, 1, "app=web");
    }
    assert_in_range(fake_kube.n_gets, 7, 9);
}

/* KEDA keeps to one hub: the other one is asked when that one goes, and must have an answer at once. */
static void test_a_hub_that_was_not_asked_for_a_while_answers_the_first_question(void **state)
{
    struct world *w = *state;
    tell_scaled_object(w, "ml", "web", our_address);
    lists_are_complete();
    world_pass(w, 1);
    fake_scale(3, 3, "app=web");
    fake_synced(fake_watch(KUBE_POD, "ml"));
    world_pass(w, 55);
    (void)cluster_ask(w->cluster, "ml", "web", "");
    assert_true(facts_of(w, "ml", "web")->is_scale_known);
    assert_true(w->facts.is_api_synced);
    world_pass(w, 2);
    assert_non_null(fake_kube.gets);
    fake_scale(4, 4, "app=web");
    assert_int_equal(facts_of(w, "ml", "web")->spec, 4);
}

static void test_changes_lead_to_one_more_read_within_two_seconds(void **state)
{
    struct world *w = *state;
    world_of_web(w, 2);
    const struct pod_row web = {"web-0", NULL, KUBE_RUNNING, false, true};
    struct pod_row row = web;
    size_t n = fake_kube.n_gets;
#define LEADS_TO(reads)                                                                                                \
    do {                                                                                                               \
        world_pass(w, 2);                                                                                              \
        assert_int_equal(fake_kube.n_gets, n + (reads));                                                               \
        n = fake_kube.n_gets;                                                                                          \
        if (fake_kube.gets)                                                                                            \
            fake_scale(2, 2, "app=web");                                                                               \
    } while (0)
    tell_pod("ml", web);
    tell_pod("ml", (struct pod_row){"web-1", NULL, KUBE_PENDING, false, false});
    LEADS_TO(1); /* two pods, one read */
    row.is_ready = false;
    tell_pod("ml", row);
    LEADS_TO(0); /* readiness is not in /scale */
    row.is_deleted = true;
    tell_pod("ml", row);
    LEADS_TO(1);
    tell_pod("ml", row);
    LEADS_TO(0);
    gone(fake_watch(KUBE_POD, "ml"), "ml", "web-0", "web-0");
    LEADS_TO(1);
    gone(fake_watch(KUBE_POD, "ml"), "ml", "web-7", "web-7");
    LEADS_TO(0);
    tell_hpa("ml", "web");
    LEADS_TO(1);
    tell_hpa("ml", "other");
    tell_hpa("m", "web");
    LEADS_TO(0);
    tell_scaled_object(w, "ml", "web", our_address);
    LEADS_TO(1);
}

static void test_a_change_while_scale_is_read_leads_to_another_read(void **state)
{
    struct world *w = *state;
    world_of_web(w, 1);
    world_pass(w, 11);
    assert_non_null(fake_kube.gets); /* under way, and slow */
    size_t n = fake_kube.n_gets;
    tell_pod("ml", (struct pod_row){"web-0", NULL, KUBE_RUNNING, false, true});
    world_pass(w, 5);
    assert_int_equal(fake_kube.n_gets, n); /* one at a time */
    fake_scale(1, 1, "app=web");           /* as it was before the change, perhaps */
    world_pass(w, 1);
    assert_int_equal(fake_kube.n_gets, n + 1);
    fake_scale(2, 2, "app=web");
    world_pass(w, 8);
    assert_int_equal(fake_kube.n_gets, n + 1);
    assert_int_equal(facts_of(w, "ml", "web")->spec, 2);
}

static void test_an_hpa_that_moves_while_scale_is_read_leads_to_another_read_too(void **state)
{
    struct world *w = *state;
    world_of_web(w, 1);
    world_pass(w, 11);
    assert_non_null(fake_kube.gets);
    size_t n = fake_kube.n_gets;
    tell_hpa("ml", "web");
    world_pass(w, 3);
    fake_scale(1, 1, "app=web");
    world_pass(w, 1);
    assert_int_equal(fake_kube.n_gets, n + 1);
    fake_scale(2, 2, "app=web");
    assert_int_equal(facts_of(w, "ml", "web")->spec, 2);
}

/* Seconds pass in which every read says this. */
static void pass_with_scale(struct world *w, int seconds, int64_t spec, int64_t status)
{
    for (int i = 0; i < seconds; i++) {
        world_pass(w, 1);
        if (fake_kube.gets)
            fake_scale(spec, status, "app=web");
    }
}

/* The HPA reads status.replicas a moment after us: it would see the pod of a rollout that our read did not. */
static void test_a_pod_more_counts_as_a_replica_before_scale_says_so(void **state)
{
    struct world *w = *state;
    static const char *const names[] = {"a-0", "a-1", "b-0", "b-1"};
    for (size_t n_members = 1; n_members <= 2; n_members++) { /* a replica is a pod, or a group of two */
        world_of_web(w, 2);
        for (size_t i = 0; i < 2 * n_members; i++)
            tell_pod("ml", (struct pod_row){names[i], NULL, KUBE_RUNNING, false, true});
        pass_with_scale(w, 15, 2, 2);
        assert_int_equal(facts_of(w, "ml", "web")->status, 2);
        tell_pod("ml", (struct pod_row){"c-0", NULL, KUBE_PENDING, false, false});
        assert_int_equal(facts_of(w, "ml", "web")->status, 3);
        assert_int_equal(w->facts.spec, 2);
        tell_pod("ml", (struct pod_row){"c-0", NULL, KUBE_PENDING, true, false});
        assert_int_equal(facts_of(w, "ml", "web")->status, 2);
        gone(fake_watch(KUBE_SCALED_OBJECT, NULL), "ml", "web", "u");
        pass_with_scale(w, 16 * 60, 2, 2);
        assert_false(is_tracked(w, "ml", "web"));
    }
}

static void test_another_target_starts_from_nothing(void **state)
{
    struct world *w = *state;
    world_of_web(w, 1);
    tell_pod("ml", (struct pod_row){"web-0", NULL, KUBE_RUNNING, false, true});
    world_pass(w, 2);
    assert_non_null(fake_kube.gets); /* of the old one: must not be taken for the new one's */
    tell_scaled_object_of(w, "ml", "web", our_address, "Deployment", "web2");
    world_pass(w, 1);
    assert_int_equal(fake_kube.n_cancelled, 1);
    assert_string_equal(fake_kube.gets->asked, "apps/v1 Deployment ml/web2");
    assert_null(fake_watch(KUBE_POD, "ml"));
    const struct workload_facts *f = facts_of(w, "ml", "web");
    assert_false(f->is_scale_known || f->is_api_synced);
    assert_int_equal(f->n_pods, 0);
    fake_scale(5, 5, "app=web2");
    assert_string_equal(fake_watch(KUBE_POD, "ml")->selector, "app=web2");
}

static void test_another_selector_watches_other_pods(void **state)
{
    struct world *w = *state;
    world_of_web(w, 1);
    tell_pod("ml", (struct pod_row){"web-0", NULL, KUBE_RUNNING, false, true});
    size_t n = fake_kube.n_watches;
    world_pass(w, 2);
    fake_scale(1, 1, "app=web");
    assert_int_equal(fake_kube.n_watches, n); /* the same: it goes on */
    assert_int_equal(facts_of(w, "ml", "web")->n_pods, 1);
    world_pass(w, 11);
    fake_scale(1, 1, "app=new");
    assert_int_equal(fake_kube.n_watches, n + 1);
    assert_string_equal(fake_watch(KUBE_POD, "ml")->selector, "app=new");
    assert_int_equal(facts_of(w, "ml", "web")->n_pods, 0);
    assert_false(w->facts.is_api_synced);
}

static void test_a_pod_of_the_same_name_with_another_uid_is_another_pod(void **state)
{
    struct world *w = *state;
    world_of_web(w, 1);
    tell_pod("ml", (struct pod_row){"web-0", "old", KUBE_RUNNING, false, true});
    const struct workload_pod *old = facts_of(w, "ml", "web")->pods[0];
    tell_pod("ml", (struct pod_row){"web-0", "old", KUBE_RUNNING, false, true});
    assert_ptr_equal(facts_of(w, "ml", "web")->pods[0], old); /* the same pod keeps what is remembered of it */
    tell_pod("ml", (struct pod_row){"web-0", "new", KUBE_PENDING, false, false});
    assert_int_equal(facts_of(w, "ml", "web")->n_pods, 1);
    gone(fake_watch(KUBE_POD, "ml"), "ml", "web-0", "old");
    assert_int_equal(facts_of(w, "ml", "web")->n_pods, 1);
    gone(fake_watch(KUBE_POD, "ml"), "ml", "web-0", "new");
    assert_int_equal(facts_of(w, "ml", "web")->n_pods, 0);
    world_pass(w, 2);
    fake_scale(1, 1, "app=web");
}

static void test_a_failed_read_says_why_and_is_tried_again(void **state)
{
    struct world *w = *state;
    static const struct {
        enum err_class class;
        bool stands; /* the last read does */
    } rows[] = {
        {ERR_NOT_FOUND, false}, {ERR_UNIMPLEMENTED, false}, {ERR_PERMISSION_DENIED, true}, {ERR_UNAVAILABLE, true}};
    world_of_web(w, 3);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        world_pass(w, 11);
        fake_no_scale(rows[i].class, "words");
        assert_int_equal(facts_of(w, "ml", "web")->is_scale_known, rows[i].stands);
        assert_string_equal(w->facts.scale_error, "words");
        assert_true(w->facts.is_api_synced);
        size_t n = fake_kube.n_gets;
        world_pass(w, 3);
        assert_int_equal(fake_kube.n_gets, n + 1);
        fake_no_scale(rows[i].class, "words");
        world_pass(w, 3);
        fake_scale(3, 3, "app=web");
        assert_true(facts_of(w, "ml", "web")->is_scale_known);
        assert_string_equal(w->facts.scale_error, "");
        char want[100];
        (void)snprintf(want, sizeof(want), "scale of ml/web: %s; scale of ml/web: works; ",
                       err_class_name(rows[i].class));
        assert_string_equal(buf_cstr(&w->told), want); /* once each */
        buf_reset(&w->told);
    }
}

static void test_with_the_api_away_the_count_stands_for_40_s(void **state)
{
    struct world *w = *state;
    world_of_web(w, 3);
    int known_s = 0;
    for (; known_s < 100 && facts_of(w, "ml", "web")->is_scale_known; known_s++) {
        assert_int_equal(w->facts.spec, 3);
        if (fake_kube.gets)
            fake_no_scale(ERR_UNAVAILABLE, "away");
        world_pass(w, 1);
    }
    assert_in_range(known_s, 39, 42);
    assert_string_equal(w->facts.scale_error, "away");
    world_pass(w, 3);
    fake_scale(4, 4, "app=web");
    assert_true(facts_of(w, "ml", "web")->is_scale_known);
    assert_int_equal(w->facts.spec, 4);
}

static void test_a_read_that_never_ends_does_not_make_the_count_stand(void **state)
{
    struct world *w = *state;
    world_of_web(w, 3);
    world_pass(w, 45);
    assert_false(facts_of(w, "ml", "web")->is_scale_known);
    assert_non_null(fake_kube.gets);
}

static void test_a_scale_without_a_selector_is_an_error_unless_it_is_zero(void **state)
{
    struct world *w = *state;
    tell_scaled_object(w, "ml", "web", our_address);
    lists_are_complete();
    (void)cluster_ask(w->cluster, "ml", "web", "");
    fake_scale(2, 2, "");
    assert_false(facts_of(w, "ml", "web")->is_scale_known);
    assert_non_null(strstr(w->facts.scale_error, "selector"));
    assert_true(w->facts.is_api_synced);
    world_pass(w, 3);
    fake_scale(0, 0, "");
    assert_true(facts_of(w, "ml", "web")->is_scale_known && w->facts.is_api_synced);
    assert_int_equal(w->facts.spec, 0);
}

static void test_an_hpa_is_known_not_made_not_read_or_not_permitted(void **state)
{
    struct world *w = *state;
    tell_scaled_object(w, "ml", "web", our_address);
    assert_int_equal(facts_of(w, "ml", "web")->hpa_state, WORKLOAD_HPA_NOT_READ);
    fake_failed(fake_watch(KUBE_HPA, NULL), ERR_PERMISSION_DENIED);
    assert_int_equal(facts_of(w, "ml", "web")->hpa_state, WORKLOAD_HPA_NOT_PERMITTED);
    fake_synced(fake_watch(KUBE_HPA, NULL));
    assert_int_equal(facts_of(w, "ml", "web")->hpa_state, WORKLOAD_HPA_NOT_MADE);
    tell_hpa("ml", "web");
    assert_int_equal(facts_of(w, "ml", "web")->hpa_state, WORKLOAD_HPA_KNOWN);
    assert_int_equal(w->facts.hpa->max, 7);
    assert_string_equal(w->facts.hpa->metrics[0].name, "s0-gpu_utilization");
    gone(fake_watch(KUBE_HPA, NULL), "ml", "web", "u");
    assert_int_equal(facts_of(w, "ml", "web")->hpa_state, WORKLOAD_HPA_NOT_MADE);
    assert_null(w->facts.hpa);
}

static void tell_plain_hpa(const char *name, const char *target)
{
    struct kube_hpa hpa = {.meta = META("ml", "own"),
                           .target_api_version = "apps/v1",
                           .target_kind = "Deployment",
                           .target_name = target,
                           .up = {.select = "Max"},
                           .down = {.select = "Max"}};
    hpa.meta.name = name;
    fake_tell(fake_watch(KUBE_HPA, NULL), &(struct kube_object){.kind = KUBE_HPA, .meta = hpa.meta, .hpa = &hpa});
}

static void test_who_scales_the_same_target_is_counted(void **state)
{
    struct world *w = *state;
    tell_scaled_object(w, "ml", "web", our_address);
    const struct cluster_workload *web = cluster_find(w->cluster, "ml", "web");
    assert_int_equal(cluster_count_scalers(web), 1);
    tell_hpa("ml", "web"); /* its own */
    tell_hpa("other", "web");
    assert_int_equal(cluster_count_scalers(web), 1);
    tell_plain_hpa("by-cpu", "other");
    assert_int_equal(cluster_count_scalers(web), 1);
    tell_plain_hpa("by-cpu", "web");
    assert_int_equal(cluster_count_scalers(web), 2);
    tell_scaled_object_of(w, "ml", "second", "elsewhere:1", "Deployment", "web");
    assert_int_equal(cluster_count_scalers(web), 3);
    tell_plain_hpa("web", "web"); /* KEDA made it without a metric: that is to be seen, not that it is not there */
    assert_int_equal(facts_of(w, "ml", "web")->hpa_state, WORKLOAD_HPA_KNOWN);
    assert_int_equal(w->facts.hpa->n_metrics, 0);
}

static void test_a_scaled_job_is_known_as_one(void **state)
{
    struct world *w = *state;
    tell_scaled_job("ml", "batch");
    lists_are_complete();
    (void)cluster_ask(w->cluster, "ml", "batch", "");
    const struct workload_facts *f = facts_of(w, "ml", "batch");
    assert_true(f->is_job && f->is_known && f->is_api_synced);
    world_pass(w, 5);
    assert_int_equal(fake_kube.n_gets, 0);
    gone(fake_watch(KUBE_SCALED_JOB, NULL), "ml", "batch", "u");
    assert_false(facts_of(w, "ml", "batch")->is_job || w->facts.is_known);
}

static void test_where_scaled_objects_may_not_be_read_pod_selector_stands_in(void **state)
{
    struct world *w = *state;
    fake_failed(fake_watch(KUBE_SCALED_OBJECT, NULL), ERR_PERMISSION_DENIED);
    fake_failed(fake_watch(KUBE_SCALED_JOB, NULL), ERR_PERMISSION_DENIED);
    fake_synced(fake_watch(KUBE_HPA, NULL));
    (void)cluster_ask(w->cluster, "ml", "web", "app=web");
    struct kube_watch *pods = fake_watch(KUBE_POD, "ml");
    assert_non_null(pods);
    assert_string_equal(pods->selector, "app=web");
    assert_false(facts_of(w, "ml", "web")->is_scale_known || w->facts.is_api_synced);
    tell_pod("ml", (struct pod_row){"web-0", NULL, KUBE_RUNNING, false, true});
    tell_pod("ml", (struct pod_row){"web-1", NULL, KUBE_RUNNING, true, true});
    tell_pod("ml", (struct pod_row){"web-2", NULL, KUBE_FAILED, false, false});
    fake_synced(pods);
    const struct workload_facts *f = facts_of(w, "ml", "web");
    assert_true(f->is_known && f->is_api_synced && f->is_scale_known);
    assert_int_equal(f->spec, 1); /* those that are not gone */
    assert_int_equal(f->status, 1);
    assert_int_equal(f->hpa_state, WORKLOAD_HPA_NOT_PERMITTED); /* which one is not known */
    assert_int_equal(fake_kube.n_gets, 0);
    (void)cluster_ask(w->cluster, "ml", "other", "");
    assert_false(facts_of(w, "ml", "other")->is_known);
    tell_scaled_object(w, "ml", "web", our_address); /* permitted after all */
    fake_synced(fake_watch(KUBE_SCALED_OBJECT, NULL));
    world_pass(w, 1);
    fake_scale(4, 4, "app=web,tier=1");
    assert_int_equal(facts_of(w, "ml", "web")->spec, 4);
    assert_string_equal(fake_watch(KUBE_POD, "ml")->selector, "app=web,tier=1");
}

static void test_nobody_is_answered_with_the_pods_of_another_pod_selector(void **state)
{
    struct world *w = *state;
    fake_failed(fake_watch(KUBE_SCALED_OBJECT, NULL), ERR_PERMISSION_DENIED);
    fake_failed(fake_watch(KUBE_SCALED_JOB, NULL), ERR_PERMISSION_DENIED);
    fake_synced(fake_watch(KUBE_HPA, NULL));
    (void)cluster_ask(w->cluster, "ml", "web", "app=web");
    tell_pod("ml", (struct pod_row){"web-0", NULL, KUBE_RUNNING, false, true});
    fake_synced(fake_watch(KUBE_POD, "ml"));
    assert_true(facts_of(w, "ml", "web")->is_api_synced);
    (void)cluster_ask(w->cluster, "ml", "web", "app=other");
    assert_false(facts_of(w, "ml", "web")->is_api_synced);
    assert_int_equal(w->facts.n_pods, 0);
    assert_string_equal(fake_watch(KUBE_POD, "ml")->selector, "app=other");
    (void)cluster_ask(w->cluster, "ml", "web", "");
    assert_false(facts_of(w, "ml", "web")->is_known);
    assert_null(fake_watch(KUBE_POD, "ml"));
}

static void test_a_part_of_a_list_of_pods_is_no_list(void **state)
{
    struct world *w = *state;
    tell_scaled_object(w, "ml", "web", our_address);
    lists_are_complete();
    (void)cluster_ask(w->cluster, "ml", "web", "");
    fake_scale(600, 600, "app=web");
    tell_pod("ml", (struct pod_row){"web-0", NULL, KUBE_RUNNING, false, true}); /* of a first page */
    world_pass(w, 11);
    fake_no_scale(ERR_UNAVAILABLE, "words");
    assert_true(facts_of(w, "ml", "web")->is_scale_known); /* the last read stands */
    assert_false(w->facts.is_api_synced);
    fake_synced(fake_watch(KUBE_POD, "ml"));
    assert_true(facts_of(w, "ml", "web")->is_api_synced);
}

static void test_pods_that_may_not_be_read_are_told_once(void **state)
{
    struct world *w = *state;
    world_of_web(w, 1);
    fake_failed(fake_watch(KUBE_POD, "ml"), ERR_PERMISSION_DENIED);
    fake_failed(fake_watch(KUBE_POD, "ml"), ERR_PERMISSION_DENIED);
    fake_synced(fake_watch(KUBE_POD, "ml"));
    assert_string_equal(buf_cstr(&w->told), "pods of ml/web: PERMISSION_DENIED; pods of ml/web: works; ");
}

static void test_pods_that_can_no_longer_be_read_are_not_known(void **state)
{
    struct world *w = *state;
    tell_scaled_object(w, "ml", "web", our_address);
    lists_are_complete();
    (void)cluster_ask(w->cluster, "ml", "web", "");
    fake_scale(1, 1, "app=web");
    fake_failed(fake_watch(KUBE_POD, "ml"), ERR_PERMISSION_DENIED);
    assert_false(facts_of(w, "ml", "web")->is_api_synced);
    assert_string_equal(w->facts.scale_error, "its pods cannot be read: told to fail"); /* for people */
    fake_synced(fake_watch(KUBE_POD, "ml"));
    assert_true(facts_of(w, "ml", "web")->is_scale_known);
    fake_kube.silent_ns = 121 * NS_PER_S; /* a quiet watch is no failure */
    assert_true(facts_of(w, "ml", "web")->is_scale_known);
    fake_failed(fake_watch(KUBE_POD, "ml"), ERR_DEADLINE_EXCEEDED);
    assert_true(facts_of(w, "ml", "web")->is_scale_known);
    fake_failed(fake_watch(KUBE_POD, "ml"), ERR_PERMISSION_DENIED);
    assert_false(facts_of(w, "ml", "web")->is_scale_known);
    fake_kube.silent_ns = 119 * NS_PER_S;
    assert_true(facts_of(w, "ml", "web")->is_scale_known);
}

/* ---- triggers ---- */

static void take(void *context, struct workload_memory *m)
{
    *(const struct trigger **)context = workload_memory_trigger(m);
}

static void count_memory(void *context, struct workload_memory *m)
{
    (void)m;
    ++*(size_t *)context;
}

static size_t n_memories(struct world *w)
{
    size_t n = 0;
    cluster_each_memory(cluster_find(w->cluster, "ml", "web"), count_memory, &n);
    return n;
}

static struct trigger *parse(struct world *w, const char *target)
{
    struct err e;
    struct trigger_pair pairs[] = {{str_of("scalerAddress"), str_of(our_address)},
                                   {str_of("metricType"), str_of("gpu_utilization")},
                                   {str_of("targetValue"), str_of(target)}};
    struct trigger *t = trigger_cache_get(w->triggers, pairs, ARRAY_LEN(pairs), &e);
    assert_non_null(t);
    return t;
}

static void test_agents_are_asked_for_an_expected_trigger_at_once_and_it_is_the_one_that_asks(void **state)
{
    struct world *w = *state;
    tell_scaled_object(w, "ml", "web", our_address);
    assert_true(w->n_wants > 0);
    assert_int_equal(n_memories(w), 1);
    struct trigger *t = parse(w, "50");
    struct workload_memory *m = cluster_memory(cluster_find(w->cluster, "ml", "web"), t);
    assert_ptr_equal(workload_memory_trigger(m), t);
    assert_int_equal(n_memories(w), 1);
    trigger_unref(t);
    size_t n = w->n_wants;
    world_pass(w, 6);
    assert_true(w->n_wants > n); /* looked at without a question */
    while (fake_kube.gets)
        fake_scale(0, 0, "");
}

static void test_a_trigger_that_nobody_asks_for_is_forgotten_after_15_minutes(void **state)
{
    struct world *w = *state;
    tell_scaled_object(w, "ml", "web", our_address);
    struct trigger *t = parse(w, "60");
    (void)cluster_memory(cluster_find(w->cluster, "ml", "web"), t);
    trigger_unref(t);
    assert_int_equal(n_memories(w), 2);
    world_pass(w, 14 * 60);
    assert_int_equal(n_memories(w), 2);
    world_pass(w, 62);
    assert_int_equal(n_memories(w), 1); /* the expected one stays */
}

static void test_peers_that_ask_with_any_metadata_find_a_ceiling(void **state)
{
    struct world *w = *state;
    tell_scaled_object(w, "ml", "web", our_address);
    struct workload_memory *expected = cluster_memory(cluster_find(w->cluster, "ml", "web"), parse(w, "50"));
    for (int i = 0; i < 500; i++) {
        char target[16];
        (void)snprintf(target, sizeof(target), "%d", 1000 + i);
        struct trigger *t = parse(w, target);
        struct workload_memory *m = cluster_memory(cluster_find(w->cluster, "ml", "web"), t);
        assert_ptr_equal(workload_memory_trigger(m), t);
        trigger_unref(t);
    }
    assert_int_equal(n_memories(w), 64);
    struct trigger *t = parse(w, "50"); /* that of the ScaledObject is still the one from the beginning */
    assert_ptr_equal(cluster_memory(cluster_find(w->cluster, "ml", "web"), t), expected);
    assert_int_equal(n_memories(w), 64);
    trigger_unref(t);
    trigger_unref(t); /* the reference from the beginning */
}

static void add_error(void *context, const char *error)
{
    (void)buf_printf((struct buf *)context, "%s\n", error);
}

static void test_triggers_of_others_and_those_that_are_refused_are_not_expected(void **state)
{
    struct world *w = *state;
    const struct kube_pair ours[] = {
        {"scalerAddress", our_address}, {"metricType", "gpu_utilization"}, {"targetValue", "50"}};
    const struct kube_pair others[] = {
        {"scalerAddress", "other:6000"}, {"metricType", "gpu_utilization"}, {"targetValue", "60"}};
    const struct kube_pair wrong[] = {{"scalerAddress", our_address}, {"targetVale", "70"}};
    const struct kube_trigger rows[] = {
        {"external", "", others, 3}, {"external", "", wrong, 2}, {"external", "", ours, 3}};
    struct kube_scaled_object object = {.meta = META("ml", "web"),
                                        .target_api_version = "apps/v1",
                                        .target_kind = "Deployment",
                                        .target_name = "web",
                                        .hpa_name = "",
                                        .triggers = rows,
                                        .n_triggers = ARRAY_LEN(rows),
                                        .fallback_behavior = ""};
    struct kube_object told = {.kind = KUBE_SCALED_OBJECT, .meta = object.meta, .scaled_object = &object};
    fake_tell(fake_watch(KUBE_SCALED_OBJECT, NULL), &told);
    const struct trigger *only = NULL;
    cluster_each_memory(cluster_find(w->cluster, "ml", "web"), take, &only);
    assert_int_equal(n_memories(w), 1);
    assert_double_same(only->target, 50);
    BUF_AUTO struct buf text;
    buf_init(&text, 10000);
    cluster_each_refusal(cluster_find(w->cluster, "ml", "web"), add_error, &text);
    assert_non_null(strstr(buf_cstr(&text), "targetVale"));
    assert_ptr_equal(strchr(buf_cstr(&text), '\n'), buf_cstr(&text) + text.len - 1); /* one */
}

static void test_a_trigger_that_was_changed_is_forgotten(void **state)
{
    struct world *w = *state;
    tell_scaled_object(w, "ml", "web", our_address);
    struct trigger *asked = parse(w, "60"); /* somebody asks otherwise: that stays */
    (void)cluster_memory(cluster_find(w->cluster, "ml", "web"), asked);
    tell_scaled_object(w, "ml", "web", "keda-gpu-scaler:6000"); /* another text, another trigger */
    assert_int_equal(n_memories(w), 2);
    struct trigger *before = parse(w, "50");
    const struct trigger *last = NULL;
    cluster_each_memory(cluster_find(w->cluster, "ml", "web"), take, &last);
    assert_ptr_not_equal(last, asked);
    assert_ptr_not_equal(last, before);
    trigger_unref(asked);
    trigger_unref(before);
}

static void test_a_reload_leaves_each_trigger_once(void **state)
{
    struct world *w = *state;
    tell_scaled_object(w, "ml", "web", our_address);
    struct trigger *old = parse(w, "50");
    struct workload_memory *before = cluster_memory(cluster_find(w->cluster, "ml", "web"), old);
    trigger_cache_flush(w->triggers, &world_settings); /* as they were: nothing is forgotten */
    cluster_reload(w->cluster);
    assert_ptr_equal(cluster_memory(cluster_find(w->cluster, "ml", "web"), old), before);
    static const struct trigger_default entry = {.name = "other"};
    static const struct trigger_settings settings = {
        .default_scope = TRIGGER_WORKLOAD, .defaults = &entry, .n_defaults = 1};
    trigger_cache_flush(w->triggers, &settings);
    cluster_reload(w->cluster);
    assert_int_equal(n_memories(w), 1);
    struct trigger *t = parse(w, "50");
    assert_ptr_not_equal(t, old);
    const struct trigger *only = NULL;
    cluster_each_memory(cluster_find(w->cluster, "ml", "web"), take, &only);
    assert_ptr_equal(only, t);
    trigger_unref(old);
    trigger_unref(t);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_facts_are_of_one_read_of_scale_and_the_pods_that_it_selects),
        TEST(test_scale_is_read_every_10_s_while_asked_and_every_minute_while_not),
        TEST(test_a_hub_that_was_not_asked_for_a_while_answers_the_first_question),
        TEST(test_changes_lead_to_one_more_read_within_two_seconds),
        TEST(test_a_change_while_scale_is_read_leads_to_another_read),
        TEST(test_an_hpa_that_moves_while_scale_is_read_leads_to_another_read_too),
        TEST(test_a_pod_more_counts_as_a_replica_before_scale_says_so),
        TEST(test_another_target_starts_from_nothing),
        TEST(test_another_selector_watches_other_pods),
        TEST(test_a_pod_of_the_same_name_with_another_uid_is_another_pod),
        TEST(test_a_failed_read_says_why_and_is_tried_again),
        TEST(test_with_the_api_away_the_count_stands_for_40_s),
        TEST(test_a_read_that_never_ends_does_not_make_the_count_stand),
        TEST(test_a_scale_without_a_selector_is_an_error_unless_it_is_zero),
        TEST(test_an_hpa_is_known_not_made_not_read_or_not_permitted),
        TEST(test_who_scales_the_same_target_is_counted),
        TEST(test_a_scaled_job_is_known_as_one),
        TEST(test_where_scaled_objects_may_not_be_read_pod_selector_stands_in),
        TEST(test_nobody_is_answered_with_the_pods_of_another_pod_selector),
        TEST(test_a_part_of_a_list_of_pods_is_no_list),
        TEST(test_pods_that_may_not_be_read_are_told_once),
        TEST(test_pods_that_can_no_longer_be_read_are_not_known),
        TEST(test_agents_are_asked_for_an_expected_trigger_at_once_and_it_is_the_one_that_asks),
        TEST(test_a_trigger_that_nobody_asks_for_is_forgotten_after_15_minutes),
        TEST(test_peers_that_ask_with_any_metadata_find_a_ceiling),
        TEST(test_triggers_of_others_and_those_that_are_refused_are_not_expected),
        TEST(test_a_trigger_that_was_changed_is_forgotten),
        TEST(test_a_reload_leaves_each_trigger_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
