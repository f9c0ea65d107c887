/* Listeners: binding, accepting under the caps, resting when the system has no descriptor left, draining. */
#include "net/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    BACKLOG = 4096,
    ACCEPTS_PER_TURN = 64,
    SHEDS_PER_TURN = 16,
    KERNEL_UNSENT_BYTES = 131072,
    OUTPUT_BYTES_MIN = 65536
};
#define ACCEPT_PAUSE_NS (100 * NS_PER_MS)

/* ---- binding ---- */

struct bound {
    struct sockaddr_storage address;
    socklen_t len;
    bool is_dual; /* an IPv6 wildcard that takes IPv4 too */
};

static int open_socket(const struct bound *bound)
{
    int fd = socket(bound->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1, v6_only = bound->is_dual ? 0 : 1;
    if (fd < 0)
        return -1;
    if (bound->address.ss_family != AF_UNIX)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bound->address.ss_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof(v6_only));
    if (bind(fd, (const struct sockaddr *)&bound->address, bound->len) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int saved = errno;
    (void)close(fd);
    errno = saved;
    return -1;
}

static int resolve_bound(const char *host, int port, struct bound *ret_bound, const char *address, struct err *e)
{
    char service[8];
    (void)snprintf(service, sizeof(service), "%d", port);
    struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM}, *found = NULL;
    int rc = getaddrinfo(host, service, &hints, &found);
    if (rc != 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "cannot listen on %s: %s", address, gai_strerror(rc));
    memcpy(&ret_bound->address, found->ai_addr, found->ai_addrlen);
    ret_bound->len = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

static struct bound wildcard(int family, int port)
{
    struct bound bound = {.is_dual = family == AF_INET6};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    bound.len = family == AF_INET6 ? sizeof(v6) : sizeof(v4);
    if (family == AF_INET6)
        memcpy(&bound.address, &v6, sizeof(v6));
    else
        memcpy(&bound.address, &v4, sizeof(v4));
    return bound;
}

static int bind_inet(const char *address, struct err *e)
{
    char host[256];
    int port, fd;
    struct bound bound = {.len = 0};
    if (net_split_address(address, host, &port, e) < 0)
        return -1;
    bool is_wildcard = host[0] == '\0' || strcmp(host, "::") == 0;
    if (is_wildcard)
        bound = wildcard(AF_INET6, port);
    else if (resolve_bound(host, port, &bound, address, e) < 0)
        return -1;
    fd = open_socket(&bound);
    if (fd < 0 && host[0] == '\0' && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL)) { /* no IPv6 here */
        bound = wildcard(AF_INET, port);
        fd = open_socket(&bound);
    }
    if (fd < 0)
        return err_set_errno(e, ERR_UNAVAILABLE, errno, "cannot listen on %s", address);
    return fd;
}

/* A socket file whose owner is gone refuses connections: it may be replaced. */
static bool is_stale(const struct bound *bound)
{
    FD_AUTO int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return fd >= 0 && connect(fd, (const struct sockaddr *)&bound->address, bound->len) < 0 && errno == ECONNREFUSED;
}

static int bind_unix(const char *path, struct err *e)
{
    struct sockaddr_un un;
    struct stat st;
    struct bound bound = {.len = sizeof(un)};
    if (net_fill_unix(path, &un, e) < 0)
        return -1;
    memcpy(&bound.address, &un, sizeof(un));
    if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode)) /* it refuses connections as a stale socket does */
        return err_set(e, ERR_UNAVAILABLE, "cannot listen on unix:%s: what is there is not a socket", path);
    int fd = open_socket(&bound);
    if (fd < 0 && errno == EADDRINUSE && is_stale(&bound)) {
        (void)unlink(path);
        fd = open_socket(&bound);
    }
    if (fd < 0)
        return err_set_errno(e, ERR_UNAVAILABLE, errno, "cannot listen on unix:%s", path);
    return fd;
}

/* ---- admission ---- */

/* IPv6 peers are counted by /64, which one host has to itself. */
static bool ip_key(const struct sockaddr_storage *address, uint8_t key[16])
{
    memset(key, 0, 16);
    if (address->ss_family == AF_INET) {
        key[10] = key[11] = 0xff;
        memcpy(key + 12, &((const struct sockaddr_in *)address)->sin_addr, 4);
        return true;
    }
    if (address->ss_family != AF_INET6)
        return false;
    const struct in6_addr *v6 = &((const struct sockaddr_in6 *)address)->sin6_addr;
    memcpy(key, v6, IN6_IS_ADDR_V4MAPPED(v6) ? 16 : 8);
    return true;
}

static bool is_admitted(struct net_listener *listener, const struct sockaddr_storage *address)
{
    struct net_loop *loop = listener->loop;
    uint8_t key[16];
    if ((int64_t)loop->n_inbound >= listener->limits->values[NET_LIMIT_CONNECTIONS] ||
        loop->n_inbound >= loop->max_inbound) {
        net_limit_hit(loop, NET_LIMIT_CONNECTIONS);
        return false;
    }
    const size_t *n = ip_key(address, key) ? (const size_t *)map_get(loop->per_ip, key, sizeof(key)) : NULL;
    if (n && (int64_t)*n >= listener->limits->values[NET_LIMIT_CONNECTIONS_PER_IP]) {
        net_limit_hit(loop, NET_LIMIT_CONNECTIONS_PER_IP);
        return false;
    }
    return true;
}

