/* Metadata of arbitrary pairs: what is accepted keeps its promises (name, target, ranges, an evaluation and an
 * explanation that hold together), what is refused has a class and a sentence, and the cache agrees with the parser.
 * Input: a byte for the program (agent or hub), then lines of key=value. */
#include "signals/signals.h"
#include "snapshot/snapshot.h"
#include "trigger/trigger.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PAIRS_MAX = TRIGGER_PAIRS_MAX + 2 };

static void check(bool is_true)
{
    if (!is_true)
        abort();
}

static size_t split(struct str text, struct trigger_pair *pairs)
{
    size_t n = 0;
    while (text.ptr && n < PAIRS_MAX) {
        struct str line = str_cut(&text, '\n');
        struct str key = str_cut(&line, '=');
        pairs[n++] = (struct trigger_pair){.key = key, .value = line};
    }
    return n;
}

static void check_trigger(const struct trigger *t)
{
    size_t len = strlen(t->metric_name);
    check(len >= 1 && len <= 120 && strcmp(t->metric_name, ".") != 0 && strcmp(t->metric_name, "..") != 0);
    check(t->metric_name[strspn(t->metric_name, "abcdefghijklmnopqrstuvwxyz0123456789._:-")] == '\0');
    check(t->target >= 0.001 && t->target <= 1e9);
    check(t->activation >= 0 && t->activation <= 1e12);
    check(t->metric < TRIGGER_METRIC_COUNT && t->aggregation < SCALING_AGGREGATION_COUNT);
    check(t->scope <= TRIGGER_CLUSTER && t->on_missing <= TRIGGER_MISSING_IGNORE);
    check(t->gpu_index >= -1 && t->gpu_index < SNAPSHOT_DEVICES_MAX);
    check(t->window_ns >= 0 && t->window_ns <= SNAPSHOT_WINDOW_MAX_NS);
    check(t->activation_window_ns >= 0 && t->activation_window_ns <= SNAPSHOT_WINDOW_MAX_NS);
    check(t->poll_interval_ns >= NS_PER_S && t->poll_interval_ns <= 3600 * NS_PER_S);
    check(t->n_warnings <= TRIGGER_WARNINGS_MAX);
    for (size_t i = 0; i < t->n_warnings; i++)
        check(t->warnings[i][0] && str_is_utf8(str_of(t->warnings[i])));
    check((t->wake_endpoint[0] != 0) == (t->wake_metric[0] != 0));
    check(t->n_parts <= TRIGGER_PARTS_MAX && t->n_parts != 1 && trigger_unit(t) != NULL);
    if (t->n_parts == 0)
        check((t->engine_metric[0] != 0) == (t->metric == TRIGGER_ENGINE_METRIC));
    bool needs_page = trigger_metric_is_engine(t->metric) && t->scope != TRIGGER_WORKLOAD && !t->is_for_hub;
    check((trigger_endpoint(t) != NULL) == needs_page);
    check(!trigger_endpoint(t) || trigger_endpoint(t) == trigger_endpoint_hint(t));
}

static void check_parts(const struct trigger *t)
{
    char types[TRIGGER_TYPES_MAX];
    trigger_show_types(t, types);
    check(types[0] && strlen(types) < TRIGGER_TYPES_MAX - 1);
    for (size_t i = 0; i < t->n_parts; i++) {
        check(t->scope == TRIGGER_WORKLOAD && t->parts[i]->scope == TRIGGER_WORKLOAD && t->parts[i]->n_parts == 0);
        check(i > 0 || t->parts[i]->metric == t->metric);
        check_trigger(t->parts[i]);
    }
}

/* Two whole GPUs, one of them silent for a minute, and a MIG GPU with one device. */
static struct snapshot *node_snapshot(void)
{
    static const struct snapshot_device devices[] = {
        {.kind = SNAPSHOT_GPU, .index = 0, .uuid = "GPU-0", .product = "NVIDIA H100", .gpu_instance = -1},
        {.kind = SNAPSHOT_GPU, .index = 1, .uuid = "GPU-1", .product = "NVIDIA H100", .gpu_instance = -1},
        {.kind = SNAPSHOT_MIG_PARENT, .index = 2, .uuid = "GPU-2", .product = "NVIDIA H100", .gpu_instance = -1},
        {.kind = SNAPSHOT_MIG, .index = 2, .uuid = "MIG-2", .parent_uuid = "GPU-2", .mig_profile = "1g.10gb"},
    };
    struct snapshot_store *store = snapshot_store_new(NS_PER_S);
    for (size_t i = 0; i < ARRAY_LEN(devices); i++) {
        struct snapshot_device *d = snapshot_store_add(store, &devices[i]);
        for (unsigned field = 0; field < SNAPSHOT_FIELD_COUNT; field++) {
            int64_t taken_ns = (i == 1 ? 40 : 100) * NS_PER_S;
            if (field % 7 != i)
                snapshot_store_record(store, d, (enum snapshot_field)field, 10 + field, taken_ns);
            else
                snapshot_store_fail(d, (enum snapshot_field)field, SNAPSHOT_UNSUPPORTED);
        }
    }
    struct snapshot *s = snapshot_store_publish(store, 100 * NS_PER_S);
    snapshot_store_free(store);
    return s;
}

