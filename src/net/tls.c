/* net_tls: one set of files, the context made of them, and the watch that replaces it. Kubernetes swaps mounted Secrets
 * by a symlink; stat through it tells. Files are read off the loop. Knows no OpenSSL. */
#include "net/tls.h"

#include "net/loop.h"

#include <string.h>

enum { LOAD_TRIES = 3 };
#define WATCH_NS (10 * NS_PER_S)

struct stamps {
    struct file_stamp cert, key, ca;
};

/* What a worker thread needs and finds. Owned by the job while it runs. */
struct reload {
    struct net_tls *tls; /* NULL once it is freed */
    bool is_server, is_forced;
    struct net_tls_files files; /* texts owned here */
    struct stamps loaded, failed;
    struct tls_context *context; /* found: new and fit */
    bool has_failed;
    struct err error;
};

struct net_tls {
    struct net_loop *loop;
    bool is_server;
    struct net_tls_files files; /* texts owned here */
    struct stamps loaded, failed;
    struct tls_context *context;
    struct net_timer watch;
    struct reload *reload; /* running */
    bool is_reload_wanted; /* asked for while one was running */
    struct err error;
    void (*told)(void *context, const struct err *error);
    void *told_context;
};

static char *copy_or_null(const char *text)
{
    return text ? mem_strdup(text) : NULL;
}

static void copy_files(struct net_tls_files *to, const struct net_tls_files *from)
{
    *to = (struct net_tls_files){.is_insecure = from->is_insecure};
    to->cert = copy_or_null(from->cert);
    to->key = copy_or_null(from->key);
    to->ca = copy_or_null(from->ca);
}

static void free_text(const char *text)
{
    union {
        const char *constant;
        char *owned;
    } both = {.constant = text};
    free(both.owned);
}

static void free_files(struct net_tls_files *files)
{
    free_text(files->cert);
    free_text(files->key);
    free_text(files->ca);
}

static void stamp_files(const struct net_tls_files *files, struct stamps *ret_stamps)
{
    memset(ret_stamps, 0, sizeof(*ret_stamps));
    if (files->cert)
        (void)file_stamp(files->cert, &ret_stamps->cert);
    if (files->key)
        (void)file_stamp(files->key, &ret_stamps->key);
    if (files->ca)
        (void)file_stamp(files->ca, &ret_stamps->ca);
}

static bool are_same(const struct stamps *a, const struct stamps *b)
{
    return memcmp(a, b, sizeof(*a)) == 0; /* stamps have no padding */
}

/* Certificate and key may be swapped between our two reads: a load counts only if nothing moved meanwhile. */
static struct tls_context *load(bool is_server, const struct net_tls_files *files, struct stamps *ret_stamps,
                                struct err *e)
{
    struct tls_context *context = NULL;
    struct stamps before, after;
    for (int i = 0; i < LOAD_TRIES; i++) {
        tls_context_unref(context);
        stamp_files(files, &before);
        context = tls_context_new(is_server, files, e);
        stamp_files(files, &after);
        if (are_same(&before, &after))
            break;
    }
    *ret_stamps = after;
    return context;
}

/* ---- reloading ---- */

static bool is_valid_at(const struct tls_context *context, int64_t wall_s)
{
    int64_t from, until;
    tls_context_validity(context, &from, &until);
    return until == 0 || (from <= wall_s && wall_s < until);
}

static struct metric_series *series_of(struct metric_family *family, const struct net_tls *tls)
{
    const char *file = tls->files.cert ? tls->files.cert : tls->files.ca ? tls->files.ca : "system";
    return metric_series(family, &file);
}

static void show_expiry(const struct net_tls *tls)
{
    int64_t from, until;
    tls_context_validity(tls->context, &from, &until);
    if (until)
        metric_set(series_of(tls->loop->series.tls_expiry, tls), (double)until);
}

/* Runs in a worker thread. */
static void look_at_files(void *context)
{
    struct reload *reload = (struct reload *)context;
    struct stamps now;
    stamp_files(&reload->files, &now);
    if (!reload->is_forced && are_same(&now, &reload->loaded))
        return;
    reload->context = load(reload->is_server, &reload->files, &now, &reload->error);
    tls_thread_end();
    reload->has_failed = reload->context == NULL;
    *(reload->context ? &reload->loaded : &reload->failed) = now;
}

static void refuse(struct net_tls *tls, const struct reload *reload)
{
    bool is_news = !are_same(&tls->failed, &reload->failed) || tls->error.class == ERR_NONE;
    tls->failed = reload->failed;
    tls->error = reload->error;
    metric_set(series_of(tls->loop->series.tls_reload_ok, tls), 0);
    if (!is_news)
        return;
    metric_add(series_of(tls->loop->series.tls_reload_errors, tls), 1);
    if (tls->told)
        tls->told(tls->told_context, &tls->error);
}

