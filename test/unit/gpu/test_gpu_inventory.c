/* gpu: which devices there are: lost and found GPUs, MIG, what a new instance inherits (nothing). */
#include "gpu/bench.h"

static void turn_mig_on(struct bench *b, int gpu)
{
    b->nvml.gpus[gpu].is_mig_on = true;
    b->nvml.gpus[gpu].mig_rc = 0;
}

static void test_a_lost_gpu_keeps_its_value_and_the_others_go_on(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 3);
    bench_cycle(&b);
    b.nvml.gpus[1].is_lost = NVML_RC_GPU_IS_LOST;
    b.nvml.gpus[2].utilization = 99;
    int64_t last_ns = bench_reading(&b, 1, SNAPSHOT_UTILIZATION)->taken_ns;
    bench_cycles(&b, 3);
    assert_int_equal(b.latest->n_devices, 3);
    assert_true(bench_gpu(&b, 1)->is_lost);
    assert_true(bench_gpu(&b, 1)->lost_reason[0] != '\0');
    assert_double_same(bench_reading(&b, 1, SNAPSHOT_UTILIZATION)->value, 15);
    assert_int_equal(bench_reading(&b, 1, SNAPSHOT_UTILIZATION)->taken_ns, last_ns);
    assert_false(bench_gpu(&b, 2)->is_lost);
    assert_double_same(bench_reading(&b, 2, SNAPSHOT_UTILIZATION)->value, 99);
    assert_int_equal(b.latest->driver, SNAPSHOT_DRIVER_OK);
    assert_int_equal(b.nvml.inits, 1); /* never re-initialised for one GPU */
}

static void test_a_lost_gpu_is_asked_again_at_growing_intervals_and_found(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 2);
    bench_cycle(&b);
    uint32_t id = bench_gpu(&b, 1)->id;
    b.nvml.gpus[1].is_lost = NVML_RC_RESET_REQUIRED;
    bench_cycles(&b, 120);
    assert_in_range(b.nvml.probes, 4, 6); /* after 5, 10, 20, 30, 30 s */
    assert_in_range(b.latest->sampler.errors, 1, 8);
    b.nvml.gpus[1].is_lost = 0;
    b.nvml.gpus[1].utilization = 42;
    bench_cycles(&b, 32);
    assert_false(bench_gpu(&b, 1)->is_lost);
    assert_string_equal(bench_gpu(&b, 1)->lost_reason, "");
    assert_double_same(bench_reading(&b, 1, SNAPSHOT_UTILIZATION)->value, 42);
    assert_int_equal(bench_gpu(&b, 1)->id, id);
}

static void test_a_gpu_that_the_driver_lists_no_more_is_lost_not_gone(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 2);
    bench_cycle(&b);
    b.nvml.n_gpus = 1;
    bench_cycle(&b);
    assert_int_equal(b.latest->n_devices, 2);
    assert_true(bench_gpu(&b, 1)->is_lost);
    assert_false(bench_gpu(&b, 0)->is_lost);
}

static void test_an_index_that_fails_concerns_that_gpu_alone(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 3);
    bench_rule(&b, "nvmlDeviceGetHandleByIndex_v2", 1, NVML_RC_UNKNOWN);
    bench_cycle(&b);
    assert_int_equal(b.latest->n_devices, 2);
    assert_int_equal(bench_reading(&b, 2, SNAPSHOT_UTILIZATION)->status, SNAPSHOT_OK);
    b.nvml.n_rules = 0;
    bench_cycles(&b, 31);
    assert_int_equal(b.latest->n_devices, 3);
    assert_int_equal(b.latest->devices[1].index, 1);
}

static void test_a_gpu_without_permission_is_passed_over(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 2);
    bench_rule(&b, "nvmlDeviceGetHandleByIndex_v2", 0, NVML_RC_NO_PERMISSION);
    bench_cycle(&b);
    assert_int_equal(b.latest->n_devices, 1);
    assert_int_equal(b.latest->driver, SNAPSHOT_DRIVER_OK);
    assert_int_equal(b.latest->sampler.errors, 0);
}

