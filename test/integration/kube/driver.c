/* A client of the Kubernetes API for the suite beside it: says on stdout what kube tells, does what stdin says, one
 * line each. `driver KUBECONFIG` ("-": as in a pod; then SERVICE_ACCOUNT_DIR names the files);
 * TIMEOUT_S: of requests. Orders:
 *   watch KIND NS LABELS FIELDS MAX   ("-": unset)     scale VERSION KIND NS NAME
 *   free N   now   silent   synced   skip SECONDS   metrics */
#include "kube/kube.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WATCHES_MAX = 2048, LINE_MAX_BYTES = 4096 };

static struct net_loop *loop;
static struct metrics *metrics;
static struct kube *kube;
static struct kube_watch *watches[WATCHES_MAX];
static int n_watches;
static bool frees_itself; /* the next watch ends itself in its first callback */
static struct buf input;

static void say_object(const struct kube_object *object)
{
    const struct kube_meta *m = &object->meta;
    printf("%s/%s uid=%s created=%.0f deleted=%d", m->ns, m->name, m->uid, m->created_s, m->is_deleted);
    switch (object->kind) {
    case KUBE_POD:
        printf(" node=%s ip=%s phase=%d ready=%d/%d@%.0f started=%.0f gpu=%d group=%lld", object->pod->node,
               object->pod->ip, object->pod->phase, object->pod->has_condition, object->pod->is_ready,
               object->pod->condition_s, object->pod->started_s, object->pod->requests_gpu,
               (long long)object->pod->group);
        break;
    case KUBE_SCALED_OBJECT:
        printf(" target=%s,%s,%s hpa=%s triggers=%zu+%zu min=%lld max=%lld paused=%d fallback=%d,%s,%lld",
               object->scaled_object->target_api_version, object->scaled_object->target_kind,
               object->scaled_object->target_name, object->scaled_object->hpa_name, object->scaled_object->n_triggers,
               object->scaled_object->n_other_triggers, (long long)object->scaled_object->min,
               (long long)object->scaled_object->max, object->scaled_object->is_paused,
               object->scaled_object->has_fallback, object->scaled_object->fallback_behavior,
               (long long)object->scaled_object->fallback_replicas);
        break;
    case KUBE_HPA:
        printf(" target=%s,%s,%s min=%lld max=%lld desired=%lld metrics=%zu:%s,%d,%g up=%zu,%lld down=%zu,%lld",
               object->hpa->target_api_version, object->hpa->target_kind, object->hpa->target_name,
               (long long)object->hpa->min, (long long)object->hpa->max, (long long)object->hpa->desired,
               object->hpa->n_metrics, object->hpa->n_metrics ? object->hpa->metrics[0].name : "",
               object->hpa->metrics[0].is_value, object->hpa->metrics[0].target, object->hpa->up.n_policies,
               (long long)object->hpa->up.window_s, object->hpa->down.n_policies,
               (long long)object->hpa->down.window_s);
        break;
    case KUBE_ENDPOINT_SLICE:
        printf(" service=%s ports=%zu endpoints=%zu", object->endpoint_slice->service, object->endpoint_slice->n_ports,
               object->endpoint_slice->n_endpoints);
        break;
    case KUBE_SCALED_JOB:
    case KUBE_KIND_COUNT:
        break;
    }
    putchar('\n');
}

static void end_itself(int number)
{
    if (!frees_itself)
        return;
    frees_itself = false;
    kube_watch_free(watches[number]);
    watches[number] = NULL;
    puts("freed");
}

static int number_of(const void *context)
{
    return (int)((struct kube_watch *const *)context - watches);
}

static void changed(void *context, const struct kube_object *object)
{
    printf("changed %d ", number_of(context));
    say_object(object);
    end_itself(number_of(context));
}

static void gone(void *context, const char *ns, const char *name, const char *uid)
{
    printf("gone %d %s/%s uid=%s\n", number_of(context), ns, name, uid);
    end_itself(number_of(context));
}

static void synced(void *context)
{
    printf("synced %d\n", number_of(context));
    end_itself(number_of(context));
}

static void failed(void *context, const struct err *error)
{
    printf("failed %d %s %s\n", number_of(context), err_class_name(error->class), error->text);
    end_itself(number_of(context));
}

static void scaled(void *context, const struct kube_scale *scale, const struct err *error)
{
    (void)context;
    if (scale)
        printf("scale %lld %lld %s\n", (long long)scale->spec, (long long)scale->status, scale->selector);
    else
        printf("noscale %s %s\n", err_class_name(error->class), error->text);
}

static const char *unless_dash(const char *word)
{
    return strcmp(word, "-") == 0 ? NULL : word;
}

