/* From flags, environment and file to what every long-running program is configured with. */
#include "cli/daemon_options.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Texts that the configuration points to; one program a process. */
static char metrics_address[32], probe_address[32], port_address[32], host_name[256];

#define LIMIT_MAX 1000000000000LL

static const char *address_of_port(const struct option_set *set, const char *address, const char *port, char out[32])
{
    if (*option_text(set, address))
        return option_text(set, address);
    if (option_int(set, port) <= 0)
        return NULL;
    (void)snprintf(out, 32, ":%d", (int)option_int(set, port));
    return out;
}

static const char *node_name(const struct option_set *set)
{
    const char *name = *option_text(set, "node-name") ? option_text(set, "node-name") : getenv("NODE_NAME");
    if (name && *name)
        return name;
    return gethostname(host_name, sizeof(host_name) - 1) == 0 ? host_name : "";
}

/* Only a connection's age may be without limit. The ceiling keeps milliseconds and their sums countable. */
static int set_limit(struct net_limits *limits, const char *text, struct err *e)
{
    struct str value = str_of(text), name = str_cut(&value, '=');
    int64_t number, least = str_equals(name, net_limit_name(NET_LIMIT_CONNECTION_AGE_MS)) ? 0 : 1;
    if (!value.ptr || num_parse_i64(value, &number) < 0 || number < least || number > LIMIT_MAX)
        return err_set(e, ERR_INVALID_ARGUMENT, "--limit \"%s\": must be NAME=N with N from %d to %lld", text,
                       (int)least, (long long)LIMIT_MAX);
    const char *names[NET_LIMIT_COUNT];
    for (size_t i = 0; i < NET_LIMIT_COUNT; i++) {
        names[i] = net_limit_name((enum net_limit)i);
        if (str_equals(name, names[i])) {
            limits->values[i] = number;
            return 0;
        }
    }
    char word[64];
    (void)str_copy(word, sizeof(word), name);
    const char *near = str_nearest(word, names, NET_LIMIT_COUNT);
    return err_set(e, ERR_INVALID_ARGUMENT, "--limit \"%s\": there is no limit \"%s\"%s%s%s; --print-config lists them",
                   text, word, near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
}

static int fill_listeners(struct option_set *set, struct daemon_config *config, struct err *e)
{
    size_t n;
    char *const *listen = option_list(set, "listen", &n);
    if (n > DAEMON_LISTEN_MAX)
        return err_set(e, ERR_INVALID_ARGUMENT, "--listen: at most %d addresses", DAEMON_LISTEN_MAX);
    for (size_t i = 0; i < n; i++)
        config->listen[i] = listen[i];
    config->n_listen = n;
    if (n == 0) {
        (void)snprintf(port_address, sizeof(port_address), ":%d", (int)option_int(set, "port"));
        config->listen[config->n_listen++] = port_address;
    }
    config->metrics_listen = address_of_port(set, "metrics-listen", "metrics-port", metrics_address);
    config->probe_listen = address_of_port(set, "probe-listen", "probe-port", probe_address);
    return 0;
}

static int fill_tls(const struct option_set *set, struct daemon_config *config, struct err *e)
{
    config->tls = (struct net_tls_files){.cert = option_text_or_null(set, "tls-cert"),
                                         .key = option_text_or_null(set, "tls-key"),
                                         .ca = option_text_or_null(set, "tls-client-ca")};
    config->is_metrics_tls = option_bool(set, "metrics-tls");
    bool has_pair = config->tls.cert && config->tls.key;
    if (!has_pair && (config->tls.cert || config->tls.key || config->tls.ca || config->is_metrics_tls))
        return err_set(
            e, ERR_INVALID_ARGUMENT,
            "TLS needs both --tls-cert and --tls-key; --tls-client-ca and --metrics-tls only work with them");
    return 0;
}

static int fill_reloadable(struct option_set *set, struct daemon_reloadable *ret, struct err *e)
{
    const char *path = option_text(set, "config");
    if (*path && config_file_read(path, set, ret, e) < 0)
        return -1;
    (void)log_parse_level(option_text(set, "log-level"), &ret->log_level);
    (void)log_parse_format(option_text(set, "log-format"), &ret->log_format);
    return 0;
}

/* The file again, under the same flags and environment: values of the old file are forgotten first. */
static int reload(void *context, struct daemon_reloadable *ret, struct err *e)
{
    const struct option_set *running = context;
    struct option_set fresh;
    option_set_init(&fresh, running->defs, running->n, running->env_prefix);
    for (size_t i = 0; i < running->n; i++)
        for (size_t k = 0; running->values[i].origin > OPTION_FILE && k < running->values[i].texts.len; k++) {
            fresh.values[i].origin = running->values[i].origin;
            vec_push(&fresh.values[i].texts, mem_strdup(running->values[i].texts.items[k]));
        }
    struct daemon_reloadable next = {0};
    int rc = fill_reloadable(&fresh, &next, e);
    option_set_fini(&fresh);
    if (rc == 0)
        *ret = next;
    else
        free(next.defaults);
    return rc;
}

static void print_defaults(const struct daemon_reloadable *reloadable, struct buf *out)
{
    (void)buf_append_str(out, reloadable->n_defaults ? "metrics:\n" : "metrics: []\n");
    for (size_t i = 0; i < reloadable->n_defaults; i++) {
        const struct trigger_default *d = &reloadable->defaults[i];
        char target[NUM_TEXT_MAX];
        num_format_double(target, d->target);
        (void)buf_append_str(out, "  - {name: ");
        json_quote(out, d->name, strlen(d->name));
        if (d->has_target)
            (void)buf_printf(out, ", targetValue: %s", target);
        if (d->has_aggregation)
            (void)buf_printf(out, ", aggregation: %s", scaling_aggregation_name(d->aggregation));
        if (d->has_gpu_index)
            (void)buf_printf(out, ", gpuIndex: %d", d->gpu_index);
        (void)buf_append_str(out, "}\n");
    }
}

void daemon_print_config(const struct option_set *set, struct daemon_config *config)
{
    BUF_AUTO struct buf text;
    buf_init(&text, 1 << 20);
    option_print(set, &text);
    print_defaults(&config->reloadable, &text);
    (void)buf_append_str(&text, "# limits in force:\n");
    for (size_t i = 0; i < NET_LIMIT_COUNT; i++)
        (void)buf_printf(&text, "#   %s=%lld\n", net_limit_name((enum net_limit)i),
                         (long long)config->limits.values[i]);
    (void)fputs(buf_cstr(&text), stdout);
    free(config->reloadable.defaults);
}

int daemon_config_from_options(struct option_set *set, struct daemon_config *config, struct err *e)
{
    if (fill_reloadable(set, &config->reloadable, e) < 0 || fill_listeners(set, config, e) < 0 ||
        fill_tls(set, config, e) < 0)
        return -1;
    config->limits = net_limits_default;
    size_t n;
    char *const *limits = option_list(set, "limit", &n);
    for (size_t i = 0; i < n; i++)
        if (set_limit(&config->limits, limits[i], e) < 0)
            return -1;
    config->node_name = node_name(set);
    config->drain_ns = option_duration(set, "drain-timeout");
    config->shutdown_delay_ns = option_duration(set, "shutdown-delay");
    config->version = CLI_VERSION;
    config->build = cli_compiler();
    config->reload = reload;
    config->reload_context = set;
    return 0;
}

/* ---- engines' pages ---- */

enum { RANGES_MAX = 64 };

/* The list's texts with a NULL after the last one, as the engine takes them; NULL: there are none. */
static const char *const *ranges(const struct option_set *set, const char *name, const char *out[RANGES_MAX + 1],
                                 struct err *e)
{
    size_t n;
    struct ip_prefix prefix;
    char *const *texts = option_list(set, name, &n);
    if (n > RANGES_MAX)
        (void)err_set(e, ERR_INVALID_ARGUMENT, "--%s: at most %d ranges", name, RANGES_MAX);
    for (size_t i = 0; i < n && e->class == ERR_NONE; i++) {
        out[i] = texts[i];
        if (ip_prefix_parse(str_of(texts[i]), &prefix, e) < 0)
            (void)err_wrap(e, "--%s", name);
    }
    out[n < RANGES_MAX ? n : RANGES_MAX] = NULL;
    return n && e->class == ERR_NONE ? out : NULL;
}

int engine_config_from_options(const struct option_set *set, struct engine_config *config, struct err *e)
{
    static const char *allowed[RANGES_MAX + 1], *denied[RANGES_MAX + 1]; /* one program a process */
    *e = (struct err){.class = ERR_NONE};
    const char *cluster = getenv("KUBERNETES_SERVICE_HOST");
    *config = (struct engine_config){.ca_file = option_text_or_null(set, "engine-ca-file"),
                                     .is_insecure = option_bool(set, "engine-insecure"),
                                     .timeout_ns = option_duration(set, "engine-timeout"),
                                     .has_cluster_dns = cluster && *cluster};
    config->allow = ranges(set, "endpoint-allow", allowed, e);
    config->deny = e->class == ERR_NONE ? ranges(set, "endpoint-deny", denied, e) : NULL;
    if (e->class != ERR_NONE)
        return -1;
    if (config->ca_file && config->is_insecure)
        return err_set(e, ERR_INVALID_ARGUMENT, "--engine-ca-file has no meaning with --engine-insecure");
    return 0;
}
