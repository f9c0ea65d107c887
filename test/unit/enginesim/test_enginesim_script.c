/* The scenario's format: what is taken, what is refused and with which words, and that the guide has it all. */
#include "support.h"

#include "enginesim/script.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct script *parse(const char *text, struct err *e)
{
    const struct script_source source = {.name = "s.yaml"};
    *e = (struct err){0};
    return script_parse(&source, str_of(text), e);
}

static struct script *parse_well(const char *text)
{
    struct err e;
    struct script *script = parse(text, &e);
    if (!script)
        fail_msg("%s", e.text);
    return script;
}

static void test_a_server_needs_little(void **state)
{
    (void)state;
    struct script *script = parse_well("servers: [{engine: vllm, listen: \"127.1.0.5:8000\"}]");
    const struct script_server *s = script->servers;
    assert_int_equal(script->n_servers, 1);
    assert_int_equal(s->engine, SCRIPT_ENGINE_VLLM);
    assert_string_equal(s->listen, "127.1.0.5:8000");
    assert_string_equal(s->path, "/metrics");
    assert_int_equal(s->ranks, 1);
    assert_double_same(curve_value(&s->arrivals, 5), 0);
    script_free(script);
}

static void test_every_key_is_taken(void **state)
{
    (void)state;
    struct script *script =
        parse_well("seed: 7\nrestart_clock: true\nservers:\n"
                   "  - engine: sglang\n    listen: \"127.1.0.5:30000\"\n    count: 1\n    path: /m\n    model: qwen\n"
                   "    token: secret\n    tls_cert: a.crt\n    tls_key: a.key\n"
                   "    names: both\n    ranks: 2\n    tensor_ranks: 4\n    api_servers: 3\n"
                   "    waiting_by_reason: true\n    gzip: true\n    poisson: true\n    attention_dp: true\n"
                   "    arrivals: {ramp: [[0, 1], [60, 9]], loop: true}\n    shares: [3, 1]\n    service_rate: 0.5\n"
                   "    prefill_percent: 20\n    slots: 256\n    kv_per_request_percent: 0.4\n"
                   "    kv_base_percent: 5\n    prompt_tokens: 1000\n    output_tokens: 300\n    pad_bytes: 120000\n"
                   "    faults: [{fault: status, code: 404, from: 3, until: 9}, {fault: slow, rate: 0.01},\n"
                   "             {fault: restart, from: 4}]\n");
    const struct script_server *s = script->servers;
    assert_true(script->restart_clock);
    assert_int_equal(script->seed, 7);
    assert_string_equal(s->path, "/m");
    assert_string_equal(s->model, "qwen");
    assert_string_equal(s->token, "secret");
    assert_string_equal(s->tls_cert, "a.crt");
    assert_string_equal(s->tls_key, "a.key");
    assert_int_equal(s->names, SCRIPT_NAMES_BOTH);
    assert_int_equal(s->ranks * 100 + s->tensor_ranks * 10 + s->api_servers, 243);
    assert_true(s->has_reasons && s->is_gzipped && s->is_poisson && s->is_attention_dp);
    assert_double_near(curve_value(&s->arrivals, 30), 5, 1e-9);
    assert_double_near(s->shares[0], 0.75, 1e-9);
    assert_double_same(s->service_rate, 0.5);
    assert_int_equal(s->slots, 256);
    assert_int_equal(s->n_faults, 3);
    assert_int_equal(s->faults[0].code, 404);
    assert_double_same(s->faults[0].until_s, 9);
    assert_double_same(s->faults[1].rate, 0.01);
    assert_true(isinf(s->faults[1].until_s));
    assert_double_same(s->faults[2].until_s, 4);
    script_free(script);
}

static void test_count_gives_the_next_addresses(void **state)
{
    (void)state;
    struct script *script = parse_well("servers: [{engine: tgi, listen: \"127.1.0.254:80\", count: 4}]");
    assert_int_equal(script->n_servers, 4);
    assert_string_equal(script->servers[0].listen, "127.1.0.254:80");
    assert_string_equal(script->servers[2].listen, "127.1.1.0:80");
    assert_string_equal(script->servers[3].listen, "127.1.1.1:80");
    script_free(script);
}

#define SERVER(text) "servers: [{engine: vllm, listen: \"127.0.0.1:1\", " text "}]"

