/* Counters, gauges, histograms: series, ceilings, what a visitor sees. */
#include "base/base.h"

#include "support.h"

#include <stdio.h>
#include <string.h>

static const double bounds[] = {0.1, 1, 10};
static const struct metric_desc calls = {
    .name = "calls", .help = "Calls.", .kind = METRIC_COUNTER, .labels = {"method", "code"}};
static const struct metric_desc streams = {.name = "streams", .help = "Open streams.", .kind = METRIC_GAUGE};
static const struct metric_desc latency = {.name = "latency_seconds",
                                           .help = "Latency.",
                                           .unit = "seconds",
                                           .kind = METRIC_HISTOGRAM,
                                           .bounds = bounds,
                                           .n_bounds = 3};
static const struct metric_desc small = {
    .name = "small", .help = "Small.", .kind = METRIC_COUNTER, .labels = {"peer"}, .max_series = 3};

static void write_family(void *context, const struct metric_desc *desc)
{
    (void)buf_printf((struct buf *)context, "%s:", desc->name);
}

static void write_sample(void *context, const struct metric_sample *sample)
{
    struct buf *out = (struct buf *)context;
    for (size_t i = 0; i < METRIC_LABELS_MAX && sample->desc->labels[i]; i++)
        (void)buf_printf(out, " %s=%s", sample->desc->labels[i], sample->label_values[i]);
    if (sample->desc->kind != METRIC_HISTOGRAM) {
        (void)buf_printf(out, " %g;", sample->value);
        return;
    }
    for (size_t i = 0; i < sample->desc->n_bounds; i++)
        (void)buf_printf(out, " %g:%g", sample->bounds[i], sample->bucket_counts[i]);
    (void)buf_printf(out, " sum=%g count=%g;", sample->sum, sample->count);
}

static void assert_shows(const struct metrics *m, const char *want)
{
    BUF_AUTO struct buf out;
    buf_init(&out, 10000);
    metrics_visit(m, &(struct metric_visitor){write_family, write_sample, &out});
    assert_string_equal(buf_cstr(&out), want);
}

static struct metric_series *calls_of(struct metric_family *f, const char *method, const char *code)
{
    return metric_series(f, (const char *const[]){method, code});
}

static void test_family_without_labels_shows_zero_at_once(void **state)
{
    (void)state;
    struct metrics *m = metrics_new();
    struct metric_family *f = metric_register(m, &streams);
    (void)metric_register(m, &calls);
    assert_shows(m, "streams: 0;");
    metric_add(metric_only(f), 2);
    metric_add(metric_only(f), -1);
    assert_shows(m, "streams: 1;");
    metric_set(metric_only(f), 7);
    assert_double_same(metric_value(metric_only(f)), 7);
    metrics_free(m);
}

static void test_series_are_told_apart_by_every_label(void **state)
{
    (void)state;
    struct metrics *m = metrics_new();
    struct metric_family *f = metric_register(m, &calls);
    char method[16] = "Get"; /* values are copied */
    metric_add(calls_of(f, method, "OK"), 1);
    (void)snprintf(method, sizeof(method), "%s", "Put");
    metric_add(calls_of(f, method, "OK"), 2);
    metric_add(calls_of(f, "Get", "UNKNOWN"), 3);
    metric_add(calls_of(f, "Get", "OK"), 10);
    assert_shows(m, "calls: method=Get code=OK 11; method=Put code=OK 2; method=Get code=UNKNOWN 3;");
    metrics_free(m);
}

static void test_registering_a_name_again_gives_the_same_family(void **state)
{
    (void)state;
    struct metrics *m = metrics_new();
    struct metric_family *f = metric_register(m, &streams);
    assert_ptr_equal(metric_register(m, &streams), f);
    assert_shows(m, "streams: 0;");
    metrics_free(m);
}

static void test_buckets_are_cumulative_and_bounds_inclusive(void **state)
{
    (void)state;
    struct metrics *m = metrics_new();
    struct metric_series *s = metric_only(metric_register(m, &latency));
    assert_shows(m, "latency_seconds: 0.1:0 1:0 10:0 sum=0 count=0;");
    static const double samples[] = {0, 0.1, 0.5, 1, 10, 10.5, 100};
    for (size_t i = 0; i < ARRAY_LEN(samples); i++)
        metric_observe(s, samples[i]);
    assert_shows(m, "latency_seconds: 0.1:2 1:4 10:5 sum=122.1 count=7;");
    metrics_free(m);
}

static void test_series_beyond_the_ceiling_share_one(void **state)
{
    (void)state;
    struct metrics *m = metrics_new();
    struct metric_family *f = metric_register(m, &small);
    for (int i = 0; i < 100; i++) {
        char peer[16];
        (void)snprintf(peer, sizeof(peer), "p%d", i);
        struct metric_series *(*const get)(struct metric_family *, const char *const *) =
            i % 2 ? metric_series_new : metric_series;
        metric_add(get(f, (const char *const[]){peer}), 1);
    }
    assert_shows(m, "small: peer=p0 1; peer=p1 1; peer=other 98;");
    metrics_free(m);
}

static void test_removed_series_leaves_and_makes_room(void **state)
{
    (void)state;
    struct metrics *m = metrics_new();
    struct metric_family *f = metric_register(m, &small);
    metric_add(metric_series(f, (const char *const[]){"a"}), 1);
    metric_add(metric_series(f, (const char *const[]){"b"}), 2);
    metric_remove(f, (const char *const[]){"a"});
    metric_remove(f, (const char *const[]){"nobody"});
    assert_shows(m, "small: peer=b 2;");
    metric_add(metric_series(f, (const char *const[]){"c"}), 3);
    assert_shows(m, "small: peer=b 2; peer=c 3;");
    metric_clear(f);
    assert_shows(m, "");
    metric_add(metric_series(f, (const char *const[]){"a"}), 5);
    assert_shows(m, "small: peer=a 5;");
    metrics_free(m);
}

static void test_series_pointer_stays_valid_while_others_come(void **state)
{
    (void)state;
    struct metrics *m = metrics_new();
    struct metric_family *f = metric_register(m, &calls);
    struct metric_series *first = calls_of(f, "first", "OK");
    for (int i = 0; i < 200; i++) {
        char method[16];
        (void)snprintf(method, sizeof(method), "m%d", i);
        (void)calls_of(f, method, "OK");
    }
    metric_add(first, 1);
    assert_double_same(metric_value(calls_of(f, "first", "OK")), 1);
    metrics_free(m);
}

static void test_families_show_in_order_of_registration(void **state)
{
    (void)state;
    struct metrics *m = metrics_new();
    (void)metric_register(m, &latency);
    (void)metric_register(m, &streams);
    assert_shows(m, "latency_seconds: 0.1:0 1:0 10:0 sum=0 count=0;streams: 0;");
    metrics_free(m);
    metrics_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_family_without_labels_shows_zero_at_once),
        cmocka_unit_test(test_series_are_told_apart_by_every_label),
        cmocka_unit_test(test_registering_a_name_again_gives_the_same_family),
        cmocka_unit_test(test_buckets_are_cumulative_and_bounds_inclusive),
        cmocka_unit_test(test_series_beyond_the_ceiling_share_one),
        cmocka_unit_test(test_removed_series_leaves_and_makes_room),
        cmocka_unit_test(test_series_pointer_stays_valid_while_others_come),
        cmocka_unit_test(test_families_show_in_order_of_registration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
