/* The agent: start, run, reload, stop. */
#include "agent/agent.h"

#include "agent/agent_private.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { TRIGGERS_MAX = 1024 };
/* How long after a question its readings are still taken, where each costs: longer than any pollingInterval that makes
 * sense. Else KEDA's next question would find them missing, and unknown is not idle: it would wake the workload. */
#define WANTED_NS (15 * 60 * NS_PER_S)

/* ---- readings ---- */

static const struct snapshot *current_snapshot(void *context)
{
    const struct agent *a = context;
    return a->snapshot;
}

static int64_t current_ns(void *context)
{
    const struct agent *a = context;
    return net_now_ns(a->loop);
}

static void on_owners(void *context, const struct snapshot_owners *owners)
{
    agent_log_owners(context, owners);
}

/* Ids of devices are never used again: the same ids are the same devices. */
static bool has_same_devices(const struct snapshot *a, const struct snapshot *b)
{
    if (!a || a->n_devices != b->n_devices)
        return false;
    for (size_t i = 0; i < a->n_devices; i++)
        if (a->devices[i].id != b->devices[i].id)
            return false;
    return true;
}

/* On the sampler's thread. */
static void on_sampled(void *context)
{
    struct agent *a = context;
    net_wakeup_send(a->wakeup);
}

static void on_wakeup(void *context)
{
    struct agent *a = context;
    const struct snapshot *fresh = gpu_take(a->sampler);
    if (!fresh)
        return;
    const struct snapshot *previous = a->snapshot;
    a->snapshot = fresh;
    agent_log_snapshot(a, previous, fresh);
    if (a->attribution && !has_same_devices(previous, fresh))
        attribution_refresh(a->attribution);
    snapshot_unref(previous);
    service_tick(a->service);
}

/* For people who look for the reason of a value. What there is none of shows as NaN or unknown, not as 0 or false. */
static void log_evaluation(const struct service_observation *o)
{
    const struct trigger_evaluation *v = o->answer->detail;
    const struct service_question *q = o->question;
    struct trigger_explanation said;
    trigger_explain(v, &said);
    const char *warning = said.n_warnings ? said.warnings[0] : "";
    const char *active = v->active_error.class != ERR_NONE ? "unknown" : v->is_active ? "true" : "false";
    double value = v->value_error.class == ERR_NONE ? v->value : (double)NAN;
    if (v->asked & TRIGGER_ASK_VALUE)
        log_debug("trigger", "evaluated", LOG_STR("method", q->method), LOG_STR("namespace", q->ns),
                  LOG_STR("name", q->name), LOG_STR("peer", q->peer), LOG_STR("metric", v->trigger->metric_name),
                  LOG_DBL("value", value), LOG_DBL("target", v->trigger->target), LOG_STR("rule", said.rule),
                  LOG_STR("error", v->value_error.text), LOG_STR("warning", warning));
    if (v->asked & TRIGGER_ASK_ACTIVITY)
        log_debug("trigger", "evaluated", LOG_STR("method", q->method), LOG_STR("namespace", q->ns),
                  LOG_STR("name", q->name), LOG_STR("peer", q->peer), LOG_STR("metric", v->trigger->metric_name),
                  LOG_STR("active", active), LOG_DBL("activation", v->trigger->activation),
                  LOG_STR("rule", said.active_rule), LOG_STR("error", v->active_error.text),
                  LOG_STR("warning", warning));
}

static void observe(void *context, const struct service_observation *o)
{
    struct agent *a = context;
    enum trigger_metric metric = o->question->trigger->metric;
    if (metric == TRIGGER_PCIE_TX_KBPS || metric == TRIGGER_PCIE_RX_KBPS)
        gpu_want(a->sampler, metric == TRIGGER_PCIE_TX_KBPS ? SNAPSHOT_PCIE_TX : SNAPSHOT_PCIE_RX,
                 net_now_ns(a->loop) + WANTED_NS);
    if (log_is_on(LOG_DEBUG) && !o->is_routine && o->answer->detail)
        log_evaluation(o);
}

/* At most one line a second: KEDA repeats a refused question, and any peer can send bad metadata. */
static void log_refusal(void *context, const struct service_refusal *r)
{
    struct agent *a = context;
    int64_t now_ns = net_now_ns(a->loop);
    if (now_ns < a->next_refusal_ns) {
        a->unlogged_refusals++;
        return;
    }
    log_warn("trigger", "refused", LOG_STR("namespace", r->ns), LOG_STR("name", r->name), LOG_STR("peer", r->peer),
             LOG_STR("error", r->error->text), LOG_INT("others_not_logged", a->unlogged_refusals));
    a->next_refusal_ns = now_ns + NS_PER_S;
    a->unlogged_refusals = 0;
}

/* ---- stop ---- */

