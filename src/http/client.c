/* One blocking GET on a private loop, for probes and the command line. HTTP/1.0, so that no reply is chunked. */
#include "http/http.h"

#include "http/parse.h"

#include <stdio.h>

enum { REPLY_HEAD_MAX_BYTES = 16384 };

struct get {
    struct net_loop *loop;
    struct net_conn *conn;
    const char *address, *path;
    struct buf head;
    struct http_scan scan;
    struct http_reply reply;
    struct buf *body;
    size_t body_start; /* what the caller's buffer held before */
    bool has_head, is_complete, has_failed;
    struct err error;
};

static void *open_get(void *context, struct net_conn *conn)
{
    struct get *get = (struct get *)context;
    BUF_AUTO struct buf request;
    buf_init(&request, 8192);
    (void)buf_printf(&request, "GET %s HTTP/1.0\r\nHost: %s\r\nAccept: */*\r\nUser-Agent: keda-gpu-scaler\r\n\r\n",
                     get->path, str_has_prefix(str_of(get->address), "unix:") ? "localhost" : get->address);
    get->conn = conn;
    return !request.is_overflowed && net_conn_send(conn, request.data, request.len) == 0 ? get : NULL;
}

static int fail(struct get *get, enum err_class class, const char *text)
{
    if (!get->has_failed)
        (void)err_set(&get->error, class, "%s", text);
    get->has_failed = true;
    return -1;
}

static int take_body(struct get *get, const char *bytes, size_t len)
{
    size_t have = get->body->len - get->body_start;
    if (get->reply.content_length >= 0 && len > (size_t)get->reply.content_length - have)
        len = (size_t)get->reply.content_length - have;
    if (buf_append(get->body, bytes, len) < 0)
        return fail(get, ERR_RESOURCE_EXHAUSTED, "the answer is larger than the limit");
    get->is_complete = get->reply.content_length >= 0 && have + len == (size_t)get->reply.content_length;
    return get->is_complete ? -1 : 0; /* -1: close */
}

static int receive(void *context, const uint8_t *bytes, size_t len)
{
    struct get *get = (struct get *)context;
    struct http_refusal refusal;
    if (get->has_head)
        return take_body(get, (const char *)bytes, len);
    if (buf_append(&get->head, bytes, len) < 0)
        return fail(get, ERR_UNAVAILABLE, "the answer's header is too large");
    long head = http_scan_head(&get->scan, get->head.data, get->head.len, REPLY_HEAD_MAX_BYTES, &refusal);
    if (head == 0)
        return 0;
    if (head < 0 || http_parse_reply(get->head.data, (size_t)head, &get->reply) < 0)
        return fail(get, ERR_UNAVAILABLE, "the answer is not HTTP/1");
    get->has_head = true;
    return take_body(get, get->head.data + head, get->head.len - (size_t)head);
}

/* An orderly end ends a body without a length; a lost connection does not. */
static void ended(void *context)
{
    struct get *get = (struct get *)context;
    if (get->has_head && get->reply.content_length < 0)
        get->is_complete = true;
    net_conn_close(get->conn);
}

static void close_get(void *context)
{
    net_loop_stop(((struct get *)context)->loop);
}

static void dial_failed(void *context, const struct err *e)
{
    struct get *get = (struct get *)context;
    get->has_failed = true;
    get->error = *e;
    net_loop_stop(get->loop);
}

static void timed_out(void *context)
{
    struct get *get = (struct get *)context;
    (void)fail(get, ERR_DEADLINE_EXCEEDED, "no complete answer within the time limit");
    net_loop_stop(get->loop);
}

static int outcome(const struct get *get, struct err *e)
{
    if (get->is_complete && !get->has_failed)
        return get->reply.status;
    if (get->has_failed)
        return err_set(e, get->error.class, "GET %s from %s: %s", get->path, get->address, get->error.text);
    return err_set(e, ERR_UNAVAILABLE, "GET %s from %s: the connection ended before the answer did", get->path,
                   get->address);
}

static int check_path(const char *path, struct err *e)
{
    for (const char *at = path; *at; at++)
        if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 0x7f)
            return err_set(e, ERR_INVALID_ARGUMENT, "path \"%.200s\" holds bytes that must be percent-encoded", path);
    return path[0] == '/' ? 0 : err_set(e, ERR_INVALID_ARGUMENT, "path \"%.200s\" must begin with /", path);
}

int http_get_blocking(const char *address, const char *path, int64_t timeout_ns, struct buf *ret_body, struct err *e)
{
    struct get get = {.address = address, .path = path, .body = ret_body, .body_start = ret_body->len};
    struct net_protocol protocol = {.name = "http/1.0",
                                    .alpn = "http/1.1",
                                    .context = &get,
                                    .open = open_get,
                                    .receive = receive,
                                    .close = close_get,
                                    .ended = ended};
    struct net_connect_config config = {
        .address = address, .protocol = &protocol, .timeout_ns = timeout_ns, .failed = dial_failed, .context = &get};
    if (check_path(path, e) < 0)
        return -1;
    get.loop = net_loop_new(NULL, e);
    if (!get.loop)
        return -1;
    buf_init(&get.head, 2 * 65536);
    struct net_timer *timer = net_timer_new(get.loop, timed_out, &get);
    net_timer_start(timer, timeout_ns, 0);
    bool has_dialled = net_connect(get.loop, &config, e) != NULL;
    if (has_dialled)
        net_loop_run(get.loop);
    net_timer_free(timer);
    net_loop_free(get.loop);
    buf_fini(&get.head);
    return has_dialled ? outcome(&get, e) : -1;
}
