/* Lock, clock, scenario in play, init counts, faults. */
#include "nvmlsim/sim.h"

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* The scenario's file is looked at no more often than this, and a hung call looks this often whether it may go on. */
#define LOOK_EVERY_NS (50 * NS_PER_MS)
#define HUNG_STEP_NS  (10 * NS_PER_MS)

static void real_sleep(int64_t ns)
{
    struct timespec t = {.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
    (void)nanosleep(&t, NULL);
}

static const struct sim_clock real_clock = {time_mono_ns, time_wall_ns, real_sleep};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    struct sim_clock clock;
    uint32_t inits;
    char path[PATH_MAX]; /* "" = the built-in scenario */
    struct file_stamp stamp;
    int64_t looked_ns, epoch_ns, wall_epoch_ns;
    bool is_loaded, is_missing;
    uint64_t generation;
    struct player player;
} sim;

static const char *const function_names[] = {
#define X(need, name, type, parameters) #name,
    NVML_SYMBOLS(X)
#undef X
#define X(name, type, parameters) #name,
        SIM_SYMBOLS(X)
#undef X
};

static const struct sim_clock *the_clock(void)
{
    return sim.clock.mono_ns ? &sim.clock : &real_clock;
}

static double scenario_time(void)
{
    return (double)(the_clock()->mono_ns() - sim.epoch_ns) * 1e-9;
}

/* ---- the scenario's file ---- */

/* CSV files lie beside the scenario unless their path is absolute. */
static int read_beside(void *context, const char *path, struct buf *out, struct err *e)
{
    const char *scenario = (const char *)context, *slash = strrchr(scenario, '/');
    char full[PATH_MAX];
    int len = path[0] == '/' || !slash
                  ? snprintf(full, sizeof(full), "%s", path)
                  : snprintf(full, sizeof(full), "%.*s/%s", (int)(slash - scenario), scenario, path);
    if (len < 0 || (size_t)len >= sizeof(full))
        return err_set(e, ERR_INVALID_ARGUMENT, "the path is too long");
    return file_read(full, out, e);
}

static struct scenario *load(struct err *e)
{
    BUF_AUTO struct buf text;
    buf_init(&text, SCENE_TEXT_MAX);
    struct scenario_source source = {
        .name = sim.path[0] ? sim.path : "built-in scenario",
        .read_file = read_beside,
        .functions = function_names,
        .n_functions = ARRAY_LEN(function_names),
        .context = sim.path,
    };
    if (!sim.path[0])
        return scenario_parse(&source, str_of(scenario_default_text), e);
    if (file_read(sim.path, &text, e) < 0)
        return NULL;
    return scenario_parse(&source, (struct str){text.data ? text.data : "", text.len}, e);
}

static void complain(const struct err *e, const char *consequence)
{
    (void)fprintf(stderr, "nvmlsim: %s%s\n", e->text, consequence);
}

static void replace_scenario(struct scenario *s)
{
    double old_s = scenario_time(), new_s = s->restart_clock ? 0 : old_s;
    if (s->restart_clock) {
        sim.wall_epoch_ns += the_clock()->mono_ns() - sim.epoch_ns;
        sim.epoch_ns = the_clock()->mono_ns();
    }
    player_replace(&sim.player, s, old_s, new_s);
    sim.generation++;
}

/* A rewritten file is played from now on; a bad one is reported once and not played. */
static void look_for_change(void)
{
    int64_t now_ns = the_clock()->mono_ns();
    struct file_stamp stamp;
    if (!sim.path[0] || now_ns - sim.looked_ns < LOOK_EVERY_NS)
        return;
    sim.looked_ns = now_ns;
    bool is_missing = file_stamp(sim.path, &stamp) < 0;
    if (is_missing) {
        if (!sim.is_missing)
            (void)fprintf(stderr, "nvmlsim: %s: the file is gone; the old scenario stays\n", sim.path);
        sim.is_missing = true;
        return;
    }
    bool is_same = !sim.is_missing && !memcmp(&stamp, &sim.stamp, sizeof(stamp));
    sim.is_missing = false;
    if (is_same)
        return;
    sim.stamp = stamp;
    struct err e = {0};
    struct scenario *s = load(&e);
    if (s)
        replace_scenario(s);
    else
        complain(&e, "; the old scenario stays");
}

