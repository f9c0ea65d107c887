/* What the files of engine/ share. page.c: pages and who wants them; queue.c: whose turn it is; fetch.c: one fetch and
 * how it went; files.c: certificates and the token; guard.c: which addresses; place.c: URLs. */
#ifndef ENGINE_PRIVATE_H
#define ENGINE_PRIVATE_H

#include "engine/engine.h"

#define ENGINE_TIMEOUT_NS    (3 * NS_PER_S)
#define ENGINE_MIN_NS        NS_PER_S        /* between two fetches of a page */
#define ENGINE_KEEP_NS       (60 * NS_PER_S) /* how long a page of a pod lives that nobody asks for */
#define ENGINE_KEEP_NAMED_NS (900 * NS_PER_S)
#define ENGINE_TOO_LARGE_NS  (60 * NS_PER_S) /* until a page that was too large is fetched again, unless asked for */
enum { ENGINE_ERROR_MAX = ERR_TEXT_MAX + 512 };
enum { ENGINE_PAGES_MAX = 20000, ENGINE_ENDPOINTS_MAX = 5000, ENGINE_AT_ONCE = 64, ENGINE_KEPT_CONNECTIONS = 1024 };

/* How a fetch went. X(id, label of the metric). Change procedure: labels are public API (docs/metrics.md). */
#define ENGINE_OUTCOMES(X)                                                                                             \
    X(OK, "ok")                                                                                                        \
    X(ADDRESS_REFUSED, "address_refused")                                                                              \
    X(UNREACHABLE, "unreachable")                                                                                      \
    X(TIMEOUT, "timeout")                                                                                              \
    X(CUT_SHORT, "cut_short")                                                                                          \
    X(HTTP_3XX, "http_3xx")                                                                                            \
    X(HTTP_401, "http_401")                                                                                            \
    X(HTTP_403, "http_403")                                                                                            \
    X(HTTP_404, "http_404")                                                                                            \
    X(HTTP_4XX, "http_4xx")                                                                                            \
    X(HTTP_5XX, "http_5xx")                                                                                            \
    X(HTTP_OTHER, "http_other")                                                                                        \
    X(TOO_LARGE, "too_large")                                                                                          \
    X(NOT_A_PAGE, "not_a_page")                                                                                        \
    X(NO_RULE, "no_rule")
enum engine_outcome {
#define X(id, label) ENGINE_##id,
    ENGINE_OUTCOMES(X)
#undef X
        ENGINE_OUTCOME_COUNT
};

/* ---- addresses ---- */

struct engine_lists {
    VEC(struct ip_prefix) allow, deny;
};
/* 0, or -1 and INVALID_ARGUMENT with the entry. NULL lists are empty. */
int engine_lists_init(struct engine_lists *lists, const char *const *allow, const char *const *deny, struct err *e);
void engine_lists_fini(struct engine_lists *lists);
const char *engine_lists_fault(const struct engine_lists *lists, const char *address);

/* ---- files ---- */

struct engine_files;
/* Reads them now. `changed` is called, later, after each time that new ones were taken. NULL and an error where one
 * cannot be read. */
struct engine_files *engine_files_new(const struct engine_config *config, void (*changed)(void *context), void *context,
                                      struct err *e);
void engine_files_free(struct engine_files *files); /* accepts NULL */
void engine_files_look(struct engine_files *files);
/* The certificates as they are; valid until changed. */
struct http_client_tls engine_files_tls(const struct engine_files *files);
/* "Authorization: Bearer ...", NULL without a token file. */
const char *engine_files_header(const struct engine_files *files);
const char *engine_files_token_path(const struct engine_files *files); /* NULL none */
const char *engine_files_error(const struct engine_files *files);      /* why the newest are not in use; "" they are */

/* ---- pages ---- */

/* All pages at one host and port: one fetch of them at a time. */
struct engine_page;
struct engine_queue {
    struct engine_page *first, *last;
};
struct engine_host {
    size_t n_pages;
    bool is_busy; /* one is in the air, or ready to start */
    struct engine_queue waiting;
};

