/* The HTTP/1.1 server on net's connections: one session per connection, requests one after the other, answers from the
 * GET table, bodies fed as the peer takes them. Owns the request deadlines; reads no byte of a head itself (parse.c).
 */
#include "http/http.h"

#include "http/parse.h"

#include <stdio.h>
#include <string.h>

enum { CHUNK_MAX_BYTES = 65536 }; /* what net hands over at once */

struct http_server {
    const struct net_gets *gets;
    struct metric_family *requests;
    struct net_protocol protocol;
    size_t input_bytes, body_bytes; /* held for all sessions */
};

enum waiting { WAITING_NOTHING, WAITING_IDLE, WAITING_HEAD };

struct http_session {
    struct http_server *server;
    struct net_conn *conn;
    struct net_timer *timer;
    enum waiting waiting; /* what the timer limits */
    struct http_scan scan;
    struct buf in;   /* a partial head, or requests that came before the last answer was out */
    struct buf body; /* of the answer that is going out */
    size_t body_sent, input_counted, body_counted; /* counted: what the server's sums hold of ours */
    bool is_answering, is_last;                    /* close after this answer */
    bool is_draining, is_ended;
    bool has_more; /* requests wait for the next turn */
};

static const struct metric_desc requests_desc = {
    .name = "keda_gpu_scaler_http_requests",
    .help = "HTTP requests answered, by protocol version and status code.",
    .kind = METRIC_COUNTER,
    .labels = {"version", "code"},
};