/* First init with this path: load it and start the clock. A later init with the same path finds the clock running. */
static int start(void)
{
    const char *path = getenv("NVMLSIM_SCENARIO");
    path = path ? path : "";
    if (sim.is_loaded && !strcmp(path, sim.path))
        return NVML_RC_SUCCESS;
    if (!str_copy(sim.path, sizeof(sim.path), str_of(path))) {
        sim.is_loaded = false;
        sim.path[0] = '\0';
        return NVML_RC_INVALID_ARGUMENT;
    }
    struct err e = {0};
    if (sim.is_loaded)
        player_fini(&sim.player);
    sim.is_loaded = false;
    (void)file_stamp(sim.path, &sim.stamp);
    struct scenario *s = load(&e);
    if (!s) {
        complain(&e, "");
        return NVML_RC_UNKNOWN;
    }
    player_init(&sim.player, s);
    sim.generation++;
    sim.is_loaded = true;
    sim.is_missing = false;
    sim.epoch_ns = sim.looked_ns = the_clock()->mono_ns();
    sim.wall_epoch_ns = the_clock()->wall_ns();
    return NVML_RC_SUCCESS;
}

/* ---- calls ---- */

static void nap(int64_t ns)
{
    struct sim_clock clock = *the_clock();
    (void)pthread_mutex_unlock(&lock);
    clock.sleep_ns(ns);
    (void)pthread_mutex_lock(&lock);
    if (sim.is_loaded)
        look_for_change();
}

/* Wait out what a fault makes of the call, and tell its rc. */
static int judge(const char *function, size_t gpu, bool is_again)
{
    bool has_slept = false;
    for (;;) {
        struct player_call call = {function, gpu, scenario_time(), is_again};
        struct player_verdict v = player_judge(&sim.player, &call);
        if (v.is_hung) {
            nap(HUNG_STEP_NS);
        } else if (v.slow_ms > 0 && !has_slept) {
            nap((int64_t)(v.slow_ms * 1e6));
            has_slept = true;
        } else {
            return v.rc;
        }
        if (!sim.is_loaded)
            return NVML_RC_UNINITIALIZED;
    }
}

static int finish(struct sim_call *c, int rc)
{
    c->rc = rc;
    c->t_s = scenario_time();
    c->player = &sim.player;
    if (rc != NVML_RC_SUCCESS)
        sim_end(c);
    return rc;
}

static void enter(struct sim_call *c, const char *function)
{
    *c = (struct sim_call){.function = function, .index = SIZE_MAX};
    (void)pthread_mutex_lock(&lock);
    c->is_locked = true;
}

void sim_end(struct sim_call *c)
{
    if (c->is_locked)
        (void)pthread_mutex_unlock(&lock);
    c->is_locked = false;
}

int sim_begin(struct sim_call *c, const char *function)
{
    enter(c, function);
    if (sim.inits == 0)
        return finish(c, NVML_RC_UNINITIALIZED);
    look_for_change();
    return finish(c, judge(function, SIZE_MAX, false));
}

/* Where the handle's GPU is now. */
static int find_gpu(struct sim_call *c, const struct nvml_device *device)
{
    const struct scenario *s = sim.player.scenario;
    size_t n = player_gpu_count(&sim.player, scenario_time());
    for (size_t i = 0; i < n; i++)
        if (!strcmp(s->gpus[i].uuid, device->gpu_uuid)) {
            c->index = i;
            c->gpu = &s->gpus[i];
            return NVML_RC_SUCCESS;
        }
    return NVML_RC_GPU_IS_LOST;
}

static int find_instance(struct sim_call *c, const struct nvml_device *device)
{
    c->instance = NULL;
    c->compute = NULL;
    c->layout = player_layout(c->gpu, scenario_time());
    if (!device->is_mig)
        return NVML_RC_SUCCESS;
    for (size_t i = 0; i < c->layout->n_instances; i++)
        for (size_t k = 0; k < c->layout->instances[i].n_compute; k++)
            if (!strcmp(c->layout->instances[i].compute[k].uuid, device->mig_uuid)) {
                c->instance = &c->layout->instances[i];
                c->compute = &c->instance->compute[k];
                return NVML_RC_SUCCESS;
            }
    return NVML_RC_NOT_FOUND;
}

static int resolve(struct sim_call *c)
{
    int rc = find_gpu(c, c->handle);
    return rc == NVML_RC_SUCCESS ? find_instance(c, c->handle) : rc;
}

