/* What several share a GPU by: MIG devices, processes, GPM samples; and events. */
#include "stage.h"

#include <stdio.h>
#include <string.h>

static const char divided[] = "gpus:\n"
                              "  - board: H100\n"
                              "    utilization: 50\n"
                              "    mig:\n"
                              "      - {profile: 3g.40gb, compute: [2c, 1c], utilization: 60, memory_used_mib: 900}\n"
                              "      - {profile: 1g.10gb, utilization: 90, sm_activity: 80}\n"
                              "    processes:\n"
                              "      - {pid: 10, gpu_instance: 1, compute_instance: 1, memory_mib: 500}\n"
                              "      - {pid: 11, gpu_instance: 11, memory_mib: 70}\n"
                              "  - {board: H100}\n"
                              "events: [{at: 10, gpu: 0, mig: [1g.10gb]}]\n";

static void test_mig_devices_are_sparse(void **state)
{
    (void)state;
    static const int want[MIG_SLICES] = {NVML_RC_SUCCESS, NVML_RC_NOT_FOUND, NVML_RC_SUCCESS,  NVML_RC_NOT_FOUND,
                                         NVML_RC_SUCCESS, NVML_RC_NOT_FOUND, NVML_RC_NOT_FOUND};
    struct nvml_device *mig = NULL;
    uint32_t n, current, pending;
    stage_play(divided);
    assert_rc(nvmlDeviceGetMigMode(stage_gpu(0), &current, &pending), SUCCESS);
    assert_int_equal(current, 1);
    assert_rc(nvmlDeviceGetMaxMigDeviceCount(stage_gpu(0), &n), SUCCESS);
    assert_int_equal(n, MIG_SLICES);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(nvmlDeviceGetMigDeviceHandleByIndex(stage_gpu(0), i, &mig), want[i]);
    assert_rc(nvmlDeviceGetMigDeviceHandleByIndex(stage_gpu(0), MIG_SLICES, &mig), INVALID_ARGUMENT);
    assert_rc(nvmlDeviceGetMigMode(stage_gpu(1), &current, &pending), SUCCESS);
    assert_int_equal(current, 0);
    assert_rc(nvmlDeviceGetMaxMigDeviceCount(stage_gpu(1), &n), SUCCESS);
    assert_int_equal(n, 0);
}

static void test_a_mig_device_knows_who_it_is(void **state)
{
    (void)state;
    struct nvml_attributes a;
    struct nvml_device *mig, *parent, *by = NULL;
    uint32_t gi, ci, is_mig;
    char text[NVML_NAME_MAX], uuid[NVML_UUID_MAX];
    stage_play(divided);
    mig = stage_mig(0, 2);
    assert_rc(nvmlDeviceGetName(mig, text, sizeof(text)), SUCCESS);
    assert_string_equal(text, "NVIDIA H100 80GB HBM3 MIG 1c.3g.40gb");
    assert_rc(nvmlDeviceGetGpuInstanceId(mig, &gi), SUCCESS);
    assert_rc(nvmlDeviceGetComputeInstanceId(mig, &ci), SUCCESS);
    assert_int_equal(gi, 1);
    assert_int_equal(ci, 1);
    assert_rc(nvmlDeviceGetUUID(mig, uuid, sizeof(uuid)), SUCCESS);
    assert_memory_equal(uuid, "MIG-", 4);
    assert_rc(nvmlDeviceGetHandleByUUID(uuid, &by), SUCCESS);
    assert_ptr_equal(by, mig);
    assert_rc(nvmlDeviceGetUUID(stage_gpu(0), uuid, sizeof(uuid)), SUCCESS);
    (void)snprintf(text, sizeof(text), "MIG-%.48s/1/1", uuid);
    assert_rc(nvmlDeviceGetHandleByUUID(text, &by), SUCCESS);
    assert_ptr_equal(by, mig);
    assert_rc(nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig, &parent), SUCCESS);
    assert_ptr_equal(parent, stage_gpu(0));
    assert_rc(nvmlDeviceIsMigDeviceHandle(mig, &is_mig), SUCCESS);
    assert_int_equal(is_mig, 1);
    assert_rc(nvmlDeviceGetAttributes_v2(mig, &a), SUCCESS);
    assert_int_equal(a.gpu_instance_slices, 3);
    assert_int_equal(a.compute_instance_slices, 1);
    assert_int_equal(a.multiprocessors, 20);
    assert_rc(nvmlDeviceGetGpuInstanceId(stage_gpu(0), &gi), NOT_SUPPORTED);
}

