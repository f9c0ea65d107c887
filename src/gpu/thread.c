/* The sampler thread, the mailbox and what other threads may ask of it. Nothing of NVML is called here but through the
 * core, on the thread. */
#include "gpu/gpu.h"

#include "gpu/core.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

/* Shared by the owner and the thread; whoever lets go last frees it, so that a thread which is stuck in the driver can
 * be left behind. */
struct gpu_sampler {
    atomic_int references;
    struct gpu_config config;
    struct gpu_shared shared;
    _Atomic(struct snapshot *) mailbox;
    char *library_path;
    pthread_t thread;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;  /* on CLOCK_MONOTONIC: stop, release or resume was asked for, or the thread has ended */
    bool is_stopping, has_ended, is_hurried;
    void (*on_snapshot)(void *context);
    void *context;
};

static void sampler_drop(struct gpu_sampler *s)
{
    if (atomic_fetch_sub(&s->references, 1) != 1)
        return;
    snapshot_unref(atomic_exchange(&s->mailbox, NULL));
    (void)pthread_cond_destroy(&s->wake);
    (void)pthread_mutex_destroy(&s->lock);
    free(s->library_path);
    free(s);
}

/* The lock stays held while on_snapshot runs: that is what makes "never after gpu_stop has returned" true. */
static void deliver(struct gpu_sampler *s, struct snapshot *snapshot)
{
    snapshot_unref(atomic_exchange(&s->mailbox, snapshot));
    (void)pthread_mutex_lock(&s->lock);
    if (!s->is_stopping && s->on_snapshot)
        s->on_snapshot(s->context);
    (void)pthread_mutex_unlock(&s->lock);
}

static struct timespec timespec_of(int64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
}

/* Sleep until the deadline or until somebody wants something. Returns false when the thread has to end. */
static bool wait_for_turn(struct gpu_sampler *s, int64_t deadline_ns)
{
    struct timespec deadline = timespec_of(deadline_ns);
    (void)pthread_mutex_lock(&s->lock);
    int rc = 0;
    while (!s->is_stopping && !s->is_hurried && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&s->wake, &s->lock, &deadline);
    s->is_hurried = false;
    bool goes_on = !s->is_stopping;
    (void)pthread_mutex_unlock(&s->lock);
    return goes_on;
}

/* Ticks keep their phase; a cycle that overran skips the ticks that it missed instead of running them in a burst. */
static int64_t next_tick(int64_t tick_ns, int64_t period_ns, int64_t now_ns)
{
    if (now_ns < tick_ns + period_ns)
        return tick_ns + period_ns;
    return tick_ns + ((now_ns - tick_ns) / period_ns + 1) * period_ns;
}

static void *run(void *argument)
{
    struct gpu_sampler *s = argument;
    (void)pthread_setname_np(pthread_self(), "nvml");
    struct gpu_core *core = gpu_core_new(&s->config, &s->shared, time_mono_ns);
    deliver(s, gpu_core_publish(core));
    int64_t tick_ns = time_mono_ns();
    while (wait_for_turn(s, tick_ns)) {
        gpu_core_cycle(core);
        deliver(s, gpu_core_publish(core));
        int64_t now_ns = time_mono_ns();
        if (now_ns >= tick_ns) /* else a release or resume came between two ticks */
            tick_ns = next_tick(tick_ns, s->config.period_ns, now_ns);
    }
    gpu_core_free(core);
    (void)pthread_mutex_lock(&s->lock);
    s->has_ended = true;
    (void)pthread_cond_broadcast(&s->wake);
    (void)pthread_mutex_unlock(&s->lock);
    sampler_drop(s);
    return NULL;
}

/* A signal must reach the loop's thread, never one that may sit in the driver. */
static int start_thread(struct gpu_sampler *s)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&s->thread, NULL, run, s);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

struct gpu_sampler *gpu_start(const struct gpu_config *config, void (*on_snapshot)(void *context), void *context,
                              struct err *e)
{
    struct gpu_sampler *s = mem_new(struct gpu_sampler);
    atomic_init(&s->references, 2);
    s->config = gpu_config_complete(config);
    s->library_path = config->library_path ? mem_strdup(config->library_path) : NULL;
    s->config.library_path = s->library_path;
    s->on_snapshot = on_snapshot;
    s->context = context;
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&s->wake, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    (void)pthread_mutex_init(&s->lock, NULL);
    int rc = start_thread(s);
    if (rc == 0)
        return s;
    (void)err_set_errno(e, ERR_RESOURCE_EXHAUSTED, rc, "cannot start the sampler thread");
    atomic_store(&s->references, 1); /* the thread that is not there holds none */
    sampler_drop(s);
    return NULL;
}

bool gpu_stop(struct gpu_sampler *s)
{
    if (!s)
        return true;
    struct timespec deadline = timespec_of(time_mono_ns() + s->config.stop_timeout_ns);
    pthread_t thread = s->thread;
    (void)pthread_mutex_lock(&s->lock);
    s->is_stopping = true;
    (void)pthread_cond_broadcast(&s->wake);
    int rc = 0;
    while (!s->has_ended && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&s->wake, &s->lock, &deadline);
    bool has_ended = s->has_ended;
    (void)pthread_mutex_unlock(&s->lock);
    if (has_ended)
        (void)pthread_join(thread, NULL);
    else
        (void)pthread_detach(thread);
    sampler_drop(s);
    return has_ended;
}

struct snapshot *gpu_take(struct gpu_sampler *s)
{
    return atomic_exchange(&s->mailbox, NULL);
}

/* The thread acts on it at once rather than at its next tick. */
static void ask_release(struct gpu_sampler *s, bool is_released)
{
    if (atomic_exchange(&s->shared.is_released, is_released) == is_released)
        return;
    (void)pthread_mutex_lock(&s->lock);
    s->is_hurried = true;
    (void)pthread_cond_broadcast(&s->wake);
    (void)pthread_mutex_unlock(&s->lock);
}

void gpu_release(struct gpu_sampler *s)
{
    ask_release(s, true);
}

void gpu_resume(struct gpu_sampler *s)
{
    ask_release(s, false);
}

bool gpu_is_released(const struct gpu_sampler *s)
{
    return atomic_load(&s->shared.is_released);
}

void gpu_want(struct gpu_sampler *s, enum snapshot_field field, int64_t until_ns)
{
    if (field == SNAPSHOT_PCIE_TX)
        atomic_store(&s->shared.pcie_tx_wanted_until_ns, until_ns);
    else if (field == SNAPSHOT_PCIE_RX)
        atomic_store(&s->shared.pcie_rx_wanted_until_ns, until_ns);
}

const char *gpu_restart_reason(const struct gpu_sampler *s)
{
    return atomic_load(&s->shared.restart_reason);
}

/* The two words are not read as one: the worst that a race yields is the name of the next call with the age of the
 * last, and only in a text for people. */
bool gpu_is_stuck(const struct gpu_sampler *s, int64_t now_ns, int64_t limit_ns, char *out, size_t size)
{
    const char *call = atomic_load(&s->shared.call);
    int64_t since_ns = atomic_load(&s->shared.call_since_ns);
    if (!call || now_ns - since_ns < limit_ns)
        return false;
    char age[TIME_DURATION_MAX];
    time_format_duration(age, now_ns - since_ns);
    (void)snprintf(out, size, "%s for %s", call, age);
    return true;
}
