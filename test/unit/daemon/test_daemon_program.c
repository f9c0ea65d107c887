/* What programs share beside pages: entries of the configuration as triggers, refusals in the log, reload. */
#include "daemon/private.h"

#include "log/capture.h"

#include <signal.h>

/* ---- entries ---- */

static void test_an_entry_is_the_trigger_that_has_only_its_name(void **state)
{
    (void)state;
    static const struct {
        const char *entry, *family; /* NULL: none can be had */
        enum trigger_metric metric; /* TRIGGER_METRIC_COUNT: no trigger, free memory */
    } rows[] = {{"gpu_memory_used", "gpu_memory_used", TRIGGER_MEMORY_USED},
                {"gpu_utilization", "gpu_utilization", TRIGGER_GPU_UTILIZATION},
                {"my.own-name", "my_own_name", TRIGGER_GPU_UTILIZATION},
                {"keda_gpu_ollama", "keda_gpu_ollama", TRIGGER_MEMORY_USED_PERCENT},
                {"gpu_memory_free", "gpu_memory_free", TRIGGER_METRIC_COUNT},
                {"memory_free", "memory_free", TRIGGER_METRIC_COUNT},
                {"vllm_queue_depth", NULL, TRIGGER_METRIC_COUNT},
                {"keda_gpu_scaler_x", NULL, TRIGGER_METRIC_COUNT},
                {"up", NULL, TRIGGER_METRIC_COUNT}};
    struct trigger_default defaults[ARRAY_LEN(rows)] = {{.name = ""}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        (void)str_copy(defaults[i].name, sizeof(defaults[i].name), str_of(rows[i].entry));
    static const enum trigger_scope scopes[] = {TRIGGER_NODE, TRIGGER_CLUSTER};
    for (size_t s = 0; s < ARRAY_LEN(scopes); s++) {
        struct daemon_entries *e =
            daemon_entries_new(&(struct trigger_settings){scopes[s], defaults, ARRAY_LEN(defaults)});
        size_t n = 0;
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
            if (!rows[i].family)
                continue;
            const struct daemon_entry *entry = &e->items[n++];
            assert_string_equal(entry->name, rows[i].family);
            assert_int_equal(entry->trigger != NULL, rows[i].metric != TRIGGER_METRIC_COUNT);
            if (entry->trigger) {
                assert_int_equal(entry->trigger->metric, rows[i].metric);
                assert_int_equal(entry->trigger->scope, scopes[s]);
            }
            assert_non_null(strstr(entry->help, scopes[s] == TRIGGER_NODE ? "of this node" : "of the node"));
        }
        assert_int_equal(e->n, n);
        daemon_entries_free(e);
    }
}

static void test_what_an_entry_says_beside_its_name_holds(void **state)
{
    (void)state;
    struct trigger_default rows[] = {
        {.name = "gpu_utilization", .has_aggregation = true, .aggregation = SCALING_MIN},
        {.name = "memory_free", .has_gpu_index = true, .gpu_index = 3},
        {.name = "power_draw", .aggregation = SCALING_SUM, .gpu_index = 7}}; /* not said: max of all */
    struct daemon_entries *e = daemon_entries_new(&(struct trigger_settings){TRIGGER_NODE, rows, ARRAY_LEN(rows)});
    assert_int_equal(e->n, 3);
    assert_int_equal(e->items[0].aggregation, SCALING_MIN);
    assert_int_equal(e->items[0].trigger->aggregation, SCALING_MIN);
    assert_int_equal(e->items[0].gpu_index, -1);
    assert_int_equal(e->items[1].gpu_index, 3);
    assert_non_null(strstr(e->items[1].help, "GPU 3 of this node"));
    assert_int_equal(e->items[2].aggregation, SCALING_MAX);
    assert_int_equal(e->items[2].trigger->gpu_index, -1);
    daemon_entries_free(e);
    daemon_entries_free(NULL);
}

/* ---- the daemon ---- */

struct rig {
    struct daemon_config config;
    struct daemon_program program;
    struct metrics *metrics;
    struct daemon *daemon;
    int n_applied, n_hangups;
    double target;   /* that the next reload brings */
    bool is_refused; /* the next reload is */
    double applied;  /* target last in force; 0 none */
};

static struct trigger_default *one_default(double target)
{
    struct trigger_default *d = mem_new(struct trigger_default);
    *d = (struct trigger_default){.name = "m", .has_target = true, .target = target};
    return d;
}

static int reload(void *context, struct daemon_reloadable *ret, struct err *e)
{
    const struct rig *r = context;
    if (r->is_refused)
        return err_set(e, ERR_INVALID_ARGUMENT, "line 7");
    *ret = (struct daemon_reloadable){
        .log_level = LOG_INFO, .log_format = LOG_TEXT, .defaults = one_default(r->target), .n_defaults = 1};
    return 0;
}

static void applied(void *context, const struct daemon_reloadable *now)
{
    struct rig *r = context;
    r->n_applied++;
    r->applied = now->n_defaults ? now->defaults[0].target : 0;
}

static void hangup(void *context)
{
    ((struct rig *)context)->n_hangups++;
}

