/* `gpus:` and what stands in it, except MIG layouts: board, identity, curves, error counts, processes. */
#include "nvmlsim/parse.h"

#include "nvml/abi.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* One entry of `gpus:` while it is read. */
struct draft {
    struct gpu gpu;
    struct curve *curves;
    uint32_t count;
    const struct tree_node *board, *uuid, *pci, *index, *serial, *memory_percent, *mig, *processes;
};

static int read_board(struct reader *r, const struct tree_node *node, struct draft *d)
{
    size_t n, at;
    const char *names[32];
    const struct board *all = board_all(&n);
    for (size_t i = 0; i < n && i < ARRAY_LEN(names); i++)
        names[i] = all[i].key;
    if (reader_choice(r, node, names, n, &at) < 0)
        return -1;
    d->gpu.board = &all[at];
    return 0;
}

static int read_signal(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    struct draft *d = (struct draft *)target;
    return parse_signal(r, node, d->curves, (enum signal)param);
}

static int read_number(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    bool is_count = param == offsetof(struct draft, count);
    return reader_u32(r, node, is_count, is_count ? SCENARIO_GPUS_MAX : 255,
                      (uint32_t *)(void *)((char *)target + param));
}

static int read_ecc(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    (void)param;
    return parse_ecc(r, node, ((struct draft *)target)->gpu.ecc);
}

static int read_throttle(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    (void)param;
    return parse_throttle(r, node, &((struct draft *)target)->gpu.throttle);
}

static int read_mig_pending(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    (void)param;
    return reader_bool(r, node, &((struct draft *)target)->gpu.is_mig_pending);
}

static const struct key_rule gpu_rules[] = {
#define X(name, key, lowest, highest, is_of_instance) {key, read_signal, SIGNAL_##name},
    SIGNALS(X)
#undef X
        {"board", reader_defer, offsetof(struct draft, board)},
    {"count", read_number, offsetof(struct draft, count)},
    {"uuid", reader_defer, offsetof(struct draft, uuid)},
    {"pci", reader_defer, offsetof(struct draft, pci)},
    {"index", reader_defer, offsetof(struct draft, index)},
    {"serial", reader_defer, offsetof(struct draft, serial)},
    {"minor", read_number, offsetof(struct draft, gpu.minor)},
    {"memory_used_percent", reader_defer, offsetof(struct draft, memory_percent)},
    {"ecc", read_ecc, 0},
    {"throttle", read_throttle, 0},
    {"recovery_action", read_number, offsetof(struct draft, gpu.recovery_action)},
    {"mig", reader_defer, offsetof(struct draft, mig)},
    {"mig_pending", read_mig_pending, 0},
    {"processes", reader_defer, offsetof(struct draft, processes)},
};

