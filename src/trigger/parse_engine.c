/* The keys of engines' pages: where a page is, which metric of it, what wakes a workload without pods, and which other
 * keys have no effect on a page. What a page says is signals/' business, fetching it engine/'s. */
#include "trigger/parse.h"

#include "trigger/endpoint.h"

#include <string.h>

enum { SCHEME_BYTES = 8 };

static const char *key_name(enum trigger_key key)
{
    return trigger_key_facts(key)->name;
}

/* ---- what is read ---- */

static size_t count_engines(const struct draft *d)
{
    size_t n = d->n_types == 0 && trigger_metric_is_engine(d->t->metric);
    for (size_t i = 0; i < d->n_types; i++)
        n += trigger_metric_is_engine(d->types[i]);
    return n;
}

bool trigger_reads_pages(const struct draft *d)
{
    return count_engines(d) > 0 || d->t->prefers_engine;
}

bool trigger_reads_only_pages(const struct draft *d)
{
    return count_engines(d) == (d->n_types > 0 ? d->n_types : 1);
}

static bool measures(const struct draft *d, enum trigger_metric metric)
{
    bool is_measured = d->n_types == 0 && d->t->metric == metric;
    for (size_t i = 0; i < d->n_types; i++)
        is_measured |= d->types[i] == metric;
    return is_measured;
}

/* ---- engineMetric ---- */

/* What stands before a sample in the exposition format. */
static int read_sample_name(const struct draft *d, enum trigger_key key, char name[TRIGGER_NAME_MAX], struct err *e)
{
    static const char bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:0123456789";
    const struct trigger_value *v = trigger_given(d, key);
    char text[TRIGGER_NAME_MAX];
    if (trigger_read_text(v, key, sizeof(text), text, e) < 0)
        return -1;
    if (text[strspn(text, bytes)] || (text[0] >= '0' && text[0] <= '9'))
        return trigger_refuse(v, key, "is no metric name (letters, digits, '_' and ':', no labels)", e);
    (void)str_copy(name, TRIGGER_NAME_MAX, str_of(text));
    return 0;
}

int trigger_read_engine_metric(struct draft *d, struct err *e)
{
    if (!trigger_given(d, TRIGGER_KEY_ENGINE_METRIC))
        return 0;
    if (read_sample_name(d, TRIGGER_KEY_ENGINE_METRIC, d->t->engine_metric, e) < 0)
        return -1;
    if (!trigger_given(d, TRIGGER_KEY_METRIC_TYPE))
        trigger_choose_metric(d, TRIGGER_ENGINE_METRIC, key_name(TRIGGER_KEY_ENGINE_METRIC));
    return 0;
}

static int check_engine_metric(struct draft *d, struct err *e)
{
    bool is_measured = measures(d, TRIGGER_ENGINE_METRIC);
    if (is_measured && !d->t->engine_metric[0])
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "metadata engineMetric is missing: metric type engine_metric is the metric of that name on the "
                       "engine's page; allowed: %s",
                       trigger_key_facts(TRIGGER_KEY_ENGINE_METRIC)->allowed);
    if (!is_measured && d->t->engine_metric[0]) {
        char types[TRIGGER_TYPES_MAX];
        trigger_show_draft(d, types);
        TRIGGER_DRAFT_WARN(d, "engineMetric has no effect: %s is measured", types);
        d->t->engine_metric[0] = '\0';
    }
    return 0;
}

/* ---- endpoints ---- */

/* The last '@', or NULL: what stands before it may be a user's password. */
static const char *find_user_end(struct str url)
{
    return url.len ? memrchr(url.ptr, '@', url.len) : NULL;
}

/* The answer and the logs show the value, so not this one as it is. */
static int refuse_user(const struct trigger_value *v, enum trigger_key key, const char *fault, struct err *e)
{
    const char *host = find_user_end(v->text);
    struct buf shown BUF_AUTO;
    buf_init(&shown, v->text.len + sizeof("..."));
    (void)buf_append_str(&shown, "...");
    (void)buf_append(&shown, host, (size_t)(v->text.ptr + v->text.len - host));
    return trigger_refuse(&(struct trigger_value){v->key, str_of(buf_cstr(&shown))}, key, fault, e);
}