static void test_mig_hides_what_nvml_does_not_know(void **state)
{
    (void)state;
    struct nvml_utilization u;
    struct nvml_sample sample;
    uint32_t a, b, c, d, n = 1;
    uint64_t count;
    stage_play(divided);
    struct nvml_device *whole = stage_gpu(0), *mig = stage_mig(0, 0);
    assert_rc(nvmlDeviceGetUtilizationRates(whole, &u), NOT_SUPPORTED);
    assert_rc(nvmlDeviceGetUtilizationRates(mig, &u), NOT_SUPPORTED);
    assert_rc(nvmlDeviceGetEncoderUtilization(whole, &a, &b), NOT_SUPPORTED);
    assert_rc(nvmlDeviceGetSamples(whole, 1, 0, &a, &n, &sample), NOT_SUPPORTED);
    assert_rc(nvmlDeviceGetProcessUtilization(whole, NULL, &n, 0), NOT_SUPPORTED);
    assert_rc(nvmlDeviceGetRemappedRows(whole, &a, &b, &c, &d), NOT_SUPPORTED);
    assert_rc(nvmlDeviceGetTotalEccErrors(whole, 1, 0, &count), NOT_SUPPORTED);
    assert_rc(nvmlDeviceGetTotalEccErrors(mig, 1, 0, &count), SUCCESS);
    assert_rc(nvmlDeviceGetPowerUsage(whole, &a), SUCCESS);
    assert_rc(nvmlDeviceGetPowerUsage(mig, &a), NOT_SUPPORTED);
    assert_rc(nvmlDeviceGetTemperature(mig, 0, &a), NOT_SUPPORTED);
    assert_rc(nvmlDeviceGetClockInfo(mig, 0, &a), NOT_SUPPORTED);
    struct nvml_field_value f = {.field_id = NVML_FIELD_TOTAL_ENERGY};
    assert_rc(nvmlDeviceGetFieldValues(mig, 1, &f), NOT_SUPPORTED);
    assert_rc(f.rc, NOT_SUPPORTED);
}

static void test_memory_belongs_to_the_gpu_instance(void **state)
{
    (void)state;
    struct nvml_memory_v2 a = {.version = NVML_MEMORY_V2}, b = a, whole = a;
    const uint64_t mib = 1 << 20;
    stage_play(divided);
    assert_rc(nvmlDeviceGetMemoryInfo_v2(stage_mig(0, 0), &a), SUCCESS);
    assert_rc(nvmlDeviceGetMemoryInfo_v2(stage_mig(0, 2), &b), SUCCESS);
    assert_memory_equal(&a, &b, sizeof(a));
    assert_int_equal(a.used_bytes, 900 * mib);
    assert_int_equal(a.reserved_bytes, 0);
    assert_int_equal(a.total_bytes, a.used_bytes + a.free_bytes);
    assert_rc(nvmlDeviceGetMemoryInfo_v2(stage_gpu(0), &whole), SUCCESS);
    assert_int_equal(whole.used_bytes, 970 * mib);
}

static void test_a_destroyed_instance_is_not_found(void **state)
{
    (void)state;
    uint32_t id;
    struct nvml_device *gone, *stays;
    stage_play(divided);
    gone = stage_mig(0, 4);
    stays = stage_gpu(0);
    stage_advance(10);
    assert_rc(nvmlDeviceGetGpuInstanceId(gone, &id), NOT_FOUND);
    assert_rc(nvmlDeviceGetIndex(stays, &id), SUCCESS);
    assert_rc(nvmlDeviceGetGpuInstanceId(stage_mig(0, 0), &id), SUCCESS);
    assert_int_equal(id, 7);
}

