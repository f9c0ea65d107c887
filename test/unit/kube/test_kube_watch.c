/* A client against our own HTTP server in the same loop: the order of what is told, and owners that end everything from
 * inside a callback. What happens with servers that fail is the integration suite's (test/integration/kube). */
#include "net/peer.h"

#include "kube/kube_private.h"

#define ITEM(name, uid) "{\"metadata\":{\"namespace\":\"s\",\"name\":\"" name "\",\"uid\":\"" uid "\"}}"
#define EVENT(type, name, uid)                                                                                         \
    "{\"type\":\"" type "\",\"object\":{\"metadata\":{\"namespace\":\"s\",\"name\":\"" name "\",\"uid\":\"" uid        \
    "\",\"resourceVersion\":\"9\"}}}\n"

enum ender { NOBODY, BY_CHANGED, BY_GONE, BY_SYNCED, BY_FAILED, BY_SCALE };

struct world {
    struct metrics *metrics;
    struct net_loop *loop;
    struct net_gets *gets;
    struct http_server *server;
    struct net_listener *listener;
    struct kube *kube;
    struct kube_watch *watch;
    const char *pages[4]; /* answers to lists, in turn; NULL: 500 */
    const char *events;   /* answer to watches; "" ends at once */
    int n_lists, n_watches, n_scales, status;
    char last_watch[512], path[64];
    struct buf log;
    enum ender ender; /* frees the client */
};

static void answer_pods(void *context, const struct net_get_request *request, struct net_get_response *response)
{
    struct world *w = (struct world *)context;
    char *query MEM_AUTO = mem_strndup(request->query.ptr ? request->query.ptr : "", request->query.len);
    if (strstr(query, "watch=1")) {
        w->n_watches++;
        (void)str_copy(w->last_watch, sizeof(w->last_watch), request->query);
        (void)buf_append_str(&response->body, w->n_watches == 1 ? w->events : "");
        return;
    }
    const char *page = w->n_lists < (int)ARRAY_LEN(w->pages) ? w->pages[w->n_lists] : NULL;
    w->n_lists++;
    response->status = page ? 200 : 500;
    (void)buf_append_str(&response->body, page ? page : "{\"message\":\"etcd is away\"}");
}

static void answer_apps(void *context, const struct net_get_request *request, struct net_get_response *response)
{
    struct world *w = (struct world *)context;
    (void)request;
    w->n_scales++;
    (void)buf_append_str(&response->body,
                         request->path.len == strlen("/apis/apps/v1")
                             ? "{\"resources\":[{\"name\":\"deployments/scale\",\"kind\":\"Scale\"},{\"name\":"
                               "\"deployments\",\"kind\":\"Deployment\"}]}"
                             : "{\"spec\":{\"replicas\":3},\"status\":{\"selector\":\"a=b\"}}");
}

static void end_by(struct world *w, enum ender who)
{
    if (w->ender != who)
        return;
    kube_free(w->kube);
    w->kube = NULL;
    w->watch = NULL;
}

static void changed(void *context, const struct kube_object *object)
{
    struct world *w = (struct world *)context;
    (void)buf_printf(&w->log, "+%s:%s ", object->meta.name, object->meta.uid);
    end_by(w, BY_CHANGED);
}

static void gone(void *context, const char *ns, const char *name, const char *uid)
{
    struct world *w = (struct world *)context;
    assert_string_equal(ns, "s");
    (void)buf_printf(&w->log, "-%s:%s ", name, uid);
    end_by(w, BY_GONE);
}

static void synced(void *context)
{
    struct world *w = (struct world *)context;
    (void)buf_append_str(&w->log, "synced ");
    end_by(w, BY_SYNCED);
}

static void failed(void *context, const struct err *error)
{
    struct world *w = (struct world *)context;
    (void)buf_printf(&w->log, "!%s ", err_class_name(error->class));
    end_by(w, BY_FAILED);
}

static void scaled(void *context, const struct kube_scale *scale, const struct err *error)
{
    struct world *w = (struct world *)context;
    (void)buf_printf(&w->log, "scale:%d:%s ", scale ? (int)scale->spec : -1, scale ? scale->selector : error->text);
    end_by(w, BY_SCALE);
}

