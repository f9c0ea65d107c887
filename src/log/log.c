/* Structured lines on stderr. */
#include "log/log.h"

#include <inttypes.h>
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

/* logfmt: a bare word where it can be one, else quoted as JSON does. */
static void append_text_value(struct buf *out, const char *text)
{
    bool is_bare = *text != '\0';
    for (const unsigned char *c = (const unsigned char *)text; *c && is_bare; c++)
        is_bare = *c > ' ' && *c < 0x7f && *c != '"' && *c != '=' && *c != '\\';
    if (is_bare)
        (void)buf_append_str(out, text);
    else
        json_quote(out, text, strlen(text));
}

static void append_pair_text(struct buf *out, const struct log_pair *pair)
{
    char number[NUM_TEXT_MAX];
    (void)buf_printf(out, " %s=", pair->key);
    switch (pair->kind) {
    case LOG_KIND_TEXT:
        append_text_value(out, pair->text ? pair->text : "");
        break;
    case LOG_KIND_INT:
        (void)buf_printf(out, "%" PRId64, pair->number);
        break;
    case LOG_KIND_DOUBLE:
        num_format_double(number, pair->real);
        (void)buf_append_str(out, number);
        break;
    case LOG_KIND_BOOL:
        (void)buf_append_str(out, pair->number ? "true" : "false");
        break;
    }
}

static void append_pair_json(struct json *j, const struct log_pair *pair)
{
    json_key(j, pair->key);
    switch (pair->kind) {
    case LOG_KIND_TEXT:
        json_string(j, pair->text ? pair->text : "");
        break;
    case LOG_KIND_INT:
        json_i64(j, pair->number);
        break;
    case LOG_KIND_DOUBLE:
        json_double(j, pair->real);
        break;
    case LOG_KIND_BOOL:
        json_bool(j, pair->number);
        break;
    }
}

void log_format_line(struct buf *out, enum log_format format, int64_t wall_ns, enum log_level level, const char *component,
                     const char *message, const struct log_pair *pairs)
{
    char when[TIME_RFC3339_MAX];
    time_format_rfc3339(when, wall_ns);
    if (format == LOG_TEXT) {
        (void)buf_printf(out, "ts=%s level=%s component=%s msg=", when, level_names[level], component);
        append_text_value(out, message);
        for (; pairs->key; pairs++)
            append_pair_text(out, pairs);
    } else {
        struct json j;
        json_init(&j, out, 0);
        json_object_begin(&j);
        json_kv_string(&j, "ts", when);
        json_kv_string(&j, "level", level_names[level]);
        json_kv_string(&j, "component", component);
        json_kv_string(&j, "msg", message);
        for (; pairs->key; pairs++)
            append_pair_json(&j, pairs);
        json_object_end(&j);
    }
    (void)buf_append_char(out, '\n');
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

void log_write(struct log_site *site, enum log_level level, const char *component, const char *message,
               const struct log_pair *pairs)
{
    enum { PAIRS_MAX = 24 };
    uint32_t suppressed;
    if (!take_place(site, &suppressed))
        return;
    struct log_pair all[PAIRS_MAX + 2];
    size_t n = 0;
    for (; pairs[n].key && n < PAIRS_MAX; n++)
        all[n] = pairs[n];
    if (suppressed)
        all[n++] = LOG_INT("suppressed", suppressed);
    all[n] = (struct log_pair){.key = NULL};

    BUF_AUTO struct buf line;
    buf_init(&line, LINE_MAX_BYTES);
    log_format_line(&line, (enum log_format)atomic_load(&line_format), time_wall_ns(), level, component, message, all);
    ssize_t written = write(STDERR_FILENO, line.data, line.len);
    (void)written; /* there is no better place to complain to */
}