/* ---- processes ---- */

static const char processes[] = "gpus:\n"
                                "  - board: A10\n"
                                "    processes:\n"
                                "      - {pid: 1, memory_mib: 100, sm: 40}\n"
                                "      - {pid: 2, memory_mib: 200, sm: {step: [[0, 0], [20, 90]]}}\n"
                                "      - {pid: 3, memory_mib: 7, type: graphics}\n"
                                "      - {pid: 4, memory_mib: 8, type: mps, from: 5}\n";

static void test_process_lists_say_how_much_room_they_need(void **state)
{
    (void)state;
    struct nvml_process p[4];
    uint32_t n = 0;
    stage_play(processes);
    struct nvml_device *d = stage_gpu(0);
    assert_rc(nvmlDeviceGetComputeRunningProcesses_v3(d, &n, NULL), INSUFFICIENT_SIZE);
    assert_int_equal(n, 2);
    n = 1;
    assert_rc(nvmlDeviceGetComputeRunningProcesses_v3(d, &n, p), INSUFFICIENT_SIZE);
    n = 4;
    assert_rc(nvmlDeviceGetComputeRunningProcesses_v3(d, &n, p), SUCCESS);
    assert_int_equal(n, 2);
    assert_int_equal(p[1].pid, 2);
    assert_int_equal(p[1].used_bytes, (uint64_t)200 << 20);
    assert_int_equal(p[1].gpu_instance_id, NVML_NONE_U32);
    n = 0;
    assert_rc(nvmlDeviceGetMPSComputeRunningProcesses_v3(d, &n, NULL), SUCCESS);
    assert_int_equal(n, 0);
    stage_advance(5);
    assert_rc(nvmlDeviceGetMPSComputeRunningProcesses_v3(d, &n, NULL), INSUFFICIENT_SIZE);
    assert_int_equal(n, 1);
}

static void test_the_oldest_process_list_has_short_elements(void **state)
{
    (void)state;
    struct nvml_process_v1 p[3] = {{0}};
    uint32_t n = 2;
    p[2].pid = 77;
    stage_play(processes);
    assert_rc(nvmlDeviceGetComputeRunningProcesses(stage_gpu(0), &n, p), SUCCESS);
    assert_int_equal(p[0].pid, 1);
    assert_int_equal(p[1].pid, 2);
    assert_int_equal(p[1].used_bytes, (uint64_t)200 << 20);
    assert_int_equal(p[2].pid, 77);
}

