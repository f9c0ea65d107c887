/* Rows of pods on devices: who has one and for how long, what is measured of it and what is not. */
#include "attribution/node.h"

/* ---- who is where ---- */

static void test_without_procfs_rows_are_what_the_kubelet_lists(void **state)
{
    (void)state;
    start(false);
    update();
    assert_int_equal(seen()->n_holders, 0);
    hold(ALONE(GPU0, "a"), SHARED(GPU1, "b"), SHARED(GPU1, "a"), ALONE(MIG, "c"));
    look();
    assert_seen("GPU-0 ml/a ? L0 - -; GPU-1 ml/a ? LS0 - -; GPU-1 ml/b ? LS0 - -; MIG-3 ml/c ? L0 - -");
    assert_sight(SNAPSHOT_SIGHT_OFF, "");
    assert_null(seen()->uses);
    assert_int_equal(seen()->taken_ns, rig.now_ns);
    assert_int_equal(seen()->holders[0].since_ns, rig.now_ns);
}

static void test_containers_of_a_pod_are_one_row_and_its_shares_a_sum(void **state)
{
    (void)state;
    start(false);
    hold({.uuid = "GPU-0", .ns = "ml", .pod = "a", .is_shared = true, .shares = 2},
         {.uuid = "GPU-0", .ns = "ml", .pod = "a", .is_shared = true, .shares = 3});
    look();
    assert_int_equal(seen()->n_holders, 1);
    assert_int_equal(seen()->holders[0].shares, 5);
    look();
    assert_int_equal(seen()->holders[0].shares, 5);
}

static void test_pods_on_a_shared_gpu_each_have_the_sum_of_their_processes(void **state)
{
    (void)state;
    hold(SHARED(GPU0, "a"), SHARED(GPU0, "b"));
    put_in_pod(11, UID_A, ID_A);
    put_in_pod(12, UID_A, ID_A);
    put_in_pod(13, UID_B, ID_B);
    list(GPU0, {11, 100, 10}, {12, 200, 15}, {13, 1000, 40});
    list_none(GPU1);
    assert_true(look());
    assert_seen("GPU-0 ml/a a LS2 25 300; GPU-0 ml/b b LS1 40 1000");
    assert_sight(SNAPSHOT_SIGHT_OK, "");
    assert_int_equal(seen()->n_unattributed, 0);
    assert_string_equal(seen()->holders[0].pod_uid, UID_A);
}

static void test_a_holder_without_a_process_has_0(void **state)
{
    (void)state;
    hold(SHARED(GPU0, "a"), SHARED(GPU0, "b"), ALONE(GPU1, "b"));
    put_in_pod(11, UID_A, ID_A);
    list(GPU0, {11, 100, 30});
    list_none(GPU1);
    look();
    assert_seen("GPU-0 ml/a a LS1 30 100; GPU-0 ml/b ? LS0 0 0; GPU-1 ml/b ? L0 0 0");
}

static void test_a_holder_is_unknown_while_a_pod_without_a_name_is_on_the_device(void **state)
{
    (void)state;
    hold(SHARED(GPU0, "a"), SHARED(GPU0, "nameless"), ALONE(GPU1, "b"));
    put_in_pod(11, UID_A, ID_A);
    put_in_pod(12, UID_C, ID_B);
    list(GPU0, {11, 100, 30}, {12, 200, 60});
    list_none(GPU1);
    look();
    assert_seen("GPU-0 / c S1 60 200; GPU-0 ml/a a LS1 30 100; GPU-0 ml/nameless ? LS0 - -; GPU-1 ml/b ? L0 0 0");
    assert_int_equal(seen()->n_unattributed, 0);
}

static void test_processes_of_no_pod_are_a_row_without_a_name(void **state)
{
    (void)state;
    hold(SHARED(GPU0, "a"));
    put_in_pod(11, UID_A, ID_A);
    put_process(12, 1, HOST);
    put_process(13, 1, "0::/system.slice/docker-" ID_B ".scope\n");
    list(GPU0, {11, 100, 30}, {12, 7, 5}, {13, 8, 6});
    look();
    assert_seen("GPU-0 / ? S2 11 15; GPU-0 ml/a a LS1 30 100");
    assert_int_equal(seen()->n_unattributed, 0);
}

