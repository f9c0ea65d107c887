/* Values, counters and derived defaults. The defaults are linear in another signal, so that their integrals are as
 * exact as those of given curves. */
#include "nvmlsim/player.h"

#include "nvml/abi.h"

#include <math.h>
#include <string.h>

/* value = offset + factor * base signal */
struct rule {
    enum signal base;
    double factor, offset;
};

static struct rule default_rule(const struct board *b, enum signal signal)
{
    static const struct rule rules[SIGNAL_COUNT] = {
        [SIGNAL_MEMORY_UTILIZATION] = {SIGNAL_UTILIZATION, 0.6, 0},
        [SIGNAL_TEMPERATURE] = {SIGNAL_UTILIZATION, 0.45, 30},
        [SIGNAL_MEMORY_TEMPERATURE] = {SIGNAL_TEMPERATURE, 1, 8},
        [SIGNAL_PCIE_TX] = {SIGNAL_UTILIZATION, 5000, 0},
        [SIGNAL_PCIE_RX] = {SIGNAL_UTILIZATION, 15000, 0},
        [SIGNAL_SM_ACTIVITY] = {SIGNAL_UTILIZATION, 0.85, 0},
        [SIGNAL_SM_OCCUPANCY] = {SIGNAL_SM_ACTIVITY, 0.5, 0},
        [SIGNAL_TENSOR_ACTIVITY] = {SIGNAL_SM_ACTIVITY, 0.5, 0},
        [SIGNAL_DRAM_ACTIVITY] = {SIGNAL_UTILIZATION, 0.6, 0},
        [SIGNAL_FP32_ACTIVITY] = {SIGNAL_SM_ACTIVITY, 0.2, 0},
        [SIGNAL_FP16_ACTIVITY] = {SIGNAL_SM_ACTIVITY, 0.3, 0},
    };
    if (signal == SIGNAL_POWER)
        return (struct rule){SIGNAL_UTILIZATION, (0.95 * b->limit_w - b->idle_w) / 100, b->idle_w};
    return rules[signal]; /* the rest is 0 */
}

void player_init(struct player *p, struct scenario *s)
{
    *p = (struct player){.scenario = s};
    p->bases = (struct player_base *)mem_new_array(s->n_gpus + 1, sizeof(*p->bases));
}

void player_fini(struct player *p)
{
    scenario_free(p->scenario);
    free(p->bases);
    *p = (struct player){0};
}

size_t player_gpu_count(const struct player *p, double t_s)
{
    size_t n = p->scenario->n_gpus;
    for (size_t i = 0; i < p->scenario->n_events && p->scenario->events[i].at_s <= t_s; i++)
        if (p->scenario->events[i].kind == EVENT_COUNT)
            n = p->scenario->events[i].number;
    return n;
}

const struct mig_layout *player_layout(const struct gpu *g, double t_s)
{
    const struct mig_layout *l = g->layouts;
    for (size_t i = 1; i < g->n_layouts && g->layouts[i].since_s <= t_s; i++)
        l = &g->layouts[i];
    return l;
}

bool player_is_running(const struct process *process, double t_s)
{
    return t_s >= process->from_s && t_s < process->until_s;
}

/* ---- MIG instances ---- */

static double process_memory(const struct gpu *g, uint32_t gpu_instance, double t_s)
{
    double sum = 0;
    for (size_t i = 0; i < g->n_processes; i++)
        if (g->processes[i].gpu_instance == gpu_instance && player_is_running(&g->processes[i], t_s))
            sum += curve_value(&g->processes[i].memory_mib, t_s);
    return sum;
}

double player_instance_value(const struct gpu *g, const struct mig_instance *gi, enum signal signal, double t_s)
{
    const struct curve *c = &gi->curves[signal];
    if (c->kind != CURVE_NONE)
        return curve_value(c, t_s);
    if (signal == SIGNAL_MEMORY_USED)
        return fmin(process_memory(g, gi->id, t_s), gi->profile.memory_mib);
    struct rule rule = default_rule(g->board, signal);
    if (rule.factor == 0)
        return rule.offset;
    return rule.offset + rule.factor * player_instance_value(g, gi, rule.base, t_s);
}

