/* Reads of the scale subresource. Which path a kind has is asked of the API's discovery, once in ten minutes for each
 * group and version however many ask. Owns the queue: so many reads at once and no more. */
#include "kube/kube_private.h"

#include <string.h>

enum {
    API_S = 600,      /* for how long discovery's answer holds */
    API_AGAIN_S = 10, /* a kind that was not there: a CRD may just have come */
    APIS_MAX = 64,
    API_KINDS_MAX = 2000,
    GETS_AT_ONCE = 16,
};

struct api_kind {
    char *kind, *plural;
    bool has_scale;
};

/* What a group and version has, and what was last heard of it. */
struct kube_api {
    struct kube *k;
    struct kube_api *next;
    char *version; /* "apps/v1", "v1" */
    VEC(struct api_kind) kinds;
    bool is_read, is_broken; /* broken: the last try, at broken_ns */
    int64_t read_ns, broken_ns;
    struct err broken;
    struct kube_request request;
    struct buf body;
};

enum get_state {
    GET_QUEUED,
    GET_DISCOVERS, /* waits for its api's request */
    GET_ASKS,      /* its own request runs */
};

struct kube_get {
    struct kube *k;
    struct kube_get *next, *prev;
    enum get_state state;
    char *version, *kind, *ns, *name;
    void (*done)(void *context, const struct kube_scale *scale, const struct err *error);
    void *context;
    struct net_timer *deadline;
    struct kube_request request;
    struct buf body;
};

static void pump(void *context);

/* ---- life of a get ---- */

static void unlink_get(struct kube_get *get)
{
    struct kube *k = get->k;
    *(get->prev ? &get->prev->next : &k->gets) = get->next;
    *(get->next ? &get->next->prev : &k->last_get) = get->prev;
    if (get->state == GET_ASKS)
        k->n_gets_active--;
}

static void free_get(struct kube_get *get)
{
    kube_request_cancel(&get->request);
    net_timer_free(get->deadline);
    buf_fini(&get->body);
    free(get->version);
    free(get->kind);
    free(get->ns);
    free(get->name);
    free(get);
}

/* Others go on at the end of the turn: whoever is called may end the client. */
static void finish_get(struct kube_get *get, const struct kube_scale *scale, const struct err *error)
{
    unlink_get(get);
    net_defer(get->k->loop, pump, get->k);
    get->done(get->context, scale, error);
    free_get(get);
}

static void fail_get(struct kube_get *get, struct err *e)
{
    (void)err_wrap(e, "scale of %s %s/%s", get->kind, get->ns, get->name);
    finish_get(get, NULL, e);
}

static void get_too_late(void *context)
{
    struct err e;
    (void)err_set(&e, ERR_DEADLINE_EXCEEDED, "no answer of the Kubernetes API in time");
    fail_get((struct kube_get *)context, &e);
}

/* ---- the scale itself ---- */

static int take_body(struct buf *body, const char *bytes, size_t len)
{
    return buf_append(body, bytes, len);
}

static int scale_body(void *context, const char *bytes, size_t len)
{
    return take_body(&((struct kube_get *)context)->body, bytes, len);
}

static void scale_done(void *context, const struct err *error)
{
    struct kube_get *get = (struct kube_get *)context;
    struct kube_scale scale;
    struct err e;
    struct arena arena ARENA_AUTO;
    arena_init(&arena, KUBE_ARENA_BYTES_MAX);
    if (error)
        e = *error;
    if (error || kube_decode_scale((struct str){get->body.data, get->body.len}, &arena, &scale, &e) < 0)
        fail_get(get, &e);
    else
        finish_get(get, &scale, NULL);
}

static void write_group_path(struct buf *out, const char *version)
{
    struct str rest = str_of(version);
    (void)buf_append_str(out, strchr(version, '/') ? "/apis" : "/api");
    while (rest.ptr) {
        struct str part = str_cut(&rest, '/');
        char *text MEM_AUTO = mem_strndup(part.ptr, part.len);
        (void)buf_append_char(out, '/');
        kube_escape(out, text);
    }
}

