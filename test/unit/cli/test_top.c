/* What top makes of a page, and its forms. */
#include "cli/top.h"
#include "exporter/exporter.h"

#include <math.h>
#include <string.h>

#include "support.h"

/* Two GPUs, the second lost; a divided one with a MIG device; what no reading says is not there. */
static const char page[] =
    "# HELP keda_gpu_scaler_build_info Version.\n"
    "keda_gpu_scaler_build_info{version=\"1.2.3\",node_name=\"node-1\"} 1\n"
    "# TYPE keda_gpu_scaler_nvml_up gauge\n"
    "keda_gpu_scaler_nvml_up 1\n"
    "keda_gpu_scaler_nvml_state{state=\"starting\"} 0\n"
    "keda_gpu_scaler_nvml_state{state=\"ok\"} 1\n"
    "keda_gpu_scaler_nvml_info{driver_version=\"570.172.08\"} 1\n"
    "keda_gpu_scaler_snapshot_age_seconds 0.5\n"
    "process_cpu_seconds_total 12\n"
    "keda_gpu_scaler_gpu_info{gpu=\"0\",uuid=\"GPU-0\",kind=\"gpu\",product=\"NVIDIA \\\"H100\\\", 80GB\","
    "pci_bus_id=\"00000000:3B:00.0\",serial=\"165\"} 1\n"
    "keda_gpu_scaler_gpu_info{gpu=\"1\",uuid=\"GPU-1\",kind=\"gpu\",product=\"Karte f\xc3\xbcr 1\"} 1\n"
    "keda_gpu_scaler_gpu_info{gpu=\"2\",uuid=\"GPU-2\",kind=\"mig_parent\",product=\"NVIDIA H100\"} 1\n"
    "keda_gpu_scaler_gpu_info{gpu=\"2\",uuid=\"MIG-2a\",mig_profile=\"1g.10gb\",kind=\"mig\",product=\"NVIDIA H100\","
    "parent_uuid=\"GPU-2\",gpu_instance=\"7\",compute_instance=\"0\"} 1\n"
    "keda_gpu_scaler_gpu_up{gpu=\"0\",uuid=\"GPU-0\"} 1\n"
    "keda_gpu_scaler_gpu_up{gpu=\"1\",uuid=\"GPU-1\"} 0\n"
    "keda_gpu_scaler_gpu_reading_age_seconds{gpu=\"0\",uuid=\"GPU-0\"} 0.25\n"
    "keda_gpu_scaler_gpu_utilization_ratio{gpu=\"0\",uuid=\"GPU-0\"} 0.29\n"
    "keda_gpu_scaler_gpu_memory_used_bytes{gpu=\"0\",uuid=\"GPU-0\"} 21474836480\n"
    "keda_gpu_scaler_gpu_memory_used_bytes{gpu=\"2\",uuid=\"MIG-2a\",mig_profile=\"1g.10gb\"} 0\n"
    "keda_gpu_scaler_gpu_power_watts{gpu=\"0\",uuid=\"GPU-0\"} 308.5\n"
    "keda_gpu_scaler_gpu_power_watts{gpu=\"2\",uuid=\"GPU-2\"} NaN\n"
    "keda_gpu_scaler_gpu_graphics_activity_ratio{gpu=\"2\",uuid=\"MIG-2a\",mig_profile=\"1g.10gb\"} 0.7\n"
    "keda_gpu_scaler_gpu_pcie_transmit_bytes_per_second{gpu=\"0\",uuid=\"GPU-0\"} 209715200\n"
    "keda_gpu_scaler_gpu_temperature_celsius{gpu=\"0\",uuid=\"GPU-0\"} 48\n";

static struct top_sample sample_of(const char *text)
{
    struct top_sample sample;
    struct err e;
    if (top_read(str_of(text), &sample, &e) < 0)
        fail_msg("%s", e.text);
    sample.collected_ns = top_collected_ns(&sample, 1796047339623 * NS_PER_MS);
    return sample;
}

