/* Server and client together over real sockets of one loop: end to end, drain, limits of a turn, owners that go. */
#include "rpc/rpc.h"
#include "support.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BIG_BYTES = 3000000 };

static struct {
    struct metrics *metrics;
    struct net_loop *loop;
    struct rpc_server *server;
    struct net_listener *listener;
    struct rpc_client *client;
    struct rpc_call *open;
    int n_ended;
    bool is_drained, frees_client;
    struct net_limits limits;
} rig;

struct result {
    int n_done, n_messages;
    size_t message_bytes;
    struct err status;
};

/* ---- the service ---- */

static void echo(struct rpc_call *call, struct str request, void *context)
{
    (void)context;
    rpc_call_reply(call, request.ptr, request.len);
}

static void keep_open(struct rpc_call *call, struct str request, void *context)
{
    (void)context;
    (void)request;
    rig.open = call;
    rpc_call_send_headers(call);
    (void)rpc_call_send(call, "first", 5);
}

static void big(struct rpc_call *call, struct str request, void *context)
{
    (void)context;
    (void)request;
    MEM_AUTO char *bytes = (char *)mem_new_array(BIG_BYTES, 1);
    rpc_call_reply(call, bytes, BIG_BYTES);
}

static void hang(struct rpc_call *call, struct str request, void *context)
{
    (void)request;
    (void)context;
    rig.open = call;
}

static void ended(struct rpc_call *call, void *context)
{
    (void)context;
    (void)call;
    rig.n_ended++;
    rig.open = NULL;
}

static void free_listener(struct rpc_call *call, struct str request, void *context)
{
    (void)call;
    (void)request;
    (void)context;
    net_listener_free(rig.listener);
    rig.listener = NULL;
}

static const struct rpc_method methods[] = {
    {.path = "/t.T/Free", .message = free_listener, .ended = ended},
    {.path = "/t.T/Echo", .deadline_ns = NS_PER_S, .message = echo, .ended = ended},
    {.path = "/t.T/Stream", .is_server_streaming = true, .message = keep_open, .ended = ended},
    {.path = "/t.T/Big", .message = big, .ended = ended},
    {.path = "/t.T/Hang", .deadline_ns = NS_PER_S, .message = hang, .ended = ended},
};

/* ---- the rig ---- */

static void start_at(const char *address)
{
    struct err e;
    memset(&rig, 0, sizeof(rig));
    rig.metrics = metrics_new();
    rig.loop = net_loop_new(rig.metrics, &e);
    assert_non_null(rig.loop);
    rig.server = rpc_server_new(&(struct rpc_server_config){.loop = rig.loop, .metrics = rig.metrics});
    rpc_server_add(rig.server, methods, ARRAY_LEN(methods));
    rig.limits = net_limits_default;
    rig.listener = net_listen(
        rig.loop,
        &(struct net_listen_config){.address = address, .h2 = rpc_server_protocol(rig.server), .limits = &rig.limits},
        &e);
    if (!rig.listener)
        fail_msg("%s", e.text);
    rig.client = rpc_client_new(&(struct rpc_client_config){.loop = rig.loop,
                                                            .address = net_listener_address(rig.listener),
                                                            .window_bytes = 16 << 20},
                                &e);
    assert_non_null(rig.client);
}

static void start(void)
{
    start_at("127.0.0.1:0");
}

static void stop(void)
{
    rpc_client_free(rig.client);
    net_listener_free(rig.listener);
    for (int i = 0; i < 10; i++)
        (void)net_loop_turn(rig.loop);
    rpc_server_free(rig.server);
    net_loop_free(rig.loop);
    metrics_free(rig.metrics);
}

/* Turns until the condition holds; the sockets are local, so the kernel has the bytes at once. */
#define turn_until(condition)                                                                                          \
    do {                                                                                                               \
        int64_t end_ns = time_mono_ns() + 20 * NS_PER_S;                                                               \
        while (!(condition) && time_mono_ns() < end_ns)                                                                \
            (void)net_loop_turn(rig.loop);                                                                             \
        assert_true(condition);                                                                                        \
    } while (0)

static void on_message(void *context, struct str message)
{
    struct result *r = (struct result *)context;
    r->n_messages++;
    r->message_bytes += message.len;
    if (rig.frees_client) {
        rpc_client_free(rig.client);
        rig.client = NULL;
    }
}

