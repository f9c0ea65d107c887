/* Any bytes as an object of each kind, as a list that comes in pieces, as a kubeconfig, a quantity and a time: what
 * comes out is whole texts, and counts that fit the input. */
#include "kube/kube_private.h"

#include <math.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool is_so)
{
    if (!is_so)
        abort();
}

static void look_at(const struct kube_object *o, size_t size)
{
    must(*o->meta.name && strlen(o->meta.ns) + strlen(o->meta.uid) + strlen(o->meta.resource_version) <= 8 * size);
    if (o->kind == KUBE_POD) {
        must(o->pod->group >= -1 && isfinite(o->pod->started_s) && o->pod->phase <= KUBE_PHASE_UNKNOWN);
        must(o->pod->worker >= -1 && o->pod->n_ports <= KUBE_PORTS_MAX);
        for (size_t i = 0; i < o->pod->n_ports; i++)
            must(o->pod->ports[i].number > 0 && strlen(o->pod->ports[i].name) <= size);
        must(strlen(o->pod->annotated_port) + strlen(o->pod->annotated_path) <= 2 * size);
        must(strlen(o->pod->annotated_scheme) <= size);
    }
    if (o->kind == KUBE_SCALED_OBJECT)
        for (size_t i = 0; i < o->scaled_object->n_triggers; i++)
            for (size_t m = 0; m < o->scaled_object->triggers[i].n_metadata; m++)
                must(strlen(o->scaled_object->triggers[i].metadata[m].key) <= size &&
                     strlen(o->scaled_object->triggers[i].metadata[m].value) <= size);
    if (o->kind == KUBE_HPA)
        must(o->hpa->n_metrics <= KUBE_METRICS_MAX && o->hpa->up.n_policies <= KUBE_POLICIES_MAX &&
             o->hpa->down.n_policies <= KUBE_POLICIES_MAX);
    if (o->kind == KUBE_ENDPOINT_SLICE)
        for (size_t i = 0; i < o->endpoint_slice->n_endpoints; i++)
            must(*o->endpoint_slice->endpoints[i].address != '\0');
}

static int note_item(void *context, struct str json)
{
    *(size_t *)context += json.len;
    must(json.len >= 2 && json.ptr[0] == '{');
    return 0;
}

static void note_too_large(void *context)
{
    (void)context;
}

/* In two pieces as in one. */
static void split(const char *text, size_t size)
{
    size_t taken[2] = {0, 0};
    bool is_whole[2];
    for (size_t pieces = 0; pieces < 2; pieces++) {
        struct kube_split s;
        kube_split_init(&s, note_item, note_too_large, &taken[pieces]);
        size_t first = pieces ? size / 2 : size;
        int rc = kube_split_feed(&s, text, first);
        if (rc == 0)
            rc = kube_split_feed(&s, text + first, size - first);
        is_whole[pieces] = rc == 0 && kube_split_is_whole(&s);
        kube_split_fini(&s);
    }
    must(taken[0] == taken[1] && taken[0] <= size && is_whole[0] == is_whole[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e;
    struct str text = {(const char *)data, size};
    double number = 0;
    for (int kind = 0; kind < KUBE_KIND_COUNT; kind++) {
        struct arena arena ARENA_AUTO;
        struct kube_object object;
        arena_init(&arena, 1 << 20);
        if (kube_decode((enum kube_kind)kind, text, &arena, &object, &e) == 0)
            look_at(&object, size);
        else
            must(e.class == ERR_INVALID_ARGUMENT && *e.text);
    }
    split(text.ptr, size);
    struct kube_access access KUBE_ACCESS_AUTO = {0};
    if (kube_access_parse(text, ".", &access, &e) == 0)
        must(access.server != NULL);
    if (kube_parse_quantity(text, &number) == 0 || kube_parse_time(text, &number) == 0)
        must(isfinite(number));
    return 0;
}
