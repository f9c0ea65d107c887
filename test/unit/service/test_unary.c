/* Calls whose answer waits until something was read: when they wait, what they answer then, and how they end when the
 * peer does not wait for it. */
#include "rig.h"

enum { WAITS_MAX = 4 };

struct service_wait {
    void (*ready)(void *context);
    void *context;
    bool is_open;
};

/* An evaluator of which the test decides when it has read what it needs. */
struct reader {
    struct service_wait waits[WAITS_MAX];
    size_t n_prepared, n_answered, n_cancelled;
    bool has_nothing_to_wait_for;
    struct err error; /* instead of an answer */
    const struct trigger *asked;
};

static struct service_wait *prepare(void *context, const struct service_question *question,
                                    void (*ready)(void *ready_context), void *ready_context)
{
    struct reader *reader = (struct reader *)context;
    reader->asked = question->trigger;
    size_t at = reader->n_prepared++;
    assert_true(at < WAITS_MAX);
    reader->waits[at] = (struct service_wait){ready, ready_context, !reader->has_nothing_to_wait_for};
    return reader->has_nothing_to_wait_for ? NULL : &reader->waits[at];
}

static void cancel(void *context, struct service_wait *wait)
{
    assert_true(wait->is_open);
    wait->is_open = false;
    ((struct reader *)context)->n_cancelled++;
}

static void answer(void *context, const struct service_question *question, struct arena *arena,
                   struct service_answer *ret)
{
    struct reader *reader = (struct reader *)context;
    (void)arena;
    assert_string_equal(question->ns, "ml"); /* what was asked is still there */
    assert_string_equal(question->name, "llm");
    assert_true(question->peer[0] && question->trigger->target > 0);
    reader->n_answered++;
    *ret = (struct service_answer){
        .value = 42, .value_error = reader->error, .is_active = true, .active_error = reader->error};
}

static void explain(void *context, const struct service_question *question, const struct service_answer *ret,
                    struct buf *text, struct json *json)
{
    (void)context;
    (void)question;
    (void)ret;
    (void)buf_append_str(text, "because");
    json_object_begin(json);
    json_object_end(json);
}

#define READER_RIG(r, reader)                                                                                          \
    struct reader reader = {.n_prepared = 0};                                                                          \
    struct rig r = {.evaluator = {prepare, cancel, answer, explain, &reader}};                                         \
    NODE_WITH(r.node, 10);                                                                                             \
    rig_start(&r)

static void make_ready(struct reader *reader, size_t at)
{
    assert_true(reader->waits[at].is_open);
    reader->waits[at].is_open = false;
    reader->waits[at].ready(reader->waits[at].context);
}

static struct reply reply, other;

/* A call to this method of a ScaledObject; it has arrived and waits when this returns. */
static void begin_waiting(struct rig *r, struct reader *reader, const char *path, struct reply *to)
{
    size_t n = reader->n_prepared;
    bool is_explain = strstr(path, "Explain") != NULL;
    struct ref ref;
    ref_init(&ref, METADATA("targetValue", "7"));
    Kedagpuscaler__V1__ExplainRequest asked;
    kedagpuscaler__v1__explain_request__init(&asked);
    asked.scaledobjectref = &ref.message;
    rig_begin(r, path,
              is_explain                   ? packed(&asked.base)
              : strstr(path, "GetMetrics") ? packed_question("m", METADATA("targetValue", "7"))
                                           : packed(&ref.message.base),
              to);
    TURN_UNTIL(r, reader->n_prepared == n + 1);
}

static const char *const waiting_methods[] = {SCALER "GetMetrics", SCALER "IsActive", "/kedagpuscaler.v1.Node/Explain"};

/* ---- waiting ---- */

static void test_answer_follows_what_it_waits_for(void **state)
{
    (void)state;
    READER_RIG(r, reader);
    for (size_t i = 0; i < ARRAY_LEN(waiting_methods); i++) {
        begin_waiting(&r, &reader, waiting_methods[i], &reply);
        rig_settle(&r); /* others are answered meanwhile */
        assert_false(reply.is_done);
        assert_int_equal(reader.n_answered, i);
        make_ready(&reader, i);
        TURN_UNTIL(&r, reply.is_done);
        assert_ok(&reply);
        assert_int_equal(reply.n_messages, 1);
        assert_int_equal(reader.n_answered, i + 1);
    }
    assert_int_equal(reader.n_cancelled, 0);
    assert_int_equal(r.n_observed, ARRAY_LEN(waiting_methods));
    rig_stop(&r);
    assert_int_equal(reader.n_cancelled, 0);
}