/* A listener's last connection is gone, or its time is over. */
static void on_drained(void *context)
{
    struct agent *a = context;
    if (--a->n_draining == 0)
        net_loop_stop(a->loop);
}

static void start_drain(void *context)
{
    struct agent *a = context;
    a->n_draining = a->n_listeners;
    for (size_t i = 0; i < a->n_listeners; i++) /* at least one */
        net_listener_drain(a->listeners[i], a->config->drain_ns, on_drained, a);
}

/* NOT_SERVING first, so that nobody new comes; a second signal ends it at once. */
static void on_terminate(void *context)
{
    struct agent *a = context;
    if (a->is_draining) {
        log_warn("agent", "second signal: ends at once");
        net_loop_stop(a->loop);
        return;
    }
    a->is_draining = true;
    log_info("agent", "draining");
    service_drain(a->service);
    if (a->config->shutdown_delay_ns > 0)
        net_timer_start(a->delay, a->config->shutdown_delay_ns, 0);
    else
        start_drain(a);
}

/* ---- reload and other signals ---- */

static void apply(struct agent *a, const struct agent_reloadable *next)
{
    struct trigger_default *old = a->reloadable.defaults;
    a->reloadable = *next;
    log_configure(next->log_level, next->log_format);
    struct trigger_settings settings = {
        .default_scope = TRIGGER_NODE, .defaults = next->defaults, .n_defaults = next->n_defaults};
    if (a->triggers)
        trigger_cache_flush(a->triggers, &settings);
    else
        a->triggers = trigger_cache_new(&settings, TRIGGERS_MAX);
    free(old); /* triggers hold copies, the cache now points to the new ones */
}

static void on_hangup(void *context)
{
    struct agent *a = context;
    struct err e;
    if (a->tls)
        net_tls_reload(a->tls);
    if (!a->config->reload)
        return;
    struct agent_reloadable next = {.defaults = NULL};
    if (a->config->reload(a->config->reload_context, &next, &e) < 0) {
        log_error("agent", "reload failed; the old configuration stays", LOG_STR("error", e.text));
        return;
    }
    apply(a, &next);
    service_reload(a->service);
    log_info("agent", "reloaded", LOG_INT("metrics", next.n_defaults), LOG_BOOL("tls", a->tls != NULL));
}

static void on_usr2(void *context)
{
    struct agent *a = context;
    if (gpu_is_released(a->sampler)) {
        log_info("agent", "takes NVML up again");
        gpu_resume(a->sampler);
    } else {
        log_info("agent", "lets go of NVML until the next SIGUSR2");
        gpu_release(a->sampler);
    }
}

/* Once when a driver call hangs, once when it has come back. */
static void log_stuck_call(struct agent *a)
{
    char call[128] = "";
    bool is_stuck = gpu_is_stuck(a->sampler, net_now_ns(a->loop), 5 * NS_PER_S, call, sizeof(call));
    if (is_stuck && !a->is_stuck)
        log_warn("nvml", "a driver call does not return; readings age", LOG_STR("call", call));
    else if (!is_stuck && a->is_stuck)
        log_info("nvml", "the driver call returned");
    a->is_stuck = is_stuck;
}

/* Each second: streams that wait for an age to pass, and a state that only a restart ends. */
static void on_second(void *context)
{
    struct agent *a = context;
    service_tick(a->service);
    log_stuck_call(a);
    const char *reason = gpu_restart_reason(a->sampler);
    if (reason && !a->is_draining) {
        log_error("agent", "only a restart can help; exits", LOG_STR("reason", reason));
        a->exit_code = 1;
        on_terminate(a);
    }
}

/* ---- start ---- */

static int add_listener(struct agent *a, const char *address, struct net_tls *tls, struct err *e)
{
    struct net_listen_config config = {
        .address = address,
        .tls = tls,
        .h2 = rpc_server_protocol(a->rpc),
        .http1 = http_server_protocol(a->http),
        .limits = &a->config->limits,
    };
    struct net_listener *listener = net_listen(a->loop, &config, e);
    if (!listener)
        return -1;
    a->listeners[a->n_listeners++] = listener;
    log_info("agent", "listening", LOG_STR("address", net_listener_address(listener)), LOG_BOOL("tls", tls != NULL));
    return 0;
}

static void on_tls_reload(void *context, const struct err *error)
{
    (void)context;
    if (error)
        log_error("agent", "new certificate files are refused; the old ones stay", LOG_STR("error", error->text));
    else
        log_info("agent", "new certificate files are in use");
}

static int listen_all(struct agent *a, struct err *e)
{
    const struct agent_config *c = a->config;
    if (c->tls.cert && !(a->tls = net_tls_server_new(a->loop, &c->tls, e)))
        return -1;
    if (a->tls)
        net_tls_on_reload(a->tls, on_tls_reload, a);
    for (size_t i = 0; i < c->n_listen; i++)
        if (add_listener(a, c->listen[i], a->tls, e) < 0)
            return -1;
    if (c->metrics_listen && add_listener(a, c->metrics_listen, c->is_metrics_tls ? a->tls : NULL, e) < 0)
        return -1;
    return c->probe_listen ? add_listener(a, c->probe_listen, NULL, e) : 0;
}

