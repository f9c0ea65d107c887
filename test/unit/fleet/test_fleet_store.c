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

/* ---- changes ---- */

static void test_a_change_leaves_the_rest_as_it_is(void **state)
{
    struct fleet_store *s = *state;
    const struct fleet_node *node = fleet_store_node(s);
    tell_all(s, T0);
    apply(s, T0 + S(1), .sequence = 2, .age_ms = 500, .n_device_rows = 1,
          .device_rows = {{.id = 11, .n = 1, .of = {{0, OK, 70, 90, 670, 11, 0}}}});
    assert_double_same(reading(s, 1, 0)->mean, 70);
    assert_double_same(reading(s, 1, 0)->integral, 670);
    assert_double_same(reading(s, 0, 0)->mean, 40);
    assert_string_equal(node->name, "node-1");
    assert_int_equal(node->n_devices, 2);
    assert_int_equal(node->n_holders, 2);
    assert_int_equal(node->heard_ns, T0 + S(1));
}

/* The agent leaves out what stands still: the time that passes counts at the mean. */
static void test_what_is_not_sent_stands_at_its_mean(void **state)
{
    struct fleet_store *s = *state;
    tell_all(s, T0);
    apply(s, T0 + S(2), .sequence = 2, .age_ms = 500);
    const struct fleet_reading *r = reading(s, 0, 0);
    assert_int_equal(r->status, FLEET_OK);
    assert_double_same(r->mean, 40);
    assert_double_same(r->peak, 45);
    assert_double_near(r->integral, 480, 1e-9);
    assert_double_near(r->valid_s, 12, 1e-9);
    assert_int_equal(r->taken_ns, T0 + S(1.4));
    assert_int_equal(reading(s, 0, 1)->status, FLEET_MISSING);
    assert_int_equal(reading(s, 0, 1)->taken_ns, 0);
}

/* A heartbeat of an agent whose sampler hangs: its snapshot grows older. */
static void test_readings_do_not_move_on_without_a_snapshot(void **state)
{
    struct fleet_store *s = *state;
    tell_all(s, T0);
    apply(s, T0 + S(4), .sequence = 2, .age_ms = 4500);
    assert_int_equal(reading(s, 0, 0)->taken_ns, T0 - S(0.6));
    assert_double_same(reading(s, 0, 0)->integral, 400);
    assert_true(fleet_reading_is_fresh(fleet_store_node(s), 0, reading(s, 0, 0), T0 + S(4.4)));
    assert_false(fleet_reading_is_fresh(fleet_store_node(s), 0, reading(s, 0, 0), T0 + S(4.5)));
}

static void test_a_reading_that_goes_missing_keeps_its_last_good_numbers(void **state)
{
    struct fleet_store *s = *state;
    tell_all(s, T0);
    apply(s, T0 + S(1), .sequence = 2, .age_ms = 500, .n_device_rows = 1,
          .device_rows = {{.id = 10, .n = 1, .of = {{0, MISSING}}}});
    apply(s, T0 + S(2), .sequence = 3, .age_ms = 500);
    const struct fleet_reading *r = reading(s, 0, 0);
    assert_int_equal(r->status, FLEET_MISSING);
    assert_double_same(r->mean, 40);
    assert_int_equal(r->taken_ns, T0 + S(0.4)); /* up to when it was good */
    assert_false(fleet_reading_is_fresh(fleet_store_node(s), 0, r, T0 + S(2)));
}

static void test_statuses_and_numbers_are_taken_for_what_they_are(void **state)
{
    static const struct {
        int status;
        double mean, peak, integral, valid_s;
        enum fleet_status want;
    } rows[] = {
        {OK, 0, 0, 0, 0, FLEET_OK},
        {OK, 1, 2, 3, 4, FLEET_OK},
        {NOT_YET, 0, 0, 0, 0, FLEET_NOT_YET},
        {MISSING, 1, 2, 3, 4, FLEET_MISSING},
        {UNSUPPORTED, 0, 0, 0, 0, FLEET_UNSUPPORTED},
        {4, 1, 2, 3, 4, FLEET_MISSING}, /* of a newer agent */
        {-1, 1, 2, 3, 4, FLEET_MISSING},
        {OK, NAN, 2, 3, 4, FLEET_MISSING},
        {OK, 1, INFINITY, 3, 4, FLEET_MISSING},
        {OK, 1, 2, -1, 4, FLEET_MISSING},
        {OK, 1, 2, 3, -INFINITY, FLEET_MISSING},
        {OK, -1e-9, 2, 3, 4, FLEET_MISSING},
        {OK, 1e300, 2, 3, 4, FLEET_MISSING}, /* what stands there grows: it must stay a number */
    };
    struct fleet_store *s = *state;
    tell_all(s, T0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        apply(s, T0 + S(1), .sequence = i + 2, .age_ms = 500, .n_device_rows = 1,
              .device_rows = {
                  {.id = 10,
                   .n = 1,
                   .of = {{0, rows[i].status, rows[i].mean, rows[i].peak, rows[i].integral, rows[i].valid_s}}}});
        if (reading(s, 0, 0)->status != rows[i].want)
            fail_msg("row %zu: status %d", i, (int)reading(s, 0, 0)->status);
        assert_true(isfinite(reading(s, 0, 0)->mean) && reading(s, 0, 0)->mean >= 0);
    }
}

