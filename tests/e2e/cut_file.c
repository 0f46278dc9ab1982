/* Preloaded into sidflake: the file CUT_FILE is empty the first CUT_TIMES times that it is opened,
 * as one is that somebody is writing over. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static int open_as(const char *name, const char *path, int flags, mode_t mode)
{
    static long left = -1;
    int (*next)(const char *, int, ...);
    const char *cut = getenv("CUT_FILE"), *times = getenv("CUT_TIMES");
    if (left < 0)
        left = times ? atol(times) : 0;
    if (cut && strcmp(path, cut) == 0 && left > 0) {
        left--;
        int fd = memfd_create("cut", MFD_CLOEXEC);
        (void)fchmod(fd, 0600);
        return fd;
    }
    *(void **)&next = dlsym(RTLD_NEXT, name);
    return next(path, flags, mode);
}

int open(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return open_as("open", path, flags, mode);
}

/* What a fortified program calls where it says no mode. */
int __open_2(const char *path, int flags)
{
    return open_as("open", path, flags, 0);
}
