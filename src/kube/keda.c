/* ScaledObjects (keda.sh/v1alpha1): target, triggers, bounds, pauses and fallback, with KEDA's defaults. */
#include "kube/kube_private.h"

#include <string.h>

static void read_metadata(struct kube_reader *r, const struct kube_at *at, struct kube_trigger *ret)
{
    struct kube_at metadata = kube_at_object(r, at, "metadata");
    struct kube_pair *pairs = (struct kube_pair *)kube_reader_alloc(r, json_object_size(metadata.json), sizeof(*pairs));
    for (void *i = json_object_iter(metadata.json); i && !r->is_failed; i = json_object_iter_next(metadata.json, i)) {
        const char *key = json_object_iter_key(i);
        char *copy = arena_strndup(r->arena, key, strlen(key));
        if (!copy)
            kube_refuse(r, &metadata, NULL, "is too large");
        pairs[ret->n_metadata].key = copy ? copy : "";
        pairs[ret->n_metadata++].value = kube_at_text(r, &metadata, key, "");
    }
    ret->metadata = pairs;
}

static void read_triggers(struct kube_reader *r, const struct kube_at *spec, struct kube_scaled_object *ret)
{
    struct kube_at list = kube_at_array(r, spec, "triggers");
    size_t n = kube_at_len(&list);
    struct kube_trigger *triggers = (struct kube_trigger *)kube_reader_alloc(r, n, sizeof(*triggers));
    for (size_t i = 0; i < n && !r->is_failed; i++) {
        struct kube_at at = kube_at_item(r, &list, i);
        const char *type = kube_at_text(r, &at, "type", "");
        if (strcmp(type, "external") != 0 && strcmp(type, "external-push") != 0) {
            ret->n_other_triggers++;
            continue;
        }
        struct kube_trigger *trigger = &triggers[ret->n_triggers++];
        trigger->type = type;
        trigger->metric_type = kube_at_text(r, &at, "metricType", "");
        read_metadata(r, &at, trigger);
    }
    ret->triggers = triggers;
}

/* Paused with either annotation, whatever its text but a plain no (KEDA's NeedToBePausedByAnnotation). */
static bool is_paused(struct kube_reader *r, const struct kube_at *root)
{
    static const char *const no[] = {"0", "f", "F", "false", "False", "FALSE"};
    if (kube_read_mark(r, root, "annotations", "autoscaling.keda.sh/paused-replicas"))
        return true;
    const char *paused = kube_read_mark(r, root, "annotations", "autoscaling.keda.sh/paused");
    for (size_t i = 0; paused && i < ARRAY_LEN(no); i++)
        if (strcmp(paused, no[i]) == 0)
            return false;
    return paused != NULL;
}

static void read_fallback(struct kube_reader *r, const struct kube_at *spec, struct kube_scaled_object *ret)
{
    struct kube_at fallback = kube_at_object(r, spec, "fallback");
    ret->has_fallback = fallback.json != NULL;
    ret->fallback_behavior = kube_at_text(r, &fallback, "behavior", "");
    ret->fallback_replicas = kube_at_int(r, &fallback, "replicas", 0);
    if (ret->has_fallback && !*ret->fallback_behavior)
        ret->fallback_behavior = "static";
}

/* Each part of the target has its own default (KEDA's ParseGVKR). */
static void read_target(struct kube_reader *r, const struct kube_at *spec, struct kube_scaled_object *ret)
{
    struct kube_at ref = kube_at_object(r, spec, "scaleTargetRef");
    kube_read_target(r, &ref, &ret->target_api_version, &ret->target_kind, &ret->target_name);
    if (!*ret->target_api_version)
        ret->target_api_version = "apps/v1";
    if (!*ret->target_kind)
        ret->target_kind = "Deployment";
}

void kube_read_scaled_object(struct kube_reader *r, const struct kube_at *root, struct kube_scaled_object *ret)
{
    kube_read_meta(r, root, &ret->meta);
    struct kube_at spec = kube_at_object(r, root, "spec"), status = kube_at_object(r, root, "status");
    struct kube_at advanced = kube_at_object(r, &spec, "advanced");
    struct kube_at modifiers = kube_at_object(r, &advanced, "scalingModifiers");
    read_target(r, &spec, ret);
    read_triggers(r, &spec, ret);
    read_fallback(r, &spec, ret);
    ret->hpa_name = kube_at_text(r, &status, "hpaName", "");
    ret->has_modifiers = *kube_at_text(r, &modifiers, "formula", "") != '\0';
    ret->is_paused = is_paused(r, root);
    ret->min = kube_at_int(r, &spec, "minReplicaCount", 0);
    ret->max = kube_at_int(r, &spec, "maxReplicaCount", 100);
}
