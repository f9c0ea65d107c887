/* The stage of the tests of the simulated library. */
#include "stage.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int64_t now_ns, slept_ns;
static char folder[256], scenario[300], other[300], errors[300];
static char caught[8192];

static int64_t mono(void)
{
    return now_ns;
}

static int64_t wall(void)
{
    return 1700000000 * NS_PER_S + now_ns;
}

static void sleep_for(int64_t ns)
{
    now_ns += ns;
    slept_ns += ns;
}

static const struct sim_clock virtual_clock = {mono, wall, sleep_for};

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

void stage_set(const char *text)
{
    sim_reset();
    sim_set_clock(&virtual_clock);
    now_ns = 1000 * NS_PER_S;
    slept_ns = 0;
    write_file(scenario, text);
    assert_int_equal(setenv("NVMLSIM_SCENARIO", scenario, 1), 0);
}

void stage_play(const char *text)
{
    stage_set(text);
    assert_rc(nvmlInit_v2(), SUCCESS);
}

void stage_rewrite(const char *text)
{
    write_file(other, text);
    assert_int_equal(rename(other, scenario), 0);
    stage_advance(0.05);
}

void stage_remove_file(void)
{
    assert_int_equal(unlink(scenario), 0);
    stage_advance(0.05);
}

void stage_advance(double seconds)
{
    now_ns += (int64_t)(seconds * 1e9);
}

double stage_slept_s(void)
{
    return (double)slept_ns * 1e-9;
}

static int saved_stderr = -1;

void stage_catch_stderr(void)
{
    (void)fflush(stderr);
    int fd = open(errors, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    saved_stderr = dup(STDERR_FILENO);
    assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
    (void)close(fd);
}

const char *stage_stderr(void)
{
    (void)fflush(stderr);
    if (saved_stderr >= 0) {
        (void)dup2(saved_stderr, STDERR_FILENO);
        (void)close(saved_stderr);
        saved_stderr = -1;
    }
    FILE *file = fopen(errors, "re");
    assert_non_null(file);
    size_t len = fread(caught, 1, sizeof(caught) - 1, file);
    caught[len] = '\0';
    (void)fclose(file);
    return caught;
}

struct nvml_device *stage_gpu(uint32_t index)
{
    struct nvml_device *device = NULL;
    assert_rc(nvmlDeviceGetHandleByIndex_v2(index, &device), SUCCESS);
    return device;
}

struct nvml_device *stage_mig(uint32_t gpu, uint32_t index)
{
    struct nvml_device *device = NULL;
    assert_rc(nvmlDeviceGetMigDeviceHandleByIndex(stage_gpu(gpu), index, &device), SUCCESS);
    return device;
}

int stage_setup(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    (void)snprintf(folder, sizeof(folder), "%s/nvmlsim-test-XXXXXX", base && base[0] ? base : "/tmp");
    if (!mkdtemp(folder))
        return -1;
    (void)snprintf(scenario, sizeof(scenario), "%s/scenario.yaml", folder);
    (void)snprintf(other, sizeof(other), "%s/other.yaml", folder);
    (void)snprintf(errors, sizeof(errors), "%s/stderr", folder);
    return 0;
}

int stage_teardown(void **state)
{
    (void)state;
    sim_reset();
    (void)unlink(scenario);
    (void)unlink(other);
    (void)unlink(errors);
    return rmdir(folder);
}
