#include "base/file.h"

#include <errno.h>
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