static void tell_success(struct net_tls *tls)
{
    tls->error = (struct err){.class = ERR_NONE};
    metric_set(series_of(tls->loop->series.tls_reload_ok, tls), 1);
    if (tls->told)
        tls->told(tls->told_context, NULL);
}

static void take(struct net_tls *tls, struct reload *reload)
{
    tls_context_unref(tls->context);
    tls->context = reload->context;
    reload->context = NULL;
    tls->loaded = reload->loaded;
    metric_add(series_of(tls->loop->series.tls_reloads, tls), 1);
    show_expiry(tls);
    tell_success(tls);
}

/* A certificate that is not valid today never replaces one that is. */
static void check_validity(const struct net_tls *tls, struct reload *reload)
{
    int64_t now = time_wall_ns() / NS_PER_S;
    if (!reload->context || is_valid_at(reload->context, now) || !is_valid_at(tls->context, now))
        return;
    tls_context_unref(reload->context);
    reload->context = NULL;
    reload->has_failed = true;
    reload->failed = reload->loaded;
    (void)err_set(&reload->error, ERR_FAILED_PRECONDITION, "certificate %s is expired or not valid yet",
                  reload->files.cert);
}

static void free_reload(struct reload *reload)
{
    tls_context_unref(reload->context);
    free_files(&reload->files);
    free(reload);
}

static void start_reload(struct net_tls *tls, bool is_forced);

static void finish_reload(struct net_tls *tls, struct reload *reload)
{
    check_validity(tls, reload);
    if (reload->has_failed)
        refuse(tls, reload);
    else if (reload->context)
        take(tls, reload);
    else if (tls->error.class != ERR_NONE)
        tell_success(tls); /* the unfit files are gone, those in use are back */
}

static void looked_at_files(void *context)
{
    struct reload *reload = (struct reload *)context;
    if (reload->tls)
        finish_reload(reload->tls, reload);
    if (reload->tls) { /* the one who was told may have freed it */
        reload->tls->reload = NULL;
        if (reload->tls->is_reload_wanted)
            start_reload(reload->tls, true);
    }
    free_reload(reload);
}

static void start_reload(struct net_tls *tls, bool is_forced)
{
    if (tls->reload) {
        tls->is_reload_wanted = tls->is_reload_wanted || is_forced;
        return;
    }
    tls->is_reload_wanted = false;
    struct reload *reload = mem_new(struct reload);
    reload->tls = tls;
    reload->is_server = tls->is_server;
    reload->is_forced = is_forced;
    reload->loaded = tls->loaded;
    copy_files(&reload->files, &tls->files);
    tls->reload = reload;
    net_work(tls->loop, look_at_files, looked_at_files, reload);
}

static void watch(void *context)
{
    start_reload((struct net_tls *)context, false);
}

void net_tls_reload(struct net_tls *tls)
{
    start_reload(tls, true);
}

/* ---- life ---- */

static struct net_tls *tls_new(struct net_loop *loop, bool is_server, const struct net_tls_files *files, struct err *e)
{
    struct stamps stamps;
    struct tls_context *context = load(is_server, files, &stamps, e);
    if (!context)
        return NULL;
    struct net_tls *tls = mem_new(struct net_tls);
    tls->loop = loop;
    tls->is_server = is_server;
    tls->context = context;
    tls->loaded = stamps;
    copy_files(&tls->files, files);
    net_timer_setup(&tls->watch, loop, watch, tls);
    if (files->cert || files->ca)
        net_timer_start(&tls->watch, WATCH_NS, WATCH_NS);
    (void)series_of(loop->series.tls_reloads, tls);
    (void)series_of(loop->series.tls_reload_errors, tls);
    metric_set(series_of(loop->series.tls_reload_ok, tls), 1);
    show_expiry(tls);
    return tls;
}

struct net_tls *net_tls_server_new(struct net_loop *loop, const struct net_tls_files *files, struct err *e)
{
    return tls_new(loop, true, files, e);
}

struct net_tls *net_tls_client_new(struct net_loop *loop, const struct net_tls_files *files, struct err *e)
{
    return tls_new(loop, false, files, e);
}

void net_tls_on_reload(struct net_tls *tls, void (*fn)(void *context, const struct err *error), void *context)
{
    tls->told = fn;
    tls->told_context = context;
}

const char *net_tls_error(const struct net_tls *tls)
{
    return tls->error.text;
}

struct tls_context *net_tls_context(const struct net_tls *tls)
{
    return tls->context;
}

void net_tls_free(struct net_tls *tls)
{
    if (!tls)
        return;
    net_timer_stop(&tls->watch);
    if (tls->reload)
        tls->reload->tls = NULL;
    tls_context_unref(tls->context);
    free_files(&tls->files);
    free(tls);
}
