/* Errors as values: a class for the machine and a sentence for the person. Nothing to free. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stddef.h>

/* The one table of error classes: name, gRPC status code, HTTP status, exit code of the program.
 * gRPC codes: grpc/grpc doc/statuscodes.md. */
#define ERR_CLASSES(X)                                                                                                 \
    X(NONE, 0, 200, 0)                                                                                                 \
    X(CANCELLED, 1, 499, 1)                                                                                            \
    X(UNKNOWN, 2, 500, 1)                                                                                              \
    X(INVALID_ARGUMENT, 3, 400, 2)                                                                                     \
    X(DEADLINE_EXCEEDED, 4, 504, 124)                                                                                  \
    X(NOT_FOUND, 5, 404, 1)                                                                                            \
    X(PERMISSION_DENIED, 7, 403, 1)                                                                                    \
    X(RESOURCE_EXHAUSTED, 8, 429, 1)                                                                                   \
    X(FAILED_PRECONDITION, 9, 412, 1)                                                                                  \
    X(UNIMPLEMENTED, 12, 501, 1)                                                                                       \
    X(INTERNAL, 13, 500, 1)                                                                                            \
    X(UNAVAILABLE, 14, 503, 1)                                                                                         \
    X(UNAUTHENTICATED, 16, 401, 1)

enum err_class {
#define X(name, grpc, http, exit_code) ERR_##name,
    ERR_CLASSES(X)
#undef X
};

enum { ERR_TEXT_MAX = 768 };

struct err {
    enum err_class class;
    char text[ERR_TEXT_MAX]; /* UTF-8 sentence, no newline; cut at the limit with "..." */
};

/* Fill e (may be NULL) and return -1, so that a caller can `return err_set(...)`. No argument may point into e. */
int err_set(struct err *e, enum err_class class, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Like err_set, with the text of `errno_value` appended after ": ". */
int err_set_errno(struct err *e, enum err_class class, int errno_value, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Put "place: " in front of e's text on the way up; the class stays. Returns -1. e may be NULL. */
int err_wrap(struct err *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What the class is elsewhere. err_class_name gives the gRPC spelling, for example "INVALID_ARGUMENT". */
const char *err_class_name(enum err_class class);
int err_grpc_status(enum err_class class);
int err_http_status(enum err_class class);
int err_exit_code(enum err_class class);

/* The class of a gRPC status code; UNKNOWN for a code without a class of its own. */
enum err_class err_class_of_grpc(int grpc_status);

#endif