static int add_signals(struct agent *a, struct err *e)
{
    static const struct {
        int number;
        void (*handler)(void *);
    } rows[] = {{SIGTERM, on_terminate}, {SIGINT, on_terminate}, {SIGHUP, on_hangup}, {SIGUSR2, on_usr2}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        a->signals[a->n_signals] = net_signal_new(a->loop, rows[i].number, rows[i].handler, a, e);
        if (!a->signals[a->n_signals++])
            return -1;
    }
    return 0;
}

static void build_servers(struct agent *a)
{
    const struct agent_config *c = a->config;
    a->gets = net_gets_new();
    a->http = http_server_new(a->gets, a->metrics);
    a->rpc = rpc_server_new(&(struct rpc_server_config){.loop = a->loop, .metrics = a->metrics, .gets = a->gets});
    apply(a, &c->reloadable);
    a->service = service_new(&(struct service_config){
        .metrics = a->metrics,
        .server = a->rpc,
        .triggers = a->triggers,
        .source = {current_snapshot, current_ns, a},
        .has_reflection = c->has_reflection,
        .observe = observe,
        .refuse = log_refusal,
        .observe_context = a,
    });
    a->exporter = exporter_new(&(struct exporter_config){
        .metrics = a->metrics,
        .node_name = c->node_name,
        .version = c->version,
        .start_wall_ns = time_wall_ns(),
        .has_dcgm = c->has_dcgm_metrics,
    });
    agent_add_pages(a);
}

static int start_attribution(struct agent *a, struct err *e)
{
    a->attribution = attribution_new(&(struct attribution_config){.loop = a->loop,
                                                                  .metrics = a->metrics,
                                                                  .path = a->config->pod_resources,
                                                                  .snapshot = current_snapshot,
                                                                  .changed = on_owners,
                                                                  .context = a},
                                     e);
    return a->attribution ? 0 : -1;
}

/* Listen first, load NVML after: a node without a driver is a state to report. */
static int start(struct agent *a, struct err *e)
{
    a->loop = net_loop_new(a->metrics, e);
    if (!a->loop)
        return -1;
    build_servers(a);
    a->wakeup = net_wakeup_new(a->loop, on_wakeup, a, e);
    if (!a->wakeup || add_signals(a, e) < 0 || listen_all(a, e) < 0)
        return -1;
    a->delay = net_timer_new(a->loop, start_drain, a);
    a->second = net_timer_new(a->loop, on_second, a);
    net_timer_start(a->second, NS_PER_S, NS_PER_S);
    if (a->config->pod_resources && start_attribution(a, e) < 0)
        return -1;
    a->sampler = gpu_start(&a->config->gpu, on_sampled, a, e);
    return a->sampler ? 0 : -1;
}

static void stop(struct agent *a)
{
    if (a->sampler && !gpu_stop(a->sampler))
        log_warn("nvml", "left the sampler behind in a driver call that does not return");
    for (size_t i = 0; i < a->n_listeners; i++)
        net_listener_free(a->listeners[i]);
    for (size_t i = 0; i < a->n_signals; i++)
        net_signal_free(a->signals[i]);
    attribution_free(a->attribution);
    net_timer_free(a->second);
    net_timer_free(a->delay);
    net_wakeup_free(a->wakeup);
    rpc_server_free(a->rpc);
    http_server_free(a->http);
    service_free(a->service);
    exporter_free(a->exporter);
    trigger_cache_free(a->triggers);
    free(a->reloadable.defaults);
    net_gets_free(a->gets);
    net_tls_free(a->tls);
    snapshot_unref(a->snapshot);
    net_loop_free(a->loop);
    metrics_free(a->metrics);
}

int agent_run(const struct agent_config *config)
{
    struct agent a = {.config = config, .metrics = metrics_new()};
    struct err e;
    log_configure(config->reloadable.log_level, config->reloadable.log_format);
    log_info("agent", "starting", LOG_STR("version", config->version), LOG_STR("node", config->node_name));
    if (start(&a, &e) < 0) {
        log_error("agent", "cannot start", LOG_STR("error", e.text));
        a.exit_code = e.class == ERR_INVALID_ARGUMENT ? 2 : 1;
    } else {
        if (config->started)
            config->started(config->started_context, a.loop, net_listener_address(a.listeners[0]));
        net_loop_run(a.loop);
        if (config->stopping)
            config->stopping(config->started_context);
        log_info("agent", "stopped", LOG_INT("exit_code", a.exit_code));
    }
    stop(&a);
    return a.exit_code;
}
