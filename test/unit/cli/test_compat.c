/* The forms of gpu-metrics: keys and columns that its users' parsers know. */
#include "cli/top.h"

#include <math.h>
#include <string.h>

#include "support.h"

static struct top_device device(enum snapshot_kind kind, int index, const char *uuid)
{
    struct top_device d = {.kind = kind, .index = index, .gpu_instance = -1, .compute_instance = -1};
    (void)str_copy(d.uuid, sizeof(d.uuid), str_of(uuid));
    (void)str_copy(d.name, sizeof(d.name), str_of("NVIDIA H100, 80GB"));
    for (size_t i = 0; i < TOP_VALUE_COUNT; i++)
        d.values[i] = (double)NAN;
    return d;
}

/* A GPU; a divided one with two MIG devices; a divided one without any. */
static void fill(struct top_sample *s)
{
    struct top_device gpu = device(SNAPSHOT_GPU, 0, "GPU-0"), parent = device(SNAPSHOT_MIG_PARENT, 1, "GPU-1");
    struct top_device mig = device(SNAPSHOT_MIG, 1, "MIG-a"), empty = device(SNAPSHOT_MIG_PARENT, 2, "GPU-2");
    *s = (struct top_sample){.collected_ns = 1796047339623 * NS_PER_MS};
    (void)str_copy(s->driver_version, sizeof(s->driver_version), str_of("570.172.08"));
    gpu.values[TOP_UTILIZATION] = 40;
    gpu.values[TOP_MEMORY_USED] = 20480.0 * (1 << 20);
    gpu.values[TOP_POWER] = 349.6;
    gpu.values[TOP_PCIE_TX] = 1e9;
    gpu.values[TOP_NVLINK_TX] = 2e9;
    parent.values[TOP_TEMPERATURE] = 44;
    parent.values[TOP_MEMORY_USED] = 99;
    mig.gpu_instance = 1;
    mig.compute_instance = 0;
    mig.values[TOP_GRAPHICS_ACTIVITY] = 70;
    mig.values[TOP_MEMORY_USED] = 1 << 20;
    (void)str_copy(mig.parent_uuid, sizeof(mig.parent_uuid), str_of("GPU-1"));
    (void)str_copy(mig.mig_profile, sizeof(mig.mig_profile), str_of("3g.40gb"));
    vec_push(&s->devices, gpu);
    vec_push(&s->devices, parent);
    vec_push(&s->devices, mig);
    (void)str_copy(mig.uuid, sizeof(mig.uuid), str_of("MIG-b"));
    mig.gpu_instance = 2;
    mig.values[TOP_GRAPHICS_ACTIVITY] = (double)NAN;
    vec_push(&s->devices, mig);
    vec_push(&s->devices, empty);
}

static const struct job_plan slurm = {
    .environment = JOB_SLURM, .node = "n1", .job_id = "42", .partition = "gpu", .task_rank = 3};
static const struct job_plan bare = {.environment = JOB_STANDALONE, .node = "n1", .task_rank = -1};

static void test_json_has_the_known_keys_in_order_and_null_for_unknown(void **state)
{
    (void)state;
    struct top_sample s;
    BUF_AUTO struct buf out;
    buf_init(&out, 1 << 20);
    fill(&s);
    top_render_compat_json(&s, &slurm, 0, &out);
    static const char head[] =
        "{\"environment\":{\"orchestrator\":\"slurm\",\"node\":\"n1\",\"job_id\":\"42\",\"task_rank\":3,\"pod_name\":"
        "null,"
        "\"namespace\":null,\"partition\":\"gpu\",\"flux_uri\":null},\"driver_version\":\"570.172.08\","
        "\"collected_at\":\"2026-11-30T14:02:19.623Z\",\"devices\":["
        "{\"Index\":0,\"UUID\":\"GPU-0\",\"Name\":\"NVIDIA H100, "
        "80GB\",\"GPUUtilization\":40,\"MemoryUtilization\":null,"
        "\"MemoryUsedMiB\":20480,\"MemoryTotalMiB\":null,\"TemperatureCelsius\":null,\"PowerDrawWatts\":350,"
        "\"PowerLimitWatts\":null,\"PCIeTxKBps\":1000000,\"PCIeRxKBps\":null,\"NVLinkTxMBps\":2000,"
        "\"NVLinkRxMBps\":null,\"IsMIGInstance\":false,\"ParentIndex\":null,\"MigProfile\":null},"
        "{\"Index\":0,\"UUID\":\"MIG-a\",\"Name\":\"NVIDIA H100, "
        "80GB\",\"GPUUtilization\":70,\"MemoryUtilization\":null,"
        "\"MemoryUsedMiB\":1,\"MemoryTotalMiB\":null,\"TemperatureCelsius\":44,";
    if (strncmp(buf_cstr(&out), head, sizeof(head) - 1) != 0)
        fail_msg("%s", buf_cstr(&out));
    assert_non_null(strstr(buf_cstr(&out), "{\"Index\":1,\"UUID\":\"MIG-b\",\"Name\":\"NVIDIA H100, 80GB\","
                                           "\"GPUUtilization\":null,"));
    assert_non_null(strstr(buf_cstr(&out), "\"IsMIGInstance\":true,\"ParentIndex\":1,\"MigProfile\":\"3g.40gb\"}"));
    assert_null(strstr(buf_cstr(&out), "GPU-1"));     /* its MIG devices stand for it */
    assert_non_null(strstr(buf_cstr(&out), "GPU-2")); /* nothing else does */
    top_sample_fini(&s);
}

