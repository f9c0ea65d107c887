/* Requests on the loop: libcurl's multi interface over net's polls and timers. Owns requests, their deadlines and the
 * kept connections. What the answers mean is the caller's business.
 *
 * libcurl may not be called from inside its own callbacks, and callers may do anything in theirs. So fetches are added
 * and taken apart between calls of libcurl only: is_inside says that one is running, and leave() comes after it.
 *
 * For each fetch libcurl 7.88 looks through all connections of its multi handle for one that is free (ConnectionExists
 * in url.c, Curl_conncache_extract_oldest in conncache.c), and keeps none once there are more than
 * CURLMOPT_MAXCONNECTS. So fetches that last have a handle of their own, where nothing is looked for or kept: thousands
 * of them cost the short ones neither time nor their kept connections. Guarded ones are there too: a connection that
 * was made without the guard, or with another one, is never used again by them. */
#include "http/http.h"

#include "http/guard.h"

#include <assert.h>
#include <string.h>

enum { HEAD_BYTES_MAX = 64 << 10 }; /* libcurl keeps each line of a head */
enum { IDLE_CONNECTIONS_MAX = 32, IDLE_CONNECTION_S = 90, KEEPALIVE_S = 15, KEEPALIVE_INTERVAL_S = 5, CONNECT_S = 10 };

struct http_fetch {
    struct http_client *client;
    struct http_fetch *next, *prev;
    struct http_fetch_config config; /* its texts are libcurl's copies by now */
    CURL *easy;
    struct curl_slist *headers;
    struct net_timer *deadline, *silence;
    struct http_head head;
    struct guard guard;
    size_t head_bytes;
    bool is_added, is_over, is_refused, is_alone; /* on a connection of its own */
    char error[CURL_ERROR_SIZE];
};

/* A multi handle. */
struct engine {
    struct http_client *client;
    CURLM *multi;
    struct net_timer *timer; /* libcurl's only one */
};
enum { ENGINE_SHORT, ENGINE_LONG, ENGINES };

struct http_client {
    struct net_loop *loop;
    struct engine engines[ENGINES];
    struct http_fetch *fetches; /* first those that are to be added or taken apart */
    bool is_inside, is_freed, is_insecure;
    char *ca, *cert, *key, *proxy; /* "" unset */
};

/* A socket of libcurl's. */
struct watched {
    struct engine *engine;
    struct net_poll *poll;
    curl_socket_t fd;
};

/* ---- life of a fetch ---- */

static void unlink_fetch(struct http_fetch *fetch)
{
    *(fetch->prev ? &fetch->prev->next : &fetch->client->fetches) = fetch->next;
    if (fetch->next)
        fetch->next->prev = fetch->prev;
}

static void link_first(struct http_fetch *fetch)
{
    fetch->prev = NULL;
    fetch->next = fetch->client->fetches;
    if (fetch->next)
        fetch->next->prev = fetch;
    fetch->client->fetches = fetch;
}

static CURLM *multi_of(const struct http_fetch *fetch)
{
    return fetch->client->engines[fetch->is_alone ? ENGINE_LONG : ENGINE_SHORT].multi;
}

static void take_apart(struct http_fetch *fetch)
{
    if (fetch->is_added)
        (void)curl_multi_remove_handle(multi_of(fetch), fetch->easy);
    unlink_fetch(fetch);
    curl_easy_cleanup(fetch->easy);
    curl_slist_free_all(fetch->headers);
    net_timer_free(fetch->deadline);
    net_timer_free(fetch->silence);
    free(fetch);
}

static void add(struct http_fetch *fetch)
{
    fetch->is_added = true;
    CURLMcode rc = curl_multi_add_handle(multi_of(fetch), fetch->easy);
    assert(rc == CURLM_OK); /* a good, new handle, outside of all callbacks */
    (void)rc;
}

static void destroy(struct http_client *client)
{
    for (struct http_fetch *fetch = client->fetches, *next; fetch; fetch = next) {
        next = fetch->next;
        take_apart(fetch);
    }
    for (size_t i = 0; i < ENGINES; i++) {
        (void)curl_multi_cleanup(client->engines[i].multi);
        net_timer_free(client->engines[i].timer);
    }
    free(client->ca);
    free(client->cert);
    free(client->key);
    free(client->proxy);
    free(client);
    curl_global_cleanup();
}