static void test_r535_43_writes_long_elements_from_v3(void **state)
{
    (void)state;
    static const struct {
        const char *driver;
        bool is_trap;
    } cases[] = {{"535.42.01", false}, {"535.43.02", true}, {"535.54.03", true}, {"535.86.10", false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[1024];
        struct nvml_process_detail p[2];
        uint32_t n = 2;
        (void)snprintf(text, sizeof(text), "driver: '%s'\n%s", cases[i].driver, processes);
        stage_play(text);
        memset(p, 0, sizeof(p));
        assert_rc(nvmlDeviceGetComputeRunningProcesses_v3(stage_gpu(0), &n, (struct nvml_process *)(void *)p), SUCCESS);
        assert_int_equal(p[1].pid == 2, cases[i].is_trap);
        assert_rc(nvmlDeviceGetComputeRunningProcesses_v2(stage_gpu(0), &n, (struct nvml_process *)(void *)p), SUCCESS);
        assert_int_equal(((struct nvml_process *)(void *)p)[1].pid, 2);
    }
}

static void test_processes_of_instances_have_their_ids(void **state)
{
    (void)state;
    struct nvml_process p[4];
    uint32_t n = 4;
    stage_play(divided);
    assert_rc(nvmlDeviceGetComputeRunningProcesses_v3(stage_gpu(0), &n, p), SUCCESS);
    assert_int_equal(n, 2);
    assert_int_equal(p[0].gpu_instance_id, 1);
    assert_int_equal(p[0].compute_instance_id, 1);
    n = 4;
    assert_rc(nvmlDeviceGetComputeRunningProcesses_v3(stage_mig(0, 4), &n, p), SUCCESS);
    assert_int_equal(n, 1);
    assert_int_equal(p[0].pid, 11);
    n = 4;
    assert_rc(nvmlDeviceGetComputeRunningProcesses_v3(stage_mig(0, 0), &n, p), SUCCESS);
    assert_int_equal(n, 0);
}

static void test_process_utilization_is_what_is_new(void **state)
{
    (void)state;
    struct nvml_process_utilization s[4];
    uint32_t n = 0;
    stage_play(processes);
    struct nvml_device *d = stage_gpu(0);
    stage_advance(6);
    assert_rc(nvmlDeviceGetProcessUtilization(d, NULL, &n, 0), INSUFFICIENT_SIZE);
    assert_int_equal(n, 4);
    assert_rc(nvmlDeviceGetProcessUtilization(d, s, &n, 0), SUCCESS);
    assert_int_equal(n, 1); /* the others did nothing */
    assert_int_equal(s[0].pid, 1);
    assert_int_equal(s[0].sm, 40);
    uint64_t last = s[0].time_us;
    n = 4;
    assert_rc(nvmlDeviceGetProcessUtilization(d, s, &n, last), NOT_FOUND);
    stage_advance(19);
    n = 4;
    assert_rc(nvmlDeviceGetProcessUtilization(d, s, &n, last), SUCCESS);
    assert_int_equal(n, 2);
    assert_int_equal(s[1].pid, 2);
    assert_in_range(s[1].sm, 44, 46); /* half of the last 10 s at 90 */
    assert_true(s[1].time_us > last);
    stage_play("gpus: [{board: A10}]");
    n = 4;
    assert_rc(nvmlDeviceGetProcessUtilization(stage_gpu(0), s, &n, 0), NOT_FOUND);
}

static void test_processes_that_come_and_go_add_up_to_the_gpu(void **state)
{
    (void)state;
    struct nvml_process_utilization s[4];
    uint32_t n = 4, sum = 0;
    stage_play("gpus: [{board: A10, utilization: 80, processes: ["
               "{pid: 1, sm: 80, until: 10.5}, {pid: 2, sm: 80, from: 10.5}]}]");
    struct nvml_device *d = stage_gpu(0);
    stage_advance(10);
    assert_rc(nvmlDeviceGetProcessUtilization(d, s, &n, 0), SUCCESS);
    uint64_t last = s[0].time_us;
    stage_advance(1);
    n = 4;
    assert_rc(nvmlDeviceGetProcessUtilization(d, s, &n, last), SUCCESS);
    assert_int_equal(n, 2);
    for (size_t i = 0; i < n; i++)
        sum += s[i].sm;
    assert_int_equal(sum, 80);
    assert_int_equal(s[0].sm, 40);
}

static void test_a_hidden_process_is_sampled_and_not_listed(void **state)
{
    (void)state;
    struct nvml_process p[2];
    struct nvml_process_utilization s[2];
    uint32_t n = 2;
    stage_play("gpus: [{board: A10, processes: [{pid: 1, sm: 30, hidden: true}, {pid: 2, sm: 20}]}]");
    stage_advance(1);
    assert_rc(nvmlDeviceGetComputeRunningProcesses_v3(stage_gpu(0), &n, p), SUCCESS);
    assert_int_equal(n, 1);
    assert_int_equal(p[0].pid, 2);
    n = 2;
    assert_rc(nvmlDeviceGetProcessUtilization(stage_gpu(0), s, &n, 0), SUCCESS);
    assert_int_equal(n, 2);
    assert_int_equal(s[0].pid, 1);
}

static void test_a_mig_mode_may_wait_for_a_reset(void **state)
{
    (void)state;
    uint32_t current = 9, pending = 9;
    stage_play("gpus: [{board: H100, mig_pending: true}, {board: H100, mig: [1g.10gb], mig_pending: true},"
               " {board: H100}]");
    assert_rc(nvmlDeviceGetMigMode(stage_gpu(0), &current, &pending), SUCCESS);
    assert_int_equal(current, NVML_MIG_OFF);
    assert_int_equal(pending, NVML_MIG_ON);
    assert_rc(nvmlDeviceGetMigMode(stage_gpu(1), &current, &pending), SUCCESS);
    assert_int_equal(current, NVML_MIG_ON);
    assert_int_equal(pending, NVML_MIG_OFF);
    assert_rc(nvmlDeviceGetMigMode(stage_gpu(2), &current, &pending), SUCCESS);
    assert_int_equal(current, pending);
}

/* ---- GPM ---- */

struct gpm {
    struct nvml_gpm_sample *a, *b;
    union {
        struct nvml_gpm_metrics head;
        char bytes[4096];
    } get;
};

static void gpm_alloc(struct gpm *g)
{
    memset(g, 0, sizeof(*g));
    assert_rc(nvmlGpmSampleAlloc(&g->a), SUCCESS);
    assert_rc(nvmlGpmSampleAlloc(&g->b), SUCCESS);
}

static void gpm_free(struct gpm *g)
{
    assert_rc(nvmlGpmSampleFree(g->a), SUCCESS);
    assert_rc(nvmlGpmSampleFree(g->b), SUCCESS);
    assert_rc(nvmlGpmSampleFree(g->b), INVALID_ARGUMENT);
}

static int gpm_ask(struct gpm *g, const uint32_t *ids, uint32_t n)
{
    g->get.head = (struct nvml_gpm_metrics){.version = 1, .metrics_len = n, .sample1 = g->a, .sample2 = g->b};
    for (uint32_t i = 0; i < n; i++)
        g->get.head.metrics[i].metric_id = ids[i];
    return nvmlGpmMetricsGet(&g->get.head);
}

static void test_gpm_metrics_are_means_between_two_samples(void **state)
{
    (void)state;
    const uint32_t ids[] = {NVML_GPM_SM_UTIL, NVML_GPM_ANY_TENSOR_UTIL, 9999, NVML_GPM_NVLINK_TX, NVML_GPM_PCIE_RX};
    struct gpm g;
    stage_play("gpus: [{board: H100, sm_activity: {step: [[0, 20], [5, 80]]}, tensor_activity: 33,\n"
               "        nvlink_tx_kibps: 2048, pcie_rx_kbps: 1048576}]");
    gpm_alloc(&g);
    stage_advance(4);
    assert_rc(nvmlGpmSampleGet(stage_gpu(0), g.a), SUCCESS);
    stage_advance(4);
    assert_rc(nvmlGpmSampleGet(stage_gpu(0), g.b), SUCCESS);
    assert_rc(gpm_ask(&g, ids, 5), SUCCESS);
    assert_double_near(g.get.head.metrics[0].value, (20 + 3 * 80) / 4.0, 0.001);
    assert_double_near(g.get.head.metrics[1].value, 33, 0.001);
    assert_rc(g.get.head.metrics[2].rc, NOT_SUPPORTED);
    assert_double_near(g.get.head.metrics[3].value, 2, 0.001);
    assert_double_near(g.get.head.metrics[4].value, 1000, 0.01);
    g.get.head.version = 0x01000018;
    assert_rc(nvmlGpmMetricsGet(&g.get.head), ARGUMENT_VERSION_MISMATCH);
    gpm_free(&g);
}

static void test_gpm_samples_must_be_100_ms_apart(void **state)
{
    (void)state;
    const uint32_t id = NVML_GPM_SM_UTIL;
    struct gpm g;
    stage_play("gpus: [{board: H100, utilization: 50}, {board: A100-80}]");
    gpm_alloc(&g);
    assert_rc(nvmlGpmSampleGet(stage_gpu(0), g.a), SUCCESS);
    assert_rc(gpm_ask(&g, &id, 1), INVALID_ARGUMENT); /* the second is empty */
    stage_advance(0.09);
    assert_rc(nvmlGpmSampleGet(stage_gpu(0), g.b), SUCCESS);
    assert_rc(gpm_ask(&g, &id, 1), INVALID_ARGUMENT);
    stage_advance(0.02);
    assert_rc(nvmlGpmSampleGet(stage_gpu(0), g.b), SUCCESS);
    assert_rc(gpm_ask(&g, &id, 1), SUCCESS);
    assert_rc(nvmlGpmSampleGet(stage_gpu(1), g.b), NOT_SUPPORTED);
    gpm_free(&g);
}

static void test_gpm_of_instances_goes_by_gpu_instance(void **state)
{
    (void)state;
    const uint32_t ids[] = {NVML_GPM_SM_UTIL, NVML_GPM_GRAPHICS_UTIL, NVML_GPM_NVLINK_RX};
    struct gpm g;
    stage_play(divided);
    gpm_alloc(&g);
    assert_rc(nvmlGpmSampleGet(stage_gpu(0), g.a), NOT_SUPPORTED);
    assert_rc(nvmlGpmMigSampleGet(stage_gpu(0), 3, g.a), NOT_FOUND);
    assert_rc(nvmlGpmMigSampleGet(stage_gpu(1), 1, g.a), NOT_SUPPORTED);
    assert_rc(nvmlGpmMigSampleGet(stage_gpu(0), 11, g.a), SUCCESS);
    stage_advance(1);
    assert_rc(nvmlGpmMigSampleGet(stage_gpu(0), 11, g.b), SUCCESS);
    assert_rc(gpm_ask(&g, ids, 3), SUCCESS);
    assert_double_near(g.get.head.metrics[0].value, 80, 0.001);
    assert_double_near(g.get.head.metrics[1].value, 90, 0.001);
    assert_rc(g.get.head.metrics[2].rc, NOT_SUPPORTED);
    gpm_free(&g);
}

/* ---- events ---- */

static struct nvml_event_set *set_with(uint32_t gpu, uint64_t types)
{
    struct nvml_event_set *set = NULL;
    assert_rc(nvmlEventSetCreate(&set), SUCCESS);
    assert_rc(nvmlDeviceRegisterEvents(stage_gpu(gpu), types, set), SUCCESS);
    return set;
}

static void test_events_come_one_a_wait_and_in_order(void **state)
{
    (void)state;
    struct nvml_event_data data;
    uint64_t types;
    stage_play("gpus: [{board: H100, count: 2}]\n"
               "events:\n"
               "  - {at: 1, gpu: 0, xid: 43}\n"
               "  - {at: 5, gpu: 1, xid: 48}\n"
               "  - {at: 6, gpu: 0, xid: 79}\n"
               "  - {at: 7, gpu: 0, mig: [1g.10gb]}\n"
               "  - {at: 8, gpu: 0, ecc: {uncorrected: 1}}\n");
    stage_advance(2);
    assert_rc(nvmlDeviceGetSupportedEventTypes(stage_gpu(0), &types), SUCCESS);
    struct nvml_event_set *set = set_with(0, types);
    assert_rc(nvmlEventSetWait_v2(set, &data, 0), TIMEOUT); /* what was before registration does not come */
    stage_advance(7);
    assert_rc(nvmlEventSetWait_v2(set, &data, 0), SUCCESS);
    assert_int_equal(data.type, NVML_EVENT_XID_CRITICAL);
    assert_int_equal(data.data, 79);
    assert_ptr_equal(data.device, stage_gpu(0));
    assert_int_equal(data.gpu_instance_id, NVML_NONE_U32);
    assert_rc(nvmlEventSetWait_v2(set, &data, 0), SUCCESS);
    assert_int_equal(data.type, NVML_EVENT_MIG_CONFIG_CHANGE);
    assert_rc(nvmlEventSetWait_v2(set, &data, 0), SUCCESS);
    assert_int_equal(data.type, NVML_EVENT_DOUBLE_BIT_ECC);
    assert_rc(nvmlEventSetWait_v2(set, &data, 0), TIMEOUT);
    assert_rc(nvmlEventSetFree(set), SUCCESS);
    assert_rc(nvmlEventSetWait_v2(set, &data, 0), INVALID_ARGUMENT);
}

static void test_a_wait_lasts_until_the_event_or_the_timeout(void **state)
{
    (void)state;
    struct nvml_event_data data;
    stage_play("gpus: [{board: T4}]\nevents: [{at: 3, xid: 13}]\n");
    struct nvml_event_set *set = set_with(0, NVML_EVENT_XID_CRITICAL);
    assert_rc(nvmlEventSetWait_v2(set, &data, 1000), TIMEOUT);
    assert_double_near(stage_slept_s(), 1, 0.01);
    memset(&data, 0x5a, sizeof(data));
    assert_rc(nvmlEventSetWait(set, &data, 5000), SUCCESS);
    assert_double_near(stage_slept_s(), 3, 0.02);
    assert_int_equal(data.data, 13);
    assert_int_equal(data.gpu_instance_id, 0x5a5a5a5a); /* the old call writes 24 bytes */
    assert_rc(nvmlEventSetFree(set), SUCCESS);
}

static void test_a_lost_gpu_ends_every_wait_at_once(void **state)
{
    (void)state;
    struct nvml_event_data data;
    stage_play("gpus: [{board: T4, count: 2}]\nfaults: [{fault: lost, gpu: 1, from: 1}]\n");
    struct nvml_event_set *set = set_with(1, NVML_EVENT_XID_CRITICAL);
    stage_advance(1);
    for (int i = 0; i < 3; i++)
        assert_rc(nvmlEventSetWait_v2(set, &data, 60000), GPU_IS_LOST);
    assert_double_same(stage_slept_s(), 0);
    assert_rc(nvmlEventSetFree(set), SUCCESS);
}

static void test_registration_is_all_or_nothing(void **state)
{
    (void)state;
    struct nvml_event_set *set = NULL;
    stage_play(divided);
    assert_rc(nvmlEventSetCreate(&set), SUCCESS);
    assert_rc(nvmlDeviceRegisterEvents(stage_gpu(0), NVML_EVENT_XID_CRITICAL | (1 << 30), set), NOT_SUPPORTED);
    assert_rc(nvmlDeviceRegisterEvents(stage_mig(0, 0), NVML_EVENT_XID_CRITICAL, set), INVALID_ARGUMENT);
    assert_rc(nvmlDeviceRegisterEvents(stage_gpu(0), NVML_EVENT_XID_CRITICAL, NULL), INVALID_ARGUMENT);
    assert_rc(nvmlEventSetFree(set), SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mig_devices_are_sparse),
        cmocka_unit_test(test_a_mig_device_knows_who_it_is),
        cmocka_unit_test(test_mig_hides_what_nvml_does_not_know),
        cmocka_unit_test(test_memory_belongs_to_the_gpu_instance),
        cmocka_unit_test(test_a_destroyed_instance_is_not_found),
        cmocka_unit_test(test_process_lists_say_how_much_room_they_need),
        cmocka_unit_test(test_the_oldest_process_list_has_short_elements),
        cmocka_unit_test(test_r535_43_writes_long_elements_from_v3),
        cmocka_unit_test(test_processes_of_instances_have_their_ids),
        cmocka_unit_test(test_process_utilization_is_what_is_new),
        cmocka_unit_test(test_a_mig_mode_may_wait_for_a_reset),
        cmocka_unit_test(test_a_hidden_process_is_sampled_and_not_listed),
        cmocka_unit_test(test_processes_that_come_and_go_add_up_to_the_gpu),
        cmocka_unit_test(test_gpm_metrics_are_means_between_two_samples),
        cmocka_unit_test(test_gpm_samples_must_be_100_ms_apart),
        cmocka_unit_test(test_gpm_of_instances_goes_by_gpu_instance),
        cmocka_unit_test(test_events_come_one_a_wait_and_in_order),
        cmocka_unit_test(test_a_wait_lasts_until_the_event_or_the_timeout),
        cmocka_unit_test(test_a_lost_gpu_ends_every_wait_at_once),
        cmocka_unit_test(test_registration_is_all_or_nothing),
    };
    return cmocka_run_group_tests(tests, stage_setup, stage_teardown);
}
