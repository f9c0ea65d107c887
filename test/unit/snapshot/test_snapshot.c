/* snapshot: freshness, means, peaks, frames, identity and sharing, on a clock that the tests move. */
#include "snapshot/snapshot.h"

#include "snapshot/frame.h"
#include "support.h"

#include <math.h>
#include <string.h>

#define S(seconds) ((int64_t)((seconds)*1e9))

static struct snapshot_device gpu(int index, const char *uuid)
{
    struct snapshot_device d = {.kind = SNAPSHOT_GPU, .index = index, .gpu_instance = -1, .compute_instance = -1};
    (void)str_copy(d.uuid, sizeof(d.uuid), str_of(uuid));
    return d;
}

static struct snapshot_device mig(int index, int gpu_instance, int compute_instance, const char *uuid)
{
    struct snapshot_device d = gpu(index, uuid);
    d.kind = SNAPSHOT_MIG;
    d.gpu_instance = gpu_instance;
    d.compute_instance = compute_instance;
    return d;
}

/* A store with one GPU and a period of one second, its clock at 100 s. */
struct bench {
    struct snapshot_store *store;
    struct snapshot_device *device;
    struct snapshot *latest;
    int64_t now_ns;
};

static void bench_init(struct bench *b)
{
    b->store = snapshot_store_new(NS_PER_S);
    struct snapshot_device d = gpu(0, "GPU-0");
    b->device = snapshot_store_add(b->store, &d);
    b->latest = NULL;
    b->now_ns = S(100);
}

static void bench_fini(struct bench *b)
{
    snapshot_unref(b->latest);
    snapshot_store_free(b->store);
}
#define BENCH __attribute__((cleanup(bench_fini))) struct bench

static void publish(struct bench *b)
{
    snapshot_unref(b->latest);
    b->latest = snapshot_store_publish(b->store, b->now_ns);
}

/* One cycle of the main period: the clock moves on by `seconds`, then the field is read and published. */
static void cycle(struct bench *b, enum snapshot_field field, double seconds, double value)
{
    b->now_ns += S(seconds);
    snapshot_store_record(b->store, b->device, field, value, b->now_ns);
    publish(b);
}

static double mean(const struct bench *b, enum snapshot_field field, double window)
{
    double value = -1;
    bool is_read = snapshot_mean(b->latest, &b->latest->devices[0], field, b->now_ns, S(window), &value);
    return is_read ? value : -1;
}

static double peak(const struct bench *b, enum snapshot_field field, double window)
{
    double value = -1;
    bool is_read = snapshot_peak(b->latest, &b->latest->devices[0], field, b->now_ns, S(window), &value);
    return is_read ? value : -1;
}

static void test_names_and_units_come_from_the_table(void **state)
{
    (void)state;
    assert_string_equal(snapshot_field_name(SNAPSHOT_MEMORY_USED), "memory_used");
    assert_string_equal(snapshot_field_unit(SNAPSHOT_MEMORY_USED), "bytes");
    assert_string_equal(snapshot_field_name(SNAPSHOT_DRAM_ACTIVITY), "dram_activity");
    assert_string_equal(snapshot_field_name(SNAPSHOT_FIELD_COUNT), "unknown");
    assert_string_equal(snapshot_field_unit(SNAPSHOT_FIELD_COUNT), "unknown");
    assert_string_equal(snapshot_driver_state_name(SNAPSHOT_DRIVER_NOT_LOADED), "not_loaded");
    assert_string_equal(snapshot_driver_state_name((enum snapshot_driver_state)99), "unknown");
}

static void test_slots_number_the_fields_with_a_past(void **state)
{
    (void)state;
    int next = 0;
    for (unsigned field = 0; field < SNAPSHOT_FIELD_COUNT; field++) {
        int slot = snapshot_field_slot((enum snapshot_field)field);
        if (slot >= 0)
            assert_int_equal(slot, next++);
    }
    assert_int_equal(next, SNAPSHOT_SLOT_COUNT);
    assert_int_equal(snapshot_field_slot(SNAPSHOT_MEMORY_TOTAL), -1);
    assert_int_equal(snapshot_field_slot(SNAPSHOT_FIELD_COUNT), -1);
}

