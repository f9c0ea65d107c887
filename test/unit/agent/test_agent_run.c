/* The whole agent in this process, without a driver: a script runs on its loop, asks it as a client and sends it
 * signals. Drain, second signal, reload, listeners and log, without a real second passing. */
#include "agent/agent.h"

#include "log/capture.h"
#include "proto/proto.h"
#include "rpc/rpc.h"

#include <signal.h>
#include <unistd.h>

#define SCALER "/externalscaler.ExternalScaler/"
#define HEALTH "/grpc.health.v1.Health/"

struct reply {
    size_t n_messages;
    uint8_t last[256]; /* message */
    size_t last_len;
    bool is_done;
    struct err status;
};

/* One step of a script; done when it returns true. Asked again each millisecond until then. */
struct script {
    bool (*const *steps)(struct script *);
    size_t at;
    struct agent_config config;
    struct net_loop *loop;
    struct net_timer *timer;
    struct rpc_client *client;
    char address[128];
    struct reply watch, stream, call;
    int n_reloads, n_asked;
    bool is_reload_refused, has_stopped;
    double target; /* of the metric "m", as the next reload has it */
    int exit_code;
    int64_t give_up_ns; /* of the real clock */
    char *log;
};

static void step(void *context)
{
    struct script *s = context;
    if (s->steps[s->at] && s->steps[s->at](s))
        s->at++;
    if (time_mono_ns() > s->give_up_ns)
        net_loop_stop(s->loop); /* a step that does not come: play tells which */
}

static void started(void *context, struct net_loop *loop, const char *address)
{
    struct script *s = context;
    struct err e;
    s->loop = loop;
    (void)snprintf(s->address, sizeof(s->address), "%s", address);
    s->client =
        rpc_client_new(&(struct rpc_client_config){.loop = loop, .address = address, .authority = "localhost"}, &e);
    s->timer = net_timer_new(loop, step, s);
    net_timer_start(s->timer, 0, NS_PER_MS);
}

static void stopping(void *context)
{
    struct script *s = context;
    s->has_stopped = true;
    net_timer_free(s->timer);
    rpc_client_free(s->client);
}

static struct trigger_default *one_default(double target)
{
    struct trigger_default *d = mem_new(struct trigger_default);
    *d = (struct trigger_default){.name = "m", .has_target = true, .target = target};
    return d;
}

static int reload(void *context, struct daemon_reloadable *ret, struct err *e)
{
    struct script *s = context;
    s->n_reloads++;
    if (s->is_reload_refused)
        return err_set(e, ERR_INVALID_ARGUMENT, "agent.yaml:3: no such key");
    *ret = (struct daemon_reloadable){
        .log_level = LOG_INFO, .log_format = LOG_TEXT, .defaults = one_default(s->target), .n_defaults = 1};
    return 0;
}

/* Run the script on an agent; its log is s->log, the caller's. */
static void play(struct script *s, bool (*const *steps)(struct script *))
{
    s->steps = steps;
    s->config.gpu.library_path = "/nonexistent/libnvidia-ml.so.1";
    s->config.daemon.limits = net_limits_default;
    s->config.daemon.node_name = "gpu-7";
    s->config.daemon.version = s->config.daemon.build = "1";
    if (s->config.daemon.n_listen == 0)
        s->config.daemon.listen[s->config.daemon.n_listen++] = "127.0.0.1:0";
    if (s->config.daemon.drain_ns == 0)
        s->config.daemon.drain_ns = 20 * NS_PER_S;
    s->config.daemon.reloadable.defaults = one_default(80);
    s->config.daemon.reloadable.n_defaults = 1;
    s->config.daemon.reload = reload;
    s->config.started = started;
    s->config.stopping = stopping;
    s->config.daemon.reload_context = s->config.started_context = s;
    s->give_up_ns = time_mono_ns() + 60 * NS_PER_S;
    struct capture c = capture_begin();
    s->exit_code = agent_run(&s->config);
    s->log = capture_end(&c);
    if (steps[s->at])
        fail_msg("ended in step %zu\n%s", s->at, s->log);
}
#define PLAY(s, ...) play(&(s), (bool (*const[])(struct script *)){__VA_ARGS__, NULL})

static void fini(struct script *s)
{
    free(s->log);
}
#define SCRIPT(s)                                                                                                      \
    __attribute__((cleanup(fini))) struct script s = {.config = {.daemon = {.reloadable = {.log_level = LOG_INFO}}}}

/* ---- calls ---- */

