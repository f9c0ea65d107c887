/* Listen, run, drain, stop. */
#include "daemon/daemon.h"

#include "daemon/private.h"
#include "log/log.h"

#include <signal.h>
#include <stdlib.h>

/* ---- stop ---- */

/* A listener's last connection is gone, or its time is over. */
static void on_drained(void *context)
{
    struct daemon *d = context;
    if (--d->n_draining == 0)
        net_loop_stop(d->loop);
}

static void start_drain(void *context)
{
    struct daemon *d = context;
    d->n_draining = d->n_listeners;
    for (size_t i = 0; i < d->n_listeners; i++) /* at least one */
        net_listener_drain(d->listeners[i], d->config.drain_ns, on_drained, d);
}

/* NOT_SERVING first, so that nobody new comes; a second signal ends it at once. */
static void on_terminate(void *context)
{
    struct daemon *d = context;
    if (d->is_draining) {
        log_warn(d->config.mode, "second signal: ends at once");
        net_loop_stop(d->loop);
        return;
    }
    d->is_draining = true;
    log_info(d->config.mode, "draining");
    if (d->program.draining)
        d->program.draining(d->program.context);
    if (d->config.shutdown_delay_ns > 0)
        net_timer_start(d->delay, d->config.shutdown_delay_ns, 0);
    else
        start_drain(d);
}

void daemon_end(struct daemon *d, int exit_code)
{
    if (d->is_draining)
        return;
    d->exit_code = exit_code;
    on_terminate(d);
}

bool daemon_is_draining(const struct daemon *d)
{
    return d->is_draining;
}

/* ---- other signals ---- */

static void apply(struct daemon *d, const struct daemon_reloadable *next)
{
    struct trigger_default *old = d->reloadable.defaults;
    d->reloadable = *next;
    log_configure(next->log_level, next->log_format);
    struct trigger_settings settings = {
        .default_scope = d->program.default_scope, .defaults = next->defaults, .n_defaults = next->n_defaults};
    if (d->triggers)
        trigger_cache_flush(d->triggers, &settings);
    else
        d->triggers = trigger_cache_new(&settings, d->program.triggers_max);
    if (d->program.applied)
        d->program.applied(d->program.context, &d->reloadable);
    free(old); /* triggers hold copies, the cache now points to the new ones */
}

static void reload(struct daemon *d)
{
    struct daemon_reloadable next = {.defaults = NULL};
    struct err e;
    if (!d->config.reload)
        return;
    if (d->config.reload(d->config.reload_context, &next, &e) < 0) {
        log_error(d->config.mode, "reload failed; the old configuration stays", LOG_STR("error", e.text));
        return;
    }
    apply(d, &next);
    log_info(d->config.mode, "reloaded", LOG_INT("metrics", next.n_defaults), LOG_BOOL("tls", d->tls != NULL));
}

static void on_hangup(void *context)
{
    struct daemon *d = context;
    if (d->tls)
        net_tls_reload(d->tls);
    if (d->program.hangup)
        d->program.hangup(d->program.context);
    reload(d);
}

static void on_usr2(void *context)
{
    struct daemon *d = context;
    d->program.usr2(d->program.context);
}

static int add_signals(struct daemon *d, struct err *e)
{
    static const struct {
        int number;
        void (*handler)(void *);
    } rows[] = {{SIGTERM, on_terminate}, {SIGINT, on_terminate}, {SIGHUP, on_hangup}, {SIGUSR2, on_usr2}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].number == SIGUSR2 && !d->program.usr2)
            continue;
        d->signals[d->n_signals] = net_signal_new(d->loop, rows[i].number, rows[i].handler, d, e);
        if (!d->signals[d->n_signals++])
            return -1;
    }
    return 0;
}

/* ---- start ---- */

static int add_listener(struct daemon *d, const char *address, struct net_tls *tls, struct err *e)
{
    struct net_listen_config config = {
        .address = address,
        .tls = tls,
        .h2 = rpc_server_protocol(d->rpc),
        .http1 = http_server_protocol(d->http),
        .limits = &d->config.limits,
    };
    struct net_listener *listener = net_listen(d->loop, &config, e);
    if (!listener)
        return -1;
    d->listeners[d->n_listeners++] = listener;
    log_info(d->config.mode, "listening", LOG_STR("address", net_listener_address(listener)),
             LOG_BOOL("tls", tls != NULL));
    return 0;
}

