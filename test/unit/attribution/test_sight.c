/* Processes put to pods: by /proc as it is at the moment, names from trees of logs, and whether pids can be trusted. */
#include "attribution/node.h"

static void test_a_process_that_was_gone_before_the_look_is_untold_and_nobody_else_is_measured(void **state)
{
    (void)state;
    hold(SHARED(GPU0, "a"), ALONE(GPU1, "b"));
    list(GPU0, {11, 100, 30});
    list_none(GPU1);
    look();
    assert_seen("GPU-0 / ? S1 30 100; GPU-0 ml/a ? LS0 - 0; GPU-1 ml/b ? L0 0 0");
    assert_int_equal(seen()->n_unattributed, 1);
}

static void test_a_path_that_is_hidden_by_a_cgroup_namespace_is_untold(void **state)
{
    (void)state;
    put_process(11, 1, "0::/../cri-containerd-" ID_A ".scope\n");
    list(GPU0, {11, 100, 30});
    look();
    assert_int_equal(seen()->n_unattributed, 1);
}

static void test_a_process_that_ends_after_a_look_keeps_its_pod_while_it_is_listed(void **state)
{
    (void)state;
    put_in_pod(11, UID_A, ID_A);
    list(GPU0, {11, 100, 30});
    look();
    end_process(11);
    pass_time(5 * NS_PER_S);
    list(GPU0, {11, 100, 20});
    look();
    assert_seen("GPU-0 ml/a a S1 20 100");
}

static void test_a_pid_that_is_used_again_is_another_process(void **state)
{
    (void)state;
    put_in_pod(11, UID_A, ID_A);
    list(GPU0, {11, 100, 30});
    look();
    assert_seen("GPU-0 ml/a a S1 30 100");
    end_process(11);
    put_process(11, 999, "0::/kubepods/pod" UID_B "/" ID_B "\n");
    pass_time(5 * NS_PER_S);
    list(GPU0, {11, 200, 40});
    assert_true(look());
    assert_seen("GPU-0 ml/b b S1 40 200");
}

static void test_the_same_start_is_the_same_process_and_its_cgroup_is_not_read_again(void **state)
{
    (void)state;
    put_process(11, 5, "0::/kubepods/pod" UID_A "/" ID_A "\n");
    list(GPU0, {11, 100, 30});
    look();
    put_process(11, 5, HOST);
    pass_time(5 * NS_PER_S);
    list(GPU0, {11, 100, 30});
    look();
    assert_seen("GPU-0 ml/a a S1 30 100");
}

static void test_a_process_that_appears_between_lists_is_looked_at(void **state)
{
    (void)state;
    put_in_pod(11, UID_A, ID_A);
    put_in_pod(12, UID_B, ID_B);
    list(GPU0, {11, 100, 30});
    assert_true(look());
    assert_false(look());
    struct snapshot_process both[] = {{.pid = 11, .has_memory = true}, {.pid = 12, .has_memory = true}};
    snapshot_store_set_processes(rig.store, device(GPU0), both, 2);
    assert_true(look());
    assert_int_equal(seen()->n_holders, 2);
}

static void test_a_static_pod_is_named_by_the_hash_of_its_file(void **state)
{
    (void)state;
    name_pod("kube-system", "proxy-node1", STATIC);
    put_in_pod(11, STATIC, ID_A);
    list(GPU0, {11, 1, 2});
    look();
    assert_seen("GPU-0 kube-system/proxy-node1 d S1 2 1");
}

static void test_links_of_logs_name_pods_whose_uid_is_hidden(void **state)
{
    (void)state;
    hold(SHARED(GPU0, "c"), SHARED(GPU0, "d"));
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/c_ml_main-" ID_A ".log", rig.log_links);
    assert_int_equal(symlink("/nowhere", path), 0);
    put_process(11, 1, "0::/../cri-containerd-" ID_A ".scope\n");
    list(GPU0, {11, 1, 2});
    look();
    assert_seen("GPU-0 ml/c ? LS1 2 1; GPU-0 ml/d ? LS0 0 0");
    assert_int_equal(seen()->n_unattributed, 0);
}

static void test_a_name_that_comes_later_is_found_and_the_past_stays(void **state)
{
    (void)state;
    put_in_pod(11, UID_C, ID_A);
    list(GPU0, {11, 1, 2});
    look();
    assert_seen("GPU-0 / c S1 2 1");
    uint32_t id = seen()->holders[0].id;
    name_pod("ml", "late", UID_C);
    pass_time(5 * NS_PER_S);
    list(GPU0, {11, 1, 4});
    look();
    assert_seen("GPU-0 ml/late c S1 4 1");
    assert_int_equal(seen()->holders[0].id, id);
}

static void test_folders_are_read_once_a_second_at_most_and_seldom_where_it_does_not_help(void **state)
{
    (void)state;
    put_in_pod(11, UID_C, ID_A);
    list(GPU0, {11, 1, 2});
    look(); /* read: in vain */
    name_pod("ml", "late", UID_C);
    pass_time(NS_PER_S / 2);
    list(GPU0, {11, 1, 2});
    look();
    assert_seen("GPU-0 / c S1 2 1");
    pass_time(NS_PER_S);
    list(GPU0, {11, 1, 2});
    look();
    assert_seen("GPU-0 ml/late c S1 2 1");
}

