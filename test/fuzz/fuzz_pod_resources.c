/* Any bytes as the kubelet's answer: what comes out is in order, counted and inside its ceilings. */
#include "attribution/attribution.h"
#include "snapshot/snapshot.h"

#include <string.h>

static const struct snapshot *node(void)
{
    static const struct snapshot *made;
    static const char *const uuids[] = {"GPU-11111111-2222-3333-4444-555555555555",
                                        "MIG-10000000-0000-0000-0000-000000000001"};
    if (made)
        return made;
    struct snapshot_store *store = snapshot_store_new(NS_PER_S);
    for (int i = 0; i < 2; i++) {
        struct snapshot_device d = {.kind = i ? SNAPSHOT_MIG : SNAPSHOT_MIG_PARENT, .mig_profile = "1g.10gb"};
        (void)str_copy(d.uuid, sizeof(d.uuid), str_of(uuids[i]));
        (void)str_copy(d.parent_uuid, sizeof(d.parent_uuid), str_of(i ? uuids[0] : ""));
        (void)snapshot_store_add(store, &d);
    }
    made = snapshot_store_publish(store, NS_PER_S);
    snapshot_store_free(store);
    return made;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e;
    struct snapshot_owners *owners = attribution_parse((struct str){(const char *)data, size}, node(), 1, &e);
    if (!owners)
        return 0;
    if (owners->n_holdings > SNAPSHOT_HOLDINGS_MAX || owners->n_pods > size)
        abort();
    for (size_t i = 0; i < owners->n_holdings; i++) {
        const struct snapshot_holding *h = &owners->holdings[i];
        size_t n;
        if (h->shares < 1 || (i && strcmp(h[-1].uuid, h->uuid) > 0) || strlen(h->pod) > size)
            abort();
        if (*h->uuid && !snapshot_owners_of(owners, h->uuid, &n))
            abort();
    }
    snapshot_owners_unref(owners);
    return 0;
}
