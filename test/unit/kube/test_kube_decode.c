/* JSON of the API to structs: values, each kind with its defaults, wrong types, and lists cut into their items. */
#include "kube/kube_private.h"

#include "support.h"

#include <math.h>
#include <string.h>

#define REFUSED ((double)NAN)

/* ---- values ---- */

static void test_quantities_are_exact_to_a_thousandth_and_rounded_up(void **state)
{
    static const struct {
        const char *text;
        double want; /* or REFUSED */
    } cases[] = {{"80", 80},
                 {"1500m", 1.5},
                 {"0", 0},
                 {"0.07", 0.07},
                 {"100u", 0.001},
                 {"1n", 0.001},
                 {"1001u", 0.002},
                 {"1k", 1000},
                 {"2Ki", 2048},
                 {"1.5Gi", 1610612736},
                 {"1e3", 1000},
                 {"12E", 12e18},
                 {"1E2", 100},
                 {"5e-1", 0.5},
                 {".5", 0.5},
                 {"7.", 7},
                 {"-1500m", -1.5},
                 {"+3", 3},
                 {"1e+2", 100},
                 {"0.1", 0.1},
                 {"999999999999999999", 1e18},
                 {"", REFUSED},
                 {"m", REFUSED},
                 {"1 ", REFUSED},
                 {"1K", REFUSED},
                 {"1.2.3", REFUSED},
                 {"0x10", REFUSED},
                 {"1e", REFUSED},
                 {"1e99", REFUSED},
                 {"--1", REFUSED},
                 {"1e++2", REFUSED},
                 {"1mm", REFUSED},
                 {"nan", REFUSED},
                 {"1e-", REFUSED},
                 {"9999999999999999999", REFUSED}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        double got = REFUSED;
        int rc = kube_parse_quantity(str_of(cases[i].text), &got);
        if (rc != (isnan(cases[i].want) ? -1 : 0))
            fail_msg("%s: rc %d", cases[i].text, rc);
        assert_double_same(got, cases[i].want);
    }
}

static void test_times_have_fractions_and_offsets(void **state)
{
    static const struct {
        const char *text;
        double want; /* or REFUSED */
    } cases[] = {{"1970-01-01T00:00:00Z", 0},
                 {"2026-11-30T17:14:49Z", 1796058889},
                 {"2026-11-30T17:14:49.250000Z", 1796058889.25},
                 {"2026-11-30T18:14:49+01:00", 1796058889},
                 {"2026-11-30T11:44:49-05:30", 1796058889},
                 {"2024-02-29T00:00:00Z", 1709164800},
                 {"2000-02-29T12:00:00Z", 951825600},
                 {"1969-12-31T23:59:59Z", -1},
                 {"0001-01-01T00:00:00Z", -62135596800},
                 {"2016-12-31T23:59:60Z", 1483228800},
                 {"2023-02-29T00:00:00Z", REFUSED},
                 {"1900-02-29T00:00:00Z", REFUSED},
                 {"2026-13-01T00:00:00Z", REFUSED},
                 {"2026-11-31T00:00:00Z", REFUSED},
                 {"2026-11-30T24:00:00Z", REFUSED},
                 {"2026-11-30T17:14:49", REFUSED},
                 {"2026-11-30T17:14:49.Z", REFUSED},
                 {"2026-11-30T17:14:49+25:00", REFUSED},
                 {"2026-11-30", REFUSED},
                 {"2026-11-30T17:14:49Zx", REFUSED},
                 {"", REFUSED}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        double got = REFUSED;
        int rc = kube_parse_time(str_of(cases[i].text), &got);
        if (rc != (isnan(cases[i].want) ? -1 : 0))
            fail_msg("%s: rc %d", cases[i].text, rc);
        assert_double_near(got, cases[i].want, 1e-6);
    }
}

/* ---- kinds ---- */

static int set_up(void **state)
{
    struct arena *arena = mem_new(struct arena);
    arena_init(arena, KUBE_ARENA_BYTES_MAX);
    *state = arena;
    return 0;
}

static int tear_down(void **state)
{
    arena_fini((struct arena *)*state);
    free(*state);
    return 0;
}