static void ask_scale(struct kube_get *get, const char *plural)
{
    struct buf path BUF_AUTO;
    buf_init(&path, SIZE_MAX);
    write_group_path(&path, get->version);
    (void)buf_append_str(&path, "/namespaces/");
    kube_escape(&path, get->ns);
    (void)buf_append_char(&path, '/');
    kube_escape(&path, plural);
    (void)buf_append_char(&path, '/');
    kube_escape(&path, get->name);
    (void)buf_append_str(&path, "/scale");
    get->state = GET_ASKS;
    get->k->n_gets_active++;
    kube_request_start(
        &get->request, get->k,
        &(struct kube_request_config){
            .verb = KUBE_GET, .path = buf_cstr(&path), .body = scale_body, .done = scale_done, .context = get});
}

/* ---- discovery ---- */

static void forget_kinds(struct kube_api *api)
{
    for (size_t i = 0; i < api->kinds.len; i++) {
        free(api->kinds.items[i].kind);
        free(api->kinds.items[i].plural);
    }
    vec_fini(&api->kinds);
}

static void free_api(struct kube_api *api)
{
    kube_request_cancel(&api->request);
    forget_kinds(api);
    buf_fini(&api->body);
    free(api->version);
    free(api);
}

static const struct api_kind *find_kind(const struct kube_api *api, const char *kind)
{
    for (size_t i = 0; i < api->kinds.len; i++)
        if (strcmp(api->kinds.items[i].kind, kind) == 0)
            return &api->kinds.items[i];
    return NULL;
}

/* "deployments" is a resource, "deployments/scale" says that it has a scale. */
static void read_resource(struct kube_api *api, struct kube_reader *r, const struct kube_at *at, bool is_scale)
{
    const char *name = kube_at_text(r, at, "name", ""), *kind = kube_at_text(r, at, "kind", "");
    const char *slash = strchr(name, '/');
    if (!slash && !is_scale && api->kinds.len < API_KINDS_MAX) {
        struct api_kind fresh = {mem_strdup(kind), mem_strdup(name), false};
        vec_push(&api->kinds, fresh);
    }
    for (size_t i = 0; slash && is_scale && strcmp(slash, "/scale") == 0 && i < api->kinds.len; i++) {
        struct api_kind *entry = &api->kinds.items[i];
        if (str_equals((struct str){name, (size_t)(slash - name)}, entry->plural))
            entry->has_scale = true;
    }
}

static int read_api(struct kube_api *api, struct err *e)
{
    json_t *json KUBE_JSON_AUTO = kube_parse_json((struct str){api->body.data, api->body.len}, e);
    struct arena arena ARENA_AUTO;
    arena_init(&arena, KUBE_ARENA_BYTES_MAX);
    struct kube_reader r = {.arena = &arena, .e = e};
    struct kube_at root = {.json = json};
    if (!json || !json_is_object(json))
        return json ? err_set(e, ERR_UNAVAILABLE, "the answer of the API's discovery is not an object") : -1;
    struct kube_at list = kube_at_array(&r, &root, "resources");
    forget_kinds(api);
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < kube_at_len(&list) && !r.is_failed; i++) {
            struct kube_at at = kube_at_item(&r, &list, i);
            read_resource(api, &r, &at, pass == 1);
        }
    if (r.is_failed)
        return -1;
    api->is_read = true;
    api->read_ns = net_now_ns(api->k->loop);
    return 0;
}

static int api_body(void *context, const char *bytes, size_t len)
{
    return take_body(&((struct kube_api *)context)->body, bytes, len);
}

static void api_done(void *context, const struct err *error)
{
    struct kube_api *api = (struct kube_api *)context;
    struct kube *k = api->k;
    struct err e = {0};
    if (error)
        e = *error;
    api->is_broken = error || read_api(api, &e) < 0;
    api->broken = e;
    api->broken_ns = net_now_ns(k->loop);
    buf_fini(&api->body);
    for (struct kube_get *get = k->gets; get; get = get->next)
        if (get->state == GET_DISCOVERS && strcmp(get->version, api->version) == 0)
            get->state = GET_QUEUED;
    net_defer(k->loop, pump, k);
}

static void start_discovery(struct kube_api *api)
{
    struct buf path BUF_AUTO;
    buf_init(&path, SIZE_MAX);
    write_group_path(&path, api->version);
    buf_init(&api->body, KUBE_OBJECT_BYTES_MAX);
    kube_request_start(&api->request, api->k,
                       &(struct kube_request_config){.verb = KUBE_GET,
                                                     .path = buf_cstr(&path),
                                                     .timeout_ns = api->k->timeout_ns,
                                                     .body = api_body,
                                                     .done = api_done,
                                                     .context = api});
}

