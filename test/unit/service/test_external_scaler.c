/* The unary calls of ExternalScaler as KEDA makes them: both numbers of every answer, names, errors by class, hostile
 * bytes, and what /metrics shows of each ScaledObject. */
#include "rig.h"

#include "service/service_private.h"

static struct reply reply;

/* ---- GetMetricSpec ---- */

static void test_spec_fills_both_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *target;
        int64_t whole;
        double real;
    } rows[] = {
        {"80", 80, 80},      {"80.4", 80, 80.4},
        {"80.5", 81, 80.5},  {"0.4", 1, 0.4}, /* 0 would make KEDA before 2.17 refuse the HPA */
        {"0.001", 1, 0.001}, {"1000000000", 1000000000, 1e9},
    };
    RIG_WITH(r, 10);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        rig_call(&r, SCALER "GetMetricSpec", packed_ref(METADATA("targetValue", rows[i].target)), &reply);
        assert_ok(&reply);
        struct number spec = read_spec(&reply, 0);
        assert_int_equal(spec.n, 1);
        assert_int_equal(spec.whole, rows[i].whole);
        assert_double_same(spec.real, rows[i].real);
    }
}

static void test_spec_is_lower_case_and_needs_no_reading(void **state)
{
    (void)state;
    RIG_WITH(r);
    snapshot_unref(r.node.latest);
    r.node.latest = NULL; /* nothing read yet */
    rig_call(&r, SCALER "GetMetricSpec", packed_ref(METADATA("metricName", "My.Metric", "targetValue", "7")), &reply);
    assert_ok(&reply);
    assert_string_equal(read_spec(&reply, 0).name, "my.metric");
    rig_call(&r, SCALER "GetMetricSpec", packed_ref(METADATA("scope", "workload", "targetValue", "7")), &reply);
    assert_ok(&reply);
    rig_call(&r, SCALER "GetMetricSpec",
             packed_ref(METADATA("profile", "vllm-queue-depth", "vllmEndpoint", "http://llm.ml:8000/metrics")), &reply);
    assert_ok(&reply);
}

/* ---- GetMetrics ---- */

static void test_value_fills_both_numbers(void **state)
{
    (void)state;
    static const struct {
        double reading;
        int64_t whole;
    } rows[] = {
        {0, 0}, /* both 0: KEDA takes the whole number where the real one is 0 */
        {0.4, 0}, {0.5, 1}, {41.5, 42}, {99.4, 99}, {100, 100},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        RIG_WITH(r, rows[i].reading);
        rig_call(&r, SCALER "GetMetrics", packed_question("m", METADATA()), &reply);
        assert_ok(&reply);
        struct number value = read_value(&reply);
        assert_int_equal(value.n, 1);
        assert_int_equal(value.whole, rows[i].whole);
        assert_double_same(value.real, rows[i].reading);
    }
}

static void test_value_echoes_the_name_it_was_asked_by(void **state)
{
    (void)state;
    static const struct {
        const char *asked, *echoed;
    } rows[] = {
        {"my.metric", "my.metric"}, {"My.Metric", "My.Metric"}, {"s0-my.metric", "s0-my.metric"}, /* KEDA before 2.7 */
        {"", "my.metric"},          {"another", "another"},
    };
    RIG_WITH(r, 50);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        rig_call(&r, SCALER "GetMetrics", packed_question(rows[i].asked, METADATA("metricName", "My.Metric")), &reply);
        assert_ok(&reply);
        assert_string_equal(read_value(&reply).name, rows[i].echoed);
        assert_double_same(read_value(&reply).real, 50);
    }
}

static void test_answers_use_the_newest_snapshot_and_its_age(void **state)
{
    (void)state;
    RIG_WITH(r, 50);
    node_wait(&r.node, 1);
    node_read(&r.node, "GPU-0", SNAPSHOT_UTILIZATION, 70);
    node_publish(&r.node);
    rig_call(&r, SCALER "GetMetrics", packed_question("m", METADATA("window", "0")), &reply);
    assert_double_same(read_value(&reply).real, 70);

    node_wait(&r.node, 16 * 60); /* too old to stand for anything */
    rig_call(&r, SCALER "GetMetrics", packed_question("m", METADATA("window", "0")), &reply);
    assert_failed(&reply, ERR_UNAVAILABLE, "last read 16m");
    rig_call(&r, SCALER "IsActive", packed_ref(METADATA()), &reply);
    assert_failed(&reply, ERR_UNAVAILABLE, "last read 16m");
}