static int read_endpoint(const struct draft *d, enum trigger_key key, char endpoint[TRIGGER_TEXT_MAX], struct err *e)
{
    const struct trigger_value *v = trigger_given(d, key);
    if (!v)
        return 0;
    char text[TRIGGER_TEXT_MAX];
    const char *fault = trigger_endpoint_fault(v->text);
    if (fault && find_user_end(v->text))
        return refuse_user(v, key, fault, e);
    if (trigger_read_text(v, key, sizeof(text), text, e) < 0)
        return -1;
    if (fault)
        return trigger_refuse(v, key, fault, e);
    (void)str_copy(endpoint, TRIGGER_TEXT_MAX, str_of(text));
    return 0;
}

/* The engine that a metric type names. */
static enum signals_engine engine_of(enum trigger_metric metric)
{
    if (metric == TRIGGER_VLLM_QUEUE_DEPTH || metric == TRIGGER_VLLM_KV_CACHE_USAGE)
        return SIGNALS_ENGINE_VLLM;
    bool is_triton = metric == TRIGGER_TRITON_QUEUE_WAIT_MS || metric == TRIGGER_TRITON_REQUEST_RATE;
    return is_triton ? SIGNALS_ENGINE_TRITON : SIGNALS_ENGINE_UNKNOWN;
}

static void choose_engine(struct draft *d)
{
    struct trigger *t = d->t;
    t->engine = engine_of(t->metric);
    for (size_t i = 0; i < d->n_types && t->engine == SIGNALS_ENGINE_UNKNOWN; i++)
        t->engine = engine_of(d->types[i]);
    if (t->engine == SIGNALS_ENGINE_UNKNOWN && d->profile && trigger_reads_pages(d))
        t->engine = d->profile->engine;
}

/* Of both endpoints the one that is not read, with a warning; where nothing says which, a refusal. */
static int settle_endpoints(struct draft *d, struct err *e)
{
    struct trigger *t = d->t;
    if (!t->vllm_endpoint[0] || !t->triton_endpoint[0] || strcmp(t->vllm_endpoint, t->triton_endpoint) == 0)
        return 0;
    if (t->engine != SIGNALS_ENGINE_VLLM && t->engine != SIGNALS_ENGINE_TRITON)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "metadata vllmEndpoint and tritonEndpoint name two pages, and metric type %s may be read from "
                       "either; keep one of them",
                       trigger_metric_name(t->metric));
    bool is_vllm = t->engine == SIGNALS_ENGINE_VLLM;
    TRIGGER_DRAFT_WARN(d, "%s has no effect: %s is read",
                       key_name(is_vllm ? TRIGGER_KEY_TRITON_ENDPOINT : TRIGGER_KEY_VLLM_ENDPOINT),
                       key_name(is_vllm ? TRIGGER_KEY_VLLM_ENDPOINT : TRIGGER_KEY_TRITON_ENDPOINT));
    return 0;
}

static int refuse_no_endpoint(const struct draft *d, struct err *e)
{
    bool is_triton = d->t->engine == SIGNALS_ENGINE_TRITON;
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "metadata %s (or %s) is missing: in scope %s metric type %s is read from there; allowed: %s, for "
                   "example http://server.namespace.svc:8000/metrics",
                   is_triton ? "tritonEndpoint" : "vllmEndpoint", is_triton ? "vllmEndpoint" : "tritonEndpoint",
                   trigger_scope_name(d->t->scope), trigger_metric_name(d->t->metric),
                   trigger_key_facts(TRIGGER_KEY_VLLM_ENDPOINT)->allowed);
}

static int read_endpoints(struct draft *d, struct err *e)
{
    static const enum trigger_key keys[] = {TRIGGER_KEY_VLLM_ENDPOINT, TRIGGER_KEY_TRITON_ENDPOINT};
    char *endpoints[] = {d->t->vllm_endpoint, d->t->triton_endpoint};
    char types[TRIGGER_TYPES_MAX];
    trigger_show_draft(d, types);
    bool is_read = trigger_reads_pages(d);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        if (read_endpoint(d, keys[i], endpoints[i], e) < 0)
            return -1;
        if (trigger_given(d, keys[i]) && !is_read)
            TRIGGER_DRAFT_WARN(d, "%s has no effect: %s is measured", key_name(keys[i]), types);
    }
    if (!is_read)
        return 0;
    bool has_none = !d->t->vllm_endpoint[0] && !d->t->triton_endpoint[0];
    if (has_none && d->t->scope != TRIGGER_WORKLOAD)
        return refuse_no_endpoint(d, e);
    return settle_endpoints(d, e);
}

