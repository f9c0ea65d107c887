/* One request to the API: URL, credentials, the answer's head, the words of a refusal, and the count of it all. Owns no
 * retry: watches and gets decide what comes next. */
#include "kube/kube_private.h"

#include <string.h>

enum { REFUSAL_BYTES_MAX = 64 << 10 };

void kube_escape(struct buf *out, const char *text)
{
    for (const char *c = text; *c; c++) {
        bool is_plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
                        strchr("-._~", *c) != NULL;
        if (is_plain)
            (void)buf_append_char(out, *c);
        else
            (void)buf_printf(out, "%%%02X", (unsigned char)*c);
    }
}

static const struct {
    const char *name, *method, *content_type;
} verbs[KUBE_VERB_COUNT] = {
    [KUBE_GET] = {"get", "GET", NULL},
    [KUBE_LIST] = {"list", "GET", NULL},
    [KUBE_WATCH] = {"watch", "GET", NULL},
    [KUBE_CREATE] = {"create", "POST", "Content-Type: application/json"},
    [KUBE_PATCH] = {"patch", "PATCH", "Content-Type: application/merge-patch+json"},
};

static void count(const struct kube_request *request, bool is_broken)
{
    static const char *const codes[] = {"other", "other", "2xx", "3xx", "4xx", "5xx"};
    size_t hundreds = (size_t)(request->status / 100);
    const char *code = hundreds < ARRAY_LEN(codes) ? codes[hundreds] : "other";
    const char *values[] = {verbs[request->verb].name, is_broken && request->status == 0 ? "error" : code};
    metric_add(metric_series(request->k->requests, values), 1);
}

static bool is_good(const struct kube_request *request)
{
    return request->status >= 200 && request->status < 300;
}

static enum err_class class_of(int status)
{
    static const struct {
        int status;
        enum err_class class;
    } classes[] = {{400, ERR_INVALID_ARGUMENT},    {401, ERR_UNAUTHENTICATED},   {403, ERR_PERMISSION_DENIED},
                   {404, ERR_NOT_FOUND},           {405, ERR_UNIMPLEMENTED},     {409, ERR_FAILED_PRECONDITION},
                   {410, ERR_FAILED_PRECONDITION}, {429, ERR_RESOURCE_EXHAUSTED}};
    for (size_t i = 0; i < ARRAY_LEN(classes); i++)
        if (classes[i].status == status)
            return classes[i].class;
    return ERR_UNAVAILABLE;
}

/* "GET /api/v1/pods: 403: pods is forbidden ...", with the words of the Status object where there is one. */
static void say_refusal(const struct kube_request *request, struct err *ret)
{
    struct err ignored;
    json_t *json KUBE_JSON_AUTO = kube_parse_json((struct str){request->refusal.data, request->refusal.len}, &ignored);
    const char *message = json ? json_string_value(json_object_get(json, "message")) : NULL;
    (void)err_set(ret, class_of(request->status), "%s %s: %d%s%s", verbs[request->verb].method, request->path,
                  request->status, message ? ": " : "", message ? message : "");
}

static void end(struct kube_request *request)
{
    request->fetch = NULL;
    free(request->path);
    request->path = NULL;
    buf_fini(&request->refusal);
}

static void on_head(void *context, const struct http_head *head)
{
    struct kube_request *request = (struct kube_request *)context;
    struct kube *k = request->k;
    request->status = head->status;
    request->retry_after_ns = head->retry_after_ns;
    if (head->date_s > 0) {
        k->has_date = true;
        k->date_s = head->date_s;
        k->dated_ns = net_now_ns(k->loop);
    }
    if (head->status == 401)
        kube_refresh_soon(k);
    count(request, false);
}

static int on_body(void *context, const char *bytes, size_t len)
{
    struct kube_request *request = (struct kube_request *)context;
    if (is_good(request))
        return request->body(request->context, bytes, len);
    (void)buf_append(&request->refusal, bytes, len); /* what is too long is no Status */
    return 0;
}

static void on_done(void *context, const struct err *error)
{
    struct kube_request *request = (struct kube_request *)context;
    struct err e;
    bool is_refused = !is_good(request) && request->status != 0;
    if (error) {
        e = *error;
        if (request->status == 0)
            count(request, true);
    }
    if (is_refused)
        say_refusal(request, &e);
    else if (error)
        (void)err_wrap(&e, "%s %s", verbs[request->verb].method, request->path);
    end(request);
    request->done(request->context, error || is_refused ? &e : NULL);
}

void kube_request_start(struct kube_request *request, struct kube *k, const struct kube_request_config *config)
{
    struct buf url BUF_AUTO, bearer BUF_AUTO;
    *request = (struct kube_request){.k = k,
                                     .verb = config->verb,
                                     .path = mem_strndup(config->path, strcspn(config->path, "?")),
                                     .body = config->body,
                                     .done = config->done,
                                     .context = config->context};
    buf_init(&request->refusal, REFUSAL_BYTES_MAX);
    buf_init(&url, SIZE_MAX);
    buf_init(&bearer, SIZE_MAX);
    (void)buf_printf(&url, "%s%s", k->access.server, config->path);
    (void)buf_printf(&bearer, "Authorization: Bearer %s", k->access.token ? k->access.token : "");
    const char *headers[4] = {"Accept: application/json"};
    size_t n = 1;
    if (k->access.token)
        headers[n++] = buf_cstr(&bearer);
    if (verbs[config->verb].content_type)
        headers[n++] = verbs[config->verb].content_type;
    request->fetch = http_fetch_start(
        k->http, &(struct http_fetch_config){.url = buf_cstr(&url),
                                             .headers = headers,
                                             .method = config->content.ptr ? verbs[config->verb].method : NULL,
                                             .content = config->content,
                                             .timeout_ns = config->timeout_ns,
                                             .silence_ns = config->silence_ns,
                                             .is_long = config->verb == KUBE_WATCH,
                                             .head = on_head,
                                             .body = on_body,
                                             .done = on_done,
                                             .context = request});
}

void kube_request_cancel(struct kube_request *request)
{
    if (!request->fetch)
        return;
    http_fetch_cancel(request->fetch);
    end(request);
}

bool kube_request_is_open(const struct kube_request *request)
{
    return request->fetch && is_good(request);
}
