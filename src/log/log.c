/* Structured lines on stderr. */
#include "log/log.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static _Atomic int least_level = LOG_INFO;
static _Atomic int line_format = LOG_TEXT;
static const char *const level_names[] = {"debug", "info", "warn", "error"};
enum { LINE_MAX_BYTES = 16384 };
#define WINDOW_NS (10 * NS_PER_S)

void log_configure(enum log_level least, enum log_format format)
{
    atomic_store(&least_level, (int)least);
    atomic_store(&line_format, (int)format);
}

bool log_is_on(enum log_level level)
{
    return (int)level >= atomic_load_explicit(&least_level, memory_order_relaxed);
}

const char *log_level_name(enum log_level level)
{
    return level_names[level];
}

int log_parse_level(const char *name, enum log_level *ret_level)
{
    for (int i = 0; i < LOG_LEVEL_COUNT; i++)
        if (strcmp(name, level_names[i]) == 0) {
            *ret_level = (enum log_level)i;
            return 0;
        }
    return -1;
}

int log_parse_format(const char *name, enum log_format *ret_format)
{
    if (strcmp(name, "text") != 0 && strcmp(name, "json") != 0)
        return -1;
    *ret_format = *name == 't' ? LOG_TEXT : LOG_JSON;
    return 0;
}

/* A text, or as much of it as the line has room for. */
static struct str cut(const char *text, size_t max_len)
{
    size_t len = strlen(text);
    if (len > max_len)
        for (len = max_len; len > 0 && ((unsigned char)text[len] & 0xC0) == 0x80;)
            len--;
    return (struct str){text, len};
}

/* logfmt: a bare word where it can be one, else quoted as JSON does. */
static void append_text_value(struct buf *out, struct str text)
{
    bool is_bare = text.len > 0;
    for (size_t i = 0; i < text.len && is_bare; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        is_bare = c > ' ' && c < 0x7f && c != '"' && c != '=' && c != '\\';
    }
    if (is_bare)
        (void)buf_append(out, text.ptr, text.len);
    else
        json_quote(out, text.ptr, text.len);
}

static void append_number(struct buf *out, const struct log_pair *pair, bool is_json)
{
    char number[NUM_TEXT_MAX];
    if (pair->kind == LOG_KIND_INT) {
        (void)buf_printf(out, "%" PRId64, pair->number);
    } else if (pair->kind == LOG_KIND_BOOL) {
        (void)buf_append_str(out, pair->number ? "true" : "false");
    } else {
        num_format_double(number, pair->real);
        (void)buf_append_str(out, isfinite(pair->real) || !is_json ? number : "null");
    }
}

static void append_pair(struct buf *out, enum log_format format, const struct log_pair *pair, size_t max_text)
{
    bool is_json = format == LOG_JSON;
    (void)buf_append_char(out, is_json ? ',' : ' ');
    if (is_json)
        json_quote(out, pair->key, strlen(pair->key));
    else
        (void)buf_append_str(out, pair->key);
    (void)buf_append_char(out, is_json ? ':' : '=');
    struct str text = cut(pair->kind == LOG_KIND_TEXT && pair->text ? pair->text : "", max_text);
    if (pair->kind != LOG_KIND_TEXT)
        append_number(out, pair, is_json);
    else if (is_json)
        json_quote(out, text.ptr, text.len);
    else
        append_text_value(out, text);
}

/* The line with no text longer than max_text bytes. */
static void format_cut(struct buf *out, enum log_format format, const struct log_line *line, size_t max_text)
{
    char when[TIME_RFC3339_MAX];
    time_format_rfc3339(when, line->wall_ns);
    bool is_json = format == LOG_JSON;
    const struct log_pair head[] = {LOG_STR("level", log_level_name(line->level)),
                                    LOG_STR("component", line->component), LOG_STR("msg", line->message)};
    (void)buf_printf(out, is_json ? "{\"ts\":\"%s\"" : "ts=%s", when);
    for (size_t i = 0; i < ARRAY_LEN(head); i++)
        append_pair(out, format, &head[i], max_text);
    for (const struct log_pair *pair = line->pairs; pair->key; pair++)
        append_pair(out, format, pair, max_text);
    (void)buf_append_str(out, is_json ? "}\n" : "\n");
}

void log_format_line(struct buf *out, enum log_format format, const struct log_line *line)
{
    enum { CUT_TEXT_MAX = 96 }; /* 26 texts of that length fit into a line, each byte escaped */
    size_t len_before = out->len;
    format_cut(out, format, line, SIZE_MAX);
    if (!out->is_overflowed)
        return;
    out->len = len_before;
    out->is_overflowed = false;
    format_cut(out, format, line, CUT_TEXT_MAX);
}

/* Takes one place in the site's window. Returns false when the line is to be dropped; *ret_suppressed is what the last
 * window dropped, once. Races between threads cost at most a few lines more or less. */
static bool take_place(struct log_site *site, uint32_t *ret_suppressed)
{
    int64_t now = time_mono_ns();
    *ret_suppressed = 0;
    if (now - atomic_load(&site->window_start_ns) > WINDOW_NS) {
        atomic_store(&site->window_start_ns, now);
        atomic_store(&site->in_window, 0);
        *ret_suppressed = atomic_exchange(&site->suppressed, 0);
    }
    if (atomic_fetch_add(&site->in_window, 1) < LOG_BURST)
        return true;
    (void)atomic_fetch_add(&site->suppressed, 1);
    return false;
}

/* One write, so that lines of several threads and programs do not mix; there is no better place to complain to. */
static void write_line(const struct buf *text)
{
    int saved = errno;
    while (write(STDERR_FILENO, text->data, text->len) < 0 && errno == EINTR)
        ;
    errno = saved;
}

void log_write(struct log_site *site, enum log_level level, const char *component, const char *message,
               const struct log_pair *pairs)
{
    enum { PAIRS_MAX = 24 };
    uint32_t suppressed = 0;
    if (!take_place(site, &suppressed))
        return;
    struct log_pair all[PAIRS_MAX + 2];
    size_t n = 0;
    for (; pairs[n].key && n < PAIRS_MAX; n++)
        all[n] = pairs[n];
    if (suppressed)
        all[n++] = LOG_INT("suppressed", suppressed);
    all[n] = (struct log_pair){.key = NULL};

    struct log_line line = {time_wall_ns(), level, component, message, all};
    BUF_AUTO struct buf text;
    buf_init(&text, LINE_MAX_BYTES);
    log_format_line(&text, (enum log_format)atomic_load(&line_format), &line);
    write_line(&text);
}
