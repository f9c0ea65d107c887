/* The page: every family against a golden file, and what must be absent. UPDATE_GOLDEN=1 writes the file anew. */
#include "exporter/exporter.h"

#include "promtext/page.h"

#include <stdio.h>

#define NOW  (100 * NS_PER_S)
#define WALL (1700000000 * NS_PER_S) /* of the monotonic clock's 0 */

static struct snapshot_device *add(struct snapshot_store *store, const char *uuid, enum snapshot_kind kind, int index)
{
    struct snapshot_device d = {
        .kind = kind, .index = index, .minor = index, .gpu_instance = -1, .compute_instance = -1};
    (void)str_copy(d.uuid, sizeof(d.uuid), str_of(uuid));
    (void)str_copy(d.product, sizeof(d.product), str_of("NVIDIA H100 80GB HBM3"));
    (void)str_copy(d.pci_bus_id, sizeof(d.pci_bus_id), str_of("00000000:3B:00.0"));
    return snapshot_store_add(store, &d);
}

/* GPU 0 reads everything, GPU 1 is lost, GPU 2 is cut into instances. */
static struct snapshot *make_snapshot(void)
{
    struct snapshot_store *store = snapshot_store_new(NS_PER_S);
    struct snapshot *header = snapshot_store_header(store);
    header->driver = SNAPSHOT_DRIVER_OK;
    (void)str_copy(header->driver_version, sizeof(header->driver_version), str_of("570.172.08"));
    header->sampler = (struct snapshot_sampler){
        .cycles = 7, .nvml_calls = 70, .errors = 3, .n_error_codes = 1, .errors_by_code = {{15, 3}}};
    struct snapshot_device *gpu = add(store, "GPU-0", SNAPSHOT_GPU, 0);
    for (int f = 0; f < SNAPSHOT_FIELD_COUNT; f++)
        snapshot_store_record(store, gpu, (enum snapshot_field)f, 50, NOW);
    snapshot_store_record(store, gpu, SNAPSHOT_THROTTLE_REASONS, 0x4, NOW);
    gpu->xids[gpu->n_xids++] = (struct snapshot_xid){.xid = 79, .count = 2, .last_ns = NOW};
    struct snapshot_device *lost = add(store, "GPU-1", SNAPSHOT_GPU, 1);
    snapshot_store_record(store, lost, SNAPSHOT_UTILIZATION, 99, NOW);
    lost->is_lost = true;
    struct snapshot_device *parent = add(store, "GPU-2", SNAPSHOT_MIG_PARENT, 2);
    snapshot_store_record(store, parent, SNAPSHOT_POWER, 300, NOW);
    snapshot_store_fail(parent, SNAPSHOT_UTILIZATION, SNAPSHOT_UNSUPPORTED);
    struct snapshot_device *slice = add(store, "MIG-2a", SNAPSHOT_MIG, 2);
    (void)str_copy(slice->mig_profile, sizeof(slice->mig_profile), str_of("1g.10gb"));
    (void)str_copy(slice->parent_uuid, sizeof(slice->parent_uuid), str_of("GPU-2"));
    slice->gpu_instance = 7;
    slice->compute_instance = 0;
    snapshot_store_record(store, slice, SNAPSHOT_MEMORY_USED, 1 << 20, NOW);
    struct snapshot *s = snapshot_store_publish(store, NOW);
    snapshot_store_free(store);
    return s;
}

/* GPU 0 has one holder, the MIG device two replicas' worth of them, and one holds what was never seen. */
static struct snapshot_owners *make_owners(void)
{
    static const struct snapshot_holding rows[] = {
        {"GPU-0", "GPU-0", "ml", "trainer-0", "main", "nvidia.com/gpu", "", "", true, false, false, -1, 1},
        {"MIG-2a", "MIG-2a::0", "web", "b-\"q\"\n", "a", "nvidia.com/mig-1g.10gb", "", "", true, true, false, 0, 1},
        {"MIG-2a", "gpu-2-mig", "web", "c", "a", "gpu.nvidia.com", "web", "half", true, true, true, -1, 1},
        {"GPU-gone", "GPU-gone", "ml", "trainer-1", "main", "nvidia.com/gpu", "", "", false, false, false, -1, 1},
    };
    return snapshot_owners_new(&(struct snapshot_owners){.taken_ns = NOW,
                                                         .state = SNAPSHOT_OWNERS_OK,
                                                         .n_pods = 9,
                                                         .n_matched = 3,
                                                         .n_unmatched = 1,
                                                         .holdings = rows,
                                                         .n_holdings = ARRAY_LEN(rows)});
}