static void test_devices_come_and_go_with_their_holders(void **state)
{
    struct fleet_store *s = *state;
    const struct fleet_node *node = fleet_store_node(s);
    tell_all(s, T0);
    apply(s, T0 + S(1), .sequence = 2, .n_removed_devices = 1, .removed_devices = {10}, .n_devices = 1,
          .devices = {{.id = 12, .uuid = "GPU-c"}}, .n_holders = 1,
          .holders = {{.id = 22, .device = 12, .pod = "web-2"}}, .n_device_rows = 1,
          .device_rows = {{.id = 12, .n = 1, .of = {{0, OK, 5, 5, 5, 1}}}});
    assert_int_equal(node->n_devices, 2);
    assert_string_equal(node->devices[0].uuid, "GPU-b");
    assert_double_same(node->devices[0].readings[0].mean, 60);
    assert_string_equal(node->devices[1].uuid, "GPU-c");
    assert_double_same(node->devices[1].readings[0].mean, 5);
    assert_int_equal(node->n_holders, 2); /* web-0 went with its device */
    assert_string_equal(node->holders[0].pod, "web-1");
    assert_ptr_equal(node->holders[0].device, &node->devices[0]);
    assert_ptr_equal(node->holders[1].device, &node->devices[1]);
    apply(s, T0 + S(2), .sequence = 3, .n_removed_holders = 2, .removed_holders = {21, 99}, .n_removed_devices = 1,
          .removed_devices = {99});
    assert_int_equal(node->n_holders, 1);
    assert_string_equal(node->holders[0].pod, "web-2");
}

static void test_a_device_that_changes_keeps_its_readings(void **state)
{
    struct fleet_store *s = *state;
    const struct fleet_node *node = fleet_store_node(s);
    tell_all(s, T0);
    apply(s, T0 + S(1), .sequence = 2, .age_ms = 500, .n_devices = 1,
          .devices = {{.id = 10, .uuid = "GPU-a", .lost_reason = "fell off the bus"}});
    assert_int_equal(node->n_devices, 2);
    assert_string_equal(node->devices[0].lost_reason, "fell off the bus");
    assert_double_same(node->devices[0].readings[0].mean, 40);
    assert_string_equal(node->holders[0].device->lost_reason, "fell off the bus");
}

static void test_a_device_of_an_unknown_kind_is_lost_and_its_readings_are_missing(void **state)
{
    struct fleet_store *s = *state;
    apply(s, T0, .sequence = 1, .is_full = true, LIMITS, .n_devices = 1, .devices = {{.id = 1, .uuid = "X", .kind = 9}},
          .n_device_rows = 1, .device_rows = {{.id = 1, .n = 1, .of = {{0, OK, 5, 5, 5, 1}}}});
    assert_string_not_equal(fleet_store_node(s)->devices[0].lost_reason, "");
    assert_int_equal(reading(s, 0, 0)->status, FLEET_MISSING);
}

/* ---- holders ---- */

static void test_holders_stand_in_order_and_are_found_by_pod(void **state)
{
    struct fleet_store *s = *state;
    const struct fleet_node *node = fleet_store_node(s);
    size_t n;
    apply(s, T0, .sequence = 1, .is_full = true, LIMITS, .n_devices = 2, .devices = {{.id = 2}, {.id = 1}},
          .n_holders = 6,
          .holders = {{.id = 1, .device = 1, .ns = "b", .pod = "a"},
                      {.id = 2, .device = 2, .ns = "b", .pod = "a"},
                      {.id = 3, .device = 1, .ns = "a", .pod = "b"},
                      {.id = 4, .device = 9, .ns = "a", .pod = "a"}, /* of no device: passed over */
                      {.id = 5, .device = 1, .ns = "b", .pod = ""},
                      {.id = 6, .device = 1, .ns = "b", .pod = "aa"}});
    static const uint32_t order[] = {3, 5, 2, 1, 6};
    assert_int_equal(node->n_holders, ARRAY_LEN(order));
    for (size_t i = 0; i < ARRAY_LEN(order); i++)
        assert_int_equal(node->holders[i].id, order[i]);
    assert_ptr_equal(fleet_holders_of(node, "b", "a", &n), &node->holders[2]);
    assert_int_equal(n, 2);
    assert_ptr_equal(fleet_holders_of(node, "b", "aa", &n), &node->holders[4]);
    assert_int_equal(n, 1);
    assert_null(fleet_holders_of(node, "a", "a", &n));
    assert_int_equal(n, 0);
    assert_null(fleet_holders_of(node, "c", "", &n));
}

