/* Certificates in a folder: for tests, machines without Kubernetes, and those who carry them elsewhere themselves. */
#include "cli/cert.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES_MAX = 4096, FOR_ALL = 0644, FOR_OWNER = 0600, FOLDER = 0755 };

static int path_of(char out[PATH_BYTES_MAX], const char *folder, const char *name, struct err *e)
{
    int n = snprintf(out, PATH_BYTES_MAX, "%s/%s", folder, name);
    return n > 0 && n < PATH_BYTES_MAX ? 0 : err_set(e, ERR_INVALID_ARGUMENT, "the path is too long: %.200s", folder);
}

static int read_text(const char *folder, const char *name, struct buf *ret, struct err *e)
{
    char path[PATH_BYTES_MAX];
    struct err mine;
    if (path_of(path, folder, name, e) < 0)
        return -1;
    if (file_read(path, ret, &mine) == 0 || mine.class == ERR_NOT_FOUND)
        return 0;
    return err_set(e, mine.class, "%s", mine.text);
}

int cert_files_read(const char *folder, struct cert_store *store, struct err *e)
{
    if (read_text(folder, "ca.crt", &store->trusted, e) < 0 ||
        read_text(folder, "ca.key", &store->authority.key, e) < 0 ||
        read_text(folder, "tls.crt", &store->end.cert, e) < 0 || read_text(folder, "tls.key", &store->end.key, e) < 0)
        return -1;
    /* The authority is the first of those that are trusted; without one its text stays empty. */
    const struct buf none = {0};
    (void)net_bundle_join(&store->trusted, &none, 0, &store->authority.cert);
    return 0;
}

static int write_all(int fd, const struct buf *text)
{
    for (size_t done = 0; done < text->len;) {
        ssize_t n = write(fd, text->data + done, text->len - done);
        if (n < 0 && errno != EINTR)
            return -1;
        done += n > 0 ? (size_t)n : 0;
    }
    return fsync(fd);
}

/* Whoever reads meanwhile gets the former text or the new one. */
static int write_text(const char *folder, const char *name, const struct buf *text, mode_t mode, struct err *e)
{
    char path[PATH_BYTES_MAX], fresh[PATH_BYTES_MAX + 8];
    if (path_of(path, folder, name, e) < 0)
        return -1;
    (void)snprintf(fresh, sizeof(fresh), "%s.XXXXXX", path);
    FD_AUTO int fd = mkostemp(fresh, O_CLOEXEC);
    if (fd < 0)
        return err_set_errno(e, ERR_FAILED_PRECONDITION, errno, "cannot write %s", path);
    if (fchmod(fd, mode) == 0 && write_all(fd, text) == 0 && rename(fresh, path) == 0)
        return 0;
    int reason = errno;
    (void)unlink(fresh);
    return err_set_errno(e, ERR_FAILED_PRECONDITION, reason, "cannot write %s", path);
}

int cert_files_write(const char *folder, struct cert_store *store, struct err *e)
{
    if (mkdir(folder, FOLDER) < 0 && errno != EEXIST)
        return err_set_errno(e, ERR_FAILED_PRECONDITION, errno, "cannot make the folder %s", folder);
    if (write_text(folder, "ca.key", &store->authority.key, FOR_OWNER, e) < 0 ||
        write_text(folder, "ca.crt", &store->trusted, FOR_ALL, e) < 0 ||
        write_text(folder, "tls.key", &store->end.key, FOR_OWNER, e) < 0 ||
        write_text(folder, "tls.crt", &store->end.cert, FOR_ALL, e) < 0)
        return -1;
    return 0;
}
