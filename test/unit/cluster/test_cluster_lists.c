/* Which workloads a hub follows, what it forgets, and when it knows all. */
#include "cluster/world.h"

static void test_scaled_objects_that_name_our_service_are_followed_beforehand(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *address;
        bool is_ours;
    } rows[] = {{"keda-gpu-scaler:6000", true},
                {"keda-gpu-scaler", true},
                {" keda-gpu-scaler:6000 ", true},
                {"keda-gpu-scaler.gpu:6000", true},
                {"keda-gpu-scaler.gpu.svc:6000", true},
                {"keda-gpu-scaler.gpu.svc.cluster.local:6000", true},
                {"dns:///keda-gpu-scaler.gpu.svc:6000", true},
                {"passthrough:///keda-gpu-scaler:6000", true},
                {"dns://8.8.8.8/keda-gpu-scaler.gpu.svc:6000", true},
                {"dns:keda-gpu-scaler.gpu:6000", true},
                {"keda-gpu-scaler.other.svc:6000", false},
                {"keda-gpu-scaler/x:6000", false},
                {"keda-gpu-scaler2:6000", false},
                {"keda-gpu:6000", false},
                {"other.gpu.svc:6000", false},
                {"10.0.0.1:6000", false},
                {"", false},
                {":6000", false},
                {"://", false},
                {"dns:///", false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        tell_scaled_object(w, "ml", "web", rows[i].address);
        if (is_tracked(w, "ml", "web") != rows[i].is_ours)
            fail_msg("\"%s\" is %sours", rows[i].address, rows[i].is_ours ? "" : "not ");
        gone(fake_watch(KUBE_SCALED_OBJECT, NULL), "ml", "web", "u");
        world_pass(w, 1); /* nobody ever asked for it: forgotten */
        assert_false(is_tracked(w, "ml", "web"));
    }
}

static void test_any_other_scaled_object_is_followed_from_its_first_question_on(void **state)
{
    struct world *w = *state;
    tell_scaled_object(w, "ml", "web", "proxy.other:7000");
    lists_are_complete();
    world_pass(w, 3);
    assert_int_equal(cluster_len(w->cluster), 0);
    assert_int_equal(fake_kube.n_gets, 0);
    struct cluster_workload *it = cluster_ask(w->cluster, "ml", "web", "");
    assert_string_equal(cluster_ns(it), "ml");
    assert_string_equal(cluster_name(it), "web");
    assert_ptr_equal(it, cluster_find(w->cluster, "ml", "web"));
    assert_int_equal(fake_kube.n_gets, 1); /* at once */
    assert_string_equal(fake_kube.gets->asked, "apps/v1 Deployment ml/web");
    fake_scale(1, 1, "app=web");
}

static void test_a_name_that_no_list_has_is_not_followed(void **state)
{
    struct world *w = *state;
    tell_scaled_job("ml", "batch");
    lists_are_complete();
    assert_null(cluster_ask(w->cluster, "ml", "web", ""));
    assert_null(cluster_ask(w->cluster, "batch", "ml", ""));
    assert_non_null(cluster_ask(w->cluster, "ml", "batch", ""));
    assert_int_equal(cluster_len(w->cluster), 1);
}

static void test_before_the_lists_are_complete_any_name_may_be_one(void **state)
{
    struct world *w = *state;
    assert_non_null(cluster_ask(w->cluster, "ml", "web", ""));
    assert_false(facts_of(w, "ml", "web")->is_api_synced);
    lists_are_complete();
    assert_true(facts_of(w, "ml", "web")->is_api_synced);
    assert_false(w->facts.is_known);
    tell_scaled_object(w, "ml", "web", "proxy.other:7000");
    assert_true(facts_of(w, "ml", "web")->is_known);
    assert_false(w->facts.is_api_synced); /* its scale and pods are not read yet */
}

static void test_what_nobody_asks_for_is_forgotten_after_15_minutes_with_its_pods(void **state)
{
    struct world *w = *state;
    tell_scaled_object(w, "ml", "web", "proxy.other:7000");
    tell_scaled_object(w, "ml", "ours", our_address);
    lists_are_complete();
    (void)cluster_ask(w->cluster, "ml", "web", "");
    fake_scale(1, 1, "app=web");
    assert_non_null(fake_watch(KUBE_POD, "ml"));
    for (int i = 0; i < 3; i++) { /* asking keeps it */
        world_pass(w, 14 * 60);
        assert_non_null(cluster_ask(w->cluster, "ml", "web", ""));
        assert_true(is_tracked(w, "ml", "web"));
    }
    world_pass(w, 15 * 60 + 1);
    assert_false(is_tracked(w, "ml", "web"));
    assert_true(is_tracked(w, "ml", "ours"));
    assert_null(fake_watch(KUBE_POD, "ml"));
}

