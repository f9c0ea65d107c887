/* The loop on its own: timers in order and exact under a moved clock, deferred calls, wakeups, work and signals. */
#include "net/peer.h"

#include <pthread.h>
#include <signal.h>

struct world {
    struct net_loop *loop;
    char log[64];
};

static int set_up(void **state)
{
    struct world *w = mem_new(struct world);
    struct err e;
    w->loop = net_loop_new(NULL, &e);
    assert_non_null(w->loop);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = (struct world *)*state;
    net_loop_free(w->loop);
    free(w);
    return 0;
}

struct entry {
    struct world *w;
    char letter;
    struct net_timer *timer;
};

static void note(void *context)
{
    const struct entry *entry = (const struct entry *)context;
    size_t len = strlen(entry->w->log);
    if (len + 1 < sizeof(entry->w->log))
        entry->w->log[len] = entry->letter;
}

static void test_timers_fire_in_order_of_deadline_then_of_start(void **state)
{
    struct world *w = (struct world *)*state;
    static const struct {
        char letter;
        int delay_ms;
    } cases[] = {{'d', 30}, {'a', 10}, {'e', 30}, {'b', 20}, {'f', 30}, {'c', 20}, {'z', 5000}};
    struct entry entries[ARRAY_LEN(cases)];
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        entries[i] = (struct entry){w, cases[i].letter, NULL};
        entries[i].timer = net_timer_new(w->loop, note, &entries[i]);
        net_timer_start(entries[i].timer, cases[i].delay_ms * NS_PER_MS, 0);
    }
    (void)net_loop_turn(w->loop);
    net_loop_skip(w->loop, 100 * NS_PER_MS);
    turn_some(w->loop);
    assert_string_equal(w->log, "abcdef");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        net_timer_free(entries[i].timer);
}

static void test_many_timers_keep_their_order(void **state)
{
    struct world *w = (struct world *)*state;
    enum { N = 300 };
    struct net_timer *timers[N];
    struct entry quiet = {w, '.', NULL};
    uint32_t random = 1;
    (void)net_loop_turn(w->loop);
    for (int i = 0; i < N; i++)
        timers[i] = net_timer_new(w->loop, note, &quiet);
    for (int i = 0; i < 5000; i++) { /* starts, restarts and stops at random places of the heap */
        random = random * 1664525 + 1013904223;
        if (random >> 31)
            net_timer_stop(timers[random % N]);
        else
            net_timer_start(timers[random % N], (int64_t)(random % 1000 + 1) * NS_PER_S, 0);
    }
    for (int i = 0; i < N; i++)
        net_timer_stop(timers[i]);
    net_timer_start(timers[0], NS_PER_S, 0);
    net_loop_skip(w->loop, 2000 * NS_PER_S);
    turn_some(w->loop);
    assert_string_equal(w->log, ".");
    for (int i = 0; i < N; i++)
        net_timer_free(timers[i]);
}

static void test_a_repeating_timer_fires_once_a_turn_however_late(void **state)
{
    struct world *w = (struct world *)*state;
    struct entry entry = {w, 'r', NULL};
    struct net_timer *timer = net_timer_new(w->loop, note, &entry);
    net_timer_start(timer, 10 * NS_PER_S, 10 * NS_PER_S);
    for (int i = 0; i < 3; i++) {
        net_loop_skip(w->loop, 100 * NS_PER_S);
        turn_some(w->loop);
    }
    assert_string_equal(w->log, "rrr");
    net_timer_free(timer);
}

static void restart(void *context)
{
    struct entry *entry = (struct entry *)context;
    note(entry);
    net_timer_start(entry->timer, 0, 0);
}

static void test_a_timer_that_restarts_itself_does_not_hold_the_turn(void **state)
{
    struct world *w = (struct world *)*state;
    struct entry entry = {w, 'x', NULL};
    entry.timer = net_timer_new(w->loop, restart, &entry);
    net_timer_start(entry.timer, 0, 0);
    turn_until(w->loop, strlen(w->log) >= 3);
    net_timer_free(entry.timer);
}

static void free_itself(void *context)
{
    struct entry *entry = (struct entry *)context;
    note(entry);
    net_timer_free(entry->timer);
}