static void test_what_has_ended_has_no_memory_and_what_did_nothing_is_no_doubt(void **state)
{
    (void)state;
    hold(SHARED(GPU0, "a"));
    put_in_pod(11, UID_A, ID_A);
    list(GPU0, {11, 100, 30}, {12, -1, 7}); /* 12 has ended, the driver still has samples of it */
    look();
    assert_seen("GPU-0 / ? S1 7 0; GPU-0 ml/a a LS1 - 100");
    pass_time(5 * NS_PER_S);
    list(GPU0, {11, 100, 30}, {12, 50, 0});
    look();
    assert_seen("GPU-0 / ? S1 0 50; GPU-0 ml/a a LS1 30 100");
}

static void test_a_pod_without_a_name_that_does_nothing_is_no_doubt(void **state)
{
    (void)state;
    hold(SHARED(GPU0, "a"));
    put_in_pod(12, UID_C, ID_B);
    list(GPU0, {12, 200, 0});
    look();
    assert_seen("GPU-0 / c S1 0 200; GPU-0 ml/a ? LS0 0 -");
}

/* ---- rows over time ---- */

static void test_a_row_stays_while_it_is_listed_and_goes_with_its_last_reason(void **state)
{
    (void)state;
    hold(SHARED(GPU0, "a"));
    put_in_pod(11, UID_A, ID_A);
    put_in_pod(12, UID_B, ID_B);
    list(GPU0, {11, 100, 30}, {12, 5, 6});
    look();
    assert_seen("GPU-0 ml/a a LS1 30 100; GPU-0 ml/b b S1 6 5");
    pass_time(5 * NS_PER_S);
    list_none(GPU0);
    look();
    assert_seen("GPU-0 ml/a a LS0 0 0");
    hold_in(SNAPSHOT_OWNERS_OK, NULL, 0);
    update();
    assert_int_equal(seen()->n_holders, 0);
}

static void test_rows_of_the_last_good_list_stay_while_the_kubelet_fails(void **state)
{
    (void)state;
    const struct snapshot_holding one[] = {SHARED(GPU0, "a")};
    hold_in(SNAPSHOT_OWNERS_OK, one, 1);
    list_none(GPU0);
    look();
    uint32_t id = seen()->holders[0].id;
    hold_in(SNAPSHOT_OWNERS_FAILED, one, 1);
    update();
    assert_int_equal(seen()->n_holders, 1);
    assert_int_equal(seen()->holders[0].id, id);
    hold_in(SNAPSHOT_OWNERS_FAILED, NULL, 0);
    update();
    assert_int_equal(seen()->n_holders, 0);
}

static void test_a_pod_that_comes_back_under_its_name_is_a_new_one(void **state)
{
    (void)state;
    hold(SHARED(GPU0, "a"));
    put_in_pod(11, UID_A, ID_A);
    list(GPU0, {11, 100, 30});
    look();
    uint32_t id = seen()->holders[0].id;
    name_pod("ml", "a", UID_C);
    put_in_pod(12, UID_C, ID_B);
    pass_time(5 * NS_PER_S);
    list(GPU0, {12, 7, 8});
    look();
    assert_seen("GPU-0 ml/a c LS1 8 7");
    assert_true(seen()->holders[0].id > id);
    assert_int_equal(seen()->holders[0].since_ns, rig.now_ns);
}

static void test_of_two_pods_of_one_name_the_newer_is_the_one_that_is_listed(void **state)
{
    (void)state;
    hold(SHARED(GPU0, "a"));
    name_pod("ml", "a", UID_C);
    put_in_pod(12, UID_C, ID_B);
    list(GPU0, {12, 7, 8});
    look();
    put_in_pod(11, UID_A, ID_A);
    pass_time(5 * NS_PER_S);
    list(GPU0, {11, 100, 30}, {12, 7, 8});
    look();
    assert_seen("GPU-0 ml/a a LS1 30 100; GPU-0 ml/a c S1 8 7");
}