static void test_a_holder_has_readings_of_its_own_until_told_otherwise(void **state)
{
    struct fleet_store *s = *state;
    const struct fleet_node *node = fleet_store_node(s);
    tell_all(s, T0);
    apply(s, T0 + S(1), .sequence = 2, .age_ms = 500, .n_holder_rows = 1,
          .holder_rows = {{.id = 21, .n = 1, .of = {{0, OK, 30, 35, 30, 1}}}});
    assert_non_null(node->holders[1].readings);
    assert_null(node->holders[0].readings);
    assert_double_same(node->holders[1].readings[0].mean, 30);
    assert_int_equal(node->holders[1].readings[1].status, FLEET_NOT_YET);
    apply(s, T0 + S(2), .sequence = 3, .age_ms = 500);
    assert_double_near(node->holders[1].readings[0].integral, 60, 1e-9);
    apply(s, T0 + S(3), .sequence = 4, .age_ms = 500, .n_holders = 1, /* a change of it does not touch them */
          .holders = {{.id = 21, .device = 11, .pod = "web-1"}});
    assert_double_near(node->holders[1].readings[0].integral, 90, 1e-9);
    apply(s, T0 + S(4), .sequence = 5, .age_ms = 500, .n_holder_rows = 1, .holder_rows = {{.id = 21}});
    assert_null(node->holders[1].readings);
}

/* Minutes as the store has them: low values, with -1 for one in which nothing was read. */
static void check_minutes(const struct fleet_store *s, const float *want, size_t n, int line)
{
    const struct fleet_holder *h = &fleet_store_node(s)->holders[0];
    if (h->n_minutes != n)
        fail_msg("line %d: %zu minutes", line, h->n_minutes);
    for (size_t i = 0; i < n; i++) {
        bool is_read = h->minutes[i].low <= h->minutes[i].high;
        if (is_read != (want[i] >= 0) || (is_read && (double)fabsf(h->minutes[i].low - want[i]) > 1e-6))
            fail_msg("line %d: minute %zu is %g", line, i, (double)h->minutes[i].low);
    }
}
#define MINUTES(...) check_minutes(s, (const float[]){__VA_ARGS__}, sizeof((float[]){__VA_ARGS__}) / 4, __LINE__)
#define HOLDER(number, count, ...)                                                                                     \
    .n_holders = 1,                                                                                                    \
    .holders = {{.id = 20, .device = 10, .pod = "web-0", .minute = (number), .n_minutes = (count), __VA_ARGS__}}

static void test_minutes_of_memory_move_on_and_are_replaced_from_the_newest(void **state)
{
    struct fleet_store *s = *state;
    apply(s, T0, .sequence = 1, .is_full = true, LIMITS, .n_devices = 1, .devices = {{.id = 10}},
          HOLDER(100, 3, .low = {30, 20, 10}, .high = {31, 21, 11}));
    MINUTES(30, 20, 10);
    apply(s, T0, .sequence = 2, HOLDER(100, 1, .low = {33}, .high = {34})); /* the same minute goes on */
    MINUTES(33, 20, 10);
    apply(s, T0, .sequence = 3, HOLDER(101, 2, .low = {40, 35}, .high = {41, 36}));
    MINUTES(40, 35, 20, 10);
    apply(s, T0, .sequence = 4, HOLDER(103, 1, .low = {50}, .high = {51})); /* one was left out */
    MINUTES(50, -1, 40, 35, 20, 10);
    apply(s, T0, .sequence = 5, HOLDER(103, 0)); /* nothing new of them */
    MINUTES(50, -1, 40, 35, 20, 10);
    apply(s, T0, .sequence = 6, HOLDER(104, 2, .low = {NAN, 52}, .high = {1, 53}));
    MINUTES(-1, 52, -1, 40, 35, 20, 10);
    apply(s, T0, .sequence = 7, HOLDER(105, 1, .low = {5}, .high = {4})); /* nothing read */
    MINUTES(-1, -1, 52, -1, 40, 35, 20, 10);
    apply(s, T0, .sequence = 8, HOLDER(140, 1, .low = {60}, .high = {60})); /* all others are too old */
    MINUTES(60);
    apply(s, T0, .sequence = 9, HOLDER(3, 1, .low = {70}, .high = {70})); /* another clock */
    MINUTES(70);
}

