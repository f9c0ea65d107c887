/* gpu: which processes there are and what each uses: lists, samples, MIG, and what is not known. */
#include "gpu/bench.h"

enum { COMPUTE = NVML_PROCESS_COMPUTE, GRAPHICS = NVML_PROCESS_GRAPHICS, MPS = NVML_PROCESS_MPS };
#define MIB (UINT64_C(1) << 20)

static void init(struct bench *b, uint32_t n_gpus)
{
    bench_init(b, n_gpus);
    b->core->config.has_processes = true;
}

static void add_to(struct bench *b, int gpu, struct fake_process process)
{
    struct fake_gpu *g = &b->nvml.gpus[gpu];
    assert_true(g->n_processes < FAKE_PROCESSES);
    g->processes[g->n_processes++] = process;
}

/* Outside MIG. */
static void add(struct bench *b, int gpu, int list, uint32_t pid, uint64_t bytes)
{
    add_to(b, gpu, (struct fake_process){list, pid, bytes, NVML_NONE_U32, NVML_NONE_U32});
}

/* The driver's answer about the coming cycle: stamped just before it. */
static void sample(struct bench *b, int gpu, uint32_t pid, uint32_t percent)
{
    struct fake_gpu *g = &b->nvml.gpus[gpu];
    assert_true(g->n_samples < FAKE_PROCESSES);
    g->samples[g->n_samples++] =
        (struct nvml_process_utilization){.pid = pid, .time_us = (uint64_t)(bench_wall() / 1000) - 1000, .sm = percent};
}

static const struct snapshot_process *find(const struct bench *b, const struct snapshot_device *d, uint32_t pid)
{
    size_t n;
    const struct snapshot_process *list = snapshot_processes_of(b->latest, d, &n);
    for (size_t i = 0; i < n; i++)
        if (list[i].pid == pid)
            return &list[i];
    return NULL;
}

static const struct snapshot_process *process(const struct bench *b, int gpu, uint32_t pid)
{
    const struct snapshot_process *p = find(b, bench_gpu(b, gpu), pid);
    assert_non_null(p);
    return p;
}

static size_t count(const struct bench *b, int gpu)
{
    size_t n;
    (void)snapshot_processes_of(b->latest, bench_gpu(b, gpu), &n);
    return n;
}

static void test_processes_are_not_read_unless_asked_for(void **state)
{
    (void)state;
    BENCH b;
    bench_init(&b, 1);
    add(&b, 0, COMPUTE, 100, 5 * MIB);
    bench_cycles(&b, 12);
    assert_int_equal(b.latest->n_processes, 0);
    assert_int_equal(bench_gpu(&b, 0)->process_list.status, SNAPSHOT_NOT_READ);
    assert_int_equal(bench_gpu(&b, 0)->process_utilization.status, SNAPSHOT_NOT_READ);
    assert_int_equal(b.nvml.gpus[0].list_calls, 0);
    assert_int_equal(b.nvml.gpus[0].utilization_calls, 0);
}

static void test_a_process_in_several_lists_is_one_and_its_memory_counts_once(void **state)
{
    (void)state;
    BENCH b;
    init(&b, 1);
    add(&b, 0, COMPUTE, 300, 5 * MIB);
    add(&b, 0, COMPUTE, 100, 7 * MIB);
    add(&b, 0, GRAPHICS, 100, 7 * MIB);
    add(&b, 0, GRAPHICS, 200, 1 * MIB);
    add(&b, 0, MPS, 400, 2 * MIB);
    add(&b, 0, COMPUTE, 500, NVML_NONE_U64); /* the driver does not know */
    add(&b, 0, GRAPHICS, 500, 4 * MIB);
    add(&b, 0, COMPUTE, 600, NVML_NONE_U64);
    add(&b, 0, COMPUTE, 700, (uint64_t)81 << 30); /* more than there is */
    add(&b, 0, COMPUTE, 800, 0);
    add(&b, 0, COMPUTE, 0, 9 * MIB); /* no process */
    bench_cycle(&b);
    static const struct {
        uint32_t pid;
        bool has_memory;
        uint64_t mib;
    } want[] = {{100, true, 7}, {200, true, 1},  {300, true, 5},  {400, true, 2},
                {500, true, 4}, {600, false, 0}, {700, false, 0}, {800, true, 0}};
    size_t n;
    const struct snapshot_process *list = snapshot_processes_of(b.latest, bench_gpu(&b, 0), &n);
    assert_int_equal(n, ARRAY_LEN(want));
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(list[i].pid, want[i].pid);
        assert_int_equal(list[i].has_memory, want[i].has_memory);
        assert_int_equal(list[i].memory_bytes, want[i].mib * MIB);
    }
    assert_int_equal(bench_gpu(&b, 0)->process_list.status, SNAPSHOT_OK);
    assert_int_equal(bench_gpu(&b, 0)->process_list.taken_ns, b.latest->taken_ns);
}