static void count_ip(struct net_conn *conn, const struct sockaddr_storage *address)
{
    conn->has_ip = ip_key(address, conn->ip_key);
    if (!conn->has_ip)
        return;
    size_t *n = (size_t *)map_get(conn->loop->per_ip, conn->ip_key, sizeof(conn->ip_key));
    if (!n) {
        n = mem_new(size_t);
        map_put(conn->loop->per_ip, conn->ip_key, sizeof(conn->ip_key), n);
    }
    ++*n;
}

static void admit(struct net_listener *listener, int fd, const struct sockaddr_storage *address)
{
    struct net_loop *loop = listener->loop;
    if (!is_admitted(listener, address)) {
        (void)close(fd);
        return;
    }
    metric_add(loop->series.accepted, 1);
    struct net_conn *conn = net_conn_new(loop, listener, listener->limits);
    count_ip(conn, address);
    net_format_sockaddr(address, conn->peer, sizeof(conn->peer));
    net_set_tcp_options(fd, address->ss_family, conn->limits);
    if (net_conn_take_fd(conn, fd) < 0)
        net_conn_end(conn, NET_END_ERROR);
    else
        net_conn_start(conn);
}

void net_set_tcp_options(int fd, int family, const struct net_limits *limits)
{
    int on = 1;
    unsigned unsent_bytes = KERNEL_UNSENT_BYTES, timeout_ms = (unsigned)limits->values[NET_LIMIT_WRITE_STALL_MS];
    if (family != AF_INET && family != AF_INET6)
        return;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof(timeout_ms));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent_bytes, sizeof(unsent_bytes)); /* more waits with us */
}

/* ---- accepting ---- */

static void accept_some(uv_poll_t *poll, int status, int events);

static void resume_accepting(void *context)
{
    struct net_listener *listener = (struct net_listener *)context;
    if (listener->poll)
        (void)uv_poll_start(listener->poll, UV_READABLE, accept_some);
}

static void pause_accepting(struct net_listener *listener)
{
    (void)uv_poll_stop(listener->poll);
    net_timer_start(&listener->pause, ACCEPT_PAUSE_NS, 0);
}

/* No descriptor is free: with the spare one, take waiting peers and close them, so that they learn at once. */
static void shed(struct net_listener *listener)
{
    struct net_loop *loop = listener->loop;
    for (int i = 0; i < SHEDS_PER_TURN && loop->spare_fd >= 0; i++) {
        (void)close(loop->spare_fd);
        int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) {
            (void)close(fd);
            metric_add(loop->series.accept_fd_limit, 1);
        }
        loop->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            break;
    }
    if (loop->spare_fd < 0)
        loop->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    pause_accepting(listener);
}

/* accept(2): errors of the peer's making are passed over. Returns whether to go on. */
static bool accept_failed(struct net_listener *listener, int errno_value)
{
    if (errno_value == EAGAIN)
        return false;
    if (errno_value == EMFILE || errno_value == ENFILE) {
        shed(listener);
        return false;
    }
    if (errno_value == EINTR)
        return true;
    metric_add(listener->loop->series.accept_other, 1);
    if (errno_value == ENOMEM || errno_value == ENOBUFS) {
        pause_accepting(listener);
        return false;
    }
    return true;
}

static void accept_some(uv_poll_t *poll, int status, int events)
{
    struct net_listener *listener = (struct net_listener *)poll->data;
    (void)status;
    (void)events;
    for (int i = 0; i < ACCEPTS_PER_TURN && listener->poll; i++) {
        struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
        socklen_t len = sizeof(address);
        int fd = accept4(listener->fd, (struct sockaddr *)&address, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0)
            admit(listener, fd, &address);
        else if (!accept_failed(listener, errno))
            break;
    }
}

/* ---- life ---- */

static void free_poll(uv_handle_t *handle)
{
    free(handle);
}

static void stop_accepting(struct net_listener *listener)
{
    if (!listener->poll)
        return;
    net_timer_stop(&listener->pause);
    uv_close((uv_handle_t *)listener->poll, free_poll);
    listener->poll = NULL;
    file_close_cleanup(&listener->fd);
    listener->fd = -1;
    struct file_stamp now;
    if (listener->unlink_path && file_stamp(listener->unlink_path, &now) == 0 &&
        now.device == listener->unlink_stamp.device && now.inode == listener->unlink_stamp.inode)
        (void)unlink(listener->unlink_path); /* still ours */
}

static void tell_done(void *context)
{
    struct net_listener *listener = (struct net_listener *)context;
    if (listener->done)
        listener->done(listener->context);
}

static void finish_drain(struct net_listener *listener)
{
    if (listener->is_done)
        return;
    listener->is_done = true;
    net_timer_stop(&listener->grace);
    net_defer(listener->loop, tell_done, listener);
}

