/* Whole small files, with a ceiling, and a sign that a file was replaced. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

/* Append the content of `path` to out. Returns 0, or -1 (missing, unreadable, larger than out's ceiling) with
 * out's content as it was. Blocks. */
int file_read(const char *path, struct buf *out, struct err *e) __attribute__((warn_unused_result));

/* What changes when a file is rewritten or its symlink swapped (as Kubernetes does with mounted Secrets). */
struct file_stamp {
    uint64_t device, inode;
    int64_t size, mtime_ns;
};
/* Follows symlinks. Returns 0, or -1 and a zero stamp where there is no such file. */
int file_stamp(const char *path, struct file_stamp *ret_stamp);

/* For a cleanup attribute on an int: close it unless it is negative. */
void file_close_cleanup(int *fd);
#define FD_AUTO __attribute__((cleanup(file_close_cleanup)))

#endif