static void test_a_page_gives_devices_in_its_order_with_unknown_as_nan(void **state)
{
    (void)state;
    struct top_sample s = sample_of(page);
    assert_true(s.is_up);
    assert_string_equal(s.state, "ok");
    assert_string_equal(s.node, "node-1");
    assert_string_equal(s.driver_version, "570.172.08");
    assert_int_equal(s.devices.len, 4);
    const struct top_device *d = s.devices.items;
    assert_string_equal(d[0].name, "NVIDIA \"H100\", 80GB");
    assert_double_same(d[0].values[TOP_UTILIZATION], 29);
    assert_double_same(d[0].age_seconds, 0.25);
    assert_true(isnan(d[0].values[TOP_MEMORY_TOTAL]));
    assert_false(d[0].is_lost);
    assert_true(d[1].is_lost);
    assert_true(isnan(d[1].values[TOP_UTILIZATION]));
    assert_int_equal(d[2].kind, SNAPSHOT_MIG_PARENT);
    assert_true(isnan(d[2].values[TOP_POWER]));
    assert_int_equal(d[3].kind, SNAPSHOT_MIG);
    assert_int_equal(d[3].gpu_instance, 7);
    assert_double_same(d[3].values[TOP_MEMORY_USED], 0);
    assert_double_same(d[3].values[TOP_GRAPHICS_ACTIVITY], 70);
    top_sample_fini(&s);
}

static void test_a_page_that_is_not_an_agents_is_refused(void **state)
{
    (void)state;
    static const char *const pages[] = {"<html>no</html>\n", "up 1\n", "",
                                        "keda_gpu_scaler_gpu_up{uuid=\"GPU-0\"} 1\n"};
    for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
        struct top_sample s;
        struct err e;
        assert_int_equal(top_read(str_of(pages[i]), &s, &e), -1);
        top_sample_fini(&s);
    }
}

static void test_the_time_is_that_of_the_reading(void **state)
{
    (void)state;
    struct top_sample s = {.age_seconds = 2.5};
    assert_true(top_collected_ns(&s, 10 * NS_PER_S) == 7500 * NS_PER_MS);
    s.age_seconds = (double)NAN;
    assert_true(top_collected_ns(&s, 10 * NS_PER_S) == 0);
}

/* ---- every value is one that the exporter writes ---- */

static void test_every_value_comes_through_the_exporters_page(void **state)
{
    (void)state;
    static const enum snapshot_field fields[TOP_VALUE_COUNT] = {
        [TOP_UTILIZATION] = SNAPSHOT_UTILIZATION,
        [TOP_GRAPHICS_ACTIVITY] = SNAPSHOT_GRAPHICS_ACTIVITY,
        [TOP_MEMORY_UTILIZATION] = SNAPSHOT_MEMORY_UTILIZATION,
        [TOP_MEMORY_USED] = SNAPSHOT_MEMORY_USED,
        [TOP_MEMORY_FREE] = SNAPSHOT_MEMORY_FREE,
        [TOP_MEMORY_RESERVED] = SNAPSHOT_MEMORY_RESERVED,
        [TOP_MEMORY_TOTAL] = SNAPSHOT_MEMORY_TOTAL,
        [TOP_TEMPERATURE] = SNAPSHOT_TEMPERATURE,
        [TOP_POWER] = SNAPSHOT_POWER,
        [TOP_POWER_LIMIT] = SNAPSHOT_POWER_LIMIT,
        [TOP_PCIE_TX] = SNAPSHOT_PCIE_TX,
        [TOP_PCIE_RX] = SNAPSHOT_PCIE_RX,
        [TOP_NVLINK_TX] = SNAPSHOT_NVLINK_TX,
        [TOP_NVLINK_RX] = SNAPSHOT_NVLINK_RX,
        [TOP_SM_CLOCK] = SNAPSHOT_SM_CLOCK,
        [TOP_MEMORY_CLOCK] = SNAPSHOT_MEMORY_CLOCK,
        [TOP_ENCODER] = SNAPSHOT_ENCODER_UTILIZATION,
        [TOP_DECODER] = SNAPSHOT_DECODER_UTILIZATION,
        [TOP_SM_ACTIVITY] = SNAPSHOT_SM_ACTIVITY,
        [TOP_SM_OCCUPANCY] = SNAPSHOT_SM_OCCUPANCY,
        [TOP_TENSOR_ACTIVITY] = SNAPSHOT_TENSOR_ACTIVITY,
        [TOP_DRAM_ACTIVITY] = SNAPSHOT_DRAM_ACTIVITY,
        [TOP_ENERGY] = SNAPSHOT_ENERGY,
    };
    struct snapshot_store *store = snapshot_store_new(NS_PER_S);
    snapshot_store_header(store)->driver = SNAPSHOT_DRIVER_OK;
    struct snapshot_device device = {.uuid = "GPU-0", .product = "T4", .gpu_instance = -1, .compute_instance = -1};
    struct snapshot_device *place = snapshot_store_add(store, &device);
    for (size_t i = 0; i < SNAPSHOT_FIELD_COUNT; i++)
        snapshot_store_record(store, place, (enum snapshot_field)i, (double)i + 0.29, NS_PER_S);
    struct snapshot *snapshot = snapshot_store_publish(store, NS_PER_S);
    struct metrics *metrics = metrics_new();
    struct exporter *x = exporter_new(
        &(struct exporter_config){.metrics = metrics, .node_name = "n", .version = "1", .start_wall_ns = 1});
    struct buf text BUF_AUTO;
    buf_init(&text, 1 << 20);
    exporter_render(x, &(struct exporter_view){.snapshot = snapshot, .now_ns = 2 * NS_PER_S}, PROMTEXT_TEXT, &text);
    struct top_sample s = sample_of(buf_cstr(&text));
    assert_int_equal(s.devices.len, 1);
    assert_double_same(s.age_seconds, 1);
    for (size_t i = 0; i < TOP_VALUE_COUNT; i++)
        assert_double_near(s.devices.items[0].values[i], (double)fields[i] + 0.29, 1e-9);
    top_sample_fini(&s);
    exporter_free(x);
    metrics_free(metrics);
    snapshot_unref(snapshot);
    snapshot_store_free(store);
}

