/* Server reflection: each kind of question under both names, imports, and streams that ask for much. Then Explain. */
#include "rig.h"

#include "rpc/client.h"

static struct reply reply;

static const char *const paths[] = {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                                    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"};

typedef Grpc__Reflection__V1__ServerReflectionRequest__MessageRequestCase question_kind;
#define ASKS(kind)  GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_##kind
#define GIVES(kind) GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_##kind

static struct str packed_asking(question_kind kind, const char *text)
{
    Grpc__Reflection__V1__ServerReflectionRequest request;
    Grpc__Reflection__V1__ExtensionRequest extension;
    grpc__reflection__v1__server_reflection_request__init(&request);
    grpc__reflection__v1__extension_request__init(&extension);
    request.host = (char *)(uintptr_t) "node";
    request.message_request_case = kind;
    if (kind == ASKS(FILE_CONTAINING_EXTENSION)) {
        extension.containing_type = (char *)(uintptr_t)text;
        request.file_containing_extension = &extension;
    } else {
        request.list_services = (char *)(uintptr_t)text; /* all others are texts in one place */
    }
    return packed(&request.base);
}

static Grpc__Reflection__V1__ServerReflectionResponse *read_answer(size_t at)
{
    assert_true(at < reply.n_messages);
    Grpc__Reflection__V1__ServerReflectionResponse *m = grpc__reflection__v1__server_reflection_response__unpack(
        NULL, reply.messages[at].len, reply.messages[at].bytes);
    assert_non_null(m);
    return m;
}

static void forget(Grpc__Reflection__V1__ServerReflectionResponse **m)
{
    grpc__reflection__v1__server_reflection_response__free_unpacked(*m, NULL);
}
#define ANSWER __attribute__((cleanup(forget))) Grpc__Reflection__V1__ServerReflectionResponse *

static void ask_reflection(struct rig *r, const char *path, question_kind kind, const char *text)
{
    rig_call(r, path, packed_asking(kind, text), &reply);
    assert_ok(&reply);
    assert_int_equal(reply.n_messages, 1);
}

/* Does a file descriptor in the answer begin with this name (field 1)? */
static bool has_file(const Grpc__Reflection__V1__ServerReflectionResponse *m, const char *name)
{
    for (size_t i = 0; i < m->file_descriptor_response->n_file_descriptor_proto; i++) {
        ProtobufCBinaryData file = m->file_descriptor_response->file_descriptor_proto[i];
        if (file.len > 2 + strlen(name) && file.data[1] == strlen(name) &&
            memcmp(file.data + 2, name, strlen(name)) == 0)
            return true;
    }
    return false;
}

static void test_services_are_listed_under_both_names(void **state)
{
    (void)state;
    static const char *const services[] = {"externalscaler.ExternalScaler",
                                           "grpc.health.v1.Health",
                                           "kedagpuscaler.v1.Node",
                                           "kedagpuscaler.fleet.v1.Fleet",
                                           "grpc.reflection.v1.ServerReflection",
                                           "grpc.reflection.v1alpha.ServerReflection"};
    RIG_WITH(r);
    for (size_t p = 0; p < ARRAY_LEN(paths); p++) {
        ask_reflection(&r, paths[p], ASKS(LIST_SERVICES), "*");
        ANSWER m = read_answer(0);
        assert_int_equal(m->message_response_case, GIVES(LIST_SERVICES_RESPONSE));
        assert_int_equal(m->list_services_response->n_service, ARRAY_LEN(services));
        for (size_t i = 0; i < ARRAY_LEN(services); i++) {
            size_t n = 0;
            for (size_t k = 0; k < m->list_services_response->n_service; k++)
                n += strcmp(m->list_services_response->service[k]->name, services[i]) == 0;
            assert_int_equal(n, 1);
        }
    }
}

static void test_files_come_with_what_they_import(void **state)
{
    (void)state;
    static const struct {
        question_kind kind;
        const char *text, *files[2];
    } rows[] = {
        {ASKS(FILE_BY_FILENAME), "externalscaler.proto", {"externalscaler.proto"}},
        {ASKS(FILE_BY_FILENAME), "node.proto", {"node.proto", "externalscaler.proto"}},
        {ASKS(FILE_CONTAINING_SYMBOL), "externalscaler.ExternalScaler", {"externalscaler.proto"}},
        {ASKS(FILE_CONTAINING_SYMBOL), "externalscaler.ExternalScaler.GetMetrics", {"externalscaler.proto"}},
        {ASKS(FILE_CONTAINING_SYMBOL), "externalscaler.ScaledObjectRef", {"externalscaler.proto"}},
        {ASKS(FILE_CONTAINING_SYMBOL), "externalscaler.ScaledObjectRef.ScalerMetadataEntry", {"externalscaler.proto"}},
        {ASKS(FILE_CONTAINING_SYMBOL), "grpc.health.v1.HealthCheckResponse.ServingStatus", {"health.proto"}},
        {ASKS(FILE_CONTAINING_SYMBOL), "kedagpuscaler.v1.Node", {"node.proto", "externalscaler.proto"}},
        {ASKS(FILE_CONTAINING_SYMBOL), "grpc.reflection.v1alpha.ErrorResponse", {"reflection_v1alpha.proto"}},
    };
    RIG_WITH(r);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        ask_reflection(&r, paths[i % 2], rows[i].kind, rows[i].text);
        ANSWER m = read_answer(0);
        if (m->message_response_case != GIVES(FILE_DESCRIPTOR_RESPONSE))
            fail_msg("no file for %s", rows[i].text);
        assert_int_equal(m->file_descriptor_response->n_file_descriptor_proto, rows[i].files[1] ? 2 : 1);
        for (size_t k = 0; k < 2 && rows[i].files[k]; k++)
            assert_true(has_file(m, rows[i].files[k]));
        assert_string_equal(m->valid_host, "node");
        assert_int_equal(m->original_request->message_request_case, rows[i].kind);
    }
}