static void test_mig_devices_stand_behind_their_parent_with_their_own_memory(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 2);
    turn_mig_on(&b, 0);
    b.nvml.gpus[0].migs[1].is_there = b.nvml.gpus[0].migs[6].is_there = true; /* sparse */
    bench_cycle(&b);
    assert_int_equal(b.latest->n_devices, 4);
    const struct snapshot_device *parent = &b.latest->devices[0], *mig = &b.latest->devices[1];
    assert_int_equal(parent->kind, SNAPSHOT_MIG_PARENT);
    assert_int_equal(mig->kind, SNAPSHOT_MIG);
    assert_int_equal(b.latest->devices[2].kind, SNAPSHOT_MIG);
    assert_int_equal(b.latest->devices[3].kind, SNAPSHOT_GPU);
    assert_string_equal(mig->parent_uuid, parent->uuid);
    assert_string_equal(mig->mig_profile, "1g.10gb");
    assert_int_equal(mig->gpu_instance, 2);
    assert_int_equal(mig->index, 0);
    assert_double_same(mig->readings[SNAPSHOT_MEMORY_USED].value, 2.0 * (1 << 30));
    assert_double_same(mig->readings[SNAPSHOT_MEMORY_TOTAL].value, 10.0 * (1 << 30));
    /* board values once, on the parent; load on neither */
    assert_int_equal(mig->readings[SNAPSHOT_POWER].status, SNAPSHOT_UNSUPPORTED);
    assert_int_equal(parent->readings[SNAPSHOT_POWER].status, SNAPSHOT_OK);
    assert_int_equal(mig->readings[SNAPSHOT_UTILIZATION].status, SNAPSHOT_UNSUPPORTED);
    assert_int_equal(parent->readings[SNAPSHOT_UTILIZATION].status, SNAPSHOT_UNSUPPORTED);
}

static void test_the_profile_comes_from_the_slices_when_the_name_lacks_it(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 1);
    turn_mig_on(&b, 0);
    b.nvml.gpus[0].migs[0].is_there = true;
    (void)snprintf(b.nvml.gpus[0].migs[0].name, NVML_NAME_MAX, "NVIDIA Fake");
    bench_cycle(&b);
    assert_string_equal(b.latest->devices[1].mig_profile, "1c.3g.40gb");
}

static void test_mig_can_be_turned_on_and_off_while_running(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 1);
    b.nvml.gpus[0].mig_rc = 0; /* capable, off */
    bench_cycle(&b);
    uint32_t id = bench_gpu(&b, 0)->id;
    assert_int_equal(bench_gpu(&b, 0)->kind, SNAPSHOT_GPU);
    turn_mig_on(&b, 0);
    b.nvml.gpus[0].migs[0].is_there = true;
    bench_cycle(&b);
    assert_int_equal(b.latest->n_devices, 2);
    assert_int_equal(bench_gpu(&b, 0)->kind, SNAPSHOT_MIG_PARENT);
    assert_true(bench_gpu(&b, 0)->id != id);
    b.nvml.gpus[0].is_mig_on = false;
    bench_cycle(&b);
    assert_int_equal(b.latest->n_devices, 1);
    assert_int_equal(bench_reading(&b, 0, SNAPSHOT_UTILIZATION)->status, SNAPSHOT_OK);
}

static void test_a_layout_change_removes_and_adds_at_once(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 1);
    turn_mig_on(&b, 0);
    struct fake_mig *migs = b.nvml.gpus[0].migs;
    migs[0].is_there = migs[1].is_there = true;
    bench_cycle(&b);
    uint32_t kept = bench_device(&b, migs[1].uuid)->id, old = bench_device(&b, migs[0].uuid)->id;
    migs[0].is_there = false;
    migs[3].is_there = true;
    bench_cycle(&b);
    assert_int_equal(b.latest->n_devices, 3);
    assert_int_equal(bench_device(&b, migs[1].uuid)->id, kept);
    assert_null(snapshot_find_device(b.latest, migs[0].uuid));
    migs[0].is_there = true; /* the same shape in the same place has the same UUID: a new device all the same */
    bench_cycle(&b);
    assert_true(bench_device(&b, migs[0].uuid)->id != old);
}

static void test_an_instance_made_anew_between_two_cycles_is_a_new_device(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 1);
    turn_mig_on(&b, 0);
    struct fake_mig *migs = b.nvml.gpus[0].migs;
    migs[0].is_there = true;
    bench_cycle(&b);
    uint32_t id = bench_device(&b, migs[0].uuid)->id;
    migs[0].is_there = false;
    migs[5] = migs[0]; /* same UUID, another handle and instance */
    migs[5].handle.mig = 5;
    migs[5].gi = 9;
    migs[5].is_there = true;
    bench_cycle(&b);
    assert_int_equal(b.latest->n_devices, 2);
    assert_true(bench_device(&b, migs[5].uuid)->id != id);
    assert_int_equal(bench_device(&b, migs[5].uuid)->gpu_instance, 9);
}