static const char *reason_phrase(int status)
{
    static const struct {
        int status;
        const char *phrase;
    } phrases[] = {
        {200, "OK"},
        {204, "No Content"},
        {301, "Moved Permanently"},
        {302, "Found"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {408, "Request Timeout"},
        {414, "URI Too Long"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < ARRAY_LEN(phrases); i++)
        if (phrases[i].status == status)
            return phrases[i].phrase;
    return "Status";
}

static size_t half_of_output(const struct http_session *session)
{
    return (size_t)net_conn_limits(session->conn)->values[NET_LIMIT_OUTPUT_BYTES] / 2;
}

/* ---- deadlines ---- */

static void wait_for(struct http_session *session, enum waiting waiting)
{
    const int64_t *limits = net_conn_limits(session->conn)->values;
    if (waiting == WAITING_HEAD && session->waiting == WAITING_HEAD)
        return; /* absolute: more bytes do not buy more time */
    session->waiting = waiting;
    if (waiting == WAITING_NOTHING)
        net_timer_stop(session->timer);
    else
        net_timer_start(session->timer,
                        limits[waiting == WAITING_HEAD ? NET_LIMIT_HEADERS_MS : NET_LIMIT_IDLE_HTTP1_MS] * NS_PER_MS,
                        0);
}

/* ---- answers ---- */

static void count_request(const struct http_session *session, int status)
{
    char code[8];
    (void)snprintf(code, sizeof(code), "%d", status);
    metric_add(metric_series(session->server->requests, (const char *const[]){"1.1", code}), 1);
}

struct head {
    const struct net_get_response *response;
    bool is_http10, has_allow;
};

static void write_head(struct buf *out, const struct http_session *session, const struct head *head)
{
    const struct net_get_response *response = head->response;
    (void)buf_printf(out, "HTTP/1.1 %d %s\r\n", response->status, reason_phrase(response->status));
    if (response->content_type)
        (void)buf_printf(out, "Content-Type: %s\r\n", response->content_type);
    if (response->content_encoding)
        (void)buf_printf(out, "Content-Encoding: %s\r\n", response->content_encoding);
    (void)buf_printf(out, "Content-Length: %zu\r\nX-Content-Type-Options: nosniff\r\n", response->body.len);
    (void)buf_append_str(out, response->extra);
    if (head->has_allow)
        (void)buf_append_str(out, "Allow: GET, HEAD\r\n");
    if (session->is_last)
        (void)buf_append_str(out, "Connection: close\r\n");
    else if (head->is_http10)
        (void)buf_append_str(out, "Connection: keep-alive\r\n");
    (void)buf_append_str(out, "\r\n");
}

static void count_body(struct http_session *session, size_t bytes)
{
    session->server->body_bytes += bytes - session->body_counted;
    session->body_counted = bytes;
}

static void count_input(struct http_session *session, size_t bytes)
{
    session->server->input_bytes += bytes - session->input_counted;
    session->input_counted = bytes;
}

static void finish_answer(struct http_session *session)
{
    buf_fini(&session->body);
    count_body(session, 0);
    session->body_sent = 0;
    session->is_answering = false;
    if (session->is_last)
        net_conn_close(session->conn);
}

/* As much of the body as keeps pending output at half of its ceiling: from there on net calls `writable`. */
static void feed_body(struct http_session *session)
{
    while (session->body_sent < session->body.len) {
        size_t unsent = net_conn_unsent_bytes(session->conn), half = half_of_output(session);
        size_t left = session->body.len - session->body_sent;
        if (unsent >= half)
            return;
        size_t len = left < half - unsent ? left : half - unsent;
        if (net_conn_send(session->conn, session->body.data + session->body_sent, len) < 0) {
            net_conn_abort(session->conn);
            return;
        }
        session->body_sent += len;
    }
    finish_answer(session);
}

/* The memory of all answers has a ceiling; beyond it a short one goes out. */
static void check_body(const struct http_session *session, struct net_get_response *response)
{
    size_t ceiling = (size_t)net_conn_limits(session->conn)->values[NET_LIMIT_OUTPUT_BYTES_ALL];
    if (session->server->body_bytes + response->body.len <= ceiling || response->body.len <= NET_OWN_BYTES)
        return;
    net_limit_hit(net_conn_loop(session->conn), NET_LIMIT_OUTPUT_BYTES_ALL);
    buf_fini(&response->body);
    *response = (struct net_get_response){.status = 503, .content_type = "text/plain; charset=utf-8"};
    buf_init(&response->body, 1024);
    (void)buf_append_str(&response->body, "too many answers are waiting to be taken\n");
}

/* Takes the response's body. */
static void send_answer(struct http_session *session, struct net_get_response *response, const struct head *head,
                        bool is_head_request)
{
    BUF_AUTO struct buf text;
    buf_init(&text, CHUNK_MAX_BYTES);
    write_head(&text, session, head);
    count_request(session, response->status);
    session->is_answering = true;
    session->body = response->body;
    count_body(session, session->body.len);
    session->body_sent = is_head_request ? session->body.len : 0;
    if (net_conn_send(session->conn, text.data, text.len) < 0)
        net_conn_abort(session->conn);
    else
        feed_body(session);
}

static void answer(struct http_session *session, const struct http_request *request)
{
    struct net_get_response response;
    struct net_get_request get = {
        .path = request->path,
        .query = request->query,
        .accept = request->accept,
        .accept_encoding = request->accept_encoding,
        .user_agent = request->user_agent,
        .is_head = request->is_head,
    };
    session->is_last = session->is_draining || !request->is_keep_alive;
    net_gets_answer(session->server->gets, &get, &response);
    check_body(session, &response);
    struct head head = {.response = &response, .is_http10 = request->is_http10};
    send_answer(session, &response, &head, request->is_head);
}

static void refuse(struct http_session *session, const struct http_refusal *refusal)
{
    if (refusal->status == HTTP_NO_ANSWER) {
        session->is_last = true;
        net_conn_close(session->conn);
        return;
    }
    struct net_get_response response = {.status = refusal->status, .content_type = "text/plain; charset=utf-8"};
    struct head head = {.response = &response, .has_allow = refusal->status == 405};
    buf_init(&response.body, 1024);
    (void)buf_printf(&response.body, "%s\n", refusal->text);
    session->is_last = true;
    if (refusal->status == 414 || refusal->status == 431)
        net_limit_hit(net_conn_loop(session->conn), NET_LIMIT_HTTP1_HEADER_BYTES);
    send_answer(session, &response, &head, false);
}

/* ---- requests ---- */

/* One request from the front of bytes. Returns its length, 0 when it is not complete, -1 when it was refused. */
static long handle_request(struct http_session *session, char *bytes, size_t len)
{
    struct http_refusal refusal;
    struct http_request request;
    size_t max = (size_t)net_conn_limits(session->conn)->values[NET_LIMIT_HTTP1_HEADER_BYTES];
    long head_len = http_scan_head(&session->scan, bytes, len, max, &refusal);
    size_t start = session->scan.start;
    if (head_len == 0)
        return 0;
    session->scan = (struct http_scan){0};
    if (head_len < 0 || http_parse_request(bytes + start, (size_t)head_len - start, &request, &refusal) < 0) {
        refuse(session, &refusal);
        return -1;
    }
    wait_for(session, WAITING_NOTHING);
    answer(session, &request);
    return head_len;
}

static bool can_answer(const struct http_session *session)
{
    return !session->is_answering && !session->is_last &&
           net_conn_unsent_bytes(session->conn) < half_of_output(session);
}

/* Some of what has come; a peer that asks for much at once gets it over several turns, with others between. */
static void handle_requests(struct http_session *session)
{
    size_t used = 0;
    int64_t left = net_conn_limits(session->conn)->values[NET_LIMIT_REQUESTS_PER_TURN];
    session->has_more = false;
    while (can_answer(session) && used < session->in.len) {
        if (left-- <= 0) {
            session->has_more = true;
            net_conn_call_again(session->conn);
            net_limit_hit(net_conn_loop(session->conn), NET_LIMIT_REQUESTS_PER_TURN);
            break;
        }
        long len = handle_request(session, session->in.data + used, session->in.len - used);
        if (len < 0)
            used = session->in.len; /* what follows a refused request is not looked at */
        if (len <= 0)
            break;
        used += (size_t)len;
    }
    buf_consume(&session->in, used);
    if (session->in.len == 0)
        buf_fini(&session->in); /* idle connections hold no memory */
}

/* After anything happened: what is waited for now? */
static void settle(struct http_session *session)
{
    bool can_go_on = can_answer(session);
    count_input(session, session->in.capacity);
    net_conn_set_busy(session->conn, session->is_answering || session->in.len > 0);
    if (!can_go_on || session->has_more)
        wait_for(session, WAITING_NOTHING); /* the peer's taking of output is limited by net */
    else if (session->is_ended || (session->is_draining && session->in.len == 0))
        net_conn_close(session->conn);
    else
        wait_for(session, session->in.len ? WAITING_HEAD : WAITING_IDLE);
}

static int receive(void *context, const uint8_t *bytes, size_t len)
{
    struct http_session *session = (struct http_session *)context;
    size_t ceiling = (size_t)net_conn_limits(session->conn)->values[NET_LIMIT_RECEIVE_BYTES_ALL];
    if (session->is_last)
        return 0;
    if (session->server->input_bytes + len > ceiling && session->in.len + len > NET_OWN_BYTES) {
        net_limit_hit(net_conn_loop(session->conn), NET_LIMIT_RECEIVE_BYTES_ALL);
        return -1;
    }
    if (buf_append(&session->in, bytes, len) < 0)
        return -1; /* cannot be: net reads nothing while output stands at half */
    if (session->waiting == WAITING_IDLE)
        wait_for(session, WAITING_HEAD);
    handle_requests(session);
    settle(session);
    return 0;
}

static void writable(void *context)
{
    struct http_session *session = (struct http_session *)context;
    if (session->is_answering)
        feed_body(session);
    handle_requests(session);
    settle(session);
}

static void drain(void *context)
{
    struct http_session *session = (struct http_session *)context;
    session->is_draining = true;
    settle(session);
}

static void ended(void *context)
{
    struct http_session *session = (struct http_session *)context;
    session->is_ended = true;
    settle(session);
}

static void timer_fired(void *context)
{
    struct http_session *session = (struct http_session *)context;
    static const struct http_refusal too_slow = {408, "the request did not arrive in time"};
    bool is_idle = session->waiting == WAITING_IDLE;
    net_limit_hit(net_conn_loop(session->conn), is_idle ? NET_LIMIT_IDLE_HTTP1_MS : NET_LIMIT_HEADERS_MS);
    if (is_idle || session->in.len == 0)
        net_conn_close(session->conn);
    else
        refuse(session, &too_slow);
}

/* ---- sessions and the server ---- */

static void *open_session(void *context, struct net_conn *conn)
{
    struct http_session *session = mem_new(struct http_session);
    session->server = (struct http_server *)context;
    session->conn = conn;
    buf_init(&session->in, 2 * CHUNK_MAX_BYTES);
    session->timer = net_timer_new(net_conn_loop(conn), timer_fired, session);
    net_conn_established(conn); /* the first request has the deadline of every request */
    wait_for(session, WAITING_HEAD);
    return session;
}

static void close_session(void *context)
{
    struct http_session *session = (struct http_session *)context;
    net_timer_free(session->timer);
    count_input(session, 0);
    count_body(session, 0);
    buf_fini(&session->in);
    buf_fini(&session->body);
    free(session);
}

struct http_server *http_server_new(const struct net_gets *gets, struct metrics *metrics)
{
    struct http_server *server = mem_new(struct http_server);
    server->gets = gets;
    server->requests = metric_register(metrics, &requests_desc);
    server->protocol = (struct net_protocol){
        .name = "http/1.1",
        .alpn = "http/1.1",
        .context = server,
        .open = open_session,
        .receive = receive,
        .writable = writable,
        .drain = drain,
        .close = close_session,
        .ended = ended,
    };
    return server;
}

void http_server_free(struct http_server *server)
{
    free(server);
}

const struct net_protocol *http_server_protocol(struct http_server *server)
{
    return &server->protocol;
}