static void rig_start(struct rig *r)
{
    struct err e;
    r->config = (struct daemon_config){.mode = "moon",
                                       .version = "1",
                                       .build = "",
                                       .node_name = "",
                                       .reloadable = {.log_level = LOG_INFO, .log_format = LOG_TEXT},
                                       .limits = net_limits_default,
                                       .reload = reload,
                                       .reload_context = r};
    r->config.listen[r->config.n_listen++] = "127.0.0.1:0";
    r->program = (struct daemon_program){.applied = applied,
                                         .hangup = hangup,
                                         .default_scope = TRIGGER_WORKLOAD,
                                         .triggers_max = 10,
                                         .pages = "",
                                         .services = "",
                                         .context = r};
    r->metrics = metrics_new();
    r->daemon = daemon_new(&r->config, &r->program, r->metrics, &e);
    assert_non_null(r->daemon);
}

static void rig_stop(struct rig *r)
{
    daemon_free(r->daemon);
    metrics_free(r->metrics);
}
#define RIG(r)                                                                                                         \
    __attribute__((cleanup(rig_stop))) struct rig r = {.target = 0};                                                   \
    rig_start(&(r))

static double target_of(struct rig *r)
{
    struct err e;
    struct trigger_pair pair = {str_of("metricName"), str_of("m")};
    struct trigger *t = trigger_cache_get(daemon_triggers(r->daemon), &pair, 1, &e);
    assert_non_null(t);
    assert_int_equal(t->scope, TRIGGER_WORKLOAD);
    double target = t->target;
    trigger_unref(t);
    return target;
}

/* Until a signal that was sent has been taken. */
static void hang_up(struct rig *r)
{
    int before = r->n_hangups;
    assert_int_equal(raise(SIGHUP), 0);
    while (r->n_hangups == before)
        (void)net_loop_turn(daemon_loop(r->daemon));
}

static void test_a_reload_that_is_right_is_in_force_at_once_and_a_wrong_one_never(void **state)
{
    (void)state;
    struct err e;
    RIG(r);
    assert_int_equal(r.n_applied, 1); /* from the beginning on */
    double before = target_of(&r);
    if (daemon_listen(r.daemon, &e) < 0)
        fail_msg("%s", e.text);
    struct capture c = capture_begin();
    r.target = 77;
    hang_up(&r);
    double after = target_of(&r);
    r.is_refused = true;
    r.target = 99;
    hang_up(&r);
    char *log MEM_AUTO = capture_end(&c);
    assert_double_same(after, 77);
    assert_true(before != 77);
    assert_double_same(target_of(&r), 77);
    assert_double_same(r.applied, 77);
    assert_int_equal(r.n_applied, 2);
    assert_int_equal(count(log, "msg=reloaded"), 1);
    assert_int_equal(count(log, "the old configuration stays"), 1);
    assert_int_equal(count(log, "line 7"), 1);
}

static void test_refusals_are_logged_once_a_second_with_the_number_of_the_others(void **state)
{
    (void)state;
    struct err e;
    RIG(r);
    (void)err_set(&e, ERR_INVALID_ARGUMENT, "targetValue \"x\"");
    struct capture c = capture_begin();
    for (int i = 0; i < 5; i++)
        daemon_log_refusal(r.daemon, "ml", "web", "10.0.0.1:1", &e);
    net_loop_skip(daemon_loop(r.daemon), NS_PER_S + 1);
    daemon_log_refusal(r.daemon, "ml", "api", "10.0.0.1:1", &e);
    net_loop_skip(daemon_loop(r.daemon), NS_PER_S + 1);
    daemon_log_refusal(r.daemon, "ml", "api", "10.0.0.1:1", &e);
    char *log MEM_AUTO = capture_end(&c);
    assert_int_equal(count(log, "msg=refused"), 3);
    assert_int_equal(count(log, "others_not_logged=4"), 1);
    assert_int_equal(count(log, "others_not_logged=0"), 2);
    assert_int_equal(count(log, "name=web"), 1);
}

static void test_an_address_that_cannot_be_listened_on_is_an_error(void **state)
{
    (void)state;
    struct err e;
    RIG(r);
    struct capture c = capture_begin();
    assert_int_equal(daemon_listen(r.daemon, &e), 0);
    assert_false(daemon_has_tls(r.daemon) || daemon_is_draining(r.daemon));
    struct rig other = {.target = 0};
    rig_start(&other);
    other.daemon->config.listen[0] = daemon_address(r.daemon); /* taken */
    assert_int_equal(daemon_listen(other.daemon, &e), -1);
    free(capture_end(&c));
    assert_non_null(strstr(e.text, daemon_address(r.daemon)));
    rig_stop(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_entry_is_the_trigger_that_has_only_its_name),
        cmocka_unit_test(test_what_an_entry_says_beside_its_name_holds),
        cmocka_unit_test(test_a_reload_that_is_right_is_in_force_at_once_and_a_wrong_one_never),
        cmocka_unit_test(test_refusals_are_logged_once_a_second_with_the_number_of_the_others),
        cmocka_unit_test(test_an_address_that_cannot_be_listened_on_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
