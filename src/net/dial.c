/* Dialling: looking a name up off the loop, trying its addresses in turn within one time limit, and telling the owner
 * when none answers. From the connected socket on, conn_io.c goes on. */
#include "net/conn.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { ADDRESSES_MAX = 8 };
#define DIAL_TIMEOUT_DEFAULT_NS (10 * NS_PER_S)
#define ATTEMPT_MIN_NS          (250 * NS_PER_MS)

struct target {
    struct sockaddr_storage address;
    socklen_t len;
};

struct targets {
    struct target items[ADDRESSES_MAX];
    size_t n;
};

/* One socket on its way; it outlives the dial until libuv has closed its handle. */
struct attempt {
    uv_poll_t poll;
    struct net_dial *dial;
    int fd;
};

/* A name being looked up by a worker thread; dial is NULL once nobody waits for it. */
struct lookup {
    struct net_dial *dial;
    char host[256], service[8];
    struct targets found;
    int rc;
};

struct net_dial {
    struct net_conn *conn;
    char *address, *server_name;
    struct net_tls *tls;
    const struct net_protocol *protocol;
    void (*failed)(void *context, const struct err *e);
    void *context;
    struct targets targets;
    size_t next_target;
    struct attempt *attempt;
    struct lookup *lookup;
    struct net_timer attempt_timer;
    struct err error;
    bool has_error;
};

void net_dial_error(struct net_conn *conn, const struct err *e)
{
    struct net_dial *dial = conn->dial;
    if (dial->has_error)
        return;
    dial->has_error = true;
    dial->error = *e;
    (void)err_wrap(&dial->error, "cannot connect to %s", dial->address);
}

void net_dial_mute(struct net_conn *conn)
{
    conn->dial->failed = NULL;
}

const struct net_protocol *net_dial_protocol(const struct net_conn *conn)
{
    return conn->dial->protocol;
}

int net_dial_start_tls(struct net_conn *conn, struct tls_session **ret_session)
{
    struct net_dial *dial = conn->dial;
    struct err e;
    *ret_session = NULL;
    if (!dial->tls)
        return 0;
    *ret_session =
        tls_session_new_client(net_tls_context(dial->tls), conn->fd, dial->server_name, dial->protocol->alpn, &e);
    if (*ret_session)
        return 0;
    net_dial_error(conn, &e);
    return -1;
}

/* ---- attempts ---- */

static void free_attempt(uv_handle_t *handle)
{
    free(handle->data);
}

/* Returns the socket, which is now the caller's. */
static int end_attempt(struct net_dial *dial)
{
    struct attempt *attempt = dial->attempt;
    if (!attempt)
        return -1;
    int fd = attempt->fd;
    dial->attempt = NULL;
    net_timer_stop(&dial->attempt_timer);
    uv_close((uv_handle_t *)&attempt->poll, free_attempt);
    return fd;
}

static void close_attempt(struct net_dial *dial)
{
    int fd = end_attempt(dial);
    file_close_cleanup(&fd);
}

static void try_next(struct net_dial *dial);

static void attempt_failed(struct net_dial *dial, int errno_value)
{
    close_attempt(dial);
    if (dial->next_target < dial->targets.n) {
        try_next(dial);
        return;
    }
    struct err e;
    const char *reason = strerrordesc_np(errno_value);
    (void)err_set(&e, ERR_UNAVAILABLE, "%s", reason ? reason : "unknown system error");
    net_dial_error(dial->conn, &e);
    net_conn_end(dial->conn, NET_END_ERROR);
}

static void connected(struct net_dial *dial)
{
    struct net_conn *conn = dial->conn;
    const struct target *target = &dial->targets.items[dial->next_target - 1];
    int fd = end_attempt(dial);
    net_format_sockaddr(&target->address, conn->peer, sizeof(conn->peer));
    net_set_tcp_options(fd, target->address.ss_family, conn->limits);
    if (net_conn_take_fd(conn, fd) < 0)
        net_conn_end(conn, NET_END_ERROR);
    else
        net_conn_start(conn);
}

static void attempt_polled(uv_poll_t *poll, int status, int events)
{
    struct attempt *attempt = (struct attempt *)poll->data;
    int reason = 0;
    socklen_t len = sizeof(reason);
    (void)events;
    (void)getsockopt(attempt->fd, SOL_SOCKET, SO_ERROR, &reason, &len);
    if (reason == 0 && status < 0)
        reason = ECONNREFUSED;
    if (reason != 0)
        attempt_failed(attempt->dial, reason);
    else
        connected(attempt->dial);
}

static void attempt_timed_out(void *context)
{
    attempt_failed((struct net_dial *)context, ETIMEDOUT);
}

/* The time that is left is shared by the addresses that are left. */
static void start_attempt_timer(struct net_dial *dial)
{
    int64_t left = dial->conn->phase_at_ns - net_now_ns(dial->conn->loop);
    int64_t share = left / (int64_t)(dial->targets.n - dial->next_target + 1);
    if (dial->next_target < dial->targets.n)
        net_timer_start(&dial->attempt_timer, share > ATTEMPT_MIN_NS ? share : ATTEMPT_MIN_NS, 0);
}

