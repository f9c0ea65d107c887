/* The inside of kube, for its own files: configuration, requests, JSON reading, and what a client holds. */
#ifndef KUBE_KUBE_PRIVATE_H
#define KUBE_KUBE_PRIVATE_H

#include "http/http.h"
#include "kube/kube.h"

/* Two of jansson's makers are called as base's writers are. Neither is used here: everything of ours is hidden, so that
 * jansson's own calls cannot end in base either. */
#define json_string jansson_string
#define json_null   jansson_null
#include <jansson.h>
#undef json_string
#undef json_null

/* ---- configuration (config.c, kubeconfig.c) ---- */

enum { KUBE_FILE_BYTES_MAX = 1 << 20, KUBE_TOKEN_BYTES_MAX = 64 << 10 };

/* Where the API server is and how to speak to it. A file that is named wins over the text, which then is its content
 * as last read. Texts are the struct's own; NULL unset. */
struct kube_access {
    char *server; /* "https://host:port[/path]", no slash at the end */
    char *ns, *proxy;
    char *ca_file, *cert_file, *key_file, *token_file;
    char *ca, *cert, *key, *token;
    bool is_insecure;
};
void kube_access_fini(struct kube_access *access);
#define KUBE_ACCESS_AUTO __attribute__((cleanup(kube_access_fini)))
/* Each fills a zeroed struct and reads no credential file yet. 0, or -1 and INVALID_ARGUMENT. */
int kube_access_in_cluster(const char *service_account_dir, struct kube_access *ret_access, struct err *e);
int kube_access_kubeconfig(const char *path, struct kube_access *ret_access, struct err *e);
int kube_access_parse(struct str text, const char *dir, struct kube_access *ret_access, struct err *e);
/* Read the files that are named. Blocks. 0, or -1 and the texts as they were. */
int kube_access_read(struct kube_access *access, struct err *e);
/* The files' names only, for reading them elsewhere. */
void kube_access_copy_files(const struct kube_access *access, struct kube_access *ret_copy);
/* Take the texts of `from` (which loses them). Was anything different? */
bool kube_access_take_texts(struct kube_access *access, struct kube_access *from);

/* ---- requests (request.c) ---- */

enum kube_verb { KUBE_GET, KUBE_LIST, KUBE_WATCH, KUBE_CREATE, KUBE_PATCH, KUBE_VERB_COUNT };

/* One request under way, embedded in its owner. Zeroed = none. */
struct kube_request {
    struct kube *k;
    struct http_fetch *fetch;
    enum kube_verb verb;
    char *path; /* for messages: without the query */
    int (*body)(void *context, const char *bytes, size_t len);
    void (*done)(void *context, const struct err *error);
    void *context;
    int status; /* 0 before the head */
    int64_t retry_after_ns;
    struct buf refusal; /* the body of an answer that is not 2xx */
};
struct kube_request_config {
    enum kube_verb verb;
    const char *path;   /* "/api/v1/pods?limit=500", escaped */
    struct str content; /* JSON to create or to merge; copied */
    int64_t timeout_ns, silence_ns;
    int (*body)(void *context, const char *bytes, size_t len); /* of a 2xx answer; -1 ends it */
    void (*done)(void *context, const struct err *error);      /* once; error NULL: 2xx and whole */
    void *context;
};
void kube_request_start(struct kube_request *request, struct kube *k, const struct kube_request_config *config);
/* Nothing if none is under way. */
void kube_request_cancel(struct kube_request *request);
bool kube_request_is_open(const struct kube_request *request); /* a 2xx head came, the end did not */

/* Append text with everything but unreserved characters (RFC 3986 section 2.3) escaped. */
void kube_escape(struct buf *out, const char *text);

/* ---- JSON (at.c) ---- */

enum { KUBE_OBJECT_BYTES_MAX = 2 << 20, KUBE_ARENA_BYTES_MAX = 8 << 20 };

/* Sticky: after the first failure everything reads as absent. */
struct kube_reader {
    struct arena *arena;
    struct err *e;
    bool is_failed;
};
/* A place in a document, with the way to it for messages. json NULL: nothing there (or null). */
struct kube_at {
    const struct kube_at *up;
    const char *key; /* NULL: item number index */
    size_t index;
    json_t *json;
};
/* Members of an object that may be absent. A wrong type is a failure. `up` must outlive what is returned. */
struct kube_at kube_at_object(struct kube_reader *r, const struct kube_at *up, const char *key);
struct kube_at kube_at_array(struct kube_reader *r, const struct kube_at *up, const char *key);
size_t kube_at_len(const struct kube_at *array);
struct kube_at kube_at_item(struct kube_reader *r, const struct kube_at *array, size_t i); /* an object */
const char *kube_at_text(struct kube_reader *r, const struct kube_at *up, const char *key, const char *otherwise);
const char *kube_at_item_text(struct kube_reader *r, const struct kube_at *array, size_t i);
int64_t kube_at_int(struct kube_reader *r, const struct kube_at *up, const char *key, int64_t otherwise);
bool kube_at_bool(struct kube_reader *r, const struct kube_at *up, const char *key, bool otherwise);
double kube_at_time(struct kube_reader *r, const struct kube_at *up, const char *key); /* 0 absent */
/* Rounded up to a thousandth, as the HPA does; a number or a text. False where absent. */
bool kube_at_quantity(struct kube_reader *r, const struct kube_at *up, const char *key, double *ret);
/* Zeroed memory, NULL on failure. */
void *kube_reader_alloc(struct kube_reader *r, size_t n, size_t size);
/* "spec.x[2] " and the rest of the sentence. */
void kube_refuse(struct kube_reader *r, const struct kube_at *at, const char *key, const char *what);

