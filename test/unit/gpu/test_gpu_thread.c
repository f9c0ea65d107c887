/* gpu: the thread: hand-over, stop, a call that does not return. These run on the real clock and wait on conditions. */
#include "gpu/bench.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>

/* The owner's side: a counter that on_snapshot posts. */
struct owner {
    struct bench bench;
    sem_t published;
    atomic_uint n_published;
    pthread_t thread;
    bool blocks_signals;
    struct gpu_sampler *sampler;
};

static void on_snapshot(void *context)
{
    struct owner *o = context;
    sigset_t blocked;
    o->thread = pthread_self();
    (void)pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    o->blocks_signals = sigismember(&blocked, SIGTERM) && sigismember(&blocked, SIGUSR2);
    atomic_fetch_add(&o->n_published, 1);
    (void)sem_post(&o->published);
}

static void owner_start(struct owner *o, int64_t period_ns, const char *block_in)
{
    memset(o, 0, sizeof(*o));
    bench_init(&o->bench, 2);
    o->bench.nvml.block_in = block_in;
    o->bench.nvml.gpus[1].n_processes = 1;
    o->bench.nvml.gpus[1].processes[0] = (struct fake_process){0, 100, 4096, NVML_NONE_U32, NVML_NONE_U32};
    (void)sem_init(&o->published, 0, 0);
    struct err e;
    o->sampler = gpu_start(&(struct gpu_config){.library_path = bench_library(),
                                                .period_ns = period_ns,
                                                .slow_period_ns = 10 * period_ns,
                                                .has_processes = true,
                                                .process_period_ns = 2 * period_ns,
                                                .stop_timeout_ns = 50 * NS_PER_MS},
                           on_snapshot, o, &e);
    assert_non_null(o->sampler);
}

static void owner_fini(struct owner *o)
{
    bench_fini(&o->bench);
    (void)sem_destroy(&o->published);
}

static void wait_for(sem_t *semaphore)
{
    struct timespec limit;
    (void)clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 60;
    assert_int_equal(sem_timedwait(semaphore, &limit), 0);
}

/* Take snapshots until one is in this state. */
static void wait_for_state(struct owner *o, enum snapshot_driver_state want)
{
    for (;;) {
        struct snapshot *s = gpu_take(o->sampler);
        bool is_there = s && s->driver == want;
        snapshot_unref(s);
        if (is_there)
            return;
        wait_for(&o->published);
    }
}

static void test_processes_come_with_the_snapshots(void **state)
{
    (void)state;
    struct owner o;
    owner_start(&o, NS_PER_MS, NULL);
    for (int seen = 0; seen < 20;) { /* lists come and go on the thread meanwhile */
        struct snapshot *s = gpu_take(o.sampler);
        if (s && s->n_processes > 0) {
            assert_int_equal(s->n_processes, 1);
            assert_int_equal(s->processes[0].pid, 100);
            assert_int_equal(s->processes[0].memory_bytes, 4096);
            assert_int_equal(s->processes[0].device_id, s->devices[1].id);
            seen++;
        }
        snapshot_unref(s);
        wait_for(&o.published);
    }
    assert_true(gpu_stop(o.sampler));
    owner_fini(&o);
}

static void test_the_first_snapshot_comes_before_the_first_nvml_call(void **state)
{
    (void)state;
    struct owner o;
    owner_start(&o, NS_PER_MS, "nvmlInit_v2");
    wait_for(&o.published);
    wait_for(&o.bench.nvml.entered); /* the thread is inside nvmlInit now */
    struct snapshot *s = gpu_take(o.sampler);
    assert_non_null(s);
    assert_int_equal(s->driver, SNAPSHOT_DRIVER_STARTING);
    snapshot_unref(s);
    assert_null(gpu_take(o.sampler));
    assert_false(pthread_equal(o.thread, pthread_self()));
    assert_true(o.blocks_signals);
    o.bench.nvml.block_in = NULL;
    (void)sem_post(&o.bench.nvml.leave);
    wait_for_state(&o, SNAPSHOT_DRIVER_OK);
    assert_true(gpu_stop(o.sampler));
    assert_int_equal(o.bench.nvml.shutdowns, 1);
    owner_fini(&o);
}

