/* Faults of the wire, in front of the HTTP server. */
#include "enginesim/wire.h"

#include <stdio.h>
#include <string.h>

enum { PAGE_BYTES_MAX = SCRIPT_PAD_MAX + (1 << 20), PIECE_BYTES = 16384, LENGTH_LIE = 1000 };
#define DRIBBLE_NS (100 * NS_PER_MS)
#define PIECE_NS   (5 * NS_PER_MS)

struct session {
    struct wire *wire;
    struct net_conn *conn;
    void *inner; /* the HTTP server's session; NULL once the connection is taken over */
    struct net_timer *timer;
    enum script_fault_kind kind;
    struct buf page;
    size_t sent;
};

static void send_head(struct session *s, const char *length_line)
{
    BUF_AUTO struct buf head;
    buf_init(&head, 1024);
    (void)buf_printf(&head, "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n%s\r\n",
                     length_line);
    (void)net_conn_send(s->conn, head.data, head.len);
}

static void send_length(struct session *s, size_t length)
{
    char line[64];
    (void)snprintf(line, sizeof(line), "Content-Length: %zu\r\n", length);
    send_head(s, line);
}

/* ---- what goes on by itself ---- */

static void dribble(struct session *s)
{
    if (s->sent >= s->page.len || net_conn_send(s->conn, s->page.data + s->sent, 1) < 0)
        net_conn_close(s->conn);
    s->sent++;
}

static void go_on_for_ever(struct session *s)
{
    static const char line[] = "vllm:num_requests_waiting{engine=\"0\",model_name=\"without/end\"} 1\n";
    if (net_conn_unsent_bytes(s->conn) > 4 * PIECE_BYTES)
        return;
    BUF_AUTO struct buf piece;
    buf_init(&piece, PIECE_BYTES + sizeof(line));
    while (piece.len < PIECE_BYTES)
        (void)buf_append(&piece, line, sizeof(line) - 1);
    if (net_conn_send(s->conn, piece.data, piece.len) < 0)
        net_conn_abort(s->conn);
}

static void on_timer(void *context)
{
    struct session *s = (struct session *)context;
    if (s->kind == SCRIPT_FAULT_DRIBBLE)
        dribble(s);
    else
        go_on_for_ever(s);
}

static void start_timer(struct session *s, int64_t every_ns)
{
    s->timer = net_timer_new(net_conn_loop(s->conn), on_timer, s);
    net_timer_start(s->timer, every_ns, every_ns);
}

/* ---- taking over ---- */

static void begin(struct session *s)
{
    s->wire->page(s->wire->context, &s->page);
    if (s->kind == SCRIPT_FAULT_WRONG_LENGTH) {
        send_length(s, s->page.len + LENGTH_LIE);
        (void)net_conn_send(s->conn, s->page.data, s->page.len);
        net_conn_close(s->conn);
    } else if (s->kind == SCRIPT_FAULT_DRIBBLE) {
        send_length(s, s->page.len);
        start_timer(s, DRIBBLE_NS);
    } else if (s->kind == SCRIPT_FAULT_NEVER_ENDS) {
        send_head(s, "Connection: close\r\n");
        (void)net_conn_send(s->conn, s->page.data, s->page.len);
        start_timer(s, PIECE_NS);
    } else if (s->kind != SCRIPT_FAULT_HANG) {
        net_conn_abort(s->conn); /* CLOSE, and RESTART while the process is not there */
    }
}

static bool is_of_wire(enum script_fault_kind kind)
{
    return kind == SCRIPT_FAULT_HANG || kind == SCRIPT_FAULT_CLOSE || kind == SCRIPT_FAULT_NEVER_ENDS ||
           kind == SCRIPT_FAULT_DRIBBLE || kind == SCRIPT_FAULT_WRONG_LENGTH || kind == SCRIPT_FAULT_RESTART;
}

static bool asks_for_page(const struct session *s, struct str request)
{
    size_t len = strlen(s->wire->path);
    return str_has_prefix(request, "GET ") && request.len > 4 + len && !memcmp(request.ptr + 4, s->wire->path, len) &&
           (request.ptr[4 + len] == ' ' || request.ptr[4 + len] == '?');
}

/* Is it in the request, as "Authorization: Bearer TOKEN"? */
static bool bears(struct str request, const char *token)
{
    while (request.ptr) {
        struct str value = str_cut(&request, '\n'), name = str_cut(&value, ':');
        if (!value.ptr || !str_equals_nocase(str_trim(name), "authorization"))
            continue;
        value = str_trim(value);
        return str_has_prefix(value, "Bearer ") && str_equals((struct str){value.ptr + 7, value.len - 7}, token);
    }
    return false;
}

static void refuse(struct session *s)
{
    static const char text[] = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 0\r\n"
                               "Connection: close\r\n\r\n";
    (void)net_conn_send(s->conn, text, sizeof(text) - 1);
    net_conn_close(s->conn);
}

static void take_over(struct session *s)
{
    s->wire->server->close(s->inner);
    s->inner = NULL;
    net_conn_set_busy(s->conn, true);
}

static int receive(void *context, const uint8_t *bytes, size_t len)
{
    struct session *s = (struct session *)context;
    if (!s->inner)
        return 0;
    struct str request = {(const char *)bytes, len};
    const char *token = s->wire->token(s->wire->context);
    s->kind = s->wire->judge(s->wire->context);
    bool is_refused = token && !bears(request, token);
    if (!asks_for_page(s, request) || (!is_of_wire(s->kind) && !is_refused))
        return s->wire->server->receive(s->inner, bytes, len);
    take_over(s);
    if (is_of_wire(s->kind))
        begin(s);
    else
        refuse(s);
    return 0;
}

/* ---- the rest goes through ---- */

static void *open_session(void *context, struct net_conn *conn)
{
    struct wire *w = (struct wire *)context;
    void *inner = w->server->open(w->server->context, conn);
    if (!inner)
        return NULL;
    struct session *s = mem_new(struct session);
    *s = (struct session){.wire = w, .conn = conn, .inner = inner};
    buf_init(&s->page, PAGE_BYTES_MAX);
    return s;
}

static void writable(void *context)
{
    struct session *s = (struct session *)context;
    if (s->inner)
        s->wire->server->writable(s->inner);
}

static void drain(void *context)
{
    struct session *s = (struct session *)context;
    if (s->inner)
        s->wire->server->drain(s->inner);
    else
        net_conn_abort(s->conn);
}

static void ended(void *context)
{
    struct session *s = (struct session *)context;
    if (s->inner)
        s->wire->server->ended(s->inner);
    else
        net_conn_close(s->conn);
}

static void close_session(void *context)
{
    struct session *s = (struct session *)context;
    if (s->inner)
        s->wire->server->close(s->inner);
    net_timer_free(s->timer);
    buf_fini(&s->page);
    free(s);
}

void wire_init(struct wire *w)
{
    w->protocol = (struct net_protocol){
        .name = "http/1.1 with faults",
        .alpn = "http/1.1",
        .context = w,
        .open = open_session,
        .receive = receive,
        .writable = writable,
        .drain = drain,
        .close = close_session,
        .ended = ended,
    };
}
