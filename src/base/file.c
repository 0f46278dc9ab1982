#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum err_code file_read(int fd, char *mem, size_t cap, size_t *n)
{
    for (*n = 0; *n < cap;) {
        ssize_t got = read(fd, mem + *n, cap - *n);
        if (got < 0 && errno != EINTR)
            return ERR_IO;
        if (got == 0)
            break;
        *n += got > 0 ? (size_t)got : 0;
    }
    return ERR_OK;
}

enum err_code file_load(const char *path, int flags, char *mem, size_t cap, size_t *n)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
    *n = 0;
    if (fd < 0)
        return ERR_IO;
    enum err_code r = file_read(fd, mem, cap, n);
    int why = errno;
    (void)close(fd);
    errno = why;
    return r;
}

enum err_code file_check_guarded(int fd, const char *what, struct err *e)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !(st.st_mode & (S_IWGRP | S_IWOTH)))
        return ERR_OK;
    return err_set(e, ERR_INVALID,
                   "%s: expected a file that nobody but its owner may write to, found mode %04o",
                   what, (unsigned)st.st_mode & 07777u);
}

bool file_is_shown(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & S_IROTH);
}

bool file_is_pipe(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

bool file_is_regular(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}
