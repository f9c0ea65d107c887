/* `call`: speaks KEDA's ExternalScaler, Health and our Node service to any address, as KEDA does. */
#include "cli/cli.h"
#include "cli/client.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct option_def call_options[] = {
    {.name = "metadata",
     .kind = OPTION_LIST,
     .fallback = "",
     .metavar = "KEY=VALUE",
     .help = "one entry of the trigger's metadata; may be repeated",
     .letter = 'm'},
    {.name = "name", .kind = OPTION_TEXT, .fallback = "call", .metavar = "NAME", .help = "name of the ScaledObject"},
    {.name = "namespace",
     .kind = OPTION_TEXT,
     .fallback = "default",
     .metavar = "NS",
     .help = "its namespace",
     .letter = 'n'},
    {.name = "metric-name",
     .kind = OPTION_TEXT,
     .fallback = "",
     .metavar = "NAME",
     .help = "metricName of GetMetrics (default: as the spec says)"},
    {.name = "service",
     .kind = OPTION_TEXT,
     .fallback = "",
     .metavar = "NAME",
     .help = "service of `health`: \"\" the process, nvml the driver"},
    {.name = "explain",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "also say how the value came about (our agents and hubs only)"},
    {.name = "for",
     .kind = OPTION_DURATION,
     .fallback = "0s",
     .metavar = "D",
     .help = "end a stream after this time; 0 = never",
     .min = 0,
     .max = 24 * 3600 * NS_PER_S},
    {.name = "output",
     .kind = OPTION_CHOICE,
     .fallback = "text",
     .metavar = "FORMAT",
     .help = "form of the output",
     .choices = "text|json",
     .letter = 'o'},
    CLIENT_OPTIONS,
};

enum { ENTRIES_MAX = 64, GRPC_EXIT_BASE = 64 };

/* What all questions share. */
struct question {
    struct option_set *set;
    struct client client;
    Externalscaler__ScaledObjectRef ref;
    Externalscaler__ScaledObjectRef__ScalerMetadataEntry entries[ENTRIES_MAX], *rows[ENTRIES_MAX];
    char *keys[ENTRIES_MAX];
    struct buf out;
    char metric_name[256];       /* as GetMetricSpec said */
    char time[TIME_RFC3339_MAX]; /* of a stream's message, "" otherwise */
    bool is_json;
};

static char *unconst(const char *text)
{
    return (char *)(uintptr_t)text; /* protobuf-c's structs know no const */
}

static int fill_ref(struct question *q, struct err *e)
{
    size_t n;
    char *const *pairs = option_list(q->set, "metadata", &n);
    if (n > ENTRIES_MAX)
        return err_set(e, ERR_INVALID_ARGUMENT, "--metadata: at most %d entries", ENTRIES_MAX);
    externalscaler__scaled_object_ref__init(&q->ref);
    q->ref.name = unconst(option_text(q->set, "name"));
    q->ref.namespace_ = unconst(option_text(q->set, "namespace"));
    q->ref.scalermetadata = q->rows;
    for (size_t i = 0; i < n; i++) {
        struct str value = str_of(pairs[i]), key = str_cut(&value, '=');
        if (!value.ptr || key.len == 0)
            return err_set(e, ERR_INVALID_ARGUMENT, "--metadata \"%s\" is not KEY=VALUE", pairs[i]);
        q->keys[i] = mem_strndup(key.ptr, key.len);
        externalscaler__scaled_object_ref__scaler_metadata_entry__init(&q->entries[i]);
        q->entries[i].key = q->keys[i];
        q->entries[i].value = unconst(value.ptr);
        q->rows[i] = &q->entries[i];
        q->ref.n_scalermetadata = i + 1;
    }
    return 0;
}

static int undecodable(struct err *e)
{
    return err_set(e, ERR_INTERNAL, "the answer could not be decoded");
}

/* One JSON object a line; "time" first where there is one. */
static void begin_json(struct question *q, struct json *j)
{
    json_init(j, &q->out, 0);
    json_object_begin(j);
    if (*q->time)
        json_kv_string(j, "time", q->time);
}

static void end_json(struct question *q, struct json *j)
{
    json_object_end(j);
    (void)buf_append_char(&q->out, '\n');
}

