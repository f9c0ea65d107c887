/* The pure rules of gRPC's wire: time-outs, message texts, content types, status mappings and the reader that turns
 * DATA bytes into messages. No HTTP/2 library, no connection, no clock. Source: grpc/grpc doc/PROTOCOL-HTTP2.md. */
#ifndef RPC_WIRE_H
#define RPC_WIRE_H

#include "base/base.h"

enum {
    RPC_PREFIX_BYTES = 5,
    RPC_TIMEOUT_MAX = 24,
    RPC_TEXT_MAX = 1024, /* of a status, before encoding (grpc-http2.md 3.4) */
    RPC_ENCODED_MAX = 3 * RPC_TEXT_MAX + 1
};

/* grpc-timeout: 1 to 8 digits and one of H M S m u n. 0, or -1 for anything else; values over 292 years become
 * INT64_MAX. */
int rpc_timeout_parse(struct str text, int64_t *ret_ns) __attribute__((warn_unused_result));
/* The smallest unit in which ns (> 0; less counts as 1) fits 8 digits, rounded up. */
void rpc_timeout_format(char out[RPC_TIMEOUT_MAX], int64_t ns);

/* Percent-encode a status text for grpc-message: 0x20-0x7E except '%' stay. Cut at RPC_TEXT_MAX bytes of text, never
 * inside a UTF-8 sequence; invalid UTF-8 becomes '?'. Returns the length written, without the NUL. */
size_t rpc_percent_encode(char out[RPC_ENCODED_MAX], const char *text);
/* A peer's text as one line for people: control characters become spaces, invalid UTF-8 '?'. Cut to fit. size > 0. */
void rpc_text_clean(char *out, size_t size, struct str text);
/* Decode grpc-message, then the same: bad escapes stay as they are. */
void rpc_percent_decode(char *out, size_t size, struct str text);

/* Is it application/grpc, application/grpc+proto or application/grpc;...? Another subtype is not ours. */
bool rpc_is_grpc_content_type(struct str value);

/* What a client makes of an HTTP status other than 200 (doc/http-grpc-status-mapping.md). */
enum err_class rpc_class_of_http(int http_status);
/* What a client makes of RST_STREAM's error code (PROTOCOL-HTTP2.md, "Errors"). */
enum err_class rpc_class_of_reset(uint32_t error_code);
/* The spelling of a status in metrics, which is Go's: "OK", "InvalidArgument". */
const char *rpc_code_label(enum err_class class);

/* Splits DATA bytes, however they come, into messages. */
struct rpc_reader {
    struct buf message; /* the part of the current message that came so far */
    size_t max_bytes;   /* a larger message is refused on its prefix, before any memory is taken */
    size_t need;        /* length of the current message, once its prefix is complete */
    uint8_t prefix[RPC_PREFIX_BYTES];
    uint8_t prefix_len;
    bool is_held; /* keep a finished message in `message` instead of showing the input's bytes */
};
enum rpc_read {
    RPC_READ_MORE,       /* all bytes are taken; the next message is not complete */
    RPC_READ_MESSAGE,    /* *ret_message is one message, valid until the next feed */
    RPC_READ_TOO_BIG,    /* the prefix announces more than max_bytes */
    RPC_READ_COMPRESSED, /* flag 1 */
    RPC_READ_BAD_FLAG    /* any other flag */
};
void rpc_reader_init(struct rpc_reader *r, size_t max_bytes, bool is_held);
/* Empty again, for another stream; keeps up to `keep_bytes` of memory. */
void rpc_reader_reset(struct rpc_reader *r, size_t keep_bytes);
void rpc_reader_fini(struct rpc_reader *r);
/* Take bytes from *bytes up to the end of one message. Call again after RPC_READ_MESSAGE while bytes are left. */
enum rpc_read rpc_reader_feed(struct rpc_reader *r, struct str *bytes, struct str *ret_message);
/* Has a message begun and not ended? */
bool rpc_reader_is_inside(const struct rpc_reader *r);
/* The length announced by the last prefix. */
void rpc_prefix_write(uint8_t out[RPC_PREFIX_BYTES], size_t len);

#endif