/* Callers of engine_ask, in the order of their calls. */
struct engine_asks {
    struct engine_ask *first, *last;
};
struct engine_ask {
    struct engine *engine;
    struct engine_page *page;
    struct engine_asks *in; /* the list that it is in */
    struct engine_ask *next, *prev;
    struct net_timer *deadline;
    void (*done)(void *context);
    void *context;
};

enum engine_turn { ENGINE_IDLE, ENGINE_WAITING /* for its host */, ENGINE_READY, ENGINE_IN_AIR };
enum engine_stand { ENGINE_UNREAD, ENGINE_READ, ENGINE_FAILING, ENGINE_STANDS };

struct engine_page {
    struct engine *engine;
    struct signals_feed feed;
    struct signals_history *history;
    char *url, *metric, *error;
    bool is_endpoint;
    char *host_key; /* "10.0.0.7:8000" */
    struct engine_host *host;
    struct net_timer *timer;                 /* the next fetch */
    uint64_t hash;                           /* where in the interval it is fetched */
    int64_t asked_ns, polled_ns;             /* when somebody last asked; for a page that is polled */
    int64_t interval_ns, interval_before_ns; /* the least that was asked for since since_ns, and in the time before */
    int64_t since_ns;
    enum engine_stand stand;
    bool is_too_large; /* the last fetch was */
    bool is_suspect;   /* the last fetch hung; an endpoint: it is not one that was read */

    /* its turn */
    enum engine_turn turn;
    struct engine_page *next, *prev; /* in its queue */
    bool is_suspect_in_air;
    struct engine_asks waiting, begun;

    /* the fetch in the air */
    struct http_fetch *fetch;
    int64_t began_ns;
    int status;
    size_t n_bytes;
    char last_byte;
    struct signals_reader *reader;
    struct err fault; /* of the reader */
    bool has_fault, has_token;
};

struct engine {
    struct net_loop *loop;
    struct http_client *clients[2]; /* of pods, of endpoints */
    struct engine_files *files;
    struct engine_lists lists;
    int64_t timeout_ns;
    size_t max_pages[2], max_at_once; /* of pods, of endpoints */
    bool is_insecure, has_cluster_dns, is_token_plain;
    struct map *pages[2]; /* of pods, of endpoints; used longest ago is asked for longest ago */
    struct map *hosts;
    struct net_timer *sweep;
    struct engine_queue ready[2]; /* good ones, suspects */
    size_t n_in_air[2];
    struct engine_asks finished;
    VEC(struct signals_reader *) readers; /* without a metric, not in use */
    struct metric_series *outcomes[ENGINE_OUTCOME_COUNT], *seconds, *stands[ENGINE_STANDS];
};

/* The page, made where it is new; NULL beyond the ceiling. */
struct engine_page *engine_page_get(struct engine *e, const struct engine_want *want);
void engine_page_free(void *page); /* a map's free function: out of all queues, its fetch ended */
/* It was fetched: when the next one is. */
void engine_page_schedule(struct engine_page *page);
void engine_page_sweep(struct engine *e); /* those that nobody asks for go */

/* Its turn comes. */
void engine_queue_add(struct engine_page *page, bool is_urgent);
void engine_queue_remove(struct engine_page *page);
/* Its fetch is over. */
void engine_queue_release(struct engine_page *page);

void engine_fetch_start(struct engine_page *page);
/* Without a result. */
void engine_fetch_cancel(struct engine_page *page);
/* Why it could not be read, for whoever looks at its feed; "" it was. */
void engine_page_set_error(struct engine_page *page, const char *error);
/* What became of a page is told; `error` in a sentence, "" it was read. */
void engine_page_tell(struct engine_page *page, enum engine_outcome outcome, const char *error);

void engine_asks_add(struct engine_asks *asks, struct engine_ask *ask);
/* All of them are told, at the end of the turn. */
void engine_asks_finish(struct engine *e, struct engine_asks *asks);

#endif
