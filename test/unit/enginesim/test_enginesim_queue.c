/* The queue of one rank: order, places, times, tokens, and what slows it. */
#include "support.h"

#include "enginesim/queue.h"

static const struct queue_pace pace = {
    .batch_s = 2, .prefill_s = 0.5, .slots = 2, .prompt_tokens = 100, .output_tokens = 31};

static void test_requests_start_in_order_as_places_become_free(void **state)
{
    struct queue q;
    (void)state;
    queue_init(&q, 0);
    for (int i = 0; i < 5; i++)
        queue_arrive(&q, 0);
    queue_advance(&q, &pace, 0);
    assert_int_equal(q.running.n, 2);
    assert_int_equal(q.waiting.n, 3);
    queue_advance(&q, &pace, 1.99);
    assert_double_same(q.finished, 0);
    queue_advance(&q, &pace, 10);
    assert_double_same(q.finished, 5);
    assert_int_equal(q.running.n + q.waiting.n, 0);
    assert_double_near(q.measures[QUEUE_WAIT].sum, 0 + 0 + 2 + 2 + 4, 1e-9);
    assert_double_near(q.measures[QUEUE_WHOLE].sum, 2 + 2 + 4 + 4 + 6, 1e-9);
    assert_double_near(q.measures[QUEUE_FIRST].sum, 5 * 0.5 + 8, 1e-9);
    assert_double_near(q.measures[QUEUE_INFERENCE].sum, 10, 1e-9);
    assert_double_same(q.measures[QUEUE_TOKEN].count, 5 * 30);
    assert_double_near(q.measures[QUEUE_TOKEN].sum, 5 * 1.5, 1e-9);
    assert_double_same(q.prompt_tokens, 500);
    assert_double_same(queue_output_tokens(&q), 5 * 31);
    queue_fini(&q);
}

static void test_one_who_comes_into_a_free_place_starts_at_once(void **state)
{
    struct queue q;
    (void)state;
    queue_init(&q, 0);
    queue_arrive(&q, 0.25);
    queue_arrive(&q, 0.5);
    queue_advance(&q, &pace, 1);
    queue_arrive(&q, 2.255); /* the first has just gone, at 2.25 */
    queue_advance(&q, &pace, 10);
    assert_double_near(q.measures[QUEUE_WAIT].sum, 0, 1e-9);
    assert_double_same(q.measures[QUEUE_WAIT].counts[0], 3);
    queue_fini(&q);
}

static void test_a_full_batch_ends_as_many_as_its_rate_and_none_is_lost(void **state)
{
    struct queue q;
    double before = 0;
    (void)state;
    queue_init(&q, 0);
    for (int step = 1; step <= 1000; step++) { /* 2 a second come, 1 a second can be served */
        double t_s = step * 0.1;
        if (step % 5 == 0)
            queue_arrive(&q, t_s);
        queue_advance(&q, &pace, t_s);
        assert_double_same(q.arrived, q.finished + (double)(q.running.n + q.waiting.n));
        assert_true(queue_output_tokens(&q) >= before);
        before = queue_output_tokens(&q);
    }
    assert_double_near(q.finished, 98, 1);
    assert_int_equal(q.running.n, 2);
    assert_double_near((double)q.waiting.n, 100, 1);
    assert_double_near(q.busy_s, 99.5, 0.11);
    queue_fini(&q);
}

static void test_tokens_come_in_proportion_to_the_time_after_the_first(void **state)
{
    static const struct {
        double t_s, tokens, prompts;
    } cases[] = {{0.49, 0, 0}, {0.5, 1, 100}, {1.25, 16, 100}, {1.999, 30, 100}, {2, 31, 100}, {9, 31, 100}};
    struct queue q;
    (void)state;
    queue_init(&q, 0);
    queue_arrive(&q, 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        queue_advance(&q, &pace, cases[i].t_s);
        assert_double_same(queue_output_tokens(&q), cases[i].tokens);
        assert_double_same(q.prompt_tokens, cases[i].prompts);
    }
    queue_fini(&q);
}

static void test_a_stuck_engine_starts_and_ends_nothing_and_goes_on_where_it_was(void **state)
{
    struct queue q;
    (void)state;
    queue_init(&q, 0);
    queue_arrive(&q, 0);
    queue_advance(&q, &pace, 1);
    double tokens = queue_output_tokens(&q);
    queue_arrive(&q, 1);
    queue_slow(&q, 0, 301);
    assert_double_same(queue_output_tokens(&q), tokens);
    assert_int_equal(q.running.n, 1);
    assert_int_equal(q.waiting.n, 1);
    queue_advance(&q, &pace, 301.9);
    assert_double_same(q.finished, 0);
    queue_advance(&q, &pace, 302.1);
    assert_double_same(q.finished, 1);
    queue_fini(&q);
}