/* libcurl has returned: do what had to wait. The client may be gone afterwards. */
static void leave(struct http_client *client)
{
    client->is_inside = false;
    if (client->is_freed) {
        destroy(client);
        return;
    }
    for (struct http_fetch *fetch = client->fetches, *next; fetch && (fetch->is_over || !fetch->is_added);
         fetch = next) {
        next = fetch->next;
        if (fetch->is_over)
            take_apart(fetch);
        else if (!fetch->is_added)
            add(fetch);
    }
}

/* No callback follows; the memory goes in leave(). */
static void mark_over(struct http_fetch *fetch)
{
    fetch->is_over = true;
    unlink_fetch(fetch);
    link_first(fetch);
    net_timer_stop(fetch->deadline);
    net_timer_stop(fetch->silence);
}

/* Called inside. */
static void finish(struct http_fetch *fetch, const struct err *error)
{
    mark_over(fetch);
    fetch->config.done(fetch->config.context, error);
}

static void finish_result(struct http_fetch *fetch, CURLcode rc)
{
    if (rc == CURLE_OK) {
        finish(fetch, NULL);
        return;
    }
    struct err e;
    const char *text = *fetch->error ? fetch->error : curl_easy_strerror(rc);
    if (guard_has_refused(&fetch->guard))
        (void)err_set(&e, ERR_PERMISSION_DENIED, "its address %s %s", fetch->guard.refused, fetch->guard.why);
    else if (rc == CURLE_LOGIN_DENIED && fetch->guard.fault)
        (void)err_set(&e, ERR_PERMISSION_DENIED, "the URL has a user name or password in it");
    else if (fetch->head_bytes > HEAD_BYTES_MAX)
        (void)err_set(&e, ERR_UNAVAILABLE, "the head of the answer is longer than %d kB", HEAD_BYTES_MAX >> 10);
    else if (fetch->is_refused)
        (void)err_set(&e, ERR_CANCELLED, "the answer was not taken to its end");
    else
        (void)err_set(&e, rc == CURLE_OPERATION_TIMEDOUT ? ERR_DEADLINE_EXCEEDED : ERR_UNAVAILABLE, "%s", text);
    finish(fetch, &e);
}

static void run(struct engine *engine, curl_socket_t fd, int mask)
{
    struct http_client *client = engine->client;
    int n_left;
    CURLMsg *message;
    client->is_inside = true;
    (void)curl_multi_socket_action(engine->multi, fd, mask, &n_left);
    while ((message = curl_multi_info_read(engine->multi, &n_left)) != NULL) {
        struct http_fetch *fetch = NULL;
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &fetch);
        if (fetch && !fetch->is_over)
            finish_result(fetch, message->data.result);
    }
    leave(client);
}

/* ---- what libcurl asks of a loop ---- */

static void timer_fired(void *context)
{
    run((struct engine *)context, CURL_SOCKET_TIMEOUT, 0);
}

static int set_timer(CURLM *multi, long delay_ms, void *context)
{
    const struct engine *engine = (const struct engine *)context;
    (void)multi;
    if (delay_ms < 0)
        net_timer_stop(engine->timer);
    else
        net_timer_start(engine->timer, delay_ms * NS_PER_MS, 0);
    return 0;
}

static void socket_ready(void *context, bool is_readable, bool is_writable)
{
    const struct watched *watched = (const struct watched *)context;
    run(watched->engine, watched->fd, (is_readable ? CURL_CSELECT_IN : 0) | (is_writable ? CURL_CSELECT_OUT : 0));
}

static int watch_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *of_socket)
{
    struct engine *engine = (struct engine *)context;
    struct watched *watched = (struct watched *)of_socket;
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (watched)
            net_poll_free(watched->poll);
        free(watched);
        return 0;
    }
    if (!watched) {
        watched = mem_new(struct watched);
        watched->engine = engine;
        watched->fd = fd;
        watched->poll = net_poll_new(engine->client->loop, fd, socket_ready, watched, NULL);
        (void)curl_multi_assign(engine->multi, fd, watched);
    }
    if (watched->poll) /* else the fetch meets its deadline */
        net_poll_want(watched->poll, what & CURL_POLL_IN, what & CURL_POLL_OUT);
    return 0;
}

/* ---- what libcurl tells of an answer ---- */

static void heard(struct http_fetch *fetch)
{
    if (fetch->config.silence_ns > 0)
        net_timer_start(fetch->silence, fetch->config.silence_ns, 0);
}

/* The value of a header line with this name, else NULL in ptr. */
static struct str header_value(struct str line, const char *name)
{
    struct str rest = line;
    struct str key = str_cut(&rest, ':');
    return rest.ptr && str_equals_nocase(key, name) ? str_trim(rest) : (struct str){0};
}