static void test_lists_are_read_every_five_seconds_and_usage_each_cycle(void **state)
{
    (void)state;
    BENCH b;
    init(&b, 1);
    add(&b, 0, COMPUTE, 100, MIB);
    bench_cycle(&b);
    b.nvml.gpus[0].list_calls = b.nvml.gpus[0].utilization_calls = 0;
    bench_cycles(&b, 10);
    assert_int_equal(b.nvml.gpus[0].list_calls, 2 * 3);
    assert_int_equal(b.nvml.gpus[0].utilization_calls, 10);
}

static void test_the_lists_of_different_gpus_fall_into_different_cycles(void **state)
{
    (void)state;
    BENCH b;
    init(&b, 5);
    bench_cycles(&b, 6); /* all at first, then each in its turn */
    for (int cycle = 0; cycle < 5; cycle++) {
        unsigned before = 0, after = 0;
        for (int i = 0; i < 5; i++)
            before += b.nvml.gpus[i].list_calls;
        bench_cycle(&b);
        for (int i = 0; i < 5; i++)
            after += b.nvml.gpus[i].list_calls;
        assert_int_equal(after - before, 3);
    }
}

static void test_a_process_without_a_sample_did_nothing(void **state)
{
    (void)state;
    BENCH b;
    init(&b, 1);
    add(&b, 0, COMPUTE, 100, MIB);
    add(&b, 0, COMPUTE, 200, MIB);
    sample(&b, 0, 100, 60);
    bench_cycle(&b);
    assert_true(process(&b, 0, 100)->has_utilization);
    assert_double_same(process(&b, 0, 100)->utilization, 60);
    assert_true(process(&b, 0, 200)->has_utilization);
    assert_double_same(process(&b, 0, 200)->utilization, 0);
    bench_cycle(&b); /* no sample since: NOT_FOUND */
    assert_double_same(process(&b, 0, 100)->utilization, 0);
    assert_true(process(&b, 0, 100)->has_utilization);
    assert_int_equal(bench_gpu(&b, 0)->process_utilization.status, SNAPSHOT_OK);
    assert_int_equal(bench_gpu(&b, 0)->process_utilization.taken_ns, b.latest->taken_ns);
    assert_int_equal(b.latest->sampler.errors, 0);
}

/* Cycles of 200 ms, samples every 600 ms: without a new one nothing is new. */
static void test_between_samples_what_is_known_stands_for_a_second(void **state)
{
    (void)state;
    BENCH b;
    init(&b, 1);
    b.core->config.period_ns = 200 * NS_PER_MS;
    add(&b, 0, COMPUTE, 100, MIB);
    int64_t taken_ns = 0;
    for (int i = 0; i < 12; i++) {
        if (i % 3 == 0)
            sample(&b, 0, 100, 60 + (uint32_t)i);
        int64_t began_ns = bench_now_ns;
        bench_cycle(&b);
        bench_now_ns = began_ns + 200 * NS_PER_MS;
        taken_ns = i % 3 == 0 ? began_ns : taken_ns;
        assert_true(process(&b, 0, 100)->has_utilization);
        assert_double_same(process(&b, 0, 100)->utilization, 60 + i / 3 * 3);
        assert_int_equal(bench_gpu(&b, 0)->process_utilization.taken_ns, taken_ns);
    }
    bench_now_ns += NS_PER_S;
    bench_cycle(&b);
    assert_double_same(process(&b, 0, 100)->utilization, 0);
}

