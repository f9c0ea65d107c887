/* `events:` and `faults:`: what happens at given times. */
#include "nvmlsim/parse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define X(name, key, rc) key,
static const char *const fault_keys[FAULT_COUNT] = {FAULTS(X)};
#undef X

enum { FIELD_MAX = 1000 };

int parse_gpu_number(struct reader *r, const struct tree_node *node, uint32_t *ret)
{
    if (!node || (node->kind == TREE_SCALAR && !strcmp(node->text, "all"))) {
        *ret = EVENT_ALL_GPUS;
        return 0;
    }
    if (parse_target(r)->n_gpus == 0)
        return reader_error(r, node, "there are no GPUs");
    return reader_u32(r, node, 0, (uint32_t)parse_target(r)->n_gpus - 1, ret);
}

/* ---- events ---- */

struct event_nodes {
    const struct tree_node *at, *gpu, *xid, *ecc, *mig, *count, *throttle, *recovery;
};

static const struct key_rule event_rules[] = {
    {"at", reader_defer, offsetof(struct event_nodes, at)},
    {"gpu", reader_defer, offsetof(struct event_nodes, gpu)},
    {"xid", reader_defer, offsetof(struct event_nodes, xid)},
    {"ecc", reader_defer, offsetof(struct event_nodes, ecc)},
    {"mig", reader_defer, offsetof(struct event_nodes, mig)},
    {"count", reader_defer, offsetof(struct event_nodes, count)},
    {"throttle", reader_defer, offsetof(struct event_nodes, throttle)},
    {"recovery_action", reader_defer, offsetof(struct event_nodes, recovery)},
};

static int add_layout(struct reader *r, const struct tree_node *node, double at_s, struct gpu *g)
{
    struct mig_layout *all = (struct mig_layout *)reader_alloc(r, node, g->n_layouts + 1, sizeof(*all));
    if (!all)
        return -1;
    memcpy(all, g->layouts, g->n_layouts * sizeof(*all));
    if (at_s <= all[g->n_layouts - 1].since_s && g->n_layouts > 1)
        return reader_error(r, node, "MIG layouts of one GPU must come in the order of their times");
    all[g->n_layouts].since_s = at_s;
    if (parse_mig(r, node, g, &all[g->n_layouts]) < 0)
        return -1;
    g->layouts = all;
    g->n_layouts++;
    return 0;
}

static int read_mig_event(struct reader *r, const struct tree_node *node, const struct event *event)
{
    for (size_t i = 0; i < parse_target(r)->n_gpus; i++)
        if ((event->gpu == i || event->gpu == EVENT_ALL_GPUS) &&
            add_layout(r, node, event->at_s, &parse_target(r)->gpus[i]) < 0)
            return -1;
    return 0;
}

static int read_what(struct reader *r, const struct event_nodes *n, struct event *event)
{
    uint32_t number = 0;
    if (n->ecc) {
        event->kind = EVENT_ECC;
        return parse_ecc(r, n->ecc, event->ecc);
    }
    if (n->mig) {
        event->kind = EVENT_MIG;
        return read_mig_event(r, n->mig, event);
    }
    if (n->throttle) {
        event->kind = EVENT_THROTTLE;
        return parse_throttle(r, n->throttle, &event->number);
    }
    event->kind = n->xid ? EVENT_XID : n->count ? EVENT_COUNT : EVENT_RECOVERY;
    const struct tree_node *node = n->xid ? n->xid : n->count ? n->count : n->recovery;
    uint32_t highest = n->count ? (uint32_t)parse_target(r)->n_gpus : n->xid ? 10000 : 10;
    if (n->count && n->gpu)
        return reader_error(r, n->gpu, "count is about the machine, not one GPU");
    if (reader_u32(r, node, 0, highest, &number) < 0)
        return -1;
    event->number = number;
    return 0;
}

static int read_event(struct reader *r, const struct tree_node *node, struct event *ret)
{
    struct event_nodes n = {0};
    if (reader_map(r, node, "an event", event_rules, ARRAY_LEN(event_rules), &n) < 0)
        return -1;
    int kinds = !!n.xid + !!n.ecc + !!n.mig + !!n.count + !!n.throttle + !!n.recovery;
    if (!n.at || kinds != 1)
        return reader_error(r, node,
                            "an event needs `at` and exactly one of xid, ecc, mig, count, throttle, "
                            "recovery_action");
    if (reader_double(r, n.at, 0, 1e9, &ret->at_s) < 0 || parse_gpu_number(r, n.gpu, &ret->gpu) < 0)
        return -1;
    return read_what(r, &n, ret);
}

int parse_events(struct reader *r, const struct tree_node *node)
{
    struct scenario *s = parse_target(r);
    if (reader_list(r, node, "events", SCENARIO_EVENTS_MAX) < 0)
        return -1;
    s->events = (struct event *)reader_alloc(r, node, node->n_children + 1, sizeof(*s->events));
    for (const struct tree_node *item = node->first; s->events && item; item = item->next) {
        struct event event = {0};
        if (read_event(r, item, &event) < 0)
            return -1;
        size_t at = s->n_events++; /* in order of time, and of the file where times are equal */
        for (; at > 0 && s->events[at - 1].at_s > event.at_s; at--)
            s->events[at] = s->events[at - 1];
        s->events[at] = event;
    }
    return s->events ? 0 : -1;
}