static void test_json_without_a_device_is_an_empty_list(void **state)
{
    (void)state;
    struct top_sample s = {0};
    BUF_AUTO struct buf out;
    buf_init(&out, 1 << 20);
    top_render_compat_json(&s, &bare, 0, &out);
    assert_string_equal(buf_cstr(&out),
                        "{\"environment\":{\"orchestrator\":\"standalone\",\"node\":\"n1\",\"job_id\":null,"
                        "\"task_rank\":null,\"pod_name\":null,\"namespace\":null,\"partition\":null,\"flux_uri\":null},"
                        "\"driver_version\":null,\"collected_at\":null,\"devices\":[]}\n");
}

static void test_csv_has_the_known_columns(void **state)
{
    (void)state;
    struct top_sample s;
    BUF_AUTO struct buf out;
    buf_init(&out, 1 << 20);
    fill(&s);
    top_render_compat_csv_header(&out);
    top_render_compat_csv(&s, &bare, &out);
    assert_string_equal(
        buf_cstr(&out),
        "orchestrator,node,job_id,task_rank,driver_version,index,uuid,name,gpu_util_pct,mem_util_pct,mem_used_mib,"
        "mem_total_mib,temp_c,power_w,power_limit_w,pcie_tx_kbps,pcie_rx_kbps,nvlink_tx_mbps,nvlink_rx_mbps,"
        "is_mig_instance,parent_index,mig_profile\n"
        "standalone,n1,,,570.172.08,0,GPU-0,\"NVIDIA H100, 80GB\",40,,20480,,,350,,1000000,,2000,,false,,\n"
        "standalone,n1,,,570.172.08,0,MIG-a,\"NVIDIA H100, 80GB\",70,,1,,44,,,,,,,true,1,3g.40gb\n"
        "standalone,n1,,,570.172.08,1,MIG-b,\"NVIDIA H100, 80GB\",,,1,,44,,,,,,,true,1,3g.40gb\n"
        "standalone,n1,,,570.172.08,2,GPU-2,\"NVIDIA H100, 80GB\",,,,,,,,,,,,false,,\n");
    top_sample_fini(&s);
}

static void test_the_table_has_a_banner_and_aligned_rows(void **state)
{
    (void)state;
    struct top_sample s;
    BUF_AUTO struct buf out;
    buf_init(&out, 1 << 20);
    fill(&s);
    top_render_compat_table(&s, &slurm, &out);
    struct str rest = str_of(buf_cstr(&out)), line = str_cut(&rest, '\n');
    assert_true(str_equals(line, "Environment : slurm  |  Node: n1  |  Job: 42  |  Rank: 3  |  Partition: gpu  |  "
                                 "Driver: 570.172.08"));
    (void)str_cut(&rest, '\n');
    size_t width = 0, n = 0;
    for (line = str_cut(&rest, '\n'); line.len; line = str_cut(&rest, '\n'), n++) {
        assert_true(!width || line.len == width);
        width = line.len;
    }
    assert_int_equal(n, 5);
    top_sample_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_has_the_known_keys_in_order_and_null_for_unknown),
        cmocka_unit_test(test_json_without_a_device_is_an_empty_list),
        cmocka_unit_test(test_csv_has_the_known_columns),
        cmocka_unit_test(test_the_table_has_a_banner_and_aligned_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