static void test_usage_is_kept_when_the_list_is_read_again(void **state)
{
    (void)state;
    BENCH b;
    init(&b, 1);
    add(&b, 0, COMPUTE, 100, MIB);
    for (int i = 0; i < 6; i++) {
        sample(&b, 0, 100, 30);
        if (i == 3)
            bench_rule(&b, "nvmlDeviceGetProcessUtilization", 0, NVML_RC_TIMEOUT);
        bench_cycle(&b);
    }
    assert_int_equal(bench_gpu(&b, 0)->process_utilization.status, SNAPSHOT_FAILED);
    assert_int_equal(bench_gpu(&b, 0)->process_utilization.taken_ns, b.latest->taken_ns - 3 * NS_PER_S);
    assert_true(process(&b, 0, 100)->has_utilization);
    assert_double_same(process(&b, 0, 100)->utilization, 30);
    add(&b, 0, COMPUTE, 200, MIB); /* comes while nothing is measured: not known, not idle */
    bench_cycles(&b, 5);
    assert_false(process(&b, 0, 200)->has_utilization);
    assert_false(process(&b, 0, 100)->has_utilization); /* too old by now */
}

static void test_only_what_is_newer_than_the_newest_sample_is_asked_for(void **state)
{
    (void)state;
    BENCH b;
    init(&b, 1);
    add(&b, 0, COMPUTE, 100, MIB);
    const struct fake_gpu *g = &b.nvml.gpus[0];
    bench_cycle(&b); /* the first look: not the whole ring, which is ten seconds, but the last cycle */
    assert_int_equal(g->asked_since_us, bench_wall() / 1000 - 2000000);
    bench_cycle(&b); /* nothing was there by then */
    assert_int_equal(g->asked_since_us, bench_wall() / 1000 - 2000000);
    sample(&b, 0, 100, 10);
    bench_cycle(&b);
    bench_cycle(&b);
    assert_int_equal(g->asked_since_us, g->samples[0].time_us);
}

static void test_a_wall_clock_that_is_set_hides_nothing(void **state)
{
    (void)state;
    static const int64_t jumps_s[] = {-3600, 3600, -2, 2};
    BENCH b;
    init(&b, 1);
    add(&b, 0, COMPUTE, 100, MIB);
    for (size_t i = 0; i < ARRAY_LEN(jumps_s); i++) {
        b.nvml.gpus[0].n_samples = 0;
        sample(&b, 0, 100, 40);
        bench_cycle(&b);
        assert_double_same(process(&b, 0, 100)->utilization, 40);
        bench_wall_offset_ns += jumps_s[i] * NS_PER_S;
        b.nvml.gpus[0].n_samples = 0;
        sample(&b, 0, 100, 70);
        bench_cycle(&b);
        assert_double_same(process(&b, 0, 100)->utilization, 70);
    }
}

static void test_a_sample_from_the_future_hides_nothing(void **state)
{
    (void)state;
    BENCH b;
    init(&b, 1);
    add(&b, 0, COMPUTE, 100, MIB);
    sample(&b, 0, 100, 40);
    b.nvml.gpus[0].samples[0].time_us += 3600000000;
    bench_cycle(&b);
    b.nvml.gpus[0].n_samples = 0;
    sample(&b, 0, 100, 70);
    bench_cycle(&b);
    assert_double_same(process(&b, 0, 100)->utilization, 70);
}

