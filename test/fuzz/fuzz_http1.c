/* HTTP/1 heads from arbitrary bytes. Whatever the pieces in which the bytes come, the same head is found; what is taken
 * as a request has a path and no control characters; replies are read without trouble. */
#include "http/http.h"
#include "http/parse.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD_MAX_BYTES = 8192 };

/* A copy without slack, so that reading past what has come is caught. */
static long scan_piece(struct http_scan *scan, const uint8_t *data, size_t len, struct http_refusal *refusal)
{
    char *exact = (char *)malloc(len ? len : 1);
    memcpy(exact, data, len);
    long head = http_scan_head(scan, exact, len, HEAD_MAX_BYTES, refusal);
    free(exact);
    return head;
}

static long scan_in_pieces(const uint8_t *data, size_t size, size_t piece, struct http_refusal *refusal)
{
    struct http_scan scan = {0};
    long head = 0;
    for (size_t len = 0; head == 0 && len < size;) {
        len = size - len > piece ? len + piece : size;
        head = scan_piece(&scan, data, len, refusal);
    }
    return head;
}

static void check_request(const struct http_request *request)
{
    if (request->path.len == 0 || request->path.ptr[0] != '/')
        abort();
    for (size_t i = 0; i < request->path.len; i++)
        if ((unsigned char)request->path.ptr[i] < 0x20)
            abort();
    for (size_t i = 0; i < request->query.len; i++)
        if ((unsigned char)request->query.ptr[i] <= 0x20)
            abort();
}

static void parse_head(const uint8_t *data, size_t len, size_t start)
{
    struct http_request request;
    struct http_refusal refusal = {0};
    struct http_reply reply;
    char *head = (char *)malloc(len ? len : 1);
    memcpy(head, data, len);
    (void)http_parse_reply(head, len, &reply);
    if (http_parse_request(head + start, len - start, &request, &refusal) == 0)
        check_request(&request);
    else if ((refusal.status < 400 && refusal.status != HTTP_NO_ANSWER) || !refusal.text)
        abort();
    free(head);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_refusal refusal = {0};
    struct http_scan scan = {0};
    (void)http_accepts_gzip((struct str){(const char *)data, size});
    if (size > 4 * HEAD_MAX_BYTES)
        return 0;
    long whole = scan_piece(&scan, data, size, &refusal);
    size_t piece = size && size < 512 ? 1 : 97;
    if (scan_in_pieces(data, size, piece, &refusal) != whole)
        abort();
    if (whole < 0 && (refusal.status < 400 || !refusal.text))
        abort();
    if (whole > HEAD_MAX_BYTES)
        abort();
    if (whole > 0)
        parse_head(data, (size_t)whole, scan.start);
    parse_head(data, size, 0); /* also what is no complete head */
    return 0;
}
