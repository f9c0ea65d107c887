/* A watch: list in pages, then events from there on, for ever. Owns the place (resourceVersion), the keys of what is
 * there, and when to try again. The objects themselves are told and forgotten. */
#include "kube/kube_private.h"

#include <stdio.h>
#include <string.h>

enum {
    PAGE_ITEMS = 500,
    OBJECTS_MAX = 100000,
    WATCH_S = 300,   /* at least; at most twice that */
    SILENCE_S = 180, /* servers send bookmarks about once a minute */
    HEALTHY_S = 90,
    LINE_EXTRA_BYTES = 4096, /* of an event around its object */
    BACKOFF_MAX_S = 30,
    GOOD_S = 10,    /* a watch that lasted so long was good */
    LOST_AFTER = 4, /* refused watches since the last list: list again */
};

/* What is known to be there. */
struct seen {
    char *ns, *name, *uid;
    uint64_t list; /* in which list it was last */
};

struct kube_watch {
    struct kube *k;
    struct kube_watch *next, *prev;
    struct kube_watch_config config; /* texts are our own */
    enum kube_watch_state state;
    struct kube_request request;
    struct net_timer *timer;
    struct kube_split split; /* of a page */
    struct buf line;         /* of an event */
    struct map *seen;        /* "ns/name" -> struct seen */
    uint64_t list;           /* number of this list */
    char *version, *next_page;
    bool must_list, is_synced, is_freed;
    bool is_partial; /* this list had something without a name: nothing is known to be gone */
    bool was_full;   /* told of max_objects in this list */
    bool has_broken; /* broken says why the body was refused */
    struct err broken;
    int depth;           /* callbacks of ours on the stack */
    unsigned n_failures; /* in a row, until a watch has proved good */
    unsigned n_refused;  /* watches since the last list */
    int64_t heard_ns, opened_ns;
};

static void step(void *context);

static const char *resource_of(const struct kube_watch *w)
{
    static const char *const plurals[] = {
#define X(id, plural, path, type) plural,
        KUBE_KINDS(X)
#undef X
    };
    return plurals[w->config.kind];
}

/* ---- metrics ---- */

static void set_state(struct kube_watch *w, enum kube_watch_state state)
{
    static const char *const names[] = {
        [KUBE_WATCH_WAITING] = "waiting", [KUBE_WATCH_LISTING] = "listing", [KUBE_WATCH_WATCHING] = "watching"};
    const char *before[] = {resource_of(w), names[w->state]}, *after[] = {resource_of(w), names[state]};
    metric_add(metric_series(w->k->states, before), -1);
    metric_add(metric_series(w->k->states, after), 1);
    w->state = state;
}

static void count_restart(const struct kube_watch *w, enum kube_restart reason)
{
    static const char *const reasons[] = {[KUBE_RESTART_ENDED] = "ended",
                                          [KUBE_RESTART_EXPIRED] = "expired",
                                          [KUBE_RESTART_SILENT] = "silent",
                                          [KUBE_RESTART_ERROR] = "error"};
    const char *values[] = {resource_of(w), reasons[reason]};
    metric_add(metric_series(w->k->restarts, values), 1);
}

static void count_objects(const struct kube_watch *w, double change)
{
    const char *values[] = {resource_of(w)};
    metric_add(metric_series(w->k->objects, values), change);
}

/* ---- life; a watch may be freed from inside its callbacks ---- */

static void destroy(struct kube_watch *w)
{
    net_timer_free(w->timer);
    kube_split_fini(&w->split);
    buf_fini(&w->line);
    map_free(w->seen);
    free(w->version);
    free(w->next_page);
    char *texts[] = {(char *)(uintptr_t)w->config.ns, (char *)(uintptr_t)w->config.label_selector,
                     (char *)(uintptr_t)w->config.field_selector};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        free(texts[i]);
    free(w);
}

static void enter(struct kube_watch *w)
{
    w->depth++;
}