static void test_age_limit_is_three_periods_but_at_least_five_seconds(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    snapshot_store_header(b.store)->field_period_ns[SNAPSHOT_PCIE_TX] = S(10);
    publish(&b);
    assert_int_equal(snapshot_age_limit_ns(b.latest, SNAPSHOT_UTILIZATION), S(5));
    assert_int_equal(snapshot_age_limit_ns(b.latest, SNAPSHOT_PCIE_TX), S(30));
    static const double periods[][2] = {{0.1, 5}, {1.6, 5}, {1.7, 5.1}, {2, 6}, {4, 12}};
    for (size_t i = 0; i < ARRAY_LEN(periods); i++) {
        snapshot_store_header(b.store)->period_ns = S(periods[i][0]);
        publish(&b);
        assert_int_equal(snapshot_age_limit_ns(b.latest, SNAPSHOT_UTILIZATION), S(periods[i][1]));
    }
}

static void test_reading_is_fresh_up_to_its_limit_and_missing_beyond(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    cycle(&b, SNAPSHOT_UTILIZATION, 1, 50);
    const struct snapshot_device *d = &b.latest->devices[0];
    assert_true(snapshot_is_fresh(b.latest, d, SNAPSHOT_UTILIZATION, b.now_ns));
    assert_true(snapshot_is_fresh(b.latest, d, SNAPSHOT_UTILIZATION, b.now_ns + S(5)));
    assert_false(snapshot_is_fresh(b.latest, d, SNAPSHOT_UTILIZATION, b.now_ns + S(5) + 1));
    /* a reader whose turn began before the snapshot was taken */
    assert_true(snapshot_is_fresh(b.latest, d, SNAPSHOT_UTILIZATION, b.now_ns - S(1)));
}

static void test_stale_reading_has_no_mean_and_no_peak(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    cycle(&b, SNAPSHOT_UTILIZATION, 1, 50);
    b.now_ns += S(6);
    assert_double_same(mean(&b, SNAPSHOT_UTILIZATION, 15), -1);
    assert_double_same(mean(&b, SNAPSHOT_UTILIZATION, 0), -1);
    assert_double_same(peak(&b, SNAPSHOT_UTILIZATION, 60), -1);
}

static void test_cycles_that_do_not_end_are_noticed_after_the_age_limit(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    snapshot_store_header(b.store)->field_period_ns[SNAPSHOT_UTILIZATION] = S(10); /* a slow field changes nothing */
    publish(&b);
    assert_int_equal(snapshot_stuck_ns(b.latest, b.now_ns - S(1)), 0);
    assert_int_equal(snapshot_stuck_ns(b.latest, b.now_ns + S(5)), 0);
    assert_int_equal(snapshot_stuck_ns(b.latest, b.now_ns + S(5) + 1), S(5) + 1);
    snapshot_store_header(b.store)->period_ns = S(60);
    publish(&b);
    assert_int_equal(snapshot_stuck_ns(b.latest, b.now_ns + S(180)), 0);
    assert_int_equal(snapshot_stuck_ns(b.latest, b.now_ns + S(181)), S(181));
}

static void test_never_read_and_unsupported_and_lost_are_not_fresh(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    publish(&b);
    assert_int_equal(b.latest->devices[0].readings[SNAPSHOT_POWER].status, SNAPSHOT_NOT_READ);
    assert_false(snapshot_is_fresh(b.latest, &b.latest->devices[0], SNAPSHOT_POWER, b.now_ns));

    snapshot_store_fail(b.device, SNAPSHOT_POWER, SNAPSHOT_UNSUPPORTED);
    publish(&b);
    assert_false(snapshot_is_fresh(b.latest, &b.latest->devices[0], SNAPSHOT_POWER, b.now_ns));

    snapshot_store_fail(b.device, SNAPSHOT_TEMPERATURE, SNAPSHOT_FAILED);
    publish(&b);
    assert_false(snapshot_is_fresh(b.latest, &b.latest->devices[0], SNAPSHOT_TEMPERATURE, b.now_ns));

    cycle(&b, SNAPSHOT_UTILIZATION, 1, 50);
    assert_true(snapshot_is_fresh(b.latest, &b.latest->devices[0], SNAPSHOT_UTILIZATION, b.now_ns));
    b.device->is_lost = true;
    publish(&b);
    assert_false(snapshot_is_fresh(b.latest, &b.latest->devices[0], SNAPSHOT_UTILIZATION, b.now_ns));
}