static void on_message(void *context, struct str message)
{
    struct reply *r = context;
    r->n_messages++;
    r->last_len = message.len < sizeof(r->last) ? message.len : sizeof(r->last);
    memcpy(r->last, message.ptr, r->last_len);
}

static void on_done(void *context, const struct err *status)
{
    struct reply *r = context;
    r->is_done = true;
    r->status = *status;
}

static void begin(struct script *s, const char *path, const ProtobufCMessage *request, struct reply *reply)
{
    uint8_t bytes[512];
    size_t len = request ? protobuf_c_message_pack(request, bytes) : 0;
    *reply = (struct reply){.n_messages = 0};
    (void)rpc_client_start(
        s->client,
        &(struct rpc_client_call_config){.path = path, .message = on_message, .done = on_done, .context = reply}, bytes,
        len);
}

static void begin_scaler(struct script *s, const char *path, const char *key, const char *value, struct reply *reply)
{
    Externalscaler__ScaledObjectRef ref;
    Externalscaler__ScaledObjectRef__ScalerMetadataEntry entry, *rows[] = {&entry};
    externalscaler__scaled_object_ref__init(&ref);
    externalscaler__scaled_object_ref__scaler_metadata_entry__init(&entry);
    entry.key = (char *)(uintptr_t)key;
    entry.value = (char *)(uintptr_t)value;
    ref.name = (char *)(uintptr_t) "llm";
    ref.namespace_ = (char *)(uintptr_t) "ml";
    ref.n_scalermetadata = 1;
    ref.scalermetadata = rows;
    begin(s, path, &ref.base, reply);
}

static int health_of(const struct reply *r)
{
    Grpc__Health__V1__HealthCheckResponse *m =
        grpc__health__v1__health_check_response__unpack(NULL, r->last_len, r->last);
    int status = m ? (int)m->status : -1;
    if (m)
        grpc__health__v1__health_check_response__free_unpacked(m, NULL);
    return status;
}

static double target_of(const struct reply *r)
{
    Externalscaler__GetMetricSpecResponse *m =
        externalscaler__get_metric_spec_response__unpack(NULL, r->last_len, r->last);
    double target = m && m->n_metricspecs ? m->metricspecs[0]->targetsizefloat : -1;
    if (m)
        externalscaler__get_metric_spec_response__free_unpacked(m, NULL);
    return target;
}

/* ---- steps ---- */

static bool open_watch(struct script *s)
{
    begin(s, HEALTH "Watch", NULL, &s->watch);
    return true;
}

static bool watch_serves(struct script *s)
{
    return s->watch.n_messages == 1 && health_of(&s->watch) == 1;
}

static bool watch_serves_no_longer(struct script *s)
{
    return s->watch.n_messages == 2 && health_of(&s->watch) == 2;
}

static bool open_push(struct script *s)
{
    begin_scaler(s, SCALER "StreamIsActive", "metricName", "m", &s->stream);
    return true;
}

static bool open_spec(struct script *s)
{
    begin_scaler(s, SCALER "StreamMetricSpec", "metricName", "m", &s->stream);
    return true;
}

static bool has_first_spec(struct script *s)
{
    return s->stream.n_messages == 1 && target_of(&s->stream) > 79;
}

static bool has_second_spec(struct script *s)
{
    return s->stream.n_messages == 2 && target_of(&s->stream) < 70;
}

static bool check_begins(struct script *s)
{
    begin(s, HEALTH "Check", NULL, &s->call);
    return true;
}

static bool check_serves(struct script *s)
{
    return s->call.is_done && s->call.status.class == ERR_NONE && health_of(&s->call) == 1;
}

static bool check_does_not_serve(struct script *s)
{
    return s->call.is_done && s->call.status.class == ERR_NONE && health_of(&s->call) == 2;
}

static bool terminate(struct script *s)
{
    (void)s;
    return kill(getpid(), SIGTERM) == 0;
}

static bool hang_up(struct script *s)
{
    s->target = 60;
    return kill(getpid(), SIGHUP) == 0;
}

static bool reload_came(struct script *s)
{
    return s->n_reloads == 1;
}

static bool delay_passes(struct script *s)
{
    net_loop_skip(s->loop, s->config.daemon.shutdown_delay_ns);
    return true;
}

/* ---- tests ---- */

