/* For the tests of workload/: an HPA and a ScaledObject that a test may change. */
#ifndef TEST_WORKLOAD_OBJECTS_H
#define TEST_WORKLOAD_OBJECTS_H

#include "world.h"

struct objects {
    struct kube_hpa hpa;
    struct kube_scaled_object object;
    struct kube_trigger triggers[3];
    struct kube_pair pairs[3][8];
};

/* A trigger of the ScaledObject with the same texts as the one that asks. */
static inline void objects_trigger(struct objects *o, size_t i, const char *metric_type, struct metadata m)
{
    for (size_t k = 0; k < m.n; k++)
        o->pairs[i][k] = (struct kube_pair){m.pairs[k].key.ptr, m.pairs[k].value.ptr};
    o->triggers[i] = (struct kube_trigger){
        .type = "external", .metric_type = metric_type, .metadata = o->pairs[i], .n_metadata = m.n};
    o->object.n_triggers = i + 1;
}

static inline void objects_metric(struct objects *o, const char *name, bool is_value, double target)
{
    o->hpa.metrics[o->hpa.n_metrics++] = (struct kube_hpa_metric){.name = name, .is_value = is_value, .target = target};
}

/* 1 to 50 replicas, known to the world; no metric and no trigger yet. */
static inline void objects_init(struct objects *o, struct world *w)
{
    memset(o, 0, sizeof(*o));
    struct kube_meta meta = {.ns = "ml", .name = "llama", .uid = "u", .resource_version = "1"};
    o->object = (struct kube_scaled_object){.meta = meta,
                                            .target_api_version = "apps/v1",
                                            .target_kind = "Deployment",
                                            .target_name = "llama",
                                            .hpa_name = "keda-hpa-llama",
                                            .triggers = o->triggers,
                                            .min = 1,
                                            .max = 50,
                                            .fallback_behavior = ""};
    meta.name = "keda-hpa-llama";
    o->hpa = (struct kube_hpa){.meta = meta,
                               .target_api_version = "apps/v1",
                               .target_kind = "Deployment",
                               .target_name = "llama",
                               .min = 1,
                               .max = 50,
                               .up = {.select = "Max"},
                               .down = {.select = "Max"}};
    w->facts.hpa = &o->hpa;
    w->facts.scaled_object = &o->object;
    w->facts.hpa_state = WORKLOAD_HPA_KNOWN;
}

#endif
