/* Options: flags in all spellings, environment, file, their order, and refusals that say what is allowed. */
#include "agent/agent.h"
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "support.h"

static const struct option_def defs[] = {
    {.name = "port",
     .kind = OPTION_INT,
     .fallback = "6000",
     .metavar = "PORT",
     .help = "port",
     .min = 0,
     .max = 65535,
     .letter = 'p'},
    {.name = "log-level",
     .kind = OPTION_CHOICE,
     .fallback = "info",
     .metavar = "LEVEL",
     .help = "level",
     .choices = "debug|info",
     .letter = 'l'},
    {.name = "wait",
     .kind = OPTION_DURATION,
     .fallback = "5s",
     .metavar = "D",
     .help = "wait",
     .min = 0,
     .max = 60 * NS_PER_S},
    {.name = "listen", .kind = OPTION_LIST, .fallback = "", .metavar = "ADDR", .help = "address"},
    {.name = "tls", .kind = OPTION_BOOL, .fallback = "false", .help = "tls"},
    {.name = "name", .kind = OPTION_TEXT, .fallback = "", .metavar = "NAME", .help = "name"},
};

static int parse(struct option_set *set, const char *line, struct err *e)
{
    static char words[256];
    static char *argv[32];
    int argc = 0;
    argv[argc++] = words; /* not looked at */
    (void)str_copy(words, sizeof(words), str_of(line));
    for (char *at = words; *at;) {
        argv[argc++] = at;
        at += strcspn(at, " ");
        if (*at)
            *at++ = '\0';
    }
    option_set_init(set, defs, ARRAY_LEN(defs), "KGS_TEST_");
    return option_set_parse(set, argc, argv, e);
}

static void test_flags_are_read_in_all_spellings(void **state)
{
    (void)state;
    static const char *const lines[] = {"--port 7000", "--port=7000", "-port 7000", "-port=7000", "-p 7000", "-p=7000"};
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct option_set set;
        struct err e;
        assert_int_equal(parse(&set, lines[i], &e), 0);
        assert_int_equal(option_int(&set, "port"), 7000);
        assert_true(option_is_set(&set, "port"));
        assert_false(option_is_set(&set, "name"));
        option_set_fini(&set);
    }
}

static void test_choices_may_stand_right_behind_their_letter(void **state)
{
    (void)state;
    static const char *const lines[] = {"-ldebug", "-l debug", "-l=debug"};
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct option_set set;
        struct err e;
        assert_int_equal(parse(&set, lines[i], &e), 0);
        assert_string_equal(option_text(&set, "log-level"), "debug");
        option_set_fini(&set);
    }
}

/* A Service named as the prefix: Kubernetes sets PREFIX_PORT and more for each pod of its namespace. */
static void test_variables_that_kubernetes_sets_for_a_service_are_passed_over(void **state)
{
    (void)state;
    static const char *const values[] = {"tcp://10.96.7.9:6000", "udp://10.96.7.9:53", "sctp://[fd00::1]:1", ""};
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        struct option_set set;
        struct err e;
        assert_int_equal(setenv("KGS_TEST_PORT", values[i], 1), 0);
        assert_int_equal(parse(&set, "", &e), 0);
        assert_int_equal(option_set_environment(&set, &e), 0);
        assert_int_equal(option_int(&set, "port"), 6000);
        assert_false(option_is_set(&set, "port"));
        option_set_fini(&set);
    }
    assert_int_equal(unsetenv("KGS_TEST_PORT"), 0);
}

static void test_a_wrong_variable_is_refused_by_its_name(void **state)
{
    (void)state;
    struct option_set set;
    struct err e;
    assert_int_equal(setenv("KGS_TEST_LOG_LEVEL", "loud", 1), 0);
    assert_int_equal(parse(&set, "", &e), 0);
    assert_int_equal(option_set_environment(&set, &e), -1);
    assert_string_equal(e.text, "environment variable KGS_TEST_LOG_LEVEL \"loud\": is not one of debug|info");
    option_set_fini(&set);
    assert_int_equal(unsetenv("KGS_TEST_LOG_LEVEL"), 0);
}

static void test_lists_bools_operands_and_the_double_dash(void **state)
{
    (void)state;
    struct option_set set;
    struct err e;
    assert_int_equal(parse(&set, "one --listen a --tls --listen=b -- --port", &e), 0);
    size_t n;
    char *const *listen = option_list(&set, "listen", &n);
    assert_int_equal(n, 2);
    assert_string_equal(listen[0], "a");
    assert_string_equal(listen[1], "b");
    assert_true(option_bool(&set, "tls"));
    assert_int_equal(set.operands.len, 2);
    assert_string_equal(set.operands.items[1], "--port");
    assert_int_equal(option_duration(&set, "wait"), 5 * NS_PER_S);
    option_set_fini(&set);
}

