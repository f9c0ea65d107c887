/* The inside of http: reading heads of requests and responses. Pure: bytes in, facts out, no socket. */
#ifndef HTTP_PARSE_H
#define HTTP_PARSE_H

#include "base/base.h"

#include <stdbool.h>
#include <stddef.h>

/* Where the search for the head's end has come to. Zero at the start of each request. */
struct http_scan {
    size_t done;       /* bytes looked at; they are not looked at again */
    size_t line_start; /* of the line being read */
    size_t start;      /* of the request line: an empty line before it is passed over (RFC 9112, 2.2) */
    bool has_passed_empty;
};

/* Why a request is refused. Static text, one sentence for a person. HTTP_NO_ANSWER: what came is no HTTP at all (a
 * third word that does not begin with HTTP/), so an HTTP answer would only confuse whoever sent it: close. */
enum { HTTP_NO_ANSWER = 0 };
struct http_refusal {
    int status;
    const char *text;
};

/* Look for the end of the head in bytes[0..len), which grows from call to call. Returns the head's length with its
 * empty line, 0 when there must be more, or -1: over max_bytes, or bytes that no head may have. */
long http_scan_head(struct http_scan *scan, const char *bytes, size_t len, size_t max_bytes,
                    struct http_refusal *ret_refusal);

/* Views into the head. Of repeated Accept and Accept-Encoding fields the first counts. */
struct http_request {
    struct str path;  /* percent-decoded */
    struct str query; /* raw, without '?' */
    struct str accept, accept_encoding, user_agent;
    bool is_head, is_http10, is_keep_alive;
};

/* Read one complete head (from scan->start; its path is decoded in place). 0, or -1 and why. After a refusal the
 * connection must be closed: where the next request begins is not known. */
int http_parse_request(char *head, size_t len, struct http_request *ret_request, struct http_refusal *ret_refusal);

struct http_reply {
    int status;
    long content_length; /* -1 = until the connection ends */
};
/* Read one complete response head. 0, or -1 when it is none or uses a transfer coding. */
int http_parse_reply(const char *head, size_t len, struct http_reply *ret_reply);

#endif
