/* The scenario parser: what is accepted becomes what was meant, what is refused is refused at its line and column. */
#include "support.h"

#include "nvml/abi.h"
#include "nvmlsim/scenario.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int read_csv(void *context, const char *path, struct buf *out, struct err *e)
{
    (void)context;
    if (!strcmp(path, "load.csv"))
        return buf_append_str(out, "t,load,rows\n0,10,1\n# a remark\n30,80,2\n\n60,20,3\n");
    if (!strcmp(path, "bare.csv"))
        return buf_append_str(out, "0,5\r\n10,6\r\n");
    if (!strcmp(path, "broken.csv"))
        return buf_append_str(out, "0,5\nten,6\n");
    return err_set(e, ERR_NOT_FOUND, "no such file %s", path);
}

static const char *const functions[] = {"nvmlInit_v2", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetMemoryInfo_v2"};

static struct scenario *parse_into(const char *text, struct err *e)
{
    struct scenario_source source = {"s.yaml", read_csv, functions, ARRAY_LEN(functions), NULL};
    return scenario_parse(&source, str_of(text), e);
}

/* Parse what must be right. */
static struct scenario *parse(const char *text)
{
    struct err e = {0};
    struct scenario *s = parse_into(text, &e);
    if (!s)
        print_message("refused: %s\n", e.text);
    assert_non_null(s);
    return s;
}

static const struct curve *utilization(const struct scenario *s, size_t gpu)
{
    return &s->gpus[gpu].curves[SIGNAL_UTILIZATION];
}

static void test_what_is_wrong_is_named_with_line_and_column(void **state)
{
    (void)state;
    static const struct {
        const char *text, *place, *says;
    } cases[] = {
        {"", "s.yaml:1:1: ", "empty"},
        {"gpus: [", "s.yaml:2:1: ", "expected"},
        {"gpus:\n\t- board: T4\n", "s.yaml:2:1: ", ""},
        {"drivr: '1.2'\ngpus: []\n", "s.yaml:1:1: ", "did you mean `driver`?"},
        {"driver: '570.1'\n", "s.yaml:1:1: ", "needs `gpus:`"},
        {"driver: new\ngpus: []\n", "s.yaml:1:9: ", "570.172.08"},
        {"cuda: 12\ngpus: []\n", "s.yaml:1:7: ", "12.8"},
        {"gpus: {board: T4}\n", "s.yaml:1:7: ", "must be a list, not a map"},
        {"gpus:\n  - {}\n", "s.yaml:2:5: ", "needs a board"},
        {"gpus: []\n\"a\\nb\": 1\n", "s.yaml:2:1: ", "`a?b`"},
        {"gpus:\n  - {board: H10}\n", "s.yaml:2:13: ", "did you mean"},
        {"gpus:\n  - {board: H100, utilisation: 5}\n", "s.yaml:2:19: ", "did you mean `utilization`?"},
        {"gpus:\n  - {board: H100, utilization: 101}\n", "s.yaml:2:32: ", "allowed is 0 to 100"},
        {"gpus:\n  - {board: H100, utilization: fast}\n", "s.yaml:2:32: ", "must be a number from 0 to 100, not text"},
        {"gpus:\n  - {board: H100, utilization: [1]}\n", "s.yaml:2:32: ", "must be a map"},
        {"gpus:\n  - {board: H100, utilization: {}}\n", "s.yaml:2:32: ", "exactly one of step, ramp"},
        {"gpus:\n  - {board: H100, utilization: {step: [[0, 1]], ramp: [[0, 1]]}}\n", "s.yaml:2:32: ", "exactly one"},
        {"gpus:\n  - {board: H100, utilization: {step: [[5, 1], [5, 2]]}}\n", "s.yaml:2:48: ", "times must rise"},
        {"gpus:\n  - {board: H100, utilization: {step: [[-1, 1]]}}\n", "s.yaml:2:41: ", "out of range"},
        {"gpus:\n  - {board: H100, utilization: {step: []}}\n", "s.yaml:2:39: ", "at least one"},
        {"gpus:\n  - {board: H100, utilization: {step: [[0, 200]]}}\n", "s.yaml:2:32: ", "goes from 200 to 200"},
        {"gpus:\n  - {board: H100, utilization: {sine: {mean: 90, amplitude: 20, period: 5}}}\n",
         "s.yaml:2:32: ", "goes from 70 to 110"},
        {"gpus:\n  - {board: H100, utilization: {sine: {mean: 50, amplitude: 20}}}\n", "s.yaml:2:39: ", "period"},
        {"gpus:\n  - {board: H100, utilization: {csv: nope.csv}}\n", "s.yaml:2:38: ", "no such file nope.csv"},
        {"gpus:\n  - {board: H100, utilization: {csv: broken.csv}}\n", "s.yaml:2:38: ", "broken.csv line 2"},
        {"gpus:\n  - {board: H100, utilization: {csv: load.csv, column: x}}\n", "s.yaml:2:38: ", "no column `x`"},
        {"gpus:\n  - {board: H100, utilization: {step: [[0, 1]], column: x}}\n", "s.yaml:2:32: ", "for csv"},
        {"gpus:\n  - {board: H100, utilization: {step: [[0, 1]], loop: true}}\n", "s.yaml:2:55: ", "which is 0"},
        {"gpus:\n  - {board: H100, memory_used_mib: 90000}\n", "s.yaml:2:5: ", "has 81079 MiB"},
        {"gpus:\n  - {board: H100, memory_used_mib: 1, memory_used_percent: 1}\n", "s.yaml:2:60: ", "not both"},
        {"gpus:\n  - {board: H100, uuid: GPU-1}\n", "s.yaml:2:25: ", "must look like GPU-"},
        {"gpus:\n  - {board: H100, pci: 3b}\n", "s.yaml:2:24: ", "must look like 00000000:3B:00.0"},
        {"gpus:\n  - {board: H100, count: 2, index: 1}\n", "s.yaml:2:36: ", "for one GPU"},
        {"gpus:\n  - {board: H100, count: 65}\n", "s.yaml:2:26: ", "allowed is 1 to 64"},
        {"gpus:\n  - {board: T4, index: 1}\n  - {board: T4, index: 1}\n", "s.yaml:3:24: ", "given twice"},
        {"gpus:\n  - {board: T4, index: 2}\n", "s.yaml:2:24: ", "allowed is 0 to 0"},
        {"gpus:\n  - {board: T4, pci: '0000:0a:00.0'}\n  - {board: T4, pci: '00000000:0A:00.0'}\n",
         "s.yaml:2:3: ", "same PCI address"},
        {"gpus:\n  - {board: T4, processes: [{memory_mib: 1}]}\n", "s.yaml:2:29: ", "needs a pid"},
        {"gpus:\n  - {board: T4, processes: [{pid: 1, kind: x}]}\n", "s.yaml:2:38: ", "no key `kind`"},
        {"gpus:\n  - {board: T4, throttle: [hot]}\n", "s.yaml:2:28: ", "hw_thermal_slowdown"},
        {"gpus: []\nevents: [{xid: 79}]\n", "s.yaml:2:10: ", "needs `at`"},
        {"gpus: []\nevents: [{at: 1, xid: 79, count: 0}]\n", "s.yaml:2:10: ", "exactly one"},
        {"gpus: []\nevents: [{at: 1, xid: 79, gpu: 0}]\n", "s.yaml:2:32: ", "there are no GPUs"},
        {"gpus: [{board: T4}]\nevents: [{at: 1, count: 2}]\n", "s.yaml:2:25: ", "allowed is 0 to 1"},
        {"gpus: [{board: T4}]\nevents: [{at: 1, gpu: 0, mig: [1g.5gb]}]\n", "s.yaml:2:31: ", "T4 has no MIG"},
        {"gpus: []\nfaults: [{from: 1}]\n", "s.yaml:2:10: ", "needs `fault: NAME`"},
        {"gpus: []\nfaults: [{fault: gone}]\n", "s.yaml:2:18: ", "driver_not_loaded"},
        {"gpus: []\nfaults: [{fault: lost, from: 5, until: 5}]\n", "s.yaml:2:40: ", "later than `from`"},
        {"gpus: []\nfaults: [{fault: not_supported}]\n", "s.yaml:2:10: ", "a function or a field"},
        {"gpus: []\nfaults: [{fault: slow}]\n", "s.yaml:2:10: ", "`ms`"},
        {"gpus: []\nfaults: [{fault: hung, ms: 5}]\n", "s.yaml:2:28: ", "`ms`"},
        {"gpus: []\nfaults: [{fault: unknown, function: nvmlDeviceGetPowerUse}]\n",
         "s.yaml:2:37: ", "did you mean `nvmlDeviceGetPowerUsage`?"},
        {"gpus: []\nfaults: [{fault: unknown, function: cuda*}]\n", "s.yaml:2:37: ", "no simulated function"},
        {"gpus: &all []\n", "s.yaml:1:7: ", "anchors, aliases and tags"},
        {"gpus: []\nevents: *all\n", "s.yaml:2:9: ", ""},
        {"gpus: !!seq []\n", "s.yaml:1:7: ", "tags"},
        {"gpus: []\n---\ngpus: []\n", "s.yaml:2:1: ", "only one document"},
        {"gpus: []\ngpus: []\n", "s.yaml:2:1: ", "duplicate key `gpus`, first given on line 1"},
        {"gpus: [[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]\n", "s.yaml:1:", "nested too deeply"},
        {"gpus: []\n? [a]\n: b\n", "s.yaml:2:3: ", "a key must be plain text"},
        {"gpus:\n  - {board: \"a\\0b\"}\n", "s.yaml:2:13: ", "without NUL"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = {0};
        struct scenario *s = parse_into(cases[i].text, &e);
        if (s || strncmp(e.text, cases[i].place, strlen(cases[i].place)) != 0 || !strstr(e.text, cases[i].says))
            print_message("%s\nwant %s ... %s\ngot  %s\n", cases[i].text, cases[i].place, cases[i].says,
                          s ? "accepted" : e.text);
        assert_null(s);
        assert_memory_equal(e.text, cases[i].place, strlen(cases[i].place));
        assert_non_null(strstr(e.text, cases[i].says));
        assert_null(strchr(e.text, '\n'));
    }
}

static void test_defaults_describe_a_machine(void **state)
{
    (void)state;
    struct scenario *s = parse("gpus: [{board: h100, count: 3}]");
    assert_string_equal(s->driver, SCENARIO_DEFAULT_DRIVER);
    assert_string_equal(s->nvml, "12." SCENARIO_DEFAULT_DRIVER);
    assert_int_equal(s->cuda, 12080);
    assert_int_equal(s->n_gpus, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(s->gpus[i].board->key, "H100");
        assert_int_equal(strlen(s->gpus[i].uuid), 40);
        assert_int_equal(s->gpus[i].minor, i);
        assert_int_equal(s->gpus[i].n_layouts, 1);
        assert_false(s->gpus[i].layouts[0].is_enabled);
    }
    assert_string_not_equal(s->gpus[0].uuid, s->gpus[1].uuid);
    assert_int_not_equal(s->gpus[0].bus, s->gpus[1].bus);
    scenario_free(s);
}

static void test_the_same_seed_gives_the_same_machine(void **state)
{
    (void)state;
    struct scenario *a = parse("seed: 5\ngpus: [{board: T4, utilization: {noise: {mean: 50, amplitude: 9}}}]");
    struct scenario *b = parse("seed: 5\ngpus: [{board: T4, utilization: {noise: {mean: 50, amplitude: 9}}}]");
    struct scenario *c = parse("seed: 6\ngpus: [{board: T4, utilization: {noise: {mean: 50, amplitude: 9}}}]");
    assert_string_equal(a->gpus[0].uuid, b->gpus[0].uuid);
    assert_string_not_equal(a->gpus[0].uuid, c->gpus[0].uuid);
    assert_double_same(curve_value(utilization(a, 0), 3), curve_value(utilization(b, 0), 3));
    assert_true(curve_value(utilization(a, 0), 3) != curve_value(utilization(c, 0), 3));
    scenario_free(a);
    scenario_free(b);
    scenario_free(c);
}

static void test_counted_gpus_have_noise_of_their_own(void **state)
{
    (void)state;
    struct scenario *s = parse("gpus: [{board: T4, count: 2, utilization: {noise: {mean: 50, amplitude: 9}}}]");
    assert_true(curve_value(utilization(s, 0), 3) != curve_value(utilization(s, 1), 3));
    scenario_free(s);
}

static void test_curves_are_read_in_all_forms(void **state)
{
    (void)state;
    static const struct {
        const char *curve;
        double t_s, value;
    } cases[] = {
        {"37.5", 9, 37.5},
        {"{step: [[0, 10], [30, 80]]}", 31, 80},
        {"{ramp: [[0, 10], [30, 70]]}", 10, 30},
        {"{ramp: [[0, 10], [30, 70]], loop: true}", 40, 30},
        {"{step: [[0, 10], [30, 70]], loop: 60}", 70, 10},
        {"{step: [[0, 10], [30, 70]], loop: false}", 70, 70},
        {"{sine: {mean: 50, amplitude: 10, period: 40}}", 10, 60},
        {"{sine: {mean: 50, amplitude: 10, period: 40, phase: 10}}", 10, 50},
        {"{csv: load.csv}", 45, 80},
        {"{csv: load.csv, interpolate: linear}", 45, 50},
        {"{csv: load.csv, column: rows, scale: 10}", 45, 20},
        {"{csv: bare.csv}", 11, 6},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[256];
        (void)snprintf(text, sizeof(text), "gpus: [{board: T4, utilization: %s}]", cases[i].curve);
        struct scenario *s = parse(text);
        assert_double_near(curve_value(utilization(s, 0), cases[i].t_s), cases[i].value, 1e-9);
        scenario_free(s);
    }
}

static void test_indexes_reorder_gpus_and_overrides_are_taken(void **state)
{
    (void)state;
    struct scenario *s = parse("gpus:\n"
                               "  - {board: T4}\n"
                               "  - board: A10\n"
                               "    index: 0\n"
                               "    uuid: GPU-01234567-89ab-cdef-0123-456789abcdef\n"
                               "    pci: 00000008:3b:01.0\n"
                               "    serial: '12'\n"
                               "    minor: 7\n");
    assert_string_equal(s->gpus[0].board->key, "A10");
    assert_string_equal(s->gpus[1].board->key, "T4");
    assert_string_equal(s->gpus[0].uuid, "GPU-01234567-89ab-cdef-0123-456789abcdef");
    assert_int_equal(s->gpus[0].domain, 8);
    assert_int_equal(s->gpus[0].bus, 0x3b);
    assert_int_equal(s->gpus[0].slot, 1);
    assert_int_equal(s->gpus[0].minor, 7);
    assert_string_equal(s->gpus[0].serial, "12");
    scenario_free(s);
}

static const struct mig_layout *first_layout(const struct scenario *s)
{
    return &s->gpus[0].layouts[0];
}

static void test_mig_instances_get_places_and_the_drivers_ids(void **state)
{
    (void)state;
    static const struct {
        const char *profiles;
        size_t n;
        struct {
            uint32_t start, id;
        } want[7];
    } cases[] = {
        {"[7g.80gb]", 1, {{0, 0}}},
        {"[3g.40gb, 3g.40gb]", 2, {{0, 1}, {4, 2}}},
        {"[4g.40gb, 2g.20gb, 1g.10gb]", 3, {{0, 1}, {4, 5}, {6, 13}}},
        {"[{profile: 1g.10gb, count: 7}]", 7, {{0, 7}, {1, 8}, {2, 9}, {3, 10}, {4, 11}, {5, 12}, {6, 13}}},
        {"[{profile: 3g.40gb, start: 4}, 1g.20gb]", 2, {{0, 3}, {4, 2}}},
        {"[1g.10gb+me, 2g.20gb]", 2, {{0, 7}, {2, 4}}},
        {"[]", 0, {{0, 0}}},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[256];
        (void)snprintf(text, sizeof(text), "gpus: [{board: H100, mig: %s}]", cases[i].profiles);
        struct scenario *s = parse(text);
        assert_true(first_layout(s)->is_enabled);
        assert_int_equal(first_layout(s)->n_instances, cases[i].n);
        for (size_t k = 0; k < cases[i].n; k++) {
            assert_int_equal(first_layout(s)->instances[k].start, cases[i].want[k].start);
            assert_int_equal(first_layout(s)->instances[k].id, cases[i].want[k].id);
        }
        scenario_free(s);
    }
}

static void test_mig_layouts_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "[7g.80gb, 1g.10gb]",
        "[4g.40gb, 4g.40gb]",
        "[3g.40gb, 3g.40gb, 1g.10gb]",
        "[{profile: 1g.10gb, start: 7}]",
        "[{profile: 3g.40gb, start: 1}]",
        "[{profile: 4g.40gb, start: 4}]",
        "[1g.10gb, {profile: 7g.80gb, start: 0}]",
        "[1g.10gb+me, 1g.10gb+me]",
        "[{profile: 2g.20gb, compute: [2c, 1c]}]",
        "[{profile: 2g.20gb, compute: [3c.2g.20gb]}]",
        "[{profile: 2g.20gb, compute: [1c.3g.40gb]}]",
        "[{profile: 1g.10gb, power_w: 5}]",
        "[{profile: 1g.10gb, memory_used_mib: 20000}]",
        "[1g.5gb]",
        "on",
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[256];
        struct err e = {0};
        (void)snprintf(text, sizeof(text), "gpus: [{board: H100, mig: %s}]", cases[i]);
        struct scenario *s = parse_into(text, &e);
        if (s)
            print_message("accepted: %s\n", cases[i]);
        assert_null(s);
        assert_memory_equal(e.text, "s.yaml:1:", 9);
    }
}