/* ---- IsActive ---- */

static void test_active_is_strictly_above_the_threshold(void **state)
{
    (void)state;
    static const struct {
        double reading;
        const char *threshold;
        bool want;
    } rows[] = {{0, "0", false}, {0.5, "0", true}, {50, "50", false}, {50, "49.9", true}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        RIG_WITH(r, rows[i].reading);
        rig_call(&r, SCALER "IsActive", packed_ref(METADATA("activationThreshold", rows[i].threshold)), &reply);
        assert_ok(&reply);
        assert_int_equal(reply.n_messages, 1);
        assert_int_equal(read_active(&reply, 0), rows[i].want);
    }
}

static void test_a_missing_reading_is_active_not_an_error(void **state)
{
    (void)state;
    RIG_WITH(r, 0, 0);
    node_wait(&r.node, 60);
    node_read(&r.node, "GPU-1", SNAPSHOT_UTILIZATION, 0); /* GPU 0 is silent since a minute */
    node_publish(&r.node);
    rig_call(&r, SCALER "IsActive", packed_ref(METADATA()), &reply);
    assert_ok(&reply);
    assert_true(read_active(&reply, 0));
}

/* ---- errors ---- */

static const char *const unary[] = {SCALER "GetMetricSpec", SCALER "GetMetrics", SCALER "IsActive",
                                    "/kedagpuscaler.v1.Node/Explain"};
static const char *const all[] = {SCALER "GetMetricSpec",  SCALER "GetMetrics",       SCALER "IsActive",
                                  SCALER "StreamIsActive", SCALER "StreamMetricSpec", "/kedagpuscaler.v1.Node/Explain"};

/* Does the method wrap the reference into a message of its own? */
static bool is_wrapped(const char *path)
{
    return strstr(path, "GetMetrics") || strstr(path, "Explain");
}

static struct str packed_for(const char *path, struct metadata m)
{
    return is_wrapped(path) ? packed_question("", m) : packed_ref(m);
}

static void test_bad_metadata_is_refused_by_every_call_and_told_to_the_program(void **state)
{
    (void)state;
    RIG_WITH(r, 50);
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        r.n_refused = 0;
        rig_call(&r, all[i], packed_for(all[i], METADATA("targetvalu", "80")), &reply);
        assert_failed(&reply, ERR_INVALID_ARGUMENT, "targetValue");
        assert_int_equal(r.n_refused, 1);
        assert_string_equal(r.refused_subject, "ml/llm");
        assert_contains(r.refused_text, "targetvalu");
    }
}

static void test_a_missing_reference_is_refused(void **state)
{
    (void)state;
    RIG_WITH(r, 50);
    for (size_t i = 0; i < ARRAY_LEN(unary); i++) {
        if (!is_wrapped(unary[i]))
            continue;
        rig_call(&r, unary[i], (struct str){"", 0}, &reply);
        assert_failed(&reply, ERR_INVALID_ARGUMENT, "scaledObjectRef is missing");
        assert_string_equal(r.refused_subject, "/");
    }
    rig_call(&r, SCALER "GetMetrics", packed_question("m", METADATA()), &reply);
    assert_ok(&reply);
}