static void test_a_failing_enumeration_removes_nothing(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 1);
    turn_mig_on(&b, 0);
    b.nvml.gpus[0].migs[0].is_there = b.nvml.gpus[0].migs[1].is_there = true;
    bench_cycle(&b);
    bench_rule(&b, "nvmlDeviceGetMigDeviceHandleByIndex", -1, NVML_RC_TIMEOUT);
    bench_cycle(&b);
    assert_int_equal(b.latest->n_devices, 3);
    assert_true(b.latest->sampler.errors > 0);
}

static void give_gpm(double values[FAKE_GPM_IDS], double sm)
{
    for (size_t i = 0; i < FAKE_GPM_IDS; i++)
        values[i] = -1;
    values[NVML_GPM_SM_UTIL] = sm;
}

static void test_gpm_is_read_per_gpu_instance_and_reseeded_for_a_new_one(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 1);
    turn_mig_on(&b, 0);
    b.nvml.gpus[0].has_gpm = true;
    struct fake_mig *migs = b.nvml.gpus[0].migs;
    migs[0].is_there = migs[1].is_there = true;
    give_gpm(migs[0].gpm, 30);
    give_gpm(migs[1].gpm, 70);
    bench_cycle(&b);
    assert_int_equal(bench_device(&b, migs[0].uuid)->readings[SNAPSHOT_SM_ACTIVITY].status, SNAPSHOT_NOT_READ);
    bench_cycle(&b);
    assert_double_same(bench_device(&b, migs[0].uuid)->readings[SNAPSHOT_SM_ACTIVITY].value, 30);
    assert_double_same(bench_device(&b, migs[1].uuid)->readings[SNAPSHOT_SM_ACTIVITY].value, 70);
    assert_int_equal(bench_gpu(&b, 0)->readings[SNAPSHOT_SM_ACTIVITY].status, SNAPSHOT_UNSUPPORTED);
    migs[0].is_there = false;
    bench_cycle(&b);
    migs[0].is_there = true;
    bench_cycle(&b); /* one sample of the new instance is no pair */
    assert_int_equal(bench_device(&b, migs[0].uuid)->readings[SNAPSHOT_SM_ACTIVITY].status, SNAPSHOT_NOT_READ);
    bench_cycle(&b);
    assert_double_same(bench_device(&b, migs[0].uuid)->readings[SNAPSHOT_SM_ACTIVITY].value, 30);
}

static void test_compute_instances_that_share_a_gpu_instance_have_no_activity_of_their_own(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 1);
    turn_mig_on(&b, 0);
    b.nvml.gpus[0].has_gpm = true;
    struct fake_mig *migs = b.nvml.gpus[0].migs;
    migs[0].is_there = migs[1].is_there = true;
    migs[1].gi = migs[0].gi;
    migs[1].ci = 1;
    give_gpm(migs[0].gpm, 30);
    bench_cycles(&b, 3);
    assert_int_equal(bench_device(&b, migs[0].uuid)->readings[SNAPSHOT_SM_ACTIVITY].status, SNAPSHOT_UNSUPPORTED);
    assert_int_equal(bench_device(&b, migs[1].uuid)->readings[SNAPSHOT_SM_ACTIVITY].status, SNAPSHOT_UNSUPPORTED);
    migs[1].is_there = false;
    bench_cycles(&b, 3);
    assert_double_same(bench_device(&b, migs[0].uuid)->readings[SNAPSHOT_SM_ACTIVITY].value, 30);
}

static void test_a_lost_parent_takes_its_mig_devices_along(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 2);
    turn_mig_on(&b, 0);
    b.nvml.gpus[0].migs[0].is_there = true;
    bench_cycle(&b);
    b.nvml.gpus[0].is_lost = NVML_RC_GPU_IS_LOST;
    bench_cycles(&b, 2);
    assert_int_equal(b.latest->n_devices, 3);
    assert_true(bench_device(&b, b.nvml.gpus[0].migs[0].uuid)->is_lost);
    assert_false(bench_gpu(&b, 1)->is_lost);
    b.nvml.gpus[0].is_lost = 0;
    bench_cycles(&b, 6);
    assert_false(bench_device(&b, b.nvml.gpus[0].migs[0].uuid)->is_lost);
}