static void test_failed_attempt_keeps_the_last_reading_until_it_is_too_old(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    cycle(&b, SNAPSHOT_UTILIZATION, 1, 50);
    b.now_ns += S(1);
    snapshot_store_fail(b.device, SNAPSHOT_UTILIZATION, SNAPSHOT_FAILED);
    publish(&b);
    const struct snapshot_reading *r = &b.latest->devices[0].readings[SNAPSHOT_UTILIZATION];
    assert_int_equal(r->status, SNAPSHOT_FAILED);
    assert_double_same(r->value, 50);
    assert_int_equal(r->taken_ns, S(101));
    assert_double_same(mean(&b, SNAPSHOT_UTILIZATION, 15), 50);
    b.now_ns += S(5);
    assert_double_same(mean(&b, SNAPSHOT_UTILIZATION, 15), -1);
}

static void test_values_that_are_no_numbers_count_as_failures(void **state)
{
    (void)state;
    static const double bad[] = {(double)NAN, HUGE_VAL, -HUGE_VAL, -0.001};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        BENCH b;
        bench_init(&b);
        cycle(&b, SNAPSHOT_UTILIZATION, 1, 50);
        cycle(&b, SNAPSHOT_UTILIZATION, 1, bad[i]);
        const struct snapshot_reading *r = &b.latest->devices[0].readings[SNAPSHOT_UTILIZATION];
        assert_int_equal(r->status, SNAPSHOT_FAILED);
        assert_double_same(r->value, 50);
        assert_double_same(mean(&b, SNAPSHOT_UTILIZATION, 15), 50);
    }
}

static void test_window_zero_gives_the_newest_reading(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    cycle(&b, SNAPSHOT_UTILIZATION, 1, 10);
    cycle(&b, SNAPSHOT_UTILIZATION, 1, 90);
    assert_double_same(mean(&b, SNAPSHOT_UTILIZATION, 0), 90);
    assert_double_same(peak(&b, SNAPSHOT_UTILIZATION, 0), 90);
    cycle(&b, SNAPSHOT_MEMORY_TOTAL, 0, 81920);
    assert_double_same(mean(&b, SNAPSHOT_MEMORY_TOTAL, 0), 81920); /* a field without a past */
}

static void test_mean_weighs_readings_by_the_time_they_stand_for(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    cycle(&b, SNAPSHOT_UTILIZATION, 1, 0);
    cycle(&b, SNAPSHOT_UTILIZATION, 1, 100); /* for 1 s */
    cycle(&b, SNAPSHOT_UTILIZATION, 3, 20);  /* for 3 s */
    assert_double_near(mean(&b, SNAPSHOT_UTILIZATION, 4), 40, 1e-9);
    assert_double_near(mean(&b, SNAPSHOT_UTILIZATION, 3), 20, 1e-9);
    /* half of the second that read 100 */
    assert_double_near(mean(&b, SNAPSHOT_UTILIZATION, 3.5), (0.5 * 100 + 3 * 20) / 3.5, 1e-9);
    /* the first reading stands for one period */
    assert_double_near(mean(&b, SNAPSHOT_UTILIZATION, 300), (0 + 100 + 60) / 5.0, 1e-9);
}

static void test_mean_of_a_steady_value_is_exactly_that_value(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    static const double steady[] = {6144.0 * 1048576, 33.3, 0.1, 1e11 / 3};
    for (size_t i = 0; i < ARRAY_LEN(steady); i++) {
        for (int k = 0; k < 400; k++)
            cycle(&b, SNAPSHOT_MEMORY_USED, 1.0007, steady[i]);
        for (double window = 0; window <= 300; window += 7.3)
            assert_double_same(mean(&b, SNAPSHOT_MEMORY_USED, window), steady[i]);
    }
}