/* ---- wants ---- */

static void test_wants_of_different_number_follow_the_full_update(void **state)
{
    struct fleet_store *s = *state;
    tell_all(s, T0);
    fleet_store_begin(s, 3, 7);
    apply(s, T0 + S(1), .sequence = 1, .is_full = true, .n_wants = 3, .age_limits_ms = {5000, 5000, 9000},
          .n_devices = 1, .devices = {{.id = 10}}, .n_device_rows = 1,
          .device_rows = {{.id = 10, .n = 2, .of = {{2, OK, 9, 9, 9, 1}, {3, OK, 1, 1, 1, 1}}}}); /* 3: not asked */
    assert_int_equal(fleet_store_node(s)->n_wants, 3);
    assert_double_same(reading(s, 0, 2)->mean, 9);
    assert_int_equal(reading(s, 0, 0)->status, FLEET_NOT_YET);
    assert_int_equal(fleet_store_node(s)->age_limits_ns[2], S(9));
    fleet_store_begin(s, 1, 1);
    apply(s, T0 + S(2), .sequence = 1, .is_full = true, .n_wants = 3, .age_limits_ms = {5000, 5000, 9000});
    assert_int_equal(fleet_store_node(s)->n_wants, 1); /* no more than were asked for */
    refuse(s, T0 + S(3), "instead of 1", .sequence = 2, .has_node = true);
}

static void test_a_place_with_another_want_has_no_readings_of_the_old_one(void **state)
{
    struct fleet_store *s = *state;
    tell_all(s, T0);
    apply(s, T0, .sequence = 2, .age_ms = 500, .n_holder_rows = 1,
          .holder_rows = {{.id = 20, .n = 1, .of = {{0, OK, 30, 35, 30, 1}}}});
    fleet_store_forget_want(s, 0);
    assert_int_equal(reading(s, 0, 0)->status, FLEET_NOT_YET);
    assert_double_same(reading(s, 0, 0)->mean, 0);
    assert_int_equal(fleet_store_node(s)->holders[0].readings[0].status, FLEET_NOT_YET);
    apply(s, T0 + S(1), .sequence = 3, .age_ms = 500, .n_device_rows = 1, /* the old stream goes on for a while */
          .device_rows = {{.id = 10, .n = 2, .of = {{0, OK, 41, 41, 41, 1}, {1, OK, 7, 7, 7, 1}}}});
    assert_int_equal(reading(s, 0, 0)->status, FLEET_NOT_YET);
    assert_double_same(reading(s, 0, 1)->mean, 7);
    fleet_store_begin(s, 2, 3);
    tell_all(s, T0 + S(2));
    assert_double_same(reading(s, 0, 0)->mean, 40);
}

static void test_last_good_numbers_outlive_a_stream_but_not_the_agent(void **state)
{
    struct fleet_store *s = *state;
    for (uint64_t instance = 7; instance <= 8; instance++) {
        tell_all(s, T0);
        fleet_store_begin(s, 2, 3);
        apply(s, T0 + S(1), .sequence = 1, .is_full = true, .instance = instance, LIMITS, .n_devices = 1,
              .devices = {{.id = 10, .uuid = "GPU-a"}}, .n_device_rows = 1,
              .device_rows = {{.id = 10, .n = 1, .of = {{0, MISSING}}}});
        assert_int_equal(fleet_store_node(s)->instance, instance);
        assert_int_equal(reading(s, 0, 0)->status, FLEET_MISSING);
        assert_double_same(reading(s, 0, 0)->mean, instance == 7 ? 40 : 0);
        fleet_store_begin(s, 2, 3);
    }
}

/* ---- clocks ---- */