static void test_a_device_that_is_gone_takes_its_rows_along(void **state)
{
    (void)state;
    hold(SHARED(GPU0, "a"), ALONE(GPU1, "b"));
    look();
    snapshot_store_remove(rig.store, uuids[GPU0]);
    pass_time(NS_PER_S);
    look();
    assert_int_equal(seen()->n_holders, 1);
    assert_string_equal(seen()->holders[0].uuid, "GPU-1");
    attribution_holders_update(rig.holders, NULL, rig.owners, rig.processes);
    assert_int_equal(seen()->n_holders, 0);
}

static void test_a_pod_that_is_not_listed_is_news_once(void **state)
{
    (void)state;
    put_in_pod(11, UID_A, ID_A);
    put_process(12, 1, HOST);
    list(GPU0, {12, 1, 2});
    look();
    assert_false(rig.has_news);
    list(GPU0, {11, 1, 2}, {12, 1, 2});
    look();
    assert_true(rig.has_news);
    look();
    assert_false(rig.has_news);
    assert_true(attribution_holders_has_process(rig.holders, "GPU-0", "ml", "a"));
    assert_false(attribution_holders_has_process(rig.holders, "GPU-1", "ml", "a"));
    assert_false(attribution_holders_has_process(rig.holders, "GPU-0", "ml", "b"));
}

static void test_means_and_peaks_of_a_pod_are_those_of_any_reading(void **state)
{
    (void)state;
    double mean, peak;
    put_in_pod(11, UID_A, ID_A);
    for (int i = 0; i < 10; i++) {
        list(GPU0, {11, 100, i % 2 ? 80 : 20});
        look();
        pass_time(NS_PER_S);
    }
    const struct snapshot_holder *h = &seen()->holders[0];
    rig.now_ns -= NS_PER_S;
    assert_true(snapshot_mean(seen()->uses, h->use, SNAPSHOT_UTILIZATION, rig.now_ns, 4 * NS_PER_S, &mean));
    assert_double_near(mean, 50, 1e-9);
    assert_true(snapshot_peak(seen()->uses, h->use, SNAPSHOT_UTILIZATION, rig.now_ns, 4 * NS_PER_S, &peak));
    assert_double_same(peak, 80);
    assert_true(snapshot_is_fresh(seen()->uses, h->use, SNAPSHOT_MEMORY_USED, rig.now_ns + 14 * NS_PER_S));
    assert_false(snapshot_is_fresh(seen()->uses, h->use, SNAPSHOT_MEMORY_USED, rig.now_ns + 16 * NS_PER_S));
    assert_false(snapshot_is_fresh(seen()->uses, h->use, SNAPSHOT_UTILIZATION, rig.now_ns + 6 * NS_PER_S));
}

static void test_a_list_that_was_read_once_is_recorded_once(void **state)
{
    (void)state;
    put_in_pod(11, UID_A, ID_A);
    list(GPU0, {11, 100, 30});
    look();
    int64_t taken_ns = rig.now_ns;
    for (int i = 0; i < 3; i++) {
        pass_time(NS_PER_S);
        assert_false(look());
    }
    assert_int_equal(seen()->holders[0].use->readings[SNAPSHOT_MEMORY_USED].taken_ns, taken_ns);
    assert_int_equal(seen()->holders[0].use->readings[SNAPSHOT_UTILIZATION].taken_ns, taken_ns);
}

static void test_a_list_that_fails_stands_for_a_while(void **state)
{
    (void)state;
    put_in_pod(11, UID_A, ID_A);
    list(GPU0, {11, 100, 30});
    look();
    device(GPU0)->process_list.status = SNAPSHOT_FAILED;
    pass_time(14 * NS_PER_S);
    look();
    assert_int_equal(seen()->n_holders, 1);
    pass_time(2 * NS_PER_S);
    look();
    assert_int_equal(seen()->n_holders, 0);
}

/* ---- what is not measured ---- */

static void test_of_a_mig_device_only_memory_is_told(void **state)
{
    (void)state;
    hold(ALONE(MIG, "a"), ALONE(GPU0, "b"));
    put_in_pod(11, UID_A, ID_A);
    list(MIG, {11, 100, 5});
    device(MIG)->process_utilization.status = SNAPSHOT_OK; /* whatever a driver makes up */
    device(MIG)->process_utilization.taken_ns = rig.now_ns;
    list_none(GPU0);
    look();
    assert_seen("GPU-0 ml/b ? L0 0 0; MIG-3 ml/a a L1 - 100");
}