static void test_answers_after_waiting_are_those_of_any_call(void **state)
{
    (void)state;
    READER_RIG(r, reader);
    begin_waiting(&r, &reader, SCALER "GetMetrics", &reply);
    make_ready(&reader, 0);
    TURN_UNTIL(&r, reply.is_done);
    assert_double_same(read_value(&reply).real, 42);
    assert_string_equal(read_value(&reply).name, "m");
    assert_double_same(METRIC(&r, "keda_gpu_scaler_metric_value", "ml", "llm", "keda_gpu_metric"), 42);

    (void)err_set(&reader.error, ERR_UNAVAILABLE, "the page did not answer");
    begin_waiting(&r, &reader, SCALER "IsActive", &reply);
    make_ready(&reader, 1);
    TURN_UNTIL(&r, reply.is_done);
    assert_failed(&reply, ERR_UNAVAILABLE, "the page did not answer");
    assert_double_same(METRIC(&r, "keda_gpu_scaler_metric_errors", "ml", "llm", "keda_gpu_metric"), 1);
    rig_stop(&r);
}

static void test_calls_that_wait_do_not_wait_for_each_other(void **state)
{
    (void)state;
    READER_RIG(r, reader);
    begin_waiting(&r, &reader, SCALER "GetMetrics", &reply);
    begin_waiting(&r, &reader, SCALER "IsActive", &other);
    make_ready(&reader, 1);
    TURN_UNTIL(&r, other.is_done);
    assert_ok(&other);
    assert_false(reply.is_done);
    make_ready(&reader, 0);
    TURN_UNTIL(&r, reply.is_done);
    assert_ok(&reply);
    rig_stop(&r);
}

static void test_nothing_to_wait_for_is_answered_at_once(void **state)
{
    (void)state;
    READER_RIG(r, reader);
    reader.has_nothing_to_wait_for = true;
    rig_call(&r, SCALER "GetMetrics", packed_question("m", METADATA()), &reply);
    assert_ok(&reply);
    rig_call(&r, SCALER "IsActive", packed_ref(METADATA()), &reply);
    assert_ok(&reply);
    assert_int_equal(reader.n_prepared, 2);
    assert_int_equal(reader.n_answered, 2);
    rig_stop(&r);
    assert_int_equal(reader.n_cancelled, 0);
}

static void test_specs_streams_and_refusals_never_wait(void **state)
{
    (void)state;
    READER_RIG(r, reader);
    rig_call(&r, SCALER "GetMetricSpec", packed_ref(METADATA("targetValue", "7")), &reply);
    assert_ok(&reply);
    assert_int_equal(reader.n_answered, 0);
    rig_call(&r, SCALER "GetMetrics", packed_question("m", METADATA("targetValue", "x")), &reply);
    assert_failed(&reply, ERR_INVALID_ARGUMENT, "targetValue");
    rig_begin(&r, SCALER "StreamIsActive", packed_ref(METADATA("targetValue", "7")), &reply);
    TURN_UNTIL(&r, reply.n_messages == 1);
    assert_true(read_active(&reply, 0));
    node_wait(&r.node, 1);
    service_tick(r.service);
    assert_int_equal(reader.n_answered, 2); /* it looks at what is there */
    assert_int_equal(reader.n_prepared, 0);
    rig_cancel(&r, &reply);
    rig_stop(&r);
}

/* ---- ends ---- */

static void test_cancelled_call_stops_waiting(void **state)
{
    (void)state;
    READER_RIG(r, reader);
    for (size_t i = 0; i < ARRAY_LEN(waiting_methods); i++) {
        begin_waiting(&r, &reader, waiting_methods[i], &reply);
        rig_cancel(&r, &reply);
        assert_int_equal(reader.n_cancelled, i + 1);
    }
    assert_int_equal(reader.n_answered, 0);
    rig_stop(&r);
}

