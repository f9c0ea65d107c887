/* gzip for answers: whether the peer takes it, and doing it. */
#include "http/http.h"

#include <limits.h>
#include <zlib.h>

/* The q of one "coding;q=0.5" element; 1 without, 0 for a malformed one. */
static double quality(struct str parameters)
{
    while (parameters.ptr) {
        struct str one = str_trim(str_cut(&parameters, ';'));
        double q;
        if (one.len < 2 || (one.ptr[0] != 'q' && one.ptr[0] != 'Q') || one.ptr[1] != '=')
            continue;
        one.ptr += 2;
        one.len -= 2;
        return num_parse_double(one, &q) == 0 && q >= 0 && q <= 1 ? q : 0;
    }
    return 1;
}

bool http_accepts_gzip(struct str accept_encoding)
{
    double gzip = -1, any = -1; /* not named; a name of its own beats '*' (RFC 9110, 12.5.3) */
    while (accept_encoding.ptr) {
        struct str element = str_cut(&accept_encoding, ','), coding = str_trim(str_cut(&element, ';'));
        if (str_equals_nocase(coding, "gzip") || str_equals_nocase(coding, "x-gzip"))
            gzip = element.ptr ? quality(element) : 1;
        else if (str_equals(coding, "*"))
            any = element.ptr ? quality(element) : 1;
    }
    return gzip >= 0 ? gzip > 0 : any > 0;
}

int http_gzip(struct buf *body)
{
    enum { GZIP_WINDOW_BITS = 15 + 16, MEMORY_LEVEL = 8, LEVEL = 1 };
    struct buf out;
    z_stream z = {0};
    if (body->len == 0 || body->len > INT_MAX ||
        deflateInit2(&z, LEVEL, Z_DEFLATED, GZIP_WINDOW_BITS, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
        return -1;
    buf_init(&out, body->max_bytes);
    char *room = buf_reserve(&out, body->len);
    z.next_in = (Bytef *)body->data;
    z.avail_in = (uInt)body->len;
    z.next_out = (Bytef *)room;
    z.avail_out = room ? (uInt)body->len - 1 : 0; /* equal is not smaller */
    int rc = room ? deflate(&z, Z_FINISH) : Z_BUF_ERROR;
    size_t len = z.total_out;
    (void)deflateEnd(&z);
    if (rc != Z_STREAM_END) {
        buf_fini(&out);
        return -1;
    }
    buf_advance(&out, len);
    buf_fini(body);
    *body = out;
    return 0;
}