static void make_client(struct world *w)
{
    struct err e = {0};
    FILE *file = fopen(w->path, "we");
    assert_non_null(file);
    (void)fprintf(
        file,
        "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\nclusters: [{name: k, cluster: {server: "
        "'http://127.0.0.1:%d'}}]\n",
        net_listener_port(w->listener));
    assert_int_equal(fclose(file), 0);
    w->kube = kube_new(&(struct kube_config){.loop = w->loop, .metrics = w->metrics, .kubeconfig = w->path}, &e);
    assert_non_null(w->kube);
}

static int set_up(void **state)
{
    struct world *w = mem_new(struct world);
    struct err e = {0};
    w->metrics = metrics_new();
    w->loop = net_loop_new(w->metrics, &e);
    w->gets = net_gets_new();
    net_gets_add(w->gets, "/api/v1/pods", answer_pods, w);
    net_gets_add(w->gets, "/apis/apps/v1", answer_apps, w);
    net_gets_add(w->gets, "/apis/apps/v1/", answer_apps, w);
    w->server = http_server_new(w->gets, w->metrics);
    w->listener = net_listen(
        w->loop, &(struct net_listen_config){.address = "127.0.0.1:0", .http1 = http_server_protocol(w->server)}, &e);
    assert_non_null(w->listener);
    (void)snprintf(w->path, sizeof(w->path), "/tmp/test-kube-watch-XXXXXX");
    int fd = mkstemp(w->path);
    assert_true(fd >= 0);
    (void)close(fd);
    buf_init(&w->log, 4096);
    w->events = "";
    make_client(w);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = (struct world *)*state;
    kube_free(w->kube);
    net_listener_free(w->listener);
    http_server_free(w->server);
    net_gets_free(w->gets);
    net_loop_free(w->loop);
    metrics_free(w->metrics);
    buf_fini(&w->log);
    (void)unlink(w->path);
    free(w);
    return 0;
}

static void start(struct world *w)
{
    w->watch = kube_watch_start(w->kube, &(struct kube_watch_config){.kind = KUBE_POD,
                                                                     .label_selector = "app in (x,y)",
                                                                     .max_objects = 3,
                                                                     .changed = changed,
                                                                     .gone = gone,
                                                                     .synced = synced,
                                                                     .failed = failed,
                                                                     .context = w});
    assert_string_equal(buf_cstr(&w->log), ""); /* nothing from inside */
}

static void until_log(struct world *w, const char *want)
{
    turn_until(w->loop, strlen(buf_cstr(&w->log)) >= strlen(want));
    assert_string_equal(buf_cstr(&w->log), want);
}

static void test_pages_then_events_are_told_in_order(void **state)
{
    struct world *w = (struct world *)*state;
    w->pages[0] = "{\"metadata\":{\"resourceVersion\":\"5\",\"continue\":\"a/b\"},\"items\":[" ITEM("a", "1") "," ITEM(
        "b", "2") "]}";
    w->pages[1] = "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[" ITEM("c", "3") "]}";
    w->events = EVENT("MODIFIED", "a", "1") EVENT("DELETED", "b", "2") EVENT("DELETED", "zz", "9") EVENT("ADDED", "d",
                                                                                                         "4")
        EVENT("ADDED", "c", "33") "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"77\"}}}\n";
    start(w);
    assert_false(kube_watch_is_synced(w->watch));
    until_log(w, "+a:1 +b:2 +c:3 synced +a:1 -b:2 +d:4 -c:3 +c:33 ");
    assert_true(kube_watch_is_synced(w->watch));
    assert_non_null(strstr(w->last_watch, "&resourceVersion=5&"));
    assert_non_null(strstr(w->last_watch, "labelSelector=app%20in%20%28x%2Cy%29"));
    assert_non_null(strstr(w->last_watch, "allowWatchBookmarks=true"));
    turn_some(w->loop);
    net_loop_skip(w->loop, 2 * NS_PER_S);
    turn_until(w->loop, w->n_watches == 2);
    assert_non_null(strstr(w->last_watch, "&resourceVersion=77&")); /* where the bookmark was */
    assert_int_equal(w->n_lists, 2);
}

