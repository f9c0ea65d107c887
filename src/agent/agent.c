/* The agent: start, run, reload, stop. */
#include "agent/agent.h"

#include "agent/agent_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TRIGGERS_MAX = 1024 };
/* How long after a question its readings are still taken, where each costs: longer than any pollingInterval that makes
 * sense. Else KEDA's next question would find them missing, and unknown is not idle: it would wake the workload. */
#define WANTED_NS (15 * 60 * NS_PER_S)

/* ---- readings ---- */

const struct snapshot *agent_newest(void *context)
{
    const struct agent *a = context;
    return a->snapshot;
}

static void on_owners(void *context, const struct snapshot_owners *owners)
{
    agent_log_owners(context, owners);
}

/* Streams see a snapshot together with what pods do in it. Should /proc not answer, on_second goes on without. */
static void on_holders(void *context, const struct snapshot_holders *holders)
{
    struct agent *a = context;
    agent_log_sight(a, holders);
    service_tick(a->service);
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
    if (a->attribution)
        attribution_observe(a->attribution, fresh); /* on_holders follows */
    else
        service_tick(a->service);
    snapshot_unref(previous);
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

static void log_refusal(void *context, const struct service_refusal *r)
{
    struct agent *a = context;
    daemon_log_refusal(a->daemon, r->ns, r->name, r->peer, r->error);
}

/* ---- stop ---- */

static void on_drain(void *context)
{
    struct agent *a = context;
    service_drain(a->service);
}

/* ---- reload and other signals ---- */

static void on_hangup(void *context)
{
    const struct agent *a = context;
    engine_reload(daemon_engines_engine(a->engines));
}

static void on_applied(void *context, const struct daemon_reloadable *now)
{
    struct agent *a = context;
    struct trigger_settings settings = {
        .default_scope = TRIGGER_NODE, .defaults = now->defaults, .n_defaults = now->n_defaults};
    agent_entries_free(a->entries);
    a->entries = agent_entries_new(&settings);
    if (a->service)
        service_reload(a->service);
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
    daemon_engines_look(a->engines);
    const char *reason = gpu_restart_reason(a->sampler);
    if (reason && !daemon_is_draining(a->daemon)) {
        log_error("agent", "only a restart can help; exits", LOG_STR("reason", reason));
        daemon_end(a->daemon, 1);
    }
}

/* ---- start ---- */

static void build_servers(struct agent *a)
{
    const struct agent_config *c = a->config;
    a->service = service_new(&(struct service_config){
        .metrics = a->metrics,
        .server = daemon_rpc(a->daemon),
        .triggers = daemon_triggers(a->daemon),
        .source = agent_source(a),
        .fleet = agent_fleet(a),
        .has_reflection = c->has_reflection,
        .observe = observe,
        .refuse = log_refusal,
        .observe_context = a,
    });
    a->exporter = exporter_new(&(struct exporter_config){
        .metrics = a->metrics,
        .node_name = c->daemon.node_name,
        .version = c->daemon.version,
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
                                                                  .procfs = a->config->procfs,
                                                                  .pod_logs = a->config->pod_logs,
                                                                  .log_links = a->config->container_logs,
                                                                  .snapshot = agent_newest,
                                                                  .changed = on_owners,
                                                                  .seen = on_holders,
                                                                  .context = a},
                                     e);
    return a->attribution ? 0 : -1;
}

struct daemon_program agent_program(struct agent *a)
{
    return (struct daemon_program){
        .draining = on_drain,
        .hangup = on_hangup,
        .usr2 = on_usr2,
        .applied = on_applied,
        .default_scope = TRIGGER_NODE,
        .triggers_max = TRIGGERS_MAX,
        .verbose = agent_write_state,
        .pages = "/metrics\n",
        .services = "externalscaler.ExternalScaler, grpc.health.v1.Health, kedagpuscaler.v1.Node, "
                    "kedagpuscaler.fleet.v1.Fleet",
        .context = a,
    };
}

/* Listen first, load NVML after: a node without a driver is a state to report. */
static int start(struct agent *a, struct err *e)
{
    struct daemon_config daemon = a->config->daemon;
    struct daemon_program program = agent_program(a);
    daemon.mode = "agent";
    a->daemon = daemon_new(&daemon, &program, a->metrics, e);
    if (!a->daemon)
        return -1;
    a->loop = daemon_loop(a->daemon);
    a->engines = daemon_engines_new(a->daemon, &a->config->engine, a->metrics, e);
    if (!a->engines)
        return -1;
    build_servers(a);
    a->wakeup = net_wakeup_new(a->loop, on_wakeup, a, e);
    if (!a->wakeup || daemon_listen(a->daemon, e) < 0)
        return -1;
    a->second = net_timer_new(a->loop, on_second, a);
    net_timer_start(a->second, NS_PER_S, NS_PER_S);
    if ((a->config->pod_resources || a->config->procfs) && start_attribution(a, e) < 0)
        return -1;
    a->sampler = gpu_start(&a->config->gpu, on_sampled, a, e);
    return a->sampler ? 0 : -1;
}

static void stop(struct agent *a)
{
    if (a->sampler && !gpu_stop(a->sampler))
        log_warn("nvml", "left the sampler behind in a driver call that does not return");
    attribution_free(a->attribution);
    net_timer_free(a->second);
    net_wakeup_free(a->wakeup);
    if (a->daemon)
        daemon_close(a->daemon);
    daemon_engines_free(a->engines);
    service_free(a->service);
    exporter_free(a->exporter);
    agent_entries_free(a->entries);
    snapshot_unref(a->snapshot);
    daemon_free(a->daemon);
    metrics_free(a->metrics);
}

int agent_run(const struct agent_config *config)
{
    struct agent a = {.config = config, .metrics = metrics_new()};
    struct err e;
    int exit_code;
    log_configure(config->daemon.reloadable.log_level, config->daemon.reloadable.log_format);
    log_info("agent", "starting", LOG_STR("version", config->daemon.version),
             LOG_STR("node", config->daemon.node_name));
    if (start(&a, &e) < 0) {
        log_error("agent", "cannot start", LOG_STR("error", e.text));
        exit_code = e.class == ERR_INVALID_ARGUMENT ? 2 : 1;
    } else {
        if (config->started)
            config->started(config->started_context, a.loop, daemon_address(a.daemon));
        exit_code = daemon_run(a.daemon);
        if (config->stopping)
            config->stopping(config->started_context);
        log_info("agent", "stopped", LOG_INT("exit_code", exit_code));
    }
    stop(&a);
    return exit_code;
}
