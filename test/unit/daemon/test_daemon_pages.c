/* The pages that every program has, asked as a GET would: health in all its forms, /version, the index. */
#include "daemon/private.h"

#include "support.h"

#include <stdio.h>
#include <string.h>

struct rig {
    struct daemon_config config;
    struct metrics *metrics;
    struct daemon *daemon;
    bool is_up; /* what the program's own check says */
    struct net_get_response answer;
};

static size_t checks(void *context, struct daemon_check *out, size_t max)
{
    const struct rig *r = context;
    assert_true(max > 0);
    out[0] = (struct daemon_check){"moon", r->is_up, "new moon"};
    return 1;
}

static void verbose(void *context, struct buf *out)
{
    (void)context;
    (void)buf_append_str(out, "[+]moon full (information only)\n");
}

static void rig_start(struct rig *r, bool has_check)
{
    struct err e;
    r->config.mode = "moon";
    r->config.node_name = r->config.node_name ? r->config.node_name : "gpu-7";
    r->config.version = "1.2.3";
    r->config.build = "gcc 12.2";
    struct daemon_program program = {.checks = has_check ? checks : NULL,
                                     .verbose = verbose,
                                     .pages = "/moon\n",
                                     .services = "moon.Phase",
                                     .context = r};
    r->metrics = metrics_new();
    r->daemon = daemon_new(&r->config, &program, r->metrics, &e);
    assert_non_null(r->daemon);
}

static void rig_stop(struct rig *r)
{
    buf_fini(&r->answer.body);
    daemon_free(r->daemon);
    metrics_free(r->metrics);
}
#define RIG(r) __attribute__((cleanup(rig_stop))) struct rig r = {.is_up = true}

/* "/path?query" as a client sends it. */
static const char *get(struct rig *r, const char *target)
{
    struct str query = str_of(target), path = str_cut(&query, '?');
    struct net_get_request request = {
        .path = path, .query = query.ptr ? query : str_of(""), .accept = str_of(""), .accept_encoding = str_of("")};
    buf_fini(&r->answer.body);
    net_gets_answer(daemon_gets(r->daemon), &request, &r->answer);
    return buf_cstr(&r->answer.body);
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no \"%s\" in \"%s\"", part, text);
}

static void test_health_pages_speak_as_kubernetes_does(void **state)
{
    (void)state;
    static const struct {
        const char *target;
        bool is_draining;
        int status;
        const char *body;
    } rows[] = {
        {"/livez", false, 200, "ok"},
        {"/livez/", false, 200, "ok"},
        {"/livez", true, 200, "ok"}, /* a drain is no reason to be killed */
        {"/healthz", true, 200, "ok"},
        {"/readyz", false, 200, "ok"},
        {"/readyz/", false, 200, "ok"},
        {"/readyz", true, 503,
         "[+]loop ok\n[-]serving failed: shutting down\n[+]moon full (information only)\nreadyz check failed\n"},
        {"/livez?verbose", false, 200, "[+]loop ok\n[+]moon full (information only)\nlivez check passed\n"},
        {"/healthz?verbose=1", false, 200, "[+]loop ok\n[+]moon full (information only)\nhealthz check passed\n"},
        {"/readyz?x=1&verbose", false, 200,
         "[+]loop ok\n[+]serving ok\n[+]moon full (information only)\nreadyz check passed\n"},
        {"/readyz?verbosely", false, 200, "ok"},
        {"/readyz?exclude=serving", true, 200, "ok"},
        {"/readyz?exclude=serving&verbose", true, 200,
         "[+]loop ok\n[+]moon full (information only)\nreadyz check passed\n"},
        {"/readyz?exclude=loop&exclude=serving", true, 200, "ok"},
        {"/readyz?exclude=nothing", true, 503,
         "[+]loop ok\n[-]serving failed: shutting down\n[+]moon full (information only)\nreadyz check failed\n"},
        /* one check by its name */
        {"/readyz/serving", false, 200, "ok"},
        {"/readyz/serving", true, 503, "[-]serving failed: shutting down\nreadyz check failed\n"},
        {"/readyz/serving?verbose", false, 200, "[+]serving ok\nreadyz check passed\n"},
        {"/readyz/loop", true, 200, "ok"},
        {"/livez/loop", true, 200, "ok"},
        {"/livez/serving", false, 404, "no such check\n"},
        {"/readyz/servin", false, 404, "no such check\n"},
        {"/readyz/loop/more", false, 404, "no such check\n"},
    };
    RIG(r);
    rig_start(&r, false);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        r.daemon->is_draining = rows[i].is_draining;
        const char *body = get(&r, rows[i].target);
        if (r.answer.status != rows[i].status || strcmp(body, rows[i].body) != 0)
            fail_msg("%s%s: %d %s", rows[i].target, rows[i].is_draining ? " (draining)" : "", r.answer.status, body);
        assert_string_equal(r.answer.content_type, "text/plain; charset=utf-8");
    }
}