static void test_a_scaled_object_that_goes_or_turns_elsewhere_is_no_longer_expected(void **state)
{
    struct world *w = *state;
    tell_scaled_object(w, "ml", "a", our_address);
    tell_scaled_object(w, "ml", "b", our_address);
    lists_are_complete();
    world_pass(w, 20 * 60);
    assert_int_equal(cluster_len(w->cluster), 2);
    tell_scaled_object(w, "ml", "a", "elsewhere:1");
    gone(fake_watch(KUBE_SCALED_OBJECT, NULL), "ml", "b", "u");
    assert_false(facts_of(w, "ml", "b")->is_known);
    world_pass(w, 1);
    assert_int_equal(cluster_len(w->cluster), 0);
}

static void test_lists_are_complete_when_read_or_not_to_be_read(void **state)
{
    struct world *w = *state;
    assert_false(cluster_is_synced(w->cluster));
    fake_synced(fake_watch(KUBE_SCALED_OBJECT, NULL));
    fake_failed(fake_watch(KUBE_SCALED_JOB, NULL), ERR_NOT_FOUND); /* KEDA without jobs */
    assert_false(cluster_is_synced(w->cluster));
    fake_failed(fake_watch(KUBE_HPA, NULL), ERR_UNAVAILABLE);
    assert_false(cluster_is_synced(w->cluster));
    fake_failed(fake_watch(KUBE_HPA, NULL), ERR_PERMISSION_DENIED);
    assert_true(cluster_is_synced(w->cluster));
    BUF_AUTO struct buf text;
    buf_init(&text, 1000);
    cluster_write_state(w->cluster, &text);
    assert_string_equal(buf_cstr(&text), "[+]scaledobjects followed (information only)\n"
                                         "[+]scaledjobs may not be read (information only)\n"
                                         "[+]horizontalpodautoscalers may not be read (information only)\n");
    /* a failure is told once, and its end once */
    assert_string_equal(buf_cstr(&w->told), "scaledjobs: NOT_FOUND; horizontalpodautoscalers: UNAVAILABLE; ");
    fake_synced(fake_watch(KUBE_HPA, NULL));
    fake_synced(fake_watch(KUBE_HPA, NULL));
    assert_non_null(strstr(buf_cstr(&w->told), "UNAVAILABLE; horizontalpodautoscalers: works; "));
    fake_failed(fake_watch(KUBE_HPA, NULL), ERR_UNAVAILABLE); /* later: what was read stands */
    assert_true(cluster_is_synced(w->cluster));
}

static void count(void *context, struct cluster_workload *it)
{
    char *last = context, key[600];
    (void)snprintf(key, sizeof(key), "%s/%s", cluster_ns(it), cluster_name(it));
    assert_true(strcmp(last, key) < 0);
    (void)snprintf(last, 600, "%s", key);
}

static void test_thousands_of_workloads_stay_in_order_and_each_reads_its_own_scale(void **state)
{
    struct world *w = *state;
    enum { N = 3000 };
    char name[32], last[600] = "";
    for (int i = 0; i < N; i++) {
        (void)snprintf(name, sizeof(name), "w-%04d", (i * 7919) % N); /* in no order */
        tell_scaled_object(w, i % 2 ? "a" : "b", name, our_address);
    }
    lists_are_complete();
    assert_int_equal(cluster_len(w->cluster), N);
    cluster_each(w->cluster, count, last);
    world_pass(w, 1);
    assert_int_equal(fake_kube.n_gets, N);
    while (fake_kube.gets)
        fake_scale(0, 0, "");
    tell_hpa("a", "w-0001"); /* of one of them: one read */
    world_pass(w, 2);
    assert_int_equal(fake_kube.n_gets, N + 1);
    fake_scale(1, 1, "app=x");
    for (int i = 0; i < N; i++) {
        (void)snprintf(name, sizeof(name), "w-%04d", i);
        gone(fake_watch(KUBE_SCALED_OBJECT, NULL), "a", name, "u");
        gone(fake_watch(KUBE_SCALED_OBJECT, NULL), "b", name, "u");
    }
    world_pass(w, 1);
    assert_int_equal(cluster_len(w->cluster), 0);
}

static void test_workloads_are_looked_at_every_5_s_a_few_at_a_time(void **state)
{
    struct world *w = *state;
    enum { N = 300, TURNS = 100 };
    char name[32];
    for (int i = 0; i < N; i++) {
        (void)snprintf(name, sizeof(name), "w-%04d", i);
        tell_scaled_object(w, "a", name, our_address);
    }
    size_t n = w->n_wants;
    for (int i = 0; i < TURNS; i++) {
        size_t before = w->n_wants;
        net_loop_skip(w->loop, 50 * NS_PER_MS);
        (void)net_loop_turn(w->loop);
        assert_true(w->n_wants - before <= N / 10); /* 3, and what a slow machine is behind */
    }
    assert_in_range(w->n_wants - n, N - N / TURNS, 2 * N);
    while (fake_kube.gets)
        fake_scale(0, 0, "");
}