static void leave(struct kube_watch *w)
{
    if (--w->depth == 0 && w->is_freed)
        destroy(w);
}

static void tell_failed(struct kube_watch *w, const struct err *error)
{
    if (w->config.failed && !w->is_freed)
        w->config.failed(w->config.context, error);
}

/* ---- what is there ---- */

static void seen_free(void *value)
{
    struct seen *seen = (struct seen *)value;
    free(seen->ns);
    free(seen->name);
    free(seen->uid);
    free(seen);
}

static size_t key_of(struct buf *out, const char *ns, const char *name)
{
    buf_init(out, SIZE_MAX);
    (void)buf_printf(out, "%s/%s", ns, name);
    return out->len;
}

static void tell_gone(struct kube_watch *w, const char *ns, const char *name)
{
    struct buf key BUF_AUTO;
    size_t len = key_of(&key, ns, name);
    const struct seen *seen = (const struct seen *)map_get(w->seen, key.data, len);
    if (!seen)
        return;
    char *uid MEM_AUTO = mem_strdup(seen->uid), *own_ns MEM_AUTO = mem_strdup(ns),
              *own_name MEM_AUTO = mem_strdup(name);
    map_remove(w->seen, key.data, len);
    count_objects(w, -1);
    w->config.gone(w->config.context, own_ns, own_name, uid);
}

/* It is there: remember it. False when there is no room. May tell that its predecessor of the same name is gone. */
static bool note_seen(struct kube_watch *w, const struct kube_meta *meta)
{
    struct buf key BUF_AUTO;
    size_t len = key_of(&key, meta->ns, meta->name);
    struct seen *seen = (struct seen *)map_get(w->seen, key.data, len);
    if (seen && strcmp(seen->uid, meta->uid) != 0) {
        tell_gone(w, meta->ns, meta->name);
        if (w->is_freed)
            return false;
        seen = NULL;
    }
    if (!seen) {
        if (map_len(w->seen) >= w->config.max_objects)
            return false;
        seen = mem_new(struct seen);
        *seen = (struct seen){mem_strdup(meta->ns), mem_strdup(meta->name), mem_strdup(meta->uid), 0};
        map_put(w->seen, key.data, len, seen);
        count_objects(w, 1);
    }
    seen->list = w->list;
    return true;
}

/* What cannot be decoded is still there, if it was before. */
static void note_broken(struct kube_watch *w, json_t *json, struct arena *arena, struct err *e)
{
    struct kube_meta meta;
    struct err ignored;
    if (!json || kube_decode_meta(json, arena, &meta, &ignored) < 0) {
        w->is_partial = true;
    } else {
        struct buf key BUF_AUTO;
        size_t len = key_of(&key, meta.ns, meta.name);
        struct seen *seen = (struct seen *)map_get(w->seen, key.data, len);
        if (seen)
            seen->list = w->list;
        (void)err_wrap(e, "%s/%s", meta.ns, meta.name);
    }
    (void)err_wrap(e, "%s", resource_of(w));
    tell_failed(w, e);
}

static void say_full(struct kube_watch *w)
{
    struct err e;
    if (w->was_full)
        return;
    w->was_full = true;
    (void)err_set(&e, ERR_RESOURCE_EXHAUSTED, "there are more than %zu %s: the others are not looked at",
                  w->config.max_objects, resource_of(w));
    tell_failed(w, &e);
}

static void take_object(struct kube_watch *w, json_t *json, struct arena *arena)
{
    struct kube_object object;
    struct err e;
    if (kube_decode_json(w->config.kind, json, arena, &object, &e) < 0)
        note_broken(w, json, arena, &e);
    else if (note_seen(w, &object.meta))
        w->config.changed(w->config.context, &object);
    else if (!w->is_freed)
        say_full(w);
}

static void collect_gone(void *context, const void *key, size_t key_len, void *value)
{
    struct {
        uint64_t list;
        VEC(const struct seen *) gone;
    } *sweep = context;
    (void)key;
    (void)key_len;
    const struct seen *seen = (const struct seen *)value;
    if (seen->list != sweep->list)
        vec_push(&sweep->gone, seen);
}

