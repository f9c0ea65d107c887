/* The client: its configuration, the credentials that are read anew, the API server's clock, and the metrics. Watches
 * (watch.c) and reads of scales (scale.c) hang on it. */
#include "kube/kube_private.h"

#define SERVICE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

enum { REFRESH_S = 30, REFRESH_SOON_S = 10, TIMEOUT_S = 10 };

static const struct metric_desc requests_desc = {
    .name = "keda_gpu_scaler_kube_requests",
    .help = "Requests to the Kubernetes API, by class of the answer; error: there was none.",
    .kind = METRIC_COUNTER,
    .labels = {"verb", "code"},
};
static const struct metric_desc restarts_desc = {
    .name = "keda_gpu_scaler_kube_watch_restarts",
    .help = "Watches of the Kubernetes API that ended and are begun again, by what ended them.",
    .kind = METRIC_COUNTER,
    .labels = {"resource", "reason"},
};
static const struct metric_desc states_desc = {
    .name = "keda_gpu_scaler_kube_watches",
    .help = "Watches of the Kubernetes API, by what they do: watching, listing, or waiting for the next try.",
    .kind = METRIC_GAUGE,
    .labels = {"resource", "state"},
};
static const struct metric_desc objects_desc = {
    .name = "keda_gpu_scaler_kube_objects",
    .help = "Objects that watches of the Kubernetes API know of.",
    .kind = METRIC_GAUGE,
    .labels = {"resource"},
};
static const struct metric_desc credentials_desc = {
    .name = "keda_gpu_scaler_kube_credential_errors",
    .help =
        "Times that the files of the Kubernetes API's credentials could not be read again. The last ones stay in use.",
    .kind = METRIC_COUNTER,
};

/* Files being read off the loop. Outlives the client if need be. */
struct kube_refresh {
    struct kube *k; /* NULL: gone */
    struct kube_access access;
    int rc;
};

static void use_tls(struct kube *k)
{
    const struct kube_access *access = &k->access;
    http_client_set_tls(k->http, &(struct http_client_tls){.ca = str_of(access->ca ? access->ca : ""),
                                                           .cert = str_of(access->cert ? access->cert : ""),
                                                           .key = str_of(access->key ? access->key : ""),
                                                           .is_insecure = access->is_insecure});
}

static void read_files(void *context)
{
    struct kube_refresh *refresh = (struct kube_refresh *)context;
    struct err ignored;
    refresh->rc = kube_access_read(&refresh->access, &ignored);
}

static void files_read(void *context)
{
    struct kube_refresh *refresh = (struct kube_refresh *)context;
    struct kube *k = refresh->k;
    if (k) {
        k->refresh = NULL;
        if (refresh->rc < 0)
            metric_add(metric_only(k->credentials), 1);
        else if (kube_access_take_texts(&k->access, &refresh->access))
            use_tls(k);
    }
    kube_access_fini(&refresh->access);
    free(refresh);
}

static void refresh_now(void *context)
{
    struct kube *k = (struct kube *)context;
    if (k->refresh)
        return;
    k->refreshed_ns = net_now_ns(k->loop);
    k->refresh = mem_new(struct kube_refresh);
    k->refresh->k = k;
    kube_access_copy_files(&k->access, &k->refresh->access);
    net_work(k->loop, read_files, files_read, k->refresh);
}

void kube_refresh_soon(struct kube *k)
{
    if (net_now_ns(k->loop) - k->refreshed_ns >= REFRESH_SOON_S * NS_PER_S)
        refresh_now(k);
}

static int read_configuration(struct kube *k, const struct kube_config *config, struct err *e)
{
    const char *dir = config->service_account_dir ? config->service_account_dir : SERVICE_ACCOUNT_DIR;
    int rc = config->kubeconfig ? kube_access_kubeconfig(config->kubeconfig, &k->access, e)
                                : kube_access_in_cluster(dir, &k->access, e);
    if (rc < 0)
        return -1;
    if (!k->access.ns)
        k->access.ns = mem_strdup("default");
    if (kube_access_read(&k->access, e) == 0)
        return 0;
    if (e)
        e->class = ERR_INVALID_ARGUMENT;
    return -1;
}

static void register_metrics(struct kube *k, struct metrics *metrics)
{
    k->own_metrics = metrics ? NULL : metrics_new();
    metrics = metrics ? metrics : k->own_metrics;
    k->requests = metric_register(metrics, &requests_desc);
    k->restarts = metric_register(metrics, &restarts_desc);
    k->states = metric_register(metrics, &states_desc);
    k->objects = metric_register(metrics, &objects_desc);
    k->credentials = metric_register(metrics, &credentials_desc);
    (void)metric_only(k->credentials);
}

struct kube *kube_new(const struct kube_config *config, struct err *e)
{
    struct kube *k = mem_new(struct kube);
    k->loop = config->loop;
    k->timeout_ns = config->timeout_ns > 0 ? config->timeout_ns : TIMEOUT_S * NS_PER_S;
    if (read_configuration(k, config, e) < 0 || !(k->http = http_client_new(k->loop, e))) {
        kube_access_fini(&k->access);
        free(k);
        return NULL;
    }
    register_metrics(k, config->metrics);
    use_tls(k);
    http_client_set_proxy(k->http, k->access.proxy);
    k->refreshed_ns = net_now_ns(k->loop);
    k->refresh_timer = net_timer_new(k->loop, refresh_now, k);
    net_timer_start(k->refresh_timer, REFRESH_S * NS_PER_S, REFRESH_S * NS_PER_S);
    return k;
}

void kube_free(struct kube *k)
{
    if (!k)
        return;
    while (k->watches)
        kube_watch_free(k->watches);
    kube_gets_free(k);
    kube_secret_free(k);
    http_client_free(k->http);
    net_timer_free(k->refresh_timer);
    if (k->refresh)
        k->refresh->k = NULL;
    kube_access_fini(&k->access);
    metrics_free(k->own_metrics);
    free(k);
}

const char *kube_server(const struct kube *k)
{
    return k->access.server;
}

const char *kube_namespace(const struct kube *k)
{
    return k->access.ns;
}

bool kube_now_s(const struct kube *k, double *ret_now_s)
{
    if (!k->has_date)
        return false;
    *ret_now_s = k->date_s + (double)(net_now_ns(k->loop) - k->dated_ns) / (double)NS_PER_S;
    return true;
}