static void test_a_slow_engine_does_its_share_of_the_work(void **state)
{
    struct queue q;
    (void)state;
    queue_init(&q, 0);
    queue_arrive(&q, 0);
    queue_advance(&q, &pace, 1);
    for (double t_s = 2; t_s <= 10; t_s++) {
        queue_slow(&q, 0.1, t_s);
        queue_advance(&q, &pace, t_s);
    }
    assert_double_same(q.finished, 0); /* 1.9 of 2 s are done */
    queue_slow(&q, 0.1, 11.1);
    queue_advance(&q, &pace, 11.1);
    assert_double_same(q.finished, 1);
    queue_fini(&q);
}

static void test_a_quicker_pace_lets_none_overtake(void **state)
{
    const struct queue_pace quick = {.batch_s = 0.1, .prefill_s = 0.01, .slots = 2, .output_tokens = 1};
    struct queue q;
    (void)state;
    queue_init(&q, 0);
    queue_arrive(&q, 0);
    queue_advance(&q, &pace, 1);
    queue_arrive(&q, 1);
    queue_advance(&q, &quick, 1.9);
    assert_double_same(q.finished, 0);
    queue_advance(&q, &quick, 2);
    assert_double_same(q.finished, 2);
    queue_fini(&q);
}

static void test_an_abort_keeps_the_tokens_that_were_given_out(void **state)
{
    struct queue q;
    (void)state;
    queue_init(&q, 0);
    for (int i = 0; i < 3; i++)
        queue_arrive(&q, 0);
    queue_advance(&q, &pace, 1.25);
    queue_abort(&q);
    assert_double_same(q.aborted, 3);
    assert_double_same(q.finished, 0);
    assert_double_same(queue_output_tokens(&q), 32);
    queue_advance(&q, &pace, 9);
    assert_double_same(queue_output_tokens(&q), 32);
    queue_fini(&q);
}

static void test_what_waits_can_go_over_to_another_queue(void **state)
{
    struct queue from, to;
    (void)state;
    queue_init(&from, 0);
    queue_init(&to, 0);
    for (int i = 0; i < 40; i++)
        queue_arrive(&from, 0);
    queue_advance(&from, &pace, 1);
    queue_move_waiting(&from, &to);
    assert_int_equal(from.waiting.n, 0);
    assert_int_equal(from.running.n, 2);
    assert_int_equal(to.waiting.n, 38);
    queue_advance(&to, &pace, 1000);
    assert_double_same(to.finished, 38);
    queue_fini(&from);
    queue_fini(&to);
}

static void test_the_queue_has_a_ceiling(void **state)
{
    struct queue q;
    (void)state;
    queue_init(&q, 0);
    for (int i = 0; i < QUEUE_WAITING_MAX + 3; i++)
        queue_arrive(&q, 0);
    assert_int_equal(q.waiting.n, QUEUE_WAITING_MAX);
    assert_double_same(q.rejected, 3);
    queue_fini(&q);
}

static void test_bounds_rise(void **state)
{
    (void)state;
    for (int measure = 0; measure < QUEUE_MEASURE_COUNT; measure++)
        for (size_t i = 1; i < QUEUE_BOUNDS; i++)
            assert_true(queue_bounds((enum queue_measure)measure)[i] >
                        queue_bounds((enum queue_measure)measure)[i - 1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_start_in_order_as_places_become_free),
        cmocka_unit_test(test_one_who_comes_into_a_free_place_starts_at_once),
        cmocka_unit_test(test_a_full_batch_ends_as_many_as_its_rate_and_none_is_lost),
        cmocka_unit_test(test_tokens_come_in_proportion_to_the_time_after_the_first),
        cmocka_unit_test(test_a_stuck_engine_starts_and_ends_nothing_and_goes_on_where_it_was),
        cmocka_unit_test(test_a_slow_engine_does_its_share_of_the_work),
        cmocka_unit_test(test_a_quicker_pace_lets_none_overtake),
        cmocka_unit_test(test_an_abort_keeps_the_tokens_that_were_given_out),
        cmocka_unit_test(test_what_waits_can_go_over_to_another_queue),
        cmocka_unit_test(test_the_queue_has_a_ceiling),
        cmocka_unit_test(test_bounds_rise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