static void test_mean_after_a_gap_covers_only_the_valid_time(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    cycle(&b, SNAPSHOT_UTILIZATION, 1, 80);
    cycle(&b, SNAPSHOT_UTILIZATION, 1, 80);
    for (int i = 0; i < 9; i++) {
        b.now_ns += S(1);
        snapshot_store_fail(b.device, SNAPSHOT_UTILIZATION, SNAPSHOT_FAILED);
        publish(&b);
    }
    cycle(&b, SNAPSHOT_UTILIZATION, 1, 20); /* 10 s after the last: stands for one period */
    assert_double_near(mean(&b, SNAPSHOT_UTILIZATION, 15), (2 * 80 + 20) / 3.0, 1e-9);
    assert_double_near(mean(&b, SNAPSHOT_UTILIZATION, 5), 20, 1e-9);
}

static void test_reading_after_a_short_gap_stands_for_all_of_it(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    cycle(&b, SNAPSHOT_UTILIZATION, 1, 80);
    cycle(&b, SNAPSHOT_UTILIZATION, 5, 20); /* at the limit, not beyond */
    assert_double_near(mean(&b, SNAPSHOT_UTILIZATION, 300), (80 + 5 * 20) / 6.0, 1e-9);
}

static void test_slow_field_gives_its_newest_reading_for_a_shorter_window(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    snapshot_store_header(b.store)->field_period_ns[SNAPSHOT_PCIE_TX] = S(10);
    for (int i = 1; i <= 35; i++) {
        b.now_ns += S(1);
        if (i % 10 == 0)
            snapshot_store_record(b.store, b.device, SNAPSHOT_PCIE_TX, i * 100, b.now_ns);
        publish(&b);
    }
    assert_double_same(mean(&b, SNAPSHOT_PCIE_TX, 4), 3000);  /* no sample in the window */
    assert_double_same(mean(&b, SNAPSHOT_PCIE_TX, 15), 3000); /* since 120 s: the sample of 130 s covers it */
    /* since 115 s: 5 s of the one that covers 110-120, 10 s of the next */
    assert_double_near(mean(&b, SNAPSHOT_PCIE_TX, 20), (5 * 2000 + 10 * 3000) / 15.0, 1e-9);
    assert_double_same(peak(&b, SNAPSHOT_PCIE_TX, 20), 3000);
}

static void test_samples_between_publishes_all_count(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    cycle(&b, SNAPSHOT_UTILIZATION, 1, 10);
    for (int i = 0; i < 10; i++) { /* ten samples, published once */
        b.now_ns += S(0.1);
        snapshot_store_record(b.store, b.device, SNAPSHOT_UTILIZATION, i == 3 ? 100 : 0, b.now_ns);
    }
    publish(&b);
    assert_double_near(mean(&b, SNAPSHOT_UTILIZATION, 1), 10, 1e-9);
    assert_double_same(peak(&b, SNAPSHOT_UTILIZATION, 1), 100);
}

static void test_fast_publishing_keeps_a_frame_a_second_and_every_peak(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    for (int i = 1; i <= 100; i++)
        cycle(&b, SNAPSHOT_UTILIZATION, 0.1, i == 55 ? 100 : 10);
    assert_true(b.latest->n_frames <= 12);
    assert_int_equal(b.latest->frames[b.latest->n_frames - 1]->taken_ns, b.now_ns);
    assert_double_near(mean(&b, SNAPSHOT_UTILIZATION, 9), (8.9 * 10 + 0.1 * 100) / 9, 1e-6);
    assert_double_same(peak(&b, SNAPSHOT_UTILIZATION, 9), 100);
    assert_double_same(peak(&b, SNAPSHOT_UTILIZATION, 2), 10);
}