/* ---- the pods' own pages ---- */

static int read_port(struct draft *d, struct err *e)
{
    const struct trigger_value *v = trigger_given(d, TRIGGER_KEY_ENGINE_PORT);
    uint64_t port = 0;
    if (!v)
        return 0;
    if (num_parse_u64(v->text, &port) < 0)
        return trigger_refuse(v, TRIGGER_KEY_ENGINE_PORT, "is not a whole number", e);
    if (port < 1 || port > 65535)
        return trigger_refuse(v, TRIGGER_KEY_ENGINE_PORT, "is out of range", e);
    d->t->engine_port = (uint16_t)port;
    return 0;
}

static int read_path(struct draft *d, struct err *e)
{
    const struct trigger_value *v = trigger_given(d, TRIGGER_KEY_ENGINE_PATH);
    char path[TRIGGER_TEXT_MAX];
    if (!v)
        return 0;
    if (trigger_read_text(v, TRIGGER_KEY_ENGINE_PATH, sizeof(path), path, e) < 0)
        return -1;
    if (path[0] != '/')
        return trigger_refuse(v, TRIGGER_KEY_ENGINE_PATH, "does not begin with '/'", e);
    for (const char *c = path; *c; c++)
        if ((unsigned char)*c <= 0x20 || (unsigned char)*c >= 0x7F || *c == '#' || *c == '\\')
            return trigger_refuse(v, TRIGGER_KEY_ENGINE_PATH, "has characters that a path does not have", e);
    (void)str_copy(d->t->engine_path, sizeof(d->t->engine_path), str_of(path));
    return 0;
}

static int read_scheme(struct draft *d, struct err *e)
{
    const struct trigger_value *v = trigger_given(d, TRIGGER_KEY_ENGINE_SCHEME);
    size_t scheme = 0;
    if (!v)
        return 0;
    if (trigger_read_choice(v, TRIGGER_CHOICE_SCHEME, &scheme, e) < 0)
        return -1;
    (void)str_copy(d->t->engine_scheme, SCHEME_BYTES, str_of(trigger_choices(TRIGGER_CHOICE_SCHEME).names[scheme]));
    return 0;
}

static void warn_of_place(struct draft *d)
{
    static const enum trigger_key keys[] = {TRIGGER_KEY_ENGINE_PORT, TRIGGER_KEY_ENGINE_PATH,
                                            TRIGGER_KEY_ENGINE_SCHEME};
    char types[TRIGGER_TYPES_MAX];
    trigger_show_draft(d, types);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        if (!trigger_given(d, keys[i]))
            continue;
        if (!trigger_reads_pages(d))
            TRIGGER_DRAFT_WARN(d, "%s has no effect: %s is measured", key_name(keys[i]), types);
        else if (d->t->scope != TRIGGER_WORKLOAD)
            TRIGGER_DRAFT_WARN(d, "%s has no effect in scope %s: the endpoint's URL says it", key_name(keys[i]),
                               trigger_scope_name(d->t->scope));
    }
}

/* ---- waking ---- */

static int read_wake(struct draft *d, struct err *e)
{
    static const enum trigger_key keys[] = {TRIGGER_KEY_WAKE_ENDPOINT, TRIGGER_KEY_WAKE_METRIC};
    bool has[] = {trigger_given(d, keys[0]) != NULL, trigger_given(d, keys[1]) != NULL};
    if (!has[0] && !has[1])
        return 0;
    if (has[0] != has[1])
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "metadata %s is missing: wakeEndpoint is the page and wakeMetric the metric on it that wakes "
                       "the workload; allowed: %s",
                       key_name(keys[has[0]]), trigger_key_facts(keys[has[0]])->allowed);
    if (read_endpoint(d, keys[0], d->t->wake_endpoint, e) < 0 || read_sample_name(d, keys[1], d->t->wake_metric, e) < 0)
        return -1;
    if (d->t->scope != TRIGGER_WORKLOAD)
        TRIGGER_DRAFT_WARN(d, "wakeEndpoint has no effect in scope %s", trigger_scope_name(d->t->scope));
    return 0;
}

