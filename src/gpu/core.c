/* The session's life and one cycle of it: open, read, close, wait, let go. It owns the store; it has no thread. */
#include "gpu/core.h"

#include <stdio.h>
#include <string.h>

/* So many cycles in a row with nothing but "unknown error": the device access was taken from the process. */
enum { ALL_UNKNOWN_CYCLES = 3 };

static int64_t or_default(int64_t value, int64_t fallback)
{
    return value > 0 ? value : fallback;
}

struct gpu_config gpu_config_complete(const struct gpu_config *config)
{
    return (struct gpu_config){
        .library_path = config->library_path,
        .period_ns = or_default(config->period_ns, NS_PER_S),
        .slow_period_ns = or_default(config->slow_period_ns, 10 * NS_PER_S),
        .retry_min_ns = or_default(config->retry_min_ns, 5 * NS_PER_S),
        .retry_max_ns = or_default(config->retry_max_ns, 30 * NS_PER_S),
        .restart_after_ns = or_default(config->restart_after_ns, 300 * NS_PER_S),
        .has_processes = config->has_processes,
        .process_period_ns = or_default(config->process_period_ns, 5 * NS_PER_S),
        .stop_timeout_ns = or_default(config->stop_timeout_ns, 2 * NS_PER_S),
    };
}

/* ---- counting ---- */

/* NVML tells of each call before it (symbol) and after it (NULL). */
static void note_call(void *context, const char *symbol)
{
    struct gpu_core *core = context;
    if (symbol) {
        atomic_store(&core->shared->call_since_ns, core->clock_ns());
        core->header->sampler.nvml_calls++;
    }
    atomic_store(&core->shared->call, symbol);
}

void gpu_count_error(struct gpu_core *core, int rc)
{
    struct snapshot_sampler *counts = &core->header->sampler;
    counts->errors++;
    for (size_t i = 0; i < counts->n_error_codes; i++) {
        if (counts->errors_by_code[i].code == rc) {
            counts->errors_by_code[i].count++;
            return;
        }
    }
    if (counts->n_error_codes == ARRAY_LEN(counts->errors_by_code))
        return;
    counts->errors_by_code[counts->n_error_codes].code = rc;
    counts->errors_by_code[counts->n_error_codes++].count = 1;
}

bool gpu_ends_session(struct gpu_core *core, int rc)
{
    enum nvml_rc_kind kind = nvml_rc_kind(rc);
    bool ends = kind == NVML_KIND_LIFECYCLE || kind == NVML_KIND_NEEDS_RESTART;
    if (ends && !core->ending_rc) {
        gpu_count_error(core, rc);
        core->ending_rc = rc;
    }
    return ends;
}

/* ---- state ---- */

static void set_state(struct gpu_core *core, enum snapshot_driver_state state, const char *text)
{
    core->header->driver = state;
    (void)str_copy(core->header->driver_text, sizeof(core->header->driver_text), str_of(text));
}

static enum snapshot_driver_state state_of_rc(int rc)
{
    if (rc == NVML_RC_DRIVER_NOT_LOADED)
        return SNAPSHOT_DRIVER_NOT_LOADED;
    if (rc == NVML_RC_LIB_RM_VERSION_MISMATCH)
        return SNAPSHOT_DRIVER_MISMATCH;
    return SNAPSHOT_DRIVER_FAILED;
}

static void set_state_of_rc(struct gpu_core *core, int rc)
{
    char text[SNAPSHOT_TEXT_MAX];
    (void)snprintf(text, sizeof(text), "%s: %s", nvml_rc_text(rc), nvml_init_advice(rc));
    set_state(core, state_of_rc(rc), text);
}

/* Library and driver are what only a new process can get right: a container keeps the library and the devices that it
 * was started with. Only a reading ends the doubt, not an nvmlInit that succeeds. */
static void note_hopeless(struct gpu_core *core, int rc)
{
    int64_t now_ns = core->clock_ns();
    if (!core->hopeless_since_ns)
        core->hopeless_since_ns = now_ns;
    if (now_ns - core->hopeless_since_ns < core->config.restart_after_ns)
        return;
    atomic_store(&core->shared->restart_reason,
                 rc == NVML_RC_LIB_RM_VERSION_MISMATCH
                     ? "the NVIDIA driver was upgraded and this process still has the old libnvidia-ml.so.1: only a "
                       "restart of the container brings the new one"
                     : "NVML has answered \"unknown error\" for too long, as it does when a control group update has "
                       "taken the devices from the container: only a restart of the container brings them back");
}

static void note_hope(struct gpu_core *core)
{
    core->hopeless_since_ns = 0;
    atomic_store(&core->shared->restart_reason, NULL);
}