static void test_what_the_driver_does_not_say_of_one_process_is_not_known_of_the_pod(void **state)
{
    (void)state;
    put_in_pod(11, UID_A, ID_A);
    put_in_pod(12, UID_A, ID_A);
    put_in_pod(13, UID_B, ID_A);
    list(GPU0, {11, 100, -1}, {12, -1, 30}, {13, 7, 8});
    look();
    assert_seen("GPU-0 ml/a a S2 - -; GPU-0 ml/b b S1 8 7");
}

static void test_more_than_100_percent_is_100(void **state)
{
    (void)state;
    put_in_pod(11, UID_A, ID_A);
    put_in_pod(12, UID_A, ID_A);
    list(GPU0, {11, 1, 70}, {12, 1, 60});
    look();
    assert_seen("GPU-0 ml/a a S2 100 2");
}

static void test_a_device_whose_processes_are_not_given_measures_nobody(void **state)
{
    (void)state;
    hold(SHARED(GPU0, "a"), ALONE(GPU1, "b"));
    list_none(GPU0);
    device(GPU1)->process_list.status = SNAPSHOT_UNSUPPORTED;
    device(GPU1)->process_utilization.status = SNAPSHOT_UNSUPPORTED;
    look();
    assert_seen("GPU-0 ml/a ? LS0 0 0; GPU-1 ml/b ? L0 - -");
    assert_null(seen()->holders[1].use);
    assert_sight(SNAPSHOT_SIGHT_OK, "");
}

static void test_while_processes_are_left_out_of_the_snapshot_nobody_is_measured(void **state)
{
    (void)state;
    hold(ALONE(GPU1, "b"));
    struct use *many = mem_new_array(SNAPSHOT_PROCESSES_MAX + 1, sizeof(*many));
    for (uint32_t i = 0; i <= SNAPSHOT_PROCESSES_MAX; i++)
        many[i] = (struct use){.pid = i + 1, .memory = 1, .utilization = 1};
    list_n(GPU0, many, SNAPSHOT_PROCESSES_MAX + 1);
    list_none(GPU1);
    look();
    assert_int_equal(rig.snapshot->n_processes_dropped, 1);
    assert_seen("GPU-0 / ? S8192 - -; GPU-1 ml/b ? L0 - -");
    free(many);
}

static void test_rows_beyond_the_ceiling_are_left_out_and_counted(void **state)
{
    (void)state;
    struct snapshot_holding *many = mem_new_array(SNAPSHOT_DEVICES_MAX + 5, sizeof(*many));
    char(*names)[16] = mem_new_array(SNAPSHOT_DEVICES_MAX + 5, sizeof(*names));
    for (size_t i = 0; i < SNAPSHOT_DEVICES_MAX + 5; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "p-%zu", i);
        many[i] = (struct snapshot_holding)SHARED(GPU0, names[i]);
    }
    hold_in(SNAPSHOT_OWNERS_OK, many, SNAPSHOT_DEVICES_MAX + 5);
    look();
    assert_int_equal(seen()->n_holders, SNAPSHOT_DEVICES_MAX);
    static const struct metric_desc same = {.name = "keda_gpu_scaler_holders_dropped"};
    assert_double_same(metric_value(metric_only(metric_register(rig.metrics, &same))), 5);
    free(many);
    free(names);
}

/* ---- memory by the minute ---- */

static void assert_minute(int64_t back, double low, double high)
{
    const struct snapshot_minutes *m = seen()->holders[0].memory;
    assert_non_null(m);
    assert_int_equal(m->minute, rig.now_ns / (60 * NS_PER_S));
    const struct snapshot_extremes *x = &m->of[(m->minute - back) % SNAPSHOT_MINUTES];
    if (low > high) {
        assert_true(x->low > x->high);
        return;
    }
    assert_double_near((double)x->low, low, 1e-4);
    assert_double_near((double)x->high, high, 1e-4);
}