/* ---- forms: goldens ---- */

static void test_a_table_is_aligned_by_characters_and_shows_unknown_as_a_dash(void **state)
{
    (void)state;
    struct top_sample s = sample_of(page);
    struct buf out BUF_AUTO;
    buf_init(&out, 1 << 16);
    top_render_table(&s, TOP_VIEW_TABLE, false, &out);
    assert_string_equal(
        buf_cstr(&out),
        "GPU     NAME                  UTIL   GR-ACT   MEM-USED   MEM-TOTAL   TEMP   POWER   LIMIT   STATUS\n"
        "0       NVIDIA \"H100\", 80GB    29%        -    20.0GiB           -    48C    308W       -   ok\n"
        "1       Karte f\xc3\xbcr 1              -        -          -           -      -       -       -   lost\n"
        "2       NVIDIA H100              -        -          -           -      -       -       -   ok\n"
        "2.7.0   MIG 1g.10gb              -      70%         0B           -      -       -       -   ok\n");
    buf_reset(&out);
    top_render_table(&s, TOP_VIEW_TABLE, true, &out);
    assert_non_null(strstr(buf_cstr(&out), "\n\033[31m1       Karte f\xc3\xbcr 1"));
    assert_non_null(strstr(buf_cstr(&out), "lost\033[0m\n"));
    buf_reset(&out);
    top_render_table(&s, TOP_VIEW_WIDE, false, &out);
    assert_non_null(strstr(buf_cstr(&out), "200.0MiB/s"));
    assert_non_null(strstr(buf_cstr(&out), "   ok       00000000:3B:00.0   GPU-0\n"));
    top_sample_fini(&s);
}

static void test_a_name_cannot_move_the_cursor(void **state)
{
    (void)state;
    struct top_sample s = sample_of("keda_gpu_scaler_nvml_state{state=\"ok\"} 1\n"
                                    "keda_gpu_scaler_gpu_info{gpu=\"0\",uuid=\"GPU-0\",product=\"a\033[2Jb\"} 1\n");
    struct buf out BUF_AUTO;
    buf_init(&out, 1 << 16);
    top_render_table(&s, TOP_VIEW_TABLE, false, &out);
    assert_non_null(strstr(buf_cstr(&out), "a?[2Jb"));
    top_sample_fini(&s);
}