/* 0, or the errno value. */
static int start_attempt(struct net_dial *dial, const struct target *target)
{
    int fd = socket(target->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    struct attempt *attempt = mem_new(struct attempt);
    attempt->fd = fd;
    attempt->dial = dial;
    attempt->poll.data = attempt;
    if (uv_poll_init(&dial->conn->loop->uv, &attempt->poll, fd) < 0) {
        free(attempt);
        (void)close(fd);
        return EBADF;
    }
    dial->attempt = attempt;
    if (connect(fd, (const struct sockaddr *)&target->address, target->len) < 0 && errno != EINPROGRESS)
        return errno;
    (void)uv_poll_start(&attempt->poll, UV_WRITABLE, attempt_polled);
    start_attempt_timer(dial);
    return 0;
}

static void try_next(struct net_dial *dial)
{
    const struct target *target = &dial->targets.items[dial->next_target++];
    int rc = start_attempt(dial, target);
    if (rc != 0)
        attempt_failed(dial, rc);
}

/* ---- names ---- */

static int find_targets(const char *host, const char *service, int flags, struct targets *ret_targets)
{
    struct addrinfo hints = {.ai_flags = flags | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM}, *found = NULL;
    int rc = getaddrinfo(host, service, &hints, &found);
    if (rc != 0)
        return rc;
    ret_targets->n = 0;
    for (const struct addrinfo *at = found; at && ret_targets->n < ADDRESSES_MAX; at = at->ai_next) {
        struct target *target = &ret_targets->items[ret_targets->n++];
        memcpy(&target->address, at->ai_addr, at->ai_addrlen);
        target->len = at->ai_addrlen;
    }
    freeaddrinfo(found);
    return 0;
}

static void look_up(void *context)
{
    struct lookup *lookup = (struct lookup *)context;
    lookup->rc = find_targets(lookup->host, lookup->service, AI_ADDRCONFIG, &lookup->found);
}

static void looked_up(void *context)
{
    struct lookup *lookup = (struct lookup *)context;
    struct net_dial *dial = lookup->dial;
    if (dial && lookup->rc == 0) {
        dial->lookup = NULL;
        dial->targets = lookup->found;
        try_next(dial);
    } else if (dial) {
        struct err e;
        dial->lookup = NULL;
        (void)err_set(&e, ERR_UNAVAILABLE, "%s", gai_strerror(lookup->rc));
        net_dial_error(dial->conn, &e);
        net_conn_end(dial->conn, NET_END_ERROR);
    }
    free(lookup);
}

static void start_dial(void *context)
{
    try_next((struct net_dial *)context);
}

/* ---- life ---- */

static void fill_from_path(struct net_dial *dial, const struct sockaddr_un *un)
{
    memcpy(&dial->targets.items[0].address, un, sizeof(*un));
    dial->targets.items[0].len = sizeof(*un);
    dial->targets.n = 1;
}

static void fill_from_host(struct net_dial *dial, const char *host, int port)
{
    struct lookup *lookup = mem_new(struct lookup);
    (void)snprintf(lookup->host, sizeof(lookup->host), "%s", host[0] ? host : "localhost");
    (void)snprintf(lookup->service, sizeof(lookup->service), "%d", port);
    if (find_targets(lookup->host, lookup->service, AI_NUMERICHOST, &dial->targets) == 0) {
        free(lookup);
        return;
    }
    lookup->dial = dial;
    dial->lookup = lookup;
    net_work(dial->conn->loop, look_up, looked_up, lookup);
}

static int check_address(const char *address, struct sockaddr_un *ret_un, char host[256], int *ret_port, struct err *e)
{
    const char *path = net_unix_path(address);
    if (path)
        return net_fill_unix(path, ret_un, e);
    if (net_split_address(address, host, ret_port, e) < 0)
        return -1;
    if (*ret_port == 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "address \"%.200s\": a port to connect to cannot be 0", address);
    return 0;
}

struct net_conn *net_connect(struct net_loop *loop, const struct net_connect_config *config, struct err *e)
{
    char host[256] = "localhost";
    int port = 0;
    struct sockaddr_un un;
    if (check_address(config->address, &un, host, &port, e) < 0)
        return NULL;
    struct net_dial *dial = mem_new(struct net_dial);
    struct net_conn *conn = net_conn_new(loop, NULL, config->limits);
    conn->dial = dial;
    dial->conn = conn;
    dial->address = mem_strdup(config->address);
    dial->server_name = mem_strdup(config->server_name ? config->server_name : host[0] ? host : "localhost");
    dial->tls = config->tls;
    dial->protocol = config->protocol;
    dial->failed = config->failed;
    dial->context = config->context;
    net_timer_setup(&dial->attempt_timer, loop, attempt_timed_out, dial);
    if (net_unix_path(config->address))
        fill_from_path(dial, &un);
    else
        fill_from_host(dial, host, port);
    int64_t timeout = config->timeout_ns > 0 ? config->timeout_ns : DIAL_TIMEOUT_DEFAULT_NS;
    conn->phase_at_ns = net_now_ns(loop) + timeout;
    net_conn_arm(conn);
    if (!dial->lookup)
        net_defer(loop, start_dial, dial); /* so that `failed` never comes from in here */
    return conn;
}

static void free_dial(struct net_dial *dial)
{
    struct net_loop *loop = dial->conn->loop;
    bool is_waiting = dial->lookup != NULL;
    close_attempt(dial);
    net_timer_stop(&dial->attempt_timer);
    net_defer_cancel(loop, dial);
    if (is_waiting)
        dial->lookup->dial = NULL;
    free(dial->address);
    free(dial->server_name);
    free(dial);
}

void net_dial_done(struct net_conn *conn)
{
    free_dial(conn->dial);
    conn->dial = NULL;
}

void net_dial_bury(struct net_conn *conn)
{
    struct net_dial *dial = conn->dial;
    struct err e;
    (void)err_set(&e, ERR_UNAVAILABLE, "the connection ended early");
    net_dial_error(conn, &e);
    conn->dial = NULL;
    if (dial->failed)
        dial->failed(dial->context, &dial->error);
    free_dial(dial);
}
