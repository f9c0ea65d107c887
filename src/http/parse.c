/* Heads of HTTP/1 requests and replies (RFC 9112), strictly: what two parsers could read in two ways is refused. Pure
 * functions on bytes; server.c and client.c own the connections. */
#include "http/parse.h"

#include "net/net.h"

#include <string.h>

enum { FIELDS_MAX = 64 };

static long refuse(struct http_refusal *refusal, int status, const char *text)
{
    refusal->status = status;
    refusal->text = text;
    return -1;
}

static int refuse_request(struct http_refusal *refusal, int status, const char *text)
{
    return (int)refuse(refusal, status, text);
}

static bool is_token_char(char c)
{
    bool is_alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return is_alnum || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

/* ---- the end of the head ---- */

/* A line ended at `end` (its LF). Returns the head's length when it was the last. */
static long end_line(struct http_scan *scan, size_t end)
{
    bool is_empty = end == scan->line_start + 1;
    size_t line_start = scan->line_start;
    scan->line_start = end + 1;
    if (!is_empty)
        return 0;
    if (line_start == scan->start && !scan->has_passed_empty) {
        scan->has_passed_empty = true;
        scan->start = end + 1;
        return 0;
    }
    return (long)(end + 1);
}

static const char *byte_error(const struct http_scan *scan, const char *bytes, size_t at)
{
    unsigned char c = (unsigned char)bytes[at];
    bool is_after_cr = at > 0 && bytes[at - 1] == '\r';
    if (c == '\n')
        return is_after_cr ? NULL : "a line ends without a carriage return";
    if (is_after_cr)
        return "a carriage return stands alone";
    if ((c < 0x20 && c != '\t' && c != '\r') || c == 0x7f)
        return "the head holds a control character";
    if (at == scan->start && c != '\r' && !is_token_char((char)c))
        return "this is not HTTP";
    return NULL;
}

long http_scan_head(struct http_scan *scan, const char *bytes, size_t len, size_t max_bytes,
                    struct http_refusal *ret_refusal)
{
    for (; scan->done < len; scan->done++) {
        const char *error = byte_error(scan, bytes, scan->done);
        if (error)
            return refuse(ret_refusal, 400, error);
        if (scan->done >= max_bytes)
            return scan->line_start == scan->start ? refuse(ret_refusal, 414, "the request line is too long")
                                                   : refuse(ret_refusal, 431, "the header fields are too large");
        if (bytes[scan->done] != '\n')
            continue;
        long head = end_line(scan, scan->done);
        if (head > 0) {
            scan->done++;
            return head;
        }
    }
    return 0;
}

/* ---- lines and fields ---- */

/* The line at *rest without its CRLF. A complete head has one. */
static struct str cut_line(struct str *rest)
{
    struct str line = str_cut(rest, '\n');
    if (line.len && line.ptr[line.len - 1] == '\r')
        line.len--;
    return line;
}

/* Spaces and tabs only (OWS), unlike str_trim. */
static struct str trim_ows(struct str text)
{
    while (text.len && (text.ptr[0] == ' ' || text.ptr[0] == '\t')) {
        text.ptr++;
        text.len--;
    }
    while (text.len && (text.ptr[text.len - 1] == ' ' || text.ptr[text.len - 1] == '\t'))
        text.len--;
    return text;
}

static bool is_token(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_token_char(text.ptr[i]))
            return false;
    return text.len > 0;
}

/* name ":" value. A line that starts with white space (obs-fold) has no token before its colon. */
static int cut_field(struct str line, struct str *ret_name, struct str *ret_value)
{
    struct str rest = line, name = str_cut(&rest, ':');
    if (!rest.ptr || !is_token(name))
        return -1;
    *ret_name = name;
    *ret_value = trim_ows(rest);
    return 0;
}

static bool list_has(struct str list, const char *word)
{
    while (list.ptr)
        if (str_equals_nocase(trim_ows(str_cut(&list, ',')), word))
            return true;
    return false;
}

/* ---- the request line ---- */