static void test_a_process_that_only_has_samples_is_there_as_long_as_it_has_some(void **state)
{
    (void)state;
    BENCH b;
    init(&b, 1);
    add(&b, 0, COMPUTE, 100, MIB);
    bench_cycle(&b);
    sample(&b, 0, 50, 20); /* of another pid namespace, or new */
    bench_cycle(&b);
    assert_int_equal(count(&b, 0), 2);
    assert_double_same(process(&b, 0, 50)->utilization, 20);
    assert_false(process(&b, 0, 50)->has_memory);
    bench_cycle(&b);
    assert_int_equal(count(&b, 0), 1);
    sample(&b, 0, 50, 20);
    bench_cycle(&b);
    add(&b, 0, COMPUTE, 50, 3 * MIB);
    for (int i = 0; i < 5; i++) {
        sample(&b, 0, 50, 20);
        bench_cycle(&b);
    }
    assert_int_equal(count(&b, 0), 2); /* listed by now: still one */
    assert_int_equal(process(&b, 0, 50)->memory_bytes, 3 * MIB);
    assert_double_same(process(&b, 0, 50)->utilization, 20);
}

static void test_a_process_that_ends_is_gone_with_the_next_list(void **state)
{
    (void)state;
    BENCH b;
    init(&b, 1);
    add(&b, 0, COMPUTE, 100, MIB);
    add(&b, 0, COMPUTE, 200, MIB);
    bench_cycle(&b);
    assert_int_equal(count(&b, 0), 2);
    b.nvml.gpus[0].n_processes = 1;
    bench_cycles(&b, 5);
    assert_int_equal(count(&b, 0), 1);
    assert_int_equal(b.latest->processes[0].pid, 100);
    b.nvml.gpus[0].n_processes = 0;
    bench_cycles(&b, 5);
    assert_int_equal(count(&b, 0), 0);
    assert_int_equal(bench_gpu(&b, 0)->process_list.status, SNAPSHOT_OK); /* nobody is there */
}

static void test_usage_of_nobody_on_an_idle_gpu_costs_no_call(void **state)
{
    (void)state;
    BENCH b;
    init(&b, 1);
    b.nvml.gpus[0].utilization = 0;
    bench_cycles(&b, 10);
    assert_int_equal(b.nvml.gpus[0].utilization_calls, 1); /* whether the driver has it at all */
    assert_int_equal(bench_gpu(&b, 0)->process_utilization.status, SNAPSHOT_OK);
    assert_int_equal(bench_gpu(&b, 0)->process_utilization.taken_ns, b.latest->taken_ns);
    b.nvml.gpus[0].utilization = 50; /* somebody has come */
    sample(&b, 0, 100, 50);
    bench_cycle(&b);
    assert_double_same(process(&b, 0, 100)->utilization, 50);
}

static void test_a_driver_without_process_utilization_gives_none_and_is_asked_once(void **state)
{
    (void)state;
    static const int codes[] = {NVML_RC_FUNCTION_NOT_FOUND, NVML_RC_NOT_SUPPORTED};
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        BENCH b;
        init(&b, 1);
        add(&b, 0, COMPUTE, 100, MIB);
        bench_rule(&b, "nvmlDeviceGetProcessUtilization", -1, codes[i]);
        bench_cycles(&b, 8);
        assert_int_equal(bench_gpu(&b, 0)->process_utilization.status, SNAPSHOT_UNSUPPORTED);
        assert_int_equal(bench_gpu(&b, 0)->process_list.status, SNAPSHOT_OK);
        assert_false(process(&b, 0, 100)->has_utilization);
        assert_true(process(&b, 0, 100)->has_memory);
        assert_int_equal(b.nvml.gpus[0].utilization_calls, 1);
        assert_int_equal(b.latest->sampler.errors, 0);
    }
}

static void test_an_impossible_sample_is_not_known_rather_than_idle(void **state)
{
    (void)state;
    BENCH b;
    init(&b, 1);
    add(&b, 0, COMPUTE, 100, MIB);
    sample(&b, 0, 100, 4000);
    bench_cycle(&b);
    assert_false(process(&b, 0, 100)->has_utilization);
    sample(&b, 0, 100, 40);
    bench_cycle(&b);
    assert_true(process(&b, 0, 100)->has_utilization);
}

