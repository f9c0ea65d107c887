/* log: structured lines on stderr, one event a line, one write(2) a line. Programs log; libraries never do. Thread
 * safe. */
#ifndef LOG_LOG_H
#define LOG_LOG_H

#include "base/base.h"

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_LEVEL_COUNT };
enum log_format { LOG_TEXT, LOG_JSON };

/* For all threads, at start or on reload. */
void log_configure(enum log_level least, enum log_format format);
/* Would a line of this level be written? Guard costly arguments with it. */
bool log_is_on(enum log_level level);
const char *log_level_name(enum log_level level);
/* "debug", "info", "warn", "error"; "text", "json". -1 for anything else. */
int log_parse_level(const char *name, enum log_level *ret_level);
int log_parse_format(const char *name, enum log_format *ret_format);

/* One key with its value; made by the LOG_* macros below. */
struct log_pair {
    const char *key;
    enum log_kind { LOG_KIND_TEXT, LOG_KIND_INT, LOG_KIND_DOUBLE, LOG_KIND_BOOL } kind;
    const char *text; /* NULL is written as an empty text */
    int64_t number;
    double real;
};
#define LOG_STR(key_, value_)  ((struct log_pair){.key = (key_), .kind = LOG_KIND_TEXT, .text = (value_)})
#define LOG_INT(key_, value_)  ((struct log_pair){.key = (key_), .kind = LOG_KIND_INT, .number = (int64_t)(value_)})
#define LOG_DBL(key_, value_)  ((struct log_pair){.key = (key_), .kind = LOG_KIND_DOUBLE, .real = (value_)})
#define LOG_BOOL(key_, value_) ((struct log_pair){.key = (key_), .kind = LOG_KIND_BOOL, .number = (value_)})

/* A place in the code that logs: after LOG_BURST lines within 10 s the rest is counted and shown as suppressed=N with
 * the first line of the next 10 s. */
struct log_site {
    _Atomic int64_t window_start_ns;
    _Atomic uint32_t in_window, suppressed;
};
enum { LOG_BURST = 20 };

/* Write one line, unless the site has had its share. pairs end with one whose key is NULL. A line is at most 16 KiB;
 * errno stays as it was. */
void log_write(struct log_site *site, enum log_level level, const char *component, const char *message,
               const struct log_pair *pairs);
/* All that one line says; pairs end with one whose key is NULL. */
struct log_line {
    int64_t wall_ns;
    enum log_level level;
    const char *component, *message;
    const struct log_pair *pairs;
};
/* Append the line as it would be written, with its newline. A line that does not fit into out's ceiling is written with
 * its texts cut; out overflows only when that does not fit either. */
void log_format_line(struct buf *out, enum log_format format, const struct log_line *line);

/* log_info("agent", "listening", LOG_STR("address", a)); the message is a stable event name, details go into pairs. */
#define log_at(level_, component_, message_, ...)                                                                      \
    do {                                                                                                               \
        static struct log_site log_site_;                                                                              \
        if (log_is_on(level_))                                                                                         \
            log_write(&log_site_, (level_), (component_), (message_),                                                  \
                      (const struct log_pair[]){__VA_ARGS__ __VA_OPT__(, ){.key = NULL}});                             \
    } while (0)
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)
#define log_info(...)  log_at(LOG_INFO, __VA_ARGS__)
#define log_warn(...)  log_at(LOG_WARN, __VA_ARGS__)
#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)

#endif
