/* Preloaded into sidflake: Linux before 6.16, which cannot refuse descriptors that come along. */
#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>

#define SO_PASSRIGHTS 83

int setsockopt(int fd, int level, int name, const void *value, socklen_t n)
{
    int (*next)(int, int, int, const void *, socklen_t);
    *(void **)&next = dlsym(RTLD_NEXT, "setsockopt");
    if (level == SOL_SOCKET && name == SO_PASSRIGHTS) {
        errno = ENOPROTOOPT;
        return -1;
    }
    return next(fd, level, name, value, n);
}