/* What was held up on its way is as old as it is, by the agent's clock against ours. */
static void test_what_arrives_late_is_older(void **state)
{
    struct fleet_store *s = *state;
    apply(s, T0, .sequence = 1, .is_full = true, .sent_ms = 50000, .age_ms = 500, LIMITS);
    static const struct {
        double at_s, sent_s, taken_s;
    } rows[] = {
        {1.0, 51.0, 0.5},   {2.01, 52.0, 1.5}, {9.0, 53.0, 2.5},  {9.0, 54.0, 3.5},
        {9.1, 59.05, 8.55}, {9.2, 59.2, 8.7},  {10.0, 60.5, 9.5}, /* quicker than all before: the measure from here on
                                                                   */
        {11.0, 61.0, 10.0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        apply(s, T0 + S(rows[i].at_s), .sequence = i + 2, .sent_ms = (uint64_t)((rows[i].sent_s) * 1000),
              .age_ms = 500);
        assert_double_near((double)(fleet_store_node(s)->taken_ns - T0) / 1e9, rows[i].taken_s, 0.02);
    }
}

/* Clocks of two machines drift apart by some millionths: that must not add up to lateness. */
static void test_a_drift_of_the_clocks_is_not_taken_for_lateness(void **state)
{
    struct fleet_store *s = *state;
    apply(s, T0, .sequence = 1, .is_full = true, .sent_ms = 50000, .age_ms = 500, LIMITS);
    for (uint64_t i = 1; i <= 2000; i++) { /* 50 s each: more than a day */
        int64_t now_ns = T0 + (int64_t)i * 50 * NS_PER_S;
        apply(s, now_ns, .sequence = i + 1, .sent_ms = 50000 + i * 49995, .age_ms = 500); /* slower by 100 millionths */
        assert_true(now_ns - fleet_store_node(s)->taken_ns < S(0.52));
    }
}

static void test_a_whole_update_compares_the_clocks_anew(void **state)
{
    struct fleet_store *s = *state;
    apply(s, T0, .sequence = 1, .is_full = true, .sent_ms = 50000, .age_ms = 500, LIMITS);
    apply(s, T0 + S(10), .sequence = 2, .sent_ms = 51000, .age_ms = 500);
    assert_int_equal(fleet_store_node(s)->taken_ns, T0 + S(0.502)); /* 9 s late, less what may be drift */
    fleet_store_begin(s, 2, 3);
    apply(s, T0 + S(11), .sequence = 1, .is_full = true, .sent_ms = 52000, .age_ms = 500, LIMITS);
    assert_int_equal(fleet_store_node(s)->taken_ns, T0 + S(10.5));
}

static void test_a_snapshot_never_becomes_older(void **state)
{
    struct fleet_store *s = *state;
    tell_all(s, T0);
    apply(s, T0 + S(1), .sequence = 2, .age_ms = 3000);
    assert_int_equal(fleet_store_node(s)->taken_ns, T0 - S(0.5));
    assert_double_same(reading(s, 0, 0)->integral, 400);
}

static void test_huge_ages_are_old_and_no_limit_lasts_for_ever(void **state)
{
    struct fleet_store *s = *state;
    const struct fleet_node *node = fleet_store_node(s);
    apply(s, T0, .sequence = 1, .is_full = true, .age_ms = UINT64_MAX, .sent_ms = UINT64_MAX, .n_wants = 1,
          .age_limits_ms = {UINT32_MAX}, .n_devices = 1, .devices = {{.id = 1}}, .n_holders = 1,
          .holders = {{.id = 1, .device = 1, .held_ms = UINT64_MAX}}, .n_device_rows = 1,
          .device_rows = {{.id = 1, .n = 1, .of = {{0, OK, 1, 1, 1, 1, UINT32_MAX}}}});
    assert_true(node->taken_ns < 0 && node->holders[0].since_ns < node->taken_ns);
    assert_true(node->age_limits_ns[0] <= 600 * NS_PER_S);
    assert_false(fleet_reading_is_fresh(node, 0, &node->devices[0].readings[0], T0));
}

/* ---- faults ---- */

static void test_a_change_out_of_sequence_is_refused_until_a_full_one_comes(void **state)
{
    struct fleet_store *s = *state;
    refuse(s, T0, "before the whole", .sequence = 1);
    tell_all(s, T0);
    refuse(s, T0 + S(1), "update 3 after 1", .sequence = 3);
    assert_double_same(reading(s, 0, 0)->mean, 40); /* what was known ages, it does not go */
    assert_true(fleet_store_node(s)->is_synced);
    refuse(s, T0 + S(1), "before the whole", .sequence = 2);
    refuse(s, T0 + S(1), "before the whole", .sequence = 5, .is_full = true, LIMITS);
    tell_all(s, T0 + S(2));
    apply(s, T0 + S(3), .sequence = 2);
    apply(s, T0 + S(4), .sequence = 3, .is_full = true, LIMITS); /* a whole one in the midst */
    assert_int_equal(fleet_store_node(s)->n_devices, 0);
    refuse(s, T0 + S(5), "update 3 after 3", .sequence = 3);
}

static void test_a_node_is_whole_when_nothing_more_is_to_come(void **state)
{
    struct fleet_store *s = *state;
    apply(s, T0, .sequence = 1, .is_full = true, .has_more = true, LIMITS);
    assert_false(fleet_store_node(s)->is_synced);
    apply(s, T0 + S(1), .sequence = 2, .has_more = true);
    assert_false(fleet_store_node(s)->is_synced);
    apply(s, T0 + S(2), .sequence = 3);
    assert_true(fleet_store_node(s)->is_synced);
    apply(s, T0 + S(3), .sequence = 4, .has_more = true); /* a large change of what is known */
    assert_true(fleet_store_node(s)->is_synced);
    apply(s, T0 + S(4), .sequence = 1, .is_full = true, .has_more = true, LIMITS);
    assert_false(fleet_store_node(s)->is_synced);
}

static void test_a_full_update_without_a_node_is_refused(void **state)
{
    struct err e;
    static const char bytes[] = {0x08, 1, 0x10, 1}; /* sequence 1, is_full */
    assert_int_equal(fleet_store_apply(*state, (struct str){bytes, sizeof(bytes)}, T0, &e), -1);
    assert_non_null(strstr(e.text, "nothing of the node"));
}

static void test_an_agent_cannot_become_another_within_a_call(void **state)
{
    struct fleet_store *s = *state;
    tell_all(s, T0);
    refuse(s, T0, "another one", .sequence = 2, .has_node = true, .instance = 8, LIMITS);
    tell_all(s, T0);
    apply(s, T0, .sequence = 2, .has_node = true, LIMITS, .name = "renamed");
    assert_string_equal(fleet_store_node(s)->name, "renamed");
}

static void test_a_node_without_a_name_has_the_expected_one(void **state)
{
    struct fleet_store *s = *state;
    fleet_store_expect_name(s, "worker-1");
    assert_string_equal(fleet_store_node(s)->name, "worker-1");
    tell_all(s, T0);
    fleet_store_expect_name(s, "worker-2");
    assert_string_equal(fleet_store_node(s)->name, "node-1");
    assert_string_equal(fleet_store_node(s)->expected, "worker-2"); /* to be told: its pods are on worker-2 */
    apply(s, T0, .sequence = 2, .has_node = true, LIMITS, .name = "");
    assert_string_equal(fleet_store_node(s)->name, "worker-2");
    fleet_store_expect_name(s, "worker-3");
    assert_string_equal(fleet_store_node(s)->name, "worker-3");
}

/* Bytes that no agent of ours sends, after a full update of one device (id 10). */
static void test_broken_bytes_are_refused_and_unknown_fields_passed_over(void **state)
{
#define ROW(text, is_taken)                                                                                            \
    {                                                                                                                  \
        text, sizeof(text) - 1, is_taken                                                                               \
    }
    static const struct {
        const char *bytes;
        size_t len;
        bool is_taken;
    } rows[] = {
        ROW("\x08\x02", true),
        ROW("\x08\x02\xa0\x06\x05\xaa\x06\x03"
            "abc\xb5\x06"
            "1234\xb1\x06"
            "12345678",
            true),                                                      /* fields 100 to 102 */
        ROW("\x08\x02\x4a\x04\x08\x0a\x12\x00", true),                  /* a reading that says nothing: 0, OK */
        ROW("\x08\x02\x32\x03\x0a\x0b\x0c", true),                      /* removed ids, packed */
        ROW("\x08\x02\x30\x0a", true),                                  /* and one by one */
        ROW("\x08\x02\x48\x01", true),                                  /* field 9 as a number: another field */
        ROW("\x08", false),                                             /* no value */
        ROW("\x08\x02\x4a\x7f", false),                                 /* longer than the message */
        ROW("\x08\x02\x4b", false),                                     /* a group */
        ROW("\x08\x02\x00\x01", false),                                 /* field 0 */
        ROW("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", false), /* eleven bytes of a number */
        ROW("\x08\x02\x4a\x03\x08\x0a\x12", false),                     /* cut inside Readings */
        ROW("\x08\x02\x4a\x05\x08\x0a\x12\x01\x08", false),             /* cut inside a reading, the last one */
        ROW("\x08\x02\x32\x02\x0a\xff", false),                         /* cut inside packed ids */
        ROW("\x08\x02\x2a\x03\x12\x01\xff", false),                     /* a UUID that is no UTF-8 */
        ROW("\x08\x02\x2a\x03\x12\x01\x00", false),                     /* with a NUL */
        ROW("\x08\x02\x3a\x05\x62\x03"
            "123",
            false), /* three bytes of floats */
    };
#undef ROW
    struct fleet_store *s = *state;
    struct err e;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        tell_all(s, T0);
        int rv = fleet_store_apply(s, (struct str){rows[i].bytes, rows[i].len}, T0 + S(1), &e);
        if ((rv == 0) != rows[i].is_taken)
            fail_msg("row %zu: %s", i, rv ? e.text : "taken");
        fleet_store_begin(s, 2, 3);
    }
}

