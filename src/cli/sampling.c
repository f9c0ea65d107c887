/* Waiting for the sampler of gpu with a deadline. Which snapshot is good enough is the command's to say. */
#include "cli/sampling.h"

#include "nvml/nvml.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* On the sampler's thread. */
static void on_snapshot(void *context)
{
    const struct sampling *s = context;
    uint64_t one = 1;
    (void)!write(s->event, &one, sizeof(one)); /* a full counter is readable as well */
}

int sampling_start(struct sampling *s, const struct gpu_config *config, struct err *e)
{
    *s = (struct sampling){.event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (s->event < 0)
        return err_set_errno(e, ERR_RESOURCE_EXHAUSTED, errno, "cannot wait for readings");
    s->gpu = gpu_start(config, on_snapshot, s, e);
    return s->gpu ? 0 : -1;
}

bool sampling_take(struct sampling *s)
{
    uint64_t count;
    (void)!read(s->event, &count, sizeof(count));
    struct snapshot *snapshot = gpu_take(s->gpu);
    if (!snapshot)
        return false;
    snapshot_unref(s->newest);
    s->newest = snapshot;
    return true;
}

/* In whole milliseconds, rounded up so that the deadline has passed afterwards. */
static int left_ms(int64_t deadline_ns)
{
    int64_t left_ns = deadline_ns - time_mono_ns();
    return left_ns <= 0 ? 0 : (int)((left_ns + NS_PER_MS - 1) / NS_PER_MS);
}

bool sampling_wait(struct sampling *s, bool (*is_enough)(const struct snapshot *), int64_t deadline_ns)
{
    for (;;) {
        (void)sampling_take(s);
        if (s->newest && is_enough(s->newest))
            return true;
        int wait_ms = left_ms(deadline_ns);
        if (wait_ms == 0)
            return false;
        struct pollfd fd = {.fd = s->event, .events = POLLIN};
        (void)poll(&fd, 1, wait_ms);
    }
}

bool sampling_has_tried(const struct snapshot *snapshot)
{
    return snapshot->driver != SNAPSHOT_DRIVER_STARTING;
}

bool sampling_has_rates(const struct snapshot *snapshot)
{
    bool is_starting = snapshot->driver == SNAPSHOT_DRIVER_STARTING;
    return !is_starting && (snapshot->driver != SNAPSHOT_DRIVER_OK || snapshot->sampler.cycles >= 2);
}

bool sampling_has_unopened(const struct snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->sampler.n_error_codes; i++)
        if (nvml_rc_kind(snapshot->sampler.errors_by_code[i].code) == NVML_KIND_GPU_LOST)
            return true;
    return false;
}

void sampling_explain(const struct sampling *s, int64_t waited_ns, struct err *e)
{
    char call[128], time[TIME_DURATION_MAX];
    time_format_duration(time, waited_ns);
    if (s->gpu && gpu_is_stuck(s->gpu, time_mono_ns(), waited_ns / 2, call, sizeof(call)))
        (void)err_set(e, ERR_DEADLINE_EXCEEDED, "the driver does not answer: %s", call);
    else
        (void)err_set(e, ERR_DEADLINE_EXCEEDED, "no reading of the GPUs within %s", time);
}

void sampling_stop(struct sampling *s)
{
    (void)gpu_stop(s->gpu);
    snapshot_unref(s->newest);
    if (s->event >= 0)
        (void)close(s->event);
    *s = (struct sampling){.event = -1};
}
