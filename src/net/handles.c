/* Signals, wakeups from other threads and work off the loop: thin wrappers over libuv's handles. */
#include "net/loop.h"

struct net_signal {
    uv_signal_t uv;
    void (*fn)(void *context);
    void *context;
};

struct net_wakeup {
    uv_async_t uv;
    void (*fn)(void *context);
    void *context;
};

struct net_job {
    uv_work_t uv;
    void (*work)(void *context);
    void (*done)(void *context);
    void *context;
};

static void free_data(uv_handle_t *handle)
{
    free(handle->data);
}

static void signalled(uv_signal_t *uv, int signum)
{
    struct net_signal *s = (struct net_signal *)uv->data;
    (void)signum;
    s->fn(s->context);
}

struct net_signal *net_signal_new(struct net_loop *loop, int signum, void (*fn)(void *context), void *context,
                                  struct err *e)
{
    struct net_signal *s = mem_new(struct net_signal);
    s->fn = fn;
    s->context = context;
    s->uv.data = s;
    int rc = uv_signal_init(&loop->uv, &s->uv);
    if (rc < 0) {
        free(s);
        (void)err_set(e, ERR_UNAVAILABLE, "cannot watch signal %d: %s", signum, uv_strerror(rc));
        return NULL;
    }
    rc = uv_signal_start(&s->uv, signalled, signum);
    if (rc < 0) {
        uv_close((uv_handle_t *)&s->uv, free_data);
        (void)err_set(e, ERR_UNAVAILABLE, "cannot watch signal %d: %s", signum, uv_strerror(rc));
        return NULL;
    }
    uv_unref((uv_handle_t *)&s->uv);
    return s;
}

void net_signal_free(struct net_signal *s)
{
    if (s)
        uv_close((uv_handle_t *)&s->uv, free_data);
}

static void woken(uv_async_t *uv)
{
    struct net_wakeup *w = (struct net_wakeup *)uv->data;
    w->fn(w->context);
}

struct net_wakeup *net_wakeup_new(struct net_loop *loop, void (*fn)(void *context), void *context, struct err *e)
{
    struct net_wakeup *w = mem_new(struct net_wakeup);
    w->fn = fn;
    w->context = context;
    w->uv.data = w;
    int rc = uv_async_init(&loop->uv, &w->uv, woken);
    if (rc < 0) {
        free(w);
        (void)err_set(e, ERR_UNAVAILABLE, "cannot make a wakeup: %s", uv_strerror(rc));
        return NULL;
    }
    return w;
}

void net_wakeup_send(struct net_wakeup *w)
{
    (void)uv_async_send(&w->uv);
}

void net_wakeup_free(struct net_wakeup *w)
{
    if (w)
        uv_close((uv_handle_t *)&w->uv, free_data);
}

static void run_work(uv_work_t *uv)
{
    struct net_job *job = (struct net_job *)uv->data;
    job->work(job->context);
}

static void finish_work(uv_work_t *uv, int status)
{
    struct net_job *job = (struct net_job *)uv->data;
    (void)status; /* nothing is ever cancelled */
    if (job->done)
        job->done(job->context);
    free(job);
}

void net_work(struct net_loop *loop, void (*work)(void *context), void (*done)(void *context), void *context)
{
    struct net_job *job = mem_new(struct net_job);
    job->uv.data = job;
    job->work = work;
    job->done = done;
    job->context = context;
    (void)uv_queue_work(&loop->uv, &job->uv, run_work, finish_work); /* fails for a NULL work only */
}