/* "/path?query", or "http://host/path?query", which RFC 9112 3.2.2 makes servers accept. */
static int parse_target(char *target, size_t len, struct http_request *request)
{
    struct str text = {target, len};
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)target[i] <= ' ' || (unsigned char)target[i] >= 0x7f || target[i] == '#')
            return -1;
    size_t scheme = str_has_prefix(text, "http://") ? 7 : str_has_prefix(text, "https://") ? 8 : 0;
    if (scheme) {
        char *path = (char *)memchr(target + scheme, '/', len - scheme);
        if (!path || path == target + scheme)
            return -1;
        len -= (size_t)(path - target);
        target = path;
    }
    if (len == 0 || target[0] != '/')
        return -1;
    char *mark = (char *)memchr(target, '?', len);
    size_t path_len = mark ? (size_t)(mark - target) : len;
    request->query = mark ? (struct str){mark + 1, len - path_len - 1} : str_of("");
    if (net_gets_decode_path(target, &path_len) < 0)
        return -1;
    request->path = (struct str){target, path_len};
    return 0;
}

static int parse_version(struct str version, struct http_request *request, struct http_refusal *refusal)
{
    bool is_http = version.len == 8 && str_has_prefix(version, "HTTP/") && version.ptr[6] == '.' &&
                   version.ptr[5] >= '0' && version.ptr[5] <= '9' && version.ptr[7] >= '0' && version.ptr[7] <= '9';
    bool is_other = version.len > 0 && !(version.len >= 5 && str_equals_nocase((struct str){version.ptr, 5}, "HTTP/"));
    if (!is_http)
        return refuse_request(refusal, is_other ? HTTP_NO_ANSWER : 400,
                              "the request line is not METHOD target HTTP/1.1");
    if (version.ptr[5] != '1')
        return refuse_request(refusal, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
    request->is_http10 = version.ptr[7] == '0';
    request->is_keep_alive = !request->is_http10;
    return 0;
}

static int parse_request_line(char *line, size_t len, struct http_request *request, struct http_refusal *refusal)
{
    char *first = (char *)memchr(line, ' ', len), *last = (char *)memrchr(line, ' ', len);
    if (!first || first == last)
        return refuse_request(refusal, 400, "the request line is not METHOD target HTTP/1.1");
    struct str method = {line, (size_t)(first - line)};
    struct str version = {last + 1, (size_t)(line + len - last - 1)};
    if (!is_token(method))
        return refuse_request(refusal, 400, "the method is not a token");
    if (parse_version(version, request, refusal) < 0)
        return -1;
    request->is_head = str_equals(method, "HEAD");
    if (!request->is_head && !str_equals(method, "GET"))
        return refuse_request(refusal, 405, "only GET and HEAD are answered here");
    if (parse_target(first + 1, (size_t)(last - first - 1), request) < 0)
        return refuse_request(refusal, 400, "the request target is malformed");
    return 0;
}

/* ---- the fields that matter ---- */

struct fields {
    int n, n_hosts;
    bool has_length;
};

static bool is_host(struct str value)
{
    for (size_t i = 0; i < value.len; i++) {
        char c = value.ptr[i];
        bool is_alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!is_alnum && (c == '\0' || !strchr("-._~!$&'()*+,;=%:[]", c)))
            return false;
    }
    return true;
}

/* "Content-Length: 0" is the only length that there may be, once. */
static int check_length(struct fields *fields, struct str value, struct http_refusal *refusal)
{
    uint64_t length;
    if (fields->has_length || num_parse_u64(value, &length) < 0)
        return refuse_request(refusal, 400, "Content-Length is malformed or repeated");
    fields->has_length = true;
    return length == 0 ? 0 : refuse_request(refusal, 400, "requests with a body are not taken");
}

static void take_first(struct str *to, struct str value)
{
    if (to->len == 0)
        *to = value;
}