/* What a pod's own processes do on a device. */
static const struct snapshot_device *use(struct snapshot_store *store, const char *name, double utilization,
                                         double memory_bytes)
{
    struct snapshot_device *d = add(store, name, SNAPSHOT_GPU, 0);
    if (utilization >= 0)
        snapshot_store_record(store, d, SNAPSHOT_UTILIZATION, utilization, NOW);
    snapshot_store_record(store, d, SNAPSHOT_MEMORY_USED, memory_bytes, NOW);
    return d;
}

/* On GPU 0 its holder and a process of no pod; on the MIG device two pods, of which the driver gives no utilization. */
static struct snapshot *make_holders(const struct snapshot *s, struct snapshot_holder holders[4],
                                     struct snapshot_holders *ret)
{
    struct snapshot_store *store = snapshot_store_new(NS_PER_S);
    (void)use(store, "1", 1, 2);
    (void)use(store, "2", 30, 40);
    (void)use(store, "3", -1, 1 << 18);
    (void)use(store, "4", -1, 1 << 19);
    struct snapshot *uses = snapshot_store_publish(store, NOW);
    snapshot_store_free(store);
    uint32_t gpu = s->devices[0].id, slice = s->devices[3].id;
    const struct snapshot_holder rows[] = {
        {1, gpu, "", "", "", "", false, false, 0, 1, NOW, &uses->devices[0], NULL},
        {2, gpu, "", "ml", "trainer-0", "5b1e", true, false, 0, 1, NOW, &uses->devices[1], NULL},
        {3, slice, "", "web", "b-\"q\"\n", "77aa", true, true, 1, 1, NOW, &uses->devices[2], NULL},
        {4, slice, "", "web", "c", "", true, true, 1, 1, NOW, &uses->devices[3], NULL}};
    memcpy(holders, rows, sizeof(rows));
    *ret = (struct snapshot_holders){.taken_ns = NOW,
                                     .sight = SNAPSHOT_SIGHT_OK,
                                     .uses = uses,
                                     .n_unattributed = 1,
                                     .holders = holders,
                                     .n_holders = ARRAY_LEN(rows)};
    return uses;
}

static const double bounds[] = {0.001, 0.01};
static const struct metric_desc histogram_desc = {.name = "keda_gpu_scaler_test_seconds",
                                                  .help = "Test.",
                                                  .unit = "seconds",
                                                  .kind = METRIC_HISTOGRAM,
                                                  .labels = {"method"},
                                                  .bounds = bounds,
                                                  .n_bounds = 2};
static const struct metric_desc counter_desc = {
    .name = "keda_gpu_scaler_test", .help = "Test.", .kind = METRIC_COUNTER};

static void render_at(int64_t now_ns, enum promtext_format format, const struct snapshot *s, struct buf *out)
{
    struct metrics *metrics = metrics_new();
    const char *method = "GetMetrics";
    metric_observe(metric_series(metric_register(metrics, &histogram_desc), &method), 0.005);
    metric_add(metric_only(metric_register(metrics, &counter_desc)), 4);
    struct exporter *x = exporter_new(&(struct exporter_config){
        .metrics = metrics, .node_name = "node-1", .version = "1.2.3", .start_wall_ns = 1700000000 * NS_PER_S});
    struct snapshot_owners *owners = make_owners();
    struct snapshot_holder holders[4];
    struct snapshot_holders list;
    bool has_holders = s && s->n_devices == 4; /* the snapshot of the golden page */
    struct snapshot *uses = has_holders ? make_holders(s, holders, &list) : NULL;
    struct exporter_view view = {.snapshot = s,
                                 .owners = owners,
                                 .holders = has_holders ? &list : NULL,
                                 .now_ns = now_ns,
                                 .wall_ns = WALL + now_ns};
    exporter_render(x, &view, format, out);
    snapshot_unref(uses);
    snapshot_owners_unref(owners);
    exporter_free(x);
    metrics_free(metrics);
    (void)page_check((struct str){out->data, out->len}, format); /* whatever is on it */
}

