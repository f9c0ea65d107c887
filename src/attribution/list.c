/* One answer of List to owners. The bytes are walked where they lie: an answer may have 16 MiB, nearly all of it CPU
 * ids, of which trees of messages would make many times as much. */
#include "attribution/attribution_private.h"

#include <string.h>

enum {
    TEXTS_BYTES = 4 << 20, /* of all holdings */
    IDS_MAX = 16384,       /* of GPUs in one answer, repeats included; more are counted as dropped */
};

/* ---- protobuf on the wire ---- */

struct field {
    uint32_t number;
    bool is_text; /* length-delimited; other fields are of no interest here */
    struct str bytes;
};

static bool take_varint(struct str *rest, uint64_t *ret)
{
    uint64_t value = 0;
    for (size_t i = 0; i < rest->len && i < 10; i++) {
        unsigned char byte = (unsigned char)rest->ptr[i];
        value |= (uint64_t)(byte & 0x7F) << (7 * i);
        if (byte & 0x80)
            continue;
        *rest = (struct str){rest->ptr + i + 1, rest->len - i - 1};
        *ret = value;
        return true;
    }
    return false;
}

static bool take_bytes(struct str *rest, uint64_t n, struct str *ret)
{
    if (n > rest->len)
        return false;
    *ret = (struct str){rest->ptr, (size_t)n};
    *rest = (struct str){rest->ptr + n, rest->len - (size_t)n};
    return true;
}

/* 1: a field; 0: the end; -1: no protobuf. */
static int next_field(struct str *rest, struct field *ret)
{
    uint64_t tag, value;
    if (rest->len == 0)
        return 0;
    if (!take_varint(rest, &tag) || tag >> 3 == 0 || tag > UINT32_MAX)
        return -1;
    *ret = (struct field){.number = (uint32_t)(tag >> 3), .is_text = (tag & 7) == 2};
    switch (tag & 7) {
    case 0:
        return take_varint(rest, &value) ? 1 : -1;
    case 1:
        return take_bytes(rest, 8, &ret->bytes) ? 1 : -1;
    case 2:
        return take_varint(rest, &value) && take_bytes(rest, value, &ret->bytes) ? 1 : -1;
    case 5:
        return take_bytes(rest, 4, &ret->bytes) ? 1 : -1;
    default: /* groups are older than this API */
        return -1;
    }
}

/* The text field of this number, the last one where there are several; empty when absent. */
static struct str text_field(struct str message, uint32_t number)
{
    struct str found = {"", 0};
    struct field f;
    while (next_field(&message, &f) > 0)
        if (f.is_text && f.number == number)
            found = f.bytes;
    return found;
}

/* ---- collecting ---- */

/* The field numbers are those of proto/podresources.proto. */
enum {
    LIST_PODS = 1,
    POD_NAME = 1,
    POD_NAMESPACE = 2,
    POD_CONTAINERS = 3,
    CONTAINER_NAME = 1,
    CONTAINER_DEVICES = 2,
    CONTAINER_DYNAMIC = 5,
    DEVICES_RESOURCE = 1,
    DEVICES_IDS = 2,
    DYNAMIC_CLAIM = 2,
    DYNAMIC_CLAIM_NAMESPACE = 3,
    DYNAMIC_RESOURCES = 4,
    CLAIM_DRIVER = 2,
    CLAIM_DEVICE = 4,
};

struct list {
    const struct snapshot *snapshot;
    const struct attribution_evidence *evidence;
    struct snapshot_owners owners; /* counts */
    struct arena texts;
    VEC(struct snapshot_holding) holdings;
    VEC(struct str) seen; /* ids of the container at hand */
    size_t first;         /* its first holding */
    size_t n_ids;
    struct str pod, ns, container;
};

/* What is the same for the ids of one message. */
struct source {
    struct str resource; /* or the DRA driver */
    struct str claim_ns, claim;
    bool is_dra;
};

static const char *keep(struct list *l, struct str text)
{
    return text.len == 0
               ? ""
               : arena_strndup(&l->texts, text.ptr, text.len < ATTRIBUTION_NAME_MAX ? text.len : ATTRIBUTION_NAME_MAX);
}

/* Was the id listed for this container before? It comes once for each NUMA node of the device. */
static bool was_seen(struct list *l, struct str id)
{
    for (size_t i = 0; i < l->seen.len; i++)
        if (l->seen.items[i].len == id.len && memcmp(l->seen.items[i].ptr, id.ptr, id.len) == 0)
            return true;
    vec_push(&l->seen, id);
    return false;
}