static void test_json_has_null_for_unknown_and_an_empty_list_for_no_device(void **state)
{
    (void)state;
    struct top_sample s = sample_of(page);
    struct buf out BUF_AUTO;
    buf_init(&out, 1 << 16);
    s.devices.len = 1;
    top_render_json(&s, NULL, 0, &out);
    assert_string_equal(
        buf_cstr(&out),
        "{\"schema_version\":1,\"collected_at\":\"2026-11-30T14:02:19.123Z\",\"node\":\"node-1\","
        "\"driver_version\":\"570.172.08\",\"driver_state\":\"ok\",\"environment\":null,\"devices\":[{\"index\":0,"
        "\"uuid\":\"GPU-0\","
        "\"name\":\"NVIDIA \\\"H100\\\", 80GB\",\"kind\":\"gpu\",\"parent_uuid\":null,\"gpu_instance\":null,"
        "\"compute_instance\":null,\"mig_profile\":null,\"pci_bus_id\":\"00000000:3B:00.0\",\"serial\":\"165\","
        "\"status\":\"ok\",\"age_seconds\":0.25,\"utilization_percent\":29,\"graphics_activity_percent\":null,"
        "\"memory_utilization_percent\":null,\"memory_used_bytes\":21474836480,\"memory_free_bytes\":null,"
        "\"memory_reserved_bytes\":null,\"memory_total_bytes\":null,\"temperature_celsius\":48,\"power_watts\":308.5,"
        "\"power_limit_watts\":null,\"pcie_tx_bytes_per_second\":209715200,\"pcie_rx_bytes_per_second\":null,"
        "\"nvlink_tx_bytes_per_second\":null,\"nvlink_rx_bytes_per_second\":null,\"sm_clock_hertz\":null,"
        "\"memory_clock_hertz\":null,\"encoder_utilization_percent\":null,\"decoder_utilization_percent\":null,"
        "\"sm_activity_percent\":null,\"sm_occupancy_percent\":null,\"tensor_activity_percent\":null,"
        "\"dram_activity_percent\":null,\"energy_joules\":null,\"pods\":null}]}\n");
    buf_reset(&out);
    s.devices.len = 0;
    s.collected_ns = 0;
    top_render_json(&s, NULL, 0, &out);
    assert_non_null(strstr(buf_cstr(&out), "\"collected_at\":null"));
    assert_non_null(strstr(buf_cstr(&out), "\"devices\":[]}\n"));
    top_sample_fini(&s);
}

static void test_csv_quotes_what_must_be_and_leaves_unknown_empty(void **state)
{
    (void)state;
    struct top_sample s = sample_of(page);
    struct buf out BUF_AUTO;
    buf_init(&out, 1 << 16);
    top_render_csv_header(&out);
    top_render_csv(&s, &out);
    assert_string_equal(
        buf_cstr(&out),
        "collected_at,node,driver_version,index,uuid,name,kind,parent_uuid,gpu_instance,compute_instance,mig_profile,"
        "pci_bus_id,serial,status,age_seconds,utilization_percent,graphics_activity_percent,memory_utilization_percent,"
        "memory_used_bytes,memory_free_bytes,memory_reserved_bytes,memory_total_bytes,temperature_celsius,power_watts,"
        "power_limit_watts,pcie_tx_bytes_per_second,pcie_rx_bytes_per_second,nvlink_tx_bytes_per_second,"
        "nvlink_rx_bytes_per_second,sm_clock_hertz,memory_clock_hertz,encoder_utilization_percent,"
        "decoder_utilization_percent,sm_activity_percent,sm_occupancy_percent,tensor_activity_percent,"
        "dram_activity_percent,energy_joules,pod_namespace,pod_name,pod_uid,pod_sharing,pod_shares\n"
        "2026-11-30T14:02:19.123Z,node-1,570.172.08,0,GPU-0,\"NVIDIA \"\"H100\"\", "
        "80GB\",gpu,,,,,00000000:3B:00.0,165,ok,"
        "0.25,29,,,21474836480,,,,48,308.5,,209715200,,,,,,,,,,,,,,,,,\n"
        "2026-11-30T14:02:19.123Z,node-1,570.172.08,1,GPU-1,Karte f\xc3\xbcr "
        "1,gpu,,,,,,,lost,,,,,,,,,,,,,,,,,,,,,,,,,,,,,\n"
        "2026-11-30T14:02:19.123Z,node-1,570.172.08,2,GPU-2,NVIDIA "
        "H100,mig_parent,,,,,,,ok,,,,,,,,,,,,,,,,,,,,,,,,,,,,,\n"
        "2026-11-30T14:02:19.123Z,node-1,570.172.08,2,MIG-2a,NVIDIA H100,mig,GPU-2,7,0,1g.10gb,,,ok,"
        ",,70,,0,,,,,,,,,,,,,,,,,,,,,,,,\n");
    top_sample_fini(&s);
}