static void render(enum promtext_format format, const struct snapshot *s, struct buf *out)
{
    render_at(NOW + NS_PER_S / 2, format, s, out);
}

/* The process families differ from run to run: their sample lines are compared by name only. */
static void keep_stable_lines(struct buf *page, struct buf *out)
{
    struct str rest = {page->data, page->len};
    while (rest.ptr && rest.len) {
        struct str line = str_cut(&rest, '\n');
        bool is_process = str_has_prefix(line, "process_") && !str_has_prefix(line, "process_start_time");
        if (is_process)
            line.len = (size_t)((const char *)memchr(line.ptr, ' ', line.len) - line.ptr);
        (void)buf_append(out, line.ptr, line.len);
        (void)buf_append_char(out, '\n');
    }
}

static void assert_golden(const char *name, struct buf *got)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/golden/%s", getenv("TEST_DATA"), name);
    if (getenv("UPDATE_GOLDEN")) {
        FILE *file = fopen(path, "we");
        assert_non_null(file);
        assert_int_equal(fwrite(got->data, 1, got->len, file), got->len);
        assert_int_equal(fclose(file), 0);
        return;
    }
    BUF_AUTO struct buf want;
    struct err e;
    buf_init(&want, 1 << 20);
    if (file_read(path, &want, &e) < 0)
        fail_msg("%s", e.text);
    assert_string_equal(buf_cstr(got), buf_cstr(&want));
}

static void check_page(enum promtext_format format, const char *golden)
{
    BUF_AUTO struct buf page;
    BUF_AUTO struct buf stable;
    buf_init(&page, 1 << 20);
    buf_init(&stable, 1 << 20);
    struct snapshot *s = make_snapshot();
    render(format, s, &page);
    snapshot_unref(s);
    keep_stable_lines(&page, &stable);
    assert_golden(golden, &stable);
}

static void test_text_page_is_as_documented(void **state)
{
    (void)state;
    check_page(PROMTEXT_TEXT, "metrics.txt");
}

static void test_openmetrics_page_is_as_documented(void **state)
{
    (void)state;
    check_page(PROMTEXT_OPENMETRICS, "metrics.openmetrics.txt");
}

static void test_what_is_unknown_is_absent(void **state)
{
    (void)state;
    static const char *const absent[] = {
        "gpu_utilization_ratio{gpu=\"1\"",      /* lost: its last 99 % is no reading */
        "gpu_utilization_ratio{gpu=\"2\"",      /* not supported with MIG on */
        "gpu_power_watts{gpu=\"2\",uuid=\"MIG", /* a board value stands once, on the board */
    };
    BUF_AUTO struct buf page;
    buf_init(&page, 1 << 20);
    struct snapshot *s = make_snapshot();
    render(PROMTEXT_TEXT, s, &page);
    snapshot_unref(s);
    for (size_t i = 0; i < ARRAY_LEN(absent); i++)
        if (strstr(buf_cstr(&page), absent[i]))
            fail_msg("%s ought to be absent", absent[i]);
    assert_non_null(strstr(buf_cstr(&page), "gpu_up{gpu=\"1\",uuid=\"GPU-1\"} 0"));
}

static void assert_on_page(struct buf *page, const char *part, bool is_there)
{
    if ((strstr(buf_cstr(page), part) != NULL) != is_there)
        fail_msg("%s ought to be %s", part, is_there ? "there" : "absent");
}

