/* What the tests of gpu/ stand on: a scripted NVML, a clock that the test moves, and a sampler core between them. */
#ifndef TEST_GPU_BENCH_H
#define TEST_GPU_BENCH_H

#include "gpu/core.h"
#include "gpu/fake_nvml.h"
#include "support.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int64_t bench_now_ns;

static inline int64_t bench_clock(void)
{
    return bench_now_ns;
}

/* What the wall clock is ahead of bench_now_ns; a test that sets the clock changes it. */
static int64_t bench_wall_offset_ns;

static inline int64_t bench_wall(void)
{
    return bench_now_ns + bench_wall_offset_ns;
}

/* The scripted library's path, beside the test program. Static. */
static inline const char *bench_library(void)
{
    static char path[PATH_MAX + 32];
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    assert_true(len > 0);
    self[len] = '\0';
    *strrchr(self, '/') = '\0';
    (void)snprintf(path, sizeof(path), "%s/gpu/libfake_nvml.so", self);
    return path;
}

struct bench {
    struct fake_nvml nvml;
    struct gpu_shared shared;
    struct gpu_core *core;
    struct snapshot *latest;
};

/* GPU i: 10 i percent busy, and so on; no field values, no GPM, not capable of MIG. */
static inline void bench_describe_gpu(struct fake_gpu *g, int i)
{
    *g = (struct fake_gpu){
        .handle = {.gpu = i, .mig = -1},
        .utilization = 10 * (uint32_t)i + 5,
        .memory_utilization = 20,
        .celsius = 60,
        .power_mw = 250500,
        .limit_mw = 700000,
        .sm_mhz = 1980,
        .memory_mhz = 2619,
        .encoder = 7,
        .decoder = 8,
        .fan = 33,
        .generation = 5,
        .width = 16,
        .max_generation = 5,
        .max_width = 16,
        .used = 20ULL << 30,
        .reserved = 1ULL << 30,
        .total = 80ULL << 30,
        .energy_mj = 123456789,
        .reasons = 0x4,
        .corrected = 3,
        .uncorrected = 1,
        .pcie_tx_kb = 1000,
        .pcie_rx_kb = 2000,
        .remapped = {1, 2, 1, 0},
        .mig_rc = NVML_RC_NOT_SUPPORTED,
    };
    (void)snprintf(g->uuid, sizeof(g->uuid), "GPU-%08d-0000-0000-0000-000000000000", i);
    for (int m = 0; m < FAKE_MIGS; m++) {
        struct fake_mig *mig = &g->migs[m];
        mig->handle = (struct nvml_device){.gpu = i, .mig = m};
        mig->gi = (uint32_t)m + 1;
        mig->used = (uint64_t)(m + 1) << 30;
        mig->total = 10ULL << 30;
        (void)snprintf(mig->uuid, sizeof(mig->uuid), "MIG-%08d-0000-0000-0000-%012d", i, m);
        (void)snprintf(mig->name, sizeof(mig->name), "NVIDIA Fake 80GB MIG 1g.10gb");
    }
}

static inline void bench_init_with(struct bench *b, uint32_t n_gpus, const char *library)
{
    *b = (struct bench){.nvml = {.n_gpus = n_gpus}};
    (void)sem_init(&b->nvml.entered, 0, 0);
    (void)sem_init(&b->nvml.leave, 0, 0);
    for (int i = 0; i < FAKE_GPUS; i++)
        bench_describe_gpu(&b->nvml.gpus[i], i);
    char address[32];
    (void)snprintf(address, sizeof(address), "%llx", (unsigned long long)(uintptr_t)&b->nvml);
    assert_int_equal(setenv("FAKE_NVML", address, 1), 0);
    bench_now_ns = 1000 * NS_PER_S;
    bench_wall_offset_ns = 1800000000 * NS_PER_S;
    b->core = gpu_core_new(&(struct gpu_config){.library_path = library}, &b->shared, bench_clock);
    b->core->wall_ns = bench_wall;
}

static inline void bench_init(struct bench *b, uint32_t n_gpus)
{
    bench_init_with(b, n_gpus, bench_library());
}

static inline void bench_fini(struct bench *b)
{
    snapshot_unref(b->latest);
    gpu_core_free(b->core);
    (void)sem_destroy(&b->nvml.entered);
    (void)sem_destroy(&b->nvml.leave);
}
#define BENCH __attribute__((cleanup(bench_fini))) struct bench

/* One cycle now; then the clock moves on by a period. `latest` is the snapshot that it published. */
static inline void bench_cycle(struct bench *b)
{
    gpu_core_cycle(b->core);
    snapshot_unref(b->latest);
    b->latest = gpu_core_publish(b->core);
    bench_now_ns += NS_PER_S;
}

static inline void bench_cycles(struct bench *b, int n)
{
    for (int i = 0; i < n; i++)
        bench_cycle(b);
}

static inline const struct snapshot_device *bench_device(const struct bench *b, const char *uuid)
{
    const struct snapshot_device *d = snapshot_find_device(b->latest, uuid);
    assert_non_null(d);
    return d;
}

static inline const struct snapshot_device *bench_gpu(const struct bench *b, int i)
{
    return bench_device(b, b->nvml.gpus[i].uuid);
}

static inline const struct snapshot_reading *bench_reading(const struct bench *b, int gpu, enum snapshot_field field)
{
    return &bench_gpu(b, gpu)->readings[field];
}

static inline void bench_rule(struct bench *b, const char *function, int gpu, int rc)
{
    assert_true(b->nvml.n_rules < FAKE_RULES);
    b->nvml.rules[b->nvml.n_rules++] = (struct fake_rule){function, gpu, rc};
}

static inline struct fake_field *bench_field(struct bench *b, int gpu, struct fake_field field)
{
    struct fake_gpu *g = &b->nvml.gpus[gpu];
    assert_true(g->n_fields < FAKE_FIELDS);
    g->fields[g->n_fields] = field;
    return &g->fields[g->n_fields++];
}

#endif