/* ---- faults ---- */

struct fault_nodes {
    const struct tree_node *fault, *gpu, *from, *until, *function, *field, *ms;
};

static const struct key_rule fault_rules[] = {
    {"fault", reader_defer, offsetof(struct fault_nodes, fault)},
    {"gpu", reader_defer, offsetof(struct fault_nodes, gpu)},
    {"from", reader_defer, offsetof(struct fault_nodes, from)},
    {"until", reader_defer, offsetof(struct fault_nodes, until)},
    {"function", reader_defer, offsetof(struct fault_nodes, function)},
    {"field", reader_defer, offsetof(struct fault_nodes, field)},
    {"ms", reader_defer, offsetof(struct fault_nodes, ms)},
};

static int read_function(struct reader *r, const struct tree_node *node, struct fault *f)
{
    const char *text = reader_text(r, node, 63);
    if (!text)
        return -1;
    size_t len = strlen(text);
    f->is_prefix = text[len - 1] == '*';
    f->function = arena_strndup(&parse_target(r)->arena, text, f->is_prefix ? len - 1 : len);
    if (!f->function)
        return reader_error(r, node, "the scenario needs too much memory");
    for (size_t i = 0; i < parse_source(r)->n_functions; i++) {
        const char *name = parse_source(r)->functions[i];
        if (f->is_prefix ? !strncmp(name, f->function, len - 1) : !strcmp(name, f->function))
            return 0;
    }
    const char *nearest = str_nearest(text, parse_source(r)->functions, parse_source(r)->n_functions);
    return reader_error(r, node, "no simulated function is called `%s`%s%s%s", text, nearest ? ", did you mean `" : "",
                        nearest ? nearest : "", nearest ? "`?" : "");
}

/* The parts that only some faults have. */
static int read_details(struct reader *r, const struct tree_node *node, const struct fault_nodes *n, struct fault *f)
{
    if ((f->kind == FAULT_SLOW) != (n->ms != NULL))
        return reader_error(r, n->ms ? n->ms : node, "`ms` belongs to the fault slow");
    if (f->kind == FAULT_NOT_SUPPORTED && !n->function && !n->field)
        return reader_error(r, node, "the fault not_supported needs a function or a field");
    if (f->kind == FAULT_FUNCTION_NOT_FOUND && !n->function)
        return reader_error(r, node, "the fault function_not_found needs a function");
    if (f->kind == FAULT_INIT_HANG && (n->function || n->field || n->gpu))
        return reader_error(r, node, "init_hang is about nvmlInit: no gpu, function or field");
    if (n->ms && reader_double(r, n->ms, 0, 600000, &f->slow_ms) < 0)
        return -1;
    if (n->function && read_function(r, n->function, f) < 0)
        return -1;
    if (!n->field)
        return 0;
    if (n->function || f->kind != FAULT_NOT_SUPPORTED)
        return reader_error(r, n->field, "`field` belongs to the fault not_supported, without a function");
    return reader_u32(r, n->field, 1, FIELD_MAX, &f->field);
}

static int read_fault(struct reader *r, const struct tree_node *node, struct fault *f)
{
    struct fault_nodes n = {0};
    size_t kind = 0;
    *f = (struct fault){.until_s = HUGE_VAL};
    if (reader_map(r, node, "a fault", fault_rules, ARRAY_LEN(fault_rules), &n) < 0)
        return -1;
    if (!n.fault)
        return reader_error(r, node, "a fault needs `fault: NAME`");
    if (reader_choice(r, n.fault, fault_keys, FAULT_COUNT, &kind) < 0)
        return -1;
    f->kind = (enum fault_kind)kind;
    if ((n.from && reader_double(r, n.from, 0, 1e9, &f->from_s) < 0) ||
        (n.until && reader_double(r, n.until, 0, 1e9, &f->until_s) < 0) || parse_gpu_number(r, n.gpu, &f->gpu) < 0)
        return -1;
    if (f->until_s <= f->from_s)
        return reader_error(r, n.until, "must be later than `from`, which is %g", f->from_s);
    return read_details(r, node, &n, f);
}

int parse_faults(struct reader *r, const struct tree_node *node)
{
    struct scenario *s = parse_target(r);
    if (reader_list(r, node, "faults", SCENARIO_FAULTS_MAX) < 0)
        return -1;
    s->faults = (struct fault *)reader_alloc(r, node, node->n_children + 1, sizeof(*s->faults));
    for (const struct tree_node *item = node->first; s->faults && item; item = item->next)
        if (read_fault(r, item, &s->faults[s->n_faults++]) < 0)
            return -1;
    return s->faults ? 0 : -1;
}