static void on_done(void *context, const struct err *status)
{
    struct result *r = (struct result *)context;
    r->n_done++;
    r->status = *status;
}

static struct rpc_client_call *ask(struct result *r, const char *path)
{
    memset(r, 0, sizeof(*r));
    return rpc_client_start(rig.client,
                            &(struct rpc_client_call_config){.path = path,
                                                             .deadline_ns = path[5] == 'S' ? 0 : 5 * NS_PER_S,
                                                             .message = on_message,
                                                             .done = on_done,
                                                             .context = r},
                            "hello", 5);
}

/* ---- tests ---- */

static void test_a_call_goes_there_and_back(void **state)
{
    (void)state;
    struct result r;
    start();
    (void)ask(&r, "/t.T/Echo");
    turn_until(r.n_done);
    assert_int_equal(r.status.class, ERR_NONE);
    assert_int_equal(r.message_bytes, 5);
    assert_int_equal(rig.n_ended, 1);
    stop();
}

static void test_a_unix_socket_works_alike(void **state)
{
    (void)state;
    struct result r;
    char address[64];
    (void)snprintf(address, sizeof(address), "unix:/tmp/test_rpc_net.%d", (int)getpid());
    start_at(address);
    (void)ask(&r, "/t.T/Echo");
    turn_until(r.n_done);
    assert_int_equal(r.status.class, ERR_NONE);
    stop();
}

/* The third one finds no room in a pool of two. Their calls leave them idle in between: what waits for an answer then
 * has no memory of frames. */
static void test_clients_of_a_pool_work_alike_and_outlive_it(void **state)
{
    enum { N = 3, ROUNDS = 5 };
    (void)state;
    struct result r;
    struct err e;
    start();
    struct rpc_pool *pool = rpc_pool_new(N - 1);
    struct rpc_client *clients[N], *own = rig.client;
    struct rpc_client_config config = {.loop = rig.loop, .address = net_listener_address(rig.listener), .pool = pool};
    for (size_t i = 0; i < N; i++)
        assert_non_null(clients[i] = rpc_client_new(&config, &e));
    rpc_pool_free(pool);
    for (size_t k = 0; k < ROUNDS * N; k++) {
        rig.client = clients[k % N];
        (void)ask(&r, "/t.T/Echo");
        turn_until(r.n_done);
        assert_int_equal(r.status.class, ERR_NONE);
        assert_int_equal(r.message_bytes, 5);
    }
    rig.client = clients[0];
    (void)ask(&r, "/t.T/Nothing");
    turn_until(r.n_done);
    assert_int_equal(r.status.class, ERR_UNIMPLEMENTED);
    rpc_client_free(clients[0]);
    rig.client = clients[1]; /* its slot is in use, the one of the first is free again */
    (void)ask(&r, "/t.T/Echo");
    turn_until(r.n_done);
    assert_int_equal(r.message_bytes, 5);
    rpc_client_free(clients[1]);
    rpc_client_free(clients[2]);
    rig.client = own;
    stop();
}

static void test_many_calls_share_one_connection(void **state)
{
    (void)state;
    static struct result results[1500]; /* more than the server lets be open at once */
    start();
    for (size_t i = 0; i < ARRAY_LEN(results); i++)
        (void)ask(&results[i], "/t.T/Echo");
    for (size_t i = 0; i < ARRAY_LEN(results); i++) {
        turn_until(results[i].n_done);
        assert_int_equal(results[i].status.class, ERR_NONE);
    }
    stop();
}

static void test_an_answer_larger_than_every_buffer_arrives(void **state)
{
    (void)state;
    struct result r;
    start();
    (void)ask(&r, "/t.T/Big");
    turn_until(r.n_done);
    assert_int_equal(r.status.class, ERR_NONE);
    assert_int_equal(r.message_bytes, BIG_BYTES);
    stop();
}

static void test_the_servers_deadline_fires_without_traffic(void **state)
{
    (void)state;
    struct result r;
    start();
    (void)ask(&r, "/t.T/Hang");
    turn_until(rig.open);
    net_loop_skip(rig.loop, NS_PER_S);
    turn_until(r.n_done);
    assert_int_equal(r.status.class, ERR_DEADLINE_EXCEEDED);
    assert_string_equal(r.status.text, "no answer within 1s");
    stop();
}

