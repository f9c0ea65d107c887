/* Executes the plan for one device: chooses each field's source, asks it when it is due, turns counters into rates and
 * hands the outcome to the store, each with the time right after its own call (one slow GPU delays the others). */
#include "gpu/plan.h"

#include <math.h>

const struct gpu_row gpu_plan[GPU_ROW_COUNT] = {
#define X(field_, source_, id_, place_, devices_, pace_, form_, scale_)                                                \
    {SNAPSHOT_##field_, GPU_FROM_##source_, id_, place_, devices_, GPU_##pace_, GPU_##form_, scale_},
    GPU_PLAN(X)
#undef X
};

/* What one GPU moves over NVLink at most, in bytes per second and direction: twice today's 900 GB/s (NVLink 5). */
static const double nvlink_capacity = 2e12;

static const int64_t missing_max_ns = 15 * 60 * NS_PER_S;

enum { BATCH_MAX = 32 };

/* One pass over one device. */
struct pass {
    struct gpu_core *core;
    struct gpu_device *device;
    struct snapshot_device *place; /* in the store */
    bool is_slow_turn, has_ended;  /* ended: the device is lost or the session over; nothing more is asked */
    struct {
        bool is_done;
        int rc;
        int64_t taken_ns;
        double numbers[GPU_CALL_NUMBERS];
    } calls[GPU_CALL_COUNT]; /* each is made once, however many fields it serves */
    size_t n_fields, n_metrics;
    struct nvml_field_value fields[BATCH_MAX];
    struct nvml_gpm_metric metrics[BATCH_MAX];
    enum snapshot_field fields_of[BATCH_MAX], metrics_of[BATCH_MAX];
};

/* What an attempt brought: a code of NVML and, if that is 0, a value in the row's unit or a counter's state. */
struct answer {
    int rc;
    double number;
    uint64_t raw; /* RATE only */
    bool is_32_bit;
    int64_t taken_ns;
};

static uint8_t next_row(enum snapshot_kind kind, enum snapshot_field field, size_t from)
{
    for (size_t i = from; i < GPU_ROW_COUNT; i++)
        if (gpu_plan[i].field == field && (gpu_plan[i].devices & 1u << kind))
            return (uint8_t)i;
    return GPU_ROW_NONE;
}

void gpu_plan_reset(struct gpu_core *core, struct gpu_device *d)
{
    struct snapshot_device *place = snapshot_store_find(core->store, d->uuid);
    for (size_t f = 0; f < SNAPSHOT_FIELD_COUNT; f++) {
        d->rows[f] = next_row(d->kind, (enum snapshot_field)f, 0);
        d->is_tried[f] = false;
        d->rates[f] = (struct gpu_rate){0};
        if (d->rows[f] == GPU_ROW_NONE && place)
            snapshot_store_fail(place, (enum snapshot_field)f, SNAPSHOT_UNSUPPORTED);
    }
    d->pcie_capacity = 0;
    d->next_slow_ns = 0;
}

/* The present source does not have it: on to the next one, which is asked in the next cycle, whatever its pace. */
static void pass_over(struct pass *p, enum snapshot_field field)
{
    struct gpu_device *d = p->device;
    uint8_t next = next_row(d->kind, field, (size_t)d->rows[field] + 1);
    d->rows[field] = next;
    d->is_tried[field] = false;
    d->rates[field] = (struct gpu_rate){0};
    if (next == GPU_ROW_NONE)
        snapshot_store_fail(p->place, field, SNAPSHOT_UNSUPPORTED);
}

/* Permission for GPM comes and goes (DCGM #214): the last source of a field is not given up for it. */
static bool may_come_back(const struct pass *p, const struct gpu_row *row, int rc)
{
    return row->source == GPU_FROM_GPM && rc == NVML_RC_NO_PERMISSION &&
           next_row(p->device->kind, row->field, (size_t)(row - gpu_plan) + 1) == GPU_ROW_NONE;
}

static void fail(struct pass *p, const struct gpu_row *row, int rc)
{
    gpu_count_error(p->core, rc);
    if (rc == NVML_RC_UNKNOWN)
        p->core->n_unknown++;
    snapshot_store_fail(p->place, row->field, SNAPSHOT_FAILED);
    p->place->readings[row->field].code = rc;
}

/* What was read a moment ago is missing, like any other reading that stops: a busy GPU must not leave the value at
 * once. After the time for which a missing GPU counts (scaling-semantics 3) it is what the user has to see to. */
static void wait_for_permission(struct pass *p, const struct gpu_row *row)
{
    const struct snapshot_reading *r = &p->place->readings[row->field];
    bool is_recent = r->taken_ns != 0 && p->core->clock_ns() - r->taken_ns <= missing_max_ns;
    snapshot_store_fail(p->place, row->field, is_recent ? SNAPSHOT_FAILED : SNAPSHOT_UNSUPPORTED);
    p->place->readings[row->field].code = is_recent ? NVML_RC_NO_PERMISSION : 0;
}

static void settle_refusal(struct pass *p, const struct gpu_row *row, int rc)
{
    if (rc == NVML_RC_NOT_READY && row->source == GPU_FROM_GPM)
        return; /* the pair is being seeded: neither a value nor a failure */
    switch (nvml_rc_kind(rc)) {
    case NVML_KIND_ABSENT:
    case NVML_KIND_ABSENT_LOGGED:
        if (may_come_back(p, row, rc))
            wait_for_permission(p, row);
        else
            pass_over(p, row->field);
        return;
    case NVML_KIND_GPU_LOST:
        p->has_ended = true;
        gpu_inventory_lose(p->core, p->device, rc);
        return;
    case NVML_KIND_LIFECYCLE:
    case NVML_KIND_NEEDS_RESTART:
        p->has_ended = gpu_ends_session(p->core, rc);
        return;
    case NVML_KIND_TRANSIENT:
    case NVML_KIND_VALUE:
        fail(p, row, rc);
    }
}

/* Bytes per second that the link can carry; asked once. Unknown counts as generation 7 with 16 lanes. */
static double pcie_capacity(struct pass *p)
{
    static const double lane_bytes_per_s[] = {0, 0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9, 15.125e9};
    struct gpu_device *d = p->device;
    if (d->pcie_capacity > 0)
        return d->pcie_capacity;
    struct nvml_pcie_link link = {.generation = 7, .width = 16};
    (void)nvml_read_pcie_link_max(p->core->nvml, d->handle, &link);
    if (link.generation == 0 || link.generation >= ARRAY_LEN(lane_bytes_per_s))
        link.generation = ARRAY_LEN(lane_bytes_per_s) - 1;
    d->pcie_capacity = lane_bytes_per_s[link.generation] * (link.width ? link.width : 16);
    return d->pcie_capacity;
}

static double raw_capacity(struct pass *p, const struct gpu_row *row)
{
    bool is_pcie = row->field == SNAPSHOT_PCIE_TX || row->field == SNAPSHOT_PCIE_RX;
    return (is_pcie ? pcie_capacity(p) : nvlink_capacity) / row->scale;
}

static void settle_rate(struct pass *p, const struct gpu_row *row, const struct answer *answer)
{
    struct gpu_count count = {.raw = answer->raw, .is_32_bit = answer->is_32_bit, .capacity = raw_capacity(p, row)};
    double per_second;
    if (count.is_32_bit && !gpu_rate_is_unambiguous(count.capacity, p->core->config.period_ns))
        pass_over(p, row->field); /* it can go round more than once a cycle: no rate can be had from it */
    else if (gpu_rate_step(&p->device->rates[row->field], &count, answer->taken_ns, &per_second))
        snapshot_store_record(p->core->store, p->place, row->field, per_second * row->scale, answer->taken_ns);
}

static void settle(struct pass *p, enum snapshot_field field, const struct answer *answer)
{
    const struct gpu_row *row = &gpu_plan[p->device->rows[field]];
    p->device->is_tried[field] = true;
    if (answer->rc != NVML_RC_SUCCESS) {
        settle_refusal(p, row, answer->rc);
        return;
    }
    p->core->n_values++;
    if (row->form == GPU_RATE)
        settle_rate(p, row, answer);
    else if (isnan(answer->number))
        pass_over(p, field);
    else
        snapshot_store_record(p->core->store, p->place, field, answer->number * row->scale, answer->taken_ns);
}

static void ask_call(struct pass *p, const struct gpu_row *row)
{
    __typeof__(&p->calls[0]) call = &p->calls[row->id];
    if (!call->is_done) {
        call->rc = gpu_call_run(p->core, p->device->handle, (enum gpu_call)row->id, call->numbers);
        call->taken_ns = p->core->clock_ns();
        call->is_done = true;
    }
    settle(p, row->field,
           &(struct answer){.rc = call->rc, .number = call->numbers[row->place], .taken_ns = call->taken_ns});
}

/* The activity of a GPU instance is that of all its compute instances together: with more than one of them it says
 * nothing about each, so there is none. */
static bool shares_instance(const struct gpu_core *core, const struct gpu_device *d)
{
    for (size_t i = 0; d->kind == SNAPSHOT_MIG && i < core->devices.len; i++) {
        const struct gpu_device *other = &core->devices.items[i];
        if (other != d && other->kind == SNAPSHOT_MIG && other->gpu_instance == d->gpu_instance &&
            strcmp(other->parent_uuid, d->parent_uuid) == 0)
            return true;
    }
    return false;
}

static void collect(struct pass *p, const struct gpu_row *row)
{
    if (row->source == GPU_FROM_FIELD && p->n_fields < BATCH_MAX) {
        p->fields_of[p->n_fields] = row->field;
        p->fields[p->n_fields++] = (struct nvml_field_value){.field_id = row->id, .scope_id = row->place};
    } else if (row->source == GPU_FROM_GPM && p->n_metrics < BATCH_MAX) {
        p->metrics_of[p->n_metrics] = row->field;
        p->metrics[p->n_metrics++] = (struct nvml_gpm_metric){.metric_id = row->id};
    }
}

/* Calls at once; field values and GPM metrics are collected for one call each. */
static void ask_or_collect(struct pass *p, enum snapshot_field field)
{
    struct gpu_device *d = p->device;
    if (d->rows[field] == GPU_ROW_NONE)
        return;
    const struct gpu_row *row = &gpu_plan[d->rows[field]];
    if (row->pace == GPU_SLOWLY && !p->is_slow_turn && d->is_tried[field])
        return;
    if (row->source == GPU_FROM_CALL)
        ask_call(p, row);
    else
        collect(p, row);
}

static void ask_fields(struct pass *p)
{
    if (p->n_fields == 0 || p->has_ended)
        return;
    (void)nvml_read_fields(p->core->nvml, p->device->handle, p->fields, p->n_fields);
    int64_t taken_ns = p->core->clock_ns();
    for (size_t i = 0; i < p->n_fields && !p->has_ended; i++) {
        struct answer answer = {.taken_ns = taken_ns, .is_32_bit = p->fields[i].value_type == NVML_VALUE_U32};
        answer.rc = nvml_field_u64(&p->fields[i], &answer.raw);
        answer.number = (double)answer.raw;
        settle(p, p->fields_of[i], &answer);
    }
}

static void ask_gpm(struct pass *p)
{
    if (p->n_metrics == 0 || p->has_ended)
        return;
    if (shares_instance(p->core, p->device)) {
        for (size_t i = 0; i < p->n_metrics; i++)
            snapshot_store_fail(p->place, p->metrics_of[i], SNAPSHOT_UNSUPPORTED);
        return;
    }
    int64_t taken_ns = p->core->clock_ns();
    int rc = gpu_gpm_read(p->core, p->device, p->metrics, p->n_metrics, &taken_ns);
    for (size_t i = 0; i < p->n_metrics && !p->has_ended; i++) {
        struct answer answer = {.rc = rc ? rc : p->metrics[i].rc, .number = p->metrics[i].value, .taken_ns = taken_ns};
        settle(p, p->metrics_of[i], &answer);
    }
}

/* Slow turns of different devices fall into different cycles, so that no cycle carries them all. */
static int64_t next_slow_turn(const struct gpu_core *core, const struct gpu_device *d, int64_t now_ns)
{
    int64_t slow_ns = core->config.slow_period_ns, turns = slow_ns / core->config.period_ns;
    if (d->next_slow_ns == 0)
        return now_ns + slow_ns - (d - core->devices.items) % (turns > 0 ? turns : 1) * core->config.period_ns;
    return d->next_slow_ns + slow_ns > now_ns ? d->next_slow_ns + slow_ns : now_ns + slow_ns;
}

void gpu_plan_read(struct gpu_core *core, struct gpu_device *d)
{
    int64_t now_ns = core->clock_ns();
    struct pass p = {.core = core, .device = d, .place = snapshot_store_find(core->store, d->uuid)};
    if (!p.place || d->is_lost || !d->handle)
        return;
    p.is_slow_turn = now_ns >= d->next_slow_ns;
    if (p.is_slow_turn)
        d->next_slow_ns = next_slow_turn(core, d, now_ns);
    for (size_t f = 0; f < SNAPSHOT_FIELD_COUNT && !p.has_ended; f++)
        ask_or_collect(&p, (enum snapshot_field)f);
    ask_fields(&p);
    ask_gpm(&p);
}

static bool is_sampled(const struct gpu_device *d, enum snapshot_field field)
{
    return !d->is_lost && d->handle && d->rows[field] != GPU_ROW_NONE &&
           gpu_plan[d->rows[field]].source == GPU_FROM_SAMPLED;
}

static void sample_one(struct gpu_core *core, struct gpu_device *d, enum snapshot_field field)
{
    struct pass p = {.core = core, .device = d, .place = snapshot_store_find(core->store, d->uuid)};
    if (!p.place)
        return;
    uint32_t kb_per_s = 0;
    int rc = nvml_read_pcie_blocking(core->nvml, d->handle, gpu_plan[d->rows[field]].id, &kb_per_s);
    settle(&p, field, &(struct answer){.rc = rc, .number = kb_per_s, .taken_ns = core->clock_ns()});
}

void gpu_plan_sample_pcie(struct gpu_core *core)
{
    int64_t now_ns = core->clock_ns();
    const bool wanted[] = {atomic_load(&core->shared->pcie_tx_wanted_until_ns) > now_ns,
                           atomic_load(&core->shared->pcie_rx_wanted_until_ns) > now_ns};
    static const enum snapshot_field directions[] = {SNAPSHOT_PCIE_TX, SNAPSHOT_PCIE_RX};
    size_t places = core->devices.len * 2;
    for (size_t i = 0; i < places; i++) {
        size_t at = (core->sampled_cursor + i) % places;
        struct gpu_device *d = &core->devices.items[at / 2];
        if (!wanted[at % 2] || !is_sampled(d, directions[at % 2]))
            continue;
        core->sampled_cursor = at + 1;
        sample_one(core, d, directions[at % 2]);
        return;
    }
}

void gpu_plan_write_periods(struct gpu_core *core)
{
    int64_t *periods = core->header->field_period_ns, slow_ns = core->config.slow_period_ns;
    if (slow_ns < core->config.period_ns) /* nothing is read more often than the main cycle comes round */
        slow_ns = core->config.period_ns;
    for (size_t i = 0; i < GPU_ROW_COUNT; i++)
        periods[gpu_plan[i].field] = gpu_plan[i].pace == GPU_SLOWLY ? slow_ns : 0;
    int64_t n_sampled = 0;
    for (size_t i = 0; i < core->devices.len; i++)
        n_sampled += is_sampled(&core->devices.items[i], SNAPSHOT_PCIE_TX) +
                     is_sampled(&core->devices.items[i], SNAPSHOT_PCIE_RX);
    if (n_sampled > 0)
        periods[SNAPSHOT_PCIE_TX] = periods[SNAPSHOT_PCIE_RX] = n_sampled * core->config.period_ns;
}