/* The start of a text line: the time, where there is one, and what the line says. */
static void begin_text(struct question *q, const char *what)
{
    (void)buf_printf(&q->out, "%s%s%-8s ", q->time, *q->time ? " " : "", what);
}

/* People see thousandths, as the HPA counts; JSON has every digit that was sent. */
static void print_number(struct question *q, const char *what, const char *name, double number)
{
    char text[NUM_TEXT_MAX];
    num_format_milli(text, number);
    if (q->is_json) {
        struct json j;
        begin_json(q, &j);
        json_kv_string(&j, "metric", name);
        json_kv_double(&j, what, number);
        end_json(q, &j);
    } else {
        begin_text(q, what);
        (void)buf_printf(&q->out, "%s = %s\n", name, text);
    }
}

static void print_health(struct question *q, const char *word)
{
    if (q->is_json) {
        struct json j;
        begin_json(q, &j);
        json_kv_string(&j, "health", word);
        end_json(q, &j);
    } else {
        begin_text(q, "health");
        (void)buf_printf(&q->out, "%s\n", word);
    }
}

/* False once nobody reads any more. */
static bool flush(struct question *q)
{
    if (q->out.len)
        (void)fwrite(q->out.data, 1, q->out.len, stdout);
    buf_reset(&q->out);
    return cli_flush();
}

/* As KEDA reads it: the float where it is above 0, else the integer. keda.md 1 */
static double either(double real, int64_t whole)
{
    return real > 0 ? real : (double)whole;
}

static int print_specs(struct question *q, struct str message, struct err *e)
{
    Externalscaler__GetMetricSpecResponse *response =
        externalscaler__get_metric_spec_response__unpack(NULL, message.len, (const uint8_t *)message.ptr);
    if (!response)
        return undecodable(e);
    for (size_t i = 0; i < response->n_metricspecs; i++) {
        const Externalscaler__MetricSpec *spec = response->metricspecs[i];
        (void)str_copy(q->metric_name, sizeof(q->metric_name), str_of(spec->metricname));
        print_number(q, "target", spec->metricname, either(spec->targetsizefloat, spec->targetsize));
    }
    externalscaler__get_metric_spec_response__free_unpacked(response, NULL);
    return 0;
}

static int print_active(struct question *q, struct str message, struct err *e)
{
    Externalscaler__IsActiveResponse *response =
        externalscaler__is_active_response__unpack(NULL, message.len, (const uint8_t *)message.ptr);
    if (!response)
        return undecodable(e);
    if (q->is_json) {
        struct json j;
        begin_json(q, &j);
        json_kv_bool(&j, "active", response->result);
        end_json(q, &j);
    } else {
        begin_text(q, "active");
        (void)buf_printf(&q->out, "%s\n", response->result ? "true" : "false");
    }
    externalscaler__is_active_response__free_unpacked(response, NULL);
    return 0;
}

static struct str content(struct buf *b)
{
    return (struct str){b->data ? b->data : "", b->len};
}

/* ---- the questions ---- */

static int ask_spec(struct question *q, struct err *e)
{
    BUF_AUTO struct buf response;
    buf_init(&response, 4 << 20);
    if (client_call(&q->client, "/externalscaler.ExternalScaler/GetMetricSpec", &q->ref.base, &response, e) < 0)
        return -1;
    return print_specs(q, content(&response), e);
}

static int ask_metrics(struct question *q, struct err *e)
{
    BUF_AUTO struct buf bytes;
    buf_init(&bytes, 4 << 20);
    Externalscaler__GetMetricsRequest request;
    externalscaler__get_metrics_request__init(&request);
    request.scaledobjectref = &q->ref;
    request.metricname =
        *option_text(q->set, "metric-name") ? unconst(option_text(q->set, "metric-name")) : q->metric_name;
    if (client_call(&q->client, "/externalscaler.ExternalScaler/GetMetrics", &request.base, &bytes, e) < 0)
        return -1;
    Externalscaler__GetMetricsResponse *response =
        externalscaler__get_metrics_response__unpack(NULL, bytes.len, (const uint8_t *)content(&bytes).ptr);
    if (!response)
        return undecodable(e);
    for (size_t i = 0; i < response->n_metricvalues; i++)
        print_number(q, "value", response->metricvalues[i]->metricname,
                     either(response->metricvalues[i]->metricvaluefloat, response->metricvalues[i]->metricvalue));
    externalscaler__get_metrics_response__free_unpacked(response, NULL);
    return 0;
}

