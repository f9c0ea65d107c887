/* JSON of the Kubernetes API to the structs of kube.h: what all kinds share, the small kinds, and the table of kinds.
 * Knows the API's defaults; pods, ScaledObjects and HPAs have files of their own. */
#include "kube/kube_private.h"

#include <string.h>

json_t *kube_parse_json(struct str text, struct err *e)
{
    json_error_t error;
    json_t *json = json_loadb(text.ptr ? text.ptr : "", text.len, 0, &error);
    if (!json)
        (void)err_set(e, ERR_INVALID_ARGUMENT, "no JSON at byte %d: %s", error.position, error.text);
    return json;
}

void kube_read_meta(struct kube_reader *r, const struct kube_at *root, struct kube_meta *ret)
{
    struct kube_at meta = kube_at_object(r, root, "metadata");
    ret->ns = kube_at_text(r, &meta, "namespace", "");
    ret->name = kube_at_text(r, &meta, "name", "");
    ret->uid = kube_at_text(r, &meta, "uid", "");
    ret->resource_version = kube_at_text(r, &meta, "resourceVersion", "");
    ret->created_s = kube_at_time(r, &meta, "creationTimestamp");
    ret->is_deleted = kube_at_time(r, &meta, "deletionTimestamp") != 0;
    if (!*ret->name)
        kube_refuse(r, &meta, "name", "is missing");
}

const char *kube_read_mark(struct kube_reader *r, const struct kube_at *root, const char *map, const char *key)
{
    struct kube_at meta = kube_at_object(r, root, "metadata");
    struct kube_at marks = kube_at_object(r, &meta, map);
    return kube_at_text(r, &marks, key, NULL);
}

void kube_read_target(struct kube_reader *r, const struct kube_at *ref, const char **ret_api_version,
                      const char **ret_kind, const char **ret_name)
{
    *ret_api_version = kube_at_text(r, ref, "apiVersion", "");
    *ret_kind = kube_at_text(r, ref, "kind", "");
    *ret_name = kube_at_text(r, ref, "name", "");
}

void kube_read_scaled_job(struct kube_reader *r, const struct kube_at *root, struct kube_scaled_job *ret)
{
    kube_read_meta(r, root, &ret->meta);
}

/* A port's number may be null ("all ports") and its name empty. */
static void read_ports(struct kube_reader *r, const struct kube_at *root, struct kube_endpoint_slice *ret)
{
    struct kube_at ports = kube_at_array(r, root, "ports");
    for (size_t i = 0; i < kube_at_len(&ports) && !r->is_failed; i++) {
        struct kube_at port = kube_at_item(r, &ports, i);
        int64_t number = kube_at_int(r, &port, "port", 0);
        if (number < 0 || number > 65535)
            kube_refuse(r, &port, "port", "is not a port");
        if (ret->n_ports == ARRAY_LEN(ret->ports))
            kube_refuse(r, &ports, NULL, "has more than 16 ports");
        if (r->is_failed || number == 0)
            continue;
        ret->ports[ret->n_ports].name = kube_at_text(r, &port, "name", "");
        ret->ports[ret->n_ports++].number = (uint16_t)number;
    }
}

static void read_endpoint(struct kube_reader *r, const struct kube_at *at, struct kube_endpoint *ret)
{
    struct kube_at addresses = kube_at_array(r, at, "addresses");
    struct kube_at target = kube_at_object(r, at, "targetRef");
    struct kube_at conditions = kube_at_object(r, at, "conditions");
    ret->address = kube_at_item_text(r, &addresses, 0);
    ret->node = kube_at_text(r, at, "nodeName", "");
    ret->pod = kube_at_text(r, &target, "name", "");
    if (strcmp(kube_at_text(r, &target, "kind", "Pod"), "Pod") != 0)
        ret->pod = "";
    ret->is_terminating = kube_at_bool(r, &conditions, "terminating", false);
}