static void start_watch(char *const *words)
{
    static const char *const plurals[] = {
#define X(id, plural, path, type) plural,
        KUBE_KINDS(X)
#undef X
    };
    uint64_t most = 0;
    int kind = 0;
    while (kind + 1 < KUBE_KIND_COUNT && strcmp(plurals[kind], words[1]) != 0)
        kind++;
    if (n_watches == WATCHES_MAX || (strcmp(words[5], "-") != 0 && num_parse_u64(str_of(words[5]), &most) < 0))
        return;
    int number = n_watches++;
    watches[number] = kube_watch_start(kube, &(struct kube_watch_config){.kind = (enum kube_kind)kind,
                                                                         .ns = unless_dash(words[2]),
                                                                         .label_selector = unless_dash(words[3]),
                                                                         .field_selector = unless_dash(words[4]),
                                                                         .max_objects = (size_t)most,
                                                                         .changed = changed,
                                                                         .gone = gone,
                                                                         .synced = synced,
                                                                         .failed = failed,
                                                                         .context = &watches[number]});
}

static void say_family(void *context, const struct metric_desc *desc)
{
    (void)context;
    (void)desc;
}

static void say_sample(void *context, const struct metric_sample *sample)
{
    (void)context;
    if (!str_has_prefix(str_of(sample->desc->name), "keda_gpu_scaler_kube_"))
        return;
    printf("metric %s", sample->desc->name + strlen("keda_gpu_scaler_kube_"));
    for (int i = 0; i < METRIC_LABELS_MAX && sample->desc->labels[i]; i++)
        printf(",%s", sample->label_values[i]);
    printf(" %g\n", sample->value);
}

static void say_state(const char *order)
{
    double now_s = 0;
    if (strcmp(order, "now") == 0 && kube_now_s(kube, &now_s))
        printf("now %.0f\n", now_s);
    else if (strcmp(order, "silent") == 0)
        printf("silent %.3f\n", watches[0] ? (double)kube_watch_silent_ns(watches[0], net_now_ns(loop)) / 1e9 : -1);
    else if (strcmp(order, "synced") == 0)
        printf("is_synced %d\n", watches[0] && kube_watch_is_synced(watches[0]));
    else if (strcmp(order, "metrics") == 0)
        metrics_visit(metrics, &(struct metric_visitor){say_family, say_sample, NULL});
    else
        printf("what is \"%s\"?\n", order);
}

static void obey(char *line)
{
    char *words[6], *rest = line;
    size_t n = 0;
    int64_t number;
    for (char *word; n < ARRAY_LEN(words) && (word = strsep(&rest, " ")) != NULL;)
        words[n++] = word;
    if (n == 6 && strcmp(words[0], "watch") == 0) {
        start_watch(words);
    } else if (n == 5 && strcmp(words[0], "scale") == 0) {
        (void)kube_get_scale(kube, &(struct kube_target){words[1], words[2], words[3], words[4]}, scaled, NULL);
    } else if (n == 2 && strcmp(words[0], "skip") == 0 && num_parse_i64(str_of(words[1]), &number) == 0) {
        net_loop_skip(loop, number * NS_PER_S);
    } else if (n == 2 && strcmp(words[0], "free") == 0 && num_parse_i64(str_of(words[1]), &number) == 0) {
        kube_watch_free(watches[number]);
        watches[number] = NULL;
    } else if (n == 1 && strcmp(words[0], "free-next") == 0) {
        frees_itself = true;
        puts("free-next");
    } else {
        say_state(words[0]);
    }
}

static void stdin_ready(void *context, bool is_readable, bool is_writable)
{
    char bytes[LINE_MAX_BYTES];
    ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));
    (void)context;
    (void)is_readable;
    (void)is_writable;
    if (n <= 0) {
        net_loop_stop(loop);
        return;
    }
    (void)buf_append(&input, bytes, (size_t)n);
    for (char *end; input.len && (end = memchr(input.data, '\n', input.len)) != NULL;) {
        char *line MEM_AUTO = mem_strndup(input.data, (size_t)(end - input.data));
        buf_consume(&input, strlen(line) + 1);
        obey(line);
    }
}

int main(int argc, char **argv)
{
    struct err e = {0};
    uint64_t timeout_s = 0;
    const char *timeout = getenv("TIMEOUT_S");
    if (argc != 2 || (timeout && num_parse_u64(str_of(timeout), &timeout_s) < 0))
        return 2;
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    buf_init(&input, LINE_MAX_BYTES * 4);
    metrics = metrics_new();
    loop = net_loop_new(metrics, &e);
    kube = kube_new(&(struct kube_config){.loop = loop,
                                          .metrics = metrics,
                                          .kubeconfig = unless_dash(argv[1]),
                                          .service_account_dir = getenv("SERVICE_ACCOUNT_DIR"),
                                          .timeout_ns = (int64_t)timeout_s * NS_PER_S},
                    &e);
    if (!kube)
        printf("refused %s %s\n", err_class_name(e.class), e.text);
    else
        printf("ready %s %s\n", kube_server(kube), kube_namespace(kube));
    struct net_poll *poll = net_poll_new(loop, STDIN_FILENO, stdin_ready, NULL, &e);
    if (kube && poll) {
        net_poll_want(poll, true, false);
        net_loop_run(loop);
    }
    kube_free(kube);
    net_poll_free(poll);
    net_loop_free(loop);
    metrics_free(metrics);
    buf_fini(&input);
    return kube ? 0 : 1;
}
