/* The loop: turns, the clock of a turn, deferred calls, and what happens at a turn's end (deferred calls, then output,
 * then burials). Owns no socket; conn.c and listener.c do. */
#include "net/loop.h"

#include "net/conn.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

int64_t net_now_ns(const struct net_loop *loop)
{
    if (*loop->now == 0)
        *loop->now = time_mono_ns() + loop->skipped_ns;
    return *loop->now;
}

void net_loop_skip(struct net_loop *loop, int64_t ns)
{
    loop->skipped_ns += ns;
    *loop->now = 0;
}

double net_random(struct net_loop *loop)
{
    uint64_t z = loop->random += 0x9e3779b97f4a7c15U; /* splitmix64 */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    z ^= z >> 31;
    return (double)(z >> 11) * 0x1p-53;
}

void net_defer(struct net_loop *loop, void (*fn)(void *context), void *context)
{
    struct net_deferred call = {fn, context};
    vec_push(&loop->deferred, call);
}

static void forgotten(void *context)
{
    (void)context;
}

/* The entries stay in place: the list may be being walked. */
void net_defer_cancel(struct net_loop *loop, void *context)
{
    for (size_t i = 0; i < loop->deferred.len; i++)
        if (loop->deferred.items[i].context == context)
            loop->deferred.items[i].fn = forgotten;
}

static void run_deferred(struct net_loop *loop)
{
    size_t n = loop->deferred.len;
    for (size_t i = 0; i < n; i++) {
        struct net_deferred call = loop->deferred.items[i];
        call.fn(call.context);
    }
    if (n == 0)
        return;
    memmove(loop->deferred.items, loop->deferred.items + n, (loop->deferred.len - n) * sizeof(*loop->deferred.items));
    loop->deferred.len -= n;
}

static bool has_more(const struct net_loop *loop)
{
    return loop->deferred.len || loop->dirty.len || loop->again.len || loop->dead.len;
}

static void idled(uv_idle_t *idle)
{
    (void)idle;
}

static void finish_turn(struct net_loop *loop)
{
    run_deferred(loop);
    net_conns_flush(loop);
    net_conns_bury(loop);
    loop->n_handshakes = 0;
    *loop->now = 0;
}

static void end_turn(struct net_loop *loop)
{
    finish_turn(loop);
    if (has_more(loop))
        (void)uv_idle_start(&loop->idle, idled);
    else
        (void)uv_idle_stop(&loop->idle);
}

static void alarmed(uv_timer_t *alarm)
{
    struct net_loop *loop = (struct net_loop *)alarm->data;
    loop->alarm_at_ns = INT64_MAX; /* only wakes the loop: timers run before the poll */
}

static void set_alarm(struct net_loop *loop)
{
    int64_t at = net_timers_next_ns(loop);
    if (at == loop->alarm_at_ns)
        return;
    loop->alarm_at_ns = at;
    if (at == INT64_MAX) {
        (void)uv_timer_stop(&loop->alarm);
        return;
    }
    int64_t wait = at - net_now_ns(loop);
    uv_update_time(&loop->uv);
    (void)uv_timer_start(&loop->alarm, alarmed, wait > 0 ? (uint64_t)((wait + NS_PER_MS - 1) / NS_PER_MS) : 0, 0);
}

static void before_poll(uv_prepare_t *prepare)
{
    struct net_loop *loop = (struct net_loop *)prepare->data;
    net_conns_read_again(loop);
    net_timers_run(loop);
    end_turn(loop);
    set_alarm(loop);
}

static void after_poll(uv_check_t *check)
{
    end_turn((struct net_loop *)check->data);
}

static void setup_handles(struct net_loop *loop)
{
    (void)uv_prepare_init(&loop->uv, &loop->prepare);
    (void)uv_check_init(&loop->uv, &loop->check);
    (void)uv_idle_init(&loop->uv, &loop->idle);
    (void)uv_timer_init(&loop->uv, &loop->alarm);
    loop->prepare.data = loop->check.data = loop->alarm.data = loop;
    (void)uv_prepare_start(&loop->prepare, before_poll);
    (void)uv_check_start(&loop->check, after_poll);
    uv_unref((uv_handle_t *)&loop->prepare);
    uv_unref((uv_handle_t *)&loop->check);
}