static void test_refusals_say_what_is_allowed(void **state)
{
    (void)state;
    static const struct {
        const char *line, *want;
    } rows[] = {
        {"--prot 1", "unknown flag --prot (did you mean --port?)"},
        {"--zzzzzz", "unknown flag --zzzzzz; --help lists the flags"},
        {"--port", "--port needs a value (PORT)"},
        {"--port 70000", "--port \"70000\": must be from 0 to 65535"},
        {"--port x", "--port \"x\": is not a whole number"},
        {"--log-level loud", "--log-level \"loud\": is not one of debug|info"},
        {"--wait 5", "--wait \"5\": is not a duration"},
        {"--wait 61s", "--wait \"61s\": must be from 0ms to 1m"},
        {"-z", "unknown flag -z; --help lists the flags"},
        {"-prot 1", "unknown flag -prot (did you mean --port?)"},
        {"-l loud", "--log-level \"loud\": is not one of debug|info"},
        {"-lloud", "unknown flag -lloud"},
        {"--listen=", "--listen \"\": is empty"},
        {"--tls=maybe", "--tls \"maybe\": is neither true nor false"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct option_set set;
        struct err e;
        assert_int_equal(parse(&set, rows[i].line, &e), -1);
        assert_int_equal(e.class, ERR_INVALID_ARGUMENT);
        if (!strstr(e.text, rows[i].want))
            fail_msg("%s: \"%s\" does not contain \"%s\"", rows[i].line, e.text, rows[i].want);
        option_set_fini(&set);
    }
}

static void test_flags_beat_environment_beats_file_beats_default(void **state)
{
    (void)state;
    struct option_set set;
    struct err e;
    assert_int_equal(setenv("KGS_TEST_PORT", "2", 1) | setenv("KGS_TEST_NAME", "environment", 1) |
                         setenv("KGS_TEST_LISTEN", "x, y", 1),
                     0);
    assert_int_equal(parse(&set, "--port 3", &e), 0);
    assert_int_equal(option_set_environment(&set, &e), 0);
    bool is_list;
    assert_int_equal(option_set_file_key(&set, "port", &is_list, &e), 0);
    assert_false(is_list);
    assert_int_equal(option_set_file_key(&set, "listen", &is_list, &e), 0);
    assert_true(is_list);
    assert_int_equal(option_set_file_value(&set, "port", "1", &e), 0);
    assert_int_equal(option_set_file_value(&set, "name", "file", &e), 0);
    assert_int_equal(option_set_file_value(&set, "wait", "1s", &e), 0);
    assert_int_equal(option_int(&set, "port"), 3);
    assert_string_equal(option_text(&set, "name"), "environment");
    assert_int_equal(option_duration(&set, "wait"), NS_PER_S);
    size_t n;
    char *const *listen = option_list(&set, "listen", &n);
    assert_int_equal(n, 2);
    assert_string_equal(listen[1], "y");
    BUF_AUTO struct buf text;
    buf_init(&text, 4096);
    option_print(&set, &text);
    assert_string_equal(buf_cstr(&text), "port: \"3\" # flag\nlog-level: \"info\" # default\nwait: \"1s\" # file\n"
                                         "listen: [\"x\", \"y\"] # environment\ntls: \"false\" # default\n"
                                         "name: \"environment\" # environment\n");
    option_set_fini(&set);
    assert_int_equal(unsetenv("KGS_TEST_PORT") | unsetenv("KGS_TEST_NAME") | unsetenv("KGS_TEST_LISTEN"), 0);
}

/* ---- the configuration file ---- */

static int read_config(const char *text, struct option_set *set, struct daemon_reloadable *ret, struct err *e)
{
    option_set_init(set, agent_options, agent_option_count, NULL);
    *ret = (struct daemon_reloadable){0};
    return config_text_read("agent.yaml", str_of(text), set, ret, e);
}

static void test_config_file_sets_flags_and_metrics(void **state)
{
    (void)state;
    struct option_set set;
    struct daemon_reloadable got;
    struct err e;
    assert_int_equal(read_config("port: 7001\nlisten: [a:1, b:2]\nlog-level: debug\n"
                                 "metrics:\n  - name: GPU_Memory_Used\n    type: Utilization\n    targetValue: 85\n"
                                 "    aggregation: avg\n    gpuIndex: -1\n  - {name: other}\n",
                                 &set, &got, &e),
                     0);
    assert_int_equal(option_int(&set, "port"), 7001);
    size_t n;
    (void)option_list(&set, "listen", &n);
    assert_int_equal(n, 2);
    assert_int_equal(got.n_defaults, 2);
    assert_string_equal(got.defaults[0].name, "gpu_memory_used");
    assert_true(got.defaults[0].has_target && got.defaults[0].has_aggregation && got.defaults[0].has_gpu_index);
    assert_double_same(got.defaults[0].target, 85);
    assert_int_equal(got.defaults[0].aggregation, SCALING_AVG);
    assert_int_equal(got.defaults[0].gpu_index, -1);
    assert_false(got.defaults[1].has_target || got.defaults[1].has_aggregation || got.defaults[1].has_gpu_index);
    free(got.defaults);
    option_set_fini(&set);
}

static void test_an_empty_config_file_sets_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "# nothing\n", "{}\n"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct option_set set;
        struct daemon_reloadable got;
        struct err e;
        assert_int_equal(read_config(texts[i], &set, &got, &e), 0);
        assert_int_equal(got.n_defaults, 0);
        option_set_fini(&set);
    }
}

