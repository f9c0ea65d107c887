/* Event sets: Xids, ECC errors and MIG changes of the scenario, one a wait. */
#include "nvmlsim/sim.h"

#include <string.h>

enum { SETS_MAX = 256, REGISTERED_MAX = SCENARIO_GPUS_MAX };

/* A waiting call looks this often whether something has happened. */
#define WAIT_STEP_MS 5.0

/* Sets are slots of a table that is never given back, so that a stale pointer is an error and not a crash. */
struct nvml_event_set {
    bool is_used;
    size_t n_registered;
    struct {
        char uuid[48];
        uint64_t types;
        double since_s;
    } registered[REGISTERED_MAX];
    uint64_t generation; /* of the scenario that `next` counts in */
    size_t next;         /* first event of the scenario that was not looked at */
    double seen_s;
};

static struct nvml_event_set sets[SETS_MAX];

static bool is_set(const struct nvml_event_set *set)
{
    uintptr_t at = (uintptr_t)set, first = (uintptr_t)sets;
    return at >= first && at < first + sizeof(sets) && (at - first) % sizeof(sets[0]) == 0 && set->is_used;
}

int nvmlEventSetCreate(struct nvml_event_set **set)
{
    SIM_CALL(c);
    if (!set)
        return NVML_RC_INVALID_ARGUMENT;
    for (size_t i = 0; i < SETS_MAX; i++) {
        if (sets[i].is_used)
            continue;
        memset(&sets[i], 0, sizeof(sets[i]));
        sets[i].is_used = true;
        sets[i].seen_s = c.t_s;
        *set = &sets[i];
        return NVML_RC_SUCCESS;
    }
    return NVML_RC_INSUFFICIENT_RESOURCES;
}

int nvmlEventSetFree(struct nvml_event_set *set)
{
    SIM_CALL(c);
    if (!is_set(set))
        return NVML_RC_INVALID_ARGUMENT;
    set->is_used = false;
    return NVML_RC_SUCCESS;
}

static uint64_t supported_types(const struct gpu *g)
{
    uint64_t types = NVML_EVENT_SINGLE_BIT_ECC | NVML_EVENT_DOUBLE_BIT_ECC | NVML_EVENT_PSTATE |
                     NVML_EVENT_XID_CRITICAL | NVML_EVENT_CLOCK;
    return types | (g->board->can & CAN_MIG ? NVML_EVENT_MIG_CONFIG_CHANGE : 0);
}

int nvmlDeviceGetSupportedEventTypes(struct nvml_device *device, uint64_t *types)
{
    SIM_DEVICE(c, device, SIM_WHOLE);
    return sim_u64(types, supported_types(c.gpu));
}

/* One type that is not supported refuses the whole registration. Only whole GPUs can be registered. */
int nvmlDeviceRegisterEvents(struct nvml_device *device, uint64_t types, struct nvml_event_set *set)
{
    SIM_DEVICE(c, device, SIM_ANY);
    if (!is_set(set) || c.instance)
        return NVML_RC_INVALID_ARGUMENT;
    if (types & ~supported_types(c.gpu))
        return NVML_RC_NOT_SUPPORTED;
    for (size_t i = 0; i < set->n_registered; i++)
        if (!strcmp(set->registered[i].uuid, c.gpu->uuid)) {
            set->registered[i].types |= types;
            return NVML_RC_SUCCESS;
        }
    if (set->n_registered == REGISTERED_MAX)
        return NVML_RC_INSUFFICIENT_RESOURCES;
    size_t at = set->n_registered++;
    memcpy(set->registered[at].uuid, c.gpu->uuid, sizeof(set->registered[at].uuid));
    set->registered[at].types = types;
    set->registered[at].since_s = c.t_s;
    return NVML_RC_SUCCESS;
}

/* A registered GPU that is lost answers at once, every time. */
static int check_lost(const struct sim_call *c, const struct nvml_event_set *set)
{
    size_t n = player_gpu_count(c->player, c->t_s);
    for (size_t i = 0; i < set->n_registered; i++) {
        size_t at = 0;
        while (at < n && strcmp(c->player->scenario->gpus[at].uuid, set->registered[i].uuid) != 0)
            at++;
        if (at == n)
            return NVML_RC_GPU_IS_LOST;
        struct player_call call = {c->function, at, c->t_s, true};
        struct player_verdict v = player_judge(c->player, &call);
        if (v.rc == NVML_RC_GPU_IS_LOST || v.rc == NVML_RC_UNKNOWN)
            return v.rc;
    }
    return NVML_RC_SUCCESS;
}