static void read_header(struct http_head *head, struct str line)
{
    char date[64];
    int64_t wait_s;
    struct str value = header_value(line, "date");
    if (value.ptr && str_copy(date, sizeof(date), value)) {
        time_t at = curl_getdate(date, NULL);
        head->date_s = at > 0 ? (double)at : 0;
    }
    value = header_value(line, "retry-after");
    if (value.ptr && num_parse_i64(value, &wait_s) == 0 && wait_s >= 0 && wait_s <= 86400)
        head->retry_after_ns = wait_s * NS_PER_S;
}

/* One line of a head; the empty one ends it. Heads of 1xx answers are passed over. */
static size_t got_header(char *bytes, size_t size, size_t n, void *context)
{
    struct http_fetch *fetch = (struct http_fetch *)context;
    struct str line = str_trim((struct str){bytes, size * n});
    long status = 0;
    fetch->head_bytes += size * n;
    if (fetch->is_over || fetch->head_bytes > HEAD_BYTES_MAX)
        return 0;
    heard(fetch);
    read_header(&fetch->head, line);
    if (line.len > 0)
        return size * n;
    (void)curl_easy_getinfo(fetch->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200) {
        fetch->head = (struct http_head){0};
        return size * n;
    }
    if (fetch->head.status == 0 && fetch->config.head) {
        fetch->head.status = (int)status;
        fetch->config.head(fetch->config.context, &fetch->head);
    }
    return fetch->is_over ? 0 : size * n;
}

static size_t got_body(char *bytes, size_t size, size_t n, void *context)
{
    struct http_fetch *fetch = (struct http_fetch *)context;
    if (fetch->is_over)
        return 0;
    heard(fetch);
    if (fetch->config.body(fetch->config.context, bytes, size * n) < 0)
        fetch->is_refused = true;
    return fetch->is_over || fetch->is_refused ? 0 : size * n;
}

/* ---- deadlines ---- */

static void too_late(struct http_fetch *fetch, const char *text)
{
    struct http_client *client = fetch->client;
    struct err e;
    (void)err_set(&e, ERR_DEADLINE_EXCEEDED, "%s", text);
    client->is_inside = true;
    finish(fetch, &e);
    leave(client);
}

static void deadline_passed(void *context)
{
    too_late((struct http_fetch *)context, "no complete answer in time");
}

static void fell_silent(void *context)
{
    too_late((struct http_fetch *)context, "nothing was heard for too long");
}

/* ---- setting up ---- */

static void set_blob(CURL *easy, CURLoption option, char *text)
{
    struct curl_blob blob = {.data = text, .len = strlen(text), .flags = CURL_BLOB_COPY};
    if (*text)
        (void)curl_easy_setopt(easy, option, &blob);
}

static void set_tls(CURL *easy, const struct http_client *client)
{
    (void)curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (*client->ca) { /* these and no others */
        (void)curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
        (void)curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
        set_blob(easy, CURLOPT_CAINFO_BLOB, client->ca);
    }
    set_blob(easy, CURLOPT_SSLCERT_BLOB, client->cert);
    set_blob(easy, CURLOPT_SSLKEY_BLOB, client->key);
    (void)curl_easy_setopt(easy, CURLOPT_KEYPASSWD, ""); /* else OpenSSL asks the terminal */
    if (client->is_insecure) {
        (void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
        (void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
}

static void set_request(struct http_fetch *fetch)
{
    CURL *easy = fetch->easy;
    for (const char *const *header = fetch->config.headers; header && *header; header++)
        fetch->headers = curl_slist_append(fetch->headers, *header);
    (void)curl_easy_setopt(easy, CURLOPT_URL, fetch->config.url);
    (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, fetch->headers);
    (void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    (void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "gzip");
    (void)curl_easy_setopt(easy, CURLOPT_USERAGENT, "keda-gpu-scaler");
    (void)curl_easy_setopt(easy, CURLOPT_PROXY, fetch->client->proxy);
    (void)curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
}

static void set_content(struct http_fetch *fetch)
{
    if (!fetch->config.method)
        return;
    fetch->headers = curl_slist_append(fetch->headers, "Expect:"); /* no round trip before what is sent */
    (void)curl_easy_setopt(fetch->easy, CURLOPT_HTTPHEADER, fetch->headers);
    (void)curl_easy_setopt(fetch->easy, CURLOPT_POSTFIELDSIZE, (long)fetch->config.content.len);
    (void)curl_easy_setopt(fetch->easy, CURLOPT_COPYPOSTFIELDS, fetch->config.content.ptr);
    (void)curl_easy_setopt(fetch->easy, CURLOPT_CUSTOMREQUEST, fetch->config.method);
}

static void set_connection(struct http_fetch *fetch)
{
    CURL *easy = fetch->easy;
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);                  /* never wait for a resolver's thread */
    (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S); /* whatever the caller's deadlines */
    (void)curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, (long)IDLE_CONNECTION_S);
    (void)curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, fetch->is_alone ? 1L : 0L);
    (void)curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, fetch->is_alone ? 1L : 0L);
    (void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_S);
    (void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_INTERVAL_S);
    (void)curl_easy_setopt(easy, CURLOPT_PRIVATE, fetch);
    (void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, fetch->error);
    (void)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, got_header);
    (void)curl_easy_setopt(easy, CURLOPT_HEADERDATA, fetch);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, got_body);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, fetch);
}