/* A whole list was told: what it did not have is gone. Callbacks cannot add to the map, so the texts live until each
 * one's turn. */
static void sweep(struct kube_watch *w)
{
    struct {
        uint64_t list;
        VEC(const struct seen *) gone;
    } sweep = {.list = w->list};
    if (w->is_partial)
        return;
    map_each(w->seen, collect_gone, &sweep);
    for (size_t i = 0; i < sweep.gone.len && !w->is_freed; i++)
        tell_gone(w, sweep.gone.items[i]->ns, sweep.gone.items[i]->name);
    vec_fini(&sweep.gone);
}

/* ---- trying again ---- */

/* Full jitter: anything up to 1 s after the first failure, 2 s, 4 s ... 30 s. */
static void try_later(struct kube_watch *w, int64_t at_least_ns)
{
    unsigned shift = w->n_failures < 6 ? w->n_failures : 6;
    int64_t most_s = 1 << shift;
    if (most_s > BACKOFF_MAX_S)
        most_s = BACKOFF_MAX_S;
    int64_t delay = (int64_t)(net_random(w->k->loop) * (double)(most_s * NS_PER_S));
    if (at_least_ns > BACKOFF_MAX_S * NS_PER_S)
        at_least_ns = BACKOFF_MAX_S * NS_PER_S;
    w->n_failures++;
    set_state(w, KUBE_WATCH_WAITING);
    net_timer_start(w->timer, delay > at_least_ns ? delay : at_least_ns, 0);
}

static void fail(struct kube_watch *w, const struct err *error)
{
    tell_failed(w, error);
    if (!w->is_freed)
        try_later(w, w->request.retry_after_ns);
}

static void forget_place(struct kube_watch *w)
{
    w->must_list = true;
    free(w->next_page);
    w->next_page = NULL;
}

static int refuse_body(struct kube_watch *w, const struct err *error)
{
    w->has_broken = true;
    w->broken = *error;
    return -1;
}

/* ---- listing ---- */

static int got_item(void *context, struct str text)
{
    struct kube_watch *w = (struct kube_watch *)context;
    struct err e;
    json_t *json KUBE_JSON_AUTO = kube_parse_json(text, &e);
    struct arena arena ARENA_AUTO;
    arena_init(&arena, KUBE_ARENA_BYTES_MAX);
    if (json)
        take_object(w, json, &arena);
    else
        note_broken(w, NULL, &arena, &e);
    return w->is_freed ? -1 : 0;
}

static void too_large(void *context)
{
    struct kube_watch *w = (struct kube_watch *)context;
    struct err e;
    w->is_partial = true;
    (void)err_set(&e, ERR_RESOURCE_EXHAUSTED, "%s: an object of more than 2 MiB is passed over", resource_of(w));
    tell_failed(w, &e);
}

static int list_body(void *context, const char *bytes, size_t len)
{
    struct kube_watch *w = (struct kube_watch *)context;
    struct err e;
    enter(w);
    w->heard_ns = net_now_ns(w->k->loop);
    int rc = kube_split_feed(&w->split, bytes, len);
    if (rc < 0 && !w->is_freed) {
        (void)err_set(&e, ERR_UNAVAILABLE, "%s: the answer is not a list", resource_of(w));
        rc = refuse_body(w, &e);
    }
    leave(w);
    return rc;
}

/* Where to go on: resourceVersion and the next page. */
static int read_list_meta(struct kube_watch *w, struct err *e)
{
    const struct kube_split *split = &w->split;
    json_t *json KUBE_JSON_AUTO =
        kube_split_is_whole(split) ? kube_parse_json((struct str){split->meta.data, split->meta.len}, e) : NULL;
    const char *version = json_string_value(json_object_get(json, "resourceVersion"));
    const char *next = json_string_value(json_object_get(json, "continue"));
    if (!version || !*version)
        return err_set(e, ERR_UNAVAILABLE, "%s: the answer is not a whole list", resource_of(w));
    if (next && *next && split->n_items == 0)
        return err_set(e, ERR_UNAVAILABLE, "%s: an empty page that is not the last", resource_of(w));
    free(w->version);
    free(w->next_page);
    w->version = mem_strdup(version);
    w->next_page = next && *next ? mem_strdup(next) : NULL;
    return 0;
}

