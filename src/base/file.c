#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
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
