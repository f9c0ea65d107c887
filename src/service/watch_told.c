/* What one hub was told of devices and holders, so that only what is new is said. Bounded by what one snapshot and one
 * list of holders hold: who is gone is forgotten. */
#include "service/watch.h"

#include <string.h>

struct watch_told *watch_tell(struct watch *w, struct watch_list *list, uint32_t id)
{
    size_t low = 0, high = list->of.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list->of.items[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < list->of.len && list->of.items[low].id == id)
        return &list->of.items[low];
    vec_push(&list->of, ((struct watch_told){.id = id}));
    struct watch_told *at = &list->of.items[low];
    memmove(at + 1, at, (list->of.len - 1 - low) * sizeof(*at));
    *at = (struct watch_told){.id = id};
    w->bytes += sizeof(*at);
    return at;
}

static void forget_one(struct watch *w, struct watch_told *told)
{
    watch_drop_readings(w, told);
    free(told->identity);
    w->bytes -= told->identity_len + sizeof(*told);
}

void watch_forget(struct watch *w, struct watch_list *list, size_t at)
{
    forget_one(w, &list->of.items[at]);
    vec_remove(&list->of, at);
}

bool watch_is_news(struct watch *w, struct watch_told *told, const struct buf *identity)
{
    if (told->identity && told->identity_len == identity->len &&
        memcmp(told->identity, identity->data, identity->len) == 0)
        return false;
    free(told->identity);
    w->bytes += identity->len - told->identity_len;
    told->identity = mem_strndup(identity->data, identity->len);
    told->identity_len = identity->len;
    return true;
}

void watch_add_readings(struct watch *w, struct watch_told *told)
{
    told->readings = (struct watch_sent *)mem_new_array(w->n_wants, sizeof(*told->readings));
    w->bytes += w->n_wants * sizeof(*told->readings);
}

void watch_drop_readings(struct watch *w, struct watch_told *told)
{
    if (!told->readings)
        return;
    free(told->readings);
    told->readings = NULL;
    w->bytes -= w->n_wants * sizeof(*told->readings);
}

static void forget_all(struct watch *w, struct watch_list *list)
{
    for (size_t i = 0; i < list->of.len; i++)
        forget_one(w, &list->of.items[i]);
    vec_fini(&list->of);
}

void watch_free(struct watch *w)
{
    if (!w)
        return;
    forget_all(w, &w->devices);
    forget_all(w, &w->holders);
    free(w->node);
    free(w);
}