static void test_a_timer_may_free_itself(void **state)
{
    struct world *w = (struct world *)*state;
    struct entry entry = {w, 'f', NULL};
    entry.timer = net_timer_new(w->loop, free_itself, &entry);
    net_timer_start(entry.timer, 0, NS_PER_MS);
    turn_until(w->loop, w->log[0] == 'f');
    net_loop_skip(w->loop, NS_PER_S);
    turn_some(w->loop);
    assert_string_equal(w->log, "f");
}

static void test_a_timer_waits_in_real_time_too(void **state)
{
    struct world *w = (struct world *)*state;
    struct entry entry = {w, 't', NULL};
    struct net_timer *timer = net_timer_new(w->loop, note, &entry);
    int64_t start = time_mono_ns();
    net_timer_start(timer, 20 * NS_PER_MS, 0);
    turn_until(w->loop, w->log[0] == 't');
    assert_true(time_mono_ns() - start >= 20 * NS_PER_MS);
    net_timer_free(timer);
}

static void defer_again(void *context)
{
    struct entry *entry = (struct entry *)context;
    note(entry);
    entry->letter = '2';
    net_defer(entry->w->loop, note, entry);
}

static void test_deferred_calls_run_at_the_end_of_the_turn_and_can_be_forgotten(void **state)
{
    struct world *w = (struct world *)*state;
    struct entry first = {w, '1', NULL}, gone = {w, 'x', NULL};
    net_defer(w->loop, defer_again, &first);
    net_defer(w->loop, note, &gone);
    net_defer_cancel(w->loop, &gone);
    assert_string_equal(w->log, "");
    turn_until(w->loop, w->log[0] == '1');
    turn_until(w->loop, w->log[1] == '2');
    turn_some(w->loop);
    assert_string_equal(w->log, "12");
}

static void *send_wakeups(void *context)
{
    for (int i = 0; i < 100; i++)
        net_wakeup_send((struct net_wakeup *)context);
    return NULL;
}

static void test_a_wakeup_comes_from_another_thread(void **state)
{
    struct world *w = (struct world *)*state;
    struct entry entry = {w, 'w', NULL};
    struct err e;
    struct net_wakeup *wakeup = net_wakeup_new(w->loop, note, &entry, &e);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, send_wakeups, wakeup), 0);
    turn_until(w->loop, w->log[0] == 'w');
    assert_int_equal(pthread_join(thread, NULL), 0);
    turn_some(w->loop);
    net_wakeup_free(wakeup);
}

struct job {
    pthread_t worker;
    bool has_worked, is_done;
    struct net_loop *loop;
};

static void work(void *context)
{
    struct job *job = (struct job *)context;
    job->worker = pthread_self();
    job->has_worked = true;
}

static void done(void *context)
{
    struct job *job = (struct job *)context;
    job->is_done = job->has_worked;
    if (job->loop)
        net_loop_stop(job->loop);
}

static void test_work_runs_off_the_loop_and_reports_on_it(void **state)
{
    struct world *w = (struct world *)*state;
    struct job job = {.loop = w->loop};
    net_work(w->loop, work, done, &job);
    net_loop_run(w->loop);
    assert_true(job.is_done);
    assert_false(pthread_equal(job.worker, pthread_self()));
}

static void test_work_is_waited_for_when_the_loop_goes(void **state)
{
    struct err e;
    struct net_loop *loop = net_loop_new(NULL, &e);
    struct job job = {0};
    (void)state;
    net_work(loop, work, done, &job);
    net_loop_free(loop);
    assert_true(job.is_done);
}

static void test_a_signal_is_called_on_the_loop(void **state)
{
    struct world *w = (struct world *)*state;
    struct entry entry = {w, 's', NULL};
    struct err e;
    struct net_signal *s = net_signal_new(w->loop, SIGUSR2, note, &entry, &e);
    assert_non_null(s);
    assert_int_equal(raise(SIGUSR2), 0);
    turn_until(w->loop, w->log[0] == 's');
    net_signal_free(s);
    assert_null(net_signal_new(w->loop, SIGKILL, note, &entry, &e));
    assert_non_null(strstr(e.text, "signal 9"));
}

static void stop(void *context)
{
    net_loop_stop((struct net_loop *)context);
}

