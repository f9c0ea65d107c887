/* Timers: a binary heap of deadlines under one libuv timer, so that a deadline costs a connection 56 bytes and no
 * system call. Owns the order of firing; when the loop wakes up for it is loop.c's business. */
#include "net/loop.h"

#include <assert.h>

static bool is_before(const struct net_timer *a, const struct net_timer *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->start_id < b->start_id;
}

static void put(struct net_loop *loop, size_t place, struct net_timer *timer)
{
    loop->heap.items[place - 1] = timer;
    timer->place = place;
}

static void sift_up(struct net_loop *loop, struct net_timer *timer)
{
    size_t place = timer->place;
    while (place > 1 && is_before(timer, loop->heap.items[place / 2 - 1])) {
        put(loop, place, loop->heap.items[place / 2 - 1]);
        place /= 2;
    }
    put(loop, place, timer);
}

static void sift_down(struct net_loop *loop, struct net_timer *timer)
{
    size_t place = timer->place, len = loop->heap.len;
    for (size_t child = 2 * place; child <= len; child = 2 * place) {
        if (child < len && is_before(loop->heap.items[child], loop->heap.items[child - 1]))
            child++;
        if (!is_before(loop->heap.items[child - 1], timer))
            break;
        put(loop, place, loop->heap.items[child - 1]);
        place = child;
    }
    put(loop, place, timer);
}

void net_timer_setup(struct net_timer *timer, struct net_loop *loop, void (*fn)(void *context), void *context)
{
    *timer = (struct net_timer){.loop = loop, .fn = fn, .context = context};
}

struct net_timer *net_timer_new(struct net_loop *loop, void (*fn)(void *context), void *context)
{
    struct net_timer *timer = mem_new(struct net_timer);
    net_timer_setup(timer, loop, fn, context);
    return timer;
}

void net_timer_start(struct net_timer *timer, int64_t delay_ns, int64_t repeat_ns)
{
    struct net_loop *loop = timer->loop;
    int64_t now = net_now_ns(loop), delay = delay_ns > 0 ? delay_ns : 0;
    timer->at_ns = delay < INT64_MAX - now ? now + delay : INT64_MAX;
    timer->repeat_ns = repeat_ns;
    timer->start_id = ++loop->n_timer_starts;
    if (!timer->place) {
        vec_push(&loop->heap, timer);
        timer->place = loop->heap.len;
    }
    sift_up(loop, timer);
    sift_down(loop, timer);
}

void net_timer_stop(struct net_timer *timer)
{
    struct net_loop *loop = timer->loop;
    if (!timer->place)
        return;
    struct net_timer *last = loop->heap.items[--loop->heap.len];
    if (last != timer) {
        put(loop, timer->place, last);
        sift_up(loop, last);
        sift_down(loop, last);
    }
    timer->place = 0;
}

void net_timer_free(struct net_timer *timer)
{
    if (!timer)
        return;
    net_timer_stop(timer);
    free(timer);
}

int64_t net_timers_next_ns(const struct net_loop *loop)
{
    return loop->heap.len ? loop->heap.items[0]->at_ns : INT64_MAX;
}

/* What is started while firing waits for the next turn, however short its delay. */
void net_timers_run(struct net_loop *loop)
{
    uint64_t last_id = loop->n_timer_starts;
    int64_t now = net_now_ns(loop);
    while (loop->heap.len) {
        struct net_timer *timer = loop->heap.items[0];
        if (timer->at_ns > now || timer->start_id > last_id)
            break;
        if (timer->repeat_ns > 0)
            net_timer_start(timer, timer->repeat_ns, timer->repeat_ns);
        else
            net_timer_stop(timer);
        timer->fn(timer->context); /* may free the timer */
    }
}
