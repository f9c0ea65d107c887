/* Where a hub finds agents: the forms of --agents, EndpointSlices, names. The API client and the fleet are the test's.
 */
#include "hub/private.h"

#include "support.h"

#include <stdio.h>
#include <string.h>

/* ---- instead of kube/ and fleet/ ---- */

struct kube_watch {
    struct kube_watch_config config;
    char ns[300], selector[300];
};
static struct {
    struct kube_watch *watches[8];
    size_t n_watches, n_told;
    char set[2000]; /* as the fleet was told last: "node=address " */
} seen;

struct kube_watch *kube_watch_start(struct kube *k, const struct kube_watch_config *config)
{
    (void)k;
    struct kube_watch *w = mem_new(struct kube_watch);
    w->config = *config;
    (void)snprintf(w->ns, sizeof(w->ns), "%s", config->ns);
    (void)snprintf(w->selector, sizeof(w->selector), "%s", config->label_selector);
    assert_true(seen.n_watches < ARRAY_LEN(seen.watches));
    seen.watches[seen.n_watches++] = w;
    return w;
}

void kube_watch_free(struct kube_watch *w)
{
    free(w);
}

const char *kube_namespace(const struct kube *k)
{
    (void)k;
    return "here";
}

void fleet_set_agents(struct fleet *f, const struct fleet_agent *agents, size_t n)
{
    (void)f;
    struct buf out;
    buf_init(&out, sizeof(seen.set) - 1);
    for (size_t i = 0; i < n; i++)
        (void)buf_printf(&out, "%s=%s ", agents[i].node, agents[i].address);
    (void)snprintf(seen.set, sizeof(seen.set), "%s", buf_cstr(&out));
    buf_fini(&out);
    seen.n_told++;
}

/* ---- the rig ---- */

struct rig {
    struct metrics *metrics;
    struct hub_config config;
    struct hub hub;
    struct hub_agents *agents;
    struct err e;
};

static void rig_start(struct rig *r, const char *const *agents, size_t n)
{
    memset(&seen, 0, sizeof(seen));
    r->metrics = metrics_new();
    r->hub.loop = net_loop_new(r->metrics, &r->e);
    assert_non_null(r->hub.loop);
    for (size_t i = 0; i < n; i++)
        r->config.agents[r->config.n_agents++] = agents[i];
    r->hub.config = &r->config;
    r->agents = hub_agents_new(&r->hub, &r->e);
}

static void rig_stop(struct rig *r)
{
    hub_agents_free(r->agents);
    net_loop_free(r->hub.loop);
    metrics_free(r->metrics);
}
#define RIG(r, ...)                                                                                                    \
    __attribute__((cleanup(rig_stop))) struct rig r = {.agents = NULL};                                                \
    static const char *const r##_where[] = {__VA_ARGS__};                                                              \
    rig_start(&(r), r##_where, ARRAY_LEN(r##_where))

static void turn(struct rig *r)
{
    for (int i = 0; i < 3; i++)
        (void)net_loop_turn(r->hub.loop);
}

/* A slice of so many endpoints at the ports "metrics" 9090 and "grpc" 6000. */
static void tell_slice(size_t watch, const char *name, const struct kube_endpoint *endpoints, size_t n)
{
    struct kube_endpoint_slice slice = {.meta = {.ns = "here", .name = name, .uid = "u", .resource_version = "1"},
                                        .service = "agents",
                                        .ports = {{"metrics", 9090}, {"grpc", 6000}},
                                        .n_ports = 2,
                                        .endpoints = endpoints,
                                        .n_endpoints = n};
    const struct kube_watch_config *config = &seen.watches[watch]->config;
    config->changed(config->context,
                    &(struct kube_object){.kind = KUBE_ENDPOINT_SLICE, .meta = slice.meta, .endpoint_slice = &slice});
}
#define SLICE(watch, name, ...)                                                                                        \
    do {                                                                                                               \
        const struct kube_endpoint endpoints_[] = {__VA_ARGS__};                                                       \
        tell_slice((watch), (name), endpoints_, ARRAY_LEN(endpoints_));                                                \
    } while (0)

/* ---- tests ---- */

static void test_the_forms_of_agents_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        const char *text, *ns, *selector; /* of the watch; NULL none */
    } rows[] = {{"service:agents", "here", "kubernetes.io/service-name=agents"},
                {"service:other/agents", "other", "kubernetes.io/service-name=agents"},
                {"service:other/agents:grpc", "other", "kubernetes.io/service-name=agents"},
                {"service:agents:6000", "here", "kubernetes.io/service-name=agents"},
                {"dns:127.0.0.1:6000", NULL, NULL},
                {"10.0.0.1:6000", NULL, NULL},
                {"[fd00::1]:6000", NULL, NULL},
                {"agent-0.gpu:6000", NULL, NULL}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        __attribute__((cleanup(rig_stop))) struct rig r = {.agents = NULL};
        rig_start(&r, &rows[i].text, 1);
        if (!r.agents)
            fail_msg("%s", r.e.text);
        assert_int_equal(seen.n_watches, rows[i].ns != NULL);
        if (rows[i].ns) {
            assert_string_equal(seen.watches[0]->ns, rows[i].ns);
            assert_string_equal(seen.watches[0]->selector, rows[i].selector);
            assert_int_equal(seen.watches[0]->config.kind, KUBE_ENDPOINT_SLICE);
        }
    }
}

