/* `explain` and `get`: what a hub knows, for people and scripts. The hub writes both forms; here they are shown. */
#include "cli/cli.h"
#include "http/http.h"

#include <stdio.h>
#include <string.h>

#define HUB_OPTIONS                                                                                                    \
    {.name = "hub",                                                                                                    \
     .kind = OPTION_TEXT,                                                                                              \
     .fallback = "127.0.0.1:9090",                                                                                     \
     .metavar = "ADDRESS",                                                                                             \
     .help = "any port of a hub, for example through kubectl port-forward svc/keda-gpu-scaler 9090"},                  \
        {.name = "timeout",                                                                                            \
         .kind = OPTION_DURATION,                                                                                      \
         .fallback = "5s",                                                                                             \
         .metavar = "D",                                                                                               \
         .help = "longest time for the answer",                                                                        \
         .min = NS_PER_MS,                                                                                             \
         .max = 3600 * NS_PER_S},                                                                                      \
    {                                                                                                                  \
        .name = "output", .kind = OPTION_CHOICE, .fallback = "text", .metavar = "FORMAT",                              \
        .help = "form of the output", .choices = "text|json", .letter = 'o'                                            \
    }
static const struct option_def hub_client_options[] = {HUB_OPTIONS};

/* Print the page; its text is the error where the hub refuses. Returns the exit code. */
static int show(const struct option_set *set, const char *path)
{
    enum { PAGE_MAX = 64 << 20, STATUS_OK = 200 };
    BUF_AUTO struct buf target;
    BUF_AUTO struct buf body;
    struct err e;
    buf_init(&target, 4096);
    buf_init(&body, PAGE_MAX);
    bool is_json = strcmp(option_text(set, "output"), "json") == 0;
    (void)buf_printf(&target, "%s%s", path, is_json ? "" : "?output=text");
    int status =
        http_get_blocking(option_text(set, "hub"), buf_cstr(&target), option_duration(set, "timeout"), &body, &e);
    if (status < 0)
        return cli_fail(&e, "--hub names a port of a hub; kubectl -n NAMESPACE port-forward svc/keda-gpu-scaler 9090 "
                            "makes one reachable");
    if (status != STATUS_OK) {
        struct str text = str_trim((struct str){body.data, body.len});
        (void)err_set(&e, ERR_NOT_FOUND, "%.*s", (int)text.len, text.ptr);
        return cli_fail(&e, "");
    }
    (void)fwrite(body.data, 1, body.len, stdout);
    return cli_flush() ? 0 : 1;
}

/* A name of Kubernetes, so that nothing else can come into the path. */
static bool is_name(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789-.", text.ptr[i]))
            return false;
    return text.len > 0;
}

static int run_explain(struct option_set *set)
{
    struct err e;
    char path[1024];
    struct str name = str_of(set->operands.len ? set->operands.items[0] : "");
    struct str ns = str_cut(&name, '/');
    if (!name.ptr || !is_name(ns) || !is_name(name)) {
        (void)err_set(&e, ERR_INVALID_ARGUMENT, "explain needs NAMESPACE/NAME of a ScaledObject");
        return cli_fail(&e, "`keda-gpu-scaler get workloads` lists those that the hub follows");
    }
    (void)snprintf(path, sizeof(path), "/api/v1/workloads/%.*s/%.*s", (int)ns.len, ns.ptr, (int)name.len, name.ptr);
    return show(set, path);
}

static int run_get(struct option_set *set)
{
    static const char *const kinds[] = {"nodes", "gpus", "workloads"};
    struct err e;
    char path[64];
    const char *kind = set->operands.len ? set->operands.items[0] : "";
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (strcmp(kind, kinds[i]) == 0) {
            (void)snprintf(path, sizeof(path), "/api/v1/%s", kind);
            return show(set, path);
        }
    const char *near = str_nearest(kind, kinds, ARRAY_LEN(kinds));
    (void)err_set(&e, ERR_INVALID_ARGUMENT, "get needs nodes, gpus or workloads, not \"%s\"%s%s%s", kind,
                  near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
    return cli_fail(&e, "");
}

const struct command command_explain = {
    .name = "explain",
    .summary = "Say why a workload gets the replicas that it gets",
    .usage = "[flags] NAMESPACE/NAME",
    .max_operands = 1,
    .details = "Asks a hub for each trigger of the ScaledObject: the value, the rule that it came from, every pod and\n"
               "GPU with its state and age, what the HPA will make of it, and what can never work.",
    .options = hub_client_options,
    .n_options = ARRAY_LEN(hub_client_options),
    .env_prefix = "KEDA_GPU_SCALER_",
    .run = run_explain,
};

const struct command command_get = {
    .name = "get",
    .summary = "List nodes, GPUs or workloads as a hub knows them",
    .usage = "[flags] nodes|gpus|workloads",
    .choices = "nodes|gpus|workloads",
    .max_operands = 1,
    .details = "",
    .options = hub_client_options,
    .n_options = ARRAY_LEN(hub_client_options),
    .env_prefix = "KEDA_GPU_SCALER_",
    .run = run_get,
};