/* ---- opening and closing ---- */

/* The wait doubles up to the limit until a reading has succeeded. */
static void back_off(struct gpu_core *core, int64_t longest_ns)
{
    int64_t wait_ns = core->retry_wait_ns ? core->retry_wait_ns * 2 : core->config.retry_min_ns;
    core->retry_wait_ns = wait_ns < longest_ns ? wait_ns : longest_ns;
    core->retry_ns = core->clock_ns() + core->retry_wait_ns;
}

static void close_session(struct gpu_core *core)
{
    if (!core->nvml)
        return;
    gpu_inventory_forget(core);
    nvml_close(core->nvml);
    core->nvml = NULL;
}

/* Back to CLOSED after a failure; the state says why, the devices stay and their readings age. */
static void fall_back(struct gpu_core *core, int64_t longest_wait_ns)
{
    close_session(core);
    core->phase = GPU_CLOSED;
    back_off(core, longest_wait_ns);
}

static bool open_library(struct gpu_core *core)
{
    struct err e = {0};
    core->nvml = nvml_open(core->config.library_path, &e);
    if (core->nvml) {
        nvml_observe(core->nvml, note_call, core);
        core->header->is_simulated = nvml_is_simulated(core->nvml);
        (void)str_copy(core->header->library_path, sizeof(core->header->library_path),
                       str_of(nvml_library_path(core->nvml)));
        return true;
    }
    set_state(core, e.class == ERR_UNAVAILABLE ? SNAPSHOT_DRIVER_NO_LIBRARY : SNAPSHOT_DRIVER_FAILED, e.text);
    return false;
}

static bool initialise(struct gpu_core *core)
{
    int rc = nvml_init(core->nvml);
    (void)str_copy(core->header->nvml_version, sizeof(core->header->nvml_version),
                   str_of(nvml_library_version(core->nvml)));
    if (rc == NVML_RC_SUCCESS) {
        (void)str_copy(core->header->driver_version, sizeof(core->header->driver_version),
                       str_of(nvml_driver_version(core->nvml)));
        return true;
    }
    gpu_count_error(core, rc);
    set_state_of_rc(core, rc);
    if (nvml_init_rc_kind(rc) == NVML_KIND_NEEDS_RESTART)
        note_hopeless(core, rc);
    else
        note_hope(core);
    return false;
}

static void open_session(struct gpu_core *core)
{
    bool is_first = core->header->sampler.reinits == 0 && core->header->driver == SNAPSHOT_DRIVER_STARTING;
    if (!is_first)
        core->header->sampler.reinits++;
    if (open_library(core) && initialise(core))
        core->phase = GPU_OPEN;
    else
        fall_back(core, core->config.retry_max_ns);
}

/* ---- an open session ---- */

static void read_devices(struct gpu_core *core)
{
    core->n_values = core->n_unknown = 0;
    for (size_t i = 0; i < core->devices.len && !core->ending_rc; i++)
        gpu_plan_read(core, &core->devices.items[i]);
    if (!core->ending_rc)
        gpu_process_read(core);
    if (!core->ending_rc)
        gpu_plan_sample_pcie(core);
    if (!core->ending_rc)
        gpu_events_poll(core);
}

static bool is_any_left(const struct gpu_core *core)
{
    for (size_t i = 0; i < core->devices.len; i++)
        if (!core->devices.items[i].is_lost)
            return true;
    return false;
}

/* Nothing visible: the list is only read when NVML starts, so it is started again. All lost: the same, and our handles
 * must not stand in the way of a reset; but at leisure, for each nvmlInit may hang on such a machine. */
static void end_without_devices(struct gpu_core *core)
{
    int64_t longest_wait_ns = core->config.retry_max_ns;
    if (core->count == 0)
        set_state(core, SNAPSHOT_DRIVER_NO_DEVICES,
                  "the driver shows no GPU to this process: check NVIDIA_VISIBLE_DEVICES=all and the device access of "
                  "the container");
    else if (core->devices.len == 0)
        set_state(core, SNAPSHOT_DRIVER_NO_DEVICES,
                  "the driver lists GPUs and opens none of them for this process: check its device access "
                  "(privileged, or CDI)");
    else {
        set_state(core, SNAPSHOT_DRIVER_FAILED, "all GPUs are lost: see the kernel log for Xid messages");
        longest_wait_ns *= 10;
    }
    fall_back(core, longest_wait_ns);
}

