/* Copies of ScaledObjects and HPAs: what the API client tells is valid during its callback only. */
#include "cluster/private.h"

enum { COPY_MAX = 1 << 20 };

/* One copy under way; texts that no longer fit make the whole fail. */
struct copier {
    struct arena *arena;
    bool is_full;
};

static const char *text(struct copier *c, const char *from)
{
    const char *copy = arena_strndup(c->arena, from, strlen(from));
    c->is_full |= !copy;
    return copy ? copy : "";
}

static void meta(struct copier *c, struct kube_meta *m)
{
    m->ns = text(c, m->ns);
    m->name = text(c, m->name);
    m->uid = text(c, m->uid);
    m->resource_version = text(c, m->resource_version);
}

static const struct kube_pair *pairs(struct copier *c, const struct kube_pair *from, size_t n)
{
    struct kube_pair *copy = (struct kube_pair *)arena_alloc(c->arena, (n ? n : 1) * sizeof(*copy));
    c->is_full |= !copy;
    for (size_t i = 0; copy && i < n; i++)
        copy[i] = (struct kube_pair){.key = text(c, from[i].key), .value = text(c, from[i].value)};
    return copy;
}

static const struct kube_trigger *triggers(struct copier *c, const struct kube_trigger *from, size_t n)
{
    struct kube_trigger *copy = (struct kube_trigger *)arena_alloc(c->arena, (n ? n : 1) * sizeof(*copy));
    c->is_full |= !copy;
    for (size_t i = 0; copy && i < n; i++)
        copy[i] = (struct kube_trigger){.type = text(c, from[i].type),
                                        .metric_type = text(c, from[i].metric_type),
                                        .metadata = pairs(c, from[i].metadata, from[i].n_metadata),
                                        .n_metadata = from[i].n_metadata};
    return copy;
}

struct cluster_scaled_object *cluster_copy_scaled_object(const struct kube_scaled_object *from)
{
    struct cluster_scaled_object *copy = mem_new(struct cluster_scaled_object);
    arena_init(&copy->arena, COPY_MAX);
    struct copier c = {.arena = &copy->arena};
    copy->is = *from;
    meta(&c, &copy->is.meta);
    copy->is.target_api_version = text(&c, from->target_api_version);
    copy->is.target_kind = text(&c, from->target_kind);
    copy->is.target_name = text(&c, from->target_name);
    copy->is.hpa_name = text(&c, from->hpa_name);
    copy->is.fallback_behavior = text(&c, from->fallback_behavior);
    copy->is.triggers = triggers(&c, from->triggers, from->n_triggers);
    if (!c.is_full)
        return copy;
    cluster_free_scaled_object(copy);
    return NULL;
}

struct cluster_hpa *cluster_copy_hpa(const struct kube_hpa *from)
{
    struct cluster_hpa *copy = mem_new(struct cluster_hpa);
    arena_init(&copy->arena, COPY_MAX);
    struct copier c = {.arena = &copy->arena};
    copy->is = *from;
    meta(&c, &copy->is.meta);
    copy->is.target_api_version = text(&c, from->target_api_version);
    copy->is.target_kind = text(&c, from->target_kind);
    copy->is.target_name = text(&c, from->target_name);
    copy->is.up.select = text(&c, from->up.select);
    copy->is.down.select = text(&c, from->down.select);
    for (size_t i = 0; i < from->n_metrics; i++)
        copy->is.metrics[i].name = text(&c, from->metrics[i].name);
    if (!c.is_full)
        return copy;
    cluster_free_hpa(copy);
    return NULL;
}

void cluster_free_scaled_object(void *copy)
{
    struct cluster_scaled_object *o = copy;
    arena_fini(&o->arena);
    free(o);
}

void cluster_free_hpa(void *copy)
{
    struct cluster_hpa *h = copy;
    arena_fini(&h->arena);
    free(h);
}