void kube_read_endpoint_slice(struct kube_reader *r, const struct kube_at *root, struct kube_endpoint_slice *ret)
{
    kube_read_meta(r, root, &ret->meta);
    const char *service = kube_read_mark(r, root, "labels", "kubernetes.io/service-name");
    ret->service = service ? service : "";
    read_ports(r, root, ret);
    struct kube_at endpoints = kube_at_array(r, root, "endpoints");
    size_t n = kube_at_len(&endpoints);
    struct kube_endpoint *list = (struct kube_endpoint *)kube_reader_alloc(r, n, sizeof(*list));
    for (size_t i = 0; i < n && !r->is_failed; i++) {
        struct kube_at at = kube_at_item(r, &endpoints, i);
        read_endpoint(r, &at, &list[ret->n_endpoints]);
        if (*list[ret->n_endpoints].address)
            ret->n_endpoints++;
    }
    ret->endpoints = list;
}

/* ---- by kind ---- */

#define X(id, plural, path, type)                                                                                      \
    static const struct kube_meta *decode_##type(struct kube_reader *r, const struct kube_at *root,                    \
                                                 struct kube_object *ret)                                              \
    {                                                                                                                  \
        struct kube_##type *object = (struct kube_##type *)kube_reader_alloc(r, 1, sizeof(*object));                   \
        if (!object)                                                                                                   \
            return NULL;                                                                                               \
        kube_read_##type(r, root, object);                                                                             \
        ret->type = object;                                                                                            \
        return &object->meta;                                                                                          \
    }
KUBE_KINDS(X)
#undef X

static const struct kube_meta *(*const decoders[])(struct kube_reader *r, const struct kube_at *root,
                                                   struct kube_object *ret) = {
#define X(id, plural, path, type) decode_##type,
    KUBE_KINDS(X)
#undef X
};

int kube_decode_json(enum kube_kind kind, json_t *json, struct arena *arena, struct kube_object *ret, struct err *e)
{
    struct kube_reader r = {.arena = arena, .e = e};
    struct kube_at root = {.json = json};
    struct kube_object object = {.kind = kind};
    if (!json_is_object(json))
        return err_set(e, ERR_INVALID_ARGUMENT, "the object is not a JSON object");
    const struct kube_meta *meta = decoders[kind](&r, &root, &object);
    if (r.is_failed || !meta)
        return -1;
    object.meta = *meta;
    *ret = object;
    return 0;
}

int kube_decode_meta(json_t *json, struct arena *arena, struct kube_meta *ret, struct err *e)
{
    struct kube_reader r = {.arena = arena, .e = e};
    struct kube_at root = {.json = json};
    struct kube_meta meta = {0};
    if (!json_is_object(json))
        return err_set(e, ERR_INVALID_ARGUMENT, "the object is not a JSON object");
    kube_read_meta(&r, &root, &meta);
    if (r.is_failed)
        return -1;
    *ret = meta;
    return 0;
}

int kube_decode(enum kube_kind kind, struct str body, struct arena *arena, struct kube_object *ret, struct err *e)
{
    json_t *json KUBE_JSON_AUTO = kube_parse_json(body, e);
    return json ? kube_decode_json(kind, json, arena, ret, e) : -1;
}

int kube_decode_scale(struct str body, struct arena *arena, struct kube_scale *ret, struct err *e)
{
    json_t *json KUBE_JSON_AUTO = kube_parse_json(body, e);
    struct kube_reader r = {.arena = arena, .e = e};
    struct kube_at root = {.json = json};
    if (!json)
        return -1;
    if (!json_is_object(json))
        return err_set(e, ERR_INVALID_ARGUMENT, "the scale is not a JSON object");
    struct kube_at spec = kube_at_object(&r, &root, "spec"), status = kube_at_object(&r, &root, "status");
    struct kube_scale scale = {
        .spec = kube_at_int(&r, &spec, "replicas", 0),
        .status = kube_at_int(&r, &status, "replicas", 0),
        .selector = kube_at_text(&r, &status, "selector", ""),
    };
    if (r.is_failed)
        return -1;
    *ret = scale;
    return 0;
}