static void test_run_returns_when_it_is_stopped(void **state)
{
    struct world *w = (struct world *)*state;
    struct net_timer *timer = net_timer_new(w->loop, stop, w->loop);
    net_timer_start(timer, NS_PER_MS, 0);
    net_loop_run(w->loop);
    net_loop_stop(w->loop); /* before it runs: it returns at once */
    net_loop_run(w->loop);
    net_timer_free(timer);
}

static void test_a_turn_says_when_nothing_is_left(void **state)
{
    struct world *w = (struct world *)*state;
    struct entry entry = {w, 't', NULL};
    assert_false(net_loop_turn(w->loop));
    struct net_timer *timer = net_timer_new(w->loop, note, &entry);
    net_timer_start(timer, NS_PER_S, 0);
    assert_true(net_loop_turn(w->loop));
    net_loop_skip(w->loop, 2 * NS_PER_S);
    turn_until(w->loop, w->log[0] == 't');
    turn_some(w->loop);
    assert_false(net_loop_turn(w->loop));
    net_timer_free(timer);
}

static void test_every_limit_has_a_name_and_a_metric_at_0(void **state)
{
    struct metrics *metrics = metrics_new();
    struct err e;
    struct net_loop *loop = net_loop_new(metrics, &e);
    (void)state;
    for (int i = 0; i < NET_LIMIT_COUNT; i++) {
        assert_true(net_limits_default.values[i] > 0);
        assert_double_same(limit_hits(metrics, (enum net_limit)i), 0);
    }
    net_limit_hit(loop, NET_LIMIT_STREAMS);
    assert_double_same(metric_of(metrics, "keda_gpu_scaler_limit_hits", "streams"), 1);
    net_loop_free(loop);
    metrics_free(metrics);
}

struct polled {
    struct net_poll *poll;
    int n_readable, n_writable;
    bool frees;
};

static void note_polled(void *context, bool is_readable, bool is_writable)
{
    struct polled *p = (struct polled *)context;
    p->n_readable += is_readable;
    p->n_writable += is_writable;
    if (p->frees) {
        net_poll_free(p->poll);
        p->poll = NULL;
    }
}

static void test_a_foreign_descriptor_is_watched_for_what_is_wanted(void **state)
{
    struct world *w = (struct world *)*state;
    struct polled p = {0};
    struct err e;
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    p.poll = net_poll_new(w->loop, fds[0], note_polled, &p, &e);
    assert_non_null(p.poll);
    peer_say(fds[1], "x");
    turn_some(w->loop);
    assert_int_equal(p.n_readable + p.n_writable, 0); /* nothing was asked for */
    net_poll_want(p.poll, false, true);
    turn_until(w->loop, p.n_writable > 0);
    assert_int_equal(p.n_readable, 0);
    net_poll_want(p.poll, true, false);
    turn_until(w->loop, p.n_readable > 0);
    net_poll_want(p.poll, false, false);
    int before = p.n_readable + p.n_writable;
    turn_some(w->loop);
    assert_int_equal(p.n_readable + p.n_writable, before);
    p.frees = true;
    net_poll_want(p.poll, true, false);
    turn_until(w->loop, !p.poll);
    turn_some(w->loop);
    assert_int_equal(p.n_readable + p.n_writable, before + 1);
    net_poll_free(NULL);
    assert_null(net_poll_new(w->loop, -1, note_polled, &p, &e));
    assert_int_equal(e.class, ERR_UNAVAILABLE);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_timers_fire_in_order_of_deadline_then_of_start),
        TEST(test_many_timers_keep_their_order),
        TEST(test_a_repeating_timer_fires_once_a_turn_however_late),
        TEST(test_a_timer_that_restarts_itself_does_not_hold_the_turn),
        TEST(test_a_timer_may_free_itself),
        TEST(test_a_timer_waits_in_real_time_too),
        TEST(test_deferred_calls_run_at_the_end_of_the_turn_and_can_be_forgotten),
        TEST(test_a_wakeup_comes_from_another_thread),
        TEST(test_work_runs_off_the_loop_and_reports_on_it),
        TEST(test_work_is_waited_for_when_the_loop_goes),
        TEST(test_a_signal_is_called_on_the_loop),
        TEST(test_run_returns_when_it_is_stopped),
        TEST(test_a_turn_says_when_nothing_is_left),
        TEST(test_a_foreign_descriptor_is_watched_for_what_is_wanted),
        TEST(test_every_limit_has_a_name_and_a_metric_at_0),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