/* A driver that does not count its GPUs is not well, though those that we know may still answer: they are read on. */
static void set_state_of_count(struct gpu_core *core)
{
    char text[SNAPSHOT_TEXT_MAX];
    (void)snprintf(text, sizeof(text), "the driver does not count its GPUs: %s", nvml_rc_text(core->count_rc));
    set_state(core, core->count_rc ? SNAPSHOT_DRIVER_FAILED : SNAPSHOT_DRIVER_OK, core->count_rc ? text : "");
}

static void run_session(struct gpu_core *core)
{
    gpu_inventory_refresh(core);
    if (!core->ending_rc)
        read_devices(core);
    bool is_all_unknown = core->n_values == 0 && core->n_unknown > 0;
    core->all_unknown_cycles = is_all_unknown ? core->all_unknown_cycles + 1 : 0;
    if (!core->ending_rc && core->all_unknown_cycles >= ALL_UNKNOWN_CYCLES)
        core->ending_rc = NVML_RC_UNKNOWN;
    if (core->count_rc && !core->ending_rc && core->devices.len == 0)
        core->ending_rc = core->count_rc; /* nothing is known, and nothing can be found out */
    if (core->n_values > 0) {
        note_hope(core);
        core->retry_wait_ns = 0;
    }
    if (core->ending_rc) {
        set_state_of_rc(core, core->ending_rc);
        if (nvml_init_rc_kind(core->ending_rc) == NVML_KIND_NEEDS_RESTART)
            note_hopeless(core, core->ending_rc);
        fall_back(core, core->config.retry_max_ns);
    } else if (core->count == 0 || !is_any_left(core)) {
        end_without_devices(core);
    } else {
        set_state_of_count(core);
        gpu_plan_write_periods(core);
    }
}

static void let_go(struct gpu_core *core)
{
    close_session(core);
    core->phase = GPU_RELEASED;
    set_state(core, SNAPSHOT_DRIVER_RELEASED, "NVML was let go of on request; send SIGUSR2 to take it up again");
}

static void take_up(struct gpu_core *core)
{
    core->was_released = true;
    core->retry_wait_ns = 0;
    core->phase = GPU_CLOSED;
    open_session(core);
}

/* ---- the cycle ---- */

static void advance(struct gpu_core *core)
{
    bool is_released = atomic_load(&core->shared->is_released);
    switch (core->phase) {
    case GPU_CLOSED:
        if (is_released)
            let_go(core); /* somebody is about to touch the driver: do not open it meanwhile */
        else if (core->clock_ns() >= core->retry_ns)
            open_session(core); /* the back-off is over */
        break;
    case GPU_OPEN:
        if (is_released)
            let_go(core); /* an open handle blocks MIG changes, resets and driver upgrades */
        break;
    case GPU_RELEASED:
        if (!is_released)
            take_up(core); /* whoever asked for it is done: no back-off */
        break;
    }
    if (core->phase == GPU_OPEN)
        run_session(core);
}

void gpu_core_cycle(struct gpu_core *core)
{
    int64_t start_ns = core->clock_ns();
    core->ending_rc = 0;
    advance(core);
    gpu_process_age(core);
    struct snapshot_sampler *counts = &core->header->sampler;
    counts->cycles++;
    counts->last_cycle_seconds = (double)(core->clock_ns() - start_ns) / (double)NS_PER_S;
    if (counts->last_cycle_seconds > counts->max_cycle_seconds)
        counts->max_cycle_seconds = counts->last_cycle_seconds;
}

struct snapshot *gpu_core_publish(struct gpu_core *core)
{
    return snapshot_store_publish(core->store, core->clock_ns());
}

struct gpu_core *gpu_core_new(const struct gpu_config *config, struct gpu_shared *shared, int64_t (*clock_ns)(void))
{
    struct gpu_core *core = mem_new(struct gpu_core);
    core->config = gpu_config_complete(config);
    core->shared = shared;
    core->clock_ns = clock_ns;
    core->wall_ns = time_wall_ns;
    core->store = snapshot_store_new(core->config.period_ns);
    core->header = snapshot_store_header(core->store);
    core->header->period_ns = core->config.period_ns;
    set_state(core, SNAPSHOT_DRIVER_STARTING, "NVML has not been opened yet");
    gpu_plan_write_periods(core);
    return core;
}

void gpu_core_free(struct gpu_core *core)
{
    if (!core)
        return;
    close_session(core);
    for (size_t i = 0; i < core->devices.len; i++)
        gpu_process_fini(&core->devices.items[i]);
    vec_fini(&core->devices);
    vec_fini(&core->list);
    vec_fini(&core->found);
    vec_fini(&core->fresh);
    vec_fini(&core->samples);
    vec_fini(&core->usages);
    snapshot_store_free(core->store);
    free(core);
}