static void test_a_driver_that_lists_no_processes_is_not_an_empty_gpu(void **state)
{
    (void)state;
    static const int codes[] = {NVML_RC_NOT_SUPPORTED, NVML_RC_NO_PERMISSION};
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        BENCH b;
        init(&b, 1);
        add(&b, 0, COMPUTE, 100, MIB);
        bench_rule(&b, "nvmlDeviceGetComputeRunningProcesses_v3", -1, codes[i]);
        sample(&b, 0, 100, 40);
        bench_cycles(&b, 8);
        assert_int_equal(b.latest->n_processes, 0);
        assert_int_equal(bench_gpu(&b, 0)->process_list.status, SNAPSHOT_UNSUPPORTED);
        assert_int_equal(bench_gpu(&b, 0)->process_utilization.status, SNAPSHOT_UNSUPPORTED);
        assert_int_equal(b.latest->sampler.errors, 0);
        b.nvml.n_rules = 0; /* permission may come; what a driver lacks does not */
        bench_cycles(&b, 5);
        bool has_come = codes[i] == NVML_RC_NO_PERMISSION;
        assert_int_equal(bench_gpu(&b, 0)->process_list.status, has_come ? SNAPSHOT_OK : SNAPSHOT_UNSUPPORTED);
        assert_int_equal(b.latest->n_processes, has_come);
    }
}

static void test_graphics_and_mps_lists_may_be_lacking(void **state)
{
    (void)state;
    BENCH b;
    init(&b, 1);
    add(&b, 0, COMPUTE, 100, MIB);
    bench_rule(&b, "nvmlDeviceGetGraphicsRunningProcesses_v3", -1, NVML_RC_NOT_SUPPORTED);
    bench_rule(&b, "nvmlDeviceGetMPSComputeRunningProcesses_v3", -1, NVML_RC_FUNCTION_NOT_FOUND);
    bench_cycles(&b, 8);
    assert_int_equal(bench_gpu(&b, 0)->process_list.status, SNAPSHOT_OK);
    assert_int_equal(count(&b, 0), 1);
}

static void test_a_list_that_fails_stays_until_it_is_too_old(void **state)
{
    (void)state;
    BENCH b;
    init(&b, 2);
    add(&b, 0, COMPUTE, 100, MIB);
    add(&b, 1, COMPUTE, 200, MIB);
    bench_cycles(&b, 6);
    int64_t taken_ns = bench_gpu(&b, 0)->process_list.taken_ns;
    /* one list of three: what the others say is not all */
    bench_rule(&b, "nvmlDeviceGetMPSComputeRunningProcesses_v3", 0, NVML_RC_TIMEOUT);
    bench_cycles(&b, 6);
    assert_int_equal(bench_gpu(&b, 0)->process_list.status, SNAPSHOT_FAILED);
    assert_int_equal(bench_gpu(&b, 0)->process_list.taken_ns, taken_ns);
    assert_int_equal(count(&b, 0), 1);
    assert_true(b.latest->sampler.errors > 0);
    bench_cycles(&b, 12);
    assert_int_equal(bench_gpu(&b, 0)->process_list.status, SNAPSHOT_FAILED);
    assert_int_equal(count(&b, 0), 0); /* not known, as the status says */
    assert_int_equal(count(&b, 1), 1);
    assert_int_equal(bench_gpu(&b, 1)->process_list.status, SNAPSHOT_OK);
    b.nvml.n_rules = 0;
    bench_cycles(&b, 5);
    assert_int_equal(count(&b, 0), 1);
}

static void test_the_processes_of_a_lost_gpu_end_with_their_age(void **state)
{
    (void)state;
    BENCH b;
    init(&b, 2);
    add(&b, 0, COMPUTE, 100, MIB);
    add(&b, 1, COMPUTE, 200, MIB);
    bench_cycle(&b);
    b.nvml.gpus[0].is_lost = NVML_RC_GPU_IS_LOST;
    bench_cycles(&b, 3);
    assert_int_equal(count(&b, 0), 1);
    bench_cycles(&b, 20);
    assert_int_equal(count(&b, 0), 0);
    assert_int_equal(bench_gpu(&b, 0)->process_list.status, SNAPSHOT_FAILED);
    assert_int_equal(bench_gpu(&b, 0)->process_utilization.status, SNAPSHOT_FAILED);
    assert_int_equal(count(&b, 1), 1);
    b.nvml.gpus[0].is_lost = 0;
    bench_cycles(&b, 40);
    assert_false(bench_gpu(&b, 0)->is_lost);
    assert_int_equal(count(&b, 0), 1);
}