/* The container's holding of the same device, or NULL. */
static struct snapshot_holding *find_holding(struct list *l, struct str uuid, bool is_dra)
{
    for (size_t i = l->first; uuid.len && i < l->holdings.len; i++)
        if (str_equals(uuid, l->holdings.items[i].uuid) && l->holdings.items[i].is_dra == is_dra)
            return &l->holdings.items[i];
    return NULL;
}

static void add_holding(struct list *l, struct str id, const struct source *from, const struct attribution_device *d)
{
    struct str uuid = d->device ? str_of(d->device->uuid) : d->uuid;
    if (uuid.len >= SNAPSHOT_UUID_MAX)
        uuid.len = 0;
    struct snapshot_holding *known = find_holding(l, uuid, from->is_dra);
    if (known) {
        known->shares++;
        return;
    }
    struct snapshot_holding h = {.uuid = keep(l, uuid),
                                 .device_id = keep(l, id),
                                 .ns = keep(l, l->ns),
                                 .pod = keep(l, l->pod),
                                 .container = keep(l, l->container),
                                 .resource = keep(l, from->resource),
                                 .claim_ns = keep(l, from->claim_ns),
                                 .claim = keep(l, from->claim),
                                 .is_matched = d->device != NULL,
                                 .is_shared = d->is_shared,
                                 .is_dra = from->is_dra,
                                 .replica = d->replica,
                                 .shares = 1};
    bool has_room = l->holdings.len < SNAPSHOT_HOLDINGS_MAX;
    if (has_room && h.uuid && h.device_id && h.ns && h.pod && h.container && h.resource && h.claim_ns && h.claim)
        vec_push(&l->holdings, h);
    else
        l->owners.n_dropped++;
}

static void add_id(struct list *l, struct str id, const struct source *from)
{
    struct attribution_device d = from->is_dra ? attribution_resolve_dra(from->resource, id, l->snapshot)
                                               : attribution_resolve_id(id, from->resource, l->snapshot);
    if (!d.is_gpu)
        return; /* a network card, a TPU, a passed-through GPU: nothing that NVML sees */
    if (l->n_ids >= IDS_MAX) {
        l->owners.n_dropped++;
        return;
    }
    l->n_ids++;
    if (was_seen(l, id))
        return;
    for (size_t i = 0; d.is_all && l->snapshot && i < l->snapshot->n_devices; i++) {
        d.device = &l->snapshot->devices[i];
        if (d.device->kind != SNAPSHOT_MIG)
            add_holding(l, id, from, &d);
    }
    if (d.device)
        l->owners.n_matched++;
    else
        l->owners.n_unmatched++;
    if (!d.is_all || !d.device)
        add_holding(l, id, from, &d);
}

/* ---- walking ---- */

static int walk_devices(struct list *l, struct str message)
{
    struct source from = {.resource = text_field(message, DEVICES_RESOURCE)};
    struct field f;
    int more;
    while ((more = next_field(&message, &f)) > 0)
        if (f.is_text && f.number == DEVICES_IDS)
            add_id(l, f.bytes, &from);
    return more;
}

static int walk_dynamic(struct list *l, struct str message)
{
    struct source from = {.claim_ns = text_field(message, DYNAMIC_CLAIM_NAMESPACE),
                          .claim = text_field(message, DYNAMIC_CLAIM),
                          .is_dra = true};
    struct field f;
    int more;
    while ((more = next_field(&message, &f)) > 0) {
        if (!f.is_text || f.number != DYNAMIC_RESOURCES)
            continue;
        from.resource = text_field(f.bytes, CLAIM_DRIVER);
        add_id(l, text_field(f.bytes, CLAIM_DEVICE), &from);
    }
    return more;
}

static int walk_container(struct list *l, struct str message)
{
    l->container = text_field(message, CONTAINER_NAME);
    l->first = l->holdings.len;
    l->seen.len = 0;
    struct field f;
    int more;
    while ((more = next_field(&message, &f)) > 0) {
        bool is_bad = (f.is_text && f.number == CONTAINER_DEVICES && walk_devices(l, f.bytes) < 0) ||
                      (f.is_text && f.number == CONTAINER_DYNAMIC && walk_dynamic(l, f.bytes) < 0);
        if (is_bad)
            return -1;
    }
    return more;
}