/* ---- sight ---- */

static void test_nothing_is_said_before_the_first_look(void **state)
{
    (void)state;
    update();
    assert_sight(SNAPSHOT_SIGHT_STARTING, "");
}

static void test_a_procfs_that_is_not_there_is_said(void **state)
{
    (void)state;
    remove_tree(rig.procfs);
    hold(SHARED(GPU0, "a"));
    list(GPU0, {11, 100, 30});
    look();
    assert_seen("GPU-0 ml/a ? LS0 - -");
    assert_sight(SNAPSHOT_SIGHT_NO_PROCFS, "mount the host's /proc");
    assert_int_equal(seen()->n_unattributed, 1);
}

static void test_in_a_pid_namespace_of_its_own_nobody_is_measured(void **state)
{
    (void)state;
    put_self(NESTED, "0::/\n");
    hold(SHARED(GPU0, "a"));
    list_none(GPU0);
    look();
    assert_seen("GPU-0 ml/a ? LS0 - -");
    assert_sight(SNAPSHOT_SIGHT_NO_HOST_PIDS, "agent.hostPID=true");
}

static void test_in_a_nested_node_pids_that_are_in_other_pods_prove_the_sight(void **state)
{
    (void)state;
    put_self(NESTED, "0::/\n");
    hold(SHARED(GPU0, "a"), SHARED(GPU0, "b"));
    put_in_pod(11, UID_A, ID_A);
    list(GPU0, {11, 100, 30}, {12, 1, 1});
    look();
    assert_sight(SNAPSHOT_SIGHT_OK, "");
    pass_time(5 * NS_PER_S);
    list_none(GPU0); /* nothing speaks against it */
    look();
    assert_seen("GPU-0 ml/a a LS0 0 0; GPU-0 ml/b ? LS0 0 0");
}

static void test_in_a_nested_node_pids_of_another_namespace_prove_nothing(void **state)
{
    (void)state;
    put_self(NESTED, "0::/\n");
    put_in_pod(11, UID_A, ID_A);
    list(GPU0, {11, 100, 30}, {12, 1, 1}, {13, 1, 1});
    look();
    assert_int_equal(seen()->n_holders, 0);
    assert_sight(SNAPSHOT_SIGHT_NO_HOST_PIDS, "hostPID");
}

static void test_in_a_nested_node_a_proof_ends_when_looks_in_a_row_speak_against_it(void **state)
{
    (void)state;
    put_self(NESTED, "0::/\n");
    put_in_pod(11, UID_A, ID_A);
    list(GPU0, {11, 100, 30});
    look();
    end_process(11);
    for (uint32_t i = 0; i < 3; i++) {
        assert_sight(SNAPSHOT_SIGHT_OK, "");
        pass_time(5 * NS_PER_S);
        list(GPU0, {11, 100, 30}, {100 + i, 1, 1});
        look();
    }
    assert_sight(SNAPSHOT_SIGHT_NO_HOST_PIDS, "hostPID");
}

static void test_in_a_nested_node_samples_of_what_is_not_listed_are_nobodys(void **state)
{
    (void)state;
    put_self(NESTED, "0::/\n");
    hold(SHARED(GPU0, "a"), SHARED(GPU0, "b"));
    put_in_pod(11, UID_A, ID_A);
    put_in_pod(12, UID_B, ID_B);
    list(GPU0, {12, -1, 50}); /* a pid of another namespace, which by chance is one here too */
    look();
    assert_sight(SNAPSHOT_SIGHT_NO_HOST_PIDS, "hostPID");
    pass_time(5 * NS_PER_S);
    list(GPU0, {11, 100, 30}, {12, -1, 50});
    look();
    assert_sight(SNAPSHOT_SIGHT_OK, "");
    assert_int_equal(seen()->n_unattributed, 1);
    assert_string_equal(seen()->holders[1].pod, "a");
    assert_int_equal(seen()->holders[2].n_processes, 0); /* of b */
}

static void test_in_a_nested_node_processes_that_have_ended_do_not_end_the_proof(void **state)
{
    (void)state;
    put_self(NESTED, "0::/\n");
    put_in_pod(11, UID_A, ID_A);
    put_in_pod(12, UID_A, ID_A);
    list(GPU0, {11, 100, 30}, {12, 100, 30});
    look();
    end_process(11);
    end_process(12);
    for (int i = 0; i < 5; i++) {
        pass_time(5 * NS_PER_S);
        list(GPU0, {11, 100, 30}, {12, 100, 30});
        look();
    }
    assert_seen("GPU-0 ml/a a S2 60 200");
}

