/* Rows of a table into samples: by rank, or ranks together. */
#include "enginesim/page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LABELS_MAX = 8 };

struct writer {
    const struct model *m;
    double wall_s;
    struct promtext text;
};

/* Labels of one sample, and the texts of those that are numbers. */
struct labels {
    struct promtext_label items[LABELS_MAX];
    size_t n;
    char dp[24], tp[24];
};

static const struct page_table *table_of(enum script_engine engine)
{
    switch (engine) {
    case SCRIPT_ENGINE_VLLM:
        return &page_vllm;
    case SCRIPT_ENGINE_SGLANG:
        return &page_sglang;
    case SCRIPT_ENGINE_TGI:
        return &page_tgi;
    case SCRIPT_ENGINE_TRITON:
        return &page_triton;
    case SCRIPT_ENGINE_TRITON_TRTLLM:
        return &page_triton_trtllm;
    case SCRIPT_ENGINE_TRTLLM:
        return &page_trtllm;
    case SCRIPT_ENGINE_LLAMACPP:
    case SCRIPT_ENGINE_COUNT:
        break;
    }
    return &page_llamacpp;
}

/* ---- values ---- */

static double output_rate(const struct queue *q, const struct script_server *s)
{
    double batch_s = s->slots / s->service_rate;
    return (double)q->running.n * s->output_tokens / batch_s;
}

static double rank_value(const struct writer *w, int source, size_t rank)
{
    const struct model *m = w->m;
    const struct script_server *s = m->server;
    const struct queue *q = &m->ranks[rank].queue;
    if (source >= PAGE_SUM)
        return q->measures[source - PAGE_SUM].sum;
    switch ((enum page_source)source) {
    case PAGE_ONE:
        return 1;
    case PAGE_RUNNING:
        return (double)q->running.n;
    case PAGE_WAITING:
        return (double)q->waiting.n;
    case PAGE_KV:
        return model_kv_percent(m, rank) / 100;
    case PAGE_KV_TOKENS:
        return floor((double)q->running.n * (s->prompt_tokens + s->output_tokens / 2));
    case PAGE_SLOTS:
        return s->slots;
    case PAGE_BUSY:
        return model_busy_percent(m, rank) / 100;
    case PAGE_PROMPT:
        return q->prompt_tokens;
    case PAGE_OUTPUT:
        return queue_output_tokens(q);
    case PAGE_OUTPUT_RATE:
        return output_rate(q, s);
    case PAGE_FINISHED:
        return q->finished;
    case PAGE_ABORTED:
        return q->aborted;
    case PAGE_ARRIVED:
        return q->arrived;
    case PAGE_SINCE:
        return w->wall_s + m->since_s;
    case PAGE_ZERO:
    case PAGE_MEASURE:
    case PAGE_SUM:
        break;
    }
    return 0;
}

/* Of all ranks: counts add up; shares are those of the fullest; a time is that of the first. */
static double together(const struct writer *w, int source)
{
    bool is_share = source == PAGE_KV || source == PAGE_BUSY;
    double value = rank_value(w, source, 0);
    bool is_same = source == PAGE_ONE || source == PAGE_SINCE;
    for (size_t i = 1; i < w->m->n_ranks && !is_same; i++) {
        double next = rank_value(w, source, i);
        value = is_share ? fmax(value, next) : value + next;
    }
    return value;
}

/* ---- samples ---- */

static void add_label(struct labels *l, const char *name, const char *value)
{
    l->items[l->n++] = (struct promtext_label){name, value};
}

