/* A simulated server: who gets the next request, the KV cache, faults, and that nobody's asking changes it. */
#include "support.h"

#include "enginesim/model.h"

#include <stdio.h>

struct stage {
    struct script *script;
    struct model model;
};

static struct script *parse(const char *text)
{
    const struct script_source source = {.name = "s.yaml"};
    struct err e = {0};
    struct script *script = script_parse(&source, str_of(text), &e);
    if (!script)
        fail_msg("%s", e.text);
    return script;
}

static void stage_begin(struct stage *s, const char *server)
{
    char text[512];
    assert_true(snprintf(text, sizeof(text), "servers: [{engine: vllm, listen: \"127.0.0.1:1\", %s}]", server) > 0);
    s->script = parse(text);
    model_init(&s->model, s->script->servers, 1, 0, 0);
}

static void stage_rewrite(struct stage *s, const char *server)
{
    char text[512];
    assert_true(snprintf(text, sizeof(text), "servers: [{engine: vllm, listen: \"127.0.0.1:1\", %s}]", server) > 0);
    struct script *script = parse(text);
    model_replace(&s->model, script->servers, 0);
    script_free(s->script);
    s->script = script;
}

static void stage_end(struct stage *s)
{
    model_fini(&s->model);
    script_free(s->script);
}

static const struct queue *queue_of(const struct stage *s, size_t rank)
{
    return &s->model.ranks[rank].queue;
}

static void test_below_its_capacity_a_server_has_a_batch_and_no_queue(void **state)
{
    struct stage s;
    (void)state;
    stage_begin(&s, "arrivals: 1, service_rate: 2, slots: 8"); /* each takes 4 s */
    model_advance(&s.model, 100);
    assert_int_equal(queue_of(&s, 0)->running.n, 4);
    assert_int_equal(queue_of(&s, 0)->waiting.n, 0);
    assert_double_near(queue_of(&s, 0)->finished, 96, 1);
    assert_double_same(model_kv_percent(&s.model, 0), 20);
    assert_double_same(model_busy_percent(&s.model, 0), 100);
    stage_end(&s);
}

static void test_beyond_it_the_queue_grows_by_what_is_too_much(void **state)
{
    struct stage s;
    (void)state;
    stage_begin(&s, "arrivals: 5, service_rate: 2, slots: 8");
    model_advance(&s.model, 104);
    assert_int_equal(queue_of(&s, 0)->running.n, 8);
    assert_double_near((double)queue_of(&s, 0)->waiting.n, 3 * 100 + 4 * 5 - 8, 2);
    stage_end(&s);
}

static void test_a_full_cache_limits_the_batch_and_the_rate(void **state)
{
    struct stage s;
    (void)state;
    stage_begin(&s, "arrivals: 9, service_rate: 2, slots: 8, kv_per_request_percent: 20, kv_base_percent: 20");
    model_advance(&s.model, 100);
    assert_int_equal(model_slots(s.script->servers), 4);
    assert_int_equal(queue_of(&s, 0)->running.n, 4);
    assert_double_same(model_kv_percent(&s.model, 0), 100);
    assert_double_near(queue_of(&s, 0)->finished, 96, 4);
    stage_end(&s);
}

static void test_nobody_changes_it_by_asking(void **state)
{
    static const char server[] = "arrivals: {sine: {mean: 3, amplitude: 3, period: 20}}, poisson: true, ranks: 2";
    struct stage often, once;
    (void)state;
    stage_begin(&often, server);
    stage_begin(&once, server);
    for (int i = 0; i < 5000; i++)
        model_advance(&often.model, i * 0.0123);
    model_advance(&once.model, 4999 * 0.0123);
    for (size_t rank = 0; rank < 2; rank++) {
        assert_double_same(queue_of(&often, rank)->arrived, queue_of(&once, rank)->arrived);
        assert_double_same(queue_of(&often, rank)->measures[QUEUE_WAIT].sum,
                           queue_of(&once, rank)->measures[QUEUE_WAIT].sum);
    }
    stage_end(&often);
    stage_end(&once);
}

static void test_arrivals_follow_their_curve(void **state)
{
    static const struct {
        const char *server;
        double arrived, tolerance;
    } cases[] = {
        {"arrivals: 3", 300, 1},
        {"service_rate: 2", 0, 0},
        {"arrivals: {step: [[0, 0], [50, 10]]}", 500, 1},
        {"arrivals: {ramp: [[0, 0], [100, 4]]}", 200, 1},
        {"arrivals: 30, poisson: true", 3000, 200},
        {"arrivals: 0.1", 10, 1},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct stage s;
        stage_begin(&s, cases[i].server);
        model_advance(&s.model, 100);
        assert_double_near(queue_of(&s, 0)->arrived, cases[i].arrived, cases[i].tolerance);
        stage_end(&s);
    }
}