static void test_a_stuck_call_stops_snapshots_and_is_named_and_stop_does_not_wait_for_it(void **state)
{
    (void)state;
    struct owner o;
    char text[128] = "";
    owner_start(&o, NS_PER_MS, NULL);
    wait_for_state(&o, SNAPSHOT_DRIVER_OK);
    o.bench.nvml.block_in = "nvmlDeviceGetPowerUsage";
    wait_for(&o.bench.nvml.entered);
    snapshot_unref(gpu_take(o.sampler));
    assert_null(gpu_take(o.sampler));
    assert_false(gpu_is_stuck(o.sampler, time_mono_ns(), 3600 * NS_PER_S, text, sizeof(text)));
    assert_true(gpu_is_stuck(o.sampler, time_mono_ns() + 7200 * NS_PER_S, 3600 * NS_PER_S, text, sizeof(text)));
    assert_true(strstr(text, "nvmlDeviceGetPowerUsage for ") == text);
    gpu_release(o.sampler); /* asking never blocks */
    gpu_want(o.sampler, SNAPSHOT_PCIE_TX, time_mono_ns());
    unsigned before = atomic_load(&o.n_published);
    assert_false(gpu_stop(o.sampler));
    /* Left behind: it ends when the call returns, shuts NVML down and tells nobody. */
    o.bench.nvml.block_in = "nvmlShutdown";
    (void)sem_post(&o.bench.nvml.leave);
    wait_for(&o.bench.nvml.entered);
    assert_int_equal(atomic_load(&o.n_published), before);
    o.bench.nvml.block_in = NULL;
    (void)sem_post(&o.bench.nvml.leave);
    for (int i = 0; i < 60000 && o.bench.nvml.shutdowns == 0; i++)
        (void)poll(NULL, 0, 1);
    assert_int_equal(o.bench.nvml.shutdowns, 1);
    owner_fini(&o);
}

static void test_release_and_resume_are_acted_on_at_once(void **state)
{
    (void)state;
    struct owner o;
    owner_start(&o, 3600 * NS_PER_S, NULL);
    wait_for_state(&o, SNAPSHOT_DRIVER_OK);
    gpu_release(o.sampler);
    gpu_release(o.sampler);
    assert_true(gpu_is_released(o.sampler));
    wait_for_state(&o, SNAPSHOT_DRIVER_RELEASED);
    gpu_resume(o.sampler);
    assert_false(gpu_is_released(o.sampler));
    wait_for_state(&o, SNAPSHOT_DRIVER_OK);
    assert_null(gpu_restart_reason(o.sampler));
    assert_true(gpu_stop(o.sampler));
    owner_fini(&o);
}

/* Run under TSan: a reader takes, reads and lets go while the thread publishes every millisecond. */
static void test_snapshots_are_handed_over_whole_and_in_order(void **state)
{
    (void)state;
    struct owner o;
    owner_start(&o, NS_PER_MS, NULL);
    int64_t last_ns = 0;
    uint64_t last_cycles = 0;
    for (int taken = 0; taken < 200;) {
        wait_for(&o.published);
        struct snapshot *s = gpu_take(o.sampler);
        if (!s)
            continue;
        assert_true(s->taken_ns >= last_ns);
        assert_true(s->sampler.cycles > last_cycles || last_cycles == 0);
        last_ns = s->taken_ns;
        last_cycles = s->sampler.cycles;
        for (size_t i = 0; i < s->n_devices; i++)
            assert_double_same(s->devices[i].readings[SNAPSHOT_TEMPERATURE].value, 60);
        snapshot_unref(s);
        taken++;
    }
    assert_true(gpu_stop(o.sampler));
    owner_fini(&o);
}

static void test_stop_accepts_null(void **state)
{
    (void)state;
    assert_true(gpu_stop(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_snapshot_comes_before_the_first_nvml_call),
        cmocka_unit_test(test_a_stuck_call_stops_snapshots_and_is_named_and_stop_does_not_wait_for_it),
        cmocka_unit_test(test_release_and_resume_are_acted_on_at_once),
        cmocka_unit_test(test_snapshots_are_handed_over_whole_and_in_order),
        cmocka_unit_test(test_stop_accepts_null),
        cmocka_unit_test(test_processes_come_with_the_snapshots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