static void test_mig_uuids_depend_on_gpu_shape_and_place_only(void **state)
{
    (void)state;
    struct scenario *a = parse("gpus: [{board: H100, mig: [3g.40gb, 3g.40gb]}]");
    struct scenario *b = parse("gpus: [{board: H100, mig: [3g.40gb, 2g.20gb], utilization: 4}]");
    const struct mig_instance *x = first_layout(a)->instances, *y = first_layout(b)->instances;
    assert_string_equal(x[0].compute[0].uuid, y[0].compute[0].uuid);
    assert_string_not_equal(x[0].compute[0].uuid, x[1].compute[0].uuid);
    assert_string_not_equal(x[1].compute[0].uuid, y[1].compute[0].uuid);
    assert_memory_equal(x[0].compute[0].uuid, "MIG-", 4);
    scenario_free(a);
    scenario_free(b);
}

static void test_compute_instances_share_a_gpu_instance(void **state)
{
    (void)state;
    struct scenario *s = parse("gpus: [{board: A100-40, mig: [{profile: 3g.20gb, compute: [2c.3g.20gb, 1c]}]}]");
    const struct mig_instance *gi = first_layout(s)->instances;
    assert_int_equal(gi->n_compute, 2);
    assert_string_equal(gi->compute[0].profile, "2c.3g.20gb");
    assert_string_equal(gi->compute[1].profile, "1c.3g.20gb");
    assert_int_equal(gi->compute[1].start, 2);
    assert_int_equal(gi->compute[1].id, 1);
    scenario_free(s);
}