static int check_field(struct fields *fields, struct str name, struct str value, struct http_request *request,
                       struct http_refusal *refusal)
{
    if (str_equals_nocase(name, "content-length"))
        return check_length(fields, value, refusal);
    if (str_equals_nocase(name, "transfer-encoding"))
        return refuse_request(refusal, 400, "requests with a body are not taken");
    if (str_equals_nocase(name, "host")) {
        fields->n_hosts++;
        return is_host(value) ? 0 : refuse_request(refusal, 400, "Host is malformed");
    }
    if (str_equals_nocase(name, "connection")) {
        if (list_has(value, "keep-alive"))
            request->is_keep_alive = true;
        if (list_has(value, "close"))
            request->is_keep_alive = false;
    }
    if (str_equals_nocase(name, "accept"))
        take_first(&request->accept, value);
    else if (str_equals_nocase(name, "accept-encoding"))
        take_first(&request->accept_encoding, value);
    else if (str_equals_nocase(name, "user-agent"))
        take_first(&request->user_agent, value);
    return 0;
}

static int parse_fields(struct str rest, struct http_request *request, struct http_refusal *refusal)
{
    struct fields fields = {0};
    bool is_close = false;
    while (rest.ptr) {
        struct str line = cut_line(&rest), name, value;
        if (line.len == 0)
            break;
        if (++fields.n > FIELDS_MAX)
            return refuse_request(refusal, 431, "there are too many header fields");
        if (cut_field(line, &name, &value) < 0)
            return refuse_request(refusal, 400, "a header field is malformed");
        if (check_field(&fields, name, value, request, refusal) < 0)
            return -1;
        is_close = is_close || (str_equals_nocase(name, "connection") && list_has(value, "close"));
    }
    if (is_close)
        request->is_keep_alive = false; /* wins, in whichever order they come */
    if (fields.n_hosts > 1 || (fields.n_hosts == 0 && !request->is_http10))
        return refuse_request(refusal, 400, "there must be exactly one Host");
    return 0;
}

int http_parse_request(char *head, size_t len, struct http_request *ret_request, struct http_refusal *ret_refusal)
{
    struct http_request request = {.accept = str_of(""), .accept_encoding = str_of(""), .user_agent = str_of("")};
    char *end = (char *)memchr(head, '\n', len);
    if (!end || end == head)
        return refuse_request(ret_refusal, 400, "the request line is not METHOD target HTTP/1.1");
    size_t line_len = (size_t)(end - head) - (end[-1] == '\r' ? 1 : 0);
    if (parse_request_line(head, line_len, &request, ret_refusal) < 0)
        return -1;
    struct str rest = {end + 1, len - (size_t)(end + 1 - head)};
    if (parse_fields(rest, &request, ret_refusal) < 0)
        return -1;
    *ret_request = request;
    return 0;
}

/* ---- replies ---- */

static int parse_reply_field(struct str name, struct str value, struct http_reply *reply)
{
    int64_t length;
    if (str_equals_nocase(name, "transfer-encoding"))
        return -1;
    if (!str_equals_nocase(name, "content-length"))
        return 0;
    if (num_parse_i64(value, &length) < 0 || length < 0 || reply->content_length >= 0)
        return -1;
    reply->content_length = (long)length;
    return 0;
}

int http_parse_reply(const char *head, size_t len, struct http_reply *ret_reply)
{
    struct http_reply reply = {.content_length = -1};
    struct str rest = {head, len}, line = cut_line(&rest), code = {line.ptr, 3};
    uint64_t status;
    if (!str_has_prefix(line, "HTTP/1.") || line.len < 12 || line.ptr[8] != ' ')
        return -1;
    code.ptr += 9;
    if (num_parse_u64(code, &status) < 0 || status < 100 || status > 599)
        return -1;
    reply.status = (int)status;
    while (rest.ptr) {
        struct str name, value;
        line = cut_line(&rest);
        if (line.len == 0)
            break;
        if (cut_field(line, &name, &value) < 0 || parse_reply_field(name, value, &reply) < 0)
            return -1;
    }
    *ret_reply = reply;
    return 0;
}