static void test_a_gpu_that_gets_lost_while_its_processes_are_listed_is_lost(void **state)
{
    (void)state;
    static const char *const calls[] = {"nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetProcessUtilization"};
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        BENCH b;
        init(&b, 2);
        bench_rule(&b, calls[i], 1, NVML_RC_GPU_IS_LOST);
        bench_cycle(&b);
        assert_true(bench_gpu(&b, 1)->is_lost);
        assert_false(bench_gpu(&b, 0)->is_lost);
        b.nvml.n_rules = 0;
        bench_rule(&b, calls[i], 0, NVML_RC_UNINITIALIZED);
        bench_cycles(&b, 6);
        assert_int_equal(b.latest->driver, SNAPSHOT_DRIVER_FAILED); /* the session is over */
    }
}

/* A driver that was upgraded, or a GPU that was reset, may give what it did not. */
static void test_what_the_driver_lacked_is_asked_again_after_a_new_start(void **state)
{
    (void)state;
    BENCH b;
    init(&b, 2);
    for (int i = 0; i < 2; i++) {
        add(&b, i, COMPUTE, 100, MIB);
        bench_rule(&b, "nvmlDeviceGetProcessUtilization", i, NVML_RC_NOT_SUPPORTED);
    }
    bench_rule(&b, "nvmlDeviceGetComputeRunningProcesses_v3", 1, NVML_RC_NOT_SUPPORTED);
    bench_cycles(&b, 2);
    assert_int_equal(bench_gpu(&b, 0)->process_utilization.status, SNAPSHOT_UNSUPPORTED);
    assert_int_equal(bench_gpu(&b, 1)->process_list.status, SNAPSHOT_UNSUPPORTED);
    b.nvml.n_rules = 0;
    bench_cycles(&b, 7);
    assert_int_equal(bench_gpu(&b, 0)->process_utilization.status, SNAPSHOT_UNSUPPORTED);
    b.nvml.gpus[1].is_lost = NVML_RC_RESET_REQUIRED;
    bench_cycle(&b);
    b.nvml.gpus[1].is_lost = 0;
    bench_cycles(&b, 8); /* found again */
    assert_int_equal(bench_gpu(&b, 1)->process_list.status, SNAPSHOT_OK);
    assert_int_equal(bench_gpu(&b, 1)->process_utilization.status, SNAPSHOT_OK);
    assert_int_equal(bench_gpu(&b, 0)->process_utilization.status, SNAPSHOT_UNSUPPORTED);
    bench_rule(&b, "nvmlDeviceGetCount_v2", -1, NVML_RC_UNINITIALIZED);
    bench_cycle(&b);
    b.nvml.n_rules = 0;
    bench_cycles(&b, 8); /* opened anew */
    assert_int_equal(b.latest->driver, SNAPSHOT_DRIVER_OK);
    assert_int_equal(bench_gpu(&b, 0)->process_utilization.status, SNAPSHOT_OK);
}

static void test_many_processes_are_all_there(void **state)
{
    (void)state;
    BENCH b;
    init(&b, 1);
    for (uint32_t i = 0; i < FAKE_PROCESSES; i++) {
        add(&b, 0, COMPUTE, 10000 - i, i * MIB);
        sample(&b, 0, 10000 - i, i % 100);
    }
    bench_cycle(&b);
    assert_int_equal(count(&b, 0), FAKE_PROCESSES);
    for (uint32_t i = 0; i < FAKE_PROCESSES; i++) {
        assert_int_equal(process(&b, 0, 10000 - i)->memory_bytes, i * MIB);
        assert_double_same(process(&b, 0, 10000 - i)->utilization, i % 100);
    }
}

