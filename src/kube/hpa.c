/* HorizontalPodAutoscalers (autoscaling/v2): bounds, external metrics and behaviour, with the API's defaults. What the
 * behaviour does to a count is scaling's business. */
#include "kube/kube_private.h"

#include <string.h>

static void read_policies(struct kube_reader *r, const struct kube_at *direction, struct kube_direction *ret)
{
    struct kube_at list = kube_at_array(r, direction, "policies");
    for (size_t i = 0; i < kube_at_len(&list) && !r->is_failed; i++) {
        struct kube_at at = kube_at_item(r, &list, i);
        if (ret->n_policies == KUBE_POLICIES_MAX) {
            kube_refuse(r, &list, NULL, "has more than 8 policies");
            return;
        }
        const char *type = kube_at_text(r, &at, "type", "");
        struct kube_policy *policy = &ret->policies[ret->n_policies++];
        policy->is_percent = strcmp(type, "Percent") == 0;
        policy->value = kube_at_int(r, &at, "value", 0);
        policy->period_s = kube_at_int(r, &at, "periodSeconds", 0);
        if (!policy->is_percent && strcmp(type, "Pods") != 0)
            kube_refuse(r, &at, "type", "is neither Pods nor Percent");
    }
}

static void read_direction(struct kube_reader *r, const struct kube_at *behavior, const char *key,
                           struct kube_direction *ret)
{
    struct kube_at at = kube_at_object(r, behavior, key);
    int64_t window_s = kube_at_int(r, &at, "stabilizationWindowSeconds", -1);
    ret->has_window = window_s >= 0;
    ret->window_s = ret->has_window ? window_s : 0;
    ret->has_tolerance = kube_at_quantity(r, &at, "tolerance", &ret->tolerance);
    ret->select = kube_at_text(r, &at, "selectPolicy", "Max");
    read_policies(r, &at, ret);
}

static void read_metric(struct kube_reader *r, const struct kube_at *external, struct kube_hpa_metric *ret)
{
    struct kube_at metric = kube_at_object(r, external, "metric");
    struct kube_at target = kube_at_object(r, external, "target");
    ret->name = kube_at_text(r, &metric, "name", "");
    ret->is_value = strcmp(kube_at_text(r, &target, "type", "AverageValue"), "Value") == 0;
    (void)kube_at_quantity(r, &target, ret->is_value ? "value" : "averageValue", &ret->target);
}

static void read_metrics(struct kube_reader *r, const struct kube_at *spec, struct kube_hpa *ret)
{
    struct kube_at list = kube_at_array(r, spec, "metrics");
    for (size_t i = 0; i < kube_at_len(&list) && !r->is_failed; i++) {
        struct kube_at at = kube_at_item(r, &list, i);
        if (strcmp(kube_at_text(r, &at, "type", ""), "External") != 0)
            continue;
        if (ret->n_metrics == KUBE_METRICS_MAX) {
            kube_refuse(r, &list, NULL, "has more than 32 external metrics");
            return;
        }
        struct kube_at external = kube_at_object(r, &at, "external");
        read_metric(r, &external, &ret->metrics[ret->n_metrics++]);
    }
}

void kube_read_hpa(struct kube_reader *r, const struct kube_at *root, struct kube_hpa *ret)
{
    kube_read_meta(r, root, &ret->meta);
    struct kube_at spec = kube_at_object(r, root, "spec"), status = kube_at_object(r, root, "status");
    struct kube_at target = kube_at_object(r, &spec, "scaleTargetRef");
    struct kube_at behavior = kube_at_object(r, &spec, "behavior");
    kube_read_target(r, &target, &ret->target_api_version, &ret->target_kind, &ret->target_name);
    ret->min = kube_at_int(r, &spec, "minReplicas", 1);
    ret->max = kube_at_int(r, &spec, "maxReplicas", 0);
    ret->has_behavior = behavior.json != NULL;
    read_direction(r, &behavior, "scaleUp", &ret->up);
    read_direction(r, &behavior, "scaleDown", &ret->down);
    read_metrics(r, &spec, ret);
    ret->desired = kube_at_int(r, &status, "desiredReplicas", 0);
}
