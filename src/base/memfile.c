#include "base/memfile.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define PIECE ((size_t)1 << 20) /* bytes that are there twice at most: whole pages of any size */

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3 */
#endif

int memfile_new(const char *name)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL) /* an older kernel */
        fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return fd;
}

bool memfile_room(struct buf *b, size_t cap)
{
    void *p =
        mmap(NULL, cap, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return false;
    buf_init(b, p, cap);
    return true;
}

void memfile_room_free(struct buf *b)
{
    (void)munmap(b->p, b->cap);
}

static bool write_all(int fd, struct span s)
{
    while (s.n > 0) {
        ssize_t n = write(fd, s.p, s.n);
        if (n <= 0)
            return false;
        s = span_skip(s, (size_t)n);
    }
    return true;
}

/* The file is memory, too: what is in it must not be here as well. */
static bool pour(int fd, const struct buf *b)
{
    for (size_t at = 0; at < b->n; at += PIECE) {
        size_t n = b->n - at < PIECE ? b->n - at : PIECE;
        if (!write_all(fd, span_of(b->p + at, n)))
            return false;
        (void)madvise(b->p + at, n, MADV_DONTNEED);
    }
    return true;
}

int memfile_seal(struct buf *b, const char *name)
{
    int fd = b->failed ? -1 : memfile_new(name);
    int why = b->failed ? ENOSPC : errno;
    bool ok = fd >= 0 && pour(fd, b) &&
              fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == 0;
    buf_truncate(b, 0);
    if (ok)
        return fd;
    if (fd >= 0) {
        why = errno;
        (void)close(fd);
    }
    errno = why;
    return -1;
}

bool memfile_map(int fd, size_t n, struct span *out)
{
    void *p = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return false;
    *out = span_of(p, n);
    return true;
}

void memfile_unmap(struct span s)
{
    if (s.n > 0)
        (void)munmap((void *)(uintptr_t)s.p, s.n);
}