static void test_what_is_no_form_is_refused_and_named(void **state)
{
    (void)state;
    static const char *const rows[] = {"",
                                       "service:",
                                       "service:/",
                                       "service:a/",
                                       "service:/a",
                                       "service:a/b/c",
                                       "service:a:",
                                       "service:a:0",
                                       "service:a:65536",
                                       "service:a:99999999999999999999",
                                       "service:a:GRPC",
                                       "service:A",
                                       "service:a b",
                                       "service:a.b",
                                       "service:a,x=y",
                                       "dns:",
                                       "dns:host",
                                       "dns::6000",
                                       "host",
                                       ":6000",
                                       "host:",
                                       "host:port",
                                       "host:70000"};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        __attribute__((cleanup(rig_stop))) struct rig r = {.agents = NULL};
        rig_start(&r, &rows[i], 1);
        if (r.agents)
            fail_msg("\"%s\" was taken", rows[i]);
        assert_int_equal(r.e.class, ERR_INVALID_ARGUMENT);
        assert_non_null(strstr(r.e.text, rows[i]));
        assert_non_null(strstr(r.e.text, "--agents"));
    }
}

static void test_all_slices_of_a_service_are_its_agents_ready_or_not_but_for_those_that_end(void **state)
{
    (void)state;
    RIG(r, "service:agents");
    turn(&r);
    assert_int_equal(seen.n_told, 0); /* nothing is known: that is not "nobody" */
    SLICE(0, "b", {.address = "10.0.0.2", .node = "n2"}, {.address = "10.0.0.9", .node = "n9", .is_terminating = true});
    SLICE(0, "a", {.address = "10.0.0.1", .node = "n1"}, {.address = "fd00::1", .node = "n6"},
          {.address = "", .node = "n0"});
    turn(&r);
    assert_string_equal(seen.set, "n1=10.0.0.1:6000 n2=10.0.0.2:6000 n6=[fd00::1]:6000 ");
    assert_int_equal(seen.n_told, 1); /* once a turn */
    SLICE(0, "b", {.address = "10.0.0.1", .node = "n1"},
          {.address = "10.0.0.3", .node = "n3"}); /* moves between slices */
    turn(&r);
    assert_string_equal(seen.set, "n1=10.0.0.1:6000 n3=10.0.0.3:6000 n6=[fd00::1]:6000 ");
    const struct kube_watch_config *config = &seen.watches[0]->config;
    config->gone(config->context, "here", "a", "u");
    turn(&r);
    assert_string_equal(seen.set, "n1=10.0.0.1:6000 n3=10.0.0.3:6000 ");
}

static void test_a_service_without_slices_is_told_when_that_is_known(void **state)
{
    (void)state;
    RIG(r, "service:agents");
    const struct kube_watch_config *config = &seen.watches[0]->config;
    struct err e;
    (void)err_set(&e, ERR_PERMISSION_DENIED, "no");
    config->failed(config->context, &e);
    turn(&r);
    assert_int_equal(seen.n_told, 0);
    config->synced(config->context);
    turn(&r);
    assert_int_equal(seen.n_told, 1);
    assert_string_equal(seen.set, "");
}

