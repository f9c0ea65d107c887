/* Secrets: read, create, lay new content over a version that was read. What they hold is the caller's business; it is
 * never part of a message. */
#include "kube/kube_private.h"

#include <assert.h>
#include <string.h>

enum { SECRET_BYTES_MAX = 4 << 20 }; /* the API's own limit is 1 MiB of content */

struct kube_secret_call {
    struct kube *k;
    struct kube_request request;
    struct buf body;
    char **keys; /* to be read; NULL-terminated */
    kube_secret_done *done;
    void *context;
};

static void free_call(struct kube_secret_call *call)
{
    call->k->secret = NULL;
    for (char **key = call->keys; *key; key++)
        free(*key);
    free(call->keys);
    buf_fini(&call->body);
    free(call);
}

void kube_secret_free(struct kube *k)
{
    if (!k->secret)
        return;
    kube_request_cancel(&k->secret->request);
    free_call(k->secret);
}

/* ---- reading ---- */

static const char *take_item(struct kube_reader *r, const struct kube_at *data, const char *key)
{
    const char *encoded = kube_at_text(r, data, key, NULL);
    char *text MEM_AUTO = encoded ? kube_from_base64(encoded) : NULL;
    return text ? arena_strndup(r->arena, text, strlen(text)) : NULL;
}

static void read_secret(struct kube_reader *r, const struct kube_at *root, char *const *keys, struct kube_secret *ret)
{
    static const char helm[] = "meta.helm.sh/release-name", policy[] = "helm.sh/resource-policy";
    struct kube_at data = kube_at_object(r, root, "data");
    kube_read_meta(r, root, &ret->meta);
    ret->type = kube_at_text(r, root, "type", "Opaque");
    const char *kept = kube_read_mark(r, root, "annotations", policy);
    ret->is_helms = kube_read_mark(r, root, "annotations", helm) != NULL;
    ret->is_kept = kept && strcmp(kept, "keep") == 0;
    for (; *keys && ret->n_items < KUBE_SECRET_ITEMS_MAX; keys++) {
        const char *text = take_item(r, &data, *keys);
        if (text)
            ret->items[ret->n_items++] = (struct kube_pair){*keys, text};
    }
}

static int decode(struct kube_secret_call *call, struct arena *arena, struct kube_secret *ret, struct err *e)
{
    json_t *json KUBE_JSON_AUTO = kube_parse_json((struct str){call->body.data, call->body.len}, e);
    if (!json)
        return -1;
    struct kube_reader r = {.arena = arena, .e = e};
    struct kube_at root = {.json = json};
    read_secret(&r, &root, call->keys, ret);
    return r.is_failed ? -1 : 0;
}

/* ---- calls ---- */

static int on_body(void *context, const char *bytes, size_t len)
{
    struct kube_secret_call *call = (struct kube_secret_call *)context;
    return buf_append(&call->body, bytes, len);
}

static void on_done(void *context, const struct err *error)
{
    struct kube_secret_call *call = (struct kube_secret_call *)context;
    struct arena arena ARENA_AUTO;
    struct kube_secret secret = {.n_items = 0};
    struct err e;
    arena_init(&arena, KUBE_ARENA_BYTES_MAX);
    if (!error && decode(call, &arena, &secret, &e) < 0)
        error = &e;
    struct kube_secret_call mine = *call;
    mine.k->secret = NULL; /* done may start the next */
    mine.done(mine.context, error ? NULL : &secret, error);
    for (char **key = mine.keys; *key; key++)
        free(*key);
    free(mine.keys);
    buf_fini(&mine.body);
    free(call);
}

static struct kube_secret_call *new_call(struct kube *k, kube_secret_done *done, void *context)
{
    assert(!k->secret);
    struct kube_secret_call *call = mem_new(struct kube_secret_call);
    call->k = k;
    call->done = done;
    call->context = context;
    buf_init(&call->body, SECRET_BYTES_MAX);
    k->secret = call;
    return call;
}

static void start(struct kube_secret_call *call, enum kube_verb verb, const struct kube_secret_name *what,
                  struct str content)
{
    struct buf path BUF_AUTO;
    buf_init(&path, 4096);
    (void)buf_append_str(&path, "/api/v1/namespaces/");
    kube_escape(&path, what->ns);
    (void)buf_append_str(&path, "/secrets");
    if (verb != KUBE_CREATE) {
        (void)buf_append_char(&path, '/');
        kube_escape(&path, what->name);
    }
    kube_request_start(&call->request, call->k,
                       &(struct kube_request_config){.verb = verb,
                                                     .path = buf_cstr(&path),
                                                     .content = content,
                                                     .timeout_ns = call->k->timeout_ns,
                                                     .body = on_body,
                                                     .done = on_done,
                                                     .context = call});
}

void kube_secret_get(struct kube *k, const struct kube_secret_name *what, kube_secret_done *done, void *context)
{
    struct kube_secret_call *call = new_call(k, done, context);
    size_t n = 0;
    while (what->keys[n])
        n++;
    call->keys = (char **)mem_new_array(n + 1, sizeof(char *));
    for (size_t i = 0; i < n; i++)
        call->keys[i] = mem_strdup(what->keys[i]);
    start(call, KUBE_GET, what, (struct str){0});
}

/* ---- writing ---- */

static void write_pairs(struct buf *out, const char *key, const struct kube_pair *pairs, size_t n, bool is_encoded)
{
    (void)buf_printf(out, ",\"%s\":{", key);
    for (size_t i = 0; i < n; i++) {
        (void)buf_append_str(out, i ? "," : "");
        json_quote(out, pairs[i].key, strlen(pairs[i].key));
        (void)buf_append_char(out, ':');
        if (is_encoded) {
            (void)buf_append_char(out, '"');
            kube_to_base64(out, pairs[i].value, strlen(pairs[i].value));
            (void)buf_append_char(out, '"');
        } else {
            json_quote(out, pairs[i].value, strlen(pairs[i].value));
        }
    }
    (void)buf_append_char(out, '}');
}

static void write_secret(struct buf *out, const struct kube_secret *secret)
{
    bool is_new = !*secret->meta.resource_version;
    const char *name = is_new ? secret->meta.name : secret->meta.resource_version;
    (void)buf_printf(out, "{\"metadata\":{\"%s\":", is_new ? "name" : "resourceVersion");
    json_quote(out, name, strlen(name));
    if (secret->n_labels)
        write_pairs(out, "labels", secret->labels, secret->n_labels, false);
    if (secret->n_annotations)
        write_pairs(out, "annotations", secret->annotations, secret->n_annotations, false);
    (void)buf_append_char(out, '}');
    if (is_new) {
        (void)buf_append_str(out, ",\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"type\":");
        json_quote(out, secret->type, strlen(secret->type));
    }
    if (secret->n_items)
        write_pairs(out, "data", secret->items, secret->n_items, true);
    (void)buf_append_char(out, '}');
}

void kube_secret_put(struct kube *k, const struct kube_secret *secret, kube_secret_done *done, void *context)
{
    struct kube_secret_call *call = new_call(k, done, context);
    struct kube_secret_name what = {secret->meta.ns, secret->meta.name, NULL};
    struct buf content;
    call->keys = (char **)mem_new_array(1, sizeof(char *));
    buf_init(&content, SECRET_BYTES_MAX);
    write_secret(&content, secret);
    assert(!content.is_overflowed);
    start(call, *secret->meta.resource_version ? KUBE_PATCH : KUBE_CREATE, &what,
          (struct str){content.data, content.len});
    explicit_bzero(content.data, content.capacity);
    buf_fini(&content);
}
