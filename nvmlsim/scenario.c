/* The top of a scenario file: driver, versions, seed, then GPUs, then what happens to them. */
#include "nvmlsim/scenario.h"

#include "nvmlsim/parse.h"

#include <stdio.h>
#include <string.h>

const char scenario_default_text[] = "seed: 1\n"
                                     "gpus:\n"
                                     "  - board: H100\n"
                                     "    count: 2\n"
                                     "    utilization: {sine: {mean: 45, amplitude: 20, period: 120}}\n"
                                     "    memory_used_percent: 40\n";

struct top {
    struct scenario *scenario;
    const struct tree_node *gpus, *events, *faults;
};

static int read_driver(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    struct scenario *s = ((struct top *)target)->scenario;
    (void)param;
    const char *text = reader_text(r, node, sizeof(s->driver) - 1);
    if (!text)
        return -1;
    if (strspn(text, "0123456789.") != strlen(text) || sscanf(text, "%4u.%4u", &s->driver_major, &s->driver_minor) != 2)
        return reader_error(r, node, "must be a version like 570.172.08");
    (void)str_copy(s->driver, sizeof(s->driver), str_of(text));
    return 0;
}

static int read_cuda(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    unsigned major, minor;
    int used = 0;
    (void)param;
    const char *text = reader_text(r, node, 8);
    if (!text)
        return -1;
    if (sscanf(text, "%2u.%2u%n", &major, &minor, &used) != 2 || text[used] || minor > 99)
        return reader_error(r, node, "must be a version like 12.8");
    ((struct top *)target)->scenario->cuda = (int32_t)(major * 1000 + minor * 10);
    return 0;
}

static int read_seed(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    uint32_t seed = 0;
    (void)param;
    if (reader_u32(r, node, 0, UINT32_MAX, &seed) < 0)
        return -1;
    ((struct top *)target)->scenario->seed = seed;
    r->seed = seed;
    return 0;
}

static int read_restart_clock(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    (void)param;
    return reader_bool(r, node, &((struct top *)target)->scenario->restart_clock);
}

static int read_counter_bits(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    static const char *const widths[] = {"32", "64"};
    size_t at = 0;
    (void)param;
    if (reader_choice(r, node, widths, ARRAY_LEN(widths), &at) < 0)
        return -1;
    ((struct top *)target)->scenario->pcie_counter_bits = at == 0 ? 32 : 64;
    return 0;
}

static const struct key_rule top_rules[] = {
    {"driver", read_driver, 0},
    {"cuda", read_cuda, 0},
    {"seed", read_seed, 0},
    {"restart_clock", read_restart_clock, 0},
    {"pcie_counter_bits", read_counter_bits, 0},
    {"gpus", reader_defer, offsetof(struct top, gpus)},
    {"events", reader_defer, offsetof(struct top, events)},
    {"faults", reader_defer, offsetof(struct top, faults)},
};

static int read_all(struct reader *r, const struct tree_node *root)
{
    struct top top = {.scenario = parse_target(r)};
    if (reader_map(r, root, "a scenario", top_rules, ARRAY_LEN(top_rules), &top) < 0)
        return -1;
    if (!top.gpus)
        return reader_error(r, root, "a scenario needs `gpus:` (a list, which may be empty)");
    if (parse_gpus(r, top.gpus) < 0 || (top.events && parse_events(r, top.events) < 0))
        return -1;
    return top.faults ? parse_faults(r, top.faults) : 0;
}

struct scenario *scenario_parse(const struct scenario_source *source, struct str text, struct err *e)
{
    struct arena nodes __attribute__((cleanup(arena_fini)));
    arena_init(&nodes, SCENE_BYTES_MAX);
    const struct tree_node *root = tree_parse(source->name, text, &nodes, e);
    if (!root)
        return NULL;
    struct scenario *s = mem_new(struct scenario);
    *s = (struct scenario){.driver = SCENARIO_DEFAULT_DRIVER,
                           .driver_major = 570,
                           .driver_minor = 172,
                           .cuda = 12080,
                           .pcie_counter_bits = 64};
    arena_init(&s->arena, SCENE_BYTES_MAX);
    struct parser p = {.reader = {.name = source->name,
                                  .arena = &s->arena,
                                  .e = e,
                                  .read_file = source->read_file,
                                  .context = source->context},
                       .source = source,
                       .scenario = s};
    if (read_all(&p.reader, root) < 0) {
        scenario_free(s);
        return NULL;
    }
    (void)snprintf(s->nvml, sizeof(s->nvml), "%d.%s", s->cuda / 1000, s->driver);
    return s;
}

void scenario_free(struct scenario *s)
{
    if (!s)
        return;
    arena_fini(&s->arena);
    free(s);
}