static void test_what_is_not_there_is_an_error_inside_the_answer(void **state)
{
    (void)state;
    static const struct {
        question_kind kind;
        const char *text;
    } rows[] = {
        {ASKS(FILE_BY_FILENAME), "nothing.proto"},
        {ASKS(FILE_CONTAINING_SYMBOL), "externalscaler.ExternalScaler.Nothing"},
        {ASKS(FILE_CONTAINING_SYMBOL), ""},
        {ASKS(FILE_CONTAINING_EXTENSION), "externalscaler.ScaledObjectRef"},
        {ASKS(ALL_EXTENSION_NUMBERS_OF_TYPE), "no.Type"},
    };
    RIG_WITH(r);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        ask_reflection(&r, paths[i % 2], rows[i].kind, rows[i].text);
        ANSWER m = read_answer(0);
        assert_int_equal(m->message_response_case, GIVES(ERROR_RESPONSE));
        assert_int_equal(m->error_response->error_code, 5);
        assert_string_equal(m->error_response->error_message, "not found");
    }
}

static void test_a_type_has_no_extensions(void **state)
{
    (void)state;
    RIG_WITH(r);
    ask_reflection(&r, paths[0], ASKS(ALL_EXTENSION_NUMBERS_OF_TYPE), "externalscaler.ScaledObjectRef");
    ANSWER m = read_answer(0);
    assert_int_equal(m->message_response_case, GIVES(ALL_EXTENSION_NUMBERS_RESPONSE));
    assert_string_equal(m->all_extension_numbers_response->base_type_name, "externalscaler.ScaledObjectRef");
    assert_int_equal(m->all_extension_numbers_response->n_extension_number, 0);
}

static void test_questions_that_make_no_sense_end_the_stream(void **state)
{
    (void)state;
    RIG_WITH(r);
    rig_call(&r, paths[0], (struct str){"", 0}, &reply);
    assert_failed(&reply, ERR_INVALID_ARGUMENT, "asks for nothing");
    rig_call(&r, paths[0], (struct str){"\x3a\xff", 2}, &reply);
    assert_failed(&reply, ERR_INTERNAL, "could not be decoded");
}

/* ---- many questions on one stream ---- */

static size_t n_answers;

static void count_answer(void *context, struct str message)
{
    (void)context;
    n_answers += message.len > 0;
}

/* The same question n times on one stream. The client sends one message a call: the others go behind it by hand. */
static void ask_often(struct rig *r, size_t n, question_kind kind, const char *text)
{
    memset(&reply, 0, sizeof(reply));
    n_answers = 0;
    struct str question = packed_asking(kind, text);
    reply.call = rpc_client_start(r->client,
                                  &(struct rpc_client_call_config){
                                      .path = paths[0], .message = count_answer, .done = rig_done, .context = &reply},
                                  question.ptr, question.len);
    reply.call->request.max_bytes = 1 << 20;
    for (size_t i = 1; i < n; i++) {
        uint8_t prefix[RPC_PREFIX_BYTES];
        rpc_prefix_write(prefix, question.len);
        assert_int_equal(buf_append(&reply.call->request, prefix, sizeof(prefix)), 0);
        assert_int_equal(buf_append(&reply.call->request, question.ptr, question.len), 0);
    }
    TURN_UNTIL(r, reply.is_done);
}