/* ---- pods ---- */

/* A shared GPU with two pods, one of them measured, and a process of no pod; a GPU that one pod has alone. */
static const char pods_page[] =
    "keda_gpu_scaler_nvml_state{state=\"ok\"} 1\n"
    "keda_gpu_scaler_owners_age_seconds 1\n"
    "keda_gpu_scaler_gpu_info{gpu=\"0\",uuid=\"GPU-0\",product=\"T4\",kind=\"gpu\"} 1\n"
    "keda_gpu_scaler_gpu_info{gpu=\"1\",uuid=\"GPU-1\",product=\"T4\",kind=\"gpu\"} 1\n"
    "keda_gpu_scaler_gpu_info{gpu=\"2\",uuid=\"GPU-2\",product=\"T4\",kind=\"gpu\"} 1\n"
    "keda_gpu_scaler_gpu_owner_info{gpu=\"0\",uuid=\"GPU-0\",pod_namespace=\"ml\",pod_name=\"a\","
    "container_name=\"c1\",sharing=\"shared\",shares=\"2\"} 1\n"
    "keda_gpu_scaler_gpu_owner_info{gpu=\"0\",uuid=\"GPU-0\",pod_namespace=\"ml\",pod_name=\"a\","
    "container_name=\"c2\",sharing=\"shared\",shares=\"1\"} 1\n"
    "keda_gpu_scaler_gpu_owner_info{gpu=\"0\",uuid=\"GPU-0\",pod_namespace=\"ml\",pod_name=\"b\","
    "container_name=\"c\",sharing=\"shared\"} 1\n"
    "keda_gpu_scaler_gpu_owner_info{gpu=\"1\",uuid=\"GPU-1\",pod_namespace=\"ml\",pod_name=\"d\","
    "container_name=\"c\",sharing=\"exclusive\"} 1\n"
    "keda_gpu_scaler_pod_gpu_utilization_ratio{gpu=\"0\",uuid=\"GPU-0\",pod_namespace=\"ml\",pod_name=\"a\","
    "pod_uid=\"u1\"} 0.29\n"
    "keda_gpu_scaler_pod_gpu_memory_used_bytes{gpu=\"0\",uuid=\"GPU-0\",pod_namespace=\"ml\",pod_name=\"a\","
    "pod_uid=\"u1\"} 1073741824\n"
    "keda_gpu_scaler_pod_gpu_memory_used_bytes{gpu=\"0\",uuid=\"GPU-0\",pod_namespace=\"ml\",pod_name=\"a\","
    "pod_uid=\"u2\"} NaN\n"
    "keda_gpu_scaler_pod_gpu_memory_used_bytes{gpu=\"0\",uuid=\"GPU-0\"} 1048576\n";

static void test_pods_stand_below_their_device_and_unmeasured_ones_have_no_values(void **state)
{
    (void)state;
    struct top_sample s = sample_of(pods_page);
    struct buf out BUF_AUTO;
    buf_init(&out, 1 << 16);
    top_render_table(&s, TOP_VIEW_TABLE, false, &out);
    assert_string_equal(buf_cstr(&out),
                        "GPU    NAME        UTIL   GR-ACT   MEM-USED   MEM-TOTAL   TEMP   POWER   LIMIT   STATUS\n"
                        "0      T4             -        -          -           -      -       -       -   ok\n"
                        " pod    ml/a        29%        -     1.0GiB           -      -       -       -   shared x3\n"
                        " pod    ml/b          -        -          -           -      -       -       -   shared\n"
                        " pod    (no pod)      -        -     1.0MiB           -      -       -       -   -\n"
                        "1      T4             -        -          -           -      -       -       -   ok\n"
                        " pod    ml/d          -        -          -           -      -       -       -   exclusive\n"
                        "2      T4             -        -          -           -      -       -       -   ok\n");
    top_sample_fini(&s);
}

