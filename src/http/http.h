/* http: HTTP/1.1 for GET and HEAD on net's connections, gzip, and a client that fetches pages on the loop. The server
 * takes no request body, so there is nothing to smuggle. The handlers are net's GET table, which HTTP/2 shares. */
#ifndef HTTP_HTTP_H
#define HTTP_HTTP_H

#include "base/base.h"
#include "net/net.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_server;
/* gets and metrics must outlive the server. */
struct http_server *http_server_new(const struct net_gets *gets, struct metrics *metrics);
void http_server_free(struct http_server *server); /* accepts NULL; listeners first */
/* For struct net_listen_config.http1. */
const struct net_protocol *http_server_protocol(struct http_server *server);

/* Does an Accept-Encoding value allow gzip (q > 0)? */
bool http_accepts_gzip(struct str accept_encoding);
/* Compress body in place (gzip, level 1). 0, or -1 and the body unchanged when it would not get smaller. */
int http_gzip(struct buf *body);

/* A plain HTTP/1.1 GET to "host:port" or "unix:/path" without TLS or redirects, for probes and the CLI; blocks, with an
 * absolute time limit. Returns the HTTP status (body appended to ret_body), or -1. */
int http_get_blocking(const char *address, const char *path, int64_t timeout_ns, struct buf *ret_body, struct err *e);

/* ---- requests on the loop, over libcurl: HTTP and HTTPS, kept connections, gzip, no redirects, no cookies, no proxy
 * but the one that is set. HTTP/1.1, so that a connection that hangs takes one request with it and not all. ---- */

struct http_client;
/* On the loop, which must outlive it. NULL and UNAVAILABLE where libcurl gives nothing. */
struct http_client *http_client_new(struct net_loop *loop, struct err *e);
/* Fetches end without a callback. Accepts NULL; also from inside callbacks of its fetches. */
void http_client_free(struct http_client *client);

/* PEM texts; an empty one is unset. Used by fetches that start from here on. Copied. */
struct http_client_tls {
    struct str ca;        /* whom to trust; unset: the system's */
    struct str cert, key; /* of the client: both or neither */
    bool is_insecure;     /* do not verify the server */
};
void http_client_set_tls(struct http_client *client, const struct http_client_tls *tls);
/* "http://proxy:3128" for all fetches from here on; NULL: none. The environment's is never used. Copied. */
void http_client_set_proxy(struct http_client *client, const char *url);
/* How many connections are kept for later fetches, 90 s each; 32 unless set. */
void http_client_set_kept(struct http_client *client, size_t n);

/* What an answer's head says. */
struct http_head {
    int status;
    double date_s;          /* Date, wall clock seconds; 0 unsaid */
    int64_t retry_after_ns; /* Retry-After; 0 unsaid */
};
struct http_fetch;
struct http_fetch_config {
    const char *url;            /* http:// or https://, escaped; copied */
    const char *const *headers; /* "name: value", NULL-terminated; NULL: none; copied */
    const char *method; /* "POST", "PATCH" with what they send (copied), its type among the headers; NULL: GET */
    struct str content;
    int64_t timeout_ns; /* from start to the last byte; 0: none */
    int64_t silence_ns; /* from start to the first byte, and from byte to byte; 0: none */
    bool is_long;       /* lasts for minutes, with others of its kind: on a connection of its own */
    /* Asked before each connect with the numeric address: NULL, or why it must not be asked (static text, the end of a
     * sentence), which ends the fetch with PERMISSION_DENIED unless another address of the host may. A fetch with it
     * has a connection of its own, goes through no proxy, and its URL may have no user in it. Optional. */
    const char *(*address_fault)(void *context, const char *address);
    /* The head, once, before any of the body. Optional. */
    void (*head)(void *context, const struct http_head *head);
    /* A piece of the body, as it comes, whatever the status. -1 ends the fetch with CANCELLED. */
    int (*body)(void *context, const char *bytes, size_t len);
    /* The end, once and last: error NULL when the answer came whole, whatever its status. UNAVAILABLE (not reached,
     * not trusted, cut short) or DEADLINE_EXCEEDED. The fetch is gone afterwards. */
    void (*done)(void *context, const struct err *error);
    void *context;
};
/* Callbacks never come from inside. */
struct http_fetch *http_fetch_start(struct http_client *client, const struct http_fetch_config *config);
/* No callback follows. Not after done; also from inside head and body, its own too. */
void http_fetch_cancel(struct http_fetch *fetch);

#endif