static void test_what_is_refused_is_named_with_its_place(void **state)
{
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"", "s.yaml:1:1: the document is empty"},
        {"[]", "a scenario must be a map"},
        {"seed: 1", "needs `servers:`"},
        {"servers: 3", "servers must be a list"},
        {"serverz: []", "did you mean `servers`?"},
        {"servers: [{listen: \"127.0.0.1:1\"}]", "needs `engine:` and `listen:`"},
        {"servers: [{engine: vllm}]", "needs `engine:` and `listen:`"},
        {"servers: [{engine: vlm, listen: \"127.0.0.1:1\"}]", "did you mean `vllm`?"},
        {"servers: [{engine: vllm, listen: here}]", "address like"},
        {SERVER("arivals: 3"), "s.yaml:1:49: a server has no key `arivals`, did you mean `arrivals`?"},
        {SERVER("arrivals: -1"), "out of range: allowed is 0 to 100000"},
        {SERVER("arrivals: {sine: {mean: 1, amplitude: 2, period: 5}}"), "goes from -1 to 3"},
        {SERVER("arrivals: {csv: a.csv}"), "CSV files cannot be read here"},
        {SERVER("service_rate: 0"), "out of range"},
        {SERVER("slots: 0"), "out of range: allowed is 1 to 4096"},
        {SERVER("ranks: 65"), "out of range: allowed is 1 to 64"},
        {SERVER("kv_per_request_percent: 60, kv_base_percent: 41"), "not one request fits"},
        {SERVER("path: metrics"), "must begin with /"},
        {SERVER("tls_key: a"), "tls_cert and tls_key belong together"},
        {SERVER("names: newest"), "allowed: new, old, both"},
        {SERVER("shares: [1]") "x", "s.yaml:"},
        {SERVER("shares: [1, 2]"), "shares has 2 entries for 1 ranks"},
        {SERVER("shares: [0]"), "must not all be 0"},
        {SERVER("count: 2, listen: x"), "duplicate key `listen`"},
        {"servers: [{engine: vllm, listen: \"[::1]:1\", count: 2}]", "IPv4 address"},
        {"servers: [{engine: vllm, listen: \"a:1\"}, {engine: tgi, listen: \"a:1\"}]", "two servers listen on a:1"},
        {"servers: [{engine: vllm, listen: \"127.0.0.1:1\", count: 2000}, {engine: tgi, listen: \"a:1\"}]",
         "more than 2000 servers"},
        {SERVER("faults: 3"), "faults must be a list"},
        {SERVER("faults: [{from: 3}]"), "which fault?"},
        {SERVER("faults: [{fault: hangs}]"), "did you mean `hang`?"},
        {SERVER("faults: [{fault: status}]"), "code belongs to the fault status"},
        {SERVER("faults: [{fault: html, code: 404}]"), "code belongs to the fault status"},
        {SERVER("faults: [{fault: html, rate: 0.5}]"), "rate belongs to the fault slow"},
        {SERVER("faults: [{fault: html, from: 5, until: 5}]"), "until (5) must be after from (5)"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e;
        struct script *script = parse(cases[i].text, &e);
        if (script || !strstr(e.text, cases[i].said) || strncmp(e.text, "s.yaml:", 7) != 0)
            fail_msg("case %zu: %s: got \"%s\", want \"%s\"", i, cases[i].text, e.text, cases[i].said);
    }
}

/* ---- the guide ---- */

static void assert_in_guide(struct buf *guide, const char *name)
{
    char quoted[96];
    (void)snprintf(quoted, sizeof(quoted), "`%s`", name);
    if (!strstr(buf_cstr(guide), quoted))
        fail_msg("docs/enginesim.md does not mention %s", quoted);
}

/* The keys are what the error about an unknown one says is allowed. */
static void assert_keys_in_guide(struct buf *guide, const char *text)
{
    struct err e;
    assert_null(parse(text, &e));
    const char *allowed = strstr(e.text, "allowed: ");
    assert_non_null(allowed);
    struct str rest = str_of(allowed + strlen("allowed: "));
    while (rest.ptr) {
        char key[64];
        assert_true(str_copy(key, sizeof(key), str_trim(str_cut(&rest, ','))));
        assert_in_guide(guide, key);
    }
}

static void test_the_guide_names_every_key_engine_and_fault(void **state)
{
    (void)state;
    const char *folder = getenv("TEST_DATA");
    if (!folder)
        skip();
    char path[512];
    struct err e = {0};
    BUF_AUTO struct buf guide;
    buf_init(&guide, 1 << 20);
    (void)snprintf(path, sizeof(path), "%s/../docs/enginesim.md", folder);
    assert_int_equal(file_read(path, &guide, &e), 0);
    for (size_t i = 0; i < SCRIPT_ENGINE_COUNT; i++)
        assert_in_guide(&guide, script_engines[i]);
    for (size_t i = 0; i < SCRIPT_FAULT_COUNT; i++)
        assert_in_guide(&guide, script_faults[i]);
    assert_keys_in_guide(&guide, "zzzzzzzz: 1");
    assert_keys_in_guide(&guide, SERVER("zzzzzzzz: 1"));
    assert_keys_in_guide(&guide, SERVER("faults: [{zzzzzzzz: 1}]"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_server_needs_little),
        cmocka_unit_test(test_every_key_is_taken),
        cmocka_unit_test(test_count_gives_the_next_addresses),
        cmocka_unit_test(test_what_is_refused_is_named_with_its_place),
        cmocka_unit_test(test_the_guide_names_every_key_engine_and_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
