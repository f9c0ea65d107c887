/* Steps of a simulated server. */
#include "enginesim/model.h"

#include <assert.h>
#include <math.h>
#include <string.h>

uint32_t model_slots(const struct script_server *server)
{
    if (server->kv_per_request_percent <= 0)
        return server->slots;
    double fit = floor((100 - server->kv_base_percent) / server->kv_per_request_percent + 1e-9);
    return fit < server->slots ? (uint32_t)fmax(fit, 1) : server->slots;
}

static struct queue_pace pace_of(const struct script_server *s)
{
    double batch_s = s->slots / s->service_rate;
    return (struct queue_pace){.batch_s = batch_s,
                               .prefill_s = batch_s * s->prefill_percent / 100,
                               .slots = model_slots(s),
                               .prompt_tokens = s->prompt_tokens,
                               .output_tokens = s->output_tokens};
}

double model_now_s(const struct model *m)
{
    return (double)m->n_steps * MODEL_STEP_S;
}

/* ---- arrivals ---- */

/* How many requests' worth of time until the next one: 1, or at random with a mean of 1. */
static double draw_gap(struct model *m)
{
    if (!m->server->is_poisson)
        return 1;
    double u = ((double)(curve_hash(m->seed + m->n_drawn++) >> 11) + 1) * 0x1p-53;
    return -log(u);
}

static size_t choose_by_share(struct model *m)
{
    size_t best = 0;
    for (size_t i = 0; i < m->n_ranks; i++) {
        m->ranks[i].credit += m->server->shares[i];
        if (m->ranks[i].credit > m->ranks[best].credit)
            best = i;
    }
    m->ranks[best].credit -= 1;
    return best;
}

/* The rank with the fewest requests; of equals the next in turn. */
static size_t choose_by_load(struct model *m)
{
    size_t best = 0, fewest = SIZE_MAX;
    assert(m->n_ranks > 0);
    for (size_t i = 0; i < m->n_ranks; i++) {
        size_t at = (m->next_rank + i) % m->n_ranks;
        size_t n = m->ranks[at].queue.waiting.n + m->ranks[at].queue.running.n;
        if (n < fewest) {
            fewest = n;
            best = at;
        }
    }
    m->next_rank = (best + 1) % m->n_ranks;
    return best;
}

static void let_arrive(struct model *m, double from_s, double to_s)
{
    double n = curve_integral(&m->server->arrivals, to_s - m->zero_s) -
               curve_integral(&m->server->arrivals, from_s - m->zero_s);
    if (!(n > 0))
        return;
    double left = n;
    while (m->due <= left) {
        left -= m->due;
        m->due = draw_gap(m);
        size_t rank = m->server->shares ? choose_by_share(m) : choose_by_load(m);
        queue_arrive(&m->ranks[rank].queue, to_s - (to_s - from_s) * left / n);
    }
    m->due -= left;
}

/* ---- faults of the engine ---- */

const struct script_fault *model_fault(const struct model *m, enum script_fault_kind kind, double now_s)
{
    double t_s = now_s - m->zero_s;
    for (size_t i = 0; i < m->server->n_faults; i++) {
        const struct script_fault *f = &m->server->faults[i];
        if (f->kind == kind && t_s >= f->from_s && t_s < f->until_s)
            return f;
    }
    return NULL;
}

static void start_anew(struct model *m, double now_s)
{
    for (size_t i = 0; i < m->n_ranks; i++) {
        queue_fini(&m->ranks[i].queue);
        m->ranks[i] = (struct model_rank){0};
        queue_init(&m->ranks[i].queue, now_s);
    }
    m->since_s = now_s;
}

static void cancel_all(struct model *m)
{
    for (size_t i = 0; i < m->n_ranks; i++) {
        double percent = model_kv_percent(m, i);
        queue_abort(&m->ranks[i].queue);
        m->ranks[i].kv_left_percent = percent;
    }
}