/* ---- ceilings ---- */

/* Append `n` fields of this number, each with the id and, of a device or holder, some field of it. */
static void append_parts(struct buf *out, unsigned field, uint32_t first, size_t n, const char *text, size_t text_len)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t id = first + (uint32_t)i;
        char head[] = {(char)(field << 3 | 2), (char)(4 + text_len),   0x08,
                       (char)(id | 0x80),      (char)(id >> 7 | 0x80), (char)(id >> 14)};
        assert_int_equal(buf_append(out, head, sizeof(head)) | buf_append(out, text, text_len), 0);
    }
}

static int apply_bytes(struct fleet_store *s, const struct buf *bytes, struct err *e)
{
    return fleet_store_apply(s, (struct str){bytes->data, bytes->len}, T0, e);
}

static void test_devices_and_holders_have_a_ceiling(void **state)
{
    static const char full[] = {0x08, 1, 0x10, 1, 0x22, 0}, change[] = {0x08, 2};
    static const struct {
        unsigned field;
        size_t most;
    } rows[] = {{5, FLEET_DEVICES_MAX}, {7, FLEET_HOLDERS_MAX}};
    struct fleet_store *s = *state;
    struct err e;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        BUF_AUTO struct buf bytes;
        buf_init(&bytes, 1 << 20);
        (void)buf_append(&bytes, full, sizeof(full));
        append_parts(&bytes, 5, 1, 1, "", 0);
        size_t n = rows[i].field == 5 ? rows[i].most - 1 : rows[i].most;
        append_parts(&bytes, rows[i].field, 2, n, "\x10\x01", rows[i].field == 7 ? 2 : 0);
        assert_int_equal(apply_bytes(s, &bytes, &e), 0);
        append_parts(&bytes, rows[i].field, 9000, 1, "", 0);
        assert_int_equal(apply_bytes(s, &bytes, &e), -1); /* in one update */
        assert_int_equal(e.class, ERR_RESOURCE_EXHAUSTED);
        bytes.len -= 6;
        assert_int_equal(apply_bytes(s, &bytes, &e), 0);
        buf_reset(&bytes);
        (void)buf_append(&bytes, change, sizeof(change));
        append_parts(&bytes, rows[i].field, 2, 1, "\x10\x01", rows[i].field == 7 ? 2 : 0); /* known: no more */
        assert_int_equal(apply_bytes(s, &bytes, &e), 0);
        bytes.data[1] = 3;
        append_parts(&bytes, rows[i].field, 9000, 1, "", 0);
        assert_int_equal(apply_bytes(s, &bytes, &e), -1); /* beside what is there */
        assert_int_equal(e.class, ERR_RESOURCE_EXHAUSTED);
        assert_true(fleet_store_node(s)->n_devices <= FLEET_DEVICES_MAX);
        assert_true(fleet_store_node(s)->n_holders <= FLEET_HOLDERS_MAX);
    }
}