/* ---- what has no effect on a page ---- */

static bool adds_up(enum trigger_metric metric)
{
    static const enum signals_kind kinds[SIGNALS_COUNT] = {
#define X(id, name, unit, kind, what) SIGNALS_##kind,
        SIGNALS(X)
#undef X
    };
    if (!trigger_metric_is_engine(metric))
        return false;
    enum signals_kind kind = kinds[trigger_metric_signal(metric)];
    return kind == SIGNALS_LEVEL || kind == SIGNALS_RATE;
}

static void warn_of_aggregation(struct draft *d)
{
    const struct trigger *t = d->t;
    if (!trigger_given(d, TRIGGER_KEY_AGGREGATION))
        return;
    if (t->scope != TRIGGER_WORKLOAD && trigger_reads_only_pages(d)) {
        TRIGGER_DRAFT_WARN(d, "aggregation has no effect: one page is read");
        return;
    }
    if (t->scope != TRIGGER_WORKLOAD || t->aggregation == SCALING_AVG || t->aggregation == SCALING_SUM)
        return;
    for (size_t i = 0; i < (d->n_types > 0 ? d->n_types : 1); i++) {
        enum trigger_metric metric = d->n_types > 0 ? d->types[i] : t->metric;
        if (adds_up(metric))
            TRIGGER_DRAFT_WARN(d, "aggregation %s of %s takes one replica for all of them: avg adds the replicas up",
                               scaling_aggregation_name(t->aggregation), trigger_metric_name(metric));
    }
}

static void warn_of_selection(struct draft *d)
{
    static const enum trigger_key keys[] = {TRIGGER_KEY_GPU_INDEX, TRIGGER_KEY_GPU_UUID, TRIGGER_KEY_GPU_PRODUCT};
    char types[TRIGGER_TYPES_MAX];
    trigger_show_draft(d, types);
    for (size_t i = 0; i < ARRAY_LEN(keys) && trigger_reads_only_pages(d); i++)
        if (trigger_given(d, keys[i]))
            TRIGGER_DRAFT_WARN(d, "%s has no effect: %s is of the engine's page, not of GPUs", key_name(keys[i]),
                               types);
}

int trigger_read_engine(struct draft *d, struct err *e)
{
    struct trigger *t = d->t;
    bool is_of_profile = d->profile && strncmp(d->metric_from, "profile ", strlen("profile ")) == 0;
    t->prefers_engine = is_of_profile && t->scope == TRIGGER_WORKLOAD && d->n_types == 0 &&
                        d->profile->engine != SIGNALS_ENGINE_UNKNOWN && !trigger_metric_is_engine(t->metric);
    choose_engine(d);
    if (check_engine_metric(d, e) < 0 || read_endpoints(d, e) < 0 || read_port(d, e) < 0 || read_path(d, e) < 0 ||
        read_scheme(d, e) < 0 || read_wake(d, e) < 0)
        return -1;
    warn_of_place(d);
    warn_of_aggregation(d);
    warn_of_selection(d);
    return 0;
}

/* ---- what a trigger reads ---- */

const char *trigger_endpoint_hint(const struct trigger *t)
{
    bool reads_page = t->prefers_engine || trigger_metric_is_engine(t->metric);
    for (size_t i = 0; i < t->n_parts; i++)
        reads_page |= trigger_metric_is_engine(t->parts[i]->metric);
    const char *first = t->engine == SIGNALS_ENGINE_TRITON ? t->triton_endpoint : t->vllm_endpoint;
    const char *second = t->engine == SIGNALS_ENGINE_TRITON ? t->vllm_endpoint : t->triton_endpoint;
    const char *endpoint = first[0] ? first : second;
    return reads_page && endpoint[0] ? endpoint : NULL;
}

const char *trigger_endpoint(const struct trigger *t)
{
    bool is_here = t->scope != TRIGGER_WORKLOAD && !t->is_for_hub && trigger_metric_is_engine(t->metric);
    return is_here ? trigger_endpoint_hint(t) : NULL;
}