static void list_ended(struct kube_watch *w)
{
    w->must_list = false;
    w->n_refused = 0;
    sweep(w);
    if (w->is_freed)
        return;
    w->is_synced = true;
    if (w->config.synced)
        w->config.synced(w->config.context);
    if (!w->is_freed)
        step(w);
}

static void list_failed(struct kube_watch *w, const struct err *error)
{
    bool is_expired = w->request.status == 410;
    forget_place(w);
    if (is_expired) {
        count_restart(w, KUBE_RESTART_EXPIRED);
        try_later(w, 0);
        return;
    }
    fail(w, w->has_broken ? &w->broken : error);
}

static void list_done(void *context, const struct err *error)
{
    struct kube_watch *w = (struct kube_watch *)context;
    struct err e;
    enter(w);
    if (error)
        list_failed(w, error);
    else if (read_list_meta(w, &e) < 0)
        list_failed(w, &e);
    else if (w->next_page)
        step(w);
    else
        list_ended(w);
    leave(w);
}

/* ---- watching ---- */

/* The place moves on with every event and bookmark. */
static void move_on(struct kube_watch *w, json_t *object)
{
    const char *version = json_string_value(json_object_get(json_object_get(object, "metadata"), "resourceVersion"));
    if (!version || !*version)
        return;
    free(w->version);
    w->version = mem_strdup(version);
}

static int take_error(struct kube_watch *w, const json_t *status)
{
    struct err e;
    const char *message = json_string_value(json_object_get(status, "message"));
    json_int_t code = json_integer_value(json_object_get(status, "code"));
    forget_place(w);
    if (code == 410)
        (void)err_set(&e, ERR_NONE, "expired");
    else
        (void)err_set(&e, ERR_UNAVAILABLE, "%s: the watch was ended: %s", resource_of(w), message ? message : "unsaid");
    return refuse_body(w, &e);
}

static void take_deleted(struct kube_watch *w, json_t *object, struct arena *arena)
{
    struct kube_meta meta;
    struct err e;
    if (kube_decode_meta(object, arena, &meta, &e) == 0)
        tell_gone(w, meta.ns, meta.name);
    else
        note_broken(w, NULL, arena, &e);
}

static int take_event(struct kube_watch *w, struct str line)
{
    struct err e;
    struct arena arena ARENA_AUTO;
    arena_init(&arena, KUBE_ARENA_BYTES_MAX);
    json_t *event KUBE_JSON_AUTO = kube_parse_json(line, &e);
    const char *type = json_string_value(json_object_get(event, "type"));
    json_t *object = json_object_get(event, "object");
    if (!type || !json_is_object(object)) {
        forget_place(w);
        (void)err_set(&e, ERR_UNAVAILABLE, "%s: a line of the watch is not an event", resource_of(w));
        return refuse_body(w, &e);
    }
    if (strcmp(type, "ERROR") == 0)
        return take_error(w, object);
    w->n_failures = 0;
    if (strcmp(type, "ADDED") == 0 || strcmp(type, "MODIFIED") == 0)
        take_object(w, object, &arena);
    else if (strcmp(type, "DELETED") == 0)
        take_deleted(w, object, &arena);
    if (w->is_freed)
        return -1;
    move_on(w, object);
    return 0;
}