static void test_the_emptiest_rank_gets_the_next_unless_shares_are_given(void **state)
{
    struct stage s;
    (void)state;
    stage_begin(&s, "arrivals: 10, ranks: 3");
    model_advance(&s.model, 30);
    for (size_t rank = 0; rank < 3; rank++)
        assert_double_near(queue_of(&s, rank)->arrived, 100, 1);
    stage_end(&s);
    stage_begin(&s, "arrivals: 10, ranks: 3, shares: [8, 2, 0]");
    model_advance(&s.model, 30);
    assert_double_near(queue_of(&s, 0)->arrived, 240, 2);
    assert_double_near(queue_of(&s, 1)->arrived, 60, 2);
    assert_double_same(queue_of(&s, 2)->arrived, 0);
    assert_true(queue_of(&s, 0)->waiting.n > 100);
    assert_double_same(model_busy_percent(&s.model, 2), 0);
    stage_end(&s);
}

static void test_a_new_rank_takes_the_load_and_a_gone_one_leaves_its_queue(void **state)
{
    struct stage s;
    (void)state;
    stage_begin(&s, "arrivals: 6, service_rate: 2, slots: 8");
    model_advance(&s.model, 50);
    size_t waiting = queue_of(&s, 0)->waiting.n;
    double finished = queue_of(&s, 0)->finished;
    stage_rewrite(&s, "arrivals: 6, service_rate: 2, slots: 8, ranks: 4");
    model_advance(&s.model, 60);
    assert_true(queue_of(&s, 0)->waiting.n < waiting);
    assert_true(queue_of(&s, 0)->finished > finished);
    for (size_t rank = 1; rank < 4; rank++)
        assert_int_equal(queue_of(&s, rank)->running.n, 8);
    size_t all = 0;
    for (size_t rank = 0; rank < 4; rank++)
        all += queue_of(&s, rank)->waiting.n;
    stage_rewrite(&s, "arrivals: 0, service_rate: 2, slots: 8, ranks: 1");
    assert_int_equal(queue_of(&s, 0)->waiting.n, all);
    stage_end(&s);
}

static void test_a_restart_begins_with_nothing_and_is_away_until_it_is_back(void **state)
{
    struct stage s;
    (void)state;
    stage_begin(&s, "arrivals: 5, faults: [{fault: restart, from: 20, until: 30}]");
    model_advance(&s.model, 19.9);
    assert_true(queue_of(&s, 0)->arrived > 90);
    model_advance(&s.model, 25);
    assert_non_null(model_fault(&s.model, SCRIPT_FAULT_RESTART, 25));
    assert_double_same(queue_of(&s, 0)->arrived, 0);
    model_advance(&s.model, 40);
    assert_null(model_fault(&s.model, SCRIPT_FAULT_RESTART, 40));
    assert_double_near(queue_of(&s, 0)->arrived, 50, 1);
    assert_double_same(s.model.since_s, 30);
    stage_end(&s);
}

static void test_a_mass_cancel_leaves_the_cache_gauge_until_the_next_request(void **state)
{
    struct stage s;
    (void)state;
    stage_begin(&s, "arrivals: {step: [[0, 9], [20, 0], [60, 1]]}, faults: [{fault: cancel, from: 20}]");
    model_advance(&s.model, 19.9);
    assert_double_same(model_kv_percent(&s.model, 0), 80);
    model_advance(&s.model, 59);
    assert_int_equal(queue_of(&s, 0)->running.n + queue_of(&s, 0)->waiting.n, 0);
    assert_double_same(model_kv_percent(&s.model, 0), 80);
    assert_double_same(model_busy_percent(&s.model, 0), 0);
    assert_true(queue_of(&s, 0)->aborted > 100);
    model_advance(&s.model, 63);
    assert_double_near(model_kv_percent(&s.model, 0), 10, 6);
    stage_end(&s);
}

static void test_a_stuck_engine_gathers_a_queue(void **state)
{
    struct stage s;
    (void)state;
    stage_begin(&s, "arrivals: 1, faults: [{fault: slow, from: 20, until: 80}]");
    model_advance(&s.model, 20);
    double finished = queue_of(&s, 0)->finished, tokens = queue_output_tokens(queue_of(&s, 0));
    model_advance(&s.model, 79);
    assert_double_near(queue_of(&s, 0)->finished, finished, 1);
    assert_double_near(queue_output_tokens(queue_of(&s, 0)), tokens, 10);
    assert_double_near((double)queue_of(&s, 0)->waiting.n, 59, 2);
    assert_double_same(model_busy_percent(&s.model, 0), 100); /* as a GPU that runs a kernel without end */
    model_advance(&s.model, 300);
    assert_int_equal(queue_of(&s, 0)->waiting.n, 0);
    stage_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_below_its_capacity_a_server_has_a_batch_and_no_queue),
        cmocka_unit_test(test_beyond_it_the_queue_grows_by_what_is_too_much),
        cmocka_unit_test(test_a_full_cache_limits_the_batch_and_the_rate),
        cmocka_unit_test(test_nobody_changes_it_by_asking),
        cmocka_unit_test(test_arrivals_follow_their_curve),
        cmocka_unit_test(test_the_emptiest_rank_gets_the_next_unless_shares_are_given),
        cmocka_unit_test(test_a_new_rank_takes_the_load_and_a_gone_one_leaves_its_queue),
        cmocka_unit_test(test_a_restart_begins_with_nothing_and_is_away_until_it_is_back),
        cmocka_unit_test(test_a_mass_cancel_leaves_the_cache_gauge_until_the_next_request),
        cmocka_unit_test(test_a_stuck_engine_gathers_a_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