static double instance_integral(const struct gpu *g, const struct mig_instance *gi, enum signal signal, double t_s)
{
    const struct curve *c = &gi->curves[signal];
    if (c->kind != CURVE_NONE)
        return curve_integral(c, t_s);
    struct rule rule = default_rule(g->board, signal);
    double base = rule.factor == 0 ? 0 : rule.factor * instance_integral(g, gi, rule.base, t_s);
    return rule.offset * t_s + base;
}

/* Counters of an instance begin with its layout. */
static double instance_since(const struct gpu *g, const struct mig_layout *layout, const struct mig_instance *gi,
                             enum signal signal, double t_s)
{
    return instance_integral(g, gi, signal, t_s) - instance_integral(g, gi, signal, layout->since_s);
}

double player_instance_counter(const struct player *p, size_t gpu, const struct mig_layout *layout,
                               const struct mig_instance *gi, enum signal signal, double t_s)
{
    return p->bases[gpu].instance[gi->start][signal] + instance_since(&p->scenario->gpus[gpu], layout, gi, signal, t_s);
}

/* ---- whole GPUs ---- */

/* Without a curve of its own, a divided GPU is as busy as its instances, weighted by their slices. */
static double divided_utilization(const struct gpu *g, double t_s)
{
    const struct mig_layout *l = player_layout(g, t_s);
    double sum = 0;
    for (size_t i = 0; i < l->n_instances; i++)
        sum += player_instance_value(g, &l->instances[i], SIGNAL_UTILIZATION, t_s) * l->instances[i].profile.slices;
    return sum / MIG_SLICES;
}

static double divided_integral(const struct gpu *g, double t_s)
{
    double sum = 0;
    for (size_t i = 0; i < g->n_layouts && g->layouts[i].since_s < t_s; i++) {
        const struct mig_layout *l = &g->layouts[i];
        double end = i + 1 < g->n_layouts && g->layouts[i + 1].since_s < t_s ? g->layouts[i + 1].since_s : t_s;
        for (size_t k = 0; k < l->n_instances; k++)
            sum += instance_since(g, l, &l->instances[k], SIGNAL_UTILIZATION, end) * l->instances[k].profile.slices;
    }
    return sum / MIG_SLICES;
}

static double memory_used(const struct gpu *g, double t_s)
{
    const struct mig_layout *l = player_layout(g, t_s);
    const struct curve *c = &g->curves[SIGNAL_MEMORY_USED];
    double room = g->board->memory_mib - g->board->reserved_mib, sum = 0;
    if (l->is_enabled) {
        for (size_t i = 0; i < l->n_instances; i++)
            sum += player_instance_value(g, &l->instances[i], SIGNAL_MEMORY_USED, t_s);
        return sum;
    }
    if (c->kind == CURVE_NONE)
        return fmin(process_memory(g, UINT32_MAX, t_s), room);
    return curve_value(c, t_s) * (g->is_memory_percent ? room / 100 : 1);
}

static double value_of(const struct gpu *g, enum signal signal, double t_s);

/* Clocks go up with the first work, and half way down under a hardware slowdown that was given. */
static double clock_of(const struct gpu *g, enum signal signal, double t_s)
{
    const struct board *b = g->board;
    bool is_busy = value_of(g, SIGNAL_UTILIZATION, t_s) > 0;
    if (signal == SIGNAL_MEMORY_CLOCK)
        return is_busy || (b->can & CAN_MEMORY_TEMP) ? b->memory_clock_mhz : 405;
    uint32_t top = signal == SIGNAL_SM_CLOCK ? b->sm_clock_mhz : b->video_clock_mhz;
    return is_busy ? top : b->idle_clock_mhz;
}