static void test_one_stream_may_ask_as_often_as_it_likes(void **state)
{
    (void)state;
    RIG_WITH(r);
    ask_often(&r, 500, ASKS(FILE_CONTAINING_SYMBOL), "no.Symbol");
    assert_ok(&reply);
    assert_int_equal(n_answers, 500);
}

static void test_a_stream_that_asks_faster_than_it_reads_is_ended_not_left_waiting(void **state)
{
    (void)state;
    RIG_WITH(r);
    ask_often(&r, 2000, ASKS(FILE_BY_FILENAME), "node.proto"); /* 2 kB each, 64 kB may wait */
    assert_int_equal(reply.status.class, ERR_RESOURCE_EXHAUSTED);
    assert_contains(reply.status.text, "were not read");
    assert_true(n_answers < 2000);
}

/* ---- Explain ---- */

static void test_explain_tells_people_and_machines_alike(void **state)
{
    (void)state;
    RIG_WITH(r, 50, 70);
    rig_call(&r, "/kedagpuscaler.v1.Node/Explain", packed_question("", METADATA("targetValue", "80")), &reply);
    assert_ok(&reply);
    Kedagpuscaler__V1__ExplainResponse *m =
        kedagpuscaler__v1__explain_response__unpack(NULL, reply.messages[0].len, reply.messages[0].bytes);
    assert_non_null(m);
    assert_contains(m->text, "70");
    assert_contains(m->text, "80");
    assert_true(m->json[0] == '{' && m->json[strlen(m->json) - 1] == '}');
    kedagpuscaler__v1__explain_response__free_unpacked(m, NULL);
    assert_string_equal(r.observed_method, "Explain");
}

static void test_explain_of_a_missing_reading_is_an_answer(void **state)
{
    (void)state;
    RIG_WITH(r, 50);
    node_wait(&r.node, 16 * 60);
    rig_call(&r, "/kedagpuscaler.v1.Node/Explain", packed_question("", METADATA()), &reply);
    assert_ok(&reply);
    Kedagpuscaler__V1__ExplainResponse *m =
        kedagpuscaler__v1__explain_response__unpack(NULL, reply.messages[0].len, reply.messages[0].bytes);
    assert_contains(m->text, "16m");
    kedagpuscaler__v1__explain_response__free_unpacked(m, NULL);
}

static void test_an_explanation_of_many_gpus_shows_some_and_says_how_many_more(void **state)
{
    (void)state;
    enum { GPUS = 900 };
    __attribute__((cleanup(rig_stop))) struct rig r = {.n_observed = 0};
    node_init(&r.node);
    for (int i = 0; i < GPUS; i++) {
        struct snapshot_device d = {.index = i, .gpu_instance = -1, .compute_instance = -1};
        (void)snprintf(d.uuid, sizeof(d.uuid), "GPU-%090d", i);
        (void)snprintf(d.product, sizeof(d.product), "%095d", i);
        snapshot_store_record(r.node.store, snapshot_store_add(r.node.store, &d), SNAPSHOT_UTILIZATION, 50,
                              r.node.now_ns);
    }
    node_publish(&r.node);
    rig_start(&r);
    rig_call(&r, "/kedagpuscaler.v1.Node/Explain", packed_question("", METADATA()), &reply);
    assert_ok(&reply);
    Kedagpuscaler__V1__ExplainResponse *m =
        kedagpuscaler__v1__explain_response__unpack(NULL, reply.messages[0].len, reply.messages[0].bytes);
    char left_out[64];
    (void)snprintf(left_out, sizeof(left_out), "\"inputsLeftOut\":%d", GPUS - TRIGGER_INPUTS_SHOWN);
    assert_contains(m->json, left_out);
    kedagpuscaler__v1__explain_response__free_unpacked(m, NULL);
    rig_call(&r, SCALER "GetMetrics", packed_question("", METADATA()), &reply);
    assert_ok(&reply);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_services_are_listed_under_both_names),
        cmocka_unit_test(test_files_come_with_what_they_import),
        cmocka_unit_test(test_what_is_not_there_is_an_error_inside_the_answer),
        cmocka_unit_test(test_a_type_has_no_extensions),
        cmocka_unit_test(test_questions_that_make_no_sense_end_the_stream),
        cmocka_unit_test(test_one_stream_may_ask_as_often_as_it_likes),
        cmocka_unit_test(test_a_stream_that_asks_faster_than_it_reads_is_ended_not_left_waiting),
        cmocka_unit_test(test_explain_tells_people_and_machines_alike),
        cmocka_unit_test(test_explain_of_a_missing_reading_is_an_answer),
        cmocka_unit_test(test_an_explanation_of_many_gpus_shows_some_and_says_how_many_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
