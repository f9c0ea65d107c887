/* Counters, gauges and histograms. Few families with few series each: lists are found by a linear look, and hot
 * callers keep the series pointer. */
#include "base/metrics.h"

#include "base/alloc.h"
#include "base/vec.h"

#include <assert.h>
#include <string.h>

struct metric_series {
    struct metric_family *family;
    char *values[METRIC_LABELS_MAX];
    double value, sum, count;
    double buckets[]; /* per bound, not cumulative */
};

struct metric_family {
    const struct metric_desc *desc;
    size_t n_labels, max_series;
    VEC(struct metric_series *) series;
};

struct metrics {
    VEC(struct metric_family *) families;
};

struct metrics *metrics_new(void)
{
    return mem_new(struct metrics);
}

static void series_free(struct metric_series *s)
{
    for (size_t i = 0; i < METRIC_LABELS_MAX; i++)
        free(s->values[i]);
    free(s);
}

void metric_clear(struct metric_family *f)
{
    for (size_t i = 0; i < f->series.len; i++)
        series_free(f->series.items[i]);
    f->series.len = 0;
}

void metrics_free(struct metrics *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->families.len; i++) {
        metric_clear(m->families.items[i]);
        vec_fini(&m->families.items[i]->series);
        free(m->families.items[i]);
    }
    vec_fini(&m->families);
    free(m);
}

static size_t count_labels(const struct metric_desc *desc)
{
    size_t n = 0;
    while (n < METRIC_LABELS_MAX && desc->labels[n])
        n++;
    return n;
}

struct metric_family *metric_register(struct metrics *m, const struct metric_desc *desc)
{
    for (size_t i = 0; i < m->families.len; i++)
        if (strcmp(m->families.items[i]->desc->name, desc->name) == 0)
            return m->families.items[i];
    struct metric_family *f = mem_new(struct metric_family);
    f->desc = desc;
    f->n_labels = count_labels(desc);
    f->max_series = desc->max_series ? desc->max_series : f->n_labels ? 256 : 1;
    vec_push(&m->families, f);
    if (f->n_labels == 0)
        (void)metric_only(f);
    return f;
}

static size_t find_series(const struct metric_family *f, const char *const *values)
{
    for (size_t i = 0; i < f->series.len; i++) {
        size_t label = 0;
        while (label < f->n_labels && strcmp(f->series.items[i]->values[label], values[label]) == 0)
            label++;
        if (label == f->n_labels)
            return i;
    }
    return f->series.len;
}

static struct metric_series *add_series(struct metric_family *f, const char *const *values)
{
    size_t bytes = sizeof(struct metric_series) + f->desc->n_bounds * sizeof(double);
    struct metric_series *s = (struct metric_series *)mem_new_array(1, bytes);
    s->family = f;
    for (size_t i = 0; i < f->n_labels; i++)
        s->values[i] = mem_strdup(values[i]);
    vec_push(&f->series, s);
    return s;
}

struct metric_series *metric_series(struct metric_family *f, const char *const *values)
{
    static const char *const others[METRIC_LABELS_MAX] = {"other", "other", "other", "other", "other", "other"};
    size_t at = find_series(f, values);
    if (at < f->series.len)
        return f->series.items[at];
    if (f->series.len + 1 < f->max_series || f->n_labels == 0)
        return add_series(f, values);
    at = find_series(f, others); /* the last place is kept for what no longer fits */
    return at < f->series.len ? f->series.items[at] : add_series(f, others);
}

struct metric_series *metric_series_new(struct metric_family *f, const char *const *values)
{
    return f->series.len + 1 < f->max_series ? add_series(f, values) : metric_series(f, values);
}

struct metric_series *metric_only(struct metric_family *f)
{
    assert(f->n_labels == 0);
    return metric_series(f, NULL);
}

void metric_remove(struct metric_family *f, const char *const *values)
{
    size_t at = find_series(f, values);
    if (at == f->series.len)
        return;
    series_free(f->series.items[at]);
    vec_remove(&f->series, at);
}

void metric_add(struct metric_series *s, double amount)
{
    s->value += amount;
}

void metric_set(struct metric_series *s, double value)
{
    s->value = value;
}

void metric_observe(struct metric_series *s, double sample)
{
    const struct metric_desc *desc = s->family->desc;
    for (size_t i = 0; i < desc->n_bounds; i++)
        if (sample <= desc->bounds[i]) {
            s->buckets[i]++;
            break;
        }
    s->sum += sample;
    s->count++;
}

double metric_value(const struct metric_series *s)
{
    return s->value;
}

static void visit_series(const struct metric_series *s, const struct metric_visitor *visitor)
{
    enum { BOUNDS_MAX = 64 };
    double cumulative[BOUNDS_MAX], running = 0;
    const struct metric_desc *desc = s->family->desc;
    assert(desc->n_bounds <= BOUNDS_MAX);
    for (size_t i = 0; i < desc->n_bounds; i++)
        cumulative[i] = running += s->buckets[i];
    struct metric_sample sample = {
        .desc = desc,
        .label_values = (const char *const *)s->values,
        .value = s->value,
        .bounds = desc->bounds,
        .bucket_counts = cumulative,
        .sum = s->sum,
        .count = s->count,
    };
    visitor->sample(visitor->context, &sample);
}

void metrics_visit(const struct metrics *m, const struct metric_visitor *visitor)
{
    for (size_t i = 0; i < m->families.len; i++) {
        const struct metric_family *f = m->families.items[i];
        if (f->series.len == 0)
            continue;
        visitor->family(visitor->context, f->desc);
        for (size_t k = 0; k < f->series.len; k++)
            visit_series(f->series.items[k], visitor);
    }
}