/* 57 * 0.01 is 0.5700000000000001 */
static void test_percentages_are_ratios_without_noise(void **state)
{
    (void)state;
    static const struct {
        double percent;
        const char *ratio;
    } rows[] = {{0, "0"}, {35, "0.35"}, {57, "0.57"}, {70, "0.7"}, {95, "0.95"}, {100, "1"}};
    struct snapshot_store *store = snapshot_store_new(NS_PER_S);
    struct snapshot_device *gpu = add(store, "GPU-0", SNAPSHOT_GPU, 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        BUF_AUTO struct buf page;
        char line[128];
        buf_init(&page, 1 << 20);
        snapshot_store_record(store, gpu, SNAPSHOT_UTILIZATION, rows[i].percent, NOW);
        struct snapshot *s = snapshot_store_publish(store, NOW);
        render(PROMTEXT_TEXT, s, &page);
        snapshot_unref(s);
        (void)snprintf(line, sizeof(line), "utilization_ratio{gpu=\"0\",uuid=\"GPU-0\"} %s\n", rows[i].ratio);
        assert_on_page(&page, line, true);
    }
    snapshot_store_free(store);
}

static void test_readings_leave_the_page_when_they_are_old(void **state)
{
    (void)state;
    static const struct {
        double age;
        bool is_fresh;
    } rows[] = {{4.9, true}, {5.1, false}, {3600, false}};
    struct snapshot *s = make_snapshot();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        BUF_AUTO struct buf page;
        buf_init(&page, 1 << 20);
        render_at(NOW + (int64_t)(rows[i].age * 1e9), PROMTEXT_TEXT, s, &page);
        assert_on_page(&page, "gpu_utilization_ratio", rows[i].is_fresh);
        assert_on_page(&page, "gpu_energy_joules", rows[i].is_fresh); /* counters too */
        assert_on_page(&page, "gpu_throttled", rows[i].is_fresh);
        assert_on_page(&page, rows[i].is_fresh ? "nvml_up 1\n" : "nvml_up 0\n", true);   /* a driver call hangs */
        assert_on_page(&page, "gpu_up{gpu=\"0\",uuid=\"GPU-0\"} 1\n", rows[i].is_fresh); /* nobody knows then */
        assert_on_page(&page, "gpu_up{gpu=\"0\",uuid=\"GPU-0\"} 0\n", false);
        assert_on_page(&page, "gpu_up{gpu=\"1\",uuid=\"GPU-1\"} 0\n", true); /* it was lost before */
        assert_on_page(&page, "gpu_info{", true);
        assert_on_page(&page, "gpu_reading_age_seconds{", true);
    }
    snapshot_unref(s);
}

static void test_what_is_newer_than_the_turn_is_not_of_negative_age(void **state)
{
    (void)state;
    BUF_AUTO struct buf page;
    struct snapshot *s = make_snapshot();
    buf_init(&page, 1 << 20);
    render_at(NOW - NS_PER_MS, PROMTEXT_TEXT, s, &page);
    snapshot_unref(s);
    assert_on_page(&page, "snapshot_age_seconds 0\n", true);
    assert_on_page(&page, "gpu_reading_age_seconds{gpu=\"0\",uuid=\"GPU-0\"} 0\n", true);
}

static void test_a_device_that_was_never_read_has_no_age(void **state)
{
    (void)state;
    BUF_AUTO struct buf page;
    struct snapshot_store *store = snapshot_store_new(NS_PER_S);
    snapshot_store_header(store)->driver = SNAPSHOT_DRIVER_OK;
    (void)add(store, "GPU-0", SNAPSHOT_GPU, 0);
    struct snapshot *s = snapshot_store_publish(store, NOW);
    buf_init(&page, 1 << 20);
    render(PROMTEXT_TEXT, s, &page);
    snapshot_unref(s);
    snapshot_store_free(store);
    assert_on_page(&page, "gpu_up{gpu=\"0\",uuid=\"GPU-0\"} 1", true);
    assert_on_page(&page, "reading_age", false);
}

