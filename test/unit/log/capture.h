/* What programs log, for tests: stderr caught in a file while a test runs. */
#ifndef TEST_LOG_CAPTURE_H
#define TEST_LOG_CAPTURE_H

#include "base/base.h"

#include "support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct capture {
    FILE *file;
    int saved_fd;
};

static inline struct capture capture_begin(void)
{
    struct capture c = {.file = tmpfile(), .saved_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)};
    assert_non_null(c.file);
    assert_int_equal(fcntl(fileno(c.file), F_SETFL, O_APPEND), 0);
    assert_true(dup2(fileno(c.file), STDERR_FILENO) >= 0);
    return c;
}

/* What was written so far, the caller's to free. */
static inline char *capture_text(const struct capture *c)
{
    long len = lseek(fileno(c->file), 0, SEEK_END);
    char *text = (char *)mem_new_array((size_t)len + 1, 1);
    assert_int_equal(pread(fileno(c->file), text, (size_t)len, 0), len);
    return text;
}

/* The same, and stderr is what it was before. */
static inline char *capture_end(struct capture *c)
{
    assert_true(dup2(c->saved_fd, STDERR_FILENO) >= 0);
    (void)close(c->saved_fd);
    char *text = capture_text(c);
    (void)fclose(c->file);
    return text;
}

static inline size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
        n++;
    return n;
}

#endif