static void test_peak_is_the_largest_sample_within_the_window(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    cycle(&b, SNAPSHOT_UTILIZATION, 1, 97);
    for (int i = 0; i < 30; i++)
        cycle(&b, SNAPSHOT_UTILIZATION, 1, 3);
    assert_double_same(peak(&b, SNAPSHOT_UTILIZATION, 60), 97);
    assert_double_same(peak(&b, SNAPSHOT_UTILIZATION, 30), 97); /* taken exactly at its start */
    assert_double_same(peak(&b, SNAPSHOT_UTILIZATION, 29.9), 3);
}

static void test_past_ends_with_the_longest_window(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    for (int i = 0; i < 2000; i++)
        cycle(&b, SNAPSHOT_UTILIZATION, 1, i < 1700 ? 100 : 50);
    assert_true(b.latest->n_frames >= 301 && b.latest->n_frames <= 303);
    assert_double_near(mean(&b, SNAPSHOT_UTILIZATION, 300), 50, 1e-9);
    assert_double_near(mean(&b, SNAPSHOT_UTILIZATION, 100000), 50, 1e-9); /* cut to the longest window */
    b.now_ns += S(4);
    assert_double_near(mean(&b, SNAPSHOT_UTILIZATION, 300), 50, 1e-9);
}

static void test_jittery_timer_still_keeps_the_longest_window(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    for (int i = 0; i < 1000; i++)
        cycle(&b, SNAPSHOT_UTILIZATION, 0.96, 50);
    assert_true(b.now_ns - b.latest->frames[0]->taken_ns >= S(300));
    assert_true(b.latest->n_frames >= 312 && b.latest->n_frames <= 320); /* each of them, not every other */
}

static void test_pause_longer_than_the_past_does_not_bring_old_load_back(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    for (int i = 0; i < 100; i++)
        cycle(&b, SNAPSHOT_UTILIZATION, 1, 100);
    cycle(&b, SNAPSHOT_UTILIZATION, 1000, 10);
    assert_double_same(mean(&b, SNAPSHOT_UTILIZATION, 300), 10);
    assert_double_same(peak(&b, SNAPSHOT_UTILIZATION, 300), 10);
    cycle(&b, SNAPSHOT_UTILIZATION, 1, 20);
    assert_double_near(mean(&b, SNAPSHOT_UTILIZATION, 300), 15, 1e-9);
}

/* The turn of the loop that asks may have begun before the snapshot was taken. */
static void test_reader_a_moment_behind_does_not_bring_old_load_back(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    for (int i = 0; i < 2000; i++)
        cycle(&b, SNAPSHOT_UTILIZATION, 1, i < 1690 ? 100 : i % 2 ? 10 : 30);
    for (int ms = 0; ms < 2000; ms += 100) {
        b.now_ns = b.latest->taken_ns - ms * NS_PER_MS;
        assert_double_near(mean(&b, SNAPSHOT_UTILIZATION, 300), 20, 0.1);
        assert_double_same(peak(&b, SNAPSHOT_UTILIZATION, 300), 30);
    }
}

static void test_same_uuid_again_is_a_new_device_without_the_old_past(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    for (int i = 0; i < 10; i++)
        cycle(&b, SNAPSHOT_UTILIZATION, 1, 100);
    uint32_t old_id = b.device->id;
    int64_t old_seen_ns = b.latest->devices[0].first_seen_ns;
    snapshot_store_remove(b.store, "gpu-0");
    assert_null(snapshot_store_find(b.store, "GPU-0"));
    struct snapshot_device d = gpu(0, "GPU-0");
    d.readings[SNAPSHOT_UTILIZATION] =
        (struct snapshot_reading){.status = SNAPSHOT_OK, .value = 77, .taken_ns = S(100)};
    b.device = snapshot_store_add(b.store, &d);
    publish(&b);
    assert_int_equal(b.latest->devices[0].readings[SNAPSHOT_UTILIZATION].status, SNAPSHOT_NOT_READ);
    cycle(&b, SNAPSHOT_UTILIZATION, 1, 10);
    assert_int_not_equal(b.latest->devices[0].id, old_id);
    assert_int_equal(old_seen_ns, S(101));
    assert_int_equal(b.latest->devices[0].first_seen_ns, S(110));
    assert_double_same(mean(&b, SNAPSHOT_UTILIZATION, 60), 10);
    assert_double_same(peak(&b, SNAPSHOT_UTILIZATION, 60), 10);
}

