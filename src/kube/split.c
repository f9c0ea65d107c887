/* A list of the API as it comes in, cut into its items and its metadata, so that a page is never held as a whole. Looks
 * at brackets, strings and the keys of the outermost object; what is inside the parts is checked by who parses them. */
#include "kube/kube_private.h"

#include <string.h>

enum { META_BYTES_MAX = 64 << 10, DEPTH_MAX = 4096 };

void kube_split_init(struct kube_split *split, int (*item)(void *context, struct str json),
                     void (*too_large)(void *context), void *context)
{
    *split = (struct kube_split){.item = item, .too_large = too_large, .context = context};
    buf_init(&split->part, KUBE_OBJECT_BYTES_MAX);
    buf_init(&split->meta, META_BYTES_MAX);
}

void kube_split_fini(struct kube_split *split)
{
    buf_fini(&split->part);
    buf_fini(&split->meta);
}

void kube_split_reset(struct kube_split *split)
{
    kube_split_fini(split); /* memory of a large item is not kept */
    kube_split_init(split, split->item, split->too_large, split->context);
}

bool kube_split_is_whole(const struct kube_split *split)
{
    return split->is_over && split->has_items && split->meta.len > 0 && !split->meta.is_overflowed;
}

/* Bytes of a string. Outermost keys are kept, with no escapes undone: those we look for have none. */
static void in_string(struct kube_split *split, char c)
{
    if (split->is_escaped) {
        split->is_escaped = false;
    } else if (c == '\\') {
        split->is_escaped = true;
    } else if (c == '"') {
        split->is_string = false;
        return;
    }
    if (split->depth == 1 && !split->is_value && split->key_len + 1 < sizeof(split->key)) {
        split->key[split->key_len++] = c;
        split->key[split->key_len] = '\0';
    }
}

static void begin_string(struct kube_split *split)
{
    split->is_string = true;
    if (split->depth == 1 && !split->is_value) {
        split->key_len = 0;
        split->key[0] = '\0';
    }
}

/* An opening bracket. Returns true where a part begins with it. */
static bool begin(struct kube_split *split, char c)
{
    bool is_member = split->depth == 1 && split->is_value;
    bool is_item = split->depth == 2 && split->is_in_items && c == '{';
    split->depth++;
    if (is_member && c == '[' && strcmp(split->key, "items") == 0)
        split->is_in_items = split->has_items = true;
    if (is_item)
        split->taking = KUBE_SPLIT_ITEM;
    else if (is_member && c == '{' && strcmp(split->key, "metadata") == 0)
        split->taking = KUBE_SPLIT_META;
    else
        return false;
    return true;
}

/* The part is complete. */
static int end_part(struct kube_split *split)
{
    enum kube_split_part part = split->taking;
    split->taking = KUBE_SPLIT_NONE;
    if (part == KUBE_SPLIT_META)
        return 0;
    split->n_items++;
    int rc = 0;
    if (split->part.is_overflowed)
        split->too_large(split->context);
    else
        rc = split->item(split->context, (struct str){split->part.data, split->part.len});
    buf_reset(&split->part);
    return rc;
}

/* A closing bracket. Returns true where it ends the part that is being taken. */
static bool end(struct kube_split *split)
{
    split->depth--;
    if (split->depth == 0)
        split->is_over = true;
    if (split->is_in_items && split->depth == 1)
        split->is_in_items = false;
    return (split->taking == KUBE_SPLIT_ITEM && split->depth == 2) ||
           (split->taking == KUBE_SPLIT_META && split->depth == 1);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Is this byte impossible where it stands in the list itself? */
static bool is_wrong(const struct kube_split *split, char c)
{
    if (split->is_over)
        return !is_space(c);
    if (split->depth == 0)
        return c != '{' && !is_space(c);
    if (split->depth == 2 && split->is_in_items)
        return c != '{' && c != ',' && c != ']' && !is_space(c);
    return split->depth >= DEPTH_MAX;
}

static void take(struct kube_split *split, const char *bytes, size_t len)
{
    if (split->taking == KUBE_SPLIT_ITEM)
        (void)buf_append(&split->part, bytes, len);
    else if (split->taking == KUBE_SPLIT_META)
        (void)buf_append(&split->meta, bytes, len);
}

int kube_split_feed(struct kube_split *split, const char *bytes, size_t len)
{
    size_t from = 0; /* of the part in these bytes */
    for (size_t i = 0; i < len; i++) {
        char c = bytes[i];
        if (split->is_string) {
            in_string(split, c);
            continue;
        }
        if (is_wrong(split, c))
            return -1;
        if (c == '"') {
            begin_string(split);
        } else if (c == '{' || c == '[') {
            if (begin(split, c))
                from = i;
        } else if (c == '}' || c == ']') {
            if (!end(split))
                continue;
            take(split, bytes + from, i + 1 - from);
            if (end_part(split) < 0)
                return -1;
        } else if (split->depth == 1 && (c == ':' || c == ',')) {
            split->is_value = c == ':';
            split->has_items = split->has_items || (c == ':' && strcmp(split->key, "items") == 0);
        }
    }
    take(split, bytes + from, len - from);
    return 0;
}
