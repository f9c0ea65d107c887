/* gpu on the simulated NVML: whole scenarios, with the process's clock in the test's hand, so that minutes pass at
 * once. The program's own clock_gettime and nanosleep come before libc's for the simulation, too. */
#include "gpu/core.h"

#include "support.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ns = 100000 * NS_PER_S;

__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *ret)
{
    (void)id;
    *ret = (struct timespec){.tv_sec = (time_t)(now_ns / NS_PER_S), .tv_nsec = (long)(now_ns % NS_PER_S)};
    return 0;
}

__attribute__((visibility("default"))) int nanosleep(const struct timespec *time, struct timespec *ret_rest)
{
    (void)ret_rest;
    now_ns += (int64_t)time->tv_sec * NS_PER_S + time->tv_nsec;
    return 0;
}

struct stage {
    struct gpu_shared shared;
    struct gpu_core *core;
    struct snapshot *latest;
    int64_t start_ns;
};

static const char *library(void)
{
    static char path[PATH_MAX + 64];
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    assert_true(len > 0);
    self[len] = '\0';
    char *up = strstr(self, "/test/unit/gpu/");
    assert_non_null(up);
    *up = '\0';
    (void)snprintf(path, sizeof(path), "%s/nvmlsim/libnvidia-ml.so.1", self);
    return path;
}

static void stage_open(struct stage *s, const char *scenario)
{
    *s = (struct stage){.start_ns = now_ns};
    assert_int_equal(setenv("NVMLSIM_SCENARIO", scenario, 1), 0);
    s->core = gpu_core_new(&(struct gpu_config){.library_path = library()}, &s->shared, time_mono_ns);
}

/* A scenario of nvmlsim/scenarios. */
static void stage_init(struct stage *s, const char *name)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/../nvmlsim/scenarios/%s.yaml", getenv("TEST_DATA"), name);
    stage_open(s, path);
}

/* Also after a failed assertion: the simulation goes on with the old scenario while somebody has it open. */
static int stage_fini(void **state)
{
    struct stage *s = *state;
    snapshot_unref(s->latest);
    gpu_core_free(s->core);
    *s = (struct stage){0};
    return 0;
}

static void cycle(struct stage *s)
{
    gpu_core_cycle(s->core);
    snapshot_unref(s->latest);
    s->latest = gpu_core_publish(s->core);
    now_ns += NS_PER_S;
}

/* Cycles until this many seconds after the start of the scenario. */
static void play_until(struct stage *s, int64_t seconds)
{
    while (now_ns <= s->start_ns + seconds * NS_PER_S)
        cycle(s);
}

static const struct snapshot_device *nth(const struct stage *s, size_t i)
{
    assert_true(i < s->latest->n_devices);
    return &s->latest->devices[i];
}

enum { HAS_GPM = 1, HAS_HBM = 2, HAS_NVLINK = 4 };

static const struct {
    const char *product;
    double total_gib;
    int has;
} boards[] = {
    {"T4", 15, 0},
    {"A10", 22, 0},
    {"A100", 40, HAS_HBM | HAS_NVLINK},
    {"A100", 80, HAS_HBM | HAS_NVLINK},
    {"L40S", 45, 0},
    {"H100", 80, HAS_GPM | HAS_HBM | HAS_NVLINK},
    {"H200", 140, HAS_GPM | HAS_HBM | HAS_NVLINK},
    {"B200", 179, HAS_GPM | HAS_HBM | HAS_NVLINK},
    {"GH200", 95, HAS_GPM | HAS_HBM | HAS_NVLINK},
    {"GB200", 185, HAS_GPM | HAS_HBM | HAS_NVLINK},
};

static void check_has(const struct snapshot_device *d, enum snapshot_field field, bool has)
{
    enum snapshot_status want = has ? SNAPSHOT_OK : SNAPSHOT_UNSUPPORTED;
    if (d->readings[field].status != want)
        fail_msg("%s: %s is %d, want %d", d->product, snapshot_field_name(field), (int)d->readings[field].status,
                 (int)want);
}