static void test_errors_have_the_class_of_their_cause(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value;
        enum err_class class;
        const char *part;
    } rows[] = {
        {"scope", "workload", ERR_FAILED_PRECONDITION, "scope workload is measured by the hub"},
        {"metricType", "vllm_queue_depth", ERR_FAILED_PRECONDITION, "vllm_queue_depth is read from an engine"},
        {"gpuIndex", "7", ERR_FAILED_PRECONDITION, "no GPU matches gpuIndex 7"},
        {"metricType", "power_draw", ERR_UNAVAILABLE, "not read yet"},
    };
    RIG_WITH(r, 50);
    node_wait(&r.node, 16 * 60);
    node_read(&r.node, "GPU-0", SNAPSHOT_UTILIZATION, 50);
    node_publish(&r.node);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct metadata m =
            METADATA(rows[i].key, rows[i].value, "targetValue", "5", "vllmEndpoint", "http://llm.ml:8000/");
        rig_call(&r, SCALER "GetMetrics", packed_question("m", m), &reply);
        assert_failed(&reply, rows[i].class, rows[i].part);
        rig_call(&r, SCALER "IsActive", packed_ref(m), &reply);
        assert_failed(&reply, rows[i].class, rows[i].part);
    }
}

static void test_without_a_driver_the_reason_is_in_the_answer(void **state)
{
    (void)state;
    RIG_WITH(r);
    struct snapshot *header = snapshot_store_header(r.node.store);
    header->driver = SNAPSHOT_DRIVER_NOT_LOADED;
    (void)str_copy(header->driver_text, sizeof(header->driver_text), str_of("load the nvidia module"));
    node_publish(&r.node);
    rig_call(&r, SCALER "GetMetrics", packed_question("m", METADATA()), &reply);
    assert_failed(&reply, ERR_UNAVAILABLE, "load the nvidia module");
    snapshot_unref(r.node.latest);
    r.node.latest = NULL;
    rig_call(&r, SCALER "IsActive", packed_ref(METADATA()), &reply);
    assert_failed(&reply, ERR_UNAVAILABLE, "no GPU has been read yet");
}

/* ---- hostile bytes ---- */

static void test_bytes_that_are_no_message_are_an_internal_error(void **state)
{
    (void)state;
    RIG_WITH(r, 50);
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        rig_call(&r, all[i], (struct str){"\x0a\xff", 2}, &reply);
        assert_failed(&reply, ERR_INTERNAL, "could not be decoded");
    }
}