static void test_a_program_can_say_that_it_is_not_ready(void **state)
{
    (void)state;
    RIG(r);
    rig_start(&r, true);
    assert_string_equal(get(&r, "/readyz"), "ok");
    r.is_up = false;
    assert_has(get(&r, "/readyz"), "[-]moon failed: new moon\n");
    assert_int_equal(r.answer.status, 503);
    assert_string_equal(get(&r, "/livez"), "ok");
    assert_string_equal(get(&r, "/readyz?exclude=moon"), "ok");
    assert_has(get(&r, "/readyz/moon"), "[-]moon failed: new moon\n");
}

static void test_version_is_json_whatever_the_node_is_called(void **state)
{
    (void)state;
    static const struct {
        const char *name, *json;
    } rows[] = {
        {"gpu-7", "\"gpu-7\""},
        {"", "\"\""},
        {"a\"b\\c", "\"a\\\"b\\\\c\""},
        {"a\nb\tc\x01", "\"a\\nb\\tc\\u0001\""},
        {"caf\xC3\xA9", "\"caf\xC3\xA9\""},
        {"\xff", "\"\xEF\xBF\xBD\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char want[512];
        RIG(r);
        r.config.node_name = rows[i].name;
        rig_start(&r, false);
        (void)snprintf(want, sizeof(want),
                       "{\n  \"program\": \"keda-gpu-scaler\",\n  \"mode\": \"moon\",\n  \"version\": \"1.2.3\",\n"
                       "  \"gitVersion\": \"1.2.3\",\n  \"compiler\": \"gcc 12.2\",\n  \"node\": %s\n}\n",
                       rows[i].json);
        assert_string_equal(get(&r, "/version"), want);
        assert_string_equal(r.answer.content_type, "application/json");
    }
}

static void test_the_index_names_what_there_is(void **state)
{
    (void)state;
    static const char *const pages[] = {"/livez", "/readyz", "/healthz", "/version"};
    RIG(r);
    rig_start(&r, false);
    BUF_AUTO struct buf index;
    buf_init(&index, 4096);
    (void)buf_append_str(&index, get(&r, "/"));
    assert_has(buf_cstr(&index), "/moon\n");
    assert_has(buf_cstr(&index), "moon.Phase\n");
    for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
        assert_has(buf_cstr(&index), pages[i]);
        (void)get(&r, pages[i]);
        assert_int_equal(r.answer.status, 200);
    }
    (void)get(&r, "/nothing");
    assert_int_equal(r.answer.status, 404);
    assert_has(buf_cstr(&r.answer.body), "/readyz");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_health_pages_speak_as_kubernetes_does),
        cmocka_unit_test(test_a_program_can_say_that_it_is_not_ready),
        cmocka_unit_test(test_version_is_json_whatever_the_node_is_called),
        cmocka_unit_test(test_the_index_names_what_there_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