static void test_an_xid_of_an_instance_is_counted_there(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 1);
    turn_mig_on(&b, 0);
    struct fake_mig *migs = b.nvml.gpus[0].migs;
    migs[0].is_there = migs[1].is_there = true;
    bench_cycle(&b);
    b.nvml.events[0] = (struct nvml_event_data){&b.nvml.gpus[0].handle, NVML_EVENT_XID_CRITICAL, 31, migs[1].gi, 0};
    b.nvml.events[1] = (struct nvml_event_data){&b.nvml.gpus[0].handle, NVML_EVENT_XID_CRITICAL, 48, 77, 0};
    struct nvml_device other_handle = {.gpu = 0, .mig = -1}; /* of the same GPU */
    b.nvml.events[2] = (struct nvml_event_data){&other_handle, NVML_EVENT_XID_CRITICAL, 31, migs[1].gi, NVML_NONE_U32};
    b.nvml.n_events = 3;
    bench_cycle(&b);
    assert_int_equal(bench_device(&b, migs[1].uuid)->n_xids, 1);
    assert_int_equal(bench_device(&b, migs[1].uuid)->xids[0].count, 2);
    assert_int_equal(bench_device(&b, migs[0].uuid)->n_xids, 0);
    assert_int_equal(bench_gpu(&b, 0)->n_xids, 1); /* an instance that is not known: the GPU's */
    assert_int_equal(bench_gpu(&b, 0)->xids[0].xid, 48);
}

static void test_a_lost_gpu_leaves_the_event_set(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 2);
    bench_cycle(&b);
    assert_int_equal(b.nvml.registered, 2);
    b.nvml.gpus[0].is_lost = NVML_RC_GPU_IS_LOST;
    bench_cycles(&b, 2);
    assert_int_equal(b.nvml.registered, 3); /* tries: a new set, with the other one alone */
    assert_int_equal(b.nvml.sets_live, 1);
}

static void test_a_set_that_refuses_is_left_alone_for_a_while(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 1);
    bench_rule(&b, "nvmlEventSetWait_v2", -1, NVML_RC_GPU_IS_LOST);
    bench_cycles(&b, 20);
    assert_in_range(b.nvml.registered, 2, 4);
}

static void test_a_mig_mode_that_waits_for_a_reset_is_shown(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 2);
    b.nvml.gpus[0].mig_rc = 0;
    bench_cycle(&b);
    assert_false(bench_gpu(&b, 0)->is_mig_pending);
    b.nvml.gpus[0].is_mig_pending_other = true;
    bench_cycle(&b);
    assert_true(bench_gpu(&b, 0)->is_mig_pending);
    assert_false(bench_gpu(&b, 1)->is_mig_pending); /* not capable of MIG */
    b.nvml.gpus[0].is_mig_on = true;                /* the reset has come, and the way back is asked for */
    bench_cycle(&b);
    assert_int_equal(bench_gpu(&b, 0)->kind, SNAPSHOT_MIG_PARENT);
    assert_true(bench_gpu(&b, 0)->is_mig_pending);
    b.nvml.gpus[0].is_mig_pending_other = false;
    bench_cycle(&b);
    assert_false(bench_gpu(&b, 0)->is_mig_pending);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_lost_gpu_keeps_its_value_and_the_others_go_on),
        cmocka_unit_test(test_a_lost_gpu_is_asked_again_at_growing_intervals_and_found),
        cmocka_unit_test(test_a_gpu_that_the_driver_lists_no_more_is_lost_not_gone),
        cmocka_unit_test(test_an_index_that_fails_concerns_that_gpu_alone),
        cmocka_unit_test(test_a_gpu_without_permission_is_passed_over),
        cmocka_unit_test(test_mig_devices_stand_behind_their_parent_with_their_own_memory),
        cmocka_unit_test(test_the_profile_comes_from_the_slices_when_the_name_lacks_it),
        cmocka_unit_test(test_mig_can_be_turned_on_and_off_while_running),
        cmocka_unit_test(test_a_layout_change_removes_and_adds_at_once),
        cmocka_unit_test(test_an_instance_made_anew_between_two_cycles_is_a_new_device),
        cmocka_unit_test(test_a_failing_enumeration_removes_nothing),
        cmocka_unit_test(test_gpm_is_read_per_gpu_instance_and_reseeded_for_a_new_one),
        cmocka_unit_test(test_compute_instances_that_share_a_gpu_instance_have_no_activity_of_their_own),
        cmocka_unit_test(test_a_lost_parent_takes_its_mig_devices_along),
        cmocka_unit_test(test_an_xid_of_an_instance_is_counted_there),
        cmocka_unit_test(test_a_lost_gpu_leaves_the_event_set),
        cmocka_unit_test(test_a_set_that_refuses_is_left_alone_for_a_while),
        cmocka_unit_test(test_a_mig_mode_that_waits_for_a_reset_is_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
