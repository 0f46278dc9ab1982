/* Preloaded into sidflake: the file CUT_FILE is empty CUT_TIMES times that it is opened, behind
 * the first CUT_WHOLE, as one is that somebody is writing over. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static long number(const char *name)
{
    const char *s = getenv(name);
    return s ? atol(s) : 0;
}

static int is_cut(long opened)
{
    long whole = number("CUT_WHOLE");
    return opened >= whole && opened < whole + number("CUT_TIMES");
}

static int open_as(const char *name, const char *path, int flags, mode_t mode)
{
    static long opened;
    int (*next)(const char *, int, ...);
    const char *cut = getenv("CUT_FILE");
    if (cut && strcmp(path, cut) == 0 && is_cut(opened++)) {
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