static void test_a_new_list_tells_what_is_gone_before_it_is_synced(void **state)
{
    struct world *w = (struct world *)*state;
    w->pages[0] = "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[" ITEM("a", "1") "," ITEM("b", "2") "]}";
    w->pages[1] = "{\"metadata\":{\"resourceVersion\":\"8\"},\"items\":[" ITEM("b", "2") "]}";
    w->events = "{\"type\":\"ERROR\",\"object\":{\"code\":410}}\n";
    start(w);
    until_log(w, "+a:1 +b:2 synced ");
    turn_until(w->loop, w->n_watches == 1);
    turn_some(w->loop);
    net_loop_skip(w->loop, 2 * NS_PER_S);
    until_log(w, "+a:1 +b:2 synced +b:2 -a:1 synced ");
}

static void test_an_item_without_a_name_keeps_all_others(void **state)
{
    struct world *w = (struct world *)*state;
    w->pages[0] = "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[" ITEM("a", "1") "]}";
    w->pages[1] = "{\"metadata\":{\"resourceVersion\":\"8\"},\"items\":[{\"metadata\":{}}]}";
    w->events = "{\"type\":\"ERROR\",\"object\":{\"code\":410}}\n";
    start(w);
    until_log(w, "+a:1 synced ");
    turn_until(w->loop, w->n_watches == 1);
    turn_some(w->loop);
    net_loop_skip(w->loop, 2 * NS_PER_S);
    until_log(w, "+a:1 synced !INVALID_ARGUMENT synced ");
}

static void test_the_client_may_be_freed_from_inside_every_callback(void **state)
{
    static const struct {
        enum ender ender;
        const char *want;
    } cases[] = {{BY_CHANGED, "+a:1 "},
                 {BY_SYNCED, "+a:1 +b:2 synced "},
                 {BY_GONE, "+a:1 +b:2 synced -a:1 "},
                 {BY_FAILED, "!UNAVAILABLE "},
                 {BY_SCALE, "scale:3:a=b "}};
    struct world *w = (struct world *)*state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        buf_reset(&w->log);
        w->ender = cases[i].ender;
        w->n_lists = w->n_watches = 0;
        w->events = EVENT("DELETED", "a", "1") EVENT("DELETED", "b", "2");
        w->pages[0] =
            w->ender == BY_FAILED
                ? NULL
                : "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[" ITEM("a", "1") "," ITEM("b", "2") "]}";
        if (!w->kube)
            make_client(w);
        if (w->ender == BY_SCALE)
            for (int n = 0; n < 3; n++)
                (void)kube_get_scale(w->kube, &(struct kube_target){"apps/v1", "Deployment", "s", "d"}, scaled, w);
        else
            start(w);
        turn_until(w->loop, !w->kube);
        turn_some(w->loop);
        assert_string_equal(buf_cstr(&w->log), cases[i].want);
    }
}

static void test_a_cancelled_read_is_silent_and_others_go_on(void **state)
{
    struct world *w = (struct world *)*state;
    struct kube_target target = {"apps/v1", "Deployment", "s", "d"};
    struct kube_get *gets[3];
    for (int i = 0; i < 3; i++)
        gets[i] = kube_get_scale(w->kube, &target, scaled, w);
    kube_get_cancel(gets[0]);
    turn_some(w->loop); /* under way by now, or done */
    until_log(w, "scale:3:a=b scale:3:a=b ");
    struct kube_get *last = kube_get_scale(w->kube, &target, scaled, w);
    (void)net_loop_turn(w->loop);
    kube_get_cancel(last);
    turn_some(w->loop);
    assert_string_equal(buf_cstr(&w->log), "scale:3:a=b scale:3:a=b ");
}

static void test_silence_counts_until_the_watch_is_open(void **state)
{
    struct world *w = (struct world *)*state;
    start(w); /* 500 for ever */
    turn_until(w->loop, w->log.len > 0);
    int64_t before = kube_watch_silent_ns(w->watch, net_now_ns(w->loop));
    net_loop_skip(w->loop, 100 * NS_PER_S);
    assert_true(kube_watch_silent_ns(w->watch, net_now_ns(w->loop)) >= before + 100 * NS_PER_S);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_pages_then_events_are_told_in_order),
        TEST(test_a_new_list_tells_what_is_gone_before_it_is_synced),
        TEST(test_an_item_without_a_name_keeps_all_others),
        TEST(test_the_client_may_be_freed_from_inside_every_callback),
        TEST(test_a_cancelled_read_is_silent_and_others_go_on),
        TEST(test_silence_counts_until_the_watch_is_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