/* ---- MIG ---- */

/* GPU 0 with three MIG devices, ids 1/0, 2/0 and 2/1, and a process on each but the second. */
static void init_mig(struct bench *b)
{
    init(b, 2);
    struct fake_gpu *g = &b->nvml.gpus[0];
    g->is_mig_on = true;
    g->mig_rc = 0;
    for (size_t i = 0; i < 3; i++)
        g->migs[i].is_there = true;
    g->migs[2].gi = 2;
    g->migs[2].ci = 1;
    add_to(b, 0, (struct fake_process){COMPUTE, 100, 5 * MIB, 1, 0});
    add_to(b, 0, (struct fake_process){COMPUTE, 300, 7 * MIB, 2, 1});
    add_to(b, 0, (struct fake_process){GRAPHICS, 300, 7 * MIB, 2, 1});
    add_to(b, 0, (struct fake_process){COMPUTE, 100, 2 * MIB, 2, 1}); /* one process, two instances */
}

static const struct snapshot_device *mig(const struct bench *b, size_t i)
{
    return bench_device(b, b->nvml.gpus[0].migs[i].uuid);
}

static void check_instances(const struct bench *b)
{
    static const struct {
        size_t mig;
        uint32_t pid;
        uint64_t mib;
    } want[] = {{0, 100, 5}, {2, 100, 2}, {2, 300, 7}};
    assert_int_equal(b->latest->n_processes, ARRAY_LEN(want));
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        const struct snapshot_process *p = find(b, mig(b, want[i].mig), want[i].pid);
        assert_non_null(p);
        assert_int_equal(p->memory_bytes, want[i].mib * MIB);
        assert_false(p->has_utilization);
    }
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(mig(b, i)->process_list.status, SNAPSHOT_OK); /* of the second: nobody is there */
        assert_int_equal(mig(b, i)->process_utilization.status, SNAPSHOT_UNSUPPORTED);
    }
    assert_int_equal(bench_gpu(b, 0)->process_list.status, SNAPSHOT_UNSUPPORTED); /* the parent has none of its own */
    assert_int_equal(bench_gpu(b, 0)->process_utilization.status, SNAPSHOT_UNSUPPORTED);
    assert_int_equal(b->latest->sampler.errors, 0);
}

static void test_processes_of_mig_devices_come_with_one_look_at_the_gpu(void **state)
{
    (void)state;
    BENCH b;
    init_mig(&b);
    bench_cycle(&b);
    check_instances(&b);
    assert_int_equal(b.nvml.gpus[0].list_calls, 3);
    bench_cycles(&b, 10);
    check_instances(&b);
    assert_int_equal(b.nvml.gpus[0].utilization_calls, 0);
}

static void test_without_the_right_to_see_all_each_mig_device_is_asked(void **state)
{
    (void)state;
    BENCH b;
    init_mig(&b);
    b.nvml.gpus[0].hides_instances = true;
    bench_cycles(&b, 7);
    check_instances(&b);
}

static void test_a_list_without_instance_ids_is_no_list_of_a_divided_gpu(void **state)
{
    (void)state;
    BENCH b;
    init_mig(&b);
    /* only the GPU itself lists it, and does not say where it runs: each MIG device is asked */
    add_to(&b, 0, (struct fake_process){COMPUTE, 900, MIB, NVML_NONE_U32, NVML_NONE_U32});
    bench_cycles(&b, 2);
    check_instances(&b);
}

static void test_a_divided_gpu_that_gets_lost_while_its_processes_are_listed_is_lost(void **state)
{
    (void)state;
    BENCH b;
    init_mig(&b);
    bench_rule(&b, "nvmlDeviceGetComputeRunningProcesses_v3", 0, NVML_RC_GPU_IS_LOST);
    b.nvml.gpus[0].migs[0].is_there = b.nvml.gpus[0].migs[1].is_there = b.nvml.gpus[0].migs[2].is_there = false;
    bench_cycle(&b);
    assert_true(bench_gpu(&b, 0)->is_lost);
    assert_false(bench_gpu(&b, 1)->is_lost);
}