static void fill_labels(const struct writer *w, const struct page_row *row, struct labels *l, size_t rank, size_t tp)
{
    const struct script_server *s = w->m->server;
    *l = (struct labels){.n = 0};
    (void)snprintf(l->dp, sizeof(l->dp), "%zu", rank);
    (void)snprintf(l->tp, sizeof(l->tp), "%zu", s->is_attention_dp ? rank : tp);
    switch (row->labels) {
    case PAGE_OF_ENGINE:
        add_label(l, "engine", s->names == SCRIPT_NAMES_OLD ? "" : l->dp);
        add_label(l, "model_name", s->model);
        break;
    case PAGE_OF_NAME:
        add_label(l, "model_name", s->model);
        break;
    case PAGE_OF_SGLANG:
        add_label(l, "dp_rank", s->ranks > 1 ? l->dp : "");
        add_label(l, "engine_type", "unified");
        add_label(l, "model_name", s->model);
        add_label(l, "moe_ep_rank", s->names == SCRIPT_NAMES_OLD ? "" : "0");
        add_label(l, "pp_rank", "0");
        add_label(l, "tp_rank", l->tp);
        break;
    case PAGE_OF_VERSION:
        add_label(l, "model", s->model);
        add_label(l, "version", "1");
        break;
    case PAGE_OF_GPU:
        add_label(l, "gpu_uuid", "GPU-00000000-0000-4000-8000-000000000001");
        break;
    case PAGE_OF_NOTHING:
        break;
    }
    if (row->extra.name)
        l->items[l->n++] = row->extra;
}

static void add_histogram(struct promtext_histogram *to, double *cumulative, const struct queue_histogram *from)
{
    double so_far = 0;
    for (size_t i = 0; i < QUEUE_BOUNDS; i++) {
        so_far += from->counts[i];
        cumulative[i] += so_far;
    }
    to->sum += from->sum;
    to->count += from->count;
}

/* rank SIZE_MAX: all together. */
static void write_sample(struct writer *w, const struct page_row *row, size_t rank, size_t tp)
{
    struct labels l;
    bool is_one = rank != SIZE_MAX;
    fill_labels(w, row, &l, is_one ? rank : 0, tp);
    if (row->source < PAGE_MEASURE || row->source >= PAGE_SUM) {
        double value = is_one ? rank_value(w, row->source, rank) : together(w, row->source);
        promtext_sample(&w->text, l.items, l.n, value * row->scale);
        return;
    }
    enum queue_measure measure = (enum queue_measure)(row->source - PAGE_MEASURE);
    double cumulative[QUEUE_BOUNDS] = {0};
    struct promtext_histogram h = {.bounds = queue_bounds(measure), .cumulative = cumulative, .n_bounds = QUEUE_BOUNDS};
    for (size_t i = is_one ? rank : 0; i < (is_one ? rank + 1 : w->m->n_ranks); i++)
        add_histogram(&h, cumulative, &w->m->ranks[i].queue.measures[measure]);
    promtext_histogram(&w->text, l.items, l.n, &h);
}

static void write_samples(struct writer *w, const struct page_row *row)
{
    const struct script_server *s = w->m->server;
    bool is_by_rank = row->labels == PAGE_OF_ENGINE || row->labels == PAGE_OF_SGLANG;
    if (!is_by_rank) {
        write_sample(w, row, SIZE_MAX, 0);
        return;
    }
    bool is_repeated = row->labels == PAGE_OF_SGLANG && !s->is_attention_dp;
    for (size_t rank = 0; rank < w->m->n_ranks; rank++)
        for (size_t tp = 0; tp < (is_repeated ? s->tensor_ranks : 1); tp++)
            write_sample(w, row, rank, tp);
}

/* ---- the page ---- */

static bool is_there(const struct script_server *s, const struct page_row *row)
{
    bool is_old_only = (row->when & PAGE_IF_OLD) && !(row->when & PAGE_IF_NEW);
    bool is_new_only = (row->when & PAGE_IF_NEW) && !(row->when & PAGE_IF_OLD);
    return !(is_old_only && s->names == SCRIPT_NAMES_NEW) && !(is_new_only && s->names == SCRIPT_NAMES_OLD) &&
           !((row->when & PAGE_IF_REASONS) && !s->has_reasons) &&
           !((row->when & PAGE_IF_ONE_PROCESS) && s->api_servers > 1);
}

/* Python's client library dates its counters and histograms, where one process has them. Rows: of one family. */
static void write_created(struct writer *w, const struct page_row *rows, size_t n)
{
    char name[128];
    (void)snprintf(name, sizeof(name), "%s_created", rows->family.name);
    const struct promtext_family family = {.name = name, .help = rows->family.help, .type = PROMTEXT_GAUGE};
    promtext_begin(&w->text, &family);
    for (size_t i = 0; i < n; i++) {
        struct page_row created = rows[i];
        created.source = PAGE_SINCE;
        created.scale = 1;
        write_samples(w, &created);
    }
}

