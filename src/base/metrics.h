/* Counters, gauges and histograms that their owner moves and the exporter shows. One thread (the loop) uses them. */
#ifndef BASE_METRICS_H
#define BASE_METRICS_H

#include <stddef.h>

enum metric_kind { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };
enum { METRIC_LABELS_MAX = 6 };

/* One family, described once in a static table of its owner. Change procedure: names are public API; a new or changed
 * family also changes docs/metrics.md and the golden test of /metrics. */
struct metric_desc {
    const char *name; /* without the `_total` of a counter */
    const char *help;
    const char *unit; /* OpenMetrics unit, the name's suffix ("seconds", "bytes"), or NULL */
    enum metric_kind kind;
    const char *labels[METRIC_LABELS_MAX]; /* NULL-terminated unless full */
    const double *bounds;                  /* histogram: upper bounds, ascending, without +Inf; static storage */
    size_t n_bounds;
    size_t
        max_series; /* ceiling; 0 = 1 without labels, 256 with. Beyond it samples go to one series labelled "other" */
};

struct metrics;       /* all families of a program */
struct metric_family; /* owned by its metrics */
struct metric_series; /* owned by its family; valid until metric_remove or metrics_free */

struct metrics *metrics_new(void);
void metrics_free(struct metrics *m);

/* Register a family; `desc` must outlive m. Registering the same name again gives the same family. */
struct metric_family *metric_register(struct metrics *m, const struct metric_desc *desc);

/* The series with these label values (as many as the family has labels), made at 0 if it is new. */
struct metric_series *metric_series(struct metric_family *f, const char *const *values);
/* The same for values that the caller knows to be new: without a search, for families with many series. */
struct metric_series *metric_series_new(struct metric_family *f, const char *const *values);
/* The only series of a family without labels. */
struct metric_series *metric_only(struct metric_family *f);
/* Drop a series: vanished things leave /metrics. Nothing if there is none. */
void metric_remove(struct metric_family *f, const char *const *values);
/* Drop every series. */
void metric_clear(struct metric_family *f);

void metric_add(struct metric_series *s, double amount);     /* counter, gauge */
void metric_set(struct metric_series *s, double value);      /* gauge */
void metric_observe(struct metric_series *s, double sample); /* histogram */
double metric_value(const struct metric_series *s);          /* counter, gauge */

/* What one series shows. bucket_counts are cumulative, one per bound, without +Inf (= count). */
struct metric_sample {
    const struct metric_desc *desc;
    const char *const *label_values;
    double value;
    const double *bounds;
    const double *bucket_counts;
    double sum, count;
};

struct metric_visitor {
    void (*family)(void *context, const struct metric_desc *desc); /* before the first sample of each family */
    void (*sample)(void *context, const struct metric_sample *sample);
    void *context;
};
/* All families in order of registration, their series in order of creation. Families without series are passed over. */
void metrics_visit(const struct metrics *m, const struct metric_visitor *visitor);

#endif