static void test_call_stops_waiting_when_its_connection_dies(void **state)
{
    (void)state;
    READER_RIG(r, reader);
    begin_waiting(&r, &reader, SCALER "GetMetrics", &reply);
    begin_waiting(&r, &reader, SCALER "IsActive", &other);
    rpc_client_free(r.client);
    r.client = NULL;
    TURN_UNTIL(&r, reader.n_cancelled == 2);
    assert_int_equal(reader.n_answered, 0);
    rig_stop(&r);
}

static void test_deadline_of_the_call_holds_while_it_waits(void **state)
{
    (void)state;
    READER_RIG(r, reader);
    memset(&reply, 0, sizeof(reply));
    struct str request = packed_ref(METADATA());
    reply.call = rpc_client_start(r.client,
                                  &(struct rpc_client_call_config){.path = SCALER "IsActive",
                                                                   .deadline_ns = 50 * NS_PER_MS,
                                                                   .message = rig_message,
                                                                   .done = rig_done,
                                                                   .context = &reply},
                                  request.ptr, request.len);
    TURN_UNTIL(&r, reply.is_done && reader.n_cancelled == 1);
    assert_failed(&reply, ERR_DEADLINE_EXCEEDED, "");
    assert_int_equal(reader.n_answered, 0);
    rig_stop(&r);
}

static void test_program_ends_while_calls_wait(void **state)
{
    (void)state;
    READER_RIG(r, reader);
    begin_waiting(&r, &reader, SCALER "GetMetrics", &reply);
    begin_waiting(&r, &reader, "/kedagpuscaler.v1.Node/Explain", &other);
    rig_stop(&r);
    assert_int_equal(reader.n_cancelled, 2);
    assert_int_equal(reader.n_answered, 0);
}

static void note_drained(void *context)
{
    *(bool *)context = true;
}

static void test_drain_lets_waiting_calls_finish(void **state)
{
    (void)state;
    READER_RIG(r, reader);
    begin_waiting(&r, &reader, SCALER "GetMetrics", &reply);
    service_drain(r.service);
    bool is_drained = false;
    net_listener_drain(r.listener, 10 * NS_PER_S, note_drained, &is_drained);
    for (int i = 0; i < 3; i++)
        (void)net_loop_turn(r.loop);
    assert_false(reply.is_done || is_drained);
    make_ready(&reader, 0);
    TURN_UNTIL(&r, reply.is_done && is_drained);
    assert_ok(&reply);
    rig_stop(&r);
}

/* ---- pages that triggers name, beside snapshots ---- */

static struct service_wait page_wait;
static struct signals_feed feed = {.url = "http://llm.ml:8000/metrics", .error = "", .interval_ns = NS_PER_S};
static size_t n_pages_prepared, n_pages_asked;
static bool has_no_page;

static struct service_wait *prepare_page(void *context, const struct service_question *question,
                                         void (*on_ready)(void *ready_context), void *ready_context)
{
    assert_non_null(((struct rig *)context)->loop);
    assert_string_equal(trigger_endpoint(question->trigger), "http://llm.ml:8000/metrics");
    n_pages_prepared++;
    page_wait = (struct service_wait){on_ready, ready_context, true};
    return &page_wait;
}

static void cancel_page(void *context, struct service_wait *wait)
{
    assert_non_null(((struct rig *)context)->loop);
    assert_true(wait->is_open);
    wait->is_open = false;
}

static const struct signals_feed *page_of(void *context, const struct service_question *question, const char **ret_why)
{
    assert_non_null(((struct rig *)context)->loop);
    assert_string_equal(question->ns, "ml");
    n_pages_asked++;
    *ret_why = "there is no room for it";
    return has_no_page ? NULL : &feed;
}

/* The page says now that so many requests wait. */
static void read_page(struct signals_history *history, const struct rig *r, const char *text)
{
    struct err e;
    struct signals_reader *reader = signals_reader_new(NULL);
    signals_reader_begin(reader);
    assert_int_equal(signals_reader_feed(reader, text, strlen(text), &e), 0);
    signals_history_add(history, signals_reader_end(reader, &e), r->node.now_ns);
    signals_reader_free(reader);
}

#define WAITING_PAGE "metricType", "requests_waiting", "targetValue", "5", "vllmEndpoint", "http://llm.ml:8000/metrics"