static bool is_uuid(const char *text, const char *prefix)
{
    static const char shape[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    if (strncmp(text, prefix, strlen(prefix)) != 0 || strlen(text + strlen(prefix)) != strlen(shape))
        return false;
    text += strlen(prefix);
    for (size_t i = 0; shape[i]; i++)
        if (shape[i] == '-' ? text[i] != '-' : !strchr("0123456789abcdefABCDEF", text[i]))
            return false;
    return true;
}

static int read_identity(struct reader *r, struct draft *d)
{
    struct gpu *g = &d->gpu;
    const struct tree_node *one = d->uuid ? d->uuid : d->pci ? d->pci : d->serial ? d->serial : d->index;
    if (d->count > 1 && one)
        return reader_error(r, one, "uuid, pci, serial and index are for one GPU, not for count: %u", d->count);
    if (d->uuid) {
        const char *text = reader_text(r, d->uuid, sizeof(g->uuid) - 1);
        if (!text)
            return -1;
        if (!is_uuid(text, "GPU-"))
            return reader_error(r, d->uuid, "must look like GPU-01234567-89ab-cdef-0123-456789abcdef");
        (void)str_copy(g->uuid, sizeof(g->uuid), str_of(text));
    }
    if (d->serial) {
        const char *text = reader_text(r, d->serial, sizeof(g->serial) - 1);
        if (!text)
            return -1;
        (void)str_copy(g->serial, sizeof(g->serial), str_of(text));
    }
    if (d->pci) {
        const char *text = reader_text(r, d->pci, 31);
        unsigned domain, bus, slot;
        int used = 0;
        if (!text)
            return -1;
        if (sscanf(text, "%8x:%2x:%2x.0%n", &domain, &bus, &slot, &used) != 3 || text[used] || slot > 31)
            return reader_error(r, d->pci, "must look like 00000000:3B:00.0");
        g->domain = domain;
        g->bus = bus;
        g->slot = slot;
    }
    return 0;
}

static int check_sizes(struct reader *r, const struct tree_node *node, struct draft *d)
{
    const struct board *b = d->gpu.board;
    double low, high, room = b->memory_mib - b->reserved_mib;
    if (d->memory_percent) {
        if (d->curves[SIGNAL_MEMORY_USED].kind != CURVE_NONE)
            return reader_error(r, d->memory_percent, "give memory_used_mib or memory_used_percent, not both");
        d->gpu.is_memory_percent = true;
        return reader_curve(r, d->memory_percent, 0, 100, &d->curves[SIGNAL_MEMORY_USED]);
    }
    curve_bounds(&d->curves[SIGNAL_MEMORY_USED], &low, &high);
    if (high > room)
        return reader_error(r, node, "memory_used_mib goes up to %g, but %s has %g MiB besides its reserve", high,
                            b->key, room);
    return 0;
}

static void make_uuid(char *out, size_t size, const char *prefix, uint64_t seed)
{
    uint64_t a = curve_hash(seed), b = curve_hash(a ^ seed);
    (void)snprintf(out, size, "%s%08x-%04x-5%03x-%04x-%012llx", prefix, (unsigned)(a >> 32),
                   (unsigned)(a >> 16 & 0xffff), (unsigned)(a & 0xfff), (unsigned)(b >> 48 & 0x3fff) | 0x8000u,
                   (unsigned long long)(b & 0xffffffffffff));
}

/* What was not given, made up from seed and index so that every run sees the same machine. */
static void fill_identity(struct reader *r, struct gpu *g, size_t index)
{
    uint64_t seed = curve_hash(parse_target(r)->seed * 1000 + index);
    if (!g->uuid[0])
        make_uuid(g->uuid, sizeof(g->uuid), "GPU-", seed);
    if (!g->serial[0])
        (void)snprintf(g->serial, sizeof(g->serial), "16%011llu", (unsigned long long)(seed % 100000000000u));
    if (g->bus == UINT32_MAX) {
        bool is_superchip = g->board->pci_domain != 0;
        g->domain = is_superchip ? g->board->pci_domain + (uint32_t)index : 0;
        g->bus = is_superchip ? (uint32_t)(g->board->compute_major == 10 ? 6 : 1) : 0x1b + 3 * (uint32_t)index;
        g->slot = 0;
    }
    if (g->minor == UINT32_MAX)
        g->minor = (uint32_t)index;
}

/* Copy i of a draft: its own noise, the rest shared. */
static int copy_gpu(struct reader *r, const struct tree_node *node, const struct draft *d, struct gpu *ret)
{
    struct curve *curves = (struct curve *)reader_alloc(r, node, SIGNAL_COUNT, sizeof(*curves));
    if (!curves)
        return -1;
    memcpy(curves, d->curves, SIGNAL_COUNT * sizeof(*curves));
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        if (curves[i].kind == CURVE_NOISE)
            curves[i].noise_offset = reader_next_noise(r);
    *ret = d->gpu;
    ret->curves = curves;
    return 0;
}

/* The free place with the given index, or the first free one. */
static int find_place(struct reader *r, const struct draft *d, const bool *is_taken, size_t n, size_t *ret)
{
    uint32_t index = 0;
    if (!d->index) {
        for (*ret = 0; is_taken[*ret]; ++*ret) {
        }
        return 0;
    }
    if (reader_u32(r, d->index, 0, (uint32_t)n - 1, &index) < 0)
        return -1;
    if (is_taken[index])
        return reader_error(r, d->index, "index %u is given twice", index);
    *ret = index;
    return 0;
}

static int read_draft(struct reader *r, const struct tree_node *node, struct draft *d)
{
    *d = (struct draft){.count = 1, .gpu = {.bus = UINT32_MAX, .minor = UINT32_MAX}};
    d->curves = (struct curve *)reader_alloc(r, node, SIGNAL_COUNT, sizeof(*d->curves));
    if (!d->curves || reader_map(r, node, "a GPU", gpu_rules, ARRAY_LEN(gpu_rules), d) < 0)
        return -1;
    if (!d->board)
        return reader_error(r, node, "a GPU needs a board");
    if (read_board(r, d->board, d) < 0 || read_identity(r, d) < 0 || check_sizes(r, node, d) < 0)
        return -1;
    return 0;
}

/* The layout in the entry itself holds from the start; without one, MIG is off. */
static int first_layout(struct reader *r, const struct tree_node *node, const struct draft *d, struct gpu *g)
{
    g->layouts = (struct mig_layout *)reader_alloc(r, node, 1, sizeof(*g->layouts));
    if (!g->layouts)
        return -1;
    g->n_layouts = 1;
    return d->mig ? parse_mig(r, d->mig, g, &g->layouts[0]) : 0;
}

static int check_unique(struct reader *r, const struct tree_node *node)
{
    const struct scenario *s = parse_target(r);
    for (size_t i = 0; i < s->n_gpus; i++)
        for (size_t j = 0; j < i; j++) {
            const struct gpu *a = &s->gpus[i], *b = &s->gpus[j];
            if (!strcasecmp(a->uuid, b->uuid))
                return reader_error(r, node, "GPUs %zu and %zu have the same uuid %s", j, i, a->uuid);
            if (a->domain == b->domain && a->bus == b->bus && a->slot == b->slot)
                return reader_error(r, node, "GPUs %zu and %zu have the same PCI address %08X:%02X:%02X.0", j, i,
                                    a->domain, a->bus, a->slot);
        }
    return 0;
}

struct gpu_list {
    struct draft *drafts;
    const struct tree_node **nodes;
    size_t n;
};

static int place_gpus(struct reader *r, const struct gpu_list *list, bool is_pinned, bool *is_taken)
{
    struct scenario *s = parse_target(r);
    for (size_t i = 0; i < list->n; i++) {
        const struct draft *d = &list->drafts[i];
        for (uint32_t copy = 0; copy < d->count && (d->index != NULL) == is_pinned; copy++) {
            size_t at = 0;
            if (find_place(r, d, is_taken, s->n_gpus, &at) < 0)
                return -1;
            struct gpu *g = &s->gpus[at];
            if (copy_gpu(r, list->nodes[i], d, g) < 0)
                return -1;
            is_taken[at] = true;
            fill_identity(r, g, at);
            if (first_layout(r, list->nodes[i], d, g) < 0)
                return -1;
            if (d->processes && parse_processes(r, d->processes, g) < 0)
                return -1;
        }
    }
    return 0;
}

int parse_gpus(struct reader *r, const struct tree_node *node)
{
    struct scenario *s = parse_target(r);
    if (reader_list(r, node, "gpus", SCENARIO_GPUS_MAX) < 0)
        return -1;
    struct gpu_list list = {
        .drafts = (struct draft *)reader_alloc(r, node, node->n_children + 1, sizeof(struct draft)),
        .nodes = (const struct tree_node **)reader_alloc(r, node, node->n_children + 1, sizeof(void *)),
    };
    if (!list.drafts || !list.nodes)
        return -1;
    for (const struct tree_node *item = node->first; item; item = item->next, list.n++) {
        list.nodes[list.n] = item;
        if (read_draft(r, item, &list.drafts[list.n]) < 0)
            return -1;
        s->n_gpus += list.drafts[list.n].count;
        if (s->n_gpus > SCENARIO_GPUS_MAX)
            return reader_error(r, item, "more than %d GPUs", SCENARIO_GPUS_MAX);
    }
    bool is_taken[SCENARIO_GPUS_MAX + 1] = {false};
    s->gpus = (struct gpu *)reader_alloc(r, node, s->n_gpus + 1, sizeof(*s->gpus));
    if (!s->gpus || place_gpus(r, &list, true, is_taken) < 0 || place_gpus(r, &list, false, is_taken) < 0)
        return -1;
    return check_unique(r, node);
}

/* ---- processes ---- */

struct process_draft {
    struct process process;
    bool has_pid;
};

static int read_process_curve(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    double highest = param == offsetof(struct process, memory_mib) ? 1e9 : 100;
    return reader_curve(r, node, 0, highest, (struct curve *)(void *)((char *)target + param));
}

static int read_pid(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    (void)param;
    ((struct process_draft *)target)->has_pid = true;
    return reader_u32(r, node, 1, INT32_MAX, &((struct process_draft *)target)->process.pid);
}

static int read_type(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    static const char *const types[] = {"compute", "graphics", "mps"};
    size_t at = 0;
    (void)param;
    if (reader_choice(r, node, types, ARRAY_LEN(types), &at) < 0)
        return -1;
    ((struct process_draft *)target)->process.type = (enum process_type)at;
    return 0;
}

static int read_hidden(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    (void)param;
    return reader_bool(r, node, &((struct process_draft *)target)->process.is_hidden);
}

static int read_process_time(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    return reader_double(r, node, 0, 1e9, (double *)(void *)((char *)target + param));
}

static int read_instance_id(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    return reader_u32(r, node, 0, 14, (uint32_t *)(void *)((char *)target + param));
}

static const struct key_rule process_rules[] = {
    {"pid", read_pid, 0},
    {"type", read_type, 0},
    {"hidden", read_hidden, 0},
    {"from", read_process_time, offsetof(struct process, from_s)},
    {"until", read_process_time, offsetof(struct process, until_s)},
    {"memory_mib", read_process_curve, offsetof(struct process, memory_mib)},
    {"sm", read_process_curve, offsetof(struct process, sm)},
    {"memory", read_process_curve, offsetof(struct process, memory)},
    {"encoder", read_process_curve, offsetof(struct process, encoder)},
    {"decoder", read_process_curve, offsetof(struct process, decoder)},
    {"gpu_instance", read_instance_id, offsetof(struct process, gpu_instance)},
    {"compute_instance", read_instance_id, offsetof(struct process, compute_instance)},
};

int parse_processes(struct reader *r, const struct tree_node *node, struct gpu *gpu)
{
    if (reader_list(r, node, "processes", SCENARIO_PROCESSES_MAX) < 0)
        return -1;
    struct process *all = (struct process *)reader_alloc(r, node, node->n_children + 1, sizeof(*all));
    size_t n = 0;
    for (const struct tree_node *item = node->first; all && item; item = item->next) {
        struct process_draft d = {
            .process = {.until_s = HUGE_VAL, .gpu_instance = UINT32_MAX, .compute_instance = UINT32_MAX}};
        if (reader_map(r, item, "a process", process_rules, ARRAY_LEN(process_rules), &d) < 0)
            return -1;
        if (!d.has_pid)
            return reader_error(r, item, "a process needs a pid");
        if (d.process.gpu_instance != UINT32_MAX && d.process.compute_instance == UINT32_MAX)
            d.process.compute_instance = 0;
        all[n++] = d.process;
    }
    gpu->processes = all;
    gpu->n_processes = n;
    return all ? 0 : -1;
}

/* ---- error counts and throttle reasons ---- */

static int read_ecc_count(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    double value = 0;
    if (reader_double(r, node, 0, 1e15, &value) < 0)
        return -1;
    ((double *)target)[param] += floor(value);
    return 0;
}

static const struct key_rule ecc_rules[] = {
#define X(name, key) {key, read_ecc_count, ECC_##name},
    ECC_COUNTS(X)
#undef X
};

int parse_ecc(struct reader *r, const struct tree_node *node, double *ret)
{
    return reader_map(r, node, "ecc", ecc_rules, ARRAY_LEN(ecc_rules), ret);
}

static const char *const throttle_names[] = {
    "gpu_idle",
    "applications_clocks_setting",
    "sw_power_cap",
    "hw_slowdown",
    "sync_boost",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
    "display_clock_setting",
};

int parse_throttle(struct reader *r, const struct tree_node *node, uint64_t *ret)
{
    if (reader_list(r, node, "throttle", ARRAY_LEN(throttle_names)) < 0)
        return -1;
    uint64_t bits = 0;
    for (const struct tree_node *item = node->first; item; item = item->next) {
        size_t at = 0;
        if (reader_choice(r, item, throttle_names, ARRAY_LEN(throttle_names), &at) < 0)
            return -1;
        bits |= (uint64_t)1 << at;
    }
    *ret = bits;
    return 0;
}
