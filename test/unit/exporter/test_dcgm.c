/* The families of dcgm-exporter: names, units, types and labels as it spells them, against golden files and row by row;
 * and, as named tests, what people reported of it. UPDATE_GOLDEN=1 writes the files anew. */
#include "exporter/exporter.h"

#include "promtext/page.h"

#include <stdio.h>

#define NOW (100 * NS_PER_S)
#define MIB 1048576.0

static struct snapshot_device device_of(const char *uuid, enum snapshot_kind kind, int index)
{
    struct snapshot_device d = {
        .kind = kind, .index = index, .minor = index, .gpu_instance = -1, .compute_instance = -1};
    (void)str_copy(d.uuid, sizeof(d.uuid), str_of(uuid));
    (void)str_copy(d.product, sizeof(d.product), str_of("NVIDIA H100 80GB HBM3"));
    (void)snprintf(d.pci_bus_id, sizeof(d.pci_bus_id), "00000000:%02X:00.0", (unsigned)index + 0x3B);
    return d;
}

static struct snapshot_device *add_gpu(struct snapshot_store *store, const char *uuid, enum snapshot_kind kind,
                                       int index)
{
    struct snapshot_device d = device_of(uuid, kind, index);
    return snapshot_store_add(store, &d);
}

static struct snapshot_device *add_instance(struct snapshot_store *store, const char *uuid, const char *profile,
                                            int gpu_instance, int compute_instance)
{
    struct snapshot_device d = device_of(uuid, SNAPSHOT_MIG, 2);
    (void)str_copy(d.parent_uuid, sizeof(d.parent_uuid), str_of("GPU-2"));
    (void)str_copy(d.mig_profile, sizeof(d.mig_profile), str_of(profile));
    d.gpu_instance = gpu_instance;
    d.compute_instance = compute_instance;
    return snapshot_store_add(store, &d);
}