struct http_fetch *http_fetch_start(struct http_client *client, const struct http_fetch_config *config)
{
    struct http_fetch *fetch = mem_new(struct http_fetch);
    assert(!client->is_freed);
    fetch->client = client;
    fetch->config = *config;
    fetch->easy = curl_easy_init();
    if (!fetch->easy)
        abort(); /* only when there is no memory */
    fetch->is_alone = config->is_long || config->address_fault;
    set_request(fetch);
    set_content(fetch);
    set_connection(fetch);
    set_tls(fetch->easy, client);
    if (config->address_fault) {
        fetch->guard = (struct guard){.fault = config->address_fault, .context = config->context};
        guard_set(&fetch->guard, fetch->easy);
    }
    fetch->config.url = NULL;
    fetch->config.headers = NULL;
    fetch->config.method = NULL;
    fetch->config.content = (struct str){0};
    fetch->deadline = net_timer_new(client->loop, deadline_passed, fetch);
    fetch->silence = net_timer_new(client->loop, fell_silent, fetch);
    if (config->timeout_ns > 0)
        net_timer_start(fetch->deadline, config->timeout_ns, 0);
    heard(fetch);
    link_first(fetch);
    if (!client->is_inside)
        add(fetch);
    return fetch;
}

void http_fetch_cancel(struct http_fetch *fetch)
{
    mark_over(fetch);
    if (!fetch->client->is_inside)
        leave(fetch->client);
}

static void replace(char **text, struct str by)
{
    free(*text);
    *text = mem_strndup(by.ptr ? by.ptr : "", by.len);
}

void http_client_set_tls(struct http_client *client, const struct http_client_tls *tls)
{
    replace(&client->ca, tls->ca);
    replace(&client->cert, tls->cert);
    replace(&client->key, tls->key);
    client->is_insecure = tls->is_insecure;
}

void http_client_set_proxy(struct http_client *client, const char *url)
{
    replace(&client->proxy, str_of(url ? url : ""));
}

void http_client_set_kept(struct http_client *client, size_t n)
{
    (void)curl_multi_setopt(client->engines[ENGINE_SHORT].multi, CURLMOPT_MAXCONNECTS, (long)n);
}

static void set_up(struct engine *engine, struct http_client *client)
{
    engine->client = client;
    engine->multi = curl_multi_init();
    if (!engine->multi)
        abort(); /* only when there is no memory */
    engine->timer = net_timer_new(client->loop, timer_fired, engine);
    (void)curl_multi_setopt(engine->multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
    (void)curl_multi_setopt(engine->multi, CURLMOPT_SOCKETDATA, engine);
    (void)curl_multi_setopt(engine->multi, CURLMOPT_TIMERFUNCTION, set_timer);
    (void)curl_multi_setopt(engine->multi, CURLMOPT_TIMERDATA, engine);
    (void)curl_multi_setopt(engine->multi, CURLMOPT_MAXCONNECTS, (long)IDLE_CONNECTIONS_MAX);
}

struct http_client *http_client_new(struct net_loop *loop, struct err *e)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        (void)err_set(e, ERR_UNAVAILABLE, "libcurl does not start");
        return NULL;
    }
    struct http_client *client = mem_new(struct http_client);
    client->loop = loop;
    for (size_t i = 0; i < ENGINES; i++)
        set_up(&client->engines[i], client);
    http_client_set_tls(client, &(struct http_client_tls){0});
    http_client_set_proxy(client, NULL);
    return client;
}

void http_client_free(struct http_client *client)
{
    if (!client)
        return;
    for (struct http_fetch *fetch = client->fetches, *next; fetch; fetch = next) {
        next = fetch->next;
        if (!fetch->is_over)
            mark_over(fetch);
    }
    client->is_freed = true;
    if (!client->is_inside)
        destroy(client);
}