static void test_past_follows_devices_that_change_places(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    struct snapshot_device second = gpu(1, "GPU-1");
    struct snapshot_device *other = snapshot_store_add(b.store, &second);
    for (int i = 0; i < 10; i++) {
        snapshot_store_record(b.store, other, SNAPSHOT_UTILIZATION, 90, b.now_ns + S(1));
        cycle(&b, SNAPSHOT_UTILIZATION, 1, 10);
    }
    b.device->index = 2; /* renumbered: GPU-1 comes first now */
    snapshot_store_sort(b.store);
    publish(&b);
    assert_string_equal(b.latest->devices[0].uuid, "GPU-1");
    assert_double_near(mean(&b, SNAPSHOT_UTILIZATION, 5), 90, 1e-9);
    double value = 0;
    assert_true(snapshot_mean(b.latest, &b.latest->devices[1], SNAPSHOT_UTILIZATION, b.now_ns, S(5), &value));
    assert_double_near(value, 10, 1e-9);
    struct snapshot_device copy = b.latest->devices[1]; /* a reader's copy is as good */
    assert_true(snapshot_mean(b.latest, &copy, SNAPSHOT_UTILIZATION, b.now_ns, S(5), &value));
    assert_double_near(value, 10, 1e-9);
}

static void test_sort_puts_mig_devices_behind_their_gpu(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    const struct snapshot_device devices[] = {
        mig(1, 2, 0, "MIG-120"), mig(1, 1, 1, "MIG-111"), mig(1, 1, 0, "MIG-110"), gpu(2, "GPU-2"), gpu(1, "GPU-1"),
    };
    for (size_t i = 0; i < ARRAY_LEN(devices); i++)
        assert_non_null(snapshot_store_add(b.store, &devices[i]));
    snapshot_store_sort(b.store);
    publish(&b);
    static const char *const order[] = {"GPU-0", "GPU-1", "MIG-110", "MIG-111", "MIG-120", "GPU-2"};
    assert_int_equal(b.latest->n_devices, ARRAY_LEN(order));
    for (size_t i = 0; i < ARRAY_LEN(order); i++)
        assert_string_equal(b.latest->devices[i].uuid, order[i]);
}

static void test_devices_are_found_by_uuid_in_any_case(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    publish(&b);
    assert_ptr_equal(snapshot_find_device(b.latest, "gpu-0"), &b.latest->devices[0]);
    assert_null(snapshot_find_device(b.latest, "GPU-00"));
    assert_ptr_equal(snapshot_store_find(b.store, "Gpu-0"), b.device);
    snapshot_store_remove(b.store, "GPU-9"); /* nothing */
    assert_non_null(snapshot_store_find(b.store, "GPU-0"));
}

static void test_store_refuses_devices_beyond_its_ceiling(void **state)
{
    (void)state;
    struct snapshot_store *store = snapshot_store_new(NS_PER_S);
    struct snapshot_device d = gpu(0, "GPU-x");
    for (int i = 0; i < SNAPSHOT_DEVICES_MAX; i++)
        assert_non_null(snapshot_store_add(store, &d));
    assert_null(snapshot_store_add(store, &d));
    snapshot_store_remove_all(store);
    assert_non_null(snapshot_store_add(store, &d));
    snapshot_store_free(store);
    snapshot_store_free(NULL);
}

