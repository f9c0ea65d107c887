/* MIG layouts: profile names into GPU and compute instances with places, ids and uuids. */
#include "nvmlsim/parse.h"

#include <stdio.h>
#include <string.h>

struct item_draft {
    struct curve *curves;
    uint32_t count, start;
    const struct tree_node *profile, *compute, *start_node;
};

static int read_signal(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    return parse_signal(r, node, ((struct item_draft *)target)->curves, (enum signal)param);
}

static int refuse_signal(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    (void)target;
    return reader_error(r, node, "%s is a value of the whole GPU, not of a MIG instance", signal_keys[param]);
}

static int read_count(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    (void)param;
    return reader_u32(r, node, 1, MIG_SLICES, &((struct item_draft *)target)->count);
}

static const struct key_rule item_rules[] = {
#define X(name, key, lowest, highest, is_of_instance)                                                                  \
    {key, (is_of_instance) ? read_signal : refuse_signal, SIGNAL_##name},
    SIGNALS(X)
#undef X
        {"profile", reader_defer, offsetof(struct item_draft, profile)},
    {"compute", reader_defer, offsetof(struct item_draft, compute)},
    {"start", reader_defer, offsetof(struct item_draft, start_node)},
    {"count", read_count, 0},
};

static int find_profile(struct reader *r, const struct tree_node *node, const struct board *board,
                        struct mig_profile *ret)
{
    struct mig_profile profiles[MIG_PROFILES];
    const char *names[MIG_PROFILES];
    size_t at = 0;
    for (size_t i = 0; i < MIG_PROFILES; i++) {
        board_mig_profile(board, i, &profiles[i]);
        names[i] = profiles[i].name;
    }
    if (reader_choice(r, node, names, MIG_PROFILES, &at) < 0)
        return -1;
    *ret = profiles[at];
    return 0;
}

/* Instances begin at multiples of their memory slices. A 7g takes all; only four slices can have two memory slices and
 * a slice of compute each, and the eighth memory slice has no compute slice of its own. */
static bool fits(const struct mig_layout *l, uint32_t start, const struct mig_profile *p)
{
    uint32_t size = p->memory_slices;
    uint32_t slices = 0, media = p->name[strlen(p->name) - 1] == 'e';
    if (start % size || start + size > MIG_MEMORY_SLICES || (size == 1 && start == MIG_SLICES) ||
        (p->slices == 4 && start != 0) || (p->slices == 2 && start == 6))
        return false;
    for (size_t i = 0; i < l->n_instances; i++) {
        const struct mig_instance *other = &l->instances[i];
        if (start < other->start + other->profile.memory_slices && other->start < start + size)
            return false;
        slices += other->profile.slices;
        if (media && other->profile.name[strlen(other->profile.name) - 1] == 'e')
            return false;
    }
    return slices + p->slices <= MIG_SLICES;
}

/* The driver numbers the nodes of a binary tree: 7g is 0, 4g and 3g are 1 and 2, pairs 3 to 6, singles 7 to 13. */
static uint32_t instance_id(uint32_t start, uint32_t memory_slices)
{
    return MIG_MEMORY_SLICES / memory_slices - 1 + start / memory_slices;
}

static void name_compute(const struct gpu *g, const struct mig_instance *gi, struct compute_instance *ci)
{
    uint64_t seed = 5381;
    char text[128];
    if (ci->slices == gi->profile.slices)
        (void)snprintf(ci->profile, sizeof(ci->profile), "%s", gi->profile.name);
    else
        (void)snprintf(ci->profile, sizeof(ci->profile), "%uc.%.18s", ci->slices, gi->profile.name);
    (void)snprintf(text, sizeof(text), "%s/%u/%u/%s", g->uuid, gi->start, ci->start, ci->profile);
    for (const char *c = text; *c; c++)
        seed = curve_hash(seed ^ (uint64_t)(unsigned char)*c);
    uint64_t tail = curve_hash(seed);
    (void)snprintf(ci->uuid, sizeof(ci->uuid), "MIG-%08x-%04x-5%03x-%04x-%012llx", (unsigned)(seed >> 32),
                   (unsigned)(seed >> 16 & 0xffff), (unsigned)(seed & 0xfff), (unsigned)(tail >> 48 & 0x3fff) | 0x8000u,
                   (unsigned long long)(tail & 0xffffffffffff));
}

/* "2c" or "2c.3g.40gb"; the whole instance by its own profile name. */
static int compute_slices(struct reader *r, const struct tree_node *node, const struct mig_instance *gi, uint32_t *ret)
{
    const char *text = reader_text(r, node, 23);
    unsigned slices = 0;
    int used = 0;
    if (!text)
        return -1;
    if (!strcmp(text, gi->profile.name))
        slices = gi->profile.slices;
    else if (sscanf(text, "%1uc%n", &slices, &used) != 1 || used == 0 ||
             (text[used] && (text[used] != '.' || strcmp(text + used + 1, gi->profile.name) != 0)))
        return reader_error(r, node, "must be %s or Nc.%s with N slices", gi->profile.name, gi->profile.name);
    if (slices < 1 || slices > gi->profile.slices)
        return reader_error(r, node, "%s has %u compute slices, not %u", gi->profile.name, gi->profile.slices, slices);
    *ret = slices;
    return 0;
}

static int read_compute(struct reader *r, const struct tree_node *node, const struct gpu *g, struct mig_instance *gi)
{
    uint32_t used = 0;
    if (!node) {
        gi->n_compute = 1;
        gi->compute[0] = (struct compute_instance){.slices = gi->profile.slices};
        name_compute(g, gi, &gi->compute[0]);
        return 0;
    }
    if (reader_list(r, node, "compute", gi->profile.slices) < 0)
        return -1;
    for (const struct tree_node *item = node->first; item; item = item->next) {
        struct compute_instance *ci = &gi->compute[gi->n_compute];
        *ci = (struct compute_instance){.id = (uint32_t)gi->n_compute, .start = used};
        if (compute_slices(r, item, gi, &ci->slices) < 0)
            return -1;
        used += ci->slices;
        if (used > gi->profile.slices)
            return reader_error(r, item, "the compute instances need %u slices; %s has %u", used, gi->profile.name,
                                gi->profile.slices);
        name_compute(g, gi, ci);
        gi->n_compute++;
    }
    return 0;
}

static int place(struct reader *r, const struct tree_node *node, const struct item_draft *d, struct mig_layout *l,
                 struct mig_instance *gi)
{
    uint32_t start = 0;
    if (d->start_node) {
        if (reader_u32(r, d->start_node, 0, MIG_SLICES, &start) < 0)
            return -1;
        if (!fits(l, start, &gi->profile))
            return reader_error(r, d->start_node, "%s cannot start at memory slice %u here", gi->profile.name, start);
    } else {
        while (start < MIG_MEMORY_SLICES && !fits(l, start, &gi->profile))
            start++;
        if (start == MIG_MEMORY_SLICES)
            return reader_error(r, node, "%s does not fit beside the instances before it", gi->profile.name);
    }
    gi->start = start;
    gi->id = instance_id(start, gi->profile.memory_slices);
    return 0;
}

/* Keep the instances in the order of their place. */
static void insert(struct mig_layout *l, const struct mig_instance *gi)
{
    size_t at = l->n_instances++;
    while (at > 0 && l->instances[at - 1].start > gi->start) {
        l->instances[at] = l->instances[at - 1];
        at--;
    }
    l->instances[at] = *gi;
}

static int check_memory(struct reader *r, const struct tree_node *node, const struct mig_instance *gi)
{
    double low, high;
    curve_bounds(&gi->curves[SIGNAL_MEMORY_USED], &low, &high);
    if (high > gi->profile.memory_mib)
        return reader_error(r, node, "memory_used_mib goes up to %g, but %s has %u MiB", high, gi->profile.name,
                            gi->profile.memory_mib);
    return 0;
}

static int read_item(struct reader *r, const struct tree_node *node, const struct gpu *g, struct mig_layout *l)
{
    struct item_draft d = {.count = 1};
    d.curves = (struct curve *)reader_alloc(r, node, SIGNAL_COUNT, sizeof(*d.curves));
    if (!d.curves)
        return -1;
    if (node->kind == TREE_SCALAR)
        d.profile = node;
    else if (reader_map(r, node, "a MIG instance", item_rules, ARRAY_LEN(item_rules), &d) < 0)
        return -1;
    if (!d.profile)
        return reader_error(r, node, "a MIG instance needs a profile");
    for (uint32_t i = 0; i < d.count; i++) {
        struct mig_instance gi = {.curves = d.curves};
        if (find_profile(r, d.profile, g->board, &gi.profile) < 0)
            return -1;
        if (l->n_instances == MIG_SLICES)
            return reader_error(r, node, "more than %d instances", MIG_SLICES);
        if (place(r, node, &d, l, &gi) < 0 || read_compute(r, d.compute, g, &gi) < 0 || check_memory(r, node, &gi) < 0)
            return -1;
        insert(l, &gi);
    }
    return 0;
}

int parse_mig(struct reader *r, const struct tree_node *node, const struct gpu *gpu, struct mig_layout *ret)
{
    bool is_on = false;
    struct mig_layout l = {.since_s = ret->since_s};
    if (node->kind == TREE_SCALAR && num_parse_bool(str_of(node->text), &is_on) == 0 && !is_on) {
        *ret = l;
        return 0;
    }
    if (!(gpu->board->can & CAN_MIG))
        return reader_error(r, node, "%s has no MIG", gpu->board->key);
    if (reader_list(r, node, "mig (`off`, or the profiles)", MIG_SLICES) < 0)
        return -1;
    l.is_enabled = true;
    l.instances = (struct mig_instance *)reader_alloc(r, node, MIG_SLICES, sizeof(*l.instances));
    for (const struct tree_node *item = node->first; l.instances && item; item = item->next)
        if (read_item(r, item, gpu, &l) < 0)
            return -1;
    *ret = l;
    return l.instances ? 0 : -1;
}
