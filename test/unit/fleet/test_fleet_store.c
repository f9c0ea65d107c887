/* One node by itself: what updates make of it, and what they may not do. */
#include "fleet/store.h"

#include "fleet/updates.h"
#include "support.h"

#include <math.h>
#include <string.h>

#define T0     (1000 * NS_PER_S)
#define S(x)   ((int64_t)((x) * (double)NS_PER_S))
#define LIMITS .n_wants = 2, .age_limits_ms = {5000, 5000}

enum { OK, NOT_YET, MISSING, UNSUPPORTED };

static int set_up(void **state)
{
    *state = fleet_store_new("10.0.0.7:6000");
    return 0;
}

static int tear_down(void **state)
{
    fleet_store_free(*state);
    return 0;
}

static int try_apply(struct fleet_store *s, struct update *u, int64_t now_ns, struct err *e)
{
    BUF_AUTO struct buf bytes;
    buf_init(&bytes, 1 << 20);
    pack_update(&bytes, u);
    return fleet_store_apply(s, (struct str){bytes.data, bytes.len}, now_ns, e);
}

#define apply(s, now_ns, ...) apply_update(s, &(struct update){__VA_ARGS__}, now_ns, __LINE__)
static void apply_update(struct fleet_store *s, struct update *u, int64_t now_ns, int line)
{
    struct err e;
    if (try_apply(s, u, now_ns, &e) < 0)
        fail_msg("line %d: %s", line, e.text);
}

#define refuse(s, now_ns, text, ...) refuse_update(s, &(struct update){__VA_ARGS__}, now_ns, text, __LINE__)
static void refuse_update(struct fleet_store *s, struct update *u, int64_t now_ns, const char *text, int line)
{
    struct err e;
    if (try_apply(s, u, now_ns, &e) == 0)
        fail_msg("line %d: it was taken", line);
    if (!strstr(e.text, text))
        fail_msg("line %d: \"%s\" does not say \"%s\"", line, e.text, text);
}

/* Two devices, a holder on each, two wants; utilization 40 and 60. */
static void tell_all(struct fleet_store *s, int64_t now_ns)
{
    apply(s, now_ns, .sequence = 1, .is_full = true, .age_ms = 500, LIMITS, .n_devices = 2,
          .devices = {{.id = 10, .uuid = "GPU-a"}, {.id = 11, .uuid = "GPU-b"}}, .n_holders = 2,
          .holders = {{.id = 20, .device = 10, .pod = "web-0", .held_ms = 60000},
                      {.id = 21, .device = 11, .pod = "web-1"}},
          .n_device_rows = 2,
          .device_rows = {{.id = 10, .n = 2, .of = {{0, OK, 40, 45, 400, 10, 100}, {1, MISSING}}},
                          {.id = 11, .n = 1, .of = {{0, OK, 60, 65, 600, 10, 0}}}});
}

static const struct fleet_reading *reading(const struct fleet_store *s, size_t device, size_t want)
{
    return &fleet_store_node(s)->devices[device].readings[want];
}

static void test_a_full_update_tells_everything(void **state)
{
    struct fleet_store *s = *state;
    const struct fleet_node *node = fleet_store_node(s);
    assert_false(node->is_synced);
    assert_string_equal(node->address, "10.0.0.7:6000");
    tell_all(s, T0);
    assert_true(node->is_synced);
    assert_string_equal(node->name, "node-1");
    assert_string_equal(node->version, "1.2.3");
    assert_string_equal(node->driver, "ok");
    assert_string_equal(node->driver_text, "");
    assert_string_equal(node->driver_version, "550.54");
    assert_int_equal(node->instance, 7);
    assert_int_equal(node->period_ns, NS_PER_S);
    assert_int_equal(node->heard_ns, T0);
    assert_int_equal(node->taken_ns, T0 - S(0.5));
    assert_int_equal(node->n_wants, 2);
    assert_int_equal(node->age_limits_ns[1], S(5));
    assert_int_equal(node->n_devices, 2);
    assert_string_equal(node->devices[1].uuid, "GPU-b");
    assert_string_equal(node->devices[1].lost_reason, "");
    assert_int_equal(node->devices[1].gpu_instance, -1);
    assert_int_equal(reading(s, 0, 0)->status, FLEET_OK);
    assert_double_same(reading(s, 0, 0)->mean, 40);
    assert_double_same(reading(s, 0, 0)->peak, 45);
    assert_int_equal(reading(s, 0, 0)->taken_ns, T0 - S(0.6));
    assert_int_equal(reading(s, 0, 1)->status, FLEET_MISSING);
    assert_int_equal(reading(s, 1, 1)->status, FLEET_NOT_YET);
    assert_int_equal(node->n_holders, 2);
    assert_string_equal(node->holders[0].pod, "web-0");
    assert_ptr_equal(node->holders[0].device, &node->devices[0]);
    assert_int_equal(node->holders[0].since_ns, T0 - S(60.5));
    assert_null(node->holders[0].readings);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_full_update_tells_everything, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