static void test_snapshot_carries_the_header_and_never_changes(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    struct snapshot *header = snapshot_store_header(b.store);
    header->driver = SNAPSHOT_DRIVER_OK;
    (void)str_copy(header->driver_version, sizeof(header->driver_version), str_of("580.95.05"));
    header->sampler.cycles = 7;
    cycle(&b, SNAPSHOT_UTILIZATION, 1, 10);
    struct snapshot *held = snapshot_ref(b.latest);
    size_t frames = held->n_frames;

    header->driver = SNAPSHOT_DRIVER_FAILED;
    header->sampler.cycles = 8;
    for (int i = 0; i < 400; i++)
        cycle(&b, SNAPSHOT_UTILIZATION, 1, 90);
    snapshot_store_remove_all(b.store);
    publish(&b);
    assert_int_equal(b.latest->n_devices, 0);
    assert_int_equal(held->driver, SNAPSHOT_DRIVER_OK);
    assert_string_equal(held->driver_version, "580.95.05");
    assert_int_equal(held->sampler.cycles, 7);
    assert_int_equal(held->n_frames, frames);
    double value = 0;
    assert_true(snapshot_mean(held, &held->devices[0], SNAPSHOT_UTILIZATION, S(101), S(15), &value));
    assert_double_same(value, 10);
    snapshot_unref(held);
    snapshot_unref(NULL);
}

static void test_snapshot_outlives_its_store(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b);
    cycle(&b, SNAPSHOT_UTILIZATION, 1, 10);
    cycle(&b, SNAPSHOT_UTILIZATION, 1, 20);
    snapshot_store_free(b.store);
    assert_double_near(mean(&b, SNAPSHOT_UTILIZATION, 15), 15, 1e-9);
    snapshot_unref(b.latest);
}

static void test_store_without_devices_publishes_an_empty_snapshot(void **state)
{
    (void)state;
    struct snapshot_store *store = snapshot_store_new(S(2));
    struct snapshot *s = snapshot_store_publish(store, S(1));
    assert_int_equal(s->n_devices, 0);
    assert_int_equal(s->taken_ns, S(1));
    assert_int_equal(s->period_ns, S(2));
    assert_null(snapshot_find_device(s, "GPU-0"));
    snapshot_unref(s);
    snapshot_store_free(store);
}

static void test_two_readings_at_one_moment_keep_the_second(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    cycle(&b, SNAPSHOT_UTILIZATION, 1, 10);
    cycle(&b, SNAPSHOT_UTILIZATION, 0, 30);
    assert_double_same(mean(&b, SNAPSHOT_UTILIZATION, 0), 30);
    assert_double_near(mean(&b, SNAPSHOT_UTILIZATION, 15), 10, 1e-9); /* the second stands for no time */
    assert_double_same(peak(&b, SNAPSHOT_UTILIZATION, 15), 30);
}

/* ---- totals ---- */

struct total {
    bool is_known;
    double integral, valid_s;
};

static struct total total(const struct bench *b, enum snapshot_field field)
{
    struct total t = {.integral = -1, .valid_s = -1};
    t.is_known = snapshot_total(b->latest, &b->latest->devices[0], field, &t.integral, &t.valid_s);
    return t;
}

static void assert_total(struct total t, double integral, double valid_s)
{
    assert_true(t.is_known);
    assert_double_near(t.integral, integral, 1e-9);
    assert_double_near(t.valid_s, valid_s, 1e-9);
}

static void test_total_counts_from_the_first_reading_and_over_gaps_only_what_was_valid(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    publish(&b);
    struct total none = total(&b, SNAPSHOT_UTILIZATION);
    assert_false(none.is_known);
    assert_double_same(none.integral, 0);
    assert_double_same(none.valid_s, 0);
    cycle(&b, SNAPSHOT_UTILIZATION, 1, 10);
    assert_total(total(&b, SNAPSHOT_UTILIZATION), 10, 1); /* the first one stands for a period */
    cycle(&b, SNAPSHOT_UTILIZATION, 4, 50);
    assert_total(total(&b, SNAPSHOT_UTILIZATION), 210, 5);
    cycle(&b, SNAPSHOT_UTILIZATION, 6, 30); /* a gap */
    assert_total(total(&b, SNAPSHOT_UTILIZATION), 240, 6);
    b.now_ns += S(3);
    publish(&b);
    assert_total(total(&b, SNAPSHOT_UTILIZATION), 240, 6);
}

static void test_total_moves_between_kept_frames_too(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    cycle(&b, SNAPSHOT_UTILIZATION, 1, 0);
    for (int i = 1; i <= 8; i++) {
        cycle(&b, SNAPSHOT_UTILIZATION, 0.1, 50);
        assert_total(total(&b, SNAPSHOT_UTILIZATION), 5.0 * i, 1 + 0.1 * i);
    }
}