static void test_nul_inside_a_text_is_found_where_protobuf_would_cut_it(void **state)
{
    (void)state;
    static const ProtobufCMessageDescriptor *const health = &grpc__health__v1__health_check_request__descriptor,
                                                   *const ref = &externalscaler__scaled_object_ref__descriptor,
                                                   *const question = &externalscaler__get_metrics_request__descriptor;
    const struct {
        const ProtobufCMessageDescriptor *type;
        const char *bytes;
        size_t len;
        bool want;
    } rows[] = {
        {health, "", 0, false},
        {health, "\x0a\x01\x61", 3, false},
        {health, "\x0a\x01\x00", 3, true},
        {health, "\x0a\x03\x61\x00\x62", 5, true},
        {health, "\x08\x00\x0a\x01\x61", 5, false},                              /* a varint's zero is no text */
        {health, "\x09\0\0\0\0\0\0\0\0\x0a\x01\x00", 12, true},                  /* behind a fixed64 */
        {health, "\x0d\0\0\0\0\x0a\x01\x61", 8, false},                          /* behind a fixed32 */
        {health, "\x0a\x05\x00", 3, false},                                      /* cut: the decoder says so */
        {health, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, false}, /* no varint */
        {ref, "\x0a\x01\x61\x12\x01\x62", 6, false},
        {ref, "\x12\x01\x00", 3, true},                     /* the namespace */
        {ref, "\x1a\x05\x0a\x01\x6b\x12\x00", 7, false},    /* an empty value of a pair */
        {ref, "\x1a\x06\x0a\x01\x6b\x12\x01\x00", 8, true}, /* a pair's value */
        {ref, "\x1a\x06\x0a\x01\x00\x12\x01\x76", 8, true}, /* a pair's key */
        {question, "\x0a\x03\x0a\x01\x61\x12\x01\x6d", 8, false},
        {question, "\x0a\x03\x0a\x01\x00", 5, true}, /* inside the reference */
        {question, "\x12\x01\x00", 3, true},         /* the metric's name */
        /* fields that a newer KEDA may have: a message or bytes with zeros in them */
        {ref, "\x22\x02\x08\x00", 4, false},
        {ref, "\x1a\x08\x0a\x01\x6b\x1a\x03\x08\x00\x00", 10, false},
        {question, "\x1a\x02\x08\x00\x12\x01\x00", 7, true},
        {question, "\xfa\xff\xff\xff\x7f\x01\x00", 7, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool got = service_has_nul((struct str){rows[i].bytes, rows[i].len}, rows[i].type);
        if (got != rows[i].want)
            fail_msg("row %zu", i);
    }
}

static void test_fields_of_a_newer_keda_are_passed_over(void **state)
{
    (void)state;
    RIG_WITH(r, 50);
    struct str known = packed_ref(METADATA("targetValue", "70"));
    static char bytes[512];
    memcpy(bytes, known.ptr, known.len);
    memcpy(bytes + known.len, "\x22\x02\x08\x00\x29\0\0\0\0\0\0\xf0\x3f", 13);
    rig_call(&r, SCALER "GetMetricSpec", (struct str){bytes, known.len + 13}, &reply);
    assert_ok(&reply);
    assert_double_same(read_spec(&reply, 0).real, 70);
}

static void test_nul_inside_a_text_is_refused_on_the_wire(void **state)
{
    (void)state;
    /* metricName "a\0b": cut at the NUL it would be another metric */
    static const char pair[] = "\x1a\x11\x0a\x0ametricName\x12\x03"
                               "a\0b";
    RIG_WITH(r, 50);
    rig_call(&r, SCALER "GetMetricSpec", (struct str){pair, sizeof(pair) - 1}, &reply);
    assert_failed(&reply, ERR_INTERNAL, "NUL inside a text");
}

static void test_metadata_has_a_ceiling(void **state)
{
    (void)state;
    static char texts[65][8], value[70000];
    static struct metadata m;
    RIG_WITH(r, 50);
    for (m.n = 0; m.n < 65; m.n++) {
        (void)snprintf(texts[m.n], sizeof(texts[0]), "k%zu", m.n);
        m.pairs[m.n] = (struct trigger_pair){str_of(texts[m.n]), str_of("v")};
    }
    rig_call(&r, SCALER "GetMetricSpec", packed_ref(m), &reply);
    assert_failed(&reply, ERR_INVALID_ARGUMENT, "64");

    memset(value, 'a', sizeof(value) - 1);
    value[60000] = '\0'; /* KEDA's own keys are passed over, whatever they hold */
    rig_call(&r, SCALER "GetMetricSpec", packed_ref(METADATA("scalerAddress", value)), &reply);
    assert_ok(&reply);
    value[60000] = 'a'; /* more than one request may have */
    rig_call(&r, SCALER "GetMetricSpec", packed_ref(METADATA("scalerAddress", value)), &reply);
    assert_failed(&reply, ERR_RESOURCE_EXHAUSTED, "");
}

static void test_a_message_that_swells_when_decoded_is_refused(void **state)
{
    (void)state;
    static char pairs[60000];
    RIG_WITH(r, 50);
    for (size_t i = 0; i < sizeof(pairs); i += 2) /* 30,000 empty pairs */
        memcpy(pairs + i, "\x1a\x00", 2);
    rig_call(&r, SCALER "GetMetricSpec", (struct str){pairs, sizeof(pairs)}, &reply);
    assert_failed(&reply, ERR_INTERNAL, "8 times its size");
    rig_call(&r, SCALER "GetMetricSpec", packed_ref(METADATA()), &reply);
    assert_ok(&reply);
}

/* ---- what /metrics shows ---- */

#define SUBJECT "ml", "llm", "my.metric"

static void test_metrics_show_the_last_answers_and_nothing_before(void **state)
{
    (void)state;
    RIG_WITH(r, 50);
    struct metadata m = METADATA("metricName", "my.metric", "targetValue", "75");
    rig_call(&r, SCALER "GetMetricSpec", packed_ref(m), &reply);
    assert_double_same(METRIC(&r, "keda_gpu_scaler_metric_target", SUBJECT), 75);
    assert_double_same(METRIC(&r, "keda_gpu_scaler_metric_value", SUBJECT), (double)NAN);
    assert_double_same(METRIC(&r, "keda_gpu_scaler_metric_active", SUBJECT), (double)NAN);
    assert_double_same(METRIC(&r, "keda_gpu_scaler_metric_errors", SUBJECT), 0);
    rig_call(&r, SCALER "GetMetrics", packed_question("my.metric", m), &reply);
    assert_double_same(METRIC(&r, "keda_gpu_scaler_metric_value", SUBJECT), 50);
    rig_call(&r, SCALER "IsActive", packed_ref(m), &reply);
    assert_double_same(METRIC(&r, "keda_gpu_scaler_metric_active", SUBJECT), 1);
    assert_string_equal(r.observed_method, "IsActive");
    assert_string_equal(r.observed_subject, "ml/llm");
    assert_int_equal(r.n_observed, 2);
}

static void test_metrics_drop_a_value_that_can_no_longer_be_given(void **state)
{
    (void)state;
    RIG_WITH(r, 50);
    struct metadata m = METADATA("metricName", "my.metric", "targetValue", "75");
    rig_call(&r, SCALER "GetMetrics", packed_question("my.metric", m), &reply);
    rig_call(&r, SCALER "IsActive", packed_ref(m), &reply);
    node_wait(&r.node, 16 * 60);
    rig_call(&r, SCALER "GetMetrics", packed_question("my.metric", m), &reply);
    rig_call(&r, SCALER "IsActive", packed_ref(m), &reply);
    assert_double_same(METRIC(&r, "keda_gpu_scaler_metric_errors", SUBJECT), 2);
    assert_double_same(METRIC(&r, "keda_gpu_scaler_metric_value", SUBJECT), (double)NAN);
    assert_double_same(METRIC(&r, "keda_gpu_scaler_metric_active", SUBJECT), (double)NAN);
    node_read(&r.node, "GPU-0", SNAPSHOT_UTILIZATION, 60);
    node_publish(&r.node);
    rig_call(&r, SCALER "GetMetrics", packed_question("my.metric", m), &reply);
    assert_double_same(METRIC(&r, "keda_gpu_scaler_metric_value", SUBJECT), 60);
    assert_double_same(METRIC(&r, "keda_gpu_scaler_metric_errors", SUBJECT), 2);
}

static void test_refusals_are_counted_without_a_metric(void **state)
{
    (void)state;
    RIG_WITH(r, 50);
    rig_call(&r, SCALER "GetMetricSpec", packed_ref(METADATA("targetValue", "none")), &reply);
    assert_double_same(METRIC(&r, "keda_gpu_scaler_metric_errors", "ml", "llm", ""), 1);
}

static void ask_as(struct rig *r, const char *ns, const char *name)
{
    struct ref ref;
    ref_init(&ref, METADATA());
    ref.message.namespace_ = (char *)(uintptr_t)ns;
    ref.message.name = (char *)(uintptr_t)name;
    rig_call(r, SCALER "GetMetricSpec", packed(&ref.message.base), &reply);
    assert_ok(&reply);
}

static void test_metrics_keep_the_2000_scaled_objects_asked_for_last(void **state)
{
    (void)state;
    enum { KEPT = 2000, ASKED = 2050 };
    char name[32];
    RIG_WITH(r, 50);
    for (int i = 0; i < ASKED; i++) {
        (void)snprintf(name, sizeof(name), "so-%d", i);
        ask_as(&r, "ml", name);
    }
    assert_int_equal(SERIES_OF(&r, "keda_gpu_scaler_metric_target"), KEPT);
    assert_int_equal(SERIES_OF(&r, "keda_gpu_scaler_metric_errors"), KEPT);
    struct number spec = read_spec(&reply, 0);
    assert_double_same(METRIC(&r, "keda_gpu_scaler_metric_errors", "ml", "so-49", spec.name), (double)NAN);
    assert_double_same(METRIC(&r, "keda_gpu_scaler_metric_errors", "ml", "so-50", spec.name), 0);
    assert_double_same(METRIC(&r, "keda_gpu_scaler_metric_errors", "ml", "so-2049", spec.name), 0);
}

static void test_metrics_forget_who_is_not_asked_about_for_an_hour(void **state)
{
    (void)state;
    RIG_WITH(r, 50);
    ask_as(&r, "ml", "gone");
    node_wait(&r.node, 1800);
    ask_as(&r, "ml", "here");
    node_wait(&r.node, 1799);
    service_tick(r.service);
    assert_int_equal(SERIES_OF(&r, "keda_gpu_scaler_metric_target"), 2);
    node_wait(&r.node, 2);
    service_tick(r.service);
    assert_int_equal(SERIES_OF(&r, "keda_gpu_scaler_metric_target"), 1);
    assert_int_equal(SERIES_OF(&r, "keda_gpu_scaler_metric_errors"), 1);
    ask_as(&r, "ml", "gone");
    assert_int_equal(SERIES_OF(&r, "keda_gpu_scaler_metric_target"), 2);
}

/* Names that no ScaledObject can have share one series: bytes that the page would show alike must not make two, and a
 * peer that makes names up fills no table. */
static void test_metrics_show_names_of_nobody_as_invalid(void **state)
{
    (void)state;
    static char longer[255];
    static const char *const names[] = {"\xff", "\xfe", "a\rb", "Upper", "a b", "a/b", longer};
    RIG_WITH(r, 50);
    memset(longer, 'a', sizeof(longer) - 1);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        ask_as(&r, "ml", names[i]);
        ask_as(&r, names[i], "llm");
    }
    assert_int_equal(SERIES_OF(&r, "keda_gpu_scaler_metric_target"), 2);
    struct number spec = read_spec(&reply, 0);
    assert_double_same(METRIC(&r, "keda_gpu_scaler_metric_errors", "ml", "invalid", spec.name), 0);
    assert_double_same(METRIC(&r, "keda_gpu_scaler_metric_errors", "invalid", "llm", spec.name), 0);
    longer[253] = '\0'; /* as long as a name may be */
    ask_as(&r, "ml", longer);
    ask_as(&r, "", "llm"); /* as from a client that is not KEDA */
    assert_int_equal(SERIES_OF(&r, "keda_gpu_scaler_metric_target"), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec_fills_both_numbers),
        cmocka_unit_test(test_spec_is_lower_case_and_needs_no_reading),
        cmocka_unit_test(test_value_fills_both_numbers),
        cmocka_unit_test(test_value_echoes_the_name_it_was_asked_by),
        cmocka_unit_test(test_answers_use_the_newest_snapshot_and_its_age),
        cmocka_unit_test(test_active_is_strictly_above_the_threshold),
        cmocka_unit_test(test_a_missing_reading_is_active_not_an_error),
        cmocka_unit_test(test_bad_metadata_is_refused_by_every_call_and_told_to_the_program),
        cmocka_unit_test(test_a_missing_reference_is_refused),
        cmocka_unit_test(test_errors_have_the_class_of_their_cause),
        cmocka_unit_test(test_without_a_driver_the_reason_is_in_the_answer),
        cmocka_unit_test(test_bytes_that_are_no_message_are_an_internal_error),
        cmocka_unit_test(test_nul_inside_a_text_is_found_where_protobuf_would_cut_it),
        cmocka_unit_test(test_nul_inside_a_text_is_refused_on_the_wire),
        cmocka_unit_test(test_fields_of_a_newer_keda_are_passed_over),
        cmocka_unit_test(test_metadata_has_a_ceiling),
        cmocka_unit_test(test_a_message_that_swells_when_decoded_is_refused),
        cmocka_unit_test(test_metrics_show_the_last_answers_and_nothing_before),
        cmocka_unit_test(test_metrics_drop_a_value_that_can_no_longer_be_given),
        cmocka_unit_test(test_refusals_are_counted_without_a_metric),
        cmocka_unit_test(test_metrics_keep_the_2000_scaled_objects_asked_for_last),
        cmocka_unit_test(test_metrics_forget_who_is_not_asked_about_for_an_hour),
        cmocka_unit_test(test_metrics_show_names_of_nobody_as_invalid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