static int take_lines(struct kube_watch *w, const char *bytes, size_t len)
{
    struct str rest = {bytes, len};
    while (rest.len > 0) {
        const char *end = (const char *)memchr(rest.ptr, '\n', rest.len);
        size_t n = end ? (size_t)(end - rest.ptr) : rest.len;
        if (buf_append(&w->line, rest.ptr, n) < 0) {
            struct err e;
            forget_place(w);
            (void)err_set(&e, ERR_RESOURCE_EXHAUSTED, "%s: an event of more than 2 MiB", resource_of(w));
            return refuse_body(w, &e);
        }
        rest = (struct str){rest.ptr + n + (end ? 1 : 0), rest.len - n - (end ? 1 : 0)};
        if (!end)
            return 0;
        int rc = w->line.len ? take_event(w, (struct str){w->line.data, w->line.len}) : 0;
        if (rc < 0)
            return -1;
        buf_reset(&w->line);
    }
    return 0;
}

static int watch_body(void *context, const char *bytes, size_t len)
{
    struct kube_watch *w = (struct kube_watch *)context;
    enter(w);
    w->heard_ns = net_now_ns(w->k->loop);
    int rc = take_lines(w, bytes, len);
    leave(w);
    return rc;
}

/* The server ended it as asked, or soon after its start, which must not be repeated at once. */
static void watch_ended(struct kube_watch *w)
{
    count_restart(w, KUBE_RESTART_ENDED);
    if (net_now_ns(w->k->loop) - w->opened_ns < NS_PER_S) {
        try_later(w, 0);
        return;
    }
    w->n_failures = 0;
    step(w);
}

static void watch_failed(struct kube_watch *w, const struct err *error)
{
    int status = w->request.status;
    bool is_open = status >= 200 && status < 300;
    bool is_expired = status == 410 || (w->has_broken && w->broken.class == ERR_NONE);
    bool is_silent = is_open && error->class == ERR_DEADLINE_EXCEEDED;
    w->n_refused += status != 0 && !is_open;
    if (is_open && net_now_ns(w->k->loop) - w->opened_ns >= GOOD_S * NS_PER_S)
        w->n_failures = 0;
    if (is_expired || (status >= 300 && status < 500 && status != 429) || w->n_refused >= LOST_AFTER)
        forget_place(w);
    count_restart(w, is_expired ? KUBE_RESTART_EXPIRED : is_silent ? KUBE_RESTART_SILENT : KUBE_RESTART_ERROR);
    if (is_expired)
        try_later(w, 0);
    else
        fail(w, w->has_broken ? &w->broken : error);
}

static void watch_done(void *context, const struct err *error)
{
    struct kube_watch *w = (struct kube_watch *)context;
    enter(w);
    if (error)
        watch_failed(w, error);
    else
        watch_ended(w);
    leave(w);
}

/* ---- requests ---- */

static void write_path(const struct kube_watch *w, struct buf *out)
{
    static const char *const paths[] = {
#define X(id, plural, path, type) path,
        KUBE_KINDS(X)
#undef X
    };
    (void)buf_append_str(out, paths[w->config.kind]);
    if (w->config.ns) {
        (void)buf_append_str(out, "/namespaces/");
        kube_escape(out, w->config.ns);
    }
    (void)buf_printf(out, "/%s", resource_of(w));
}

static void write_parameter(struct buf *out, const char *name, const char *value)
{
    if (!value)
        return;
    (void)buf_printf(out, "&%s=", name);
    kube_escape(out, value);
}

static void start_list(struct kube_watch *w)
{
    struct buf path BUF_AUTO;
    buf_init(&path, SIZE_MAX);
    if (!w->next_page) {
        w->list++;
        w->is_partial = w->was_full = false;
    }
    kube_split_reset(&w->split);
    write_path(w, &path);
    (void)buf_printf(&path, "?limit=%d", PAGE_ITEMS);
    write_parameter(&path, "continue", w->next_page);
    write_parameter(&path, "labelSelector", w->config.label_selector);
    write_parameter(&path, "fieldSelector", w->config.field_selector);
    set_state(w, KUBE_WATCH_LISTING);
    kube_request_start(&w->request, w->k,
                       &(struct kube_request_config){.verb = KUBE_LIST,
                                                     .path = buf_cstr(&path),
                                                     .timeout_ns = w->k->timeout_ns,
                                                     .body = list_body,
                                                     .done = list_done,
                                                     .context = w});
}