static void test_source_gives_the_pages_that_triggers_name(void **state)
{
    (void)state;
    struct rig r = {.pages = {.prepare = prepare_page, .cancel = cancel_page, .page = page_of}};
    NODE_WITH(r.node, 10);
    rig_start(&r);
    struct signals_history *history = signals_history_new();
    feed.history = history;
    rig_call(&r, SCALER "GetMetrics", packed_question("m", METADATA()), &reply); /* GPUs: at once */
    assert_double_same(read_value(&reply).real, 10);
    assert_int_equal(n_pages_prepared + n_pages_asked, 0);

    rig_begin(&r, SCALER "GetMetrics", packed_question("m", METADATA(WAITING_PAGE)), &reply);
    TURN_UNTIL(&r, n_pages_prepared == 1);
    read_page(history, &r, "vllm:num_requests_waiting 14\nvllm:num_requests_running 0\n");
    page_wait.is_open = false;
    page_wait.ready(page_wait.context);
    TURN_UNTIL(&r, reply.is_done);
    assert_double_same(read_value(&reply).real, 14);

    has_no_page = true;
    rig_begin(&r, SCALER "IsActive", packed_ref(METADATA(WAITING_PAGE)), &reply);
    TURN_UNTIL(&r, n_pages_prepared == 2);
    page_wait.is_open = false;
    page_wait.ready(page_wait.context);
    TURN_UNTIL(&r, reply.is_done);
    assert_failed(&reply, ERR_UNAVAILABLE, "there is no room for it");
    has_no_page = false;

    rig_begin(&r, SCALER "IsActive", packed_ref(METADATA(WAITING_PAGE)), &reply);
    TURN_UNTIL(&r, n_pages_prepared == 3);
    rig_cancel(&r, &reply);
    assert_false(page_wait.is_open);
    rig_stop(&r);
    signals_history_free(history);
}

static void test_stream_of_a_page_wakes_by_measurement_only(void **state)
{
    (void)state;
    struct rig r = {.pages = {.page = page_of}};
    NODE_WITH(r.node, 10);
    rig_start(&r);
    struct signals_history *history = signals_history_new();
    feed.history = history;
    rig_begin(&r, SCALER "StreamIsActive", packed_ref(METADATA(WAITING_PAGE)), &reply);
    rig_settle(&r); /* never read: nothing is said */
    assert_int_equal(reply.n_messages, 0);
    read_page(history, &r, "vllm:num_requests_waiting 0\nvllm:num_requests_running 0\n");
    node_wait(&r.node, 1);
    service_tick(r.service);
    rig_settle(&r);
    assert_int_equal(reply.n_messages, 0);
    read_page(history, &r, "vllm:num_requests_waiting 0\nvllm:num_requests_running 2\n");
    node_wait(&r.node, 1);
    service_tick(r.service);
    TURN_UNTIL(&r, reply.n_messages == 1);
    assert_true(read_active(&reply, 0));
    rig_cancel(&r, &reply);
    rig_stop(&r);
    signals_history_free(history);
}

static void test_program_without_pages_says_so(void **state)
{
    (void)state;
    RIG_WITH(r, 10);
    rig_call(&r, SCALER "GetMetrics", packed_question("m", METADATA(WAITING_PAGE)), &reply);
    assert_failed(&reply, ERR_FAILED_PRECONDITION, "which this program does not fetch");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answer_follows_what_it_waits_for),
        cmocka_unit_test(test_answers_after_waiting_are_those_of_any_call),
        cmocka_unit_test(test_calls_that_wait_do_not_wait_for_each_other),
        cmocka_unit_test(test_nothing_to_wait_for_is_answered_at_once),
        cmocka_unit_test(test_specs_streams_and_refusals_never_wait),
        cmocka_unit_test(test_cancelled_call_stops_waiting),
        cmocka_unit_test(test_call_stops_waiting_when_its_connection_dies),
        cmocka_unit_test(test_deadline_of_the_call_holds_while_it_waits),
        cmocka_unit_test(test_program_ends_while_calls_wait),
        cmocka_unit_test(test_drain_lets_waiting_calls_finish),
        cmocka_unit_test(test_source_gives_the_pages_that_triggers_name),
        cmocka_unit_test(test_stream_of_a_page_wakes_by_measurement_only),
        cmocka_unit_test(test_program_without_pages_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