static void test_sigterm_says_so_ends_streams_with_ok_and_exits_0(void **state)
{
    (void)state;
    SCRIPT(s);
    PLAY(s, open_watch, open_push, watch_serves, terminate);
    assert_int_equal(s.exit_code, 0);
    assert_true(s.has_stopped);
    assert_int_equal(s.watch.n_messages, 2);
    assert_int_equal(health_of(&s.watch), 2); /* NOT_SERVING */
    assert_true(s.watch.is_done && s.stream.is_done);
    assert_int_equal(s.watch.status.class, ERR_NONE);
    assert_int_equal(s.stream.status.class, ERR_NONE);
    assert_int_equal(s.stream.n_messages, 0);
    assert_int_equal(count(s.log, "msg=draining"), 1);
    assert_int_equal(count(s.log, "msg=stopped exit_code=0"), 1);
}

static void test_during_the_delay_it_serves_as_not_ready(void **state)
{
    (void)state;
    SCRIPT(s);
    s.config.daemon.shutdown_delay_ns = 100 * NS_PER_S;
    PLAY(s, open_watch, watch_serves, terminate, watch_serves_no_longer, check_begins, check_does_not_serve, open_spec,
         has_first_spec, delay_passes);
    assert_int_equal(s.exit_code, 0);
    assert_int_equal(s.watch.status.class, ERR_NONE);
    assert_int_equal(s.stream.status.class, ERR_NONE);
}

static void test_a_second_signal_ends_it_at_once(void **state)
{
    (void)state;
    SCRIPT(s);
    s.config.daemon.shutdown_delay_ns = 1000 * NS_PER_S;
    PLAY(s, open_watch, watch_serves, terminate, watch_serves_no_longer, terminate);
    assert_int_equal(s.exit_code, 0);
    assert_int_equal(count(s.log, "second signal: ends at once"), 1);
    assert_int_equal(s.watch.status.class, ERR_CANCELLED); /* the client's own end: nobody else ended it */
}

static void test_sighup_takes_a_new_configuration_to_open_streams(void **state)
{
    (void)state;
    SCRIPT(s);
    PLAY(s, open_spec, has_first_spec, hang_up, has_second_spec, terminate);
    assert_int_equal(s.exit_code, 0);
    assert_int_equal(s.stream.n_messages, 2);
    assert_int_equal(count(s.log, "msg=reloaded metrics=1 tls=false"), 1);
}

static void test_a_refused_reload_keeps_the_old_configuration(void **state)
{
    (void)state;
    SCRIPT(s);
    s.is_reload_refused = true;
    PLAY(s, open_spec, has_first_spec, hang_up, reload_came, check_begins, check_serves, terminate);
    assert_int_equal(s.exit_code, 0);
    assert_int_equal(s.stream.n_messages, 1);
    assert_int_equal(count(s.log, "level=error component=agent msg=\"reload failed; the old configuration stays\" "
                                  "error=\"agent.yaml:3: no such key\""),
                     1);
}

static void test_sighup_while_it_drains_does_no_harm(void **state)
{
    (void)state;
    SCRIPT(s);
    s.config.daemon.shutdown_delay_ns = 100 * NS_PER_S;
    PLAY(s, open_spec, has_first_spec, open_watch, watch_serves, terminate, watch_serves_no_longer, hang_up,
         has_second_spec, delay_passes);
    assert_int_equal(s.exit_code, 0);
    assert_int_equal(s.stream.status.class, ERR_NONE);
}

static void test_unix_sockets_alone_are_enough(void **state)
{
    (void)state;
    char address[64];
    (void)snprintf(address, sizeof(address), "unix:/tmp/test_agent_run.%d", (int)getpid());
    SCRIPT(s);
    s.config.daemon.listen[s.config.daemon.n_listen++] = address;
    PLAY(s, check_begins, check_serves, terminate);
    assert_int_equal(s.exit_code, 0);
    assert_string_equal(s.address, address);
    assert_int_equal(access(address + strlen("unix:"), F_OK), -1); /* it takes its socket away */
    assert_int_equal(count(s.log, "msg=listening"), 1);
}

static void test_every_listener_is_drained(void **state)
{
    (void)state;
    SCRIPT(s);
    s.config.daemon.listen[s.config.daemon.n_listen++] = "127.0.0.1:0";
    s.config.daemon.listen[s.config.daemon.n_listen++] = "127.0.0.1:0";
    s.config.daemon.metrics_listen = "127.0.0.1:0";
    s.config.daemon.probe_listen = "127.0.0.1:0";
    PLAY(s, open_watch, watch_serves, terminate);
    assert_int_equal(s.exit_code, 0);
    assert_int_equal(s.watch.status.class, ERR_NONE);
    assert_int_equal(count(s.log, "msg=listening"), 4);
}