static void test_ports_are_found_by_name_or_number(void **state)
{
    (void)state;
    static const struct {
        const char *where, *want;
    } rows[] = {{"service:agents", "n=10.0.0.1:6000 "},
                {"service:agents:metrics", "n=10.0.0.1:9090 "},
                {"service:agents:7000", "n=10.0.0.1:7000 "},
                {"service:agents:nothing", ""}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        __attribute__((cleanup(rig_stop))) struct rig r = {.agents = NULL};
        rig_start(&r, &rows[i].where, 1);
        SLICE(0, "a", {.address = "10.0.0.1", .node = "n"});
        turn(&r);
        assert_string_equal(seen.set, rows[i].want);
    }
}

static void test_without_a_port_called_grpc_the_first_is_taken(void **state)
{
    (void)state;
    RIG(r, "service:agents");
    const struct kube_endpoint endpoint = {.address = "10.0.0.1", .node = "n"};
    struct kube_endpoint_slice slice = {.meta = {.ns = "here", .name = "a", .uid = "u", .resource_version = "1"},
                                        .service = "agents",
                                        .ports = {{"", 7001}, {"x", 7002}},
                                        .n_ports = 2,
                                        .endpoints = &endpoint,
                                        .n_endpoints = 1};
    const struct kube_watch_config *config = &seen.watches[0]->config;
    struct kube_object object = {.kind = KUBE_ENDPOINT_SLICE, .meta = slice.meta, .endpoint_slice = &slice};
    config->changed(config->context, &object);
    turn(&r);
    assert_string_equal(seen.set, "n=10.0.0.1:7001 ");
    slice.n_ports = 0;
    config->changed(config->context, &object);
    turn(&r);
    assert_string_equal(seen.set, "");
}

static void test_sources_add_up_and_do_not_take_each_others_slices(void **state)
{
    (void)state;
    RIG(r, "service:a", "service:b", "10.9.9.9:1", "10.0.0.1:6000");
    turn(&r);
    assert_string_equal(seen.set, "=10.0.0.1:6000 =10.9.9.9:1 ");
    SLICE(0, "same", {.address = "10.0.0.1", .node = "n1"}); /* the same agent twice */
    SLICE(1, "same", {.address = "10.0.0.2", .node = "n2"});
    turn(&r);
    assert_non_null(strstr(seen.set, "10.0.0.1:6000 n2=10.0.0.2:6000 =10.9.9.9:1 "));
    const struct kube_watch_config *config = &seen.watches[1]->config;
    config->gone(config->context, "here", "same", "u");
    turn(&r);
    assert_null(strstr(seen.set, "10.0.0.2"));
    assert_non_null(strstr(seen.set, "10.0.0.1"));
}

static void test_agents_are_found_when_each_source_has_answered(void **state)
{
    (void)state;
    RIG(r, "service:a", "dns:127.0.0.1:6000", "10.9.9.9:1");
    while (!strstr(seen.set, "=127.0.0.1:6000 "))
        (void)net_loop_turn(r.hub.loop);
    SLICE(0, "first", {.address = "10.0.0.1", .node = "n1"});
    turn(&r);
    assert_false(hub_agents_are_found(r.agents)); /* there may be more slices */
    const struct kube_watch_config *config = &seen.watches[0]->config;
    config->synced(config->context);
    assert_true(hub_agents_are_found(r.agents));
}

static void test_names_are_asked_for_and_asked_for_again(void **state)
{
    (void)state;
    RIG(r, "dns:127.0.0.1:6000");
    for (int i = 0; i < 2; i++) {
        size_t before = seen.n_told;
        while (seen.n_told == before)
            (void)net_loop_turn(r.hub.loop);
        assert_string_equal(seen.set, "=127.0.0.1:6000 ");
        net_loop_skip(r.hub.loop, 11 * NS_PER_S);
    }
}

int main(void)
{
    log_configure(LOG_ERROR, LOG_TEXT);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_forms_of_agents_are_told_apart),
        cmocka_unit_test(test_what_is_no_form_is_refused_and_named),
        cmocka_unit_test(test_all_slices_of_a_service_are_its_agents_ready_or_not_but_for_those_that_end),
        cmocka_unit_test(test_a_service_without_slices_is_told_when_that_is_known),
        cmocka_unit_test(test_ports_are_found_by_name_or_number),
        cmocka_unit_test(test_without_a_port_called_grpc_the_first_is_taken),
        cmocka_unit_test(test_sources_add_up_and_do_not_take_each_others_slices),
        cmocka_unit_test(test_agents_are_found_when_each_source_has_answered),
        cmocka_unit_test(test_names_are_asked_for_and_asked_for_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