static struct kube_object decode(void **state, enum kube_kind kind, const char *json)
{
    struct kube_object object = {0};
    struct err e = {0};
    if (kube_decode(kind, str_of(json), (struct arena *)*state, &object, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(object.kind, kind);
    return object;
}

#define META "\"metadata\":{\"name\":\"n\",\"namespace\":\"s\"}"

static void test_metadata_is_the_same_for_all_kinds(void **state)
{
    for (int kind = 0; kind < KUBE_KIND_COUNT; kind++) {
        struct kube_object o =
            decode(state, (enum kube_kind)kind,
                   "{\"metadata\":{\"name\":\"n\",\"namespace\":\"s\",\"uid\":\"u\",\"resourceVersion\":"
                   "\"7\",\"creationTimestamp\":\"1970-01-01T00:01:00Z\",\"deletionTimestamp\":"
                   "\"2026-11-30T17:14:49Z\",\"managedFields\":[{\"x\":1}]},\"unknown\":[]}");
        assert_string_equal(o.meta.name, "n");
        assert_string_equal(o.meta.ns, "s");
        assert_string_equal(o.meta.uid, "u");
        assert_string_equal(o.meta.resource_version, "7");
        assert_double_same(o.meta.created_s, 60);
        assert_true(o.meta.is_deleted);
        o = decode(state, (enum kube_kind)kind, "{\"metadata\":{\"name\":\"n\",\"deletionTimestamp\":null}}");
        assert_string_equal(o.meta.ns, "");
        assert_string_equal(o.meta.uid, "");
        assert_double_same(o.meta.created_s, 0);
        assert_false(o.meta.is_deleted);
    }
}

static void test_a_pod_is_read(void **state)
{
    struct kube_object o = decode(
        state, KUBE_POD,
        "{" META
        ",\"spec\":{\"nodeName\":\"node1\",\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"cpu\":\"1\","
        "\"nvidia.com/gpu\":\"2\"}}},{\"name\":\"log\"}]},\"status\":{\"phase\":\"Running\",\"podIP\":\"10.0.0.1\","
        "\"conditions\":[{\"type\":\"Initialized\",\"status\":\"True\"},{\"type\":\"Ready\",\"status\":\"False\","
        "\"lastTransitionTime\":\"1970-01-01T00:00:50Z\"}],\"containerStatuses\":[{\"name\":\"c\",\"state\":{"
        "\"running\":{"
        "\"startedAt\":\"1970-01-01T00:00:30Z\"}}},{\"name\":\"log\",\"state\":{\"running\":{\"startedAt\":"
        "\"1970-01-01T00:00:40Z\"}}}]}}");
    assert_string_equal(o.pod->node, "node1");
    assert_string_equal(o.pod->ip, "10.0.0.1");
    assert_int_equal(o.pod->phase, KUBE_RUNNING);
    assert_true(o.pod->has_condition);
    assert_false(o.pod->is_ready);
    assert_double_same(o.pod->condition_s, 50);
    assert_double_same(o.pod->started_s, 30); /* not the log container's */
    assert_true(o.pod->requests_gpu);
    assert_int_equal(o.pod->group, -1);
    assert_int_equal(o.pod->worker, -1);
}

static void test_an_empty_pod_is_absent_and_not_zero(void **state)
{
    struct kube_object o = decode(state, KUBE_POD, "{" META ",\"spec\":null,\"status\":{\"conditions\":null}}");
    assert_string_equal(o.pod->node, "");
    assert_string_equal(o.pod->ip, "");
    assert_int_equal(o.pod->phase, KUBE_PHASE_UNKNOWN);
    assert_false(o.pod->has_condition);
    assert_false(o.pod->requests_gpu);
    assert_double_same(o.pod->started_s, 0);
}

/* "name:number ..." */
static void check_ports(const struct kube_pod *pod, const char *want)
{
    struct buf text BUF_AUTO;
    buf_init(&text, 4096);
    for (size_t i = 0; i < pod->n_ports; i++)
        (void)buf_printf(&text, "%s%s:%d", i > 0 ? " " : "", pod->ports[i].name, pod->ports[i].number);
    assert_string_equal(buf_cstr(&text), want);
}

static void test_ports_are_of_gpu_containers_first_and_tcp_only(void **state)
{
#define GPU      ",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"1\"}}"
#define PORT(p)  "{\"containerPort\":" p "}"
#define PORTS(p) ",\"ports\":[" p "]"
    static const struct {
        const char *containers, *init, *want;
    } cases[] = {
        {"", "", ""},
        {"{\"name\":\"a\"" PORTS("") "}", "", ""},
        {"{\"name\":\"a\",\"ports\":null}", "", ""},
        {"{\"name\":\"proxy\"" PORTS(PORT("15090")) "},{\"name\":\"vllm\"" GPU PORTS(
             "{\"name\":\"http\",\"containerPort\":8000,\"protocol\":\"TCP\"}," PORT("8001")) "}",
         "", "http:8000 :8001 :15090"},
        {"{\"name\":\"a\"" PORTS("{\"containerPort\":53,\"protocol\":\"UDP\"}," PORT(
             "53") ",{\"containerPort\":9,\"protocol\":\"SCTP\"}") "}",
         "", ":53"},
        {"{\"name\":\"a\"" PORTS(PORT("1") "," PORT("65535") "," PORT("0") "," PORT("65536") "," PORT("-1")) "}", "",
         ":1 :65535"},
        {"{\"name\":\"a\"" PORTS(PORT("1")) "}",
         "{\"name\":\"i\"" PORTS(PORT("2")) "},{\"name\":\"s\",\"restartPolicy\":\"Always\"" PORTS(PORT("3")) "}",
         ":1 :3"},
        {"{\"name\":\"a\"" PORTS(PORT("1")) "}",
         "{\"name\":\"s\",\"restartPolicy\":\"Always\"" GPU PORTS(PORT("3")) "}", ":3 :1"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf json BUF_AUTO;
        buf_init(&json, 4096);
        (void)buf_printf(&json, "{" META ",\"spec\":{\"containers\":[%s],\"initContainers\":[%s]}}",
                         cases[i].containers, cases[i].init);
        check_ports(decode(state, KUBE_POD, buf_cstr(&json)).pod, cases[i].want);
    }
}

static void test_more_ports_than_there_is_room_for_are_left_out_from_the_end(void **state)
{
    struct buf json BUF_AUTO;
    buf_init(&json, 16384);
    (void)buf_printf(&json, "{" META ",\"spec\":{\"containers\":[{\"name\":\"other\"" PORTS(
                                PORT("7")) "},{\"name\":\"gpu\"" GPU ",\"ports\":[");
    for (int i = 0; i < 100; i++)
        (void)buf_printf(&json, "%s" PORT("%d"), i > 0 ? "," : "", 8000 + i);
    (void)buf_append_str(&json, "]}]}}");
    const struct kube_pod *pod = decode(state, KUBE_POD, buf_cstr(&json)).pod;
    assert_int_equal(pod->n_ports, KUBE_PORTS_MAX);
    assert_int_equal(pod->ports[0].number, 8000);
    assert_int_equal(pod->ports[KUBE_PORTS_MAX - 1].number, 8000 + KUBE_PORTS_MAX - 1);
}

static void test_annotations_say_where_a_page_is(void **state)
{
    struct kube_object o = decode(state, KUBE_POD,
                                  "{\"metadata\":{\"name\":\"n\",\"annotations\":{\"prometheus.io/port\":\"9400\","
                                  "\"prometheus.io/path\":\"/m\",\"prometheus.io/scheme\":\"https\"}}}");
    assert_string_equal(o.pod->annotated_port, "9400");
    assert_string_equal(o.pod->annotated_path, "/m");
    assert_string_equal(o.pod->annotated_scheme, "https");
    o = decode(state, KUBE_POD, "{\"metadata\":{\"name\":\"n\",\"annotations\":{\"prometheus.io/path\":null}}}");
    assert_string_equal(o.pod->annotated_port, "");
    assert_string_equal(o.pod->annotated_path, "");
    assert_string_equal(o.pod->annotated_scheme, "");
    assert_int_equal(o.pod->n_ports, 0);
}

static void test_the_latest_start_is_of_the_containers_that_use_gpus(void **state)
{
#define STATUS(name, s) "{\"name\":\"" name "\",\"state\":{\"running\":{\"startedAt\":\"1970-01-01T00:00:" s "Z\"}}}"
    static const struct {
        const char *spec, *statuses, *init_statuses;
        double started_s;
        bool requests_gpu;
    } cases[] = {
        {"\"containers\":[{\"name\":\"a\"},{\"name\":\"b\"}]", STATUS("a", "10") "," STATUS("b", "20"), "", 20, false},
        {"\"containers\":[{\"name\":\"a\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"0\"}}},{\"name\":\"b\"}]",
         STATUS("a", "10") "," STATUS("b", "20"), "", 20, false},
        {"\"containers\":[{\"name\":\"a\",\"resources\":{\"limits\":{\"nvidia.com/mig-1g.5gb\":1}}},{\"name\":\"b\"}]",
         STATUS("a", "10") "," STATUS("b", "20"), "", 10, true},
        {"\"containers\":[{\"name\":\"a\",\"resources\":{\"claims\":[{\"name\":\"g\"}]}},{\"name\":\"b\"}]",
         STATUS("a", "10") "," STATUS("b", "20"), "", 10, true},
        {"\"containers\":[{\"name\":\"a\",\"resources\":{\"requests\":{\"nvidia.com/gpu\":\"1\"}}}]", STATUS("a", "10"),
         "", 10, false},
        {"\"containers\":[{\"name\":\"a\"}],\"initContainers\":[{\"name\":\"i\",\"restartPolicy\":\"Always\","
         "\"resources\":{"
         "\"limits\":{\"nvidia.com/gpu\":\"1\"}}}]",
         STATUS("a", "30"), STATUS("i", "05"), 5, true},
        {"\"containers\":[{\"name\":\"a\"}],\"initContainers\":[{\"name\":\"i\",\"resources\":{\"limits\":{"
         "\"nvidia.com/gpu\":\"1\"}}}]",
         STATUS("a", "30"), STATUS("i", "40"), 30, false},
        {"\"containers\":[{\"name\":\"a\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"1\"}}}]",
         "{\"name\":\"a\",\"state\":{\"waiting\":{\"reason\":\"CrashLoopBackOff\"}}}", "", 0, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf json BUF_AUTO;
        buf_init(&json, 4096);
        (void)buf_printf(
            &json, "{" META ",\"spec\":{%s},\"status\":{\"containerStatuses\":[%s],\"initContainerStatuses\":[%s]}}",
            cases[i].spec, cases[i].statuses, cases[i].init_statuses);
        struct kube_object o = decode(state, KUBE_POD, buf_cstr(&json));
        if (o.pod->requests_gpu != cases[i].requests_gpu)
            fail_msg("case %zu", i);
        assert_double_same(o.pod->started_s, cases[i].started_s);
    }
}

static void test_phases_and_groups(void **state)
{
    static const struct {
        const char *phase, *label, *index;
        enum kube_phase want;
        int64_t group, worker;
    } cases[] = {{"Pending", "0", "1", KUBE_PENDING, 0, 1},
                 {"Succeeded", "12", "0", KUBE_SUCCEEDED, 12, 0},
                 {"Failed", "-3", "-1", KUBE_FAILED, -1, -1},
                 {"Unknown", "x", "1x", KUBE_PHASE_UNKNOWN, -1, -1},
                 {"Sleeping", "", "99999999999999999999", KUBE_PHASE_UNKNOWN, -1, -1}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf json BUF_AUTO;
        buf_init(&json, 4096);
        (void)buf_printf(&json,
                         "{\"metadata\":{\"name\":\"n\",\"labels\":{\"leaderworkerset.sh/group-index\":\"%s\","
                         "\"leaderworkerset.sh/worker-index\":\"%s\"}},\"status\":{\"phase\":\"%s\"}}",
                         cases[i].label, cases[i].index, cases[i].phase);
        struct kube_object o = decode(state, KUBE_POD, buf_cstr(&json));
        assert_int_equal(o.pod->phase, cases[i].want);
        assert_int_equal(o.pod->group, cases[i].group);
        assert_int_equal(o.pod->worker, cases[i].worker);
    }
}

static void test_a_scaled_object_has_the_defaults_of_keda(void **state)
{
    struct kube_object o =
        decode(state, KUBE_SCALED_OBJECT, "{" META ",\"spec\":{\"scaleTargetRef\":{\"name\":\"d\"},\"triggers\":[]}}");
    const struct kube_scaled_object *so = o.scaled_object;
    assert_string_equal(so->target_api_version, "apps/v1");
    assert_string_equal(so->target_kind, "Deployment");
    assert_string_equal(so->target_name, "d");
    assert_string_equal(so->hpa_name, "");
    assert_int_equal(so->n_triggers + so->n_other_triggers, 0);
    assert_int_equal(so->min, 0);
    assert_int_equal(so->max, 100);
    assert_false(so->has_fallback || so->has_modifiers || so->is_paused);
    assert_string_equal(so->fallback_behavior, "");
}

static void test_a_scaled_object_is_read(void **state)
{
    struct kube_object o = decode(
        state, KUBE_SCALED_OBJECT,
        "{" META
        ",\"spec\":{\"scaleTargetRef\":{\"apiVersion\":\"argoproj.io/v1alpha1\",\"kind\":\"Rollout\",\"name\":\"r\"},"
        "\"minReplicaCount\":2,\"maxReplicaCount\":9,\"fallback\":{\"failureThreshold\":3,\"replicas\":4},\"advanced\":"
        "{"
        "\"scalingModifiers\":{\"formula\":\"a+b\"}},\"triggers\":[{\"type\":\"cron\",\"metadata\":{\"start\":\"x\"}},{"
        "\"type\":"
        "\"external\",\"metricType\":\"Value\",\"metadata\":{\"scalerAddress\":\"a:6000\",\"profile\":\"vllm\"}},{"
        "\"type\":"
        "\"external-push\",\"metadata\":{}}]},\"status\":{\"hpaName\":\"keda-hpa-n\"}}");
    const struct kube_scaled_object *so = o.scaled_object;
    assert_string_equal(so->target_kind, "Rollout");
    assert_string_equal(so->hpa_name, "keda-hpa-n");
    assert_int_equal(so->n_triggers, 2);
    assert_int_equal(so->n_other_triggers, 1);
    assert_string_equal(so->triggers[0].type, "external");
    assert_string_equal(so->triggers[0].metric_type, "Value");
    assert_int_equal(so->triggers[0].n_metadata, 2);
    assert_string_equal(so->triggers[0].metadata[0].key, "scalerAddress");
    assert_string_equal(so->triggers[0].metadata[1].value, "vllm");
    assert_string_equal(so->triggers[1].metric_type, "");
    assert_true(so->has_modifiers && so->has_fallback);
    assert_string_equal(so->fallback_behavior, "static");
    assert_int_equal(so->fallback_replicas, 4);
    assert_int_equal(so->min, 2);
    assert_int_equal(so->max, 9);
}

static void test_annotations_pause_a_scaled_object(void **state)
{
    static const struct {
        const char *annotations;
        bool want;
    } cases[] = {{"", false},
                 {"\"autoscaling.keda.sh/paused\":\"true\"", true},
                 {"\"autoscaling.keda.sh/paused\":\"false\"", false},
                 {"\"autoscaling.keda.sh/paused\":\"F\"", false},
                 {"\"autoscaling.keda.sh/paused\":\"whatever\"", true},
                 {"\"autoscaling.keda.sh/paused-replicas\":\"0\"", true},
                 {"\"autoscaling.keda.sh/paused-scale-in\":\"true\"", false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf json BUF_AUTO;
        buf_init(&json, 4096);
        (void)buf_printf(&json, "{\"metadata\":{\"name\":\"n\",\"annotations\":{%s}}}", cases[i].annotations);
        struct kube_object o = decode(state, KUBE_SCALED_OBJECT, buf_cstr(&json));
        if (o.scaled_object->is_paused != cases[i].want)
            fail_msg("%s", cases[i].annotations);
    }
}

static void test_an_hpa_is_read(void **state)
{
    struct kube_object o = decode(
        state, KUBE_HPA,
        "{" META ",\"spec\":{\"scaleTargetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"d\"},"
        "\"maxReplicas\":40,\"metrics\":[{\"type\":\"Resource\"},{\"type\":\"External\",\"external\":{\"metric\":{"
        "\"name\":\"s0-x\"},"
        "\"target\":{\"type\":\"AverageValue\",\"averageValue\":\"1500m\"}}},{\"type\":\"External\",\"external\":{"
        "\"metric\":{"
        "\"name\":\"s1-y\"},\"target\":{\"type\":\"Value\",\"value\":\"80\"}}}],\"behavior\":{\"scaleDown\":{"
        "\"stabilizationWindowSeconds\":0,\"selectPolicy\":\"Min\",\"tolerance\":\"50m\",\"policies\":[{\"type\":"
        "\"Percent\","
        "\"value\":100,\"periodSeconds\":15},{\"type\":\"Pods\",\"value\":4,\"periodSeconds\":60}]}}},\"status\":{"
        "\"desiredReplicas\":7}}");
    const struct kube_hpa *hpa = o.hpa;
    assert_int_equal(hpa->min, 1);
    assert_int_equal(hpa->max, 40);
    assert_int_equal(hpa->desired, 7);
    assert_int_equal(hpa->n_metrics, 2);
    assert_string_equal(hpa->metrics[0].name, "s0-x");
    assert_false(hpa->metrics[0].is_value);
    assert_double_same(hpa->metrics[0].target, 1.5);
    assert_true(hpa->metrics[1].is_value);
    assert_double_same(hpa->metrics[1].target, 80);
    assert_true(hpa->has_behavior && hpa->down.has_window && hpa->down.has_tolerance);
    assert_false(hpa->up.has_window || hpa->up.has_tolerance);
    assert_int_equal(hpa->down.window_s, 0);
    assert_double_same(hpa->down.tolerance, 0.05);
    assert_string_equal(hpa->down.select, "Min");
    assert_string_equal(hpa->up.select, "Max");
    assert_int_equal(hpa->down.n_policies, 2);
    assert_true(hpa->down.policies[0].is_percent);
    assert_false(hpa->down.policies[1].is_percent);
    assert_int_equal(hpa->down.policies[1].value, 4);
    assert_int_equal(hpa->down.policies[1].period_s, 60);
}

static void test_an_endpoint_slice_is_read(void **state)
{
    struct kube_object o = decode(
        state, KUBE_ENDPOINT_SLICE,
        "{\"metadata\":{\"name\":\"n\",\"labels\":{\"kubernetes.io/"
        "service-name\":\"agents\"}},\"ports\":[{\"name\":\"grpc\",\"port\":"
        "6000},{\"name\":\"any\",\"port\":null}],\"endpoints\":[{\"addresses\":[\"10.0.0.1\",\"10.0.0.2\"],"
        "\"nodeName\":\"node1\","
        "\"targetRef\":{\"kind\":\"Pod\",\"name\":\"agent-x\"},\"conditions\":{\"ready\":false,\"terminating\":true}},{"
        "\"addresses\":[\"10.0.0.3\"]},{\"addresses\":[]}]}");
    const struct kube_endpoint_slice *slice = o.endpoint_slice;
    assert_string_equal(slice->service, "agents");
    assert_int_equal(slice->n_ports, 1);
    assert_string_equal(slice->ports[0].name, "grpc");
    assert_int_equal(slice->ports[0].number, 6000);
    assert_int_equal(slice->n_endpoints, 2);
    assert_string_equal(slice->endpoints[0].address, "10.0.0.1");
    assert_string_equal(slice->endpoints[0].node, "node1");
    assert_string_equal(slice->endpoints[0].pod, "agent-x");
    assert_true(slice->endpoints[0].is_terminating);
    assert_string_equal(slice->endpoints[1].node, "");
    assert_false(slice->endpoints[1].is_terminating);
}

static void test_a_scale_is_read(void **state)
{
    struct kube_scale scale;
    struct err e = {0};
    struct arena *arena = (struct arena *)*state;
    assert_int_equal(
        kube_decode_scale(str_of("{\"spec\":{\"replicas\":3},\"status\":{\"replicas\":2,\"selector\":\"a in (b,c)\"}}"),
                          arena, &scale, &e),
        0);
    assert_int_equal(scale.spec, 3);
    assert_int_equal(scale.status, 2);
    assert_string_equal(scale.selector, "a in (b,c)");
    assert_int_equal(kube_decode_scale(str_of("{}"), arena, &scale, &e), 0);
    assert_int_equal(scale.spec + scale.status, 0);
    assert_string_equal(scale.selector, "");
    assert_int_equal(kube_decode_scale(str_of("{\"spec\":{\"replicas\":\"3\"}}"), arena, &scale, &e), -1);
    assert_string_equal(e.text, "spec.replicas is not a whole number");
    assert_int_equal(kube_decode_scale(str_of("[]"), arena, &scale, &e), -1);
}

static void test_wrong_types_are_errors_that_name_the_field(void **state)
{
    static const struct {
        enum kube_kind kind;
        const char *json, *want;
    } cases[] = {
        {KUBE_POD, "[1]", "the object is not a JSON object"},
        {KUBE_POD, "{\"metadata\":[]}", "metadata is not an object"},
        {KUBE_POD, "{\"metadata\":{}}", "metadata.name is missing"},
        {KUBE_POD, "{\"metadata\":{\"name\":3}}", "metadata.name is not a text"},
        {KUBE_POD, "{\"metadata\":{\"name\":\"n\",\"creationTimestamp\":\"today\"}}",
         "metadata.creationTimestamp is not a time as RFC 3339 has it"},
        {KUBE_POD, "{" META ",\"spec\":{\"containers\":{}}}", "spec.containers is not a list"},
        {KUBE_POD, "{" META ",\"spec\":{\"containers\":[{},7]}}", "spec.containers[1] is not an object"},
        {KUBE_POD, "{" META ",\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"many\"}}}]}}",
         "spec.containers[0].resources.limits.nvidia.com/gpu is not a quantity"},
        {KUBE_POD, "{" META ",\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":true}]}}",
         "status.conditions[0].status is not a text"},
        {KUBE_SCALED_OBJECT, "{" META ",\"spec\":{\"triggers\":[{\"type\":\"external\",\"metadata\":{\"x\":5}}]}}",
         "spec.triggers[0].metadata.x is not a text"},
        {KUBE_SCALED_OBJECT, "{" META ",\"spec\":{\"minReplicaCount\":1.5}}",
         "spec.minReplicaCount is not a whole number"},
        {KUBE_HPA,
         "{" META
         ",\"spec\":{\"metrics\":[{\"type\":\"External\",\"external\":{\"target\":{\"averageValue\":\"x\"}}}]}}",
         "spec.metrics[0].external.target.averageValue is not a quantity"},
        {KUBE_HPA, "{" META ",\"spec\":{\"behavior\":{\"scaleUp\":{\"policies\":[{\"type\":\"Nodes\"}]}}}}",
         "spec.behavior.scaleUp.policies[0].type is neither Pods nor Percent"},
        {KUBE_HPA,
         "{" META ",\"spec\":{\"behavior\":{\"scaleUp\":{\"policies\":[{\"type\":\"Pods\"},{\"type\":\"Pods\"},{"
         "\"type\":\"Pods\"},"
         "{\"type\":\"Pods\"},{\"type\":\"Pods\"},{\"type\":\"Pods\"},{\"type\":\"Pods\"},{\"type\":\"Pods\"},{"
         "\"type\":\"Pods\"}]}}}}",
         "spec.behavior.scaleUp.policies has more than 8 policies"},
        {KUBE_ENDPOINT_SLICE, "{" META ",\"ports\":[{\"port\":70000}]}", "ports[0].port is not a port"},
        {KUBE_ENDPOINT_SLICE, "{" META ",\"endpoints\":[{\"addresses\":[9]}]}",
         "endpoints[0].addresses[0] is not a text"},
        {KUBE_ENDPOINT_SLICE, "{" META ",\"endpoints\":[{\"conditions\":{\"terminating\":\"no\"}}]}",
         "endpoints[0].conditions.terminating is neither true nor false"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct kube_object object;
        struct err e = {0};
        assert_int_equal(kube_decode(cases[i].kind, str_of(cases[i].json), (struct arena *)*state, &object, &e), -1);
        assert_int_equal(e.class, ERR_INVALID_ARGUMENT);
        assert_string_equal(e.text, cases[i].want);
    }
}

static void test_what_is_no_json_is_an_error(void **state)
{
    static const char *const cases[] = {"", "{", "{\"metadata\":{\"name\":\"\\u0000\"}}",
                                        "{\"metadata\":{\"name\":\"n\"}} x"};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct kube_object object;
        struct err e = {0};
        assert_int_equal(kube_decode(KUBE_POD, str_of(cases[i]), (struct arena *)*state, &object, &e), -1);
        assert_int_equal(e.class, ERR_INVALID_ARGUMENT);
    }
}

static void test_the_arena_is_the_ceiling(void **state)
{
    struct arena small ARENA_AUTO;
    struct kube_object object;
    struct err e = {0};
    (void)state;
    arena_init(&small, 256);
    assert_int_equal(kube_decode(KUBE_HPA, str_of("{" META "}"), &small, &object, &e), -1);
    assert_string_equal(e.text, "the object is too large");
}

/* ---- lists ---- */

struct items {
    struct buf texts; /* joined by '|' */
    int n_too_large, refuse_at;
};

static int note_item(void *context, struct str json)
{
    struct items *items = (struct items *)context;
    (void)buf_append(&items->texts, json.ptr, json.len);
    (void)buf_append_char(&items->texts, '|');
    return items->refuse_at && --items->refuse_at == 0 ? -1 : 0;
}

static void note_too_large(void *context)
{
    ((struct items *)context)->n_too_large++;
}

/* However the bytes are cut. */
static void test_lists_are_cut_into_items_wherever_the_bytes_break(void **state)
{
    static const struct {
        const char *text, *items, *meta; /* items NULL: refused; meta NULL: not whole */
    } cases[] = {
        {"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[{\"a\":1},{\"b\":{\"c\":[{}]}}]}\n",
         "{\"a\":1}|{\"b\":{\"c\":[{}]}}|", "{\"resourceVersion\":\"5\"}"},
        {" { \"items\" : [ { \"x\" : \"}]\\\"{\" } ] , \"metadata\" : { \"r\" : 1 } } ", "{ \"x\" : \"}]\\\"{\" }|",
         "{ \"r\" : 1 }"},
        {"{\"items\":[],\"metadata\":{}}", "", "{}"},
        {"{\"items\":null,\"metadata\":{}}", "", "{}"},
        {"{\"metadata\":{\"items\":[{\"no\":1}]},\"items\":[{}]}", "{}|", "{\"items\":[{\"no\":1}]}"},
        {"{\"x\":{\"metadata\":{},\"items\":[{}]},\"y\":[{\"items\":[{}]}],\"a\":\"items\",\"metadata\":{},\"items\":[]"
         "}",
         "", "{}"},
        {"{\"metadata\":{},\"items\":[{\"a\":1}", "{\"a\":1}|", NULL},
        {"{\"metadata\":{}}", "", NULL},
        {"{\"items\":[{}]}", "{}|", NULL},
        {"{\"items\":[1],\"metadata\":{}}", NULL, NULL},
        {"{\"items\":[[{}]],\"metadata\":{}}", NULL, NULL},
        {"<html>", NULL, NULL},
        {"{\"items\":[],\"metadata\":{}}{", NULL, NULL},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t step = 1; step < 9; step++) {
            struct items items = {0};
            struct kube_split split;
            int rc = 0;
            buf_init(&items.texts, 4096);
            kube_split_init(&split, note_item, note_too_large, &items);
            size_t len = strlen(cases[i].text);
            for (size_t at = 0; at < len && rc == 0; at += step)
                rc = kube_split_feed(&split, cases[i].text + at, len - at < step ? len - at : step);
            if (rc != (cases[i].items ? 0 : -1))
                fail_msg("case %zu by %zu: rc %d", i, step, rc);
            if (cases[i].items)
                assert_string_equal(buf_cstr(&items.texts), cases[i].items);
            if (cases[i].items)
                assert_int_equal(kube_split_is_whole(&split), cases[i].meta != NULL);
            if (cases[i].meta)
                assert_string_equal(buf_cstr(&split.meta), cases[i].meta);
            kube_split_fini(&split);
            buf_fini(&items.texts);
        }
}

static int feed(struct kube_split *split, const char *text)
{
    return kube_split_feed(split, text, strlen(text));
}

static void test_an_item_that_is_too_large_is_passed_over(void **state)
{
    struct items items = {0};
    struct kube_split split;
    static char filler[65536];
    (void)state;
    memset(filler, 'x', sizeof(filler));
    buf_init(&items.texts, 4096);
    kube_split_init(&split, note_item, note_too_large, &items);
    assert_int_equal(feed(&split, "{\"metadata\":{},\"items\":[{\"a\":\""), 0);
    for (int i = 0; i < 33; i++)
        assert_int_equal(kube_split_feed(&split, filler, sizeof(filler)), 0);
    assert_int_equal(feed(&split, "\"},{\"b\":1}]}"), 0);
    assert_int_equal(items.n_too_large, 1);
    assert_string_equal(buf_cstr(&items.texts), "{\"b\":1}|");
    assert_true(kube_split_is_whole(&split));
    assert_true(split.part.capacity <= KUBE_OBJECT_BYTES_MAX + 1);
    kube_split_fini(&split);
    buf_fini(&items.texts);
}

static void test_an_item_that_is_refused_ends_the_list(void **state)
{
    struct items items = {.refuse_at = 2};
    struct kube_split split;
    static const char text[] = "{\"metadata\":{},\"items\":[{\"a\":1},{\"b\":1},{\"c\":1}]}";
    (void)state;
    buf_init(&items.texts, 4096);
    kube_split_init(&split, note_item, note_too_large, &items);
    assert_int_equal(feed(&split, text), -1);
    assert_string_equal(buf_cstr(&items.texts), "{\"a\":1}|{\"b\":1}|");
    kube_split_fini(&split);
    buf_fini(&items.texts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantities_are_exact_to_a_thousandth_and_rounded_up),
        cmocka_unit_test(test_times_have_fractions_and_offsets),
        cmocka_unit_test_setup_teardown(test_metadata_is_the_same_for_all_kinds, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_pod_is_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_empty_pod_is_absent_and_not_zero, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ports_are_of_gpu_containers_first_and_tcp_only, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_more_ports_than_there_is_room_for_are_left_out_from_the_end, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_annotations_say_where_a_page_is, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_latest_start_is_of_the_containers_that_use_gpus, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_phases_and_groups, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_scaled_object_has_the_defaults_of_keda, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_scaled_object_is_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_annotations_pause_a_scaled_object, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_hpa_is_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_endpoint_slice_is_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_scale_is_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_wrong_types_are_errors_that_name_the_field, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_no_json_is_an_error, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_arena_is_the_ceiling, set_up, tear_down),
        cmocka_unit_test(test_lists_are_cut_into_items_wherever_the_bytes_break),
        cmocka_unit_test(test_an_item_that_is_too_large_is_passed_over),
        cmocka_unit_test(test_an_item_that_is_refused_ends_the_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