/* Agents go by id, the store by pod: readings find theirs, also where there are so many that an index is kept. */
static void test_readings_find_their_holder_among_many(void **state)
{
    enum { N = 100, STEP = 37 };
    static const char full[] = {0x08, 1, 0x10, 1, 0x22, 3, 0x68, (char)0x88, 0x27}; /* one want, 5000 ms */
    static const char reading[] = "\x12\x09\x19\0\0\0\0\0\0\xf0\x3f";               /* OK, mean 1 */
    struct fleet_store *s = *state;
    struct err e;
    BUF_AUTO struct buf bytes;
    buf_init(&bytes, 1 << 16);
    (void)buf_append(&bytes, full, sizeof(full));
    append_parts(&bytes, 5, 1, 1, "", 0);
    for (uint32_t i = 0; i < N; i++) {
        char tail[] = "\x10\x01\x22\x02xx"; /* device 1, a pod of two letters */
        tail[4] = (char)('a' + i * STEP % N / 10);
        tail[5] = (char)('a' + i * STEP % 10);
        append_parts(&bytes, 7, 300 + i, 1, tail, sizeof(tail) - 1);
    }
    append_parts(&bytes, 10, 300, N, reading, 11);
    append_parts(&bytes, 10, 299, 1, reading, 11); /* of nobody */
    append_parts(&bytes, 10, 300 + N, 1, reading, 11);
    assert_int_equal(apply_bytes(s, &bytes, &e), 0);
    const struct fleet_node *node = fleet_store_node(s);
    assert_int_equal(node->n_holders, N);
    for (size_t i = 0; i < N; i++) {
        const struct fleet_holder *h = &node->holders[i];
        assert_true(i == 0 || strcmp(h[-1].pod, h->pod) < 0);
        assert_non_null(h->readings);
        assert_double_same(h->readings[0].mean, 1);
    }
    bytes.len = 0;
    (void)buf_append(&bytes, (const char[]){0x08, 2}, 2);
    append_parts(&bytes, 8, 0, 0, "", 0);
    (void)buf_append(&bytes, (const char[]){0x40, (char)0xad, 0x02}, 3); /* the holder with id 301 goes */
    append_parts(&bytes, 10, 302, 1, "", 0);                             /* 302 has no readings of its own any more */
    assert_int_equal(apply_bytes(s, &bytes, &e), 0);
    assert_int_equal(node->n_holders, N - 1);
    for (size_t i = 0; i + 1 < N; i++) {
        assert_int_not_equal(node->holders[i].id, 301);
        assert_int_equal(node->holders[i].readings == NULL, node->holders[i].id == 302);
    }
}