/* dcgm-exporter #164, NVSentinel #1748: one GPU that hangs froze the values of all. */
static void test_each_gpu_has_an_age_of_its_own(void **state)
{
    (void)state;
    BUF_AUTO struct buf page;
    struct snapshot_store *store = snapshot_store_new(NS_PER_S);
    snapshot_store_header(store)->driver = SNAPSHOT_DRIVER_OK;
    (void)add(store, "GPU-0", SNAPSHOT_GPU, 0);
    (void)add(store, "GPU-1", SNAPSHOT_GPU, 1);
    snapshot_store_record(store, snapshot_store_find(store, "GPU-0"), SNAPSHOT_UTILIZATION, 50, NOW - 60 * NS_PER_S);
    snapshot_store_record(store, snapshot_store_find(store, "GPU-1"), SNAPSHOT_UTILIZATION, 60, NOW);
    struct snapshot *s = snapshot_store_publish(store, NOW);
    snapshot_store_free(store);
    buf_init(&page, 1 << 20);
    render_at(NOW, PROMTEXT_TEXT, s, &page);
    snapshot_unref(s);
    assert_on_page(&page, "gpu_utilization_ratio{gpu=\"0\"", false);
    assert_on_page(&page, "gpu_utilization_ratio{gpu=\"1\",uuid=\"GPU-1\"} 0.6\n", true);
    assert_on_page(&page, "gpu_reading_age_seconds{gpu=\"0\",uuid=\"GPU-0\"} 60\n", true);
    assert_on_page(&page, "gpu_reading_age_seconds{gpu=\"1\",uuid=\"GPU-1\"} 0\n", true);
}

/* volcano #4595: what was added up at each scrape grew with the scrapes. */
static void test_a_second_scrape_of_the_same_moment_is_the_same_page(void **state)
{
    (void)state;
    struct buf pages[2], stable[2];
    struct snapshot *s = make_snapshot();
    struct metrics *metrics = metrics_new();
    struct exporter *x =
        exporter_new(&(struct exporter_config){.metrics = metrics, .node_name = "n", .version = "1", .has_dcgm = true});
    struct snapshot_owners *owners = make_owners();
    struct exporter_view view = {.snapshot = s, .owners = owners, .now_ns = NOW + NS_PER_S, .wall_ns = WALL};
    for (int i = 0; i < 2; i++) {
        buf_init(&pages[i], 1 << 20);
        buf_init(&stable[i], 1 << 20);
        exporter_render(x, &view, PROMTEXT_TEXT, &pages[i]);
        keep_stable_lines(&pages[i], &stable[i]);
    }
    assert_string_equal(buf_cstr(&stable[0]), buf_cstr(&stable[1]));
    for (int i = 0; i < 2; i++) {
        buf_fini(&pages[i]);
        buf_fini(&stable[i]);
    }
    snapshot_owners_unref(owners);
    exporter_free(x);
    metrics_free(metrics);
    snapshot_unref(s);
}

/* The times of day at which two scrapes were, and what they say of an event at second 100 of the monotonic clock. */
static void test_the_time_of_an_event_stands_while_the_clock_does(void **state)
{
    (void)state;
    static const struct {
        int64_t now_ns, wall_ns;
        const char *time; /* NULL: none */
    } rows[] = {{NOW, WALL + NOW, "1700000100"},
                {NOW + NS_PER_S, WALL + NOW + NS_PER_S + 3 * NS_PER_MS, "1700000100"}, /* nobody reads both at once */
                {NOW + 2 * NS_PER_S, WALL + NOW + 3602 * NS_PER_S, "1700003700"},      /* the clock was set */
                {NOW + 3 * NS_PER_S, 0, NULL}};
    struct snapshot *s = make_snapshot();
    struct metrics *metrics = metrics_new();
    struct exporter *x = exporter_new(&(struct exporter_config){.metrics = metrics, .node_name = "n", .version = "1"});
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        BUF_AUTO struct buf page;
        char line[128];
        buf_init(&page, 1 << 20);
        struct exporter_view view = {.snapshot = s, .now_ns = rows[i].now_ns, .wall_ns = rows[i].wall_ns};
        exporter_render(x, &view, PROMTEXT_TEXT, &page);
        (void)snprintf(line, sizeof(line), "xid_last_timestamp_seconds{gpu=\"0\",uuid=\"GPU-0\",xid=\"79\"} %s\n",
                       rows[i].time ? rows[i].time : "");
        assert_on_page(&page, rows[i].time ? line : "xid_last_timestamp", rows[i].time != NULL);
    }
    exporter_free(x);
    metrics_free(metrics);
    snapshot_unref(s);
}

