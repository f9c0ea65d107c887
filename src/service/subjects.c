/* What /metrics shows of each ScaledObject's metric: last value, target and activity, and errors. Owns these families
 * and how many ScaledObjects they show for how long; what the numbers are is the caller's. */
#include "service/service_private.h"

#include <stdlib.h>
#include <string.h>

enum { SUBJECTS_MAX = 2000, LABELS = 3, LABEL_MAX = 253, KEY_MAX = LABELS * (LABEL_MAX + 2) };
/* One that nobody asked about for so long is gone: KEDA asks each pollingInterval and at each HPA sync. */
#define IDLE_NS (3600 * NS_PER_S)

struct subject {
    struct subjects *all;
    char *labels[LABELS]; /* namespace, ScaledObject, metric */
    struct metric_series *series[SUBJECT_FACTS];
    int64_t asked_ns;
};

struct subjects {
    struct map *map; /* of struct subject, by key_of its labels */
    struct metric_family *families[SUBJECT_FACTS];
};

#define FAMILY(name_, kind_, help_)                                                                                    \
    {                                                                                                                  \
        .name = "keda_gpu_scaler_metric_" name_, .help = (help_), .kind = METRIC_##kind_,                              \
        .labels = {"scaledobject_namespace", "scaledobject", "metric"}, .max_series = SUBJECTS_MAX + 2                 \
    }
static const struct metric_desc descs[SUBJECT_FACTS] = {
    [SUBJECT_VALUE] = FAMILY("value", GAUGE, "Value of the last GetMetrics answer; absent when that was an error."),
    [SUBJECT_TARGET] = FAMILY("target", GAUGE, "Target given to KEDA, in the unit of the metric."),
    [SUBJECT_ACTIVE] =
        FAMILY("active", GAUGE, "1 if the last IsActive answer was true, 0 if false; absent when it was an error."),
    [SUBJECT_ERRORS] = FAMILY("errors", COUNTER, "Questions about a metric that were answered with an error."),
};
#undef FAMILY

static const char *const *labels_of(const struct subject *subject)
{
    return (const char *const *)subject->labels;
}

/* The texts, each with a NUL behind. Returns the bytes used. */
static size_t key_of(char out[KEY_MAX], const char *const texts[LABELS])
{
    size_t used = 0;
    for (size_t i = 0; i < LABELS; i++) {
        size_t len = strnlen(texts[i], LABEL_MAX + 1); /* longer than any that is held */
        memcpy(out + used, texts[i], len);
        out[used + len] = '\0';
        used += len + 1;
    }
    return used;
}

static void subject_free(void *value)
{
    struct subject *subject = value;
    for (size_t i = 0; i < SUBJECT_FACTS; i++)
        metric_remove(subject->all->families[i], labels_of(subject));
    for (size_t i = 0; i < LABELS; i++)
        free(subject->labels[i]);
    free(subject);
}

struct subjects *service_subjects_new(struct metrics *metrics)
{
    struct subjects *all = mem_new(struct subjects);
    all->map = map_new(SUBJECTS_MAX, subject_free);
    for (size_t i = 0; i < SUBJECT_FACTS; i++)
        all->families[i] = metric_register(metrics, &descs[i]);
    return all;
}

void service_subjects_free(struct subjects *all)
{
    map_free(all->map);
    free(all);
}

/* What Kubernetes can have as a name stands as it is. All else is one label: it is nobody's, and could be anything. */
static const char *shown(const char *name)
{
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.");
    return name[len] == '\0' && len <= LABEL_MAX ? name : "invalid";
}

static struct subject *add(struct subjects *all, const char *key, size_t key_len, const char *const texts[LABELS])
{
    struct subject *subject = mem_new(struct subject);
    subject->all = all;
    for (size_t i = 0; i < LABELS; i++)
        subject->labels[i] = mem_strdup(texts[i]);
    map_put(all->map, key, key_len, subject); /* before its series are made: it may drop an old subject's */
    subject->series[SUBJECT_ERRORS] = metric_series_new(all->families[SUBJECT_ERRORS], labels_of(subject));
    return subject;
}

struct subject *service_subject(struct service *s, const char *ns, const char *name, const char *metric)
{
    struct subjects *all = s->subjects;
    const char *const asked[LABELS] = {ns, name, metric};
    char key[KEY_MAX];
    size_t key_len = key_of(key, asked);
    struct subject *subject = map_get(all->map, key, key_len);
    if (!subject) { /* then the texts are new, or not shown as they are */
        const char *const texts[LABELS] = {shown(ns), shown(name), metric};
        key_len = key_of(key, texts);
        subject = map_get(all->map, key, key_len);
        if (!subject)
            subject = add(all, key, key_len, texts);
    }
    subject->asked_ns = service_now_ns(s);
    return subject;
}

void service_subject_show(struct subject *subject, enum subject_fact fact, double value)
{
    struct metric_series **series = &subject->series[fact];
    if (!*series)
        *series = metric_series_new(subject->all->families[fact], labels_of(subject));
    metric_set(*series, value);
}

void service_subject_fail(struct subject *subject, enum subject_fact fact)
{
    metric_add(subject->series[SUBJECT_ERRORS], 1);
    if (fact == SUBJECT_ERRORS || !subject->series[fact])
        return;
    metric_remove(subject->all->families[fact], labels_of(subject));
    subject->series[fact] = NULL;
}

void service_tick_subjects(struct service *s)
{
    const struct subject *oldest;
    while ((oldest = map_oldest(s->subjects->map)) && service_now_ns(s) - oldest->asked_ns > IDLE_NS) {
        char key[KEY_MAX];
        map_remove(s->subjects->map, key, key_of(key, labels_of(oldest)));
    }
}