/* Faults that strike once, when their time falls into the step. */
static void strike(struct model *m, double from_s, double to_s)
{
    for (size_t i = 0; i < m->server->n_faults; i++) {
        const struct script_fault *f = &m->server->faults[i];
        double at_s = f->from_s + m->zero_s;
        if (at_s < from_s || at_s >= to_s)
            continue;
        if (f->kind == SCRIPT_FAULT_RESTART)
            start_anew(m, f->until_s + m->zero_s);
        else if (f->kind == SCRIPT_FAULT_CANCEL)
            cancel_all(m);
    }
}

/* ---- steps ---- */

static void advance_rank(struct model *m, struct model_rank *rank, double to_s)
{
    const struct queue_pace pace = pace_of(m->server);
    const struct script_fault *slow = model_fault(m, SCRIPT_FAULT_SLOW, to_s);
    double before_s = rank->queue.busy_s;
    if (slow)
        queue_slow(&rank->queue, slow->rate, to_s);
    if (!slow || slow->rate > 0)
        queue_advance(&rank->queue, &pace, to_s);
    rank->is_busy[m->n_steps % MODEL_BUSY_STEPS] = rank->queue.busy_s > before_s;
    if (rank->queue.running.n)
        rank->kv_left_percent = 0;
}

static void step(struct model *m)
{
    double from_s = model_now_s(m), to_s = (double)(m->n_steps + 1) * MODEL_STEP_S;
    strike(m, from_s, to_s);
    if (!model_fault(m, SCRIPT_FAULT_RESTART, to_s)) {
        let_arrive(m, from_s, to_s);
        for (size_t i = 0; i < m->n_ranks; i++)
            advance_rank(m, &m->ranks[i], to_s);
    }
    m->n_steps++;
}

void model_advance(struct model *m, double now_s)
{
    int64_t n_steps = (int64_t)floor(now_s / MODEL_STEP_S + 1e-6);
    while (m->n_steps < n_steps)
        step(m);
}

double model_kv_percent(const struct model *m, size_t rank)
{
    const struct model_rank *r = &m->ranks[rank];
    double percent = m->server->kv_base_percent + m->server->kv_per_request_percent * (double)r->queue.running.n;
    return fmin(100, fmax(percent, r->kv_left_percent));
}

double model_busy_percent(const struct model *m, size_t rank)
{
    double steps = 0;
    for (size_t i = 0; i < MODEL_BUSY_STEPS; i++)
        steps += m->ranks[rank].is_busy[i];
    return 100 * steps / MODEL_BUSY_STEPS;
}

/* ---- life ---- */

static void set_ranks(struct model *m, size_t n, double now_s)
{
    for (size_t i = n; i < m->n_ranks; i++) {
        queue_move_waiting(&m->ranks[i].queue, &m->ranks[i % n].queue);
        queue_fini(&m->ranks[i].queue);
    }
    m->ranks = (struct model_rank *)mem_resize(m->ranks, n, sizeof(*m->ranks));
    for (size_t i = m->n_ranks; i < n; i++) {
        m->ranks[i] = (struct model_rank){0};
        queue_init(&m->ranks[i].queue, now_s);
    }
    m->n_ranks = n;
    m->next_rank = 0;
}

void model_init(struct model *m, const struct script_server *server, uint64_t seed, double now_s, double zero_s)
{
    *m = (struct model){.server = server,
                        .zero_s = zero_s,
                        .since_s = now_s,
                        .n_steps = (int64_t)floor(now_s / MODEL_STEP_S + 1e-6),
                        .seed = seed};
    m->due = draw_gap(m);
    set_ranks(m, server->ranks, model_now_s(m));
}

void model_replace(struct model *m, const struct script_server *server, double zero_s)
{
    m->server = server;
    m->zero_s = zero_s;
    set_ranks(m, server->ranks, model_now_s(m));
}

void model_fini(struct model *m)
{
    for (size_t i = 0; i < m->n_ranks; i++)
        queue_fini(&m->ranks[i].queue);
    free(m->ranks);
    *m = (struct model){0};
}