static void test_config_refusals_carry_line_and_column(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"port: 1\nprot: 2\n", "agent.yaml:2:1: unknown key prot (did you mean port?)"},
        {"port: many\n", "agent.yaml:1:7: port \"many\": is not a whole number"},
        {"port: 1\nport: 2\n", "agent.yaml:2:1: this key is already set above"},
        {"port: {a: 1}\n", "agent.yaml:1:7: must be one plain value"},
        {"port: [1, 2]\n", "agent.yaml:1:7: must be one plain value"},
        {"listen: {a: 1}\n", "agent.yaml:1:9: must be a plain value or a list"},
        {"listen: [a, [b]]\n", "agent.yaml:1:13: must be a plain value"},
        {"listen: \"\"\n", "agent.yaml:1:9: listen \"\": is empty"},
        {"print-confi: x\n", "agent.yaml:1:1: unknown key print-confi; --help lists"},
        {"- a\n", "agent.yaml:1:1: must be a mapping"},
        {"a: [1\n", "agent.yaml:2:1: not valid YAML"},
        {"a: &x 1\nb: *x\n", "agent.yaml:2:4: aliases (*name) are not allowed"},
        {"config: x\n", "agent.yaml:1:1: --config has no meaning in a file"},
        {"metrics: 3\n", "agent.yaml:1:10: metrics must be a list"},
        {"metrics:\n  - targetValue: 3\n", "agent.yaml:2:5: a metrics entry needs a `name`"},
        {"metrics:\n  - name: a\n  - name: A\n", "agent.yaml:3:5: this name is already in the list"},
        {"metrics:\n  - name: a.b\n  - name: a-b\n",
         "agent.yaml:3:5: name \"a-b\" is not allowed: on /metrics it is a_b, as \"a.b\" is"},
        {"metrics:\n  - name: process_open_fds\n", "agent.yaml:2:5: name \"process_open_fds\" is not allowed: it is a "
                                                   "family on /metrics, where names that begin with process_ are the "
                                                   "program's own"},
        {"metrics:\n  - name: a\n    target: 3\n", "agent.yaml:3:13: unknown key \"target\"; a metrics entry has name"},
        {"metrics:\n  - name: a\n    targetValue: 0\n",
         "agent.yaml:3:18: targetValue \"0\" is not a number from 0.001"},
        {"metrics:\n  - name: a\n    aggregation: median\n", "aggregation \"median\" is not one of max, min"},
        {"metrics:\n  - name: a\n    gpuIndex: -2\n", "gpuIndex \"-2\" is neither -1"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct option_set set;
        struct daemon_reloadable got;
        struct err e = {0};
        assert_int_equal(read_config(rows[i].text, &set, &got, &e), -1);
        if (!strstr(e.text, rows[i].want))
            fail_msg("\"%s\" does not contain \"%s\"", e.text, rows[i].want);
        assert_null(got.defaults);
        option_set_fini(&set);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flags_are_read_in_all_spellings),
        cmocka_unit_test(test_choices_may_stand_right_behind_their_letter),
        cmocka_unit_test(test_variables_that_kubernetes_sets_for_a_service_are_passed_over),
        cmocka_unit_test(test_a_wrong_variable_is_refused_by_its_name),
        cmocka_unit_test(test_lists_bools_operands_and_the_double_dash),
        cmocka_unit_test(test_refusals_say_what_is_allowed),
        cmocka_unit_test(test_flags_beat_environment_beats_file_beats_default),
        cmocka_unit_test(test_config_file_sets_flags_and_metrics),
        cmocka_unit_test(test_an_empty_config_file_sets_nothing),
        cmocka_unit_test(test_config_refusals_carry_line_and_column),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
