/* The owners of devices as one immutable block with a reference count, the look-up by device, and the names of states.
 * Where owners and holders come from is attribution's business. */
#include "snapshot/snapshot.h"

#include <stdatomic.h>
#include <string.h>

/* Holdings and then their texts follow in the same block. */
struct owners_block {
    atomic_size_t refs;
    struct snapshot_owners owners;
    struct snapshot_holding holdings[];
};

const char *snapshot_owners_state_name(enum snapshot_owners_state state)
{
    static const char *const names[] = {
#define X(id, name) [SNAPSHOT_OWNERS_##id] = (name),
        SNAPSHOT_OWNERS_STATES(X)
#undef X
    };
    return state < ARRAY_LEN(names) ? names[state] : "unknown";
}

const char *snapshot_sight_name(enum snapshot_sight sight)
{
    static const char *const names[] = {
#define X(id, name) [SNAPSHOT_SIGHT_##id] = (name),
        SNAPSHOT_SIGHT_STATES(X)
#undef X
    };
    return sight < ARRAY_LEN(names) ? names[sight] : "unknown";
}

/* The texts of a holding, for those who walk over them. */
enum { HOLDING_TEXTS = 8 };
static void texts_of(struct snapshot_holding *h, const char **texts[HOLDING_TEXTS])
{
    const char **all[HOLDING_TEXTS] = {&h->uuid,      &h->device_id, &h->ns,       &h->pod,
                                       &h->container, &h->resource,  &h->claim_ns, &h->claim};
    memcpy(texts, all, sizeof(all));
}

static int compare(const void *left, const void *right)
{
    const struct snapshot_holding *a = left, *b = right;
    int order = strcmp(a->uuid, b->uuid);
    order = order ? order : strcmp(a->ns, b->ns);
    order = order ? order : strcmp(a->pod, b->pod);
    order = order ? order : strcmp(a->container, b->container);
    return order ? order : strcmp(a->device_id, b->device_id);
}

struct snapshot_owners *snapshot_owners_new(const struct snapshot_owners *owners)
{
    const char **texts[HOLDING_TEXTS];
    size_t texts_bytes = 0, n = owners->n_holdings;
    for (size_t i = 0; i < n; i++) {
        struct snapshot_holding h = owners->holdings[i];
        texts_of(&h, texts);
        for (size_t t = 0; t < HOLDING_TEXTS; t++)
            texts_bytes += strlen(*texts[t]) + 1;
    }
    size_t size = sizeof(struct owners_block) + n * sizeof(struct snapshot_holding);
    struct owners_block *block = mem_new_array(1, size + texts_bytes);
    char *to = (char *)block + size;
    for (size_t i = 0; i < n; i++) {
        block->holdings[i] = owners->holdings[i];
        texts_of(&block->holdings[i], texts);
        for (size_t t = 0; t < HOLDING_TEXTS; t++) {
            size_t len = strlen(*texts[t]) + 1;
            *texts[t] = memcpy(to, *texts[t], len);
            to += len;
        }
    }
    if (n)
        qsort(block->holdings, n, sizeof(*block->holdings), compare);
    atomic_init(&block->refs, 1);
    block->owners = *owners;
    block->owners.holdings = block->holdings;
    return &block->owners;
}

static struct owners_block *block_of(const struct snapshot_owners *owners)
{
    /* Through an integer: the count moves although readers hold const owners. */
    return (struct owners_block *)((uintptr_t)owners - offsetof(struct owners_block, owners));
}

struct snapshot_owners *snapshot_owners_ref(const struct snapshot_owners *owners)
{
    struct owners_block *block = block_of(owners);
    atomic_fetch_add_explicit(&block->refs, 1, memory_order_relaxed);
    return &block->owners;
}

void snapshot_owners_unref(const struct snapshot_owners *owners)
{
    if (owners && atomic_fetch_sub_explicit(&block_of(owners)->refs, 1, memory_order_acq_rel) == 1)
        free(block_of(owners));
}

const struct snapshot_holding *snapshot_owners_of(const struct snapshot_owners *owners, const char *uuid, size_t *ret_n)
{
    *ret_n = 0;
    size_t low = 0, high = owners && *uuid ? owners->n_holdings : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(owners->holdings[middle].uuid, uuid) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (!owners || !*uuid)
        return NULL;
    while (low + *ret_n < owners->n_holdings && strcmp(owners->holdings[low + *ret_n].uuid, uuid) == 0)
        ++*ret_n;
    return *ret_n ? &owners->holdings[low] : NULL;
}