/* Room for one more: the one that is at the end and not being asked goes. */
static void drop_api(struct kube *k)
{
    struct kube_api **last = NULL;
    size_t n = 0;
    for (struct kube_api **at = &k->apis; *at; at = &(*at)->next) {
        n++;
        if (!(*at)->request.fetch)
            last = at;
    }
    if (n < APIS_MAX || !last)
        return;
    struct kube_api *gone = *last;
    *last = gone->next;
    free_api(gone);
}

static struct kube_api *api_of(struct kube *k, const char *version)
{
    for (struct kube_api *api = k->apis; api; api = api->next)
        if (strcmp(api->version, version) == 0)
            return api;
    drop_api(k);
    struct kube_api *api = mem_new(struct kube_api);
    api->k = k;
    api->version = mem_strdup(version);
    api->next = k->apis;
    k->apis = api;
    return api;
}

static bool is_fresh(const struct kube_api *api, const char *kind)
{
    int64_t age = net_now_ns(api->k->loop) - api->read_ns;
    return api->is_read && age < (find_kind(api, kind) ? API_S : API_AGAIN_S) * NS_PER_S;
}

/* ---- the queue ---- */

/* One step of a queued get. True when it is over with an error, in *e. */
static bool start_get(struct kube_get *get, struct err *e)
{
    struct kube_api *api = api_of(get->k, get->version);
    if (!is_fresh(api, get->kind)) {
        if (api->is_broken && net_now_ns(get->k->loop) - api->broken_ns < NS_PER_S) {
            *e = api->broken;
            return true;
        }
        get->state = GET_DISCOVERS;
        if (!api->request.fetch)
            start_discovery(api);
        return false;
    }
    const struct api_kind *kind = find_kind(api, get->kind);
    if (!kind)
        (void)err_set(e, ERR_NOT_FOUND, "the Kubernetes API has no such kind in %s", get->version);
    else if (!kind->has_scale)
        (void)err_set(e, ERR_UNIMPLEMENTED, "the kind has no scale subresource in %s", get->version);
    else
        ask_scale(get, kind->plural);
    return !kind || !kind->has_scale;
}

/* Whoever is told of a failure may end the client: that comes last, and the rest in the next turn. */
static void pump(void *context)
{
    struct kube *k = (struct kube *)context;
    struct err e;
    for (struct kube_get *get = k->gets; get && k->n_gets_active < GETS_AT_ONCE; get = get->next)
        if (get->state == GET_QUEUED && start_get(get, &e)) {
            net_defer(k->loop, pump, k);
            fail_get(get, &e);
            return;
        }
}

struct kube_get *kube_get_scale(struct kube *k, const struct kube_target *target,
                                void (*done)(void *context, const struct kube_scale *scale, const struct err *error),
                                void *context)
{
    struct kube_get *get = mem_new(struct kube_get);
    get->k = k;
    get->version = mem_strdup(target->api_version);
    get->kind = mem_strdup(target->kind);
    get->ns = mem_strdup(target->ns);
    get->name = mem_strdup(target->name);
    get->done = done;
    get->context = context;
    buf_init(&get->body, KUBE_OBJECT_BYTES_MAX);
    get->deadline = net_timer_new(k->loop, get_too_late, get);
    net_timer_start(get->deadline, k->timeout_ns, 0);
    get->prev = k->last_get;
    *(get->prev ? &get->prev->next : &k->gets) = get;
    k->last_get = get;
    net_defer(k->loop, pump, k);
    return get;
}

void kube_get_cancel(struct kube_get *get)
{
    unlink_get(get);
    net_defer(get->k->loop, pump, get->k);
    free_get(get);
}

void kube_gets_free(struct kube *k)
{
    for (struct kube_get *get = k->gets, *next; get; get = next) {
        next = get->next;
        unlink_get(get);
        free_get(get);
    }
    for (struct kube_api *api = k->apis, *next; api; api = next) {
        next = api->next;
        free_api(api);
    }
    k->apis = NULL;
    net_defer_cancel(k->loop, k);
}