int sim_judge_gpu(struct sim_call *c, size_t index)
{
    int rc = judge(c->function, index, true);
    if (rc == NVML_RC_SUCCESS && index >= player_gpu_count(&sim.player, scenario_time()))
        rc = NVML_RC_INVALID_ARGUMENT; /* it went while we waited */
    c->t_s = scenario_time();
    return rc;
}

int sim_begin_device(struct sim_call *c, const char *function, struct nvml_device *device, enum sim_scope scope)
{
    enter(c, function);
    if (sim.inits == 0)
        return finish(c, NVML_RC_UNINITIALIZED);
    look_for_change();
    if (!sim_is_handle(device))
        return finish(c, NVML_RC_INVALID_ARGUMENT);
    c->handle = device;
    int rc = find_gpu(c, device);
    if (rc == NVML_RC_SUCCESS)
        rc = judge(function, c->index, false);
    if (rc == NVML_RC_SUCCESS)
        rc = resolve(c); /* again: judging may have waited */
    if (rc == NVML_RC_SUCCESS && scope == SIM_WHOLE && device->is_mig)
        rc = NVML_RC_NOT_SUPPORTED;
    if (rc == NVML_RC_SUCCESS && scope == SIM_MIG && !device->is_mig)
        rc = NVML_RC_NOT_SUPPORTED;
    return finish(c, rc);
}

int sim_pause(struct sim_call *c, double ms)
{
    nap((int64_t)(ms * 1e6));
    if (!sim.is_loaded)
        return NVML_RC_UNINITIALIZED;
    c->t_s = scenario_time();
    return c->handle ? resolve(c) : NVML_RC_SUCCESS;
}

int64_t sim_epoch_ns(void)
{
    return sim.epoch_ns;
}

uint64_t sim_generation(void)
{
    return sim.generation;
}

uint64_t sim_time_us(const struct sim_call *c, double t_s)
{
    (void)c;
    return (uint64_t)(sim.wall_epoch_ns / NS_PER_US + (int64_t)llround(t_s * 1e6));
}

double sim_time_s(const struct sim_call *c, uint64_t time_us)
{
    (void)c;
    return ((double)time_us - (double)(sim.wall_epoch_ns / NS_PER_US)) * 1e-6;
}

int sim_text(char *out, uint32_t size, const char *text)
{
    if (!out)
        return NVML_RC_INVALID_ARGUMENT;
    size_t len = strlen(text);
    if (len >= size)
        return NVML_RC_INSUFFICIENT_SIZE;
    memcpy(out, text, len + 1);
    return NVML_RC_SUCCESS;
}

int sim_u32(uint32_t *out, uint32_t value)
{
    if (!out)
        return NVML_RC_INVALID_ARGUMENT;
    *out = value;
    return NVML_RC_SUCCESS;
}

int sim_u64(uint64_t *out, uint64_t value)
{
    if (!out)
        return NVML_RC_INVALID_ARGUMENT;
    *out = value;
    return NVML_RC_SUCCESS;
}

uint32_t sim_round(double value)
{
    return value <= 0 ? 0 : value >= UINT32_MAX ? UINT32_MAX : (uint32_t)llround(value);
}

/* ---- init and shutdown ---- */

static int init(const char *function)
{
    struct sim_call c __attribute__((cleanup(sim_end)));
    enter(&c, function);
    int rc = sim.inits > 0 ? NVML_RC_SUCCESS : start();
    if (rc == NVML_RC_SUCCESS)
        look_for_change();
    if (rc == NVML_RC_SUCCESS)
        rc = judge(function, SIZE_MAX, false);
    if (rc == NVML_RC_SUCCESS)
        sim.inits++;
    return rc;
}

int nvmlInit(void)
{
    return init(__func__);
}

int nvmlInit_v2(void)
{
    return init(__func__);
}

int nvmlInitWithFlags(uint32_t flags)
{
    (void)flags;
    return init(__func__);
}

/* Harmless before the first init, and as often as one likes (measured on 470 to 550). */
int nvmlShutdown(void)
{
    struct sim_call c __attribute__((cleanup(sim_end)));
    enter(&c, __func__);
    if (sim.inits > 0)
        sim.inits--;
    return NVML_RC_SUCCESS;
}

void sim_set_clock(const struct sim_clock *clock)
{
    sim.clock = *clock;
}

void sim_reset(void)
{
    if (sim.is_loaded)
        player_fini(&sim.player);
    memset(&sim, 0, sizeof(sim));
}
