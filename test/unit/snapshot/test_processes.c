/* snapshot: processes of devices: order, replacement, ceiling, and what goes with a device. */
#include "snapshot/snapshot.h"

#include "support.h"

#include <string.h>

static struct snapshot_device *add(struct snapshot_store *store, const char *uuid, int index)
{
    struct snapshot_device d = {.index = index, .gpu_instance = -1, .compute_instance = -1};
    (void)str_copy(d.uuid, sizeof(d.uuid), str_of(uuid));
    return snapshot_store_add(store, &d);
}

/* n processes with the pids first, first + 1, ... in reverse order. */
static void set(struct snapshot_store *store, struct snapshot_device *d, uint32_t first, size_t n)
{
    struct snapshot_process *list = mem_new_array(n + 1, sizeof(*list));
    for (size_t i = 0; i < n; i++)
        list[i] = (struct snapshot_process){.device_id = 12345, .pid = first + (uint32_t)(n - 1 - i)};
    snapshot_store_set_processes(store, d, list, n);
    free(list);
}

static void test_processes_stand_in_the_order_of_devices_and_then_by_pid(void **state)
{
    (void)state;
    struct snapshot_store *store = snapshot_store_new(NS_PER_S);
    struct snapshot_device *later = add(store, "GPU-1", 1), *none = add(store, "GPU-2", 2);
    struct snapshot_device *sooner = add(store, "GPU-0", 0);
    snapshot_store_sort(store);
    const struct snapshot_process given[] = {
        {.pid = 30, .has_memory = true, .memory_bytes = 3, .has_utilization = true, .utilization = 33},
        {.pid = 20, .has_memory = true, .memory_bytes = 2},
    };
    snapshot_store_set_processes(store, later, given, ARRAY_LEN(given));
    set(store, sooner, 25, 1);
    struct snapshot *s = snapshot_store_publish(store, NS_PER_S);
    static const uint32_t want[] = {25, 20, 30};
    assert_int_equal(s->n_processes, ARRAY_LEN(want));
    assert_int_equal(s->n_processes_dropped, 0);
    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        assert_int_equal(s->processes[i].pid, want[i]);
    assert_int_equal(s->processes[0].device_id, sooner->id);
    size_t n;
    const struct snapshot_process *of = snapshot_processes_of(s, &s->devices[1], &n);
    assert_int_equal(n, 2);
    assert_int_equal(of[1].device_id, later->id);
    assert_int_equal(of[1].memory_bytes, 3);
    assert_double_same(of[1].utilization, 33);
    assert_false(of[0].has_utilization);
    assert_int_equal(s->devices[2].id, none->id);
    assert_null(snapshot_processes_of(s, &s->devices[2], &n));
    assert_int_equal(n, 0);
    snapshot_store_free(store);
    assert_int_equal(s->processes[2].pid, 30); /* the snapshot's own */
    snapshot_unref(s);
}

static void test_setting_processes_replaces_those_of_this_device_alone(void **state)
{
    (void)state;
    struct snapshot_store *store = snapshot_store_new(NS_PER_S);
    struct snapshot_device *a = add(store, "GPU-0", 0), *b = add(store, "GPU-1", 1);
    set(store, a, 100, 3);
    set(store, b, 200, 2);
    struct snapshot *before = snapshot_store_publish(store, NS_PER_S);
    set(store, a, 500, 1);
    struct snapshot *after = snapshot_store_publish(store, 2 * NS_PER_S);
    snapshot_store_set_processes(store, a, NULL, 0);
    struct snapshot *last = snapshot_store_publish(store, 3 * NS_PER_S);
    assert_int_equal(before->n_processes, 5);
    assert_int_equal(before->processes[0].pid, 100);
    assert_int_equal(after->n_processes, 3);
    assert_int_equal(after->processes[0].pid, 500);
    assert_int_equal(after->processes[1].pid, 200);
    assert_int_equal(last->n_processes, 2);
    snapshot_unref(before);
    snapshot_unref(after);
    snapshot_unref(last);
    snapshot_store_free(store);
}

static void test_the_processes_of_a_removed_device_are_gone_and_do_not_come_back(void **state)
{
    (void)state;
    struct snapshot_store *store = snapshot_store_new(NS_PER_S);
    struct snapshot_device *a = add(store, "GPU-0", 0);
    set(store, a, 100, 3);
    a->process_list.status = SNAPSHOT_OK;
    a->process_list.taken_ns = a->process_utilization.taken_ns = NS_PER_S;
    struct snapshot_device identity = *a;
    snapshot_store_remove(store, "GPU-0");
    const struct snapshot_device *again = snapshot_store_add(store, &identity);
    assert_int_equal(again->process_list.status, SNAPSHOT_NOT_READ);
    assert_int_equal(again->process_list.taken_ns, 0);
    assert_int_equal(again->process_utilization.taken_ns, 0);
    struct snapshot *s = snapshot_store_publish(store, NS_PER_S);
    assert_int_equal(s->n_processes, 0);
    snapshot_unref(s);
    snapshot_store_free(store);
}

static void test_processes_beyond_the_ceiling_are_counted_and_left_out(void **state)
{
    (void)state;
    static const struct {
        size_t a, b, n, dropped;
    } rows[] = {
        {SNAPSHOT_PROCESSES_MAX, 0, SNAPSHOT_PROCESSES_MAX, 0},
        {SNAPSHOT_PROCESSES_MAX, 5, SNAPSHOT_PROCESSES_MAX, 5},
        {SNAPSHOT_PROCESSES_MAX - 1, 5, SNAPSHOT_PROCESSES_MAX, 4},
        {SNAPSHOT_PROCESSES_MAX + 7, 0, SNAPSHOT_PROCESSES_MAX, 7},
        {3, SNAPSHOT_PROCESSES_MAX + 7, SNAPSHOT_PROCESSES_MAX, 10},
        {3, 4, 7, 0},
    };
    struct snapshot_store *store = snapshot_store_new(NS_PER_S);
    struct snapshot_device *a = add(store, "GPU-0", 0), *b = add(store, "GPU-1", 1);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        set(store, a, 1, rows[i].a);
        set(store, b, 1, rows[i].b);
        struct snapshot *s = snapshot_store_publish(store, NS_PER_S);
        if (s->n_processes != rows[i].n || s->n_processes_dropped != rows[i].dropped)
            fail_msg("row %zu: %zu and %zu", i, s->n_processes, s->n_processes_dropped);
        size_t n;
        (void)snapshot_processes_of(s, &s->devices[0], &n); /* the first devices keep theirs */
        assert_int_equal(n, rows[i].a < SNAPSHOT_PROCESSES_MAX ? rows[i].a : SNAPSHOT_PROCESSES_MAX);
        snapshot_unref(s);
    }
    snapshot_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processes_stand_in_the_order_of_devices_and_then_by_pid),
        cmocka_unit_test(test_setting_processes_replaces_those_of_this_device_alone),
        cmocka_unit_test(test_the_processes_of_a_removed_device_are_gone_and_do_not_come_back),
        cmocka_unit_test(test_processes_beyond_the_ceiling_are_counted_and_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