static void test_each_board_gives_what_it_has_and_nothing_else(void **state)
{
    struct stage *s = *state;
    stage_init(s, "boards");
    play_until(s, 15);
    assert_int_equal(s->latest->driver, SNAPSHOT_DRIVER_OK);
    assert_int_equal(s->latest->n_devices, ARRAY_LEN(boards));
    assert_int_equal(s->latest->sampler.errors, 0);
    assert_true(s->latest->is_simulated);
    for (size_t i = 0; i < ARRAY_LEN(boards); i++) {
        const struct snapshot_device *d = nth(s, i);
        const struct snapshot_reading *r = d->readings;
        assert_non_null(strstr(d->product, boards[i].product));
        assert_double_near(r[SNAPSHOT_UTILIZATION].value, 50, 0.5);
        assert_double_near(r[SNAPSHOT_MEMORY_TOTAL].value / (1 << 30), boards[i].total_gib, boards[i].total_gib * 0.06);
        double usable = r[SNAPSHOT_MEMORY_TOTAL].value - r[SNAPSHOT_MEMORY_RESERVED].value;
        assert_double_near(r[SNAPSHOT_MEMORY_USED].value / usable, 0.5, 0.001);
        assert_double_near(r[SNAPSHOT_MEMORY_USED].value + r[SNAPSHOT_MEMORY_FREE].value, usable, 1);
        assert_true(r[SNAPSHOT_MEMORY_RESERVED].value > 100 << 20);
        assert_true(r[SNAPSHOT_POWER].value > 10 && r[SNAPSHOT_POWER].value <= r[SNAPSHOT_POWER_LIMIT].value);
        assert_true(r[SNAPSHOT_TEMPERATURE].value > 20 && r[SNAPSHOT_TEMPERATURE].value < 95);
        assert_true(r[SNAPSHOT_SM_CLOCK].value > 2e8 && r[SNAPSHOT_SM_CLOCK].value < 4e9);
        check_has(d, SNAPSHOT_SM_ACTIVITY, boards[i].has & HAS_GPM);
        check_has(d, SNAPSHOT_DRAM_ACTIVITY, boards[i].has & HAS_GPM);
        check_has(d, SNAPSHOT_MEMORY_TEMPERATURE, boards[i].has & HAS_HBM);
        check_has(d, SNAPSHOT_NVLINK_TX, boards[i].has & HAS_NVLINK);
    }
}

static void test_energy_is_power_over_time(void **state)
{
    struct stage *s = *state;
    stage_init(s, "boards");
    cycle(s);
    double before = nth(s, 0)->readings[SNAPSHOT_ENERGY].value;
    double power = nth(s, 0)->readings[SNAPSHOT_POWER].value;
    int64_t before_ns = nth(s, 0)->readings[SNAPSHOT_ENERGY].taken_ns;
    for (int i = 0; i < 20; i++)
        cycle(s);
    double seconds = (double)(nth(s, 0)->readings[SNAPSHOT_ENERGY].taken_ns - before_ns) / (double)NS_PER_S;
    assert_double_near(nth(s, 0)->readings[SNAPSHOT_ENERGY].value - before, power * seconds, power * seconds * 0.05);
}

static void test_a_mig_layout_is_shown_and_followed(void **state)
{
    struct stage *s = *state;
    stage_init(s, "mig");
    play_until(s, 5);
    assert_int_equal(s->latest->n_devices, 6);
    assert_int_equal(nth(s, 0)->kind, SNAPSHOT_MIG_PARENT);
    assert_int_equal(nth(s, 5)->kind, SNAPSHOT_GPU);
    const struct snapshot_device *small = nth(s, 4);
    assert_string_equal(small->mig_profile, "1g.10gb");
    assert_double_near(small->readings[SNAPSHOT_SM_ACTIVITY].value, 80, 0.5);
    assert_double_near(small->readings[SNAPSHOT_TENSOR_ACTIVITY].value, 55, 0.5);
    assert_int_equal(small->readings[SNAPSHOT_UTILIZATION].status, SNAPSHOT_UNSUPPORTED);
    assert_double_near(nth(s, 3)->readings[SNAPSHOT_MEMORY_USED].value, 9000.0 * 1048576, 1048576);
    /* two compute instances of one GPU instance: no activity of their own, the memory that they share */
    assert_string_equal(nth(s, 1)->mig_profile, "2c.3g.40gb");
    assert_int_equal(nth(s, 1)->readings[SNAPSHOT_SM_ACTIVITY].status, SNAPSHOT_UNSUPPORTED);
    assert_double_near(nth(s, 1)->readings[SNAPSHOT_MEMORY_USED].value, 21000.0 * 1048576, 1048576);
    play_until(s, 64);
    assert_int_equal(s->latest->n_devices, 9);
    for (size_t i = 1; i <= 7; i++) {
        assert_string_equal(nth(s, i)->mig_profile, "1g.10gb");
        assert_double_near(nth(s, i)->readings[SNAPSHOT_MEMORY_USED].value, 4000.0 * 1048576, 1048576);
    }
}