static uint64_t type_of(const struct event *event)
{
    switch (event->kind) {
    case EVENT_XID:
        return NVML_EVENT_XID_CRITICAL;
    case EVENT_ECC:
        return event->ecc[ECC_UNCORRECTED] > 0 ? NVML_EVENT_DOUBLE_BIT_ECC
               : event->ecc[ECC_CORRECTED] > 0 ? NVML_EVENT_SINGLE_BIT_ECC
                                               : 0;
    case EVENT_MIG:
        return NVML_EVENT_MIG_CONFIG_CHANGE;
    case EVENT_THROTTLE:
        return NVML_EVENT_CLOCK;
    case EVENT_COUNT:
    case EVENT_RECOVERY:
        break;
    }
    return 0;
}

/* Which registered GPU takes this event, by its index in the scenario; SIZE_MAX = none. */
static size_t taker(const struct sim_call *c, const struct nvml_event_set *set, const struct event *event)
{
    uint64_t type = type_of(event);
    for (size_t i = 0; i < set->n_registered; i++) {
        if (!(set->registered[i].types & type) || event->at_s <= set->registered[i].since_s)
            continue;
        for (size_t at = 0; at < c->player->scenario->n_gpus; at++)
            if ((event->gpu == at || event->gpu == EVENT_ALL_GPUS) &&
                !strcmp(c->player->scenario->gpus[at].uuid, set->registered[i].uuid))
                return at;
    }
    return SIZE_MAX;
}

/* After a change of the scenario, go on behind the time that was seen. */
static void catch_up(const struct sim_call *c, struct nvml_event_set *set)
{
    const struct scenario *s = c->player->scenario;
    if (set->generation == sim_generation())
        return;
    set->generation = sim_generation();
    if (set->seen_s > c->t_s)
        set->seen_s = 0; /* the clock was restarted */
    set->next = 0;
    while (set->next < s->n_events && s->events[set->next].at_s <= set->seen_s)
        set->next++;
}

static bool next_event(const struct sim_call *c, struct nvml_event_set *set, struct nvml_event_data *ret)
{
    const struct scenario *s = c->player->scenario;
    catch_up(c, set);
    while (set->next < s->n_events && s->events[set->next].at_s <= c->t_s) {
        const struct event *event = &s->events[set->next++];
        size_t gpu = taker(c, set, event);
        set->seen_s = event->at_s;
        if (gpu == SIZE_MAX)
            continue;
        *ret = (struct nvml_event_data){
            .device = sim_handle(&s->gpus[gpu], NULL, NULL),
            .type = type_of(event),
            .data = event->kind == EVENT_XID ? event->number : 0,
            .gpu_instance_id = NVML_NONE_U32,
            .compute_instance_id = NVML_NONE_U32,
        };
        return true;
    }
    return false;
}

static int wait_for(struct sim_call *c, struct nvml_event_set *set, uint32_t timeout_ms, struct nvml_event_data *ret)
{
    double until_ms = (double)timeout_ms, waited_ms = 0;
    for (;;) {
        if (!is_set(set))
            return NVML_RC_INVALID_ARGUMENT;
        int rc = check_lost(c, set);
        if (rc != NVML_RC_SUCCESS)
            return rc;
        if (next_event(c, set, ret))
            return NVML_RC_SUCCESS;
        if (waited_ms >= until_ms)
            return NVML_RC_TIMEOUT;
        rc = sim_pause(c, WAIT_STEP_MS);
        if (rc != NVML_RC_SUCCESS)
            return rc;
        waited_ms += WAIT_STEP_MS;
    }
}

int nvmlEventSetWait_v2(struct nvml_event_set *set, struct nvml_event_data *data, uint32_t timeout_ms)
{
    SIM_CALL(c);
    struct nvml_event_data got;
    if (!data)
        return NVML_RC_INVALID_ARGUMENT;
    int rc = wait_for(&c, set, timeout_ms, &got);
    if (rc == NVML_RC_SUCCESS)
        *data = got;
    return rc;
}

/* Knows nothing of instances: writes the first 24 bytes. */
int nvmlEventSetWait(struct nvml_event_set *set, struct nvml_event_data *data, uint32_t timeout_ms)
{
    SIM_CALL(c);
    struct nvml_event_data got;
    if (!data)
        return NVML_RC_INVALID_ARGUMENT;
    int rc = wait_for(&c, set, timeout_ms, &got);
    if (rc == NVML_RC_SUCCESS)
        memcpy(data, &got, offsetof(struct nvml_event_data, gpu_instance_id));
    return rc;
}