static int ask_active(struct question *q, struct err *e)
{
    BUF_AUTO struct buf response;
    buf_init(&response, 4 << 20);
    if (client_call(&q->client, "/externalscaler.ExternalScaler/IsActive", &q->ref.base, &response, e) < 0)
        return -1;
    return print_active(q, content(&response), e);
}

static int ask_explain(struct question *q, struct err *e)
{
    BUF_AUTO struct buf bytes;
    buf_init(&bytes, 4 << 20);
    Kedagpuscaler__V1__ExplainRequest request;
    kedagpuscaler__v1__explain_request__init(&request);
    request.scaledobjectref = &q->ref;
    if (client_call(&q->client, "/kedagpuscaler.v1.Node/Explain", &request.base, &bytes, e) < 0)
        return -1;
    Kedagpuscaler__V1__ExplainResponse *response =
        kedagpuscaler__v1__explain_response__unpack(NULL, bytes.len, (const uint8_t *)content(&bytes).ptr);
    if (!response)
        return undecodable(e);
    (void)buf_append_str(&q->out, q->is_json ? response->json : response->text);
    if (q->out.len && q->out.data[q->out.len - 1] != '\n')
        (void)buf_append_char(&q->out, '\n');
    kedagpuscaler__v1__explain_response__free_unpacked(response, NULL);
    return 0;
}

static int ask_health(struct question *q, struct err *e)
{
    static const char *const words[] = {"UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"};
    BUF_AUTO struct buf bytes;
    buf_init(&bytes, 4096);
    Grpc__Health__V1__HealthCheckRequest request;
    grpc__health__v1__health_check_request__init(&request);
    request.service = unconst(option_text(q->set, "service"));
    if (client_call(&q->client, "/grpc.health.v1.Health/Check", &request.base, &bytes, e) < 0)
        return -1;
    Grpc__Health__V1__HealthCheckResponse *response =
        grpc__health__v1__health_check_response__unpack(NULL, bytes.len, (const uint8_t *)content(&bytes).ptr);
    if (!response)
        return undecodable(e);
    unsigned status = (unsigned)response->status;
    print_health(q, words[status < ARRAY_LEN(words) ? status : 0]);
    grpc__health__v1__health_check_response__free_unpacked(response, NULL);
    return 0;
}

/* ---- streams ---- */

struct listening {
    struct question *question;
    int (*print)(struct question *, struct str, struct err *);
};

static bool on_stream_message(void *context, struct str message)
{
    struct listening *l = context;
    struct err e;
    time_format_rfc3339(l->question->time, time_wall_ns());
    bool is_fine = l->print(l->question, message, &e) == 0;
    *l->question->time = '\0';
    return flush(l->question) && is_fine;
}

static int listen_to(struct question *q, const char *path, int (*print)(struct question *, struct str, struct err *),
                     struct err *e)
{
    struct listening listening = {q, print};
    struct client_stream stream = {
        .message = on_stream_message, .context = &listening, .max_ns = option_duration(q->set, "for")};
    return client_stream(&q->client, path, &q->ref.base, &stream, e);
}

static int stream_active(struct question *q, struct err *e)
{
    return listen_to(q, "/externalscaler.ExternalScaler/StreamIsActive", print_active, e);
}

static int stream_spec(struct question *q, struct err *e)
{
    return listen_to(q, "/externalscaler.ExternalScaler/StreamMetricSpec", print_specs, e);
}

/* As KEDA asks on each poll: spec, metrics, activity. */
static int ask_all(struct question *q, struct err *e)
{
    return ask_spec(q, e) < 0 || ask_metrics(q, e) < 0 || ask_active(q, e) < 0 ? -1 : 0;
}

