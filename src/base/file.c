/* Whole small files. */
#include "base/file.h"

#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void file_close_cleanup(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

/* Append the rest of fd to out. */
static int read_all(int fd, const char *path, struct buf *out, struct err *e)
{
    for (;;) {
        char chunk[8192];
        ssize_t n = read(fd, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set_errno(e, ERR_UNAVAILABLE, errno, "cannot read %s", path);
        if (n == 0)
            return 0;
        if (buf_append(out, chunk, (size_t)n) < 0)
            return err_set(e, ERR_RESOURCE_EXHAUSTED, "%s is larger than the limit of %zu bytes", path, out->max_bytes);
    }
}

int file_read(const char *path, struct buf *out, struct err *e)
{
    FD_AUTO int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set_errno(e, errno == ENOENT ? ERR_NOT_FOUND : ERR_UNAVAILABLE, errno, "cannot open %s", path);
    size_t len_before = out->len;
    if (read_all(fd, path, out, e) == 0)
        return 0;
    out->len = len_before;
    return -1;
}

int file_stamp(const char *path, struct file_stamp *ret_stamp)
{
    struct stat st;
    memset(ret_stamp, 0, sizeof(*ret_stamp));
    if (stat(path, &st) < 0)
        return -1;
    ret_stamp->device = st.st_dev;
    ret_stamp->inode = st.st_ino;
    ret_stamp->size = st.st_size;
    ret_stamp->mtime_ns = (int64_t)st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec;
    return 0;
}