static int walk_pod(struct list *l, struct str message)
{
    l->owners.n_pods++;
    l->pod = text_field(message, POD_NAME);
    l->ns = text_field(message, POD_NAMESPACE);
    struct field f;
    int more;
    while ((more = next_field(&message, &f)) > 0)
        if (f.is_text && f.number == POD_CONTAINERS && walk_container(l, f.bytes) < 0)
            return -1;
    return more;
}

static int walk_list(struct list *l, struct str message)
{
    struct field f;
    int more;
    while ((more = next_field(&message, &f)) > 0)
        if (f.is_text && f.number == LIST_PODS && walk_pod(l, f.bytes) < 0)
            return -1;
    return more;
}

/* ---- several holders of one device ---- */

static bool is_same_pod(const struct snapshot_holding *a, const struct snapshot_holding *b)
{
    return strcmp(a->pod, b->pod) == 0 && strcmp(a->ns, b->ns) == 0;
}

/* The device plugin gives an exclusive id to one pod at a time: kubelets before 1.34 still list the one that has ended.
 */
static bool is_exclusive(const struct snapshot_holding *h)
{
    return !h->is_dra && !h->is_shared;
}

static bool is_alive(const struct list *l, const struct snapshot_holding *h)
{
    return l->evidence && l->evidence->is_alive(l->evidence->context, h->uuid, h->ns, h->pod);
}

/* Does another pod hold this one's device by better right: it has a process there and this one has none, or it is later
 * in the list? */
static bool is_superseded(const struct list *l, size_t i)
{
    const struct snapshot_holding *a = &l->holdings.items[i];
    for (size_t k = 0; *a->uuid && is_exclusive(a) && k < l->holdings.len; k++) {
        const struct snapshot_holding *b = &l->holdings.items[k];
        if (k == i || strcmp(a->uuid, b->uuid) != 0 || is_same_pod(a, b) || !is_exclusive(b) ||
            strcmp(a->resource, b->resource) != 0)
            continue;
        bool is_a_alive = is_alive(l, a), is_b_alive = is_alive(l, b);
        if (is_a_alive == is_b_alive ? k > i : is_b_alive)
            return true;
    }
    return false;
}

static void drop_superseded(struct list *l)
{
    VEC(bool) superseded = {0};
    for (size_t i = 0; i < l->holdings.len; i++)
        vec_push(&superseded, is_superseded(l, i));
    size_t n = 0;
    for (size_t i = 0; i < l->holdings.len; i++) {
        if (superseded.items[i])
            l->owners.n_superseded++;
        else
            l->holdings.items[n++] = l->holdings.items[i];
    }
    l->holdings.len = n;
    vec_fini(&superseded);
}

/* Pods with claims on one device, or a device under two resource names. */
static void mark_shared(struct list *l)
{
    for (size_t i = 0; i < l->holdings.len; i++) {
        struct snapshot_holding *a = &l->holdings.items[i];
        for (size_t k = i + 1; *a->uuid && k < l->holdings.len; k++) {
            struct snapshot_holding *b = &l->holdings.items[k];
            if (strcmp(a->uuid, b->uuid) == 0 && !is_same_pod(a, b))
                a->is_shared = b->is_shared = true;
        }
    }
}

struct snapshot_owners *attribution_read_list(struct str answer, const struct snapshot *snapshot,
                                              const struct attribution_evidence *evidence, int64_t now_ns,
                                              struct err *e)
{
    struct list l = {
        .snapshot = snapshot, .evidence = evidence, .owners = {.taken_ns = now_ns, .state = SNAPSHOT_OWNERS_OK}};
    struct snapshot_owners *made = NULL;
    arena_init(&l.texts, TEXTS_BYTES);
    if (walk_list(&l, answer) < 0) {
        (void)err_set(e, ERR_INTERNAL, "the answer of %zu bytes is no ListPodResourcesResponse", answer.len);
    } else {
        drop_superseded(&l);
        mark_shared(&l);
        l.owners.holdings = l.holdings.items;
        l.owners.n_holdings = l.holdings.len;
        made = snapshot_owners_new(&l.owners);
    }
    vec_fini(&l.holdings);
    vec_fini(&l.seen);
    arena_fini(&l.texts);
    return made;
}

struct snapshot_owners *attribution_parse(struct str answer, const struct snapshot *snapshot, int64_t now_ns,
                                          struct err *e)
{
    return attribution_read_list(answer, snapshot, NULL, now_ns, e);
}