static const struct {
    const char *name;
    int (*ask)(struct question *, struct err *);
} questions[] = {
    {"all", ask_all},         {"spec", ask_spec},     {"metrics", ask_metrics},         {"active", ask_active},
    {"explain", ask_explain}, {"health", ask_health}, {"stream-active", stream_active}, {"stream-spec", stream_spec},
};

static int find_question(const char *name, struct err *e)
{
    const char *names[ARRAY_LEN(questions)];
    for (size_t i = 0; i < ARRAY_LEN(questions); i++) {
        names[i] = questions[i].name;
        if (strcmp(name, names[i]) == 0)
            return (int)i;
    }
    const char *near = str_nearest(name, names, ARRAY_LEN(names));
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "unknown question \"%s\"%s%s%s; it is one of all, spec, metrics, active, explain, health, "
                   "stream-active, stream-spec",
                   name, near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
}

/* Does an agent that failed with this have more to say? A refused trigger it says nothing about, and of a server that
 * did not answer in time nothing is asked again. */
static bool has_explanation(enum err_class class)
{
    return class == ERR_UNAVAILABLE || class == ERR_FAILED_PRECONDITION || class == ERR_INTERNAL;
}

static int ask(struct question *q, int which, const char *address)
{
    struct err e, second;
    int rc = client_init(&q->client, q->set, address, &e);
    bool has_dialled = rc == 0;
    if (rc == 0)
        rc = questions[which].ask(q, &e);
    bool wants_more = option_bool(q->set, "explain") && questions[which].ask != ask_explain;
    if (rc == 0 && wants_more)
        rc = ask_explain(q, &e);
    else if (has_dialled && wants_more && has_explanation(e.class))
        (void)ask_explain(q, &second); /* the first failure is the one to report */
    (void)flush(q);
    client_fini(&q->client);
    if (rc == 0)
        return 0;
    if (!has_dialled)
        return cli_fail(&e, "");
    (void)fprintf(stderr, "%s: %s: %s: %s\n", CLI_PROGRAM, address, err_class_name(e.class), e.text);
    return GRPC_EXIT_BASE + err_grpc_status(e.class);
}

static int run_call(struct option_set *set)
{
    struct err e;
    size_t n = set->operands.len;
    if (n == 0) {
        (void)err_set(&e, ERR_INVALID_ARGUMENT, "call needs the ADDRESS to ask");
        return cli_fail(&e, "keda-gpu-scaler call 127.0.0.1:6000 -m profile=triton-inference");
    }
    char **operands = set->operands.items;
    size_t at = n == 2 && find_question(operands[0], NULL) < 0 && find_question(operands[1], NULL) >= 0 ? 1 : 0;
    int which = find_question(n == 2 ? operands[at] : "all", &e); /* either may come first */
    if (which < 0)
        return cli_fail(&e, "");
    const char *address = n == 2 ? operands[1 - at] : operands[0];
    struct question *q = mem_new(struct question);
    q->set = set;
    q->is_json = strcmp(option_text(set, "output"), "json") == 0;
    buf_init(&q->out, 16 << 20);
    int rc = fill_ref(q, &e) < 0 ? cli_fail(&e, "") : ask(q, which, address);
    for (size_t i = 0; i < ENTRIES_MAX; i++)
        free(q->keys[i]);
    buf_fini(&q->out);
    free(q);
    return rc;
}

const struct command command_call = {
    .name = "call",
    .summary = "Ask any external scaler what KEDA would ask",
    .usage = "[QUESTION] ADDRESS [flags]",
    .choices = "all|spec|metrics|active|explain|health|stream-active|stream-spec",
    .max_operands = 2,
    .details =
        "QUESTION is all (the default: spec, metrics and active, as KEDA asks on each poll), spec, metrics, active,\n"
        "explain, health, stream-active or stream-spec.\n\n"
        "Example: keda-gpu-scaler call 127.0.0.1:6000 -m metricType=gpu_utilization -m targetValue=80 --explain\n\n"
        "Exit status: 0 answered, 1 it could not be asked (a file is missing), 2 wrong usage, 64 + the gRPC status "
        "code\n"
        "when the call failed: 67 metadata refused, 68 no answer in time, 73 precondition, 78 not reachable or no "
        "data.",
    .options = call_options,
    .n_options = ARRAY_LEN(call_options),
    .run = run_call,
};