static void test_an_address_that_cannot_be_had_is_exit_1_with_the_reason(void **state)
{
    (void)state;
    SCRIPT(s);
    s.config.daemon.listen[s.config.daemon.n_listen++] = "127.0.0.1:0";
    s.config.daemon.metrics_listen = "192.0.2.1:9090"; /* TEST-NET-1: nobody's */
    play(&s, (bool (*const[])(struct script *)){NULL});
    assert_int_equal(s.exit_code, 1);
    assert_false(s.has_stopped); /* nor started */
    assert_int_equal(count(s.log, "msg=\"cannot start\""), 1);
    assert_int_equal(count(s.log, "192.0.2.1:9090"), 1);
}

/* ---- the log of questions ---- */

static bool ask_active(struct script *s)
{
    begin_scaler(s, SCALER "IsActive", "metricName", "m", &s->call);
    return true;
}

/* The reference in a message of its own, as GetMetrics has it. */
static bool ask_value(struct script *s)
{
    static const uint8_t request[] = "\x0a\x09\x0a\x03llm\x12\x02ml";
    if (!s->call.is_done)
        return false;
    s->call = (struct reply){.n_messages = 0};
    (void)rpc_client_start(
        s->client,
        &(struct rpc_client_call_config){
            .path = SCALER "GetMetrics", .message = on_message, .done = on_done, .context = &s->call},
        request, sizeof(request) - 1);
    return true;
}

static bool is_answered(struct script *s)
{
    return s->call.is_done;
}

static void test_debug_shows_unknown_where_nothing_is_known(void **state)
{
    (void)state;
    SCRIPT(s);
    s.config.daemon.reloadable.log_level = LOG_DEBUG;
    PLAY(s, ask_active, ask_value, is_answered, terminate);
    assert_int_equal(count(s.log, "msg=evaluated method=IsActive namespace=ml name=llm "), 1);
    assert_int_equal(count(s.log, " active=unknown "), 1);
    assert_int_equal(count(s.log, "msg=evaluated method=GetMetrics namespace=ml name=llm "), 1);
    assert_int_equal(count(s.log, " value=NaN "), 1);
}

enum { REFUSALS = 20 };

static bool refused(struct script *s)
{
    if (s->n_asked > 0 && !s->call.is_done)
        return false;
    if (s->n_asked == REFUSALS)
        return true;
    s->n_asked++;
    begin_scaler(s, SCALER "IsActive", "metricName", "a\nts=1 level=error msg=\"forged\x1b[2J\xC2\x9B\x32J\"",
                 &s->call);
    return false;
}

static bool a_second_passes(struct script *s)
{
    net_loop_skip(s->loop, NS_PER_S);
    s->n_asked--;
    return true;
}

static void test_refusals_are_logged_once_a_second_and_cannot_forge_lines(void **state)
{
    (void)state;
    SCRIPT(s);
    PLAY(s, refused, a_second_passes, refused, terminate);
    size_t n = count(s.log, "component=trigger msg=refused namespace=ml name=llm peer=127.0.0.1:");
    assert_in_range(n, 2, REFUSALS / 2); /* 2, but for a machine that stood still in between */
    assert_int_equal(count(s.log, "others_not_logged="), n);
    assert_true(n > 2 || count(s.log, "others_not_logged=19\n") == 1);
    assert_int_equal(count(s.log, "\nts=1 "), 0);
    assert_int_equal(count(s.log, "\n"), count(s.log, "ts=20"));
    for (const char *c = s.log; *c; c++)
        assert_true(*c == '\n' || (unsigned char)*c >= ' ');
    assert_int_equal(count(s.log, "\xC2\x9B"), 0); /* another way to say ESC [ */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sigterm_says_so_ends_streams_with_ok_and_exits_0),
        cmocka_unit_test(test_during_the_delay_it_serves_as_not_ready),
        cmocka_unit_test(test_a_second_signal_ends_it_at_once),
        cmocka_unit_test(test_sighup_takes_a_new_configuration_to_open_streams),
        cmocka_unit_test(test_a_refused_reload_keeps_the_old_configuration),
        cmocka_unit_test(test_sighup_while_it_drains_does_no_harm),
        cmocka_unit_test(test_unix_sockets_alone_are_enough),
        cmocka_unit_test(test_every_listener_is_drained),
        cmocka_unit_test(test_an_address_that_cannot_be_had_is_exit_1_with_the_reason),
        cmocka_unit_test(test_debug_shows_unknown_where_nothing_is_known),
        cmocka_unit_test(test_refusals_are_logged_once_a_second_and_cannot_forge_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