/* Connections must leave descriptors for all else that opens files: the driver above all, whose readings would go. */
static size_t max_connections(void)
{
    enum { DESCRIPTORS_KEPT = 128 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
        return SIZE_MAX;
    size_t most = (size_t)limit.rlim_cur;
    return most > 2 * DESCRIPTORS_KEPT ? most - DESCRIPTORS_KEPT : most / 2;
}

struct net_loop *net_loop_new(struct metrics *metrics, struct err *e)
{
    struct net_loop *loop = mem_new(struct net_loop);
    int rc = uv_loop_init(&loop->uv);
    if (rc < 0) {
        free(loop);
        (void)err_set(e, ERR_UNAVAILABLE, "cannot make an event loop: %s", uv_strerror(rc));
        return NULL;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    loop->now = &loop->now_storage;
    loop->alarm_at_ns = INT64_MAX;
    loop->own_metrics = metrics ? NULL : metrics_new();
    net_series_setup(&loop->series, metrics ? metrics : loop->own_metrics);
    loop->per_ip = map_new(SIZE_MAX, free);
    loop->max_inbound = max_connections();
    loop->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    loop->read_buffer = (uint8_t *)mem_new_array(NET_READ_BUFFER_BYTES, 1);
    if (getrandom(&loop->random, sizeof(loop->random), GRND_NONBLOCK) != (ssize_t)sizeof(loop->random))
        loop->random = (uint64_t)time_mono_ns();
    setup_handles(loop);
    return loop;
}

void net_loop_run(struct net_loop *loop)
{
    uv_ref((uv_handle_t *)&loop->prepare); /* runs on with nothing to wait for, until it is stopped */
    while (!loop->is_stopping)
        (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
    loop->is_stopping = false;
    uv_unref((uv_handle_t *)&loop->prepare);
}

bool net_loop_turn(struct net_loop *loop)
{
    uv_ref((uv_handle_t *)&loop->prepare); /* libuv skips a turn when nothing is alive; ours have more than handles */
    (void)uv_run(&loop->uv, UV_RUN_NOWAIT);
    uv_unref((uv_handle_t *)&loop->prepare);
    return uv_loop_alive(&loop->uv) != 0 || has_more(loop);
}

void net_loop_stop(struct net_loop *loop)
{
    loop->is_stopping = true;
    uv_stop(&loop->uv);
}

static void free_with_owner(uv_handle_t *handle)
{
    if (handle->type == UV_SIGNAL || handle->type == UV_ASYNC)
        free(handle->data);
}

static void close_handle(uv_handle_t *handle, void *context)
{
    (void)context;
    if (!uv_is_closing(handle))
        uv_close(handle, free_with_owner);
}

void net_loop_free(struct net_loop *loop)
{
    if (!loop)
        return;
    while (loop->listeners)
        net_listener_free(loop->listeners);
    while (loop->clients || has_more(loop)) {
        for (struct net_conn *conn = loop->clients; conn; conn = conn->next)
            net_conn_abort(conn);
        finish_turn(loop);
    }
    uv_walk(&loop->uv, close_handle, NULL);
    while (uv_run(&loop->uv, UV_RUN_DEFAULT) != 0 || has_more(loop))
        finish_turn(loop);
    int rc = uv_loop_close(&loop->uv);
    assert(rc == 0);
    (void)rc;
    file_close_cleanup(&loop->spare_fd);
    vec_fini(&loop->heap);
    vec_fini(&loop->deferred);
    vec_fini(&loop->dirty);
    vec_fini(&loop->again);
    vec_fini(&loop->dead);
    map_free(loop->per_ip);
    metrics_free(loop->own_metrics);
    free(loop->read_buffer);
    free(loop);
}