static void test_cancel_reaches_the_server(void **state)
{
    (void)state;
    struct result r;
    start();
    struct rpc_client_call *call = ask(&r, "/t.T/Stream");
    turn_until(r.n_messages == 1);
    rpc_client_cancel(call);
    turn_until(rig.n_ended == 1 && r.n_done);
    assert_int_equal(r.status.class, ERR_CANCELLED);
    stop();
}

static void drained(void *context)
{
    (void)context;
    rig.is_drained = true;
}

static void test_drain_ends_streams_with_ok_and_closes(void **state)
{
    (void)state;
    struct result r;
    start();
    (void)ask(&r, "/t.T/Stream");
    turn_until(r.n_messages == 1);
    net_listener_drain(rig.listener, 5 * NS_PER_S, drained, NULL);
    turn_until(rig.is_drained);
    turn_until(r.n_done);
    assert_int_equal(r.status.class, ERR_NONE);
    assert_int_equal(rig.n_ended, 1);
    stop();
}

static void test_a_freed_listener_ends_calls_on_both_sides(void **state)
{
    (void)state;
    struct result r;
    start();
    (void)ask(&r, "/t.T/Stream");
    turn_until(r.n_messages == 1);
    net_listener_free(rig.listener);
    rig.listener = NULL;
    assert_int_equal(rig.n_ended, 1);
    turn_until(r.n_done);
    assert_int_equal(r.status.class, ERR_UNAVAILABLE);
    stop();
}

static void test_a_handler_may_free_its_client(void **state)
{
    (void)state;
    struct result r;
    start();
    rig.frees_client = true;
    (void)ask(&r, "/t.T/Stream");
    turn_until(r.n_done);
    assert_int_equal(r.n_messages, 1);
    assert_int_equal(r.status.class, ERR_CANCELLED);
    turn_until(rig.n_ended == 1);
    stop();
}

static void test_free_ends_open_calls_before_it_returns(void **state)
{
    (void)state;
    struct result open, queued;
    start();
    (void)ask(&open, "/t.T/Stream");
    turn_until(open.n_messages == 1);
    (void)ask(&queued, "/t.T/Echo");
    rpc_client_free(rig.client);
    rig.client = NULL;
    assert_int_equal(open.n_done, 1);
    assert_int_equal(queued.n_done, 1);
    assert_int_equal(queued.status.class, ERR_CANCELLED);
    stop();
}

static void test_a_client_may_go_while_it_dials(void **state)
{
    (void)state;
    struct result r;
    start();
    (void)ask(&r, "/t.T/Echo");
    rpc_client_free(rig.client);
    rig.client = NULL;
    assert_int_equal(r.n_done, 1);
    for (int i = 0; i < 10; i++)
        (void)net_loop_turn(rig.loop);
    assert_int_equal(rig.n_ended, 0);
    stop();
}

/* A peer that sends its preface and then nothing, not even the ACK of our SETTINGS. */
static bool is_mute_closed;

static void *mute_open(void *context, struct net_conn *conn)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
    (void)context;
    (void)net_conn_send(conn, preface, sizeof(preface) - 1);
    return &is_mute_closed;
}

static int mute_receive(void *session, const uint8_t *bytes, size_t len)
{
    (void)session;
    (void)bytes;
    (void)len;
    return 0;
}

static void mute_close(void *session)
{
    *(bool *)session = true;
}

static void mute_failed(void *context, const struct err *e)
{
    (void)context;
    fail_msg("%s", e->text);
}

static void test_a_connection_without_calls_has_its_deadlines(void **state)
{
    (void)state;
    static const struct net_protocol mute = {
        .name = "mute", .alpn = "h2", .open = mute_open, .receive = mute_receive, .close = mute_close};
    struct err e;
    is_mute_closed = false;
    start();
    assert_non_null(net_connect(rig.loop,
                                &(struct net_connect_config){.address = net_listener_address(rig.listener),
                                                             .protocol = &mute,
                                                             .limits = &net_limits_default,
                                                             .failed = mute_failed},
                                &e));
    for (int i = 0; i < 20; i++)
        (void)net_loop_turn(rig.loop);
    assert_false(is_mute_closed);
    net_loop_skip(rig.loop, 11 * NS_PER_S);
    for (int i = 0; i < 20; i++)
        (void)net_loop_turn(rig.loop);
    assert_true(is_mute_closed);
    stop();
}