static void test_in_a_nested_node_a_process_is_told_while_it_is_listed_on_any_device(void **state)
{
    (void)state;
    put_self(NESTED, "0::/\n");
    put_in_pod(11, UID_A, ID_A);
    list(GPU0, {11, -1, 30});
    list(GPU1, {11, 100, 5});
    look();
    assert_int_equal(seen()->n_unattributed, 0);
    assert_seen("GPU-0 ml/a a S1 30 -; GPU-1 ml/a a S1 5 100");
    pass_time(5 * NS_PER_S);
    list(GPU0, {11, -1, 30});
    list(GPU1, {11, -1, 5});
    look();
    assert_int_equal(seen()->n_unattributed, 2);
}

static void test_a_process_of_the_own_pod_proves_nothing(void **state)
{
    (void)state;
    put_self(NESTED, "0::/kubepods/pod" UID_A "/" ID_B "\n");
    put_in_pod(11, UID_A, ID_A);
    list(GPU0, {11, 100, 30});
    look();
    assert_sight(SNAPSHOT_SIGHT_NO_HOST_PIDS, "hostPID");
}

static void test_a_driver_that_lists_no_processes_is_said(void **state)
{
    (void)state;
    for (int i = GPU0; i <= GPU1; i++)
        device(i)->process_list.status = SNAPSHOT_UNSUPPORTED;
    hold(SHARED(GPU0, "a"));
    look();
    assert_seen("GPU-0 ml/a ? LS0 - -");
    assert_sight(SNAPSHOT_SIGHT_NOT_GIVEN, "lists no processes");
}

static void test_it_can_go_while_a_look_is_under_way(void **state)
{
    (void)state;
    put_in_pod(11, UID_A, ID_A);
    list(GPU0, {11, 100, 30});
    rig.snapshot = snapshot_store_publish(rig.store, rig.now_ns);
    assert_true(attribution_processes_look(rig.processes, rig.snapshot));
    assert_true(attribution_processes_look(rig.processes, rig.snapshot)); /* one waits */
    attribution_processes_free(rig.processes);
    rig.processes = NULL;
    update();
    assert_int_equal(rig.n_done, 0);
}

static void test_looks_that_overlap_are_one_after_the_other(void **state)
{
    (void)state;
    list(GPU0, {11, 100, 30});
    rig.snapshot = snapshot_store_publish(rig.store, rig.now_ns);
    for (int i = 0; i < 5; i++)
        assert_true(attribution_processes_look(rig.processes, rig.snapshot));
    int64_t end_ns = time_mono_ns() + 30 * NS_PER_S;
    while (rig.n_done < 2 && time_mono_ns() < end_ns)
        (void)net_loop_turn(rig.loop);
    assert_int_equal(rig.n_done, 2); /* the first and the newest */
    assert_false(attribution_processes_look(rig.processes, rig.snapshot));
}

static void test_paths_must_be_absolute(void **state)
{
    (void)state;
    struct err e;
    struct attribution_config config = {.loop = rig.loop, .metrics = rig.metrics, .procfs = "proc"};
    assert_null(attribution_processes_new(&config, on_looked, NULL, &e));
    assert_int_equal(e.class, ERR_INVALID_ARGUMENT);
    config.procfs = "/proc";
    config.pod_logs = "pods";
    assert_null(attribution_processes_new(&config, on_looked, NULL, &e));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up_running, tear_down)
    const struct CMUnitTest tests[] = {
        T(test_a_process_that_was_gone_before_the_look_is_untold_and_nobody_else_is_measured),
        T(test_a_path_that_is_hidden_by_a_cgroup_namespace_is_untold),
        T(test_a_process_that_ends_after_a_look_keeps_its_pod_while_it_is_listed),
        T(test_a_pid_that_is_used_again_is_another_process),
        T(test_the_same_start_is_the_same_process_and_its_cgroup_is_not_read_again),
        T(test_a_process_that_appears_between_lists_is_looked_at),
        T(test_a_static_pod_is_named_by_the_hash_of_its_file),
        T(test_links_of_logs_name_pods_whose_uid_is_hidden),
        T(test_a_name_that_comes_later_is_found_and_the_past_stays),
        T(test_folders_are_read_once_a_second_at_most_and_seldom_where_it_does_not_help),
        T(test_nothing_is_said_before_the_first_look),
        T(test_a_procfs_that_is_not_there_is_said),
        T(test_in_a_pid_namespace_of_its_own_nobody_is_measured),
        T(test_in_a_nested_node_pids_that_are_in_other_pods_prove_the_sight),
        T(test_in_a_nested_node_pids_of_another_namespace_prove_nothing),
        T(test_in_a_nested_node_a_proof_ends_when_looks_in_a_row_speak_against_it),
        T(test_in_a_nested_node_samples_of_what_is_not_listed_are_nobodys),
        T(test_in_a_nested_node_processes_that_have_ended_do_not_end_the_proof),
        T(test_in_a_nested_node_a_process_is_told_while_it_is_listed_on_any_device),
        T(test_a_process_of_the_own_pod_proves_nothing),
        T(test_a_driver_that_lists_no_processes_is_said),
        T(test_it_can_go_while_a_look_is_under_way),
        T(test_looks_that_overlap_are_one_after_the_other),
        T(test_paths_must_be_absolute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