static void test_what_goes_wrong_in_practice_is_survived(void **state)
{
    struct stage *s = *state;
    stage_init(s, "faults");
    play_until(s, 8);
    assert_int_equal(nth(s, 2)->n_xids, 1);
    assert_int_equal(nth(s, 2)->xids[0].xid, 43);
    play_until(s, 14);
    assert_true(nth(s, 1)->is_lost);
    assert_false(nth(s, 0)->is_lost);
    assert_double_near(nth(s, 1)->readings[SNAPSHOT_UTILIZATION].value, 65, 0.5); /* stays, and ages */
    play_until(s, 29); /* each utilisation call takes 300 ms */
    assert_int_equal(s->latest->driver, SNAPSHOT_DRIVER_OK);
    assert_true(s->latest->sampler.last_cycle_seconds < 2);
    assert_double_same(nth(s, 3)->readings[SNAPSHOT_RECOVERY_ACTION].value, 1);
    assert_double_same(nth(s, 3)->readings[SNAPSHOT_ECC_UNCORRECTED].value, 1);
    play_until(s, 59); /* a call that hung for ten seconds */
    assert_true(s->latest->sampler.max_cycle_seconds > 5);
    assert_int_equal(s->latest->driver, SNAPSHOT_DRIVER_OK);
    play_until(s, 63);
    assert_int_equal(s->latest->driver, SNAPSHOT_DRIVER_NOT_LOADED);
    assert_int_equal(s->latest->n_devices, 4);
    play_until(s, 84);
    assert_true(s->latest->driver != SNAPSHOT_DRIVER_OK);
    play_until(s, 130);
    assert_int_equal(s->latest->driver, SNAPSHOT_DRIVER_OK);
    assert_false(nth(s, 1)->is_lost);
    assert_int_equal(nth(s, 0)->readings[SNAPSHOT_UTILIZATION].status, SNAPSHOT_OK);
    assert_null(atomic_load(&s->shared.restart_reason));
}