/* ---- more than one turn's worth of frames ---- */

/* A peer that has its bytes ready and takes what comes. */
struct crowd {
    struct buf bytes;
    struct net_conn *conn;
    int n_closed;
};

static void *crowd_open(void *context, struct net_conn *conn)
{
    struct crowd *crowd = (struct crowd *)context;
    crowd->conn = conn;
    return net_conn_send(conn, crowd->bytes.data, crowd->bytes.len) == 0 ? crowd : NULL;
}

static int crowd_receive(void *session, const uint8_t *bytes, size_t len)
{
    (void)session;
    (void)bytes;
    (void)len;
    return 0;
}

static void crowd_close(void *session)
{
    ((struct crowd *)session)->n_closed++;
}

static void put_frame(struct buf *out, uint8_t type, uint8_t flags, uint32_t id, struct str payload)
{
    const uint8_t head[9] = {
        0,          0, (uint8_t)payload.len, type, flags, (uint8_t)(id >> 24), (uint8_t)(id >> 16), (uint8_t)(id >> 8),
        (uint8_t)id};
    (void)buf_append(out, head, sizeof(head));
    (void)buf_append(out, payload.ptr, payload.len);
}

/* POST with an empty message: two frames. */
static void put_call(struct buf *out, uint32_t id, char method)
{
    static const char echo_block[] = "\x83\x86\x04\x09/t.T/Echo\x01\x04test\x0f\x10\x10"
                                     "application/grpc";
    char block[sizeof(echo_block)];
    memcpy(block, echo_block, sizeof(block));
    memcpy(block + 9, method == 'F' ? "Free" : "Echo", 4);
    put_frame(out, 1, 4, id, (struct str){block, sizeof(block) - 1});
    put_frame(out, 0, 1, id, (struct str){"\0\0\0\0", 5});
}

