/* The pages of endpoints that triggers name, as both programs ask for them: under which URL, how often, and inside a
 * call. Fetching and its limits are engine's, what a page means is signals'. */
#include "daemon/daemon.h"
#include "daemon/private.h"
#include "log/log.h"

#include <string.h>

struct daemon_engines {
    struct engine *engine;
    bool has_cluster_dns;
    struct err why;                  /* of the last refusal */
    char logged_fault[ERR_TEXT_MAX]; /* of the files, as logged last */
};

struct daemon_engines *daemon_engines_new(struct daemon *d, const struct engine_config *config, struct metrics *metrics,
                                          struct err *e)
{
    struct engine_config own = *config;
    own.loop = d->loop;
    own.metrics = metrics;
    struct engine *engine = engine_new(&own, e);
    if (!engine)
        return NULL;
    struct daemon_engines *all = mem_new(struct daemon_engines);
    *all = (struct daemon_engines){.engine = engine, .has_cluster_dns = own.has_cluster_dns};
    return all;
}

void daemon_engines_free(struct daemon_engines *all)
{
    if (!all)
        return;
    engine_free(all->engine);
    free(all);
}

struct engine *daemon_engines_engine(const struct daemon_engines *all)
{
    return all->engine;
}

void daemon_engines_look(struct daemon_engines *all)
{
    const char *fault = engine_files_fault(all->engine);
    if (strcmp(fault, all->logged_fault) == 0)
        return;
    (void)str_copy(all->logged_fault, sizeof(all->logged_fault), str_of(fault));
    if (*fault)
        log_error("engine", "new certificate or token files are refused; the ones before stay",
                  LOG_STR("error", fault));
    else
        log_info("engine", "certificate and token files are in use again");
}

int64_t daemon_engines_interval_ns(const struct trigger *t)
{
    return engine_interval_ns(t->window_ns, t->activation_window_ns);
}

const struct signals_feed *daemon_engines_page(struct daemon_engines *all, const struct engine_want *want,
                                               const char **ret_why)
{
    const struct signals_feed *feed = engine_page(all->engine, want);
    *ret_why = feed ? "" : "more pages are asked for than are kept";
    return feed;
}

/* The URL as asked from a namespace. NULL and the reason where there is none. */
static const char *url_of(struct daemon_engines *all, const char *endpoint, const char *ns, char out[ENGINE_URL_MAX])
{
    return engine_endpoint_url(endpoint, ns, all->has_cluster_dns, out, &all->why) < 0 ? NULL : out;
}

const struct signals_feed *daemon_engines_endpoint(struct daemon_engines *all, const struct daemon_endpoint *asked,
                                                   const char **ret_why)
{
    char url[ENGINE_URL_MAX];
    struct engine_want want = {.url = url_of(all, asked->url, asked->ns, url),
                               .metric = asked->metric,
                               .interval_ns = daemon_engines_interval_ns(asked->trigger),
                               .is_endpoint = true};
    *ret_why = all->why.text;
    return want.url ? daemon_engines_page(all, &want, ret_why) : NULL;
}

struct engine_ask *daemon_engines_ask(struct daemon_engines *all, const struct trigger *t, const char *ns,
                                      void (*done)(void *context), void *context)
{
    char url[ENGINE_URL_MAX];
    const char *endpoint = trigger_endpoint(t);
    struct engine_want want = {.url = endpoint ? url_of(all, endpoint, ns, url) : NULL,
                               .metric = t->engine_metric,
                               .interval_ns = daemon_engines_interval_ns(t),
                               .is_endpoint = true};
    return want.url ? engine_ask(all->engine, &want, done, context) : NULL;
}
