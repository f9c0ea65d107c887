/* Errors as values. Owns the table of error classes; does not print or log. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int grpc, http, exit_code;
} classes[] = {
#define X(name, grpc, http, exit_code) {#name, grpc, http, exit_code},
    ERR_CLASSES(X)
#undef X
};

/* Mark a cut text, so that nobody takes it for a whole sentence. The cut falls between characters: the text goes into
 * JSON and gRPC messages, which are UTF-8. */
static void mark_cut(char *text, size_t size, int wanted)
{
    if (wanted < (int)size)
        return;
    size_t end = size - 4;
    while (end > 0 && ((unsigned char)text[end] & 0xC0) == 0x80)
        end--;
    memcpy(text + end, "...", 4);
}

int err_set(struct err *e, enum err_class class, const char *format, ...)
{
    if (!e)
        return -1;
    va_list args;
    va_start(args, format);
    e->class = class;
    mark_cut(e->text, sizeof(e->text), vsnprintf(e->text, sizeof(e->text), format, args));
    va_end(args);
    return -1;
}

int err_set_errno(struct err *e, enum err_class class, int errno_value, const char *format, ...)
{
    if (!e)
        return -1;
    char what[ERR_TEXT_MAX / 2];
    va_list args;
    va_start(args, format);
    mark_cut(what, sizeof(what), vsnprintf(what, sizeof(what), format, args));
    va_end(args);
    const char *reason = strerrordesc_np(errno_value);
    return err_set(e, class, "%s: %s", what, reason ? reason : "unknown system error");
}

int err_wrap(struct err *e, const char *format, ...)
{
    if (!e)
        return -1;
    char inner[ERR_TEXT_MAX], place[ERR_TEXT_MAX / 2];
    memcpy(inner, e->text, sizeof(inner));
    va_list args;
    va_start(args, format);
    mark_cut(place, sizeof(place), vsnprintf(place, sizeof(place), format, args));
    va_end(args);
    mark_cut(e->text, sizeof(e->text), snprintf(e->text, sizeof(e->text), "%s: %s", place, inner));
    return -1;
}

const char *err_class_name(enum err_class class)
{
    return class == ERR_NONE ? "OK" : classes[class].name;
}

int err_grpc_status(enum err_class class)
{
    return classes[class].grpc;
}

int err_http_status(enum err_class class)
{
    return classes[class].http;
}

int err_exit_code(enum err_class class)
{
    return classes[class].exit_code;
}

enum err_class err_class_of_grpc(int grpc_status)
{
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
        if (classes[i].grpc == grpc_status)
            return (enum err_class)i;
    return ERR_UNKNOWN;
}