static void test_texts_have_a_ceiling(void **state)
{
    char text[FLEET_TEXT_MAX + 2];
    memset(text, 'x', sizeof(text));
    text[FLEET_TEXT_MAX] = '\0';
    apply(*state, T0, .sequence = 1, .is_full = true, LIMITS, .n_devices = 1, .devices = {{.id = 1, .uuid = text}});
    assert_int_equal(strlen(fleet_store_node(*state)->devices[0].uuid), FLEET_TEXT_MAX);
    text[FLEET_TEXT_MAX] = 'x';
    text[FLEET_TEXT_MAX + 1] = '\0';
    refuse(*state, T0, "1024 bytes", .sequence = 1, .is_full = true, LIMITS, .n_devices = 1,
           .devices = {{.id = 1, .uuid = text}});
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(test_a_full_update_tells_everything),
        TEST(test_a_change_leaves_the_rest_as_it_is),
        TEST(test_what_is_not_sent_stands_at_its_mean),
        TEST(test_readings_do_not_move_on_without_a_snapshot),
        TEST(test_a_reading_that_goes_missing_keeps_its_last_good_numbers),
        TEST(test_statuses_and_numbers_are_taken_for_what_they_are),
        TEST(test_devices_come_and_go_with_their_holders),
        TEST(test_a_device_that_changes_keeps_its_readings),
        TEST(test_a_device_of_an_unknown_kind_is_lost_and_its_readings_are_missing),
        TEST(test_holders_stand_in_order_and_are_found_by_pod),
        TEST(test_a_holder_has_readings_of_its_own_until_told_otherwise),
        TEST(test_minutes_of_memory_move_on_and_are_replaced_from_the_newest),
        TEST(test_wants_of_different_number_follow_the_full_update),
        TEST(test_a_place_with_another_want_has_no_readings_of_the_old_one),
        TEST(test_last_good_numbers_outlive_a_stream_but_not_the_agent),
        TEST(test_what_arrives_late_is_older),
        TEST(test_a_drift_of_the_clocks_is_not_taken_for_lateness),
        TEST(test_a_whole_update_compares_the_clocks_anew),
        TEST(test_a_snapshot_never_becomes_older),
        TEST(test_huge_ages_are_old_and_no_limit_lasts_for_ever),
        TEST(test_a_change_out_of_sequence_is_refused_until_a_full_one_comes),
        TEST(test_a_node_is_whole_when_nothing_more_is_to_come),
        TEST(test_a_full_update_without_a_node_is_refused),
        TEST(test_an_agent_cannot_become_another_within_a_call),
        TEST(test_a_node_without_a_name_has_the_expected_one),
        TEST(test_broken_bytes_are_refused_and_unknown_fields_passed_over),
        TEST(test_devices_and_holders_have_a_ceiling),
        TEST(test_readings_find_their_holder_among_many),
        TEST(test_texts_have_a_ceiling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
