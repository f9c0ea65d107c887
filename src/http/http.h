/* http: HTTP/1.1 for GET and HEAD on net's connections, and gzip. No request body is ever taken, so there is nothing to
 * smuggle. The handlers are net's GET table, which HTTP/2 shares. */
#ifndef HTTP_HTTP_H
#define HTTP_HTTP_H

#include "base/base.h"
#include "net/net.h"

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

#endif
