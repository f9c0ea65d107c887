/* The pure rules of gRPC's wire. Does not know HTTP/2 frames: it sees header values and the bytes of DATA. */
#include "rpc/wire.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- grpc-timeout ---- */

static const struct {
    char letter;
    int64_t ns;
} timeout_units[] = {
    {'n', 1}, {'u', NS_PER_US}, {'m', NS_PER_MS}, {'S', NS_PER_S}, {'M', 60 * NS_PER_S}, {'H', 3600 * NS_PER_S},
};
enum { TIMEOUT_DIGITS = 8, TIMEOUT_VALUE_MAX = 99999999 };

int rpc_timeout_parse(struct str text, int64_t *ret_ns)
{
    if (text.len < 2 || text.len > TIMEOUT_DIGITS + 1)
        return -1;
    int64_t value = 0;
    for (size_t i = 0; i + 1 < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return -1;
        value = value * 10 + (text.ptr[i] - '0');
    }
    for (size_t i = 0; i < ARRAY_LEN(timeout_units); i++)
        if (timeout_units[i].letter == text.ptr[text.len - 1]) {
            *ret_ns = value > INT64_MAX / timeout_units[i].ns ? INT64_MAX : value * timeout_units[i].ns;
            return 0;
        }
    return -1;
}

void rpc_timeout_format(char out[RPC_TIMEOUT_MAX], int64_t ns)
{
    if (ns < 1)
        ns = 1;
    size_t unit = 0;
    int64_t value = ns;
    while (value > TIMEOUT_VALUE_MAX && unit + 1 < ARRAY_LEN(timeout_units)) {
        unit++;
        value = ns / timeout_units[unit].ns + (ns % timeout_units[unit].ns != 0);
    }
    (void)snprintf(out, RPC_TIMEOUT_MAX, "%" PRId64 "%c", value, timeout_units[unit].letter);
}

/* ---- grpc-message ---- */

/* Bytes of the UTF-8 character at the front, 0 if there is no valid one. */
static size_t utf8_length(const char *text, size_t len)
{
    unsigned char first = (unsigned char)text[0];
    size_t want = first < 0x80 ? 1 : first >= 0xC2 && first < 0xE0 ? 2 : first >= 0xE0 && first < 0xF0 ? 3 : 4;
    if (first >= 0xF5 || (first >= 0x80 && first < 0xC2) || want > len)
        return 0;
    return first == 0 || str_is_utf8((struct str){text, want}) ? want : 0;
}

static size_t encode_byte(char *out, unsigned char byte)
{
    static const char hex[] = "0123456789ABCDEF";
    if (byte >= 0x20 && byte <= 0x7E && byte != '%') {
        out[0] = (char)byte;
        return 1;
    }
    out[0] = '%';
    out[1] = hex[byte >> 4];
    out[2] = hex[byte & 15];
    return 3;
}

size_t rpc_percent_encode(char out[RPC_ENCODED_MAX], const char *text)
{
    size_t written = 0, at = 0, len = strnlen(text, RPC_TEXT_MAX + 4);
    while (at < len) {
        size_t step = utf8_length(text + at, len - at);
        if (at + (step ? step : 1) > RPC_TEXT_MAX)
            break;
        if (step == 0)
            out[written++] = '?';
        for (size_t i = 0; i < step; i++)
            written += encode_byte(out + written, (unsigned char)text[at + i]);
        at += step ? step : 1;
    }
    out[written] = '\0';
    return written;
}

/* Undo the escapes in place of a copy; returns the new length. */
static size_t unescape(char *text, size_t len)
{
    size_t written = 0;
    for (size_t at = 0; at < len; at++) {
        int byte = str_percent_byte((struct str){text + at, len - at});
        text[written++] = byte >= 0 ? (char)byte : text[at];
        at += byte >= 0 ? 2 : 0;
    }
    return written;
}

void rpc_text_clean(char *out, size_t size, struct str text)
{
    size_t written = 0;
    for (size_t at = 0; at < text.len;) {
        size_t step = utf8_length(text.ptr + at, text.len - at);
        bool is_control = (unsigned char)text.ptr[at] < 0x20 || text.ptr[at] == 0x7F;
        if (written + (step ? step : 1) >= size)
            break;
        if (step == 0 || is_control) {
            out[written++] = step == 0 ? '?' : ' ';
            at++;
            continue;
        }
        memcpy(out + written, text.ptr + at, step);
        written += step;
        at += step;
    }
    out[written] = '\0';
}

void rpc_percent_decode(char *out, size_t size, struct str text)
{
    char copy[RPC_ENCODED_MAX];
    size_t len = text.len < sizeof(copy) ? text.len : sizeof(copy);
    if (len)
        memcpy(copy, text.ptr, len);
    rpc_text_clean(out, size, (struct str){copy, unescape(copy, len)});
}

/* ---- header values and status ---- */

bool rpc_is_grpc_content_type(struct str value)
{
    static const char base[] = "application/grpc";
    size_t len = sizeof(base) - 1;
    if (value.len < len || !str_equals_nocase((struct str){value.ptr, len}, base))
        return false;
    struct str rest = {value.ptr + len, value.len - len};
    if (rest.len == 0 || rest.ptr[0] == ';')
        return true;
    struct str subtype = str_trim(str_cut(&rest, ';'));
    return str_equals_nocase(subtype, "+proto");
}