static void test_memory_of_a_device_held_alone_is_the_devices(void **state)
{
    (void)state;
    hold(ALONE(GPU0, "a"));
    look();
    assert_null(seen()->holders[0].memory);
    rig.now_ns = 6000 * NS_PER_S;
    static const double used[] = {40, 20, 90, 60};
    for (size_t i = 0; i < ARRAY_LEN(used); i++) {
        record(GPU0, 0, used[i], 100 - used[i]);
        look();
        pass_time(NS_PER_S);
    }
    rig.now_ns -= NS_PER_S;
    assert_minute(0, 20, 90);
    assert_minute(1, 1, 0);
    pass_time(60 * NS_PER_S);
    record(GPU0, 0, 50, 50);
    look();
    assert_minute(0, 50, 50);
    assert_minute(1, 20, 90);
    pass_time(29 * 60 * NS_PER_S);
    record(GPU0, 0, 70, 30);
    look();
    assert_minute(0, 70, 70);
    assert_minute(29, 50, 50);
    assert_minute(28, 1, 0);
    pass_time(3600 * NS_PER_S);
    record(GPU0, 0, 10, 90);
    look();
    for (int64_t back = 1; back < SNAPSHOT_MINUTES; back++)
        assert_minute(back, 1, 0);
}

static void test_memory_on_a_shared_device_is_own_of_own_and_free(void **state)
{
    (void)state;
    hold(SHARED(GPU0, "a"));
    put_in_pod(11, UID_A, ID_A);
    put_in_pod(12, UID_B, ID_B);
    list(GPU0, {11, 20, 1}, {12, 50, 1});
    record(GPU0, 0, 70, 30);
    look();
    assert_minute(0, 40, 40);
}

static void test_memory_on_a_shared_device_that_was_read_too_long_ago_is_not_recorded(void **state)
{
    (void)state;
    hold(SHARED(GPU0, "a"));
    put_in_pod(11, UID_A, ID_A);
    list(GPU0, {11, 20, 1});
    record(GPU0, 0, 70, 30);
    look();
    assert_minute(0, 40, 40);
    pass_time(16 * NS_PER_S);
    record(GPU0, 0, 20, 80);
    look();
    assert_minute(0, 40, 40);
}

static void test_memory_on_a_shared_device_is_not_known_without_processes(void **state)
{
    (void)state;
    hold(SHARED(GPU0, "a"));
    record(GPU0, 0, 70, 30);
    look();
    assert_null(seen()->holders[0].memory);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up_running, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_without_procfs_rows_are_what_the_kubelet_lists, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_containers_of_a_pod_are_one_row_and_its_shares_a_sum, set_up, tear_down),
        T(test_pods_on_a_shared_gpu_each_have_the_sum_of_their_processes),
        T(test_a_holder_without_a_process_has_0),
        T(test_a_holder_is_unknown_while_a_pod_without_a_name_is_on_the_device),
        T(test_processes_of_no_pod_are_a_row_without_a_name),
        T(test_what_has_ended_has_no_memory_and_what_did_nothing_is_no_doubt),
        T(test_a_pod_without_a_name_that_does_nothing_is_no_doubt),
        T(test_a_row_stays_while_it_is_listed_and_goes_with_its_last_reason),
        T(test_rows_of_the_last_good_list_stay_while_the_kubelet_fails),
        T(test_a_pod_that_comes_back_under_its_name_is_a_new_one),
        T(test_of_two_pods_of_one_name_the_newer_is_the_one_that_is_listed),
        T(test_a_device_that_is_gone_takes_its_rows_along),
        T(test_a_pod_that_is_not_listed_is_news_once),
        T(test_means_and_peaks_of_a_pod_are_those_of_any_reading),
        T(test_a_list_that_was_read_once_is_recorded_once),
        T(test_a_list_that_fails_stands_for_a_while),
        T(test_of_a_mig_device_only_memory_is_told),
        T(test_what_the_driver_does_not_say_of_one_process_is_not_known_of_the_pod),
        T(test_more_than_100_percent_is_100),
        T(test_a_device_whose_processes_are_not_given_measures_nobody),
        T(test_while_processes_are_left_out_of_the_snapshot_nobody_is_measured),
        T(test_rows_beyond_the_ceiling_are_left_out_and_counted),
        T(test_memory_of_a_device_held_alone_is_the_devices),
        T(test_memory_on_a_shared_device_is_own_of_own_and_free),
        T(test_memory_on_a_shared_device_that_was_read_too_long_ago_is_not_recorded),
        T(test_memory_on_a_shared_device_is_not_known_without_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