static void crowd_begin(struct crowd *crowd)
{
    *crowd = (struct crowd){.n_closed = 0};
    buf_init(&crowd->bytes, 1 << 20);
    (void)buf_append_str(&crowd->bytes, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    put_frame(&crowd->bytes, 4, 0, 0, str_of(""));
    put_frame(&crowd->bytes, 4, 1, 0, str_of(""));
}

static void crowd_dial(struct crowd *crowd, struct net_protocol *protocol)
{
    struct err e;
    *protocol = (struct net_protocol){.name = "crowd",
                                      .alpn = "h2",
                                      .context = crowd,
                                      .open = crowd_open,
                                      .receive = crowd_receive,
                                      .close = crowd_close};
    assert_non_null(net_connect(rig.loop,
                                &(struct net_connect_config){.address = net_listener_address(rig.listener),
                                                             .protocol = protocol,
                                                             .failed = mute_failed},
                                &e));
}

static void test_a_peer_ahead_of_its_turns_is_held_back_and_served(void **state)
{
    (void)state;
    enum { CALLS = 12000, FRAMES = 200, CALLS_A_TURN_MAX = FRAMES };
    struct crowd crowd;
    struct net_protocol protocol;
    start();
    rig.limits.values[NET_LIMIT_FRAMES_PER_TURN] = FRAMES;
    crowd_begin(&crowd);
    for (uint32_t i = 0; i < CALLS; i++)
        put_call(&crowd.bytes, 2 * i + 1, 'E');
    crowd_dial(&crowd, &protocol);
    int64_t limit_ns = time_mono_ns() + 20 * NS_PER_S;
    while (rig.n_ended < CALLS && crowd.n_closed == 0 && time_mono_ns() < limit_ns) {
        int before = rig.n_ended;
        (void)net_loop_turn(rig.loop);
        assert_in_range(rig.n_ended - before, 0, CALLS_A_TURN_MAX);
    }
    assert_int_equal(rig.n_ended, CALLS); /* none was refused for being early */
    net_conn_abort(crowd.conn);
    turn_until(crowd.n_closed == 1);
    buf_fini(&crowd.bytes);
    stop();
}

static void test_a_handler_may_free_its_listener_in_any_turn(void **state)
{
    (void)state;
    struct crowd crowd;
    struct net_protocol protocol;
    start();
    rig.limits.values[NET_LIMIT_FRAMES_PER_TURN] = 20;
    crowd_begin(&crowd);
    for (uint32_t i = 0; i < 200; i++)
        put_call(&crowd.bytes, 2 * i + 1, i == 190 ? 'F' : 'E');
    crowd_dial(&crowd, &protocol);
    turn_until(crowd.n_closed == 1);
    assert_null(rig.listener);
    buf_fini(&crowd.bytes);
    stop();
}

static void test_nobody_there_is_unavailable(void **state)
{
    (void)state;
    struct result r;
    start();
    net_listener_free(rig.listener);
    rig.listener = NULL;
    (void)ask(&r, "/t.T/Echo");
    turn_until(r.n_done);
    assert_int_equal(r.status.class, ERR_UNAVAILABLE);
    assert_non_null(strstr(r.status.text, "cannot connect to 127.0.0.1:"));
    stop();
}

static void test_a_malformed_address_is_refused(void **state)
{
    (void)state;
    struct err e;
    start();
    assert_null(rpc_client_new(&(struct rpc_client_config){.loop = rig.loop, .address = "no port"}, &e));
    assert_int_equal(e.class, ERR_INVALID_ARGUMENT);
    stop();
}

static void test_silence_is_survived_by_keepalive(void **state)
{
    (void)state;
    struct result r, after;
    start();
    (void)ask(&r, "/t.T/Stream");
    turn_until(r.n_messages == 1);
    for (int i = 0; i < 20; i++) { /* ten minutes: both ends ping, no strikes */
        net_loop_skip(rig.loop, 30 * NS_PER_S);
        for (int k = 0; k < 10; k++)
            (void)net_loop_turn(rig.loop);
    }
    assert_int_equal(r.n_done, 0);
    (void)ask(&after, "/t.T/Echo");
    turn_until(after.n_done);
    assert_int_equal(after.status.class, ERR_NONE);
    stop();
}

static void test_an_aged_connection_is_replaced_without_an_error(void **state)
{
    (void)state;
    struct result r, after;
    start();
    (void)ask(&r, "/t.T/Stream");
    turn_until(r.n_messages == 1);
    for (int i = 0; i < 80 && !r.n_done; i++) {
        net_loop_skip(rig.loop, 30 * NS_PER_S);
        for (int k = 0; k < 10; k++)
            (void)net_loop_turn(rig.loop);
    }
    assert_int_equal(r.n_done, 1);
    assert_int_equal(r.status.class, ERR_NONE);
    (void)ask(&after, "/t.T/Echo");
    turn_until(after.n_done);
    assert_int_equal(after.status.class, ERR_NONE);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_call_goes_there_and_back),
        cmocka_unit_test(test_a_unix_socket_works_alike),
        cmocka_unit_test(test_clients_of_a_pool_work_alike_and_outlive_it),
        cmocka_unit_test(test_many_calls_share_one_connection),
        cmocka_unit_test(test_an_answer_larger_than_every_buffer_arrives),
        cmocka_unit_test(test_the_servers_deadline_fires_without_traffic),
        cmocka_unit_test(test_cancel_reaches_the_server),
        cmocka_unit_test(test_drain_ends_streams_with_ok_and_closes),
        cmocka_unit_test(test_a_freed_listener_ends_calls_on_both_sides),
        cmocka_unit_test(test_a_handler_may_free_its_client),
        cmocka_unit_test(test_free_ends_open_calls_before_it_returns),
        cmocka_unit_test(test_a_client_may_go_while_it_dials),
        cmocka_unit_test(test_a_connection_without_calls_has_its_deadlines),
        cmocka_unit_test(test_a_peer_ahead_of_its_turns_is_held_back_and_served),
        cmocka_unit_test(test_a_handler_may_free_its_listener_in_any_turn),
        cmocka_unit_test(test_nobody_there_is_unavailable),
        cmocka_unit_test(test_a_malformed_address_is_refused),
        cmocka_unit_test(test_silence_is_survived_by_keepalive),
        cmocka_unit_test(test_an_aged_connection_is_replaced_without_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