static void test_peers_that_ask_for_any_name_find_a_ceiling(void **state)
{
    struct world *w = *state;
    char name[32];
    size_t n = 0;
    for (int i = 0; i < 20100; i++) {
        (void)snprintf(name, sizeof(name), "w-%d", i);
        n += cluster_ask(w->cluster, "ml", name, "") != NULL;
    }
    assert_int_equal(n, 20000);
    assert_non_null(cluster_ask(w->cluster, "ml", "w-7", "")); /* those that are followed still are */
    tell_scaled_object(w, "ml", "ours", our_address);
    assert_true(is_tracked(w, "ml", "ours"));
}

static void test_where_no_list_says_who_there_is_few_are_followed_and_no_long_names(void **state)
{
    struct world *w = *state;
    char name[400] = "", ns[400] = "";
    size_t n = 0;
    fake_failed(fake_watch(KUBE_SCALED_OBJECT, NULL), ERR_PERMISSION_DENIED);
    fake_failed(fake_watch(KUBE_SCALED_JOB, NULL), ERR_PERMISSION_DENIED);
    memset(name, 'x', 254);
    memset(ns, 'y', 254);
    assert_null(cluster_ask(w->cluster, "ml", name, "a=b"));
    assert_null(cluster_ask(w->cluster, ns, "web", "a=b"));
    name[253] = '\0';
    assert_non_null(cluster_ask(w->cluster, "ml", name, "a=b"));
    for (int i = 0; i < 1100; i++) {
        (void)snprintf(name, sizeof(name), "w-%d", i);
        n += cluster_ask(w->cluster, "ml", name, "a=b") != NULL;
    }
    assert_int_equal(n, 999);
    world_pass(w, 15 * 60 + 2);
    assert_int_equal(cluster_len(w->cluster), 0);
}

static void test_a_watch_that_goes_on_without_a_new_list_is_told_to_work(void **state)
{
    struct world *w = *state;
    world_of_web(w, 0);
    fake_kube.silent_ns = 100 * NS_PER_S;
    fake_failed(fake_watch(KUBE_HPA, NULL), ERR_UNAVAILABLE);
    fake_failed(fake_watch(KUBE_POD, "ml"), ERR_UNAVAILABLE);
    world_pass(w, 70);
    assert_string_equal(buf_cstr(&w->told), "horizontalpodautoscalers: UNAVAILABLE; pods of ml/web: UNAVAILABLE; ");
    buf_reset(&w->told);
    fake_kube.silent_ns = 0;
    fake_failed(fake_watch(KUBE_HPA, NULL), ERR_UNAVAILABLE); /* not yet */
    fake_failed(fake_watch(KUBE_POD, "ml"), ERR_UNAVAILABLE);
    world_pass(w, 50);
    assert_string_equal(buf_cstr(&w->told), "");
    world_pass(w, 20);
    assert_string_equal(buf_cstr(&w->told), "pods of ml/web: works; horizontalpodautoscalers: works; ");
    buf_reset(&w->told);
    fake_failed(fake_watch(KUBE_HPA, NULL), ERR_UNAVAILABLE); /* the next failure is told again */
    assert_string_equal(buf_cstr(&w->told), "horizontalpodautoscalers: UNAVAILABLE; ");
}

static void test_an_object_beyond_the_ceiling_is_not_known(void **state)
{
    struct world *w = *state;
    char *large MEM_AUTO = mem_new_array((2 << 20) + 1, 1);
    memset(large, 'x', 2 << 20);
    world_of_web(w, 1);
    tell_scaled_object_of(w, "ml", "web", our_address, "Deployment", large);
    assert_false(facts_of(w, "ml", "web")->is_known);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_scaled_objects_that_name_our_service_are_followed_beforehand),
        TEST(test_any_other_scaled_object_is_followed_from_its_first_question_on),
        TEST(test_a_name_that_no_list_has_is_not_followed),
        TEST(test_before_the_lists_are_complete_any_name_may_be_one),
        TEST(test_what_nobody_asks_for_is_forgotten_after_15_minutes_with_its_pods),
        TEST(test_a_scaled_object_that_goes_or_turns_elsewhere_is_no_longer_expected),
        TEST(test_lists_are_complete_when_read_or_not_to_be_read),
        TEST(test_thousands_of_workloads_stay_in_order_and_each_reads_its_own_scale),
        TEST(test_workloads_are_looked_at_every_5_s_a_few_at_a_time),
        TEST(test_peers_that_ask_for_any_name_find_a_ceiling),
        TEST(test_where_no_list_says_who_there_is_few_are_followed_and_no_long_names),
        TEST(test_a_watch_that_goes_on_without_a_new_list_is_told_to_work),
        TEST(test_an_object_beyond_the_ceiling_is_not_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