static bool is_dated(const struct writer *w, const struct page_table *table, const struct page_row *row)
{
    return table->has_created && w->m->server->api_servers == 1 &&
           (row->family.type == PROMTEXT_COUNTER || row->family.type == PROMTEXT_HISTOGRAM);
}

/* What web frameworks put on such pages: series that no scaler wants. */
static void write_pad(struct writer *w, size_t bytes)
{
    static const struct promtext_family family = {
        .name = "http_request_duration_seconds", .help = "Latency of requests by handler.", .type = PROMTEXT_HISTOGRAM};
    double cumulative[QUEUE_BOUNDS] = {0};
    const struct promtext_histogram h = {
        .bounds = queue_bounds(QUEUE_WHOLE), .cumulative = cumulative, .n_bounds = QUEUE_BOUNDS};
    promtext_begin(&w->text, &family);
    for (unsigned i = 0; w->text.out->len < bytes && !w->text.out->is_overflowed; i++) {
        char handler[32];
        (void)snprintf(handler, sizeof(handler), "/v1/handler/%u", i);
        const struct promtext_label labels[] = {{"handler", handler}, {"method", "POST"}};
        promtext_histogram(&w->text, labels, ARRAY_LEN(labels), &h);
    }
}

/* The rows of one family, all there or none. */
static void write_family(struct writer *w, const struct page_table *table, const struct page_row *rows, size_t n)
{
    if (!is_there(w->m->server, rows))
        return;
    promtext_begin(&w->text, &rows->family);
    for (size_t i = 0; i < n; i++)
        write_samples(w, &rows[i]);
    if (is_dated(w, table, rows))
        write_created(w, rows, n);
}

void page_write(const struct model *m, double wall_s, struct buf *out)
{
    const struct page_table *table = table_of(m->server->engine);
    struct writer w = {.m = m, .wall_s = wall_s};
    promtext_init(&w.text, out, PROMTEXT_TEXT);
    for (size_t i = 0, n; i < table->n_rows; i += n) {
        const struct page_row *rows = &table->rows[i];
        for (n = 1; i + n < table->n_rows && !strcmp(rows->family.name, rows[n].family.name);)
            n++;
        write_family(&w, table, rows, n);
    }
    if (m->server->pad_bytes > out->len)
        write_pad(&w, m->server->pad_bytes);
    promtext_end(&w.text);
}

/* ---- for tests ---- */

static void write_numbers(struct json *j, const struct writer *w, size_t rank)
{
    static const struct {
        const char *key;
        int source;
        double scale;
    } numbers[] = {
        {"running", PAGE_RUNNING, 1},     {"waiting", PAGE_WAITING, 1},      {"kv_percent", PAGE_KV, 100},
        {"busy_percent", PAGE_BUSY, 100}, {"arrived", PAGE_ARRIVED, 1},      {"finished", PAGE_FINISHED, 1},
        {"aborted", PAGE_ABORTED, 1},     {"prompt_tokens", PAGE_PROMPT, 1}, {"output_tokens", PAGE_OUTPUT, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        double value = rank == SIZE_MAX ? together(w, numbers[i].source) : rank_value(w, numbers[i].source, rank);
        json_kv_double(j, numbers[i].key, value * numbers[i].scale);
    }
}

void page_write_state(const struct model *m, struct buf *out)
{
    struct writer w = {.m = m};
    struct json j;
    json_init(&j, out, 0);
    json_object_begin(&j);
    json_kv_string(&j, "listen", m->server->listen);
    json_kv_string(&j, "engine", script_engines[m->server->engine]);
    json_kv_string(&j, "model", m->server->model);
    json_kv_double(&j, "time_s", model_now_s(m) - m->zero_s);
    json_kv_double(&j, "slots", (double)model_slots(m->server) * (double)m->n_ranks);
    write_numbers(&j, &w, SIZE_MAX);
    json_key(&j, "ranks");
    json_array_begin(&j);
    for (size_t i = 0; i < m->n_ranks; i++) {
        json_object_begin(&j);
        write_numbers(&j, &w, i);
        json_object_end(&j);
    }
    json_array_end(&j);
    json_object_end(&j);
    (void)buf_append_char(out, '\n');
}