static void start_watch(struct kube_watch *w)
{
    struct buf path BUF_AUTO;
    buf_init(&path, SIZE_MAX);
    int seconds = WATCH_S + (int)(net_random(w->k->loop) * WATCH_S);
    buf_fini(&w->line); /* memory of a large event is not kept */
    buf_init(&w->line, KUBE_OBJECT_BYTES_MAX + LINE_EXTRA_BYTES);
    write_path(w, &path);
    (void)buf_printf(&path, "?watch=1&allowWatchBookmarks=true&timeoutSeconds=%d", seconds);
    write_parameter(&path, "resourceVersion", w->version);
    write_parameter(&path, "labelSelector", w->config.label_selector);
    write_parameter(&path, "fieldSelector", w->config.field_selector);
    set_state(w, KUBE_WATCH_WATCHING);
    w->opened_ns = net_now_ns(w->k->loop);
    kube_request_start(&w->request, w->k,
                       &(struct kube_request_config){.verb = KUBE_WATCH,
                                                     .path = buf_cstr(&path),
                                                     .timeout_ns = (seconds + 30) * NS_PER_S,
                                                     .silence_ns = SILENCE_S * NS_PER_S,
                                                     .body = watch_body,
                                                     .done = watch_done,
                                                     .context = w});
}

static void step(void *context)
{
    struct kube_watch *w = (struct kube_watch *)context;
    w->has_broken = false;
    if (w->must_list)
        start_list(w);
    else
        start_watch(w);
}

/* ---- for callers ---- */

static char *copy_of(const char *text)
{
    return text ? mem_strdup(text) : NULL;
}

struct kube_watch *kube_watch_start(struct kube *k, const struct kube_watch_config *config)
{
    struct kube_watch *w = mem_new(struct kube_watch);
    w->k = k;
    w->config = *config;
    w->config.ns = copy_of(config->ns);
    w->config.label_selector = copy_of(config->label_selector);
    w->config.field_selector = copy_of(config->field_selector);
    w->config.max_objects = config->max_objects ? config->max_objects : OBJECTS_MAX;
    w->seen = map_new(SIZE_MAX, seen_free);
    w->must_list = true;
    w->heard_ns = net_now_ns(k->loop);
    kube_split_init(&w->split, got_item, too_large, w);
    buf_init(&w->line, 0);
    w->next = k->watches;
    if (w->next)
        w->next->prev = w;
    k->watches = w;
    const char *waiting[] = {resource_of(w), "waiting"};
    metric_add(metric_series(k->states, waiting), 1);
    count_objects(w, 0);
    w->timer = net_timer_new(k->loop, step, w);
    net_timer_start(w->timer, 0, 0);
    return w;
}

void kube_watch_free(struct kube_watch *w)
{
    if (!w)
        return;
    kube_request_cancel(&w->request);
    net_timer_stop(w->timer);
    set_state(w, KUBE_WATCH_WAITING);
    const char *waiting[] = {resource_of(w), "waiting"};
    metric_add(metric_series(w->k->states, waiting), -1);
    count_objects(w, -(double)map_len(w->seen));
    *(w->prev ? &w->prev->next : &w->k->watches) = w->next;
    if (w->next)
        w->next->prev = w->prev;
    w->is_freed = true;
    if (w->depth == 0)
        destroy(w);
}

bool kube_watch_is_synced(const struct kube_watch *w)
{
    return w->is_synced;
}

int64_t kube_watch_silent_ns(const struct kube_watch *w, int64_t now_ns)
{
    int64_t silent = now_ns - w->heard_ns;
    bool is_healthy =
        w->state == KUBE_WATCH_WATCHING && kube_request_is_open(&w->request) && silent < HEALTHY_S * NS_PER_S;
    return is_healthy || silent < 0 ? 0 : silent;
}