static double value_of(const struct gpu *g, enum signal signal, double t_s)
{
    const struct curve *c = &g->curves[signal];
    if (signal == SIGNAL_MEMORY_USED)
        return memory_used(g, t_s);
    if (c->kind != CURVE_NONE)
        return curve_value(c, t_s);
    if (signal == SIGNAL_UTILIZATION)
        return divided_utilization(g, t_s);
    if (signal == SIGNAL_SM_CLOCK || signal == SIGNAL_MEMORY_CLOCK || signal == SIGNAL_VIDEO_CLOCK)
        return clock_of(g, signal, t_s);
    struct rule rule = default_rule(g->board, signal);
    if (rule.factor == 0)
        return rule.offset;
    return rule.offset + rule.factor * value_of(g, rule.base, t_s);
}

static double integral_of(const struct gpu *g, enum signal signal, double t_s)
{
    const struct curve *c = &g->curves[signal];
    if (c->kind != CURVE_NONE)
        return curve_integral(c, t_s);
    if (signal == SIGNAL_UTILIZATION)
        return divided_integral(g, t_s);
    struct rule rule = default_rule(g->board, signal);
    double base = rule.factor == 0 ? 0 : rule.factor * integral_of(g, rule.base, t_s);
    return rule.offset * t_s + base;
}

double player_value(const struct player *p, size_t gpu, enum signal signal, double t_s)
{
    return value_of(&p->scenario->gpus[gpu], signal, t_s);
}

double player_counter(const struct player *p, size_t gpu, enum signal signal, double t_s)
{
    return p->bases[gpu].gpu[signal] + integral_of(&p->scenario->gpus[gpu], signal, t_s);
}

double player_mean(const struct player *p, size_t gpu, enum signal signal, double t_s, double window_s)
{
    const struct gpu *g = &p->scenario->gpus[gpu];
    double from = t_s > window_s ? t_s - window_s : 0;
    if (t_s - from < 1e-6)
        return value_of(g, signal, t_s);
    return (integral_of(g, signal, t_s) - integral_of(g, signal, from)) / (t_s - from);
}

/* ---- a new scenario under way ---- */

static const struct mig_instance *same_instance(const struct mig_layout *l, const struct mig_instance *like)
{
    for (size_t i = 0; i < l->n_instances; i++)
        if (l->instances[i].start == like->start && !strcmp(l->instances[i].profile.name, like->profile.name))
            return &l->instances[i];
    return NULL;
}

static void carry_over(const struct player *old, size_t from, double old_s, struct player *new, size_t to, double new_s)
{
    const struct gpu *a = &old->scenario->gpus[from], *b = &new->scenario->gpus[to];
    const struct mig_layout *was = player_layout(a, old_s), *is = player_layout(b, new_s);
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        new->bases[to].gpu[i] =
            player_counter(old, from, (enum signal)i, old_s) - integral_of(b, (enum signal)i, new_s);
    for (size_t k = 0; k < is->n_instances; k++) {
        const struct mig_instance *gi = &is->instances[k], *twin = same_instance(was, gi);
        for (size_t i = 0; twin && i < SIGNAL_COUNT; i++)
            new->bases[to].instance[gi->start][i] =
                player_instance_counter(old, from, was, twin, (enum signal)i, old_s) -
                instance_since(b, is, gi, (enum signal)i, new_s);
    }
}

void player_replace(struct player *p, struct scenario *s, double old_s, double new_s)
{
    struct player new;
    player_init(&new, s);
    for (size_t to = 0; to < s->n_gpus; to++)
        for (size_t from = 0; from < p->scenario->n_gpus; from++)
            if (!strcmp(p->scenario->gpus[from].uuid, s->gpus[to].uuid))
                carry_over(p, from, old_s, &new, to, new_s);
    player_fini(p);
    *p = new;
}
