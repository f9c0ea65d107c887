/* Watching a descriptor that a foreign library (libcurl) owns: readiness is told, nothing is read, written or closed.
 */
#include "net/loop.h"

#include <sys/socket.h>

struct net_poll {
    uv_poll_t uv;
    void (*fn)(void *context, bool is_readable, bool is_writable);
    void *context;
};

static void free_data(uv_handle_t *handle)
{
    free(handle->data);
}

/* An error on the descriptor counts as both: whoever reads or writes next is told what it is. */
static void polled(uv_poll_t *uv, int status, int events)
{
    struct net_poll *poll = (struct net_poll *)uv->data;
    poll->fn(poll->context, status < 0 || (events & UV_READABLE), status < 0 || (events & UV_WRITABLE));
}

struct net_poll *net_poll_new(struct net_loop *loop, int fd,
                              void (*fn)(void *context, bool is_readable, bool is_writable), void *context,
                              struct err *e)
{
    struct net_poll *poll = mem_new(struct net_poll);
    poll->fn = fn;
    poll->context = context;
    poll->uv.data = poll;
    int rc = uv_poll_init(&loop->uv, &poll->uv, fd);
    if (rc < 0) {
        free(poll);
        (void)err_set(e, ERR_UNAVAILABLE, "cannot watch descriptor %d: %s", fd, uv_strerror(rc));
        return NULL;
    }
    return poll;
}

void net_poll_want(struct net_poll *poll, bool want_read, bool want_write)
{
    int events = (want_read ? UV_READABLE : 0) | (want_write ? UV_WRITABLE : 0);
    if (events)
        (void)uv_poll_start(&poll->uv, events, polled);
    else
        (void)uv_poll_stop(&poll->uv);
}

void net_poll_free(struct net_poll *poll)
{
    if (poll)
        uv_close((uv_handle_t *)&poll->uv, free_data);
}

int net_socket_new(int family, int type, int protocol)
{
    return socket(family, type | SOCK_CLOEXEC, protocol);
}