/* 0 to n - 1, the same in every run. */
static uint32_t pick(uint32_t *seed, uint32_t n)
{
    *seed = *seed * 1664525U + 1013904223U;
    return (*seed >> 16) % n;
}

/* Whatever the driver gives as texts, numbers and states: the page keeps the rules. */
static void test_the_page_is_valid_for_whatever_was_read(void **state)
{
    (void)state;
    static const char *const products[] = {"NVIDIA \"H100\"", "a\\b\nc\rd", "\xff\xc3", "", "}"};
    uint32_t seed = 7;
    for (int round = 0; round < 60; round++) {
        struct snapshot_store *store = snapshot_store_new(NS_PER_S);
        struct snapshot *header = snapshot_store_header(store);
        header->driver = (enum snapshot_driver_state)(pick(&seed, 8));
        (void)str_copy(header->driver_version, sizeof(header->driver_version), str_of(products[pick(&seed, 5)]));
        header->sampler.n_error_codes = pick(&seed, 3);
        header->sampler.errors_by_code[1].code = 999;
        size_t n_devices = pick(&seed, 6);
        n_devices -= n_devices == 4; /* as many as the golden page has, whose holders are known */
        for (size_t i = 0; i < n_devices; i++) {
            char uuid[32];
            (void)snprintf(uuid, sizeof(uuid), "GPU-%zu", i);
            struct snapshot_device *d = add(store, uuid, (enum snapshot_kind)(pick(&seed, 3)), (int)i);
            (void)str_copy(d->product, sizeof(d->product), str_of(products[pick(&seed, 5)]));
            (void)str_copy(d->serial, sizeof(d->serial), str_of(products[pick(&seed, 5)]));
            d->is_lost = pick(&seed, 4) == 0;
            d->n_xids = pick(&seed, 2);
            d->xids[0].xid = 79;
            for (int f = 0; f < SNAPSHOT_FIELD_COUNT; f++)
                if (pick(&seed, 2))
                    snapshot_store_record(store, d, (enum snapshot_field)f, (double)(pick(&seed, 1000)) / 7,
                                          NOW - (int64_t)(pick(&seed, 10)) * NS_PER_S);
        }
        struct snapshot *s = snapshot_store_publish(store, NOW);
        for (int f = 0; f < 2; f++) {
            BUF_AUTO struct buf page;
            buf_init(&page, 1 << 20);
            render((enum promtext_format)f, s, &page);
        }
        snapshot_unref(s);
        snapshot_store_free(store);
    }
}

static void test_before_the_first_snapshot_there_is_a_page_without_devices(void **state)
{
    (void)state;
    BUF_AUTO struct buf page;
    buf_init(&page, 1 << 20);
    render(PROMTEXT_OPENMETRICS, NULL, &page);
    assert_null(strstr(buf_cstr(&page), "keda_gpu_scaler_gpu_"));
    assert_non_null(strstr(buf_cstr(&page), "keda_gpu_scaler_test_total 4\n"));
    assert_true(str_has_suffix((struct str){page.data, page.len}, "# EOF\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_page_is_as_documented),
        cmocka_unit_test(test_openmetrics_page_is_as_documented),
        cmocka_unit_test(test_what_is_unknown_is_absent),
        cmocka_unit_test(test_percentages_are_ratios_without_noise),
        cmocka_unit_test(test_readings_leave_the_page_when_they_are_old),
        cmocka_unit_test(test_what_is_newer_than_the_turn_is_not_of_negative_age),
        cmocka_unit_test(test_a_device_that_was_never_read_has_no_age),
        cmocka_unit_test(test_each_gpu_has_an_age_of_its_own),
        cmocka_unit_test(test_a_second_scrape_of_the_same_moment_is_the_same_page),
        cmocka_unit_test(test_the_time_of_an_event_stands_while_the_clock_does),
        cmocka_unit_test(test_the_page_is_valid_for_whatever_was_read),
        cmocka_unit_test(test_before_the_first_snapshot_there_is_a_page_without_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