static void abort_conns(struct net_listener *listener)
{
    for (struct net_conn *conn = listener->conns; conn; conn = conn->next)
        net_conn_end(conn, NET_END_ABORTED);
}

static void grace_passed(void *context)
{
    struct net_listener *listener = (struct net_listener *)context;
    abort_conns(listener);
    finish_drain(listener);
}

static void describe(struct net_listener *listener, const char *address)
{
    struct sockaddr_storage bound = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof(bound);
    (void)getsockname(listener->fd, (struct sockaddr *)&bound, &len);
    if (bound.ss_family == AF_INET6)
        listener->port = ntohs(((const struct sockaddr_in6 *)&bound)->sin6_port);
    else if (bound.ss_family == AF_INET)
        listener->port = ntohs(((const struct sockaddr_in *)&bound)->sin_port);
    if (bound.ss_family == AF_UNIX)
        (void)snprintf(listener->address, sizeof(listener->address), "%s", address);
    else
        net_format_sockaddr(&bound, listener->address, sizeof(listener->address));
}

static int start_poll(struct net_listener *listener, struct err *e)
{
    uv_poll_t *poll = mem_new(uv_poll_t);
    int rc = uv_poll_init(&listener->loop->uv, poll, listener->fd);
    if (rc < 0) {
        free(poll);
        return err_set(e, ERR_UNAVAILABLE, "cannot watch the listening socket: %s", uv_strerror(rc));
    }
    poll->data = listener;
    listener->poll = poll;
    resume_accepting(listener);
    return 0;
}

static void link_listener(struct net_listener *listener)
{
    listener->next = listener->loop->listeners;
    if (listener->next)
        listener->next->prev = listener;
    listener->loop->listeners = listener;
}

/* Sessions fill half of the output ceiling and may pass that by one frame of HTTP/2 (16 kB). */
static int check_limits(const struct net_limits *limits, struct err *e)
{
    if (!limits || limits->values[NET_LIMIT_OUTPUT_BYTES] >= OUTPUT_BYTES_MIN)
        return 0;
    return err_set(e, ERR_INVALID_ARGUMENT, "limit %s must be at least %d", net_limit_name(NET_LIMIT_OUTPUT_BYTES),
                   (int)OUTPUT_BYTES_MIN);
}

struct net_listener *net_listen(struct net_loop *loop, const struct net_listen_config *config, struct err *e)
{
    if (check_limits(config->limits, e) < 0)
        return NULL;
    const char *path = net_unix_path(config->address);
    int fd = path ? bind_unix(path, e) : bind_inet(config->address, e);
    if (fd < 0)
        return NULL;
    struct net_listener *listener = mem_new(struct net_listener);
    listener->loop = loop;
    listener->fd = fd;
    listener->tls = config->tls;
    listener->h2 = config->h2;
    listener->http1 = config->http1;
    listener->limits = config->limits ? config->limits : &net_limits_default;
    listener->unlink_path = path ? mem_strdup(path) : NULL;
    if (path)
        (void)file_stamp(path, &listener->unlink_stamp);
    net_timer_setup(&listener->pause, loop, resume_accepting, listener);
    net_timer_setup(&listener->grace, loop, grace_passed, listener);
    link_listener(listener);
    describe(listener, config->address);
    if (start_poll(listener, e) < 0) {
        net_listener_free(listener);
        return NULL;
    }
    return listener;
}

const char *net_listener_address(const struct net_listener *listener)
{
    return listener->address;
}

int net_listener_port(const struct net_listener *listener)
{
    return listener->port;
}

static void drain_conns(struct net_listener *listener, bool is_busy)
{
    for (struct net_conn *conn = listener->conns; conn; conn = conn->next)
        if (conn->is_busy == is_busy)
            net_conn_drain(conn);
}

void net_listener_drain(struct net_listener *listener, int64_t grace_ns, void (*done)(void *context), void *context)
{
    if (listener->is_draining)
        return;
    listener->is_draining = true;
    listener->done = done;
    listener->context = context;
    stop_accepting(listener);
    drain_conns(listener, false);
    drain_conns(listener, true);
    if (listener->n_conns == 0)
        finish_drain(listener);
    else
        net_timer_start(&listener->grace, grace_ns, 0);
}

void net_listener_conn_gone(struct net_listener *listener)
{
    listener->n_conns--;
    if (listener->is_draining && listener->n_conns == 0)
        finish_drain(listener);
}

void net_listener_free(struct net_listener *listener)
{
    if (!listener)
        return;
    struct net_loop *loop = listener->loop;
    stop_accepting(listener);
    file_close_cleanup(&listener->fd); /* where watching it failed */
    abort_conns(listener);
    net_conns_bury(loop);
    while (listener->conns)
        net_conn_move_to_loop(listener->conns); /* those whose callbacks are running */
    net_timer_stop(&listener->pause);
    net_timer_stop(&listener->grace);
    net_defer_cancel(loop, listener);
    *(listener->prev ? &listener->prev->next : &loop->listeners) = listener->next;
    if (listener->next)
        listener->next->prev = listener->prev;
    free(listener->unlink_path);
    free(listener);
}
