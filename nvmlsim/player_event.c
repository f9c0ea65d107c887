/* What events and faults make of a moment: counts, throttling, and verdicts on calls. */
#include "nvmlsim/player.h"

#include "nvml/abi.h"

#include <math.h>
#include <string.h>

static bool concerns(uint32_t event_gpu, size_t gpu)
{
    return event_gpu == EVENT_ALL_GPUS || event_gpu == gpu;
}

double player_ecc(const struct player *p, size_t gpu, enum ecc_count which, double t_s)
{
    const struct scenario *s = p->scenario;
    double count = s->gpus[gpu].ecc[which];
    for (size_t i = 0; i < s->n_events && s->events[i].at_s <= t_s; i++)
        if (s->events[i].kind == EVENT_ECC && concerns(s->events[i].gpu, gpu))
            count += s->events[i].ecc[which];
    return count;
}

/* The last number that events of this kind have set, or `first`. */
static uint64_t last_set(const struct scenario *s, enum event_kind kind, size_t gpu, uint64_t first, double t_s)
{
    for (size_t i = 0; i < s->n_events && s->events[i].at_s <= t_s; i++)
        if (s->events[i].kind == kind && concerns(s->events[i].gpu, gpu))
            first = s->events[i].number;
    return first;
}

uint64_t player_throttle(const struct player *p, size_t gpu, double t_s)
{
    const struct gpu *g = &p->scenario->gpus[gpu];
    uint64_t bits = last_set(p->scenario, EVENT_THROTTLE, gpu, g->throttle, t_s);
    if (player_value(p, gpu, SIGNAL_UTILIZATION, t_s) <= 0)
        bits |= NVML_REASON_GPU_IDLE;
    if (player_value(p, gpu, SIGNAL_POWER, t_s) >= g->board->limit_w)
        bits |= NVML_REASON_SW_POWER_CAP;
    return bits;
}

double player_throttled_s(const struct player *p, size_t gpu, uint64_t bits, double t_s)
{
    const struct scenario *s = p->scenario;
    uint64_t now = s->gpus[gpu].throttle;
    double since = 0, sum = 0;
    for (size_t i = 0; i < s->n_events && s->events[i].at_s <= t_s; i++) {
        if (s->events[i].kind != EVENT_THROTTLE || !concerns(s->events[i].gpu, gpu))
            continue;
        sum += now & bits ? s->events[i].at_s - since : 0;
        since = s->events[i].at_s;
        now = s->events[i].number;
    }
    return sum + (now & bits ? t_s - since : 0);
}

uint32_t player_recovery_action(const struct player *p, size_t gpu, double t_s)
{
    return (uint32_t)last_set(p->scenario, EVENT_RECOVERY, gpu, p->scenario->gpus[gpu].recovery_action, t_s);
}

/* ---- faults ---- */

#define X(name, key, rc) rc,
static const int fault_rcs[FAULT_COUNT] = {FAULTS(X)};
#undef X

static bool is_active(const struct fault *f, double t_s)
{
    return t_s >= f->from_s && t_s < f->until_s;
}

static bool names(const struct fault *f, const char *function)
{
    if (!f->function)
        return false;
    return f->is_prefix ? !strncmp(f->function, function, strlen(f->function)) : !strcmp(f->function, function);
}

/* Faults that say nothing of functions hit device calls; those of the driver hit everything that talks to it. Init and
 * the calls that answer without a driver are hit only when they are named. */
static bool hits(const struct fault *f, const struct player_call *call)
{
    bool is_init = !strncmp(call->function, "nvmlInit", 8);
    bool is_of_driver = f->kind == FAULT_DRIVER_NOT_LOADED || f->kind == FAULT_LIB_RM_VERSION_MISMATCH;
    if (!is_active(f, call->t_s) || f->field)
        return false;
    if (f->gpu != EVENT_ALL_GPUS && f->gpu != call->gpu)
        return false;
    if (f->function)
        return names(f, call->function);
    if (f->kind == FAULT_INIT_HANG)
        return is_init;
    if (is_init)
        return is_of_driver;
    if (!strcmp(call->function, "nvmlSystemGetNVMLVersion") || !strcmp(call->function, "nvmlShutdown"))
        return false;
    bool is_of_gpu = f->kind == FAULT_LOST || f->kind == FAULT_NO_PERMISSION || f->kind == FAULT_RESET_REQUIRED;
    return !is_of_gpu || call->gpu != SIZE_MAX;
}

struct player_verdict player_judge(const struct player *p, const struct player_call *call)
{
    struct player_verdict v = {0};
    struct player_call first = {call->function, SIZE_MAX, call->t_s, false};
    for (size_t i = 0; i < p->scenario->n_faults; i++) {
        const struct fault *f = &p->scenario->faults[i];
        if (!hits(f, call) || (call->is_again && hits(f, &first)))
            continue;
        if (f->kind == FAULT_SLOW)
            v.slow_ms += f->slow_ms;
        else if (f->kind == FAULT_HUNG || f->kind == FAULT_INIT_HANG)
            v.is_hung = true;
        else if (v.rc == 0)
            v.rc = fault_rcs[f->kind];
    }
    return v;
}

bool player_is_field_off(const struct player *p, size_t gpu, uint32_t field, double t_s)
{
    for (size_t i = 0; i < p->scenario->n_faults; i++) {
        const struct fault *f = &p->scenario->faults[i];
        if (f->field == field && is_active(f, t_s) && concerns(f->gpu, gpu))
            return true;
    }
    return false;
}