static void test_a_new_mig_device_does_not_wait_for_its_turn(void **state)
{
    (void)state;
    BENCH b;
    init_mig(&b);
    bench_cycles(&b, 7);
    b.nvml.gpus[0].migs[3].is_there = true;
    add_to(&b, 0, (struct fake_process){COMPUTE, 400, MIB, 4, 0});
    bench_cycle(&b);
    assert_int_equal(mig(&b, 3)->process_list.status, SNAPSHOT_OK);
    assert_non_null(find(&b, mig(&b, 3), 400));
}

static void test_processes_go_with_their_mig_device_and_with_the_mode(void **state)
{
    (void)state;
    BENCH b;
    init_mig(&b);
    bench_cycles(&b, 2);
    b.nvml.gpus[0].migs[2].is_there = false;
    bench_cycle(&b);
    assert_int_equal(b.latest->n_processes, 1);
    b.nvml.gpus[0].is_mig_on = false;
    b.nvml.gpus[0].n_processes = 0;
    add(&b, 0, COMPUTE, 500, MIB);
    bench_cycle(&b);
    assert_int_equal(b.latest->n_processes, 1);
    assert_int_equal(process(&b, 0, 500)->memory_bytes, MIB);
    assert_int_equal(bench_gpu(&b, 0)->process_utilization.status, SNAPSHOT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processes_are_not_read_unless_asked_for),
        cmocka_unit_test(test_a_process_in_several_lists_is_one_and_its_memory_counts_once),
        cmocka_unit_test(test_lists_are_read_every_five_seconds_and_usage_each_cycle),
        cmocka_unit_test(test_the_lists_of_different_gpus_fall_into_different_cycles),
        cmocka_unit_test(test_a_process_without_a_sample_did_nothing),
        cmocka_unit_test(test_between_samples_what_is_known_stands_for_a_second),
        cmocka_unit_test(test_usage_is_kept_when_the_list_is_read_again),
        cmocka_unit_test(test_only_what_is_newer_than_the_newest_sample_is_asked_for),
        cmocka_unit_test(test_a_wall_clock_that_is_set_hides_nothing),
        cmocka_unit_test(test_a_sample_from_the_future_hides_nothing),
        cmocka_unit_test(test_a_process_that_only_has_samples_is_there_as_long_as_it_has_some),
        cmocka_unit_test(test_a_process_that_ends_is_gone_with_the_next_list),
        cmocka_unit_test(test_usage_of_nobody_on_an_idle_gpu_costs_no_call),
        cmocka_unit_test(test_a_driver_without_process_utilization_gives_none_and_is_asked_once),
        cmocka_unit_test(test_an_impossible_sample_is_not_known_rather_than_idle),
        cmocka_unit_test(test_a_driver_that_lists_no_processes_is_not_an_empty_gpu),
        cmocka_unit_test(test_graphics_and_mps_lists_may_be_lacking),
        cmocka_unit_test(test_a_list_that_fails_stays_until_it_is_too_old),
        cmocka_unit_test(test_the_processes_of_a_lost_gpu_end_with_their_age),
        cmocka_unit_test(test_a_gpu_that_gets_lost_while_its_processes_are_listed_is_lost),
        cmocka_unit_test(test_what_the_driver_lacked_is_asked_again_after_a_new_start),
        cmocka_unit_test(test_many_processes_are_all_there),
        cmocka_unit_test(test_processes_of_mig_devices_come_with_one_look_at_the_gpu),
        cmocka_unit_test(test_without_the_right_to_see_all_each_mig_device_is_asked),
        cmocka_unit_test(test_a_list_without_instance_ids_is_no_list_of_a_divided_gpu),
        cmocka_unit_test(test_a_divided_gpu_that_gets_lost_while_its_processes_are_listed_is_lost),
        cmocka_unit_test(test_a_new_mig_device_does_not_wait_for_its_turn),
        cmocka_unit_test(test_processes_go_with_their_mig_device_and_with_the_mode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