static void check_evaluation(const struct trigger *t)
{
    static struct snapshot *s;
    if (!s)
        s = node_snapshot();
    ARENA_AUTO struct arena arena;
    BUF_AUTO struct buf out;
    arena_init(&arena, 65536);
    buf_init(&out, 65536);
    struct trigger_evaluation ev;
    struct trigger_explanation said;
    trigger_evaluate(t, s, 101 * NS_PER_S, TRIGGER_ASK_ALL, &arena, &ev);
    trigger_explain(&ev, &said);
    if (ev.value_error.class == ERR_NONE)
        check(isfinite(ev.value) && ev.value >= 0 && ev.value <= 1e12 && said.rule[0] && ev.n_inputs > 0);
    else
        check(ev.value_error.text[0] && str_is_utf8(str_of(ev.value_error.text)));
    struct json j;
    json_init(&j, &out, 0);
    trigger_explain_json(&ev, &j);
    trigger_explain_text(&ev, &out);
    check(!out.is_overflowed && str_is_utf8(str_of(buf_cstr(&out))));
}

static struct signals_history *page_history(void)
{
    static const char text[] =
        "vllm:num_requests_waiting 3\nvllm:num_requests_running 2\nvllm:kv_cache_usage_perc 0.5\n"
        "vllm:generation_tokens_total 100\n";
    struct signals_history *history = signals_history_new();
    struct signals_reader *reader = signals_reader_new(NULL);
    struct err e;
    for (int64_t i = 0; i < 3; i++) {
        signals_reader_begin(reader);
        check(signals_reader_feed(reader, text, sizeof(text) - 1, &e) == 0);
        signals_history_add(history, signals_reader_end(reader, &e), (90 + i * 5) * NS_PER_S);
    }
    signals_reader_free(reader);
    return history;
}

/* The page that the trigger names, read three times. */
static void check_page(const struct trigger *t)
{
    static struct signals_history *history;
    if (!history)
        history = page_history();
    struct signals_feed feed = {
        .url = "http://a/metrics", .history = history, .error = "HTTP 500", .interval_ns = 5 * NS_PER_S};
    BUF_AUTO struct buf out;
    buf_init(&out, 65536);
    struct trigger_evaluation ev;
    trigger_evaluate_page(t, &feed, NULL, 101 * NS_PER_S, TRIGGER_ASK_ALL, &ev);
    if (ev.value_error.class == ERR_NONE)
        check(trigger_endpoint(t) && isfinite(ev.value) && ev.value >= 0 && ev.value <= 1e12);
    else
        check(ev.value_error.text[0] && str_is_utf8(str_of(ev.value_error.text)));
    struct json j;
    json_init(&j, &out, 0);
    trigger_explain_json(&ev, &j);
    trigger_explain_text(&ev, &out);
    check(!out.is_overflowed && str_is_utf8(str_of(buf_cstr(&out))));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct trigger_default entry = {
        .name = "gpu_memory_used", .has_target = true, .target = 85, .has_gpu_index = true, .gpu_index = 1};
    if (size == 0)
        return 0;
    struct trigger_settings settings = {data[0] & 1 ? TRIGGER_WORKLOAD : TRIGGER_NODE, &entry, 1};
    struct trigger_pair pairs[PAIRS_MAX];
    size_t n = split((struct str){(const char *)data + 1, size - 1}, pairs);

    struct err e = {.class = ERR_NONE};
    struct trigger *t = trigger_parse(pairs, n, &settings, &e);
    struct trigger_cache *cache = trigger_cache_new(&settings, 2);
    struct trigger *cached = trigger_cache_get(cache, pairs, n, NULL);
    check(!t == !cached && trigger_cache_len(cache) == (cached ? 1 : 0));
    if (t) {
        check_trigger(t);
        check(strcmp(t->metric_name, cached->metric_name) == 0 && t->metric == cached->metric);
        check_parts(t);
        check_evaluation(t);
        check_page(t);
    } else {
        check(e.class == ERR_INVALID_ARGUMENT && e.text[0] && str_is_utf8(str_of(e.text)));
    }
    trigger_unref(t);
    trigger_unref(cached);
    trigger_cache_free(cache);
    return 0;
}