static void test_total_of_a_device_that_comes_back_starts_anew(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    cycle(&b, SNAPSHOT_UTILIZATION, 1, 10);
    cycle(&b, SNAPSHOT_UTILIZATION, 1, 10);
    snapshot_store_remove(b.store, "GPU-0");
    struct snapshot_device d = gpu(0, "GPU-0");
    b.device = snapshot_store_add(b.store, &d);
    cycle(&b, SNAPSHOT_UTILIZATION, 1, 70);
    assert_total(total(&b, SNAPSHOT_UTILIZATION), 70, 1);
}

static void test_fields_without_a_past_have_no_total(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b);
    cycle(&b, SNAPSHOT_POWER_LIMIT, 1, 700);
    assert_false(total(&b, SNAPSHOT_POWER_LIMIT).is_known);
    assert_false(snapshot_field_has_past(SNAPSHOT_POWER_LIMIT));
    assert_true(snapshot_field_has_past(SNAPSHOT_POWER));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_total_counts_from_the_first_reading_and_over_gaps_only_what_was_valid),
        cmocka_unit_test(test_total_moves_between_kept_frames_too),
        cmocka_unit_test(test_total_of_a_device_that_comes_back_starts_anew),
        cmocka_unit_test(test_fields_without_a_past_have_no_total),
        cmocka_unit_test(test_names_and_units_come_from_the_table),
        cmocka_unit_test(test_slots_number_the_fields_with_a_past),
        cmocka_unit_test(test_age_limit_is_three_periods_but_at_least_five_seconds),
        cmocka_unit_test(test_reading_is_fresh_up_to_its_limit_and_missing_beyond),
        cmocka_unit_test(test_stale_reading_has_no_mean_and_no_peak),
        cmocka_unit_test(test_cycles_that_do_not_end_are_noticed_after_the_age_limit),
        cmocka_unit_test(test_never_read_and_unsupported_and_lost_are_not_fresh),
        cmocka_unit_test(test_failed_attempt_keeps_the_last_reading_until_it_is_too_old),
        cmocka_unit_test(test_values_that_are_no_numbers_count_as_failures),
        cmocka_unit_test(test_window_zero_gives_the_newest_reading),
        cmocka_unit_test(test_mean_weighs_readings_by_the_time_they_stand_for),
        cmocka_unit_test(test_mean_of_a_steady_value_is_exactly_that_value),
        cmocka_unit_test(test_mean_after_a_gap_covers_only_the_valid_time),
        cmocka_unit_test(test_reading_after_a_short_gap_stands_for_all_of_it),
        cmocka_unit_test(test_slow_field_gives_its_newest_reading_for_a_shorter_window),
        cmocka_unit_test(test_samples_between_publishes_all_count),
        cmocka_unit_test(test_fast_publishing_keeps_a_frame_a_second_and_every_peak),
        cmocka_unit_test(test_peak_is_the_largest_sample_within_the_window),
        cmocka_unit_test(test_past_ends_with_the_longest_window),
        cmocka_unit_test(test_jittery_timer_still_keeps_the_longest_window),
        cmocka_unit_test(test_pause_longer_than_the_past_does_not_bring_old_load_back),
        cmocka_unit_test(test_reader_a_moment_behind_does_not_bring_old_load_back),
        cmocka_unit_test(test_same_uuid_again_is_a_new_device_without_the_old_past),
        cmocka_unit_test(test_past_follows_devices_that_change_places),
        cmocka_unit_test(test_sort_puts_mig_devices_behind_their_gpu),
        cmocka_unit_test(test_devices_are_found_by_uuid_in_any_case),
        cmocka_unit_test(test_store_refuses_devices_beyond_its_ceiling),
        cmocka_unit_test(test_snapshot_carries_the_header_and_never_changes),
        cmocka_unit_test(test_snapshot_outlives_its_store),
        cmocka_unit_test(test_store_without_devices_publishes_an_empty_snapshot),
        cmocka_unit_test(test_two_readings_at_one_moment_keep_the_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