static void test_pods_are_data_too(void **state)
{
    (void)state;
    struct top_sample s = sample_of(pods_page);
    struct buf out BUF_AUTO;
    buf_init(&out, 1 << 16);
    top_render_json(&s, NULL, 0, &out);
    assert_non_null(
        strstr(buf_cstr(&out),
               "\"pods\":[{\"namespace\":\"ml\",\"name\":\"a\",\"uid\":\"u1\",\"sharing\":\"shared\",\"shares\":3,"
               "\"utilization_percent\":29,\"memory_used_bytes\":1073741824},"
               "{\"namespace\":\"ml\",\"name\":\"b\",\"uid\":null,\"sharing\":\"shared\",\"shares\":null,"
               "\"utilization_percent\":null,\"memory_used_bytes\":null},"
               "{\"namespace\":null,\"name\":null,\"uid\":null,\"sharing\":null,\"shares\":null,"
               "\"utilization_percent\":null,\"memory_used_bytes\":1048576}]}"));
    assert_non_null(strstr(buf_cstr(&out), "\"pods\":[]}]}\n")); /* of GPU-2: known to have none */
    buf_reset(&out);
    top_render_csv(&s, &out);
    assert_non_null(
        strstr(buf_cstr(&out), ",0,GPU-0,T4,pod,,,,,,,ok,,29,,,1073741824,,,,,,,,,,,,,,,,,,,,ml,a,u1,shared,3\n"));
    top_sample_fini(&s);
}

static void test_only_the_jobs_devices_are_kept(void **state)
{
    (void)state;
    struct top_sample s = sample_of(pods_page);
    struct job_device wanted[] = {{.index = 1, .gi = -1, .ci = -1, .words = "1"},
                                  {.index = 9, .gi = -1, .ci = -1, .words = "9"}};
    struct job_plan plan = {.choice = JOB_LIST, .source = "--device", .order = JOB_ORDER_NODE};
    plan.devices.items = wanted;
    plan.devices.len = ARRAY_LEN(wanted);
    struct buf note BUF_AUTO, out BUF_AUTO;
    buf_init(&note, 1 << 10);
    buf_init(&out, 1 << 16);
    assert_int_equal(top_choose(&s, &plan, &note), 1);
    assert_string_equal(buf_cstr(&note), "not here: 9 (--device)");
    assert_int_equal(s.devices.len, 1);
    assert_string_equal(s.devices.items[0].uuid, "GPU-1");
    assert_int_equal(s.devices.items[0].pods.len, 1);
    top_render_json(&s, &plan, 0, &out);
    assert_non_null(strstr(buf_cstr(&out), "\"environment\":{\"orchestrator\":\"standalone\",\"node\":null,"));
    top_sample_fini(&s);
}

static void test_prom_keeps_the_lines_of_devices_and_driver(void **state)
{
    (void)state;
    struct buf out BUF_AUTO;
    buf_init(&out, 1 << 16);
    top_render_prom(str_of("# HELP keda_gpu_scaler_gpu_up 1 if.\n# TYPE keda_gpu_scaler_gpu_up gauge\n"
                           "keda_gpu_scaler_gpu_up{gpu=\"0\"} 1\n# TYPE process_cpu_seconds_total counter\n"
                           "process_cpu_seconds_total 1\nkeda_gpu_scaler_nvml_up 1\nkeda_gpu_scaler_samples_total 7\n"),
                    &out);
    assert_string_equal(buf_cstr(&out), "# HELP keda_gpu_scaler_gpu_up 1 if.\n# TYPE keda_gpu_scaler_gpu_up gauge\n"
                                        "keda_gpu_scaler_gpu_up{gpu=\"0\"} 1\nkeda_gpu_scaler_nvml_up 1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_page_gives_devices_in_its_order_with_unknown_as_nan),
        cmocka_unit_test(test_a_page_that_is_not_an_agents_is_refused),
        cmocka_unit_test(test_the_time_is_that_of_the_reading),
        cmocka_unit_test(test_every_value_comes_through_the_exporters_page),
        cmocka_unit_test(test_a_table_is_aligned_by_characters_and_shows_unknown_as_a_dash),
        cmocka_unit_test(test_a_name_cannot_move_the_cursor),
        cmocka_unit_test(test_json_has_null_for_unknown_and_an_empty_list_for_no_device),
        cmocka_unit_test(test_csv_quotes_what_must_be_and_leaves_unknown_empty),
        cmocka_unit_test(test_pods_stand_below_their_device_and_unmeasured_ones_have_no_values),
        cmocka_unit_test(test_pods_are_data_too),
        cmocka_unit_test(test_only_the_jobs_devices_are_kept),
        cmocka_unit_test(test_prom_keeps_the_lines_of_devices_and_driver),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