/* One value a field, in our units, and how DCGM's family spells it. */
static const struct row {
    enum snapshot_field field;
    double value;
    const char *name, *type, *text;
} rows[] = {
    {SNAPSHOT_SM_CLOCK, 1980e6, "DCGM_FI_DEV_SM_CLOCK", "gauge", "1980"},
    {SNAPSHOT_MEMORY_CLOCK, 2619e6, "DCGM_FI_DEV_MEM_CLOCK", "gauge", "2619"},
    {SNAPSHOT_MEMORY_TEMPERATURE, 61, "DCGM_FI_DEV_MEMORY_TEMP", "gauge", "61"},
    {SNAPSHOT_TEMPERATURE, 54, "DCGM_FI_DEV_GPU_TEMP", "gauge", "54"},
    {SNAPSHOT_POWER, 412.375, "DCGM_FI_DEV_POWER_USAGE", "gauge", "412.375"},
    {SNAPSHOT_ENERGY, 123456789.123, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", "123456789123"},
    {SNAPSHOT_PCIE_REPLAYS, 3, "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter", "3"},
    {SNAPSHOT_NVLINK_BYTES, 5120, "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "counter", "5"},
    {SNAPSHOT_VIOLATION_POWER, 1.5, "DCGM_FI_DEV_POWER_VIOLATION", "counter", "1500000000"},
    {SNAPSHOT_VIOLATION_THERMAL, 0.25, "DCGM_FI_DEV_THERMAL_VIOLATION", "counter", "250000000"},
    {SNAPSHOT_VIOLATION_SYNC_BOOST, 7.000000001, "DCGM_FI_DEV_SYNC_BOOST_VIOLATION", "counter", "7000000001"},
    {SNAPSHOT_VIOLATION_BOARD_LIMIT, 2, "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", "counter", "2000000000"},
    {SNAPSHOT_VIOLATION_LOW_UTILIZATION, 3, "DCGM_FI_DEV_LOW_UTIL_VIOLATION", "counter", "3000000000"},
    {SNAPSHOT_VIOLATION_RELIABILITY, 0, "DCGM_FI_DEV_RELIABILITY_VIOLATION", "counter", "0"},
    {SNAPSHOT_UTILIZATION, 87, "DCGM_FI_DEV_GPU_UTIL", "gauge", "87"},
    {SNAPSHOT_MEMORY_UTILIZATION, 41, "DCGM_FI_DEV_MEM_COPY_UTIL", "gauge", "41"},
    {SNAPSHOT_ENCODER_UTILIZATION, 12, "DCGM_FI_DEV_ENC_UTIL", "gauge", "12"},
    {SNAPSHOT_DECODER_UTILIZATION, 13, "DCGM_FI_DEV_DEC_UTIL", "gauge", "13"},
    {SNAPSHOT_MEMORY_TOTAL, 81559 * MIB, "DCGM_FI_DEV_FB_TOTAL", "gauge", "81559"},
    {SNAPSHOT_MEMORY_FREE, 50000 * MIB, "DCGM_FI_DEV_FB_FREE", "gauge", "50000"},
    {SNAPSHOT_MEMORY_USED, 30970.5 * MIB, "DCGM_FI_DEV_FB_USED", "gauge", "30970.5"},
    {SNAPSHOT_MEMORY_RESERVED, 588.5 * MIB, "DCGM_FI_DEV_FB_RESERVED", "gauge", "588.5"},
    {SNAPSHOT_ECC_CORRECTED, 5, "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "counter", "5"},
    {SNAPSHOT_ECC_UNCORRECTED, 1, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "counter", "1"},
    {SNAPSHOT_REMAPPED_ROWS_UNCORRECTABLE, 2, "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "counter", "2"},
    {SNAPSHOT_REMAPPED_ROWS_CORRECTABLE, 4, "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "counter", "4"},
    {SNAPSHOT_REMAPPED_ROWS_FAILED, 0, "DCGM_FI_DEV_ROW_REMAP_FAILURE", "gauge", "0"},
    {SNAPSHOT_GRAPHICS_ACTIVITY, 93, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", "0.93"},
    {SNAPSHOT_SM_ACTIVITY, 71, "DCGM_FI_PROF_SM_ACTIVE", "gauge", "0.71"},
    {SNAPSHOT_SM_OCCUPANCY, 28, "DCGM_FI_PROF_SM_OCCUPANCY", "gauge", "0.28"},
    {SNAPSHOT_TENSOR_ACTIVITY, 55, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge", "0.55"},
    {SNAPSHOT_DRAM_ACTIVITY, 33, "DCGM_FI_PROF_DRAM_ACTIVE", "gauge", "0.33"},
    {SNAPSHOT_PCIE_TX, 1.5e9, "DCGM_FI_PROF_PCIE_TX_BYTES", "gauge", "1500000000"},
    {SNAPSHOT_PCIE_RX, 2.5e9, "DCGM_FI_PROF_PCIE_RX_BYTES", "gauge", "2500000000"},
    {SNAPSHOT_NVLINK_TX, 1e10, "DCGM_FI_PROF_NVLINK_TX_BYTES", "gauge", "10000000000"},
    {SNAPSHOT_NVLINK_RX, 2e10, "DCGM_FI_PROF_NVLINK_RX_BYTES", "gauge", "20000000000"},
};

static void record_rows(struct snapshot_store *store, struct snapshot_device *d)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        snapshot_store_record(store, d, rows[i].field, rows[i].value, NOW);
}

/* GPU 2 is cut: a 1g.10gb, and a 3g.40gb with two compute instances. Its board reports memory too, as NVML does. */
static void add_divided_gpu(struct snapshot_store *store)
{
    struct snapshot_device *parent = add_gpu(store, "GPU-2", SNAPSHOT_MIG_PARENT, 2);
    record_rows(store, parent);
    snapshot_store_fail(parent, SNAPSHOT_UTILIZATION, SNAPSHOT_UNSUPPORTED);
    static const struct {
        const char *uuid, *profile;
        int gpu_instance, compute_instance;
        double used_mib;
    } instances[] = {
        {"MIG-a", "1c.3g.40gb", 1, 0, 2000}, {"MIG-b", "2c.3g.40gb", 1, 1, 2000}, {"MIG-c", "1g.10gb", 7, 0, 500}};
    for (size_t i = 0; i < ARRAY_LEN(instances); i++) {
        struct snapshot_device *d = add_instance(store, instances[i].uuid, instances[i].profile,
                                                 instances[i].gpu_instance, instances[i].compute_instance);
        snapshot_store_record(store, d, SNAPSHOT_MEMORY_USED, instances[i].used_mib * MIB, NOW);
        snapshot_store_record(store, d, SNAPSHOT_SM_ACTIVITY, 40, NOW);
        snapshot_store_record(store, d, SNAPSHOT_ECC_UNCORRECTED, 1, NOW);
        snapshot_store_record(store, d, SNAPSHOT_POWER, 300, NOW); /* even if some driver gave it */
    }
}

/* GPU 0 reads everything, GPU 1 is lost, GPU 2 is cut into instances. */
static struct snapshot *make_snapshot(void)
{
    struct snapshot_store *store = snapshot_store_new(NS_PER_S);
    struct snapshot *header = snapshot_store_header(store);
    header->driver = SNAPSHOT_DRIVER_OK;
    (void)str_copy(header->driver_version, sizeof(header->driver_version), str_of("570.172.08"));
    record_rows(store, add_gpu(store, "GPU-0", SNAPSHOT_GPU, 0));
    struct snapshot_device *lost = add_gpu(store, "GPU-1", SNAPSHOT_GPU, 1);
    record_rows(store, lost);
    lost->is_lost = true;
    lost->xids[0] = (struct snapshot_xid){.xid = 79, .count = 1, .last_ns = NOW};
    lost->xids[1] = (struct snapshot_xid){.xid = 31, .count = 9, .last_ns = NOW - NS_PER_S};
    lost->n_xids = 2;
    add_divided_gpu(store);
    struct snapshot *s = snapshot_store_publish(store, NOW);
    snapshot_store_free(store);
    return s;
}

struct view {
    const struct snapshot_owners *owners;
    bool is_off;
    const char *node_name;
    int64_t age_ns;
    enum promtext_format format;
};

/* The DCGM part of the page; the whole is checked against the rules of the format. */
static void render(const struct snapshot *s, const struct view *view, struct buf *out)
{
    BUF_AUTO struct buf page;
    buf_init(&page, 1 << 20);
    struct metrics *metrics = metrics_new();
    struct exporter *x =
        exporter_new(&(struct exporter_config){.metrics = metrics,
                                               .node_name = view->node_name ? view->node_name : "node-1",
                                               .version = "1.2.3",
                                               .has_dcgm = !view->is_off});
    exporter_render(x, &(struct exporter_view){.snapshot = s, .owners = view->owners, .now_ns = NOW + view->age_ns},
                    view->format, &page);
    exporter_free(x);
    metrics_free(metrics);
    (void)page_check((struct str){page.data, page.len}, view->format);
    struct str rest = {page.data, page.len};
    while (rest.ptr) {
        struct str line = str_cut(&rest, '\n');
        struct str name = line;
        if (str_has_prefix(line, "# ")) {
            (void)str_cut(&name, ' ');
            (void)str_cut(&name, ' ');
        }
        if (!str_has_prefix(name, "DCGM_"))
            continue;
        (void)buf_append(out, line.ptr, line.len);
        (void)buf_append_char(out, '\n');
    }
}

static void render_usual(const struct view *view, struct buf *out)
{
    buf_init(out, 1 << 20);
    struct snapshot *s = make_snapshot();
    render(s, view, out);
    snapshot_unref(s);
}

static const struct snapshot_holding holdings[] = {
    {"GPU-0", "GPU-0", "ml-production", "llm-0", "server", "nvidia.com/gpu", "", "", true, false, false, -1, 1},
    {"MIG-a", "MIG-a", "ml-production", "ci-0", "server", "nvidia.com/gpu", "", "", true, false, false, -1, 1},
    {"MIG-c", "MIG-c", "ml-production", "mig-0", "server", "nvidia.com/gpu", "", "", true, false, false, -1, 1},
};

static struct snapshot_owners *make_owners(void)
{
    return snapshot_owners_new(&(struct snapshot_owners){
        .taken_ns = NOW, .state = SNAPSHOT_OWNERS_OK, .n_holdings = ARRAY_LEN(holdings), .holdings = holdings});
}

static void check_golden(enum promtext_format format, const char *name)
{
    BUF_AUTO struct buf got;
    BUF_AUTO struct buf want;
    char path[512];
    struct err e;
    buf_init(&want, 1 << 20);
    struct snapshot_owners *owners = make_owners();
    render_usual(&(struct view){.owners = owners, .format = format}, &got);
    snapshot_owners_unref(owners);
    (void)snprintf(path, sizeof(path), "%s/golden/%s", getenv("TEST_DATA"), name);
    if (getenv("UPDATE_GOLDEN")) {
        FILE *file = fopen(path, "we");
        assert_non_null(file);
        assert_int_equal(fwrite(got.data, 1, got.len, file), got.len);
        assert_int_equal(fclose(file), 0);
        return;
    }
    if (file_read(path, &want, &e) < 0)
        fail_msg("%s", e.text);
    assert_string_equal(buf_cstr(&got), buf_cstr(&want));
}

static void test_text_families_are_as_documented(void **state)
{
    (void)state;
    check_golden(PROMTEXT_TEXT, "dcgm.txt");
}

static void test_openmetrics_families_are_as_documented(void **state)
{
    (void)state;
    check_golden(PROMTEXT_OPENMETRICS, "dcgm.openmetrics.txt");
}

static void assert_has(struct buf *page, const char *part, bool is_there)
{
    if ((strstr(buf_cstr(page), part) != NULL) != is_there)
        fail_msg("%s ought to be %s", part, is_there ? "there" : "absent");
}

#define GPU_0                                                                                                          \
    "{gpu=\"0\",UUID=\"GPU-0\",pci_bus_id=\"00000000:3B:00.0\",device=\"nvidia0\",modelName=\"NVIDIA H100 80GB "       \
    "HBM3\",Hostname=\"node-1\",hostname=\"node-1\",DCGM_FI_DRIVER_VERSION=\"570.172.08\"}"

static void test_every_family_has_dcgms_name_type_labels_and_unit(void **state)
{
    (void)state;
    BUF_AUTO struct buf page;
    BUF_AUTO struct buf strict;
    render_usual(&(struct view){0}, &page);
    render_usual(&(struct view){.format = PROMTEXT_OPENMETRICS}, &strict);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char line[512];
        (void)snprintf(line, sizeof(line), "\n%s" GPU_0 " %s\n", rows[i].name, rows[i].text);
        assert_has(&page, line, true);
        assert_has(&strict, line, true);
        (void)snprintf(line, sizeof(line), "# TYPE %s %s\n", rows[i].name, rows[i].type);
        assert_has(&page, line, true);
        bool is_counter = strcmp(rows[i].type, "counter") == 0;
        (void)snprintf(line, sizeof(line), "# TYPE %s %s\n", rows[i].name, is_counter ? "unknown" : rows[i].type);
        assert_has(&strict, line, true);
    }
}

static void test_the_switch_leaves_them_all_out(void **state)
{
    (void)state;
    BUF_AUTO struct buf page;
    render_usual(&(struct view){.is_off = true}, &page);
    assert_int_equal(page.len, 0);
}

/* dcgm-exporter #164, gpu-monitoring-tools #188: values that froze. */
static void test_a_value_that_is_too_old_leaves_the_page(void **state)
{
    (void)state;
    BUF_AUTO struct buf page;
    render_usual(&(struct view){.age_ns = 6 * NS_PER_S}, &page);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_has(&page, rows[i].name, false);
}

/* dcgm-exporter #460, gpu-monitoring-tools #97: 0 or a blank for what is not supported. */
static void test_what_is_not_supported_is_absent_and_not_zero(void **state)
{
    (void)state;
    struct snapshot_store *store = snapshot_store_new(NS_PER_S);
    struct snapshot_device *d = add_gpu(store, "GPU-0", SNAPSHOT_GPU, 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        snapshot_store_fail(d, rows[i].field, i % 2 ? SNAPSHOT_UNSUPPORTED : SNAPSHOT_FAILED);
    struct snapshot *s = snapshot_store_publish(store, NOW);
    BUF_AUTO struct buf page;
    buf_init(&page, 1 << 20);
    render(s, &(struct view){0}, &page);
    assert_int_equal(page.len, 0); /* the Xid too: none was seen */
    snapshot_unref(s);
    snapshot_store_free(store);
}

/* How many lines begin with the name and have the label text; their sum. */
static size_t sum_of(struct buf *page, const char *name, const char *label, double *ret_sum)
{
    struct str rest = {page->data, page->len};
    size_t n = 0;
    *ret_sum = 0;
    while (rest.ptr && rest.len) {
        struct str line = str_cut(&rest, '\n');
        const char *brace = memchr(line.ptr, '{', line.len);
        const char *found = memmem(line.ptr, line.len, label, strlen(label));
        if (!brace || !found || (size_t)(brace - line.ptr) != strlen(name) || !str_has_prefix(line, name))
            continue;
        const char *space = memrchr(line.ptr, ' ', line.len);
        assert_non_null(space);
        double value;
        assert_int_equal(num_parse_double((struct str){space + 1, line.len - (size_t)(space + 1 - line.ptr)}, &value),
                         0);
        *ret_sum += value;
        n++;
    }
    return n;
}

/* dcgm-exporter #353 and #713: each instance repeated power and temperature of its board; a sum counted it 7 times. */
static void test_board_values_of_a_divided_gpu_stand_once_without_an_instance(void **state)
{
    (void)state;
    BUF_AUTO struct buf page;
    double sum;
    render_usual(&(struct view){0}, &page);
    static const char *const board[] = {"DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_TEMP",
                                        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"};
    for (size_t i = 0; i < ARRAY_LEN(board); i++) {
        assert_int_equal(sum_of(&page, board[i], "UUID=\"GPU-2\"", &sum), 1);
        assert_int_equal(sum_of(&page, board[i], "GPU_I_ID", &sum), 0);
    }
}

static void test_memory_of_a_divided_gpu_adds_up_to_its_instances(void **state)
{
    (void)state;
    BUF_AUTO struct buf page;
    double sum;
    render_usual(&(struct view){0}, &page);
    assert_int_equal(sum_of(&page, "DCGM_FI_DEV_FB_USED", "UUID=\"GPU-2\"", &sum), 2);
    assert_true(sum > 2499.9 && sum < 2500.1);
    assert_int_equal(sum_of(&page, "DCGM_FI_DEV_FB_TOTAL", "UUID=\"GPU-2\"", &sum),
                     0); /* the board's is no instance's */
}

/* dcgm-exporter #216, #430, #105: utilization 0 with MIG on, where NVML has none. */
static void test_utilization_of_a_divided_gpu_is_absent_and_activity_is_the_instances(void **state)
{
    (void)state;
    BUF_AUTO struct buf page;
    double sum;
    render_usual(&(struct view){0}, &page);
    assert_int_equal(sum_of(&page, "DCGM_FI_DEV_GPU_UTIL", "UUID=\"GPU-2\"", &sum), 0);
    assert_int_equal(sum_of(&page, "DCGM_FI_PROF_SM_ACTIVE", "UUID=\"GPU-2\"", &sum), 1);
    assert_has(&page, "GPU_I_PROFILE=\"1g.10gb\",GPU_I_ID=\"7\"", true);
}

/* A series twice makes Prometheus drop samples; the page check of render() sees to it, this names the case. */
static void test_compute_instances_of_one_gpu_instance_are_one_series(void **state)
{
    (void)state;
    BUF_AUTO struct buf page;
    double sum;
    render_usual(&(struct view){0}, &page);
    assert_int_equal(sum_of(&page, "DCGM_FI_DEV_FB_USED", "GPU_I_ID=\"1\"", &sum), 1);
    assert_int_equal(sum_of(&page, "DCGM_FI_PROF_SM_ACTIVE", "GPU_I_ID=\"1\"", &sum), 0); /* neither of the two is it */
}

/* dcgm-exporter #713: a wrong profile. */
static void test_the_profile_is_the_gpu_instances(void **state)
{
    (void)state;
    BUF_AUTO struct buf page;
    render_usual(&(struct view){0}, &page);
    assert_has(&page, "GPU_I_PROFILE=\"3g.40gb\",GPU_I_ID=\"1\"", true);
    assert_has(&page, "c.3g.40gb", false);
}

/* dcgm-exporter #190, #348: a lost GPU has no readings; the last Xid, which is often the reason, stays. */
static void test_a_lost_gpu_has_its_last_xid_and_nothing_else(void **state)
{
    (void)state;
    BUF_AUTO struct buf page;
    double xid, sum;
    render_usual(&(struct view){0}, &page);
    assert_int_equal(sum_of(&page, "DCGM_FI_DEV_XID_ERRORS", "", &sum), 1);
    assert_int_equal(sum_of(&page, "DCGM_FI_DEV_XID_ERRORS", "UUID=\"GPU-1\"", &xid), 1);
    assert_true(xid > 78.9 && xid < 79.1);
    assert_has(&page, "err_code=\"79\",err_msg=\"GPU has fallen off the bus\"} 79\n", true);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(sum_of(&page, rows[i].name, "UUID=\"GPU-1\"", &sum), 0);
}

/* dcgm-exporter #622, and others that took one number for another: NVML's index and the device file's need not agree.
 */
static void test_the_index_and_the_device_file_are_two_numbers(void **state)
{
    (void)state;
    BUF_AUTO struct buf page;
    struct snapshot_store *store = snapshot_store_new(NS_PER_S);
    struct snapshot_device d = device_of("GPU-x", SNAPSHOT_GPU, 3);
    d.minor = 5;
    snapshot_store_record(store, snapshot_store_add(store, &d), SNAPSHOT_TEMPERATURE, 54, NOW);
    struct snapshot *s = snapshot_store_publish(store, NOW);
    snapshot_store_free(store);
    buf_init(&page, 1 << 20);
    render(s, &(struct view){.owners = NULL}, &page);
    snapshot_unref(s);
    assert_non_null(strstr(buf_cstr(&page),
                           "DCGM_FI_DEV_GPU_TEMP{gpu=\"3\",UUID=\"GPU-x\",pci_bus_id=\"00000000:3E:00.0\","
                           "device=\"nvidia5\""));
}

/* dcgm-exporter #655. */
static void test_the_node_is_both_hostname_spellings_or_none(void **state)
{
    (void)state;
    BUF_AUTO struct buf named;
    BUF_AUTO struct buf unnamed;
    render_usual(&(struct view){.node_name = "n\"1"}, &named);
    assert_has(&named, "Hostname=\"n\\\"1\",hostname=\"n\\\"1\"", true);
    render_usual(&(struct view){.node_name = ""}, &unnamed);
    assert_has(&unnamed, "ostname", false);
}

/* Labels are not escaped there: one odd product name made the whole scrape fail. */
static void test_whatever_the_driver_calls_itself_the_page_is_valid(void **state)
{
    (void)state;
    static const char *const texts[] = {"NVIDIA \"H100\"", "a\\b\nc\rd", "\xff\xc3", "", "}"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct snapshot_store *store = snapshot_store_new(NS_PER_S);
        struct snapshot *header = snapshot_store_header(store);
        (void)str_copy(header->driver_version, sizeof(header->driver_version), str_of(texts[i]));
        struct snapshot_device *d = add_gpu(store, "GPU-0", SNAPSHOT_GPU, 0);
        (void)str_copy(d->product, sizeof(d->product), str_of(texts[i]));
        (void)str_copy(d->pci_bus_id, sizeof(d->pci_bus_id), str_of(texts[i]));
        d->minor = -1;
        record_rows(store, d);
        struct snapshot *s = snapshot_store_publish(store, NOW);
        for (int format = 0; format < 2; format++) {
            BUF_AUTO struct buf page;
            buf_init(&page, 1 << 20);
            render(s, &(struct view){.format = (enum promtext_format)format, .node_name = texts[i]}, &page);
            assert_has(&page, "device=", false); /* no device file is known */
        }
        snapshot_unref(s);
        snapshot_store_free(store);
    }
}

/* The usual snapshot with these holdings, which the snapshot_owners copies. */
static void render_held(const struct snapshot_holding *held, size_t n, struct buf *out)
{
    struct snapshot_owners *owners = snapshot_owners_new(
        &(struct snapshot_owners){.taken_ns = NOW, .state = SNAPSHOT_OWNERS_OK, .n_holdings = n, .holdings = held});
    render_usual(&(struct view){.owners = owners}, out);
    snapshot_owners_unref(owners);
}

static void test_a_device_held_alone_has_its_pods_labels_on_every_family(void **state)
{
    (void)state;
    BUF_AUTO struct buf page;
    double sum;
    static const char pod[] = ",container=\"server\",namespace=\"ml-production\",pod=\"llm-0\"}";
    render_held(holdings, ARRAY_LEN(holdings), &page);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(sum_of(&page, rows[i].name, "UUID=\"GPU-0\"", &sum), 1);
        assert_int_equal(sum_of(&page, rows[i].name, pod, &sum), 1);
    }
    assert_int_equal(sum_of(&page, "DCGM_FI_DEV_FB_USED", "GPU_I_ID=\"7\"", &sum), 1);
    assert_int_equal(sum_of(&page, "DCGM_FI_DEV_FB_USED", "pod=\"mig-0\"", &sum), 1);
    assert_has(&page, "ci-0", false); /* half of a GPU instance whose memory both have */
    assert_has(&page, "pod=\"\"", false);
}

/* dcgm-exporter #201, #222, #340: time-slicing gave a random pod's name, another at each scrape. */
static void test_a_shared_device_has_one_line_and_no_pod(void **state)
{
    (void)state;
    struct snapshot_holding shared[] = {holdings[0], holdings[0]};
    shared[1].pod = "llm-1";
    for (size_t n = 1; n <= 2; n++) { /* one of many replicas, and two pods */
        BUF_AUTO struct buf page;
        double sum;
        shared[0].is_shared = n == 1;
        render_held(shared, n, &page);
        assert_has(&page, "pod=", false);
        assert_has(&page, "namespace=", false);
        assert_int_equal(sum_of(&page, "DCGM_FI_DEV_GPU_UTIL", "UUID=\"GPU-0\"", &sum), 1);
        assert_true(sum > 86.9 && sum < 87.1);
    }
}

/* dcgm-exporter #549: devices without a holder had no metrics. */
static void test_sums_are_the_same_whoever_holds_the_devices(void **state)
{
    (void)state;
    BUF_AUTO struct buf held;
    BUF_AUTO struct buf unheld;
    render_held(holdings, ARRAY_LEN(holdings), &held);
    render_held(NULL, 0, &unheld);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        double a, b;
        assert_int_equal(sum_of(&held, rows[i].name, "gpu=", &a), sum_of(&unheld, rows[i].name, "gpu=", &b));
        assert_true(a <= b && a >= b);
    }
}

/* dcgm-exporter #140, #340: labels of a pod that is gone. */
static void test_a_pod_that_is_gone_leaves_no_label(void **state)
{
    (void)state;
    BUF_AUTO struct buf page;
    render_held(holdings + 1, 2, &page);
    assert_has(&page, "llm-0", false);
    assert_has(&page, "\nDCGM_FI_DEV_GPU_UTIL" GPU_0 " 87\n", true);
}

/* 0 to n - 1, the same in every run. */
static int pick(uint32_t *seed, uint32_t n)
{
    *seed = *seed * 1664525U + 1013904223U;
    return (int)((*seed >> 16) % n);
}

/* Kinds, instances and Xids as no driver would have them together: the page check sees a series that is there twice. */
static void test_whatever_the_devices_are_no_series_is_there_twice(void **state)
{
    (void)state;
    uint32_t seed = 11;
    for (int round = 0; round < 100; round++) {
        struct snapshot_store *store = snapshot_store_new(NS_PER_S);
        int n = pick(&seed, 9);
        for (int i = 0; i < n; i++) {
            char uuid[16];
            (void)snprintf(uuid, sizeof(uuid), "MIG-%c", 'a' + i);
            bool is_gpu = pick(&seed, 3) == 0;
            struct snapshot_device *d =
                is_gpu ? add_gpu(store, uuid, pick(&seed, 2) ? SNAPSHOT_GPU : SNAPSHOT_MIG_PARENT, i)
                       : add_instance(store, uuid, pick(&seed, 2) ? "1c.2g.20gb" : "", pick(&seed, 3) - 1, i);
            record_rows(store, d);
            d->is_lost = pick(&seed, 5) == 0;
            d->n_xids = (size_t)pick(&seed, 3);
            d->xids[0] = (struct snapshot_xid){.xid = 1000, .count = 1, .last_ns = NOW - pick(&seed, 9)};
            d->xids[1] = (struct snapshot_xid){.xid = 48, .count = 1, .last_ns = NOW - pick(&seed, 9)};
        }
        snapshot_store_sort(store);
        struct snapshot *s = snapshot_store_publish(store, NOW);
        struct snapshot_owners *owners = make_owners();
        BUF_AUTO struct buf page;
        buf_init(&page, 1 << 20);
        render(s, &(struct view){.owners = owners}, &page);
        snapshot_owners_unref(owners);
        snapshot_unref(s);
        snapshot_store_free(store);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_families_are_as_documented),
        cmocka_unit_test(test_openmetrics_families_are_as_documented),
        cmocka_unit_test(test_every_family_has_dcgms_name_type_labels_and_unit),
        cmocka_unit_test(test_the_switch_leaves_them_all_out),
        cmocka_unit_test(test_a_value_that_is_too_old_leaves_the_page),
        cmocka_unit_test(test_what_is_not_supported_is_absent_and_not_zero),
        cmocka_unit_test(test_board_values_of_a_divided_gpu_stand_once_without_an_instance),
        cmocka_unit_test(test_memory_of_a_divided_gpu_adds_up_to_its_instances),
        cmocka_unit_test(test_utilization_of_a_divided_gpu_is_absent_and_activity_is_the_instances),
        cmocka_unit_test(test_compute_instances_of_one_gpu_instance_are_one_series),
        cmocka_unit_test(test_the_profile_is_the_gpu_instances),
        cmocka_unit_test(test_a_lost_gpu_has_its_last_xid_and_nothing_else),
        cmocka_unit_test(test_the_index_and_the_device_file_are_two_numbers),
        cmocka_unit_test(test_the_node_is_both_hostname_spellings_or_none),
        cmocka_unit_test(test_whatever_the_driver_calls_itself_the_page_is_valid),
        cmocka_unit_test(test_a_device_held_alone_has_its_pods_labels_on_every_family),
        cmocka_unit_test(test_a_shared_device_has_one_line_and_no_pod),
        cmocka_unit_test(test_sums_are_the_same_whoever_holds_the_devices),
        cmocka_unit_test(test_a_pod_that_is_gone_leaves_no_label),
        cmocka_unit_test(test_whatever_the_devices_are_no_series_is_there_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
