/* For the tests of cluster/: an API client that does what the test says. Its functions stand in for those of kube/;
 * what is told is told from texts that are overwritten afterwards, since they are valid during the callback only. */
#ifndef TEST_CLUSTER_FAKE_KUBE_H
#define TEST_CLUSTER_FAKE_KUBE_H

#include "kube/kube.h"

#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kube_watch {
    struct kube_watch_config config;
    char ns[300], selector[300];
    bool is_synced;
    struct kube_watch *next;
};
struct kube_get {
    char asked[900]; /* "apps/v1 Deployment ns/name" */
    void (*done)(void *context, const struct kube_scale *scale, const struct err *error);
    void *context;
    struct kube_get *next;
};
/* All there is of it: what runs now, and how much there was. */
static struct {
    struct kube_watch *watches;
    struct kube_get *gets;
    size_t n_watches, n_gets, n_cancelled; /* started so far */
    double now_s;                          /* 0 not known */
    int64_t silent_ns;                     /* of all watches */
} fake_kube;

struct kube_watch *kube_watch_start(struct kube *k, const struct kube_watch_config *config)
{
    (void)k;
    struct kube_watch *w = mem_new(struct kube_watch);
    w->config = *config;
    (void)snprintf(w->ns, sizeof(w->ns), "%s", config->ns ? config->ns : "");
    (void)snprintf(w->selector, sizeof(w->selector), "%s", config->label_selector ? config->label_selector : "");
    w->next = fake_kube.watches;
    fake_kube.watches = w;
    fake_kube.n_watches++;
    return w;
}

void kube_watch_free(struct kube_watch *w)
{
    struct kube_watch **at = &fake_kube.watches;
    if (!w)
        return;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    free(w);
}

bool kube_watch_is_synced(const struct kube_watch *w)
{
    return w->is_synced;
}

int64_t kube_watch_silent_ns(const struct kube_watch *w, int64_t now_ns)
{
    (void)w;
    (void)now_ns;
    return fake_kube.silent_ns;
}

bool kube_now_s(const struct kube *k, double *ret_now_s)
{
    (void)k;
    if (fake_kube.now_s == 0)
        return false;
    *ret_now_s = fake_kube.now_s;
    return true;
}

struct kube_get *kube_get_scale(struct kube *k, const struct kube_target *target,
                                void (*done)(void *context, const struct kube_scale *scale, const struct err *error),
                                void *context)
{
    (void)k;
    struct kube_get *get = mem_new(struct kube_get);
    (void)snprintf(get->asked, sizeof(get->asked), "%s %s %s/%s", target->api_version, target->kind, target->ns,
                   target->name);
    get->done = done;
    get->context = context;
    get->next = fake_kube.gets;
    fake_kube.gets = get;
    fake_kube.n_gets++;
    return get;
}

static inline void fake_end_get(struct kube_get *get)
{
    struct kube_get **at = &fake_kube.gets;
    while (*at != get)
        at = &(*at)->next;
    *at = get->next;
    free(get);
}

void kube_get_cancel(struct kube_get *get)
{
    fake_kube.n_cancelled++;
    fake_end_get(get);
}

/* ---- what the test makes it do ---- */

/* The newest watch of this kind; of pods: in this namespace. NULL if there is none. */
static inline struct kube_watch *fake_watch(enum kube_kind kind, const char *ns)
{
    for (struct kube_watch *w = fake_kube.watches; w; w = w->next)
        if (w->config.kind == kind && (!ns || strcmp(w->ns, ns) == 0))
            return w;
    return NULL;
}

static inline void fake_tell(struct kube_watch *w, const struct kube_object *object)
{
    assert_non_null(w);
    w->config.changed(w->config.context, object);
}

static inline void fake_synced(struct kube_watch *w)
{
    assert_non_null(w);
    w->is_synced = true;
    w->config.synced(w->config.context);
}

static inline void fake_failed(struct kube_watch *w, enum err_class class)
{
    struct err e;
    (void)err_set(&e, class, "told to fail");
    w->config.failed(w->config.context, &e);
}

/* The only read that is under way is answered. */
static inline void fake_scale(int64_t spec, int64_t status, const char *selector)
{
    struct kube_get *get = fake_kube.gets;
    assert_non_null(get);
    void (*done)(void *, const struct kube_scale *, const struct err *) = get->done;
    void *context = get->context;
    char text[300];
    (void)snprintf(text, sizeof(text), "%s", selector);
    fake_end_get(get);
    done(context, &(struct kube_scale){spec, status, text}, NULL);
    memset(text, '#', sizeof(text) - 1);
}

static inline void fake_no_scale(enum err_class class, const char *text)
{
    struct kube_get *get = fake_kube.gets;
    struct err e;
    assert_non_null(get);
    void (*done)(void *, const struct kube_scale *, const struct err *) = get->done;
    void *context = get->context;
    fake_end_get(get);
    (void)err_set(&e, class, "%s", text);
    done(context, NULL, &e);
}

#endif