static void on_tls_reload(void *context, const struct err *error)
{
    const struct daemon *d = context;
    if (error)
        log_error(d->config.mode, "new certificate files are refused; the old ones stay",
                  LOG_STR("error", error->text));
    else
        log_info(d->config.mode, "new certificate files are in use");
}

static int listen_all(struct daemon *d, struct err *e)
{
    const struct daemon_config *c = &d->config;
    if (c->tls.cert && !(d->tls = net_tls_server_new(d->loop, &c->tls, e)))
        return -1;
    if (d->tls)
        net_tls_on_reload(d->tls, on_tls_reload, d);
    for (size_t i = 0; i < c->n_listen; i++)
        if (add_listener(d, c->listen[i], d->tls, e) < 0)
            return -1;
    if (c->metrics_listen && add_listener(d, c->metrics_listen, c->is_metrics_tls ? d->tls : NULL, e) < 0)
        return -1;
    return c->probe_listen ? add_listener(d, c->probe_listen, NULL, e) : 0;
}

int daemon_listen(struct daemon *d, struct err *e)
{
    return add_signals(d, e) < 0 || listen_all(d, e) < 0 ? -1 : 0;
}

struct daemon *daemon_new(const struct daemon_config *config, const struct daemon_program *program,
                          struct metrics *metrics, struct err *e)
{
    struct net_loop *loop = net_loop_new(metrics, e);
    if (!loop)
        return NULL;
    struct daemon *d = mem_new(struct daemon);
    *d = (struct daemon){.config = *config, .program = *program, .loop = loop};
    d->gets = net_gets_new();
    d->http = http_server_new(d->gets, metrics);
    d->rpc = rpc_server_new(&(struct rpc_server_config){.loop = loop, .metrics = metrics, .gets = d->gets});
    d->delay = net_timer_new(loop, start_drain, d);
    daemon_add_pages(d);
    apply(d, &config->reloadable);
    return d;
}

struct net_loop *daemon_loop(const struct daemon *d)
{
    return d->loop;
}

struct rpc_server *daemon_rpc(const struct daemon *d)
{
    return d->rpc;
}

struct net_gets *daemon_gets(const struct daemon *d)
{
    return d->gets;
}

struct trigger_cache *daemon_triggers(const struct daemon *d)
{
    return d->triggers;
}

void daemon_log_refusal(struct daemon *d, const char *ns, const char *name, const char *peer, const struct err *error)
{
    int64_t now_ns = net_now_ns(d->loop);
    if (now_ns < d->next_refusal_ns) {
        d->unlogged_refusals++;
        return;
    }
    log_warn("trigger", "refused", LOG_STR("namespace", ns), LOG_STR("name", name), LOG_STR("peer", peer),
             LOG_STR("error", error->text), LOG_INT("others_not_logged", d->unlogged_refusals));
    d->next_refusal_ns = now_ns + NS_PER_S;
    d->unlogged_refusals = 0;
}

const char *daemon_address(const struct daemon *d)
{
    return net_listener_address(d->listeners[0]);
}

bool daemon_has_tls(const struct daemon *d)
{
    return d->tls != NULL;
}

int daemon_run(struct daemon *d)
{
    net_loop_run(d->loop);
    return d->exit_code;
}

void daemon_close(struct daemon *d)
{
    for (size_t i = 0; i < d->n_listeners; i++)
        net_listener_free(d->listeners[i]);
    for (size_t i = 0; i < d->n_signals; i++)
        net_signal_free(d->signals[i]);
    net_timer_free(d->delay);
    rpc_server_free(d->rpc);
    http_server_free(d->http);
    d->n_listeners = d->n_signals = 0;
    d->delay = NULL;
    d->rpc = NULL;
    d->http = NULL;
}

void daemon_free(struct daemon *d)
{
    if (!d)
        return;
    daemon_close(d);
    trigger_cache_free(d->triggers);
    free(d->reloadable.defaults);
    net_gets_free(d->gets);
    net_tls_free(d->tls);
    net_loop_free(d->loop);
    free(d);
}