static void write_scenario(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* A scenario file of this text, under a name that stays until the next one. */
static const char *scenario_of(const char *text)
{
    static char path[] = "/tmp/gpu-scenario-XXXXXX";
    memcpy(path + sizeof(path) - 7, "XXXXXX", 6);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    (void)close(fd);
    write_scenario(path, text);
    return path;
}

/* ---- processes ---- */

/* Percent of all processes of a device together, as they are in the newest snapshot. */
static double sum_of_processes(const struct stage *s, size_t gpu)
{
    size_t n;
    double sum = 0;
    const struct snapshot_process *list = snapshot_processes_of(s->latest, nth(s, gpu), &n);
    for (size_t i = 0; i < n; i++) {
        assert_true(list[i].has_utilization);
        sum += list[i].utilization;
    }
    return sum;
}

static const struct snapshot_process *process(const struct stage *s, size_t device, uint32_t pid)
{
    size_t n;
    const struct snapshot_process *list = snapshot_processes_of(s->latest, nth(s, device), &n);
    for (size_t i = 0; i < n; i++)
        if (list[i].pid == pid)
            return &list[i];
    return NULL;
}

/* The driver gives the GPU's load of now and the processes' mean of the last second: within a second of a step they
 * differ, over time they do not. */
static void test_the_processes_of_a_shared_gpu_add_up_to_it(void **state)
{
    struct stage *s = *state;
    stage_init(s, "shared");
    s->core->config.has_processes = true;
    double of_gpu[2] = {0}, of_processes[2] = {0};
    for (int second = 0; second < 119; second++) {
        cycle(s);
        bool is_step = second == 30 || second == 60 || second == 75 || second == 90;
        for (size_t gpu = 0; gpu < 2; gpu++) {
            double device = nth(s, gpu)->readings[SNAPSHOT_UTILIZATION].value, sum = sum_of_processes(s, gpu);
            of_gpu[gpu] += device;
            of_processes[gpu] += sum;
            if (gpu == 1 || !is_step)
                assert_double_near(sum, device, 2);
        }
    }
    for (size_t gpu = 0; gpu < 2; gpu++)
        assert_double_near(of_processes[gpu] / of_gpu[gpu], 1, 0.02);
    assert_null(process(s, 0, 43003)); /* it has ended */
    assert_true(process(s, 0, 43001)->has_memory);
    assert_int_equal(process(s, 0, 43001)->memory_bytes, (uint64_t)20000 << 20);
    assert_double_same(process(s, 1, 43010)->utilization, 0); /* the MPS server */
    assert_int_equal(s->latest->sampler.errors, 0);
}

static void test_a_process_that_comes_is_seen_at_once_with_what_it_uses(void **state)
{
    struct stage *s = *state;
    const char *path = scenario_of("gpus: [{board: A10, utilization: 70, processes: [{pid: 1, sm: 40},"
                                   "{pid: 2, sm: 30, memory_mib: 12000, from: 30, until: 75}]}]\n");
    stage_open(s, path);
    s->core->config.has_processes = true;
    play_until(s, 29);
    assert_null(process(s, 0, 2));
    play_until(s, 31);
    assert_non_null(process(s, 0, 2));
    assert_double_near(process(s, 0, 2)->utilization, 30, 0.5);
    play_until(s, 36);
    assert_int_equal(process(s, 0, 2)->memory_bytes, (uint64_t)12000 << 20);
    play_until(s, 81);
    assert_null(process(s, 0, 2));
    assert_non_null(process(s, 0, 1));
    (void)unlink(path);
}

static void test_an_idle_gpu_that_wakes_up_is_not_averaged_with_its_sleep(void **state)
{
    struct stage *s = *state;
    const char *path = scenario_of("gpus: [{board: A10, utilization: {step: [[0, 0], [60, 90]]}, processes: ["
                                   "{pid: 7, memory_mib: 100, sm: {step: [[0, 0], [60, 90]]}}]}]\n");
    stage_open(s, path);
    s->core->config.has_processes = true;
    play_until(s, 60);
    assert_double_same(process(s, 0, 7)->utilization, 0);
    play_until(s, 61);
    assert_double_near(process(s, 0, 7)->utilization, 90, 0.5);
    (void)unlink(path);
}

/* Of drivers with the 32-byte fault too, where pids and memory would shuffle. */
static void test_processes_are_right_with_every_generation_of_drivers(void **state)
{
    struct stage *s = *state;
    static const char *const drivers[] = {"470.256.02", "535.54.03", "535.86.10", "570.172.08", "610.57.04"};
    for (size_t i = 0; i < ARRAY_LEN(drivers); i++) {
        BUF_AUTO struct buf text;
        buf_init(&text, 1 << 20);
        (void)buf_printf(&text, "driver: '%s'\ngpus: [{board: A100-40, processes: [", drivers[i]);
        for (int pid = 1; pid <= 100; pid++)
            (void)buf_printf(&text, "{pid: %d, memory_mib: %d}, ", pid, 10 * pid);
        (void)buf_printf(&text, "{pid: 500, hidden: true, sm: 30}]}]\n");
        const char *path = scenario_of(buf_cstr(&text));
        stage_open(s, path);
        s->core->config.has_processes = true;
        cycle(s);
        cycle(s);
        assert_int_equal(s->latest->n_processes, 101);
        for (uint32_t pid = 1; pid <= 100; pid++) {
            const struct snapshot_process *listed = process(s, 0, pid);
            assert_true(listed && listed->memory_bytes == (uint64_t)10 * pid << 20);
        }
        const struct snapshot_process *hidden = process(s, 0, 500);
        assert_true(hidden && !hidden->has_memory);
        assert_double_near(hidden ? hidden->utilization : -1, 30, 0.5);
        (void)unlink(path);
        (void)stage_fini(state);
    }
}

static void test_processes_of_a_divided_gpu_are_those_of_its_instances(void **state)
{
    struct stage *s = *state;
    stage_init(s, "mig");
    s->core->config.has_processes = true;
    play_until(s, 5);
    size_t n_seen = 0;
    for (size_t i = 0; i < s->latest->n_devices; i++) {
        const struct snapshot_device *d = nth(s, i);
        size_t n;
        (void)snapshot_processes_of(s->latest, d, &n);
        n_seen += n;
        bool is_parent = d->kind == SNAPSHOT_MIG_PARENT;
        assert_int_equal(d->process_list.status, is_parent ? SNAPSHOT_UNSUPPORTED : SNAPSHOT_OK);
        assert_int_equal(d->process_utilization.status, d->kind == SNAPSHOT_GPU ? SNAPSHOT_OK : SNAPSHOT_UNSUPPORTED);
        if (is_parent)
            assert_int_equal(n, 0);
    }
    assert_int_equal(n_seen, s->latest->n_processes);
    assert_int_equal(s->latest->sampler.errors, 0);
    for (uint32_t i = 0; i < 4; i++)
        assert_non_null(process(s, 1 + i, 42001 + i));
    assert_int_equal(process(s, 1, 42001)->memory_bytes, (uint64_t)15000 << 20);
    assert_double_near(process(s, 5, 42010)->utilization + process(s, 5, 42011)->utilization, 70, 0.5);
}

/* Counters are those of the moment of their slow turn. */
static void test_counters_of_links_and_held_down_clocks_are_those_of_the_scenario(void **state)
{
    struct stage *s = *state;
    const char *path = scenario_of("gpus:\n"
                                   "  - {board: H100, nvlink_tx_kibps: 3000, nvlink_rx_kibps: 1000}\n"
                                   "  - {board: B200, nvlink_tx_kibps: 3000, nvlink_rx_kibps: 1000}\n"
                                   "  - {board: T4, throttle: [sw_power_cap, hw_thermal_slowdown]}\n");
    stage_open(s, path);
    play_until(s, 35);
    for (size_t gpu = 0; gpu < 2; gpu++) {
        const struct snapshot_reading *bytes = &nth(s, gpu)->readings[SNAPSHOT_NVLINK_BYTES];
        double seconds = (double)(bytes->taken_ns - s->start_ns) / (double)NS_PER_S;
        assert_true(seconds > 10);
        assert_double_near(bytes->value, 4000 * 1024 * seconds, 8192);
    }
    const struct snapshot_reading *t4 = nth(s, 2)->readings;
    double seconds = (double)(t4[SNAPSHOT_VIOLATION_POWER].taken_ns - s->start_ns) / (double)NS_PER_S;
    assert_int_equal(t4[SNAPSHOT_NVLINK_BYTES].status, SNAPSHOT_UNSUPPORTED);
    assert_true(seconds > 10);
    assert_double_near(t4[SNAPSHOT_VIOLATION_POWER].value, seconds, 0.01);
    assert_double_near(t4[SNAPSHOT_VIOLATION_THERMAL].value, seconds, 0.01);
    assert_int_equal(t4[SNAPSHOT_VIOLATION_SYNC_BOOST].status, SNAPSHOT_OK);
    assert_double_same(t4[SNAPSHOT_VIOLATION_SYNC_BOOST].value, 0);
    (void)unlink(path);
}

static void test_what_processes_cost_on_eight_gpus_has_a_ceiling(void **state)
{
    struct stage *s = *state;
    const char *path = scenario_of("gpus: [{board: H100, count: 8, utilization: 50, processes: [{pid: 7, sm: 50}]}]\n");
    uint64_t calls[2];
    for (int has_processes = 0; has_processes < 2; has_processes++) {
        stage_open(s, path);
        s->core->config.has_processes = has_processes;
        for (int i = 0; i < 12; i++)
            cycle(s);
        uint64_t before = s->latest->sampler.nvml_calls;
        for (int i = 0; i < 10; i++)
            cycle(s);
        calls[has_processes] = s->latest->sampler.nvml_calls - before;
        (void)stage_fini(state);
    }
    /* in ten seconds: one call each for what processes use, two rounds of three lists */
    assert_int_equal(calls[1] - calls[0], 8 * (10 + 2 * 3));
    (void)unlink(path);
}

static void test_a_rewritten_scenario_is_followed(void **state)
{
    struct stage *s = *state;
    const char *path = scenario_of("gpus: [{board: H100, utilization: 20}]\n");
    stage_open(s, path);
    cycle(s);
    cycle(s);
    assert_double_near(nth(s, 0)->readings[SNAPSHOT_UTILIZATION].value, 20, 0.5);
    write_scenario(path, "gpus: [{board: H100, utilization: 90}, {board: H100, utilization: 10}]\n");
    for (int i = 0; i < 3; i++)
        cycle(s);
    assert_int_equal(s->latest->n_devices, 2);
    assert_double_near(nth(s, 0)->readings[SNAPSHOT_UTILIZATION].value, 90, 0.5);
    (void)unlink(path);
}

static void test_what_a_cycle_costs_on_eight_gpus_has_a_ceiling(void **state)
{
    struct stage *s = *state;
    const char *path = scenario_of("gpus: [{board: H100, count: 8, utilization: 50}]\n");
    stage_open(s, path);
    for (int i = 0; i < 12; i++)
        cycle(s);
    uint64_t before = s->latest->sampler.nvml_calls;
    for (int i = 0; i < 10; i++)
        cycle(s);
    uint64_t per_gpu_and_cycle = (s->latest->sampler.nvml_calls - before) / 80;
    print_message("%u calls per GPU and cycle\n", (unsigned)per_gpu_and_cycle);
    assert_in_range(per_gpu_and_cycle, 8, 16);
    assert_double_near(s->latest->sampler.max_cycle_seconds, 0, 0.001); /* nothing waited: the clock stood still */
    (void)unlink(path);
}

int main(void)
{
    static struct stage stage;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate_setup_teardown(test_each_board_gives_what_it_has_and_nothing_else, NULL, stage_fini,
                                                 &stage),
        cmocka_unit_test_prestate_setup_teardown(test_energy_is_power_over_time, NULL, stage_fini, &stage),
        cmocka_unit_test_prestate_setup_teardown(test_a_mig_layout_is_shown_and_followed, NULL, stage_fini, &stage),
        cmocka_unit_test_prestate_setup_teardown(test_what_goes_wrong_in_practice_is_survived, NULL, stage_fini,
                                                 &stage),
        cmocka_unit_test_prestate_setup_teardown(test_a_rewritten_scenario_is_followed, NULL, stage_fini, &stage),
        cmocka_unit_test_prestate_setup_teardown(test_what_a_cycle_costs_on_eight_gpus_has_a_ceiling, NULL, stage_fini,
                                                 &stage),
        cmocka_unit_test_prestate_setup_teardown(test_the_processes_of_a_shared_gpu_add_up_to_it, NULL, stage_fini,
                                                 &stage),
        cmocka_unit_test_prestate_setup_teardown(test_a_process_that_comes_is_seen_at_once_with_what_it_uses, NULL,
                                                 stage_fini, &stage),
        cmocka_unit_test_prestate_setup_teardown(test_an_idle_gpu_that_wakes_up_is_not_averaged_with_its_sleep, NULL,
                                                 stage_fini, &stage),
        cmocka_unit_test_prestate_setup_teardown(test_processes_are_right_with_every_generation_of_drivers, NULL,
                                                 stage_fini, &stage),
        cmocka_unit_test_prestate_setup_teardown(test_processes_of_a_divided_gpu_are_those_of_its_instances, NULL,
                                                 stage_fini, &stage),
        cmocka_unit_test_prestate_setup_teardown(test_what_processes_cost_on_eight_gpus_has_a_ceiling, NULL, stage_fini,
                                                 &stage),
        cmocka_unit_test_prestate_setup_teardown(test_counters_of_links_and_held_down_clocks_are_those_of_the_scenario,
                                                 NULL, stage_fini, &stage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