/* ---- values (value.c) ---- */

/* A resource.Quantity ("1500m", "1k", "2Gi", "1e3"), rounded away from zero to a thousandth. 0, or -1. */
int kube_parse_quantity(struct str text, double *ret);
/* RFC 3339 with fraction and offset, to wall clock seconds. 0, or -1. */
int kube_parse_time(struct str text, double *ret_s);

/* ---- decoding (decode.c and one file for each group) ---- */

void kube_read_meta(struct kube_reader *r, const struct kube_at *root, struct kube_meta *ret);
/* A label or annotation; NULL absent. Key of the map in metadata: "labels". */
const char *kube_read_mark(struct kube_reader *r, const struct kube_at *root, const char *map, const char *key);
void kube_read_target(struct kube_reader *r, const struct kube_at *ref, const char **ret_api_version,
                      const char **ret_kind, const char **ret_name);
void kube_read_pod(struct kube_reader *r, const struct kube_at *root, struct kube_pod *ret);
void kube_read_scaled_object(struct kube_reader *r, const struct kube_at *root, struct kube_scaled_object *ret);
void kube_read_scaled_job(struct kube_reader *r, const struct kube_at *root, struct kube_scaled_job *ret);
void kube_read_hpa(struct kube_reader *r, const struct kube_at *root, struct kube_hpa *ret);
void kube_read_endpoint_slice(struct kube_reader *r, const struct kube_at *root, struct kube_endpoint_slice *ret);
int kube_decode_scale(struct str body, struct arena *arena, struct kube_scale *ret, struct err *e);
/* As kube_decode, of what is parsed already. */
int kube_decode_json(enum kube_kind kind, json_t *json, struct arena *arena, struct kube_object *ret, struct err *e);
/* The metadata alone: 0, or -1. */
int kube_decode_meta(json_t *json, struct arena *arena, struct kube_meta *ret, struct err *e);
json_t *kube_parse_json(struct str text, struct err *e);

static inline void kube_json_cleanup(json_t **json)
{
    json_decref(*json);
}
#define KUBE_JSON_AUTO __attribute__((cleanup(kube_json_cleanup)))

/* ---- a list as it comes in (split.c) ---- */

enum kube_split_part { KUBE_SPLIT_NONE, KUBE_SPLIT_ITEM, KUBE_SPLIT_META };
struct kube_split {
    int (*item)(void *context, struct str json); /* -1 ends it */
    void (*too_large)(void *context);            /* an item was passed over */
    void *context;
    struct buf part, meta;
    enum kube_split_part taking;
    int depth;
    bool is_string, is_escaped, is_value, is_in_items, has_items, is_over;
    char key[16]; /* of the member of the list that is being read, cut */
    size_t key_len;
    size_t n_items;
};
void kube_split_init(struct kube_split *split, int (*item)(void *context, struct str json),
                     void (*too_large)(void *context), void *context);
void kube_split_fini(struct kube_split *split);
/* Ready for another list. */
void kube_split_reset(struct kube_split *split);
/* 0, or -1: no list, or item said so. */
int kube_split_feed(struct kube_split *split, const char *bytes, size_t len);
/* Was it a whole list? The text of its metadata is in split->meta. */
bool kube_split_is_whole(const struct kube_split *split);

/* ---- the client (client.c) ---- */

enum kube_watch_state { KUBE_WATCH_WAITING, KUBE_WATCH_LISTING, KUBE_WATCH_WATCHING, KUBE_WATCH_STATE_COUNT };
enum kube_restart { KUBE_RESTART_ENDED, KUBE_RESTART_EXPIRED, KUBE_RESTART_SILENT, KUBE_RESTART_ERROR };

struct kube_refresh;
struct kube_api;
struct kube_secret_call;
struct kube {
    struct net_loop *loop;
    struct http_client *http;
    struct kube_access access;
    int64_t timeout_ns;
    struct net_timer *refresh_timer;
    struct kube_refresh *refresh; /* under way, else NULL */
    int64_t refreshed_ns;
    bool has_date;
    double date_s;
    int64_t dated_ns;
    struct kube_watch *watches;
    struct kube_get *gets, *last_get;
    size_t n_gets_active;
    struct kube_api *apis;
    struct kube_secret_call *secret; /* under way, else NULL */
    struct metrics *own_metrics;
    struct metric_family *requests, *restarts, *states, *objects, *credentials;
};
/* The server said 401: the token may have been replaced. At most once in ten seconds. */
void kube_refresh_soon(struct kube *k);
/* Of scale.c. */
void kube_gets_free(struct kube *k);
/* Of secret.c. */
void kube_secret_free(struct kube *k);
/* RFC 4648 section 4 (base64.c). From: line ends are passed over; the caller's, or NULL for anything else and for what
 * is no text. */
char *kube_from_base64(const char *text);
void kube_to_base64(struct buf *out, const char *bytes, size_t len);

#endif