enum err_class rpc_class_of_http(int http_status)
{
    switch (http_status) {
    case 400:
    case 431:
        return ERR_INTERNAL;
    case 401:
        return ERR_UNAUTHENTICATED;
    case 403:
        return ERR_PERMISSION_DENIED;
    case 404:
        return ERR_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return ERR_UNAVAILABLE;
    default:
        return ERR_UNKNOWN;
    }
}

enum err_class rpc_class_of_reset(uint32_t error_code)
{
    switch (error_code) { /* RFC 9113 section 7 */
    case 7:               /* REFUSED_STREAM */
        return ERR_UNAVAILABLE;
    case 8: /* CANCEL */
        return ERR_CANCELLED;
    case 11: /* ENHANCE_YOUR_CALM */
        return ERR_RESOURCE_EXHAUSTED;
    case 12: /* INADEQUATE_SECURITY */
        return ERR_PERMISSION_DENIED;
    default:
        return ERR_INTERNAL;
    }
}

const char *rpc_code_label(enum err_class class)
{
    switch (class) {
    case ERR_NONE:
        return "OK";
    case ERR_CANCELLED:
        return "Canceled";
    case ERR_INVALID_ARGUMENT:
        return "InvalidArgument";
    case ERR_DEADLINE_EXCEEDED:
        return "DeadlineExceeded";
    case ERR_NOT_FOUND:
        return "NotFound";
    case ERR_PERMISSION_DENIED:
        return "PermissionDenied";
    case ERR_RESOURCE_EXHAUSTED:
        return "ResourceExhausted";
    case ERR_FAILED_PRECONDITION:
        return "FailedPrecondition";
    case ERR_UNIMPLEMENTED:
        return "Unimplemented";
    case ERR_INTERNAL:
        return "Internal";
    case ERR_UNAVAILABLE:
        return "Unavailable";
    case ERR_UNAUTHENTICATED:
        return "Unauthenticated";
    case ERR_UNKNOWN:
    default:
        return "Unknown";
    }
}

/* ---- messages ---- */

enum { KEEP_BYTES = 1024 };

void rpc_reader_init(struct rpc_reader *r, size_t max_bytes, bool is_held)
{
    *r = (struct rpc_reader){.max_bytes = max_bytes, .is_held = is_held};
    buf_init(&r->message, max_bytes);
}

void rpc_reader_reset(struct rpc_reader *r, size_t keep_bytes)
{
    if (r->message.capacity > keep_bytes)
        buf_fini(&r->message);
    buf_reset(&r->message);
    r->prefix_len = 0;
    r->need = 0;
}

void rpc_reader_fini(struct rpc_reader *r)
{
    buf_fini(&r->message);
}

bool rpc_reader_is_inside(const struct rpc_reader *r)
{
    return r->prefix_len > 0;
}

void rpc_prefix_write(uint8_t out[RPC_PREFIX_BYTES], size_t len)
{
    out[0] = 0;
    out[1] = (uint8_t)(len >> 24);
    out[2] = (uint8_t)(len >> 16);
    out[3] = (uint8_t)(len >> 8);
    out[4] = (uint8_t)len;
}

static void skip(struct str *bytes, size_t n)
{
    bytes->ptr += n;
    bytes->len -= n;
}

/* Complete the prefix and judge it; RPC_READ_MESSAGE here means: go on with the body. */
static enum rpc_read read_prefix(struct rpc_reader *r, struct str *bytes)
{
    while (r->prefix_len < RPC_PREFIX_BYTES && bytes->len > 0) {
        r->prefix[r->prefix_len++] = (uint8_t)bytes->ptr[0];
        skip(bytes, 1);
    }
    if (r->prefix_len < RPC_PREFIX_BYTES)
        return RPC_READ_MORE;
    const uint8_t *p = r->prefix;
    if (p[0] != 0)
        return p[0] == 1 ? RPC_READ_COMPRESSED : RPC_READ_BAD_FLAG;
    r->need = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | (size_t)p[4];
    return r->need > r->max_bytes ? RPC_READ_TOO_BIG : RPC_READ_MESSAGE;
}

enum rpc_read rpc_reader_feed(struct rpc_reader *r, struct str *bytes, struct str *ret_message)
{
    if (r->prefix_len < RPC_PREFIX_BYTES) {
        if (r->message.capacity > KEEP_BYTES) /* of the message before: a stream may wait for hours after a large one */
            buf_fini(&r->message);
        buf_reset(&r->message);
        enum rpc_read read = read_prefix(r, bytes);
        if (read != RPC_READ_MESSAGE)
            return read;
    }
    size_t missing = r->need - r->message.len;
    if (r->message.len == 0 && bytes->len >= missing && !r->is_held) {
        *ret_message = (struct str){bytes->ptr, missing};
        skip(bytes, missing);
    } else {
        size_t n = bytes->len < missing ? bytes->len : missing;
        (void)buf_append(&r->message, bytes->ptr, n); /* within max_bytes: the prefix was checked */
        skip(bytes, n);
        if (n < missing)
            return RPC_READ_MORE;
        *ret_message = (struct str){r->message.data ? r->message.data : "", r->message.len};
    }
    r->prefix_len = 0;
    return RPC_READ_MESSAGE;
}