static void test_profile_names_follow_the_board(void **state)
{
    (void)state;
    static const struct {
        const char *board, *profile;
    } cases[] = {{"A100-40", "1g.5gb"},  {"A100-80", "2g.20gb"}, {"H100", "1g.20gb"},   {"H200", "1g.18gb"},
                 {"B200", "3g.90gb"},    {"GH200", "4g.48gb"},   {"GB200", "7g.186gb"}, {"A100-40", "1g.5gb+me"},
                 {"A100-80", "7g.80gb"}, {"H200", "7g.141gb"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[128];
        (void)snprintf(text, sizeof(text), "gpus: [{board: %s, mig: [%s]}]", cases[i].board, cases[i].profile);
        struct scenario *s = parse(text);
        assert_string_equal(first_layout(s)->instances[0].profile.name, cases[i].profile);
        scenario_free(s);
    }
}

static void test_events_come_in_the_order_of_time(void **state)
{
    (void)state;
    struct scenario *s = parse("gpus: [{board: H100, count: 2}]\n"
                               "events:\n"
                               "  - {at: 30, count: 1}\n"
                               "  - {at: 10, gpu: 1, xid: 79}\n"
                               "  - {at: 20, gpu: all, mig: [1g.10gb]}\n"
                               "  - {at: 10, gpu: 0, ecc: {corrected: 2}}\n"
                               "  - {at: 25, gpu: 0, mig: off}\n");
    const enum event_kind want[] = {EVENT_XID, EVENT_ECC, EVENT_MIG, EVENT_MIG, EVENT_COUNT};
    assert_int_equal(s->n_events, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(s->events[i].kind, want[i]);
    assert_int_equal(s->gpus[0].n_layouts, 3);
    assert_int_equal(s->gpus[1].n_layouts, 2);
    assert_true(s->gpus[0].layouts[1].is_enabled);
    assert_false(s->gpus[0].layouts[2].is_enabled);
    scenario_free(s);
}

static void test_faults_know_functions_prefixes_and_fields(void **state)
{
    (void)state;
    struct scenario *s = parse("gpus: [{board: T4}]\n"
                               "faults:\n"
                               "  - {fault: not_supported, function: nvmlDeviceGetPowerUsage, gpu: 0}\n"
                               "  - {fault: unknown, function: nvmlDeviceGet*, from: 3}\n"
                               "  - {fault: not_supported, field: 82}\n"
                               "  - {fault: slow, ms: 250, until: 9.5}\n");
    assert_int_equal(s->n_faults, 4);
    assert_false(s->faults[0].is_prefix);
    assert_int_equal(s->faults[0].gpu, 0);
    assert_true(s->faults[1].is_prefix);
    assert_string_equal(s->faults[1].function, "nvmlDeviceGet");
    assert_int_equal(s->faults[2].field, 82);
    assert_int_equal(s->faults[2].gpu, EVENT_ALL_GPUS);
    assert_true(isinf(s->faults[2].until_s));
    assert_double_same(s->faults[3].slow_ms, 250);
    scenario_free(s);
}

static void test_too_large_a_file_is_refused(void **state)
{
    (void)state;
    size_t len = SCENE_TEXT_MAX + 1;
    MEM_AUTO char *text = (char *)mem_new_array(len + 1, 1);
    memset(text, ' ', len);
    struct err e = {0};
    assert_null(parse_into(text, &e));
    assert_non_null(strstr(e.text, "larger than"));
}

static void test_the_built_in_scenario_has_two_gpus(void **state)
{
    (void)state;
    struct scenario *s = parse(scenario_default_text);
    assert_int_equal(s->n_gpus, 2);
    scenario_free(s);
}

static void assert_in_guide(struct buf *guide, const char *name)
{
    char quoted[64];
    (void)snprintf(quoted, sizeof(quoted), "`%s`", name);
    bool is_there = strstr(buf_cstr(guide), quoted) != NULL;
    if (!is_there)
        print_message("docs/nvmlsim.md does not mention %s\n", quoted);
    assert_true(is_there);
}

static void test_the_guide_names_every_key_board_and_fault(void **state)
{
    (void)state;
    const char *folder = getenv("TEST_DATA");
    if (!folder)
        skip();
    char path[512];
    struct err e = {0};
    BUF_AUTO struct buf guide;
    buf_init(&guide, 1 << 20);
    (void)snprintf(path, sizeof(path), "%s/../docs/nvmlsim.md", folder);
    assert_int_equal(file_read(path, &guide, &e), 0);
#define X(name, key, lowest, highest, is_of_instance) assert_in_guide(&guide, key);
    SIGNALS(X)
#undef X
#define X(name, key) assert_in_guide(&guide, key);
    ECC_COUNTS(X)
#undef X
#define X(name, key, rc) assert_in_guide(&guide, key);
    FAULTS(X)
#undef X
    size_t n;
    const struct board *all = board_all(&n);
    for (size_t i = 0; i < n; i++)
        assert_in_guide(&guide, all[i].key);
}

static void test_every_board_is_whole(void **state)
{
    (void)state;
    size_t n;
    const struct board *all = board_all(&n);
    assert_true(n >= 10);
    for (size_t i = 0; i < n; i++) {
        const struct board *b = &all[i];
        assert_ptr_equal(board_find(b->key), b);
        assert_true(b->memory_mib > b->reserved_mib && b->reserved_mib > 0);
        assert_true(b->limit_w > b->limit_min_w && b->limit_min_w > b->idle_w * 0 && b->limit_w > b->idle_w);
        assert_true(b->sm_clock_mhz > b->idle_clock_mhz && b->memory_clock_mhz > 0 && b->multiprocessors > 0);
        assert_int_equal((b->can & CAN_GPM) != 0, b->architecture >= NVML_ARCH_HOPPER);
        assert_int_equal((b->can & CAN_MIG) != 0, b->mig_gb[0] > 0);
        assert_int_equal((b->can & (CAN_NVLINK_KIB | CAN_NVLINK5)) != 0, b->nvlinks > 0);
        assert_false((b->can & CAN_NVLINK_KIB) && (b->can & CAN_NVLINK5));
        if (i > 0)
            assert_string_not_equal(b->name, all[i - 1].name);
    }
    assert_null(board_find("GTX"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_wrong_is_named_with_line_and_column),
        cmocka_unit_test(test_defaults_describe_a_machine),
        cmocka_unit_test(test_the_same_seed_gives_the_same_machine),
        cmocka_unit_test(test_counted_gpus_have_noise_of_their_own),
        cmocka_unit_test(test_curves_are_read_in_all_forms),
        cmocka_unit_test(test_indexes_reorder_gpus_and_overrides_are_taken),
        cmocka_unit_test(test_mig_instances_get_places_and_the_drivers_ids),
        cmocka_unit_test(test_mig_layouts_that_do_not_fit_are_refused),
        cmocka_unit_test(test_mig_uuids_depend_on_gpu_shape_and_place_only),
        cmocka_unit_test(test_compute_instances_share_a_gpu_instance),
        cmocka_unit_test(test_profile_names_follow_the_board),
        cmocka_unit_test(test_events_come_in_the_order_of_time),
        cmocka_unit_test(test_faults_know_functions_prefixes_and_fields),
        cmocka_unit_test(test_too_large_a_file_is_refused),
        cmocka_unit_test(test_the_built_in_scenario_has_two_gpus),
        cmocka_unit_test(test_the_guide_names_every_key_board_and_fault),
        cmocka_unit_test(test_every_board_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
